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
/* `setting`: a directory, a file (….db), postgres://…, "off"; NULL or "": tare/history.db in the data directory. If
 * the history is disabled, only *off is set. 0; TARE_E_USAGE with a message. */
int tare__store_place(const char *setting, char out[TARE__STORE_PLACE_BYTES], bool *off, tare__error *error);
/* The location for display: without the password. */
void tare__store_shown(const char *place, char *out, size_t room);

/* ---- opening ---------------------------------------------------------------------------------------- */
typedef struct tare__store_options {
    bool create;          /* otherwise a missing store gives TARE_E_NOTHING */
    bool writes;          /* upgrades an older schema */
    unsigned patience_ms; /* for other writers, and for responses of a server */
} tare__store_options;

/* Nothing is stored yet, or there is no such run. */
#define TARE__STORE_NONE 1
/* 0; TARE__STORE_NONE; TARE_E_INPUT (not a database, damaged), TARE_E_VERSION (of a newer version),
 * TARE_E_PERMISSION, TARE_E_SPACE, TARE_E_SYSTEM or TARE_E_MEMORY with a message. */
int tare__store_open(const char *place, const tare__store_options *options, tare__store **store, tare__error *error);
void tare__store_close(tare__store *store); /* NULL is allowed */

/* ---- storing ---------------------------------------------------------------------------------------- */
/* Maximum number of stored samples of a figure; beyond, means of neighbors. */
#define TARE__STORE_SAMPLES 128u
/* Completely or not at all. `figures` may be NULL. A run whose id exists is not changed, except for missing figures,
 * which are added: *added false (may be NULL). */
int tare__store_put(tare__store *store, const tare__kept *run, const tare__figures *figures, bool *added,
                    tare__error *error);
/* Groups several puts: 0 or a status. `end` commits them. */
int tare__store_begin(tare__store *store, tare__error *error);
int tare__store_end(tare__store *store, tare__error *error);
void tare__store_undo(tare__store *store); /* … and this one rolls back */

/* ---- queries ---------------------------------------------------------------------------------------- */
typedef struct tare__store_filter {
    const char *id;      /* prefix; NULL: any, as in the following */
    const char *command; /* substring */
    const char *exact_command, *machine, *host, *kind;
    const char *revision;    /* prefix */
    const char *const *tags; /* all of them */
    size_t n_tags;
    uint64_t since_ns, before_ns; /* started at or after; before; 0: no bound */
    uint64_t limit;               /* number of newest runs; 0: all */
    uint64_t skip;                /* number of newest runs to skip */
    const char *not_id;
    bool ended_well; /* exit status 0, or unknown */
} tare__store_filter;

int tare__store_list(tare__store *store, const tare__store_filter *filter, tare__kept_list *list, tare__error *error);
void tare__store_list_free(tare__kept_list *list);
/* The run with this id prefix, or "last", "last~2". 0; TARE_E_USAGE (none or several) with a message. */
int tare__store_find(tare__store *store, const char *word, tare__kept_list *list, tare__error *error);
/* The figures of a run, with its description. */
int tare__store_figures(tare__store *store, const tare__kept *run, tare__figures **figures, tare__error *error);
/* Values of a figure in the runs of the filter, oldest first; changes are not computed. TARE__STORE_NONE: no run has
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
    uint64_t keep;      /* number of newest runs to keep; UINT64_MAX: no such bound */
    uint64_t before_ns; /* runs that began before this are removed; 0: no such bound */
    bool tagged;        /* also remove tagged runs */
} tare__store_prune;
/* Removes runs beyond either bound. *removed their number; with `dry` the number that would be removed. */
int tare__store_prune_runs(tare__store *store, const tare__store_prune *what, bool dry, uint64_t *removed,
                           tare__error *error);

#endif
