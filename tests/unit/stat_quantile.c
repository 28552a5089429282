/* Tests of stat/quantile: order, interpolation, edges.
 * One process, one thread.
 * Must not know which sort is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stat/stat.h"
#include "stat_random.h"

static void sort_puts_nan_last(void **state)
{
    (void)state;
    double values[] = {NAN, 3, -INFINITY, NAN, 0, INFINITY, -2, 3};
    static const double sorted[] = {-INFINITY, -2, 0, 3, 3, INFINITY};
    tare__sort(values, 8);
    for (int i = 0; i < 6; i++)
        assert_true(values[i] == sorted[i]);
    assert_true(isnan(values[6]) && isnan(values[7]));
    tare__sort(NULL, 0);
}

static void sort_keeps_every_value(void **state)
{
    (void)state;
    uint64_t seed = 1;
    double values[1000];
    double before = 0, after = 0;
    for (int i = 0; i < 1000; i++) {
        values[i] = (double)(random_next(&seed) % 500); /* whole numbers: the sums are exact */
        before += values[i] * values[i];
    }
    tare__sort(values, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_true(i == 0 || values[i - 1] <= values[i]);
        after += values[i] * values[i];
    }
    assert_true(before == after);
}

/* numpy.quantile([1, 2, 4, 8, 16], q), NumPy 2.4 */
static void interpolates_as_numpy(void **state)
{
    (void)state;
    static const double values[] = {1, 2, 4, 8, 16};
    static const double expected[][2] = {
        {0, 1}, {0.1, 1.4}, {0.25, 2}, {0.3, 2.4}, {0.5, 4}, {0.6, 5.6}, {0.9, 12.8}, {0.99, 15.68}, {1, 16},
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        assert_true(fabs(tare__quantile_sorted(values, 5, expected[i][0]) - expected[i][1]) < 1e-14 * 16);
}

static void edges(void **state)
{
    (void)state;
    static const double one[] = {7};
    static const double endless[] = {1, INFINITY, INFINITY};
    assert_true(isnan(tare__quantile_sorted(NULL, 0, 0.5)));
    assert_true(isnan(tare__quantile_sorted(one, 1, NAN)));
    assert_true(tare__quantile_sorted(one, 1, 0.3) == 7);
    assert_true(tare__quantile_sorted(one, 1, -1) == 7);
    assert_true(tare__quantile_sorted(one, 1, 2) == 7);
    assert_true(tare__quantile_sorted(endless, 3, 0.75) == INFINITY);
}

static void rises_with_q_between_its_neighbours(void **state)
{
    (void)state;
    uint64_t seed = 2;
    double values[50];
    for (int i = 0; i < 50; i++)
        values[i] = random_unit(&seed) - 0.5;
    tare__sort(values, 50);
    double last = values[0];
    for (int i = 0; i <= 10000; i++) {
        double q = i / 10000.0;
        double found = tare__quantile_sorted(values, 50, q);
        assert_true(found >= last);
        assert_true(found >= values[(int)floor(q * 49)] && found <= values[(int)ceil(q * 49)]);
        last = found;
    }
    assert_true(last == values[49]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sort_puts_nan_last),
        cmocka_unit_test(sort_keeps_every_value),
        cmocka_unit_test(interpolates_as_numpy),
        cmocka_unit_test(edges),
        cmocka_unit_test(rises_with_q_between_its_neighbours),
    };
    return cmocka_run_group_tests_name("stat/quantile", tests, NULL, NULL);
}
