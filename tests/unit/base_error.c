/* Tests of src/base/error.c: the sentence, the status passed through, cutting a long one.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void keeps_status_and_sentence(void **state)
{
    (void)state;
    tare__error error;
    memset(&error, 'x', sizeof error);
    assert_int_equal(tare__fail(&error, -7, "%s: byte %d", "a.tare", 12), -7);
    assert_string_equal(error.text, "a.tare: byte 12");
}

static void works_without_a_place_for_it(void **state)
{
    (void)state;
    assert_int_equal(tare__fail(NULL, -3, "%s", "nobody reads this"), -3);
}

static void fills_the_text_to_the_last_byte(void **state)
{
    (void)state;
    tare__error error;
    char full[sizeof error.text];
    memset(full, 'a', sizeof full - 1);
    full[sizeof full - 1] = '\0';
    tare__fail(&error, -1, "%s", full);
    assert_string_equal(error.text, full);
}

/* Two-byte characters at every phase: a cut never leaves half a character before the mark. */
static void cuts_between_characters(void **state)
{
    (void)state;
    for (int shift = 0; shift < 4; shift++) {
        tare__error error;
        char letters[1201];
        for (int i = 0; i < 600; i++)
            memcpy(letters + 2 * i, "é", 2);
        letters[1200] = '\0';
        tare__fail(&error, -1, "%.*s%s", shift, "abcd", letters);
        size_t length = strlen(error.text);
        assert_true(length < sizeof error.text);
        assert_true(length >= sizeof error.text - 3);
        assert_string_equal(error.text + length - 3, "…");
        for (size_t at = 0, size; at < length; at += size) {
            uint32_t code;
            size = tare__utf8_decode(error.text + at, length - at, &code);
            assert_int_not_equal(size, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_status_and_sentence),
        cmocka_unit_test(works_without_a_place_for_it),
        cmocka_unit_test(fills_the_text_to_the_last_byte),
        cmocka_unit_test(cuts_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
