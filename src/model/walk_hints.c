/* walk_hints: open dimensions of inputs that follow from the weights they are combined with.
 * Owned by the calling thread.
 * Must not know the user's options. */
#include "rules.h"

/* Which dimension of the first input, from the end if negative, equals which one of the second. */
static const struct {
    const char *op;
    int of_input, of_weight;
} meetings[] = {
    {"Conv", 1, 1},   {"ConvTranspose", 1, 0}, {"MatMul", -1, -2}, {"Gemm", 1, 0},
    {"LSTM", 2, 2},   {"GRU", 2, 2},           {"RNN", 2, 2},      {"BatchNormalization", 1, 0},
};

/* What a node implies for a dimension of its first input; UNKNOWN: nothing. */
static int64_t reported_by(tare__walk *walk, const tare__onnx_node *node, const tare__onnx_tensor *weight, int rank,
                       int *at)
{
    tare__step step = {.walk = walk, .node = node};
    for (size_t i = 0; i < TARE__COUNT_OF(meetings); i++) {
        if (node->domain.length || !tare__slice_is(node->op, meetings[i].op))
            continue;
        int of = meetings[i].of_weight, from = meetings[i].of_input;
        if (tare__slice_is(node->op, "Gemm") && tare__attribute_int(&step, "transA", 0))
            return UNKNOWN;
        of = tare__slice_is(node->op, "Gemm") && tare__attribute_int(&step, "transB", 0) ? 1 : of;
        of = of < 0 ? of + weight->rank + (weight->rank == 1) : of;
        *at = from < 0 ? from + rank : from;
        int64_t groups = tare__slice_is(node->op, "Conv") ? tare__attribute_int(&step, "group", 1) : 1;
        bool sound = of >= 0 && of < weight->rank && *at >= 0 && *at < rank && groups > 0 && groups < INT32_MAX &&
                     weight->dims[of] > 0 && weight->dims[of] < INT32_MAX;
        return sound ? weight->dims[of] * groups : UNKNOWN;
    }
    return UNKNOWN;
}

/* Operators that preserve the shape of their first input, and often follow the model's inputs. */
static bool keeps_shape(const tare__onnx_node *node)
{
    static const char *const ops[] = {"Cast", "Identity", "QuantizeLinear", "DequantizeLinear"};
    return node->n_outputs && tare__slice_is_any(node->op, ops, TARE__COUNT_OF(ops));
}

static void take_hint(tare__walk *walk, const tare__onnx_info *info, const tare__onnx_node *node,
                      const tare__onnx_tensor *weight)
{
    int at = 0;
    int64_t reported = reported_by(walk, node, weight, info->rank, &at);
    if (reported == UNKNOWN)
        return;
    if (info->dims[at].symbol.length)
        tare__walk_symbol(walk, info->dims[at].symbol, reported, false);
    else if (info->dims[at].value == UNKNOWN)
        info->dims[at].value = reported;
}

int tare__walk_hints(tare__walk *walk, const tare__onnx_graph *graph, const tare__slices *weights, tare__slices *inputs)
{
    for (size_t i = 0; i < graph->n_nodes && !walk->status; i++) {
        const tare__onnx_node *node = &graph->nodes[i];
        uint32_t input = node->n_inputs ? tare__slices_find(inputs, node->inputs[0]) : TARE__SLICES_NONE;
        if (input == TARE__SLICES_NONE)
            continue;
        if (keeps_shape(node) && !tare__slices_add(inputs, node->outputs[0], input))
            return tare__walk_no_memory(walk);
        uint32_t weight = node->n_inputs > 1 ? tare__slices_find(weights, node->inputs[1]) : TARE__SLICES_NONE;
        if (weight != TARE__SLICES_NONE)
            take_hint(walk, &graph->inputs[input], node, &graph->initializers[weight]);
    }
    return walk->status;
}
