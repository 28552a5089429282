/* numbers: statistics of a sequence of numbers, for the parts of the package that are Python.
 * Any thread, attached to the interpreter. Must not know what the numbers mean. */
#include "core.h"

#include <stdlib.h>

#include "stat/stat.h"

/* A sequence of numbers, sorted; malloc'd. */
static double *read_sorted(PyObject *sequence, size_t *n)
{
    double *values = tare__py_read_numbers(sequence, n);
    if (values)
        tare__sort(values, *n);
    return values;
}

PyDoc_STRVAR(quantile_doc, "quantile(numbers, q)\n--\n\n"
                           "By linear interpolation between order statistics, as NumPy does; Missing without any.");
static PyObject *quantile(PyObject *module, PyObject *arguments)
{
    PyObject *sequence;
    double q;
    size_t n;
    if (!PyArg_ParseTuple(arguments, "Od:quantile", &sequence, &q))
        return NULL;
    if (!(q >= 0 && q <= 1))
        return PyErr_Format(PyExc_ValueError, "a quantile is between 0 and 1");
    double *values = read_sorted(sequence, &n);
    if (!values)
        return NULL;
    PyObject *made = n ? PyFloat_FromDouble(tare__quantile_sorted(values, n, q)) : tare__py_missing("no numbers");
    free(values);
    return made;
}

PyDoc_STRVAR(quantile_interval_doc,
             "quantile_interval(numbers, q, confidence=0.95)\n--\n\n"
             "(low, high, None) by order statistics, or (None, None, how many numbers it needs).");
static PyObject *quantile_interval(PyObject *module, PyObject *arguments)
{
    size_t n;
    double q, confidence = 0.95;
    PyObject *sequence;
    if (!PyArg_ParseTuple(arguments, "Od|d:quantile_interval", &sequence, &q, &confidence))
        return NULL;
    if (!(q >= 0 && q <= 1) || !(confidence > 0 && confidence < 1))
        return PyErr_Format(PyExc_ValueError, "a quantile is 0 to 1, a confidence between them");
    double *values = read_sorted(sequence, &n);
    if (!values)
        return NULL;
    tare__interval found = tare__quantile_interval(values, n, q, confidence);
    free(values);
    if (!found.low_rank)
        return Py_BuildValue("OOn", Py_None, Py_None, (Py_ssize_t)found.needed);
    return Py_BuildValue("ddO", found.low, found.high, Py_None);
}

static PyMethodDef functions[] = {
    {"quantile", quantile, METH_VARARGS, quantile_doc},
    {"quantile_interval", quantile_interval, METH_VARARGS, quantile_interval_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_numbers = {.functions = functions};
