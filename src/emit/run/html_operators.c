/* html_operators: operators and modules of the page: a row a line.
 * Owned by the calling thread.
 * Must not know how the tables were made, nor how the page shows them. */
#include "html.h"

static const char *const directions[] = {NULL, "forward", "backward"};

static void put_operator(tare__html *page, size_t index)
{
    const tare__operator_row *row = &page->analysis->operators[index];
    tare__json_string(&page->json, row->name);
    tare__json_string(&page->json, row->phase);
    tare__json_string(&page->json, directions[row->direction]);
    tare__json_unsigned(&page->json, row->calls);
    tare__html_ns(page, row->self_ns);
    tare__html_ns(page, row->total_ns);
    tare__html_figure(page, row->share);
    tare__html_durations(page, &row->each);
    tare__html_ns(page, row->per_step_ns);
    tare__json_string(&page->json, row->module);
    tare__json_unsigned(&page->json, row->modules);
    tare__json_string(&page->json, row->pair);
    tare__json_string(&page->json, row->unpaired);
    tare__json_string(&page->json, row->shapes);
    tare__html_figure(page, row->flops_per_s);
    tare__html_figure(page, row->of_peak_flops);
    tare__html_figure(page, row->bytes_per_s);
    tare__html_figure(page, row->of_peak_bytes);
    tare__json_string(&page->json, row->of_peak_absent);
    tare__json_string(&page->json, row->shapes_absent);
}

static void put_module(tare__html *page, size_t index)
{
    const tare__module_row *row = &page->analysis->modules[index];
    tare__json_string(&page->json, row->path);
    tare__json_unsigned(&page->json, row->depth);
    tare__json_unsigned(&page->json, row->calls);
    tare__html_ns(page, row->total_ns);
    tare__html_ns(page, row->self_ns);
    tare__html_ns(page, row->operators_ns);
    tare__html_ns(page, row->backward_ns);
    tare__html_figure(page, row->share);
}

void tare__html_operators(tare__html *page)
{
    const tare__analysis *analysis = page->analysis;
    size_t operators = analysis->n_operators < page->limits->rows ? analysis->n_operators : page->limits->rows;
    size_t modules = analysis->n_modules < page->limits->rows ? analysis->n_modules : page->limits->rows;
    tare__html_table(page, "operators",
                     "name phase direction calls self total share min mean p50 p95 p99 max per_step module modules "
                     "pair unpaired shapes flops_per_s of_peak bytes_per_s of_peak_bytes of_peak_absent shapes_absent",
                     operators, analysis->n_operators - operators, put_operator);
    tare__html_table(page, "modules", "name depth calls total self operators backward share", modules,
                     analysis->n_modules - modules, put_module);
}
