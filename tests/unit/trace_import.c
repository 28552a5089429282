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
    tare__memory_source from = {json->data, json->length};
    tare__import_options options = {
        .output = path, .overwrite = true, .input_name = "in", .records_max = records_max};
    return tare__import(tare__memory_read, &from, &options, report, &error);
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

/* ---- added to the trace of the run that it is a part of --------------------------------------------------- */
#define BASE_NS "1700000000000000000"

static void wrap_trace(tare__text *json, unsigned spans, const char *base_ns)
{
    tare__text_format(json, "{\"schemaVersion\":1,\"baseTimeNanoseconds\":%s,\"traceEvents\":", base_ns);
    write_trace(json, spans);
    tare__text_string(json, "}");
    assert_false(json->failed);
}

static int import_into(const tare__text *json, const char *path, tare__import_report *report)
{
    tare__error error = {""};
    tare__memory_source from = {json->data, json->length};
    tare__import_options options = {.into = path, .input_name = "theirs.json", .records_max = 16};
    return tare__import(tare__memory_read, &from, &options, report, &error);
}

typedef struct sum {
    uint64_t spans;
    size_t streams, processes, told;
    bool ends; /* with its END */
} sum;

static sum sum_of(const char *path)
{
    tare__error error = {""};
    tare__trace *trace = NULL;
    tare__trace_block block;
    sum sum = {0};
    size_t n;
    assert_int_equal(tare__trace_open(path, &trace, &error), 0);
    while (tare__trace_next(trace, &block, &error) == 1) {
        sum.spans += block.header.spans;
        sum.ends = block.header.kind == TARE__BLOCK_END;
    }
    assert_int_equal(tare__trace_damage_of(trace)->blocks, 0);
    assert_false(tare__trace_damage_of(trace)->torn);
    sum.streams = tare__trace_stream_count(trace);
    tare__trace_processes(trace, &sum.processes);
    const tare__trace_fact *facts = tare__trace_facts(trace, &n);
    for (size_t i = 0; i < n; i++)
        sum.told += tare__trace_fact_is(trace, &facts[i], TARE__FACT_PROFILER_READ) &&
                    strcmp(tare__trace_fact_text(trace, facts[i].file), "theirs.json") == 0;
    tare__trace_close(trace);
    return sum;
}

static void test_added_to_a_run(void **state)
{
    (void)state;
    static tare__import_report report;
    tare__text json = {0};
    char path[128];
    path_of(path, "run.tare");
    wrap_trace(&json, 100, BASE_NS);
    assert_int_equal(import(&json, path, 0, &report), 0);
    sum before = sum_of(path);
    for (unsigned time = 1; time <= 2; time++) {
        assert_int_equal(import_into(&json, path, &report), 0);
        assert_string_equal(report.path, path);
        sum after = sum_of(path);
        assert_true(after.ends);
        assert_int_equal(after.spans, (1 + time) * before.spans);
        assert_int_equal(after.streams, (1 + time) * before.streams);
        assert_int_equal(after.processes, before.processes); /* by its pid it is the same */
        assert_int_equal(after.told, time);
    }
    tare__text_free(&json);
    unlink(path);
}

static void is_refused_and_unchanged(const tare__text *json, const char *path, int expected)
{
    static tare__import_report report;
    char *before = NULL, *after = NULL;
    size_t bytes = contents(path, &before);
    assert_int_equal(import_into(json, path, &report), expected);
    assert_int_equal(contents(path, &after), bytes);
    assert_memory_equal(after, before, bytes);
    free(before);
    free(after);
}

static void test_what_cannot_be_added(void **state)
{
    (void)state;
    static tare__import_report report;
    tare__text json = {0}, other = {0}, broken = {0};
    char path[128];
    path_of(path, "run.tare");
    wrap_trace(&json, 30, BASE_NS);
    wrap_trace(&other, 30, "1600000000000000000");
    tare__text_string(&broken, "{\"traceEvents\":[");
    assert_int_equal(import(&json, path, 0, &report), 0);
    is_refused_and_unchanged(&other, path, TARE_E_INPUT); /* of another time */
    is_refused_and_unchanged(&broken, path, TARE_E_INPUT);
    char *data = NULL;
    size_t bytes = contents(path, &data);
    assert_int_equal(truncate(path, (off_t)bytes - 3), 0); /* its END is torn */
    is_refused_and_unchanged(&json, path, TARE_E_INPUT);
    free(data);
    unlink(path);
    assert_int_equal(import_into(&json, path, &report), TARE_E_INPUT); /* there is no such file */
    tare__text_free(&json);
    tare__text_free(&other);
    tare__text_free(&broken);
}

/* Whatever cannot be had: the run's trace is what it was, byte by byte. */
static void test_memory_when_added(void **state)
{
    (void)state;
    static tare__import_report report;
    tare__text json = {0};
    char path[128], *before = NULL;
    int status = TARE_E_MEMORY;
    path_of(path, "run.tare");
    wrap_trace(&json, 30, BASE_NS);
    assert_int_equal(import(&json, path, 0, &report), 0);
    size_t bytes = contents(path, &before);
    for (long n = 0; status != 0 && n < 10000; n++) {
        allocations_left = n;
        status = import_into(&json, path, &report);
        allocations_left = -1;
        if (status) {
            char *after = NULL;
            assert_int_equal(status, TARE_E_MEMORY);
            assert_int_equal(contents(path, &after), bytes);
            assert_memory_equal(after, before, bytes);
            free(after);
        }
    }
    assert_int_equal(status, 0);
    free(before);
    tare__text_free(&json);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_are_merged),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_added_to_a_run),
        cmocka_unit_test(test_what_cannot_be_added),
        cmocka_unit_test(test_memory_when_added),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
