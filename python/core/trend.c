/* trend: a straight line through points, for what is predicted from measurements.
 * Any thread, attached to the interpreter. Must not know what the numbers mean. */
#include "core.h"

#include <stdlib.h>

#include "stat/stat.h"

static PyObject *trend_of(const double *x, size_t n, const double *y, size_t m)
{
    if (n > TARE__TREND_MAX)
        return PyErr_Format(PyExc_ValueError, "%u points at most, not %zu", TARE__TREND_MAX, n);
    if (n != m)
        return PyErr_Format(PyExc_ValueError, "%zu x and %zu y", n, m);
    for (size_t i = 1; i < n; i++)
        if (!(x[i] > x[i - 1]))
            return PyErr_Format(PyExc_ValueError, "x is ascending");
    tare__trend found = tare__trend_of(x, y, n);
    return Py_BuildValue("dddd", found.slope, found.low, found.high, found.fit);
}

PyDoc_STRVAR(trend_doc,
             "trend(x, y)\n--\n\n"
             "(slope, low, high, fit): the median slope over all pairs of points with ascending x (Theil-Sen),\n"
             "its 95 % interval (NaN below 6 points), and R squared of the least-squares line.");
static PyObject *trend(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *xs, *ys;
    size_t n, m;
    if (!PyArg_ParseTuple(arguments, "OO:trend", &xs, &ys))
        return NULL;
    double *x = tare__py_read_numbers(xs, &n), *y = x ? tare__py_read_numbers(ys, &m) : NULL;
    PyObject *made = y ? trend_of(x, n, y, m) : NULL;
    free(x);
    free(y);
    return made;
}

static PyMethodDef functions[] = {
    {"trend", trend, METH_VARARGS, trend_doc},
    {NULL, NULL, 0, NULL},
};

int tare__py_add_trend(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
