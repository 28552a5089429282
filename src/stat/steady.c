/* steady: where warm-up ends and whether the values after it are steady.
 * Owned by the calling thread; scratch memory is freed before it returns.
 * Must not know what the values measure. */
#include "inner.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW     5 /* values whose median represents the level: two spikes do not move it */
#define DEVIATIONS 4.0
#define NEAR       0.02 /* of the level: smaller differences are not warm-up, however low the noise of the second
                         * half is */
#define THIRDS     0.10 /* maximum difference of the medians of the thirds: as perf_analyzer requires for windows */

static double median_of(const double *values, size_t n, double *scratch)
{
    memcpy(scratch, values, n * sizeof(*scratch));
    tare__sort(scratch, n);
    return tare__quantile_sorted(scratch, n, 0.5);
}

/* How far a value may be from its level, according to the second half of the series. */
static double band_of(const double *values, size_t n, double level, double *scratch)
{
    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(values[i] - level);
    tare__sort(scratch, n);
    return fmax(DEVIATIONS * TARE__MAD_TO_SIGMA * tare__quantile_sorted(scratch, n, 0.5), NEAR * fabs(level));
}

static size_t warmup_of(const double *values, size_t n, double *scratch)
{
    size_t half = n / 2;
    double level = median_of(values + half, n - half, scratch);
    double band = band_of(values + half, n - half, level, scratch);
    size_t warmup = 0;
    for (size_t i = 0; i < half && i + WINDOW <= n; i++)
        if (fabs(median_of(values + i, WINDOW, scratch) - level) > band)
            warmup = i + 1;
    while (warmup < half &&
           fabs(values[warmup] - level) > band) /* a slow first value, which no median shows */
        warmup++;
    return warmup;
}

static bool thirds_agree(const double *values, size_t n, double *scratch)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < 3; i++) {
        size_t from = n * i / 3, to = n * (i + 1) / 3;
        double median = median_of(values + from, to - from, scratch);
        low = fmin(low, median);
        high = fmax(high, median);
    }
    return high - low <= THIRDS * fabs(low);
}

tare__steady tare__steady_state(const double *values, size_t n)
{
    tare__steady steady = {false, n, NAN};
    tare__moments moments = {0};
    double *scratch = n ? malloc(n * sizeof(*scratch)) : NULL;
    if (!scratch)
        return steady;
    steady.warmup = warmup_of(values, n, scratch);
    for (size_t i = steady.warmup; i < n; i++)
        tare__moments_add(&moments, values[i]);
    steady.cv = tare__moments_deviation(&moments) / fabs(moments.mean);
    steady.reached = n - steady.warmup >= TARE__STEADY_MIN &&
                     thirds_agree(values + steady.warmup, n - steady.warmup, scratch);
    free(scratch);
    return steady;
}
