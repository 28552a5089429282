/* Tests of open and analyze with each allocation failed in turn: a status and a sentence, nothing leaked.
 * One thread; linked so that malloc, calloc and realloc can fail.
 * Must not know where memory is taken. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"
#include "emit/emit.h"
#include "base_failing.h"
#include "stacks_builder.h"

enum { MODULE = 20, ADDMM, ADDMM_B, CONTINUES, CONTINUED, SWAP };

static builder *some_of_all(void)
{
    builder *b = build_single();
    build_stream(b, 2, 1, 78, "other");
    build_name(b, MODULE, TARE_KIND_MODULE, "net");
    build_name(b, ADDMM, TARE_KIND_OPERATOR, "aten::addmm");
    build_name(b, ADDMM_B, TARE_KIND_OPERATOR, "autograd::engine::evaluate_function: AddmmBackward0");
    build_name(b, CONTINUES, TARE_KIND_NUMBER, "(continues)");
    build_name(b, CONTINUED, TARE_KIND_NUMBER, "(continued)");
    build_name(b, SWAP, TARE_KIND_NUMBER, "(swap)");
    uint64_t t = 2000;
    BEGIN(OTHER, t);
    BEGIN(OTHER, t);
    NUMBER(SWAP, 1);
    NUMBER(CONTINUES, 1);
    END(t);
    END(t);
    BEGIN(OTHER, t);
    NUMBER(CONTINUED, 1);
    END(t);
    BEGIN(EPOCH, t);
    for (int i = 0; i < 20; i++, t += 1000) {
        BEGIN(STEP, t);
        NUMBER(INDEX, i);
        NUMBER(SAMPLES, 3);
        BEGIN(INNER, t + 100);
        END(t + 200 + (uint64_t)i * i);
        BEGIN(MODULE, t + 610);
        BEGIN(ADDMM, t + 620);
        END(t + 630);
        END(t + 640);
        BEGIN(ADDMM_B, t + 650);
        END(t + 660);
        COUNTER(LOSS, t + 700, i);
        MARK(SAVED, t + 800);
        END(t + 900);
        if (i == 10)
            build_seal(b);
    }
    build_seal(b);
    build_complete_and_aggregate(b);
    build_series(b, 1, TARE__M_CPU_USER, TARE__SUBJECT_TREE, 0, "");
    build_series_absent(b, 2, TARE__M_POWER, TARE__SUBJECT_GPU, 0, 0, "H200", "no driver");
    build_series(b, 3, TARE__M_RSS_PEAK, TARE__SUBJECT_PROCESS, 77, "train");
    build_samples(b, 1, 2000, 500, (const int64_t[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, 17);
    build_samples(b, 3, 2000, 500, (const int64_t[]){1, 2, 3}, 3);
    stacks_builder s = stacks_start(b);
    uint32_t main = stacks_thread(&s, 77, 77, 5, "main"), unnamed = stacks_thread(&s, 78, 79, 5, "");
    uint32_t f = stacks_python(&s, 0, "f", "/app/a.py", 10);
    uint32_t g = stacks_python(&s, f, "g", "/usr/lib/python3.9/re.py", 7);
    stacks_full(&s, main, f, TARE__STATE_RUNNING, 0, 300, 200, 0);
    stacks_full(&s, main, g, TARE__STATE_LOCK, 0, 400, 0, 0);
    stacks_full(&s, main, 0, TARE__STATE_DISK, TARE__SAMPLE_TORN, 100, 0, 0);
    stacks_full(&s, unnamed, g, TARE__STATE_RUNNING, 0, 400, 0, 0);
    stacks_done(&s);
    build_end(b, t + 1000);
    return b;
}

/* Made, written, read back, joined. */
static int make_figures(const tare__analysis *analysis, tare__error *error)
{
    tare__figures *figures, *again = NULL, *joined = NULL;
    tare__text text = {0};
    int status = tare__figures_of_analysis(analysis, &figures);
    if (status)
        return tare__fail(error, status, "out of memory");
    tare__put_document(&text, &tare__document_baseline, figures, true);
    status = text.failed ? tare__fail(error, TARE_E_MEMORY, "out of memory")
                         : tare__figures_read_json(text.data, text.length, "it", &again, error);
    if (!status)
        assert_int_equal(again->n, figures->n);
    if (!status && tare__figures_join((const tare__figures *const[]){figures, again}, 2, &joined))
        status = tare__fail(error, TARE_E_MEMORY, "out of memory");
    tare__figures_free(joined);
    tare__figures_free(again);
    tare__figures_free(figures);
    tare__text_free(&text);
    return status;
}

static int open_and_analyze(const char *path, tare__by by, tare__error *error)
{
    tare__trace *trace;
    tare__analysis *analysis;
    tare__analyze_options options = {.by = by, .samples = true};
    int status = tare__trace_open(path, &trace, error);
    if (status)
        return status;
    status = tare__analyze(trace, &options, &analysis, error);
    if (!status) {
        assert_int_equal(analysis->run.damaged_blocks, 0); /* want of memory is not damage */
        assert_int_equal(analysis->run.spans, 104);
        assert_int_equal(analysis->n_operators, 2);
        assert_int_equal(analysis->operators[0].paired, 20);
        assert_int_equal(analysis->n_metrics, 3);
        assert_int_equal(analysis->n_sampled_threads, 2);
        assert_int_equal(analysis->n_functions, 3);
        assert_int_equal(analysis->stacks.n, 9);
        status = make_figures(analysis, error);
    }
    tare__analysis_free(analysis);
    tare__timeline *timeline = NULL;
    if (!status)
        status = tare__analyze_timeline(trace, 64, &timeline, error);
    if (!status)
        assert_int_equal(timeline->spans, 105); /* parts of a call are drawn each */
    tare__timeline_free(timeline);
    tare__trace_close(trace);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    builder *b = some_of_all();
    const char *path = build_file(b);
    for (int by = TARE__BY_RUN; by <= TARE__BY_THREAD; by++) {
        int failures = 0, status = TARE_E_MEMORY;
        for (long allocations = 0; status; allocations++) {
            tare__error error = {""};
            allocations_left = allocations;
            status = open_and_analyze(path, (tare__by)by, &error);
            allocations_left = -1;
            if (!status)
                break;
            assert_int_equal(status, TARE_E_MEMORY);
            assert_non_null(strstr(error.text, "out of memory"));
            failures++;
        }
        assert_true(failures > 30);
    }
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
