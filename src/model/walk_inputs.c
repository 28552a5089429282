/* walk_inputs: the model's own graph: its inputs with what the user says of them, its weights, its outputs.
 * Owned by the calling thread.
 * Must not know any operator. */
#include <stdio.h>

#include "rules.h"
#include "tare.h"

static int columns_of(tare__slice name)
{
    return (int)(name.length < 100 ? name.length : 100);
}

/* ---- what symbols stand for ---------------------------------------------------------------------------------- */
static tare__model_dimension *find_symbol(const tare__walk *walk, tare__slice symbol)
{
    for (size_t i = 0; i < walk->n_dimensions; i++) {
        if (tare__slice_is(symbol, walk->dimensions[i].name))
            return &walk->dimensions[i];
    }
    return NULL;
}

tare__model_dimension *tare__walk_symbol(tare__walk *walk, tare__slice symbol, int64_t value, bool assumed)
{
    tare__model_dimension *found = find_symbol(walk, symbol);
    if (!found) {
        walk->dimensions =
            tare__onnx_grow(walk->model, walk->dimensions, walk->n_dimensions, sizeof *walk->dimensions);
        if (!walk->dimensions) {
            tare__walk_no_memory(walk);
            return NULL;
        }
        found = &walk->dimensions[walk->n_dimensions++];
        *found = (tare__model_dimension){tare__walk_copy(walk, symbol), value, assumed};
    } else if (found->assumed && !assumed) {
        *found = (tare__model_dimension){found->name, value, false};
    }
    return found;
}

static bool is_weight(const tare__slices *weights, tare__slice name)
{
    return tare__slices_find(weights, name) != TARE__SLICES_NONE;
}

static const tare__model_shape *given_shape(const tare__walk *walk, tare__slice name)
{
    for (size_t i = 0; i < walk->options->n_shapes; i++) {
        if (tare__slice_is(name, walk->options->shapes[i].input))
            return &walk->options->shapes[i];
    }
    return NULL;
}

/* Shapes of whole inputs tell what their symbols stand for, everywhere. */
static int take_shape(tare__walk *walk, const tare__onnx_info *info, const tare__model_shape *shape)
{
    if (info->rank >= 0 && (size_t)info->rank != shape->rank)
        return walk->status = tare__fail(
                   walk->model->error, TARE_E_USAGE, "--shape: the input '%.*s' has %d dimensions, not %zu",
                   columns_of(info->name), (const char *)info->name.data, info->rank, shape->rank);
    for (int i = 0; i < info->rank && !walk->status; i++) {
        const tare__onnx_dim *dim = &info->dims[i];
        if (dim->symbol.length)
            tare__walk_symbol(walk, dim->symbol, shape->dims[i], false);
        else if (dim->value >= 0 && dim->value != shape->dims[i])
            walk->infos_hold = false;
    }
    return walk->status;
}

static int check_options(tare__walk *walk, const tare__slices *inputs)
{
    for (size_t i = 0; i < walk->options->n_shapes; i++) {
        const char *name = walk->options->shapes[i].input;
        if (tare__slices_find(inputs, (tare__slice){(const uint8_t *)name, strlen(name)}) == TARE__SLICES_NONE)
            return walk->status =
                       tare__fail(walk->model->error, TARE_E_USAGE, "--shape: the model has no input '%.100s'", name);
    }
    return 0;
}

/* Every symbol of the inputs gets a number: given, by the weights, by --batch where it comes first, or 1. */
static int bind_symbols(tare__walk *walk, const tare__onnx_graph *graph, const tare__slices *weights,
                        tare__slices *inputs)
{
    const tare__model_options *options = walk->options;
    for (size_t i = 0; i < graph->n_inputs && !walk->status; i++) {
        const tare__onnx_info *info = &graph->inputs[i];
        const tare__model_shape *shape = given_shape(walk, info->name);
        if (shape && !is_weight(weights, info->name) && take_shape(walk, info, shape))
            break;
    }
    if (!walk->status)
        tare__walk_hints(walk, graph, weights, inputs);
    for (size_t i = 0; i < graph->n_inputs && !walk->status; i++) {
        const tare__onnx_info *info = &graph->inputs[i];
        for (int d = 0; d < info->rank && !walk->status; d++) {
            if (info->dims[d].symbol.length && !is_weight(weights, info->name)) {
                bool by_batch = d == 0 && options->batch > 0;
                tare__walk_symbol(walk, info->dims[d].symbol, by_batch ? options->batch : 1, !by_batch);
            }
        }
    }
    for (size_t i = 0; i < options->n_dimensions && !walk->status; i++) {
        const char *name = options->dimensions[i].name;
        tare__model_dimension *found = find_symbol(walk, (tare__slice){(const uint8_t *)name, strlen(name)});
        if (!found) {
            char known[200] = "";
            for (size_t k = 0; k < walk->n_dimensions && strlen(known) < 150; k++)
                snprintf(known + strlen(known), sizeof known - strlen(known), "%s%.40s", k ? ", " : "",
                         walk->dimensions[k].name);
            return walk->status =
                       tare__fail(walk->model->error, TARE_E_USAGE, "--dim: no input has a dimension '%.100s'%s%s",
                                  name, *known ? "; there are: " : "; all of them have numbers", known);
        }
        *found = (tare__model_dimension){found->name, options->dimensions[i].value, false};
    }
    return walk->status;
}

/* ---- inputs -------------------------------------------------------------------------------------------------- */
/* A dimension with neither number nor name is like a symbol of its own. */
static int64_t dimension_of(tare__walk *walk, const tare__onnx_info *info, int i)
{
    const tare__onnx_dim *dim = &info->dims[i];
    const tare__model_dimension *symbol = dim->symbol.length ? find_symbol(walk, dim->symbol) : NULL;
    if (symbol)
        return symbol->value;
    /* Some exporters write 0 for what is not known. */
    if (dim->value > 0 || (dim->value == 0 && i > 0))
        return dim->value;
    if (i == 0 && walk->options->batch > 0)
        return walk->options->batch;
    tare__walk_note(
        walk, "dimension %d of the input '%.*s' has no name and no number: taken for 1 (--shape says otherwise)", i,
        columns_of(info->name), (const char *)info->name.data);
    return 1;
}

static int add_input(tare__walk *walk, tare__frame *frame, const tare__onnx_info *info)
{
    const tare__model_shape *shape = given_shape(walk, info->name);
    tare__value *value = tare__walk_add(walk, frame, info->name);
    int64_t dims[TARE__MODEL_RANK_MAX];
    int rank = shape ? (int)shape->rank : info->rank;
    if (!value)
        return walk->status;
    walk->inputs[walk->n_inputs++] = value;
    value->activation = true;
    value->optional = info->type == 0;
    value->container = info->container;
    for (int i = 0; i < rank; i++)
        dims[i] = shape ? shape->dims[i] : dimension_of(walk, info, i);
    if (rank < 0 && info->type)
        tare__walk_note(walk, "the input '%.*s' has no shape in the file: --shape gives it one",
                        columns_of(info->name), (const char *)info->name.data);
    tare__onnx_node node = {.name = info->name};
    tare__step step = {.walk = walk, .frame = frame, .node = &node, .out = &value, .n_out = 1};
    tare__set(&step, 0, info->type, rank, dims);
    return walk->status;
}

static int add_inputs(tare__walk *walk, tare__frame *frame, const tare__onnx_graph *graph,
                      const tare__slices *weights)
{
    for (size_t i = 0; i < graph->n_inputs && !walk->status; i++) {
        /* Up to IR 3 weights stand among the inputs. */
        if (is_weight(weights, graph->inputs[i].name))
            continue;
        if (tare__slices_find(&frame->names, graph->inputs[i].name) != TARE__SLICES_NONE)
            return tare__walk_wrong(walk, graph->inputs[i].name, "two inputs are called");
        add_input(walk, frame, &graph->inputs[i]);
    }
    return walk->status;
}

static int index_names(tare__walk *walk, const tare__onnx_graph *graph, tare__slices *weights, tare__slices *inputs)
{
    bool sound = true;
    for (size_t i = 0; i < graph->n_initializers && sound; i++)
        sound = tare__slices_add(weights, graph->initializers[i].name, (uint32_t)i);
    for (size_t i = 0; i < graph->n_inputs && sound; i++)
        sound = is_weight(weights, graph->inputs[i].name) ||
                tare__slices_add(inputs, graph->inputs[i].name, (uint32_t)i);
    return sound ? 0 : tare__walk_no_memory(walk);
}

/* What the caller holds is live to the end. */
static tare__value *hold(tare__value *value)
{
    value->last = UINT32_MAX;
    if (value->shares)
        value->shares->last = UINT32_MAX;
    return value;
}

static int find_outputs(tare__walk *walk, const tare__frame *frame, const tare__onnx_graph *graph)
{
    walk->outputs = tare__arena_alloc(walk->model->arena, (graph->n_outputs + 1) * sizeof *walk->outputs);
    if (!walk->outputs)
        return tare__walk_no_memory(walk);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        uint32_t number = tare__walk_find(frame, graph->outputs[i].name);
        if (number == TARE__SLICES_NONE || !walk->values[number])
            return tare__walk_wrong(walk, graph->outputs[i].name, "nothing makes the output");
        walk->outputs[walk->n_outputs++] = hold(walk->values[number]);
        if (walk->values[number]->optional)
            walk->values[number]->container = graph->outputs[i].container;
    }
    return 0;
}

static int walk_whole(tare__walk *walk, tare__frame *frame)
{
    const tare__onnx_graph *graph = frame->graph;
    if (tare__walk_weights(walk, frame, graph) || tare__walk_nodes(walk, frame, graph->nodes, graph->n_nodes))
        return walk->status;
    for (size_t i = 0; i < walk->n_inputs; i++)
        hold(walk->inputs[i]);
    return find_outputs(walk, frame, graph);
}

int tare__walk_model(tare__walk *walk)
{
    const tare__onnx_graph *graph = &walk->model->graph;
    tare__frame frame = {.graph = graph, .prefix = "", .times = 1};
    tare__slices weights = {0}, inputs = {0};
    walk->infos_hold = true;
    walk->time = 1; /* inputs are there before the first node */
    walk->inputs = tare__arena_alloc(walk->model->arena, (graph->n_inputs + 1) * sizeof *walk->inputs);
    if (!walk->inputs)
        return tare__walk_no_memory(walk);
    if (!index_names(walk, graph, &weights, &inputs) && !check_options(walk, &inputs) &&
        !bind_symbols(walk, graph, &weights, &inputs) && !add_inputs(walk, &frame, graph, &weights))
        walk_whole(walk, &frame);
    tare__slices_free(&weights);
    tare__slices_free(&inputs);
    tare__slices_free(&frame.names);
    tare__slices_free(&frame.infos);
    return walk->status;
}
