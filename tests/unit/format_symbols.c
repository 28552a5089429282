/* Tests of src/format/symbols.c: round trips, damage, no memory.
 * One thread.
 * Must not know the other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "format/format.h"
#include "tare.h"

#define ROWS 500u

static tare__stack_symbol rows[ROWS];
static tare__stack_symbol_frame frames[ROWS][TARE__SYMBOL_DEPTH_MAX];
static uint32_t seen;

static int setup(void **state)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i] = (tare__stack_symbol){.object = 1 + i / 50, .n = i % 7 ? i % 4 : TARE__SYMBOL_DEPTH_MAX,
                                       .offset = i % 50 * (i % 3 ? 17 : UINT64_C(1) << 40), .frames = frames[i]};
        for (uint32_t k = 0; k < rows[i].n; k++)
            frames[i][k] = (tare__stack_symbol_frame){1 + (i * 31 + k * 7) % 1000, i * k};
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

static void compare(void *context, const tare__stack_symbol *row)
{
    const tare__stack_symbol *expected = &rows[seen++];
    (void)context;
    assert_int_equal(row->object, expected->object);
    assert_int_equal(row->offset, expected->offset);
    assert_int_equal(row->n, expected->n);
    for (uint32_t k = 0; k < row->n; k++) {
        assert_int_equal(row->frames[k].function, expected->frames[k].function);
        assert_int_equal(row->frames[k].line, expected->frames[k].line);
    }
}

static void count(void *context, const tare__stack_symbol *row)
{
    ++*(uint32_t *)context;
    assert_in_range(row->object, 1, TARE__STACK_FUNCTIONS_MAX);
    assert_in_range(row->n, 0, TARE__SYMBOL_DEPTH_MAX);
}

static tare__block_header header_of(const tare__text *out)
{
    tare__block_header header;
    memcpy(&header, out->data, sizeof header);
    return header;
}

static void symbols_come_back(void **state)
{
    tare__text out = {0};
    seen = 0;
    assert_int_equal(tare__stack_symbols_seal(rows, ROWS, *state, &out), 0);
    tare__block_header header = header_of(&out);
    assert_int_equal(header.kind, TARE__BLOCK_SYMBOLS);
    assert_int_equal(header.count, ROWS);
    assert_int_equal(
        tare__stack_symbols_read(&header, (const uint8_t *)out.data + sizeof header, *state, compare, NULL), 0);
    assert_int_equal(seen, ROWS);
    tare__text_free(&out);
}

static void damage_is_noticed_or_harmless(void **state)
{
    tare__text out = {0};
    assert_int_equal(tare__stack_symbols_seal(rows, ROWS, *state, &out), 0);
    tare__block_header header = header_of(&out);
    for (uint32_t i = 0; i < header.payload_bytes; i++) {
        uint8_t *byte = (uint8_t *)out.data + sizeof header + i, before = *byte;
        uint32_t rows_read = 0;
        *byte ^= (uint8_t)(1u << i % 8);
        int status = tare__stack_symbols_read(&header, (const uint8_t *)out.data + sizeof header, *state, count,
                                              &rows_read);
        assert_true(status ? rows_read == 0 : rows_read == ROWS);
        *byte = before;
    }
    header.count++;
    uint32_t rows_read = 0;
    assert_int_equal(
        tare__stack_symbols_read(&header, (const uint8_t *)out.data + sizeof header, *state, count, &rows_read),
        TARE_E_INPUT);
    tare__text_free(&out);
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    for (int left = 0; left < 200; left++) {
        tare__text out = {0};
        allocations_left = left;
        tare__squeezer *squeezer = tare__squeezer_new();
        int status = squeezer ? tare__stack_symbols_seal(rows, ROWS, squeezer, &out) : TARE_E_MEMORY;
        allocations_left = -1;
        assert_true(status == 0 || status == TARE_E_MEMORY);
        tare__text_free(&out);
        tare__squeezer_free(squeezer);
        if (status == 0)
            return;
    }
    fail_msg("it never had enough");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(symbols_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_noticed_or_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(without_memory_it_says_so, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
