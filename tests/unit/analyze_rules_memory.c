/* Tests of src/analyze/findings/rules_memory.c, the rules on memory, over tables made by hand: each fires where
 * it should, and keeps silent where it should not and where the figures are absent.
 * One thread. Must not know how tables are made from a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

static double leak_with_noise(double t)
{
    return leak(t) + 8 * MB * sin(t * 40);
}

static double at_once(double t)
{
    return t < 1 ? 100 * MB : 900 * MB;
}

static double at_half_time(double t)
{
    return t < 5 ? 100 * MB : 900 * MB;
}

static double sawtooth(double t)
{
    return 200 * MB + 400 * MB * (t - floor(t));
}

static double loaded_at_start(double t)
{
    return t < 5 ? 100 * MB + t * 100 * MB : 600 * MB;
}

static double shrinking(double t)
{
    return 900 * MB - t * 50 * MB;
}

static double slow_leak(double t)
{
    return 100 * MB + t * 3 * MB;
}

static double tiny_leak(double t)
{
    return 100 * MB + t * 0.5 * MB;
}

static void memory_growth_has_slope_and_time(void **state)
{
    (void)state;
    static shape *const shapes[] = {leak, leak_with_noise};
    for (size_t i = 0; i < TARE__COUNT_OF(shapes); i++) {
        world *w = world_new();
        w->of.usage.memory_allowed_bytes = 1.7 * GB;
        add_row(w, TARE__M_RSS_ANON, TREE, 0, "", shapes[i]);
        add_row(w, TARE__M_RSS_ANON, PROCESS, 77, "idle", one);
        add_row(w, TARE__M_RSS_ANON, PROCESS, 78, "python3 leak.py", shapes[i]);
        evaluate(w);
        const tare__finding *finding = must_find(w, "memory-growth");
        assert_int_equal(finding->severity, TARE__CRITICAL);
        ABOUT(figure_of(finding, "slope"), 50 * MB);
        assert_true(figure_of(finding, "slope_low") <= figure_of(finding, "slope"));
        assert_true(figure_of(finding, "slope_high") >= figure_of(finding, "slope"));
        assert_true(figure_of(finding, "fit") > 0.95);
        ABOUT(figure_of(finding, "time_to_limit"), (1700 - 690) / 50.0);
        assert_int_equal(figure_of(finding, "pid"), 78);
        assert_non_null(strstr(finding->evidence, "python3 leak.py"));
        assert_true(finding->from_ns > 0 && finding->to_ns <= 10 * SECOND);
        world_free(w);
    }
}

static void growth_to_a_far_limit_is_a_warning(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.memory_allowed_bytes = 64 * GB;
    add_row(w, TARE__M_RSS, TREE, 0, "", leak);
    evaluate(w);
    assert_int_equal(must_find(w, "memory-growth")->severity, TARE__WARNING);
    world_free(w);
}

static void a_slow_leak_is_told_by_its_share(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_RSS_ANON, TREE, 0, "", slow_leak);
    evaluate(w);
    const tare__finding *finding = must_find(w, "memory-growth");
    assert_int_equal(finding->severity, TARE__WARNING);
    assert_true(isnan(figure_of(finding, "time_to_limit"))); /* of a limit that is not known */
    world_free(w);
}

static void what_does_not_grow_steadily_is_left_alone(void **state)
{
    (void)state;
    static shape *const shapes[] = {one, at_once, at_half_time, sawtooth, loaded_at_start, shrinking, tiny_leak};
    for (size_t i = 0; i < TARE__COUNT_OF(shapes); i++) {
        world *w = world_new();
        w->of.usage.memory_allowed_bytes = 2 * GB;
        add_row(w, TARE__M_RSS_ANON, TREE, 0, "", shapes[i]);
        must_be_silent(w);
        world_free(w);
    }
}

static void a_short_run_does_not_grow(void **state)
{
    (void)state;
    world *w = world_new();
    add_row_for(w, TARE__M_RSS_ANON, TREE, 0, 0, "", leak, 1.5);
    must_be_silent(w);
    world_free(w);
}

static void memory_near_its_limit(void **state)
{
    (void)state;
    static const struct {
        double used;
        int severity; /* 0: none */
    } cases[] = {{0.84, 0}, {0.86, TARE__INFO}, {0.92, TARE__WARNING}, {0.97, TARE__CRITICAL}};
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        world *w = world_new();
        w->of.usage.memory_allowed_bytes = 8 * GB;
        w->of.usage.tree_rss_max_bytes = w->of.usage.rss_peak_bytes = cases[i].used * 8 * GB;
        w->of.usage.rss_peak_process = "train";
        evaluate(w);
        const tare__finding *finding = found(w, "memory-high");
        assert_int_equal(finding ? (int)finding->severity : 0, cases[i].severity);
        if (finding)
            ABOUT(figure_of(finding, "share"), cases[i].used);
        world_free(w);
    }
}

/* Forked workers share pages: their sum may be more than there is. */
static void shared_pages_are_not_counted_as_use(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.memory_allowed_bytes = 8 * GB;
    w->of.usage.tree_rss_max_bytes = 20 * GB;
    w->of.usage.rss_peak_bytes = 4 * GB;
    must_be_silent(w);
    world_free(w);
}

static void the_limit_unknown_sixteen_gigabytes_are_told(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.rss_peak_bytes = 17 * GB;
    evaluate(w);
    assert_int_equal(must_find(w, "memory-large")->severity, TARE__INFO);
    w->of.usage.memory_allowed_bytes = 128 * GB;
    must_be_silent(w);
    w->of.usage.memory_allowed_bytes = NAN;
    w->of.usage.rss_peak_bytes = 15 * GB;
    must_be_silent(w);
    world_free(w);
}

static double swapped(double t)
{
    return t < 4 ? 0 : 300 * MB;
}

static double swapping(double t)
{
    return t < 4 ? 0 : 50 * MB;
}

static void swapped_memory(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_SWAP_IN, SYSTEM, 0, "", swapping);
    add_row(w, TARE__M_SWAP_OUT, SYSTEM, 0, "", swapping);
    add_row(w, TARE__M_SWAPPED, PROCESS, 7, "train", swapped);
    evaluate(w);
    const tare__finding *finding = must_find(w, "swap");
    assert_int_equal(finding->severity, TARE__CRITICAL);
    ABOUT(figure_of(finding, "swapped"), 300 * MB);
    ABOUT(finding->from_ns, 4 * SECOND);
    assert_true(isnan(finding->gain));
    world_free(w);
    w = world_new(); /* swap that is full of others' old pages is no news */
    add_row(w, TARE__M_SWAP_IN, SYSTEM, 0, "", zero);
    add_row(w, TARE__M_SWAP_OUT, SYSTEM, 0, "", zero);
    add_row(w, TARE__M_SWAPPED, PROCESS, 7, "train", zero);
    must_be_silent(w);
    world_free(w);
}

static void snapshots_that_grow(void **state)
{
    (void)state;
    static const double few[] = {100, 150, 201}, jump[] = {0, 0, 0, 0, 500, 500, 500, 500},
                        late[] = {0, 0, 0, 0, 0, 0, 0, 500}, grown[] = {0, 30, 25, 40, 60, 50, 80, 100},
                        warm[] = {0, 200, 400, 400, 400, 400, 400, 400}, teeth[] = {0, 100, 200, 0, 100, 200, 0, 100};
    assert_true(tare__grows_throughout(few, 3, 100));
    assert_false(tare__grows_throughout(few, 2, 100));
    assert_true(tare__grows_throughout(grown, 8, 100));
    assert_false(tare__grows_throughout(grown, 8, 400)); /* an eighth of it is more than in the first quarter */
    assert_false(tare__grows_throughout(jump, 8, 100));
    assert_false(tare__grows_throughout(late, 8, 100));
    assert_false(tare__grows_throughout(warm, 8, 100));
    assert_false(tare__grows_throughout(teeth, 8, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_growth_has_slope_and_time),
        cmocka_unit_test(growth_to_a_far_limit_is_a_warning),
        cmocka_unit_test(a_slow_leak_is_told_by_its_share),
        cmocka_unit_test(what_does_not_grow_steadily_is_left_alone),
        cmocka_unit_test(a_short_run_does_not_grow),
        cmocka_unit_test(memory_near_its_limit),
        cmocka_unit_test(shared_pages_are_not_counted_as_use),
        cmocka_unit_test(the_limit_unknown_sixteen_gigabytes_are_told),
        cmocka_unit_test(swapped_memory),
        cmocka_unit_test(snapshots_that_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
