/* check_words: what the formats of a check say alike: summary, sentence of a row, which rows are told.
 * Owned by the calling thread.
 * Must not know how a check is made. */
#include "check.h"

#include <math.h>
#include <string.h>

#define OTHERS_MAX 10 /* rows that could not fail but changed */

void tare__check_summary(const tare__check *check, tare__text *out)
{
    size_t failed = check->count[TARE__OUTCOME_FAILED];
    if (!check->gated) {
        tare__text_string(out, "nothing was checked: no gated figure is on both sides, and no limit was set");
        return;
    }
    if (failed)
        tare__text_format(out, "%zu of %zu figures failed", failed, check->gated);
    else
        tare__text_format(out, "%zu figure%s passed", check->gated - check->count[TARE__OUTCOME_UNSURE],
                          check->gated - check->count[TARE__OUTCOME_UNSURE] == 1 ? "" : "s");
    if (check->count[TARE__OUTCOME_UNSURE])
        tare__text_format(out, ", %zu unsure", check->count[TARE__OUTCOME_UNSURE]);
    if (check->count[TARE__OUTCOME_CLEARED])
        tare__text_format(out, ", %zu not so when run again", check->count[TARE__OUTCOME_CLEARED]);
}

static void put_gate(const tare__check_row *row, tare__text *out)
{
    if (row->gated && !isnan(row->allowance.share)) {
        char share[32];
        tare__text_double(share, sizeof share, 'g', 4, row->allowance.share * 100);
        tare__text_format(out, "; gate %s %%", share);
    }
    if (row->has_limit) {
        tare__text_string(out, "; limit ");
        tare__check_value(out, row->unit, row->limit);
    }
}

void tare__check_sentence(const tare__check_row *row, tare__text *out)
{
    tare__text_format(out, "%s: ", row->name);
    if (!row->head && !row->base) {
        tare__text_string(out, row->reason);
        return;
    }
    tare__check_value(out, row->unit, row->decision.head);
    if (!isnan(row->decision.base)) {
        tare__text_string(out, " after ");
        tare__check_value(out, row->unit, row->decision.base);
    }
    tare__text_string(out, " (");
    if (!isnan(row->decision.change))
        tare__check_change(out, row->decision.change);
    else
        tare__text_string(out, "no change is known");
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
