/* training: what the rules on training loops read from the tables.
 * Owned by the thread that analyzes; for the findings only.
 * Must not know any rule. */
#ifndef TARE_ANALYZE_TRAINING_H
#define TARE_ANALYZE_TRAINING_H

#include "hot.h"
#include "rules.h"

/* Whether the row is inside a span of this kind. */
bool tare__span_is_in(const tare__analysis *of, const tare__span_row *row, uint32_t kind);

/* Spans with a name; if it ends with a space, all spans whose names begin with it. */
typedef struct named {
    double total_ns, calls;
    const tare__span_row *most; /* a row of the call site with the most time; NULL: there are none */
    double most_ns;             /* … of all its rows, in steps and outside */
} named;

named tare__sum_named(const tare__analysis *of, const char *name, bool in_steps);

/* Sums over training: inside of steps; waiting for batches also between them. */
typedef struct training {
    double steps_ns, data_ns, copy_ns, forward_ns, backward_ns, optimizer_ns;
    double aside_ns; /* waiting for batches of evaluations */
    double copied, unpinned; /* bytes */
    double steps, fastest_ns, batches, backwards;
} training;

/* False: no training loop was found, or too little of it. */
bool tare__training_of(const tare__analysis *of, training *sum);
/* A time inside the steps of one process as a share of steady state; threads may run their steps concurrently. */
double tare__of_steady(const tare__analysis *rank, const training *sum, double ns);

/* Which line takes most of the time that the question is about. Without sampled stacks, of the samples that the package
 * takes inside the program, of those taken while it was `doing` that ("forward"), or what begins with `or` (may be
 * NULL); `there` is added to "the stack samples". False: there are none. */
bool tare__has_line(const tare__analysis *of, const char *doing);
bool tare__say_line(findings *out, const tare__analysis *of, const tare__hot_question *question, const char *doing,
                    const char *or, const char *there);

#endif
