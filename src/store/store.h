/* store: the history of runs, in an SQLite file or a PostgreSQL database, behind one small vtable.
 * A store belongs to one thread; any number of processes may use the same one at a time.
 * Must not know how runs are shown, nor what their figures mean. */
#ifndef TARE_STORE_H
#define TARE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/analyze.h"
#include "base/base.h"

typedef struct tare__store tare__store;

/* ---- where ------------------------------------------------------------------------------------------ */
#define TARE__STORE_PLACE_BYTES 4096
/* `setting`: a folder, a file (….db), postgres://…, "off"; NULL or "": tare/history.db in the folder for data. *off is
 * set and nothing else when there shall be no history. 0; TARE_E_USAGE with a sentence. */
int tare__store_place(const char *setting, char out[TARE__STORE_PLACE_BYTES], bool *off, tare__error *error);
/* The place as people may see it: without the password. */
void tare__store_shown(const char *place, char *out, size_t room);

/* ---- opening ---------------------------------------------------------------------------------------- */
typedef struct tare__store_options {
    bool create;          /* else a store that is not there is none: TARE_E_NOTHING */
    bool writes;          /* brings an older schema up to date */
    unsigned patience_ms; /* for other writers, and for a server's answers */
} tare__store_options;

/* Nothing is kept there yet, or there is no such run. */
#define TARE__STORE_NONE 1
/* 0; TARE__STORE_NONE; TARE_E_INPUT (no database, damaged), TARE_E_VERSION (a newer tare's), TARE_E_PERMISSION,
 * TARE_E_SPACE, TARE_E_SYSTEM or TARE_E_MEMORY with a sentence. */
int tare__store_open(const char *place, const tare__store_options *options, tare__store **store,
                     tare__error *error);
void tare__store_close(tare__store *store); /* NULL is fine */

/* ---- keeping ---------------------------------------------------------------------------------------- */
/* Most samples of a figure that are kept: beyond, means of neighbours. */
#define TARE__STORE_SAMPLES 128u
/* Whole or not at all. `figures` may be NULL. A run whose id is there already is left as it is, but for figures
 * that it lacks: *added false (may be NULL). */
int tare__store_put(tare__store *store, const tare__kept *run, const tare__figures *figures, bool *added,
                    tare__error *error);
/* Several puts at once: 0 or a status. What was put between them is kept by `end`. */
int tare__store_begin(tare__store *store, tare__error *error);
int tare__store_end(tare__store *store, tare__error *error);
void tare__store_undo(tare__store *store); /* … and is not, by this one */

/* ---- looking ---------------------------------------------------------------------------------------- */
typedef struct tare__store_filter {
    const char *id;      /* begins so; NULL: any, as the following */
    const char *command; /* has this in it */
    const char *exact_command, *machine, *host, *kind;
    const char *revision;    /* begins so */
    const char *const *tags; /* all of them */
    size_t n_tags;
    uint64_t since_ns, before_ns; /* started at or after; before; 0: no bound */
    uint64_t limit;               /* the newest so many; 0: all */
    uint64_t skip;                /* the newest so many are passed over */
    const char *not_id;
    bool ended_well; /* exit status 0, or none known */
} tare__store_filter;

int tare__store_list(tare__store *store, const tare__store_filter *filter, tare__kept_list *list,
                     tare__error *error);
void tare__store_list_free(tare__kept_list *list);
/* The one run whose id begins so, or "last", "last~2". 0; TARE_E_USAGE (none or several) with a sentence. */
int tare__store_find(tare__store *store, const char *word, tare__kept_list *list, tare__error *error);
/* The figures of a run, with what is known of it. */
int tare__store_figures(tare__store *store, const tare__kept *run, tare__figures **figures,
                        tare__error *error);
/* Values of a figure in the runs of the filter, oldest first; changes are not looked for. TARE__STORE_NONE: no run has
 * such a figure. */
int tare__store_trend(tare__store *store, const tare__store_filter *filter, const char *figure,
                      tare__kept_trend *trend, tare__error *error);
void tare__store_trend_free(tare__kept_trend *trend);
typedef struct tare__store_name {
    const char *name;
    uint64_t runs;
} tare__store_name;
/* The figures that the newest runs of the filter have, most frequent first; memory is the arena's. */
int tare__store_names(tare__store *store, const tare__store_filter *filter, tare__arena *arena,
                      tare__store_name **names, size_t *n, tare__error *error);

/* ---- changing --------------------------------------------------------------------------------------- */
int tare__store_tag(tare__store *store, const char *id, const char *const *tags, size_t n, bool remove,
                    tare__error *error);
typedef struct tare__store_prune {
    uint64_t keep;      /* the newest so many stay; UINT64_MAX: no such bound */
    uint64_t before_ns; /* what began before this goes; 0: no such bound */
    bool tagged;        /* tagged ones go, too */
} tare__store_prune;
/* Removes runs that either bound lets go. *removed how many; with `dry` how many it would. */
int tare__store_prune_runs(tare__store *store, const tare__store_prune *what, bool dry, uint64_t *removed,
                           tare__error *error);

/* ---- for tests -------------------------------------------------------------------------------------- */
int tare__store_schema(void); /* the newest that this code knows */

#endif
