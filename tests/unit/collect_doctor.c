/* collect_doctor: what recording needs is tried for real, and nothing is left behind. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/collect.h"

static tare__sample_check seen[4];
static size_t seen_count;

static void keep(void *context, const tare__sample_check *check)
{
    (void)context;
    assert_true(seen_count < 4);
    seen[seen_count++] = *check;
}

static void folder_and_clock_are_told(void **state)
{
    (void)state;
    unsetenv("TARE_CLOCK");
    seen_count = 0;
    tare__collect_doctor(keep, NULL);
    assert_true(seen_count == 2 || seen_count == 3); /* a third of recordings that were killed, if any was */
    if (seen_count == 3)
        assert_string_equal(seen[2].source, "killed recordings");
    assert_string_equal(seen[0].sampler, "recording");
    assert_string_equal(seen[0].source, "shared memory");
    assert_int_not_equal(seen[0].state, TARE__SAMPLE_FAILS); /* other tests record here, too */
    assert_non_null(strstr(seen[0].detail, "free"));
    assert_string_equal(seen[1].source, "clock");
    assert_true(seen[1].detail[0]);
}

static void a_clock_that_was_asked_for_is_told(void **state)
{
    (void)state;
    setenv("TARE_CLOCK", "monotonic", 1);
    seen_count = 0;
    tare__collect_doctor(keep, NULL);
    assert_int_equal(seen[1].state, TARE__SAMPLE_PARTLY);
    assert_string_equal(seen[1].fix, "unset TARE_CLOCK");
    unsetenv("TARE_CLOCK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_and_clock_are_told),
        cmocka_unit_test(a_clock_that_was_asked_for_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
