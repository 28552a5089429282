/* model_half: single precision rounded to half, models converted, damaged ones, and memory running out at every
 * place. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base_failing.h"
#include "model/half.h"
#include "model_seed.h"
#include "tare.h"

static double value_of(uint16_t half)
{
    int exponent = half >> 10 & 31;
    double fraction = half & 1023;
    double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}

static void known_values(void **state)
{
    (void)state;
    static const struct {
        float single;
        uint16_t half;
    } pairs[] = {{0, 0}, {-0.0f, 0x8000}, {1, 0x3c00}, {-2, 0xc000}, {0.1f, 0x2e66}, {65504, 0x7bff}, {65519, 0x7bff},
                 {65520, 0x7bff}, {1e30f, 0x7bff}, {-1e30f, 0xfbff}, {INFINITY, 0x7c00}, {0x1p-24f, 1}, {0x1p-25f, 0},
                 {0x1.8p-25f, 1}, {0x1.8p-24f, 2}, {0x1p-14f, 0x0400}, {1e-10f, 0},
                 {1 + 0x1p-11f, 0x3c00}, {1 + 0x1.8p-10f, 0x3c02}}; /* ties go to the even one */
    for (size_t i = 0; i < TARE__COUNT_OF(pairs); i++)
        assert_int_equal(tare__half_of(pairs[i].single), pairs[i].half);
    assert_int_equal(tare__half_of(NAN) & 0x7e00, 0x7e00);
}

/* Each half is itself, and what lies a little beside it is rounded to it. */
static void every_half(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x7c00; half++) {
        double value = value_of((uint16_t)half), step = value_of((uint16_t)(half < 0x7bff ? half + 1 : half)) - value;
        assert_int_equal(tare__half_of((float)value), half);
        assert_int_equal(tare__half_of((float)-value), half | 0x8000);
        assert_int_equal(tare__half_of((float)(value + 0.49 * step)), half);
    }
}

static void what_is_no_model(void **state)
{
    (void)state;
    tare__error error = {""};
    char path[] = "/tmp/tare-half.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "no model", 8) == 8);
    close(fd);
    assert_int_equal(tare__half_convert(path, "/nowhere/out.onnx", &error), TARE_E_INPUT);
    assert_int_equal(tare__half_convert("/nowhere/in.onnx", "/nowhere/out.onnx", &error), TARE_E_INPUT);
    assert_non_null(strstr(error.text, "/nowhere/in.onnx"));
    unlink(path);
}

/* ---- models: the fuzzer's seeds --------------------------------------------------------------------------------- */

static const char *const converted[] = {"halved", "sized_by_floats", "conv_grouped", "from_tensorflow", "old_style",
                                        "many_heads", "unsorted", "spectrum", "open", "sized_by_moved_floats"};

static tare__model_report *analyze(const void *bytes, size_t n)
{
    tare__model_report *report;
    tare__error error = {""};
    if (tare__model_analyze_bytes(bytes, n, NULL, &report, &error) != 0)
        fail_msg("%s", error.text);
    return report;
}

/* It costs the same, its weights take half of the room, and it has a cast at each end. */
static void a_converted_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(converted); i++) {
        tare__text file = {0};
        tare__error error = {""};
        size_t bytes = read_seed(converted[i]);
        if (tare__half_convert_bytes(data, bytes, &file, &error) != 0)
            fail_msg("%s: %s", converted[i], error.text);
        tare__model_report *before = analyze(data, bytes), *after = analyze(file.data, file.length);
        assert_int_equal(after->total.macs, before->total.macs);
        assert_int_equal(after->total.parameters, before->total.parameters);
        assert_true(after->total.weight_bytes <= before->total.weight_bytes);
        assert_true(after->n_layers > before->n_layers);
        assert_int_equal(after->n_outputs, before->n_outputs);
        for (size_t k = 0; k < after->n_outputs; k++) {
            assert_string_equal(after->outputs[k].name, before->outputs[k].name);
            assert_string_equal(after->outputs[k].type, "float32");
            assert_int_equal(after->outputs[k].rank, before->outputs[k].rank);
            assert_memory_equal(after->outputs[k].dims, before->outputs[k].dims,
                                (size_t)before->outputs[k].rank * sizeof(int64_t));
        }
        tare__model_free(before);
        tare__model_free(after);
        tare__text_free(&file);
    }
}

static void what_is_refused(void **state)
{
    (void)state;
    static const char *const refused[][2] = {{"if_unknown", "graphs inside of nodes"},
                                             {"function", "functions of its own"},
                                             {"half_input_made", "produces an input"},
                                             {"output_is_other_input", "outputs is an input"},
                                             {"outside_tied", "in files beside it"}};
    for (size_t i = 0; i < TARE__COUNT_OF(refused); i++) {
        tare__text file = {0};
        tare__error error = {""};
        size_t bytes = read_seed(refused[i][0]);
        assert_int_equal(tare__half_convert_bytes(data, bytes, &file, &error), TARE_E_USAGE);
        assert_non_null(strstr(error.text, refused[i][1]));
        tare__text_free(&file);
    }
}

/* Numbers where messages belong, and a single float that comes more often than there is room for a list of them: what
 * protobuf's readers step over, and of which they take the last. */
static void fields_of_another_kind(void **state)
{
    (void)state;
    const tare__wire_field one = {.number = 2, .type = TARE__WIRE_FIXED32, .value = 0x3f800000};
    const uint32_t parts[] = {1, 2, 3, 4, 5, 6, 11, 13};
    tare__text attribute = {0}, node = {0}, graph = {0}, model = {0}, file = {0};
    tare__error error = {""};
    for (size_t i = 0; i < TARE__COUNT_OF(parts); i++) {
        tare__half_put_number(&attribute, parts[i], 1);
        tare__half_put_number(&node, parts[i], 1);
        tare__half_put_number(&graph, parts[i], 1);
        tare__half_put_number(&model, parts[i] == 1 ? 7 : parts[i], 1);
    }
    for (int i = 0; i < 5000; i++)
        tare__half_put_field(&attribute, &one);
    tare__half_put_bytes(&attribute, 1, "value_float", 11);
    tare__half_put_bytes(&node, 4, "Constant", 8);
    tare__half_put_bytes(&node, 2, "y", 1);
    tare__half_put_bytes(&node, 5, attribute.data, attribute.length);
    tare__half_put_bytes(&graph, 1, node.data, node.length);
    tare__half_put_number(&model, 1, 9);
    tare__half_put_bytes(&model, 7, "\x08\x01", 2); /* of two graphs the last one counts */
    tare__half_put_bytes(&model, 7, graph.data, graph.length);
    assert_int_equal(tare__half_convert_bytes(model.data, model.length, &file, &error), 0);
    tare__model_report *report = analyze(file.data, file.length);
    assert_int_equal(report->n_layers, 1);
    assert_true(file.length < 400);
    tare__model_free(report);
    tare__text *const all[] = {&attribute, &node, &graph, &model, &file};
    for (size_t i = 0; i < TARE__COUNT_OF(all); i++)
        tare__text_free(all[i]);
}

static void cut_at_every_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(converted); i++) {
        size_t bytes = read_seed(converted[i]);
        for (size_t cut = 0; cut < bytes; cut += bytes > 1500 ? 7 : 1) {
            tare__text file = {0};
            tare__error error = {""};
            int status = tare__half_convert_bytes(data, cut, &file, &error);
            assert_true(status == 0 || (status == TARE_E_INPUT && error.text[0]));
            tare__text_free(&file);
        }
    }
}

static void memory_runs_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(converted); i++) {
        size_t bytes = read_seed(converted[i]);
        int status = TARE_E_MEMORY;
        for (long n = 0; status != 0; n++) {
            tare__text file = {0};
            tare__error error = {""};
            allocations_left = n;
            status = tare__half_convert_bytes(data, bytes, &file, &error);
            allocations_left = -1;
            if (status && (status != TARE_E_MEMORY || !error.text[0]))
                fail_msg("%s, allocation %ld: %s", converted[i], n, error.text);
            tare__text_free(&file);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(every_half),
        cmocka_unit_test(what_is_no_model),
        cmocka_unit_test(a_converted_model),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(fields_of_another_kind),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
