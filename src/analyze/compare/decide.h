/* decide: did a figure change? The only decision rule of `tare check`, `tare compare` and all alerts.
 * Pure functions; any thread.
 * Must not know where the figures come from. */
#ifndef TARE_ANALYZE_DECIDE_H
#define TARE_ANALYZE_DECIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "figures.h"
#include "stat/stat.h"

/* A difference counts when it is significant AND larger than a share AND larger than a floor. */
#define TARE__GATE_SHARE      0.05 /* several runs on one machine */
/* Against another machine, since machines of one type differ by 2.66 %; and where a side is one run, whose samples
 * do not show the variation between runs. */
#define TARE__GATE_SHARE_WIDE 0.10
/* Two-sided: an unchanged figure is reported as worse in at most 1 % of cases, regardless of noise. */
#define TARE__GATE_P          0.02
/* Two commands run alternately, where nothing but the command differs. */
#define TARE__GATE_SHARE_TURN 0.01
/* Samples within a run are correlated: a slow second slows many of them, so that a thousand carry little more
 * information than a few. Medians of at most this many blocks are tested. */
#define TARE__DECIDE_BLOCKS   20u

typedef struct tare__allowance {
    double share; /* 0.05: 5 % */
    double floor; /* in the figure's unit */
    double p;     /* 0: TARE__GATE_P */
    double load;  /* by how much load from other processes increases head; below 0: base */
} tare__allowance;

typedef struct tare__measured {
    const double *samples; /* NULL: none */
    size_t n;
    double value; /* the figure; NaN: the median of the samples */
} tare__measured;

typedef enum tare__verdict {
    TARE__VERDICT_SAME,         /* no significant change */
    TARE__VERDICT_BETTER,
    TARE__VERDICT_WORSE,
    TARE__VERDICT_DIFFERENT,    /* it changed, and neither direction is known to be better */
    TARE__VERDICT_INCONCLUSIVE  /* too few samples, or the two figures cannot be compared */
} tare__verdict;

typedef enum tare__why {
    TARE__WHY_ABSENT,      /* a side has no value */
    TARE__WHY_UNITS,       /* the sides have different units */
    TARE__WHY_EQUAL,       /* no difference at all */
    TARE__WHY_SHARE,       /* smaller than the share */
    TARE__WHY_FLOOR,       /* smaller than the floor */
    TARE__WHY_NOISE,       /* not significant */
    TARE__WHY_FEW,         /* too few samples for significance, whatever their values */
    TARE__WHY_ONE_AND_MANY, /* one run against several: variation within a run is not variation between runs */
    TARE__WHY_COUNTED,     /* samples of calls against samples of steps */
    TARE__WHY_LOAD,        /* one run on each side, and one of them had more competition for CPUs */
    TARE__WHY_BOUND,       /* a side is a lower bound, and the true value may be beyond the other side */
    TARE__WHY_SIGNIFICANT,
    TARE__WHY_EXACT        /* a figure without noise differs */
} tare__why;

/* Parameters of a decision besides the values of the two figures. */
typedef struct tare__question {
    tare__better better;
    bool exact;       /* without noise: any difference beyond share and floor counts; both are often 0 */
    bool bound[2];    /* base, head: the value is "at least" this */
    bool paired;      /* sample i of base and sample i of head belong together */
    tare__why cannot; /* TARE__WHY_FEW, or another reason why the samples cannot be tested */
    tare__allowance gate;
} tare__question;

typedef struct tare__decision {
    tare__verdict verdict;
    tare__why why;
    double base, head;     /* the figures; NaN: absent */
    double change;         /* head - base as a share of base: +0.05 is 5 % more; infinite from 0; NaN: absent. Of
                            * pairs: the median of their ratios (Hodges-Lehmann), minus 1 */
    double low, high;      /* 95 % interval of the change, consistent with the test; NaN: none */
    double p;              /* Mann-Whitney; of pairs Wilcoxon signed-rank; NaN: not tested */
    double adjusted;       /* p adjusted for multiple testing (Benjamini-Hochberg); else p */
    double effect;         /* Cliff's delta, -1 to 1: how often head is above base minus how often below */
    size_t n_base, n_head; /* samples that were tested */
    tare__question requested;
} tare__decision;

tare__decision tare__decide(const tare__measured *base, const tare__measured *head, const tare__question *question);
/* Benjamini-Hochberg correction over the tested decisions; updates each verdict. 0 or TARE_E_MEMORY. */
int tare__decide_adjust(tare__decision *const *decisions, size_t n);
/* Medians of at most TARE__DECIDE_BLOCKS blocks, in place; returns their number. */
size_t tare__decide_blocks(double *samples, size_t n);
/* For pairs tested after every round (stat.h): better or worse once p has reached the level of this round; same once
 * the whole interval is within the share; else inconclusive. */
tare__decision tare__decide_rounds(const double *base, const double *head, size_t n,
                                   const tare__sequential_plan *plan, const tare__question *question);
bool tare__decide_differs(const tare__decision *decision); /* better, worse or different */
/* Larger than share and floor, significant or not. */
bool tare__decide_is_beyond(const tare__decision *decision);

/* Whether samples of these sizes can reach significance. */
bool tare__decide_can_tell(size_t n, size_t m, double p);
/* The default minimum change in this unit: 1 µs, 1 MiB, else 0. */
double tare__decide_floor(const char *unit);

/* ---- lists of figures (decide_figures.c) ------------------------------------------------------- */
#define TARE__FAMILIES 3 /* whole; spans, layers, operators, kernels; counters and metrics */
/* The first family is small and tested figure by figure; the others are corrected for multiple testing. */
int tare__decide_family(const char *name);
/* The default gate of two lists: wide for another machine, or for a single run on a side. */
double tare__decide_share(const tare__figures *base, const tare__figures *head);
double tare__decide_share_of(size_t base_runs, size_t head_runs, bool same_machine);
/* For two single runs: how much longer head took because other processes used the CPUs; below 0: base took longer;
 * 0: within the gate, or not known. */
double tare__decide_load(const tare__figures *base, const tare__figures *head);
bool tare__decide_same_machine(const tare__figures *base, const tare__figures *head);
/* The minimum change of a figure: 0 where both are exact. Either may be NULL. */
tare__allowance tare__decide_gate(const tare__figure *base, const tare__figure *head, double share, double load);
/* Two figures of one name; either may be NULL. `scratch` has room for 2 * TARE__FIGURE_SAMPLES_MAX. */
tare__decision tare__decide_figures(const tare__figure *base, const tare__figure *head, bool paired,
                                    const tare__allowance *gate, double *scratch);
/* Whether the statistics are NaN because memory ran out, which must not count as a result. `scratch` is as
 * tare__decide_figures left it. */
bool tare__decide_ran_out(const tare__decision *decision, const double *scratch);

const char *tare__verdict_word(tare__verdict verdict); /* "same", "better", "worse", "different", "inconclusive" */
const char *tare__why_text(tare__why why);             /* half a sentence */

#endif
