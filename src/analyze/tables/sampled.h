/* sampled: state of the analysis of sampled stacks, from the pass over the samples to the tables.
 * Owned by the thread that analyzes; used inside analyze only.
 * Must not know files, or how rows are displayed. */
#ifndef TARE_ANALYZE_SAMPLED_H
#define TARE_ANALYZE_SAMPLED_H

#include "analyze/inner.h"

/* ---- the pass (stacks.c) -------------------------------------------------------------------------------- */
/* All samples of a thread with one stack in one state. */
typedef struct sampled_cell {
    uint32_t thread, stack; /* numbers in the file; stack 0: none */
    uint32_t state;         /* never UNKNOWN */
    uint32_t path;          /* spans around it: row in the paths of the work; 0: none */
    uint32_t node;          /* of the stack, from tare__analyze_sampled_nodes on */
    uint32_t next;          /* in its thread's window */
    uint64_t samples;
    double wall_ns;
    double cpu_ns;          /* of wall_ns: if all of it was on or waiting for a CPU, by the windows of its samples */
    double open_ns;         /* of wall_ns: in the window that is not closed yet */
} sampled_cell;

/* A part of a thread's time: how long it waits for a CPU can be different in the next one. */
typedef struct sampled_window {
    double wall_ns, cpu_ns, queue_ns;
    double on_ns;   /* running or ready when sampled, and not idle */
    uint32_t first; /* of the cells with time in it */
} sampled_window;

typedef struct sampled_thread {
    uint64_t samples, torn;
    uint64_t first, last;   /* ticks; of the first: less the time that it stands for */
    double wall_ns, cpu_ns, queue_ns, gc_ns, no_stack_ns;
    double own_ns;  /* of wall_ns: in code of the program, or called by it; after the nodes */
    double idle_ns; /* of wall_ns: running when sampled, but hardly on or waiting for a CPU since the last sample */
    double state_ns[TARE__STATE_COUNT]; /* of wall_ns, by the state when it was sampled */
    double cpu_of[2];   /* cpu_ns of its cells: [1] of those that are running or ready */
    sampled_window window;
    uint32_t last_cell; /* of its newest sample */
    bool was_on;        /* … it was running or ready */
    uint32_t row;       /* in sampled_threads, after its table; TARE__NO_ROW: not sampled */
} sampled_thread;

#define TARE__NO_CELL UINT32_MAX

typedef struct sampled {
    size_t taken;      /* samples so far: the number of the next one */
    sampled_cell *cells;
    size_t n_cells, cells_room;
    tare__index index;
    sampled_thread *threads; /* by number */
    uint32_t n_threads;      /* the largest number */
} sampled;

uint32_t tare__analyze_sample_state(const tare__stack_sample *sample); /* never UNKNOWN */

/* ---- time by state (stacks_split.c) ---------------------------------------------------------------------- */
/* How the time of a thread's samples in one state is divided into states: the shares of each row add up to 1. */
typedef struct sampled_split {
    double on;                        /* on or waiting for a CPU, of time sampled there */
    double given;                     /* the same, of time sampled in a waiting state */
    double cpu;                       /* on a CPU, of the time on or waiting for one */
    double windows;                   /* the same by the windows of its samples */
    double waits[TARE__STATE_COUNT];  /* of time sampled there and not spent there; add up to 1 */
    bool counted;                     /* false: without counters, states are as sampled */
} sampled_split;

void tare__analyze_open_window(sampled_thread *thread);
/* One sample: its times. */
void tare__analyze_add_to_window(sampled *sampled, sampled_thread *thread, uint32_t cell, const sampled_window *add);
void tare__analyze_close_window(sampled *sampled, sampled_thread *thread);
sampled_split tare__analyze_sampled_split(const sampled_thread *thread);
/* `cpu_ns`: of a cell, or several of one state. */
void tare__analyze_sampled_times(const sampled_split *split, uint32_t state, double wall_ns, double cpu_ns,
                                 tare__state_times *add);
double tare__analyze_active(const tare__state_times *of); /* of a thread that does not lead */

/* ---- call tree by stack (stacks_nodes.c) ------------------------------------------------------------------ */
typedef enum sampled_origin { ORIGIN_NONE, ORIGIN_OWN, ORIGIN_STANDARD, ORIGIN_PACKAGE, ORIGIN_NATIVE, ORIGIN_NOTE }
    sampled_origin;

typedef struct sampled_function { /* a function of the file that is used */
    const char *name, *file; /* in the arena; file NULL: not known */
    uint32_t kind, first_line;
    uint32_t file_id;        /* the same for the same file */
    uint32_t package;        /* TARE__NO_ROW: of its caller's */
    uint32_t generated;      /* the same function, where it is no code of the program; 0: none yet */
    bool own;
} sampled_function;

typedef struct sampled_package {
    const char *name;
    sampled_origin origin;
} sampled_package;

/* Stacks that differ only in the offset within a native function are one node. A caller has a smaller number. */
typedef struct sampled_node {
    uint32_t caller;   /* 0: none */
    uint32_t function; /* index of a sampled_function */
    uint32_t line;     /* of Python code; 0: none */
    uint32_t line_row, self_line, own_line; /* its own, the innermost, the innermost of own code; TARE__NO_ROW */
    uint32_t package;  /* of the innermost frame that has one; TARE__NO_ROW */
    bool imports;      /* it is of the import system, or called by it */
    bool startup;      /* of a .pth file, which the interpreter runs before the program, or of another generated text */
} sampled_node;

typedef struct sampled_line {
    uint32_t function, line; /* index of a sampled_function */
} sampled_line;

typedef struct sampled_nodes {
    sampled_node *nodes; /* [0] is none */
    size_t n, room;
    uint32_t *node_of;   /* stack: node */
    sampled_function *functions;
    size_t n_functions, functions_room;
    uint32_t *function_of; /* number in the file: index + 1 */
    sampled_package *packages;
    size_t n_packages, packages_room;
    sampled_line *lines;
    size_t n_lines, lines_room;
    tare__index node_index, line_index;
    tare__intern *files, *package_names;
    bool text_program; /* the program is no file: python -c */
} sampled_nodes;

/* Makes the nodes of all cells and sorts these by thread, then node. 0 or TARE_E_MEMORY. */
int tare__analyze_sampled_nodes(const work *work, sampled *sampled, tare__arena *arena, sampled_nodes *made);
void tare__analyze_free_sampled_nodes(sampled_nodes *nodes);

/* The package of a file: its name in *name, *length bytes long. */
sampled_origin tare__analyze_package(uint32_t kind, const char *file, const char **name, size_t *length);

/* ---- uses: cells for questions about time (stacks_uses.c, findings/hot.c) ------------------------------------- */
typedef struct use_line {
    const char *file, *function; /* file NULL: not known */
    uint32_t line;
    uint32_t in; /* its function: row */
    bool own;
} use_line;

typedef struct use_function {
    const char *name, *file;
    uint32_t package; /* row in packages; TARE__NO_ROW: none */
    bool own;
} use_function;

typedef struct use_path { /* of spans: [0] is outside of all */
    uint32_t outer, kind;
    const char *name;
} use_path;

typedef struct use { /* time of a thread, inside the same spans, with one stack in one state */
    uint32_t thread;         /* row in sampled_threads */
    uint32_t path;
    uint32_t own_line, line; /* rows: innermost line of own code, innermost line; TARE__NO_ROW: none */
    uint32_t inner;          /* innermost function: row */
    uint32_t package;        /* row in packages; TARE__NO_ROW: none */
    bool imports;            /* inside the import system */
    uint32_t state;          /* as sampled; tare__analyze_sampled_times has the time by state */
    uint64_t samples;
    double wall_ns, cpu_ns;  /* cpu_ns: see sampled_cell */
} use;

typedef struct tare__uses {
    const use *rows;
    size_t n;
    const use_line *lines;
    size_t n_lines;
    const use_function *functions;
    const char *const *packages;
    size_t n_functions, n_packages;
    const use_path *paths;
    size_t n_paths;
    const sampled_split *splits; /* by row in sampled_threads */
} tare__uses;

int tare__analyze_sampled_imports(const sampled *sampled, const sampled_nodes *nodes, tare__analysis *analysis);
int tare__analyze_span_lines(tare__analysis *analysis); /* after uses: 0 or TARE_E_MEMORY */
int tare__analyze_uses(const work *work, const sampled_nodes *nodes, tare__analysis *analysis);

/* ---- tables: 0 or TARE_E_MEMORY --------------------------------------------------------------------------- */
int tare__analyze_sampled_threads(const work *work, sampled *sampled, const sampled_nodes *nodes,
                                  tare__analysis *analysis);
int tare__analyze_sampled_tables(const sampled *sampled, const sampled_nodes *nodes, tare__analysis *analysis);
int tare__analyze_stack_tree(const work *work, const sampled_nodes *nodes, tare__analysis *analysis);

#endif
