/* page: an HTML page of tiles, tables and charts from a description in Python.
 * Under the interpreter's lock. Must not know the modules behind tare_engine.h. */
#include "module.h"

#include <stdlib.h>

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

static void free_section(tare_engine_section *section)
{
    PyMem_Free((void *)section->cells);
    free((void *)section->x);
    free((void *)section->y);
    free((void *)section->z);
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
        to->x = tare__py_read_numbers(x, &to->n_x);
    if (to->x)
        to->y = tare__py_read_numbers(y, &to->n_y);
    if (to->y)
        to->z = tare__py_read_numbers(z, &to->n_z);
    return to->z ? 0 : -1;
}

static PyObject *page(PyObject *module, PyObject *arguments)
{
    const char *title, *lead;
    PyObject *list;
    char error[TARE_ENGINE_ERROR] = "";
    tare__py_output to = {0};
    int status = 0;
    if (!PyArg_ParseTuple(arguments, "ssO!:page", &title, &lead, &PyList_Type, &list))
        return NULL;
    size_t n = (size_t)PyList_GET_SIZE(list), taken = 0;
    tare_engine_section *sections = PyMem_Calloc(n + 1, sizeof *sections);
    if (!sections)
        return PyErr_NoMemory();
    while (taken < n && take_section(PyList_GET_ITEM(list, (Py_ssize_t)taken), &sections[taken]) == 0)
        taken++;
    if (taken == n)
        status = tare_engine_page(title, lead, sections, n, tare__py_write, &to, error);
    for (size_t i = 0; i < n; i++)
        free_section(&sections[i]);
    PyMem_Free(sections);
    return taken == n ? tare__py_written(status, error, &to) : NULL;
}

PyMethodDef tare__py_page_functions[] = {
    {"page", page, METH_VARARGS,
     "A page: its title, a line below it, and [(kind, title, note, columns, cells, x, y, z)]."},
    {NULL, NULL, 0, NULL},
};
