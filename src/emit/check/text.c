/* check text: a check for a terminal: a table of what was checked, failures first, and what to conclude.
 * Owned by the calling thread.
 * Must not know how a check is made. */
#include "check.h"

#include <math.h>
#include <stdio.h>

#include "emit/emit.h"
#include "emit/layout.h"

#define OUTCOME 14u /* columns */
#define CELL    12u
#define SHORT   9u

static tare__page_style style_of(tare__outcome outcome)
{
    switch (outcome) {
    case TARE__OUTCOME_FAILED: return TARE__PAGE_BAD;
    case TARE__OUTCOME_INCONCLUSIVE:
    case TARE__OUTCOME_CLEARED: return TARE__PAGE_WARNING;
    case TARE__OUTCOME_PASSED:
    case TARE__OUTCOME_ABSENT: return TARE__PAGE_FAINT;
    default: return TARE__PAGE_PLAIN;
    }
}

static void put_cell(tare__page *page, unsigned columns, tare__text *cell)
{
    tare__page_cell(page, columns, cell->data && !cell->failed ? cell->data : "");
    page->out->failed |= cell->failed;
    tare__text_clear(cell);
}

static void put_p(const tare__check_row *row, tare__text *cell)
{
    char text[TARE__COMPARED_BYTES];
    double p = row->decision.adjusted; /* the one that decides */
    bool exact = row->decision.why == TARE__WHY_EXACT || (row->head && row->head->exact);
    tare__text_string(cell, exact ? "exact" : isnan(p) ? "n/a" : tare__schema_show(text, p, TARE__SHOW_P));
}

/* The details that do not fit in the line: the interval, and the reason. */
static void put_reason(tare__page *page, const tare__check_row *row)
{
    char reason[256] = "";
    size_t used = 0;
    bool plain =
        !row->gated || fabs(row->decision.change) <= row->decision.requested.gate.share || isnan(row->decision.change);
    if (row->outcome == TARE__OUTCOME_ABSENT || (row->outcome == TARE__OUTCOME_PASSED && plain))
        return;
    if (!isnan(row->decision.low)) {
        char low[TARE__UNIT_BYTES], high[TARE__UNIT_BYTES];
        used = (size_t)snprintf(reason, sizeof reason, "95 %%: %s to %s %%; ",
                                tare__unit_points(low, row->decision.low),
                                tare__unit_points(high, row->decision.high));
    }
    snprintf(reason + used, sizeof reason - used, "%s%s", row->reason,
             row->gated || row->has_limit ? "" : "; not gated");
    tare__text_pad_to(page->out, 0);
    tare__page_style_on(page, TARE__PAGE_FAINT);
    tare__text_format(page->out, "%*s%s", (int)OUTCOME, "", reason);
    tare__page_style_off(page);
    tare__page_line_end(page);
}

/* The unit is shown only if the figure's name does not state it: columns are narrow. */
static void put_value(const tare__check_row *row, double value, tare__text *cell)
{
    char text[TARE__VALUE_BYTES];
    bool said = tare__compared_says_unit(row->name, row->unit);
    tare__text_string(cell, said ? tare__unit_number(text, row->unit, value)
                                 : tare__unit_value(text, row->unit, value));
}

static void put_row(tare__page *page, const tare__check_row *row, tare__text *cell)
{
    char change[TARE__UNIT_BYTES];
    tare__page_style_on(page, style_of(row->outcome));
    tare__text_format(page->out, "%-*s", (int)OUTCOME,
                      row->outcome == TARE__OUTCOME_FAILED ? "FAILED" : tare__outcome_word(row->outcome));
    tare__page_style_off(page);
    tare__page_name(page, 0, row->name, 0);
    tare__text_pad_to(page->out, OUTCOME + page->name_columns);
    put_value(row, row->decision.base, cell);
    put_cell(page, CELL, cell);
    put_value(row, row->decision.head, cell);
    put_cell(page, CELL, cell);
    tare__text_string(cell, tare__unit_change(change, row->decision.change));
    put_cell(page, SHORT, cell);
    tare__check_gate(row, cell);
    put_cell(page, SHORT, cell);
    put_p(row, cell);
    put_cell(page, SHORT - 1, cell);
    tare__page_line_end(page);
    put_reason(page, row);
}

static void put_head(tare__page *page, const tare__check_names *names)
{
    tare__page_style_on(page, TARE__PAGE_STRONG);
    tare__text_format(page->out, "%-*s", (int)OUTCOME, "");
    tare__text_string(page->out, "figure");
    tare__text_pad_to(page->out, OUTCOME + page->name_columns);
    tare__page_cell(page, CELL, names->base ? "baseline" : "");
    tare__page_cell(page, CELL, "now");
    tare__page_cell(page, SHORT, "change");
    tare__page_cell(page, SHORT, "gate");
    tare__page_cell(page, SHORT - 1, "p");
    tare__page_style_off(page);
    tare__page_line_end(page);
}

static void put_warnings(tare__page *page, const tare__check *check)
{
    for (size_t i = 0; i < check->n_warnings; i++) {
        tare__page_put(page, TARE__PAGE_WARNING, "warning ");
        tare__page_say(page, TARE__PAGE_PLAIN, 8, check->warnings[i]);
    }
}

static void put_summary(tare__page *page, const tare__check *check)
{
    bool passed = tare__check_passed(check);
    tare__text summary = {0};
    tare__check_summary(check, &summary);
    tare__page_style_on(page, passed ? TARE__PAGE_STRONG : TARE__PAGE_BAD);
    tare__text_format(page->out, "%s: ", passed ? "passed" : "FAILED");
    tare__page_sentence(page, 8, summary.data ? summary.data : "");
    tare__page_style_off(page);
    tare__page_line_end(page);
    tare__text_end(&summary, page->out);
}

void tare__emit_check_text(const tare__check *check, const tare__check_names *names,
                           const tare__emit_options *options, tare__text *out)
{
    tare__page page = {.out = out, .options = options, .lines = TARE__PAGE_ENDLESS};
    tare__text cell = {0};
    size_t others = 0, shown = 0;
    page.name_columns = options->width - OUTCOME - 2 * CELL - 3 * SHORT + 1;
    put_warnings(&page, check);
    if (check->n_warnings)
        tare__text_string(out, "\n");
    put_head(&page, names);
    for (size_t i = 0; i < check->n; i++) {
        bool reported = tare__check_tells(&check->rows[i], &others);
        if (!options->all && !reported)
            continue;
        put_row(&page, &check->rows[i], &cell);
        shown++;
    }
    if (shown < check->n)
        tare__text_format(out, "%*s%zu more, which did not change or are not gated (--all)\n", (int)OUTCOME,
                          "", check->n - shown);
    tare__text_string(out, "\n");
    put_summary(&page, check);
    tare__text_free(&cell);
}
