/* Tests of the ways a comparison is shown: golden text, width, JSON, a page in which nothing can get out of its
 * place; failing sinks and memory. One thread.
 * Must not know how figures are compared. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base_failing.h"
#include "emit_golden.h"

static tare__figures *base, *head;
static tare__comparison *comparison;
static tare__emit_comparison input = {.base_name = "before.tare", .head_name = "after.tare"};

static void add(tare__figures *to, const char *name, const char *unit, tare__better better, double value,
                double total)
{
    tare__figure figure = {.name = name, .unit = unit, .better = better, .value = value, .total = total, .n = 7};
    assert_int_equal(tare__figures_add(to, &figure), 0);
}

static void add_samples(tare__figures *to, const char *name, double value, double total)
{
    double samples[12];
    for (int i = 0; i < 12; i++)
        samples[i] = value * (1 + 0.001 * (i % 5) + 0.0001 * i);
    tare__figure figure = {.name = name,
                           .unit = "ns",
                           .per = "call",
                           .better = TARE__LOWER,
                           .value = NAN,
                           .total = total,
                           .n = 12,
                           .each = 1,
                           .samples = samples,
                           .n_samples = 12};
    assert_int_equal(tare__figures_add(to, &figure), 0);
}

static void fill(tare__figures *to, double factor)
{
    to->command = "python3 train.py --epochs 3";
    to->host = "box";
    to->revision = factor > 1 ? "def0001" : "abc0001";
    to->when_ns = UINT64_C(1790857026000000000);
    add(to, "run.elapsed", "ns", TARE__LOWER, 12.3e9 * factor, 12.3e9 * factor);
    add_samples(to, "step", 31e6 * factor, 12e9 * factor);
    add(to, "step.samples/s", "samples/s", TARE__HIGHER, 16600 / factor, NAN);
    add(to, "run.io_read", "bytes", TARE__NEITHER, 4096, 4096);
    add_samples(to, "span:epoch/step/<script>alert(1)</script>", 11e6 * factor, 5e9 * factor);
    add_samples(to, "span:epoch/step/backward of a layer with a long name", 9e6, 4e9);
    add_samples(to, "operator:aten::mm", 3e6 / factor, 1e9 / factor);
    add_samples(to, "kernel:\"gemm\" & 'co'", 3e3 * factor, 1e6 * factor);
    add(to, "counter:loss", "", TARE__NEITHER, 0.25, NAN);
    add(to, factor > 1 ? "span:new\x1b[31m" : "span:gone", "ns", TARE__LOWER, 5e3, 5e6);
}

static int make(void **state)
{
    (void)state;
    base = tare__figures_new("run");
    head = tare__figures_new("run");
    fill(base, 1);
    fill(head, 1.12);
    assert_int_equal(
        tare__figures_note(head, "the file is unfinished: its recording still went on or was killed"), 0);
    static const tare__compared_function functions[] = {
        {"decode<script>", "json.py", 0.5, 0.2, -0.3}, {"Loader.next\x1b[31m", "", 0, 0.125, 0.125}};
    int status = tare__compare(base, head, NULL, &comparison);
    if (!status) {
        comparison->functions = functions;
        comparison->n_functions = TARE__COUNT_OF(functions);
    }
    return status;
}

static int unmake(void **state)
{
    (void)state;
    tare__comparison_free(comparison);
    tare__figures_free(base);
    tare__figures_free(head);
    return 0;
}

static tare__text render(tare__emit_writer *emit, tare__emit_options options)
{
    kept kept = {0};
    tare__error error = {""};
    tare__emit_sink sink = sink_of(&kept);
    input.comparison = comparison;
    options.width = options.width ? options.width : TARE__EMIT_WIDTH;
    assert_int_equal(emit(&input, &options, &sink, &error), 0);
    return kept.text;
}

static void check_width(const tare__text *text, size_t width)
{
    for (const char *at = text->data; *at;) {
        size_t length = strcspn(at, "\n");
        if (tare__text_columns(at, length) > width || (length && at[length - 1] == ' '))
            fail_msg("too wide, or blanks at its end: %.*s", (int)length, at);
        at += length + (at[length] == '\n');
    }
}

static void text_is_as_it_was(void **state)
{
    (void)state;
    tare__text text = render(tare__emit_comparison_text, (tare__emit_options){0});
    assert_golden("compare.txt", &text);
    check_width(&text, 80);
    assert_null(memchr(text.data, 0x1b, text.length)); /* of names, nothing reaches a terminal that it would obey */
    tare__text_free(&text);
    text = render(tare__emit_comparison_text, (tare__emit_options){.all = true, .width = 120});
    assert_golden("compare-all-120.txt", &text);
    check_width(&text, 120);
    tare__text_free(&text);
}

static void commands_in_turn_have_their_answer(void **state)
{
    (void)state;
    tare__compare_ab ab = {.commands = {"a", "b"},
                        .figure = "run.elapsed",
                        .rounds = 9,
                        .wanted = 40,
                        .change = 0.12,
                        .low = 0.1,
                        .high = 0.14,
                        .p = 0.02,
                        .clear = true,
                        .answer = "Clear after 9 rounds."};
    input.ab = &ab;
    tare__text text = render(tare__emit_comparison_text, (tare__emit_options){0});
    tare__text json = render(tare__emit_comparison_json, (tare__emit_options){0});
    input.ab = NULL;
    assert_non_null(strstr(text.data, "Clear after 9 rounds."));
    assert_non_null(strstr(json.data, "\"rounds\":9,\"rounds_max\":40,\"change\":0.12"));
    tare__text_free(&text);
    tare__text_free(&json);
}

typedef struct source {
    const tare__text *text;
    size_t at;
} source;

static int64_t read_text(void *context, void *into, size_t bytes)
{
    source *from = context;
    size_t left = from->text->length - from->at, taken = left < bytes ? left : bytes;
    memcpy(into, from->text->data + from->at, taken);
    from->at += taken;
    return (int64_t)taken;
}

/* Not a golden file: the last digits of a p are the compiler's. */
static void json_is_whole(void **state)
{
    (void)state;
    for (int pretty = 0; pretty < 2; pretty++) {
        tare__text text = render(tare__emit_comparison_json, (tare__emit_options){.pretty = pretty});
        source source = {&text, 0};
        tare__json_reader reader;
        tare__json_token token;
        size_t verdicts = 0, names = 0;
        assert_true(tare__json_reader_open(&reader, read_text, &source));
        while ((token = tare__json_next(&reader)) != TARE__JSON_END) {
            assert_int_not_equal(token, TARE__JSON_BROKEN);
            verdicts += token == TARE__JSON_KEY && reader.length == 7 && memcmp(reader.text, "verdict", 7) == 0;
            names += token == TARE__JSON_STRING && reader.length == 9 && memcmp(reader.text, "span:gone", 9) == 0;
        }
        assert_int_equal(verdicts, comparison->n);
        assert_int_equal(names, 1);
        tare__json_reader_close(&reader);
        if (!pretty) {
            assert_non_null(strstr(
                text.data, "{\"name\":\"step\",\"section\":\"whole\",\"unit\":\"ns\","
                           "\"better\":\"lower\",\"exact\":false,\"verdict\":\"worse\",\"reason\":\"significant\","));
            assert_non_null(strstr(text.data, "\"reason\":\"too few samples for a significance test\""));
            assert_non_null(strstr(text.data, "\"low\":null"));
        }
        tare__text_free(&text);
    }
}

static void names_stay_names_on_the_page(void **state)
{
    (void)state;
    tare__text text = render(tare__emit_comparison_html, (tare__emit_options){0});
    assert_null(strstr(text.data, "<script"));
    assert_non_null(strstr(text.data, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_non_null(strstr(text.data, "&quot;gemm&quot; &amp; &#39;co&#39;"));
    assert_null(memchr(text.data, 0x1b, text.length));
    assert_null(strstr(text.data, "http://"));
    assert_null(strstr(text.data, "https://"));
    assert_null(strstr(text.data, " style=")); /* the page's own rules would not allow it */
    assert_non_null(strstr(text.data, "prefers-color-scheme: dark"));
    assert_non_null(strstr(text.data, "<tr class=\"worse\">"));
    assert_non_null(strstr(text.data, "<svg class=\"range\""));
    const char *verdict = strstr(text.data, "<th scope=\"col\" class=\"verdict\""),
               *base = strstr(text.data, ">Baseline</th>");
    assert_true(verdict && base && verdict < base); /* what is looked for first stands beside the name */
    assert_non_null(strstr(text.data, "inconclusive<small>too few samples for a significance test</small>"));
    assert_non_null(strstr(text.data, "How to read it"));
    tare__text_free(&text);
}

static void nothing_in_common_is_said(void **state)
{
    (void)state;
    tare__figures *empty = tare__figures_new("run");
    tare__comparison *none, *whole = comparison;
    assert_int_equal(tare__compare(empty, head, NULL, &none), 0);
    comparison = none;
    tare__text text = render(tare__emit_comparison_text, (tare__emit_options){0});
    assert_non_null(strstr(text.data, "no figure in common"));
    comparison = whole;
    tare__text_free(&text);
    tare__comparison_free(none);
    tare__figures_free(empty);
}

static tare__emit_writer *const emitters[] = {tare__emit_comparison_text, tare__emit_comparison_json,
                                    tare__emit_comparison_html};

static void refused_writes_and_failing_memory_end_it(void **state)
{
    (void)state;
    tare__emit_options options = {.width = 80, .all = true};
    input.comparison = comparison;
    for (size_t i = 0; i < TARE__COUNT_OF(emitters); i++) {
        kept refusing = {.refuse = 1};
        tare__error error = {""};
        tare__emit_sink sink = sink_of(&refusing);
        assert_int_equal(emitters[i](&input, &options, &sink, &error), TARE_E_SYSTEM);
        tare__text_free(&refusing.text);
        int status = TARE_E_MEMORY, failures = 0;
        for (long left = 0; status; left++) {
            kept all = {0};
            sink = sink_of(&all);
            allocations_left = left;
            status = emitters[i](&input, &options, &sink, &error);
            allocations_left = -1;
            if (status)
                assert_int_equal(status, TARE_E_MEMORY);
            status = status || all.text.failed;
            failures += status != 0;
            tare__text_free(&all.text);
        }
        assert_true(failures > 3);
    }
}

static void every_allocation_of_comparing_may_fail(void **state)
{
    (void)state;
    int status = TARE_E_MEMORY, failures = 0;
    for (long left = 0; status; left++) {
        tare__comparison *made;
        allocations_left = left;
        status = tare__compare(base, head, NULL, &made);
        allocations_left = -1;
        failures += status != 0;
        tare__comparison_free(made);
    }
    assert_true(failures > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_as_it_was),
        cmocka_unit_test(commands_in_turn_have_their_answer),
        cmocka_unit_test(json_is_whole),
        cmocka_unit_test(names_stay_names_on_the_page),
        cmocka_unit_test(nothing_in_common_is_said),
        cmocka_unit_test(refused_writes_and_failing_memory_end_it),
        cmocka_unit_test(every_allocation_of_comparing_may_fail),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
