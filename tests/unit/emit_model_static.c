/* Tests of a model's views where nothing was measured: sinks that refuse, memory that runs out, lines that fit.
 * One thread. The model is a seed of the fuzzer.
 * Must not know how models are weighed. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit/emit.h"
#include "model/model.h"
#include "tare.h"

static tare__emit_writer *const views[] = {tare__emit_model_text, tare__emit_model_json, tare__emit_model_html};

typedef struct page {
    char text[512 << 10];
    size_t length;
    int writes_left; /* until one is refused; negative: none is */
} page;

static page got;

static int take(void *context, const void *bytes, size_t n)
{
    page *into = context;
    if (into->writes_left == 0 || into->length + n >= sizeof into->text)
        return -1;
    into->writes_left--;
    memcpy(into->text + into->length, bytes, n);
    into->length += n;
    into->text[into->length] = '\0';
    return 0;
}

static const tare__emit_sink *open_file(void *context, const char *name)
{
    static tare__emit_sink sink = {take, &got};
    (void)context, (void)name;
    return &sink;
}

static int close_file(void *context)
{
    (void)context;
    return 0;
}

static const tare__emit_files files = {open_file, close_file, NULL};
static tare__model_report *report;

static int analyze(void **state)
{
    static uint8_t data[16 << 10];
    const char *here = __FILE__, *slash = strrchr(here, '/');
    char path[512];
    tare__error error = {""};
    (void)state;
    snprintf(path, sizeof path, "%.*s../fuzz/corpus/fuzz_model/unknown_operator", (int)(slash + 1 - here), here);
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    size_t bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    return tare__model_analyze_bytes(data, bytes, NULL, &report, &error);
}

static int give_back(void **state)
{
    (void)state;
    tare__model_free(report);
    return 0;
}

static int show(size_t i, int writes, tare__error *error)
{
    tare__model_view view = {.report = report};
    tare__emit_options options = {.width = 80};
    tare__emit_sink sink = {take, &got};
    got.length = 0;
    got.writes_left = writes;
    return i < TARE__COUNT_OF(views) ? views[i](&view, &options, &sink, error)
                                     : tare__emit_model_csv(&view, &files, error);
}

static void what_was_not_counted_is_told(void **state)
{
    (void)state;
    tare__error error = {""};
    assert_int_equal(show(0, -1, &error), 0);
    assert_non_null(strstr(got.text, "not counted: 1 of 1 some.where.Strange"));
    for (const char *line = got.text; *line; line += strcspn(line, "\n") + 1)
        assert_true(tare__text_columns(line, strcspn(line, "\n")) <= 80);
    assert_int_equal(show(1, -1, &error), 0);
    assert_non_null(strstr(got.text, "\"macs\":null"));
    assert_int_equal(show(2, -1, &error), 0);
    assert_non_null(strstr(got.text, "no rule for this operator"));
    assert_int_equal(show(3, -1, &error), 0);
    assert_non_null(strstr(got.text, "some.where"));
}

static void sinks_that_refuse(void **state)
{
    (void)state;
    for (size_t i = 0; i <= TARE__COUNT_OF(views); i++) {
        tare__error error = {""};
        assert_int_equal(show(i, 0, &error), TARE_E_SYSTEM);
    }
}

static void memory_runs_out(void **state)
{
    (void)state;
    for (size_t i = 0; i <= TARE__COUNT_OF(views); i++) {
        int status = TARE_E_MEMORY;
        for (long n = 0; status; n++) {
            tare__error error = {""};
            allocations_left = n;
            status = show(i, -1, &error);
            allocations_left = -1;
            assert_true(status == 0 || status == TARE_E_MEMORY);
        }
        /* Nothing was left out without a word. */
        static char whole[sizeof got.text];
        memcpy(whole, got.text, got.length + 1);
        tare__error error = {""};
        assert_int_equal(show(i, -1, &error), 0);
        assert_string_equal(got.text, whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_counted_is_told),
        cmocka_unit_test(sinks_that_refuse),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, analyze, give_back);
}
