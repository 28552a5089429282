/* rules_quantized: operators on quantized tensors whose scales and zero points are inputs.
 * Pure but for the step; any thread.
 * Must not know what calls them. */
#include "rules.h"

#define RANK_MAX ((int)TARE__MODEL_RANK_MAX)

static void shape_conv(tare__step *step)
{
    tare__shape_conv_of(step, input(step, 0), input(step, 3), type_of(input(step, 7)));
}

static void cost_conv(tare__step *step)
{
    tare__cost_conv_of(step, input(step, 3));
    if (input(step, 8))
        ADD_OTHER(step, tare__elements(output(step, 0)));
}

static void shape_matmul(tare__step *step)
{
    tare__matmul_shape(step, input(step, 0), input(step, 3), false, false, type_of(input(step, 7)));
}

static void cost_matmul(tare__step *step)
{
    tare__cost_matmul_of(step, input(step, 0), false);
}

static void shape_gemm(tare__step *step)
{
    int type = input(step, 8) ? type_of(input(step, 8)) : TARE__ONNX_FLOAT;
    tare__matmul_shape(step, input(step, 0), input(step, 3), tare__attribute_int(step, "transA", 0),
                       tare__attribute_int(step, "transB", 0), type);
}

static void cost_gemm(tare__step *step)
{
    tare__cost_matmul_of(step, input(step, 0), tare__attribute_int(step, "transA", 0));
}

/* Quantized at run time, and back. */
static void shape_to_float(tare__step *step)
{
    tare__matmul_shape(step, input(step, 0), input(step, 1), false, false, TARE__ONNX_FLOAT);
}

/* A, scale, zero point, B, scale, zero point, and those of the output. */
static void shape_two(tare__step *step)
{
    const tare__value *a = input(step, 0), *b = input(step, 3);
    int64_t dims[RANK_MAX] = {0};
    tare__set_type(step, 0, type_of(a));
    if (!is_ranked(a) || !is_ranked(b))
        return;
    int rank = a->rank > b->rank ? a->rank : b->rank;
    for (int d = 1; d <= rank; d++) {
        if (!tare__broadcast_dim(d <= a->rank ? dim(a, -d) : 1, d <= b->rank ? dim(b, -d) : 1, &dims[rank - d])) {
            tare__misfit(step);
            return;
        }
    }
    tare__set(step, 0, a->type, rank, dims);
}

static void shape_where(tare__step *step)
{
    tare__set_like(step, 0, input(step, 1));
}

static void shape_concat(tare__step *step)
{
    tare__shape_concat_of(step, 2, 3, type_of(input(step, 2)));
}

static void shape_reduce(tare__step *step)
{
    size_t n = step->n_in;
    step->n_in = n > 1 ? 1 : n; /* scales follow, not axes */
    tare__shape_reduce(step);
    step->n_in = n;
}

static void shape_gather_blocks(tare__step *step)
{
    tare__value *data = input(step, 0);
    int64_t bits = tare__attribute_int(step, "bits", 4), last = dim(data, -1);
    tare__shape_gather(step);
    tare__set_type(step, 0, type_of(input(step, 2)));
    /* Bytes contain several elements; four-bit types are explicit. */
    tare__value *out = output(step, 0);
    bool packed = type_of(data) == TARE__ONNX_UINT8 && bits >= 1 && bits < 8;
    if (packed && is_ranked(out) && out->rank > 0 && last >= 0 && last < INT32_MAX)
        out->dims[out->rank - 1] = last * 8 / bits;
}

#define MS "com.microsoft:"
#define ONE(name) {MS name, tare__shape_like_first, tare__cost_output, 1}

const tare__rule tare__rules_quantized[] = {
    {"QLinearConv", shape_conv, cost_conv, 0},
    {"QLinearMatMul", shape_matmul, cost_matmul, 0},
    {MS "QGemm", shape_gemm, cost_gemm, 0},
    {MS "MatMulIntegerToFloat", shape_to_float, cost_matmul, 0},
    {MS "DynamicQuantizeMatMul", shape_to_float, cost_matmul, 0},
    {MS "QLinearAdd", shape_two, tare__cost_output, 1},
    {MS "QLinearMul", shape_two, tare__cost_output, 1},
    {MS "QLinearWhere", shape_where, tare__cost_output, 1},
    {MS "QLinearConcat", shape_concat, tare__cost_none, 0},
    {MS "QLinearReduceMean", shape_reduce, tare__cost_input, 1},
    {MS "QLinearAveragePool", tare__shape_pool, tare__cost_pool, 0},
    {MS "QLinearGlobalAveragePool", tare__shape_global_pool, tare__cost_input, 1},
    {MS "GatherBlockQuantized", shape_gather_blocks, tare__cost_output, 2},
    ONE("QLinearSigmoid"),
    ONE("QLinearLeakyRelu"),
    {MS "QLinearSoftmax", tare__shape_like_first, tare__cost_output, 5},
    {NULL, NULL, NULL, 0},
};
