/* stacks: tables of sampled stacks: threads, functions, lines, packages, and the call tree, which flame graphs show.
 * Part of an analysis, in its arena. Included by analyze.h.
 * Must not know how stacks are sampled, nor output formats. */
#ifndef TARE_ANALYZE_STACKS_H
#define TARE_ANALYZE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/format.h"

/* Time by what the thread did, indexed by tare__thread_state: RUNNING is time on a CPU, RUNNABLE ready without one, the
 * others are waiting. UNKNOWN is always 0. They add up to the time that they are said to be of. */
typedef struct tare__state_times {
    double ns[TARE__STATE_COUNT];
} tare__state_times;

/* "running", "runnable", "gil", …, the same in every output; "other" for a state of another version. */
const char *tare__state_word(uint32_t state);
/* For sentences: "running", "waiting for a CPU", "waiting for the network", "sleeping". */
const char *tare__state_phrase(uint32_t state);
/* The same, where it is known in which function it waits (NULL: not known): "waiting for another thread". */
const char *tare__wait_phrase(uint32_t state, const char *inner, const char *inner_file);
bool tare__waits_for_thread(uint32_t state, const char *inner, const char *inner_file);
/* Whether it is one of these functions of a Python module: "/threading.py". Before 3.11, names have no class. */
bool tare__is_function(const char *name, const char *file, const char *module, const char *const *names, size_t n);
/* The part of a file's path below the folder of installed packages or of the standard library: "json/decoder.py".
 * NULL: it is in neither, like code of the program. *standard (may be NULL): it is in the standard library. */
const char *tare__module_path(const char *file, bool *standard);
const char *tare__frame_kind_word(uint32_t kind); /* "python", "native", "kernel", "note" */

/* The leading thread is the one whose wall time is the time of the program: the main thread of the first process, or
 * the thread that works while that one only waits for it. Active time is all time of the leading thread, and of other
 * threads what they spend on a CPU, waiting for one, for the GIL or for a disk: a thread that waits for work is not
 * active. */
typedef struct tare__sampled_thread_row { /* the leading thread first, then by active time descending */
    int64_t pid, tid;
    const char *name;     /* NULL: not known */
    uint32_t process;     /* row in processes; TARE__NO_ROW when the file does not say */
    bool main;            /* the first thread of its process */
    bool leading;
    uint64_t samples;
    uint64_t torn;        /* of these: the stack changed while it was read */
    double from_ns, to_ns; /* instants: begin and end of the time that its samples stand for */
    double wall_ns;       /* time that its samples stand for */
    tare__state_times of; /* of wall_ns */
    double active_ns;
    double no_stack_ns;   /* of wall_ns: in samples without a stack */
    double gc_ns;         /* of wall_ns: in samples during a garbage collection */
} tare__sampled_thread_row;

typedef struct tare__function_row { /* by active time descending */
    const char *function; /* qualified name; of a note, its text */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* first line; 0: not known */
    uint32_t kind;        /* tare__frame_kind */
    const char *package;  /* as in packages; NULL: none */
    bool own;             /* code of the program itself, not of a package or the standard library */
    uint64_t samples;     /* in which it is the innermost frame */
    double self_ns;       /* time in which it is the innermost frame … */
    tare__state_times of; /* … by state */
    double total_ns;      /* time in which it is on the stack, recursion counted once */
    double main_ns;       /* of self_ns: of the leading thread */
    double active_ns, active_total_ns; /* of self_ns and total_ns */
    double self_share, total_share;    /* of the active time of all threads; NaN when that is 0 */
} tare__function_row;

/* A line of Python code. The time in native code that it calls belongs to it. */
typedef struct tare__line_row { /* by active time descending */
    const char *file;     /* NULL: lines that were merged for lack of space */
    uint32_t line;
    const char *function; /* qualified name */
    const char *package;
    bool own;             /* as of functions */
    uint64_t samples;     /* in which it is the innermost line; of own code: the innermost own line */
    double self_ns;       /* time in which it is the innermost line */
    double own_ns;        /* time in which it is the innermost line of own code, whatever that calls; NaN: not own */
    double total_ns;      /* time in which it is on the stack, recursion counted once */
    tare__state_times of; /* of own_ns; of self_ns where that is NaN, as are the following */
    tare__state_times main; /* of it: of the leading thread */
    double main_ns;       /* sum of `main` */
    double main_share;    /* of the wall time of the leading thread; NaN: there is none */
    double active_ns;
    double share;         /* of the active time of all threads; NaN when that is 0 */
    const char *inner;    /* innermost function of most of own_ns; NULL: the line's own function, or not own */
    const char *inner_file;
    uint32_t inner_line;  /* its first line; 0: not known */
    double inner_ns;      /* of own_ns: in it; NaN when inner is NULL */
} tare__line_row;

typedef struct tare__package_row { /* by active time descending */
    const char *package;  /* "pandas", "json"; "your code"; the text of a note */
    const char *kind;     /* "own", "standard library", "package", "native", "note" */
    uint64_t samples;
    double self_ns;       /* time in which the innermost frame that belongs to a package is of this one … */
    tare__state_times of; /* … by state */
    double total_ns;      /* time in which it is on the stack */
    double main_ns, main_share; /* as of lines, of self_ns */
    double active_ns;
    double share;         /* active_ns of that of all threads; NaN when that is 0 */
} tare__package_row;

/* Time inside spans of a name, those inside of them included; of any thread that was sampled. */
typedef struct tare__span_line_row { /* by span_ns descending, then ns; at most 10 lines of a name */
    const char *span;     /* name */
    uint32_t kind;        /* tare_kind */
    const char *file;     /* as of lines */
    uint32_t line;
    const char *function;
    bool own;
    uint64_t samples;
    double span_ns;       /* sampled time inside of these spans */
    double ns;            /* … of that: the line is the innermost one of own code; without own code, the innermost */
    double share;         /* of span_ns */
    tare__state_times of; /* of ns */
    const char *inner;    /* innermost function of most of it; NULL: of own code, or the line itself */
    uint32_t path, number; /* private */
} tare__span_line_row;

/* A module of Python that was imported while stacks were sampled, in any process. */
typedef struct tare__sampled_import_row { /* by total_ns descending; at most 1000 */
    const char *module;  /* "pandas.core.frame"; of own code, the name of the file */
    const char *file;
    const char *package; /* as in packages; NULL: none */
    uint64_t samples;    /* in which it is the innermost import */
    double self_ns;      /* time in which it is the innermost import: its own code and what that calls, and finding and
                          * reading the modules that it imports, extension modules included */
    double total_ns;     /* with the modules that it imports */
    double outer_ns;     /* of total_ns: not while another module of its top-level package is being imported */
} tare__sampled_import_row;

/* Which samples of stacks the tables are made of. Zeroed: all. */
typedef struct tare__stack_filter {
    const char *within; /* inside of spans of this name; "a/b": b directly inside of a */
    const char *phase;  /* "startup", "steady", "shutdown" */
    int64_t pid;
    const char *thread; /* name or id */
    bool gpu_idle;      /* while no GPU of the run is busy */
} tare__stack_filter;
bool tare__stack_filter_is_set(const tare__stack_filter *filter);

/* ---- call tree ------------------------------------------------------------------------------------------ */
typedef enum tare__stack_node_kind {
    TARE__NODE_PROCESS = 1, /* at depth 0 */
    TARE__NODE_THREAD,      /* at depth 1, directly inside its process */
    TARE__NODE_FRAME,       /* a function at a line; of native frames, a function */
    TARE__NODE_OTHER,       /* small nodes of its parent, merged: "(other)" */
    TARE__NODE_NO_STACK     /* samples of a thread without a stack: "(no stack)" */
} tare__stack_node_kind;

/* Depth first; processes and threads in the order of sampled_threads, frames by total descending, merged ones last. The
 * first child of node i is i + 1 if n_rows > 0, its next sibling is i + 1 + n_rows. */
typedef struct tare__stack_node {
    tare__stack_node_kind what;
    const char *name;      /* function, thread or process; never NULL */
    const char *file;      /* NULL: not known, or not a frame */
    uint32_t line;         /* that was executed; 0: not known */
    uint32_t first_line;   /* of the function; 0: not known */
    uint32_t kind;         /* tare__frame_kind; 0: not a frame */
    const char *package;   /* NULL: none */
    bool own;              /* code of the program itself */
    uint32_t thread;       /* row in sampled_threads; TARE__NO_ROW of a process, and of merged threads */
    uint32_t parent;       /* row; TARE__NO_ROW at depth 0 */
    uint32_t depth, n_rows; /* n_rows: all rows below it */
    uint64_t samples;      /* self */
    double self_ns;
    tare__state_times of;  /* of self_ns */
    double total_ns;       /* self and all rows below */
    double total_cpu_ns;   /* of total_ns: on a CPU */
    double active_ns;      /* of total_ns */
} tare__stack_node;

#define TARE__STACK_NODES_MAX 20000u

typedef struct tare__stack_tree {
    const tare__stack_node *nodes;
    size_t n;          /* 0: no stacks were sampled; at most TARE__STACK_NODES_MAX */
    double wall_ns;    /* of all threads: the sum of the totals at depth 0 */
    double active_ns;
    uint32_t leading;  /* row in sampled_threads; TARE__NO_ROW: none */
    const char *only;  /* which samples a filter kept: "within data"; NULL: all */
    double smallest_ns; /* nodes with a smaller total are merged; 0: none are */
    tare__line_row outside; /* main_ns, main_share, main and inner: of the leading thread without a line of own code */
} tare__stack_tree;

#endif
