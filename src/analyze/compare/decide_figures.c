/* decide_figures: applies the rule to two figures of one name: aligns their samples and determines the gate.
 * Pure functions; any thread.
 * Must not know what the decision is for. */
#include <math.h>
#include <string.h>

#include "analyze/analyze.h"
#include "decide.h"

static bool is_of_runs(const tare__figure *figure)
{
    return figure->per && strcmp(figure->per, "run") == 0;
}

bool tare__decide_same_machine(const tare__figures *base, const tare__figures *head)
{
    return base->machine && head->machine && strcmp(base->machine, head->machine) == 0;
}

/* Slowdown of a run that competes for CPUs, relative to an idle machine; 1 if not known. */
static double stretched(const tare__figures *figures)
{
    const tare__figure *wait = tare__figures_find(figures, "run.cpu_wait"),
                       *cpu = tare__figures_find(figures, "run.cpu");
    return wait && cpu && wait->value > 0 && cpu->value > 0 ? 1 + wait->value / cpu->value : 1;
}

double tare__decide_load(const tare__figures *base, const tare__figures *head)
{
    if (base->runs > 1 || head->runs > 1)
        return 0;
    double before = stretched(base), after = stretched(head);
    double more = fmax(before, after) / fmin(before, after) - 1;
    return more <= TARE__GATE_SHARE_WIDE ? 0 : after > before ? more : -more;
}

/* The effect of load on a figure: times increase, rates decrease, memory is unchanged. */
static double load_on(const char *unit, double load)
{
    size_t length = strlen(unit);
    bool rate = length > 2 && strcmp(unit + length - 2, "/s") == 0;
    return strcmp(unit, "bytes") == 0 ? 0 : rate ? -load : load;
}

double tare__decide_share(const tare__figures *base, const tare__figures *head)
{
    return tare__decide_share_of(base->runs, head->runs, tare__decide_same_machine(base, head));
}

int tare__decide_family(const char *name)
{
    const char *rest;
    tare__section section = tare__section_of(name, &rest);
    return section == TARE__SECTION_WHOLE ? 0 : section < TARE__SECTION_COUNTERS ? 1 : 2;
}

static tare__why why_not(const tare__figure *base, const tare__figure *head)
{
    if (is_of_runs(base) != is_of_runs(head))
        return TARE__WHY_ONE_AND_MANY;
    return base->n_samples && head->n_samples ? TARE__WHY_COUNTED : TARE__WHY_FEW;
}

tare__allowance tare__decide_gate(const tare__figure *base, const tare__figure *head, double share, double load)
{
    const tare__figure *one = head ? head : base;
    bool exact = (!base || base->exact) && (!head || head->exact);
    /* Parts have no floor: a kernel of 3 µs may run a million times, so that small changes per call matter. */
    bool part = tare__decide_family(one->name) == 1;
    return (tare__allowance){.share = exact ? 0 : share,
                             .floor = exact || part ? 0 : tare__decide_floor(one->unit),
                             .load = exact ? 0 : load_on(one->unit, load)};
}

bool tare__decide_ran_out(const tare__decision *decision, const double *scratch)
{
    if (!decision->n_base || !decision->n_head || decision->requested.exact || !isnan(decision->p))
        return false;
    for (size_t i = 0; i < decision->n_base; i++)
        if (isnan(scratch[i]))
            return false;
    for (size_t i = 0; i < decision->n_head; i++)
        if (isnan(scratch[TARE__FIGURE_SAMPLES_MAX + i]))
            return false;
    return true;
}

tare__decision tare__decide_figures(const tare__figure *base, const tare__figure *head, bool paired,
                                    const tare__allowance *gate, double *scratch)
{
    const tare__figure *one = base ? base : head;
    double *other = scratch + TARE__FIGURE_SAMPLES_MAX;
    size_t n = 0, m = 0;
    tare__question question = {.better = head ? head->better : one->better,
                               .exact = base && head && base->exact && head->exact,
                               .bound = {base && base->at_least, head && head->at_least},
                               .paired = paired,
                               .cannot = TARE__WHY_FEW,
                               .gate = *gate};
    if (base && head && strcmp(base->unit, head->unit) != 0) {
        question.cannot = TARE__WHY_UNITS;
    } else if (base && head && !question.exact) {
        if (!tare__figures_align(base, head, scratch, &n, other, &m))
            question.cannot = why_not(base, head);
        else if (!is_of_runs(base)) {
            n = tare__decide_blocks(scratch, n);
            m = tare__decide_blocks(other, m);
        }
    }
    tare__measured a = {scratch, n, base ? base->value : NAN}, b = {other, m, head ? head->value : NAN};
    return tare__decide(&a, &b, &question);
}
