/* threads: CPU time and state of each thread of the sampled processes.
 * One thread: the set's. The first to be delayed when samples become expensive: it has its own part of the budget.
 * Must not know which processes there are, nor why. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

#define THREAD_SHARE 0.4 /* of the cost allowed per tick */
#define GAP_MAX 100u     /* ticks */
#define SETTLED_SAMPLES 2u

/* ---- list of threads ------------------------------------------------------------------------------------------ */

static tare__watched_thread *find_thread(tare__watched *process, pid_t tid)
{
    for (size_t i = 0; i < process->thread_count; i++)
        if (process->threads[i].tid == tid)
            return &process->threads[i];
    return NULL;
}

static tare__watched_thread *add_thread(tare__watched *process, pid_t tid)
{
    if (!tare__array_fit(&process->threads, &process->thread_room, process->thread_count + 1,
                         sizeof *process->threads))
        return NULL;
    tare__watched_thread *thread = &process->threads[process->thread_count++];
    memset(thread, 0, sizeof *thread);
    thread->tid = tid;
    thread->fd = -1;
    thread->voluntary = thread->forced = TARE__NO_VALUE;
    return thread;
}

static void end_thread(tare__sample_set *set, tare__watched *process, tare__watched_thread *thread)
{
    for (int i = 0; i < 2; i++)
        tare__sample_absent(set, thread->series[i], "ended");
    if (thread->voluntary != TARE__NO_VALUE) {
        process->switches_of_ended[0] += thread->voluntary;
        process->switches_of_ended[1] += thread->forced;
    }
}

static void remove_thread(tare__sample_set *set, tare__watch *watch, tare__watched *process, size_t index)
{
    tare__watched_thread *thread = &process->threads[index];
    end_thread(set, process, thread);
    tare__watch_close_fd(watch, &thread->fd);
    *thread = process->threads[--process->thread_count];
}

/* The list is mostly in order of age: a thread is usually found at its previous position. */
static tare__watched_thread *expect_thread(tare__watched *process, size_t at, pid_t tid)
{
    if (at < process->thread_count && process->threads[at].tid == tid)
        return &process->threads[at];
    return find_thread(process, tid);
}

/* False: the list cannot be read now. */
static bool list_threads(tare__sample_set *set, tare__watch *watch, tare__watched *process)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/proc/%d/task", watch->root, (int)process->pid);
    DIR *folder = opendir(path);
    if (!folder)
        return false;
    size_t at = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        pid_t tid = tare__watch_as_pid(entry->d_name);
        if (!tid)
            continue;
        tare__watched_thread *thread = expect_thread(process, at++, tid);
        if (!thread)
            thread = add_thread(process, tid);
        if (thread)
            thread->seen = true;
    }
    closedir(folder);
    for (size_t i = process->thread_count; i > 0; i--) {
        if (!process->threads[i - 1].seen)
            remove_thread(set, watch, process, i - 1);
        else
            process->threads[i - 1].seen = false;
    }
    return true;
}

/* ---- values of threads ---------------------------------------------------------------------------------------- */

typedef enum reading {
    READ,
    NOT_NOW, /* descriptors or memory ran out */
    NOT_THERE
} reading;

static reading read_thread(tare__watch *watch, const tare__watched *process, tare__watched_thread *thread)
{
    char file[64], text[1024];
    tare__proc_stat stat;
    snprintf(file, sizeof file, "task/%d/stat", (int)thread->tid);
    int got = tare__watch_read(watch, process->pid, file, &thread->fd, text, sizeof text);
    if (tare__sample_failed_here(got))
        return NOT_NOW;
    if (got <= 0 || !tare__proc_stat_parse(text, &stat))
        return NOT_THERE;
    /* While it was the only thread its values were those of the process, which are finer than these ticks. */
    int64_t user = tare__proc_ticks_ns(stat.user), system = tare__proc_ticks_ns(stat.system);
    thread->user = user > thread->user ? user : thread->user;
    thread->system = system > thread->system ? system : thread->system;
    thread->state = stat.state;
    memcpy(thread->name, stat.name, sizeof thread->name);
    thread->times_seen++;
    return READ;
}

static reading read_switches(tare__watch *watch, const tare__watched *process, tare__watched_thread *thread)
{
    char path[64], text[4096];
    tare__proc_status status;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)process->pid, (int)thread->tid);
    int got = tare__sample_read(watch->root, path, text, sizeof text);
    if (tare__sample_failed_here(got))
        return NOT_NOW;
    if (got <= 0)
        return NOT_THERE;
    tare__proc_status_parse(text, &status);
    if (status.switches_voluntary == TARE__NO_VALUE || status.switches_forced == TARE__NO_VALUE)
        return NOT_THERE;
    thread->voluntary = status.switches_voluntary;
    thread->forced = status.switches_forced;
    return READ;
}

static void put_thread(tare__sample_set *set, const tare__watched *process, tare__watched_thread *thread)
{
    static const tare__metric metrics[] = {TARE__M_CPU_USER, TARE__M_CPU_SYSTEM};
    const int64_t values[] = {thread->user, thread->system};
    if (thread->times_seen < SETTLED_SAMPLES)
        return;
    bool renamed = strcmp(thread->told_name, thread->name) != 0;
    for (int i = 0; i < 2; i++) {
        if (!thread->series[i] || renamed) {
            tare__subject subject = {TARE__SUBJECT_THREAD, (uint64_t)thread->tid, (uint64_t)process->pid,
                                     thread->name};
            thread->series[i] = tare__sample_series_of(set, metrics[i], &subject);
        }
        tare__sample_put(set, thread->series[i], values[i]);
    }
    memcpy(thread->told_name, thread->name, sizeof thread->told_name);
}

static void sum_switches(tare__watched *process)
{
    int64_t voluntary = process->switches_of_ended[0], forced = process->switches_of_ended[1];
    for (size_t i = 0; i < process->thread_count; i++)
        if (process->threads[i].voluntary != TARE__NO_VALUE) {
            voluntary += process->threads[i].voluntary;
            forced += process->threads[i].forced;
        }
    process->value[TARE__W_VOLUNTARY] = voluntary;
    process->value[TARE__W_FORCED] = forced;
}

/* A thread of Tare's library inside the program. */
static bool is_own(const tare__watched_thread *thread)
{
    return strncmp(thread->name, "tare-", 5) == 0;
}

static void sample_threads(tare__sample_set *set, tare__watch *watch, tare__watched *process, bool thorough)
{
    bool others = process->list_again || process->stat.threads != (int64_t)process->thread_count;
    bool all = true, all_switches = true; /* were read */
    if (!process->idle && (thorough || others))
        all = list_threads(set, watch, process);
    process->list_again = !all;
    int64_t running = 0, waiting = 0, own = 0;
    for (size_t i = process->thread_count; i > 0; i--) {
        tare__watched_thread *thread = &process->threads[i - 1];
        reading got = process->idle ? READ : read_thread(watch, process, thread);
        if (got == NOT_THERE) {
            process->list_again = true;
            remove_thread(set, watch, process, i - 1);
            continue;
        }
        own += is_own(thread);
        if (thorough && !process->idle)
            all_switches = read_switches(watch, process, thread) != NOT_NOW && all_switches;
        if (got == NOT_NOW) {
            all = false;
            continue;
        }
        running += thread->state == 'R' && !is_own(thread);
        waiting += thread->state == 'D' && !is_own(thread);
        put_thread(set, process, thread);
    }
    if (own != process->own_threads)
        process->value[TARE__W_THREADS] = process->stat.threads > own ? process->stat.threads - own : 1;
    process->own_threads = own;
    process->value[TARE__W_RUNNING] = all ? running : TARE__NO_VALUE;
    process->value[TARE__W_DISK_WAIT] = all ? waiting : TARE__NO_VALUE;
    if (thorough && !process->idle && all && all_switches)
        sum_switches(process);
}

/* A process that never had a second thread: its values are those of its thread, and no other file is needed. */
static void sample_only_thread(tare__sample_set *set, tare__watched *process)
{
    tare__watched_thread *thread = find_thread(process, process->pid);
    if (!thread && !(thread = add_thread(process, process->pid)))
        return;
    thread->user = process->value[TARE__W_USER];
    thread->system = process->value[TARE__W_SYSTEM];
    thread->state = process->stat.state;
    if (process->value[TARE__W_VOLUNTARY] != TARE__NO_VALUE && process->value[TARE__W_FORCED] != TARE__NO_VALUE) {
        thread->voluntary = process->value[TARE__W_VOLUNTARY];
        thread->forced = process->value[TARE__W_FORCED];
    }
    memcpy(thread->name, process->stat.name, sizeof thread->name);
    thread->times_seen++;
    put_thread(set, process, thread);
}

/* ---- intervals ------------------------------------------------------------------------------------------------ */

static void take_threads(tare__sample_set *set, tare__watch *watch, bool due, bool thorough)
{
    for (size_t i = 0; i < watch->count; i++) {
        tare__watched *process = &watch->processes[i];
        if (process->ended || process->unread)
            continue;
        if (!process->many_threads) {
            sample_only_thread(set, process);
            continue;
        }
        process->value[TARE__W_VOLUNTARY] = process->value[TARE__W_FORCED] = TARE__NO_VALUE;
        if (due)
            sample_threads(set, watch, process, thorough);
        else /* unknown at this tick */
            process->value[TARE__W_RUNNING] = process->value[TARE__W_DISK_WAIT] = TARE__NO_VALUE;
    }
}

void tare__threads_update(tare__sample_set *set, tare__watch *watch, tare__thread_pace *pace, bool thorough)
{
    pace->thorough = pace->thorough || thorough;
    bool due = ++pace->waited >= pace->gap;
    uint64_t before = tare__sample_cost_clock(set);
    take_threads(set, watch, due, pace->thorough);
    if (!due)
        return;
    double spent = (double)(tare__sample_cost_clock(set) - before);
    double ticks = spent / (THREAD_SHARE * (double)tare__sample_tick_budget_ns(set));
    pace->cost += (ticks - pace->cost) / 4;
    pace->gap = pace->cost > GAP_MAX ? GAP_MAX : (unsigned)(pace->cost + 0.999);
    pace->waited = 0;
    pace->thorough = false;
}

void tare__threads_end(tare__sample_set *set, tare__watched *process)
{
    for (size_t i = 0; i < process->thread_count; i++)
        end_thread(set, process, &process->threads[i]);
}
