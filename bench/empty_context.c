/* empty_context: a context manager in C that does nothing: what `with Empty("name"):` costs at least.
 * Any thread, with the interpreter's lock. Must not know tare. */
#include <Python.h>

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    (void)arguments, (void)named;
    return type->tp_alloc(type, 0);
}

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

static PyTypeObject empty_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "empty_context.Empty",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = make,
    .tp_methods = methods,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "empty_context", .m_size = -1};

PyMODINIT_FUNC PyInit_empty_context(void)
{
    PyObject *module = PyType_Ready(&empty_type) ? NULL : PyModule_Create(&definition);
    if (module) {
        Py_INCREF(&empty_type);
        PyModule_AddObject(module, "Empty", (PyObject *)&empty_type);
    }
    return module;
}
