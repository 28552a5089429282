/* usage: resource usage of the run, one figure each, from samples and from the kernel's figures at the end.
 * Owned by the thread that analyzes.
 * Must not know how anything was measured, or how it is shown. */
#include <math.h>
#include <string.h>

#include "analyze/inner.h"

/* Default: approximately the world average of electricity (IEA, 2019). Reported as an assumption. */
#define CARBON_G_PER_KWH 475.0
#define JOULES_PER_KWH 3.6e6

/* ---- rows and their series ----------------------------------------------------------------------- */
typedef struct view {
    const work *work;
    const tare__analysis *analysis;
    size_t n; /* series */
} view;

typedef struct sampled {
    const view *view;
    const tare__metric_row *row;
    const metric *under; /* the series of the row */
} sampled;

typedef double figure(const sampled *sampled);

/* The next row of a metric with this kind of subject, starting at *at; false: no more. In the order of the file. */
static bool next(const view *view, size_t *at, tare__metric id, tare__subject_kind subject, sampled *sampled)
{
    sampled->view = view;
    while (*at < view->n) {
        sampled->under = &view->work->metrics.rows[(*at)++];
        sampled->row = &view->analysis->metrics[sampled->under->row];
        if (sampled->row->known == id && sampled->row->subject == subject)
            return true;
    }
    return false;
}

/* NULL: none. */
static const tare__metric_row *first(const view *view, tare__metric id, tare__subject_kind subject)
{
    sampled sampled;
    size_t at = 0;
    return next(view, &at, id, subject, &sampled) ? sampled.row : NULL;
}

static double sum(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static double larger(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

static double smaller(double a, double b)
{
    return isnan(a) || b < a ? b : a;
}

/* Over all rows that have values; NaN if none has. */
static double fold(const view *view, tare__metric id, tare__subject_kind subject, figure *figure,
                   double (*join)(double, double))
{
    sampled sampled;
    double all = NAN;
    for (size_t at = 0; next(view, &at, id, subject, &sampled);)
        if (sampled.row->n)
            all = join(all, figure(&sampled));
    return all;
}

static double scale_of(const tare__metric_row *row)
{
    return row->total_unit == TARE__SHOW_SECONDS ? 1e-9 : row->total_unit == TARE__SHOW_JOULES ? 1e-6 : 1;
}

/* A process's totals count from its start: usage before the first sample belongs to the run, except for a process
 * that was attached to. */
static double used(const sampled *sampled)
{
    const metric *under = sampled->under;
    const work *work = sampled->view->work;
    bool attached = tare__trace_run_of(work->trace)->attached != 0 || work->window.to;
    if (attached && !under->stretches)
        return NAN;
    return ((double)under->added + (attached ? 0 : (double)under->first)) * scale_of(sampled->row);
}

static double added(const sampled *sampled)
{
    return sampled->row->total;
}

static double mean_of(const sampled *sampled)
{
    return sampled->row->mean;
}

static double most_of(const sampled *sampled)
{
    return sampled->row->max;
}

static double last_of(const sampled *sampled)
{
    return sampled->row->last;
}

static double one(const sampled *sampled)
{
    (void)sampled;
    return 1;
}

/* The tree includes processes that have ended; without it, the sum over sampled processes is used. */
static double tree_total(const view *view, tare__metric id)
{
    double all = fold(view, id, TARE__SUBJECT_TREE, used, sum);
    return isnan(all) ? fold(view, id, TARE__SUBJECT_PROCESS, used, sum) : all;
}

/* I/O counters of a process may be unreadable: the sum of the others would be too low, and so is the earlier total. */
static double io_total(const view *view, tare__metric id)
{
    const tare__metric_row *tree = first(view, id, TARE__SUBJECT_TREE);
    return tree && tree->absent && *tree->absent ? NAN : tree_total(view, id);
}

/* ---- reasons ------------------------------------------------------------------------------------- */
static const char *reason_of(const view *view, tare__metric id, tare__subject_kind subject)
{
    sampled sampled;
    for (size_t at = 0; next(view, &at, id, subject, &sampled);)
        if (sampled.row->absent)
            return sampled.row->absent;
    return "not sampled";
}

/* ---- CPU ----------------------------------------------------------------------------------------- */
/* The kernel's figure for the child excludes descendants that were not waited for; samples exclude usage after the
 * last sample. Neither can be too large, so the larger one is more accurate. */
static void fill_cpu_time(const view *view, tare__usage_table *usage)
{
    const tare__trace_end *end = tare__trace_end_of(view->work->trace);
    usage->user_seconds = tree_total(view, TARE__M_CPU_USER);
    usage->system_seconds = tree_total(view, TARE__M_CPU_SYSTEM);
    usage->cpu_seconds = sum(usage->user_seconds, usage->system_seconds);
    double child = (double)(end->child_user_ns + end->child_system_ns) / 1e9;
    if (end->has_child && !view->work->window.to && !(usage->cpu_seconds > child)) {
        usage->user_seconds = (double)end->child_user_ns / 1e9;
        usage->system_seconds = (double)end->child_system_ns / 1e9;
        usage->cpu_seconds = child;
    }
    if (isnan(usage->cpu_seconds))
        usage->absent_cpu = reason_of(view, TARE__M_CPU_USER, TARE__SUBJECT_TREE);
}

/* User and system time are sampled at the same instants, so their points match; where many samples are merged into
 * one, this is the largest mean of a point. */
static double cores_max(const view *view)
{
    const tare__metric_row *user = first(view, TARE__M_CPU_USER, TARE__SUBJECT_TREE);
    const tare__metric_row *system = first(view, TARE__M_CPU_SYSTEM, TARE__SUBJECT_TREE);
    double most = NAN;
    size_t n = user && system && user->points && system->points ? user->n_points : 0;
    for (size_t i = 0; i < n && i < system->n_points; i++)
        if (user->points[i].at_ns == system->points[i].at_ns)
            most = larger(most, user->points[i].mean + system->points[i].mean);
    return isnan(most) && user ? user->max : most;
}

static void fill_cores(const view *view, tare__usage_table *usage)
{
    const tare__trace_run *run = tare__trace_run_of(view->work->trace);
    double seconds = tare__analyze_elapsed(view->work) / 1e9;
    usage->cores_mean = seconds > 0 ? usage->cpu_seconds / seconds : NAN;
    usage->cores_max = cores_max(view);
    if (usage->cores_max < usage->cores_mean)
        usage->cores_max = usage->cores_mean; /* the final figure is larger than any rate between samples */
    usage->cores_allowed = run->cpus ? (double)run->cpus : NAN;
    static const tare__subject_kind by[] = {TARE__SUBJECT_SYSTEM, TARE__SUBJECT_CONTAINER, TARE__SUBJECT_TREE};
    for (size_t i = 0; i < TARE__COUNT_OF(by); i++) {
        double limit = fold(view, TARE__M_CPU_LIMIT, by[i], last_of, smaller);
        if (limit > 0)
            usage->cores_allowed = smaller(usage->cores_allowed, limit);
    }
}

/* ---- memory -------------------------------------------------------------------------------------- */
typedef struct largest {
    const tare__metric_row *row; /* NULL: none */
    size_t n;
} largest;

static largest largest_process(const view *view, tare__metric id)
{
    sampled sampled;
    largest largest = {NULL, 0};
    for (size_t at = 0; next(view, &at, id, TARE__SUBJECT_PROCESS, &sampled);) {
        if (!sampled.row->n)
            continue;
        largest.n++;
        if (!largest.row || sampled.row->max > largest.row->max)
            largest.row = sampled.row;
    }
    return largest;
}

/* The last sample of the tree: a process seen then was running until the end. */
static double last_sample(const view *view)
{
    const tare__metric_row *row = first(view, TARE__M_RSS, TARE__SUBJECT_TREE);
    return row ? row->to_ns : NAN;
}

static void fill_peak(const view *view, tare__usage_table *usage)
{
    const tare__trace_end *end = tare__trace_end_of(view->work->trace);
    largest seen = largest_process(view, TARE__M_RSS_PEAK);
    bool marks = seen.row != NULL;
    if (!marks)
        seen = largest_process(view, TARE__M_RSS);
    double sampled = seen.row ? seen.row->max : NAN;
    double reported =
        end->has_child && end->child_peak_bytes && !view->work->window.to ? (double)end->child_peak_bytes : NAN;
    usage->rss_peak_bytes = larger(reported, sampled);
    usage->rss_peak_at_ns = NAN;
    if (isnan(usage->rss_peak_bytes)) {
        usage->absent_memory = reason_of(view, TARE__M_RSS_PEAK, TARE__SUBJECT_PROCESS);
        return;
    }
    /* The kernel reports the final peak only for the child and the processes it waited for. */
    if (!(usage->rss_peak_bytes <= reported))
        usage->rss_peak_at_least = !marks || !end->present || !(seen.row->to_ns >= last_sample(view));
    if (!seen.row)
        return;
    if (seen.n == 1 || sampled >= 0.9 * usage->rss_peak_bytes)
        usage->rss_peak_process = *seen.row->label ? seen.row->label : NULL;
    if (sampled >= 0.99 * usage->rss_peak_bytes)
        usage->rss_peak_at_ns = seen.row->max_at_ns;
}

static void fill_memory(const view *view, tare__usage_table *usage)
{
    const tare__trace_run *run = tare__trace_run_of(view->work->trace);
    fill_peak(view, usage);
    /* The tree is sampled, while a process's peak is the kernel's high-water mark: the tree had at least that. */
    double together = fold(view, TARE__M_RSS, TARE__SUBJECT_TREE, most_of, larger);
    usage->tree_rss_max_bytes = isnan(together) ? NAN : fmax(together, usage->rss_peak_bytes);
    double machine = run->memory_bytes ? (double)run->memory_bytes
                                       : fold(view, TARE__M_MEMORY_TOTAL, TARE__SUBJECT_SYSTEM, most_of, larger);
    double limit = fold(view, TARE__M_MEMORY_LIMIT, TARE__SUBJECT_CONTAINER, last_of, smaller);
    usage->memory_allowed_bytes = limit > 0 ? smaller(machine, limit) : machine;
}

/* ---- disks, network, other ----------------------------------------------------------------------- */
static double from_outside(const sampled *sampled)
{
    return strcmp(sampled->row->label, "lo") == 0 ? NAN : sampled->row->total;
}

static void fill_rest(const view *view, tare__usage_table *usage)
{
    usage->io_read_bytes = io_total(view, TARE__M_IO_READ);
    usage->io_write_bytes = io_total(view, TARE__M_IO_WRITE);
    usage->disk_read_bytes = io_total(view, TARE__M_DISK_READ);
    usage->disk_write_bytes = io_total(view, TARE__M_DISK_WRITE);
    if (isnan(usage->disk_read_bytes) && isnan(usage->disk_write_bytes))
        usage->absent_disk = reason_of(view, TARE__M_DISK_READ, TARE__SUBJECT_TREE);
    usage->net_received_bytes = fold(view, TARE__M_NET_RECEIVED, TARE__SUBJECT_NETWORK, from_outside, sum);
    usage->net_sent_bytes = fold(view, TARE__M_NET_SENT, TARE__SUBJECT_NETWORK, from_outside, sum);
    usage->faults_major = tree_total(view, TARE__M_FAULTS_MAJOR);
    usage->switches_voluntary = tree_total(view, TARE__M_SWITCHES_VOLUNTARY);
    usage->switches_forced = tree_total(view, TARE__M_SWITCHES_FORCED);
    usage->threads_max = fold(view, TARE__M_THREADS, TARE__SUBJECT_TREE, most_of, larger);
    usage->processes_max = fold(view, TARE__M_PROCESSES, TARE__SUBJECT_TREE, most_of, larger);
}

/* ---- energy, GPUs -------------------------------------------------------------------------------- */
/* Core and graphics domains are part of a package, and "psys" includes the package. */
static double package_energy(const sampled *sampled)
{
    bool counts = strstr(sampled->row->label, "package") || strstr(sampled->row->label, "dram");
    return counts ? added(sampled) : NAN;
}

static double power_integral(const sampled *sampled)
{
    const tare__metric_row *row = sampled->row;
    return row->to_ns > row->from_ns ? row->mean * (row->to_ns - row->from_ns) / 1e9 : NAN;
}

static void fill_energy(work *work, const view *view, tare__usage_table *usage)
{
    const tare__trace_run *run = tare__trace_run_of(work->trace);
    double cpu = fold(view, TARE__M_ENERGY, TARE__SUBJECT_SENSOR, package_energy, sum);
    double gpu = fold(view, TARE__M_ENERGY, TARE__SUBJECT_GPU, added, sum);
    if (isnan(gpu))
        gpu = fold(view, TARE__M_POWER, TARE__SUBJECT_GPU, power_integral, sum);
    usage->energy_joules = sum(cpu, gpu);
    usage->carbon_intensity = run->has_carbon ? (double)run->carbon / 1000 : CARBON_G_PER_KWH;
    usage->carbon_grams = usage->energy_joules / JOULES_PER_KWH * usage->carbon_intensity;
    work->carbon_assumed = !run->has_carbon && !isnan(usage->energy_joules);
    bool has_gpu = !isnan(fold(view, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU, one, sum));
    if (isnan(usage->energy_joules))
        usage->absent_energy = reason_of(view, TARE__M_ENERGY, TARE__SUBJECT_SENSOR);
    else if (isnan(cpu))
        work->energy_of = "GPUs";
    else if (isnan(gpu) && has_gpu)
        work->energy_of = "CPUs";
}

/* The reason that the writer recorded for missing GPU data, without "n/a: ". */
static void fill_gpu_reason(const view *view, tare__usage_table *usage)
{
    static const char not_there[] = "n/a: ";
    const char *gpus = tare__trace_run_of(view->work->trace)->gpus;
    usage->absent_gpu = reason_of(view, TARE__M_GPU_BUSY, TARE__SUBJECT_GPU);
    if (!gpus || strncmp(gpus, not_there, sizeof not_there - 1) != 0)
        return;
    usage->absent_gpu = copied(view->analysis->arena, gpus + sizeof not_there - 1);
}

static void fill_gpu(const view *view, tare__usage_table *usage)
{
    double gpus = fold(view, TARE__M_GPU_BUSY, TARE__SUBJECT_GPU, one, sum);
    usage->gpu_busy_mean = fold(view, TARE__M_GPU_BUSY, TARE__SUBJECT_GPU, mean_of, sum) / gpus;
    usage->gpu_memory_max_bytes = fold(view, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU, most_of, sum);
    if (isnan(usage->gpu_busy_mean) && isnan(usage->gpu_memory_max_bytes))
        fill_gpu_reason(view, usage);
}

int tare__analyze_usage_table(work *work, tare__analysis *analysis)
{
    view view = {work, analysis, analysis->n_metrics};
    tare__usage_table *usage = &analysis->usage;
    fill_cpu_time(&view, usage);
    fill_cores(&view, usage);
    fill_memory(&view, usage);
    fill_rest(&view, usage);
    fill_energy(work, &view, usage);
    fill_gpu(&view, usage);
    return 0;
}
