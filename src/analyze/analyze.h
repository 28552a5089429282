/* analyze: converts a trace, read through its cursor, to tables. Pure and streaming; owned by the calling thread.
 * Everything a result points to lives in its arena until it is freed.
 * Must not know output formats, nor print. */
#ifndef TARE_ANALYZE_H
#define TARE_ANALYZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "format/format.h"
#include "tare.h"

struct tare__trace;

/* An absent value is NaN in a double and NULL in a pointer, never 0 or "". Times are nanoseconds; instants
 * (`…_at_ns`) count from the start of the run. Names are UTF-8 as recorded, NUL terminated. */

typedef enum tare__by {
    TARE__BY_RUN = 0,     /* all threads merged by path */
    TARE__BY_PROCESS = 1, /* a group of spans, steps and epochs for each process */
    TARE__BY_THREAD = 2   /* … for each thread */
} tare__by;

typedef struct tare__analyze_options {
    tare__by by;
    const struct tare__rules *rules; /* user rules; NULL: none */
    bool samples; /* keep samples of spans, operators, kernels and counters, for figures; BY_RUN only */
    struct tare__stack_filter *stacks; /* tables of stacks only of these samples; findings are of all. NULL: all */
} tare__analyze_options;

#define TARE__NO_ROW UINT32_MAX

/* ---- fields common to rows ----------------------------------------------------------------------- */
typedef struct tare__durations {
    double min_ns, mean_ns, max_ns;
    double p50_ns, p95_ns, p99_ns;
} tare__durations;

/* A number attached to spans: samples, tokens, bytes, … */
typedef struct tare__number_row {
    const char *name;
    uint64_t n; /* values added up */
    double sum;
    double rate; /* sum per second of the calls that carry it; NaN when their time is 0. For steps: of the job, over
                  * the time in all steps; what threads and ranks do concurrently is added up */
    bool estimated;     /* measured in the inspected steps, divided by the mean duration of the others */
    uint64_t inspected; /* number of inspected steps */
} tare__number_row;

/* ---- the run ------------------------------------------------------------------------------------- */
typedef struct tare__run_table {
    const char *const *arguments; /* of the command; n_arguments is 0 in some damaged files */
    size_t n_arguments;
    const char *command;   /* the same in one line; NULL: not known, as for the following fields */
    const char *host;
    const char *directory;
    const char *writer;    /* "tare 0.1.0" */
    const char *cpu_model;
    const char *folder;    /* of an unfinished file: the session folder that it can be salvaged from */
    uint32_t cpus;         /* 0: not known */
    const char *kernel, *system, *revision, *gpus; /* NULL: not known */
    double memory_bytes;   /* of the machine; NaN: not known */
    tare__peaks peaks;          /* measured peak rates of the machine; NaN: not measured */
    int64_t attached;      /* pid of the process that was attached to; 0: the program was launched */
    bool oom_killed;       /* the kernel killed one of its processes: out of memory */
    uint64_t start_realtime_ns; /* since 1970; 0: not known */
    double elapsed_ns;     /* to the end, or to the last recorded event when the file is unfinished */
    bool finished;         /* the file has an END block */
    bool salvaged;         /* finished by a later command after the collector was killed */
    bool clock_known;      /* else "nanoseconds" are ticks of an unknown length, and a note says so */
    int status;            /* exit status as `tare run` returned it; -1: not known */
    int signal;            /* that ended the program; 0: none or not known */
    uint64_t spans;        /* read: nested and complete */
    uint64_t dropped_spans, dropped_others; /* all threads, and those that never got a chunk */
    uint64_t rotated_spans;     /* removed by --max-size or --last */
    double rotated_before_at_ns; /* data before this instant is incomplete; NaN: nothing was removed */
    uint64_t refused_space, refused_abi, refused_system, refused_copy; /* processes that could not join */
    uint64_t left_running; /* recorded processes still running when it ended */
    const char *write_error; /* a sentence; NULL: no error */
    uint64_t damaged_blocks, damaged_bytes, damaged_spans; /* spans: as far as block headers were readable */
    uint64_t unknown_blocks;
    uint64_t names_refused; /* names that did not fit in a process's table */
    const char *const *notes; /* sentences on missing or truncated data, most important first */
    size_t n_notes;
} tare__run_table;

/* ---- span tree: depth first, siblings by total descending ---------------------------------------- */
/* Rows of one process or thread; none when analyzed BY_RUN. By total descending. */
typedef struct tare__group_row {
    const char *name;     /* display name of the process or thread */
    uint32_t process;     /* row in processes; TARE__NO_ROW when the file does not say */
    uint32_t thread;      /* row in threads; TARE__NO_ROW when BY_PROCESS */
    uint32_t first_row, n_rows; /* in spans */
    double total_ns;      /* of its top-level rows */
} tare__group_row;

typedef struct tare__span_row {
    const char *name;
    const char *file;  /* of the call site; NULL when not known */
    uint32_t line;
    uint32_t kind;     /* tare_kind: SPAN, STEP, PHASE, …; 0: "(others)", spans merged into one row */
    uint32_t group;    /* row in groups; TARE__NO_ROW when BY_RUN */
    uint32_t parent;   /* row; TARE__NO_ROW at the top */
    uint32_t depth;    /* 0 at the top */
    uint32_t n_rows;   /* rows below it, all levels: the next sibling is at index + 1 + n_rows */
    uint64_t calls;
    uint64_t still_open; /* of the calls: open at the end, counted up to there */
    uint64_t end_missing;   /* … whose end is not known, counted up to where the loss was detected */
    uint64_t left_open;  /* … closed by the end of a span around them */
    uint64_t continued;  /* spans here that continue a call: the call is counted once, where it began */
    double calls_ns;     /* duration of the calls counted here; differs from the total where calls are split */
    double total_ns;     /* as measured */
    double self_ns;      /* total minus direct children minus the recorder's overhead; never below 0 */
    double raw_self_ns;  /* total minus direct children */
    double share;        /* total over the sum of totals of all top-level rows; NaN when that is 0 */
    tare__durations each;
    const tare__number_row *numbers;
    size_t n_numbers;
    bool inspection; /* records shapes of an operator's calls (--shapes), which are reported with the operators */
} tare__span_row;

/* ---- steps and epochs ---------------------------------------------------------------------------- */
typedef struct tare__slow_step {
    double duration_ns;
    double start_at_ns;
    uint64_t index;
    bool has_index;
    bool partial;    /* its begin was not recorded */
    uint32_t thread; /* row in threads */
} tare__slow_step;

/* Interval of a quantile, 95 % by order statistics. */
typedef struct tare__step_interval {
    double low_ns, high_ns; /* NaN when there are too few steps, or too many to keep every duration */
    uint64_t needed;        /* too few: the number required; else 0 */
} tare__step_interval;

#define TARE__SLOWEST 5
#define TARE__STEP_BINS 48

/* Distribution of durations: bins of equal width, starting at the shortest duration. */
typedef struct tare__step_bins {
    double from_ns, width_ns; /* NaN: no bins; width 0: all durations are equal, and in the first bin */
    uint64_t counts[TARE__STEP_BINS];
    uint64_t over;            /* durations beyond the last bin: a long tail would compress all others into few bins */
} tare__step_bins;

/* Composition of steps over the run: their phases where the trace has any, else the spans directly inside them. A
 * bin is one step, or several consecutive steps so that the number of bins stays bounded. */
#define TARE__COURSE_BINS 128
#define TARE__COURSE_PARTS 24

typedef struct tare__course_bin {
    uint64_t steps;
    double from_ns, to_ns;  /* first begin, last end */
    double total_ns;        /* of its steps */
    const double *parts_ns; /* indexed as `parts`; the remainder of the total is in no part */
} tare__course_bin;

/* Prefixes of the names of spans in which the host waits for a GPU, a checkpoint is written, or loader workers are
 * started or stopped. */
#define TARE__SYNC       "sync: "
#define TARE__CHECKPOINT "checkpoint: "
#define TARE__WORKERS    "workers: "
bool tare__span_is_reported(const char *name); /* one of the last two, which have separate rules */

typedef struct tare__step_course {
    const char *const *parts; /* names, by total descending; NULL: all further names */
    size_t n_parts;
    bool phases; /* parts are phases, and waits for a GPU outside of phases */
    const tare__course_bin *bins; /* in the order in which steps ended on their threads */
    size_t n_bins;            /* 0: not kept */
} tare__step_course;

typedef struct tare__step_row {
    const char *name;
    uint32_t group;      /* row in groups; TARE__NO_ROW when BY_RUN */
    uint64_t count;      /* finished steps; the figures are of these */
    uint64_t job_count;  /* the same, but a step that all ranks of a job run together counts once */
    uint64_t ranks;      /* number of ranks that ran them; 0: not known */
    uint64_t unfinished; /* open at the end, or end missing */
    uint64_t partial;    /* of `count`: their begin was not recorded */
    double total_ns;
    uint64_t timed;      /* of `count`: basis of the durations: complete steps, or all if none is complete … */
    double timed_ns;     /* … and their total */
    tare__durations each;
    bool exact;          /* quantiles of all durations; else of a histogram, off by at most 0.4 % */
    tare__step_interval p50, p95;
    double per_second;   /* job_count over the time in steps, concurrent steps counted once; NaN when that is 0 */
    double first_ns;     /* the earliest step … */
    bool first_timed;    /* … is one of `timed` … */
    double rest_p50_ns;  /* … and the median of the other timed ones; NaN when there are none */
    double from_first_ns;  /* from the first step's begin to the last step's end, of all threads that ran steps … */
    double between_ns;     /* … of that: outside of steps … */
    double between_forward_ns, between_reported_ns; /* … of that: in forward passes; in loaders and checkpoints … */
    double longest_gap_ns; /* … the longest gap, and the number of gaps */
    uint64_t gaps;
    double rest_min_ns;  /* … and the fastest of them; NaN when there are none, or too many to keep every duration */
    tare__slow_step slowest[TARE__SLOWEST]; /* slowest first */
    size_t n_slowest;
    tare__step_bins bins;
    tare__step_course course;
    const tare__number_row *numbers; /* attached to the step or to spans inside it */
    size_t n_numbers;
} tare__step_row;

/* ---- the rest ------------------------------------------------------------------------------------ */
typedef struct tare__aggregate_row { /* by total descending */
    const char *name, *file; /* file: NULL when not known */
    uint32_t line;
    uint32_t every;    /* one in `every` calls is timed; 1: all */
    uint64_t calls, timed;
    bool estimated;    /* timed < calls: total is the mean of the timed calls times calls */
    double total_ns;   /* NaN: no call was timed */
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

/* What hooks into libraries report about the program: a setting, a source location. Marks and counters of the
 * program itself never create a fact. One row for each process, key, file, line and text; by first time. */
typedef struct tare__fact_row {
    const char *key;
    const char *file, *text; /* NULL: none */
    uint32_t line;           /* 0: none */
    uint32_t process;        /* row in processes; TARE__NO_ROW when the file does not say */
    uint64_t count;          /* how often it was recorded */
    double value, first, min, mean, max; /* value: the last one; NaN: none */
    double first_at_ns, last_at_ns;
} tare__fact_row;

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

/* What a process or a thread used, from its sampled metrics. NaN: it was not sampled, or only once. */
typedef struct tare__used {
    double cpu_seconds, memory_peak_bytes, threads, disk_read_bytes, disk_write_bytes;
} tare__used;

typedef struct tare__process_row { /* in order of appearance */
    uint32_t number;          /* in the file */
    int64_t pid, parent_pid;  /* 0: not known */
    int64_t inner_pid;        /* as it sees itself, where that differs; else 0 */
    const char *command;      /* one line; NULL when not known */
    const char *label;        /* display name: "rank 1 (python train.py)" where it has a rank; else as command */
    bool has_rank, joined;
    uint64_t rank;            /* in a distributed job */
    const char *not_joined;   /* a sentence: why it did not join; NULL when it joined */
    const char *unreadable;   /* a sentence: why its ring could not be read, or not to the end; NULL: it was read */
    double joined_at_ns, left_at_ns; /* NaN: not known */
    bool has_exit_status;
    int exit_status;          /* as of wait() */
    uint32_t threads;
    uint64_t spans, dropped_spans, dropped_others; /* dropped: by its threads and unattributed ones */
    double busy_ns;
    uint64_t steps;           /* that ended */
    double steps_ns;          /* their time, … */
    double backward_ns;       /* … and the part of it in the phase backward, where ranks wait for each other */
    tare__used used;
} tare__process_row;

typedef struct tare__thread_row { /* by process, then in order of appearance */
    uint32_t process;      /* row in processes; TARE__NO_ROW when the file does not say */
    uint32_t stream;       /* in the file */
    int64_t tid;           /* 0: not known */
    const char *name;      /* NULL when not known */
    uint64_t spans, events;
    double busy_ns;        /* its top-level spans */
    double first_at_ns, last_at_ns; /* NaN when no events were read */
    uint64_t dropped_spans, dropped_others;
    uint64_t unmatched_ends; /* ends of spans that were not open */
    uint64_t dropped_ends;      /* ends that could not be recorded: the ring was full */
    uint64_t missing_blocks;    /* missing blocks, detected by gaps in their ordinals */
    uint64_t skipped_slots;
} tare__thread_row;

/* ---- operators and modules: spans of these kinds, and of kind PHASE --------------------------------------- */
typedef enum tare__direction { TARE__NO_DIRECTION, TARE__FORWARD, TARE__BACKWARD } tare__direction;

typedef struct tare__operator_row { /* by name, phase and direction; by self descending */
    const char *name;
    const char *phase;    /* "forward", "optimizer", …; NULL: outside of phases */
    tare__direction direction;
    uint64_t calls;
    double total_ns;      /* of calls not inside another call of the same name */
    double self_ns;       /* minus spans inside it, minus the recorder's overhead */
    double raw_self_ns;
    double share;         /* of the self time of all operators; NaN when that is 0 */
    tare__durations each;
    double step_self_ns;  /* self time inside of steps, … */
    double per_step_ns;   /* … divided by the number of steps that ended, … */
    double step_share;    /* … as a share of their time; NaN: there are no steps */
    const char *module;   /* its nearest module, when all calls are in one; else NULL */
    uint32_t modules;     /* number of different modules; 0: not known */
    const char *pair;     /* of a forward operator its backward node, and vice versa; NULL: not known */
    uint64_t paired;      /* of the calls: those whose counterpart is known */
    double pair_total_ns; /* total of the counterparts; NaN: not known */
    const char *unpaired; /* of a backward node: why calls have no counterpart; NULL: all have one */
    const char *shapes;   /* of its tensors, the most frequent first: "f32[8,64] f32[64,64] x12; …"; NULL */
    double bytes;         /* of all calls, estimated from the sizes of its tensors; NaN: not known */
    double flops;         /* of all calls; NaN: not known, or there is no formula */
    double bytes_per_s, flops_per_s; /* of the total time */
    double of_peak_flops; /* share of the machine's peak for its type, at most 1; NaN: see of_peak_absent */
    double of_peak_bytes; /* share of the bandwidth of caches and memory at its size, at most 1; NaN */
    const char *of_peak_absent; /* why one of the two is absent; NULL: both are known */
    uint64_t recomputed;  /* of the calls: forward operators run again during the backward pass */
    const char *shapes_absent; /* why shapes, FLOPs and bytes are absent; NULL: they are known */
} tare__operator_row;

typedef struct tare__module_row { /* depth first, siblings by total descending */
    const char *path;     /* as recorded: "encoder.layers.3.self_attn" */
    uint32_t parent;      /* row; TARE__NO_ROW at the top */
    uint32_t depth, n_rows; /* as of spans */
    uint64_t calls;
    double total_ns;
    double self_ns;       /* minus the modules inside it; includes its operators */
    double operators_ns;  /* of that: self time of its operators, minus the recorder's overhead */
    double share;         /* total over that of all modules at the top; NaN when that is 0 */
    uint64_t backward_calls; /* backward nodes whose forward operator ran in this module or below */
    double backward_ns;   /* their total; NaN: not known */
    uint32_t first_operator, n_operators; /* in module_operators: of the module itself, not of modules inside */
} tare__module_row;

typedef struct tare__module_operator_row { /* by module, then by total descending */
    const char *name;
    uint32_t module;      /* row in modules */
    tare__direction direction;
    uint64_t calls;
    double total_ns, self_ns; /* self: NaN for a backward node, of which only the total is known */
} tare__module_operator_row;

/* ---- metrics: sampled over time ------------------------------------------------------------------ */
/* One interval of a series. Values as shown: the value of a gauge, the rate per second of a total. */
typedef struct tare__metric_point {
    double at_ns;     /* start */
    double lasts_ns;
    double min, mean, max; /* mean: weighted by time */
} tare__metric_point;

/* Units of values, as shown. Gauges: bytes, shares, °C, W, Hz, counts. Totals, per second: B/s, cores (CPU seconds
 * per second), 1/s, W. */
typedef enum tare__metric_unit {
    TARE__SHOW_COUNT, TARE__SHOW_BYTES, TARE__SHOW_SHARE /* 1 is 100 % */, TARE__SHOW_CORES, TARE__SHOW_SECONDS,
    TARE__SHOW_CELSIUS, TARE__SHOW_WATTS, TARE__SHOW_JOULES, TARE__SHOW_HERTZ, TARE__SHOW_BITS,
    TARE__SHOW_BYTES_PER_S, TARE__SHOW_PER_S,
    /* For columns only. */
    TARE__SHOW_NS, TARE__SHOW_GRAMS, TARE__SHOW_GRAMS_PER_KWH, TARE__SHOW_FLOPS, TARE__SHOW_FLOPS_PER_S,
    TARE__SHOW_CHANGE, /* a share, with its sign: +12.3 %; of a column with `unit_by`, a difference */
    TARE__SHOW_P,      /* of a significance test */
    TARE__SHOW_DATE,   /* nanoseconds since 1970 */
    TARE__SHOW_HASH,   /* a text; people are shown its first digits */
    TARE__SHOW_VARIES, /* given by the row */
    TARE__SHOW_NOTHING /* no unit */
} tare__metric_unit;

typedef struct tare__metric_row { /* by subject kind, owner, key, then metric */
    const char *metric;    /* "memory.rss" */
    uint32_t subject;      /* tare__subject_kind */
    uint64_t key, owner;
    const char *label;     /* of the subject; "" */
    uint32_t kind;         /* tare__metric_kind */
    uint32_t known;        /* tare__metric; TARE__METRIC_COUNT: of another version */
    tare__metric_unit unit; /* of min, mean, max, first, last and of points */
    tare__metric_unit total_unit; /* of total */
    const char *absent;    /* why there are no values, or no further values; NULL: there are */
    uint64_t n;            /* samples; 0: none, and the fields below are NaN */
    double min, mean, max; /* of the gauge; of a total: of its rate per second between samples */
    double max_at_ns;
    double first, last;    /* of a gauge */
    double total;          /* of a total: growth from the first sample to the last; else NaN */
    double from_ns, to_ns; /* first and last sample */
    const tare__metric_point *points; /* in order, at most TARE__POINTS_MAX; NULL: too many series to keep them */
    size_t n_points;
} tare__metric_row;
#define TARE__POINTS_MAX 1024u

/* ---- phases of the run: startup, steady state, shutdown ------------------------------------------------------ */
typedef struct tare__phase {
    double from_ns, to_ns; /* instants of the run; NaN: not known, or the phase does not exist */
    const char *how;       /* a sentence: how its bounds were found, or why they are not known */
} tare__phase;

typedef struct tare__import_row { /* by time descending */
    const char *module;    /* top-level name: "torch" */
    double from_ns;        /* when the first import of it began */
    double total_ns;       /* time not shared with another import; 0: only imported inside of others */
} tare__import_row;

/* The three phases are contiguous and cover the run, except for unknown parts. Steady state is always known: it is
 * the whole run where the phases cannot be distinguished. */
typedef struct tare__phase_table {
    tare__phase startup, steady, shutdown;
    /* Parts of startup that add up to it. NaN: not known. */
    double interpreter_ns; /* until the first Python interpreter was ready */
    double imports_ns;     /* … and was importing modules */
    double preparation_ns; /* the rest: data, model, device context */
    double warm_up_ns;     /* steps before the first steady one */
    uint64_t warm_up_steps;
    double compile_ns;     /* of preparation and warm-up: torch.compile; NaN: none */
    const tare__import_row *imports; /* of the whole run */
    size_t n_imports;
    bool imports_known;    /* a Python process recorded its imports */
} tare__phase_table;

/* Resource usage of the run, one figure each, regardless of source. NaN: absent; the reason is in `absent_…`. */
typedef struct tare__usage_table {
    double cpu_seconds;      /* of all processes, user and system */
    double user_seconds, system_seconds;
    double cores_mean, cores_max; /* cores in use */
    double cores_allowed;    /* by affinity and container: the reference for 100 % */
    double rss_peak_bytes;   /* of the largest process, by high-water mark */
    bool rss_peak_at_least;  /* a process may have grown after its last sample */
    const char *rss_peak_process; /* its name; NULL: not known */
    double rss_peak_at_ns;   /* of the sample that first showed it; NaN: only known at the end */
    double tree_rss_max_bytes; /* all processes together, in one sample */
    double memory_allowed_bytes; /* by container or machine */
    double io_read_bytes, io_write_bytes, disk_read_bytes, disk_write_bytes;
    double net_received_bytes, net_sent_bytes; /* of the machine */
    double faults_major, switches_voluntary, switches_forced;
    double threads_max, processes_max;
    double energy_joules;    /* of CPU packages and GPUs over the run */
    double carbon_grams, carbon_intensity; /* intensity: g/kWh, as configured */
    double gpu_busy_mean, gpu_memory_max_bytes; /* share; of all GPUs together */
    const char *absent_cpu, *absent_memory, *absent_disk, *absent_energy, *absent_gpu; /* NULL: not absent */
} tare__usage_table;

/* The innermost span open on a thread of the run at an instant: used for peaks. */
typedef struct tare__open_at {
    const char *span;   /* NULL: none */
    uint32_t row;       /* in spans; TARE__NO_ROW */
} tare__open_at;

/* ---- samples: durations of single calls or steps, in order, where requested ---------------------------------- */
typedef enum tare__sampled {
    TARE__SAMPLED_SPAN,     /* name: its path, "train/forward" */
    TARE__SAMPLED_STEP, TARE__SAMPLED_EPOCH,
    TARE__SAMPLED_OPERATOR, /* self time as measured, at any place in the tree */
    TARE__SAMPLED_LAYER,    /* a module */
    TARE__SAMPLED_KERNEL,   /* on a GPU's track */
    TARE__SAMPLED_TASK, TARE__SAMPLED_REQUEST, TARE__SAMPLED_TRACK, /* complete spans on other tracks */
    TARE__SAMPLED_COUNTER   /* its values */
} tare__sampled;

/* A sample is the duration of one call; inside of steps, the time within one step. Where there are too many, a
 * sample is the mean of 2, 4, 8, … consecutive ones. */
typedef struct tare__sample_row { /* by total descending */
    tare__sampled of;
    const char *name;
    bool per_step;
    uint64_t calls;     /* that ended */
    double total_ns;    /* of these; NaN of a counter */
    uint64_t each;      /* calls, or steps, per sample */
    const double *values;
    size_t n;
} tare__sample_row;

/* ---- findings ------------------------------------------------------------------------------------ */
typedef enum tare__severity { TARE__INFO = 1, TARE__WARNING = 2, TARE__CRITICAL = 3 } tare__severity;

typedef struct tare__evidence {
    const char *name;
    double value;
    tare__metric_unit unit;
} tare__evidence;

typedef struct tare__finding { /* worst first */
    const char *id;       /* "memory-growth"; stable, for machines */
    tare__severity severity;
    const char *title;    /* a short sentence without full stop, with the main number */
    const char *evidence; /* sentences with numbers */
    const char *advice;   /* sentences: the recommended action */
    double gain;          /* upper bound of the share of steady-state time that the advice saves, 0..1; or NaN */
    const char *gain_how; /* how the gain was derived, or why it is not known */
    double from_ns, to_ns; /* when it applies; NaN: the whole run */
    const tare__evidence *figures;
    size_t n_figures;
    const char *source;   /* of a user's rule: file:line; NULL: built in */
    /* The line of the program with most of the time that the finding is about, by stack samples. NULL: not known. */
    const char *file, *function;
    uint32_t line;        /* 0: not known */
    double line_share;    /* of that time; NaN: not known */
    uint32_t line_state;  /* tare__thread_state in which most of it is spent; 0: not known */
    const char *inner;    /* innermost function of most of it; NULL: the line's own function, or not known */
} tare__finding;

/* ---- overhead of Tare ---------------------------------------------------------------------------- */
typedef struct tare__own_table {
    uint64_t spans, chained_spans; /* by begin and end; by next */
    uint64_t marks, counters, numbers, complete_spans;
    uint64_t aggregate_calls, aggregate_timed;
    double pair_ns, inner_ns, next_ns, aggregate_ns; /* NaN: not calibrated */
    double own_ns;       /* the recorder's time in the program: number of events times their cost; NaN: not known */
    double subtracted_ns; /* of that, subtracted from self times */
    double collector_cpu_ns; /* NaN: the file has no end */
    double sampler_cpu_ns;   /* of that: samplers; NaN: nothing was sampled, or no end */
    double interval_ns, longest_interval_ns; /* sampling interval: configured, and the longest one; NaN: none */
    double recorded_ns;  /* of all threads, each from its first event to its last */
    double share;        /* own_ns as a share of recorded_ns; NaN when either is not known */
} tare__own_table;

#include "analyze/stacks.h"

struct tare__analysis;
/* A source file for display: relative to the working directory of the run, or without directories. */
const char *tare__source_name(const struct tare__analysis *of, const char *file);
/* The name of a C++ function without the type of its result, its parameters and template arguments: in `out`, which it
 * may not fill, or `name` itself. For lines that cannot show more; other names stay as they are. */
const char *tare__short_function(const char *name, char *out, size_t bytes);
/* The last recorded fact with a key; NULL: none. */
const tare__fact_row *tare__fact_find(const struct tare__analysis *of, const char *key);
/* Values and counts of all facts with a key, combined in one row; false: there are none. */
bool tare__fact_sum(const struct tare__analysis *of, const char *key, tare__fact_row *sum);

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
    const tare__fact_row *facts;
    size_t n_facts;
    const tare__track_row *tracks;
    size_t n_tracks;
    const tare__operator_row *operators;
    size_t n_operators;
    const tare__module_row *modules;
    size_t n_modules;
    const tare__module_operator_row *module_operators;
    size_t n_module_operators;
    const tare__process_row *processes;
    size_t n_processes;
    const tare__thread_row *threads;
    size_t n_threads;
    const tare__metric_row *metrics;
    size_t n_metrics;
    const tare__sampled_thread_row *sampled_threads; /* empty unless stacks were sampled, as the following */
    size_t n_sampled_threads;
    const tare__function_row *functions;
    size_t n_functions;
    const tare__line_row *lines;
    size_t n_lines;
    const tare__sampled_import_row *sampled_imports;
    size_t n_sampled_imports;
    const tare__span_line_row *span_lines; /* of sampled threads with spans */
    size_t n_span_lines;
    const tare__package_row *packages;
    size_t n_packages;
    tare__stack_tree stacks;
    const struct tare__uses *uses; /* of sampled stacks, for findings; NULL: none */
    const tare__sample_row *samples; /* empty unless requested */
    size_t n_samples;
    tare__usage_table usage;
    tare__phase_table phases;
    const struct tare__analysis *whole; /* of tables restricted to steady state: those of the whole run; else NULL */
    const struct tare__analysis *ranks; /* for rules: the tables of each process that has steps, with its workers … */
    size_t n_ranks;                     /* … if there are several; else 0 */
    const tare__finding *findings;
    size_t n_findings;
    tare__arena *arena; /* private */
} tare__analysis;

/* Reads the whole trace (rewinding it) into tables. 0; TARE_E_MEMORY or TARE_E_SYSTEM with a sentence. Damage is not
 * a failure: run.notes reports it. */
int tare__analyze(struct tare__trace *trace, const tare__analyze_options *options, tare__analysis **analysis,
                  tare__error *error);
void tare__analysis_free(tare__analysis *analysis); /* NULL is fine */

/* Machine-readable words, the same in every output: "gpu_process", "total", "critical". NULL: of another version. */
const char *tare__subject_word(uint32_t subject);  /* tare__subject_kind */
const char *tare__metric_kind_word(uint32_t kind); /* tare__metric_kind */
const char *tare__severity_word(tare__severity severity);

/* The row of a metric of a subject; key UINT64_MAX: the first one of that kind. NULL: not sampled. */
const tare__metric_row *tare__metric_row_of(const tare__analysis *analysis, tare__metric metric,
                                            tare__subject_kind subject, uint64_t key);

/* ---- what the rules decide, for measurements that are in no trace ------------------------------------ */
/* What a span of a name does in a training loop: "loading", "forward", "backward"; NULL: the name does not tell. `kind`
 * as in tare.h. */
const char *tare__phase_of_name(const char *name, uint32_t kind);
/* A threshold of the rules by its name in docs/FINDINGS.md: times in ns, memory in bytes, shares from 0 to 1. NaN: no
 * such name. */
double tare__limit_of(const char *name);

/* Durations of one thing that is done repeatedly. */
typedef struct tare__evenness {
    double count, fastest_ns, p50_ns, p95_ns, slowest_ns;
    double excess; /* of the total time: that of the slowest beyond the median; NaN: not known */
} tare__evenness;
/* Whether they differ so much that it costs time. */
bool tare__is_uneven(const tare__evenness *of);

/* Whether memory grew throughout a series of snapshots, by the minima of its quarters (thirds below 8 snapshots; needs
 * 3): in each of them by an eighth of the threshold or more. A jump, a warm-up and a sawtooth are not growth. */
bool tare__grows_throughout(const double *snapshots, size_t n, double threshold);

/* Adds a metric of the process or thread; `to` starts as tare__used_nothing. */
extern const tare__used tare__used_nothing;
void tare__used_add(tare__used *to, const tare__metric_row *metric);

/* ---- user rules: a small file, one rule per paragraph (docs/RULES.md) ------------------------------- */
typedef struct tare__rules tare__rules;
/* Parses text; `name` is for messages. 0; TARE_E_INPUT with name, line and the error; TARE_E_MEMORY. */
int tare__rules_parse(const char *text, size_t bytes, const char *name, tare__rules **rules, tare__error *error);
void tare__rules_free(tare__rules *rules); /* NULL is fine */

/* ---- timeline: spans as boxes for drawing, merged where they are too small -------------------------------- */
/* A box is one span, or several merged adjacent spans of one level. */
typedef struct tare__box {
    uint32_t lane;      /* in lanes */
    uint32_t depth;
    uint32_t name;      /* in names: of the span; of merged spans the name with the most time */
    uint64_t calls;     /* 1: one span */
    double at_ns, lasts_ns;
    double busy_ns;     /* of merged spans: sum of their durations; else = lasts_ns */
    bool mixed;         /* merged spans of several names */
} tare__box;

typedef struct tare__lane { /* by process, then thread or track */
    const char *name;     /* "train.py (12345) · MainThread" or a track's */
    const char *process;
    int64_t pid, tid;     /* 0: not known */
    uint32_t track_kind;  /* tare_track_kind; 0: a thread */
    uint32_t depth;       /* levels */
    uint64_t spans;       /* in it, before merging */
} tare__lane;

typedef struct tare__counter_line { /* a counter of the program: min and max for each interval */
    const char *name;
    const tare__metric_point *points;
    size_t n_points;
} tare__counter_line;

typedef struct tare__sampled_frame { /* a stack is a frame and its callers */
    uint32_t caller;     /* smaller number; 0: none */
    uint32_t line;       /* 0: not known */
    const char *name, *file; /* file NULL: not known */
} tare__sampled_frame;

typedef struct tare__timeline {
    const tare__lane *lanes;
    size_t n_lanes;
    const tare__box *boxes; /* by lane, then depth, then time */
    size_t n_boxes;
    const char *const *names;
    size_t n_names;
    const tare__counter_line *counters;
    size_t n_counters;
    uint64_t spans;        /* in the boxes */
    uint64_t merged_spans; /* of these: in boxes of several spans */
    uint64_t left_out_spans; /* dropped: too deep, or on lanes beyond the maximum */
    double resolution_ns;  /* shorter spans may be merged */
    /* Sampled threads, the most active ones first. Boxes are samples in a row: at depth 0 of one state (name: a
     * tare__thread_state), at 1 with one innermost function of own code (name: in sampled_names), at 2 of one stack
     * (name: in sampled_frames). Of merged boxes, busy_ns is the time of the name. */
    const tare__lane *sampled_lanes; /* spans: their samples */
    size_t n_sampled_lanes;
    const tare__box *sampled_boxes;
    size_t n_sampled_boxes;
    const char *const *sampled_names;
    size_t n_sampled_names;
    const struct tare__sampled_frame *sampled_frames; /* [0]: no stack */
    size_t n_sampled_frames;
    tare__arena *arena;    /* private */
} tare__timeline;

/* Reads the whole trace (rewinding it), memory bounded by `boxes_max`. 0 or a status with a sentence. */
int tare__analyze_timeline(struct tare__trace *trace, size_t boxes_max, tare__timeline **timeline, tare__error *error);
void tare__timeline_free(tare__timeline *timeline); /* NULL is fine */
/* The innermost box at an instant on the lane that is busiest then; row is TARE__NO_ROW. */
tare__open_at tare__timeline_open_at(const tare__timeline *timeline, double at_ns);

#include "analyze/schema/schema.h"

#include "analyze/compare/check.h"
#include "analyze/compare/decide.h"
#include "analyze/compare/figures.h"
#include "analyze/compare/compare.h"
#include "analyze/compare/threshold.h"
#include "analyze/compare/kept.h"

#endif
