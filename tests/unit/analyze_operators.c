/* Tests of src/analyze/tables/operators.c, operators_modules.c and pairs.c: tables of operators and modules, and the
 * backward pass laid on the forward pass. One thread.
 * Must not know how rows are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

enum { FORWARD = 20, BACKWARD_PHASE, OPTIMIZER, NET, LAYER1, LAYER2, LINEAR, ADDMM, RELU, DIV, ADDMM_B, RELU_B, MM,
       UPDATE };
#define ENGINE "autograd::engine::evaluate_function: "

static builder *build_torch(void)
{
    static const struct {
        uint32_t id, kind;
        const char *text;
    } names[] = {
        {FORWARD, TARE_KIND_PHASE, "forward"},
        {BACKWARD_PHASE, TARE_KIND_PHASE, "backward"},
        {OPTIMIZER, TARE_KIND_PHASE, "optimizer"},
        {NET, TARE_KIND_MODULE, "Net"},
        {LAYER1, TARE_KIND_MODULE, "layers.0"},
        {LAYER2, TARE_KIND_MODULE, "layers.1"},
        {LINEAR, TARE_KIND_OPERATOR, "aten::linear"},
        {ADDMM, TARE_KIND_OPERATOR, "aten::addmm"},
        {RELU, TARE_KIND_OPERATOR, "aten::relu_"},
        {DIV, TARE_KIND_OPERATOR, "aten::div"},
        {ADDMM_B, TARE_KIND_OPERATOR, ENGINE "AddmmBackward0"},
        {RELU_B, TARE_KIND_OPERATOR, ENGINE "ReluBackward0"},
        {MM, TARE_KIND_OPERATOR, "aten::mm"},
        {UPDATE, TARE_KIND_OPERATOR, "Optimizer.step#SGD.step"},
    };
    builder *b = build_single();
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++)
        build_name(b, names[i].id, names[i].kind, names[i].text);
    return b;
}

/* A span of one name with nothing in it. */
static void one(builder *b, uint32_t name, uint64_t at, uint64_t lasts)
{
    BEGIN(name, at);
    END(at + lasts);
}

/* A linear layer: 100 ticks, 60 of them addmm; then an activation of 20. */
static void layer(builder *b, uint32_t module, uint64_t t)
{
    BEGIN(module, t);
    BEGIN(LINEAR, t + 10);
    one(b, ADDMM, t + 30, 60);
    END(t + 110);
    one(b, RELU, t + 120, 20);
    END(t + 150);
}

static void backward_node(builder *b, uint32_t name, uint64_t at, uint64_t lasts)
{
    BEGIN(name, at);
    one(b, MM, at + 5, 10);
    END(at + lasts);
}

/* A step of 1,000 ticks: two layers forward, and back in reverse order. */
static void train_step(builder *b, uint64_t t)
{
    BEGIN(STEP, t);
    BEGIN(FORWARD, t + 10);
    BEGIN(NET, t + 20);
    layer(b, LAYER1, t + 30);
    layer(b, LAYER2, t + 200);
    END(t + 360);
    END(t + 370);
    BEGIN(BACKWARD_PHASE, t + 380);
    backward_node(b, RELU_B, t + 390, 30);  /* of layers.1 */
    backward_node(b, ADDMM_B, t + 430, 40);
    backward_node(b, RELU_B, t + 480, 50);  /* of layers.0 */
    backward_node(b, ADDMM_B, t + 540, 60);
    END(t + 700);
    BEGIN(OPTIMIZER, t + 710);
    BEGIN(UPDATE, t + 720);
    one(b, ADDMM, t + 730, 10); /* no part of the graph */
    END(t + 800);
    END(t + 810);
    END(t + 1000);
}

static const tare__operator_row *row_of(const tare__analysis *a, const char *name, const char *phase)
{
    for (size_t i = 0; i < a->n_operators; i++)
        if (strcmp(a->operators[i].name, name) == 0 && (!phase || strcmp(a->operators[i].phase, phase) == 0))
            return &a->operators[i];
    fail_msg("no operator %s", name);
    return NULL;
}

static const tare__module_row *module_of(const tare__analysis *a, const char *path)
{
    for (size_t i = 0; i < a->n_modules; i++)
        if (strcmp(a->modules[i].path, path) == 0)
            return &a->modules[i];
    fail_msg("no module %s", path);
    return NULL;
}

static void operators_have_phase_direction_and_module(void **state)
{
    (void)state;
    builder *b = build_torch();
    train_step(b, 2000);
    train_step(b, 3000);
    build_seal(b);
    build_end(b, 5000);
    tare__analysis *a = analyze(b);
    const tare__operator_row *addmm = row_of(a, "aten::addmm", "forward");
    assert_int_equal(addmm->calls, 4);
    assert_int_equal(addmm->direction, TARE__FORWARD);
    assert_int_equal(addmm->modules, 2);
    assert_null(addmm->module);
    NEAR(addmm->total_ns, 4 * 30);
    NEAR(addmm->self_ns, 4 * 30);
    NEAR(addmm->each.mean_ns, 30);
    NEAR(addmm->per_step_ns, 60);
    NEAR(addmm->step_share, 60 / 500.0);
    NEAR(row_of(a, "aten::linear", NULL)->self_ns, 4 * 20);
    assert_int_equal(row_of(a, "aten::addmm", "optimizer")->calls, 2);
    assert_int_equal(row_of(a, "aten::addmm", "optimizer")->direction, TARE__NO_DIRECTION);
    assert_int_equal(row_of(a, "aten::mm", NULL)->direction, TARE__BACKWARD);
    double share = 0;
    for (size_t i = 0; i < a->n_operators; i++)
        share += a->operators[i].share;
    NEAR(share, 1);
    done(b, a);
}

static void modules_are_a_tree(void **state)
{
    (void)state;
    builder *b = build_torch();
    train_step(b, 2000);
    train_step(b, 3000);
    build_seal(b);
    build_end(b, 5000);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_modules, 3);
    assert_string_equal(a->modules[0].path, "Net");
    assert_int_equal(a->modules[0].n_rows, 2);
    assert_int_equal(a->modules[1].parent, 0);
    assert_int_equal(a->modules[1].depth, 1);
    NEAR(a->modules[0].total_ns, 2 * 170);
    NEAR(a->modules[0].self_ns, 2 * (170 - 150));
    const tare__module_row *layer1 = module_of(a, "layers.0");
    NEAR(layer1->total_ns, 2 * 75);
    NEAR(layer1->operators_ns, 2 * 60);
    assert_int_equal(layer1->calls, 2);
    assert_int_equal(layer1->n_operators, 5);
    assert_string_equal(a->module_operators[layer1->first_operator].name, "aten::linear");
    NEAR(a->module_operators[layer1->first_operator].total_ns, 2 * 50);
    done(b, a);
}

static void the_backward_pass_finds_its_modules(void **state)
{
    (void)state;
    builder *b = build_torch();
    train_step(b, 2000);
    train_step(b, 3000);
    build_seal(b);
    build_end(b, 5000);
    tare__analysis *a = analyze(b);
    const tare__operator_row *node = row_of(a, ENGINE "AddmmBackward0", NULL);
    assert_int_equal(node->paired, 4);
    assert_string_equal(node->pair, "aten::addmm");
    assert_null(node->unpaired);
    assert_int_equal(node->modules, 2);
    NEAR(node->pair_total_ns, 4 * 30);
    assert_string_equal(row_of(a, ENGINE "ReluBackward0", NULL)->pair, "aten::relu_");
    assert_string_equal(row_of(a, "aten::addmm", "forward")->pair, ENGINE "AddmmBackward0");
    NEAR(row_of(a, "aten::addmm", "forward")->pair_total_ns, 2 * 50);
    NEAR(module_of(a, "layers.1")->backward_ns, 2 * (15 + 20)); /* the layer that ran last comes first */
    NEAR(module_of(a, "layers.0")->backward_ns, 2 * (25 + 30));
    NEAR(module_of(a, "Net")->backward_ns, 2 * (35 + 55));
    assert_int_equal(module_of(a, "Net")->backward_calls, 8);
    done(b, a);
}

/* The first layer asked for no gradient: what the order leaves open stays open, the rest is known. */
static void what_has_no_node_is_skipped(void **state)
{
    (void)state;
    builder *b = build_torch();
    BEGIN(NET, 2000);
    layer(b, LAYER1, 2010);
    layer(b, LAYER2, 2200);
    END(2400);
    backward_node(b, RELU_B, 2500, 30);
    backward_node(b, ADDMM_B, 2600, 40);
    backward_node(b, RELU_B, 2700, 50);
    build_seal(b);
    build_end(b, 5000);
    tare__analysis *a = analyze(b);
    const tare__operator_row *addmm = row_of(a, ENGINE "AddmmBackward0", NULL);
    assert_int_equal(addmm->paired, 1); /* between two activations there is but one */
    assert_string_equal(addmm->module, "layers.1");
    assert_int_equal(row_of(a, ENGINE "ReluBackward0", NULL)->paired, 2);
    assert_int_equal(module_of(a, "layers.0")->backward_calls, 1);
    done(b, a);

    b = build_torch();
    BEGIN(NET, 2000);
    layer(b, LAYER1, 2010);
    layer(b, LAYER2, 2200);
    END(2400);
    backward_node(b, ADDMM_B, 2600, 40); /* of either layer */
    build_seal(b);
    build_end(b, 5000);
    a = analyze(b);
    addmm = row_of(a, ENGINE "AddmmBackward0", NULL);
    assert_int_equal(addmm->paired, 0);
    assert_null(addmm->pair);
    assert_true(isnan(addmm->pair_total_ns));
    assert_string_equal(addmm->unpaired, "1 of its calls may belong to more than one forward call");
    assert_true(isnan(module_of(a, "layers.0")->backward_ns));
    done(b, a);
}

/* Nodes that ran in another order: names with as many calls in both passes are still pairs. */
static void another_order(void **state)
{
    (void)state;
    builder *b = build_torch();
    layer(b, LAYER1, 2000);
    backward_node(b, ADDMM_B, 2500, 40);
    backward_node(b, RELU_B, 2600, 30);
    backward_node(b, RELU_B, 2700, 30);
    build_seal(b);
    build_end(b, 5000);
    tare__analysis *a = analyze(b);
    assert_int_equal(row_of(a, ENGINE "AddmmBackward0", NULL)->paired, 1);
    const tare__operator_row *relu = row_of(a, ENGINE "ReluBackward0", NULL);
    assert_int_equal(relu->paired, 0);
    assert_non_null(
        strstr(relu->unpaired, "did not run in the reverse order of the forward pass: 2 calls of it for 1"));
    done(b, a);
}

/* The backward pass of GPUs has a thread of its own. */
static void a_backward_pass_on_another_thread(void **state)
{
    (void)state;
    builder *b = build_torch();
    build_stream(b, 2, 1, 78, "autograd");
    layer(b, LAYER1, 2000);
    layer(b, LAYER1, 3000);
    build_seal(b);
    b->stream = 2;
    backward_node(b, RELU_B, 2300, 30);
    backward_node(b, ADDMM_B, 2400, 40);
    backward_node(b, RELU_B, 3300, 30);
    backward_node(b, ADDMM_B, 3400, 40);
    build_seal(b);
    build_end(b, 5000);
    tare__analysis *a = analyze(b);
    assert_int_equal(row_of(a, ENGINE "AddmmBackward0", NULL)->paired, 2);
    NEAR(module_of(a, "layers.0")->backward_ns, 2 * 35);
    done(b, a);
}

static void an_operator_that_calls_itself(void **state)
{
    (void)state;
    builder *b = build_torch();
    BEGIN(DIV, 2000); /* with a number: does nothing but call itself with a tensor */
    one(b, DIV, 2010, 40);
    END(2100);
    build_seal(b);
    build_end(b, 5000);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_operators, 1);
    assert_int_equal(a->operators[0].calls, 1);
    NEAR(a->operators[0].total_ns, 50);
    NEAR(a->operators[0].self_ns, 50);
    NEAR(a->operators[0].each.max_ns, 50);
    done(b, a);
}

static void a_trace_without_operators(void **state)
{
    (void)state;
    builder *b = build_single();
    one(b, OUTER, 2000, 100);
    build_seal(b);
    build_end(b, 5000);
    tare__analysis *a = analyze(b);
    assert_int_equal(a->n_operators, 0);
    assert_int_equal(a->n_modules, 0);
    assert_int_equal(a->n_module_operators, 0);
    done(b, a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_have_phase_direction_and_module),
        cmocka_unit_test(modules_are_a_tree),
        cmocka_unit_test(the_backward_pass_finds_its_modules),
        cmocka_unit_test(what_has_no_node_is_skipped),
        cmocka_unit_test(another_order),
        cmocka_unit_test(a_backward_pass_on_another_thread),
        cmocka_unit_test(an_operator_that_calls_itself),
        cmocka_unit_test(a_trace_without_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
