/* Tests of src/base/arena.c: zeroed, aligned, disjoint, bounded overhead, out of memory.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base_failing.h"

static int setup(void **state)
{
    *state = tare__arena_new();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    allocations_left = -1;
    tare__arena_free(*state);
    return 0;
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    tare__arena_free(NULL);
}

/* Every piece is filled with its own number; a piece that overlapped another would not be zero when
 * it comes, or not hold its number at the end. */
static void pieces_are_zeroed_aligned_and_disjoint(void **state)
{
    enum { PIECES = 3000 };
    static unsigned char *pieces[PIECES];
    static size_t sizes[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        sizes[i] = i % 501 == 500 ? 300000 : (i * 37) % 400;
        pieces[i] = tare__arena_alloc(*state, sizes[i]);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(pieces[i][at], 0);
        memset(pieces[i], (int)(i % 251) + 1, sizes[i]);
        assert_non_null(tare__arena_copy(*state, "odd", i % 4)); /* leaves the next piece misaligned */
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(pieces[i][at], (int)(i % 251) + 1);
}

static void empty_pieces_are_distinct(void **state)
{
    void *first = tare__arena_alloc(*state, 0), *second = tare__arena_alloc(*state, 0);
    assert_non_null(first);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
}

static void copies_end_in_nul_and_keep_inner_ones(void **state)
{
    const char *copy = tare__arena_copy(*state, "a\0b", 3);
    assert_memory_equal(copy, "a\0b", 4);
    assert_string_equal(tare__arena_copy(*state, NULL, 0), "");
}

static void blocks_grow_and_large_pieces_stand_alone(void **state)
{
    assert_non_null(tare__arena_alloc(*state, 1));
    size_t first = tare__arena_bytes(*state);
    assert_in_range(first, 64 << 10, (64 << 10) + 256);

    /* A large piece costs itself, and the small ones after it still come from the first block. */
    assert_non_null(tare__arena_alloc(*state, 5000000));
    size_t with_large = tare__arena_bytes(*state);
    assert_in_range(with_large - first, 5000000, 5000000 + 64);
    assert_non_null(tare__arena_alloc(*state, 1000));
    assert_int_equal(tare__arena_bytes(*state), with_large);

    /* So does one of a quarter block and more, once it does not fit what is left. */
    assert_non_null(tare__arena_alloc(*state, 40000));
    assert_non_null(tare__arena_alloc(*state, 40000));
    size_t with_both = tare__arena_bytes(*state);
    assert_in_range(with_both - with_large, 40000, 40000 + 64);

    /* No block is larger than 1 MiB however much was taken. */
    size_t before = with_both, largest = 0;
    for (int i = 0; i < 20000; i++) {
        assert_non_null(tare__arena_alloc(*state, 1000));
        size_t now = tare__arena_bytes(*state);
        largest = now - before > largest ? now - before : largest;
        before = now;
    }
    assert_int_equal(largest, 1 << 20);
    assert_true(before - with_large < 20000 * 1008 + (2 << 20));
}

static void absurd_sizes_are_refused(void **state)
{
    assert_null(tare__arena_alloc(*state, SIZE_MAX));
    assert_null(tare__arena_alloc(*state, SIZE_MAX - 8));
    assert_null(tare__arena_copy(*state, "x", SIZE_MAX));
    assert_non_null(tare__arena_alloc(*state, 16));
}

static void out_of_memory_keeps_what_was_given(void **state)
{
    char *kept = tare__arena_copy(*state, "kept", 4);
    size_t bytes = tare__arena_bytes(*state);
    allocations_left = 0;
    assert_null(tare__arena_alloc(*state, 1 << 20));
    int given = 0;
    while (tare__arena_alloc(*state, 1000))
        given++;
    assert_in_range(given, 50, 70); /* the rest of the first block */
    assert_int_equal(tare__arena_bytes(*state), bytes);
    assert_null(tare__arena_new());
    allocations_left = -1;
    assert_non_null(tare__arena_alloc(*state, 1000));
    assert_string_equal(kept, "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freeing_nothing_is_fine),
        cmocka_unit_test_setup_teardown(pieces_are_zeroed_aligned_and_disjoint, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_pieces_are_distinct, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_end_in_nul_and_keep_inner_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_grow_and_large_pieces_stand_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(absurd_sizes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(out_of_memory_keeps_what_was_given, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
