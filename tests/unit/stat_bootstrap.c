/* Tests of stat/bootstrap: the book's example, coverage, edges, memory that runs out.
 * One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stat/stat.h"
#include "tare.h"

#include "base_failing.h"

/* Efron and Tibshirani, An Introduction to the Bootstrap, table 14.1: the spatial test data, A. */
static const double spatial[] = {48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6,
                                 0,  33, 28, 34, 4,  32, 24, 47, 41, 24, 26, 30, 41};

static double variance(const double *sorted, size_t n, void *with)
{
    tare__moments moments = {0};
    (void)with;
    for (size_t i = 0; i < n; i++)
        tare__moments_add(&moments, sorted[i]);
    return moments.m2 / (double)n;
}

/* Chapter 14.2: the variance is 171.5, its BCa interval of 90 % (115.8, 259.6). */
static void the_book(void **state)
{
    (void)state;
    tare__estimate estimate;
    assert_int_equal(tare__bootstrap(spatial, 26, variance, NULL, 20000, 0.90, 1, &estimate), 0);
    assert_true(fabs(estimate.value - 171.5) < 0.1);
    assert_true(fabs(estimate.low - 115.8) < 4 && fabs(estimate.high - 259.6) < 6);
    assert_true(estimate.n == 26 && estimate.confidence == 0.90);
}

static void the_same_seed_the_same_interval(void **state)
{
    (void)state;
    tare__estimate a, b, c;
    double q = 0.9;
    assert_int_equal(tare__bootstrap(spatial, 26, tare__statistic_quantile, &q, 500, 0.95, 7, &a), 0);
    assert_int_equal(tare__bootstrap(spatial, 26, tare__statistic_quantile, &q, 500, 0.95, 7, &b), 0);
    assert_true(a.low == b.low && a.high == b.high && a.low <= a.value && a.value <= a.high);
    assert_int_equal(tare__bootstrap(spatial, 26, tare__statistic_mean, NULL, 500, 0.95, 7, &b), 0);
    assert_int_equal(tare__bootstrap(spatial, 26, tare__statistic_mean, NULL, 500, 0.95, 8, &c), 0);
    assert_true(b.low != c.low);
}

static void too_few_and_flat(void **state)
{
    (void)state;
    tare__estimate estimate;
    double flat[8] = {3, 3, 3, 3, 3, 3, 3, 3};
    assert_int_equal(tare__bootstrap(spatial, 5, tare__statistic_mean, NULL, 100, 0.95, 1, &estimate), 0);
    assert_true(estimate.value == 35 && isnan(estimate.low) && isnan(estimate.high));
    assert_int_equal(tare__bootstrap(spatial, 0, tare__statistic_mean, NULL, 100, 0.95, 1, &estimate), 0);
    assert_true(isnan(estimate.value) && isnan(estimate.low));
    assert_int_equal(tare__bootstrap(flat, 8, tare__statistic_median, NULL, 100, 0.95, 1, &estimate), 0);
    assert_true(estimate.value == 3 && estimate.low == 3 && estimate.high == 3);
    assert_int_equal(tare__bootstrap(flat, 8, tare__statistic_mean, NULL, 100, 1.0, 1, &estimate),
                     TARE_E_USAGE);
    assert_int_equal(tare__bootstrap(flat, 8, tare__statistic_mean, NULL, 0, 0.95, 1, &estimate),
                     TARE_E_USAGE);
}

/* The true ratio is inside about as often as promised. */
static void the_ratio_covers(void **state)
{
    (void)state;
    tare__random random;
    int covered = 0, rounds = 200;
    tare__random_seed(&random, 11);
    for (int round = 0; round < rounds; round++) {
        double base[30], head[30];
        for (int i = 0; i < 30; i++) {
            base[i] = 100 + 5 * tare__random_normal(&random);
            head[i] = 110 + 5 * tare__random_normal(&random);
        }
        tare__estimate ratio = tare__median_ratio(base, 30, head, 30, 0.95, (uint64_t)round);
        covered += ratio.low <= 1.1 && ratio.high >= 1.1;
    }
    assert_in_range(covered, rounds * 89 / 100, rounds * 995 / 1000);
}

static void ratios_without_an_answer(void **state)
{
    (void)state;
    static const double zeros[6] = {0}, some[] = {1, 2, 3, 4, 5, 6};
    assert_true(isnan(tare__median_ratio(zeros, 6, some, 6, 0.95, 1).value));
    assert_true(isnan(tare__median_ratio(some, 0, some, 6, 0.95, 1).value));
    tare__estimate few = tare__median_ratio(some, 2, some, 6, 0.95, 1);
    assert_true(few.value == 3.5 / 1.5 && isnan(few.low));
}

static void memory_runs_out(void **state)
{
    (void)state;
    tare__estimate estimate;
    int status = TARE_E_MEMORY;
    for (long left = 0; status == TARE_E_MEMORY; left++) {
        assert_true(left < 20);
        allocations_left = left;
        status = tare__bootstrap(spatial, 26, tare__statistic_mean, NULL, 50, 0.95, 1, &estimate);
        allocations_left = -1;
        assert_true(status == 0 ? !isnan(estimate.low) : isnan(estimate.low));
    }
    allocations_left = 0;
    assert_true(isnan(tare__median_ratio(spatial, 26, spatial, 26, 0.95, 1).value));
    assert_true(isnan(tare__mann_whitney(spatial, 26, spatial, 26).p));
    assert_true(isnan(tare__shift(spatial, 26, spatial, 26, 0.95).value));
    assert_true(isnan(tare__paired_test(spatial, spatial, 26, 0.95).p));
    assert_true(!tare__steady_state(spatial, 26).reached);
    assert_int_equal(tare__change_points(spatial, 26, NULL, NULL, 0), 0);
    assert_true(isnan(tare__median(spatial, 26)));
    allocations_left = -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_book),
        cmocka_unit_test(the_same_seed_the_same_interval),
        cmocka_unit_test(too_few_and_flat),
        cmocka_unit_test(the_ratio_covers),
        cmocka_unit_test(ratios_without_an_answer),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
