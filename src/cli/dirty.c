/* dirty: queries git whether tracked files differ from the commit that is checked out, asynchronously. One thread.
 * Must not know what the result is used for, nor wait for it long. */
#define _GNU_SOURCE
#include "keep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(250000000) /* from the start of the query */
#define DYING_NS    UINT64_C(50000000) /* after a kill; an unresponsive disk may delay it further */

extern char **environ;

/* A repository may be untrusted, and its settings can name programs to run. None of them may run: no file system
 * monitor, no hooks, no pager, no status of submodules (which have their own settings), no fetching of missing objects
 * by any protocol, and no filters. If the repository (scope local or worktree, and files it includes) configures
 * filters, a partial clone or access to a server, git status is not run. */
#define NOTHING_RUNS                                                                                                  \
    "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c",        \
        "protocol.allow=never", "-c", "core.sshCommand=false", "-c", "core.gitProxy=false", "-c", "credential.helper="

static char *const ask_programs[] = {
    "git", NOTHING_RUNS, "config", "--show-scope", "--includes", "--name-only", "--get-regexp",
    "^(filter|diff|merge|protocol|credential)\\.|^extensions\\.partialclone$|^core\\.(sshcommand|gitproxy)$|"
    "^remote\\..*\\.(promisor|partialclonefilter|uploadpack|vcs)$", NULL};
static char *const ask_status[] = {"git", NOTHING_RUNS, "status", "--porcelain", "--untracked-files=no",
                                   "--ignore-submodules=dirty", "--no-renames", NULL};

/* GIT_DIR, GIT_CONFIG_COUNT, GIT_EXTERNAL_DIFF and similar variables are not meant for this query. Of the three that
 * are set, GIT_ALLOW_PROTOCOL takes precedence over any setting; old versions of git do not know the first. */
static char **without_git(void)
{
    static char *const ours[] = {"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_SSH_COMMAND=false"};
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **clean = malloc((n + TARE__COUNT_OF(ours) + 1) * sizeof *clean);
    for (size_t i = 0; clean && i < n; i++)
        if (strncmp(environ[i], "GIT_", 4) != 0)
            clean[kept++] = environ[i];
    for (size_t i = 0; clean && i < TARE__COUNT_OF(ours); i++)
        clean[kept++] = ours[i];
    if (clean)
        clean[kept] = NULL;
    return clean;
}

/* Its standard output is the pipe; standard error is discarded. It gets its own process group, so that everything it
 * starts can be killed with it. */
static pid_t start_git(char *const *words, int to)
{
    char program[4096];
    char **clean = tare__find_program("git", program, sizeof program) ? without_git() : NULL;
    if (!clean)
        return -1;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    pid_t pid = -1;
    if (posix_spawn_file_actions_init(&files) != 0) {
        free(clean);
        return -1;
    }
    if (posix_spawnattr_init(&how) != 0) {
        posix_spawn_file_actions_destroy(&files);
        free(clean);
        return -1;
    }
    if (posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) != 0 ||
        posix_spawn_file_actions_adddup2(&files, to, 1) != 0 ||
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawnattr_setpgroup(&how, 0) != 0 ||
        posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP) != 0 ||
        posix_spawn(&pid, program, &files, &how, words, clean) != 0)
        pid = -1;
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    free(clean);
    return pid;
}

static void ask(tare__cli_git *git, char *const *words)
{
    int ends[2];
    *git = (tare__cli_git){.pid = -1, .from = -1, .requested_ns = tare__monotonic_ns()};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    git->from = ends[0];
    git->pid = start_git(words, ends[1]);
    close(ends[1]);
}

/* 1: a byte was read; 0: end of file; -1: neither before the deadline. */
static int first_byte(int from, uint64_t deadline)
{
    for (;;) {
        struct pollfd pipe = {.fd = from, .events = POLLIN};
        uint64_t now = tare__monotonic_ns();
        int ready = poll(&pipe, 1, now < deadline ? (int)((deadline - now) / 1000000u) + 1 : 0);
        char byte;
        if (ready > 0)
            return (int)read(from, &byte, 1);
        if (ready == 0 || errno != EINTR)
            return -1;
    }
}

/* Whether it has ended before the deadline. A process that has closed its output is about to end, so polling is
 * enough. */
static bool has_ended(pid_t pid, uint64_t deadline, int *how)
{
    for (long pause_ns = 20000;; pause_ns = pause_ns < 1000000 ? pause_ns * 2 : pause_ns) {
        pid_t ended = waitpid(pid, how, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR))
            return ended == pid;
        if (tare__monotonic_ns() >= deadline)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    }
}

int tare__cli_git_answer(tare__cli_git *git)
{
    tare__cli_git requested = *git;
    int how = 0, answer = -1;
    *git = (tare__cli_git){.pid = -1, .from = -1};
    if (requested.pid > 0) {
        uint64_t deadline = requested.requested_ns + PATIENCE_NS;
        answer = first_byte(requested.from, deadline);
        if (answer != 0 || !has_ended(requested.pid, deadline, &how)) {
            answer = answer > 0 ? 1 : -1; /* one changed file is enough */
            kill(-requested.pid, SIGKILL);
            has_ended(requested.pid, tare__monotonic_ns() + DYING_NS, &how);
        } else if (!(WIFEXITED(how) && WEXITSTATUS(how) == 0)) {
            answer = -1;
        }
    }
    if (requested.from >= 0)
        close(requested.from);
    return answer;
}

/* Parses lines such as "local\tfilter.x.clean". Unless git returned a complete list without such a line, its status is
 * not queried. */
static bool has_programs(void)
{
    tare__cli_git git;
    char text[16384];
    size_t at = 0;
    int how = 0;
    ask(&git, ask_programs);
    uint64_t deadline = git.requested_ns + PATIENCE_NS;
    bool ended = false;
    while (git.pid > 0 && at + 1 < sizeof text) {
        struct pollfd pipe = {.fd = git.from, .events = POLLIN};
        uint64_t now = tare__monotonic_ns();
        int ready = poll(&pipe, 1, now < deadline ? (int)((deadline - now) / 1000000u) + 1 : 0);
        ssize_t got = ready > 0 ? read(git.from, text + at, sizeof text - 1 - at) : -1;
        ended = got == 0;
        if (got <= 0 && !(ready < 0 && errno == EINTR))
            break;
        at += got > 0 ? (size_t)got : 0;
    }
    text[at] = '\0';
    if (git.pid > 0 && (!ended || !has_ended(git.pid, deadline, &how))) {
        ended = false;
        kill(-git.pid, SIGKILL);
        has_ended(git.pid, tare__monotonic_ns() + DYING_NS, &how);
    }
    if (git.from >= 0)
        close(git.from);
    /* exit status 1: there are none */
    bool answered = ended && WIFEXITED(how) && WEXITSTATUS(how) <= 1;
    return !answered || strncmp(text, "local", 5) == 0 || strncmp(text, "worktree", 8) == 0 ||
           strstr(text, "\nlocal") || strstr(text, "\nworktree");
}

void tare__cli_git_ask(tare__cli_git *git)
{
    *git = (tare__cli_git){.pid = -1, .from = -1};
    if (!has_programs())
        ask(git, ask_status);
}
