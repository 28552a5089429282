/* model_json: a model as JSON: every table, with exact integers.
 * Owned by the calling thread. docs/JSON.md tells the keys.
 * Must not know how the model was weighed. */
#include "flush.h"
#include "model.h"
#include "model_measured.h"

typedef struct writing {
    tare__json json;
    tare__text text;
    const tare__emit_sink *sink;
    tare__error *error;
    int status;
} writing;

const char *tare__model_state_name(tare__model_state state)
{
    static const char *const names[] = {
        [TARE__MODEL_COUNTED] = "counted", [TARE__MODEL_NO_RULE] = "no rule", [TARE__MODEL_NO_SHAPE] = "no shape"};
    return names[state];
}

static void put_unsigned(writing *to, const char *key, uint64_t value)
{
    tare__json_key(&to->json, key);
    tare__json_unsigned(&to->json, value);
}

static void put_string(writing *to, const char *key, const char *value)
{
    tare__json_key(&to->json, key);
    tare__json_string(&to->json, value);
}

/* What is not known is null. */
static void put_known(writing *to, int64_t value)
{
    if (value < 0)
        tare__json_null(&to->json);
    else
        tare__json_signed(&to->json, value);
}

static void put_tensor(writing *to, const tare__model_tensor *tensor)
{
    tare__json_object(&to->json);
    put_string(to, "name", tensor->name);
    put_string(to, "type", tensor->type);
    tare__json_key(&to->json, "shape");
    if (tensor->rank < 0) {
        tare__json_null(&to->json);
    } else {
        tare__json_array(&to->json);
        for (int i = 0; i < tensor->rank; i++)
            put_known(to, tensor->dims[i]);
        tare__json_end_array(&to->json);
    }
    if (tensor->symbols) {
        tare__json_key(&to->json, "symbols");
        tare__json_array(&to->json);
        for (int i = 0; i < tensor->rank; i++)
            tare__json_string(&to->json, tensor->symbols[i]);
        tare__json_end_array(&to->json);
    }
    tare__json_key(&to->json, "bytes");
    put_known(to, tensor->bytes);
    tare__json_end_object(&to->json);
}

/* A figure of what was not counted is null, not 0. */
static void put_cost(writing *to, const tare__model_cost *cost, bool counted)
{
    const struct {
        const char *key;
        uint64_t value;
    } computed[] = {{"macs", cost->macs}, {"flops", 2 * cost->macs}, {"other_operations", cost->other}};
    for (size_t i = 0; i < TARE__COUNT_OF(computed); i++) {
        tare__json_key(&to->json, computed[i].key);
        if (counted)
            tare__json_unsigned(&to->json, computed[i].value);
        else
            tare__json_null(&to->json);
    }
    put_unsigned(to, "parameters", cost->parameters);
    put_unsigned(to, "weight_bytes", cost->weight_bytes);
    put_unsigned(to, "output_bytes", cost->output_bytes);
}

static void put_file(writing *to, const tare__model_report *report)
{
    put_string(to, "path", report->path);
    put_string(to, "format", report->format);
    put_string(to, "graph", report->graph);
    put_string(to, "producer", report->producer);
    put_string(to, "producer_version", report->producer_version);
    tare__json_key(&to->json, "ir_version");
    tare__json_signed(&to->json, report->ir_version);
    tare__json_key(&to->json, "opsets");
    tare__json_array(&to->json);
    for (size_t i = 0; i < report->n_opsets; i++) {
        tare__json_object(&to->json);
        put_string(to, "domain", report->opsets[i].domain);
        tare__json_key(&to->json, "version");
        tare__json_signed(&to->json, report->opsets[i].version);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
    put_unsigned(to, "file_bytes", report->file_bytes);
    put_unsigned(to, "external_bytes", report->external_bytes);
    put_unsigned(to, "external_files", report->external_files);
}

static void put_dimensions(writing *to, const tare__model_report *report)
{
    tare__json_key(&to->json, "dimensions");
    tare__json_array(&to->json);
    for (size_t i = 0; i < report->n_dimensions; i++) {
        tare__json_object(&to->json);
        put_string(to, "name", report->dimensions[i].name);
        tare__json_key(&to->json, "value");
        tare__json_signed(&to->json, report->dimensions[i].value);
        tare__json_key(&to->json, "assumed");
        tare__json_bool(&to->json, report->dimensions[i].assumed);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
}

static void put_tensors(writing *to, const char *key, const tare__model_tensor *tensors, size_t n)
{
    tare__json_key(&to->json, key);
    tare__json_array(&to->json);
    for (size_t i = 0; i < n; i++)
        put_tensor(to, &tensors[i]);
    tare__json_end_array(&to->json);
}

static void put_total(writing *to, const tare__model_report *report)
{
    tare__json_key(&to->json, "total");
    tare__json_object(&to->json);
    put_cost(to, &report->total, true);
    put_unsigned(to, "nodes", report->n_layers);
    put_unsigned(to, "nodes_not_counted", report->not_counted);
    put_unsigned(to, "activation_peak_bytes", report->activation_peak_bytes);
    put_string(to, "activation_peak_at", report->activation_peak_at);
    tare__json_key(&to->json, "activations_known");
    tare__json_bool(&to->json, report->activations_known);
    tare__json_end_object(&to->json);
}

static void put_weights(writing *to, const char *key, const char *what, const tare__model_weights *rows, size_t n)
{
    tare__json_key(&to->json, key);
    tare__json_array(&to->json);
    for (size_t i = 0; i < n; i++) {
        tare__json_object(&to->json);
        put_string(to, what, rows[i].what);
        put_unsigned(to, "tensors", rows[i].tensors);
        put_unsigned(to, "elements", rows[i].elements);
        put_unsigned(to, "bytes", rows[i].bytes);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
}

static void put_operators(writing *to, const tare__model_report *report)
{
    tare__json_key(&to->json, "operators");
    tare__json_array(&to->json);
    for (size_t i = 0; i < report->n_operators; i++) {
        const tare__model_operator *row = &report->operators[i];
        tare__json_object(&to->json);
        put_string(to, "op", row->op);
        put_string(to, "domain", row->domain);
        put_unsigned(to, "nodes", row->nodes);
        put_unsigned(to, "not_counted", row->not_counted);
        put_string(to, "reason", row->reason);
        put_cost(to, &row->cost, row->not_counted < row->nodes);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
}

static void put_layers(writing *to, const tare__model_report *report)
{
    tare__json_key(&to->json, "layers");
    tare__json_array(&to->json);
    for (size_t i = 0; i < report->n_layers && !to->status; i++) {
        const tare__model_layer *layer = &report->layers[i];
        tare__json_object(&to->json);
        put_string(to, "name", layer->name);
        put_string(to, "node", layer->node);
        put_string(to, "op", layer->op);
        put_string(to, "domain", layer->domain);
        put_string(to, "module", layer->module);
        put_string(to, "state", tare__model_state_name(layer->state));
        put_string(to, "reason", layer->reason);
        put_unsigned(to, "times", layer->times);
        put_cost(to, &layer->cost, layer->state == TARE__MODEL_COUNTED);
        tare__json_key(&to->json, "output");
        if (layer->output)
            put_tensor(to, layer->output);
        else
            tare__json_null(&to->json);
        tare__json_end_object(&to->json);
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
    }
    tare__json_end_array(&to->json);
}

static void put_notes(writing *to, const tare__model_report *report)
{
    tare__json_key(&to->json, "notes");
    tare__json_array(&to->json);
    for (size_t i = 0; i < report->n_notes; i++)
        tare__json_string(&to->json, report->notes[i]);
    tare__json_end_array(&to->json);
}

int tare__emit_model_json(const tare__model_view *view, const tare__emit_options *options,
                          const tare__emit_sink *sink, tare__error *error)
{
    writing to = {.sink = sink, .error = error};
    const tare__model_report *report = view->report;
    tare__json_begin(&to.json, &to.text, options->pretty);
    tare__json_object(&to.json);
    put_unsigned(&to, "tare_model", 1);
    put_file(&to, report);
    put_dimensions(&to, report);
    put_tensors(&to, "inputs", report->inputs, report->n_inputs);
    put_tensors(&to, "outputs", report->outputs, report->n_outputs);
    put_total(&to, report);
    put_weights(&to, "weights_by_type", "type", report->types, report->n_types);
    put_weights(&to, "weights_by_use", "use", report->uses, report->n_uses);
    put_operators(&to, report);
    put_layers(&to, report);
    put_notes(&to, report);
    tare__json_key(&to.json, "measured");
    tare__measured_json(&to.json, view->measured);
    if (view->figures) {
        tare__json_key(&to.json, "figures");
        tare__figures_write_json(&to.json, view->figures);
    }
    tare__json_end_object(&to.json);
    tare__text_string(&to.text, "\n");
    if (!to.status)
        to.status = tare__emit_flush(&to.text, sink, error);
    tare__text_free(&to.text);
    return to.status;
}
