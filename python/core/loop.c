/* loop: calls a function repeatedly and times it, for latency and throughput.
 * The calling thread, attached to the interpreter. Must not know what the function does. */
#include "core.h"

#include <math.h>
#include <stdlib.h>

#include "readings.h"
#include "stat/stat.h"

#define RUNS_MOST 10000000u
#define CHECK_GROWTH 1.25 /* growth of a warm-up before it is checked again */

typedef struct loop {
    PyObject *function;
    PyObject *settle; /* NULL: the function's work is complete when it returns */
    unsigned long each; /* calls between two readings of the clock */
    double *seconds;    /* one for each run, allocated before the first run */
    size_t room, n;
    uint64_t until_ns; /* 0: no limit */
} loop;

static bool settled(const loop *self)
{
    if (!self->settle)
        return true;
    PyObject *nothing = PyObject_CallNoArgs(self->settle);
    Py_XDECREF(nothing);
    return nothing != NULL;
}

/* One run. The result of the last call is released after the clock was read: freeing it is not the model's work. */
static bool run_once(loop *self)
{
    PyObject *result = NULL;
    uint64_t from = tare__py_clock_ns();
    for (unsigned long i = 0; i < self->each; i++) {
        Py_XDECREF(result);
        result = PyObject_CallNoArgs(self->function);
        if (!result)
            return false;
    }
    bool fine = settled(self);
    uint64_t to = tare__py_clock_ns();
    self->seconds[self->n++] = 1e-9 * (double)(to - from);
    Py_DECREF(result);
    return fine && !PyErr_CheckSignals();
}

static bool time_is_over(const loop *self)
{
    return self->until_ns && tare__py_clock_ns() >= self->until_ns;
}

static bool open_loop(loop *self, unsigned long runs, double most_s)
{
    if (runs > RUNS_MOST) {
        PyErr_Format(PyExc_ValueError, "%u runs at most", RUNS_MOST);
        return false;
    }
    if (!PyCallable_Check(self->function) || (self->settle != Py_None && !PyCallable_Check(self->settle))) {
        PyErr_SetString(PyExc_TypeError, "what is timed is called without arguments; it is not callable");
        return false;
    }
    if (self->settle == Py_None)
        self->settle = NULL;
    self->room = runs;
    self->seconds = malloc((runs ? runs : 1) * sizeof *self->seconds);
    if (!self->seconds) {
        PyErr_NoMemory();
        return false;
    }
    /* Work queued on a device before this point belongs to no run. */
    if (!settled(self)) {
        free(self->seconds);
        return false;
    }
    if (isfinite(most_s))
        self->until_ns = tare__py_clock_ns() + (uint64_t)(most_s * 1e9);
    return true;
}

/* Seconds, or None for no limit; a converter. */
static int read_limit(PyObject *given, void *seconds)
{
    *(double *)seconds = given == Py_None ? INFINITY : PyFloat_AsDouble(given);
    return !PyErr_Occurred();
}

PyDoc_STRVAR(timed_runs_doc,
             "timed_runs(function, runs, *, each=1, settle=None, most_s=None)\n--\n\n"
             "Seconds of each run, which is `each` calls of function() and one of settle() after them. Ends\n"
             "early when most_s have passed.");
static PyObject *timed_runs(PyObject *module, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"function", "runs", "each", "settle", "most_s", NULL};
    loop self = {.each = 1, .settle = Py_None};
    unsigned long runs;
    double most_s = INFINITY;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "Ok|$kOO&:timed_runs", words, &self.function, &runs,
                                     &self.each, &self.settle, read_limit, &most_s))
        return NULL;
    if (!self.each || !(most_s >= 0))
        return PyErr_Format(PyExc_ValueError, self.each ? "most_s is 0 or more" : "a run is one call or more");
    if (!open_loop(&self, runs, most_s))
        return NULL;
    bool fine = true;
    while (fine && self.n < runs && !time_is_over(&self))
        fine = run_once(&self);
    PyObject *list = fine ? tare__py_list_numbers(self.seconds, self.n) : NULL;
    free(self.seconds);
    return list;
}

PyDoc_STRVAR(warm_up_doc,
             "warm_up(function, least, most, *, settle=None, most_s=None)\n--\n\n"
             "Calls function() until its times are steady, from `least` to `most` times: (seconds of each run,\n"
             "whether they became steady, runs before that, coefficient of variation since).");
static PyObject *warm_up(PyObject *module, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"function", "least", "most", "settle", "most_s", NULL};
    loop self = {.each = 1, .settle = Py_None};
    unsigned long least, most;
    double most_s = INFINITY;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "Okk|$OO&:warm_up", words, &self.function, &least, &most,
                                     &self.settle, read_limit, &most_s))
        return NULL;
    if (most < least || !(most_s >= 0))
        return PyErr_Format(PyExc_ValueError, "a warm-up has no more than `most` runs, and 0 seconds or more");
    if (!open_loop(&self, most, most_s))
        return NULL;
    tare__steady steady = {.reached = false, .cv = NAN};
    size_t next_check = least;
    bool fine = true;
    while (fine && !steady.reached && self.n < most && (self.n < least || !time_is_over(&self))) {
        fine = run_once(&self);
        if (fine && self.n >= next_check) {
            steady = tare__steady_state(self.seconds, self.n);
            next_check = (size_t)((double)self.n * CHECK_GROWTH) + 1;
        }
    }
    PyObject *list = fine ? tare__py_list_numbers(self.seconds, self.n) : NULL;
    free(self.seconds);
    if (!list)
        return NULL;
    return Py_BuildValue("NOnd", list, steady.reached ? Py_True : Py_False,
                         (Py_ssize_t)(steady.reached ? steady.warmup : self.n), steady.cv);
}

#define NAMED(function) ((PyCFunction)(void (*)(void))(function))
static PyMethodDef functions[] = {
    {"timed_runs", NAMED(timed_runs), METH_VARARGS | METH_KEYWORDS, timed_runs_doc},
    {"warm_up", NAMED(warm_up), METH_VARARGS | METH_KEYWORDS, warm_up_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_loop = {.functions = functions};
