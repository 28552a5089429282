/* Tests of src/base/text.c: growth, formats, padding, fitting into columns, out of memory, locales.
 * One thread.
 * Must not know other modules. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base_failing.h"

static void starts_empty_and_ends_in_nul(void **state)
{
    (void)state;
    tare__text text = {0};
    assert_null(text.data);
    tare__text_append(&text, NULL, 0);
    assert_string_equal(text.data, "");
    tare__text_string(&text, "ab");
    tare__text_append(&text, "c\0d", 3);
    assert_int_equal(text.length, 5);
    assert_memory_equal(text.data, "abc\0d", 6);
    char *before = text.data;
    tare__text_clear(&text);
    assert_string_equal(text.data, "");
    assert_ptr_equal(text.data, before);
    tare__text_free(&text);
    assert_null(text.data);
    assert_int_equal(text.room, 0);
}

/* Every length across the first doublings, so that a piece ends on each side of every border. */
static void grows_over_every_border(void **state)
{
    (void)state;
    char filler[300];
    memset(filler, 'x', sizeof filler);
    for (size_t first = 0; first < sizeof filler; first++) {
        tare__text appended = {0}, formatted = {0};
        tare__text_append(&appended, filler, first);
        tare__text_append(&appended, "end", 3);
        tare__text_format(&formatted, "%.*s", (int)first, filler);
        tare__text_format(&formatted, "%s", "end");
        assert_int_equal(appended.length, first + 3);
        assert_string_equal(appended.data + first, "end");
        assert_string_equal(formatted.data, appended.data);
        tare__text_free(&appended);
        tare__text_free(&formatted);
    }
}

static void pads_by_display_columns_of_the_line(void **state)
{
    (void)state;
    tare__text text = {0};
    tare__text_pad_to(&text, 2);
    tare__text_string(&text, "x\n漢e\xcc\x81");
    tare__text_pad_to(&text, 5);
    tare__text_string(&text, "|");
    tare__text_pad_to(&text, 3);
    tare__text_string(&text, "|\n\x1b[1mab\x1b[0m");
    tare__text_pad_to(&text, 4);
    tare__text_string(&text, "|");
    assert_string_equal(text.data, "  x\n漢e\xcc\x81  ||\n\x1b[1mab\x1b[0m  |");
    tare__text_free(&text);
}

static size_t columns_of(const char *string)
{
    return tare__text_columns(string, strlen(string));
}

static void counts_columns(void **state)
{
    (void)state;
    assert_int_equal(columns_of(""), 0);
    assert_int_equal(columns_of("naïve"), 5);
    assert_int_equal(columns_of("漢字"), 4);
    assert_int_equal(columns_of("e\xcc\x81"), 1);
    assert_int_equal(columns_of("a\xff\xfe" "b"), 4);
    assert_int_equal(columns_of("\x1b[31;1mred\x1b[m"), 3);
    assert_int_equal(columns_of("\x1b[31"), 4);  /* not a colour: nothing ends it */
    assert_int_equal(columns_of("\x1b[2J"), 4);
    assert_int_equal(tare__text_columns("漢", 2), 2); /* two stray bytes of a cut character */
}

static void expect_fit(const char *string, size_t columns, const char *expected)
{
    char out[256];
    size_t length = tare__text_fit(out, sizeof out, string, columns);
    assert_string_equal(out, expected);
    assert_int_equal(length, strlen(expected));
}

static void fits_with_the_cut_in_the_middle(void **state)
{
    (void)state;
    expect_fit("forward", 7, "forward");
    expect_fit("forward", 100, "forward");
    expect_fit("forward", 6, "for…rd");
    expect_fit("forward", 5, "fo…rd");
    expect_fit("forward", 2, "f…");
    expect_fit("forward", 1, "…");
    expect_fit("forward", 0, "");
    expect_fit("", 0, "");
    expect_fit("a\nb\x1b[1m\x7f", 20, "a?b?[1m?");
    expect_fit("x\xe2\x80\xaey", 20, "x?y"); /* right-to-left override */
    expect_fit("bad\xff\xc3", 20, "bad??");
    expect_fit("漢字漢字漢字", 12, "漢字漢字漢字");
    expect_fit("漢字漢字漢字", 7, "漢…字"); /* half a wide character is never shown */
    expect_fit("漢字漢字漢字", 3, "…");
    expect_fit("abcde\xcc\x81", 3, "a…e\xcc\x81"); /* an accent stays with its letter */
    expect_fit("a\xcc\x81" "bcde", 3, "a\xcc\x81…e");
    expect_fit("abc\xcc\x81", 2, "a…"); /* and is not left on the mark */
}

static void a_small_buffer_gets_the_beginning(void **state)
{
    (void)state;
    char out[5];
    assert_int_equal(tare__text_fit(out, sizeof out, "ab漢c", 20), 2); /* and not "abc" */
    assert_string_equal(out, "ab");
}

/* Every width and every buffer: within both, whole characters only, terminated, nothing beyond. */
static void fit_keeps_to_its_bounds(void **state)
{
    (void)state;
    static const char *const strings[] = {"module.layer.0.attention",
                                          "漢字e\xcc\x81 mixed 😀 naïve\x01\xff", ""};
    for (size_t s = 0; s < TARE__COUNT_OF(strings); s++)
        for (size_t columns = 0; columns < 30; columns++)
            for (size_t room = 0; room < 60; room++) {
                char *out = malloc(room ? room : 1); /* exact, so that the sanitizer sees one byte more */
                size_t length = tare__text_fit(out, room, strings[s], columns);
                assert_true(room == 0 ? length == 0 : length < room && out[length] == '\0');
                assert_true(tare__text_columns(out, length) <= columns);
                for (size_t at = 0, size; at < length; at += size) {
                    uint32_t code;
                    size = tare__utf8_decode(out + at, length - at, &code);
                    assert_int_not_equal(size, 0);
                }
                free(out);
            }
}

static void failure_sticks(void **state)
{
    (void)state;
    tare__text text = {0};
    tare__text_string(&text, "kept");
    char long_string[200];
    memset(long_string, 'x', sizeof long_string);
    allocations_left = 0;
    tare__text_format(&text, "%.*s", (int)sizeof long_string, long_string);
    allocations_left = -1;
    assert_true(text.failed);
    assert_string_equal(text.data, "kept");
    tare__text_string(&text, "!");
    tare__text_format(&text, "!");
    tare__text_pad_to(&text, 10);
    assert_string_equal(text.data, "kept");
    tare__text_clear(&text);
    tare__text_string(&text, "!");
    assert_true(text.failed);
    assert_string_equal(text.data, "");
    tare__text_free(&text);
    assert_false(text.failed);

    allocations_left = 0;
    tare__text_string(&text, "first");
    tare__text_pad_to(&text, 10);
    allocations_left = -1;
    assert_true(text.failed);
    assert_null(text.data);

    tare__text huge = {0};
    tare__text_append(&huge, "x", SIZE_MAX - 1);
    assert_true(huge.failed);
    assert_null(huge.data);
}

static void writes_doubles(void **state)
{
    (void)state;
    char out[40];
    tare__text_double(out, sizeof out, 'f', 2, -1.239);
    assert_string_equal(out, "-1.24");
    tare__text_double(out, sizeof out, 'f', 0, 12.0);
    assert_string_equal(out, "12");
    tare__text_double(out, sizeof out, 'g', 3, 1.5e-300);
    assert_string_equal(out, "1.5e-300");
    tare__text_double(out, 32, 'g', 17, -2.2250738585072014e-308);
    assert_string_equal(out, "-2.2250738585072014e-308");
}

static bool use_comma_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "pt_BR.UTF-8",
                                        "de_DE.utf8",  "de_DE",       "ps_AF.UTF-8", "ru_RU.UTF-8"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++)
        if (setlocale(LC_NUMERIC, names[i]) && strcmp(localeconv()->decimal_point, ".") != 0)
            return true;
    return false;
}

static void decimal_point_is_a_point_in_every_locale(void **state)
{
    (void)state;
    if (!use_comma_locale())
        skip();
    char plain[40], out[40];
    snprintf(plain, sizeof plain, "%.2f", 1.25);
    tare__text_double(out, sizeof out, 'f', 2, 1.25);
    setlocale(LC_NUMERIC, "C");
    assert_string_not_equal(plain, "1.25");
    assert_string_equal(out, "1.25");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_empty_and_ends_in_nul),
        cmocka_unit_test(grows_over_every_border),
        cmocka_unit_test(pads_by_display_columns_of_the_line),
        cmocka_unit_test(counts_columns),
        cmocka_unit_test(fits_with_the_cut_in_the_middle),
        cmocka_unit_test(a_small_buffer_gets_the_beginning),
        cmocka_unit_test(fit_keeps_to_its_bounds),
        cmocka_unit_test(failure_sticks),
        cmocka_unit_test(writes_doubles),
        cmocka_unit_test(decimal_point_is_a_point_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
