/* model_measured_html: what a model did when it was run, as sections of a page: configurations, distribution of the
 * latencies, layers, thresholds. No script. Owned by the calling thread.
 * Must not know how anything was measured. */
#include "model_measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plain.h"

#define LAYERS_MAX 200u
#define BINS       40u

static void put_cell(tare__text *out, const char *kind, const char *text)
{
    tare__text_format(out, "<td%s>", kind);
    tare__plain_text(out, text);
    tare__text_string(out, "</td>");
}

#define NUMBER " class=\"number\""

static void put_time(tare__text *out, double ns)
{
    char text[TARE__UNIT_BYTES];
    put_cell(out, NUMBER, tare__unit_time(text, ns));
}

static void put_bytes(tare__text *out, double bytes)
{
    char text[TARE__UNIT_BYTES];
    put_cell(out, NUMBER, tare__unit_bytes(text, bytes));
}

static void put_count(tare__text *out, double count)
{
    char text[TARE__UNIT_BYTES];
    put_cell(out, NUMBER, tare__unit_count(text, count));
}

/* The names of columns with '|' between; the first is of text, the others of numbers. */
static void put_head(tare__text *out, const char *columns)
{
    tare__text_string(out, "<div class=\"scroll\"><table><thead><tr>");
    for (bool first = true; *columns; first = false) {
        size_t length = strcspn(columns, "|");
        tare__text_format(out, "<th scope=\"col\"%s>%.*s</th>", first ? "" : NUMBER, (int)length, columns);
        columns += length + (columns[length] == '|');
    }
    tare__text_string(out, "</tr></thead><tbody>\n");
}

static void put_foot(tare__text *out)
{
    tare__text_string(out, "</tbody></table></div>\n");
}

/* ---- configurations ------------------------------------------------------------------------------------------------ */
static void put_quantile(tare__text *out, const tare__runner_times *times, size_t which)
{
    char value[TARE__UNIT_BYTES], low[TARE__UNIT_BYTES], high[TARE__UNIT_BYTES], title[160];
    const tare__interval *interval = &times->interval[which];
    if (isnan(interval->low))
        snprintf(title, sizeof title, "too few runs for an interval: %zu are needed", interval->needed);
    else
        snprintf(title, sizeof title, "95 %%: %s to %s", tare__unit_time(low, interval->low),
                 tare__unit_time(high, interval->high));
    tare__text_format(out, "<td" NUMBER " title=\"%s\">%s</td>", title, tare__unit_time(value, times->quantile_ns[which]));
}

static void put_result(tare__text *out, const tare__runner_result *result)
{
    char name[96], rate[96], number[TARE__UNIT_BYTES];
    tare__text_format(out, "<tr%s>", result->best ? " class=\"best\"" : "");
    tare__text_string(out, "<td>");
    tare__plain_text(out, tare__measured_name(result, name, sizeof name));
    tare__text_string(out, result->best ? " <strong>best trade-off</strong></td>" : "</td>");
    if (!result->ran) {
        tare__text_string(out, "<td colspan=\"10\">");
        tare__plain_text(out, result->failure ? result->failure : "not measured");
        tare__text_string(out, "</td></tr>\n");
        return;
    }
    for (size_t i = 0; i < TARE__RUNNER_QUANTILES; i++)
        put_quantile(out, &result->latency, i);
    put_time(out, result->latency.max_ns);
    snprintf(rate, sizeof rate, "%s %s", tare__unit_count(number, result->n_rates ? result->rates[0].value : NAN),
             result->n_rates ? result->rates[0].unit : "");
    put_cell(out, NUMBER, rate);
    put_bytes(out, result->memory_peak_bytes);
    put_bytes(out, result->memory_per_sample_bytes);
    put_time(out, result->load_ns);
    put_time(out, result->end_to_end.n ? result->end_to_end.quantile_ns[TARE__RUNNER_P50] : NAN);
    put_cell(out, NUMBER, result->executed ? result->executed : "n/a");
    tare__text_string(out, "</tr>\n");
}

static void put_results(tare__text *out, const tare__model_measured *measured)
{
    put_head(out, "configuration|p50|p95|p99|max|throughput|peak memory|memory a sample|load|end to end|executed");
    for (size_t i = 0; i < measured->n_results; i++)
        put_result(out, &measured->results[i]);
    put_foot(out);
    tare__text_string(out, "<p class=\"facts\">Intervals of 95 % by order statistics are shown over the figures.</p>\n");
}

/* ---- distributions ------------------------------------------------------------------------------------------------- */
/* From the shortest run to p99 and a little: what lies beyond goes into the last bin. */
static void put_distribution(tare__text *out, const tare__runner_result *result)
{
    unsigned bins[BINS] = {0}, most = 1;
    char name[96], low[TARE__UNIT_BYTES], high[TARE__UNIT_BYTES];
    const tare__runner_times *times = &result->latency;
    double from = times->min_ns, to = times->quantile_ns[TARE__RUNNER_P99] * 1.05;
    if (!result->ran || times->n < 2 || !(to > from))
        return;
    for (size_t i = 0; i < times->n; i++) {
        double place = (times->samples_ns[i] - from) / (to - from) * BINS;
        unsigned bin = place >= BINS ? BINS - 1 : place < 0 ? 0 : (unsigned)place;
        most = ++bins[bin] > most ? bins[bin] : most;
    }
    tare__text_string(out, "<figure><figcaption>");
    tare__plain_text(out, tare__measured_name(result, name, sizeof name));
    tare__text_format(out, ": %s to %s</figcaption>\n<svg viewBox=\"0 0 %u 60\" role=\"img\" width=\"480\" height=\"72\" "
                      "aria-label=\"distribution of latencies\">", tare__unit_time(low, from), tare__unit_time(high, to),
                      BINS * 10);
    for (unsigned i = 0; i < BINS; i++) {
        unsigned height = (unsigned)(56.0 * bins[i] / most + 0.5);
        if (bins[i])
            tare__text_format(out, "<rect x=\"%u\" y=\"%u\" width=\"9\" height=\"%u\" fill=\"var(--fill-0)\"/>", i * 10,
                              60 - (height ? height : 1), height ? height : 1);
    }
    tare__text_string(out, "</svg></figure>\n");
}

/* ---- layers and limits --------------------------------------------------------------------------------------------- */
static void put_layer(tare__text *out, const tare__runner_layer *layer)
{
    char share[TARE__UNIT_BYTES];
    bool computes = layer->counted && layer->macs;
    tare__text_string(out, "<tr>");
    put_cell(out, "", layer->name);
    put_cell(out, NUMBER, layer->op);
    put_cell(out, NUMBER, layer->types);
    put_time(out, layer->time_ns);
    put_cell(out, NUMBER, tare__unit_percent(share, layer->share));
    put_count(out, layer->counted ? 2.0 * (double)layer->macs : NAN);
    put_count(out, layer->flops);
    put_cell(out, NUMBER, computes ? tare__unit_percent(share, layer->flops / layer->roof_flops) : "");
    put_cell(out, NUMBER, isnan(layer->roof_flops) ? "" : layer->memory_bound ? "memory" : "compute");
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
    put_head(out, "layer|operator|type|time|share|FLOPs|FLOP/s|of roof|bound");
    for (size_t i = 0; i < shown; i++)
        put_layer(out, &measured->layers[i]);
    put_foot(out);
    if (shown < measured->n_layers)
        tare__text_format(out, "<p class=\"facts\">%zu more in --json and --csv.</p>\n", measured->n_layers - shown);
    tare__text_string(out, "</section>\n");
}

static void put_limits(tare__text *out, const tare__model_measured *measured)
{
    char text[64], by[TARE__UNIT_BYTES];
    if (!measured->n_limits)
        return;
    tare__text_string(out, "<section><h2>Thresholds</h2>\n");
    put_head(out, "threshold|configuration|measured|limit|broken by");
    for (size_t i = 0; i < measured->n_limits; i++) {
        const tare__runner_limit *limit = &measured->limits[i];
        tare__text_string(out, "<tr>");
        put_cell(out, "", limit->metric);
        put_cell(out, NUMBER, limit->result);
        put_cell(out, NUMBER, tare__measured_figure(limit->unit, limit->value, text, sizeof text));
        put_cell(out, NUMBER, tare__measured_figure(limit->unit, limit->limit, text, sizeof text));
        put_cell(out, NUMBER, !limit->broken ? "kept" : isnan(limit->by) ? "not measured" : tare__unit_percent(by, limit->by));
        tare__text_string(out, "</tr>\n");
    }
    put_foot(out);
    tare__text_string(out, "</section>\n");
}

void tare__measured_html(tare__text *out, const tare__model_measured *measured)
{
    if (!measured)
        return;
    tare__text_string(out, "<section><h2>Measured</h2>\n<p class=\"facts\">");
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
    for (size_t i = 0; i < measured->n_results; i++)
        put_distribution(out, &measured->results[i]);
    for (size_t i = 0; i < measured->n_notes; i++) {
        tare__text_string(out, "<p class=\"facts\">");
        tare__plain_text(out, measured->notes[i]);
        tare__text_string(out, "</p>\n");
    }
    tare__text_string(out, "</section>\n");
    if (measured->n_results)
        put_layers(out, measured);
    put_limits(out, measured);
}
