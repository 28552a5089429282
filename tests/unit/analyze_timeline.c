/* Tests of src/analyze/tables/timeline.c, lanes.c and boxes.c: every span is in a box, boxes do not overlap, and
 * there are no more of them than asked for. One thread.
 * Must not know how boxes are drawn. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

static tare__timeline *draw(builder *b, size_t boxes_max)
{
    tare__trace *trace;
    tare__timeline *timeline;
    tare__error error = {""};
    assert_int_equal(tare__trace_open(build_file(b), &trace, &error), 0);
    assert_int_equal(tare__analyze_timeline(trace, boxes_max, &timeline, &error), 0);
    tare__trace_close(trace); /* the boxes live on without it */
    return timeline;
}

static void drawn(builder *b, tare__timeline *timeline)
{
    tare__timeline_free(timeline);
    builder_free(b);
}

/* What is true of every timeline. */
static void check(const tare__timeline *t)
{
    uint64_t calls = 0, merged = 0, in_lanes = 0;
    for (size_t i = 0; i < t->n_lanes; i++) {
        in_lanes += t->lanes[i].spans;
        assert_true(t->lanes[i].name && t->lanes[i].process && t->lanes[i].depth > 0);
    }
    for (size_t i = 0; i < t->n_boxes; i++) {
        const tare__box *box = &t->boxes[i], *before = i ? box - 1 : NULL;
        assert_true(box->calls > 0 && box->lane < t->n_lanes && box->name < t->n_names);
        assert_true(box->depth < t->lanes[box->lane].depth);
        assert_true(box->lasts_ns >= 0 && box->busy_ns >= 0 && box->busy_ns <= box->lasts_ns);
        assert_true(box->calls > 1 || (!box->mixed && box->busy_ns == box->lasts_ns));
        calls += box->calls;
        merged += box->calls > 1 ? box->calls : 0;
        if (!before)
            continue;
        bool same = box->lane == before->lane && box->depth == before->depth;
        if (same)
            assert_true(box->at_ns >= before->at_ns + before->lasts_ns - 1e-3);
        else
            assert_true(box->lane > before->lane || (box->lane == before->lane && box->depth > before->depth));
    }
    assert_int_equal(calls, t->spans);
    assert_int_equal(merged, t->merged_spans);
    assert_int_equal(in_lanes, t->spans);
}

static const char *name_of(const tare__timeline *t, const tare__box *box)
{
    return t->names[box->name];
}

static void few_spans_are_a_box_each(void **state)
{
    (void)state;
    builder *b = build_start();
    static const char command[] = "/usr/bin/python3.11\0jobs/train.py\0--fast";
    build_process_fields(b, 1, 77);
    tare__field_bytes(&b->fields, TARE__FIELD_PROCESS_COMMAND, command, sizeof command);
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_stream(b, 1, 1, 77, "MainThread");
    build_stream(b, 2, 1, 78, "");
    b->stream = 2;
    BEGIN(OTHER, 3000);
    END(3100);
    build_seal(b);
    b->stream = 1;
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2100);
    build_seal(b); /* open over two blocks */
    NEXT(OTHER, 2300);
    END(2400);
    END(3000);
    BEGIN(OUTER, 4000); /* open to the end */
    COUNTER(LOSS, 4500, 1);
    build_seal(b);
    tare__timeline *t = draw(b, 1000);
    check(t);
    assert_int_equal(t->n_lanes, 2);
    assert_string_equal(t->lanes[0].process, "train.py (77)");
    assert_string_equal(t->lanes[0].name, "train.py (77) · MainThread");
    assert_string_equal(t->lanes[1].name, "train.py (77) · thread 78");
    assert_true(t->lanes[0].pid == 77 && t->lanes[0].tid == 77 && t->lanes[1].tid == 78);
    assert_true(t->lanes[0].depth == 2 && t->lanes[0].spans == 4 && t->lanes[0].track_kind == 0);
    static const struct {
        uint32_t lane, depth;
        const char *name;
        double at, lasts;
    } boxes[] = {
        {0, 0, "outer", 500, 500}, {0, 0, "outer", 1500, 250}, {0, 1, "inner", 550, 100},
        {0, 1, "other", 650, 50},  {1, 0, "other", 1000, 50},
    };
    assert_int_equal(t->n_boxes, TARE__COUNT_OF(boxes));
    for (size_t i = 0; i < t->n_boxes; i++) {
        assert_true(t->boxes[i].lane == boxes[i].lane && t->boxes[i].depth == boxes[i].depth);
        assert_string_equal(name_of(t, &t->boxes[i]), boxes[i].name);
        NEAR(t->boxes[i].at_ns, boxes[i].at);
        NEAR(t->boxes[i].lasts_ns, boxes[i].lasts);
        assert_int_equal(t->boxes[i].calls, 1);
    }
    assert_true(t->spans == 5 && t->merged_spans == 0 && t->left_out_spans == 0 && t->resolution_ns == 0);
    drawn(b, t);
}

static void nothing_makes_an_empty_timeline(void **state)
{
    (void)state;
    builder *b = build_single();
    tare__timeline *t = draw(b, 1000);
    check(t);
    assert_true(t->n_boxes == 0 && t->n_lanes == 0 && t->n_counters == 0 && t->spans == 0);
    assert_null(tare__timeline_open_at(t, 5).span);
    drawn(b, t);
}

/* Steps with a few spans each, on two threads. */
static builder *many_spans(unsigned steps)
{
    builder *b = build_single();
    build_stream(b, 2, 1, 78, "other");
    for (uint32_t stream = 1; stream <= 2; stream++) {
        uint64_t t = 2000, seed = stream;
        b->stream = stream;
        for (unsigned i = 0; i < steps; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            BEGIN(STEP, t += seed >> 58);
            BEGIN(INNER, t += 10);
            NEXT(OTHER, t += 300 + (seed >> 57));
            END(t += 50);
            END(t += 5);
            if (i % 1000 == 999)
                build_seal(b);
        }
        build_seal(b);
    }
    return b;
}

static void many_spans_are_merged_and_none_is_lost(void **state)
{
    (void)state;
    static const size_t sizes[] = {64, 100, 1000, 5000};
    builder *b = many_spans(20000);
    tare__analysis *a = analyze(b);
    for (unsigned i = 0; i < TARE__COUNT_OF(sizes); i++) {
        tare__timeline *t = draw(b, sizes[i]);
        check(t);
        assert_int_equal(t->spans, a->run.spans);
        assert_int_equal(t->left_out_spans, 0);
        assert_true(t->n_boxes <= sizes[i] && t->n_boxes > sizes[i] / 4);
        assert_true(t->merged_spans > t->spans / 2 && t->resolution_ns > 0);
        double busy[2] = {0, 0};
        for (size_t j = 0; j < t->n_boxes; j++) {
            const tare__box *box = &t->boxes[j];
            busy[box->depth] += box->busy_ns;
            assert_true(box->lasts_ns <= t->resolution_ns || box->calls == 1);
            if (box->calls > 20) /* the one with most of the time gives the name */
                assert_string_equal(name_of(t, box), box->depth ? "inner" : "step");
            if (box->calls > 20)
                assert_int_equal(box->mixed, box->depth == 1);
        }
        assert_true(fabs(busy[0] - span_at(a, "step")->total_ns) < 1);
        assert_true(fabs(busy[1] - span_at(a, "step/inner")->total_ns - span_at(a, "step/other")->total_ns) < 1);
        tare__timeline_free(t);
    }
    done(b, a);
}

static void the_same_file_gives_the_same_boxes(void **state)
{
    (void)state;
    builder *b = many_spans(5000);
    tare__timeline *one = draw(b, 700), *two = draw(b, 700);
    assert_int_equal(one->n_boxes, two->n_boxes);
    for (size_t i = 0; i < one->n_boxes; i++) {
        const tare__box *left = &one->boxes[i], *right = &two->boxes[i];
        assert_true(left->lane == right->lane && left->depth == right->depth && left->name == right->name);
        assert_true(left->calls == right->calls && left->at_ns == right->at_ns && left->lasts_ns == right->lasts_ns);
    }
    assert_true(one->resolution_ns == two->resolution_ns);
    tare__timeline_free(two);
    drawn(b, one);
}

/* A long span among thousands of short ones stays what it is. */
static void long_spans_are_not_merged(void **state)
{
    (void)state;
    builder *b = build_single();
    uint64_t t = 2000;
    for (int i = 0; i < 9000; i++) {
        BEGIN(i == 5000 ? OUTER : INNER, t);
        END(t += i == 5000 ? 100000000 : 20);
        t += 5;
        if (i % 3000 == 2999)
            build_seal(b);
    }
    tare__timeline *timeline = draw(b, 64);
    check(timeline);
    unsigned seen = 0;
    for (size_t i = 0; i < timeline->n_boxes; i++)
        if (strcmp(name_of(timeline, &timeline->boxes[i]), "outer") == 0) {
            NEAR(timeline->boxes[i].lasts_ns, 50000000);
            assert_int_equal(timeline->boxes[i].calls, 1);
            seen++;
        }
    assert_int_equal(seen, 1);
    drawn(b, timeline);
}

static void what_lies_too_deep_is_counted(void **state)
{
    (void)state;
    builder *b = build_single();
    for (uint64_t i = 0; i < 400; i++)
        BEGIN(i % 2 ? OUTER : INNER, 2000 + i);
    for (uint64_t i = 0; i < 400; i++)
        END(5000 + i);
    build_seal(b);
    tare__timeline *t = draw(b, 10000);
    check(t);
    assert_int_equal(t->lanes[0].depth, 256);
    assert_int_equal(t->spans, 256);
    assert_int_equal(t->left_out_spans, 144);
    tare__timeline_free(t);
    t = draw(b, 64); /* no more levels than half of the boxes */
    check(t);
    assert_int_equal(t->spans + t->left_out_spans, 400);
    assert_true(t->n_boxes <= 64);
    drawn(b, t);
}

/* ---- complete spans ------------------------------------------------------------------------------ */
static void build_complete(builder *b, uint32_t stream, const tare__complete_span *spans, uint32_t n)
{
    tare__block_header header = {.stream = stream};
    builder_check(tare__complete_seal(spans, n, b->squeezer, &header, &b->file));
}

static void complete_spans_lie_on_their_tracks(void **state)
{
    (void)state;
    builder *b = build_single();
    const tare__complete_span spans[] = {
        {.name = INNER, .track = GPU, .start = 5000, .end = 5400}, /* inside of the next one */
        {.name = OUTER, .track = GPU, .start = 5000, .end = 6000},
        {.name = OTHER, .track = 0, .start = 3000, .end = 3300},
        {.name = OTHER, .track = GPU, .start = 5400, .end = 5500},
        {.name = OTHER, .track = GPU, .start = 7000, .end = 6000}, /* ends before it starts */
    };
    const tare__complete_span late = {.name = OTHER, .track = GPU, .start = 1500, .end = 5600};
    build_complete(b, 1, spans, 5);
    build_complete(b, 1, &late, 1);
    BEGIN(OUTER, 2000);
    END(9000);
    build_seal(b);
    tare__timeline *t = draw(b, 1000);
    check(t);
    assert_int_equal(t->n_lanes, 3);
    assert_true(t->lanes[0].track_kind == 0 && t->lanes[1].track_kind == 0 && t->lanes[0].tid == 77);
    assert_int_equal(t->lanes[2].track_kind, TARE_TRACK_GPU);
    assert_string_equal(t->lanes[2].name, "process 77 · stream 7");
    assert_true(t->lanes[2].depth == 3 && t->lanes[2].spans == 5 && t->lanes[2].tid == 0);
    static const struct {
        const char *name;
        uint32_t depth;
    } gpu[] = {{"outer", 0}, {"other", 0}, {"inner", 1}, {"other", 1}, {"other", 2}};
    size_t first = 2;
    assert_int_equal(t->n_boxes, first + TARE__COUNT_OF(gpu));
    for (size_t i = 0; i < TARE__COUNT_OF(gpu); i++) {
        assert_int_equal(t->boxes[first + i].depth, gpu[i].depth);
        assert_string_equal(name_of(t, &t->boxes[first + i]), gpu[i].name);
    }
    drawn(b, t);
}

static void many_complete_spans_are_merged_and_none_is_lost(void **state)
{
    (void)state;
    static tare__complete_span spans[3000];
    builder *b = build_single();
    build_stream(b, 2, 1, 78, "other");
    uint64_t seed = 1;
    for (uint32_t block = 0; block < 10; block++) {
        for (uint32_t i = 0; i < 3000; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint64_t start = 10000 + block * 300000 + i * 100 - (seed >> 55);
            spans[i] = (tare__complete_span){.name = OUTER + i % 3, .track = i % 2 ? GPU : 0, .start = start,
                                             .end = start + (seed >> 40) % 700};
        }
        build_complete(b, 1 + block % 2, spans, 3000);
    }
    for (size_t max = 64; max <= 100000; max *= 11) {
        tare__timeline *t = draw(b, max);
        check(t);
        assert_true(t->n_boxes <= max);
        assert_int_equal(t->spans + t->left_out_spans, 30000);
        assert_int_equal(t->left_out_spans, 0);
        assert_int_equal(t->n_lanes, 3);
        tare__timeline_free(t);
    }
    builder_free(b);
}

/* ---- counters, peaks ----------------------------------------------------------------------------- */
static void counters_are_lines(void **state)
{
    (void)state;
    builder *b = build_single();
    build_stream(b, 2, 1, 78, "other");
    for (uint32_t stream = 2; stream >= 1; stream--) { /* not in order of time */
        b->stream = stream;
        for (uint64_t i = 0; i < 20000; i++) {
            COUNTER(LOSS, 2000 + i * 5000 + stream, i == 9999 && stream == 2 ? 1e9 : (double)i);
            if (i % 10000 == 9999)
                build_seal(b);
        }
    }
    COUNTER(LOSS, 200000000, NAN); /* no value is no value */
    build_seal(b);
    tare__timeline *t = draw(b, 1000);
    assert_int_equal(t->n_counters, 1);
    const tare__counter_line *line = &t->counters[0];
    assert_string_equal(line->name, "loss");
    assert_true(line->n_points > TARE__POINTS_MAX / 4 && line->n_points <= TARE__POINTS_MAX);
    double most = 0, at = 0;
    for (size_t i = 0; i < line->n_points; i++) {
        const tare__metric_point *point = &line->points[i];
        assert_true(point->min <= point->mean && point->mean <= point->max);
        if (i)
            assert_true(point->at_ns > line->points[i - 1].at_ns + line->points[i - 1].lasts_ns);
        if (point->max > most) {
            most = point->max;
            at = point->at_ns;
        }
    }
    NEAR(most, 1e9);
    assert_true(fabs(at - 9999 * 2500 - 500) < 60000);
    NEAR(line->points[0].at_ns, 500.5);
    drawn(b, t);
}

static void what_was_open_is_found(void **state)
{
    (void)state;
    builder *b = build_single();
    build_stream(b, 2, 1, 78, "other");
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 3000);
    END(4000);
    END(5000);
    build_seal(b);
    b->stream = 2;
    BEGIN(OTHER, 2500);
    END(9000);
    build_seal(b);
    const tare__complete_span span = {.name = STEP, .track = GPU, .start = 1000, .end = 20000};
    build_complete(b, 1, &span, 1);
    tare__timeline *t = draw(b, 1000);
    assert_string_equal(tare__timeline_open_at(t, 1250).span, "inner");
    assert_string_equal(tare__timeline_open_at(t, 600).span, "outer");
    assert_string_equal(tare__timeline_open_at(t, 3000).span, "other");
    assert_string_equal(tare__timeline_open_at(t, 6000).span, "step"); /* where no thread had one open */
    assert_null(tare__timeline_open_at(t, 60000).span);
    assert_null(tare__timeline_open_at(t, NAN).span);
    assert_int_equal(tare__timeline_open_at(t, 1250).row, TARE__NO_ROW);
    drawn(b, t);
}

/* ---- damage -------------------------------------------------------------------------------------- */
static void a_lost_block_costs_what_was_in_it(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2100);
    END(2200);
    build_seal(b);
    BEGIN(INNER, 2300);
    END(2400);
    size_t at = build_seal(b);
    build_lose(b, at);
    BEGIN(INNER, 2500);
    END(2600);
    END(3000);
    build_seal(b);
    tare__timeline *t = draw(b, 1000);
    check(t);
    assert_int_equal(t->n_boxes, 3);
    NEAR(t->boxes[0].lasts_ns, 500);
    drawn(b, t);
}

static void time_that_runs_backwards_makes_no_overlap(void **state)
{
    (void)state;
    builder *b = build_single();
    static const uint64_t at[] = {9000, 2000, 9500};
    for (int i = 0; i < 3; i++) {
        BEGIN(OUTER, at[i]);
        BEGIN(INNER, at[i] + 100);
        END(at[i] + 200);
        END(at[i] + 300);
        build_seal(b);
        tare__events_reset(b->events, 0);
    }
    tare__timeline *t = draw(b, 1000);
    check(t);
    assert_int_equal(t->spans, 6);
    drawn(b, t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_spans_are_a_box_each),
        cmocka_unit_test(nothing_makes_an_empty_timeline),
        cmocka_unit_test(many_spans_are_merged_and_none_is_lost),
        cmocka_unit_test(the_same_file_gives_the_same_boxes),
        cmocka_unit_test(long_spans_are_not_merged),
        cmocka_unit_test(what_lies_too_deep_is_counted),
        cmocka_unit_test(complete_spans_lie_on_their_tracks),
        cmocka_unit_test(many_complete_spans_are_merged_and_none_is_lost),
        cmocka_unit_test(counters_are_lines),
        cmocka_unit_test(what_was_open_is_found),
        cmocka_unit_test(a_lost_block_costs_what_was_in_it),
        cmocka_unit_test(time_that_runs_backwards_makes_no_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
