/* figures_model: figures of a model report: its static costs, which are exact, and its measurements.
 * Owned by the calling thread.
 * Must not know files, nor how figures are shown. */
#include "analyze/analyze.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"

static int add_exact(tare__figures *into, const char *name, const char *unit, uint64_t value, bool at_least)
{
    tare__figure figure = {.name = name, .unit = unit, .better = TARE__LOWER, .exact = true, .at_least = at_least,
                           .value = (double)value, .total = NAN, .n = 1};
    return tare__figures_add(into, &figure);
}

static int add_costs(tare__figures *into, const tare__model_report *report)
{
    int status = add_exact(into, "model.macs", "", report->total.macs, report->macs_at_least);
    if (!status)
        status = add_exact(into, "model.parameters", "", report->total.parameters, false);
    if (!status)
        status = add_exact(into, "model.file", "bytes", report->file_bytes + report->external_bytes, false);
    if (!status && report->activations_known)
        status = add_exact(into, "model.activations", "bytes", report->activation_peak_bytes, false);
    return status;
}

/* ---- one configuration ---------------------------------------------------------------------------------------- */
static const char *name_of(char out[160], const char *what, const tare__runner_result *result)
{
    if (*result->name)
        snprintf(out, 160, "%s[%s]", what, result->name);
    else
        snprintf(out, 160, "%s", what);
    return out;
}

static int add_value(tare__figures *into, const char *what, const tare__runner_result *result, const char *unit,
                     double value)
{
    char name[160];
    tare__figure figure = {.name = name_of(name, what, result), .unit = unit, .better = TARE__LOWER, .value = value,
                           .total = NAN, .n = 1};
    return isnan(value) ? 0 : tare__figures_add(into, &figure);
}

static int add_times(tare__figures *into, const char *what, const tare__runner_result *result,
                     const tare__runner_times *times)
{
    char name[160];
    tare__figure figure = {.name = name_of(name, what, result), .unit = "ns", .per = "call", .better = TARE__LOWER,
                           .value = NAN, .total = times->mean_ns * (double)times->n, .n = times->n, .each = 1,
                           .samples = times->samples_ns, .n_samples = times->n};
    return times->n ? tare__figures_add(into, &figure) : 0;
}

static int add_rates(tare__figures *into, const tare__runner_result *result)
{
    static const char *const names[][2] = {{"samples/s", "model.throughput"},
                                           {"tokens/s", "model.throughput.tokens"},
                                           {"images/s", "model.throughput.images"}};
    int status = 0;
    for (size_t i = 0; i < result->n_rates && !status; i++)
        for (size_t k = 0; k < TARE__COUNT_OF(names) && !status; k++) {
            const tare__runner_rate *rate = &result->rates[i];
            char name[160];
            if (strcmp(rate->unit, names[k][0]) != 0)
                continue;
            tare__figure figure = {.name = name_of(name, names[k][1], result), .unit = rate->unit, .per = "window",
                                   .better = TARE__HIGHER, .value = rate->value, .total = NAN, .n = rate->n_windows,
                                   .each = 1, .samples = rate->windows, .n_samples = rate->n_windows};
            status = tare__figures_add(into, &figure);
        }
    return status;
}

static int add_result(tare__figures *into, const tare__runner_result *result)
{
    const tare__runner_times *latency = &result->latency;
    if (!result->ran)
        return 0;
    int status = add_times(into, "model.latency", result, latency);
    if (!status)
        status = add_value(into, "model.latency.p95", result, "ns", latency->quantile_ns[TARE__RUNNER_P95]);
    if (!status)
        status = add_value(into, "model.latency.p99", result, "ns", latency->quantile_ns[TARE__RUNNER_P99]);
    if (!status)
        status = add_times(into, "model.end_to_end", result, &result->end_to_end);
    if (!status)
        status = add_rates(into, result);
    if (!status)
        status = add_value(into, "model.load", result, "ns", result->load_ns);
    if (!status)
        status = add_value(into, "model.memory.peak", result, "bytes", result->memory_peak_bytes);
    return status;
}

static int add_layer(tare__figures *into, const tare__runner_layer *layer)
{
    char name[600];
    snprintf(name, sizeof name, "layer:%s", layer->name);
    tare__figure figure = {.name = name, .unit = "ns", .per = "call", .better = TARE__LOWER, .value = layer->time_ns,
                           .total = layer->time_ns, .n = layer->n_samples, .each = 1, .samples = layer->samples_ns,
                           .n_samples = layer->n_samples};
    return tare__figures_add(into, &figure);
}

static int add_measured(tare__figures *into, const tare__model_measured *measured)
{
    int status = measured->absent ? tare__figures_note(into, measured->absent) : 0;
    for (size_t i = 0; i < measured->n_results && !status; i++)
        status = add_result(into, &measured->results[i]);
    for (size_t i = 0; i < measured->n_layers && !status; i++)
        status = add_layer(into, &measured->layers[i]);
    return status;
}

int tare__figures_of_model(const tare__model_report *report, const tare__model_measured *measured,
                           tare__figures **figures)
{
    *figures = tare__figures_new("model");
    if (!*figures)
        return TARE_E_MEMORY;
    int status = add_costs(*figures, report);
    if (!status && measured)
        status = add_measured(*figures, measured);
    if (status) {
        tare__figures_free(*figures);
        *figures = NULL;
    }
    return status;
}
