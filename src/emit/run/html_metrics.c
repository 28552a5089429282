/* html_metrics: sampled metrics: one row per series, and points for those that the page draws.
 * Owned by the calling thread.
 * Must not know how anything was sampled. */
#include "html.h"

#include <stdlib.h>

#define POINTS_LEAST 64u

/* In the order in which points are assigned; other subjects are in the table only. */
static const tare__subject_kind drawn[] = {
    TARE__SUBJECT_TREE,    TARE__SUBJECT_CONTAINER, TARE__SUBJECT_GPU,  TARE__SUBJECT_SYSTEM,
    TARE__SUBJECT_PROCESS, TARE__SUBJECT_NETWORK,   TARE__SUBJECT_DISK, TARE__SUBJECT_SENSOR,
};

/* ---- number of points --------------------------------------------------------------------------- */
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

/* The maximum number of points of each row, important subjects first. NULL: out of memory. */
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
/* Its subject, the span that was open at its maximum, and its points, if some are assigned to it. */
static void put_drawn(tare__html *page, const void *at, size_t index)
{
    const tare__metric_row *row = at;
    const tare__metric_about *about = row->known < TARE__METRIC_COUNT ? tare__metric_of(row->known) : NULL;
    tare__json_string(&page->json, about ? about->what : NULL);
    if (page->room[index]) {
        tare__json_string(&page->json, tare__timeline_open_at(page->timeline, row->max_at_ns).span);
        tare__html_points(page, row->points, row->n_points, page->room[index]);
    }
}

/* Series with points are written first, up to the limit of rows; then the others as far as they fit. */
void tare__html_metrics(tare__html *page)
{
    static const tare__html_drawn drawn = {{"what", "open", "points"}, put_drawn};
    const tare__analysis *analysis = page->analysis;
    uint32_t *room = share_out(page);
    size_t put = 0, bare = 0;
    page->room = room;
    if (!room)
        page->text.failed = true;
    tare__html_open_schema(page, &tare__table_metrics, &drawn);
    for (size_t i = 0; room && i < analysis->n_metrics && !page->status; i++) {
        if (room[i] == 0 && ++bare > page->limits->rows)
            continue;
        tare__html_schema_row(page, &tare__table_metrics, &drawn, &analysis->metrics[i], i);
        put++;
    }
    tare__html_close_table(page, analysis->n_metrics - put);
    free(room);
}
