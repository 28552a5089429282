/* limits: programs at the limits of their process: signals that never return, forbidden counters, tiny stacks, many
 * processes, daemons. With `state`, what a program inherits, to compare with and without Tare.
 * One thread a process.
 * Must not know anything of Tare but tare.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

static tare_site outer = TARE_SITE("outer"), inner = TARE_SITE("inner");

static void record(const char *name, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        tare_begin_name(name);
        tare_end(NULL);
    }
}

/* ---- a handler that never returns -------------------------------------------------------------------------- */
static sigjmp_buf back;
static volatile uint64_t made, jumps;
static volatile int armed;

static void jump(int number)
{
    (void)number;
    if (armed) {
        jumps++;
        siglongjmp(back, 1);
    }
}

static __attribute__((noinline)) void deeper(int levels)
{
    volatile char room[256];
    room[0] = (char)levels;
    if (levels > 0)
        deeper(levels - 1);
    made++;
    tare_begin(&inner);
    tare_end(&inner);
    room[1] = room[0];
}

/* Spans as fast as they go (or with every one a name of its own), left by the timer all the time. */
static void be_left(uint64_t ms, int interval_us, const char *what)
{
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_NODEFER};
    struct itimerval often = {{0, interval_us}, {0, interval_us}}, never = {{0, 0}, {0, 0}};
    uint64_t until = monotonic_ns() + ms * 1000000;
    volatile uint64_t names = 0;
    sigaction(SIGALRM, &action, NULL);
    if (strcmp(what, "join") != 0)
        record("first", 1);
    setitimer(ITIMER_REAL, &often, NULL);
    while (monotonic_ns() < until) {
        armed = 0;
        sigsetjmp(back, 1);
        armed = 1;
        for (int i = 0; i < 2000 && monotonic_ns() < until; i++) {
            if (strcmp(what, "names") == 0 && names < 5000) {
                char name[32];
                snprintf(name, sizeof name, "name %d", (int)names++);
                tare_begin_name(name);
                made++;
                tare_end(NULL);
            }
            made++;
            tare_begin(&outer);
            tare_end(&outer);
            deeper(i % 7);
        }
    }
    armed = 0;
    setitimer(ITIMER_REAL, &never, NULL);
    usleep(300000); /* what was dropped meanwhile is counted; these have to find space again */
    record("last", 100);
    tell("made", made);
    tell("jumps", jumps);
}

/* ---- many processes at once -------------------------------------------------------------------------------- */
static void crowd(uint64_t processes, uint64_t spans)
{
    int gate[2], ready[2];
    char byte;
    if (pipe(gate) != 0 || pipe(ready) != 0)
        exit(98);
    for (uint64_t i = 0; i < processes; i++)
        if (fork() == 0) {
            close(gate[1]);
            record("crowd", spans / 2);
            if (write(ready[1], "x", 1) != 1 || read(gate[0], &byte, 1) < 0) /* until all have joined */
                _exit(97);
            record("crowd", spans - spans / 2);
            _exit(0);
        }
    close(ready[1]);
    for (uint64_t i = 0; i < processes; i++)
        if (read(ready[0], &byte, 1) != 1)
            exit(96);
    close(gate[1]);
    int status, failed = 0;
    while (wait(&status) > 0)
        failed += status != 0;
    tell("made", processes * spans);
    tell("failed", (uint64_t)failed);
}

/* ---- forbidden counter, small stack ------------------------------------------------------------------------ */
static void on_small_stack(int number)
{
    (void)number;
    record("on the small stack", 1);
    tare_begin(&inner);
    tare_end(&inner);
}

/* Of the smallest size that this machine's kernel takes: its own frame, and little more. */
static void small_stack(uint64_t n, int join_there, size_t extra)
{
    size_t bytes = (size_t)sysconf(_SC_MINSIGSTKSZ) + extra, page = 4096;
    size_t whole = (bytes + page - 1) / page * page + page;
    char *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, page, PROT_NONE); /* below the stack: no silent damage */
    stack_t stack = {.ss_sp = memory + page, .ss_size = bytes};
    struct sigaction action = {.sa_handler = on_small_stack, .sa_flags = SA_ONSTACK};
    tell("stack", (uint64_t)(sigaltstack(&stack, NULL) == 0));
    sigaction(SIGUSR1, &action, NULL);
    if (!join_there)
        record("before", 1);
    for (uint64_t i = 0; i < n; i++)
        raise(SIGUSR1);
    record("after", 1);
    tell("made", 2 * n + 1 + !join_there);
}

static uint64_t kernel_ns(void) /* clock_gettime itself reads the counter */
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void timed(void)
{
    tell("tsc", (uint64_t)(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0));
    record("first", 1);
    for (int i = 0; i < 5; i++) {
        uint64_t from = kernel_ns();
        tare_begin_name("slow clock");
        wait_ms(20);
        tare_end(NULL);
        tell("ns", kernel_ns() - from);
    }
}

/* ---- what a program inherits ------------------------------------------------------------------------------- */
static void state(void)
{
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < 65; number++) {
        struct sigaction action;
        if (number == SIGKILL || number == SIGSTOP || sigaction(number, NULL, &action) != 0)
            continue;
        printf("signal-%d %s%s\n", number, action.sa_handler == SIG_IGN ? "ignored" : "default",
               sigismember(&mask, number) == 1 ? " blocked" : "");
    }
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
            printf("limit-%d %llu %llu\n", i, (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
    }
    for (int fd = 0; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("descriptor-%d open\n", fd);
}

/* ---- sessions of its own ----------------------------------------------------------------------------------- */
static int start(const char *output)
{
    tare_options options = {.size = sizeof options, .output = output};
    return tare_start(&options);
}

static int helper_of(const char *output)
{
    DIR *list = opendir("/proc");
    int found = 0;
    for (struct dirent *entry; !found && list && (entry = readdir(list));) {
        char path[300], text[4096] = "";
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        int fd = open(path, O_RDONLY);
        ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        if (got < 14 || strcmp(text, "tare") != 0 || strcmp(text + 5, "collect") != 0)
            continue;
        snprintf(path, sizeof path, "/proc/%s/fd", entry->d_name);
        DIR *fds = opendir(path);
        for (struct dirent *file; !found && fds && (file = readdir(fds));) {
            char link[600], target[4096] = "";
            snprintf(link, sizeof link, "%s/%s", path, file->d_name);
            if (readlink(link, target, sizeof target - 1) > 0 && strstr(target, output))
                found = atoi(entry->d_name);
        }
        if (fds)
            closedir(fds);
    }
    if (list)
        closedir(list);
    return found;
}

static void stopped_helper(void)
{
    tell("started", (uint64_t)(start("own.tare") == 0));
    record("own", 10);
    char whole[4096];
    int pid = realpath(tare_output(), whole) ? helper_of(whole) : 0;
    tell("helper", (uint64_t)pid);
    if (pid <= 0 || kill(pid, SIGSTOP) != 0)
        exit(95);
    uint64_t from = monotonic_ns();
    int status = tare_stop();
    tell("ms", (monotonic_ns() - from) / 1000000);
    tell("status", (uint64_t)-status);
    kill(pid, SIGCONT);
}

static void forked_stop(void)
{
    tell("started", (uint64_t)(start("own.tare") == 0));
    record("before", 10);
    pid_t pid = fork();
    if (pid == 0) {
        record("child", 5);
        int status = tare_stop();
        record("paused", 7);
        int again = tare_start(NULL);
        record("child", 5);
        _exit(status == 0 && again == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    tell("child", (uint64_t)status);
    tell("recording", (uint64_t)tare_recording());
    record("after", 20);
    tell("stopped", (uint64_t)(tare_stop() == 0));
}

/* A child that outlives the program, and records only then. */
static void daemonize(uint64_t ms, int twice)
{
    record("parent", 10);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (twice && fork() != 0) /* and all of them end within a millisecond */
            _exit(0);
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        wait_ms((unsigned)ms);
        record("daemon", 10);
        _exit(0);
    }
    if (twice)
        waitpid(pid, NULL, 0);
    else
        wait_ms(1000); /* until it was sampled */
}

static void outlived_session(void)
{
    tell("started", (uint64_t)(start("own.tare") == 0));
    record("parent", 10);
    int ready[2];
    char byte;
    if (pipe(ready) != 0)
        exit(98);
    pid_t pid = fork();
    if (pid == 0) {
        record("child", 5);
        if (write(ready[1], "x", 1) != 1)
            _exit(97);
        wait_ms(60000);
        _exit(0);
    }
    tell("ready", (uint64_t)(read(ready[0], &byte, 1) == 1));
    tell("stopped", (uint64_t)(tare_stop() == 0));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void on_hup(int number)
{
    (void)number;
    static const char said[] = "hup 1\n";
    if (write(STDOUT_FILENO, said, sizeof said - 1) < 0)
        _exit(97);
    _exit(7);
}

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    uint64_t first = number_of(argc, argv, 2, 100);
    if (strcmp(mode, "state") == 0)
        state();
    else if (strcmp(mode, "left") == 0)
        be_left(first, (int)number_of(argc, argv, 3, 50), argc > 4 ? argv[4] : "");
    else if (strcmp(mode, "crowd") == 0)
        crowd(first, number_of(argc, argv, 3, 200));
    else if (strcmp(mode, "small-stack") == 0)
        small_stack(first, (int)number_of(argc, argv, 3, 0), number_of(argc, argv, 4, 2048));
    else if (strcmp(mode, "timed") == 0)
        timed();
    else if (strcmp(mode, "spans") == 0) {
        record("span", first);
        tell("made", first);
        return (int)number_of(argc, argv, 3, 0);
    } else if (strcmp(mode, "stopped-helper") == 0)
        stopped_helper();
    else if (strcmp(mode, "forked-stop") == 0)
        forked_stop();
    else if (strcmp(mode, "daemon") == 0)
        daemonize(first, number_of(argc, argv, 3, 0) != 0);
    else if (strcmp(mode, "outlived") == 0)
        outlived_session();
    else if (strcmp(mode, "hup") == 0) {
        signal(SIGHUP, on_hup);
        record("waits", 1);
        tell("ready", 1);
        wait_ms(60000);
    } else if (strcmp(mode, "undumpable") == 0) {
        prctl(PR_SET_DUMPABLE, 0);
        record("before", 5);
        for (uint64_t until = monotonic_ns() + first * 1000000; monotonic_ns() < until;)
            record("busy", 1);
    } else if (strcmp(mode, "no-folder") == 0) { /* the session's folder goes away before a child joins */
        char command[4096];
        record("parent", 10);
        wait_ms(500); /* the collector has this process's ring by then */
        const char *folder = getenv("TARE_SESSION");
        snprintf(command, sizeof command,
                 strcmp(argc > 2 ? argv[2] : "", "mode") == 0 ? "chmod 0500 '%s'" : "rm -rf '%s'",
                 folder ? folder : "/nonexistent");
        if (folder && system(command) != 0)
            return 98;
        wait_ms(200);
        pid_t pid = fork();
        if (pid == 0) {
            record("child", 5);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
        record("parent", 10);
    } else
        return unknown_mode(mode);
    return 0;
}
