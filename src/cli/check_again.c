/* check_again: runs a command again under `tare run`, so that a check can ask twice before it fails.
 * One thread. The runs lie in a temporary folder that is removed.
 * Must not know what is checked. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inputs.h"
#include "tare.h"

extern char **environ;

#define COMMAND_FAILED TARE_E_SYSTEM

/* `tare run`'s own process: it has the terminal's signals, and its standard output is our standard error, since ours may
 * be JSON. */
static int spawn_run(const char *trace, const char *command, pid_t *child)
{
    char *words[] = {"tare", "run", "-q", "-o", (char *)trace, "--", "/bin/sh", "-c", (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure)
        return failure;
    failure = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (!failure)
        failure = posix_spawn(child, "/proc/self/exe", &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

static int run_once(const char *trace, const char *command, tare__error *error)
{
    pid_t child;
    int state;
    int failure = spawn_run(trace, command, &child);
    if (failure)
        return tare__fail(error, TARE_E_SYSTEM, "--rerun: cannot start tare: %s", strerror(failure));
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return tare__fail(error, TARE_E_SYSTEM, "--rerun: %s", strerror(errno));
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return 0;
    if (WIFSIGNALED(state))
        return tare__fail(error, COMMAND_FAILED, "--rerun: the command was ended by signal %d", WTERMSIG(state));
    return tare__fail(error, COMMAND_FAILED, "--rerun: the command ended with status %d", WEXITSTATUS(state));
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
        status = traces[i] ? run_once(traces[i], command, error) : tare__fail(error, TARE_E_MEMORY, "out of memory");
    }
    return status;
}

int tare__cli_check_again(const char *command, unsigned times, tare__figures **figures, tare__error *error)
{
    const char *place = getenv("TMPDIR");
    char folder[PATH_MAX];
    char *traces[TARE__CHECK_RUNS_MAX] = {NULL};
    *figures = NULL;
    snprintf(folder, sizeof folder, "%s/tare-check-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(folder))
        return tare__fail(error, TARE_E_SYSTEM, "--rerun: cannot make a folder for the runs: %s", strerror(errno));
    int status = run_all(folder, command, traces, times, error);
    if (!status)
        status = tare__cli_load_side(traces, times, figures, error);
    for (unsigned i = 0; i < times && traces[i]; i++) {
        unlink(traces[i]);
        free(traces[i]);
    }
    rmdir(folder);
    return status;
}
