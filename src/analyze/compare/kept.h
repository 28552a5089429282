/* kept: a run as stored in the history: user, command, time, place and exit status. Its figures are stored separately.
 * Owned by the calling thread; what a list points to lives in its arena.
 * Must not know where runs are kept, nor how they are shown. */
#ifndef TARE_ANALYZE_KEPT_H
#define TARE_ANALYZE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "stat/stat.h"

#define TARE__KEPT_ID_DIGITS 32

typedef struct tare__kept {
    char id[TARE__KEPT_ID_DIGITS + 1]; /* hexadecimal, lower case */
    const char *kind;                  /* "run", "model", …; texts are NULL where not known */
    const char *command, *directory, *host, *machine, *cpu_model, *revision, *trace;
    int dirty;          /* tracked files differed from the revision: 1, 0; -1: not known */
    int status, signal; /* exit status, -1: not known; signal that ended it, 0: none */
    uint64_t when_ns;   /* its start, since 1970; 0: not known */
    double elapsed_ns;  /* NaN: not known */
    const char *const *tags;
    size_t n_tags;
} tare__kept;

typedef struct tare__kept_list {
    tare__kept *rows; /* newest first */
    size_t n;
    unsigned id_digits; /* enough digits to make the ids of this store unique, most likely */
    tare__arena *arena;
} tare__kept_list;

/* One figure over many runs, oldest first (runs of one revision together), and where its level changed. */
typedef struct tare__kept_point {
    char id[TARE__KEPT_ID_DIGITS + 1];
    const char *revision; /* NULL: not known */
    int dirty;            /* tracked files differed from it: 1, 0; -1: not known */
    uint64_t when_ns;
    double value;
} tare__kept_point;

/* Runs of one revision: a change lies between revisions, never within one. A run whose revision is not known, or
 * whose files differed from it, is a separate group. */
typedef struct tare__kept_group {
    size_t from, n;            /* points */
    double value, least, most; /* the median, and the range of its runs */
} tare__kept_group;

typedef struct tare__kept_change {
    size_t at; /* the first point on the new level */
    double before, after, p;
} tare__kept_change;

typedef struct tare__kept_trend {
    const char *name, *unit;
    int better; /* tare__better */
    tare__kept_point *points;
    size_t n;
    tare__kept_group *groups; /* set once changes were searched for */
    size_t n_groups;
    tare__kept_change *changes;
    size_t n_changes;
    unsigned id_digits;
    tare__arena *arena;
} tare__kept_trend;

/* Trends with their selection. */
typedef struct tare__kept_trends {
    const tare__kept_trend *rows;
    size_t n;
    const char *command, *machine; /* common to all runs; NULL: they may differ */
} tare__kept_trends;

/* One run as shown. */
typedef struct tare__kept_run {
    const tare__kept *run;
    const struct tare__figures *figures;
} tare__kept_run;

#define TARE__KEPT_WORD 64
/* "2026-11-15T12:39:50.123456789Z"; NULL: not known */
const char *tare__kept_iso(char out[TARE__KEPT_WORD], uint64_t ns);
/* "worse", "better", or "" if neither; `better` is a tare__better. */
const char *tare__kept_verdict(int better, double before, double after);

/* Groups runs by revision, in order of the first run of each, and finds the changes between revisions. 0 or
 * TARE_E_MEMORY. */
int tare__kept_find_changes(tare__kept_trend *trend);

/* Creates an id for a run without one, deterministically, from what identifies the run. */
void tare__kept_make_id(const char *host, const char *command, const char *directory, uint64_t when_ns,
                        uint64_t salt, char id[TARE__KEPT_ID_DIGITS + 1]);

#endif
