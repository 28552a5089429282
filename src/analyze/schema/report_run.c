/* report_run: tables of a report: the run, its usage, phases and findings.
 * Constant; any thread.
 * Must not know output formats. */
#include <inttypes.h>
#include <stdio.h>

#include "define.h"

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
const tare__table tare__table_peaks = {.name = "peaks",
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
    {"peaks", TARE__STORED_PART, TARE__SHOW_NOTHING, .at = AT(peaks), .table = &tare__table_peaks,
     .meaning =
         "operations per second by data type, and bandwidth by level of the memory hierarchy; null: not measured"},
    C(gpus, TEXT, NOTHING, "GPUs and driver", .absent = "none is known"),
    C(kernel, TEXT, NOTHING, "kernel release", .absent = UNKNOWN),
    C(system, TEXT, NOTHING, "operating system", .absent = UNKNOWN),
    C(revision, TEXT, NOTHING, "git revision of `directory`", .absent = "none is known"),
    C(writer, TEXT, NOTHING, "version that wrote the trace: `tare 0.1.0`", .absent = UNKNOWN),
    C(start_realtime_ns, U64_OR_0, DATE, "start of the run, since 1970-01-01 UTC", .absent = UNKNOWN),
    C(elapsed_ns, NS, NS, "duration of the run; up to the last event when `finished` is false", .absent = UNKNOWN),
    C(finished, BOOL, NOTHING, "the trace is complete; false: it is still being written, or was truncated"),
    C(salvaged, BOOL, NOTHING, "completed by a later command, after the collector was killed"),
    C(clock_known, BOOL, NOTHING, "false: nanoseconds are ticks of an unknown length"),
    N("exit_status", status, INT_OR_LESS, NOTHING, "exit status, as `tare run` returned it", .absent = UNKNOWN),
    C(signal, INT_OR_0, NOTHING, "signal that ended the program",
      .absent = "no signal is known to have ended the program"),
    C(oom_killed, BOOL, NOTHING, "the kernel killed a process of the run: out of memory"),
    C(attached, I64_OR_0, NOTHING,
      "process that was already running when `tare attach` or its own session began to record it; null: the run "
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
const tare__table tare__table_run = SINGLE("run", run, run_columns, "what ran");

/* ---- notes -------------------------------------------------------------------------------------------- */
const tare__schema_column tare__sentence_columns[1] = {
    {"note", TARE__STORED_TEXT, TARE__SHOW_NOTHING, .meaning = "a sentence"},
};
const tare__table tare__table_sentences = TABLE("notes", VALUES, tare__sentence_columns, const char *, "a sentence");
const tare__table tare__table_notes = {.name = "notes",
                                  .shape = TARE__SHAPE_VALUES,
                                  .columns = tare__sentence_columns,
                                  .n_columns = 1,
                                  .row_bytes = sizeof(const char *),
                                  .meaning = "contradictory, missing or merged data, the most important first",
                                  .at = offsetof(tare__analysis, run.notes),
                                  .count_at = offsetof(tare__analysis, run.n_notes)};

/* ---- Tare's own overhead -------------------------------------------------------------------------------- */
#define R tare__own_table
#define NOT_CALIBRATED "not calibrated in this run"
static const tare__schema_column own_columns[] = {
    C(own_ns, NS, NS, "time that recording took inside the program: events times their cost", .absent = NOT_CALIBRATED),
    C(subtracted_ns, NS, NS, "of `own_ns`: subtracted from self times", .absent = NOT_CALIBRATED),
    C(share, DOUBLE, SHARE, "`own_ns` / `recorded_ns`", .absent = "own_ns or recorded_ns is not known"),
    C(recorded_ns, NS, NS, "sum over all threads of the time from the first event to the last",
      .absent = "nothing was recorded"),
    C(collector_cpu_ns, NS, NS, "CPU time of the collector, a separate process",
      .absent = "the trace has no end block"),
    C(sampler_cpu_ns, NS, NS, "of `collector_cpu_ns`: spent sampling",
      .absent = "nothing was sampled, or the trace has no end block"),
    C(interval_ns, NS, NS, "sampling interval as configured", .absent = "not sampled"),
    C(longest_interval_ns, NS, NS, "longest interval between two samples", .absent = "not sampled"),
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
const tare__table tare__table_own = SINGLE("tare", own, own_columns, "Tare's own overhead");

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
const tare__table tare__table_usage = SINGLE("usage", usage, usage_columns, "resources that the run used");

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
const tare__table tare__table_phases = {
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

MADE(finding_state, tare__finding,
     row->line_state ? tare__value_text(tare__state_word(row->line_state)) : (tare__value){.type = TARE__TYPE_ABSENT})

MADE(finding_line_share, tare__finding, tare__value_number(row->function ? row->line_share : NAN))

static tare__value finding_location(tare__cells *cells, const void *at, size_t index)
{
    const tare__finding *row = at;
    (void)index;
    if (!row->file || !row->line)
        return (tare__value){.type = TARE__TYPE_ABSENT};
    snprintf(cells->text, sizeof cells->text, "%.400s:%" PRIu32, row->file, row->line);
    return tare__value_text(cells->text);
}

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
    M("location", TEXT, NOTHING, finding_location,
      "`FILE:LINE` of the program with most of the time that the finding is about; null: not known"),
    C(function, TEXT, NOTHING, "qualified name of its function"),
    M("line_share", NUMBER, SHARE, finding_line_share,
      "time of that line, of the time that the finding is about, by stack samples"),
    M("line_state", TEXT, NOTHING, finding_state, "state of most of the line's time, as in `lines`"),
    C(inner, TEXT, NOTHING, "innermost function of most of the line's time; null: the line's own function"),
};
#undef R
const tare__table tare__table_findings = ROWS_OF(findings, finding_columns, tare__finding,
    "a finding, the most severe first ([FINDINGS.md](FINDINGS.md); your own rules: [RULES.md](RULES.md))", HIDDEN);
