/* csv: one file per table, for spreadsheets and data frames: RFC 4180, UTF-8, units in the column names; generated from
 * the schema (analyze/schema/schema.h).
 * Owned by the calling thread; writes in pieces. docs/EXPORT.md lists the columns.
 * Must not know how the tables were made, nor where the files are. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "flush.h"

typedef struct csv {
    tare__text text;
    const tare__emit_sink *sink;
    tare__error *error;
    unsigned cells; /* in this row */
    int status;
} csv;

/* ---- cells --------------------------------------------------------------------------------------------- */
static void separate(csv *to)
{
    if (to->cells++)
        tare__text_append(&to->text, ",", 1);
}

/* Spreadsheets interpret these at the start of a cell as a formula; a single quote before them makes it text. */
static bool looks_like_formula(const char *text)
{
    return *text && strchr("=+-@\t\r", *text);
}

/* The next cell of the row; an absent value (NULL, "", NaN) is an empty cell. */
static void csv_text(csv *to, const char *text)
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

static void csv_double(csv *to, double value)
{
    separate(to);
    if (!isfinite(value))
        return;
    tare__json json;
    tare__json_begin(&json, &to->text, false);
    tare__json_double(&json, value);
}

static void csv_count(csv *to, uint64_t value)
{
    separate(to);
    tare__text_format(&to->text, "%" PRIu64, value);
}

static void csv_signed(csv *to, int64_t value)
{
    separate(to);
    tare__text_format(&to->text, "%" PRId64, value);
}

static void csv_absent(csv *to)
{
    separate(to);
}

static void csv_end_row(csv *to)
{
    tare__text_append(&to->text, "\r\n", 2);
    to->cells = 0;
    if (!to->status)
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
}

/* ---- tables ----------------------------------------------------------------------------------------------- */
static void put_list(csv *to, const tare__value *value, const char *between)
{
    tare__text joined = {0};
    bool texts = value->type == TARE__TYPE_TEXTS;
    for (uint64_t i = 0; i < value->count; i++) {
        tare__json number;
        bool absent = texts ? !value->texts[i] : isnan(value->numbers[i]);
        tare__text_string(&joined, i ? between : "");
        tare__json_begin(&number, &joined, false);
        if (absent)
            tare__text_string(&joined, "?");
        else if (texts)
            tare__text_string(&joined, value->texts[i]);
        else
            tare__json_double(&number, value->numbers[i]);
    }
    to->text.failed |= joined.failed;
    csv_text(to, joined.data);
    tare__text_free(&joined);
}

static void put_cell(csv *to, const tare__schema_column *column, const tare__value *value)
{
    switch (value->type) {
    case TARE__TYPE_TEXT: csv_text(to, value->text); break;
    case TARE__TYPE_NUMBER: csv_double(to, value->number); break;
    case TARE__TYPE_SIGNED: csv_signed(to, value->whole); break;
    case TARE__TYPE_COUNT:
    case TARE__TYPE_ROW: csv_count(to, value->count); break;
    case TARE__TYPE_FLAG: csv_text(to, value->flag ? "true" : "false"); break;
    case TARE__TYPE_TEXTS:
    case TARE__TYPE_NUMBERS: put_list(to, value, column->between); break;
    default: csv_absent(to);
    }
}

/* A table, or rows nested in the rows of the previous level. */
typedef struct level {
    const tare__table *table;
    const tare__flat *via; /* the column of the previous level that contains these rows */
    tare__flat columns[TARE__FLAT_MAX];
    size_t n_columns;
    char one[32]; /* what a row is called */
    const void *row;
    size_t index;
} level;

#define LEVELS_MAX 4u
typedef struct sheet {
    csv csv;
    tare__cells cells;
    level levels[LEVELS_MAX];
    size_t last; /* the level whose rows are written */
    const tare__emit_files *files;
    const char *only; /* the file to be written to the sink; NULL: all */
} sheet;

static bool is_rows(const tare__flat *flat)
{
    return tare__schema_type(flat->column) == TARE__TYPE_ROWS;
}

/* Columns of the enclosing row that are repeated in the line of a nested row. */
static bool is_beside(const level *from, const tare__flat *flat)
{
    return flat->column->key && !is_rows(flat) && !tare__table_is_single(from->table);
}

static bool has_column(const level *from, const char *name)
{
    for (size_t i = 0; i < from->n_columns; i++)
        if (strcmp(from->columns[i].name, name) == 0)
            return true;
    return false;
}

static void put_head(sheet *to)
{
    const level *last = &to->levels[to->last];
    char name[128];
    if (to->last == 0)
        csv_text(&to->csv, "row");
    for (size_t k = 0; k < to->last; k++) {
        const level *from = &to->levels[k];
        if (!tare__table_is_single(from->table)) {
            snprintf(name, sizeof name, "%s_row", from->one);
            csv_text(&to->csv, name);
        }
        for (size_t i = 0; i < from->n_columns; i++) {
            bool both = has_column(last, from->columns[i].name);
            if (!is_beside(from, &from->columns[i]))
                continue;
            snprintf(name, sizeof name, "%s%s%s", both ? from->one : "", both ? "_" : "", from->columns[i].name);
            csv_text(&to->csv, name);
        }
    }
    for (size_t i = 0; i < last->n_columns; i++)
        if (!is_rows(&last->columns[i]))
            csv_text(&to->csv, last->columns[i].name);
    csv_end_row(&to->csv);
}

static tare__value cell_of(sheet *to, const level *from, const tare__flat *flat)
{
    to->cells.parent = from == to->levels ? NULL : from[-1].row;
    const void *row = tare__flat_row(&to->cells, flat, from->row, from->index);
    return row ? tare__schema_cell(&to->cells, flat->column, row, from->index)
               : (tare__value){.type = TARE__TYPE_ABSENT};
}

static void put_line(sheet *to)
{
    for (size_t k = 0; k <= to->last; k++) {
        const level *from = &to->levels[k];
        bool beside = k < to->last;
        if (k == 0 ? !tare__table_is_single(from->table) : beside)
            csv_count(&to->csv, from->index);
        for (size_t i = 0; i < from->n_columns; i++) {
            if (beside ? !is_beside(from, &from->columns[i]) : is_rows(&from->columns[i]))
                continue;
            tare__value value = cell_of(to, from, &from->columns[i]);
            to->csv.text.failed |= to->cells.failed;
            put_cell(&to->csv, from->columns[i].column, &value);
        }
    }
    csv_end_row(&to->csv);
}

/* Rows of a level: lines if it is the last level, else each row with its nested rows. */
static void put_rows(sheet *to, size_t depth, const char *rows, size_t n)
{
    level *at = &to->levels[depth];
    for (size_t i = 0; i < n && !to->csv.status; i++) {
        at->row = rows + i * at->table->row_bytes;
        at->index = i;
        if (depth == to->last) {
            put_line(to);
            continue;
        }
        tare__value inside = cell_of(to, at, to->levels[depth + 1].via);
        if (inside.type == TARE__TYPE_ROWS)
            put_rows(to, depth + 1, inside.rows, inside.count);
    }
}

/* A single row: one line for each of its values. */
static void put_single(sheet *to)
{
    level *at = &to->levels[0];
    tare__text_string(&to->csv.text, "key,value,unit,absent");
    csv_end_row(&to->csv);
    at->row = tare__table_row(to->cells.of, at->table, 0);
    at->index = 0;
    for (size_t i = 0; i < at->n_columns && !to->csv.status; i++) {
        const tare__flat *flat = &at->columns[i];
        if (is_rows(flat))
            continue;
        tare__value value = cell_of(to, at, flat);
        const void *row = tare__flat_row(&to->cells, flat, at->row, 0);
        csv_text(&to->csv, flat->name);
        put_cell(&to->csv, flat->column, &value);
        csv_text(&to->csv, tare__unit_word(row ? tare__schema_unit(flat->column, row) : flat->column->unit));
        const char *why = row ? tare__schema_absent(flat->column, row) : flat->column->absent;
        csv_text(&to->csv, value.type == TARE__TYPE_ABSENT ? why : NULL);
        csv_end_row(&to->csv);
    }
}

static void put_table(sheet *to)
{
    const tare__table *table = to->levels[0].table;
    size_t n = tare__table_rows(to->cells.of, table);
    if (to->last == 0 && tare__table_is_single(table)) {
        put_single(to);
        return;
    }
    put_head(to);
    put_rows(to, 0, n ? tare__table_row(to->cells.of, table, 0) : NULL, n);
}

/* ---- files ------------------------------------------------------------------------------------------------ */
static void put_file(sheet *to, const char *name)
{
    char file[160];
    if (to->only) {
        if (strcmp(to->only, name) == 0)
            put_table(to);
        return;
    }
    snprintf(file, sizeof file, "%s.csv", name);
    to->csv.sink = to->files->open(to->files->context, file);
    if (!to->csv.sink) {
        to->csv.status = TARE_E_SYSTEM;
        return;
    }
    put_table(to);
    if (!to->csv.status)
        to->csv.status = tare__emit_flush(&to->csv.text, to->csv.sink, to->csv.error);
    if (to->files->close(to->files->context) != 0 && !to->csv.status)
        to->csv.status = TARE_E_SYSTEM;
}

/* A row of "spans" is a span, one of "processes" a process. */
static void begin_level(level *at, const tare__table *table, const tare__flat *via)
{
    size_t length = strlen(table->name);
    bool es = length > 4 && strcmp(table->name + length - 4, "sses") == 0;
    length -= es ? 2 : table->name[length - 1] == 's' ? 1 : 0;
    snprintf(at->one, sizeof at->one, "%.*s", (int)length, table->name);
    at->table = table;
    at->via = via;
    at->n_columns = tare__flat_columns(table, at->columns);
}

/* The table of the last level, then those nested in its rows. */
static void put_files(sheet *to, const char *name)
{
    level *at = &to->levels[to->last];
    bool top = at->table->shape == TARE__SHAPE_TOP;
    put_file(to, name);
    for (size_t i = 0; i < at->n_columns && !to->csv.status && to->last + 1 < LEVELS_MAX; i++) {
        char inner[128];
        if (!is_rows(&at->columns[i]))
            continue;
        snprintf(inner, sizeof inner, "%s%s%s", top ? "" : name, top ? "" : "_", at->columns[i].name);
        begin_level(&to->levels[++to->last], at->columns[i].column->table, &at->columns[i]);
        put_files(to, inner);
        to->last--;
    }
}

static int put_all(sheet *to, const tare__document *document, const void *of)
{
    tare__cells_begin(&to->cells, of);
    for (size_t i = 0; i < document->n_tables && !to->csv.status; i++) {
        if (tare__table_is_single(document->tables[i]) && tare__table_rows(of, document->tables[i]) == 0)
            continue;
        begin_level(&to->levels[0], document->tables[i], NULL);
        put_files(to, document->tables[i]->name);
    }
    int status = to->csv.status;
    if (!status && to->only)
        status = tare__emit_flush(&to->csv.text, to->csv.sink, to->csv.error);
    tare__text_free(&to->csv.text);
    free(to);
    return status;
}

int tare__emit_csv(const tare__document *document, const void *of, const tare__emit_files *files, tare__error *error)
{
    sheet *to = calloc(1, sizeof *to);
    if (!to)
        return tare__no_memory(error);
    to->files = files;
    to->csv.error = error;
    return put_all(to, document, of);
}

int tare__emit_csv_table(const tare__document *document, const void *of, const char *name, const tare__emit_sink *sink,
                         tare__error *error)
{
    sheet *to = calloc(1, sizeof *to);
    if (!to)
        return tare__no_memory(error);
    to->only = name;
    to->csv.sink = sink;
    to->csv.error = error;
    return put_all(to, document, of);
}
