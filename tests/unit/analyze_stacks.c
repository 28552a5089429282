/* Tests of the tables of sampled stacks: figures by hand arithmetic on traces of known samples.
 * One thread.
 * Must not know how the analysis works. */
#define _GNU_SOURCE
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"
#include "stacks_builder.h"

#define APP "/home/user/app/"
#define LIB "/usr/lib/python3.12/"
#define SITE "/home/user/app/.venv/lib/python3.12/site-packages/"

static builder *b;
static stacks_builder s;

static void begin(void)
{
    b = build_single();
    s = stacks_start(b);
}

static tare__analysis *finish(void)
{
    stacks_done(&s);
    build_end(b, BUILD_START + 2 * 1000 * MS);
    return analyze(b);
}

static const tare__function_row *function_at(const tare__analysis *of, const char *name)
{
    for (size_t i = 0; i < of->n_functions; i++)
        if (strcmp(of->functions[i].function, name) == 0)
            return &of->functions[i];
    fail_msg("no function %s", name);
    return NULL;
}

static const tare__line_row *line_at(const tare__analysis *of, const char *file, uint32_t line)
{
    for (size_t i = 0; i < of->n_lines; i++)
        if (of->lines[i].line == line && of->lines[i].file && strcmp(of->lines[i].file, file) == 0)
            return &of->lines[i];
    fail_msg("no line %s:%u", file, line);
    return NULL;
}

static const tare__package_row *package_at(const tare__analysis *of, const char *name)
{
    for (size_t i = 0; i < of->n_packages; i++)
        if (strcmp(of->packages[i].package, name) == 0)
            return &of->packages[i];
    fail_msg("no package %s", name);
    return NULL;
}

static const tare__sampled_thread_row *thread_at(const tare__analysis *of, const char *name)
{
    for (size_t i = 0; i < of->n_sampled_threads; i++)
        if (of->sampled_threads[i].name && strcmp(of->sampled_threads[i].name, name) == 0)
            return &of->sampled_threads[i];
    fail_msg("no thread %s", name);
    return NULL;
}

#define IS_MS(value, expected) NEAR((value) / 1e6, expected)
#define STATE_MS(row, state, expected) IS_MS((row)->of.ns[TARE__STATE_##state], expected)

/* ---- self, total, own code -------------------------------------------------------------------------------- */
static void nothing_without_samples(void **state)
{
    (void)state;
    begin();
    tare__analysis *of = finish();
    assert_int_equal(of->n_functions + of->n_lines + of->n_packages + of->n_sampled_threads + of->stacks.n, 0);
    assert_int_equal(of->stacks.leading, TARE__NO_ROW);
    done(b, of);
}

/* 62 samples in recv_into, called at fetch.py:31; 30 in parse; 8 in json, called by parse at another line. */
static void time_belongs_to_lines_of_own_code(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t module = stacks_python(&s, 0, "<module>", APP "fetch.py", 90);
    uint32_t get = stacks_python(&s, module, "get", APP "fetch.py", 31);
    uint32_t receive = stacks_python(&s, get, "SocketIO.readinto", LIB "socket.py", 705);
    uint32_t parse = stacks_python(&s, module, "parse", APP "fetch.py", 42);
    uint32_t calls = stacks_python(&s, module, "parse", APP "fetch.py", 43);
    uint32_t json = stacks_python(&s, calls, "JSONDecoder.decode", LIB "json/decoder.py", 340);
    stacks_samples(&s, main, receive, TARE__STATE_NETWORK, 62);
    stacks_samples(&s, main, parse, TARE__STATE_RUNNING, 30);
    stacks_samples(&s, main, json, TARE__STATE_RUNNING, 8);
    tare__analysis *of = finish();

    const tare__line_row *hot = line_at(of, APP "fetch.py", 31);
    assert_ptr_equal(hot, &of->lines[0]);
    assert_true(hot->own);
    IS_MS(hot->own_ns, 620);
    IS_MS(hot->self_ns, 0);
    IS_MS(hot->total_ns, 620);
    STATE_MS(hot, NETWORK, 620);
    NEAR(hot->main_share, 0.62);
    NEAR(hot->share, 0.62);
    assert_string_equal(hot->function, "get");
    assert_string_equal(hot->inner, "SocketIO.readinto");
    IS_MS(hot->inner_ns, 620);
    assert_int_equal(hot->samples, 62);
    const tare__line_row *library = line_at(of, LIB "socket.py", 705);
    assert_false(library->own);
    IS_MS(library->self_ns, 620);
    assert_true(isnan(library->own_ns));
    const tare__line_row *plain = line_at(of, APP "fetch.py", 42);
    IS_MS(plain->own_ns, 300);
    IS_MS(plain->self_ns, 300);
    assert_null(plain->inner);
    assert_true(isnan(plain->inner_ns));
    IS_MS(line_at(of, APP "fetch.py", 90)->own_ns, 0);
    IS_MS(line_at(of, APP "fetch.py", 90)->total_ns, 1000);

    const tare__function_row *parsed = function_at(of, "parse");
    IS_MS(parsed->self_ns, 300);
    IS_MS(parsed->total_ns, 380);
    assert_int_equal(parsed->samples, 30);
    assert_int_equal(parsed->line, 40);
    NEAR(parsed->self_share, 0.3);
    NEAR(parsed->total_share, 0.38);
    STATE_MS(parsed, RUNNING, 300);
    IS_MS(function_at(of, "<module>")->self_ns, 0);
    NEAR(function_at(of, "<module>")->total_share, 1);

    IS_MS(package_at(of, "your code")->self_ns, 300);
    IS_MS(package_at(of, "your code")->total_ns, 1000);
    IS_MS(package_at(of, "socket")->self_ns, 620);
    STATE_MS(package_at(of, "socket"), NETWORK, 620);
    IS_MS(package_at(of, "json")->self_ns, 80);
    assert_string_equal(package_at(of, "json")->kind, "standard library");
    NEAR(package_at(of, "json")->main_share, 0.08);

    const tare__sampled_thread_row *thread = thread_at(of, "MainThread");
    assert_true(thread->main && thread->leading);
    assert_int_equal(thread->process, 0);
    assert_int_equal(thread->samples, 100);
    IS_MS(thread->wall_ns, 1000);
    IS_MS(thread->active_ns, 1000);
    STATE_MS(thread, NETWORK, 620);
    STATE_MS(thread, RUNNING, 380);
    IS_MS(thread->from_ns, 0);
    IS_MS(thread->to_ns, 1000);
    done(b, of);
}

static void recursion_counts_once(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t at = stacks_python(&s, 0, "walk", APP "walk.py", 11), leaf = 0;
    for (int i = 0; i < 20; i++) {
        at = stacks_python(&s, at, "walk", APP "walk.py", 12);
        if (i % 2)
            at = stacks_python(&s, at, "visit", APP "walk.py", 31);
        leaf = stacks_python(&s, at, "leaf", APP "walk.py", 51);
        stacks_samples(&s, main, at, TARE__STATE_RUNNING, 1);
        stacks_samples(&s, main, leaf, TARE__STATE_RUNNING, 2);
    }
    tare__analysis *of = finish();
    IS_MS(function_at(of, "walk")->total_ns, 600);
    IS_MS(function_at(of, "walk")->self_ns, 100);
    IS_MS(function_at(of, "visit")->self_ns, 100);
    IS_MS(function_at(of, "visit")->total_ns, 600 - 30); /* the first three samples are above the first visit */
    IS_MS(function_at(of, "leaf")->total_ns, 400);
    IS_MS(line_at(of, APP "walk.py", 12)->total_ns, 600);
    IS_MS(line_at(of, APP "walk.py", 11)->total_ns, 600);
    IS_MS(package_at(of, "your code")->total_ns, 600);
    NEAR(function_at(of, "walk")->total_share, 1);
    done(b, of);
}

/* ---- states ------------------------------------------------------------------------------------------------- */
/* Five samples run at one line, five wait at another; each has the same counters. */
static tare__analysis *half_and_half(uint64_t cpu_ms, uint64_t queue_ms)
{
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t runs = stacks_python(&s, 0, "runs", APP "a.py", 10), reads = stacks_python(&s, 0, "reads", APP "a.py", 20);
    for (int i = 0; i < 5; i++) {
        stacks_full(&s, main, runs, TARE__STATE_RUNNING, 0, 10 * MS, cpu_ms * MS, queue_ms * MS);
        stacks_full(&s, main, reads, TARE__STATE_DISK, 0, 10 * MS, cpu_ms * MS, queue_ms * MS);
    }
    return finish();
}

static void counters_that_agree_with_states(void **state)
{
    (void)state;
    tare__analysis *of = half_and_half(4, 1);
    STATE_MS(thread_at(of, "MainThread"), RUNNING, 40);
    STATE_MS(thread_at(of, "MainThread"), RUNNABLE, 10);
    STATE_MS(thread_at(of, "MainThread"), DISK, 50);
    STATE_MS(function_at(of, "runs"), RUNNING, 40);
    STATE_MS(function_at(of, "runs"), RUNNABLE, 10);
    STATE_MS(function_at(of, "reads"), RUNNING, 0);
    STATE_MS(function_at(of, "reads"), DISK, 50);
    done(b, of);
}

static void counters_with_more_time_on_a_cpu(void **state)
{
    (void)state;
    tare__analysis *of = half_and_half(6, 2);
    STATE_MS(thread_at(of, "MainThread"), RUNNING, 60);
    STATE_MS(thread_at(of, "MainThread"), RUNNABLE, 20);
    STATE_MS(thread_at(of, "MainThread"), DISK, 20);
    STATE_MS(function_at(of, "runs"), RUNNING, 37.5);
    STATE_MS(function_at(of, "runs"), RUNNABLE, 12.5);
    STATE_MS(function_at(of, "reads"), DISK, 20);
    STATE_MS(function_at(of, "reads"), RUNNING, 22.5);
    STATE_MS(function_at(of, "reads"), RUNNABLE, 7.5);
    IS_MS(function_at(of, "reads")->self_ns, 50);
    done(b, of);
}

/* Running at its samples, and without a CPU: a hypervisor or a CPU limit took it. */
static void counters_with_less_time_on_a_cpu(void **state)
{
    (void)state;
    tare__analysis *of = half_and_half(2, 0);
    STATE_MS(thread_at(of, "MainThread"), RUNNING, 20);
    STATE_MS(thread_at(of, "MainThread"), RUNNABLE, 30);
    STATE_MS(thread_at(of, "MainThread"), DISK, 50);
    STATE_MS(function_at(of, "runs"), RUNNING, 20);
    STATE_MS(function_at(of, "runs"), RUNNABLE, 30);
    STATE_MS(function_at(of, "reads"), DISK, 50);
    done(b, of);
}

/* Hardly any time on a CPU since the last sample: it has just woken up. */
static void a_thread_that_has_just_woken_up_was_waiting(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t polls = stacks_python(&s, 0, "polls", APP "a.py", 10);
    for (int i = 0; i < 5; i++) {
        stacks_full(&s, main, polls, TARE__STATE_RUNNING, 0, 10 * MS, MS / 2, 0);
        stacks_full(&s, main, polls, TARE__STATE_SLEEP, 0, 10 * MS, MS / 2, 0);
    }
    tare__analysis *of = finish();
    STATE_MS(function_at(of, "polls"), RUNNING, 5);
    STATE_MS(function_at(of, "polls"), SLEEP, 95);
    done(b, of);
}

/* 2 s alone on a CPU, then 4 s in which others have half of it. */
static void contention_belongs_to_the_lines_that_ran_then(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t alone = stacks_python(&s, 0, "alone", APP "a.py", 10);
    uint32_t shared = stacks_python(&s, 0, "shared", APP "a.py", 20);
    for (int i = 0; i < 200; i++)
        stacks_full(&s, main, alone, TARE__STATE_RUNNING, 0, 10 * MS, 10 * MS, 0);
    for (int i = 0; i < 400; i++)
        stacks_full(&s, main, shared, i % 2 ? TARE__STATE_RUNNING : TARE__STATE_RUNNABLE, 0, 10 * MS, 5 * MS, 5 * MS);
    tare__analysis *of = finish();
    STATE_MS(thread_at(of, "MainThread"), RUNNING, 4000);
    STATE_MS(thread_at(of, "MainThread"), RUNNABLE, 2000);
    STATE_MS(function_at(of, "alone"), RUNNING, 2000);
    STATE_MS(function_at(of, "alone"), RUNNABLE, 0);
    STATE_MS(function_at(of, "shared"), RUNNING, 2000);
    STATE_MS(function_at(of, "shared"), RUNNABLE, 2000);
    done(b, of);
}

/* Whatever the counters of a window are, the sums of the thread are those of all of its counters. */
static void windows_keep_the_sums_of_the_counters(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread"), random = 1;
    double cpu = 0, queue = 0, found_cpu = 0, found_queue = 0, found_disk = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t stack = stacks_python(&s, 0, i % 3 ? "f" : "g", APP "a.py", 10 + (uint32_t)(i / 100));
        random = random * 1664525u + 1013904223u;
        uint64_t on = (random >> 8) % (7 * MS), ready = i > 500 ? (random >> 4) % (3 * MS) : 0;
        stacks_full(&s, main, stack, random >> 30 ? TARE__STATE_RUNNING : TARE__STATE_DISK, 0, 10 * MS, on, ready);
        cpu += (double)on;
        queue += (double)ready;
    }
    tare__analysis *of = finish();
    for (size_t i = 0; i < of->n_functions; i++) {
        found_cpu += of->functions[i].of.ns[TARE__STATE_RUNNING];
        found_queue += of->functions[i].of.ns[TARE__STATE_RUNNABLE];
        found_disk += of->functions[i].of.ns[TARE__STATE_DISK];
    }
    assert_true(fabs(found_cpu - cpu) < 1);
    assert_true(fabs(found_cpu - thread_at(of, "MainThread")->of.ns[TARE__STATE_RUNNING]) < 1);
    assert_true(found_queue >= queue - 1);
    assert_true(fabs(found_cpu + found_queue + found_disk - 1e10) < 1);
    done(b, of);
}

static void counters_above_the_time_are_cut(void **state)
{
    (void)state;
    tare__analysis *of = half_and_half(12, 3);
    STATE_MS(thread_at(of, "MainThread"), RUNNING, 100);
    STATE_MS(thread_at(of, "MainThread"), RUNNABLE, 0);
    IS_MS(thread_at(of, "MainThread")->wall_ns, 100);
    done(b, of);
}

static void running_without_any_wait(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t runs = stacks_python(&s, 0, "runs", APP "a.py", 10);
    stacks_full(&s, main, runs, TARE__STATE_RUNNING, 0, 10 * MS, 4 * MS, 0);
    stacks_full(&s, main, runs, TARE__STATE_UNKNOWN, 0, 10 * MS, 9 * MS, 0); /* it must have been running */
    tare__analysis *of = finish();
    STATE_MS(function_at(of, "runs"), RUNNING, 13);
    STATE_MS(function_at(of, "runs"), RUNNABLE, 7);
    done(b, of);
}

static void every_state_has_its_column(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t at = stacks_python(&s, 0, "f", APP "a.py", 10);
    for (int i = TARE__STATE_RUNNING; i < TARE__STATE_COUNT; i++)
        stacks_samples(&s, main, at, (tare__thread_state)i, i);
    stacks_samples(&s, main, at, TARE__STATE_UNKNOWN, 1);
    tare__analysis *of = finish();
    for (int i = TARE__STATE_RUNNING; i < TARE__STATE_OTHER; i++)
        IS_MS(function_at(of, "f")->of.ns[i], 10 * i);
    STATE_MS(function_at(of, "f"), OTHER, 120);
    STATE_MS(function_at(of, "f"), UNKNOWN, 0);
    done(b, of);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */
static void idle_threads_do_not_dominate(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread"), idle = stacks_thread(&s, 77, 78, 5, "idle");
    uint32_t works = stacks_thread(&s, 77, 79, 5, "works");
    uint32_t train = stacks_python(&s, 0, "train", APP "a.py", 10);
    uint32_t get = stacks_python(&s, 0, "get", LIB "queue.py", 171);
    uint32_t decode = stacks_python(&s, 0, "decode", APP "a.py", 30);
    stacks_samples(&s, main, train, TARE__STATE_RUNNING, 20);
    stacks_samples(&s, main, train, TARE__STATE_NETWORK, 20);
    stacks_samples(&s, idle, get, TARE__STATE_LOCK, 40);
    stacks_samples(&s, works, decode, TARE__STATE_RUNNING, 9);
    stacks_samples(&s, works, decode, TARE__STATE_GIL, 1);
    stacks_samples(&s, works, get, TARE__STATE_LOCK, 30);
    tare__analysis *of = finish();
    assert_int_equal(of->n_sampled_threads, 3);
    assert_string_equal(of->sampled_threads[0].name, "MainThread");
    assert_string_equal(of->sampled_threads[1].name, "works");
    IS_MS(of->sampled_threads[0].active_ns, 400);
    IS_MS(of->sampled_threads[1].active_ns, 100);
    IS_MS(of->sampled_threads[2].active_ns, 0);
    IS_MS(of->stacks.active_ns, 500);
    IS_MS(of->stacks.wall_ns, 1200);
    assert_string_equal(of->functions[0].function, "train");
    NEAR(of->functions[0].self_share, 0.8);
    IS_MS(of->functions[0].main_ns, 400);
    assert_string_equal(of->functions[1].function, "decode");
    NEAR(of->functions[1].self_share, 0.2);
    IS_MS(of->functions[1].main_ns, 0);
    IS_MS(function_at(of, "get")->self_ns, 700);
    NEAR(function_at(of, "get")->self_share, 0);
    assert_string_equal(of->packages[0].package, "your code");
    done(b, of);
}

/* The first thread waits all the time; who leads? */
static bool other_leads(tare__thread_state waits, bool same_process, int works, uint64_t start)
{
    begin();
    uint32_t first = stacks_thread(&s, 77, 77, start, "first");
    uint32_t other = stacks_thread(&s, same_process ? 77 : 90, same_process ? 78 : 90, same_process ? 5 : 9, "other");
    uint32_t wait = stacks_python(&s, 0, "wait", APP "a.py", 10), work = stacks_python(&s, 0, "work", APP "a.py", 20);
    stacks_samples(&s, first, wait, waits, 100);
    stacks_samples(&s, other, work, TARE__STATE_RUNNING, works);
    stacks_samples(&s, other, work, TARE__STATE_LOCK, 100 - works);
    tare__analysis *of = finish();
    bool leads = strcmp(of->sampled_threads[of->stacks.leading].name, "other") == 0;
    done(b, of);
    return leads;
}

static void who_leads(void **state)
{
    (void)state;
    assert_false(other_leads(TARE__STATE_RUNNING, true, 100, 5));
    assert_true(other_leads(TARE__STATE_LOCK, true, 80, 5));  /* Thread.join */
    assert_true(other_leads(TARE__STATE_LOCK, true, 80, 0)); /* the start is not known */
    assert_false(other_leads(TARE__STATE_LOCK, true, 20, 5));
    assert_false(other_leads(TARE__STATE_LOCK, false, 80, 5)); /* pinned memory of a loader */
    assert_false(other_leads(TARE__STATE_PIPE, false, 80, 5)); /* a loader's worker */
    assert_true(other_leads(TARE__STATE_CHILD, false, 80, 5)); /* a launcher */
    assert_true(other_leads(TARE__STATE_SLEEP, false, 80, 5));
    assert_false(other_leads(TARE__STATE_NETWORK, true, 80, 5));
}

static void torn_samples_have_no_stack(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t f = stacks_python(&s, 0, "f", APP "a.py", 10);
    stacks_samples(&s, main, f, TARE__STATE_RUNNING, 7);
    for (int i = 0; i < 3; i++)
        stacks_full(&s, main, 0, TARE__STATE_RUNNING, TARE__SAMPLE_TORN, 10 * MS, 0, 0);
    stacks_full(&s, main, f, TARE__STATE_RUNNING, TARE__SAMPLE_IN_GC, 10 * MS, 0, 0);
    tare__analysis *of = finish();
    const tare__sampled_thread_row *thread = thread_at(of, "MainThread");
    assert_int_equal(thread->samples, 11);
    assert_int_equal(thread->torn, 3);
    IS_MS(thread->wall_ns, 110);
    IS_MS(thread->no_stack_ns, 30);
    IS_MS(thread->gc_ns, 10);
    IS_MS(function_at(of, "f")->self_ns, 80);
    IS_MS(function_at(of, "(no stack)")->self_ns, 30);
    IS_MS(function_at(of, "(no stack)")->total_ns, 30);
    assert_int_equal(of->stacks.nodes[of->stacks.n - 1].what, TARE__NODE_NO_STACK);
    IS_MS(of->stacks.nodes[of->stacks.n - 1].self_ns, 30);
    done(b, of);
}

/* ---- native code, notes ------------------------------------------------------------------------------------------ */
static void native_frames_belong_to_their_line(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t f = stacks_python(&s, 0, "f", APP "a.py", 15);
    uint32_t mm = stacks_frame(&s, f, TARE__FRAME_NATIVE, "at::mm", SITE "torch/lib/libtorch_cpu.so", 0, 0x1000);
    uint32_t mm_later = stacks_frame(&s, f, TARE__FRAME_NATIVE, "at::mm", SITE "torch/lib/libtorch_cpu.so", 0, 0x1080);
    uint32_t copy = stacks_frame(&s, mm, TARE__FRAME_NATIVE, "memcpy", "/usr/lib/libc.so.6", 0, 0x40);
    uint32_t eval = stacks_frame(&s, f, TARE__FRAME_NATIVE, "PyLong_Add", "/usr/bin/python3.12", 0, 0x77);
    uint32_t gc = stacks_frame(&s, f, TARE__FRAME_NOTE, "garbage collection", "", 0, 0);
    stacks_samples(&s, main, mm, TARE__STATE_RUNNING, 3);
    stacks_samples(&s, main, mm_later, TARE__STATE_RUNNING, 4);
    stacks_samples(&s, main, copy, TARE__STATE_RUNNING, 1);
    stacks_samples(&s, main, eval, TARE__STATE_RUNNING, 5);
    stacks_samples(&s, main, gc, TARE__STATE_RUNNING, 2);
    tare__analysis *of = finish();
    IS_MS(function_at(of, "at::mm")->self_ns, 70);
    IS_MS(function_at(of, "at::mm")->total_ns, 80);
    assert_int_equal(of->n_lines, 1);
    IS_MS(of->lines[0].self_ns, 150);
    IS_MS(of->lines[0].own_ns, 150);
    assert_string_equal(of->lines[0].inner, "at::mm");
    IS_MS(package_at(of, "torch")->self_ns, 80); /* what it calls in libc as well */
    IS_MS(package_at(of, "your code")->self_ns, 50); /* the interpreter works for its caller */
    IS_MS(package_at(of, "garbage collection")->self_ns, 20);
    assert_int_equal(of->n_packages, 3);
    size_t frames = 0;
    for (size_t i = 0; i < of->stacks.n; i++)
        frames += of->stacks.nodes[i].what == TARE__NODE_FRAME;
    assert_int_equal(frames, 5);
    done(b, of);
}

static void comprehensions_are_on_the_line_of_their_function(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t f = stacks_python(&s, 0, "f", APP "a.py", 15);
    uint32_t list = stacks_frame(&s, f, TARE__FRAME_PYTHON, "f.<locals>.<listcomp>", APP "a.py", 15, 15);
    stacks_samples(&s, main, list, TARE__STATE_RUNNING, 5);
    tare__analysis *of = finish();
    assert_int_equal(of->n_lines, 1);
    assert_string_equal(of->lines[0].function, "f");
    IS_MS(of->lines[0].total_ns, 50);
    assert_null(of->lines[0].inner);
    assert_int_equal(of->n_functions, 2);
    done(b, of);
}

static void packages_by_path(void **state)
{
    (void)state;
    static const struct {
        tare__frame_kind kind;
        const char *file, *package, *is;
    } cases[] = {
        {TARE__FRAME_PYTHON, SITE "pandas/core/frame.py", "pandas", "package"},
        {TARE__FRAME_PYTHON, SITE "six.py", "six", "package"},
        {TARE__FRAME_PYTHON, "/usr/lib/python3/dist-packages/apt/cache.py", "apt", "package"},
        {TARE__FRAME_PYTHON, LIB "re/_parser.py", "re", "standard library"},
        {TARE__FRAME_PYTHON, "/opt/conda/lib/python3.11/queue.py", "queue", "standard library"},
        {TARE__FRAME_PYTHON, "/usr/lib64/python3.9/ssl.py", "ssl", "standard library"},
        {TARE__FRAME_PYTHON, "/usr/lib/python312.zip/glob.py", "glob", "standard library"},
        {TARE__FRAME_PYTHON, "/usr/lib/python3.13t/csv.py", "csv", "standard library"},
        {TARE__FRAME_PYTHON, "/usr/lib/python313t.zip/dis.py", "dis", "standard library"},
        {TARE__FRAME_PYTHON, "/usr/lib/python3.13test/tool.py", "your code", "own"},
        {TARE__FRAME_PYTHON, "<frozen importlib._bootstrap_external>", "importlib", "standard library"},
        {TARE__FRAME_PYTHON, "<frozen runpy>", "runpy", "standard library"},
        {TARE__FRAME_PYTHON, "<__array_function__ internals>", "numpy", "package"},
        {TARE__FRAME_PYTHON, "<string>", "your code", "own"},
        {TARE__FRAME_PYTHON, "/tmp/ipykernel_1/2.py", "your code", "own"},
        {TARE__FRAME_PYTHON, "/home/user/python3/tool.py", "your code", "own"},
        {TARE__FRAME_PYTHON, "train.py", "your code", "own"},
        {TARE__FRAME_PYTHON, "/src/tare/python/tare/_hook/sitecustomize.py", "tare", "package"},
        {TARE__FRAME_PYTHON, "/opt/target/tare/_hook/sitecustomize.py", "tare", "package"},
        {TARE__FRAME_PYTHON, "/src/python/tare/_wrap.py", "tare", "package"},
        {TARE__FRAME_PYTHON, "/src/python/tare/torch/_forward.py", "tare", "package"},
        {TARE__FRAME_PYTHON, "/home/user/python/tare/train.py", "your code", "own"},
        {TARE__FRAME_PYTHON, "/home/user/python/tare/data/__init__.py", "your code", "own"},
        {TARE__FRAME_PYTHON, "/home/user/tare/_hook/mine.py", "your code", "own"},
        {TARE__FRAME_NATIVE, SITE "scipy.libs/libopenblas.so.0", "scipy", "package"},
        {TARE__FRAME_NATIVE, "/usr/lib/python3.12/lib-dynload/_json.cpython-312-x86_64-linux-gnu.so", "json",
         "standard library"},
        {TARE__FRAME_NATIVE, "/usr/lib/libcuda.so.1", "libcuda", "native"},
        {TARE__FRAME_NATIVE, "/opt/lib/libpython3.12.so.1.0", "python", "native"},
        {TARE__FRAME_NOTE, "", "note 28", "note"},
    };
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    char name[32];
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        snprintf(name, sizeof name, "note %zu", i);
        stacks_samples(&s, main, stacks_frame(&s, 0, cases[i].kind, name, cases[i].file, 1, 2), TARE__STATE_RUNNING, 1);
    }
    tare__analysis *of = finish();
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        snprintf(name, sizeof name, "note %zu", i);
        const tare__function_row *row = function_at(of, name);
        if (!row->package || strcmp(row->package, cases[i].package) != 0)
            fail_msg("%s is in %s, not in %s", cases[i].file, row->package, cases[i].package);
        assert_string_equal(package_at(of, cases[i].package)->kind, cases[i].is);
        assert_int_equal(row->own, strcmp(cases[i].is, "own") == 0);
    }
    IS_MS(package_at(of, "your code")->self_ns, 80);
    done(b, of);
}

/* Every file of the package is Tare's, not the program's, also where it is not installed. */
static void files_of_the_package(void **state)
{
    (void)state;
    static const char here[] = __FILE__; /* as it was compiled: relative to the build folder, or absolute */
    char package[600], pattern[640];
    size_t n = 0;
    glob_t found = {0};
    int length = snprintf(package, sizeof package, "%.*s../../python/tare", (int)(strrchr(here, '/') + 1 - here), here);
    for (const char *const *below = (const char *const[]){"/*.py", "/*/*.py", NULL}; *below; below++) {
        snprintf(pattern, sizeof pattern, "%s%s", package, *below);
        assert_int_equal(glob(pattern, found.gl_pathc ? GLOB_APPEND : 0, NULL, &found), 0);
    }
    for (; n < found.gl_pathc; n++) {
        char file[600];
        bool standard = true;
        snprintf(file, sizeof file, "/src/python/tare%s", found.gl_pathv[n] + length);
        const char *path = tare__module_path(file, &standard);
        if (!path || strncmp(path, "tare/", 5) != 0 || standard)
            fail_msg("%s is not known in stacks_package.c", file);
    }
    assert_true(n > 30);
    globfree(&found);
}

/* ---- the tree --------------------------------------------------------------------------------------------------- */
static void check_shape(const tare__stack_tree *tree)
{
    double roots = 0;
    assert_true(tree->n <= TARE__STACK_NODES_MAX);
    for (size_t i = 0; i < tree->n; i++) {
        const tare__stack_node *node = &tree->nodes[i];
        assert_true(i + 1 + node->n_rows <= tree->n);
        roots += node->parent == TARE__NO_ROW ? node->total_ns : 0;
        assert_int_equal(node->depth == 0, node->parent == TARE__NO_ROW);
        if (node->parent == TARE__NO_ROW)
            continue;
        const tare__stack_node *parent = &tree->nodes[node->parent];
        assert_true(node->parent < i && i <= node->parent + parent->n_rows);
        assert_int_equal(node->depth, parent->depth + 1);
        size_t next = i + 1 + node->n_rows;
        if (next <= node->parent + parent->n_rows && node->what == TARE__NODE_FRAME &&
            tree->nodes[next].what == TARE__NODE_FRAME)
            assert_true(node->total_ns >= tree->nodes[next].total_ns);
        if (next <= node->parent + parent->n_rows)
            assert_true(node->what != TARE__NODE_OTHER || tree->nodes[next].what == TARE__NODE_NO_STACK);
    }
    IS_MS(roots, tree->wall_ns / 1e6);
}

static void tree_of_two_processes(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread"), pool = stacks_thread(&s, 77, 78, 5, "pool");
    uint32_t child = stacks_thread(&s, 90, 90, 6, "");
    uint32_t f = stacks_python(&s, 0, "f", APP "a.py", 15), g = stacks_python(&s, f, "g", APP "a.py", 25);
    uint32_t h = stacks_python(&s, f, "h", APP "a.py", 35);
    stacks_samples(&s, main, g, TARE__STATE_RUNNING, 2);
    stacks_samples(&s, main, h, TARE__STATE_SLEEP, 5);
    stacks_samples(&s, main, f, TARE__STATE_RUNNING, 1);
    stacks_samples(&s, pool, g, TARE__STATE_RUNNING, 3);
    stacks_samples(&s, child, f, TARE__STATE_RUNNING, 1);
    tare__analysis *of = finish();
    const tare__stack_tree *tree = &of->stacks;
    check_shape(tree);
    static const struct {
        const char *name;
        uint32_t depth;
        tare__stack_node_kind what;
        double self_ms, total_ms, cpu_ms;
    } rows[] = {
        {"process 77", 0, TARE__NODE_PROCESS, 0, 110, 60}, {"MainThread", 1, TARE__NODE_THREAD, 0, 80, 30},
        {"f", 2, TARE__NODE_FRAME, 10, 80, 30},            {"h", 3, TARE__NODE_FRAME, 50, 50, 0},
        {"g", 3, TARE__NODE_FRAME, 20, 20, 20},            {"pool", 1, TARE__NODE_THREAD, 0, 30, 30},
        {"f", 2, TARE__NODE_FRAME, 0, 30, 30},             {"g", 3, TARE__NODE_FRAME, 30, 30, 30},
        {"process 90", 0, TARE__NODE_PROCESS, 0, 10, 10},  {"main thread 90", 1, TARE__NODE_THREAD, 0, 10, 10},
        {"f", 2, TARE__NODE_FRAME, 10, 10, 10},
    };
    assert_int_equal(tree->n, TARE__COUNT_OF(rows));
    for (size_t i = 0; i < tree->n; i++) {
        assert_string_equal(tree->nodes[i].name, rows[i].name);
        assert_int_equal(tree->nodes[i].depth, rows[i].depth);
        assert_int_equal(tree->nodes[i].what, rows[i].what);
        IS_MS(tree->nodes[i].self_ns, rows[i].self_ms);
        IS_MS(tree->nodes[i].total_ns, rows[i].total_ms);
        IS_MS(tree->nodes[i].total_cpu_ns, rows[i].cpu_ms);
    }
    assert_int_equal(tree->nodes[3].line, 35);
    assert_int_equal(tree->nodes[3].first_line, 30);
    STATE_MS(&tree->nodes[3], SLEEP, 50);
    IS_MS(tree->nodes[0].active_ns, 110);
    NEAR(tree->smallest_ns, 0);
    done(b, of);
}

/* 60,000 different stacks below 300 functions: the small ones are merged, and everything still adds up. */
static void large_trees_are_merged(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread"), other = stacks_thread(&s, 77, 78, 5, "other");
    char name[32];
    uint32_t root = stacks_python(&s, 0, "root", APP "a.py", 15);
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "f%u", i);
        uint32_t f = stacks_python(&s, root, name, APP "a.py", 100 + i);
        for (uint32_t k = 0; k < 200; k++)
            stacks_full(&s, k % 7 ? main : other, stacks_python(&s, f, "g", APP "b.py", 1 + k), TARE__STATE_RUNNING, 0,
                        1000 + (k == 3 ? i * 1000 : k), 0, 0);
    }
    tare__analysis *of = finish();
    check_shape(&of->stacks);
    assert_true(of->stacks.n > 300 && of->stacks.smallest_ns > 0);
    size_t merged = 0;
    for (size_t i = 0; i < of->stacks.n; i++)
        merged += of->stacks.nodes[i].what == TARE__NODE_OTHER;
    assert_true(merged > 0);
    double expected = 0;
    for (uint32_t i = 0; i < 300; i++)
        for (uint32_t k = 0; k < 200; k++)
            expected += 1000 + (k == 3 ? i * 1000 : k);
    NEAR(of->stacks.wall_ns, expected);
    NEAR(function_at(of, "root")->total_ns, expected);
    done(b, of);
}

static void many_threads_are_merged(void **state)
{
    (void)state;
    begin();
    uint32_t f = stacks_python(&s, 0, "f", APP "a.py", 15);
    for (int i = 0; i < 9000; i++) {
        uint32_t thread = stacks_thread(&s, 77 + i / 3, 77 + i, 5 + (uint64_t)i / 3, "t");
        stacks_full(&s, thread, f, TARE__STATE_RUNNING, 0, i ? 1000 + (uint64_t)i : 10, 0, 0);
    }
    tare__analysis *of = finish();
    check_shape(&of->stacks);
    assert_int_equal(of->n_sampled_threads, 9000);
    assert_true(of->sampled_threads[0].leading && of->sampled_threads[0].tid == 77);
    assert_string_equal(of->stacks.nodes[of->stacks.n - 1].name, "(other)");
    assert_int_equal(of->stacks.nodes[of->stacks.n - 1].depth, 0);
    done(b, of);
}

/* ---- files with less --------------------------------------------------------------------------------------------- */
/* The block that defines a stack is lost: its samples still count for their thread. */
static void lost_stacks_are_no_stack(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t f = stacks_python(&s, 0, "f", APP "a.py", 15);
    stacks_samples(&s, main, f, TARE__STATE_RUNNING, 2);
    stacks_seal(&s);
    size_t at = b->file.length;
    uint32_t g = stacks_python(&s, f, "g", APP "a.py", 25);
    stacks_samples(&s, main, g, TARE__STATE_RUNNING, 100);
    stacks_seal(&s);
    build_lose(b, at);
    stacks_samples(&s, main, g, TARE__STATE_DISK, 3);
    tare__analysis *of = finish();
    IS_MS(thread_at(of, "MainThread")->wall_ns, 50);
    IS_MS(thread_at(of, "MainThread")->no_stack_ns, 30);
    STATE_MS(thread_at(of, "MainThread"), DISK, 30);
    IS_MS(function_at(of, "f")->total_ns, 20);
    IS_MS(function_at(of, "(no stack)")->self_ns, 30);
    done(b, of);
}

/* Rotation removes samples, not the tables that they refer to. */
static void rotated_samples_do_not_count(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t f = stacks_python(&s, 0, "f", APP "a.py", 15), g = stacks_python(&s, f, "g", APP "a.py", 25);
    stacks_seal(&s);
    size_t at = b->file.length;
    stacks_samples(&s, main, f, TARE__STATE_RUNNING, 40);
    stacks_seal(&s);
    build_lose(b, at);
    stacks_samples(&s, main, g, TARE__STATE_RUNNING, 10);
    tare__analysis *of = finish();
    const tare__sampled_thread_row *thread = thread_at(of, "MainThread");
    IS_MS(thread->wall_ns, 100);
    IS_MS(thread->no_stack_ns, 0);
    IS_MS(thread->from_ns, 400);
    IS_MS(thread->to_ns, 500);
    IS_MS(function_at(of, "f")->total_ns, 100);
    IS_MS(function_at(of, "g")->self_ns, 100);
    done(b, of);
}

/* Half a million samples in 60 blocks: the same figures as from their sum. */
static void many_samples(void **state)
{
    (void)state;
    begin();
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t f = stacks_python(&s, 0, "f", APP "a.py", 15), g = stacks_python(&s, f, "g", APP "a.py", 25);
    for (int i = 0; i < 500000; i++)
        if (i % 5)
            stacks_full(&s, main, f, TARE__STATE_RUNNING, 0, 1000, 1000, 0);
        else
            stacks_full(&s, main, g, TARE__STATE_LOCK, 0, 1000, 0, 0);
    tare__analysis *of = finish();
    assert_int_equal(thread_at(of, "MainThread")->samples, 500000);
    IS_MS(function_at(of, "g")->self_ns, 100);
    IS_MS(function_at(of, "f")->self_ns, 400);
    STATE_MS(function_at(of, "g"), LOCK, 100);
    STATE_MS(function_at(of, "f"), RUNNING, 400);
    done(b, of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_has_just_woken_up_was_waiting),
        cmocka_unit_test(nothing_without_samples),
        cmocka_unit_test(time_belongs_to_lines_of_own_code),
        cmocka_unit_test(recursion_counts_once),
        cmocka_unit_test(counters_that_agree_with_states),
        cmocka_unit_test(counters_with_more_time_on_a_cpu),
        cmocka_unit_test(counters_with_less_time_on_a_cpu),
        cmocka_unit_test(contention_belongs_to_the_lines_that_ran_then),
        cmocka_unit_test(windows_keep_the_sums_of_the_counters),
        cmocka_unit_test(counters_above_the_time_are_cut),
        cmocka_unit_test(running_without_any_wait),
        cmocka_unit_test(every_state_has_its_column),
        cmocka_unit_test(idle_threads_do_not_dominate),
        cmocka_unit_test(who_leads),
        cmocka_unit_test(torn_samples_have_no_stack),
        cmocka_unit_test(native_frames_belong_to_their_line),
        cmocka_unit_test(comprehensions_are_on_the_line_of_their_function),
        cmocka_unit_test(packages_by_path),
        cmocka_unit_test(files_of_the_package),
        cmocka_unit_test(tree_of_two_processes),
        cmocka_unit_test(large_trees_are_merged),
        cmocka_unit_test(many_threads_are_merged),
        cmocka_unit_test(lost_stacks_are_no_stack),
        cmocka_unit_test(rotated_samples_do_not_count),
        cmocka_unit_test(many_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
