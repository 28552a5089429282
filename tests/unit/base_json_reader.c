/* Tests of src/base/json_reader.c: tokens, bytes in any pieces, what is broken and where, going on, numbers.
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

typedef struct piece {
    const char *at;
    size_t left, at_once;
    bool fails; /* where it ends */
} piece;

static int64_t read_piece(void *context, void *into, size_t bytes)
{
    piece *from = context;
    size_t n = from->left < bytes ? from->left : bytes;
    n = n < from->at_once ? n : from->at_once;
    if (n == 0)
        return from->fails ? -1 : 0;
    memcpy(into, from->at, n);
    from->at += n;
    from->left -= n;
    return (int64_t)n;
}

/* All tokens as one line: {k:"s"1tfn}[], and ! where it is broken. */
static void tokens_of(const char *json, size_t at_once, tare__text *out, uint64_t *broken_at)
{
    static const char marks[] = {
        [TARE__JSON_OBJECT] = '{',    [TARE__JSON_END_OBJECT] = '}', [TARE__JSON_ARRAY] = '[',
        [TARE__JSON_END_ARRAY] = ']', [TARE__JSON_TRUE] = 't',       [TARE__JSON_FALSE] = 'f',
        [TARE__JSON_NULL] = 'n'};
    piece from = {json, strlen(json), at_once, false};
    tare__json_reader reader;
    tare__json_token token;
    assert_true(tare__json_reader_open(&reader, read_piece, &from));
    while ((token = tare__json_next(&reader)) != TARE__JSON_END && token != TARE__JSON_BROKEN) {
        bool texts = token == TARE__JSON_KEY || token == TARE__JSON_STRING || token == TARE__JSON_NUMBER;
        if (token == TARE__JSON_STRING)
            tare__text_append(out, "\"", 1);
        if (texts)
            tare__text_append(out, reader.text, reader.length);
        else
            tare__text_append(out, &marks[token], 1);
        tare__text_string(out, token == TARE__JSON_KEY ? ":" : token == TARE__JSON_STRING ? "\"" : " ");
    }
    if (token == TARE__JSON_BROKEN) {
        tare__text_string(out, "!");
        *broken_at = reader.offset;
        assert_int_equal(tare__json_next(&reader), TARE__JSON_BROKEN);
    }
    tare__json_reader_close(&reader);
}

static void expect(const char *json, const char *tokens)
{
    for (size_t at_once = 1; at_once < 70; at_once += 3) {
        tare__text out = {0};
        uint64_t broken_at = UINT64_MAX;
        tokens_of(json, at_once, &out, &broken_at);
        assert_string_equal(out.data, tokens);
        assert_true(broken_at == UINT64_MAX);
        tare__text_free(&out);
    }
}

static void expect_broken(const char *json, uint64_t at)
{
    for (size_t at_once = 1; at_once < 70; at_once += 3) {
        tare__text out = {0};
        uint64_t broken_at = UINT64_MAX;
        tokens_of(json, at_once, &out, &broken_at);
        assert_int_equal(broken_at, at);
        tare__text_free(&out);
    }
}

static void test_tokens(void **state)
{
    (void)state;
    expect("{\"a\": [1, -2.5e3, \"x\"], \"b\" : {}, \"c\":[ ] }", "{ a:[ 1 -2.5e3 \"x\"] b:{ } c:[ ] } ");
    expect(" [true,false , null,NaN,-Infinity,inf,-nan]\n", "[ t f n n n n n ] ");
    expect("\"only\"", "\"only\"");
    expect("17", "17 ");
    expect("{\"\": \"\"}", "{ :\"\"} ");
}

static void test_strings(void **state)
{
    (void)state;
    expect("\"\\\"\\\\\\/\\n\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"",
           "\"\"\\/\n\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    expect("\"\\ud83d x\"", "\"\xef\xbf\xbd x\""); /* half a pair */
    expect("\"\\ud83d\\u0041\"", "\"\xef\xbf\xbd"
                                 "A\"");
    expect("\"a\tb\nc\"", "\"a\tb\nc\""); /* nobody escaped it */
    expect("{\"k\\u0065y\": 1}", "{ key:1 } ");
    expect("{\"key\"  : 1}", "{ key:1 } ");
}

static void test_broken(void **state)
{
    (void)state;
    expect_broken("", 0);
    expect_broken("  ", 2);
    expect_broken("{\"a\": 1", 7);
    expect_broken("{\"a\" 1}", 5);
    expect_broken("{\"a\": \"b\"c\"}", 9);
    expect_broken("{a: 1}", 1);
    expect_broken("[1, 2,]", 6);
    expect_broken("[1 2]", 3);
    expect_broken("[1}", 2);
    expect_broken("[01x]", 1);
    expect_broken("[-]", 1);
    expect_broken("[1.]", 1);
    expect_broken("[nul]", 1);
    expect_broken("[trueish]", 1);
    expect_broken("[\"\\q\"]", 2);
    expect_broken("[\"\\u12g4\"]", 4);
    expect_broken("[1] 2", 4);
}

static void test_depth(void **state)
{
    (void)state;
    char json[2 * TARE__JSON_DEPTH_MAX + 8];
    memset(json, '[', TARE__JSON_DEPTH_MAX);
    memset(json + TARE__JSON_DEPTH_MAX, ']', TARE__JSON_DEPTH_MAX);
    json[2 * TARE__JSON_DEPTH_MAX] = '\0';
    tare__text out = {0};
    uint64_t broken_at = UINT64_MAX;
    tokens_of(json, 64, &out, &broken_at);
    assert_true(broken_at == UINT64_MAX);
    json[TARE__JSON_DEPTH_MAX] = '[';
    tokens_of(json, 64, &out, &broken_at);
    assert_int_equal(broken_at, TARE__JSON_DEPTH_MAX);
    tare__text_free(&out);
}

/* Longer than the window, and longer than what is kept of a string. */
static void test_long_string(void **state)
{
    (void)state;
    size_t length = 900000;
    char *json = malloc(length + 16);
    assert_non_null(json);
    memset(json, 'x', length + 16);
    json[0] = '[';
    json[1] = '"';
    memcpy(json + length, "\",7]", 5);
    piece from = {json, strlen(json), 4096, false};
    tare__json_reader reader;
    assert_true(tare__json_reader_open(&reader, read_piece, &from));
    assert_int_equal(tare__json_next(&reader), TARE__JSON_ARRAY);
    assert_int_equal(tare__json_next(&reader), TARE__JSON_STRING);
    assert_true(reader.cut);
    assert_int_equal(reader.length, TARE__JSON_STRING_MAX);
    assert_int_equal(tare__json_next(&reader), TARE__JSON_NUMBER);
    assert_int_equal(reader.offset, length + 2);
    assert_int_equal(tare__json_next(&reader), TARE__JSON_END_ARRAY);
    assert_int_equal(tare__json_next(&reader), TARE__JSON_END);
    tare__json_reader_close(&reader);
    free(json);
}

static void test_skip(void **state)
{
    (void)state;
    const char json[] = "{\"a\": {\"b\": [1, {\"c\": 2}]}, \"d\": 3}";
    piece from = {json, strlen(json), 5, false};
    tare__json_reader reader;
    assert_true(tare__json_reader_open(&reader, read_piece, &from));
    assert_int_equal(tare__json_next(&reader), TARE__JSON_OBJECT);
    assert_int_equal(tare__json_next(&reader), TARE__JSON_KEY);
    assert_int_equal(tare__json_skip(&reader, tare__json_next(&reader)), TARE__JSON_END_OBJECT);
    assert_int_equal(reader.depth, 1);
    assert_int_equal(tare__json_next(&reader), TARE__JSON_KEY);
    assert_memory_equal(reader.text, "d", 1);
    tare__json_reader_close(&reader);
}

/* A name with quotes in it that nobody escaped: the next object is read again. */
static void test_resume(void **state)
{
    (void)state;
    const char json[] = "[{\"n\": \"a\"}, {\"n\": \"b \"c\" d\", \"e\": {\"f\": 1}},\n {\"n\": \"g\"}]";
    for (size_t at_once = 1; at_once < sizeof json; at_once++) {
        piece from = {json, strlen(json), at_once, false};
        tare__json_reader reader;
        tare__json_token token;
        assert_true(tare__json_reader_open(&reader, read_piece, &from));
        assert_int_equal(tare__json_next(&reader), TARE__JSON_ARRAY);
        while ((token = tare__json_next(&reader)) != TARE__JSON_BROKEN)
            assert_int_not_equal(token, TARE__JSON_END);
        assert_int_equal(reader.offset, 23);
        assert_true(tare__json_reader_resume(&reader, 1));
        assert_int_equal(tare__json_next(&reader), TARE__JSON_KEY);
        assert_int_equal(tare__json_next(&reader), TARE__JSON_STRING);
        assert_memory_equal(reader.text, "g", 1);
        assert_int_equal(tare__json_next(&reader), TARE__JSON_END_OBJECT);
        assert_int_equal(tare__json_next(&reader), TARE__JSON_END_ARRAY);
        assert_int_equal(tare__json_next(&reader), TARE__JSON_END);
        tare__json_reader_close(&reader);
    }
}

static void test_source_fails(void **state)
{
    (void)state;
    piece from = {"[1, 2", 5, 3, true};
    tare__json_reader reader;
    assert_true(tare__json_reader_open(&reader, read_piece, &from));
    assert_int_equal(tare__json_next(&reader), TARE__JSON_ARRAY);
    assert_int_equal(tare__json_next(&reader), TARE__JSON_NUMBER);
    assert_int_equal(tare__json_next(&reader), TARE__JSON_NUMBER);
    assert_int_equal(tare__json_next(&reader), TARE__JSON_BROKEN);
    assert_true(reader.failed);
    assert_false(tare__json_reader_resume(&reader, 1));
    tare__json_reader_close(&reader);
}

static int64_t scaled(const char *text, int64_t scale)
{
    int64_t value = INT64_MIN;
    return tare__json_scaled(text, strlen(text), scale, &value) ? value : INT64_MIN;
}

static void test_numbers(void **state)
{
    (void)state;
    assert_true(scaled("1790857026000000.123", 1000) == INT64_C(1790857026000000123));
    assert_true(scaled("3878828106242.9", 1000) == INT64_C(3878828106242900));
    assert_true(scaled("0.0004", 1000) == 0);
    assert_true(scaled("-12.345", 1000) == -12345);
    assert_true(scaled("1.5e3", 1000) == 1500000);
    assert_true(scaled("9223372036854775807", 1) == INT64_MAX);
    assert_true(scaled("9223372036854775808", 1) == INT64_MIN);
    assert_true(scaled("9223372036854775807", 1000) == INT64_MIN);
    assert_true(scaled("1e300", 1) == INT64_MIN);
    assert_true(scaled("", 1) == INT64_MIN);
    assert_true(scaled("-", 1) == INT64_MIN);
    assert_true(scaled("12x", 1) == INT64_MIN);
    assert_true(tare__json_double_of("-2.5e-1", 7) == -0.25);
    assert_true(tare__json_double_of("14294173.652554883", 18) == 14294173.652554883); /* the nearest, not one beside */
    assert_true(tare__json_double_of("0.1", 3) == 0.1);
    assert_true(tare__json_double_of("-9007199254740993", 17) == -9007199254740992.0);
    assert_true(tare__json_double_of("2.2250738585072014e-308", 23) == 2.2250738585072014e-308);
    assert_true(tare__json_double_of("0e999", 5) == 0);
    assert_true(isinf(tare__json_double_of("1e999", 5)));
    assert_true(tare__json_double_of("271402351.08839196", 18) == 271402351.08839196); /* as the nearest double */
    assert_true(tare__json_double_of("25773913.542206034", 18) == 25773913.542206034);
    assert_true(tare__json_double_of("-0.000000000000000000000000125", 30) == -1.25e-25);
    assert_true(tare__json_double_of("1.7976931348623157e308", 22) == 1.7976931348623157e308);
    assert_true(isnan(tare__json_double_of("abc", 3)));
}

static void test_memory(void **state)
{
    (void)state;
    piece from = {"[]", 2, 2, false};
    for (long n = 0; n < 2; n++) {
        tare__json_reader reader;
        allocations_left = n;
        bool opened = tare__json_reader_open(&reader, read_piece, &from);
        allocations_left = -1;
        assert_false(opened);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens), cmocka_unit_test(test_strings),      cmocka_unit_test(test_broken),
        cmocka_unit_test(test_depth),  cmocka_unit_test(test_long_string),  cmocka_unit_test(test_skip),
        cmocka_unit_test(test_resume), cmocka_unit_test(test_source_fails), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
