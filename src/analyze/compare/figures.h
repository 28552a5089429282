/* figures: a run, a model report or a baseline as a list of named figures with their samples, which are compared,
 * checked and stored. Owned by the calling thread; what a list points to lives in its arena until it is freed.
 * Must not know files, nor how figures are shown. */
#ifndef TARE_ANALYZE_FIGURES_H
#define TARE_ANALYZE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct tare__analysis;
struct tare__model_report;
struct tare__model_measured;

typedef enum tare__better { TARE__NEITHER = 0, TARE__LOWER = 1, TARE__HIGHER = 2 } tare__better;

#define TARE__FIGURE_SAMPLES_MAX 1000u

/* One figure. Its name identifies it: "run.elapsed", "step", "span:train/forward", "operator:aten::mm", "kernel:…",
 * "layer:…", "counter:loss", "metric:memory.rss", "model.latency[batch=4]". */
typedef struct tare__figure {
    const char *name;
    const char *unit;    /* "ns", "bytes", "samples/s", ""; never NULL */
    const char *per;     /* what a sample measures: "call", "step", "run", "sample"; NULL: there are no samples */
    tare__better better;
    bool exact;          /* the same on every run and machine: FLOPs, parameters, counts, bytes of a file */
    bool at_least;       /* a lower bound: it excludes what could not be counted */
    double value;        /* the median of the samples, or the value itself; NaN: absent */
    double total;        /* absolute cost over the run, in its unit; NaN: not known */
    uint64_t n;          /* number of calls, steps or values measured */
    uint64_t each;       /* number of `per` averaged in one sample; a power of two; 0: no samples */
    const double *samples; /* in order; NULL: none */
    size_t n_samples;    /* at most TARE__FIGURE_SAMPLES_MAX */
} tare__figure;

typedef struct tare__figures {
    tare__figure *rows;
    size_t n;
    const char *kind;    /* "run", "model", "baseline", "runs"; the following fields may be NULL: not known */
    const char *command, *host, *cpu_model, *revision;
    const char *machine; /* a fingerprint: host, CPU model, CPUs, memory, kernel */
    uint64_t when_ns;    /* since 1970; 0: not known */
    uint64_t first_ns;   /* for several runs, of the first one; 0: as when_ns */
    uint64_t runs;       /* number of runs; above 1, there is one sample per run */
    const char **notes;  /* sentences on what is missing: unfinished, damaged, … */
    size_t n_notes;
    tare__arena *arena;  /* private, as the following */
    tare__intern *index; /* name: row */
    size_t room, notes_room;
    bool failed; /* out of memory: something was not added */
} tare__figures;

/* A model as shown. */
typedef struct tare__model_view {
    const struct tare__model_report *report;
    const struct tare__model_measured *measured; /* NULL: it was not run */
    const tare__figures *figures;                /* of both, for JSON; NULL: none */
    const struct tare__model_layer **not_counted; /* private to JSON and CSV, as the following */
    size_t n_not_counted;
} tare__model_view;

/* One side of a comparison or a check. */
typedef struct tare__side {
    const char *name; /* as the user gave it */
    const tare__figures *figures; /* NULL: none */
} tare__side;

/* ---- creation -------------------------------------------------------------------------------------- */
tare__figures *tare__figures_new(const char *kind); /* NULL: out of memory */
void tare__figures_free(tare__figures *figures);    /* NULL is fine */
/* Into *figures; where it or `failed` says so, NULL and TARE_E_MEMORY. `made` may be NULL if failed. */
int tare__figures_hand_over(tare__figures *made, bool failed, tare__figures **figures);
/* Copies the figure with its texts and samples; beyond TARE__FIGURE_SAMPLES_MAX samples, means of two, four, … are
 * kept. If samples are given and the value is NaN, the value becomes their median. A second figure with the same
 * name is ignored. 0 or TARE_E_MEMORY, which `failed` remembers. */
int tare__figures_add(tare__figures *figures, const tare__figure *figure);
int tare__figures_add_named(tare__figures *figures, const tare__figure *figure, tare__text *name); /* freed */
int tare__figures_note(tare__figures *figures, const char *sentence); /* a copy; likewise */
/* A copy of a text in the list's arena; NULL for NULL, and when out of memory; likewise. */
const char *tare__figures_text(tare__figures *figures, const char *text);
/* Fills `machine` from the known properties; NULL, 0 and NaN mean not known. 0 or TARE_E_MEMORY, likewise. */
int tare__figures_set_machine(tare__figures *figures, const char *host, const char *cpu_model, uint32_t cpus,
                              double memory_bytes, const char *kernel);

/* Figures of an analysed run. Includes spans, operators, kernels, layers and counters if it was analysed with
 * `samples`. 0 or TARE_E_MEMORY. */
int tare__figures_of_analysis(const struct tare__analysis *analysis, tare__figures **figures);
/* Figures of a model report; `measured` may be NULL. 0 or TARE_E_MEMORY. */
int tare__figures_of_model(const struct tare__model_report *report, const struct tare__model_measured *measured,
                           tare__figures **figures);
/* Joins several runs: each figure has one sample per run, its value in that run. 0 or TARE_E_MEMORY. */
int tare__figures_join(const tare__figures *const *runs, size_t n, tare__figures **figures);

/* Samples of a single run are measured inside it, whatever `per` says: model reports used "run", which in joined
 * figures means one sample per run. */
void tare__figures_are_of_one_run(tare__figures *figures);

/* ---- lookup ---------------------------------------------------------------------------------------- */
const tare__figure *tare__figures_find(const tare__figures *figures, const char *name); /* NULL: none */

/* Aligns the samples of two figures of one name: where one has means of more calls than the other, the other's
 * samples are averaged to match. `base` and `head` have room for TARE__FIGURE_SAMPLES_MAX. False: they measure
 * different things (calls and steps), or there are no samples. */
bool tare__figures_align(const tare__figure *a, const tare__figure *b, double *base, size_t *n_base, double *head,
                         size_t *n_head);

/* ---- the baseline file: JSON, "tare_baseline": 1 ----------------------------------------------------- */
#define TARE__BASELINE_VERSION 1
/* Reads a baseline, or a report that contains one under its key "figures"; `name` is for messages. 0; TARE_E_INPUT
 * (not a baseline, or malformed), TARE_E_VERSION or TARE_E_MEMORY with a sentence. */
int tare__figures_read_json(const char *text, size_t length, const char *name, tare__figures **figures,
                            tare__error *error);

const char *tare__better_word(tare__better better); /* "lower", "higher", "neither" */

#endif
