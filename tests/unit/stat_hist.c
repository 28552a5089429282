/* Tests of stat/hist: buckets, error bound, merging, coarsening, saturation, growth.
 * One process, one thread.
 * Must not know how the window is kept beyond what stat.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stat/stat.h"
#include "stat_random.h"
#include "tare.h"

static uint32_t bucket_count(unsigned bits)
{
    return tare__hist_bucket(UINT64_MAX, bits) + 1;
}

static uint32_t count_at(const tare__hist *hist, uint32_t bucket)
{
    uint32_t at = bucket - hist->first;
    return at < hist->length ? hist->counts[at] : 0;
}

static void assert_same(const tare__hist *a, const tare__hist *b)
{
    assert_int_equal(a->bits, b->bits);
    assert_int_equal(a->total, b->total);
    for (uint32_t bucket = 0; bucket < bucket_count(a->bits); bucket++)
        assert_int_equal(count_at(a, bucket), count_at(b, bucket));
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void buckets_hold_their_bounds(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (unsigned bits = 0; bits <= TARE__HIST_BITS_MAX; bits++) {
        for (int i = 0; i < 20000; i++) {
            uint64_t value = random_wide(&seed);
            uint32_t bucket = tare__hist_bucket(value, bits);
            uint64_t low = tare__hist_low(bucket, bits);
            uint64_t high = tare__hist_high(bucket, bits);
            assert_true(low <= value && value <= high);
            assert_int_equal(tare__hist_bucket(low, bits), bucket);
            assert_int_equal(tare__hist_bucket(high, bits), bucket);
        }
    }
}

static void buckets_leave_no_gap(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits <= TARE__HIST_BITS_MAX; bits++) {
        uint32_t last = bucket_count(bits) - 1;
        assert_true(tare__hist_low(0, bits) == 0);
        for (uint32_t bucket = 0; bucket < last; bucket++)
            assert_true(tare__hist_low(bucket + 1, bits) == tare__hist_high(bucket, bits) + 1);
        assert_true(tare__hist_high(last, bits) == UINT64_MAX);
    }
}

static uint64_t draw(int shape, uint64_t *seed)
{
    switch (shape) {
    case 0: return random_wide(seed);
    case 1: return 1000000 + random_next(seed) % 100000; /* narrow */
    case 2: return random_next(seed) % 40;               /* small, many equal */
    default: return UINT64_MAX - random_next(seed) % 1000;
    }
}

/* Against the exact order statistic, its rank computed in whole numbers. */
static void check_error_bound(int shape, size_t n, unsigned bits, uint64_t *seed)
{
    uint64_t values[1500];
    tare__hist hist = {.bits = (uint8_t)bits};
    for (size_t i = 0; i < n; i++) {
        values[i] = draw(shape, seed);
        assert_int_equal(tare__hist_add(&hist, values[i], 1), 0);
    }
    qsort(values, n, sizeof(*values), compare);
    for (unsigned percent = 0; percent <= 100; percent++) {
        size_t rank = (percent * n + 99) / 100;
        long double exact = values[rank ? rank - 1 : 0];
        long double found = tare__hist_quantile(&hist, percent / 100.0);
        long double off = found > exact ? found - exact : exact - found;
        long double bound = exact / (2u << bits);
        if (exact < (1u << bits))
            bound = 0;
        assert_true(off <= bound + exact * 0x1p-52L); /* the last: a double's own rounding */
    }
    tare__hist_free(&hist);
}

static void quantiles_stay_within_the_bound(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 10, 99, 100, 101, 1500};
    uint64_t seed = 2;
    for (unsigned bits = 0; bits <= TARE__HIST_BITS_MAX; bits++) {
        for (int shape = 0; shape < 4; shape++) {
            for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
                check_error_bound(shape, sizes[i], bits, &seed);
        }
    }
}

static void empty_has_no_quantile(void **state)
{
    (void)state;
    tare__hist hist = {.bits = 5};
    assert_true(isnan(tare__hist_quantile(&hist, 0.5)));
    assert_int_equal(tare__hist_bytes(&hist), 0);
    tare__hist_coarsen(&hist);
    assert_int_equal(hist.bits, 4);
    assert_int_equal(tare__hist_add(&hist, 7, 0), 0);
    assert_true(isnan(tare__hist_quantile(&hist, 0.5)));
    tare__hist_free(&hist);
}

static void one_value_is_every_quantile(void **state)
{
    (void)state;
    tare__hist hist = {.bits = 5};
    assert_int_equal(tare__hist_add(&hist, 17, 3), 0);
    assert_true(tare__hist_quantile(&hist, 0) == 17);
    assert_true(tare__hist_quantile(&hist, 0.5) == 17);
    assert_true(tare__hist_quantile(&hist, 1) == 17);
    assert_true(isnan(tare__hist_quantile(&hist, NAN)));
    tare__hist_free(&hist);
    assert_null(hist.counts);
    assert_int_equal(hist.length, 0);
    assert_int_equal(hist.total, 0);
    assert_int_equal(hist.bits, 5);
}

/* Splits one stream over two histograms of the given bits; the merge must equal a third that saw all. */
static void check_merge(unsigned into_bits, unsigned from_bits, int shape, uint64_t *seed)
{
    unsigned bits = into_bits < from_bits ? into_bits : from_bits;
    tare__hist into = {.bits = (uint8_t)into_bits};
    tare__hist from = {.bits = (uint8_t)from_bits};
    tare__hist all = {.bits = (uint8_t)bits};
    for (int i = 0; i < 200; i++) {
        uint64_t value = draw(shape, seed);
        uint32_t times = (uint32_t)(random_next(seed) % 5);
        tare__hist *part = random_next(seed) & 1 ? &into : &from;
        assert_int_equal(tare__hist_add(part, value, times), 0);
        assert_int_equal(tare__hist_add(&all, value, times), 0);
    }
    assert_int_equal(tare__hist_merge(&into, &from), 0);
    assert_int_equal(from.bits, from_bits);
    assert_same(&into, &all);
    tare__hist_free(&into);
    tare__hist_free(&from);
    tare__hist_free(&all);
}

static void merge_equals_adding(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (unsigned into = 0; into <= TARE__HIST_BITS_MAX; into++) {
        for (unsigned from = 0; from <= TARE__HIST_BITS_MAX; from++) {
            for (int shape = 0; shape < 4; shape++)
                check_merge(into, from, shape, &seed);
        }
    }
}

static void merge_with_empty(void **state)
{
    (void)state;
    tare__hist empty = {.bits = 5};
    tare__hist full = {.bits = 5};
    tare__hist copy = {.bits = 5};
    assert_int_equal(tare__hist_add(&full, 123456, 2), 0);
    assert_int_equal(tare__hist_merge(&copy, &full), 0);
    assert_same(&copy, &full);
    assert_int_equal(tare__hist_merge(&copy, &empty), 0);
    assert_same(&copy, &full);
    assert_int_equal(tare__hist_merge(&copy, &copy), 0);
    assert_int_equal(copy.total, 4);
    assert_int_equal(count_at(&copy, tare__hist_bucket(123456, 5)), 4);
    tare__hist_free(&full);
    tare__hist_free(&copy);
}

static void coarsen_equals_recording_coarser(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (int shape = 0; shape < 4; shape++) {
        tare__hist coarsened = {.bits = TARE__HIST_BITS_MAX};
        tare__hist levels[TARE__HIST_BITS_MAX + 1];
        for (unsigned bits = 0; bits <= TARE__HIST_BITS_MAX; bits++)
            levels[bits] = (tare__hist){.bits = (uint8_t)bits};
        for (int i = 0; i < 500; i++) {
            uint64_t value = draw(shape, &seed);
            assert_int_equal(tare__hist_add(&coarsened, value, 1), 0);
            for (unsigned bits = 0; bits <= TARE__HIST_BITS_MAX; bits++)
                assert_int_equal(tare__hist_add(&levels[bits], value, 1), 0);
        }
        for (unsigned bits = TARE__HIST_BITS_MAX;; bits--) {
            assert_same(&coarsened, &levels[bits]);
            tare__hist_free(&levels[bits]);
            if (!bits)
                break;
            size_t before = tare__hist_bytes(&coarsened);
            tare__hist_coarsen(&coarsened);
            assert_true(tare__hist_bytes(&coarsened) <= before);
        }
        uint64_t total = coarsened.total;
        tare__hist_coarsen(&coarsened); /* nothing below bits 0 */
        assert_int_equal(coarsened.bits, 0);
        assert_int_equal(coarsened.total, total);
        tare__hist_free(&coarsened);
    }
}

static void coarsen_gives_memory_back(void **state)
{
    (void)state;
    tare__hist hist = {.bits = 6};
    for (uint64_t value = 1000; value < 64000; value += 10)
        assert_int_equal(tare__hist_add(&hist, value, 1), 0);
    size_t before = tare__hist_bytes(&hist);
    tare__hist_coarsen(&hist);
    assert_true(tare__hist_bytes(&hist) <= before / 2 + sizeof(uint32_t));
    assert_int_equal(tare__hist_add(&hist, UINT64_MAX, 1), 0); /* and it still grows */
    assert_int_equal(tare__hist_add(&hist, 0, 1), 0);
    assert_int_equal(hist.total, 6302);
    tare__hist_free(&hist);
}

static void counts_saturate(void **state)
{
    (void)state;
    tare__hist hist = {.bits = 5};
    tare__hist other = {.bits = 5};
    uint32_t bucket = tare__hist_bucket(100, 5);
    assert_int_equal(tare__hist_add(&hist, 100, UINT32_MAX - 1), 0);
    assert_int_equal(tare__hist_add(&hist, 100, 1), 0);
    assert_int_equal(count_at(&hist, bucket), UINT32_MAX);
    assert_int_equal(tare__hist_add(&hist, 100, 5), 0);
    assert_int_equal(count_at(&hist, bucket), UINT32_MAX);
    assert_true(hist.total == (uint64_t)UINT32_MAX + 5);
    assert_int_equal(tare__hist_add(&other, 100, 7), 0);
    assert_int_equal(tare__hist_merge(&other, &hist), 0);
    assert_int_equal(count_at(&other, bucket), UINT32_MAX);
    assert_true(other.total == (uint64_t)UINT32_MAX + 12);
    assert_int_equal(tare__hist_add(&other, 102, 9), 0); /* the bucket beside: one with it at bits 4 */
    tare__hist_coarsen(&other);
    assert_int_equal(count_at(&other, tare__hist_bucket(100, 4)), UINT32_MAX);
    assert_true(other.total == (uint64_t)UINT32_MAX + 21);
    tare__hist_free(&hist);
    tare__hist_free(&other);
}

/* The total remembers what a full bucket lost: 16 of 18 parts lie in the middle one. */
static void a_full_bucket_keeps_its_weight(void **state)
{
    (void)state;
    tare__hist hist = {.bits = 5};
    for (int i = 0; i < 16; i++)
        assert_int_equal(tare__hist_add(&hist, 10, UINT32_MAX), 0);
    assert_int_equal(tare__hist_add(&hist, 5, UINT32_MAX - 1), 0);
    assert_int_equal(tare__hist_add(&hist, 20, UINT32_MAX - 1), 0);
    assert_true(tare__hist_quantile(&hist, 0.05) == 5); /* 1/18 lie there */
    assert_true(tare__hist_quantile(&hist, 0.06) == 10);
    assert_true(tare__hist_quantile(&hist, 0.94) == 10);
    assert_true(tare__hist_quantile(&hist, 0.95) == 20);
    tare__hist_free(&hist);
}

static void growth_keeps_counts_both_ways(void **state)
{
    (void)state;
    tare__hist hist = {.bits = 5};
    uint32_t middle = bucket_count(5) / 2;
    for (uint32_t step = 0; step < middle; step++) {
        assert_int_equal(tare__hist_add(&hist, tare__hist_low(middle - step, 5), step + 1), 0);
        assert_int_equal(tare__hist_add(&hist, tare__hist_high(middle + step, 5), step + 1), 0);
    }
    assert_int_equal(count_at(&hist, middle), 2);
    for (uint32_t step = 1; step < middle; step++) {
        assert_int_equal(count_at(&hist, middle - step), step + 1);
        assert_int_equal(count_at(&hist, middle + step), step + 1);
    }
    assert_true(hist.first + hist.length <= bucket_count(5));
    tare__hist_free(&hist);
}

static void growth_is_not_every_time(void **state)
{
    (void)state;
    for (int down = 0; down < 2; down++) {
        tare__hist hist = {.bits = 5};
        unsigned growths = 0;
        for (uint32_t i = 0; i < 320; i++) {
            uint32_t before = hist.length;
            uint32_t bucket = down ? 900 - i : 580 + i;
            assert_int_equal(tare__hist_add(&hist, tare__hist_low(bucket, 5), 1), 0);
            growths += hist.length != before;
        }
        assert_true(growths <= 60);
        assert_true(hist.length <= 320 + 2 * (320 / 16 + 2));
        tare__hist_free(&hist);
    }
}

/* 100,000 of three octaves in 48 MiB, the struct and an allocator's 24 bytes a block counted in. */
static void many_stay_small(void **state)
{
    (void)state;
    uint64_t seed = 5;
    size_t bytes = 0;
    for (int i = 0; i < 1000; i++) {
        tare__hist hist = {.bits = 5};
        uint64_t low = 1 + random_next(&seed) % 100000000;
        for (int j = 0; j < 2000; j++) {
            double octaves = 3 * random_unit(&seed);
            assert_int_equal(tare__hist_add(&hist, (uint64_t)((double)low * exp2(octaves)), 1), 0);
        }
        bytes += tare__hist_bytes(&hist) + sizeof(hist) + 24;
        tare__hist_free(&hist);
    }
    assert_true(bytes * 100 < (size_t)48 << 20);
}

static void no_room_for_a_bucket_that_is_none(void **state)
{
    (void)state;
    tare__hist hist = {.bits = 5};
    assert_int_equal(tare__hist_grow(&hist, bucket_count(5)), TARE_E_MEMORY);
    assert_int_equal(tare__hist_grow(&hist, UINT32_MAX), TARE_E_MEMORY);
    assert_int_equal(hist.length, 0);
    assert_int_equal(tare__hist_grow(&hist, bucket_count(5) - 1), 0);
    assert_int_equal(hist.first + hist.length, bucket_count(5));
    assert_true(tare__hist_low(UINT32_MAX, 5) == UINT64_MAX);
    assert_true(tare__hist_high(bucket_count(0), 0) == UINT64_MAX);
    tare__hist_free(&hist);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_hold_their_bounds),
        cmocka_unit_test(buckets_leave_no_gap),
        cmocka_unit_test(quantiles_stay_within_the_bound),
        cmocka_unit_test(empty_has_no_quantile),
        cmocka_unit_test(one_value_is_every_quantile),
        cmocka_unit_test(merge_equals_adding),
        cmocka_unit_test(merge_with_empty),
        cmocka_unit_test(coarsen_equals_recording_coarser),
        cmocka_unit_test(coarsen_gives_memory_back),
        cmocka_unit_test(counts_saturate),
        cmocka_unit_test(a_full_bucket_keeps_its_weight),
        cmocka_unit_test(growth_keeps_counts_both_ways),
        cmocka_unit_test(growth_is_not_every_time),
        cmocka_unit_test(many_stay_small),
        cmocka_unit_test(no_room_for_a_bucket_that_is_none),
    };
    return cmocka_run_group_tests_name("stat/hist", tests, NULL, NULL);
}
