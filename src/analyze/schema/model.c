/* model: the tables of a model report: static costs of a model file.
 * Constant; any thread.
 * Must not know output formats. */
#include "define.h"
#include "model/model.h"

#define NO_VALUE ((tare__value){.type = TARE__TYPE_ABSENT})
static const tare__model_view *view_of(const tare__cells *cells)
{
    return cells->of;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */
static tare__value tensor_shape(tare__cells *cells, const void *at, size_t index)
{
    const tare__model_tensor *tensor = at;
    (void)index;
    if (tensor->rank < 0 || (size_t)tensor->rank > TARE__NUMBERS_MAX)
        return NO_VALUE;
    for (int i = 0; i < tensor->rank; i++)
        cells->numbers[i] = tensor->dims[i] < 0 ? NAN : (double)tensor->dims[i];
    return (tare__value){.type = TARE__TYPE_NUMBERS, .count = (uint64_t)tensor->rank, .numbers = cells->numbers};
}
MADE(tensor_symbols, tare__model_tensor,
     row->symbols && row->rank >= 0
         ? ((tare__value){.type = TARE__TYPE_TEXTS, .count = (uint64_t)row->rank, .texts = row->symbols})
         : NO_VALUE)

#define R tare__model_tensor
#define TENSOR(shown)                                                                                                 \
    C(name, TEXT, NOTHING, "name", .key = true, .page = shown),                                                       \
        C(type, TEXT, NOTHING, "`float32`; `sequence`, `map` or `optional` if it is not a tensor; null: not known",   \
          .page = shown),                                                                                            \
        M("shape", NUMBERS, NOTHING, tensor_shape, "its dimensions; null: not known", .between = "x"),                \
        M("symbols", TEXTS, NOTHING, tensor_symbols, "name of each dimension in the file; null: it has a number",     \
          .between = " ", NOT_IN_PAGE),                                                                              \
        C(bytes, I64_OR_LESS, BYTES, "its size; null: not known", .page = shown, .label = "Size")
static const tare__schema_column tensor_columns[] = {TENSOR(TARE__PAGE_SHOWN)};
static const tare__schema_column made_columns[] = {TENSOR(TARE__PAGE_NOT)};
#undef R

/* The data that fills an input. */
static const tare__model_fill *fill_of(const tare__cells *cells, size_t index)
{
    const tare__model_report *report = view_of(cells)->report;
    return report->fills ? &report->fills[index] : NULL;
}
static tare__value input_fill(tare__cells *cells, const void *at, size_t index)
{
    const tare__model_fill *fill = fill_of(cells, index);
    (void)at;
    return (tare__value){.type = fill ? TARE__TYPE_PART : TARE__TYPE_ABSENT, .rows = fill};
}
static tare__value fill_text(tare__cells *cells, const void *at, size_t index)
{
    tare__text text = {0};
    (void)index;
    tare__model_put_fill(&text, at);
    cells->failed |= text.failed;
    tare__text_fit(cells->text, sizeof cells->text, text.failed ? "" : text.data, sizeof cells->text);
    tare__text_free(&text);
    return tare__value_text(cells->text);
}
static bool fill_is(const tare__model_fill *fill, bool range)
{
    return fill->kind == TARE__FILL_UNIFORM || (range && fill->kind == TARE__FILL_WHOLE);
}
MADE(fill_source, tare__model_fill, tare__value_text(row->given ? "given" : "generated"))
MADE(fill_kind, tare__model_fill, tare__value_text(tare__model_fill_name(row->kind)))
MADE(fill_meaning, tare__model_fill, tare__value_text(row->kind == TARE__FILL_FILE ? NULL : row->what))
MADE(fill_path, tare__model_fill, tare__value_text(row->kind == TARE__FILL_FILE ? row->what : NULL))
MADE(fill_low, tare__model_fill, tare__value_number(fill_is(row, true) ? row->low : NAN))
MADE(fill_high, tare__model_fill, tare__value_number(fill_is(row, true) ? row->high : NAN))
MADE(fill_values, tare__model_fill,
     row->kind == TARE__FILL_VALUES
         ? ((tare__value){.type = TARE__TYPE_NUMBERS, .count = row->n_values, .numbers = row->values})
         : NO_VALUE)

#define R tare__model_fill
static const tare__schema_column fill_columns[] = {
    M("text", TEXT, NOTHING, fill_text, "its values in words", .label = "Values"),
    M("source", TEXT, NOTHING, fill_source, "`given` by `--input`, or `generated`", UNDER),
    M("kind", TEXT, NOTHING, fill_kind, "`normal`, `uniform`, `integers`, `range`, `values` or `file`", NOT_IN_PAGE),
    M("meaning", TEXT, NOTHING, fill_meaning, "what the input is taken for: `sample rate`", NOT_IN_PAGE),
    M("path", TEXT, NOTHING, fill_path, "of a file", NOT_IN_PAGE),
    M("low", NUMBER, NOTHING, fill_low, "smallest value, of `uniform` and `integers`", NOT_IN_PAGE),
    M("high", NUMBER, NOTHING, fill_high, "largest value; of `integers`, above the largest", NOT_IN_PAGE),
    M("values", NUMBERS, NOTHING, fill_values, "repeated over the elements", .between = " ", NOT_IN_PAGE),
};
#undef R
static const tare__table fill = {.name = "fill", .shape = TARE__SHAPE_SINGLE, .meaning = "values of an input",
                                 .columns = fill_columns, .n_columns = TARE__COUNT_OF(fill_columns)};

#define R tare__model_tensor
static const tare__schema_column input_columns[] = {
    TENSOR(TARE__PAGE_SHOWN),
    {"fill", TARE__STORED_MADE_PART, TARE__SHOW_NOTHING, .make = input_fill, .table = &fill, .label = "",
     .meaning = "what it is filled with when the model is run"},
};
#undef R
static const tare__table output_tensor = {.name = "output", .shape = TARE__SHAPE_SINGLE, .meaning = "a tensor",
                                          .columns = made_columns, .n_columns = TARE__COUNT_OF(made_columns)};

/* ---- costs ------------------------------------------------------------------------------------------------------- */
/* A value that was not counted is absent, not 0. */
#define COUNTED(kind, row_type, cost, condition)                                             \
    MADE(kind##_macs, row_type, tare__value_count(row->cost.macs, condition))                \
    MADE(kind##_flops, row_type, tare__value_count(2 * row->cost.macs, condition))           \
    MADE(kind##_other, row_type, tare__value_count(row->cost.other, condition))
#define NOT_COUNTED .absent = "not counted"
#define MACS(kind, ...)                                                                                              \
    M("macs", COUNT, COUNT, kind##_macs, "multiply-accumulates; null: not counted", .label = "MACs",                 \
      AT_LEAST("at_least"), __VA_ARGS__)
#define SHARE(kind)                                                                                                  \
    M("share", NUMBER, SHARE, kind##_share, "`macs` of the total's; null: not counted", .bar = true, NOT_COUNTED)
#define COST(kind, cost, detail, ...)                                                                                \
    M("flops", COUNT, FLOPS, kind##_flops, "twice `macs`", NOT_IN_PAGE),                                             \
        M("other_operations", COUNT, COUNT, kind##_other, "operations of everything else",                           \
          AT_LEAST("other_at_least"), __VA_ARGS__),                                                                  \
        N("parameters", cost.parameters, U64, COUNT, "parameters of weights used here first"),                       \
        N("weight_bytes", cost.weight_bytes, U64, BYTES, "weights, statistics and constants used here first",        \
          .label = "Weights", .page = detail),                                                                       \
        N("output_bytes", cost.output_bytes, U64, BYTES, "tensors made here whose size is known",                    \
          .label = "Outputs"),                                                                                       \
        N("at_least", macs_at_least, BOOL, NOTHING, "`macs` and `flops` are lower bounds", NOT_IN_PAGE),             \
        C(other_at_least, BOOL, NOTHING, "`other_operations` is a lower bound", NOT_IN_PAGE)

COUNTED(total, tare__model_report, total, true)
COUNTED(operator, tare__model_operator, cost, row->not_counted < row->nodes)
COUNTED(layer, tare__model_layer, cost, row->state == TARE__MODEL_COUNTED)
static tare__value share_of_total(const tare__cells *cells, uint64_t macs, bool counted)
{
    uint64_t total = view_of(cells)->report->total.macs;
    return tare__value_number(counted && total ? (double)macs / (double)total : NAN);
}
MADE(operator_share, tare__model_operator, share_of_total(cells, row->cost.macs, row->not_counted < row->nodes))
MADE(layer_share, tare__model_layer, share_of_total(cells, row->cost.macs, row->state == TARE__MODEL_COUNTED))
static const char *const states[] = {
    [TARE__MODEL_COUNTED] = "counted", [TARE__MODEL_NO_RULE] = "no rule", [TARE__MODEL_NO_SHAPE] = "no shape"};
MADE(layer_state, tare__model_layer, tare__value_text(WORD(states, row->state)))

#define R tare__model_report
static const tare__schema_column total_columns[] = {
    MACS(total, .absent = NULL),
    COST(total, total, TARE__PAGE_SHOWN, .absent = NULL),
    C(activation_peak_bytes, U64, BYTES, "activations that are live at once, maximum",
      AT_LEAST("!activations_known")),
    C(activation_peak_at, TEXT, NOTHING, "layer with the peak", UNDER),
    C(activation_sum_bytes, U64, BYTES, "all activations and inputs together", NOT_IN_PAGE),
    C(activations_known, BOOL, NOTHING, "false: `activation_peak_bytes` is a lower bound", NOT_IN_PAGE),
    N("nodes", n_layers, U64, COUNT, "nodes of the graph"),
    N("nodes_not_counted", not_counted, U64, COUNT, "of these: not counted"),
};
#undef R

#define R tare__model_operator
static const tare__schema_column operator_columns[] = {
    C(op, TEXT, NOTHING, "operator", .key = true, .label = "Operator"),
    C(domain, TEXT, NOTHING, "its domain; empty: ONNX's own", .key = true, UNDER),
    C(nodes, U64, COUNT, "nodes"),
    MACS(operator, NOT_COUNTED),
    SHARE(operator),
    COST(operator, cost, TARE__PAGE_NOT, NOT_COUNTED),
    C(not_counted, U64, COUNT, "of `nodes`: not counted", NOT_IN_PAGE),
    C(reason, TEXT, NOTHING, "why nodes are not counted, or not whole", .label = "Not counted"),
};
#undef R

#define R tare__model_layer
static const tare__schema_column layer_columns[] = {
    C(name, TEXT, NOTHING, "name, with the nodes it is inside of before it", .key = true, .label = "Layer"),
    C(node, TEXT, NOTHING, "name in the file", NOT_IN_PAGE),
    C(op, TEXT, NOTHING, "operator", .label = "Operator"),
    C(domain, TEXT, NOTHING, "its domain; empty: ONNX's own", UNDER),
    MACS(layer, NOT_COUNTED),
    SHARE(layer),
    COST(layer, cost, TARE__PAGE_NOT, NOT_COUNTED),
    {"output", TARE__STORED_PART, TARE__SHOW_NOTHING, .through = AT(output) + 1, .table = &output_tensor,
     .meaning = "the first tensor it makes; null: none"},
    C(times, U64, COUNT, "how often it runs in one run of the model", NOT_IN_PAGE),
    C(module, TEXT, NOTHING, "part of the model it came from, where the exporter says so"),
    M("state", TEXT, NOTHING, layer_state, "`counted`, `no rule` or `no shape`", NOT_IN_PAGE),
    C(reason, TEXT, NOTHING, "why its cost is not counted, or not whole", .label = "Not counted"),
};
#undef R

#define F(named, member, how, in, ...) \
    {named, TARE__STORED_##how, TARE__SHOW_##in, .through = 1, .at = offsetof(tare__model_layer, member), \
     .meaning = __VA_ARGS__}
static const tare__schema_column not_counted_columns[] = {
    F("name", name, TEXT, NOTHING, "name of the layer", .key = true),
    F("op", op, TEXT, NOTHING, "operator"),
    F("domain", domain, TEXT, NOTHING, "its domain; empty: ONNX's own"),
    F("reason", reason, TEXT, NOTHING, "why"),
    F("at_least", macs_at_least, BOOL, NOTHING, "`macs` and `flops` of the total are lower bounds for it"),
    F("other_at_least", other_at_least, BOOL, NOTHING, "`other_operations` is"),
};

/* ---- the file ---------------------------------------------------------------------------------------------------- */
#define R tare__model_opset
static const tare__schema_column opset_columns[] = {
    C(domain, TEXT, NOTHING, "domain; empty: ONNX's own", .key = true),
    C(version, I64_OR_LESS, NOTHING, "version"),
};
#undef R
static const tare__table opsets = TABLE("opsets", ROWS, opset_columns, tare__model_opset, "an operator set");

#define R tare__model_report
static const tare__schema_column file_columns[] = {
    C(path, TEXT, NOTHING, "path of the file", NOT_IN_PAGE),
    C(format, TEXT, NOTHING, "`onnx`", NOT_IN_PAGE),
    C(graph, TEXT, NOTHING, "name of the graph", NOT_IN_PAGE),
    C(producer, TEXT, NOTHING, "what wrote the file", NOT_IN_PAGE),
    C(producer_version, TEXT, NOTHING, "its version", NOT_IN_PAGE),
    C(ir_version, I64_OR_LESS, NOTHING, "version of ONNX's format", NOT_IN_PAGE),
    C(file_bytes, U64, BYTES, "size of the file", .label = "File"),
    C(external_bytes, U64, BYTES, "size of the files with weights beside it", .label = "External data"),
    C(external_files, U64, COUNT, "how many those are", NOT_IN_PAGE),
    L("opsets", ROWS, opsets, n_opsets, opsets, "operator sets that it uses", NOT_IN_PAGE),
};
#undef R

#define R tare__model_dimension
static const tare__schema_column dimension_columns[] = {
    C(name, TEXT, NOTHING, "symbol in the file: `batch`", .key = true),
    C(value, I64_OR_LESS, COUNT, "its value here"),
    C(assumed, BOOL, NOTHING, "not given by the user"),
};
#undef R

#define R tare__model_weights
#define WEIGHTS(named, what_is)                                                   \
    N(named, what, TEXT, NOTHING, what_is, .key = true),                          \
        C(tensors, U64, COUNT, "tensors"), C(elements, U64, COUNT, "elements"),   \
        C(bytes, U64, BYTES, "their size", .label = "Size")
static const tare__schema_column type_columns[] = {WEIGHTS("type", "type: `float32`")};
static const tare__schema_column use_columns[] = {
    WEIGHTS("use", "`parameters`, `statistics`, `quantization`, `constants` or `unused`")};
#undef R

#define OF_REPORT(named, of_shape, columns_of, row, ...)                                          \
    {.name = named, .shape = TARE__SHAPE_##of_shape, .columns = columns_of,                        \
     .n_columns = TARE__COUNT_OF(columns_of), .row_bytes = sizeof(row),                           \
     .through = offsetof(tare__model_view, report) + 1, .meaning = __VA_ARGS__}
#define IN(member, counted) \
    .at = offsetof(tare__model_report, member), .count_at = offsetof(tare__model_report, counted)
static const tare__table file = OF_REPORT("model", TOP, file_columns, tare__model_report, "the file");
static const tare__table dimensions = OF_REPORT("dimensions", ROWS, dimension_columns, tare__model_dimension,
                                                "a symbol of the inputs", IN(dimensions, n_dimensions));
static const tare__table inputs = OF_REPORT("inputs", ROWS, input_columns, tare__model_tensor,
                                            "an input other than weights", IN(inputs, n_inputs));
static const tare__table outputs =
    OF_REPORT("outputs", ROWS, tensor_columns, tare__model_tensor, "an output", IN(outputs, n_outputs));
static const tare__table total = OF_REPORT("total", SINGLE, total_columns, tare__model_report, "the whole model");
static const tare__table types = OF_REPORT("weights_by_type", ROWS, type_columns, tare__model_weights,
                                           "weights of a type, the most bytes first", IN(types, n_types));
static const tare__table uses = OF_REPORT("weights_by_use", ROWS, use_columns, tare__model_weights,
                                          "weights by what they are for", IN(uses, n_uses));
static const tare__table operators = OF_REPORT("operators", ROWS, operator_columns, tare__model_operator,
                                               "an operator, the most MACs first", IN(operators, n_operators));
static const tare__table layers = OF_REPORT("layers", ROWS, layer_columns, tare__model_layer,
                                            "a node of the graph, in the order of execution", IN(layers, n_layers),
                                            .label = "Layers, the heaviest first", .by = "macs");
static const tare__table notes = OF_REPORT("notes", VALUES, tare__sentence_columns, const char *,
                                           "assumptions, and what was dropped", IN(notes, n_notes));
static const tare__table not_counted = {.name = "not_counted",
                                        .shape = TARE__SHAPE_ROWS,
                                        .columns = not_counted_columns,
                                        .n_columns = TARE__COUNT_OF(not_counted_columns),
                                        .row_bytes = sizeof(const tare__model_layer *),
                                        .at = offsetof(tare__model_view, not_counted),
                                        .count_at = offsetof(tare__model_view, n_not_counted),
                                        .page = TARE__PAGE_NOT,
                                        .meaning = "a node that the totals lack, or have in part"};
static const tare__table figures = {.name = "figures",
                                    .page = TARE__PAGE_NOT,
                                    .shape = TARE__SHAPE_SINGLE,
                                    .columns = tare__baseline_columns,
                                    .n_columns = TARE__BASELINE_COLUMNS,
                                    .through = offsetof(tare__model_view, figures) + 1,
                                    .meaning = "its figures, as `tare compare`, `tare check` and `tare history` read "
                                               "them: `model.macs`, `model.latency[batch=4]`, `layer:NAME`, …"};

static const tare__table *const tables[] = {&file, &total, &notes, &tare__table_measured, &operators, &layers, &inputs,
                                            &outputs, &dimensions, &types, &uses, &not_counted, &figures};
DOCUMENT(model, "tare-model", 1, 1, tables);
