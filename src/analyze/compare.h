/* compare: two lists of figures, matched by name: what changed, by how much, and whether the data can show it.
 * Owned by the calling thread; a comparison points into the two lists, which must outlive it.
 * Must not know files, nor how a comparison is shown. */
#ifndef TARE_ANALYZE_COMPARE_H
#define TARE_ANALYZE_COMPARE_H

#include "figures.h"

typedef enum tare__verdict {
    TARE__VERDICT_SAME,      /* no difference that this data can show */
    TARE__VERDICT_BETTER,
    TARE__VERDICT_WORSE,
    TARE__VERDICT_DIFFERENT, /* of a figure of which neither more nor less is better */
    TARE__VERDICT_UNKNOWN    /* too few values to tell, or not comparable */
} tare__verdict;

/* Where a figure is told, by its name; in this order. */
typedef enum tare__section {
    TARE__SECTION_WHOLE, /* the run, its steps, the model */
    TARE__SECTION_SPANS,
    TARE__SECTION_LAYERS,
    TARE__SECTION_OPERATORS,
    TARE__SECTION_KERNELS,
    TARE__SECTION_COUNTERS,
    TARE__SECTION_METRICS,
    TARE__SECTION_COUNT
} tare__section;

typedef struct tare__compared {
    const tare__figure *base, *head;
    tare__section section;
    const char *name;    /* without the word that its section says already */
    double base_value, head_value; /* medians of what was tested; else the figures' values */
    double change;       /* head over base, less 1: the median of all ratios; NaN: has none */
    double low, high;    /* its interval; NaN: too few values */
    double p;            /* Mann-Whitney; NaN: not tested */
    double adjusted;     /* the same for so many tests at once (Benjamini and Hochberg) */
    double effect;       /* Cliff's delta, -1 to 1: how often head is above base, less how often below; of
                            UNKNOWN, too, where one run stands against several */
    size_t n_base, n_head; /* values that were tested */
    double cost;         /* what it adds to the run, in its unit; below 0: saves. NaN: not known */
    tare__verdict verdict;
    const char *why;     /* half a sentence, of UNKNOWN; NULL */
} tare__compared;

typedef struct tare__compare_options {
    double confidence; /* 0: 0.95 */
    double least;      /* changes below this share are none; NaN: 0.05 with one run a side, else 0.01 */
    bool paired;       /* run i of base and run i of head were made one after the other */
} tare__compare_options;

typedef struct tare__comparison {
    const tare__figures *base, *head;
    double confidence, least;
    tare__compared *rows; /* by section, then by absolute cost descending */
    size_t n;
    const tare__figure **only_base, **only_head; /* by total descending */
    size_t n_only_base, n_only_head;
    size_t better, worse, different, unknown; /* rows by verdict */
    const char **warnings; /* sentences */
    size_t n_warnings;
    tare__arena *arena; /* private */
} tare__comparison;

/* 0 or TARE_E_MEMORY. */
int tare__compare(const tare__figures *base, const tare__figures *head, const tare__compare_options *options,
                  tare__comparison **comparison);
void tare__comparison_free(tare__comparison *comparison); /* NULL is fine */

/* Fills its warnings, once all rows are judged. `chosen`: two commands on purpose. 0 or TARE_E_MEMORY. */
int tare__compare_warn(tare__comparison *comparison, bool chosen);

const char *tare__verdict_word(tare__verdict verdict); /* "same", "better", … */
const char *tare__section_word(tare__section section); /* "whole", "spans", … */
/* "negligible", "small", "medium", "large" (Romano and others 2006); NULL of NaN. */
const char *tare__effect_word(double cliffs_delta);
/* The figure's section, and in *rest its name without the word that says so. */
tare__section tare__section_of(const char *name, const char **rest);

#endif
