/* findings_world: tables made by hand, for tests of rules: a run of ten seconds in which nothing is known until a
 * test says so. Owned by the test's one thread. Included after cmocka.h.
 * Must not know any rule. */
#ifndef TARE_TEST_FINDINGS_WORLD_H
#define TARE_TEST_FINDINGS_WORLD_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/findings/rules.h"

#define WORLD_ROWS 64
#define WORLD_POINTS 100 /* of 100 ms each */
#define SECOND 1e9
#define MB 1e6
#define GB 1e9

#define TREE TARE__SUBJECT_TREE
#define SYSTEM TARE__SUBJECT_SYSTEM
#define CONTAINER TARE__SUBJECT_CONTAINER
#define PROCESS TARE__SUBJECT_PROCESS
#define THREAD TARE__SUBJECT_THREAD
#define GPU TARE__SUBJECT_GPU

typedef struct world {
    tare__analysis of;
    tare__metric_row rows[WORLD_ROWS];
    tare__metric_point points[WORLD_ROWS][WORLD_POINTS];
    tare__span_row spans[16];
    tare__step_row steps[4];
} world;

static inline world *world_new(void)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->of.usage = (tare__usage_table){
        .cpu_seconds = NAN, .user_seconds = NAN, .system_seconds = NAN, .cores_mean = NAN, .cores_max = NAN,
        .cores_allowed = NAN, .rss_peak_bytes = NAN, .rss_peak_at_ns = NAN, .tree_rss_max_bytes = NAN,
        .memory_allowed_bytes = NAN, .io_read_bytes = NAN, .io_write_bytes = NAN, .disk_read_bytes = NAN,
        .disk_write_bytes = NAN, .net_received_bytes = NAN, .net_sent_bytes = NAN, .faults_major = NAN,
        .switches_voluntary = NAN, .switches_forced = NAN, .threads_max = NAN, .processes_max = NAN,
        .energy_joules = NAN, .carbon_grams = NAN, .carbon_intensity = NAN, .gpu_busy_mean = NAN,
        .gpu_memory_max_bytes = NAN,
    };
    w->of.run = (tare__run_table){.elapsed_ns = 10 * SECOND, .clock_known = true, .finished = true, .status = 0,
                                  .memory_bytes = NAN, .rotated_before_at_ns = NAN, .cpus = 4};
    w->of.metrics = w->rows;
    w->of.spans = w->spans;
    w->of.steps = w->steps;
    w->of.arena = tare__arena_new();
    assert_non_null(w->of.arena);
    return w;
}

static inline void world_free(world *w)
{
    tare__arena_free(w->of.arena);
    free(w);
}

/* ---- samples ---- */
typedef double shape(double seconds); /* value at a time */

/* A row over the first `seconds` of the run. */
static inline tare__metric_row *add_row_for(world *w, tare__metric metric, tare__subject_kind subject, uint64_t key,
                                            uint64_t owner, const char *label, shape *at, double seconds)
{
    assert_true(w->of.n_metrics < WORLD_ROWS);
    size_t row = w->of.n_metrics++, n = (size_t)(seconds * 10 + 0.5);
    tare__metric_point *points = w->points[row];
    tare__metric_row *made = &w->rows[row];
    bool total = tare__metric_of(metric)->kind == TARE__METRIC_TOTAL;
    *made = (tare__metric_row){.metric = tare__metric_of(metric)->name, .subject = subject, .key = key,
                               .owner = owner, .label = label, .kind = tare__metric_of(metric)->kind,
                               .known = metric, .n = n + 1, .min = INFINITY, .max = -INFINITY, .points = points,
                               .n_points = n, .from_ns = 0, .to_ns = seconds * SECOND, .total = total ? 0 : NAN,
                               .first = NAN, .last = NAN};
    for (size_t i = 0; i < n; i++) {
        double value = at((double)i / 10);
        points[i] = (tare__metric_point){(double)i / 10 * SECOND, 0.1 * SECOND, value, value, value};
        made->mean += value / (double)n;
        made->min = fmin(made->min, value);
        if (value > made->max) {
            made->max = value;
            made->max_at_ns = points[i].at_ns;
        }
        if (total)
            made->total += value * 0.1;
    }
    if (!total) {
        made->first = points[0].mean;
        made->last = points[n - 1].mean;
    }
    return made;
}

static inline tare__metric_row *add_row(world *w, tare__metric metric, tare__subject_kind subject, uint64_t key,
                                        const char *label, shape *at)
{
    return add_row_for(w, metric, subject, key, 0, label, at, 10);
}

/* Told, but without a value. */
static inline void add_absent(world *w, tare__metric metric, tare__subject_kind subject)
{
    assert_true(w->of.n_metrics < WORLD_ROWS);
    w->rows[w->of.n_metrics++] =
        (tare__metric_row){.metric = tare__metric_of(metric)->name, .subject = subject, .label = "",
                           .kind = tare__metric_of(metric)->kind, .known = metric, .absent = "not here",
                           .min = NAN, .mean = NAN, .max = NAN, .max_at_ns = NAN, .first = NAN, .last = NAN,
                           .total = NAN, .from_ns = NAN, .to_ns = NAN};
}

static inline double zero(double t)
{
    return t * 0;
}

static inline double one(double t)
{
    return 1 + t * 0;
}

/* CPU of a subject in cores, all of it user time. */
static inline void add_cores(world *w, tare__subject_kind subject, uint64_t key, const char *label, shape *cores)
{
    add_row(w, TARE__M_CPU_USER, subject, key, label, cores);
    add_row(w, TARE__M_CPU_SYSTEM, subject, key, label, zero);
}

/* ---- spans and steps ---- */
static inline tare__span_row *add_span(world *w, const char *name, uint32_t kind, uint32_t parent, double total_s,
                                       double self_s)
{
    assert_true(w->of.n_spans < 16);
    tare__span_row *row = &w->spans[w->of.n_spans++];
    *row = (tare__span_row){.name = name, .kind = kind, .group = TARE__NO_ROW, .parent = parent, .calls = 10,
                            .depth = parent == TARE__NO_ROW ? 0 : w->spans[parent].depth + 1,
                            .total_ns = total_s * SECOND, .self_ns = self_s * SECOND,
                            .raw_self_ns = self_s * SECOND, .share = NAN};
    return row;
}

/* Steps of which the first takes first_s, the slowest of the others slow_s and all others usual_s. */
static inline tare__step_row *add_steps(world *w, uint64_t count, double first_s, double usual_s, double slow_s)
{
    assert_true(w->of.n_steps < 4);
    tare__step_row *row = &w->steps[w->of.n_steps++];
    double total = first_s + slow_s + (double)(count - 2) * usual_s;
    *row = (tare__step_row){.name = "step", .group = TARE__NO_ROW, .count = count, .job_count = count,
                            .total_ns = total * SECOND, .timed = count, .timed_ns = total * SECOND,
                            .first_timed = true, .exact = true, .first_ns = first_s * SECOND,
                            .rest_p50_ns = usual_s * SECOND, .n_slowest = 3};
    row->each = (tare__durations){usual_s * SECOND, total / (double)count * SECOND,
                                  fmax(first_s, slow_s) * SECOND, usual_s * SECOND, usual_s * SECOND,
                                  slow_s * SECOND};
    double slowest[3] = {fmax(first_s, slow_s), fmin(first_s, slow_s), usual_s};
    for (size_t i = 0; i < 3; i++)
        row->slowest[i] = (tare__slow_step){.duration_ns = slowest[i] * SECOND, .start_at_ns = (double)i * SECOND};
    return row;
}

/* ---- looking ---- */
static inline void evaluate_with(world *w, const tare__rules *rules)
{
    assert_int_equal(tare__analyze_findings(&w->of, NULL, rules), 0);
    for (size_t i = 0; i < w->of.n_findings; i++) {
        const tare__finding *finding = &w->of.findings[i];
        assert_true(finding->severity >= TARE__INFO && finding->severity <= TARE__CRITICAL);
        assert_true(*finding->id && *finding->title && *finding->evidence && *finding->gain_how);
        assert_true(isnan(finding->gain) || (finding->gain >= 0 && finding->gain <= 1));
        assert_true(isnan(finding->from_ns) || finding->to_ns >= finding->from_ns);
        assert_true(finding->source || !strstr(finding->evidence, "n/a"));
        assert_true(finding->source || !strstr(finding->title, "n/a"));
        assert_true(finding->title[strlen(finding->title) - 1] != '.');
    }
}

static inline void evaluate(world *w)
{
    evaluate_with(w, NULL);
}

static inline const tare__finding *found(const world *w, const char *id)
{
    for (size_t i = 0; i < w->of.n_findings; i++)
        if (strcmp(w->of.findings[i].id, id) == 0)
            return &w->of.findings[i];
    return NULL;
}

static inline const tare__finding *must_find(const world *w, const char *id)
{
    const tare__finding *finding = found(w, id);
    if (!finding)
        fail_msg("no finding %s", id);
    return finding;
}

static inline void must_not_find(const world *w, const char *id)
{
    const tare__finding *finding = found(w, id);
    if (finding)
        fail_msg("%s found: %s (%s)", id, finding->title, finding->evidence);
}

static inline void must_be_silent(world *w)
{
    evaluate(w);
    for (size_t i = 0; i < w->of.n_findings; i++)
        fail_msg("%s found: %s (%s)", w->of.findings[i].id, w->of.findings[i].title, w->of.findings[i].evidence);
}

static inline double figure_of(const tare__finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->n_figures; i++)
        if (strcmp(finding->figures[i].name, name) == 0)
            return finding->figures[i].value;
    return NAN;
}

#define ABOUT(value, expected) expect_about(value, expected, #value, __LINE__)
static inline void expect_about(double value, double expected, const char *what, int line)
{
    if (!(fabs(value - expected) <= 0.02 * fabs(expected) + 1e-9))
        fail_msg("line %d: %s is %.9g, not about %.9g", line, what, value, expected);
}

/* ---- shapes and figures that tests of several rules need ---- */
static inline double leak(double t)
{
    return 200 * MB + t * 50 * MB;
}

static inline double half(double t)
{
    return 0.5 + t * 0;
}

static inline double eight(double t)
{
    return 8 + t * 0;
}

static inline double gpu_full(double t)
{
    return 0.97 + t * 0;
}

static inline double gigabytes_8(double t)
{
    return 8 * GB + t * 0;
}

static inline void use_gpu(world *w)
{
    add_row(w, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU_PROCESS, 42, "", gigabytes_8);
    w->rows[w->of.n_metrics - 1].owner = 0;
}

#endif
