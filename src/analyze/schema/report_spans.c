/* report_spans: tables of a report: spans, steps and other recorded data.
 * Constant; any thread.
 * Must not know output formats. */
#include "define.h"

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

/* ---- groups, spans ---------------------------------------------------------------------------------------------- */
#define R tare__group_row
static const tare__schema_column group_columns[] = {
    C(name, TEXT, NOTHING, "name of the process or thread", .key = true),
    C(process, ROW, NOTHING, "its process", .table = &tare__table_processes),
    C(thread, ROW, NOTHING, "its thread; null with `--by process`", .table = &tare__table_threads),
    N("first_span", first_row, U32, COUNT, "row in `spans` where its rows begin"),
    N("spans", n_rows, U32, COUNT, "its rows in `spans`"),
    C(total_ns, NS, NS, "time in its top-level spans"),
};
#undef R
const tare__table tare__table_groups = ROWS_OF(groups, group_columns, tare__group_row,
    "a process (`--by process`) or thread (`--by thread`), largest total first; empty without these options",
    NOT_IN_PAGE);

static tare__value span_path(tare__cells *cells, const void *at, size_t index)
{
    const tare__analysis *of = cells->of;
    const tare__span_row *row = at;
    size_t n = (size_t)row->depth + 1;
    if (n > TARE__TEXTS_MAX)
        return (tare__value){.type = TARE__TYPE_ABSENT};
    for (size_t i = n; i-- > 0 && index < of->n_spans; index = of->spans[index].parent)
        cells->texts[i] = of->spans[index].name;
    return (tare__value){.type = TARE__TYPE_TEXTS, .count = n, .texts = cells->texts};
}

MADE(span_kind, tare__span_row, tare__value_text(row->kind ? tare__span_kind_word(row->kind) : "others"))
static tare__value span_self_share(tare__cells *cells, const void *at, size_t index)
{
    const tare__analysis *of = cells->of;
    (void)index;
    if (isnan(cells->self_ns)) {
        cells->self_ns = 0;
        for (size_t i = 0; i < of->n_spans; i++)
            cells->self_ns += of->spans[i].self_ns;
    }
    return tare__value_number(((const tare__span_row *)at)->self_ns / cells->self_ns);
}
MADE(span_run_share, tare__span_row,
     tare__value_number(row->total_ns / ((const tare__analysis *)cells->of)->run.elapsed_ns))

#define R tare__span_row
MADE(span_line, R, tare__value_count(row->line, row->file && row->line))
#define place_line span_line
static const tare__schema_column span_columns[] = {
    C(name, TEXT, NOTHING, "name of the span", .key = true, .label = "Span"),
    C(calls, U64, COUNT, "calls"),
    C(total_ns, NS, NS, "time between begin and end"),
    C(self_ns, NS, NS, "total minus the spans directly inside, minus the recording overhead; never below 0"),
    C(raw_self_ns, NS, NS, "total minus the spans directly inside", NOT_IN_PAGE),
    C(share, DOUBLE, SHARE, "`total_ns` of the total of all top-level rows", .bar = true),
    DURATIONS,
    M("kind", TEXT, NOTHING, span_kind,
      "`span`, `step`, `epoch`, `operator`, `module`, `phase`, or `others`: spans merged into one row"),
    M("self_share", NUMBER, SHARE, span_self_share, "`self_ns` of the self time of all rows", NOT_IN_PAGE),
    M("run_share", NUMBER, SHARE, span_run_share, "`total_ns` of the duration of the run", NOT_IN_PAGE),
    C(depth, U32, COUNT, "0 for a top-level row", HIDDEN),
    C(parent, ROW, NOTHING, "the row around it; null for a top-level row", .table = &tare__table_spans, HIDDEN),
    M("path", TEXTS, NOTHING, span_path,
      "names from the top to this row; null below depth 255", .between = "/", NOT_IN_PAGE),
    C(group, ROW, NOTHING, "its group (`--by`)", .table = &tare__table_groups, NOT_IN_PAGE),
    PLACE,
    C(still_open, U64, COUNT, "of the calls: open at the end of the run, counted up to there", HIDDEN),
    C(end_missing, U64, COUNT, "of the calls: the end is missing, counted up to where that was detected", HIDDEN),
    C(left_open, U64, COUNT, "of the calls: closed by the end of an enclosing span", HIDDEN),
    C(continued, U64, COUNT,
      "parts of calls that began elsewhere: a span that a suspended generator holds open is recorded in parts. Such a "
      "call is "
      "counted once, where it began; its durations and numbers are of the whole call, `total_ns` is the time of the "
      "parts in this row", HIDDEN),
    L("numbers", ROWS, numbers, n_numbers, numbers, "numbers attached to its calls", NOT_IN_PAGE),
};
#undef place_line
#undef R
const tare__table tare__table_spans = ROWS_OF(spans, span_columns, tare__span_row,
    "a path in the span tree, depth first, siblings by total time: the same name below two parents is two rows");

/* ---- steps and epochs -------------------------------------------------------------------------------------------- */
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
    C(thread, ROW, NOTHING, "its thread", .table = &tare__table_threads),
};
#undef R
static const tare__table slowest = TABLE("slowest", ROWS, slow_columns, tare__slow_step, "one of the five slowest");

#define R tare__step_row
#define INTERVAL(named, member, ...) \
    {named, TARE__STORED_PART, TARE__SHOW_NOTHING, .at = AT(member), .table = &interval, .meaning = __VA_ARGS__}
static const tare__schema_column step_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true),
    C(group, ROW, NOTHING, "its group (`--by`)", .table = &tare__table_groups, NOT_IN_PAGE),
    C(count, U64, COUNT, "finished ones: the figures are of these", .label = "Finished"),
    C(job_count, U64, COUNT,
      "as `count`, but a step that all ranks of a distributed job run together counts once", NOT_IN_PAGE),
    C(ranks, U64, COUNT, "ranks that ran them; 0: none is known", NOT_IN_PAGE),
    C(unfinished, U64, COUNT, "open at the end, or the end is missing"),
    C(partial, U64, COUNT,
      "of `count`: their begin was not recorded (loading by hand before the first step of a program or a model). "
      "Durations and rates are those of the others, if there are any",
      NOT_IN_PAGE),
    C(total_ns, NS, NS, "time in them"),
    DURATIONS,
    C(exact, BOOL, NOTHING, "quantiles are of all durations; false: of a histogram, within 0.4 %", NOT_IN_PAGE),
    INTERVAL("p50_interval", p50, "confidence interval of the median", NOT_IN_PAGE),
    INTERVAL("p95_interval", p95, "confidence interval of the 95th percentile", NOT_IN_PAGE),
    C(per_second, DOUBLE, PER_S,
      "`job_count` over the time in them. Steps that ran at the same time on several threads, processes or ranks count "
      "their time "
      "once; threads and processes that are not ranks of one job add up. Time between steps (evaluation, checkpoints) "
      "is not in the "
      "rate, nor are steps that `--shapes` inspected or whose begin was not recorded; null: no other step is left",
      .absent = "too few"),
    C(first_ns, NS, NS, "duration of the first one"),
    C(rest_p50_ns, NS, NS, "median of all others", .label = "p50 of the others", .absent = "there is only one"),
    L("slowest", HERE, slowest, n_slowest, slowest, "the slowest ones, up to five"),
    L("numbers", ROWS, numbers, n_numbers, numbers,
      "numbers attached to them and to spans inside. With `--shapes`, `flops` and `bytes` are estimated: `sum` is that "
      "of the "
      "`inspected` steps, and `per_second` is their mean times the steps per second"),
};
#undef R
const tare__table tare__table_steps = ROWS_OF(steps, step_columns, tare__step_row, "a name of steps");
const tare__table tare__table_epochs = ROWS_OF(epochs, step_columns, tare__step_row, "a name of epochs");

/* ---- aggregates, counters, marks, tracks ------------------------------------------------------------------------- */
#define R tare__aggregate_row
MADE(aggregate_line, R, tare__value_count(row->line, row->file && row->line))
#define place_line aggregate_line
static const tare__schema_column aggregate_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true, .label = "Span"),
    C(calls, U64, COUNT, "calls"),
    C(timed, U64, COUNT, "of these: timed"),
    C(every, U32, COUNT, "one call in this many is timed", HIDDEN),
    C(estimated, BOOL, NOTHING, "`total_ns` is the mean of the timed calls times `calls`", HIDDEN),
    C(total_ns, NS, NS, "time in it; null: no call was timed", NOT_TIMED, .prefix = "≈ ", .prefix_by = "estimated"),
    DURATIONS,
    PLACE,
};
#undef place_line
#undef R
const tare__table tare__table_aggregates = ROWS_OF(aggregates, aggregate_columns, tare__aggregate_row,
    "an aggregate span, which keeps no events: quantiles are within 6 %");

#define R tare__counter_row
static const tare__schema_column counter_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true, .label = "Counter"),
    N("count", n, U64, COUNT, "values", .label = "Values"),
    C(first, DOUBLE, COUNT, "first value"),
    C(last, DOUBLE, COUNT, "last value"),
    C(min, DOUBLE, COUNT, "smallest value"),
    C(mean, DOUBLE, COUNT, "mean"),
    C(max, DOUBLE, COUNT, "largest value"),
    C(first_at_ns, NS, NS, "time of the first value"),
    C(last_at_ns, NS, NS, "time of the last value"),
};
#undef R
const tare__table tare__table_counters =
    ROWS_OF(counters, counter_columns, tare__counter_row, "a counter of the program");

#define R tare__mark_row
static const tare__schema_column mark_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true, .label = "Mark"),
    N("count", n, U64, COUNT, "how often", .label = "Times"),
    C(first_at_ns, NS, NS, "time of the first"),
    C(last_at_ns, NS, NS, "time of the last"),
};
#undef R
const tare__table tare__table_marks = ROWS_OF(marks, mark_columns, tare__mark_row, "a mark, by first time");

MADE(fact_line, tare__fact_row, tare__value_count(row->line, row->file && row->line))

#define R tare__fact_row
static const tare__schema_column fact_columns[] = {
    C(key, TEXT, NOTHING, "what it is about: `torch.loader.workers`", .key = true),
    C(file, TEXT, NOTHING, "source file, or file that it is about; null: none"),
    M("line", COUNT, NOTHING, fact_line, "line in `file`"),
    C(value, DOUBLE, COUNT, "last value; null: none"),
    C(text, TEXT, NOTHING, "name of a variable, a class, a reason; null: none"),
    C(process, ROW, NOTHING, "process that it is of", .table = &tare__table_processes),
    C(count, U64, COUNT, "how often it was recorded"),
};
#undef R
const tare__table tare__table_facts = ROWS_OF(facts, fact_columns, tare__fact_row,
    "what hooks into libraries know of the program (settings, source lines), which findings rest on, by first time",
    NOT_IN_PAGE);

static const char *const track_kinds[] = {[0] = "thread",
                                          [TARE_TRACK_TASK] = "task",
                                          [TARE_TRACK_GPU] = "gpu",
                                          [TARE_TRACK_REQUEST] = "request",
                                          [TARE_TRACK_OTHER] = "other"};
MADE(track_name, tare__track_row, tare__value_text(row->track_kind ? row->track : NULL))
MADE(track_kind, tare__track_row, tare__value_text(WORD(track_kinds, row->track_kind)))

#define R tare__track_row
static const tare__schema_column track_columns[] = {
    C(name, TEXT, NOTHING, "name of the span", .key = true, .label = "Span"),
    M("track", TEXT, NOTHING, track_name, "name of the track; null: the recording thread", .key = true,
      .absent = "the recording thread"),
    M("track_kind", TEXT, NOTHING, track_kind, "`thread`, `task`, `gpu`, `request` or `other`", .label = "Kind"),
    C(calls, U64, COUNT, "calls"),
    C(total_ns, NS, NS, "time in it"),
    C(self_ns, NS, NS, "the same: complete spans do not nest", HIDDEN),
    DURATIONS,
    C(flows, U64, COUNT, "of the calls: part of a flow", HIDDEN),
    C(children, U64, COUNT, "of the calls: with a parent", HIDDEN),
};
#undef R
const tare__table tare__table_tracks =
    ROWS_OF(tracks, track_columns, tare__track_row, "complete spans of one name on a track");
