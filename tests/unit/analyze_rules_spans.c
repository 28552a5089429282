/* Tests of src/analyze/findings/rules_spans.c, the rules on spans, over tables made by hand: each fires where
 * it should, and keeps silent where it should not and where the figures are absent.
 * One thread. Must not know how tables are made from a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

static void an_operation_that_takes_most(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "main", TARE_KIND_SPAN, TARE__NO_ROW, 10, 1);
    add_span(w, "tokenize", TARE_KIND_SPAN, 0, 6, 6);
    add_span(w, "score", TARE_KIND_SPAN, 0, 3, 3);
    evaluate(w);
    assert_int_equal(w->of.n_findings, 2);
    const tare__finding *first = &w->of.findings[0], *second = &w->of.findings[1];
    assert_string_equal(first->id, "operation");
    assert_int_equal(first->severity, TARE__INFO);
    assert_non_null(strstr(first->title, "tokenize"));
    ABOUT(first->gain, 0.6);
    assert_int_equal(second->severity, TARE__INFO);
    assert_non_null(strstr(second->title, "score"));
    world_free(w);
}

static void a_single_span_is_no_news(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "main", TARE_KIND_SPAN, TARE__NO_ROW, 10, 10);
    must_be_silent(w);
    add_span(w, "main", TARE_KIND_SPAN, 0, 9, 9);
    must_be_silent(w);
    world_free(w);
}

static void even_shares_are_no_news(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    world *w = world_new();
    for (size_t i = 0; i < 6; i++)
        add_span(w, names[i], TARE_KIND_SPAN, TARE__NO_ROW, 1, 1);
    must_be_silent(w);
    world_free(w);
}

static void spans_that_cover_little_of_the_run_are_no_news(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "a", TARE_KIND_SPAN, TARE__NO_ROW, 0.2, 0.2);
    add_span(w, "b", TARE_KIND_SPAN, TARE__NO_ROW, 0.1, 0.1);
    must_be_silent(w);
    world_free(w);
}

static void loading_in_and_between_steps(void **state)
{
    (void)state;
    static const char *const names[] = {"data_loading", "DataLoader", "next_batch", "train/load_batch",
                                        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++) {
        world *w = world_new();
        add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 6, 0.1);
        add_span(w, "compute", TARE_KIND_SPAN, 0, 5.9, 1);
        for (int part = 0; part < 5; part++)
            add_span(w, part & 1 ? "x" : part & 2 ? "y" : "z", TARE_KIND_SPAN, 1, 0.98, 0.98);
        add_span(w, names[i], TARE_KIND_SPAN, TARE__NO_ROW, 4, 4);
        evaluate(w);
        const tare__finding *finding = must_find(w, "data-loading");
        ABOUT(figure_of(finding, "share"), 0.4);
        ABOUT(finding->gain, 0.4);
        for (size_t f = 0; f < w->of.n_findings; f++) /* told once */
            assert_true(strcmp(w->of.findings[f].id, "operation") != 0 ||
                        !strstr(w->of.findings[f].title, names[i]));
        world_free(w);
    }
}

/* "data" is any span's name, but a phase's it is the loading. */
static void a_phase_called_data_is_loading(void **state)
{
    (void)state;
    static const uint32_t kinds[] = {TARE_KIND_PHASE, TARE_KIND_SPAN};
    for (size_t i = 0; i < TARE__COUNT_OF(kinds); i++) {
        world *w = world_new();
        add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 9, 0.1);
        add_span(w, "data", kinds[i], 0, 4, 4);
        evaluate(w);
        bool told = found(w, "data-loading") || found(w, "loader-bound"); /* the closer one, once */
        assert_int_equal(told, kinds[i] == TARE_KIND_PHASE);
        world_free(w);
    }
}

/* The GPU works on what earlier steps launched while the host loads: that work stays, however fast loading becomes. */
static void loading_beside_a_gpu(void **state)
{
    (void)state;
    static const double busy[] = {0.45, 0.77};
    for (size_t i = 0; i < TARE__COUNT_OF(busy); i++) {
        world *w = world_new();
        add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 9.5, 0.1);
        add_span(w, "load_batch", TARE_KIND_SPAN, 0, 8, 8);
        use_gpu(w);
        w->of.usage.gpu_busy_mean = busy[i];
        evaluate(w);
        if (busy[i] > 0.5)
            must_not_find(w, "data-loading");
        else
            ABOUT(must_find(w, "data-loading")->gain, 1 - busy[i]);
        world_free(w);
    }
}

/* A loader on a thread of its own, as long as the steps: hidden behind them already. */
static void hidden_loading_is_no_loss(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 9.5, 1);
    add_span(w, "load_batch", TARE_KIND_SPAN, TARE__NO_ROW, 9, 1);
    evaluate(w);
    must_not_find(w, "data-loading");
    world_free(w);
}

static void little_loading_is_no_news(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 9, 1);
    add_span(w, "load_batch", TARE_KIND_SPAN, 0, 2, 2);
    evaluate(w);
    must_not_find(w, "data-loading");
    world_free(w);
}

static void forward_and_backward(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 10, 0);
    add_span(w, "forward_pass", TARE_KIND_SPAN, 0, 5.5, 5.5);
    add_span(w, "backward_pass", TARE_KIND_SPAN, 0, 4.5, 4.5);
    evaluate(w);
    ABOUT(figure_of(must_find(w, "forward"), "share"), 0.55);
    ABOUT(figure_of(must_find(w, "backward"), "share"), 0.45);
    must_not_find(w, "operation");
    use_gpu(w); /* host time of asynchronous work is not its duration */
    evaluate(w);
    must_not_find(w, "forward");
    must_not_find(w, "backward");
    world_free(w);
    w = world_new();
    add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 10, 3);
    add_span(w, "forward", TARE_KIND_SPAN, 0, 3.5, 3.5);
    add_span(w, "backward", TARE_KIND_SPAN, 0, 3.5, 3.5);
    evaluate(w);
    must_not_find(w, "forward");
    must_not_find(w, "backward");
    world_free(w);
}

static void names_of_phases(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"Data Loading", "loading"}, {"next_batch", "loading"}, {"train/fwd", "forward"}, {"loss.backward", "backward"},
        {"workload", NULL},          {"feedforward", NULL},     {"data", NULL},           {"", NULL}};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++) {
        const char *phase = tare__phase_of_name(names[i][0], TARE_KIND_SPAN);
        assert_true(phase ? names[i][1] && strcmp(phase, names[i][1]) == 0 : !names[i][1]);
    }
    assert_string_equal(tare__phase_of_name("data", TARE_KIND_PHASE), "loading");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_that_takes_most),
        cmocka_unit_test(a_single_span_is_no_news),
        cmocka_unit_test(even_shares_are_no_news),
        cmocka_unit_test(spans_that_cover_little_of_the_run_are_no_news),
        cmocka_unit_test(loading_in_and_between_steps),
        cmocka_unit_test(a_phase_called_data_is_loading),
        cmocka_unit_test(loading_beside_a_gpu),
        cmocka_unit_test(hidden_loading_is_no_loss),
        cmocka_unit_test(little_loading_is_no_news),
        cmocka_unit_test(forward_and_backward),
        cmocka_unit_test(names_of_phases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
