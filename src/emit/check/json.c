/* check json: a check for machines; docs/JSON.md says what its keys mean.
 * Owned by the calling thread.
 * Must not know how a check is made. */
#include "check.h"

#include <math.h>

#define SCHEMA 1

static void put_side(tare__json *json, const char *key, const char *name, const tare__figures *side)
{
    tare__json_key(json, key);
    if (!side) {
        tare__json_null(json);
        return;
    }
    tare__json_object(json);
    tare__json_put_string(json, "file", name);
    tare__json_put_string(json, "kind", side->kind);
    tare__json_put_string(json, "command", side->command);
    tare__json_put_string(json, "machine", side->machine);
    tare__json_put_string(json, "revision", side->revision);
    tare__json_put_unsigned(json, "runs", side->runs ? side->runs : 1);
    tare__json_end_object(json);
}

static void put_row(tare__json *json, const tare__check_row *row)
{
    tare__json_object(json);
    tare__json_put_string(json, "name", row->name);
    tare__json_put_string(json, "unit", row->unit);
    tare__json_put_string(json, "outcome", tare__outcome_word(row->outcome));
    tare__json_put_string(json, "verdict", tare__verdict_word(row->decision.verdict));
    tare__json_put_string(json, "reason", row->reason);
    tare__json_put_bool(json, "gated", row->gated);
    if ((row->base && row->base->at_least) || (row->head && row->head->at_least)) {
        tare__json_put_bool(json, "baseline_at_least", row->base && row->base->at_least);
        tare__json_put_bool(json, "at_least", row->head && row->head->at_least);
    }
    tare__json_put_double(json, "baseline", row->decision.base);
    tare__json_put_double(json, "value", row->decision.head);
    tare__json_put_double(json, "change", row->decision.change);
    tare__json_put_double(json, "low", row->decision.low);
    tare__json_put_double(json, "high", row->decision.high);
    tare__json_put_double(json, "p", row->decision.p);
    tare__json_put_double(json, "p_adjusted", row->decision.adjusted);
    tare__json_put_double(json, "cliffs_delta", row->decision.effect);
    tare__json_put_unsigned(json, "baseline_samples", row->decision.n_base);
    tare__json_put_unsigned(json, "samples", row->decision.n_head);
    tare__json_put_double(json, "gate", row->gated ? row->decision.asked.gate.share : NAN);
    tare__json_put_double(json, "floor", row->gated ? row->decision.asked.gate.floor : NAN);
    tare__json_put_double(json, "limit", row->has_limit ? row->limit : NAN);
    tare__json_end_object(json);
}

static void put_counts(tare__json *json, const tare__check *check)
{
    tare__json_key(json, "counts");
    tare__json_object(json);
    for (int outcome = 0; outcome <= TARE__OUTCOME_ABSENT; outcome++) {
        tare__json_key(json, tare__outcome_word((tare__outcome)outcome));
        tare__json_unsigned(json, check->count[outcome]);
    }
    tare__json_end_object(json);
}

void tare__emit_check_json(const tare__check *check, const tare__check_names *names, bool pretty,
                           tare__text *out)
{
    tare__json json;
    tare__json_begin(&json, out, pretty);
    tare__json_object(&json);
    tare__json_key(&json, "schema");
    tare__json_object(&json);
    tare__json_put_string(&json, "name", "tare-check");
    tare__json_put_unsigned(&json, "version", SCHEMA);
    tare__json_end_object(&json);
    tare__json_put_bool(&json, "passed", tare__check_passed(check));
    tare__json_put_bool(&json, "rerun", check->rerun);
    tare__json_put_bool(&json, "other_machine", check->other_machine);
    tare__json_put_double(&json, "gate", check->base ? check->share : NAN);
    put_side(&json, "baseline", names->base, check->base);
    put_side(&json, "head", names->head, check->head);
    put_counts(&json, check);
    tare__json_key(&json, "warnings");
    tare__json_array(&json);
    for (size_t i = 0; i < check->n_warnings; i++)
        tare__json_string(&json, check->warnings[i]);
    tare__json_end_array(&json);
    tare__json_key(&json, "figures");
    tare__json_array(&json);
    for (size_t i = 0; i < check->n; i++)
        put_row(&json, &check->rows[i]);
    tare__json_end_array(&json);
    tare__json_end_object(&json);
    tare__text_string(out, "\n");
}
