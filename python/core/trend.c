/* trend: a straight line through points, for what is predicted from measurements.
 * Any thread, attached to the interpreter. Must not know what the numbers mean. */
#include "core.h"

#include "stat/stat.h"

/* How many there are; -1 with an exception. */
static Py_ssize_t read_numbers(PyObject *sequence, double out[TARE__TREND_MAX])
{
    PyObject *items = PySequence_Fast(sequence, "numbers are a list, a tuple or another sequence");
    Py_ssize_t n = items ? PySequence_Fast_GET_SIZE(items) : -1;
    if (n > (Py_ssize_t)TARE__TREND_MAX) {
        PyErr_Format(PyExc_ValueError, "%u points at most, not %zd", TARE__TREND_MAX, n);
        n = -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        out[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(items, i));
        if (out[i] == -1 && PyErr_Occurred())
            n = -1;
    }
    Py_XDECREF(items);
    return n;
}

PyDoc_STRVAR(trend_doc, "trend(x, y)\n--\n\n"
                        "(slope, low, high, fit): the median slope over all pairs of points with ascending x (Theil-Sen),\n"
                        "its 95 % interval (NaN below 6 points), and R squared of the least-squares line.");
static PyObject *trend(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *xs, *ys;
    double x[TARE__TREND_MAX], y[TARE__TREND_MAX];
    if (!PyArg_ParseTuple(arguments, "OO:trend", &xs, &ys))
        return NULL;
    Py_ssize_t n = read_numbers(xs, x), m = n < 0 ? -1 : read_numbers(ys, y);
    if (n < 0 || m < 0)
        return NULL;
    if (n != m)
        return PyErr_Format(PyExc_ValueError, "%zd x and %zd y", n, m);
    for (Py_ssize_t i = 1; i < n; i++)
        if (!(x[i] > x[i - 1])) {
            PyErr_SetString(PyExc_ValueError, "x is ascending");
            return NULL;
        }
    tare__trend found = tare__trend_of(x, y, (size_t)n);
    return Py_BuildValue("dddd", found.slope, found.low, found.high, found.fit);
}

static PyMethodDef functions[] = {
    {"trend", trend, METH_VARARGS, trend_doc},
    {NULL, NULL, 0, NULL},
};

int tare__py_add_trend(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
