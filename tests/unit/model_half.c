/* model_half: single precision rounded to half, and models that are no models. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/half.h"
#include "tare.h"

static double value_of(uint16_t half)
{
    int exponent = half >> 10 & 31;
    double fraction = half & 1023;
    double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}

static void known_values(void **state)
{
    (void)state;
    static const struct {
        float single;
        uint16_t half;
    } pairs[] = {{0, 0}, {-0.0f, 0x8000}, {1, 0x3c00}, {-2, 0xc000}, {0.1f, 0x2e66}, {65504, 0x7bff}, {65519, 0x7bff},
                 {65520, 0x7bff}, {1e30f, 0x7bff}, {-1e30f, 0xfbff}, {INFINITY, 0x7c00}, {0x1p-24f, 1}, {0x1p-25f, 0},
                 {0x1.8p-25f, 1}, {0x1.8p-24f, 2}, {0x1p-14f, 0x0400}, {1e-10f, 0},
                 {1 + 0x1p-11f, 0x3c00}, {1 + 0x1.8p-10f, 0x3c02}}; /* ties go to the even one */
    for (size_t i = 0; i < TARE__COUNT_OF(pairs); i++)
        assert_int_equal(tare__half_of(pairs[i].single), pairs[i].half);
    assert_int_equal(tare__half_of(NAN) & 0x7e00, 0x7e00);
}

/* Each half is itself, and what lies a little beside it is rounded to it. */
static void every_half(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x7c00; half++) {
        double value = value_of((uint16_t)half), step = value_of((uint16_t)(half < 0x7bff ? half + 1 : half)) - value;
        assert_int_equal(tare__half_of((float)value), half);
        assert_int_equal(tare__half_of((float)-value), half | 0x8000);
        assert_int_equal(tare__half_of((float)(value + 0.49 * step)), half);
    }
}

static void what_is_no_model(void **state)
{
    (void)state;
    tare__error error = {""};
    char path[] = "/tmp/tare-half.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "no model", 8) == 8);
    close(fd);
    assert_int_equal(tare__half_convert(path, "/nowhere/out.onnx", &error), TARE_E_INPUT);
    assert_int_equal(tare__half_convert("/nowhere/in.onnx", "/nowhere/out.onnx", &error), TARE_E_INPUT);
    assert_non_null(strstr(error.text, "/nowhere/in.onnx"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(every_half),
        cmocka_unit_test(what_is_no_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
