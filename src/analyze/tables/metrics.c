/* metrics: reduces the samples of each series to one row: minimum, mean and maximum, totals converted to rates, and
 * points over time. Owned by the thread that analyzes.
 * Must not know how anything was measured, or what is concluded from the figures. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define POINT_SERIES_MAX 2000u   /* series with points; threads have the lowest priority */
#define POINTS_ALL_MAX 1000000u  /* of all series together: 40 MB */
#define POINTS_LEAST 128u
#define TIMES 4096u /* cached instants: all series of a block share them */
/* Samplers sample at every interval or at every tenth. A distance of more than this many intervals, and more than
 * this many times the previous distance, is a gap. */
#define GAP_INTERVALS 12.0
#define GAP_STEPS 4.0
#define INTERVAL_NS 1e8 /* if not recorded in the file */
/* The kernel counts the machine's CPU time in ticks of 10 ms: rates over shorter intervals would count one tick or
 * none. */
#define COARSE_NS 5e7

/* ---- start --------------------------------------------------------------------------------------- */
static double gap_of(const tare__trace *trace)
{
    double requested = (double)tare__trace_run_of(trace)->interval_ns;
    double longest = (double)tare__trace_end_of(trace)->stretched_ns;
    double interval = longest > requested ? longest : requested;
    return GAP_INTERVALS * (interval > 0 ? interval : INTERVAL_NS);
}

/* Series of the machine and of whole processes first: there may be thousands of threads. */
static unsigned rank_of(const tare__trace_series *series)
{
    if (series->subject == TARE__SUBJECT_THREAD)
        return 2;
    return series->subject == TARE__SUBJECT_PROCESS || series->subject == TARE__SUBJECT_GPU_PROCESS;
}

static int make_points(metrics *metrics, const tare__trace_series *series)
{
    size_t kept = metrics->n < POINT_SERIES_MAX ? metrics->n : POINT_SERIES_MAX, n = 0;
    size_t max = kept ? POINTS_ALL_MAX / kept : 0;
    max = max > TARE__POINTS_MAX ? TARE__POINTS_MAX : max < POINTS_LEAST ? POINTS_LEAST : max;
    metrics->points = calloc(kept + 1, sizeof *metrics->points);
    if (!metrics->points)
        return TARE_E_MEMORY;
    for (unsigned rank = 0; rank <= 2; rank++)
        for (size_t i = 0; i < metrics->n && n < kept; i++)
            if (rank_of(&series[i]) == rank) {
                metrics->points[n] = (points){.max = max, .each = 1};
                metrics->rows[i].points = &metrics->points[n++];
            }
    metrics->n_points = n;
    return 0;
}

int tare__analyze_start_metrics(work *work)
{
    metrics *metrics = &work->metrics;
    const tare__trace_series *series = tare__trace_series_rows(work->trace, &metrics->n);
    metrics->gap_ns = gap_of(work->trace);
    double requested = (double)tare__trace_run_of(work->trace)->interval_ns;
    metrics->least_ns = (requested > 0 && requested < INTERVAL_NS ? requested : INTERVAL_NS) / 2;
    if (!metrics->n)
        return 0;
    metrics->rows = calloc(metrics->n, sizeof *metrics->rows);
    metrics->times = calloc(TIMES, sizeof *metrics->times);
    return metrics->rows && metrics->times ? make_points(metrics, series) : TARE_E_MEMORY;
}

void tare__analyze_free_metrics(work *work)
{
    metrics *metrics = &work->metrics;
    for (size_t i = 0; i < metrics->n_points; i++)
        free(metrics->points[i].rows);
    free(metrics->points);
    free(metrics->rows);
    free(metrics->times);
}

/* ---- units --------------------------------------------------------------------------------------- */
typedef struct showing {
    double scale;
    tare__metric_unit gauge, rate, total;
} showing;

static const showing showings[] = {
    [TARE__IN_NONE] = {1, TARE__SHOW_COUNT, TARE__SHOW_PER_S, TARE__SHOW_COUNT},
    [TARE__IN_COUNT] = {1, TARE__SHOW_COUNT, TARE__SHOW_PER_S, TARE__SHOW_COUNT},
    [TARE__IN_BYTE] = {1, TARE__SHOW_BYTES, TARE__SHOW_BYTES_PER_S, TARE__SHOW_BYTES},
    [TARE__IN_NS] = {1e-9, TARE__SHOW_SECONDS, TARE__SHOW_SHARE, TARE__SHOW_SECONDS},
    [TARE__IN_PERMILLE] = {1e-3, TARE__SHOW_SHARE, TARE__SHOW_PER_S, TARE__SHOW_SHARE},
    [TARE__IN_MILLICELSIUS] = {1e-3, TARE__SHOW_CELSIUS, TARE__SHOW_PER_S, TARE__SHOW_CELSIUS},
    [TARE__IN_MILLIWATT] = {1e-3, TARE__SHOW_WATTS, TARE__SHOW_PER_S, TARE__SHOW_WATTS},
    [TARE__IN_MICROJOULE] = {1e-6, TARE__SHOW_JOULES, TARE__SHOW_WATTS, TARE__SHOW_JOULES},
    [TARE__IN_HERTZ] = {1, TARE__SHOW_HERTZ, TARE__SHOW_PER_S, TARE__SHOW_HERTZ},
    [TARE__IN_MILLI] = {1e-3, TARE__SHOW_COUNT, TARE__SHOW_PER_S, TARE__SHOW_COUNT},
    [TARE__IN_BITS] = {1, TARE__SHOW_BITS, TARE__SHOW_PER_S, TARE__SHOW_BITS},
};

/* Nanoseconds per second are cores for CPU time; a queue length for waiting requests; else a share of the time. */
static showing showing_of(const tare__trace_series *series)
{
    showing showing = showings[series->unit < TARE__COUNT_OF(showings) ? series->unit : TARE__IN_NONE];
    bool cpu = strncmp(series->metric, "cpu.", 4) == 0;
    if (series->unit == TARE__IN_NS && cpu)
        showing.rate = TARE__SHOW_CORES;
    if (series->unit == TARE__IN_NS && strcmp(series->metric, tare__metric_of(TARE__M_DISK_QUEUE)->name) == 0)
        showing.rate = TARE__SHOW_COUNT;
    if (series->unit == TARE__IN_MILLI && cpu)
        showing.gauge = TARE__SHOW_CORES;
    return showing;
}

/* ---- samples ------------------------------------------------------------------------------------- */
static double time_of(const work *work, uint64_t ticks)
{
    moment *seen = &work->metrics.times[ticks * UINT64_C(0x9E3779B97F4A7C15) >> 52];
    if (seen->ticks != ticks || !seen->known)
        *seen = (moment){ticks, tare__trace_ns(work->trace, ticks), true};
    return seen->ns;
}

static int add_stretch(metric *metric, double from_ns, double to_ns, double value, double seen_at_ns)
{
    if (!(value <= metric->max)) {
        metric->max = value;
        metric->max_at_ns = seen_at_ns;
    }
    if (!(value >= metric->min))
        metric->min = value;
    metric->sum += value * (to_ns - from_ns);
    metric->weight_ns += to_ns - from_ns;
    return metric->points ? tare__analyze_add_point(metric->points, from_ns, to_ns, value) : 0;
}

/* A gauge's value holds until the next sample; before a gap only for as long as the previous sample did. */
static int add_gauge(metric *metric, double now_ns, bool gap)
{
    double until = gap ? metric->last_ns + metric->step_ns : now_ns;
    return add_stretch(metric, metric->last_ns, until, (double)metric->last, metric->last_ns);
}

/* Growth of a total during a gap belongs to the total, but not to a rate, since its time is not known. A total that
 * decreases was restarted: its growth until then is not known, so nothing is added. */
static int add_total(metrics *metrics, metric *metric, double now_ns, int64_t value, bool gap, double least_ns,
                     double most)
{
    bool anew = value < metric->last;
    uint64_t grown = anew ? 0 : (uint64_t)value - (uint64_t)metric->last, rate_grown = metric->rate_grown + grown;
    double from = metric->rate_from_ns, lasts = now_ns - from;
    metrics->restarts += anew;
    metric->added += grown;
    metric->stretches += !anew;
    metric->rate_grown = rate_grown;
    if (!anew && !gap && !(lasts >= least_ns)) /* two samples in quick succession, as at the end of a run */
        return 0;
    metric->rate_grown = 0;
    metric->rate_from_ns = now_ns;
    if (anew || gap)
        return 0;
    /* The clock is read slightly before or after the counter: growth that exceeds the maximum rate belongs to the
     * following interval. */
    double rate = (double)rate_grown / (lasts / 1e9);
    if (rate > most) {
        metric->rate_grown = (uint64_t)((double)rate_grown - most * lasts / 1e9);
        rate = most;
    }
    return add_stretch(metric, from, now_ns, rate, from + lasts / 2);
}

static double least_of(const metrics *metrics, const tare__trace_series *series)
{
    bool machine = series->subject == TARE__SUBJECT_SYSTEM || series->subject == TARE__SUBJECT_CPU ||
                   series->subject == TARE__SUBJECT_CONTAINER;
    return machine && series->unit == TARE__IN_NS ? COARSE_NS : metrics->least_ns;
}

/* Maximum growth of a total per second: one second for one CPU or thread, and one second per CPU for the machine. */
static double most_of(const work *work, const tare__trace_series *series)
{
    if (series->unit != TARE__IN_NS)
        return INFINITY;
    tare__metric_unit shown = showing_of(series).rate;
    bool one = series->subject == TARE__SUBJECT_CPU || series->subject == TARE__SUBJECT_THREAD;
    if (shown == TARE__SHOW_SHARE || (shown == TARE__SHOW_CORES && one))
        return 1e9;
    uint32_t cpus = tare__trace_run_of(work->trace)->cpus;
    bool used = strcmp(series->metric, tare__metric_of(TARE__M_CPU_USER)->name) == 0 ||
                strcmp(series->metric, tare__metric_of(TARE__M_CPU_SYSTEM)->name) == 0 ||
                strcmp(series->metric, tare__metric_of(TARE__M_CPU_USAGE)->name) == 0;
    return used && cpus ? 1e9 * cpus : INFINITY;
}

static int add_sample(work *work, metric *metric, const tare__trace_series *series, uint64_t ticks, int64_t value)
{
    double now_ns = time_of(work, ticks);
    int status = 0;
    if (work->window.to && (now_ns < work->window.from_ns || now_ns > work->window.to_ns))
        return 0;
    if (!metric->n) {
        metric->first = value;
        metric->from_ns = metric->rate_from_ns = now_ns;
        metric->min = metric->max = NAN;
    } else if (ticks <= metric->last_ticks) {
        work->metrics.late++;
        return 0;
    } else {
        double step = now_ns - metric->last_ns;
        bool gap = step > work->metrics.gap_ns && (metric->n == 1 || step > GAP_STEPS * metric->step_ns);
        if (series->kind == TARE__METRIC_TOTAL) {
            status = add_total(&work->metrics, metric, now_ns, value, gap, least_of(&work->metrics, series),
                               most_of(work, series));
            if (work->metrics.restarts && !work->metrics.restarted) {
                work->metrics.restarted = series->metric;
                const char *word = tare__subject_word(series->subject);
                work->metrics.restarted_of = word ? word : "subject";
            }
        } else {
            status = add_gauge(metric, now_ns, gap);
        }
        if (!gap || metric->n == 1) /* if there are only two samples, their distance may be the interval */
            metric->step_ns = step;
    }
    metric->n++;
    metric->plain += (double)value;
    metric->last = value;
    metric->last_ticks = ticks;
    metric->last_ns = now_ns;
    return status;
}

int tare__analyze_samples(void *context, uint32_t id, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    work *work = context;
    size_t rows;
    const tare__trace_series *all = tare__trace_series_rows(work->trace, &rows);
    const tare__trace_series *series = tare__trace_series_at(work->trace, id);
    if (!series) {
        work->metrics.strangers += n;
        return 0;
    }
    metric *metric = &work->metrics.rows[series - all];
    int status = 0;
    for (uint32_t i = 0; i < n && !status; i++)
        status = add_sample(work, metric, series, ticks[i], values[i]);
    return status;
}

/* ---- table --------------------------------------------------------------------------------------- */
/* The duration of a gauge's last value is not known. */
static int close_gauge(metric *metric)
{
    double value = (double)metric->last;
    int status = add_stretch(metric, metric->last_ns, metric->last_ns, value, metric->last_ns);
    if (!(metric->weight_ns > 0)) { /* no duration is known: each value counts once */
        metric->sum = metric->plain;
        metric->weight_ns = (double)metric->n;
    }
    return status;
}

static const char *copy_text(tare__arena *arena, const char *text, const char **before, const char **copy)
{
    if (text != *before) { /* rows of one subject are adjacent, and the trace has each text once */
        *copy = copied(arena, text);
        *before = text;
    }
    return *copy;
}

typedef struct last_texts {
    const char *label, *label_copy, *absent, *absent_copy;
} last_texts;

static void fill_figures(const metric *metric, const showing *showing, bool total, tare__metric_row *row)
{
    double scale = showing->scale;
    row->n = metric->n;
    row->min = metric->min * scale;
    row->max = metric->max * scale;
    row->mean = metric->weight_ns > 0 ? metric->sum / metric->weight_ns * scale : NAN;
    row->max_at_ns = isnan(metric->max) ? NAN : metric->max_at_ns;
    row->from_ns = metric->from_ns;
    row->to_ns = metric->last_ns;
    if (total) {
        row->total = metric->stretches ? (double)metric->added * scale : NAN;
    } else {
        row->first = (double)metric->first * scale;
        row->last = (double)metric->last * scale;
    }
}

static int fill_row(tare__arena *arena, const tare__trace_series *series, metric *metric, last_texts *texts,
                    tare__metric_row *row)
{
    tare__metric known = tare__metric_find(series->metric, (uint32_t)strlen(series->metric));
    bool total = series->kind == TARE__METRIC_TOTAL;
    showing showing = showing_of(series);
    *row = (tare__metric_row){
        .metric = known < TARE__METRIC_COUNT ? tare__metric_of(known)->name : copied(arena, series->metric),
        .subject = series->subject,
        .key = series->key,
        .owner = series->owner,
        .label = copy_text(arena, series->label, &texts->label, &texts->label_copy),
        .kind = series->kind,
        .known = known,
        .unit = total ? showing.rate : showing.gauge,
        .total_unit = showing.total,
        .absent = copy_text(arena, series->absent, &texts->absent, &texts->absent_copy),
        .min = NAN, .mean = NAN, .max = NAN, .max_at_ns = NAN, .first = NAN, .last = NAN, .total = NAN,
        .from_ns = NAN, .to_ns = NAN,
    };
    if (!metric->n) {
        row->absent = row->absent ? row->absent : "not sampled";
        return 0;
    }
    int status = total ? 0 : close_gauge(metric);
    fill_figures(metric, &showing, total, row);
    if (metric->points && !status) {
        row->points = tare__analyze_keep_points(metric->points, arena, showing.scale);
        row->n_points = metric->points->n;
        free(metric->points->rows);
        metric->points->rows = NULL;
    }
    return status || (metric->points && !row->points) ? TARE_E_MEMORY : 0;
}

/* Disks, networks and sensors have no keys. */
TARE__ORDER_OF_POINTERS(by_subject, tare__trace_series, TARE__RISING(subject) TARE__RISING(owner) TARE__RISING(key)
                        TARE__BY_TEXT(label) TARE__BY_TEXT(metric) TARE__RISING(id))

int tare__analyze_metrics_table(work *work, tare__analysis *analysis)
{
    metrics *metrics = &work->metrics;
    size_t n = metrics->n;
    const tare__trace_series *series = tare__trace_series_rows(work->trace, &n);
    const tare__trace_series **sorted = calloc(n + 1, sizeof *sorted);
    tare__metric_row *rows = tare__arena_alloc(analysis->arena, (n + 1) * sizeof *rows);
    last_texts texts = {0};
    int status = sorted && rows ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < n && !status; i++)
        sorted[i] = &series[i];
    if (!status)
        qsort(sorted, n, sizeof *sorted, by_subject);
    for (size_t i = 0; i < n && !status; i++) {
        metric *metric = &metrics->rows[sorted[i] - series];
        metric->row = i;
        status = fill_row(analysis->arena, sorted[i], metric, &texts, &rows[i]);
    }
    free(sorted);
    analysis->metrics = rows;
    analysis->n_metrics = status ? 0 : n;
    return status;
}

const tare__metric_row *tare__metric_row_of(const tare__analysis *analysis, tare__metric metric,
                                            tare__subject_kind subject, uint64_t key)
{
    for (size_t i = 0; i < analysis->n_metrics; i++) {
        const tare__metric_row *row = &analysis->metrics[i];
        if (row->known == metric && row->subject == subject && (key == UINT64_MAX || row->key == key))
            return row;
    }
    return NULL;
}
