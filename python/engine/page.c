/* page: an HTML page of tiles, tables and charts from a description in Python.
 * Under the interpreter's lock. Must not know the modules behind tare_engine.h. */
#include "module.h"

#include <string.h>

int tare__py_add_piece(void *list, const void *data, size_t bytes)
{
    return tare__py_append(list, PyBytes_FromStringAndSize(data, (Py_ssize_t)bytes)) ? TARE_E_MEMORY : 0;
}

PyObject *tare__py_joined(PyObject *pieces)
{
    PyObject *empty = PyBytes_FromStringAndSize(NULL, 0);
    PyObject *whole = empty ? PyObject_CallMethod(empty, "join", "O", pieces) : NULL;
    Py_XDECREF(empty);
    Py_DECREF(pieces);
    return whole;
}

/* Texts of a list, valid as long as the list. NULL with an exception. */
static const char **take_cells(PyObject *list, size_t *n)
{
    *n = (size_t)PyList_GET_SIZE(list);
    const char **cells = PyMem_Calloc(*n + 1, sizeof *cells);
    if (!cells)
        PyErr_NoMemory();
    for (size_t i = 0; cells && i < *n; i++) {
        cells[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(list, (Py_ssize_t)i));
        if (cells[i])
            continue;
        PyMem_Free(cells);
        return NULL;
    }
    return cells;
}

static double *take_values(PyObject *list, size_t *n)
{
    *n = (size_t)PyList_GET_SIZE(list);
    double *values = PyMem_Calloc(*n + 1, sizeof *values);
    if (!values)
        PyErr_NoMemory();
    for (size_t i = 0; values && i < *n; i++)
        values[i] = PyFloat_AsDouble(PyList_GET_ITEM(list, (Py_ssize_t)i));
    if (!PyErr_Occurred())
        return values;
    PyMem_Free(values);
    return NULL;
}

static void free_section(tare_engine_section *section)
{
    PyMem_Free((void *)section->cells);
    PyMem_Free((void *)section->x);
    PyMem_Free((void *)section->y);
    PyMem_Free((void *)section->z);
}

/* (kind, title, note, columns, cells, x, y, z) */
static int take_section(PyObject *from, tare_engine_section *to)
{
    PyObject *cells, *x, *y, *z;
    if (!PyArg_ParseTuple(from, "ssssO!O!O!O!", &to->kind, &to->title, &to->note, &to->columns, &PyList_Type, &cells,
                          &PyList_Type, &x, &PyList_Type, &y, &PyList_Type, &z))
        return -1;
    to->cells = take_cells(cells, &to->n_cells);
    if (to->cells)
        to->x = take_values(x, &to->n_x);
    if (to->x)
        to->y = take_values(y, &to->n_y);
    if (to->y)
        to->z = take_values(z, &to->n_z);
    return to->z ? 0 : -1;
}

static PyObject *page(PyObject *module, PyObject *arguments)
{
    const char *title, *lead;
    PyObject *list, *pieces = NULL;
    char error[TARE_ENGINE_ERROR] = "";
    if (!PyArg_ParseTuple(arguments, "ssO!:page", &title, &lead, &PyList_Type, &list))
        return NULL;
    size_t n = (size_t)PyList_GET_SIZE(list), taken = 0;
    tare_engine_section *sections = PyMem_Calloc(n + 1, sizeof *sections);
    if (!sections)
        return PyErr_NoMemory();
    while (taken < n && take_section(PyList_GET_ITEM(list, (Py_ssize_t)taken), &sections[taken]) == 0)
        taken++;
    if (taken == n)
        pieces = PyList_New(0);
    int status = pieces ? tare_engine_page(title, lead, sections, n, tare__py_add_piece, pieces, error) : 0;
    for (size_t i = 0; i < n; i++)
        free_section(&sections[i]);
    PyMem_Free(sections);
    if (status) {
        Py_DECREF(pieces);
        return PyErr_Occurred() ? NULL : tare__py_raise_for(status, error);
    }
    return pieces ? tare__py_joined(pieces) : NULL;
}

PyMethodDef tare__py_page_functions[] = {
    {"page", page, METH_VARARGS,
     "A page: its title, a line below it, and [(kind, title, note, columns, cells, x, y, z)]."},
    {NULL, NULL, 0, NULL},
};
