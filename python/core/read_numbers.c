/* read_numbers: a Python sequence as an array, an array as a list, and filling lists and dicts; compiled into both
 * extensions. Any thread, attached to the interpreter. Must not know what the values mean. */
#define PY_SSIZE_T_CLEAN
#include "read_numbers.h"

#include <stdlib.h>

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

PyObject *tare__py_list_numbers(const double *values, size_t n)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++)
        if (tare__py_append(list, PyFloat_FromDouble(values[i])))
            Py_CLEAR(list);
    return list;
}

int tare__py_append(PyObject *list, PyObject *value)
{
    int status = value ? PyList_Append(list, value) : -1;
    Py_XDECREF(value);
    return status;
}

int tare__py_put(PyObject *dict, const char *key, PyObject *value)
{
    int status = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return status;
}
