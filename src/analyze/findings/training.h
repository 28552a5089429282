/* training: what the rules on training loops read from the tables.
 * Owned by the thread that analyzes; for the findings only.
 * Must not know any rule. */
#ifndef TARE_ANALYZE_TRAINING_H
#define TARE_ANALYZE_TRAINING_H

#include "rules.h"

/* A span of this kind is around the row. */
bool tare__span_is_in(const tare__analysis *of, const tare__span_row *row, uint32_t kind);

/* Spans of a name; where that ends with a blank, of all that begin with it. */
typedef struct named {
    double total_ns, calls;
    const tare__span_row *most; /* a row of the call site with most of the time; NULL: there are none */
    double most_ns;             /* … of all its rows, in steps and outside */
} named;

named tare__sum_named(const tare__analysis *of, const char *name, bool in_steps);

/* Of training: inside of steps, and of waiting for batches also between them. */
typedef struct training {
    double steps_ns, data_ns, copy_ns, forward_ns, backward_ns, optimizer_ns;
    double aside_ns; /* waiting for batches of evaluations */
    double copied, unpinned; /* bytes */
    double steps, fastest_ns, batches, backwards;
} training;

/* False: no training loop was found, or too little of it to tell. */
bool tare__training_of(const tare__analysis *of, training *sum);
/* A time inside the steps of one process as a share of steady state; threads may have their steps at the same time. */
double tare__of_steady(const tare__analysis *rank, const training *sum, double ns);

/* The line of the program that most stack samples of a phase are at, and its share of them; NULL: there are none. */
const tare__aggregate_row *tare__line_of(const tare__analysis *of, const char *phase, double *share);
void tare__say_line(findings *out, tare__finding *finding, const tare__analysis *of, const char *phase);

#endif
