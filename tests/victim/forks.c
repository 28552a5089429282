/* forks: every way in which one process becomes two, or another one.
 * One thread a process.
 * Must not know anything of Tare but tare.h. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

extern char **environ;

static void record(const char *name, int n)
{
    for (int i = 0; i < n; i++) {
        tare_begin_name(name);
        tare_end(NULL);
    }
}

static int wait_for(pid_t pid)
{
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, __WALL) != pid)
        return 97;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 96;
}

/* The child inherits an open span, which is its parent's alone. */
static int with_fork(pid_t (*split)(void))
{
    tare_begin_name("around fork");
    pid_t pid = split();
    if (pid == 0) {
        record("child", 20);
        _exit(0);
    }
    int status = wait_for(pid);
    tare_end(NULL);
    record("parent", 10);
    return status;
}

static pid_t plain_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static int with_exec(char **argv, pid_t (*split)(void))
{
    record("parent", 10);
    pid_t pid = split();
    if (pid == 0) {
        record("child", 20);
        execl(argv[0], argv[0], "plain", "30", (char *)NULL);
        _exit(95);
    }
    return wait_for(pid);
}

static int with_vfork(char **argv)
{
    record("parent", 10);
    pid_t pid = vfork();
    if (pid == 0) {
        execl(argv[0], argv[0], "plain", "30", (char *)NULL);
        _exit(95);
    }
    record("parent", 10);
    return wait_for(pid);
}

/* What a vforked child records before it execs lands in its parent's memory, and must do no harm there. */
static int with_recording_vfork(char **argv)
{
    record("parent", 10);
    pid_t pid = vfork();
    if (pid == 0) {
        static tare_site between = TARE_SITE("between");
        tare_begin(&between);
        tare_end(&between);
        execl(argv[0], argv[0], "plain", "30", (char *)NULL);
        _exit(95);
    }
    record("parent", 10);
    return wait_for(pid);
}

static int with_spawn(char **argv)
{
    record("parent", 10);
    char *const words[] = {argv[0], (char *)(uintptr_t)"plain", (char *)(uintptr_t)"30", NULL};
    pid_t pid;
    if (posix_spawn(&pid, argv[0], NULL, NULL, words, environ) != 0)
        return 94;
    return wait_for(pid);
}

/* It outlives the first process; the late one records nothing before that. */
static int as_daemon(int late)
{
    record("parent", 10);
    if (fork() != 0) {
        wait_ms(100);
        return 0;
    }
    setsid();
    if (fork() != 0)
        _exit(0);
    record("daemon", late ? 0 : 5);
    wait_ms(400);
    record("daemon", 15);
    _exit(0);
}

static int workers(uint64_t n)
{
    record("parent", 10);
    for (uint64_t i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char name[32];
            snprintf(name, sizeof name, "rank %u", (unsigned)i);
            record(name, (int)i + 1);
            if (i % 2 == 0 && fork() == 0)
                record("below", 1);
            else if (i % 2 == 0)
                wait(NULL);
            _exit(0);
        }
    }
    int status, bad = 0;
    while (wait(&status) > 0)
        bad += status != 0;
    tell("workers", n);
    return bad ? 93 : 0;
}

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    if (strcmp(mode, "fork") == 0)
        return with_fork(fork);
    if (strcmp(mode, "_Fork") == 0)
        return with_fork(_Fork);
    if (strcmp(mode, "clone") == 0)
        return with_fork(plain_clone);
    if (strcmp(mode, "exec") == 0)
        return with_exec(argv, fork);
    if (strcmp(mode, "vfork") == 0)
        return with_vfork(argv);
    if (strcmp(mode, "vfork-record") == 0)
        return with_recording_vfork(argv);
    if (strcmp(mode, "spawn") == 0)
        return with_spawn(argv);
    if (strcmp(mode, "daemon") == 0)
        return as_daemon(0);
    if (strcmp(mode, "late-daemon") == 0)
        return as_daemon(1);
    if (strcmp(mode, "workers") == 0)
        return workers(number_of(argc, argv, 2, 20));
    if (strcmp(mode, "plain") == 0) {
        record("plain", (int)number_of(argc, argv, 2, 10));
        return 0;
    }
    if (strcmp(mode, "inplace") == 0) {
        record("before", 15);
        execl(argv[0], argv[0], "plain", "30", (char *)NULL);
        return 95;
    }
    return unknown_mode(mode);
}
