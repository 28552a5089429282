/* python_empty: a context manager in C that does nothing, and two functions that do nothing: the interpreter's own
 * cost of a with block and of two calls. bench/python_span.py builds it for the interpreter it runs in.
 * Must not know tare. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *enter(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    Py_INCREF(self);
    return self;
}

static PyObject *leave(PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
    (void)self, (void)arguments, (void)n;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "python_empty.Empty",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = methods,
    .tp_new = PyType_GenericNew,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "python_empty", .m_size = -1};

PyMODINIT_FUNC PyInit_python_empty(void)
{
    PyObject *module = PyType_Ready(&type) ? NULL : PyModule_Create(&definition);
    Py_INCREF(&type);
    if (module && PyModule_AddObject(module, "Empty", (PyObject *)&type))
        Py_CLEAR(module);
    return module;
}
