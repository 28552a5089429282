/* Tests of src/analyze/findings/rules.c: what holds for all built-in rules. Nothing comes from nothing; the worst
 * comes first. One thread.
 * Must not know how any of them decides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

static void nothing_comes_from_nothing(void **state)
{
    (void)state;
    world *w = world_new();
    must_be_silent(w);
    world_free(w);
}

/* Every metric of every subject told absent. */
static void absent_values_are_no_evidence(void **state)
{
    (void)state;
    for (int subject = TARE__SUBJECT_SYSTEM; subject <= TARE__SUBJECT_TARE; subject++)
        for (int metric = 0; metric < TARE__METRIC_COUNT;) {
            world *w = world_new();
            w->of.usage.cores_allowed = 2;
            w->of.usage.memory_allowed_bytes = GB;
            for (int i = 0; i < WORLD_ROWS && metric < TARE__METRIC_COUNT; i++, metric++)
                add_absent(w, (tare__metric)metric, (tare__subject_kind)subject);
            must_be_silent(w);
            world_free(w);
        }
}

/* Values there, limits and companions not. */
static void one_metric_alone_says_nothing(void **state)
{
    (void)state;
    static const tare__metric metrics[] = {
        TARE__M_CPU_USER, TARE__M_CPU_SYSTEM, TARE__M_CPU_THROTTLED, TARE__M_CPU_THROTTLED_PERIODS,
        TARE__M_CPU_IOWAIT, TARE__M_PRESSURE_CPU, TARE__M_THREADS_RUNNING, TARE__M_MEMORY_USED, TARE__M_RSS,
        TARE__M_RSS_ANON, TARE__M_MEMORY_TOTAL, TARE__M_PRESSURE_IO, TARE__M_GPU_BUSY, TARE__M_DISK_QUEUE,
    };
    for (int subject = TARE__SUBJECT_SYSTEM; subject <= TARE__SUBJECT_GPU; subject++)
        for (size_t i = 0; i < TARE__COUNT_OF(metrics); i++) {
            world *w = world_new();
            add_row(w, metrics[i], (tare__subject_kind)subject, 0, "x", one);
            evaluate(w);
            if (metrics[i] == TARE__M_CPU_IOWAIT && subject == SYSTEM) /* all of the CPU time that is known */
                must_find(w, "iowait");
            else
                assert_int_equal(w->of.n_findings, 0);
            world_free(w);
        }
}

static void the_worst_comes_first(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.dropped_spans = 1;
    w->of.run.spans = 1000;
    w->of.run.status = 1;
    w->of.usage.memory_allowed_bytes = GB;
    w->of.usage.tree_rss_max_bytes = 0.97 * GB;
    add_span(w, "main", TARE_KIND_SPAN, TARE__NO_ROW, 10, 1);
    add_span(w, "small", TARE_KIND_SPAN, 0, 3, 3);
    add_span(w, "large", TARE_KIND_SPAN, 0, 6, 6);
    evaluate(w);
    static const char *const order[] = {"memory-high", "spans-dropped", "operation", "operation", "exit-status"};
    assert_int_equal(w->of.n_findings, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(w->of.findings[i].id, order[i]);
    for (size_t i = 1; i < 5; i++)
        assert_true(w->of.findings[i].severity <= w->of.findings[i - 1].severity);
    assert_non_null(strstr(w->of.findings[2].title, "large"));
    world_free(w);
}

static bool is_rule(const char *id)
{
    for (size_t i = 0; i < tare__rule_count; i++)
        if (strcmp(tare__rule_table[i].id, id) == 0)
            return true;
    return false;
}

/* Longest way over pairs from a cause; a circle has no end. */
static size_t steps_from(const char *cause, size_t steps)
{
    size_t most = steps;
    assert_true(steps <= tare__rule_count);
    for (size_t i = 0; i < tare__rule_pair_count; i++)
        if (strcmp(tare__rule_pairs[i].cause, cause) == 0) {
            size_t way = steps_from(tare__rule_pairs[i].symptom, steps + 1);
            most = way > most ? way : most;
        }
    return most;
}

static void pairs_name_rules_and_have_no_circle(void **state)
{
    (void)state;
    for (size_t i = 0; i < tare__rule_pair_count; i++) {
        assert_true(is_rule(tare__rule_pairs[i].cause) && is_rule(tare__rule_pairs[i].symptom));
        assert_true(steps_from(tare__rule_pairs[i].cause, 0) >= 1);
    }
}

static void ids_are_told_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < tare__rule_count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(tare__rule_table[i].id, tare__rule_table[j].id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_comes_from_nothing),
        cmocka_unit_test(absent_values_are_no_evidence),
        cmocka_unit_test(one_metric_alone_says_nothing),
        cmocka_unit_test(the_worst_comes_first),
        cmocka_unit_test(pairs_name_rules_and_have_no_circle),
        cmocka_unit_test(ids_are_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
