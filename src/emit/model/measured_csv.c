/* model measured_csv: what a model did when it was run, as tables for spreadsheets; docs/EXPORT.md tells the columns.
 * Owned by the calling thread; writes in pieces.
 * Must not know how anything was measured. */
#include "measured.h"

#include <math.h>
#include <string.h>

#include "emit/flush.h"
#include "tare.h"

static void put_header(csv *to, const char *names)
{
    tare__text_string(&to->text, names);
    tare__text_string(&to->text, "\r\n");
}

static double rate_of(const tare__runner_result *result, const char *unit)
{
    for (size_t i = 0; i < result->n_rates; i++)
        if (strcmp(result->rates[i].unit, unit) == 0)
            return result->rates[i].value;
    return NAN;
}

static void put_times(csv *to, const tare__runner_times *times)
{
    tare__csv_ns(to, times->n ? times->mean_ns : NAN);
    for (size_t i = 0; i < TARE__RUNNER_QUANTILES; i++) {
        tare__csv_ns(to, times->n ? times->quantile_ns[i] : NAN);
        tare__csv_ns(to, times->n ? times->interval[i].low : NAN);
        tare__csv_ns(to, times->n ? times->interval[i].high : NAN);
    }
    tare__csv_ns(to, times->n ? times->max_ns : NAN);
}

static void put_bytes(csv *to, double bytes)
{
    if (isnan(bytes))
        tare__csv_absent(to);
    else
        tare__csv_signed(to, (int64_t)llround(bytes));
}

static void put_results(csv *to, const tare__model_measured *measured)
{
    static const char *const units[] = {"samples/s", "images/s", "tokens/s", "requests/s"};
    put_header(to,
               "configuration,batch,precision,executed,casts_inserted,threads,best_trade_off,runs,warmup_runs,steady,"
               "load_ns,first_run_ns,mean_ns,p50_ns,p50_low_ns,p50_high_ns,p95_ns,p95_low_ns,p95_high_ns,p99_ns,"
               "p99_low_ns,p99_high_ns,max_ns,end_to_end_p50_ns,samples_per_second,images_per_second,"
               "tokens_per_second,requests_per_second,memory_peak_bytes,memory_average_bytes,"
               "memory_per_sample_bytes,failure");
    for (size_t i = 0; i < measured->n_results; i++) {
        const tare__runner_result *result = &measured->results[i];
        tare__csv_text(to, result->name);
        tare__csv_known(to, result->batch);
        tare__csv_text(to, result->precision);
        tare__csv_text(to, result->executed);
        if (result->executed)
            tare__csv_count(to, result->casts);
        else
            tare__csv_absent(to);
        tare__csv_known(to, result->threads);
        tare__csv_flag(to, result->best);
        tare__csv_count(to, result->latency.n);
        tare__csv_count(to, result->warmup);
        tare__csv_flag(to, result->steady);
        tare__csv_ns(to, result->load_ns);
        tare__csv_ns(to, result->first_ns);
        put_times(to, &result->latency);
        tare__csv_ns(to, result->end_to_end.n ? result->end_to_end.quantile_ns[TARE__RUNNER_P50] : NAN);
        for (size_t k = 0; k < TARE__COUNT_OF(units); k++)
            tare__csv_double(to, rate_of(result, units[k]));
        put_bytes(to, result->memory_peak_bytes);
        put_bytes(to, result->memory_average_bytes);
        put_bytes(to, result->memory_per_sample_bytes);
        tare__csv_text(to, result->failure);
        tare__csv_end_row(to);
    }
}

static void put_runs(csv *to, const tare__model_measured *measured)
{
    put_header(to, "configuration,run,latency_ns");
    for (size_t i = 0; i < measured->n_results; i++)
        for (size_t k = 0; k < measured->results[i].latency.n; k++) {
            tare__csv_text(to, measured->results[i].name);
            tare__csv_count(to, k);
            tare__csv_ns(to, measured->results[i].latency.samples_ns[k]);
            tare__csv_end_row(to);
        }
}

static void put_layers(csv *to, const tare__model_measured *measured)
{
    put_header(to, "name,op,provider,type,cast_inserted,calls,time_ns,share,macs,bytes,flops_per_second,"
                   "roof_flops_per_second,of_roof,of_roof_absent,bound");
    for (size_t i = 0; i < measured->n_layers; i++) {
        const tare__runner_layer *layer = &measured->layers[i];
        tare__csv_text(to, layer->name);
        tare__csv_text(to, layer->op);
        tare__csv_text(to, layer->provider);
        tare__csv_text(to, layer->types);
        tare__csv_flag(to, layer->cast);
        tare__csv_double(to, layer->calls);
        tare__csv_ns(to, layer->time_ns);
        tare__csv_double(to, layer->share);
        if (layer->counted)
            tare__csv_count(to, layer->macs);
        else
            tare__csv_absent(to);
        put_bytes(to, layer->bytes);
        tare__csv_double(to, layer->flops);
        tare__csv_double(to, layer->roof_flops);
        tare__csv_double(to, layer->flops / layer->roof_flops);
        tare__csv_text(to, layer->roof_absent);
        tare__csv_text(to, isnan(layer->roof_flops) ? NULL : layer->memory_bound ? "memory" : "compute");
        tare__csv_end_row(to);
    }
}

static void put_limits(csv *to, const tare__model_measured *measured)
{
    put_header(to, "metric,configuration,unit,bound,limit,value,broken,broken_by");
    for (size_t i = 0; i < measured->n_limits; i++) {
        const tare__runner_limit *limit = &measured->limits[i];
        tare__csv_text(to, limit->metric);
        tare__csv_text(to, limit->result);
        tare__csv_text(to, limit->unit);
        tare__csv_text(to, limit->at_least ? "at least" : "at most");
        tare__csv_double(to, limit->limit);
        tare__csv_double(to, limit->value);
        tare__csv_flag(to, limit->broken);
        tare__csv_double(to, limit->broken ? limit->by : NAN);
        tare__csv_end_row(to);
    }
}

static const struct {
    const char *name;
    void (*put)(csv *, const tare__model_measured *);
} tables[] = {
    {"measured.csv", put_results},
    {"runs.csv", put_runs},
    {"measured_layers.csv", put_layers},
    {"thresholds.csv", put_limits},
};

int tare__measured_csv(const tare__model_measured *measured, const tare__emit_files *files, tare__error *error)
{
    int status = 0;
    for (size_t i = 0; measured && i < TARE__COUNT_OF(tables) && !status; i++) {
        csv to = {.sink = files->open(files->context, tables[i].name), .error = error};
        if (!to.sink)
            return TARE_E_SYSTEM;
        tables[i].put(&to, measured);
        status = to.status ? to.status : tare__emit_flush(&to.text, to.sink, error);
        tare__text_free(&to.text);
        if (files->close(files->context) && !status)
            status = TARE_E_SYSTEM;
    }
    return status;
}
