/* decide: significance AND effect AND an absolute floor; exact figures need no significance.
 * Pure functions; any thread.
 * Must not know where the figures come from. */
#include "decide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIDENCE  0.95
#define FLOOR_NS    1000.0
#define FLOOR_BYTES 1048576.0

static double value_of(const tare__measured *side)
{
    return isnan(side->value) ? tare__median(side->samples, side->n) : side->value;
}

static double change_of(double base, double head)
{
    if (base == head)
        return 0;
    return (head - base) / fabs(base); /* from 0 it is infinite, with the sign of the change */
}

/* The smallest p that samples of these sizes can have: all of one above all of the other. */
bool tare__decide_can_tell(size_t n, size_t m, double p)
{
    double share = 2; /* two-sided: 2 / C(n + m, n) */
    size_t few = n < m ? n : m, many = n < m ? m : n;
    for (size_t i = 1; i <= few && share > p; i++)
        share *= (double)i / (double)(many + i);
    return few > 0 && share <= p;
}

double tare__decide_floor(const char *unit)
{
    return strcmp(unit, "ns") == 0 ? FLOOR_NS : strcmp(unit, "bytes") == 0 ? FLOOR_BYTES : 0;
}

/* Which way it went, once it is known to matter. */
static tare__decided direction(double change, tare__better better)
{
    if (better == TARE__NEITHER)
        return TARE__DECIDED_CHANGED;
    return (change > 0) == (better == TARE__LOWER) ? TARE__DECIDED_REGRESSED : TARE__DECIDED_IMPROVED;
}

/* Of what has noise and is large enough. */
static tare__why significance(const tare__decision *decision, double p)
{
    if (isnan(decision->test.p) || !tare__decide_can_tell(decision->n_base, decision->n_head, p))
        return TARE__WHY_FEW;
    return decision->test.p <= p ? TARE__WHY_SIGNIFICANT : TARE__WHY_NOISE;
}

static tare__why reason(const tare__decision *decision, bool exact, const tare__allowance *gate)
{
    if (isnan(decision->change))
        return TARE__WHY_ABSENT;
    if (decision->change == 0)
        return TARE__WHY_EQUAL;
    if (fabs(decision->change) <= gate->share)
        return TARE__WHY_SHARE;
    if (fabs(decision->head - decision->base) <= gate->floor)
        return TARE__WHY_FLOOR;
    return exact ? TARE__WHY_EXACT : significance(decision, gate->p > 0 ? gate->p : TARE__GATE_P);
}

static tare__decided verdict(const tare__decision *decision, tare__better better)
{
    switch (decision->why) {
    case TARE__WHY_ABSENT: return TARE__DECIDED_ABSENT;
    case TARE__WHY_FEW: return TARE__DECIDED_UNSURE;
    case TARE__WHY_SIGNIFICANT:
    case TARE__WHY_EXACT: return direction(decision->change, better);
    default: return TARE__DECIDED_SAME;
    }
}

tare__decision tare__decide(const tare__measured *base, const tare__measured *head, tare__better better,
                            bool exact, const tare__allowance *gate)
{
    tare__decision decision = {.base = value_of(base),
                               .head = value_of(head),
                               .n_base = base->n,
                               .n_head = head->n,
                               .test = {NAN, NAN, NAN, NAN, false}};
    decision.change = change_of(decision.base, decision.head);
    if (base->n && head->n)
        decision.test = tare__mann_whitney(base->samples, base->n, head->samples, head->n);
    decision.why = reason(&decision, exact, gate);
    decision.verdict = verdict(&decision, better);
    return decision;
}

/* NULL: no memory, or a value has no logarithm. */
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

tare__estimate tare__decide_ratio(const tare__measured *base, const tare__measured *head)
{
    tare__estimate ratio = {NAN, NAN, NAN, CONFIDENCE, base->n < head->n ? base->n : head->n};
    double *before = logs_of(base), *after = logs_of(head);
    if (before && after && base->n && head->n)
        ratio = tare__shift(before, base->n, after, head->n, CONFIDENCE);
    free(before);
    free(after);
    ratio.value = exp(ratio.value);
    ratio.low = exp(ratio.low);
    ratio.high = exp(ratio.high);
    return ratio;
}

const char *tare__decided_word(tare__decided verdict)
{
    static const char *const words[] = {
        [TARE__DECIDED_ABSENT] = "absent",   [TARE__DECIDED_SAME] = "same",
        [TARE__DECIDED_UNSURE] = "unsure",   [TARE__DECIDED_IMPROVED] = "improved",
        [TARE__DECIDED_CHANGED] = "changed", [TARE__DECIDED_REGRESSED] = "regressed",
    };
    return words[verdict];
}

const char *tare__why_text(tare__why why)
{
    static const char *const texts[] = {
        [TARE__WHY_ABSENT] = "there is no value to compare with",
        [TARE__WHY_EQUAL] = "equal",
        [TARE__WHY_SHARE] = "within the gate",
        [TARE__WHY_FLOOR] = "too small to matter",
        [TARE__WHY_NOISE] = "not significant",
        [TARE__WHY_FEW] = "too few samples to tell it from noise",
        [TARE__WHY_SIGNIFICANT] = "significant",
        [TARE__WHY_EXACT] = "exact figures differ",
    };
    return texts[why];
}
