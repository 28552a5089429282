/* record_session: the recorder against its collector in one process: every kind of record, threads, drops,
 * pause, sessions one after the other. What goes in must come out, or be counted. */
#include "session_rig.h"

#include <errno.h>

#include "record/record.h"

#define POOL (4u << 20)

static tare_site span_site = TARE_SITE("span");
static tare_site inner_site = TARE_SITE("inner");

static void every_kind_comes_out(void **state)
{
    (void)state;
    static rig rig;
    rig_open(&rig, POOL);
    errno = 1234;
    for (int i = 0; i < 1000; i++) {
        TARE_STEP(i);
        TARE_BEGIN("load");
        TARE_NEXT("forward");
        TARE_SAMPLES(2);
        TARE_END();
        TARE_MARK("mark");
        TARE_COUNTER("counter", 1);
        TARE_AGGREGATE("aggregate");
        TARE_SAMPLED("sampled", 4);
        tare_begin_name("dynamic");
        tare_end(NULL);
        tare_complete_span span = {.track = tare_track("gpu", TARE_TRACK_GPU), .start = tare_now(), .end = tare_now()};
        tare_complete_name("kernel", &span);
    }
    assert_int_equal(errno, 1234);
    rig_totals totals = rig_close(&rig);
    assert_int_equal(totals.begins, 3000);
    assert_int_equal(totals.ends, 3000);
    assert_int_equal(totals.nexts, 1000);
    assert_int_equal(totals.marks, 1000);
    assert_int_equal(totals.counters, 1000);
    assert_int_equal(totals.numbers, 2000); /* samples, and the steps' index */
    assert_true(totals.value_sum == 1000 + 2000 + 999 * 500.0);
    assert_int_equal(totals.complete, 1000);
    assert_int_equal(totals.aggregate_calls, 2000);
    assert_in_range(totals.aggregate_timed, 1001, 1999);
    assert_int_equal(totals.unmatched, 0);
    assert_int_equal(totals.left_open, 0);
    assert_int_equal(totals.dropped_spans, 0);
    assert_false(totals.times_retreat);
}

#define THREADS 8
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define EACH 20000
#else
#define EACH 200000
#endif

static void *record_pairs(void *argument)
{
    (void)argument;
    for (int i = 0; i < EACH; i++) {
        tare_begin(&span_site);
        tare_begin(&inner_site);
        tare_end(&inner_site);
        tare_end(&span_site);
    }
    return NULL;
}

/* Kept and dropped add up exactly, whatever the collector's luck; what is kept is well nested. */
static void threads_while_draining(void **state)
{
    (void)state;
    static rig rig;
    rig_open(&rig, 1u << 20);
    rig_start_draining(&rig);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, record_pairs, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    rig_stop_draining(&rig);
    rig_totals totals = rig_close(&rig);
    assert_int_equal(totals.begins + totals.dropped_spans + totals.unattributed_spans, 2ull * THREADS * EACH);
    assert_int_equal(totals.begins, totals.ends + totals.lost_ends);
    assert_int_equal(totals.unmatched, 0);
    assert_int_equal(totals.left_open, 0);
    assert_true(totals.begins > 0);
    assert_false(totals.times_retreat);
}

static void *one_span(void *argument)
{
    (void)argument;
    TARE_SPAN("short life");
    TARE_AGGREGATE("short aggregate");
    return NULL;
}

static void threads_come_and_go(void **state)
{
    (void)state;
    static rig rig;
    rig_open(&rig, 1u << 20);
    rig_start_draining(&rig);
    for (int round = 0; round < 200; round++) {
        pthread_t threads[10];
        for (int i = 0; i < 10; i++)
            pthread_create(&threads[i], NULL, one_span, NULL);
        for (int i = 0; i < 10; i++)
            pthread_join(threads[i], NULL);
    }
    rig_stop_draining(&rig);
    rig_totals totals = rig_close(&rig);
    /* A span and an aggregate each; an aggregate without a cell counts as dropped too. */
    uint64_t lost = totals.dropped_spans + totals.unattributed_spans;
    assert_int_equal(totals.begins + totals.aggregate_calls + lost, 4000);
    assert_true(totals.begins > 1000);
    assert_int_equal(totals.left_open, 0);
}

/* Nobody drains: the pool is full soon, and what is open then still gets its ends. */
static void full_pool_drops_whole_spans(void **state)
{
    (void)state;
    static rig rig;
    rig_open(&rig, 1u << 20);
    uint64_t recorded = 0;
    for (int depth = 0; depth < 100; depth++, recorded++)
        tare_begin(&span_site);
    for (int i = 0; i < 100000; i++, recorded++) {
        tare_begin(&inner_site);
        tare_end(&inner_site);
    }
    for (int depth = 0; depth < 100; depth++)
        tare_end(&span_site);
    rig_totals totals = rig_close(&rig);
    assert_int_equal(totals.begins + totals.dropped_spans, recorded);
    assert_true(totals.dropped_spans > 50000);
    assert_int_equal(totals.begins, totals.ends);
    assert_int_equal(totals.lost_ends, 0);
    assert_int_equal(totals.unmatched, 0);
    assert_int_equal(totals.left_open, 0);
    assert_int_equal(totals.deepest, 101);
}

/* A collector that is killed while it makes the ring larger leaves the mark that it does. Each span of a new thread
 * would wait for it, and this test would take hours. */
static void a_ring_that_never_stops_growing(void **state)
{
    (void)state;
    static rig rig;
    rig_open(&rig, 1u << 20);
    for (int i = 0; i < 100000; i++) {
        tare_begin(&inner_site);
        tare_end(&inner_site);
    }
    atomic_store(&tare__here->ring->growing, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, record_pairs, NULL);
    pthread_join(thread, NULL);
    atomic_store(&tare__here->ring->growing, 0);
    rig_totals totals = rig_close(&rig);
    assert_int_equal(totals.begins + totals.dropped_spans + totals.unattributed_spans, 100000 + 2 * EACH);
    assert_int_equal(totals.begins, totals.ends);
}

/* More open spans than the reserve holds: the rest is told as a count. */
static void deep_nesting_in_a_full_pool(void **state)
{
    (void)state;
    static rig rig;
    rig_open(&rig, 1u << 20);
    for (int depth = 0; depth < 100000; depth++)
        tare_begin(&span_site);
    for (int depth = 0; depth < 100000; depth++)
        tare_end(&span_site);
    tare__collector_tick(&rig.collector); /* now there is room again */
    usleep(150000);
    tare__collector_tick(&rig.collector);
    tare_begin(&inner_site);
    tare_end(&inner_site);
    rig_totals totals = rig_close(&rig);
    assert_int_equal(totals.begins + totals.dropped_spans, 100001);
    assert_int_equal(totals.begins, totals.ends + totals.lost_ends);
    assert_int_equal(totals.left_open, 0);
    assert_int_equal(totals.unmatched, 0);
}

static void chained_spans_recover_from_a_full_pool(void **state)
{
    (void)state;
    static rig rig;
    rig_open(&rig, 1u << 20);
    tare_begin(&span_site);
    for (int i = 0; i < 100000; i++)
        tare_next(&inner_site);
    tare_end(&inner_site);
    rig_totals totals = rig_close(&rig);
    assert_int_equal(totals.begins + totals.nexts + totals.dropped_spans, 100001);
    assert_int_equal(totals.left_open, 0);
    assert_int_equal(totals.unmatched, 0);
}

static void pause_keeps_ends_of_open_spans(void **state)
{
    (void)state;
    static rig rig;
    rig_open(&rig, POOL);
    tare_begin(&span_site);
    tare_pause();
    assert_false(tare_recording());
    tare_begin(&inner_site); /* left out, and so is its end, although that comes after resume */
    TARE_MARK("left out");
    tare_begin(&inner_site);
    tare_end(&inner_site);
    tare_resume();
    assert_true(tare_recording());
    tare_begin(&inner_site);
    tare_end(&inner_site);
    tare_end(&inner_site);
    tare_pause();
    tare_end(&span_site);
    tare_resume();
    tare_begin(&span_site);
    tare_end(&span_site);
    rig_totals totals = rig_close(&rig);
    assert_int_equal(totals.begins, 3);
    assert_int_equal(totals.ends, 3);
    assert_int_equal(totals.marks, 0);
    assert_int_equal(totals.unmatched, 0);
    assert_int_equal(totals.dropped_spans, 0);
    assert_int_equal(totals.left_open, 0);
}

static void ends_and_begins_that_do_not_match(void **state)
{
    (void)state;
    static rig rig;
    rig_open(&rig, POOL);
    tare_end(&span_site); /* nothing is open */
    tare_begin(&span_site);
    tare_begin(&inner_site); /* never ended by itself */
    tare_end(&span_site);
    tare_end(&inner_site);
    tare_begin(&span_site); /* open at the end */
    rig_totals totals = rig_close(&rig);
    assert_int_equal(totals.begins, 3);
    assert_int_equal(totals.unmatched, 3);
    assert_int_equal(totals.left_open, 1);
}

static void sessions_one_after_the_other(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        static rig rig;
        tare_begin(&span_site); /* no session: nothing */
        tare_end(&span_site);
        rig_open(&rig, POOL);
        for (int i = 0; i < 10; i++) {
            tare_begin(&span_site);
            tare_end(&span_site);
        }
        pthread_t thread;
        pthread_create(&thread, NULL, one_span, NULL);
        pthread_join(thread, NULL);
        rig_totals totals = rig_close(&rig);
        assert_int_equal(totals.begins, 11);
        assert_int_equal(totals.ends, 11);
        assert_int_equal(totals.aggregate_calls, 1);
        assert_int_equal(totals.streams, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_out),
        cmocka_unit_test(threads_while_draining),
        cmocka_unit_test(threads_come_and_go),
        cmocka_unit_test(full_pool_drops_whole_spans),
        cmocka_unit_test(a_ring_that_never_stops_growing),
        cmocka_unit_test(deep_nesting_in_a_full_pool),
        cmocka_unit_test(chained_spans_recover_from_a_full_pool),
        cmocka_unit_test(pause_keeps_ends_of_open_spans),
        cmocka_unit_test(ends_and_begins_that_do_not_match),
        cmocka_unit_test(sessions_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
