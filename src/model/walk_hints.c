/* walk_hints: dimensions of inputs that the file leaves open, and that the weights they meet leave no choice about.
 * Owned by the calling thread.
 * Must not know what users say of a model. */
#include "rules.h"

/* Which dimension of the first input, from the end where negative, is which one of the second. */
static const struct {
    const char *op;
    int of_input, of_weight;
} meetings[] = {
    {"Conv", 1, 1},   {"ConvTranspose", 1, 0}, {"MatMul", -1, -2}, {"Gemm", 1, 0},
    {"LSTM", 2, 2},   {"GRU", 2, 2},           {"RNN", 2, 2},      {"BatchNormalization", 1, 0},
};

/* What a node says of a dimension of its first input; UNKNOWN: nothing. */
static int64_t told_by(tare__walk *walk, const tare__onnx_node *node, const tare__onnx_tensor *weight, int rank,
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

int tare__walk_hints(tare__walk *walk, const tare__onnx_graph *graph, const tare__slices *weights,
                     const tare__slices *inputs)
{
    for (size_t i = 0; i < graph->n_nodes && !walk->status; i++) {
        const tare__onnx_node *node = &graph->nodes[i];
        uint32_t input = node->n_inputs > 1 ? tare__slices_find(inputs, node->inputs[0]) : TARE__SLICES_NONE;
        uint32_t weight = input == TARE__SLICES_NONE ? input : tare__slices_find(weights, node->inputs[1]);
        if (weight == TARE__SLICES_NONE)
            continue;
        const tare__onnx_info *info = &graph->inputs[input];
        int at = 0;
        int64_t told = told_by(walk, node, &graph->initializers[weight], info->rank, &at);
        if (told == UNKNOWN)
            continue;
        if (info->dims[at].symbol.length)
            tare__walk_symbol(walk, info->dims[at].symbol, told, false);
        else if (info->dims[at].value == UNKNOWN)
            info->dims[at].value = told;
    }
    return walk->status;
}
