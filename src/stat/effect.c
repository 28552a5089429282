/* effect: the size of a difference between two samples: the Hodges-Lehmann shift.
 * Owned by the calling thread; scratch memory is freed before it returns.
 * Must not know what the values measure. */
#include "inner.h"

#include <stdlib.h>
#include <string.h>

/* ---- Hodges-Lehmann: the k-th smallest of all differences, without computing them ------------------------------
 * Doubles interpreted as integers are ordered once those of negative values are reversed: bisection over them finds
 * a value exactly, in 64 steps of n + m. */
static int64_t key_of(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? (int64_t)(UINT64_C(0x8000000000000000) - (uint64_t)bits) : bits;
}

static double value_of(int64_t key)
{
    int64_t bits = key < 0 ? (int64_t)(UINT64_C(0x8000000000000000) - (uint64_t)key) : key;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

typedef struct differences {
    double *base, *head; /* ascending */
    size_t n, m;
} differences;

static double pairs_up_to(const differences *of, double limit)
{
    double count = 0;
    size_t heads = 0;
    for (size_t i = 0; i < of->n; i++) { /* a larger base lets more heads in */
        while (heads < of->m && of->head[heads] - of->base[i] <= limit)
            heads++;
        count += (double)heads;
    }
    return count;
}

/* rank is 1-based. */
static double difference_at(const differences *of, double rank)
{
    int64_t low = key_of(of->head[0] - of->base[of->n - 1]);
    int64_t high = key_of(of->head[of->m - 1] - of->base[0]);
    while (low < high) {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        if (pairs_up_to(of, value_of(middle)) >= rank)
            high = middle;
        else
            low = middle + 1;
    }
    return value_of(low);
}

/* Number of the smallest differences below the interval; 0: no interval reaches the confidence. */
static double outside(size_t n, size_t m, double confidence)
{
    double pairs = (double)n * (double)m;
    double tail = (1 - confidence) / 2;
    size_t half = (size_t)(pairs / 2);
    double *below = n <= TARE__EXACT_PAIRS / m ? malloc((half + 1) * sizeof(*below)) : NULL;
    double count = -1;
    if (below && tare__stat_u_below(n, m, half, below)) {
        for (count = 0; count <= (double)half && below[(size_t)count] <= tail; count++)
            ;
    }
    free(below);
    if (count >= 0)
        return count;
    double spread = sqrt(pairs * ((double)n + (double)m + 1) / 12);
    return fmax(0, floor(pairs / 2 + tare__normal_quantile(tail) * spread));
}

static bool all_finite(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

tare__estimate tare__shift(const double *base, size_t n, const double *head, size_t m, double confidence)
{
    tare__estimate out = {NAN, NAN, NAN, confidence, n < m ? n : m};
    if (!n || !m || !all_finite(base, n) || !all_finite(head, m) || !(confidence > 0 && confidence < 1))
        return out;
    differences of = {tare__stat_sorted(base, n), tare__stat_sorted(head, m), n, m};
    if (of.base && of.head) {
        double pairs = (double)n * (double)m;
        double left_out = outside(n, m, confidence);
        out.value =
            difference_at(&of, floor((pairs + 1) / 2)) / 2 + difference_at(&of, ceil((pairs + 1) / 2)) / 2;
        if (left_out > 0) {
            out.low = difference_at(&of, left_out);
            out.high = difference_at(&of, pairs + 1 - left_out);
        }
    }
    free(of.base);
    free(of.head);
    return out;
}
