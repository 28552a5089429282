/* check_again: runs a command again under `tare run`, so that a check can confirm a failure.
 * One thread. The runs are written to a temporary folder that is removed.
 * Must not know what is checked. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare_launch.h"
#include "inputs.h"

/* Its output goes to standard error, since standard output may be JSON. A rerun is not added to the history. */
static int run_once(const char *trace, const char *command, tare__error *error)
{
    tare__ab_ran ran = {0};
    int status = tare__ab_run(command, trace, -1, &ran, error);
    if (status)
        return status;
    if (tare__ab_interrupted())
        return tare__fail(error, TARE_E_SYSTEM, "--rerun: interrupted");
    if (WIFEXITED(ran.status) && WEXITSTATUS(ran.status) == 0)
        return 0;
    if (WIFSIGNALED(ran.status))
        return tare__fail(error, TARE_E_SYSTEM, "--rerun: the command was killed by signal %d", WTERMSIG(ran.status));
    return tare__fail(error, TARE_E_SYSTEM, "--rerun: the command exited with status %d", WEXITSTATUS(ran.status));
}

static char *name_of(const char *folder, unsigned i)
{
    char *name = NULL;
    return asprintf(&name, "%s/%u.tare", folder, i) < 0 ? NULL : name;
}

static int run_all(const char *folder, const char *command, char **traces, unsigned times, tare__error *error)
{
    int status = 0;
    for (unsigned i = 0; i < times && !status; i++) {
        traces[i] = name_of(folder, i);
        status = traces[i] ? run_once(traces[i], command, error) : tare__no_memory(error);
    }
    return status;
}

int tare__cli_check_again(const char *command, unsigned times, tare__figures **figures, tare__error *error)
{
    char folder[PATH_MAX];
    char *traces[TARE__CHECK_RUNS_MAX] = {NULL};
    *figures = NULL;
    snprintf(folder, sizeof folder, "%s/tare-check-XXXXXX", tare__temporary_folder());
    if (!mkdtemp(folder))
        return tare__fail(error, TARE_E_SYSTEM, "--rerun: cannot create a directory for the runs: %s", strerror(errno));
    tare__ab_watch();
    int status = run_all(folder, command, traces, times, error);
    tare__ab_unwatch();
    if (!status)
        status = tare__cli_load_side(traces, times, figures, error);
    for (unsigned i = 0; i < times && traces[i]; i++) {
        unlink(traces[i]);
        free(traces[i]);
    }
    rmdir(folder);
    return status;
}
