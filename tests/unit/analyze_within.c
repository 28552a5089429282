/* Tests of tables of stack samples within spans, phases, processes and threads: figures by hand on traces of known
 * samples. One thread.
 * Must not know how samples are kept. */
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
#define AT(ms) (BUILD_START + 2 * (ms) * MS) /* a tick is half a nanosecond */

static builder *b;
static stacks_builder s;

/* Idle until 500 ms, then busy. */
static void build_gpu(void)
{
    enum { BUSY = 1, USED };
    const int64_t busy[] = {0, 0, 0, 0, 0, 900, 900, 900, 900, 900, 900};
    build_series(b, BUSY, TARE__M_GPU_BUSY, TARE__SUBJECT_GPU, 0, "H200");
    build_series_absent(b, USED, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU_PROCESS, 77, 0, "python", NULL);
    for (size_t i = 0; i < TARE__COUNT_OF(busy); i++) {
        build_tick(b, AT(100 * i));
        build_sample(b, BUSY, busy[i]);
        build_sample(b, USED, 1 << 30);
    }
    build_samples_seal(b);
}

/* Two threads. The first one has spans: outer from 100 to 500 ms, inner in it from 200 to 400 ms, other from 600 to 800
 * ms. It reads until 300 ms, then parses until 1 s. The second thread sleeps for 1 s. */
static void begin_with(bool gpu)
{
    b = build_single();
    s = stacks_start(b);
    build_event(b, TARE__OP_BEGIN, OUTER, AT(100));
    build_event(b, TARE__OP_BEGIN, INNER, AT(200));
    build_event(b, TARE__OP_END, INNER, AT(400));
    build_event(b, TARE__OP_END, OUTER, AT(500));
    build_event(b, TARE__OP_BEGIN, OTHER, AT(600));
    build_event(b, TARE__OP_END, OTHER, AT(800));
    build_seal(b);
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread"), second = stacks_thread(&s, 77, 78, 5, "second");
    uint32_t module = stacks_python(&s, 0, "<module>", APP "fetch.py", 90);
    uint32_t reads = stacks_python(&s, module, "read", APP "fetch.py", 31);
    uint32_t receive = stacks_python(&s, reads, "SocketIO.readinto", LIB "socket.py", 705);
    uint32_t parse = stacks_python(&s, module, "parse", APP "fetch.py", 42);
    uint32_t sleeps = stacks_python(&s, module, "sleeps", APP "fetch.py", 50);
    stacks_samples(&s, main, receive, TARE__STATE_NETWORK, 30);
    stacks_samples(&s, main, parse, TARE__STATE_RUNNING, 70);
    stacks_samples(&s, second, sleeps, TARE__STATE_SLEEP, 100);
    stacks_done(&s);
    if (gpu)
        build_gpu();
    build_end(b, AT(2000));
}

static void begin(void)
{
    begin_with(false);
}

static int open_with(const tare__stack_filter *filter, tare__analysis **made, tare__error *error)
{
    tare__trace *trace;
    tare__stack_filter copy = *filter;
    tare__analyze_options options = {.stacks = &copy};
    assert_int_equal(tare__trace_open(build_file(b), &trace, error), 0);
    int status = tare__analyze(trace, &options, made, error);
    tare__trace_close(trace);
    return status;
}

static tare__analysis *with(tare__stack_filter filter)
{
    tare__analysis *made;
    tare__error error = {""};
    tare__contradictions found;
    if (open_with(&filter, &made, &error))
        fail_msg("%s", error.text);
    tare__analyze_consistent(made, &found);
    if (found.n)
        print_error("%s\n", found.first);
    assert_int_equal(found.n, 0);
    return made;
}

static double own_ms(const tare__analysis *of, uint32_t line)
{
    for (size_t i = 0; i < of->n_lines; i++)
        if (of->lines[i].line == line)
            return of->lines[i].own_ns / 1e6;
    return 0;
}

static void tables_within_a_span(void **state)
{
    (void)state;
    begin();
    tare__analysis *of = with((tare__stack_filter){.within = "outer"});
    assert_int_equal(of->n_sampled_threads, 1);
    NEAR(of->sampled_threads[0].wall_ns / 1e6, 400);
    NEAR(own_ms(of, 31), 200);
    NEAR(own_ms(of, 42), 200);
    NEAR(of->stacks.nodes[0].total_ns / 1e6, 400);
    assert_string_equal(of->stacks.only, "within outer");
    assert_true(has_note(of, "only samples within outer"));
    tare__analysis_free(of);
    of = with((tare__stack_filter){.within = "inner"});
    NEAR(own_ms(of, 31), 100);
    NEAR(own_ms(of, 42), 100);
    tare__analysis_free(of);
    of = with((tare__stack_filter){.within = "outer/inner"});
    NEAR(own_ms(of, 31), 100);
    tare__analysis_free(of);
    of = with((tare__stack_filter){.within = "other"});
    NEAR(own_ms(of, 42), 200);
    NEAR(own_ms(of, 31), 0);
    done(b, of);
}

static void tables_of_a_thread(void **state)
{
    (void)state;
    begin();
    tare__analysis *of = with((tare__stack_filter){.thread = "second"});
    assert_int_equal(of->n_sampled_threads, 1);
    NEAR(own_ms(of, 50), 1000);
    tare__analysis_free(of);
    of = with((tare__stack_filter){.thread = "77", .pid = 77});
    NEAR(own_ms(of, 31), 300);
    NEAR(own_ms(of, 50), 0);
    done(b, of);
}

/* Findings are of the whole run: a view must not change them. */
static void findings_do_not_depend_on_the_view(void **state)
{
    (void)state;
    begin();
    tare__analysis *all = with((tare__stack_filter){0}), *of = with((tare__stack_filter){.thread = "second"});
    assert_int_equal(all->n_findings, of->n_findings);
    for (size_t i = 0; i < all->n_findings; i++)
        assert_string_equal(all->findings[i].title, of->findings[i].title);
    assert_null(all->stacks.only);
    tare__analysis_free(all);
    done(b, of);
}

/* The outermost span covers more than half of the run: startup ends where it begins, shutdown begins where it ends. */
static void tables_of_a_phase(void **state)
{
    (void)state;
    b = build_single();
    s = stacks_start(b);
    build_event(b, TARE__OP_BEGIN, OUTER, AT(400));
    build_event(b, TARE__OP_END, OUTER, AT(1600));
    build_seal(b);
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    uint32_t reads = stacks_python(&s, 0, "read", APP "fetch.py", 31);
    stacks_samples(&s, main, reads, TARE__STATE_RUNNING, 200);
    stacks_done(&s);
    build_end(b, AT(2000));
    static const struct {
        const char *phase;
        double ms;
    } phases[] = {{"startup", 400}, {"steady", 1200}, {"shutdown", 400}};
    for (size_t i = 0; i < TARE__COUNT_OF(phases); i++) {
        tare__analysis *of = with((tare__stack_filter){.phase = phases[i].phase});
        NEAR(own_ms(of, 31), phases[i].ms);
        assert_true(of->stacks.n > 0);
        tare__analysis_free(of);
    }
    builder_free(b);
}

static void samples_that_do_not_exist(void **state)
{
    (void)state;
    static const tare__stack_filter filters[] = {
        {.within = "nothing"}, {.within = "inner/outer"}, {.thread = "third"}, {.pid = 78}, {.phase = "warm-up"},
        {.phase = "startup"}, {.gpu_idle = true}, {.within = "outer", .thread = "second"}};
    begin();
    for (size_t i = 0; i < TARE__COUNT_OF(filters); i++) {
        tare__analysis *made = NULL;
        tare__error error = {""};
        assert_int_equal(open_with(&filters[i], &made, &error), TARE_E_USAGE);
        assert_null(made);
        assert_true(strlen(error.text) > 20);
    }
    builder_free(b);
}

static const tare__span_line_row *line_of(const tare__analysis *of, const char *span, uint32_t line)
{
    for (size_t i = 0; i < of->n_span_lines; i++)
        if (strcmp(of->span_lines[i].span, span) == 0 && of->span_lines[i].line == line)
            return &of->span_lines[i];
    fail_msg("no line %u of %s", (unsigned)line, span);
    return NULL;
}

static void lines_of_each_span(void **state)
{
    (void)state;
    begin();
    tare__analysis *of = with((tare__stack_filter){0});
    assert_int_equal(of->n_span_lines, 5);
    assert_string_equal(of->span_lines[0].span, "outer"); /* the longest */
    const tare__span_line_row *row = line_of(of, "outer", 31);
    NEAR(row->span_ns / 1e6, 400);
    NEAR(row->ns / 1e6, 200);
    NEAR(row->share, 0.5);
    NEAR(row->of.ns[TARE__STATE_NETWORK] / 1e6, 200);
    assert_int_equal(row->samples, 20);
    assert_string_equal(row->inner, "SocketIO.readinto");
    assert_null(line_of(of, "outer", 42)->inner);
    NEAR(line_of(of, "inner", 31)->ns / 1e6, 100);
    NEAR(line_of(of, "other", 42)->share, 1);
    done(b, of);
}

/* A span inside one of its own name counts once. */
static void nested_spans_of_one_name(void **state)
{
    (void)state;
    b = build_single();
    s = stacks_start(b);
    build_event(b, TARE__OP_BEGIN, OUTER, AT(0));
    build_event(b, TARE__OP_BEGIN, OUTER, AT(100));
    build_event(b, TARE__OP_END, OUTER, AT(200));
    build_event(b, TARE__OP_END, OUTER, AT(300));
    build_seal(b);
    uint32_t main = stacks_thread(&s, 77, 77, 5, "MainThread");
    stacks_samples(&s, main, stacks_python(&s, 0, "read", APP "fetch.py", 31), TARE__STATE_RUNNING, 40);
    stacks_done(&s);
    build_end(b, AT(2000));
    tare__analysis *of = with((tare__stack_filter){0});
    assert_int_equal(of->n_span_lines, 1);
    NEAR(of->span_lines[0].ns / 1e6, 300);
    NEAR(of->span_lines[0].span_ns / 1e6, 300);
    done(b, of);
}

/* A GPU of the run that is busy from 0.5 to 1 s: what the host did while it was idle. */
static void tables_while_the_gpu_is_idle(void **state)
{
    (void)state;
    begin_with(true);
    tare__analysis *of = with((tare__stack_filter){.gpu_idle = true, .thread = "MainThread"});
    NEAR(own_ms(of, 31), 300);
    assert_true(own_ms(of, 42) <= 210); /* until 500 ms, and the interval in which it became busy */
    assert_true(own_ms(of, 42) >= 100);
    done(b, of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_within_a_span),
        cmocka_unit_test(tables_of_a_thread),
        cmocka_unit_test(findings_do_not_depend_on_the_view),
        cmocka_unit_test(tables_of_a_phase),
        cmocka_unit_test(samples_that_do_not_exist),
        cmocka_unit_test(lines_of_each_span),
        cmocka_unit_test(nested_spans_of_one_name),
        cmocka_unit_test(tables_while_the_gpu_is_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
