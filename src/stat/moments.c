/* moments: count, mean, variance, extremes in one pass, mergeable.
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

void tare__moments_merge(tare__moments *into, const tare__moments *from)
{
    if (!from->n)
        return;
    if (!into->n) {
        *into = *from;
        return;
    }
    /* Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for sample variances". */
    double a = (double)into->n;
    double b = (double)from->n;
    double delta = from->mean - into->mean;
    into->n += from->n;
    into->mean += delta * (b / (a + b));
    into->m2 += from->m2 + delta * delta * (a * (b / (a + b)));
    into->min = from->min < into->min ? from->min : into->min;
    into->max = from->max > into->max ? from->max : into->max;
}

double tare__moments_deviation(const tare__moments *moments)
{
    return moments->n < 2 ? NAN : sqrt(moments->m2 / (double)(moments->n - 1));
}
