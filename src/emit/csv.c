/* csv: one file a table, for spreadsheets and data frames: RFC 4180, UTF-8, units in the columns' names; a walk over
 * the schema (analyze/schema/schema.h).
 * Owned by the calling thread; writes in pieces. docs/EXPORT.md tells the columns.
 * Must not know how the tables were made, nor where the files are. */
#include "csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "flush.h"
#include "tare.h"

/* ---- cells --------------------------------------------------------------------------------------------- */
static void separate(csv *to)
{
    if (to->cells++)
        tare__text_append(&to->text, ",", 1);
}

/* A spreadsheet takes these at the start of a cell for a formula; a single quote before them makes it text. */
static bool looks_like_formula(const char *text)
{
    return *text && strchr("=+-@\t\r", *text);
}

void tare__csv_text(csv *to, const char *text)
{
    separate(to);
    if (!text || !*text)
        return;
    size_t length = strlen(text);
    bool quoted = strpbrk(text, ",\"\r\n") || *text == ' ' || text[length - 1] == ' ';
    if (quoted)
        tare__text_append(&to->text, "\"", 1);
    if (looks_like_formula(text))
        tare__text_append(&to->text, "'", 1);
    for (size_t at = 0, size; at < length; at += size ? size : 1) {
        uint32_t code;
        size = tare__utf8_decode(text + at, length - at, &code);
        tare__text_append(&to->text, size ? text + at : "\xef\xbf\xbd", size ? size : 3);
        if (text[at] == '"')
            tare__text_append(&to->text, "\"", 1);
    }
    if (quoted)
        tare__text_append(&to->text, "\"", 1);
}

void tare__csv_double(csv *to, double value)
{
    separate(to);
    if (!isfinite(value))
        return;
    tare__json json;
    tare__json_begin(&json, &to->text, false);
    tare__json_double(&json, value);
}

void tare__csv_count(csv *to, uint64_t value)
{
    separate(to);
    tare__text_format(&to->text, "%" PRIu64, value);
}

void tare__csv_signed(csv *to, int64_t value)
{
    separate(to);
    tare__text_format(&to->text, "%" PRId64, value);
}

void tare__csv_absent(csv *to)
{
    separate(to);
}

void tare__csv_ns(csv *to, double ns)
{
    tare__csv_double(to, fabs(ns) < 1e12 ? round(ns * 1000) / 1000 : ns);
}

void tare__csv_known(csv *to, int64_t value)
{
    if (value)
        tare__csv_signed(to, value);
    else
        tare__csv_absent(to);
}

void tare__csv_flag(csv *to, bool value)
{
    tare__csv_text(to, value ? "true" : "false");
}

void tare__csv_end_row(csv *to)
{
    tare__text_append(&to->text, "\r\n", 2);
    to->cells = 0;
    if (!to->status)
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
}

/* ---- tables ----------------------------------------------------------------------------------------------- */
static void put_texts(csv *to, const tare__value *value, const char *between)
{
    tare__text joined = {0};
    for (uint64_t i = 0; i < value->count; i++) {
        tare__text_string(&joined, i ? between : "");
        tare__text_string(&joined, value->texts[i]);
    }
    to->text.failed |= joined.failed;
    tare__csv_text(to, joined.data);
    tare__text_free(&joined);
}

static void put_cell(csv *to, const tare__schema_column *column, const tare__value *value)
{
    switch (value->type) {
    case TARE__TYPE_TEXT: tare__csv_text(to, value->text); break;
    case TARE__TYPE_NUMBER: tare__csv_double(to, value->number); break;
    case TARE__TYPE_SIGNED: tare__csv_signed(to, value->whole); break;
    case TARE__TYPE_COUNT:
    case TARE__TYPE_ROW: tare__csv_count(to, value->count); break;
    case TARE__TYPE_FLAG: tare__csv_text(to, value->flag ? "true" : "false"); break;
    case TARE__TYPE_TEXTS: put_texts(to, value, column->between); break;
    default: tare__csv_absent(to);
    }
}

/* A table under way, or rows inside of its rows. */
typedef struct sheet {
    csv csv;
    tare__cells *cells;
    const tare__table *table;
    const tare__flat *columns; /* of the table */
    size_t n_columns;
    const tare__flat *inside; /* the column whose rows these are; NULL: the table's own */
    char one[32];             /* what a row of the table is called */
} sheet;

static bool is_rows(const tare__flat *flat)
{
    return tare__schema_type(flat->column) == TARE__TYPE_ROWS;
}

static const void *part(const void *row, const tare__flat *flat)
{
    return (const char *)row + flat->at;
}

/* Of a row of the table, beside a row inside it. */
static bool is_beside(const sheet *to, const tare__flat *flat)
{
    return flat->column->key && !is_rows(flat) && to->table->shape != TARE__SHAPE_SINGLE;
}

static void put_head(sheet *to, const tare__flat *inner, size_t n_inner)
{
    char name[128];
    if (!to->inside) {
        tare__csv_text(&to->csv, "row");
    } else if (to->table->shape != TARE__SHAPE_SINGLE) {
        snprintf(name, sizeof name, "%s_row", to->one);
        tare__csv_text(&to->csv, name);
    }
    for (size_t i = 0; i < to->n_columns && to->inside; i++) {
        if (!is_beside(to, &to->columns[i]))
            continue;
        bool both = false;
        for (size_t k = 0; k < n_inner; k++)
            both |= strcmp(inner[k].name, to->columns[i].name) == 0;
        snprintf(name, sizeof name, "%s%s%s", both ? to->one : "", both ? "_" : "", to->columns[i].name);
        tare__csv_text(&to->csv, name);
    }
    for (size_t i = 0; i < n_inner; i++)
        if (!is_rows(&inner[i]))
            tare__csv_text(&to->csv, inner[i].name);
    tare__csv_end_row(&to->csv);
}

static void put_cells(sheet *to, const tare__flat *columns, size_t n, const void *row, size_t index, bool beside)
{
    for (size_t i = 0; i < n; i++) {
        if (beside ? !is_beside(to, &columns[i]) : is_rows(&columns[i]))
            continue;
        tare__value value = tare__schema_cell(to->cells, columns[i].column, part(row, &columns[i]), index);
        put_cell(&to->csv, columns[i].column, &value);
    }
}

static void put_own_rows(sheet *to)
{
    size_t n = tare__table_rows(to->cells->of, to->table);
    put_head(to, to->columns, to->n_columns);
    for (size_t i = 0; i < n && !to->csv.status; i++) {
        tare__csv_count(&to->csv, i);
        put_cells(to, to->columns, to->n_columns, tare__table_row(to->cells->of, to->table, i), i, false);
        tare__csv_end_row(&to->csv);
    }
}

static void put_inner_rows(sheet *to)
{
    tare__flat inner[TARE__FLAT_MAX];
    const tare__schema_column *column = to->inside->column;
    size_t n_inner = tare__flat_columns(column->table, inner), n = tare__table_rows(to->cells->of, to->table);
    put_head(to, inner, n_inner);
    for (size_t i = 0; i < n; i++) {
        const void *row = tare__table_row(to->cells->of, to->table, i);
        tare__value rows = tare__schema_cell(to->cells, column, part(row, to->inside), i);
        for (uint64_t k = 0; rows.type == TARE__TYPE_ROWS && k < rows.count && !to->csv.status; k++) {
            if (to->table->shape != TARE__SHAPE_SINGLE)
                tare__csv_count(&to->csv, i);
            put_cells(to, to->columns, to->n_columns, row, i, true);
            put_cells(to, inner, n_inner, (const char *)rows.rows + k * column->table->row_bytes, k, false);
            tare__csv_end_row(&to->csv);
        }
    }
}

/* One row: a line for each of its values. */
static void put_single(sheet *to)
{
    tare__text_string(&to->csv.text, "key,value,unit,absent");
    tare__csv_end_row(&to->csv);
    if (tare__table_rows(to->cells->of, to->table) == 0)
        return;
    const void *row = tare__table_row(to->cells->of, to->table, 0);
    for (size_t i = 0; i < to->n_columns && !to->csv.status; i++) {
        const tare__schema_column *column = to->columns[i].column;
        const void *in = part(row, &to->columns[i]);
        if (is_rows(&to->columns[i]))
            continue;
        tare__value value = tare__schema_cell(to->cells, column, in, 0);
        tare__csv_text(&to->csv, to->columns[i].name);
        put_cell(&to->csv, column, &value);
        tare__csv_text(&to->csv, tare__unit_word(tare__schema_unit(column, in)));
        tare__csv_text(&to->csv, value.type == TARE__TYPE_ABSENT ? tare__schema_absent(column, in) : NULL);
        tare__csv_end_row(&to->csv);
    }
}

/* ---- files ------------------------------------------------------------------------------------------------ */
static int put_file(sheet *to, const tare__emit_files *files)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s%s.csv", to->table->name, to->inside ? "_" : "",
             to->inside ? to->inside->name : "");
    to->csv.sink = files->open(files->context, name);
    if (!to->csv.sink)
        return TARE_E_SYSTEM;
    if (to->inside)
        put_inner_rows(to);
    else if (to->table->shape == TARE__SHAPE_SINGLE)
        put_single(to);
    else
        put_own_rows(to);
    int status = to->csv.status ? to->csv.status : tare__emit_flush(&to->csv.text, to->csv.sink, to->csv.error);
    return files->close(files->context) != 0 && !status ? TARE_E_SYSTEM : status;
}

/* "spans" is of spans, "processes" of processes. */
static void name_one(sheet *to)
{
    size_t length = strlen(to->table->name);
    bool es = length > 4 && strcmp(to->table->name + length - 4, "sses") == 0;
    length -= es ? 2 : to->table->name[length - 1] == 's' ? 1 : 0;
    snprintf(to->one, sizeof to->one, "%.*s", (int)length, to->table->name);
}

int tare__emit_csv(const tare__analysis *analysis, const tare__emit_files *files, tare__error *error)
{
    tare__cells cells;
    tare__flat columns[TARE__FLAT_MAX];
    sheet to = {.csv.error = error, .cells = &cells, .columns = columns};
    int status = 0;
    tare__cells_begin(&cells, analysis);
    for (size_t i = 0; (to.table = tare__schema_table(i)) && !status; i++) {
        to.n_columns = tare__flat_columns(to.table, columns);
        to.inside = NULL;
        name_one(&to);
        status = put_file(&to, files);
        for (size_t k = 0; k < to.n_columns && !status; k++) {
            to.inside = &columns[k];
            if (is_rows(to.inside))
                status = put_file(&to, files);
        }
    }
    tare__text_free(&to.csv.text);
    return status;
}
