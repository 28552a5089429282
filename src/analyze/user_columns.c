/* user_columns: the tables and columns that a user's rules may name, and how a cell is read. Constant; any thread.
 * docs/RULES.md lists the same; a test holds the two together.
 * Must not know rules. */
#include <math.h>
#include <string.h>

#include "user_rules.h"

/* ---- columns made from others ---------------------------------------------------------------- */
static value number_of(double number, value_unit unit)
{
    return (value){.type = VALUE_NUMBER, .unit = unit, .number = isfinite(number) ? number : NAN};
}

static value text_of(const char *text)
{
    return (value){.type = VALUE_TEXT, .text = text};
}

static value span_self_share(const user_context *with, const void *cell)
{
    return number_of(((const tare__span_row *)cell)->self_ns / with->self_ns, UNIT_SHARE);
}

static value span_run_share(const user_context *with, const void *cell)
{
    return number_of(((const tare__span_row *)cell)->total_ns / with->of->run.elapsed_ns, UNIT_SHARE);
}

static value span_parent(const user_context *with, const void *cell)
{
    const tare__span_row *row = cell;
    return text_of(row->parent == TARE__NO_ROW ? "" : with->of->spans[row->parent].name);
}

static value span_kind(const user_context *with, const void *cell)
{
    const tare__span_row *row = cell;
    (void)with;
    return text_of(row->kind ? tare__span_kind_word(row->kind) : "others");
}

static value thread_process(const user_context *with, const void *cell)
{
    const tare__thread_row *row = cell;
    return text_of(row->process < with->of->n_processes ? with->of->processes[row->process].command : NULL);
}

static value thread_pid(const user_context *with, const void *cell)
{
    const tare__thread_row *row = cell;
    int64_t pid = row->process < with->of->n_processes ? with->of->processes[row->process].pid : 0;
    return number_of(pid ? (double)pid : NAN, UNIT_COUNT);
}

static value process_exit_status(const user_context *with, const void *cell)
{
    const tare__process_row *row = cell;
    (void)with;
    return number_of(row->has_exit_status ? row->exit_status : NAN, UNIT_COUNT);
}

static value metric_subject(const user_context *with, const void *cell)
{
    (void)with;
    return text_of(tare__subject_word(((const tare__metric_row *)cell)->subject));
}

/* Times of metrics are seconds in the table, and ns in rules as everywhere. */
static value metric_value(double number, tare__metric_unit unit)
{
    static const value_unit units[] = {
        [TARE__SHOW_COUNT] = UNIT_COUNT,   [TARE__SHOW_BYTES] = UNIT_BYTES, [TARE__SHOW_SHARE] = UNIT_SHARE,
        [TARE__SHOW_CORES] = UNIT_CORES,   [TARE__SHOW_SECONDS] = UNIT_TIME,
        [TARE__SHOW_BYTES_PER_S] = UNIT_BYTES, [TARE__SHOW_PER_S] = UNIT_RATE,
    };
    value_unit shown = unit < TARE__COUNT_OF(units) ? units[unit] : UNIT_ANY;
    return number_of(unit == TARE__SHOW_SECONDS ? number * 1e9 : number, shown ? shown : UNIT_COUNT);
}

#define METRIC(member, unit_member)                                                                               \
    static value metric_##member(const user_context *with, const void *cell)                                      \
    {                                                                                                             \
        const tare__metric_row *row = cell;                                                                       \
        (void)with;                                                                                                 \
        return metric_value(row->member, row->unit_member);                                                       \
    }
METRIC(min, unit)
METRIC(mean, unit)
METRIC(max, unit)
METRIC(first, unit)
METRIC(last, unit)
METRIC(total, total_unit)

/* The table of usage keeps CPU time in seconds. */
#define USAGE(member)                                                                                             \
    static value usage_##member(const user_context *with, const void *cell)                                       \
    {                                                                                                             \
        (void)with;                                                                                               \
        return number_of(((const tare__usage_table *)cell)->member * 1e9, UNIT_TIME);                             \
    }
USAGE(cpu_seconds)
USAGE(user_seconds)
USAGE(system_seconds)

/* ---- tables ---------------------------------------------------------------------------------- */
#define CELL(row, member, kind, unit, what) {#member, CELL_##kind, UNIT_##unit, offsetof(row, member), NULL, what}
#define NAMED(name, row, member, kind, unit, what)                                                                \
    {name, CELL_##kind, UNIT_##unit, offsetof(row, member), NULL, what}
#define MADE(name, unit, function, what) {name, CELL_MADE, UNIT_##unit, 0, function, what}
#define MADE_TEXT(name, function, what) {name, CELL_MADE_TEXT, UNIT_ANY, 0, function, what}

#define DURATIONS(row)                                                                                            \
    NAMED("min_ns", row, each.min_ns, DOUBLE, TIME, "shortest"),                                                  \
        NAMED("mean_ns", row, each.mean_ns, DOUBLE, TIME, "mean"),                                                \
        NAMED("max_ns", row, each.max_ns, DOUBLE, TIME, "longest"),                                               \
        NAMED("p50_ns", row, each.p50_ns, DOUBLE, TIME, "median"),                                                \
        NAMED("p95_ns", row, each.p95_ns, DOUBLE, TIME, "95th percentile"),                                       \
        NAMED("p99_ns", row, each.p99_ns, DOUBLE, TIME, "99th percentile")

#define R tare__span_row
static const user_column spans[] = {
    CELL(R, name, TEXT, ANY, "its name"),
    MADE_TEXT("kind", span_kind, "span, step, epoch or others"),
    MADE_TEXT("parent", span_parent, "name of the span around it; \"\" at the top"),
    CELL(R, file, TEXT, ANY, "source file of the call site"),
    CELL(R, line, U32, COUNT, "line in it"),
    CELL(R, depth, U32, COUNT, "0 at the top"),
    CELL(R, calls, U64, COUNT, "times it ran"),
    CELL(R, still_open, U64, COUNT, "of these, open at the end"),
    CELL(R, continued, U64, COUNT, "parts of calls that are counted where they began"),
    CELL(R, total_ns, DOUBLE, TIME, "time in it"),
    CELL(R, self_ns, DOUBLE, TIME, "time in it and in no span inside"),
    CELL(R, share, DOUBLE, SHARE, "of the time of all top-level spans"),
    MADE("self_share", SHARE, span_self_share, "of the self time of all spans"),
    MADE("run_share", SHARE, span_run_share, "total over the run's time"),
    DURATIONS(R),
};
#undef R
#define R tare__step_row
static const user_column steps[] = {
    CELL(R, name, TEXT, ANY, "its name"),
    CELL(R, count, U64, COUNT, "finished ones"),
    CELL(R, unfinished, U64, COUNT, "open at the end, or end lost"),
    CELL(R, total_ns, DOUBLE, TIME, "time in them"),
    CELL(R, per_second, DOUBLE, RATE, "how many a second of the time in them"),
    CELL(R, first_ns, DOUBLE, TIME, "the first one"),
    CELL(R, rest_p50_ns, DOUBLE, TIME, "median of all others"),
    DURATIONS(R),
};
#undef R
#define R tare__aggregate_row
static const user_column aggregates[] = {
    CELL(R, name, TEXT, ANY, "its name"),
    CELL(R, file, TEXT, ANY, "source file of the call site"),
    CELL(R, line, U32, COUNT, "line in it"),
    CELL(R, calls, U64, COUNT, "times it ran"),
    CELL(R, timed, U64, COUNT, "of these, timed"),
    CELL(R, estimated, BOOL, ANY, "not all were timed: the total is estimated"),
    CELL(R, total_ns, DOUBLE, TIME, "time in it"),
    DURATIONS(R),
};
#undef R
#define R tare__counter_row
static const user_column counters[] = {
    CELL(R, name, TEXT, ANY, "its name"),
    CELL(R, n, U64, COUNT, "values"),
    CELL(R, first, DOUBLE, COUNT, "first value"),
    CELL(R, last, DOUBLE, COUNT, "last value"),
    CELL(R, min, DOUBLE, COUNT, "least value"),
    CELL(R, mean, DOUBLE, COUNT, "mean"),
    CELL(R, max, DOUBLE, COUNT, "largest value"),
    CELL(R, first_at_ns, DOUBLE, TIME, "when the first came, from the start of the run"),
    CELL(R, last_at_ns, DOUBLE, TIME, "when the last came"),
};
#undef R
#define R tare__process_row
static const user_column processes[] = {
    CELL(R, pid, I64_OR_0, COUNT, "process id"),
    CELL(R, parent_pid, I64_OR_0, COUNT, "its parent's"),
    CELL(R, command, TEXT, ANY, "its command line"),
    CELL(R, joined, BOOL, ANY, "it recorded spans itself"),
    MADE("exit_status", COUNT, process_exit_status, "as wait() told it"),
    CELL(R, threads, U32, COUNT, "threads that recorded"),
    CELL(R, spans, U64, COUNT, "spans of it"),
    CELL(R, dropped_spans, U64, COUNT, "spans that found no room"),
    CELL(R, busy_ns, DOUBLE, TIME, "time in its top-level spans"),
    CELL(R, joined_at_ns, DOUBLE, TIME, "when it joined, from the start of the run"),
    CELL(R, left_at_ns, DOUBLE, TIME, "when it left"),
};
#undef R
#define R tare__thread_row
static const user_column threads[] = {
    CELL(R, name, TEXT, ANY, "its name"),
    CELL(R, tid, I64_OR_0, COUNT, "thread id"),
    MADE("pid", COUNT, thread_pid, "its process's id"),
    MADE_TEXT("process", thread_process, "its process's command line"),
    CELL(R, spans, U64, COUNT, "spans of it"),
    CELL(R, busy_ns, DOUBLE, TIME, "time in its top-level spans"),
    CELL(R, dropped_spans, U64, COUNT, "spans that found no room"),
    CELL(R, first_at_ns, DOUBLE, TIME, "when it first recorded, from the start of the run"),
    CELL(R, last_at_ns, DOUBLE, TIME, "when it last did"),
};
#undef R
#define R tare__metric_row
static const user_column metrics[] = {
    CELL(R, metric, TEXT, ANY, "its name, as memory.rss"),
    MADE_TEXT("subject", metric_subject,
         "whose: system, cpu, disk, network, container, tree, process, thread, sensor, gpu, gpu_process, tare"),
    CELL(R, label, TEXT, ANY, "of the subject: a command, a device"),
    CELL(R, key, U64, COUNT, "of the subject: a pid, a tid, a number"),
    CELL(R, n, U64, COUNT, "samples"),
    MADE("min", ANY, metric_min, "least; of a total, of its rate a second, as mean and max"),
    MADE("mean", ANY, metric_mean, "mean over time"),
    MADE("max", ANY, metric_max, "largest"),
    MADE("first", ANY, metric_first, "first value of a gauge"),
    MADE("last", ANY, metric_last, "last value of a gauge"),
    MADE("total", ANY, metric_total, "of a total: what was added from the first sample to the last"),
    CELL(R, max_at_ns, DOUBLE, TIME, "when it was largest"),
    CELL(R, from_ns, DOUBLE, TIME, "first sample"),
    CELL(R, to_ns, DOUBLE, TIME, "last sample"),
};
#undef R
#define R tare__run_table
static const user_column run[] = {
    CELL(R, command, TEXT, ANY, "what ran, in one line"),
    CELL(R, host, TEXT, ANY, "the machine's name"),
    CELL(R, cpus, U32_OR_0, COUNT, "CPUs of the machine"),
    CELL(R, memory_bytes, DOUBLE, BYTES, "memory of the machine"),
    CELL(R, elapsed_ns, DOUBLE, TIME, "how long it ran"),
    CELL(R, status, INT_OR_LESS, COUNT, "exit status"),
    CELL(R, signal, INT, COUNT, "that ended it; 0: none"),
    CELL(R, oom_killed, BOOL, ANY, "a process was killed for want of memory"),
    CELL(R, finished, BOOL, ANY, "the recording has its end"),
    CELL(R, spans, U64, COUNT, "spans read"),
    CELL(R, dropped_spans, U64, COUNT, "spans that found no room"),
    CELL(R, damaged_blocks, U64, COUNT, "blocks of the file that could not be read"),
};
#undef R
#define R tare__usage_table
static const user_column usage[] = {
    MADE("cpu_ns", TIME, usage_cpu_seconds, "CPU time of all processes"),
    MADE("user_ns", TIME, usage_user_seconds, "of that, in user code"),
    MADE("system_ns", TIME, usage_system_seconds, "of that, in the kernel"),
    CELL(R, cores_mean, DOUBLE, CORES, "cores in use"),
    CELL(R, cores_max, DOUBLE, CORES, "at most"),
    CELL(R, cores_allowed, DOUBLE, CORES, "that may be used"),
    CELL(R, rss_peak_bytes, DOUBLE, BYTES, "most memory of a process"),
    CELL(R, rss_peak_process, TEXT, ANY, "which process"),
    CELL(R, tree_rss_max_bytes, DOUBLE, BYTES, "most memory of all processes together"),
    CELL(R, memory_allowed_bytes, DOUBLE, BYTES, "that may be used"),
    CELL(R, io_read_bytes, DOUBLE, BYTES, "asked to be read"),
    CELL(R, io_write_bytes, DOUBLE, BYTES, "asked to be written"),
    CELL(R, disk_read_bytes, DOUBLE, BYTES, "really read from disks"),
    CELL(R, disk_write_bytes, DOUBLE, BYTES, "really written to disks"),
    CELL(R, net_received_bytes, DOUBLE, BYTES, "received by the machine"),
    CELL(R, net_sent_bytes, DOUBLE, BYTES, "sent by the machine"),
    CELL(R, faults_major, DOUBLE, COUNT, "page faults that waited for a disk"),
    CELL(R, switches_voluntary, DOUBLE, COUNT, "times a thread gave up the CPU to wait"),
    CELL(R, switches_forced, DOUBLE, COUNT, "times the CPU was taken from a thread"),
    CELL(R, threads_max, DOUBLE, COUNT, "threads at most"),
    CELL(R, processes_max, DOUBLE, COUNT, "processes at most"),
    CELL(R, energy_joules, DOUBLE, COUNT, "energy in joules"),
    CELL(R, carbon_grams, DOUBLE, COUNT, "CO2 in grams"),
    CELL(R, gpu_busy_mean, DOUBLE, SHARE, "share of time in which some kernel ran"),
    CELL(R, gpu_memory_max_bytes, DOUBLE, BYTES, "most memory of all GPUs together"),
};
#undef R

#define ROWS(name, row)                                                                                           \
    {#name, name, TARE__COUNT_OF(name), offsetof(tare__analysis, name), offsetof(tare__analysis, n_##name), sizeof(row)}
#define SINGLE(name) {#name, name, TARE__COUNT_OF(name), offsetof(tare__analysis, name), 0, 0}

static const user_table tables[] = {
    ROWS(spans, tare__span_row),
    ROWS(steps, tare__step_row),
    {"epochs", steps, TARE__COUNT_OF(steps), offsetof(tare__analysis, epochs), offsetof(tare__analysis, n_epochs),
     sizeof(tare__step_row)},
    ROWS(aggregates, tare__aggregate_row),
    ROWS(counters, tare__counter_row),
    ROWS(metrics, tare__metric_row),
    ROWS(processes, tare__process_row),
    ROWS(threads, tare__thread_row),
    SINGLE(run),
    SINGLE(usage),
};

const user_table *tare__user_table_at(size_t index)
{
    return index < TARE__COUNT_OF(tables) ? &tables[index] : NULL;
}

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

const user_table *tare__user_table_find(const char *name, size_t length)
{
    for (size_t i = 0; i < TARE__COUNT_OF(tables); i++)
        if (is_name(tables[i].name, name, length))
            return &tables[i];
    return NULL;
}

const user_column *tare__user_column_find(const user_table *table, const char *name, size_t length)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (is_name(table->columns[i].name, name, length))
            return &table->columns[i];
    return NULL;
}

/* ---- cells ----------------------------------------------------------------------------------- */
value_type tare__user_column_type(const user_column *column)
{
    if (column->kind == CELL_TEXT || column->kind == CELL_MADE_TEXT)
        return VALUE_TEXT;
    return column->kind == CELL_BOOL ? VALUE_TRUTH : VALUE_NUMBER;
}

static double known_or_nan(double number, bool known)
{
    return known ? number : NAN;
}

static double read_number(const user_column *column, const void *at)
{
    switch (column->kind) {
    case CELL_DOUBLE: return *(const double *)at;
    case CELL_U64: return (double)*(const uint64_t *)at;
    case CELL_U32: return *(const uint32_t *)at;
    case CELL_I64: return (double)*(const int64_t *)at;
    case CELL_INT: return *(const int *)at;
    case CELL_U32_OR_0: return known_or_nan(*(const uint32_t *)at, *(const uint32_t *)at != 0);
    case CELL_I64_OR_0: return known_or_nan((double)*(const int64_t *)at, *(const int64_t *)at != 0);
    case CELL_INT_OR_LESS: return known_or_nan(*(const int *)at, *(const int *)at >= 0);
    default: return NAN;
    }
}

value tare__user_cell(const user_context *with, const user_column *column, const void *row)
{
    const char *at = (const char *)row + column->at;
    if (column->make)
        return column->make(with, row);
    if (column->kind == CELL_TEXT)
        return text_of(*(const char *const *)(const void *)at);
    if (column->kind == CELL_BOOL)
        return (value){.type = VALUE_TRUTH, .truth = *(const bool *)(const void *)at ? YES : NO};
    return number_of(read_number(column, at), column->unit);
}

user_context tare__user_context_of(const tare__analysis *of)
{
    user_context with = {.of = of};
    for (size_t i = 0; i < of->n_spans; i++)
        with.self_ns += of->spans[i].self_ns;
    return with;
}

size_t tare__user_rows(const tare__analysis *of, const user_table *table)
{
    const char *base = (const char *)of;
    return table->row_bytes ? *(const size_t *)(const void *)(base + table->count_at) : 1;
}

const void *tare__user_row(const tare__analysis *of, const user_table *table, size_t index)
{
    const char *at = (const char *)of + table->rows_at;
    if (!table->row_bytes)
        return at;
    return *(const char *const *)(const void *)at + index * table->row_bytes;
}
