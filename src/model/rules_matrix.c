/* rules_matrix: products of matrices, einsum, recurrent layers.
 * Pure but for the step; any thread.
 * Must not know what calls them. */
#include <ctype.h>

#include "rules.h"

#define RANK_MAX ((int)TARE__MODEL_RANK_MAX)

/* ---- MatMul: numpy's, with either side turned ------------------------------------------------------------------- */
bool tare__matmul_shape(tare__step *step, const tare__value *a, const tare__value *b, bool turn_a, bool turn_b,
                        int type)
{
    int64_t dims[RANK_MAX] = {0};
    tare__set_type(step, 0, type);
    if (!is_ranked(a) || !is_ranked(b))
        return false;
    if (a->rank == 0 || b->rank == 0) {
        tare__misfit(step);
        return false;
    }
    int rank_a = a->rank > 1 ? a->rank : 2, rank_b = b->rank > 1 ? b->rank : 2;
    int rank = rank_a > rank_b ? rank_a : rank_b, kept = 0;
    for (int i = 0; i < rank - 2; i++) {
        int at_a = a->rank - rank + i, at_b = b->rank - rank + i;
        if (!tare__broadcast_dim(at_a >= 0 && a->rank > 1 ? a->dims[at_a] : 1,
                                 at_b >= 0 && b->rank > 1 ? b->dims[at_b] : 1, &dims[kept++])) {
            tare__misfit(step);
            return false;
        }
    }
    int64_t inner_a = dim(a, turn_a && a->rank > 1 ? -2 : -1),
            inner_b = b->rank > 1 ? dim(b, turn_b ? -1 : -2) : dim(b, 0);
    if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b) {
        tare__misfit(step);
        return false;
    }
    if (a->rank > 1)
        dims[kept++] = dim(a, turn_a ? -1 : -2);
    if (b->rank > 1)
        dims[kept++] = dim(b, turn_b ? -2 : -1);
    tare__set(step, 0, type, kept, dims);
    return true;
}

static void shape_matmul(tare__step *step)
{
    tare__matmul_shape(step, input(step, 0), input(step, 1), false, false, type_of(input(step, 0)));
}

void tare__cost_matmul_of(tare__step *step, const tare__value *a, bool turn_a)
{
    int64_t inner = is_ranked(a) ? dim(a, turn_a && a->rank > 1 ? -2 : -1) : UNKNOWN;
    ADD_MACS(step, tare__elements(output(step, 0)), inner);
}

static void cost_matmul(tare__step *step)
{
    tare__cost_matmul_of(step, input(step, 0), false);
}

static void shape_matmul_integer(tare__step *step)
{
    tare__matmul_shape(step, input(step, 0), input(step, 1), false, false, TARE__ONNX_INT32);
}

static void shape_gemm(tare__step *step)
{
    const tare__value *a = input(step, 0), *b = input(step, 1);
    if ((is_ranked(a) && a->rank != 2) || (is_ranked(b) && b->rank != 2))
        tare__misfit(step);
    else
        tare__matmul_shape(step, a, b, tare__attribute_int(step, "transA", 0), tare__attribute_int(step, "transB", 0),
                           type_of(a));
}

static void cost_gemm(tare__step *step)
{
    tare__cost_matmul_of(step, input(step, 0), tare__attribute_int(step, "transA", 0));
    if (input(step, 2))
        ADD_OTHER(step, tare__elements(output(step, 0)));
}

/* transBatchA and transBatchB move the first dimension before the last: rare, and not supported. */
static void shape_fused_matmul(tare__step *step)
{
    if (tare__attribute_int(step, "transBatchA", 0) || tare__attribute_int(step, "transBatchB", 0))
        tare__set_type(step, 0, type_of(input(step, 0)));
    else
        tare__matmul_shape(step, input(step, 0), input(step, 1), tare__attribute_int(step, "transA", 0),
                           tare__attribute_int(step, "transB", 0), type_of(input(step, 0)));
}

static void cost_fused_matmul(tare__step *step)
{
    bool moved = tare__attribute_int(step, "transBatchA", 0);
    ADD_MACS(step, tare__elements(output(step, 0)),
             moved ? UNKNOWN : dim(input(step, 0), tare__attribute_int(step, "transA", 0) ? -2 : -1));
}

/* The weight is packed: the attributes have its shape. */
static void shape_packed_matmul(tare__step *step)
{
    const tare__value *a = input(step, 0);
    tare__set_axis(step, 0, type_of(a), a, is_ranked(a) ? a->rank - 1 : UNKNOWN,
                   tare__attribute_int(step, "N", UNKNOWN));
}

static void cost_packed_matmul(tare__step *step)
{
    ADD_MACS(step, tare__elements(output(step, 0)), tare__attribute_int(step, "K", UNKNOWN));
}

/* ---- Einsum -------------------------------------------------------------------------------------------------- */
typedef struct einsum {
    int64_t sizes[52 + TARE__MODEL_RANK_MAX]; /* of letters, then of the dimensions of "..." */
    bool seen[52 + TARE__MODEL_RANK_MAX], out[52 + TARE__MODEL_RANK_MAX];
    unsigned times[52];
    int n_dots;
    int order[TARE__MODEL_RANK_MAX]; /* labels of the output */
    int rank;
} einsum;

static int label_of(char letter)
{
    return islower((unsigned char)letter)   ? letter - 'a'
           : isupper((unsigned char)letter) ? 26 + letter - 'A'
                                            : UNKNOWN;
}

static bool take_size(einsum *sum, int label, int64_t size)
{
    int64_t known = sum->seen[label] ? sum->sizes[label] : 1;
    sum->seen[label] = true;
    return tare__broadcast_dim(known, size, &sum->sizes[label]);
}

/* One operand's labels: the name of each dimension. */
static bool take_operand(einsum *sum, const char *text, size_t length, const tare__value *value)
{
    int letters = 0, at = 0;
    for (size_t i = 0; i < length; i++)
        letters += label_of(text[i]) >= 0;
    int dots = is_ranked(value) ? value->rank - letters : 0;
    bool dotted = memchr(text, '.', length) != NULL;
    if (is_ranked(value) && (dots < 0 || (dots > 0 && !dotted)))
        return false;
    for (size_t i = 0; i < length; i++) {
        int label = label_of(text[i]);
        if (label >= 0) {
            sum->times[label]++;
            if (!take_size(sum, label, dim(value, at++)))
                return false;
        } else if (text[i] == '.' && (i == 0 || text[i - 1] != '.')) {
            for (int d = 0; d < dots; d++) {
                if (!take_size(sum, 52 + RANK_MAX - dots + d, dim(value, at++)))
                    return false;
            }
            sum->n_dots = dots > sum->n_dots ? dots : sum->n_dots;
        }
    }
    return true;
}

static void put_label(einsum *sum, int label)
{
    if (sum->rank < RANK_MAX)
        sum->order[sum->rank++] = label;
    sum->out[label] = true;
}

static void put_dots(einsum *sum)
{
    for (int d = 0; d < sum->n_dots; d++)
        put_label(sum, 52 + RANK_MAX - sum->n_dots + d);
}

/* Without "->" the output has the letters that occur once, in alphabetical order. */
static void take_output(einsum *sum, const char *text, size_t length, bool reported)
{
    if (!reported) {
        put_dots(sum);
        for (int i = 0; i < 52; i++) {
            int label = (i + 26) % 52; /* upper case sorts first */
            if (sum->times[label] == 1)
                put_label(sum, label);
        }
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if (label_of(text[i]) >= 0)
            put_label(sum, label_of(text[i]));
        else if (text[i] == '.' && (i == 0 || text[i - 1] != '.'))
            put_dots(sum);
    }
}

static bool parse_einsum(const tare__step *step, einsum *sum)
{
    char text[256];
    size_t length = 0;
    tare__slice equation = tare__attribute_text(step, "equation");
    for (size_t i = 0; i < equation.length && length < sizeof text - 1; i++) {
        if (equation.data[i] != ' ')
            text[length++] = (char)equation.data[i];
    }
    text[length] = '\0';
    char *arrow = strstr(text, "->"), *end = arrow ? arrow : text + length, *at = text;
    for (size_t i = 0; i < step->n_in; i++) {
        char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        if (!take_operand(sum, at, (size_t)(stop - at), input(step, i)))
            return false;
        at = comma ? comma + 1 : end;
    }
    take_output(sum, arrow ? arrow + 2 : "", arrow ? strlen(arrow + 2) : 0, arrow);
    return true;
}

static void shape_einsum(tare__step *step)
{
    einsum sum = {.rank = 0};
    int64_t dims[RANK_MAX] = {0};
    if (!parse_einsum(step, &sum)) {
        tare__misfit(step);
        return;
    }
    for (int i = 0; i < sum.rank; i++)
        dims[i] = sum.seen[sum.order[i]] ? sum.sizes[sum.order[i]] : UNKNOWN;
    tare__set(step, 0, type_of(input(step, 0)), sum.rank, dims);
}

/* All operands at once: the product of the sizes of all distinct labels. A single operand is not multiplied. */
static void cost_einsum(tare__step *step)
{
    einsum sum = {.rank = 0};
    int64_t factors[52 + TARE__MODEL_RANK_MAX];
    int n = 0;
    if (!parse_einsum(step, &sum)) {
        tare__misfit(step);
        ADD_MACS(step, UNKNOWN);
        return;
    }
    for (int i = 0; i < 52 + RANK_MAX; i++) {
        if (sum.seen[i])
            factors[n++] = sum.sizes[i];
    }
    if (step->n_in > 1)
        tare__add_macs(step, n, factors);
    else
        tare__add_other(step, n, factors);
}

/* ---- recurrent layers ---------------------------------------------------------------------------------------- */
static void shape_recurrent(tare__step *step)
{
    const tare__value *x = input(step, 0), *r = input(step, 2);
    bool samples_first = tare__attribute_int(step, "layout", 0);
    int64_t length = dim(x, samples_first ? 1 : 0), samples = dim(x, samples_first ? 0 : 1);
    int64_t ways = dim(r, 0), width = tare__attribute_int(step, "hidden_size", dim(r, 2));
    if (samples_first)
        SET(step, 0, type_of(x), samples, length, ways, width);
    else
        SET(step, 0, type_of(x), length, ways, samples, width);
    for (size_t i = 1; i < step->n_out; i++) {
        if (samples_first)
            SET(step, i, type_of(x), samples, ways, width);
        else
            SET(step, i, type_of(x), ways, samples, width);
    }
}

/* Its matrices are stored transposed, and the output has the layout of the input. */
static void shape_quantized_recurrent(tare__step *step)
{
    const tare__value *x = input(step, 0), *r = input(step, 2);
    int64_t width = tare__attribute_int(step, "hidden_size", dim(r, 1));
    SET(step, 0, type_of(x), dim(x, 0), dim(r, 0), dim(x, 1), width);
    for (size_t i = 1; i < step->n_out; i++)
        SET(step, i, type_of(x), dim(r, 0), dim(x, 1), width);
}

/* Each weight once per sample and step; W and R include both directions. */
static void cost_recurrent(tare__step *step)
{
    const tare__value *x = input(step, 0);
    ADD_MACS(step, dim(x, 0), dim(x, 1), tare__elements(input(step, 1)));
    ADD_MACS(step, dim(x, 0), dim(x, 1), tare__elements(input(step, 2)));
}

/* The determinant takes a third of n cubed. */
static void shape_determinant(tare__step *step)
{
    const tare__value *x = input(step, 0);
    tare__set(step, 0, type_of(x), is_ranked(x) && x->rank >= 2 ? x->rank - 2 : UNKNOWN,
              is_ranked(x) ? x->dims : NULL);
}

static void cost_determinant(tare__step *step)
{
    int64_t n = dim(input(step, 0), -1);
    ADD_MACS(step, tare__elements(input(step, 0)), n < 0 ? UNKNOWN : n / 3);
}

#define MS "com.microsoft:"

const tare__rule tare__rules_matrix[] = {
    {"MatMul", shape_matmul, cost_matmul, 0},
    {"Gemm", shape_gemm, cost_gemm, 0},
    {"MatMulInteger", shape_matmul_integer, cost_matmul, 0},
    {"Einsum", shape_einsum, cost_einsum, 0},
    {"LSTM", shape_recurrent, cost_recurrent, 0},
    {"GRU", shape_recurrent, cost_recurrent, 0},
    {"RNN", shape_recurrent, cost_recurrent, 0},
    {MS "DynamicQuantizeLSTM", shape_quantized_recurrent, cost_recurrent, 0},
    {"Det", shape_determinant, cost_determinant, 0},
    {MS "FusedMatMul", shape_fused_matmul, cost_fused_matmul, 0},
    {MS "TransposeMatMul", shape_fused_matmul, cost_fused_matmul, 0},
    {MS "FusedGemm", shape_gemm, cost_gemm, 0},
    {MS "GemmFloat8", shape_gemm, cost_gemm, 0},
    {MS "FusedMatMulActivation", shape_fused_matmul, cost_fused_matmul, 0},
    {MS "MatMulNBits", shape_packed_matmul, cost_packed_matmul, 0},
    {MS "MatMulBnb4", shape_packed_matmul, cost_packed_matmul, 0},
    {MS "MatMulFpQ4", shape_packed_matmul, cost_packed_matmul, 0},
    {NULL, NULL, NULL, 0},
};
