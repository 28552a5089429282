/* Tests of the check on tables: what cannot be true is found, whichever table it is in; what is absent is no
 * contradiction. One thread.
 * Must not know how tables are made. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/analyze.h"
#include "analyze/consistent.h"

typedef struct tables {
    tare__analysis of;
    tare__span_row spans[2];
    tare__step_row steps[1];
    tare__operator_row operators[1];
    tare__module_row modules[2];
    tare__track_row tracks[2];
    tare__aggregate_row aggregates[1];
    tare__counter_row counters[1];
    tare__thread_row threads[1];
    tare__metric_row metrics[2];
    tare__finding findings[1];
    tare__sampled_thread_row sampled[1];
    tare__function_row functions[2];
    tare__line_row lines[2];
    tare__package_row packages[1];
    tare__stack_node nodes[3];
    tare__course_bin bins[1];
    double parts[2];
} tables;

static const tare__durations each = {10, 20, 40, 18, 30, 38};

/* One thread, 600 ms on a CPU and 400 ms asleep, in two functions. */
static void start_stacks(tables *t)
{
    const tare__state_times all = {{[TARE__STATE_RUNNING] = 6e8, [TARE__STATE_SLEEP] = 4e8}};
    const tare__state_times runs = {{[TARE__STATE_RUNNING] = 6e8}}, sleeps = {{[TARE__STATE_SLEEP] = 4e8}};
    t->sampled[0] = (tare__sampled_thread_row){.name = "main", .leading = true, .samples = 10, .torn = 1,
                                               .wall_ns = 1e9, .of = all, .active_ns = 1e9, .gc_ns = 1e8};
    t->functions[0] = (tare__function_row){.function = "f", .self_ns = 6e8, .total_ns = 1e9, .of = runs,
                                           .self_share = 0.6, .total_share = 1};
    t->functions[1] = (tare__function_row){.function = "g", .self_ns = 4e8, .total_ns = 4e8, .of = sleeps,
                                           .self_share = 0.4, .total_share = 0.4};
    t->lines[0] = (tare__line_row){.function = "f", .own = true, .self_ns = 6e8, .own_ns = 1e9, .total_ns = 1e9,
                                   .of = all, .main_ns = 1e9, .main_share = 1, .share = 1};
    t->lines[1] = (tare__line_row){.function = "g", .self_ns = 4e8, .own_ns = NAN, .total_ns = 4e8, .of = sleeps,
                                   .main_ns = 4e8, .main_share = 0.4, .share = 0.4};
    t->packages[0] = (tare__package_row){.package = "your code", .self_ns = 6e8, .total_ns = 1e9, .of = runs,
                                         .main_share = 0.6, .share = 0.6};
    t->nodes[0] = (tare__stack_node){.name = "main", .parent = TARE__NO_ROW, .n_rows = 2, .total_ns = 1e9,
                                     .total_cpu_ns = 6e8, .active_ns = 1e9};
    t->nodes[1] = (tare__stack_node){.name = "f", .n_rows = 1, .self_ns = 6e8, .of = runs, .total_ns = 1e9,
                                     .total_cpu_ns = 6e8, .active_ns = 1e9};
    t->nodes[2] = (tare__stack_node){.name = "g", .parent = 1, .self_ns = 4e8, .of = sleeps, .total_ns = 4e8,
                                     .active_ns = 4e8};
    tare__analysis *of = &t->of;
    of->sampled_threads = t->sampled, of->n_sampled_threads = 1;
    of->functions = t->functions, of->n_functions = 2;
    of->lines = t->lines, of->n_lines = 2;
    of->packages = t->packages, of->n_packages = 1;
    of->stacks = (tare__stack_tree){.nodes = t->nodes, .n = 3, .wall_ns = 1e9, .active_ns = 1e9};
}

/* Everything is as it may be. */
static tables *start(tables *t)
{
    *t = (tables){0};
    tare__analysis *of = &t->of;
    of->run = (tare__run_table){.elapsed_ns = 1e9, .cpus = 2, .memory_bytes = 1e9};
    of->own.share = 0.01;
    of->usage = (tare__usage_table){.cpu_seconds = 1.5, .user_seconds = 1, .system_seconds = 0.5, .cores_mean = 1.5,
                                    .cores_max = 2, .rss_peak_bytes = 100, .tree_rss_max_bytes = 120,
                                    .gpu_busy_mean = 0.5, .energy_joules = NAN};
    t->spans[0] = (tare__span_row){.name = "outer", .parent = TARE__NO_ROW, .n_rows = 1, .calls = 2, .total_ns = 60e3,
                                   .self_ns = 19e3, .raw_self_ns = 20e3, .share = 1, .each = each};
    t->spans[1] = (tare__span_row){.name = "inner", .depth = 1, .calls = 2, .total_ns = 40e3, .self_ns = 40e3,
                                   .raw_self_ns = 40e3, .share = 0.6, .each = each};
    t->parts[0] = 300e3;
    t->parts[1] = 200e3;
    t->bins[0] = (tare__course_bin){.steps = 4, .total_ns = 600e3, .parts_ns = t->parts};
    t->steps[0] = (tare__step_row){.name = "step", .count = 4, .total_ns = 600e3, .each = each, .per_second = 4,
                                   .p50 = {15, 25, 0}, .p95 = {NAN, NAN, 72},
                                   .course = {.n_parts = 2, .bins = t->bins, .n_bins = 1}};
    t->operators[0] = (tare__operator_row){.name = "aten::mm", .calls = 3, .paired = 2, .total_ns = 9e3, .self_ns = 8e3,
                                           .raw_self_ns = 8.5e3, .share = 0.5, .step_self_ns = 7e3, .step_share = 0.2,
                                           .each = each, .of_peak_flops = 0.9, .of_peak_bytes = 0.2};
    t->modules[0] = (tare__module_row){.path = "net", .n_rows = 1, .total_ns = 90e3, .self_ns = 30e3,
                                       .operators_ns = 20e3, .share = 1};
    t->modules[1] = (tare__module_row){.path = "net.0", .depth = 1, .total_ns = 60e3, .self_ns = 60e3, .share = 0.6};
    t->tracks[0] = (tare__track_row){.track = "stream 7", .track_kind = TARE_TRACK_GPU, .name = "gemm", .calls = 2,
                                     .total_ns = 6e8, .each = each};
    t->tracks[1] = (tare__track_row){.track = t->tracks[0].track, .track_kind = TARE_TRACK_GPU, .name = "copy",
                                     .calls = 2, .total_ns = 3e8, .each = each};
    t->aggregates[0] = (tare__aggregate_row){.name = "tick", .calls = 8, .timed = 2, .total_ns = 400, .each = each};
    t->counters[0] = (tare__counter_row){.name = "loss", .n = 3, .min = 1, .mean = 2, .max = 3, .last_at_ns = 5};
    t->threads[0] = (tare__thread_row){.name = "main", .busy_ns = 9e8, .last_at_ns = 9.5e8};
    t->metrics[0] = (tare__metric_row){.metric = "cpu.user",
                                       .label = "",
                                       .kind = TARE__METRIC_TOTAL,
                                       .known = TARE__M_CPU_USER,
                                       .unit = TARE__SHOW_CORES,
                                       .n = 3,
                                       .min = 0,
                                       .mean = 1.5,
                                       .max = 2,
                                       .to_ns = 9};
    t->metrics[1] = (tare__metric_row){.metric = "gpu.busy", .label = "", .kind = TARE__METRIC_GAUGE,
                                       .unit = TARE__SHOW_SHARE, .n = 3, .min = 0, .mean = 0.5, .max = 1, .to_ns = 9};
    t->findings[0] = (tare__finding){.id = "operation", .gain = 0.3, .from_ns = 1, .to_ns = 2};
    of->spans = t->spans, of->n_spans = 2;
    of->steps = t->steps, of->n_steps = 1;
    of->operators = t->operators, of->n_operators = 1;
    of->modules = t->modules, of->n_modules = 2;
    of->tracks = t->tracks, of->n_tracks = 2;
    of->aggregates = t->aggregates, of->n_aggregates = 1;
    of->counters = t->counters, of->n_counters = 1;
    of->threads = t->threads, of->n_threads = 1;
    of->metrics = t->metrics, of->n_metrics = 2;
    of->findings = t->findings, of->n_findings = 1;
    start_stacks(t);
    return t;
}

static void expect_first(const tables *t, const char *words)
{
    tare__contradictions found;
    tare__analyze_consistent(&t->of, &found);
    if (!found.n || !strstr(found.first, words))
        print_error("wanted \"%s\", found %zu: \"%s\"\n", words, found.n, found.first);
    assert_true(found.n > 0);
    assert_non_null(strstr(found.first, words));
}

static void sound_tables_pass(void **state)
{
    (void)state;
    tables t;
    tare__contradictions found;
    tare__analyze_consistent(&start(&t)->of, &found);
    assert_string_equal(found.first, "");
    assert_int_equal(found.n, 0);
}

static void what_is_absent_contradicts_nothing(void **state)
{
    (void)state;
    tables t;
    start(&t);
    t.of.run.elapsed_ns = t.of.run.memory_bytes = t.of.own.share = NAN;
    t.of.usage.tree_rss_max_bytes = t.of.usage.cpu_seconds = t.of.usage.cores_max = NAN;
    t.spans[0].share = t.spans[1].self_ns = NAN;
    t.spans[0].each = (tare__durations){NAN, NAN, NAN, NAN, NAN, NAN};
    t.operators[0].of_peak_flops = t.operators[0].share = t.findings[0].gain = NAN;
    tare__contradictions found;
    tare__analyze_consistent(&t.of, &found);
    assert_string_equal(found.first, "");
    assert_int_equal(found.n, 0);
}

#define WRONG(field, value, words)                                                                                    \
    do {                                                                                                              \
        tables t;                                                                                                     \
        start(&t);                                                                                                    \
        t.field = (value);                                                                                            \
        expect_first(&t, words);                                                                                      \
    } while (0)

static void what_cannot_be_is_found(void **state)
{
    (void)state;
    WRONG(of.run.elapsed_ns, -1, "run");
    WRONG(of.own.share, 1.2, "recorder's share");
    WRONG(spans[0].self_ns, 70e3, "self time exceeds the total");
    WRONG(spans[0].self_ns, -5, "self time");
    WRONG(spans[0].share, 1.02, "its share is 1.02");
    WRONG(spans[1].total_ns, 65e3, "spans inside it exceed");
    WRONG(spans[0].total_ns, 2e9, "time of all threads");
    WRONG(spans[0].each.p95_ns, 50, "out of order");
    WRONG(spans[0].each.mean_ns, 5, "the mean 5 is outside");
    WRONG(steps[0].each.p50_ns, 29, "median is outside");
    WRONG(parts[0], 500e3, "its parts exceed it");
    WRONG(steps[0].total_ns, 3e9, "time of all threads");
    WRONG(operators[0].of_peak_flops, 1.2, "its share of the peak");
    WRONG(operators[0].share, 1.5, "its share");
    WRONG(operators[0].step_self_ns, 20e3, "self time in steps");
    WRONG(operators[0].paired, 4, "more pairs than calls");
    WRONG(modules[1].total_ns, 95e3, "modules inside it exceed");
    WRONG(modules[0].operators_ns, 40e3, "its operators exceed");
    WRONG(tracks[1].total_ns, 6e8, "device time on one stream");
    WRONG(aggregates[0].timed, 9, "more calls timed");
    WRONG(counters[0].mean, 4, "counter");
    WRONG(threads[0].busy_ns, 2e9, "exceed the run's time");
    WRONG(metrics[0].mean, 2.5, "outside of");
    WRONG(metrics[0].max = t.metrics[0].mean, 2.5, "cores of 2 in use");
    WRONG(metrics[1].max, 1.5, "its maximum is 1.5");
    WRONG(of.usage.cpu_seconds, 2, "do not add up");
    WRONG(of.usage.cores_mean, 2.5, "cores on average");
    WRONG(of.usage.tree_rss_max_bytes, 90, "peak of one process");
    WRONG(of.usage.rss_peak_bytes = t.of.usage.tree_rss_max_bytes, 2e9, "more memory in use");
    WRONG(of.usage.gpu_busy_mean, 1.3, "busy");
    WRONG(findings[0].gain, 1.1, "its gain");
    WRONG(findings[0].to_ns, 0.5, "ends before");
    WRONG(sampled[0].of.ns[TARE__STATE_GIL], 1e8, "states add up to");
    WRONG(sampled[0].of.ns[TARE__STATE_GIL], -1, "gil");
    WRONG(sampled[0].wall_ns, 2e9, "states add up to");
    WRONG(sampled[0].active_ns, 2e9, "active time exceeds");
    WRONG(sampled[0].gc_ns, 2e9, "garbage collection exceeds");
    WRONG(sampled[0].torn, 11, "more torn samples");
    WRONG(functions[0].of.ns[TARE__STATE_DISK], 1e8, "states add up to");
    WRONG(functions[0].total_ns, 5e8, "self time exceeds the total");
    WRONG(functions[0].total_ns, 2e9, "time of all threads");
    WRONG(functions[1].total_share, 1.1, "its share of the total");
    WRONG(of.n_functions, 1, "functions: self times add up");
    WRONG(of.stacks.wall_ns, 1.1e9, "threads add up to");
    WRONG(lines[0].self_ns, 1.1e9, "exceeds that of own code");
    WRONG(lines[0].total_ns, 5e8, "exceeds the total");
    WRONG(lines[1].main_ns, 5e8, "leading thread exceeds");
    WRONG(lines[1].share, 1.1, "its share is 1.1");
    WRONG(packages[0].total_ns, 5e8, "self time exceeds the total");
    WRONG(nodes[0].total_ns, 1.1e9, "self and callees add up to");
    WRONG(nodes[1].total_cpu_ns, 1.1e9, "CPU time exceeds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_tables_pass),
        cmocka_unit_test(what_is_absent_contradicts_nothing),
        cmocka_unit_test(what_cannot_be_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
