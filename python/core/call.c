/* call: times one call as closely as possible: no Python code runs between the clock and the function.
 * Any thread, attached to the interpreter. Must not know why it is timed. */
#include "core.h"

#include "readings.h"

/* The raised exception, with its traceback, as an object. */
static PyObject *take_raised(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace && PyException_SetTraceback(value, trace))
        PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
#endif
}

PyDoc_STRVAR(call_doc, "timed_call(function, args, kwargs)\n--\n\n"
                       "(seconds, result, None), or (seconds, None, exception) when it raised.");
static PyObject *timed_call(PyObject *module, PyObject *arguments)
{
    PyObject *function, *words, *named;
    if (!PyArg_ParseTuple(arguments, "OO!O!:timed_call", &function, &PyTuple_Type, &words, &PyDict_Type, &named))
        return NULL;
    uint64_t from = tare__py_clock_ns();
    PyObject *result = PyObject_Call(function, words, named);
    double seconds = (double)(tare__py_clock_ns() - from) * 1e-9;
    if (result)
        return Py_BuildValue("dNO", seconds, result, Py_None);
    return Py_BuildValue("dON", seconds, Py_None, take_raised());
}

static PyMethodDef functions[] = {
    {"timed_call", timed_call, METH_VARARGS, call_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_call = {.functions = functions};
