/* Tests of src/base/peaks.c: peaks as words and back, and the least time of bytes.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/base.h"

static const tare__peaks machine = {{200e9, 100e9, 200e9, NAN, 400e9}, {1000, 10000, 0, 0}, {4000, 1000, NAN, 100}};

static void near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

static void words_come_back_as_they_were(void **state)
{
    tare__peaks read;
    tare__text words = {0};
    (void)state;
    tare__peaks_write(&machine, &words);
    assert_string_equal(words.data, "f32 2.0000e+11 f64 1.0000e+11 f16 2.0000e+11 int8 4.0000e+11 L1 1000 4.0000e+03 "
                                    "L2 10000 1.0000e+03 memory 1.0000e+02");
    tare__peaks_read(&read, words.data);
    for (int i = 0; i < TARE__PEAK_TYPES; i++)
        assert_true(isnan(machine.flops[i]) ? isnan(read.flops[i]) : read.flops[i] == machine.flops[i]);
    assert_true(read.level_bytes[1] == 10000 && read.level_per_s[1] == 1000 && isnan(read.level_per_s[2]));
    assert_true(read.level_per_s[3] == 100);
    tare__text_free(&words);
}

static void nonsense_is_not_known(void **state)
{
    const char *const texts[] = {"",     "f32",    "f32 -1", "f32 inf",  "f32 nan", "f33 7", "7 7 7", "L1",
                                 "L1 5", "L1 f32", "memory", "memory x", "  ",      "f32  ", "L9 5 5"};
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++) {
        tare__peaks read;
        tare__peaks_read(&read, texts[i]);
        for (int k = 0; k < TARE__PEAK_TYPES; k++)
            assert_true(isnan(read.flops[k]));
        for (int k = 0; k < TARE__PEAK_LEVELS; k++)
            assert_true(isnan(read.level_per_s[k]));
    }
    tare__peaks read;
    tare__peaks_read(&read, "f12 3 later of a version f64 5e9");
    assert_true(read.flops[TARE__PEAK_F64] == 5e9);
}

static void bytes_take_their_time(void **state)
{
    (void)state;
    near(tare__peaks_move_s(&machine, 400), 0.1);
    near(tare__peaks_move_s(&machine, 1000), 0.25);
    near(tare__peaks_move_s(&machine, 2000), 0.25 + 1);
    near(tare__peaks_move_s(&machine, 11000), 0.25 + 10);
    near(tare__peaks_move_s(&machine, 12000), 0.25 + 10 + 10);
    tare__peaks unknown;
    tare__peaks_clear(&unknown);
    assert_true(isnan(tare__peaks_move_s(&unknown, 1)));
}

static void types_have_several_names(void **state)
{
    (void)state;
    assert_int_equal(tare__peak_find("float32", 7), TARE__PEAK_F32);
    assert_int_equal(tare__peak_find("f32", 3), TARE__PEAK_F32);
    assert_int_equal(tare__peak_find("bf16[8]", 4), TARE__PEAK_BF16);
    assert_int_equal(tare__peak_find("u8", 2), TARE__PEAK_INT8);
    assert_int_equal(tare__peak_find("i64", 3), -1);
    assert_int_equal(tare__peak_find("", 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_come_back_as_they_were),
        cmocka_unit_test(nonsense_is_not_known),
        cmocka_unit_test(bytes_take_their_time),
        cmocka_unit_test(types_have_several_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
