/* Tests of src/format/fields.c: varints, the frame of a block, tagged fields.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "format/format.h"
#include "tare.h"

static int teardown(void **state)
{
    (void)state;
    allocations_left = -1;
    return 0;
}

static tare__reader reader_of(const void *data, size_t bytes)
{
    return (tare__reader){data, (const uint8_t *)data + bytes, false};
}

static void varints_come_back(void **state)
{
    (void)state;
    tare__text text = {0};
    for (unsigned bit = 0; bit < 64; bit++) {
        const uint64_t values[] = {UINT64_C(1) << bit, (UINT64_C(1) << bit) - 1, ~(UINT64_C(1) << bit)};
        for (unsigned i = 0; i < 3; i++) {
            tare__text_clear(&text);
            tare__varint_put(&text, values[i]);
            tare__reader reader = reader_of(text.data, text.length);
            assert_true(tare__read_varint(&reader) == values[i]);
            assert_false(reader.failed);
            assert_ptr_equal(reader.at, reader.end);
            for (size_t cut = 0; cut < text.length; cut++) {
                reader = reader_of(text.data, cut);
                assert_true(tare__read_varint(&reader) == 0);
                assert_true(reader.failed);
            }
        }
    }
    tare__text_free(&text);
}

static void varints_are_leb128(void **state)
{
    (void)state;
    tare__text text = {0};
    tare__varint_put(&text, 624485);
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.data, "\xE5\x8E\x26", 3);
    tare__text_free(&text);
}

static void varints_over_64_bits_fail(void **state)
{
    (void)state;
    const uint8_t largest[10] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01};
    const uint8_t larger[10] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02};
    const uint8_t longer[11] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    tare__reader reader = reader_of(largest, sizeof largest);
    assert_true(tare__read_varint(&reader) == UINT64_MAX);
    assert_false(reader.failed);
    reader = reader_of(larger, sizeof larger);
    tare__read_varint(&reader);
    assert_true(reader.failed);
    reader = reader_of(longer, sizeof longer);
    tare__read_varint(&reader);
    assert_true(reader.failed);
}

static void a_failed_reader_yields_nothing_more(void **state)
{
    (void)state;
    tare__reader reader = reader_of("abcdef", 6);
    assert_null(tare__read_bytes(&reader, 7));
    assert_true(reader.failed);
    assert_null(tare__read_bytes(&reader, 1));
    assert_true(tare__read_varint(&reader) == 0);
    reader = reader_of("abcdef", 6);
    assert_memory_equal(tare__read_bytes(&reader, 4), "abcd", 4);
    assert_null(tare__read_bytes(&reader, UINT64_MAX));
}

static void zigzag_keeps_small_numbers_small(void **state)
{
    (void)state;
    assert_true(tare__zigzag(0) == 0);
    assert_true(tare__zigzag(-1) == 1);
    assert_true(tare__zigzag(1) == 2);
    const int64_t values[] = {0, 1, -1, 12345, -12345, INT64_MAX, INT64_MIN};
    for (unsigned i = 0; i < TARE__COUNT_OF(values); i++)
        assert_true(tare__unzigzag(tare__zigzag(values[i])) == values[i]);
}

static void fields_come_back(void **state)
{
    (void)state;
    tare__text fields = {0}, out = {0};
    tare__field_number(&fields, TARE__FIELD_PID, 4242);
    tare__field_string(&fields, TARE__FIELD_HOST, "a host");
    tare__field_bytes(&fields, TARE__FIELD_COMMAND, "ls\0-l\0", 6);
    tare__field_string(&fields, TARE__FIELD_WRITER, "");
    tare__field_number(&fields, (tare__field)77777, UINT64_MAX);
    assert_int_equal(tare__fields_seal(TARE__BLOCK_PROCESS, 3, &fields, &out), 0);

    tare__block_header header;
    memcpy(&header, out.data, sizeof header);
    assert_null(tare__block_header_check(&header));
    assert_int_equal(header.kind, TARE__BLOCK_PROCESS);
    assert_int_equal(header.stream, 3);
    assert_int_equal(header.count, 5);
    assert_int_equal(header.payload_bytes, fields.length);
    assert_int_equal(out.length, sizeof header + fields.length);
    assert_int_equal(header.payload_crc, tare__crc32c(0, out.data + sizeof header, fields.length));

    tare__reader reader = reader_of(out.data + sizeof header, header.payload_bytes);
    uint32_t tag;
    const uint8_t *data;
    size_t bytes;
    assert_true(tare__field_next(&reader, &tag, &data, &bytes));
    assert_int_equal(tag, TARE__FIELD_PID);
    assert_true(tare__field_value(data, bytes) == 4242);
    assert_true(tare__field_next(&reader, &tag, &data, &bytes));
    assert_int_equal(tag, TARE__FIELD_HOST);
    assert_int_equal(bytes, 6);
    assert_memory_equal(data, "a host", 6);
    assert_true(tare__field_next(&reader, &tag, &data, &bytes));
    assert_int_equal(bytes, 6);
    assert_memory_equal(data, "ls\0-l\0", 6);
    assert_true(tare__field_next(&reader, &tag, &data, &bytes));
    assert_int_equal(bytes, 0);
    assert_true(tare__field_next(&reader, &tag, &data, &bytes));
    assert_int_equal(tag, 77777);
    assert_true(tare__field_value(data, bytes) == UINT64_MAX);
    assert_false(tare__field_next(&reader, &tag, &data, &bytes));
    assert_false(reader.failed);
    tare__text_free(&fields);
    tare__text_free(&out);
}

static void a_cut_field_is_not_read(void **state)
{
    (void)state;
    tare__text fields = {0};
    tare__field_string(&fields, TARE__FIELD_WRITER, "ten bytes.");
    for (size_t cut = 1; cut < fields.length; cut++) {
        tare__reader reader = reader_of(fields.data, cut);
        uint32_t tag;
        const uint8_t *data;
        size_t bytes;
        assert_false(tare__field_next(&reader, &tag, &data, &bytes));
        assert_true(reader.failed);
    }
    assert_true(tare__field_value((const uint8_t *)"", 0) == 0);
    tare__text_free(&fields);
}

static void a_tag_beyond_32_bits_is_no_known_one(void **state)
{
    (void)state;
    tare__text fields = {0};
    tare__varint_put(&fields, (UINT64_C(1) << 32) + TARE__FIELD_PID);
    tare__varint_put(&fields, 0);
    tare__reader reader = reader_of(fields.data, fields.length);
    uint32_t tag;
    const uint8_t *data;
    size_t bytes;
    assert_true(tare__field_next(&reader, &tag, &data, &bytes));
    assert_int_not_equal(tag, TARE__FIELD_PID);
    tare__text_free(&fields);
}

static void no_fields_are_an_empty_block(void **state)
{
    (void)state;
    tare__text fields = {0}, out = {0};
    assert_int_equal(tare__fields_seal(TARE__BLOCK_END, 0, &fields, &out), 0);
    assert_int_equal(out.length, sizeof(tare__block_header));
    tare__text_free(&out);
}

static void what_does_not_fit_leaves_no_trace(void **state)
{
    (void)state;
    tare__text fields = {0}, out = {0};
    static char large[TARE__BLOCK_PAYLOAD_MAX];
    tare__text_string(&out, "before");
    tare__field_bytes(&fields, TARE__FIELD_WRITER, large, sizeof large);
    assert_int_equal(tare__fields_seal(TARE__BLOCK_RUN, 0, &fields, &out), TARE_E_USAGE);
    assert_int_equal(out.length, 6);
    assert_string_equal(out.data, "before");
    tare__text_free(&fields);
    tare__text_free(&out);
}

static void no_memory_is_said(void **state)
{
    (void)state;
    tare__text fields = {0}, out = {0};
    char content[200] = {0};
    tare__field_bytes(&fields, TARE__FIELD_WRITER, content, sizeof content);
    for (long left = 0; left < 2; left++) {
        allocations_left = left;
        assert_int_equal(tare__fields_seal(TARE__BLOCK_RUN, 0, &fields, &out), TARE_E_MEMORY);
        assert_int_equal(out.length, 0);
        allocations_left = -1;
        tare__text_free(&out);
        out = (tare__text){0};
    }
    fields.failed = true;
    assert_int_equal(tare__fields_seal(TARE__BLOCK_RUN, 0, &fields, &out), TARE_E_MEMORY);
    tare__text_free(&fields);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_come_back),
        cmocka_unit_test(varints_are_leb128),
        cmocka_unit_test(varints_over_64_bits_fail),
        cmocka_unit_test(a_failed_reader_yields_nothing_more),
        cmocka_unit_test(zigzag_keeps_small_numbers_small),
        cmocka_unit_test(fields_come_back),
        cmocka_unit_test(a_cut_field_is_not_read),
        cmocka_unit_test(a_tag_beyond_32_bits_is_no_known_one),
        cmocka_unit_test(no_fields_are_an_empty_block),
        cmocka_unit_test(what_does_not_fit_leaves_no_trace),
        cmocka_unit_test_teardown(no_memory_is_said, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
