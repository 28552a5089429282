/* Tests of weighing: the fuzzer's seeds whole, cut at every byte, and with memory running out at every place.
 * One thread. The seeds are what tests/e2e/onnx_models.py and onnx_runs.py write.
 * Must not know the format. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base_failing.h"
#include "model/model.h"
#include "model_seed.h"
#include "tare.h"

static const struct seed {
    const char *name;
    uint64_t macs, parameters;
} seeds[] = {
    {"conv_grouped", 55296, 216},
    {"einsum", 840, 0},
    {"if_unknown", 512, 320},
    {"loop_known", 480, 16},
    {"scan", 24, 24},
    {"function", 45, 53},
    {"attention_23", 192000, 0},
    {"many_heads", 28800, 0},
    {"group_query", 12800, 0},
    {"quantized", 14976, 4904},
    {"fused", 4608, 40},
    {"old_style", 10800, 108},
    {"from_tensorflow", 5760, 584},
    {"unsorted", 0, 0},
    {"unknown_operator", 56, 28},
    {"spectrum", 369840, 0},
    {"losses", 0, 0},
    {"classic_linear", 30, 0},
    {"classic_vectors", 55, 0},
    {"classic_trees", 0, 0},
    {"halved", 3072, 28},
    {"sized_by_floats", 30730, 4},
    {"open", 8 * 27 * 224 * 224 + 35, 251},
    {"sequence", 0, 0},
    {"optional", 0, 0},
    {"pieces", 0, 0},
    {"texts", 0, 0},
};

static void figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(seeds); i++) {
        tare__model_report *report;
        tare__error error = {""};
        size_t bytes = read_seed(seeds[i].name);
        assert_int_equal(tare__model_analyze_bytes(data, bytes, NULL, &report, &error), 0);
        assert_int_equal(report->total.macs, seeds[i].macs);
        assert_int_equal(report->total.parameters, seeds[i].parameters);
        tare__model_free(report);
    }
    tare__model_free(NULL);
}

static void cut_at_every_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(seeds); i++) {
        size_t bytes = read_seed(seeds[i].name);
        for (size_t cut = 0; cut < bytes; cut += bytes > 1500 ? 7 : 1) {
            tare__model_report *report;
            tare__error error = {""};
            int status = tare__model_analyze_bytes(data, cut, NULL, &report, &error);
            /* Cut behind the graph it is still a model: only its version of operators is gone. */
            assert_true(status == 0 || (status == TARE_E_INPUT && error.text[0] && !report));
            tare__model_free(report);
        }
    }
}

static void memory_runs_out(void **state)
{
    (void)state;
    static const char *const some[] = {"if_unknown",   "loop_known",      "scan", "function", "unsorted",
                                       "outside_tied", "unknown_operator", "classic_trees", "spectrum"};
    for (size_t i = 0; i < TARE__COUNT_OF(some); i++) {
        size_t bytes = read_seed(some[i]);
        int status = TARE_E_MEMORY;
        assert_true(bytes > 0);
        for (long n = 0; status != 0; n++) {
            tare__model_report *report;
            tare__error error = {""};
            allocations_left = n;
            status = tare__model_analyze_bytes(data, bytes, NULL, &report, &error);
            allocations_left = -1;
            if (status && status != TARE_E_MEMORY)
                fail_msg("%s, allocation %ld: %s", some[i], n, error.text);
            assert_int_equal(status == 0, report != NULL);
            tare__model_free(report);
        }
    }
}

/* What the user says decides, not the file. */
static void options(void **state)
{
    (void)state;
    tare__model_report *report;
    tare__error error = {""};
    size_t bytes = read_seed("function");
    tare__model_options given = {.batch = 7};
    assert_int_equal(tare__model_analyze_bytes(data, bytes, &given, &report, &error), 0);
    assert_int_equal(report->total.macs, 7 * 45);
    assert_int_equal(report->inputs[0].dims[0], 7);
    assert_false(report->dimensions[0].assumed);
    tare__model_free(report);
    tare__model_dimension dimension = {"batch", 3, false};
    given = (tare__model_options){.dimensions = &dimension, .n_dimensions = 1, .batch = 7};
    assert_int_equal(tare__model_analyze_bytes(data, bytes, &given, &report, &error), 0);
    assert_int_equal(report->total.macs, 3 * 45);
    tare__model_free(report);
    int64_t dims[] = {5, 6};
    tare__model_shape shape = {"x", 2, dims};
    given = (tare__model_options){.shapes = &shape, .n_shapes = 1};
    assert_int_equal(tare__model_analyze_bytes(data, bytes, &given, &report, &error), 0);
    assert_int_equal(report->total.macs, 5 * 45);
    tare__model_free(report);
    dimension.name = "nothing";
    given = (tare__model_options){.dimensions = &dimension, .n_dimensions = 1};
    assert_int_equal(tare__model_analyze_bytes(data, bytes, &given, &report, &error), TARE_E_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
