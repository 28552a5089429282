/* change: the positions in a series where its level changed permanently.
 * Owned by the calling thread; scratch memory is freed before it returns.
 * Must not know what the values measure. */
#include "inner.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_P 0.01
#define SEGMENT   3u /* minimum number of values between changes */
/* A cut needs less significance than a reported change: two changes may hide each other until both are cut; cuts
 * that are not significant in the end are joined again. */
#define LAX 0.02
#define CUTS_MAX 32u

/* One or two outliers are not a level, but their distances would dominate those of a real one: they are moved
 * nearer. Five neighbors, since the shortest level of three is a majority of them. */
#define NEIGHBOURS 5u
#define FAR        5.0 /* deviations */
/* A value is the median of itself and four others one time in five, with a distance of 0: the median distance of the
 * other four fifths is at 0.2 + 0.8 / 2 of all. */
#define TYPICAL    0.6

typedef struct search {
    const double *given;
    double *values; /* as given, except for outliers */
    size_t n;
    tare__change_options options;
    size_t *cuts; /* first values of segments, 0 among them, ascending; n follows */
    size_t count;
    double *scratch; /* n */
    double p[CUTS_MAX + 1]; /* of the cuts, according to the estimated noise */
} search;

static double median_of_neighbours(const double *values, size_t n, size_t at)
{
    double near[NEIGHBOURS];
    size_t from = at < NEIGHBOURS / 2 ? 0 : at - NEIGHBOURS / 2;
    if (from + NEIGHBOURS > n)
        from = n - NEIGHBOURS;
    memcpy(near, values + from, sizeof near);
    tare__sort(near, NEIGHBOURS);
    return near[NEIGHBOURS / 2];
}

static void bring_near(search *search)
{
    memcpy(search->values, search->given, search->n * sizeof(double));
    if (search->n < NEIGHBOURS)
        return;
    for (size_t i = 0; i < search->n; i++)
        search->scratch[i] = fabs(search->given[i] - median_of_neighbours(search->given, search->n, i));
    tare__sort(search->scratch, search->n);
    double far = FAR * TARE__MAD_TO_SIGMA * tare__quantile_sorted(search->scratch, search->n, TYPICAL);
    for (size_t i = 0; i < search->n; i++) {
        double middle = median_of_neighbours(search->given, search->n, i);
        search->values[i] = fmin(fmax(search->given[i], middle - far), middle + far);
    }
}

/* The position with the largest energy distance between the values to its left and right, weighted by their numbers:
 * each value moves from right to left in turn with its distances. */
static size_t best_cut(const double *values, size_t n)
{
    double right = 0, left = 0, across = 0, best = -INFINITY;
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            right += fabs(values[i] - values[j]);
    for (size_t i = 0; i + 1 < n; i++) {
        double to_left = 0, to_right = 0;
        for (size_t j = 0; j < i; j++)
            to_left += fabs(values[i] - values[j]);
        for (size_t j = i + 1; j < n; j++)
            to_right += fabs(values[i] - values[j]);
        left += to_left;
        right -= to_right;
        across += to_right - to_left;
        double a = (double)(i + 1), b = (double)(n - i - 1);
        if (i + 1 < SEGMENT || n - i - 1 < SEGMENT)
            continue;
        double within = (a > 1 ? 2 * left / (a * (a - 1)) : 0) + (b > 1 ? 2 * right / (b * (b - 1)) : 0);
        double energy = a * b / (a + b) * (2 * across / (a * b) - within);
        if (energy > best) {
            best = energy;
            at = i + 1;
        }
    }
    return at;
}

/* Student's t-test. The noise of all values is used for both sides: three values that happen to be equal have none,
 * and Welch's test would treat them as a level. */
static double student_p(const double *values, size_t n, size_t m)
{
    tare__moments a = {0}, b = {0};
    for (size_t i = 0; i < n + m; i++)
        tare__moments_add(i < n ? &a : &b, values[i]);
    double degrees = (double)(n + m - 2);
    double variance = (a.m2 + b.m2) / degrees * (1 / (double)n + 1 / (double)m);
    if (!(variance > 0))
        return a.mean == b.mean ? 1 : 0;
    return tare__student_two_sided((b.mean - a.mean) / sqrt(variance), degrees);
}

/* ---- steps in noise that drifts ---------------------------------------------------------------------------
 * A drifting level looks like steps to a test that assumes independent values. The noise is therefore modelled: each
 * value is a level and an error, and the level takes a random step from value to value whose variance is a share of
 * the error's (the local level model; 0 is plain noise, a large share a random walk). For each share all steps are
 * estimated together by generalized least squares, from the innovations of a Kalman filter; the p of a step is the
 * mean of Student's p over the shares, weighted by their restricted likelihood, since a short series does not
 * determine the share. */
static const double shares[] = {0, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 100};
#define SHARES (sizeof shares / sizeof *shares)

typedef struct normal_equations {
    double matrix[CUTS_MAX][CUTS_MAX], with[CUTS_MAX], square, log_variance;
} normal_equations;

/* Innovations of the values and of the steps (0 before a cut, 1 from it on), and their products. */
static void filter(const search *search, double share, double scale, normal_equations *out)
{
    size_t steps = search->count - 1;
    double state[CUTS_MAX + 1] = {0}, innovation[CUTS_MAX + 1], ahead = 1 + share; /* variance of the level */
    memset(out, 0, sizeof *out);
    state[steps] = search->values[0] * scale;
    for (size_t t = 1; t < search->n; t++) {
        double variance = ahead + 1, gain = ahead / variance, spread = sqrt(variance);
        for (size_t i = 0; i <= steps; i++) {
            double value = i == steps ? search->values[t] * scale : t >= search->cuts[i + 1];
            innovation[i] = (value - state[i]) / spread;
            state[i] += gain * (value - state[i]);
        }
        for (size_t i = 0; i < steps; i++) {
            for (size_t j = 0; j <= i; j++)
                out->matrix[i][j] += innovation[i] * innovation[j];
            out->with[i] += innovation[i] * innovation[steps];
        }
        out->square += innovation[steps] * innovation[steps];
        out->log_variance += log(variance);
        ahead = ahead * (1 - gain) + share;
    }
}

/* Cholesky root of the matrix, in place; returns the logarithm of its determinant. */
static double take_root(double matrix[][CUTS_MAX], size_t n)
{
    double log_determinant = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = matrix[i][j];
            for (size_t k = 0; k < j; k++)
                sum -= matrix[i][k] * matrix[j][k];
            matrix[i][j] = i == j ? sqrt(fmax(sum, 1e-300)) : sum / matrix[j][j];
        }
        log_determinant += 2 * log(matrix[i][i]);
    }
    return log_determinant;
}

/* Solves root root^T x = with. */
static void solve(double root[][CUTS_MAX], size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= root[i][k] * x[k];
        x[i] /= root[i][i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            x[i] -= root[k][i] * x[k];
        x[i] /= root[i][i];
    }
}

/* p of each step with this share, and the likelihood of the share. */
static double estimate(const search *search, double share, double scale, double p[CUTS_MAX])
{
    normal_equations equations;
    size_t steps = search->count - 1;
    double size[CUTS_MAX], degrees = (double)search->n - 1 - (double)steps;
    filter(search, share, scale, &equations);
    double log_determinant = take_root(equations.matrix, steps), left = equations.square;
    memcpy(size, equations.with, sizeof size);
    solve(equations.matrix, steps, size);
    for (size_t i = 0; i < steps; i++)
        left -= size[i] * equations.with[i];
    double variance = fmax(left, 1e-18 * (double)search->n) / degrees; /* the noise is not below the rounding error */
    for (size_t i = 0; i < steps; i++) {
        double unit[CUTS_MAX] = {0};
        unit[i] = 1;
        solve(equations.matrix, steps, unit);
        p[i] = tare__student_two_sided(size[i] / sqrt(variance * unit[i]), degrees);
    }
    return -0.5 * (degrees * log(variance) + equations.log_variance + log_determinant);
}

static void score_cuts(search *search)
{
    double p[SHARES][CUTS_MAX], likelihood[SHARES], most = -INFINITY, sum = 0;
    tare__moments moments = {0};
    for (size_t i = 0; i < search->n; i++)
        tare__moments_add(&moments, search->values[i] - search->values[0]);
    double spread = tare__moments_deviation(&moments);
    for (size_t k = 0; k < SHARES; k++) {
        likelihood[k] = estimate(search, shares[k], spread > 0 ? 1 / spread : 1, p[k]);
        most = fmax(most, likelihood[k]);
    }
    memset(search->p, 0, sizeof search->p);
    for (size_t k = 0; k < SHARES; k++) {
        double weight = exp(likelihood[k] - most);
        sum += weight;
        for (size_t i = 0; i + 1 < search->count; i++)
            search->p[i + 1] += weight * p[k][i];
    }
    for (size_t i = 1; i < search->count; i++) /* the best of n positions was chosen */
        search->p[i] = fmin(1, search->p[i] / sum * (double)search->n);
}

static size_t end_of(const search *search, size_t segment)
{
    return segment + 1 < search->count ? search->cuts[segment + 1] : search->n;
}

static double median_between(search *search, size_t from, size_t to)
{
    memcpy(search->scratch, search->given + from, (to - from) * sizeof(double));
    tare__sort(search->scratch, to - from);
    return tare__quantile_sorted(search->scratch, to - from, 0.5);
}

static double magnitude_of_cut(search *search, size_t segment)
{
    double before = median_between(search, search->cuts[segment - 1], search->cuts[segment]);
    double after = median_between(search, search->cuts[segment], end_of(search, segment));
    return fabs(after - before) / fabs(before);
}

/* Cuts the segment in two if its best cut is sufficient; false: not cut. */
static bool cut(search *search, size_t segment)
{
    size_t from = search->cuts[segment], to = end_of(search, segment);
    const double *values = search->values + from;
    if (to - from < 2 * SEGMENT)
        return false;
    size_t at = best_cut(values, to - from);
    if (!at || student_p(values, at, to - from - at) > LAX || search->count > CUTS_MAX)
        return false;
    memmove(search->cuts + segment + 2, search->cuts + segment + 1,
            (search->count - segment - 1) * sizeof(*search->cuts));
    search->cuts[segment + 1] = from + at;
    search->count++;
    return true;
}

/* Joins the segments with the least significant or smallest change until all remaining changes count. */
static void join(search *search)
{
    while (search->count > 1) {
        score_cuts(search);
        size_t worst = 0;
        double worst_p = -1;
        for (size_t i = 1; i < search->count; i++) {
            bool small = !(magnitude_of_cut(search, i) >= search->options.magnitude);
            double p = small ? 2 : search->p[i];
            if (p > worst_p) {
                worst_p = p;
                worst = i;
            }
        }
        if (worst_p <= search->options.p)
            return;
        memmove(search->cuts + worst, search->cuts + worst + 1,
                (search->count - worst - 1) * sizeof(*search->cuts));
        search->count--;
    }
}

static size_t report(search *search, size_t offset, tare__change *out, size_t room)
{
    size_t written = 0;
    for (size_t i = 1; i < search->count && written < room; i++) {
        size_t from = search->cuts[i - 1], at = search->cuts[i], to = end_of(search, i);
        out[written++] = (tare__change){at + offset, median_between(search, from, at),
                                        median_between(search, at, to), search->p[i]};
    }
    return written;
}

size_t tare__change_points(const double *values, size_t n, const tare__change_options *options,
                           tare__change *out, size_t room)
{
    size_t offset = n > TARE__CHANGE_MAX ? n - TARE__CHANGE_MAX : 0;
    search search = {.given = values + offset, .n = n - offset, .count = 1};
    if (options)
        search.options = *options;
    if (!(search.options.p > 0))
        search.options.p = DEFAULT_P;
    if (search.n < 2 * SEGMENT)
        return 0;
    search.cuts = calloc(search.n, sizeof(*search.cuts));
    search.scratch = malloc(search.n * sizeof(*search.scratch));
    search.values = malloc(search.n * sizeof(*search.values));
    size_t written = 0;
    if (search.cuts && search.scratch && search.values) {
        bring_near(&search);
        for (size_t segment = 0; segment < search.count; segment += !cut(&search, segment))
            ;
        join(&search);
        written = report(&search, offset, out, room);
    }
    free(search.cuts);
    free(search.scratch);
    free(search.values);
    return written;
}
