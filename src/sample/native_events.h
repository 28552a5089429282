/* native_events: samples of the registers and stacks of threads while they run, from the kernel's performance events.
 * One thread owns them. Threads and processes that a sampled thread starts are sampled, too.
 * Must not know how stacks are unwound, or what samples are used for. */
#ifndef TARE_SAMPLE_NATIVE_EVENTS_H
#define TARE_SAMPLE_NATIVE_EVENTS_H

#include "base/base.h"
#include "unwind.h"

typedef struct tare__native_events tare__native_events;

typedef struct tare__native_sample {
    pid_t pid, tid;
    uint32_t cpu;
    uint64_t ns;                /* when it was taken, on the monotonic clock */
    tare__unwind_regs regs;     /* known 0: the thread has no user mode */
    const unsigned char *stack; /* from the stack pointer on */
    size_t stack_bytes;
    const uint64_t *kernel;     /* return addresses in the kernel, innermost first */
    uint32_t n_kernel;
} tare__native_sample;

typedef struct tare__native_sink {
    void (*sample)(void *context, const tare__native_sample *sample);
    void (*exec)(void *context, pid_t pid); /* the process runs another program now */
    void *context;
} tare__native_sink;

typedef struct tare__native_losses {
    uint64_t records; /* buffers were full */
    uint32_t threads; /* threads without events: no descriptors left */
} tare__native_losses;

/* A sample of a thread each time it has run for `interval_ns`. TARE_E_PERMISSION, TARE_E_SYSTEM or TARE_E_MEMORY, with
 * the reason and what to change. */
int tare__native_events_open(uint64_t interval_ns, tare__native_events **events, tare__error *error);
void tare__native_events_close(tare__native_events *events); /* NULL is allowed */
/* From now on this thread, and all that it starts. 0; TARE_E_SPACE: no descriptors left; TARE_E_PERMISSION: not this
 * thread; TARE_E_SYSTEM: it has ended. */
int tare__native_events_add(tare__native_events *events, pid_t tid);
/* A descriptor that is readable when there are samples. */
int tare__native_events_descriptor(const tare__native_events *events);
/* In the order of their times. */
void tare__native_events_drain(tare__native_events *events, const tare__native_sink *sink);
bool tare__native_events_has_kernel(const tare__native_events *events);
tare__native_losses tare__native_events_losses(const tare__native_events *events);

/* perf_event_open; tests replace it. */
struct perf_event_attr;
typedef long tare__native_open_function(struct perf_event_attr *attributes, pid_t pid, int cpu, int group,
                                        unsigned long flags);
extern tare__native_open_function *tare__native_open;

#endif
