/* stacks_native: samples of threads by performance events while they run, and the native stacks of threads that wait.
 * One thread owns the sampler.
 * Must not know how stacks are unwound.
 *
 * A pass finds all threads that wait. Those that run are left to the events, since only these have their registers:
 * each stands for the time since the last sample of its thread, so that no time counts twice. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stacks_inner.h"
#include "tare.h"

#define DEFER_RUNNING 12u /* intervals of CPU time; then a thread that runs is sampled without its registers */
#define DEFER_READY 500u  /* intervals, … */
#define DEFER_READY_NS UINT64_C(5000000000) /* … and at least: the same of one that waits for a CPU */
#define DEFER_NEW 5u      /* the same of one without an event so far: it may end before its first one */
#define LIST_NS 100000000u /* until the threads of a process are listed again */
#define RESTS_MAX 10u     /* passes between two samples of a thread that does not run */
#define SILENT_INTERVALS 5u /* of CPU time without an event: its thread has no events */

/* ---- times ------------------------------------------------------------------------------------------------------ */
/* Time on a CPU since the last sample; where it is unknown, all time. A thread that has just got a CPU back has its
 * event soon, however long it waited. */
static bool runs_long(const sampled_thread *thread, const tare__thread_now *now, uint64_t interval_ns, uint64_t passed)
{
    bool known = now->known && thread->known && now->cpu_ns >= thread->cpu_ns;
    return (known ? now->cpu_ns - thread->cpu_ns : passed) >= DEFER_RUNNING * interval_ns;
}

bool tare__sampler_is_early(const sampled_thread *thread, const tare__thread_now *now, uint64_t interval_ns,
                            uint64_t passed, bool has_kernel)
{
    if (now->state != TARE__STATE_RUNNING && now->state != TARE__STATE_RUNNABLE)
        return false;
    if (!thread->sampled)
        return passed < DEFER_NEW * interval_ns;
    bool silent = now->known && thread->events_known && now->cpu_ns - thread->events_cpu_ns >= 2 * interval_ns;
    if (silent && !has_kernel)
        return false; /* it runs in the kernel, where there are no events */
    return (passed < DEFER_READY_NS || passed < DEFER_READY * interval_ns) &&
           !(now->state == TARE__STATE_RUNNING && runs_long(thread, now, interval_ns, passed));
}

bool tare__sampler_defers(const tare__stack_sampler *sampler, sampled_thread *thread, const tare__thread_now *now,
                          const tare__stack_sample *begun, uint64_t now_ns)
{
    const tare__native_events *events = sampler->native ? tare__native_events_of(sampler->native) : NULL;
    if (!events || thread->refused)
        return false;
    if (!thread->seen_ns)
        thread->seen_ns = now_ns - begun->wall_ns;
    uint64_t passed = now_ns > thread->seen_ns ? now_ns - thread->seen_ns : 0;
    return tare__sampler_is_early(thread, now, sampler->interval_ns, passed, tare__native_events_has_kernel(events));
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* An event comes after an interval on a CPU; what was used later belongs to the next samples, which are not read yet
 * if the sampler was late. */
void tare__sampler_totals_at(const sampled_thread *thread, uint64_t interval_ns, uint64_t at_ns, uint64_t now_ns,
                             tare__thread_now *now)
{
    if (!now->known || !thread->known || now->cpu_ns < thread->cpu_ns || now->queue_ns < thread->queue_ns)
        return;
    uint64_t later = now_ns > at_ns ? now_ns - at_ns : 0, used = now->cpu_ns - thread->cpu_ns;
    uint64_t room = thread->room_ns + (at_ns > thread->seen_ns ? at_ns - thread->seen_ns : 0);
    uint64_t surely = used > later ? used - later : 0, usual = least(used, interval_ns);
    uint64_t cpu = least(surely > usual ? surely : usual, room);
    now->queue_ns = thread->queue_ns + least(now->queue_ns - thread->queue_ns, room - cpu);
    now->cpu_ns = thread->cpu_ns + cpu;
}

/* ---- threads without events ------------------------------------------------------------------------------------- */
static void add_events(tare__stack_sampler *sampler, sampled_thread *thread, const tare__thread_now *now)
{
    tare__native_events *events = tare__native_events_of(sampler->native);
    if (!events || thread->refused || thread->sampled || thread->added || !now->known || thread->tid <= 0)
        return;
    if (!thread->events_known) {
        thread->events_known = true;
        thread->events_cpu_ns = now->cpu_ns;
    }
    if (now->cpu_ns - thread->events_cpu_ns < SILENT_INTERVALS * sampler->interval_ns)
        return;
    thread->events_cpu_ns = now->cpu_ns;
    thread->refused = tare__native_events_add(events, thread->tid) != 0;
    thread->added = !thread->refused;
}

/* ---- stacks ----------------------------------------------------------------------------------------------------- */
typedef struct pushing {
    tare__stack_sampler *sampler;
    sampled_process *process;
    const tare__python_thread *read;
} pushing;

static uint32_t push_python(void *context, uint32_t stack, uint32_t frame, int32_t line)
{
    pushing *to = context;
    return tare__sampler_push(to->sampler, to->process, stack, to->read, frame, line);
}

static uint32_t stack_of(tare__stack_sampler *sampler, sampled_process *process, const tare__native_copy *copy,
                         const tare__python_thread *read)
{
    pushing to = {sampler, process, read};
    if (!process->native && !(process->native = tare__native_process_new(sampler->native, process->pid)))
        return 0;
    uint32_t stack = tare__native_stack(process->native, copy, process->python, read, push_python, &to);
    return stack && read && read->in_gc ? tare__sampler_collecting(sampler, stack) : stack;
}

/* A copy that is certainly of one moment: the thread has not run since its state was read. */
static uint32_t read_blocked(tare__stack_sampler *sampler, sampled_process *process, sampled_thread *thread,
                             const tare__thread_now *now, const tare__python_thread *read)
{
    tare__native_copy copy = {0};
    tare__thread_now after;
    if (!process->native && !(process->native = tare__native_process_new(sampler->native, process->pid)))
        return 0;
    copy.regs.value[TARE__NATIVE_SP] = now->stack;
    copy.regs.value[TARE__NATIVE_IP] = now->code;
    copy.regs.known = UINT64_C(1) << TARE__NATIVE_SP | UINT64_C(1) << TARE__NATIVE_IP;
    copy.stack = tare__native_read(process->native, now->stack, &copy.bytes);
    if (!copy.bytes || !tare__thread_read(thread->reader, &after) || !after.same || after.stack != now->stack)
        return 0;
    return stack_of(sampler, process, &copy, read);
}

uint32_t tare__sampler_blocked(tare__stack_sampler *sampler, sampled_process *process, sampled_thread *thread,
                               const tare__thread_now *now, const tare__python_thread *read)
{
    if (!sampler->native || !thread->reader)
        return 0;
    add_events(sampler, thread, now);
    bool rests = now->stack && now->same;
    thread->rests = rests ? thread->rests + 1 : 0;
    if (!rests || !thread->blocked)
        thread->blocked = now->stack ? read_blocked(sampler, process, thread, now, read) : 0;
    return thread->blocked;
}

/* ---- threads that run no Python code ---------------------------------------------------------------------------- */
static void list_threads(sampled_process *process, uint64_t now_ns)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
    DIR *folder = opendir(path);
    process->tid_count = 0;
    process->list_ns = now_ns;
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        long tid = strtol(entry->d_name, NULL, 10);
        if (tid > 0 &&
            tare__array_fit(&process->tids, &process->tid_room, process->tid_count + 1, sizeof *process->tids))
            process->tids[process->tid_count++] = (pid_t)tid;
    }
    closedir(folder);
}

/* One that never runs is sampled less often: its samples stand for longer times. */
static bool may_rest(const sampled_thread *thread, uint32_t pass)
{
    return thread->rests > RESTS_MAX && (pass + (uint32_t)thread->tid) % RESTS_MAX != 0;
}

static void take_native(tare__stack_sampler *sampler, sampled_process *process, pid_t tid, size_t place,
                        const tare__stack_sample *begun, uint64_t now_ns)
{
    const tare__python_thread read = {.tid = tid, .main = tid == process->pid};
    sampled_thread *thread = tare__sampler_thread(sampler, process, &read, place);
    tare__thread_now now = {0};
    if (!thread || thread->pass == sampler->pass) /* it runs Python code */
        return;
    thread->pass = sampler->pass;
    thread->native = true;
    if (may_rest(thread, sampler->pass))
        return;
    if (!thread->number || !thread->reader || !tare__thread_read(thread->reader, &now)) {
        thread->pass--;
        return;
    }
    if (tare__sampler_defers(sampler, thread, &now, begun, now_ns))
        return;
    tare__stack_sample sample = *begun;
    sample.state = now.state;
    sample.stack = tare__sampler_blocked(sampler, process, thread, &now, NULL);
    tare__sampler_add(sampler, thread, &now, &sample, now_ns);
}

void tare__sampler_native_threads(tare__stack_sampler *sampler, sampled_process *process,
                                  const tare__stack_sample *begun, uint64_t now_ns)
{
    if (!process->list_ns || now_ns - process->list_ns > LIST_NS)
        list_threads(process, now_ns);
    for (size_t i = 0; i < process->tid_count; i++)
        take_native(sampler, process, process->tids[i], i, begun, now_ns);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */
typedef struct draining {
    tare__stack_sampler *sampler;
    uint64_t ticks, now_ns;
    bool drop;
} draining;

/* The Python stack at once, before anything that takes time: *read NULL: none. False: it could not be read in time. */
static bool read_python(const draining *from, sampled_process *process, pid_t tid, const tare__python_thread **read)
{
    tare__error error = {""};
    *read = NULL;
    if (!tare__sampler_open(from->sampler, process, from->now_ns))
        return true;
    int status = tare__python_sample_thread(process->python, tid, read, &error);
    if (status && status != TARE_E_BUSY) {
        tare__sampler_let_go(process);
        process->try_ns = from->now_ns;
    }
    return status != TARE_E_BUSY;
}

/* Nothing is sampled twice: not before the last sample of its thread, and not in the future. */
static uint64_t time_of(const draining *from, const sampled_thread *thread, const tare__native_sample *event)
{
    uint64_t ns = least(event->ns, from->now_ns);
    return ns > thread->seen_ns ? ns : thread->seen_ns;
}

static uint64_t ticks_at(const draining *from, uint64_t ns)
{
    const tare__stack_sampler *sampler = from->sampler;
    double passed = (double)(from->now_ns - sampler->first_ns), ticks = (double)(from->ticks - sampler->first_ticks);
    double before = ns < from->now_ns ? (double)(from->now_ns - ns) : 0;
    return before > 0 && before < passed ? from->ticks - (uint64_t)(before * ticks / passed) : from->ticks;
}

static void take_event(void *context, const tare__native_sample *event)
{
    draining *from = context;
    tare__stack_sampler *sampler = from->sampler;
    sampled_process *process = from->drop ? NULL : tare__sampler_process_of(sampler, event->pid);
    sampler->counts.lost += from->drop;
    if (!process)
        return;
    const tare__python_thread *read;
    if (!read_python(from, process, event->tid, &read))
        return; /* the next sample stands for this one's time, too */
    const tare__python_thread known = {.tid = event->tid, .main = event->tid == event->pid};
    sampled_thread *thread = tare__sampler_thread(sampler, process, read ? read : &known, 0);
    tare__thread_now now = {0};
    if (!thread || !thread->number || !thread->reader || !tare__thread_read(thread->reader, &now))
        return;
    const tare__native_copy copy = {.regs = event->regs, .stack = event->stack, .bytes = event->stack_bytes,
                                    .kernel = event->kernel, .n_kernel = event->n_kernel};
    uint64_t at_ns = time_of(from, thread, event);
    tare__stack_sample sample = {.ticks = ticks_at(from, at_ns), .wall_ns = sampler->interval_ns,
                                 .state = TARE__STATE_RUNNING};
    sample.flags = read ? tare__sampler_flags(read) : 0;
    if (!read || !read->torn)
        sample.stack = stack_of(sampler, process, &copy, read);
    if (!sample.stack && read && !read->torn)
        sample.stack = tare__sampler_python_stack(sampler, process, thread, read);
    sampler->counts.torn += read && read->torn;
    thread->pass = sampler->pass;
    thread->sampled = thread->events_known = true;
    thread->events_cpu_ns = now.cpu_ns;
    thread->blocked = thread->rests = 0;
    tare__sampler_totals_at(thread, sampler->interval_ns, at_ns, from->now_ns, &now);
    tare__sampler_add(sampler, thread, &now, &sample, at_ns);
}

static void take_exec(void *context, pid_t pid)
{
    draining *from = context;
    sampled_process *process = tare__sampler_process_of(from->sampler, pid);
    if (process && process->native)
        tare__native_process_changed(process->native);
}

void tare__stack_sampler_drain(tare__stack_sampler *sampler, uint64_t ticks, uint64_t now_ns, bool drop)
{
    draining draining = {sampler, ticks, now_ns, drop};
    const tare__native_sink sink = {take_event, take_exec, &draining};
    tare__native_events *events = sampler->native ? tare__native_events_of(sampler->native) : NULL;
    if (!sampler->first_ns) {
        sampler->first_ns = now_ns;
        sampler->first_ticks = ticks;
    }
    if (events)
        tare__native_events_drain(events, &sink);
}

/* All threads of a process that exists. */
static void add_process(tare__native_events *events, pid_t pid)
{
    sampled_process process = {.pid = pid};
    list_threads(&process, 1);
    for (size_t i = 0; i < process.tid_count; i++)
        if (tare__native_events_add(events, process.tids[i]) == TARE_E_PERMISSION)
            break;
    free(process.tids);
}

int tare__stack_sampler_want_native(tare__stack_sampler *sampler, uint64_t interval_ns, const pid_t *pids, size_t n,
                                    tare__error *error)
{
    tare__native_events *events = NULL;
    int status = tare__native_events_open(interval_ns, &events, error);
    for (size_t i = 0; events && i < n; i++)
        add_process(events, pids[i]);
    sampler->interval_ns = interval_ns;
    sampler->native = tare__native_new(sampler->stacks, events);
    return sampler->native ? status : tare__fail(error, TARE_E_MEMORY, "out of memory");
}

int tare__stack_sampler_descriptor(const tare__stack_sampler *sampler)
{
    tare__native_events *events = sampler->native ? tare__native_events_of(sampler->native) : NULL;
    return events ? tare__native_events_descriptor(events) : -1;
}
