/* check: compares figures with a baseline and with thresholds: what failed, and why.
 * Owned by the calling thread; a check points into the two lists of figures, which must outlive it.
 * Must not know files, nor how a check is shown. */
#ifndef TARE_ANALYZE_CHECK_H
#define TARE_ANALYZE_CHECK_H

#include "decide.h"
#include "figures.h"
#include "threshold.h"

typedef struct tare__check_options {
    const tare__threshold *thresholds; /* if several name the same figure, the last change and the last limit apply */
    size_t n_thresholds;
    double share; /* the gate of figures without a threshold; NaN: 5 %, or 10 % where TARE__GATE_SHARE_WIDE applies */
    bool all;     /* gate every figure that has a better direction, not the main ones only */
} tare__check_options;

typedef enum tare__outcome { /* in the order of output */
    TARE__OUTCOME_FAILED,    /* a regression, an exceeded limit, or a threshold for a missing figure */
    TARE__OUTCOME_INCONCLUSIVE, /* beyond the gate with too few samples, or a lower bound */
    TARE__OUTCOME_CLEARED,   /* failed, but not in the rerun */
    TARE__OUTCOME_CHANGED,   /* differs; not gated, or neither direction is better */
    TARE__OUTCOME_IMPROVED,
    TARE__OUTCOME_PASSED,
    TARE__OUTCOME_ABSENT     /* on one side only, and no threshold requires it */
} tare__outcome;

#define TARE__CHECK_WARNINGS 16u /* maximum number */

typedef struct tare__check_row {
    const char *name, *unit;
    const tare__figure *base, *head; /* NULL: missing */
    bool gated;                      /* its change may fail the check */
    tare__decision decision;         /* the same decision as in a comparison; includes the gate */
    bool has_limit, broken;
    double limit;                    /* in the figure's unit */
    tare__better better;
    tare__outcome outcome;
    const char *reason;              /* half a sentence */
} tare__check_row;

typedef struct tare__check {
    const tare__figures *base, *head; /* base: NULL when only limits are checked */
    double share;          /* the gate of most figures */
    bool other_machine;    /* the baseline is from another machine, or does not say from which */
    bool rerun;            /* failed figures were measured again */
    tare__check_row *rows; /* by outcome, then by change descending */
    size_t n;
    size_t count[TARE__OUTCOME_ABSENT + 1]; /* rows by outcome */
    size_t gated;          /* rows that could fail; if 0, nothing was checked and the check does not pass */
    bool unconfirmed;      /* the rerun failed: it clears nothing, and the check does not pass */
    const char **warnings; /* sentences */
    size_t n_warnings;
    size_t advice;      /* private: index of the first warning that a rerun may resolve */
    tare__arena *arena; /* private */
} tare__check;

/* A check as shown. */
typedef struct tare__check_view {
    const tare__check *check;
    tare__side baseline, candidate;
} tare__check_view;

/* 0; TARE_E_MEMORY; TARE_E_USAGE with a sentence: a threshold in a unit that its figure does not have. */
int tare__check_figures(const tare__figures *base, const tare__figures *head, const tare__check_options *options,
                        tare__check **check, tare__error *error);
/* Applies the results of a rerun: a row that failed or was inconclusive fails if it fails again, and is cleared if
 * it does not; rows missing in the rerun are unchanged. */
void tare__check_confirm(tare__check *check, const tare__check *again);
/* Records that the rerun failed, and why. */
void tare__check_fail_again(tare__check *check, const char *sentence);
void tare__check_free(tare__check *check); /* NULL is fine */

/* Adds warnings: about the two sides, once the gate is known; and about what more runs would show, once all rows are
 * judged. */
void tare__check_warn_of_sides(tare__check *check);
void tare__check_advise(tare__check *check);

/* `recent` is the check of recent runs against the same baseline: figures that differ there have drifted since it
 * was saved. */
void tare__check_warn_of_drift(tare__check *check, const tare__check *recent, size_t revisions);

bool tare__check_passed(const tare__check *check);
/* Whether a rerun could change the outcome. */
bool tare__check_wants_again(const tare__check *check);
const char *tare__outcome_word(tare__outcome outcome); /* "failed", "inconclusive", … */

#endif
