/* Tests of stat/hist when memory runs out: every allocation fails in turn, nothing is lost.
 * One process, one thread.
 * Must not know when hist allocates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stat/stat.h"
#include "tare.h"

static unsigned allocations;
static unsigned failing_one; /* 1-based; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return ++allocations == failing_one ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return ++allocations == failing_one ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return ++allocations == failing_one ? NULL : __real_realloc(memory, bytes);
}

static void fail_at(unsigned one)
{
    allocations = 0;
    failing_one = one;
}

static uint64_t counted(const tare__hist *hist)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < hist->length; i++)
        sum += hist->counts[i];
    return sum;
}

static void a_failed_add_changes_nothing(void **state)
{
    (void)state;
    tare__hist hist = {.bits = 5};
    fail_at(1);
    assert_int_equal(tare__hist_add(&hist, 1000, 1), TARE_E_MEMORY);
    assert_null(hist.counts);
    assert_int_equal(hist.total, 0);
    fail_at(0);
    assert_int_equal(tare__hist_add(&hist, 1000, 4), 0);
    static const uint64_t outside[] = {1, 1000000};
    for (int i = 0; i < 2; i++) {
        fail_at(1);
        assert_int_equal(tare__hist_add(&hist, outside[i], 1), TARE_E_MEMORY);
        assert_int_equal(tare__hist_add(&hist, 1000, 1), 0); /* what needs no memory goes on */
        assert_int_equal(hist.total, 5 + i);
        assert_int_equal(counted(&hist), hist.total);
    }
    fail_at(0);
    assert_int_equal(tare__hist_add(&hist, outside[0], 1), 0);
    assert_int_equal(tare__hist_add(&hist, outside[1], 1), 0);
    assert_true(tare__hist_quantile(&hist, 0) == 1);
    assert_int_equal(counted(&hist), 8);
    tare__hist_free(&hist);
}

/* One merge with its n-th allocation failing; says whether there was such an allocation. */
static bool merge_failing_at(unsigned one, unsigned from_bits, unsigned *failures)
{
    tare__hist into = {.bits = 5};
    tare__hist from = {.bits = (uint8_t)from_bits};
    fail_at(0);
    assert_int_equal(tare__hist_add(&into, 1000, 3), 0);
    assert_int_equal(tare__hist_add(&from, 10, 1), 0);
    assert_int_equal(tare__hist_add(&from, 1000, 1), 0);
    assert_int_equal(tare__hist_add(&from, 1000000, 1), 0);
    fail_at(one);
    int status = tare__hist_merge(&into, &from);
    assert_true(status == 0 || status == TARE_E_MEMORY);
    assert_int_equal(into.total, status ? 3 : 6);
    assert_int_equal(counted(&into), into.total);
    *failures += status != 0;
    bool reached = allocations >= one;
    if (status) {
        fail_at(0);
        assert_int_equal(tare__hist_merge(&into, &from), 0);
        assert_int_equal(counted(&into), 6);
    }
    tare__hist_free(&into);
    tare__hist_free(&from);
    return reached;
}

static void a_failed_merge_adds_nothing(void **state)
{
    (void)state;
    for (unsigned from_bits = 3; from_bits <= 7; from_bits++) {
        unsigned failures = 0;
        for (unsigned one = 1; merge_failing_at(one, from_bits, &failures); one++)
            ;
        assert_int_equal(failures, 1); /* growing; what coarsening could not give back is no failure */
    }
}

static void a_failed_shrink_is_only_larger(void **state)
{
    (void)state;
    tare__hist hist = {.bits = 5};
    fail_at(0);
    for (uint64_t value = 100; value < 1000; value++)
        assert_int_equal(tare__hist_add(&hist, value, 1), 0);
    fail_at(1);
    tare__hist_coarsen(&hist);
    assert_int_equal(allocations, 1);
    assert_int_equal(hist.bits, 4);
    assert_int_equal(counted(&hist), 900);
    fail_at(0);
    assert_int_equal(tare__hist_add(&hist, 1, 1), 0);
    assert_int_equal(counted(&hist), 901);
    tare__hist_free(&hist);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_add_changes_nothing),
        cmocka_unit_test(a_failed_merge_adds_nothing),
        cmocka_unit_test(a_failed_shrink_is_only_larger),
    };
    return cmocka_run_group_tests_name("stat/hist without memory", tests, NULL, NULL);
}
