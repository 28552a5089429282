/* Tests of src/format/complete.c: round trips, damage, no memory.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "format/format.h"
#include "tare.h"

static tare__complete_span spans[TARE__EVENTS_MAX], got[TARE__EVENTS_MAX];

static int setup(void **state)
{
    *state = tare__squeezer_new();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    allocations_left = -1;
    tare__squeezer_free(*state);
    return 0;
}

static uint64_t next_random(void)
{
    static uint64_t seed = 88172645463325252u;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* Late, overlapping, from several tracks; some with ids, parents and flows. */
static void make_spans(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t start = 5000000 + i * 300 - next_random() % 10000;
        spans[i] = (tare__complete_span){
            .name = 1 + (uint32_t)(next_random() % 300),
            .track = (uint32_t)(next_random() % 4),
            .start = start,
            .end = start + next_random() % 100000,
            .id = i % 3 ? i : 0,
            .parent = i % 5 ? 0 : next_random(),
            .flow = i / 7,
        };
    }
}

static void expect_equal(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(got[i].name, spans[i].name);
        assert_int_equal(got[i].track, spans[i].track);
        assert_true(got[i].start == spans[i].start && got[i].end == spans[i].end);
        assert_true(got[i].id == spans[i].id && got[i].parent == spans[i].parent);
        assert_true(got[i].flow == spans[i].flow);
    }
}

static tare__block_header seal(tare__squeezer *squeezer, uint32_t n, tare__text *out)
{
    tare__block_header header = {.stream = 5, .position = 77};
    assert_int_equal(tare__complete_seal(spans, n, squeezer, &header, out), 0);
    assert_null(tare__block_header_check(&header));
    assert_int_equal(header.kind, TARE__BLOCK_COMPLETE);
    assert_int_equal(header.count, n);
    assert_int_equal(header.spans, n);
    assert_int_equal(header.stream, 5);
    assert_int_equal(header.position, 77);
    assert_int_equal(out->length, sizeof header + header.payload_bytes);
    return header;
}

static const uint8_t *payload(const tare__text *out)
{
    return (const uint8_t *)out->data + sizeof(tare__block_header);
}

static void spans_come_back(void **state)
{
    static const uint32_t sizes[] = {0, 1, 2, 1000, TARE__EVENTS_MAX};
    for (unsigned i = 0; i < TARE__COUNT_OF(sizes); i++) {
        tare__text out = {0};
        make_spans(sizes[i]);
        tare__block_header header = seal(*state, sizes[i], &out);
        assert_int_equal(tare__complete_read(&header, payload(&out), *state, got), 0);
        expect_equal(sizes[i]);
        tare__text_free(&out);
    }
}

static void extremes_come_back(void **state)
{
    tare__text out = {0};
    const uint64_t most = UINT64_MAX;
    spans[0] = (tare__complete_span){UINT32_MAX, UINT32_MAX, 0, most, most, most, most};
    spans[1] = (tare__complete_span){1, 0, UINT64_MAX, 0, 0, 0, 0}; /* ends before it starts: the caller's */
    spans[2] = (tare__complete_span){1, 0, 7, 7, UINT64_C(1) << 63, 1, UINT64_C(1) << 63};
    tare__block_header header = seal(*state, 3, &out);
    assert_true(header.first_ticks == 0 && header.last_ticks == UINT64_MAX);
    assert_int_equal(tare__complete_read(&header, payload(&out), *state, got), 0);
    expect_equal(3);
    tare__text_free(&out);
}

static void the_header_has_the_time_range(void **state)
{
    tare__text out = {0};
    spans[0] = (tare__complete_span){.name = 1, .start = 500, .end = 600};
    spans[1] = (tare__complete_span){.name = 1, .start = 100, .end = 900};
    spans[2] = (tare__complete_span){.name = 1, .start = 200, .end = 300};
    tare__block_header header = seal(*state, 3, &out);
    assert_int_equal(header.first_ticks, 100);
    assert_int_equal(header.last_ticks, 900);
    header.first_ticks = 101;
    assert_int_equal(tare__complete_read(&header, payload(&out), *state, got), TARE_E_INPUT);
    header.first_ticks = 100;
    header.last_ticks = 899;
    assert_int_equal(tare__complete_read(&header, payload(&out), *state, got), TARE_E_INPUT);
    tare__text_free(&out);
}

static int read_exactly(tare__squeezer *squeezer, const tare__block_header *header, const uint8_t *bytes)
{
    uint8_t *copy = malloc(header->payload_bytes ? header->payload_bytes : 1);
    memcpy(copy, bytes, header->payload_bytes);
    int status = tare__complete_read(header, copy, squeezer, got);
    free(copy);
    return status;
}

static void damage_is_refused_or_harmless(void **state)
{
    tare__text out = {0};
    make_spans(40);
    const tare__block_header right = seal(*state, 40, &out);
    tare__block_header header = right;
    while (header.payload_bytes-- > 0)
        assert_int_equal(read_exactly(*state, &header, payload(&out)), TARE_E_INPUT);
    uint8_t *bytes = (uint8_t *)out.data + sizeof right;
    for (uint32_t bit = 0; bit < 8 * right.payload_bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int status = read_exactly(*state, &right, bytes);
        assert_true(status == 0 || status == TARE_E_INPUT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (int off = -1; off <= 1; off += 2) {
        header = right;
        header.count = header.spans = 40 + (uint32_t)off;
        assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    }
    header = right;
    header.count = header.spans = TARE__EVENTS_MAX + 1;
    assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    header = right;
    header.flags = 2;
    assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    header = right;
    header.kind = TARE__BLOCK_EVENTS;
    assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    tare__text_free(&out);
}

static void a_lost_name_is_written_as_such(void **state)
{
    tare__text out = {0};
    make_spans(3);
    spans[1].name = 0;
    tare__block_header header = seal(*state, 3, &out);
    assert_int_equal(tare__complete_read(&header, payload(&out), *state, got), 0);
    spans[1].name = TARE__NAME_LOST;
    expect_equal(3);
    tare__text_free(&out);
}

/* A block of one span with any name and track. */
static int read_ids(tare__squeezer *squeezer, uint64_t name, uint64_t track)
{
    uint8_t ids[2][TARE__VARINT_BYTES], zero = 0;
    size_t name_bytes = (size_t)(tare__varint_write(ids[0], name) - ids[0]);
    size_t track_bytes = (size_t)(tare__varint_write(ids[1], track) - ids[1]);
    const tare__column columns[7] = {{ids[0], name_bytes}, {ids[1], track_bytes}, {&zero, 1}, {&zero, 1},
                                     {&zero, 1},           {&zero, 1},            {&zero, 1}};
    tare__text out = {0};
    tare__block_header header = {.kind = TARE__BLOCK_COMPLETE, .count = 1, .spans = 1};
    size_t at = tare__block_begin(&out);
    assert_int_equal(tare__block_end(&out, at, &header, tare__columns_put(squeezer, columns, 7, &out)), 0);
    int status = tare__complete_read(&header, payload(&out), squeezer, got);
    tare__text_free(&out);
    return status;
}

static void wrong_ids_are_refused(void **state)
{
    assert_int_equal(read_ids(*state, 1, 0), 0);
    assert_int_equal(read_ids(*state, UINT32_MAX, UINT32_MAX), 0);
    assert_int_equal(read_ids(*state, 0, 0), TARE_E_INPUT);
    assert_int_equal(read_ids(*state, UINT64_C(1) << 32, 0), TARE_E_INPUT);
    assert_int_equal(read_ids(*state, 1, UINT64_C(1) << 32), TARE_E_INPUT);
}

static void too_many_are_refused(void **state)
{
    tare__text out = {0};
    tare__block_header header = {0};
    assert_int_equal(tare__complete_seal(spans, TARE__EVENTS_MAX + 1, *state, &header, &out), TARE_E_USAGE);
    assert_int_equal(out.length, 0);
}

static void no_memory_is_said(void **state)
{
    (void)state;
    make_spans(100);
    int status = TARE_E_MEMORY;
    for (long left = 0; status; left++) {
        tare__block_header header = {0};
        tare__text out = {0};
        tare__squeezer *squeezer = tare__squeezer_new();
        allocations_left = left;
        status = tare__complete_seal(spans, 100, squeezer, &header, &out);
        allocations_left = -1;
        assert_true(status == 0 || (status == TARE_E_MEMORY && out.length == 0));
        assert_true(status == 0 ? left >= 3 : left < 20);
        tare__text_free(&out);
        tare__squeezer_free(squeezer);
    }
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(spans_come_back),
        WITH_FIXTURE(extremes_come_back),
        WITH_FIXTURE(the_header_has_the_time_range),
        WITH_FIXTURE(damage_is_refused_or_harmless),
        WITH_FIXTURE(a_lost_name_is_written_as_such),
        WITH_FIXTURE(wrong_ids_are_refused),
        WITH_FIXTURE(too_many_are_refused),
        WITH_FIXTURE(no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
