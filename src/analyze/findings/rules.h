/* rules: what the files of the findings share: limits by name, curves over time, and how a finding is written.
 * Owned by the thread that analyzes; for this room only.
 * Must not know how tables are made. */
#ifndef TARE_ANALYZE_RULES_H
#define TARE_ANALYZE_RULES_H

#include "analyze/analyze.h"
#include "stat/stat.h"

/* ---- limits: every threshold of every rule (docs/FINDINGS.md tells them all) ----------------- */
/* Times in ns, memory in bytes, shares of 1. */
#define TARE__LIMITS(L)                                                                                           \
    /* when there is enough to tell anything */                                                                   \
    L(SHORTEST_RUN, 1e9)       /* ns: samples of a shorter run say nothing */                                     \
    L(FEWEST_SAMPLES, 5)       /* of a series */                                                                  \
    L(HELD, 0.5)               /* share of the time in which a condition has to hold */                           \
    L(SHORTEST_SPANS, 10e6)    /* ns: spans of a shorter run say nothing */                                       \
    L(FEWEST_STEPS, 5)                                                                                            \
    L(STARTUP_OF_RUN, 0.50)    /* from here on startup is what the run is about … */                             \
    L(STARTUP_SHORTEST, 0.5e9) /* ns … where it took as long */                                                  \
    /* memory */                                                                                                  \
    L(MEMORY_INFO, 0.85)       /* of what may be used */                                                          \
    L(MEMORY_WARNING, 0.90)                                                                                       \
    L(MEMORY_CRITICAL, 0.95)                                                                                      \
    L(MEMORY_LARGE, 16e9)      /* bytes, when it is not known what may be used */                                 \
    L(GROWTH_SHORTEST, 1.5e9)  /* ns after the warm-up */                                                         \
    L(GROWTH_WARM_UP, 0.25)    /* of the run: not looked at */                                                    \
    L(GROWTH_BYTES, 100e6)                                                                                        \
    L(GROWTH_A_MINUTE, 0.10)   /* of what it has */                                                               \
    L(GROWTH_LEAST, 16e6)      /* bytes: below, a share a minute is no news */                                    \
    L(GROWTH_FIT, 0.80)        /* R squared of the straight line */                                               \
    L(GROWTH_FURTHEST, 10)     /* times the time seen: no further does a prediction alarm */                      \
    L(SWAPPED, 16777216.0)     /* bytes of the job */                                                             \
    L(SWAP_TRAFFIC, 67108864.0) /* bytes in and out, of the machine */                                            \
    L(SWAP_HEAVY, 10485760.0)  /* bytes a second in, over the run */                                              \
    L(KILLED_AT, 0.95)         /* of what may be used: a SIGKILL there is taken for want of memory */             \
    /* CPU */                                                                                                     \
    L(CPU_INFO, 0.90)          /* of what may be used */                                                          \
    L(CPU_WARNING, 0.95)                                                                                          \
    L(THROTTLED_INFO, 0.05)    /* of the periods */                                                               \
    L(THROTTLED_WARNING, 0.20)                                                                                    \
    L(THROTTLED_LEAST, 10)     /* periods */                                                                      \
    L(ONE_CORE_LEAST, 0.85)    /* cores of all processes */                                                       \
    L(ONE_CORE_MOST, 1.25)                                                                                        \
    L(CORES_FREE, 0.50)        /* cores that were idle: below, others had them, and spreading work gains nothing */ \
    L(ONE_THREAD, 0.90)        /* of the CPU time: one thread's */                                                \
    L(CROWDED, 1.5)            /* threads ready to run for each core */                                           \
    L(CROWDED_SWITCHES, 20)    /* forced switches a second and core */                                            \
    L(STEAL, 0.10)             /* of the machine's CPU time */                                                    \
    L(PRESSURE_CPU, 0.20)      /* of the time */                                                                  \
    L(PREEMPTED, 0.10)         /* threads ready to run that did not: steps differ for that */                     \
    L(WAITING_FOR_CPU, 0.25)   /* threads ready to run that did not */                                            \
    /* disks and network */                                                                                       \
    L(IOWAIT, 0.20)            /* of the machine's CPU time */                                                    \
    L(DISK_BUSY_INFO, 0.80)    /* of the time */                                                                  \
    L(DISK_BUSY_WARNING, 0.90)                                                                                    \
    L(DISK_BYTES, 1048576.0)   /* a second, of the job: below, it is not its doing */                             \
    L(DISK_WAIT, 0.40)         /* of the time */                                                                  \
    L(DISK_WAIT_LEAST, 0.20)   /* of the time, where it had to wait for a CPU most of the rest … */               \
    L(DISK_WAIT_OF_OWN, 0.60)  /* … and of the time in which it waited for a disk or ran */                       \
    L(DISK_WAIT_CRITICAL, 0.80)                                                                                   \
    L(NETWORK_ERRORS, 100)     /* packets */                                                                      \
    L(NETWORK_ERRORS_RATE, 1)  /* packets a second */                                                             \
    /* GPU */                                                                                                     \
    L(GPU_SAMPLES, 20)         /* of how busy it is: fewer say nothing */                                         \
    L(GPU_BUSY, 0.70)          /* of the time */                                                                  \
    L(GPU_WORKS, 0.50)         /* of the time: a thread that runs meanwhile may just wait for it */               \
    L(GPU_MEMORY, 0.90)                                                                                           \
    L(GPU_USED_BYTES, 67108864.0) /* growth of its memory that tells that the run uses it */                      \
    L(GPU_IDLE, 0.01)          /* of the time: below, it is a gap */                                              \
    L(GPU_GAP, 500e6)          /* ns: the shortest gap */                                                         \
    L(GPU_GAPS_INFO, 0.10)     /* of the time in which it was in use */                                           \
    L(GPU_GAPS_WARNING, 0.25)                                                                                     \
    L(GPU_SLOWED, 0.05)        /* of the time */                                                                  \
    /* spans and steps */                                                                                         \
    L(OPERATION_INFO, 0.20)    /* of the self time of all spans */                                                \
    L(OPERATION_OF_RUN, 0.05)  /* of the run's time: below, it is no news */                                      \
    L(STEP_RATIO, 2)           /* slowest over fastest */                                                         \
    L(STEP_TAIL, 1.25)         /* p95 over p50 */                                                                 \
    L(STEP_EXCESS, 0.01)       /* of the steps' time: what slow steps took beyond the median */                   \
    L(STEP_SHORTEST, 1e6)      /* ns: of the slowest; below, it is the machine's jitter */                        \
    L(FIRST_STEP_RATIO, 2)     /* first over median of the others */                                              \
    L(FIRST_STEP_COST, 10e6)   /* ns beyond the median */                                                         \
    L(FIRST_STEP_OF_RUN, 0.10) /* from here on a warning */                                                       \
    L(LOADING, 0.30)           /* of the steps */                                                                 \
    L(FORWARD, 0.50)                                                                                              \
    L(BACKWARD, 0.40)                                                                                             \
    L(DROPPED_CRITICAL, 0.50)  /* of all spans */                                                                 \
    /* torch */                                                                                                   \
    L(WAITS_FOR_DATA, 0.15)    /* of the steps */                                                                 \
    L(OUTSIDE_MODEL, 0.30)     /* of the steps: in none of their phases */                                        \
    L(OUTSIDE_STEPS, 0.30)     /* of the time from the first step to the last, without its longest gap */         \
    L(SINGLE_WORKER, 0.05)     /* of the steps, waiting for one worker or none */                                 \
    L(WORKERS_BUSY, 0.70)      /* of their time: below, their number is not what limits loading */                \
    L(COPIES, 0.02)            /* of the steps */                                                                 \
    L(UNPINNED, 0.50)          /* of what was copied */                                                           \
    L(SYNC, 0.05)              /* of the steps, blocked */                                                        \
    L(SMALL_OPERATOR, 30e3)    /* ns: what starting one costs is then most of it */                               \
    L(MANY_OPERATORS, 200)     /* in a step */                                                                    \
    L(SMALL_SHARE, 0.50)       /* of the steps: forward and backward */                                           \
    L(FP32, 0.50)              /* of the steps: forward and backward */                                           \
    L(RECOMPILES, 2)                                                                                              \
    L(RECOMPILING, 0.02)       /* of the run */                                                                   \
    L(OPTIMIZER, 0.15)         /* of the steps */                                                                 \
    L(STRAGGLER, 1.25)         /* a rank's own time over the median of the others' */                             \
    L(STRAGGLER_LOST, 0.05)    /* of its step: what it takes longer */                                            \
    L(CHECKPOINTS, 0.05)       /* of steady state */                                                              \
    L(WORKER_RESTARTS, 0.05)   /* of steady state */                                                              \
    L(GRAPH_GROWTH, 2)         /* times its first size */

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

/* ---- findings under way (findings.c) --------------------------------------------------------- */
#define FINDINGS_MAX 128u
#define FIGURES_MAX 12u

typedef struct findings {
    tare__arena *arena;
    tare__finding rows[FINDINGS_MAX];
    uint16_t order[FINDINGS_MAX]; /* place of their rule */
    tare__evidence figures[FINDINGS_MAX][FIGURES_MAX];
    size_t n;
    uint16_t rule;      /* place of the rule that looks now */
    const char *rule_id;
    bool failed;        /* no memory */
} findings;

/* A new finding of the rule that looks; texts are "" until told. Never NULL: past the last one, a spare. */
tare__finding *tare__finding_add(findings *out, tare__severity severity);
bool tare__finding_has(const findings *out, const char *id); /* a rule before it has found something */
/* Adds a sentence, behind a blank where there is one already. */
void tare__finding_say(findings *out, const char **text, const char *format, ...) TARE__PRINTF(3, 4);
void tare__finding_figure(findings *out, tare__finding *finding, const char *name, double value,
                          tare__metric_unit unit);

/* A value as people read it. */
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
/* A name of the trace, shortened. */
typedef struct shown_name {
    char text[256];
} shown_name;
shown_name tare__show_name(const char *name);

/* ---- rules (rules.c) ------------------------------------------------------------------------- */
typedef struct rule {
    const char *id;
    bool endangers; /* it tells that a run ends, will end or cannot be trusted: before what only costs time */
    bool whole;     /* it reads the tables of the whole run; else those of steady state */
    void (*evaluate)(findings *out, const tare__analysis *of);
} rule;
/* In the fixed order that decides between equals. */
extern const rule tare__rule_table[];
extern const size_t tare__rule_count;

/* A symptom comes after its cause, or goes where the cause says all of it. */
typedef struct rule_pair {
    const char *cause, *symptom;
    bool dropped;
} rule_pair;
extern const rule_pair tare__rule_pairs[];
extern const size_t tare__rule_pair_count;

void tare__rule_outside_steps(findings *out, const tare__analysis *of);
void tare__rule_startup(findings *out, const tare__analysis *of);
void tare__rule_killed(findings *out, const tare__analysis *of);
void tare__rule_ended_by_signal(findings *out, const tare__analysis *of);
void tare__rule_exit_status(findings *out, const tare__analysis *of);
void tare__rule_dropped(findings *out, const tare__analysis *of);
void tare__rule_memory_growth(findings *out, const tare__analysis *of);
void tare__rule_memory_high(findings *out, const tare__analysis *of);
void tare__rule_memory_large(findings *out, const tare__analysis *of);
void tare__rule_swap(findings *out, const tare__analysis *of);
void tare__rule_throttled(findings *out, const tare__analysis *of);
void tare__rule_crowded(findings *out, const tare__analysis *of);
void tare__rule_one_core(findings *out, const tare__analysis *of);
void tare__rule_cpu_high(findings *out, const tare__analysis *of);
void tare__rule_shared_machine(findings *out, const tare__analysis *of);
void tare__rule_cpu_hot(findings *out, const tare__analysis *of);
void tare__rule_disk_bound(findings *out, const tare__analysis *of);
void tare__rule_disk_busy(findings *out, const tare__analysis *of);
void tare__rule_iowait(findings *out, const tare__analysis *of);
void tare__rule_network_errors(findings *out, const tare__analysis *of);
void tare__rule_gpu_errors(findings *out, const tare__analysis *of);
void tare__rule_gpu_hot(findings *out, const tare__analysis *of);
void tare__rule_gpu_memory(findings *out, const tare__analysis *of);
void tare__rule_gpu_busy(findings *out, const tare__analysis *of);
void tare__rule_gpu_gaps(findings *out, const tare__analysis *of);
void tare__rule_loading(findings *out, const tare__analysis *of);
void tare__rule_operations(findings *out, const tare__analysis *of);
void tare__rule_forward(findings *out, const tare__analysis *of);
void tare__rule_backward(findings *out, const tare__analysis *of);
void tare__rule_first_step(findings *out, const tare__analysis *of);
void tare__rule_step_variance(findings *out, const tare__analysis *of);
void tare__rule_loader_bound(findings *out, const tare__analysis *of);
void tare__rule_single_worker(findings *out, const tare__analysis *of);
void tare__rule_unpinned(findings *out, const tare__analysis *of);
void tare__rule_sync_points(findings *out, const tare__analysis *of);
void tare__rule_small_operators(findings *out, const tare__analysis *of);
void tare__rule_fp32(findings *out, const tare__analysis *of);
void tare__rule_outside_model(findings *out, const tare__analysis *of);
void tare__rule_straggler(findings *out, const tare__analysis *of);
void tare__rule_own_profiler(findings *out, const tare__analysis *of);
void tare__rule_worker_restarts(findings *out, const tare__analysis *of);
void tare__rule_checkpoints(findings *out, const tare__analysis *of);
void tare__rule_recompiles(findings *out, const tare__analysis *of);
void tare__rule_unfused(findings *out, const tare__analysis *of);
void tare__rule_kept_losses(findings *out, const tare__analysis *of);
void tare__rule_growing_graph(findings *out, const tare__analysis *of);
void tare__rule_torch_threads(findings *out, const tare__analysis *of);

/* All built-in rules, then the user's, into analysis->findings, worst first. `steady`: the same tables of steady state
 * only; NULL: the whole run is. 0 or TARE_E_MEMORY. */
int tare__analyze_findings(tare__analysis *analysis, const tare__analysis *steady, const tare__rules *rules);
/* The user's (user_evaluate.c). */
void tare__user_rules_evaluate(findings *out, const tare__analysis *of, const tare__rules *rules);

/* ---- the program (rules_startup.c) ----------------------------------------------------------- */
/* A Python process of the run imported it (its top-level name); torch also by what the package notes of it. */
bool tare__imported(const tare__analysis *of, const char *module);
bool tare__is_python(const tare__analysis *of);

/* Time that loading in the background saves at most: loading takes `load_ns` of one worker, `wait_ns` of the training's
 * time are spent waiting for it, and the rest of that time takes `compute_ns`. With `then` workers an iteration takes
 * the longer of its compute and of its loading divided by them. */
double tare__saved_by_workers(double wait_ns, double compute_ns, double load_ns, double then);
/* Waiting costs only where it keeps nothing busy: a GPU that works meanwhile has work queued. */
bool tare__compute_is_idle(const tare__analysis *of);
/* What the host saves makes the run no shorter than its GPUs work. */
double tare__beside_gpu(const tare__analysis *of, double gain);

/* ---- ranks (rules_ranks.c) ------------------------------------------------------------------- */
/* The upper bound of a gain with several ranks: what following the advice saves of the time of each is given, and
 * they wait for the slowest, so that it is the largest of them, not their mean. Of processes that ran one after the
 * other it is the sum. *most: the one that has most; NULL where the tables are of one process, or it is all of them. */
typedef double rank_gain(const tare__analysis *rank, const void *context);
double tare__gain_of_ranks(const tare__analysis *of, rank_gain *gain, const void *context, const tare__analysis **most);
/* What the backward pass itself takes at most, where ranks wait in it for each other: that of the rank which waits
 * least. NaN: not ranks of one job. */
double tare__least_backward_ns(const tare__analysis *of);
/* As a finding's gain, with a word on which rank it is; before it comes what it is. */
void tare__finding_gain(findings *out, tare__finding *finding, const tare__analysis *of, rank_gain *gain,
                        const void *context, const char *how);

/* ---- rows and curves over time (rules_curves.c) ---------------------------------------------- */
/* The next row of this kind at or behind *at, which moves behind it; NULL: no more. Rows without values are left
 * out. */
const tare__metric_row *tare__rows_next(const tare__analysis *of, size_t *at, tare__metric metric,
                                        tare__subject_kind subject);
/* The first one. */
const tare__metric_row *tare__rows_first(const tare__analysis *of, tare__metric metric,
                                         tare__subject_kind subject);
/* Another metric of the same subject. */
const tare__metric_row *tare__rows_beside(const tare__analysis *of, const tare__metric_row *row,
                                          tare__metric metric);

typedef struct curve_point {
    double at, lasts, value;
} curve_point;

typedef struct curve {
    size_t n;
    curve_point points[TARE__POINTS_MAX];
} curve;

/* A row's points; where they were not kept, one as long as all of it. False: there is nothing. */
bool tare__curve_of(const tare__metric_row *row, curve *curve);
/* Adds another row, point by point; where that one has no value the sum has none, or stays when `stays` (of
 * something that was not there then). */
void tare__curve_add(curve *curve, const tare__metric_row *row, bool stays);
/* Mean of a row between two instants, weighted by time; NaN: less than half of it is known. */
double tare__row_mean(const tare__metric_row *row, double from_ns, double to_ns);
double tare__curve_mean(const curve *curve);
double tare__curve_length(const curve *curve); /* ns known */

/* Where a condition holds. */
typedef struct stretch {
    double held_ns, known_ns;
    double share;          /* held of known; NaN: nothing is known */
    double from_ns, to_ns; /* the longest one; NaN: none */
    double mean;           /* of the value where it holds */
    unsigned times;
} stretch;
typedef bool stretch_test(const curve_point *point, const void *context);
stretch tare__curve_where(const curve *curve, stretch_test *test, const void *context);
stretch tare__curve_above(const curve *curve, double level); /* at or above */
stretch tare__curve_below(const curve *curve, double level); /* below */
void tare__finding_when(tare__finding *finding, const stretch *stretch);

/* CPU of a subject in cores: user and system. False: not known. */
bool tare__cores_of(const tare__analysis *of, const tare__metric_row *user, curve *curve);
bool tare__tree_cores(const tare__analysis *of, curve *curve);
/* A gauge of all processes: the tree's own row, else the sum over processes. */
bool tare__tree_curve(const tare__analysis *of, tare__metric metric, curve *curve);
/* Share of the machine's CPU time: steal, iowait. NaN: not known, or too short to tell. */
double tare__machine_share(const tare__analysis *of, tare__metric metric);
/* Mean pressure of the run's container, else of the machine. NaN: not known. */
double tare__pressure_of(const tare__analysis *of, tare__metric metric);
/* Threads of the job that were runnable and did not run, on average: preempted, or waiting for a CPU that others had.
 * NaN: not known. */
double tare__kept_off_cpu(const tare__analysis *of);
/* Time for which threads were runnable on CPUs that the job is allowed to use, and others had them. More threads of its
 * own than CPUs do not count. NaN: not known. */
double tare__cpu_wait_ns(const tare__analysis *of);
/* Cores that other processes used, where they and the job left none idle and tasks waited for a CPU; a program that
 * sleeps between its steps then waits for a CPU when it wakes up, too briefly for samples of thread states. NaN: not
 * so, or not known. */
double tare__cores_taken(const tare__analysis *of);
/* Long enough for samples to tell anything. */
bool tare__curve_enough(const curve *curve);
/* The run used a GPU (which one): its processes were seen there, or its memory grew meanwhile. */
bool tare__gpu_used(const tare__analysis *of, uint64_t gpu);
bool tare__any_gpu_used(const tare__analysis *of);
bool tare__steps_only_queue(const tare__analysis *of); /* with torch, on a GPU: most of them do not wait for it */

#endif
