/* state_wait: shared by the files that find out what a thread of another process waits for.
 * One thread owns the caches. Must not know when a thread is read, nor whether it runs. */
#ifndef TARE_SAMPLE_STATE_WAIT_H
#define TARE_SAMPLE_STATE_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/format.h"

/* ---- state_calls.c ---------------------------------------------------------------------------------------------- */
typedef enum tare__wait_kind {
    TARE__WAIT_OTHER,
    TARE__WAIT_FUTEX,      /* address, operation */
    TARE__WAIT_FUTEXES,    /* array of addresses */
    TARE__WAIT_SLEEP,
    TARE__WAIT_CHILD,
    TARE__WAIT_SPAWN,      /* vfork waits until the child executes another program */
    TARE__WAIT_DESCRIPTOR, /* the first argument is a descriptor */
    TARE__WAIT_TWO,        /* … and another one is, too */
    TARE__WAIT_POLL,
    TARE__WAIT_SELECT,
    TARE__WAIT_EPOLL,
    TARE__WAIT_DISK,
    TARE__WAIT_OPEN,       /* for the disk, or for the other end of a FIFO */
    TARE__WAIT_MEMORY,     /* for the disk, or for other threads that change the address space */
    TARE__WAIT_LOCK,
    TARE__WAIT_FCNTL,      /* may be a lock of a file */
    TARE__WAIT_MESSAGE,
    TARE__WAIT_RESTART     /* another call, after a signal */
} tare__wait_kind;
tare__wait_kind tare__wait_kind_of(int64_t number);
int64_t tare__system_call_number(const char *name); /* -1: unknown */

/* ---- state_wait.c ----------------------------------------------------------------------------------------------- */
#define TARE__CALL_NONE (-1)
typedef struct tare__call {
    int64_t number; /* TARE__CALL_NONE: not in a system call */
    uint64_t arguments[6], stack, code; /* code: address of the next instruction */
} tare__call;

typedef struct tare__descriptor { /* of the other process */
    int fd;
    uint8_t kind;
    char link[56]; /* what /proc/PID/fd/N said; identifies sockets and pipes */
} tare__descriptor;

#define TARE__DESCRIPTORS_KEPT 16
typedef struct tare__waiting {
    pid_t pid, tid;
    tare__descriptor kept[TARE__DESCRIPTORS_KEPT]; /* at fd modulo the number; fd + 1 there, 0: free */
    int epoll;                                     /* whose descriptors are known; -1: none */
    uint64_t epoll_until_ns;
    uint32_t epoll_kinds; /* bits */
    size_t epoll_count;
    uint64_t many_until_ns; /* the answer of a call with several descriptors is kept */
    int64_t last_number;  /* of the last call that was not restart_syscall */
    uint64_t last_arguments[6], last_stack;
} tare__waiting;

void tare__waiting_start(tare__waiting *waiting, pid_t pid, pid_t tid);
/* What a thread in this call waits for; *lock: the address of the futex, 0: none. *number: of the call that was
 * restarted. */
tare__thread_state tare__waiting_state(tare__waiting *waiting, const tare__call *call, int64_t *number,
                                       uint64_t *lock);
/* This call, made again with the same arguments, has the same answer: its descriptors were looked at a moment ago. */
bool tare__waiting_is_known(const tare__waiting *waiting, int64_t number);

typedef struct tare__task_stat {
    char letter; /* R, S, D, T, …; '\0': the file cannot be read */
    uint64_t start_time; /* clock ticks since boot */
    int cpu; /* the last one; -1: unknown */
} tare__task_stat;
/* From a text of /proc/PID/task/TID/stat of `bytes` bytes, not positive: none. */
tare__task_stat tare__task_stat_of(const char *text, int bytes);
tare__task_stat tare__waiting_stat(const tare__waiting *waiting);

#endif
