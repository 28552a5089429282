/* comparison: formats for the comparison of two runs. Owned by the calling thread.
 * Must not know how they were compared, nor where the bytes go. */
#ifndef TARE_EMIT_COMPARISON_H
#define TARE_EMIT_COMPARISON_H

typedef struct tare__emit_comparison {
    const tare__comparison *comparison;
    const char *base_name, *head_name; /* as the user gave them */
    const tare__compare_ab *ab;
    const struct tare__analysis *base, *head; /* of one run on each side, for pages; NULL: not known */
} tare__emit_comparison;

/* Each of a tare__emit_comparison. */
tare__emit_writer tare__emit_comparison_text, tare__emit_comparison_json, tare__emit_comparison_html;

/* ---- text that all formats use ---------------------------------------------------------------- */
#define TARE__COMPARED_BYTES 64
const char *tare__compared_interval(char out[TARE__COMPARED_BYTES], double low, double high); /* "+10.1 … +14.2" */
/* Time, bytes and shares show their unit with the value; others with the name, unless the name includes it already. */
bool tare__compared_says_unit(const char *name, const char *unit);
static inline bool tare__compared_differs(const tare__compared *row) /* significantly */
{
    return row->decision.verdict != TARE__VERDICT_SAME && row->decision.verdict != TARE__VERDICT_INCONCLUSIVE;
}
/* The conclusion in a sentence or two: what got worse, what got better, or that nothing changed. */
void tare__compared_answer(tare__text *out, const tare__emit_comparison *input);
/* "3 runs of `python train.py` on host, revision abc, 2026-11-15 12:00" */
void tare__compared_side(tare__text *out, const tare__figures *figures, const char *name);
/* In the form that the schema requires. */
tare__compare_view tare__compared_view(const tare__emit_comparison *input, const char *answer);

#endif
