/* Tests of src/analyze/findings/rules_run.c over tables made by hand: what is said of how a run ended and of what was
 * dropped, and what is not.
 * One thread. Must not know how tables are made from a trace. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

static double explodes(double t)
{
    return t < 6 ? 100 * MB : 100 * MB + (t - 6) * 250 * MB;
}

static void killed_for_want_of_memory(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.oom_killed = true;
    w->of.run.signal = SIGKILL;
    w->of.run.status = 137;
    w->of.usage.memory_allowed_bytes = 1.1 * GB;
    w->of.usage.tree_rss_max_bytes = 1.08 * GB;
    add_row(w, TARE__M_RSS_ANON, PROCESS, 11, "sh", one);
    add_row(w, TARE__M_RSS_ANON, PROCESS, 12, "python3 train.py", explodes);
    add_span(w, "epoch", TARE_KIND_EPOCH, TARE__NO_ROW, 1, 0)->still_open = 1;
    add_span(w, "collate", TARE_KIND_SPAN, 0, 1, 0)->still_open = 1;
    evaluate(w);
    const tare__finding *finding = &w->of.findings[0];
    assert_string_equal(finding->id, "killed-oom");
    assert_int_equal(finding->severity, TARE__CRITICAL);
    assert_int_equal(figure_of(finding, "pid"), 12);
    assert_true(figure_of(finding, "rate") > 150 * MB && figure_of(finding, "rate") < 300 * MB);
    assert_non_null(strstr(finding->evidence, "python3 train.py"));
    assert_non_null(strstr(finding->evidence, "collate"));
    must_not_find(w, "memory-high");
    must_not_find(w, "ended-by-signal");
    must_not_find(w, "exit-status");
    world_free(w);
}

static void killed_and_leaking_is_told_in_order(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.oom_killed = true;
    w->of.usage.memory_allowed_bytes = 0.7 * GB;
    w->of.usage.tree_rss_max_bytes = 0.69 * GB;
    w->of.usage.cores_allowed = 2;
    add_row(w, TARE__M_RSS_ANON, TREE, 0, "", leak);
    add_cores(w, TREE, 0, "", one);
    add_cores(w, PROCESS, 7, "python3", one);
    add_row(w, TARE__M_THREADS, PROCESS, 7, "python3", one);
    evaluate(w);
    assert_string_equal(w->of.findings[0].id, "killed-oom");
    assert_string_equal(w->of.findings[1].id, "memory-growth");
    assert_string_equal(w->of.findings[2].id, "one-core");
    world_free(w);
}

static void a_kill_at_the_limit_is_taken_for_it(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.signal = SIGKILL;
    w->of.usage.memory_allowed_bytes = GB;
    w->of.usage.tree_rss_max_bytes = 0.98 * GB;
    evaluate(w);
    must_find(w, "killed-oom");
    w->of.usage.tree_rss_max_bytes = 0.5 * GB;
    evaluate(w);
    must_not_find(w, "killed-oom");
    must_find(w, "ended-by-signal");
    w->of.usage.memory_allowed_bytes = NAN;
    evaluate(w);
    must_not_find(w, "killed-oom");
    world_free(w);
}

static void signals_and_statuses(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.signal = SIGSEGV;
    w->of.run.status = 139;
    evaluate(w);
    assert_non_null(strstr(must_find(w, "ended-by-signal")->title, "SIGSEGV"));
    must_not_find(w, "exit-status");
    w->of.run.signal = 0;
    w->of.run.status = 3;
    evaluate(w);
    assert_int_equal(must_find(w, "exit-status")->severity, TARE__INFO);
    w->of.run.status = -1; /* not known */
    must_be_silent(w);
    world_free(w);
}

static void dropped_spans(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.spans = 900;
    must_be_silent(w);
    w->of.run.dropped_spans = 100;
    evaluate(w);
    const tare__finding *finding = must_find(w, "spans-dropped");
    assert_int_equal(finding->severity, TARE__WARNING);
    ABOUT(figure_of(finding, "share"), 0.1);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_for_want_of_memory),
        cmocka_unit_test(killed_and_leaking_is_told_in_order),
        cmocka_unit_test(a_kill_at_the_limit_is_taken_for_it),
        cmocka_unit_test(signals_and_statuses),
        cmocka_unit_test(dropped_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
