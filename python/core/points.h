/* points: readings over time in bounded memory: the newest one by one, older ones as means of neighbours.
 * The owner guards it. Must not know what reads the machine, nor Python. */
#ifndef TARE_PYTHON_POINTS_H
#define TARE_PYTHON_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stat/stat.h"

enum { TARE__PY_AT_CPU, TARE__PY_AT_IOWAIT, TARE__PY_AT_DISK, TARE__PY_AT_MEMORY, TARE__PY_AT_RSS, TARE__PY_AT_GPU,
       TARE__PY_COLUMNS };

/* One reading, or several neighbours together. */
typedef struct tare__py_point {
    uint64_t at_ns;                /* monotonic; of the last */
    double seconds, busy_s;        /* that levels stand for, and that the first three columns, which are shares of
                                    * the time since an earlier reading, stand for */
    double mean[TARE__PY_COLUMNS]; /* NaN: not known */
    double most[TARE__PY_COLUMNS];
} tare__py_point;

typedef struct tare__py_column {
    tare__moments readings;
    double time, total; /* seconds, and value times seconds */
} tare__py_column;

typedef struct tare__py_points {
    tare__py_point *newest; /* a ring */
    tare__py_point *older;
    uint64_t count;         /* total number of readings */
    uint32_t older_count, stride, pending; /* readings in an older point; readings in the unfinished one */
    tare__py_point unfinished;
    tare__py_column all[TARE__PY_COLUMNS]; /* of every reading */
} tare__py_points;

#define TARE__PY_POINTS_MAX 8192u /* the maximum number of points */

bool tare__py_points_open(tare__py_points *points); /* false: no memory */
void tare__py_points_close(tare__py_points *points);
void tare__py_points_add(tare__py_points *points, const tare__py_point *reading);
/* Those since a time, oldest first; `out` has room for TARE__PY_POINTS_MAX. How many there are. */
size_t tare__py_points_since(const tare__py_points *points, uint64_t since_ns, tare__py_point *out);
/* Sums over some points. */
void tare__py_points_sum(const tare__py_point *points, size_t n, tare__py_column columns[TARE__PY_COLUMNS]);
double tare__py_column_average(const tare__py_column *column); /* over time; NaN: not known */

#endif
