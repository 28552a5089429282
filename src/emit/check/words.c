/* check words: text that all formats of a check share: summary, sentence for a row, which rows are listed; and a check
 * as JSON, generated from its schema.
 * Owned by the calling thread.
 * Must not know how a check is made. */
#include "check.h"

#include <math.h>

#include "emit/emit.h"

#define OTHERS_MAX 10 /* rows that could not fail but changed */

void tare__check_summary(const tare__check *check, tare__text *out)
{
    size_t failed = check->count[TARE__OUTCOME_FAILED];
    if (!check->gated) {
        tare__text_string(out, "nothing was checked: no gated figure is on both sides, and no limit was set");
        return;
    }
    char figures[TARE__COUNTED_BYTES];
    if (failed)
        tare__text_format(out, "%zu of %s failed", failed,
                          tare__unit_counted(figures, (double)check->gated, "figure", NULL));
    else
        tare__text_format(out, "%s passed",
                          tare__unit_counted(figures, (double)(check->gated - check->count[TARE__OUTCOME_INCONCLUSIVE]),
                                             "figure", NULL));
    if (check->count[TARE__OUTCOME_INCONCLUSIVE])
        tare__text_format(out, ", %zu inconclusive", check->count[TARE__OUTCOME_INCONCLUSIVE]);
    if (check->count[TARE__OUTCOME_CLEARED])
        tare__text_format(out, ", %zu not confirmed by running again", check->count[TARE__OUTCOME_CLEARED]);
    if (check->unconfirmed)
        tare__text_string(out, "; running again failed");
}

static bool has_gate(const tare__check_row *row)
{
    return row->gated && !isnan(row->decision.requested.gate.share);
}

static void put_share(const tare__check_row *row, tare__text *out)
{
    char share[TARE__UNIT_BYTES];
    tare__text_double(share, sizeof share, 'g', 4, row->decision.requested.gate.share * 100);
    tare__text_format(out, "%s %%", share);
}

static void put_value(const tare__check_row *row, double value, tare__text *out)
{
    char text[TARE__VALUE_BYTES];
    tare__text_string(out, tare__unit_value(text, row->unit, value));
}

void tare__check_gate(const tare__check_row *row, tare__text *out)
{
    if (row->has_limit && (row->broken || !has_gate(row)))
        put_value(row, row->limit, out);
    else if (has_gate(row))
        put_share(row, out);
    else
        tare__text_string(out, "-");
}

static void put_gate(const tare__check_row *row, tare__text *out)
{
    if (has_gate(row)) {
        tare__text_string(out, "; gate ");
        put_share(row, out);
    }
    if (row->has_limit) {
        tare__text_string(out, "; limit ");
        put_value(row, row->limit, out);
    }
}

void tare__check_sentence(const tare__check_row *row, tare__text *out)
{
    char change[TARE__UNIT_BYTES];
    tare__text_format(out, "%s: ", row->name);
    if (!row->head && !row->base) {
        tare__text_string(out, row->reason);
        return;
    }
    put_value(row, row->decision.head, out);
    if (!isnan(row->decision.base)) {
        tare__text_string(out, " after ");
        put_value(row, row->decision.base, out);
    }
    tare__text_string(out, " (");
    tare__text_string(out, isnan(row->decision.change) ? "change unknown"
                                                       : tare__unit_change(change, row->decision.change));
    put_gate(row, out);
    tare__text_format(out, "; %s)", row->reason);
}

bool tare__check_tells(const tare__check_row *row, size_t *others)
{
    if (row->gated || row->has_limit)
        return row->outcome != TARE__OUTCOME_ABSENT;
    if (row->outcome != TARE__OUTCOME_CHANGED && row->outcome != TARE__OUTCOME_IMPROVED)
        return false;
    return (*others)++ < OTHERS_MAX;
}

void tare__emit_check_json(const tare__check *check, const tare__check_names *names, bool pretty, tare__text *out)
{
    const tare__check_view view = {
        .check = check, .baseline = {names->base, check->base}, .candidate = {names->head, check->head}};
    tare__put_document(out, &tare__document_check, &view, pretty);
}
