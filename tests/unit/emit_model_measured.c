/* emit_model_measured: the measured half of a model's report in every format, of figures made by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit/model/measured.h"
#include "emit_golden.h"
#include "tare.h"

/* ---- figures -------------------------------------------------------------------------------------------------- */
static double samples[100], windows[4] = {12000, 12100, 11900, 12050};
static tare__runner_result results[3];
static tare__runner_layer layers[3];
static tare__runner_limit limits[3];
static const char *const notes[] = {"ids of 'words' are made up below 100: how many the model knows was not found"};
static tare__model_measured measured;

static tare__runner_result result_of(const char *name, int64_t batch, double p50)
{
    tare__runner_result result = {.name = name,
                                  .batch = batch,
                                  .precision = "fp32",
                                  .threads = 1,
                                  .ran = true,
                                  .runtime_ns = 12e6,
                                  .load_ns = 98.9e6,
                                  .first_ns = 396e3,
                                  .warmup = 20,
                                  .steady = true,
                                  .warm_cv = 0.02,
                                  .n_rates = 2,
                                  .memory_before_bytes = 7e6,
                                  .memory_loaded_bytes = 30e6,
                                  .memory_load_peak_bytes = 31e6,
                                  .memory_peak_bytes = 32e6,
                                  .memory_average_bytes = 31.5e6,
                                  .memory_per_sample_bytes = 2e6 / (double)batch,
                                  .executed = "float32"};
    result.latency = (tare__runner_times){.samples_ns = samples, .n = 100, .min_ns = p50 * 0.9, .mean_ns = p50 * 1.1,
                                          .max_ns = p50 * 3, .deviation_ns = p50 / 10, .outliers = 3,
                                          .quantile_ns = {p50, p50 * 1.5, p50 * 2}};
    result.latency.interval[0] = (tare__interval){.low = p50 * 0.98, .high = p50 * 1.02, .confidence = 0.953};
    result.latency.interval[1] = (tare__interval){.low = p50 * 1.4, .high = p50 * 1.8, .confidence = 0.955};
    result.latency.interval[2] = (tare__interval){.low = NAN, .high = NAN, .confidence = NAN, .needed = 368};
    result.rates[0] = (tare__runner_rate){"images/s", 12000, windows, 4, NAN, NAN};
    result.rates[1] = (tare__runner_rate){"samples/s", 12000, windows, 4, 11900, 12100};
    return result;
}

static int make(void **state)
{
    (void)state;
    for (size_t i = 0; i < 100; i++)
        samples[i] = 70e3 + (double)(i % 10) * 1e3;
    results[0] = result_of("batch=1,threads=1", 1, 75.5e3);
    results[0].best = true;
    results[1] = result_of("batch=8,threads=1", 8, 600e3);
    results[1].executed = "float32, float16";
    results[1].casts = 4;
    results[1].casts_share = 0.07;
    results[1].end_to_end = results[1].pre = results[1].post = results[1].latency;
    results[2] =
        (tare__runner_result){.name = "batch=16,threads=1",
                              .batch = 16,
                              .precision = "fp32",
                              .threads = 1,
                              .failure = "the model's batch is fixed at 1: export it with an open first dimension"};
    layers[0] = (tare__runner_layer){"encoder/layer.0/<b>conv</b>",
                                     "Conv",
                                     "CPUExecutionProvider",
                                     "float32",
                                     1,
                                     58e3,
                                     samples,
                                     10,
                                     0.7,
                                     true,
                                     4718592,
                                     270336,
                                     162.7e9,
                                     300e9,
                                     false,
                                     false,
                                     NULL};
    layers[1] = (tare__runner_layer){"InsertedPrecisionFreeCast_x",
                                     "Cast",
                                     "CPUExecutionProvider",
                                     "float16",
                                     1,
                                     12e3,
                                     samples,
                                     10,
                                     0.2,
                                     true,
                                     0,
                                     3000,
                                     NAN,
                                     NAN,
                                     false,
                                     true,
                                     NULL};
    layers[2] = (tare__runner_layer){"pool",
                                     "GlobalAveragePool",
                                     "CPUExecutionProvider",
                                     "float32",
                                     3,
                                     6e3,
                                     samples,
                                     10,
                                     0.1,
                                     false,
                                     0,
                                     NAN,
                                     NAN,
                                     NAN,
                                     false,
                                     false,
                                     NULL};
    limits[0] = (tare__runner_limit){"latency", results[0].name, "ns", false, 50e3, 75.5e3, true, 0.51, NULL};
    limits[1] = (tare__runner_limit){"throughput", results[0].name, "samples/s", true, 1000, 12000, false, -11, NULL};
    limits[2] =
        (tare__runner_limit){"memory", results[2].name, "bytes", false, 2e9, NAN, true, NAN, results[2].failure};
    measured = (tare__model_measured){.runtime = "/lib/libonnxruntime.so.1", .runtime_version = "1.31.1",
                                      .stored_precision = "fp32", .results = results, .n_results = 3, .layers = layers,
                                      .n_layers = 3, .layer_runs = 10, .layers_ns = 76e3, .layers_slowdown = 1.01,
                                      .peaks = {{300e9, 150e9, 300e9, 300e9, 1200e9}, {65536, 1048576, 33554432, 0},
                                                {400e9, 200e9, 100e9, 10e9}},
                                      .limits = limits, .n_limits = 3, .n_broken = 2, .notes = notes,
                                      .n_notes = 1};
    return 0;
}

/* ---- text ----------------------------------------------------------------------------------------------------- */
static void put_text(tare__text *out, const tare__model_measured *what)
{
    tare__emit_options options = {.width = 80};
    tare__page page = {.out = out, .options = &options, .name_columns = 10, .lines = TARE__PAGE_ENDLESS};
    tare__measured_text(&page, what);
}

static void text_is_as_it_was(void **state)
{
    (void)state;
    tare__text text = {0};
    put_text(&text, &measured);
    assert_golden("model-measured.txt", &text);
    for (const char *line = text.data; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        assert_true(tare__text_columns(line, strcspn(line, "\n")) <= 80);
    tare__text_free(&text);
}

/* Where the runtime's profiler costs more than short layers do, their rates would be wrong. */
static void rates_of_layers_that_profiling_made_longer(void **state)
{
    (void)state;
    static const char sentence[] = "profiled runs took 12.5 times the latency";
    tare__text text = {0};
    tare__model_measured slow = measured;
    slow.layers_slowdown = 12.5;
    slow.layers_ns = 12.5 * 75.5e3;
    layers[0].flops = layers[0].roof_flops = NAN;
    put_text(&text, &slow);
    assert_non_null(strstr(text.data, sentence));
    assert_null(strstr(text.data, "of roof"));
    assert_null(strstr(text.data, "profiler costs more")); /* nodes of 0.2 ms */
    assert_null(strstr(text.data, "FLOP/s in float32"));
    tare__text_clear(&text);
    layers[2].calls = 100;
    put_text(&text, &slow);
    layers[2].calls = 3;
    assert_non_null(strstr(text.data, "profiler costs more"));
    tare__text_clear(&text);
    tare__measured_html(&text, &(tare__model_view){.measured = &slow});
    assert_non_null(strstr(text.data, sentence));
    assert_null(strstr(text.data, ">Of roof<"));
    tare__text_clear(&text);
    layers[0].flops = 162.7e9;
    layers[0].roof_flops = 300e9;
    tare__measured_html(&text, &(tare__model_view){.measured = &measured});
    assert_null(strstr(text.data, "profiled runs took"));
    assert_non_null(strstr(text.data, ">Of roof<"));
    tare__text_free(&text);
}

static void what_was_not_measured_says_why(void **state)
{
    (void)state;
    tare__text text = {0};
    tare__model_measured none = {.absent = "no ONNX Runtime was found"};
    put_text(&text, &none);
    assert_string_equal(text.data, "\nMeasured: n/a: no ONNX Runtime was found\n");
    tare__text_clear(&text);
    put_text(&text, NULL); /* --static */
    assert_int_equal(text.length, 0);
    tare__text_free(&text);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */
static const tare__model_report analyzed = {.path = "m.onnx", .format = "onnx"};
static const tare__model_view view = {.report = &analyzed, .measured = &measured};

static void put_json(tare__text *out)
{
    tare__put_document(out, &tare__document_model, &view, true);
}

static void json_is_as_it_was(void **state)
{
    (void)state;
    tare__text text = {0};
    put_json(&text);
    assert_golden("model-measured.json", &text);
    assert_null(strstr(text.data, "nan"));
    tare__text_free(&text);
}

/* ---- the page ------------------------------------------------------------------------------------------------- */
static void pages_escape_names(void **state)
{
    (void)state;
    tare__text text = {0};
    tare__measured_html(&text, &(tare__model_view){.measured = &measured});
    assert_null(strstr(text.data, "<b>conv"));
    assert_non_null(strstr(text.data, "&lt;b&gt;conv"));
    assert_non_null(strstr(text.data, "<small>needs 368 runs</small>"));
    assert_non_null(strstr(text.data, ">Best trade-off</span>"));
    assert_non_null(strstr(text.data, "<h2>Thresholds</h2>"));
    assert_non_null(strstr(text.data, "<small>the model&#39;s batch is fixed at 1"));
    assert_non_null(strstr(text.data, "broken by 51.0 %"));
    assert_non_null(strstr(text.data, "<svg class=\"share\""));
    assert_null(strstr(text.data, " style="));
    assert_non_null(strstr(text.data, "not measured"));
    assert_null(strstr(text.data, "nan"));
    tare__text_free(&text);
}

/* ---- CSV ------------------------------------------------------------------------------------------------------ */
static kept file;
static tare__emit_sink sink;
static char names[1024];
static unsigned refuse;

static const tare__emit_sink *open_file(void *context, const char *name)
{
    (void)context;
    strcat(strcat(names, name), " ");
    tare__text_clear(&file.text);
    file.refuse = refuse;
    sink = sink_of(&file);
    return &sink;
}

static tare__text thresholds;

static int close_file(void *context)
{
    (void)context;
    if (strstr(names, "measured_thresholds.csv ") && !thresholds.length)
        tare__text_append(&thresholds, file.text.data, file.text.length);
    return 0;
}

static void tables_and_sinks_that_refuse(void **state)
{
    (void)state;
    tare__error error;
    tare__emit_files files = {open_file, close_file, NULL};
    names[0] = '\0';
    refuse = 0;
    thresholds.length = 0;
    assert_int_equal(tare__emit_model_csv(&view, &files, &error), 0);
    assert_string_equal(
        names,
        "model.csv opsets.csv total.csv notes.csv measured.csv measured_configurations.csv "
        "measured_configurations_latency_samples_ns.csv measured_configurations_end_to_end_samples_ns.csv "
        "measured_configurations_pre_samples_ns.csv measured_configurations_post_samples_ns.csv "
        "measured_configurations_throughput.csv measured_configurations_throughput_windows.csv "
        "measured_thresholds.csv measured_layers_peaks_levels.csv measured_layers_rows.csv measured_notes.csv "
        "operators.csv layers.csv inputs.csv outputs.csv dimensions.csv weights_by_type.csv weights_by_use.csv "
        "not_counted.csv ");
    assert_non_null(
        strstr(thresholds.data, "latency,\"batch=1,threads=1\",ns,broken,0.51,,75500,at most,50000,true\r\n"));
    tare__text_free(&thresholds);
    file.writes = 0;
    refuse = 1;
    names[0] = '\0';
    assert_int_equal(tare__emit_model_csv(&view, &files, &error), TARE_E_SYSTEM);
    assert_string_equal(names, "model.csv ");
    tare__text_free(&file.text);
    file = (kept){0};
}

/* All of it, or known to be less. */
static void assert_whole_or_failed(const tare__text *got, const tare__text *whole)
{
    if (!got->failed) {
        assert_int_equal(got->length, whole->length);
        assert_memory_equal(got->data, whole->data, whole->length);
    }
}

static void put_all(tare__text texts[3])
{
    put_text(&texts[0], &measured);
    put_json(&texts[1]);
    tare__measured_html(&texts[2], &(tare__model_view){.measured = &measured});
}

static void without_memory(void **state)
{
    (void)state;
    tare__text whole[3] = {{0}};
    bool enough = false;
    put_all(whole);
    for (long allowed = 0; !enough; allowed++) {
        tare__text texts[3] = {{0}};
        assert_true(allowed < 1000);
        allocations_left = allowed;
        put_all(texts);
        enough = allocations_left > 0;
        allocations_left = -1;
        for (size_t i = 0; i < 3; i++) {
            assert_whole_or_failed(&texts[i], &whole[i]);
            tare__text_free(&texts[i]);
        }
    }
    for (size_t i = 0; i < 3; i++)
        tare__text_free(&whole[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_as_it_was),
        cmocka_unit_test(rates_of_layers_that_profiling_made_longer),
        cmocka_unit_test(what_was_not_measured_says_why),
        cmocka_unit_test(json_is_as_it_was),
        cmocka_unit_test(pages_escape_names),
        cmocka_unit_test(tables_and_sinks_that_refuse),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
