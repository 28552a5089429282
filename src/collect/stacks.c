/* stacks: samples call stacks on a thread of its own, so that neither draining nor sampling waits for the other, and
 * hands over complete blocks.
 * Two threads: everything they share is under one mutex. Must not know how stacks are read. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "collector.h"

#define BUDGET 0.02          /* of one core, at the default rate */
#define BUDGET_EVENTS 0.05   /* for samples of running threads, … */
#define BUDGET_CPU 0.02      /* … and more for each CPU */
#define BUDGET_ASKED 0.5     /* where a rate was requested */
#define EVENTS_NICE (-15)    /* where that is permitted */
#define READY_MAX (16u << 20) /* bytes of blocks that wait for the collector */
#define SECOND_NS 1000000000u
#define UNHEARD_NS 50000000u /* without a descriptor by which the thread is told to end */

struct tare__stack_thread_state {
    pthread_t thread;
    pthread_mutex_t mutex;
    /* under the mutex */
    bool stop;
    tare__text ready; /* complete blocks */
    uint64_t lost;    /* samples in blocks that could not be handed over */
    tare__stack_target *targets;
    size_t target_count, target_room;
    bool targets_fresh;
    /* of the sampling thread; the collector's again when that has ended */
    tare__stacks *stacks;
    tare__stack_sampler *sampler;
    tare__squeezer *squeezer;
    tare__text block;
    tare__stack_target *own_targets;
    size_t own_room;
    int stop_fd;      /* readable: the thread is to end; -1: none, it checks now and then */
    uint64_t interval_ns, longest_ns, cpu_ns, drained_ns, sealed_ns, passes, missed;
    double budget, event_budget;
    double credit_ns; /* of CPU time for events */
    uint64_t credit_at_ns;
    uint32_t clock; /* of the session */
    uint32_t jitter;
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (uint64_t)at.tv_sec * SECOND_NS + (uint64_t)at.tv_nsec;
}

/* ---- the sampling thread ----------------------------------------------------------------------------------- */

static void seal(void *context)
{
    tare__stack_thread_state *state = context;
    uint32_t pending = tare__stacks_pending(state->stacks);
    tare__text_clear(&state->block);
    if (tare__stacks_seal(state->stacks, state->squeezer, &state->block) != 0 || state->block.length == 0)
        return;
    pthread_mutex_lock(&state->mutex);
    if (state->ready.length + state->block.length <= READY_MAX) {
        tare__text_append(&state->ready, state->block.data, state->block.length);
    } else {
        tare__stacks_unseal(state->stacks);
        state->lost += pending;
    }
    pthread_mutex_unlock(&state->mutex);
}

/* Sampling at fixed times would see a program that works in the same rhythm always at the same place. */
static uint64_t scattered(tare__stack_thread_state *state, uint64_t interval_ns)
{
    state->jitter = state->jitter * 1664525u + 1013904223u;
    return interval_ns - interval_ns / 8 + (uint64_t)(state->jitter >> 8) * (interval_ns / 4) / (1u << 24);
}

/* Without credit, samples are dropped: the next ones stand for their time. */
static void drain(tare__stack_thread_state *state)
{
    uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t now = clock_ns(CLOCK_MONOTONIC), ticks = tare__clock_ticks(state->clock);
    double most = 2.0 * SECOND_NS * state->event_budget;
    state->credit_ns += (double)(now - state->credit_at_ns) * state->event_budget;
    state->credit_ns = state->credit_ns < most ? state->credit_ns : most;
    state->credit_at_ns = now;
    tare__stack_sampler_drain(state->sampler, ticks, now, state->credit_ns < 0);
    uint64_t taken = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    state->credit_ns -= (double)taken;
    state->drained_ns += taken;
}

static bool stops(tare__stack_thread_state *state)
{
    pthread_mutex_lock(&state->mutex);
    bool stop = state->stop;
    pthread_mutex_unlock(&state->mutex);
    return stop;
}

/* Threads that ran for an interval are sampled at once: what they do is read from their memory. One system call where
 * nothing happens meanwhile: waking up is most of what a sample costs. */
static void wait_for_time(tare__stack_thread_state *state, uint64_t due_ns)
{
    struct pollfd waits[2] = {{state->stop_fd, POLLIN, 0}, {tare__stack_sampler_descriptor(state->sampler), POLLIN, 0}};
    for (uint64_t now; (now = clock_ns(CLOCK_MONOTONIC)) < due_ns;) {
        uint64_t left = due_ns - now;
        if (state->stop_fd < 0 && left > UNHEARD_NS)
            left = UNHEARD_NS;
        struct timespec most = {(time_t)(left / SECOND_NS), (long)(left % SECOND_NS)};
        int ready = ppoll(waits, waits[1].fd >= 0 ? 2 : 1, &most, NULL);
        if (ready > 0 && waits[1].revents)
            drain(state);
        if (ready > 0 ? waits[0].revents != 0 : ready < 0 && errno != EINTR)
            return;
        if (state->stop_fd < 0 && stops(state))
            return;
    }
}

/* True: it is time for a pass; false: the thread is to end. */
static bool wait_until(tare__stack_thread_state *state, uint64_t due_ns)
{
    bool fresh = false;
    size_t n = 0;
    wait_for_time(state, due_ns);
    pthread_mutex_lock(&state->mutex);
    bool go_on = !state->stop;
    if (state->targets_fresh && tare__array_fit(&state->own_targets, &state->own_room, state->target_count,
                                                sizeof *state->own_targets)) {
        n = state->target_count;
        if (n)
            memcpy(state->own_targets, state->targets, n * sizeof *state->own_targets);
        fresh = true;
        state->targets_fresh = false;
    }
    pthread_mutex_unlock(&state->mutex);
    if (fresh)
        tare__stack_sampler_watch(state->sampler, state->own_targets, n);
    return go_on;
}

static void *sample(void *context)
{
    tare__stack_thread_state *state = context;
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    prctl(PR_SET_NAME, "tare stacks", 0ul, 0ul, 0ul);
    /* Buffers of events are small: among many threads that run, this one would be too late. */
    bool events = tare__stack_sampler_descriptor(state->sampler) >= 0;
    if (events)
        setpriority(PRIO_PROCESS, (id_t)gettid(), EVENTS_NICE);
    uint64_t due = clock_ns(CLOCK_MONOTONIC), interval = state->interval_ns;
    uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    double cost = 0;
    while (wait_until(state, due)) {
        if (events) /* a pass would take the time of samples that are still in the buffers */
            drain(state);
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        tare__stack_sampler_pass(state->sampler, tare__clock_ticks(state->clock), now, interval);
        if (now - state->sealed_ns >= TARE__SEAL_NS) {
            seal(state);
            state->sealed_ns = now;
        }
        state->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        uint64_t passes_ns = state->cpu_ns - state->drained_ns; /* with what waking up takes */
        cost += 0.1 * ((double)(passes_ns - before) - cost);
        before = passes_ns;
        interval = cost / state->budget > (double)state->interval_ns ? (uint64_t)(cost / state->budget)
                                                                      : state->interval_ns;
        state->longest_ns = interval > state->longest_ns ? interval : state->longest_ns;
        state->passes++;
        due += scattered(state, interval);
        uint64_t end = clock_ns(CLOCK_MONOTONIC);
        if (due < end) {
            state->missed += (end - due) / state->interval_ns;
            due = end;
        }
    }
    drain(state);
    seal(state);
    state->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* ---- the collector's side ---------------------------------------------------------------------------------- */

/* Notes that are displayed although no summary is wanted. */
static void warn(tare__collector *collector, const char *lines)
{
    size_t used = strlen(collector->warnings);
    tare__text_string(&collector->notes, lines);
    if (used + strlen(lines) < sizeof collector->warnings)
        strcpy(collector->warnings + used, lines);
}

static void free_state(tare__stack_thread_state *state)
{
    tare__stack_sampler_free(state->sampler);
    if (state->stop_fd >= 0)
        close(state->stop_fd);
    tare__stacks_free(state->stacks);
    tare__squeezer_free(state->squeezer);
    tare__text_free(&state->block);
    tare__text_free(&state->ready);
    free(state->targets);
    free(state->own_targets);
    free(state);
}

/* Signals are the collector's. */
static bool start(tare__stack_thread_state *state)
{
    sigset_t all, before;
    pthread_mutex_init(&state->mutex, NULL);
    state->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&state->thread, NULL, sample, state) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Before the thread starts, so that the program does not run for long without events. */
static void open_native(tare__collector *collector, tare__stack_thread_state *state, pid_t pid)
{
    tare__error error = {""};
    int status = tare__stack_sampler_want_native(state->sampler, state->interval_ns, &pid, 1, &error);
    char line[sizeof error.text + 64];
    if (status) {
        snprintf(line, sizeof line, "native stacks of running threads were not sampled: %s\n", error.text);
        warn(collector, line);
    }
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    double events = BUDGET_CPU * (double)cpus > BUDGET_EVENTS ? BUDGET_CPU * (double)cpus : BUDGET_EVENTS;
    state->event_budget = state->budget >= BUDGET_ASKED || events > BUDGET_ASKED ? BUDGET_ASKED : events;
}

void tare__stacks_open(tare__collector *collector, const tare__stack_options *options)
{
    if (options->interval_ns == TARE__RUN_NO_SAMPLES)
        return;
    tare__stack_thread_state *state = calloc(1, sizeof *state);
    if (!state)
        return;
    state->interval_ns = options->interval_ns ? options->interval_ns : TARE__STACK_INTERVAL_NS;
    state->stop_fd = -1;
    state->budget = options->interval_ns ? BUDGET_ASKED : BUDGET;
    state->clock = collector->folder.page->clock;
    state->stacks = tare__stacks_new();
    state->squeezer = tare__squeezer_new();
    state->sampler = state->stacks ? tare__stack_sampler_new(state->stacks, seal, state) : NULL;
    state->sealed_ns = clock_ns(CLOCK_MONOTONIC);
    state->jitter = (uint32_t)state->sealed_ns;
    tare__stack_target first = {.pid = options->target};
    if (!state->sampler || !state->squeezer ||
        !tare__array_fit(&state->targets, &state->target_room, 1, sizeof first)) {
        free_state(state);
        return;
    }
    if (options->native)
        open_native(collector, state, options->target);
    state->targets[0] = first;
    state->target_count = 1;
    state->targets_fresh = true;
    if (start(state)) {
        collector->stacks = state;
        return;
    }
    warn(collector, "call stacks were not sampled: no thread could be started\n");
    free_state(state);
}

void tare__stacks_tick(tare__collector *collector, bool fresh_list)
{
    tare__stack_thread_state *state = collector->stacks;
    size_t count = 0, n = 0;
    if (!state)
        return;
    const tare__sampled_process *list =
        fresh_list && collector->sampling.set ? tare__sample_processes(collector->sampling.set, &count) : NULL;
    tare__text_clear(&collector->block);
    pthread_mutex_lock(&state->mutex);
    if (list && tare__array_fit(&state->targets, &state->target_room, count, sizeof *state->targets)) {
        for (size_t i = 0; i < count; i++)
            if (list[i].alive)
                state->targets[n++] = (tare__stack_target){list[i].pid, list[i].start_time};
        state->target_count = n;
        state->targets_fresh = true;
    }
    if (state->ready.length)
        tare__text_append(&collector->block, state->ready.data, state->ready.length);
    tare__text_clear(&state->ready);
    pthread_mutex_unlock(&state->mutex);
    if (collector->block.length)
        tare__writer_append(&collector->writer, &collector->block);
}

static void note_losses(tare__collector *collector, const tare__stack_thread_state *state)
{
    tare__stack_counts counts = tare__stack_counts_of(state->sampler);
    if (counts.lost)
        tare__text_format(&collector->notes,
                          "%llu samples of running threads were dropped: their buffer was full, or the collector used "
                          "its share of CPU time\n",
                          (unsigned long long)counts.lost);
    if (counts.without_events)
        tare__text_format(&collector->notes,
                          "%u threads have no native stacks while they run: the limit of open files (ulimit -n)\n",
                          counts.without_events);
}

/* Names of native functions: while the objects are still there, and for readers on other machines. */
static void add_symbols(tare__collector *collector, tare__stack_thread_state *state)
{
    tare__text_clear(&state->block);
    if (tare__symbolize(state->stacks, !collector->of_another_user, state->squeezer, &state->block,
                        &collector->notes) == 0 &&
        state->block.length)
        tare__writer_append(&collector->writer, &state->block);
}

#define MISSED_MAX 0.1 /* of the samples, before it is worth a note */

/* That there are fewer samples than asked for. */
static void put_rate(const tare__stack_thread_state *state, tare__text *notes)
{
    char longest[TARE__UNIT_BYTES], asked[TARE__UNIT_BYTES], share[TARE__UNIT_BYTES], most[TARE__UNIT_BYTES];
    double missed = (double)state->missed / ((double)(state->missed + state->passes) + 1);
    if (state->longest_ns > 2 * state->interval_ns)
        tare__text_format(notes, "stack sampling interval up to %s instead of %s: more frequent sampling would have "
                                 "exceeded %s of a core%s\n",
                          tare__unit_time(longest, (double)state->longest_ns),
                          tare__unit_time(asked, (double)state->interval_ns),
                          tare__unit_percent(most, state->budget),
                          state->budget < BUDGET_ASKED ? " (use --stacks HZ to permit half a core)" : "");
    else if (missed > MISSED_MAX)
        tare__text_format(notes, "%s of the stack samples were not taken: the sampler did not get a CPU in time\n",
                          tare__unit_percent(share, missed));
}

void tare__stacks_finish(tare__collector *collector)
{
    tare__stack_thread_state *state = collector->stacks;
    if (!state)
        return;
    pthread_mutex_lock(&state->mutex);
    state->stop = true;
    if (state->stop_fd >= 0)
        eventfd_write(state->stop_fd, 1);
    pthread_mutex_unlock(&state->mutex);
    pthread_join(state->thread, NULL);
    tare__stacks_tick(collector, false);
    collector->stacks = NULL;
    collector->stack_cpu_ns = state->cpu_ns;
    warn(collector, tare__stack_sampler_problems(state->sampler));
    note_losses(collector, state);
    put_rate(state, &collector->notes);
    uint64_t refused = tare__stacks_refused(state->stacks) + state->lost;
    add_symbols(collector, state);
    if (refused)
        tare__text_format(&collector->notes, "%llu call stacks could not be kept\n", (unsigned long long)refused);
    free_state(state);
}
