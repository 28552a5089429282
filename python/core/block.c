/* block: entering and leaving a block: what is read, and which block the time belongs to. The cost of measuring is
 * excluded from the block's own time and reported separately.
 * Any thread, attached to the interpreter. Must not know how results are kept. */
#include "blocks.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct block {
    PyObject_HEAD
    tare__py_recorder *recorder; /* NULL: measures nothing */
    tare__py_named *named;
    tare_site own_site; /* of a name that has no separate sums */
    PyObject *name;
    tare__py_result *result; /* of the last time it was left; NULL: never */
    double samples;
    bool aggregate;
} block;

static PyTypeObject block_type;
static PyObject *idle;

/* ---- the object ------------------------------------------------------------------------------------------ */

static bool has_own_sums(const block *self)
{
    return self->named->name == self->name || PyUnicode_Compare(self->named->name, self->name) == 0;
}

PyObject *tare__py_block_new(tare__py_recorder *recorder, PyObject *name, bool aggregate, double samples)
{
    tare__py_named *named = tare__py_recorder_named(recorder, name);
    block *made = named ? PyObject_GC_New(block, &block_type) : NULL;
    if (!made) {
        Py_XDECREF((PyObject *)named);
        return NULL;
    }
    Py_INCREF((PyObject *)recorder);
    made->recorder = recorder;
    made->named = named;
    made->name = Py_NewRef(name);
    made->result = NULL;
    made->samples = samples;
    made->aggregate = aggregate;
    if (!has_own_sums(made))
        made->own_site = (tare_site){0, PyUnicode_AsUTF8(name), NULL, 0, TARE_KIND_SPAN, 1, 0};
    else
        made->own_site.name = NULL;
    PyErr_Clear();
    PyObject_GC_Track((PyObject *)made);
    return (PyObject *)made;
}

PyObject *tare__py_block_idle(void)
{
    return Py_NewRef(idle);
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT((PyObject *)((block *)object)->recorder);
    return 0;
}

static int clear(PyObject *object)
{
    Py_CLEAR(((block *)object)->recorder);
    return 0;
}

static void drop(PyObject *object)
{
    block *self = (block *)object;
    PyObject_GC_UnTrack(object);
    Py_XDECREF((PyObject *)self->recorder);
    Py_XDECREF((PyObject *)self->named);
    Py_XDECREF((PyObject *)self->result);
    Py_XDECREF(self->name);
    PyObject_GC_Del(object);
}

/* ---- its span in the trace ---------------------------------------------------------------------------------- */

static tare_site *site_of(block *self)
{
    return self->own_site.name ? &self->own_site : &self->named->site;
}

static void begin_span(block *self)
{
    tare__py_task *task = tare__py_task_now();
    PyObject *owner = self->own_site.name ? (PyObject *)self : (PyObject *)self->named;
    if (task)
        tare__py_task_begin(task, site_of(self), owner, self);
    else
        tare__py_stack_begin_as(site_of(self), owner, self);
}

static void attach_samples(void *context)
{
    tare_site scratch;
    double samples = *(const double *)context;
    if (!isnan(samples))
        tare_number(tare__dynamic("samples", TARE_KIND_NUMBER, &scratch), samples);
}

static void end_span(block *self, double samples)
{
    tare__py_task *task = tare__py_task_now();
    if (!tare__py_task_end(task, site_of(self), self))
        tare__py_stack_end_as(site_of(self), self, attach_samples, &samples);
}

/* ---- entering ------------------------------------------------------------------------------------------------ */

/* Blocks that were left are reused: entering and leaving blocks allocates nothing. */
#define SPARE_MAX 64
static tare__py_open *spare;
static int spares;

static tare__py_open *take(void)
{
    tare__py_open *open = spare;
    if (!open)
        return malloc(sizeof *open);
    spare = open->below;
    spares--;
    return open;
}

static void give(tare__py_open *open)
{
    if (spares >= SPARE_MAX) {
        free(open);
        return;
    }
    open->below = spare;
    spare = open;
    spares++;
}

/* The clock is read last: the cost of the other readings is not part of the block. */
static void read_begin(tare__py_open *open, const tare__py_recorder *recorder, uint64_t now)
{
    if (recorder->system)
        tare__py_machine_recent(&open->machine, recorder->system);
    open->rss = 0;
    if (recorder->memory) {
        tare__py_memory memory = tare__py_memory_now(now, recorder->peak);
        open->rss = memory.rss;
        if (recorder->peak)
            tare__py_peak_open(&open->peak, memory, recorder->reset_peak);
    }
    open->thread = PyThread_get_thread_ident();
    if (recorder->cpu) {
        open->process_cpu = tare__py_process_cpu_ns();
        open->cpu = tare__py_thread_cpu_ns();
    }
    open->start = tare__py_clock_ns();
    tare__py_memory_read_at(open->start);
}

static PyObject *enter(PyObject *object, PyObject *nothing)
{
    block *self = (block *)object;
    Py_INCREF(object);
    if (!self->recorder)
        return object;
    uint64_t now = tare__py_clock_ns();
    tare__py_lane *lane = tare__py_lane_now(self->recorder);
    tare__py_open *open = lane ? take() : NULL;
    if (!open) {
        Py_DECREF(object);
        return lane ? PyErr_NoMemory() : NULL;
    }
    if (lane->top)
        lane->top->self_ns += now - lane->changed;
    open->block = Py_NewRef(object);
    open->lane = lane;
    open->below = lane->top;
    open->depth = lane->top ? lane->top->depth + 1 : 0;
    open->self_ns = open->own_ns = open->excluded_ns = open->excluded_cpu_ns = 0;
    open->counted = open->loaded = NAN;
    open->span = tare__gate_now() != 0;
    lane->top = open;
    if (open->span)
        begin_span(self);
    read_begin(open, self->recorder, now);
    lane->changed = open->start;
    if (open->below)
        open->below->own_ns += open->start - now;
    self->recorder->own_ns += open->start - now;
    return object;
}

/* ---- leaving ------------------------------------------------------------------------------------------------- */

static tare__py_open **find_in(tare__py_lane *lane, const block *self)
{
    for (tare__py_open **from = &lane->top; *from; from = &(*from)->below)
        if ((*from)->block == (const PyObject *)self)
            return from;
    return NULL;
}

/* In the lane of the running thread or task, or in the one where it was entered: another thread, or a task that has
 * ended. */
static tare__py_open **find_open(block *self)
{
    tare__py_lane *lane = tare__py_lane_now(self->recorder);
    tare__py_open **found = lane ? find_in(lane, self) : NULL;
    PyErr_Clear();
    for (lane = self->recorder->lanes; lane && !found; lane = lane->next_of_recorder)
        found = find_in(lane, self);
    return found;
}

static void read_peak(tare__py_result *result, tare__py_peak *peak, tare__py_memory now)
{
    tare__py_peak_close(peak, now);
    result->rss_peak = peak->bytes;
    result->rss_at_most = peak->at_most;
}

/* The CPU time that two consecutive readings of each CPU clock themselves use. */
static struct {
    uint64_t thread_ns, process_ns, cpus;
} between;

static uint64_t above(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void calibrate(void)
{
    between.thread_ns = between.process_ns = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t process = tare__py_process_cpu_ns(), thread = tare__py_thread_cpu_ns();
        uint64_t from = tare__py_clock_ns(), to = tare__py_clock_ns();
        thread = above(tare__py_thread_cpu_ns() - thread, to - from);
        process = above(tare__py_process_cpu_ns() - process, to - from);
        between.thread_ns = smaller(between.thread_ns, thread);
        between.process_ns = smaller(between.process_ns, process);
    }
    between.cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
}

/* A smaller difference between the clocks of the process and of the thread is the cost of reading them. */
#define PROCESS_RESOLUTION_NS 20000u

/* A thread cannot use more CPU time than the elapsed time, nor a process more than that on every CPU. CPU time of other
 * threads is known only with the resolution of the kernel's ticks, and for a short block not at all. */
static void fill_cpu(tare__py_result *result, const tare__py_open *open, uint64_t thread, uint64_t process)
{
    uint64_t own = above(above(thread - open->cpu, between.thread_ns), open->excluded_cpu_ns);
    uint64_t all = above(above(process - open->process_cpu, between.process_ns), open->excluded_cpu_ns);
    result->cpu_ns = smaller(own, result->wall_ns);
    result->process_cpu_ns = smaller(all, result->wall_ns * between.cpus);
    bool unknown =
        result->wall_ns < PROCESS_RESOLUTION_NS || result->process_cpu_ns < result->cpu_ns + PROCESS_RESOLUTION_NS;
    if (!result->moved && unknown)
        result->process_cpu_ns = result->cpu_ns;
}

static void read_end(tare__py_result *result, tare__py_open *open, const tare__py_recorder *recorder, uint64_t now)
{
    result->cpu = recorder->cpu;
    result->memory = recorder->memory;
    if (recorder->memory) {
        tare__py_memory memory = tare__py_memory_now(now, recorder->peak);
        result->rss_before = open->rss;
        result->rss_after = memory.rss;
        if ((result->peak = recorder->peak))
            read_peak(result, &open->peak, memory);
    }
    if (recorder->system) {
        tare__py_machine machine;
        tare__py_machine_recent(&machine, recorder->system);
        result->system = recorder->system;
        result->usage = tare__py_machine_between(&open->machine, &machine);
    }
}

static void fill(tare__py_result *result, const tare__py_open *open, const block *self, bool failed)
{
    result->name = Py_XNewRef(self->name);
    result->parent = open->below ? Py_XNewRef(((block *)open->below->block)->name) : NULL;
    result->task = Py_XNewRef(tare__py_lane_task(open->lane));
    result->thread = open->thread;
    result->self_ns = open->self_ns;
    result->own_ns = open->own_ns;
    result->started = tare__py_unix_time(open->start);
    result->samples = !isnan(self->samples) ? self->samples : !isnan(open->counted) ? open->counted : open->loaded;
    result->depth = open->depth;
    result->failed = failed;
    result->aggregate = self->aggregate;
}

/* The recorder was cleared since the block was created: its sums are no longer in use. */
static int renew(block *self)
{
    if (self->named->generation == self->recorder->generation)
        return 0;
    tare__py_named *named = tare__py_recorder_named(self->recorder, self->name);
    if (!named)
        return -1;
    tare__py_named *old = self->named;
    self->named = named;
    if (!has_own_sums(self) && !self->own_site.name)
        self->own_site = (tare_site){0, PyUnicode_AsUTF8(self->name), NULL, 0, TARE_KIND_SPAN, 1, 0};
    Py_DECREF((PyObject *)old);
    return 0;
}

static void put(tare__py_result **slot, tare__py_result *result)
{
    tare__py_result *before = *slot;
    Py_INCREF((PyObject *)result);
    *slot = result;
    Py_XDECREF((PyObject *)before);
}

static int store(tare__py_result *result, tare__py_lane *lane, block *self)
{
    if (renew(self)) {
        Py_DECREF((PyObject *)result);
        return -1;
    }
    tare__py_named_add(self->named, result);
    if (!self->aggregate)
        tare__py_recorder_keep(self->recorder, result);
    put(&self->result, result);
    put(&lane->last, result);
    Py_DECREF((PyObject *)result);
    return 0;
}

static PyObject *leave(PyObject *object, PyObject *const *arguments, Py_ssize_t n)
{
    block *self = (block *)object;
    if (!self->recorder)
        Py_RETURN_NONE;
    uint64_t now = tare__py_clock_ns(), thread = 0, process = 0;
    if (self->recorder->cpu) {
        thread = tare__py_thread_cpu_ns();
        process = tare__py_process_cpu_ns();
    }
    tare__py_open **at = find_open(self);
    if (!at)
        return PyErr_Format(PyExc_RuntimeError, "the block %R is left without having been entered", self->name);
    tare__py_result *result = tare__py_result_new();
    if (!result)
        return NULL;
    tare__py_open *open = *at;
    tare__py_lane *lane = open->lane;
    lane->top->self_ns += now - lane->changed;
    *at = open->below;
    result->excluded_ns = open->excluded_ns;
    result->wall_ns = above(now - open->start, open->excluded_ns);
    result->moved = open->thread != PyThread_get_thread_ident();
    if (self->recorder->cpu)
        fill_cpu(result, open, thread, process);
    read_end(result, open, self->recorder, now);
    fill(result, open, self, n > 0 && arguments[0] != Py_None);
    if (open->span)
        end_span(self, result->samples);
    tare__py_open *below = open->below;
    give(open);
    int status = store(result, lane, self);
    lane->changed = tare__py_clock_ns();
    tare__py_memory_read_at(lane->changed);
    if (below)
        below->own_ns += lane->changed - now;
    self->recorder->own_ns += lane->changed - now;
    tare__py_lane_left(lane);
    Py_DECREF(object); /* the caller still has it */
    if (status)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- as Python sees it ----------------------------------------------------------------------------------------- */

bool tare__py_read_samples(PyObject *object, double *samples)
{
    *samples = NAN;
    if (!object || object == Py_None)
        return true;
    if (!PyNumber_Check(object)) {
        PyErr_Format(PyExc_TypeError, "samples is a number, not %.100s", Py_TYPE(object)->tp_name);
        return false;
    }
    *samples = PyFloat_AsDouble(object);
    if (*samples == -1 && PyErr_Occurred())
        return false;
    if (*samples >= 0 && !isinf(*samples))
        return true;
    PyErr_Format(PyExc_ValueError, "samples is a number of 0 or more, not %S", object);
    return false;
}

static PyObject *get_samples(PyObject *object, void *closure)
{
    double samples = ((block *)object)->samples;
    if (isnan(samples))
        Py_RETURN_NONE;
    return tare__py_count_or_missing(samples, "");
}

static int set_samples(PyObject *object, PyObject *value, void *closure)
{
    double samples;
    if (!tare__py_read_samples(value, &samples))
        return -1;
    ((block *)object)->samples = samples;
    return 0;
}

static PyObject *show(PyObject *object)
{
    block *self = (block *)object;
    return self->name ? PyUnicode_FromFormat("<tare.Block %R>", self->name)
                      : PyUnicode_FromString("<tare.Block that measures nothing>");
}

static PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"name", T_OBJECT, offsetof(block, name), READONLY, "the name it is measured under"},
    {"result", T_OBJECT, offsetof(block, result), READONLY,
     "what was measured when it was last left; None: it was never left"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef computed[] = {
    {"samples", get_samples, set_samples, "number of samples it processes; may be set inside the block", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject block_type = {
    TARE__PY_TYPE("tare.Block", block, Py_TPFLAGS_HAVE_GC,
                  "A block of code that is measured, as a context manager or a decorator; made by Recorder.block."),
    .tp_dealloc = drop,
    .tp_repr = show,
    .tp_call = tare__py_decorate,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_methods = methods,
    .tp_members = members,
    .tp_getset = computed,
};

static PyObject *make_idle(void)
{
    block *made = PyObject_GC_New(block, &block_type);
    if (!made)
        return NULL;
    memset((char *)made + sizeof(PyObject), 0, sizeof *made - sizeof(PyObject));
    made->samples = NAN;
    PyObject_GC_Track((PyObject *)made);
    return (PyObject *)made;
}

static int prepare(PyObject *module)
{
    calibrate();
    idle = make_idle();
    return idle ? 0 : -1;
}

const tare__py_part tare__py_part_blocks = {.type = &block_type, .prepare = prepare};
