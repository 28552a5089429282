/* decide: did a figure get worse? The one rule behind `tare check` and all that alert.
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
/* Against another machine, since machines of one kind differ by 2.66 %; and where a side is one run, whose samples
 * say nothing of how runs differ. */
#define TARE__GATE_SHARE_WIDE 0.10
/* Two-sided: where nothing changed, a figure is called worse once in a hundred times at most, however noisy it is. */
#define TARE__GATE_P          0.02

typedef struct tare__allowance {
    double share; /* 0.05: 5 % */
    double floor; /* in the figure's unit */
    double p;     /* 0: TARE__GATE_P */
} tare__allowance;

typedef struct tare__measured {
    const double *samples; /* NULL: none */
    size_t n;
    double value; /* the figure; NaN: the median of the samples */
} tare__measured;

typedef enum tare__decided {
    TARE__DECIDED_ABSENT,   /* a side has no value */
    TARE__DECIDED_SAME,     /* no difference that counts */
    TARE__DECIDED_UNSURE,   /* larger than the gate, but there are too few samples to tell it from noise */
    TARE__DECIDED_IMPROVED,
    TARE__DECIDED_CHANGED,  /* it differs, and nobody said which way is better */
    TARE__DECIDED_REGRESSED
} tare__decided;

typedef enum tare__why {
    TARE__WHY_ABSENT,
    TARE__WHY_EQUAL,       /* no difference at all */
    TARE__WHY_SHARE,       /* smaller than the share */
    TARE__WHY_FLOOR,       /* smaller than the floor */
    TARE__WHY_NOISE,       /* not significant */
    TARE__WHY_FEW,         /* too few samples to be significant, whatever they are */
    TARE__WHY_SIGNIFICANT,
    TARE__WHY_EXACT        /* a figure without noise differs */
} tare__why;

typedef struct tare__decision {
    tare__decided verdict;
    tare__why why;
    double base, head;     /* medians, or the figures; NaN: absent */
    double change;         /* head - base as a share of base: +0.05 is 5 % more; infinite from 0; NaN: absent */
    tare__rank_test test;  /* NaN where there are no samples */
    size_t n_base, n_head;
} tare__decision;

/* `exact` figures have no noise: any difference beyond share and floor counts, both of which are often 0. */
tare__decision tare__decide(const tare__measured *base, const tare__measured *head, tare__better better, bool exact,
                            const tare__allowance *gate);
/* Head over base, the median of all ratios, with the interval that belongs to the test. NaN: a value is not above 0,
 * or there are too few. */
tare__estimate tare__decide_ratio(const tare__measured *base, const tare__measured *head);

/* Whether samples of these sizes can be significant at all. */
bool tare__decide_can_tell(size_t n, size_t m, double p);
/* What a change in this unit must have to matter, where nobody said: 1 µs, 1 MiB, else 0. */
double tare__decide_floor(const char *unit);

const char *tare__decided_word(tare__decided verdict); /* "same", "regressed", … */
const char *tare__why_text(tare__why why);             /* half a sentence */

#endif
