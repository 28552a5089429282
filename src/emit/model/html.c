/* model html: a model as one page that needs nothing else: totals, operators, layers, tensors.
 * Owned by the calling thread.
 * Must not know how the model was weighed, nor where the bytes go. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/flush.h"
#include "model.h"
#include "measured.h"
#include "emit/plain.h"

#define LAYERS_MAX 5000u /* more make no page that opens; CSV has them all */

typedef struct writing {
    tare__text text;
    const tare__emit_sink *sink;
    tare__error *error;
    int status;
} writing;

/* ---- elements ------------------------------------------------------------------------------------------------ */
static void put(writing *to, const char *html)
{
    tare__text_string(&to->text, html);
}

static void put_cell(writing *to, const char *text)
{
    put(to, "<td class=\"words\">");
    tare__plain_text(&to->text, text ? text : "");
    put(to, "</td>");
}

/* The figure as people read it, and exactly when pointed at. */
static void put_figure(writing *to, uint64_t value, bool known, const char *(*unit)(char *, double))
{
    char out[TARE__UNIT_BYTES];
    if (known)
        tare__text_format(&to->text, "<td title=\"%" PRIu64 "\">%s</td>", value, unit(out, (double)value));
    else
        put(to, "<td>n/a</td>");
}

static void put_share(writing *to, uint64_t part, uint64_t whole, bool known)
{
    char out[TARE__UNIT_BYTES];
    if (!known || whole == 0) {
        put(to, "<td>n/a</td>");
        return;
    }
    put(to, "<td>");
    tare__plain_share(&to->text, tare__model_share(part, whole));
    tare__text_format(&to->text, "%s</td>", tare__unit_percent(out, tare__model_share(part, whole)));
}

static void put_shape(writing *to, const tare__model_tensor *tensor)
{
    tare__text shape = {0};
    if (tensor)
        tare__model_put_shape(&shape, tensor);
    if (shape.failed)
        to->text.failed = true;
    put_cell(to, shape.data);
    tare__text_free(&shape);
}

static void open_table(writing *to, const char *id, const char *title, const char *columns)
{
    tare__text_format(&to->text, "<section id=\"%s\"><h2>%s</h2>", id, title);
    tare__plain_table(&to->text, title, columns);
}

static void close_table(writing *to)
{
    tare__plain_table_end(&to->text);
    put(to, "</section>\n");
}

static void open_row(writing *to, const char *name)
{
    put(to, "<tr><th scope=\"row\" class=\"name\">");
    tare__plain_text(&to->text, name);
    put(to, "</th>");
}

static void close_row(writing *to)
{
    put(to, "</tr>\n");
    if (!to->status)
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
}

/* ---- parts --------------------------------------------------------------------------------------------------- */
static void put_head(writing *to, const tare__model_report *report)
{
    const char *slash = strrchr(report->path, '/'), *name = slash ? slash + 1 : report->path;
    tare__text lead = {0};
    tare__text_format(&lead, "ONNX, IR version %" PRId64, report->ir_version);
    for (size_t i = 0; i < report->n_opsets; i++)
        tare__text_format(&lead, ", %s%sopset %" PRId64, report->opsets[i].domain,
                          *report->opsets[i].domain ? " " : "", report->opsets[i].version);
    if (*report->producer)
        tare__text_format(&lead, ", made by %s %s", report->producer, report->producer_version);
    to->text.failed = to->text.failed || lead.failed;
    tare__plain_begin(&to->text, name, name, lead.data);
    tare__text_free(&lead);
}

static void put_tile(writing *to, const char *what, const char *value, const char *more)
{
    tare__text_format(&to->text, "<div><dt>%s</dt><dd class=\"big\">%s</dd><dd class=\"sub\">", what, value);
    tare__plain_text(&to->text, more);
    put(to, "</dd></div>");
}

static void put_tiles(writing *to, const tare__model_report *report)
{
    char nodes[TARE__COUNTED_BYTES];
    char value[TARE__UNIT_BYTES], flops[TARE__UNIT_BYTES], total[TARE__UNIT_BYTES + 16];
    tare__text more = {0};
    put(to, "<section aria-labelledby=\"total-title\"><h2 id=\"total-title\">What it weighs</h2><dl "
            "class=\"tiles apart\">");
    tare__text_format(&more, "%s FLOPs, 2 a MAC; %s %" PRIu64 " MACs",
                      tare__unit_count(flops, 2 * (double)report->total.macs),
                      report->macs_at_least ? "at least" : "exactly", report->total.macs);
    if (report->not_counted)
        tare__text_format(&more, "; %" PRIu64 " of %s not counted", report->not_counted,
                          tare__unit_counted(nodes, (double)report->n_layers, "node", NULL));
    snprintf(total, sizeof total, "%s%s", tare__model_at_least(report->macs_at_least),
             tare__unit_count(value, (double)report->total.macs));
    put_tile(to, "MACs", total, more.data ? more.data : "");
    tare__text_clear(&more);
    tare__text_format(&more, "exactly %" PRIu64, report->total.parameters);
    put_tile(to, "Parameters", tare__unit_count(value, (double)report->total.parameters),
             more.data ? more.data : "");
    tare__text_clear(&more);
    tare__text_format(&more, "%" PRIu64 " bytes", report->total.weight_bytes);
    put_tile(to, "Weights", tare__unit_bytes(value, (double)report->total.weight_bytes),
             more.data ? more.data : "");
    tare__text_clear(&more);
    tare__text_format(&more, "%slive at once%s%s", report->activations_known ? "" : "at least; ",
                      report->activation_peak_at ? ", at " : "",
                      report->activation_peak_at ? report->activation_peak_at : "");
    put_tile(to, "Activations", tare__unit_bytes(value, (double)report->activation_peak_bytes),
             more.data ? more.data : "");
    tare__text_clear(&more);
    tare__text_format(&more, "and %zu file%s of external data: %s", report->external_files,
                      report->external_files == 1 ? "" : "s", tare__unit_bytes(flops, (double)report->external_bytes));
    put_tile(to, "File size", tare__unit_bytes(value, (double)report->file_bytes),
             report->external_files && more.data ? more.data : "");
    put(to, "</dl></section>\n");
    to->text.failed = to->text.failed || more.failed;
    tare__text_free(&more);
}

static void put_notes(writing *to, const tare__model_report *report)
{
    if (report->n_notes == 0)
        return;
    put(to, "<section aria-labelledby=\"notes-title\"><h2 id=\"notes-title\">Notes</h2><ul class=\"care\">");
    for (size_t i = 0; i < report->n_notes; i++) {
        put(to, "<li>");
        tare__plain_text(&to->text, report->notes[i]);
        put(to, "</li>");
    }
    put(to, "</ul></section>\n");
}

static void put_operators(writing *to, const tare__model_report *report)
{
    bool reasons = false;
    for (size_t i = 0; i < report->n_operators; i++)
        reasons = reasons || report->operators[i].reason;
    open_table(to, "operators", "Operators",
               reasons ? "Operator|#Nodes|#MACs|#Share|#Other operations|#Parameters|#Bytes made|Not counted"
                       : "Operator|#Nodes|#MACs|#Share|#Other operations|#Parameters|#Bytes made");
    for (size_t i = 0; i < report->n_operators; i++) {
        const tare__model_operator *row = &report->operators[i];
        char name[128];
        bool known = row->not_counted < row->nodes;
        open_row(to, tare__model_operator_name(name, row->op, row->domain));
        put_figure(to, row->nodes, true, tare__unit_count);
        put_figure(to, row->cost.macs, known, tare__unit_count);
        put_share(to, row->cost.macs, report->total.macs, known);
        put_figure(to, row->cost.other, known, tare__unit_count);
        put_figure(to, row->cost.parameters, true, tare__unit_count);
        put_figure(to, row->cost.output_bytes, true, tare__unit_bytes);
        if (reasons)
            put_cell(to, row->reason);
        close_row(to);
    }
    close_table(to);
}

static void put_layers(writing *to, const tare__model_report *report)
{
    const tare__model_layer **order = tare__model_heaviest(report);
    size_t most = report->n_layers < LAYERS_MAX ? report->n_layers : LAYERS_MAX;
    if (!order) {
        to->text.failed = true;
        return;
    }
    /* A column that no row has anything for is left out. */
    bool modules = false, reasons = false;
    for (size_t i = 0; i < most; i++) {
        modules = modules || (order[i]->module && *order[i]->module);
        reasons = reasons || order[i]->reason;
    }
    char columns[160];
    snprintf(columns, sizeof columns, "Layer|Operator|#MACs|#Share|#Other operations|#Parameters|Output%s%s",
             modules ? "|Module" : "", reasons ? "|Not counted" : "");
    open_table(to, "layers", "Layers, the heaviest first", columns);
    for (size_t i = 0; i < most && !to->status; i++) {
        const tare__model_layer *layer = order[i];
        char name[128];
        bool known = layer->state == TARE__MODEL_COUNTED;
        open_row(to, layer->name);
        put_cell(to, tare__model_operator_name(name, layer->op, layer->domain));
        put_figure(to, layer->cost.macs, known, tare__unit_count);
        put_share(to, layer->cost.macs, report->total.macs, known);
        put_figure(to, layer->cost.other, known, tare__unit_count);
        put_figure(to, layer->cost.parameters, true, tare__unit_count);
        put_shape(to, layer->output);
        if (modules)
            put_cell(to, layer->module);
        if (reasons)
            put_cell(to, layer->reason);
        close_row(to);
    }
    close_table(to);
    if (most < report->n_layers)
        tare__text_format(&to->text,
                          "<p class=\"note\">%zu lighter layers are left out; --csv has them all.</p>",
                          report->n_layers - most);
    free(order);
}

static void put_fill(writing *to, const tare__model_fill *fill)
{
    tare__text text = {0};
    if (fill) {
        tare__text_string(&text, fill->given ? "" : "generated: ");
        tare__model_put_fill(&text, fill);
    }
    to->text.failed = to->text.failed || text.failed;
    put_cell(to, text.failed || !text.data ? "" : text.data);
    tare__text_free(&text);
}

static void put_side(writing *to, const char *side, const tare__model_tensor *tensors, const tare__model_fill *fills,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        open_row(to, tensors[i].name);
        put_cell(to, side);
        put_cell(to, tensors[i].type);
        put_shape(to, &tensors[i]);
        put_figure(to, tensors[i].bytes < 0 ? 0 : (uint64_t)tensors[i].bytes, tensors[i].bytes >= 0,
                   tare__unit_bytes);
        put_fill(to, fills ? &fills[i] : NULL);
        close_row(to);
    }
}

static void put_rows(writing *to, const tare__model_weights *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        open_row(to, rows[i].what);
        put_figure(to, rows[i].tensors, true, tare__unit_count);
        put_figure(to, rows[i].elements, true, tare__unit_count);
        put_figure(to, rows[i].bytes, true, tare__unit_bytes);
        close_row(to);
    }
}

static void put_rest(writing *to, const tare__model_report *report)
{
    open_table(to, "tensors", "Inputs and outputs", "Name|Side|Type|Shape|#Bytes|Values");
    put_side(to, "input", report->inputs, report->fills, report->n_inputs);
    put_side(to, "output", report->outputs, NULL, report->n_outputs);
    close_table(to);
    open_table(to, "types", "Weights by type", "Type|#Tensors|#Elements|#Bytes");
    put_rows(to, report->types, report->n_types);
    close_table(to);
    open_table(to, "uses", "Weights by use", "Use|#Tensors|#Elements|#Bytes");
    put_rows(to, report->uses, report->n_uses);
    close_table(to);
}

int tare__emit_model_html(const tare__model_view *view, const tare__emit_options *options,
                          const tare__emit_sink *sink, tare__error *error)
{
    writing to = {.sink = sink, .error = error};
    const tare__model_report *report = view->report;
    (void)options;
    put_head(&to, report);
    put_tiles(&to, report);
    put_notes(&to, report);
    tare__measured_html(&to.text, view->measured);
    put_operators(&to, report);
    put_layers(&to, report);
    put_rest(&to, report);
    tare__plain_end(&to.text);
    if (!to.status)
        to.status = tare__emit_flush(&to.text, sink, error);
    tare__text_free(&to.text);
    return to.status;
}
