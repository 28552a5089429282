/* check_markdown: a check as Markdown, for the summary of a job or a comment.
 * Owned by the calling thread.
 * Must not know how a check is made. */
#include "check.h"

#include <math.h>

#include "escape.h"

static const char *mark_of(tare__outcome outcome)
{
    switch (outcome) {
    case TARE__OUTCOME_FAILED: return "\xe2\x9d\x8c failed";             /* cross */
    case TARE__OUTCOME_UNSURE: return "\xe2\x9a\xa0\xef\xb8\x8f unsure"; /* warning sign */
    case TARE__OUTCOME_IMPROVED: return "\xe2\x9c\x85 improved";         /* check mark */
    default: return tare__outcome_word(outcome);
    }
}

static void put_cell(tare__text *out, tare__text *cell)
{
    tare__text_string(out, " ");
    tare__escape_markdown(out, cell->data ? cell->data : "");
    tare__text_string(out, " |");
    out->failed |= cell->failed;
    tare__text_clear(cell);
}

static void put_row(const tare__check_row *row, tare__text *out, tare__text *cell)
{
    char value[TARE__VALUE_BYTES], change[TARE__UNIT_BYTES];
    tare__text_format(out, "| %s |", mark_of(row->outcome));
    tare__text_string(cell, row->name);
    put_cell(out, cell);
    tare__text_string(cell, tare__unit_value(value, row->unit, row->decision.base));
    put_cell(out, cell);
    tare__text_string(cell, tare__unit_value(value, row->unit, row->decision.head));
    put_cell(out, cell);
    tare__text_string(cell, tare__unit_change(change, row->decision.change));
    put_cell(out, cell);
    tare__check_gate(row, cell);
    put_cell(out, cell);
    tare__text_string(cell, row->reason);
    put_cell(out, cell);
    tare__text_string(out, "\n");
}

void tare__emit_check_markdown(const tare__check *check, const tare__check_names *names, tare__text *out)
{
    tare__text cell = {0};
    size_t others = 0;
    tare__text_format(out, "### tare check: %s\n\n", tare__check_passed(check) ? "passed" : "failed");
    tare__check_summary(check, &cell);
    tare__escape_markdown(out, cell.data ? cell.data : "");
    tare__text_clear(&cell);
    tare__text_string(out, " (");
    tare__escape_markdown(out, names->head);
    if (names->base) {
        tare__text_string(out, " against ");
        tare__escape_markdown(out, names->base);
    }
    tare__text_string(out, ").\n\n");
    for (size_t i = 0; i < check->n_warnings; i++) {
        tare__text_string(out, "> ");
        tare__escape_markdown(out, check->warnings[i]);
        tare__text_string(out, "\n\n");
    }
    tare__text_string(
        out, "| | figure | baseline | now | change | gate | why |\n|---|---|---:|---:|---:|---:|---|\n");
    for (size_t i = 0; i < check->n; i++)
        if (tare__check_tells(&check->rows[i], &others))
            put_row(&check->rows[i], out, &cell);
    out->failed |= cell.failed;
    tare__text_free(&cell);
}
