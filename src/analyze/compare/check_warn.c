/* check_warn: warnings that accompany the rows of a check, in sentences.
 * Owned by the calling thread.
 * Must not know how figures are tested, nor how sentences are shown. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "compare.h"

#define NOTES_MAX 4 /* per side; its report has all of them */

static void warn(tare__check *check, const char *format, ...) TARE__PRINTF(2, 3);

static void warn(tare__check *check, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const char *copy = tare__arena_copy(check->arena, sentence, strlen(sentence));
    if (copy && check->n_warnings < TARE__CHECK_WARNINGS)
        check->warnings[check->n_warnings++] = copy;
}

static bool differ(const char *a, const char *b)
{
    return a && b && strcmp(a, b) != 0;
}

static const char *known(const char *text)
{
    return text ? text : "not known";
}

/* Data missing in a trace is also missing in its figures. */
static void pass_on_notes(tare__check *check, const char *side, const tare__figures *figures)
{
    for (size_t i = 0; i < figures->n_notes && i < NOTES_MAX; i++)
        warn(check, "%s: %.400s", side, figures->notes[i]);
}

void tare__check_warn_of_sides(tare__check *check)
{
    const tare__figures *base = check->base, *head = check->head;
    if (base && differ(base->machine, head->machine))
        warn(check, "the baseline is of another machine (%.100s, %.100s; this is %.100s, %.100s): the gate is %g %%",
             known(base->host), known(base->cpu_model), known(head->host), known(head->cpu_model), check->share * 100);
    else if (check->other_machine)
        warn(check, "it is not known whether the baseline is of this machine: the gate is %g %%", check->share * 100);
    if (base && differ(base->command, head->command))
        warn(check, "the baseline is of another command: %.200s", base->command);
    char room[256];
    static const char *const sides[] = {"the baseline", "this run"};
    const char *waited = base ? tare__compare_waiting(base, head, sides, room, sizeof room) : NULL;
    if (waited)
        warn(check, "%s", waited);
    pass_on_notes(check, "this run", head);
    if (base)
        pass_on_notes(check, "the baseline", base);
}

/* ---- number of runs ----------------------------------------------------------------------------------------- */
/* Figures with one value per run: with one run on each side, no change can be significant. */
static bool is_single(const tare__check_row *row)
{
    return row->gated && row->outcome != TARE__OUTCOME_ABSENT && row->base && row->head &&
           !row->head->exact && isnan(row->decision.p);
}

/* The figure has a limit, is exact, or has samples. */
static bool is_able(const tare__check_row *row)
{
    return row->has_limit || (row->gated && row->outcome != TARE__OUTCOME_ABSENT && !is_single(row));
}

static void explain_single(tare__check *check)
{
    const tare__figures *base = check->base, *head = check->head;
    const char *first = NULL;
    size_t singles = 0, able = 0;
    for (size_t i = 0; i < check->n; i++) {
        able += is_able(&check->rows[i]);
        if (is_single(&check->rows[i]) && ++singles == 1)
            first = check->rows[i].name;
    }
    if (!base || !singles || (base->runs > 1 && head->runs > 1))
        return;
    const char *more = singles == 1 ? "" : ", …";
    if (base->runs > 1 || head->runs > 1)
        warn(check,
             "one run against %llu: changes of measured figures are inconclusive, and none can fail. Check several "
             "runs (--rerun makes 5)", (unsigned long long)(base->runs > 1 ? base->runs : head->runs));
    else if (!able)
        warn(check,
             "one run per side, and every gated figure (%.60s%s) has a single value: no change can fail this check. "
             "Use 5 runs per side, or a limit such as --threshold run.elapsed:10s", first, more);
    else
        warn(check,
             "one run per side: %zu gated figure%s (%.60s%s) %s a single value and cannot fail; only figures with "
             "many samples in a run (steps, calls) can. With 5 runs per side all of them can",
             singles, singles == 1 ? "" : "s", first, more, singles == 1 ? "has" : "have");
}

/* Too few runs are the most common cause of inconclusive results; the advice is to make more. */
void tare__check_advise(tare__check *check)
{
    check->advice = check->n_warnings;
    if (!check->rerun)
        explain_single(check);
    if (check->count[TARE__OUTCOME_INCONCLUSIVE] && check->n_warnings == check->advice)
        warn(check,
             "%zu figure%s beyond the gate but inconclusive: too few samples, or a lower bound. 5 runs per side "
             "are enough for a test",
             check->count[TARE__OUTCOME_INCONCLUSIVE], check->count[TARE__OUTCOME_INCONCLUSIVE] == 1 ? " is" : "s are");
}

/* A baseline of one run cannot be tested against several: it has drifted if it lies outside all of them. */
static bool has_drifted(const tare__check_row *row)
{
    const tare__decision *decision = &row->decision;
    if (!row->gated || tare__decide_differs(decision))
        return row->gated && !decision->requested.exact;
    if (decision->why != TARE__WHY_ONE_AND_MANY || !tare__decide_is_beyond(decision) || row->head->n_samples < 5)
        return false;
    for (size_t i = 0; i < row->head->n_samples; i++)
        if ((row->head->samples[i] > row->base->value) != (row->head->value > row->base->value))
            return false;
    return true;
}

void tare__check_warn_of_drift(tare__check *check, const tare__check *recent, size_t revisions)
{
    const tare__check_row *worst = NULL;
    size_t found = 0;
    for (size_t i = 0; i < recent->n; i++) {
        const tare__check_row *row = &recent->rows[i];
        if (!has_drifted(row))
            continue;
        found++;
        if (!worst || fabs(row->decision.change) > fabs(worst->decision.change))
            worst = row;
    }
    if (worst)
        warn(check,
             "the baseline has drifted: in the last %zu revisions of the history %zu figure%s differ%s from it (%.60s "
             "%+.1f %%), so that this check shows that drift as well. Save a new baseline, or omit --baseline to "
             "compare with recent runs",
             revisions, found, found == 1 ? "" : "s", found == 1 ? "s" : "", worst->name, worst->decision.change * 100);
}

void tare__check_fail_again(tare__check *check, const char *sentence)
{
    check->unconfirmed = true;
    warn(check, "%s", sentence);
}
