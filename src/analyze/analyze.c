/* analyze: reads the trace block by block through its cursor, then builds the tables one by one.
 * Owned by the calling thread.
 * Must not know output formats. */
#include "analyze.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consistent.h"
#include "inner.h"
#include "analyze/findings/rules.h"

int tare__analyze_start_work(work *work)
{
    work->counters.row_bytes = sizeof(counter);
    work->marks.row_bytes = sizeof(mark);
    work->cells.row_bytes = sizeof(cell);
    int status = tare__analyze_init_nodes(&work->nodes);
    if (!status)
        status = tare__analyze_load_names(&work->names, work->trace);
    if (status)
        return status;
    work->run_root = tare__analyze_make_root(&work->nodes);
    work->tracks = tare__analyze_make_root(&work->nodes);
    status = work->run_root && work->tracks ? tare__analyze_load_streams(work) : TARE_E_MEMORY;
    if (!status)
        status = tare__analyze_start_stacks(work);
    return status ? status : tare__analyze_start_metrics(work);
}

static void free_by_name(by_name *table)
{
    free(table->row_of);
    free(table->rows);
}

void tare__analyze_free_work(work *work)
{
    for (size_t i = 0; i < work->n_steps; i++) {
        free(work->steps[i].exact);
        free(work->steps[i].course);
        free(work->steps[i].numbers);
        tare__hist_free(&work->steps[i].hist);
    }
    for (size_t i = 0; i < work->cells.n; i++)
        tare__hist_free(&((cell *)(void *)work->cells.rows)[i].hist);
    free(work->steps);
    free_by_name(&work->counters);
    free_by_name(&work->marks);
    free_by_name(&work->cells);
    tare__analyze_free_metrics(work);
    tare__analyze_free_samples(work);
    tare__analyze_free_stacks(work);
    tare__analyze_free_streams(work);
    tare__analyze_free_nodes(&work->nodes);
    tare__analyze_free_pairs(work);
    tare__analyze_free_names(&work->names);
}

/* ---- tables -------------------------------------------------------------------------------------- */
static int make_tables(work *work, tare__analysis *analysis)
{
    /* The order matters: spans refer to threads and subtract the recorder's cost; steps refer to sorted groups. */
    static int (*const tables[])(struct work *work, tare__analysis *analysis) = {
        tare__analyze_process_tables, tare__analyze_own_table, tare__analyze_operators_table,
        tare__analyze_spans_table, tare__analyze_tracks_table, tare__analyze_steps_table,
        tare__analyze_values_table, tare__analyze_facts_table,
        tare__analyze_metrics_table, tare__analyze_process_usage, tare__analyze_usage_table,
        tare__analyze_samples_table, tare__analyze_stacks_table, tare__analyze_run_table};
    int status = 0;
    tare__analyze_free_slots(&work->nodes);
    for (size_t i = 0; i < TARE__COUNT_OF(tables) && !status; i++)
        status = tables[i](work, analysis);
    if (!status)
        tare__analyze_roofline(analysis);
    return tare__arena_failed(analysis->arena) ? TARE_E_MEMORY : status;
}

/* The first note reports contradictory figures, so that users need not find them by inspection. */
static int tell_contradictions(tare__analysis *analysis)
{
    tare__contradictions found;
    tare__analyze_consistent(analysis, &found);
    if (!found.n)
        return 0;
    tare__run_table *run = &analysis->run;
    const char **notes = tare__arena_alloc(analysis->arena, (run->n_notes + 1) * sizeof *notes);
    char text[sizeof found.first + 160];
    snprintf(text, sizeof text, "%zu %s: %s; %s", found.n,
             found.n == 1 ? "figure contradicts another" : "figures contradict others", found.first,
             run->damaged_blocks ? "the file is damaged"
                                 : "this is a bug in Tare or in the program that wrote the file; please report it");
    if (!notes)
        return TARE_E_MEMORY;
    notes[0] = copied(analysis->arena, text);
    for (size_t i = 0; i < run->n_notes; i++)
        notes[i + 1] = run->notes[i];
    run->notes = notes;
    run->n_notes++;
    return tare__arena_failed(analysis->arena) ? TARE_E_MEMORY : 0;
}

/* ---- steady state -------------------------------------------------------------------------------- */
/* The same tables for a part of the run: rules on utilization, cores, memory growth and operations read them. Limits
 * of the machine and the container, and facts recorded once, are those of the whole run. */
static int analyze_part(struct tare__trace *trace, tare__by by, const window *part, const joined *joined,
                        tare__analysis *whole, tare__analysis *made, tare__error *error)
{
    work work = {.trace = trace, .by = by, .window = *part, .joined = joined};
    int status = tare__analyze_start_work(&work);
    if (!status)
        status = tare__analyze_read(&work, error);
    if (!status)
        status = make_tables(&work, made);
    tare__analyze_free_work(&work);
    made->whole = whole;
    made->phases = whole->phases;
    made->usage.cores_allowed = whole->usage.cores_allowed;
    made->usage.memory_allowed_bytes = whole->usage.memory_allowed_bytes;
    return status;
}

/* Tables of each process that has steps, for the same part of the run: sums over ranks hide what one rank costs the
 * others. `grouped` is made where the tables are not by process yet. */
static int analyze_ranks(struct tare__trace *trace, tare__by by, const window *part, const joined *joined,
                         tare__analysis *whole, tare__analysis *of, tare__analysis *grouped, tare__error *error)
{
    int status = by == TARE__BY_PROCESS ? 0 : analyze_part(trace, TARE__BY_PROCESS, part, joined, whole, grouped,
                                                              error);
    return status ? status : tare__analyze_ranks(by == TARE__BY_PROCESS ? of : grouped, of);
}

static tare__analysis *new_analysis(void)
{
    tare__arena *arena;
    tare__analysis *made = tare__arena_start(sizeof *made, &arena);
    if (made)
        made->arena = arena;
    return made;
}

int tare__analyze(struct tare__trace *trace, const tare__analyze_options *options, tare__analysis **analysis,
                  tare__error *error)
{
    *analysis = NULL;
    joined *joined = NULL;
    int status = tare__trace_prescan(trace, error);
    if (!status)
        status = tare__analyze_join(trace, &joined, error);
    if (status) {
        if (status == TARE_E_MEMORY)
            tare__fail(error, status, "out of memory while analyzing %s", tare__trace_path(trace));
        return status;
    }
    work work = {.trace = trace, .by = options ? options->by : TARE__BY_RUN, .joined = joined};
    tare__analysis *made = new_analysis();
    status = made ? tare__analyze_start_work(&work) : TARE_E_MEMORY;
    if (!status)
        status = tare__analyze_load_pairs(&work);
    if (!status && options && options->samples && options->by == TARE__BY_RUN)
        status = tare__analyze_start_samples(&work);
    if (status)
        tare__fail(error, status, "out of memory while analyzing %s", tare__trace_path(trace));
    else
        status = tare__analyze_read(&work, error);
    window part = {0};
    if (!status)
        status = make_tables(&work, made);
    if (!status)
        status = tare__analyze_phases_table(&work, made, &part);
    tare__analyze_free_work(&work);
    tare__analysis *steady = !status && part.to ? new_analysis() : NULL;
    if (!status && part.to)
        status = steady ? analyze_part(trace, work.by, &part, joined, made, steady, error) : TARE_E_MEMORY;
    tare__analysis *read = steady ? steady : made, *grouped = NULL;
    if (!status && tare__analyze_has_ranks(read)) {
        grouped = new_analysis();
        status = grouped ? analyze_ranks(trace, work.by, &part, joined, made, read, grouped, error) : TARE_E_MEMORY;
    }
    if (!status)
        status = tare__analyze_findings(made, steady, options ? options->rules : NULL);
    if (!status && options && options->stacks && tare__stack_filter_is_set(options->stacks))
        status = tare__analyze_filtered(trace, options->stacks, joined, &part, made, error);
    if (!status)
        status = tell_contradictions(made);
    if (made) { /* the tables of ranks are freed below */
        made->ranks = NULL;
        made->n_ranks = 0;
    }
    tare__analysis_free(grouped);
    tare__analysis_free(steady);
    tare__analyze_free_joined(joined);
    if (status) {
        if (status == TARE_E_MEMORY)
            tare__fail(error, status, "out of memory while analyzing %s", tare__trace_path(trace));
        tare__analysis_free(made);
        return status;
    }
    *analysis = made;
    return 0;
}

void tare__analysis_free(tare__analysis *analysis)
{
    if (analysis)
        tare__arena_free(analysis->arena);
}
