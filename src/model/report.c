/* report: converts the result of a walk to tables: layers, operators, the peak of live tensors.
 * Owned by the calling thread.
 * Must not know operators, nor how the report is shown. */
#include <stdlib.h>

#include "rules.h"
#include "tare.h"

static int too_much(tare__walk *walk)
{
    return walk->status = tare__fail(walk->model->error, TARE_E_INPUT,
                                     "'%.200s': its figures are larger than can be counted", walk->model->path);
}

/* False: its shape or its type is not known, or has no size. */
static bool bytes_of(const tare__value *value, uint64_t *bytes)
{
    int64_t elements = tare__elements(value);
    return elements >= 0 && tare__onnx_type_bits(value->type) &&
           tare__onnx_bytes_of(value->type, (uint64_t)elements, bytes);
}

/* ---- tensors ------------------------------------------------------------------------------------------------- */
static void tensor_of(tare__walk *walk, const tare__value *value, tare__model_tensor *tensor)
{
    uint64_t bytes;
    const char *type = tare__onnx_type_name(value->type);
    *tensor = (tare__model_tensor){.name = tare__walk_copy(walk, value->name),
                                   .type = type ? type : value->container,
                                   .element_type = value->type,
                                   .rank = value->rank,
                                   .dims = value->dims,
                                   .bytes = TARE__MODEL_UNKNOWN};
    if (bytes_of(value, &bytes))
        tensor->bytes = (int64_t)bytes;
}

const tare__onnx_info *tare__onnx_info_of(const tare__onnx_info *infos, size_t n, tare__slice name)
{
    for (size_t i = 0; i < n; i++) {
        if (tare__slice_equal(infos[i].name, name))
            return &infos[i];
    }
    return NULL;
}

/* The name of a symbol that has a number; names that exporters generate for dimensions are ignored. */
static const char *bound_name(const tare__walk *walk, tare__slice symbol)
{
    for (size_t i = 0; i < walk->n_dimensions && symbol.length; i++) {
        if (tare__slice_is(symbol, walk->dimensions[i].name))
            return walk->dimensions[i].name;
    }
    return NULL;
}

static const char *const *symbols_of(tare__walk *walk, const tare__onnx_info *info, int rank)
{
    bool any = false;
    for (int i = 0; info && i < info->rank; i++)
        any = any || bound_name(walk, info->dims[i].symbol);
    if (!any || info->rank != rank)
        return NULL;
    const char **symbols = tare__arena_alloc(walk->model->arena, sizeof *symbols * (size_t)(rank + 1));
    for (int i = 0; symbols && i < rank; i++)
        symbols[i] = bound_name(walk, info->dims[i].symbol);
    return symbols;
}

static const tare__model_tensor *tensors_of(tare__walk *walk, tare__value *const *values, size_t n,
                                            const tare__onnx_info *infos, size_t n_infos)
{
    tare__model_tensor *tensors = tare__arena_alloc(walk->model->arena, (n + 1) * sizeof *tensors);
    if (!tensors) {
        tare__walk_no_memory(walk);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        /* Outputs of a function or branch have another name inside: outputs use the graph's names. */
        const tare__onnx_info *info = n_infos == n ? &infos[i] : tare__onnx_info_of(infos, n_infos, values[i]->name);
        tensor_of(walk, values[i], &tensors[i]);
        if (info)
            tensors[i].name = tare__walk_copy(walk, info->name);
        tensors[i].symbols = symbols_of(walk, info, values[i]->rank);
    }
    return tensors;
}

/* ---- operators ----------------------------------------------------------------------------------------------- */
static bool add_cost(tare__model_cost *sum, const tare__model_cost *more)
{
    return !__builtin_add_overflow(sum->macs, more->macs, &sum->macs) &&
           !__builtin_add_overflow(sum->other, more->other, &sum->other) &&
           !__builtin_add_overflow(sum->parameters, more->parameters, &sum->parameters) &&
           !__builtin_add_overflow(sum->weight_bytes, more->weight_bytes, &sum->weight_bytes) &&
           !__builtin_add_overflow(sum->output_bytes, more->output_bytes, &sum->output_bytes);
}

TARE__ORDER(by_weight, tare__model_operator,
            TARE__FALLING(cost.macs) TARE__FALLING(cost.other) TARE__FALLING(nodes)
            TARE__BY_TEXT(op) TARE__BY_TEXT(domain))

/* The row of an operator, by name and domain; a new one if there is none. */
static tare__model_operator *operator_of(tare__walk *walk, tare__slices *names, tare__model_operator **rows,
                                         size_t *n, const tare__model_layer *layer)
{
    tare__text key = {0};
    tare__text_format(&key, "%s %s", layer->domain, layer->op);
    const char *kept = key.failed ? NULL : tare__arena_copy(walk->model->arena, key.data, key.length);
    tare__slice name = {(const uint8_t *)kept, key.length};
    tare__text_free(&key);
    uint32_t number = kept ? tare__slices_find(names, name) : TARE__SLICES_NONE;
    if (kept && number != TARE__SLICES_NONE)
        return &(*rows)[number];
    tare__model_operator *larger = kept ? tare__onnx_grow(walk->model, *rows, *n, sizeof **rows) : NULL;
    if (!larger || !tare__slices_add(names, name, (uint32_t)*n)) {
        tare__walk_no_memory(walk);
        return NULL;
    }
    *rows = larger;
    larger[*n] = (tare__model_operator){.op = layer->op, .domain = layer->domain};
    return &larger[(*n)++];
}

static int fill_operators(tare__walk *walk, tare__model_report *report)
{
    tare__slices names = {0};
    tare__model_operator *rows = NULL;
    for (size_t i = 0; i < walk->n_layers && !walk->status; i++) {
        const tare__model_layer *layer = &walk->layers[i];
        tare__model_operator *row = operator_of(walk, &names, &rows, &report->n_operators, layer);
        if (!row)
            break;
        row->nodes++;
        row->macs_at_least |= layer->macs_at_least;
        row->other_at_least |= layer->other_at_least;
        report->macs_at_least |= layer->macs_at_least;
        report->other_at_least |= layer->other_at_least;
        row->reason = row->reason ? row->reason : layer->reason;
        if (layer->state != TARE__MODEL_COUNTED) {
            row->not_counted++;
            report->not_counted++;
        }
        if (!add_cost(&row->cost, &layer->cost) ||
            __builtin_add_overflow(report->total.macs, layer->cost.macs, &report->total.macs) ||
            report->total.macs > UINT64_MAX / 2 ||
            __builtin_add_overflow(report->total.other, layer->cost.other, &report->total.other) ||
            __builtin_add_overflow(report->total.output_bytes, layer->cost.output_bytes, &report->total.output_bytes))
            too_much(walk);
    }
    tare__slices_free(&names);
    if (report->n_operators)
        qsort(rows, report->n_operators, sizeof *rows, by_weight);
    report->operators = rows;
    return walk->status;
}

/* ---- layers -------------------------------------------------------------------------------------------------- */
static int fill_layers(tare__walk *walk, tare__model_report *report)
{
    tare__model_layer *layers = tare__arena_alloc(walk->model->arena, (walk->n_layers + 1) * sizeof *layers);
    tare__model_tensor *outputs = tare__arena_alloc(walk->model->arena, (walk->n_layers + 1) * sizeof *outputs);
    if (!layers || !outputs)
        return tare__walk_no_memory(walk);
    for (size_t i = 0; i < walk->n_layers; i++) {
        layers[i] = walk->layers[i];
        if (walk->layer_outputs[i]) {
            tensor_of(walk, walk->layer_outputs[i], &outputs[i]);
            layers[i].output = &outputs[i];
        }
    }
    report->layers = layers;
    report->n_layers = walk->n_layers;
    return walk->status;
}

/* ---- the peak of what is live at once ---------------------------------------------------------------------------- */
/* Changes of live memory, by time; false: too many to count. */
static bool add_changes(const tare__walk *walk, uint64_t *born, uint64_t *gone, bool *known)
{
    for (size_t i = 0; i < walk->n_values; i++) {
        const tare__value *value = walk->values[i];
        uint64_t bytes;
        if (!value || !value->activation || value->shares || value->optional)
            continue;
        if (!bytes_of(value, &bytes)) {
            *known = *known && value->type == TARE__ONNX_STRING;
            continue;
        }
        uint32_t last = value->last < walk->time ? value->last : walk->time;
        if (__builtin_add_overflow(born[value->made], bytes, &born[value->made]) ||
            __builtin_add_overflow(gone[last], bytes, &gone[last]))
            return false;
    }
    return true;
}

static const char *layer_at(const tare__walk *walk, uint32_t time)
{
    for (size_t i = 0; i < walk->n_layers; i++) {
        if (walk->layer_outputs[i] && walk->layer_outputs[i]->made == time)
            return walk->layers[i].name;
    }
    return NULL;
}

/* The tensors of the peak, including the model's inputs. */
static void add_up(const tare__walk *walk, tare__model_report *report)
{
    report->activation_sum_bytes = report->total.output_bytes;
    for (size_t i = 0; i < walk->n_inputs; i++) {
        const tare__value *value = walk->inputs[i];
        uint64_t bytes;
        if (value && value->activation && !value->optional && bytes_of(value, &bytes))
            report->activation_sum_bytes += bytes; /* each is below 2^63 */
    }
}

static int find_peak(tare__walk *walk, tare__model_report *report)
{
    size_t n = (size_t)walk->time + 2;
    uint64_t *born = calloc(n, sizeof *born), *gone = calloc(n, sizeof *gone), live = 0;
    uint32_t at = 0;
    report->activations_known = !walk->open_branch;
    add_up(walk, report);
    if (!born || !gone) {
        tare__walk_no_memory(walk);
    } else if (!add_changes(walk, born, gone, &report->activations_known)) {
        too_much(walk);
    } else {
        for (uint32_t t = 0; t < n && !walk->status; t++) {
            if (__builtin_add_overflow(live, born[t], &live))
                too_much(walk);
            if (live > report->activation_peak_bytes) {
                report->activation_peak_bytes = live;
                at = t;
            }
            live -= gone[t];
        }
        report->activation_peak_at = layer_at(walk, at);
    }
    free(born);
    free(gone);
    return walk->status;
}

static void note_assumed(tare__walk *walk)
{
    tare__text names = {0};
    for (size_t i = 0; i < walk->n_dimensions; i++) {
        if (walk->dimensions[i].assumed && names.length < 200)
            tare__text_format(&names, "%s%.60s=%lld", names.length ? ", " : "", walk->dimensions[i].name,
                              (long long)walk->dimensions[i].value);
    }
    if (names.failed)
        tare__walk_no_memory(walk);
    else if (names.length)
        tare__walk_note(walk, "assumed, since the file leaves them open: %s (--batch N and --dim NAME=N set them)",
                        names.data);
    tare__text_free(&names);
}

/* ---- the whole ----------------------------------------------------------------------------------------------- */
int tare__report_fill(tare__walk *walk, tare__model_report *report)
{
    tare__onnx *model = walk->model;
    report->format = "onnx";
    report->path = tare__walk_copy(walk, tare__slice_of(model->path));
    report->graph = tare__walk_copy(walk, model->graph.name);
    report->producer = tare__walk_copy(walk, model->producer);
    report->producer_version = tare__walk_copy(walk, model->producer_version);
    report->ir_version = model->ir_version;
    report->opsets = model->opsets;
    report->n_opsets = model->n_opsets;
    report->file_bytes = model->bytes;
    report->dimensions = walk->dimensions;
    report->n_dimensions = walk->n_dimensions;
    report->inputs = tensors_of(walk, walk->inputs, walk->n_inputs, model->graph.inputs, model->graph.n_inputs);
    report->outputs = tensors_of(walk, walk->outputs, walk->n_outputs, model->graph.outputs, model->graph.n_outputs);
    report->n_inputs = walk->n_inputs;
    report->fills = walk->fills;
    report->n_outputs = walk->n_outputs;
    if (walk->status || tare__weights_outside(walk, report) || tare__weights_count(walk, report) ||
        fill_layers(walk, report) || fill_operators(walk, report) || find_peak(walk, report))
        return walk->status;
    note_assumed(walk);
    report->notes = walk->notes;
    report->n_notes = walk->n_notes;
    return walk->status;
}
