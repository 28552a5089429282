/* sample: samples the program and the machine from outside, tick by tick. One sampler per file behind one vtable,
 * in one const table; each value is valid or absent with a reason.
 * One thread owns a set. Must not know how samples are stored or shown. */
#ifndef TARE_SAMPLE_H
#define TARE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "files.h"
#include "format/format.h"

/* ---- output -------------------------------------------------------------------------------------------- */
/* A set announces its series and passes values on; the collector writes them. */
typedef struct tare__sample_sink {
    /* A series that is new, or whose label or reason changed; texts are valid during the call. */
    void (*series)(void *context, const tare__series *series);
    void (*value)(void *context, uint32_t series, int64_t value); /* of the current tick */
    void *context;
} tare__sample_sink;

/* ---- what to sample --------------------------------------------------------------------------------------- */
typedef struct tare__sample_options {
    const char *root;     /* prefix of /proc, /sys and so on, for tests; "" */
    pid_t target;         /* root of the process tree; 0: none (machine only) */
    pid_t self;           /* excluded from the tree, and the subject TARE */
    uint64_t interval_ns; /* default TARE__SAMPLE_INTERVAL_NS, minimum TARE__SAMPLE_INTERVAL_MIN_NS */
    uint32_t left_out;    /* bits of disabled samplers: 1 << index in the table */
    double budget;        /* share of one core; 0: TARE__SAMPLE_BUDGET */
    bool only_list;       /* only the processes of the tree are needed, no values */
    uint64_t (*cost_clock)(void); /* for tests; NULL: CPU time of the calling thread, in ns */
} tare__sample_options;

#define TARE__SAMPLE_INTERVAL_NS 100000000u
#define TARE__SAMPLE_INTERVAL_MIN_NS 1000000u
#define TARE__SAMPLE_BUDGET 0.005

/* ---- a set: all samplers over one target ------------------------------------------------------------------ */
typedef struct tare__sample_set tare__sample_set;
/* NULL: out of memory. Unavailable values are series with a reason, never a failure. */
tare__sample_set *tare__sample_open(const tare__sample_options *options, const tare__sample_sink *sink);
/* When the next tick is due, on the monotonic clock. */
uint64_t tare__sample_due_ns(const tare__sample_set *set);
/* One tick of every sampler that is due. `now_ns` is the monotonic clock. */
void tare__sample_tick(tare__sample_set *set, uint64_t now_ns);
/* All samplers, regardless of their intervals: the first and the last sample. */
void tare__sample_tick_all(tare__sample_set *set, uint64_t now_ns);
void tare__sample_close(tare__sample_set *set); /* NULL is allowed */

/* A process of the tree that is alive, or was. */
typedef struct tare__sampled_process {
    pid_t pid, parent;
    uint64_t start_time; /* clock ticks since boot: identifies the process together with the pid */
    bool alive;
    int64_t rss_peak;    /* bytes, the latest high-water mark; -1: none */
    char name[64];       /* comm */
} tare__sampled_process;
const tare__sampled_process *tare__sample_processes(const tare__sample_set *set, size_t *n);

typedef struct tare__sample_cost {
    uint64_t cpu_ns;      /* CPU time spent in ticks so far */
    uint64_t interval_ns; /* current interval: longer than requested if the budget requires it */
    uint64_t longest_ns;  /* … and the longest so far */
} tare__sample_cost;
tare__sample_cost tare__sample_cost_of(const tare__sample_set *set);

/* Values of the status line: the latest rates. NaN: absent. */
typedef struct tare__sample_now {
    double tree_cores; /* CPU time per second */
    double tree_rss_bytes;
    double gpu_busy;   /* share, mean over GPUs */
    double gpu_memory_bytes;
} tare__sample_now;
tare__sample_now tare__sample_now_of(const tare__sample_set *set);

/* ---- doctor: what is available on this machine ----------------------------------------------------------- */
typedef enum tare__sample_state { TARE__SAMPLE_WORKS, TARE__SAMPLE_PARTLY, TARE__SAMPLE_FAILS } tare__sample_state;
typedef struct tare__sample_check {
    const char *sampler; /* "process", "system", … */
    const char *source;  /* "/proc/pressure", "NVML" */
    tare__sample_state state;
    char detail[256];    /* what was found; or why not, a sentence without full stop */
    char fix[256];       /* a command that enables it; "" */
} tare__sample_check;
typedef void tare__sample_check_sink(void *context, const tare__sample_check *check);
/* Every source of every sampler, in the table's order. */
void tare__sample_doctor(const char *root, tare__sample_check_sink *sink, void *context);

/* Peak performance of the cores available to this process, with this many threads (0: one per core), by CPU time.
 * Takes about 0.2 s, in a separate process. Values that could not be measured are NaN; false: none could. */
bool tare__sample_roofline(unsigned threads, tare__peaks *peaks);

/* The GPUs in one line, for the description of the run: "2 x NVIDIA H200, driver 580.65.06", or "n/a: " and the
 * reason. The last result of the NVML sampler of this process: cheap, and only meaningful at the end of a run. */
const char *tare__nvml_describe(char out[256]);

/* ---- call stacks: not samplers of the table, but run by their own thread --------------------------------- */
#include "python.h"
#include "state.h"
#include "stacks.h"
#include "symbols.h"
#include "unwind.h"
void tare__symbols_doctor(const char *root, tare__sample_check_sink *sink, void *context);

/* ---- samplers ---------------------------------------------------------------------------------------------
 * For this module only. */
typedef struct tare__sampler {
    const char *name; /* also for --disable */
    unsigned every;   /* in ticks of the set: 1, or 10 for slowly changing values */
    size_t state_bytes; /* of its state, zeroed; passed to the functions below */
    void (*open)(tare__sample_set *set, void *state);
    void (*tick)(tare__sample_set *set, void *state, uint64_t now_ns);
    void (*close)(void *state);
    void (*doctor)(const char *root, tare__sample_check_sink *sink, void *context);
} tare__sampler;

extern const tare__sampler tare__sampler_process, tare__sampler_system, tare__sampler_container,
    tare__sampler_power, tare__sampler_nvml;
/* In order of the table; NULL past its end. */
const tare__sampler *tare__sampler_at(size_t index);

const tare__sample_options *tare__sample_options_of(const tare__sample_set *set);
/* Processes of the tree, updated by the process sampler at each of its ticks. */
tare__sampled_process *tare__sample_process_list(tare__sample_set *set, size_t *n);
/* For the process sampler: a new entry at the end of the list, zeroed; NULL: no space. Ended ones make space for
 * others. */
tare__sampled_process *tare__sample_process_add(tare__sample_set *set);
void tare__sample_process_drop(tare__sample_set *set, size_t index); /* the last takes its place */

typedef struct tare__subject {
    tare__subject_kind kind;
    uint64_t key, owner;
    const char *label; /* copied; NULL: "" */
} tare__subject;
/* The id of the series, created at the first call; 0: no space. Cache it: the lookup hashes all of this. */
uint32_t tare__sample_series_of(tare__sample_set *set, tare__metric metric, const tare__subject *subject);
void tare__sample_put(tare__sample_set *set, uint32_t series, int64_t value);
/* Why there is no value (any more); reported once as long as it does not change. */
void tare__sample_absent(tare__sample_set *set, uint32_t series, const char *reason);
/* The values of the status line. */
tare__sample_now *tare__sample_now_put(tare__sample_set *set);
/* For samplers that manage a part of the budget themselves: the clock used for costs, in ns, and the allowed cost of
 * a tick at the requested interval. */
uint64_t tare__sample_cost_clock(const tare__sample_set *set);
uint64_t tare__sample_tick_budget_ns(const tare__sample_set *set);

#endif
