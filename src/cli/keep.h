/* keep: puts a run into the history when it is over. One thread.
 * Must not know how runs are stored, nor make a run fail. */
#ifndef TARE_CLI_KEEP_H
#define TARE_CLI_KEEP_H

#include <sys/types.h>

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

/* Whether tracked files differ from the commit that is checked out here. git takes some milliseconds to say, so it is
 * asked first and answers last: 1, 0; -1: not known, not asked, or not within a quarter of a second of the question.
 * Whoever asks fetches the answer; a second time there is none. */
typedef struct tare__cli_git {
    pid_t pid; /* -1: not asked */
    int from;
    uint64_t asked_ns;
} tare__cli_git;
#define TARE__GIT_NOT_ASKED {.pid = -1, .from = -1}
void tare__cli_git_ask(tare__cli_git *git);
int tare__cli_git_answer(tare__cli_git *git);

/* Before a run is analysed: begins what takes time and needs no analysis. */
void tare__cli_keep_ask(const tare__cli_keeping *keeping, tare__trace *trace, tare__cli_git *git);
/* A recorded run. `analysis` (made with samples) may be NULL: then little more than its time is kept. What goes wrong
 * is said in one line, and is no failure of the run. */
void tare__cli_keep_run(const tare__cli_keeping *keeping, tare__trace *trace, const tare__analysis *analysis,
                        tare__cli_git *git);

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
#endif
