/* ranks: Mann-Whitney's test: does one sample tend to be above the other?
 * Owned by the calling thread; scratch memory is freed before it returns.
 * Must not know what the values measure. */
#include "base/base.h"
#include "inner.h"

#include <stdlib.h>
#include <string.h>

typedef struct ranked {
    double value;
    bool of_head;
} ranked;

TARE__ORDER(by_value, ranked, TARE__RISING(value))

/* False: a value is NaN. */
static bool gather(ranked *all, const double *values, size_t n, bool of_head)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            return false;
        all[i] = (ranked){values[i], of_head};
    }
    return true;
}

/* Sum of head's ranks, where tied values share their mean rank; *ties the sum of t^3 - t. */
static double sum_of_ranks(const ranked *all, size_t n, double *ties)
{
    double sum = 0;
    *ties = 0;
    for (size_t from = 0, to; from < n; from = to) {
        size_t heads = 0;
        for (to = from; to < n && all[to].value == all[from].value; to++)
            heads += all[to].of_head;
        double tied = (double)(to - from);
        sum += (double)heads * ((double)(from + to) + 1) / 2;
        *ties += tied * (tied * tied - 1);
    }
    return sum;
}

/* ---- the distribution of U without ties ------------------------------------------------------------------- */
/* The number of ways to interleave two samples. */
static double orders(size_t n, size_t m)
{
    double product = 1;
    for (size_t i = 1; i <= n; i++)
        product = product * (double)(m + i) / (double)i;
    return product;
}

/* Counts of orders by U, as long as they are integers that a double represents: the Gaussian binomial coefficient,
 * the product over i of (1 - q^(m + i)) / (1 - q^i), one factor at a time. */
static void count_orders(size_t n, size_t m, size_t last, double *counts)
{
    counts[0] = 1;
    for (size_t u = 1; u <= last; u++)
        counts[u] = 0;
    for (size_t i = 1; i <= n; i++) {
        for (size_t u = last; u >= m + i; u--)
            counts[u] -= counts[u - m - i];
        for (size_t u = i; u <= last; u++)
            counts[u] += counts[u - i];
    }
}

/* One row of probabilities per size of the second sample, extended from one size of the first to the next: the
 * largest value of all is in the first sample with probability i / (i + j), and then counts j. No subtraction, so no
 * digits are lost. */
static void next_size(double *rows, size_t i, size_t m, size_t last)
{
    for (size_t j = 1; j <= m; j++) {
        double *row = rows + j * (last + 1);
        const double *smaller = row - (last + 1);
        double share = (double)i / (double)(i + j);
        for (size_t u = last + 1; u-- > 0;)
            row[u] = (u >= j ? share * row[u - j] : 0) + (1 - share) * smaller[u];
    }
}

/* The same if the counts are too large; slower. False: out of memory. */
static bool order_probabilities(size_t n, size_t m, size_t last, double *chances)
{
    if (n < m) { /* U's distribution is symmetric in n and m; fewer rows need less memory */
        size_t swap = n;
        n = m;
        m = swap;
    }
    double *rows = calloc((m + 1) * (last + 1), sizeof(*rows));
    if (!rows)
        return false;
    for (size_t j = 0; j <= m; j++)
        rows[j * (last + 1)] = 1;
    for (size_t i = 1; i <= n; i++)
        next_size(rows, i, m, last);
    memcpy(chances, rows + m * (last + 1), (last + 1) * sizeof(*chances));
    free(rows);
    return true;
}

bool tare__stat_u_below(size_t n, size_t m, size_t last, double *below)
{
    double all = orders(n, m), sum = 0;
    bool countable = all < 0x1p52;
    if (countable)
        count_orders(n, m, last, below);
    else if (!order_probabilities(n, m, last, below))
        return false;
    for (size_t u = 0; u <= last; u++) {
        sum += below[u];
        below[u] = countable ? sum / all : sum;
    }
    return true;
}

static double exact_p(size_t n, size_t m, double u)
{
    double pairs = (double)n * (double)m;
    size_t last = (size_t)fmin(u, pairs - u);
    double *below = malloc((last + 1) * sizeof(*below));
    double p = below && tare__stat_u_below(n, m, last, below) ? fmin(1, 2 * below[last]) : NAN;
    free(below);
    return p;
}

static double normal_p(double n, double m, double u, double ties)
{
    double all = n + m;
    double spread = sqrt(n * m / 12 * (all + 1 - ties / (all * (all - 1))));
    double distance = fabs(u - n * m / 2) - 0.5;
    if (!(spread > 0)) /* all values are equal */
        return 1;
    return fmin(1, 2 * tare__normal_above(distance / spread));
}

tare__rank_test tare__mann_whitney(const double *base, size_t n, const double *head, size_t m)
{
    tare__rank_test test = {NAN, NAN, NAN, NAN, false};
    ranked *all = n && m ? malloc((n + m) * sizeof(*all)) : NULL;
    if (!all || !gather(all, base, n, false) || !gather(all + n, head, m, true)) {
        free(all);
        return test;
    }
    double ties;
    qsort(all, n + m, sizeof(*all), by_value);
    test.u = sum_of_ranks(all, n + m, &ties) - (double)m * ((double)m + 1) / 2;
    free(all);
    test.superiority = test.u / ((double)n * (double)m);
    test.cliffs_delta = 2 * test.superiority - 1;
    if (ties == 0 && n <= TARE__EXACT_PAIRS / m)
        test.p = exact_p(n, m, test.u);
    test.exact = !isnan(test.p);
    if (!test.exact)
        test.p = normal_p((double)n, (double)m, test.u, ties);
    return test;
}
