/* quantile: exact quantiles of values in memory.
 * Owned by the calling thread; nothing is kept.
 * Must not know what the values measure. */
#include "inner.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    if (isnan(a) || isnan(b))
        return !!isnan(a) - !!isnan(b);
    return (a > b) - (a < b);
}

void tare__sort(double *values, size_t n)
{
    if (n > 1)
        qsort(values, n, sizeof(*values), compare);
}

double tare__quantile_sorted(const double *sorted, size_t n, double q)
{
    if (!n || isnan(q))
        return NAN;
    if (q <= 0)
        return sorted[0];
    if (q >= 1)
        return sorted[n - 1];
    double position = q * (double)(n - 1);
    size_t at = (size_t)position;
    double part = position - (double)at;
    if (at + 1 >= n)
        return sorted[n - 1];
    double low = sorted[at];
    double high = sorted[at + 1];
    /* Equal neighbors are returned unchanged: the difference of two infinities is NaN. */
    if (part == 0 || low == high)
        return low;
    /* From the nearer end, so that rounding never moves the result past a neighbor. */
    return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part);
}

double *tare__stat_sorted(const double *values, size_t n)
{
    double *copy = malloc((n ? n : 1) * sizeof(*copy));
    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, values, n * sizeof(*copy));
    tare__sort(copy, n);
    return copy;
}

double tare__median(const double *values, size_t n)
{
    double *sorted = tare__stat_sorted(values, n);
    double median = sorted ? tare__quantile_sorted(sorted, n, 0.5) : NAN;
    free(sorted);
    return median;
}
