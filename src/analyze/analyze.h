/* analyze: from a trace's cursor to tables. Pure and streaming; owned by the calling thread.
 * Everything a result points to lives in its arena until it is freed.
 * Must not know output formats, nor print. */
#ifndef TARE_ANALYZE_H
#define TARE_ANALYZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "tare.h"

struct tare__trace;

/* What is absent is NaN in a double and NULL in a pointer, never 0 or "". Times are nanoseconds; instants
 * (`…_at_ns`) count from the start of the run. Names are UTF-8 as recorded, NUL terminated. */

typedef enum tare__by {
    TARE__BY_RUN = 0,     /* all threads merged by path */
    TARE__BY_PROCESS = 1, /* a group of spans, steps and epochs for each process */
    TARE__BY_THREAD = 2   /* … for each thread */
} tare__by;

typedef struct tare__analyze_options {
    tare__by by;
} tare__analyze_options;

#define TARE__NO_ROW UINT32_MAX

/* ---- what rows have in common -------------------------------------------------------------------- */
typedef struct tare__durations {
    double min_ns, mean_ns, max_ns;
    double p50_ns, p95_ns, p99_ns;
} tare__durations;

/* A number attached to spans: samples, tokens, bytes, … */
typedef struct tare__number_row {
    const char *name;
    uint64_t n; /* values added up */
    double sum;
    double rate; /* sum per second of the total time of the spans it is attached to; NaN when that is 0 */
} tare__number_row;

/* ---- the run ------------------------------------------------------------------------------------- */
typedef struct tare__run_table {
    const char *const *arguments; /* of the command; n_arguments may be 0 in a damaged file */
    size_t n_arguments;
    const char *command;   /* the same in one line; NULL when not known, as the following */
    const char *host;
    const char *directory;
    const char *writer;    /* "tare 0.1.0" */
    const char *cpu_model;
    const char *folder;    /* of an unfinished file: the session folder it may be salvaged from */
    uint32_t cpus;         /* 0: not known */
    uint64_t start_realtime_ns; /* since 1970; 0: not known */
    double elapsed_ns;     /* to the end, or to the last thing recorded when the file is unfinished */
    bool finished;         /* it has its END block */
    bool salvaged;         /* finished by a later command after the collector was killed */
    bool clock_known;      /* else "nanoseconds" are ticks of an unknown length, and a note says so */
    int status;            /* exit status as `tare run` returned it; -1: not known */
    int signal;            /* that ended the program; 0: none or not known */
    uint64_t spans;        /* read: nested and complete */
    uint64_t dropped_spans, dropped_others; /* all threads, and those that never got a chunk */
    uint64_t rotated_spans;     /* taken out by --max-size or --last */
    double rotated_before_at_ns; /* what lies before is not complete; NaN: nothing was taken out */
    uint64_t refused_space, refused_abi, refused_system, refused_copy; /* processes that could not join */
    uint64_t left_running; /* recorded processes still running when it ended */
    const char *write_error; /* a sentence; NULL: none */
    uint64_t damaged_blocks, damaged_bytes, damaged_spans; /* spans: as far as their headers could be read */
    uint64_t unknown_blocks;
    uint64_t names_refused; /* names that found no room in a process's table */
    const char *const *notes; /* sentences on what is missing or was folded, most important first */
    size_t n_notes;
} tare__run_table;

/* ---- span tree: depth first, siblings by total descending ---------------------------------------- */
/* Rows of one process or thread; none when analyzed BY_RUN. By total descending. */
typedef struct tare__group_row {
    const char *name;     /* of the process or thread, for people */
    uint32_t process;     /* row in processes; TARE__NO_ROW when the file does not say */
    uint32_t thread;      /* row in threads; TARE__NO_ROW when BY_PROCESS */
    uint32_t first_row, n_rows; /* in spans */
    double total_ns;      /* of its top-level rows */
} tare__group_row;

typedef struct tare__span_row {
    const char *name;
    const char *file;  /* of the call site; NULL when not known */
    uint32_t line;
    uint32_t kind;     /* tare_kind: SPAN, STEP, EPOCH; 0: "(others)", the spans folded into one row */
    uint32_t group;    /* row in groups; TARE__NO_ROW when BY_RUN */
    uint32_t parent;   /* row; TARE__NO_ROW at the top */
    uint32_t depth;    /* 0 at the top */
    uint32_t n_rows;   /* rows below it, all levels: the next sibling is at index + 1 + n_rows */
    uint64_t calls;
    uint64_t still_open; /* of the calls: open at the end, counted up to there */
    uint64_t end_lost;   /* … whose end is not known, counted up to where it was noticed */
    uint64_t left_open;  /* … closed by the end of a span around them */
    double total_ns;     /* as measured */
    double self_ns;      /* total less direct children less the recorder's own cost; never below 0 */
    double raw_self_ns;  /* total less direct children */
    double share;        /* total over the sum of totals of all top-level rows; NaN when that is 0 */
    tare__durations each;
    const tare__number_row *numbers;
    size_t n_numbers;
} tare__span_row;

/* ---- steps and epochs ---------------------------------------------------------------------------- */
typedef struct tare__slow_step {
    double duration_ns;
    double start_at_ns;
    uint64_t index;
    bool has_index;
    uint32_t thread; /* row in threads */
} tare__slow_step;

/* Interval of a quantile, 95 % by order statistics. */
typedef struct tare__step_interval {
    double low_ns, high_ns; /* NaN when there are too few steps, or too many to keep each */
    uint64_t needed;        /* too few: how many would do; else 0 */
} tare__step_interval;

#define TARE__SLOWEST 5

typedef struct tare__step_row {
    const char *name;
    uint32_t group;      /* row in groups; TARE__NO_ROW when BY_RUN */
    uint64_t count;      /* finished ones; the figures are of these */
    uint64_t unfinished; /* open at the end, or end lost */
    double total_ns;
    tare__durations each;
    bool exact;          /* quantiles of all durations; else of a histogram, off by at most 0.4 % */
    tare__step_interval p50, p95;
    double per_second;   /* count over the time from the first start to the last end; NaN when that is 0 */
    double first_ns;     /* the earliest step … */
    double rest_p50_ns;  /* … and the median of all others; NaN when there are none */
    tare__slow_step slowest[TARE__SLOWEST]; /* slowest first */
    size_t n_slowest;
    const tare__number_row *numbers; /* attached to it or to spans inside; rates per second of its total */
    size_t n_numbers;
} tare__step_row;

/* ---- the rest ------------------------------------------------------------------------------------ */
typedef struct tare__aggregate_row { /* by total descending */
    const char *name, *file; /* file: NULL when not known */
    uint32_t line;
    uint32_t every;    /* one in so many is timed; 1: all */
    uint64_t calls, timed;
    bool estimated;    /* timed < calls: total is the mean of the timed ones times calls */
    double total_ns;   /* NaN when none was timed */
    tare__durations each;
} tare__aggregate_row;

typedef struct tare__counter_row { /* by name */
    const char *name;
    uint64_t n;
    double first, last, min, mean, max;
    double first_at_ns, last_at_ns;
} tare__counter_row;

typedef struct tare__mark_row { /* by first time */
    const char *name;
    uint64_t n;
    double first_at_ns, last_at_ns;
} tare__mark_row;

typedef struct tare__track_row { /* tracks by total descending, then names by total descending */
    const char *track;    /* "" for spans on their recording thread */
    uint32_t track_kind;  /* tare_track_kind; 0: recording thread */
    const char *name;
    uint64_t calls;
    double total_ns;
    double self_ns;       /* = total: complete spans do not nest */
    tare__durations each;
    uint64_t flows;       /* of the calls: part of a flow */
    uint64_t children;    /* … that name a parent */
} tare__track_row;

typedef struct tare__process_row { /* in order of appearance */
    uint32_t number;          /* in the file */
    int64_t pid, parent_pid;  /* 0: not known */
    int64_t inner_pid;        /* as it sees itself, where that differs; else 0 */
    const char *command;      /* one line; NULL when not known */
    bool joined;
    const char *not_joined;   /* a sentence: why it was only seen; NULL when it joined */
    const char *unreadable;   /* a sentence: why its ring could not be read (on); NULL: it could */
    double joined_at_ns, left_at_ns; /* NaN: not known */
    bool has_exit_status;
    int exit_status;          /* as of wait() */
    uint32_t threads;
    uint64_t spans, dropped_spans, dropped_others; /* dropped: by its threads and homeless ones */
    double busy_ns;
} tare__process_row;

typedef struct tare__thread_row { /* by process, then in order of appearance */
    uint32_t process;      /* row in processes; TARE__NO_ROW when the file does not say */
    uint32_t stream;       /* in the file */
    int64_t tid;           /* 0: not known */
    const char *name;      /* NULL when not known */
    uint64_t spans, events;
    double busy_ns;        /* its top-level spans */
    double first_at_ns, last_at_ns; /* NaN when nothing of it was read */
    uint64_t dropped_spans, dropped_others;
    uint64_t unmatched_ends; /* ends of spans that were not open */
    uint64_t lost_ends;      /* ends that found no room */
    uint64_t lost_blocks;    /* known to be missing by their ordinals */
    uint64_t skipped_slots;
} tare__thread_row;

/* ---- the tare line ------------------------------------------------------------------------------- */
typedef struct tare__own_table {
    uint64_t spans, chained_spans; /* by begin and end; by next */
    uint64_t marks, counters, numbers, complete_spans;
    uint64_t aggregate_calls, aggregate_timed;
    double pair_ns, inner_ns, next_ns, aggregate_ns; /* NaN: not calibrated */
    double own_ns;       /* the recorder's time in the program: events times their cost; NaN: not known */
    double taken_off_ns; /* of that, taken off self times */
    double collector_cpu_ns; /* NaN: the file has no end */
    double recorded_ns;  /* of all threads, from the first event of each to its last */
    double share;        /* own_ns of recorded_ns; NaN when either is not known */
} tare__own_table;

typedef struct tare__analysis {
    tare__run_table run;
    tare__own_table own;
    const tare__group_row *groups;
    size_t n_groups;
    const tare__span_row *spans;
    size_t n_spans;
    const tare__step_row *steps; /* names of kind STEP */
    size_t n_steps;
    const tare__step_row *epochs;
    size_t n_epochs;
    const tare__aggregate_row *aggregates;
    size_t n_aggregates;
    const tare__counter_row *counters;
    size_t n_counters;
    const tare__mark_row *marks;
    size_t n_marks;
    const tare__track_row *tracks;
    size_t n_tracks;
    const tare__process_row *processes;
    size_t n_processes;
    const tare__thread_row *threads;
    size_t n_threads;
    tare__arena *arena; /* private */
} tare__analysis;

/* Reads the whole trace (rewinding it) into tables. 0; TARE_E_MEMORY or TARE_E_SYSTEM with a sentence. Damage
 * is no failure: it is told in run.notes. */
int tare__analyze(struct tare__trace *trace, const tare__analyze_options *options, tare__analysis **analysis,
                  tare__error *error);
void tare__analysis_free(tare__analysis *analysis); /* NULL is fine */

#endif
