/* analyze_split: calls that are in the trace as several spans are one call each, counted where they began, with the
 * duration of the whole.
 * Ticks are half a nanosecond (trace_builder.h). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

enum { CONTINUES = 20, CONTINUED, SWAP };

static builder *build_split(void)
{
    builder *b = build_single();
    build_name(b, CONTINUES, TARE_KIND_NUMBER, "(continues)");
    build_name(b, CONTINUED, TARE_KIND_NUMBER, "(continued)");
    build_name(b, SWAP, TARE_KIND_NUMBER, "(swap)");
    return b;
}

/* inner lasts from 2100 to 5000, cut where outer ends. */
static void parts_are_one_call(void **state)
{
    (void)state;
    builder *b = build_split();
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2100);
    NUMBER(SAMPLES, 3);
    NUMBER(CONTINUES, 1);
    END(3000);
    END(3000);
    BEGIN(INNER, 3000);
    NUMBER(CONTINUED, 1);
    NUMBER(SAMPLES, 4);
    END(5000);
    build_seal(b);
    build_end(b, 6000);
    tare__analysis *a = analyze(b);
    const tare__span_row *began = span_at(a, "outer/inner"), *rest = span_at(a, "inner");
    assert_int_equal(began->calls, 1);
    assert_int_equal(rest->calls, 0);
    assert_int_equal(rest->continued, 1);
    NEAR(began->total_ns, 450);
    NEAR(rest->total_ns, 1000);
    NEAR(began->each.min_ns, 1450);
    NEAR(began->each.mean_ns, 1450);
    NEAR(began->each.max_ns, 1450);
    assert_true(isnan(rest->each.p50_ns));
    NEAR(began->numbers[0].sum, 7);
    NEAR(began->numbers[0].rate, 7 / 1450e-9);
    assert_int_equal(rest->n_numbers, 0);
    assert_int_equal(a->run.spans, 2);
    done(b, a);
}

/* The same over blocks, in three parts, and never ended. */
static void parts_in_several_blocks(void **state)
{
    (void)state;
    builder *b = build_split();
    uint64_t t = 2000;
    for (int i = 0; i < 3; i++, t += 1000) {
        BEGIN(OUTER, t);
        if (i == 0)
            BEGIN(INNER, t + 100);
        else {
            END(t); /* what is open is ended and begun again inside */
            BEGIN(OUTER, t);
            BEGIN(INNER, t);
            NUMBER(CONTINUED, 9);
        }
        build_seal(b);
        NUMBER(CONTINUES, 9);
        END(t + 900);
        END(t + 900);
    }
    BEGIN(INNER, t);
    NUMBER(CONTINUED, 9);
    MARK(OTHER, t + 500);
    build_seal(b);
    tare__analysis *a = analyze(b);
    uint64_t calls = 0;
    for (size_t i = 0; i < a->n_spans; i++)
        calls += strcmp(a->spans[i].name, "inner") == 0 ? a->spans[i].calls : 0;
    assert_int_equal(calls, 1);
    assert_int_equal(span_at(a, "outer/inner")->still_open, 1);
    NEAR(span_at(a, "outer/inner")->each.max_ns, (t + 500 - 2100) / 2.0);
    done(b, a);
}

/* The outer of two spans with one name ends first: 2000 to 3000, and 2900 to 6000. */
static void calls_change_places(void **state)
{
    (void)state;
    builder *b = build_split();
    BEGIN(OUTER, 2000);
    BEGIN(OUTER, 2900);
    NUMBER(SWAP, 1);
    END(3000);
    END(6000);
    BEGIN(OUTER, 7000);
    NUMBER(SWAP, 1); /* nothing is around it */
    END(7010);
    BEGIN(OUTER, 8000);
    BEGIN(INNER, 8000);
    NUMBER(SWAP, 1); /* another name: nonsense */
    END(8020);
    END(8030);
    build_seal(b);
    build_end(b, 9000);
    tare__analysis *a = analyze(b);
    const tare__span_row *outer = span_at(a, "outer"), *inner = span_at(a, "outer/outer");
    assert_int_equal(outer->calls, 3);
    assert_int_equal(inner->calls, 1);
    NEAR(inner->each.max_ns, 1550); /* counted where it began */
    NEAR(outer->each.max_ns, 500);
    NEAR(outer->each.min_ns, 5);
    NEAR(outer->total_ns, 2020);
    NEAR(span_at(a, "outer/inner")->each.max_ns, 10);
    done(b, a);
}

/* A part before it that is not in the trace; one after it that never comes; numbers out of range. */
static void parts_that_are_missing(void **state)
{
    (void)state;
    builder *b = build_split();
    BEGIN(OUTER, 2000);
    NUMBER(CONTINUED, 5);
    END(3000);
    BEGIN(INNER, 3000);
    NUMBER(CONTINUES, 6);
    END(3500);
    BEGIN(OTHER, 4000);
    NUMBER(CONTINUED, 6); /* another name */
    NUMBER(CONTINUES, -1);
    NUMBER(CONTINUED, 1e300);
    NUMBER(SWAP, 1e300);
    END(4100);
    build_seal(b);
    build_end(b, 9000);
    tare__analysis *a = analyze(b);
    assert_int_equal(span_at(a, "outer")->calls, 1);
    assert_int_equal(span_at(a, "inner")->calls, 1);
    assert_int_equal(span_at(a, "inner")->end_missing, 1);
    NEAR(span_at(a, "inner")->each.max_ns, 250);
    assert_int_equal(span_at(a, "other")->calls, 1);
    done(b, a);
}

/* An epoch that a range of the program cuts is one epoch, and its index is its own. */
static void an_epoch_in_parts(void **state)
{
    (void)state;
    builder *b = build_split();
    BEGIN(OUTER, 2000);
    BEGIN(EPOCH, 2100);
    NUMBER(INDEX, 3);
    BEGIN(STEP, 2200);
    END(2300);
    NUMBER(CONTINUES, 1);
    END(3000);
    END(3000);
    BEGIN(EPOCH, 3000);
    NUMBER(CONTINUED, 1);
    BEGIN(STEP, 3100);
    END(3200);
    END(5000);
    build_seal(b);
    build_end(b, 6000);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_epochs, 1);
    assert_int_equal(a->epochs[0].count, 1);
    NEAR(a->epochs[0].each.max_ns, 1450);
    assert_int_equal(a->epochs[0].slowest[0].index, 3);
    assert_int_equal(a->steps[0].count, 2);
    assert_int_equal(span_at(a, "outer/epoch")->calls, 1);
    assert_int_equal(span_at(a, "epoch")->calls, 0);
    done(b, a);
}

/* A span that begins in a step which was none, and goes on behind it: its call moves with what was in the step. */
static void a_step_that_was_none(void **state)
{
    (void)state;
    builder *b = build_split();
    BEGIN(STEP, 2000);
    NUMBER(INDEX, -1);
    BEGIN(INNER, 2100);
    NUMBER(CONTINUES, 1);
    END(3000);
    END(3000);
    BEGIN(INNER, 3000);
    NUMBER(CONTINUED, 1);
    END(4000);
    /* One that begins before such a step, and ends in it. */
    BEGIN(OUTER, 5000);
    BEGIN(OTHER, 5100);
    NUMBER(CONTINUES, 2);
    END(5500);
    END(5500);
    BEGIN(STEP, 5600);
    NUMBER(INDEX, -1);
    BEGIN(OTHER, 5700);
    NUMBER(CONTINUED, 2);
    END(5900);
    END(6000);
    build_seal(b);
    build_end(b, 7000);
    tare__analysis *a = analyze(b);
    assert_int_equal(span_at(a, "(outside steps)/inner")->calls, 1);
    NEAR(span_at(a, "(outside steps)/inner")->each.max_ns, 950);
    NEAR(span_at(a, "(outside steps)/inner")->total_ns, 450);
    assert_int_equal(span_at(a, "inner")->calls, 0);
    assert_int_equal(span_at(a, "outer/other")->calls, 1);
    NEAR(span_at(a, "outer/other")->each.max_ns, 400);
    assert_int_equal(span_at(a, "(outside steps)/other")->calls, 0);
    NEAR(span_at(a, "(outside steps)/other")->total_ns, 100);
    done(b, a);
}

/* Events that no recorder writes: nothing contradicts itself, and no call is counted that was not begun. */
static void events_in_any_order(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        builder *b = build_split();
        uint32_t random = seed * 2654435761u;
        uint64_t t = 2000, begun = 0, calls = 0;
        for (int i = 0; i < 300; i++, t += random >> 28) {
            random = random * 1664525u + 1013904223u;
            uint32_t name = 1 + (random >> 12) % 5, value = 1 + (random >> 20) % 4; /* spans, a step, an epoch */
            switch ((random >> 8) % 9) {
            case 0:
            case 1:
                BEGIN(name, t);
                begun++;
                break;
            case 2: END(t); break;
            case 3: END_OF(name, t); break;
            case 4: NUMBER(CONTINUES, value); break;
            case 5: NUMBER(CONTINUED, value); break;
            case 6: NUMBER(SWAP, value); break;
            case 7: NUMBER(INDEX, (double)value - 2); break;
            default:
                NUMBER(SAMPLES, value);
                if (i % 50 == 0)
                    build_seal(b);
            }
        }
        build_seal(b);
        build_end(b, t + 1000);
        tare__analysis *a = analyze(b);
        for (size_t i = 0; i < a->n_spans; i++)
            calls += a->spans[i].calls;
        assert_true(calls <= begun);
        done(b, a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_one_call),   cmocka_unit_test(parts_in_several_blocks),
        cmocka_unit_test(calls_change_places),  cmocka_unit_test(parts_that_are_missing),
        cmocka_unit_test(an_epoch_in_parts),    cmocka_unit_test(a_step_that_was_none),
        cmocka_unit_test(events_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
