/* figures_run: the figures of an analysed run.
 * Owned by the calling thread.
 * Must not know how anything was measured, nor how figures are shown. */
#include <string.h>

#include "analyze/analyze.h"
#include "figures.h"
#include "analyze/findings/rules.h"
#include "stat/stat.h"

typedef struct value {
    const char *name, *unit;
    tare__better better;
    double value;
} value;

static void add_values(tare__figures *into, const value *values, size_t n)
{
    for (const value *at = values; at < values + n; at++)
        if (!isnan(at->value))
            tare__figures_add(into, &(tare__figure){.name = at->name, .unit = at->unit, .better = at->better,
                                                    .value = at->value, .total = at->value, .n = 1});
}

static void add_run(tare__figures *into, const tare__analysis *from)
{
    const tare__usage_table *usage = &from->usage;
    const value values[] = {
        /* If the end of the run is not known, this is the recorded time, not the elapsed time. */
        {"run.elapsed", "ns", TARE__LOWER, from->run.finished && from->run.clock_known ? from->run.elapsed_ns : NAN},
        {"run.cpu", "ns", TARE__LOWER, usage->cpu_seconds * 1e9},
        {"run.cpu_wait", "ns", TARE__NEITHER, tare__cpu_wait_ns(from)},
        {"run.peak_rss", "bytes", TARE__LOWER, usage->rss_peak_bytes},
        {"run.peak_rss_tree", "bytes", TARE__LOWER, usage->tree_rss_max_bytes},
        {"run.peak_gpu_memory", "bytes", TARE__LOWER, usage->gpu_memory_max_bytes},
    };
    add_values(into, values, TARE__COUNT_OF(values));
}

static void add_traffic(tare__figures *into, const tare__usage_table *usage)
{
    const value values[] = {
        {"run.io_read", "bytes", TARE__NEITHER, usage->io_read_bytes},
        {"run.io_write", "bytes", TARE__NEITHER, usage->io_write_bytes},
        {"run.disk_read", "bytes", TARE__NEITHER, usage->disk_read_bytes},
        {"run.disk_write", "bytes", TARE__NEITHER, usage->disk_write_bytes},
        {"run.energy", "J", TARE__LOWER, usage->energy_joules},
    };
    add_values(into, values, TARE__COUNT_OF(values));
}

/* ---- steps: counts and throughput ------------------------------------------------------------- */
static void add_steps(tare__figures *into, const tare__step_row *row, const char *word)
{
    tare__text name = {0};
    bool plain = strcmp(row->name, word) == 0;
    tare__text_format(&name, plain ? "%s.count" : "%s.count:%s", word, row->name);
    tare__figure count = {.unit = "", .value = (double)row->count, .total = NAN, .n = row->count};
    tare__figures_add_named(into, &count, &name);
    for (size_t i = 0; i < row->n_numbers; i++) {
        const tare__number_row *number = &row->numbers[i];
        tare__text unit = {0};
        if (isnan(number->rate))
            continue;
        tare__text_format(&name, plain ? "%s.%s/s" : "%s.%s/s:%s", word, number->name, row->name);
        tare__text_format(&unit, "%s/s", number->name);
        tare__figure rate = {.unit = unit.data, .better = TARE__HIGHER, .value = number->rate, .total = NAN,
                             .n = number->n};
        into->failed |= unit.failed;
        tare__figures_add_named(into, &rate, &name);
        tare__text_free(&unit);
    }
}

/* ---- samples ---------------------------------------------------------------------------------- */
static const char *const words[] = {
    [TARE__SAMPLED_SPAN] = "span",       [TARE__SAMPLED_STEP] = "step",       [TARE__SAMPLED_EPOCH] = "epoch",
    [TARE__SAMPLED_OPERATOR] = "operator", [TARE__SAMPLED_LAYER] = "layer",   [TARE__SAMPLED_KERNEL] = "kernel",
    [TARE__SAMPLED_TASK] = "task",       [TARE__SAMPLED_REQUEST] = "request", [TARE__SAMPLED_TRACK] = "track",
    [TARE__SAMPLED_COUNTER] = "counter"};

static bool is_loop(const tare__sample_row *row)
{
    return row->of == TARE__SAMPLED_STEP || row->of == TARE__SAMPLED_EPOCH;
}

static void add_sample_row(tare__figures *into, const tare__sample_row *row)
{
    if (!row->n)
        return;
    bool counter = row->of == TARE__SAMPLED_COUNTER;
    bool plain = is_loop(row) && strcmp(row->name, words[row->of]) == 0;
    tare__text name = {0};
    tare__text_string(&name, words[row->of]);
    if (!plain)
        tare__text_format(&name, ":%s", row->name);
    tare__figure figure = {
        .unit = counter ? "" : "ns",
        .per = row->per_step ? "step" : counter ? "value" : "call",
        .better = counter ? TARE__NEITHER : TARE__LOWER,
        .value = NAN,
        .total = row->total_ns,
        .n = row->calls,
        .each = row->each,
        .samples = row->values,
        .n_samples = row->n,
    };
    tare__figures_add_named(into, &figure, &name);
}

static void add_aggregate(tare__figures *into, const tare__aggregate_row *row)
{
    tare__text name = {0};
    tare__text_format(&name, "aggregate:%s", row->name);
    tare__figure figure = {.unit = "ns", .better = TARE__LOWER, .value = row->each.p50_ns, .total = row->total_ns,
                           .n = row->calls};
    tare__figures_add_named(into, &figure, &name);
}

/* ---- metrics ---------------------------------------------------------------------------------- */
static const char *unit_word(tare__metric_unit unit)
{
    static const char *const units[] = {[TARE__SHOW_COUNT] = "",
                                        [TARE__SHOW_BYTES] = "bytes",
                                        [TARE__SHOW_SHARE] = "share",
                                        [TARE__SHOW_CORES] = "cores",
                                        [TARE__SHOW_SECONDS] = "s",
                                        [TARE__SHOW_CELSIUS] = "°C",
                                        [TARE__SHOW_WATTS] = "W",
                                        [TARE__SHOW_JOULES] = "J",
                                        [TARE__SHOW_HERTZ] = "Hz",
                                        [TARE__SHOW_BITS] = "bits",
                                        [TARE__SHOW_BYTES_PER_S] = "bytes/s",
                                        [TARE__SHOW_PER_S] = "1/s"};
    return (size_t)unit < TARE__COUNT_OF(units) ? units[unit] : "";
}

/* Processes, threads and CPUs have no counterpart in another run; other activity of the machine is not the run's. */
static bool is_comparable(const tare__metric_row *row)
{
    return (row->subject == TARE__SUBJECT_TREE || row->subject == TARE__SUBJECT_GPU) && row->n_points &&
           row->unit != TARE__SHOW_BITS;
}

static void add_metric(tare__figures *into, const tare__metric_row *row)
{
    double values[TARE__POINTS_MAX];
    size_t n = row->n_points < TARE__POINTS_MAX ? row->n_points : TARE__POINTS_MAX;
    tare__text name = {0};
    for (size_t i = 0; i < n; i++)
        values[i] = row->points[i].mean;
    tare__text_format(&name, "metric:%s", row->metric);
    if (row->subject == TARE__SUBJECT_GPU)
        tare__text_format(&name, "[GPU %llu]", (unsigned long long)row->key);
    bool memory = strncmp(row->metric, "memory.", 7) == 0 && row->subject == TARE__SUBJECT_TREE;
    tare__figure figure = {
        .unit = unit_word(row->unit),
        .per = "sample",
        .better = memory ? TARE__LOWER : TARE__NEITHER,
        .value = NAN,
        .total = NAN,
        .n = row->n,
        .each = 1,
        .samples = values,
        .n_samples = n,
    };
    tare__figures_add_named(into, &figure, &name);
}

/* ---- entry point ------------------------------------------------------------------------------ */
static void describe(tare__figures *into, const tare__run_table *run)
{
    into->command = tare__figures_text(into, run->command);
    into->host = tare__figures_text(into, run->host);
    into->cpu_model = tare__figures_text(into, run->cpu_model);
    into->revision = tare__figures_text(into, run->revision);
    into->when_ns = run->start_realtime_ns;
    tare__figures_set_machine(into, run->host, run->cpu_model, run->cpus, run->memory_bytes, run->kernel);
    for (size_t i = 0; i < run->n_notes; i++)
        tare__figures_note(into, run->notes[i]);
}

static void add_all(tare__figures *into, const tare__analysis *from)
{
    describe(into, &from->run);
    add_run(into, from);
    for (int loops = 1; loops >= 0; loops--) /* steps and epochs first */
        for (size_t i = 0; i < from->n_samples; i++)
            if (is_loop(&from->samples[i]) == loops)
                add_sample_row(into, &from->samples[i]);
    for (size_t i = 0; i < from->n_steps; i++)
        add_steps(into, &from->steps[i], "step");
    for (size_t i = 0; i < from->n_epochs; i++)
        add_steps(into, &from->epochs[i], "epoch");
    add_traffic(into, &from->usage);
    for (size_t i = 0; i < from->n_aggregates; i++)
        add_aggregate(into, &from->aggregates[i]);
    for (size_t i = 0; i < from->n_metrics; i++)
        if (is_comparable(&from->metrics[i]))
            add_metric(into, &from->metrics[i]);
}

int tare__figures_of_analysis(const tare__analysis *analysis, tare__figures **figures)
{
    tare__figures *made = tare__figures_new("run");
    if (made)
        add_all(made, analysis);
    return tare__figures_hand_over(made, !made, figures);
}
