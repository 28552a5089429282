/* Tests of stat/random: the published numbers, and that draws are spread as they should be.
 * One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stat/stat.h"
#include "tare.h"

/* What the authors' own code gives from the state 1, 2, 3, 4. */
static void the_published_numbers(void **state)
{
    (void)state;
    static const uint64_t expected[] = {11520,
                                        0,
                                        1509978240,
                                        UINT64_C(1215971899390074240),
                                        UINT64_C(1216172134540287360),
                                        UINT64_C(607988272756665600),
                                        UINT64_C(16172922978634559625),
                                        UINT64_C(8476171486693032832),
                                        UINT64_C(10595114339597558777),
                                        UINT64_C(2904607092377533576)};
    tare__random random = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(tare__random_next(&random) == expected[i]);
}

/* And splitmix64 from this seed, which fills the state. */
static void the_published_seeding(void **state)
{
    (void)state;
    tare__random random;
    tare__random_seed(&random, UINT64_C(1477776061723855037));
    assert_true(random.word[0] == UINT64_C(1985237415132408290));
    assert_true(random.word[1] == UINT64_C(2979275885539914483));
    assert_true(random.word[2] == UINT64_C(13511426838097143398));
}

static void below_is_even(void **state)
{
    (void)state;
    tare__random random;
    unsigned counts[7] = {0};
    tare__random_seed(&random, 5);
    for (int i = 0; i < 70000; i++) {
        uint64_t drawn = tare__random_below(&random, 7);
        assert_true(drawn < 7);
        counts[drawn]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9600, 10400);
    assert_int_equal(tare__random_below(&random, 0), 0);
    assert_int_equal(tare__random_below(&random, 1), 0);
}

static void normal_is_normal(void **state)
{
    (void)state;
    tare__random random;
    tare__moments moments = {0};
    int beyond = 0;
    tare__random_seed(&random, 6);
    for (int i = 0; i < 100000; i++) {
        double drawn = tare__random_normal(&random);
        tare__moments_add(&moments, drawn);
        beyond += fabs(drawn) > 1.959963984540054;
    }
    assert_true(fabs(moments.mean) < 0.01);
    assert_true(fabs(tare__moments_deviation(&moments) - 1) < 0.01);
    assert_in_range(beyond, 4700, 5300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_numbers),
        cmocka_unit_test(the_published_seeding),
        cmocka_unit_test(below_is_even),
        cmocka_unit_test(normal_is_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
