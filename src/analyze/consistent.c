/* consistent: checks every table of an analysis for contradictory figures: a part larger than its whole, a share above
 * 1, quantiles out of order, more time than elapsed. Pure; owned by the calling thread.
 * Must not know how tables are made: it checks their result. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "consistent.h"

/* Allows for sums of many rounded values, and for a clock that is adjusted during the run. */
#define ROUNDING 1e-6
#define SLACK_NS 2e3

typedef struct checked {
    const tare__analysis *of;
    tare__contradictions *out;
} checked;

/* `part` may be at most `whole`; absent values contradict nothing. */
static bool fits(double part, double whole, double slack)
{
    return !(part > whole + fabs(whole) * ROUNDING + slack);
}

static void TARE__PRINTF(3, 4) expect(checked *c, bool holds, const char *format, ...)
{
    if (holds)
        return;
    if (c->out->n++ == 0) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(c->out->first, sizeof c->out->first, format, arguments);
        va_end(arguments);
    }
}

static void check_share(checked *c, double share, const char *table, const char *name, const char *column)
{
    expect(c, !(share < -ROUNDING || share > 1 + ROUNDING), "%s \"%.60s\": %s is %g, outside of 0 to 1", table, name,
           column, share);
}

static void check_positive(checked *c, double value, const char *table, const char *name, const char *column)
{
    expect(c, !(value < 0) && !isinf(value), "%s \"%.60s\": %s is %g", table, name, column, value);
}

static void check_part(checked *c, double part, double whole, const char *table, const char *name, const char *words)
{
    expect(c, fits(part, whole, SLACK_NS), "%s \"%.60s\": %s (%.0f of %.0f)", table, name, words, part, whole);
}

static void check_durations(checked *c, const tare__durations *each, double total, double calls, const char *table,
                            const char *name)
{
    const double order[] = {each->min_ns, each->p50_ns, each->p95_ns, each->p99_ns, each->max_ns};
    for (size_t i = 0; i + 1 < TARE__COUNT_OF(order); i++)
        expect(c, fits(order[i], order[i + 1], 1), "%s \"%.60s\": quantiles are out of order (%.0f above %.0f)", table,
               name, order[i], order[i + 1]);
    expect(c, fits(each->min_ns, each->mean_ns, 1) && fits(each->mean_ns, each->max_ns, 1),
           "%s \"%.60s\": the mean %.0f is outside of %.0f to %.0f", table, name, each->mean_ns, each->min_ns,
           each->max_ns);
    check_positive(c, each->min_ns, table, name, "its shortest call");
    if (calls > 0)
        expect(c, fits(each->max_ns, total, SLACK_NS), "%s \"%.60s\": one call is longer (%.0f) than all (%.0f)", table,
               name, each->max_ns, total);
}

/* Concurrent threads: at most the number of all threads. */
static double time_of_all(const tare__analysis *of)
{
    return of->run.elapsed_ns * (double)(of->n_threads ? of->n_threads : 1);
}

static void check_spans(checked *c)
{
    const tare__analysis *of = c->of;
    double all = time_of_all(of);
    for (size_t i = 0; i < of->n_spans; i++) {
        const tare__span_row *row = &of->spans[i];
        check_positive(c, row->total_ns, "span", row->name, "its total");
        check_positive(c, row->self_ns, "span", row->name, "its self time");
        check_part(c, row->self_ns, row->total_ns, "span", row->name, "self time exceeds the total");
        check_part(c, row->raw_self_ns, row->total_ns, "span", row->name, "self time exceeds the total");
        check_part(c, row->total_ns, all, "span", row->name, "its total exceeds the time of all threads");
        check_share(c, row->share, "span", row->name, "its share");
        check_durations(c, &row->each, row->calls_ns, (double)row->calls, "span", row->name);
        double children = 0;
        for (size_t k = i + 1; k < i + 1 + row->n_rows && k < of->n_spans; k += 1 + of->spans[k].n_rows)
            children += of->spans[k].total_ns;
        check_part(c, children, row->total_ns, "span", row->name, "the spans inside it exceed its total");
    }
}

static void check_steps(checked *c, const tare__step_row *rows, size_t n, const char *table)
{
    for (size_t i = 0; i < n; i++) {
        const tare__step_row *row = &rows[i];
        if (!row->count)
            continue;
        check_durations(c, &row->each, row->timed_ns, (double)row->timed, table, row->name);
        expect(c, row->timed <= row->count && row->partial <= row->count, "%s \"%.60s\": more are timed than there are",
               table, row->name);
        check_part(c, row->timed_ns, row->total_ns, table, row->name, "its timed ones exceed its total");
        check_part(c, row->total_ns, time_of_all(c->of), table, row->name, "its total exceeds the time of all threads");
        check_positive(c, row->per_second, table, row->name, "its rate");
        expect(c, fits(row->p50.low_ns, row->each.p50_ns, 1) && fits(row->each.p50_ns, row->p50.high_ns, 1),
               "%s \"%.60s\": its median is outside of its interval", table, row->name);
        expect(c, fits(row->p95.low_ns, row->each.p95_ns, 1) && fits(row->each.p95_ns, row->p95.high_ns, 1),
               "%s \"%.60s\": its p95 is outside of its interval", table, row->name);
        for (size_t k = 0; k < row->course.n_bins; k++) {
            double parts = 0;
            for (size_t p = 0; p < row->course.n_parts; p++)
                parts += row->course.bins[k].parts_ns[p];
            check_part(c, parts, row->course.bins[k].total_ns, table, row->name, "its parts exceed it");
        }
    }
}

static void check_operators(checked *c)
{
    const tare__analysis *of = c->of;
    double shares = 0;
    for (size_t i = 0; i < of->n_operators; i++) {
        const tare__operator_row *row = &of->operators[i];
        check_part(c, row->self_ns, row->raw_self_ns, "operator", row->name, "self time exceeds what was measured");
        check_part(c, row->total_ns, time_of_all(of), "operator", row->name,
                   "its total exceeds the time of all threads");
        check_share(c, row->share, "operator", row->name, "its share");
        check_share(c, row->step_share, "operator", row->name, "its share of steps");
        check_part(c, row->step_self_ns, row->self_ns, "operator", row->name, "self time in steps exceeds self time");
        check_durations(c, &row->each, NAN, 0, "operator", row->name);
        expect(c, row->paired <= row->calls, "operator \"%.60s\": more pairs than calls", row->name);
        check_share(c, row->of_peak_flops, "operator", row->name, "its share of the peak");
        check_share(c, row->of_peak_bytes, "operator", row->name, "its share of the peak of memory");
        shares += isnan(row->share) ? 0 : row->share;
    }
    expect(c, shares < 1 + 1e-3, "operators: shares add up to %g", shares);
}

static void check_modules(checked *c)
{
    const tare__analysis *of = c->of;
    for (size_t i = 0; i < of->n_modules; i++) {
        const tare__module_row *row = &of->modules[i];
        check_part(c, row->self_ns, row->total_ns, "module", row->path, "self time exceeds the total");
        check_part(c, row->operators_ns, row->self_ns, "module", row->path, "its operators exceed its self time");
        check_share(c, row->share, "module", row->path, "its share");
        double inside = 0;
        for (size_t k = i + 1; k < i + 1 + row->n_rows && k < of->n_modules; k += 1 + of->modules[k].n_rows)
            inside += of->modules[k].total_ns;
        check_part(c, inside, row->total_ns, "module", row->path, "the modules inside it exceed its total");
    }
}

/* Work on one GPU stream is sequential; a track with another name may represent a whole device. */
static void check_tracks(checked *c)
{
    const tare__analysis *of = c->of;
    for (size_t i = 0, end; i < of->n_tracks; i = end) {
        double total = 0;
        for (end = i; end < of->n_tracks && of->tracks[end].track == of->tracks[i].track; end++) {
            check_durations(c, &of->tracks[end].each, of->tracks[end].total_ns, (double)of->tracks[end].calls, "track",
                            of->tracks[end].name);
            total += of->tracks[end].total_ns;
        }
        if (of->tracks[i].track_kind == TARE_TRACK_GPU && strstr(of->tracks[i].track, "stream"))
            check_part(c, total, of->run.elapsed_ns, "track", of->tracks[i].track,
                       "device time on one stream exceeds the run's time");
    }
}

static void check_values(checked *c)
{
    const tare__analysis *of = c->of;
    for (size_t i = 0; i < of->n_aggregates; i++) {
        const tare__aggregate_row *row = &of->aggregates[i];
        expect(c, row->timed <= row->calls, "aggregate \"%.60s\": more calls timed than made", row->name);
        check_durations(c, &row->each, row->total_ns, (double)row->timed, "aggregate", row->name);
    }
    for (size_t i = 0; i < of->n_counters; i++) {
        const tare__counter_row *row = &of->counters[i];
        double slack = fmax(fabs(row->min), fabs(row->max)) * ROUNDING;
        expect(c, fits(row->min, row->mean, slack) && fits(row->mean, row->max, slack),
               "counter \"%.60s\": the mean %g is outside of %g to %g", row->name, row->mean, row->min, row->max);
        expect(c, fits(row->first_at_ns, row->last_at_ns, 0), "counter \"%.60s\": its last value is before its first",
               row->name);
    }
    for (size_t i = 0; i < of->n_threads; i++) {
        const tare__thread_row *row = &of->threads[i];
        const char *name = row->name ? row->name : "";
        check_part(c, row->busy_ns, of->run.elapsed_ns, "thread", name, "its spans exceed the run's time");
        check_part(c, row->last_at_ns, of->run.elapsed_ns, "thread", name,
                   "its last event is after the end of the run");
    }
}

static void check_metrics(checked *c)
{
    const tare__analysis *of = c->of;
    for (size_t i = 0; i < of->n_metrics; i++) {
        const tare__metric_row *row = &of->metrics[i];
        double slack = fmax(fabs(row->min), fabs(row->max)) * ROUNDING;
        expect(c, fits(row->min, row->mean, slack) && fits(row->mean, row->max, slack),
               "metric %.60s of \"%.60s\": the mean %g is outside of %g to %g", row->metric, row->label, row->mean,
               row->min, row->max);
        if (row->unit == TARE__SHOW_SHARE)
            check_share(c, row->max, "metric", row->metric, "its maximum");
        bool used =
            row->known == TARE__M_CPU_USER || row->known == TARE__M_CPU_SYSTEM || row->known == TARE__M_CPU_USAGE;
        if (used && of->run.cpus)
            expect(c, fits(row->mean, of->run.cpus, 0.05 * of->run.cpus),
                   "metric %.60s of \"%.60s\": %.2f cores of %u in use", row->metric, row->label, row->mean,
                   of->run.cpus);
        expect(c, fits(row->from_ns, row->to_ns, 0), "metric %.60s of \"%.60s\" ends before it begins", row->metric,
               row->label);
    }
}

static void check_usage(checked *c)
{
    const tare__usage_table *usage = &c->of->usage;
    const tare__run_table *run = &c->of->run;
    expect(c, fits(fabs(usage->user_seconds + usage->system_seconds - usage->cpu_seconds), 0, 1e-6),
           "usage: user and system time do not add up to CPU time");
    expect(c, fits(usage->cores_mean, usage->cores_max, 0.01), "usage: %.3g cores on average, %.3g at most",
           usage->cores_mean, usage->cores_max);
    if (run->cpus)
        expect(c,
               fits(usage->cpu_seconds * 1e9, run->elapsed_ns * run->cpus, 0.05 * run->elapsed_ns * run->cpus + 50e6),
               "usage: %.3g s of CPU time in %.3g s on %u CPUs", usage->cpu_seconds, run->elapsed_ns / 1e9, run->cpus);
    expect(c, fits(usage->rss_peak_bytes, usage->tree_rss_max_bytes, 0),
           "usage: the peak of one process (%.0f) exceeds that of all (%.0f)", usage->rss_peak_bytes,
           usage->tree_rss_max_bytes);
    expect(c, fits(usage->rss_peak_bytes, run->memory_bytes, 0), "usage: more memory in use than the machine has");
    check_share(c, usage->gpu_busy_mean, "usage", "GPU", "the time in which it was busy");
    check_positive(c, usage->energy_joules, "usage", "energy", "it");
}

/* ---- sampled stacks --------------------------------------------------------------------------------------------- */
#define SLACK_SUM_NS 1e4 /* of sums of many rows */

static double sum_of(const tare__state_times *of)
{
    double sum = 0;
    for (size_t i = 0; i < TARE__STATE_COUNT; i++)
        sum += of->ns[i];
    return sum;
}

static bool same(double a, double b)
{
    return fits(a, b, SLACK_SUM_NS) && fits(b, a, SLACK_SUM_NS);
}

static void check_states(checked *c, const tare__state_times *of, double whole, const char *table, const char *name)
{
    for (size_t i = 0; i < TARE__STATE_COUNT; i++)
        check_positive(c, of->ns[i], table, name, tare__state_word((uint32_t)i));
    expect(c, same(sum_of(of), whole), "%s \"%.60s\": states add up to %.0f of %.0f", table, name, sum_of(of), whole);
}

static void check_sampled_threads(checked *c)
{
    const tare__analysis *of = c->of;
    size_t leading = 0;
    double wall = 0;
    for (size_t i = 0; i < of->n_sampled_threads; i++) {
        const tare__sampled_thread_row *row = &of->sampled_threads[i];
        const char *name = row->name ? row->name : "";
        check_states(c, &row->of, row->wall_ns, "sampled thread", name);
        check_part(c, row->active_ns, row->wall_ns, "sampled thread", name, "active time exceeds its time");
        check_part(c, row->no_stack_ns, row->wall_ns, "sampled thread", name, "time without a stack exceeds its time");
        check_part(c, row->gc_ns, row->wall_ns, "sampled thread", name, "garbage collection exceeds its time");
        expect(c, row->torn <= row->samples, "sampled thread \"%.60s\": more torn samples than samples", name);
        leading += row->leading;
        wall += row->wall_ns;
    }
    expect(c, same(wall, of->stacks.wall_ns), "sampled threads add up to %.0f of %.0f", wall, of->stacks.wall_ns);
    expect(c, leading <= 1, "sampled threads: %zu are leading", leading);
}

/* Self times of functions, at most; without the time of cut rows, of lines and packages. */
static void check_sampled_rows(checked *c)
{
    const tare__analysis *of = c->of;
    double functions = 0, lines = 0, own = 0, packages = 0, wall = of->stacks.wall_ns;
    for (size_t i = 0; i < of->n_functions; i++) {
        const tare__function_row *row = &of->functions[i];
        check_states(c, &row->of, row->self_ns, "function", row->function);
        check_part(c, row->self_ns, row->total_ns, "function", row->function, "self time exceeds the total");
        check_part(c, row->total_ns, wall, "function", row->function, "its total exceeds the time of all threads");
        check_share(c, row->self_share, "function", row->function, "its share");
        check_share(c, row->total_share, "function", row->function, "its share of the total");
        functions += row->self_ns;
    }
    for (size_t i = 0; i < of->n_lines; i++) {
        const tare__line_row *row = &of->lines[i];
        double time = row->own ? row->own_ns : row->self_ns;
        check_states(c, &row->of, time, "line", row->function);
        check_part(c, row->self_ns, row->own_ns, "line", row->function, "self time exceeds that of own code");
        check_part(c, time, row->total_ns, "line", row->function, "its time exceeds the total");
        check_part(c, row->main_ns, time, "line", row->function, "time of the leading thread exceeds its time");
        check_share(c, row->share, "line", row->function, "its share");
        check_share(c, row->main_share, "line", row->function, "its share of the leading thread");
        lines += row->self_ns;
        own += row->own ? row->own_ns : 0;
    }
    for (size_t i = 0; i < of->n_packages; i++) {
        const tare__package_row *row = &of->packages[i];
        check_states(c, &row->of, row->self_ns, "package", row->package);
        check_part(c, row->self_ns, row->total_ns, "package", row->package, "self time exceeds the total");
        check_share(c, row->share, "package", row->package, "its share");
        check_share(c, row->main_share, "package", row->package, "its share of the leading thread");
        packages += row->self_ns;
    }
    expect(c, same(functions, wall), "functions: self times add up to %.0f of %.0f", functions, wall);
    expect(c, fits(lines, wall, SLACK_SUM_NS) && fits(own, wall, SLACK_SUM_NS),
           "lines: times add up to %.0f and %.0f of %.0f", lines, own, wall);
    expect(c, fits(packages, wall, SLACK_SUM_NS), "packages: self times add up to %.0f of %.0f", packages, wall);
}

static void check_sampled_imports(checked *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->of->n_sampled_imports; i++) {
        const tare__sampled_import_row *row = &c->of->sampled_imports[i];
        check_part(c, row->self_ns, row->total_ns, "import", row->module, "self time exceeds the total");
        sum += row->self_ns;
    }
    expect(c, fits(sum, c->of->stacks.wall_ns, SLACK_SUM_NS), "imports: self times add up to %.0f of %.0f", sum,
           c->of->stacks.wall_ns);
}

static void check_span_lines(checked *c)
{
    for (size_t i = 0; i < c->of->n_span_lines; i++) {
        const tare__span_line_row *row = &c->of->span_lines[i];
        check_states(c, &row->of, row->ns, "line of span", row->span);
        check_part(c, row->ns, row->span_ns, "line of span", row->span, "its time exceeds that of the span");
        check_part(c, row->span_ns, c->of->stacks.wall_ns, "span", row->span,
                   "sampled time inside of it exceeds that of all threads");
    }
}

static void check_stack_tree(checked *c)
{
    const tare__stack_tree *tree = &c->of->stacks;
    double self = 0;
    for (size_t i = 0; i < tree->n; i++) {
        const tare__stack_node *row = &tree->nodes[i];
        double children = row->self_ns;
        for (size_t k = i + 1; k < i + 1 + row->n_rows && k < tree->n; k += 1 + tree->nodes[k].n_rows)
            children += tree->nodes[k].total_ns;
        check_states(c, &row->of, row->self_ns, "stack", row->name);
        check_part(c, row->total_cpu_ns, row->total_ns, "stack", row->name, "CPU time exceeds the total");
        check_part(c, row->active_ns, row->total_ns, "stack", row->name, "active time exceeds the total");
        expect(c, same(children, row->total_ns), "stack \"%.60s\": self and callees add up to %.0f of %.0f", row->name,
               children, row->total_ns);
        self += row->self_ns;
    }
    expect(c, !tree->n || same(self, tree->wall_ns), "stacks: self times add up to %.0f of %.0f", self, tree->wall_ns);
}

static void check_findings(checked *c)
{
    for (size_t i = 0; i < c->of->n_findings; i++) {
        const tare__finding *row = &c->of->findings[i];
        check_share(c, row->gain, "finding", row->id, "its gain");
        expect(c, fits(row->from_ns, row->to_ns, 0), "finding %.60s ends before it begins", row->id);
        for (size_t k = 0; k < row->n_figures; k++)
            if (row->figures[k].unit == TARE__SHOW_SHARE && !row->source)
                check_share(c, row->figures[k].value, "finding", row->id, row->figures[k].name);
    }
}

void tare__analyze_consistent(const tare__analysis *analysis, tare__contradictions *out)
{
    checked c = {analysis, out};
    *out = (tare__contradictions){0};
    check_positive(&c, analysis->run.elapsed_ns, "run", "", "its time");
    check_share(&c, analysis->own.share, "tare", "", "the recorder's share");
    check_spans(&c);
    check_steps(&c, analysis->steps, analysis->n_steps, "step");
    check_steps(&c, analysis->epochs, analysis->n_epochs, "epoch");
    check_operators(&c);
    check_modules(&c);
    check_tracks(&c);
    check_values(&c);
    check_metrics(&c);
    check_usage(&c);
    check_sampled_threads(&c);
    check_sampled_rows(&c);
    check_span_lines(&c);
    check_sampled_imports(&c);
    check_stack_tree(&c);
    check_findings(&c);
}
