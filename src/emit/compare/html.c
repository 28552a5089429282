/* compare html: a comparison as a page: both sides, the answer, tables with intervals drawn. One file, no script.
 * Owned by the calling thread.
 * Must not know how it was made. */
#include <math.h>

#include "emit/export/flamegraph.h"
#include "emit/flush.h"
#include "emit/plain.h"
#include "emit/plain_chart.h"
#include "emit/sheet.h"

#define ROWS_MAX       500u /* of a section; the most expensive ones come first */
#define RANGE_WIDTH    150.0
#define RANGE_EDGE     6.0  /* distance of the ends of the scale from those of the drawing */
#define FOLD_FROM      25u  /* rows of a section without a difference */
#define WARNINGS_SHOWN 6u   /* more are collapsed */
#define RANGE_LEAST    0.05 /* minimum change shown at the end of a drawing */

static void put(tare__text *out, const char *markup)
{
    tare__text_string(out, markup);
}

/* ---- the head --------------------------------------------------------------------------------- */
static void put_side(tare__text *out, const char *title, const tare__side *side)
{
    tare__text words = {0};
    tare__compared_side(&words, side->figures, side->name);
    tare__text_format(out, "<div><h3>%s</h3><p>", title);
    tare__plain_words(out, words.data ? words.data : "");
    put(out, "</p></div>\n");
    tare__text_end(&words, out);
}

static void put_warnings(tare__text *out, const tare__comparison *from)
{
    bool folded = from->n_warnings > WARNINGS_SHOWN + 1;
    put(out, from->n_warnings ? "<ul class=\"care\">\n" : "");
    for (size_t i = 0; i < from->n_warnings; i++) {
        if (folded && i == WARNINGS_SHOWN)
            tare__text_format(out, "</ul><details><summary>%zu more remarks</summary><ul class=\"care\">\n",
                              from->n_warnings - i);
        put(out, "<li>");
        tare__plain_words(out, from->warnings[i]);
        put(out, "</li>\n");
    }
    put(out, from->n_warnings ? "</ul>\n" : "");
    put(out, folded ? "</details>\n" : "");
}

static void put_head(tare__text *out, const tare__compare_view *view, bool stacks)
{
    const tare__document *document = &tare__document_compare;
    tare__plain_begin_with(out, "Tare: a comparison", "Comparison", view->answer,
                           stacks ? tare__flame_style_hash : NULL, stacks ? tare__flame_script_hash : NULL);
    put(out, "<div class=\"sides\">\n");
    put_side(out, "Baseline", &view->baseline);
    put_side(out, "Candidate", &view->candidate);
    put(out, "</div>\n<dl class=\"tiles apart answers\">");
    for (size_t i = 0; i < document->n_tables && view->comparison->n; i++)
        if (tare__table_is_single(document->tables[i]))
            tare__sheet_tiles(out, view, document->tables[i]);
    put(out, "</dl>\n");
    put_warnings(out, view->comparison);
}

/* ---- intervals -------------------------------------------------------------------------------- */
/* Logarithms of ratios: twice as long and half as long have the same distance from the middle. */
static double place_of(double change, double end)
{
    double at = log1p(change > -0.999 ? change : -0.999) / log1p(end);
    at = at < -1 ? -1 : at > 1 ? 1 : at;
    return RANGE_WIDTH / 2 + at * (RANGE_WIDTH / 2 - RANGE_EDGE);
}

static bool beyond(double change, double end)
{
    return fabs(log1p(change > -0.999 ? change : -0.999)) > log1p(end);
}

/* A dot, or a triangle at the end of the scale that points to values beyond it. */
static void put_dot(tare__text *out, double change, double end)
{
    if (beyond(change, end)) {
        put(out, change > 0 ? "<path class=\"dot\" d=\"M141 4L150 9L141 14z\"/>"
                           : "<path class=\"dot\" d=\"M9 4L0 9L9 14z\"/>");
        return;
    }
    put(out, "<circle class=\"dot\" cy=\"9\" r=\"4\"");
    tare__chart_number(out, "cx", place_of(change, end));
    put(out, "/>");
}

static void put_range(tare__text *out, const void *context, const void *compared)
{
    const tare__decision *reported = &((const tare__compared *)compared)->decision;
    double end = *(const double *)context;
    char text[TARE__COMPARED_BYTES];
    if (isnan(reported->change)) {
        put(out, "<td></td>");
        return;
    }
    put(out, "<td class=\"drawing\"><svg class=\"range\" viewBox=\"0 0 150 18\" role=\"img\" aria-label=\"");
    put(out, tare__unit_change(text, reported->change));
    put(out, " ");
    put(out, tare__compared_interval(text, reported->low, reported->high));
    put(out, "\"><line class=\"zero\" x1=\"75\" x2=\"75\" y1=\"0\" y2=\"18\"/>");
    if (!isnan(reported->low) && !isnan(reported->high)) {
        put(out, "<line class=\"whisker\" y1=\"9\" y2=\"9\"");
        tare__chart_number(out, "x1", place_of(reported->low, end));
        tare__chart_number(out, "x2", place_of(reported->high, end));
        put(out, "/>");
    }
    put_dot(out, reported->change, end);
    put(out, "</svg></td>");
}

static void put_scale(tare__text *out, const void *context)
{
    double end = *(const double *)context;
    char text[TARE__UNIT_BYTES];
    tare__text_format(out, "<th scope=\"col\" class=\"drawn\"><span><i>%s</i><i>0</i>",
                      tare__unit_change(text, 1 / (1 + end) - 1));
    tare__text_format(out, "<i>%s</i></span></th>", tare__unit_change(text, end));
}

static size_t count_differing(const tare__compared *rows, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += tare__compared_differs(&rows[i]);
    return found;
}

/* One scale for all rows of a section: three quarters of them fit, so that a few outliers do not flatten the rest. If
 * there are differences, only these are considered. */
static double scale_of(const tare__compared *rows, size_t n)
{
    size_t differing = count_differing(rows, n), requested = differing ? differing : n;
    double end = RANGE_LEAST;
    for (; end < 8; end *= 2) {
        size_t outside = 0;
        for (size_t i = 0; i < n; i++)
            outside += (tare__compared_differs(&rows[i]) || !differing) && beyond(rows[i].decision.change, end);
        if (outside * 4 <= requested)
            break;
    }
    return end;
}

/* ---- tables ----------------------------------------------------------------------------------- */
static const char *const titles[] = {"The whole", "Spans",    "Layers", "Operators",
                                     "Kernels",   "Counters", "Sampled"};

typedef enum which { ALL, DIFFERING, OTHERS } which;

static size_t put_rows(tare__sheet *sheet, const tare__compared *rows, size_t n, which those, size_t room)
{
    size_t shown = 0;
    for (size_t i = 0; i < n && shown < room; i++) {
        if (those != ALL && tare__compared_differs(&rows[i]) != (those == DIFFERING))
            continue;
        tare__sheet_row(sheet, &rows[i], i);
        shown++;
    }
    return shown;
}

static void close_sheet(tare__sheet *sheet, size_t left_out)
{
    tare__sheet_close(sheet);
    if (left_out)
        tare__text_format(sheet->out, "<p class=\"note\">%zu more, with smaller costs, are not on this page.</p>\n",
                          left_out);
}

/* Many unchanged rows would hide the few that changed: they are collapsed, with their number shown. */
static void put_others(tare__sheet *sheet, const tare__compared *rows, size_t n, size_t differing)
{
    size_t others = n - differing;
    tare__text_format(sheet->out, "%s<details><summary>%zu %swithout significant change, or inconclusive</summary>\n",
                      differing ? "" : "<p class=\"note\">No significant change.</p>\n", others,
                      differing ? "others " : "");
    tare__sheet_open(sheet, titles[rows[0].section], rows, n);
    close_sheet(sheet, others - put_rows(sheet, rows, n, OTHERS, ROWS_MAX));
    put(sheet->out, "</details>\n");
}

/* The whole keeps its own order; among its parts, those that differ come first. */
static void put_section(tare__text *out, const tare__compare_view *view, const tare__compared *rows, size_t n)
{
    double end = scale_of(rows, n);
    tare__sheet_drawing drawing = {"change", put_scale, put_range, &end};
    tare__sheet sheet = {.out = out, .of = view, .table = &tare__table_compared, .drawing = &drawing};
    size_t differing = count_differing(rows, n), left = n;
    bool whole = rows[0].section == TARE__SECTION_WHOLE, folded = !whole && n - differing > FOLD_FROM;
    tare__text_format(out, "<section><h2>%s</h2>\n", titles[rows[0].section]);
    if (differing || !folded) {
        tare__sheet_open(&sheet, titles[rows[0].section], rows, n);
        left -= put_rows(&sheet, rows, n, whole ? ALL : DIFFERING, ROWS_MAX);
        if (!whole && !folded)
            left -= put_rows(&sheet, rows, n, OTHERS, FOLD_FROM);
        close_sheet(&sheet, folded ? left - (n - differing) : left);
    }
    if (folded)
        put_others(&sheet, rows, n, differing);
    put(out, "</section>\n");
}

/* What the columns mean: a page may be read without the manual. */
static void put_key(tare__text *out, const tare__comparison *from)
{
    char least[TARE__UNIT_BYTES];
    tare__text_format(out,
                      "<section class=\"read\"><h2>How to read it</h2>\n<p class=\"lead\">"
                      "A verdict of better, worse or different requires p of at most 0.02, an interval without 0, "
                      "and a change larger than %s and than 1 µs or 1 MiB. “No significant change” is not proof that "
                      "there is none. Intervals are drawn on one scale in each table, logarithmic: a doubling is as "
                      "far from the middle as a halving; a triangle marks a change beyond the scale.</p>\n",
                      tare__unit_percent(least, from->min_change));
    tare__sheet_key(out, &tare__table_compared);
    put(out, "</section>\n");
}

/* ---- stack samples of both runs ------------------------------------------------------------------ */
static bool has_stacks(const tare__emit_comparison *input)
{
    return input->base && input->head && input->base->stacks.n && input->head->stacks.n &&
           input->base->stacks.active_ns > 0 && input->head->stacks.active_ns > 0;
}

static int put_stacks(tare__text *out, const tare__emit_comparison *input, const tare__emit_sink *sink,
                      tare__error *error)
{
    put(out, "<section><h2>Call tree</h2>\n<p class=\"lead\">Stack samples of both runs, merged by function. A box is "
             "below its caller. Functions that only the baseline has are in the table below, not in the "
             "graph.</p>\n");
    put(out, "<div class=\"sheet tall\" tabindex=\"0\" role=\"region\" aria-label=\"Call tree of both runs\">");
    int status = tare__flame_put_difference(input->base, input->head, out, sink, error);
    put(out, "</div>\n");
    put(out, "</section>\n");
    return status;
}

/* Frees `out`. */
static int put_all(tare__text *out, const tare__emit_comparison *input, const tare__compare_view *view,
                   const tare__emit_sink *sink, tare__error *error)
{
    const tare__document *document = &tare__document_compare;
    const tare__comparison *from = view->comparison;
    int status = 0;
    put_head(out, view, has_stacks(input));
    for (size_t i = 0, n; i < from->n && !status; i += n) {
        for (n = 1; i + n < from->n && from->rows[i + n].section == from->rows[i].section;)
            n++;
        put_section(out, view, &from->rows[i], n);
        status = tare__emit_flush_piece(out, sink, error);
    }
    if (has_stacks(input) && !status)
        status = put_stacks(out, input, sink, error);
    for (size_t i = 0; i < document->n_tables; i++)
        if (document->tables[i]->shape == TARE__SHAPE_ROWS && document->tables[i] != &tare__table_compared)
            tare__sheet_table(out, view, document->tables[i]);
    if (from->n)
        put_key(out, from);
    tare__plain_end(out);
    return tare__emit_end(out, status, sink, error);
}

int tare__emit_comparison_html(const void *what, const tare__emit_options *options, const tare__emit_sink *sink,
                               tare__error *error)
{
    const tare__emit_comparison *input = what;
    tare__text out = {0}, answer = {0};
    (void)options;
    tare__compared_answer(&answer, input);
    tare__compare_view view = tare__compared_view(input, answer.data);
    out.failed = answer.failed;
    int status = put_all(&out, input, &view, sink, error);
    tare__text_free(&answer);
    return status;
}
