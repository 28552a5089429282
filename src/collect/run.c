/* run: a command from its launch to its end: signals go through to it, its status comes back.
 * One thread. Must not know what is recorded. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

#define POOL_BYTES_MIN ((uint64_t)1 << 20)

static const int passed_on[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP, SIGALRM};

typedef struct running {
    tare__collector *collector;
    const tare__run_options *options;
    tare__launched child;
    bool ended;
    bool stop_waiting;
    int status; /* of wait */
    int signals;
} running;

static void hold_signals(sigset_t *before, int *fd)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGPIPE); /* ours to see as an error; the program gets its own, unblocked */
    for (size_t i = 0; i < TARE__COUNT_OF(passed_on); i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, before);
    *fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* What the terminal sends goes to the whole foreground group, the program included; what a process sends to
 * us alone is meant for the program. */
static void pass_on(running *run, const struct signalfd_siginfo *info)
{
    int number = (int)info->ssi_signo;
    if (number == SIGCHLD || number == SIGPIPE)
        return;
    if (run->ended) { /* only waiting for others: they will do without us */
        run->stop_waiting = run->stop_waiting || number == SIGINT || number == SIGTERM || number == SIGHUP ||
                            number == SIGQUIT;
        return;
    }
    if (info->ssi_code != SI_KERNEL)
        kill(run->child.pid, number);
    if (number == SIGTSTP)
        kill(getpid(), SIGSTOP);
}

static void take_signals(running *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info)
        pass_on(run, &info);
}

static void reap(running *run)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == run->child.pid) {
            run->ended = true;
            run->status = status;
        }
}

/* Not woken by a hello: whoever is woken by a message runs where its sender runs, and would push the program
 * off its CPU just when it starts. */
static void wait_a_beat(running *run)
{
    struct pollfd events = {.fd = run->signals, .events = POLLIN};
    struct timespec pause = {0, (long)tare__collector_pause_ns(run->collector)};
    ppoll(&events, 1, &pause, NULL);
}

/* To the end of the child, and of those below it that record. */
static void attend(running *run)
{
    bool told = false;
    for (;;) {
        wait_a_beat(run);
        take_signals(run);
        reap(run);
        tare__collector_beat(run->collector);
        if (!run->ended)
            continue;
        unsigned still = tare__collector_recording(run->collector);
        if (still == 0 || run->options->leave_children || run->stop_waiting)
            return;
        if (!told && run->options->on_waiting)
            run->options->on_waiting(run->options->context, still);
        told = true;
    }
}

static int could_not_launch(const running *run, tare__run_result *result, tare__error *error)
{
    int failed = run->child.error;
    result->exit_status = failed == ENOENT ? 127 : 126;
    const char *program = run->options->command[0];
    if (failed == ENOENT)
        return tare__fail(error, 0, strchr(program, '/') ? "%s: no such program" : "%s: not found in PATH", program);
    struct stat about;
    if (failed == EACCES && stat(program, &about) == 0 && S_ISDIR(about.st_mode))
        return tare__fail(error, 0, "%s is a folder", program);
    if (failed == EACCES)
        return tare__fail(error, 0, "%s: not executable (chmod +x would make it so)", program);
    return tare__fail(error, 0, "%s: %s", program, strerror(failed));
}

static void fill_result(running *run, tare__run_result *result, uint64_t since_ns)
{
    result->launched = true;
    if (WIFSIGNALED(run->status)) {
        result->signal = WTERMSIG(run->status);
        result->exit_status = 128 + result->signal;
    } else {
        result->exit_status = WEXITSTATUS(run->status);
    }
    result->elapsed_ns = tare__monotonic_ns() - since_ns;
    result->left_running = tare__collector_recording(run->collector);
}

static void fill_totals(tare__collector *collector, tare__run_result *result)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    result->collector_cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
                               (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
    result->trace_bytes = collector->writer.bytes;
    result->spans = collector->writer.spans;
    result->dropped_spans = collector->dropped_spans + collector->homeless_spans;
    result->processes = collector->joined;
    strcpy(result->trace, collector->writer.path);
    strcpy(result->trouble, collector->writer.trouble);
}

static int prepare(tare__collector *collector, const tare__run_options *options, tare__error *error)
{
    uint64_t pool = options->pool_bytes ? options->pool_bytes : TARE__POOL_BYTES;
    collector->busy_pool_bytes = options->pool_bytes ? 0 : TARE__BUSY_POOL_BYTES;
    pool = (pool + TARE__CHUNK_BYTES - 1) & ~(uint64_t)(TARE__CHUNK_BYTES - 1);
    if (pool < POOL_BYTES_MIN)
        pool = POOL_BYTES_MIN;
    char name[TARE__PATH_BYTES];
    if (options->output)
        snprintf(name, sizeof name, "%s", options->output);
    else
        tare__run_name(options->command, name);
    collector->writer.max_bytes = options->max_bytes;
    collector->writer.rotates = options->max_bytes || options->last_ns;
    collector->last_ns = options->last_ns;
    int status = tare__collector_open(collector, error);
    if (status == 0)
        status = tare__writer_create(&collector->writer, name, options->overwrite, options->readable_by_others, error);
    if (status)
        return status;
    status = tare__folder_create(&collector->folder, pool, error);
    if (status == 0 && (status = tare__collector_head(collector, options->command)) != 0)
        status = tare__fail(error, status, "cannot write %s", collector->writer.trouble);
    if (status) {
        unlink(collector->writer.path);
        if (collector->folder.page)
            tare__folder_remove(&collector->folder);
    }
    return status;
}

int tare__run(const tare__run_options *options, tare__run_result *result, tare__error *error)
{
    static tare__collector collector;
    memset(&collector, 0, sizeof collector);
    collector.writer.fd = collector.folder.lock = collector.folder.socket = -1;
    memset(result, 0, sizeof *result);
    running run = {.collector = &collector, .options = options};
    int status = prepare(&collector, options, error);
    if (status) {
        tare__collector_free(&collector);
        return status;
    }
    sigset_t before;
    hold_signals(&before, &run.signals);
    uint64_t since = tare__monotonic_ns();
    status = tare__launch(options->command, collector.folder.path, &before, &run.child);
    if (status || run.child.error) {
        if (status)
            status = tare__fail(error, TARE_E_SYSTEM, "cannot start a process: %s", strerror(-status));
        else
            could_not_launch(&run, result, error);
        unlink(collector.writer.path);
        tare__folder_remove(&collector.folder);
    } else {
        collector.root_pid = run.child.pid;
        attend(&run);
        fill_result(&run, result, since);
        tare__collector_finish(&collector, result->exit_status, result->signal, result->left_running);
        fill_totals(&collector, result);
        strcpy(result->folder, collector.folder.path);
        if (tare__folder_remove(&collector.folder))
            result->folder[0] = '\0';
    }
    close(run.signals);
    tare__collector_free(&collector);
    return status;
}
