/* schema_tables: the tables of a report. A new column is a line here, a new table an array and a line in `tables`.
 * Constant; any thread.
 * Must not know output formats. */
#include <math.h>

#include "schema.h"

static const tare__table groups, spans, modules, threads, processes;

/* ---- values that are made -------------------------------------------------------------------------- */
#define MADE(name, row_type, expression)                                     \
    static tare__value name(tare__cells *cells, const void *at, size_t index) \
    {                                                                        \
        const row_type *row = at;                                            \
        (void)cells;                                                         \
        (void)index;                                                         \
        return expression;                                                   \
    }

static const char *word(const char *const *words, size_t n, size_t at)
{
    return at < n && words[at] ? words[at] : "other";
}
#define WORD(words, at) word(words, TARE__COUNT_OF(words), at)

/* ---- columns --------------------------------------------------------------------------------------- */
#define AT(member)            offsetof(R, member)
#define C(member, how, in, ...) {#member, TARE__STORED_##how, TARE__SHOW_##in, .at = AT(member), .meaning = __VA_ARGS__}
/* Under another name than the member's. */
#define N(named, member, how, in, ...)                                                       \
    {                                                                                        \
        named, TARE__STORED_##how, TARE__SHOW_##in, .at = AT(member), .meaning = __VA_ARGS__ \
    }
/* Made by a function. */
#define M(named, how, in, function, ...) \
    {named, TARE__STORED_MADE_##how, TARE__SHOW_##in, .make = function, .meaning = __VA_ARGS__}
#define L(named, how, member, counted, of, ...)                                                                 \
    {                                                                                                           \
        named, TARE__STORED_##how, TARE__SHOW_NOTHING, .at = AT(member), .count_at = AT(counted), .table = &of, \
                                                       .meaning = __VA_ARGS__                                   \
    }
#define TABLE(named, of_shape, columns_of, row, what) \
    {.name = named, .shape = TARE__SHAPE_##of_shape, .meaning = what, .columns = columns_of, \
     .n_columns = TARE__COUNT_OF(columns_of), .row_bytes = sizeof(row)}
/* … of the report itself. */
#define ROWS_OF(named, columns_of, row, what) \
    {.name = #named, .shape = TARE__SHAPE_ROWS, .meaning = what, .columns = columns_of, \
     .n_columns = TARE__COUNT_OF(columns_of), .row_bytes = sizeof(row), .at = offsetof(tare__analysis, named), \
     .count_at = offsetof(tare__analysis, n_##named)}
#define SINGLE(named, member, columns_of, what) \
    {.name = named, .shape = TARE__SHAPE_SINGLE, .meaning = what, .columns = columns_of, \
     .n_columns = TARE__COUNT_OF(columns_of), .at = offsetof(tare__analysis, member)}

#define DURATIONS                                                  \
    N("min_ns", each.min_ns, NS, NS, "shortest call"),             \
        N("mean_ns", each.mean_ns, NS, NS, "mean of a call"),      \
        N("max_ns", each.max_ns, NS, NS, "longest call"),          \
        N("p50_ns", each.p50_ns, NS, NS, "median call"),           \
        N("p95_ns", each.p95_ns, NS, NS, "95th percentile"),       \
        N("p99_ns", each.p99_ns, NS, NS, "99th percentile")

#define PLACE                                                                    \
    C(file, TEXT, NOTHING, "source file of the call site"),                      \
        M("line", COUNT, NOTHING, place_line, "line in `file`")

/* ---- numbers attached to spans ----------------------------------------------------------------------- */
#define R tare__number_row
static const tare__schema_column number_columns[] = {
    C(name, TEXT, NOTHING, "name of the number: `samples`, `tokens`, `bytes`", .key = true),
    N("count", n, U64, COUNT, "values that were added up"),
    C(sum, DOUBLE, COUNT, "their sum"),
    N("per_second", rate, DOUBLE, PER_S,
      "of a span: `sum` over the time of the calls that have the number, on one thread. Of a step: `sum` over the time "
      "in steps, "
      "for the whole job"),
    C(estimated, BOOL, NOTHING, "`per_second` is estimated from the `inspected` steps (`--shapes`)"),
    C(inspected, U64, COUNT, "steps that `--shapes` inspected, one per process"),
};
#undef R
static const tare__table numbers =
    TABLE("numbers", ROWS, number_columns, tare__number_row, "a number attached to the row's calls");

/* ---- run ---------------------------------------------------------------------------------------------- */
static tare__value make_levels(tare__cells *cells, const void *at, size_t index)
{
    const tare__peaks *peaks = at;
    size_t n = 0;
    (void)index;
    for (size_t i = 0; i < TARE__PEAK_LEVELS; i++)
        if (peaks->level_per_s[i] > 0)
            cells->levels[n++] =
                (tare__peak_level){tare__peak_level_name(i), i == TARE__PEAK_LEVELS - 1 ? NAN : peaks->level_bytes[i],
                                   peaks->level_per_s[i]};
    return (tare__value){.type = TARE__TYPE_ROWS, .count = n, .rows = cells->levels};
}

static bool peaks_are_known(const void *row)
{
    const tare__peaks *peaks = row;
    return peaks->flops[TARE__PEAK_F32] > 0 || peaks->level_per_s[TARE__PEAK_LEVELS - 1] > 0;
}

#define R tare__peak_level
static const tare__schema_column level_columns[] = {
    C(name, TEXT, NOTHING, "`L1`, `L2`, `L3` or `memory`"),
    C(bytes, DOUBLE, BYTES, "its size; null for memory"),
    N("bytes_per_second", per_s, DOUBLE, BYTES_PER_S, "bandwidth of all cores together"),
};
#undef R
static const tare__table levels =
    TABLE("levels", ROWS, level_columns, tare__peak_level, "a level of the memory hierarchy");

#define NO_PEAKS "not measured: --shapes measures it"
#define R tare__peaks
static const tare__schema_column peak_columns[] = {
    N("f32", flops[TARE__PEAK_F32], DOUBLE_OR_0, FLOPS_PER_S, "single precision, all cores together",
      .absent = NO_PEAKS),
    N("f64", flops[TARE__PEAK_F64], DOUBLE_OR_0, FLOPS_PER_S, "double precision", .absent = NO_PEAKS),
    N("f16", flops[TARE__PEAK_F16], DOUBLE_OR_0, FLOPS_PER_S, "half precision", .absent = NO_PEAKS),
    N("bf16", flops[TARE__PEAK_BF16], DOUBLE_OR_0, FLOPS_PER_S, "bfloat16", .absent = NO_PEAKS),
    N("int8", flops[TARE__PEAK_INT8], DOUBLE_OR_0, FLOPS_PER_S, "8-bit integers", .absent = NO_PEAKS),
    {"levels", TARE__STORED_MADE_ROWS, TARE__SHOW_NOTHING, .make = make_levels, .table = &levels,
     .meaning = "bandwidth of caches and memory"},
};
#undef R
static const tare__table peaks = {.name = "peaks",
                                  .shape = TARE__SHAPE_SINGLE,
                                  .meaning = "measured peaks of the machine",
                                  .columns = peak_columns,
                                  .n_columns = TARE__COUNT_OF(peak_columns),
                                  .present = peaks_are_known};

static tare__value run_arguments(tare__cells *cells, const void *at, size_t index)
{
    const tare__run_table *run = at;
    (void)cells;
    (void)index;
    return (tare__value){.type = TARE__TYPE_TEXTS, .count = run->n_arguments, .texts = run->arguments};
}

MADE(run_peak_bytes, tare__run_table,
     tare__value_number(row->peaks.level_per_s[TARE__PEAK_LEVELS - 1] > 0
                            ? row->peaks.level_per_s[TARE__PEAK_LEVELS - 1]
                            : NAN))

#define R tare__run_table
static const tare__schema_column refused_columns[] = {
    N("space", refused_space, U64, COUNT, "processes that could not join: no space for a ring"),
    N("abi", refused_abi, U64, COUNT, "… built against an incompatible version of libtare"),
    N("system", refused_system, U64, COUNT, "… a system call failed"),
    N("copy", refused_copy, U64, COUNT, "… a second copy of libtare in a process that already records"),
};
static const tare__table refused = {.name = "refused_processes", .shape = TARE__SHAPE_SINGLE,
                                    .meaning = "processes that could not join", .columns = refused_columns,
                                    .n_columns = TARE__COUNT_OF(refused_columns)};

#define UNKNOWN "the trace does not contain it"
static const tare__schema_column run_columns[] = {
    C(command, TEXT, NOTHING, "command line", .absent = UNKNOWN),
    M("arguments", TEXTS, NOTHING, run_arguments, "the command's arguments", .between = " "),
    C(directory, TEXT, NOTHING, "working directory", .absent = UNKNOWN),
    C(host, TEXT, NOTHING, "host name", .absent = UNKNOWN),
    C(cpus, U32_OR_0, COUNT, "CPUs of the machine", .absent = UNKNOWN),
    C(cpu_model, TEXT, NOTHING, "CPU model", .absent = UNKNOWN),
    C(memory_bytes, DOUBLE_OR_0, BYTES, "memory of the machine", .absent = UNKNOWN),
    N("peak_flops_per_second", peaks.flops[TARE__PEAK_F32], DOUBLE_OR_0, FLOPS_PER_S,
      "measured peak of the machine in single precision (`--shapes`)", .absent = NO_PEAKS),
    M("peak_bytes_per_second", NUMBER, BYTES_PER_S, run_peak_bytes, "measured peak bandwidth of memory (`--shapes`)",
      .absent = NO_PEAKS),
    {"peaks", TARE__STORED_PART, TARE__SHOW_NOTHING, .at = AT(peaks), .table = &peaks,
     .meaning =
         "operations per second by data type, and bandwidth by level of the memory hierarchy; null: not measured"},
    C(gpus, TEXT, NOTHING, "GPUs and driver", .absent = "none is known"),
    C(kernel, TEXT, NOTHING, "kernel release", .absent = UNKNOWN),
    C(system, TEXT, NOTHING, "operating system", .absent = UNKNOWN),
    C(revision, TEXT, NOTHING, "git revision of `directory`", .absent = "none is known"),
    C(writer, TEXT, NOTHING, "version that wrote the trace: `tare 0.1.0`", .absent = UNKNOWN),
    C(start_realtime_ns, U64_OR_0, NS, "start of the run, since 1970-01-01 UTC", .absent = UNKNOWN),
    C(elapsed_ns, NS, NS, "duration of the run; up to the last event when `finished` is false", .absent = UNKNOWN),
    C(finished, BOOL, NOTHING, "the trace is complete; false: it is still being written, or was truncated"),
    C(salvaged, BOOL, NOTHING, "completed by a later command, after the collector was killed"),
    C(clock_known, BOOL, NOTHING, "false: nanoseconds are ticks of an unknown length"),
    N("exit_status", status, INT_OR_LESS, NOTHING, "exit status, as `tare run` returned it", .absent = UNKNOWN),
    C(signal, INT_OR_0, NOTHING, "signal that ended the program",
      .absent = "no signal is known to have ended the program"),
    C(oom_killed, BOOL, NOTHING, "the kernel killed a process of the run: out of memory"),
    C(attached, I64_OR_0, NOTHING,
      "process that was already running when `tare attach` or a session of its own began to record it; null: the run "
      "was launched",
      .absent = "the run was launched"),
    C(spans, U64, COUNT, "spans in the trace"),
    C(dropped_spans, U64, COUNT, "spans dropped for lack of buffer space"),
    C(dropped_others, U64, COUNT, "other events dropped for lack of buffer space"),
    C(rotated_spans, U64, COUNT, "spans removed by `--max-size` or `--last`"),
    C(rotated_before_at_ns, NS, NS, "before this time the trace is not complete", .absent = "nothing was removed"),
    C(damaged_blocks, U64, COUNT, "blocks of the file that could not be read"),
    C(damaged_bytes, U64, BYTES, "their size"),
    C(damaged_spans, U64, COUNT, "spans known to be in them"),
    C(unknown_blocks, U64, COUNT, "blocks written by a newer version, skipped"),
    C(names_refused, U64, COUNT, "names dropped for lack of space in a process's table"),
    {"refused_processes", TARE__STORED_PART, TARE__SHOW_NOTHING, .table = &refused,
     .meaning = "processes that could not join"},
    C(left_running, U64, COUNT, "recorded processes that were still running at the end"),
    C(write_error, TEXT, NOTHING, "why writing the trace stopped", .absent = "writing did not fail"),
};
#undef R
static const tare__table run = SINGLE("run", run, run_columns, "what ran");

/* ---- notes -------------------------------------------------------------------------------------------- */
static tare__value note_text(tare__cells *cells, const void *at, size_t index)
{
    (void)cells;
    (void)index;
    return tare__value_text(*(const char *const *)at);
}

static const tare__schema_column note_columns[] = {
    M("note", TEXT, NOTHING, note_text, "a sentence"),
};
static const tare__table notes = {.name = "notes",
                                  .shape = TARE__SHAPE_VALUES,
                                  .columns = note_columns,
                                  .n_columns = 1,
                                  .row_bytes = sizeof(const char *),
                                  .meaning = "contradictory, missing or merged data, the most important first",
                                  .at = offsetof(tare__analysis, run.notes),
                                  .count_at = offsetof(tare__analysis, run.n_notes)};

/* ---- Tare's own overhead -------------------------------------------------------------------------------- */
#define R tare__own_table
#define NOT_CALIBRATED "the cost of an event was not calibrated in this run"
static const tare__schema_column own_columns[] = {
    C(own_ns, NS, NS, "time that recording took inside the program: events times their cost", .absent = NOT_CALIBRATED),
    C(taken_off_ns, NS, NS, "of `own_ns`: subtracted from self times", .absent = NOT_CALIBRATED),
    C(share, DOUBLE, SHARE, "`own_ns` / `recorded_ns`", .absent = "own_ns or recorded_ns is not known"),
    C(recorded_ns, NS, NS, "sum over all threads of the time from the first event to the last",
      .absent = "nothing was recorded"),
    C(collector_cpu_ns, NS, NS, "CPU time of the collector, a separate process",
      .absent = "the trace has no end block"),
    C(sampler_cpu_ns, NS, NS, "of `collector_cpu_ns`: spent sampling",
      .absent = "nothing was sampled, or the trace has no end block"),
    C(interval_ns, NS, NS, "sampling interval as configured", .absent = "nothing was sampled"),
    C(longest_interval_ns, NS, NS, "longest interval between two samples", .absent = "nothing was sampled"),
    C(pair_ns, DOUBLE, NS, "calibrated cost of a begin and an end", .absent = NOT_CALIBRATED),
    C(inner_ns, DOUBLE, NS, "the part of `pair_ns` that lies inside the span", .absent = NOT_CALIBRATED),
    C(next_ns, DOUBLE, NS, "calibrated cost of a chained span", .absent = NOT_CALIBRATED),
    C(aggregate_ns, DOUBLE, NS, "calibrated cost of an aggregate span", .absent = NOT_CALIBRATED),
    C(spans, U64, COUNT, "spans recorded by begin and end"),
    C(chained_spans, U64, COUNT, "spans recorded by next"),
    C(marks, U64, COUNT, "marks"),
    C(counters, U64, COUNT, "values of counters"),
    C(numbers, U64, COUNT, "numbers attached to spans"),
    C(complete_spans, U64, COUNT, "complete spans, recorded after they ended"),
    C(aggregate_calls, U64, COUNT, "calls of aggregate spans"),
    C(aggregate_timed, U64, COUNT, "of these: timed"),
};
#undef R
static const tare__table own = SINGLE("tare", own, own_columns, "Tare's own overhead");

/* ---- usage ------------------------------------------------------------------------------------------------ */
#define R tare__usage_table
#define NOT_MEASURED .absent = "not measured in this run"
#define CPU    .absent_at = AT(absent_cpu), NOT_MEASURED
#define MEMORY .absent_at = AT(absent_memory), NOT_MEASURED
#define DISK   .absent_at = AT(absent_disk), NOT_MEASURED
#define ENERGY .absent_at = AT(absent_energy), NOT_MEASURED
#define GPU    .absent_at = AT(absent_gpu), NOT_MEASURED
static const tare__schema_column usage_columns[] = {
    C(cpu_seconds, DOUBLE, SECONDS, "CPU time of all processes", CPU),
    C(user_seconds, DOUBLE, SECONDS, "of that: in user mode", CPU),
    C(system_seconds, DOUBLE, SECONDS, "of that: in the kernel", CPU),
    C(cores_mean, DOUBLE, CORES, "cores in use, mean", CPU),
    C(cores_max, DOUBLE, CORES, "cores in use, maximum", CPU),
    C(cores_allowed, DOUBLE, CORES, "cores that affinity and container allow: 100 %", CPU),
    C(rss_peak_bytes, DOUBLE, BYTES, "peak memory of the largest process, by the kernel's high-water mark", MEMORY),
    C(rss_peak_at_least, BOOL, NOTHING,
      "`rss_peak_bytes` is a lower bound: a process may have grown after its last sample"),
    C(rss_peak_process, TEXT, NOTHING, "the process with the peak", MEMORY),
    C(rss_peak_at_ns, NS, NS, "when the peak was first sampled", .absent_at = AT(absent_memory),
      .absent = "only known at the end"),
    C(tree_rss_max_bytes, DOUBLE, BYTES,
      "peak memory of all processes together, at a sample; never below `rss_peak_bytes`", MEMORY),
    C(memory_allowed_bytes, DOUBLE, BYTES, "memory that container and machine allow", MEMORY),
    C(io_read_bytes, DOUBLE, BYTES, "read by system calls", DISK),
    C(io_write_bytes, DOUBLE, BYTES, "written by system calls", DISK),
    C(disk_read_bytes, DOUBLE, BYTES, "read from disks", DISK),
    C(disk_write_bytes, DOUBLE, BYTES, "written to disks", DISK),
    C(net_received_bytes, DOUBLE, BYTES, "received by the whole machine", NOT_MEASURED),
    C(net_sent_bytes, DOUBLE, BYTES, "sent by the whole machine", NOT_MEASURED),
    C(faults_major, DOUBLE, COUNT, "page faults that waited for a disk", MEMORY),
    C(switches_voluntary, DOUBLE, COUNT, "context switches of threads that waited", CPU),
    C(switches_forced, DOUBLE, COUNT, "context switches by preemption", CPU),
    C(threads_max, DOUBLE, COUNT, "threads at one time, maximum", CPU),
    C(processes_max, DOUBLE, COUNT, "processes at one time, maximum", CPU),
    C(energy_joules, DOUBLE, JOULES, "energy of CPU packages and GPUs", ENERGY),
    C(carbon_grams, DOUBLE, GRAMS, "`energy_joules` as CO2, at `carbon_intensity`", ENERGY),
    C(carbon_intensity, DOUBLE, GRAMS_PER_KWH, "grid carbon intensity (`--carbon`)", ENERGY),
    C(gpu_busy_mean, DOUBLE, SHARE, "share of time in which a kernel ran", GPU),
    C(gpu_memory_max_bytes, DOUBLE, BYTES, "peak memory of all GPUs together", GPU),
};
#undef R
static const tare__table usage = SINGLE("usage", usage, usage_columns, "resources that the run used");

/* ---- phases ------------------------------------------------------------------------------------------------- */
#define R tare__phase
static const tare__schema_column phase_columns[] = {
    C(from_ns, NS, NS, "begin", .absent_at = AT(how)),
    C(to_ns, NS, NS, "end", .absent_at = AT(how)),
    C(how, TEXT, NOTHING, "how its bounds were found, or why they are not known"),
};
#undef R
static const tare__table phase = {.name = "phase", .shape = TARE__SHAPE_SINGLE, .meaning = "a phase of the run",
                                  .columns = phase_columns, .n_columns = TARE__COUNT_OF(phase_columns)};

#define R tare__import_row
static const tare__schema_column import_columns[] = {
    C(module, TEXT, NOTHING, "top-level name: `torch`", .key = true),
    C(from_ns, NS, NS, "when its first import began"),
    C(total_ns, NS, NS, "import time; 0 where it was only imported inside another import"),
};
#undef R
static const tare__table imports =
    TABLE("imports", ROWS, import_columns, tare__import_row, "an import of 1 ms or more");

static tare__value phase_imports(tare__cells *cells, const void *at, size_t index)
{
    const tare__phase_table *phases = at;
    (void)cells;
    (void)index;
    return (tare__value){.type = phases->imports_known ? TARE__TYPE_ROWS : TARE__TYPE_ABSENT,
                         .count = phases->n_imports,
                         .rows = phases->imports};
}

static bool phases_are_known(const void *row)
{
    return ((const tare__phase_table *)row)->steady.how;
}

#define R tare__phase_table
#define PHASE(named, member, what) \
    {named, TARE__STORED_PART, TARE__SHOW_NOTHING, .at = AT(member), .table = &phase, .meaning = what}
static const tare__schema_column phases_columns[] = {
    PHASE("startup", startup, "startup"),
    PHASE("steady_state", steady, "steady state; its bounds are always known"),
    PHASE("shutdown", shutdown, "shutdown"),
    C(interpreter_ns, NS, NS, "part of startup: until the first Python interpreter was ready",
      .absent = "no Python process reported when it was ready"),
    C(imports_ns, NS, NS, "part of startup: imports", .absent = "no Python process reported its imports"),
    C(preparation_ns, NS, NS, "part of startup: everything else before the first step", .absent_at = AT(startup.how)),
    C(warm_up_ns, NS, NS, "part of startup: warm-up steps", .absent = "no warm-up steps are known"),
    C(warm_up_steps, U64, COUNT, "warm-up steps"),
    C(compile_ns, NS, NS, "time in `torch.compile` over the whole run, without recompilations",
      .absent = "nothing was compiled"),
    {"imports", TARE__STORED_MADE_ROWS, TARE__SHOW_NOTHING, .make = phase_imports, .table = &imports,
     .meaning = "imports by the main threads of Python processes, longest first",
     .absent = "no Python process reported its imports"},
};
#undef R
static const tare__table phases = {
    .name = "phases",
    .shape = TARE__SHAPE_SINGLE,
    .meaning = "startup, steady state and shutdown of the run ([FINDINGS.md](FINDINGS.md) says how they are "
               "found); null: the run was not analyzed for phases",
    .columns = phases_columns,
    .n_columns = TARE__COUNT_OF(phases_columns),
    .at = offsetof(tare__analysis, phases),
    .present = phases_are_known};

/* ---- findings ------------------------------------------------------------------------------------------------- */
MADE(figure_unit, tare__evidence, tare__value_text(tare__unit_word(row->unit)))
MADE(finding_severity, tare__finding, tare__value_text(tare__severity_word(row->severity)))

#define R tare__evidence
static const tare__schema_column figure_columns[] = {
    C(name, TEXT, NOTHING, "name of the figure"),
    C(value, DOUBLE, VARIES, "its value", .unit_at = AT(unit)),
    M("unit", TEXT, NOTHING, figure_unit, "its unit"),
};
#undef R
static const tare__table figures = TABLE("figures", ROWS, figure_columns, tare__evidence, "a figure of the evidence");

#define R tare__finding
static const tare__schema_column finding_columns[] = {
    C(id, TEXT, NOTHING, "the rule; stable from version to version", .key = true),
    M("severity", TEXT, NOTHING, finding_severity, "`critical`, `warning` or `info`"),
    C(title, TEXT, NOTHING, "what was found"),
    C(evidence, TEXT, NOTHING, "the evidence"),
    C(advice, TEXT, NOTHING, "what to do"),
    C(gain, DOUBLE, SHARE,
      "upper bound of the share of steady-state time that following the advice saves; null: none is predicted"),
    C(gain_how, TEXT, NOTHING, "basis of the bound, or the reason for a null `gain`"),
    C(from_ns, NS, NS, "begin of the time for which it holds; null: the whole run"),
    C(to_ns, NS, NS, "end of that time"),
    L("figures", ROWS, figures, n_figures, figures, "figures behind it"),
    C(source, TEXT, NOTHING, "file and line of a user's rule; null: built in"),
};
#undef R
static const tare__table findings = ROWS_OF(findings, finding_columns, tare__finding,
    "a finding, the most severe first ([FINDINGS.md](FINDINGS.md); your own rules: [RULES.md](RULES.md))");

/* ---- groups, spans ---------------------------------------------------------------------------------------------- */
#define R tare__group_row
static const tare__schema_column group_columns[] = {
    C(name, TEXT, NOTHING, "name of the process or thread", .key = true),
    C(process, ROW, NOTHING, "its process", .table = &processes),
    C(thread, ROW, NOTHING, "its thread; null with `--by process`", .table = &threads),
    N("first_span", first_row, U32, COUNT, "row in `spans` where its rows begin"),
    N("spans", n_rows, U32, COUNT, "its rows in `spans`"),
    C(total_ns, NS, NS, "time in its top-level spans"),
};
#undef R
static const tare__table groups = ROWS_OF(groups, group_columns, tare__group_row,
    "a process (`--by process`) or thread (`--by thread`), largest total first; empty without these options");

static tare__value span_path(tare__cells *cells, const void *at, size_t index)
{
    const tare__span_row *all = cells->of->spans, *row = at;
    size_t n = (size_t)row->depth + 1;
    if (n > TARE__TEXTS_MAX)
        return (tare__value){.type = TARE__TYPE_ABSENT};
    for (size_t i = n; i-- > 0 && index < cells->of->n_spans; index = all[index].parent)
        cells->texts[i] = all[index].name;
    return (tare__value){.type = TARE__TYPE_TEXTS, .count = n, .texts = cells->texts};
}

MADE(span_kind, tare__span_row, tare__value_text(row->kind ? tare__span_kind_word(row->kind) : "others"))
MADE(span_self_share, tare__span_row, tare__value_number(row->self_ns / cells->self_ns))
MADE(span_run_share, tare__span_row, tare__value_number(row->total_ns / cells->of->run.elapsed_ns))

#define R tare__span_row
MADE(span_line, R, tare__value_count(row->line, row->file && row->line))
#define place_line span_line
static const tare__schema_column span_columns[] = {
    C(name, TEXT, NOTHING, "name of the span", .key = true),
    M("kind", TEXT, NOTHING, span_kind,
      "`span`, `step`, `epoch`, `operator`, `module`, `phase`, or `others`: spans merged into one row"),
    C(calls, U64, COUNT, "calls"),
    C(total_ns, NS, NS, "time between begin and end"),
    C(self_ns, NS, NS, "total minus the spans directly inside, minus the recording overhead; never below 0"),
    C(raw_self_ns, NS, NS, "total minus the spans directly inside"),
    DURATIONS,
    C(share, DOUBLE, SHARE, "`total_ns` of the total of all top-level rows"),
    M("self_share", NUMBER, SHARE, span_self_share, "`self_ns` of the self time of all rows"),
    M("run_share", NUMBER, SHARE, span_run_share, "`total_ns` of the duration of the run"),
    C(depth, U32, COUNT, "0 for a top-level row"),
    C(parent, ROW, NOTHING, "the row around it; null for a top-level row", .table = &spans),
    M("path", TEXTS, NOTHING, span_path, "names from the top to this row; null below depth 255", .between = "/"),
    C(group, ROW, NOTHING, "its group (`--by`)", .table = &groups),
    PLACE,
    C(still_open, U64, COUNT, "of the calls: open at the end of the run, counted up to there"),
    C(end_lost, U64, COUNT, "of the calls: the end is missing, counted up to where that was detected"),
    C(left_open, U64, COUNT, "of the calls: closed by the end of an enclosing span"),
    C(continued, U64, COUNT,
      "parts of calls that began elsewhere: a span that a suspended generator holds open is recorded in parts. Such a "
      "call is "
      "counted once, where it began; its durations and numbers are of the whole call, `total_ns` is the time of the "
      "parts in this row"),
    L("numbers", ROWS, numbers, n_numbers, numbers, "numbers attached to its calls"),
};
#undef place_line
#undef R
static const tare__table spans = ROWS_OF(spans, span_columns, tare__span_row,
    "a path in the span tree, depth first, siblings by total time: the same name below two parents is two rows");

/* ---- steps and epochs
 * ---------------------------------------------------------------------------------------------- */
MADE(interval_reason, tare__step_interval,
     tare__value_text(isfinite(row->low_ns) ? NULL : row->needed ? "too few steps" : "too many to keep each"))

#define R tare__step_interval
static const tare__schema_column interval_columns[] = {
    C(low_ns, NS, NS, "lower bound of the 95 % confidence interval"),
    C(high_ns, NS, NS, "upper bound"),
    C(needed, U64_OR_0, COUNT, "steps needed for an interval, where there are too few"),
    M("reason", TEXT, NOTHING, interval_reason, "why there is no interval"),
};
#undef R
static const tare__table interval = {.name = "interval",
                                     .shape = TARE__SHAPE_SINGLE,
                                     .meaning = "a 95 % confidence interval, by order statistics",
                                     .columns = interval_columns,
                                     .n_columns = TARE__COUNT_OF(interval_columns)};

#define R tare__slow_step
MADE(slow_index, R, tare__value_count(row->index, row->has_index))
static const tare__schema_column slow_columns[] = {
    M("index", COUNT, NOTHING, slow_index, "the step's index; null: it has none"),
    C(duration_ns, NS, NS, "its duration"),
    C(start_at_ns, NS, NS, "its begin"),
    C(thread, ROW, NOTHING, "its thread", .table = &threads),
};
#undef R
static const tare__table slowest = TABLE("slowest", ROWS, slow_columns, tare__slow_step, "one of the five slowest");

#define R tare__step_row
#define INTERVAL(named, member, what) \
    {named, TARE__STORED_PART, TARE__SHOW_NOTHING, .at = AT(member), .table = &interval, .meaning = what}
static const tare__schema_column step_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true),
    C(group, ROW, NOTHING, "its group (`--by`)", .table = &groups),
    C(count, U64, COUNT, "finished ones: the figures are of these"),
    C(job_count, U64, COUNT, "as `count`, but a step that all ranks of a distributed job run together counts once"),
    C(ranks, U64, COUNT, "ranks that ran them; 0: none is known"),
    C(unfinished, U64, COUNT, "open at the end, or the end is missing"),
    C(total_ns, NS, NS, "time in them"),
    DURATIONS,
    C(exact, BOOL, NOTHING, "quantiles are of all durations; false: of a histogram, within 0.4 %"),
    INTERVAL("p50_interval", p50, "confidence interval of the median"),
    INTERVAL("p95_interval", p95, "confidence interval of the 95th percentile"),
    C(per_second, DOUBLE, PER_S,
      "`job_count` over the time in them. Steps that ran at the same time on several threads, processes or ranks count "
      "their time "
      "once; threads and processes that are not ranks of one job add up. Time between steps (evaluation, checkpoints) "
      "is not in the "
      "rate, nor are steps that `--shapes` inspected or whose begin was not recorded; null: no other step is left"),
    C(first_ns, NS, NS, "duration of the first one"),
    C(rest_p50_ns, NS, NS, "median of all others"),
    L("slowest", HERE, slowest, n_slowest, slowest, "the slowest ones, up to five"),
    L("numbers", ROWS, numbers, n_numbers, numbers,
      "numbers attached to them and to spans inside. With `--shapes`, `flops` and `bytes` are estimated: `sum` is that "
      "of the "
      "`inspected` steps, and `per_second` is their mean times the steps per second"),
};
#undef R
static const tare__table steps = ROWS_OF(steps, step_columns, tare__step_row, "a name of steps");
static const tare__table epochs = ROWS_OF(epochs, step_columns, tare__step_row, "a name of epochs");

/* ---- operators and modules
 * ------------------------------------------------------------------------------------------- */
static const char *direction_word(tare__direction direction)
{
    static const char *const words[] = {NULL, "forward", "backward"};
    return words[direction];
}
MADE(operator_direction, tare__operator_row, tare__value_text(direction_word(row->direction)))
MADE(module_operator_direction, tare__module_operator_row, tare__value_text(direction_word(row->direction)))

#define R tare__operator_row
static const tare__schema_column operator_columns[] = {
    C(name, TEXT, NOTHING, "name: `aten::mm`", .key = true),
    C(phase, TEXT, NOTHING, "phase of the step: `forward`, `backward`, `optimizer`; null: outside all phases"),
    M("direction", TEXT, NOTHING, operator_direction, "`forward` or `backward`; null: neither"),
    C(calls, U64, COUNT, "calls"),
    C(total_ns, NS, NS, "time in it, without calls inside another call of the same name"),
    C(self_ns, NS, NS, "total minus the operators inside, minus the recording overhead"),
    C(raw_self_ns, NS, NS, "total minus the operators inside"),
    C(share, DOUBLE, SHARE, "`self_ns` of the self time of all operators"),
    DURATIONS,
    C(step_self_ns, NS, NS, "self time inside steps; null: there are no steps"),
    C(per_step_ns, NS, NS, "`step_self_ns` per step"),
    C(step_share, DOUBLE, SHARE, "`step_self_ns` of the steps' time"),
    C(module, TEXT, NOTHING, "its module, when all calls are in one"),
    C(modules, U32, COUNT, "number of modules that call it; 0: none is known"),
    C(pair, TEXT, NOTHING,
      "its counterpart in the other direction: the backward node of a forward operator, and the reverse"),
    C(paired, U64, COUNT, "of the calls: whose counterpart is known"),
    C(pair_total_ns, NS, NS, "total time of the counterparts"),
    C(unpaired, TEXT, NOTHING, "why calls have no counterpart; null: all have one"),
    C(shapes, TEXT, NOTHING, "shapes of its tensors in one step, most frequent first: `f32[8,64] f32[64,64] x12`"),
    C(flops, DOUBLE, FLOPS, "floating-point operations of all calls"),
    N("bytes_estimate", bytes, DOUBLE, BYTES,
      "size of its tensors over all calls: an estimate of the memory traffic, without caches"),
    N("flops_per_second", flops_per_s, DOUBLE, FLOPS_PER_S, "`flops` over `total_ns`"),
    N("bytes_per_second_estimate", bytes_per_s, DOUBLE, BYTES_PER_S, "`bytes_estimate` over `total_ns`"),
    C(of_peak_flops, DOUBLE, SHARE, "share of the machine's peak for its data type, at most 1"),
    C(of_peak_bytes, DOUBLE, SHARE,
      "share of the bandwidth that caches and memory have for tensors of its size, at most 1"),
    C(of_peak_absent, TEXT, NOTHING, "why one of them is null"),
    C(recomputed, U64, COUNT, "of the calls: recomputed in the backward pass (activation checkpointing)"),
    C(shapes_absent, TEXT, NOTHING, "why shapes, FLOPs and bytes are null"),
};
#undef R
static const tare__table operators = ROWS_OF(operators, operator_columns, tare__operator_row,
    "an operator in a phase and a direction, largest self time first ([OPERATORS.md](OPERATORS.md))");

#define R tare__module_operator_row
static const tare__schema_column module_operator_columns[] = {
    C(name, TEXT, NOTHING, "name of the operator"),
    M("direction", TEXT, NOTHING, module_operator_direction, "`forward` or `backward`; null: neither"),
    C(calls, U64, COUNT, "calls"),
    C(total_ns, NS, NS, "time in it"),
    C(self_ns, NS, NS, "self time; null for a node of the backward pass"),
};
#undef R
static const tare__table module_operators = TABLE("operators", ROWS, module_operator_columns, tare__module_operator_row,
                                                  "an operator called by the module itself");

static tare__value module_rows(tare__cells *cells, const void *at, size_t index)
{
    const tare__module_row *row = at;
    (void)index;
    return (tare__value){.type = TARE__TYPE_ROWS,
                         .count = row->n_operators,
                         .rows = row->n_operators ? &cells->of->module_operators[row->first_operator] : NULL};
}

#define R tare__module_row
static const tare__schema_column module_columns[] = {
    C(path, TEXT, NOTHING, "path of the module: `encoder.layers.3.self_attn`", .key = true),
    C(parent, ROW, NOTHING, "the module around it; null at the top", .table = &modules),
    C(depth, U32, COUNT, "0 at the top"),
    C(calls, U64, COUNT, "calls of its forward"),
    C(total_ns, NS, NS, "time in it"),
    C(self_ns, NS, NS, "total minus the modules inside"),
    C(operators_ns, NS, NS, "of `self_ns`: self time of operators"),
    C(share, DOUBLE, SHARE, "`total_ns` of the total of all top-level modules"),
    C(backward_calls, U64, COUNT, "nodes of the backward pass whose forward operator ran in it or below"),
    C(backward_ns, NS, NS, "their total time; null: none is known"),
    {"operators", TARE__STORED_MADE_ROWS, TARE__SHOW_NOTHING, .make = module_rows, .table = &module_operators,
     .meaning = "operators that it calls itself"},
};
#undef R
static const tare__table modules = ROWS_OF(modules, module_columns, tare__module_row, "a module, depth first");

/* ---- aggregates, counters, marks, tracks
 * ------------------------------------------------------------------------------- */
#define R tare__aggregate_row
MADE(aggregate_line, R, tare__value_count(row->line, row->file && row->line))
#define place_line aggregate_line
static const tare__schema_column aggregate_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true),
    C(calls, U64, COUNT, "calls"),
    C(timed, U64, COUNT, "of these: timed"),
    C(every, U32, COUNT, "one call in this many is timed"),
    C(estimated, BOOL, NOTHING, "`total_ns` is the mean of the timed calls times `calls`"),
    C(total_ns, NS, NS, "time in it; null: no call was timed"),
    DURATIONS,
    PLACE,
};
#undef place_line
#undef R
static const tare__table aggregates = ROWS_OF(aggregates, aggregate_columns, tare__aggregate_row,
    "an aggregate span, which keeps no events: quantiles are within 6 %");

#define R tare__counter_row
static const tare__schema_column counter_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true),
    N("count", n, U64, COUNT, "values"),
    C(first, DOUBLE, COUNT, "first value"),
    C(last, DOUBLE, COUNT, "last value"),
    C(min, DOUBLE, COUNT, "smallest value"),
    C(mean, DOUBLE, COUNT, "mean"),
    C(max, DOUBLE, COUNT, "largest value"),
    C(first_at_ns, NS, NS, "time of the first value"),
    C(last_at_ns, NS, NS, "time of the last value"),
};
#undef R
static const tare__table counters = ROWS_OF(counters, counter_columns, tare__counter_row, "a counter of the program");

#define R tare__mark_row
static const tare__schema_column mark_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true),
    N("count", n, U64, COUNT, "how often"),
    C(first_at_ns, NS, NS, "time of the first"),
    C(last_at_ns, NS, NS, "time of the last"),
};
#undef R
static const tare__table marks = ROWS_OF(marks, mark_columns, tare__mark_row, "a mark, by first time");

static const char *const track_kinds[] = {[0] = "thread",
                                          [TARE_TRACK_TASK] = "task",
                                          [TARE_TRACK_GPU] = "gpu",
                                          [TARE_TRACK_REQUEST] = "request",
                                          [TARE_TRACK_OTHER] = "other"};
MADE(track_name, tare__track_row, tare__value_text(row->track_kind ? row->track : NULL))
MADE(track_kind, tare__track_row, tare__value_text(WORD(track_kinds, row->track_kind)))

#define R tare__track_row
static const tare__schema_column track_columns[] = {
    M("track", TEXT, NOTHING, track_name, "name of the track; null: the recording thread", .key = true),
    M("track_kind", TEXT, NOTHING, track_kind, "`thread`, `task`, `gpu`, `request` or `other`"),
    C(name, TEXT, NOTHING, "name of the span", .key = true),
    C(calls, U64, COUNT, "calls"),
    C(total_ns, NS, NS, "time in it"),
    C(self_ns, NS, NS, "the same: complete spans do not nest"),
    DURATIONS,
    C(flows, U64, COUNT, "of the calls: part of a flow"),
    C(children, U64, COUNT, "of the calls: with a parent"),
};
#undef R
static const tare__table tracks =
    ROWS_OF(tracks, track_columns, tare__track_row, "complete spans of one name on a track");

/* ---- threads and processes
 * ------------------------------------------------------------------------------------------------ */
static tare__value thread_pid(tare__cells *cells, const void *at, size_t index)
{
    const tare__thread_row *row = at;
    (void)index;
    int64_t pid = row->process < cells->of->n_processes ? cells->of->processes[row->process].pid : 0;
    return tare__value_whole(pid, pid != 0);
}

#define R tare__thread_row
static const tare__schema_column thread_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true),
    C(tid, I64_OR_0, NOTHING, "thread id"),
    C(process, ROW, NOTHING, "its process", .table = &processes),
    M("pid", SIGNED, NOTHING, thread_pid, "id of its process"),
    C(stream, U32, NOTHING, "number of its stream in the file"),
    C(spans, U64, COUNT, "spans"),
    C(events, U64, COUNT, "events"),
    C(busy_ns, NS, NS, "time in its top-level spans"),
    C(first_at_ns, NS, NS, "time of its first event"),
    C(last_at_ns, NS, NS, "time of its last event"),
    C(dropped_spans, U64, COUNT, "spans dropped for lack of buffer space"),
    C(dropped_others, U64, COUNT, "other events dropped"),
    C(unmatched_ends, U64, COUNT, "ends of spans that were not open"),
    C(lost_ends, U64, COUNT, "ends dropped for lack of buffer space"),
    C(lost_blocks, U64, COUNT, "blocks that are missing in the file"),
    C(skipped_slots, U64, COUNT, "slots of the buffer that were never completed"),
};
#undef R
static const tare__table threads = ROWS_OF(threads, thread_columns, tare__thread_row, "a thread that recorded");

MADE(process_rank, tare__process_row, tare__value_count(row->rank, row->has_rank))
MADE(process_status, tare__process_row, tare__value_whole(row->exit_status, row->has_exit_status))

#define R tare__process_row
static const tare__schema_column process_columns[] = {
    C(number, U32, NOTHING, "number of the process in the file"),
    C(pid, I64_OR_0, NOTHING, "process id"),
    C(parent_pid, I64_OR_0, NOTHING, "process id of its parent"),
    C(inner_pid, I64_OR_0, NOTHING, "process id inside its container, where that differs"),
    C(command, TEXT, NOTHING, "command line", .key = true),
    M("rank", COUNT, NOTHING, process_rank, "rank in a distributed job; null: none"),
    C(joined, BOOL, NOTHING, "it recorded spans"),
    C(not_joined, TEXT, NOTHING, "why it did not record"),
    C(unreadable, TEXT, NOTHING, "why not all of its data could be read"),
    C(joined_at_ns, NS, NS, "when it began to record"),
    C(left_at_ns, NS, NS, "when it stopped"),
    M("wait_status", SIGNED, NOTHING, process_status, "status as of wait(2)"),
    C(threads, U32, COUNT, "threads that recorded"),
    C(spans, U64, COUNT, "spans"),
    C(dropped_spans, U64, COUNT, "spans dropped for lack of buffer space"),
    C(dropped_others, U64, COUNT, "other events dropped"),
    C(busy_ns, NS, NS, "time in the top-level spans of its threads"),
};
#undef R
static const tare__table processes = ROWS_OF(processes, process_columns, tare__process_row, "a process of the run");

/* ---- metrics
 * ----------------------------------------------------------------------------------------------------------------- */
static const char *or_other(const char *word)
{
    return word ? word : "other";
}
MADE(metric_subject, tare__metric_row, tare__value_text(or_other(tare__subject_word(row->subject))))
MADE(metric_kind, tare__metric_row, tare__value_text(or_other(tare__metric_kind_word(row->kind))))
MADE(metric_unit, tare__metric_row, tare__value_text(tare__unit_word(row->unit)))
MADE(metric_total_unit, tare__metric_row,
     tare__value_text(row->kind == TARE__METRIC_TOTAL ? tare__unit_word(row->total_unit) : NULL))

/* Threads and single CPUs are many: their course is left out of JSON unless everything is asked for. */
static bool metric_is_bulky(const void *at)
{
    const tare__metric_row *row = at;
    return row->subject == TARE__SUBJECT_THREAD || row->subject == TARE__SUBJECT_CPU;
}

static tare__value metric_points(tare__cells *cells, const void *at, size_t index)
{
    const tare__metric_row *row = at;
    (void)cells;
    (void)index;
    return (tare__value){
        .type = row->points ? TARE__TYPE_ROWS : TARE__TYPE_ABSENT, .count = row->n_points, .rows = row->points};
}

#define R tare__metric_point
static const tare__schema_column point_columns[] = {
    C(at_ns, NS, NS, "begin"),
    C(lasts_ns, NS, NS, "duration"),
    C(min, DOUBLE, NOTHING, "smallest value, in the metric's unit"),
    C(mean, DOUBLE, NOTHING, "mean, weighted by time"),
    C(max, DOUBLE, NOTHING, "largest value"),
};
#undef R
static const tare__table points = TABLE("points", TUPLES, point_columns, tare__metric_point, "a stretch of the series");

#define R tare__metric_row
#define V(member, unit_member, what) \
    C(member, DOUBLE, VARIES, what, .unit_at = AT(unit_member), .absent_at = AT(absent))
static const tare__schema_column metric_columns[] = {
    C(metric, TEXT, NOTHING, "name: `memory.rss`", .key = true),
    M("subject", TEXT, NOTHING, metric_subject,
      "what it is of: `system`, `cpu`, `disk`, `network`, `container`, `tree` (all processes of the run), `process`, "
      "`thread`, "
      "`sensor`, `gpu`, `gpu_process`, `tare`; `other`: of a newer version",
      .key = true),
    C(key, U64, NOTHING, "which one: number of the CPU, pid, tid, index of the GPU", .key = true),
    C(owner, U64, NOTHING,
      "of a process: its start time in clock ticks since boot; of a thread: its pid; of a process on a GPU: the GPU",
      .key = true),
    C(label, TEXT, NOTHING, "its name: a command, a device", .key = true),
    M("kind", TEXT, NOTHING, metric_kind,
      "`gauge`: a value that holds until the next sample; `total`: a sum that only grows, its figures are rates per "
      "second; "
      "`peak`: a high-water mark"),
    M("unit", TEXT, NOTHING, metric_unit,
      "of the figures and points: `count`, `bytes`, `share`, `cores`, `seconds`, `celsius`, `watts`, `joules`, "
      "`hertz`, `bits`, "
      "`bytes_per_s`, `per_s`",
      .key = true),
    C(absent, TEXT, NOTHING, "why there are no values, or no more of them"),
    N("samples", n, U64, COUNT, "samples"),
    V(min, unit, "minimum of the gauge, or of the rate between two samples"),
    V(mean, unit, "mean, weighted by time"),
    V(max, unit, "maximum"),
    C(max_at_ns, NS, NS, "time of the maximum"),
    V(first, unit, "first value of a gauge"),
    V(last, unit, "last value of a gauge"),
    V(total, total_unit, "of a total: increase from the first sample to the last"),
    M("total_unit", TEXT, NOTHING, metric_total_unit, "unit of `total`"),
    C(from_ns, NS, NS, "first sample"),
    C(to_ns, NS, NS, "last sample"),
    {"points", TARE__STORED_MADE_ROWS, TARE__SHOW_NOTHING, .make = metric_points, .table = &points,
     .bulky = metric_is_bulky,
     .meaning = "the series over time; null: too many series to keep it. Those of threads and single CPUs are left out "
                "of JSON "
                "without `--all`"},
};
#undef R
static const tare__table metrics = ROWS_OF(metrics, metric_columns, tare__metric_row,
    "a sampled metric of a subject, by subject, owner, key and metric");

/* ---- the report
 * ---------------------------------------------------------------------------------------------------------------- */
static const tare__table *const tables[] = {
    &run,       &notes,   &own,        &usage,    &phases, &findings, &groups,  &spans,     &steps,   &epochs,
    &operators, &modules, &aggregates, &counters, &marks,  &tracks,   &threads, &processes, &metrics,
};

const tare__table *tare__schema_table(size_t index)
{
    return index < TARE__COUNT_OF(tables) ? tables[index] : NULL;
}
