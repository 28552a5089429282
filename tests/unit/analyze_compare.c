/* Tests of src/analyze/compare/compare.c: matching, verdicts, order, warnings; and by simulation how often it is wrong.
 * One thread.
 * Must not know how a comparison is shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/analyze.h"
#include "stat/stat.h"

static tare__figures *list(uint64_t runs)
{
    tare__figures *made = tare__figures_new(runs > 1 ? "runs" : "run");
    assert_non_null(made);
    made->runs = runs;
    made->machine = "m"; /* the same one */
    return made;
}

static void add(tare__figures *to, tare__figure figure)
{
    assert_int_equal(tare__figures_add(to, &figure), 0);
}

/* Samples around a value; `slow` lasts over neighbours. */
static void add_noisy(tare__figures *to, const char *name, const char *per, size_t n, double value, double noise,
                      double slow, tare__random *random)
{
    static double samples[TARE__FIGURE_SAMPLES_MAX];
    double lasting = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        lasting = 0.9 * lasting + slow * tare__random_normal(random);
        samples[i] = value * exp(noise * tare__random_normal(random) + lasting);
        sum += samples[i];
    }
    add(to, (tare__figure){.name = name, .unit = "ns", .per = per, .better = TARE__LOWER, .value = NAN, .total = sum,
                           .n = n, .each = 1, .samples = samples, .n_samples = n});
}

static tare__comparison *compare(const tare__figures *base, const tare__figures *head)
{
    tare__comparison *made;
    assert_int_equal(tare__compare(base, head, NULL, &made), 0);
    return made;
}

static const tare__compared *row_of(const tare__comparison *from, const char *name)
{
    for (size_t i = 0; i < from->n; i++)
        if (strcmp(from->rows[i].base->name, name) == 0)
            return &from->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static bool has_warning(const tare__comparison *from, const char *words)
{
    for (size_t i = 0; i < from->n_warnings; i++)
        if (strstr(from->warnings[i], words))
            return true;
    return false;
}

static void done(tare__comparison *made, tare__figures *base, tare__figures *head)
{
    tare__comparison_free(made);
    tare__figures_free(base);
    tare__figures_free(head);
}

/* ---- verdicts --------------------------------------------------------------------------------- */
static void a_change_has_its_size_and_direction(void **state)
{
    (void)state;
    tare__random random;
    tare__random_seed(&random, 1);
    tare__figures *base = list(10), *head = list(10);
    add_noisy(base, "run.elapsed", "run", 10, 100e6, 0.01, 0, &random);
    add_noisy(head, "run.elapsed", "run", 10, 120e6, 0.01, 0, &random);
    add_noisy(base, "step", "run", 10, 50e6, 0.01, 0, &random);
    add_noisy(head, "step", "run", 10, 40e6, 0.01, 0, &random);
    add_noisy(base, "epoch", "run", 10, 70e6, 0.01, 0, &random);
    add_noisy(head, "epoch", "run", 10, 70e6, 0.01, 0, &random);
    tare__comparison *made = compare(base, head);
    const tare__compared *slower = row_of(made, "run.elapsed"), *faster = row_of(made, "step"),
                         *same = row_of(made, "epoch");
    assert_int_equal(slower->decision.verdict, TARE__VERDICT_WORSE);
    assert_true(slower->decision.change > 0.17 && slower->decision.change < 0.23);
    assert_true(slower->decision.low > 0.15 && slower->decision.low < slower->decision.change &&
                slower->decision.high > slower->decision.change && slower->decision.high < 0.25);
    assert_true(slower->decision.p < 0.001 && slower->decision.adjusted >= slower->decision.p);
    assert_true(slower->decision.effect == 1);
    assert_string_equal(tare__effect_word(slower->decision.effect), "large");
    assert_int_equal(faster->decision.verdict, TARE__VERDICT_BETTER);
    assert_true(faster->cost < 0);
    assert_int_equal(same->decision.verdict, TARE__VERDICT_SAME);
    assert_true(same->decision.low < 0 && same->decision.high > 0);
    assert_int_equal(made->worse, 1);
    assert_int_equal(made->better, 1);
    assert_false(has_warning(made, "one run per side"));
    done(made, base, head);
}

static void few_values_tell_nothing(void **state)
{
    (void)state;
    tare__random random;
    tare__random_seed(&random, 1);
    tare__figures *base = list(1), *head = list(1);
    add(base, (tare__figure){.name = "run.elapsed", .unit = "ns", .better = TARE__LOWER, .value = 10, .total = 10});
    add(head, (tare__figure){.name = "run.elapsed", .unit = "ns", .better = TARE__LOWER, .value = 20, .total = 20});
    add_noisy(base, "step", "call", 3, 50, 0.01, 0, &random);
    add_noisy(head, "step", "call", 4, 90, 0.01, 0, &random);
    add(base, (tare__figure){.name = "x", .unit = "ns", .value = 10});
    add(head, (tare__figure){.name = "x", .unit = "bytes", .value = 10});
    add(base, (tare__figure){.name = "absent", .unit = "ns", .value = NAN});
    add(head, (tare__figure){.name = "absent", .unit = "ns", .value = 10});
    tare__comparison *made = compare(base, head);
    assert_int_equal(made->inconclusive, 4);
    assert_int_equal(row_of(made, "run.elapsed")->decision.why, TARE__WHY_FEW);
    assert_true(row_of(made, "run.elapsed")->decision.change == 1 && isnan(row_of(made, "run.elapsed")->decision.p));
    assert_int_equal(row_of(made, "step")->decision.why, TARE__WHY_FEW);
    assert_int_equal(row_of(made, "x")->decision.why, TARE__WHY_UNITS);
    assert_int_equal(row_of(made, "absent")->decision.why, TARE__WHY_ABSENT);
    assert_true(has_warning(made, "one run per side"));
    done(made, base, head);
}

static void calls_and_steps_are_not_compared(void **state)
{
    (void)state;
    tare__random random;
    tare__random_seed(&random, 1);
    tare__figures *base = list(1), *head = list(1);
    add_noisy(base, "operator:mm", "call", 30, 50, 0.01, 0, &random);
    add_noisy(head, "operator:mm", "step", 30, 500, 0.01, 0, &random);
    tare__comparison *made = compare(base, head);
    assert_int_equal(made->rows[0].decision.verdict, TARE__VERDICT_INCONCLUSIVE);
    assert_int_equal(made->rows[0].decision.why, TARE__WHY_COUNTED);
    done(made, base, head);
}

static void one_run_against_several_is_inconclusive(void **state)
{
    (void)state;
    tare__random random;
    tare__random_seed(&random, 1);
    tare__figures *base = list(8), *head = list(1);
    add_noisy(base, "step", "run", 8, 50e6, 0.01, 0, &random);
    add_noisy(head, "step", "call", 200, 60e6, 0.01, 0, &random);
    tare__comparison *made = compare(base, head);
    assert_int_equal(made->rows[0].decision.verdict, TARE__VERDICT_INCONCLUSIVE);
    assert_int_equal(made->rows[0].decision.why, TARE__WHY_ONE_AND_MANY);
    assert_int_equal(made->rows[0].decision.n_base, 8);
    assert_true(made->rows[0].decision.change > 0.17 && made->rows[0].decision.change < 0.23);
    assert_true(made->rows[0].decision.effect == 1); /* above all of them */
    tare__comparison_free(made);
    made = compare(head, base);
    assert_true(made->rows[0].decision.effect == -1);
    done(made, base, head);
}

/* Two commands in turn: a round without a value on one side leaves no gap, so that later values are of other rounds. */
static void values_of_different_rounds_are_no_pairs(void **state)
{
    (void)state;
    static const double before[] = {100, 110, 121, 133, 146, 161, 177, 194, 214};
    static const double after[] = {111, 122, 135, 148, 163, 179, 197, 217, 239};
    tare__figure figure = {.name = "metric:memory.rss", .unit = "", .per = "run", .better = TARE__LOWER, .value = NAN,
                           .n = 9, .each = 1, .samples = before, .n_samples = 9};
    for (uint64_t rounds = 9; rounds <= 10; rounds++) {
        tare__figures *base = list(rounds), *head = list(rounds);
        tare__comparison *made;
        figure.samples = before;
        add(base, figure);
        figure.samples = after;
        add(head, figure);
        tare__compare_options options = {.min_change = NAN, .paired = true};
        assert_int_equal(tare__compare(base, head, &options, &made), 0);
        /* In pairs all nine are above, 2 / 2^9; as two samples they lie among each other. */
        if (rounds == 9)
            assert_true(fabs(made->rows[0].decision.p - 2.0 / 512) < 1e-12);
        else
            assert_true(made->rows[0].decision.p > 0.2);
        done(made, base, head);
    }
}

static void exact_figures_need_no_test(void **state)
{
    (void)state;
    tare__figures *base = list(1), *head = list(1);
    add(base,
        (tare__figure){
            .name = "model.flops", .exact = true, .better = TARE__LOWER, .value = 4089184256, .total = NAN});
    add(head,
        (tare__figure){
            .name = "model.flops", .exact = true, .better = TARE__LOWER, .value = 4089184257, .total = NAN});
    add(base, (tare__figure){.name = "model.parameters", .exact = true, .value = 5, .total = NAN});
    add(head, (tare__figure){.name = "model.parameters", .exact = true, .value = 5, .total = NAN});
    tare__comparison *made = compare(base, head);
    assert_int_equal(row_of(made, "model.flops")->decision.verdict, TARE__VERDICT_WORSE);
    assert_int_equal(row_of(made, "model.parameters")->decision.verdict, TARE__VERDICT_SAME);
    assert_false(has_warning(made, "one run per side")); /* more runs would say the same */
    done(made, base, head);
}

static void values_below_zero_have_no_ratio(void **state)
{
    (void)state;
    tare__figures *base = list(1), *head = list(1);
    double low[20], high[20];
    for (int i = 0; i < 20; i++) {
        low[i] = -5 - 0.01 * i;
        high[i] = 5 + 0.01 * i;
    }
    tare__figure figure = {.name = "counter:loss",
                           .per = "value",
                           .value = NAN,
                           .total = NAN,
                           .each = 1,
                           .samples = low,
                           .n_samples = 20};
    add(base, figure);
    figure.samples = high;
    add(head, figure);
    tare__comparison *made = compare(base, head);
    assert_int_equal(made->rows[0].decision.verdict, TARE__VERDICT_DIFFERENT);
    assert_true(fabs(made->rows[0].decision.change - 2) < 1e-9 && made->rows[0].decision.effect == 1);
    assert_true(isnan(made->rows[0].decision.low));
    done(made, base, head);
}

/* ---- order, what is only in one, warnings ----------------------------------------------------- */
static void parts_come_by_absolute_cost(void **state)
{
    (void)state;
    tare__figures *base = list(1), *head = list(1);
    const struct {
        const char *name;
        double before, after;
    } spans[] = {{"span:a", 100, 101},
                 {"span:b", 10, 90},
                 {"operator:mm", 1000, 10},
                 {"span:c", 900, 700},
                 {"run.elapsed", 5, 6}};
    for (size_t i = 0; i < TARE__COUNT_OF(spans); i++) {
        add(base,
            (tare__figure){
                .name = spans[i].name, .unit = "ns", .value = spans[i].before, .total = spans[i].before});
        add(head, (tare__figure){
                      .name = spans[i].name, .unit = "ns", .value = spans[i].after, .total = spans[i].after});
    }
    add(base, (tare__figure){.name = "span:gone small", .unit = "ns", .value = 1, .total = 1});
    add(base, (tare__figure){.name = "span:gone", .unit = "ns", .value = 1, .total = 100});
    add(head, (tare__figure){.name = "span:new", .unit = "ns", .value = 1, .total = NAN});
    tare__comparison *made = compare(base, head);
    static const char *const order[] = {"run.elapsed", "c", "b", "a", "mm"};
    for (size_t i = 0; i < TARE__COUNT_OF(order); i++)
        assert_string_equal(made->rows[i].name, order[i]);
    assert_int_equal(made->rows[4].section, TARE__SECTION_OPERATORS);
    assert_int_equal(made->n_only_base, 2);
    assert_string_equal(made->only_base[0]->name, "span:gone");
    assert_int_equal(made->n_only_head, 1);
    done(made, base, head);
}

static void what_differs_besides_is_told(void **state)
{
    (void)state;
    tare__figures *base = list(1), *head = list(1);
    base->command = "python a.py";
    head->command = "python b.py";
    base->host = head->host = "h";
    base->cpu_model = "one";
    head->cpu_model = "two";
    base->revision = "abc";
    head->revision = "def";
    assert_int_equal(tare__figures_note(head, "the file is unfinished"), 0);
    tare__comparison *made = compare(base, head);
    assert_true(has_warning(made, "different machines"));
    assert_true(has_warning(made, "different commands"));
    assert_true(has_warning(made, "different revisions: baseline abc, candidate def"));
    assert_true(has_warning(made, "candidate: the file is unfinished"));
    tare__comparison_free(made);
    head->cpu_model = "one";
    base->machine = "1";
    head->machine = "2";
    made = compare(base, head);
    assert_true(has_warning(made, "the machine has changed"));
    done(made, base, head);
}

static tare__figures *waiting(double elapsed_ns, double cpu_ns)
{
    tare__figures *made = list(1);
    const char *const names[] = {"run.elapsed", "run.cpu"};
    for (int i = 0; i < 2; i++) {
        double ns = i ? cpu_ns : elapsed_ns;
        add(made, (tare__figure){.name = names[i], .unit = "ns", .better = TARE__LOWER, .value = ns, .total = ns});
    }
    return made;
}

static void larger_part_of_its_time_waiting(void **state)
{
    (void)state;
    tare__figures *base = waiting(10e9, 2e9), *head = waiting(4.5e9, 5e8); /* it waits 4 s instead of 8 s */
    tare__comparison *made = compare(base, head);
    assert_true(has_warning(made, "the candidate waited for a larger part of its time"));
    assert_false(has_warning(made, "waited more"));
    done(made, base, head);
}

static void what_a_median_does_not_see_is_told(void **state)
{
    (void)state;
    tare__figures *base = list(1), *head = list(1);
    double even[100], torn[100];
    for (int i = 0; i < 100; i++) {
        even[i] = 100 + i % 7;
        torn[i] = i % 10 ? even[i] : 1000;
    }
    tare__figure step = {.name = "step", .unit = "ns", .per = "call", .better = TARE__LOWER, .value = NAN, .n = 100,
                         .each = 1, .n_samples = 100, .samples = even, .total = 10300};
    add(base, step);
    step.samples = torn;
    step.total = 19270;
    add(head, step);
    tare__comparison *made = compare(base, head);
    assert_int_equal(row_of(made, "step")->decision.verdict, TARE__VERDICT_SAME);
    assert_true(has_warning(made, "step: the median is alike and the mean is not: it grew by 87 %"));
    done(made, base, head);
}

/* ---- how often it is wrong -------------------------------------------------------------------- */
#define FIGURES 20

/* Runs of one thing: 20 spans and three figures of the whole. How many comparisons say that something changed. */
static int alarms(size_t runs, size_t samples, double slow, double change, int trials, uint64_t seed, bool whole)
{
    tare__random random;
    int alarmed = 0;
    tare__random_seed(&random, seed);
    for (int trial = 0; trial < trials; trial++) {
        tare__figures *sides[2] = {list(runs), list(runs)};
        for (int side = 0; side < 2; side++) {
            size_t n = runs > 1 ? runs : samples;
            const char *per = runs > 1 ? "run" : "call";
            double level = side ? 1e9 * (1 + change) : 1e9;
            static const char *const wholes[] = {"run.elapsed", "step", "run.cpu"};
            for (int i = 0; i < 3; i++)
                add_noisy(sides[side], wholes[i], per, n, level, 0.02, slow, &random);
            for (int i = 0; i < FIGURES; i++) {
                char name[32];
                snprintf(name, sizeof name, "span:%d", i);
                add_noisy(sides[side], name, per, n, level, 0.02, slow, &random);
            }
        }
        tare__comparison *made = compare(sides[0], sides[1]);
        bool said = whole ? row_of(made, "run.elapsed")->decision.verdict == TARE__VERDICT_WORSE
                          : made->worse + made->better > 0;
        alarmed += said;
        done(made, sides[0], sides[1]);
    }
    return alarmed;
}

static void runs_that_are_alike_are_called_alike(void **state)
{
    (void)state;
    int several = alarms(10, 0, 0, 0, 200, 1, false);
    int one = alarms(1, 200, 0.004, 0, 40, 2, false); /* what lasts inside a run is not taken for a change */
    print_message("alarms without a change: %d of 200 with ten runs a side, %d of 40 with one\n", several, one);
    assert_true(several <= 20);
    assert_true(one <= 4);
}

static void runs_that_differ_are_found(void **state)
{
    (void)state;
    int several = alarms(10, 0, 0, 0.08, 60, 3, true), one = alarms(1, 200, 0.004, 0.15, 40, 4, true);
    print_message("found: 8 %% in %d of 60 with ten runs a side, 15 %% in %d of 40 with one\n", several, one);
    assert_true(several >= 57);
    assert_true(one >= 36);
}

/* ---- functions of sampled stacks ------------------------------------------------------------------------------- */
/* The same function in the same file, wherever that is; changes below 0.25 points are none. */
static void functions_by_their_share(void **state)
{
    (void)state;
    static const tare__function_row before[] = {
        {.function = "decode", .file = "/old/json.py", .self_share = 0.5},
        {.function = "decode", .file = "/old/other.py", .self_share = 0.1},
        {.function = "steady", .self_share = 0.3},
        {.function = "gone", .file = "a.py", .self_share = 0.05},
    }, after[] = {
        {.function = "fresh", .file = "/new/b.py", .self_share = 0.19},
        {.function = "steady", .self_share = 0.302},
        {.function = "decode", .file = "/new/json.py", .self_share = 0.15},
        {.function = "decode", .file = "/new/lib/json.py", .self_share = 0.15},
        {.function = "decode", .file = "/new/other.py", .self_share = 0.1},
        {.function = "unknown", .self_share = NAN},
    };
    static const struct {
        const char *function, *file;
        double base, head;
    } expected[] = {{"decode", "json.py", 0.5, 0.3}, {"fresh", "b.py", 0, 0.19}, {"gone", "a.py", 0.05, 0}};
    tare__analysis base = {.functions = before, .n_functions = TARE__COUNT_OF(before)};
    tare__analysis head = {.functions = after, .n_functions = TARE__COUNT_OF(after)};
    tare__figures *lists[2] = {list(1), list(1)};
    tare__comparison *from = compare(lists[0], lists[1]);
    assert_int_equal(tare__compare_functions(from, &base, &head), 0);
    assert_int_equal(from->n_functions, TARE__COUNT_OF(expected));
    for (size_t i = 0; i < from->n_functions; i++) {
        const tare__compared_function *row = &from->functions[i];
        assert_string_equal(row->function, expected[i].function);
        assert_string_equal(row->file, expected[i].file);
        assert_float_equal(row->base, expected[i].base, 1e-12);
        assert_float_equal(row->head, expected[i].head, 1e-12);
        assert_float_equal(row->change, expected[i].head - expected[i].base, 1e-12);
    }
    tare__comparison_free(from);
    tare__figures_free(lists[0]);
    tare__figures_free(lists[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_has_its_size_and_direction),
        cmocka_unit_test(few_values_tell_nothing),
        cmocka_unit_test(calls_and_steps_are_not_compared),
        cmocka_unit_test(one_run_against_several_is_inconclusive),
        cmocka_unit_test(values_of_different_rounds_are_no_pairs),
        cmocka_unit_test(exact_figures_need_no_test),
        cmocka_unit_test(values_below_zero_have_no_ratio),
        cmocka_unit_test(parts_come_by_absolute_cost),
        cmocka_unit_test(what_differs_besides_is_told),
        cmocka_unit_test(what_a_median_does_not_see_is_told),
        cmocka_unit_test(runs_that_are_alike_are_called_alike),
        cmocka_unit_test(runs_that_differ_are_found),
        cmocka_unit_test(functions_by_their_share),
        cmocka_unit_test(larger_part_of_its_time_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
