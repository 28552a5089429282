/* Tests of src/stat/sequential.c: worked by hand, and by simulation: tested after every pair, it is wrong as seldom as
 * it says, and finds a real difference about as often as a t test of all pairs does.
 * One thread.
 * Must not know what is measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stat/stat.h"

#define PAIRS 40
#define SHARE 0.01 /* smaller changes do not count */

static tare__sequential_plan plan;

static void worked_by_hand(void **state)
{
    (void)state;
    double base[PAIRS], head[PAIRS], same[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        base[i] = 100;
        head[i] = 110 + i;
        same[i] = 5;
    }
    for (size_t n = 1; n <= 12; n++) /* all signs alike: 2 / 2^n */
        assert_true(fabs(tare__paired_test(base, head, n, 0.95).p - fmin(1, ldexp(2, -(int)n))) < 1e-12);
    assert_true(isnan(tare__paired_test(base, head, 5, 0.95).ratio.low)); /* 2 / 2^5 is more than 5 % */
    tare__sequential six = tare__paired_test(base, head, 6, 0.95);
    assert_true(fabs(six.ratio.low - 1.10) < 1e-12 && fabs(six.ratio.high - 1.15) < 1e-12);
    assert_true(tare__paired_test(same, same, PAIRS, 0.95).p == 1);
    base[0] = 0; /* has no ratio */
    assert_int_equal(tare__paired_test(base, head, 9, 0.95).ratio.n, 8);
    /* Ranks 1 to 4 with one of rank 2 below: sums of at most 2 have 3 of 16 orders on one side. */
    static const double a[] = {1, 1, 1, 1}, b[] = {1.01, 1 / 1.02, 1.03, 1.04};
    assert_true(fabs(tare__paired_test(a, b, 4, 0.95).p - 2 * 3.0 / 16) < 1e-12);
}

/* The interval at a level excludes 1 exactly when p has reached the level. */
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
        tare__sequential now = tare__paired_test(base, head, PAIRS, 0.99);
        assert_int_equal(now.p <= 0.01, now.ratio.low > 1 || now.ratio.high < 1);
    }
}

static void levels_rise_and_stay_below_what_is_spent(void **state)
{
    (void)state;
    static const size_t mosts[] = {1, 7, 8, 10, 40, 60, 200, TARE__SEQUENTIAL_MOST};
    for (size_t i = 0; i < sizeof mosts / sizeof *mosts; i++) {
        double last = 0;
        size_t interims = 0;
        tare__sequential_make(&plan, mosts[i], TARE__SEQUENTIAL_ALPHA);
        for (size_t n = 0; n <= mosts[i] + 1; n++) {
            double level = tare__sequential_level(&plan, n);
            assert_true(level >= 0 && level <= TARE__SEQUENTIAL_ALPHA * 1.0001);
            assert_true(level == 0 || ldexp(2, -(int)(n < 1000 ? n : 1000)) <= level * 1.0001 || interims > 0);
            last = level > 0 ? level : last;
            interims += level > 0;
        }
        assert_true((mosts[i] < 8) == (interims == 0)); /* 8 pairs are the fewest that can decide */
        assert_true(interims <= 61);
        if (interims)
            assert_true(tare__sequential_level(&plan, mosts[i]) == last && last > TARE__SEQUENTIAL_ALPHA / 3);
    }
}

/* ---- simulated ------------------------------------------------------------------------------------
 * Noise as runs have it. Each kind with its deviation s; `lasting` is drift that both runs of a round share. */
typedef enum noise { NORMAL, LOGNORMAL, HEAVY, DRIFT, SPIKES, KINDS } noise;
static const char *const names[] = {"normal", "lognormal", "heavy tails", "drift", "spikes"};

static double draw(tare__random *random, noise kind, double s, double lasting)
{
    double z = tare__random_normal(random), squares = 0;
    switch (kind) {
    case LOGNORMAL: return exp(s * z);
    case HEAVY: /* Student's t of 3 degrees */
        for (int i = 0; i < 3; i++) {
            double other = tare__random_normal(random);
            squares += other * other / 3;
        }
        return exp(s * z / sqrt(squares));
    case DRIFT: return 1 + s * z + lasting;
    case SPIKES: return 1 + s * z + (tare__random_unit(random) < 0.1 ? 0.3 * tare__random_unit(random) : 0);
    default: return 1 + s * z;
    }
}

typedef struct tally {
    int decided, by_t; /* a difference was found; by a t test of all pairs at 5 % */
} tally;

static tally count(noise kind, double s, double change, int trials, tare__random *random)
{
    tally found = {0, 0};
    for (int trial = 0; trial < trials; trial++) {
        double base[PAIRS], head[PAIRS], lasting = 0;
        tare__moments logs = {0};
        bool done = false;
        for (size_t n = 0; n < PAIRS; n++) {
            lasting = 0.9 * lasting + 0.5 * s * tare__random_normal(random);
            base[n] = fmax(0.1, draw(random, kind, s, lasting));
            head[n] = fmax(0.1, draw(random, kind, s, lasting)) * (1 + change);
            tare__moments_add(&logs, log(head[n] / base[n]));
            double level = tare__sequential_level(&plan, n + 1);
            if (done || !(level > 0))
                continue;
            tare__sequential now = tare__paired_test(base, head, n + 1, 1 - level);
            done = now.p <= level && fabs(now.ratio.value - 1) > SHARE;
            found.decided += done && (change == 0 || now.ratio.value > 1);
        }
        double t = logs.mean / (tare__moments_deviation(&logs) / sqrt(PAIRS));
        found.by_t += tare__student_two_sided(t, PAIRS - 1) < 0.05;
    }
    return found;
}

/* 2 % and what so many draws may be off: three standard deviations. */
static int at_most(int trials, double share)
{
    return (int)(trials * share + 3 * sqrt(trials * share * (1 - share)));
}

static void false_alarms_stay_below_two_in_a_hundred(void **state)
{
    (void)state;
    tare__random random;
    int trials = 150, all = 0;
    tare__random_seed(&random, 1);
    tare__sequential_make(&plan, PAIRS, TARE__SEQUENTIAL_ALPHA);
    for (int kind = 0; kind < KINDS; kind++) {
        int here = 0;
        for (double s = 0.01; s < 0.055; s += 0.02)
            here += count((noise)kind, s, 0, trials, &random).decided;
        print_message("%s: %d false alarms of %d\n", names[kind], here, 3 * trials);
        assert_true(here <= at_most(3 * trials, TARE__SEQUENTIAL_ALPHA));
        all += here;
    }
    print_message("in all %d of %d\n", all, KINDS * 3 * trials);
    assert_true(all <= at_most(KINDS * 3 * trials, TARE__SEQUENTIAL_ALPHA) && all * 100 < 2 * KINDS * 3 * trials);
    assert_true(all > 0); /* else nothing was tried */
}

static void five_percent_is_found_as_often_as_by_a_t_test(void **state)
{
    (void)state;
    tare__random random;
    int trials = 60, ours = 0, theirs = 0, of = 0;
    tare__random_seed(&random, 2);
    tare__sequential_make(&plan, PAIRS, TARE__SEQUENTIAL_ALPHA);
    for (int kind = 0; kind < KINDS; kind++)
        for (double s = 0.01; s < 0.055; s += 0.01) {
            tally here = count((noise)kind, s, 0.05, trials, &random);
            ours += here.decided;
            theirs += here.by_t;
            of += trials;
            /* A t test that may be wrong in 5 %, of all pairs at once, against 1.25 % after each: no more behind than
             * what that costs at the largest noise. */
            assert_true(here.decided >= here.by_t - trials * 25 / 100);
        }
    print_message("5 %% found in %d of %d, by a t test at 5 %% in %d\n", ours, of, theirs);
    assert_true(ours * 100 >= 90 * of && ours * 100 >= 95 * theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_by_hand),
        cmocka_unit_test(interval_and_p_agree),
        cmocka_unit_test(levels_rise_and_stay_below_what_is_spent),
        cmocka_unit_test(false_alarms_stay_below_two_in_a_hundred),
        cmocka_unit_test(five_percent_is_found_as_often_as_by_a_t_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
