/* Tests of src/stat/sequential.c: worked by hand, and by simulation: looked at after every pair, it is wrong as
 * seldom as it says, and a real difference is found.
 * One thread.
 * Must not know what is measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stat/stat.h"

#define PAIRS 60

static void a_few_pairs_are_never_sure(void **state)
{
    (void)state;
    double base[PAIRS], head[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        base[i] = 100;
        head[i] = 110 + i;
    }
    tare__sequential seven = tare__sequential_ratio(base, head, 7, 0.95),
                     eight = tare__sequential_ratio(base, head, 8, 0.95);
    assert_true(isnan(seven.ratio.low) && seven.p > 0.05);
    assert_true(fabs(seven.p - 8.0 / 128) < 1e-12); /* 2^7 / 8 to one */
    assert_true(fabs(eight.p - 9.0 / 256) < 1e-12);
    assert_true(fabs(eight.ratio.low - 1.10) < 1e-12 && fabs(eight.ratio.high - 1.17) < 1e-12);
    assert_true(fabs(eight.ratio.value - 1.135) < 1e-4);
    assert_int_equal(eight.ratio.n, TARE__SEQUENTIAL_MIN);
    tare__sequential none = tare__sequential_ratio(base, head, 0, 0.95);
    assert_true(isnan(none.p) && isnan(none.ratio.value));
    base[0] = 0; /* has no ratio */
    assert_int_equal(tare__sequential_ratio(base, head, 9, 0.95).ratio.n, 8);
    double same[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        same[i] = 5;
    assert_true(tare__sequential_ratio(same, same, PAIRS, 0.95).p == 1);
}

/* The interval leaves no change out exactly when p says so. */
static void interval_and_p_agree(void **state)
{
    (void)state;
    tare__random random;
    tare__random_seed(&random, 3);
    for (int trial = 0; trial < 300; trial++) {
        double base[PAIRS], head[PAIRS];
        for (int i = 0; i < PAIRS; i++) {
            base[i] = exp(0.02 * tare__random_normal(&random));
            head[i] = exp(0.02 * tare__random_normal(&random) + 0.0001 * trial);
        }
        tare__sequential now = tare__sequential_ratio(base, head, PAIRS, 0.95);
        assert_int_equal(now.p <= 0.05, now.ratio.low > 1 || now.ratio.high < 1);
    }
}

/* Noise as runs have it: now and then one takes far longer, and a slow while lasts for some pairs. */
static void make_pair(tare__random *random, double *while_slow, double change, double *base, double *head)
{
    *while_slow = 0.8 * *while_slow + 0.01 * tare__random_normal(random);
    double *pair[2] = {base, head};
    for (int side = 0; side < 2; side++) {
        double noise = 0.02 * tare__random_normal(random) + *while_slow;
        noise += tare__random_unit(random) < 0.1 ? 0.3 * tare__random_unit(random) : 0;
        *pair[side] = exp(noise) * (side ? 1 + change : 1);
    }
}

/* Pairs until it is sure; 0: never. */
static int pairs_until_sure(tare__random *random, double change)
{
    double base[PAIRS], head[PAIRS], while_slow = 0;
    for (int n = 0; n < PAIRS; n++) {
        make_pair(random, &while_slow, change, &base[n], &head[n]);
        tare__sequential now = tare__sequential_ratio(base, head, (size_t)n + 1, 0.95);
        if (now.ratio.low > 1 || now.ratio.high < 1)
            return n + 1;
    }
    return 0;
}

static void looking_after_every_pair_keeps_the_error(void **state)
{
    (void)state;
    tare__random random;
    int alarms = 0, trials = 2000;
    tare__random_seed(&random, 1);
    for (int i = 0; i < trials; i++)
        alarms += pairs_until_sure(&random, 0) > 0;
    print_message("false alarms: %d of %d\n", alarms, trials);
    assert_true(alarms <= trials / 20); /* 5 %, and the rule is on the careful side */
    assert_true(alarms > 0);            /* else nothing was tried */
}

static void a_real_change_is_found(void **state)
{
    (void)state;
    tare__random random;
    int found = 0, pairs = 0, trials = 300;
    tare__random_seed(&random, 2);
    for (int i = 0; i < trials; i++) {
        int n = pairs_until_sure(&random, 0.10);
        found += n > 0;
        pairs += n;
    }
    print_message("10 %% found: %d of %d, after %.1f pairs\n", found, trials, (double)pairs / found);
    assert_true(found > trials * 95 / 100);
    assert_true((double)pairs / found < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_pairs_are_never_sure),
        cmocka_unit_test(interval_and_p_agree),
        cmocka_unit_test(looking_after_every_pair_keeps_the_error),
        cmocka_unit_test(a_real_change_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
