/* figures_model: figures of a model report: its static costs, which are exact, and its measurements.
 * Owned by the calling thread.
 * Must not know files, nor how figures are shown. */
#include "analyze/analyze.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"

static void add_exact(tare__figures *into, const char *name, const char *unit, uint64_t value, bool at_least)
{
    tare__figure figure = {.name = name, .unit = unit, .better = TARE__LOWER, .exact = true, .at_least = at_least,
                           .value = (double)value, .total = NAN, .n = 1};
    tare__figures_add(into, &figure);
}

static void add_costs(tare__figures *into, const tare__model_report *report)
{
    add_exact(into, "model.macs", "", report->total.macs, report->macs_at_least);
    add_exact(into, "model.parameters", "", report->total.parameters, false);
    add_exact(into, "model.file", "bytes", report->file_bytes + report->external_bytes, false);
    if (report->activations_known)
        add_exact(into, "model.activations", "bytes", report->activation_peak_bytes, false);
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

static void add_value(tare__figures *into, const char *what, const tare__runner_result *result, const char *unit,
                      double value)
{
    char name[160];
    tare__figure figure = {.name = name_of(name, what, result), .unit = unit, .better = TARE__LOWER, .value = value,
                           .total = NAN, .n = 1};
    if (!isnan(value))
        tare__figures_add(into, &figure);
}

static void add_times(tare__figures *into, const char *what, const tare__runner_result *result,
                      const tare__runner_times *times)
{
    char name[160];
    tare__figure figure = {.name = name_of(name, what, result), .unit = "ns", .per = "call", .better = TARE__LOWER,
                           .value = NAN, .total = times->mean_ns * (double)times->n, .n = times->n, .each = 1,
                           .samples = times->samples_ns, .n_samples = times->n};
    if (times->n)
        tare__figures_add(into, &figure);
}

static void add_rates(tare__figures *into, const tare__runner_result *result)
{
    static const char *const names[][2] = {{"samples/s", "model.throughput"},
                                           {"tokens/s", "model.throughput.tokens"},
                                           {"images/s", "model.throughput.images"}};
    for (size_t i = 0; i < result->n_rates; i++)
        for (size_t k = 0; k < TARE__COUNT_OF(names); k++) {
            const tare__runner_rate *rate = &result->rates[i];
            char name[160];
            if (strcmp(rate->unit, names[k][0]) != 0)
                continue;
            tare__figure figure = {.name = name_of(name, names[k][1], result), .unit = rate->unit, .per = "window",
                                   .better = TARE__HIGHER, .value = rate->value, .total = NAN, .n = rate->n_windows,
                                   .each = 1, .samples = rate->windows, .n_samples = rate->n_windows};
            tare__figures_add(into, &figure);
        }
}

static void add_result(tare__figures *into, const tare__runner_result *result)
{
    const tare__runner_times *latency = &result->latency;
    if (!result->ran)
        return;
    add_times(into, "model.latency", result, latency);
    add_value(into, "model.latency.p95", result, "ns", latency->quantile_ns[TARE__RUNNER_P95]);
    add_value(into, "model.latency.p99", result, "ns", latency->quantile_ns[TARE__RUNNER_P99]);
    add_times(into, "model.end_to_end", result, &result->end_to_end);
    add_rates(into, result);
    add_value(into, "model.load", result, "ns", result->load_ns);
    add_value(into, "model.memory.peak", result, "bytes", result->memory_peak_bytes);
}

static void add_layer(tare__figures *into, const tare__runner_layer *layer)
{
    char name[600];
    snprintf(name, sizeof name, "layer:%s", layer->name);
    tare__figure figure = {.name = name, .unit = "ns", .per = "call", .better = TARE__LOWER, .value = layer->time_ns,
                           .total = layer->time_ns, .n = layer->n_samples, .each = 1, .samples = layer->samples_ns,
                           .n_samples = layer->n_samples};
    tare__figures_add(into, &figure);
}

static void add_measured(tare__figures *into, const tare__model_measured *measured)
{
    if (measured->absent)
        tare__figures_note(into, measured->absent);
    for (size_t i = 0; i < measured->n_results; i++)
        add_result(into, &measured->results[i]);
    for (size_t i = 0; i < measured->n_layers; i++)
        add_layer(into, &measured->layers[i]);
}

int tare__figures_of_model(const tare__model_report *report, const tare__model_measured *measured,
                           tare__figures **figures)
{
    tare__figures *made = tare__figures_new("model");
    if (made)
        add_costs(made, report);
    if (made && measured)
        add_measured(made, measured);
    return tare__figures_hand_over(made, !made, figures);
}
