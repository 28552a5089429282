/* text_tables: tables of the text report with a line per row: operators, modules, aggregates, tracks, counters, marks.
 * Owned by the calling thread.
 * Must not know how the rows were made. */
#include "parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEW           6
#define FEW_OPERATORS 15
#define FEW_MODULES   8

typedef void put_row(tare__page *page, const void *rows, size_t i);

static void put_table(tare__page *page, const char *title, const char *columns, const char *what, const void *rows,
                      size_t n, size_t few, put_row *put)
{
    size_t shown = tare__page_rows(page, n, few);
    if (n == 0)
        return;
    tare__page_title(page, title, columns);
    for (size_t i = 0; i < shown; i++)
        put(page, rows, i);
    tare__page_more(page, n - shown, what);
}

/* ---- operators ----------------------------------------------------------------------------------- */
static const char evaluates[] = "autograd::engine::evaluate_function: ";

/* Autograd's frame around a node of the backward pass has the longest name and is the least informative. */
static const char *short_name(const char *name, char shown[256])
{
    if (strncmp(name, evaluates, sizeof evaluates - 1) != 0)
        return name;
    snprintf(shown, 256, "engine: %.200s", name + sizeof evaluates - 1);
    return shown;
}

static void put_operator(tare__page *page, const void *rows, size_t i)
{
    const tare__operator_row *row = (const tare__operator_row *)rows + i;
    char room[256];
    const char *name = short_name(row->name, room);
    /* The same operator in both directions has two rows; a node of the backward pass is recognizable by its name. */
    const char *mark = row->direction == TARE__BACKWARD && !strstr(name, "ackward") ? " bwd" : "";
    TARE__PAGE_ROW(page, 0, name, mark, "ctttt%", (double)row->calls,
                   page->options->raw ? row->raw_self_ns : row->self_ns, row->total_ns, row->each.p50_ns,
                   row->each.p95_ns, row->share);
}

void tare__part_operators(tare__page *page, const tare__analysis *analysis)
{
    put_table(page, "Operators", "calls|self|total|p50|p95|share", "operators", analysis->operators,
              analysis->n_operators, FEW_OPERATORS, put_operator);
}

/* ---- operators compared with the peaks of the machine ---------------------------------------------- */
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
    tare__page_label(page, 0, short_name(row->name, room), "", TARE__PAGE_PLAIN);
    TARE__PAGE_CELLS(page, "ct", (double)row->calls, row->total_ns);
    put_per_second(page, row->flops_per_s, "F/s");
    TARE__PAGE_CELLS(page, "%", row->of_peak_flops);
    put_per_second(page, row->bytes_per_s, "B/s");
    TARE__PAGE_CELLS(page, "%", row->of_peak_bytes);
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

/* ---- modules ------------------------------------------------------------------------------------- */
/* With few lines only the upper levels are shown, down to the last level that fits completely. */
static uint32_t levels_for(const tare__analysis *analysis, size_t lines)
{
    uint32_t levels = 0;
    size_t fit = 0;
    for (;; levels++) {
        size_t n = 0;
        for (size_t i = 0; i < analysis->n_modules; i++)
            n += analysis->modules[i].depth <= levels;
        if ((n > lines && levels > 0) || n == fit)
            return levels;
        fit = n;
    }
}

void tare__part_modules(tare__page *page, const tare__analysis *analysis)
{
    size_t n = analysis->n_modules, most = tare__page_rows(page, n, FEW_MODULES), put = 0;
    if (n == 0)
        return;
    uint32_t levels = levels_for(analysis, most);
    tare__page_title(page, "Modules", "calls|total|self|operators|backward|share");
    for (size_t i = 0; i < n && put < most; i++) {
        const tare__module_row *row = &analysis->modules[i];
        if (row->depth >= levels)
            continue;
        TARE__PAGE_ROW(page, 2 * row->depth, row->path, "", "ctttt%", (double)row->calls, row->total_ns, row->self_ns,
                       row->operators_ns, row->backward_ns, row->share);
        put++;
    }
    tare__page_more(page, n - put, "modules");
}

/* ---- aggregate spans ----------------------------------------------------------------------------- */
static void put_aggregate(tare__page *page, const void *rows, size_t i)
{
    const tare__aggregate_row *row = (const tare__aggregate_row *)rows + i;
    char total[TARE__UNIT_BYTES], marked[TARE__UNIT_BYTES + 2], sampled[32] = "";
    if (row->every > 1)
        snprintf(sampled, sizeof sampled, " (1 in %u)", row->every);
    tare__page_label(page, 0, row->name, sampled, TARE__PAGE_PLAIN);
    TARE__PAGE_CELLS(page, "c", (double)row->calls);
    tare__unit_time(total, row->total_ns);
    snprintf(marked, sizeof marked, "%s%s", row->estimated && isfinite(row->total_ns) ? "~" : "", total);
    tare__page_cell(page, TARE__PAGE_CELL, marked);
    TARE__PAGE_CELLS(page, "tttt", row->each.mean_ns, row->each.p50_ns, row->each.p95_ns, row->each.max_ns);
    tare__page_line_end(page);
}

void tare__part_aggregates(tare__page *page, const tare__analysis *analysis)
{
    size_t n = analysis->n_aggregates, shown = tare__page_rows(page, n, FEW);
    bool estimated = false;
    put_table(page, "Aggregates", "calls|total|mean|p50|p95|max", "aggregates", analysis->aggregates, n, FEW,
              put_aggregate);
    for (size_t i = 0; i < shown; i++)
        estimated = estimated || analysis->aggregates[i].estimated;
    if (estimated)
        tare__text_string(page->out, "~ estimated: mean of the timed calls times all calls\n");
}

/* ---- tracks -------------------------------------------------------------------------------------- */
static void put_track_title(tare__page *page, const tare__track_row *row)
{
    static const char *const kinds[] = {"", " (task)", " (GPU)", " (request)", ""};
    const char *kind = row->track_kind < TARE__COUNT_OF(kinds) ? kinds[row->track_kind] : "";
    tare__page_style_on(page, TARE__PAGE_STRONG);
    tare__page_name(page, 0, row->track[0] ? row->track : "recording thread", (unsigned)strlen(kind));
    tare__text_string(page->out, kind);
    tare__page_style_off(page);
    tare__page_line_end(page);
}

static void put_track(tare__page *page, const void *rows, size_t i)
{
    const tare__track_row *row = (const tare__track_row *)rows + i;
    if (i == 0 || strcmp(row->track, row[-1].track) != 0 || row->track_kind != row[-1].track_kind)
        put_track_title(page, row);
    TARE__PAGE_ROW(page, 2, row->name, "", "cttttt", (double)row->calls, row->total_ns, row->each.mean_ns,
                   row->each.p50_ns, row->each.p95_ns, row->each.max_ns);
}

void tare__part_tracks(tare__page *page, const tare__analysis *analysis)
{
    put_table(page, "Tracks", "calls|total|mean|p50|p95|max", "names on tracks", analysis->tracks, analysis->n_tracks,
              FEW, put_track);
}

/* ---- counters, marks ----------------------------------------------------------------------------- */
static void put_counter(tare__page *page, const void *rows, size_t i)
{
    const tare__counter_row *row = (const tare__counter_row *)rows + i;
    TARE__PAGE_ROW(page, 0, row->name, "", "cnnnnn", (double)row->n, row->first, row->last, row->min, row->mean,
                   row->max);
}

void tare__part_counters(tare__page *page, const tare__analysis *analysis)
{
    put_table(page, "Counters", "values|first|last|min|mean|max", "counters", analysis->counters, analysis->n_counters,
              FEW, put_counter);
}

static void put_mark(tare__page *page, const void *rows, size_t i)
{
    const tare__mark_row *row = (const tare__mark_row *)rows + i;
    TARE__PAGE_ROW(page, 0, row->name, "", "ctt", (double)row->n, row->first_at_ns, row->last_at_ns);
}

void tare__part_marks(tare__page *page, const tare__analysis *analysis)
{
    put_table(page, "Marks", "times|first at|last at", "marks", analysis->marks, analysis->n_marks, FEW, put_mark);
}
