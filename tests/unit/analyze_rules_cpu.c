/* Tests of src/analyze/findings/rules_cpu.c, the rules on processors, over tables made by hand: each fires where
 * it should, and keeps silent where it should not and where the figures are absent.
 * One thread. Must not know how tables are made from a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

static double nearly_two(double t)
{
    return 1.98 + t * 0;
}

static double ten_a_second(double t)
{
    return 10 + t * 0;
}

static void held_back_by_a_limit(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 0.5;
    add_row(w, TARE__M_CPU_PERIODS, CONTAINER, 0, "", ten_a_second);
    tare__metric_row *hit = add_row(w, TARE__M_CPU_THROTTLED_PERIODS, CONTAINER, 0, "", eight);
    add_row(w, TARE__M_CPU_THROTTLED, CONTAINER, 0, "", half);
    add_cores(w, TREE, 0, "", half);
    evaluate(w);
    const tare__finding *finding = must_find(w, "cpu-throttled");
    assert_int_equal(finding->severity, TARE__WARNING);
    ABOUT(figure_of(finding, "throttled_share"), 0.8);
    ABOUT(finding->gain, 0.5);
    must_not_find(w, "cpu-high"); /* that is what the limit means */
    hit->total = 4; /* of 100 */
    evaluate(w);
    must_not_find(w, "cpu-throttled");
    must_find(w, "cpu-high");
    world_free(w);
}

static void all_of_the_cpu(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    add_cores(w, TREE, 0, "", nearly_two);
    evaluate(w);
    const tare__finding *finding = must_find(w, "cpu-high");
    ABOUT(figure_of(finding, "share"), 0.99);
    ABOUT(finding->to_ns - finding->from_ns, 10 * SECOND);
    assert_int_equal(w->of.n_findings, 1);
    w->of.usage.cores_allowed = 4;
    must_be_silent(w);
    world_free(w);
}

static double late(double t)
{
    return t < 7 ? 0.1 : 1.98;
}

static void a_third_of_the_time_is_not_the_run(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    add_cores(w, TREE, 0, "", late);
    must_be_silent(w);
    world_free(w);
}

static void samples_of_a_short_run_say_nothing(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    add_row_for(w, TARE__M_CPU_USER, TREE, 0, 0, "", nearly_two, 0.8);
    add_row_for(w, TARE__M_CPU_SYSTEM, TREE, 0, 0, "", zero, 0.8);
    must_be_silent(w);
    world_free(w);
}

static void more_threads_than_cores(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    w->of.usage.switches_forced = 5000;
    add_cores(w, TREE, 0, "", nearly_two);
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", eight);
    evaluate(w);
    const tare__finding *finding = must_find(w, "threads-oversubscribed");
    ABOUT(figure_of(finding, "threads_running"), 8);
    assert_non_null(strstr(finding->advice, "OMP_NUM_THREADS=2"));
    assert_ptr_equal(finding, &w->of.findings[0]); /* cpu-high is its symptom */
    for (uint64_t pid = 1; pid <= 8; pid++)
        add_row(w, TARE__M_THREADS_RUNNING, PROCESS, pid, "worker", one);
    evaluate(w);
    assert_non_null(strstr(must_find(w, "threads-oversubscribed")->advice, "no more worker processes than cores (2)"));
    w->of.usage.switches_forced = NAN;
    evaluate(w);
    must_not_find(w, "threads-oversubscribed");
    w->of.usage.switches_forced = 5000;
    w->of.usage.cores_allowed = 6;
    evaluate(w);
    must_not_find(w, "threads-oversubscribed");
    world_free(w);
}

static void one_thread_of_many_cores(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 4;
    w->of.usage.threads_max = 3;
    w->of.usage.processes_max = 1;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, THREAD, 500, "helper", zero);
    add_cores(w, THREAD, 501, "MainThread", one);
    evaluate(w);
    const tare__finding *finding = must_find(w, "one-core");
    ABOUT(finding->gain, 0.75);
    assert_int_equal(figure_of(finding, "tid"), 501);
    assert_non_null(strstr(finding->evidence, "MainThread"));
    w->of.usage.cores_allowed = 1;
    evaluate(w);
    must_not_find(w, "one-core");
    w->of.usage.cores_allowed = NAN;
    must_be_silent(w);
    world_free(w);
}

static void two_threads_that_share_a_core_are_not_one(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 4;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, THREAD, 500, "a", half);
    add_cores(w, THREAD, 501, "b", half);
    must_be_silent(w);
    world_free(w);
}

static void a_thread_that_waits_for_a_gpu_spins(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 16;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, THREAD, 501, "MainThread", one);
    add_row(w, TARE__M_GPU_BUSY, GPU, 0, "H200", gpu_full);
    evaluate(w); /* somebody else's GPU */
    must_find(w, "one-core");
    use_gpu(w);
    must_be_silent(w);
    world_free(w);
}

/* Threads were not looked at: a process with a single one will do, one with several will not. */
static void one_thread_without_samples_of_threads(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 4;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, PROCESS, 42, "python3", one);
    tare__metric_row *threads = add_row(w, TARE__M_THREADS, PROCESS, 42, "python3", one);
    evaluate(w);
    assert_int_equal(figure_of(must_find(w, "one-core"), "pid"), 42);
    threads->max = 4;
    must_be_silent(w);
    world_free(w);
}

static double three_tenths(double t)
{
    return 0.3 + t * 0;
}

/* One thread, one core of four; whether more would help depends on whether others left any. */
static void cores_that_others_have(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 4;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, THREAD, 7, "MainThread", one);
    add_row(w, TARE__M_CPU_IDLE, SYSTEM, 0, "", three_tenths);
    evaluate(w);
    must_not_find(w, "one-core");
    world_free(w);
    w = world_new();
    w->of.usage.cores_allowed = 4;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, THREAD, 7, "MainThread", one);
    add_row(w, TARE__M_CPU_IDLE, SYSTEM, 0, "", one);
    evaluate(w);
    const tare__finding *finding = must_find(w, "one-core");
    ABOUT(figure_of(finding, "cores_available"), 2);
    ABOUT(finding->gain, 0.5);
    assert_int_equal(finding->severity, TARE__INFO);
    assert_null(strstr(finding->advice, "DataLoader")); /* nothing tells that it uses torch */
    assert_null(strstr(finding->advice, "Python"));
    w->of.phases.imports_known = true;
    evaluate(w);
    assert_non_null(strstr(must_find(w, "one-core")->advice, "ProcessPoolExecutor(2)"));
    assert_null(strstr(must_find(w, "one-core")->advice, "DataLoader"));
    const tare__import_row torch = {"torch", 0, SECOND};
    w->of.phases.imports = &torch;
    w->of.phases.n_imports = 1;
    evaluate(w);
    assert_non_null(strstr(must_find(w, "one-core")->advice, "torch.set_num_threads(2)"));
    assert_null(strstr(must_find(w, "one-core")->advice, "DataLoader")); /* it has none */
    const tare__fact_row loader = {.key = "torch.loader.workers", .count = 1, .value = 0, .first = 0, .max = 0};
    w->of.facts = &loader;
    w->of.n_facts = 1;
    evaluate(w);
    assert_non_null(strstr(must_find(w, "one-core")->advice, "DataLoader"));
    world_free(w);
}

static void others_on_the_machine(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    add_row(w, TARE__M_PRESSURE_CPU, SYSTEM, 0, "", half);
    add_cores(w, TREE, 0, "", half);
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", one);
    evaluate(w);
    ABOUT(must_find(w, "shared-machine")->gain, 0.5);
    assert_int_equal(must_find(w, "shared-machine")->severity, TARE__INFO); /* nothing is wrong with the program */
    assert_non_null(strstr(must_find(w, "shared-machine")->evidence, "preemption, not waiting"));
    add_cores(w, THREAD, 7, "MainThread", half);
    evaluate(w); /* one thread wants a core all along and gets half of one: what it would do with more, nobody knows */
    must_not_find(w, "one-core");
    world_free(w);
    w = world_new(); /* the hypervisor's others */
    add_row(w, TARE__M_CPU_USER, SYSTEM, 0, "", half);
    add_row(w, TARE__M_CPU_STEAL, SYSTEM, 0, "", three_tenths);
    evaluate(w);
    ABOUT(figure_of(must_find(w, "shared-machine"), "steal"), 0.375);
    world_free(w);
    w = world_new(); /* it waits for itself */
    w->of.usage.cores_allowed = 2;
    add_row(w, TARE__M_PRESSURE_CPU, SYSTEM, 0, "", half);
    add_cores(w, TREE, 0, "", nearly_two);
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", eight);
    evaluate(w);
    must_not_find(w, "shared-machine");
    world_free(w);
}

static double once_hot(double t)
{
    return t >= 6 && t < 8 ? 2 : 0;
}

static void slowed_down_for_heat(void **state)
{
    (void)state;
    world *w = world_new();
    tare__metric_row *events = add_row(w, TARE__M_THROTTLE_EVENTS, SYSTEM, 0, "", once_hot);
    evaluate(w);
    const tare__finding *finding = must_find(w, "cpu-hot");
    ABOUT(finding->from_ns, 6 * SECOND);
    ABOUT(finding->to_ns, 8 * SECOND);
    events->total = 0;
    must_be_silent(w);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_back_by_a_limit),
        cmocka_unit_test(all_of_the_cpu),
        cmocka_unit_test(a_third_of_the_time_is_not_the_run),
        cmocka_unit_test(samples_of_a_short_run_say_nothing),
        cmocka_unit_test(more_threads_than_cores),
        cmocka_unit_test(one_thread_of_many_cores),
        cmocka_unit_test(two_threads_that_share_a_core_are_not_one),
        cmocka_unit_test(a_thread_that_waits_for_a_gpu_spins),
        cmocka_unit_test(one_thread_without_samples_of_threads),
        cmocka_unit_test(others_on_the_machine),
        cmocka_unit_test(cores_that_others_have),
        cmocka_unit_test(slowed_down_for_heat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
