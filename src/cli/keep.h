/* keep: adds a run to the history when it has ended. One thread.
 * Must not know how runs are stored, nor make a run fail. */
#ifndef TARE_CLI_KEEP_H
#define TARE_CLI_KEEP_H

#include <sys/types.h>

#include "analyze/analyze.h"
#include "cli.h"
#include "trace/trace.h"

#define TARE__KEEP_TAGS 16
/* If no output was requested, a trace is analyzed for the history only if that is fast: up to this size. */
#define TARE__KEEP_QUIET_BYTES ((int64_t)2 << 20)

typedef struct tare__cli_keeping {
    const char *store; /* from --store, TARE_STORE or tare.toml; NULL: the default place */
    bool off;
    const char *tags[TARE__KEEP_TAGS];
    size_t n_tags;
} tare__cli_keeping;

/* --tag: one, or several separated by commas. 0, or TARE_E_USAGE with a message. */
int tare__cli_keep_take_tags(tare__cli_keeping *keeping, const char *argument, tare__error *error);

/* Whether runs are kept at all. */
bool tare__cli_keeps(const tare__cli_keeping *keeping);

/* Whether tracked files differ from the commit that is checked out. git needs some milliseconds, so the query is
 * started first and its result is read last: 1, 0; -1: unknown, not queried, or not within a quarter of a second.
 * The result can be read only once. */
typedef struct tare__cli_git {
    pid_t pid; /* -1: not queried */
    int from;
    uint64_t requested_ns;
} tare__cli_git;
#define TARE__GIT_NOT_ASKED {.pid = -1, .from = -1}
void tare__cli_git_ask(tare__cli_git *git);
int tare__cli_git_answer(tare__cli_git *git);

/* Called before a run is analyzed: starts what takes time and does not depend on the analysis. */
void tare__cli_keep_ask(const tare__cli_keeping *keeping, tare__trace *trace, tare__cli_git *git);
/* Adds a recorded run. `analysis` (made with samples) may be NULL: then little more than its duration is stored. A
 * failure is reported in one line and does not make the run fail. */
void tare__cli_keep_run(const tare__cli_keeping *keeping, tare__trace *trace, const tare__analysis *analysis,
                        tare__cli_git *git);

/* For figures without a trace: a model's report. `path` is the file that was analyzed; unknown values are NULL, NaN and
 * a status of -1. */
typedef struct tare__cli_keep_what {
    const tare__figures *figures;
    const char *command, *path;
    double elapsed_ns;
    int status;
} tare__cli_keep_what;
void tare__cli_keep_figures(const tare__cli_keeping *keeping, const tare__cli_keep_what *what);

/* The run of a trace as a row of the history. Its texts live as long as the trace, the analysis, and `arena`. 0 or a
 * status. */
int tare__cli_kept_of_trace(tare__trace *trace, const tare__analysis *analysis, tare__arena *arena,
                            tare__kept *run, tare__error *error);
#endif
