/* Tests of stat/interval: known values, the defining property by brute force, what is asked of it.
 * One process, one thread.
 * Must not know how tails are computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stat/stat.h"

static double *ascending(size_t n)
{
    double *values = malloc(n * sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)(i + 1); /* so that a value is its rank */
    return values;
}

static void smallest_counts_of_the_table(void **state)
{
    (void)state;
    assert_int_equal(tare__quantile_interval_needs(0.5, 0.95), 6);
    assert_int_equal(tare__quantile_interval_needs(0.9, 0.95), 36);
    assert_int_equal(tare__quantile_interval_needs(0.95, 0.95), 72);
    assert_int_equal(tare__quantile_interval_needs(0.99, 0.95), 368);
    assert_int_equal(tare__quantile_interval_needs(0.999, 0.95), 3688);
    assert_int_equal(tare__quantile_interval_needs(0.1, 0.95), 36);
    assert_int_equal(tare__quantile_interval_needs(0.001, 0.95), 3688);
    assert_int_equal(tare__quantile_interval_needs(0.5, 0.96875), 6); /* met exactly: 2 / 2^6 */
    assert_int_equal(tare__quantile_interval_needs(0.5, 1e-17), 2);   /* one value bounds on one side only */
    for (int n = 3; n <= 15; n++) /* met exactly again, in fractions a double holds */
        assert_int_equal(tare__quantile_interval_needs(0.75, 1 - 2 * pow(0.75, n)), n);
}

static void one_fewer_than_needed_is_none(void **state)
{
    (void)state;
    static const double quantiles[] = {0.5, 0.9, 0.95, 0.99, 0.999, 0.01};
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++) {
        size_t needs = tare__quantile_interval_needs(quantiles[i], 0.95);
        double *values = ascending(needs);
        tare__interval none = tare__quantile_interval(values, needs - 1, quantiles[i], 0.95);
        assert_true(isnan(none.low) && isnan(none.high) && isnan(none.confidence));
        assert_int_equal(none.low_rank, 0);
        assert_int_equal(none.high_rank, 0);
        assert_int_equal(none.needed, needs);
        tare__interval some = tare__quantile_interval(values, needs, quantiles[i], 0.95);
        assert_true(some.low_rank >= 1 && some.low_rank < some.high_rank && some.high_rank <= needs);
        assert_true(some.low_rank == 1 || some.high_rank == needs);
        assert_true(some.low == (double)some.low_rank && some.high == (double)some.high_rank);
        assert_true(some.confidence >= 0.95);
        assert_int_equal(some.needed, 0);
        free(values);
    }
}

/* Ranks and tails from SciPy 1.17's binomial distribution. */
static const struct known {
    size_t n;
    double q, confidence;
    size_t low_rank, high_rank;
    double reached;
} known_values[] = {
    {6, 0.5, 0.95, 1, 6, 0.96875},
    {10, 0.5, 0.95, 2, 9, 0.978515625},
    {20, 0.5, 0.95, 6, 15, 0.9586105346679688},
    {36, 0.9, 0.95, 29, 36, 0.9539621052026521},
    {100, 0.5, 0.95, 40, 61, 0.9647997997822952},
    {100, 0.9, 0.95, 84, 96, 0.955690107191223},
    {1000, 0.99, 0.95, 983, 997, 0.976094763497977},
    {1000, 0.5, 0.99, 459, 542, 0.9913600509977394},
    {5000, 0.999, 0.95, 4990, 5000, 0.9796289355159518},
    {100000, 0.05, 0.999, 4775, 5229, 0.9990115178387992},
    {1000000, 0.99, 0.95, 989805, 990196, 0.9505711243554037},
    {10000000, 0.5, 0.95, 4996901, 5003100, 0.9500387929673899},
    {10000000, 0.999, 0.95, 9989804, 9990196, 0.950120375465999},
    {10000000, 0.9, 0.999999, 8995356, 9004639, 0.9999990047374232},
    {10000000, 1e-5, 0.95, 81, 121, 0.9546825701686302},
};

static void known_ranks_and_confidence(void **state)
{
    (void)state;
    double *values = ascending(10000000);
    for (size_t i = 0; i < sizeof(known_values) / sizeof(*known_values); i++) {
        const struct known *known = &known_values[i];
        tare__interval found = tare__quantile_interval(values, known->n, known->q, known->confidence);
        assert_int_equal(found.low_rank, known->low_rank);
        assert_int_equal(found.high_rank, known->high_rank);
        assert_true(fabs(found.confidence - known->reached) < 1e-9 * (1 - known->reached));
    }
    free(values);
}

/* Probabilities of 0 .. n successes by a plain recurrence; n small enough not to underflow. */
static void binomial(long double *points, size_t n, double q)
{
    points[0] = powl(1 - (long double)q, (long double)n);
    for (size_t k = 1; k <= n; k++)
        points[k] = points[k - 1] * (long double)(n - k + 1) / (long double)k * q / (1 - (long double)q);
}

static long double sum(const long double *points, size_t from, size_t to)
{
    long double total = 0;
    for (size_t k = from; k < to; k++)
        total += points[k];
    return total;
}

/* The tails are within the limit, and one rank further in either is not. */
static void check_definition(const double *values, size_t n, double q, double confidence)
{
    long double points[401];
    long double limit = (1 - (long double)confidence) / 2;
    binomial(points, n, q);
    tare__interval found = tare__quantile_interval(values, n, q, confidence);
    if (!found.low_rank) {
        assert_true(points[0] > limit || points[n] > limit);
        return;
    }
    long double missed_low = sum(points, 0, found.low_rank);
    long double missed_high = sum(points, found.high_rank, n + 1);
    assert_true(missed_low <= limit * (1 + 1e-11L));
    assert_true(missed_high <= limit * (1 + 1e-11L));
    assert_true(missed_low + points[found.low_rank] > limit);
    assert_true(missed_high + points[found.high_rank - 1] > limit);
    assert_true(fabsl(found.confidence - (1 - missed_low - missed_high)) < 1e-12L);
    assert_true(found.confidence >= confidence);
}

static void ranks_are_the_tightest(void **state)
{
    (void)state;
    static const double quantiles[] = {0.01, 0.1, 0.25, 0.3333, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99};
    static const double confidences[] = {0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999999};
    double *values = ascending(400);
    for (size_t n = 1; n <= 400; n += n < 60 ? 1 : 17) {
        for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++) {
            for (size_t j = 0; j < sizeof(confidences) / sizeof(*confidences); j++)
                check_definition(values, n, quantiles[i], confidences[j]);
        }
    }
    free(values);
}

static void a_limit_met_exactly_counts(void **state)
{
    (void)state;
    double *values = ascending(10);
    tare__interval found = tare__quantile_interval(values, 10, 0.5, 0.978515625); /* 1 - 22 / 1024 */
    assert_int_equal(found.low_rank, 2);
    assert_int_equal(found.high_rank, 9);
    assert_true(found.confidence >= 0.978515625);
    free(values);
}

static void nonsense_has_no_interval(void **state)
{
    (void)state;
    static const double wrong[] = {-1, 0, 1, 2, NAN};
    double *values = ascending(100);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_true(tare__quantile_interval_needs(wrong[i], 0.95) == SIZE_MAX);
        assert_true(tare__quantile_interval_needs(0.5, wrong[i]) == SIZE_MAX);
        assert_int_equal(tare__quantile_interval(values, 100, wrong[i], 0.95).low_rank, 0);
        assert_int_equal(tare__quantile_interval(values, 100, 0.5, wrong[i]).high_rank, 0);
    }
    assert_true(tare__quantile_interval_needs(1e-300, 0.95) == SIZE_MAX);
    assert_int_equal(tare__quantile_interval(NULL, 0, 0.5, 0.95).needed, 6);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smallest_counts_of_the_table), cmocka_unit_test(one_fewer_than_needed_is_none),
        cmocka_unit_test(known_ranks_and_confidence),   cmocka_unit_test(ranks_are_the_tightest),
        cmocka_unit_test(a_limit_met_exactly_counts),   cmocka_unit_test(nonsense_has_no_interval),
    };
    return cmocka_run_group_tests_name("stat/interval", tests, NULL, NULL);
}
