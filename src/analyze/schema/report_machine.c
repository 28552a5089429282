/* report_machine: processes, threads and sampled metrics: tables of a report.
 * Constant; any thread.
 * Must not know output formats. */
#include "define.h"

/* ---- threads and processes --------------------------------------------------------------------------------------- */
static tare__value thread_pid(tare__cells *cells, const void *at, size_t index)
{
    const tare__analysis *of = cells->of;
    const tare__thread_row *row = at;
    (void)index;
    int64_t pid = row->process < of->n_processes ? of->processes[row->process].pid : 0;
    return tare__value_whole(pid, pid != 0);
}

#define R tare__thread_row
static const tare__schema_column thread_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true, .label = "Thread", .absent = "the thread had no name"),
    C(tid, I64_OR_0, NOTHING, "thread id", .label = "TID"),
    C(process, ROW, NOTHING, "its process", .table = &tare__table_processes),
    M("pid", SIGNED, NOTHING, thread_pid, "id of its process", .label = "PID"),
    C(stream, U32, NOTHING, "number of its stream in the file", HIDDEN),
    C(spans, U64, COUNT, "spans"),
    C(events, U64, COUNT, "events", HIDDEN),
    C(busy_ns, NS, NS, "time in its top-level spans", .label = "In spans"),
    C(first_at_ns, NS, NS, "time of its first event", .absent = "no events were read"),
    C(last_at_ns, NS, NS, "time of its last event", .absent = "no events were read"),
    C(dropped_spans, U64, COUNT, "spans dropped for lack of buffer space"),
    C(dropped_others, U64, COUNT, "other events dropped", HIDDEN),
    C(unmatched_ends, U64, COUNT, "ends of spans that were not open", HIDDEN),
    C(dropped_ends, U64, COUNT, "ends dropped for lack of buffer space", HIDDEN),
    C(missing_blocks, U64, COUNT, "blocks that are missing in the file", HIDDEN),
    C(skipped_slots, U64, COUNT, "slots of the buffer that were never completed", HIDDEN),
};
#undef R
const tare__table tare__table_threads = ROWS_OF(threads, thread_columns, tare__thread_row, "a thread that recorded");

MADE(process_rank, tare__process_row, tare__value_count(row->rank, row->has_rank))
MADE(process_status, tare__process_row, tare__value_whole(row->exit_status, row->has_exit_status))

#define R tare__process_row
#define USED(member, show, what, title) \
    N(#member, used.member, DOUBLE, show, what, .label = title, .absent = "sampled at most once")
static const tare__schema_column process_columns[] = {
    C(number, U32, NOTHING, "number of the process in the file", HIDDEN),
    C(label, TEXT, NOTHING, "display name: `rank 1 (python train.py)`; of a process without a rank, `command`",
      .label = "Process"),
    C(pid, I64_OR_0, NOTHING, "process id", .label = "PID"),
    C(parent_pid, I64_OR_0, NOTHING, "process id of its parent", .label = "Parent PID"),
    C(inner_pid, I64_OR_0, NOTHING, "process id inside its container, where that differs", HIDDEN),
    C(command, TEXT, NOTHING, "command line", .key = true, HIDDEN),
    M("rank", COUNT, NOTHING, process_rank, "rank in a distributed job; null: none", HIDDEN),
    C(joined, BOOL, NOTHING, "it recorded spans", HIDDEN),
    C(threads, U32, COUNT, "threads that recorded", .absent_at = AT(not_joined)),
    C(spans, U64, COUNT, "spans", .absent_at = AT(not_joined)),
    C(dropped_spans, U64, COUNT, "spans dropped for lack of buffer space", HIDDEN),
    C(dropped_others, U64, COUNT, "other events dropped", HIDDEN),
    C(busy_ns, NS, NS, "time in the top-level spans of its threads", .label = "In spans", .absent_at = AT(not_joined)),
    USED(cpu_seconds, SECONDS, "CPU time, user and system, between its first and last sample", "CPU"),
    USED(memory_peak_bytes, BYTES, "most resident memory", "Peak memory"),
    USED(disk_read_bytes, BYTES, "bytes read from disks, between its first and last sample", "Disk read"),
    USED(disk_write_bytes, BYTES, "bytes written to disks, between its first and last sample", "Disk written"),
    C(joined_at_ns, NS, NS, "when it began to record", .absent_at = AT(not_joined)),
    C(left_at_ns, NS, NS, "when it stopped", .absent_at = AT(not_joined)),
    M("wait_status", SIGNED, NOTHING, process_status, "status as of wait(2)", .label = "Ended",
      .absent = "exit status not observed"),
    C(not_joined, TEXT, NOTHING, "why it did not record"),
    C(unreadable, TEXT, NOTHING, "why not all of its data could be read"),
};
#undef R
const tare__table tare__table_processes =
    ROWS_OF(processes, process_columns, tare__process_row, "a process of the run");

/* ---- metrics ----------------------------------------------------------------------------------------------------- */
static const char *or_other(const char *word)
{
    return word ? word : "other";
}
MADE(metric_subject, tare__metric_row, tare__value_text(or_other(tare__subject_word(row->subject))))
MADE(metric_kind, tare__metric_row, tare__value_text(or_other(tare__metric_kind_word(row->kind))))
MADE(metric_unit, tare__metric_row, tare__value_text(tare__unit_word(row->unit)))
MADE(metric_total_unit, tare__metric_row,
     tare__value_text(row->kind == TARE__METRIC_TOTAL ? tare__unit_word(row->total_unit) : NULL))

/* Threads and single CPUs are many: their points are omitted from JSON unless everything is requested. */
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
    C(member, DOUBLE, VARIES, what, .unit_at = AT(unit_member), .unit_by = #unit_member, .absent_at = AT(absent), \
      .absent = "no sample")
static const tare__schema_column metric_columns[] = {
    C(metric, TEXT, NOTHING, "name: `memory.rss`", .key = true),
    M("subject", TEXT, NOTHING, metric_subject,
      "what it is of: `system`, `cpu`, `disk`, `network`, `container`, `tree` (all processes of the run), `process`, "
      "`thread`, "
      "`sensor`, `gpu`, `gpu_process`, `tare`; `other`: of a newer version",
      .key = true),
    C(label, TEXT, NOTHING, "its name: a command, a device", .key = true, UNDER, .between = " "),
    C(key, U64, NOTHING, "which one: number of the CPU, pid, tid, index of the GPU", .key = true),
    C(owner, U64, NOTHING,
      "of a process: its start time in clock ticks since boot; of a thread: its pid; of a process on a GPU: the GPU",
      .key = true, HIDDEN),
    M("kind", TEXT, NOTHING, metric_kind,
      "`gauge`: a value that holds until the next sample; `total`: a sum that only grows, its figures are rates per "
      "second; "
      "`peak`: a high-water mark", HIDDEN),
    M("unit", TEXT, NOTHING, metric_unit,
      "of the figures and points: `count`, `bytes`, `share`, `cores`, `seconds`, `celsius`, `watts`, `joules`, "
      "`hertz`, `bits`, "
      "`bytes_per_s`, `per_s`",
      .key = true, HIDDEN),
    C(absent, TEXT, NOTHING, "why there are no values, or no more of them", HIDDEN),
    V(min, unit, "minimum of the gauge, or of the rate between two samples"),
    V(mean, unit, "mean, weighted by time"),
    V(max, unit, "maximum"),
    C(max_at_ns, NS, NS, "time of the maximum", .absent_at = AT(absent), .absent = "no sample"),
    C(first, DOUBLE, VARIES, "first value of a gauge", .unit_at = AT(unit), HIDDEN),
    C(last, DOUBLE, VARIES, "last value of a gauge", .unit_at = AT(unit), HIDDEN),
    C(total, DOUBLE, VARIES, "of a total: increase from the first sample to the last", .unit_at = AT(total_unit),
      .unit_by = "total_unit", .absent = "only for totals"),
    M("total_unit", TEXT, NOTHING, metric_total_unit, "unit of `total`", HIDDEN),
    N("samples", n, U64, COUNT, "samples"),
    C(from_ns, NS, NS, "first sample", NOT_IN_PAGE),
    C(to_ns, NS, NS, "last sample", NOT_IN_PAGE),
    {"points", TARE__STORED_MADE_ROWS, TARE__SHOW_NOTHING, .make = metric_points, .table = &points,
     .bulky = metric_is_bulky, NOT_IN_PAGE,
     .meaning = "the series over time; null: too many series to keep it. Those of threads and single CPUs are omitted "
                "from JSON "
                "without `--all`"},
};
#undef R
const tare__table tare__table_metrics = ROWS_OF(metrics, metric_columns, tare__metric_row,
    "a sampled metric of a subject, by subject, owner, key and metric");
