/* ort_cost: multiply-accumulates of a node that ONNX Runtime ran, by the shapes in its profile: for nodes that the
 * runtime created itself, which are not in the model's file. Pure.
 * Must not know the model's file. */
#define _GNU_SOURCE
#include "ort_profile.h"

#include <string.h>

static bool elements(const tare__profile_end *end, uint64_t *n)
{
    if (end->rank > TARE__COUNT_OF(end->dims))
        return false;
    int64_t count = tare__ort_elements(end->dims, end->rank);
    *n = (uint64_t)count;
    return count >= 0;
}

/* Each element of the output is a sum over one filter. */
static bool convolution(const tare__profile_node *node, uint64_t *macs)
{
    uint64_t output, filter;
    if (node->inputs[1].rank < 3 || node->inputs[1].dims[0] <= 0 || !elements(&node->outputs[0], &output) ||
        !elements(&node->inputs[1], &filter))
        return false;
    return !__builtin_mul_overflow(output, filter / (uint64_t)node->inputs[1].dims[0], macs);
}

/* The length of the sums is the size of the first factor per row of the product. */
static bool product(const tare__profile_node *node, uint64_t *macs)
{
    uint64_t output, left;
    const tare__profile_end *out = &node->outputs[0], *a = &node->inputs[0];
    if (out->rank < 1 || a->rank < 1 || !elements(out, &output) || !elements(a, &left))
        return false;
    uint64_t columns = (uint64_t)out->dims[out->rank - 1];
    uint64_t rows = columns ? output / columns : 0;
    bool whole = rows && left % rows == 0 && strcmp(node->op, "MatMul") != 0;
    return !__builtin_mul_overflow(output, whole ? left / rows : (uint64_t)a->dims[a->rank - 1], macs);
}

static const struct {
    const char *op;
    size_t needs; /* inputs: packed weights are not listed any more */
    bool (*count)(const tare__profile_node *, uint64_t *);
} rules[] = {
    {"Conv", 2, convolution}, {"FusedConv", 2, convolution}, {"NhwcFusedConv", 2, convolution},
    {"MatMul", 1, product},   {"Gemm", 1, product},          {"FusedMatMul", 1, product},
    {"FusedGemm", 1, product}, {"MatMulInteger", 1, product},
};

bool tare__profile_macs(const tare__profile_node *node, uint64_t *macs)
{
    for (size_t i = 0; i < TARE__COUNT_OF(rules); i++)
        if (strcmp(rules[i].op, node->op) == 0)
            return node->n_inputs >= rules[i].needs && node->n_outputs > 0 && rules[i].count(node, macs);
    return false;
}

bool tare__profile_cast(const tare__profile_node *node)
{
    return strcmp(node->op, "Cast") == 0 && (strncmp(node->name, "InsertedPrecisionFreeCast", 25) == 0 ||
                                             strncmp(node->name, "InsertedCast", 12) == 0);
}
