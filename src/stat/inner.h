/* inner: declarations shared by the files of stat only.
 * Pure functions; any thread.
 * Must not know what the numbers mean. */
#ifndef TARE_STAT_INNER_H
#define TARE_STAT_INNER_H

#include "stat.h"

#define TARE__MAD_TO_SIGMA 1.4826 /* a standard deviation in median absolute deviations */

/* Continued fraction of the incomplete beta function I_x(a, b); good where x < (a + 1) / (a + b + 2). */
double tare__stat_beta_fraction(double a, double b, double x);
/* P(U <= u) of Mann-Whitney's U without ties, for u = 0 .. last; neither sample is empty. False: out of memory. */
bool tare__stat_u_below(size_t n, size_t m, size_t last, double *below);
/* An ascending copy; NULL without memory. */
double *tare__stat_sorted(const double *values, size_t n);

#endif
