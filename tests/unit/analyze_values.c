/* Tests of src/analyze/tables/values.c: counters, marks, aggregate spans, complete spans on tracks.
 * One thread.
 * Must not know how rows are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

/* Two streams whose blocks lie in the file in the other order than in time. */
static void counters_and_marks_go_by_the_clock(void **state)
{
    (void)state;
    builder *b = build_single();
    build_stream(b, 2, 1, 78, "other");
    b->stream = 2;
    COUNTER(LOSS, 5000, 0.25);
    COUNTER(LOSS, 6000, 0.125);
    MARK(SAVED, 6000);
    build_seal(b);
    b->stream = 1;
    COUNTER(LOSS, 2000, 2);
    COUNTER(LOSS, 3000, -1);
    MARK(SAVED, 3000);
    MARK(SAVED, 4000);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_counters, 1);
    const tare__counter_row *loss = &a->counters[0];
    assert_string_equal(loss->name, "loss");
    assert_int_equal(loss->n, 4);
    NEAR(loss->first, 2);
    NEAR(loss->last, 0.125);
    NEAR(loss->min, -1);
    NEAR(loss->max, 2);
    NEAR(loss->mean, 1.375 / 4);
    NEAR(loss->first_at_ns, 500);
    NEAR(loss->last_at_ns, 2500);
    assert_int_equal(a->n_marks, 1);
    assert_int_equal(a->marks[0].n, 3);
    NEAR(a->marks[0].first_at_ns, 1000);
    NEAR(a->marks[0].last_at_ns, 2500);
    assert_int_equal(a->own.marks, 3);
    assert_int_equal(a->own.counters, 4);
    done(b, a);
}

/* ---- facts --------------------------------------------------------------------------------------- */
static void facts_are_one_row_each(void **state)
{
    (void)state;
    enum { WORKERS = 30, KEPT, TRAIN, HISTORY };
    builder *b = build_single();
    build_stream(b, 2, 1, 78, "other");
    build_process(b, 2, 79);
    build_stream(b, 3, 2, 79, "main");
    build_name(b, WORKERS, TARE__NAME_FACT, "torch.loader.workers");
    build_name(b, KEPT, TARE__NAME_FACT, "torch.losses.kept");
    build_name(b, TRAIN, TARE__NAME_FACT, "/me at home:1/train.py");
    build_name(b, HISTORY, TARE__NAME_FACT, "history");
    b->stream = 2;
    build_fact(b, (tare__fact){.key = WORKERS, .ticks = 5000, .value = 2});
    b->stream = 1;
    build_fact(b, (tare__fact){.key = WORKERS, .ticks = 3000, .value = 4});
    build_fact(b, (tare__fact){.key = WORKERS, .ticks = 2000, .value = 0});
    build_fact(b, (tare__fact){.key = KEPT, .file = TRAIN, .line = 19, .text = HISTORY, .ticks = 7000, .value = 16});
    b->stream = 3;
    build_fact(b, (tare__fact){.key = WORKERS, .ticks = 9000, .value = NAN});
    build_fact(b, (tare__fact){.key = LOSS, .ticks = 9000, .value = 1}); /* a counter's name is no key */
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_facts, 4);
    const tare__fact_row *workers = &a->facts[0], *kept = &a->facts[1];
    assert_string_equal(workers->key, "torch.loader.workers");
    assert_int_equal(workers->count, 3);
    assert_int_equal(workers->process, 0);
    NEAR(workers->value, 2); /* the last one by the clock */
    NEAR(workers->first, 0);
    NEAR(workers->min, 0);
    NEAR(workers->mean, 2);
    NEAR(workers->max, 4);
    assert_null(workers->file);
    assert_null(workers->text);
    assert_string_equal(kept->file, "/me at home:1/train.py");
    assert_int_equal(kept->line, 19);
    assert_string_equal(kept->text, "history");
    assert_int_equal(a->facts[2].process, 1);
    assert_true(isnan(a->facts[2].value) || isnan(a->facts[3].value));
    tare__fact_row sum;
    assert_true(tare__fact_sum(a, "torch.loader.workers", &sum));
    assert_int_equal(sum.count, 4);
    NEAR(sum.max, 4);
    assert_ptr_equal(tare__fact_find(a, "torch.losses.kept"), kept);
    assert_null(tare__fact_find(a, "loss"));
    assert_int_equal(a->n_marks + a->n_counters, 0);
    done(b, a);
}

/* ---- aggregates ---------------------------------------------------------------------------------- */
static void build_cell(builder *b, uint32_t stream, uint32_t name, uint64_t calls, uint64_t timed,
                       uint64_t each)
{
    uint32_t buckets[TARE__CELL_BUCKETS] = {0};
    unsigned octave = 63 - (unsigned)__builtin_clzll(each); /* as the recorder fills them */
    buckets[((octave - TARE__CELL_BITS + 1) << TARE__CELL_BITS) + (each >> (octave - TARE__CELL_BITS) & 7)] =
        (uint32_t)timed;
    tare__aggregate cell = {.name = name,
                            .every = timed < calls ? (uint32_t)(calls / timed) : 1,
                            .count = calls,
                            .timed = timed,
                            .total = timed * each,
                            .min = each,
                            .max = each,
                            .buckets = buckets};
    tare__block_header header = {.stream = stream};
    builder_check(tare__aggregates_seal(&cell, 1, b->squeezer, &header, &b->file));
}

static void aggregates_merge_over_streams_and_replace_within(void **state)
{
    (void)state;
    builder *b = build_single();
    build_stream(b, 2, 1, 78, "other");
    build_name(b, 30, TARE_KIND_AGGREGATE, "malloc");
    build_cell(b, 1, 30, 50, 50, 1000);
    build_cell(b, 2, 30, 100, 100, 4000);
    build_cell(b, 1, 30, 300, 300, 1000); /* the newest of stream 1 */
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_aggregates, 1);
    const tare__aggregate_row *row = &a->aggregates[0];
    assert_string_equal(row->name, "malloc");
    assert_string_equal(row->file, "train.c");
    assert_int_equal(row->calls, 400);
    assert_int_equal(row->timed, 400);
    assert_false(row->estimated);
    NEAR(row->total_ns, (300 * 1000 + 100 * 4000) / 2.0);
    NEAR(row->each.min_ns, 500);
    NEAR(row->each.max_ns, 2000);
    NEAR(row->each.mean_ns, 875);
    assert_true(fabs(row->each.p50_ns - 500) <= 500 / 8.0);
    assert_true(fabs(row->each.p95_ns - 2000) <= 2000 / 8.0);
    assert_int_equal(a->own.aggregate_calls, 400);
    done(b, a);
}

static void sampled_aggregates_are_an_estimate(void **state)
{
    (void)state;
    builder *b = build_single();
    build_name(b, 30, TARE_KIND_AGGREGATE, "sampled");
    build_cell(b, 1, 30, 1600, 100, 1000);
    tare__analysis *a = analyze(b);
    assert_true(a->aggregates[0].estimated);
    assert_int_equal(a->aggregates[0].every, 16);
    NEAR(a->aggregates[0].total_ns, 1600 * 500);
    NEAR(a->aggregates[0].each.mean_ns, 500);
    done(b, a);
}

static void an_aggregate_never_timed_has_no_total(void **state)
{
    (void)state;
    builder *b = build_single();
    uint32_t buckets[TARE__CELL_BUCKETS] = {0};
    tare__aggregate cell = {.name = OUTER, .every = 100, .count = 7, .min = UINT64_MAX, .buckets = buckets};
    tare__block_header header = {.stream = 1};
    builder_check(tare__aggregates_seal(&cell, 1, b->squeezer, &header, &b->file));
    tare__analysis *a = analyze(b);
    assert_int_equal(a->aggregates[0].calls, 7);
    assert_true(isnan(a->aggregates[0].total_ns));
    assert_true(isnan(a->aggregates[0].each.min_ns));
    done(b, a);
}

/* ---- complete spans ------------------------------------------------------------------------------ */
static void complete_spans_lie_on_tracks(void **state)
{
    (void)state;
    builder *b = build_single();
    const tare__complete_span spans[] = {
        {.name = INNER, .track = GPU, .start = 5000, .end = 5400, .id = 1, .flow = 9},
        {.name = INNER, .track = GPU, .start = 5100, .end = 5300, .parent = 1}, /* overlaps */
        {.name = OTHER, .track = GPU, .start = 2000, .end = 4000},              /* late */
        {.name = INNER, .track = 0, .start = 3000, .end = 3100},
        {.name = INNER, .track = 0, .start = 3000, .end = 2000}, /* ends before it starts */
    };
    tare__block_header header = {.stream = 1};
    builder_check(tare__complete_seal(spans, 5, b->squeezer, &header, &b->file));
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_spans, 0);
    assert_int_equal(a->n_tracks, 3);
    assert_string_equal(a->tracks[0].track, "stream 7");
    assert_int_equal(a->tracks[0].track_kind, TARE_TRACK_GPU);
    assert_string_equal(a->tracks[0].name, "other");
    NEAR(a->tracks[0].total_ns, 1000);
    const tare__track_row *row = &a->tracks[1];
    assert_string_equal(row->name, "inner");
    assert_int_equal(row->calls, 2);
    NEAR(row->total_ns, 300);
    NEAR(row->self_ns, 300);
    NEAR(row->each.min_ns, 100);
    NEAR(row->each.max_ns, 200);
    assert_int_equal(row->flows, 1);
    assert_int_equal(row->children, 1);
    assert_string_equal(a->tracks[2].track, "");
    assert_int_equal(a->tracks[2].track_kind, 0);
    assert_int_equal(a->tracks[2].calls, 2);
    NEAR(a->tracks[2].total_ns, 50);
    assert_int_equal(a->own.complete_spans, 5);
    assert_int_equal(a->run.spans, 5);
    done(b, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_and_marks_go_by_the_clock),
        cmocka_unit_test(facts_are_one_row_each),
        cmocka_unit_test(aggregates_merge_over_streams_and_replace_within),
        cmocka_unit_test(sampled_aggregates_are_an_estimate),
        cmocka_unit_test(an_aggregate_never_timed_has_no_total),
        cmocka_unit_test(complete_spans_lie_on_tracks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
