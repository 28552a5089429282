/* keep: puts a run into the history when it is over. One thread.
 * Must not know how runs are stored, nor make a run fail. */
#ifndef TARE_CLI_KEEP_H
#define TARE_CLI_KEEP_H

#include "analyze/analyze.h"
#include "cli.h"
#include "trace/trace.h"

#define TARE__KEEP_TAGS 16
/* What nobody asked to see is analysed for the history only where that takes no more than a moment. */
#define TARE__KEEP_QUIET_BYTES ((int64_t)2 << 20)

typedef struct tare__cli_keeping {
    const char *store; /* as told by --store, TARE_STORE, tare.toml; NULL: the usual place */
    bool off;
    const char *tags[TARE__KEEP_TAGS];
    size_t n_tags;
} tare__cli_keeping;

/* --tag: one, or several with commas between. 0, or TARE_E_USAGE with a sentence. */
int tare__cli_keep_take_tags(tare__cli_keeping *keeping, const char *argument, tare__error *error);

/* Whether runs are kept at all. */
bool tare__cli_keeps(const tare__cli_keeping *keeping);

/* A recorded run. `analysis` (made with samples) may be NULL: then little more than its time is kept. What goes wrong
 * is said in one line, and is no failure of the run. */
void tare__cli_keep_run(const tare__cli_keeping *keeping, tare__trace *trace, const tare__analysis *analysis);

/* What has figures and no trace: a model's report. `path` is the file that was weighed; what is not known is NULL, NaN
 * and a status of -1. */
typedef struct tare__cli_keep_what {
    const tare__figures *figures;
    const char *command, *path;
    double elapsed_ns;
    int status;
} tare__cli_keep_what;
void tare__cli_keep_figures(const tare__cli_keeping *keeping, const tare__cli_keep_what *what);

/* The run of a trace as history has it. Its texts live as long as the trace, the analysis, and `arena`. 0 or a
 * status. */
int tare__cli_kept_of_trace(tare__trace *trace, const tare__analysis *analysis, tare__arena *arena,
                            tare__kept *run, tare__error *error);

/* Whether tracked files differ from the commit that is checked out here: 1, 0; -1: not known, or not soon enough. */
int tare__cli_git_dirty(void);

#endif
