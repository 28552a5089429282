/* compare html: a comparison as a page: both sides, the answer, tables with intervals drawn. One file, no script.
 * Owned by the calling thread.
 * Must not know how it was made. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emit/flush.h"
#include "emit/plain.h"

#define ROWS_MAX       500u /* of a section; the largest costs come first */
#define RANGE_WIDTH    150.0
#define RANGE_EDGE     6.0  /* so far from the drawing's end is the end of its scale */
#define FOLD_FROM      25u  /* of a section's rows that do not differ */
#define WARNINGS_SHOWN 6u   /* more wait behind a word */
#define RANGE_LEAST    0.05 /* a drawing's end is at this change at least */

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

/* `of` is the column's word, for screens so narrow that a row is a block. */
static void put_cell(page *to, const char *of, const char *text)
{
    tare__text_format(&to->text, *text ? "<td data-of=\"%s\">" : "<td>", of);
    tare__plain_text(&to->text, text);
    put(to, "</td>");
}

/* Text in which what stands between backticks is a command; takes the text. */
static void put_words(page *to, tare__text *words)
{
    bool inside = false;
    char *from = words->failed || !words->data ? NULL : words->data;
    for (char *tick; from && (tick = strchr(from, '`')) && (inside || strchr(tick + 1, '`'));
         from = tick + 1) {
        *tick = '\0';
        tare__plain_text(&to->text, from);
        put(to, inside ? "</code>" : "<code>");
        inside = !inside;
    }
    if (from)
        tare__plain_text(&to->text, from);
    to->text.failed |= words->failed;
    tare__text_free(words);
}

/* ---- the head --------------------------------------------------------------------------------- */
static void put_side(page *to, const char *title, const tare__figures *figures, const char *name)
{
    tare__text words = {0};
    tare__compared_side(&words, figures, name);
    put(to, "<div><h3>");
    put(to, title);
    put(to, "</h3><p>");
    put_words(to, &words);
    put(to, "</p></div>\n");
}

static void put_tile(page *to, const char *kind, size_t n, const char *what)
{
    char count[TARE__UNIT_BYTES];
    tare__text_format(&to->text, "<div><dt>%s</dt><dd class=\"big%s%s\">%s</dd></div>", what, n ? " " : "",
                      n ? kind : "", tare__unit_count(count, (double)n));
}

static void put_answers(page *to)
{
    const tare__comparison *from = to->input->comparison;
    size_t changed = from->better + from->worse + from->different;
    put(to, "<dl class=\"tiles apart answers\">");
    put_tile(to, "worse", from->worse, "got worse");
    put_tile(to, "better", from->better, "got better");
    if (from->different)
        put_tile(to, "different", from->different, "changed, neither better nor worse");
    put_tile(to, "", from->n - from->inconclusive - changed, "no significant change");
    put_tile(to, "", from->inconclusive, "inconclusive");
    put(to, "</dl>\n");
}

static void put_warnings(page *to)
{
    const tare__comparison *from = to->input->comparison;
    bool folded = from->n_warnings > WARNINGS_SHOWN + 1;
    put(to, from->n_warnings ? "<ul class=\"care\">\n" : "");
    for (size_t i = 0; i < from->n_warnings; i++) {
        if (folded && i == WARNINGS_SHOWN)
            tare__text_format(&to->text,
                              "</ul><details><summary>%zu more remarks</summary><ul class=\"care\">\n",
                              from->n_warnings - i);
        tare__text words = {0};
        tare__text_string(&words, from->warnings[i]);
        put(to, "<li>");
        put_words(to, &words);
        put(to, "</li>\n");
    }
    put(to, from->n_warnings ? "</ul>\n" : "");
    put(to, folded ? "</details>\n" : "");
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
    if (from->n)
        put_answers(to);
    put_warnings(to);
}

/* ---- intervals -------------------------------------------------------------------------------- */
/* Logarithms of ratios: twice as long and half as long are as far from the middle. */
static double place_of(double change, double end)
{
    double at = log1p(change > -0.999 ? change : -0.999) / log1p(end);
    at = at < -1 ? -1 : at > 1 ? 1 : at;
    return RANGE_WIDTH / 2 + at * (RANGE_WIDTH / 2 - RANGE_EDGE);
}

/* SVG takes no comma for a point, whatever the locale. */
static void put_number(page *to, const char *name, double value)
{
    char digits[32];
    tare__text_double(digits, sizeof digits, 'f', 1, value);
    tare__text_format(&to->text, " %s=\"%s\"", name, digits);
}

static bool beyond(double change, double end)
{
    return fabs(log1p(change > -0.999 ? change : -0.999)) > log1p(end);
}

/* A dot, or at the scale's end a tip that points to where it would be. */
static void put_dot(page *to, double change, double end)
{
    if (beyond(change, end)) {
        put(to, change > 0 ? "<path class=\"dot\" d=\"M141 4L150 9L141 14z\"/>"
                           : "<path class=\"dot\" d=\"M9 4L0 9L9 14z\"/>");
        return;
    }
    put(to, "<circle class=\"dot\" cy=\"9\" r=\"4\"");
    put_number(to, "cx", place_of(change, end));
    put(to, "/>");
}

static void put_range(page *to, const tare__compared *row, double end)
{
    char change[TARE__COMPARED_BYTES], interval[TARE__COMPARED_BYTES];
    if (isnan(row->decision.change)) {
        put(to, "<td></td>");
        return;
    }
    put(to, "<td class=\"drawing\"><svg class=\"range\" viewBox=\"0 0 150 18\" role=\"img\" aria-label=\"");
    tare__plain_text(&to->text, tare__unit_change(change, row->decision.change));
    tare__plain_text(&to->text, " ");
    tare__plain_text(&to->text, tare__compared_interval(interval, row->decision.low, row->decision.high));
    put(to, "\"><line class=\"zero\" x1=\"75\" x2=\"75\" y1=\"0\" y2=\"18\"/>");
    if (!isnan(row->decision.low) && !isnan(row->decision.high)) {
        put(to, "<line class=\"whisker\" y1=\"9\" y2=\"9\"");
        put_number(to, "x1", place_of(row->decision.low, end));
        put_number(to, "x2", place_of(row->decision.high, end));
        put(to, "/>");
    }
    put_dot(to, row->decision.change, end);
    put(to, "</svg></td>");
}

static bool differs(const tare__compared *row)
{
    return row->decision.verdict != TARE__VERDICT_SAME && row->decision.verdict != TARE__VERDICT_INCONCLUSIVE;
}

static size_t count_differing(const tare__compared *rows, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += differs(&rows[i]);
    return found;
}

/* The same scale for all rows of a section: three in four fit, so that a few outliers do not flatten the rest. Where
 * there are differences, those are what it is for. */
static double scale_of(const tare__compared *rows, size_t n)
{
    size_t differing = count_differing(rows, n), asked = differing ? differing : n;
    double end = RANGE_LEAST;
    for (; end < 8; end *= 2) {
        size_t outside = 0;
        for (size_t i = 0; i < n; i++)
            outside += (differs(&rows[i]) || !differing) && beyond(rows[i].decision.change, end);
        if (outside * 4 <= asked)
            break;
    }
    return end;
}

/* ---- tables ----------------------------------------------------------------------------------- */
static const char *const titles[] = {"The whole", "Spans",    "Layers", "Operators",
                                     "Kernels",   "Counters", "Sampled"};

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
    put(to, "<td class=\"verdict\">");
    put(to, row->decision.verdict == TARE__VERDICT_SAME ? "no significant change"
                                                        : tare__verdict_word(row->decision.verdict));
    if (row->decision.verdict == TARE__VERDICT_INCONCLUSIVE) {
        put(to, "<small>");
        tare__plain_text(&to->text, tare__why_text(row->decision.why));
        put(to, "</small>");
    }
    put(to, "</td>");
}

static void put_effect(page *to, const tare__compared *row)
{
    char digits[32];
    if (row->base->exact && row->head->exact) {
        put_cell(to, "effect", "exact");
    } else if (isnan(row->decision.effect)) {
        put_cell(to, "effect", "");
    } else {
        tare__text_double(digits, sizeof digits, 'f', 2, row->decision.effect);
        bool told = row->decision.verdict != TARE__VERDICT_SAME && row->decision.verdict != TARE__VERDICT_INCONCLUSIVE;
        tare__text_format(&to->text, "<td data-of=\"effect\">%s%s%s</td>", digits, told ? " " : "",
                          told ? tare__effect_word(row->decision.effect) : "");
    }
}

static void put_cost(page *to, const tare__compared *row)
{
    char value[TARE__COMPARED_BYTES], cost[TARE__COMPARED_BYTES + 1];
    snprintf(cost, sizeof cost, "%s%s", row->cost > 0 ? "+" : "",
             tare__unit_number(value, row->base->unit, row->cost));
    put_cell(to, "cost", cost);
}

static void put_row(page *to, const tare__compared *row, double end, bool costs)
{
    char text[TARE__COMPARED_BYTES];
    const char *unit = row->base->unit;
    tare__text_format(&to->text, "<tr class=\"%s\">", tare__verdict_word(row->decision.verdict));
    put_name(to, row->name, unit);
    put_verdict(to, row);
    put_cell(to, "base", tare__unit_number(text, unit, row->decision.base));
    put_cell(to, "head", tare__unit_number(text, unit, row->decision.head));
    put_cell(to, "change", tare__unit_change(text, row->decision.change));
    put_range(to, row, end);
    put_cell(to, "95 %", tare__compared_interval(text, row->decision.low, row->decision.high));
    if (costs)
        put_cost(to, row);
    put_cell(to, "p", tare__compared_p(text, row->decision.adjusted));
    put_effect(to, row);
    put(to, "</tr>\n");
    if (!to->status)
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
}

/* Counters and samples cost nothing by themselves: a column of n/a would say less than none. */
static bool has_costs(const tare__compared *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(rows[i].cost))
            return true;
    return false;
}

static void put_titles(page *to, double end, bool costs)
{
    char text[TARE__COMPARED_BYTES];
    put(to, "<thead><tr><th scope=\"col\" class=\"name\">Figure</th><th scope=\"col\" "
            "class=\"verdict\">Verdict</th>"
            "<th scope=\"col\">Base</th><th scope=\"col\">Head</th><th scope=\"col\">Change</th>"
            "<th scope=\"col\" class=\"drawn\"><span><i>");
    tare__plain_text(&to->text, tare__unit_change(text, 1 / (1 + end) - 1));
    put(to, "</i><i>0</i><i>");
    tare__plain_text(&to->text, tare__unit_change(text, end));
    put(to, "</i></span></th><th scope=\"col\">95 % interval</th>");
    put(to, costs ? "<th scope=\"col\">Cost</th>" : "");
    put(to, "<th scope=\"col\">p</th><th scope=\"col\">Effect</th></tr></thead>\n");
}

/* A table that may have to scroll can be reached, and moved, by keys. */
static void open_sheet(page *to, const char *title, const char *kind)
{
    tare__text_format(&to->text,
                      "<div class=\"sheet\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">"
                      "<table class=\"plain folds%s\">",
                      title, kind);
}

static void close_sheet(page *to, size_t left_out)
{
    put(to, "</tbody></table></div>\n");
    if (left_out)
        tare__text_format(&to->text,
                          "<p class=\"note\">%zu more, with smaller costs, are not on this page.</p>\n",
                          left_out);
}

typedef enum which { ALL, DIFFERING, OTHERS } which;

static size_t put_rows(page *to, const tare__compared *rows, size_t n, which those, double end, size_t room)
{
    bool costs = has_costs(rows, n);
    size_t shown = 0;
    for (size_t i = 0; i < n && shown < room && !to->status; i++) {
        if (those != ALL && differs(&rows[i]) != (those == DIFFERING))
            continue;
        put_row(to, &rows[i], end, costs);
        shown++;
    }
    return shown;
}

/* Many rows that did not change would hide the few that did: they are folded away behind their number. */
static void put_others(page *to, const tare__compared *rows, size_t n, double end, bool differing)
{
    size_t others = n - count_differing(rows, n);
    tare__text_format(&to->text,
                      "%s<details><summary>%zu %swithout significant change, or inconclusive</summary>\n",
                      differing ? "" : "<p class=\"note\">No significant change.</p>\n",
                      others, differing ? "others " : "");
    open_sheet(to, titles[rows[0].section], "");
    put_titles(to, end, has_costs(rows, n));
    put(to, "<tbody>\n");
    close_sheet(to, others - put_rows(to, rows, n, OTHERS, end, ROWS_MAX));
    put(to, "</details>\n");
}

/* The whole is in an order of its own; of its parts those that differ come first. */
static void put_section(page *to, const tare__compared *rows, size_t n)
{
    double end = scale_of(rows, n);
    size_t differing = count_differing(rows, n), left = n;
    bool whole = rows[0].section == TARE__SECTION_WHOLE, folded = !whole && n - differing > FOLD_FROM;
    tare__text_format(&to->text, "<section><h2>%s</h2>\n", titles[rows[0].section]);
    if (differing || !folded) {
        open_sheet(to, titles[rows[0].section], "");
        put_titles(to, end, has_costs(rows, n));
        put(to, "<tbody>\n");
        left -= put_rows(to, rows, n, whole ? ALL : DIFFERING, end, ROWS_MAX);
        if (!whole && !folded)
            left -= put_rows(to, rows, n, OTHERS, end, FOLD_FROM);
        close_sheet(to, folded ? left - (n - differing) : left);
    }
    if (folded)
        put_others(to, rows, n, end, differing > 0);
    put(to, "</section>\n");
}

static void put_only(page *to, const char *title, const tare__figure *const *rows, size_t n)
{
    char text[TARE__COMPARED_BYTES];
    size_t shown = n < ROWS_MAX ? n : ROWS_MAX;
    if (!n)
        return;
    tare__text_format(&to->text, "<section><h2>%s</h2>\n", title);
    open_sheet(to, title, " few");
    put(to, "<thead><tr><th scope=\"col\" class=\"name\">Figure</th><th scope=\"col\">Value</th>"
            "<th scope=\"col\">Total</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < shown; i++) {
        put(to, "<tr>");
        put_name(to, rows[i]->name, rows[i]->unit);
        put_cell(to, "value", tare__unit_number(text, rows[i]->unit, rows[i]->value));
        put_cell(to, "total", tare__unit_number(text, rows[i]->unit, rows[i]->total));
        put(to, "</tr>\n");
    }
    put(to, "</tbody></table></div>\n");
    if (shown < n)
        tare__text_format(&to->text, "<p class=\"note\">%zu more are not on this page.</p>\n", n - shown);
    put(to, "</section>\n");
}

/* What the columns mean: a page travels without its manual. */
static void put_key(page *to)
{
    char least[TARE__UNIT_BYTES];
    put(to, "<section class=\"read\"><h2>How to read it</h2><dl>"
            "<dt>Verdict</dt><dd>worse, better or different where p is at most 0.02, the interval excludes "
            "0, and the change is larger than ");
    put(to, tare__unit_percent(least, to->input->comparison->min_change));
    put(to, " and than 1 µs or 1 MiB; “no significant change” is not proof that there is none</dd>"
            "<dt>Base, head</dt><dd>the median</dd>"
            "<dt>Change</dt><dd>head over base, less 1, with the interval that has it 95 % of the time; "
            "drawn on one scale "
            "a table, twice as long as far from the middle as half as long; a tip stands for what lies "
            "beyond</dd>"
            "<dt>Cost</dt><dd>what the change adds to the run; the largest stand first</dd>"
            "<dt>p</dt><dd>Mann-Whitney, corrected for testing many parts at once</dd>"
            "<dt>Effect</dt><dd>Cliff’s delta: how often head is above base, less how often below; 1 is "
            "always</dd>"
            "</dl></section>\n");
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
    if (from->n)
        put_key(to);
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
