/* stacks: passes over the threads of all Python processes of a run: stack and state of each, as samples of a trace.
 * One thread owns a sampler. Must not know when passes are due, or how samples are written. */
#define _GNU_SOURCE
#include "stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "python.h"
#include "state.h"
#include "stacks_inner.h"
#include "tare.h"
#include "watch.h"

#define SOON_NS 2000000u     /* an interpreter that is starting */
#define SOON_MAX_NS 100000000u
#define LATER_NS 50000000u   /* a process that is not Python may become one by exec or dlopen */
#define LATER_MAX_NS 1000000000u
#define PROBLEMS_MAX 5u

tare__stack_sampler *tare__stack_sampler_new(tare__stacks *stacks, void (*full)(void *context), void *context)
{
    tare__stack_sampler *sampler = calloc(1, sizeof *sampler);
    if (sampler) {
        sampler->stacks = stacks;
        sampler->full = full;
        sampler->context = context;
    }
    return sampler;
}

/* ---- processes --------------------------------------------------------------------------------------------- */

static void close_thread(sampled_thread *thread)
{
    tare__thread_close(thread->reader);
    free(thread->frames);
}

void tare__sampler_let_go(sampled_process *process)
{
    for (size_t i = 0; i < process->thread_count; i++)
        close_thread(&process->threads[i]);
    tare__python_close(process->python);
    free(process->threads);
    free(process->functions);
    free(process->tids);
    tare__native_process_free(process->native);
    process->python = NULL;
    process->native = NULL;
    process->threads = NULL;
    process->tids = NULL;
    process->functions = NULL;
    process->thread_count = process->thread_room = process->function_room = 0;
    process->tid_count = process->tid_room = 0;
    process->list_ns = 0;
}

void tare__stack_sampler_free(tare__stack_sampler *sampler)
{
    if (!sampler)
        return;
    for (size_t i = 0; i < sampler->process_count; i++) {
        tare__sampler_let_go(sampler->processes[i]);
        free(sampler->processes[i]);
    }
    free(sampler->processes);
    tare__native_free(sampler->native);
    tare__text_free(&sampler->problems);
    free(sampler);
}

static sampled_process *find_process(const tare__stack_sampler *sampler, const tare__stack_target *target)
{
    for (size_t i = 0; i < sampler->process_count; i++) {
        sampled_process *process = sampler->processes[i];
        if (process->pid == target->pid && (!target->start_time || !process->start_time ||
                                            process->start_time == target->start_time))
            return process;
    }
    return NULL;
}

static sampled_process *add_process(tare__stack_sampler *sampler, pid_t pid)
{
    sampled_process *process = calloc(1, sizeof *process);
    if (!process || !tare__array_fit(&sampler->processes, &sampler->process_room, sampler->process_count + 1,
                                     sizeof(sampled_process *))) {
        free(process);
        return NULL;
    }
    process->pid = pid;
    process->pause_ns = SOON_NS;
    sampler->processes[sampler->process_count++] = process;
    return process;
}

sampled_process *tare__sampler_process_of(tare__stack_sampler *sampler, pid_t pid)
{
    const tare__stack_target target = {.pid = pid};
    sampled_process *process = find_process(sampler, &target);
    if (!process && (process = add_process(sampler, pid)))
        process->young = true;
    return process;
}

void tare__stack_sampler_watch(tare__stack_sampler *sampler, const tare__stack_target *targets, size_t n)
{
    for (size_t i = 0; i < sampler->process_count; i++)
        sampler->processes[i]->listed = false;
    for (size_t i = 0; i < n; i++) {
        sampled_process *process = find_process(sampler, &targets[i]);
        if (!process)
            process = add_process(sampler, targets[i].pid);
        if (!process)
            continue; /* out of memory: with the next list */
        process->start_time = targets[i].start_time ? targets[i].start_time : process->start_time;
        process->listed = true;
    }
    size_t kept = 0;
    for (size_t i = 0; i < sampler->process_count; i++) {
        sampled_process *process = sampler->processes[i];
        if (process->listed || process->young) {
            process->young = false;
            sampler->processes[kept++] = process;
            continue;
        }
        tare__sampler_let_go(process);
        free(process);
    }
    sampler->process_count = kept;
}

static void note_problem(tare__stack_sampler *sampler, const char *why)
{
    if (sampler->problem_count++ < PROBLEMS_MAX)
        tare__text_format(&sampler->problems, "%s\n", why);
}

static void try_again(sampled_process *process, uint64_t now_ns, uint64_t least_ns, uint64_t most_ns)
{
    uint64_t pause = process->pause_ns < least_ns ? least_ns : process->pause_ns;
    process->try_ns = now_ns + pause;
    process->pause_ns = 2 * pause < most_ns ? 2 * pause : most_ns;
}

/* Whether it can be read as a Python process now. */
bool tare__sampler_open(tare__stack_sampler *sampler, sampled_process *process, uint64_t now_ns)
{
    tare__error error = {""};
    if (process->python)
        return true;
    if (now_ns < process->try_ns)
        return false;
    if (!process->seen_ns)
        process->seen_ns = now_ns; /* the first sample stands for no time before this */
    int status = tare__python_open(process->pid, &process->python, &error);
    if (status == 0) {
        if (sampler->native)
            tare__python_want_evaluations(process->python);
        sampler->counts.processes += !process->counted;
        process->counted = true;
        process->pause_ns = SOON_NS;
        return true;
    }
    if (status == TARE_E_BUSY) {
        try_again(process, now_ns, SOON_NS, SOON_MAX_NS);
        return false;
    }
    if (status != TARE_E_INPUT && status != TARE_E_SYSTEM && !process->counted) {
        process->counted = true;
        sampler->counts.unread++;
        note_problem(sampler, error.text);
    }
    try_again(process, now_ns, LATER_NS, LATER_MAX_NS);
    return false;
}

/* ---- threads ----------------------------------------------------------------------------------------------- */

/* The order of threads rarely changes: the one expected at this place is tried first. */
static sampled_thread *find_thread(const tare__stack_sampler *sampler, sampled_process *process,
                                   const tare__python_thread *read, size_t place)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        sampled_thread *thread = &process->threads[(place + i) % process->thread_count];
        if (thread->tid == read->tid && (thread->ident == read->ident || (read->tid > 0 && sampler->native)))
            return thread;
    }
    return NULL;
}

/* The kernel's name of a thread, where it is not just that of the process. */
static size_t name_thread(const sampled_process *process, const tare__python_thread *read, char out[64])
{
    char path[64], own[64] = "", process_name[64] = "";
    if (read->main || !read->tid) /* unknown: a state of a sub-interpreter before 3.13 */
        return (size_t)snprintf(out, 64, "%s", read->main ? "MainThread" : "unknown thread");
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)process->pid, (int)read->tid);
    tare__sample_read("", path, own, sizeof own);
    snprintf(path, sizeof path, "/proc/%d/comm", (int)process->pid);
    tare__sample_read("", path, process_name, sizeof process_name);
    own[strcspn(own, "\n")] = '\0';
    process_name[strcspn(process_name, "\n")] = '\0';
    int n = own[0] && strcmp(own, process_name) != 0 ? snprintf(out, 64, "%s", own)
                                                     : snprintf(out, 64, "thread %d", (int)read->tid);
    return (size_t)(n < 64 ? n : 63);
}

/* The target of a run is sampled before it is in a list of processes: without the time at which it started, its first
 * threads would be those of another process than the later ones. */
static uint64_t start_of(pid_t pid)
{
    char path[64], text[1024];
    tare__proc_stat stat;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return tare__sample_read("", path, text, sizeof text) > 0 && tare__proc_stat_parse(text, &stat) ? stat.start_time
                                                                                                    : 0;
}

static sampled_thread *add_thread(tare__stack_sampler *sampler, sampled_process *process,
                                  const tare__python_thread *read)
{
    if (!process->start_time)
        process->start_time = start_of(process->pid);
    if (!tare__array_fit(&process->threads, &process->thread_room, process->thread_count + 1,
                         sizeof *process->threads))
        return NULL;
    char name[64];
    tare__stack_thread about = {.pid = process->pid, .tid = read->tid, .start_time = process->start_time,
                                .name = name, .main = read->main};
    about.name_bytes = (uint32_t)name_thread(process, read, name);
    sampled_thread *thread = &process->threads[process->thread_count++];
    *thread = (sampled_thread){.ident = read->ident, .tid = read->tid};
    thread->number = tare__stacks_thread(sampler->stacks, &about);
    thread->reader = read->tid > 0 ? tare__thread_open(process->pid, read->tid) : NULL;
    return thread;
}

sampled_thread *tare__sampler_thread(tare__stack_sampler *sampler, sampled_process *process,
                                     const tare__python_thread *read, size_t place)
{
    sampled_thread *thread = find_thread(sampler, process, read, place);
    return thread ? thread : add_thread(sampler, process, read);
}

static void forget_ended_threads(const tare__stack_sampler *sampler, sampled_process *process)
{
    size_t kept = 0;
    for (size_t i = 0; i < process->thread_count; i++) {
        if (process->threads[i].pass == sampler->pass)
            process->threads[kept++] = process->threads[i];
        else
            close_thread(&process->threads[i]);
    }
    process->thread_count = kept;
}

/* ---- stacks ------------------------------------------------------------------------------------------------ */

static uint32_t function_of(tare__stack_sampler *sampler, sampled_process *process, uint32_t code)
{
    size_t before = process->function_room;
    if (code < before && process->functions[code])
        return process->functions[code];
    if (!tare__array_fit(&process->functions, &process->function_room, (size_t)code + 1, sizeof(uint32_t)))
        return 0;
    memset(process->functions + before, 0, (process->function_room - before) * sizeof(uint32_t));
    const tare__python_code *about = tare__python_code_at(process->python, code);
    if (!about)
        return 0;
    tare__stack_function function = {.kind = TARE__FRAME_PYTHON, .first_line = about->first_line,
                                     .name = about->name, .file = about->file};
    function.name_bytes = (uint32_t)strlen(about->name);
    function.file_bytes = (uint32_t)strlen(about->file);
    return process->functions[code] = tare__stacks_function(sampler->stacks, &function);
}

static uint32_t push_note(tare__stack_sampler *sampler, uint32_t stack, uint32_t *number, const char *text)
{
    if (!*number) {
        tare__stack_function note = {.kind = TARE__FRAME_NOTE, .name = text, .file = "",
                                     .name_bytes = (uint32_t)strlen(text)};
        *number = tare__stacks_function(sampler->stacks, &note);
    }
    uint32_t pushed = *number ? tare__stacks_push(sampler->stacks, stack, *number, 0) : 0;
    return pushed ? pushed : stack;
}

uint32_t tare__sampler_push(tare__stack_sampler *sampler, sampled_process *process, uint32_t stack,
                            const tare__python_thread *read, uint32_t frame, int32_t line)
{
    const tare__python_frame *from = &read->frames[frame];
    uint32_t function = function_of(sampler, process, from->code);
    line = line ? line : from->line;
    return function ? tare__stacks_push(sampler->stacks, stack, function, line > 0 ? (uint64_t)line : 0) : 0;
}

uint32_t tare__sampler_collecting(tare__stack_sampler *sampler, uint32_t stack)
{
    return push_note(sampler, stack, &sampler->collecting, "garbage collection");
}

/* How many of its outermost frames are those of the thread's last stack. */
static uint32_t kept_frames(const sampled_thread *thread, const tare__python_thread *read)
{
    uint32_t kept = 0;
    while (kept < read->n && kept < thread->frame_count) {
        const sampled_frame *known = &thread->frames[kept];
        const tare__python_frame *frame = &read->frames[read->n - 1 - kept];
        if (known->code != frame->code || known->line != frame->line)
            break;
        kept++;
    }
    return kept;
}

uint32_t tare__sampler_python_stack(tare__stack_sampler *sampler, sampled_process *process, sampled_thread *thread,
                                    const tare__python_thread *read)
{
    bool keeps = !read->cut && tare__array_fit(&thread->frames, &thread->frame_room, read->n, sizeof *thread->frames);
    uint32_t kept = keeps ? kept_frames(thread, read) : 0, stack = kept ? thread->frames[kept - 1].stack : 0;
    thread->frame_count = kept;
    for (uint32_t i = read->n - kept; i > 0; i--) {
        uint32_t pushed = tare__sampler_push(sampler, process, stack, read, i - 1, 0);
        if (!pushed)
            break; /* counted as refused: what it called would seem to have no caller */
        stack = pushed;
        if (keeps)
            thread->frames[thread->frame_count++] =
                (sampled_frame){read->frames[i - 1].code, read->frames[i - 1].line, stack};
        if (read->cut && i - 1 == TARE__PYTHON_DEPTH_MAX / 4 * 3)
            stack = push_note(sampler, stack, &sampler->left_out, "(frames omitted)");
    }
    if (read->in_gc)
        stack = tare__sampler_collecting(sampler, stack);
    return stack;
}

/* ---- samples ----------------------------------------------------------------------------------------------- */

static uint64_t since(uint64_t now, uint64_t before, uint64_t most)
{
    uint64_t passed = now > before ? now - before : 0;
    return passed < most ? passed : most;
}

/* The kernel counts CPU time at clock ticks, and a wait for a CPU when it is over: at high rates that is later than the
 * samples to which the time belongs. So a sample can have more than its wall time, but all of them together do not. */
static uint64_t count_time(sampled_thread *thread, uint64_t now, uint64_t before)
{
    uint64_t counted = since(now, thread->known ? before : 0, thread->room_ns);
    thread->room_ns -= counted;
    return counted;
}

static void fill_times(sampled_thread *thread, const tare__thread_now *now, tare__stack_sample *sample)
{
    thread->room_ns += sample->wall_ns;
    if (now->known) {
        sample->cpu_ns = count_time(thread, now->cpu_ns, thread->cpu_ns);
        sample->queue_ns = count_time(thread, now->queue_ns, thread->queue_ns);
    }
    thread->known = now->known;
    thread->cpu_ns = now->cpu_ns;
    thread->queue_ns = now->queue_ns;
}

void tare__sampler_add(tare__stack_sampler *sampler, sampled_thread *thread, const tare__thread_now *now,
                       tare__stack_sample *sample, uint64_t now_ns)
{
    if (thread->seen_ns)
        sample->wall_ns = since(now_ns, thread->seen_ns, UINT64_MAX);
    if (thread->reader)
        fill_times(thread, now, sample);
    sample->thread = thread->number;
    thread->seen_ns = now_ns;
    sampler->counts.samples++;
    if (!tare__stacks_sample(sampler->stacks, sample)) {
        sampler->full(sampler->context);
        tare__stacks_sample(sampler->stacks, sample);
    }
}

uint32_t tare__sampler_flags(const tare__python_thread *read)
{
    return (read->has_gil ? TARE__SAMPLE_HAS_GIL : 0) | (read->in_gc ? TARE__SAMPLE_IN_GC : 0) |
           (read->torn ? TARE__SAMPLE_TORN : 0);
}

/* Samples by events are chosen by exact states and times. False: it has ended. */
static bool read_thread(const tare__stack_sampler *sampler, const sampled_thread *thread,
                        const tare__python_thread *read, uint64_t now_ns, tare__thread_now *now)
{
    if (!thread->reader)
        return true;
    return sampler->native ? tare__thread_read(thread->reader, now)
                           : tare__thread_glance(thread->reader, now_ns, read->ran, now);
}

static void take_thread(tare__stack_sampler *sampler, sampled_process *process, const tare__python_thread *read,
                        size_t place, const tare__stack_sample *begun)
{
    sampled_thread *thread = tare__sampler_thread(sampler, process, read, place);
    tare__thread_now now = {0};
    uint64_t now_ns = process->seen_ns;
    if (!thread)
        return;
    thread->pass = sampler->pass;
    thread->native = false;
    if (!thread->number || !read_thread(sampler, thread, read, now_ns, &now))
        return;
    if (tare__sampler_defers(sampler, thread, &now, begun, now_ns))
        return;
    tare__stack_sample sample = *begun;
    sample.state = now.state;
    if (now.state == TARE__STATE_LOCK && !read->has_gil && tare__python_is_gil(process->python, now.lock))
        sample.state = TARE__STATE_GIL;
    sample.flags = tare__sampler_flags(read);
    if (!read->torn)
        sample.stack = tare__sampler_blocked(sampler, process, thread, &now, read);
    if (!read->torn && !sample.stack)
        sample.stack = tare__sampler_python_stack(sampler, process, thread, read);
    sampler->counts.torn += read->torn;
    tare__sampler_add(sampler, thread, &now, &sample, now_ns);
}

/* TARE_E_BUSY: the next sample stands for this one's time, too. Another one: it has ended, or runs another program. */
static int take_python(tare__stack_sampler *sampler, sampled_process *process, const tare__stack_sample *begun,
                       uint64_t now_ns)
{
    const tare__python_thread *threads = NULL;
    uint32_t n = 0;
    tare__error error = {""};
    int status = tare__python_sample(process->python, &threads, &n, &error);
    if (!status)
        process->seen_ns = now_ns;
    for (uint32_t t = 0; t < n && !status; t++)
        take_thread(sampler, process, &threads[t], t, begun);
    return status;
}

void tare__stack_sampler_pass(tare__stack_sampler *sampler, uint64_t ticks, uint64_t now_ns, uint64_t interval_ns)
{
    sampler->pass++;
    sampler->interval_ns = interval_ns;
    for (size_t i = 0; i < sampler->process_count; i++) {
        sampled_process *process = sampler->processes[i];
        bool python = tare__sampler_open(sampler, process, now_ns);
        if (!python && !sampler->native)
            continue;
        tare__stack_sample begun = {.ticks = ticks, .wall_ns = since(now_ns, process->seen_ns, interval_ns)};
        int status = python ? take_python(sampler, process, &begun, now_ns) : 0;
        if (status == TARE_E_BUSY)
            continue;
        process->seen_ns = now_ns;
        if (status) {
            tare__sampler_let_go(process);
            process->try_ns = now_ns; /* exec: it may be Python again */
            continue;
        }
        if (sampler->native)
            tare__sampler_native_threads(sampler, process, &begun, now_ns);
        forget_ended_threads(sampler, process);
    }
}

tare__stack_counts tare__stack_counts_of(const tare__stack_sampler *sampler)
{
    tare__stack_counts counts = sampler->counts;
    tare__native_counts native = sampler->native ? tare__native_counts_of(sampler->native) : (tare__native_counts){0};
    tare__native_events *events = sampler->native ? tare__native_events_of(sampler->native) : NULL;
    tare__native_losses losses = events ? tare__native_events_losses(events) : (tare__native_losses){0};
    counts.lost += losses.records;
    counts.without_events = losses.threads;
    counts.merged = native.merged;
    counts.apart = native.apart;
    return counts;
}

const char *tare__stack_sampler_problems(const tare__stack_sampler *sampler)
{
    return sampler->problems.data ? sampler->problems.data : "";
}
