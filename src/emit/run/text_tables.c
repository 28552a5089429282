/* text_tables: aggregates, tracks, counters and marks of the text report.
 * Owned by the calling thread.
 * Must not know how the rows were made. */
#include "parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEW 6

/* ---- aggregate spans ----------------------------------------------------------------------------- */
static void put_aggregate(tare__page *page, const tare__aggregate_row *row)
{
    char total[TARE__UNIT_BYTES], marked[TARE__UNIT_BYTES + 2], sampled[32] = "";
    if (row->every > 1)
        snprintf(sampled, sizeof sampled, " (1 in %u)", row->every);
    tare__page_name(page, 0, row->name, (unsigned)strlen(sampled));
    tare__text_string(page->out, sampled);
    tare__page_pad(page);
    tare__page_calls(page, row->calls);
    tare__unit_time(total, row->total_ns);
    snprintf(marked, sizeof marked, "%s%s", row->estimated && isfinite(row->total_ns) ? "~" : "", total);
    tare__page_cell(page, TARE__PAGE_CELL, marked);
    tare__page_time(page, row->each.mean_ns);
    tare__page_time(page, row->each.p50_ns);
    tare__page_time(page, row->each.p95_ns);
    tare__page_time(page, row->each.max_ns);
    tare__page_line_end(page);
}

void tare__part_aggregates(tare__page *page, const tare__analysis *analysis)
{
    size_t n = analysis->n_aggregates, shown = tare__page_rows(page, n, FEW);
    bool estimated = false;
    if (n == 0)
        return;
    tare__page_title(page, "Aggregates", "calls|total|mean|p50|p95|max");
    for (size_t i = 0; i < shown; i++) {
        put_aggregate(page, &analysis->aggregates[i]);
        estimated = estimated || analysis->aggregates[i].estimated;
    }
    tare__page_more(page, n - shown, "aggregates");
    if (estimated)
        tare__text_string(page->out, "~ estimated: mean of the timed calls times all calls\n");
}

/* ---- tracks -------------------------------------------------------------------------------------- */
static const char *track_kind_name(uint32_t kind)
{
    static const char *const names[] = {"", " (task)", " (GPU)", " (request)", ""};
    return kind < TARE__COUNT_OF(names) ? names[kind] : "";
}

static void put_track_title(tare__page *page, const tare__track_row *row)
{
    const char *kind = track_kind_name(row->track_kind);
    tare__page_style_on(page, TARE__PAGE_STRONG);
    tare__page_name(page, 0, row->track[0] ? row->track : "recording thread", (unsigned)strlen(kind));
    tare__text_string(page->out, kind);
    tare__page_style_off(page);
    tare__page_line_end(page);
}

static void put_track(tare__page *page, const tare__track_row *row)
{
    tare__page_name(page, 2, row->name, 0);
    tare__page_pad(page);
    tare__page_calls(page, row->calls);
    tare__page_time(page, row->total_ns);
    tare__page_time(page, row->each.mean_ns);
    tare__page_time(page, row->each.p50_ns);
    tare__page_time(page, row->each.p95_ns);
    tare__page_time(page, row->each.max_ns);
    tare__page_line_end(page);
}

void tare__part_tracks(tare__page *page, const tare__analysis *analysis)
{
    size_t n = analysis->n_tracks, shown = tare__page_rows(page, n, FEW);
    if (n == 0)
        return;
    tare__page_title(page, "Tracks", "calls|total|mean|p50|p95|max");
    for (size_t i = 0; i < shown; i++) {
        const tare__track_row *row = &analysis->tracks[i];
        if (i == 0 || strcmp(row->track, row[-1].track) != 0 || row->track_kind != row[-1].track_kind)
            put_track_title(page, row);
        put_track(page, row);
    }
    tare__page_more(page, n - shown, "names on tracks");
}

/* ---- counters, marks ----------------------------------------------------------------------------- */
void tare__part_counters(tare__page *page, const tare__analysis *analysis)
{
    size_t n = analysis->n_counters, shown = tare__page_rows(page, n, FEW);
    if (n == 0)
        return;
    tare__page_title(page, "Counters", "values|first|last|min|mean|max");
    for (size_t i = 0; i < shown; i++) {
        const tare__counter_row *row = &analysis->counters[i];
        tare__page_name(page, 0, row->name, 0);
        tare__page_pad(page);
        tare__page_calls(page, row->n);
        tare__page_count(page, row->first);
        tare__page_count(page, row->last);
        tare__page_count(page, row->min);
        tare__page_count(page, row->mean);
        tare__page_count(page, row->max);
        tare__page_line_end(page);
    }
    tare__page_more(page, n - shown, "counters");
}

void tare__part_marks(tare__page *page, const tare__analysis *analysis)
{
    size_t n = analysis->n_marks, shown = tare__page_rows(page, n, FEW);
    if (n == 0)
        return;
    tare__page_title(page, "Marks", "times|first at|last at");
    for (size_t i = 0; i < shown; i++) {
        const tare__mark_row *row = &analysis->marks[i];
        tare__page_name(page, 0, row->name, 0);
        tare__page_pad(page);
        tare__page_calls(page, row->n);
        tare__page_time(page, row->first_at_ns);
        tare__page_time(page, row->last_at_ns);
        tare__page_line_end(page);
    }
    tare__page_more(page, n - shown, "marks");
}
