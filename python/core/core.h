/* core: shared declarations of the extension. Everything runs attached to the interpreter, with its lock where
 * there is one.
 * Must not know how the measurements are used. */
#ifndef TARE_PYTHON_CORE_H
#define TARE_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stdbool.h>
#include <stdint.h>

#include <tare.h>

#include "read_numbers.h"

#if PY_VERSION_HEX < 0x030A0000
static inline PyObject *Py_XNewRef(PyObject *object)
{
    Py_XINCREF(object);
    return object;
}
#define Py_NewRef(object) Py_XNewRef(object)
#endif

/* The slots that every type has: its name, the struct of its objects, flags beside the default ones, its doc string.
 * The others follow in the same initializer. */
#define TARE__PY_TYPE(name, object, flags, doc)                                                    \
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = name, .tp_doc = doc, .tp_basicsize = sizeof(object),  \
    .tp_flags = Py_TPFLAGS_DEFAULT | (flags)

/* What one file adds to the module (module.c has the list). */
typedef struct tare__py_part {
    PyTypeObject *type;       /* under the last part of its name */
    PyTypeObject *inner_type; /* not visible in the module */
    PyMethodDef *functions;
    int (*prepare)(PyObject *module); /* when its types are ready; 0, or -1 with an exception */
} tare__py_part;

void tare__py_note_own_waits(void); /* by threads of this package, each time that they wake up (heap.c) */

/* tare.Missing(reason), a new reference; NULL with an exception (missing.c). */
PyObject *tare__py_missing(const char *reason);
/* What a span or block is as a decorator: wraps the function given as the only argument (span.c). */
PyObject *tare__py_decorate(PyObject *self, PyObject *arguments, PyObject *named);
/* introduce.c: records in the trace which interpreter this is, once it records. */
void tare__py_introduce(void);
extern unsigned tare__py_sessions; /* that this process has started so far (session.c) */

/* ---- the stack of a thread's open spans (stack.c) ------------------------------------------------------ */
/* Spans of one thread are nested in the trace. Where Python's are not (a generator is left in the middle of a
 * block and resumes later), those in between are ended and begun again, and a number in the trace marks the parts as
 * one call. */
void tare__py_stack_begin(tare_site *site, PyObject *owner); /* the site's, kept while the span is open */
void tare__py_stack_end(tare_site *site);
/* Steps and epochs, by the functions of the recorder: spans that generators hold open inside of them continue. */
void tare__py_mark_begin(tare_kind kind, void (*begin)(uint64_t), uint64_t index);
void tare__py_mark_next(tare_kind kind, void (*next)(uint64_t), uint64_t index);
void tare__py_mark_end(tare_kind kind, void (*end)(void));
/* Of several open spans of one site, `who` selects the one that ends: a value that is equal at a span's begin and end
 * and differs between the spans; NULL: the innermost. `last` is called when the span is the innermost, before it
 * ends. */
typedef void tare__py_stack_last(void *context);
void tare__py_stack_begin_as(tare_site *site, PyObject *owner, const void *who);
void tare__py_stack_end_as(tare_site *site, const void *who, tare__py_stack_last *last, void *context);
tare_site *tare__py_stack_top(void); /* of the calling thread; NULL: nothing is open */
bool tare__py_stack_has(const tare_site *site); /* it is open on this thread */
bool tare__py_stack_is_unreported(const tare_site *site); /* … and the innermost, begun without `who` */
tare_site *tare__py_stack_above(const tare_site *site); /* the span directly inside the innermost of that site; NULL */
/* Called for one site's span that is cut where a span around it ends, once before its first part ends and once after
 * the second has begun; and for each span of any thread that begins, has begun or has ended while `watching`. */
typedef struct tare__py_stack_watcher {
    tare_site *site;
    void (*cut)(bool begun_again);
    void (*begins)(const tare_site *site);
    void (*begun)(void);
    void (*ended)(const tare_site *site);
    bool watching;
} tare__py_stack_watcher;
extern tare__py_stack_watcher tare__py_stack_watched;
extern uint64_t tare__py_stack_watched_begun; /* spans of its site, so far */

/* ---- asyncio (task.c) ------------------------------------------------------------------------------------ */
/* Spans of a task are not nested in its thread's spans: they are complete spans on a separate track for the task. */
typedef struct tare__py_task tare__py_task;
/* The running task's state; NULL: no task runs (with no exception), or it could not be created (not reported: a
 * span is then recorded as the thread's). */
tare__py_task *tare__py_task_now(void);
void tare__py_task_begin(tare__py_task *task, tare_site *site, PyObject *owner, const void *who);
/* `who` as for the stack. NULL: no task runs. A generator may be closed by another task than the one that began its
 * span, or outside of any task. False: the span is not a task's. */
bool tare__py_task_end(tare__py_task *task, tare_site *site, const void *who);

/* After Py_AddPendingCall by another thread: the main one runs it at its next bytecode (breaker.c). */
void tare__py_break(PyThreadState *main_thread);
PyThreadState *tare__py_main_thread(void); /* with the interpreter's lock. NULL: not found, or it is not needed */

/* The program reports its steps and epochs itself: those inferred by watching torch end, and no more are inferred. */
void tare__torch_steps_reported(void);

#endif
