/* task: spans of asyncio's tasks, which take turns on one thread: each task has a track, and its spans are
 * complete spans there. A task's state is stored in its context, which the tasks it creates copy: this links a span
 * to the one that caused it.
 * Any thread, attached to the interpreter. Must not know what is measured in a span. */
#include "core.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

typedef struct open_span {
    tare_site *site;
    PyObject *owner;
    const void *who; /* identifies it among the open spans of its site; NULL: not given */
    uint64_t start, id, parent;
    uint32_t track;
} open_span;

struct tare__py_task {
    PyObject_HEAD
    PyObject *context; /* the task this state belongs to; tasks that copied the context have their own */
    uint64_t cause;    /* id of the span that was open when the task was created; 0: none */
    uint32_t track;
    uint32_t depth;
    size_t room;
    open_span *open;
    tare__py_task *next, **at; /* all that are alive */
};

static PyTypeObject task_type;
static tare__py_task *alive;
/* Spans of tasks that were freed: a generator may outlive the task that began it. */
static open_span *orphans;
static uint32_t n_orphans;
static size_t orphans_room;
static PyObject *state;            /* the context variable */
static PyObject *running_loop, *current_task; /* of asyncio; NULL: not imported yet */
static _Atomic uint64_t last_id;
/* The context in which this thread was last found to run no loop: most threads never have another. */
static __thread PyObject *plain __attribute__((tls_model("initial-exec")));

/* ---- the object ---------------------------------------------------------------------------------------- */

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    tare__py_task *task = (tare__py_task *)self;
    Py_VISIT(task->context);
    for (uint32_t i = 0; i < task->depth; i++)
        Py_VISIT(task->open[i].owner);
    return 0;
}

static int clear(PyObject *self)
{
    tare__py_task *task = (tare__py_task *)self;
    Py_CLEAR(task->context);
    for (uint32_t i = 0; i < task->depth; i++)
        if (tare__array_fit(&orphans, &orphans_room, n_orphans + 1, sizeof *orphans))
            orphans[n_orphans++] = task->open[i];
        else
            Py_DECREF(task->open[i].owner);
    task->depth = 0;
    return 0;
}

static void drop(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    tare__py_task *task = (tare__py_task *)self;
    *task->at = task->next;
    if (task->next)
        task->next->at = task->at;
    free(task->open);
    PyObject_GC_Del(self);
}

static PyTypeObject task_type = {
    TARE__PY_TYPE("tare._core._Task", tare__py_task, Py_TPFLAGS_HAVE_GC, NULL),
    .tp_dealloc = drop,
    .tp_traverse = traverse,
    .tp_clear = clear,
};

/* ---- which task runs ------------------------------------------------------------------------------------- */

/* asyncio is not imported for this: if the program has not, no task runs. Checked only after another import. */
static bool find_asyncio(void)
{
    static Py_ssize_t modules_seen;
    if (current_task)
        return true;
    PyObject *modules = PyImport_GetModuleDict();
    if (!modules || PyDict_Size(modules) == modules_seen)
        return false;
    modules_seen = PyDict_Size(modules);
    PyObject *asyncio = PyDict_GetItemString(modules, "asyncio");
    if (!asyncio)
        return false;
    PyObject *loop = PyObject_GetAttrString(asyncio, "_get_running_loop");
    PyObject *task = loop ? PyObject_GetAttrString(asyncio, "current_task") : NULL;
    if (!task) { /* partially imported */
        Py_XDECREF(loop);
        PyErr_Clear();
        modules_seen = 0;
        return false;
    }
    running_loop = loop;
    current_task = task;
    return true;
}

/* The running task (a new reference), or NULL without an exception. */
static PyObject *find_task(void)
{
    PyObject *loop = PyObject_CallNoArgs(running_loop), *task = NULL;
    if (loop == Py_None)
        plain = PyThreadState_Get()->context;
    else if (loop)
        task = PyObject_CallFunctionObjArgs(current_task, loop, NULL);
    Py_XDECREF(loop);
    if (task == Py_None)
        Py_CLEAR(task);
    PyErr_Clear();
    return task;
}

static uint32_t track_of(PyObject *task)
{
    PyObject *name = PyObject_CallMethod(task, "get_name", NULL);
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    uint32_t track = tare_track(text ? text : "task", TARE_TRACK_TASK);
    Py_XDECREF(name);
    PyErr_Clear();
    return track;
}

static tare__py_task *make_state(PyObject *context, const tare__py_task *from)
{
    PyObject *task = find_task();
    tare__py_task *made = task ? PyObject_GC_New(tare__py_task, &task_type) : NULL;
    if (made) {
        made->track = track_of(task);
        made->cause = from && from->depth ? from->open[from->depth - 1].id : 0;
        made->depth = 0;
        made->room = 0;
        made->open = NULL;
        made->next = alive;
        made->at = &alive;
        if (alive)
            alive->at = &made->next;
        alive = made;
        made->context = context;
        Py_INCREF(context);
        PyObject_GC_Track((PyObject *)made);
        PyObject *token = PyContextVar_Set(state, (PyObject *)made);
        Py_XDECREF(token);
        if (!token)
            Py_CLEAR(made);
    }
    Py_XDECREF(task);
    PyErr_Clear();
    Py_XDECREF(made); /* the context keeps it */
    return made;
}

tare__py_task *tare__py_task_now(void)
{
    PyObject *context = PyThreadState_Get()->context, *value = NULL;
    if (!context || context == plain || !find_asyncio())
        return NULL;
    if (PyContextVar_Get(state, NULL, &value))
        return PyErr_Clear(), NULL;
    tare__py_task *known = (tare__py_task *)value;
    Py_XDECREF(value); /* the context keeps it */
    return known && known->context == context ? known : make_state(context, known);
}

/* ---- its spans --------------------------------------------------------------------------------------------- */

void tare__py_task_begin(tare__py_task *task, tare_site *site, PyObject *owner, const void *who)
{
    if (!tare__array_fit(&task->open, &task->room, task->depth + 1, sizeof *task->open))
        return;
    uint64_t parent = task->depth ? task->open[task->depth - 1].id : task->cause;
    uint64_t id = atomic_fetch_add(&last_id, 1) + 1;
    Py_INCREF(owner);
    task->open[task->depth++] = (open_span){site, owner, who, tare_now(), id, parent, task->track};
}

typedef enum match { EXACT, UNTOLD, ANY } match;

/* Its place + 1, the innermost that fits; 0: not found. */
static uint32_t find_span(const open_span *spans, uint32_t n, const tare_site *site, const void *who, match match)
{
    while (n && (spans[n - 1].site != site || (match == EXACT && (!who || spans[n - 1].who != who)) ||
                 (match == UNTOLD && spans[n - 1].who)))
        n--;
    return n;
}

static bool end_span(open_span *spans, uint32_t *n, uint32_t at)
{
    if (!at)
        return false;
    open_span span = spans[at - 1];
    memmove(spans + at - 1, spans + at, (*n - at) * sizeof *spans);
    --*n;
    tare_complete(span.site, &(tare_complete_span){span.track, span.start, tare_now(), span.id, span.parent, 0});
    Py_DECREF(span.owner);
    return true;
}

static bool end_in(tare__py_task *task, const tare_site *site, const void *who, match match)
{
    return task && end_span(task->open, &task->depth, find_span(task->open, task->depth, site, who, match));
}

static bool end_elsewhere(const tare_site *site, const void *who, match match)
{
    for (tare__py_task *task = alive; task; task = task->next)
        if (task->depth && end_in(task, site, who, match))
            return true;
    return end_span(orphans, &n_orphans, find_span(orphans, n_orphans, site, who, match));
}

bool tare__py_task_end(tare__py_task *task, tare_site *site, const void *who)
{
    if (!task && !alive && !n_orphans)
        return false;
    if (end_in(task, site, who, EXACT) || end_in(task, site, who, UNTOLD))
        return true;
    if (who && end_elsewhere(site, who, EXACT))
        return true;
    if (end_in(task, site, who, ANY))
        return true;
    return !tare__py_stack_has(site) && end_elsewhere(site, who, ANY);
}

static int prepare(PyObject *module)
{
    /* Ids of other processes of the run must differ. */
    atomic_store(&last_id, (uint64_t)getpid() << 40);
    state = PyContextVar_New("tare", NULL);
    return state ? 0 : -1;
}

const tare__py_part tare__py_part_tasks = {.inner_type = &task_type, .prepare = prepare};
