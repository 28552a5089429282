/* rules_elementwise: operators that compute each element of the output from elements at the same position.
 * Pure but for the step; any thread.
 * Must not know what calls them. */
#include "rules.h"

void tare__shape_like_first(tare__step *step)
{
    tare__set_like(step, 0, input(step, 0));
}

void tare__shape_broadcast(tare__step *step)
{
    int rank;
    int64_t dims[TARE__MODEL_RANK_MAX] = {0};
    bool known = tare__broadcast(step, 0, &rank, dims);
    tare__set(step, 0, type_of(input(step, 0)), known ? rank : UNKNOWN, dims);
}

static void shape_compare(tare__step *step)
{
    tare__shape_broadcast(step);
    tare__set_type(step, 0, TARE__ONNX_BOOL);
}

static void shape_where(tare__step *step)
{
    tare__shape_broadcast(step);
    tare__set_type(step, 0, type_of(input(step, 1)));
}

static void shape_test(tare__step *step)
{
    tare__shape_like_first(step);
    tare__set_type(step, 0, TARE__ONNX_BOOL);
}

static void shape_cast(tare__step *step)
{
    tare__shape_like_first(step);
    tare__set_type(step, 0, tare__attribute_type(step, "to", 0));
}

static void shape_cast_like(tare__step *step)
{
    tare__shape_like_first(step);
    tare__set_type(step, 0, type_of(input(step, 1)));
}

static void shape_random_like(tare__step *step)
{
    tare__shape_like_first(step);
    tare__set_type(step, 0, tare__attribute_type(step, "dtype", type_of(input(step, 0))));
}

static void shape_dropout(tare__step *step)
{
    tare__shape_like_first(step);
    tare__set_view(step, 0, input(step, 0)); /* dropout has no effect at inference */
    tare__set_like(step, 1, input(step, 0));
    tare__set_type(step, 1, TARE__ONNX_BOOL);
}

/* ---- normalizations ------------------------------------------------------------------------------------------ */
static void shape_batch_normalization(tare__step *step)
{
    tare__shape_like_first(step);
    for (size_t i = 1; i < step->n_out; i++)
        tare__set_like(step, i, input(step, 3));
}

/* Mean and inverse deviation of the normalized input, with 1 in place of its dimensions. */
static void set_moments(tare__step *step, size_t from, int64_t axis)
{
    const tare__value *x = input(step, 0);
    int64_t dims[TARE__MODEL_RANK_MAX] = {0};
    int at = is_ranked(x) ? axis_of(axis, x->rank) : UNKNOWN;
    for (int i = 0; at >= 0 && i < x->rank; i++)
        dims[i] = i < at ? x->dims[i] : 1;
    for (size_t i = from; i < from + 2 && i < step->n_out; i++)
        tare__set(step, i, TARE__ONNX_FLOAT, at >= 0 ? x->rank : UNKNOWN, dims);
}

static void shape_layer_normalization(tare__step *step)
{
    tare__shape_like_first(step);
    set_moments(step, 1, tare__attribute_int(step, "axis", -1));
}

/* The sum that is normalized is an output, too. */
static void shape_skip_normalization(tare__step *step)
{
    tare__shape_like_first(step);
    set_moments(step, 1, -1);
    tare__set_like(step, 3, input(step, 0));
}

static void shape_embed_normalization(tare__step *step)
{
    const tare__value *ids = input(step, 0), *words = input(step, 2);
    int64_t sample = dim(ids, 0), length = dim(ids, 1), width = dim(words, 1);
    SET(step, 0, type_of(words), sample, length, width);
    SET(step, 1, TARE__ONNX_INT32, sample);
    SET(step, 2, type_of(words), sample, length, width);
}

static void shape_dynamic_quantize(tare__step *step)
{
    tare__shape_like_first(step);
    tare__set_type(step, 0, TARE__ONNX_UINT8);
    tare__set(step, 1, TARE__ONNX_FLOAT, 0, NULL);
    tare__set(step, 2, TARE__ONNX_UINT8, 0, NULL);
}

static void shape_quantize(tare__step *step)
{
    tare__shape_like_first(step);
    int type = tare__attribute_type(step, "output_dtype", 0);
    tare__set_type(step, 0, input(step, 2) ? type_of(input(step, 2)) : type ? type : TARE__ONNX_UINT8);
}

static void shape_dequantize(tare__step *step)
{
    tare__shape_like_first(step);
    int type = tare__attribute_type(step, "output_dtype", 0);
    tare__set_type(step, 0, type ? type : type_of(input(step, 1)));
}

/* Half of the last dimension gates the other half. */
static void shape_half(tare__step *step)
{
    const tare__value *x = input(step, 0);
    tare__set_axis(step, 0, type_of(x), x, is_ranked(x) ? x->rank - 1 : UNKNOWN,
                   dim(x, -1) < 0 ? UNKNOWN : dim(x, -1) / 2);
}

#define LIKE(name, factor)      {name, tare__shape_like_first, tare__cost_output, factor}
#define BROADCAST(name, factor) {name, tare__shape_broadcast, tare__cost_output, factor}
#define COMPARE(name)           {name, shape_compare, tare__cost_output, 1}
#define MS "com.microsoft:"

const tare__rule tare__rules_elementwise[] = {
    LIKE("Abs", 1), LIKE("Acos", 1), LIKE("Acosh", 1), LIKE("Asin", 1), LIKE("Asinh", 1), LIKE("Atan", 1),
    LIKE("Atanh", 1), LIKE("BitwiseNot", 1), LIKE("Ceil", 1), LIKE("Celu", 1), LIKE("Clip", 1), LIKE("Cos", 1),
    LIKE("Cosh", 1), LIKE("Elu", 1), LIKE("Erf", 1), LIKE("Exp", 1), LIKE("Floor", 1), LIKE("Gelu", 1),
    LIKE("HardSigmoid", 1), LIKE("HardSwish", 1), LIKE("LeakyRelu", 1), LIKE("Log", 1), LIKE("Mish", 1),
    LIKE("Neg", 1), LIKE("Reciprocal", 1), LIKE("Relu", 1), LIKE("Round", 1), LIKE("Selu", 1),
    LIKE("Shrink", 1), LIKE("Sigmoid", 1), LIKE("Sign", 1), LIKE("Sin", 1), LIKE("Sinh", 1),
    LIKE("Softplus", 1), LIKE("Softsign", 1), LIKE("Sqrt", 1), LIKE("Swish", 1), LIKE("Tan", 1),
    LIKE("Tanh", 1), LIKE("ThresholdedRelu", 1), LIKE("CumSum", 1), LIKE("CumProd", 1),
    BROADCAST("Add", 1), BROADCAST("Sub", 1), BROADCAST("Mul", 1), BROADCAST("Div", 1), BROADCAST("Mod", 1),
    BROADCAST("Pow", 1), BROADCAST("PRelu", 1), BROADCAST("Max", 1), BROADCAST("Min", 1), BROADCAST("Sum", 1),
    BROADCAST("Mean", 1), BROADCAST("BitShift", 1), BROADCAST("BitwiseAnd", 1), BROADCAST("BitwiseOr", 1),
    BROADCAST("BitwiseXor", 1),
    COMPARE("And"), COMPARE("Or"), COMPARE("Xor"), COMPARE("Equal"), COMPARE("Greater"),
    COMPARE("GreaterOrEqual"), COMPARE("Less"), COMPARE("LessOrEqual"),
    {"Where", shape_where, tare__cost_output, 1},
    {"IsInf", shape_test, tare__cost_output, 1},
    {"IsNaN", shape_test, tare__cost_output, 1},
    {"Not", shape_test, tare__cost_output, 1},
    {"Cast", shape_cast, tare__cost_none, 0},
    {"CastLike", shape_cast_like, tare__cost_none, 0},
    {"RandomNormalLike", shape_random_like, tare__cost_output, 1},
    {"RandomUniformLike", shape_random_like, tare__cost_output, 1},
    {"Bernoulli", shape_random_like, tare__cost_output, 1},
    {"EyeLike", shape_random_like, tare__cost_none, 0},
    {"Dropout", shape_dropout, tare__cost_none, 0},
    LIKE("Softmax", 5), LIKE("LogSoftmax", 5), LIKE("Hardmax", 1),
    {"BatchNormalization", shape_batch_normalization, tare__cost_output, 2},
    LIKE("InstanceNormalization", 7), LIKE("GroupNormalization", 7), LIKE("MeanVarianceNormalization", 5),
    LIKE("LpNormalization", 3), LIKE("LRN", 5), LIKE("RMSNormalization", 4),
    {"LayerNormalization", shape_layer_normalization, tare__cost_output, 7},
    {"SimplifiedLayerNormalization", shape_layer_normalization, tare__cost_output, 4},
    {MS "SimplifiedLayerNormalization", shape_layer_normalization, tare__cost_output, 4},
    {MS "SkipLayerNormalization", shape_skip_normalization, tare__cost_output, 8},
    {MS "SkipSimplifiedLayerNormalization", shape_skip_normalization, tare__cost_output, 5},
    {MS "EmbedLayerNormalization", shape_embed_normalization, tare__cost_output, 9},
    LIKE(MS "GroupNorm", 7), LIKE(MS "Gelu", 1), LIKE(MS "FastGelu", 1), LIKE(MS "BiasGelu", 2),
    LIKE(MS "QuickGelu", 1), LIKE(MS "BiasAdd", 2), LIKE(MS "BiasSoftmax", 6), LIKE(MS "Trilu", 1),
    {MS "BiasSplitGelu", shape_half, tare__cost_output, 3},
    {MS "BiasDropout", shape_dropout, tare__cost_output, 1},
    {"QuantizeLinear", shape_quantize, tare__cost_output, 2},
    {MS "QuantizeLinear", shape_quantize, tare__cost_output, 2},
    {"DequantizeLinear", shape_dequantize, tare__cost_output, 2},
    {MS "DequantizeLinear", shape_dequantize, tare__cost_output, 2},
    {"DynamicQuantizeLinear", shape_dynamic_quantize, tare__cost_output, 2},
    {NULL, NULL, NULL, 0},
};
