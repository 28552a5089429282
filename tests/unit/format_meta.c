/* Tests of src/format/meta.c: names, aggregates and clock syncs: round trips, damage, no memory.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "format/format.h"
#include "tare.h"

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

/* The block at `at`, checked; returns where the next one starts. */
static size_t block_at(const tare__text *out, size_t at, tare__block_header *header, const uint8_t **payload)
{
    assert_true(out->length - at >= sizeof *header);
    memcpy(header, out->data + at, sizeof *header);
    assert_null(tare__block_header_check(header));
    *payload = (const uint8_t *)out->data + at + sizeof *header;
    assert_int_equal(header->payload_crc, tare__crc32c(0, *payload, header->payload_bytes));
    return at + sizeof *header + header->payload_bytes;
}

/* ---- names ---------------------------------------------------------------------------------------- */
enum { NAMES = 10000 };
static tare__file_name names[NAMES];
static char texts[NAMES][16];

static void make_names(void)
{
    for (uint32_t i = 0; i < NAMES; i++) {
        int bytes = snprintf(texts[i], sizeof texts[i], "layer.%u", i);
        names[i] = (tare__file_name){.id = i * 3 + 1,
                                     .kind = 1 + i % 20,
                                     .line = i % 5 ? i : UINT32_MAX,
                                     .text = texts[i],
                                     .text_bytes = (uint32_t)bytes,
                                     .file = i % 7 ? "train.c" : NULL,
                                     .file_bytes = i % 7 ? 7 : 0};
    }
}

static void check_name(void *context, const tare__file_name *name)
{
    uint32_t *seen = context;
    const tare__file_name *expected = &names[(*seen)++];
    assert_int_equal(name->id, expected->id);
    assert_int_equal(name->kind, expected->kind);
    assert_int_equal(name->line, expected->line);
    assert_int_equal(name->text_bytes, expected->text_bytes);
    assert_memory_equal(name->text, expected->text, expected->text_bytes);
    assert_int_equal(name->file_bytes, expected->file_bytes);
    if (expected->file_bytes)
        assert_memory_equal(name->file, expected->file, expected->file_bytes);
}

static void names_come_back(void **state)
{
    tare__text out = {0};
    make_names();
    assert_int_equal(tare__names_seal(names, NAMES, *state, &out), 0);
    uint32_t seen = 0, blocks = 0;
    for (size_t at = 0; at < out.length; blocks++) {
        tare__block_header header;
        const uint8_t *payload;
        at = block_at(&out, at, &header, &payload);
        assert_int_equal(header.kind, TARE__BLOCK_NAMES);
        assert_int_equal(tare__names_read(&header, payload, *state, check_name, &seen), 0);
    }
    assert_int_equal(seen, NAMES);
    assert_true(blocks > 1);
    tare__text_free(&out);
}

static void no_names_are_no_block(void **state)
{
    tare__text out = {0};
    assert_int_equal(tare__names_seal(names, 0, *state, &out), 0);
    assert_int_equal(out.length, 0);
}

static void long_names_are_split_over_blocks(void **state)
{
    static char text[1 << 20];
    tare__text out = {0};
    memset(text, 'x', sizeof text);
    for (uint32_t i = 0; i < 3; i++)
        names[i] = (tare__file_name){.id = i + 1, .kind = 1, .text = text, .text_bytes = sizeof text};
    assert_int_equal(tare__names_seal(names, 3, *state, &out), 0);
    uint32_t seen = 0;
    for (size_t at = 0; at < out.length;) {
        tare__block_header header;
        const uint8_t *payload;
        at = block_at(&out, at, &header, &payload);
        assert_int_equal(header.count, 1);
        assert_int_equal(tare__names_read(&header, payload, *state, check_name, &seen), 0);
    }
    assert_int_equal(seen, 3);
    names[1].text_bytes++;
    assert_int_equal(tare__names_seal(names, 3, *state, &out), TARE_E_USAGE);
    tare__text_free(&out);
}

static void count_name(void *context, const tare__file_name *name)
{
    assert_true(name->id != 0);
    (*(uint32_t *)context)++;
}

/* A sink sees all of a block or nothing. */
static int read_names(tare__squeezer *squeezer, const tare__block_header *header, const uint8_t *bytes)
{
    uint32_t seen = 0;
    uint8_t *copy = malloc(header->payload_bytes ? header->payload_bytes : 1);
    memcpy(copy, bytes, header->payload_bytes);
    int status = tare__names_read(header, copy, squeezer, count_name, &seen);
    assert_int_equal(seen, status ? 0 : header->count);
    free(copy);
    return status;
}

static void name_0_is_refused(void **state)
{
    tare__text out = {0};
    tare__block_header header;
    const uint8_t *payload;
    make_names();
    names[2].id = 0;
    assert_int_equal(tare__names_seal(names, 4, *state, &out), 0);
    block_at(&out, 0, &header, &payload);
    assert_int_equal(read_names(*state, &header, payload), TARE_E_INPUT);
    tare__text_free(&out);
}

typedef int read_block(tare__squeezer *squeezer, const tare__block_header *header, const uint8_t *bytes);

/* A block cut anywhere is refused, one with a flipped bit refused or read without harm. */
static void damage(tare__text *out, tare__squeezer *squeezer, read_block *read)
{
    tare__block_header right, header;
    const uint8_t *payload;
    block_at(out, 0, &right, &payload);
    assert_int_equal(read(squeezer, &right, payload), 0);
    header = right;
    while (header.payload_bytes-- > 0)
        assert_int_equal(read(squeezer, &header, payload), TARE_E_INPUT);
    uint8_t *bytes = (uint8_t *)out->data + sizeof right;
    for (uint32_t bit = 0; bit < 8 * right.payload_bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int status = read(squeezer, &right, bytes);
        assert_true(status == 0 || status == TARE_E_INPUT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    header = right;
    header.flags = 1;
    assert_int_equal(read(squeezer, &header, payload), TARE_E_INPUT);
    header = right;
    header.kind++;
    assert_int_equal(read(squeezer, &header, payload), TARE_E_INPUT);
    header = right;
    header.count = UINT32_MAX;
    assert_int_equal(read(squeezer, &header, payload), TARE_E_INPUT);
}

static void damaged_names(void **state)
{
    tare__text out = {0};
    make_names();
    assert_int_equal(tare__names_seal(names, 30, *state, &out), 0);
    damage(&out, *state, read_names);
    tare__text_free(&out);
}

/* ---- aggregates ----------------------------------------------------------------------------------- */
enum { AGGREGATES = 50 };
static tare__aggregate aggregates[AGGREGATES];
static uint32_t buckets[AGGREGATES][TARE__CELL_BUCKETS];

static void make_aggregates(void)
{
    memset(buckets, 0, sizeof buckets);
    for (uint32_t i = 0; i < AGGREGATES; i++) {
        aggregates[i] = (tare__aggregate){.name = i + 1, .every = i ? i : UINT32_MAX, .count = i * 1000,
                                          .timed = i * 100, .total = UINT64_MAX / (i + 1), .min = i,
                                          .max = UINT64_MAX - i, .buckets = buckets[i]};
        for (uint32_t used = 0; used < i; used++)
            buckets[i][used * 37 % TARE__CELL_BUCKETS] = used * used + 1;
    }
    aggregates[0].min = UINT64_MAX;
    buckets[3][0] = buckets[3][TARE__CELL_BUCKETS - 1] = UINT32_MAX;
    for (unsigned i = 0; i < TARE__CELL_BUCKETS; i++)
        buckets[4][i] = i + 1;
}

static void check_aggregate(void *context, const tare__aggregate *got)
{
    const tare__aggregate *expected = &aggregates[(*(uint32_t *)context)++];
    assert_int_equal(got->name, expected->name);
    assert_int_equal(got->every, expected->every);
    assert_true(got->count == expected->count && got->timed == expected->timed);
    assert_true(got->total == expected->total && got->min == expected->min && got->max == expected->max);
    assert_memory_equal(got->buckets, expected->buckets, sizeof buckets[0]);
}

static void aggregates_come_back(void **state)
{
    tare__text out = {0};
    tare__block_header header = {.stream = 4}, read;
    const uint8_t *payload;
    uint32_t seen = 0;
    make_aggregates();
    assert_int_equal(tare__aggregates_seal(aggregates, AGGREGATES, *state, &header, &out), 0);
    assert_int_equal(block_at(&out, 0, &read, &payload), out.length);
    assert_int_equal(read.kind, TARE__BLOCK_AGGREGATES);
    assert_int_equal(read.stream, 4);
    assert_int_equal(tare__aggregates_read(&read, payload, *state, check_aggregate, &seen), 0);
    assert_int_equal(seen, AGGREGATES);
    tare__text_free(&out);
}

static void count_aggregate(void *context, const tare__aggregate *aggregate)
{
    assert_true(aggregate->name != 0);
    (*(uint32_t *)context)++;
}

static int read_aggregates(tare__squeezer *squeezer, const tare__block_header *header, const uint8_t *bytes)
{
    uint32_t seen = 0;
    uint8_t *copy = malloc(header->payload_bytes ? header->payload_bytes : 1);
    memcpy(copy, bytes, header->payload_bytes);
    int status = tare__aggregates_read(header, copy, squeezer, count_aggregate, &seen);
    assert_int_equal(seen, status ? 0 : header->count);
    free(copy);
    return status;
}

static void damaged_aggregates(void **state)
{
    tare__text out = {0};
    tare__block_header header = {0};
    make_aggregates();
    assert_int_equal(tare__aggregates_seal(aggregates + 5, 6, *state, &header, &out), 0);
    damage(&out, *state, read_aggregates);
    tare__text_free(&out);
}

static void too_many_aggregates_are_refused(void **state)
{
    tare__text out = {0};
    tare__block_header header = {0};
    assert_int_equal(tare__aggregates_seal(aggregates, TARE__EVENTS_MAX + 1, *state, &header, &out),
                     TARE_E_USAGE);
    assert_int_equal(out.length, 0);
}

/* A block of one aggregate with this name and these bytes for its buckets. */
static int read_made(tare__squeezer *squeezer, uint64_t name, const char *bucket_bytes, size_t n)
{
    uint8_t id[TARE__VARINT_BYTES], zero = 0;
    tare__column columns[8] = {{id, (size_t)(tare__varint_write(id, name) - id)}};
    for (unsigned i = 1; i < 7; i++)
        columns[i] = (tare__column){&zero, 1};
    columns[7] = (tare__column){(const uint8_t *)bucket_bytes, n};
    tare__text out = {0};
    tare__block_header header = {.kind = TARE__BLOCK_AGGREGATES, .count = 1};
    size_t at = tare__block_begin(&out);
    assert_int_equal(tare__block_end(&out, at, &header, tare__columns_put(squeezer, columns, 8, &out)), 0);
    int status = read_aggregates(squeezer, &header, (const uint8_t *)out.data + sizeof header);
    tare__text_free(&out);
    return status;
}

static void wrong_aggregates_are_refused(void **state)
{
    assert_int_equal(TARE__CELL_BUCKETS, 368);
    assert_int_equal(read_made(*state, 1, "\1\xEF\2\1", 4), 0); /* 367 empty ones, then one */
    assert_int_equal(read_made(*state, 1, "\1\xF0\2\1", 4), TARE_E_INPUT);
    assert_int_equal(read_made(*state, 1, "\2\xEF\2\1\0\1", 6), TARE_E_INPUT);
    assert_int_equal(read_made(*state, 1, "\1\0\0", 3), TARE_E_INPUT); /* a used bucket holds something */
    assert_int_equal(read_made(*state, 1, "\1\0\1\0", 4), TARE_E_INPUT);
    assert_int_equal(read_made(*state, 1, "\1\0\xFF\xFF\xFF\xFF\x0F", 7), 0);
    assert_int_equal(read_made(*state, 1, "\1\0\x80\x80\x80\x80\x10", 7), TARE_E_INPUT);
    assert_int_equal(read_made(*state, 0, "\0", 1), TARE_E_INPUT);
    assert_int_equal(read_made(*state, UINT64_C(1) << 32, "\0", 1), TARE_E_INPUT);
}

/* ---- clock ---------------------------------------------------------------------------------------- */
static const tare__clock_sync syncs[] = {
    {1000, 77777777, 1700000000000000000}, {2300001000, 1077777777, 1700000001000000000},
    {4600001000, 2077777777, 1699999999000000000}, /* someone set the clock */
    {UINT64_MAX, UINT64_MAX, 0},
};
enum { SYNCS = TARE__COUNT_OF(syncs) };

static void syncs_come_back(void **state)
{
    (void)state;
    tare__text out = {0};
    tare__block_header header;
    const uint8_t *payload;
    tare__clock_sync got[SYNCS];
    uint32_t n;
    assert_int_equal(tare__clock_seal(syncs, SYNCS, &out), 0);
    assert_int_equal(block_at(&out, 0, &header, &payload), out.length);
    assert_int_equal(header.kind, TARE__BLOCK_CLOCK);
    assert_true(header.first_ticks == 1000 && header.last_ticks == UINT64_MAX);
    assert_int_equal(tare__clock_read(&header, payload, got, SYNCS, &n), 0);
    assert_int_equal(n, SYNCS);
    assert_memory_equal(got, syncs, sizeof syncs);
    memset(got, 0, sizeof got);
    assert_int_equal(tare__clock_read(&header, payload, got, 2, &n), 0);
    assert_int_equal(n, 2);
    assert_memory_equal(got, syncs, 2 * sizeof *syncs);
    assert_int_equal(got[2].ticks, 0);
    tare__text_free(&out);
}

static int read_clock(tare__squeezer *squeezer, const tare__block_header *header, const uint8_t *bytes)
{
    (void)squeezer;
    tare__clock_sync got[SYNCS];
    uint32_t n;
    uint8_t *copy = malloc(header->payload_bytes ? header->payload_bytes : 1);
    memcpy(copy, bytes, header->payload_bytes);
    int status = tare__clock_read(header, copy, got, SYNCS, &n);
    assert_int_equal(n, status ? 0 : header->count);
    free(copy);
    return status;
}

static void damaged_syncs(void **state)
{
    tare__text out = {0};
    assert_int_equal(tare__clock_seal(syncs, SYNCS, &out), 0);
    damage(&out, *state, read_clock);
    tare__text_free(&out);
}

/* ---- no memory ------------------------------------------------------------------------------------ */
static void no_memory_is_said(void **state)
{
    (void)state;
    make_names();
    make_aggregates();
    for (unsigned kind = 0; kind < 3; kind++) {
        int status = TARE_E_MEMORY;
        for (long left = 0; status; left++) {
            tare__block_header header = {0};
            tare__text out = {0};
            tare__squeezer *squeezer = tare__squeezer_new();
            allocations_left = left;
            status = kind == 0   ? tare__names_seal(names, 100, squeezer, &out)
                     : kind == 1 ? tare__aggregates_seal(aggregates, AGGREGATES, squeezer, &header, &out)
                                 : tare__clock_seal(syncs, SYNCS, &out);
            allocations_left = -1;
            assert_true(status == 0 || (status == TARE_E_MEMORY && out.length == 0));
            assert_true(status == 0 ? left >= 1 : left < 20);
            tare__text_free(&out);
            tare__squeezer_free(squeezer);
        }
    }
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(names_come_back),
        WITH_FIXTURE(no_names_are_no_block),
        WITH_FIXTURE(long_names_are_split_over_blocks),
        WITH_FIXTURE(name_0_is_refused),
        WITH_FIXTURE(damaged_names),
        WITH_FIXTURE(aggregates_come_back),
        WITH_FIXTURE(damaged_aggregates),
        WITH_FIXTURE(too_many_aggregates_are_refused),
        WITH_FIXTURE(wrong_aggregates_are_refused),
        WITH_FIXTURE(syncs_come_back),
        WITH_FIXTURE(damaged_syncs),
        WITH_FIXTURE(no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
