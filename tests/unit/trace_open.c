/* Tests of src/trace/open.c: what is not a trace gets a sentence with a byte; what is one opens.
 * One thread.
 * Must not know blocks' contents. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "trace/trace.h"
#include "trace_builder.h"

/* Opens these bytes, expects the status and each of the words in the sentence. */
static void expect_refusal(const void *bytes, size_t n, int status, const char *word, const char *where)
{
    builder *b = builder_new();
    tare__trace *trace = (tare__trace *)1;
    tare__error error = {""};
    assert_int_equal(tare__trace_open(build_bytes(b, bytes, n), &trace, &error), status);
    assert_null(trace);
    assert_non_null(strstr(error.text, word));
    assert_non_null(strstr(error.text, where));
    assert_non_null(strstr(error.text, b->path));
    builder_free(b);
}

static void an_empty_file_is_refused(void **state)
{
    (void)state;
    expect_refusal("", 0, TARE_E_INPUT, "empty", "byte 0");
}

static void foreign_files_are_refused(void **state)
{
    (void)state;
    char large[100000];
    memset(large, 'x', sizeof large);
    expect_refusal("{}", 2, TARE_E_INPUT, "not a trace", "byte 0");
    expect_refusal("\x7f" "ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0", 18, TARE_E_INPUT, "not a trace", "byte 0");
    expect_refusal(large, sizeof large, TARE_E_INPUT, "not a trace", "byte 0");
}

static void a_file_cut_inside_its_header_is_refused(void **state)
{
    (void)state;
    tare__file_header header;
    tare__file_header_make(&header);
    for (size_t n = 1; n < sizeof header; n++) {
        char where[32];
        snprintf(where, sizeof where, "byte %zu", n);
        expect_refusal(&header, n, TARE_E_INPUT, "inside its header", where);
    }
}

static void another_major_version_is_refused(void **state)
{
    (void)state;
    tare__file_header header;
    tare__file_header_make(&header);
    header.major = TARE__FILE_MAJOR + 1;
    header.crc = tare__crc32c(0, &header, offsetof(tare__file_header, crc));
    expect_refusal(&header, sizeof header, TARE_E_VERSION, "version 2", "byte 8");
    header.major = 0;
    header.crc = tare__crc32c(0, &header, offsetof(tare__file_header, crc));
    expect_refusal(&header, sizeof header, TARE_E_VERSION, "version 0", "byte 8");
}

static void a_newer_minor_version_is_read(void **state)
{
    (void)state;
    tare__file_header header;
    builder *b = builder_new();
    tare__trace *trace;
    tare__file_header_make(&header);
    header.minor = 99;
    header.crc = tare__crc32c(0, &header, offsetof(tare__file_header, crc));
    assert_int_equal(tare__trace_open(build_bytes(b, &header, sizeof header), &trace, NULL), 0);
    tare__trace_block block;
    assert_int_equal(tare__trace_next(trace, &block, NULL), 0);
    tare__trace_close(trace);
    builder_free(b);
}

static void a_damaged_header_alone_is_refused(void **state)
{
    (void)state;
    tare__file_header header;
    tare__file_header_make(&header);
    header.crc ^= 1;
    expect_refusal(&header, sizeof header, TARE_E_INPUT, "damaged", "byte 0");
}

static void a_damaged_header_before_good_blocks_is_noted(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_run(b);
    for (size_t i = 0; i < sizeof(tare__file_header); i++) {
        tare__trace *trace;
        tare__trace_block block;
        b->file.data[i] ^= 0x10;
        assert_int_equal(tare__trace_open(build_file(b), &trace, NULL), 0);
        assert_true(tare__trace_damage_of(trace)->file_header);
        assert_int_equal(tare__trace_next(trace, &block, NULL), 1);
        assert_int_equal(block.header.kind, TARE__BLOCK_RUN);
        assert_int_equal(tare__trace_damage_of(trace)->blocks, 0);
        tare__trace_close(trace);
        b->file.data[i] ^= 0x10;
    }
    builder_free(b);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    char folder[] = "/tmp/tare-trace-XXXXXX", fifo[64];
    tare__trace *trace;
    tare__error error;
    assert_non_null(mkdtemp(folder));
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(tare__trace_open(folder, &trace, &error), TARE_E_INPUT);
    assert_non_null(strstr(error.text, "folder"));
    assert_int_equal(tare__trace_open(fifo, &trace, &error), TARE_E_INPUT);
    assert_non_null(strstr(error.text, "is a pipe, not a trace file"));
    unlink(fifo);
    assert_int_equal(tare__trace_open(fifo, &trace, &error), TARE_E_INPUT);
    assert_non_null(strstr(error.text, "No such file"));
    rmdir(folder);
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    tare__trace_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_is_refused),
        cmocka_unit_test(foreign_files_are_refused),
        cmocka_unit_test(a_file_cut_inside_its_header_is_refused),
        cmocka_unit_test(another_major_version_is_refused),
        cmocka_unit_test(a_newer_minor_version_is_read),
        cmocka_unit_test(a_damaged_header_alone_is_refused),
        cmocka_unit_test(a_damaged_header_before_good_blocks_is_noted),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(closing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
