/* Tests of src/format/columns.c: round trips, what is stored how, damage, no memory.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "format/format.h"
#include "tare.h"

enum { COLUMNS = 6, LARGE = 20000 };
static uint8_t noise[LARGE], same[LARGE], few[LARGE];

static uint32_t next_random(void)
{
    static uint32_t seed = 12345;
    return (seed = seed * 1664525u + 1013904223u) >> 8;
}

static int setup(void **state)
{
    for (unsigned i = 0; i < LARGE; i++) {
        noise[i] = (uint8_t)next_random();
        same[i] = 7;
        few[i] = (uint8_t)(20 + next_random() % 5);
    }
    *state = tare__squeezer_new();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    allocations_left = -1;
    tare__squeezer_free(*state);
    return 0;
}

static const tare__column put[COLUMNS] = {{noise, 47}, {NULL, 0},      {same, LARGE},
                                          {few, LARGE}, {noise, LARGE}, {same, 47}};

static tare__reader reader_of(const tare__text *text)
{
    return (tare__reader){(const uint8_t *)text->data, (const uint8_t *)text->data + text->length, false};
}

static void columns_come_back(void **state)
{
    for (int level = -5; level <= 9; level += 2) {
        tare__text out = {0};
        tare__column got[COLUMNS];
        tare__squeezer_level(*state, level);
        assert_int_equal(tare__columns_put(*state, put, COLUMNS, &out), 0);
        tare__reader reader = reader_of(&out);
        assert_int_equal(tare__columns_get(*state, &reader, got, COLUMNS, LARGE), 0);
        assert_ptr_equal(reader.at, reader.end);
        for (unsigned i = 0; i < COLUMNS; i++) {
            assert_int_equal(got[i].bytes, put[i].bytes);
            if (put[i].bytes)
                assert_memory_equal(got[i].data, put[i].data, put[i].bytes);
        }
        tare__text_free(&out);
    }
}

static void each_is_stored_the_better_way(void **state)
{
    tare__text out = {0};
    assert_int_equal(tare__columns_put(*state, put, COLUMNS, &out), 0);
    tare__reader reader = reader_of(&out);
    uint64_t stored[COLUMNS];
    for (unsigned i = 0; i < COLUMNS; i++) {
        assert_int_equal(tare__read_varint(&reader), put[i].bytes);
        stored[i] = put[i].bytes ? tare__read_varint(&reader) : 0;
    }
    assert_int_equal(stored[0], 47 * 2);
    assert_true((stored[2] & 1) && stored[2] / 2 < 40);
    assert_true((stored[3] & 1) && stored[3] / 2 < LARGE * 4 / 10); /* log2(5) bits are 0.29 bytes */
    assert_int_equal(stored[4], LARGE * 2);
    assert_int_equal(stored[5], 47 * 2);
    tare__text_free(&out);
}

static void limits_hold(void **state)
{
    tare__text out = {0};
    tare__column got[COLUMNS];
    assert_int_equal(tare__columns_put(*state, put, COLUMNS, &out), 0);
    tare__reader reader = reader_of(&out);
    assert_int_equal(tare__columns_get(*state, &reader, got, COLUMNS, LARGE - 1), TARE_E_INPUT);
    tare__text_free(&out);
}

static void a_set_is_at_most_so_large(void **state)
{
    static uint8_t large[TARE__COLUMNS_BYTES_MAX / 2 + 1];
    const tare__column two[2] = {{large, sizeof large}, {large, sizeof large}};
    tare__text out = {0};
    tare__column got[2];
    assert_int_equal(tare__columns_put(*state, two, 2, &out), TARE_E_USAGE);
    /* The same as a foreign writer might put it: two small frames that unpack to too much. */
    assert_int_equal(tare__columns_put(*state, two, 1, &out), 0);
    tare__reader reader = reader_of(&out);
    uint64_t raw = tare__read_varint(&reader), stored = tare__read_varint(&reader);
    tare__text twice = {0};
    for (unsigned i = 0; i < 2; i++) {
        tare__varint_put(&twice, raw);
        tare__varint_put(&twice, stored);
    }
    for (unsigned i = 0; i < 2; i++)
        tare__text_append(&twice, (const char *)reader.at, (size_t)(stored / 2));
    reader = reader_of(&twice);
    assert_int_equal(tare__columns_get(*state, &reader, got, 2, sizeof large), TARE_E_INPUT);
    tare__text_free(&twice);
    tare__text_free(&out);
}

static void cut_sets_are_refused(void **state)
{
    tare__text out = {0};
    const tare__column some[2] = {{same, 500}, {noise, 300}};
    tare__column got[2];
    assert_int_equal(tare__columns_put(*state, some, 2, &out), 0);
    for (size_t cut = 0; cut < out.length; cut++) {
        tare__reader reader = {(const uint8_t *)out.data, (const uint8_t *)out.data + cut, false};
        assert_int_equal(tare__columns_get(*state, &reader, got, 2, LARGE), TARE_E_INPUT);
    }
    tare__text_free(&out);
}

static void wrong_lengths_are_refused(void **state)
{
    static const struct {
        uint64_t raw, stored;
    } wrong[] = {{10, 9 * 2}, {10, 11 * 2}, {10, 1}, {10, 10 * 2 + 1}, {10, UINT64_MAX}, {UINT64_MAX, 20}};
    for (unsigned i = 0; i < TARE__COUNT_OF(wrong); i++) {
        tare__text out = {0};
        tare__column got[1];
        tare__varint_put(&out, wrong[i].raw);
        tare__varint_put(&out, wrong[i].stored);
        tare__text_string(&out, "twenty bytes of text");
        tare__reader reader = reader_of(&out);
        assert_int_equal(tare__columns_get(*state, &reader, got, 1, SIZE_MAX), TARE_E_INPUT);
        tare__text_free(&out);
    }
}

/* A frame that holds more or fewer bytes than the directory says. */
static void wrong_frames_are_refused(void **state)
{
    for (int off = -1; off <= 1; off += 2) {
        tare__text out = {0}, lying = {0};
        const tare__column one = {same, 500};
        tare__column got[1];
        assert_int_equal(tare__columns_put(*state, &one, 1, &out), 0);
        tare__reader reader = reader_of(&out);
        uint64_t raw = tare__read_varint(&reader);
        tare__varint_put(&lying, (uint64_t)((int64_t)raw + off));
        tare__text_append(&lying, (const char *)reader.at, (size_t)(reader.end - reader.at));
        reader = reader_of(&lying);
        assert_int_equal(tare__columns_get(*state, &reader, got, 1, LARGE), TARE_E_INPUT);
        tare__text_free(&lying);
        tare__text_free(&out);
    }
}

static void no_memory_is_said(void **state)
{
    (void)state;
    allocations_left = 0;
    assert_null(tare__squeezer_new());
    allocations_left = -1;
    tare__squeezer *squeezer = tare__squeezer_new();
    tare__text out = {0};
    tare__column got[COLUMNS];
    allocations_left = 0;
    assert_null(tare__squeezer_room(squeezer, 10));
    assert_int_equal(tare__columns_put(squeezer, put, COLUMNS, &out), TARE_E_MEMORY);
    allocations_left = -1;
    assert_int_equal(tare__columns_put(squeezer, put, COLUMNS, &out), 0);
    tare__reader reader = reader_of(&out);
    allocations_left = 0;
    assert_int_equal(tare__columns_get(squeezer, &reader, got, COLUMNS, LARGE), TARE_E_MEMORY);
    allocations_left = -1;
    tare__text_free(&out);
    tare__squeezer_free(squeezer);
    tare__squeezer_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(columns_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(each_is_stored_the_better_way, setup, teardown),
        cmocka_unit_test_setup_teardown(limits_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(a_set_is_at_most_so_large, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_sets_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_lengths_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_frames_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_is_said, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
