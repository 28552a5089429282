/* history_html: trends as one page without a script: a chart of inline SVG for each figure, its levels and where they
 * changed. The look is that of the report's page. Owned by the calling thread.
 * Must not know where runs are kept, nor where the bytes go. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "flush.h"
#include "history_words.h"
#include "html_page.h"
#include "tare.h"

#define WIDTH      1120.0
#define HEIGHT     240.0
#define LEFT       92.0
#define RIGHT      12.0
#define TOP        12.0
#define BOTTOM     30.0
#define POINTS_MAX 600u /* beyond, a dot is of several runs: more could not be told apart */

static const char own_style[] =
    ".trend{background:var(--surface);border:1px solid var(--line);border-radius:8px;padding:14px "
    "18px;margin:0 0 18px;"
    "box-shadow:var(--shadow)}"
    ".trend svg{display:block;width:100%;height:auto}.trend text{fill:var(--muted);font:12px var(--sans)}"
    ".trend .grid{stroke:var(--line)}.trend .dot{fill:var(--line-0)}.trend "
    ".level{stroke:var(--accent);stroke-width:2}"
    ".trend .at{stroke:var(--muted);stroke-dasharray:4 4}.trend .worse{stroke:var(--critical)}"
    ".trend .better{stroke:var(--good)}.trend "
    "h2{overflow-wrap:anywhere;font-family:var(--mono);margin-bottom:4px}"
    ".trend table{border-collapse:collapse;margin-top:10px;font-size:13.5px}"
    ".trend td,.trend th{padding:3px 18px 3px 0;text-align:left;font-weight:400}.trend th{color:var(--muted)}"
    ".trend td.worse{color:var(--critical);font-weight:600}.trend "
    "td.better{color:var(--good);font-weight:600}";

/* ---- pieces ----------------------------------------------------------------------------------------- */
/* Text as text, whatever is in it; what is no UTF-8 or steers a terminal becomes U+FFFD. */
static void put_escaped(tare__text *out, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    for (size_t i = 0; i < length;) {
        uint32_t code = 0;
        size_t bytes = tare__utf8_decode(text + i, length - i, &code);
        if (bytes == 0 || tare__utf8_control(code))
            tare__text_string(out, "\xEF\xBF\xBD");
        else if (code == '<' || code == '>' || code == '&' || code == '"' || code == '\'')
            tare__text_format(out, "&#%u;", (unsigned)code);
        else
            tare__text_append(out, text + i, bytes);
        i += bytes ? bytes : 1;
    }
}

/* The style of the report's page, out of the page itself. */
static void put_style(tare__text *out)
{
    const char *from = strstr(tare__html_before_data, "<style>"),
               *to = from ? strstr(from, "</style>") : NULL;
    tare__text_string(out, "<style>");
    if (to)
        tare__text_append(out, from + 7, (size_t)(to - from - 7));
    tare__text_string(out, own_style);
    tare__text_string(out, "</style>\n");
}

static void put_number(tare__text *out, const char *name, double value)
{
    char number[32];
    tare__text_double(number, sizeof number, 'f', 1, value);
    tare__text_format(out, " %s=\"%s\"", name, number);
}

static void put_line(tare__text *out, const char *kind, double x1, double y1, double x2, double y2)
{
    tare__text_format(out, "<line class=\"%s\"", kind);
    put_number(out, "x1", x1);
    put_number(out, "y1", y1);
    put_number(out, "x2", x2);
    put_number(out, "y2", y2);
    tare__text_string(out, "/>");
}

/* ---- a chart ---------------------------------------------------------------------------------------- */
typedef struct chart {
    const tare__kept_trend *trend;
    double low, high;
} chart;

/* From 0 where that leaves the values visible, else a little below the least. */
static chart frame(const tare__kept_trend *trend)
{
    chart to = {.trend = trend, .low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < trend->n; i++) {
        to.low = fmin(to.low, trend->points[i].value);
        to.high = fmax(to.high, trend->points[i].value);
    }
    double span = to.high - to.low;
    if (to.low >= 0 && to.low < 2 * span)
        to.low = 0;
    else
        to.low -= 0.1 * span;
    to.high += 0.1 * span;
    if (!(to.high > to.low)) {
        double around = fabs(to.low) > 0 ? fabs(to.low) * 0.1 : 1;
        to.low -= around;
        to.high += around;
    }
    return to;
}

static double across(const chart *of, double i)
{
    double inner = WIDTH - LEFT - RIGHT;
    return LEFT + (of->trend->n > 1 ? inner * i / (double)(of->trend->n - 1) : inner / 2);
}

static double up(const chart *of, double value)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - of->low) / (of->high - of->low);
}

static void put_axes(tare__text *out, const chart *of)
{
    const tare__kept_trend *trend = of->trend;
    char word[TARE__HISTORY_WORD];
    for (int i = 0; i <= 4; i++) {
        double value = of->low + (of->high - of->low) * i / 4, y = up(of, value);
        put_line(out, "grid", LEFT, y, WIDTH - RIGHT, y);
        tare__text_string(out, "<text text-anchor=\"end\"");
        put_number(out, "x", LEFT - 8);
        put_number(out, "y", y + 4);
        tare__text_string(out, ">");
        put_escaped(out, tare__history_value(word, trend->unit, value));
        tare__text_string(out, "</text>");
    }
    const size_t ends[] = {0, trend->n - 1};
    for (size_t i = 0; i < (trend->n > 1 ? 2u : 1u); i++) {
        tare__text_format(out, "<text text-anchor=\"%s\"", i ? "end" : "start");
        put_number(out, "x", i ? WIDTH - RIGHT : LEFT);
        put_number(out, "y", HEIGHT - 8);
        tare__text_format(out, ">%s</text>", tare__history_when(word, trend->points[ends[i]].when_ns, false));
    }
}

static void put_dots(tare__text *out, const chart *of)
{
    const tare__kept_trend *trend = of->trend;
    size_t step = trend->n > POINTS_MAX ? (trend->n + POINTS_MAX - 1) / POINTS_MAX : 1;
    for (size_t i = 0; i < trend->n; i += step) {
        const tare__kept_point *point = &trend->points[i];
        char value[TARE__HISTORY_WORD], when[TARE__HISTORY_WORD];
        tare__text_string(out, "<circle class=\"dot\" r=\"3\"");
        put_number(out, "cx", across(of, (double)i));
        put_number(out, "cy", up(of, point->value));
        tare__text_string(out, "><title>");
        put_escaped(out, tare__history_value(value, trend->unit, point->value));
        tare__text_format(out, ", %s, %.*s ", tare__history_when(when, point->when_ns, true),
                          (int)trend->id_digits, point->id);
        put_escaped(out, point->revision);
        tare__text_string(out, "</title></circle>");
    }
}

static void put_levels(tare__text *out, const chart *of)
{
    const tare__kept_trend *trend = of->trend;
    for (size_t i = 0; i < trend->n_changes; i++) {
        const tare__kept_change *change = &trend->changes[i];
        const char *verdict = tare__history_verdict(trend->better, change->before, change->after);
        double end = i + 1 < trend->n_changes ? (double)trend->changes[i + 1].at - 0.5 : (double)trend->n - 1;
        double x = across(of, (double)change->at - 0.5);
        char kind[32];
        snprintf(kind, sizeof kind, "at%s%s", *verdict ? " " : "", verdict);
        if (i == 0)
            put_line(out, "level", across(of, 0), up(of, change->before), x, up(of, change->before));
        put_line(out, "level", x, up(of, change->after), across(of, end), up(of, change->after));
        put_line(out, kind, x, TOP, x, HEIGHT - BOTTOM);
    }
}

static void put_table(tare__text *out, const tare__kept_trend *trend)
{
    if (trend->n_changes == 0) {
        tare__text_string(out,
                          "<p class=\"muted small\">No change of its level that these runs can show.</p>");
        return;
    }
    tare__text_string(
        out, "<table><thead><tr><th>change</th><th>since</th><th>run</th><th>revision</th><th>before</th>"
             "<th>after</th></tr></thead><tbody>");
    for (size_t i = 0; i < trend->n_changes; i++) {
        const tare__kept_change *change = &trend->changes[i];
        const tare__kept_point *point = &trend->points[change->at];
        char word[TARE__HISTORY_WORD];
        tare__text_format(out, "<tr><td class=\"%s\">",
                          tare__history_verdict(trend->better, change->before, change->after));
        tare__text_string(out, tare__history_change(word, change->before, change->after));
        tare__text_format(out, "</td><td>%s</td>", tare__history_when(word, point->when_ns, false));
        tare__text_format(out, "<td class=\"mono\">%.*s</td><td class=\"mono\">", (int)trend->id_digits,
                          point->id);
        put_escaped(out, point->revision);
        tare__text_string(out, "</td><td>");
        put_escaped(out, tare__history_value(word, trend->unit, change->before));
        tare__text_string(out, "</td><td>");
        put_escaped(out, tare__history_value(word, trend->unit, change->after));
        tare__text_string(out, "</td></tr>");
    }
    tare__text_string(out, "</tbody></table>");
}

static void put_trend(tare__text *out, const tare__kept_trend *trend)
{
    static const char *const better[] = {"", ", lower is better", ", higher is better"};
    char last[TARE__HISTORY_WORD];
    chart of = frame(trend);
    tare__text_string(out, "<section class=\"trend\"><h2>");
    put_escaped(out, trend->name);
    tare__text_format(out, "</h2><p class=\"muted small\">%zu runs%s; the last: ", trend->n,
                      better[trend->better >= 0 && trend->better <= 2 ? trend->better : 0]);
    put_escaped(out, tare__history_value(last, trend->unit, trend->points[trend->n - 1].value));
    tare__text_format(out, "</p><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    put_escaped(out, trend->name);
    tare__text_string(out, " in the course of runs\">");
    put_axes(out, &of);
    put_levels(out, &of);
    put_dots(out, &of);
    tare__text_string(out, "</svg>");
    put_table(out, trend);
    tare__text_string(out, "</section>\n");
}

/* ---- the page --------------------------------------------------------------------------------------- */
static void put_head(tare__text *out, const tare__history_trends *trends)
{
    tare__text_string(out,
                      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                      "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Tare: history</title>\n"
                      "<link rel=\"icon\" href=\"data:,\">\n");
    put_style(out);
    tare__text_string(
        out, "</head>\n<body>\n<div class=\"bar\"><div class=\"bar-in\"><span class=\"mark\">tare</span>"
             "</div></div>\n<header class=\"wide\" id=\"top\"><h1>");
    put_escaped(out, trends->command ? trends->command : "Runs of the history");
    tare__text_string(out, "</h1><p class=\"facts\">");
    put_escaped(out, trends->machine ? trends->machine : "");
    tare__text_string(out, "</p></header>\n<main class=\"wide\">\n");
}

static int trend(const tare__history_trends *trends, const tare__emit_options *options,
                 const tare__emit_sink *sink, tare__error *error)
{
    tare__text out = {0};
    int status = 0;
    (void)options;
    put_head(&out, trends);
    for (size_t i = 0; i < trends->n && !status; i++) {
        put_trend(&out, &trends->rows[i]);
        status = tare__emit_flush_piece(&out, sink, error);
    }
    tare__text_string(&out, "</main>\n</body>\n</html>\n");
    if (!status)
        status = tare__emit_flush(&out, sink, error);
    tare__text_free(&out);
    return status;
}

const tare__history_emitter tare__history_html = {.name = "html", .trend = trend};
