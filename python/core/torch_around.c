/* torch_around: wraps functions of torch, calls them, and reports events: a batch is requested, a backward
 * runs, a copy to a device is made. Exceptions propagate unchanged.
 * Any thread, attached to the interpreter. Must not know how the events are used. */
#include "torch.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct around around;
typedef PyObject *call_around(around *self, PyObject *const *words, size_t n, PyObject *names);

struct around {
    PyObject_HEAD PyObject *function;
    PyObject *before, *after; /* of the role "reported"; NULL: no callback */
    PyObject *attributes;     /* __dict__: what functools.wraps would set */
    call_around *call;
    const char *role;
    vectorcallfunc vectorcall;
};

static PyTypeObject around_type;
static __thread bool scaling __attribute__((tls_model("initial-exec"))); /* inside of a scaler's step */
static __thread bool closing __attribute__((tls_model("initial-exec"))); /* an optimizer's step calls a closure */

static PyObject *pass_on(const around *self, PyObject *const *words, size_t n, PyObject *names)
{
    return PyObject_Vectorcall(self->function, words, n, names);
}

/* ---- loaders ------------------------------------------------------------------------------------------- */
static tare_site samples_site = {0, "samples", NULL, 0, TARE_KIND_NUMBER, 1, 0};
static tare_site load_site = {0, "load samples", NULL, 0, TARE_KIND_SPAN, 1, 0};
static tare_site load_aside_site = {0, "load samples (evaluation)", NULL, 0, TARE_KIND_SPAN, 1, 0};

/* The number of samples of each batch that an iterator has drawn indices for and not returned yet, oldest first. Kept
 * in the iterator itself, which is never copied or pickled; negative: an upper bound, for an iterable dataset. */
#define DRAWN "_tare_drawn"

/* 0: unknown from the index. Without automatic batching, a list of indices is a batch that the dataset builds. */
static Py_ssize_t length_drawn(PyObject *iterator, PyObject *index)
{
    PyObject *collates = tare__torch_held(iterator, "_auto_collation");
    bool batched = collates == Py_True;
    Py_XDECREF(collates);
    Py_ssize_t length = PyList_Check(index) || (batched && !PyUnicode_Check(index)) ? PyObject_Size(index) : 0;
    PyErr_Clear();
    if (length <= 0)
        return 0;
    return tare__torch_number(iterator, "_dataset_kind") == 1 ? -length : length;
}

static void keep_drawn(PyObject *iterator, Py_ssize_t length)
{
    PyObject *name = PyUnicode_InternFromString(DRAWN), *value = PyLong_FromSsize_t(length);
    PyObject *all = tare__torch_held(iterator, DRAWN);
    if (!all || tare__torch_number(iterator, "_send_idx") <= 0) { /* no workers, or restarted: none is in progress */
        Py_XSETREF(all, PyList_New(0));
        if (name && all)
            PyObject_GenericSetAttr(iterator, name, all);
    }
    if (all && value && PyList_Check(all))
        PyList_Append(all, value);
    Py_XDECREF(all);
    Py_XDECREF(value);
    Py_XDECREF(name);
    PyErr_Clear();
}

/* 0: unknown. */
static Py_ssize_t take_drawn(PyObject *iterator)
{
    PyObject *all = tare__torch_held(iterator, DRAWN);
    Py_ssize_t length = 0;
    if (all && PyList_Check(all) && PyList_GET_SIZE(all)) {
        length = PyLong_AsSsize_t(PyList_GET_ITEM(all, 0));
        PyList_SetSlice(all, 0, 1, NULL);
    }
    Py_XDECREF(all);
    PyErr_Clear();
    return length;
}

/* The training process draws the indices of a batch, for itself or for a worker. */
static PyObject *call_index(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    PyObject *index = pass_on(self, words, n, names);
    if (!index || PyVectorcall_NARGS(n) < 1)
        return index;
    torch_quiet quiet = tare__torch_quiet_begin();
    keep_drawn(words[0], length_drawn(words[0], index));
    tare__torch_quiet_end(quiet);
    return index;
}

/* The length of the first object with a shape in a batch: tensors, lists of them, dicts of them. -1: none found. */
static double samples_in(PyObject *batch, int depth)
{
    if (PyTuple_Check(batch) || PyList_Check(batch)) {
        PyObject *first = depth && PySequence_Fast_GET_SIZE(batch) ? PySequence_Fast_GET_ITEM(batch, 0) : NULL;
        return first ? samples_in(first, depth - 1) : -1;
    }
    if (PyDict_Check(batch)) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        return depth && PyDict_Next(batch, &at, &key, &value) ? samples_in(value, depth - 1) : -1;
    }
    PyObject *shape = tare__torch_attribute(batch, "shape");
    double n = shape && PyTuple_Check(shape) && PyTuple_GET_SIZE(shape)
                   ? PyFloat_AsDouble(PyTuple_GET_ITEM(shape, 0))
                   : -1;
    Py_XDECREF(shape);
    PyErr_Clear();
    return n;
}

/* The longest object in it up to this length: a tensor of samples, and a list of them if that has the full length. */
static double longest_in(PyObject *batch, double most, int depth)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    double longest = -1;
    if (PyTuple_Check(batch) || PyList_Check(batch)) {
        if ((double)PySequence_Fast_GET_SIZE(batch) == most)
            return most;
        for (; depth && at < PySequence_Fast_GET_SIZE(batch); at++) {
            double one = longest_in(PySequence_Fast_GET_ITEM(batch, at), most, depth - 1);
            longest = one > longest ? one : longest;
        }
    } else if (PyDict_Check(batch)) {
        while (depth && PyDict_Next(batch, &at, &key, &value)) {
            double one = longest_in(value, most, depth - 1);
            longest = one > longest ? one : longest;
        }
    } else {
        longest = samples_in(batch, 0);
    }
    return longest <= most ? longest : -1;
}

/* A collate_fn may return anything: the number of samples that the loader requested from the dataset is used, where it
 * is known. An iterable dataset's last batch may have fewer. */
static double samples_of(PyObject *batch, Py_ssize_t drawn)
{
    if (drawn >= 0)
        return drawn ? (double)drawn : samples_in(batch, 3);
    double longest = longest_in(batch, (double)-drawn, 2);
    return longest > 0 ? longest : (double)-drawn;
}

static PyObject *call_data(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    torch_fetch fetch = {0};
    if (PyVectorcall_NARGS(n) < 1)
        return pass_on(self, words, n, names);
    torch_phase before = tare__torch_phase_now();
    bool nested = before != NO_PHASE && before != OPTIMIZER; /* a loader inside of a loader's dataset */
    if (nested) {
        PyObject *batch = pass_on(self, words, n, names);
        torch_raised raised = tare__torch_put_aside();
        take_drawn(words[0]);
        tare__torch_put_back(raised);
        return batch;
    }
    tare__torch_fetch_begin(words[0], &fetch);
    bool begun = tare__torch_phase_begin(DATA);
    PyObject *batch = pass_on(self, words, n, names);
    torch_raised raised = tare__torch_put_aside();
    torch_quiet quiet = tare__torch_quiet_begin();
    Py_ssize_t drawn = take_drawn(words[0]);
    bool for_step = tare__torch_fetch_is_for_step(&fetch);
    double samples = batch && (for_step || tare_recording()) ? samples_of(batch, drawn) : -1;
    tare__torch_quiet_end(quiet);
    if (for_step && batch)
        tare__torch_batch_came(words[0], fetch.first, samples);
    else if (for_step)
        tare__torch_batches_ended(words[0]);
    else if (begun && samples > 0 && !tare__torch_uncounted())
        tare_number(&samples_site, samples);
    if (begun)
        tare__torch_phase_end(DATA);
    tare__torch_fetch_end(&fetch, batch != NULL);
    tare__torch_put_back(raised);
    return batch;
}

static __thread bool loading __attribute__((tls_model("initial-exec")));

bool tare__torch_loads_aside;

static PyObject *loads_aside(PyObject *module, PyObject *yes)
{
    tare__torch_loads_aside = yes == Py_True;
    Py_RETURN_NONE;
}

bool tare__torch_loading(void)
{
    return loading;
}

/* What the dataset does, in a worker or in the training process. */
static PyObject *call_load(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    tare_site *site = tare__torch_loads_aside ? &load_aside_site : &load_site;
    tare__py_stack_begin(site, Py_None);
    loading = true;
    PyObject *batch = pass_on(self, words, n, names);
    torch_raised raised = tare__torch_put_aside();
    loading = false;
    tare__py_stack_end(site);
    tare__torch_put_back(raised);
    return batch;
}

/* ---- backward and optimizers ---------------------------------------------------------------------------- */
static void tell_retained(void)
{
    static bool reported;
    if (!reported && tare_recording())
        tare__fact_tell("torch.graph.retained", NULL, 0, NAN, NULL);
    reported |= tare_recording();
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static PyObject *call_backward(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    bool outermost = tare__torch_phase_now() == NO_PHASE || tare__torch_phase_now() == OPTIMIZER;
    bool reported = false;
    if (outermost) {
        tare__torch_backward_begins();
        reported = PyVectorcall_NARGS(n) > 0 && tare__torch_backward_from(words[0]);
        if (PyVectorcall_NARGS(n) > 2 && words[2] == Py_True) /* retain_graph: without it no backward reaches an
                                                               * earlier step */
            tell_retained();
    }
    bool begun = outermost && tare__torch_phase_begin(BACKWARD);
    double began = reported ? seconds_of(CLOCK_MONOTONIC) : 0, cpu = reported ? seconds_of(CLOCK_THREAD_CPUTIME_ID) : 0;
    PyObject *result = pass_on(self, words, n, names);
    double took = reported ? seconds_of(CLOCK_MONOTONIC) - began : 0;
    cpu = reported ? seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu : 0;
    torch_raised raised = tare__torch_put_aside();
    if (begun)
        tare__torch_phase_end(BACKWARD);
    if (reported && result) {
        tare__fact_tell("torch.graph.backward_seconds", NULL, 0, took, NULL);
        tare__fact_tell("torch.graph.backward_cpu_seconds", NULL, 0, cpu, NULL);
    }
    tare__torch_put_back(raised);
    return result;
}

/* GradScaler.step(optimizer): an optimizer's step, though the scaler may skip it. */
static PyObject *call_scaler(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    if (scaling || PyVectorcall_NARGS(n) < 2)
        return pass_on(self, words, n, names);
    tare__torch_optimizer_begins();
    bool begun = tare__torch_phase_begin(OPTIMIZER);
    scaling = true;
    PyObject *result = pass_on(self, words, n, names);
    torch_raised raised = tare__torch_put_aside();
    scaling = false;
    if (begun)
        tare__torch_phase_end(OPTIMIZER);
    tare__torch_optimizer_ended(words[1]);
    tare__torch_put_back(raised);
    return result;
}

/* A closure is forward and backward, and not part of the update: the optimizer's phase continues after it. */
static PyObject *call_closure(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    bool within = closing;
    closing = false;
    if (within && tare__torch_phase_now() == OPTIMIZER)
        tare__torch_phase_end(OPTIMIZER);
    PyObject *result = pass_on(self, words, n, names);
    torch_raised raised = tare__torch_put_aside();
    closing = within && result;
    if (closing)
        tare__torch_phase_begin(OPTIMIZER);
    tare__torch_put_back(raised);
    return result;
}

/* With a closure, the phase begins after its first call: an optimizer that takes one calls it first. */
static PyObject *optimizer_begin(PyObject *module, PyObject *const *words, Py_ssize_t n)
{
    if (scaling)
        Py_RETURN_NONE;
    if (tare__torch_phase_now() == OPTIMIZER)
        tare__torch_phase_end(OPTIMIZER); /* one that raised did not report its end */
    tare__torch_optimizer_begins();
    closing = n > 1 && words[1] == Py_True;
    if (!closing)
        tare__torch_phase_begin(OPTIMIZER);
    Py_RETURN_NONE;
}

static PyObject *optimizer_end(PyObject *module, PyObject *const *words, Py_ssize_t n)
{
    if (scaling)
        Py_RETURN_NONE;
    closing = false;
    tare__torch_phase_end(OPTIMIZER);
    if (n)
        tare__torch_optimizer_ended(words[0]);
    Py_RETURN_NONE;
}

/* ---- devices --------------------------------------------------------------------------------------------- */
static bool flag_of(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    bool on = value == Py_True;
    Py_XDECREF(value);
    PyErr_Clear();
    return on;
}

/* Waits of the program, by the line that waits. */
#define LINE_SITES 128u
static tare_site line_sites[LINE_SITES];
static uint32_t n_line_sites;

static tare_site *line_site(const char *kind, const char *what)
{
    torch_line at;
    char name[700];
    if (!tare__torch_line_here(&at))
        return NULL;
    snprintf(name, sizeof name, "%s: %s at %s:%d", kind, what, tare__torch_base_name(at.file), at.line);
    for (uint32_t i = 0; i < n_line_sites; i++)
        if (strcmp(line_sites[i].name, name) == 0)
            return &line_sites[i];
    if (n_line_sites == LINE_SITES)
        return NULL;
    char *kept = strdup(name), *file = strdup(at.file);
    if (!kept || !file) {
        free(kept);
        free(file);
        return NULL;
    }
    tare_site *site = &line_sites[n_line_sites++];
    *site = (tare_site){0, kept, file, (uint32_t)at.line, TARE_KIND_SPAN, 1, 0};
    return site;
}

static __thread struct {
    const char *kind; /* of the last one */
    uint64_t since;   /* the outermost one that is open; 0: none */
    uint64_t ticks;   /* of those before */
} at_line __attribute__((tls_model("initial-exec")));

uint64_t tare__torch_ticks_at_line(const char **kind)
{
    uint64_t now = tare_aggregate_begin(), ticks = at_line.ticks;
    if (at_line.since) {
        ticks += now > at_line.since ? now - at_line.since : 0;
        at_line.since = now;
    }
    at_line.ticks = 0;
    *kind = at_line.kind;
    return ticks;
}

/* site NULL: without a span. */
static PyObject *call_at_line(around *self, const char *kind, tare_site *site, PyObject *const *words, size_t n,
                              PyObject *names)
{
    if (!site)
        return pass_on(self, words, n, names);
    tare__py_stack_begin(site, Py_None);
    bool outermost = !at_line.since;
    if (outermost) {
        at_line.kind = kind;
        at_line.since = tare_aggregate_begin();
    }
    PyObject *result = pass_on(self, words, n, names);
    torch_raised raised = tare__torch_put_aside();
    uint64_t now = tare_aggregate_begin();
    if (outermost && at_line.since) {
        at_line.ticks += now > at_line.since ? now - at_line.since : 0;
        at_line.since = 0;
    }
    tare__py_stack_end(site);
    tare__torch_put_back(raised);
    return result;
}

/* The program reads a value of a tensor on a device: it waits until the device has computed it. */
static PyObject *call_sync(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    bool waits = PyVectorcall_NARGS(n) < 1 || flag_of(words[0], "is_cuda");
    tare_site *site = waits && tare_recording() ? line_site("sync", self->role) : NULL;
    return call_at_line(self, "sync", site, words, n, names);
}

static PyObject *call_save(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    tare_site *site = tare_recording() ? line_site("checkpoint", "torch.save") : NULL;
    return call_at_line(self, "checkpoint", site, words, n, names);
}

/* Workers of a loader are started, or ended. */
static PyObject *call_workers(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    tare_site *site = tare_recording() ? line_site("workers", "DataLoader") : NULL;
    return call_at_line(self, "workers", site, words, n, names);
}

static tare_site bytes_site = {0, "bytes", NULL, 0, TARE_KIND_NUMBER, 1, 0};
static tare_site unpinned_site = {0, "unpinned bytes", NULL, 0, TARE_KIND_NUMBER, 1, 0};

static bool names_device(PyObject *word)
{
    if (PyUnicode_Check(word)) {
        const char *text = PyUnicode_AsUTF8(word);
        PyErr_Clear();
        return text && strncmp(text, "cuda", 4) == 0;
    }
    PyObject *type = PyObject_GetAttrString(word, "type"); /* of a torch.device */
    bool device = type && PyUnicode_Check(type) && PyUnicode_CompareWithASCIIString(type, "cuda") == 0;
    Py_XDECREF(type);
    PyErr_Clear();
    return device || flag_of(word, "is_cuda");
}

static bool goes_to_device(PyObject *const *words, size_t n, PyObject *names)
{
    Py_ssize_t plain = PyVectorcall_NARGS(n), named = names ? PyTuple_GET_SIZE(names) : 0;
    if (plain > 1 && names_device(words[1]))
        return true;
    for (Py_ssize_t i = 0; i < named; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "device") == 0)
            return names_device(words[plain + i]);
    return false;
}

static void tell_bytes(PyObject *tensor)
{
    PyObject *bytes = PyObject_GetAttrString(tensor, "nbytes");
    PyObject *pinned = PyObject_CallMethod(tensor, "is_pinned", NULL);
    double n = bytes ? PyFloat_AsDouble(bytes) : -1;
    if (n >= 0)
        tare_number(&bytes_site, n);
    if (n >= 0 && pinned == Py_False)
        tare_number(&unpinned_site, n);
    Py_XDECREF(bytes);
    Py_XDECREF(pinned);
    PyErr_Clear();
}

/* Tensor.to, .cuda, .copy_: from the host to a device it is a copy, from there to the host a wait. */
static PyObject *call_copy(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    if (PyVectorcall_NARGS(n) < 1 || !tare_recording())
        return pass_on(self, words, n, names);
    bool copies = strcmp(self->role, "copy_") == 0;
    PyObject *from = copies && PyVectorcall_NARGS(n) > 1 ? words[1] : words[0];
    bool on_device = flag_of(from, "is_cuda");
    bool to_device = copies ? flag_of(words[0], "is_cuda")
                            : strcmp(self->role, "cuda") == 0 || goes_to_device(words, n, names);
    if (on_device || !to_device || !tare__torch_phase_begin(COPY))
        return pass_on(self, words, n, names);
    tell_bytes(from);
    PyObject *result = pass_on(self, words, n, names);
    torch_raised raised = tare__torch_put_aside();
    tare__torch_phase_end(COPY);
    tare__torch_put_back(raised);
    return result;
}

/* ---- callbacks ------------------------------------------------------------------------------------------- */
/* (words, named), and after it whether it raised. */
static void tell(PyObject *whom, PyObject *const *words, size_t n, PyObject *names, PyObject *raised)
{
    if (!whom)
        return;
    torch_quiet quiet = tare__torch_quiet_begin();
    Py_ssize_t plain = PyVectorcall_NARGS(n), named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject *tuple = PyTuple_New(plain), *dict = PyDict_New(), *answer = NULL;
    for (Py_ssize_t i = 0; tuple && i < plain; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(words[i]));
    for (Py_ssize_t i = 0; dict && i < named; i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), words[plain + i]))
            Py_CLEAR(dict);
    if (tuple && dict)
        answer = PyObject_CallFunctionObjArgs(whom, tuple, dict, raised, NULL);
    Py_XDECREF(answer);
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    tare__torch_quiet_end(quiet);
}

static PyObject *call_reported(around *self, PyObject *const *words, size_t n, PyObject *names)
{
    tell(self->before, words, n, names, NULL);
    PyObject *result = pass_on(self, words, n, names);
    tell(self->after, words, n, names, result ? Py_False : Py_True);
    return result;
}

/* ---- the object ------------------------------------------------------------------------------------------ */
static const struct {
    const char *role;
    call_around *call;
} roles[] = {
    {"data", call_data}, {"load", call_load}, {"backward", call_backward}, {"scaler", call_scaler},
    {"to", call_copy},   {"cuda", call_copy}, {"copy_", call_copy},       {"reported", call_reported},
    {"save", call_save}, {"index", call_index}, {"closure", call_closure}, {"workers", call_workers},
};

static PyObject *vectorcall(PyObject *object, PyObject *const *words, size_t n, PyObject *names)
{
    around *self = (around *)object;
    return self->call(self, words, n, names);
}

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    PyObject *function, *before = Py_None, *after = Py_None;
    const char *role;
    if (!PyArg_ParseTuple(arguments, "Os|OO:TorchAround", &function, &role, &before, &after))
        return NULL;
    around *self = (around *)type->tp_alloc(type, 0);
    PyObject *text = self ? PyUnicode_InternFromString(role) : NULL; /* for good: there are few */
    if (!text) {
        Py_XDECREF(self);
        return NULL;
    }
    self->function = Py_NewRef(function);
    if (before != Py_None)
        self->before = Py_NewRef(before);
    if (after != Py_None)
        self->after = Py_NewRef(after);
    self->role = PyUnicode_AsUTF8(text);
    self->call = call_sync;
    self->vectorcall = vectorcall;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].role, role) == 0)
            self->call = roles[i].call;
    return (PyObject *)self;
}

static int visit_parts(PyObject *object, visitproc visit, void *arg)
{
    around *self = (around *)object;
    Py_VISIT(self->function);
    Py_VISIT(self->before);
    Py_VISIT(self->after);
    Py_VISIT(self->attributes);
    return 0;
}

static int clear_parts(PyObject *object)
{
    around *self = (around *)object;
    Py_CLEAR(self->function);
    Py_CLEAR(self->before);
    Py_CLEAR(self->after);
    Py_CLEAR(self->attributes);
    return 0;
}

static void drop(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    clear_parts(object);
    Py_TYPE(object)->tp_free(object);
}

/* As a function in a class: bound to the object. */
static PyObject *bind(PyObject *self, PyObject *object, PyObject *type)
{
    if (!object || object == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, object);
}

/* Attributes that the wrapper does not have come from the function: __name__, __doc__, __code__ … */
static PyObject *get(PyObject *object, PyObject *name)
{
    bool shared = PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__doc__") == 0;
    PyObject *value = shared ? NULL : PyObject_GenericGetAttr(object, name);
    if (value || (!shared && !PyErr_ExceptionMatches(PyExc_AttributeError)))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(((around *)object)->function, name);
}

static PyObject *show(PyObject *self)
{
    return PyObject_Repr(((around *)self)->function);
}

/* Pickled by its name, as a function is: unpickling finds torch's function, with or without Tare. A function in C may
 * have been imported from another module, where only torch's function is found; its own __reduce__ is used. */
static PyObject *reduce(PyObject *self, PyObject *nothing)
{
    PyObject *function = ((around *)self)->function;
    PyObject *how = PyCFunction_Check(function) ? PyObject_CallMethod(function, "__reduce__", NULL) : NULL;
    if (how && PyTuple_Check(how))
        return how;
    Py_XDECREF(how);
    PyErr_Clear();
    return PyObject_GetAttrString(function, "__qualname__");
}

/* A copy of a function is the function itself. */
static PyObject *copy(PyObject *self, PyObject *nothing)
{
    return Py_NewRef(self);
}

static PyObject *get_class(PyObject *self, void *nothing)
{
    return PyObject_GetAttrString(((around *)self)->function, "__class__");
}

static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {"__copy__", copy, METH_NOARGS, NULL},
    {"__deepcopy__", copy, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"__class__", get_class, NULL, "that of the function: isinstance() says the same", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject around_type = {
    TARE__PY_TYPE("tare._core.TorchAround", around,
                  Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                  "Wraps a function of torch and reports its calls."),
    .tp_new = make,
    .tp_dealloc = drop,
    .tp_traverse = visit_parts,
    .tp_clear = clear_parts,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(around, vectorcall),
    .tp_dictoffset = offsetof(around, attributes),
    .tp_descr_get = bind,
    .tp_getattro = get,
    .tp_repr = show,
    .tp_methods = methods,
    .tp_getset = properties,
};

static PyMethodDef functions[] = {
    {"torch_loads_aside", loads_aside, METH_O,
     "torch_loads_aside(yes)\n--\n\nIn a loader's worker: whether its batches are not trained on."},
    {"torch_optimizer_begin", (PyCFunction)(void (*)(void))optimizer_begin, METH_FASTCALL,
     "torch_optimizer_begin(optimizer, closes=False)\n--\n\nA hook: its step begins. closes: with a closure, which is "
     "a "
     "TorchAround of the role \"closure\"."},
    {"torch_optimizer_end", (PyCFunction)(void (*)(void))optimizer_end, METH_FASTCALL,
     "torch_optimizer_end(optimizer)\n--\n\nA hook: its step has ended."},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_torch_around = {.type = &around_type, .functions = functions};
