/* units: a number with its unit, written as the command writes it.
 * Any thread, attached to the interpreter. Must not know what is measured. */
#include "core.h"

#include "base/base.h"

PyDoc_STRVAR(unit_doc, "unit(value, unit='')\n--\n\n"
                       "A value as text: ns and s as a time, bytes as KiB and so on, a share as a percentage,\n"
                       "any other unit as a count with that unit. n/a for a missing value.");
static PyObject *write_unit(PyObject *module, PyObject *arguments)
{
    PyObject *given;
    const char *unit = "";
    char out[TARE__VALUE_BYTES];
    if (!PyArg_ParseTuple(arguments, "O|s:unit", &given, &unit))
        return NULL;
    double value = given == Py_None ? Py_NAN : PyFloat_AsDouble(given);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    return PyUnicode_FromString(tare__unit_value(out, unit, value));
}

static PyMethodDef functions[] = {
    {"unit", write_unit, METH_VARARGS, unit_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_units = {.functions = functions};
