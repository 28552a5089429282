/* model_measured_json: what a model did when it was run, as JSON; docs/JSON.md tells the keys.
 * Owned by the calling thread.
 * Must not know how anything was measured. */
#include "model_measured.h"

#include <math.h>

/* ---- values -------------------------------------------------------------------------------------------------------- */
static void put_double(tare__json *json, const char *key, double value)
{
    tare__json_key(json, key);
    tare__json_double(json, value);
}

static void put_string(tare__json *json, const char *key, const char *value)
{
    tare__json_key(json, key);
    tare__json_string(json, value);
}

static void put_count(tare__json *json, const char *key, uint64_t value)
{
    tare__json_key(json, key);
    tare__json_unsigned(json, value);
}

/* Whole bytes; null where they are not known. */
static void put_bytes(tare__json *json, const char *key, double value)
{
    tare__json_key(json, key);
    if (isnan(value))
        tare__json_null(json);
    else
        tare__json_signed(json, (int64_t)llround(value));
}

static void put_list(tare__json *json, const char *key, const double *values, size_t n)
{
    tare__json_key(json, key);
    tare__json_array(json);
    for (size_t i = 0; i < n; i++)
        tare__json_double(json, values[i]);
    tare__json_end_array(json);
}

/* ---- times --------------------------------------------------------------------------------------------------------- */
static void put_quantile(tare__json *json, const char *key, double value, const tare__interval *interval)
{
    tare__json_key(json, key);
    tare__json_object(json);
    put_double(json, "value_ns", value);
    put_double(json, "low_ns", interval->low);
    put_double(json, "high_ns", interval->high);
    put_double(json, "confidence", interval->confidence);
    if (isnan(interval->low)) {
        put_string(json, "reason", "too few runs for an interval");
        put_count(json, "needed_runs", interval->needed);
    }
    tare__json_end_object(json);
}

static void put_times(tare__json *json, const char *key, const tare__runner_times *times, bool samples)
{
    static const char *const names[TARE__RUNNER_QUANTILES] = {"p50", "p95", "p99"};
    tare__json_key(json, key);
    if (!times->n) {
        tare__json_null(json);
        return;
    }
    tare__json_object(json);
    put_count(json, "runs", times->n);
    put_double(json, "min_ns", times->min_ns);
    put_double(json, "mean_ns", times->mean_ns);
    put_double(json, "deviation_ns", times->deviation_ns);
    for (size_t i = 0; i < TARE__RUNNER_QUANTILES; i++)
        put_quantile(json, names[i], times->quantile_ns[i], &times->interval[i]);
    put_double(json, "max_ns", times->max_ns);
    put_count(json, "outliers", times->outliers);
    if (samples)
        put_list(json, "samples_ns", times->samples_ns, times->n);
    tare__json_end_object(json);
}

/* ---- a configuration ----------------------------------------------------------------------------------------------- */
static void put_rates(tare__json *json, const tare__runner_result *result)
{
    tare__json_key(json, "throughput");
    tare__json_array(json);
    for (size_t i = 0; i < result->n_rates; i++) {
        const tare__runner_rate *rate = &result->rates[i];
        tare__json_object(json);
        put_string(json, "unit", rate->unit);
        put_double(json, "value", rate->value);
        put_double(json, "low", rate->low);
        put_double(json, "high", rate->high);
        put_list(json, "windows", rate->windows, rate->n_windows);
        tare__json_end_object(json);
    }
    tare__json_end_array(json);
}

static void put_memory(tare__json *json, const tare__runner_result *result)
{
    tare__json_key(json, "memory");
    tare__json_object(json);
    put_bytes(json, "peak_bytes", result->memory_peak_bytes);
    put_bytes(json, "average_bytes", result->memory_average_bytes);
    put_bytes(json, "per_sample_bytes", result->memory_per_sample_bytes);
    put_bytes(json, "loaded_bytes", result->memory_loaded_bytes);
    put_bytes(json, "load_peak_bytes", result->memory_load_peak_bytes);
    put_bytes(json, "before_bytes", result->memory_before_bytes);
    tare__json_end_object(json);
}

static void put_precision(tare__json *json, const tare__runner_result *result)
{
    tare__json_key(json, "precision");
    tare__json_object(json);
    put_string(json, "asked", result->precision);
    tare__json_key(json, "converted");
    tare__json_bool(json, result->converted);
    put_string(json, "executed", result->executed);
    if (!result->executed)
        put_string(json, "reason", result->executed_reason ? result->executed_reason : result->ran ? "it was not profiled" : "it did not run");
    else {
        put_count(json, "casts_inserted", result->casts);
        put_double(json, "casts_share", result->casts_share);
    }
    tare__json_end_object(json);
}

static void put_result(tare__json *json, const tare__runner_result *result)
{
    tare__json_object(json);
    put_string(json, "name", result->name);
    tare__json_key(json, "batch");
    if (result->batch > 0)
        tare__json_signed(json, result->batch);
    else
        tare__json_null(json);
    tare__json_key(json, "threads");
    if (result->threads)
        tare__json_unsigned(json, result->threads);
    else
        tare__json_null(json); /* the runtime's own number */
    put_precision(json, result);
    put_string(json, "failure", result->failure);
    if (result->ran) {
        tare__json_key(json, "best_trade_off");
        tare__json_bool(json, result->best);
        put_double(json, "runtime_load_ns", result->runtime_ns);
        put_double(json, "load_ns", result->load_ns);
        put_double(json, "first_run_ns", result->first_ns);
        put_count(json, "warmup_runs", result->warmup);
        tare__json_key(json, "steady");
        tare__json_bool(json, result->steady);
        put_times(json, "latency", &result->latency, true);
        put_times(json, "end_to_end", &result->end_to_end, true);
        put_times(json, "pre", &result->pre, false);
        put_times(json, "post", &result->post, false);
        put_rates(json, result);
        put_memory(json, result);
    }
    tare__json_end_object(json);
}

/* ---- layers, limits ------------------------------------------------------------------------------------------------ */
static void put_layer(tare__json *json, const tare__runner_layer *layer)
{
    tare__json_object(json);
    put_string(json, "name", layer->name);
    put_string(json, "op", layer->op);
    put_string(json, "provider", layer->provider);
    put_string(json, "type", layer->types);
    tare__json_key(json, "cast_inserted");
    tare__json_bool(json, layer->cast);
    put_double(json, "calls", layer->calls);
    put_double(json, "time_ns", layer->time_ns);
    put_double(json, "share", layer->share);
    tare__json_key(json, "macs");
    if (layer->counted)
        tare__json_unsigned(json, layer->macs);
    else
        tare__json_null(json);
    put_bytes(json, "bytes", layer->bytes);
    put_double(json, "flops_per_second", layer->flops);
    put_double(json, "roof_flops_per_second", layer->roof_flops);
    put_string(json, "bound", isnan(layer->roof_flops) ? NULL : layer->memory_bound ? "memory" : "compute");
    tare__json_end_object(json);
}

static void put_layers(tare__json *json, const tare__model_measured *measured)
{
    tare__json_key(json, "layers");
    tare__json_object(json);
    put_count(json, "runs", measured->layer_runs);
    put_double(json, "total_ns", measured->n_layers ? measured->layers_ns : NAN);
    put_double(json, "roof_flops_per_second", measured->roof_flops);
    put_double(json, "roof_bytes_per_second", measured->roof_bytes);
    put_string(json, "reason", measured->n_layers ? NULL : measured->layers_absent ? measured->layers_absent : "nothing ran");
    tare__json_key(json, "rows");
    tare__json_array(json);
    for (size_t i = 0; i < measured->n_layers; i++)
        put_layer(json, &measured->layers[i]);
    tare__json_end_array(json);
    tare__json_end_object(json);
}

static void put_limits(tare__json *json, const tare__model_measured *measured)
{
    tare__json_key(json, "thresholds");
    tare__json_array(json);
    for (size_t i = 0; i < measured->n_limits; i++) {
        const tare__runner_limit *limit = &measured->limits[i];
        tare__json_object(json);
        put_string(json, "metric", limit->metric);
        put_string(json, "configuration", limit->result);
        put_string(json, "unit", limit->unit);
        put_string(json, "bound", limit->at_least ? "at least" : "at most");
        put_double(json, "limit", limit->limit);
        put_double(json, "value", limit->value);
        tare__json_key(json, "broken");
        tare__json_bool(json, limit->broken);
        put_double(json, "broken_by", limit->broken ? limit->by : NAN);
        put_string(json, "reason", limit->absent);
        tare__json_end_object(json);
    }
    tare__json_end_array(json);
}

void tare__measured_json(tare__json *json, const tare__model_measured *measured)
{
    if (!measured) {
        tare__json_null(json);
        return;
    }
    tare__json_object(json);
    put_string(json, "reason", measured->absent);
    put_string(json, "runtime", measured->runtime);
    put_string(json, "runtime_version", measured->runtime_version);
    put_string(json, "stored_precision", measured->stored_precision);
    tare__json_key(json, "configurations");
    tare__json_array(json);
    for (size_t i = 0; i < measured->n_results; i++)
        put_result(json, &measured->results[i]);
    tare__json_end_array(json);
    put_layers(json, measured);
    put_limits(json, measured);
    tare__json_key(json, "notes");
    tare__json_array(json);
    for (size_t i = 0; i < measured->n_notes; i++)
        tare__json_string(json, measured->notes[i]);
    tare__json_end_array(json);
    tare__json_end_object(json);
}
