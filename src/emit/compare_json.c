/* compare_json: a comparison for machines (docs/JSON.md).
 * Owned by the calling thread.
 * Must not know how it was made. */
#include "json_writer.h"

static void put_side(writer *to, const char *key, const tare__figures *figures, const char *name)
{
    tare__json_key(&to->json, key);
    tare__json_object(&to->json);
    put_string(to, "name", name);
    put_string(to, "kind", figures->kind);
    put_unsigned(to, "runs", figures->runs);
    put_string(to, "command", figures->command);
    put_string(to, "host", figures->host);
    put_string(to, "cpu_model", figures->cpu_model);
    put_string(to, "revision", figures->revision);
    put_string(to, "machine", figures->machine);
    put_known(to, "when_ns", (int64_t)figures->when_ns);
    tare__json_key(&to->json, "notes");
    tare__json_array(&to->json);
    for (size_t i = 0; i < figures->n_notes; i++)
        tare__json_string(&to->json, figures->notes[i]);
    tare__json_end_array(&to->json);
    tare__json_end_object(&to->json);
}

static void put_ab(writer *to, const tare__emit_ab *ab)
{
    tare__json_key(&to->json, "ab");
    if (!ab) {
        tare__json_null(&to->json);
        return;
    }
    tare__json_object(&to->json);
    put_string(to, "base_command", ab->commands[0]);
    put_string(to, "head_command", ab->commands[1]);
    put_string(to, "figure", ab->figure);
    put_unsigned(to, "rounds", ab->rounds);
    put_unsigned(to, "rounds_max", ab->wanted);
    put_estimated(to, "change", ab->change);
    put_estimated(to, "low", ab->low);
    put_estimated(to, "high", ab->high);
    put_estimated(to, "p", ab->p);
    put_estimated(to, "p_needed", ab->level > 0 ? ab->level : NAN);
    put_bool(to, "clear", ab->clear);
    put_bool(to, "interrupted", ab->interrupted);
    put_string(to, "answer", ab->answer);
    tare__json_end_object(&to->json);
}

static void put_row(writer *to, const tare__compared *row)
{
    tare__json_object(&to->json);
    put_string(to, "name", row->base->name);
    put_string(to, "section", tare__section_word(row->section));
    put_string(to, "unit", row->base->unit);
    put_string(to, "better", tare__better_word(row->base->better));
    put_bool(to, "exact", row->base->exact && row->head->exact);
    if (row->base->at_least || row->head->at_least) {
        put_bool(to, "base_at_least", row->base->at_least);
        put_bool(to, "head_at_least", row->head->at_least);
    }
    put_string(to, "verdict", tare__verdict_word(row->decision.verdict));
    put_string(to, "why", tare__why_text(row->decision.why));
    put_double(to, "base", row->decision.base);
    put_double(to, "head", row->decision.head);
    put_double(to, "base_total", row->base->total);
    put_double(to, "head_total", row->head->total);
    put_double(to, "cost", row->cost);
    put_estimated(to, "change", row->decision.change);
    put_estimated(to, "low", row->decision.low);
    put_estimated(to, "high", row->decision.high);
    put_estimated(to, "p", row->decision.p);
    put_estimated(to, "p_adjusted", row->decision.adjusted);
    put_estimated(to, "effect", row->decision.effect);
    put_string(to, "effect_size", tare__effect_word(row->decision.effect));
    put_string(to, "per", row->base->per);
    put_unsigned(to, "base_n", row->base->n);
    put_unsigned(to, "head_n", row->head->n);
    put_unsigned(to, "base_tested", row->decision.n_base);
    put_unsigned(to, "head_tested", row->decision.n_head);
    tare__json_end_object(&to->json);
    to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
}

static void put_only(writer *to, const char *key, const tare__figure *const *rows, size_t n)
{
    tare__json_key(&to->json, key);
    tare__json_array(&to->json);
    for (size_t i = 0; i < n && !to->status; i++) {
        tare__json_object(&to->json);
        put_string(to, "name", rows[i]->name);
        put_string(to, "unit", rows[i]->unit);
        put_double(to, "value", rows[i]->value);
        put_double(to, "total", rows[i]->total);
        put_unsigned(to, "n", rows[i]->n);
        tare__json_end_object(&to->json);
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
    }
    tare__json_end_array(&to->json);
}

static void put_answer(writer *to, const tare__emit_comparison *input)
{
    tare__text answer = {0};
    tare__compared_answer(&answer, input);
    put_string(to, "answer", answer.failed ? NULL : answer.data);
    to->text.failed |= answer.failed;
    tare__text_free(&answer);
}

static void put_all(writer *to, const tare__emit_comparison *input)
{
    const tare__comparison *from = input->comparison;
    tare__json_object(&to->json);
    tare__json_key(&to->json, "schema");
    tare__json_object(&to->json);
    put_string(to, "name", "tare-compare");
    put_unsigned(to, "version", 1);
    put_unsigned(to, "minor", 0);
    tare__json_end_object(&to->json);
    put_side(to, "base", from->base, input->base_name);
    put_side(to, "head", from->head, input->head_name);
    put_double(to, "confidence", from->confidence);
    put_double(to, "min_change", from->min_change);
    put_answer(to, input);
    put_unsigned(to, "worse", from->worse);
    put_unsigned(to, "better", from->better);
    put_unsigned(to, "different", from->different);
    put_unsigned(to, "inconclusive", from->inconclusive);
    put_unsigned(to, "same", from->n - from->worse - from->better - from->different - from->inconclusive);
    tare__json_key(&to->json, "warnings");
    tare__json_array(&to->json);
    for (size_t i = 0; i < from->n_warnings; i++)
        tare__json_string(&to->json, from->warnings[i]);
    tare__json_end_array(&to->json);
    put_ab(to, input->ab);
    tare__json_key(&to->json, "figures");
    tare__json_array(&to->json);
    for (size_t i = 0; i < from->n && !to->status; i++)
        put_row(to, &from->rows[i]);
    tare__json_end_array(&to->json);
    put_only(to, "only_base", (const tare__figure *const *)from->only_base, from->n_only_base);
    put_only(to, "only_head", (const tare__figure *const *)from->only_head, from->n_only_head);
    tare__json_end_object(&to->json);
}

int tare__emit_comparison_json(const tare__emit_comparison *input, const tare__emit_options *options,
                               const tare__emit_sink *sink, tare__error *error)
{
    writer to = {.sink = sink, .error = error};
    tare__json_begin(&to.json, &to.text, options->pretty);
    put_all(&to, input);
    tare__text_string(&to.text, "\n");
    if (!to.status)
        to.status = tare__emit_flush(&to.text, sink, error);
    tare__text_free(&to.text);
    return to.status;
}
