/* dirty: asks git whether tracked files differ from the commit that is checked out. One thread.
 * Must not know what the answer is for, nor wait for it longer than a moment. */
#define _GNU_SOURCE
#include "keep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 250

extern char **environ;

/* Its standard output comes through the pipe; what it says besides goes nowhere. */
static pid_t start_git(int to)
{
    static char *const words[] = {"git",         "--no-optional-locks",  "status",
                                  "--porcelain", "--untracked-files=no", NULL};
    posix_spawn_file_actions_t files;
    pid_t pid = -1;
    if (posix_spawn_file_actions_init(&files) != 0)
        return -1;
    if (posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) != 0 ||
        posix_spawn_file_actions_adddup2(&files, to, 1) != 0 ||
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawnp(&pid, "git", &files, NULL, words, environ) != 0)
        pid = -1;
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

/* 1: a byte came; 0: the end without one; -1: neither in time. */
static int first_byte(int from)
{
    struct pollfd pipe = {.fd = from, .events = POLLIN};
    char byte;
    int ready;
    do
        ready = poll(&pipe, 1, PATIENCE_MS);
    while (ready < 0 && errno == EINTR);
    return ready > 0 ? (int)read(from, &byte, 1) : -1;
}

int tare__cli_git_dirty(void)
{
    int ends[2], how = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = start_git(ends[1]);
    close(ends[1]);
    int answer = pid > 0 ? first_byte(ends[0]) : -1;
    close(ends[0]);
    if (pid <= 0)
        return -1;
    if (answer != 0)
        kill(pid, SIGKILL); /* one changed file is enough to know */
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    return answer == 0 && !(WIFEXITED(how) && WEXITSTATUS(how) == 0) ? -1 : answer;
}
