/* sampler: reads the machine, this process's memory and (through Python) the GPU's, once or at an interval, in a
 * separate thread. Without a GPU it never takes the interpreter's lock: a program that holds it for minutes is still
 * sampled. The lock here guards the readings; the methods run attached to the interpreter.
 * Must not know blocks, nor how the readings are shown. */
#include "core.h"
#include "machine.h"
#include "points.h"
#include "readings.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const column_names[TARE__PY_COLUMNS] = {"cpu", "iowait", "disk", "memory", "rss", "gpu_memory"};

/* Separate from the object: the thread itself may release the last reference, while it reads the GPU. */
typedef struct state {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    pid_t owner; /* a forked child has the object, and not the thread */
    bool threaded, ending, orphaned;
    bool asking;     /* the thread waits for Python */
    unsigned wanted; /* number of acquire() calls without a release() */
    uint32_t what;
    uint64_t interval_ns;
    PyObject *gpu;           /* called without arguments, returns a number; NULL: unavailable */
    tare__py_machine before; /* what CPUs and disks are compared with; at_ns 0: none */
    uint64_t last_ns;        /* when the last reading was taken */
    tare__py_points points;
} state;

typedef struct sampler {
    PyObject_HEAD
    state *state;
} sampler;

static PyTypeObject sampler_type;

/* ---- taking one; under the lock ------------------------------------------------------------------------------- */

static void take(state *self, double gpu)
{
    tare__py_machine now;
    tare__py_machine_read(&now, self->what);
    bool first = self->before.at_ns == 0;
    tare__py_usage usage = tare__py_machine_between(first ? &now : &self->before, &now);
    uint64_t last = first ? now.at_ns : self->last_ns;
    tare__py_point one = {now.at_ns, (double)(now.at_ns - last) / 1e9 + 1e-9,
                          (double)(now.at_ns - self->before.at_ns) / 1e9,
                          {usage.cpu_percent, usage.iowait_percent, usage.disk_percent, usage.memory_percent, usage.rss,
                           gpu},
                          {0}};
    memcpy(one.most, one.mean, sizeof one.most);
    tare__py_points_add(&self->points, &one);
    self->last_ns = now.at_ns;
    if (first || now.at_ns - self->before.at_ns >= TARE__PY_SHORTEST_NS)
        self->before = now; /* an interval shorter than the ticks is compared with an older one */
}

/* With the interpreter's lock, and without ours: a thread that holds one may wait for the other. */
static double ask_gpu(PyObject *gpu)
{
    PyObject *answer = gpu ? PyObject_CallNoArgs(gpu) : NULL;
    double value = answer ? PyFloat_AsDouble(answer) : NAN;
    Py_XDECREF(answer);
    if (PyErr_Occurred()) {
        PyErr_Clear(); /* an error of the framework must not affect the program */
        return NAN;
    }
    return value;
}

/* Releases the lock meanwhile. */
static double ask_gpu_from_outside(state *self)
{
    if (!self->gpu)
        return NAN;
    self->asking = true;
    pthread_mutex_unlock(&self->lock);
    PyGILState_STATE had = PyGILState_Ensure();
    PyObject *gpu = self->gpu; /* the object may be freed during the call */
    Py_XINCREF(gpu);
    double value = ask_gpu(gpu);
    Py_XDECREF(gpu);
    PyGILState_Release(had);
    pthread_mutex_lock(&self->lock);
    self->asking = false;
    pthread_cond_broadcast(&self->changed);
    return value;
}

static void free_state(state *self)
{
    tare__py_points_close(&self->points);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static void tick(state *self)
{
    double gpu = ask_gpu_from_outside(self);
    if (self->wanted && !self->ending)
        take(self, gpu);
}

static void *work(void *argument)
{
    state *self = argument;
    pthread_mutex_lock(&self->lock);
    while (!self->ending) {
        if (!self->wanted) {
            pthread_cond_wait(&self->changed, &self->lock);
            continue;
        }
        uint64_t next = self->last_ns + self->interval_ns;
        struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        if (pthread_cond_timedwait(&self->changed, &self->lock, &until) == ETIMEDOUT && self->wanted)
            tick(self);
        tare__py_note_own_waits();
    }
    bool orphaned = self->orphaned;
    pthread_mutex_unlock(&self->lock);
    if (orphaned)
        free_state(self);
    return NULL;
}

/* ---- running ------------------------------------------------------------------------------------------------ */

static void make_lock(state *self)
{
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&self->changed, &how);
    pthread_condattr_destroy(&how);
    pthread_mutex_init(&self->lock, NULL);
}

/* In a forked child there is no thread, and the thread may have held the lock. */
static state *state_of(PyObject *object)
{
    state *self = ((sampler *)object)->state;
    if (self->owner != getpid()) {
        make_lock(self);
        self->owner = getpid();
        self->threaded = self->asking = false;
        self->wanted = 0;
        self->before.at_ns = 0;
    }
    return self;
}

/* This thread must not receive the program's signals. 0, or an errno. */
static int begin_thread(state *self)
{
    sigset_t all, before;
    pthread_attr_t how;
    sigfillset(&all);
    pthread_attr_init(&how);
    if (!self->gpu) /* calls into Python need more */
        pthread_attr_setstacksize(&how, 256 * 1024);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&self->thread, &how, work, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    if (!error) {
        self->threaded = true;
        pthread_setname_np(self->thread, "tare-sampler");
    }
    return error;
}

static bool in_own_thread(const state *self)
{
    return self->threaded && pthread_equal(self->thread, pthread_self());
}

PyDoc_STRVAR(acquire_doc, "acquire()\n--\n\n"
                          "Takes readings at an interval, the first at once, until each acquire() has its release().");
static PyObject *acquire(PyObject *object, PyObject *nothing)
{
    state *self = state_of(object);
    double gpu = ask_gpu(self->gpu);
    int error;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    error = self->threaded ? 0 : begin_thread(self);
    if (!error && self->wanted++ == 0) {
        self->before.at_ns = 0; /* the time in between was not requested */
        take(self, gpu);
    }
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    if (error)
        return PyErr_Format(PyExc_RuntimeError, "the sampling thread cannot be started: %s", strerror(error));
    Py_RETURN_NONE;
}

/* After the last release() Python is no longer called: the interpreter may be about to end. */
static PyObject *release(PyObject *object, PyObject *nothing)
{
    state *self = state_of(object);
    double gpu = ask_gpu(self->gpu);
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    if (self->wanted) {
        take(self, gpu);
        self->wanted--;
    }
    while (self->asking && !self->wanted && !in_own_thread(self))
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *sample(PyObject *object, PyObject *nothing)
{
    state *self = state_of(object);
    double gpu = ask_gpu(self->gpu);
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    take(self, gpu);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

/* A copy, so that objects are made without the lock. */
static tare__py_point *copy_since(state *self, uint64_t since_ns, size_t *n, tare__py_column columns[TARE__PY_COLUMNS])
{
    tare__py_point *copy = malloc(TARE__PY_POINTS_MAX * sizeof *copy);
    if (!copy) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    *n = tare__py_points_since(&self->points, since_ns, copy);
    memcpy(columns, self->points.all, sizeof self->points.all);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    return copy;
}

/* Of the kept points: every reading, until there are more than fit. */
static double percentile(const tare__py_point *points, size_t count, int column, double q)
{
    double *values = malloc((count + 1) * sizeof *values);
    size_t n = 0;
    if (!values)
        return NAN;
    for (size_t i = 0; i < count; i++)
        if (!isnan(points[i].mean[column]))
            values[n++] = points[i].mean[column];
    tare__sort(values, n);
    double result = tare__quantile_sorted(values, n, q);
    free(values);
    return result;
}

static PyObject *column_summary(const tare__py_column *column, double p95)
{
    const tare__moments *m = &column->readings;
    double none = m->n ? 0 : NAN;
    return Py_BuildValue("{sKsdsdsdsdsdsd}", "count", (unsigned long long)m->n, "mean", m->mean + none, "max",
                         m->max + none, "min", m->min + none, "std", tare__moments_deviation(m), "p95", p95, "average",
                         tare__py_column_average(column));
}

static bool read_since(PyObject *const *given, Py_ssize_t n, uint64_t *since_ns)
{
    *since_ns = 0;
    if (n > 1) {
        PyErr_SetString(PyExc_TypeError, "one argument at most: a time.monotonic_ns()");
        return false;
    }
    if (n == 1)
        *since_ns = PyLong_AsUnsignedLongLong(given[0]);
    return !PyErr_Occurred();
}

PyDoc_STRVAR(summary_doc,
             "summary(since_ns=0)\n--\n\n"
             "By name, of all readings or of those since a time.monotonic_ns(): count, mean, max, min, std\n"
             "and p95 of the readings, and average, the mean over time; NaN: unknown.");
static PyObject *summary(PyObject *object, PyObject *const *given, Py_ssize_t n_given)
{
    uint64_t since_ns;
    size_t n;
    tare__py_column columns[TARE__PY_COLUMNS];
    if (!read_since(given, n_given, &since_ns))
        return NULL;
    tare__py_point *points = copy_since(state_of(object), since_ns, &n, columns);
    if (!points)
        return NULL;
    if (since_ns)
        tare__py_points_sum(points, n, columns);
    PyObject *all = PyDict_New();
    for (int i = 0; all && i < TARE__PY_COLUMNS; i++)
        if (tare__py_put(all, column_names[i], column_summary(&columns[i], percentile(points, n, i, 0.95))))
            Py_CLEAR(all);
    free(points);
    return all;
}

static PyObject *list_of(const tare__py_point *points, size_t count, int column)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++)
        if (tare__py_append(list, column < 0 ? PyLong_FromUnsignedLongLong(points[i].at_ns)
                                             : PyFloat_FromDouble(points[i].mean[column])))
            Py_CLEAR(list);
    return list;
}

PyDoc_STRVAR(series_doc,
             "series(since_ns=0)\n--\n\n"
             "Lists by name, oldest first, and at_ns, their time.monotonic_ns(); NaN: unknown. The newest\n"
             "readings are listed one by one, older ones as means of neighbours.");
static PyObject *series(PyObject *object, PyObject *const *given, Py_ssize_t n_given)
{
    uint64_t since_ns;
    size_t n;
    tare__py_column columns[TARE__PY_COLUMNS];
    if (!read_since(given, n_given, &since_ns))
        return NULL;
    tare__py_point *points = copy_since(state_of(object), since_ns, &n, columns);
    PyObject *all = points ? PyDict_New() : NULL;
    for (int i = -1; all && i < TARE__PY_COLUMNS; i++)
        if (tare__py_put(all, i < 0 ? "at_ns" : column_names[i], list_of(points, n, i)))
            Py_CLEAR(all);
    free(points);
    return all;
}

static PyObject *count(PyObject *object, void *closure)
{
    state *self = state_of(object);
    pthread_mutex_lock(&self->lock);
    uint64_t n = self->points.count;
    pthread_mutex_unlock(&self->lock);
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *is_running(PyObject *object, void *closure)
{
    return PyBool_FromLong(state_of(object)->wanted > 0);
}

/* ---- the object ------------------------------------------------------------------------------------------------ */

static state *new_state(double interval, uint32_t what, PyObject *gpu)
{
    state *self = calloc(1, sizeof *self);
    if (!self || !tare__py_points_open(&self->points)) {
        free(self);
        PyErr_NoMemory();
        return NULL;
    }
    make_lock(self);
    self->owner = getpid();
    self->interval_ns = (uint64_t)(interval * 1e9);
    self->what = what;
    if (gpu != Py_None)
        self->gpu = Py_NewRef(gpu);
    return self;
}

static PyObject *construct(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"interval", "what", "gpu", NULL};
    double interval;
    unsigned int what;
    PyObject *gpu = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "dI|O:Sampler", words, &interval, &what, &gpu))
        return NULL;
    if (!(interval >= 0.001 && interval <= 86400)) {
        PyErr_SetString(PyExc_ValueError, "an interval is 0.001 to 86400 seconds");
        return NULL;
    }
    sampler *self = (sampler *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->state = new_state(interval, what, gpu);
    if (!self->state)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void drop_state(state *self)
{
    bool own = in_own_thread(self), threaded = self->threaded;
    PyObject *gpu = self->gpu;
    self->gpu = NULL;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    self->ending = true;
    self->orphaned = own;
    if (own)
        pthread_detach(self->thread);
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (threaded && !own)
        pthread_join(self->thread, NULL);
    Py_END_ALLOW_THREADS
    Py_XDECREF(gpu);
    if (!own)
        free_state(self);
}

static void drop(PyObject *object)
{
    if (((sampler *)object)->state)
        drop_state(state_of(object));
    Py_TYPE(object)->tp_free(object);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))
static PyMethodDef methods[] = {
    {"acquire", acquire, METH_NOARGS, acquire_doc},
    {"release", release, METH_NOARGS, "release()\n--\n\nTakes a reading and ends one acquire()."},
    {"sample", sample, METH_NOARGS, "sample()\n--\n\nReads once, now."},
    {"summary", FAST(summary), METH_FASTCALL, summary_doc},
    {"series", FAST(series), METH_FASTCALL, series_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef members[] = {
    {"running", is_running, NULL, "whether it is running", NULL},
    {"count", count, NULL, "readings so far", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject sampler_type = {
    TARE__PY_TYPE("tare._core.Sampler", sampler, 0,
                  "Sampler(interval, what, gpu=None)\n--\n\n"
                  "Reads the machine every interval seconds, in a separate thread, between acquire() and release()."),
    .tp_dealloc = drop,
    .tp_methods = methods,
    .tp_getset = members,
    .tp_new = construct,
};

/* ---- one reading against another ------------------------------------------------------------------------------- */

/* Two readings are kept, so that a call right after another still covers some time. */
PyDoc_STRVAR(machine_doc, "machine_now()\n--\n\n"
                          "The machine since the last call (at least 100 ms ago), else since the call before that:\n"
                          "(CPU, iowait, disk, memory percent), each may be Missing.");
static PyObject *machine_now(PyObject *module, PyObject *nothing)
{
    static tare__py_machine newer, older;
    tare__py_machine now;
    tare__py_machine_read(&now, TARE__PY_CPU | TARE__PY_DISK | TARE__PY_MEMORY);
    if (!older.at_ns)
        older = newer = now;
    if (now.at_ns - newer.at_ns >= 100000000u) {
        older = newer;
        newer = now;
    }
    tare__py_usage usage = tare__py_machine_between(&older, &now);
    double values[4] = {usage.cpu_percent, usage.iowait_percent, usage.disk_percent, usage.memory_percent};
    PyObject *tuple = PyTuple_New(4);
    for (int i = 0; tuple && i < 4; i++) {
        PyObject *item = !isnan(values[i]) ? PyFloat_FromDouble(values[i])
                         : now.at_ns - older.at_ns < TARE__PY_SHORTEST_NS
                             ? tare__py_missing("too soon: the kernel's ticks say nothing of less than 50 ms")
                             : tare__py_missing("the kernel does not report it");
        if (item)
            PyTuple_SET_ITEM(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyMethodDef functions[] = {
    {"machine_now", machine_now, METH_NOARGS, machine_doc},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    if (PyModule_AddIntConstant(module, "MACHINE_CPU", TARE__PY_CPU) ||
        PyModule_AddIntConstant(module, "MACHINE_DISK", TARE__PY_DISK) ||
        PyModule_AddIntConstant(module, "MACHINE_NETWORK", TARE__PY_NETWORK) ||
        PyModule_AddIntConstant(module, "MACHINE_MEMORY", TARE__PY_MEMORY) ||
        PyModule_AddIntConstant(module, "MACHINE_RSS", TARE__PY_RSS))
        return -1;
    return 0;
}

const tare__py_part tare__py_part_sampler = {.type = &sampler_type, .functions = functions, .prepare = prepare};
