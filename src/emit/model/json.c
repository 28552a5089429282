/* model json: a model as JSON: every table, with exact integers.
 * Owned by the calling thread. docs/JSON.md tells the keys.
 * Must not know how the model was weighed. */
#include "emit/flush.h"
#include "model.h"
#include "measured.h"

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

/* What is not known is null. */
static void put_known(writing *to, int64_t value)
{
    if (value < 0)
        tare__json_null(&to->json);
    else
        tare__json_signed(&to->json, value);
}

/* What an input is filled with when the model is run. */
static void put_fill(writing *to, const tare__model_fill *fill)
{
    bool file = fill->kind == TARE__FILL_FILE;
    tare__text text = {0};
    tare__model_put_fill(&text, fill);
    tare__json_key(&to->json, fill->given ? "given" : "generated");
    tare__json_object(&to->json);
    tare__json_put_string(&to->json, "kind", tare__model_fill_name(fill->kind));
    tare__json_put_string(&to->json, file ? "path" : "meaning", fill->what);
    if (fill->kind == TARE__FILL_UNIFORM || fill->kind == TARE__FILL_WHOLE) {
        tare__json_put_double(&to->json, "low", fill->low);
        tare__json_put_double(&to->json, "high", fill->high);
    }
    if (fill->kind == TARE__FILL_VALUES) {
        tare__json_key(&to->json, "values");
        tare__json_array(&to->json);
        for (size_t i = 0; i < fill->n_values; i++)
            tare__json_double(&to->json, fill->values[i]);
        tare__json_end_array(&to->json);
    }
    to->text.failed = to->text.failed || text.failed;
    tare__json_put_string(&to->json, "text", text.failed ? "" : text.data);
    tare__json_end_object(&to->json);
    tare__text_free(&text);
}

static void put_tensor(writing *to, const tare__model_tensor *tensor, const tare__model_fill *fill)
{
    tare__json_object(&to->json);
    tare__json_put_string(&to->json, "name", tensor->name);
    tare__json_put_string(&to->json, "type", tensor->type);
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
    if (fill)
        put_fill(to, fill);
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
    tare__json_put_unsigned(&to->json, "parameters", cost->parameters);
    tare__json_put_unsigned(&to->json, "weight_bytes", cost->weight_bytes);
    tare__json_put_unsigned(&to->json, "output_bytes", cost->output_bytes);
}

static void put_file(writing *to, const tare__model_report *report)
{
    tare__json_put_string(&to->json, "path", report->path);
    tare__json_put_string(&to->json, "format", report->format);
    tare__json_put_string(&to->json, "graph", report->graph);
    tare__json_put_string(&to->json, "producer", report->producer);
    tare__json_put_string(&to->json, "producer_version", report->producer_version);
    tare__json_key(&to->json, "ir_version");
    tare__json_signed(&to->json, report->ir_version);
    tare__json_key(&to->json, "opsets");
    tare__json_array(&to->json);
    for (size_t i = 0; i < report->n_opsets; i++) {
        tare__json_object(&to->json);
        tare__json_put_string(&to->json, "domain", report->opsets[i].domain);
        tare__json_key(&to->json, "version");
        tare__json_signed(&to->json, report->opsets[i].version);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
    tare__json_put_unsigned(&to->json, "file_bytes", report->file_bytes);
    tare__json_put_unsigned(&to->json, "external_bytes", report->external_bytes);
    tare__json_put_unsigned(&to->json, "external_files", report->external_files);
}

static void put_dimensions(writing *to, const tare__model_report *report)
{
    tare__json_key(&to->json, "dimensions");
    tare__json_array(&to->json);
    for (size_t i = 0; i < report->n_dimensions; i++) {
        tare__json_object(&to->json);
        tare__json_put_string(&to->json, "name", report->dimensions[i].name);
        tare__json_key(&to->json, "value");
        tare__json_signed(&to->json, report->dimensions[i].value);
        tare__json_put_bool(&to->json, "assumed", report->dimensions[i].assumed);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
}

static void put_tensors(writing *to, const char *key, const tare__model_tensor *tensors,
                        const tare__model_fill *fills, size_t n)
{
    tare__json_key(&to->json, key);
    tare__json_array(&to->json);
    for (size_t i = 0; i < n; i++)
        put_tensor(to, &tensors[i], fills ? &fills[i] : NULL);
    tare__json_end_array(&to->json);
}

/* Beside figures that are lower bounds: of MACs and FLOPs; of the other operations. */
static void put_at_least(writing *to, bool macs, bool other)
{
    tare__json_put_bool(&to->json, "at_least", macs);
    tare__json_put_bool(&to->json, "other_at_least", other);
}

/* What the totals do not have in them, or not whole. */
static void put_not_counted(writing *to, const tare__model_report *report)
{
    tare__json_key(&to->json, "not_counted");
    tare__json_array(&to->json);
    for (size_t i = 0; i < report->n_layers; i++) {
        const tare__model_layer *layer = &report->layers[i];
        if (!layer->reason)
            continue;
        tare__json_object(&to->json);
        tare__json_put_string(&to->json, "name", layer->name);
        tare__json_put_string(&to->json, "op", layer->op);
        tare__json_put_string(&to->json, "domain", layer->domain);
        tare__json_put_string(&to->json, "reason", layer->reason);
        put_at_least(to, layer->macs_at_least, layer->other_at_least);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
}

static void put_total(writing *to, const tare__model_report *report)
{
    tare__json_key(&to->json, "total");
    tare__json_object(&to->json);
    put_cost(to, &report->total, true);
    put_at_least(to, report->macs_at_least, report->other_at_least);
    tare__json_put_unsigned(&to->json, "nodes", report->n_layers);
    tare__json_put_unsigned(&to->json, "nodes_not_counted", report->not_counted);
    tare__json_put_unsigned(&to->json, "activation_peak_bytes", report->activation_peak_bytes);
    tare__json_put_unsigned(&to->json, "activation_sum_bytes", report->activation_sum_bytes);
    tare__json_put_string(&to->json, "activation_peak_at", report->activation_peak_at);
    tare__json_put_bool(&to->json, "activations_known", report->activations_known);
    tare__json_end_object(&to->json);
}

static void put_weights(writing *to, const char *key, const char *what, const tare__model_weights *rows, size_t n)
{
    tare__json_key(&to->json, key);
    tare__json_array(&to->json);
    for (size_t i = 0; i < n; i++) {
        tare__json_object(&to->json);
        tare__json_put_string(&to->json, what, rows[i].what);
        tare__json_put_unsigned(&to->json, "tensors", rows[i].tensors);
        tare__json_put_unsigned(&to->json, "elements", rows[i].elements);
        tare__json_put_unsigned(&to->json, "bytes", rows[i].bytes);
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
        tare__json_put_string(&to->json, "op", row->op);
        tare__json_put_string(&to->json, "domain", row->domain);
        tare__json_put_unsigned(&to->json, "nodes", row->nodes);
        tare__json_put_unsigned(&to->json, "not_counted", row->not_counted);
        tare__json_put_string(&to->json, "reason", row->reason);
        put_cost(to, &row->cost, row->not_counted < row->nodes);
        put_at_least(to, row->macs_at_least, row->other_at_least);
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
        tare__json_put_string(&to->json, "name", layer->name);
        tare__json_put_string(&to->json, "node", layer->node);
        tare__json_put_string(&to->json, "op", layer->op);
        tare__json_put_string(&to->json, "domain", layer->domain);
        tare__json_put_string(&to->json, "module", layer->module);
        tare__json_put_string(&to->json, "state", tare__model_state_name(layer->state));
        tare__json_put_string(&to->json, "reason", layer->reason);
        tare__json_put_unsigned(&to->json, "times", layer->times);
        put_cost(to, &layer->cost, layer->state == TARE__MODEL_COUNTED);
        put_at_least(to, layer->macs_at_least, layer->other_at_least);
        tare__json_key(&to->json, "output");
        if (layer->output)
            put_tensor(to, layer->output, NULL);
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
    tare__json_put_unsigned(&to.json, "tare_model", 1);
    put_file(&to, report);
    put_dimensions(&to, report);
    put_tensors(&to, "inputs", report->inputs, report->fills, report->n_inputs);
    put_tensors(&to, "outputs", report->outputs, NULL, report->n_outputs);
    put_total(&to, report);
    put_not_counted(&to, report);
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
