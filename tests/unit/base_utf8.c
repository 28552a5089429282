/* Tests of src/base/utf8.c: every code point there and back, everything that is not UTF-8, columns.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static size_t encode(char out[4], uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[size] | code);
    return size;
}

static void every_code_point_reads_back(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x110000; code++) {
        char bytes[4];
        uint32_t read = 0;
        size_t size = encode(bytes, code);
        size_t expected = code >= 0xd800 && code <= 0xdfff ? 0 : size;
        if (tare__utf8_decode(bytes, size, &read) != expected || (expected && read != code))
            fail_msg("U+%04X", code);
        if (size > 1 && tare__utf8_decode(bytes, size - 1, &read) != 0)
            fail_msg("U+%04X cut short", code);
    }
}

static void what_is_not_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",             "\xbf",             "\xc0\x80",         "\xc1\xbf",     "\xe0\x9f\xbf",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",         "\xfe",
        "\xc3(",            "\xe2\x82(",        "\xf0\x9f\x98(",    "\xed\xa0\x80", "\xf8\x88\x80\x80\x80",
    };
    for (size_t i = 0; i < TARE__COUNT_OF(bad); i++) {
        uint32_t code;
        if (tare__utf8_decode(bad[i], strlen(bad[i]), &code) != 0)
            fail_msg("entry %zu was taken for a character", i);
    }
}

static void columns_are_those_of_a_terminal(void **state)
{
    (void)state;
    static const struct {
        uint32_t code;
        unsigned columns;
    } known[] = {
        {'a', 1},    {0xe9, 1},   {0xad, 1},   {0x2026, 1}, {0x2588, 1},  {0x301, 0},  {0x200b, 0},
        {0x200d, 0}, {0xfe0f, 0}, {0x5d0, 1},  {0x5b0, 0},  {0x1100, 2},  {0x1160, 0}, {0xac00, 2},
        {0x3042, 2}, {0x6f22, 2}, {0x9fff, 2}, {0xff21, 2}, {0xff71, 1},  {0x303f, 1}, {0x1f600, 2},
        {0x231a, 2}, {0x231c, 1}, {0x2329, 2}, {0x2b55, 2}, {0x20000, 2}, {0x3fffd, 2}, {0x3fffe, 1},
        {0xe0100, 0}, {0x10ffff, 1}, {0, 1},   {0x1b, 1},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(known); i++)
        if (tare__utf8_columns(known[i].code) != known[i].columns)
            fail_msg("U+%04X is not %u", known[i].code, known[i].columns);
}

static void controls_are_known(void **state)
{
    (void)state;
    static const uint32_t controls[] = {0, '\n', 0x1b, 0x1f, 0x7f, 0x80, 0x9b, 0x9f,
                                        0x2028, 0x202e, 0x2066, 0x2069};
    static const uint32_t others[] = {' ', '~', 0xa0, 0xad, 0x2027, 0x202f, 0x2065, 0x206a, 0x200d};
    for (size_t i = 0; i < TARE__COUNT_OF(controls); i++)
        assert_true(tare__utf8_control(controls[i]));
    for (size_t i = 0; i < TARE__COUNT_OF(others); i++)
        assert_false(tare__utf8_control(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_reads_back),
        cmocka_unit_test(what_is_not_utf8_is_refused),
        cmocka_unit_test(columns_are_those_of_a_terminal),
        cmocka_unit_test(controls_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
