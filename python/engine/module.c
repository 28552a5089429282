/* module: tare._engine: reads a trace in this process: its tables as rows or through the Arrow C data interface, its
 * views as bytes.
 * An object is used under the interpreter's lock; reading a trace runs without it.
 * Must not know how tables are made: it sees tare_engine.h only. */
#include "module.h"

typedef struct reading {
    PyObject_HEAD
    tare_engine_report *report;
} reading;

PyObject *tare__py_raise_for(int status, const char *sentence)
{
    PyObject *type = status == TARE_E_MEMORY       ? PyExc_MemoryError
                     : status == TARE_E_SYSTEM     ? PyExc_OSError
                     : status == TARE_E_PERMISSION ? PyExc_PermissionError
                                                   : PyExc_ValueError;
    PyErr_SetString(type, sentence);
    return NULL;
}

/* ---- values ------------------------------------------------------------------------------------------- */
static PyObject *value_at(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t at);

static int bit(const void *bits, int64_t at)
{
    return ((const uint8_t *)bits)[at / 8] >> (at % 8) & 1;
}

static PyObject *list_at(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t at)
{
    const int32_t *offsets = array->buffers[1];
    PyObject *list = PyList_New(0);
    for (int32_t i = offsets[at]; list && i < offsets[at + 1]; i++)
        if (tare__py_append(list, value_at(schema->children[0], array->children[0], i)))
            Py_CLEAR(list);
    return list;
}

static PyObject *struct_at(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t at)
{
    PyObject *row = PyDict_New();
    for (int64_t i = 0; row && i < schema->n_children; i++)
        if (tare__py_put(row, schema->children[i]->name, value_at(schema->children[i], array->children[i], at)))
            Py_CLEAR(row);
    return row;
}

static PyObject *value_at(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t at)
{
    const void *data = array->n_buffers > 1 ? array->buffers[1] : NULL;
    if (!bit(array->buffers[0], at))
        Py_RETURN_NONE;
    switch (schema->format[0]) {
    case 'g': return PyFloat_FromDouble(((const double *)data)[at]);
    case 'l': return PyLong_FromLongLong(((const int64_t *)data)[at]);
    case 'L': return PyLong_FromUnsignedLongLong(((const uint64_t *)data)[at]);
    case 'I': return PyLong_FromUnsignedLong(((const uint32_t *)data)[at]);
    case 'b': return PyBool_FromLong(bit(data, at));
    case 'u': {
        const int32_t *offsets = data;
        return PyUnicode_DecodeUTF8((const char *)array->buffers[2] + offsets[at], offsets[at + 1] - offsets[at],
                                    "replace");
    }
    default: return schema->format[1] == 'l' ? list_at(schema, array, at) : struct_at(schema, array, at);
    }
}

/* ---- tables ------------------------------------------------------------------------------------------- */
static int take_stream(const reading *self, PyObject *name, struct ArrowArrayStream *stream)
{
    char error[TARE_ENGINE_ERROR] = "";
    const char *table = PyUnicode_AsUTF8(name);
    if (!table)
        return -1;
    int status = tare_engine_arrow(self->report, table, stream, error);
    if (status)
        tare__py_raise_for(status, error);
    return status;
}

static PyObject *read_rows(PyObject *self, PyObject *name)
{
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray array;
    PyObject *rows = NULL;
    if (take_stream((reading *)self, name, &stream) != 0)
        return NULL;
    if (stream.get_schema(&stream, &schema) != 0) {
        stream.release(&stream);
        return PyErr_NoMemory();
    }
    stream.get_next(&stream, &array);
    rows = PyList_New(0);
    for (int64_t i = 0; rows && i < array.length; i++)
        if (tare__py_append(rows, value_at(&schema, &array, i)))
            Py_CLEAR(rows);
    array.release(&array);
    schema.release(&schema);
    stream.release(&stream);
    return rows;
}

static PyObject *read_columns(PyObject *self, PyObject *name)
{
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    if (take_stream((reading *)self, name, &stream) != 0)
        return NULL;
    int status = stream.get_schema(&stream, &schema);
    stream.release(&stream);
    if (status)
        return PyErr_NoMemory();
    PyObject *names = PyList_New(0);
    for (int64_t i = 0; names && i < schema.n_children; i++)
        if (tare__py_append(names, PyUnicode_FromString(schema.children[i]->name)))
            Py_CLEAR(names);
    schema.release(&schema);
    return names;
}

static void free_stream(PyObject *capsule)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream && stream->release) /* else it was taken */
        stream->release(stream);
    free(stream);
}

static PyObject *read_stream(PyObject *self, PyObject *name)
{
    struct ArrowArrayStream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return PyErr_NoMemory();
    if (take_stream((reading *)self, name, stream) != 0) {
        free(stream);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(stream, "arrow_array_stream", free_stream);
    if (!capsule) {
        stream->release(stream);
        free(stream);
    }
    return capsule;
}

static PyObject *read_absent(PyObject *self, PyObject *arguments)
{
    const char *table, *column;
    if (!PyArg_ParseTuple(arguments, "ss", &table, &column))
        return NULL;
    const char *why = tare_engine_absent(((reading *)self)->report, table, column);
    if (!why)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace");
}

/* ---- views -------------------------------------------------------------------------------------------- */
int tare__py_write(void *context, const void *data, size_t bytes)
{
    tare__py_output *to = context;
    if (to->room - to->length < bytes) {
        size_t room = 2 * to->room > to->length + bytes ? 2 * to->room : to->length + bytes;
        char *longer = realloc(to->data, room);
        if (!longer)
            return -1;
        to->data = longer;
        to->room = room;
    }
    memcpy(to->data + to->length, data, bytes);
    to->length += bytes;
    return 0;
}

static int open_file(void *context, const char *name)
{
    tare__py_output *to = context;
    struct tare__py_file *longer = realloc(to->files, (to->n_files + 1) * sizeof *longer);
    if (!longer)
        return -1;
    to->files = longer;
    longer[to->n_files] = (struct tare__py_file){strdup(name), to->length};
    return longer[to->n_files++].name ? 0 : -1;
}

static void free_output(tare__py_output *from)
{
    for (size_t i = 0; i < from->n_files; i++)
        free(from->files[i].name);
    free(from->files);
    free(from->data);
}

PyObject *tare__py_written(int status, const char *sentence, tare__py_output *to)
{
    PyObject *made =
        status ? tare__py_raise_for(status, sentence) : PyBytes_FromStringAndSize(to->data, (Py_ssize_t)to->length);
    free_output(to);
    return made;
}

static PyObject *emit(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"format", "all", NULL};
    const tare_engine_report *report = ((reading *)self)->report;
    const char *format;
    int all = 0, status;
    char error[TARE_ENGINE_ERROR] = "";
    tare__py_output to = {0};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s|p:emit", names, &format, &all))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tare_engine_emit(report, format, all, tare__py_write, &to, error);
    Py_END_ALLOW_THREADS
    return tare__py_written(status, error, &to);
}

static PyObject *emit_files(PyObject *self, PyObject *name)
{
    const tare_engine_report *report = ((reading *)self)->report;
    const char *format = PyUnicode_AsUTF8(name);
    int status;
    char error[TARE_ENGINE_ERROR] = "";
    tare__py_output to = {0};
    const tare_engine_files files = {open_file, tare__py_write, &to};
    if (!format)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tare_engine_emit_files(report, format, &files, error);
    Py_END_ALLOW_THREADS
    PyObject *made = status ? tare__py_raise_for(status, error) : PyDict_New();
    for (size_t i = 0; made && i < to.n_files; i++) {
        size_t from = to.files[i].from, end = i + 1 < to.n_files ? to.files[i + 1].from : to.length;
        if (tare__py_put(made, to.files[i].name, PyBytes_FromStringAndSize(to.data + from, (Py_ssize_t)(end - from))))
            Py_CLEAR(made);
    }
    free_output(&to);
    return made;
}

static void free_reading(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    tare_engine_close(((reading *)self)->report);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"rows", read_rows, METH_O, "The rows of a table, as dictionaries."},
    {"columns", read_columns, METH_O, "The names of a table's columns, also of an empty one."},
    {"stream", read_stream, METH_O, "A table as a capsule of the Arrow C stream interface."},
    {"absent", read_absent, METH_VARARGS, "Why a value of a table of one row is missing; None: it is present."},
    {"emit", (PyCFunction)(void (*)(void))emit, METH_VARARGS | METH_KEYWORDS,
     "The report as bytes of a format: text, json, html, events, chrome, perfetto, flamegraph, folded, "
     "speedscope, pprof."},
    {"emit_files", emit_files, METH_O, "The bytes of the files of a format, by name: csv, tensorboard."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, free_reading},
    {Py_tp_methods, methods},
    {Py_tp_doc, "The tables of a trace."},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tare._engine.Reading", .basicsize = sizeof(reading), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};

/* ---- module ------------------------------------------------------------------------------------------- */
/* None: no rules. A path that was converted is released by the caller. */
static int rules_converter(PyObject *path, void *result)
{
    return path == Py_None ? 1 : PyUnicode_FSConverter(path, result) != 0;
}

static PyObject *open_trace(PyObject *module, PyObject *arguments)
{
    const char *path, *rules = NULL;
    tare_engine_samples samples = {0};
    long long process = 0;
    char error[TARE_ENGINE_ERROR] = "";
    tare_engine_report *report = NULL;
    int status;
    PyObject *encoded = NULL, *encoded_rules = NULL, *made = NULL, *type;
    if (!PyArg_ParseTuple(arguments, "O&|O&zzzLp:open", PyUnicode_FSConverter, &encoded, rules_converter,
                          &encoded_rules, &samples.within, &samples.phase, &samples.thread, &process,
                          &samples.gpu_idle)) {
        Py_XDECREF(encoded);
        Py_XDECREF(encoded_rules);
        return NULL;
    }
    samples.process = process;
    path = PyBytes_AS_STRING(encoded);
    if (encoded_rules)
        rules = PyBytes_AS_STRING(encoded_rules);
    Py_BEGIN_ALLOW_THREADS
    status = tare_engine_open(path, rules, &samples, NULL, NULL, &report, error);
    Py_END_ALLOW_THREADS
    Py_DECREF(encoded);
    Py_XDECREF(encoded_rules);
    if (status)
        return tare__py_raise_for(status, error);
    type = PyObject_GetAttrString(module, "Reading");
    if (type)
        made = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
    Py_XDECREF(type);
    if (made)
        ((reading *)made)->report = report;
    else
        tare_engine_close(report);
    return made;
}

static PyObject *import_trace(PyObject *module, PyObject *arguments)
{
    PyObject *input = NULL, *made = NULL;
    char error[TARE_ENGINE_ERROR] = "";
    int status;
    if (!PyArg_ParseTuple(arguments, "O&O&:import_trace", PyUnicode_FSConverter, &input, PyUnicode_FSConverter,
                          &made)) {
        Py_XDECREF(input);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tare_engine_import(PyBytes_AS_STRING(input), PyBytes_AS_STRING(made), error);
    Py_END_ALLOW_THREADS
    Py_DECREF(input);
    Py_DECREF(made);
    if (status)
        return tare__py_raise_for(status, error);
    Py_RETURN_NONE;
}

/* ---- figures ------------------------------------------------------------------------------------------ */
static PyObject *read_figures(PyObject *module, PyObject *arguments)
{
    const char *json, *name;
    Py_ssize_t bytes;
    char error[TARE_ENGINE_ERROR] = "";
    tare__py_output to = {0};
    if (!PyArg_ParseTuple(arguments, "y#s:figures", &json, &bytes, &name))
        return NULL;
    return tare__py_written(tare_engine_figures(json, (size_t)bytes, name, tare__py_write, &to, error), error, &to);
}

static PyObject *read_machine(PyObject *module, PyObject *none)
{
    char error[TARE_ENGINE_ERROR] = "";
    tare__py_output to = {0};
    return tare__py_written(tare_engine_machine(tare__py_write, &to, error), error, &to);
}

/* Names and shares of a dictionary; they live as long as it does. False with an exception. */
static int read_gates(PyObject *given, tare_engine_gate **gates)
{
    PyObject *name, *share;
    Py_ssize_t at = 0, n = 0;
    *gates = PyMem_Calloc((size_t)PyDict_GET_SIZE(given) + 1, sizeof **gates);
    if (!*gates) {
        PyErr_NoMemory();
        return 0;
    }
    while (PyDict_Next(given, &at, &name, &share)) {
        (*gates)[n].name = PyUnicode_AsUTF8(name);
        (*gates)[n].share = PyFloat_AsDouble(share);
        if (!(*gates)[n++].name || PyErr_Occurred())
            return 0;
    }
    return 1;
}

static PyObject *check_figures(PyObject *module, PyObject *arguments)
{
    const char *base, *head;
    Py_ssize_t base_bytes, head_bytes;
    double share;
    PyObject *given, *made = NULL;
    tare_engine_gate *gates = NULL;
    char error[TARE_ENGINE_ERROR] = "";
    tare__py_output to = {0};
    if (!PyArg_ParseTuple(arguments, "y#y#dO!:check", &base, &base_bytes, &head, &head_bytes, &share, &PyDict_Type,
                          &given))
        return NULL;
    if (read_gates(given, &gates)) {
        size_t n = (size_t)PyDict_GET_SIZE(given);
        int status;
        Py_BEGIN_ALLOW_THREADS
        status = tare_engine_check(base, (size_t)base_bytes, head, (size_t)head_bytes, share, gates, n, tare__py_write,
                                   &to, error);
        Py_END_ALLOW_THREADS
        made = tare__py_written(status, error, &to);
    }
    PyMem_Free(gates);
    return made;
}

static PyObject *read_threshold(PyObject *module, PyObject *arguments)
{
    const char *threshold, *unit;
    char written[TARE_ENGINE_UNIT], error[TARE_ENGINE_ERROR] = "";
    double value;
    if (!PyArg_ParseTuple(arguments, "ss:threshold", &threshold, &unit))
        return NULL;
    int status = tare_engine_threshold(threshold, unit, &value, written, error);
    return status ? tare__py_raise_for(status, error) : Py_BuildValue("ds", value, written);
}

static PyMethodDef functions[] = {
    {"threshold", read_threshold, METH_VARARGS,
     "(value, unit as written) of NAME:LIMIT for a figure in \"ns\", \"bytes\", \"/s\" or \"\"."},
    {"machine", read_machine, METH_NOARGS, "This machine, its fingerprint, and the current source revision, as JSON."},
    {"figures", read_figures, METH_VARARGS, "A baseline, as JSON, from a baseline or a report that contains one."},
    {"check", check_figures, METH_VARARGS,
     "Figures against a baseline, both as JSON, with a gate for all (NaN: the default) and gates by name: what\n"
     "`tare check --json` writes."},
    {"import_trace", import_trace, METH_VARARGS, "Converts a trace of torch.profiler, Chrome or ONNX Runtime."},
    {"open", open_trace, METH_VARARGS, "Reads a trace, with a file of rules."},
    {NULL, NULL, 0, NULL},
};

static int add_names(PyObject *module)
{
    PyObject *tables = PyList_New(0), *singles = PyList_New(0);
    const char *name;
    int failed = !tables || !singles;
    for (size_t i = 0; !failed && (name = tare_engine_table(i)); i++)
        failed = tare__py_append(tare_engine_is_single(name) ? singles : tables, PyUnicode_FromString(name));
    failed = failed || PyObject_SetAttrString(module, "TABLES", tables) != 0 ||
             PyObject_SetAttrString(module, "SINGLES", singles) != 0;
    Py_XDECREF(tables);
    Py_XDECREF(singles);
    return failed ? -1 : 0;
}

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "tare._engine",
                                        .m_doc = "Reads traces in this process.", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__engine(void)
{
    PyObject *module = PyModule_Create(&definition), *type = module ? PyType_FromSpec(&spec) : NULL;
    if (!type || PyObject_SetAttrString(module, "Reading", type) != 0 || add_names(module) != 0 ||
        PyModule_AddFunctions(module, tare__py_models_functions) ||
        PyModule_AddFunctions(module, tare__py_page_functions) ||
        PyModule_AddFunctions(module, tare__py_rules_functions) ||
        PyModule_AddFunctions(module, tare__py_samples_functions))
        Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
