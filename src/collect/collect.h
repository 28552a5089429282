/* collect: launches a program or serves one that runs, drains its rings, writes the trace.
 * One thread. Prints nothing: messages for the user are returned in the results.
 * Must not know analysis, nor how anything is shown. */
#ifndef TARE_COLLECT_H
#define TARE_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/base.h"
#include "format/format.h"
#include "sample/sample.h"

/* Values for the status line, at each tick of the samplers. */
typedef struct tare__run_progress {
    uint64_t elapsed_ns;  /* since the launch, or since attaching */
    uint64_t steps;       /* begun so far, of all threads; 0: unknown */
    tare__sample_now now; /* NaN: absent */
} tare__run_progress;
typedef void tare__run_on_progress(void *context, const tare__run_progress *sync);

#define TARE__RUN_NO_SAMPLES UINT64_MAX /* as interval_ns, stack_interval_ns */
#define TARE__STACK_INTERVAL_NS 10000000u

/* What every kind of recording has: of a launched command, of a running process, and by the helper of tare_start. */
typedef struct tare__record_options {
    const char *output;      /* NULL: named after the script */
    bool overwrite;          /* else train.2.tare, train.3.tare, … */
    bool readable_by_others; /* else the trace is mode 0600 */
    uint64_t max_bytes;      /* 0: no limit */
    uint64_t last_ns;        /* 0: everything */
    uint64_t interval_ns;    /* sampling interval; 0: the default; TARE__RUN_NO_SAMPLES */
    uint32_t samplers_left_out; /* bits, by index in the table of samplers */
    bool native_stacks;
    uint64_t stack_interval_ns; /* of call stacks; 0: the default; TARE__RUN_NO_SAMPLES */
    double carbon_g_per_kwh; /* grid carbon intensity, as configured; 0: not set */
    tare__run_on_progress *on_progress; /* NULL: no status line */
    void *context;           /* of the callbacks */
} tare__record_options;

typedef struct tare__run_options {
    tare__record_options record;
    bool leave_children;     /* exit with the direct child, even if others still record */
    uint64_t pool_bytes;     /* of one process; 0: the default */
    char *const *command;    /* NULL terminated, as for execvp */
    bool roofline;           /* measure the machine's peak performance before the launch */
    /* Called (if set) when the direct child has exited and others still record. */
    void (*on_waiting)(void *context, unsigned still_recording);
} tare__run_options;

typedef struct tare__run_result {
    bool launched;
    int exit_status;  /* 0..255; 128 + signal; 126 or 127 when it could not be launched */
    int signal;       /* signal that killed it; 0 */
    char trace[TARE__PATH_BYTES];
    uint64_t trace_bytes;
    uint64_t spans;   /* in the trace, of every kind but aggregates */
    uint64_t dropped_spans;
    uint32_t processes;     /* joined */
    uint32_t left_running;
    uint64_t elapsed_ns;
    uint64_t collector_cpu_ns;
    uint64_t sampler_cpu_ns; /* of these, spent sampling */
    uint64_t stretched_ns;   /* longest sampling interval, if it was increased to limit overhead; 0: as requested */
    uint64_t child_user_ns, child_system_ns; /* the direct child and the children it waited for, as reported by the
                                              * kernel */
    uint64_t child_peak_bytes; /* largest resident set of one of these; 0: unknown */
    bool oom_killed;         /* the kernel killed a process of the run: out of memory */
    int trace_fd;           /* the open trace, to be closed by the caller; 0: none */
    mode_t trace_mode;
    bool lost;              /* the trace has no name any more: only trace_fd refers to it */
    char moved[512];        /* message if its name was taken during the run; "" */
    char problem[512];      /* message if the trace is incomplete (disk full, …); "" */
    char warnings[1024];    /* processes and threads without the stacks that were wanted: one sentence per line; "" */
    char folder[TARE__PATH_BYTES]; /* of the session, if it could not be removed; "" */
} tare__run_result;

/* Runs a command to its end and writes the trace. 0 if the command was launched (its status is in the result) or
 * could not be (126, 127: result->exit_status and a message); a negative status if Tare itself failed before
 * launching it. */
int tare__run(const tare__run_options *options, tare__run_result *result, tare__error *error);
/* Ensures that result->trace names the trace of this run and not that of another one that took the name in the
 * meantime: result->moved has a message if it was moved or copied, result->lost is set if it has no name any more. */
void tare__run_keep(tare__run_result *result);

typedef struct tare__attach_options {
    tare__record_options record;
    pid_t pid;
    uint64_t for_ns; /* stop after this time; 0: no limit */
} tare__attach_options;

/* Samples a running process and its children until it ends or SIGINT, SIGTERM or SIGHUP arrives. 0 if the trace was
 * written, whatever became of the process; otherwise a negative status with a message. The exit status of a process
 * that is not a child is unknown: result->exit_status is 0. */
int tare__attach(const tare__attach_options *options, tare__run_result *result, tare__error *error);

/* Sets in this environment the libraries that record the operators of frameworks in launched programs. True: at
 * least one. `why` has a message for one that is not set. */
bool tare__inject_operators(tare__error *why);

/* Machine and working directory, as fields of the RUN block. */
void tare__tell_environment(tare__text *fields);

/* The output's name for a command: "train.tare" of python train.py. */
void tare__run_name(char *const *command, char out[TARE__PATH_BYTES]);

/* Sampling options of the helper; the rest comes with the program's request. */
/* The helper of tare_start: serves the process at the other end of this socket until it stops or dies. `trace` is
 * the file that was written; "": none. */
/* Sends the reason of a failure to the program at the other end. */
void tare__serve_refuse(int socket, int status, const tare__error *error);
int tare__serve_process(int socket, const tare__record_options *options, char trace[TARE__PATH_BYTES],
                        tare__error *error);

typedef struct tare__salvaged {
    char trace[TARE__PATH_BYTES];
    uint64_t spans;       /* that were still in memory and have been added to the trace */
    bool still_recording; /* a collector is alive: nothing was changed */
    bool finished;        /* the trace was already complete */
    bool noted;           /* the folder is marked as completely saved in its trace and may be removed */
    bool killed;          /* otherwise it ended by itself, but could not read some of its rings */
    uint32_t alive;       /* recorded processes that are still running */
    uint32_t unread_rings; /* that could not be read; they are kept */
    uint64_t damaged_blocks, damaged_bytes; /* of the trace, skipped */
} tare__salvaged;

/* Completes the trace of a session whose collector was killed: the remaining events in the rings of `folder` are
 * appended to `trace` (NULL: the file that the session names), if it belongs to this session. Removes nothing and
 * changes nothing in the folder. 0 or a status. */
int tare__salvage(const char *folder, const char *trace, tare__salvaged *result, tare__error *error);

/* ---- session folders left by killed collectors of this user ----------------------------------------------- */
typedef enum tare__leftover_state {
    TARE__LEFTOVER_UNSAVED, /* its data are not, or not all, in its trace */
    TARE__LEFTOVER_NO_TRACE, /* its trace does not exist: it was removed or renamed */
    TARE__LEFTOVER_SAVED,   /* all of it is in its trace */
    TARE__LEFTOVER_ALIVE,   /* a recorded process is still running */
    TARE__LEFTOVER_DAMAGED, /* its session page cannot be read: nothing can be saved */
    TARE__LEFTOVER_PART     /* it has no session page: rings of a session that may be elsewhere and alive */
} tare__leftover_state;

typedef struct tare__leftover {
    char path[TARE__PATH_BYTES], fallback[TARE__PATH_BYTES], trace[TARE__PATH_BYTES];
    tare__leftover_state state;
    time_t at;      /* last changed */
    uint64_t bytes; /* allocated */
    char why[256];  /* the page cannot be read */
} tare__leftover;

/* All of them, in the places where session folders are created; nothing is changed. */
typedef void tare__leftover_sink(void *context, const tare__leftover *leftover);
void tare__leftovers_visit(tare__leftover_sink *sink, void *context);
/* Removes one, if it is verified as a session folder of this user (own.c). */
bool tare__leftover_remove(const tare__leftover *leftover);
bool tare__leftover_removable(const tare__leftover *leftover); /* whether it would be removed */
/* Saves the remaining events of one to its trace, as tare__salvage does. 0: the trace is complete, and the state is
 * TARE__LEFTOVER_SAVED; otherwise a status and the reason. */
int tare__leftover_save(tare__leftover *leftover, tare__error *error);

typedef struct tare__tidied {
    unsigned saved;           /* saved to their traces and removed */
    uint64_t saved_bytes;     /* bytes that these held */
    unsigned unsavable;       /* kept: without a trace, or saving failed */
    uint64_t unsavable_bytes; /* bytes that these hold */
} tare__tidied;

/* Removes those whose data are all in their traces. First saves those older than a day, and the oldest while all of
 * them hold too much memory. `sink` (NULL: none) gets those that are kept and could be saved. `memory_only`: only
 * those in /dev/shm that can be saved; faster. */
void tare__leftovers_tidy(bool memory_only, tare__leftover_sink *sink, void *context, tare__tidied *result);
/* Whether /dev/shm is so full that leftover folders may be the reason: one system call. */
bool tare__leftovers_press(void);

/* Tests what recording requires: a session folder, and the clock. */
void tare__collect_doctor(tare__sample_check_sink *sink, void *context);

#endif
