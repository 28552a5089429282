/* aggregate: all blocks of a name in constant memory, and what Python sees of them.
 * Any thread, attached to the interpreter. Must not know how blocks are measured. */
#include "blocks.h"

#include <math.h>

#define HIST_BITS 6 /* percentiles within 0.8 % */

static PyTypeObject named_type, aggregate_type;

/* ---- the sums ---------------------------------------------------------------------------------------------- */

tare__py_named *tare__py_named_new(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    tare__py_named *made = text ? PyObject_New(tare__py_named, &named_type) : NULL;
    if (!made)
        return NULL;
    memset((char *)made + sizeof(PyObject), 0, sizeof *made - sizeof(PyObject));
    made->site = (tare_site){0, text, NULL, 0, TARE_KIND_SPAN, 1, 0};
    made->min_ns = UINT64_MAX;
    made->samples = made->received = made->sent = NAN;
    made->hist.bits = HIST_BITS;
    made->name = Py_NewRef(name);
    return made;
}

static void drop_named(PyObject *object)
{
    tare__py_named *self = (tare__py_named *)object;
    tare__hist_free(&self->hist);
    Py_XDECREF(self->name);
    PyObject_Free(object);
}

static void add_memory(tare__py_named *to, const tare__py_result *result)
{
    if (!result->memory || !result->rss_before || !result->rss_after)
        return;
    to->with_memory++;
    to->rss_delta += (int64_t)(result->rss_after - result->rss_before);
    to->with_peak += result->peak;
    to->rss_peak = to->rss_peak < result->rss_peak ? result->rss_peak : to->rss_peak;
    to->rss_at_most = to->rss_at_most < result->rss_at_most ? result->rss_at_most : to->rss_at_most;
}

static void add_to(double *sum, double value)
{
    if (!isnan(value))
        *sum = isnan(*sum) ? value : *sum + value;
}

static void add_usage(tare__py_named *to, const tare__py_result *result)
{
    double values[3] = {result->usage.cpu_percent, result->usage.iowait_percent, result->usage.disk_percent};
    double seconds = (double)result->wall_ns / 1e9;
    to->system |= result->system;
    for (int i = 0; i < 3; i++)
        if (!isnan(values[i])) {
            to->usage_s[i] += seconds;
            to->usage_sum[i] += values[i] * seconds;
        }
    add_to(&to->received, result->usage.received);
    add_to(&to->sent, result->usage.sent);
}

void tare__py_named_add(tare__py_named *to, const tare__py_result *result)
{
    uint64_t ns = result->wall_ns;
    to->count++;
    to->unkept += result->aggregate;
    to->failed += result->failed;
    to->total_ns += ns;
    to->self_ns += result->self_ns;
    to->min_ns = ns < to->min_ns ? ns : to->min_ns;
    to->max_ns = ns > to->max_ns ? ns : to->max_ns;
    tare__hist_add(&to->hist, ns, 1); /* out of memory: percentiles then use fewer blocks */
    if (!isnan(result->samples)) {
        add_to(&to->samples, result->samples);
        to->sampled_ns += ns;
    }
    if (result->cpu && !result->moved) {
        to->with_cpu++;
        to->cpu_ns += result->cpu_ns;
    }
    to->process_cpu_ns += result->process_cpu_ns;
    to->excluded_ns += result->excluded_ns;
    if (result->cpu && ns >= TARE__PY_SHORTEST_NS) {
        to->busy_ns += result->process_cpu_ns;
        to->busy_wall_ns += ns;
    }
    add_memory(to, result);
    add_usage(to, result);
}

/* ---- what Python sees: a copy -------------------------------------------------------------------------------- */

typedef struct aggregate {
    PyObject_HEAD
    tare__py_named of; /* its object header and histogram are not used */
    double p50, p95, p99;
} aggregate;

/* The middle of a bucket may lie outside of the range of the values added to it. */
static double quantile(const tare__py_named *named, double q)
{
    double ns = tare__hist_quantile(&named->hist, q);
    return fmin(fmax(ns, (double)named->min_ns), (double)named->max_ns) / 1e9;
}

PyObject *tare__py_named_snapshot(const tare__py_named *named)
{
    aggregate *made = PyObject_New(aggregate, &aggregate_type);
    if (!made)
        return NULL;
    made->of = *named;
    Py_INCREF(made->of.name);
    made->p50 = quantile(named, 0.50);
    made->p95 = quantile(named, 0.95);
    made->p99 = quantile(named, 0.99);
    return (PyObject *)made;
}

static void drop(PyObject *object)
{
    Py_XDECREF(((aggregate *)object)->of.name);
    PyObject_Free(object);
}

#define SELF const tare__py_named *self = &((const aggregate *)object)->of
#define GET(field) static PyObject *get_##field(PyObject *object, void *closure)
#define NONE_YET "no block of this name has ended"

static PyObject *seconds(const tare__py_named *self, double value)
{
    return self->count ? PyFloat_FromDouble(value) : tare__py_missing(NONE_YET);
}

GET(mean_s) { SELF; return seconds(self, (double)self->total_ns / 1e9 / (double)self->count); }
GET(min_s) { SELF; return seconds(self, (double)self->min_ns / 1e9); }
GET(max_s) { SELF; return seconds(self, (double)self->max_ns / 1e9); }
GET(p50_s) { SELF; return seconds(self, ((const aggregate *)object)->p50); }
GET(p95_s) { SELF; return seconds(self, ((const aggregate *)object)->p95); }
GET(p99_s) { SELF; return seconds(self, ((const aggregate *)object)->p99); }
GET(samples) { SELF; return tare__py_count_or_missing(self->samples, "no samples were counted"); }
GET(throughput) { SELF; return tare__py_rate_or_missing(self->samples, self->sampled_ns); }

GET(cpu_s)
{
    SELF;
    return self->with_cpu ? tare__py_ns_as_seconds(self->cpu_ns) : tare__py_missing("CPU time was not read");
}

GET(process_cpu_s)
{
    SELF;
    return self->with_cpu ? tare__py_ns_as_seconds(self->process_cpu_ns) : tare__py_missing("CPU time was not read");
}

GET(rss_delta)
{
    SELF;
    return self->with_memory ? PyLong_FromLongLong(self->rss_delta) : tare__py_missing("memory was not read");
}

GET(rss_peak)
{
    SELF;
    if (self->with_peak)
        return PyLong_FromUnsignedLongLong(self->rss_peak);
    return tare__py_missing(self->with_memory ? "peak=False" : "memory was not read");
}

GET(rss_peak_note)
{
    SELF;
    return tare__py_peak_note(self->rss_at_most > self->rss_peak ? self->rss_at_most : 0);
}

GET(process_cpu_percent) { SELF; return tare__py_busy_or_missing(self->with_cpu, self->busy_ns, self->busy_wall_ns); }

static PyObject *usage(const tare__py_named *self, int index, uint32_t kind)
{
    double mean = self->usage_s[index] > 0 ? self->usage_sum[index] / self->usage_s[index] : NAN;
    return tare__py_usage_or_missing(mean, self->system, kind);
}

GET(cpu_percent) { SELF; return usage(self, 0, TARE__PY_CPU); }
GET(iowait_percent) { SELF; return usage(self, 1, TARE__PY_CPU); }
GET(disk_percent) { SELF; return usage(self, 2, TARE__PY_DISK); }
GET(received) { SELF; return tare__py_usage_or_missing(self->received, self->system, TARE__PY_NETWORK); }
GET(sent) { SELF; return tare__py_usage_or_missing(self->sent, self->system, TARE__PY_NETWORK); }

#define FIELD(name) offsetof(aggregate, of.name)
static PyMemberDef members[] = {
    {"name", T_OBJECT, FIELD(name), READONLY, "the blocks' name"},
    {"count", T_ULONGLONG, FIELD(count), READONLY, "number of blocks that have ended"},
    {"unkept", T_ULONGLONG, FIELD(unkept), READONLY, "number of them that were only added up (aggregate=True)"},
    {"failed", T_ULONGLONG, FIELD(failed), READONLY, "number of them that were left by an exception"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef computed[] = {
    {"total_s", tare__py_seconds_at, NULL, "total seconds", (void *)FIELD(total_ns)},
    {"mean_s", get_mean_s, NULL, "mean seconds", NULL},
    {"min_s", get_min_s, NULL, "seconds of the shortest", NULL},
    {"max_s", get_max_s, NULL, "seconds of the longest", NULL},
    {"p50_s", get_p50_s, NULL, "median seconds, within 0.8 %", NULL},
    {"p95_s", get_p95_s, NULL, "95th percentile in seconds, within 0.8 %", NULL},
    {"p99_s", get_p99_s, NULL, "99th percentile in seconds, within 0.8 %", NULL},
    {"self_s", tare__py_seconds_at, NULL, "seconds outside of inner blocks", (void *)FIELD(self_ns)},
    {"excluded_s", tare__py_seconds_at, NULL,
     "seconds of other measurements inside them, excluded from all their times", (void *)FIELD(excluded_ns)},
    {"cpu_s", get_cpu_s, NULL, "CPU seconds of the threads that ran them", NULL},
    {"process_cpu_s", get_process_cpu_s, NULL, "CPU seconds of all threads of the process while they ran", NULL},
    {"process_cpu_percent", get_process_cpu_percent, NULL,
     "process_cpu_s as a percentage of their time, 100 for one busy CPU; blocks of 50 ms or more only", NULL},
    {"samples", get_samples, NULL, "number of samples processed", NULL},
    {"throughput", get_throughput, NULL, "samples per second, of the blocks that counted them", NULL},
    {"rss_delta", get_rss_delta, NULL, "total growth of resident memory, in bytes", NULL},
    {"rss_peak", get_rss_peak, NULL, "largest peak of resident memory of any of them, in bytes", NULL},
    {"cpu_percent", get_cpu_percent, NULL, "CPU utilization of the machine, averaged over time", NULL},
    {"iowait_percent", get_iowait_percent, NULL,
     "percentage of CPU time in which the machine's CPUs were idle and waited for disks", NULL},
    {"disk_percent", get_disk_percent, NULL, "percentage of the time in which the busiest disk was active", NULL},
    {"received", get_received, NULL, "total bytes the machine received", NULL},
    {"sent", get_sent, NULL, "total bytes the machine sent", NULL},
    {"rss_peak_note", get_rss_peak_note, NULL,
     "why rss_peak is a lower bound, and its upper bound; None: it is exact", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *show(PyObject *object)
{
    const tare__py_named *self = &((const aggregate *)object)->of;
    char total[32];
    PyOS_snprintf(total, sizeof total, "%.6f", (double)self->total_ns / 1e9);
    return PyUnicode_FromFormat("<tare.Aggregate %R: %llu in %s s>", self->name,
                                (unsigned long long)self->count, total);
}

static PyTypeObject aggregate_type = {
    TARE__PY_TYPE("tare.Aggregate", aggregate, 0, "All blocks of one name, added up; made by a Recorder."),
    .tp_dealloc = drop,
    .tp_repr = show,
    .tp_members = members,
    .tp_getset = computed,
};

static PyTypeObject named_type = {
    TARE__PY_TYPE("tare._core._Named", tare__py_named, 0, NULL),
    .tp_dealloc = drop_named,
};

const tare__py_part tare__py_part_aggregates = {.type = &aggregate_type, .inner_type = &named_type};
