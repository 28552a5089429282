/* collect: launches a program or serves one that runs, drains its rings, writes the trace.
 * One thread. Prints nothing: what a person should read comes back in the results.
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

/* What a status line shows, at each tick of the samplers. */
typedef struct tare__run_progress {
    uint64_t elapsed_ns;  /* since the launch, or since Tare looks on */
    uint64_t steps;       /* begun so far, of all threads; 0: none known */
    tare__sample_now now; /* NaN: absent */
} tare__run_progress;
typedef void tare__run_on_progress(void *context, const tare__run_progress *sync);

#define TARE__RUN_NO_SAMPLES UINT64_MAX /* as interval_ns */

typedef struct tare__run_options {
    const char *output;      /* NULL: named after the script */
    bool overwrite;          /* else train.2.tare, train.3.tare, … */
    bool readable_by_others; /* else the trace is mode 0600 */
    bool leave_children;     /* end with the direct child, whoever is still recording */
    uint64_t max_bytes;      /* 0: no limit */
    uint64_t last_ns;        /* 0: everything */
    uint64_t pool_bytes;     /* of a process; 0: the default */
    char *const *command;    /* NULL terminated, as for execvp */
    uint64_t interval_ns;    /* between samples; 0: the default; TARE__RUN_NO_SAMPLES */
    uint32_t samplers_left_out; /* bits, by their place in the table of samplers */
    double carbon_g_per_kwh; /* of the power used, as configured; 0: not said */
    bool roofline;           /* measure what the machine can do before anything runs */
    tare__run_on_progress *on_progress; /* NULL: nobody looks on */
    /* Called (if set) when the direct child has ended and others still record. */
    void (*on_waiting)(void *context, unsigned still_recording);
    void *context;
} tare__run_options;

typedef struct tare__run_result {
    bool launched;
    int exit_status;  /* 0..255; 128 + signal; 126 or 127 when it could not be launched */
    int signal;       /* that killed it; 0 */
    char trace[TARE__PATH_BYTES];
    uint64_t trace_bytes;
    uint64_t spans;   /* in the trace, of every kind but aggregates */
    uint64_t dropped_spans;
    uint32_t processes;     /* joined */
    uint32_t left_running;
    uint64_t elapsed_ns;
    uint64_t collector_cpu_ns;
    uint64_t sampler_cpu_ns; /* of these, spent sampling */
    uint64_t stretched_ns;   /* between samples at the longest, where the budget made it so; 0: as asked for */
    uint64_t child_user_ns, child_system_ns; /* the direct child and what it waited for, by the kernel's account */
    uint64_t child_peak_bytes; /* the largest resident set among these; 0: not known */
    bool oom_killed;         /* the kernel killed a process of the run for want of memory */
    bool still_running;      /* attach: it was left running */
    int trace_fd;           /* the open trace, to be closed by the caller; 0: none */
    mode_t trace_mode;
    bool lost;              /* the trace has no name any more: only trace_fd has it */
    char moved[512];        /* a sentence when its name was taken during the run; "" */
    char trouble[512];      /* a sentence when the trace is not whole (disk full, …); "" */
    char folder[TARE__PATH_BYTES]; /* of the session, when it could not be removed; "" */
} tare__run_result;

/* Runs a command to its end and writes the trace. 0 when the command was launched (its status is in the
 * result) or could not be (126, 127: result->exit_status and a sentence); a negative status when Tare itself
 * failed before launching it. */
int tare__run(const tare__run_options *options, tare__run_result *result, tare__error *error);
/* Makes sure that result->trace names the trace of this run and not that of another one that took the name meanwhile:
 * result->moved has a sentence if it was moved or copied, result->lost is set if it has no name any more. */
void tare__run_keep(tare__run_result *result);

typedef struct tare__attach_options {
    pid_t pid;
    const char *output;      /* NULL: named after the process's script */
    bool overwrite, readable_by_others;
    uint64_t max_bytes, last_ns; /* as for run */
    uint64_t for_ns;         /* ends by itself after this; 0: does not */
    uint64_t interval_ns;    /* 0: the default */
    uint32_t samplers_left_out;
    double carbon_g_per_kwh;
    tare__run_on_progress *on_progress;
    void *context;           /* of on_progress */
} tare__attach_options;

/* Looks at a process that runs already, and at its children, until it ends or SIGINT, SIGTERM or SIGHUP comes.
 * 0 when the trace was written, whatever became of the process; a negative status with a sentence otherwise.
 * The exit status of a process that is not ours is not known: result->exit_status is 0. */
int tare__attach(const tare__attach_options *options, tare__run_result *result, tare__error *error);

/* Names in this environment the libraries that record the operators of frameworks in what is launched. True: one at
 * least. `why` has a sentence when one is not. */
bool tare__inject_operators(tare__error *why);

/* The machine and what is worked on, as fields of the RUN block. */
void tare__tell_environment(tare__text *fields);

/* The output's name for a command: "train.tare" of python train.py. */
void tare__run_name(char *const *command, char out[TARE__PATH_BYTES]);

/* How the helper looks at the program; the rest comes with the program's request. */
typedef struct tare__serve_options {
    uint64_t interval_ns; /* between samples; 0: the default; TARE__RUN_NO_SAMPLES */
    uint32_t samplers_left_out;
    double carbon_g_per_kwh;
} tare__serve_options;

/* The helper behind tare_start: serves the process at the other end of this socket until it stops or dies. `trace` is
 * the file that was written; "": none was. */
/* Tells the program at the other end why it is not served. */
void tare__serve_refuse(int socket, int status, const tare__error *error);
int tare__serve_process(int socket, const tare__serve_options *options, char trace[TARE__PATH_BYTES],
                        tare__error *error);

typedef struct tare__salvaged {
    char trace[TARE__PATH_BYTES];
    uint64_t spans;       /* that were still in memory and are now in the trace */
    bool still_recording; /* a collector is alive: nothing was touched */
    bool finished;        /* all of it was in the trace already */
    bool noted;           /* in the folder, that all of it is in the trace that it names: it may go */
    bool killed;          /* else it ended by itself, but could not read some of its rings */
    uint32_t alive;       /* recorded processes that still run */
    uint32_t unread_rings; /* that could not be read; they stay where they are */
    uint64_t damaged_blocks, damaged_bytes; /* of the trace, stepped over */
} tare__salvaged;

/* Finishes the trace of a session whose collector was killed: what is left in the rings of `folder` is appended to
 * `trace` (NULL: the file that the session names), if that is this session's. Removes nothing and changes nothing in
 * the folder. 0 or a status. */
int tare__salvage(const char *folder, const char *trace, tare__salvaged *result, tare__error *error);

/* ---- session folders that killed collectors of this user left behind ------------------------------------- */
typedef enum tare__leftover_state {
    TARE__LEFTOVER_UNSAVED, /* its data are not yet, or not all, in the trace that it names */
    TARE__LEFTOVER_NO_TRACE, /* that trace does not exist: it was removed or renamed */
    TARE__LEFTOVER_SAVED,   /* all of it is in its trace */
    TARE__LEFTOVER_ALIVE,   /* a recorded process is still running */
    TARE__LEFTOVER_DAMAGED, /* its session page cannot be read: nothing can be saved */
    TARE__LEFTOVER_PART     /* it has no session page: rings, of a session that may be elsewhere and alive */
} tare__leftover_state;

typedef struct tare__leftover {
    char path[TARE__PATH_BYTES], fallback[TARE__PATH_BYTES], trace[TARE__PATH_BYTES];
    tare__leftover_state state;
    time_t at;      /* last changed */
    uint64_t bytes; /* that it occupies */
    char why[256];  /* the page cannot be read */
} tare__leftover;

/* Every one there is in the places where sessions go; nothing is changed. */
typedef void tare__leftover_sink(void *context, const tare__leftover *leftover);
void tare__leftovers_visit(tare__leftover_sink *sink, void *context);
/* Removes one, if it is provably a session folder of this user (own.c). */
bool tare__leftover_remove(const tare__leftover *leftover);
bool tare__leftover_removable(const tare__leftover *leftover); /* whether it would be */
/* Saves what is left in one to the trace that it names, as tare__salvage does. 0: all of it is there now, and the state
 * is TARE__LEFTOVER_SAVED; else a status and the reason. */
int tare__leftover_save(tare__leftover *leftover, tare__error *error);

typedef struct tare__tidied {
    unsigned saved;           /* to their traces just now, and removed */
    uint64_t saved_bytes;     /* that these held */
    unsigned unsavable;       /* that stay: without a trace, or saving failed */
    uint64_t unsavable_bytes; /* that these hold */
} tare__tidied;

/* Removes those whose data are all in their traces. Saves first what is older than a day, and the oldest while all of
 * them hold too much memory. `sink` (NULL: none) gets those that stay
 * and could be saved. `memory_only`: of those in /dev/shm
 * that can be saved; quicker. */
void tare__leftovers_tidy(bool memory_only, tare__leftover_sink *sink, void *context, tare__tidied *result);
/* Whether /dev/shm is so full that leftovers may be the reason: one system call. */
bool tare__leftovers_press(void);

/* What recording itself needs, tried for real: a session's folder, and the clock. */
void tare__collect_doctor(tare__sample_check_sink *sink, void *context);

#endif
