/* Tests of the trend: slope, interval, fit.
 * One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stat/stat.h"
#include "stat_random.h"

static void a_straight_line(void **state)
{
    (void)state;
    double x[20], y[20];
    for (int i = 0; i < 20; i++) {
        x[i] = i;
        y[i] = 3 + 2 * i;
    }
    tare__trend trend = tare__trend_of(x, y, 20);
    assert_true(fabs(trend.slope - 2) < 1e-12 && fabs(trend.low - 2) < 1e-12 && fabs(trend.high - 2) < 1e-12);
    assert_true(fabs(trend.fit - 1) < 1e-12);
    assert_int_equal(trend.n, 20);
}

static void wild_points_do_not_move_it(void **state)
{
    (void)state;
    double x[20], y[20];
    for (int i = 0; i < 20; i++) {
        x[i] = i;
        y[i] = i % 5 == 3 ? 1e6 : 2.0 * i;
    }
    tare__trend trend = tare__trend_of(x, y, 20);
    assert_true(fabs(trend.slope - 2) < 1);
    assert_true(trend.fit < 0.5);
}

/* SciPy's theilslopes gives 2.0 within 1.867 and 2.200; ranks are rounded outwards here. */
static void figures_of_another_implementation(void **state)
{
    (void)state;
    static const double x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const double y[] = {1.0, 2.9, 4.1, 7.5, 8.0, 10.9, 13.2, 14.1, 17.5, 18.8};
    tare__trend trend = tare__trend_of(x, y, 10);
    assert_true(fabs(trend.slope - 2.0) < 1e-9);
    assert_true(trend.low > 1.8 && trend.low <= 1.867);
    assert_true(trend.high < 2.3 && trend.high >= 2.199);
}

static void too_few_and_flat(void **state)
{
    (void)state;
    static const double x[] = {0, 1, 2, 3, 4, 5}, flat[] = {7, 7, 7, 7, 7, 7};
    assert_true(isnan(tare__trend_of(x, x, 0).slope));
    assert_true(isnan(tare__trend_of(x, x, 1).slope));
    assert_true(tare__trend_of(x, x, 3).slope == 1 && isnan(tare__trend_of(x, x, 3).low));
    assert_true(tare__trend_of(x, x, 6).low == 1);
    tare__trend trend = tare__trend_of(x, flat, 6);
    assert_true(trend.slope == 0 && isnan(trend.fit));
    assert_true(isnan(tare__trend_of(flat, x, 6).slope)); /* no time passes */
}

/* The interval covers the true slope about as often as it says. */
static void the_interval_covers(void **state)
{
    (void)state;
    uint64_t seed = 42;
    int covered = 0, runs = 400;
    for (int run = 0; run < runs; run++) {
        double x[30], y[30];
        for (int i = 0; i < 30; i++) {
            x[i] = i;
            y[i] = 0.5 * i + 4 * (random_unit(&seed) + random_unit(&seed) + random_unit(&seed) - 1.5);
        }
        tare__trend trend = tare__trend_of(x, y, 30);
        covered += trend.low <= 0.5 && trend.high >= 0.5;
    }
    assert_in_range(covered, runs * 92 / 100, runs * 99 / 100);
}

static void more_points_than_it_takes(void **state)
{
    (void)state;
    double x[100], y[100];
    for (int i = 0; i < 100; i++) {
        x[i] = i;
        y[i] = i < (int)TARE__TREND_MAX ? i : 1e9;
    }
    tare__trend trend = tare__trend_of(x, y, 100);
    assert_int_equal(trend.n, TARE__TREND_MAX);
    assert_true(trend.slope == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_straight_line),
        cmocka_unit_test(wild_points_do_not_move_it),
        cmocka_unit_test(figures_of_another_implementation),
        cmocka_unit_test(too_few_and_flat),
        cmocka_unit_test(the_interval_covers),
        cmocka_unit_test(more_points_than_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
