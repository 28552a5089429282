/* model_measured: measurements of a model: the tables below `measured` of a model report.
 * Constant; any thread.
 * Must not know output formats. */
#include <stdio.h>

#include "define.h"
#include "model/model.h"

/* ---- times ------------------------------------------------------------------------------------------------------- */
static const tare__schema_column sample_columns[] = {
    {"sample_ns", TARE__STORED_DOUBLE, TARE__SHOW_NS, .meaning = "time of a run"},
};
static const tare__table samples = TABLE("samples_ns", VALUES, sample_columns, double, "time of a run");

MADE(interval_needed, tare__interval, tare__value_count(row->needed, isnan(row->low)))
static tare__value interval_reason(tare__cells *cells, const void *at, size_t index)
{
    const tare__interval *row = at;
    (void)index;
    snprintf(cells->text, sizeof cells->text, "needs %zu runs", row->needed);
    return tare__value_text(isnan(row->low) ? cells->text : NULL);
}

#define R tare__interval
static const tare__schema_column interval_columns[] = {
    N("low_ns", low, DOUBLE, NS, "lower bound of the confidence interval", UNDER),
    N("high_ns", high, DOUBLE, NS, "upper bound", UNDER, .between = " … "),
    C(confidence, DOUBLE, SHARE, "its confidence, at least 0.95", NOT_IN_PAGE),
    M("needed", COUNT, COUNT, interval_needed, "runs needed for an interval, where there are too few", NOT_IN_PAGE),
    M("reason", TEXT, NOTHING, interval_reason, "why there is no interval", UNDER),
};
#undef R
static const tare__table interval = {.name = "interval", .shape = TARE__SHAPE_SINGLE,
                                     .meaning = "a confidence interval, by order statistics",
                                     .columns = interval_columns, .n_columns = TARE__COUNT_OF(interval_columns)};

static bool was_timed(const void *row)
{
    return ((const tare__runner_times *)row)->n != 0;
}

#define R tare__runner_times
#define QUANTILE(named, which, what)                                                                              \
    N(named "_ns", quantile_ns[which], DOUBLE, NS, what),                                                         \
    {                                                                                                             \
        named "_interval", TARE__STORED_PART, TARE__SHOW_NOTHING, .at = AT(interval[which]), .table = &interval,  \
                                                                  .meaning = "its confidence interval"            \
    }
static const tare__schema_column time_columns[] = {
    N("runs", n, U64, COUNT, "timed runs", NOT_IN_PAGE),
    C(min_ns, DOUBLE, NS, "shortest run", NOT_IN_PAGE),
    C(mean_ns, DOUBLE, NS, "mean", NOT_IN_PAGE),
    C(deviation_ns, DOUBLE, NS, "standard deviation", NOT_IN_PAGE),
    QUANTILE("p50", TARE__RUNNER_P50, "median; below it its 95 % confidence interval"),
    QUANTILE("p95", TARE__RUNNER_P95, "95th percentile"),
    QUANTILE("p99", TARE__RUNNER_P99, "99th percentile"),
    C(max_ns, DOUBLE, NS, "longest run"),
    C(outliers, U64, COUNT, "runs outside of Tukey's fences; none is dropped", NOT_IN_PAGE),
    L("samples_ns", ROWS, samples_ns, n, samples, "each run, in order", NOT_IN_PAGE),
};
#undef R
static const tare__table times = {.name = "times", .shape = TARE__SHAPE_SINGLE, .meaning = "times of runs",
                                  .columns = time_columns, .n_columns = TARE__COUNT_OF(time_columns),
                                  .present = was_timed};

/* ---- a configuration --------------------------------------------------------------------------------------------- */
static const tare__schema_column window_columns[] = {
    {"window", TARE__STORED_DOUBLE, TARE__SHOW_NOTHING, .meaning = "throughput in a window of the timed runs"},
};
static const tare__table windows = TABLE("windows", VALUES, window_columns, double, "throughput in a window");

#define R tare__runner_rate
static const tare__schema_column rate_columns[] = {
    C(unit, TEXT, NOTHING, "`samples/s`, `images/s`, `tokens/s` or `requests/s`", .key = true, NOT_IN_PAGE),
    C(value, DOUBLE, NOTHING, "throughput of the median window", IN_UNIT),
    C(low, DOUBLE, NOTHING, "lower bound of its 95 % interval; null: too few windows", NOT_IN_PAGE),
    C(high, DOUBLE, NOTHING, "upper bound", NOT_IN_PAGE),
    L("windows", ROWS, windows, n_windows, windows, "all windows, in order", NOT_IN_PAGE),
};
#undef R
static const tare__table rates =
    TABLE("throughput", ROWS, rate_columns, tare__runner_rate, "a rate, the model's own unit first");

static const char *why_not_executed(const tare__runner_result *row)
{
    return row->executed          ? NULL
           : row->executed_reason ? row->executed_reason
           : row->ran             ? "it was not profiled"
                                  : "it did not run";
}
MADE(executed_reason, tare__runner_result, tare__value_text(why_not_executed(row)))
MADE(casts, tare__runner_result, tare__value_count(row->casts, row->executed))
MADE(casts_share, tare__runner_result, tare__value_number(row->executed ? row->casts_share : NAN))

#define R tare__runner_result
static const tare__schema_column precision_columns[] = {
    N("requested", precision, TEXT, NOTHING, "requested precision", NOT_IN_PAGE),
    C(converted, BOOL, NOTHING, "weights and constants were converted to it", NOT_IN_PAGE),
    C(executed, TEXT, NOTHING, "types that layers ran in: `float16, float32`"),
    M("reason", TEXT, NOTHING, executed_reason, "why `executed` is null", NOT_IN_PAGE),
    M("casts_inserted", COUNT, COUNT, casts, "casts that the runtime inserted", NOT_IN_PAGE),
    M("casts_share", NUMBER, SHARE, casts_share, "their share of the time of all layers", NOT_IN_PAGE),
};
static const tare__table precision = {.name = "precision", .shape = TARE__SHAPE_SINGLE, .meaning = "types of numbers",
                                      .columns = precision_columns,
                                      .n_columns = TARE__COUNT_OF(precision_columns)};

static const tare__schema_column memory_columns[] = {
    N("peak_bytes", memory_peak_bytes, WHOLE, BYTES, "while it ran, maximum"),
    N("average_bytes", memory_average_bytes, WHOLE, BYTES, "while it ran, mean", NOT_IN_PAGE),
    N("per_sample_bytes", memory_per_sample_bytes, WHOLE, BYTES, "what running adds, for each sample of a batch"),
    N("loaded_bytes", memory_loaded_bytes, WHOLE, BYTES, "with the model loaded", NOT_IN_PAGE),
    N("load_peak_bytes", memory_load_peak_bytes, WHOLE, BYTES, "while loading, maximum", NOT_IN_PAGE),
    N("before_bytes", memory_before_bytes, WHOLE, BYTES, "the runtime without a model", NOT_IN_PAGE),
};
static const tare__table memory = {.name = "memory", .shape = TARE__SHAPE_SINGLE, .meaning = "resident memory",
                                   .columns = memory_columns, .n_columns = TARE__COUNT_OF(memory_columns)};

MADE(result_batch, R, tare__value_whole(row->batch, row->batch > 0))
MADE(result_best, R, row->ran ? tare__value_flag(row->best) : (tare__value){.type = TARE__TYPE_ABSENT})
MADE(result_steady, R, row->ran ? tare__value_flag(row->steady) : (tare__value){.type = TARE__TYPE_ABSENT})
MADE(result_warmup, R, tare__value_count(row->warmup, row->ran))
#define RAN(named, member, ...)                                                        \
    {                                                                                  \
        named, TARE__STORED_PART, TARE__SHOW_NOTHING, .at = AT(member), .table = &times, \
                                                      .meaning = __VA_ARGS__           \
    }
#define PART(named, of, ...) {named, TARE__STORED_PART, TARE__SHOW_NOTHING, .table = &of, .meaning = __VA_ARGS__}
static const tare__schema_column result_columns[] = {
    C(name, TEXT, NOTHING, "requested configuration: `batch=4,threads=1`", .key = true, .label = "Configuration"),
    C(failure, TEXT, NOTHING, "why it was not measured, or not whole", UNDER),
    M("best_trade_off", FLAG, NOTHING, result_best,
      "no other configuration is better in latency, throughput and memory at once; null: it did not run",
      .label = "best trade-off"),
    M("batch", SIGNED, COUNT, result_batch, "batch size; null: the model has none", NOT_IN_PAGE),
    C(threads, U32_OR_0, COUNT, "threads; null: the runtime's own number", NOT_IN_PAGE),
    N("runtime_load_ns", runtime_ns, DOUBLE, NS, "loading the runtime", NOT_IN_PAGE),
    RAN("latency", latency, "time of a run; null: it did not run", .label = ""),
    RAN("end_to_end", end_to_end, "time of a run with pre- and postprocessing; null: not requested"),
    RAN("pre", pre, "time before the model; null: not requested", NOT_IN_PAGE),
    RAN("post", post, "time after the model; null: not requested", NOT_IN_PAGE),
    L("throughput", HERE, rates, n_rates, rates, "throughput"),
    PART("memory", memory, "memory of the process"),
    C(load_ns, DOUBLE, NS, "loading the model"),
    N("first_run_ns", first_ns, DOUBLE, NS, "the first run", NOT_IN_PAGE),
    M("warmup_runs", COUNT, COUNT, result_warmup, "runs before the timed ones", NOT_IN_PAGE),
    M("steady", FLAG, NOTHING, result_steady, "times were steady after the warm-up", NOT_IN_PAGE),
    PART("precision", precision, "precision of the numbers", .label = ""),
};
#undef R
static const tare__table configurations =
    TABLE("configurations", ROWS, result_columns, tare__runner_result, "a batch size, precision and number of threads");

/* ---- layers ------------------------------------------------------------------------------------------------------ */
MADE(layer_macs, tare__runner_layer, tare__value_count(row->macs, row->counted))
MADE(layer_of_roof, tare__runner_layer, tare__value_number(row->flops / row->roof_flops))
MADE(layer_bound, tare__runner_layer,
     tare__value_text(isnan(row->roof_flops) ? NULL : row->memory_bound ? "memory" : "compute"))

#define R tare__runner_layer
static const tare__schema_column layer_columns[] = {
    C(name, TEXT, NOTHING, "name", .key = true, .label = "Layer"),
    C(op, TEXT, NOTHING, "operator", .label = "Operator"),
    C(provider, TEXT, NOTHING, "execution provider of the runtime", NOT_IN_PAGE),
    N("type", types, TEXT, NOTHING, "types of its tensors"),
    N("cast_inserted", cast, BOOL, NOTHING, "a cast that the runtime inserted"),
    C(calls, DOUBLE, COUNT, "calls in one run", NOT_IN_PAGE),
    C(time_ns, DOUBLE, NS, "time in one run, median"),
    C(share, DOUBLE, SHARE, "of all layers", .bar = true),
    M("macs", COUNT, COUNT, layer_macs, "multiply-accumulates in one run; null: not counted", .label = "MACs",
      .absent = "not counted"),
    C(bytes, WHOLE, BYTES, "read and written", NOT_IN_PAGE),
    N("flops_per_second", flops, DOUBLE, FLOPS_PER_S, "operations per second", .label = "FLOP/s"),
    N("roof_flops_per_second", roof_flops, DOUBLE, FLOPS_PER_S, "what the machine allows for its operations a byte",
      NOT_IN_PAGE),
    M("of_roof", NUMBER, SHARE, layer_of_roof, "`flops_per_second` / `roof_flops_per_second`, at most 1"),
    N("of_roof_absent", roof_absent, TEXT, NOTHING, "why `of_roof` is null", NOT_IN_PAGE),
    M("bound", TEXT, NOTHING, layer_bound, "what limits it: `memory` or `compute`", .label = "Bound by"),
};
#undef R
static const tare__table layer_rows = {.name = "rows", .shape = TARE__SHAPE_ROWS, .label = "Layers, timed",
                                       .columns = layer_columns, .n_columns = TARE__COUNT_OF(layer_columns),
                                       .row_bytes = sizeof(tare__runner_layer),
                                       .meaning = "a node of the graph that the runtime made, longest first"};

static const char *why_no_layers(const tare__model_measured *row)
{
    return row->n_layers ? NULL : row->layers_absent ? row->layers_absent : "nothing ran";
}
MADE(layers_total, tare__model_measured, tare__value_number(row->n_layers ? row->layers_ns : NAN))
MADE(layers_slowdown, tare__model_measured, tare__value_number(row->n_layers ? row->layers_slowdown : NAN))
MADE(layers_reason, tare__model_measured, tare__value_text(why_no_layers(row)))

#define R tare__model_measured
static const tare__schema_column layers_columns[] = {
    N("runs", layer_runs, U64, COUNT, "profiled runs", NOT_IN_PAGE),
    M("total_ns", NUMBER, NS, layers_total, "all layers of one run", NOT_IN_PAGE),
    M("profile_slowdown", NUMBER, NOTHING, layers_slowdown,
      "`total_ns` over the p50 latency of the same configuration; above 1.5 the runtime's profiler costs more than "
      "short layers do, and all rates are null", NOT_IN_PAGE),
    {"peaks", TARE__STORED_PART, TARE__SHOW_NOTHING, .at = AT(peaks), .table = &tare__table_peaks, NOT_IN_PAGE,
     .meaning = "measured peaks of the machine, on as many threads as were used"},
    M("reason", TEXT, NOTHING, layers_reason, "why there are none", NOT_IN_PAGE),
    L("rows", ROWS, layers, n_layers, layer_rows, "layers of the first configuration"),
};
static const tare__table layers = {.name = "layers", .shape = TARE__SHAPE_SINGLE, .meaning = "layers of profiled runs",
                                   .columns = layers_columns, .n_columns = TARE__COUNT_OF(layers_columns)};
#undef R

/* ---- thresholds -------------------------------------------------------------------------------------------------- */
MADE(limit_verdict, tare__runner_limit,
     tare__value_text(!row->broken ? "kept" : isnan(row->value) ? "not measured" : "broken"))
MADE(limit_bound, tare__runner_limit, tare__value_text(row->at_least ? "at least" : "at most"))
MADE(limit_by, tare__runner_limit, tare__value_number(row->broken ? row->by : NAN))

#define R tare__runner_limit
static const tare__schema_column limit_columns[] = {
    C(metric, TEXT, NOTHING, "`latency`, `throughput`, `memory`, `p99`, …", .key = true, .label = "Threshold"),
    N("configuration", result, TEXT, NOTHING, "name of the configuration", .key = true),
    C(unit, TEXT, NOTHING, "`ns`, `bytes`, `samples/s`", NOT_IN_PAGE),
    M("verdict", TEXT, NOTHING, limit_verdict, "`kept`, `broken` or `not measured`", .mark = true),
    M("broken_by", NUMBER, SHARE, limit_by, "how far the value is beyond the limit, of the limit", UNDER,
      .between = " by "),
    N("reason", absent, TEXT, NOTHING, "why there is no value", UNDER),
    C(value, DOUBLE, NOTHING, "the value", IN_UNIT, .label = "Measured"),
    M("bound", TEXT, NOTHING, limit_bound, "`at least` or `at most`", .label = "Limit"),
    C(limit, DOUBLE, NOTHING, "the limit, in `unit`", UNDER, .between = " ", IN_UNIT),
    C(broken, BOOL, NOTHING, "the value is beyond the limit, or was not measured", NOT_IN_PAGE),
};
#undef R
static const tare__table thresholds = {.name = "thresholds", .shape = TARE__SHAPE_ROWS, .by = "broken",
                                       .columns = limit_columns, .n_columns = TARE__COUNT_OF(limit_columns),
                                       .row_bytes = sizeof(tare__runner_limit),
                                       .meaning = "a limit of `--threshold` for a configuration"};

#define R tare__model_measured
static const tare__schema_column measured_columns[] = {
    N("reason", absent, TEXT, NOTHING, "why nothing was measured", NOT_IN_PAGE),
    C(runtime, TEXT, NOTHING, "the library", NOT_IN_PAGE),
    C(runtime_version, TEXT, NOTHING, "its version", NOT_IN_PAGE),
    C(stored_precision, TEXT, NOTHING, "precision of the weights in the file: `fp32`", NOT_IN_PAGE),
    L("configurations", ROWS, results, n_results, configurations, "what was measured"),
    L("thresholds", ROWS, limits, n_limits, thresholds, "limits"),
    PART("layers", layers, "layers"),
    L("notes", ROWS, notes, n_notes, tare__table_sentences, "what was assumed"),
};
#undef R
const tare__table tare__table_measured = {
    .name = "measured",
    .shape = TARE__SHAPE_SINGLE,
    .meaning = "the model, run ([MODELS.md](MODELS.md) says how); null with `--static`. Times are nanoseconds with a "
               "fraction",
    .columns = measured_columns,
    .n_columns = TARE__COUNT_OF(measured_columns),
    .through = offsetof(tare__model_view, measured) + 1};
