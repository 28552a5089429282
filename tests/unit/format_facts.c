/* Tests of src/format/facts.c: round trips, damage, no memory.
 * One thread.
 * Must not know the other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "format/format.h"
#include "tare.h"

static tare__fact facts[TARE__FACTS_MAX], got[TARE__FACTS_MAX];

static int setup(void **state)
{
    for (uint32_t i = 0; i < TARE__FACTS_MAX; i++)
        facts[i] = (tare__fact){.key = 1 + i % 7,
                                .file = i % 3 ? i * 1000 : 0,
                                .text = i % 2 ? i : 0,
                                .line = i % 3 ? i : 0,
                                .ticks = 1000000 - i * 3, /* told late: not in order of time */
                                .value = i % 5 ? i * 0.1 : NAN};
    *state = tare__squeezer_new();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    allocations_left = -1;
    tare__squeezer_free(*state);
    return 0;
}

static tare__block_header seal(tare__squeezer *squeezer, uint32_t n, tare__text *out)
{
    tare__block_header header = {.stream = 7, .position = 42};
    assert_int_equal(tare__facts_seal(facts, n, squeezer, &header, out), 0);
    memcpy(&header, out->data, sizeof header);
    return header;
}

static const uint8_t *payload_of(const tare__text *block)
{
    return (const uint8_t *)block->data + sizeof(tare__block_header);
}

static void facts_come_back(void **state)
{
    static const uint32_t counts[] = {0, 1, 2, 100, TARE__FACTS_MAX};
    for (size_t c = 0; c < TARE__COUNT_OF(counts); c++) {
        tare__text out = {0};
        tare__block_header header = seal(*state, counts[c], &out);
        assert_int_equal(header.kind, TARE__BLOCK_FACTS);
        assert_int_equal(header.count, counts[c]);
        assert_int_equal(header.stream, 7);
        assert_int_equal(header.position, 42);
        assert_int_equal(header.spans, 0);
        assert_int_equal(tare__facts_read(&header, payload_of(&out), *state, got), 0);
        for (uint32_t i = 0; i < counts[c]; i++) {
            assert_int_equal(got[i].key, facts[i].key);
            assert_int_equal(got[i].file, facts[i].file);
            assert_int_equal(got[i].text, facts[i].text);
            assert_int_equal(got[i].line, facts[i].line);
            assert_int_equal(got[i].ticks, facts[i].ticks);
            assert_memory_equal(&got[i].value, &facts[i].value, sizeof(double));
        }
        tare__text_free(&out);
    }
}

static void too_many_are_refused(void **state)
{
    tare__text out = {0};
    tare__block_header header = {0};
    assert_int_equal(tare__facts_seal(facts, TARE__FACTS_MAX + 1, *state, &header, &out), TARE_E_USAGE);
    tare__text_free(&out);
}

/* Any byte changed: it is refused, or read as something within bounds; nothing else. */
static void damage_is_noticed_or_harmless(void **state)
{
    tare__text out = {0};
    tare__block_header header = seal(*state, 20, &out);
    for (size_t at = sizeof header; at < out.length; at++) {
        char before = out.data[at];
        out.data[at] = (char)(before ^ 0x55);
        int status = tare__facts_read(&header, payload_of(&out), *state, got);
        assert_true(status == 0 || status == TARE_E_INPUT);
        for (uint32_t i = 0; i < header.count && !status; i++)
            assert_true(got[i].key != 0 && got[i].ticks >= header.first_ticks && got[i].ticks <= header.last_ticks);
        out.data[at] = before;
    }
    for (uint32_t cut = 0; cut < header.payload_bytes; cut++) {
        tare__block_header shorter = header;
        shorter.payload_bytes = cut;
        assert_int_equal(tare__facts_read(&shorter, payload_of(&out), *state, got), TARE_E_INPUT);
    }
    tare__block_header wrong = header;
    wrong.count++;
    assert_int_equal(tare__facts_read(&wrong, payload_of(&out), *state, got), TARE_E_INPUT);
    wrong.count = TARE__FACTS_MAX + 1;
    assert_int_equal(tare__facts_read(&wrong, payload_of(&out), *state, got), TARE_E_INPUT);
    tare__text_free(&out);
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    for (int fails_at = 0; fails_at < 50; fails_at++) {
        tare__squeezer *squeezer = tare__squeezer_new();
        tare__text out = {0};
        tare__block_header header = {.stream = 1};
        allocations_left = fails_at;
        int status = tare__facts_seal(facts, 100, squeezer, &header, &out);
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
        cmocka_unit_test_setup_teardown(facts_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_noticed_or_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(without_memory_it_says_so, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
