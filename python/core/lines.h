/* lines: shared declarations of line profiling. Everything runs attached to the interpreter, with its lock.
 * A function is a code object that is being watched; its counters only grow, and a profile is the difference of
 * two readings of them.
 * Must not know spans, nor how the counts are used. */
#ifndef TARE_PYTHON_LINES_H
#define TARE_PYTHON_LINES_H

#include "core.h"

typedef struct tare__py_line {
    uint64_t hits, ticks;
} tare__py_line;

/* Lines from `first` on. */
typedef struct tare__py_table {
    int first, room;
    tare__py_line *lines;
} tare__py_table;

typedef struct tare__py_function {
    PyObject *code; /* kept */
    tare__py_table table;
    unsigned users; /* profiles that count it */
    unsigned open;  /* activations of it, of all threads */
    int *line_of;   /* by instruction, filled as needed; NULL: not yet */
} tare__py_function;

/* ---- tables (lines_table.c) ------------------------------------------------------------------------------ */
/* The line's counters, created if they do not exist; NULL: out of memory, or not a valid line number. */
tare__py_line *tare__py_table_at(tare__py_table *table, int line);
int tare__py_table_copy(tare__py_table *to, const tare__py_table *from);                             /* 0 or -1 */
int tare__py_table_add(tare__py_table *to, const tare__py_table *more, const tare__py_table *less);  /* 0 or -1 */
void tare__py_table_free(tare__py_table *table);

/* ---- what runs on each thread (lines_stack.c) ------------------------------------------------------------ */
void tare__py_lines_enter(tare__py_function *function, int line); /* 0: the line is reported later */
void tare__py_lines_at(tare__py_function *function, int line);
void tare__py_lines_leave(tare__py_function *function);
tare__py_function *tare__py_lines_running(PyObject *code); /* the innermost one if it is this code's; else NULL */
void tare__py_lines_settle(void);                          /* brings the counters up to now */
void tare__py_lines_forget(tare__py_function *function);   /* its activations end here */
void tare__py_lines_forked(void);                          /* in the child: the other threads are gone */
uint64_t tare__py_lines_now(void);                         /* ticks */
double tare__py_lines_tick_s(void);                        /* seconds a tick */
void tare__py_lines_clock_begin(void);

/* ---- which functions (lines.c) --------------------------------------------------------------------------- */
tare__py_function *tare__py_lines_find(PyObject *code); /* watched; else NULL */
/* Code that begins and is not watched: profiles with a chooser are asked, once. NULL: no profile wants it. */
tare__py_function *tare__py_lines_meet(PyObject *code);

/* ---- how the interpreter reports lines (lines_monitoring.c, lines_trace.c before 3.12) --------------------- */
int tare__py_lines_hooks_add(void);
/* Before the first function is watched, and whenever `discover` (at everything that begins) changes. */
int tare__py_lines_hooks_on(bool discover);
void tare__py_lines_hooks_off(void); /* preserves a pending exception */
int tare__py_lines_watch(PyObject *code);
void tare__py_lines_unwatch(PyObject *code);

#endif
