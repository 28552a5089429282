/* sampler: a thread of its own that reads the machine and this process's memory in a beat, while it is wanted. It
 * never takes the interpreter's lock: a program that holds it for minutes is sampled all the same.
 * The lock here guards the samples; the methods run attached to the interpreter. Must not know blocks. */
#include "core.h"
#include "machine.h"
#include "readings.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEPT 4096 /* samples; older ones stay in the sums */

typedef struct sample {
    uint64_t at_ns;
    double cpu, iowait, disk, memory, rss; /* percent but for the last; NaN: not known */
    double seconds, busy_s;                /* that memory, and that CPU and disk, stand for */
} sample;

typedef struct sums {
    double time[4], total[4], most[4]; /* of CPU, disk, memory, rss */
} sums;

typedef struct sampler {
    PyObject_HEAD
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    pid_t pid; /* where the thread is; 0: there is none */
    bool ending;
    unsigned wanted; /* how many want it to run */
    uint32_t what;
    uint64_t interval_ns;
    tare__py_machine before; /* what CPUs and disks are compared with; at_ns 0: none */
    uint64_t last_ns;        /* when the last sample was taken */
    sample *kept;
    uint64_t count;
    sums all;
} sampler;

static PyTypeObject sampler_type;

/* ---- taking one; under the lock ------------------------------------------------------------------------------- */

static void add(sums *to, const sample *one)
{
    double values[4] = {one->cpu, one->disk, one->memory, one->rss};
    for (int i = 0; i < 4; i++)
        if (!isnan(values[i])) {
            double seconds = i < 2 ? one->busy_s : one->seconds;
            to->most[i] = to->time[i] > 0 ? fmax(to->most[i], values[i]) : values[i];
            to->time[i] += seconds;
            to->total[i] += values[i] * seconds;
        }
}

static void take(sampler *self)
{
    tare__py_machine now;
    tare__py_machine_read(&now, self->what);
    bool first = self->before.at_ns == 0;
    tare__py_usage usage = tare__py_machine_between(first ? &now : &self->before, &now);
    uint64_t last = first ? now.at_ns : self->last_ns;
    sample one = {now.at_ns, usage.cpu_percent, usage.iowait_percent, usage.disk_percent, usage.memory_percent,
                  usage.rss, (double)(now.at_ns - last) / 1e9 + 1e-9, (double)(now.at_ns - self->before.at_ns) / 1e9};
    self->kept[self->count++ % KEPT] = one;
    add(&self->all, &one);
    self->last_ns = now.at_ns;
    if (first || now.at_ns - self->before.at_ns >= TARE__PY_SHORTEST_NS)
        self->before = now; /* a beat that is faster than the ticks is compared with an older one */
}

static void *work(void *argument)
{
    sampler *self = argument;
    pthread_mutex_lock(&self->lock);
    while (!self->ending) {
        if (!self->wanted) {
            pthread_cond_wait(&self->changed, &self->lock);
            continue;
        }
        uint64_t next = self->last_ns + self->interval_ns;
        struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        if (pthread_cond_timedwait(&self->changed, &self->lock, &until) == ETIMEDOUT && self->wanted)
            take(self);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* ---- running ------------------------------------------------------------------------------------------------ */

static void make_lock(sampler *self)
{
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&self->changed, &how);
    pthread_condattr_destroy(&how);
    pthread_mutex_init(&self->lock, NULL);
}

/* In a forked child there is no thread, and the lock may be one that it held. */
static void look_for_fork(sampler *self)
{
    if (self->pid == 0 || self->pid == getpid())
        return;
    make_lock(self);
    self->pid = 0;
    self->wanted = 0;
    self->before.at_ns = 0;
}

/* The program's signals are not for this thread. 0, or an errno. */
static int begin_thread(sampler *self)
{
    sigset_t all, before;
    pthread_attr_t how;
    sigfillset(&all);
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, 256 * 1024);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&self->thread, &how, work, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    if (!error) {
        self->pid = getpid();
        pthread_setname_np(self->thread, "tare-sampler");
    }
    return error;
}

PyDoc_STRVAR(acquire_doc, "acquire()\n--\n\n"
                          "Samples until there was a release() for each acquire(). Takes one at once.");
static PyObject *acquire(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    sampler *self = (sampler *)object;
    int error;
    look_for_fork(self);
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    if (self->wanted++ == 0) {
        self->before.at_ns = 0; /* what was between is nobody's */
        take(self);
    }
    error = self->pid ? 0 : begin_thread(self);
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    if (error) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *release(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    sampler *self = (sampler *)object;
    look_for_fork(self);
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    if (self->wanted) {
        take(self);
        self->wanted--;
    }
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

static PyObject *known_or_missing(double value)
{
    return isnan(value) ? tare__py_missing("no sample has it") : PyFloat_FromDouble(value);
}

static PyObject *summary_of(const sums *of, uint64_t count)
{
    static const char *const names[4] = {"cpu_percent", "disk_io_percent", "memory_percent", "rss"};
    PyObject *dict = PyDict_New();
    PyObject *number = PyLong_FromUnsignedLongLong(count);
    if (dict && (!number || PyDict_SetItemString(dict, "samples", number)))
        Py_CLEAR(dict);
    Py_XDECREF(number);
    for (int i = 0; dict && i < 4; i++)
        for (int peak = 0; dict && peak < 2; peak++) {
            char key[32];
            PyOS_snprintf(key, sizeof key, "%s_%s", peak ? "peak" : "avg", names[i]);
            double mean = of->total[i] / of->time[i];
            double value = of->time[i] > 0 ? (peak ? of->most[i] : fmin(mean, of->most[i])) : NAN;
            PyObject *item = known_or_missing(value);
            if (!item || PyDict_SetItemString(dict, key, item))
                Py_CLEAR(dict);
            Py_XDECREF(item);
        }
    return dict;
}

static uint64_t first_kept(const sampler *self)
{
    return self->count > KEPT ? self->count - KEPT : 0;
}

PyDoc_STRVAR(summary_doc, "summary(since_ns=0)\n--\n\n"
                          "Averages over time and peaks: of all samples, or of those since a time.monotonic_ns().");
static PyObject *summary(PyObject *object, PyObject *arguments)
{
    sampler *self = (sampler *)object;
    unsigned long long since = 0;
    if (!PyArg_ParseTuple(arguments, "|K:summary", &since))
        return NULL;
    look_for_fork(self);
    pthread_mutex_lock(&self->lock);
    sums part = self->all;
    uint64_t count = self->count;
    if (since) {
        memset(&part, 0, sizeof part);
        count = 0;
        for (uint64_t i = first_kept(self); i < self->count; i++) {
            if (self->kept[i % KEPT].at_ns < since)
                continue;
            add(&part, &self->kept[i % KEPT]);
            count++;
        }
    }
    pthread_mutex_unlock(&self->lock);
    return summary_of(&part, count);
}

PyDoc_STRVAR(samples_doc, "samples(since_ns=0)\n--\n\n"
                          "The newest samples, oldest first: (monotonic ns, CPU, iowait, disk and memory percent,\n"
                          "resident bytes); NaN: not known.");
static PyObject *samples(PyObject *object, PyObject *arguments)
{
    sampler *self = (sampler *)object;
    unsigned long long since = 0;
    if (!PyArg_ParseTuple(arguments, "|K:samples", &since))
        return NULL;
    look_for_fork(self);
    sample *copy = malloc(KEPT * sizeof *copy);
    if (!copy)
        return PyErr_NoMemory();
    size_t n = 0;
    pthread_mutex_lock(&self->lock);
    for (uint64_t i = first_kept(self); i < self->count; i++)
        if (self->kept[i % KEPT].at_ns >= since)
            copy[n++] = self->kept[i % KEPT];
    pthread_mutex_unlock(&self->lock);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        const sample *one = &copy[i];
        PyObject *item = Py_BuildValue("(Kddddd)", (unsigned long long)one->at_ns, one->cpu, one->iowait, one->disk,
                                       one->memory, one->rss);
        if (item)
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
        else
            Py_CLEAR(list);
    }
    free(copy);
    return list;
}

/* ---- the object ------------------------------------------------------------------------------------------------ */

static PyObject *construct(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"interval", "what", NULL};
    double interval;
    unsigned int what;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "dI:Sampler", words, &interval, &what))
        return NULL;
    if (!(interval >= 0.001 && interval <= 86400))
        return PyErr_Format(PyExc_ValueError, "an interval is 0.001 to 86400 seconds");
    sampler *self = (sampler *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    make_lock(self);
    self->interval_ns = (uint64_t)(interval * 1e9);
    self->what = what;
    self->kept = malloc(KEPT * sizeof *self->kept);
    if (!self->kept) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void drop(PyObject *object)
{
    sampler *self = (sampler *)object;
    look_for_fork(self);
    if (self->pid) {
        Py_BEGIN_ALLOW_THREADS
        pthread_mutex_lock(&self->lock);
        self->ending = true;
        pthread_cond_signal(&self->changed);
        pthread_mutex_unlock(&self->lock);
        pthread_join(self->thread, NULL);
        Py_END_ALLOW_THREADS
    }
    free(self->kept);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"acquire", acquire, METH_NOARGS, acquire_doc},
    {"release", release, METH_NOARGS, "release()\n--\n\nTakes a sample and gives back one acquire()."},
    {"summary", summary, METH_VARARGS, summary_doc},
    {"samples", samples, METH_VARARGS, samples_doc},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject sampler_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tare._core.Sampler",
    .tp_doc = "Sampler(interval, what)\n--\n\nReads the machine every interval seconds, in a thread of its own.",
    .tp_basicsize = sizeof(sampler),
    .tp_dealloc = drop,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = methods,
    .tp_new = construct,
};

/* ---- one reading against another ------------------------------------------------------------------------------- */

/* Two readings are kept, so that a question that follows another at once is not about nothing. */
PyDoc_STRVAR(machine_doc, "machine_now()\n--\n\n"
                          "The machine since it was last asked for (at least 100 ms ago), else since before that:\n"
                          "(CPU, iowait, disk, memory percent), each may be Missing.");
static PyObject *machine_now(PyObject *module, PyObject *nothing)
{
    (void)module, (void)nothing;
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
                             : tare__py_missing("the kernel does not tell");
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

int tare__py_add_sampler(PyObject *module)
{
    if (PyType_Ready(&sampler_type))
        return -1;
    if (PyModule_AddIntConstant(module, "MACHINE_CPU", TARE__PY_CPU) ||
        PyModule_AddIntConstant(module, "MACHINE_DISK", TARE__PY_DISK) ||
        PyModule_AddIntConstant(module, "MACHINE_NETWORK", TARE__PY_NETWORK) ||
        PyModule_AddIntConstant(module, "MACHINE_MEMORY", TARE__PY_MEMORY) ||
        PyModule_AddIntConstant(module, "MACHINE_RSS", TARE__PY_RSS))
        return -1;
    Py_INCREF(&sampler_type);
    if (PyModule_AddObject(module, "Sampler", (PyObject *)&sampler_type)) {
        Py_DECREF(&sampler_type);
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
