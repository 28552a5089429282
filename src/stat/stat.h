/* stat: quantiles, histograms, intervals, tests, change points. Pure functions; owned by the calling thread.
 * Must not know what the numbers mean, nor that traces exist. */
#ifndef TARE_STAT_H
#define TARE_STAT_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- histogram: mergeable, log-linear, bounded relative error -----------------------------------
 * Values below 2^bits have one bucket each (exact); above, each octave is divided into 2^bits buckets, so
 * that a value reported by the middle of its bucket is off by at most 1 / 2^(bits + 1) of itself.
 * Memory: only the range of buckets in use. Starts empty (all zero but `bits`). */
#define TARE__HIST_BITS_MAX 7
typedef struct tare__hist {
    uint32_t *counts;  /* buckets first .. first + length - 1 */
    uint32_t first;
    uint32_t length;
    uint64_t total;    /* values added */
    uint8_t bits;      /* sub-buckets per octave, as a power of two: 0..7 */
} tare__hist;

/* Bucket of a value, and the values a bucket represents: [low, high]. Inline: on the hot paths. */
static inline uint32_t tare__hist_bucket(uint64_t value, unsigned bits)
{
    if (value < (UINT64_C(1) << bits))
        return (uint32_t)value;
    unsigned octave = 63u - (unsigned)__builtin_clzll(value);
    return ((octave - bits + 1) << bits) + (uint32_t)((value >> (octave - bits)) & ((1u << bits) - 1));
}
uint64_t tare__hist_low(uint32_t bucket, unsigned bits);
uint64_t tare__hist_high(uint32_t bucket, unsigned bits);

/* Makes space for `bucket`; the slow part of add. 0, or TARE_E_MEMORY. */
int tare__hist_grow(tare__hist *hist, uint32_t bucket);

/* Adds `times` values. A bucket's count saturates at UINT32_MAX (total does not). 0 or TARE_E_MEMORY. */
static inline int tare__hist_add(tare__hist *hist, uint64_t value, uint32_t times)
{
    uint32_t at = tare__hist_bucket(value, hist->bits) - hist->first;
    if (__builtin_expect(at >= hist->length, 0)) {
        int status = tare__hist_grow(hist, at + hist->first);
        if (status)
            return status;
        at = tare__hist_bucket(value, hist->bits) - hist->first;
    }
    uint32_t sum = hist->counts[at] + times;
    hist->counts[at] = sum < times ? UINT32_MAX : sum;
    hist->total += times;
    return 0;
}

/* Adds every value of `from`. The result has the coarser resolution of the two. */
int tare__hist_merge(tare__hist *into, const tare__hist *from);
/* Halves the resolution once (bits - 1), in place, and releases memory. No effect at bits 0. */
void tare__hist_coarsen(tare__hist *hist);
/* The value at quantile q in [0, 1]: the middle of the bucket that holds the value of rank
 * ceil(q * total) (at least 1). NaN when empty. */
double tare__hist_quantile(const tare__hist *hist, double q);
size_t tare__hist_bytes(const tare__hist *hist); /* heap memory in use */
void tare__hist_free(tare__hist *hist);          /* leaves it empty, bits kept */

/* ---- exact quantiles -------------------------------------------------------------------------- */
void tare__sort(double *values, size_t n); /* ascending; NaN last */
/* Of ascending values, by linear interpolation between order statistics (type 7, as NumPy's and R's
 * default). NaN when n is 0. */
double tare__quantile_sorted(const double *sorted, size_t n, double q);
double tare__median(const double *values, size_t n); /* of values in any order; NaN when n is 0, and without memory */

/* ---- distribution-free confidence interval of a quantile by order statistics ------------------- */
typedef struct tare__interval {
    double low, high;       /* NaN when there is none */
    size_t low_rank, high_rank; /* 1-based order statistics; 0 when there is none */
    double confidence;      /* what it really reaches (>= asked), NaN when there is none */
    size_t needed;          /* if there is none: the smallest n that gives a two-sided bound */
} tare__interval;
/* Exact binomial, two-sided with at most (1 - confidence) / 2 in each tail. Smallest n at 95 %: median 6,
 * p90 36, p95 72, p99 368, p99.9 3688. */
tare__interval tare__quantile_interval(const double *sorted, size_t n, double q, double confidence);
size_t tare__quantile_interval_needs(double q, double confidence);

/* ---- moments, one pass (Welford) ---------------------------------------------- */
typedef struct tare__moments {
    uint64_t n;
    double mean, m2, min, max;
} tare__moments;
void tare__moments_add(tare__moments *moments, double value);
double tare__moments_deviation(const tare__moments *moments); /* sample standard deviation; NaN below 2 */

/* ---- trend: a straight line through points --------------------------------------------------------- */
#define TARE__TREND_MAX 64u /* points; the cost is their square */
typedef struct tare__trend {
    double slope;     /* Theil-Sen: the median over all pairs; one point in four may be arbitrary */
    double low, high; /* 95 % interval of it by Kendall's tau (Sen 1968); NaN below 6 points */
    double fit;       /* R squared of the least-squares line; NaN when all values are equal */
    size_t n;
} tare__trend;
/* Of points with ascending x. All NaN below 2 points; of more than TARE__TREND_MAX the first ones. */
tare__trend tare__trend_of(const double *x, const double *y, size_t n);

/* ---- random numbers: xoshiro256**, the same ones for the same seed on every machine -------------- */
typedef struct tare__random {
    uint64_t word[4];
} tare__random;
void tare__random_seed(tare__random *random, uint64_t seed);
uint64_t tare__random_next(tare__random *random);
uint64_t tare__random_below(tare__random *random, uint64_t bound); /* 0 .. bound - 1, equally likely; 0 for 0 */
double tare__random_unit(tare__random *random);                    /* 0 <= x < 1 */
double tare__random_normal(tare__random *random);                  /* mean 0, deviation 1 */

/* ---- distributions -------------------------------------------------------------------------------- */
double tare__normal_above(double z);                            /* P(Z > z) */
double tare__normal_quantile(double p);                         /* NaN outside of 0 .. 1 */
double tare__student_two_sided(double t, double degrees);       /* P(|T| > |t|) */

/* ---- a value with its interval --------------------------------------------------------------------- */
typedef struct tare__estimate {
    double value;      /* NaN when there is none */
    double low, high;  /* NaN when there are too few values for an interval */
    double confidence; /* as requested */
    size_t n;          /* number of values (or pairs) */
} tare__estimate;

/* ---- two samples: do they differ, and by how much ------------------------------------------------------ */
typedef struct tare__rank_test {
    double u;            /* pairs in which head is above base, ties half */
    double p;            /* two-sided; NaN when a sample is empty or holds NaN, and without memory */
    double superiority;  /* u over all pairs: 0.5 is no difference */
    double cliffs_delta; /* -1 .. 1 */
    bool exact;          /* else the normal approximation, corrected for ties and continuity */
} tare__rank_test;
/* Exact where nothing ties and there are at most TARE__EXACT_PAIRS pairs. */
#define TARE__EXACT_PAIRS 2500u
tare__rank_test tare__mann_whitney(const double *base, size_t n, const double *head, size_t m);
/* Hodges-Lehmann: the median of all differences head - base; its interval belongs to Mann-Whitney's test. */
tare__estimate tare__shift(const double *base, size_t n, const double *head, size_t m, double confidence);

/* ---- steady state: where warm-up ends --------------------------------------------------------------------
 * Warm-up is the first values that differ from the second half. The rest is steady if it has
 * TARE__STEADY_MIN values and the medians of its thirds are within a tenth of each other. */
#define TARE__STEADY_MIN 9u
typedef struct tare__steady {
    bool reached;
    size_t warmup; /* values to skip; n if unknown */
    double cv;     /* of the rest: standard deviation over mean */
} tare__steady;
tare__steady tare__steady_state(const double *values, size_t n);

/* ---- outliers: labelled, never dropped --------------------------------------------------------------------- */
typedef enum tare__outlier { TARE__OUTLIER_NONE, TARE__OUTLIER_MILD, TARE__OUTLIER_SEVERE } tare__outlier;
/* By Tukey's fences (1.5 and 3 interquartile ranges). Labels of all values; *found how many are not NONE (may be NULL).
 * 0 or TARE_E_MEMORY. */
int tare__outliers_tukey(const double *values, size_t n, tare__outlier *labels, size_t *found);

/* ---- change points: located by E-divisive (Matteson and James 2014), tested against noise that may drift --------- */
typedef struct tare__change_options {
    double p;         /* of a change, over all possible positions, in a level that may wander; 0: 0.01 */
    double magnitude; /* minimum change as a share of the level before; 0: any */
} tare__change_options;
typedef struct tare__change {
    size_t at;            /* the first value on the new level */
    double before, after; /* medians of the levels */
    double p;
} tare__change;
#define TARE__CHANGE_LEAST 0.02 /* magnitude of the changes that a history shows */
#define TARE__CHANGE_MAX 4000u /* values; the cost is quadratic. Of more, only the last ones are used */
/* Changes in order of position, at most `room`; `options` may be NULL. Returns the number written; 0 if out of
 * memory. */
size_t tare__change_points(const double *values, size_t n, const tare__change_options *options, tare__change *out,
                           size_t room);

/* ---- pairs: values measured one after the other, in random order ------------------------------------------------
 * Wilcoxon signed-rank test of the logarithms of head[i] / base[i]: without a difference each is equally likely
 * above
 * and below 0. The estimate is the median of the averages of all pairs of them (Hodges-Lehmann), and its interval is
 * consistent with the test. Pairs with a value that is not above 0 are ignored. */
typedef struct tare__sequential {
    tare__estimate ratio; /* bounds NaN: too few pairs for this confidence */
    double p;             /* two-sided, exact up to TARE__EXACT_SIGNS pairs; NaN without pairs or memory */
} tare__sequential;
#define TARE__EXACT_SIGNS 60u
tare__sequential tare__paired_test(const double *base, const double *head, size_t n, double confidence);

/* ---- tested after every pair: group-sequential
 * --------------------------------------------------------------------
 * Of a total error `alpha`, alpha (n / most)^3 may be spent by the time n of at most `most` pairs are measured (Lan
 * and DeMets 1983; Kim and DeMets 1987): strict at first, and at the end close to a single test. The resulting p at
 * each interim test is found by integration, test by test (Armitage, McPherson and Rowe 1969). */
#define TARE__SEQUENTIAL_ALPHA 0.0125 /* false alarms stay below 2 % in practice; 8 pairs can reach 2 / 2^8 */
#define TARE__SEQUENTIAL_MOST  1000u /* pairs */
typedef struct tare__sequential_plan {
    size_t most;
    double level[TARE__SEQUENTIAL_MOST + 1]; /* p required after this many pairs; 0: no test */
} tare__sequential_plan;
void tare__sequential_make(tare__sequential_plan *plan, size_t most, double alpha);
/* The p required after n pairs; 0: no decision yet. */
double tare__sequential_level(const tare__sequential_plan *plan, size_t n);

#endif
