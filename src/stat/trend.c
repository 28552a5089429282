/* trend: a robust slope through points, its interval, and how straight they lie.
 * Pure functions; any thread.
 * Must not know what the numbers mean. */
#include "stat.h"

#define PAIRS_MAX  (TARE__TREND_MAX * (TARE__TREND_MAX - 1) / 2)
#define NORMAL_975 1.959963984540054 /* 97.5 % quantile of the normal distribution */

static double fit_of(const double *x, const double *y, size_t n)
{
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0, yy = 0;
    bool flat = true; /* checked on the values: their mean and the distances from it are rounded */
    for (size_t i = 0; i < n; i++) {
        flat &= y[i] == y[0];
        mean_x += x[i] / (double)n;
        mean_y += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
        yy += (y[i] - mean_y) * (y[i] - mean_y);
    }
    return xx > 0 && yy > 0 && !flat ? xy * xy / (xx * yy) : NAN;
}

/* Ranks of the pairs' slopes that bound the median one: N pairs, of which C = z * sqrt(Var S) may lie on the
 * wrong side. */
static void bound(tare__trend *trend, const double *slopes, size_t pairs, size_t n)
{
    double points = (double)n;
    double c = NORMAL_975 * sqrt(points * (points - 1) * (2 * points + 5) / 18);
    double low = floor(((double)pairs - c) / 2), high = ceil(((double)pairs + c) / 2);
    if (low < 1 || high > (double)pairs - 1)
        return;
    trend->low = slopes[(size_t)low - 1];
    trend->high = slopes[(size_t)high];
}

tare__trend tare__trend_of(const double *x, const double *y, size_t n)
{
    double slopes[PAIRS_MAX];
    size_t pairs = 0;
    tare__trend trend = {NAN, NAN, NAN, NAN, n < TARE__TREND_MAX ? n : TARE__TREND_MAX};
    for (size_t i = 0; i < trend.n; i++)
        for (size_t j = i + 1; j < trend.n; j++)
            if (x[j] > x[i])
                slopes[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
    if (pairs == 0)
        return trend;
    tare__sort(slopes, pairs);
    trend.slope = tare__quantile_sorted(slopes, pairs, 0.5);
    trend.fit = fit_of(x, y, trend.n);
    bound(&trend, slopes, pairs, trend.n);
    return trend;
}
