/* blocks: shared declarations of the block recorder. Everything runs attached to the interpreter, with its lock.
 * Must not know how the results are used. */
#ifndef TARE_PYTHON_BLOCKS_H
#define TARE_PYTHON_BLOCKS_H

#include "core.h"
#include "machine.h"
#include "readings.h"

#include "stat/stat.h"

typedef struct tare__py_recorder tare__py_recorder;
typedef struct tare__py_lane tare__py_lane;

/* ---- a finished block (result.c) --------------------------------------------------------------------------- */
typedef struct tare__py_result {
    PyObject_HEAD
    PyObject *name;
    PyObject *parent; /* NULL: none */
    PyObject *task;   /* its name; NULL: not in a task */
    unsigned long thread;
    uint64_t wall_ns, self_ns, own_ns, cpu_ns, process_cpu_ns;
    uint64_t rss_before, rss_after, rss_peak;
    uint64_t rss_at_most; /* rss_peak is a lower bound and this is its upper bound; 0: rss_peak is exact */
    uint64_t excluded_ns; /* of other measurements inside it, excluded from all its times */
    double started;
    double samples; /* NaN: not counted */
    uint32_t depth;
    bool failed, aggregate, cpu, memory, peak, moved;
    uint32_t system;       /* the requested readings of the machine */
    tare__py_usage usage;
    PyObject *extra;       /* added by the creator of the block; NULL: nothing */
} tare__py_result;
tare__py_result *tare__py_result_new(void); /* all zero except for the object header */
PyObject *tare__py_ns_as_seconds(uint64_t ns);
PyObject *tare__py_seconds_at(PyObject *object, void *offset); /* a getter: of a uint64_t with nanoseconds */
PyObject *tare__py_count_or_missing(double count, const char *reason); /* a whole one as an int; NaN: missing */
PyObject *tare__py_usage_or_missing(double value, uint32_t requested, uint32_t kind);
PyObject *tare__py_peak_note(uint64_t at_most); /* None: 0 */
/* Percent of a CPU; wall_ns 0: no block was long enough. */
PyObject *tare__py_busy_or_missing(bool requested, uint64_t cpu_ns, uint64_t wall_ns);
PyObject *tare__py_rate_or_missing(double samples, uint64_t ns);

/* ---- all blocks of a name (aggregate.c) ---------------------------------------------------------------------- */
typedef struct tare__py_named {
    PyObject_HEAD
    PyObject *name;
    tare_site site; /* of the span; the text lives as long as the name */
    uint64_t generation;
    uint64_t count, unkept, failed, total_ns, self_ns, min_ns, max_ns, sampled_ns, cpu_ns, process_cpu_ns;
    uint64_t rss_peak, with_memory, with_peak, with_cpu;
    double usage_s[3], usage_sum[3]; /* of CPU, iowait and disk: seconds with a known value, percent times seconds */
    double received, sent;           /* NaN: not read */
    uint32_t system;
    int64_t rss_delta;
    double samples;
    uint64_t rss_at_most;            /* of the block with the largest peak; 0: all peaks are exact */
    uint64_t busy_wall_ns, busy_ns;  /* of blocks that are long enough: time, and CPU time of the process */
    uint64_t excluded_ns;
    tare__hist hist;
} tare__py_named;
tare__py_named *tare__py_named_new(PyObject *name);
void tare__py_named_add(tare__py_named *named, const tare__py_result *result);
PyObject *tare__py_named_snapshot(const tare__py_named *named);

/* ---- an open block, and the lanes they are in (lane.c) ------------------------------------------------------- */
typedef struct tare__py_open {
    struct tare__py_open *below; /* in its lane */
    PyObject *block;
    tare__py_lane *lane;
    uint64_t start, self_ns, own_ns, excluded_ns, excluded_cpu_ns, cpu, process_cpu, rss;
    unsigned long thread;
    double counted; /* samples; NaN: none */
    double loaded;  /* samples of the batches that a loader gave; NaN: none */
    tare__py_machine machine;
    tare__py_peak peak;
    uint32_t depth;
    bool span;
} tare__py_open;

/* A thread or a task, for one recorder: blocks in it are nested, and time belongs to the innermost one. */
struct tare__py_lane {
    tare__py_recorder *recorder;
    struct tare__py_holder *holder; /* NULL: the thread or task is gone */
    tare__py_lane *next_of_recorder, *previous_of_recorder;
    tare__py_lane *next_of_holder;
    tare__py_open *top;
    tare__py_result *last;
    uint64_t changed; /* when a block was entered or left */
};
/* The lane of what runs now. NULL with an exception. */
tare__py_lane *tare__py_lane_now(tare__py_recorder *recorder);
/* The name of the lane's task, borrowed; NULL: a thread's. */
PyObject *tare__py_lane_task(const tare__py_lane *lane);
/* Frees all lanes of a recorder that is being freed. */
void tare__py_lanes_drop(tare__py_recorder *recorder);
/* After a block was left: frees the lane if it is empty and its thread or task has ended. */
void tare__py_lane_left(tare__py_lane *lane);
/* Adds to the sample counts of all open blocks of this thread or task, of any recorder. `loaded`: counted by a loader;
 * such samples are used for a block only where the program does not count them itself. */
void tare__py_lanes_count(double samples, bool loaded);
/* Excludes this much of the most recent time and CPU time, which the program did not spend, from all open blocks of
 * this thread or task, of any recorder. */
void tare__py_lanes_exclude(uint64_t ns, uint64_t cpu_ns);
bool tare__py_lanes_open(void); /* this thread or task is in a block */

/* ---- what keeps them (recorder.c) and what measures one (block.c) ---------------------------------------------- */
struct tare__py_recorder {
    PyObject_HEAD
    PyObject *names;      /* name to tare__py_named, the first NAMES_MAX */
    tare__py_named *rest; /* all other names; NULL: none yet */
    tare__py_named *last; /* last requested, borrowed from names; NULL: none */
    tare__py_lane *lanes;
    tare__py_result **ring;
    uint64_t finished; /* total number put into the ring; the newest `keep` remain */
    size_t room, keep;
    uint64_t generation; /* incremented when everything is cleared */
    uint64_t own_ns;     /* spent in measuring */
    uint32_t system; /* what is read of the machine around a block */
    bool memory, peak, reset_peak, cpu, enabled;
};
#define TARE__PY_NAMES_MAX 4096
#define TARE__PY_OTHER_NAMES "(other names)"
/* The sums a name belongs to: its own, or those of all other names. A new reference; NULL with an exception. */
tare__py_named *tare__py_recorder_named(tare__py_recorder *recorder, PyObject *name);
void tare__py_recorder_keep(tare__py_recorder *recorder, tare__py_result *result); /* takes its own reference */
/* A block to enter; NULL with an exception. Samples: NaN for none. */
PyObject *tare__py_block_new(tare__py_recorder *recorder, PyObject *name, bool aggregate, double samples);
PyObject *tare__py_block_idle(void); /* one that measures nothing, a new reference */
bool tare__py_read_samples(PyObject *object, double *samples); /* None: NaN; false with an exception */

#endif
