/* compare: two lists of figures, matched by name: what changed, by how much, and whether it is significant.
 * Owned by the calling thread; a comparison points into the two lists, which must outlive it.
 * Must not know files, nor how a comparison is shown. */
#ifndef TARE_ANALYZE_COMPARE_H
#define TARE_ANALYZE_COMPARE_H

#include "decide.h"
#include "figures.h"

/* The section of a figure, by its name; in the order of output. */
typedef enum tare__section {
    TARE__SECTION_WHOLE, /* the run, its steps, the model */
    TARE__SECTION_SPANS,
    TARE__SECTION_LAYERS,
    TARE__SECTION_OPERATORS,
    TARE__SECTION_KERNELS,
    TARE__SECTION_COUNTERS,
    TARE__SECTION_METRICS
} tare__section;

typedef struct tare__compared {
    const tare__figure *base, *head;
    tare__section section;
    const char *name;    /* without the prefix that its section implies */
    tare__decision decision; /* the same decision as in a check; for one run against several, `effect` is its
                              * position among them */
    double cost;         /* cost added to the run, in its unit; below 0: saved. NaN: not known */
} tare__compared;

/* A function of sampled stacks in two runs: shares of active time by itself; 0: it was not sampled there. */
typedef struct tare__compared_function {
    const char *function, *file; /* file: without directories; "": not known */
    double base, head, change;   /* change: head - base */
} tare__compared_function;

typedef struct tare__compare_options {
    double min_change; /* ignore smaller changes; NaN: as in a check (tare__decide_share), 0.01 for pairs */
    bool paired;       /* run i of base and run i of head ran consecutively */
    const char *decided; /* figure whose decision was already made, by rounds; NULL: none */
    const tare__decision *decision;
} tare__compare_options;

typedef struct tare__comparison {
    const tare__figures *base, *head;
    double confidence, min_change;
    tare__compared *rows; /* by section, then by absolute cost descending */
    size_t n;
    const tare__figure **only_base, **only_head; /* by total descending */
    size_t n_only_base, n_only_head;
    const tare__compared_function *functions; /* by absolute change descending; small ones are omitted */
    size_t n_functions;
    size_t better, worse, different, inconclusive; /* rows by verdict */
    const char **warnings; /* sentences */
    size_t n_warnings;
    tare__arena *arena; /* private */
} tare__comparison;

/* Result of an interleaved comparison of two commands; NULL: runs were compared. */
typedef struct tare__compare_ab {
    const char *commands[2];
    const char *figure;   /* the deciding figure: "run.elapsed" */
    size_t rounds, wanted; /* completed; maximum */
    double change, low, high; /* of that figure; NaN: not known yet */
    double p, level;      /* p, and its maximum after this round; 0: too early */
    bool clear, interrupted;
    const char *answer;   /* a sentence */
} tare__compare_ab;

/* A comparison as shown. */
typedef struct tare__compare_view {
    const tare__comparison *comparison;
    tare__side baseline, candidate;
    const tare__compare_ab *ab; /* NULL: runs were compared, not commands */
    const char *answer;
} tare__compare_view;

/* 0 or TARE_E_MEMORY. */
int tare__compare(const tare__figures *base, const tare__figures *head, const tare__compare_options *options,
                  tare__comparison **comparison);
/* Adds the functions, of one run with sampled stacks on each side; these must outlive the comparison. 0 or
 * TARE_E_MEMORY. */
int tare__compare_functions(tare__comparison *to, const struct tare__analysis *base,
                            const struct tare__analysis *head);
void tare__comparison_free(tare__comparison *comparison); /* NULL is fine */

/* Adds warnings, once all rows are judged. `chosen`: two commands compared on purpose. 0 or TARE_E_MEMORY. */
int tare__compare_warn(tare__comparison *comparison, bool chosen);
/* A sentence in `room` if load or waiting, rather than the program, may explain a change; else NULL. */
const char *tare__compare_waiting(const tare__figures *base, const tare__figures *head, const char *const sides[2],
                                  char *room, size_t size);

const char *tare__section_word(tare__section section); /* "whole", "spans", … */
/* "negligible", "small", "medium", "large" (Romano et al. 2006); NULL for NaN. */
const char *tare__effect_word(double cliffs_delta);
/* The figure's section, and in *rest its name without the prefix of that section. */
tare__section tare__section_of(const char *name, const char **rest);

#endif
