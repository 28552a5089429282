/* Tests of stat/ranks and stat/effect: worked examples from books, ties, edges.
 * One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stat/stat.h"
#include "tare.h"

#include "stat_random.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Hollander and Wolfe (1973), page 69: permeability of membranes at term and before. */
static const double at_term[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
static const double before[] = {1.15, 0.88, 0.90, 0.74, 1.21};

static bool near(double value, double expected, double by)
{
    return fabs(value - expected) <= by;
}

static void membranes(void **state)
{
    (void)state;
    tare__rank_test test = tare__mann_whitney(before, COUNT(before), at_term, COUNT(at_term));
    assert_true(test.exact && test.u == 35);
    assert_true(near(test.p, 2 * 0.1272, 1e-4));
    assert_true(near(test.superiority, 0.7, 1e-12) && near(test.cliffs_delta, 0.4, 1e-12));
    tare__rank_test turned = tare__mann_whitney(at_term, COUNT(at_term), before, COUNT(before));
    assert_true(turned.u == 15 && near(turned.p, test.p, 1e-15));
    tare__estimate shift = tare__shift(before, COUNT(before), at_term, COUNT(at_term), 0.95);
    assert_true(near(shift.value, 0.305, 1e-12));
    assert_true(near(shift.low, -0.15, 1e-12) && near(shift.high, 0.76, 1e-12));
}

/* SciPy's documentation of mannwhitneyu: ages at which men and women were diagnosed. */
static void ages(void **state)
{
    (void)state;
    static const double males[] = {19, 22, 16, 29, 24}, females[] = {20, 11, 17, 12};
    tare__rank_test test = tare__mann_whitney(females, 4, males, 5);
    assert_true(test.exact && test.u == 17 && near(test.p, 1 / 9.0, 1e-12));
}

/* P(U = 0) of 4 and 4 is 1 in 70; of 20 and 20 1 in 137846528820. */
static void wholly_apart(void **state)
{
    (void)state;
    double low[20], high[20];
    for (int i = 0; i < 20; i++) {
        low[i] = i;
        high[i] = 100 + i;
    }
    assert_true(near(tare__mann_whitney(low, 4, high, 4).p, 2 / 70.0, 1e-15));
    tare__rank_test test = tare__mann_whitney(low, 20, high, 20);
    assert_true(test.exact && test.superiority == 1 && test.cliffs_delta == 1);
    assert_true(near(test.p * 137846528820.0, 2, 1e-9));
}

/* By hand: ranks 1, 2.5, 2.5, 5, 5, 5, 7, 8; U = 15 of 16, ties take 6 + 24 off. */
static void ties(void **state)
{
    (void)state;
    static const double base[] = {1, 2, 2, 3}, head[] = {3, 3, 4, 5};
    tare__rank_test test = tare__mann_whitney(base, 4, head, 4);
    assert_true(!test.exact && test.u == 15);
    double spread = sqrt(16 / 12.0 * (9 - 30 / 56.0));
    assert_true(near(test.p, 2 * tare__normal_above((15 - 8 - 0.5) / spread), 1e-15));
    assert_true(tare__mann_whitney(base + 1, 2, base + 1, 2).p == 1);
}

static void nothing_to_test(void **state)
{
    (void)state;
    static const double some[] = {1, 2, NAN};
    assert_true(isnan(tare__mann_whitney(some, 0, some, 2).p));
    assert_true(isnan(tare__mann_whitney(some, 2, some, 0).p));
    assert_true(isnan(tare__mann_whitney(some, 2, some, 3).p));
    assert_true(isnan(tare__shift(some, 0, some, 2, 0.95).value));
    assert_true(isnan(tare__shift(some, 3, some, 2, 0.95).value));
    assert_true(tare__shift(some, 1, some + 1, 1, 0.95).value == 1);
    assert_true(isnan(tare__shift(some, 1, some + 1, 1, 0.95).low)); /* one pair has no interval */
    assert_true(isnan(tare__paired_test(some, some, 0, 0.95).p));
}

/* All differences made and sorted: the halving finds the same one, in both signs, with infinities far away. */
static void the_shift_is_the_median_difference(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 50; round++) {
        double base[40], head[40], all[1600];
        size_t n = 1 + random_next(&seed) % 40, m = 1 + random_next(&seed) % 40;
        for (size_t i = 0; i < n; i++)
            base[i] = (random_unit(&seed) - 0.5) * pow(10, (double)(round % 9));
        for (size_t i = 0; i < m; i++)
            head[i] = (random_unit(&seed) - 0.5) * pow(10, (double)(round % 7));
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < m; j++)
                all[i * m + j] = head[j] - base[i];
        double median = tare__median(all, n * m);
        assert_true(near(tare__shift(base, n, head, m, 0.95).value, median, 1e-12 * fabs(median)));
    }
}

/* Hollander and Wolfe, page 29: Hamilton's scale before and after; of the logarithms of nine ratios all but two are
 * below 0, of ranks 1 and 5: P(W <= 6) = 14 / 512. */
static void pairs(void **state)
{
    (void)state;
    static const double first[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
    static const double second[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
    tare__sequential test = tare__paired_test(first, second, 9, 0.95);
    assert_true(test.ratio.n == 9 && near(test.p, 2 * 14 / 512.0, 1e-12));
    assert_true(test.ratio.low < test.ratio.value && test.ratio.value < test.ratio.high && test.ratio.high > 1);
    static const double with_gap[] = {1, 0, -1, 2, INFINITY}, other[] = {2, 1, 1, 4, 1};
    test = tare__paired_test(with_gap, other, 5, 0.95);
    assert_true(test.ratio.n == 2 && near(test.ratio.value, 2, 1e-12) && isnan(test.ratio.low));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(membranes),
        cmocka_unit_test(ages),
        cmocka_unit_test(wholly_apart),
        cmocka_unit_test(ties),
        cmocka_unit_test(nothing_to_test),
        cmocka_unit_test(the_shift_is_the_median_difference),
        cmocka_unit_test(pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
