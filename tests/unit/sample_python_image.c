/* Tests of Python call stacks (src/sample/python*.c) on recorded memory of interpreters that test machines rarely have:
 * the frames against what the program itself said, whole and with parts missing. One thread.
 * Must not know the samplers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../python_image.h"
#include "sample_python_truth.h"

#define THREADS_MAX 16u

static truth threads_truth[THREADS_MAX];
static size_t n_truth;

static int set_up(void **state)
{
    (void)state;
    assert_true(python_image_open("python-3.14.image", &python_image_now));
    FILE *said = fmemopen(python_image_now.truth, python_image_now.truth_bytes, "r");
    assert_non_null(said);
    n_truth = read_truth(said, threads_truth, THREADS_MAX);
    fclose(said);
    tare__python_read_memory = python_image_read;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free_truth(threads_truth, n_truth);
    python_image_close(&python_image_now);
    return 0;
}

static const truth *truth_of(uint64_t ident)
{
    for (size_t i = 0; i < n_truth; i++)
        if (threads_truth[i].ident == ident)
            return &threads_truth[i];
    fail_msg("the program did not report thread %llx", (unsigned long long)ident);
    return NULL;
}

static void test_stacks(void **state)
{
    (void)state;
    tare__error error = {""};
    tare__python *python = NULL;
    assert_int_equal(python_image_python(&python, &error), 0);
    assert_int_equal(python->layout.minor, 14);
    tare__python_want_evaluations(python);
    for (int times = 0; times < 4; times++) { /* later samples are read in another way than the first */
        const tare__python_thread *threads;
        uint32_t n, cut = 0, deep = 0;
        assert_int_equal(tare__python_sample(python, &threads, &n, &error), 0);
        assert_int_equal(n, n_truth);
        for (uint32_t i = 0; i < n; i++) {
            compare_thread(python, &threads[i], truth_of(threads[i].ident));
            assert_int_equal(threads[i].has_gil, threads[i].main);
            assert_int_equal(threads[i].in_gc, threads[i].main);
            assert_int_equal(threads[i].evaluations != 0, !threads[i].cut);
            cut += threads[i].cut;
            deep += threads[i].evaluations > 2; /* calls through C */
            for (uint32_t k = 1; k < threads[i].n && !threads[i].cut; k++)
                assert_in_range(threads[i].frames[k].evaluation - threads[i].frames[k - 1].evaluation, 0, 1);
        }
        assert_int_equal(cut, 1);
        assert_true(deep >= 3);
    }
    tare__python_close(python);
}

typedef struct outcome {
    unsigned whole, torn, refused;
} outcome;

/* Two samples; the page cannot be read from the start, or after the first one. */
static void sample_without(uint64_t page, bool later, outcome *outcome)
{
    tare__error error = {""};
    tare__python *python = NULL;
    const tare__python_thread *threads = NULL;
    uint32_t n = 0;
    python_image_now.missing = later ? 0 : page;
    int status = python_image_python(&python, &error);
    for (int times = 0; times < 2 && status == 0; times++) {
        status = tare__python_sample(python, &threads, &n, &error);
        python_image_now.missing = page;
        for (uint32_t i = 0; i < n && status == 0; i++) {
            if (!threads[i].torn)
                compare_thread(python, &threads[i], truth_of(threads[i].ident));
            outcome->whole += !threads[i].torn;
            outcome->torn += threads[i].torn;
        }
    }
    outcome->refused += status != 0;
    tare__python_close(python);
    python_image_now.missing = 0;
}

/* Memory that cannot be read any more costs the stacks that have it: no other one is changed. */
static void test_missing_memory(void **state)
{
    (void)state;
    outcome outcome = {0};
    uint64_t done = 0;
    for (size_t i = 0; i < python_image_now.n; i++) {
        const python_extent *extent = &python_image_now.extents[i];
        uint64_t page = extent->address & ~(uint64_t)(PYTHON_IMAGE_PAGE - 1);
        for (page = page > done ? page : done; page < extent->address + extent->bytes; page += PYTHON_IMAGE_PAGE) {
            sample_without(page, false, &outcome);
            sample_without(page, true, &outcome);
            done = page + PYTHON_IMAGE_PAGE;
        }
    }
    print_message("%u stacks whole, %u torn; %u samples refused\n", outcome.whole, outcome.torn, outcome.refused);
    assert_true(outcome.whole > outcome.torn && outcome.torn > 0 && outcome.refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_missing_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
