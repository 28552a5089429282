/* compare text: a comparison for a terminal: the conclusion, warnings, tables by absolute cost.
 * Owned by the calling thread.
 * Must not know how it was made. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emit/flush.h"
#include "emit/layout.h"

#define FEW 10
#define FEW_ONLY 8
#define WARNINGS 6

#define VALUE_COLUMNS    10u
#define INTERVAL_COLUMNS 16u
#define P_COLUMNS        7u
#define MARK_COLUMNS     2u
#define FIGURE_COLUMNS   (4 * VALUE_COLUMNS + INTERVAL_COLUMNS + P_COLUMNS)

static const char *mark_of(tare__verdict verdict)
{
    static const char *const marks[] = {"=", "+", "!", "~", "?"};
    return marks[verdict];
}

static tare__page_style style_of(tare__verdict verdict)
{
    return verdict == TARE__VERDICT_WORSE       ? TARE__PAGE_BAD
           : verdict == TARE__VERDICT_BETTER    ? TARE__PAGE_BAR
           : verdict == TARE__VERDICT_DIFFERENT ? TARE__PAGE_WARNING
                                                : TARE__PAGE_FAINT;
}

/* ---- the head --------------------------------------------------------------------------------- */
static void put_side(tare__page *page, const char *label, const tare__figures *figures, const char *name)
{
    tare__text words = {0};
    tare__compared_side(&words, figures, name);
    tare__page_labelled_words(page, label, &words);
}

static void put_head(tare__page *page, const tare__emit_comparison *input)
{
    const tare__comparison *from = input->comparison;
    tare__text answer = {0};
    put_side(page, "baseline", from->base, input->base_name);
    put_side(page, "candidate", from->head, input->head_name);
    size_t shown = tare__page_rows(page, from->n_warnings, WARNINGS);
    for (size_t i = 0; i < shown; i++)
        tare__page_labelled(page, TARE__PAGE_WARNING, "careful", from->warnings[i]);
    tare__page_more(page, from->n_warnings - shown, "remarks");
    tare__compared_answer(&answer, input);
    tare__page_line_end(page);
    tare__page_words(page, TARE__PAGE_STRONG, 0, &answer, TARE__PAGE_ENDLESS);
}

/* ---- tables ----------------------------------------------------------------------------------- */
static const char *title_of(tare__section section)
{
    static const char *const titles[] = {"Whole", "Spans", "Layers", "Operators", "Kernels", "Counters", "Sampled"};
    return titles[section];
}

/* If parts are sorted by cost, the cost is shown; the whole shows the effect size instead. */
static bool has_costs(tare__section section)
{
    return section > TARE__SECTION_WHOLE && section < TARE__SECTION_COUNTERS;
}

static void put_columns(tare__page *page, tare__section section)
{
    static const unsigned widths[] = {VALUE_COLUMNS, VALUE_COLUMNS,    VALUE_COLUMNS,
                                      VALUE_COLUMNS, INTERVAL_COLUMNS, P_COLUMNS};
    tare__page_columns(page, title_of(section),
                       has_costs(section) ? "baseline|candidate|cost|change|95 % interval|p"
                                          : "baseline|candidate|effect|change|95 % interval|p",
                       widths);
}

static void put_name(tare__page *page, const char *mark, const char *name, const char *unit)
{
    tare__text whole = {0};
    tare__text_format(&whole, "%s", name);
    if (!tare__compared_says_unit(name, unit))
        tare__text_format(&whole, " (%s)", unit);
    tare__text_format(page->out, "%s ", mark);
    page->name_columns -= MARK_COLUMNS;
    if (!whole.failed)
        tare__page_name(page, 0, whole.data, 0);
    page->name_columns += MARK_COLUMNS;
    tare__text_end(&whole, page->out);
}

static void put_cost(tare__page *page, const tare__compared *row)
{
    char value[TARE__UNIT_BYTES], sized[TARE__UNIT_BYTES + 2];
    tare__unit_number(value, row->base->unit, row->cost);
    snprintf(sized, sizeof sized, "%s%s", row->cost > 0 ? "+" : "", value);
    tare__page_cell(page, VALUE_COLUMNS, sized);
}

static void put_effect(tare__page *page, const tare__compared *row)
{
    char digits[32] = "";
    if (row->base->exact && row->head->exact)
        strcpy(digits, "exact");
    else if (!isnan(row->decision.effect))
        tare__text_double(digits, sizeof digits, 'f', 2, row->decision.effect);
    tare__page_cell(page, VALUE_COLUMNS, digits);
}

/* Cells at the end may be empty. */
static void end_row(tare__page *page)
{
    while (page->out->length && page->out->data[page->out->length - 1] == ' ')
        page->out->data[--page->out->length] = '\0';
    tare__page_line_end(page);
}

static void put_row(tare__page *page, const tare__compared *row)
{
    char text[TARE__COMPARED_BYTES];
    tare__page_style_on(page, style_of(row->decision.verdict));
    put_name(page, mark_of(row->decision.verdict), row->name, row->base->unit);
    tare__page_style_off(page);
    tare__text_pad_to(page->out, page->name_columns);
    tare__page_cell(page, VALUE_COLUMNS, tare__unit_number(text, row->base->unit, row->decision.base));
    tare__page_cell(page, VALUE_COLUMNS, tare__unit_number(text, row->base->unit, row->decision.head));
    if (has_costs(row->section))
        put_cost(page, row);
    else
        put_effect(page, row);
    tare__page_cell(page, VALUE_COLUMNS, tare__unit_change(text, row->decision.change));
    tare__page_cell(page, INTERVAL_COLUMNS, tare__compared_interval(text, row->decision.low, row->decision.high));
    tare__page_cell(page, P_COLUMNS,
                    isnan(row->decision.adjusted) ? ""
                                                  : tare__schema_show(text, row->decision.adjusted, TARE__SHOW_P));
    end_row(page);
}

static void put_quiet(tare__page *page, tare__section section, size_t n, bool known)
{
    char count[TARE__UNIT_BYTES];
    tare__page_line_end(page);
    tare__page_put(page, TARE__PAGE_STRONG, title_of(section));
    tare__page_style_on(page, TARE__PAGE_FAINT);
    tare__text_format(page->out, "  %s, among %s; --all shows them",
                      known ? "no significant change" : "inconclusive",
                      tare__unit_count(count, (double)n));
    tare__page_style_off(page);
    tare__page_line_end(page);
}

/* Rows that differ; of the whole also rows that do not, unless the figure is neither better nor worse when it
 * changes. */
static bool is_shown(const tare__page *page, const tare__compared *row)
{
    bool judged = row->section == TARE__SECTION_WHOLE && row->base->better != TARE__NEITHER;
    return page->options->all || judged || tare__compared_differs(row);
}

static void put_section(tare__page *page, const tare__compared *rows, size_t n)
{
    tare__section section = rows[0].section;
    size_t worth = 0, shown = 0, known = 0, same = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_worth = is_shown(page, &rows[i]);
        worth += is_worth;
        known += rows[i].decision.verdict != TARE__VERDICT_INCONCLUSIVE;
        same += !is_worth && rows[i].decision.verdict == TARE__VERDICT_SAME;
    }
    if (!worth) {
        put_quiet(page, section, n, known > 0);
        return;
    }
    size_t most = section == TARE__SECTION_WHOLE ? worth : tare__page_rows(page, worth, FEW);
    put_columns(page, section);
    for (size_t i = 0; i < n && shown < most; i++) {
        if (!is_shown(page, &rows[i]))
            continue;
        put_row(page, &rows[i]);
        shown++;
    }
    tare__page_more(page, n - shown, same < n - shown ? "rows" : "unchanged rows");
}

static void put_only(tare__page *page, const char *side, const tare__figure *const *rows, size_t n)
{
    char text[TARE__UNIT_BYTES];
    size_t shown = tare__page_rows(page, n, FEW_ONLY);
    if (!n)
        return;
    tare__page_columns(page, side, "value|total", (const unsigned[]){VALUE_COLUMNS, VALUE_COLUMNS});
    for (size_t i = 0; i < shown; i++) {
        put_name(page, " ", rows[i]->name, rows[i]->unit);
        tare__text_pad_to(page->out, page->name_columns);
        tare__page_cell(page, VALUE_COLUMNS, tare__unit_number(text, rows[i]->unit, rows[i]->value));
        tare__page_cell(page, VALUE_COLUMNS, tare__unit_number(text, rows[i]->unit, rows[i]->total));
        tare__page_line_end(page);
    }
    tare__page_more(page, n - shown, "rows");
}

static void put_functions(tare__page *page, const tare__compared_function *rows, size_t n)
{
    static const unsigned widths[] = {VALUE_COLUMNS, VALUE_COLUMNS, VALUE_COLUMNS};
    char text[TARE__COMPARED_BYTES];
    size_t shown = tare__page_rows(page, n, FEW_ONLY);
    unsigned kept = page->name_columns;
    if (!n)
        return;
    page->name_columns = page->options->width - 3 * VALUE_COLUMNS;
    tare__page_columns(page, "Functions (share of active time, self)", "baseline|candidate|points", widths);
    for (size_t i = 0; i < shown; i++) {
        tare__text name = {0};
        tare__text_format(&name, "%s%s%s%s", rows[i].function, *rows[i].file ? " (" : "", rows[i].file,
                          *rows[i].file ? ")" : "");
        if (!name.failed)
            tare__page_name(page, 0, name.data, 0);
        tare__text_end(&name, page->out);
        tare__text_pad_to(page->out, page->name_columns);
        tare__page_cell(page, VALUE_COLUMNS, tare__unit_percent(text, rows[i].base));
        tare__page_cell(page, VALUE_COLUMNS, tare__unit_percent(text, rows[i].head));
        tare__page_cell(page, VALUE_COLUMNS, tare__unit_change(text, rows[i].change));
        tare__page_line_end(page);
    }
    tare__page_more(page, n - shown, "rows");
    page->name_columns = kept;
}

int tare__emit_comparison_text(const void *what, const tare__emit_options *options, const tare__emit_sink *sink,
                               tare__error *error)
{
    const tare__emit_comparison *input = what;
    const tare__comparison *from = input->comparison;
    tare__text text = {0};
    tare__page page = {.out = &text, .options = options, .name_columns = options->width - FIGURE_COLUMNS};
    put_head(&page, input);
    for (size_t i = 0, n; i < from->n; i += n) {
        for (n = 1; i + n < from->n && from->rows[i + n].section == from->rows[i].section;)
            n++;
        put_section(&page, &from->rows[i], n);
    }
    put_only(&page, "Baseline only", (const tare__figure *const *)from->only_base, from->n_only_base);
    put_only(&page, "Candidate only", (const tare__figure *const *)from->only_head, from->n_only_head);
    put_functions(&page, from->functions, from->n_functions);
    tare__page_line_end(&page);
    tare__page_say(&page, TARE__PAGE_FAINT, 0, "! worse, + better, ~ changed, = no significant change, ? inconclusive");
    return tare__emit_end(&text, 0, sink, error);
}
