/* model csv: a model's tables as CSV: totals, operators, layers, tensors, weights.
 * Owned by the calling thread. docs/MODELS.md tells the columns.
 * Must not know how the model was weighed. */
#include <inttypes.h>

#include "emit/csv.h"
#include "emit/flush.h"
#include "model.h"
#include "measured.h"
#include "tare.h"

#define COST_COLUMNS "macs,flops,other_operations,parameters,weight_bytes,output_bytes,at_least,other_at_least"

static void put_cost(csv *to, const tare__model_cost *cost, bool counted)
{
    if (counted) {
        tare__csv_count(to, cost->macs);
        tare__csv_count(to, 2 * cost->macs);
        tare__csv_count(to, cost->other);
    } else {
        for (int i = 0; i < 3; i++)
            tare__csv_absent(to);
    }
    tare__csv_count(to, cost->parameters);
    tare__csv_count(to, cost->weight_bytes);
    tare__csv_count(to, cost->output_bytes);
}

/* Whether the figures before are lower bounds: MACs and FLOPs; the other operations. */
static void put_at_least(csv *to, bool macs, bool other)
{
    tare__csv_text(to, macs ? "true" : "false");
    tare__csv_text(to, other ? "true" : "false");
}

/* 1x3x224x224 */
static void put_shape(csv *to, const tare__model_tensor *tensor)
{
    tare__text text = {0};
    if (!tensor || tensor->rank < 0) {
        tare__csv_absent(to);
        return;
    }
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->dims[i] < 0)
            tare__text_string(&text, i ? "x?" : "?");
        else
            tare__text_format(&text, "%s%" PRId64, i ? "x" : "", tensor->dims[i]);
    }
    to->text.failed = to->text.failed || text.failed;
    tare__csv_text(to, text.data);
    tare__text_free(&text);
}

static void put_pair(csv *to, const char *key, uint64_t value, const char *unit)
{
    tare__csv_text(to, key);
    tare__csv_count(to, value);
    tare__csv_text(to, unit);
    tare__csv_end_row(to);
}

static void put_model(csv *to, const tare__model_report *report)
{
    put_pair(to, report->macs_at_least ? "macs_at_least" : "macs", report->total.macs, "");
    put_pair(to, report->macs_at_least ? "flops_at_least" : "flops", 2 * report->total.macs, "");
    put_pair(to, report->other_at_least ? "other_operations_at_least" : "other_operations", report->total.other, "");
    put_pair(to, "parameters", report->total.parameters, "");
    put_pair(to, "weight_bytes", report->total.weight_bytes, "bytes");
    put_pair(to, "file_bytes", report->file_bytes, "bytes");
    put_pair(to, "external_bytes", report->external_bytes, "bytes");
    put_pair(to, report->activations_known ? "activation_peak_bytes" : "activation_peak_bytes_at_least",
             report->activation_peak_bytes, "bytes");
    put_pair(to, "activation_sum_bytes", report->activation_sum_bytes, "bytes");
    put_pair(to, "nodes", report->n_layers, "");
    put_pair(to, "nodes_not_counted", report->not_counted, "");
}

static void put_operators(csv *to, const tare__model_report *report)
{
    for (size_t i = 0; i < report->n_operators; i++) {
        const tare__model_operator *row = &report->operators[i];
        tare__csv_text(to, row->op);
        tare__csv_text(to, row->domain);
        tare__csv_count(to, row->nodes);
        tare__csv_count(to, row->not_counted);
        put_cost(to, &row->cost, row->not_counted < row->nodes);
        put_at_least(to, row->macs_at_least, row->other_at_least);
        tare__csv_text(to, row->reason);
        tare__csv_end_row(to);
    }
}

static void put_layers(csv *to, const tare__model_report *report)
{
    for (size_t i = 0; i < report->n_layers && !to->status; i++) {
        const tare__model_layer *layer = &report->layers[i];
        tare__csv_text(to, layer->name);
        tare__csv_text(to, layer->node);
        tare__csv_text(to, layer->op);
        tare__csv_text(to, layer->domain);
        tare__csv_text(to, layer->module);
        tare__csv_count(to, layer->times);
        put_cost(to, &layer->cost, layer->state == TARE__MODEL_COUNTED);
        put_at_least(to, layer->macs_at_least, layer->other_at_least);
        tare__csv_text(to, layer->output ? layer->output->type : NULL);
        put_shape(to, layer->output);
        tare__csv_text(to, layer->reason);
        tare__csv_end_row(to);
    }
}

static void put_tensors(csv *to, const char *side, const tare__model_tensor *tensors, const tare__model_fill *fills,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tare__csv_text(to, side);
        tare__csv_text(to, tensors[i].name);
        tare__csv_text(to, tensors[i].type);
        put_shape(to, &tensors[i]);
        if (tensors[i].bytes < 0)
            tare__csv_absent(to);
        else
            tare__csv_signed(to, tensors[i].bytes);
        tare__text text = {0};
        if (fills)
            tare__model_put_fill(&text, &fills[i]);
        to->text.failed = to->text.failed || text.failed;
        tare__csv_text(to, fills && fills[i].given ? "given" : fills ? "generated" : NULL);
        tare__csv_text(to, text.failed ? NULL : text.data);
        tare__text_free(&text);
        tare__csv_end_row(to);
    }
}

static void put_sides(csv *to, const tare__model_report *report)
{
    put_tensors(to, "input", report->inputs, report->fills, report->n_inputs);
    put_tensors(to, "output", report->outputs, NULL, report->n_outputs);
}

static void put_rows(csv *to, const char *by, const tare__model_weights *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tare__csv_text(to, by);
        tare__csv_text(to, rows[i].what);
        tare__csv_count(to, rows[i].tensors);
        tare__csv_count(to, rows[i].elements);
        tare__csv_count(to, rows[i].bytes);
        tare__csv_end_row(to);
    }
}

static void put_weights(csv *to, const tare__model_report *report)
{
    put_rows(to, "type", report->types, report->n_types);
    put_rows(to, "use", report->uses, report->n_uses);
}

static const struct table {
    const char *name, *columns;
    void (*put)(csv *to, const tare__model_report *report);
} tables[] = {
    {"model.csv", "key,value,unit", put_model},
    {"operators.csv", "op,domain,nodes,not_counted," COST_COLUMNS ",reason", put_operators},
    {"layers.csv", "name,node,op,domain,module,times," COST_COLUMNS ",output_type,output_shape,reason", put_layers},
    {"tensors.csv", "side,name,type,shape,bytes,values,filled_with", put_sides},
    {"weights.csv", "by,what,tensors,elements,bytes", put_weights},
};

int tare__emit_model_csv(const tare__model_view *view, const tare__emit_files *files, tare__error *error)
{
    csv to = {.error = error};
    int status = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(tables) && !status; i++) {
        to.sink = files->open(files->context, tables[i].name);
        if (!to.sink) {
            status = TARE_E_SYSTEM;
            break;
        }
        tare__text_string(&to.text, tables[i].columns);
        tare__csv_end_row(&to);
        tables[i].put(&to, view->report);
        status = to.status ? to.status : tare__emit_flush(&to.text, to.sink, error);
        if (files->close(files->context) != 0 && !status)
            status = TARE_E_SYSTEM;
    }
    tare__text_free(&to.text);
    return status ? status : tare__measured_csv(view->measured, files, error);
}
