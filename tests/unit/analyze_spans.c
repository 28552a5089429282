/* Tests of src/analyze/{spans,rows,nodes,streams,processes}.c: the span tree, its figures, and who recorded it.
 * One thread.
 * Must not know how rows are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

static void nested_spans_make_a_tree(void **state)
{
    (void)state;
    builder *b = build_single();
    for (int i = 0; i < 2; i++) {
        uint64_t t = 2000 + 1000 * (uint64_t)i;
        BEGIN(OUTER, t);
        BEGIN(INNER, t + 100);
        END(t + 300); /* 200 ticks */
        BEGIN(OTHER, t + 400);
        BEGIN(INNER, t + 450);
        END(t + 500); /* 50 */
        END(t + 800); /* 400 */
        END(t + 900); /* 900 */
    }
    BEGIN(INNER, 9000);
    END(9010); /* 10 */
    build_seal(b);
    build_end(b, 20000);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_spans, 5);
    assert_int_equal(a->n_groups, 0);
    const char *order[] = {"outer", "other", "inner", "inner", "inner"};
    const uint32_t parents[] = {TARE__NO_ROW, 0, 1, 0, TARE__NO_ROW}, below[] = {3, 1, 0, 0, 0};
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(a->spans[i].name, order[i]);
        assert_int_equal(a->spans[i].parent, parents[i]);
        assert_int_equal(a->spans[i].n_rows, below[i]);
    }
    const tare__span_row *outer = span_at(a, "outer");
    assert_int_equal(outer->calls, 2);
    assert_int_equal(outer->depth, 0);
    assert_int_equal(outer->kind, TARE_KIND_SPAN);
    assert_int_equal(outer->group, TARE__NO_ROW);
    assert_string_equal(outer->file, "train.c");
    assert_int_equal(outer->line, 11);
    NEAR(outer->total_ns, 900);
    NEAR(outer->raw_self_ns, 300);
    NEAR(outer->self_ns, 300); /* no cost is known */
    NEAR(outer->share, 1800.0 / 1810);
    NEAR(outer->each.min_ns, 450);
    NEAR(outer->each.mean_ns, 450);
    NEAR(outer->each.max_ns, 450);
    NEAR(outer->each.p50_ns, 450); /* a bucket's middle, but within smallest and largest */
    NEAR(outer->each.p99_ns, 450);
    assert_true(isnan(a->own.subtracted_ns));
    const tare__span_row *deep = span_at(a, "outer/other/inner");
    assert_int_equal(deep->depth, 2);
    NEAR(deep->total_ns, 50);
    NEAR(span_at(a, "outer/other")->raw_self_ns, 350);
    NEAR(span_at(a, "inner")->total_ns, 5);
    NEAR(span_at(a, "inner")->share, 10.0 / 1810);
    done(b, a);
}

static void percentiles_are_of_the_durations(void **state)
{
    (void)state;
    builder *b = build_single();
    uint64_t t = 2000;
    for (uint64_t i = 1; i <= 1000; i++) {
        BEGIN(OUTER, t);
        END(t + i * 20); /* 10 ns to 10 µs */
        t += i * 20 + 5;
    }
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__durations *each = &a->spans[0].each;
    NEAR(each->min_ns, 10);
    NEAR(each->max_ns, 10000);
    NEAR(each->mean_ns, 5005);
    assert_true(fabs(each->p50_ns - 5000) <= 5000 / 64.0);
    assert_true(fabs(each->p95_ns - 9500) <= 9500 / 64.0);
    assert_true(fabs(each->p99_ns - 9900) <= 9900 / 64.0);
    done(b, a);
}

static void chained_spans_end_one_and_begin_the_next(void **state)
{
    (void)state;
    builder *b = build_single();
    NEXT(OUTER, 2000); /* nothing is open: a begin */
    NEXT(INNER, 2100);
    NEXT(OTHER, 2300);
    END(2600);
    build_seal(b);
    tare__analysis *a = analyze(b);
    NEAR(span_at(a, "outer")->total_ns, 50);
    NEAR(span_at(a, "inner")->total_ns, 100);
    NEAR(span_at(a, "other")->total_ns, 150);
    assert_int_equal(a->n_spans, 3);
    assert_int_equal(a->own.chained_spans, 3);
    assert_int_equal(a->own.spans, 0);
    assert_int_equal(a->threads[0].unmatched_ends, 0);
    done(b, a);
}

static void ends_that_match_nothing_are_counted(void **state)
{
    (void)state;
    builder *b = build_single();
    END(2000);
    BEGIN(OUTER, 2100);
    END_OF(OTHER, 2150); /* not open: nothing happens */
    END(2200);
    END(2300);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->threads[0].unmatched_ends, 3);
    assert_int_equal(a->n_spans, 1);
    NEAR(a->spans[0].total_ns, 50);
    done(b, a);
}

static void the_end_of_a_span_closes_what_is_open_inside(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2100);
    BEGIN(OTHER, 2200);
    END_OF(OUTER, 3000);
    BEGIN(INNER, 4000);
    END(4100);
    build_seal(b);
    tare__analysis *a = analyze(b);
    NEAR(span_at(a, "outer")->total_ns, 500);
    NEAR(span_at(a, "outer/inner")->total_ns, 450);
    NEAR(span_at(a, "outer/inner/other")->total_ns, 400);
    assert_int_equal(span_at(a, "outer")->left_open, 0);
    assert_int_equal(span_at(a, "outer/inner")->left_open, 1);
    assert_int_equal(span_at(a, "outer/inner/other")->left_open, 1);
    NEAR(span_at(a, "inner")->total_ns, 50);
    done(b, a);
}

static void lost_ends_are_told(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2100);
    BEGIN(OTHER, 2200);
    MARK(SAVED, 2400);
    LOST(2); /* other and inner ended some time before 2400 */
    END(3000);
    LOST(5); /* more than are open */
    build_seal(b);
    tare__analysis *a = analyze(b);
    NEAR(span_at(a, "outer")->total_ns, 500);
    NEAR(span_at(a, "outer/inner")->total_ns, 150);
    NEAR(span_at(a, "outer/inner/other")->total_ns, 100);
    assert_int_equal(span_at(a, "outer/inner")->end_missing, 1);
    assert_int_equal(span_at(a, "outer/inner/other")->end_missing, 1);
    assert_int_equal(span_at(a, "outer")->end_missing, 0);
    assert_int_equal(a->threads[0].dropped_ends, 7);
    done(b, a);
}

static void spans_cross_blocks(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2100);
    build_seal(b);
    NUMBER(SAMPLES, 32); /* a block without any time */
    build_seal(b);
    END(2500);
    build_seal(b);
    END(3000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    NEAR(span_at(a, "outer")->total_ns, 500);
    NEAR(span_at(a, "outer")->raw_self_ns, 300);
    NEAR(span_at(a, "outer/inner")->total_ns, 200);
    assert_int_equal(span_at(a, "outer/inner")->n_numbers, 1);
    NEAR(span_at(a, "outer/inner")->numbers[0].sum, 32);
    NEAR(a->threads[0].busy_ns, 500);
    NEAR(a->threads[0].first_at_ns, 500);
    NEAR(a->threads[0].last_at_ns, 1000);
    done(b, a);
}

static void spans_open_at_the_end_count_up_to_it(void **state)
{
    (void)state;
    builder *b = build_start();
    build_process_fields(b, 1, 77);
    build_number(b, TARE__FIELD_LEFT_TICKS, 9000);
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_stream(b, 1, 1, 77, "main");
    build_stream(b, 2, 1, 78, "worker");
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 3000);
    build_seal(b);
    b->stream = 2;
    BEGIN(OTHER, 2000);
    MARK(SAVED, 2600);
    build_seal(b);
    build_end(b, 10000);
    tare__analysis *a = analyze(b);
    NEAR(span_at(a, "outer")->total_ns, 3500); /* the main thread ends with its process */
    NEAR(span_at(a, "outer")->raw_self_ns, 500);
    assert_int_equal(span_at(a, "outer")->still_open, 1);
    assert_int_equal(span_at(a, "outer")->calls, 1);
    NEAR(span_at(a, "outer/inner")->total_ns, 3000);
    NEAR(span_at(a, "other")->total_ns, 300); /* a thread at its last event */
    assert_int_equal(span_at(a, "other")->still_open, 1);
    done(b, a);
}

/* Read while the recording is being finished. */
static void an_unfinished_run_lasts_as_long_as_its_processes(void **state)
{
    (void)state;
    builder *b = build_start();
    build_process_fields(b, 1, 77);
    build_number(b, TARE__FIELD_LEFT_TICKS, 9000);
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_stream(b, 1, 1, 77, "main");
    BEGIN(OUTER, 2000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_false(a->run.finished);
    assert_true(span_at(a, "outer")->total_ns > 0);
    assert_true(a->run.elapsed_ns >= span_at(a, "outer")->total_ns);
    for (size_t i = 0; i < a->run.n_notes; i++)
        assert_null(strstr(a->run.notes[i], "contradict"));
    done(b, a);
}

static void same_names_meet_whatever_their_ids(void **state)
{
    (void)state;
    builder *b = build_single();
    build_name(b, 40, TARE_KIND_SPAN, "outer");
    build_name(b, 41, TARE_KIND_STEP, "outer"); /* another kind: another name */
    BEGIN(OUTER, 2000);
    END(2100);
    BEGIN(40, 2200);
    END(2300);
    BEGIN(41, 2400);
    END(2500);
    BEGIN(999, 2600); /* no block told of it */
    END(2700);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_spans, 3);
    assert_int_equal(span_at(a, "outer")->calls, 2);
    NEAR(span_at(a, "outer")->total_ns, 100);
    assert_int_equal(span_at(a, "(name lost)")->calls, 1);
    done(b, a);
}

static void names_told_only_at_the_end_are_known(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(50, 2000);
    END(2100);
    build_seal(b);
    build_name(b, 50, TARE_KIND_SPAN, "late");
    tare__analysis *a = analyze(b);
    assert_string_equal(a->spans[0].name, "late");
    done(b, a);
}

static void numbers_add_up_with_a_rate(void **state)
{
    (void)state;
    builder *b = build_single();
    NUMBER(SAMPLES, 1000); /* on no span */
    for (uint64_t t = 2000; t < 6000; t += 1000) {
        BEGIN(OUTER, t);
        NUMBER(SAMPLES, 8);
        BEGIN(INNER, t + 10);
        NUMBER(SAMPLES, 0.5);
        END(t + 20);
        END(t + 500);
    }
    build_seal(b);
    tare__analysis *a = analyze(b);
    const tare__span_row *outer = span_at(a, "outer");
    assert_int_equal(outer->n_numbers, 1);
    assert_string_equal(outer->numbers[0].name, "samples");
    assert_int_equal(outer->numbers[0].n, 4);
    NEAR(outer->numbers[0].sum, 32);
    NEAR(outer->numbers[0].rate, 32 / 1000e-9);
    NEAR(span_at(a, "outer/inner")->numbers[0].sum, 2);
    assert_int_equal(a->own.numbers, 9);
    done(b, a);
}

/* ---- the recorder's own cost --------------------------------------------------------------------- */
static builder *with_cost(uint32_t number, uint32_t pair, uint32_t inner)
{
    builder *b = build_start();
    build_process_fields(b, number, 77);
    build_number(b, TARE__FIELD_COST_PAIR, pair * 256);
    build_number(b, TARE__FIELD_COST_INNER, inner * 256);
    build_number(b, TARE__FIELD_COST_NEXT, 12 * 256);
    build_number(b, TARE__FIELD_COST_AGGREGATE, 30 * 256);
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_stream(b, 1, number, 77, "main");
    return b;
}

static void the_recorders_cost_is_taken_off_self_times(void **state)
{
    (void)state;
    builder *b = with_cost(1, 40, 16); /* ticks */
    BEGIN(OUTER, 2000);
    for (uint64_t t = 2100; t < 4100; t += 200) {
        BEGIN(INNER, t);
        END(t + 100);
    }
    END(5000);
    build_seal(b);
    build_number(b, TARE__FIELD_COLLECTOR_CPU, 12345);
    build_end(b, 6000);
    tare__analysis *a = analyze(b);
    const tare__span_row *outer = span_at(a, "outer"), *inner = span_at(a, "outer/inner");
    NEAR(outer->total_ns, 1500);
    NEAR(outer->raw_self_ns, 1000);
    NEAR(outer->self_ns, 1000 - (16 + 10 * 24) / 2.0);
    NEAR(inner->raw_self_ns, 500);
    NEAR(inner->self_ns, 500 - 10 * 16 / 2.0);
    NEAR(a->own.subtracted_ns, (16 + 240 + 160) / 2.0);
    NEAR(a->own.pair_ns, 20);
    NEAR(a->own.inner_ns, 8);
    NEAR(a->own.next_ns, 6);
    NEAR(a->own.aggregate_ns, 15);
    NEAR(a->own.own_ns, 11 * 20);
    NEAR(a->own.recorded_ns, 1500);
    NEAR(a->own.share, 220.0 / 1500);
    NEAR(a->own.collector_cpu_ns, 12345);
    done(b, a);
}

static void chained_spans_cost_one_next_each(void **state)
{
    (void)state;
    builder *b = with_cost(1, 40, 16);
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2100);
    NEXT(OTHER, 2200);
    END(2300);
    END(2600);
    build_seal(b);
    tare__analysis *a = analyze(b);
    NEAR(span_at(a, "outer/inner")->self_ns, (100 - 16) / 2.0);
    NEAR(span_at(a, "outer/other")->self_ns, (100 - 12) / 2.0);
    NEAR(span_at(a, "outer")->self_ns, (400 - 16 - 24) / 2.0);
    NEAR(a->own.own_ns, (2 * 40 + 12) / 2.0);
    done(b, a);
}

static void self_times_never_go_below_zero(void **state)
{
    (void)state;
    builder *b = with_cost(1, 4000, 3000);
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2001);
    END(2002);
    END(2003);
    build_seal(b);
    tare__analysis *a = analyze(b);
    NEAR(span_at(a, "outer")->self_ns, 0);
    NEAR(span_at(a, "outer/inner")->self_ns, 0);
    NEAR(a->own.subtracted_ns, 1.5); /* what was there */
    done(b, a);
}

/* ---- groups, processes ------------------------------------------------------------------------------ */
static builder *two_processes(void)
{
    builder *b = build_start();
    build_process(b, 1, 100);
    build_stream(b, 1, 1, 100, "main");
    build_stream(b, 2, 1, 101, "loader");
    build_process_fields(b, 2, 200);
    tare__field_bytes(&b->fields, TARE__FIELD_PROCESS_COMMAND, "python\0it's.py\0", 15);
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_stream(b, 3, 2, 200, "main");
    for (uint32_t stream = 1; stream <= 3; stream++) {
        b->stream = stream;
        BEGIN(OUTER, 2000);
        BEGIN(STEP, 2000);
        END(2000 + 100 * stream);
        END(2000 + 200 * stream);
        build_seal(b);
    }
    build_number(b, TARE__FIELD_PROCESS, 3);
    build_number(b, TARE__FIELD_PID, 300);
    build_string(b, TARE__FIELD_NOT_JOINED, "its environment was cleared");
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_end(b, 10000);
    return b;
}

static void threads_merge_by_path(void **state)
{
    (void)state;
    builder *b = two_processes();
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_spans, 2);
    assert_int_equal(span_at(a, "outer")->calls, 3);
    NEAR(span_at(a, "outer")->total_ns, 600);
    assert_int_equal(a->steps[0].group, TARE__NO_ROW);
    done(b, a);
}

static void spans_group_by_process(void **state)
{
    (void)state;
    builder *b = two_processes();
    tare__analysis *a = analyze_by(b, TARE__BY_PROCESS);
    assert_int_equal(a->n_groups, 2);
    assert_int_equal(a->n_spans, 4);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(a->groups[i].first_row, 2 * i);
        assert_int_equal(a->groups[i].n_rows, 2);
        assert_int_equal(a->groups[i].thread, TARE__NO_ROW);
        assert_int_equal(a->spans[2 * i].group, i);
        assert_int_equal(a->spans[2 * i].parent, TARE__NO_ROW);
        assert_int_equal(a->spans[2 * i + 1].parent, 2 * i);
        NEAR(a->groups[i].total_ns, 300);
        NEAR(a->spans[2 * i].share, 0.5);
    }
    assert_int_equal(a->groups[0].process, 0);
    assert_int_equal(a->groups[1].process, 1);
    assert_string_equal(a->groups[1].name, "python 'it'\\''s.py'");
    assert_int_equal(a->n_steps, 2);
    done(b, a);
}

static void spans_group_by_thread(void **state)
{
    (void)state;
    builder *b = two_processes();
    tare__analysis *a = analyze_by(b, TARE__BY_THREAD);
    assert_int_equal(a->n_groups, 3);
    const uint32_t threads[] = {2, 1, 0}; /* by total */
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(a->groups[i].thread, threads[i]);
        assert_int_equal(a->spans[a->groups[i].first_row].calls, 1);
    }
    assert_string_equal(a->groups[1].name, "loader");
    assert_int_equal(a->n_steps, 3);
    for (size_t i = 0; i < 3; i++) {
        uint32_t thread = a->groups[a->steps[i].group].thread;
        NEAR(a->steps[i].total_ns, 50 * (thread + 1));
        assert_int_equal(a->steps[i].slowest[0].thread, thread);
    }
    done(b, a);
}

static void processes_and_threads_are_listed(void **state)
{
    (void)state;
    builder *b = two_processes();
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_processes, 3);
    assert_int_equal(a->processes[0].pid, 100);
    assert_true(a->processes[0].joined);
    assert_int_equal(a->processes[0].threads, 2);
    assert_int_equal(a->processes[0].spans, 4);
    NEAR(a->processes[0].busy_ns, 300);
    assert_false(a->processes[2].joined);
    assert_string_equal(a->processes[2].not_joined, "its environment was cleared");
    assert_int_equal(a->processes[2].threads, 0);
    assert_true(isnan(a->processes[0].left_at_ns));
    assert_int_equal(a->n_threads, 3);
    assert_int_equal(a->threads[1].process, 0);
    assert_int_equal(a->threads[1].tid, 101);
    assert_string_equal(a->threads[1].name, "loader");
    assert_int_equal(a->threads[1].spans, 2);
    assert_int_equal(a->threads[1].events, 4);
    assert_int_equal(a->threads[2].process, 1);
    assert_int_equal(a->run.spans, 6);
    done(b, a);
}

static void a_stream_nobody_told_of_is_there(void **state)
{
    (void)state;
    builder *b = build_single();
    b->stream = 6;
    BEGIN(OUTER, 2000);
    END(2100);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_threads, 2);
    assert_int_equal(a->threads[1].stream, 6);
    assert_int_equal(a->threads[1].process, TARE__NO_ROW);
    assert_null(a->threads[1].name);
    assert_int_equal(a->threads[1].spans, 1);
    assert_true(isnan(a->threads[0].first_at_ns));
    done(b, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_spans_make_a_tree),
        cmocka_unit_test(percentiles_are_of_the_durations),
        cmocka_unit_test(chained_spans_end_one_and_begin_the_next),
        cmocka_unit_test(ends_that_match_nothing_are_counted),
        cmocka_unit_test(the_end_of_a_span_closes_what_is_open_inside),
        cmocka_unit_test(lost_ends_are_told),
        cmocka_unit_test(spans_cross_blocks),
        cmocka_unit_test(spans_open_at_the_end_count_up_to_it),
        cmocka_unit_test(an_unfinished_run_lasts_as_long_as_its_processes),
        cmocka_unit_test(same_names_meet_whatever_their_ids),
        cmocka_unit_test(names_told_only_at_the_end_are_known),
        cmocka_unit_test(numbers_add_up_with_a_rate),
        cmocka_unit_test(the_recorders_cost_is_taken_off_self_times),
        cmocka_unit_test(chained_spans_cost_one_next_each),
        cmocka_unit_test(self_times_never_go_below_zero),
        cmocka_unit_test(threads_merge_by_path),
        cmocka_unit_test(spans_group_by_process),
        cmocka_unit_test(spans_group_by_thread),
        cmocka_unit_test(processes_and_threads_are_listed),
        cmocka_unit_test(a_stream_nobody_told_of_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
