/* Tests of src/analyze/tables/metrics.c and points.c: gauges, totals, peaks, gaps, points, units, what is absent.
 * One thread.
 * Must not know how rows are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

#define MS UINT64_C(2000000) /* ticks: a tick is half a nanosecond */
#define AT(ms) (BUILD_START + (uint64_t)(ms)*MS)
#define ALL UINT64_MAX

static const tare__metric_row *row_of(const tare__analysis *a, tare__metric metric, tare__subject_kind subject)
{
    const tare__metric_row *row = tare__metric_row_of(a, metric, subject, ALL);
    assert_non_null(row);
    return row;
}

static void a_gauge_holds_until_the_next_sample(void **state)
{
    (void)state;
    builder *b = build_single();
    build_series(b, 1, TARE__M_RSS, TARE__SUBJECT_PROCESS, 77, "python3");
    build_tick(b, AT(100));
    build_sample(b, 1, 1000);
    build_tick(b, AT(200));
    build_sample(b, 1, 5000);
    build_tick(b, AT(500));
    build_sample(b, 1, 3000);
    build_samples_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_metrics, 1);
    const tare__metric_row *row = row_of(a, TARE__M_RSS, TARE__SUBJECT_PROCESS);
    assert_string_equal(row->metric, "memory.rss");
    assert_string_equal(row->label, "python3");
    assert_null(row->absent);
    assert_true(row->key == 77 && row->kind == TARE__METRIC_GAUGE && row->unit == TARE__SHOW_BYTES && row->n == 3);
    NEAR(row->min, 1000);
    NEAR(row->max, 5000);
    NEAR(row->max_at_ns, 200e6);
    NEAR(row->mean, (1000 * 100 + 5000 * 300) / 400.0);
    NEAR(row->first, 1000);
    NEAR(row->last, 3000);
    NEAR(row->from_ns, 100e6);
    NEAR(row->to_ns, 500e6);
    assert_true(isnan(row->total));
    assert_int_equal(row->n_points, 3);
    NEAR(row->points[1].at_ns, 200e6);
    NEAR(row->points[1].lasts_ns, 300e6);
    NEAR(row->points[1].mean, 5000);
    NEAR(row->points[2].lasts_ns, 0);
    NEAR(row->points[2].max, 3000);
    done(b, a);
}

/* A counter read a little later than the clock: no more than all of the time, and the rest goes to what follows. */
static void no_share_is_above_one(void **state)
{
    (void)state;
    builder *b = build_single();
    build_series(b, 1, TARE__M_PRESSURE_CPU, TARE__SUBJECT_SYSTEM, 0, "");
    const int64_t values[] = {0, 250000000, 410000000, 500000000};
    for (int i = 0; i < 4; i++) {
        build_tick(b, AT(200 * (i + 1)));
        build_sample(b, 1, values[i]);
    }
    build_samples_seal(b);
    tare__analysis *a = analyze(b);
    const tare__metric_row *row = row_of(a, TARE__M_PRESSURE_CPU, TARE__SUBJECT_SYSTEM);
    NEAR(row->max, 1);
    NEAR(row->min, 0.5);
    NEAR(row->mean, 500 / 600.0);
    NEAR(row->total, 0.5);
    done(b, a);
}

static void one_sample_is_a_value_and_no_rate(void **state)
{
    (void)state;
    builder *b = build_single();
    build_series(b, 1, TARE__M_RSS, TARE__SUBJECT_TREE, 0, "");
    build_series(b, 2, TARE__M_CPU_USER, TARE__SUBJECT_TREE, 0, "");
    build_tick(b, AT(100));
    build_sample(b, 1, 1000);
    build_sample(b, 2, 1000);
    build_samples_seal(b);
    tare__analysis *a = analyze(b);
    const tare__metric_row *rss = row_of(a, TARE__M_RSS, TARE__SUBJECT_TREE);
    NEAR(rss->min, 1000);
    NEAR(rss->mean, 1000);
    NEAR(rss->max, 1000);
    assert_int_equal(rss->n_points, 1);
    const tare__metric_row *cpu = row_of(a, TARE__M_CPU_USER, TARE__SUBJECT_TREE);
    assert_true(cpu->n == 1 && isnan(cpu->min) && isnan(cpu->mean) && isnan(cpu->max) && isnan(cpu->max_at_ns));
    assert_true(isnan(cpu->total) && isnan(cpu->first) && cpu->n_points == 0);
    NEAR(cpu->from_ns, 100e6);
    done(b, a);
}

static void a_total_becomes_a_rate(void **state)
{
    (void)state;
    static const int64_t cpu[] = {40000000, 140000000, 140000000, 340000000};
    builder *b = build_single();
    build_series(b, 4, TARE__M_CPU_USER, TARE__SUBJECT_PROCESS, 77, "python3");
    build_samples(b, 4, AT(0), 100 * MS, cpu, 2); /* over two blocks */
    build_samples(b, 4, AT(200), 100 * MS, cpu + 2, 2);
    tare__analysis *a = analyze(b);
    const tare__metric_row *row = row_of(a, TARE__M_CPU_USER, TARE__SUBJECT_PROCESS);
    assert_true(row->unit == TARE__SHOW_CORES && row->total_unit == TARE__SHOW_SECONDS && row->n == 4);
    NEAR(row->min, 0);
    NEAR(row->max, 2);
    NEAR(row->max_at_ns, 250e6);
    NEAR(row->mean, 1);
    NEAR(row->total, 0.3);
    assert_int_equal(row->n_points, 3);
    NEAR(row->points[0].at_ns, 0);
    NEAR(row->points[0].lasts_ns, 100e6);
    NEAR(row->points[0].mean, 1);
    NEAR(row->points[1].mean, 0);
    assert_false(has_note(a, "total"));
    done(b, a);
}

static void a_total_that_shrinks_starts_anew(void **state)
{
    (void)state;
    static const int64_t bytes[] = {500, 700, 100, 400, INT64_MAX, INT64_MIN};
    builder *b = build_single();
    build_series(b, 4, TARE__M_NET_SENT, TARE__SUBJECT_NETWORK, 0, "eth0");
    build_samples(b, 4, AT(0), 1000 * MS, bytes, 4);
    tare__analysis *a = analyze(b);
    const tare__metric_row *row = row_of(a, TARE__M_NET_SENT, TARE__SUBJECT_NETWORK);
    NEAR(row->total, 500);
    NEAR(row->min, 200);
    NEAR(row->max, 300);
    NEAR(row->mean, 250);
    assert_int_equal(row->n_points, 2);
    assert_true(has_note(a, "sampled totals decreased 1 time"));
    tare__analysis_free(a);
    build_samples(b, 4, AT(4000), 1000 * MS, bytes + 4, 2);
    a = analyze(b);
    assert_true(row_of(a, TARE__M_NET_SENT, TARE__SUBJECT_NETWORK)->min >= 0);
    done(b, a);
}

static void a_gap_is_no_value(void **state)
{
    (void)state;
    static const int64_t gauge[] = {10, 20, 30, 40}, total[] = {0, 100, 1100, 1200};
    static const uint64_t at[] = {0, 100, 5100, 5200};
    builder *b = build_single();
    build_series(b, 1, TARE__M_THREADS, TARE__SUBJECT_TREE, 0, "");
    build_series(b, 2, TARE__M_IO_READ, TARE__SUBJECT_TREE, 0, "");
    for (int i = 0; i < 4; i++) {
        build_tick(b, AT(at[i]));
        build_sample(b, 1, gauge[i]);
        build_sample(b, 2, total[i]);
    }
    build_samples_seal(b);
    tare__analysis *a = analyze(b);
    const tare__metric_row *row = row_of(a, TARE__M_THREADS, TARE__SUBJECT_TREE);
    NEAR(row->mean, 20); /* 10, 20 and 30 for 100 ms each: 20 is not stretched over the gap */
    assert_int_equal(row->n_points, 4);
    NEAR(row->points[1].lasts_ns, 100e6);
    NEAR(row->points[2].at_ns, 5100e6);
    row = row_of(a, TARE__M_IO_READ, TARE__SUBJECT_TREE);
    NEAR(row->total, 1200); /* what was added in the gap was added */
    NEAR(row->max, 1000);
    assert_int_equal(row->n_points, 2);
    NEAR(row->points[1].at_ns, 5100e6);
    done(b, a);
}

/* Every tenth time, or less often to keep to the budget, is no gap. */
/* Such as PSS, which is read every five seconds: of two samples neither tells how long it held; with a third one the
 * interval is known. */
static void samples_far_apart_have_a_mean(void **state)
{
    (void)state;
    static const int64_t bytes[] = {100, 300, 800};
    builder *b = build_single();
    build_series(b, 1, TARE__M_PSS, TARE__SUBJECT_PROCESS, 77, "python3");
    build_samples(b, 1, AT(1000), 5000 * MS, bytes, 2);
    tare__analysis *a = analyze(b);
    NEAR(row_of(a, TARE__M_PSS, TARE__SUBJECT_PROCESS)->mean, 200);
    tare__analysis_free(a);
    build_samples(b, 1, AT(11000), 5000 * MS, bytes + 2, 1);
    a = analyze(b);
    NEAR(row_of(a, TARE__M_PSS, TARE__SUBJECT_PROCESS)->mean, 300);
    done(b, a);
}

static void long_intervals_are_no_gaps(void **state)
{
    (void)state;
    static const int64_t pss[] = {10, 20, 30, 40, 50, 60};
    builder *b = build_single();
    build_series(b, 1, TARE__M_PSS, TARE__SUBJECT_PROCESS, 77, "");
    build_samples(b, 1, AT(0), 1000 * MS, pss, 3);
    build_samples(b, 1, AT(5000), 2500 * MS, pss + 3, 3);
    tare__analysis *a = analyze(b);
    const tare__metric_row *row = row_of(a, TARE__M_PSS, TARE__SUBJECT_PROCESS);
    NEAR(row->mean, (10 + 20 + 30 * 3 + 40 * 2.5 + 50 * 2.5) / 10);
    done(b, a);
}

static void a_peak_is_seen_when_it_first_shows(void **state)
{
    (void)state;
    static const int64_t peak[] = {100, 900, 900, 900};
    builder *b = build_single();
    build_series(b, 1, TARE__M_RSS_PEAK, TARE__SUBJECT_PROCESS, 77, "python3");
    build_samples(b, 1, AT(0), 100 * MS, peak, 4);
    tare__analysis *a = analyze(b);
    const tare__metric_row *row = row_of(a, TARE__M_RSS_PEAK, TARE__SUBJECT_PROCESS);
    assert_int_equal(row->kind, TARE__METRIC_PEAK);
    NEAR(row->max, 900);
    NEAR(row->max_at_ns, 100e6);
    NEAR(row->last, 900);
    done(b, a);
}

static void what_is_absent_says_why(void **state)
{
    (void)state;
    builder *b = build_single();
    build_series_absent(b, 1, TARE__M_POWER, TARE__SUBJECT_GPU, 0, 0, "H200", "no NVIDIA driver");
    build_series(b, 2, TARE__M_LOAD, TARE__SUBJECT_SYSTEM, 0, "");
    build_series(b, 3, TARE__M_RSS, TARE__SUBJECT_PROCESS, 5, "");
    build_samples(b, 3, AT(0), MS, (const int64_t[]){5, 6}, 2);
    build_series_absent(b, 3, TARE__M_RSS, TARE__SUBJECT_PROCESS, 5, 0, "", "it ended");
    build_samples(b, 9, AT(0), MS, (const int64_t[]){5, 6}, 2); /* nobody tells what that is */
    tare__analysis *a = analyze(b);
    const tare__metric_row *power = row_of(a, TARE__M_POWER, TARE__SUBJECT_GPU);
    assert_string_equal(power->absent, "no NVIDIA driver");
    assert_true(power->n == 0 && isnan(power->min) && isnan(power->mean) && isnan(power->last) && !power->points);
    assert_string_equal(row_of(a, TARE__M_LOAD, TARE__SUBJECT_SYSTEM)->absent, "not sampled");
    const tare__metric_row *rss = row_of(a, TARE__M_RSS, TARE__SUBJECT_PROCESS);
    assert_string_equal(rss->absent, "it ended");
    NEAR(rss->last, 6);
    assert_null(tare__metric_row_of(a, TARE__M_RSS, TARE__SUBJECT_TREE, ALL));
    assert_null(tare__metric_row_of(a, TARE__M_RSS, TARE__SUBJECT_PROCESS, 6));
    assert_true(has_note(a, "2 samples were dropped"));
    done(b, a);
}

static void units_are_those_of_people(void **state)
{
    (void)state;
    static const struct {
        tare__metric metric;
        int64_t values[2]; /* a second apart */
        tare__metric_unit unit;
        double max;
    } cases[] = {
        {TARE__M_LOAD, {1500, 1500}, TARE__SHOW_COUNT, 1.5},
        {TARE__M_CPU_LIMIT, {2500, 2500}, TARE__SHOW_CORES, 2.5},
        {TARE__M_GPU_BUSY, {870, 870}, TARE__SHOW_SHARE, 0.87},
        {TARE__M_TEMPERATURE, {65500, 65500}, TARE__SHOW_CELSIUS, 65.5},
        {TARE__M_POWER, {250000, 250000}, TARE__SHOW_WATTS, 250},
        {TARE__M_ENERGY, {0, 15000000}, TARE__SHOW_WATTS, 15},
        {TARE__M_CPU_FREQUENCY, {3000000000, 3000000000}, TARE__SHOW_HERTZ, 3e9},
        {TARE__M_DISK_READ, {0, 4096}, TARE__SHOW_BYTES_PER_S, 4096},
        {TARE__M_DISK_BUSY, {0, 250000000}, TARE__SHOW_SHARE, 0.25},
        {TARE__M_DISK_QUEUE, {0, 2500000000}, TARE__SHOW_COUNT, 2.5},
        {TARE__M_PRESSURE_IO, {0, 100000000}, TARE__SHOW_SHARE, 0.1},
        {TARE__M_CPU_THROTTLED, {0, 1500000000}, TARE__SHOW_CORES, 1.5},
        {TARE__M_FAULTS_MAJOR, {5, 12}, TARE__SHOW_PER_S, 7},
        {TARE__M_GPU_THROTTLE, {4, 4}, TARE__SHOW_BITS, 4},
        {TARE__M_SAMPLE_INTERVAL, {100000000, 100000000}, TARE__SHOW_SECONDS, 0.1},
    };
    builder *b = build_single();
    for (uint32_t i = 0; i < TARE__COUNT_OF(cases); i++)
        build_series(b, i + 1, cases[i].metric, TARE__SUBJECT_SYSTEM, 0, "");
    for (uint32_t t = 0; t < 2; t++) {
        build_tick(b, AT(t * 1000));
        for (uint32_t i = 0; i < TARE__COUNT_OF(cases); i++)
            build_sample(b, i + 1, cases[i].values[t]);
    }
    build_samples_seal(b);
    tare__analysis *a = analyze(b);
    for (uint32_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        const tare__metric_row *row = row_of(a, cases[i].metric, TARE__SUBJECT_SYSTEM);
        assert_int_equal(row->unit, cases[i].unit);
        NEAR(row->max, cases[i].max);
        NEAR(row->points[0].max, cases[i].max);
    }
    done(b, a);
}

/* CPU, peak memory and disk of a process are columns of its row; of one that was not sampled, they are unknown. */
static void processes_have_their_usage(void **state)
{
    (void)state;
    static const int64_t user[] = {40000000, 90000000}, kernel[] = {0, 20000000}, rss[] = {5000, 3000};
    builder *b = build_single();
    build_process(b, 2, 90);
    build_series(b, 1, TARE__M_CPU_USER, TARE__SUBJECT_PROCESS, 77, "python3");
    build_series(b, 2, TARE__M_CPU_SYSTEM, TARE__SUBJECT_PROCESS, 77, "python3");
    build_series(b, 3, TARE__M_RSS, TARE__SUBJECT_PROCESS, 77, "python3");
    build_series(b, 4, TARE__M_RSS, TARE__SUBJECT_PROCESS, 7, "another");
    build_samples(b, 1, AT(0), 100 * MS, user, 2);
    build_samples(b, 2, AT(0), 100 * MS, kernel, 2);
    build_samples(b, 3, AT(0), 100 * MS, rss, 2);
    build_samples(b, 4, AT(0), 100 * MS, rss, 2);
    tare__analysis *a = analyze(b);
    const tare__used *used = &a->processes[0].used;
    assert_true(a->n_processes == 2 && a->processes[0].pid == 77 && a->processes[1].pid == 90);
    NEAR(used->cpu_seconds, 0.07);
    NEAR(used->memory_peak_bytes, 5000);
    assert_true(isnan(used->disk_read_bytes) && isnan(used->disk_write_bytes));
    assert_true(isnan(a->processes[1].used.cpu_seconds) && isnan(a->processes[1].used.memory_peak_bytes));
    done(b, a);
}

static void rows_are_sorted_by_subject(void **state)
{
    (void)state;
    builder *b = build_single();
    build_series_absent(b, 1, TARE__M_CPU_USER, TARE__SUBJECT_THREAD, 7, 500, "t", NULL);
    build_series(b, 2, TARE__M_TEMPERATURE, TARE__SUBJECT_SENSOR, 0, "zone 1");
    build_series(b, 3, TARE__M_POWER, TARE__SUBJECT_SENSOR, 0, "coretemp");
    build_series(b, 4, TARE__M_RSS, TARE__SUBJECT_PROCESS, 9, "nine");
    build_series(b, 5, TARE__M_CPU_USER, TARE__SUBJECT_PROCESS, 9, "nine");
    build_series(b, 6, TARE__M_RSS, TARE__SUBJECT_PROCESS, 8, "eight");
    build_series(b, 7, TARE__M_TEMPERATURE, TARE__SUBJECT_SENSOR, 0, "coretemp");
    build_series(b, 8, TARE__M_LOAD, TARE__SUBJECT_SYSTEM, 0, "");
    tare__analysis *a = analyze(b);
    static const char *const order[][2] = {
        {"load", ""},          {"memory.rss", "eight"}, {"cpu.user", "nine"},      {"memory.rss", "nine"},
        {"cpu.user", "t"},     {"power", "coretemp"},   {"temperature", "coretemp"}, {"temperature", "zone 1"},
    };
    assert_int_equal(a->n_metrics, TARE__COUNT_OF(order));
    for (size_t i = 0; i < a->n_metrics; i++) {
        assert_string_equal(a->metrics[i].metric, order[i][0]);
        assert_string_equal(a->metrics[i].label, order[i][1]);
    }
    assert_string_equal(tare__metric_row_of(a, TARE__M_RSS, TARE__SUBJECT_PROCESS, 9)->label, "nine");
    done(b, a);
}

static void points_are_merged_not_lost(void **state)
{
    (void)state;
    enum { N = 100000 };
    builder *b = build_single();
    build_series(b, 1, TARE__M_RSS, TARE__SUBJECT_TREE, 0, "");
    for (int i = 0; i <= N; i++) {
        build_tick(b, AT(i * 100));
        build_sample(b, 1, i == 77777 ? 5000000 : i == 33333 ? -5 : i);
    }
    build_samples_seal(b);
    tare__analysis *a = analyze(b);
    const tare__metric_row *row = row_of(a, TARE__M_RSS, TARE__SUBJECT_TREE);
    assert_true(row->n == N + 1 && row->n_points <= TARE__POINTS_MAX && row->n_points >= TARE__POINTS_MAX / 2);
    double least = INFINITY, most = 0, area = 0, end = 0;
    for (size_t i = 0; i < row->n_points; i++) {
        const tare__metric_point *point = &row->points[i];
        assert_true(point->min <= point->mean && point->mean <= point->max);
        assert_true(fabs(point->at_ns - end) < 1); /* each begins where the one before ends */
        end = point->at_ns + point->lasts_ns;
        least = point->min < least ? point->min : least;
        most = point->max > most ? point->max : most;
        area += point->mean * point->lasts_ns;
        if (point->max == 5000000)
            assert_true(point->at_ns <= 7777.7e9 && end > 7777.7e9);
    }
    NEAR(least, -5);
    NEAR(most, 5000000);
    assert_true(fabs(area / (N * 100e6) - row->mean) < 1e-6 * row->mean);
    done(b, a);
}

static void many_gaps_stay_bounded(void **state)
{
    (void)state;
    builder *b = build_single();
    build_series(b, 1, TARE__M_RSS, TARE__SUBJECT_TREE, 0, "");
    for (uint64_t i = 0; i < 5000; i++) {
        build_tick(b, AT(i * 100000));
        build_sample(b, 1, (int64_t)i);
        build_tick(b, AT(i * 100000 + 10));
        build_sample(b, 1, (int64_t)i);
    }
    build_samples_seal(b);
    tare__analysis *a = analyze(b);
    const tare__metric_row *row = row_of(a, TARE__M_RSS, TARE__SUBJECT_TREE);
    assert_true(row->n_points <= TARE__POINTS_MAX && row->n_points > 100);
    NEAR(row->max, 4999);
    done(b, a);
}

/* There may be more threads than anybody looks at: the machine and the tree keep their points. */
static void threads_get_points_last(void **state)
{
    (void)state;
    enum { THREADS = 3000 };
    builder *b = build_single();
    for (uint32_t i = 1; i <= THREADS; i++)
        build_series(b, i, TARE__M_CPU_USER, TARE__SUBJECT_THREAD, i, "");
    build_series(b, THREADS + 1, TARE__M_RSS, TARE__SUBJECT_PROCESS, 77, "");
    for (uint32_t t = 0; t < 20; t++) {
        build_tick(b, AT(t * 100));
        for (uint32_t i = 1; i <= THREADS + 1; i++)
            build_sample(b, i, t * i);
    }
    build_samples_seal(b);
    tare__analysis *a = analyze(b);
    size_t with = 0;
    for (size_t i = 0; i < a->n_metrics; i++) {
        assert_int_equal(a->metrics[i].n, 20);
        with += a->metrics[i].points != NULL;
    }
    assert_int_equal(with, 2000);
    assert_int_equal(row_of(a, TARE__M_RSS, TARE__SUBJECT_PROCESS)->n_points, 20);
    done(b, a);
}

static void samples_out_of_order_are_told(void **state)
{
    (void)state;
    builder *b = build_single();
    build_series(b, 1, TARE__M_RSS, TARE__SUBJECT_TREE, 0, "");
    build_samples(b, 1, AT(1000), 100 * MS, (const int64_t[]){5, 6, 7}, 3);
    build_samples(b, 1, AT(900), 100 * MS, (const int64_t[]){50, 60, 70, 80, 90}, 5);
    tare__analysis *a = analyze(b);
    const tare__metric_row *row = row_of(a, TARE__M_RSS, TARE__SUBJECT_TREE);
    assert_int_equal(row->n, 4);
    NEAR(row->max, 90);
    assert_true(has_note(a, "4 samples were dropped: not in order of time"));
    done(b, a);
}

static void metrics_of_another_version_are_kept(void **state)
{
    (void)state;
    builder *b = build_single();
    tare__series series = {.id = 1, .unit = 99, .kind = 77, .subject = 55, .key = 1, .metric = "quantum.foam",
                           .metric_bytes = 12};
    builder_check(tare__series_seal(&series, 1, b->squeezer, &b->file));
    build_samples(b, 1, AT(0), 100 * MS, (const int64_t[]){5, 6, 7}, 3);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_metrics, 1);
    assert_string_equal(a->metrics[0].metric, "quantum.foam");
    assert_int_equal(a->metrics[0].known, TARE__METRIC_COUNT);
    NEAR(a->metrics[0].last, 7);
    done(b, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gauge_holds_until_the_next_sample),
        cmocka_unit_test(no_share_is_above_one),
        cmocka_unit_test(one_sample_is_a_value_and_no_rate),
        cmocka_unit_test(a_total_becomes_a_rate),
        cmocka_unit_test(a_total_that_shrinks_starts_anew),
        cmocka_unit_test(a_gap_is_no_value),
        cmocka_unit_test(samples_far_apart_have_a_mean),
        cmocka_unit_test(long_intervals_are_no_gaps),
        cmocka_unit_test(a_peak_is_seen_when_it_first_shows),
        cmocka_unit_test(what_is_absent_says_why),
        cmocka_unit_test(units_are_those_of_people),
        cmocka_unit_test(processes_have_their_usage),
        cmocka_unit_test(rows_are_sorted_by_subject),
        cmocka_unit_test(points_are_merged_not_lost),
        cmocka_unit_test(many_gaps_stay_bounded),
        cmocka_unit_test(threads_get_points_last),
        cmocka_unit_test(samples_out_of_order_are_told),
        cmocka_unit_test(metrics_of_another_version_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
