/* moments: count, mean, variance, extremes in one pass.
 * Owned by the calling thread; all zero is empty.
 * Must not know what the values measure. */
#include "stat.h"

void tare__moments_add(tare__moments *moments, double value)
{
    if (!moments->n || value < moments->min)
        moments->min = value;
    if (!moments->n || value > moments->max)
        moments->max = value;
    moments->n++;
    /* Welford: no difference of two large sums, so a small spread on a large mean survives. */
    double delta = value - moments->mean;
    moments->mean += delta / (double)moments->n;
    moments->m2 += delta * (value - moments->mean);
}

double tare__moments_deviation(const tare__moments *moments)
{
    return moments->n < 2 ? NAN : sqrt(moments->m2 / (double)(moments->n - 1));
}
