/* check: makes one row per figure: decides its change, checks its limit, and derives the outcome.
 * Owned by the calling thread.
 * Must not know files, nor how a check is shown. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tare.h"

typedef struct work {
    tare__check *check;
    const tare__check_options *options;
    double *scratch; /* aligned samples */
    double load;     /* tare__decide_load */
    tare__error *error;
} work;

/* ---- figures that are gated by default --------------------------------------------------------------------- */
/* The figures that users wait and pay for. Spans, operators and layers are parts of these: with hundreds of them,
 * some would fail by chance. */
static bool is_main(const tare__figure *figure)
{
    static const char *const whole[] = {"run.elapsed", "run.cpu", "run.peak_rss", "run.peak_gpu_memory"};
    static const char *const families[] = {"step", "epoch", "request", "model"};
    if (TARE__IS_ONE_OF(figure->name, whole))
        return true;
    for (size_t i = 0; i < TARE__COUNT_OF(families); i++) {
        size_t length = strlen(families[i]);
        if (strncmp(figure->name, families[i], length) == 0 && strchr(".:[", figure->name[length]))
            return true; /* strchr also finds the terminating NUL */
    }
    return figure->exact;
}

static const tare__threshold *threshold_for(const tare__check_options *options, const char *name,
                                            tare__threshold_kind kind)
{
    for (size_t i = options->n_thresholds; i-- > 0;)
        if (options->thresholds[i].kind == kind && tare__threshold_names(&options->thresholds[i], name))
            return &options->thresholds[i];
    return NULL;
}

static const char *kind_of(char out[48], const char *unit)
{
    if (strcmp(unit, "ns") == 0)
        return "a time";
    if (!*unit)
        return "a plain number";
    snprintf(out, 48, "in %.31s", unit);
    return out;
}

static int wrong_unit(const tare__threshold *threshold, const char *unit, const tare__figure *figure,
                      tare__error *error)
{
    char is[48], should[48];
    const char *hint = strcmp(figure->unit, "ns") == 0      ? ": write it as 100ms"
                       : strcmp(figure->unit, "bytes") == 0 ? ": write it as 2GB"
                                                            : "";
    return tare__fail(error, TARE_E_USAGE, "the threshold for '%.100s' is %s, but %.100s is %s%s",
                      threshold->name, kind_of(is, unit), figure->name, kind_of(should, figure->unit), hint);
}

/* ---- one row ------------------------------------------------------------------------------------------------ */
static int allow(work *work, tare__check_row *row, const tare__figure *figure, tare__allowance *gate)
{
    const tare__threshold *change = threshold_for(work->options, row->name, TARE__THRESHOLD_CHANGE);
    row->gated = work->check->base && figure->better != TARE__NEITHER &&
                 (change || work->options->all || is_main(figure));
    *gate = tare__decide_gate(row->base, row->head, work->check->share, work->load);
    if (!change)
        return 0;
    /* A figure named by a threshold is gated even if neither direction is better: then any change beyond it counts. */
    row->gated = work->check->base != NULL;
    gate->share = change->value;
    if (isnan(change->floor))
        return 0;
    gate->floor = change->floor;
    return tare__threshold_fits(change->floor_unit, row->unit)
               ? 0
               : wrong_unit(change, change->floor_unit, figure, work->error);
}

static int limit(work *work, tare__check_row *row, const tare__figure *figure)
{
    const tare__threshold *limit = threshold_for(work->options, row->name, TARE__THRESHOLD_LIMIT);
    if (!limit || !row->head) /* a missing figure gets a separate row */
        return 0;
    if (!tare__threshold_fits(limit->unit, row->unit))
        return wrong_unit(limit, limit->unit, figure, work->error);
    row->has_limit = true;
    row->limit = limit->value;
    double value = row->head->value;
    row->broken =
        !(row->better == TARE__HIGHER ? value >= row->limit : value <= row->limit); /* NaN breaks the limit */
    return 0;
}

/* A figure present on one side only. */
static void judge_absent(tare__check_row *row)
{
    row->reason = row->head ? "the baseline has no such figure" : "only the baseline has this figure";
    row->outcome = row->has_limit ? TARE__OUTCOME_PASSED : TARE__OUTCOME_ABSENT;
}

static bool is_worse(const tare__check_row *row)
{
    double change = row->decision.change;
    return row->better == TARE__NEITHER || (row->better == TARE__LOWER ? change > 0 : change < 0);
}

/* A figure that cannot be tested passes while its change is within the gate or an improvement. A lower bound shows
 * neither. */
static bool is_doubtful(const tare__check_row *row)
{
    tare__why why = row->decision.why;
    if (!row->gated)
        return false;
    return why == TARE__WHY_BOUND || why == TARE__WHY_UNITS ||
           (is_worse(row) && tare__decide_is_beyond(&row->decision));
}

static bool is_named(const work *work, const tare__check_row *row)
{
    return threshold_for(work->options, row->name, TARE__THRESHOLD_CHANGE) != NULL;
}

static void judge(tare__check_row *row, bool named)
{
    row->reason = tare__why_text(row->decision.why);
    switch (row->decision.verdict) {
    case TARE__VERDICT_WORSE: row->outcome = row->gated ? TARE__OUTCOME_FAILED : TARE__OUTCOME_CHANGED; break;
    case TARE__VERDICT_DIFFERENT: row->outcome = named ? TARE__OUTCOME_FAILED : TARE__OUTCOME_CHANGED; break;
    case TARE__VERDICT_BETTER: row->outcome = TARE__OUTCOME_IMPROVED; break;
    case TARE__VERDICT_INCONCLUSIVE:
        if (row->decision.why == TARE__WHY_ABSENT)
            judge_absent(row);
        else
            row->outcome = is_doubtful(row) ? TARE__OUTCOME_INCONCLUSIVE : TARE__OUTCOME_PASSED;
        break;
    default: row->outcome = TARE__OUTCOME_PASSED; break;
    }
    if (row->broken) {
        row->outcome = TARE__OUTCOME_FAILED;
        row->reason = row->better == TARE__HIGHER ? "below its limit" : "above its limit";
    }
}

static int add_row(work *work, const tare__figure *base, const tare__figure *head)
{
    const tare__figure *figure = head ? head : base;
    tare__check_row *row = &work->check->rows[work->check->n];
    tare__allowance gate;
    *row = (tare__check_row){.name = figure->name,
                             .unit = figure->unit,
                             .base = base,
                             .head = head,
                             .limit = NAN,
                             .better = figure->better};
    int status = allow(work, row, figure, &gate);
    if (!status)
        status = limit(work, row, figure);
    if (status)
        return status;
    row->decision = tare__decide_figures(base, head, false, &gate, work->scratch);
    work->check->n++;
    return tare__decide_ran_out(&row->decision, work->scratch) ? TARE_E_MEMORY : 0;
}

/* Runs once all rows are decided: corrected as in a comparison, except for figures that a threshold names, which are
 * tested individually. */
static int judge_all(work *work)
{
    tare__check *check = work->check;
    tare__decision **family = malloc((check->n + 1) * sizeof(tare__decision *));
    int status = family ? 0 : TARE_E_MEMORY;
    for (int i = 1; i < TARE__FAMILIES && !status; i++) {
        size_t n = 0;
        for (size_t k = 0; k < check->n; k++)
            if (tare__decide_family(check->rows[k].name) == i && !is_named(work, &check->rows[k]))
                family[n++] = &check->rows[k].decision;
        status = tare__decide_adjust(family, n);
    }
    for (size_t k = 0; k < check->n && !status; k++)
        judge(&check->rows[k], is_named(work, &check->rows[k]));
    free(family);
    return status;
}

/* ---- thresholds without a matching figure ------------------------------------------------------------------- */
static bool names_some(const tare__threshold *threshold, const tare__figures *figures)
{
    for (size_t i = 0; figures && i < figures->n; i++)
        if (tare__threshold_names(threshold, figures->rows[i].name))
            return true;
    return false;
}

/* A threshold for a missing figure must not pass. */
static void add_missing(work *work)
{
    for (size_t i = 0; i < work->options->n_thresholds; i++) {
        const tare__threshold *threshold = &work->options->thresholds[i];
        if (names_some(threshold, work->check->head))
            continue;
        const tare__measured none = {NULL, 0, NAN};
        tare__decision missing = tare__decide(&none, &none, &(tare__question){.cannot = TARE__WHY_FEW});
        missing.requested.gate.share = threshold->kind == TARE__THRESHOLD_CHANGE ? threshold->value : NAN;
        work->check->rows[work->check->n++] = (tare__check_row){
            .name = threshold->name,
            .unit = threshold->unit,
            .has_limit = threshold->kind == TARE__THRESHOLD_LIMIT,
            .limit = threshold->kind == TARE__THRESHOLD_LIMIT ? threshold->value : NAN,
            .gated = true,
            .decision = missing,
            .outcome = TARE__OUTCOME_FAILED,
            .reason = names_some(threshold, work->check->base) ? "only the baseline has this figure"
                                                               : "there is no such figure",
        };
    }
}

/* ---- entry points ------------------------------------------------------------------------------------------- */
#define SIZE_OF_CHANGE(row) (isnan((row)->decision.change) ? -1 : fabs((row)->decision.change))
TARE__ORDER(by_outcome, tare__check_row, TARE__RISING(outcome) TARE__FALLING(gated) TARE__FALLING_BY(SIZE_OF_CHANGE)
            TARE__BY_TEXT(name))

/* A figure with a value on one side only is not compared, so it cannot count as passed. */
static bool could_fail(const tare__check_row *row)
{
    return row->has_limit || row->outcome == TARE__OUTCOME_FAILED ||
           (row->gated && row->outcome != TARE__OUTCOME_ABSENT);
}

static void count(tare__check *check)
{
    memset(check->count, 0, sizeof check->count);
    check->gated = 0;
    for (size_t i = 0; i < check->n; i++) {
        check->count[check->rows[i].outcome]++;
        check->gated += could_fail(&check->rows[i]);
    }
    if (check->n)
        qsort(check->rows, check->n, sizeof(*check->rows), by_outcome);
}

static void compare_sides(tare__check *check, const tare__check_options *options)
{
    const tare__figures *base = check->base, *head = check->head;
    if (!base)
        return;
    check->other_machine = !tare__decide_same_machine(base, head);
    if (isnan(options->share))
        check->share = tare__decide_share(base, head);
}

static int fill(work *work)
{
    const tare__figures *base = work->check->base, *head = work->check->head;
    int status = 0;
    work->load = base ? tare__decide_load(base, head) : 0;
    for (size_t i = 0; i < head->n && !status; i++)
        status = add_row(work, base ? tare__figures_find(base, head->rows[i].name) : NULL, &head->rows[i]);
    for (size_t i = 0; base && i < base->n && !status; i++)
        if (!tare__figures_find(head, base->rows[i].name))
            status = add_row(work, &base->rows[i], NULL);
    if (!status)
        status = judge_all(work);
    if (!status)
        add_missing(work);
    return status;
}

int tare__check_figures(const tare__figures *base, const tare__figures *head,
                        const tare__check_options *options, tare__check **check, tare__error *error)
{
    tare__arena *arena = tare__arena_new();
    tare__check *made = arena ? tare__arena_alloc(arena, sizeof(*made)) : NULL;
    work work = {.check = made,
                 .options = options,
                 .error = error,
                 .scratch = malloc(2 * TARE__FIGURE_SAMPLES_MAX * sizeof(double))};
    size_t rows = head->n + (base ? base->n : 0) + options->n_thresholds;
    int status = TARE_E_MEMORY;
    *check = NULL;
    if (made && work.scratch) {
        *made = (tare__check){.base = base, .head = head, .share = options->share, .arena = arena};
        made->rows = tare__arena_alloc(arena, (rows + 1) * sizeof(*made->rows));
        made->warnings = tare__arena_alloc(arena, TARE__CHECK_WARNINGS * sizeof(*made->warnings));
        if (made->rows && made->warnings) {
            compare_sides(made, options);
            tare__check_warn_of_sides(made);
            status = fill(&work);
        }
    }
    free(work.scratch);
    if (status) {
        tare__arena_free(arena);
        return status == TARE_E_MEMORY ? tare__fail(error, status, "out of memory") : status;
    }
    count(made);
    tare__check_advise(made);
    *check = made;
    return 0;
}

void tare__check_free(tare__check *check)
{
    if (check)
        tare__arena_free(check->arena);
}

/* ---- rerun -------------------------------------------------------------------------------------------------- */
static const tare__check_row *same_row(const tare__check *check, const char *name)
{
    for (size_t i = 0; i < check->n; i++)
        if (strcmp(check->rows[i].name, name) == 0)
            return &check->rows[i];
    return NULL;
}

static bool is_open(const tare__check_row *row)
{
    return row->outcome == TARE__OUTCOME_FAILED || row->outcome == TARE__OUTCOME_INCONCLUSIVE;
}

/* In a rerun of the same program, exact figures such as FLOPs and missing figures stay the same. */
static bool can_differ(const tare__check_row *row)
{
    return is_open(row) && row->head && !row->head->exact;
}

void tare__check_confirm(tare__check *check, const tare__check *again)
{
    check->rerun = true;
    for (size_t i = 0; i < check->n; i++) {
        tare__check_row *row = &check->rows[i];
        const tare__check_row *second = can_differ(row) ? same_row(again, row->name) : NULL;
        if (!second || !second->head)
            continue;
        row->decision = second->decision; /* now based on the rerun; its figures belong to the other check */
        row->broken = second->broken;
        if (is_open(second)) {
            row->outcome = second->outcome;
            row->reason = second->outcome == TARE__OUTCOME_FAILED ? "confirmed by running it again" : second->reason;
        } else {
            row->outcome = TARE__OUTCOME_CLEARED;
            row->reason = "not confirmed by running it again";
        }
    }
    count(check);
    check->n_warnings = check->advice;
    tare__check_advise(check);
}

bool tare__check_wants_again(const tare__check *check)
{
    bool many = check->base && check->base->runs > 1; /* with a single run, another one is just as inconclusive */
    for (size_t i = 0; i < check->n; i++)
        if (can_differ(&check->rows[i]) && (many || check->rows[i].outcome == TARE__OUTCOME_FAILED))
            return true;
    return false;
}

bool tare__check_passed(const tare__check *check)
{
    /* A check that compares nothing must not pass. */
    return check->count[TARE__OUTCOME_FAILED] == 0 && check->gated > 0 && !check->unconfirmed;
}

/* ---- words -------------------------------------------------------------------------------------------------- */
const char *tare__outcome_word(tare__outcome outcome)
{
    static const char *const words[] = {
        [TARE__OUTCOME_FAILED] = "failed",     [TARE__OUTCOME_INCONCLUSIVE] = "inconclusive",
        [TARE__OUTCOME_CLEARED] = "cleared",   [TARE__OUTCOME_CHANGED] = "changed",
        [TARE__OUTCOME_IMPROVED] = "improved", [TARE__OUTCOME_PASSED] = "passed",
        [TARE__OUTCOME_ABSENT] = "absent",
    };
    return words[outcome];
}
