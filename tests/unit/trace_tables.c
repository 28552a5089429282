/* Tests of src/trace/tables.c and clock.c: what blocks say is told, later ones replace, ticks become time.
 * One thread.
 * Must not know events. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/trace.h"
#include "trace_builder.h"

static tare__trace *open_scanned(builder *b)
{
    tare__trace *trace;
    assert_int_equal(tare__trace_open(build_file(b), &trace, NULL), 0);
    assert_int_equal(tare__trace_prescan(trace, NULL), 0);
    return trace;
}

static void the_run_is_told(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_run(b);
    tare__trace *trace = open_scanned(b);
    const tare__trace_run *run = tare__trace_run_of(trace);
    assert_true(run->present);
    assert_string_equal(run->host, "host");
    assert_memory_equal(run->arguments, "train\0--size\0two words", run->arguments_bytes);
    assert_int_equal(run->start_ticks, BUILD_START);
    assert_int_equal(run->cpus, 2);
    assert_null(run->folder);
    assert_null(run->session_id);
    assert_false(tare__trace_end_of(trace)->present);
    tare__trace_close(trace);
    builder_free(b);
}

static void what_came_with_1_1_is_told(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_string(b, TARE__FIELD_KERNEL, "Linux 6.1");
    build_string(b, TARE__FIELD_SYSTEM, "Debian 12");
    build_string(b, TARE__FIELD_REVISION, "4f2a9c1 on main");
    build_string(b, TARE__FIELD_GPUS, "n/a: no NVIDIA driver");
    build_number(b, TARE__FIELD_MEMORY, UINT64_C(64) << 30);
    build_number(b, TARE__FIELD_INTERVAL, 100000000);
    build_number(b, TARE__FIELD_ATTACHED, 4711);
    build_number(b, TARE__FIELD_CARBON, 0);
    build_fields(b, TARE__BLOCK_RUN, 0);
    build_number(b, TARE__FIELD_SAMPLER_CPU, 5);
    build_number(b, TARE__FIELD_STRETCHED, 250000000);
    build_number(b, TARE__FIELD_CHILD_USER, 7);
    build_number(b, TARE__FIELD_CHILD_SYSTEM, 8);
    build_number(b, TARE__FIELD_CHILD_PEAK, 9);
    build_number(b, TARE__FIELD_OOM_KILLED, 1);
    build_fields(b, TARE__BLOCK_END, 0);
    tare__trace *trace = open_scanned(b);
    const tare__trace_run *run = tare__trace_run_of(trace);
    assert_string_equal(run->kernel, "Linux 6.1");
    assert_string_equal(run->system, "Debian 12");
    assert_string_equal(run->revision, "4f2a9c1 on main");
    assert_string_equal(run->gpus, "n/a: no NVIDIA driver");
    assert_true(run->memory_bytes == UINT64_C(64) << 30 && run->interval_ns == 100000000 && run->attached == 4711);
    assert_true(run->has_carbon && run->carbon == 0); /* a clean grid is not an unknown one */
    const tare__trace_end *end = tare__trace_end_of(trace);
    assert_true(end->has_sampler_cpu && end->sampler_cpu_ns == 5 && end->stretched_ns == 250000000);
    assert_true(end->has_child && end->child_user_ns == 7 && end->child_system_ns == 8 && end->oom_killed);
    assert_int_equal(end->child_peak_bytes, 9);
    tare__trace_close(trace);
    builder_free(b);
}

static void series_are_told(void **state)
{
    (void)state;
    builder *b = builder_new();
    size_t n;
    build_series(b, 1, TARE__M_LOAD, TARE__SUBJECT_SYSTEM, 0, "");
    build_series(b, 7, TARE__M_RSS, TARE__SUBJECT_PROCESS, 4711, "pyth");
    build_series_absent(b, 7, TARE__M_RSS, TARE__SUBJECT_PROCESS, 4711, 99, "python3", "it ended");
    build_series(b, TARE__TRACE_IDS_MAX + 1, TARE__M_RSS, TARE__SUBJECT_PROCESS, 1, "far"); /* refused */
    tare__trace *trace = open_scanned(b);
    const tare__trace_series *rows = tare__trace_series_rows(trace, &n);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].metric, "load");
    assert_string_equal(rows[0].label, "");
    assert_null(rows[0].absent);
    assert_true(rows[0].kind == TARE__METRIC_GAUGE && rows[0].unit == TARE__IN_MILLI);
    assert_ptr_equal(tare__trace_series_at(trace, 7), &rows[1]);
    assert_string_equal(rows[1].label, "python3");
    assert_string_equal(rows[1].absent, "it ended");
    assert_true(rows[1].key == 4711 && rows[1].owner == 99 && rows[1].subject == TARE__SUBJECT_PROCESS);
    assert_null(tare__trace_series_at(trace, 2));
    assert_null(tare__trace_series_at(trace, TARE__TRACE_IDS_MAX + 1));
    assert_int_equal(tare__trace_damage_of(trace)->blocks, 0);
    tare__trace_close(trace);
    builder_free(b);
}

static void a_later_block_replaces_an_earlier_one(void **state)
{
    (void)state;
    builder *b = builder_new();
    size_t n;
    build_process_fields(b, 3, 100);
    build_string(b, TARE__FIELD_NOT_JOINED, "another user's");
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_process(b, 9, 200);
    build_stream(b, 5, 3, 100, "worker");
    build_process_fields(b, 3, 101);
    build_number(b, TARE__FIELD_COST_PAIR, 5120);
    build_number(b, TARE__FIELD_COST_INNER, 2560);
    build_number(b, 9999, 1); /* of a version to come */
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_stream(b, 5, 3, 100, "loader");
    build_name(b, 4, TARE_KIND_SPAN, "old");
    build_name(b, 4, TARE_KIND_STEP, "new");
    tare__trace *trace = open_scanned(b);

    const tare__trace_process *processes = tare__trace_processes(trace, &n);
    assert_int_equal(n, 2);
    assert_int_equal(processes[0].number, 3);
    assert_int_equal(processes[0].pid, 101);
    assert_null(processes[0].not_joined);
    assert_true(processes[0].has_cost);
    assert_int_equal(processes[0].cost.pair, 5120);
    assert_int_equal(processes[1].number, 9);
    assert_false(processes[1].has_cost);
    assert_ptr_equal(tare__trace_process_at(trace, 9), &processes[1]);
    assert_null(tare__trace_process_at(trace, 1));
    assert_null(tare__trace_process_at(trace, UINT32_MAX));

    assert_int_equal(tare__trace_stream_count(trace), 1);
    assert_string_equal(tare__trace_stream_at(trace, 5)->name, "loader");
    assert_null(tare__trace_stream_row(trace, 1));
    const tare__trace_name *name = tare__trace_name_at(trace, 4);
    assert_string_equal(name->text, "new");
    assert_int_equal(name->kind, TARE_KIND_STEP);
    assert_string_equal(name->file, "train.c");
    assert_int_equal(name->line, 14);
    tare__trace_close(trace);
    builder_free(b);
}

/* Numbers out of a damaged file must not take memory: absurd ones are refused. */
static void absurd_numbers_are_refused(void **state)
{
    (void)state;
    builder *b = builder_new();
    size_t n;
    build_process(b, 0, 1);
    build_process(b, UINT32_MAX, 1);
    build_name(b, TARE__TRACE_IDS_MAX + 1, TARE_KIND_SPAN, "far");
    build_name(b, TARE__TRACE_IDS_MAX, TARE_KIND_SPAN, "last");
    tare__trace *trace = open_scanned(b);
    tare__trace_processes(trace, &n);
    assert_int_equal(n, 0);
    assert_null(tare__trace_name_at(trace, TARE__TRACE_IDS_MAX + 1));
    assert_string_equal(tare__trace_name_at(trace, TARE__TRACE_IDS_MAX)->text, "last");
    tare__trace_close(trace);
    builder_free(b);
}

static void the_newest_aggregates_of_a_stream_are_found(void **state)
{
    (void)state;
    builder *b = builder_new();
    uint32_t buckets[TARE__CELL_BUCKETS] = {0};
    tare__aggregate cell = {.name = 1, .every = 1, .count = 1, .timed = 1, .min = 5, .max = 5, .total = 5};
    cell.buckets = buckets;
    tare__block_header header = {.stream = 7};
    size_t at[3];
    for (int i = 0; i < 3; i++) {
        at[i] = b->file.length;
        builder_check(tare__aggregates_seal(&cell, 1, b->squeezer, &header, &b->file));
    }
    tare__trace *trace = open_scanned(b);
    assert_int_equal(tare__trace_aggregates_at(trace, 7), at[2]);
    assert_int_equal(tare__trace_aggregates_at(trace, 8), 0);
    tare__trace_close(trace);
    b->file.data[at[2] + 70] ^= 1; /* damaged: the one before counts */
    trace = open_scanned(b);
    assert_int_equal(tare__trace_aggregates_at(trace, 7), at[1]);
    tare__trace_close(trace);
    builder_free(b);
}

/* ---- clock --------------------------------------------------------------------------------------- */
static void expect_near(double value, double expected, double tolerance)
{
    if (!(value >= expected - tolerance && value <= expected + tolerance))
        fail_msg("%.6f is not %.6f", value, expected);
}

static void ticks_become_time_piece_by_piece(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_run(b); /* starts at tick 1,000 */
    const tare__clock_sync syncs[] = {{1000, 5000, 0}, {3000, 6000, 0}, {5000, 10000, 0}};
    build_syncs(b, syncs, 3);
    tare__trace *trace = open_scanned(b);
    assert_true(tare__trace_clock_known(trace));
    expect_near(tare__trace_tick_ns(trace), 1.25, 1e-12);
    expect_near(tare__trace_ns(trace, 1000), 0, 1e-9);
    expect_near(tare__trace_ns(trace, 2000), 500, 1e-9);
    expect_near(tare__trace_ns(trace, 3000), 1000, 1e-9);
    expect_near(tare__trace_ns(trace, 4000), 3000, 1e-9);
    expect_near(tare__trace_ns(trace, 7000), 7500, 1e-9); /* after the last sync: the average */
    expect_near(tare__trace_ns(trace, 0), -1250, 1e-9);   /* before the first */
    tare__trace_close(trace);
    builder_free(b);
}

static void syncs_that_go_backwards_are_left_out(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_run(b);
    const tare__clock_sync syncs[] = {{1000, 5000, 0}, {3000, 6000, 0}, {2000, 5500, 0}, {4000, 5999, 0},
                                      {5000, 7000, 0}};
    build_syncs(b, syncs, 5);
    build_syncs(b, syncs, 5);
    tare__trace *trace = open_scanned(b);
    expect_near(tare__trace_tick_ns(trace), 0.5, 1e-12);
    expect_near(tare__trace_ns(trace, 4000), 1500, 1e-9);
    tare__trace_close(trace);
    builder_free(b);
}

/* A clock whose rate doubles half-way, in far more syncs than are kept. */
static void many_syncs_are_thinned_not_lost(void **state)
{
    (void)state;
    enum { SYNCS = 40000 };
    builder *b = builder_new();
    build_run(b);
    tare__clock_sync sync = {1000, 1, 0};
    for (int i = 0; i < SYNCS; i++) {
        build_syncs(b, &sync, 1);
        sync.ticks += 1000;
        sync.monotonic_ns += i < SYNCS / 2 ? 1000 : 2000;
    }
    tare__trace *trace = open_scanned(b);
    expect_near(tare__trace_ns(trace, 1000 + 10000000), 10000000, 1);
    expect_near(tare__trace_ns(trace, 1000 + 20000000), 20000000, 20000);
    expect_near(tare__trace_ns(trace, 1000 + 30000000), 40000000, 20000);
    expect_near(tare__trace_ns(trace, 1000 + 39999000), 59998000, 20000);
    tare__trace_close(trace);
    builder_free(b);
}

static void a_clock_of_nanoseconds_needs_no_syncs(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_number(b, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_MONOTONIC);
    build_number(b, TARE__FIELD_START_TICKS, 500);
    build_fields(b, TARE__BLOCK_RUN, 0);
    tare__trace *trace = open_scanned(b);
    assert_true(tare__trace_clock_known(trace));
    expect_near(tare__trace_ns(trace, 1500), 1000, 1e-9);
    tare__trace_close(trace);
    builder_free(b);
}

static void without_syncs_the_wall_clock_does(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_run(b);
    tare__trace *trace = open_scanned(b);
    assert_false(tare__trace_clock_known(trace));
    expect_near(tare__trace_ns(trace, 3000), 2000, 1e-9); /* a tick stands for a nanosecond, and is told so */
    tare__trace_close(trace);
    build_number(b, TARE__FIELD_END_TICKS, 1000 + 4000);
    build_number(b, TARE__FIELD_END_REALTIME, UINT64_C(1700000000000000000) + 1000);
    build_fields(b, TARE__BLOCK_END, 0);
    trace = open_scanned(b);
    assert_true(tare__trace_clock_known(trace));
    expect_near(tare__trace_tick_ns(trace), 0.25, 1e-12);
    tare__trace_close(trace);
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_run_is_told),
        cmocka_unit_test(what_came_with_1_1_is_told),
        cmocka_unit_test(series_are_told),
        cmocka_unit_test(a_later_block_replaces_an_earlier_one),
        cmocka_unit_test(absurd_numbers_are_refused),
        cmocka_unit_test(the_newest_aggregates_of_a_stream_are_found),
        cmocka_unit_test(ticks_become_time_piece_by_piece),
        cmocka_unit_test(syncs_that_go_backwards_are_left_out),
        cmocka_unit_test(many_syncs_are_thinned_not_lost),
        cmocka_unit_test(a_clock_of_nanoseconds_needs_no_syncs),
        cmocka_unit_test(without_syncs_the_wall_clock_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
