/* Tests of src/format/samples.c: round trips, gaps, limits, size, damage, no memory.
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

#define ABSENT INT64_MIN
#define SERIES_MAX 40
#define TICKS_MAX 300
static int64_t table[SERIES_MAX][TICKS_MAX], got[SERIES_MAX][TICKS_MAX];

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

static uint64_t tick_at(uint32_t tick)
{
    return 1000000 + (uint64_t)tick * 230000000 + tick % 7;
}

/* Some series come each tick, some each tenth, some now and then. */
static void make_table(uint32_t n_series, uint32_t n_ticks)
{
    for (uint32_t s = 0; s < n_series; s++) {
        int64_t value = (int64_t)(next_random() >> 24);
        for (uint32_t t = 0; t < n_ticks; t++) {
            bool there = s % 4 == 0 || (s % 4 == 1 && t % 10 == 0) || (s % 4 == 2 && next_random() % 3);
            value += (int64_t)(next_random() % 300) - 100;
            table[s][t] = there ? value : ABSENT;
        }
    }
}

static uint32_t put_table(tare__samples *samples, uint32_t n_series, uint32_t n_ticks)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < n_ticks; t++) {
        assert_true(tare__samples_tick(samples, tick_at(t)));
        for (uint32_t i = 0; i < n_series; i++) {
            uint32_t s = (i * 11 + 3) % n_series; /* in no order */
            if (table[s][t] == ABSENT)
                continue;
            assert_true(tare__samples_put(samples, s + 1, table[s][t]));
            n++;
        }
    }
    assert_int_equal(tare__samples_values(samples), n);
    return n;
}

static void take(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    uint32_t *seen = context;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t tick = (uint32_t)((ticks[i] - 1000000) / 230000000);
        assert_true(series >= 1 && series <= SERIES_MAX && tick < TICKS_MAX && ticks[i] == tick_at(tick));
        assert_true(got[series - 1][tick] == ABSENT);
        got[series - 1][tick] = values[i];
    }
    *seen += n;
}

static tare__block_header header_of(const tare__text *out)
{
    tare__block_header header;
    memcpy(&header, out->data, sizeof header);
    assert_null(tare__block_header_check(&header));
    assert_int_equal(out->length, sizeof header + header.payload_bytes);
    return header;
}

static const uint8_t *payload(const tare__text *out)
{
    return (const uint8_t *)out->data + sizeof(tare__block_header);
}

static void samples_come_back(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {2, 1}, {1, 50}, {7, 10}, {SERIES_MAX, TICKS_MAX}};
    tare__samples *samples = tare__samples_new();
    for (unsigned i = 0; i < TARE__COUNT_OF(sizes); i++) {
        tare__text out = {0};
        uint32_t seen = 0;
        make_table(sizes[i][0], sizes[i][1]);
        uint32_t n = put_table(samples, sizes[i][0], sizes[i][1]);
        assert_int_equal(tare__samples_seal(samples, *state, &out), 0);
        assert_int_equal(tare__samples_values(samples), 0); /* used again for the next one */
        tare__block_header header = header_of(&out);
        assert_int_equal(header.count, n);
        assert_int_equal(header.first_ticks, tick_at(0));
        for (uint32_t s = 0; s < SERIES_MAX; s++)
            for (uint32_t t = 0; t < TICKS_MAX; t++)
                got[s][t] = ABSENT;
        assert_int_equal(tare__samples_read(&header, payload(&out), *state, take, &seen), 0);
        assert_int_equal(seen, n);
        for (uint32_t s = 0; s < sizes[i][0]; s++)
            assert_memory_equal(got[s], table[s], sizes[i][1] * sizeof(int64_t));
        tare__text_free(&out);
    }
    tare__samples_free(samples);
}

typedef struct list {
    uint32_t series[16];
    uint64_t ticks[16];
    int64_t values[16];
    uint32_t n, runs;
} list;

static void take_list(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    list *list = context;
    list->runs++;
    for (uint32_t i = 0; i < n && list->n < 16; i++, list->n++) {
        list->series[list->n] = series;
        list->ticks[list->n] = ticks[i];
        list->values[list->n] = values[i];
    }
}

static list read_list(tare__squeezer *squeezer, tare__samples *samples)
{
    tare__text out = {0};
    list list = {.n = 0};
    assert_int_equal(tare__samples_seal(samples, squeezer, &out), 0);
    tare__block_header header = header_of(&out);
    assert_int_equal(tare__samples_read(&header, payload(&out), squeezer, take_list, &list), 0);
    tare__text_free(&out);
    return list;
}

static void extremes_come_back(void **state)
{
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX, 0, INT64_MIN, -1, INT64_MAX};
    tare__samples *samples = tare__samples_new();
    for (unsigned i = 0; i < TARE__COUNT_OF(extremes); i++) {
        assert_true(tare__samples_tick(samples, i == 5 ? UINT64_MAX : i));
        assert_true(tare__samples_put(samples, 1u << 20, extremes[i]));
    }
    assert_false(tare__samples_tick(samples, UINT64_MAX)); /* no later one is possible */
    list list = read_list(*state, samples);
    assert_int_equal(list.n, 6);
    assert_memory_equal(list.values, extremes, sizeof extremes);
    assert_true(list.ticks[5] == UINT64_MAX);
    tare__samples_free(samples);
}

static void odd_calls_do_no_harm(void **state)
{
    tare__samples *samples = tare__samples_new();
    tare__text out = {0};
    assert_false(tare__samples_put(samples, 1, 5)); /* no tick yet */
    assert_int_equal(tare__samples_seal(samples, *state, &out), 0);
    assert_int_equal(out.length, 0);
    assert_true(tare__samples_tick(samples, 100));
    assert_int_equal(tare__samples_seal(samples, *state, &out), 0); /* a tick and no values */
    assert_int_equal(out.length, 0);
    assert_false(tare__samples_put(samples, 1, 5));
    assert_true(tare__samples_tick(samples, 100));
    assert_true(tare__samples_tick(samples, 110)); /* takes the place of the empty one */
    assert_false(tare__samples_put(samples, 0, 5));
    assert_false(tare__samples_put(samples, UINT32_MAX, 5));
    assert_true(tare__samples_put(samples, 3, 5));
    assert_true(tare__samples_put(samples, 3, 6)); /* the newer one counts */
    assert_true(tare__samples_tick(samples, 90));  /* the clock went back: it does not in a file */
    assert_true(tare__samples_put(samples, 2, 7));
    assert_true(tare__samples_tick(samples, 200)); /* empty at the end */
    list list = read_list(*state, samples);
    assert_int_equal(list.n, 2);
    assert_true(list.series[0] == 2 && list.ticks[0] == 111 && list.values[0] == 7);
    assert_true(list.series[1] == 3 && list.ticks[1] == 110 && list.values[1] == 6);
    tare__samples_free(samples);
}

static void a_gap_makes_two_runs(void **state)
{
    tare__samples *samples = tare__samples_new();
    for (uint32_t t = 0; t < 6; t++) {
        assert_true(tare__samples_tick(samples, t * 10));
        assert_true(tare__samples_put(samples, 1, t));
        if (t != 2)
            assert_true(tare__samples_put(samples, 9, 100 + t));
    }
    list list = read_list(*state, samples);
    assert_int_equal(list.runs, 3);
    assert_int_equal(list.n, 11);
    assert_true(list.ticks[7] == 10 && list.ticks[8] == 30 && list.values[8] == 103);
    tare__samples_free(samples);
}

static void a_block_has_limits(void **state)
{
    tare__samples *samples = tare__samples_new();
    tare__text out = {0};
    uint32_t n = 0;
    while (tare__samples_tick(samples, n) && n < 100000) {
        assert_true(tare__samples_put(samples, 1, n));
        n++;
    }
    assert_int_equal(n, TARE__SAMPLES_TICKS_MAX);
    assert_int_equal(tare__samples_seal(samples, *state, &out), 0);
    tare__text_clear(&out);
    for (uint32_t tick = 0; tick < 3; tick++) { /* 25,000 values a tick: the third would not fit any more */
        assert_true(tare__samples_tick(samples, tick) == (tick < 2));
        for (uint32_t i = 1; i <= 25000 && tick < 2; i++)
            assert_true(tare__samples_put(samples, i, i));
    }
    assert_int_equal(tare__samples_seal(samples, *state, &out), 0);
    assert_int_equal(header_of(&out).count, 50000);
    tare__text_clear(&out);
    assert_true(tare__samples_tick(samples, 5));
    for (uint32_t i = 1; i <= TARE__SAMPLES_VALUES_MAX + 10; i++)
        assert_true(tare__samples_put(samples, i, i) == (i <= TARE__SAMPLES_VALUES_MAX));
    assert_false(tare__samples_tick(samples, 6));
    assert_int_equal(tare__samples_seal(samples, *state, &out), 0);
    assert_int_equal(header_of(&out).count, TARE__SAMPLES_VALUES_MAX);
    assert_true(tare__samples_tick(samples, 6));
    tare__text_free(&out);
    tare__samples_free(samples);
}

/* Sealed each second: 100 series, 10 ticks; counters that grow by some microseconds or pages a tick. */
static void slow_values_take_about_two_bytes(void **state)
{
    tare__samples *samples = tare__samples_new();
    tare__text out = {0};
    uint64_t values = 0, ticks = UINT64_C(900000000000000);
    int64_t value[100];
    for (unsigned i = 0; i < 100; i++)
        value[i] = (int64_t)(next_random() % 3000000000);
    for (unsigned block = 0; block < 60; block++) {
        for (unsigned tick = 0; tick < 10; tick++) {
            ticks += 230000000 + next_random() % 20000;
            assert_true(tare__samples_tick(samples, ticks));
            for (unsigned i = 0; i < 100; i++) {
                if (i % 2)
                    value[i] += i % 3 ? 4096 * (int64_t)(next_random() % 3) : (int64_t)(next_random() % 9000);
                assert_true(tare__samples_put(samples, i + 1, value[i]));
                values++;
            }
        }
        assert_int_equal(tare__samples_seal(samples, *state, &out), 0);
    }
    assert_true(out.length < values * 2);
    tare__text_free(&out);
    tare__samples_free(samples);
}

static void take_count(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    assert_true(series && n && ticks[n - 1] >= ticks[0]);
    (void)values;
    *(uint32_t *)context += n;
}

static int read_exactly(tare__squeezer *squeezer, const tare__block_header *header, const uint8_t *bytes)
{
    uint32_t seen = 0;
    uint8_t *copy = malloc(header->payload_bytes ? header->payload_bytes : 1);
    memcpy(copy, bytes, header->payload_bytes);
    int status = tare__samples_read(header, copy, squeezer, take_count, &seen);
    assert_int_equal(seen, status ? 0 : header->count); /* nothing is handed out of a bad block */
    free(copy);
    return status;
}

static void damage_is_refused_or_harmless(void **state)
{
    tare__samples *samples = tare__samples_new();
    tare__text out = {0};
    make_table(12, 20);
    put_table(samples, 12, 20);
    assert_int_equal(tare__samples_seal(samples, *state, &out), 0);
    const tare__block_header right = header_of(&out);
    tare__block_header header = right;
    uint8_t *bytes = (uint8_t *)out.data + sizeof right;
    while (header.payload_bytes-- > 0)
        assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    for (uint32_t bit = 0; bit < 8 * right.payload_bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int status = read_exactly(*state, &right, bytes);
        assert_true(status == 0 || status == TARE_E_INPUT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (int i = 0; i < 7; i++) {
        header = right;
        header.count += i == 0 ? 1u : i == 1 ? UINT32_MAX : 0;
        header.flags = i == 2;
        header.kind = i == 3 ? TARE__BLOCK_EVENTS : header.kind;
        header.first_ticks += i == 4;
        header.last_ticks -= i == 5;
        header.count = i == 6 ? TARE__SAMPLES_VALUES_MAX + 1 : header.count;
        assert_int_equal(read_exactly(*state, &header, bytes), TARE_E_INPUT);
    }
    tare__text_free(&out);
    tare__samples_free(samples);
}

/* A block of two ticks and the given bytes as its columns. */
static int read_made(tare__squeezer *squeezer, const uint8_t made[5][4], const uint8_t bytes[5], uint32_t count)
{
    tare__column columns[5];
    tare__text out = {0};
    tare__block_header header = {.kind = TARE__BLOCK_SAMPLES, .count = count, .first_ticks = 7, .last_ticks = 12};
    for (int i = 0; i < 5; i++)
        columns[i] = (tare__column){made[i], bytes[i]};
    size_t at = tare__block_begin(&out);
    assert_int_equal(tare__block_end(&out, at, &header, tare__columns_put(squeezer, columns, 5, &out)), 0);
    int status = read_exactly(squeezer, &header, payload(&out));
    tare__text_free(&out);
    return status;
}

static void what_no_writer_makes_is_refused(void **state)
{
    static const struct {
        uint8_t columns[5][4], bytes[5];
        uint32_t count;
        int status;
    } cases[] = {
        /* ticks; series; first; count; values */
        {{{0, 5}, {1, 1}, {0, 1}, {2, 1}, {2, 2, 4}}, {2, 2, 2, 2, 3}, 3, 0},
        {{{0, 5}, {1, 0}, {0, 1}, {1, 1}, {2, 2}}, {2, 2, 2, 2, 2}, 2, 0},             /* one series, two runs */
        {{{0, 5}, {1, 0}, {0, 0}, {1, 1}, {2, 2}}, {2, 2, 2, 2, 2}, 2, TARE_E_INPUT},  /* twice at a tick */
        {{{0, 5}, {1, 0}, {1, 0}, {1, 1}, {2, 2}}, {2, 2, 2, 2, 2}, 2, TARE_E_INPUT},  /* back in time */
        {{{0, 5}, {0, 1}, {0, 0}, {1, 1}, {2, 2}}, {2, 2, 2, 2, 2}, 2, TARE_E_INPUT},  /* series 0 */
        {{{0, 5}, {1, 1}, {0, 2}, {1, 1}, {2, 2}}, {2, 2, 2, 2, 2}, 2, TARE_E_INPUT},  /* past the ticks */
        {{{0, 5}, {1, 1}, {0, 1}, {1, 2}, {2, 2, 2}}, {2, 2, 2, 2, 3}, 3, TARE_E_INPUT},
        {{{0, 5}, {1, 1}, {0, 1}, {1, 0}, {2}}, {2, 2, 2, 2, 1}, 1, TARE_E_INPUT},     /* an empty run */
        {{{1, 4}, {1}, {0}, {1}, {2}}, {2, 1, 1, 1, 1}, 1, TARE_E_INPUT},              /* not from the first */
        {{{0, 0, 5}, {1}, {0}, {1}, {2}}, {3, 1, 1, 1, 1}, 1, TARE_E_INPUT},           /* a tick twice */
        {{{0, 4}, {1}, {0}, {1}, {2}}, {2, 1, 1, 1, 1}, 1, TARE_E_INPUT},              /* not to the last */
        {{{0, 5}, {1}, {0}, {1}, {2, 2}}, {2, 1, 1, 1, 2}, 1, TARE_E_INPUT},           /* a value too many */
        {{{0, 5}, {1}, {0}, {2}, {2}}, {2, 1, 1, 1, 1}, 2, TARE_E_INPUT},              /* … too few */
        {{{0, 5}, {1}, {0, 0}, {1}, {2}}, {2, 1, 2, 1, 1}, 1, TARE_E_INPUT},           /* half a run */
        {{{0, 5}, {0}, {0}, {0}, {0}}, {2, 0, 0, 0, 0}, 0, TARE_E_INPUT},              /* nothing */
    };
    for (unsigned i = 0; i < TARE__COUNT_OF(cases); i++)
        if (read_made(*state, cases[i].columns, cases[i].bytes, cases[i].count) != cases[i].status)
            fail_msg("case %u", i);
}

static void no_memory_is_said(void **state)
{
    (void)state;
    make_table(20, 30);
    bool whole = false;
    for (long left = 0; !whole; left++) {
        assert_true(left < 60);
        tare__text out = {0};
        tare__squeezer *squeezer = tare__squeezer_new();
        allocations_left = left;
        tare__samples *samples = tare__samples_new();
        uint32_t put = 0;
        for (uint32_t t = 0; samples && t < 30; t++) {
            assert_true(tare__samples_tick(samples, tick_at(t)));
            for (uint32_t s = 0; s < 20; s++)
                put += tare__samples_put(samples, s + 1, t);
        }
        int status = samples ? tare__samples_seal(samples, squeezer, &out) : TARE_E_MEMORY;
        allocations_left = -1;
        assert_true(status == 0 || (status == TARE_E_MEMORY && out.length == 0));
        whole = status == 0 && put == 600 && out.length;
        if (samples && status) { /* nothing is lost: it can be sealed later */
            assert_int_equal(tare__samples_values(samples), put);
            tare__text_free(&out);
            out = (tare__text){0};
            assert_int_equal(tare__samples_seal(samples, squeezer, &out), 0);
        }
        if (out.length)
            assert_int_equal(header_of(&out).count, put);
        tare__samples_free(samples);
        tare__squeezer_free(squeezer);
        tare__text_free(&out);
    }
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(samples_come_back),
        WITH_FIXTURE(extremes_come_back),
        WITH_FIXTURE(odd_calls_do_no_harm),
        WITH_FIXTURE(a_gap_makes_two_runs),
        WITH_FIXTURE(a_block_has_limits),
        WITH_FIXTURE(slow_values_take_about_two_bytes),
        WITH_FIXTURE(damage_is_refused_or_harmless),
        WITH_FIXTURE(what_no_writer_makes_is_refused),
        WITH_FIXTURE(no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
