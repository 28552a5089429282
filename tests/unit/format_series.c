/* Tests of src/format/series.c: round trips, many blocks, damage, no memory.
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

#define MANY 10000u
static tare__series all[MANY];
static char labels[MANY][32];

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

/* Metrics of threads; every seventh is absent. */
static void make_series(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *metric = tare__metric_of((tare__metric)(i % TARE__METRIC_COUNT))->name;
        const char *absent = i % 7 ? "" : "no permission to read /proc/77/io";
        snprintf(labels[i], sizeof labels[i], "worker %u", i / 20);
        all[i] = (tare__series){
            .id = i + 1,
            .unit = TARE__IN_BYTE,
            .kind = TARE__METRIC_GAUGE,
            .subject = TARE__SUBJECT_THREAD,
            .key = 1000 + i / 20,
            .owner = i % 3 ? 0 : UINT64_MAX,
            .metric = metric,
            .metric_bytes = (uint32_t)strlen(metric),
            .label = labels[i],
            .label_bytes = (uint32_t)strlen(labels[i]),
            .absent = absent,
            .absent_bytes = (uint32_t)strlen(absent),
        };
    }
}

typedef struct taker {
    uint32_t seen;
    bool compare;
} taker;

static void take(void *context, const tare__series *got)
{
    taker *taker = context;
    const tare__series *right = &all[taker->seen++];
    if (!taker->compare)
        return;
    assert_int_equal(got->id, right->id);
    assert_int_equal(got->unit, right->unit);
    assert_int_equal(got->kind, right->kind);
    assert_int_equal(got->subject, right->subject);
    assert_true(got->key == right->key && got->owner == right->owner);
    assert_int_equal(got->metric_bytes, right->metric_bytes);
    assert_int_equal(got->label_bytes, right->label_bytes);
    assert_int_equal(got->absent_bytes, right->absent_bytes);
    assert_memory_equal(got->metric, right->metric, right->metric_bytes);
    if (right->label_bytes)
        assert_memory_equal(got->label, right->label, right->label_bytes);
    if (right->absent_bytes)
        assert_memory_equal(got->absent, right->absent, right->absent_bytes);
}

/* All blocks in `out`; returns how many. */
static unsigned read_back(tare__squeezer *squeezer, const tare__text *out, taker *taker)
{
    unsigned blocks = 0;
    for (size_t at = 0; at < out->length; blocks++) {
        tare__block_header header;
        memcpy(&header, out->data + at, sizeof header);
        assert_null(tare__block_header_check(&header));
        at += sizeof header;
        assert_int_equal(
            tare__series_read(&header, (const uint8_t *)out->data + at, squeezer, take, taker), 0);
        at += header.payload_bytes;
    }
    return blocks;
}

static void series_come_back(void **state)
{
    static const uint32_t sizes[] = {0, 1, 2, 500, MANY};
    for (unsigned i = 0; i < TARE__COUNT_OF(sizes); i++) {
        tare__text out = {0};
        taker taker = {0, true};
        make_series(sizes[i]);
        assert_int_equal(tare__series_seal(all, sizes[i], *state, &out), 0);
        assert_int_equal(read_back(*state, &out, &taker), (sizes[i] + 4095) / 4096);
        assert_int_equal(taker.seen, sizes[i]);
        assert_true(out.length < 200 + sizes[i] * 8);
        tare__text_free(&out);
    }
}

static void extremes_come_back(void **state)
{
    tare__text out = {0};
    taker taker = {0, true};
    const uint32_t most = UINT32_MAX;
    all[0] = (tare__series){.id = most, .unit = most, .kind = most, .subject = most, .key = UINT64_MAX, .owner = 1,
                            .metric = "x", .metric_bytes = 1};
    all[1] = (tare__series){.id = 1, .key = 0, .owner = UINT64_C(1) << 63, .metric = "x", .metric_bytes = 1};
    assert_int_equal(tare__series_seal(all, 2, *state, &out), 0);
    assert_int_equal(read_back(*state, &out, &taker), 1);
    assert_int_equal(taker.seen, 2);
    tare__text_free(&out);
}

static void long_texts_take_more_blocks(void **state)
{
    static char text[(1 << 20) + 1];
    tare__text out = {0};
    taker taker = {0, true};
    memset(text, 'x', sizeof text);
    make_series(4);
    for (int i = 0; i < 4; i++) {
        all[i].absent = text;
        all[i].absent_bytes = 400000;
    }
    assert_int_equal(tare__series_seal(all, 4, *state, &out), 0);
    assert_int_equal(read_back(*state, &out, &taker), 2);
    assert_int_equal(taker.seen, 4);
    all[3].absent_bytes = sizeof text;
    size_t before = out.length;
    assert_int_equal(tare__series_seal(all, 4, *state, &out), TARE_E_USAGE);
    assert_int_equal(out.length, before);
    tare__text_free(&out);
}

static int read_exactly(tare__squeezer *squeezer, const tare__block_header *header, const uint8_t *bytes)
{
    taker taker = {0, false};
    uint8_t *copy = malloc(header->payload_bytes ? header->payload_bytes : 1);
    memcpy(copy, bytes, header->payload_bytes);
    int status = tare__series_read(header, copy, squeezer, take, &taker);
    assert_int_equal(taker.seen, status ? 0 : header->count); /* nothing is handed out of a bad block */
    free(copy);
    return status;
}

static void damage_is_refused_or_harmless(void **state)
{
    tare__text out = {0};
    tare__block_header right, header;
    make_series(30);
    assert_int_equal(tare__series_seal(all, 30, *state, &out), 0);
    memcpy(&right, out.data, sizeof right);
    uint8_t *bytes = (uint8_t *)out.data + sizeof right;
    header = right;
    while (header.payload_bytes-- > 0)
        assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    for (uint32_t bit = 0; bit < 8 * right.payload_bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int status = read_exactly(*state, &right, bytes);
        assert_true(status == 0 || status == TARE_E_INPUT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    static const uint32_t counts[] = {0, 29, 31, UINT32_MAX};
    for (unsigned i = 0; i < TARE__COUNT_OF(counts); i++) {
        header = right;
        header.count = counts[i];
        assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    }
    header = right;
    header.flags = 1;
    assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    header = right;
    header.kind = TARE__BLOCK_NAMES;
    assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    tare__text_free(&out);
}

/* A block of one series, all its numbers 0 but for one. */
static int read_number(tare__squeezer *squeezer, unsigned column, uint64_t number)
{
    static uint8_t zero = 0, one = 2 /* zigzag of 1 */;
    uint8_t varint[TARE__VARINT_BYTES];
    size_t bytes = (size_t)(tare__varint_write(varint, number) - varint);
    tare__column columns[12] = {{&one, 1}};
    for (unsigned i = 1; i < 9; i++)
        columns[i] = (tare__column){&zero, 1};
    if (column < 12)
        columns[column] = (tare__column){varint, bytes};
    tare__text out = {0};
    tare__block_header header = {.kind = TARE__BLOCK_SERIES, .count = 1};
    size_t at = tare__block_begin(&out);
    assert_int_equal(tare__block_end(&out, at, &header, tare__columns_put(squeezer, columns, 12, &out)), 0);
    int status = read_exactly(squeezer, &header, (const uint8_t *)out.data + sizeof header);
    tare__text_free(&out);
    return status;
}

static void wrong_numbers_are_refused(void **state)
{
    assert_int_equal(read_number(*state, 99, 0), 0);
    assert_int_equal(read_number(*state, 0, 0), TARE_E_INPUT);                  /* id 0 */
    assert_int_equal(read_number(*state, 0, 1), TARE_E_INPUT);                  /* id -1 */
    assert_int_equal(read_number(*state, 0, UINT64_C(2) << 32), TARE_E_INPUT);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(read_number(*state, i, UINT32_MAX), 0);
        assert_int_equal(read_number(*state, i, UINT64_C(1) << 32), TARE_E_INPUT);
    }
    for (unsigned i = 6; i <= 8; i++) { /* texts longer than there are */
        assert_int_equal(read_number(*state, i, 1), TARE_E_INPUT);
        assert_int_equal(read_number(*state, i, UINT64_MAX), TARE_E_INPUT);
    }
    assert_int_equal(read_number(*state, 9, 5), TARE_E_INPUT); /* text nobody asked for */
}

static void no_memory_is_said(void **state)
{
    (void)state;
    make_series(100);
    int status = TARE_E_MEMORY;
    for (long left = 0; status; left++) {
        tare__text out = {0};
        tare__squeezer *squeezer = tare__squeezer_new();
        allocations_left = left;
        status = tare__series_seal(all, 100, squeezer, &out);
        allocations_left = -1;
        assert_true(status == 0 || (status == TARE_E_MEMORY && out.length == 0));
        assert_true(status == 0 ? left >= 3 : left < 20);
        tare__text_free(&out);
        tare__squeezer_free(squeezer);
    }
    tare__text out = {0};
    tare__squeezer *squeezer = tare__squeezer_new();
    tare__block_header header;
    assert_int_equal(tare__series_seal(all, 100, squeezer, &out), 0);
    tare__squeezer_free(squeezer);
    memcpy(&header, out.data, sizeof header);
    status = TARE_E_MEMORY;
    for (long left = 0; status; left++) {
        taker taker = {0, true};
        squeezer = tare__squeezer_new();
        allocations_left = left;
        status = tare__series_read(&header, (const uint8_t *)out.data + sizeof header, squeezer, take, &taker);
        allocations_left = -1;
        assert_true(status == 0 || status == TARE_E_MEMORY);
        assert_int_equal(taker.seen, status ? 0 : 100);
        tare__squeezer_free(squeezer);
    }
    tare__text_free(&out);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(series_come_back),
        WITH_FIXTURE(extremes_come_back),
        WITH_FIXTURE(long_texts_take_more_blocks),
        WITH_FIXTURE(damage_is_refused_or_harmless),
        WITH_FIXTURE(wrong_numbers_are_refused),
        WITH_FIXTURE(no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
