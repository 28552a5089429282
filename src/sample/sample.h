/* sample: looks at the program and the machine from outside, tick by tick. One sampler a file behind one vtable,
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

/* ---- what goes out ----------------------------------------------------------------------------------- */
/* A set tells of its series and hands out values; the collector writes them. */
typedef struct tare__sample_sink {
    /* A series that is new, or of which the label or the reason changed; texts live during the call. */
    void (*series)(void *context, const tare__series *series);
    void (*value)(void *context, uint32_t series, int64_t value); /* of the tick under way */
    void *context;
} tare__sample_sink;

/* ---- what is to be looked at ------------------------------------------------------------------------------ */
typedef struct tare__sample_options {
    const char *root;     /* in front of /proc, /sys and so on, for tests; "" */
    pid_t target;         /* root of the process tree; 0: none (only the machine) */
    pid_t self;           /* not counted as part of the tree, and the subject TARE */
    uint64_t interval_ns; /* TARE__SAMPLE_INTERVAL_NS by default; TARE__SAMPLE_INTERVAL_MIN_NS at least */
    uint32_t left_out;    /* bits of samplers not wanted: 1 << their place in the table */
    double budget;        /* share of one core; 0: TARE__SAMPLE_BUDGET */
    bool only_list;       /* only who is in the tree is wanted, no values */
    uint64_t (*cost_clock)(void); /* for tests; NULL: CPU time of the calling thread, in ns */
} tare__sample_options;

#define TARE__SAMPLE_INTERVAL_NS 100000000u
#define TARE__SAMPLE_INTERVAL_MIN_NS 1000000u
#define TARE__SAMPLE_BUDGET 0.005

/* ---- a set: all samplers over one target ------------------------------------------------------------------ */
typedef struct tare__sample_set tare__sample_set;
/* NULL: no memory. What a sampler cannot see is told as series with a reason, never a failure. */
tare__sample_set *tare__sample_open(const tare__sample_options *options, const tare__sample_sink *sink);
/* When the next tick is due, on the monotonic clock. */
uint64_t tare__sample_due_ns(const tare__sample_set *set);
/* One tick of every sampler that is due. `now_ns` is the monotonic clock. */
void tare__sample_tick(tare__sample_set *set, uint64_t now_ns);
/* All samplers, whatever their intervals: the first and the last sample. */
void tare__sample_tick_all(tare__sample_set *set, uint64_t now_ns);
void tare__sample_close(tare__sample_set *set); /* NULL is fine */

/* A process of the tree that is there, or was. */
typedef struct tare__sampled_process {
    pid_t pid, parent;
    uint64_t start_time; /* clock ticks since boot: with the pid, its identity */
    bool alive;
    int64_t rss_peak;    /* bytes, the newest high-water mark seen; -1: none */
    char name[64];       /* comm */
} tare__sampled_process;
const tare__sampled_process *tare__sample_processes(const tare__sample_set *set, size_t *n);

typedef struct tare__sample_cost {
    uint64_t cpu_ns;      /* spent in ticks so far */
    uint64_t interval_ns; /* between ticks now: longer than asked for when the budget made it so */
    uint64_t longest_ns;  /* … and at the longest */
} tare__sample_cost;
tare__sample_cost tare__sample_cost_of(const tare__sample_set *set);

/* What a status line shows: the newest rates. NaN: absent. */
typedef struct tare__sample_now {
    double tree_cores; /* CPU time a second */
    double tree_rss_bytes;
    double gpu_busy;   /* share, mean over GPUs */
    double gpu_memory_bytes;
} tare__sample_now;
tare__sample_now tare__sample_now_of(const tare__sample_set *set);

/* ---- doctor: what can be seen here ----------------------------------------------------------------------- */
typedef enum tare__sample_state { TARE__SAMPLE_WORKS, TARE__SAMPLE_PARTLY, TARE__SAMPLE_FAILS } tare__sample_state;
typedef struct tare__sample_check {
    const char *sampler; /* "process", "system", … */
    const char *source;  /* "/proc/pressure", "NVML" */
    tare__sample_state state;
    char detail[256];    /* what was found; or why not, a sentence without full stop */
    char fix[256];       /* a command that would mend it; "" */
} tare__sample_check;
typedef void tare__sample_check_sink(void *context, const tare__sample_check *check);
/* Every source of every sampler, in the table's order. */
void tare__sample_doctor(const char *root, tare__sample_check_sink *sink, void *context);

/* What the cores that this process may use can do at best, on so many threads (0: one a core), by CPU time. Takes a
 * fifth of a second or so, in a process of its own. What could not be measured is NaN; false: nothing could. */
bool tare__sample_roofline(unsigned threads, tare__peaks *peaks);

/* The GPUs in one line, for the run's description: "2 x NVIDIA H200, driver 580.65.06", or "n/a: " and why. What
 * the NVML sampler of this process last found: cheap, and only worth asking when the run ends. */
const char *tare__nvml_describe(char out[256]);

/* ---- samplers ---------------------------------------------------------------------------------------------
 * What follows is for this room only. */
typedef struct tare__sampler {
    const char *name; /* also of --no-NAME */
    const char *what; /* half a line, for doctor and help */
    unsigned every;   /* ticks only every so many ticks of the set: 1, or 10 for what changes slowly */
    size_t state_bytes; /* of its own state, zeroed; given to the calls below */
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
/* Who is in the tree, brought up to date by the process sampler at each of its ticks. */
tare__sampled_process *tare__sample_process_list(tare__sample_set *set, size_t *n);
/* For the process sampler: a new one at the list's end, zeroed; NULL: no room. Ended ones make room for others. */
tare__sampled_process *tare__sample_process_add(tare__sample_set *set);
void tare__sample_process_drop(tare__sample_set *set, size_t index); /* the last takes its place */

typedef struct tare__subject {
    tare__subject_kind kind;
    uint64_t key, owner;
    const char *label; /* copied; NULL: "" */
} tare__subject;
/* The series' id, made at the first call; 0: no room. Keep it: the look-up is a hash of all of this. */
uint32_t tare__sample_series_of(tare__sample_set *set, tare__metric metric, const tare__subject *subject);
void tare__sample_put(tare__sample_set *set, uint32_t series, int64_t value);
/* Why there is no value (any more); told once as long as it stays the same. */
void tare__sample_absent(tare__sample_set *set, uint32_t series, const char *reason);
/* The figures of the status line. */
tare__sample_now *tare__sample_now_put(tare__sample_set *set);
/* For samplers that hold a part of the budget themselves: the clock that costs are measured with, in ns, and
 * what a tick may cost at the interval asked for. */
uint64_t tare__sample_cost_clock(const tare__sample_set *set);
uint64_t tare__sample_tick_budget_ns(const tare__sample_set *set);

#endif
