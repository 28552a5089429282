/* processes: the tables of processes and threads, and of counters, marks and aggregate spans.
 * Owned by the thread that analyzes.
 * Must not know events. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

static double instant(const work *work, uint64_t ticks)
{
    return ticks ? tare__trace_ns(work->trace, ticks) : NAN;
}

/* ---- command lines ------------------------------------------------------------------------------- */
static void append_argument(tare__text *line, const char *argument, size_t length)
{
    bool plain = length > 0;
    for (size_t i = 0; i < length; i++)
        plain &= argument[i] > ' ' && !strchr("'\"\\$`;&|<>()*?!#", argument[i]);
    if (line->length)
        tare__text_string(line, " ");
    if (plain) {
        tare__text_append(line, argument, length);
        return;
    }
    tare__text_string(line, "'");
    for (size_t i = 0; i < length; i++)
        if (argument[i] == '\'')
            tare__text_string(line, "'\\''");
        else
            tare__text_append(line, argument + i, 1);
    tare__text_string(line, "'");
}

/* One line that a shell would parse as these arguments. */
const char *tare__analyze_command(tare__arena *arena, const char *arguments, size_t bytes)
{
    tare__text line = {0};
    const char *at = arguments, *end = arguments + bytes;
    while (at < end) {
        size_t length = strnlen(at, (size_t)(end - at));
        append_argument(&line, at, length);
        at += length + 1;
    }
    return kept(arena, &line);
}

/* ---- ranks --------------------------------------------------------------------------------------- */
/* The rank as recorded when training began: for mp.spawn, there is no launcher to set it. */
static bool reported_rank(const work *work, uint32_t process, uint64_t *rank)
{
    size_t n;
    const tare__trace_fact *facts = tare__trace_facts(work->trace, &n);
    for (size_t i = 0; i < n; i++) {
        const tare__trace_stream *stream = tare__trace_stream_at(work->trace, facts[i].stream);
        if (stream && stream->process == process && tare__trace_fact_is(work->trace, &facts[i], "torch.rank") &&
            facts[i].last >= 0 && facts[i].last < 0x1p53) {
            *rank = (uint64_t)facts[i].last;
            return true;
        }
    }
    return false;
}

bool tare__analyze_rank(const work *work, uint32_t process, uint64_t *rank)
{
    const tare__trace_process *row = tare__trace_process_at(work->trace, process);
    if (reported_rank(work, process, rank))
        return true;
    *rank = row && row->has_rank ? row->rank : 0;
    return row && row->has_rank;
}

/* "rank 1 (python train.py)"; without a rank the command alone. */
const char *tare__analyze_label(const work *work, tare__arena *arena, const tare__trace_process *process)
{
    uint64_t rank;
    const char *command = process->arguments
                              ? tare__analyze_command(arena, process->arguments, process->arguments_bytes)
                              : "";
    if (!tare__analyze_rank(work, process->number, &rank) || !command)
        return command;
    tare__text text = {0};
    tare__text_format(&text, "rank %llu%s%s%s", (unsigned long long)rank, command[0] ? " (" : "", command,
                      command[0] ? ")" : "");
    return kept(arena, &text);
}

/* ---- processes ----------------------------------------------------------------------------------- */
/* Rows are in the order of the trace's table. */
uint32_t tare__analyze_process_row(const work *work, uint32_t number)
{
    size_t n;
    const tare__trace_process *rows = tare__trace_processes(work->trace, &n);
    const tare__trace_process *row = tare__trace_process_at(work->trace, number);
    return row ? (uint32_t)(row - rows) : TARE__NO_ROW;
}

static int fill_process(const work *work, tare__arena *arena, const tare__trace_process *from, tare__process_row *row)
{
    uint64_t rank = 0;
    *row = (tare__process_row){
        .number = from->number,
        .pid = from->pid,
        .parent_pid = from->parent_pid,
        .inner_pid = from->inner_pid != from->pid ? from->inner_pid : 0,
        .has_rank = tare__analyze_rank(work, from->number, &rank),
        .rank = rank,
        .joined = from->joined,
        .not_joined = copied(arena, from->not_joined),
        .unreadable = copied(arena, from->unreadable),
        .joined_at_ns = instant(work, from->joined_ticks),
        .left_at_ns = instant(work, from->left_ticks),
        .has_exit_status = from->has_exit_status,
        .exit_status = (int)from->exit_status,
        .dropped_spans = from->unattributed_spans,
        .dropped_others = from->unattributed_others,
        .used = tare__used_nothing,
    };
    if (!from->arguments)
        return 0;
    row->command = tare__analyze_command(arena, from->arguments, from->arguments_bytes);
    row->label = row->command ? tare__analyze_label(work, arena, from) : NULL;
    return row->label ? 0 : TARE_E_MEMORY;
}

const tare__used tare__used_nothing = {NAN, NAN, NAN, NAN, NAN};

static void add(double *sum, double more)
{
    if (isfinite(more))
        *sum = isfinite(*sum) ? *sum + more : more;
}

void tare__used_add(tare__used *to, const tare__metric_row *metric)
{
    if (metric->n == 0)
        return;
    switch (metric->known) { /* fmax ignores NaN */
    case TARE__M_CPU_USER:
    case TARE__M_CPU_SYSTEM: add(&to->cpu_seconds, metric->total); break;
    case TARE__M_RSS:
    case TARE__M_RSS_PEAK: to->memory_peak_bytes = fmax(to->memory_peak_bytes, metric->max); break;
    case TARE__M_THREADS: to->threads = fmax(to->threads, metric->max); break;
    case TARE__M_DISK_READ: add(&to->disk_read_bytes, metric->total); break;
    case TARE__M_DISK_WRITE: add(&to->disk_write_bytes, metric->total); break;
    default: break;
    }
}

TARE__ORDER_OF_POINTERS(compare_pids, tare__process_row, TARE__RISING(pid))

int tare__analyze_process_usage(work *work, tare__analysis *analysis)
{
    size_t n = analysis->n_processes;
    tare__process_row *rows = tare__arena_alloc(analysis->arena, (n + 1) * sizeof *rows), **by_pid;
    (void)work;
    by_pid = rows ? malloc((n + 1) * sizeof *by_pid) : NULL;
    if (!by_pid)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        rows[i] = analysis->processes[i];
        by_pid[i] = &rows[i];
    }
    qsort(by_pid, n, sizeof *by_pid, compare_pids);
    for (size_t i = 0, at = 0; i < analysis->n_metrics; i++) { /* metrics of processes are by their keys */
        const tare__metric_row *metric = &analysis->metrics[i];
        if (metric->subject != TARE__SUBJECT_PROCESS)
            continue;
        at = at > 0 && by_pid[at - 1]->pid >= (int64_t)metric->key ? 0 : at; /* another owner's */
        while (at < n && by_pid[at]->pid < (int64_t)metric->key)
            at++;
        for (size_t same = at; same < n && by_pid[same]->pid == (int64_t)metric->key; same++)
            tare__used_add(&by_pid[same]->used, metric);
    }
    free(by_pid);
    analysis->processes = rows;
    return 0;
}

static int make_processes(const work *work, tare__analysis *analysis, tare__process_row **made)
{
    size_t n;
    const tare__trace_process *from = tare__trace_processes(work->trace, &n);
    tare__process_row *rows = tare__arena_alloc(analysis->arena, n * sizeof *rows);
    int status = rows ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < n && !status; i++)
        status = fill_process(work, analysis->arena, &from[i], &rows[i]);
    analysis->processes = *made = rows;
    analysis->n_processes = n;
    return status;
}

/* ---- threads ------------------------------------------------------------------------------------- */
static void fill_thread(const work *work, tare__arena *arena, const stream *from, tare__thread_row *row)
{
    const tare__trace_stream *reported = tare__trace_stream_at(work->trace, from->id);
    const char *name = from == &work->stray ? "(more threads)" : reported ? reported->name : NULL;
    *row = (tare__thread_row){
        .process = tare__analyze_process_row(work, from->process),
        .stream = from->id,
        .tid = reported ? reported->tid : 0,
        .name = copied(arena, name),
        .spans = from->spans + from->complete - from->continued,
        .events = from->events,
        .busy_ns = (double)from->busy * tare__trace_tick_ns(work->trace),
        .first_at_ns = from->first != UINT64_MAX ? tare__trace_ns(work->trace, from->first) : NAN,
        .last_at_ns = from->first != UINT64_MAX ? tare__trace_ns(work->trace, from->last) : NAN,
        .dropped_spans = reported ? reported->dropped_spans : 0,
        .dropped_others = reported ? reported->dropped_others : 0,
        .unmatched_ends = from->unmatched,
        .dropped_ends = from->dropped_ends,
        .missing_blocks = from->missing_blocks,
        .skipped_slots = reported ? reported->skipped_slots : 0,
    };
}

static void add_to_process(const work *work, const stream *from, tare__process_row *process,
                           const tare__thread_row *thread)
{
    double tick_ns = tare__trace_tick_ns(work->trace);
    process->steps += from->steps;
    process->steps_ns += (double)from->step_ticks * tick_ns;
    process->backward_ns += (double)from->backward_ticks * tick_ns;
    process->threads++;
    process->spans += thread->spans;
    process->dropped_spans += thread->dropped_spans;
    process->dropped_others += thread->dropped_others;
    process->busy_ns += thread->busy_ns;
}

/* Index of the first thread of each process, so that rows are grouped by process and keep their order. */
static uint32_t *thread_places(const work *work, size_t n_processes)
{
    uint32_t *places = calloc(n_processes + 2, sizeof *places);
    for (size_t i = 0; places && i < work->n_streams; i++) {
        uint32_t row = tare__analyze_process_row(work, work->streams[i]->process);
        places[(row == TARE__NO_ROW ? n_processes : row) + 1]++;
    }
    for (size_t i = 1; places && i < n_processes + 2; i++)
        places[i] += places[i - 1];
    return places;
}

static int make_threads(work *work, tare__analysis *analysis, tare__process_row *processes)
{
    size_t n = work->n_streams + work->has_strays;
    tare__thread_row *rows = tare__arena_alloc(analysis->arena, n * sizeof *rows);
    uint32_t *places = thread_places(work, analysis->n_processes);
    bool there = rows && places;
    for (size_t i = 0; i < n && there; i++) {
        stream *from = i < work->n_streams ? work->streams[i] : &work->stray;
        uint32_t process = tare__analyze_process_row(work, from->process);
        from->row = places[process == TARE__NO_ROW ? analysis->n_processes : process]++;
        fill_thread(work, analysis->arena, from, &rows[from->row]);
        if (process != TARE__NO_ROW)
            add_to_process(work, from, &processes[process], &rows[from->row]);
    }
    free(places);
    analysis->threads = rows;
    analysis->n_threads = n;
    return there ? 0 : TARE_E_MEMORY;
}

int tare__analyze_process_tables(work *work, tare__analysis *analysis)
{
    tare__process_row *processes;
    int status = make_processes(work, analysis, &processes);
    return status ? status : make_threads(work, analysis, processes);
}

/* ---- counters, marks, aggregates ----------------------------------------------------------------- */
TARE__ORDER(by_counter_name, tare__counter_row, TARE__BY_TEXT(name))

static int make_counters(const work *work, tare__analysis *analysis)
{
    const counter *from = (const counter *)(const void *)work->counters.rows;
    size_t n = work->counters.n;
    tare__counter_row *rows = tare__arena_alloc(analysis->arena, n * sizeof *rows);
    if (!rows)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        rows[i] = (tare__counter_row){
            .name = copied(analysis->arena, work->names.rows[from[i].name].text),
            .n = from[i].moments.n,
            .first = from[i].first,
            .last = from[i].last,
            .min = from[i].moments.min,
            .mean = from[i].moments.mean,
            .max = from[i].moments.max,
            .first_at_ns = tare__trace_ns(work->trace, from[i].first_at),
            .last_at_ns = tare__trace_ns(work->trace, from[i].last_at),
        };
    qsort(rows, n, sizeof *rows, by_counter_name);
    analysis->counters = rows;
    analysis->n_counters = n;
    return 0;
}

TARE__ORDER(by_first_time, tare__mark_row, TARE__RISING(first_at_ns) TARE__BY_TEXT(name))

static int make_marks(const work *work, tare__analysis *analysis)
{
    const mark *from = (const mark *)(const void *)work->marks.rows;
    size_t n = work->marks.n;
    tare__mark_row *rows = tare__arena_alloc(analysis->arena, n * sizeof *rows);
    if (!rows)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        rows[i] = (tare__mark_row){
            .name = copied(analysis->arena, work->names.rows[from[i].name].text),
            .n = from[i].n,
            .first_at_ns = tare__trace_ns(work->trace, from[i].first_at),
            .last_at_ns = tare__trace_ns(work->trace, from[i].last_at),
        };
    qsort(rows, n, sizeof *rows, by_first_time);
    analysis->marks = rows;
    analysis->n_marks = n;
    return 0;
}

#define TOTAL_IF_TIMED(row) ((row)->timed ? (row)->total_ns : -1)
TARE__ORDER(by_aggregate_total, tare__aggregate_row, TARE__FALLING_BY(TOTAL_IF_TIMED) TARE__BY_TEXT(name))

static void fill_aggregate(const work *work, tare__arena *arena, const cell *from, tare__aggregate_row *row)
{
    const canon *name = &work->names.rows[from->name];
    *row = (tare__aggregate_row){
        .name = copied(arena, name->text),
        .file = copied(arena, name->file),
        .line = name->line,
        .every = from->every ? from->every : 1,
        .calls = from->calls,
        .timed = from->timed,
        .estimated = from->timed < from->calls,
        .total_ns = NAN,
        .each = tare__analyze_durations(work, &from->hist, from->min, from->max, (double)from->total, from->timed),
    };
    if (from->timed)
        row->total_ns = row->estimated ? row->each.mean_ns * (double)from->calls
                                       : (double)from->total * tare__trace_tick_ns(work->trace);
}

static int make_aggregates(const work *work, tare__analysis *analysis)
{
    const cell *from = (const cell *)(const void *)work->cells.rows;
    size_t n = work->cells.n;
    tare__aggregate_row *rows = tare__arena_alloc(analysis->arena, n * sizeof *rows);
    if (!rows)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        fill_aggregate(work, analysis->arena, &from[i], &rows[i]);
    qsort(rows, n, sizeof *rows, by_aggregate_total);
    analysis->aggregates = rows;
    analysis->n_aggregates = n;
    return 0;
}

int tare__analyze_values_table(work *work, tare__analysis *analysis)
{
    int status = make_counters(work, analysis);
    if (!status)
        status = make_marks(work, analysis);
    return status ? status : make_aggregates(work, analysis);
}
