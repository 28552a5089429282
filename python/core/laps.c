/* laps: a stopwatch that counts its rounds, for loops that report when a batch begins and ends.
 * The thread that uses it, attached to the interpreter. Must not know what a round is. */
#include "core.h"

#include <math.h>

#include "readings.h"
#include "stat/stat.h"

typedef struct laps {
    PyObject_HEAD
    tare__moments all; /* seconds */
    double first, last;
    uint64_t begun; /* 0: no round is open */
} laps;

static PyTypeObject laps_type;

static PyObject *begin(PyObject *self, PyObject *nothing)
{
    ((laps *)self)->begun = tare__py_clock_ns();
    Py_RETURN_NONE;
}

static PyObject *end(PyObject *object, PyObject *nothing)
{
    laps *self = (laps *)object;
    uint64_t now = tare__py_clock_ns();
    if (!self->begun)
        Py_RETURN_NONE;
    self->last = 1e-9 * (double)(now - self->begun);
    self->begun = 0;
    if (!self->all.n)
        self->first = self->last;
    tare__moments_add(&self->all, self->last);
    return PyFloat_FromDouble(self->last);
}

static PyObject *cancel(PyObject *self, PyObject *nothing)
{
    ((laps *)self)->begun = 0;
    Py_RETURN_NONE;
}

static PyObject *clear(PyObject *object, PyObject *nothing)
{
    laps *self = (laps *)object;
    self->all = (tare__moments){0, 0, 0, 0, 0};
    self->begun = 0;
    Py_RETURN_NONE;
}

static PyObject *count(PyObject *self, void *closure)
{
    return PyLong_FromUnsignedLongLong(((laps *)self)->all.n);
}

static PyObject *is_open(PyObject *self, void *closure)
{
    return PyBool_FromLong(((laps *)self)->begun != 0);
}

enum { TOTAL, MEAN, LEAST, MOST, FIRST, SPREAD };

static PyObject *value(PyObject *object, void *which)
{
    const laps *self = (const laps *)object;
    const tare__moments *all = &self->all;
    const double values[] = {all->mean * (double)all->n, all->mean, all->min, all->max, self->first,
                             tare__moments_deviation(all)};
    intptr_t at = (intptr_t)which;
    return PyFloat_FromDouble(all->n || at == TOTAL ? values[at] : NAN);
}

static PyMethodDef methods[] = {
    {"begin", begin, METH_NOARGS, "begin()\n--\n\nBegins a round; an open round is discarded."},
    {"end", end, METH_NOARGS, "end()\n--\n\nEnds the open round and returns its seconds; None when none is open."},
    {"cancel", cancel, METH_NOARGS, "cancel()\n--\n\nDiscards the open round."},
    {"clear", clear, METH_NOARGS, "clear()\n--\n\nForgets all rounds."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef members[] = {
    {"count", count, NULL, "rounds that ended", NULL},
    {"open", is_open, NULL, "whether a round is open", NULL},
    {"total", value, NULL, "seconds of all of them", (void *)(intptr_t)TOTAL},
    {"mean", value, NULL, "NaN when there are none", (void *)(intptr_t)MEAN},
    {"min", value, NULL, "NaN when there are none", (void *)(intptr_t)LEAST},
    {"max", value, NULL, "NaN when there are none", (void *)(intptr_t)MOST},
    {"first", value, NULL, "NaN when there are none", (void *)(intptr_t)FIRST},
    {"std", value, NULL, "NaN when there are fewer than two", (void *)(intptr_t)SPREAD},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject laps_type = {
    TARE__PY_TYPE("tare._core.Laps", laps, 0, "A stopwatch that counts its rounds."),
    .tp_new = PyType_GenericNew,
    .tp_methods = methods,
    .tp_getset = members,
};

const tare__py_part tare__py_part_laps = {.type = &laps_type};
