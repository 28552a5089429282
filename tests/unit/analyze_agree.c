/* Tests that a check and a comparison of the same figures never disagree: thousands of lists made at random.
 * One thread.
 * Must not know how either is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/analyze.h"

#define ROUNDS  400
#define FIGURES 12

static const char *const kinds[FIGURES] = {"run.elapsed", "run.peak_rss", "step",        "step.samples/s",
                                           "span:a",      "span:b",       "operator:mm", "kernel:k",
                                           "counter:c",   "metric:m",     "model.macs",  "model.latency"};

static double pick(tare__random *random, const double *from, size_t n)
{
    return from[tare__random_below(random, n)];
}

/* A figure of one side: few or many samples, none, exact ones, bounds, zeros; near the gates more often than not. */
static void add(tare__figures *to, const char *name, bool several, double level, tare__random *random)
{
    static const double counts[] = {0, 1, 3, 4, 5, 6, 7, 10, 20, 60}, spreads[] = {0, 0.002, 0.01, 0.03, 0.2};
    double samples[64], spread = pick(random, spreads, 5);
    size_t n = (size_t)pick(random, counts, 10);
    bool exact = strcmp(name, "model.macs") == 0;
    for (size_t i = 0; i < n; i++)
        samples[i] = level * exp(spread * tare__random_normal(random));
    bool bytes = strstr(name, "rss") != NULL;
    tare__figure figure = {.name = name,
                           .unit = exact ? "" : bytes ? "bytes" : tare__random_below(random, 60) ? "ns" : "s",
                           .per = several ? "run" : "call",
                           .better = strstr(name, "/s")                               ? TARE__HIGHER
                                     : *name == 'c' || strncmp(name, "metric", 6) == 0 ? TARE__NEITHER
                                                                                      : TARE__LOWER,
                           .exact = exact,
                           .at_least = exact && tare__random_below(random, 4) == 0,
                           .value = n && !exact ? NAN : tare__random_below(random, 20) ? level : 0,
                           .total = level,
                           .n = n ? n : 1,
                           .each = 1,
                           .samples = exact ? NULL : samples,
                           .n_samples = exact ? 0 : n};
    if (tare__random_below(random, 40)) /* now and then it is on one side only */
        assert_int_equal(tare__figures_add(to, &figure), 0);
}

static void agree(const tare__figures *base, const tare__figures *head, double share, bool all)
{
    tare__check_options asked = {.share = share, .all = all};
    tare__compare_options options = {.min_change = share};
    tare__check *check;
    tare__comparison *comparison;
    assert_int_equal(tare__check_figures(base, head, &asked, &check, NULL), 0);
    assert_int_equal(tare__compare(base, head, &options, &comparison), 0);
    assert_true(check->share == comparison->min_change);
    size_t counts[5] = {0};
    for (size_t i = 0; i < comparison->n; i++) {
        const tare__compared *row = &comparison->rows[i];
        const tare__check_row *same = NULL;
        for (size_t k = 0; k < check->n; k++)
            same = strcmp(check->rows[k].name, row->base->name) == 0 ? &check->rows[k] : same;
        assert_non_null(same);
        const tare__decision *a = &row->decision, *b = &same->decision;
        if (a->verdict != b->verdict)
            fail_msg("%s: a comparison says %s, a check says %s", row->base->name, tare__verdict_word(a->verdict),
                     tare__verdict_word(b->verdict));
        assert_true(a->why == b->why && a->base == b->base && a->head == b->head);
        assert_true(a->change == b->change || (isnan(a->change) && isnan(b->change)));
        assert_true(a->p == b->p || (isnan(a->p) && isnan(b->p)));
        assert_true(isnan(a->low) || (a->low <= a->change && a->change <= a->high));
        if (tare__decide_differs(a) && !a->requested.exact)
            assert_true(a->adjusted <= TARE__GATE_P && (isnan(a->low) || a->low > 0 || a->high < 0));
        assert_int_equal(same->gated && a->verdict == TARE__VERDICT_WORSE, same->outcome == TARE__OUTCOME_FAILED);
        assert_int_equal(a->verdict == TARE__VERDICT_BETTER, same->outcome == TARE__OUTCOME_IMPROVED);
        assert_true(same->outcome != TARE__OUTCOME_INCONCLUSIVE || a->verdict == TARE__VERDICT_INCONCLUSIVE);
        if (row->head->at_least && a->verdict != TARE__VERDICT_INCONCLUSIVE)
            assert_int_equal(a->verdict, TARE__VERDICT_WORSE);
        counts[a->verdict]++;
    }
    assert_true(counts[TARE__VERDICT_WORSE] == comparison->worse && counts[TARE__VERDICT_BETTER] == comparison->better);
    assert_true(counts[TARE__VERDICT_INCONCLUSIVE] == comparison->inconclusive);
    tare__check_free(check);
    tare__comparison_free(comparison);
}

static void check_and_comparison_agree(void **state)
{
    (void)state;
    static const double changes[] = {1, 1, 1.005, 1.03, 1.051, 1.08, 1.101, 1.2, 0.97, 0.93, 0.5};
    static const double shares[] = {NAN, NAN, 0, 0.01, 0.05, 0.3};
    tare__random random;
    tare__random_seed(&random, 1);
    for (int round = 0; round < ROUNDS; round++) {
        tare__figures *sides[2];
        double levels[FIGURES];
        for (int side = 0; side < 2; side++) {
            bool several = tare__random_below(&random, 10) ? round % 2 : !(round % 2);
            sides[side] = tare__figures_new("run");
            sides[side]->runs = several ? 6 : 1;
            sides[side]->machine = tare__random_below(&random, 4) ? "m" : "other";
            for (size_t i = 0; i < FIGURES; i++) {
                if (side == 0)
                    levels[i] = exp(3 + 17 * tare__random_unit(&random));
                add(sides[side], kinds[i], several, levels[i] * (side ? pick(&random, changes, 11) : 1), &random);
            }
        }
        agree(sides[0], sides[1], pick(&random, shares, 6), tare__random_below(&random, 2));
        tare__figures_free(sides[0]);
        tare__figures_free(sides[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_and_comparison_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
