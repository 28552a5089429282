/* watch: how busy the machine is, read at intervals by a thread of its own that does without the interpreter's lock
 * (it takes it only to ask a framework about the GPU). Memory is bounded: in a full room neighbours become one.
 * The thread owns the reading; a lock guards what it has read. Must not know how it is shown. */
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stat/stat.h"

#define ROOM 8192u /* points; even */

enum { CPU, MEMORY, GPU, COLUMNS };
static const char *const column_names[COLUMNS] = {"cpu", "memory", "gpu_memory"};

typedef struct cpu_times {
    unsigned long long busy, all;
} cpu_times;

typedef struct point {
    double at; /* seconds since the watch was made */
    double values[COLUMNS]; /* NaN: not known */
} point;

typedef struct watch {
    PyObject_HEAD
    PyObject *gpu; /* called with nothing, gives a number; NULL: nobody knows */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    pid_t owner;       /* a forked child has the object, and not the thread */
    bool running, stopping;
    double interval;
    struct timespec born;
    cpu_times before;
    tare__moments moments[COLUMNS]; /* of every reading */
    point *points;
    uint32_t count, stride, pending; /* readings in a point; readings in the unfinished one */
    point sum;
    uint32_t known[COLUMNS];
} watch;

static PyTypeObject watch_type;

/* ---- reading ----------------------------------------------------------------------------------------------- */

static bool read_text(const char *path, char *out, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t bytes = read(fd, out, room - 1);
    close(fd);
    out[bytes > 0 ? bytes : 0] = '\0';
    return bytes > 0;
}

static bool read_cpu(cpu_times *out)
{
    char text[512];
    unsigned long long t[8] = {0};
    if (!read_text("/proc/stat", text, sizeof text) ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", t, t + 1, t + 2, t + 3, t + 4, t + 5, t + 6,
               t + 7) < 4)
        return false;
    out->all = 0;
    for (int i = 0; i < 8; i++)
        out->all += t[i];
    out->busy = out->all - t[3] - t[4]; /* idle, and idle while a disk works */
    return true;
}

/* Between two readings; one that follows within a tick of the kernel's clock says nothing and is left to the next. */
static double cpu_percent(watch *self)
{
    cpu_times now;
    if (!read_cpu(&now))
        return NAN;
    cpu_times before = self->before;
    if (before.all && now.all <= before.all)
        return NAN;
    self->before = now;
    if (!before.all || now.busy < before.busy)
        return NAN;
    return 100.0 * (double)(now.busy - before.busy) / (double)(now.all - before.all);
}

static double kib_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) : NAN;
}

static double memory_percent(void)
{
    char text[2048];
    if (!read_text("/proc/meminfo", text, sizeof text))
        return NAN;
    double total = kib_of(text, "MemTotal:"), available = kib_of(text, "MemAvailable:");
    return total > 0 ? 100.0 * (total - available) / total : NAN;
}

/* With the interpreter's lock. */
static double ask_gpu(const watch *self)
{
    PyObject *answer = self->gpu ? PyObject_CallNoArgs(self->gpu) : NULL;
    double value = answer ? PyFloat_AsDouble(answer) : NAN;
    Py_XDECREF(answer);
    if (PyErr_Occurred()) {
        PyErr_Clear(); /* a framework in trouble is no reason to trouble the program */
        return NAN;
    }
    return value;
}

/* ---- keeping ----------------------------------------------------------------------------------------------- */

static void finish_point(watch *self)
{
    point *to = &self->points[self->count++];
    to->at = self->sum.at / self->pending;
    for (int i = 0; i < COLUMNS; i++)
        to->values[i] = self->known[i] ? self->sum.values[i] / self->known[i] : NAN;
    memset(&self->sum, 0, sizeof self->sum);
    memset(self->known, 0, sizeof self->known);
    self->pending = 0;
}

static double middle(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : (a + b) / 2;
}

static void halve(watch *self)
{
    for (uint32_t i = 0; i < ROOM / 2; i++) {
        const point *a = &self->points[2 * i], *b = a + 1;
        point both = {.at = (a->at + b->at) / 2};
        for (int j = 0; j < COLUMNS; j++)
            both.values[j] = middle(a->values[j], b->values[j]);
        self->points[i] = both;
    }
    self->count = ROOM / 2;
    self->stride *= 2;
}

static double age(const watch *self)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - self->born.tv_sec) + 1e-9 * (double)(now.tv_nsec - self->born.tv_nsec);
}

/* With the watch's lock. */
static void keep(watch *self, double gpu)
{
    double values[COLUMNS] = {cpu_percent(self), memory_percent(), gpu};
    self->sum.at += age(self);
    self->pending++;
    for (int i = 0; i < COLUMNS; i++)
        if (!isnan(values[i])) {
            tare__moments_add(&self->moments[i], values[i]);
            self->sum.values[i] += values[i];
            self->known[i]++;
        }
    if (self->pending < self->stride)
        return;
    if (self->count == ROOM)
        halve(self);
    if (self->pending >= self->stride)
        finish_point(self);
}

/* ---- the thread -------------------------------------------------------------------------------------------- */

static void add_seconds(struct timespec *to, double seconds)
{
    to->tv_sec += (time_t)seconds;
    to->tv_nsec += (long)((seconds - floor(seconds)) * 1e9);
    if (to->tv_nsec >= 1000000000L) {
        to->tv_nsec -= 1000000000L;
        to->tv_sec++;
    }
}

static double ask_gpu_from_outside(const watch *self)
{
    if (!self->gpu)
        return NAN;
    PyGILState_STATE state = PyGILState_Ensure();
    double value = ask_gpu(self);
    PyGILState_Release(state);
    return value;
}

static void *run(void *argument)
{
    watch *self = argument;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&self->lock);
    while (!self->stopping) {
        add_seconds(&next, self->interval);
        while (!self->stopping && pthread_cond_timedwait(&self->wake, &self->lock, &next) != ETIMEDOUT)
            ;
        if (self->stopping)
            break;
        pthread_mutex_unlock(&self->lock); /* whoever holds the interpreter's lock may wait for ours */
        double gpu = ask_gpu_from_outside(self);
        pthread_mutex_lock(&self->lock);
        keep(self, gpu);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void prepare_lock(watch *self)
{
    pthread_condattr_t kind;
    pthread_condattr_init(&kind);
    pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->wake, &kind);
    pthread_condattr_destroy(&kind);
}

/* In a forked child the thread is gone, and the lock is as the fork found it. */
static void adopt(watch *self)
{
    if (self->owner == getpid())
        return;
    self->owner = getpid();
    self->running = self->stopping = false;
    prepare_lock(self);
}

static void end_thread(watch *self)
{
    adopt(self);
    if (!self->running)
        return;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    self->stopping = true;
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
    Py_END_ALLOW_THREADS
    self->running = self->stopping = false;
}

/* ---- for Python -------------------------------------------------------------------------------------------- */

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"gpu", NULL};
    PyObject *gpu = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "|O:Watch", words, &gpu))
        return NULL;
    watch *self = (watch *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    prepare_lock(self);
    self->owner = getpid();
    self->stride = 1;
    clock_gettime(CLOCK_MONOTONIC, &self->born);
    read_cpu(&self->before);
    if (gpu != Py_None) {
        Py_INCREF(gpu);
        self->gpu = gpu;
    }
    self->points = malloc(ROOM * sizeof *self->points);
    if (!self->points) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void drop(PyObject *object)
{
    watch *self = (watch *)object;
    end_thread(self);
    Py_XDECREF(self->gpu);
    free(self->points);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *start(PyObject *object, PyObject *seconds)
{
    watch *self = (watch *)object;
    double interval = PyFloat_AsDouble(seconds);
    if (interval == -1 && PyErr_Occurred())
        return NULL;
    if (!(interval >= 0.001 && interval <= 86400))
        return PyErr_Format(PyExc_ValueError, "an interval is 0.001 to 86400 seconds, not %R", seconds);
    adopt(self);
    if (self->running) {
        PyErr_SetString(PyExc_RuntimeError, "monitoring is already running; stop_monitoring() ends it");
        return NULL;
    }
    self->interval = interval;
    int failed = pthread_create(&self->thread, NULL, run, self);
    if (failed)
        return PyErr_Format(PyExc_RuntimeError, "the monitoring thread cannot be started: %s", strerror(failed));
    self->running = true;
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    end_thread((watch *)object);
    Py_RETURN_NONE;
}

static PyObject *sample(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    watch *self = (watch *)object;
    adopt(self);
    double gpu = ask_gpu(self);
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    keep(self, gpu);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* A copy, so that objects are made without the lock. */
static point *copy_points(watch *self, uint32_t *count, tare__moments moments[COLUMNS])
{
    point *copy = malloc(ROOM * sizeof *copy);
    if (!copy)
        return NULL;
    adopt(self);
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    *count = self->count;
    memcpy(copy, self->points, self->count * sizeof *copy);
    memcpy(moments, self->moments, sizeof self->moments);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    return copy;
}

static PyObject *list_of(const point *points, uint32_t count, int column)
{
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *value = PyFloat_FromDouble(column < 0 ? points[i].at : points[i].values[column]);
        if (!value)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, value);
    }
    return list;
}

static PyObject *series(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    uint32_t count;
    tare__moments moments[COLUMNS];
    point *points = copy_points((watch *)object, &count, moments);
    if (!points)
        return PyErr_NoMemory();
    PyObject *all = Py_BuildValue("{sNsNsNsN}", "time_s", list_of(points, count, -1), column_names[0],
                                  list_of(points, count, 0), column_names[1], list_of(points, count, 1),
                                  column_names[2], list_of(points, count, 2));
    free(points);
    return all;
}

/* Quantiles are of the points that are kept: of every reading, until there are more than fit. */
static double percentile(const point *points, uint32_t count, int column, double q)
{
    double *values = malloc((count + 1) * sizeof *values);
    size_t n = 0;
    if (!values)
        return NAN;
    for (uint32_t i = 0; i < count; i++)
        if (!isnan(points[i].values[column]))
            values[n++] = points[i].values[column];
    tare__sort(values, n);
    double result = tare__quantile_sorted(values, n, q);
    free(values);
    return result;
}

static PyObject *summary(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    uint32_t count;
    tare__moments moments[COLUMNS];
    point *points = copy_points((watch *)object, &count, moments);
    PyObject *all = points ? PyDict_New() : PyErr_NoMemory();
    for (int i = 0; all && i < COLUMNS; i++) {
        const tare__moments *m = &moments[i];
        double none = m->n ? 0 : NAN;
        PyObject *one = Py_BuildValue("{sKsdsdsdsdsd}", "count", (unsigned long long)m->n, "mean", m->mean + none,
                                      "max", m->max + none, "min", m->min + none, "std", tare__moments_deviation(m),
                                      "p95", percentile(points, count, i, 0.95));
        if (!one || PyDict_SetItemString(all, column_names[i], one))
            Py_CLEAR(all);
        Py_XDECREF(one);
    }
    free(points);
    return all;
}

static PyObject *is_running(PyObject *object, void *closure)
{
    (void)closure;
    adopt((watch *)object);
    return PyBool_FromLong(((watch *)object)->running);
}

static PyMethodDef methods[] = {
    {"start", start, METH_O, "start(interval)\n--\n\nReads every `interval` seconds from now on."},
    {"stop", stop, METH_NOARGS, "stop()\n--\n\nEnds start; what was read stays."},
    {"sample", sample, METH_NOARGS, "sample()\n--\n\nReads once, now."},
    {"series", series, METH_NOARGS, "series()\n--\n\nLists by name; NaN where nothing could be read."},
    {"summary", summary, METH_NOARGS, "summary()\n--\n\nCount, mean, max, min, std, p95 by name."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef members[] = {
    {"running", is_running, NULL, "whether the thread reads", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject watch_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tare._core.Watch",
    .tp_doc = "CPU and memory of the machine in percent, and the GPU's memory, at intervals.",
    .tp_basicsize = sizeof(watch),
    .tp_new = make,
    .tp_dealloc = drop,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = methods,
    .tp_getset = members,
};

int tare__py_add_watch(PyObject *module)
{
    if (PyType_Ready(&watch_type))
        return -1;
    Py_INCREF(&watch_type);
    if (PyModule_AddObject(module, "Watch", (PyObject *)&watch_type)) {
        Py_DECREF(&watch_type);
        return -1;
    }
    return 0;
}
