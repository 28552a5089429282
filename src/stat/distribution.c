/* distribution: tails and quantiles of the normal and of Student's distribution.
 * Pure functions; any thread.
 * Must not know what is tested with them. */
#include "inner.h"

#define SQRT_HALF   0.70710678118654752440
#define SQRT_TWO_PI 2.50662827463100050242

double tare__normal_above(double z)
{
    return erfc(z * SQRT_HALF) / 2;
}

/* The z with P(Z > z) = tail <= 1/2: Abramowitz and Stegun 26.2.23, refined by Halley's method. */
static double upper_quantile(double tail)
{
    double t = sqrt(-2 * log(tail));
    double z =
        t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    for (int i = 0; i < 3; i++) {
        double density = exp(-z * z / 2) / SQRT_TWO_PI;
        if (density == 0)
            break;
        double step = (tare__normal_above(z) - tail) / density;
        z += step / (1 - z * step / 2);
    }
    return z;
}

double tare__normal_quantile(double p)
{
    if (!(p >= 0 && p <= 1))
        return NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -INFINITY : INFINITY;
    return p < 0.5 ? -upper_quantile(p) : upper_quantile(1 - p);
}

/* lgamma itself writes a global sign. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* I_x(a, b) without the cancellation of 1 - I on the other side of its middle. */
static double incomplete_beta(double a, double b, double x, double rest)
{
    if (x <= 0)
        return 0;
    if (rest <= 0)
        return 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(rest));
    if (x < (a + 1) / (a + b + 2))
        return front * tare__stat_beta_fraction(a, b, x) / a;
    return 1 - front * tare__stat_beta_fraction(b, a, rest) / b;
}

double tare__student_two_sided(double t, double degrees)
{
    if (isnan(t) || !(degrees > 0))
        return NAN;
    if (isinf(t))
        return 0;
    double square = t * t;
    return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + square), square / (degrees + square));
}
