/* python_cpu: runs reads of a Python process on the CPU that runs its Python code. The program cannot run there
 * meanwhile: nothing changes during the read, however short its functions are, and the program need not be stopped.
 * One reading thread for all readers, under a lock; it ends with the last reader that used it.
 * Must not know what is in the memory. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "python_inner.h"
#include "files.h"

#define STACK_BYTES (64u << 10)
#define PATIENCE_NS 20000000l /* a real-time program may leave the CPU to nobody */
#define SLICE_NS 100000u      /* the shortest there is: Linux 6.12 lets such a thread run almost at once */
#define LATE_NS 60000u        /* the scheduler may have waited for a system call of the program: see below */
#define BARRED 1000u          /* samples until it is tried again */
#define STAT_CPU 39           /* field of /proc/PID/task/TID/stat */

enum { IDLE, POSTED, READING, DONE, END };

static struct {
    pthread_mutex_t mutex;
    unsigned users;
    bool started;
    pthread_t thread;
    int cpu;
    _Atomic uint32_t state;
    void (*function)(void *context); /* the request */
    void *context;
    uint64_t posted_ns;
    bool late; /* not called */
} reader = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cpu = -1};

static void set_state(uint32_t state)
{
    atomic_store(&reader.state, state);
    syscall(SYS_futex, &reader.state, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
}

static void wait_while(uint32_t state, const struct timespec *at_most)
{
    syscall(SYS_futex, &reader.state, FUTEX_WAIT_PRIVATE, state, at_most, NULL, 0);
}

/* ---- the reading thread ---------------------------------------------------------------------- */
/* A program must be interrupted at any point, not where the scheduler prefers to, which is at its system calls: they
 * would come out too large. Real-time threads interrupt at once; others, with a short slice, mostly. */
static void get_served_first(void)
{
    struct sched_param lowest = {.sched_priority = 1};
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest) == 0)
        return;
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = sizeof(attributes), .policy = SCHED_OTHER, .nice = 0, .runtime = SLICE_NS};
    syscall(SYS_sched_setattr, 0, &attributes, 0); /* refused: it has to wait longer for the CPU */
}

static void *read_requests(void *context)
{
    (void)context;
    prctl(PR_SET_NAME, "tare reader", 0ul, 0ul, 0ul);
    get_served_first();
    for (;;) {
        uint32_t state = atomic_load(&reader.state), posted = POSTED;
        if (state == END)
            return NULL;
        if (!atomic_compare_exchange_strong(&reader.state, &posted, READING)) {
            wait_while(state, NULL);
            continue;
        }
        reader.late = tare__monotonic_ns() - reader.posted_ns > LATE_NS;
        if (!reader.late)
            reader.function(reader.context);
        set_state(DONE);
    }
}

static bool start_thread(void)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (reader.started)
        return true;
    atomic_store(&reader.state, IDLE);
    reader.cpu = -1;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    reader.started = pthread_create(&reader.thread, &attributes, read_requests, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return reader.started;
}

static bool move_thread(int cpu)
{
    if (reader.cpu == cpu)
        return true;
    cpu_set_t *set = CPU_ALLOC((size_t)cpu + 1);
    size_t bytes = CPU_ALLOC_SIZE((size_t)cpu + 1);
    if (!set)
        return false;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S((size_t)cpu, bytes, set);
    bool moved = pthread_setaffinity_np(reader.thread, bytes, set) == 0; /* not to a CPU of another cpuset */
    reader.cpu = moved ? cpu : -1;
    CPU_FREE(set);
    return moved;
}

/* Away from a CPU that it may never get. */
static void free_thread(void)
{
    cpu_set_t set;
    memset(&set, 0xff, sizeof(set));
    pthread_setaffinity_np(reader.thread, sizeof(set), &set);
    reader.cpu = -1;
}

/* ---- requests -------------------------------------------------------------------------------- */
static int request(void (*function)(void *context), void *context)
{
    const struct timespec patience = {0, PATIENCE_NS};
    reader.function = function;
    reader.context = context;
    reader.posted_ns = tare__monotonic_ns();
    set_state(POSTED);
    wait_while(POSTED, &patience);
    uint32_t posted = POSTED;
    if (atomic_compare_exchange_strong(&reader.state, &posted, IDLE))
        return TARE_E_SYSTEM;
    while (atomic_load(&reader.state) != DONE)
        wait_while(READING, NULL);
    atomic_store(&reader.state, IDLE);
    return reader.late ? TARE_E_BUSY : 0;
}

int tare__python_cpu_run(tare__python *python, int cpu, void (*function)(void *context), void *context)
{
    pthread_mutex_lock(&reader.mutex);
    reader.users += !python->uses_reader;
    python->uses_reader = true;
    int status = start_thread() && move_thread(cpu) ? request(function, context) : TARE_E_SYSTEM;
    if (status == TARE_E_SYSTEM) {
        python->barred = python->sample + BARRED;
        if (reader.started)
            free_thread();
    }
    pthread_mutex_unlock(&reader.mutex);
    return status;
}

void tare__python_cpu_close(tare__python *python)
{
    if (!python->uses_reader)
        return;
    pthread_mutex_lock(&reader.mutex);
    if (--reader.users == 0 && reader.started) {
        free_thread();
        set_state(END);
        pthread_join(reader.thread, NULL);
        reader.started = false;
    }
    pthread_mutex_unlock(&reader.mutex);
}

/* ---- which CPU ------------------------------------------------------------------------------- */
static int cpu_of(const tare__python *python, pid_t tid)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)python->pid, (int)tid);
    if (tare__sample_read("", path, text, sizeof(text)) <= 0)
        return -1;
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < STAT_CPU; field++)
        at = strchr(at + 1, ' ');
    return at ? atoi(at) : -1;
}

/* The thread that holds an interpreter's lock runs Python code; without one, none does. */
int tare__python_cpu_of(tare__python *python)
{
    if (python->sample < python->barred)
        return -1;
    for (uint32_t i = 0; i < python->n_interps; i++) {
        uint64_t holder = tare__python_holder_now(python, &python->interps[i]);
        for (size_t k = 0; holder && k < python->n_states; k++)
            if (python->states[k]->address == holder && python->states[k]->tid > 0)
                return cpu_of(python, python->states[k]->tid);
    }
    return -1;
}
