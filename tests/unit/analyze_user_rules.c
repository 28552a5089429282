/* Tests of rules of the user's own: what they find, what is refused and where, what their bounds are.
 * One thread; linked so that malloc, calloc and realloc can fail.
 * Must not know how rules are kept. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/rules/user_rules.h"
#include "base_failing.h"
#include "findings_world.h"

static tare__rules *parse(const char *text)
{
    tare__rules *rules;
    tare__error error = {""};
    int status = tare__rules_parse(text, strlen(text), "my.rules", &rules, &error);
    if (status)
        fail_msg("%s", error.text);
    assert_non_null(rules);
    return rules;
}

static world *some_world(void)
{
    world *w = world_new();
    add_span(w, "main", TARE_KIND_SPAN, TARE__NO_ROW, 10, 5.5);
    add_span(w, "tokenize", TARE_KIND_SPAN, 0, 3, 3)->file = "text.py";
    add_span(w, "batch_1", TARE_KIND_SPAN, 0, 1, 1);
    add_span(w, "batch_2", TARE_KIND_SPAN, 0, 0.5, 0.5);
    w->of.usage.rss_peak_bytes = 3 * GB;
    w->of.usage.cpu_seconds = 12;
    w->of.run.command = "python3 train.py";
    add_row(w, TARE__M_RSS, TARE__SUBJECT_TREE, 0, "", one);
    return w;
}

/* Findings of the user's rules only. */
static size_t find_with(world *w, const char *text)
{
    tare__rules *rules = parse(text);
    evaluate_with(w, rules);
    tare__rules_free(rules); /* findings live on without them */
    size_t n = 0;
    for (size_t i = 0; i < w->of.n_findings; i++)
        n += w->of.findings[i].source != NULL;
    return n;
}

/* How many rows of a table a condition holds for. */
static size_t rows_where(const char *table, const char *condition)
{
    char text[4096];
    world *w = some_world();
    snprintf(text, sizeof text, "rule r table %s when %s say \"x\"", table, condition);
    size_t n = find_with(w, text);
    world_free(w);
    return n;
}

static void a_rule_finds_its_row(void **state)
{
    (void)state;
    world *w = some_world();
    assert_int_equal(find_with(w, "# mine\n"
                                  "\n"
                                  "rule slow-tokenizer\n"
                                  "  table spans where name = \"tokenize\"\n"
                                  "  when self_share > 0.2\n"
                                  "  say \"{name} takes {self_share:percent} of the run\"\n"
                                  "  advice \"tokenize once, ahead of time ({{cached}})\"\n"
                                  "  gain self_ns / 10s\n"
                                  "  severity critical\n"),
                     1);
    const tare__finding *finding = &w->of.findings[0];
    assert_string_equal(finding->id, "slow-tokenizer");
    assert_int_equal(finding->severity, TARE__CRITICAL);
    assert_string_equal(finding->title, "tokenize takes 30.0 % of the run");
    assert_string_equal(finding->advice, "tokenize once, ahead of time ({cached})");
    assert_string_equal(finding->evidence, "In the table spans: name tokenize, self_share 30.0 %.");
    assert_string_equal(finding->source, "my.rules:3");
    ABOUT(finding->gain, 0.3);
    ABOUT(figure_of(finding, "self_share"), 0.3);
    world_free(w);
}

static void conditions(void **state)
{
    (void)state;
    static const struct {
        const char *table, *condition;
        size_t rows;
    } cases[] = {
        {"spans", "calls = 10", 4},
        {"spans", "calls != 10", 0},
        {"spans", "total_ns >= 1s and total_ns < 10s", 2},
        {"spans", "total_ns > 9s or total_ns <= 500ms", 2},
        {"spans", "not (total_ns > 9s or total_ns <= 500ms)", 2},
        {"spans", "not total_ns > 9s and not total_ns <= 500ms", 2},
        {"spans", "name ~ \"batch_*\"", 2},
        {"spans", "name ~ \"batch_?\" and name !~ \"*2\"", 1},
        {"spans", "name ~ \"*k*n*e\"", 1},
        {"spans", "name ~ \"\"", 0},
        {"spans", "parent = \"main\" and kind = \"span\"", 3},
        {"spans", "total_ns - self_ns > 4s", 1},
        {"spans", "-self_ns < -3000ms + 1ns", 2},
        {"spans", "self_ns / calls = 50ms", 1},
        {"spans", "2 + 3 * 4 = 14 and (2 + 3) * 4 = 20 and 10 / 4 / 5 = 0.5 and 7 - 2 - 1 = 4", 4},
        {"spans", "self_share > 25%", 2},
        {"spans", "run_share = 100%", 1},
        {"spans", "true", 4},
        {"spans", "not true", 0},
        {"run", "elapsed_ns = 10s and command ~ \"*train.py\"", 1},
        {"run", "oom_killed", 0},
        {"run", "oom_killed = false and not oom_killed", 1},
        {"usage", "rss_peak_bytes > 2.5GB and rss_peak_bytes < 3GiB", 1},
        {"usage", "cpu_seconds = 12s", 1},
        {"metrics", "metric = \"memory.rss\" and subject = \"tree\" and max = 1", 1},
        {"steps", "true", 0},
        /* what is absent is neither so nor so */
        {"usage", "gpu_busy_mean < 70%", 0},
        {"usage", "not gpu_busy_mean < 70%", 0},
        {"usage", "gpu_busy_mean != 0", 0},
        {"usage", "gpu_busy_mean < 70% or cpu_seconds > 1s", 1},
        {"usage", "known(cpu_seconds) and not known(gpu_busy_mean)", 1},
        {"usage", "cpu_seconds / 0 > 1", 0},
        {"spans", "file = \"text.py\"", 1},
        {"spans", "file != \"text.py\"", 0},
        {"spans", "known(file)", 1},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        size_t rows = rows_where(cases[i].table, cases[i].condition);
        if (rows != cases[i].rows)
            fail_msg("%s when %s: %zu rows, not %zu", cases[i].table, cases[i].condition, rows, cases[i].rows);
    }
}

static void wrong_files_are_told_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"ruel a", "my.rules:1:1: expected 'rule', 'table', 'when', "},
        {"rule\n", "my.rules:2:1: a rule needs a name"},
        {"rule a table spans say \"x\"", "my.rules:1:1: the rule 'a' has no 'when'"},
        {"\nrule a table spans when true", "my.rules:2:1: the rule 'a' has no 'say'"},
        {"rule a when true", "my.rules:1:8: 'table' must come before 'when'"},
        {"rule a table spam", "my.rules:1:14: unknown table 'spam'"},
        {"rule a\n table spans\n when nmae = \"x\"", "my.rules:3:7: the table spans has no column 'nmae'"},
        {"rule a table spans when name", "my.rules:1:25: this is a string, not a condition"},
        {"rule a table spans when calls + 1", "my.rules:1:25: this is a number, not a condition"},
        {"rule a table spans when name > \"x\"", "my.rules:1:30: '>' requires numbers"},
        {"rule a table spans when name = 3", "my.rules:1:30: '=' between a string and a number"},
        {"rule a table spans when calls ~ \"x\"", "my.rules:1:31: '~' requires a string and a quoted pattern"},
        {"rule a table spans when total_ns > 3GB", "my.rules:1:34: '>' between a time and bytes"},
        {"rule a table spans when total_ns + share > 1", "my.rules:1:34: '+' between a time and a share"},
        {"rule a table spans when name + 1 > 1", "my.rules:1:30: '+' requires a number, not a string"},
        {"rule a table spans when calls and true", "my.rules:1:31: 'and' requires a condition"},
        {"rule a table spans when not calls", "my.rules:1:25: 'not' requires a condition"},
        {"rule a table spans when (calls > 1", "expected ')', found "},
        {"rule a table spans when calls > ", "expected a value (a column, a number, a string or '('), found the end"},
        {"rule a table spans when calls > 5parsecs", "my.rules:1:33: '5parsecs' is not a number with a unit"},
        {"rule a table spans when calls ; 1", "my.rules:1:31: ';' is not part of a rule"},
        {"rule a table spans when name = \"x", "my.rules:1:32: a string must end with a quote"},
        {"rule a table spans when name = \"x\\n\"", "only \\\" and \\\\ are allowed"},
        {"rule a table spans when true say \"{nmae}\"", "my.rules:1:34: the table spans has no column 'nmae'"},
        {"rule a table spans when true say \"{name:percent}\"", "a format requires a number"},
        {"rule a table spans when true say \"{calls:furlongs}\"", "'furlongs' is not a format"},
        {"rule a table spans when true say \"{calls\"", "unmatched brace in a string"},
        {"rule a table spans when true say \"calls}\"", "unmatched brace in a string"},
        {"rule a table spans when true say \"{calls calls}\"", "unexpected 'calls' between braces"},
        {"rule a table spans when true say \"\"", "the string is empty"},
        {"rule a table spans when true say x", "expected a quoted string, found x"},
        {"rule a table spans when true severity bad", "'bad' is not a severity"},
        {"rule a table spans when true gain name", "a gain must be a number"},
        {"rule a table spans table spans", "my.rules:1:20: the rule already has a 'table'"},
        {"rule a table spans when true say \"x\" rule a", "rule 'a' is already defined in line 1"},
        {"rule a table spans when known calls", "syntax of known: known(column)"},
        {"rule a table spans when µ > 1", "my.rules:1:25"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        tare__rules *rules = (tare__rules *)8;
        tare__error error = {""};
        int status = tare__rules_parse(cases[i].text, strlen(cases[i].text), "my.rules", &rules, &error);
        if (status != TARE_E_INPUT || rules || !strstr(error.text, cases[i].said))
            fail_msg("%s\ngave %d, %s\nnot %s", cases[i].text, status, error.text, cases[i].said);
        assert_null(strstr(error.text, "''"));
    }
}

static void refuse(char *text, size_t bytes, const char *said)
{
    tare__rules *rules;
    tare__error error = {""};
    assert_int_equal(tare__rules_parse(text, bytes, "my.rules", &rules, &error), TARE_E_INPUT);
    if (!strstr(error.text, said))
        fail_msg("said %s, not %s", error.text, said);
    free(text);
}

static char *repeat(const char *head, const char *part, size_t times, const char *tail)
{
    size_t length = strlen(part);
    char *text = malloc(strlen(head) + length * times + strlen(tail) + 1);
    assert_non_null(text);
    char *at = stpcpy(text, head);
    for (size_t i = 0; i < times; i++)
        at = stpcpy(at, part);
    strcpy(at, tail);
    return text;
}

static void files_are_bounded(void **state)
{
    (void)state;
    char *text = repeat("rule a table spans when ", "(", 100, "true");
    refuse(text, strlen(text), "nested deeper than 64 levels");
    text = repeat("rule a table spans when ", "not ", 100, "true");
    refuse(text, strlen(text), "nested deeper than 64 levels");
    text = repeat("rule a table spans when ", "-", 100, "calls > 1");
    refuse(text, strlen(text), "nested deeper than 64 levels");
    text = repeat("rule a table spans when calls > 0", " + calls", 600, "");
    refuse(text, strlen(text), "more than 512 parts");
    text = repeat("rule a table spans when name = \"", "x", 1001, "\"");
    refuse(text, strlen(text), "the text is too long");
    text = repeat("rule ", "x", 65, "");
    refuse(text, strlen(text), "too long a name");
    text = repeat("", "#\n", 200000, "");
    refuse(text, strlen(text), "the most is 262144");
    text = repeat("rule a table spans when calls > 1", "0", 400, "");
    refuse(text, strlen(text), "too large a number");
    text = malloc(10000 * 10);
    assert_non_null(text);
    size_t n = 0;
    for (int i = 0; i < 300; i++)
        n += (size_t)sprintf(text + n, "rule r%d table run when true say \"x\"\n", i);
    refuse(text, n, "my.rules:257:1: more than 256 rules");
}

static void many_rows_give_few_findings(void **state)
{
    (void)state;
    world *w = world_new();
    for (int i = 0; i < 16; i++)
        add_span(w, "same", TARE_KIND_SPAN, TARE__NO_ROW, 0.001, 0.001);
    assert_int_equal(find_with(w, "rule r table spans when true say \"{name}\""), USER_PER_RULE);
    assert_non_null(strstr(w->of.findings[9].evidence, "It holds for 6 more rows."));
    world_free(w);
}

static void values_in_sentences(void **state)
{
    (void)state;
    world *w = some_world();
    find_with(w,
              "rule r table usage when known(cpu_seconds) say \"{cpu_seconds} {rss_peak_bytes} {rss_peak_bytes:number} "
              "{cpu_seconds / 24s:percent} {gpu_busy_mean} {cores_mean:count} {cpu_seconds > 1s} {rss_peak_process}\"");
    assert_string_equal(found(w, "r")->title, "12.0 s 2.79 GiB 3e+09 50.0 % n/a n/a yes n/a");
    world_free(w);
}

/* Built-in findings stay, and a user's of the same severity without a gain comes last. */
static void they_stand_among_the_others(void **state)
{
    (void)state;
    world *w = some_world();
    w->of.run.dropped_spans = 5;
    find_with(w, "rule mine table run when true say \"x\" severity warning");
    must_find(w, "spans-dropped");
    assert_true(must_find(w, "mine") > must_find(w, "spans-dropped"));
    assert_null(must_find(w, "spans-dropped")->source);
    world_free(w);
}

static const char all_of_it[] = "rule a table spans where name = \"tokenize\" when self_share > 20% and calls > 1 "
                                "say \"{name} {calls}\" evidence \"{total_ns:time}\" advice \"x\" gain share "
                                "severity info rule b table run when true say \"y\"";

static void every_allocation_of_the_parser_may_fail(void **state)
{
    (void)state;
    int status = TARE_E_MEMORY, failures = 0;
    for (long allowed = 0; status; allowed++) {
        tare__rules *rules;
        tare__error error = {""};
        allocations_left = allowed;
        status = tare__rules_parse(all_of_it, sizeof all_of_it - 1, "my.rules", &rules, &error);
        allocations_left = -1;
        if (status) {
            assert_int_equal(status, TARE_E_MEMORY);
            assert_non_null(strstr(error.text, "out of memory"));
            assert_null(rules);
            failures++;
        }
        tare__rules_free(rules);
    }
    assert_true(failures >= 5);
}

static void every_allocation_of_the_findings_may_fail(void **state)
{
    (void)state;
    tare__rules *rules = parse(all_of_it);
    int status = TARE_E_MEMORY, failures = 0;
    for (long allowed = 0; status; allowed++) {
        world *w = some_world();
        w->of.run.dropped_spans = 7;
        allocations_left = allowed;
        status = tare__analyze_findings(&w->of, NULL, rules);
        allocations_left = -1;
        if (status) {
            assert_int_equal(status, TARE_E_MEMORY);
            failures++;
        } else {
            must_find(w, "operation");
            must_find(w, "b");
        }
        world_free(w);
    }
    assert_true(failures >= 5);
    tare__rules_free(rules);
}

/* Every column that has single values can be read. */
static void columns_can_be_read(void **state)
{
    (void)state;
    world *w = some_world();
    add_steps(w, 20, 0.1, 0.1, 0.1);
    tare__cells cells;
    tare__cells_begin(&cells, &w->of);
    const tare__table *table;
    size_t singles = 0;
    for (size_t t = 0; (table = tare__user_table(t)); t++) {
        assert_ptr_equal(tare__user_table_find(table->name, strlen(table->name)), table);
        for (size_t c = 0; c < table->n_columns; c++) {
            const tare__schema_column *column = &table->columns[c];
            bool single = tare__user_type(column) != VALUE_NONE;
            assert_ptr_equal(tare__user_column_find(table, column->name, strlen(column->name)), single ? column : NULL);
            singles += single;
            for (size_t row = 0; single && row < tare__table_rows(&w->of, table); row++) {
                value value = tare__user_cell(&cells, column, tare__table_row(&w->of, table, row), row);
                assert_int_equal(value.type, tare__user_type(column));
            }
        }
    }
    assert_true(singles > 200);
    assert_null(tare__user_table_find("findings", 8));
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_finds_its_row),
        cmocka_unit_test(conditions),
        cmocka_unit_test(wrong_files_are_told_where),
        cmocka_unit_test(files_are_bounded),
        cmocka_unit_test(many_rows_give_few_findings),
        cmocka_unit_test(values_in_sentences),
        cmocka_unit_test(they_stand_among_the_others),
        cmocka_unit_test(every_allocation_of_the_parser_may_fail),
        cmocka_unit_test(every_allocation_of_the_findings_may_fail),
        cmocka_unit_test(columns_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
