/* Tests of stat/moments: against two passes, cancellation.
 * One process, one thread.
 * Must not know which recurrence is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stat/stat.h"
#include "stat_random.h"

static void assert_near(double found, double expected)
{
    assert_true(fabs(found - expected) <= 1e-12 * fabs(expected));
}

static void few_values(void **state)
{
    (void)state;
    tare__moments moments = {0};
    assert_true(isnan(tare__moments_deviation(&moments)));
    tare__moments_add(&moments, -5);
    assert_true(isnan(tare__moments_deviation(&moments)));
    assert_true(moments.min == -5 && moments.max == -5 && moments.mean == -5);
    tare__moments_add(&moments, -1);
    assert_true(moments.min == -5 && moments.max == -1 && moments.mean == -3);
    assert_near(tare__moments_deviation(&moments), sqrt(8));
    assert_int_equal(moments.n, 2);
}

static void a_small_spread_on_a_large_mean(void **state)
{
    (void)state;
    tare__moments moments = {0};
    for (int i = 0; i < 1000; i++)
        tare__moments_add(&moments, 1e15 + (i & 1)); /* squares would need 100 bits */
    assert_true(fabs(tare__moments_deviation(&moments) - sqrt(250.0 / 999)) < 0.1);
}

static void one_pass_equals_two(void **state)
{
    (void)state;
    uint64_t seed = 1;
    double values[300];
    tare__moments all = {0};
    long double mean = 0, squares = 0;
    for (int i = 0; i < 300; i++) {
        values[i] = 100 + 50 * random_unit(&seed) + (i > 200 ? 1000 : 0);
        tare__moments_add(&all, values[i]);
        mean += values[i] / 300.0L;
    }
    for (int i = 0; i < 300; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    assert_near(all.mean, (double)mean);
    assert_near(tare__moments_deviation(&all), (double)sqrtl(squares / 299));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_values),
        cmocka_unit_test(a_small_spread_on_a_large_mean),
        cmocka_unit_test(one_pass_equals_two),
    };
    return cmocka_run_group_tests_name("stat/moments", tests, NULL, NULL);
}
