/* state: what a thread of another process is doing, as the kernel has it: running, ready, or waiting and for what.
 * One thread owns a reader. Must not know Python, or what the answers are used for. */
#ifndef TARE_SAMPLE_STATE_H
#define TARE_SAMPLE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"

typedef struct tare__thread_reader tare__thread_reader; /* keeps descriptors of one thread, where there are enough */
tare__thread_reader *tare__thread_open(pid_t pid, pid_t tid); /* NULL: out of memory */
void tare__thread_close(tare__thread_reader *reader); /* NULL is allowed */

typedef struct tare__thread_now {
    tare__thread_state state; /* waiting for the GIL is TARE__STATE_LOCK here: only Python knows the difference */
    int64_t system_call;      /* number; -1: none or unknown */
    uint64_t stack, code;     /* stack pointer and next instruction of one that waits in a system call; 0: unknown */
    bool same;                /* it has not run since the last read */
    uint64_t lock;            /* address of the futex waited on; 0: none */
    uint64_t cpu_ns, queue_ns; /* totals of the thread */
    bool known;               /* false: the totals cannot be read (kernel without schedstat) */
} tare__thread_now;
/* False: the thread has ended. */
bool tare__thread_read(tare__thread_reader *reader, tare__thread_now *now);
/* The same for a thread that is read again and again, for less: one that is ready is RUNNING or RUNNABLE as often as
 * the counters say, not necessarily at this read, and the totals are estimated for up to 50 ms while it is on or
 * waiting for a CPU all the time. `ran`: it certainly ran a moment ago. */
bool tare__thread_glance(tare__thread_reader *reader, uint64_t now_ns, bool ran, tare__thread_now *now);
const char *tare__system_call_name(int64_t number); /* "epoll_wait"; NULL: unknown */

#endif
