/* read_numbers: a Python sequence as an array, and an array as a list; for both extensions.
 * Attached to the interpreter. Must not know what the numbers mean. */
#ifndef TARE_PYTHON_READ_NUMBERS_H
#define TARE_PYTHON_READ_NUMBERS_H

#include <Python.h>
#include <stddef.h>

PyObject *tare__py_list_numbers(const double *values, size_t n);
double *tare__py_read_numbers(PyObject *sequence, size_t *n); /* malloc'd; NULL with an exception */

#endif
