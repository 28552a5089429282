/* walk: walks the graph in execution order: names to values, a layer for each node.
 * Owned by the calling thread.
 * Must not know any operator but by its rule. */
#include "walk.h"

#include <stdio.h>
#include <stdlib.h>

#include "rules.h"
#include "tare.h"

int tare__walk_no_memory(tare__walk *walk)
{
    if (!walk->status)
        walk->status = tare__no_memory(walk->model->error);
    return walk->status;
}

const char *tare__walk_copy(tare__walk *walk, tare__slice text)
{
    const char *copy = tare__arena_copy(walk->model->arena, text.length ? (const char *)text.data : "", text.length);
    if (!copy)
        tare__walk_no_memory(walk);
    return copy ? copy : "";
}

void tare__walk_note(tare__walk *walk, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < walk->n_notes; i++) {
        if (strcmp(walk->notes[i], text) == 0)
            return;
    }
    if (walk->n_notes >= 100) /* limits the output for a damaged file */
        return;
    const char **notes = tare__onnx_grow(walk->model, walk->notes, walk->n_notes, sizeof *notes);
    const char *kept = tare__walk_copy(walk, tare__slice_of(text));
    if (!notes) {
        tare__walk_no_memory(walk);
        return;
    }
    walk->notes = notes;
    walk->notes[walk->n_notes++] = kept;
}

/* ---- values -------------------------------------------------------------------------------------------------- */
int tare__walk_wrong(tare__walk *walk, tare__slice name, const char *what)
{
    if (!walk->status)
        walk->status = tare__fail(walk->model->error, TARE_E_INPUT, "'%.200s': %s '%.*s'", walk->model->path, what,
                                  TARE__SLICE_SHOWN(name));
    return walk->status;
}

tare__value *tare__walk_add(tare__walk *walk, tare__frame *frame, tare__slice name)
{
    tare__value *value = tare__arena_alloc(walk->model->arena, sizeof *value);
    if (!value || walk->n_values >= TARE__SLICES_NONE ||
        !tare__array_fit(&walk->values, &walk->values_room, walk->n_values + 1, sizeof *walk->values) ||
        (name.length && !tare__slices_add(&frame->names, name, (uint32_t)walk->n_values))) {
        tare__walk_no_memory(walk);
        return NULL;
    }
    value->name = name;
    value->rank = TARE__MODEL_UNKNOWN;
    value->made = value->last = walk->time;
    value->role = TARE__ROLE_UNUSED;
    value->used_by = TARE__SLICES_NONE;
    walk->values[walk->n_values++] = value;
    return value;
}

uint32_t tare__walk_find(const tare__frame *frame, tare__slice name)
{
    for (; frame; frame = frame->outer) {
        uint32_t number = tare__slices_find(&frame->names, name);
        if (number != TARE__SLICES_NONE)
            return number;
    }
    return TARE__SLICES_NONE;
}

/* Marks everything that `value` needs as live now. */
static void touch(tare__walk *walk, tare__value *value)
{
    value->last = walk->time;
    if (value->shares)
        value->shares->last = walk->time;
}

int tare__walk_open(tare__walk *walk, tare__frame *frame, const tare__onnx_node *node, tare__step *step)
{
    size_t n = (size_t)node->n_inputs + node->n_outputs;
    *step =
        (tare__step){.walk = walk, .frame = frame, .node = node, .n_in = node->n_inputs, .n_out = node->n_outputs};
    step->in = tare__arena_alloc(walk->model->arena, (n + 1) * sizeof *step->in);
    if (!step->in)
        return tare__walk_no_memory(walk);
    step->out = step->in + node->n_inputs;
    for (size_t i = 0; i < node->n_inputs && !walk->status; i++) {
        if (node->inputs[i].length == 0)
            continue;
        uint32_t number = tare__walk_find(frame, node->inputs[i]);
        if (number == TARE__SLICES_NONE)
            return tare__walk_wrong(walk, node->inputs[i], "nothing makes the input");
        step->in[i] = walk->values[number];
        if (step->in[i])
            touch(walk, step->in[i]);
    }
    for (size_t i = 0; i < node->n_outputs && !walk->status; i++) {
        if (node->outputs[i].length == 0)
            continue;
        step->out[i] = tare__walk_add(walk, frame, node->outputs[i]);
        if (step->out[i])
            step->out[i]->activation = true;
    }
    return walk->status;
}

/* ---- layers -------------------------------------------------------------------------------------------------- */
/* A node without a name is named after its operator and its output. */
static const char *layer_name(tare__step *step)
{
    const tare__onnx_node *node = step->node;
    tare__slice made = node->n_outputs ? node->outputs[0] : (tare__slice){0};
    tare__text text = {0};
    tare__text_string(&text, step->frame->prefix);
    if (node->name.length) {
        tare__text_append(&text, (const char *)node->name.data, node->name.length);
    } else {
        tare__text_append(&text, (const char *)node->op.data, node->op.length);
        tare__text_string(&text, ":");
        tare__text_append(&text, (const char *)made.data, made.length);
    }
    const char *name =
        text.failed ? "" : tare__walk_copy(step->walk, (tare__slice){(uint8_t *)text.data, text.length});
    if (text.failed)
        tare__walk_no_memory(step->walk);
    tare__text_free(&text);
    return name;
}

/* "['', 'layer1', 'layer1.0', 'conv2d']": the last but one is the module, the last the call in it. */
static const char *module_of(tare__step *step)
{
    tare__slice list = step->node->module;
    tare__slice parts[2] = {{0}, {0}};
    for (size_t at = 0; at < list.length; at++) {
        if (list.data[at] != '\'' && list.data[at] != '"')
            continue;
        uint8_t quote = list.data[at];
        size_t end = at + 1;
        while (end < list.length && list.data[end] != quote)
            end++;
        parts[0] = parts[1];
        parts[1] = (tare__slice){list.data + at + 1, end - at - 1};
        at = end;
    }
    return parts[0].length ? tare__walk_copy(step->walk, parts[0]) : NULL;
}

static bool multiply(uint64_t *value, uint64_t times)
{
    return !__builtin_mul_overflow(*value, times, value);
}

static uint64_t bytes_made(const tare__step *step)
{
    uint64_t sum = 0, bytes;
    for (size_t i = 0; i < step->n_out; i++) {
        const tare__value *value = step->out[i];
        int64_t elements = value && !value->shares && value->activation ? tare__elements(value) : 0;
        if (elements > 0 && tare__onnx_bytes_of(value->type, (uint64_t)elements, &bytes))
            sum += bytes; /* each is below 2^63: those of one node cannot overflow before the total does */
    }
    return sum;
}

static const char *input_name(const tare__step *step, size_t i)
{
    return i < step->n_in && step->in[i] ? tare__walk_copy(step->walk, step->in[i]->name) : "";
}

int tare__walk_close(tare__step *step)
{
    tare__walk *walk = step->walk;
    if (!tare__array_fit(&walk->layers, &walk->layers_room, walk->n_layers + 1, sizeof *walk->layers) ||
        !tare__array_fit(&walk->layer_outputs, &walk->outputs_room, walk->n_layers + 1, sizeof *walk->layer_outputs))
        return tare__walk_no_memory(walk);
    tare__model_layer layer = {
        .name = layer_name(step),
        .node = tare__walk_copy(walk, step->node->name),
        .op = tare__walk_copy(walk, step->node->op),
        .domain = tare__walk_copy(walk, step->node->domain),
        .module = module_of(step),
        .state = step->state,
        .reason = step->reason,
        .times = step->frame->times,
        .cost = {.macs = step->macs, .other = step->other, .output_bytes = bytes_made(step)},
        .macs_at_least = step->macs_at_least || (step->frame->at_least && step->macs),
        .other_at_least = step->other_at_least || (step->frame->at_least && step->other),
        .inputs = {input_name(step, 0), input_name(step, 1)},
    };
    if (!multiply(&layer.cost.macs, layer.times) || !multiply(&layer.cost.other, layer.times) ||
        !multiply(&layer.cost.output_bytes, layer.times))
        return tare__walk_wrong(walk, step->node->name, "more operations than can be counted are in the loop around");
    walk->layers[walk->n_layers] = layer;
    walk->layer_outputs[walk->n_layers++] = step->n_out ? step->out[0] : NULL;
    tare__weights_use(step);
    walk->time++;
    return walk->status;
}

void tare__walk_drop(tare__walk *walk, size_t from, size_t to)
{
    size_t after = walk->n_layers - to;
    memmove(walk->layers + from, walk->layers + to, after * sizeof *walk->layers);
    memmove(walk->layer_outputs + from, walk->layer_outputs + to, after * sizeof *walk->layer_outputs);
    walk->n_layers -= to - from;
    size_t kept = walk->n_claims;
    while (kept && walk->claims[kept - 1]->used_by >= from)
        kept--;
    for (size_t i = kept; i < walk->n_claims; i++) {
        tare__value *value = walk->claims[i];
        bool dropped = value->used_by < to;
        value->used_by = dropped ? TARE__SLICES_NONE : value->used_by - (uint32_t)(to - from);
        if (!dropped)
            walk->claims[kept++] = value;
    }
    walk->n_claims = kept;
}

/* Information of the file on a value, if the rules could not determine it. */
static void fill_from_file(tare__walk *walk, const tare__frame *frame, tare__value *value)
{
    uint32_t number = frame->graph ? tare__slices_find(&frame->infos, value->name) : TARE__SLICES_NONE;
    if (number == TARE__SLICES_NONE)
        return;
    const tare__onnx_info *info = number < frame->graph->n_infos
                                      ? &frame->graph->infos[number]
                                      : &frame->graph->outputs[number - frame->graph->n_infos];
    if (value->type == 0)
        value->type = info->type;
    if (info->rank < 0 || (value->rank >= 0 && value->rank != info->rank))
        return;
    int64_t dims[TARE__MODEL_RANK_MAX], kept[TARE__MODEL_RANK_MAX];
    bool better = value->rank < 0;
    for (int i = 0; i < info->rank; i++) {
        int64_t said = walk->infos_hold ? info->dims[i].value : UNKNOWN;
        for (size_t d = 0; d < walk->n_dimensions && info->dims[i].symbol.length; d++) {
            if (tare__slice_is(info->dims[i].symbol, walk->dimensions[d].name))
                said = walk->dimensions[d].value;
        }
        kept[i] = value->rank >= 0 ? value->dims[i] : UNKNOWN;
        dims[i] = kept[i] >= 0 ? kept[i] : said;
        better = better || dims[i] != kept[i];
    }
    tare__step step = {
        .walk = walk, .frame = frame, .node = &(tare__onnx_node){.name = value->name}, .out = &value, .n_out = 1};
    if (better)
        tare__set(&step, 0, value->type, info->rank, dims);
}

/* Values computed from weights alone are computed once, when a model is loaded: they cost nothing at run time. */
static bool settle_constant(tare__step *step)
{
    bool constant = false;
    for (size_t i = 0; i < step->n_in; i++) {
        if (step->in[i] && !step->in[i]->constant)
            return false;
        constant = constant || step->in[i];
    }
    for (size_t i = 0; i < step->n_out && constant; i++) {
        if (step->out[i]) {
            step->out[i]->constant = true;
            step->out[i]->activation = false;
        }
    }
    return constant;
}

static void apply_rule(tare__step *step)
{
    tare__walk *walk = step->walk;
    const tare__rule *rule = tare__rule_find(walk, step->node);
    if (rule) {
        rule->shape(step);
        tare__fold(step);
    }
    for (size_t i = 0; i < step->n_out && !walk->status; i++) {
        if (step->out[i])
            fill_from_file(walk, step->frame, step->out[i]);
    }
    if (!rule) {
        step->state = TARE__MODEL_NO_RULE;
        step->reason = "no rule for this operator";
        step->macs_at_least = step->other_at_least = true;
    } else if (!walk->status && !settle_constant(step)) {
        rule->cost(step);
    }
}

int tare__walk_nodes(tare__walk *walk, tare__frame *frame, const tare__onnx_node *nodes, size_t n)
{
    for (size_t i = 0; i < n && !walk->status; i++) {
        tare__step step;
        if (++walk->walked > TARE__WALK_MAX || walk->time == UINT32_MAX)
            return walk->status = tare__fail(walk->model->error, TARE_E_INPUT,
                                             "'%.200s': its functions unfold into more than %u nodes",
                                             walk->model->path, TARE__WALK_MAX);
        if (tare__walk_control(walk, frame, &nodes[i]))
            continue;
        if (tare__walk_open(walk, frame, &nodes[i], &step))
            break;
        apply_rule(&step);
        if (!walk->status)
            tare__walk_close(&step);
    }
    return walk->status;
}

void tare__walk_free(tare__walk *walk)
{
    tare__slices_free(&walk->rules);
    free(walk->values);
    free(walk->layers);
    free(walk->layer_outputs);
    free(walk->claims);
}
