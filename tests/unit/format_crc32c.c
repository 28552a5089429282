/* Tests of src/format/crc32c.c: published values, both implementations alike, in parts as in whole.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The source itself, so that the way without the instruction is tested on machines that have it. */
#include "../../src/format/crc32c.c"

static void published_values(void **state)
{
    (void)state;
    /* RFC 3720, B.4, and the check value of the CRC catalogues. */
    uint8_t data[32];
    assert_int_equal(tare__crc32c(0, "123456789", 9), 0xE3069283u);
    memset(data, 0, sizeof data);
    assert_int_equal(tare__crc32c(0, data, sizeof data), 0x8A9136AAu);
    memset(data, 0xFF, sizeof data);
    assert_int_equal(tare__crc32c(0, data, sizeof data), 0x62A8AB43u);
    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    assert_int_equal(tare__crc32c(0, data, sizeof data), 0x46DD794Eu);
    assert_int_equal(tare__crc32c(0, data, 0), 0);
}

static void with_and_without_the_instruction(void **state)
{
    (void)state;
    uint8_t data[96];
    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + 11);
    for (size_t from = 0; from < 9; from++)
        for (size_t bytes = 0; bytes + from <= sizeof data; bytes++)
            assert_int_equal(tare__crc32c(0, data + from, bytes), ~crc_bytewise(~0u, data + from, bytes));
}

static void parts_make_the_whole(void **state)
{
    (void)state;
    uint8_t data[50];
    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i);
    uint32_t whole = tare__crc32c(0, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut++)
        assert_int_equal(tare__crc32c(tare__crc32c(0, data, cut), data + cut, sizeof data - cut), whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values),
        cmocka_unit_test(with_and_without_the_instruction),
        cmocka_unit_test(parts_make_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
