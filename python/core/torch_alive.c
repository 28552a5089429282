/* torch_alive: the optimizers and models that exist, held weakly. The callback for a freed one is C, which works until
 * the interpreter has ended: there, names of Python modules are cleared before the program's objects are freed.
 * Attached to the interpreter, with its lock. Must not know how the numbers are used. */
#include "torch.h"

/* Address of a weak reference: (that reference, addresses of a model's parts or None). */
static PyObject *optimizers, *models;

#define STEPPED_MAX 16u
static const void *stepped[STEPPED_MAX]; /* optimizers, since one of them was last freed */
static unsigned n_stepped;

static bool has_stepped(const void *optimizer)
{
    for (unsigned i = 0; i < n_stepped; i++)
        if (stepped[i] == optimizer)
            return true;
    return false;
}

void tare__torch_optimizer_stepped(const void *optimizer)
{
    if (n_stepped < STEPPED_MAX && !has_stepped(optimizer))
        stepped[n_stepped++] = optimizer;
}

static PyObject *key_of(PyObject *reference)
{
    return PyLong_FromVoidPtr(reference);
}

static PyObject *optimizer_gone(PyObject *self, PyObject *reference)
{
    PyObject *key = key_of(reference);
    n_stepped = 0; /* another one may get its address; those that still step are noted again */
    if (key && PyDict_DelItem(optimizers, key) == 0)
        tare__torch_optimizers_exist((unsigned)PyDict_Size(optimizers));
    Py_XDECREF(key);
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyObject *model_gone(PyObject *self, PyObject *reference)
{
    PyObject *key = key_of(reference);
    PyObject *held = key ? PyDict_GetItemWithError(models, key) : NULL; /* borrowed */
    PyObject *parts = held ? PyTuple_GET_ITEM(held, 1) : NULL;
    for (Py_ssize_t i = 0; parts && i < PyList_GET_SIZE(parts); i++)
        tare__torch_module_forget(PyList_GET_ITEM(parts, i));
    if (held)
        PyDict_DelItem(models, key);
    Py_XDECREF(key);
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyMethodDef callbacks[] = {
    {"optimizer_gone", optimizer_gone, METH_O, NULL},
    {"model_gone", model_gone, METH_O, NULL},
};

static int hold(PyObject *all, PyMethodDef *callback, PyObject *object, PyObject *parts)
{
    PyObject *function = PyCFunction_New(callback, NULL);
    PyObject *reference = function ? PyWeakref_NewRef(object, function) : NULL;
    PyObject *key = reference ? key_of(reference) : NULL;
    PyObject *held = reference ? PyTuple_Pack(2, reference, parts) : NULL;
    int status = key && held ? PyDict_SetItem(all, key, held) : -1;
    Py_XDECREF(function);
    Py_XDECREF(reference);
    Py_XDECREF(key);
    Py_XDECREF(held);
    return status;
}

static PyObject *optimizer_made(PyObject *self, PyObject *optimizer)
{
    if (hold(optimizers, &callbacks[0], optimizer, Py_None))
        return NULL;
    tare__torch_optimizers_exist((unsigned)PyDict_Size(optimizers));
    tare__torch_optimizer_is_made();
    Py_RETURN_NONE;
}

static PyObject *optimizers_stepped(PyObject *self, PyObject *nothing)
{
    PyObject *list = PyList_New(0), *all = PyDict_Values(optimizers);
    for (Py_ssize_t i = 0; list && all && i < PyList_GET_SIZE(all); i++) {
        PyObject *optimizer = PyObject_CallNoArgs(PyTuple_GET_ITEM(PyList_GET_ITEM(all, i), 0));
        if (!optimizer || (has_stepped(optimizer) && PyList_Append(list, optimizer)))
            Py_CLEAR(list);
        Py_XDECREF(optimizer);
    }
    if (!all)
        Py_CLEAR(list);
    Py_XDECREF(all);
    return list;
}

static PyObject *model_named(PyObject *self, PyObject *arguments)
{
    PyObject *model, *parts;
    if (!PyArg_ParseTuple(arguments, "OO!:torch_model_named", &model, &PyList_Type, &parts) ||
        hold(models, &callbacks[1], model, parts))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"torch_optimizer_made", optimizer_made, METH_O,
     "torch_optimizer_made(optimizer)\n--\n\nCounts it until it is freed."},
    {"torch_optimizers_stepped", optimizers_stepped, METH_NOARGS,
     "torch_optimizers_stepped()\n--\n\nThose that exist and have stepped, as a list."},
    {"torch_model_named", model_named, METH_VARARGS,
     "torch_model_named(model, parts)\n--\n\nThe names of the parts at these addresses are valid until it is freed."},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    optimizers = PyDict_New();
    models = PyDict_New();
    return optimizers && models ? 0 : -1;
}

const tare__py_part tare__py_part_torch_alive = {.functions = functions, .prepare = prepare};
