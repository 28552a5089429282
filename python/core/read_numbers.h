/* read_numbers: a Python sequence as an array, an array as a list, and filling lists and dicts; for both extensions.
 * Attached to the interpreter. Must not know what the values mean. */
#ifndef TARE_PYTHON_READ_NUMBERS_H
#define TARE_PYTHON_READ_NUMBERS_H

#include <Python.h>
#include <stddef.h>

PyObject *tare__py_list_numbers(const double *values, size_t n);
/* Each takes the value, which may be NULL with an exception. 0, or -1 with an exception. */
int tare__py_append(PyObject *list, PyObject *value);
int tare__py_put(PyObject *dict, const char *key, PyObject *value);
double *tare__py_read_numbers(PyObject *sequence, size_t *n); /* malloc'd; NULL with an exception */

#endif
