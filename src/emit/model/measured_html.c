/* model measured_html: the measurements of a model, as sections of a page: distribution of the latencies, trade-offs,
 * and the tables of its schema. No script. Owned by the calling thread.
 * Must not know how anything was measured. */
#include "charts.h"
#include "measured.h"

#include <math.h>

#include "emit/plain.h"
#include "emit/sheet.h"

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

/* ---- sections ---------------------------------------------------------------------------------------------------- */
static void put_paragraph(tare__text *out, const char *kind, const char *before, const char *text)
{
    tare__text_format(out, "<p class=\"%s\">%s", kind, before);
    tare__plain_text(out, text);
    tare__text_string(out, "</p>\n");
}

void tare__measured_html(tare__text *out, const tare__model_view *view)
{
    const tare__model_measured *measured = view->measured;
    char text[256];
    if (!measured)
        return;
    tare__text_string(out, "<section><h2>Measured</h2>\n");
    if (measured->absent)
        put_paragraph(out, "lead", "n/a: ", measured->absent);
    else
        put_paragraph(out, "lead", "On the CPU, by ONNX Runtime ",
                      measured->runtime_version ? measured->runtime_version : "?");
    if (measured->n_results && !measured->n_layers)
        put_paragraph(out, "note", "Layers: n/a: ", measured->layers_absent ? measured->layers_absent : "nothing ran");
    else if (tare__measured_slowdown(measured, text, sizeof text))
        put_paragraph(out, "note", "", text);
    tare__text_string(out, "<div class=\"plots\">\n");
    put_trade_off(out, measured);
    for (size_t i = 0; i < measured->n_results; i++)
        put_distribution(out, &measured->results[i]);
    tare__text_string(out, "</div></section>\n");
    tare__sheet_inside(out, view, &tare__table_measured);
}
