/* Tests of src/analyze/findings/rules_steps.c, the rules on steps, over tables made by hand: each fires where
 * it should, and keeps silent where it should not and where the figures are absent.
 * One thread. Must not know how tables are made from a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

static void steps_that_differ(void **state)
{
    (void)state;
    world *w = world_new();
    tare__step_row *row = add_steps(w, 20, 0.1, 0.1, 0.6);
    evaluate(w);
    const tare__finding *finding = must_find(w, "step-variance");
    ABOUT(figure_of(finding, "ratio"), 6);
    ABOUT(finding->gain, 0.05);
    assert_int_equal(finding->severity, TARE__INFO); /* a single one */
    row->each.p95_ns = 0.3 * SECOND;
    evaluate(w);
    assert_int_equal(must_find(w, "step-variance")->severity, TARE__WARNING);
    world_free(w);
}

static double tenth(double t)
{
    return 0.1 + t * 0;
}

static double almost_two(double t)
{
    return 1.95 + t * 0;
}

/* A program that sleeps in its steps is seen runnable too seldom: what the machine tells of its CPUs counts. */
static void steps_that_differ_for_others_on_the_machine(void **state)
{
    (void)state;
    world *w = world_new();
    add_steps(w, 20, 0.1, 0.1, 0.6)->each.p95_ns = 0.3 * SECOND;
    w->of.run.cpus = 2;
    w->of.usage.cores_allowed = 2;
    add_cores(w, TREE, 0, "", tenth);
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", tenth);
    tare__metric_row *pressure = add_row(w, TARE__M_PRESSURE_CPU, SYSTEM, 0, "", one);
    add_cores(w, SYSTEM, 0, "", almost_two);
    tare__metric_row *idle = add_row(w, TARE__M_CPU_IDLE, SYSTEM, 0, "", zero);
    evaluate(w);
    const tare__finding *finding = must_find(w, "step-variance");
    assert_int_equal(finding->severity, TARE__INFO);
    assert_non_null(strstr(finding->evidence, "Other processes used 1.85 cores"));
    assert_null(strstr(finding->advice, "inputs of different sizes"));
    assert_non_null(strstr(finding->advice, "idle machine"));
    pressure->mean = 0.1; /* nobody waits */
    evaluate(w);
    assert_int_equal(must_find(w, "step-variance")->severity, TARE__WARNING);
    pressure->mean = 1;
    idle->mean = 1.5; /* there are CPUs */
    evaluate(w);
    assert_int_equal(must_find(w, "step-variance")->severity, TARE__WARNING);
    assert_non_null(strstr(must_find(w, "step-variance")->advice, "inputs of different sizes"));
    world_free(w);
}

/* 19 steps of 0.1 ms and one of 35 ms, which all but one fall into the first bin of a histogram up to it. */
static void one_slow_step_saves_no_more_than_itself(void **state)
{
    (void)state;
    world *w = world_new();
    tare__step_row *row = add_steps(w, 20, 0.0001, 0.0001, 0.035);
    row->bins = (tare__step_bins){.from_ns = 0, .width_ns = 0.035 * SECOND / 47};
    row->bins.counts[0] = 19;
    row->bins.counts[47] = 1;
    row->total_ns = row->timed_ns = (19 * 0.0001 + 0.035) * SECOND;
    w->of.run.elapsed_ns = row->total_ns;
    evaluate(w);
    ABOUT(must_find(w, "step-variance")->gain, 0.0349 / 0.0369); /* and not all of it */
    world_free(w);
}

/* The first began behind its loading. */
static void the_first_step_is_not_the_fastest(void **state)
{
    (void)state;
    world *w = world_new();
    tare__step_row *row = add_steps(w, 20, 0.01, 0.1, 0.6);
    row->each.min_ns = 0.01 * SECOND;
    row->rest_min_ns = 0.1 * SECOND;
    evaluate(w);
    const tare__finding *finding = must_find(w, "step-variance");
    ABOUT(figure_of(finding, "ratio"), 6);
    ABOUT(figure_of(finding, "fastest"), 0.1);
    world_free(w);
}

static void slow_steps_at_equal_distances(void **state)
{
    (void)state;
    world *w = world_new();
    tare__step_row *row = add_steps(w, 400, 0.01, 0.01, 0.6);
    for (size_t i = 0; i < 4; i++)
        row->slowest[i] = (tare__slow_step){0.6 * SECOND, (double)i * SECOND, 100 * (4 - i), true, false, 0};
    row->n_slowest = 4;
    evaluate(w);
    assert_non_null(strstr(must_find(w, "step-variance")->evidence, "every 100 steps"));
    world_free(w);
}

/* Of two ranks, and with common distances by chance. */
static void slow_steps_at_no_distances(void **state)
{
    (void)state;
    static const uint64_t indexes[][4] = {{64, 16, 64, 16}, {51, 51, 13, 13}, {120, 84, 12, 12}, {129, 114, 109, 104}};
    for (size_t k = 0; k < TARE__COUNT_OF(indexes); k++) {
        world *w = world_new();
        tare__step_row *row = add_steps(w, 400, 0.01, 0.01, 0.6);
        for (size_t i = 0; i < 4; i++)
            row->slowest[i] = (tare__slow_step){0.6 * SECOND, (double)i * SECOND, indexes[k][i], true, false, 0};
        row->n_slowest = 4;
        evaluate(w);
        assert_null(strstr(must_find(w, "step-variance")->evidence, "The slow ones come every"));
        world_free(w);
    }
}

/* The first ones of models and ranks began behind their loading: slow by warm-up, or fast without loading. */
static void partial_steps_are_not_compared(void **state)
{
    (void)state;
    world *w = world_new();
    tare__step_row *row = add_steps(w, 20, 0.1, 0.1, 0.6);
    row->partial = 2;
    row->timed = 18;
    row->slowest[0].partial = true;
    evaluate(w);
    must_not_find(w, "step-variance");
    world_free(w);
}

static void equal_steps_and_one_hiccup_in_many(void **state)
{
    (void)state;
    world *w = world_new();
    add_steps(w, 20, 0.1, 0.1, 0.15);
    must_be_silent(w);
    world_free(w);
    w = world_new();
    add_steps(w, 100000, 0.0001, 0.0001, 0.003);
    must_be_silent(w);
    world_free(w);
    w = world_new(); /* only the first differs: that has a rule of its own */
    add_steps(w, 20, 0.9, 0.1, 0.1);
    evaluate(w);
    must_not_find(w, "step-variance");
    must_find(w, "slow-first-step");
    world_free(w);
    w = world_new(); /* too few */
    add_steps(w, 4, 0.9, 0.1, 0.9);
    must_be_silent(w);
    world_free(w);
}

static void a_slow_first_step(void **state)
{
    (void)state;
    world *w = world_new();
    add_steps(w, 20, 0.5, 0.1, 0.1);
    evaluate(w);
    const tare__finding *finding = must_find(w, "slow-first-step");
    assert_int_equal(finding->severity, TARE__INFO);
    assert_true(isnan(finding->gain)); /* it is before steady state */
    ABOUT(figure_of(finding, "ratio"), 5);
    world_free(w);
    w = world_new();
    add_steps(w, 20, 0.19, 0.1, 0.1);
    must_be_silent(w);
    world_free(w);
    w = world_new(); /* three times as long, and nobody would notice */
    add_steps(w, 20, 0.003, 0.001, 0.001);
    must_be_silent(w);
    world_free(w);
}

static void durations_that_are_uneven(void **state)
{
    (void)state;
    tare__evenness of = {100, 1e6, 2e6, 2.6e6, 4e6, NAN};
    assert_true(tare__is_uneven(&of));
    of.p95_ns = 2.5e6;
    assert_false(tare__is_uneven(&of));
    of.excess = 0.02;
    assert_true(tare__is_uneven(&of));
    of.slowest_ns = 2e6; /* twice the fastest, and no more */
    assert_false(tare__is_uneven(&of));
    of.slowest_ns = NAN;
    assert_false(tare__is_uneven(&of));
    of = (tare__evenness){4, 1e6, 2e6, 2.6e6, 4e6, NAN};
    assert_false(tare__is_uneven(&of));
    of = (tare__evenness){100, 1e3, 2e3, 2.6e3, 4e3, NAN};
    assert_false(tare__is_uneven(&of));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_differ),
        cmocka_unit_test(steps_that_differ_for_others_on_the_machine),
        cmocka_unit_test(one_slow_step_saves_no_more_than_itself),
        cmocka_unit_test(the_first_step_is_not_the_fastest),
        cmocka_unit_test(slow_steps_at_equal_distances),
        cmocka_unit_test(slow_steps_at_no_distances),
        cmocka_unit_test(partial_steps_are_not_compared),
        cmocka_unit_test(equal_steps_and_one_hiccup_in_many),
        cmocka_unit_test(a_slow_first_step),
        cmocka_unit_test(durations_that_are_uneven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
