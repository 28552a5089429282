/* stacks_inner: what the passes over Python threads and the samples of native stacks share.
 * One thread owns all of it.
 * Must not know when passes are due. */
#ifndef TARE_SAMPLE_STACKS_INNER_H
#define TARE_SAMPLE_STACKS_INNER_H

#include "native.h"
#include "python.h"
#include "stacks.h"
#include "state.h"

typedef struct sampled_frame {
    uint32_t code;
    int32_t line;
    uint32_t stack; /* number of the stack that ends with it */
} sampled_frame;

typedef struct sampled_thread {
    uint64_t ident;
    pid_t tid;
    uint32_t number; /* in the file; 0: refused */
    uint32_t pass;   /* the last one that saw it */
    uint32_t stack;
    bool known;      /* the totals below */
    bool native;     /* without Python code, when it was seen last */
    bool sampled;    /* while it ran, by performance events */
    bool added;      /* events were opened for it, beside those that it inherited */
    bool refused;    /* it cannot have events */
    bool events_known; /* events_cpu_ns: its CPU time at the last one */
    uint32_t blocked; /* its stack while it waits; 0: not known */
    uint32_t rests;  /* passes in which it had not run */
    uint64_t seen_ns, cpu_ns, queue_ns, events_cpu_ns;
    uint64_t room_ns; /* wall time of its samples that no counter has explained yet */
    tare__thread_reader *reader; /* NULL: its tid is unknown */
    sampled_frame *frames; /* of its last Python stack, from the outermost on: most of the next one */
    size_t frame_count, frame_room;
} sampled_thread;

typedef struct sampled_process {
    pid_t pid;
    uint64_t start_time;
    tare__python *python; /* NULL: not, or not yet, Python */
    uint64_t try_ns, pause_ns;
    uint64_t seen_ns;
    bool counted, listed;
    bool young;        /* an event told of it before the list did */
    uint32_t *functions; /* by code number: number in the file; 0: not asked for yet */
    size_t function_room;
    sampled_thread *threads;
    size_t thread_count, thread_room;
    struct tare__native_process *native; /* NULL: not wanted, or not yet */
    uint64_t list_ns;  /* its threads were listed */
    pid_t *tids;
    size_t tid_count, tid_room;
} sampled_process;

struct tare__stack_sampler {
    tare__stacks *stacks;
    void (*full)(void *context);
    void *context;
    sampled_process **processes;
    size_t process_count, process_room;
    uint32_t pass;
    uint32_t left_out, collecting; /* numbers of the two notes; 0: not used yet */
    tare__stack_counts counts;
    tare__text problems;
    uint32_t problem_count;
    struct tare__native *native; /* NULL: Python stacks only */
    uint64_t interval_ns;
    uint64_t first_ticks, first_ns; /* when it was drained first: the rate of the ticks */
};

/* ---- stacks.c ------------------------------------------------------------------------------------------------ */
sampled_process *tare__sampler_process_of(tare__stack_sampler *sampler, pid_t pid); /* NULL: no memory */
/* What was read of it is over: it has ended, or has become another program. */
void tare__sampler_let_go(sampled_process *process);
bool tare__sampler_open(tare__stack_sampler *sampler, sampled_process *process, uint64_t now_ns);
/* The thread with this id, or with this identity where the id is 0. NULL: no memory. */
sampled_thread *tare__sampler_thread(tare__stack_sampler *sampler, sampled_process *process,
                                     const tare__python_thread *read, size_t place);
uint32_t tare__sampler_push(tare__stack_sampler *sampler, sampled_process *process, uint32_t stack,
                            const tare__python_thread *read, uint32_t frame, int32_t line); /* 0: refused */
uint32_t tare__sampler_python_stack(tare__stack_sampler *sampler, sampled_process *process, sampled_thread *thread,
                                    const tare__python_thread *read);
uint32_t tare__sampler_collecting(tare__stack_sampler *sampler, uint32_t stack);
uint32_t tare__sampler_flags(const tare__python_thread *read);
/* Its wall time is that of a thread that is sampled for the first time. */
void tare__sampler_add(tare__stack_sampler *sampler, sampled_thread *thread, const tare__thread_now *now,
                       tare__stack_sample *sample, uint64_t now_ns);

/* ---- stacks_native.c ----------------------------------------------------------------------------------------- */
/* Whether the time up to now is left to the next sample taken while the thread runs. */
bool tare__sampler_defers(const tare__stack_sampler *sampler, sampled_thread *thread, const tare__thread_now *now,
                          const tare__stack_sample *begun, uint64_t now_ns);
/* The same of a thread that has events: `passed`: time since its last sample; `has_kernel`: also in the kernel. */
bool tare__sampler_is_early(const sampled_thread *thread, const tare__thread_now *now, uint64_t interval_ns,
                            uint64_t passed, bool has_kernel);
/* `now` was read at now_ns: makes it what the totals were at at_ns, when the thread ran. */
void tare__sampler_totals_at(const sampled_thread *thread, uint64_t interval_ns, uint64_t at_ns, uint64_t now_ns,
                             tare__thread_now *now);
/* The stack of a thread that waits: 0: none. */
uint32_t tare__sampler_blocked(tare__stack_sampler *sampler, sampled_process *process, sampled_thread *thread,
                               const tare__thread_now *now, const tare__python_thread *read);
/* The threads that run no Python code. */
void tare__sampler_native_threads(tare__stack_sampler *sampler, sampled_process *process,
                                  const tare__stack_sample *begun, uint64_t now_ns);

#endif
