/* Tests of src/base/json.c: structure in both styles, strings of any bytes, numbers, out of memory.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base_failing.h"

static void write_sample(tare__text *out, bool pretty)
{
    tare__json json;
    tare__json_begin(&json, out, pretty);
    tare__json_object(&json);
    tare__json_key(&json, "name");
    tare__json_string(&json, "forward");
    tare__json_key(&json, "calls");
    tare__json_array(&json);
    tare__json_unsigned(&json, UINT64_MAX);
    tare__json_signed(&json, INT64_MIN);
    tare__json_object(&json);
    tare__json_end_object(&json);
    tare__json_array(&json);
    tare__json_end_array(&json);
    tare__json_end_array(&json);
    tare__json_key(&json, "ok");
    tare__json_bool(&json, true);
    tare__json_key(&json, "gone");
    tare__json_null(&json);
    tare__json_end_object(&json);
}

static void writes_one_line(void **state)
{
    (void)state;
    tare__text out = {0};
    write_sample(&out, false);
    assert_string_equal(out.data, "{\"name\":\"forward\",\"calls\":[18446744073709551615,"
                                  "-9223372036854775808,{},[]],\"ok\":true,\"gone\":null}");
    tare__text_free(&out);
}

static void writes_indented(void **state)
{
    (void)state;
    tare__text out = {0};
    write_sample(&out, true);
    assert_string_equal(out.data, "{\n"
                                  "  \"name\": \"forward\",\n"
                                  "  \"calls\": [\n"
                                  "    18446744073709551615,\n"
                                  "    -9223372036854775808,\n"
                                  "    {},\n"
                                  "    []\n"
                                  "  ],\n"
                                  "  \"ok\": true,\n"
                                  "  \"gone\": null\n"
                                  "}");
    tare__text_free(&out);
}

static void indents_deeply(void **state)
{
    (void)state;
    tare__text out = {0};
    tare__json json;
    tare__json_begin(&json, &out, true);
    for (int i = 0; i < 50; i++)
        tare__json_array(&json);
    tare__json_bool(&json, false);
    for (int i = 0; i < 50; i++)
        tare__json_end_array(&json);
    const char *value = strstr(out.data, "false");
    assert_non_null(value);
    for (int i = 1; i <= 100; i++)
        assert_int_equal(value[-i], ' ');
    assert_int_equal(value[-101], '\n');
    assert_int_equal(json.depth, 0);
    tare__text_free(&out);
}

static void expect_text(const char *bytes, size_t length, const char *expected)
{
    tare__text out = {0};
    tare__json json;
    tare__json_begin(&json, &out, false);
    tare__json_text(&json, bytes, length);
    assert_string_equal(out.data, expected);
    tare__text_free(&out);
}

static void escapes_what_must_be(void **state)
{
    (void)state;
    expect_text("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
    expect_text("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
    expect_text("\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\"");
    expect_text("naïve 漢 😀", strlen("naïve 漢 😀"), "\"naïve 漢 😀\"");
    expect_text("", 0, "\"\"");
    expect_text(NULL, 0, "\"\"");
}

static void replaces_what_is_not_utf8(void **state)
{
    (void)state;
    expect_text("a\xff" "b", 3, "\"a\xef\xbf\xbd" "b\"");
    expect_text("\xc3", 1, "\"\xef\xbf\xbd\"");
    expect_text("\xc3\xa9\xc3", 3, "\"\xc3\xa9\xef\xbf\xbd\"");
    expect_text("\xc3\"", 2, "\"\xef\xbf\xbd\\\"\""); /* the quote behind it is still escaped */
    expect_text("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void escapes_keys_and_takes_null(void **state)
{
    (void)state;
    tare__text out = {0};
    tare__json json;
    tare__json_begin(&json, &out, false);
    tare__json_object(&json);
    tare__json_key(&json, "a\n");
    tare__json_string(&json, NULL);
    tare__json_end_object(&json);
    assert_string_equal(out.data, "{\"a\\n\":null}");
    tare__text_free(&out);
}

static const char *written(tare__text *out, double value)
{
    tare__json json;
    tare__text_clear(out);
    tare__json_begin(&json, out, false);
    tare__json_double(&json, value);
    return out->data;
}

static void doubles_are_short(void **state)
{
    (void)state;
    tare__text out = {0};
    assert_string_equal(written(&out, 0.1), "0.1");
    assert_string_equal(written(&out, 0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(written(&out, 1.0 / 3), "0.3333333333333333");
    assert_string_equal(written(&out, 3), "3");
    assert_string_equal(written(&out, -0.0), "-0");
    assert_string_equal(written(&out, 1e300), "1e+300");
    assert_string_equal(written(&out, 9007199254740993.0), "9007199254740992");
    tare__text_free(&out);
}

static void what_json_cannot_say_is_null(void **state)
{
    (void)state;
    tare__text out = {0};
    assert_string_equal(written(&out, NAN), "null");
    assert_string_equal(written(&out, INFINITY), "null");
    assert_string_equal(written(&out, -INFINITY), "null");
    tare__text_free(&out);
}

/* Random bit patterns (a fixed sequence): each reads back as itself. */
static void doubles_read_back_equal(void **state)
{
    (void)state;
    tare__text out = {0};
    uint64_t bits = 42;
    for (int i = 0; i < 20000; i++) {
        bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value) && strtod(written(&out, value), NULL) != value)
            fail_msg("%a was written as %s", value, out.data);
    }
    tare__text_free(&out);
}

/* With n allocations allowed: either the whole document or a text that says it failed. */
static void out_of_memory_shows_in_the_text(void **state)
{
    (void)state;
    tare__text whole = {0};
    write_sample(&whole, true);
    int failures = 0;
    for (long allowed = 0;; allowed++) {
        tare__text out = {0};
        allocations_left = allowed;
        write_sample(&out, true);
        allocations_left = -1;
        bool failed = out.failed;
        if (failed)
            failures++;
        else
            assert_string_equal(out.data, whole.data);
        tare__text_free(&out);
        if (!failed)
            break;
    }
    assert_true(failures >= 2);
    tare__text_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_one_line),
        cmocka_unit_test(writes_indented),
        cmocka_unit_test(indents_deeply),
        cmocka_unit_test(escapes_what_must_be),
        cmocka_unit_test(replaces_what_is_not_utf8),
        cmocka_unit_test(escapes_keys_and_takes_null),
        cmocka_unit_test(doubles_are_short),
        cmocka_unit_test(what_json_cannot_say_is_null),
        cmocka_unit_test(doubles_read_back_equal),
        cmocka_unit_test(out_of_memory_shows_in_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
