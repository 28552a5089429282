/* model measured_html: what a model did when it was run, as sections of a page: configurations, distribution of the
 * latencies, layers, thresholds. No script. Owned by the calling thread.
 * Must not know how anything was measured. */
#include "measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emit/plain.h"
#include "emit/plain_chart.h"

#define LAYERS_MAX 200u
#define BINS_MAX   40u
#define PLOT       220.0 /* pixels of a chart's height */
#define LABELS_MAX 12u   /* of dots in a chart */
#define LETTER     0.026
#define GAP        0.05 /* from a dot to its words, and behind them */
#define LINE       14.0 /* pixels */

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
static const char *show_count(char out[TARE__CHART_WORD], const char *unit, double value)
{
    char number[TARE__UNIT_BYTES];
    snprintf(out, TARE__CHART_WORD, "%s%s%.24s", tare__unit_count(number, value), *unit ? " " : "", unit);
    return out;
}

static double clamped(double share)
{
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static void put_mark(tare__chart *chart, const char *word, double x, unsigned row)
{
    if (x < 0 || x > 1)
        return;
    tare__chart_upright(chart, "at", x);
    tare__chart_words(chart, "size",
                      x > 0.9    ? "end"
                      : x < 0.05 ? "start"
                                 : "middle",
                      x, 0, chart->top - 6 - 15 * row, word);
}

/* From the shortest run to where nearly all are; the few far beyond that are counted in words. */
static void put_distribution(tare__text *out, const tare__runner_result *result)
{
    unsigned bins[BINS_MAX] = {0}, most = 4; /* a scale of runs has whole steps */
    size_t beyond = 0;
    char name[96], word[TARE__UNIT_BYTES];
    const tare__runner_times *times = &result->latency;
    double from = times->min_ns, p50 = times->quantile_ns[TARE__RUNNER_P50],
           p95 = times->quantile_ns[TARE__RUNNER_P95];
    double to = fmin(times->max_ns, fmax(p50 + 2 * (p50 - from), p95 + (p95 - from) * 0.25));
    unsigned n = times->n / 3 > BINS_MAX ? BINS_MAX : times->n < 15 ? 5 : (unsigned)(times->n / 3);
    if (!result->ran || times->n < 2 || !(to > from))
        return;
    for (size_t i = 0; i < times->n; i++) {
        double place = (times->samples_ns[i] - from) / (to - from) * n;
        unsigned bin = place >= n ? n - 1 : place < 0 ? 0 : (unsigned)place;
        if (times->samples_ns[i] > to)
            beyond++;
        else
            most = ++bins[bin] > most ? bins[bin] : most;
    }
    tare__chart chart = {.out = out, .unit = "", .show = show_count, .top = 36, .height = PLOT};
    tare__chart_scale(&chart, 0, most);
    tare__text_string(out, "<figure class=\"plot\"><figcaption><strong>");
    tare__plain_text(out, tare__measured_name(result, name, sizeof name));
    char runs[TARE__COUNTED_BYTES];
    tare__text_format(out, "</strong>: %s by latency", tare__unit_counted(runs, (double)times->n, "run", NULL));
    if (beyond)
        tare__text_format(out, "; %zu beyond the chart, up to %s", beyond,
                          tare__unit_time(word, times->max_ns));
    tare__text_string(out, "</figcaption>");
    tare__chart_open(&chart, "distribution of latencies");
    for (unsigned i = 0; i < n; i++) {
        if (!bins[i])
            continue;
        double y = tare__chart_up(&chart, bins[i]);
        tare__text_string(out, "<rect class=\"bin\"");
        tare__chart_share(out, "x", (i + 0.05) / n);
        tare__chart_share(out, "width", 0.9 / n);
        tare__chart_number(out, "y", y);
        tare__chart_number(out, "height", fmax(1, tare__chart_up(&chart, 0) - y));
        tare__text_string(out, "/>");
    }
    double at50 = (p50 - from) / (to - from), at95 = (p95 - from) / (to - from);
    put_mark(&chart, "p50", at50, 0);
    put_mark(&chart, "p95", at95, at95 - at50 < 0.14);
    tare__chart_under(&chart, "", "start", 0, tare__unit_time(word, from));
    tare__chart_under(&chart, "roomy", "middle", 0.5, tare__unit_time(word, (from + to) / 2));
    tare__chart_under(&chart, "", "end", 1, tare__unit_time(word, to));
    tare__chart_close(&chart);
    tare__text_string(out, "</figure>\n");
}

static bool has_rate(const tare__runner_result *result)
{
    return result->ran && result->n_rates && isfinite(result->rates[0].value);
}

/* Words beside dots, as shares of a phone's width: what fits there fits everywhere. */
typedef struct labels {
    struct {
        double from, to, y;
    } taken[LABELS_MAX];
    size_t n;
} labels;

static bool take(labels *all, double from, double to, double y)
{
    if (all->n == LABELS_MAX || from < 0 || to > 1)
        return false;
    for (size_t i = 0; i < all->n; i++)
        if (fabs(all->taken[i].y - y) < LINE && from < all->taken[i].to && to > all->taken[i].from)
            return false;
    all->taken[all->n].from = from;
    all->taken[all->n].to = to;
    all->taken[all->n++].y = y;
    return true;
}

/* At the right of its dot, or at the left; where neither is free the table has it. */
static void put_label(tare__chart *chart, labels *all, double x, double y, const char *name)
{
    double wide = GAP + LETTER * (double)tare__text_columns(name, strlen(name));
    if (take(all, x, x + wide, y))
        tare__chart_words(chart, "label", "start", x, 9, y + 4, name);
    else if (take(all, x - wide, x, y))
        tare__chart_words(chart, "label", "end", x, -9, y + 4, name);
}

static void put_dots(tare__chart *chart, const tare__model_measured *measured, double widest)
{
    labels all = {.n = 0};
    for (int best = 1; best >= 0; best--) /* the ones worth choosing have their words first */
        for (size_t i = 0; i < measured->n_results; i++) {
            const tare__runner_result *result = &measured->results[i];
            char name[96];
            if (!has_rate(result) || result->best != (best == 1))
                continue;
            double x = clamped(result->latency.quantile_ns[TARE__RUNNER_P50] / widest);
            double y = tare__chart_up(chart, result->rates[0].value);
            tare__measured_name(result, name, sizeof name);
            tare__text_format(chart->out, "<circle class=\"%s\" r=\"5\"", best ? "dot" : "other");
            tare__chart_share(chart->out, "cx", x);
            tare__chart_number(chart->out, "cy", y);
            tare__text_string(chart->out, "><title>");
            tare__plain_text(chart->out, name);
            tare__text_string(chart->out, "</title></circle>");
            put_label(chart, &all, x, y, name);
        }
}

static void put_trade_off(tare__text *out, const tare__model_measured *measured)
{
    double widest = 0, most = 0;
    const char *unit = NULL;
    char word[TARE__UNIT_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < measured->n_results; i++) {
        const tare__runner_result *result = &measured->results[i];
        if (!has_rate(result))
            continue;
        widest = fmax(widest, result->latency.quantile_ns[TARE__RUNNER_P50] * 1.08);
        most = fmax(most, result->rates[0].value);
        unit = result->rates[0].unit;
        n++;
    }
    if (n < 2)
        return;
    tare__chart chart = {.out = out, .unit = "", .show = show_count, .top = 12, .height = PLOT};
    tare__chart_scale(&chart, 0, most);
    tare__text_string(out, "<figure class=\"plot\"><figcaption><strong>Throughput</strong> (");
    tare__plain_text(out, unit);
    tare__text_string(
        out,
        ", up) against <strong>latency</strong> (p50, across): upper left is best, the best trade-offs in "
        "colour</figcaption>");
    tare__chart_open(&chart, "throughput against latency of each configuration");
    put_dots(&chart, measured, widest);
    tare__chart_under(&chart, "", "start", 0, "0");
    tare__chart_under(&chart, "", "middle", 0.5, tare__unit_time(word, widest / 2));
    tare__chart_under(&chart, "", "end", 1, tare__unit_time(word, widest));
    tare__chart_close(&chart);
    tare__text_string(out, "</figure>\n");
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
