/* base_array: arrays that grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"

static void grows_and_keeps(void **state)
{
    (void)state;
    int *numbers = NULL;
    size_t room = 0;
    for (size_t n = 0; n < 10000; n++) {
        assert_true(tare__array_fit(&numbers, &room, n + 1, sizeof *numbers));
        assert_true(room > n && room <= 2 * n + 16);
        numbers[n] = (int)n;
    }
    for (size_t n = 0; n < 10000; n++)
        assert_int_equal(numbers[n], n);
    int *same = numbers;
    assert_true(tare__array_fit(&numbers, &room, 5, sizeof *numbers));
    assert_ptr_equal(numbers, same);
    free(numbers);
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    int *numbers = NULL;
    size_t room = 0;
    assert_true(tare__array_fit(&numbers, &room, 3, sizeof *numbers));
    int *same = numbers;
    size_t before = room;
    assert_false(tare__array_fit(&numbers, &room, SIZE_MAX, sizeof *numbers));
    assert_false(tare__array_fit(&numbers, &room, SIZE_MAX / 2, sizeof *numbers));
    assert_ptr_equal(numbers, same);
    assert_int_equal(room, before);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_keeps),
        cmocka_unit_test(refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
