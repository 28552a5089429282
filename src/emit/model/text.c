/* model text: a model as text for a terminal: its totals, costs by operator, its most expensive layers.
 * Owned by the calling thread.
 * Must not know how the model was analyzed. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/flush.h"
#include "emit/layout.h"
#include "measured.h"
#include "model/model.h"

#define FEW_OPERATORS 15
#define FEW_LAYERS    10
#define FEW_NOTES     6
#define FEW_NAMES     3

/* ---- text ---------------------------------------------------------------------------------------------------- */
static void put_shape(tare__text *out, const tare__model_tensor *tensor)
{
    if (tensor->rank < 0) {
        tare__text_string(out, "[?]");
        return;
    }
    tare__text_string(out, "[");
    for (int i = 0; i < tensor->rank; i++) {
        const char *symbol = tensor->symbols ? tensor->symbols[i] : NULL;
        tare__text_string(out, i ? ", " : "");
        if (symbol)
            tare__text_format(out, "%s=", symbol);
        if (tensor->dims[i] < 0)
            tare__text_string(out, "?");
        else
            tare__text_format(out, "%" PRId64, tensor->dims[i]);
    }
    tare__text_string(out, "]");
}

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

static const char *at_least(bool at_least)
{
    return at_least ? "at least " : "";
}

static const char *operator_name(char out[128], const char *op, const char *domain)
{
    if (*domain)
        snprintf(out, 128, "%.50s.%.70s", domain, op);
    else
        snprintf(out, 128, "%.120s", op);
    return out;
}

/* The most expensive first: by MACs, then by the others. */
TARE__ORDER_OF_POINTERS(by_weight, tare__model_layer,
                        TARE__FALLING(cost.macs) TARE__FALLING(cost.other) TARE__BY_ADDRESS)

static const tare__model_layer **heaviest(const tare__model_report *report)
{
    const tare__model_layer **order = malloc((report->n_layers + 1) * sizeof *order);
    for (size_t i = 0; order && i < report->n_layers; i++)
        order[i] = &report->layers[i];
    if (order)
        qsort(order, report->n_layers, sizeof *order, by_weight);
    return order;
}

/* ---- the headline -------------------------------------------------------------------------------------------- */
void tare__model_put_origin(tare__text *out, const tare__model_report *report)
{
    for (size_t i = 0; i < report->n_opsets; i++)
        tare__text_format(out, ", %s%sopset %" PRId64, report->opsets[i].domain, *report->opsets[i].domain ? " " : "",
                          report->opsets[i].version);
    if (*report->producer)
        tare__text_format(out, ", made by %s %s", report->producer, report->producer_version);
}

static void put_what(tare__page *page, const tare__model_report *report)
{
    tare__text text = {0};
    tare__text_format(&text, "%s: ONNX of IR version %" PRId64, tare__base_name(report->path), report->ir_version);
    tare__model_put_origin(&text, report);
    tare__page_labelled_words(page, "model", &text);
}

static void put_compute(tare__page *page, const tare__model_report *report)
{
    char nodes[TARE__COUNTED_BYTES];
    tare__text text = {0};
    char macs[TARE__UNIT_BYTES], flops[TARE__UNIT_BYTES], other[TARE__UNIT_BYTES];
    tare__text_format(&text, "%s%s MACs, %s FLOPs (2 a MAC); and %s%s other operations",
                      at_least(report->macs_at_least),
                      tare__unit_count(macs, (double)report->total.macs),
                      tare__unit_count(flops, 2 * (double)report->total.macs),
                      at_least(report->other_at_least),
                      tare__unit_count(other, (double)report->total.other));
    if (report->not_counted)
        tare__text_format(&text, "; %" PRIu64 " of %s not counted", report->not_counted,
                          tare__unit_counted(nodes, (double)report->n_layers, "node", NULL));
    tare__page_labelled_words(page, "compute", &text);
}

static void put_weights(tare__page *page, const tare__model_report *report)
{
    tare__text text = {0};
    char count[TARE__UNIT_BYTES], bytes[TARE__UNIT_BYTES];
    tare__text_format(&text, "%s parameters; %s of weights",
                      tare__unit_count(count, (double)report->total.parameters),
                      tare__unit_bytes(bytes, (double)report->total.weight_bytes));
    for (size_t i = 0; i < report->n_types && report->n_types > 1; i++)
        tare__text_format(&text, "%s%s %s", i ? ", " : " (", report->types[i].what,
                          tare__unit_bytes(bytes, (double)report->types[i].bytes));
    tare__text_string(&text, report->n_types > 1 ? ")" : "");
    if (report->n_types == 1)
        tare__text_format(&text, " (%s)", report->types[0].what);
    tare__page_labelled_words(page, "weights", &text);
}

/* The size of the graph and of everything stored in it, not of the weights alone. */
static void put_file(tare__page *page, const tare__model_report *report)
{
    tare__text text = {0};
    char bytes[TARE__UNIT_BYTES];
    tare__text_format(&text, "%s", tare__unit_bytes(bytes, (double)report->file_bytes));
    if (report->external_files)
        tare__text_format(&text, ", and %s of external data in %zu file%s",
                          tare__unit_bytes(bytes, (double)report->external_bytes), report->external_files,
                          report->external_files == 1 ? "" : "s");
    tare__page_labelled_words(page, "file size", &text);
}

static void put_memory(tare__page *page, const tare__model_report *report)
{
    tare__text text = {0};
    char peak[TARE__UNIT_BYTES], sum[TARE__UNIT_BYTES];
    tare__text_format(&text, "activations peak at %s%s", report->activations_known ? "" : "least ",
                      tare__unit_bytes(peak, (double)report->activation_peak_bytes));
    if (report->activation_peak_at)
        tare__text_format(&text, ", in %s", report->activation_peak_at);
    tare__text_format(&text, "; all together they are %s", tare__unit_bytes(sum, (double)report->activation_sum_bytes));
    tare__page_labelled_words(page, "memory", &text);
}

static void put_tensors(tare__page *page, const char *label, const tare__model_tensor *tensors,
                        const tare__model_fill *fills, size_t n)
{
    size_t most = tare__page_rows(page, n, 6);
    for (size_t i = 0; i < most; i++) {
        tare__text text = {0};
        tare__text_format(&text, "%s %s ", tensors[i].name, tensors[i].type ? tensors[i].type : "?");
        put_shape(&text, &tensors[i]);
        if (fills) {
            tare__text_string(&text, fills[i].given ? ": " : ": generated, ");
            tare__model_put_fill(&text, &fills[i]);
        }
        tare__page_labelled_words(page, i ? "" : label, &text);
    }
    tare__page_more(page, n - most, strcmp(label, "input") == 0 ? "inputs" : "outputs");
}

static void put_notes(tare__page *page, const tare__model_report *report)
{
    size_t most = tare__page_rows(page, report->n_notes, FEW_NOTES);
    for (size_t i = 0; i < most; i++) {
        tare__page_labelled(page, TARE__PAGE_STRONG, "note", report->notes[i]);
    }
    tare__page_more(page, report->n_notes - most, "notes");
}

/* ---- tables -------------------------------------------------------------------------------------------------- */
static void put_operators(tare__page *page, const tare__model_report *report)
{
    size_t most = tare__page_rows(page, report->n_operators, FEW_OPERATORS);
    if (report->n_operators == 0)
        return;
    page->name_columns = page->options->width - TARE__PAGE_COUNT - 5 * TARE__PAGE_CELL;
    tare__page_title(page, "Operators", "nodes|MACs|share|other|params|made");
    for (size_t i = 0; i < most; i++) {
        const tare__model_operator *row = &report->operators[i];
        char name[128];
        bool none = row->not_counted == row->nodes;
        TARE__PAGE_ROW(page, 0, operator_name(name, row->op, row->domain), "", "cn%nnb", (double)row->nodes,
                       none ? NAN : (double)row->cost.macs, none ? NAN : share_of(row->cost.macs, report->total.macs),
                       none ? NAN : (double)row->cost.other, (double)row->cost.parameters,
                       (double)row->cost.output_bytes);
    }
    tare__page_more(page, report->n_operators - most, "operators");
}

static bool same_operator(const tare__model_layer *layer, const tare__model_operator *row)
{
    return strcmp(layer->op, row->op) == 0 && strcmp(layer->domain, row->domain) == 0;
}

/* The first few of its nodes that are not counted, by name. */
static void put_names(tare__text *text, const tare__model_report *report, const tare__model_operator *row)
{
    size_t named = 0;
    for (size_t i = 0; i < report->n_layers && named < FEW_NAMES; i++) {
        const tare__model_layer *layer = &report->layers[i];
        if (layer->reason && same_operator(layer, row))
            tare__text_format(text, "%s%.60s", named++ ? ", " : " (", layer->name);
    }
    tare__text_string(text, named && row->not_counted > named ? ", …)" : named ? ")" : "");
}

static void put_uncounted(tare__page *page, const tare__model_report *report)
{
    for (size_t i = 0; i < report->n_operators; i++) {
        const tare__model_operator *row = &report->operators[i];
        tare__text text = {0};
        char name[128];
        if (!row->reason)
            continue;
        if (row->not_counted)
            tare__text_format(&text, "not counted: %" PRIu64 " of %" PRIu64 " ", row->not_counted, row->nodes);
        else
            tare__text_string(&text, "not counted in full: ");
        tare__text_format(&text, "%s: %s", operator_name(name, row->op, row->domain), row->reason);
        put_names(&text, report, row);
        tare__page_words(page, TARE__PAGE_WARNING, 2, &text, TARE__PAGE_ENDLESS);
    }
}

static void put_layers(tare__page *page, const tare__model_report *report)
{
    const tare__model_layer **order = heaviest(report);
    size_t most = tare__page_rows(page, report->n_layers, FEW_LAYERS);
    if (!order) {
        page->out->failed = true;
        return;
    }
    page->name_columns = page->options->width - 42;
    if (most)
        tare__page_columns(page, page->options->all ? "Layers, the heaviest first" : "Heaviest layers",
                           "MACs|share|params|output",
                           (const unsigned[]){TARE__PAGE_CELL, TARE__PAGE_CELL, TARE__PAGE_CELL, 15});
    for (size_t i = 0; i < most; i++) {
        const tare__model_layer *layer = order[i];
        tare__text shape = {0};
        for (int d = 0; layer->output && d < layer->output->rank; d++) {
            if (layer->output->dims[d] < 0)
                tare__text_string(&shape, d ? "x?" : "?");
            else
                tare__text_format(&shape, "%s%" PRId64, d ? "x" : "", layer->output->dims[d]);
        }
        bool counted = layer->state == TARE__MODEL_COUNTED;
        char fitted[64];
        tare__page_label(page, 0, layer->name, "", TARE__PAGE_PLAIN);
        TARE__PAGE_CELLS(page, "n%n", counted ? (double)layer->cost.macs : NAN,
                         counted ? share_of(layer->cost.macs, report->total.macs) : NAN,
                         (double)layer->cost.parameters);
        tare__text_fit(fitted, sizeof fitted, shape.length ? shape.data : "", 14);
        tare__page_cell(page, 15, fitted);
        tare__page_line_end(page);
        tare__text_end(&shape, page->out);
    }
    tare__page_more(page, report->n_layers - most, "layers");
    free(order);
}

int tare__emit_model_text(const void *what, const tare__emit_options *options, const tare__emit_sink *sink,
                          tare__error *error)
{
    const tare__model_view *view = what;
    tare__text text = {0};
    tare__page page = {
        .out = &text, .options = options, .name_columns = TARE__PAGE_LABEL, .lines = TARE__PAGE_ENDLESS};
    const tare__model_report *report = view->report;
    put_what(&page, report);
    put_compute(&page, report);
    put_weights(&page, report);
    put_file(&page, report);
    put_memory(&page, report);
    put_tensors(&page, "input", report->inputs, report->fills, report->n_inputs);
    put_tensors(&page, "output", report->outputs, NULL, report->n_outputs);
    put_notes(&page, report);
    put_operators(&page, report);
    put_uncounted(&page, report);
    put_layers(&page, report);
    tare__measured_text(&page, view->measured);
    return tare__emit_end(&text, 0, sink, error);
}
