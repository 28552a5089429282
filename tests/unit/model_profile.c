/* model_profile: the runtime's profile read into nodes, run by run; cut anywhere, and without memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "model/ort_profile.h"
#include "tare.h"

static tare__arena *arena;
static tare__error error;
static tare__profile profile;

static int read_text(const char *text, size_t length)
{
    tare__memory_source from = {text, length};
    tare__arena_free(arena);
    arena = tare__arena_new();
    return arena ? tare__profile_read_from(tare__memory_read, &from, arena, &profile, &error) : TARE_E_MEMORY;
}

static int drop(void **state)
{
    (void)state;
    tare__arena_free(arena);
    arena = NULL;
    return 0;
}

#define RUN "{\"cat\" : \"Session\",\"dur\" :99,\"ts\" :1,\"name\" :\"model_run\",\"args\" : {}}"
#define NODE(index, name, op, us, in, out)                                                                       \
    "{\"cat\" : \"Node\",\"pid\" :7,\"dur\" :" us ",\"ts\" :1,\"ph\" : \"X\",\"name\" :\"" name "_kernel_time\", " \
    "\"args\" : {\"op_name\" : \"" op "\",\"provider\" : \"CPUExecutionProvider\",\"node_index\" : \"" index "\","   \
    "\"input_type_shape\" : [" in "],\"output_type_shape\" : [" out "],\"output_size\" : \"100\","                  \
    "\"parameter_size\" : \"20\",\"activation_size\" : \"3\",\"thread_scheduling_stats\" : {\"a\": [1, {\"b\": 2}]}}}"
#define CONV NODE("0", "conv", "Conv", "50", "{\"float\":[1,3,8,8]},{\"float\":[4,3,3,3]}", "{\"float\":[1,4,8,8]}")
#define BODY NODE("1", "body", "MatMul", "5", "{\"float\":[2,6]},{\"float\":[6,4]}", "{\"float\":[2,4]}")
#define CAST NODE("2", "InsertedPrecisionFreeCast_x", "Cast", "1", "{\"float16\":[2]}", "{\"float\":[2]}")
#define SLOW NODE("0", "conv", "Conv", "9000", "{\"float\":[1,3,8,8]},{\"float\":[4,3,3,3]}", "{\"float\":[1,4,8,8]}")

/* A node inside of a loop runs three times; the first run of all is not like the others. */
static const char whole[] =
    "[{\"cat\" : \"Session\",\"name\" :\"model_loading_uri\",\"dur\" :1,\"args\" : {}}," SLOW "," BODY "," RUN "," CONV
    ",{\"cat\" : \"Node\",\"name\" :\"conv_fence_before\",\"dur\" :7000}," BODY "," BODY "," BODY "," CAST "," RUN
    "," CONV "," BODY "," BODY "," BODY "," CAST "," RUN "]";

static void nodes_and_their_runs(void **state)
{
    (void)state;
    assert_int_equal(read_text(whole, sizeof whole - 1), 0);
    assert_int_equal(profile.runs, 2);
    assert_int_equal(profile.n_nodes, 3);
    const tare__profile_node *conv = profile.nodes[0], *body = profile.nodes[1], *cast = profile.nodes[2];
    assert_string_equal(conv->name, "conv");
    assert_string_equal(conv->op, "Conv");
    assert_true(conv->run_ns[0] == 50000 && conv->run_ns[1] == 50000); /* neither the first run nor a fence */
    assert_true(conv->bytes == 123);
    assert_int_equal(conv->calls, 2);
    assert_int_equal(body->calls, 6);
    assert_true(body->run_ns[0] == 15000);
    assert_string_equal(conv->inputs[0].type, "float32");
    assert_int_equal(conv->inputs[1].dims[1], 3);
    assert_true(tare__profile_cast(cast));
    assert_false(tare__profile_cast(body));
    assert_string_equal(cast->inputs[0].type, "float16");
}

#define AT(index, name, op, from, us)                                        \
    "{\"cat\" : \"Node\",\"dur\" :" us ",\"ts\" :" from ",\"name\" :\"" name \
    "_kernel_time\",\"args\" : {\"op_name\" : "                              \
    "\"" op "\",\"node_index\" : \"" index "\"}}"

/* A loop with a branch in it, 100 µs: the branch 40 with a product of 30, and another product of 10. */
static void nodes_inside_count_once(void **state)
{
    (void)state;
    static const char text[] =
        "[" AT("0", "before", "Relu", "10", "5") "," AT("0", "inner", "MatMul", "25", "30") "," AT(
            "1", "branch", "If", "22", "40") "," AT("2", "other", "MatMul", "70",
                                                    "10") "," AT("1", "loop", "Loop", "20",
                                                                 "100") "," AT("2", "after", "Relu", "130", "3") "," RUN
                                                                                                                 "]";
    static const double own_us[] = {5, 30, 10, 10, 50, 3};
    double sum = 0;
    assert_int_equal(read_text(text, sizeof text - 1), 0);
    assert_int_equal(profile.n_nodes, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_true(fabs(profile.nodes[i]->run_ns[0] - 1e3 * own_us[i]) < 1e-6);
        sum += profile.nodes[i]->run_ns[0];
    }
    assert_true(fabs(sum - 108e3) < 1e-6);
}

static void multiplications_by_shapes(void **state)
{
    (void)state;
    uint64_t macs = 0;
    assert_int_equal(read_text(whole, sizeof whole - 1), 0);
    assert_true(tare__profile_macs(profile.nodes[0], &macs));
    assert_int_equal(macs, 4 * 8 * 8 * 3 * 3 * 3);
    assert_true(tare__profile_macs(profile.nodes[1], &macs));
    assert_int_equal(macs, 2 * 4 * 6);
    assert_false(tare__profile_macs(profile.nodes[2], &macs));
    /* A factor that is turned, and weights of which nothing is told. */
    tare__profile_node gemm = {.op = "Gemm", .n_inputs = 1, .n_outputs = 1,
                               .inputs = {{"float32", 2, {6, 5}}}, .outputs = {{"float32", 2, {5, 7}}}};
    assert_true(tare__profile_macs(&gemm, &macs));
    assert_int_equal(macs, 5 * 7 * 6);
    gemm.outputs[0].dims[0] = -1;
    assert_false(tare__profile_macs(&gemm, &macs));
    tare__profile_node conv = {.op = "Conv", .n_inputs = 1, .n_outputs = 1, .outputs = {{"float32", 4, {1, 2, 3, 4}}}};
    assert_false(tare__profile_macs(&conv, &macs));
}

static void cut_anywhere(void **state)
{
    (void)state;
    for (size_t length = 0; length + 1 < sizeof whole - 1; length++) {
        assert_int_equal(read_text(whole, length), TARE_E_INPUT);
        assert_true(error.text[0] != '\0');
    }
}

static void what_is_no_profile(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "{}",
                                        "[]",
                                        "[1, 2, [3]]",
                                        "[{\"cat\": 5, \"name\": [], \"dur\": {}, \"args\": 3}]",
                                        "[{\"args\": {\"input_type_shape\": {\"a\": 1}, \"op_name\": null}}]",
                                        "[" RUN "]"};
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++)
        assert_int_equal(read_text(texts[i], strlen(texts[i])), TARE_E_INPUT);
    /* One run is better than none. */
    static const char once[] = "[" CONV "," RUN "]";
    assert_int_equal(read_text(once, sizeof once - 1), 0);
    assert_int_equal(profile.runs, 1);
    assert_true(profile.nodes[0]->run_ns[0] == 50000 && profile.nodes[0]->calls == 1);
}

static void without_memory(void **state)
{
    (void)state;
    int status = TARE_E_MEMORY;
    for (long allowed = 0; status; allowed++) {
        assert_true(allowed < 100);
        drop(NULL);
        allocations_left = allowed;
        status = read_text(whole, sizeof whole - 1);
        allocations_left = -1;
        assert_true(status == 0 || status == TARE_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_and_their_runs),
        cmocka_unit_test(nodes_inside_count_once),
        cmocka_unit_test(multiplications_by_shapes),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(what_is_no_profile),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, drop);
}
