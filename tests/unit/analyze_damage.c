/* Tests of the analysis of damaged and unfinished traces: what is left is right, what is missing is told.
 * One thread.
 * Must not know how rows are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

/* Every kind of block; outer spans of 1,000 ticks, each with one inner of 200. */
static builder *all_kinds(void)
{
    builder *b = build_single();
    uint64_t t = 2000;
    BEGIN(STEP, t);
    for (int block = 0; block < 4; block++) {
        for (int i = 0; i < 5; i++, t += 1000) {
            BEGIN(OUTER, t);
            BEGIN(INNER, t + 100);
            END(t + 300);
            COUNTER(LOSS, t + 400, i);
            END(t + 1000);
        }
        build_seal(b);
    }
    END(t);
    build_seal(b);
    build_complete_and_aggregate(b);
    build_end(b, t + 1000);
    return b;
}

static void the_run_is_told(void **state)
{
    (void)state;
    builder *b = all_kinds();
    tare__analysis *a = analyze(b);
    assert_int_equal(a->run.n_arguments, 3);
    assert_string_equal(a->run.arguments[2], "two words");
    assert_string_equal(a->run.command, "train --size 'two words'");
    assert_string_equal(a->run.host, "host");
    assert_null(a->run.directory);
    assert_true(a->run.finished);
    assert_int_equal(a->run.status, 0);
    assert_int_equal(a->run.signal, 0);
    NEAR(a->run.elapsed_ns, 11000);
    assert_int_equal(a->run.n_notes, 0);
    assert_int_equal(a->run.spans, 42);
    assert_true(a->run.clock_known);
    assert_true(isnan(a->run.rotated_before_at_ns));
    done(b, a);
}

static void what_ended_badly_is_told(void **state)
{
    (void)state;
    builder *b = build_start();
    build_process_fields(b, 1, 77);
    build_number(b, TARE__FIELD_UNATTRIBUTED_SPANS, 30);
    build_number(b, TARE__FIELD_NAMES_REFUSED, 2);
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_number(b, TARE__FIELD_STREAM, 1);
    build_number(b, TARE__FIELD_STREAM_PROCESS, 1);
    build_number(b, TARE__FIELD_DROPPED_SPANS, 4);
    build_number(b, TARE__FIELD_DROPPED_OTHERS, 1);
    build_fields(b, TARE__BLOCK_STREAM, 1);
    build_number(b, TARE__FIELD_STATUS, 137);
    build_number(b, TARE__FIELD_SIGNAL, 9);
    build_number(b, TARE__FIELD_ROTATED_SPANS, 5000);
    build_number(b, TARE__FIELD_ROTATED_BEFORE, 5000);
    build_number(b, TARE__FIELD_REFUSED_SPACE, 2);
    build_number(b, TARE__FIELD_SALVAGED, 1);
    build_number(b, TARE__FIELD_LEFT_RUNNING, 1);
    build_string(b, TARE__FIELD_WRITE_ERROR, "the disk is full");
    build_fields(b, TARE__BLOCK_END, 0);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->run.status, 137);
    assert_int_equal(a->run.signal, 9);
    assert_int_equal(a->run.dropped_spans, 34);
    assert_int_equal(a->run.dropped_others, 1);
    assert_int_equal(a->processes[0].dropped_spans, 34);
    assert_int_equal(a->threads[0].dropped_spans, 4);
    assert_true(a->run.salvaged);
    NEAR(a->run.rotated_before_at_ns, 2000);
    assert_true(has_note(a, "34 spans and 1 other event were dropped"));
    assert_true(has_note(a, "5,000 spans were dropped because of --max-size or --last"));
    assert_true(has_note(a, "2 processes could not join and were not recorded (2: no space)"));
    assert_true(has_note(a, "killed"));
    assert_true(has_note(a, "1 process was still running"));
    assert_true(has_note(a, "the disk is full"));
    assert_true(has_note(a, "2 names"));
    done(b, a);
}

static void an_unfinished_file_says_so(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_string(b, TARE__FIELD_FOLDER, "/run/tare-1");
    build_number(b, TARE__FIELD_START_TICKS, 1000);
    build_number(b, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_MONOTONIC);
    build_fields(b, TARE__BLOCK_RUN, 0);
    build_name(b, OUTER, TARE_KIND_SPAN, "outer");
    BEGIN(OUTER, 2000);
    END(1000 + 1930000000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_false(a->run.finished);
    assert_int_equal(a->run.status, -1);
    NEAR(a->run.elapsed_ns, 1.93e9);
    assert_true(has_note(a, "unfinished"));
    assert_true(has_note(a, "/run/tare-1"));
    assert_true(has_note(a, "1.93 s"));
    assert_true(isnan(a->own.collector_cpu_ns));
    done(b, a);
}

static void no_clock_and_no_run_are_told(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_name(b, OUTER, TARE_KIND_SPAN, "outer");
    BEGIN(OUTER, 2000);
    END(3000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_false(a->run.clock_known);
    assert_null(a->run.command);
    assert_true(has_note(a, "the clock frequency is unknown"));
    assert_true(has_note(a, "command, host and start time"));
    NEAR(a->spans[0].total_ns, 1000);
    done(b, a);
}

static void a_file_of_nothing_but_its_header_has_empty_tables(void **state)
{
    (void)state;
    for (int by = TARE__BY_RUN; by <= TARE__BY_THREAD; by++) {
        builder *b = builder_new();
        tare__analysis *a = analyze_by(b, (tare__by)by);
        assert_int_equal(a->n_spans + a->n_groups + a->n_steps + a->n_threads + a->n_processes, 0);
        assert_true(isnan(a->run.elapsed_ns));
        assert_true(isnan(a->own.share));
        assert_true(has_note(a, "unfinished"));
        done(b, a);
    }
}

/* Cut at every byte: always opens; the step lasts as long as what is left. */
static void torn_traces_are_analyzed(void **state)
{
    (void)state;
    builder *b = all_kinds();
    size_t whole = b->file.length;
    for (size_t cut = sizeof(tare__file_header); cut < whole; cut++) {
        b->file.length = cut;
        tare__analysis *a = analyze(b);
        assert_false(a->run.finished);
        assert_true(a->run.n_notes > 0);
        assert_true(has_note(a, "ends inside a block at byte") || has_note(a, "unfinished"));
        if (a->n_spans == 3)
            NEAR(span_at(a, "step")->total_ns, 2500.0 * (double)((span_at(a, "step/outer")->calls) / 5));
        tare__analysis_free(a);
    }
    builder_free(b);
}

/* Flip any byte: at most one block's figures are missing, never a crash, never a wrong duration. */
static void flipped_bytes_cost_one_block(void **state)
{
    (void)state;
    builder *b = all_kinds();
    for (size_t at = 0; at < b->file.length; at++) {
        b->file.data[at] ^= (char)(1 << at % 8);
        tare__analysis *a = analyze(b);
        assert_true(a->run.n_notes > 0);
        assert_true(a->run.damaged_blocks == (at >= sizeof(tare__file_header)));
        uint64_t outers = 0;
        for (size_t i = 0; i < a->n_spans; i++) {
            const tare__span_row *row = &a->spans[i];
            bool outer = strcmp(row->name, "outer") == 0;
            if (outer && a->run.clock_known)
                NEAR(row->each.max_ns, 500);
            outers += outer ? row->calls : 0;
        }
        assert_true(outers >= 15 || (a->n_spans && has_note(a, "damaged"))); /* "outer" itself may be lost */
        tare__analysis_free(a);
        b->file.data[at] ^= (char)(1 << at % 8);
    }
    builder_free(b);
}

/* The stack is rebuilt from what the next block lists: spans open across the gap keep their totals. */
static void a_lost_block_leaves_totals_right(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2100);
    build_seal(b);
    END(3000); /* inner ends and other begins in the lost block */
    BEGIN(OTHER, 3100);
    build_lose(b, build_seal(b));
    MARK(SAVED, 4000);
    END(4100);
    END(5000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    NEAR(span_at(a, "outer")->total_ns, 1500);
    assert_int_equal(span_at(a, "outer")->end_missing, 0);
    NEAR(span_at(a, "outer/other")->total_ns, 500); /* its begin is known, too */
    assert_int_equal(span_at(a, "outer/other")->calls, 1);
    assert_int_equal(span_at(a, "outer/inner")->end_missing, 1);
    NEAR(span_at(a, "outer/inner")->total_ns, 0); /* up to the last thing seen before the gap */
    assert_int_equal(a->threads[0].missing_blocks, 1);
    assert_int_equal(a->threads[0].unmatched_ends, 0);
    done(b, a);
}

/* Rotated out: a stream's first block is not its block 0, and that is no damage. */
static void a_trace_whose_start_is_gone_is_read(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2100);
    build_lose(b, build_seal(b));
    END(3000);
    END(4000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    NEAR(span_at(a, "outer")->total_ns, 1000);
    NEAR(span_at(a, "outer/inner")->total_ns, 450);
    assert_int_equal(a->threads[0].missing_blocks, 0);
    done(b, a);
}

/* A stream whose time runs backwards from block to block: figures stay finite and not negative. */
static void time_running_backwards_stays_sane(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(OUTER, 500000);
    BEGIN(INNER, 500100);
    END(500200);
    build_seal(b);
    BEGIN(OTHER, 2000);
    END(2100);
    END(2200);
    build_seal(b);
    tare__analysis *a = analyze_unchecked(b, TARE__BY_RUN);
    for (size_t i = 0; i < a->n_spans; i++) {
        assert_in_range(a->spans[i].total_ns, 0, 1000000);
        assert_in_range(a->spans[i].raw_self_ns, 0, 1000000);
    }
    done(b, a);
}

/* Right checksums around events no codec takes. */
static void refused_events_are_damage(void **state)
{
    (void)state;
    builder *b = build_single();
    static const char nonsense[] = "\0nonsense";
    tare__block_header header = {.kind = TARE__BLOCK_EVENTS, .stream = 1, .count = 9, .spans = 7};
    size_t at = tare__block_begin(&b->file);
    tare__text_append(&b->file, nonsense, sizeof nonsense);
    builder_check(tare__block_end(&b->file, at, &header, 0));
    BEGIN(OUTER, 2000);
    END(2100);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->run.damaged_blocks, 1);
    assert_int_equal(a->run.damaged_spans, 7);
    assert_true(has_note(a, "1 damaged block (first at byte"));
    assert_true(has_note(a, "was dropped: 7 spans"));
    assert_int_equal(span_at(a, "outer")->calls, 1);
    done(b, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_run_is_told),
        cmocka_unit_test(what_ended_badly_is_told),
        cmocka_unit_test(an_unfinished_file_says_so),
        cmocka_unit_test(no_clock_and_no_run_are_told),
        cmocka_unit_test(a_file_of_nothing_but_its_header_has_empty_tables),
        cmocka_unit_test(torn_traces_are_analyzed),
        cmocka_unit_test(flipped_bytes_cost_one_block),
        cmocka_unit_test(a_lost_block_leaves_totals_right),
        cmocka_unit_test(a_trace_whose_start_is_gone_is_read),
        cmocka_unit_test(time_running_backwards_stays_sane),
        cmocka_unit_test(refused_events_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
