/* attach: samples a running process from outside, until it ends or this command is stopped.
 * One thread. The process is only read, never changed.
 * Must not know what is measured. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch.h"

typedef struct attached {
    tare__collector *collector;
    const tare__attach_options *options;
    int pidfd; /* -1: not supported by the kernel, its pid is checked instead */
    int signals;
    uint64_t since_ns;
    bool ended, asked;
} attached;

static int find_process(attached *at, tare__error *error)
{
    pid_t pid = at->options->pid;
    char path[64];
    struct stat about;
    if (pid <= 0)
        return tare__fail(error, TARE_E_USAGE, "%d is not a process id", (int)pid);
    if (pid == getpid())
        return tare__fail(error, TARE_E_USAGE, "%d is this command itself", (int)pid);
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return tare__fail(error, TARE_E_INPUT, "no process %d", (int)pid);
    if (stat(path, &about) != 0)
        return tare__fail(error, TARE_E_PERMISSION,
                          "cannot read process %d: run as its user or as root, or mount /proc without hidepid",
                          (int)pid);
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)pid, (int)pid);
    if (stat(path, &about) != 0)
        return tare__fail(error, TARE_E_INPUT, "no process %d", (int)pid);
    at->collector->of_another_user = tare__user_of(pid) != geteuid();
    at->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return 0;
}

static int prepare(attached *at, tare__error *error)
{
    static char text[65536];
    char *words[1024];
    pid_t pid = at->options->pid;
    tare__arguments_of(pid, text, sizeof text, words, TARE__COUNT_OF(words));
    return tare__record_prepare(at->collector, &at->options->record, TARE__POOL_BYTES,
                                &(tare__run_about){.command = words, .attached = pid}, error);
}

static int hold_signals(attached *at, sigset_t *before, tare__error *error)
{
    static const int asked_by[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < TARE__COUNT_OF(asked_by); i++)
        sigaddset(&set, asked_by[i]);
    at->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (at->signals < 0)
        return tare__fail(error, TARE_E_SYSTEM, "cannot watch for signals: %s", strerror(errno));
    sigprocmask(SIG_BLOCK, &set, before);
    return 0;
}

static void wait_for_tick(attached *at)
{
    struct pollfd events[] = {{.fd = at->signals, .events = POLLIN}, {.fd = at->pidfd, .events = POLLIN}};
    tare__collector_pause(at->collector, events, TARE__COUNT_OF(events));
    struct signalfd_siginfo info; /* consumed, so that it is not delivered again when signals are unblocked */
    while (read(at->signals, &info, sizeof info) == (ssize_t)sizeof info)
        at->asked = true;
    at->ended = at->ended || events[1].revents ||
                (at->pidfd < 0 && kill(at->options->pid, 0) != 0 && errno == ESRCH);
}

static bool time_is_up(const attached *at)
{
    return at->options->for_ns && tare__monotonic_ns() - at->since_ns >= at->options->for_ns;
}

static void attend(attached *at)
{
    while (!at->ended && !at->asked && !time_is_up(at)) {
        wait_for_tick(at);
        tare__record_tick(at->collector, &at->options->record, at->since_ns);
    }
    tare__sampling_tick(at->collector, true);
}

int tare__attach(const tare__attach_options *options, tare__run_result *result, tare__error *error)
{
    static tare__collector collector;
    memset(&collector, 0, sizeof collector);
    collector.writer.fd = collector.folder.lock = collector.folder.socket = -1;
    memset(result, 0, sizeof *result);
    attached at = {.collector = &collector, .options = options, .pidfd = -1, .since_ns = tare__monotonic_ns()};
    int status = find_process(&at, error);
    if (status == 0)
        status = prepare(&at, error);
    sigset_t before;
    if (status == 0 && (status = hold_signals(&at, &before, error)) != 0)
        tare__record_abandon(&collector);
    if (status == 0) {
        tare__record_samples(&collector, &options->record, options->pid);
        if (tare__writer_settle(&collector.writer) == 0)
            tare__folder_named(&collector.folder);
        attend(&at);
        result->launched = true;
        result->elapsed_ns = tare__monotonic_ns() - at.since_ns;
        collector.oom_killed = at.ended && tare__sampling_oom(&collector, false);
        tare__collector_finish(&collector, -1, 0, 0);
        tare__run_fill_totals(&collector, result);
        tare__run_hand_over(&collector, result);
        tare__folder_remove(&collector.folder);
        close(at.signals);
        sigprocmask(SIG_SETMASK, &before, NULL);
    }
    if (at.pidfd >= 0)
        close(at.pidfd);
    tare__collector_free(&collector);
    return status;
}
