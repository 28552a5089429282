/* torch_quiet: reads the program's objects and calls our own Python code without side effects: the program's tracing
 * functions and overrides of torch's functions (__torch_function__) are disabled meanwhile, and no method of an object
 * is run. Attached to the interpreter, with its lock. Must not know what is read, or why. */
#include "torch.h"

static PyObject *no_overrides; /* torch._C.DisableTorchFunction; NULL: not known */

#if PY_VERSION_HEX < 0x030b0000
#define PyThreadState_EnterTracing(state) ((void)(state))
#define PyThreadState_LeaveTracing(state) ((void)(state))
#endif

torch_quiet tare__torch_quiet_begin(void)
{
    torch_quiet quiet = {tare__torch_put_aside(), NULL};
    if (no_overrides) {
        quiet.guard = PyObject_CallNoArgs(no_overrides);
        PyObject *entered = quiet.guard ? PyObject_CallMethod(quiet.guard, "__enter__", NULL) : NULL;
        if (!entered)
            Py_CLEAR(quiet.guard);
        Py_XDECREF(entered);
        PyErr_Clear();
    }
    PyThreadState_EnterTracing(PyThreadState_Get());
    return quiet;
}

void tare__torch_quiet_end(torch_quiet quiet)
{
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        PyErr_SetInterrupt(); /* it was meant for the program, which receives it next */
    PyErr_Clear();
    PyThreadState_LeaveTracing(PyThreadState_Get());
    if (quiet.guard) {
        PyObject *left = PyObject_CallMethod(quiet.guard, "__exit__", "OOO", Py_None, Py_None, Py_None);
        Py_XDECREF(left);
        Py_DECREF(quiet.guard);
        PyErr_Clear();
    }
    tare__torch_put_back(quiet.raised);
}

/* The type's attribute of this name, bypassing __getattr__ and __getattribute__. A new reference, or NULL without an
 * exception. */
PyObject *tare__torch_attribute(PyObject *object, const char *name)
{
    PyObject *text = PyUnicode_FromString(name), *value = NULL;
    PyObject *found = text ? _PyType_Lookup(Py_TYPE(object), text) : NULL; /* borrowed */
    Py_XDECREF(text);
    if (found && Py_TYPE(found)->tp_descr_get) {
        Py_INCREF(found);
        value = Py_TYPE(found)->tp_descr_get(found, object, (PyObject *)Py_TYPE(object));
        Py_DECREF(found);
    }
    PyErr_Clear();
    return value;
}

PyObject *tare__torch_held(PyObject *object, const char *name)
{
    PyObject *dict = PyObject_GenericGetDict(object, NULL);
    PyObject *value = dict && PyDict_Check(dict) ? PyDict_GetItemString(dict, name) : NULL; /* borrowed */
    Py_XINCREF(value);
    Py_XDECREF(dict);
    PyErr_Clear();
    return value ? value : tare__torch_attribute(object, name);
}

static PyObject *use(PyObject *module, PyObject *type)
{
    Py_XSETREF(no_overrides, Py_NewRef(type));
    Py_RETURN_NONE;
}

static PyObject *dict_of(PyObject *module, PyObject *object)
{
    PyObject *held = PyType_Check(object) ? NULL : PyObject_GenericGetDict(object, NULL);
    PyErr_Clear();
    if (held && PyDict_Check(held))
        return held;
    Py_XDECREF(held);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"torch_quiet", use, METH_O,
     "torch_quiet(context)\n--\n\ntorch._C.DisableTorchFunction: entered around Tare's own calls of torch."},
    {"torch_dict_of", dict_of, METH_O,
     "torch_dict_of(object)\n--\n\nIts attributes as a dict, without a call of its methods; None: it has none."},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_torch_quiet = {.functions = functions};
