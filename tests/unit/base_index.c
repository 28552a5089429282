/* Tests of src/base/index.c: rows found by hash, collisions, moved rows, no memory.
 * One thread.
 * Must not know who uses it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "base_failing.h"

#define ROWS 5000u

static uint64_t rows[ROWS];

static bool is_number(const void *all, uint32_t row, const void *key)
{
    return ((const uint64_t *)all)[row] == *(const uint64_t *)key;
}

static uint32_t find(const tare__index *index, uint32_t hash, uint64_t key)
{
    return tare__index_find(index, hash, is_number, rows, &key);
}

/* With a good hash, and with one that is the same for all. */
static void every_row_is_found(void **state)
{
    (void)state;
    for (int collide = 0; collide < 2; collide++) {
        tare__index index = {0};
        uint32_t n = collide ? 300 : ROWS;
        assert_int_equal(find(&index, 1, 1), TARE__INDEX_NONE);
        for (uint32_t i = 0; i < n; i++) {
            rows[i] = (uint64_t)i * 7919 + 3;
            assert_true(tare__index_add(&index, collide ? UINT32_MAX : (uint32_t)tare__hash_mix(0, rows[i]), i));
        }
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(find(&index, collide ? UINT32_MAX : (uint32_t)tare__hash_mix(0, rows[i]), rows[i]), i);
        for (uint64_t key = 0; key < 3; key++)
            assert_int_equal(find(&index, collide ? UINT32_MAX : (uint32_t)tare__hash_mix(0, key), key),
                             TARE__INDEX_NONE);
        assert_int_equal(index.used, n);
        tare__index_clear(&index);
        assert_int_equal(find(&index, (uint32_t)tare__hash_mix(0, rows[1]), rows[1]), TARE__INDEX_NONE);
        tare__index_free(&index);
    }
}

static void a_row_may_move(void **state)
{
    (void)state;
    tare__index index = {0};
    rows[0] = rows[1] = rows[2] = 5;
    assert_true(tare__index_add(&index, 9, 0));
    assert_true(tare__index_add(&index, 9, 1));
    tare__index_move(&index, 9, 0, 2);
    assert_int_equal(find(&index, 9, 5), 2);
    tare__index_free(&index);
}

static void without_memory_it_stays_as_it_was(void **state)
{
    (void)state;
    tare__index index = {0};
    uint32_t n = 0;
    allocations_left = 1;
    while (n < ROWS && tare__index_add(&index, (uint32_t)tare__hash_mix(0, rows[n] = n + 1), n))
        n++;
    allocations_left = -1;
    assert_true(n > 0 && n < ROWS);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(find(&index, (uint32_t)tare__hash_mix(0, rows[i]), rows[i]), i);
    tare__index_free(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_found),
        cmocka_unit_test(a_row_may_move),
        cmocka_unit_test(without_memory_it_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
