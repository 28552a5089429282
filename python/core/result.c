/* result: the measurements of one finished block, as Python sees it. Numbers become objects when they are read.
 * Any thread, attached to the interpreter. Must not know how blocks are measured. */
#include "blocks.h"

#include <math.h>

static PyTypeObject result_type;

tare__py_result *tare__py_result_new(void)
{
    tare__py_result *made = PyObject_New(tare__py_result, &result_type);
    if (made)
        memset((char *)made + sizeof(PyObject), 0, sizeof *made - sizeof(PyObject));
    if (made)
        made->usage = (tare__py_usage){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    return made;
}

static void drop(PyObject *object)
{
    tare__py_result *self = (tare__py_result *)object;
    Py_XDECREF(self->name);
    Py_XDECREF(self->parent);
    Py_XDECREF(self->task);
    Py_XDECREF(self->extra);
    PyObject_Free(object);
}

PyObject *tare__py_ns_as_seconds(uint64_t ns)
{
    return PyFloat_FromDouble((double)ns / 1e9);
}

PyObject *tare__py_seconds_at(PyObject *object, void *offset)
{
    uint64_t ns;
    memcpy(&ns, (char *)object + (uintptr_t)offset, sizeof ns);
    return tare__py_ns_as_seconds(ns);
}

PyObject *tare__py_count_or_missing(double count, const char *reason)
{
    if (isnan(count))
        return tare__py_missing(reason);
    return count == floor(count) && fabs(count) < 1e15 ? PyLong_FromDouble(count) : PyFloat_FromDouble(count);
}

#define NO_SAMPLES \
    "no samples were counted: give samples=, call tare.count_samples(), or iterate a torch DataLoader in the block"

PyObject *tare__py_rate_or_missing(double samples, uint64_t ns)
{
    if (isnan(samples))
        return tare__py_missing(NO_SAMPLES);
    return ns ? PyFloat_FromDouble(samples / ((double)ns / 1e9)) : tare__py_missing("the clock did not move");
}

#define SELF const tare__py_result *self = (const tare__py_result *)object
#define GET(field) static PyObject *get_##field(PyObject *object, void *closure)

GET(samples) { SELF; return tare__py_count_or_missing(self->samples, NO_SAMPLES); }
GET(throughput) { SELF; return tare__py_rate_or_missing(self->samples, self->wall_ns); }

GET(cpu_s)
{
    SELF;
    if (!self->cpu)
        return tare__py_missing("cpu=False");
    if (self->moved)
        return tare__py_missing("the block ended on another thread than it began on");
    return tare__py_ns_as_seconds(self->cpu_ns);
}

GET(process_cpu_s)
{
    SELF;
    return self->cpu ? tare__py_ns_as_seconds(self->process_cpu_ns) : tare__py_missing("cpu=False");
}

PyObject *tare__py_busy_or_missing(bool requested, uint64_t cpu_ns, uint64_t wall_ns)
{
    if (!requested)
        return tare__py_missing("cpu=False");
    return wall_ns
               ? PyFloat_FromDouble(100 * (double)cpu_ns / (double)wall_ns)
               : tare__py_missing("the block was shorter than 50 ms, in which CPU time of other threads is not known");
}

GET(process_cpu_percent)
{
    SELF;
    bool long_enough = self->wall_ns >= TARE__PY_SHORTEST_NS;
    return tare__py_busy_or_missing(self->cpu, self->process_cpu_ns, long_enough ? self->wall_ns : 0);
}

static PyObject *bytes(const tare__py_result *self, uint64_t value)
{
    if (!self->memory)
        return tare__py_missing("memory=False");
    return value ? PyLong_FromUnsignedLongLong(value) : tare__py_missing("/proc/self/statm could not be read");
}

GET(rss_before) { SELF; return bytes(self, self->rss_before); }
GET(rss_after) { SELF; return bytes(self, self->rss_after); }
GET(rss_peak)
{
    SELF;
    return self->memory && !self->peak ? tare__py_missing("peak=False") : bytes(self, self->rss_peak);
}

GET(rss_delta)
{
    SELF;
    if (!self->memory || !self->rss_before || !self->rss_after)
        return bytes(self, 0);
    return PyLong_FromLongLong((long long)(self->rss_after - self->rss_before));
}

PyObject *tare__py_peak_note(uint64_t at_most)
{
    char text[200];
    if (!at_most)
        Py_RETURN_NONE;
    tare__py_peak_sentence(at_most, text);
    return PyUnicode_FromString(text);
}

GET(rss_peak_note) { SELF; return tare__py_peak_note(self->rss_at_most); }

PyObject *tare__py_usage_or_missing(double value, uint32_t requested, uint32_t kind)
{
    if (!isnan(value))
        return PyFloat_FromDouble(value);
    if (!(requested & kind))
        return tare__py_missing("it was not requested");
    return tare__py_missing(kind & (TARE__PY_CPU | TARE__PY_DISK)
                                ? "the block was shorter than 50 ms, or the kernel does not report it"
                                : "the kernel does not report it");
}

#define USAGE(field, kind)                                                                                           \
    GET(field) { SELF; return tare__py_usage_or_missing(self->usage.field, self->system, kind); }
USAGE(cpu_percent, TARE__PY_CPU)
USAGE(iowait_percent, TARE__PY_CPU)
USAGE(disk_percent, TARE__PY_DISK)
USAGE(memory_percent, TARE__PY_MEMORY)
USAGE(received, TARE__PY_NETWORK)
USAGE(sent, TARE__PY_NETWORK)

#define FIELD(name) offsetof(tare__py_result, name)
static PyMemberDef members[] = {
    {"name", T_OBJECT, FIELD(name), READONLY, "the block's name"},
    {"parent", T_OBJECT, FIELD(parent), READONLY, "name of the block around it; None: no block"},
    {"task", T_OBJECT, FIELD(task), READONLY, "name of the asyncio task; None: no task"},
    {"extra", T_OBJECT, FIELD(extra), 0, "values added by the creator of the block"},
    {"thread", T_ULONG, FIELD(thread), READONLY, "the thread, as threading.get_ident()"},
    {"depth", T_UINT, FIELD(depth), READONLY, "nesting depth: the number of blocks around it"},
    {"started", T_DOUBLE, FIELD(started), READONLY, "when it was entered, as time.time()"},
    {"failed", T_BOOL, FIELD(failed), READONLY, "whether it was left by an exception"},
    {"aggregate", T_BOOL, FIELD(aggregate), READONLY, "whether it was only added up"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef computed[] = {
    {"wall_s", tare__py_seconds_at, NULL, "seconds from entering to leaving", (void *)FIELD(wall_ns)},
    {"self_s", tare__py_seconds_at, NULL, "seconds outside of inner blocks", (void *)FIELD(self_ns)},
    {"own_s", tare__py_seconds_at, NULL, "seconds of wall_s spent measuring inner blocks", (void *)FIELD(own_ns)},
    {"excluded_s", tare__py_seconds_at, NULL, "seconds of other measurements inside it, excluded from all its times",
     (void *)FIELD(excluded_ns)},
    {"cpu_s", get_cpu_s, NULL, "CPU seconds of the thread that ran the block", NULL},
    {"process_cpu_s", get_process_cpu_s, NULL, "CPU seconds of all threads of the process", NULL},
    {"process_cpu_percent", get_process_cpu_percent, NULL,
     "process_cpu_s as a percentage of wall_s, 100 for one busy CPU", NULL},
    {"rss_before", get_rss_before, NULL, "resident bytes on entering", NULL},
    {"rss_after", get_rss_after, NULL, "resident bytes on leaving", NULL},
    {"rss_delta", get_rss_delta, NULL, "growth of resident memory, in bytes", NULL},
    {"rss_peak", get_rss_peak, NULL, "peak of resident memory, in bytes", NULL},
    {"rss_peak_note", get_rss_peak_note, NULL,
     "why rss_peak is a lower bound, and its upper bound; None: it is exact", NULL},
    {"samples", get_samples, NULL, "number of samples processed", NULL},
    {"throughput", get_throughput, NULL, "samples per second", NULL},
    {"cpu_percent", get_cpu_percent, NULL, "CPU utilization of the machine", NULL},
    {"iowait_percent", get_iowait_percent, NULL,
     "percentage of CPU time in which its CPUs were idle and waited for disks", NULL},
    {"disk_percent", get_disk_percent, NULL, "percentage of the time in which the busiest disk was active", NULL},
    {"memory_percent", get_memory_percent, NULL, "percentage of the machine's memory in use at the end", NULL},
    {"received", get_received, NULL, "bytes the machine received", NULL},
    {"sent", get_sent, NULL, "bytes the machine sent", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *show(PyObject *object)
{
    const tare__py_result *self = (const tare__py_result *)object;
    char seconds[32];
    PyOS_snprintf(seconds, sizeof seconds, "%.6f", (double)self->wall_ns / 1e9);
    return PyUnicode_FromFormat("<tare.Result %R: %s s%s>", self->name, seconds, self->failed ? ", failed" : "");
}

static PyTypeObject result_type = {
    TARE__PY_TYPE("tare.Result", tare__py_result, 0, "What was measured of one finished block; made by a Recorder."),
    .tp_dealloc = drop,
    .tp_repr = show,
    .tp_members = members,
    .tp_getset = computed,
};

const tare__py_part tare__py_part_results = {.type = &result_type};
