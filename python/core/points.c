/* points: see points.h. A full history is halved by making each two neighbours one.
 * Any thread; the owner guards it.
 * Must not know what reads the machine, nor Python. */
#include "points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEWEST (TARE__PY_POINTS_MAX / 2)
#define OLDER (TARE__PY_POINTS_MAX / 2) /* even */

bool tare__py_points_open(tare__py_points *points)
{
    memset(points, 0, sizeof *points);
    points->stride = 1;
    points->newest = malloc(NEWEST * sizeof *points->newest);
    points->older = malloc(OLDER * sizeof *points->older);
    if (points->newest && points->older)
        return true;
    tare__py_points_close(points);
    return false;
}

void tare__py_points_close(tare__py_points *points)
{
    free(points->newest);
    free(points->older);
    points->newest = points->older = NULL;
}

static double weight_of(const tare__py_point *point, int column)
{
    return column <= TARE__PY_AT_DISK ? point->busy_s : point->seconds;
}

static void join(tare__py_point *into, const tare__py_point *later)
{
    for (int i = 0; i < TARE__PY_COLUMNS; i++) {
        double before = weight_of(into, i), after = weight_of(later, i);
        if (isnan(into->mean[i]))
            into->mean[i] = later->mean[i];
        else if (!isnan(later->mean[i]))
            into->mean[i] = before + after > 0 ? (into->mean[i] * before + later->mean[i] * after) / (before + after)
                                               : later->mean[i];
        into->most[i] = fmax(into->most[i], later->most[i]);
    }
    into->at_ns = later->at_ns;
    into->seconds += later->seconds;
    into->busy_s += later->busy_s;
}

static void halve(tare__py_points *points)
{
    for (uint32_t i = 0; i < OLDER / 2; i++) {
        tare__py_point both = points->older[2 * i];
        join(&both, &points->older[2 * i + 1]);
        points->older[i] = both;
    }
    points->older_count = OLDER / 2;
    points->stride *= 2;
}

static void keep_older(tare__py_points *points, const tare__py_point *reading)
{
    if (points->pending++ == 0)
        points->unfinished = *reading;
    else
        join(&points->unfinished, reading);
    if (points->pending < points->stride)
        return;
    if (points->older_count == OLDER)
        halve(points);
    if (points->pending >= points->stride) {
        points->older[points->older_count++] = points->unfinished;
        points->pending = 0;
    }
}

static void add_to(tare__py_column columns[TARE__PY_COLUMNS], const tare__py_point *point)
{
    for (int i = 0; i < TARE__PY_COLUMNS; i++) {
        if (isnan(point->mean[i]))
            continue;
        tare__moments_add(&columns[i].readings, point->mean[i]);
        columns[i].readings.max = fmax(columns[i].readings.max, point->most[i]);
        columns[i].time += weight_of(point, i);
        columns[i].total += point->mean[i] * weight_of(point, i);
    }
}

void tare__py_points_add(tare__py_points *points, const tare__py_point *reading)
{
    tare__py_point *place = &points->newest[points->count % NEWEST];
    if (points->count >= NEWEST)
        keep_older(points, place);
    *place = *reading;
    points->count++;
    add_to(points->all, reading);
}

size_t tare__py_points_since(const tare__py_points *points, uint64_t since_ns, tare__py_point *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < points->older_count; i++)
        if (points->older[i].at_ns >= since_ns)
            out[n++] = points->older[i];
    if (points->pending && n < TARE__PY_POINTS_MAX - NEWEST && points->unfinished.at_ns >= since_ns)
        out[n++] = points->unfinished;
    for (uint64_t i = points->count > NEWEST ? points->count - NEWEST : 0; i < points->count; i++)
        if (points->newest[i % NEWEST].at_ns >= since_ns)
            out[n++] = points->newest[i % NEWEST];
    return n;
}

void tare__py_points_sum(const tare__py_point *points, size_t n, tare__py_column columns[TARE__PY_COLUMNS])
{
    memset(columns, 0, TARE__PY_COLUMNS * sizeof *columns);
    for (size_t i = 0; i < n; i++)
        add_to(columns, &points[i]);
}

/* Rounding must not put a mean beyond the largest value. */
double tare__py_column_average(const tare__py_column *column)
{
    if (column->readings.n == 0)
        return NAN;
    return column->time > 0 ? fmin(column->total / column->time, column->readings.max) : column->readings.mean;
}
