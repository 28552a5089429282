/* model: functions of tare._engine on model files: the cost of a model, its generated inputs, its copy in half
 * precision, and the results of ONNX Runtime's own profile.
 * Under the interpreter's lock. Must not know the modules behind tare_engine.h. */
#include "module.h"

#include <string.h>

/* Returned by a sink after an exception: any status will do, since the exception is raised instead. */
#define RAISED TARE_E_MEMORY

static PyObject *finish(int status, const char *error, PyObject *made)
{
    if (!status)
        return made;
    Py_XDECREF(made);
    return PyErr_Occurred() ? NULL : tare__py_raise_for(status, error);
}

/* ---- arguments ------------------------------------------------------------------------------------------ */
static int take_numbers(PyObject *from, size_t most, int64_t *whole, double *real, size_t *n)
{
    PyObject *items = PySequence_Fast(from, "a shape or values are a sequence");
    size_t given = items ? (size_t)PySequence_Fast_GET_SIZE(items) : 0;
    if (items && given > most)
        PyErr_Format(PyExc_ValueError, "%zu dimensions or values are too many; %zu is the limit", given, most);
    for (size_t i = 0; items && i < given && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, (Py_ssize_t)i);
        if (whole)
            whole[i] = PyLong_AsLongLong(item);
        else
            real[i] = PyFloat_AsDouble(item);
    }
    Py_XDECREF(items);
    *n = given;
    return PyErr_Occurred() ? -1 : 0;
}

typedef struct given {
    tare_engine_input input;
    int64_t dims[TARE_ENGINE_VALUES_MAX];
    double values[TARE_ENGINE_VALUES_MAX];
} given;

/* [(name, shape, values)] */
static given *take_inputs(PyObject *list, tare_engine_input **inputs, size_t *n)
{
    *n = (size_t)PyList_GET_SIZE(list);
    given *all = PyMem_Calloc(*n + 1, sizeof *all);
    *inputs = PyMem_Calloc(*n + 1, sizeof **inputs);
    if (!all || !*inputs)
        PyErr_NoMemory();
    for (size_t i = 0; i < *n && !PyErr_Occurred(); i++) {
        PyObject *shape, *values;
        given *one = &all[i];
        if (PyArg_ParseTuple(PyList_GET_ITEM(list, (Py_ssize_t)i), "sOO", &one->input.name, &shape, &values) &&
            take_numbers(shape, TARE_ENGINE_VALUES_MAX, one->dims, NULL, &one->input.rank) == 0)
            take_numbers(values, TARE_ENGINE_VALUES_MAX, NULL, one->values, &one->input.n_values);
        one->input.dims = one->dims;
        one->input.values = one->values;
        (*inputs)[i] = one->input;
    }
    if (!PyErr_Occurred())
        return all;
    PyMem_Free(all);
    PyMem_Free(*inputs);
    return NULL;
}

/* ---- what a model costs --------------------------------------------------------------------------------- */
static PyObject *model_json(PyObject *module, PyObject *arguments)
{
    PyObject *path, *list, *made = NULL;
    long long batch;
    char error[TARE_ENGINE_ERROR] = "";
    tare_engine_model_options options = {0};
    tare_engine_input *inputs = NULL;
    tare__py_output to = {0};
    if (!PyArg_ParseTuple(arguments, "O&LO!", PyUnicode_FSConverter, &path, &batch, &PyList_Type, &list))
        return NULL;
    given *all = take_inputs(list, &inputs, &options.n_inputs);
    options.batch = batch;
    options.inputs = inputs;
    if (all) {
        made = tare__py_written(tare_engine_model_json(PyBytes_AS_STRING(path), &options, tare__py_write, &to, error),
                                error, &to);
        PyMem_Free(all);
        PyMem_Free(inputs);
    }
    Py_DECREF(path);
    return made;
}

/* ---- its inputs ----------------------------------------------------------------------------------------- */
static int add_tensor(void *list, const tare_engine_tensor *tensor)
{
    PyObject *shape = PyList_New((Py_ssize_t)tensor->rank), *row = NULL;
    for (size_t i = 0; shape && i < tensor->rank; i++)
        PyList_SET_ITEM(shape, (Py_ssize_t)i, PyLong_FromLongLong(tensor->dims[i]));
    if (shape)
        row = Py_BuildValue("szNy#", tensor->name, tensor->type, shape, tensor->data, (Py_ssize_t)tensor->bytes);
    return tare__py_append(list, row) ? RAISED : 0;
}

static PyObject *model_inputs(PyObject *module, PyObject *arguments)
{
    PyObject *path, *made;
    long long batch;
    unsigned long long seed;
    char error[TARE_ENGINE_ERROR] = "";
    if (!PyArg_ParseTuple(arguments, "O&LK", PyUnicode_FSConverter, &path, &batch, &seed))
        return NULL;
    made = PyList_New(0);
    if (made)
        made = finish(tare_engine_model_generate(PyBytes_AS_STRING(path), &(tare_engine_model_options){.batch = batch},
                                                 seed, add_tensor, made, error),
                      error, made);
    Py_DECREF(path);
    return made;
}

/* ---- half precision, profiles --------------------------------------------------------------------------- */
static PyObject *model_half(PyObject *module, PyObject *arguments)
{
    PyObject *path = NULL, *out = NULL, *done = NULL;
    char error[TARE_ENGINE_ERROR] = "";
    if (PyArg_ParseTuple(arguments, "O&O&", PyUnicode_FSConverter, &path, PyUnicode_FSConverter, &out)) {
        Py_INCREF(Py_None);
        done = finish(tare_engine_model_half(PyBytes_AS_STRING(path), PyBytes_AS_STRING(out), error), error, Py_None);
        Py_DECREF(out);
    }
    Py_XDECREF(path);
    return done;
}

static int add_node(void *list, const tare_engine_node *node)
{
    PyObject *times = tare__py_list_numbers(node->run_ns, node->runs), *row = NULL;
    if (times)
        row = Py_BuildValue("{szszszszsKsNsd}", "name", node->name, "op", node->op, "provider", node->provider, "type",
                            node->type, "calls", (unsigned long long)node->calls, "run_ns", times, "output_bytes",
                            node->output_bytes);
    return tare__py_append(list, row) ? RAISED : 0;
}

static PyObject *runtime_profile(PyObject *module, PyObject *given_path)
{
    PyObject *path, *nodes;
    char error[TARE_ENGINE_ERROR] = "";
    if (!PyUnicode_FSConverter(given_path, &path))
        return NULL;
    nodes = PyList_New(0);
    if (nodes)
        nodes = finish(tare_engine_runtime_profile(PyBytes_AS_STRING(path), add_node, nodes, error), error, nodes);
    Py_DECREF(path);
    return nodes;
}

PyMethodDef tare__py_models_functions[] = {
    {"model_json", model_json, METH_VARARGS, "The cost of a model, for a batch and [(input, shape, values)], as JSON."},
    {"model_inputs", model_inputs, METH_VARARGS, "Generated inputs: (name, type, shape, bytes) of each."},
    {"model_half", model_half, METH_VARARGS, "Writes a model in half precision."},
    {"runtime_profile", runtime_profile, METH_O, "Nodes of a profile that ONNX Runtime wrote, without its first run."},
    {NULL, NULL, 0, NULL},
};
