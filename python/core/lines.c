/* lines: LineCounts, a profile of chosen functions by line, and the functions that profiles have chosen.
 * Any thread, with the interpreter's lock. Must not know how the interpreter reports lines, nor files' text. */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* One function of a profile. The counters are the function's own and shared by all profiles that count it. */
typedef struct part {
    PyObject *code;
    tare__py_function *function; /* NULL: the profile does not run */
    tare__py_table base;         /* their values when it began */
    tare__py_table sum;          /* counts of earlier runs */
} part;

typedef struct counts {
    PyObject_HEAD
    part *parts;
    int count;
    size_t room;
    unsigned started;
    uint64_t since, ticks; /* running since; and for how long before that */
    PyObject *chooser;     /* NULL: counts only the functions it was given */
} counts;

static PyTypeObject counts_type;

/* Profiles that run, each with a reference. */
static counts **running;
static int running_count;
static size_t running_room;

/* ---- code to function: a word on the code object ----------------------------------------------------------- */

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Code_GetExtra              _PyCode_GetExtra
#define PyUnstable_Code_SetExtra              _PyCode_SetExtra
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#endif

static Py_ssize_t word_index = -1;
/* An odd word: no profile wanted this code when it was last checked, in this generation. */
static uintptr_t asking = 1;

static uintptr_t word_of(PyObject *code)
{
    void *word = NULL;
    if (PyUnstable_Code_GetExtra(code, word_index, &word)) {
        PyErr_Clear();
        return 0;
    }
    return (uintptr_t)word;
}

static int set_word(PyObject *code, uintptr_t word)
{
    return PyUnstable_Code_SetExtra(code, word_index, (void *)word);
}

tare__py_function *tare__py_lines_find(PyObject *code)
{
    tare__py_function *function = tare__py_lines_running(code);
    if (function)
        return function;
    uintptr_t word = word_of(code);
    return word & 1 ? NULL : (tare__py_function *)word;
}

static void free_function(tare__py_function *function)
{
    tare__py_lines_forget(function);
    tare__py_table_free(&function->table);
    free(function->line_of);
    Py_DECREF(function->code);
    free(function);
}

static tare__py_function *use(PyObject *code)
{
    tare__py_function *function = tare__py_lines_find(code);
    if (function) {
        function->users++;
        return function;
    }
    function = calloc(1, sizeof *function);
    if (!function) {
        PyErr_NoMemory();
        return NULL;
    }
    function->code = Py_NewRef(code);
    function->users = 1;
    if (set_word(code, (uintptr_t)function) || tare__py_lines_watch(code)) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        set_word(code, 0);
        PyErr_Clear();
        free_function(function);
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    return function;
}

static void unuse(tare__py_function *function)
{
    if (--function->users)
        return;
    tare__py_lines_unwatch(function->code);
    if (set_word(function->code, 0))
        PyErr_Clear();
    free_function(function);
}

/* ---- the parts of a profile -------------------------------------------------------------------------------- */

static part *part_of(counts *self, PyObject *code)
{
    for (int i = 0; i < self->count; i++)
        if (self->parts[i].code == code)
            return &self->parts[i];
    if (!tare__array_fit(&self->parts, &self->room, (size_t)self->count + 1, sizeof *self->parts)) {
        PyErr_NoMemory();
        return NULL;
    }
    self->parts[self->count] = (part){.code = Py_NewRef(code)};
    return &self->parts[self->count++];
}

static int begin_part(part *of)
{
    if (of->function)
        return 0;
    tare__py_function *function = use(of->code);
    if (!function)
        return -1;
    if (tare__py_table_copy(&of->base, &function->table)) {
        unuse(function);
        PyErr_NoMemory();
        return -1;
    }
    of->function = function;
    return 0;
}

/* Out of memory loses the last counts, and does not affect the program. */
static void end_part(part *of)
{
    if (!of->function)
        return;
    tare__py_table_add(&of->sum, &of->function->table, &of->base);
    unuse(of->function);
    of->function = NULL;
}

/* ---- looking for functions --------------------------------------------------------------------------------- */

static bool any_chooser(void)
{
    for (int i = 0; i < running_count; i++)
        if (running[i]->chooser)
            return true;
    return false;
}

static bool wants(counts *self, PyObject *code, PyObject *names)
{
    PyObject *answer = PyObject_CallFunctionObjArgs(self->chooser, code, names, NULL);
    int yes = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (yes < 0)
        PyErr_WriteUnraisable(self->chooser); /* not an error of the program, which continues */
    return yes > 0;
}

tare__py_function *tare__py_lines_meet(PyObject *code)
{
    PyObject *names = PyEval_GetGlobals();
    if (word_of(code) == asking || !names)
        return NULL;
    for (int i = 0; i < running_count; i++) {
        counts *of = running[i];
        if (!of->chooser)
            continue;
        Py_INCREF(of); /* while its chooser runs, another thread may stop it */
        if (wants(of, code, names) && of->started) {
            part *made = part_of(of, code);
            if (!made || begin_part(made))
                PyErr_WriteUnraisable(code);
        }
        Py_DECREF(of);
    }
    tare__py_function *function = tare__py_lines_find(code);
    if (!function && set_word(code, asking))
        PyErr_Clear();
    return function;
}

/* ---- starting and stopping --------------------------------------------------------------------------------- */

static int enlist(counts *self)
{
    if (!tare__array_fit(&running, &running_room, (size_t)running_count + 1, sizeof(counts *))) {
        PyErr_NoMemory();
        return -1;
    }
    Py_INCREF(self);
    running[running_count++] = self;
    return 0;
}

static void unlist(counts *self)
{
    int i = 0;
    while (i < running_count && running[i] != self)
        i++;
    memmove(&running[i], &running[i + 1], (size_t)(running_count - i - 1) * sizeof(counts *));
    running_count--;
}

static void halt(counts *self)
{
    tare__py_lines_settle();
    self->ticks += tare__py_lines_now() - self->since;
    for (int i = 0; i < self->count; i++)
        end_part(&self->parts[i]);
    unlist(self);
    if (running_count == 0) {
        tare__py_lines_hooks_off();
    } else if (self->chooser && !any_chooser() && tare__py_lines_hooks_on(false)) {
        PyErr_WriteUnraisable(Py_None);
    }
    Py_DECREF(self);
}

PyDoc_STRVAR(start_doc, "start()\n--\n\nStarts counting; calls nest.");
static PyObject *start(PyObject *object, PyObject *nothing)
{
    counts *self = (counts *)object;
    if (self->started++)
        Py_RETURN_NONE;
    tare__py_lines_clock_begin();
    tare__py_lines_settle();
    if (enlist(self)) {
        self->started = 0;
        return NULL;
    }
    asking += 2;
    int failed = tare__py_lines_hooks_on(any_chooser());
    for (int i = 0; i < self->count && !failed; i++)
        failed = begin_part(&self->parts[i]);
    self->since = tare__py_lines_now();
    if (!failed)
        Py_RETURN_NONE;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    self->started = 0;
    halt(self);
    PyErr_Restore(type, value, trace);
    return NULL;
}

PyDoc_STRVAR(stop_doc, "stop()\n--\n\nUndoes one start().");
static PyObject *stop(PyObject *object, PyObject *nothing)
{
    counts *self = (counts *)object;
    if (self->started == 0)
        return PyErr_Format(PyExc_RuntimeError, "this line profile does not run");
    if (--self->started == 0)
        halt(self);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(add_doc, "add(code)\n--\n\nCounts the lines of this code object, too.");
static PyObject *add(PyObject *object, PyObject *code)
{
    counts *self = (counts *)object;
    if (!PyCode_Check(code))
        return PyErr_Format(PyExc_TypeError, "add takes a code object, not %.100s", Py_TYPE(code)->tp_name);
    part *made = part_of(self, code);
    if (!made)
        return NULL;
    if (self->started) {
        tare__py_lines_settle();
        if (begin_part(made))
            return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- reading ----------------------------------------------------------------------------------------------- */

static PyObject *list_lines(const tare__py_table *table, double tick_s)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < table->room; i++) {
        const tare__py_line *line = &table->lines[i];
        if (line->hits == 0 && line->ticks == 0)
            continue;
        if (tare__py_append(list, Py_BuildValue("iKd", table->first + i, (unsigned long long)line->hits,
                                                (double)line->ticks * tick_s)))
            Py_CLEAR(list);
    }
    return list;
}

/* Creating objects may let another thread run and move the parts: they are read before. */
static PyObject *read_part(const part *of, double tick_s)
{
    tare__py_table total = {0, 0, NULL};
    PyObject *code = of->code;
    Py_INCREF(code);
    int failed = tare__py_table_copy(&total, &of->sum);
    if (!failed && of->function)
        failed = tare__py_table_add(&total, &of->function->table, &of->base);
    PyObject *lines = failed ? PyErr_NoMemory() : list_lines(&total, tick_s);
    tare__py_table_free(&total);
    PyObject *row = lines ? PyTuple_Pack(2, code, lines) : NULL;
    Py_XDECREF(lines);
    Py_DECREF(code);
    return row;
}

PyDoc_STRVAR(read_doc, "read()\n--\n\n[(code, [(line, hits, seconds), …]), …] up to now.");
static PyObject *read_counts(PyObject *object, PyObject *nothing)
{
    counts *self = (counts *)object;
    tare__py_lines_settle();
    double tick_s = tare__py_lines_tick_s();
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < self->count; i++)
        if (tare__py_append(list, read_part(&self->parts[i], tick_s)))
            Py_CLEAR(list);
    return list;
}

PyDoc_STRVAR(clear_doc, "clear()\n--\n\nResets all counts.");
static PyObject *clear_counts(PyObject *object, PyObject *nothing)
{
    counts *self = (counts *)object;
    tare__py_lines_settle();
    for (int i = 0; i < self->count; i++) {
        part *of = &self->parts[i];
        if (of->function && tare__py_table_copy(&of->base, &of->function->table))
            return PyErr_NoMemory();
        tare__py_table_free(&of->sum);
    }
    self->ticks = 0;
    self->since = tare__py_lines_now();
    Py_RETURN_NONE;
}

static PyObject *elapsed(PyObject *object, void *closure)
{
    counts *self = (counts *)object;
    uint64_t ticks = self->ticks + (self->started ? tare__py_lines_now() - self->since : 0);
    return PyFloat_FromDouble((double)ticks * tare__py_lines_tick_s());
}

static PyObject *is_running(PyObject *object, void *closure)
{
    return PyBool_FromLong(((counts *)object)->started != 0);
}

/* ---- the type ---------------------------------------------------------------------------------------------- */

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *words[] = {"chooser", NULL};
    PyObject *chooser = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "|O:LineCounts", words, &chooser))
        return NULL;
    if (chooser == Py_None)
        chooser = NULL;
    if (chooser && !PyCallable_Check(chooser))
        return PyErr_Format(PyExc_TypeError, "a chooser is a function, not %.100s", Py_TYPE(chooser)->tp_name);
    counts *self = (counts *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->chooser = Py_XNewRef(chooser);
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((counts *)object)->chooser);
    return 0;
}

/* Only a profile that does not run can get here: the list of those that do has a reference. */
static int forget_chooser(PyObject *object)
{
    Py_CLEAR(((counts *)object)->chooser);
    return 0;
}

static void drop(PyObject *object)
{
    counts *self = (counts *)object;
    PyObject_GC_UnTrack(object);
    Py_CLEAR(self->chooser);
    for (int i = 0; i < self->count; i++) {
        tare__py_table_free(&self->parts[i].base);
        tare__py_table_free(&self->parts[i].sum);
        Py_DECREF(self->parts[i].code);
    }
    free(self->parts);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"start", start, METH_NOARGS, start_doc},
    {"stop", stop, METH_NOARGS, stop_doc},
    {"add", add, METH_O, add_doc},
    {"read", read_counts, METH_NOARGS, read_doc},
    {"clear", clear_counts, METH_NOARGS, clear_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef members[] = {
    {"elapsed_s", elapsed, NULL, "seconds for which it has run", NULL},
    {"running", is_running, NULL, "True between start() and stop()", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject counts_type = {
    TARE__PY_TYPE("tare._core.LineCounts", counts, Py_TPFLAGS_HAVE_GC,
                  "Hits and time of the lines of chosen functions. chooser(code, globals) is called once for each\n"
                  "function that begins while it runs, and returns whether to count it."),
    .tp_new = make,
    .tp_dealloc = drop,
    .tp_traverse = traverse,
    .tp_clear = forget_chooser,
    .tp_methods = methods,
    .tp_getset = members,
};

static PyObject *forked(PyObject *module, PyObject *nothing)
{
    tare__py_lines_forked();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"lines_forked", forked, METH_NOARGS, "lines_forked()\n--\n\nIn a forked child: the other threads are gone."},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    word_index = PyUnstable_Eval_RequestCodeExtraIndex(NULL);
    if (word_index >= 0)
        return tare__py_lines_hooks_add();
    PyErr_SetString(PyExc_ImportError, "no extra slot is left on code objects: too many extensions use them");
    return -1;
}

const tare__py_part tare__py_part_lines = {.type = &counts_type, .functions = functions, .prepare = prepare};
