/* Tests of the wire reader and of what stands on it: fields in any order, numbers packed and not, every way to be cut.
 * One thread.
 * Must not know ONNX's messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "model/onnx.h"
#include "model/slices.h"

#define SLICE(...) ((tare__slice){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

static void fields_of_each_kind(void **state)
{
    (void)state;
    tare__slice message = SLICE(0x08, 0x96, 0x01,                      /* 1: 150 */
                                0x12, 0x03, 'a', 'b', 'c',             /* 2: abc */
                                0x1d, 0, 0, 0x80, 0x3f,                /* 3: 1.0f */
                                0x21, 1, 2, 3, 4, 5, 6, 7, 8,          /* 4: eight bytes */
                                0xa8, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01); /* 21: -1 */
    tare__wire wire = tare__wire_of(message);
    tare__wire_field field;
    assert_true(tare__wire_next(&wire, &field) && field.number == 1 && field.value == 150);
    assert_true(tare__wire_next(&wire, &field) && field.number == 2 && tare__slice_is(field.bytes, "abc"));
    assert_true(tare__wire_next(&wire, &field) && field.number == 3 && field.value == 0x3f800000);
    assert_true(tare__wire_next(&wire, &field) && field.number == 4 && field.value == 0x0807060504030201);
    assert_true(tare__wire_next(&wire, &field) && field.number == 21 && field.value == UINT64_MAX);
    assert_false(tare__wire_next(&wire, &field));
    assert_null(wire.wrong);
    for (size_t cut = 1; cut < message.length; cut++) {
        int whole = 0;
        wire = tare__wire_of((tare__slice){message.data, cut});
        while (tare__wire_next(&wire, &field))
            whole++;
        assert_true(whole < 5 && wire.at <= message.data + cut);
        bool between = cut == 3 || cut == 8 || cut == 13 || cut == 22;
        assert_int_equal(wire.wrong == NULL, between);
    }
}

static void what_is_no_field(void **state)
{
    (void)state;
    const tare__slice wrong[] = {
        SLICE(0x00, 0x01),                   /* number 0 */
        SLICE(0x0b, 0x01),                   /* a group */
        SLICE(0x0f, 0x01),                   /* no kind */
        SLICE(0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), /* longer than anything */
        SLICE(0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01), /* eleven bytes */
        SLICE(0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x01), /* a number beyond 32 bits */
    };
    for (size_t i = 0; i < TARE__COUNT_OF(wrong); i++) {
        tare__wire wire = tare__wire_of(wrong[i]);
        tare__wire_field field;
        assert_false(tare__wire_next(&wire, &field));
        assert_non_null(wire.wrong);
        assert_false(tare__wire_next(&wire, &field));
    }
    tare__wire nothing = tare__wire_of((tare__slice){0});
    assert_false(tare__wire_next(&nothing, &(tare__wire_field){0}));
    assert_null(nothing.wrong);
}

static void numbers_packed_and_not(void **state)
{
    (void)state;
    /* 8: 1; 8: [2, 300] packed; 9: 5; 8: [] packed; 8: 4 */
    tare__slice message = SLICE(0x40, 1, 0x42, 3, 2, 0xac, 0x02, 0x48, 5, 0x42, 0, 0x40, 4);
    const uint64_t wanted[] = {1, 2, 300, 4};
    tare__wire_numbers numbers = tare__wire_numbers_of(message, 8, TARE__WIRE_VARINT);
    uint64_t value;
    for (size_t i = 0; i < TARE__COUNT_OF(wanted); i++) {
        assert_true(tare__wire_number(&numbers, &value));
        assert_int_equal(value, wanted[i]);
    }
    assert_false(tare__wire_number(&numbers, &value));
    assert_true(tare__wire_numbers_sound(&numbers));
    numbers = tare__wire_numbers_of(SLICE(0x42, 2, 1, 0x80), 8, TARE__WIRE_VARINT);
    assert_true(tare__wire_number(&numbers, &value));
    assert_false(tare__wire_number(&numbers, &value));
    assert_false(tare__wire_numbers_sound(&numbers));
}

static void sizes(void **state)
{
    (void)state;
    uint64_t elements, bytes;
    assert_true(tare__onnx_elements_of(0, NULL, &elements) && elements == 1);
    assert_true(tare__onnx_elements_of(3, (int64_t[]){INT64_MAX, INT64_MAX, 0}, &elements) && elements == 0);
    assert_true(tare__onnx_elements_of(2, (int64_t[]){1LL << 31, 1LL << 31}, &elements) && elements == 1ULL << 62);
    assert_false(tare__onnx_elements_of(3, (int64_t[]){1LL << 31, 1LL << 31, 2}, &elements));
    assert_true(tare__onnx_bytes_of(22, 3, &bytes) && bytes == 2); /* int4: two in a byte */
    assert_true(tare__onnx_bytes_of(1, 3, &bytes) && bytes == 12);
    assert_false(tare__onnx_bytes_of(1, 1ULL << 62, &bytes));
    assert_string_equal(tare__onnx_type_name(16), "bfloat16");
    assert_null(tare__onnx_type_name(-1));
    assert_null(tare__onnx_type_name(99));
}

static void values_of_tensors(void **state)
{
    (void)state;
    double values[2];
    tare__slice raw = SLICE(0, 0x3c, 0, 0xc0); /* half: 1, -2 */
    tare__onnx_tensor tensor = {.type = TARE__ONNX_FLOAT16, .elements = 2, .raw = raw};
    assert_true(tare__onnx_tensor_values(&tensor, values, 2) && values[0] == 1 && values[1] == -2);
    tensor = (tare__onnx_tensor){.type = TARE__ONNX_INT64,
                                 .elements = 2,
                                 .message =
                                     SLICE(0x3a, 11, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)};
    assert_true(tare__onnx_tensor_values(&tensor, values, 2) && values[0] == 7 && values[1] == -1);
    tensor.elements = 3; /* fewer are there than the shape asks for */
    assert_false(tare__onnx_tensor_values(&tensor, values, 3));
    tensor = (tare__onnx_tensor){.type = TARE__ONNX_STRING, .elements = 1};
    assert_false(tare__onnx_tensor_values(&tensor, values, 1));
}

static void names_to_numbers(void **state)
{
    (void)state;
    tare__slices table = {0};
    char names[500][8];
    assert_int_equal(tare__slices_find(&table, SLICE('a')), TARE__SLICES_NONE);
    for (uint32_t i = 0; i < 500; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        assert_true(tare__slices_add(&table, (tare__slice){(uint8_t *)names[i], strlen(names[i])}, i));
    }
    assert_true(tare__slices_add(&table, (tare__slice){(uint8_t *)"n7", 2}, 4711));
    assert_int_equal(table.n, 500);
    for (uint32_t i = 0; i < 500; i++)
        assert_int_equal(tare__slices_find(&table, (tare__slice){(uint8_t *)names[i], strlen(names[i])}),
                         i == 7 ? 4711 : i);
    assert_int_equal(tare__slices_find(&table, SLICE('n')), TARE__SLICES_NONE);
    tare__slices_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_each_kind),    cmocka_unit_test(what_is_no_field),
        cmocka_unit_test(numbers_packed_and_not), cmocka_unit_test(sizes),
        cmocka_unit_test(values_of_tensors),      cmocka_unit_test(names_to_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
