/* peaks: the largest resident memory of blocks, by the kernel's high-water mark where that is conclusive, else by
 * samples that a thread takes while such a block is open.
 * Opened and closed attached to the interpreter; the thread never is. The lock guards the list. Must not know
 * blocks. */
#include "core.h"
#include "machine.h"
#include "readings.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool prepared; /* the fork handlers are installed */
    bool running, ending, forking;
    bool asleep;       /* until it is woken */
    uint64_t opened;   /* ever */
    unsigned hidden;   /* open peaks that need samples */
    tare__py_peak *open;
} peaks = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- reading the mark ---------------------------------------------------------------------------------------- */

/* Smaller differences need no samples: the kernel itself counts pages in batches. */
#define SLACK_BYTES (256u << 10)
/* By how much the mark exceeds resident memory right after a reset: the kernel reads it without the pages that its
 * three counters hold back on each CPU, at most max(32, 2 CPUs) pages each; a larger difference has another cause. */
static uint64_t drift;

static uint64_t most_drift(void)
{
    uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF), pages = cpus > 16 ? 2 * cpus : 32;
    return 3 * cpus * pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool tare__py_peak_is_near(uint64_t mark, uint64_t rss) { return mark <= rss + SLACK_BYTES + drift; }

static void see(tare__py_peak *peak, uint64_t bytes)
{
    if (peak->bytes < bytes)
        peak->bytes = bytes;
}

static void see_mark(tare__py_peak *peak, uint64_t mark)
{
    if (mark > peak->mark)
        see(peak, mark);
}

/* Applies the mark to all open peaks and resets it. */
static bool begin_anew(tare__py_memory *now)
{
    for (tare__py_peak *other = peaks.open; other; other = other->next)
        see_mark(other, now->mark);
    if (!tare__py_memory_reset_mark(now))
        return false;
    drift = now->mark > now->rss ? now->mark - now->rss : 0;
    drift = drift < most_drift() ? drift : most_drift();
    for (tare__py_peak *other = peaks.open; other; other = other->next)
        other->mark = now->mark;
    return true;
}

void tare__py_peak_sentence(uint64_t at_most, char text[200])
{
    snprintf(text, 200,
             "a lower bound, sampled every %u ms: at most %.1f MB, which the process had reached before and which "
             "hides shorter peaks", TARE__PY_PEAK_INTERVAL_NS / 1000000u, (double)at_most / 1048576);
}

/* ---- the thread ------------------------------------------------------------------------------------------------ */

/* Only for peaks that were open before it was read. */
static void sample(void)
{
    tare__py_machine now;
    uint64_t opened = peaks.opened;
    pthread_mutex_unlock(&peaks.lock);
    tare__py_machine_read(&now, TARE__PY_RSS);
    pthread_mutex_lock(&peaks.lock);
    for (tare__py_peak *peak = peaks.open; peak && now.rss; peak = peak->next)
        if (peak->number <= opened)
            see(peak, now.rss);
}

static struct timespec in_an_interval(void)
{
    uint64_t until = tare__py_clock_ns() + TARE__PY_PEAK_INTERVAL_NS;
    return (struct timespec){(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
}

#define IDLE_ROUNDS 200 /* one second: consecutive blocks need not wake it each time */

static void *work(void *nothing)
{
    pthread_mutex_lock(&peaks.lock);
    for (unsigned idle = 0; !peaks.ending;) {
        struct timespec until = in_an_interval();
        idle = peaks.hidden ? 0 : idle + 1;
        if (idle > IDLE_ROUNDS) {
            peaks.asleep = true;
            pthread_cond_wait(&peaks.changed, &peaks.lock);
            peaks.asleep = false;
            idle = 0;
        } else {
            pthread_cond_timedwait(&peaks.changed, &peaks.lock, &until);
        }
        if (peaks.hidden && !peaks.ending)
            sample();
        tare__py_note_own_waits();
    }
    pthread_mutex_unlock(&peaks.lock);
    return NULL;
}

/* This thread must not receive the program's signals. Without a thread, peaks are the values at the ends of a block: a
 * lower bound. */
static void begin_thread(void)
{
    sigset_t all, before;
    pthread_attr_t how;
    sigfillset(&all);
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, 256 * 1024);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    peaks.running = pthread_create(&peaks.thread, &how, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    if (peaks.running)
        pthread_setname_np(peaks.thread, "tare-peaks");
}

/* The thread is stopped while the process forks: Python warns about programs that fork with threads. */
static void before_fork(void)
{
    pthread_mutex_lock(&peaks.lock);
    bool running = peaks.running;
    peaks.forking = peaks.ending = true;
    pthread_cond_broadcast(&peaks.changed);
    pthread_mutex_unlock(&peaks.lock);
    if (running)
        pthread_join(peaks.thread, NULL);
    pthread_mutex_lock(&peaks.lock);
    peaks.running = peaks.ending = peaks.asleep = false;
}

static int begin_again(void *nothing)
{
    pthread_mutex_lock(&peaks.lock);
    if (peaks.hidden && !peaks.running && !peaks.forking)
        begin_thread();
    pthread_mutex_unlock(&peaks.lock);
    return 0;
}

/* Python's own work right after the fork comes first. */
static void after_fork_in_parent(void)
{
    peaks.forking = false;
    bool needed = peaks.hidden > 0;
    pthread_mutex_unlock(&peaks.lock);
    if (needed)
        Py_AddPendingCall(begin_again, NULL);
}

static void after_fork_in_child(void)
{
    peaks.forking = false;
    pthread_mutex_unlock(&peaks.lock);
}

static void prepare(void)
{
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&peaks.changed, &how);
    pthread_condattr_destroy(&how);
    peaks.prepared = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

/* Under the lock. */
static void want_samples(void)
{
    peaks.hidden++;
    if (!peaks.prepared)
        prepare();
    if (!peaks.running && !peaks.forking && peaks.prepared)
        begin_thread();
    else if (peaks.asleep)
        pthread_cond_broadcast(&peaks.changed);
}

/* ---- opening and closing -------------------------------------------------------------------------------------- */

void tare__py_peak_open(tare__py_peak *peak, tare__py_memory now, bool reset)
{
    pthread_mutex_lock(&peaks.lock);
    bool hides = !tare__py_peak_is_near(now.mark, now.rss) && !(reset && begin_anew(&now));
    *peak = (tare__py_peak){peaks.open, NULL, ++peaks.opened, now.rss, now.mark, hides ? now.mark : 0};
    if (peaks.open)
        peaks.open->previous = peak;
    peaks.open = peak;
    if (hides)
        want_samples();
    pthread_mutex_unlock(&peaks.lock);
}

void tare__py_peak_close(tare__py_peak *peak, tare__py_memory now)
{
    pthread_mutex_lock(&peaks.lock);
    see_mark(peak, now.mark);
    see(peak, now.rss);
    if (peak->at_most)
        peaks.hidden--;
    if (tare__py_peak_is_near(peak->at_most, peak->bytes))
        peak->at_most = 0; /* there was no room for more */
    if (peak->next)
        peak->next->previous = peak->previous;
    if (peak->previous)
        peak->previous->next = peak->next;
    else
        peaks.open = peak->next;
    pthread_mutex_unlock(&peaks.lock);
}
