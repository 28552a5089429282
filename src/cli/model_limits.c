/* model_limits: which figure of a configuration a threshold's name refers to, and whether the threshold is met.
 * One thread.
 * Must not know how thresholds are written or shown. */
#include "model_measure.h"

#include <math.h>
#include <string.h>

/* ---- figures by their names ----------------------------------------------------------------------------------- */
static double quantile(const tare__runner_times *times, size_t which)
{
    return times->n ? times->quantile_ns[which] : NAN;
}
static double p50(const tare__runner_result *r) { return quantile(&r->latency, TARE__RUNNER_P50); }
static double p95(const tare__runner_result *r) { return quantile(&r->latency, TARE__RUNNER_P95); }
static double p99(const tare__runner_result *r) { return quantile(&r->latency, TARE__RUNNER_P99); }
static double longest(const tare__runner_result *r) { return r->latency.n ? r->latency.max_ns : NAN; }
static double mean(const tare__runner_result *r) { return r->latency.n ? r->latency.mean_ns : NAN; }
static double end_to_end(const tare__runner_result *r) { return quantile(&r->end_to_end, TARE__RUNNER_P50); }
static double load(const tare__runner_result *r) { return r->load_ns; }
static double first_run(const tare__runner_result *r) { return r->first_ns; }
static double memory(const tare__runner_result *r) { return r->memory_peak_bytes; }

static const struct metric {
    const char *name, *unit;
    double (*of)(const tare__runner_result *); /* NULL: a rate */
} metrics[] = {
    {"latency", "ns", p50},       {"p50", "ns", p50},   {"p95", "ns", p95},
    {"p99", "ns", p99},           {"max", "ns", longest}, {"mean", "ns", mean},
    {"end_to_end", "ns", end_to_end}, {"load", "ns", load}, {"first_run", "ns", first_run},
    {"memory", "bytes", memory},  {"throughput", "samples/s", NULL},
};

/* "p99[batch=4]" refers to one configuration. */
static size_t name_length(const char *name)
{
    return strcspn(name, "[");
}

static const struct metric *find(const char *name)
{
    for (size_t i = 0; i < TARE__COUNT_OF(metrics); i++)
        if (strlen(metrics[i].name) == name_length(name) && strncmp(metrics[i].name, name, name_length(name)) == 0)
            return &metrics[i];
    return NULL;
}

int tare__limits_check(const tare__threshold *threshold, tare__error *error)
{
    const struct metric *metric = find(threshold->name);
    if (!metric)
        return tare__fail(error, TARE_E_USAGE,
                          "--threshold: a model has no figure '%.64s'; it has latency, p50, p95, p99, "
                          "max, mean, end_to_end, load, first_run, memory, throughput",
                          threshold->name);
    return tare__threshold_check(threshold, metric->of ? metric->unit : "/s", "--threshold", error);
}

/* ---- compared with a configuration ------------------------------------------------------------------------------ */
static bool is_meant(const char *name, const tare__runner_result *result)
{
    const char *inside = name + name_length(name);
    size_t length = strlen(result->name);
    return !*inside || (strncmp(inside + 1, result->name, length) == 0 && strcmp(inside + 1 + length, "]") == 0);
}

static double rate_of(const tare__runner_result *result, const char *unit)
{
    for (size_t i = 0; i < result->n_rates; i++)
        if (strcmp(result->rates[i].unit, unit) == 0)
            return result->rates[i].value;
    return NAN;
}

static tare__runner_limit hold(const tare__threshold *threshold, const struct metric *metric,
                               const tare__runner_result *result)
{
    bool known_unit = !metric->of && *threshold->unit && *threshold->unit != '/';
    tare__runner_limit limit = {.metric = metric->name, .result = result->name, .at_least = !metric->of,
                                .unit = known_unit ? threshold->unit : metric->unit, .limit = threshold->value};
    limit.value = !result->ran ? NAN : metric->of ? metric->of(result) : rate_of(result, limit.unit);
    if (isnan(limit.value)) {
        limit.broken = true;
        limit.by = NAN;
        limit.absent = result->failure  ? result->failure
                       : !metric->of    ? "the model has no such unit"
                       : metric->of == end_to_end ? "requires --pre or --post"
                                                  : "not measured";
        return limit;
    }
    limit.broken = limit.at_least ? limit.value < limit.limit : limit.value > limit.limit;
    limit.by = limit.at_least ? (limit.limit - limit.value) / limit.limit : (limit.value - limit.limit) / limit.limit;
    return limit;
}

int tare__limits_hold(const tare__threshold *thresholds, size_t n, tare__model_measured *measured)
{
    static const tare__runner_result none = {.name = ""};
    size_t results = measured->n_results ? measured->n_results : 1;
    tare__runner_limit *limits = tare__arena_alloc(measured->arena, n * results * sizeof *limits + 1);
    if (!limits)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        size_t before = measured->n_limits;
        for (size_t k = 0; k < results; k++) {
            const tare__runner_result *result = measured->n_results ? &measured->results[k] : &none;
            if (!is_meant(thresholds[i].name, result) && measured->n_results)
                continue;
            limits[measured->n_limits] = hold(&thresholds[i], find(thresholds[i].name), result);
            if (!measured->n_results)
                limits[measured->n_limits].absent = measured->absent;
            measured->n_broken += limits[measured->n_limits++].broken;
        }
        if (measured->n_limits == before) { /* a configuration that was not requested */
            limits[before] = hold(&thresholds[i], find(thresholds[i].name), &none);
            limits[before].absent = "no such configuration";
            measured->n_limits++;
            measured->n_broken++;
        }
    }
    measured->limits = limits;
    return 0;
}
