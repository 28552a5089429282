/* missing: tare.Missing, a value that could not be measured: a float NaN with the reason.
 * Any thread, attached to the interpreter.
 * Must not know what is measured. */
#include "core.h"

#include <math.h>

typedef struct missing {
    PyFloatObject number;
    PyObject *reason;
} missing;

static PyTypeObject missing_type;

static bool is_missing(PyObject *object)
{
    return Py_TYPE(object) == &missing_type;
}

static PyObject *make(PyObject *reason)
{
    missing *self = (missing *)missing_type.tp_alloc(&missing_type, 0);
    if (!self)
        return NULL;
    self->number.ob_fval = NAN;
    self->reason = Py_NewRef(reason);
    return (PyObject *)self;
}

PyObject *tare__py_missing(const char *reason)
{
    PyObject *text = PyUnicode_FromString(reason);
    PyObject *made = text ? make(text) : NULL;
    Py_XDECREF(text);
    return made;
}

static PyObject *construct(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"reason", NULL};
    PyObject *reason;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "U:Missing", words, &reason))
        return NULL;
    return make(reason);
}

static void drop(PyObject *self)
{
    Py_XDECREF(((missing *)self)->reason);
    Py_TYPE(self)->tp_free(self);
}

/* ---- as text ------------------------------------------------------------------------------------------- */

static PyObject *as_text(PyObject *self)
{
    return PyUnicode_FromString("n/a");
}

static PyObject *show(PyObject *self)
{
    return PyUnicode_FromFormat("n/a (%U)", ((missing *)self)->reason);
}

static bool is_align(Py_UCS4 c)
{
    return c == '<' || c == '>' || c == '^' || c == '=';
}

/* Of a number's format only fill, alignment and width apply here. A number is aligned to the right. */
static PyObject *format(PyObject *self, PyObject *spec)
{
    if (!PyUnicode_Check(spec))
        return PyErr_Format(PyExc_TypeError, "a format is text, not %.100s", Py_TYPE(spec)->tp_name);
    Py_ssize_t n = PyUnicode_GET_LENGTH(spec), at = 0, width = 0;
    Py_UCS4 fill = ' ', align = '>';
    if (n > 1 && is_align(PyUnicode_READ_CHAR(spec, 1))) {
        fill = PyUnicode_READ_CHAR(spec, 0);
        align = PyUnicode_READ_CHAR(spec, 1);
        at = 2;
    } else if (n > 0 && is_align(PyUnicode_READ_CHAR(spec, 0))) {
        align = PyUnicode_READ_CHAR(spec, 0);
        at = 1;
    }
    while (at < n && strchr("+- #z0", (int)(PyUnicode_READ_CHAR(spec, at) & 0x7f)))
        at++;
    for (; at < n && Py_UNICODE_ISDIGIT(PyUnicode_READ_CHAR(spec, at)) && width < 100000; at++)
        width = width * 10 + (Py_ssize_t)(PyUnicode_READ_CHAR(spec, at) - '0');
    PyObject *text = PyUnicode_FromString("n/a"), *padding = PyUnicode_FromOrdinal((int)fill), *done = NULL;
    const char *how = align == '<' ? "ljust" : align == '^' ? "center" : "rjust";
    if (text && padding)
        done = PyObject_CallMethod(text, how, "nO", width, padding);
    Py_XDECREF(text);
    Py_XDECREF(padding);
    return done;
}

static PyObject *reduce(PyObject *self, PyObject *nothing)
{
    return Py_BuildValue("O(O)", (PyObject *)Py_TYPE(self), ((missing *)self)->reason);
}

/* ---- what is computed from it is missing for the same reason ---------------------------------------------- */

static PyObject *same(PyObject *self)
{
    return Py_NewRef(self);
}

static PyObject *either(PyObject *a, PyObject *b)
{
    PyObject *of = is_missing(a) ? a : b, *other = is_missing(a) ? b : a;
    if (!PyFloat_Check(other) && !PyLong_Check(other))
        Py_RETURN_NOTIMPLEMENTED;
    return same(of);
}

static PyObject *power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return either(a, b);
}

static PyObject *whole(PyObject *self)
{
    return PyErr_Format(PyExc_ValueError, "cannot convert a missing value to an integer: %U",
                        ((missing *)self)->reason);
}

static int truth(PyObject *self)
{
    return 0;
}

static PyObject *rounded(PyObject *self, PyObject *digits)
{
    return same(self);
}

static PyNumberMethods number = {
    .nb_add = either,
    .nb_subtract = either,
    .nb_multiply = either,
    .nb_remainder = either,
    .nb_power = power,
    .nb_negative = same,
    .nb_positive = same,
    .nb_absolute = same,
    .nb_bool = truth,
    .nb_int = whole,
    .nb_floor_divide = either,
    .nb_true_divide = either,
};

static PyMethodDef methods[] = {
    {"__format__", format, METH_O, NULL},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {"__round__", rounded, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"reason", T_OBJECT, offsetof(missing, reason), READONLY, "why the value is missing"},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(doc, "Missing(reason)\n--\n\n"
                  "A value that could not be measured: a NaN with a reason. It prints as n/a, no comparison with\n"
                  "it is true, and what is computed from it is missing too.\n\n"
                  "    >>> power = tare.Missing(\"no NVIDIA driver\")\n"
                  "    >>> f\"{power:.1f} W\", power > 90, power.reason\n"
                  "    ('n/a W', False, 'no NVIDIA driver')\n");

static PyTypeObject missing_type = {
    TARE__PY_TYPE("tare.Missing", missing, 0, doc),
    .tp_dealloc = drop,
    .tp_repr = show,
    .tp_str = as_text,
    .tp_as_number = &number,
    .tp_base = &PyFloat_Type,
    .tp_methods = methods,
    .tp_members = members,
    .tp_new = construct,
};

const tare__py_part tare__py_part_missing = {.type = &missing_type};
