/* recorder: a bounded store of finished blocks: the newest ones, and the sums of each name.
 * Any thread, attached to the interpreter. Must not know how blocks are measured. */
#include "blocks.h"

#include <math.h>
#include <stdlib.h>

static PyTypeObject recorder_type;

/* ---- keeping --------------------------------------------------------------------------------------------- */

static bool grow(tare__py_recorder *self)
{
    size_t room = self->room ? 2 * self->room : 64;
    room = room < self->keep ? room : self->keep;
    tare__py_result **larger = realloc(self->ring, room * sizeof *larger);
    if (!larger)
        return false;
    self->ring = larger;
    self->room = room;
    return true;
}

/* Until the ring has its maximum size, nothing in it is overwritten, and index and count agree. */
void tare__py_recorder_keep(tare__py_recorder *self, tare__py_result *result)
{
    if (self->keep == 0 || (self->finished == self->room && self->room < self->keep && !grow(self)))
        return;
    tare__py_result **slot = &self->ring[self->finished % self->room];
    tare__py_result *before = self->finished >= self->room ? *slot : NULL;
    Py_INCREF((PyObject *)result);
    *slot = result;
    self->finished++;
    Py_XDECREF((PyObject *)before);
}

static size_t kept(const tare__py_recorder *self)
{
    return self->finished < self->room ? (size_t)self->finished : self->room;
}

static tare__py_result *kept_at(const tare__py_recorder *self, size_t index) /* 0: the oldest */
{
    return self->ring[(self->finished - kept(self) + index) % self->room];
}

static tare__py_named *make_named(const tare__py_recorder *self, PyObject *name)
{
    tare__py_named *made = tare__py_named_new(name);
    if (made)
        made->generation = self->generation;
    return made;
}

static tare__py_named *named_rest(tare__py_recorder *self)
{
    if (!self->rest) {
        PyObject *name = PyUnicode_FromString(TARE__PY_OTHER_NAMES);
        self->rest = name ? make_named(self, name) : NULL;
        Py_XDECREF(name);
    }
    Py_XINCREF((PyObject *)self->rest);
    return self->rest;
}

tare__py_named *tare__py_recorder_named(tare__py_recorder *self, PyObject *name)
{
    if (self->last && self->last->name == name) { /* mostly the same constant of the same loop */
        Py_INCREF((PyObject *)self->last);
        return self->last;
    }
    PyObject *known = PyDict_GetItemWithError(self->names, name);
    Py_XINCREF(known);
    if (known)
        self->last = (tare__py_named *)known;
    if (known || PyErr_Occurred())
        return (tare__py_named *)known;
    if (PyDict_Size(self->names) >= TARE__PY_NAMES_MAX)
        return named_rest(self);
    PyObject *made = (PyObject *)make_named(self, name);
    if (made && PyDict_SetItem(self->names, name, made))
        Py_CLEAR(made);
    return (tare__py_named *)made;
}

/* ---- making blocks ----------------------------------------------------------------------------------------- */

/* An exact str, so that looking it up runs no code of a subclass. A new reference. */
static PyObject *read_name(PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "a block's name is text, not %.100s", Py_TYPE(name)->tp_name);
        return NULL;
    }
    return PyUnicode_FromObject(name);
}

PyDoc_STRVAR(block_doc,
             "block(name, aggregate=False, samples=None)\n--\n\n"
             "A block of code to measure, as a context manager or a decorator. With aggregate it is only added\n"
             "to the sums of its name; samples is the number of samples it processes, for throughput.\n\n"
             "    with recorder.block(\"forward\", samples=32):\n"
             "        output = model(batch)\n");

typedef struct block_arguments {
    PyObject *name, *aggregate, *samples;
} block_arguments;

static bool read_named(block_arguments *to, PyObject *word, PyObject *value)
{
    static const char *const words[] = {"name", "aggregate", "samples"};
    PyObject **slots[] = {&to->name, &to->aggregate, &to->samples};
    for (int i = 0; i < 3; i++)
        if (PyUnicode_CompareWithASCIIString(word, words[i]) == 0) {
            if (*slots[i]) {
                PyErr_Format(PyExc_TypeError, "block got %U twice", word);
                return false;
            }
            *slots[i] = value;
            return true;
        }
    PyErr_Format(PyExc_TypeError, "block has no argument %R; it takes name, aggregate and samples", word);
    return false;
}

static PyObject *make_block(PyObject *object, PyObject *const *arguments, Py_ssize_t n, PyObject *words)
{
    tare__py_recorder *self = (tare__py_recorder *)object;
    if (n > 3)
        return PyErr_Format(PyExc_TypeError, "block takes name, aggregate and samples, not %zd arguments", n);
    block_arguments given = {n > 0 ? arguments[0] : NULL, n > 1 ? arguments[1] : NULL, n > 2 ? arguments[2] : NULL};
    for (Py_ssize_t i = 0; words && i < PyTuple_GET_SIZE(words); i++)
        if (!read_named(&given, PyTuple_GET_ITEM(words, i), arguments[n + i]))
            return NULL;
    if (!given.name)
        return PyErr_Format(PyExc_TypeError, "block takes a name");
    if (!self->enabled)
        return tare__py_block_idle();
    double samples = NAN;
    int aggregate = given.aggregate ? PyObject_IsTrue(given.aggregate) : 0;
    if (aggregate < 0 || (given.samples && !tare__py_read_samples(given.samples, &samples)))
        return NULL;
    PyObject *name = read_name(given.name);
    PyObject *made = name ? tare__py_block_new(self, name, aggregate, samples) : NULL;
    Py_XDECREF(name);
    return made;
}

/* ---- asking ------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(last_doc, "last()\n--\n\n"
                       "The Result of the last finished block of this thread or task; None: no block has finished.");
static PyObject *last(PyObject *object, PyObject *nothing)
{
    tare__py_lane *lane = tare__py_lane_now((tare__py_recorder *)object);
    if (!lane)
        return NULL;
    PyObject *found = lane->last ? (PyObject *)lane->last : Py_None;
    return Py_NewRef(found);
}

PyDoc_STRVAR(results_doc, "results(name=None)\n--\n\n"
                          "The newest finished blocks, oldest first, without those of aggregate=True.\n\n"
                          "    slowest = max(recorder.results(\"forward\"), key=lambda result: result.wall_s)\n");
static PyObject *results(PyObject *object, PyObject *arguments, PyObject *named)
{
    tare__py_recorder *self = (tare__py_recorder *)object;
    static char *words[] = {"name", NULL};
    PyObject *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "|O:results", words, &name))
        return NULL;
    if (name == Py_None)
        name = NULL;
    if (name && !PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "a block's name is text, not %.100s", Py_TYPE(name)->tp_name);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < kept(self); i++) {
        tare__py_result *result = kept_at(self, i);
        if (name && result->name != name && PyUnicode_Compare(result->name, name) != 0)
            continue;
        if (PyList_Append(list, (PyObject *)result))
            Py_CLEAR(list);
    }
    return list;
}

/* For a name without separate sums: from the kept blocks. NULL without an exception: none is kept. */
static PyObject *aggregate_kept(const tare__py_recorder *self, PyObject *name)
{
    tare__py_named *sums = make_named(self, name);
    if (!sums)
        return NULL;
    for (size_t i = 0; i < kept(self); i++)
        if (PyUnicode_Compare(kept_at(self, i)->name, name) == 0)
            tare__py_named_add(sums, kept_at(self, i));
    PyObject *made = sums->count ? tare__py_named_snapshot(sums) : NULL;
    Py_DECREF((PyObject *)sums);
    return made;
}

PyDoc_STRVAR(aggregate_doc,
             "aggregate(name)\n--\n\n"
             "All blocks of a name, added up: an Aggregate. KeyError for an unknown name. After 4,096 names, new\n"
             "names are added up together as \"(other names)\"; the sums of one such name cover its kept blocks.\n\n"
             "    recorder.aggregate(\"forward\").p95_s\n");
static PyObject *aggregate(PyObject *object, PyObject *name)
{
    tare__py_recorder *self = (tare__py_recorder *)object;
    PyObject *exact = read_name(name);
    if (!exact)
        return NULL;
    tare__py_named *found = (tare__py_named *)PyDict_GetItemWithError(self->names, exact);
    if (!found && self->rest && PyUnicode_Compare(exact, self->rest->name) == 0)
        found = self->rest;
    PyObject *made = NULL;
    if (found && found->count)
        made = tare__py_named_snapshot(found);
    else if (!PyErr_Occurred())
        made = aggregate_kept(self, exact);
    if (!made && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, exact);
    Py_DECREF(exact);
    return made;
}

PyDoc_STRVAR(names_doc, "names()\n--\n\nThe names of finished blocks, in order of first use.");
static PyObject *names(PyObject *object, PyObject *nothing)
{
    tare__py_recorder *self = (tare__py_recorder *)object;
    PyObject *list = PyList_New(0), *name, *named;
    Py_ssize_t at = 0;
    while (list && PyDict_Next(self->names, &at, &name, &named))
        if (((tare__py_named *)named)->count && PyList_Append(list, name))
            Py_CLEAR(list);
    if (list && self->rest && self->rest->count && PyList_Append(list, self->rest->name))
        Py_CLEAR(list);
    return list;
}

static void clear_kept(tare__py_recorder *self)
{
    size_t n = kept(self);
    tare__py_result **ring = self->ring;
    self->ring = NULL;
    self->room = 0;
    self->finished = 0;
    for (size_t i = 0; i < n; i++)
        Py_DECREF((PyObject *)ring[i]);
    free(ring);
}

PyDoc_STRVAR(clear_doc, "clear()\n--\n\nDiscards all finished blocks. Open blocks go on and are kept when they end.");
static PyObject *clear(PyObject *object, PyObject *nothing)
{
    tare__py_recorder *self = (tare__py_recorder *)object;
    self->generation++;
    clear_kept(self);
    self->last = NULL;
    PyDict_Clear(self->names);
    Py_CLEAR(self->rest);
    for (tare__py_lane *lane = self->lanes; lane; lane = lane->next_of_recorder)
        Py_CLEAR(lane->last);
    self->own_ns = 0;
    Py_RETURN_NONE;
}

/* ---- the object ----------------------------------------------------------------------------------------------- */

static PyObject *construct(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    tare__py_recorder *self = (tare__py_recorder *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->keep = 10000;
    self->memory = self->peak = self->cpu = self->enabled = true;
    self->names = PyDict_New();
    if (!self->names)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int init(PyObject *object, PyObject *arguments, PyObject *named)
{
    tare__py_recorder *self = (tare__py_recorder *)object;
    static char *words[] = {"memory", "cpu", "keep", "enabled", "system", "peak", "reset_peak", NULL};
    int memory = 1, cpu = 1, enabled = 1, peak = 1, reset_peak = 0;
    unsigned int system = 0;
    Py_ssize_t keep = 10000;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "|$ppnpIpp:Recorder", words, &memory, &cpu, &keep, &enabled,
                                     &system, &peak, &reset_peak))
        return -1;
    if (keep < 0 || keep > 100000000) {
        PyErr_Format(PyExc_ValueError, "keep is how many blocks are kept, 0 to 100000000, not %zd", keep);
        return -1;
    }
    for (tare__py_lane *lane = self->lanes; lane; lane = lane->next_of_recorder)
        if (lane->top) {
            PyErr_SetString(PyExc_RuntimeError, "a recorder with open blocks cannot be made again");
            return -1;
        }
    clear_kept(self);
    self->keep = (size_t)keep;
    self->memory = memory;
    self->peak = memory && peak;
    self->reset_peak = reset_peak;
    self->cpu = cpu;
    self->enabled = enabled;
    self->system = system;
    return 0;
}

static void drop(PyObject *object)
{
    tare__py_recorder *self = (tare__py_recorder *)object;
    tare__py_lanes_drop(self);
    clear_kept(self);
    self->last = NULL;
    Py_CLEAR(self->names);
    Py_CLEAR(self->rest);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *get_enabled(PyObject *object, void *closure)
{
    return PyBool_FromLong(((tare__py_recorder *)object)->enabled);
}

static PyObject *get_own_s(PyObject *object, void *closure)
{
    return tare__py_ns_as_seconds(((tare__py_recorder *)object)->own_ns);
}

static PyMethodDef methods[] = {
    {"block", (PyCFunction)(void (*)(void))make_block, METH_FASTCALL | METH_KEYWORDS, block_doc},
    {"last", last, METH_NOARGS, last_doc},
    {"results", (PyCFunction)(void (*)(void))results, METH_VARARGS | METH_KEYWORDS, results_doc},
    {"aggregate", aggregate, METH_O, aggregate_doc},
    {"names", names, METH_NOARGS, names_doc},
    {"clear", clear, METH_NOARGS, clear_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef members[] = {
    {"enabled", get_enabled, NULL, "whether blocks are measured", NULL},
    {"own_s", get_own_s, NULL, "seconds spent measuring so far", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    recorder_doc,
    "Recorder(*, memory=True, cpu=True, keep=10000, enabled=True, system=0, peak=True, reset_peak=False)\n--\n\n"
    "Measures blocks of code; keeps the newest results, and the sums of every name. peak=False reads\n"
    "memory before and after a block, but does not measure its peak. reset_peak=True resets the\n"
    "kernel's high-water mark at the start of each block, so that every peak is exact; it also lowers the\n"
    "ru_maxrss of the whole process that wait4 and /usr/bin/time report. Without it, a peak below what the\n"
    "process had reached before is a lower bound (rss_peak_note). system selects readings of the machine\n"
    "around each block: MACHINE_CPU, MACHINE_DISK, MACHINE_NETWORK, MACHINE_MEMORY.\n\n"
    "    recorder = tare.Recorder()\n"
    "    with recorder.block(\"load\"):\n"
    "        data = load()\n"
    "    print(recorder.last().wall_s, recorder.last().rss_peak)\n");

static PyTypeObject recorder_type = {
    TARE__PY_TYPE("tare.Recorder", tare__py_recorder, Py_TPFLAGS_BASETYPE, recorder_doc),
    .tp_dealloc = drop,
    .tp_methods = methods,
    .tp_getset = members,
    .tp_new = construct,
    .tp_init = init,
};

PyDoc_STRVAR(count_doc, "count_samples(n)\n--\n\n"
                        "Adds n samples to every open block of this thread or task, except for those that were given\n"
                        "samples= themselves.\n\n"
                        "    for batch in loader:\n"
                        "        tare.count_samples(len(batch))\n");
static PyObject *count_in_lanes(PyObject *number, bool loaded)
{
    double samples;
    if (!tare__py_read_samples(number, &samples))
        return NULL;
    if (!isnan(samples))
        tare__py_lanes_count(samples, loaded);
    Py_RETURN_NONE;
}

static PyObject *count_samples(PyObject *module, PyObject *number) { return count_in_lanes(number, false); }

PyDoc_STRVAR(loaded_doc, "count_loaded(n)\n--\n\n"
                         "Adds n samples of a loader to every open block of this thread or task; they are used\n"
                         "for blocks with neither samples= nor count_samples().");
static PyObject *count_loaded(PyObject *module, PyObject *number) { return count_in_lanes(number, true); }

PyDoc_STRVAR(exclude_doc,
             "exclude(ns, cpu_ns)\n--\n\n"
             "Excludes the last nanoseconds of this thread or task, and this much CPU time, which were spent on\n"
             "measuring, from all open blocks.");
static PyObject *exclude(PyObject *module, PyObject *const *given, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "exclude takes two numbers of nanoseconds");
    long long ns = PyLong_AsLongLong(given[0]), cpu_ns = PyLong_AsLongLong(given[1]);
    if (PyErr_Occurred())
        return NULL;
    tare__py_lanes_exclude(ns > 0 ? (uint64_t)ns : 0, cpu_ns > 0 ? (uint64_t)cpu_ns : 0);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(measuring_doc, "measuring()\n--\n\n"
                            "Begins time spent on measuring; pass the returned value to exclude_since() to end it.");
static PyObject *measuring(PyObject *module, PyObject *nothing)
{
    if (!tare__py_lanes_open()) /* reading the clock of CPU time takes longer than the rest of a short block */
        Py_RETURN_NONE;
    uint64_t now = tare__py_clock_ns();
    return Py_BuildValue("KK", (unsigned long long)now, (unsigned long long)tare__py_thread_cpu_ns());
}

PyDoc_STRVAR(since_doc,
             "exclude_since(begun)\n--\n\nExcludes the time since measuring() returned `begun` from all open blocks.");
static PyObject *exclude_since(PyObject *module, PyObject *begun)
{
    unsigned long long wall, cpu;
    if (begun == Py_None)
        Py_RETURN_NONE;
    if (!PyArg_ParseTuple(begun, "KK:exclude_since", &wall, &cpu))
        return NULL;
    uint64_t cpu_now = tare__py_thread_cpu_ns();
    tare__py_lanes_exclude(tare__py_clock_ns() - wall, cpu_now > cpu ? cpu_now - cpu : 0);
    Py_RETURN_NONE;
}

static PyObject *rss(PyObject *module, PyObject *nothing)
{
    uint64_t bytes = tare__py_rss();
    return bytes ? PyLong_FromUnsignedLongLong(bytes) : tare__py_missing("/proc/self/statm could not be read");
}

static PyMethodDef functions[] = {
    {"count_samples", count_samples, METH_O, count_doc},
    {"count_loaded", count_loaded, METH_O, loaded_doc},
    {"exclude", (PyCFunction)(void (*)(void))exclude, METH_FASTCALL, exclude_doc},
    {"measuring", measuring, METH_NOARGS, measuring_doc},
    {"exclude_since", exclude_since, METH_O, since_doc},
    {"rss", rss, METH_NOARGS, "rss()\n--\n\nResident memory of this process, in bytes."},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_recorder = {.type = &recorder_type, .functions = functions};
