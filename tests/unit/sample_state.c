/* Tests of the states of threads (src/sample/state.c and its parts) on real processes that do one thing each.
 * One thread reads; every process is a child that is killed at the end of its test.
 * Must not know which files are read. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base_failing.h"
#include "sample/state.h"
#include "sample/state_wait.h"

#define NOBODY 65534
#define ATTEMPTS 20000 /* reads, a millisecond apart, until a state has to be there */
#define SKIPPED 77

static const char *const state_names[TARE__STATE_COUNT] = {"UNKNOWN", "RUNNING", "RUNNABLE", "GIL",  "LOCK",  "DISK",
                                                           "NETWORK", "CHILD",   "PIPE",     "GPU", "SLEEP", "OTHER"};

/* Every test reads both ways. */
static bool glances;

static bool read_thread(tare__thread_reader *reader, tare__thread_now *now)
{
    return glances ? tare__thread_glance(reader, tare__monotonic_ns(), false, now) : tare__thread_read(reader, now);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static pid_t start(void (*role)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    role();
    _exit(SKIPPED);
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    kill(pid, SIGCONT);
    waitpid(pid, NULL, 0);
}

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Until the state is the expected one at two successive reads; the last one that was read. */
static tare__thread_now wait_for(tare__thread_reader *reader, tare__thread_state expected, const char *call)
{
    tare__thread_now now = {0};
    for (int i = 0, seen = 0; i < ATTEMPTS && seen < 3; i++) {
        if (!read_thread(reader, &now)) {
            now.state = TARE__STATE_UNKNOWN;
            break;
        }
        const char *name = tare__system_call_name(now.system_call);
        seen = now.state == expected && (!call || (name && strncmp(name, call, strlen(call)) == 0)) ? seen + 1 : 0;
        pause_ms(1);
    }
    return now;
}

/* ---- roles ------------------------------------------------------------------------------------------------------ */

static char folder[] = "tare-state-XXXXXX";
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;

static int a_pipe(void)
{
    int ends[2];
    return pipe(ends) == 0 ? ends[0] : -1;
}

static int a_local_socket(void)
{
    int ends[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 ? ends[0] : -1;
}

static int a_listener(int family)
{
    int fd = socket(family, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    sa_family_t autobind = AF_UNIX;
    if (family == AF_INET)
        bind(fd, (struct sockaddr *)&address, sizeof address);
    else
        bind(fd, (struct sockaddr *)&autobind, sizeof autobind);
    listen(fd, 1);
    return fd;
}

static int a_connection(void)
{
    int listener = a_listener(AF_INET), fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    getsockname(listener, (struct sockaddr *)&address, &bytes);
    connect(fd, (struct sockaddr *)&address, bytes);
    return fd;
}

static void do_read(int fd)
{
    uint64_t bytes;
    while (read(fd, &bytes, sizeof bytes) < 0 && errno == EINTR)
        ;
}

static void do_recv(int fd)
{
    char byte;
    recv(fd, &byte, 1, 0);
}

static void do_poll(int fd, int timeout)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    poll(&polled, 1, timeout);
}

static void do_select(int fd)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    select(fd + 1, &set, NULL, NULL, NULL);
}

static int an_epoll(const int *fds, int n)
{
    int epoll = epoll_create1(0);
    for (int i = 0; i < n; i++) {
        struct epoll_event event = {.events = EPOLLIN};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event);
    }
    return epoll;
}

static void do_epoll(int fd, int timeout)
{
    struct epoll_event event;
    epoll_wait(an_epoll(&fd, fd >= 0), &event, 1, timeout);
}

static int a_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

static int a_pidfd(void)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, a_child(), 0);
#else
    return -1;
#endif
}

static void a_file(char out[PATH_MAX], const char *name)
{
    snprintf(out, PATH_MAX, "%s/%s", folder, name);
}

static void sleeps(void) { pause_ms(1000000); }
static void selects_nothing(void)
{
    struct timeval time = {.tv_sec = 1000};
    select(0, NULL, NULL, NULL, &time);
}
static void polls_nothing(void) { poll(NULL, 0, 1000000); }
static void polls_ignored(void) { do_poll(-1, 1000000); }
static void epolls_nothing(void) { do_epoll(-1, 1000000); }
static void epolls_own_event(void) { do_epoll(eventfd(0, 0), 1000000); }
static void reads_timer(void) { do_read(timerfd_create(CLOCK_MONOTONIC, 0)); }
static void reads_pipe(void) { do_read(a_pipe()); }
static void polls_pipe(void) { do_poll(a_pipe(), -1); }
static void selects_pipe(void) { do_select(a_pipe()); }
static void epolls_pipe(void) { do_epoll(a_pipe(), -1); }
static void epolls_pipe_with_end(void) { do_epoll(a_pipe(), 1000000); }
static void reads_event(void) { do_read(eventfd(0, 0)); }
static void epolls_event(void) { do_epoll(eventfd(0, 0), -1); }
static void fills_pipe(void)
{
    int ends[2];
    static char bytes[1 << 20];
    while (pipe(ends) == 0 && write(ends[1], bytes, sizeof bytes) > 0)
        ;
}
static void reads_fifo(void)
{
    char path[PATH_MAX];
    a_file(path, "fifo");
    mkfifo(path, 0600);
    do_read(open(path, O_RDWR));
}
static void opens_fifo(void)
{
    char path[PATH_MAX];
    a_file(path, "fifo_without_writer");
    mkfifo(path, 0600);
    open(path, O_RDONLY);
}
static void receives_local(void) { do_recv(a_local_socket()); }
static void reads_local(void) { do_read(a_local_socket()); }
static void accepts_local(void) { accept(a_listener(AF_UNIX), NULL, NULL); }
static void polls_local(void) { do_poll(a_local_socket(), -1); }
static void selects_local(void) { do_select(a_local_socket()); }
static void epolls_local(void) { do_epoll(a_local_socket(), -1); }
static void receives_tcp(void) { do_recv(a_connection()); }
static void reads_tcp(void) { do_read(a_connection()); }
static void receives_udp(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bind(fd, (struct sockaddr *)&address, sizeof address);
    do_recv(fd);
}
static void accepts_tcp(void) { accept(a_listener(AF_INET), NULL, NULL); }
static void polls_tcp(void) { do_poll(a_connection(), -1); }
static void selects_tcp(void) { do_select(a_connection()); }
static void epolls_tcp(void) { do_epoll(a_connection(), -1); }
static void epolls_event_and_tcp(void)
{
    const int fds[] = {eventfd(0, 0), a_connection()};
    struct epoll_event event;
    epoll_wait(an_epoll(fds, 2), &event, 1, 1000000);
}
static void polls_epoll_of_tcp(void)
{
    int fd = a_connection();
    do_poll(an_epoll(&fd, 1), -1);
}
static void polls_pipes_and_tcp(void)
{
    struct pollfd polled[40];
    for (int i = 0; i < 40; i++)
        polled[i] = (struct pollfd){.fd = i < 39 ? a_pipe() : a_connection(), .events = POLLIN};
    poll(polled, 40, -1);
}
static void waits_for_child(void) { waitpid(a_child(), NULL, 0); }
static void waits_by_id(void)
{
    siginfo_t info;
    waitid(P_PID, (id_t)a_child(), &info, WEXITED);
}
static void polls_child(void)
{
    int fd = a_pidfd();
    if (fd >= 0)
        do_poll(fd, -1);
}
/* Not vfork(), which ThreadSanitizer replaces by fork(). */
static void waits_for_exec(void)
{
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
}
static void locks(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
}
static void waits_for_condition(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1000;
    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&condition, &mutex, &until) == 0)
        ;
}
static void waits_for_semaphore(void)
{
    while (sem_wait(&semaphore) != 0)
        ;
}
static void locks_file(void)
{
    char path[PATH_MAX];
    a_file(path, "lock");
    int first = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), second = open(path, O_RDWR | O_CLOEXEC);
    flock(first, LOCK_EX);
    flock(second, LOCK_EX);
}
static void waits_for_signal(void)
{
    for (;;)
        pause();
}
static void reads_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        return;
    do_read(open(ptsname(master), O_RDWR | O_NOCTTY));
}

/* A device in a container, which the reader's own /dev does not have. */
static void reads_gpu(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/dev", "tmpfs", 0, NULL) != 0 || mkfifo("/dev/nvidia0", 0600) != 0)
        return;
    do_poll(open("/dev/nvidia0", O_RDWR), -1);
}

static const struct {
    const char *name;
    void (*role)(void);
    tare__thread_state state;
    const char *call; /* how its name begins; NULL: any */
    const void *lock;
} waits[] = {
    {"nanosleep", sleeps, TARE__STATE_SLEEP, "", NULL},
    {"select without descriptors", selects_nothing, TARE__STATE_SLEEP, NULL, NULL},
    {"poll without descriptors", polls_nothing, TARE__STATE_SLEEP, NULL, NULL},
    {"poll of an ignored descriptor", polls_ignored, TARE__STATE_SLEEP, NULL, NULL},
    {"epoll without descriptors", epolls_nothing, TARE__STATE_SLEEP, "epoll", NULL},
    {"epoll of an own event", epolls_own_event, TARE__STATE_SLEEP, "epoll", NULL},
    {"timerfd", reads_timer, TARE__STATE_SLEEP, "read", NULL},
    {"read of a pipe", reads_pipe, TARE__STATE_PIPE, "read", NULL},
    {"poll of a pipe", polls_pipe, TARE__STATE_PIPE, NULL, NULL},
    {"select of a pipe", selects_pipe, TARE__STATE_PIPE, NULL, NULL},
    {"epoll of a pipe", epolls_pipe, TARE__STATE_PIPE, "epoll", NULL},
    {"epoll of a pipe with a timeout", epolls_pipe_with_end, TARE__STATE_PIPE, "epoll", NULL},
    {"read of an eventfd", reads_event, TARE__STATE_PIPE, "read", NULL},
    {"epoll of an eventfd", epolls_event, TARE__STATE_PIPE, "epoll", NULL},
    {"write to a full pipe", fills_pipe, TARE__STATE_PIPE, "write", NULL},
    {"read of a FIFO", reads_fifo, TARE__STATE_PIPE, "read", NULL},
    {"open of a FIFO", opens_fifo, TARE__STATE_PIPE, "open", NULL},
    {"recv of a unix socket", receives_local, TARE__STATE_PIPE, "recv", NULL},
    {"read of a unix socket", reads_local, TARE__STATE_PIPE, "read", NULL},
    {"accept of a unix socket", accepts_local, TARE__STATE_PIPE, "accept", NULL},
    {"poll of a unix socket", polls_local, TARE__STATE_PIPE, NULL, NULL},
    {"select of a unix socket", selects_local, TARE__STATE_PIPE, NULL, NULL},
    {"epoll of a unix socket", epolls_local, TARE__STATE_PIPE, "epoll", NULL},
    {"recv of a TCP socket", receives_tcp, TARE__STATE_NETWORK, "recv", NULL},
    {"read of a TCP socket", reads_tcp, TARE__STATE_NETWORK, "read", NULL},
    {"recv of a UDP socket", receives_udp, TARE__STATE_NETWORK, "recv", NULL},
    {"accept of a TCP socket", accepts_tcp, TARE__STATE_NETWORK, "accept", NULL},
    {"poll of a TCP socket", polls_tcp, TARE__STATE_NETWORK, NULL, NULL},
    {"select of a TCP socket", selects_tcp, TARE__STATE_NETWORK, NULL, NULL},
    {"epoll of a TCP socket", epolls_tcp, TARE__STATE_NETWORK, "epoll", NULL},
    {"epoll of an eventfd and a TCP socket", epolls_event_and_tcp, TARE__STATE_NETWORK, "epoll", NULL},
    {"poll of an epoll of a TCP socket", polls_epoll_of_tcp, TARE__STATE_NETWORK, NULL, NULL},
    {"poll of pipes and a TCP socket", polls_pipes_and_tcp, TARE__STATE_NETWORK, NULL, NULL},
    {"waitpid", waits_for_child, TARE__STATE_CHILD, "wait4", NULL},
    {"waitid", waits_by_id, TARE__STATE_CHILD, "waitid", NULL},
    {"poll of a GPU", reads_gpu, TARE__STATE_GPU, NULL, NULL},
    {"poll of a pidfd", polls_child, TARE__STATE_CHILD, NULL, NULL},
    {"vfork", waits_for_exec, TARE__STATE_CHILD, NULL, NULL},
    {"mutex", locks, TARE__STATE_LOCK, "futex", &mutex},
    {"condition", waits_for_condition, TARE__STATE_LOCK, "futex", NULL},
    {"semaphore", waits_for_semaphore, TARE__STATE_LOCK, "futex", &semaphore},
    {"flock", locks_file, TARE__STATE_LOCK, "flock", NULL},
    {"pause", waits_for_signal, TARE__STATE_OTHER, NULL, NULL},
    {"terminal", reads_terminal, TARE__STATE_OTHER, "read", NULL},
};

static bool waits_as_expected(size_t at)
{
    pid_t pid = start(waits[at].role);
    tare__thread_reader *reader = tare__thread_open(pid, pid);
    assert_non_null(reader);
    tare__thread_now now = wait_for(reader, waits[at].state, waits[at].call);
    int status;
    bool ended = now.state == TARE__STATE_UNKNOWN;
    if (ended) /* … or is about to: its status is already known */
        kill(pid, SIGKILL);
    bool reaped = waitpid(pid, &status, ended ? 0 : WNOHANG) == pid;
    bool skipped = reaped && WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
    bool right = now.state == waits[at].state && now.known &&
                 (!waits[at].lock || now.lock == (uint64_t)(uintptr_t)waits[at].lock) &&
                 (now.state == TARE__STATE_LOCK || !now.lock);
    if (skipped)
        print_message("%s: not available here\n", waits[at].name);
    else if (!right)
        print_error("%s: %s, call %s, lock %#llx\n", waits[at].name, state_names[now.state],
                    tare__system_call_name(now.system_call), (unsigned long long)now.lock);
    tare__thread_close(reader);
    if (!reaped)
        end(pid);
    return right || skipped;
}

static void every_wait_is_recognized(void **unused)
{
    (void)unused;
    size_t wrong = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(waits); i++)
        wrong += !waits_as_expected(i);
    assert_int_equal(wrong, 0);
}

/* Without descriptors to keep, the answers are the same. */
static void few_descriptors_are_enough(void **unused)
{
    (void)unused;
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int fd = open("/dev/null", O_RDONLY);
    few = (struct rlimit){(rlim_t)fd + 1, before.rlim_max}; /* … and two are left */
    few.rlim_cur += 2;
    pid_t pid = start(receives_tcp);
    tare__thread_reader *reader = tare__thread_open(pid, pid);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    tare__thread_now now = wait_for(reader, TARE__STATE_NETWORK, "recv");
    int next = dup(fd), last = dup(fd); /* none was kept … */
    tare__thread_now none;
    bool alive = read_thread(reader, &none); /* … and all descriptors are in use */
    close(next);
    close(last);
    tare__thread_now again = wait_for(reader, TARE__STATE_NETWORK, "recv");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(fd);
    tare__thread_close(reader);
    end(pid);
    assert_int_equal(now.state, TARE__STATE_NETWORK);
    assert_true(next >= 0 && last >= 0);
    assert_true(alive);
    assert_int_equal(none.state, TARE__STATE_UNKNOWN);
    assert_int_equal(again.state, TARE__STATE_NETWORK);
}

/* ---- memory that cannot be read ---------------------------------------------------------------------------------- */

static struct pollfd *polled_once;
static int unmapped[2];

static void *unmap_later(void *unused)
{
    (void)unused;
    pause_ms(100);
    munmap(polled_once, 4096);
    assert_int_equal(write(unmapped[1], "", 1), 1);
    return NULL;
}

static void polls_unmapped(void)
{
    pthread_t thread;
    polled_once = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *polled_once = (struct pollfd){.fd = a_pipe(), .events = POLLIN};
    pthread_create(&thread, NULL, unmap_later, NULL);
    poll(polled_once, 1, -1); /* fails if it is too late */
}

static void memory_that_is_gone(void **unused)
{
    (void)unused;
    char byte;
    tare__thread_state state = TARE__STATE_UNKNOWN;
    for (int i = 0; i < 20 && state == TARE__STATE_UNKNOWN; i++) {
        assert_int_equal(pipe(unmapped), 0);
        pid_t pid = start(polls_unmapped);
        close(unmapped[1]);
        bool is_gone = read(unmapped[0], &byte, 1) == 1;
        close(unmapped[0]);
        tare__thread_reader *reader = tare__thread_open(pid, pid);
        if (is_gone)
            state = wait_for(reader, TARE__STATE_OTHER, NULL).state;
        tare__thread_close(reader);
        end(pid);
    }
    assert_int_equal(state, TARE__STATE_OTHER);
}

/* ---- stopped ---------------------------------------------------------------------------------------------------- */

static void a_stopped_process_waits_for_nothing(void **unused)
{
    (void)unused;
    pid_t pid = start(sleeps);
    tare__thread_reader *reader = tare__thread_open(pid, pid);
    assert_int_equal(wait_for(reader, TARE__STATE_SLEEP, "").state, TARE__STATE_SLEEP);
    kill(pid, SIGSTOP);
    tare__thread_state stopped = wait_for(reader, TARE__STATE_OTHER, NULL).state;
    kill(pid, SIGCONT);
    tare__thread_state continued = wait_for(reader, TARE__STATE_SLEEP, "").state; /* restart_syscall */
    tare__thread_close(reader);
    reader = tare__thread_open(pid, pid); /* which has not seen the call before */
    tare__thread_state later = wait_for(reader, TARE__STATE_SLEEP, "").state;
    tare__thread_close(reader);
    end(pid);
    assert_int_equal(stopped, TARE__STATE_OTHER);
    assert_int_equal(continued, TARE__STATE_SLEEP);
    assert_int_equal(later, TARE__STATE_SLEEP);
}

/* ---- running and ready ------------------------------------------------------------------------------------------ */

static void spins(void)
{
    for (volatile unsigned long i = 0;; i++)
        ;
}

static int a_cpu(void)
{
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &mine))
            return i;
    return 0;
}

static void spins_on_one_cpu(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(a_cpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    spins();
}

static double cpu_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec time;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#define SPINNERS 3
#define SAMPLES 1500
#define TOLERANCE 0.10 /* time slices of several milliseconds in some seconds */

/* Against the CPU clock of each process, in an interval of the monotonic clock; on a busy machine, too. */
static void a_cpu_that_is_shared(void **unused)
{
    (void)unused;
    pid_t pids[SPINNERS];
    tare__thread_reader *readers[SPINNERS];
    double before[SPINNERS], running[SPINNERS] = {0}, ready[SPINNERS] = {0};
    for (int i = 0; i < SPINNERS; i++) {
        pids[i] = start(spins_on_one_cpu);
        readers[i] = tare__thread_open(pids[i], pids[i]);
    }
    pause_ms(100);
    for (int i = 0; i < SPINNERS; i++)
        before[i] = cpu_seconds(pids[i]);
    uint64_t start_ns = tare__monotonic_ns(), last_ns = start_ns, random = 1;
    for (int sample = 0; sample < SAMPLES; sample++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        pause_ms(1 + (long)(random >> 62));
        uint64_t now_ns = tare__monotonic_ns();
        double weight = (double)(now_ns - last_ns) / 1e9;
        last_ns = now_ns;
        for (int i = 0; i < SPINNERS; i++) {
            tare__thread_now now;
            assert_true(read_thread(readers[i], &now));
            running[i] += now.state == TARE__STATE_RUNNING ? weight : 0;
            ready[i] += now.state == TARE__STATE_RUNNABLE ? weight : 0;
        }
    }
    double seconds = (double)(last_ns - start_ns) / 1e9;
    size_t wrong = 0;
    for (int i = 0; i < SPINNERS; i++) {
        double truth = (cpu_seconds(pids[i]) - before[i]) / seconds, share = running[i] / seconds;
        bool right = share > truth - TOLERANCE && share < truth + TOLERANCE &&
                     ready[i] / seconds > 1 - truth - TOLERANCE;
        print_message("running %.1f %%, ready %.1f %%, CPU clock %.1f %%\n", 100 * share, 100 * ready[i] / seconds,
                      100 * truth);
        wrong += !right;
        tare__thread_close(readers[i]);
        end(pids[i]);
    }
    assert_int_equal(wrong, 0);
}

static void let_it_run(pid_t pid, double seconds)
{
    double until = cpu_seconds(pid) + seconds;
    while (cpu_seconds(pid) < until)
        pause_ms(1);
}

/* At a glance, the totals of a thread that spins are read every 50 ms; time in between is estimated. The clock is the
 * thread's own CPU time, so that it is busy by that clock on any machine. */
static void totals_of_a_busy_thread(void **unused)
{
    (void)unused;
    tare__thread_now now = {0}, then = {0};
    pid_t pid = start(spins);
    tare__thread_reader *reader = tare__thread_open(pid, pid);
    uint64_t ahead_ns = 1000000000u;
    unsigned late = 0;
    for (int i = 0; i < 100 && late < 3; i++) {
        for (int k = 0; k < 40; k++) {
            let_it_run(pid, 0.004);
            assert_true(tare__thread_glance(reader, ahead_ns + (uint64_t)(cpu_seconds(pid) * 1e9), false, &then));
        }
        uint64_t now_ns = ahead_ns + (uint64_t)(cpu_seconds(pid) * 1e9);
        assert_true(tare__thread_glance(reader, now_ns, false, &then));
        let_it_run(pid, 0.012);
        assert_true(tare__thread_glance(reader, now_ns, true, &now)); /* as if no time had passed */
        assert_int_equal(now.state, TARE__STATE_RUNNING);
        bool estimated = now.cpu_ns == then.cpu_ns;
        assert_true(tare__thread_glance(reader, now_ns + 8000000, true, &now)); /* a part of 8 ms is on the CPU … */
        assert_true(now.cpu_ns > then.cpu_ns);
        late += estimated && now.cpu_ns + now.queue_ns - then.cpu_ns - then.queue_ns <= 8000000; /* … of 12 ms */
        assert_true(tare__thread_glance(reader, now_ns + 60000000, true, &now)); /* … and more than 50 ms */
        assert_true(now.known && now.cpu_ns > then.cpu_ns);
        ahead_ns += 60000000;
    }
    tare__thread_close(reader);
    end(pid);
    assert_int_equal(late, 3);
}

/* When a busy thread waits, its totals are read: nothing is missing, and no more than an estimate was added. */
static void totals_of_a_thread_that_was_busy(void **unused)
{
    (void)unused;
    tare__thread_now now = {0};
    pid_t pid = start(spins);
    tare__thread_reader *reader = tare__thread_open(pid, pid);
    for (int i = 0; i < 100; i++) {
        assert_true(tare__thread_glance(reader, tare__monotonic_ns(), false, &now));
        pause_ms(3);
    }
    kill(pid, SIGSTOP);
    tare__waiting waiting;
    tare__waiting_start(&waiting, pid, pid);
    while (tare__waiting_stat(&waiting).letter != 'T')
        pause_ms(1);
    assert_true(tare__thread_glance(reader, tare__monotonic_ns(), false, &now));
    assert_true(now.state != TARE__STATE_RUNNING && now.state != TARE__STATE_RUNNABLE);
    double truth = cpu_seconds(pid);
    tare__thread_close(reader);
    end(pid);
    assert_true((double)now.cpu_ns / 1e9 > truth - 5e-3 && (double)now.cpu_ns / 1e9 < truth + 0.06);
}

static void totals_are_those_of_the_thread(void **unused)
{
    (void)unused;
    tare__thread_now now;
    pid_t pid = start(spins);
    tare__thread_reader *reader = tare__thread_open(pid, pid);
    while (cpu_seconds(pid) < 0.05)
        pause_ms(1);
    kill(pid, SIGSTOP); /* CPU time of a running thread is known up to the last tick */
    assert_int_equal(wait_for(reader, TARE__STATE_OTHER, NULL).state, TARE__STATE_OTHER);
    assert_true(read_thread(reader, &now));
    double truth = cpu_seconds(pid);
    tare__thread_close(reader);
    end(pid);
    assert_true(now.known);
    assert_true(now.cpu_ns >= 50000000);
    /* ThreadSanitizer adds a thread to the process, whose clock this is. */
    assert_true((double)now.cpu_ns / 1e9 > truth - 5e-3 && (double)now.cpu_ns / 1e9 < truth + 1e-6);
}

/* ---- disk -------------------------------------------------------------------------------------------------------- */

static void writes_to_disk(void)
{
    char path[PATH_MAX];
    static char bytes[1 << 16];
    a_file(path, "written");
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    for (off_t at = 0;; at = (at + (off_t)sizeof bytes) % (1 << 24))
        if (pwrite(fd, bytes, sizeof bytes, at) < 0 || fsync(fd) != 0)
            return;
}

static void a_wait_for_the_disk(void **unused)
{
    (void)unused;
    struct statfs about;
    assert_int_equal(statfs(folder, &about), 0);
    if (about.f_type == 0x01021994) /* tmpfs */
        skip();
    pid_t pid = start(writes_to_disk);
    tare__thread_reader *reader = tare__thread_open(pid, pid);
    unsigned states[TARE__STATE_COUNT] = {0};
    tare__thread_now now;
    for (int i = 0; i < ATTEMPTS && states[TARE__STATE_DISK] < 20; i++) {
        assert_true(read_thread(reader, &now));
        states[now.state]++;
        pause_ms(1);
    }
    tare__thread_close(reader);
    end(pid);
    assert_int_equal(states[TARE__STATE_DISK], 20);
    assert_int_equal(states[TARE__STATE_NETWORK] + states[TARE__STATE_PIPE] + states[TARE__STATE_SLEEP], 0);
}

/* ---- ends, exec, permission ---------------------------------------------------------------------------------- */

static void *ends_soon(void *tid)
{
    __atomic_store_n((pid_t *)tid, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    pause_ms(1);
    return NULL;
}

static void a_thread_that_ends(void **unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        pid_t tid = 0;
        tare__thread_now now;
        assert_int_equal(pthread_create(&thread, NULL, ends_soon, &tid), 0);
        while (!__atomic_load_n(&tid, __ATOMIC_SEQ_CST))
            sched_yield();
        tare__thread_reader *reader = tare__thread_open(getpid(), tid);
        if (i % 2)
            pthread_join(thread, NULL);
        int reads = 0;
        while (read_thread(reader, &now))
            assert_in_range(reads++, 0, 10000000);
        assert_false(read_thread(reader, &now));
        tare__thread_close(reader);
        if (!(i % 2))
            pthread_join(thread, NULL);
    }
}

static void a_process_that_ended(void **unused)
{
    (void)unused;
    tare__thread_now now;
    pid_t pid = start(sleeps);
    tare__thread_reader *reader = tare__thread_open(pid, pid);
    assert_int_equal(wait_for(reader, TARE__STATE_SLEEP, "").state, TARE__STATE_SLEEP);
    kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_false(read_thread(reader, &now)); /* a zombie */
    end(pid);
    assert_false(read_thread(reader, &now));
    tare__thread_close(reader);
    reader = tare__thread_open(pid, pid);
    assert_false(read_thread(reader, &now));
    tare__thread_close(reader);
    tare__thread_close(NULL);
}

static void *runs_another_program(void *unused)
{
    (void)unused;
    pause_ms(50);
    execlp("sleep", "sleep", "1000", (char *)NULL);
    return NULL;
}

static void replaces_itself(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, runs_another_program, NULL);
    do_read(a_pipe());
}

static void a_process_that_executes_another_program(void **unused)
{
    (void)unused;
    pid_t pid = start(replaces_itself);
    tare__thread_now now = {0};
    /* While the other thread takes the place of the first one, that one has ended: whoever reads it finds it anew. */
    for (int i = 0; i < ATTEMPTS && now.state != TARE__STATE_SLEEP; i++) {
        tare__thread_reader *reader = tare__thread_open(pid, pid);
        now = wait_for(reader, TARE__STATE_SLEEP, "");
        tare__thread_close(reader);
    }
    end(pid);
    assert_int_equal(now.state, TARE__STATE_SLEEP);
}

/* The exit status of a process without permission: 0, or the number of the check that failed. */
static int without_permission(pid_t spinning, pid_t sleeping)
{
    tare__thread_now now;
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return 1;
    tare__thread_reader *reader = tare__thread_open(sleeping, sleeping);
    now = wait_for(reader, TARE__STATE_OTHER, NULL);
    if (now.state != TARE__STATE_OTHER || !now.known || now.system_call != -1)
        return 2;
    tare__thread_close(reader);
    reader = tare__thread_open(spinning, spinning);
    unsigned ran = 0, was_ready = 0;
    for (int i = 0; i < ATTEMPTS && ran < 5; i++) {
        if (!read_thread(reader, &now) || !now.known)
            return 3;
        ran += now.state == TARE__STATE_RUNNING;
        was_ready += now.state == TARE__STATE_RUNNABLE;
        if (i > 10 && ran + was_ready + 5 < (unsigned)i) /* page faults at its start */
            return 4;
        pause_ms(1);
    }
    tare__thread_close(reader);
    return ran == 5 ? 0 : 5;
}

static void spins_undumpable(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    spins();
}

static void sleeps_undumpable(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    sleeps();
}

static void a_process_that_may_not_be_read(void **unused)
{
    (void)unused;
    pid_t spinning = start(spins_undumpable), sleeping = start(sleeps_undumpable);
    pause_ms(50);
    pid_t reader = fork();
    if (reader == 0)
        _exit(without_permission(spinning, sleeping));
    int status = -1;
    waitpid(reader, &status, 0);
    end(spinning);
    end(sleeping);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void no_memory(void **unused)
{
    (void)unused;
    allocations_left = 0;
    tare__thread_reader *reader = tare__thread_open(getpid(), getpid());
    allocations_left = -1;
    assert_null(reader);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

#define NAMED(name) {SYS_##name, #name}
static void names_of_system_calls(void **unused)
{
    (void)unused;
    static const struct {
        int64_t number;
        const char *name;
    } named[] = {NAMED(read),      NAMED(write),       NAMED(futex),      NAMED(epoll_pwait), NAMED(ppoll),
                 NAMED(pselect6),  NAMED(nanosleep),   NAMED(wait4),      NAMED(waitid),      NAMED(clock_nanosleep),
                 NAMED(recvfrom),  NAMED(recvmmsg),    NAMED(accept4),    NAMED(sendfile),    NAMED(restart_syscall),
                 NAMED(fdatasync), NAMED(openat),      NAMED(ioctl),      NAMED(getrandom),   NAMED(copy_file_range),
                 NAMED(mmap),      NAMED(exit_group),  NAMED(tgkill),     NAMED(renameat2),   NAMED(process_vm_readv),
                 NAMED(preadv2),   NAMED(mq_timedsend), NAMED(semtimedop), NAMED(msgrcv),     NAMED(sched_yield),
                 NAMED(io_getevents), NAMED(prlimit64), NAMED(setns),     NAMED(sendmmsg),    NAMED(userfaultfd)};
    for (size_t i = 0; i < TARE__COUNT_OF(named); i++)
        assert_string_equal(tare__system_call_name(named[i].number), named[i].name);
    assert_string_equal(tare__system_call_name(449), "futex_waitv");
    assert_null(tare__system_call_name(-1));
    assert_null(tare__system_call_name(400));
    assert_null(tare__system_call_name(1000000));
    assert_null(tare__system_call_name(INT64_MAX));
    assert_null(tare__system_call_name(INT64_MIN));
}

static int make_folder(void **unused)
{
    (void)unused;
    strcpy(folder + sizeof folder - sizeof "XXXXXX", "XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **unused)
{
    (void)unused;
    static const char *const files[] = {"fifo", "fifo_without_writer", "lock", "written"};
    for (size_t i = 0; i < TARE__COUNT_OF(files); i++) {
        char path[PATH_MAX];
        a_file(path, files[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wait_is_recognized),
        cmocka_unit_test(few_descriptors_are_enough),
        cmocka_unit_test(memory_that_is_gone),
        cmocka_unit_test(a_stopped_process_waits_for_nothing),
        cmocka_unit_test(a_cpu_that_is_shared),
        cmocka_unit_test(totals_are_those_of_the_thread),
        cmocka_unit_test(a_wait_for_the_disk),
        cmocka_unit_test(a_thread_that_ends),
        cmocka_unit_test(a_process_that_ended),
        cmocka_unit_test(a_process_that_executes_another_program),
        cmocka_unit_test(a_process_that_may_not_be_read),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(names_of_system_calls),
        cmocka_unit_test(totals_of_a_busy_thread),
        cmocka_unit_test(totals_of_a_thread_that_was_busy),
    };
    sem_init(&semaphore, 0, 0);
    int failed = cmocka_run_group_tests_name("exact", tests, make_folder, remove_folder);
    glances = true;
    return failed + cmocka_run_group_tests_name("at a glance", tests, make_folder, remove_folder);
}
