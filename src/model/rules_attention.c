/* rules_attention: fused attention: B·H·Sq·Sk·(Dqk + Dv), and the projections if they are included.
 * Pure but for the step; any thread.
 * Must not know what calls them. */
#include "rules.h"

/* The common parameters of all forms; UNKNOWN if unknown. */
typedef struct attention {
    int64_t samples, query, keys; /* lengths; `keys` including the past */
    int64_t heads, key_heads;
    int64_t depth, value_depth; /* of a head */
    int64_t past;               /* of `keys` */
} attention;

static int64_t divided(int64_t a, int64_t b)
{
    return a < 0 || b < 1 ? UNKNOWN : a / b;
}

static int64_t multiplied(int64_t a, int64_t b)
{
    int64_t product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? UNKNOWN : product;
}

static int64_t added(int64_t a, int64_t b)
{
    int64_t sum;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? UNKNOWN : sum;
}

static void cost_of(tare__step *step, const attention *of)
{
    ADD_MACS(step, of->samples, of->heads, of->query, of->keys, of->depth);
    ADD_MACS(step, of->samples, of->heads, of->query, of->keys, of->value_depth);
    ADD_OTHER(step, of->samples, of->heads, of->query, of->keys, 5); /* softmax */
}

/* ---- ONNX's own, from opset 23 --------------------------------------------------------------------------------- */
static attention read_standard(const tare__step *step)
{
    const tare__value *q = input(step, 0), *k = input(step, 1), *v = input(step, 2), *past = input(step, 4);
    attention of = {.samples = dim(q, 0), .past = past ? dim(past, 2) : 0};
    if (has_rank(q, 4)) {
        of.heads = dim(q, 1), of.query = dim(q, 2), of.depth = dim(q, 3);
        of.key_heads = dim(k, 1), of.keys = dim(k, 2), of.value_depth = dim(v, 3);
    } else {
        of.heads = tare__attribute_int(step, "q_num_heads", UNKNOWN);
        of.key_heads = tare__attribute_int(step, "kv_num_heads", of.heads);
        of.query = dim(q, 1), of.depth = divided(dim(q, 2), of.heads);
        of.keys = dim(k, 1), of.value_depth = divided(dim(v, 2), of.key_heads);
    }
    of.keys = added(of.keys, of.past);
    return of;
}

static void shape_standard(tare__step *step)
{
    attention of = read_standard(step);
    int type = type_of(input(step, 0));
    if (has_rank(input(step, 0), 4))
        SET(step, 0, type, of.samples, of.heads, of.query, of.value_depth);
    else
        SET(step, 0, type, of.samples, of.query, multiplied(of.heads, of.value_depth));
    SET(step, 1, type_of(input(step, 1)), of.samples, of.key_heads, of.keys, of.depth);
    SET(step, 2, type_of(input(step, 2)), of.samples, of.key_heads, of.keys, of.value_depth);
    SET(step, 3, type, of.samples, of.heads, of.query, of.keys);
}

static void cost_standard(tare__step *step)
{
    attention of = read_standard(step);
    cost_of(step, &of);
}

/* ---- com.microsoft: Attention, with its projections inside ------------------------------------------------------ */
static bool is_quantized(const tare__step *step)
{
    return tare__slice_is(step->node->op, "QAttention");
}

/* `past` is the input with the past of both, [2, B, H, S, D]. */
static attention read_projected(const tare__step *step, int64_t *widths)
{
    const tare__value *x = input(step, 0), *w = input(step, 1), *past = input(step, is_quantized(step) ? 8 : 4);
    attention of = {.samples = dim(x, 0), .query = dim(x, 1), .past = past ? dim(past, 3) : 0};
    of.heads = of.key_heads = tare__attribute_int(step, "num_heads", UNKNOWN);
    int n = tare__attribute_ints(step, "qkv_hidden_sizes", widths, 3);
    for (int i = 0; n != 3 && i < 3; i++)
        widths[i] = divided(w ? dim(w, 1) : UNKNOWN, 3);
    of.depth = divided(widths[0], of.heads);
    of.value_depth = divided(widths[2], of.heads);
    of.keys = added(of.query, of.past);
    return of;
}

static void shape_projected(tare__step *step)
{
    int64_t widths[3];
    attention of = read_projected(step, widths);
    int type = type_of(input(step, is_quantized(step) ? 3 : 0));
    SET(step, 0, type, of.samples, of.query, widths[2]);
    SET(step, 1, type, 2, of.samples, of.heads, of.keys, of.depth);
}

static void cost_projected(tare__step *step)
{
    int64_t widths[3];
    attention of = read_projected(step, widths);
    for (int i = 0; i < 3; i++)
        ADD_MACS(step, of.samples, of.query, dim(input(step, 0), 2), widths[i]);
    cost_of(step, &of);
}

/* ---- com.microsoft: MultiHeadAttention ------------------------------------------------------------------------- */
static attention read_many_heads(const tare__step *step)
{
    const tare__value *q = input(step, 0), *k = input(step, 1), *v = input(step, 2), *past = input(step, 6);
    attention of = {.samples = dim(q, 0), .query = dim(q, 1), .past = past ? dim(past, 2) : 0};
    of.heads = of.key_heads = tare__attribute_int(step, "num_heads", UNKNOWN);
    if (has_rank(q, 5)) { /* all three packed: B, S, N, 3, D */
        of.depth = of.value_depth = dim(q, 4);
        of.keys = of.query;
    } else {
        of.depth = divided(dim(q, 2), of.heads);
        if (has_rank(k, 5)) { /* keys and values packed */
            of.keys = dim(k, 1);
            of.value_depth = dim(k, 4);
        } else if (has_rank(k, 4)) { /* B, N, L, D: the part of the encoder that a decoder keeps */
            of.keys = dim(k, 2);
            of.value_depth = dim(v, 3);
        } else {
            of.keys = k ? dim(k, 1) : of.query;
            of.value_depth = v ? divided(dim(v, 2), of.heads) : of.depth;
        }
    }
    of.keys = added(of.keys, of.past);
    return of;
}

static void shape_many_heads(tare__step *step)
{
    attention of = read_many_heads(step);
    int type = type_of(input(step, 0));
    SET(step, 0, type, of.samples, of.query, multiplied(of.heads, of.value_depth));
    SET(step, 1, type, of.samples, of.heads, of.keys, of.depth);
    SET(step, 2, type, of.samples, of.heads, of.keys, of.value_depth);
    SET(step, 3, type, of.samples, of.heads, of.query, of.keys);
}

static void cost_many_heads(tare__step *step)
{
    attention of = read_many_heads(step);
    cost_of(step, &of);
}

/* ---- com.microsoft: GroupQueryAttention ------------------------------------------------------------------------ */
static attention read_group_query(const tare__step *step)
{
    const tare__value *q = input(step, 0), *k = input(step, 1), *past = input(step, 3);
    attention of = {.samples = dim(q, 0), .query = dim(q, 1), .past = past ? dim(past, 2) : 0};
    of.heads = tare__attribute_int(step, "num_heads", UNKNOWN);
    of.key_heads = tare__attribute_int(step, "kv_num_heads", of.heads);
    /* Without keys all three are packed into the first input. */
    int64_t all = k ? of.heads : added(of.heads, multiplied(2, of.key_heads)), total;
    of.depth = of.value_depth = divided(dim(q, 2), all);
    of.keys = added(of.query, of.past);
    /* The past may be a buffer of maximum length: then this gives the used part. */
    if (tare__content(input(step, 6), 0, &total) && total > 0)
        of.keys = total;
    return of;
}

static void shape_group_query(tare__step *step)
{
    attention of = read_group_query(step);
    int type = type_of(input(step, 0));
    int64_t kept = of.past > of.keys ? of.past : of.keys;
    SET(step, 0, type, of.samples, of.query, multiplied(of.heads, of.depth));
    SET(step, 1, type, of.samples, of.key_heads, kept, of.depth);
    SET(step, 2, type, of.samples, of.key_heads, kept, of.depth);
}

static void cost_group_query(tare__step *step)
{
    attention of = read_group_query(step);
    cost_of(step, &of);
}

/* ---- around attention ---------------------------------------------------------------------------------------- */
static void shape_position_bias(tare__step *step)
{
    const tare__value *table = input(step, 0);
    int64_t query, keys;
    SET(step, 0, type_of(table), 1, dim(table, 1), tare__content(input(step, 1), 0, &query) ? query : UNKNOWN,
        tare__content(input(step, 2), 0, &keys) ? keys : UNKNOWN);
}

#define MS "com.microsoft:"

const tare__rule tare__rules_attention[] = {
    {"Attention", shape_standard, cost_standard, 0},
    {"RotaryEmbedding", tare__shape_like_first, tare__cost_output, 3},
    {MS "Attention", shape_projected, cost_projected, 0},
    {MS "QAttention", shape_projected, cost_projected, 0},
    {MS "MultiHeadAttention", shape_many_heads, cost_many_heads, 0},
    {MS "GroupQueryAttention", shape_group_query, cost_group_query, 0},
    {MS "RotaryEmbedding", tare__shape_like_first, tare__cost_output, 3},
    {MS "RelativePositionBias", shape_position_bias, tare__cost_none, 0},
    {NULL, NULL, NULL, 0},
};
