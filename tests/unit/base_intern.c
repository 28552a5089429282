/* Tests of src/base/intern.c: dense ids, any bytes, growth, out of memory at every allocation.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/base.h"
#include "base_failing.h"

static int setup(void **state)
{
    *state = tare__intern_new();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    allocations_left = -1;
    tare__intern_free(*state);
    return 0;
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    tare__intern_free(NULL);
}

static void ids_go_by_first_sight(void **state)
{
    assert_int_equal(tare__intern_add(*state, "forward", 7), 0);
    assert_int_equal(tare__intern_add(*state, "backward", 8), 1);
    assert_int_equal(tare__intern_add(*state, "forward", 7), 0);
    assert_int_equal(tare__intern_find(*state, "backward", 8), 1);
    assert_int_equal(tare__intern_find(*state, "back", 4), TARE__INTERN_NONE);
    assert_int_equal(tare__intern_count(*state), 2);
}

static void texts_may_be_empty_or_hold_nul(void **state)
{
    assert_int_equal(tare__intern_find(*state, NULL, 0), TARE__INTERN_NONE);
    assert_int_equal(tare__intern_add(*state, "", 0), 0);
    assert_int_equal(tare__intern_add(*state, "\0", 1), 1);
    assert_int_equal(tare__intern_add(*state, "\0\0", 2), 2);
    assert_int_equal(tare__intern_add(*state, "a\0b", 3), 3);
    assert_int_equal(tare__intern_add(*state, "a\0c", 3), 4);
    assert_int_equal(tare__intern_add(*state, NULL, 0), 0);
    size_t length = 99;
    assert_memory_equal(tare__intern_text(*state, 3, &length), "a\0b", 4);
    assert_int_equal(length, 3);
    assert_string_equal(tare__intern_text(*state, 0, NULL), "");
}

static void unknown_ids_have_no_text(void **state)
{
    size_t length = 99;
    assert_null(tare__intern_text(*state, 0, &length));
    assert_null(tare__intern_text(*state, TARE__INTERN_NONE, &length));
    assert_int_equal(length, 99);
}

static size_t make_name(char out[40], unsigned number)
{
    static const char *const forms[] = {"%u", "layer%u.weight", "a name longer than sixteen bytes %u"};
    return (size_t)snprintf(out, 40, forms[number % 3], number);
}

/* The pointers handed out first are read at the end: growth must not move texts. */
static void many_texts_stay_where_they_are(void **state)
{
    enum { NAMES = 50000 };
    static const char *texts[NAMES];
    char name[40];
    for (unsigned i = 0; i < NAMES; i++) {
        assert_int_equal(tare__intern_add(*state, name, make_name(name, i)), i);
        texts[i] = tare__intern_text(*state, i, NULL);
    }
    assert_int_equal(tare__intern_count(*state), NAMES);
    for (unsigned i = 0; i < NAMES; i++) {
        size_t length = make_name(name, i), kept;
        assert_string_equal(texts[i], name);
        assert_ptr_equal(tare__intern_text(*state, i, &kept), texts[i]);
        assert_int_equal(kept, length);
        assert_int_equal(tare__intern_find(*state, name, length), i);
    }
}

/* All lengths around the borders of the hash's words, differing in one byte at every place. */
static void every_byte_counts(void **state)
{
    char bytes[40] = {0};
    uint32_t next = 0;
    for (size_t length = 1; length <= sizeof bytes; length++) {
        assert_int_equal(tare__intern_add(*state, bytes, length), next++);
        for (size_t at = 0; at < length; at++) {
            bytes[at] = 1;
            assert_int_equal(tare__intern_add(*state, bytes, length), next++);
            bytes[at] = 0;
        }
    }
    assert_int_equal(tare__intern_count(*state), next);
}

/* With n allocations allowed, for every n up to enough: what was added is found, the rest is refused
 * and may be added later. */
static void every_allocation_fails_in_turn(void **state)
{
    (void)state;
    enum { NAMES = 3000 };
    char name[40];
    int refused_tables = 0, refused_names = 0;
    for (long allowed = 0;; allowed++) {
        allocations_left = allowed;
        tare__intern *table = tare__intern_new();
        if (!table) {
            refused_tables++;
            continue;
        }
        uint32_t added = 0;
        while (added < NAMES && tare__intern_add(table, name, make_name(name, added)) == added)
            added++;
        assert_int_equal(tare__intern_count(table), added);
        for (uint32_t i = 0; i < added; i++)
            assert_int_equal(tare__intern_add(table, name, make_name(name, i)), i);
        if (added < NAMES) {
            refused_names++;
            assert_int_equal(tare__intern_find(table, name, make_name(name, added)), TARE__INTERN_NONE);
            allocations_left = -1;
            assert_int_equal(tare__intern_add(table, name, make_name(name, added)), added);
        }
        tare__intern_free(table);
        if (added == NAMES)
            break;
    }
    assert_int_equal(refused_tables, 3); /* table, arena handle, entries; the index is made with the first name */
    assert_true(refused_names > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freeing_nothing_is_fine),
        cmocka_unit_test_setup_teardown(ids_go_by_first_sight, setup, teardown),
        cmocka_unit_test_setup_teardown(texts_may_be_empty_or_hold_nul, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_ids_have_no_text, setup, teardown),
        cmocka_unit_test_setup_teardown(many_texts_stay_where_they_are, setup, teardown),
        cmocka_unit_test_setup_teardown(every_byte_counts, setup, teardown),
        cmocka_unit_test(every_allocation_fails_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
