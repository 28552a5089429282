/* Tests of samples within spans, and of the line that a finding names: figures by hand on traces of known samples.
 * One thread.
 * Must not know how samples and spans are joined. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/findings/hot.h"
#include "analyze_helper.h"
#include "stacks_builder.h"

#define APP "/home/user/app/"
#define LIB "/usr/lib/python3.12/"
#define AT(ms) (BUILD_START + 2 * (ms) * MS) /* a tick is half a nanosecond */

static builder *b;
static stacks_builder s;
static uint32_t main_thread, read_line, parse_line, receive;

static void begin(void)
{
    b = build_single();
    s = stacks_start(b);
    main_thread = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t module = stacks_python(&s, 0, "<module>", APP "fetch.py", 90);
    read_line = stacks_python(&s, module, "read", APP "fetch.py", 31);
    parse_line = stacks_python(&s, module, "parse", APP "fetch.py", 42);
    receive = stacks_python(&s, read_line, "SocketIO.readinto", LIB "socket.py", 705);
}

static tare__analysis *finish(void)
{
    stacks_done(&s);
    build_end(b, AT(2000));
    return analyze(b);
}

static void span(uint32_t name, uint64_t from_ms, uint64_t to_ms)
{
    build_event(b, TARE__OP_BEGIN, name, AT(from_ms));
    build_event(b, TARE__OP_END, name, AT(to_ms));
}

static const tare__finding *finding(const tare__analysis *of, const char *id)
{
    for (size_t i = 0; i < of->n_findings; i++)
        if (strcmp(of->findings[i].id, id) == 0)
            return &of->findings[i];
    return NULL;
}

static bool ask(const tare__analysis *of, const char *span, tare__hot *hot)
{
    const tare__hot_question question = {.within = tare__in_name, .context = span, .time = "that time"};
    memset(hot, 0, sizeof *hot);
    return tare__hot_line(of, &question, hot);
}

/* ---- samples within spans ---------------------------------------------------------------------------------- */
/* 40 samples in "outer", 25 of them in "inner"; 20 in no span. Each stands for the 10 ms before it. */
static void a_sample_is_in_the_spans_open_at_its_time(void **state)
{
    (void)state;
    begin();
    build_event(b, TARE__OP_BEGIN, OUTER, AT(100));
    span(INNER, 150, 400);
    build_event(b, TARE__OP_END, OUTER, AT(500));
    build_seal(b);
    stacks_samples(&s, main_thread, parse_line, TARE__STATE_RUNNING, 15); /* 10 outside, 5 in outer */
    stacks_samples(&s, main_thread, receive, TARE__STATE_NETWORK, 25);    /* inner */
    stacks_samples(&s, main_thread, parse_line, TARE__STATE_RUNNING, 20); /* 10 in outer, 10 outside */
    tare__analysis *of = finish();
    tare__hot hot;
    assert_true(ask(of, "outer", &hot));
    NEAR(hot.all_ns / 1e6, 400);
    NEAR(hot.ns / 1e6, 250);
    NEAR(hot.share, 0.625);
    assert_int_equal(hot.line, 31);
    assert_string_equal(hot.function, "read");
    assert_string_equal(hot.inner, "SocketIO.readinto");
    assert_int_equal(hot.state, TARE__STATE_NETWORK);
    assert_int_equal(hot.samples, 40);
    assert_true(ask(of, "inner", &hot));
    NEAR(hot.all_ns / 1e6, 250);
    NEAR(hot.share, 1);
    assert_false(ask(of, "other", &hot));
    done(b, of);
}

/* Spans of one thread say nothing about another; ids of threads are reused. */
static void spans_are_of_their_thread(void **state)
{
    (void)state;
    begin();
    uint32_t other = stacks_thread(&s, 77, 78, 5, "worker"), again = stacks_thread(&s, 77, 77, 6, "MainThread");
    span(OUTER, 0, 1000);
    build_seal(b);
    stacks_samples(&s, main_thread, parse_line, TARE__STATE_RUNNING, 30);
    stacks_samples(&s, other, read_line, TARE__STATE_RUNNING, 90);
    s.ticks[again % 64] = AT(300);
    stacks_samples(&s, again, parse_line, TARE__STATE_RUNNING, 20);
    tare__analysis *of = finish();
    tare__hot hot;
    assert_true(ask(of, "outer", &hot));
    NEAR(hot.all_ns / 1e6, 500);
    assert_int_equal(hot.line, 42);
    done(b, of);
}

/* A program that is killed leaves its spans open. */
static void open_spans_last_to_the_end(void **state)
{
    (void)state;
    begin();
    build_event(b, TARE__OP_BEGIN, OUTER, AT(100));
    build_event(b, TARE__OP_BEGIN, INNER, AT(200));
    build_seal(b);
    stacks_samples(&s, main_thread, parse_line, TARE__STATE_RUNNING, 60);
    tare__analysis *of = finish();
    tare__hot hot;
    assert_true(ask(of, "inner", &hot));
    NEAR(hot.all_ns / 1e6, 400);
    done(b, of);
}

/* Events of a block of spans that comes after the samples in the file, and in several blocks. */
static void blocks_come_in_any_order(void **state)
{
    (void)state;
    begin();
    stacks_samples(&s, main_thread, read_line, TARE__STATE_RUNNING, 50);
    stacks_seal(&s);
    build_event(b, TARE__OP_BEGIN, OUTER, AT(5));
    build_seal(b);
    span(INNER, 205, 405);
    build_seal(b);
    build_event(b, TARE__OP_END, OUTER, AT(445));
    build_seal(b);
    tare__analysis *of = finish();
    tare__hot hot;
    assert_true(ask(of, "outer", &hot));
    NEAR(hot.all_ns / 1e6, 440);
    assert_true(ask(of, "inner", &hot));
    NEAR(hot.all_ns / 1e6, 200);
    done(b, of);
}

static void few_samples_name_no_line(void **state)
{
    (void)state;
    begin();
    span(OUTER, 0, 1000);
    build_seal(b);
    stacks_samples(&s, main_thread, parse_line, TARE__STATE_RUNNING, 19);
    tare__analysis *of = finish();
    tare__hot hot;
    assert_false(ask(of, "outer", &hot));
    assert_null(finding(of, "hot-code"));
    done(b, of);
}

/* ---- findings ------------------------------------------------------------------------------------------------- */
static void the_line_that_waits_is_named(void **state)
{
    (void)state;
    begin();
    stacks_samples(&s, main_thread, receive, TARE__STATE_NETWORK, 62);
    stacks_samples(&s, main_thread, parse_line, TARE__STATE_RUNNING, 38);
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "hot-code");
    assert_non_null(found);
    assert_string_equal(found->file, APP "fetch.py");
    assert_int_equal(found->line, 31);
    assert_string_equal(found->function, "read");
    assert_string_equal(found->inner, "SocketIO.readinto");
    assert_int_equal(found->line_state, TARE__STATE_NETWORK);
    NEAR(found->line_share, 0.62);
    assert_non_null(strstr(found->title, "waiting for the network"));
    assert_non_null(strstr(found->title, "fetch.py:31"));
    assert_non_null(strstr(found->evidence, "SocketIO.readinto"));
    assert_non_null(strstr(found->advice, "concurrently"));
    NEAR(found->gain, 0.31); /* 620 ms of 2 s */
    done(b, of);
}

/* No line has a fifth of the time, but one function has. */
static void a_function_is_named_by_its_lines(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", APP "flat.py", 1);
    for (uint32_t line = 0; line < 5; line++) {
        uint32_t flat = stacks_frame(&s, module, TARE__FRAME_PYTHON, "flat", APP "flat.py", 100, 101 + line);
        stacks_samples(&s, main_thread, flat, TARE__STATE_RUNNING, line == 3 ? 16 : 11);
    }
    for (uint32_t line = 0; line < 40; line++) {
        uint32_t one = stacks_frame(&s, module, TARE__FRAME_PYTHON, line % 2 ? "a" : "b", APP "flat.py",
                                    line % 2 ? 200 : 300, 201 + line);
        stacks_samples(&s, main_thread, one, TARE__STATE_RUNNING, 1);
    }
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "hot-code");
    assert_non_null(found);
    assert_string_equal(found->function, "flat");
    assert_int_equal(found->line, 104);
    NEAR(found->figures[0].value, 0.6);
    NEAR(found->line_share, 0.16);
    done(b, of);
}

/* The main thread waits for the end of threads that work: their line is the program's. */
static void a_thread_that_only_waits_is_not_blamed(void **state)
{
    (void)state;
    begin();
    uint32_t worker = stacks_thread(&s, 77, 78, 5, "worker");
    uint32_t module = stacks_python(&s, 0, "<module>", APP "wait.py", 8);
    uint32_t join = stacks_python(&s, module, "Thread.join", LIB "threading.py", 1100);
    stacks_samples(&s, main_thread, parse_line, TARE__STATE_RUNNING, 20);
    stacks_samples(&s, main_thread, join, TARE__STATE_LOCK, 80);
    stacks_samples(&s, worker, read_line, TARE__STATE_RUNNING, 80);
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "hot-code");
    assert_non_null(found);
    assert_int_equal(found->line, 31);
    assert_non_null(strstr(found->evidence, "worker"));
    done(b, of);
}

/* A pool of processes: the line of the workers is named beside the one that waits for them. */
static void what_others_do_meanwhile_is_said(void **state)
{
    (void)state;
    begin();
    uint32_t manager = stacks_thread(&s, 77, 78, 5, "manager");
    uint32_t module = stacks_python(&s, 0, "<module>", APP "pool.py", 8);
    uint32_t result = stacks_python(&s, module, "Condition.wait", LIB "threading.py", 327);
    uint32_t reads = stacks_python(&s, 0, "Connection._recv", LIB "multiprocessing/connection.py", 380);
    stacks_samples(&s, main_thread, result, TARE__STATE_LOCK, 100);
    stacks_samples(&s, manager, reads, TARE__STATE_RUNNING, 60); /* the thread that is most active has no own code */
    for (int64_t pid = 90; pid < 92; pid++) {
        uint32_t worker = stacks_thread(&s, pid, pid, 50, "MainThread");
        stacks_samples(&s, worker, parse_line, TARE__STATE_RUNNING, 40);
        stacks_samples(&s, worker, reads, TARE__STATE_PIPE, 60);
    }
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "hot-code");
    assert_non_null(found);
    assert_int_equal(found->line, 8);
    assert_non_null(strstr(found->title, "waiting for another thread"));
    assert_non_null(strstr(found->evidence, "waiting for another thread in Condition.wait. Meanwhile, 57.1 % of the "
                                            "time in which other threads work (800 ms of 1.40 s) is parse at "
                                            "fetch.py:42, running."));
    assert_null(strstr(found->advice, "Hold the lock"));
    done(b, of);
}

/* Tasks that sleep: none is active, and idle workers do not count. */
static void what_waiting_tasks_do_is_said(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", APP "pool.py", 8);
    uint32_t result = stacks_python(&s, module, "wait", LIB "threading.py", 320); /* before 3.11: without the class */
    uint32_t idle = stacks_python(&s, 0, "_worker", LIB "concurrent/futures/thread.py", 81);
    stacks_samples(&s, main_thread, result, TARE__STATE_LOCK, 100);
    for (int64_t tid = 78; tid < 80; tid++) {
        uint32_t worker = stacks_thread(&s, 77, tid, 5, "worker");
        stacks_samples(&s, worker, read_line, TARE__STATE_SLEEP, 40);
        stacks_samples(&s, worker, idle, TARE__STATE_LOCK, 60);
    }
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "hot-code");
    assert_non_null(found);
    assert_non_null(strstr(found->evidence, "Meanwhile, 100 % of the time of your code in other threads (800 ms of "
                                            "800 ms) is read at fetch.py:31, sleeping."));
    done(b, of);
}

/* A cell of a notebook has no file, but is code of the program. */
static void a_cell_of_a_notebook_is_named(void **state)
{
    (void)state;
    begin();
    stacks_samples(&s, main_thread, stacks_python(&s, 0, "slow", "<ipython-input-1-abc>", 4), TARE__STATE_RUNNING, 160);
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "hot-code");
    assert_non_null(found);
    assert_non_null(strstr(found->title, "slow at <ipython-input-1-abc>:4"));
    done(b, of);
}

/* Without its class, as before Python 3.11. */
static void an_idle_server_has_nothing_to_gain(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", APP "serve.py", 8);
    uint32_t selects = stacks_python(&s, module, "select", LIB "selectors.py", 416);
    stacks_samples(&s, main_thread, selects, TARE__STATE_NETWORK, 160);
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "hot-code");
    assert_non_null(found);
    assert_true(isnan(found->gain));
    assert_null(strstr(found->evidence, "Meanwhile"));
    done(b, of);
}

/* Its threads do the work: their line is what can be changed. */
static void a_server_works_in_other_threads(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", APP "serve.py", 8);
    uint32_t selects = stacks_python(&s, module, "select", LIB "selectors.py", 416);
    uint32_t renders = stacks_python(&s, 0, "render", APP "serve.py", 20);
    stacks_samples(&s, main_thread, selects, TARE__STATE_NETWORK, 160);
    stacks_samples(&s, stacks_thread(&s, 77, 90, 5, "handler"), renders, TARE__STATE_RUNNING, 30);
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "hot-code");
    assert_non_null(found);
    assert_int_equal(found->line, 8);
    assert_non_null(strstr(found->evidence, "Meanwhile, 100 % of the time in which other threads work (300 ms of 300 "
                                            "ms) is render at serve.py:20, running."));
    done(b, of);
}

static void an_import_is_no_algorithm(void **state)
{
    (void)state;
    begin();
    uint32_t module = stacks_python(&s, 0, "<module>", APP "train.py", 1);
    uint32_t system = stacks_python(&s, module, "_find_and_load", "<frozen importlib._bootstrap>", 1176);
    uint32_t torch = stacks_python(&s, system, "<module>", "/x/site-packages/torch/__init__.py", 10);
    stacks_samples(&s, main_thread, torch, TARE__STATE_RUNNING, 120);
    stacks_samples(&s, main_thread, parse_line, TARE__STATE_RUNNING, 60);
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "hot-code");
    assert_non_null(found);
    assert_int_equal(found->line, 1);
    assert_non_null(strstr(found->title, "imports at train.py:1"));
    assert_non_null(strstr(found->evidence, "Longest import of the run: torch 1.20 s."));
    assert_non_null(strstr(found->advice, "importtime"));
    done(b, of);
    /* Another line imports, too: what it imports is not said to be a part of this one. */
    begin();
    uint32_t other = stacks_python(&s, 0, "<module>", APP "train.py", 2);
    other = stacks_python(&s, other, "_find_and_load", "<frozen importlib._bootstrap>", 1176);
    other = stacks_python(&s, other, "<module>", "/x/site-packages/pandas/__init__.py", 10);
    module = stacks_python(&s, 0, "<module>", APP "train.py", 1);
    system = stacks_python(&s, module, "_find_and_load", "<frozen importlib._bootstrap>", 1176);
    torch = stacks_python(&s, system, "<module>", "/x/site-packages/torch/__init__.py", 10);
    stacks_samples(&s, main_thread, torch, TARE__STATE_RUNNING, 120);
    stacks_samples(&s, main_thread, other, TARE__STATE_RUNNING, 60);
    of = finish();
    found = finding(of, "hot-code");
    assert_non_null(strstr(found->evidence, "Longest imports of the run: torch 1.20 s, pandas 600 ms."));
    done(b, of);
}

static void threads_that_wait_for_the_gil(void **state)
{
    (void)state;
    begin();
    for (int64_t i = 1; i <= 3; i++) {
        uint32_t thread = stacks_thread(&s, 77, 77 + i, 5, "worker");
        for (int k = 0; k < 10; k++) {
            stacks_samples(&s, thread, parse_line, TARE__STATE_RUNNING, 3);
            stacks_samples(&s, thread, parse_line, TARE__STATE_GIL, 7);
        }
    }
    tare__analysis *of = finish();
    const tare__finding *found = finding(of, "gil");
    assert_non_null(found);
    assert_int_equal(found->line, 42);
    NEAR(found->figures[0].value, 0.7);
    assert_non_null(strstr(found->advice, "ProcessPoolExecutor"));
    assert_null(finding(of, "hot-code")); /* the same line */
    done(b, of);
}

/* The rule of operations speaks of the self time of "inner": samples of spans inside it do not count. */
static void an_operation_names_its_line(void **state)
{
    (void)state;
    begin();
    build_event(b, TARE__OP_BEGIN, OUTER, AT(0));
    build_event(b, TARE__OP_BEGIN, INNER, AT(10));
    build_event(b, TARE__OP_BEGIN, OTHER, AT(20));
    build_event(b, TARE__OP_END, OTHER, AT(420));
    build_event(b, TARE__OP_END, INNER, AT(920));
    build_event(b, TARE__OP_END, OUTER, AT(930));
    build_seal(b);
    stacks_samples(&s, main_thread, read_line, TARE__STATE_RUNNING, 42);
    stacks_samples(&s, main_thread, parse_line, TARE__STATE_RUNNING, 50);
    tare__analysis *of = finish();
    bool inner = false, other = false;
    for (size_t i = 0; i < of->n_findings; i++) {
        const tare__finding *found = &of->findings[i];
        if (strcmp(found->id, "operation") != 0)
            continue;
        inner |= strncmp(found->title, "inner ", 6) == 0 && found->line == 42;
        other |= strncmp(found->title, "other ", 6) == 0 && found->line == 31;
    }
    assert_true(inner && other);
    done(b, of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_in_the_spans_open_at_its_time),
        cmocka_unit_test(spans_are_of_their_thread),
        cmocka_unit_test(open_spans_last_to_the_end),
        cmocka_unit_test(blocks_come_in_any_order),
        cmocka_unit_test(few_samples_name_no_line),
        cmocka_unit_test(the_line_that_waits_is_named),
        cmocka_unit_test(a_function_is_named_by_its_lines),
        cmocka_unit_test(a_thread_that_only_waits_is_not_blamed),
        cmocka_unit_test(what_others_do_meanwhile_is_said),
        cmocka_unit_test(what_waiting_tasks_do_is_said),
        cmocka_unit_test(a_cell_of_a_notebook_is_named),
        cmocka_unit_test(an_idle_server_has_nothing_to_gain),
        cmocka_unit_test(a_server_works_in_other_threads),
        cmocka_unit_test(an_import_is_no_algorithm),
        cmocka_unit_test(threads_that_wait_for_the_gil),
        cmocka_unit_test(an_operation_names_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
