/* module: tare._core, the hot parts of the package in C.
 * Any thread, with the interpreter's lock. Refuses sub-interpreters: recording state is the process's.
 * Must not know how the measurements are used. */
#include "core.h"
#include "torch.h"

/* In this order: blocks need results, monitors need blocks. */
static int (*const parts[])(PyObject *module) = {
    tare__py_add_tasks,
    tare__py_add_spans,
    tare__py_add_missing,
    tare__py_add_results,
    tare__py_add_aggregates,
    tare__py_add_lanes,
    tare__py_add_blocks,
    tare__py_add_recorder,
    tare__py_add_sampler,
    tare__py_add_numbers,
    tare__py_add_input,
    tare__py_add_units,
    tare__py_add_loop,
    tare__py_add_layers,
    tare__py_add_tokens,
    tare__py_add_heap,
    tare__py_add_monitor,
    tare__py_add_gpu,
    tare__py_add_power,
    tare__py_add_laps,
    tare__py_add_lines,
    tare__py_add_call,
    tare__py_add_torch_steps,
    tare__py_add_torch_rounds,
    tare__py_add_torch_around,
    tare__py_add_torch_lines,
    tare__py_add_torch_graph,
    tare__py_add_torch_modules,
    tare__py_add_torch_quiet,
    tare__py_add_torch_alive,
    tare__py_add_session,
};

static int fill(PyObject *module)
{
    if (PyModule_AddStringConstant(module, "__version__", TARE_VERSION))
        return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module))
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
    if (made) {
        Py_INCREF(made);
        return made;
    }
    PyObject *module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module)
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_USED); /* its state is guarded by the lock */
#endif
    if (module && fill(module)) {
        Py_DECREF(module);
        return NULL;
    }
    Py_XINCREF(module);
    made = module;
    return module;
}
