/* points: values over time as a bounded list of intervals, merged in pairs when there are too many.
 * Owned by the thread that analyzes.
 * Must not know what the values represent. */

#include "analyze/inner.h"

#define TOUCHING_NS 1.0 /* maximum rounding error between two adjacent intervals */

static bool touches(const tare__metric_point *a, const tare__metric_point *b)
{
    return b->at_ns - (a->at_ns + a->lasts_ns) <= TOUCHING_NS;
}

/* Means are weighted by the time observed; a gap between the two counts in neither. */
static void merge(tare__metric_point *into, const tare__metric_point *next)
{
    double seen = into->lasts_ns + next->lasts_ns;
    into->mean = seen > 0 ? (into->mean * into->lasts_ns + next->mean * next->lasts_ns) / seen
                          : (into->mean + next->mean) / 2;
    into->min = next->min < into->min ? next->min : into->min;
    into->max = next->max > into->max ? next->max : into->max;
    into->lasts_ns = next->at_ns + next->lasts_ns - into->at_ns;
}

static void halve(points *points, bool over_gaps)
{
    size_t n = 0;
    for (size_t i = 0; i < points->n; n++) {
        points->rows[n] = points->rows[i++];
        if (i < points->n && (over_gaps || touches(&points->rows[n], &points->rows[i])))
            merge(&points->rows[n], &points->rows[i++]);
    }
    points->n = n;
}

int tare__analyze_add_point(points *points, double from_ns, double to_ns, double value)
{
    const tare__metric_point point = {from_ns, to_ns > from_ns ? to_ns - from_ns : 0, value, value, value};
    tare__metric_point *last = points->n ? &points->rows[points->n - 1] : NULL;
    if (last && points->in_last < points->each && touches(last, &point)) {
        merge(last, &point);
        points->in_last++;
        return 0;
    }
    if (points->n >= points->max) {
        halve(points, false);
        if (points->n > points->max - points->max / 4) /* almost only gaps are left */
            halve(points, true);
        points->each *= 2;
    }
    if (!tare__array_fit(&points->rows, &points->room, points->n + 1, sizeof *points->rows))
        return TARE_E_MEMORY;
    points->rows[points->n++] = point;
    points->in_last = 1;
    return 0;
}

const tare__metric_point *tare__analyze_keep_points(const points *points, tare__arena *arena, double scale)
{
    tare__metric_point *rows = tare__arena_alloc(arena, (points->n + 1) * sizeof *rows);
    for (size_t i = 0; rows && i < points->n; i++) {
        rows[i] = points->rows[i];
        rows[i].min *= scale;
        rows[i].mean *= scale;
        rows[i].max *= scale;
    }
    return rows;
}
