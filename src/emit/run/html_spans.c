/* html_spans: the span tree of the page: the largest rows when there are too many.
 * Owned by the calling thread.
 * Must not know how the rows were made. */
#include "html.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tare.h"

static int by_total_descending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

/* Rows with less than this are left out; -1 keeps all. */
static double least_total(tare__html *page)
{
    const tare__analysis *analysis = page->analysis;
    size_t n = analysis->n_spans;
    if (n <= page->limits->spans)
        return -1;
    double *totals = malloc(n * sizeof *totals);
    if (!totals) {
        page->text.failed = true;
        return INFINITY;
    }
    for (size_t i = 0; i < n; i++)
        totals[i] = analysis->spans[i].total_ns;
    qsort(totals, n, sizeof *totals, by_total_descending);
    double least = totals[page->limits->spans];
    free(totals);
    return least;
}

static void put_span(tare__html *page, const tare__span_row *row, uint32_t parent)
{
    tare__html_open_row(page);
    tare__json_string(&page->json, row->name);
    tare__json_string(&page->json, row->kind ? tare__span_kind_word(row->kind) : "others");
    tare__html_row(page, parent);
    tare__json_unsigned(&page->json, row->depth);
    tare__json_unsigned(&page->json, row->calls);
    tare__html_ns(page, row->total_ns);
    tare__html_ns(page, row->self_ns);
    tare__html_figure(page, row->share);
    tare__html_durations(page, &row->each);
    tare__json_string(&page->json, row->file);
    tare__json_unsigned(&page->json, row->line);
    tare__json_unsigned(&page->json, row->still_open);
    tare__json_unsigned(&page->json, row->end_lost);
    tare__json_unsigned(&page->json, row->left_open);
    tare__json_unsigned(&page->json, row->continued);
    tare__html_numbers(page, row->numbers, row->n_numbers);
    tare__html_close_row(page);
}

/* A row is kept with all above it: a total is never larger than the one around it but for rounding, and where
 * it is, the row goes with its parent. */
void tare__html_spans(tare__html *page)
{
    const tare__analysis *analysis = page->analysis;
    double least = least_total(page);
    uint32_t *place = calloc(analysis->n_spans + 1, sizeof *place), kept = 0;
    if (!place)
        page->text.failed = true;
    tare__html_open_table(page, "spans",
                          "name kind parent depth calls total self share min mean p50 p95 p99 max file line "
                          "still_open end_lost left_open continued numbers");
    for (size_t i = 0; place && i < analysis->n_spans && !page->status; i++) {
        const tare__span_row *row = &analysis->spans[i];
        uint32_t parent = row->parent == TARE__NO_ROW ? TARE__NO_ROW : place[row->parent];
        place[i] = TARE__NO_ROW;
        if (!(row->total_ns > least) || (row->parent != TARE__NO_ROW && parent == TARE__NO_ROW))
            continue;
        put_span(page, row, parent);
        place[i] = kept++;
    }
    tare__html_close_table(page, analysis->n_spans - kept);
    free(place);
}
