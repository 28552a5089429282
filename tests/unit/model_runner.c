/* model_runner: models run by a library that looks like ONNX Runtime: what is measured, and what goes wrong. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model_rig.h"

static void what_ran_has_figures(void **state)
{
    (void)state;
    model_rig rig;
    rig_open(&rig, "plain");
    assert_int_equal(rig_measure(&rig), 0);
    assert_null(rig.measured->absent);
    assert_string_equal(rig.measured->runtime_version, "1.20.1");
    assert_string_equal(rig.measured->stored_precision, "fp32");
    assert_int_equal(rig.measured->n_results, 1);
    const tare__runner_result *result = &rig.measured->results[0];
    assert_null(result->failure);
    assert_true(result->ran);
    assert_string_equal(result->name, "");
    assert_int_equal(result->batch, 1);
    assert_int_equal(result->warmup, 5);
    assert_int_equal(result->latency.n, 50);
    assert_true(result->latency.min_ns <= result->latency.quantile_ns[0]);
    assert_true(result->latency.quantile_ns[0] <= result->latency.quantile_ns[2]);
    assert_true(result->latency.quantile_ns[2] <= result->latency.max_ns);
    assert_true(result->load_ns > 0 && result->first_ns > 0);
    assert_true(result->memory_loaded_bytes > 0 && result->memory_average_bytes > 0);
    assert_false(result->best); /* of one there is no best */
    rig_close(&rig);
}

static void few_runs_have_no_interval(void **state)
{
    (void)state;
    model_rig rig;
    rig_open(&rig, "plain");
    assert_int_equal(rig_measure(&rig), 0);
    const tare__runner_times *latency = &rig.measured->results[0].latency;
    assert_false(isnan(latency->interval[TARE__RUNNER_P50].low));
    assert_true(isnan(latency->interval[TARE__RUNNER_P99].low));
    assert_int_equal(latency->interval[TARE__RUNNER_P99].needed, 368);
    rig.options.runs = 400;
    assert_int_equal(rig_measure(&rig), 0);
    assert_false(isnan(rig.measured->results[0].latency.interval[TARE__RUNNER_P99].high));
    rig_close(&rig);
}

static void rates_are_of_the_time_that_passed(void **state)
{
    (void)state;
    model_rig rig;
    rig_open(&rig, "plain");
    rig.dims[0] = 8;
    assert_int_equal(rig_measure(&rig), 0);
    const tare__runner_result *result = &rig.measured->results[0];
    assert_int_equal(result->n_rates, 2);
    assert_string_equal(result->rates[0].unit, "samples/s");
    assert_string_equal(result->rates[1].unit, "requests/s");
    assert_true(fabs(result->rates[0].value - 8 * result->rates[1].value) < 1e-6 * result->rates[0].value);
    /* The median window, with what lies between runs in it: never above what the shortest latency would give. */
    assert_true(result->rates[1].value <= 1e9 / result->latency.min_ns);
    assert_int_equal(result->rates[0].n_windows, 20);
    rig_close(&rig);
}

static void layers_come_from_other_runs(void **state)
{
    (void)state;
    model_rig rig;
    rig_open(&rig, "plain");
    assert_int_equal(rig_measure(&rig), 0);
    const tare__model_measured *measured = rig.measured;
    assert_int_equal(measured->n_layers, 2);
    assert_int_equal(measured->layer_runs, 10); /* the first of 11 is left out */
    assert_string_equal(measured->layers[0].name, "fc");
    assert_true(measured->layers[0].time_ns == 10000);
    assert_true(measured->layers[0].share > 0.66 && measured->layers[0].share < 0.67);
    assert_true(measured->layers[0].counted && measured->layers[0].macs == 16);
    double p50 = measured->results[0].latency.quantile_ns[TARE__RUNNER_P50]; /* of a runtime that computes nothing */
    assert_true(fabs(measured->layers_slowdown - 15000 / p50) < 1e-9 * measured->layers_slowdown);
    if (measured->layers_slowdown > 1.5)
        assert_true(isnan(measured->layers[0].flops) && isnan(measured->layers[0].roof_flops) &&
                    strstr(measured->layers[0].roof_absent, "profiling took longer"));
    else
        assert_true(fabs(measured->layers[0].flops - 3.2e6) < 1);
    assert_true(measured->layers[0].bytes == 96);
    assert_true(measured->layers[1].counted && measured->layers[1].macs == 0 && isnan(measured->layers[1].flops));
    assert_string_equal(measured->results[0].executed, "float32");
    assert_int_equal(measured->results[0].casts, 0);
    rig_close(&rig);
}

static void layers_are_not_more_than_the_model(void **state)
{
    (void)state;
    model_rig rig;
    rig_open(&rig, "plain");
    rig.report.total.macs = 15; /* of a layer of 16: one of them is wrong */
    assert_int_equal(rig_measure(&rig), 0);
    assert_false(rig.measured->layers[0].counted);
    assert_true(isnan(rig.measured->layers[0].flops) && isnan(rig.measured->layers[0].roof_flops));
    assert_true(rig.measured->layers[1].counted && rig.measured->layers[1].macs == 0);
    assert_true(rig.measured->n_notes > 0);
    rig.report.macs_at_least = true; /* the whole is not known */
    assert_int_equal(rig_measure(&rig), 0);
    assert_true(rig.measured->layers[0].counted && rig.measured->layers[0].macs == 16);
    rig_close(&rig);
}

static void casts_that_were_inserted_are_told(void **state)
{
    (void)state;
    model_rig rig;
    static const char *const both[] = {"fp16", "fp32"};
    rig_open(&rig, "fp16");
    rig.options.precisions = both;
    rig.options.n_precisions = 2;
    assert_int_equal(rig_measure(&rig), 0);
    const tare__runner_result *half = &rig.measured->results[0], *single = &rig.measured->results[1];
    assert_true(half->ran);
    assert_string_equal(half->name, "precision=fp16");
    assert_string_equal(half->executed, "float32");
    assert_int_equal(half->casts, 1);
    assert_true(half->casts_share > 0.1 && half->casts_share < 0.2);
    assert_false(single->ran);
    assert_non_null(strstr(single->failure, "stored as fp16"));
    rig_close(&rig);
}

static void batches_that_the_model_does_not_have(void **state)
{
    (void)state;
    model_rig rig;
    static const int64_t batches[] = {1, 4};
    rig_open(&rig, "plain");
    rig.analyzed.batch = 4; /* as if weighed for it: the shape is 1 x 4 all the same */
    rig.options.batches = batches + 1;
    rig.options.n_batches = 1;
    assert_int_equal(rig_measure(&rig), 0);
    assert_false(rig.measured->results[0].ran);
    assert_string_equal(rig.measured->results[0].name, "batch=4");
    assert_non_null(strstr(rig.measured->results[0].failure, "fixed at 1"));
    rig_close(&rig);
}

/* ---- what goes wrong ------------------------------------------------------------------------------------------ */
static void expect_failure(const char *words, bool ran, const char *sentence)
{
    model_rig rig;
    rig_open(&rig, words);
    assert_int_equal(rig_measure(&rig), 0);
    assert_null(rig.measured->absent);
    assert_int_equal(rig.measured->results[0].ran, ran);
    assert_non_null(rig.measured->results[0].failure);
    if (!strstr(rig.measured->results[0].failure, sentence))
        fail_msg("'%s' does not say '%s'", rig.measured->results[0].failure, sentence);
    rig_close(&rig);
}

static void failures_are_sentences(void **state)
{
    (void)state;
    expect_failure("fail-load", false, "cannot load the model: the fake does not like this model");
    expect_failure("fail-run", false, "cannot be run: the fake does not run this");
    expect_failure("odd-type", false, "input 'x' is int64, not float32");
    expect_failure("exit-run", false, "ended the process warming up, status 7");
}

static void a_crash_costs_one_row(void **state)
{
    (void)state;
    expect_failure("crash-load", false, "crashed loading the model");
    /* What was measured before it is kept. */
    model_rig rig;
    rig_open(&rig, "crash-run");
    assert_int_equal(rig_measure(&rig), 0);
    const tare__runner_result *result = &rig.measured->results[0];
    assert_non_null(strstr(result->failure, "crashed running"));
    assert_non_null(strstr(result->failure, "the fake is about to crash"));
    assert_int_equal(result->latency.n, 20); /* the 25th run, 5 of them to warm up */
    assert_true(result->ran);
    rig_close(&rig);
}

static void a_runtime_that_is_not_there(void **state)
{
    (void)state;
    model_rig rig;
    rig_open(&rig, "plain");
    free((char *)rig.options.runtime);
    rig.options.runtime = strdup("/nowhere/libonnxruntime.so");
    assert_int_equal(rig_measure(&rig), 0);
    assert_non_null(strstr(rig.measured->absent, "'/nowhere/libonnxruntime.so'"));
    assert_int_equal(rig.measured->n_results, 0);
    free((char *)rig.options.runtime);
    rig.options.runtime = strdup(fake_path("ort_old"));
    assert_int_equal(rig_measure(&rig), 0);
    assert_non_null(strstr(rig.measured->absent, "ONNX Runtime 1.2.0"));
    assert_non_null(strstr(rig.measured->absent, "too old"));
    free((char *)rig.options.runtime);
    rig.options.runtime = strdup(fake_path("nvml")); /* a library of another kind */
    assert_int_equal(rig_measure(&rig), 0);
    assert_non_null(strstr(rig.measured->absent, "has no OrtGetApiBase"));
    rig_close(&rig);
}

static void a_torn_profile_takes_only_the_layers(void **state)
{
    (void)state;
    model_rig rig;
    rig_open(&rig, "torn-profile");
    assert_int_equal(rig_measure(&rig), 0);
    assert_true(rig.measured->results[0].ran);
    assert_int_equal(rig.measured->n_layers, 0);
    assert_non_null(strstr(rig.measured->layers_absent, "damaged at byte"));
    rig_close(&rig);
}

/* ---- the commands beside it ----------------------------------------------------------------------------------- */
static void commands_beside_the_model(void **state)
{
    (void)state;
    model_rig rig;
    rig_open(&rig, "plain");
    /* 1 x 4 floats as .npy: a header of 128 bytes, 16 of values. What comes back is as long. */
    rig.options.pre = "while read -r line; do printf '\\223NUMPY\\001\\000\\166\\000'; "
                      "printf '%-117s\\n' \"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }\"; "
                      "printf 'aaaabbbbccccdddd'; done";
    rig.options.post = "while head -c 144 | grep -q NUMPY; do echo done; done";
    rig.options.runs = 10;
    assert_int_equal(rig_measure(&rig), 0);
    const tare__runner_result *result = &rig.measured->results[0];
    if (result->failure)
        fail_msg("%s", result->failure);
    assert_int_equal(result->end_to_end.n, 10);
    assert_true(result->pre.mean_ns + result->post.mean_ns < result->end_to_end.mean_ns);
    rig.options.pre = "true";
    assert_int_equal(rig_measure(&rig), 0);
    assert_non_null(strstr(rig.measured->results[0].failure, "--pre 'true' exited before it answered"));
    assert_true(rig.measured->results[0].ran); /* the model alone was measured */
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ran_has_figures),
        cmocka_unit_test(few_runs_have_no_interval),
        cmocka_unit_test(rates_are_of_the_time_that_passed),
        cmocka_unit_test(layers_come_from_other_runs),
        cmocka_unit_test(layers_are_not_more_than_the_model),
        cmocka_unit_test(casts_that_were_inserted_are_told),
        cmocka_unit_test(batches_that_the_model_does_not_have),
        cmocka_unit_test(failures_are_sentences),
        cmocka_unit_test(a_crash_costs_one_row),
        cmocka_unit_test(a_runtime_that_is_not_there),
        cmocka_unit_test(a_torn_profile_takes_only_the_layers),
        cmocka_unit_test(commands_beside_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
