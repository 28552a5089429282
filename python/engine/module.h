/* module: shared declarations of tare._engine. Under the interpreter's lock.
 * Must not know the modules behind tare_engine.h. */
#ifndef TARE_PYTHON_ENGINE_H
#define TARE_PYTHON_ENGINE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../core/read_numbers.h"
#include "engine/tare_engine.h"
#include "tare.h"

/* NULL, with an exception from a status and its message. */
PyObject *tare__py_raise_for(int status, const char *sentence);
/* A tare_engine_write that appends to a list; and its pieces as one, which takes the list. */
int tare__py_add_piece(void *list, const void *data, size_t bytes);
PyObject *tare__py_joined(PyObject *pieces);
extern PyMethodDef tare__py_models_functions[], tare__py_page_functions[], tare__py_samples_functions[];

#endif
