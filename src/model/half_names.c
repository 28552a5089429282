/* half_names: which tensors get another name in half precision, and which must not be converted.
 * Owned by the calling thread.
 * Must not know how anything is written. */
#include "half.h"

#include "rules.h"

enum { ANY, INPUT };

static int add_as(tare__half *half, tare__slices *names, tare__slice name, uint32_t what)
{
    return tare__slices_add(names, name, what) ? 0 : tare__no_memory(half->model.error);
}

static int add(tare__half *half, tare__slices *names, tare__slice name)
{
    return add_as(half, names, name, ANY);
}

bool tare__half_has(const tare__slices *names, tare__slice name)
{
    return name.length && tare__slices_find(names, name) != TARE__SLICES_NONE;
}

/* ---- what goes in and comes out ------------------------------------------------------------------------------- */
static int add_end(tare__half *half, tare__slice name, uint32_t what)
{
    if (tare__half_has(&half->renamed, name))
        return tare__half_refuse(half, "two of its inputs and outputs have the same name");
    return add_as(half, &half->renamed, name, what);
}

/* An output that repeats an input of another type would be produced twice: given, and by the cast at the output. */
static bool is_input(const tare__onnx_graph *graph, tare__slice name)
{
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (tare__slice_equal(graph->inputs[i].name, name))
            return true;
    return false;
}

static int find_renamed(tare__half *half, const tare__slices *made)
{
    const tare__onnx_graph *graph = &half->model.graph;
    int status = 0;
    for (size_t i = 0; i < graph->n_inputs && !status; i++)
        if (graph->inputs[i].type == TARE__ONNX_FLOAT && !tare__half_has(made, graph->inputs[i].name))
            status = add_end(half, graph->inputs[i].name, INPUT);
    for (size_t i = 0; i < graph->n_outputs && !status; i++) {
        tare__slice name = graph->outputs[i].name;
        bool single = graph->outputs[i].type == TARE__ONNX_FLOAT;
        if (tare__half_has(made, name) || tare__half_has(&half->renamed, name) || (single && is_input(graph, name)))
            return tare__half_refuse(half, "one of its outputs is an input");
        if (single)
            status = add_end(half, name, ANY);
    }
    return status;
}

/* Whether it is the new name of a renamed tensor. */
static bool is_taken(const tare__half *half, tare__slice name)
{
    const tare__slice inside = TARE__HALF_INSIDE;
    tare__slice before = {name.data, name.length < inside.length ? 0 : name.length - inside.length};
    return before.length && memcmp(name.data + before.length, inside.data, inside.length) == 0 &&
           tare__half_has(&half->renamed, before);
}

static int check_taken(tare__half *half)
{
    const tare__onnx_graph *graph = &half->model.graph;
    bool taken = false, made = false;
    for (size_t i = 0; i < graph->n_initializers; i++)
        taken |= is_taken(half, graph->initializers[i].name);
    for (size_t i = 0; i < graph->n_inputs; i++)
        taken |= is_taken(half, graph->inputs[i].name);
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < graph->nodes[i].n_outputs; k++) {
            taken |= is_taken(half, graph->nodes[i].outputs[k]);
            made |= tare__slices_find(&half->renamed, graph->nodes[i].outputs[k]) == INPUT;
        }
    if (made)
        return tare__half_refuse(half, "one of its nodes produces an input");
    return taken ? tare__half_refuse(half, "it has names that end in _tare_half") : 0;
}

/* ---- what stays ----------------------------------------------------------------------------------------------- */
/* Inputs that ONNX requires in single precision; and those that determine sizes: half precision represents integers
 * exactly only up to 2,048, and shapes would change. */
static const struct {
    const char *op;
    unsigned from, to;
    bool always; /* also if the model computes it from data */
} singles[] = {
    {"Resize", 1, 2, true},           {"Upsample", 1, 1, true},  {"QuantizeLinear", 1, 1, true},
    {"DequantizeLinear", 1, 1, true}, {"Resize", 3, 3, false},   {"Reshape", 1, 1, false},
    {"Expand", 1, 1, false},          {"Tile", 1, 1, false},     {"Slice", 1, 4, false},
    {"Pad", 1, 1, false},             {"Pad", 3, 3, false},      {"ConstantOfShape", 0, 0, false},
    {"Range", 0, 2, false},           {"OneHot", 1, 1, false},   {"TopK", 1, 1, false},
    {"Squeeze", 1, 1, false},         {"Unsqueeze", 1, 1, false}, {"Split", 1, 1, false},
    {"NonZero", 0, 0, false},         {"CenterCropPad", 1, 1, false}, {"AffineGrid", 1, 1, false},
    {"Compress", 1, 1, false},        {"MaxUnpool", 2, 2, false}, {"Col2Im", 1, 2, false},
    {"DFT", 1, 2, false},             {"STFT", 1, 1, false},     {"STFT", 3, 3, false},
    {"MelWeightMatrix", 0, 1, false}, {"HannWindow", 0, 0, false}, {"HammingWindow", 0, 0, false},
    {"BlackmanWindow", 0, 0, false},  {"GroupQueryAttention", 6, 6, false}, {"RelativePositionBias", 1, 2, false},
};

/* Computed from weights and shapes alone: the same in every run. */
static bool is_fixed(const tare__onnx_node *node, const tare__slices *fixed)
{
    if (tare__slice_is(node->op, "Shape") || tare__slice_is(node->op, "Size") || tare__slice_is(node->op, "Constant"))
        return true;
    bool all = tare__fold_evaluates(node->op) || tare__slice_is(node->op, "ConstantOfShape") ||
               tare__slice_is(node->op, "Range");
    for (size_t i = 0; i < node->n_inputs && all; i++)
        all = !node->inputs[i].length || tare__half_has(fixed, node->inputs[i]);
    return all;
}

static int add_outputs(tare__half *half, tare__slices *names, const tare__onnx_node *node)
{
    int status = 0;
    for (size_t i = 0; i < node->n_outputs && !status; i++)
        if (node->outputs[i].length)
            status = add(half, names, node->outputs[i]);
    return status;
}

static int keep_inputs(tare__half *half, const tare__onnx_node *node, unsigned from, unsigned to,
                       const tare__slices *of)
{
    int status = 0;
    for (unsigned i = from; i <= to && i < node->n_inputs && !status; i++)
        if (node->inputs[i].length && (!of || tare__half_has(of, node->inputs[i])))
            status = add(half, &half->kept, node->inputs[i]);
    return status;
}

static int keep_of(tare__half *half, const tare__onnx_node *node, const tare__slices *fixed)
{
    int status = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(singles) && !status; i++)
        if (tare__slice_is(node->op, singles[i].op))
            status = keep_inputs(half, node, singles[i].from, singles[i].to, singles[i].always ? NULL : fixed);
    if (!status && node->op.length > 6 && memcmp(node->op.data, "Reduce", 6) == 0) /* axes */
        status = keep_inputs(half, node, 1, 1, fixed);
    bool kept = false;
    for (size_t i = 0; i < node->n_outputs; i++)
        kept |= tare__half_has(&half->kept, node->outputs[i]) && tare__half_has(fixed, node->outputs[i]);
    if (kept && !status && !tare__slice_is(node->op, "Shape") && !tare__slice_is(node->op, "Size"))
        status = keep_inputs(half, node, 0, UINT32_MAX - 1, NULL);
    return status;
}

/* Nodes are in execution order: propagates fixed values forwards, size computations backwards. */
static int find_kept(tare__half *half, tare__slices *fixed)
{
    const tare__onnx_graph *graph = &half->model.graph;
    int status = 0;
    for (size_t i = 0; i < graph->n_nodes && !status; i++)
        if (is_fixed(&graph->nodes[i], fixed))
            status = add_outputs(half, fixed, &graph->nodes[i]);
    for (size_t i = graph->n_nodes; i > 0 && !status; i--)
        status = keep_of(half, &graph->nodes[i - 1], fixed);
    return status;
}

int tare__half_find_names(tare__half *half)
{
    const tare__onnx_graph *graph = &half->model.graph;
    tare__slices fixed = {0};
    int status = 0;
    for (size_t i = 0; i < graph->n_initializers && !status; i++)
        status = add(half, &fixed, graph->initializers[i].name);
    if (!status)
        status = find_renamed(half, &fixed);
    if (!status)
        status = check_taken(half);
    if (!status)
        status = find_kept(half, &fixed);
    tare__slices_free(&fixed);
    return status;
}
