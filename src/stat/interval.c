/* interval: distribution-free confidence interval of a quantile from order statistics.
 * Owned by the calling thread; nothing is kept.
 * Must not know what the values measure. */
#include "inner.h"

#include <float.h>

/* How far a tail may exceed its limit and still count as equal to it: above the rounding of upper_tail at the small
 * n where a limit is met exactly (11 / 1024), below anything relevant. */
#define TIE (1 + 1e-12)

/* log(n!) less Stirling's formula. */
static double stirling_rest(double n)
{
    if (n < 16) {
        double factorial = 1; /* exact up to 15! */
        for (double i = 2; i <= n; i++)
            factorial *= i;
        return log(factorial) - (n + 0.5) * log(n) + n - 0.91893853320467274178; /* log(sqrt(2 pi)) */
    }
    double nn = n * n;
    return (1 / 12.0 - (1 / 360.0 - (1 / 1260.0 - (1 / 1680.0 - 1 / 1188.0 / nn) / nn) / nn) / nn) / n;
}

/* x log(x / mean) + mean - x, without the cancellation near x = mean. */
static double deviance(double x, double mean)
{
    double difference = x - mean;
    if (fabs(difference) >= 0.1 * (x + mean))
        return x * log(x / mean) - difference;
    double ratio = difference / (x + mean);
    double sum = difference * ratio;
    double term = 2 * x * ratio;
    for (int odd = 3;; odd += 2) {
        term *= ratio * ratio;
        double next = sum + term / odd;
        if (next == sum)
            return sum;
        sum = next;
    }
}

/* P(B = k), 0 < k < n. Loader, "Fast and accurate computation of binomial probabilities" (2000): differences of
 * lgamma at n = 10 million would leave seven digits; this keeps the ten digits that tare__stat_beta_fraction has
 * there. */
static double binomial_point(double n, double k, double p, double rest)
{
    double log_point = stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k) - deviance(k, n * p) -
                       deviance(n - k, n * rest);
    return exp(log_point) * sqrt(n / (6.28318530717958647693 * k * (n - k)));
}

/* Continued fraction of the incomplete beta function I_x(a, b), by Lentz's method; it needs about
 * sqrt(a + b) rounds at the mean and few in the tails. */
double tare__stat_beta_fraction(double a, double b, double x)
{
    double c = 1;
    double d = 1 / (1 - (a + b) * x / (a + 1));
    double value = d;
    for (double m = 1; m < 1e6; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        value *= d * c;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        value *= d * c;
        if (fabs(d * c - 1) <= 2 * DBL_EPSILON)
            break;
    }
    return value;
}

/* P(B >= k) of B ~ Binomial(n, p), for k above the mean. `rest` is 1 - p, passed separately because a small value
 * computed from p would lose digits. */
static double upper_tail(size_t n, size_t k, double p, double rest)
{
    if (k == n)
        return pow(p, (double)n);
    double a = (double)k;
    double b = (double)(n - k) + 1;
    return binomial_point((double)n, a, p, rest) * rest * tare__stat_beta_fraction(a, b, p);
}

/* The smallest k with P(B >= k) <= tail < 1/2; the caller ensures that k = n is one. */
static size_t upper_rank(size_t n, double p, double rest, double tail, double *reached)
{
    double mean = (double)n * p;
    size_t above = (size_t)mean; /* never below the limit: a binomial's median is its mean, rounded */
    size_t within = n;
    /* Steps of a standard deviation first: the result is a few of them away, not log2(n) bisections. */
    for (size_t stride = (size_t)sqrt(mean * rest) + 1; n - above > stride; stride *= 2) {
        if (upper_tail(n, above + stride, p, rest) <= tail * TIE) {
            within = above + stride;
            break;
        }
        above += stride;
    }
    while (within - above > 1) {
        size_t middle = above + (within - above) / 2;
        if (upper_tail(n, middle, p, rest) <= tail * TIE)
            within = middle;
        else
            above = middle;
    }
    *reached = upper_tail(n, within, p, rest);
    return within;
}

size_t tare__quantile_interval_needs(double q, double confidence)
{
    if (!(q > 0 && q < 1 && confidence > 0 && confidence < 1))
        return SIZE_MAX;
    /* The outermost ranks, 1 and n, leave out (1 - q)^n and q^n. */
    double log_outside = q < 0.5 ? log1p(-q) : log(q);
    double n = ceil(log((1 - confidence) / 2) / log_outside * (1 - 4 * DBL_EPSILON));
    if (n >= 9007199254740992.0) /* 2^53: from here on doubles do not represent every integer */
        return SIZE_MAX;
    return n < 2 ? 2 : (size_t)n;
}

tare__interval tare__quantile_interval(const double *sorted, size_t n, double q, double confidence)
{
    tare__interval interval = {.low = NAN, .high = NAN, .confidence = NAN};
    size_t needed = tare__quantile_interval_needs(q, confidence);
    if (n < needed) {
        interval.needed = needed;
        return interval;
    }
    /* The interval [X(l), X(u)] misses if fewer than l values lie below the quantile, or u or more do. Counted from
     * the other end, the first is the second with 1 - q. */
    double missed_low, missed_high;
    double tail = (1 - confidence) / 2;
    interval.low_rank = n + 1 - upper_rank(n, 1 - q, q, tail, &missed_low);
    interval.high_rank = upper_rank(n, q, 1 - q, tail, &missed_high);
    interval.low = sorted[interval.low_rank - 1];
    interval.high = sorted[interval.high_rank - 1];
    interval.confidence = fmax(1 - missed_low - missed_high, confidence);
    return interval;
}
