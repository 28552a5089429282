/* check markdown: a check as Markdown, for the summary of a job or a comment.
 * Owned by the calling thread.
 * Must not know how a check is made. */
#include "check.h"

#include <string.h>

#include "emit/escape.h"

static const char *mark_of(tare__outcome outcome)
{
    switch (outcome) {
    case TARE__OUTCOME_FAILED: return "\xe2\x9d\x8c failed";             /* cross */
    case TARE__OUTCOME_INCONCLUSIVE: return "\xe2\x9a\xa0\xef\xb8\x8f inconclusive"; /* warning sign */
    case TARE__OUTCOME_IMPROVED: return "\xe2\x9c\x85 improved";         /* check mark */
    default: return tare__outcome_word(outcome);
    }
}

/* A job's log shows the Markdown source: columns are padded to their widest cell, up to a limit. */
#define COLUMNS   7u
#define WIDTH_MAX 48u

typedef struct table {
    tare__text *out; /* NULL: only measure */
    tare__text cell, escaped;
    size_t width[COLUMNS];
    unsigned column;
} table;

static const bool to_the_right[COLUMNS] = {false, false, true, true, true, true, false};

/* Writes `cell` as the next cell of the line. */
static void put_cell(table *to)
{
    tare__escape_markdown(&to->escaped, to->cell.data ? to->cell.data : "");
    const char *text = to->escaped.data ? to->escaped.data : "";
    size_t taken = tare__text_columns(text, strlen(text)), *width = &to->width[to->column];
    if (!to->out) {
        *width = taken > *width && taken <= WIDTH_MAX ? taken : *width;
    } else {
        int blanks = taken < *width ? (int)(*width - taken) : 0;
        bool right = to_the_right[to->column];
        tare__text_format(to->out, "%s %*s%s%*s |", to->column ? "" : "|", right ? blanks : 0, "", text,
                          right ? 0 : blanks, "");
    }
    to->column = (to->column + 1) % COLUMNS;
    if (to->out && !to->column)
        tare__text_string(to->out, "\n");
    tare__text_clear(&to->cell);
    tare__text_clear(&to->escaped);
}

static void put_text(table *to, const char *text)
{
    tare__text_string(&to->cell, text);
    put_cell(to);
}

static void put_row(table *to, const tare__check_row *row)
{
    char value[TARE__VALUE_BYTES], change[TARE__UNIT_BYTES];
    put_text(to, mark_of(row->outcome));
    put_text(to, row->name);
    put_text(to, tare__unit_value(value, row->unit, row->decision.base));
    put_text(to, tare__unit_value(value, row->unit, row->decision.head));
    put_text(to, tare__unit_change(change, row->decision.change));
    tare__check_gate(row, &to->cell);
    put_cell(to);
    put_text(to, row->reason);
}

static void put_line(table *to)
{
    for (unsigned i = 0; i < COLUMNS; i++) {
        tare__text_string(to->out, i ? "" : "|");
        for (size_t k = 0; k < to->width[i] + 1; k++)
            tare__text_string(to->out, "-");
        tare__text_string(to->out, to_the_right[i] ? ":|" : "-|");
    }
    tare__text_string(to->out, "\n");
}

static void put_rows(const tare__check *check, table *to)
{
    static const char *const head[COLUMNS] = {"", "figure", "baseline", "now", "change", "gate", "why"};
    size_t others = 0;
    for (unsigned i = 0; i < COLUMNS; i++)
        put_text(to, head[i]);
    if (to->out)
        put_line(to);
    for (size_t i = 0; i < check->n; i++)
        if (tare__check_tells(&check->rows[i], &others))
            put_row(to, &check->rows[i]);
}

static void put_table(const tare__check *check, tare__text *out)
{
    table table = {.out = NULL};
    put_rows(check, &table);
    table.out = out;
    put_rows(check, &table);
    out->failed |= table.cell.failed || table.escaped.failed;
    tare__text_free(&table.cell);
    tare__text_free(&table.escaped);
}

void tare__emit_check_markdown(const tare__check *check, const tare__check_names *names, tare__text *out)
{
    tare__text cell = {0};
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
    put_table(check, out);
    tare__text_end(&cell, out);
}
