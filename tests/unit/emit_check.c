/* Tests of a check and of what emit makes of it: rows, outcomes, confirmation, escapes, memory that runs out.
 * One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit/emit.h"
#include "emit/escape.h"
#include "tare.h"

static double quick[10], slow[10];
static const tare__check_options plain = {.share = NAN};

static void add(tare__figures *to, const char *name, const double *samples, tare__better better)
{
    tare__figure figure = {.name = name,
                           .unit = "ns",
                           .per = "run",
                           .better = better,
                           .value = NAN,
                           .total = NAN,
                           .n = 10,
                           .each = 1,
                           .samples = samples,
                           .n_samples = 10};
    assert_int_equal(tare__figures_add(to, &figure), 0);
}

static tare__figures *figures(const double *step, const char *machine)
{
    tare__figures *made = tare__figures_new("runs");
    assert_non_null(made);
    made->runs = 10;
    made->machine = machine;
    add(made, "step", step, TARE__LOWER);
    add(made, "span:load", step, TARE__LOWER);
    tare__figure exact = {.name = "model.flops",
                          .unit = "",
                          .better = TARE__LOWER,
                          .exact = true,
                          .value = 7,
                          .total = NAN,
                          .n = 1};
    assert_int_equal(tare__figures_add(made, &exact), 0);
    return made;
}

static int prepare(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        quick[i] = 1e6 + 1000 * i;
        slow[i] = 1.5e6 + 1000 * i;
    }
    return 0;
}

static const tare__check_row *row_of(const tare__check *check, const char *name)
{
    for (size_t i = 0; i < check->n; i++)
        if (strcmp(check->rows[i].name, name) == 0)
            return &check->rows[i];
    fail_msg("there is no row %s", name);
    return NULL;
}

static tare__check *checked(const tare__figures *base, const tare__figures *head,
                            const tare__check_options *options)
{
    tare__check *check = NULL;
    tare__error error = {""};
    if (tare__check_figures(base, head, options, &check, &error) != 0)
        fail_msg("%s", error.text);
    return check;
}

static void what_failed_comes_first(void **state)
{
    (void)state;
    tare__figures *base = figures(quick, "m"), *head = figures(slow, "m");
    tare__check *check = checked(base, head, &plain);
    assert_int_equal(check->n, 3);
    assert_string_equal(check->rows[0].name, "step");
    assert_int_equal(check->rows[0].outcome, TARE__OUTCOME_FAILED);
    assert_int_equal(row_of(check, "span:load")->outcome,
                     TARE__OUTCOME_CHANGED); /* a part, which nobody named */
    assert_int_equal(row_of(check, "model.flops")->outcome, TARE__OUTCOME_PASSED);
    assert_false(tare__check_passed(check));
    assert_true(check->share == 0.05 && !check->other_machine && check->n_warnings == 0);
    tare__check_free(check);
    check = checked(head, base, &plain);
    assert_true(tare__check_passed(check) && row_of(check, "step")->outcome == TARE__OUTCOME_IMPROVED);
    tare__check_free(check);
    tare__figures_free(base);
    tare__figures_free(head);
}

static void asked_twice(void **state)
{
    (void)state;
    tare__figures *base = figures(quick, "m"), *head = figures(slow, "m");
    tare__check *check = checked(base, head, &plain), *good = checked(base, base, &plain);
    tare__check *bad = checked(base, head, &plain);
    assert_true(tare__check_wants_again(check) && !tare__check_wants_again(good));
    tare__check_confirm(check, bad);
    assert_true(check->rerun && !tare__check_passed(check));
    assert_string_equal(row_of(check, "step")->reason, "confirmed by running it again");
    tare__check_confirm(check, good);
    assert_true(tare__check_passed(check) && row_of(check, "step")->outcome == TARE__OUTCOME_CLEARED);
    assert_int_equal(check->count[TARE__OUTCOME_CLEARED], 1);
    tare__check_confirm(check, bad); /* what is cleared is not asked again */
    assert_true(tare__check_passed(check));
    tare__check_free(check);
    tare__check_free(good);
    tare__check_free(bad);
    tare__figures_free(base);
    tare__figures_free(head);
}

static void thresholds_name_figures(void **state)
{
    (void)state;
    tare__threshold thresholds[4];
    static const char *const words[] = {"*:80%", "span:*:10%", "step:1.2ms", "nothing:5%"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(tare__threshold_parse(words[i], "", &thresholds[i], NULL), 0);
    tare__check_options options = {thresholds, 4, NAN, false};
    tare__figures *base = figures(quick, "m"), *head = figures(slow, NULL);
    tare__check *check = checked(base, head, &options);
    assert_true(check->other_machine && check->share == 0.10 && check->n_warnings == 1);
    const tare__check_row *step = row_of(check, "step");
    assert_true(step->broken && step->has_limit && step->limit == 1.2e6 && step->decision.requested.gate.share == 0.8);
    assert_string_equal(step->reason, "above its limit");
    assert_int_equal(row_of(check, "span:load")->outcome, TARE__OUTCOME_FAILED);
    assert_int_equal(row_of(check, "nothing")->outcome, TARE__OUTCOME_FAILED);
    assert_int_equal(check->count[TARE__OUTCOME_FAILED], 3);
    tare__check_free(check);
    tare__error error = {""};
    assert_int_equal(tare__threshold_parse("step:5MB", "", &thresholds[2], NULL), 0);
    assert_int_equal(tare__check_figures(base, head, &options, &check, &error), TARE_E_USAGE);
    assert_string_equal(error.text, "the threshold for 'step' is in bytes, but step is a time: write it as 100ms");
    tare__figures_free(base);
    tare__figures_free(head);
}

static void emit_all(const tare__check *check, tare__text out[5])
{
    tare__check_names names = {"head.tare", check->base ? "base.json" : NULL};
    tare__emit_options style = {.width = 80};
    tare__emit_check_text(check, &names, &style, &out[0]);
    tare__emit_check_json(check, &names, true, &out[1]);
    tare__emit_check_junit(check, &names, &out[2]);
    tare__emit_check_github(check, &names, &out[3]);
    tare__emit_check_markdown(check, &names, &out[4]);
}

static void lines_fit(void **state)
{
    (void)state;
    tare__figures *base = figures(quick, "m"), *head = figures(slow, "m");
    add(base, "model.a_rather_long_name_that_does_not_fit_into_the_column_of_names", quick, TARE__LOWER);
    add(head, "model.a_rather_long_name_that_does_not_fit_into_the_column_of_names", slow, TARE__LOWER);
    tare__check *check = checked(base, head, &plain);
    tare__text out[5] = {{0}};
    emit_all(check, out);
    for (const char *line = out[0].data; *line;) {
        size_t length = strcspn(line, "\n");
        if (tare__text_columns(line, length) > 80)
            fail_msg("too wide: %.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    for (int i = 0; i < 5; i++)
        tare__text_free(&out[i]);
    tare__check_free(check);
    tare__figures_free(base);
    tare__figures_free(head);
}

/* Every allocation fails in turn: a status, or a text that says it failed; never half an answer. */
static void memory_runs_out(void **state)
{
    (void)state;
    tare__figures *base = figures(quick, "m"), *head = figures(slow, "other");
    tare__check *check = NULL;
    int status = TARE_E_MEMORY;
    for (long left = 0; status; left++) {
        assert_true(left < 1000);
        allocations_left = left;
        status = tare__check_figures(base, head, &plain, &check, NULL);
        allocations_left = -1;
    }
    assert_int_equal(row_of(check, "step")->outcome, TARE__OUTCOME_FAILED);
    bool whole = false;
    for (long left = 0; !whole; left++) {
        assert_true(left < 1000);
        tare__text out[5] = {{0}};
        allocations_left = left;
        emit_all(check, out);
        allocations_left = -1;
        whole = true;
        for (int i = 0; i < 5; i++) {
            whole = whole && !out[i].failed;
            tare__text_free(&out[i]);
        }
    }
    tare__check_free(check);
    tare__figures_free(base);
    tare__figures_free(head);
}

static void escaped(void (*with)(tare__text *, const char *), const char *text, const char *expected)
{
    tare__text out = {0};
    with(&out, text);
    assert_string_equal(out.data, expected);
    tare__text_free(&out);
}

static void as_message(tare__text *out, const char *text)
{
    tare__escape_github(out, text, false);
}

static void as_property(tare__text *out, const char *text)
{
    tare__escape_github(out, text, true);
}

static void escapes(void **state)
{
    (void)state;
    escaped(tare__escape_xml, "a<b>&\"'\n\x01\xff\xef\xbf\xbf\xc3\xa9",
            "a&lt;b&gt;&amp;&quot;&#39;&#10;\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9");
    escaped(tare__escape_markdown, "a|b*c\n<i>`[x](y)`", "a\\|b\\*c &lt;i&gt;\\`\\[x\\]\\(y\\)\\`");
    escaped(as_message, "50%: a,b\r\nc\x1b", "50%25: a,b%0D%0Ac\xef\xbf\xbd");
    escaped(as_property, "50%: a,b", "50%25%3A a%2Cb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_failed_comes_first), cmocka_unit_test(asked_twice),
        cmocka_unit_test(thresholds_name_figures), cmocka_unit_test(lines_fit),
        cmocka_unit_test(memory_runs_out),         cmocka_unit_test(escapes),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
