/* input: opens files that the user names, by the rule of the command: what is not a regular file is refused, not waited
 * for; finds programs. Any thread, attached to the interpreter. Must not know what is in the files. */
#include "core.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"

PyDoc_STRVAR(open_input_doc,
             "open_input(path, flags=0)\n--\n\n"
             "A descriptor to read from, for open(..., opener=open_input). OSError: it is not there, or\n"
             "not a regular file.");

static PyObject *open_input(PyObject *module, PyObject *arguments)
{
    PyObject *given, *path = NULL;
    const char *is = NULL;
    int flags, fd;
    (void)module;
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
    (void)module;
    if (!text)
        return NULL;
    if (!tare__find_program(text, path, sizeof path))
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(path);
}

static PyMethodDef functions[] = {
    {"find_program", find_program, METH_O, find_program_doc},
    {"open_input", open_input, METH_VARARGS, open_input_doc},
    {NULL, NULL, 0, NULL},
};

int tare__py_add_input(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
