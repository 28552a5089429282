/* html_metrics: what was sampled: a row a series, and points for those that the page draws.
 * Owned by the calling thread.
 * Must not know how anything was sampled. */
#include "html.h"

#include <math.h>
#include <stdlib.h>

#include "tare.h"

#define POINTS_LEAST 64u

/* In the order in which rooms for points are given away; others are in the table only. */
static const tare__subject_kind drawn[] = {
    TARE__SUBJECT_TREE,    TARE__SUBJECT_CONTAINER, TARE__SUBJECT_GPU,  TARE__SUBJECT_SYSTEM,
    TARE__SUBJECT_PROCESS, TARE__SUBJECT_NETWORK,   TARE__SUBJECT_DISK, TARE__SUBJECT_SENSOR,
};

static const char *const subjects[] = {
    [TARE__SUBJECT_SYSTEM] = "machine",
    [TARE__SUBJECT_CPU] = "cpu",
    [TARE__SUBJECT_DISK] = "disk",
    [TARE__SUBJECT_NETWORK] = "network",
    [TARE__SUBJECT_CONTAINER] = "container",
    [TARE__SUBJECT_TREE] = "program",
    [TARE__SUBJECT_PROCESS] = "process",
    [TARE__SUBJECT_THREAD] = "thread",
    [TARE__SUBJECT_SENSOR] = "sensor",
    [TARE__SUBJECT_GPU] = "gpu",
    [TARE__SUBJECT_GPU_PROCESS] = "gpu process",
    [TARE__SUBJECT_TARE] = "tare",
};

static const char *const units[] = {
    [TARE__SHOW_COUNT] = "count", [TARE__SHOW_BYTES] = "bytes",         [TARE__SHOW_SHARE] = "share",
    [TARE__SHOW_CORES] = "cores", [TARE__SHOW_SECONDS] = "seconds",     [TARE__SHOW_CELSIUS] = "celsius",
    [TARE__SHOW_WATTS] = "watts", [TARE__SHOW_JOULES] = "joules",       [TARE__SHOW_HERTZ] = "hertz",
    [TARE__SHOW_BITS] = "bits",   [TARE__SHOW_BYTES_PER_S] = "bytes/s", [TARE__SHOW_PER_S] = "1/s",
};

const char *tare__html_unit(tare__metric_unit unit)
{
    return (size_t)unit < TARE__COUNT_OF(units) && units[unit] ? units[unit] : "count";
}

static const char *subject_of(uint32_t subject)
{
    return subject < TARE__COUNT_OF(subjects) && subjects[subject] ? subjects[subject] : "other";
}

/* ---- room for points ---------------------------------------------------------------------------- */
static size_t rank_of(uint32_t subject)
{
    size_t rank = 0;
    while (rank < TARE__COUNT_OF(drawn) && drawn[rank] != subject)
        rank++;
    return rank;
}

static size_t most_a_series(const tare__html *page)
{
    size_t series = 0;
    for (size_t i = 0; i < page->analysis->n_metrics; i++) {
        const tare__metric_row *row = &page->analysis->metrics[i];
        series += row->n_points > 0 && rank_of(row->subject) < TARE__COUNT_OF(drawn);
    }
    size_t most = series ? page->limits->points * 3 / 4 / series : 0;
    return most < POINTS_LEAST ? POINTS_LEAST : most > TARE__POINTS_MAX ? TARE__POINTS_MAX : most;
}

/* For each row how many points it may have, the important subjects first. NULL: no memory. */
static uint32_t *share_out(tare__html *page)
{
    const tare__analysis *analysis = page->analysis;
    uint32_t *room = calloc(analysis->n_metrics + 1, sizeof *room);
    size_t left = page->limits->points * 3 / 4, most = most_a_series(page);
    for (size_t rank = 0; room && rank < TARE__COUNT_OF(drawn); rank++) {
        for (size_t i = 0; i < analysis->n_metrics; i++) {
            const tare__metric_row *row = &analysis->metrics[i];
            size_t wanted = row->n_points < most ? row->n_points : most;
            if (row->subject != drawn[rank] || wanted > left)
                continue;
            room[i] = (uint32_t)wanted;
            left -= wanted;
        }
    }
    return room;
}

/* ---- rows --------------------------------------------------------------------------------------- */
static void put_metric(tare__html *page, const tare__metric_row *row, size_t points)
{
    const tare__metric_about *about = row->known < TARE__METRIC_COUNT ? tare__metric_of(row->known) : NULL;
    tare__html_open_row(page);
    tare__json_string(&page->json, row->metric);
    tare__json_string(&page->json, subject_of(row->subject));
    tare__json_unsigned(&page->json, row->key);
    tare__json_string(&page->json, row->label);
    tare__json_string(&page->json, about ? about->what : NULL);
    tare__json_unsigned(&page->json, row->kind);
    tare__json_string(&page->json, tare__html_unit(row->unit));
    tare__json_string(&page->json, tare__html_unit(row->total_unit));
    tare__json_string(&page->json, row->absent);
    tare__json_unsigned(&page->json, row->n);
    tare__html_figure(page, row->min);
    tare__html_figure(page, row->mean);
    tare__html_figure(page, row->max);
    tare__html_ns(page, row->max_at_ns);
    tare__html_figure(page, row->first);
    tare__html_figure(page, row->last);
    tare__html_figure(page, row->total);
    if (points > 0) {
        tare__json_string(&page->json, tare__timeline_open_at(page->timeline, row->max_at_ns).span);
        tare__html_points(page, row->points, row->n_points, points);
    }
    tare__html_close_row(page);
}

/* Series with points come first into the room there is for rows; the rest as it fits. */
void tare__html_metrics(tare__html *page)
{
    const tare__analysis *analysis = page->analysis;
    uint32_t *room = share_out(page);
    size_t put = 0, bare = 0;
    if (!room)
        page->text.failed = true;
    tare__html_open_table(
        page, "metrics",
        "metric subject key label what kind unit total_unit absent n min mean max max_at first "
        "last total open points");
    for (size_t i = 0; room && i < analysis->n_metrics && !page->status; i++) {
        if (room[i] == 0 && ++bare > page->limits->rows)
            continue;
        put_metric(page, &analysis->metrics[i], room[i]);
        put++;
    }
    tare__html_close_table(page, analysis->n_metrics - put);
    free(room);
}
