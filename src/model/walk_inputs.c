/* walk_inputs: the main graph of the model: its inputs with the user's options, its weights, its outputs.
 * Owned by the calling thread.
 * Must not know any operator. */
#include <stdio.h>

#include "rules.h"
#include "tare.h"

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
        walk->dimensions = tare__onnx_grow(walk->model, walk->dimensions, walk->n_dimensions, sizeof *walk->dimensions);
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

/* Values given by the user; the name may be omitted if there is one input. */
static const tare__runner_file *given_values(const tare__walk *walk, tare__slice name)
{
    for (size_t i = 0; i < walk->options->n_files; i++) {
        const tare__runner_file *file = &walk->options->files[i];
        if (file->input ? tare__slice_is(name, file->input) : walk->only_input)
            return file;
    }
    return NULL;
}

/* --shape, or the shape in a file of values. */
static bool given_shape(tare__walk *walk, const tare__onnx_info *info, tare__model_shape *shape)
{
    for (size_t i = 0; i < walk->options->n_shapes; i++) {
        *shape = walk->options->shapes[i];
        if (tare__slice_is(info->name, shape->input))
            return true;
    }
    const tare__runner_file *file = given_values(walk, info->name);
    if (!file || file->rank < 0 || (info->rank >= 0 && info->rank != file->rank))
        return false;
    int64_t *dims = tare__arena_alloc(walk->model->arena, ((size_t)file->rank + 1) * sizeof *dims);
    if (!dims) {
        tare__walk_no_memory(walk);
        return false;
    }
    memcpy(dims, file->dims, (size_t)file->rank * sizeof *dims);
    if (file->rank >= 2 && walk->options->batch > 0)
        dims[0] = walk->options->batch; /* the samples of a file are repeated or truncated */
    *shape = (tare__model_shape){.rank = (size_t)file->rank, .dims = dims};
    return true;
}

/* The value of a symbol set by --dim; UNKNOWN. */
static int64_t given_symbol(const tare__walk *walk, tare__slice symbol)
{
    int64_t value = UNKNOWN;
    for (size_t i = 0; i < walk->options->n_dimensions; i++)
        if (tare__slice_is(symbol, walk->options->dimensions[i].name))
            value = walk->options->dimensions[i].value;
    return value;
}

/* A sum as exporters write it, "past_sequence_length + 1": of numbers and known symbols. UNKNOWN: not a sum. */
static int64_t sum_in(const tare__walk *walk, tare__slice symbol)
{
    int64_t sum = 0;
    bool plus = false;
    for (size_t at = 0; at <= symbol.length;) {
        size_t end = at;
        while (end < symbol.length && symbol.data[end] != '+')
            end++;
        plus = plus || end < symbol.length;
        tare__slice term = {symbol.data + at, end - at};
        while (term.length && *term.data == ' ')
            term = (tare__slice){term.data + 1, term.length - 1};
        while (term.length && term.data[term.length - 1] == ' ')
            term.length--;
        const tare__model_dimension *known = find_symbol(walk, term);
        int64_t value = known ? known->value : 0;
        for (size_t i = 0; !known && i < term.length; i++) {
            if (term.data[i] < '0' || term.data[i] > '9' || value > INT32_MAX)
                return UNKNOWN;
            value = value * 10 + (term.data[i] - '0');
        }
        if (!term.length || value > INT32_MAX)
            return UNKNOWN;
        sum += value;
        at = end + 1;
    }
    return plus && sum <= INT32_MAX ? sum : UNKNOWN;
}

/* The length of a list is its number of values. */
static void take_values(tare__walk *walk, const tare__onnx_info *info)
{
    const tare__runner_file *given = given_values(walk, info->name);
    if (!given || given->path || given->n_values < 2 || info->rank < 1)
        return;
    tare__onnx_dim *last = &info->dims[info->rank - 1];
    for (int i = 0; i < info->rank - 1; i++)
        if (info->dims[i].value > 1)
            return;
    if (last->symbol.length)
        tare__walk_symbol(walk, last->symbol, (int64_t)given->n_values, false);
    else if (last->value == UNKNOWN)
        last->value = (int64_t)given->n_values;
}

/* The default size for an input of this name and type. */
static int64_t usual(tare__walk *walk, const tare__onnx_graph *graph, size_t input, int dimension)
{
    return tare__input_dimension(graph, input, dimension, walk->sizes, &walk->sized_sequence, &walk->sized_side);
}

/* Shapes of whole inputs determine their symbols, everywhere. */
static int take_shape(tare__walk *walk, const tare__onnx_info *info, const tare__model_shape *shape)
{
    if (info->rank >= 0 && (size_t)info->rank != shape->rank)
        return walk->status = tare__fail(
                   walk->model->error, TARE_E_USAGE, "--shape: the input '%.*s' has %d dimensions, not %zu",
                   TARE__SLICE_SHOWN(info->name), info->rank, shape->rank);
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
        if (tare__slices_find(inputs, tare__slice_of(name)) == TARE__SLICES_NONE)
            return walk->status =
                       tare__fail(walk->model->error, TARE_E_USAGE, "--shape: the model has no input '%.100s'", name);
    }
    for (size_t i = 0; i < walk->options->n_files; i++) {
        const tare__runner_file *file = &walk->options->files[i];
        if (!file->input && !walk->only_input)
            return walk->status = tare__fail(walk->model->error, TARE_E_INPUT,
                                             "the model has %zu inputs: say --input NAME=%.200s", inputs->n,
                                             file->path ? file->path : "VALUE");
        if (file->input && tare__slices_find(inputs, tare__slice_of(file->input)) == TARE__SLICES_NONE)
            return walk->status = tare__fail(walk->model->error, TARE_E_INPUT, "the model has no input '%.100s'",
                                             file->input);
    }
    return 0;
}

/* Symbols of one input: sums of others in a second pass. */
static void bind_input(tare__walk *walk, const tare__onnx_graph *graph, size_t i, bool sums)
{
    const tare__onnx_info *info = &graph->inputs[i];
    int64_t batch = walk->options->batch;
    for (int turn = 0; turn < 2; turn++) /* given sizes first: they may determine others */
        for (int d = 0; d < info->rank && !walk->status; d++) {
            tare__onnx_dim *dim = &info->dims[d];
            if (!dim->symbol.length || (!sums && memchr(dim->symbol.data, '+', dim->symbol.length)))
                continue;
            const tare__model_dimension *found = find_symbol(walk, dim->symbol);
            int64_t given = given_symbol(walk, dim->symbol), sum = sums ? sum_in(walk, dim->symbol) : UNKNOWN;
            bool by_batch = d == 0 && batch > 0;
            int64_t value = given >= 0 ? given : found ? found->value : by_batch ? batch : sum;
            bool assumed = value < 0;
            if (assumed && turn)
                value = usual(walk, graph, i, d);
            if (value < 0)
                continue;
            if (!found || given >= 0)
                found = tare__walk_symbol(walk, dim->symbol, value, assumed);
            if (found && !found->assumed)
                dim->value = value; /* a known dimension may determine others */
        }
}

/* Every symbol of the inputs gets a value: given, from the weights, from --batch if it comes first, or the default. */
static int bind_symbols(tare__walk *walk, const tare__onnx_graph *graph, const tare__slices *weights,
                        tare__slices *inputs)
{
    const tare__model_options *options = walk->options;
    for (size_t i = 0; i < graph->n_inputs && !walk->status; i++) {
        const tare__onnx_info *info = &graph->inputs[i];
        tare__model_shape shape;
        if (is_weight(weights, info->name))
            continue;
        if (given_shape(walk, info, &shape) && take_shape(walk, info, &shape))
            break;
        take_values(walk, info);
    }
    if (!walk->status)
        tare__walk_hints(walk, graph, weights, inputs);
    for (int sums = 0; sums < 2; sums++)
        for (size_t i = 0; i < graph->n_inputs && !walk->status; i++)
            if (!is_weight(weights, graph->inputs[i].name))
                bind_input(walk, graph, i, sums);
    for (size_t i = 0; i < options->n_dimensions && !walk->status; i++) {
        const char *name = options->dimensions[i].name;
        tare__model_dimension *found = find_symbol(walk, tare__slice_of(name));
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
/* A dimension with neither number nor name is treated as a separate symbol. */
static int64_t dimension_of(tare__walk *walk, const tare__onnx_info *info, int i)
{
    const tare__onnx_graph *graph = &walk->model->graph;
    const tare__onnx_dim *dim = &info->dims[i];
    const tare__model_dimension *symbol = dim->symbol.length ? find_symbol(walk, dim->symbol) : NULL;
    if (symbol)
        return symbol->value;
    /* Some exporters write 0 for unknown. */
    if (dim->value > 0 || (dim->value == 0 && i > 0))
        return dim->value;
    if (i == 0 && walk->options->batch > 0)
        return walk->options->batch;
    int64_t value = usual(walk, graph, (size_t)(info - graph->inputs), i);
    tare__walk_note(walk, "dimension %d of the input '%.*s' has no name and no number: assumed %lld (--shape sets it)",
                    i, TARE__SLICE_SHOWN(info->name), (long long)value);
    return value;
}

static int add_input(tare__walk *walk, tare__frame *frame, const tare__onnx_info *info)
{
    tare__model_shape shape;
    bool shaped = given_shape(walk, info, &shape);
    tare__value *value = tare__walk_add(walk, frame, info->name);
    int64_t dims[TARE__MODEL_RANK_MAX];
    int rank = shaped ? (int)shape.rank : info->rank;
    if (!value)
        return walk->status;
    walk->inputs[walk->n_inputs++] = value;
    value->activation = true;
    value->optional = info->type == 0;
    value->container = info->container;
    for (int i = 0; i < rank; i++)
        dims[i] = shaped ? shape.dims[i] : dimension_of(walk, info, i);
    if (rank < 0 && info->type)
        tare__walk_note(walk, "the input '%.*s' has no shape in the file: --shape gives it one",
                        TARE__SLICE_SHOWN(info->name));
    tare__onnx_node node = {.name = info->name};
    tare__step step = {.walk = walk, .frame = frame, .node = &node, .out = &value, .n_out = 1};
    tare__set(&step, 0, info->type, rank, dims);
    return walk->status;
}

static int add_inputs(tare__walk *walk, tare__frame *frame, const tare__onnx_graph *graph, const tare__slices *weights)
{
    for (size_t i = 0; i < graph->n_inputs && !walk->status; i++) {
        /* Up to IR 3 weights are listed among the inputs. */
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
    walk->only_input = inputs->n == 1;
    return sound ? 0 : tare__walk_no_memory(walk);
}

/* Values held by the caller are live to the end. */
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

/* ---- what they are filled with --------------------------------------------------------------------------------- */
static tare__model_fill given_fill(const tare__runner_file *given)
{
    tare__model_fill fill = {.kind = given->path ? TARE__FILL_FILE : TARE__FILL_VALUES, .what = given->path,
                             .n_values = given->n_values, .given = true};
    memcpy(fill.values, given->values, sizeof fill.values);
    return fill;
}

/* Shapes may be computed from them, and branches selected. */
static void know_values(tare__walk *walk, tare__value *value, const tare__model_fill *fill)
{
    double values[TARE__CONTENT_MAX];
    int64_t n = tare__elements(value), row = value->rank > 0 ? value->dims[value->rank - 1] : 1;
    bool known = fill->kind == TARE__FILL_RANGE || (fill->kind == TARE__FILL_VALUES && fill->n_values);
    known = known && (fill->given || fill->kind == TARE__FILL_RANGE || fill->what); /* otherwise it is a default */
    if (!known || n < 0 || n > (int64_t)TARE__CONTENT_MAX || value->type == TARE__ONNX_STRING)
        return;
    for (int64_t i = 0; i < n; i++)
        values[i] = fill->kind == TARE__FILL_RANGE ? (double)(i % row) : fill->values[(size_t)i % fill->n_values];
    tare__step step = {.walk = walk, .out = &value, .n_out = 1};
    tare__set_content(&step, 0, values, (size_t)n);
}

static int fill_inputs(tare__walk *walk, const tare__onnx_graph *graph)
{
    tare__input *all = tare__arena_alloc(walk->model->arena, (walk->n_inputs + 1) * sizeof *all);
    walk->fills = tare__arena_alloc(walk->model->arena, (walk->n_inputs + 1) * sizeof *walk->fills);
    if (!all || !walk->fills)
        return tare__walk_no_memory(walk);
    for (size_t i = 0; i < walk->n_inputs; i++) {
        const tare__value *value = walk->inputs[i];
        const tare__onnx_info *info = tare__onnx_info_of(graph->inputs, graph->n_inputs, value->name);
        all[i] = (tare__input){.name = tare__walk_copy(walk, value->name), .type = value->type, .rank = value->rank,
                               .dims = value->dims};
        for (int d = 0; info && d < info->rank; d++)
            all[i].open |= (uint32_t)(info->dims[d].symbol.length || info->dims[d].value < 0) << d;
        if (value->type == TARE__ONNX_INT64 || value->type == TARE__ONNX_INT32)
            all[i].rows = tare__input_rows(graph, value->name);
    }
    for (size_t i = 0; i < walk->n_inputs && !walk->status; i++) {
        const tare__runner_file *given = given_values(walk, walk->inputs[i]->name);
        walk->fills[i] = given ? given_fill(given) : tare__input_fill(all, walk->n_inputs, i);
        know_values(walk, walk->inputs[i], &walk->fills[i]);
    }
    return walk->status;
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
    walk->time = 1; /* inputs exist before the first node */
    walk->inputs = tare__arena_alloc(walk->model->arena, (graph->n_inputs + 1) * sizeof *walk->inputs);
    if (!walk->inputs)
        return tare__walk_no_memory(walk);
    if (!index_names(walk, graph, &weights, &inputs) && !check_options(walk, &inputs) &&
        !bind_symbols(walk, graph, &weights, &inputs) && !add_inputs(walk, &frame, graph, &weights) &&
        !fill_inputs(walk, graph))
        walk_whole(walk, &frame);
    tare__slices_free(&weights);
    tare__slices_free(&inputs);
    tare__slices_free(&frame.names);
    tare__slices_free(&frame.infos);
    return walk->status;
}
