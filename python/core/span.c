/* span: `with tare.span("name")`. A span object has no state: one for each name, shared by all threads and tasks, so
 * that entering costs a lookup and the recorder's few nanoseconds.
 * Any thread, attached to the interpreter. Must not know where spans go. */
#include "core.h"

#include <string.h>

typedef struct span {
    PyObject_HEAD
    tare_site site;
    PyObject *name;
    PyObject *numbers; /* a dict of the numbers attached at the end; NULL: none */
    uint32_t open;     /* number of times it is currently entered, by all threads */
} span;

/* A program with more names generates them as it runs (request_17): these spans are not kept. */
#define KEPT_MAX 16384

static PyTypeObject span_type;
static PyObject *kept; /* name to span */

/* ---- making and finding -------------------------------------------------------------------------------- */

static span *make(PyObject *name, PyObject *numbers)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "a span's name is text, not %.100s", Py_TYPE(name)->tp_name);
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8(name);
    span *self = text ? PyObject_New(span, &span_type) : NULL;
    if (!self)
        return NULL;
    self->site = (tare_site){0, text, NULL, 0, TARE_KIND_SPAN, 1, 0}; /* the text lives as long as the name */
    self->name = Py_NewRef(name);
    self->numbers = Py_XNewRef(numbers);
    self->open = 0;
    return self;
}

static PyObject *find(PyObject *name)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *known;
    if (PyDict_GetItemRef(kept, name, &known) != 0)
        return known; /* or NULL with an exception */
#else
    PyObject *known = PyDict_GetItemWithError(kept, name);
    if (known)
        return Py_NewRef(known);
    if (PyErr_Occurred())
        return NULL;
#endif
    PyObject *made = (PyObject *)make(name, NULL);
    if (made && PyDict_Size(kept) < KEPT_MAX && PyDict_SetItem(kept, name, made))
        Py_CLEAR(made);
    return made;
}

static bool check_numbers(PyObject *numbers)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(numbers, &at, &key, &value)) {
        if (!PyNumber_Check(value)) {
            PyErr_Format(PyExc_TypeError, "%U is a number, not %.100s", key, Py_TYPE(value)->tp_name);
            return false;
        }
    }
    return true;
}

PyDoc_STRVAR(span_doc,
             "span(name, **numbers)\n--\n\n"
             "A block of code that is timed, as a context manager or a decorator.\n\n"
             "Numbers (samples=32, tokens=512, bytes=…) are added up in the report, with their rates. Each generator\n"
             "and task has its own spans. If one function ends blocks of one name in another order than it began\n"
             "them (contextlib.ExitStack), their sum is right, but the innermost is taken to end first.\n\n"
             "    with tare.span(\"forward\", samples=len(batch)):\n"
             "        output = model(batch)\n");

static PyObject *get(PyObject *module, PyObject *const *arguments, Py_ssize_t n, PyObject *names)
{
    if (n != 1)
        return PyErr_Format(PyExc_TypeError, "span takes one name, not %zd", n);
    Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
    if (count == 0)
        return find(arguments[0]);
    PyObject *numbers = PyDict_New();
    for (Py_ssize_t i = 0; numbers && i < count; i++)
        if (PyDict_SetItem(numbers, PyTuple_GET_ITEM(names, i), arguments[1 + i]))
            Py_CLEAR(numbers);
    PyObject *made = numbers && check_numbers(numbers) ? (PyObject *)make(arguments[0], numbers) : NULL;
    Py_XDECREF(numbers);
    return made;
}

static void drop(PyObject *self)
{
    Py_XDECREF(((span *)self)->name);
    Py_XDECREF(((span *)self)->numbers);
    PyObject_Free(self);
}

/* ---- entering and leaving ------------------------------------------------------------------------------- */

/* The generator or coroutine that is running. NULL: a plain function, which ends the spans it began before another
 * function continues. */
static const void *generator_now(void)
{
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed; a generator's frame keeps its address */
    PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
    bool suspends = code && code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
    Py_XDECREF(code);
    return suspends ? frame : NULL;
}

/* One span object may be open more than once, in generators and tasks that take turns: these identify each. The first
 * needs no identification, and other threads have separate stacks. */
static const void *who_enters(const span *of)
{
    if (__builtin_expect(of->open == 0, 1))
        return NULL;
    return tare__py_task_now() || tare__py_stack_has(&of->site) ? generator_now() : NULL;
}

static const void *who_leaves(const span *of)
{
    if (__builtin_expect(of->open <= 1, 1))
        return NULL;
    return tare__py_task_now() || !tare__py_stack_is_unreported(&of->site) ? generator_now() : NULL;
}

static inline void enter_span(PyObject *self, const void *who)
{
    tare_site *site = &((span *)self)->site;
    tare__py_task *task = tare__py_task_now();
    if (__builtin_expect(task != NULL, 0))
        tare__py_task_begin(task, site, self, who);
    else
        tare__py_stack_begin_as(site, self, who);
    ((span *)self)->open++;
}

/* A number belongs to the innermost open span: this one, when this is called. */
static void attach(void *context)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(context, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key);
        double number = PyFloat_AsDouble(value);
        if (name && !(number == -1 && PyErr_Occurred())) {
            tare_site site;
            if (tare_recording())
                tare_number(tare__dynamic(name, TARE_KIND_NUMBER, &site), number);
        }
        PyErr_Clear(); /* checked when it was given; a number that fails to convert now is not worth an exception */
    }
}

static inline void leave_span(span *of, const void *who)
{
    tare__py_task *task = tare__py_task_now();
    of->open -= of->open > 0;
    if (!tare__py_task_end(task, &of->site, who))
        tare__py_stack_end_as(&of->site, who, of->numbers ? attach : NULL, of->numbers);
    else if (of->numbers) /* complete spans have none: the step around it, if any, gets them */
        attach(of->numbers);
}

static PyObject *enter(PyObject *self, PyObject *nothing)
{
    if (__builtin_expect(tare__gate_now() != 0, 1))
        enter_span(self, who_enters((span *)self));
    return Py_NewRef(self);
}

static PyObject *leave(PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
    span *of = (span *)self;
    if (__builtin_expect(tare__gate_now() != 0, 1))
        leave_span(of, who_leaves(of));
    Py_RETURN_NONE;
}

static bool is_span(PyObject *object, const char *who)
{
    if (Py_TYPE(object) == &span_type)
        return true;
    PyErr_Format(PyExc_TypeError, "%s takes a span (tare.span(\"name\")), not %.100s", who, Py_TYPE(object)->tp_name);
    return false;
}

PyDoc_STRVAR(begin_doc, "begin(span)\n--\n\n"
                        "Begins a span made by tare.span, where a with block does not fit. tare.end(span) ends it.\n\n"
                        "    load = tare.span(\"load\")\n"
                        "    tare.begin(load)\n"
                        "    …\n"
                        "    tare.end(load)\n");
static PyObject *begin(PyObject *module, PyObject *of)
{
    if (!is_span(of, "begin"))
        return NULL;
    if (tare__gate_now() != 0)
        enter_span(of, NULL);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(end_doc, "end(span)\n--\n\nEnds a span begun by tare.begin.\n\n    tare.end(load)\n");
static PyObject *end(PyObject *module, PyObject *of)
{
    if (!is_span(of, "end"))
        return NULL;
    if (tare__gate_now() != 0)
        leave_span((span *)of, NULL);
    Py_RETURN_NONE;
}

/* ---- as a decorator: the wrapper is Python's, made by the package ------------------------------------------ */

PyObject *tare__py_decorate(PyObject *self, PyObject *arguments, PyObject *named)
{
    PyObject *function;
    static char *words[] = {"function", NULL};
    const char *format = Py_TYPE(self) == &span_type ? "O:span" : "O:block";
    if (!PyArg_ParseTupleAndKeywords(arguments, named, format, words, &function))
        return NULL;
    PyObject *package = PyImport_ImportModule("tare._wrap");
    PyObject *made = package ? PyObject_CallMethod(package, "wrap", "OO", self, function) : NULL;
    Py_XDECREF(package);
    return made;
}

static PyObject *show(PyObject *self)
{
    return PyUnicode_FromFormat("tare.span(%R)", ((span *)self)->name);
}

static PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"name", T_OBJECT, offsetof(span, name), READONLY, "the name shown in reports"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject span_type = {
    TARE__PY_TYPE("tare.Span", span, 0,
                  "A block of code that is timed; made by tare.span.\n\n    forward = tare.span(\"forward\")\n"),
    .tp_dealloc = drop,
    .tp_repr = show,
    .tp_call = tare__py_decorate,
    .tp_methods = methods,
    .tp_members = members,
};

static PyMethodDef functions[] = {
    {"span", (PyCFunction)(void (*)(void))get, METH_FASTCALL | METH_KEYWORDS, span_doc},
    {"begin", begin, METH_O, begin_doc},
    {"end", end, METH_O, end_doc},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    kept = PyDict_New();
    return kept ? 0 : -1;
}

const tare__py_part tare__py_part_spans = {.type = &span_type, .functions = functions, .prepare = prepare};
