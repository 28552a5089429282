/* input: opens files that the user names and reads settings files, by the rules of the command: anything other than a
 * regular file is rejected, since opening it may block; finds programs.
 * Any thread, attached to the interpreter. Must not know what is in the files. */
#include "core.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"

PyDoc_STRVAR(open_input_doc,
             "open_input(path, flags=0)\n--\n\n"
             "A descriptor to read from, for open(..., opener=open_input). OSError: it does not exist, or is\n"
             "not a regular file.");

static PyObject *open_input(PyObject *module, PyObject *arguments)
{
    PyObject *given, *path = NULL;
    const char *is = NULL;
    int flags, fd;
    if (!PyArg_ParseTuple(arguments, "O|i:open_input", &given, &flags) || !PyUnicode_FSConverter(given, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    fd = tare__input_open(PyBytes_AS_STRING(path), true, &is);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (fd >= 0)
        return PyLong_FromLong(fd);
    if (!is) {
        errno = -fd;
        return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, given);
    }
    char sentence[80];
    snprintf(sentence, sizeof sentence, "it is %s, not a regular file", is);
    PyObject *error =
        PyObject_CallFunction(PyExc_OSError, "isO", strcmp(is, "a folder") == 0 ? EISDIR : EINVAL, sentence, given);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

PyDoc_STRVAR(find_program_doc, "find_program(name)\n--\n\n"
                               "The path of a program on PATH; None: not found. Relative entries of PATH are\n"
                               "ignored, so that no program of the current folder is run.");

static PyObject *find_program(PyObject *module, PyObject *name)
{
    char path[4096];
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        return NULL;
    if (!tare__find_program(text, path, sizeof path))
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(path);
}

PyDoc_STRVAR(read_settings_doc,
             "read_settings(path, table)\n--\n\n"
             "Why the file is not used, else None; and [(name, value, line)] of a table of TOML.\n"
             "No file: no settings. ValueError: it cannot be read, with the place.");

static PyObject *value_of(const tare__toml_pair *pair)
{
    if (pair->kind == TARE__TOML_STRING)
        return PyUnicode_FromString(pair->value);
    if (pair->kind == TARE__TOML_SWITCH)
        return PyBool_FromLong(strcmp(pair->value, "true") == 0);
    if (!strpbrk(pair->value, ".eE"))
        return PyLong_FromString(pair->value, NULL, 10);
    PyObject *text = PyUnicode_FromString(pair->value), *number = text ? PyFloat_FromString(text) : NULL;
    Py_XDECREF(text);
    return number;
}

static int take_pair(void *pairs, const tare__toml_pair *pair, tare__error *error)
{
    PyObject *value = value_of(pair), *row = value ? Py_BuildValue("sNI", pair->key, value, pair->line) : NULL;
    return tare__py_append(pairs, row) ? tare__fail(error, TARE_E_MEMORY, "out of memory") : 0;
}

static PyObject *pairs_of(const char *text, size_t bytes, const char *path, const char *table)
{
    tare__error error = {""};
    PyObject *decoded = PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, "strict");
    PyObject *pairs = decoded ? PyList_New(0) : NULL;
    if (!decoded)
        PyErr_Format(PyExc_ValueError, "%s is not UTF-8", path);
    else if (pairs && tare__toml_read(text, bytes, path, table, take_pair, pairs, &error) != 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, error.text);
        Py_CLEAR(pairs);
    }
    Py_XDECREF(decoded);
    return pairs;
}

static PyObject *read_settings(PyObject *module, PyObject *arguments)
{
    PyObject *path, *pairs = NULL;
    const char *table, *refused = NULL;
    char *text = NULL;
    size_t bytes = 0;
    int status;
    tare__error error = {""};
    if (!PyArg_ParseTuple(arguments, "O&s:read_settings", PyUnicode_FSConverter, &path, &table))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tare__toml_file(PyBytes_AS_STRING(path), &text, &bytes, &refused, &error);
    Py_END_ALLOW_THREADS
    if (status)
        PyErr_SetString(PyExc_ValueError, error.text);
    else
        pairs = text ? pairs_of(text, bytes, PyBytes_AS_STRING(path), table) : PyList_New(0);
    free(text);
    Py_DECREF(path);
    return pairs ? Py_BuildValue("zN", refused, pairs) : NULL;
}

PyDoc_STRVAR(setting_error_doc, "setting_error(fault, where, name, other=None)\n--\n\n"
                                "The message that the command prints for the same error in a setting.");

static PyObject *setting_error(PyObject *module, PyObject *arguments)
{
    static const char *const faults[] = {
        [TARE__SETTING_IGNORED] = "ignored", [TARE__SETTING_TWICE] = "twice", [TARE__SETTING_UNKNOWN] = "unknown",
        [TARE__SETTING_MISSPELT] = "misspelt", [TARE__SETTING_TYPE] = "type", [TARE__SETTING_SWITCH] = "switch",
        [TARE__SETTING_OUTSIDE] = "outside"};
    const char *fault, *where, *name, *other = NULL;
    tare__error error;
    if (!PyArg_ParseTuple(arguments, "sss|z:setting_error", &fault, &where, &name, &other))
        return NULL;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (strcmp(faults[i], fault) == 0) {
            tare__setting_fail(&error, (tare__setting_fault)i, where, name, other);
            return PyUnicode_DecodeUTF8(error.text, (Py_ssize_t)strlen(error.text), "replace");
        }
    return PyErr_Format(PyExc_ValueError, "no fault %s", fault);
}

static PyMethodDef functions[] = {
    {"find_program", find_program, METH_O, find_program_doc},
    {"open_input", open_input, METH_VARARGS, open_input_doc},
    {"read_settings", read_settings, METH_VARARGS, read_settings_doc},
    {"setting_error", setting_error, METH_VARARGS, setting_error_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_input = {.functions = functions};
