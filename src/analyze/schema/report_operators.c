/* report_operators: operators and modules of torch: tables of a report.
 * Constant; any thread.
 * Must not know output formats. */
#include "define.h"

/* ---- operators and modules --------------------------------------------------------------------------------------- */
static const char *direction_word(tare__direction direction)
{
    static const char *const words[] = {NULL, "forward", "backward"};
    return words[direction];
}
MADE(operator_direction, tare__operator_row, tare__value_text(direction_word(row->direction)))
MADE(module_operator_direction, tare__module_operator_row, tare__value_text(direction_word(row->direction)))

#define R tare__operator_row
static const tare__schema_column operator_columns[] = {
    C(name, TEXT, NOTHING, "name: `aten::mm`", .key = true, .label = "Operator"),
    M("direction", TEXT, NOTHING, operator_direction, "`forward` or `backward`; null: neither",
      .absent = "neither forward nor backward"),
    C(phase, TEXT, NOTHING, "phase of the step: `forward`, `backward`, `optimizer`; null: outside all phases",
      .absent = "outside of all phases"),
    C(calls, U64, COUNT, "calls"),
    C(self_ns, NS, NS, "total minus the operators inside, minus the recording overhead"),
    C(raw_self_ns, NS, NS, "total minus the operators inside", NOT_IN_PAGE),
    C(share, DOUBLE, SHARE, "`self_ns` of the self time of all operators", .bar = true),
    C(total_ns, NS, NS, "time in it, without calls inside another call of the same name"),
    DURATIONS,
    C(step_self_ns, NS, NS, "self time inside steps; null: there are no steps", NOT_IN_PAGE),
    C(per_step_ns, NS, NS, "`step_self_ns` per step", .absent = "no steps were recorded"),
    C(step_share, DOUBLE, SHARE, "`step_self_ns` of the steps' time", NOT_IN_PAGE),
    C(module, TEXT, NOTHING, "its module, when all calls are in one", .absent = "in no module, or in several"),
    C(modules, U32, COUNT, "number of modules that call it; 0: none is known", HIDDEN),
    C(pair, TEXT, NOTHING,
      "its counterpart in the other direction: the backward node of a forward operator, and the reverse",
      .label = "Paired with", .absent_at = AT(unpaired), .absent = "no counterpart"),
    C(paired, U64, COUNT, "of the calls: whose counterpart is known", NOT_IN_PAGE),
    C(pair_total_ns, NS, NS, "total time of the counterparts", NOT_IN_PAGE),
    C(unpaired, TEXT, NOTHING, "why calls have no counterpart; null: all have one", HIDDEN),
    C(flops, DOUBLE, FLOPS, "floating-point operations of all calls", NOT_IN_PAGE),
    N("bytes_estimate", bytes, DOUBLE, BYTES,
      "size of its tensors over all calls: an estimate of the memory traffic, without caches", NOT_IN_PAGE),
    N("flops_per_second", flops_per_s, DOUBLE, FLOPS_PER_S, "`flops` over `total_ns`", .label = "FLOP/s",
      .absent_at = AT(shapes_absent), .absent = "no FLOP formula for this operator"),
    C(of_peak_flops, DOUBLE, SHARE, "share of the machine's peak for its data type, at most 1",
      .label = "Of peak FLOP/s", .absent_at = AT(of_peak_absent), .absent = "no FLOP formula for this operator"),
    N("bytes_per_second_estimate", bytes_per_s, DOUBLE, BYTES_PER_S, "`bytes_estimate` over `total_ns`",
      .label = "≈ bytes/s", .absent_at = AT(shapes_absent)),
    C(of_peak_bytes, DOUBLE, SHARE,
      "share of the bandwidth that caches and memory have for tensors of its size, at most 1",
      .label = "Of peak bytes/s", .absent_at = AT(of_peak_absent), .absent = "no FLOP formula for this operator"),
    C(of_peak_absent, TEXT, NOTHING, "why one of them is null", HIDDEN),
    C(recomputed, U64, COUNT, "of the calls: recomputed in the backward pass (activation checkpointing)", NOT_IN_PAGE),
    C(shapes, TEXT, NOTHING, "shapes of its tensors in one step, most frequent first: `f32[8,64] f32[64,64] x12`",
      .absent_at = AT(shapes_absent)),
    C(shapes_absent, TEXT, NOTHING, "why shapes, FLOPs and bytes are null", HIDDEN),
};
#undef R
const tare__table tare__table_operators = ROWS_OF(operators, operator_columns, tare__operator_row,
    "an operator in a phase and a direction, largest self time first ([OPERATORS.md](OPERATORS.md))");

#define R tare__module_operator_row
static const tare__schema_column module_operator_columns[] = {
    C(name, TEXT, NOTHING, "name of the operator"),
    M("direction", TEXT, NOTHING, module_operator_direction, "`forward` or `backward`; null: neither"),
    C(calls, U64, COUNT, "calls"),
    C(total_ns, NS, NS, "time in it"),
    C(self_ns, NS, NS, "self time; null for a node of the backward pass"),
};
#undef R
static const tare__table module_operators = TABLE("operators", ROWS, module_operator_columns, tare__module_operator_row,
                                                  "an operator called by the module itself");

static tare__value module_rows(tare__cells *cells, const void *at, size_t index)
{
    const tare__analysis *of = cells->of;
    const tare__module_row *row = at;
    (void)index;
    return (tare__value){.type = TARE__TYPE_ROWS,
                         .count = row->n_operators,
                         .rows = row->n_operators ? &of->module_operators[row->first_operator] : NULL};
}

#define R tare__module_row
static const tare__schema_column module_columns[] = {
    C(path, TEXT, NOTHING, "path of the module: `encoder.layers.3.self_attn`", .key = true, .label = "Module"),
    C(parent, ROW, NOTHING, "the module around it; null at the top", .table = &tare__table_modules, NOT_IN_PAGE),
    C(depth, U32, COUNT, "0 at the top", HIDDEN),
    C(calls, U64, COUNT, "calls of its forward"),
    C(total_ns, NS, NS, "time in it"),
    C(share, DOUBLE, SHARE, "`total_ns` of the total of all top-level modules", .bar = true),
    C(self_ns, NS, NS, "total minus the modules inside"),
    C(operators_ns, NS, NS, "of `self_ns`: self time of operators"),
    C(backward_calls, U64, COUNT, "nodes of the backward pass whose forward operator ran in it or below", HIDDEN),
    C(backward_ns, NS, NS,
      "total time of the nodes of the backward pass whose forward operator ran in it or below; null: none is known",
      .absent = "no node of the backward pass is known to belong to it"),
    {"operators", TARE__STORED_MADE_ROWS, TARE__SHOW_NOTHING, .make = module_rows, .table = &module_operators,
     .meaning = "operators that it calls itself", NOT_IN_PAGE},
};
#undef R
const tare__table tare__table_modules = ROWS_OF(modules, module_columns, tare__module_row, "a module, depth first");
