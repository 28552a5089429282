/* Tests of sampled threads over time: boxes by hand arithmetic on traces of known samples.
 * One thread.
 * Must not know how boxes are merged. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"
#include "stacks_builder.h"

#define APP "/home/user/app/"
#define LIB "/usr/lib/python3.12/"

static builder *b;
static stacks_builder s;
static uint32_t reads, receive, parse;

static void begin(void)
{
    b = build_single();
    s = stacks_start(b);
    uint32_t module = stacks_python(&s, 0, "<module>", APP "fetch.py", 90);
    reads = stacks_python(&s, module, "read", APP "fetch.py", 31);
    receive = stacks_python(&s, reads, "SocketIO.readinto", LIB "socket.py", 705);
    parse = stacks_python(&s, module, "parse", APP "fetch.py", 42);
}

static tare__timeline *draw(size_t boxes)
{
    tare__trace *trace;
    tare__timeline *made;
    tare__error error = {""};
    stacks_done(&s);
    build_end(b, BUILD_START + 2 * 2000 * MS);
    assert_int_equal(tare__trace_open(build_file(b), &trace, &error), 0);
    assert_int_equal(tare__analyze_timeline(trace, boxes, &made, &error), 0);
    tare__trace_close(trace);
    return made;
}

/* The box number `at` of a level of a lane. */
static const tare__box *box_at(const tare__timeline *of, uint32_t lane, uint32_t depth, size_t at)
{
    for (size_t i = 0; i < of->n_sampled_boxes; i++)
        if (of->sampled_boxes[i].lane == lane && of->sampled_boxes[i].depth == depth && at-- == 0)
            return &of->sampled_boxes[i];
    return NULL;
}

static void samples_in_a_row_are_a_box(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread"), idle = stacks_thread(&s, 77, 78, 5, "idle");
    stacks_samples(&s, main, receive, TARE__STATE_NETWORK, 20);
    stacks_samples(&s, main, reads, TARE__STATE_RUNNING, 10);
    stacks_samples(&s, main, parse, TARE__STATE_RUNNING, 30);
    stacks_samples(&s, idle, parse, TARE__STATE_SLEEP, 60);
    tare__timeline *of = draw(10000);
    assert_int_equal(of->n_sampled_lanes, 2);
    assert_non_null(strstr(of->sampled_lanes[0].name, "MainThread")); /* the most active one first */
    assert_int_equal(of->sampled_lanes[0].spans, 60);
    const tare__box *waits = box_at(of, 0, 0, 0), *runs = box_at(of, 0, 0, 1);
    assert_int_equal(waits->name, TARE__STATE_NETWORK);
    NEAR(waits->at_ns / 1e6, 0);
    NEAR(waits->lasts_ns / 1e6, 200);
    assert_int_equal(runs->name, TARE__STATE_RUNNING);
    NEAR(runs->lasts_ns / 1e6, 400);
    assert_null(box_at(of, 0, 0, 2));
    /* The function of own code stays the same while it calls a library. */
    assert_string_equal(of->sampled_names[box_at(of, 0, 1, 0)->name], "read · fetch.py");
    NEAR(box_at(of, 0, 1, 0)->lasts_ns / 1e6, 300);
    assert_string_equal(of->sampled_names[box_at(of, 0, 1, 1)->name], "parse · fetch.py");
    const tare__sampled_frame *inner = &of->sampled_frames[box_at(of, 0, 2, 0)->name];
    assert_string_equal(inner->name, "SocketIO.readinto");
    assert_int_equal(inner->line, 705);
    const tare__sampled_frame *caller = &of->sampled_frames[inner->caller];
    assert_string_equal(caller->name, "read");
    assert_int_equal(of->sampled_frames[caller->caller].caller, 0);
    assert_int_equal(of->n_lanes, 0); /* no spans: peaks and spans know nothing of these lanes */
    tare__timeline_free(of);
    builder_free(b);
}

/* Time without samples is no box. */
static void a_gap_stays_a_gap(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    stacks_samples(&s, main, parse, TARE__STATE_RUNNING, 10);
    s.ticks[main % 64] += 2 * 500 * MS;
    stacks_samples(&s, main, parse, TARE__STATE_RUNNING, 10);
    tare__timeline *of = draw(10000);
    NEAR(box_at(of, 0, 1, 0)->lasts_ns / 1e6, 100);
    NEAR(box_at(of, 0, 1, 1)->at_ns / 1e6, 600);
    NEAR(box_at(of, 0, 1, 1)->lasts_ns / 1e6, 100);
    tare__timeline_free(of);
    builder_free(b);
}

/* 3,000 changes in few boxes: each has the name with most of its time, and all time is in a box. */
static void many_changes_are_merged(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    for (int i = 0; i < 1500; i++) {
        stacks_full(&s, main, parse, TARE__STATE_RUNNING, 0, MS, 0, 0);
        stacks_full(&s, main, receive, TARE__STATE_NETWORK, 0, MS / 4, 0, 0);
    }
    tare__timeline *of = draw(1024);
    assert_true(of->n_sampled_boxes < 300);
    double sum = 0, end = 0;
    for (size_t i = 0; box_at(of, 0, 1, i); i++) {
        const tare__box *box = box_at(of, 0, 1, i);
        assert_true(box->at_ns >= end - 1);
        end = box->at_ns + box->lasts_ns;
        sum += box->lasts_ns;
        if (box->calls > 3) {
            assert_string_equal(of->sampled_names[box->name], "parse · fetch.py");
            assert_true(box->mixed);
            assert_true(box->busy_ns < 0.95 * box->lasts_ns && box->busy_ns > 0.6 * box->lasts_ns);
        }
    }
    NEAR(sum / 1e6, 1875);
    tare__timeline_free(of);
    builder_free(b);
}

static void samples_without_a_stack(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    stacks_samples(&s, main, 0, TARE__STATE_RUNNING, 10);
    tare__timeline *of = draw(10000);
    assert_string_equal(of->sampled_names[box_at(of, 0, 1, 0)->name], "(no stack)");
    assert_int_equal(box_at(of, 0, 2, 0)->name, 0);
    tare__timeline_free(of);
    builder_free(b);
}

/* Samples that the kernel takes after 10 ms of CPU time stand for waits for a CPU, too. */
static void a_thread_that_gets_little_of_a_cpu_waits(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    stacks_full(&s, main, parse, TARE__STATE_RUNNING, 0, 50 * MS, 10 * MS, 40 * MS);
    stacks_full(&s, main, parse, TARE__STATE_RUNNABLE, 0, 20 * MS, 15 * MS, 5 * MS);
    stacks_full(&s, main, parse, TARE__STATE_RUNNING, 0, 10 * MS, 10 * MS, 0);
    stacks_full(&s, main, parse, TARE__STATE_NETWORK, 0, 10 * MS, 5 * MS, 5 * MS);
    tare__timeline *of = draw(10000);
    static const struct { uint32_t state; double ms; } wanted[] = {
        {TARE__STATE_RUNNABLE, 40}, {TARE__STATE_RUNNING, 25}, {TARE__STATE_RUNNABLE, 5}, {TARE__STATE_RUNNING, 10},
        {TARE__STATE_NETWORK, 10}};
    for (size_t i = 0; i < TARE__COUNT_OF(wanted); i++) {
        assert_int_equal(box_at(of, 0, 0, i)->name, wanted[i].state);
        NEAR(box_at(of, 0, 0, i)->lasts_ns / 1e6, wanted[i].ms);
    }
    assert_null(box_at(of, 0, 0, TARE__COUNT_OF(wanted)));
    NEAR(box_at(of, 0, 1, 0)->lasts_ns / 1e6, 90); /* the function is the same all the time */
    tare__timeline_free(of);
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_in_a_row_are_a_box),
        cmocka_unit_test(a_gap_stays_a_gap),
        cmocka_unit_test(many_changes_are_merged),
        cmocka_unit_test(samples_without_a_stack),
        cmocka_unit_test(a_thread_that_gets_little_of_a_cpu_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
