/* compare_html: a comparison as a page: both sides, the answer, tables with intervals drawn. One file, no script.
 * Owned by the calling thread.
 * Must not know how it was made. */
#include <math.h>
#include <stdio.h>

#include "flush.h"
#include "plain.h"

#define ROWS_MAX 500u /* of a section; the largest costs come first */
#define RANGE_WIDTH 220.0
#define RANGE_LEAST 0.05 /* a drawing's end is at this change at least */

typedef struct page {
    tare__text text;
    const tare__emit_comparison *input;
    const tare__emit_sink *sink;
    tare__error *error;
    int status;
} page;

static void put(page *to, const char *markup)
{
    tare__text_string(&to->text, markup);
}

static void put_cell(page *to, const char *text)
{
    put(to, "<td>");
    tare__plain_text(&to->text, text);
    put(to, "</td>");
}

/* ---- the head --------------------------------------------------------------------------------- */
static void put_side(page *to, const char *title, const tare__figures *figures, const char *name)
{
    tare__text words = {0};
    tare__compared_side(&words, figures, name);
    put(to, "<div><h3>");
    put(to, title);
    put(to, "</h3><p>");
    if (!words.failed)
        tare__plain_text(&to->text, words.data);
    put(to, "</p></div>\n");
    to->text.failed |= words.failed;
    tare__text_free(&words);
}

static void put_head(page *to)
{
    const tare__comparison *from = to->input->comparison;
    tare__text answer = {0};
    tare__compared_answer(&answer, to->input);
    to->text.failed |= answer.failed;
    tare__plain_begin(&to->text, "Tare: a comparison", "Comparison", answer.failed ? NULL : answer.data);
    tare__text_free(&answer);
    put(to, "<div class=\"sides\">\n");
    put_side(to, "Base", from->base, to->input->base_name);
    put_side(to, "Head", from->head, to->input->head_name);
    put(to, "</div>\n");
    if (from->n_warnings)
        put(to, "<ul class=\"care\">\n");
    for (size_t i = 0; i < from->n_warnings; i++) {
        put(to, "<li>");
        tare__plain_text(&to->text, from->warnings[i]);
        put(to, "</li>\n");
    }
    if (from->n_warnings)
        put(to, "</ul>\n");
}

/* ---- intervals -------------------------------------------------------------------------------- */
/* Logarithms of ratios: twice as long and half as long are as far from the middle. */
static double place_of(double change, double end)
{
    double at = log1p(change > -0.999 ? change : -0.999) / log1p(end);
    at = at < -1 ? -1 : at > 1 ? 1 : at;
    return RANGE_WIDTH / 2 + at * (RANGE_WIDTH / 2 - 6);
}

/* SVG takes no comma for a point, whatever the locale. */
static void put_number(page *to, const char *name, double value)
{
    char digits[32];
    tare__text_double(digits, sizeof digits, 'f', 1, value);
    tare__text_format(&to->text, " %s=\"%s\"", name, digits);
}

static void put_range(page *to, const tare__compared *row, double end)
{
    char change[TARE__COMPARED_BYTES], interval[TARE__COMPARED_BYTES];
    put(to, "<td>");
    if (!isnan(row->change)) {
        put(to, "<svg class=\"range\" viewBox=\"0 0 220 18\" role=\"img\" aria-label=\"");
        tare__plain_text(&to->text, tare__compared_change(change, row->change));
        tare__plain_text(&to->text, " ");
        tare__plain_text(&to->text, tare__compared_interval(interval, row->low, row->high));
        put(to, "\"><line class=\"zero\" x1=\"110\" x2=\"110\" y1=\"0\" y2=\"18\"/>");
        if (!isnan(row->low) && !isnan(row->high)) {
            put(to, "<line class=\"whisker\" y1=\"9\" y2=\"9\"");
            put_number(to, "x1", place_of(row->low, end));
            put_number(to, "x2", place_of(row->high, end));
            put(to, "/>");
        }
        put(to, "<circle class=\"dot\" cy=\"9\" r=\"4\"");
        put_number(to, "cx", place_of(row->change, end));
        put(to, "/></svg>");
    }
    put(to, "</td>");
}

/* The same scale for all rows of a table: three in four fit, so that a few outliers do not flatten the rest. */
static double scale_of(const tare__compared *rows, size_t n)
{
    double end = RANGE_LEAST;
    for (; end < 8; end *= 2) {
        size_t outside = 0;
        for (size_t i = 0; i < n; i++)
            outside += fabs(log1p(rows[i].change > -0.999 ? rows[i].change : -0.999)) > log1p(end);
        if (outside * 4 <= n)
            break;
    }
    return end;
}

/* ---- tables ----------------------------------------------------------------------------------- */
static const char *const titles[] = {"The whole", "Spans", "Layers", "Operators", "Kernels", "Counters", "Sampled"};

static void put_name(page *to, const char *name, const char *unit)
{
    put(to, "<td class=\"name\">");
    tare__plain_text(&to->text, name);
    if (!tare__compared_says_unit(name, unit)) {
        put(to, " <span class=\"muted\">");
        tare__plain_text(&to->text, unit);
        put(to, "</span>");
    }
    put(to, "</td>");
}

static void put_verdict(page *to, const tare__compared *row)
{
    put(to, "<td class=\"verdict\"");
    if (row->why) {
        put(to, " title=\"");
        tare__plain_text(&to->text, row->why);
        put(to, "\"");
    }
    put(to, ">");
    put(to, row->verdict == TARE__VERDICT_SAME      ? "no difference"
            : row->verdict == TARE__VERDICT_UNKNOWN ? "cannot be told"
                                                    : tare__verdict_word(row->verdict));
    put(to, "</td>");
}

static void put_row(page *to, const tare__compared *row, double end)
{
    char text[TARE__COMPARED_BYTES], effect[TARE__COMPARED_BYTES] = "", digits[32];
    const char *unit = row->base->unit;
    tare__text_format(&to->text, "<tr class=\"%s\">", tare__verdict_word(row->verdict));
    put_name(to, row->name, unit);
    put_cell(to, tare__compared_value(text, unit, row->base_value));
    put_cell(to, tare__compared_value(text, unit, row->head_value));
    put_cell(to, tare__compared_value(text, unit, row->cost));
    put_cell(to, tare__compared_change(text, row->change));
    put_range(to, row, end);
    put_cell(to, tare__compared_interval(text, row->low, row->high));
    put_cell(to, tare__compared_p(text, row->adjusted));
    if (!isnan(row->effect)) {
        tare__text_double(digits, sizeof digits, 'f', 2, row->effect);
        snprintf(effect, sizeof effect, "%s %s", digits, tare__effect_word(row->effect));
    }
    put_cell(to, row->base->exact && row->head->exact ? "exact" : effect);
    put_verdict(to, row);
    put(to, "</tr>\n");
    if (!to->status)
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
}

static void put_section(page *to, const tare__compared *rows, size_t n)
{
    char from[TARE__COMPARED_BYTES], until[TARE__COMPARED_BYTES];
    double end = scale_of(rows, n);
    size_t shown = n < ROWS_MAX ? n : ROWS_MAX;
    tare__text_format(&to->text, "<section><h2>%s</h2>\n", titles[rows[0].section]);
    put(to, "<div class=\"sheet\"><table class=\"plain\"><thead><tr><th class=\"name\">Figure</th><th>Base</th>"
            "<th>Head</th><th>Cost</th><th>Change</th><th class=\"drawn\">");
    tare__plain_text(&to->text, tare__compared_change(from, 1 / (1 + end) - 1));
    put(to, " … ");
    tare__plain_text(&to->text, tare__compared_change(until, end));
    put(to, "</th><th>95 % interval</th><th>p</th><th>Effect</th><th class=\"verdict\">Verdict</th></tr></thead>\n"
            "<tbody>\n");
    for (size_t i = 0; i < shown && !to->status; i++)
        put_row(to, &rows[i], end);
    put(to, "</tbody></table></div>\n");
    if (shown < n)
        tare__text_format(&to->text,
                          "<p class=\"muted\">%zu more rows, with smaller costs, are not on this page.</p>\n",
                          n - shown);
    put(to, "</section>\n");
}

static void put_only(page *to, const char *title, const tare__figure *const *rows, size_t n)
{
    char text[TARE__COMPARED_BYTES];
    size_t shown = n < ROWS_MAX ? n : ROWS_MAX;
    if (!n)
        return;
    tare__text_format(&to->text,
                      "<section><h2>%s</h2>\n<div class=\"sheet\"><table class=\"plain\"><thead><tr>"
                      "<th class=\"name\">Figure</th><th>Value</th><th>Total</th></tr></thead>\n<tbody>\n",
                      title);
    for (size_t i = 0; i < shown; i++) {
        put(to, "<tr>");
        put_name(to, rows[i]->name, rows[i]->unit);
        put_cell(to, tare__compared_value(text, rows[i]->unit, rows[i]->value));
        put_cell(to, tare__compared_value(text, rows[i]->unit, rows[i]->total));
        put(to, "</tr>\n");
    }
    put(to, "</tbody></table></div>\n");
    if (shown < n)
        tare__text_format(&to->text, "<p class=\"muted\">%zu more are not on this page.</p>\n", n - shown);
    put(to, "</section>\n");
}

static void put_all(page *to)
{
    const tare__comparison *from = to->input->comparison;
    put_head(to);
    for (size_t i = 0, n; i < from->n && !to->status; i += n) {
        for (n = 1; i + n < from->n && from->rows[i + n].section == from->rows[i].section;)
            n++;
        put_section(to, &from->rows[i], n);
    }
    put_only(to, "Only in base", (const tare__figure *const *)from->only_base, from->n_only_base);
    put_only(to, "Only in head", (const tare__figure *const *)from->only_head, from->n_only_head);
    tare__plain_end(&to->text);
}

int tare__emit_comparison_html(const tare__emit_comparison *input, const tare__emit_options *options,
                               const tare__emit_sink *sink, tare__error *error)
{
    page to = {.input = input, .sink = sink, .error = error};
    (void)options;
    put_all(&to);
    if (!to.status)
        to.status = tare__emit_flush(&to.text, sink, error);
    tare__text_free(&to.text);
    return to.status;
}
