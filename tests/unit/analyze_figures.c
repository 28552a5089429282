/* Tests of src/analyze/figures*.c and samples.c: what a sample is of, how many are kept, that a baseline reads
 * back.
 * One thread.
 * Must not know how figures are compared or shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"
#include "emit/emit.h"

enum { MM = 20, LAYER, FORWARD, LONG };

static tare__figures *figures_of(builder *b)
{
    tare__trace *trace;
    tare__analysis *analysis;
    tare__figures *figures;
    tare__error error = {""};
    tare__analyze_options options = {.samples = true};
    assert_int_equal(tare__trace_open(build_file(b), &trace, &error), 0);
    assert_int_equal(tare__analyze(trace, &options, &analysis, &error), 0);
    assert_int_equal(tare__figures_of_analysis(analysis, &figures), 0);
    tare__analysis_free(analysis); /* figures live on without it */
    tare__trace_close(trace);
    return figures;
}

static const tare__figure *find(const tare__figures *figures, const char *name)
{
    const tare__figure *figure = tare__figures_find(figures, name);
    if (!figure)
        fail_msg("no figure %s", name);
    return figure;
}

/* ---- what a sample is of ---------------------------------------------------------------------- */
/* A step of 2,000 ns has three calls of mm, 100 ns each and 20 ns more a step, two in a layer. */
static uint64_t build_step(builder *b, uint64_t t, uint64_t i)
{
    uint64_t mm = 200 + 40 * i;
    BEGIN(STEP, t);
    BEGIN(FORWARD, t + 10);
    BEGIN(LAYER, t + 20);
    BEGIN(MM, t + 30);
    BEGIN(MM, t + 40); /* it calls itself: self time is counted once */
    END(t + 50);
    END(t + 30 + mm);
    END(t + 600);
    BEGIN(MM, t + 700);
    END(t + 700 + mm);
    END(t + 1800);
    END(t + 4000);
    return t + 4000;
}

static builder *build_training(uint64_t steps)
{
    builder *b = build_single();
    build_name(b, MM, TARE_KIND_OPERATOR, "aten::mm");
    build_name(b, LAYER, TARE_KIND_MODULE, "net.0");
    build_name(b, FORWARD, TARE_KIND_PHASE, "forward");
    uint64_t t = 2000;
    BEGIN(OUTER, t);
    for (uint64_t i = 0; i < steps; i++) {
        t = build_step(b, t, i);
        COUNTER(LOSS, t, 10.0 - (double)i);
    }
    BEGIN(MM, t); /* outside of steps it is another thing */
    t += 5000;
    END(t);
    END(t);
    build_seal(b);
    build_end(b, t + 1000);
    return b;
}

static void inside_of_steps_a_sample_is_a_step(void **state)
{
    (void)state;
    builder *b = build_training(3);
    tare__figures *figures = figures_of(b);
    const tare__figure *step = find(figures, "step");
    assert_string_equal(step->per, "call");
    assert_int_equal(step->n_samples, 3);
    NEAR(step->value, 2000);
    NEAR(step->total, 6000);
    assert_int_equal(step->better, TARE__LOWER);
    const tare__figure *mm = find(figures, "operator:aten::mm");
    assert_string_equal(mm->per, "step");
    assert_int_equal(mm->n, 9);
    assert_int_equal(mm->n_samples, 3);
    for (int i = 0; i < 3; i++)
        NEAR(mm->samples[i], 2 * (100 + 20 * i));
    NEAR(mm->value, 240);
    NEAR(mm->total, 720);
    const tare__figure *forward = find(figures, "span:outer/step/forward");
    assert_string_equal(forward->per, "step");
    NEAR(forward->samples[2], 895);
    NEAR(find(figures, "layer:net.0")->value, 290);
    const tare__figure *outside = find(figures, "operator:aten::mm (outside of steps)");
    assert_string_equal(outside->per, "call");
    NEAR(outside->value, 2500);
    const tare__figure *loss = find(figures, "counter:loss");
    assert_int_equal(loss->better, TARE__NEITHER);
    assert_true(isnan(loss->total));
    NEAR(loss->value, 9);
    NEAR(find(figures, "step.count")->value, 3);
    assert_null(tare__figures_find(figures, "span:outer/step")); /* it is "step" already */
    NEAR(find(figures, "run.elapsed")->value, find(figures, "run.elapsed")->total);
    assert_string_equal(figures->kind, "run");
    assert_non_null(figures->machine);
    tare__figures_free(figures);
    builder_free(b);
}

static void a_step_without_an_end_gives_no_sample(void **state)
{
    (void)state;
    builder *b = build_single();
    build_name(b, FORWARD, TARE_KIND_PHASE, "forward");
    BEGIN(STEP, 2000);
    BEGIN(FORWARD, 2100);
    END(2200);
    END(3000);
    BEGIN(STEP, 3000);
    BEGIN(FORWARD, 3100);
    END(3800);
    build_seal(b); /* … and the file ends: unfinished */
    tare__figures *figures = figures_of(b);
    assert_int_equal(find(figures, "step")->n_samples, 1);
    assert_int_equal(find(figures, "span:step/forward")->n_samples, 1);
    NEAR(find(figures, "span:step/forward")->value, 50);
    assert_null(tare__figures_find(figures, "run.elapsed")); /* nobody knows how long it took */
    assert_true(figures->n_notes > 0);
    tare__figures_free(figures);
    builder_free(b);
}

static void complete_spans_go_by_name(void **state)
{
    (void)state;
    builder *b = build_single();
    BEGIN(OUTER, 2000);
    END(3000);
    build_seal(b);
    build_complete_and_aggregate(b);
    build_end(b, 9000);
    tare__figures *figures = figures_of(b);
    NEAR(find(figures, "kernel:inner")->value, 200);
    NEAR(find(figures, "aggregate:other")->total, 22);
    assert_int_equal(find(figures, "aggregate:other")->n_samples, 0);
    tare__figures_free(figures);
    builder_free(b);
}

/* ---- how many are kept ------------------------------------------------------------------------ */
static builder *build_calls(uint64_t calls)
{
    builder *b = build_single();
    uint64_t t = 2000;
    for (uint64_t i = 0; i < calls; i++, t += 1000) {
        BEGIN(OUTER, t);
        END(t + 2 * (i % 4 + 1)); /* 1, 2, 3, 4, 1, … ns */
        if (i % 1000 == 999)
            build_seal(b);
    }
    build_seal(b);
    build_end(b, t + 1000);
    return b;
}

static void many_calls_become_means(void **state)
{
    (void)state;
    builder *b = build_calls(1000), *c = build_calls(4003);
    tare__figures *few = figures_of(b), *many = figures_of(c);
    const tare__figure *of_few = find(few, "span:outer"), *of_many = find(many, "span:outer");
    assert_int_equal(of_few->each, 1);
    assert_int_equal(of_few->n_samples, 1000);
    assert_int_equal(of_many->each, 8);
    assert_int_equal(of_many->n, 4003);
    assert_int_equal(of_many->n_samples, 500);
    for (size_t i = 0; i < of_many->n_samples; i++)
        NEAR(of_many->samples[i], 2.5);
    static double base[TARE__FIGURE_SAMPLES_MAX], head[TARE__FIGURE_SAMPLES_MAX];
    size_t n, m;
    assert_true(tare__figures_align(of_few, of_many, base, &n, head, &m));
    assert_int_equal(n, 125);
    assert_int_equal(m, 500);
    NEAR(base[124], 2.5);
    tare__figure other = *of_many;
    other.per = "step";
    assert_false(tare__figures_align(of_few, &other, base, &n, head, &m));
    tare__figures_free(few);
    tare__figures_free(many);
    builder_free(b);
    builder_free(c);
}

/* 1,060 names with 1,000 calls each are more than is kept: those that come last have means of many. */
static void memory_of_samples_is_bounded(void **state)
{
    (void)state;
    enum { NAMES = 1060, CALLS = 1000, FIRST = 100 };
    builder *b = build_single();
    uint64_t t = 2000;
    for (uint32_t i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "span %u", i);
        build_name(b, FIRST + i, TARE_KIND_SPAN, name);
    }
    for (uint32_t i = 0; i < NAMES; i++) {
        for (uint32_t k = 0; k < CALLS; k++, t += 100) {
            BEGIN(FIRST + i, t);
            END(t + 2 * (k % 2) + 2); /* 1, 2, 1, 2, … ns */
        }
        build_seal(b);
    }
    build_end(b, t);
    tare__figures *figures = figures_of(b);
    const tare__figure *first = find(figures, "span:span 0"), *last = find(figures, "span:span 1059");
    assert_int_equal(first->n_samples, 1000);
    assert_int_equal(first->each, 1);
    assert_int_equal(last->n, CALLS);
    assert_true(last->n_samples <= 32 && last->n_samples > 10);
    assert_int_equal(last->each & (last->each - 1), 0);
    assert_true(last->n_samples * last->each <= CALLS && (last->n_samples + 1) * last->each > CALLS);
    for (size_t i = 0; i < last->n_samples; i++)
        NEAR(last->samples[i], 1.5);
    tare__figures_free(figures);
    builder_free(b);
}

static void lists_keep_to_their_limit(void **state)
{
    (void)state;
    static double values[2501];
    for (int i = 0; i < 2501; i++)
        values[i] = i;
    tare__figures *figures = tare__figures_new("run");
    tare__figure long_one = {.name = "a", .per = "call", .value = NAN, .samples = values, .n_samples = 2501};
    assert_int_equal(tare__figures_add(figures, &long_one), 0);
    assert_int_equal(tare__figures_add(figures, &(tare__figure){.name = "a", .value = 5}), 0); /* left out */
    assert_int_equal(figures->n, 1);
    assert_int_equal(figures->rows[0].n_samples, 625);
    assert_int_equal(figures->rows[0].each, 4);
    NEAR(figures->rows[0].samples[624], 2497.5);
    NEAR(figures->rows[0].value, 1249.5);
    assert_string_equal(figures->rows[0].unit, "");
    tare__figures_free(figures);
}

/* ---- several runs ----------------------------------------------------------------------------- */
static void runs_become_samples(void **state)
{
    (void)state;
    tare__figures *runs[3], *joined;
    for (int i = 0; i < 3; i++) {
        runs[i] = tare__figures_new("run");
        runs[i]->host = "here";
        runs[i]->machine = i < 2 ? "one" : "two";
        tare__figure elapsed = {.name = "run.elapsed", .unit = "ns", .value = 10 + i, .total = 10 + i, .n = 1};
        tare__figure rare = {.name = "span:rare", .unit = "ns", .value = 7, .total = 70, .n = 10};
        assert_int_equal(tare__figures_add(runs[i], &elapsed), 0);
        assert_int_equal(i == 1 ? tare__figures_add(runs[i], &rare) : 0, 0);
    }
    assert_int_equal(tare__figures_join((const tare__figures *const *)runs, 3, &joined), 0);
    assert_int_equal(joined->runs, 3);
    assert_string_equal(joined->host, "here");
    assert_null(joined->machine);
    assert_int_equal(joined->n_notes, 1);
    const tare__figure *elapsed = find(joined, "run.elapsed");
    assert_string_equal(elapsed->per, "run");
    assert_int_equal(elapsed->n_samples, 3);
    NEAR(elapsed->value, 11);
    assert_int_equal(find(joined, "span:rare")->n_samples, 1);
    NEAR(find(joined, "span:rare")->total, 70);
    for (int i = 0; i < 3; i++)
        tare__figures_free(runs[i]);
    tare__figures_free(joined);
}

static void machines_differ_by_what_they_are(void **state)
{
    (void)state;
    tare__figures *a = tare__figures_new("run"), *b = tare__figures_new("run"), *c = tare__figures_new("run");
    assert_int_equal(tare__figures_set_machine(a, "host", "cpu", 4, 0x1p34 + 5e6, "6.1"), 0);
    assert_int_equal(tare__figures_set_machine(b, "host", "cpu", 4, 0x1p34, "6.1"), 0);
    assert_int_equal(tare__figures_set_machine(c, "host", "cpu", 8, 0x1p34, "6.1"), 0);
    assert_string_equal(a->machine, b->machine);
    assert_string_not_equal(a->machine, c->machine);
    assert_int_equal(tare__figures_set_machine(c, NULL, NULL, 0, NAN, NULL), 0);
    tare__figures_free(a);
    tare__figures_free(b);
    tare__figures_free(c);
}

/* ---- the file --------------------------------------------------------------------------------- */
static void expect_same(const tare__figures *a, const tare__figures *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->when_ns, b->when_ns);
    assert_string_equal(a->machine, b->machine);
    assert_string_equal(a->command, b->command);
    for (size_t i = 0; i < a->n; i++) {
        const tare__figure *left = &a->rows[i], *right = &b->rows[i];
        assert_string_equal(left->name, right->name);
        assert_string_equal(left->unit, right->unit);
        assert_int_equal(left->better, right->better);
        assert_int_equal(left->exact, right->exact);
        assert_true(left->value == right->value || (isnan(left->value) && isnan(right->value)));
        assert_true(left->total == right->total || (isnan(left->total) && isnan(right->total)));
        assert_int_equal(left->n, right->n);
        assert_int_equal(left->each, right->each);
        assert_int_equal(left->n_samples, right->n_samples);
        for (size_t k = 0; k < left->n_samples; k++)
            assert_true(left->samples[k] == right->samples[k]);
    }
}

static void a_baseline_reads_back(void **state)
{
    (void)state;
    builder *b = build_training(40);
    tare__figures *figures = figures_of(b), *again;
    tare__figure exact = {.name = "model.\"flops\"\n", .unit = "", .exact = true, .value = 4089184256, .total = NAN};
    assert_int_equal(tare__figures_add(figures, &exact), 0);
    for (int pretty = 0; pretty < 2; pretty++) {
        tare__text text = {0};
        tare__error error = {""};
        tare__put_document(&text, &tare__document_baseline, figures, pretty);
        assert_int_equal(tare__figures_read_json(text.data, text.length, "x", &again, &error), 0);
        expect_same(figures, again);
        tare__figures_free(again);
        tare__text report = {0}; /* the same inside of a model's report */
        tare__text_format(&report, "{\"host\": 7, \"figures\": %s, \"layers\": [{}]}", text.data);
        assert_int_equal(tare__figures_read_json(report.data, report.length, "x", &again, &error), 0);
        expect_same(figures, again);
        tare__figures_free(again);
        for (size_t cut = 0; cut < text.length - 1; cut += 7) /* a torn file is never a baseline */
            assert_int_equal(tare__figures_read_json(text.data, cut, "x", &again, &error), TARE_E_INPUT);
        tare__text_free(&report);
        tare__text_free(&text);
    }
    tare__figures_free(figures);
    builder_free(b);
}

static void bad_baselines_get_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
        int status;
    } wrong[] = {
        {"", "unexpected end of input", TARE_E_INPUT},
        {"[1]", "a baseline must be an object", TARE_E_INPUT},
        {"{}", "no figures in it", TARE_E_INPUT},
        {"{\"figures\": []}", "no figures in it", TARE_E_INPUT},
        {"{\"tare_baseline\": 1}", "no figures in it", TARE_E_INPUT},
        {"{\"tare_baseline\": 2, \"figures\": []}", "version 2", TARE_E_VERSION},
        {"{\"tare_baseline\": 0.5, \"figures\": []}", "is not 1", TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [7]}", "not an object", TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [{\"value\": 1}]}", "no name", TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [{\"name\": \"a\", \"value\": \"b\"}]}", "expected a number",
         TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [{\"name\": \"a\", \"value\": 1e999}]}", "too large",
         TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [{\"name\": \"a\", \"n\": -1}]}", "an integer of at least 0",
         TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [{\"name\": \"a\", \"better\": \"faster\"}]}", "lower, higher",
         TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [{\"name\": \"a\", \"samples\": [1, null]}]}", "not a number",
         TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [{\"name\": \"a\", \"each\": 3, \"samples\": [1]}]}",
         "power of two", TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [{\"name\": \"a\\u0000b\"}]}", "NUL", TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": {\"figures\": {}}}", "an array of figures", TARE_E_INPUT},
        {"{\"tare_baseline\": 1, \"figures\": [], \"figures\": []}", "appears twice", TARE_E_INPUT},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(wrong); i++) {
        tare__figures *figures;
        tare__error error = {""};
        int status = tare__figures_read_json(wrong[i].text, strlen(wrong[i].text), "base.json", &figures, &error);
        if (status != wrong[i].status || !strstr(error.text, wrong[i].sentence) || !strstr(error.text, "base.json"))
            fail_msg("%s: %d, %s", wrong[i].text, status, error.text);
        assert_null(figures);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inside_of_steps_a_sample_is_a_step),
        cmocka_unit_test(a_step_without_an_end_gives_no_sample),
        cmocka_unit_test(complete_spans_go_by_name),
        cmocka_unit_test(many_calls_become_means),
        cmocka_unit_test(memory_of_samples_is_bounded),
        cmocka_unit_test(lists_keep_to_their_limit),
        cmocka_unit_test(runs_become_samples),
        cmocka_unit_test(machines_differ_by_what_they_are),
        cmocka_unit_test(a_baseline_reads_back),
        cmocka_unit_test(bad_baselines_get_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
