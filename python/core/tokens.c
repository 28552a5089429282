/* tokens: the time of each token of a text that is being generated: a streamer that records times only.
 * The thread that generates, attached to the interpreter. Must not know what a token is. */
#include "core.h"

#include <stdlib.h>

#include "readings.h"

typedef struct tokens {
    PyObject_HEAD
    uint64_t *at; /* the begin, then one for each call of put() */
    size_t room, n, lost;
} tokens;

static PyObject *start(PyObject *object, PyObject *nothing)
{
    tokens *self = (tokens *)object;
    self->lost = 0;
    self->n = 1;
    self->at[0] = tare__py_clock_ns();
    Py_RETURN_NONE;
}

static PyObject *put(PyObject *object, PyObject *value)
{
    tokens *self = (tokens *)object;
    if (self->n < self->room)
        self->at[self->n++] = tare__py_clock_ns();
    else
        self->lost++;
    Py_RETURN_NONE;
}

static PyObject *end(PyObject *self, PyObject *nothing)
{
    Py_RETURN_NONE;
}

static PyObject *seconds(PyObject *object, PyObject *nothing)
{
    const tokens *self = (const tokens *)object;
    size_t n = self->n ? self->n - 1 : 0;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++)
        if (tare__py_append(list, PyFloat_FromDouble(1e-9 * (double)(self->at[i + 1] - self->at[0]))))
            Py_CLEAR(list);
    return list;
}

static PyObject *construct(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"room", NULL};
    unsigned long room;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "k:TokenTimes", words, &room))
        return NULL;
    if (room > 10000000)
        return PyErr_Format(PyExc_ValueError, "10000000 tokens at most");
    tokens *self = (tokens *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->room = room + 1;
    self->at = malloc(self->room * sizeof *self->at);
    if (!self->at) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void drop(PyObject *object)
{
    free(((tokens *)object)->at);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"start", start, METH_NOARGS, "start()\n--\n\nStarts again: times count from here."},
    {"put", put, METH_O, "put(value)\n--\n\nRecords the arrival of one token or several."},
    {"end", end, METH_NOARGS, "end()\n--\n\nThe text has ended."},
    {"seconds", seconds, METH_NOARGS, "seconds()\n--\n\nFrom the start to each put()."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"lost", T_PYSSIZET, offsetof(tokens, lost), READONLY, "calls of put() dropped for lack of space"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject tokens_type = {
    TARE__PY_TYPE("tare._core.TokenTimes", tokens, 0, "TokenTimes(room)\n--\n\nArrival time of each token."),
    .tp_dealloc = drop,
    .tp_methods = methods,
    .tp_members = members,
    .tp_new = construct,
};

const tare__py_part tare__py_part_tokens = {.type = &tokens_type};
