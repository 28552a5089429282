/* decide: significance AND effect AND an absolute floor; exact figures need no significance.
 * Pure functions; any thread.
 * Must not know where the figures come from. */
#include "decide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tare.h"

#define CONFIDENCE  0.95
#define FLOOR_NS    1000.0
#define FLOOR_BYTES 1048576.0

/* ---- tests ------------------------------------------------------------------------------------- */
static double value_of(const tare__measured *side)
{
    return isnan(side->value) ? tare__median(side->samples, side->n) : side->value;
}

static double change_of(double base, double head)
{
    if (base == head)
        return 0;
    return (head - base) / fabs(base); /* infinite when base is 0, with the sign of the change */
}

/* NULL: out of memory, or a value has no logarithm. */
static double *logs_of(const tare__measured *side)
{
    double *logs = malloc((side->n ? side->n : 1) * sizeof(*logs));
    for (size_t i = 0; logs && i < side->n; i++) {
        if (!(side->samples[i] > 0)) {
            free(logs);
            return NULL;
        }
        logs[i] = log(side->samples[i]);
    }
    return logs;
}

/* Hodges-Lehmann shift of logarithms: its interval matches the test whose p is shown. The shift is based on all
 * ratios and the change on the medians: where skewed samples put the change outside the interval, it is widened. */
static void find_interval(tare__decision *decision, const tare__measured *base, const tare__measured *head)
{
    double *before = logs_of(base), *after = logs_of(head);
    if (before && after) {
        tare__estimate shift = tare__shift(before, base->n, after, head->n, CONFIDENCE);
        decision->low = fmin(expm1(shift.low), decision->change); /* fmin ignores NaN */
        decision->high = fmax(expm1(shift.high), decision->change);
        if (isnan(shift.low) || isnan(shift.high))
            decision->low = decision->high = NAN;
    }
    free(before);
    free(after);
}

static void test_pairs(tare__decision *decision, const tare__measured *base, const tare__measured *head)
{
    tare__sequential pairs = tare__paired_test(base->samples, head->samples, base->n, CONFIDENCE);
    if (isnan(pairs.ratio.value)) { /* pairs with 0 have no ratio */
        decision->requested.paired = false;
        return;
    }
    decision->p = pairs.p;
    decision->change = pairs.ratio.value - 1;
    decision->low = pairs.ratio.low - 1;
    decision->high = pairs.ratio.high - 1;
}

static void test(tare__decision *decision, const tare__measured *base, const tare__measured *head)
{
    tare__rank_test ranks = tare__mann_whitney(base->samples, base->n, head->samples, head->n);
    decision->p = ranks.p;
    decision->effect = ranks.cliffs_delta;
    if (decision->requested.paired)
        test_pairs(decision, base, head);
    else
        find_interval(decision, base, head);
    decision->adjusted = decision->p;
}

/* Compares with the smallest p possible for these sample sizes: all values of one side above all of the other. */
bool tare__decide_can_tell(size_t n, size_t m, double p)
{
    double share = 2; /* two-sided: 2 / C(n + m, n) */
    size_t few = n < m ? n : m, many = n < m ? m : n;
    for (size_t i = 1; i <= few && share > p; i++)
        share *= (double)i / (double)(many + i);
    return few > 0 && share <= p;
}

static bool pairs_can_tell(size_t n, double p)
{
    return ldexp(2, -(int)(n < 1000 ? n : 1000)) <= p; /* all signs are equal */
}

double tare__decide_floor(const char *unit)
{
    return strcmp(unit, "ns") == 0 ? FLOOR_NS : strcmp(unit, "bytes") == 0 ? FLOOR_BYTES : 0;
}

double tare__decide_share_of(size_t base_runs, size_t head_runs, bool same_machine)
{
    bool alone = base_runs < 2 || head_runs < 2;
    return alone || !same_machine ? TARE__GATE_SHARE_WIDE : TARE__GATE_SHARE;
}

static double median_of(double *values, size_t n)
{
    tare__sort(values, n);
    return tare__quantile_sorted(values, n, 0.5);
}

size_t tare__decide_blocks(double *samples, size_t n)
{
    if (n <= TARE__DECIDE_BLOCKS)
        return n;
    for (size_t i = 0; i < TARE__DECIDE_BLOCKS; i++) {
        size_t from = n * i / TARE__DECIDE_BLOCKS, to = n * (i + 1) / TARE__DECIDE_BLOCKS;
        samples[i] = median_of(samples + from, to - from); /* `from` is never below i */
    }
    return TARE__DECIDE_BLOCKS;
}

/* ---- the rule ---------------------------------------------------------------------------------- */
static double level_of(const tare__decision *decision)
{
    return decision->requested.gate.p > 0 ? decision->requested.gate.p : TARE__GATE_P;
}

static bool can_tell(const tare__decision *decision)
{
    if (isnan(decision->p))
        return false;
    return decision->requested.paired ? pairs_can_tell(decision->n_base, level_of(decision))
                                  : tare__decide_can_tell(decision->n_base, decision->n_head, level_of(decision));
}

static tare__why beyond(const tare__decision *decision)
{
    const tare__allowance *gate = &decision->requested.gate;
    if (decision->change == 0)
        return TARE__WHY_EQUAL;
    if (fabs(decision->change) <= gate->share)
        return TARE__WHY_SHARE;
    return fabs(decision->head - decision->base) <= gate->floor ? TARE__WHY_FLOOR : TARE__WHY_SIGNIFICANT;
}

bool tare__decide_is_beyond(const tare__decision *decision)
{
    return !isnan(decision->change) && beyond(decision) == TARE__WHY_SIGNIFICANT;
}

/* A lower bound is conclusive only if its whole range lies on one side of the other figure. */
static bool is_open(const tare__decision *decision)
{
    const bool *bound = decision->requested.bound;
    if (bound[0] && bound[1])
        return true;
    return (bound[0] && decision->head >= decision->base) || (bound[1] && decision->head <= decision->base);
}

static bool is_significant(const tare__decision *decision)
{
    bool no_interval = isnan(decision->low) || isnan(decision->high);
    bool apart = no_interval ? (decision->effect > 0) == (decision->change > 0)
                             : decision->low > 0 || decision->high < 0;
    return decision->adjusted <= level_of(decision) && apart;
}

/* In a run that competes for CPUs, only some steps wait, so their median may change by more than the whole run does:
 * by up to the square of that, as measured on loaded machines. */
static bool is_explained(const tare__decision *decision)
{
    double load = decision->requested.gate.load, factor = (1 + fabs(load)) * (1 + fabs(load));
    if (load == 0 || (load > 0) != (decision->change > 0))
        return false;
    double nearest = load > 0 ? decision->low : decision->high;
    nearest = isnan(nearest) ? decision->change : nearest;
    return load > 0 ? 1 + nearest < factor : 1 + nearest > 1 / factor;
}

static tare__why reason(const tare__decision *decision)
{
    if (decision->requested.cannot == TARE__WHY_UNITS)
        return TARE__WHY_UNITS;
    if (isnan(decision->change))
        return TARE__WHY_ABSENT;
    if (is_open(decision))
        return TARE__WHY_BOUND;
    tare__why size = beyond(decision);
    if (decision->requested.exact)
        return size == TARE__WHY_SIGNIFICANT ? TARE__WHY_EXACT : size;
    if (!can_tell(decision))
        return decision->requested.cannot;
    if (size != TARE__WHY_SIGNIFICANT)
        return size;
    if (!is_significant(decision))
        return TARE__WHY_NOISE;
    return is_explained(decision) ? TARE__WHY_LOAD : TARE__WHY_SIGNIFICANT;
}

/* Direction of a change that is known to matter. */
static tare__verdict direction(double change, tare__better better)
{
    if (better == TARE__NEITHER)
        return TARE__VERDICT_DIFFERENT;
    return (change > 0) == (better == TARE__LOWER) ? TARE__VERDICT_WORSE : TARE__VERDICT_BETTER;
}

/* Recomputes the verdict after `adjusted`, `p` or the gate was set. */
static void decide_again(tare__decision *decision)
{
    decision->why = reason(decision);
    switch (decision->why) {
    case TARE__WHY_EQUAL:
    case TARE__WHY_SHARE:
    case TARE__WHY_FLOOR:
    case TARE__WHY_NOISE: decision->verdict = TARE__VERDICT_SAME; break;
    case TARE__WHY_SIGNIFICANT:
    case TARE__WHY_EXACT: decision->verdict = direction(decision->change, decision->requested.better); break;
    default: decision->verdict = TARE__VERDICT_INCONCLUSIVE; break;
    }
}

tare__decision tare__decide(const tare__measured *base, const tare__measured *head, const tare__question *question)
{
    tare__decision decision = {.base = value_of(base),
                               .head = value_of(head),
                               .low = NAN,
                               .high = NAN,
                               .p = NAN,
                               .adjusted = NAN,
                               .effect = NAN,
                               .n_base = base->n,
                               .n_head = head->n,
                               .requested = *question};
    decision.requested.paired = question->paired && base->n == head->n;
    decision.change = change_of(decision.base, decision.head);
    if (base->n && head->n && !question->exact)
        test(&decision, base, head);
    decide_again(&decision);
    return decision;
}

tare__decision tare__decide_rounds(const double *base, const double *head, size_t n,
                                   const tare__sequential_plan *plan, const tare__question *question)
{
    const tare__measured a = {base, n, NAN}, b = {head, n, NAN};
    tare__decision decision = tare__decide(&a, &b, question);
    double level = tare__sequential_level(plan, n), share = question->gate.share;
    tare__sequential now = tare__paired_test(base, head, n, 1 - level);
    decision.requested.paired = true;
    decision.requested.gate.p = level > 0 ? level : 1e-300;
    decision.p = decision.adjusted = now.p;
    decision.change = now.ratio.value - 1;
    decision.low = level > 0 ? now.ratio.low - 1 : NAN;
    decision.high = level > 0 ? now.ratio.high - 1 : NAN;
    decide_again(&decision);
    bool within = decision.low > -share && decision.high < share;
    if (!tare__decide_differs(&decision) && !within)
        decision.verdict = TARE__VERDICT_INCONCLUSIVE;
    return decision;
}

bool tare__decide_differs(const tare__decision *decision)
{
    return decision->verdict != TARE__VERDICT_SAME && decision->verdict != TARE__VERDICT_INCONCLUSIVE;
}

/* ---- multiple testing: of fifty unchanged figures, one has p < 0.02 ----------------------------- */
TARE__ORDER_OF_POINTERS(by_p, tare__decision, TARE__RISING(p))

int tare__decide_adjust(tare__decision *const *decisions, size_t n)
{
    tare__decision **tested = malloc((n + 1) * sizeof(tare__decision *));
    size_t count = 0;
    double least = 1;
    if (!tested)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        if (!isnan(decisions[i]->p))
            tested[count++] = decisions[i];
    qsort(tested, count, sizeof *tested, by_p);
    for (size_t rank = count; rank > 0; rank--) {
        double adjusted = tested[rank - 1]->p * (double)count / (double)rank;
        least = adjusted < least ? adjusted : least;
        tested[rank - 1]->adjusted = least;
        decide_again(tested[rank - 1]);
    }
    free(tested);
    return 0;
}

/* ---- words --------------------------------------------------------------------------------------- */
const char *tare__verdict_word(tare__verdict verdict)
{
    static const char *const words[] = {"same", "better", "worse", "different", "inconclusive"};
    return words[verdict];
}

const char *tare__why_text(tare__why why)
{
    static const char *const texts[] = {
        [TARE__WHY_ABSENT] = "one side has no value",
        [TARE__WHY_UNITS] = "different units",
        [TARE__WHY_EQUAL] = "equal",
        [TARE__WHY_SHARE] = "below the minimum change",
        [TARE__WHY_FLOOR] = "too small to matter",
        [TARE__WHY_NOISE] = "not significant",
        [TARE__WHY_FEW] = "too few samples for a significance test",
        [TARE__WHY_ONE_AND_MANY] =
            ("one run against several: variation within a run says nothing about variation between runs"),
        [TARE__WHY_COUNTED] = "counted per call on one side and per step on the other",
        [TARE__WHY_LOAD] = "one run per side, and one of them competed with other processes for CPUs",
        [TARE__WHY_BOUND] = "a lower bound: the real value may be higher",
        [TARE__WHY_SIGNIFICANT] = "significant",
        [TARE__WHY_EXACT] = "exact figures differ",
    };
    return texts[why];
}
