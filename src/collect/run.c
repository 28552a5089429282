/* run: a command from its launch to its end: forwards signals, returns its status.
 * One thread. Must not know what is recorded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

#define REAP_NS 1000000000u /* without a signal */
#define POOL_BYTES_MIN ((uint64_t)1 << 20)

static const int passed_on[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP, SIGALRM};

typedef struct running {
    tare__collector *collector;
    const tare__run_options *options;
    tare__launched child;
    bool ended;
    bool stop_waiting;
    bool ignores_stop; /* SIGTSTP was ignored at the start, also in the program */
    uint64_t reaped_ns;
    int status; /* as returned by wait */
    int signals;
    uint64_t since_ns;
    uint64_t own_bytes; /* resident memory of this process at the launch */
} running;

static int hold_signals(int *fd, tare__error *error)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGPIPE); /* treated as an error here; the program gets the default, unblocked */
    for (size_t i = 0; i < TARE__COUNT_OF(passed_on); i++)
        sigaddset(&set, passed_on[i]);
    *fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (*fd < 0)
        return tare__fail(error, TARE_E_SYSTEM, "cannot watch for signals: %s", strerror(errno));
    sigprocmask(SIG_BLOCK, &set, NULL);
    return 0;
}

/* Signals from the terminal go to the whole foreground group, including the program; signals that a process sends to
 * this one alone are meant for the program. When the terminal is closed, only its session leader is notified. An
 * alarm was set before this command began, for the program. */
static bool program_has_it(const struct signalfd_siginfo *info)
{
    if (info->ssi_code != SI_KERNEL || info->ssi_signo == SIGALRM)
        return false;
    return !((info->ssi_signo == SIGHUP || info->ssi_signo == SIGCONT) && getsid(0) == getpid());
}

static void pass_on(running *run, const struct signalfd_siginfo *info)
{
    int number = (int)info->ssi_signo;
    if (number == SIGCHLD || number == SIGPIPE)
        return;
    if (run->ended) { /* only waiting for others: they continue without this process */
        run->stop_waiting = run->stop_waiting || number == SIGINT || number == SIGTERM || number == SIGHUP ||
                            number == SIGQUIT;
        return;
    }
    if (!program_has_it(info))
        kill(run->child.pid, number);
    if (number == SIGTSTP && !run->ignores_stop)
        kill(getpid(), SIGSTOP);
}

static void take_signals(running *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info)
        pass_on(run, &info);
}

static uint64_t ns_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

/* A process begins with the peak of the process it was forked from: only values above that are its own. */
static void take_usage(running *run, const struct rusage *usage)
{
    tare__child_usage *child = &run->collector->child;
    uint64_t peak = (uint64_t)usage->ru_maxrss * 1024;
    child->known = true;
    child->user_ns = ns_of(&usage->ru_utime);
    child->system_ns = ns_of(&usage->ru_stime);
    child->peak_bytes = peak > run->own_bytes ? peak : 0;
}

/* The child is sampled once more before it is reaped: a zombie still has its usage. */
static void reap(running *run)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
        int status;
        struct rusage usage;
        bool child = info.si_pid == run->child.pid;
        if (child)
            tare__sampling_tick(run->collector, true);
        if (wait4(info.si_pid, &status, WNOHANG, &usage) == info.si_pid && child) {
            run->ended = true;
            run->status = status;
            take_usage(run, &usage);
        }
        info.si_pid = 0;
    }
}

static void wait_for_tick(running *run)
{
    struct pollfd signals = {.fd = run->signals, .events = POLLIN};
    tare__collector_pause(run->collector, &signals, 1);
    if (signals.revents)
        take_signals(run);
    uint64_t now = tare__monotonic_ns();
    if (!signals.revents && now - run->reaped_ns < REAP_NS)
        return;
    run->reaped_ns = now;
    reap(run); /* the exit of a child is a signal, too */
}

void tare__record_tick(tare__collector *collector, const tare__record_options *options, uint64_t since_ns)
{
    tare__collector_tick(collector);
    bool sampled = tare__sampling_tick(collector, false);
    tare__stacks_tick(collector, sampled);
    if (!sampled || !options->on_progress || !collector->sampling.set)
        return;
    tare__run_progress progress = {.elapsed_ns = tare__monotonic_ns() - since_ns, .steps = collector->steps,
                           .now = tare__sample_now_of(collector->sampling.set)};
    options->on_progress(options->context, &progress);
}

/* Until the child, and its descendants that record, have ended. */
static void attend(running *run)
{
    bool told = false;
    for (;;) {
        wait_for_tick(run);
        tare__record_tick(run->collector, &run->options->record, run->since_ns);
        if (!run->ended)
            continue;
        unsigned still = tare__collector_recording(run->collector);
        if (still == 0 || run->options->leave_children || run->stop_waiting)
            return;
        if (!told && run->options->on_waiting)
            run->options->on_waiting(run->options->record.context, still);
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
        return tare__fail(error, 0, "%s is a directory", program);
    if (failed == EACCES)
        return tare__fail(error, 0, "%s: not executable (try chmod +x)", program);
    return tare__fail(error, 0, "%s: %s", program, strerror(failed));
}

static void fill_result(running *run, tare__run_result *result)
{
    result->launched = true;
    if (WIFSIGNALED(run->status)) {
        result->signal = WTERMSIG(run->status);
        result->exit_status = 128 + result->signal;
    } else {
        result->exit_status = WEXITSTATUS(run->status);
    }
    result->elapsed_ns = tare__monotonic_ns() - run->since_ns;
    result->left_running = tare__collector_recording(run->collector);
    bool killed = result->exit_status == 128 + SIGKILL; /* a shell reports this for the command it ran */
    run->collector->oom_killed = tare__sampling_oom(run->collector, killed);
    result->child_user_ns = run->collector->child.user_ns;
    result->child_system_ns = run->collector->child.system_ns;
    result->child_peak_bytes = run->collector->child.peak_bytes;
}

void tare__run_fill_totals(const tare__collector *collector, tare__run_result *result)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    result->collector_cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
    if (collector->sampling.set && collector->sampling.samples) {
        tare__sample_cost cost = tare__sample_cost_of(collector->sampling.set);
        result->sampler_cpu_ns = cost.cpu_ns + collector->stack_cpu_ns;
        result->stretched_ns = cost.longest_ns > collector->sampling.interval_ns ? cost.longest_ns : 0;
    }
    result->oom_killed = collector->oom_killed;
    result->trace_bytes = collector->writer.bytes;
    result->spans = collector->writer.spans;
    result->dropped_spans = collector->dropped_spans + collector->unattributed_spans;
    result->processes = collector->joined;
    strcpy(result->problem, collector->writer.problem);
    strcpy(result->warnings, collector->warnings);
}

void tare__run_hand_over(tare__collector *collector, tare__run_result *result)
{
    const tare__writer *writer = &collector->writer;
    int fd = fcntl(writer->fd, F_DUPFD_CLOEXEC, 3);
    result->trace_fd = fd > 0 ? fd : 0;
    result->trace_mode = writer->mode;
    strcpy(result->trace, writer->path);
    strcpy(result->moved, writer->moved);
    tare__run_keep(result);
}

/* Descriptors for the trace, the session page and socket, signals; a ring and its folder. Checked before anything is
 * created. */
static int have_descriptors(tare__error *error)
{
    int fds[6], failed = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(fds); i++)
        if ((fds[i] = open("/", O_PATH | O_CLOEXEC)) < 0)
            failed = errno;
    for (size_t i = 0; i < TARE__COUNT_OF(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return failed ? tare__fail(error, TARE_E_SYSTEM, "not enough file descriptors (ulimit -n): %s",
                               strerror(failed))
                  : 0;
}

void tare__record_abandon(tare__collector *collector)
{
    tare__writer_abandon(&collector->writer);
    if (collector->folder.page)
        tare__folder_remove(&collector->folder);
}

int tare__record_prepare(tare__collector *collector, const tare__record_options *options, uint64_t pool_bytes,
                         const tare__run_about *of, tare__error *error)
{
    char name[TARE__PATH_BYTES];
    if (options->output)
        snprintf(name, sizeof name, "%s", options->output);
    else
        tare__run_name(of->command, name);
    collector->writer.max_bytes = options->max_bytes;
    collector->writer.rotates = options->max_bytes || options->last_ns;
    collector->last_ns = options->last_ns;
    int status = tare__collector_open(collector, error);
    if (status == 0)
        status = tare__writer_create(&collector->writer, name, options->overwrite, options->readable_by_others,
                                     error);
    if (status)
        return status;
    tare__run_about about = *of;
    about.interval_ns = tare__sampling_interval_ns(options->interval_ns);
    about.carbon_g_per_kwh = options->carbon_g_per_kwh;
    status = tare__folder_create(&collector->folder, pool_bytes, error);
    if (status == 0 && (status = tare__collector_head(collector, &about)) != 0)
        status = tare__fail(error, status, "cannot write %s", collector->writer.problem);
    if (status)
        tare__record_abandon(collector);
    return status;
}

void tare__record_samples(tare__collector *collector, const tare__record_options *options, pid_t pid)
{
    tare__sampling_open(collector, pid, options);
    tare__stacks_open(collector, &(tare__stack_options){pid, options->stack_interval_ns, options->native_stacks});
}

static int prepare(tare__collector *collector, const tare__run_options *options, tare__error *error)
{
    uint64_t pool = options->pool_bytes ? options->pool_bytes : TARE__POOL_BYTES;
    collector->busy_pool_bytes = options->pool_bytes ? 0 : TARE__BUSY_POOL_BYTES;
    pool = (pool + TARE__CHUNK_BYTES - 1) & ~(uint64_t)(TARE__CHUNK_BYTES - 1);
    if (pool < POOL_BYTES_MIN)
        pool = POOL_BYTES_MIN;
    tare__run_about about = {.command = options->command};
    if (options->roofline)
        tare__sample_roofline(0, &about.peaks);
    return tare__record_prepare(collector, &options->record, pool, &about, error);
}

/* Processes forked from one that records that have not recorded yet are not waited for, and their later events are
 * not recorded. */
static void tell_left_behind(running *run)
{
    uint32_t n = 0;
    size_t count = 0;
    const tare__sampled_process *list =
        run->collector->sampling.set ? tare__sample_processes(run->collector->sampling.set, &count) : NULL;
    for (size_t i = 0; i < count; i++)
        n += list[i].alive && list[i].pid != run->child.pid &&
             tare__runs_recorded_program(run->collector, list[i].pid);
    n += tare__orphans_of(run->collector, list, count);
    uint32_t waits = tare__collector_recording(run->collector);
    if (n > waits)
        tare__text_format(&run->collector->notes,
                          "%u %s that the command started still ran when the recording ended: what %s later is not in "
                          "this file\n", n - waits, n - waits == 1 ? "process" : "processes",
                          n - waits == 1 ? "it records" : "they record");
}

static uint64_t own_resident_bytes(void)
{
    char text[256];
    long pages = 0;
    if (tare__sample_read("", "/proc/self/statm", text, sizeof text) <= 0 || sscanf(text, "%*d %ld", &pages) != 1)
        return UINT64_MAX;
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int tare__run(const tare__run_options *options, tare__run_result *result, tare__error *error)
{
    static tare__collector collector;
    memset(&collector, 0, sizeof collector);
    collector.writer.fd = collector.folder.lock = collector.folder.socket = -1;
    memset(result, 0, sizeof *result);
    running run = {.collector = &collector, .options = options};
    tare__inherited inherited;
    struct sigaction stop;
    tare__inherited_take(&inherited);
    int status = have_descriptors(error);
    if (status == 0)
        status = prepare(&collector, options, error);
    if (status) {
        tare__collector_free(&collector);
        return status;
    }
    run.ignores_stop = sigaction(SIGTSTP, NULL, &stop) == 0 && stop.sa_handler == SIG_IGN;
    status = hold_signals(&run.signals, error);
    if (status) {
        tare__record_abandon(&collector);
        tare__collector_free(&collector);
        return status;
    }
    run.own_bytes = own_resident_bytes();
    run.since_ns = tare__monotonic_ns();
    status = tare__launch(options->command, collector.folder.path, &inherited, &run.child);
    if (status || run.child.error) {
        if (status)
            status = tare__fail(error, TARE_E_SYSTEM, "cannot start a process: %s", strerror(-status));
        else
            could_not_launch(&run, result, error);
        tare__record_abandon(&collector);
    } else {
        if (tare__writer_settle(&collector.writer) == 0)
            tare__folder_named(&collector.folder);
        tare__program_note(&collector, run.child.pid);
        tare__record_samples(&collector, &options->record, run.child.pid);
        attend(&run);
        fill_result(&run, result);
        tell_left_behind(&run);
        tare__collector_finish(&collector, result->exit_status, result->signal, result->left_running);
        tare__run_fill_totals(&collector, result);
        tare__run_hand_over(&collector, result);
        strcpy(result->folder, collector.folder.path);
        if (!collector.unread_rings && tare__folder_remove(&collector.folder)) /* unreadable rings are kept */
            result->folder[0] = '\0';
    }
    close(run.signals);
    tare__collector_free(&collector);
    return status;
}
