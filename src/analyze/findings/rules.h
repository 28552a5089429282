/* rules: shared by the files of the findings: named limits, curves over time, and functions that write findings.
 * Owned by the thread that analyzes; internal to this module.
 * Must not know how tables are made. */
#ifndef TARE_ANALYZE_RULES_H
#define TARE_ANALYZE_RULES_H

#include "analyze/analyze.h"
#include "stat/stat.h"

/* ---- limits: every threshold of every rule (listed in docs/FINDINGS.md) ---------------------- */
/* Times in ns, memory in bytes, shares between 0 and 1. */
#define TARE__LIMITS(L)                                                                                           \
    /* minimum data for any conclusion */                                                                         \
    L(SHORTEST_RUN, 1e9)       /* ns: a shorter run has too few samples */                                        \
    L(FEWEST_SAMPLES, 5)       /* of a series */                                                                  \
    L(HELD, 0.5)               /* share of the time for which a condition must hold */                            \
    L(SHORTEST_SPANS, 10e6)    /* ns: a shorter run has too few spans */                                          \
    L(FEWEST_STEPS, 5)                                                                                            \
    L(STARTUP_OF_RUN, 0.50)    /* above this, startup dominates the run … */                                     \
    L(STARTUP_SHORTEST, 0.5e9) /* ns … if it took at least this long */                                          \
    /* memory */                                                                                                  \
    L(MEMORY_INFO, 0.85)       /* of the memory limit */                                                          \
    L(MEMORY_WARNING, 0.90)                                                                                       \
    L(MEMORY_CRITICAL, 0.95)                                                                                      \
    L(MEMORY_LARGE, 16e9)      /* bytes, when the memory limit is not known */                                    \
    L(GROWTH_SHORTEST, 1.5e9)  /* ns after the warm-up */                                                         \
    L(GROWTH_WARM_UP, 0.25)    /* of the run: ignored */                                                          \
    L(GROWTH_BYTES, 100e6)                                                                                        \
    L(GROWTH_A_MINUTE, 0.10)   /* of the current size */                                                          \
    L(GROWTH_LEAST, 16e6)      /* bytes: a smaller growth is ignored */                                           \
    L(GROWTH_FIT, 0.80)        /* R squared of the straight line */                                               \
    L(GROWTH_FURTHEST, 10)     /* times the observed time: limit of a prediction */                               \
    L(SWAPPED, 16777216.0)     /* bytes of the job */                                                             \
    L(SWAP_TRAFFIC, 67108864.0) /* bytes in and out, of the machine */                                            \
    L(SWAP_HEAVY, 10485760.0)  /* bytes per second in, over the run */                                            \
    L(KILLED_AT, 0.95)         /* of the memory limit: a SIGKILL there counts as out of memory */                 \
    /* CPU */                                                                                                     \
    L(CPU_INFO, 0.90)          /* of the CPU limit */                                                             \
    L(CPU_WARNING, 0.95)                                                                                          \
    L(THROTTLED_INFO, 0.05)    /* of the periods */                                                               \
    L(THROTTLED_WARNING, 0.20)                                                                                    \
    L(THROTTLED_LEAST, 10)     /* periods */                                                                      \
    L(ONE_CORE_LEAST, 0.85)    /* cores of all processes */                                                       \
    L(ONE_CORE_MOST, 1.25)                                                                                        \
    L(CORES_FREE, 0.50)        /* idle cores: with fewer, spreading work gains nothing */                           \
    L(ONE_THREAD, 0.90)        /* of the CPU time: one thread's */                                                \
    L(CROWDED, 1.5)            /* runnable threads per core */                                                    \
    L(CROWDED_SWITCHES, 20)    /* involuntary switches per second and core */                                     \
    L(STEAL, 0.10)             /* of the machine's CPU time */                                                    \
    L(PRESSURE_CPU, 0.20)      /* of the time */                                                                  \
    L(PREEMPTED, 0.10)         /* runnable threads not running: explains step variance */                         \
    L(WAITING_FOR_CPU, 0.25)   /* runnable threads not running */                                                 \
    /* disks and network */                                                                                       \
    L(IOWAIT, 0.20)            /* of the machine's CPU time */                                                    \
    L(DISK_BUSY_INFO, 0.80)    /* of the time */                                                                  \
    L(DISK_BUSY_WARNING, 0.90)                                                                                    \
    L(DISK_BYTES, 1048576.0)   /* per second, by the job: below, others use the disk */                           \
    L(DISK_WAIT, 0.40)         /* of the time */                                                                  \
    L(DISK_WAIT_LEAST, 0.20)   /* of the time, if waiting for a CPU took most of the rest … */                    \
    L(DISK_WAIT_OF_OWN, 0.60)  /* … and of the time running or waiting for a disk */                              \
    L(DISK_WAIT_CRITICAL, 0.80)                                                                                   \
    L(NETWORK_ERRORS, 100)     /* packets */                                                                      \
    L(NETWORK_ERRORS_RATE, 1)  /* packets per second */                                                           \
    /* GPU */                                                                                                     \
    L(GPU_SAMPLES, 20)         /* of utilization: minimum number */                                               \
    L(GPU_BUSY, 0.70)          /* of the time */                                                                  \
    L(GPU_WORKS, 0.50)         /* of the time: a running thread may only wait for it */                           \
    L(GPU_MEMORY, 0.90)                                                                                           \
    L(GPU_USED_BYTES, 67108864.0) /* memory growth that shows that the run uses it */                             \
    L(GPU_IDLE, 0.01)          /* of the time: below, it counts as a gap */                                       \
    L(GPU_GAP, 500e6)          /* ns: the shortest gap */                                                         \
    L(GPU_GAPS_INFO, 0.10)     /* of the time in use */                                                           \
    L(GPU_GAPS_WARNING, 0.25)                                                                                     \
    L(GPU_SLOWED, 0.05)        /* of the time */                                                                  \
    /* spans and steps */                                                                                         \
    L(HOT_SAMPLES, 20)         /* stack samples: fewer do not tell which line takes the time */                  \
    L(HOT_LINE, 0.10)          /* of the time that a finding is about: a smaller part is not worth a sentence */  \
    L(HOT_CODE, 0.20)          /* of the time of the program, in one line or function */                          \
    L(GIL, 0.20)               /* of the time in which threads want to run: waiting for the interpreter lock */    \
    L(OPERATION_INFO, 0.20)    /* of the self time of all spans */                                                \
    L(OPERATION_OF_RUN, 0.05)  /* of the run's time: less is ignored */                                           \
    L(STEP_RATIO, 2)           /* slowest over fastest */                                                         \
    L(STEP_TAIL, 1.25)         /* p95 over p50 */                                                                 \
    L(STEP_EXCESS, 0.01)       /* of step time: time of slow steps beyond the median */                           \
    L(STEP_SHORTEST, 1e6)      /* ns: of the slowest; below, it is system jitter */                               \
    L(FIRST_STEP_RATIO, 2)     /* first over median of the others */                                              \
    L(FIRST_STEP_COST, 10e6)   /* ns beyond the median */                                                         \
    L(FIRST_STEP_OF_RUN, 0.10) /* above this, a warning */                                                        \
    L(LOADING, 0.30)           /* of the steps */                                                                 \
    L(FORWARD, 0.50)                                                                                              \
    L(BACKWARD, 0.40)                                                                                             \
    L(DROPPED_CRITICAL, 0.50)  /* of all spans */                                                                 \
    /* torch */                                                                                                   \
    L(WAITS_FOR_DATA, 0.15)    /* of the steps */                                                                 \
    L(OUTSIDE_MODEL, 0.30)     /* of the steps: outside of their phases */                                        \
    L(OUTSIDE_STEPS, 0.30)     /* of the time from the first step to the last, without its longest gap */         \
    L(SINGLE_WORKER, 0.05)     /* of the steps, waiting for at most one worker */                                 \
    L(WORKERS_BUSY, 0.70)      /* of their time: below, more workers do not help */                               \
    L(COPIES, 0.02)            /* of the steps */                                                                 \
    L(UNPINNED, 0.50)          /* of the copied bytes */                                                          \
    L(SYNC, 0.05)              /* of the steps: host blocked */                                                   \
    L(SMALL_OPERATOR, 30e3)    /* ns: below, launch overhead dominates */                                         \
    L(MANY_OPERATORS, 200)     /* in a step */                                                                    \
    L(SMALL_SHARE, 0.50)       /* of the steps: forward and backward */                                           \
    L(FP32, 0.50)              /* of the steps: forward and backward */                                           \
    L(RECOMPILES, 2)                                                                                              \
    L(RECOMPILING, 0.02)       /* of the run */                                                                   \
    L(OPTIMIZER, 0.15)         /* of the steps */                                                                 \
    L(STRAGGLER, 1.25)         /* a rank's own time over the median of the other ranks */                         \
    L(STRAGGLER_LOST, 0.05)    /* of its step: time beyond that median */                                         \
    L(CHECKPOINTS, 0.05)       /* of steady state */                                                              \
    L(WORKER_RESTARTS, 0.05)   /* of steady state */                                                              \
    L(GRAPH_GROWTH, 2)         /* times its first size */                                                         \
    /* what the Python package measures itself: blocks, loaders, models */                                        \
    L(OPERATION_LARGE, 0.50)   /* of the time of all blocks */                                                    \
    L(GROWTH_PART, 0.125)      /* of a growth: in each part of the snapshots */                                   \
    L(BATCH_LOADING, 10e6)     /* ns a batch, where no step time is known */                                      \
    L(WORKER_BATCH, 1e6)       /* ns to load a batch: below, passing it between processes costs more */           \
    L(WORKER_START, 0.5e9)     /* ns in every epoch */                                                            \
    L(PREPROCESSING, 0.50)     /* of the loading */                                                               \
    L(GPU_ROOM, 0.50)          /* of a GPU's memory: below, a larger batch may fit */                             \
    L(OPTIMIZED, 0.03)         /* of the time: a smaller gain of an optimization is ignored */                    \
    L(OPTIMIZED_MEMORY, 0.02)  /* of the memory */                                                                \
    L(SCALING_FIT, 0.90)       /* R squared: below, a prediction says that the line does not fit */               \
    L(SCALING_FURTHEST, 4)     /* times the largest or smallest size measured */                                  \
    L(MODEL_GAIN, 1.15)        /* times as fast: a smaller gain is ignored */                                     \
    L(MODEL_MEMORY, 0.80)      /* of the device's memory */                                                       \
    L(MODEL_BLOCKED, 0.25)     /* of a run: neither running nor waiting for a CPU */                              \
    L(MODEL_SMALL, 0.50)       /* of the operators' time: in operators below SMALL_OPERATOR */                    \
    L(ELEMENTWISE, 0.20)       /* of the operators' time */                                                       \
    L(WEIGHTS_BYTES, 16777216.0) /* bytes of weights … */                                                         \
    L(WEIGHTS_WORK, 16)        /* … and operations for each: below, reading them is most of a run */              \
    L(ACTIVATION_BYTES, 268435456.0)                                                                              \
    L(ACTIVATION_RATIO, 2)     /* times the weights */                                                            \
    L(PAGE_FAULTS, 256)        /* in a run: a megabyte that the kernel allocates again in each run */             \
    L(PAGE_FAULT_COST, 250)    /* ns: the least that one costs (an estimate) */                                   \
    L(PAGE_FAULT_TIME, 0.02)   /* of a run */                                                                     \
    L(GROWTH_A_RUN, 65536.0)   /* bytes */

typedef enum rule_limit {
#define TARE__LIMIT_ID(id, value) LIMIT_##id,
    TARE__LIMITS(TARE__LIMIT_ID)
#undef TARE__LIMIT_ID
    LIMIT_COUNT
} rule_limit;

typedef struct limit_row {
    const char *name;
    double value;
} limit_row;
extern const limit_row tare__rule_limits[LIMIT_COUNT];

static inline double limit(rule_limit which)
{
    return tare__rule_limits[which].value;
}

/* ---- findings being written (findings.c) ----------------------------------------------------- */
#define FINDINGS_MAX 128u
#define FIGURES_MAX 12u

typedef struct findings {
    tare__arena *arena;
    tare__finding rows[FINDINGS_MAX];
    uint16_t order[FINDINGS_MAX]; /* index of their rule */
    tare__evidence figures[FINDINGS_MAX][FIGURES_MAX];
    size_t n;
    tare__finding *now; /* the last one */
    uint16_t rule;      /* index of the rule being evaluated */
    const char *rule_id;
    bool failed;        /* out of memory */
} findings;

/* Adds a finding of the rule being evaluated, about which the functions below say more; texts are "" until then.
 * Never NULL: when full, returns the spare row. */
tare__finding *tare__finding_add(findings *out, tare__severity severity);
bool tare__finding_has(const findings *out, const char *id); /* an earlier rule has this finding */
/* Each adds a sentence to a text of the last finding. */
void tare__say_title(findings *out, const char *format, ...) TARE__PRINTF(2, 3);
void tare__say_evidence(findings *out, const char *format, ...) TARE__PRINTF(2, 3);
void tare__say_advice(findings *out, const char *format, ...) TARE__PRINTF(2, 3);
void tare__say_gain(findings *out, double gain, const char *how, ...) TARE__PRINTF(3, 4); /* NaN: not predicted */
void tare__say_when(findings *out, double from_ns, double to_ns);
void tare__say_when_above(findings *out, const tare__metric_row *row, double level); /* the longest such time */
void tare__say_figure(findings *out, const char *name, double value, tare__metric_unit unit);

/* A value formatted for people. */
typedef struct shown {
    char text[TARE__VALUE_BYTES];
} shown;
shown tare__show(double value, tare__metric_unit unit);
shown tare__show_time(double ns);
static inline shown percent(double share)
{
    return tare__show(share, TARE__SHOW_SHARE);
}
static inline shown count(double value)
{
    return tare__show(value, TARE__SHOW_COUNT);
}
static inline shown bytes(double value)
{
    return tare__show(value, TARE__SHOW_BYTES);
}
/* With its noun: "1 step", "12 steps"; many NULL: one with an s. */
typedef struct shown_counted {
    char text[TARE__COUNTED_BYTES];
} shown_counted;
shown_counted tare__show_counted(double value, const char *one, const char *many);
/* A name from the trace, shortened. */
typedef struct shown_name {
    char text[256];
} shown_name;
shown_name tare__show_name(const char *name);

/* ---- rules (rules.c) ------------------------------------------------------------------------- */
typedef struct rule {
    const char *id;
    bool endangers; /* reports that a run failed, will fail or is unreliable: sorted before mere time costs */
    bool whole;     /* it reads the tables of the whole run; else those of steady state */
    void (*evaluate)(findings *out, const tare__analysis *of);
} rule;
/* In the fixed order that breaks ties: id, endangers, whole, function. docs/FINDINGS.md describes each. */
#define TARE__RULES(R)                                  \
    R("killed-oom", true, true, killed)                 \
    R("memory-growth", true, false, memory_growth)      \
    R("memory-high", true, true, memory_high)           \
    R("gpu-memory-errors", true, true, gpu_errors)      \
    R("gpu-memory-high", true, true, gpu_memory)        \
    R("kept-losses", true, true, kept_losses)           \
    R("growing-graph", true, true, growing_graph)       \
    R("spans-dropped", true, true, dropped)             \
    R("startup", true, true, startup)                   \
    R("cpu-throttled", false, false, throttled)         \
    R("swap", false, false, swap)                       \
    R("disk-bound", false, false, disk_bound)           \
    R("data-loading", false, false, loading)            \
    R("loader-bound", false, false, loader_bound)       \
    R("worker-restarts", false, false, worker_restarts) \
    R("outside-model", false, false, outside_model)     \
    R("outside-steps", false, false, outside_steps)     \
    R("sync-points", false, false, sync_points)         \
    R("small-operators", false, false, small_operators) \
    R("unpinned-copies", false, false, unpinned)        \
    R("straggler", false, false, straggler)             \
    R("checkpoints", false, false, checkpoints)         \
    R("recompiles", false, false, recompiles)           \
    R("gpu-idle-gaps", false, false, gpu_gaps)          \
    R("gpu-underused", false, false, gpu_busy)          \
    R("torch-threads", false, false, torch_threads)     \
    R("threads-oversubscribed", false, false, crowded)  \
    R("one-core", false, false, one_core)               \
    R("shared-machine", false, false, shared_machine)   \
    R("disk-busy", false, false, disk_busy)             \
    R("iowait", false, false, iowait)                   \
    R("cpu-hot", false, true, cpu_hot)                  \
    R("gpu-hot", false, false, gpu_hot)                 \
    R("cpu-high", false, false, cpu_high)               \
    R("step-variance", false, false, step_variance)     \
    R("slow-first-step", false, true, first_step)       \
    R("forward", false, false, forward)                 \
    R("backward", false, false, backward)               \
    R("single-worker", false, false, single_worker)     \
    R("unfused-optimizer", false, false, unfused)       \
    R("fp32-matmul", false, false, fp32)                \
    R("operation", false, false, operations)            \
    R("gil", false, false, gil)                         \
    R("hot-code", false, false, hot_code)               \
    R("own-profiler", false, true, own_profiler)        \
    R("network-errors", false, true, network_errors)    \
    R("memory-large", false, true, memory_large)        \
    R("ended-by-signal", false, true, ended_by_signal)  \
    R("exit-status", false, true, exit_status)
extern const rule tare__rule_table[];
extern const size_t tare__rule_count;

/* A symptom comes after its cause, or is dropped if the cause covers it completely. */
typedef struct rule_pair {
    const char *cause, *symptom;
    bool dropped;
} rule_pair;
extern const rule_pair tare__rule_pairs[];
extern const size_t tare__rule_pair_count;

#define TARE__RULE_DECLARE(id, endangers, whole, function) \
    void tare__rule_##function(findings *out, const tare__analysis *of);
TARE__RULES(TARE__RULE_DECLARE)
#undef TARE__RULE_DECLARE

/* All built-in rules, then the user's, into analysis->findings, worst first. `steady`: the same tables of steady state
 * only; NULL: the whole run is. 0 or TARE_E_MEMORY. */
int tare__analyze_findings(tare__analysis *analysis, const tare__analysis *steady, const tare__rules *rules);
/* The user's (user_evaluate.c). */
void tare__user_rules_evaluate(findings *out, const tare__analysis *of, const tare__rules *rules);

/* ---- the program (rules_startup.c) ----------------------------------------------------------- */
/* Whether a Python process of the run imported a module (its top-level name); torch also by facts that the package
 * records. */
bool tare__imported(const tare__analysis *of, const char *module);
bool tare__has_loader(const tare__analysis *of); /* it uses a DataLoader of torch */
bool tare__is_python(const tare__analysis *of);

/* Upper bound of the time saved by loading in the background: loading takes `load_ns` in one worker, training waits
 * for it for `wait_ns`, and computes for `compute_ns`. With `then` workers an iteration takes the longer of its
 * compute time and of its loading time divided by them. */
double tare__saved_by_workers(double wait_ns, double compute_ns, double load_ns, double then);
/* Waiting costs time only if nothing else is busy: a GPU that is working meanwhile has work queued. */
bool tare__compute_is_idle(const tare__analysis *of);
/* Limits a gain of the host: the run cannot become shorter than the work of its GPUs. */
double tare__beside_gpu(const tare__analysis *of, double gain);

/* ---- ranks (rules_ranks.c) ------------------------------------------------------------------- */
/* The upper bound of a gain with several ranks. `gain` returns the share of its time that one rank saves. Ranks wait
 * for the slowest, so the bound is the largest of these, not their mean; for processes that ran one after the other
 * it is the sum. *most: the rank with the largest; NULL if the tables are of one process, or it is all of them. */
typedef double rank_gain(const tare__analysis *rank, const void *context);
double tare__gain_of_ranks(const tare__analysis *of, rank_gain *gain, const void *context, const tare__analysis **most);
/* Upper bound of the compute time of the backward pass, if ranks wait for each other in it: that of the rank which
 * waits least. NaN: not ranks of one job. */
double tare__least_backward_ns(const tare__analysis *of);
/* Says the gain and the rank it is of; `how` is the text before that. */
void tare__say_rank_gain(findings *out, const tare__analysis *of, rank_gain *gain, const void *context,
                         const char *how);

/* ---- rows and curves over time (rules_curves.c) ---------------------------------------------- */
/* The next row of this kind at or after *at, which is advanced past it; NULL: no more. Skips rows without values. */
const tare__metric_row *tare__rows_next(const tare__analysis *of, size_t *at, tare__metric metric,
                                        tare__subject_kind subject);
/* The first one. */
const tare__metric_row *tare__rows_first(const tare__analysis *of, tare__metric metric, tare__subject_kind subject);
/* Another metric of the same subject. */
const tare__metric_row *tare__rows_beside(const tare__analysis *of, const tare__metric_row *row, tare__metric metric);

typedef struct curve_point {
    double at, lasts, value;
} curve_point;

typedef struct curve {
    size_t n;
    curve_point points[TARE__POINTS_MAX];
} curve;

/* A row's points; if they were not kept, one point that covers the row. False: there is no data. */
bool tare__curve_of(const tare__metric_row *row, curve *curve);
/* Mean of a row between two instants, weighted by time; NaN: less than half of that time is known. */
double tare__row_mean(const tare__metric_row *row, double from_ns, double to_ns);
double tare__curve_mean(const curve *curve);
double tare__curve_length(const curve *curve); /* ns known */

/* Where a condition holds. */
typedef struct stretch {
    double held_ns, known_ns;
    double share;          /* of the known time; NaN: nothing is known */
    double from_ns, to_ns; /* the longest interval; NaN: none */
    double mean;           /* of the value while the condition holds */
    unsigned times;
} stretch;
typedef bool stretch_test(const curve_point *point, const void *context);
stretch tare__curve_where(const curve *curve, stretch_test *test, const void *context);
stretch tare__curve_above(const curve *curve, double level); /* at or above */
stretch tare__curve_below(const curve *curve, double level); /* below */

/* CPU of all processes in cores: user and system. False: not known. */
bool tare__tree_cores(const tare__analysis *of, curve *curve);
/* A gauge of all processes: the tree's own row, else the sum over processes. */
bool tare__tree_curve(const tare__analysis *of, tare__metric metric, curve *curve);
/* Share of the machine's CPU time: steal, iowait. NaN: not known, or too few samples. */
double tare__machine_share(const tare__analysis *of, tare__metric metric);
/* Mean pressure of the run's container, else of the machine. NaN: not known. */
double tare__pressure_of(const tare__analysis *of, tare__metric metric);
/* Threads of the job that were runnable but not running, on average: preempted, or waiting for a CPU in use by
 * others. NaN: not known. */
double tare__kept_off_cpu(const tare__analysis *of);
/* Time for which threads were runnable but other processes used the CPUs that the job is allowed to use. Excess
 * threads of the job itself do not count. NaN: not known. */
double tare__cpu_wait_ns(const tare__analysis *of);
/* Cores used by other processes, if no core was idle and tasks waited for a CPU. A program that sleeps between its
 * steps then waits for a CPU when it wakes up, too briefly for samples of thread states. NaN: not the case, or not
 * known. */
double tare__cores_taken(const tare__analysis *of);
/* Long enough for a conclusion from samples. */
bool tare__curve_enough(const curve *curve);
/* Whether the run used a given GPU: its processes were seen there, or its memory grew during the run. */
bool tare__gpu_used(const tare__analysis *of, uint64_t gpu);
bool tare__any_gpu_used(const tare__analysis *of);
bool tare__steps_only_queue(const tare__analysis *of); /* with torch, on a GPU: most steps do not wait for it */

#endif
