/* compare json: a comparison for machines (docs/JSON.md).
 * Owned by the calling thread.
 * Must not know how it was made. */
#include <math.h>

#include "emit/flush.h"

typedef struct output {
    tare__json json;
    tare__text text;
    const tare__emit_sink *sink;
    tare__error *error;
    int status; /* the first failure; what comes after it is not written */
} output;

static void put_side(tare__json *json, const char *key, const tare__figures *figures, const char *name)
{
    tare__json_key(json, key);
    tare__json_object(json);
    tare__json_put_string(json, "name", name);
    tare__json_put_string(json, "kind", figures->kind);
    tare__json_put_unsigned(json, "runs", figures->runs);
    tare__json_put_string(json, "command", figures->command);
    tare__json_put_string(json, "host", figures->host);
    tare__json_put_string(json, "cpu_model", figures->cpu_model);
    tare__json_put_string(json, "revision", figures->revision);
    tare__json_put_string(json, "machine", figures->machine);
    tare__json_key(json, "when_ns");
    if (figures->when_ns)
        tare__json_unsigned(json, figures->when_ns);
    else
        tare__json_null(json);
    tare__json_key(json, "notes");
    tare__json_array(json);
    for (size_t i = 0; i < figures->n_notes; i++)
        tare__json_string(json, figures->notes[i]);
    tare__json_end_array(json);
    tare__json_end_object(json);
}

static void put_ab(tare__json *json, const tare__emit_ab *ab)
{
    tare__json_key(json, "ab");
    if (!ab) {
        tare__json_null(json);
        return;
    }
    tare__json_object(json);
    tare__json_put_string(json, "base_command", ab->commands[0]);
    tare__json_put_string(json, "head_command", ab->commands[1]);
    tare__json_put_string(json, "figure", ab->figure);
    tare__json_put_unsigned(json, "rounds", ab->rounds);
    tare__json_put_unsigned(json, "rounds_max", ab->wanted);
    tare__json_put_rounded(json, "change", ab->change);
    tare__json_put_rounded(json, "low", ab->low);
    tare__json_put_rounded(json, "high", ab->high);
    tare__json_put_rounded(json, "p", ab->p);
    tare__json_put_rounded(json, "p_needed", ab->level > 0 ? ab->level : NAN);
    tare__json_put_bool(json, "clear", ab->clear);
    tare__json_put_bool(json, "interrupted", ab->interrupted);
    tare__json_put_string(json, "answer", ab->answer);
    tare__json_end_object(json);
}

static void put_row(tare__json *json, const tare__compared *row)
{
    tare__json_object(json);
    tare__json_put_string(json, "name", row->base->name);
    tare__json_put_string(json, "section", tare__section_word(row->section));
    tare__json_put_string(json, "unit", row->base->unit);
    tare__json_put_string(json, "better", tare__better_word(row->base->better));
    tare__json_put_bool(json, "exact", row->base->exact && row->head->exact);
    if (row->base->at_least || row->head->at_least) {
        tare__json_put_bool(json, "base_at_least", row->base->at_least);
        tare__json_put_bool(json, "head_at_least", row->head->at_least);
    }
    tare__json_put_string(json, "verdict", tare__verdict_word(row->decision.verdict));
    tare__json_put_string(json, "why", tare__why_text(row->decision.why));
    tare__json_put_double(json, "base", row->decision.base);
    tare__json_put_double(json, "head", row->decision.head);
    tare__json_put_double(json, "base_total", row->base->total);
    tare__json_put_double(json, "head_total", row->head->total);
    tare__json_put_double(json, "cost", row->cost);
    tare__json_put_rounded(json, "change", row->decision.change);
    tare__json_put_rounded(json, "low", row->decision.low);
    tare__json_put_rounded(json, "high", row->decision.high);
    tare__json_put_rounded(json, "p", row->decision.p);
    tare__json_put_rounded(json, "p_adjusted", row->decision.adjusted);
    tare__json_put_rounded(json, "effect", row->decision.effect);
    tare__json_put_string(json, "effect_size", tare__effect_word(row->decision.effect));
    tare__json_put_string(json, "per", row->base->per);
    tare__json_put_unsigned(json, "base_n", row->base->n);
    tare__json_put_unsigned(json, "head_n", row->head->n);
    tare__json_put_unsigned(json, "base_tested", row->decision.n_base);
    tare__json_put_unsigned(json, "head_tested", row->decision.n_head);
    tare__json_end_object(json);
}

static void put_only(output *to, const char *key, const tare__figure *const *rows, size_t n)
{
    tare__json_key(&to->json, key);
    tare__json_array(&to->json);
    for (size_t i = 0; i < n && !to->status; i++) {
        tare__json_object(&to->json);
        tare__json_put_string(&to->json, "name", rows[i]->name);
        tare__json_put_string(&to->json, "unit", rows[i]->unit);
        tare__json_put_double(&to->json, "value", rows[i]->value);
        tare__json_put_double(&to->json, "total", rows[i]->total);
        tare__json_put_unsigned(&to->json, "n", rows[i]->n);
        tare__json_end_object(&to->json);
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
    }
    tare__json_end_array(&to->json);
}

static void put_answer(output *to, const tare__emit_comparison *input)
{
    tare__text answer = {0};
    tare__compared_answer(&answer, input);
    tare__json_put_string(&to->json, "answer", answer.failed ? NULL : answer.data);
    to->text.failed |= answer.failed;
    tare__text_free(&answer);
}

static void put_all(output *to, const tare__emit_comparison *input)
{
    const tare__comparison *from = input->comparison;
    tare__json *json = &to->json;
    tare__json_object(json);
    tare__json_key(json, "schema");
    tare__json_object(json);
    tare__json_put_string(json, "name", "tare-compare");
    tare__json_put_unsigned(json, "version", 1);
    tare__json_put_unsigned(json, "minor", 0);
    tare__json_end_object(json);
    put_side(json, "base", from->base, input->base_name);
    put_side(json, "head", from->head, input->head_name);
    tare__json_put_double(json, "confidence", from->confidence);
    tare__json_put_double(json, "min_change", from->min_change);
    put_answer(to, input);
    tare__json_put_unsigned(json, "worse", from->worse);
    tare__json_put_unsigned(json, "better", from->better);
    tare__json_put_unsigned(json, "different", from->different);
    tare__json_put_unsigned(json, "inconclusive", from->inconclusive);
    tare__json_put_unsigned(json, "same", from->n - from->worse - from->better - from->different - from->inconclusive);
    tare__json_key(json, "warnings");
    tare__json_array(json);
    for (size_t i = 0; i < from->n_warnings; i++)
        tare__json_string(json, from->warnings[i]);
    tare__json_end_array(json);
    put_ab(json, input->ab);
    tare__json_key(json, "figures");
    tare__json_array(json);
    for (size_t i = 0; i < from->n && !to->status; i++) {
        put_row(json, &from->rows[i]);
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
    }
    tare__json_end_array(json);
    put_only(to, "only_base", (const tare__figure *const *)from->only_base, from->n_only_base);
    put_only(to, "only_head", (const tare__figure *const *)from->only_head, from->n_only_head);
    tare__json_end_object(json);
}

int tare__emit_comparison_json(const tare__emit_comparison *input, const tare__emit_options *options,
                               const tare__emit_sink *sink, tare__error *error)
{
    output to = {.sink = sink, .error = error};
    tare__json_begin(&to.json, &to.text, options->pretty);
    put_all(&to, input);
    tare__text_string(&to.text, "\n");
    if (!to.status)
        to.status = tare__emit_flush(&to.text, sink, error);
    tare__text_free(&to.text);
    return to.status;
}
