/* text_operators: operators and modules of the text report.
 * Owned by the calling thread.
 * Must not know how the rows were made. */
#include "parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEW_OPERATORS 15
#define FEW_MODULES   8

static const char evaluates[] = "autograd::engine::evaluate_function: ";

/* Autograd's frame around a node of the backward pass has the longest name and is the least informative. */
static const char *short_name(const char *name, char shown[256])
{
    if (strncmp(name, evaluates, sizeof evaluates - 1) != 0)
        return name;
    snprintf(shown, 256, "engine: %.200s", name + sizeof evaluates - 1);
    return shown;
}

static void put_share(tare__page *page, double share)
{
    char cell[TARE__UNIT_BYTES];
    tare__page_cell(page, TARE__PAGE_CELL, tare__unit_percent(cell, share));
}

static void put_operator(tare__page *page, const tare__operator_row *row)
{
    char room[256];
    const char *name = short_name(row->name, room);
    /* The same operator in both directions has two rows; a node of the backward pass is recognizable by its name. */
    const char *mark = row->direction == TARE__BACKWARD && !strstr(name, "ackward") ? " bwd" : "";
    tare__page_name(page, 0, name, (unsigned)strlen(mark));
    tare__text_string(page->out, mark);
    tare__page_pad(page);
    tare__page_calls(page, row->calls);
    tare__page_time(page, page->options->raw ? row->raw_self_ns : row->self_ns);
    tare__page_time(page, row->total_ns);
    tare__page_time(page, row->each.p50_ns);
    tare__page_time(page, row->each.p95_ns);
    put_share(page, row->share);
    tare__page_line_end(page);
}

/* ---- compared with the peaks of the machine ------------------------------------------------------------------ */
static void put_per_second(tare__page *page, double value, const char *unit)
{
    char count[TARE__UNIT_BYTES], cell[TARE__UNIT_BYTES + 8];
    if (isfinite(value))
        snprintf(cell, sizeof cell, "%s%s", tare__unit_count(count, value), unit);
    tare__page_cell(page, TARE__PAGE_CELL + 2, isfinite(value) ? cell : "n/a");
}

static void put_rates(tare__page *page, const tare__operator_row *row)
{
    char room[256];
    tare__page_name(page, 0, short_name(row->name, room), 0);
    tare__page_pad(page);
    tare__page_calls(page, row->calls);
    tare__page_time(page, row->total_ns);
    put_per_second(page, row->flops_per_s, "F/s");
    put_share(page, row->of_peak_flops);
    put_per_second(page, row->bytes_per_s, "B/s");
    put_share(page, row->of_peak_bytes);
    tare__page_line_end(page);
}

void tare__part_roofline(tare__page *page, const tare__analysis *analysis)
{
    const tare__run_table *run = &analysis->run;
    char flops[TARE__UNIT_BYTES], bytes[TARE__UNIT_BYTES];
    size_t n = 0, shown = 0;
    for (size_t i = 0; i < analysis->n_operators; i++)
        n += isfinite(analysis->operators[i].flops);
    size_t most = tare__page_rows(page, n, FEW_MODULES);
    if (n == 0)
        return;
    tare__page_title(page, "Roofline", "calls|total|  FLOP/s|of peak|~memory|of peak");
    for (size_t i = 0; i < analysis->n_operators && shown < most; i++)
        if (isfinite(analysis->operators[i].flops)) {
            put_rates(page, &analysis->operators[i]);
            shown++;
        }
    tare__page_more(page, n - shown, "operators");
    double f32 = run->peaks.flops[TARE__PEAK_F32], memory = run->peaks.level_per_s[TARE__PEAK_LEVELS - 1];
    if (f32 > 0 && memory > 0)
        tare__text_format(page->out, "peak: %sFLOP/s in single precision, %sB/s memory bandwidth; bytes are "
                                     "estimated\n",
                          tare__unit_count(flops, f32), tare__unit_count(bytes, memory));
}

void tare__part_operators(tare__page *page, const tare__analysis *analysis)
{
    size_t n = analysis->n_operators, shown = tare__page_rows(page, n, FEW_OPERATORS);
    if (n == 0)
        return;
    tare__page_title(page, "Operators", "calls|self|total|p50|p95|share");
    for (size_t i = 0; i < shown; i++)
        put_operator(page, &analysis->operators[i]);
    tare__page_more(page, n - shown, "operators");
}

static void put_module(tare__page *page, const tare__module_row *row)
{
    tare__page_name(page, 2 * row->depth, row->path, 0);
    tare__page_pad(page);
    tare__page_calls(page, row->calls);
    tare__page_time(page, row->total_ns);
    tare__page_time(page, row->self_ns);
    tare__page_time(page, row->operators_ns);
    tare__page_time(page, row->backward_ns);
    put_share(page, row->share);
    tare__page_line_end(page);
}

/* With few lines only the upper levels are shown, down to the last level that fits completely. */
static uint32_t levels_for(const tare__analysis *analysis, size_t lines, size_t *shown)
{
    uint32_t levels = 0;
    size_t fit = 0;
    for (;; levels++) {
        size_t n = 0;
        for (size_t i = 0; i < analysis->n_modules; i++)
            n += analysis->modules[i].depth <= levels;
        if ((n > lines && levels > 0) || n == fit)
            break;
        fit = n;
    }
    *shown = fit;
    return levels;
}

void tare__part_modules(tare__page *page, const tare__analysis *analysis)
{
    size_t n = analysis->n_modules, most = tare__page_rows(page, n, FEW_MODULES), shown;
    if (n == 0)
        return;
    uint32_t levels = levels_for(analysis, most, &shown);
    tare__page_title(page, "Modules", "calls|total|self|operators|backward|share");
    size_t put = 0;
    for (size_t i = 0; i < n && put < most; i++)
        if (analysis->modules[i].depth < levels) {
            put_module(page, &analysis->modules[i]);
            put++;
        }
    tare__page_more(page, n - put, "modules");
}
