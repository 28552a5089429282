/* Tests of what keeps the analysis within bounds: depth, number of paths, open spans, threads.
 * One thread.
 * Must not know how rows are shown. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

static void seal_when_full(builder *b)
{
    if (tare__events_count(b->events) >= TARE__EVENTS_MAX - 4)
        build_seal(b);
}

/* 100,000 levels of one name: a chain of rows, then all the rest in the deepest; no time is lost. */
static void deep_recursion_folds(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    builder *b = build_single();
    uint64_t t = 2000;
    for (int i = 0; i < DEPTH; i++, seal_when_full(b))
        BEGIN(OUTER, t += 10);
    for (int i = 0; i < DEPTH; i++, seal_when_full(b))
        END(t += 10);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_spans, 256);
    uint64_t calls = 0;
    double self = 0;
    for (uint32_t i = 0; i < 256; i++) {
        assert_int_equal(a->spans[i].depth, i);
        calls += a->spans[i].calls;
        self += a->spans[i].raw_self_ns;
    }
    assert_int_equal(calls, DEPTH);
    NEAR(a->spans[0].total_ns, (2 * DEPTH - 1) * 5.0);
    NEAR(self, a->spans[0].total_ns);
    NEAR(a->spans[255].total_ns, a->spans[254].total_ns - 10);
    assert_true(has_note(a, "256 levels"));
    assert_int_equal(a->threads[0].unmatched_ends, 0);
    done(b, a);
}

/* Begun and never ended, far more than any stack holds: counted all the same. */
static void spans_never_ended_are_counted(void **state)
{
    (void)state;
    enum { SPANS = 500000 };
    builder *b = build_single();
    uint64_t t = 2000;
    for (int i = 0; i < SPANS; i++, seal_when_full(b)) {
        BEGIN(OUTER, t += 10);
        if (i % 1000 == 999) { /* ends and chains above the stack that is kept */
            END(t += 1);
            NEXT(OUTER, t += 1);
            BEGIN(INNER, t += 1);
            NUMBER(SAMPLES, 1);
        }
    }
    build_seal(b);
    tare__analysis *a = analyze(b);
    uint64_t calls = 0;
    for (size_t i = 0; i < a->n_spans; i++)
        calls += a->spans[i].calls;
    assert_int_equal(calls, SPANS + 2 * (SPANS / 1000));
    NEAR(a->spans[0].total_ns, (double)(t - 2010) / 2);
    assert_true(has_note(a, "too many spans were open at once"));
    done(b, a);
}

/* More paths than are kept apart: the rest is "(others)" under the same parent, and no time is lost. */
static void too_many_paths_fold_into_others(void **state)
{
    (void)state;
    enum { NAMES = 400 };
    builder *b = build_single();
    char name[32];
    for (uint32_t i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "request %u", i);
        build_name(b, 100 + i, TARE_KIND_SPAN, name);
    }
    uint64_t t = 2000, spans = 0;
    BEGIN(OUTER, 2000);
    for (uint32_t i = 0; i < NAMES; i++) {
        BEGIN(100 + i, t += 10);
        for (uint32_t k = 0; k < NAMES; k++, spans++, seal_when_full(b)) {
            BEGIN(100 + k, t += 10);
            BEGIN(100 + k, t += 1);
            END(t += 8);
            END(t += 1);
        }
        END(t += 10);
    }
    END(t += 10);
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_in_range(a->n_spans, 99000, 101000);
    assert_true(has_note(a, "(others)"));
    uint64_t calls = 0;
    double self = 0;
    for (size_t i = 0; i < a->n_spans; i++) {
        calls += a->spans[i].calls;
        self += a->spans[i].raw_self_ns;
    }
    assert_int_equal(calls, 1 + NAMES + 2 * spans);
    NEAR(a->spans[0].total_ns, (double)(t - 2000) / 2);
    NEAR(self, a->spans[0].total_ns);
    done(b, a);
}

/* Quantiles of a few paths are within 0.4 %, of more than fit the caches within 1.6 %. */
static void check_quantiles(uint32_t names, double within)
{
    builder *b = build_single();
    char name[32];
    for (uint32_t i = 0; i < names; i++) {
        snprintf(name, sizeof name, "name %u", i);
        build_name(b, 100 + i, TARE_KIND_SPAN, name);
    }
    uint64_t t = 2000;
    for (uint32_t i = 0; i < names; i++)
        for (uint64_t k = 1; k <= 100; k++, seal_when_full(b)) {
            BEGIN(100 + i, t);
            END(t += 1000000 + 12347 * k);
        }
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_spans, names);
    for (size_t i = 0; i < a->n_spans; i++) {
        const tare__durations *each = &a->spans[i].each;
        const double truth[3] = {1000000 + 12347 * 50, 1000000 + 12347 * 95, 1000000 + 12347 * 99};
        const double shown[3] = {each->p50_ns * 2, each->p95_ns * 2, each->p99_ns * 2}; /* two ticks a nanosecond */
        for (int q = 0; q < 3; q++)
            assert_true(fabs(shown[q] - truth[q]) <= within * truth[q]);
    }
    done(b, a);
}

static void quantiles_of_few_paths(void **state)
{
    (void)state;
    check_quantiles(3, 0.004);
}

static void quantiles_of_many_paths(void **state)
{
    (void)state;
    check_quantiles(400, 0.016);
}

/* Wide histograms of many paths become coarser, and say so; smallest, largest and count stay exact. */
static void histograms_get_coarser_when_many(void **state)
{
    (void)state;
    enum { NAMES = 150 };
    builder *b = build_single();
    char name[32];
    for (uint32_t i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "name %u", i);
        build_name(b, 100 + i, TARE_KIND_SPAN, name);
    }
    uint64_t t = 2000;
    for (uint32_t i = 0; i < NAMES; i++) {
        BEGIN(100 + i, t);
        for (uint32_t k = 0; k < NAMES; k++)
            for (unsigned octave = 0; octave < 24; octave += 12, seal_when_full(b)) {
                BEGIN(100 + k, t);
                END(t += UINT64_C(1) << octave);
            }
        END(t);
    }
    build_seal(b);
    tare__analysis *a = analyze(b);
    assert_true(has_note(a, "percentiles are accurate to"));
    assert_int_equal(a->n_spans, NAMES + NAMES * NAMES);
    for (size_t i = 0; i < a->n_spans; i++)
        if (a->spans[i].depth == 1) {
            assert_int_equal(a->spans[i].calls, 2);
            NEAR(a->spans[i].each.min_ns, 0.5);
            NEAR(a->spans[i].each.max_ns, 2048);
        }
    done(b, a);
}

/* Streams by the thousand, each with a span open over two blocks. */
static void a_thousand_streams_are_kept_apart(void **state)
{
    (void)state;
    enum { STREAMS = 1000 };
    builder *b = build_start();
    tare__span_stack none = {0}, open = {0};
    builder_check(tare__span_stack_push(&open, OUTER, 2000));
    for (uint32_t ordinal = 0; ordinal < 2; ordinal++)
        for (uint32_t stream = 1; stream <= STREAMS; stream++) {
            tare__events_reset(b->events, 0);
            if (ordinal == 0)
                tare__events_add(b->events, TARE__OP_BEGIN, OUTER, 2000);
            else
                tare__events_add(b->events, TARE__OP_END, 0, 2000 + 2 * stream);
            tare__block_header header = {.stream = stream, .ordinal = ordinal};
            builder_check(
                tare__events_seal(b->events, b->squeezer, ordinal ? &open : &none, &header, &b->file));
        }
    tare__span_stack_free(&open);
    tare__analysis *a = analyze_by(b, TARE__BY_THREAD);
    assert_int_equal(a->n_threads, STREAMS);
    assert_int_equal(a->n_groups, STREAMS);
    for (uint32_t i = 0; i < STREAMS; i++) {
        NEAR(a->threads[i].busy_ns, i + 1);
        NEAR(a->groups[i].total_ns, STREAMS - i);
        assert_int_equal(a->groups[i].thread, STREAMS - 1 - i);
    }
    done(b, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deep_recursion_folds),
        cmocka_unit_test(spans_never_ended_are_counted),
        cmocka_unit_test(too_many_paths_fold_into_others),
        cmocka_unit_test(quantiles_of_few_paths),
        cmocka_unit_test(quantiles_of_many_paths),
        cmocka_unit_test(histograms_get_coarser_when_many),
        cmocka_unit_test(a_thousand_streams_are_kept_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
