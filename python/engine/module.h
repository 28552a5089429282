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
/* What the engine writes, without the interpreter's lock; of several files one after the other. */
typedef struct tare__py_output {
    char *data;
    size_t length, room;
    struct tare__py_file {
        char *name;
        size_t from;
    } *files;
    size_t n_files;
} tare__py_output;
int tare__py_write(void *output, const void *data, size_t bytes); /* a tare_engine_write */
/* The bytes, or an exception from a status and its message. Frees the output. */
PyObject *tare__py_written(int status, const char *sentence, tare__py_output *output);
extern PyMethodDef tare__py_models_functions[], tare__py_page_functions[], tare__py_rules_functions[],
    tare__py_samples_functions[];

#endif
