/* json_operators: operators and modules of the JSON report.
 * Owned by the calling thread.
 * Must not know how the tables were made, nor where the bytes go. */
#include "json_writer.h"

static const char *direction_word(tare__direction direction)
{
    static const char *const words[] = {NULL, "forward", "backward"};
    return words[direction];
}

static void put_operator(writer *to, size_t index)
{
    const tare__operator_row *row = &to->analysis->operators[index];
    put_string(to, "name", row->name);
    put_string(to, "phase", row->phase);
    put_string(to, "direction", direction_word(row->direction));
    put_unsigned(to, "calls", row->calls);
    put_ns(to, "total_ns", row->total_ns);
    put_ns(to, "self_ns", row->self_ns);
    put_ns(to, "raw_self_ns", row->raw_self_ns);
    put_double(to, "share", row->share);
    put_durations(to, &row->each);
    put_ns(to, "step_self_ns", row->step_self_ns);
    put_ns(to, "per_step_ns", row->per_step_ns);
    put_double(to, "step_share", row->step_share);
    put_string(to, "module", row->module);
    put_unsigned(to, "modules", row->modules);
    put_string(to, "pair", row->pair);
    put_unsigned(to, "paired", row->paired);
    put_ns(to, "pair_total_ns", row->pair_total_ns);
    put_string(to, "unpaired", row->unpaired);
    put_string(to, "shapes", row->shapes);
    put_double(to, "flops", row->flops);
    put_double(to, "bytes_estimate", row->bytes);
    put_double(to, "flops_per_second", row->flops_per_s);
    put_double(to, "bytes_per_second_estimate", row->bytes_per_s);
    put_double(to, "of_peak_flops", row->of_peak_flops);
    put_double(to, "of_peak_bytes", row->of_peak_bytes);
    put_string(to, "of_peak_absent", row->of_peak_absent);
    put_unsigned(to, "recomputed", row->recomputed);
    put_string(to, "shapes_absent", row->shapes_absent);
}

static void put_operators_of(writer *to, const tare__module_row *module)
{
    tare__json_key(&to->json, "operators");
    tare__json_array(&to->json);
    for (uint32_t i = 0; i < module->n_operators; i++) {
        const tare__module_operator_row *row = &to->analysis->module_operators[module->first_operator + i];
        tare__json_object(&to->json);
        put_string(to, "name", row->name);
        put_string(to, "direction", direction_word(row->direction));
        put_unsigned(to, "calls", row->calls);
        put_ns(to, "total_ns", row->total_ns);
        put_ns(to, "self_ns", row->self_ns);
        tare__json_end_object(&to->json);
    }
    tare__json_end_array(&to->json);
}

static void put_module(writer *to, size_t index)
{
    const tare__module_row *row = &to->analysis->modules[index];
    put_string(to, "path", row->path);
    put_row_index(to, "parent", row->parent);
    put_unsigned(to, "depth", row->depth);
    put_unsigned(to, "calls", row->calls);
    put_ns(to, "total_ns", row->total_ns);
    put_ns(to, "self_ns", row->self_ns);
    put_ns(to, "operators_ns", row->operators_ns);
    put_double(to, "share", row->share);
    put_unsigned(to, "backward_calls", row->backward_calls);
    put_ns(to, "backward_ns", row->backward_ns);
    put_operators_of(to, row);
}

void tare__json_put_operators(writer *to)
{
    put_list(to, "operators", to->analysis->n_operators, put_operator);
    put_list(to, "modules", to->analysis->n_modules, put_module);
}
