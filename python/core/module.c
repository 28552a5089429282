/* module: tare._core, the hot parts of the package in C.
 * Any thread, with the interpreter's lock. Refuses sub-interpreters: recording state is the process's.
 * Must not know what is made of the measurements. */
#include "core.h"

static int fill(PyObject *module)
{
    if (PyModule_AddStringConstant(module, "__version__", TARE_VERSION))
        return -1;
    if (tare__py_add_tasks(module) || tare__py_add_spans(module) || tare__py_add_lines(module) ||
        tare__py_add_call(module))
        return -1;
    if (tare__py_add_missing(module) || tare__py_add_results(module) || tare__py_add_aggregates(module))
        return -1;
    if (tare__py_add_lanes(module) || tare__py_add_blocks(module) || tare__py_add_recorder(module))
        return -1;
    if (tare__py_add_sampler(module) || tare__py_add_numbers(module))
        return -1;
    if (tare__py_add_missing(module) || tare__py_add_results(module) || tare__py_add_aggregates(module))
        return -1;
    if (tare__py_add_lanes(module) || tare__py_add_blocks(module) || tare__py_add_recorder(module))
        return -1;
    if (tare__py_add_monitor(module) || tare__py_add_watch(module) || tare__py_add_gpu(module) ||
        tare__py_add_laps(module))
        return -1;
    return tare__py_add_session(module);
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tare._core",
    .m_doc = "The hot parts of tare: spans, readings, statistics.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__core(void)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "tare records a whole process and works in its main interpreter only, "
                                           "not in a sub-interpreter");
        return NULL;
    }
    PyObject *module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module)
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_USED); /* what it keeps is guarded by the lock */
#endif
    if (module && fill(module)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
