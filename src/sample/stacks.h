/* stacks: passes over the threads of all Python processes of a run: stack and state of each, as samples of a trace.
 * One thread owns a sampler. Must not know when passes are due, or how samples are written.  */
#ifndef TARE_SAMPLE_STACKS_H
#define TARE_SAMPLE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "format/format.h"

typedef struct tare__stack_target { /* a process that exists */
    pid_t pid;
    uint64_t start_time; /* clock ticks since boot; 0: unknown */
} tare__stack_target;

typedef struct tare__stack_sampler tare__stack_sampler;
/* Samples go to `stacks`; `full` is called when it must be sealed before more fit. NULL: out of memory. */
tare__stack_sampler *tare__stack_sampler_new(tare__stacks *stacks, void (*full)(void *context), void *context);
void tare__stack_sampler_free(tare__stack_sampler *sampler); /* NULL is allowed */
/* The processes that exist now: others are forgotten. */
void tare__stack_sampler_watch(tare__stack_sampler *sampler, const tare__stack_target *targets, size_t n);
/* One pass over all of them. `ticks`: the time of the samples; `now_ns`: the same on the monotonic clock;
 * `interval_ns`: how much time the first sample of a thread stands for at most. */
void tare__stack_sampler_pass(tare__stack_sampler *sampler, uint64_t ticks, uint64_t now_ns, uint64_t interval_ns);

/* Native stacks of all threads from now on: of those of these processes, and of all that they start, also while they
 * run. Not 0: only of threads that wait, with the reason (out of memory: of none). Before the first pass. */
int tare__stack_sampler_want_native(tare__stack_sampler *sampler, uint64_t interval_ns, const pid_t *pids, size_t n,
                                    tare__error *error);
int tare__stack_sampler_descriptor(const tare__stack_sampler *sampler); /* readable: drain; -1: none */
/* `drop`: the samples are only counted. */
void tare__stack_sampler_drain(tare__stack_sampler *sampler, uint64_t ticks, uint64_t now_ns, bool drop);

typedef struct tare__stack_counts {
    uint64_t samples, torn;
    uint32_t processes; /* Python processes read so far */
    uint64_t lost;      /* samples of running threads */
    uint32_t without_events; /* threads that are not sampled while they run */
    uint64_t merged, apart; /* stacks of Python and native frames; those that did not belong together */
    uint32_t unread;    /* Python processes that could not be read */
} tare__stack_counts;
tare__stack_counts tare__stack_counts_of(const tare__stack_sampler *sampler);
/* Why some processes could not be read: one sentence per line; "" for none. */
const char *tare__stack_sampler_problems(const tare__stack_sampler *sampler);

#endif
