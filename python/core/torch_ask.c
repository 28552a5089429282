/* torch_ask: reads modules, loaders and weak references of the program without running its methods.
 * Attached to the interpreter, with its lock; no exception is left.
 * Must not know how the answers are used. */
#include "torch.h"

static PyObject *grad_enabled; /* torch.is_grad_enabled */

/* The referent of a weak reference, a new reference; NULL: not a reference, or the object was freed. */
PyObject *tare__torch_alive(PyObject *weak)
{
    PyObject *found = weak ? PyObject_CallNoArgs(weak) : NULL;
    PyErr_Clear();
    if (found == Py_None)
        Py_CLEAR(found);
    return found;
}

bool tare__torch_is_true(PyObject *object, const char *name, bool otherwise)
{
    PyObject *value = tare__torch_held(object, name);
    int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    PyErr_Clear();
    return truth < 0 ? otherwise : truth;
}

void tare__torch_ask_gradients_of(PyObject *is_grad_enabled)
{
    Py_XSETREF(grad_enabled, Py_NewRef(is_grad_enabled));
}

bool tare__torch_gradients(void)
{
    PyObject *value = grad_enabled ? PyObject_CallNoArgs(grad_enabled) : NULL;
    bool on = value != Py_False;
    Py_XDECREF(value);
    PyErr_Clear();
    return on;
}

/* A loss is a module too, and is always in training mode: only modules with parameters are significant. Looked up in
 * the module's own dicts: its methods may be the program's. */
#define MODULES_DEEPEST 100u
static bool parameters_in(PyObject *module, unsigned depth)
{
    PyObject *held = tare__torch_held(module, "_parameters"), *parts = tare__torch_held(module, "_modules");
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool any = false;
    while (!any && held && PyDict_Check(held) && PyDict_Next(held, &at, &key, &value))
        any = value != Py_None;
    at = 0;
    while (!any && depth && parts && PyDict_Check(parts) && PyDict_Next(parts, &at, &key, &value))
        any = value != Py_None && parameters_in(value, depth - 1);
    Py_XDECREF(held);
    Py_XDECREF(parts);
    return any;
}

bool tare__torch_has_parameters(PyObject *module)
{
    PyObject *held = tare__torch_held(module, "_parameters");
    bool plain = held && PyDict_Check(held);
    Py_XDECREF(held);
    if (plain)
        return parameters_in(module, MODULES_DEEPEST);
    PyObject *all = PyObject_CallMethod(module, "parameters", NULL); /* a scripted one, which keeps them elsewhere */
    PyObject *first = all ? PyIter_Next(all) : NULL;
    bool any = first != NULL;
    Py_XDECREF(first);
    Py_XDECREF(all);
    PyErr_Clear();
    return any;
}

Py_ssize_t tare__torch_number(PyObject *object, const char *name)
{
    PyObject *value = tare__torch_held(object, name);
    Py_ssize_t number = value && PyLong_Check(value) ? PyLong_AsSsize_t(value) : -1;
    Py_XDECREF(value);
    PyErr_Clear();
    return number;
}
