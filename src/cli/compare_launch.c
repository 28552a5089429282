/* compare_launch: runs a command in its own process group, so that a signal reaches it only once, forwarded by Tare.
 * One thread; the handler only forwards.
 * Must not know what is compared. */
#define _GNU_SOURCE
#include "compare_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tare.h"

#define PATIENCE_NS 5e9 /* for an interrupted command to end, before each stronger signal */

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction before[TARE__COUNT_OF(watched)];
static volatile sig_atomic_t interrupts;
static volatile pid_t running;

static void forward(int signal)
{
    int kept = errno;
    interrupts = interrupts < 100 ? interrupts + 1 : interrupts;
    if (running > 0)
        kill(-running, interrupts > 1 ? SIGKILL : signal);
    errno = kept;
}

void tare__ab_watch(void)
{
    struct sigaction action = {.sa_handler = forward};
    interrupts = 0;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < TARE__COUNT_OF(watched); i++)
        sigaction(watched[i], &action, &before[i]);
}

void tare__ab_unwatch(void)
{
    for (size_t i = 0; i < TARE__COUNT_OF(watched); i++)
        sigaction(watched[i], &before[i], NULL);
}

bool tare__ab_interrupted(void)
{
    return interrupts > 0;
}

static double time_ns(struct timeval time)
{
    return (double)time.tv_sec * 1e9 + (double)time.tv_usec * 1e3;
}

/* Only async-signal-safe calls, between fork and exec. */
static void become(char *const *argv, int log, int nothing, pid_t parent, const sigset_t *mask)
{
    int out = log < 0 ? STDERR_FILENO : log;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    for (size_t i = 0; i < TARE__COUNT_OF(watched); i++)
        signal(watched[i], SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(127);
    execv(argv[0], argv);
    _exit(127);
}

/* In the background, a command that opens the terminal itself (/dev/tty) is stopped and would wait forever. */
static bool asks_for_terminal(int status)
{
    return WIFSTOPPED(status) && (WSTOPSIG(status) == SIGTTIN || WSTOPSIG(status) == SIGTTOU);
}

/* A shell may assume that a signal was for its child and continue: after some seconds a stronger one is sent. */
static void wait_for(pid_t child, tare__ab_ran *result)
{
    struct rusage usage = {0};
    double reported_ns = 0;
    for (int step = 0;;) {
        pid_t ended = wait4(child, &result->status, WUNTRACED | (interrupts ? WNOHANG : 0), &usage);
        bool stopped = ended == child && WIFSTOPPED(result->status);
        if ((ended == child && !stopped) || (ended < 0 && errno != EINTR))
            break;
        if (stopped && asks_for_terminal(result->status)) {
            result->wanted_terminal = true;
            kill(-child, SIGKILL);
        }
        if (ended < 0 || stopped)
            continue;
        if (reported_ns == 0)
            reported_ns = (double)tare__monotonic_ns();
        if (step < 2 && (double)tare__monotonic_ns() - reported_ns > (step + 1) * PATIENCE_NS)
            kill(-child, step++ ? SIGKILL : SIGTERM);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    result->cpu_ns = time_ns(usage.ru_utime) + time_ns(usage.ru_stime);
    result->peak_bytes = (double)usage.ru_maxrss * 1024;
}

static int launch(char *const *argv, int log, tare__ab_ran *result, tare__error *error)
{
    sigset_t all, mask;
    pid_t parent = getpid();
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0)
        return tare__fail(error, TARE_E_SYSTEM, "cannot open /dev/null: %s", strerror(errno));
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask); /* until the pid to forward to is known */
    double start = (double)tare__monotonic_ns();
    pid_t child = fork();
    if (child == 0)
        become(argv, log, nothing, parent, &mask);
    int failure = errno;
    if (child > 0)
        setpgid(child, child); /* in both processes, to avoid a race */
    running = child;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (child > 0)
        wait_for(child, result);
    running = 0;
    result->elapsed_ns = (double)tare__monotonic_ns() - start;
    close(nothing);
    if (child < 0)
        return tare__fail(error, TARE_E_SYSTEM, "cannot start a process: %s", strerror(failure));
    while (argv[1])
        argv++;
    return result->wanted_terminal
               ? tare__fail(error, TARE_E_INPUT, "`%.150s` reads from the terminal, which is not available here",
                            argv[0])
               : 0;
}

int tare__ab_run(const char *command, const char *trace, int log, tare__ab_ran *result, tare__error *error)
{
    char *const words[] = {(char *)"/proc/self/exe", (char *)"run", (char *)"-q",      (char *)"--no-history",
                           (char *)"-o",             (char *)trace, (char *)"--",      (char *)"/bin/sh",
                           (char *)"-c",             (char *)command, NULL};
    return launch(trace ? words : words + 7, log, result, error);
}
