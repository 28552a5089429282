/* helper: finds the tare program and starts it. Called by tare_start only.
 * Must not know what the helper does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"

#define STACK_BYTES 65536

static bool usable(const char *path)
{
    return access(path, X_OK) == 0;
}

static bool beside_library(char path[TARE__PATH_BYTES])
{
    Dl_info about;
    if (!dladdr((void *)(uintptr_t)&tare__helper_find, &about) || !about.dli_fname)
        return false;
    const char *slash = strrchr(about.dli_fname, '/');
    int folder = slash ? (int)(slash - about.dli_fname) : 0;
    /* As installed by make and pip --target; in a build; as installed by pip, relative to
     * lib/python3.x/site-packages/tare. */
    static const char *const places[] = {"../bin/tare", "tare", "../../../../bin/tare"};
    for (size_t i = 0; i < TARE__COUNT_OF(places); i++)
        if (slash && snprintf(path, TARE__PATH_BYTES, "%.*s/%s", folder, about.dli_fname, places[i]) <
                         TARE__PATH_BYTES && usable(path))
            return true;
    return false;
}

static bool on_path(char path[TARE__PATH_BYTES])
{
    const char *list = secure_getenv("PATH");
    while (list && *list) {
        size_t length = strcspn(list, ":");
        if (list[0] == '/' && snprintf(path, TARE__PATH_BYTES, "%.*s/tare", (int)length, list) < TARE__PATH_BYTES &&
            usable(path))
            return true;
        list += length + (list[length] == ':');
    }
    return false;
}

bool tare__helper_find(const char *wanted, char path[TARE__PATH_BYTES])
{
    if (!wanted)
        wanted = secure_getenv("TARE_HELPER");
    if (wanted)
        return snprintf(path, TARE__PATH_BYTES, "%s", wanted) < TARE__PATH_BYTES && usable(path);
    return beside_library(path) || on_path(path);
}

typedef struct spawn_request {
    const char *path;
    char *const *arguments;
    int socket;
    sigset_t mask;
    volatile int failed;
    volatile int helper; /* its pid */
    char *stack; /* of the second process */
} spawn_request;

/* Runs on memory shared with this process, which waits: system calls only. */
static int helper_process(void *argument)
{
    spawn_request *request = argument;
    setsid(); /* an interrupt at the terminal is meant for the program; the helper must still write the rest of the
               * trace */
    fcntl(request->socket, F_SETFD, 0);
    for (int signal = 1; signal < 32; signal++) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigaction(signal, &action, NULL);
    }
    sigprocmask(SIG_SETMASK, &request->mask, NULL);
    execv(request->path, request->arguments);
    request->failed = 1;
    syscall(SYS_exit, 127);
    return 127;
}

static int go_between(void *argument)
{
    spawn_request *request = argument;
    request->helper = clone(helper_process, request->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, request);
    if (request->helper < 0)
        request->failed = 1;
    syscall(SYS_exit, 0);
    return 0;
}

/* Two steps, so that the program's own wait() never returns a child it does not know: the intermediate process has
 * no exit signal, which hides it from wait(), and the helper is then not a child of this process. */
int tare__helper_spawn(const char *path, int socket, int *helper)
{
    char number[16];
    snprintf(number, sizeof number, "%d", socket);
    char *const arguments[] = {(char *)(uintptr_t) "tare", (char *)(uintptr_t) "collect",
                               (char *)(uintptr_t) "--socket", number, NULL};
    char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED)
        return TARE_E_MEMORY;
    spawn_request request = {.path = path, .arguments = arguments, .socket = socket, .stack = stacks + STACK_BYTES};
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &request.mask);
    int pid = clone(go_between, stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK, &request);
    sigprocmask(SIG_SETMASK, &request.mask, NULL);
    if (pid > 0)
        while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
            ;
    munmap(stacks, 2 * STACK_BYTES);
    *helper = request.helper;
    return pid < 0 || request.failed ? TARE_E_NO_HELPER : 0;
}
