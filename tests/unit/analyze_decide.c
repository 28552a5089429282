/* Tests of analyze/decide: the rule by hand, and by thousands of simulated comparisons what it promises: few false
 * alarms, and true changes caught. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/analyze.h"

static const tare__allowance five = {.share = 0.05};

static tare__decision decide(const double *base, size_t n, const double *head, size_t m, tare__better better,
                             const tare__allowance *gate)
{
    tare__measured a = {base, n, NAN}, b = {head, m, NAN};
    return tare__decide(&a, &b, &(tare__question){.better = better, .cannot = TARE__WHY_FEW, .gate = *gate});
}

static tare__decision decide_exact(const tare__measured *base, const tare__measured *head, const tare__allowance *gate)
{
    return tare__decide(base, head, &(tare__question){.better = TARE__LOWER, .exact = true, .gate = *gate});
}

static void made_of(double *values, size_t n, double level, double step)
{
    for (size_t i = 0; i < n; i++)
        values[i] = level + step * (double)i;
}

static void all_three_are_asked_for(void **state)
{
    (void)state;
    double base[10], head[10];
    made_of(base, 10, 100, 0.01);
    made_of(head, 10, 110, 0.011);
    tare__decision decision = decide(base, 10, head, 10, TARE__LOWER, &five);
    assert_int_equal(decision.verdict, TARE__VERDICT_WORSE);
    assert_int_equal(decision.why, TARE__WHY_SIGNIFICANT);
    assert_true(fabs(decision.change - 0.1) < 1e-3 && decision.p < 1e-4 && decision.n_base == 10);
    made_of(head, 10, 104, 0.01); /* significant, but small */
    decision = decide(base, 10, head, 10, TARE__LOWER, &five);
    assert_true(decision.verdict == TARE__VERDICT_SAME && decision.why == TARE__WHY_SHARE &&
                decision.p < 1e-4);
    made_of(head, 10, 110, 0.011);
    tare__allowance high = {.share = 0.05, .floor = 50};
    decision = decide(base, 10, head, 10, TARE__LOWER, &high);
    assert_true(decision.verdict == TARE__VERDICT_SAME && decision.why == TARE__WHY_FLOOR);
    made_of(head, 10, 60, 12); /* large, but not significant */
    decision = decide(base, 10, head, 10, TARE__LOWER, &five);
    assert_true(decision.verdict == TARE__VERDICT_SAME && decision.why == TARE__WHY_NOISE);
}

static void which_way_is_worse(void **state)
{
    (void)state;
    double low[8], high[8];
    made_of(low, 8, 100, 0.01);
    made_of(high, 8, 120, 0.01);
    assert_int_equal(decide(low, 8, high, 8, TARE__LOWER, &five).verdict, TARE__VERDICT_WORSE);
    assert_int_equal(decide(high, 8, low, 8, TARE__LOWER, &five).verdict, TARE__VERDICT_BETTER);
    assert_int_equal(decide(low, 8, high, 8, TARE__HIGHER, &five).verdict, TARE__VERDICT_BETTER);
    assert_int_equal(decide(high, 8, low, 8, TARE__HIGHER, &five).verdict, TARE__VERDICT_WORSE);
    assert_int_equal(decide(high, 8, low, 8, TARE__NEITHER, &five).verdict, TARE__VERDICT_DIFFERENT);
}

static void too_few_to_tell(void **state)
{
    (void)state;
    double base[8], head[8];
    made_of(base, 8, 100, 0.01);
    made_of(head, 8, 200, 0.01);
    tare__decision decision = decide(base, 1, head, 1, TARE__LOWER, &five);
    assert_true(decision.verdict == TARE__VERDICT_INCONCLUSIVE && decision.why == TARE__WHY_FEW &&
                decision.change == 1);
    assert_int_equal(decide(base, 4, head, 4, TARE__LOWER, &five).verdict,
                     TARE__VERDICT_INCONCLUSIVE); /* p 1/35 at best */
    assert_int_equal(decide(base, 5, head, 5, TARE__LOWER, &five).verdict, TARE__VERDICT_WORSE);
    assert_int_equal(decide(base, 4, base, 4, TARE__LOWER, &five).why, TARE__WHY_FEW); /* no test says so */
    assert_true(!tare__decide_can_tell(0, 100, 0.02) && !tare__decide_can_tell(1, 98, 0.02));
    assert_true(tare__decide_can_tell(1, 99, 0.02) && tare__decide_can_tell(4, 5, 0.02));
    tare__measured alone = {NULL, 0, 100}, other = {NULL, 0, 150};
    assert_int_equal(
        tare__decide(&alone, &other, &(tare__question){.better = TARE__LOWER, .cannot = TARE__WHY_FEW}).verdict,
        TARE__VERDICT_INCONCLUSIVE);
}

static void exact_and_absent(void **state)
{
    (void)state;
    tare__allowance none = {0}, some = {.share = 0.02};
    tare__measured base = {NULL, 0, 25557032}, head = {NULL, 0, 25557033}, nothing = {NULL, 0, NAN},
                   zero = {NULL, 0, 0};
    assert_int_equal(decide_exact(&base, &head, &none).verdict, TARE__VERDICT_WORSE);
    assert_int_equal(decide_exact(&base, &head, &none).why, TARE__WHY_EXACT);
    assert_int_equal(decide_exact(&base, &head, &some).verdict, TARE__VERDICT_SAME);
    assert_int_equal(decide_exact(&head, &base, &none).verdict, TARE__VERDICT_BETTER);
    assert_int_equal(decide_exact(&base, &base, &none).why, TARE__WHY_EQUAL);
    assert_int_equal(decide_exact(&base, &nothing, &none).why, TARE__WHY_ABSENT);
    assert_int_equal(decide_exact(&base, &nothing, &none).verdict, TARE__VERDICT_INCONCLUSIVE);
    tare__decision from_zero = decide_exact(&zero, &head, &some);
    assert_true(isinf(from_zero.change) && from_zero.verdict == TARE__VERDICT_WORSE);
    assert_true(decide_exact(&zero, &zero, &some).why == TARE__WHY_EQUAL);
}

static void the_ratio(void **state)
{
    (void)state;
    double base[20], head[20];
    made_of(base, 20, 100, 0.1);
    made_of(head, 20, 110, 0.1);
    tare__decision decision = decide(base, 20, head, 20, TARE__LOWER, &five);
    assert_true(decision.low < decision.change && decision.change < decision.high &&
                fabs(decision.change - 0.1) < 0.01);
    assert_true(fabs(decision.change - (decision.head / decision.base - 1)) < 1e-12);
    assert_true(tare__decide_floor("ns") == 1000 && tare__decide_floor("bytes") == 1048576 &&
                tare__decide_floor("") == 0);
}

/* A lower bound decides where all that it may stand for lies on one side. */
static void lower_bounds(void **state)
{
    (void)state;
    const struct {
        double base, head;
        bool bound[2];
        tare__verdict verdict;
    } cases[] = {
        {100, 50, {false, true}, TARE__VERDICT_INCONCLUSIVE},  {100, 150, {false, true}, TARE__VERDICT_WORSE},
        {100, 0, {false, true}, TARE__VERDICT_INCONCLUSIVE},   {100, 100, {false, true}, TARE__VERDICT_INCONCLUSIVE},
        {100, 50, {true, false}, TARE__VERDICT_BETTER},        {100, 150, {true, false}, TARE__VERDICT_INCONCLUSIVE},
        {100, 50, {true, true}, TARE__VERDICT_INCONCLUSIVE},   {100, 150, {true, true}, TARE__VERDICT_INCONCLUSIVE},
        {100, 100, {true, true}, TARE__VERDICT_INCONCLUSIVE},  {100, 50, {false, false}, TARE__VERDICT_BETTER},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        tare__measured base = {NULL, 0, cases[i].base}, head = {NULL, 0, cases[i].head};
        tare__question question = {.better = TARE__LOWER, .exact = true};
        memcpy(question.bound, cases[i].bound, sizeof question.bound);
        assert_int_equal(tare__decide(&base, &head, &question).verdict, cases[i].verdict);
    }
}

/* ---- simulated --------------------------------------------------------------------------------------------
 * Runs have 2 % of noise around their machine's speed; machines of one kind differ by 2.66 %, as hosted runners were
 * found to. */
#define RUN_NOISE     0.02
#define MACHINE_NOISE 0.0266
#define RUNS          20
#define COMPARISONS   4000

static double speed(tare__random *random, bool differs)
{
    return differs ? fmax(0.5, 1 + MACHINE_NOISE * tare__random_normal(random)) : 1;
}

/* How many of so many comparisons are called a regression. */
static int alarms(bool other_machine, double true_change, double share, uint64_t seed)
{
    tare__random random;
    tare__allowance gate = {.share = share};
    int count = 0;
    tare__random_seed(&random, seed);
    for (int i = 0; i < COMPARISONS; i++) {
        double base[RUNS], head[RUNS];
        double base_speed = speed(&random, other_machine), head_speed = speed(&random, other_machine);
        for (int run = 0; run < RUNS; run++) { /* one after the other, as interleaved runs are */
            base[run] = 1e9 * base_speed * (1 + RUN_NOISE * tare__random_normal(&random));
            head[run] = 1e9 * head_speed * (1 + true_change) * (1 + RUN_NOISE * tare__random_normal(&random));
        }
        count += decide(base, RUNS, head, RUNS, TARE__LOWER, &gate).verdict == TARE__VERDICT_WORSE;
    }
    return count;
}

static void on_one_machine(void **state)
{
    (void)state;
    assert_in_range(alarms(false, 0, TARE__GATE_SHARE, 1), 0, COMPARISONS / 100 - 1);
    assert_in_range(alarms(false, 0.10, TARE__GATE_SHARE, 2), COMPARISONS * 90 / 100 + 1, COMPARISONS);
}

static void against_another_machine(void **state)
{
    (void)state;
    assert_in_range(alarms(true, 0, TARE__GATE_SHARE_WIDE, 3), 0, COMPARISONS / 100 - 1);
    assert_in_range(alarms(true, 0.16, TARE__GATE_SHARE_WIDE, 4), COMPARISONS * 90 / 100 + 1, COMPARISONS);
    /* What the wider gate is for: the narrow one cries wolf there. */
    assert_in_range(alarms(true, 0, TARE__GATE_SHARE, 5), COMPARISONS * 5 / 100, COMPARISONS);
}

/* One run a side: its steps are many and agree, but runs differ by 2 % as a whole. */
static void one_run_a_side(void **state)
{
    (void)state;
    tare__random random;
    tare__random_seed(&random, 7);
    int wide = 0, narrow = 0;
    for (int i = 0; i < COMPARISONS; i++) {
        double base[RUNS], head[RUNS], base_run = RUN_NOISE * tare__random_normal(&random);
        double head_run = RUN_NOISE * tare__random_normal(&random);
        for (int step = 0; step < RUNS; step++) {
            base[step] = 1e6 * (1 + base_run + 0.005 * tare__random_normal(&random));
            head[step] = 1e6 * (1 + head_run + 0.005 * tare__random_normal(&random));
        }
        tare__allowance ten = {.share = TARE__GATE_SHARE_WIDE};
        wide += decide(base, RUNS, head, RUNS, TARE__LOWER, &ten).verdict == TARE__VERDICT_WORSE;
        narrow += decide(base, RUNS, head, RUNS, TARE__LOWER, &five).verdict == TARE__VERDICT_WORSE;
    }
    assert_in_range(wide, 0, COMPARISONS / 100 - 1);
    assert_in_range(narrow, COMPARISONS / 100, COMPARISONS); /* which is why it is not the gate there */
}

/* However noisy and however few the runs: the test alone keeps false alarms below 1 %. */
static void noisy_runs(void **state)
{
    (void)state;
    tare__random random;
    tare__random_seed(&random, 6);
    for (size_t runs = 5; runs <= 20; runs += 5) {
        int count = 0;
        for (int i = 0; i < COMPARISONS; i++) {
            double base[RUNS], head[RUNS];
            for (size_t run = 0; run < runs; run++) {
                base[run] = exp(0.5 * tare__random_normal(&random));
                head[run] = exp(0.5 * tare__random_normal(&random));
            }
            count += decide(base, runs, head, runs, TARE__LOWER, &five).verdict == TARE__VERDICT_WORSE;
        }
        assert_in_range(count, 0, COMPARISONS * 14 / 1000); /* 1 %, and what 4,000 draws may be off */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_three_are_asked_for),
        cmocka_unit_test(which_way_is_worse),
        cmocka_unit_test(too_few_to_tell),
        cmocka_unit_test(exact_and_absent),
        cmocka_unit_test(the_ratio),
        cmocka_unit_test(lower_bounds),
        cmocka_unit_test(on_one_machine),
        cmocka_unit_test(against_another_machine),
        cmocka_unit_test(one_run_a_side),
        cmocka_unit_test(noisy_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
