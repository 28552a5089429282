/* model measured_html: what a model did when it was run, as sections of a page: configurations, distribution of the
 * latencies, layers, thresholds. No script. Owned by the calling thread.
 * Must not know how anything was measured. */
#include "charts.h"
#include "measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emit/plain.h"

#define LAYERS_MAX 200u

static void put_cell(tare__text *out, const char *text)
{
    tare__text_string(out, "<td>");
    tare__plain_text(out, text);
    tare__text_string(out, "</td>");
}

static void put_words(tare__text *out, const char *kind, const char *text)
{
    tare__text_format(out, "<td class=\"%s\">", kind);
    tare__plain_text(out, text);
    tare__text_string(out, "</td>");
}

static void put_time(tare__text *out, double ns)
{
    char text[TARE__UNIT_BYTES];
    put_cell(out, tare__unit_time(text, ns));
}

static void put_bytes(tare__text *out, double bytes)
{
    char text[TARE__UNIT_BYTES];
    put_cell(out, tare__unit_bytes(text, bytes));
}

static void put_count(tare__text *out, double count)
{
    char text[TARE__UNIT_BYTES];
    put_cell(out, tare__unit_count(text, count));
}

/* ---- configurations ------------------------------------------------------------------------------------------- */
static void put_quantile(tare__text *out, const tare__runner_times *times, size_t which)
{
    char value[TARE__UNIT_BYTES], low[TARE__UNIT_BYTES], high[TARE__UNIT_BYTES];
    const tare__interval *interval = &times->interval[which];
    tare__unit_time(value, times->quantile_ns[which]);
    if (isnan(interval->low))
        tare__text_format(
            out,
            "<td title=\"too few runs for an interval: %zu are needed\">%s<small>needs %zu runs</small></td>",
            interval->needed, value, interval->needed);
    else
        tare__text_format(out, "<td>%s<small>%s … %s</small></td>", value,
                          tare__unit_time(low, interval->low), tare__unit_time(high, interval->high));
}

static bool any_end_to_end(const tare__model_measured *measured)
{
    for (size_t i = 0; i < measured->n_results; i++)
        if (measured->results[i].end_to_end.n)
            return true;
    return false;
}

static void put_result(tare__text *out, const tare__runner_result *result, bool whole)
{
    char name[96], rate[96], number[TARE__UNIT_BYTES];
    tare__text_string(out, "<tr><th scope=\"row\" class=\"name\">");
    tare__plain_text(out, tare__measured_name(result, name, sizeof name));
    tare__text_string(out, result->best ? " <span class=\"tag\">best trade-off</span></th>" : "</th>");
    if (!result->ran) {
        tare__text_format(out, "<td class=\"words\" colspan=\"%d\">", whole ? 10 : 9);
        tare__plain_text(out, result->failure ? result->failure : "not measured");
        tare__text_string(out, "</td></tr>\n");
        return;
    }
    for (size_t i = 0; i < TARE__RUNNER_QUANTILES; i++)
        put_quantile(out, &result->latency, i);
    put_time(out, result->latency.max_ns);
    if (whole)
        put_time(out, result->end_to_end.n ? result->end_to_end.quantile_ns[TARE__RUNNER_P50] : NAN);
    snprintf(rate, sizeof rate, "%s %s",
             tare__unit_count(number, result->n_rates ? result->rates[0].value : NAN),
             result->n_rates ? result->rates[0].unit : "");
    put_cell(out, rate);
    put_bytes(out, result->memory_peak_bytes);
    put_bytes(out, result->memory_per_sample_bytes);
    put_time(out, result->load_ns);
    put_words(out, "words", result->executed ? result->executed : "n/a");
    tare__text_string(out, "</tr>\n");
}

static void put_results(tare__text *out, const tare__model_measured *measured)
{
    bool whole = any_end_to_end(measured);
    tare__plain_table(
        out, "Configurations",
        whole
            ? "Configuration|#p50|#p95|#p99|#Max|#End to end|#Throughput|#Peak memory|#Memory a sample|#Load|"
              "Executed"
            : "Configuration|#p50|#p95|#p99|#Max|#Throughput|#Peak memory|#Memory a sample|#Load|Executed");
    for (size_t i = 0; i < measured->n_results; i++)
        put_result(out, &measured->results[i], whole);
    tare__plain_table_end(out);
    tare__text_string(
        out,
        "<p class=\"note\">Under a latency is its interval of 95 %, by order statistics, or how many runs "
        "it would need.</p>\n");
}

/* ---- charts --------------------------------------------------------------------------------------------------- */
static void put_distribution(tare__text *out, const tare__runner_result *result)
{
    char name[96];
    const tare__runner_times *times = &result->latency;
    if (result->ran)
        tare__model_distribution(out, tare__measured_name(result, name, sizeof name), times->samples_ns, times->n,
                                 times->quantile_ns[TARE__RUNNER_P50], times->quantile_ns[TARE__RUNNER_P95]);
}

static bool has_rate(const tare__runner_result *result)
{
    return result->ran && result->n_rates && isfinite(result->rates[0].value);
}

static void put_trade_off(tare__text *out, const tare__model_measured *measured)
{
    tare__model_dot dots[TARE__MODEL_DOTS_MAX];
    char names[TARE__MODEL_DOTS_MAX][96];
    const char *unit = NULL;
    size_t n = 0;
    for (size_t i = 0; i < measured->n_results && n < TARE__MODEL_DOTS_MAX; i++) {
        const tare__runner_result *result = &measured->results[i];
        if (!has_rate(result))
            continue;
        dots[n] = (tare__model_dot){.latency_ns = result->latency.quantile_ns[TARE__RUNNER_P50],
                                    .rate = result->rates[0].value,
                                    .best = result->best,
                                    .name = tare__measured_name(result, names[n], sizeof names[n])};
        unit = result->rates[0].unit;
        n++;
    }
    tare__model_trade_off(out, unit, dots, n);
}

/* ---- layers and limits ---------------------------------------------------------------------------------------- */
static void put_layer(tare__text *out, const tare__runner_layer *layer, bool rates)
{
    char share[TARE__UNIT_BYTES];
    bool computes = layer->counted && layer->macs;
    tare__text_string(out, "<tr><th scope=\"row\" class=\"name\">");
    tare__plain_text(out, layer->name);
    tare__text_string(out, "</th>");
    put_words(out, "words", layer->op);
    put_words(out, "words", layer->types);
    put_time(out, layer->time_ns);
    tare__text_string(out, "<td>");
    if (isfinite(layer->share))
        tare__plain_share(out, layer->share);
    tare__text_format(out, "%s</td>", tare__unit_percent(share, layer->share));
    put_count(out, layer->counted ? 2.0 * (double)layer->macs : NAN);
    if (rates) {
        put_count(out, layer->flops);
        put_cell(out, computes ? tare__unit_percent(share, layer->flops / layer->roof_flops) : "");
        put_words(out, "words", isnan(layer->roof_flops) ? "" : layer->memory_bound ? "memory" : "compute");
    }
    tare__text_string(out, "</tr>\n");
}

static void put_layers(tare__text *out, const tare__model_measured *measured)
{
    size_t shown = measured->n_layers < LAYERS_MAX ? measured->n_layers : LAYERS_MAX;
    tare__text_string(out, "<section><h2>Layers, timed</h2>\n");
    if (!measured->n_layers) {
        tare__text_string(out, "<p>n/a: ");
        tare__plain_text(out, measured->layers_absent ? measured->layers_absent : "nothing ran");
        tare__text_string(out, "</p></section>\n");
        return;
    }
    char text[256];
    bool rates = !tare__measured_slowdown(measured, text, sizeof text);
    if (!rates) {
        tare__text_string(out, "<p class=\"note\">");
        tare__plain_text(out, text);
        tare__text_string(out, "</p>\n");
    }
    tare__plain_table(out, "Layers, timed",
                      rates ? "Layer|Operator|Type|#Time|#Share|#FLOPs|#FLOP/s|#Of its roof|Bound by"
                            : "Layer|Operator|Type|#Time|#Share|#FLOPs");
    for (size_t i = 0; i < shown; i++)
        put_layer(out, &measured->layers[i], rates);
    tare__plain_table_end(out);
    if (shown < measured->n_layers)
        tare__text_format(out, "<p class=\"note\">%zu more in --json and --csv.</p>\n",
                          measured->n_layers - shown);
    tare__text_string(out, "</section>\n");
}

static void put_limit(tare__text *out, const tare__runner_limit *limit)
{
    char text[TARE__VALUE_BYTES], by[TARE__UNIT_BYTES], word[TARE__COMPARED_BYTES + 16];
    if (!limit->broken)
        snprintf(word, sizeof word, "kept");
    else if (isnan(limit->by))
        snprintf(word, sizeof word, "not measured");
    else
        snprintf(word, sizeof word, "broken by %s", tare__unit_change(by, limit->by) + (*by == '+'));
    tare__text_format(out, "<tr class=\"%s\"><th scope=\"row\" class=\"name\">",
                      limit->broken ? "worse" : "kept");
    tare__plain_text(out, limit->metric);
    tare__text_string(out, "</th>");
    put_words(out, "verdict", word);
    put_words(out, "words", limit->result);
    put_cell(out, tare__unit_value(text, limit->unit, limit->value));
    put_cell(out, tare__unit_value(text, limit->unit, limit->limit));
    tare__text_string(out, "</tr>\n");
}

static void put_limits(tare__text *out, const tare__model_measured *measured)
{
    if (!measured->n_limits)
        return;
    tare__text_format(out, "<section><h2>Thresholds: %zu of %zu broken</h2>\n", measured->n_broken,
                      measured->n_limits);
    tare__plain_table(out, "Thresholds", "Threshold|Verdict|Configuration|#Measured|#Limit");
    for (int broken = 1; broken >= 0; broken--)
        for (size_t i = 0; i < measured->n_limits; i++)
            if (measured->limits[i].broken == (broken == 1))
                put_limit(out, &measured->limits[i]);
    tare__plain_table_end(out);
    tare__text_string(out, "</section>\n");
}

void tare__measured_html(tare__text *out, const tare__model_measured *measured)
{
    if (!measured)
        return;
    tare__text_string(out, "<section><h2>Measured</h2>\n<p class=\"lead\">");
    if (measured->absent) {
        tare__text_string(out, "n/a: ");
        tare__plain_text(out, measured->absent);
    } else {
        tare__text_string(out, "ONNX Runtime ");
        tare__plain_text(out, measured->runtime_version ? measured->runtime_version : "?");
        tare__text_string(out, ", on the CPU");
    }
    tare__text_string(out, "</p>\n");
    if (measured->n_results)
        put_results(out, measured);
    tare__text_string(out, "<div class=\"plots\">\n");
    put_trade_off(out, measured);
    for (size_t i = 0; i < measured->n_results; i++)
        put_distribution(out, &measured->results[i]);
    tare__text_string(out, "</div>\n");
    for (size_t i = 0; i < measured->n_notes; i++) {
        tare__text_string(out, "<p class=\"note\">");
        tare__plain_text(out, measured->notes[i]);
        tare__text_string(out, "</p>\n");
    }
    tare__text_string(out, "</section>\n");
    put_limits(out, measured);
    if (measured->n_results)
        put_layers(out, measured);
}
