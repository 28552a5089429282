/* check: figures held against a baseline and against thresholds: what failed, and why.
 * Owned by the calling thread; a check points into the two lists of figures, which must outlive it.
 * Must not know files, nor how a check is shown. */
#ifndef TARE_ANALYZE_CHECK_H
#define TARE_ANALYZE_CHECK_H

#include "decide.h"
#include "figures.h"
#include "threshold.h"

typedef struct tare__check_options {
    const tare__threshold *thresholds; /* of those that name a figure, the last change and the last limit count */
    size_t n_thresholds;
    double share; /* the gate of what no threshold names; NaN: 5 %, or 10 % where TARE__GATE_SHARE_WIDE says so */
    bool all;     /* gate every figure of which one way is better, not the main ones only */
} tare__check_options;

typedef enum tare__outcome { /* in this order they are told */
    TARE__OUTCOME_FAILED,    /* a regression, a broken limit, or a threshold for a figure that is not there */
    TARE__OUTCOME_INCONCLUSIVE, /* beyond the gate with too few samples, or a lower bound */
    TARE__OUTCOME_CLEARED,   /* failed, and did not when it was run again */
    TARE__OUTCOME_CHANGED,   /* differs; not gated, or neither way is better */
    TARE__OUTCOME_IMPROVED,
    TARE__OUTCOME_PASSED,
    TARE__OUTCOME_ABSENT     /* on one side only, and nothing asks for it */
} tare__outcome;

#define TARE__CHECK_WARNINGS 16u /* at most */

typedef struct tare__check_row {
    const char *name, *unit;
    const tare__figure *base, *head; /* NULL: not there */
    bool gated;                      /* its change may fail the check */
    tare__decision decision;         /* the same one that a comparison has; the gate is in it */
    bool has_limit, broken;
    double limit;                    /* in the figure's unit */
    tare__better better;
    tare__outcome outcome;
    const char *reason;              /* half a sentence */
} tare__check_row;

typedef struct tare__check {
    const tare__figures *base, *head; /* base: NULL when only limits were asked for */
    double share;          /* of the gate that most figures have */
    bool other_machine;    /* the baseline is of another one, or does not say of which */
    bool rerun;            /* what failed was run again */
    tare__check_row *rows; /* by outcome, then by change descending */
    size_t n;
    size_t count[TARE__OUTCOME_ABSENT + 1]; /* rows by outcome */
    size_t gated;          /* rows that could fail; with none, nothing was checked, and nothing has passed */
    bool unconfirmed;      /* running again failed: that clears nothing, and it has not passed */
    const char **warnings; /* sentences */
    size_t n_warnings;
    size_t advice;      /* private: of the warnings, where those begin that running again may settle */
    tare__arena *arena; /* private */
} tare__check;

/* What is shown of a check. */
typedef struct tare__check_view {
    const tare__check *check;
    tare__side baseline, candidate;
} tare__check_view;

/* 0; TARE_E_MEMORY; TARE_E_USAGE with a sentence: a threshold in a unit that its figure does not have. */
int tare__check_figures(const tare__figures *base, const tare__figures *head, const tare__check_options *options,
                        tare__check **check, tare__error *error);
/* Takes into account what running again gave: what failed or was inconclusive has failed when it fails there, too,
 * and is cleared when it does not; what is not there again is left as it was. */
void tare__check_confirm(tare__check *check, const tare__check *again);
/* Running again failed, and why. */
void tare__check_fail_again(tare__check *check, const char *sentence);
void tare__check_free(tare__check *check); /* NULL is fine */

/* Warnings: of the two sides, once the gate is known; and what more runs would tell, once all rows are judged. */
void tare__check_warn_of_sides(tare__check *check);
void tare__check_advise(tare__check *check);

/* `recent` is the check of recent runs against the same baseline: what differs there has drifted since it was saved. */
void tare__check_warn_of_drift(tare__check *check, const tare__check *recent, size_t revisions);

bool tare__check_passed(const tare__check *check);
/* Whether running again could change the answer. */
bool tare__check_wants_again(const tare__check *check);
const char *tare__outcome_word(tare__outcome outcome); /* "failed", "inconclusive", … */

#endif
