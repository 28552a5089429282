/* numbers: statistics of a sequence of numbers, for the parts of the package that are Python.
 * Any thread, attached to the interpreter. Must not know what the numbers mean. */
#include "core.h"

#include <stdlib.h>

#include "stat/stat.h"

double *tare__py_read_numbers(PyObject *sequence, size_t *n)
{
    PyObject *items = PySequence_Fast(sequence, "numbers are a list, a tuple or another sequence");
    if (!items)
        return NULL;
    *n = (size_t)PySequence_Fast_GET_SIZE(items);
    double *values = malloc((*n ? *n : 1) * sizeof *values);
    if (!values)
        PyErr_NoMemory();
    for (size_t i = 0; values && i < *n; i++) {
        values[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(items, (Py_ssize_t)i));
        if (values[i] == -1 && PyErr_Occurred()) {
            free(values);
            values = NULL;
        }
    }
    Py_DECREF(items);
    return values;
}

/* The same, sorted. */
static double *read_sorted(PyObject *sequence, size_t *n)
{
    double *values = tare__py_read_numbers(sequence, n);
    if (values)
        tare__sort(values, *n);
    return values;
}

PyDoc_STRVAR(quantile_doc, "quantile(numbers, q)\n--\n\n"
                           "By linear interpolation between order statistics, as NumPy does; Missing of none.");
static PyObject *quantile(PyObject *module, PyObject *arguments)
{
    (void)module;
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

PyDoc_STRVAR(interval_doc, "median_interval(numbers, confidence=0.95)\n--\n\n"
                           "(low, high) of the median by order statistics; None: too few numbers for a bound.");
static PyObject *median_interval(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *sequence;
    double confidence = 0.95;
    size_t n;
    if (!PyArg_ParseTuple(arguments, "O|d:median_interval", &sequence, &confidence))
        return NULL;
    if (!(confidence > 0 && confidence < 1))
        return PyErr_Format(PyExc_ValueError, "a confidence is between 0 and 1");
    double *values = read_sorted(sequence, &n);
    if (!values)
        return NULL;
    tare__interval interval = tare__quantile_interval(values, n, 0.5, confidence);
    free(values);
    if (!interval.low_rank)
        Py_RETURN_NONE;
    return Py_BuildValue("dd", interval.low, interval.high);
}

static PyMethodDef functions[] = {
    {"quantile", quantile, METH_VARARGS, quantile_doc},
    {"median_interval", median_interval, METH_VARARGS, interval_doc},
    {NULL, NULL, 0, NULL},
};

int tare__py_add_numbers(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
