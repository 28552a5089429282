/* Tests of the importer: many records in few runs and many, the same file from both, out of memory at every place, a
 * disk without room. One thread.
 * Must not know how traces are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "base_failing.h"
#include "tare.h"
#include "trace/trace.h"

typedef struct piece {
    const char *at;
    size_t left;
} piece;

static int64_t read_piece(void *context, void *into, size_t bytes)
{
    piece *from = context;
    size_t n = from->left < bytes ? from->left : bytes;
    memcpy(into, from->at, n);
    from->at += n;
    from->left -= n;
    return (int64_t)n;
}

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tare-import-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void path_of(char out[128], const char *name)
{
    snprintf(out, 128, "%s/%s", folder, name);
}

static int import(const tare__text *json, const char *path, uint32_t records_max, tare__import_report *report)
{
    tare__error error = {""};
    piece from = {json->data, json->length};
    tare__import_options options = {
        .output = path, .overwrite = true, .input_name = "in", .records_max = records_max};
    return tare__import(read_piece, &from, &options, report, &error);
}

static size_t contents(const char *path, char **data)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    *data = malloc(bytes + 1);
    assert_non_null(*data);
    assert_int_equal(fread(*data, 1, bytes, file), bytes);
    fclose(file);
    return bytes;
}

/* Spans with two inside, on two threads, written from the last to the first; a kernel each, a counter each. */
static void write_trace(tare__text *json, unsigned spans)
{
    tare__text_string(json, "[");
    for (unsigned i = spans; i-- > 0;) {
        unsigned at = i * 100;
        for (unsigned k = 0; k < 3; k++)
            tare__text_format(
                json,
                "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op%u\",\"pid\":1,\"tid\":%u,\"ts\":%u,"
                "\"dur\":%u},\n",
                (i + k) % 7, 1 + i % 2, at + k * 10, k ? 8 : 90);
        tare__text_format(
            json,
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":%u,\"dur\":20,"
            "\"args\":{\"device\":0,\"stream\":7,\"correlation\":%u}},\n",
            at + 50, i + 1);
        tare__text_format(
            json, "{\"ph\":\"C\",\"name\":\"c\",\"pid\":1,\"tid\":1,\"ts\":%u,\"args\":{\"v\":%u}}%s\n", at,
            i, i ? "," : "]");
    }
    assert_false(json->failed);
}

static void test_runs_are_merged(void **state)
{
    (void)state;
    static const uint32_t limits[] = {7, 100, 1000, 4999};
    static tare__import_report report;
    tare__text json = {0};
    char whole_path[128], path[128], *whole = NULL;
    path_of(whole_path, "whole.tare");
    path_of(path, "runs.tare");
    write_trace(&json, 1000);
    assert_int_equal(import(&json, whole_path, 0, &report), 0);
    assert_int_equal(report.spans, 3000);
    assert_int_equal(report.complete, 1000);
    assert_int_equal(report.overlapping, 0);
    size_t bytes = contents(whole_path, &whole);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char *merged = NULL;
        assert_int_equal(import(&json, path, limits[i], &report), 0);
        assert_int_equal(contents(path, &merged), bytes);
        assert_memory_equal(merged, whole, bytes);
        free(merged);
    }
    free(whole);
    tare__text_free(&json);
    unlink(whole_path);
    unlink(path);
}

/* Whatever cannot be had: a status, and no file. */
static void test_memory(void **state)
{
    (void)state;
    static tare__import_report report;
    tare__text json = {0};
    char path[128];
    int status = TARE_E_MEMORY;
    path_of(path, "out.tare");
    write_trace(&json, 30);
    for (long n = 0; status != 0 && n < 10000; n++) {
        allocations_left = n;
        status = import(&json, path, 16, &report);
        allocations_left = -1;
        if (status) {
            assert_int_equal(status, TARE_E_MEMORY);
            assert_int_not_equal(access(path, F_OK), 0);
        }
    }
    assert_int_equal(status, 0);
    tare__text_free(&json);
    unlink(path);
}

static void test_deep(void **state)
{
    (void)state;
    static tare__import_report report;
    tare__text json = {0};
    char path[128];
    path_of(path, "deep.tare");
    tare__text_string(&json, "[");
    for (unsigned i = 0; i < 6000; i++) /* more than a block lists as open */
        tare__text_format(&json, "%s{\"ph\":\"X\",\"name\":\"f\",\"pid\":1,\"tid\":1,\"ts\":%u,\"dur\":%u}",
                          i ? "," : "", i, 20000 - 2 * i);
    tare__text_string(&json, "]");
    assert_int_equal(import(&json, path, 0, &report), 0);
    assert_int_equal(report.spans, 6000);
    assert_int_equal(report.overlapping, 0);
    tare__text_free(&json);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_are_merged),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_deep),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
