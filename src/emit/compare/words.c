/* compare words: text for values, changes and the conclusion of a comparison, the same in every output; and the
 * comparison as JSON, generated from its schema.
 * Owned by the calling thread.
 * Must not know how anything was compared. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "emit/emit.h"

#define PLACED_MAX 3 /* figures that are named */

bool tare__compared_says_unit(const char *name, const char *unit)
{
    return tare__unit_is_said(unit) || strstr(name, unit);
}

const char *tare__compared_interval(char out[TARE__COMPARED_BYTES], double low, double high)
{
    char from[TARE__UNIT_BYTES], to[TARE__UNIT_BYTES];
    if (!isfinite(low) || !isfinite(high))
        return strcpy(out, "");
    snprintf(out, TARE__COMPARED_BYTES, "%.15s … %.15s", tare__unit_points(from, low), tare__unit_points(to, high));
    return out;
}

tare__compare_view tare__compared_view(const tare__emit_comparison *input, const char *answer)
{
    return (tare__compare_view){.comparison = input->comparison,
                                .baseline = {input->base_name, input->comparison->base},
                                .candidate = {input->head_name, input->comparison->head},
                                .ab = input->ab,
                                .answer = answer};
}

void tare__compared_side(tare__text *out, const tare__figures *figures, const char *name)
{
    char when[32] = "";
    time_t seconds = (time_t)(figures->when_ns / 1000000000u);
    struct tm parts;
    tare__text_string(out, name);
    if (figures->runs > 1)
        tare__text_format(out, ": %llu runs", (unsigned long long)figures->runs);
    if (figures->command)
        tare__text_format(out, "%s `%.300s`", figures->runs > 1 ? " of" : ":", figures->command);
    if (figures->host)
        tare__text_format(out, " on %.100s", figures->host);
    if (figures->revision)
        tare__text_format(out, ", revision %.64s", figures->revision);
    if (figures->when_ns && gmtime_r(&seconds, &parts) && strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &parts))
        tare__text_format(out, ", %s", when);
}

/* ---- conclusion ------------------------------------------------------------------------------- */
/* The most informative figure: one of the whole before any part, and time before all others, since users ask for it
 * first. */
static const tare__compared *main_row(const tare__comparison *from)
{
    static const char *const first[] = {"step", "run.elapsed", "epoch", "model.latency"};
    for (size_t k = 0; k < TARE__COUNT_OF(first); k++)
        for (size_t i = 0; i < from->n; i++)
            if (strcmp(from->rows[i].base->name, first[k]) == 0 &&
                from->rows[i].decision.verdict != TARE__VERDICT_INCONCLUSIVE &&
                from->rows[i].decision.verdict != TARE__VERDICT_SAME)
                return &from->rows[i];
    const tare__compared *best = NULL;
    for (size_t i = 0; i < from->n; i++) {
        const tare__compared *row = &from->rows[i];
        if (row->decision.verdict != TARE__VERDICT_BETTER && row->decision.verdict != TARE__VERDICT_WORSE)
            continue;
        bool timed = strcmp(row->base->unit, "ns") == 0;
        if (!best || (timed && strcmp(best->base->unit, "ns") != 0) || (timed && fabs(row->cost) > fabs(best->cost)))
            best = row;
    }
    return best;
}

static void put_row_answer(tare__text *out, const tare__compared *row)
{
    char base[TARE__VALUE_BYTES], head[TARE__VALUE_BYTES], change[TARE__UNIT_BYTES], name[256];
    char interval[TARE__COMPARED_BYTES];
    tare__text_fit(name, sizeof name, row->base->name, 60);
    tare__compared_interval(interval, row->decision.low, row->decision.high);
    tare__text_format(out, "%s is %s: %s to %s, %s", name, tare__verdict_word(row->decision.verdict),
                      tare__unit_value(base, row->base->unit, row->decision.base),
                      tare__unit_value(head, row->base->unit, row->decision.head),
                      tare__unit_change(change, row->decision.change));
    tare__text_format(out, *interval ? " (%s)." : ".", interval);
}

/* One run against several cannot be tested: next to ten runs, the eleventh is the lowest or the highest by chance in
 * two of eleven cases. Its rank among them can be stated. */
static void put_place(tare__text *out, const tare__comparison *from)
{
    unsigned long long runs = from->base->runs > 1 ? from->base->runs : from->head->runs;
    size_t outside = 0, placed = 0;
    tare__text_format(out, "One run against %llu: inconclusive.", runs);
    for (size_t i = 0; i < from->n; i++) {
        const tare__compared *row = &from->rows[i];
        char name[256], change[TARE__UNIT_BYTES];
        placed += !isnan(row->decision.effect);
        if (row->section != TARE__SECTION_WHOLE || !(fabs(row->decision.effect) >= 1) || outside++ >= PLACED_MAX)
            continue;
        tare__text_fit(name, sizeof name, row->base->name, 40);
        tare__text_format(out, "%s%s (%s)", outside == 1 ? " It lies outside of the range of the others in " : ", ",
                          name, tare__unit_change(change, row->decision.change));
    }
    if (outside)
        tare__text_format(out, "%s; by chance 2 of %llu figures do.", outside > PLACED_MAX ? ", …" : "", runs + 1);
    else if (placed)
        tare__text_string(out, " It lies within the range of the others.");
}

static void put_figures_answer(tare__text *out, const tare__emit_comparison *input)
{
    const tare__comparison *from = input->comparison;
    char least[TARE__UNIT_BYTES];
    size_t changed = from->better + from->worse + from->different, reported = from->n - from->inconclusive;
    const tare__compared *row = main_row(from);
    if (from->n == 0) {
        tare__text_string(out, "Nothing to compare: baseline and candidate have no figure in common.");
        return;
    }
    if (!changed && from->inconclusive && (from->base->runs > 1) != (from->head->runs > 1)) {
        put_place(out, from);
        return;
    }
    if (!changed) {
        if (reported)
            tare__text_format(out, "No significant change in %zu figure%s (minimum change: %s)", reported,
                              reported == 1 ? "" : "s", tare__unit_percent(least, from->min_change));
        if (from->inconclusive)
            tare__text_format(out, "%s%zu figure%s inconclusive", reported ? "; " : "", from->inconclusive,
                              from->inconclusive == 1 ? " is" : "s are");
        tare__text_string(out, reported ? "." : ": too few values for a test.");
        return;
    }
    if (row && !input->ab) {
        bool exact = row->base->exact && row->head->exact;
        bool single = !exact && (from->base->runs < 2 || from->head->runs < 2);
        put_row_answer(out, row);
        tare__text_string(out, single ? " With one run per side this may be run-to-run variation. " : " ");
    }
    char figures[TARE__COUNTED_BYTES];
    tare__text_format(out, "Of %s %zu got worse, %zu better",
                      tare__unit_counted(figures, (double)from->n, "figure", NULL), from->worse, from->better);
    if (from->different)
        tare__text_format(out, ", %zu changed", from->different);
    tare__text_format(out, "; %zu without significant change", reported - changed);
    if (from->inconclusive)
        tare__text_format(out, ", %zu inconclusive", from->inconclusive);
    tare__text_string(out, ".");
}

void tare__compared_answer(tare__text *out, const tare__emit_comparison *input)
{
    if (input->ab)
        tare__text_format(out, "%s ", input->ab->answer);
    put_figures_answer(out, input);
    if (input->ab && input->comparison->n > input->comparison->inconclusive)
        tare__text_format(out,
                          " Only the answer for %s accounts for testing after every round; the other figures were "
                          "tested once, when it stopped.",
                          input->ab->figure);
}

int tare__emit_comparison_json(const void *what, const tare__emit_options *options, const tare__emit_sink *sink,
                               tare__error *error)
{
    const tare__emit_comparison *input = what;
    tare__text answer = {0};
    tare__compared_answer(&answer, input);
    tare__compare_view view = tare__compared_view(input, answer.data);
    int status = answer.failed ? tare__no_memory(error)
                               : tare__emit_document(&tare__document_compare, &view, options, sink, error);
    tare__text_free(&answer);
    return status;
}
