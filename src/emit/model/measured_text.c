/* model measured_text: the measurements of a model, for a terminal of 80 columns.
 * Owned by the calling thread.
 * Must not know how anything was measured. */
#include "measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEW_LAYERS  10u
#define CELL        TARE__PAGE_CELL
#define RATE_CELL   10u /* as wide as "samples/s" and a space */
#define DETAIL      13u /* columns before the details of a configuration */
#define FEW_DETAILS 4u /* configurations whose details are shown without --all */

/* ---- text ----------------------------------------------------------------------------------------------------- */
const char *tare__measured_name(const tare__runner_result *result, char *out, size_t room)
{
    int at = 0;
    out[0] = '\0';
    if (result->batch > 0)
        at += snprintf(out, room, "batch %lld", (long long)result->batch);
    /* A precision that was not requested is the same in all rows. */
    bool requested = strstr(result->name, "precision=") || (!at && !result->threads);
    if (result->precision && requested && (size_t)at < room)
        at += snprintf(out + at, room - (size_t)at, "%s%s", at ? ", " : "", result->precision);
    if (result->threads && (size_t)at < room)
        snprintf(out + at, room - (size_t)at, "%s%u thread%s", at ? ", " : "", result->threads,
                 result->threads == 1 ? "" : "s");
    if (!out[0])
        snprintf(out, room, "as it is");
    return out;
}

/* A line of a configuration's details; frees the text. */
static void put_detail(tare__page *page, const char *word, tare__text *sentence)
{
    tare__text_format(page->out, "  %s", word);
    tare__text_pad_to(page->out, DETAIL);
    tare__page_words(page, TARE__PAGE_PLAIN, DETAIL, sentence, TARE__PAGE_ENDLESS);
}

/* ---- the table of configurations ------------------------------------------------------------------------------ */
static const char *rate_unit(const tare__model_measured *measured)
{
    for (size_t i = 0; i < measured->n_results; i++)
        if (measured->results[i].n_rates)
            return measured->results[i].rates[0].unit;
    return "samples/s";
}

static void put_row(tare__page *page, const tare__runner_result *result)
{
    char name[96];
    const tare__runner_times *latency = &result->latency;
    tare__measured_name(result, name, sizeof name);
    tare__text_string(page->out, result->best ? "* " : "  ");
    tare__page_name(page, 0, name, 2);
    if (!result->ran) {
        tare__text_string(page->out, ": ");
        tare__page_say(page, TARE__PAGE_PLAIN, 4, result->failure ? result->failure : "not measured");
        return;
    }
    tare__text_pad_to(page->out, page->name_columns);
    tare__page_cells(page, "ttt", latency->quantile_ns);
    TARE__PAGE_CELLS(page, "tNb", latency->max_ns, result->n_rates ? result->rates[0].value : NAN,
                     result->memory_peak_bytes);
    tare__page_line_end(page);
}

static void put_table(tare__page *page, const tare__model_measured *measured)
{
    char columns[80];
    bool any_best = false;
    unsigned rate = strchr(rate_unit(measured), '/') ? RATE_CELL : CELL;
    snprintf(columns, sizeof columns, "p50|p95|p99|max|%s|memory", rate_unit(measured));
    tare__page_columns(page, "Latency", columns, (const unsigned[]){CELL, CELL, CELL, CELL, rate, CELL});
    for (size_t i = 0; i < measured->n_results; i++) {
        put_row(page, &measured->results[i]);
        any_best |= measured->results[i].best;
    }
    if (any_best)
        tare__page_say(page, TARE__PAGE_PLAIN, 2,
                       "* a best trade-off: no other is better in latency, throughput and memory at once");
}

/* ---- details of one ------------------------------------------------------------------------------------------- */
static void put_quantile(tare__text *text, const char *name, double value, const tare__interval *interval)
{
    char number[TARE__UNIT_BYTES], low[TARE__UNIT_BYTES], high[TARE__UNIT_BYTES];
    tare__text_format(text, "%s%s %s", text->length ? ", " : "", name, tare__unit_time(number, value));
    if (isnan(interval->low))
        tare__text_format(text, " (too few runs for an interval: %zu are needed)", interval->needed);
    else
        tare__text_format(text, " (%s to %s)", tare__unit_time(low, interval->low),
                          tare__unit_time(high, interval->high));
}

static void put_times(tare__page *page, const char *label, const tare__runner_times *times)
{
    static const char *const names[TARE__RUNNER_QUANTILES] = {"p50", "p95", "p99"};
    tare__text text = {0};
    char mean[TARE__UNIT_BYTES], max[TARE__UNIT_BYTES], runs[TARE__COUNTED_BYTES];
    for (size_t i = 0; i < TARE__RUNNER_QUANTILES; i++)
        put_quantile(&text, names[i], times->quantile_ns[i], &times->interval[i]);
    tare__text_format(&text, ", max %s, mean %s; %s", tare__unit_time(max, times->max_ns),
                      tare__unit_time(mean, times->mean_ns), tare__unit_counted(runs, (double)times->n, "run", NULL));
    if (times->outliers)
        tare__text_format(&text, ", %zu of them outliers that are counted in", times->outliers);
    put_detail(page, label, &text);
}

static void put_start(tare__page *page, const tare__runner_result *result)
{
    char load[TARE__UNIT_BYTES], runtime[TARE__UNIT_BYTES], first[TARE__UNIT_BYTES];
    tare__text text = {0};
    tare__text_format(&text, "model %s, runtime %s; first run %s; ", tare__unit_time(load, result->load_ns),
                      tare__unit_time(runtime, result->runtime_ns), tare__unit_time(first, result->first_ns));
    char runs[TARE__COUNTED_BYTES];
    tare__text_format(&text, "%s %s to warm up", result->steady ? "steady within" : "not steady after",
                      tare__unit_counted(runs, (double)result->warmup, "run", NULL));
    put_detail(page, "load", &text);
}

static void put_rates(tare__page *page, const tare__runner_result *result)
{
    tare__text text = {0};
    char value[TARE__UNIT_BYTES], low[TARE__UNIT_BYTES], high[TARE__UNIT_BYTES];
    for (size_t i = 0; i < result->n_rates; i++) {
        const tare__runner_rate *rate = &result->rates[i];
        tare__text_format(&text, "%s%s %s", i ? ", " : "", tare__unit_count(value, rate->value), rate->unit);
        if (i == 0 && !isnan(rate->low))
            tare__text_format(&text, " (median of windows %s to %s)", tare__unit_count(low, rate->low),
                              tare__unit_count(high, rate->high));
    }
    put_detail(page, "rate", &text);
}

static void put_memory(tare__page *page, const tare__runner_result *result)
{
    char peak[TARE__UNIT_BYTES], average[TARE__UNIT_BYTES], sample[TARE__UNIT_BYTES], loaded[TARE__UNIT_BYTES],
        before[TARE__UNIT_BYTES];
    tare__text text = {0};
    tare__text_format(&text, "peak %s, average %s; running adds %s a sample; loaded %s, %s of it before the model",
                      tare__unit_bytes(peak, result->memory_peak_bytes),
                      tare__unit_bytes(average, result->memory_average_bytes),
                      tare__unit_bytes(sample, result->memory_per_sample_bytes),
                      tare__unit_bytes(loaded, result->memory_loaded_bytes),
                      tare__unit_bytes(before, result->memory_before_bytes));
    put_detail(page, "memory", &text);
}

static void put_executed(tare__page *page, const tare__runner_result *result)
{
    tare__text text = {0};
    char share[TARE__UNIT_BYTES];
    if (!result->executed && !result->executed_reason)
        return;
    if (!result->executed)
        tare__text_format(&text, "n/a: %s", result->executed_reason);
    else if (result->casts)
        tare__text_format(&text, "%s; the runtime inserted %zu casts, %s of the time", result->executed, result->casts,
                          tare__unit_percent(share, result->casts_share));
    else
        tare__text_format(&text, "%s; no casts inserted", result->executed);
    if (result->converted)
        tare__text_format(&text, "; the file's weights were converted to %s", result->precision);
    put_detail(page, "executed", &text);
}

static void put_details(tare__page *page, const tare__runner_result *result)
{
    char name[96];
    if (!result->ran)
        return;
    tare__page_heading(page, tare__measured_name(result, name, sizeof name));
    put_start(page, result);
    put_times(page, "latency", &result->latency);
    if (result->end_to_end.n) {
        put_times(page, "end to end", &result->end_to_end);
        put_times(page, "  before", &result->pre);
        put_times(page, "  after", &result->post);
    }
    put_rates(page, result);
    put_memory(page, result);
    put_executed(page, result);
    if (result->failure) {
        tare__text text = {0};
        tare__text_string(&text, result->failure);
        put_detail(page, "failed", &text);
    }
}

/* ---- layers --------------------------------------------------------------------------------------------------- */
static void put_layer(tare__page *page, const tare__runner_layer *layer, bool rates)
{
    char op[64];
    bool computes = layer->counted && layer->macs;
    tare__page_label(page, 0, layer->name, "", TARE__PAGE_PLAIN);
    tare__text_fit(op, sizeof op, layer->cast ? "cast" : layer->op, TARE__PAGE_CELL - 1);
    tare__page_cell(page, TARE__PAGE_CELL, op);
    TARE__PAGE_CELLS(page, computes && rates ? "t%nN%" : "t%n", layer->time_ns, layer->share,
                     layer->counted ? 2.0 * (double)layer->macs : NAN, layer->flops,
                     layer->flops / layer->roof_flops);
    tare__page_line_end(page);
}

#define SHORT_NODE_NS 1e5 /* the profiler's overhead per node is microseconds: longer nodes are hardly affected */

bool tare__measured_slowdown(const tare__model_measured *measured, char *out, size_t room)
{
    double calls = 0;
    char factor[TARE__UNIT_BYTES];
    if (!(measured->layers_slowdown > TARE__PROFILE_SLOWDOWN))
        return false;
    for (size_t i = 0; i < measured->n_layers; i++)
        calls += measured->layers[i].calls;
    snprintf(out, room,
             "profiled runs took %s times the latency%s; FLOP/s are omitted, and shares are of the profiled time",
             tare__unit_count(factor, measured->layers_slowdown),
             measured->layers_ns < SHORT_NODE_NS * calls ? ": ONNX Runtime's profiler costs more than these layers"
                                                         : "");
    return true;
}

static void put_roof(tare__page *page, const tare__model_measured *measured)
{
    char flops[TARE__UNIT_BYTES], bytes[TARE__UNIT_BYTES], times[TARE__COUNTED_BYTES], text[384];
    double f32 = measured->peaks.flops[TARE__PEAK_F32], memory = measured->peaks.level_per_s[TARE__PEAK_LEVELS - 1];
    if (!(f32 > 0) || !(memory > 0))
        return;
    snprintf(text, sizeof text,
             "roof: %s FLOP/s in float32, %s/s from memory (more from caches) on the cores that ran it. "
             "Layers are timed apart from the runs above, %s, by the runtime, to 1 µs; shorter than 5 µs, or "
             "without a peak for their type, they have no share of the roof",
             tare__unit_count(flops, f32), tare__unit_bytes(bytes, memory),
             tare__unit_counted(times, (double)measured->layer_runs, "time", NULL));
    tare__page_say(page, TARE__PAGE_PLAIN, 2, text);
}

static void put_layers(tare__page *page, const tare__model_measured *measured)
{
    size_t shown = tare__page_rows(page, measured->n_layers, FEW_LAYERS);
    if (!measured->n_layers) {
        if (measured->layers_absent) {
            tare__text_string(page->out, "\nLayers, timed: n/a: ");
            tare__page_say(page, TARE__PAGE_PLAIN, 2, measured->layers_absent);
        }
        return;
    }
    char text[256];
    bool rates = !tare__measured_slowdown(measured, text, sizeof text);
    tare__page_columns(page, "Layers, timed",
                       rates ? "operator|time|share|FLOPs|FLOP/s|of roof" : "operator|time|share|FLOPs",
                       (const unsigned[]){CELL, CELL, CELL, CELL, RATE_CELL, CELL});
    for (size_t i = 0; i < shown; i++)
        put_layer(page, &measured->layers[i], rates);
    tare__page_more(page, measured->n_layers - shown, "layers");
    if (rates)
        put_roof(page, measured);
    else
        tare__page_say(page, TARE__PAGE_PLAIN, 2, text);
}

/* ---- limits --------------------------------------------------------------------------------------------------- */
#define LIMIT_CELL 17u
#define LIMIT_BY   11u

static const tare__runner_result *result_of(const tare__model_measured *measured, const tare__runner_limit *limit)
{
    for (size_t i = 0; i < measured->n_results; i++)
        if (measured->results[i].name == limit->result)
            return &measured->results[i];
    return NULL;
}

static void put_limit(tare__page *page, const tare__model_measured *measured, const tare__runner_limit *limit)
{
    const tare__runner_result *result = result_of(measured, limit);
    char name[160], of[96], value[TARE__VALUE_BYTES], bound[TARE__VALUE_BYTES], by[TARE__UNIT_BYTES];
    bool named = result && measured->n_results > 1;
    snprintf(name, sizeof name, "%s%s%s", limit->metric, named ? ", " : "",
             named ? tare__measured_name(result, of, sizeof of) : "");
    tare__page_label(page, 0, name, "", TARE__PAGE_PLAIN);
    tare__page_cell(page, LIMIT_CELL, tare__unit_value(value, limit->unit, limit->value));
    tare__page_cell(page, LIMIT_CELL, tare__unit_value(bound, limit->unit, limit->limit));
    tare__page_style_on(page, limit->broken ? TARE__PAGE_BAD : TARE__PAGE_PLAIN);
    tare__page_cell(page, LIMIT_BY,
                    !limit->broken     ? "kept"
                    : isnan(limit->by) ? "n/a"
                                       : tare__unit_percent(by, limit->by));
    tare__page_style_off(page);
    tare__page_line_end(page);
    if (limit->absent && !(result && result->failure == limit->absent)) { /* else the first table shows it */
        tare__text_string(page->out, "  ");
        tare__page_say(page, TARE__PAGE_PLAIN, 2, limit->absent);
    }
}

static void put_limits(tare__page *page, const tare__model_measured *measured)
{
    if (!measured->n_limits)
        return;
    page->name_columns = page->options->width - 2 * LIMIT_CELL - LIMIT_BY;
    tare__page_columns(page, "Thresholds", "measured|limit|broken by",
                       (const unsigned[]){LIMIT_CELL, LIMIT_CELL, LIMIT_BY});
    for (size_t i = 0; i < measured->n_limits; i++)
        put_limit(page, measured, &measured->limits[i]);
}

/* ---- all ------------------------------------------------------------------------------------------------------ */
static void put_headline(tare__page *page, const tare__model_measured *measured)
{
    tare__text_string(page->out, "\n");
    tare__page_put(page, TARE__PAGE_STRONG, "Measured");
    if (measured->absent) {
        tare__text_string(page->out, ": n/a: ");
        tare__page_say(page, TARE__PAGE_PLAIN, 2, measured->absent);
        return;
    }
    tare__text_format(page->out, " with ONNX Runtime%s%s, on the CPU", measured->runtime_version ? " " : "",
                      measured->runtime_version ? measured->runtime_version : "");
    tare__page_line_end(page);
}

void tare__measured_text(tare__page *page, const tare__model_measured *measured)
{
    if (!measured)
        return;
    unsigned before = page->name_columns;
    page->name_columns = page->options->width - 5 * TARE__PAGE_CELL - RATE_CELL;
    put_headline(page, measured);
    if (measured->n_results)
        put_table(page, measured);
    bool details = measured->n_results <= FEW_DETAILS || page->options->all;
    for (size_t i = 0; details && i < measured->n_results; i++)
        put_details(page, &measured->results[i]);
    if (measured->n_results)
        put_layers(page, measured);
    put_limits(page, measured);
    for (size_t i = 0; i < measured->n_notes; i++)
        tare__page_say(page, TARE__PAGE_PLAIN, 2, measured->notes[i]);
    page->name_columns = before;
}
