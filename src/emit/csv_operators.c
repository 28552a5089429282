/* csv_operators: tables of operators and modules as CSV.
 * Owned by the calling thread.
 * Must not know how the tables were made, nor where the files are. */
#include "csv.h"

static const char *const directions[] = {"", "forward", "backward"};

static void put_durations(csv *to, const tare__durations *each)
{
    const double values[] = {each->min_ns, each->mean_ns, each->max_ns, each->p50_ns, each->p95_ns, each->p99_ns};
    for (size_t i = 0; i < TARE__COUNT_OF(values); i++)
        tare__csv_ns(to, values[i]);
}

void tare__csv_put_operators(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_operators && !to->status; i++) {
        const tare__operator_row *row = &from->operators[i];
        tare__csv_text(to, row->name);
        tare__csv_text(to, row->phase);
        tare__csv_text(to, directions[row->direction]);
        tare__csv_count(to, row->calls);
        tare__csv_ns(to, row->total_ns);
        tare__csv_ns(to, row->self_ns);
        tare__csv_ns(to, row->raw_self_ns);
        tare__csv_double(to, row->share);
        put_durations(to, &row->each);
        tare__csv_ns(to, row->step_self_ns);
        tare__csv_ns(to, row->per_step_ns);
        tare__csv_double(to, row->step_share);
        tare__csv_text(to, row->module);
        tare__csv_count(to, row->modules);
        tare__csv_text(to, row->pair);
        tare__csv_count(to, row->paired);
        tare__csv_ns(to, row->pair_total_ns);
        tare__csv_text(to, row->unpaired);
        tare__csv_text(to, row->shapes);
        tare__csv_double(to, row->flops);
        tare__csv_double(to, row->bytes);
        tare__csv_double(to, row->flops_per_s);
        tare__csv_double(to, row->bytes_per_s);
        tare__csv_double(to, row->of_peak_flops);
        tare__csv_double(to, row->of_peak_bytes);
        tare__csv_text(to, row->of_peak_absent);
        tare__csv_count(to, row->recomputed);
        tare__csv_text(to, row->shapes_absent);
        tare__csv_end_row(to);
    }
}

void tare__csv_put_modules(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_modules && !to->status; i++) {
        const tare__module_row *row = &from->modules[i];
        tare__csv_count(to, i);
        tare__csv_row(to, row->parent);
        tare__csv_count(to, row->depth);
        tare__csv_text(to, row->path);
        tare__csv_count(to, row->calls);
        tare__csv_ns(to, row->total_ns);
        tare__csv_ns(to, row->self_ns);
        tare__csv_ns(to, row->operators_ns);
        tare__csv_double(to, row->share);
        tare__csv_count(to, row->backward_calls);
        tare__csv_ns(to, row->backward_ns);
        tare__csv_end_row(to);
    }
}

void tare__csv_put_module_operators(csv *to, const tare__analysis *from)
{
    for (size_t i = 0; i < from->n_module_operators && !to->status; i++) {
        const tare__module_operator_row *row = &from->module_operators[i];
        tare__csv_row(to, row->module);
        tare__csv_text(to, from->modules[row->module].path);
        tare__csv_text(to, row->name);
        tare__csv_text(to, directions[row->direction]);
        tare__csv_count(to, row->calls);
        tare__csv_ns(to, row->total_ns);
        tare__csv_ns(to, row->self_ns);
        tare__csv_end_row(to);
    }
}
