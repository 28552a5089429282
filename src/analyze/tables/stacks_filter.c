/* stacks_filter: the tables of sampled stacks again, of the samples that a filter keeps: within a span, in a phase of
 * the run, of a process or thread, while the GPUs are idle.
 * Owned by the thread that analyzes.
 * Must not know how the tables are made. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/findings/rules.h"
#include "sampled.h"

bool tare__stack_filter_is_set(const tare__stack_filter *filter)
{
    return filter->within || filter->phase || filter->pid || filter->thread || filter->gpu_idle;
}

/* ---- what is kept ------------------------------------------------------------------------------------------- */
static bool is_named(const tare__trace_thread *thread, const char *wanted)
{
    char id[32];
    snprintf(id, sizeof id, "%" PRId64, thread->tid);
    return strcmp(id, wanted) == 0 || (thread->name && strcmp(thread->name, wanted) == 0);
}

/* False: none is kept. */
static bool keep_threads(const work *work, const tare__stack_filter *filter, bool *kept)
{
    bool any = false;
    for (uint32_t i = 1; i <= tare__trace_thread_count(work->trace); i++) {
        const tare__trace_thread *thread = tare__trace_thread_at(work->trace, i);
        kept[i] = thread && (!filter->pid || thread->pid == filter->pid) &&
                  (!filter->thread || is_named(thread, filter->thread));
        any |= kept[i];
    }
    return any;
}

/* "a/b": b directly inside of a. */
static bool is_at(const joined *joined, uint32_t path, const char *wanted, size_t length)
{
    if (path && strlen(joined->paths[path].text) == length && memcmp(joined->paths[path].text, wanted, length) == 0)
        return true;
    for (size_t i = length; path && i-- > 0;) {
        const char *text = joined->paths[path].text;
        if (wanted[i] == '/' && strlen(text) == length - i - 1 && memcmp(text, wanted + i + 1, length - i - 1) == 0 &&
            is_at(joined, joined->paths[path].outer, wanted, i))
            return true;
    }
    return false;
}

static bool keep_paths(const joined *joined, const char *within, bool *kept)
{
    bool any = false;
    for (uint32_t i = 1; joined && i < joined->n_paths; i++) /* outer paths have smaller numbers */
        any |= kept[i] = kept[joined->paths[i].outer] || is_at(joined, i, within, strlen(within));
    return any;
}

/* Part of the run. False: it has no such phase. */
static bool find_window(const tare__analysis *of, const window *steady, const char *phase, window *found)
{
    if (strcmp(phase, "steady") == 0) {
        *found = *steady; /* the whole run if its phases are not known */
        return true;
    }
    bool startup = strcmp(phase, "startup") == 0;
    if (!steady->to || isnan(startup ? of->phases.startup.to_ns : of->phases.shutdown.to_ns))
        return false;
    *found = startup ? (window){0, steady->from, of->phases.startup.from_ns, of->phases.startup.to_ns}
                     : (window){steady->to, UINT64_MAX, of->phases.shutdown.from_ns, of->phases.shutdown.to_ns};
    return true;
}

/* ---- GPUs ------------------------------------------------------------------------------------------------------ */
static bool is_idle(const tare__metric_row *row, double at_ns)
{
    size_t from = 0, to = row->n_points;
    while (from < to) { /* the first point that ends after it */
        size_t middle = from + (to - from) / 2;
        if (row->points[middle].at_ns + row->points[middle].lasts_ns <= at_ns)
            from = middle + 1;
        else
            to = middle;
    }
    return from < row->n_points && row->points[from].at_ns <= at_ns && row->points[from].mean < limit(LIMIT_GPU_IDLE);
}

bool tare__analyze_gpus_idle(const work *work, uint64_t ticks)
{
    const tare__analysis *of = work->filter->of;
    double at_ns = tare__trace_ns(work->trace, ticks);
    const tare__metric_row *row;
    bool any = false;
    for (size_t at = 0; (row = tare__rows_next(of, &at, TARE__M_GPU_BUSY, TARE__SUBJECT_GPU));) {
        if (!tare__gpu_used(of, row->key) || !row->points)
            continue;
        if (!is_idle(row, at_ns))
            return false;
        any = true;
    }
    return any;
}

static bool has_gpu(const tare__analysis *of)
{
    const tare__metric_row *row;
    for (size_t at = 0; (row = tare__rows_next(of, &at, TARE__M_GPU_BUSY, TARE__SUBJECT_GPU));)
        if (tare__gpu_used(of, row->key) && row->points)
            return true;
    return false;
}

/* ---- words ----------------------------------------------------------------------------------------------------- */
static const char *describe(const tare__stack_filter *filter, tare__arena *arena)
{
    tare__text text = {0};
    if (filter->within)
        tare__text_format(&text, "within %.200s", filter->within);
    if (filter->phase)
        tare__text_format(&text, "%sin %s%s", text.length ? ", " : "", filter->phase,
                          strcmp(filter->phase, "steady") == 0 ? " state" : "");
    if (filter->pid)
        tare__text_format(&text, "%sof process %" PRId64, text.length ? ", " : "", filter->pid);
    if (filter->thread)
        tare__text_format(&text, "%sof thread %.100s", text.length ? ", " : "", filter->thread);
    if (filter->gpu_idle)
        tare__text_format(&text, "%swhile GPUs are idle", text.length ? ", " : "");
    return kept(arena, &text);
}

static int note_filter(tare__analysis *analysis, const char *words)
{
    tare__run_table *run = &analysis->run;
    const char **notes = tare__arena_alloc(analysis->arena, (run->n_notes + 1) * sizeof *notes);
    char text[640];
    if (!notes)
        return TARE_E_MEMORY;
    snprintf(text, sizeof text,
             "tables and views of stack samples contain only samples %s; the timeline has all of them", words);
    for (size_t i = 0; i < run->n_notes; i++)
        notes[i] = run->notes[i];
    notes[run->n_notes] = copied(analysis->arena, text);
    run->notes = notes;
    run->n_notes++;
    return tare__arena_failed(analysis->arena) ? TARE_E_MEMORY : 0;
}

/* ---- the pass -------------------------------------------------------------------------------------------------- */
static void forget_tables(tare__analysis *analysis)
{
    analysis->n_sampled_threads = analysis->n_functions = analysis->n_lines = analysis->n_packages = 0;
    analysis->n_span_lines = analysis->n_sampled_imports = 0;
    analysis->stacks = (tare__stack_tree){.leading = TARE__NO_ROW};
    analysis->uses = NULL;
}

static int check(const tare__stack_filter *filter, const tare__analysis *analysis, kept_samples *kept, work *work,
                 const window *steady, tare__error *error)
{
    if (!analysis->n_sampled_threads)
        return tare__fail(error, TARE_E_USAGE,
                          "the trace has no stack samples: no Python process was sampled, or --no-stacks was used");
    if (filter->phase && strcmp(filter->phase, "startup") != 0 && strcmp(filter->phase, "steady") != 0 &&
        strcmp(filter->phase, "shutdown") != 0)
        return tare__fail(error, TARE_E_USAGE, "phase: '%.64s' is not startup, steady or shutdown", filter->phase);
    if (filter->phase && !find_window(analysis, steady, filter->phase, &work->window))
        return tare__fail(error, TARE_E_USAGE, "--phase: the %s of this run is not known", filter->phase);
    if (!keep_threads(work, filter, kept->threads))
        return tare__fail(error, TARE_E_USAGE, "no stack samples of %s %.100s%s", filter->thread ? "thread" : "this",
                          filter->thread ? filter->thread : "process", filter->pid ? " (--process)" : "");
    if (filter->within && !keep_paths(work->joined, filter->within, kept->paths))
        return tare__fail(error, TARE_E_USAGE, "--within: no stack sample is inside a span named '%.200s'",
                          filter->within);
    if (filter->gpu_idle && !has_gpu(analysis))
        return tare__fail(error, TARE_E_USAGE, "--gpu-idle: the trace has no utilization of a GPU that the run used");
    return 0;
}

static int read_samples(work *work, tare__analysis *analysis, tare__error *error)
{
    const tare__replay_visitor visitor = {.context = work, .stacks = tare__analyze_stack_samples};
    int status = tare__analyze_start_stacks(work);
    if (!status)
        status = tare__trace_replay(work->trace, &visitor, error);
    if (status)
        return status;
    forget_tables(analysis);
    return tare__analyze_stacks_table(work, analysis);
}

int tare__analyze_filtered(tare__trace *trace, const tare__stack_filter *filter, const joined *joined,
                           const window *steady, tare__analysis *analysis, tare__error *error)
{
    kept_samples kept = {.of = analysis, .gpu_idle = filter->gpu_idle, .within = filter->within};
    work work = {.trace = trace, .joined = joined, .filter = &kept, .whole_tree = true};
    kept.threads = calloc((size_t)tare__trace_thread_count(trace) + 1, sizeof *kept.threads);
    kept.paths = calloc(joined ? joined->n_paths : 1, sizeof *kept.paths);
    int status = kept.threads && kept.paths ? check(filter, analysis, &kept, &work, steady, error) : TARE_E_MEMORY;
    if (!status)
        status = read_samples(&work, analysis, error);
    if (!status && !analysis->n_sampled_threads)
        status = tare__fail(error, TARE_E_USAGE, "no stack sample is left by --within, --phase, --process, --thread "
                                                 "and --gpu-idle together");
    if (!status && !(analysis->stacks.only = describe(filter, analysis->arena)))
        status = TARE_E_MEMORY;
    if (!status)
        status = note_filter(analysis, analysis->stacks.only);
    tare__analyze_free_stacks(&work);
    free(kept.threads);
    free(kept.paths);
    return status;
}
