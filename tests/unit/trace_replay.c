/* Tests of the replay: what a visitor is told and in which order, how spans end, what it may stop, how deep it goes.
 * One thread.
 * Must not know what visitors make of it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

typedef struct told {
    tare__text lines;
    uint64_t begun, ended, untimed, dropped, stop_at, calls;
} told;

static int tell(told *to)
{
    return ++to->calls == to->stop_at ? TARE_E_SYSTEM : 0;
}

static int begin(void *context, tare__replay_stream *stream, tare__replay_span *span, tare__replay_begin how)
{
    static const char *const words[] = {"", " next", " restored"};
    told *to = context;
    to->begun++;
    tare__text_format(&to->lines, "%u begin %u at %llu%s\n", stream->id, span->name,
                      (unsigned long long)span->begin, words[how]);
    return tell(to);
}

static int end(void *context, tare__replay_stream *stream, tare__replay_span *span, uint64_t ticks,
               tare__replay_how how)
{
    static const char *const words[] = {"", " by next", " with outer", " lost", " still open", " untimed"};
    told *to = context;
    to->ended++;
    to->untimed += how == TARE__REPLAY_UNTIMED;
    tare__text_format(&to->lines, "%u end %u at %llu%s\n", stream->id, span->name, (unsigned long long)ticks,
                      words[how]);
    return tell(to);
}

static int unknown_end(void *context, tare__replay_stream *stream, const tare__replay_unknown *end)
{
    told *to = context;
    tare__text_format(&to->lines, "%u end of %u at %llu%s\n", stream->id, end->name, (unsigned long long)end->ticks,
                      end->unmatched ? " unmatched" : "");
    return tell(to);
}

static int dropped_ends(void *context, tare__replay_stream *stream, uint64_t ticks, uint64_t lost)
{
    told *to = context;
    tare__text_format(&to->lines, "%u lost %llu ends at %llu\n", stream->id, (unsigned long long)lost,
                      (unsigned long long)ticks);
    return tell(to);
}

static int mark(void *context, tare__replay_stream *stream, uint32_t name, uint64_t ticks)
{
    told *to = context;
    tare__text_format(&to->lines, "%u mark %u at %llu\n", stream->id, name, (unsigned long long)ticks);
    return tell(to);
}

static int counter(void *context, tare__replay_stream *stream, uint32_t name, uint64_t ticks, double value)
{
    told *to = context;
    tare__text_format(&to->lines, "%u counter %u at %llu is %g\n", stream->id, name, (unsigned long long)ticks,
                      value);
    return tell(to);
}

static int number(void *context, tare__replay_stream *stream, tare__replay_span *innermost, uint32_t name,
                  uint64_t ticks, double value)
{
    told *to = context;
    (void)ticks;
    tare__text_format(&to->lines, "%u number %u of %u is %g\n", stream->id, name, innermost ? innermost->name : 0,
                      value);
    return tell(to);
}

static int complete(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    told *to = context;
    tare__text_format(&to->lines, "%u complete %u, the first %u\n", stream, n, spans[0].name);
    return tell(to);
}

static int samples(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    told *to = context;
    tare__text_format(&to->lines, "series %u: %u values, the last at %llu is %lld\n", series, n,
                      (unsigned long long)ticks[n - 1], (long long)values[n - 1]);
    return tell(to);
}

static int aggregate(void *context, uint32_t stream, const tare__aggregate *cell)
{
    told *to = context;
    tare__text_format(&to->lines, "%u aggregate %u of %llu calls\n", stream, cell->name,
                      (unsigned long long)cell->count);
    return tell(to);
}

static void drop(void *context, tare__replay_span *span)
{
    (void)span;
    ((told *)context)->dropped++;
}

static int replay(builder *b, told *to)
{
    const tare__replay_visitor visitor = {.context = to,
                                          .begin = begin,
                                          .end = end,
                                          .unknown_end = unknown_end,
                                          .dropped_ends = dropped_ends,
                                          .mark = mark,
                                          .counter = counter,
                                          .number = number,
                                          .complete = complete,
                                          .aggregate = aggregate,
                                          .samples = samples,
                                          .drop = drop};
    tare__trace *trace;
    tare__error error = {""};
    assert_int_equal(tare__trace_open(build_file(b), &trace, &error), 0);
    int status = tare__trace_replay(trace, &visitor, &error);
    tare__trace_close(trace);
    return status;
}

static void build_everything(builder *b)
{
    static const int64_t values[] = {5, 7};
    BEGIN(OUTER, 2000);
    NUMBER(SAMPLES, 3);
    BEGIN(INNER, 2010);
    NEXT(OTHER, 2020);
    MARK(SAVED, 2030);
    COUNTER(LOSS, 2040, 0.5);
    build_seal(b);
    BEGIN(INNER, 2050);
    END_OF(OUTER, 2060);
    NUMBER(SAMPLES, 4); /* of no span */
    END(2070);          /* of no span */
    BEGIN(STEP, 2080);
    LOST(1);
    BEGIN(EPOCH, 2090);
    build_seal(b);
    build_complete_and_aggregate(b);
    build_series(b, 1, TARE__M_RSS, TARE__SUBJECT_PROCESS, 77, "train");
    build_samples(b, 1, 2000, 10, values, 2);
}

static void everything_is_told_in_order(void **state)
{
    (void)state;
    builder *b = build_single();
    told to = {0};
    build_everything(b);
    assert_int_equal(replay(b, &to), 0);
    assert_string_equal(to.lines.data, "1 begin 1 at 2000\n"
                                       "1 number 7 of 1 is 3\n"
                                       "1 begin 2 at 2010\n"
                                       "1 end 2 at 2020 by next\n"
                                       "1 begin 3 at 2020 next\n"
                                       "1 mark 9 at 2030\n"
                                       "1 counter 8 at 2040 is 0.5\n"
                                       "1 begin 2 at 2050\n"
                                       "1 end 2 at 2060 with outer\n"
                                       "1 end 3 at 2060 with outer\n"
                                       "1 end 1 at 2060\n"
                                       "1 number 7 of 0 is 4\n"
                                       "1 end of 0 at 2070 unmatched\n"
                                       "1 begin 4 at 2080\n"
                                       "1 end 4 at 2080 lost\n"
                                       "1 lost 1 ends at 2080\n"
                                       "1 begin 5 at 2090\n"
                                       "1 complete 1, the first 2\n"
                                       "1 aggregate 3 of 1 calls\n"
                                       "series 1: 2 values, the last at 2010 is 7\n"
                                       "1 end 5 at 2090 still open\n");
    assert_int_equal(to.dropped, 0);
    tare__text_free(&to.lines);
    builder_free(b);
}

static void a_gap_restores_what_stayed_open(void **state)
{
    (void)state;
    builder *b = build_single();
    told to = {0};
    BEGIN(OUTER, 2000);
    BEGIN(INNER, 2010);
    build_seal(b);
    END(2020);
    BEGIN(OTHER, 2030);
    build_lose(b, build_seal(b));
    END(2040);
    END(2050);
    build_seal(b);
    assert_int_equal(replay(b, &to), 0);
    assert_string_equal(to.lines.data, "1 begin 1 at 2000\n"
                                       "1 begin 2 at 2010\n"
                                       "1 end 2 at 2010 lost\n"
                                       "1 begin 3 at 2030 restored\n"
                                       "1 end 3 at 2040\n"
                                       "1 end 1 at 2050\n");
    tare__text_free(&to.lines);
    builder_free(b);
}

/* A main thread ends with its process, another where it was last seen. */
static void open_spans_end_with_their_process(void **state)
{
    (void)state;
    builder *b = build_start();
    told to = {0};
    build_process_fields(b, 1, 77);
    build_number(b, TARE__FIELD_LEFT_TICKS, 9000);
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_stream(b, 1, 1, 77, "main");
    build_stream(b, 2, 1, 78, "worker");
    for (b->stream = 1; b->stream <= 2; b->stream++) {
        BEGIN(OUTER, 2000);
        build_seal(b);
    }
    assert_int_equal(replay(b, &to), 0);
    assert_non_null(strstr(to.lines.data, "1 end 1 at 9000 still open\n"));
    assert_non_null(strstr(to.lines.data, "2 end 1 at 2000 still open\n"));
    tare__text_free(&to.lines);
    builder_free(b);
}

/* Whatever call it is that a visitor refuses, nothing comes after, and what open spans hold is given back. */
static void a_visitor_may_stop_anywhere(void **state)
{
    (void)state;
    builder *b = build_single();
    build_everything(b);
    for (uint64_t stop = 1;; stop++) {
        told to = {.stop_at = stop};
        int status = replay(b, &to);
        tare__text_free(&to.lines);
        assert_int_equal(to.dropped, to.begun - to.ended);
        if (!status) {
            assert_int_equal(stop, to.calls + 1);
            break;
        }
        assert_int_equal(status, TARE_E_SYSTEM);
        assert_int_equal(to.calls, stop);
    }
    builder_free(b);
}

/* A few hundred bytes can claim any depth: spans beyond what is kept are told, without a duration. */
static void depth_is_bounded_and_all_are_told(void **state)
{
    (void)state;
    builder *b = build_single();
    told to = {0};
    for (uint64_t block = 0; block < 5; block++) {
        for (uint64_t i = 0; i < TARE__EVENTS_MAX; i++)
            BEGIN(OUTER, 2000 + block);
        build_seal(b);
    }
    for (uint64_t i = 0; i < TARE__EVENTS_MAX; i++)
        END(3000);
    build_seal(b);
    assert_int_equal(replay(b, &to), 0);
    assert_int_equal(to.begun, 5 * TARE__EVENTS_MAX);
    assert_int_equal(to.ended, to.begun);
    assert_int_equal(to.untimed, TARE__EVENTS_MAX);
    tare__text_free(&to.lines);
    builder_free(b);
}

/* Deeper than a block lists: they lie on the listed ones, below what begins later, and an end may be of one of them. */
static void spans_not_listed_take_their_ends(void **state)
{
    (void)state;
    builder *b = build_single();
    told to = {0};
    for (uint32_t i = 0; i < TARE__STACK_LISTED + 2; i++)
        BEGIN(OUTER, 2000);
    build_lose(b, build_seal(b));
    BEGIN(INNER, 2010);
    END(2020);
    END(2030); /* one of the two */
    BEGIN(INNER, 2040);
    END_OF(OTHER, 2050); /* the other, and what is in it */
    LOST(1);
    build_seal(b);
    assert_int_equal(replay(b, &to), 0);
    const char *events = strstr(to.lines.data, "1 begin 2 at 2010\n");
    const char *wanted = "1 begin 2 at 2010\n"
                         "1 end 2 at 2020\n"
                         "1 end of 0 at 2030\n"
                         "1 begin 2 at 2040\n"
                         "1 end 2 at 2050 with outer\n"
                         "1 end of 3 at 2050\n"
                         "1 end 1 at 2050 lost\n"
                         "1 lost 1 ends at 2050\n";
    assert_non_null(events);
    assert_memory_equal(events, wanted, strlen(wanted));
    assert_int_equal(to.begun, to.ended);
    tare__text_free(&to.lines);
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_told_in_order),
        cmocka_unit_test(a_gap_restores_what_stayed_open),
        cmocka_unit_test(open_spans_end_with_their_process),
        cmocka_unit_test(a_visitor_may_stop_anywhere),
        cmocka_unit_test(depth_is_bounded_and_all_are_told),
        cmocka_unit_test(spans_not_listed_take_their_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
