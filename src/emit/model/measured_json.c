/* model measured_json: what a model did when it was run, as JSON; docs/JSON.md tells the keys.
 * Owned by the calling thread.
 * Must not know how anything was measured. */
#include "measured.h"

#include <math.h>

/* ---- values --------------------------------------------------------------------------------------------------- */
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

/* ---- times ---------------------------------------------------------------------------------------------------- */
static void put_quantile(tare__json *json, const char *key, double value, const tare__interval *interval)
{
    tare__json_key(json, key);
    tare__json_object(json);
    tare__json_put_double(json, "value_ns", value);
    tare__json_put_double(json, "low_ns", interval->low);
    tare__json_put_double(json, "high_ns", interval->high);
    tare__json_put_double(json, "confidence", interval->confidence);
    if (isnan(interval->low)) {
        tare__json_put_string(json, "reason", "too few runs for an interval");
        tare__json_put_unsigned(json, "needed_runs", interval->needed);
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
    tare__json_put_unsigned(json, "runs", times->n);
    tare__json_put_double(json, "min_ns", times->min_ns);
    tare__json_put_double(json, "mean_ns", times->mean_ns);
    tare__json_put_double(json, "deviation_ns", times->deviation_ns);
    for (size_t i = 0; i < TARE__RUNNER_QUANTILES; i++)
        put_quantile(json, names[i], times->quantile_ns[i], &times->interval[i]);
    tare__json_put_double(json, "max_ns", times->max_ns);
    tare__json_put_unsigned(json, "outliers", times->outliers);
    if (samples)
        put_list(json, "samples_ns", times->samples_ns, times->n);
    tare__json_end_object(json);
}

/* ---- a configuration ------------------------------------------------------------------------------------------ */
static void put_rates(tare__json *json, const tare__runner_result *result)
{
    tare__json_key(json, "throughput");
    tare__json_array(json);
    for (size_t i = 0; i < result->n_rates; i++) {
        const tare__runner_rate *rate = &result->rates[i];
        tare__json_object(json);
        tare__json_put_string(json, "unit", rate->unit);
        tare__json_put_double(json, "value", rate->value);
        tare__json_put_double(json, "low", rate->low);
        tare__json_put_double(json, "high", rate->high);
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
    tare__json_put_string(json, "asked", result->precision);
    tare__json_put_bool(json, "converted", result->converted);
    tare__json_put_string(json, "executed", result->executed);
    if (!result->executed)
        tare__json_put_string(json, "reason",
                              result->executed_reason ? result->executed_reason
                              : result->ran           ? "it was not profiled"
                                                      : "it did not run");
    else {
        tare__json_put_unsigned(json, "casts_inserted", result->casts);
        tare__json_put_double(json, "casts_share", result->casts_share);
    }
    tare__json_end_object(json);
}

static void put_result(tare__json *json, const tare__runner_result *result)
{
    tare__json_object(json);
    tare__json_put_string(json, "name", result->name);
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
    tare__json_put_string(json, "failure", result->failure);
    if (result->ran) {
        tare__json_put_bool(json, "best_trade_off", result->best);
        tare__json_put_double(json, "runtime_load_ns", result->runtime_ns);
        tare__json_put_double(json, "load_ns", result->load_ns);
        tare__json_put_double(json, "first_run_ns", result->first_ns);
        tare__json_put_unsigned(json, "warmup_runs", result->warmup);
        tare__json_put_bool(json, "steady", result->steady);
        put_times(json, "latency", &result->latency, true);
        put_times(json, "end_to_end", &result->end_to_end, true);
        put_times(json, "pre", &result->pre, false);
        put_times(json, "post", &result->post, false);
        put_rates(json, result);
        put_memory(json, result);
    }
    tare__json_end_object(json);
}

/* ---- layers, limits ------------------------------------------------------------------------------------------- */
static void put_layer(tare__json *json, const tare__runner_layer *layer)
{
    tare__json_object(json);
    tare__json_put_string(json, "name", layer->name);
    tare__json_put_string(json, "op", layer->op);
    tare__json_put_string(json, "provider", layer->provider);
    tare__json_put_string(json, "type", layer->types);
    tare__json_put_bool(json, "cast_inserted", layer->cast);
    tare__json_put_double(json, "calls", layer->calls);
    tare__json_put_double(json, "time_ns", layer->time_ns);
    tare__json_put_double(json, "share", layer->share);
    tare__json_key(json, "macs");
    if (layer->counted)
        tare__json_unsigned(json, layer->macs);
    else
        tare__json_null(json);
    put_bytes(json, "bytes", layer->bytes);
    tare__json_put_double(json, "flops_per_second", layer->flops);
    tare__json_put_double(json, "roof_flops_per_second", layer->roof_flops);
    tare__json_put_double(json, "of_roof", layer->flops / layer->roof_flops);
    tare__json_put_string(json, "of_roof_absent", layer->roof_absent);
    tare__json_put_string(json, "bound",
                          isnan(layer->roof_flops) ? NULL : layer->memory_bound ? "memory" : "compute");
    tare__json_end_object(json);
}

static void put_layers(tare__json *json, const tare__model_measured *measured)
{
    tare__json_key(json, "layers");
    tare__json_object(json);
    tare__json_put_unsigned(json, "runs", measured->layer_runs);
    tare__json_put_double(json, "total_ns", measured->n_layers ? measured->layers_ns : NAN);
    tare__json_put_double(json, "profile_slowdown", measured->n_layers ? measured->layers_slowdown : NAN);
    tare__json_key(json, "peaks");
    tare__peaks_json(&measured->peaks, json);
    tare__json_put_string(json, "reason",
                          measured->n_layers        ? NULL
                          : measured->layers_absent ? measured->layers_absent
                                                    : "nothing ran");
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
        tare__json_put_string(json, "metric", limit->metric);
        tare__json_put_string(json, "configuration", limit->result);
        tare__json_put_string(json, "unit", limit->unit);
        tare__json_put_string(json, "bound", limit->at_least ? "at least" : "at most");
        tare__json_put_double(json, "limit", limit->limit);
        tare__json_put_double(json, "value", limit->value);
        tare__json_put_bool(json, "broken", limit->broken);
        tare__json_put_double(json, "broken_by", limit->broken ? limit->by : NAN);
        tare__json_put_string(json, "reason", limit->absent);
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
    tare__json_put_string(json, "reason", measured->absent);
    tare__json_put_string(json, "runtime", measured->runtime);
    tare__json_put_string(json, "runtime_version", measured->runtime_version);
    tare__json_put_string(json, "stored_precision", measured->stored_precision);
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
