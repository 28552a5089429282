/* layers: the time between the begin and the end of each layer of a model, by run. Its hooks are C, so that a layer's
 * time includes no interpreter overhead.
 * The thread that runs the model, attached to the interpreter. Must not know what a layer is. */
#include "core.h"

#include <stdlib.h>

#include "readings.h"

#define DEPTH_MOST 256u

typedef struct layers {
    PyObject_HEAD
    size_t count, runs, run;
    double *total, *self; /* seconds, [layer][run] */
    uint64_t *calls;      /* [layer] */
    struct {
        size_t layer;
        uint64_t from;
        double inside; /* seconds of layers in it */
    } open[DEPTH_MOST];
    size_t depth;
    unsigned long broken; /* ends without a matching begin */
} layers;

/* A callable that accepts any arguments of a hook. */
typedef struct hook {
    PyObject_HEAD
    layers *of;
    size_t layer;
    bool ends;
} hook;

static PyTypeObject layers_type, hook_type;

static void begin(layers *self, size_t layer)
{
    if (self->depth < DEPTH_MOST) {
        self->open[self->depth].layer = layer;
        self->open[self->depth].inside = 0;
        self->open[self->depth].from = tare__py_clock_ns();
    }
    self->depth++;
}

static void end(layers *self, size_t layer)
{
    uint64_t now = tare__py_clock_ns();
    if (!self->depth || self->depth-- > DEPTH_MOST)
        return;
    if (self->open[self->depth].layer != layer || self->run >= self->runs) {
        self->broken += self->open[self->depth].layer != layer;
        return;
    }
    double spent = 1e-9 * (double)(now - self->open[self->depth].from);
    size_t at = layer * self->runs + self->run;
    self->total[at] += spent;
    self->self[at] += spent - self->open[self->depth].inside;
    self->calls[layer]++;
    if (self->depth)
        self->open[self->depth - 1].inside += spent;
}

static PyObject *call_hook(PyObject *object, PyObject *arguments, PyObject *named)
{
    const hook *self = (const hook *)object;
    (self->ends ? end : begin)(self->of, self->layer);
    Py_RETURN_NONE;
}

static void drop_hook(PyObject *object)
{
    Py_XDECREF(((hook *)object)->of);
    Py_TYPE(object)->tp_free(object);
}

static bool read_number(const layers *self, PyObject *number, size_t *layer)
{
    *layer = PyLong_AsSize_t(number);
    if (*layer >= self->count && !PyErr_Occurred())
        PyErr_Format(PyExc_IndexError, "there are %zu layers", self->count);
    return *layer < self->count;
}

static PyObject *make_hook(layers *self, PyObject *number, bool ends)
{
    size_t layer;
    if (!read_number(self, number, &layer))
        return NULL;
    hook *made = PyObject_New(hook, &hook_type);
    if (!made)
        return NULL;
    Py_INCREF(self);
    made->of = self;
    made->layer = layer;
    made->ends = ends;
    return (PyObject *)made;
}

static PyObject *begins(PyObject *self, PyObject *number) { return make_hook((layers *)self, number, false); }
static PyObject *ends(PyObject *self, PyObject *number) { return make_hook((layers *)self, number, true); }

static PyObject *next_run(PyObject *object, PyObject *nothing)
{
    layers *self = (layers *)object;
    self->run += self->run < self->runs;
    self->depth = 0; /* of layers that an exception left */
    Py_RETURN_NONE;
}

static PyObject *read_layer(PyObject *object, PyObject *number)
{
    const layers *self = (const layers *)object;
    size_t layer;
    if (!read_number(self, number, &layer))
        return NULL;
    PyObject *total = tare__py_list_numbers(&self->total[layer * self->runs], self->run);
    PyObject *own = total ? tare__py_list_numbers(&self->self[layer * self->runs], self->run) : NULL;
    if (!own) {
        Py_XDECREF(total);
        return NULL;
    }
    return Py_BuildValue("KNN", (unsigned long long)self->calls[layer], total, own);
}

static PyObject *construct(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"layers", "runs", NULL};
    unsigned long count, runs;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "kk:LayerTimes", words, &count, &runs))
        return NULL;
    if (count > 1000000 || runs > 1000000 || count * runs > 100000000)
        return PyErr_Format(PyExc_ValueError, "too many layers and runs: %lu times %lu", count, runs);
    layers *self = (layers *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->count = count;
    self->runs = runs;
    self->total = calloc(count * runs + 1, sizeof *self->total);
    self->self = calloc(count * runs + 1, sizeof *self->self);
    self->calls = calloc(count + 1, sizeof *self->calls);
    if (!self->total || !self->self || !self->calls) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void drop(PyObject *object)
{
    layers *self = (layers *)object;
    free(self->total);
    free(self->self);
    free(self->calls);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"begins", begins, METH_O, "begins(layer)\n--\n\nA hook for the begin of a layer: call it with anything."},
    {"ends", ends, METH_O, "ends(layer)\n--\n\nA hook for its end."},
    {"next_run", next_run, METH_NOARGS, "next_run()\n--\n\nBegins the next run."},
    {"read", read_layer, METH_O,
     "read(layer)\n--\n\n(calls, seconds of each run, seconds without the layers inside)."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"broken", T_ULONG, offsetof(layers, broken), READONLY,
     "ends that do not match the open layer: layers that run concurrently"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject layers_type = {
    TARE__PY_TYPE("tare._core.LayerTimes", layers, 0, "LayerTimes(layers, runs)\n--\n\nTimes of layers, by run."),
    .tp_dealloc = drop,
    .tp_methods = methods,
    .tp_members = members,
    .tp_new = construct,
};

static PyTypeObject hook_type = {
    TARE__PY_TYPE("tare._core.LayerHook", hook, 0, "The begin or the end of a layer."),
    .tp_dealloc = drop_hook,
    .tp_call = call_hook,
};

const tare__py_part tare__py_part_layers = {.type = &layers_type, .inner_type = &hook_type};
