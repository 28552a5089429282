/* stat: quantiles, histograms, intervals. Pure functions over numbers; owned by the calling thread.
 * Must not know what the numbers mean, nor that traces exist. */
#ifndef TARE_STAT_H
#define TARE_STAT_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- histogram: mergeable, log-linear, bounded relative error -----------------------------------
 * Values below 2^bits have a bucket each (exact); above, each octave is cut into 2^bits buckets, so
 * that a value reported by the middle of its bucket is off by at most 1 / 2^(bits + 1) of itself.
 * Memory: only the range of buckets that was touched. Starts empty (all zero but `bits`). */
#define TARE__HIST_BITS_MAX 7
typedef struct tare__hist {
    uint32_t *counts;  /* buckets first .. first + length - 1 */
    uint32_t first;
    uint32_t length;
    uint64_t total;    /* values added */
    uint8_t bits;      /* sub-buckets an octave, as a power of two: 0..7 */
} tare__hist;

/* Bucket of a value, and the values a bucket stands for: [low, high]. Inline: on the hot paths. */
static inline uint32_t tare__hist_bucket(uint64_t value, unsigned bits)
{
    if (value < (UINT64_C(1) << bits))
        return (uint32_t)value;
    unsigned octave = 63u - (unsigned)__builtin_clzll(value);
    return ((octave - bits + 1) << bits) + (uint32_t)((value >> (octave - bits)) & ((1u << bits) - 1));
}
uint64_t tare__hist_low(uint32_t bucket, unsigned bits);
uint64_t tare__hist_high(uint32_t bucket, unsigned bits);

/* Makes room for `bucket`; the slow part of add. 0, or TARE_E_MEMORY. */
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
/* Halves the resolution once (bits - 1), in place, and gives memory back. Nothing at bits 0. */
void tare__hist_coarsen(tare__hist *hist);
/* The value at quantile q in [0, 1]: the middle of the bucket that holds the value of rank
 * ceil(q * total) (at least 1). NaN when empty. */
double tare__hist_quantile(const tare__hist *hist, double q);
size_t tare__hist_bytes(const tare__hist *hist); /* heap memory it holds */
void tare__hist_free(tare__hist *hist);          /* leaves it empty, bits kept */

/* ---- exact quantiles -------------------------------------------------------------------------- */
void tare__sort(double *values, size_t n); /* ascending; NaN last */
/* Of ascending values, by linear interpolation between order statistics (type 7, as NumPy's and R's
 * default). NaN when n is 0. */
double tare__quantile_sorted(const double *sorted, size_t n, double q);

/* ---- distribution-free confidence interval of a quantile by order statistics ------------------- */
typedef struct tare__interval {
    double low, high;       /* NaN when there is none */
    size_t low_rank, high_rank; /* 1-based order statistics; 0 when there is none */
    double confidence;      /* what it really reaches (>= asked), NaN when there is none */
    size_t needed;          /* when there is none: the smallest n that gives a two-sided bound */
} tare__interval;
/* Exact binomial, two-sided with at most (1 - confidence) / 2 in each tail. Smallest n at 95 %: median 6,
 * p90 36, p95 72, p99 368, p99.9 3688. */
tare__interval tare__quantile_interval(const double *sorted, size_t n, double q, double confidence);
size_t tare__quantile_interval_needs(double q, double confidence);

/* ---- moments, one pass, mergeable (Welford / Chan) ---------------------------------------------- */
typedef struct tare__moments {
    uint64_t n;
    double mean, m2, min, max;
} tare__moments;
void tare__moments_add(tare__moments *moments, double value);
void tare__moments_merge(tare__moments *into, const tare__moments *from);
double tare__moments_deviation(const tare__moments *moments); /* sample standard deviation; NaN below 2 */

/* ---- trend: a straight line through points --------------------------------------------------------- */
#define TARE__TREND_MAX 64u /* points; the cost is their square */
typedef struct tare__trend {
    double slope;     /* Theil-Sen: the median over all pairs; one point in four may be anything */
    double low, high; /* 95 % interval of it by Kendall's tau (Sen 1968); NaN below 6 points */
    double fit;       /* R squared of the least-squares line; NaN when all values are equal */
    size_t n;
} tare__trend;
/* Of points with ascending x. All NaN below 2 points; of more than TARE__TREND_MAX the first ones. */
tare__trend tare__trend_of(const double *x, const double *y, size_t n);

#endif
