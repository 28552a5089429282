/* lane: which thread or task a block is in. A thread's lanes are stored in its state, a task's in its context, so that
 * they are freed with it.
 * Any thread, attached to the interpreter. Must not know what is measured in a block. */
#include "blocks.h"

#include <math.h>
#include <stdlib.h>

/* What a thread or a task has: a lane for each recorder it used. */
typedef struct tare__py_holder {
    PyObject_HEAD
    PyObject *task;      /* its state of task.c, which identifies it; NULL: a thread's */
    PyObject *task_name; /* NULL: a thread's, or it could not be read */
    tare__py_lane *lanes; /* the last used first */
} holder;

static PyTypeObject holder_type;
static PyObject *of_task;   /* the context variable */
static PyObject *of_thread; /* the key in the thread state's dict */

static __thread struct {
    uint64_t thread_state;
    holder *known;
} mine __attribute__((tls_model("initial-exec")));

/* ---- the object ------------------------------------------------------------------------------------------ */

static holder *make_holder(PyObject *task)
{
    holder *made = PyObject_GC_New(holder, &holder_type);
    if (!made)
        return NULL;
    made->task = Py_XNewRef(task);
    made->task_name = NULL;
    made->lanes = NULL;
    PyObject_GC_Track((PyObject *)made);
    return made;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((holder *)self)->task);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((holder *)self)->task);
    return 0;
}

static void unlink_of_recorder(tare__py_lane *lane)
{
    if (lane->next_of_recorder)
        lane->next_of_recorder->previous_of_recorder = lane->previous_of_recorder;
    if (lane->previous_of_recorder)
        lane->previous_of_recorder->next_of_recorder = lane->next_of_recorder;
    else
        lane->recorder->lanes = lane->next_of_recorder;
}

static void free_lane(tare__py_lane *lane)
{
    Py_XDECREF((PyObject *)lane->last);
    free(lane);
}

void tare__py_lane_left(tare__py_lane *lane)
{
    if (lane->holder || lane->top)
        return;
    unlink_of_recorder(lane);
    free_lane(lane);
}

static void drop(PyObject *object)
{
    holder *self = (holder *)object;
    PyObject_GC_UnTrack(object);
    while (self->lanes) {
        tare__py_lane *lane = self->lanes;
        self->lanes = lane->next_of_holder;
        lane->holder = NULL;
        tare__py_lane_left(lane);
    }
    if (mine.known == self)
        mine.known = NULL;
    Py_CLEAR(self->task);
    Py_CLEAR(self->task_name);
    PyObject_GC_Del(object);
}

static PyTypeObject holder_type = {
    TARE__PY_TYPE("tare._core._Lanes", holder, Py_TPFLAGS_HAVE_GC, NULL),
    .tp_dealloc = drop,
    .tp_traverse = traverse,
    .tp_clear = clear,
};

/* ---- the current one --------------------------------------------------------------------------------------- */

static holder *holder_of_thread(uint64_t id)
{
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    if (!dict)
        return NULL;
    holder *found = (holder *)PyDict_GetItemWithError(dict, of_thread);
    if (!found && !PyErr_Occurred()) {
        found = make_holder(NULL);
        if (found && PyDict_SetItem(dict, of_thread, (PyObject *)found)) {
            Py_DECREF(found);
            return NULL;
        }
        Py_XDECREF(found); /* the dict keeps it */
    }
    mine.thread_state = id;
    mine.known = found;
    return found;
}

static PyObject *name_of_task(void)
{
    PyObject *asyncio = PyImport_ImportModule("asyncio"), *name = NULL;
    PyObject *task = asyncio ? PyObject_CallMethod(asyncio, "current_task", NULL) : NULL;
    if (task && task != Py_None)
        name = PyObject_CallMethod(task, "get_name", NULL);
    Py_XDECREF(asyncio);
    Py_XDECREF(task);
    PyErr_Clear();
    return name;
}

/* Borrowed: the context keeps it. A context that was copied has the holder of another task, which is ignored. */
static holder *holder_of_task(PyObject *task)
{
    PyObject *value = NULL;
    if (PyContextVar_Get(of_task, NULL, &value))
        return NULL;
    Py_XDECREF(value);
    holder *found = (holder *)value;
    if (found && found->task == task)
        return found;
    holder *made = make_holder(task);
    if (!made)
        return NULL;
    made->task_name = name_of_task();
    PyObject *token = PyContextVar_Set(of_task, (PyObject *)made);
    Py_XDECREF(token);
    Py_DECREF(made);
    return token ? made : NULL;
}

static holder *holder_now(void)
{
    tare__py_task *task = tare__py_task_now();
    if (__builtin_expect(task != NULL, 0))
        return holder_of_task((PyObject *)task);
    uint64_t id = PyThreadState_GetID(PyThreadState_Get());
    return __builtin_expect(mine.known && mine.thread_state == id, 1) ? mine.known : holder_of_thread(id);
}

static tare__py_lane *add_lane(holder *to, tare__py_recorder *recorder)
{
    tare__py_lane *made = calloc(1, sizeof *made);
    if (!made) {
        PyErr_NoMemory();
        return NULL;
    }
    made->recorder = recorder;
    made->holder = to;
    made->next_of_holder = to->lanes;
    to->lanes = made;
    made->next_of_recorder = recorder->lanes;
    if (recorder->lanes)
        recorder->lanes->previous_of_recorder = made;
    recorder->lanes = made;
    return made;
}

tare__py_lane *tare__py_lane_now(tare__py_recorder *recorder)
{
    holder *at = holder_now();
    if (!at)
        return NULL;
    if (__builtin_expect(at->lanes && at->lanes->recorder == recorder, 1))
        return at->lanes;
    for (tare__py_lane **from = &at->lanes; *from; from = &(*from)->next_of_holder)
        if ((*from)->recorder == recorder) {
            tare__py_lane *found = *from;
            *from = found->next_of_holder;
            found->next_of_holder = at->lanes;
            return at->lanes = found;
        }
    return add_lane(at, recorder);
}

PyObject *tare__py_lane_task(const tare__py_lane *lane)
{
    return lane->holder ? lane->holder->task_name : NULL;
}

static void unlink_of_holder(tare__py_lane *lane)
{
    if (!lane->holder)
        return;
    tare__py_lane **from = &lane->holder->lanes;
    while (*from && *from != lane)
        from = &(*from)->next_of_holder;
    if (*from)
        *from = lane->next_of_holder;
}

void tare__py_lanes_drop(tare__py_recorder *recorder)
{
    while (recorder->lanes) {
        tare__py_lane *lane = recorder->lanes;
        recorder->lanes = lane->next_of_recorder;
        unlink_of_holder(lane);
        free_lane(lane);
    }
}

/* Of all recorders; no exception is left. */
static tare__py_lane *lanes_now(void)
{
    holder *at = holder_now();
    if (!at)
        PyErr_Clear();
    return at ? at->lanes : NULL;
}

static void add(double *to, double samples)
{
    *to = isnan(*to) ? samples : *to + samples;
}

void tare__py_lanes_count(double samples, bool loaded)
{
    for (tare__py_lane *lane = lanes_now(); lane; lane = lane->next_of_holder)
        for (tare__py_open *open = lane->top; open; open = open->below)
            add(loaded ? &open->loaded : &open->counted, samples);
}

void tare__py_lanes_exclude(uint64_t ns, uint64_t cpu_ns)
{
    uint64_t now = tare__py_clock_ns();
    for (tare__py_lane *lane = lanes_now(); lane; lane = lane->next_of_holder) {
        for (tare__py_open *open = lane->top; open; open = open->below) {
            open->excluded_ns += ns < now - open->start ? ns : now - open->start;
            open->excluded_cpu_ns += cpu_ns;
        }
        if (lane->top) /* the block's own time begins after it */
            lane->changed += ns < now - lane->changed ? ns : now - lane->changed;
    }
}

bool tare__py_lanes_open(void)
{
    for (tare__py_lane *lane = lanes_now(); lane; lane = lane->next_of_holder)
        if (lane->top)
            return true;
    return false;
}

static int prepare(PyObject *module)
{
    of_thread = PyUnicode_InternFromString("tare.blocks");
    of_task = PyContextVar_New("tare.blocks", NULL);
    return of_thread && of_task ? 0 : -1;
}

const tare__py_part tare__py_part_lanes = {.inner_type = &holder_type, .prepare = prepare};
