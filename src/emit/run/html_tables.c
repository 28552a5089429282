/* html_tables: tables of the schema as the page's data: the names of their columns, their display properties, rows.
 * Owned by the calling thread.
 * Must not know how the tables were made. */
#include "html.h"

#include <math.h>
#include <stdlib.h>

/* ---- steps: columns that only the page draws --------------------------------------------------------------------- */
/* The start, the width, the number beyond the last bin, and the counts. */
static void put_bins(tare__html *page, const tare__step_bins *bins)
{
    bool empty = !isfinite(bins->width_ns);
    tare__json_array(&page->json);
    tare__html_figure(page, bins->from_ns);
    tare__html_figure(page, bins->width_ns);
    tare__json_unsigned(&page->json, bins->over);
    for (size_t i = 0; i < TARE__STEP_BINS && !empty; i++)
        tare__json_unsigned(&page->json, bins->counts[i]);
    tare__json_end_array(&page->json);
}

#define COURSES 6u /* kinds of steps that the page draws, those with the most time */

static bool is_drawn(const tare__html *page, const tare__step_row *row)
{
    size_t larger = 0;
    for (size_t i = 0; i < page->analysis->n_steps; i++)
        larger += page->analysis->steps[i].total_ns > row->total_ns;
    return row->course.n_bins > 1 && larger < COURSES;
}

static void put_parts(tare__html *page, const tare__step_course *course)
{
    tare__json_array(&page->json);
    for (size_t i = 0; i < course->n_parts; i++)
        tare__json_string(&page->json, course->parts[i]);
    tare__json_end_array(&page->json);
}

/* Names of parts, whether they are phases, and a list per bin: steps, from, to, total, each part. */
static void put_course(tare__html *page, const tare__step_row *row)
{
    const tare__step_course *course = &row->course;
    if (!is_drawn(page, row)) {
        tare__json_null(&page->json);
        return;
    }
    tare__json_array(&page->json);
    put_parts(page, course);
    tare__json_bool(&page->json, course->phases);
    for (size_t i = 0; i < course->n_bins; i++) {
        const tare__course_bin *bin = &course->bins[i];
        tare__json_array(&page->json);
        tare__json_unsigned(&page->json, bin->steps);
        tare__html_ns(page, bin->from_ns);
        tare__html_ns(page, bin->to_ns);
        tare__html_ns(page, bin->total_ns);
        for (size_t part = 0; part < course->n_parts; part++)
            tare__html_ns(page, bin->parts_ns[part]);
        tare__json_end_array(&page->json);
    }
    tare__json_end_array(&page->json);
}

static void put_step_drawn(tare__html *page, const void *row, size_t index)
{
    const tare__step_row *step = row;
    (void)index;
    put_bins(page, &step->bins);
    put_course(page, step);
}
static const tare__html_drawn step_drawn = {{"bins", "course"}, put_step_drawn};

/* ---- any table ---------------------------------------------------------------------------------- */
static bool is_rows(const tare__schema_column *column)
{
    return tare__schema_type(column) == TARE__TYPE_ROWS;
}

static void put_value(tare__html *page, const tare__schema_column *column, const void *row, size_t index)
{
    tare__json *json = &page->json;
    tare__value value = tare__schema_cell(&page->cells, column, row, index);
    switch (value.type) {
    case TARE__TYPE_TEXT: tare__json_string(json, value.text); break;
    case TARE__TYPE_NUMBER: tare__html_figure(page, value.number); break;
    case TARE__TYPE_SIGNED: tare__json_signed(json, value.whole); break;
    case TARE__TYPE_COUNT:
    case TARE__TYPE_ROW: tare__json_unsigned(json, value.count); break;
    case TARE__TYPE_FLAG: tare__json_bool(json, value.flag); break;
    case TARE__TYPE_ROWS:
        tare__json_array(json);
        for (uint64_t i = 0; i < value.count; i++) {
            tare__json_array(json);
            for (size_t k = 0; k < column->table->n_columns; k++)
                put_value(page, &column->table->columns[k], (const char *)value.rows + i * column->table->row_bytes, i);
            tare__json_end_array(json);
        }
        tare__json_end_array(json);
        break;
    default: tare__json_null(json);
    }
}

static void put_key(tare__html *page, const char *key, const char *text)
{
    if (text)
        tare__json_put_string(&page->json, key, text);
}

static void put_flag(tare__html *page, const char *key, bool flag)
{
    if (flag)
        tare__json_put_bool(&page->json, key, true);
}

/* The column of the row that states why this one has no value; NULL: none. */
static const char *absent_by(const tare__table *table, const tare__schema_column *column)
{
    for (size_t i = 0; i < table->n_columns && column->absent_at; i++)
        if (table->columns[i].stored == TARE__STORED_TEXT && table->columns[i].at == column->absent_at)
            return table->columns[i].name;
    return NULL;
}

static void put_column(tare__html *page, const tare__table *table, const tare__schema_column *column)
{
    char label[TARE__LABEL_BYTES];
    tare__type type = tare__schema_type(column);
    tare__json_key(&page->json, column->name);
    tare__json_object(&page->json);
    put_key(page, "label", tare__flat_label(label, &(tare__flat){.column = column}));
    put_key(page, "meaning", column->meaning);
    put_key(page, "unit", tare__unit_word(column->unit));
    put_key(page, "unit_by", column->unit_by);
    put_flag(page, "number", type == TARE__TYPE_NUMBER || type == TARE__TYPE_SIGNED || type == TARE__TYPE_COUNT);
    put_flag(page, "under", column->page == TARE__PAGE_UNDER);
    put_flag(page, "bar", column->bar);
    put_key(page, "between", column->between);
    put_key(page, "prefix", column->prefix);
    put_key(page, "prefix_by", column->prefix_by);
    put_key(page, "absent", column->absent);
    put_key(page, "absent_by", absent_by(table, column));
    put_key(page, "of", type == TARE__TYPE_ROW ? column->table->name : NULL);
    tare__json_end_object(&page->json);
}

void tare__html_open_schema(tare__html *page, const tare__table *table, const tare__html_drawn *drawn)
{
    char title[TARE__LABEL_BYTES];
    tare__json_key(&page->json, table->name);
    tare__json_object(&page->json);
    tare__json_put_string(&page->json, "label", tare__table_title(title, table));
    tare__json_key(&page->json, "columns");
    tare__json_array(&page->json);
    for (size_t i = 0; i < table->n_columns; i++)
        if (table->columns[i].page != TARE__PAGE_NOT)
            tare__json_string(&page->json, table->columns[i].name);
    for (size_t i = 0; drawn && i < TARE__COUNT_OF(drawn->names) && drawn->names[i]; i++)
        tare__json_string(&page->json, drawn->names[i]);
    tare__json_end_array(&page->json);
    if (table->page == TARE__PAGE_SHOWN) {
        tare__json_key(&page->json, "about");
        tare__json_object(&page->json);
        for (size_t i = 0; i < table->n_columns; i++)
            if (table->columns[i].page < TARE__PAGE_HIDDEN && !is_rows(&table->columns[i]))
                put_column(page, table, &table->columns[i]);
        tare__json_end_object(&page->json);
    }
    tare__json_key(&page->json, "rows");
    tare__json_array(&page->json);
}

void tare__html_schema_row(tare__html *page, const tare__table *table, const tare__html_drawn *drawn, const void *row,
                           size_t index)
{
    tare__html_open_row(page);
    for (size_t i = 0; i < table->n_columns; i++)
        if (table->columns[i].page != TARE__PAGE_NOT)
            put_value(page, &table->columns[i], row, index);
    if (drawn)
        drawn->put(page, row, index);
    tare__html_close_row(page);
}

static void put_rows(tare__html *page, const tare__table *table)
{
    bool steps = table == &tare__table_steps || table == &tare__table_epochs;
    const tare__html_drawn *drawn = steps ? &step_drawn : NULL;
    size_t all = tare__table_rows(page->analysis, table);
    size_t n = all < page->limits->rows ? all : page->limits->rows;
    tare__html_open_schema(page, table, drawn);
    for (size_t i = 0; i < n && !page->status; i++)
        tare__html_schema_row(page, table, drawn, tare__table_row(page->analysis, table, i), i);
    tare__html_close_table(page, all - n);
}

/* ---- spans: the largest rows if there are too many --------------------------------------------------------------- */
TARE__ORDER(by_total_descending, double, TARE__FALLING_VALUE)

/* Rows with less than this are omitted; -1 keeps all. */
static double least_total(tare__html *page)
{
    const tare__analysis *analysis = page->analysis;
    size_t n = analysis->n_spans;
    if (n <= page->limits->spans)
        return -1;
    double *totals = malloc(n * sizeof *totals);
    if (!totals) {
        page->text.failed = true;
        return INFINITY;
    }
    for (size_t i = 0; i < n; i++)
        totals[i] = analysis->spans[i].total_ns;
    qsort(totals, n, sizeof *totals, by_total_descending);
    double least = totals[page->limits->spans];
    free(totals);
    return least;
}

/* A row is kept together with its ancestors: except for rounding, a total is never larger than that of its parent; if
 * it is, the row is omitted together with its parent. */
static void put_spans(tare__html *page)
{
    const tare__analysis *analysis = page->analysis;
    const tare__table *table = &tare__table_spans;
    double least = least_total(page);
    uint32_t *place = calloc(analysis->n_spans + 1, sizeof *place), kept = 0;
    if (!place)
        page->text.failed = true;
    tare__html_open_schema(page, table, NULL);
    for (size_t i = 0; place && i < analysis->n_spans && !page->status; i++) {
        tare__span_row row = analysis->spans[i];
        uint32_t parent = row.parent == TARE__NO_ROW ? TARE__NO_ROW : place[row.parent];
        place[i] = TARE__NO_ROW;
        if (!(row.total_ns > least) || (row.parent != TARE__NO_ROW && parent == TARE__NO_ROW))
            continue;
        row.parent = parent;
        tare__html_schema_row(page, table, NULL, &row, i);
        place[i] = kept++;
    }
    tare__html_close_table(page, analysis->n_spans - kept);
    free(place);
}

/* ---- all ---------------------------------------------------------------------------------------------------- */
void tare__html_tables(tare__html *page)
{
    const tare__table *table;
    for (size_t i = 0; (table = tare__schema_table(i)); i++) {
        if (table->page == TARE__PAGE_NOT)
            continue;
        if (table == &tare__table_spans)
            put_spans(page);
        else if (table == &tare__table_metrics)
            tare__html_metrics(page);
        else if (table->shape == TARE__SHAPE_ROWS)
            put_rows(page, table);
        else
            tare__put_json_table(&page->json, &page->cells, table);
    }
}
