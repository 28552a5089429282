/* module: tare._core, the hot parts of the package in C.
 * Any thread, with the interpreter's lock. Refuses sub-interpreters: recording state is the process's.
 * Must not know how the measurements are used. */
#include "core.h"

/* In this order: blocks need results, monitors need blocks. */
#define PARTS(X) \
    X(tasks) X(spans) X(missing) X(results) X(aggregates) X(lanes) X(blocks) X(recorder) X(sampler) X(numbers)        \
    X(input) X(units) X(loop) X(layers) X(tokens) X(heap) X(monitor) X(gpu) X(power) X(laps) X(lines) X(call)         \
    X(torch_steps) X(torch_rounds) X(torch_around) X(torch_lines) X(torch_graph) X(torch_modules) X(torch_quiet)      \
    X(torch_alive) X(session)

#define DECLARE(name) extern const tare__py_part tare__py_part_##name;
PARTS(DECLARE)
#define ADDRESS(name) &tare__py_part_##name,
static const tare__py_part *const parts[] = {PARTS(ADDRESS)};

static int add(PyObject *module, const tare__py_part *part)
{
    if (part->inner_type && PyType_Ready(part->inner_type))
        return -1;
    if (part->type && PyModule_AddType(module, part->type))
        return -1;
    if (part->functions && PyModule_AddFunctions(module, part->functions))
        return -1;
    return part->prepare ? part->prepare(module) : 0;
}

static int fill(PyObject *module)
{
    if (PyModule_AddStringConstant(module, "__version__", TARE_VERSION))
        return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (add(module, parts[i]))
            return -1;
    tare__py_introduce();
    return 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tare._core",
    .m_doc = "The hot parts of tare: spans, readings, statistics.",
    .m_size = 0, /* with -1, a sub-interpreter would get a copy without calling this function */
};

/* A free-threaded interpreter enables its lock for a module that needs it, unless the user forbids that. */
static bool lock_can_be_had(void)
{
#ifdef Py_GIL_DISABLED
    PyObject *flags = PySys_GetObject("flags"); /* borrowed */
    PyObject *gil = flags ? PyObject_GetAttrString(flags, "gil") : NULL;
    bool forbidden = gil && PyLong_Check(gil) && PyLong_AsLong(gil) == 0;
    Py_XDECREF(gil);
    PyErr_Clear();
    return !forbidden;
#else
    return true;
#endif
}

PyMODINIT_FUNC PyInit__core(void)
{
    static PyObject *made; /* a second import gets the same module: recording state belongs to the process */
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "tare records a whole process and works in its main interpreter only, "
                                           "not in a sub-interpreter");
        return NULL;
    }
    if (!lock_can_be_had()) {
        PyErr_SetString(PyExc_ImportError, "tare needs the interpreter's lock: start Python without PYTHON_GIL=0 and "
                                           "-X gil=0");
        return NULL;
    }
    if (made)
        return Py_NewRef(made);
    PyObject *module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module)
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_USED); /* its state is guarded by the lock */
#endif
    if (module && fill(module)) {
        Py_DECREF(module);
        return NULL;
    }
    made = Py_XNewRef(module);
    return module;
}
