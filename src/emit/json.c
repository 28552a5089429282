/* json: a document as strict JSON, generated from its schema (analyze/schema/schema.h), as is docs/JSON.md. Owned by
 * the calling thread.
 * Must not know how the tables were made, nor where the bytes go. */
#include "flush.h"

typedef struct writer {
    tare__json json;
    tare__text text;
    tare__cells cells;
    bool all; /* also bulky rows */
    const tare__emit_sink *sink; /* NULL: everything stays in `text` */
    tare__error *error;
    int status; /* the first failure; nothing is written after it */
} writer;

static void put_columns(writer *to, const tare__table *table, const void *row, size_t index);
static void put_value(writer *to, const tare__schema_column *column, const void *row, size_t index);

static void put_row(writer *to, const tare__table *table, const void *row, size_t index)
{
    switch (table->shape) {
    case TARE__SHAPE_VALUES: put_value(to, &table->columns[0], row, index); break;
    case TARE__SHAPE_TUPLES:
        tare__json_array(&to->json);
        for (size_t i = 0; i < table->n_columns; i++)
            put_value(to, &table->columns[i], row, index);
        tare__json_end_array(&to->json);
        break;
    default:
        tare__json_object(&to->json);
        put_columns(to, table, row, index);
        tare__json_end_object(&to->json);
    }
}

/* Passed to the sink in pieces. Arrays of numbers are not split into lines: a thousand lines of one number are
 * unreadable. */
static void put_rows(writer *to, const tare__table *table, const char *rows, size_t n)
{
    bool pretty = to->json.pretty;
    to->json.pretty &= table->shape != TARE__SHAPE_VALUES || tare__schema_type(table->columns) == TARE__TYPE_TEXT;
    tare__json_array(&to->json);
    for (size_t i = 0; i < n && !to->status; i++) {
        put_row(to, table, rows + i * table->row_bytes, i);
        if (to->sink)
            to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
    }
    tare__json_end_array(&to->json);
    to->json.pretty = pretty;
}

static void put_value(writer *to, const tare__schema_column *column, const void *row, size_t index)
{
    tare__json *json = &to->json;
    tare__value value = column->bulky && column->bulky(row) && !to->all
                            ? (tare__value){.type = TARE__TYPE_ABSENT}
                            : tare__schema_cell(&to->cells, column, row, index);
    to->text.failed |= to->cells.failed;
    switch (value.type) {
    case TARE__TYPE_ABSENT: tare__json_null(json); break;
    case TARE__TYPE_TEXT: tare__json_string(json, value.text); break;
    case TARE__TYPE_NUMBER: tare__json_double(json, value.number); break;
    case TARE__TYPE_SIGNED: tare__json_signed(json, value.whole); break;
    case TARE__TYPE_COUNT:
    case TARE__TYPE_ROW: tare__json_unsigned(json, value.count); break;
    case TARE__TYPE_FLAG: tare__json_bool(json, value.flag); break;
    case TARE__TYPE_TEXTS:
        tare__json_array(json);
        for (uint64_t i = 0; i < value.count; i++)
            tare__json_string(json, value.texts[i]);
        tare__json_end_array(json);
        break;
    case TARE__TYPE_NUMBERS:
        tare__json_array(json);
        for (uint64_t i = 0; i < value.count; i++)
            tare__json_double(json, value.numbers[i]);
        tare__json_end_array(json);
        break;
    case TARE__TYPE_PART: put_row(to, column->table, value.rows, 0); break;
    case TARE__TYPE_ROWS: {
        const void *parent = to->cells.parent;
        to->cells.parent = row;
        put_rows(to, column->table, value.rows, value.count);
        to->cells.parent = parent;
        break;
    }
    }
}

static void put_columns(writer *to, const tare__table *table, const void *row, size_t index)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        tare__json_key(&to->json, table->columns[i].name);
        put_value(to, &table->columns[i], row, index);
    }
}

/* Reasons why values of a single row are null, if its columns state them. */
static void put_reasons(writer *to, const tare__table *table, const void *row)
{
    bool reported = false;
    for (size_t i = 0; i < table->n_columns; i++)
        reported |= table->columns[i].absent || table->columns[i].absent_at;
    if (!reported)
        return;
    tare__json_key(&to->json, "reasons");
    tare__json_object(&to->json);
    for (size_t i = 0; i < table->n_columns; i++) {
        const tare__schema_column *column = &table->columns[i];
        const char *why = tare__schema_absent(column, row);
        if (why && tare__schema_cell(&to->cells, column, row, 0).type == TARE__TYPE_ABSENT)
            tare__json_put_string(&to->json, column->name, why);
    }
    tare__json_end_object(&to->json);
}

static void put_table(writer *to, const tare__table *table)
{
    const void *of = to->cells.of;
    size_t n = tare__table_rows(of, table);
    const void *row = n ? tare__table_row(of, table, 0) : NULL;
    bool top = table->shape == TARE__SHAPE_TOP;
    if (top && !row)
        return;
    if (!top)
        tare__json_key(&to->json, table->name);
    if (!tare__table_is_single(table)) {
        put_rows(to, table, row, n);
    } else if (!row) {
        tare__json_null(&to->json);
    } else {
        if (!top)
            tare__json_object(&to->json);
        put_columns(to, table, row, 0);
        put_reasons(to, table, row);
        if (!top)
            tare__json_end_object(&to->json);
    }
}

static void put_document(writer *to, const tare__document *document)
{
    tare__json_object(&to->json);
    if (document->name) {
        tare__json_key(&to->json, "schema");
        tare__json_object(&to->json);
        tare__json_put_string(&to->json, "name", document->name);
        tare__json_put_unsigned(&to->json, "version", document->version);
        tare__json_put_unsigned(&to->json, "minor", document->minor);
        tare__json_end_object(&to->json);
    }
    for (size_t i = 0; i < document->n_tables && !to->status; i++)
        put_table(to, document->tables[i]);
    tare__json_end_object(&to->json);
    tare__text_string(&to->text, "\n");
}

int tare__emit_document(const tare__document *document, const void *of, const tare__emit_options *options,
                        const tare__emit_sink *sink, tare__error *error)
{
    writer to = {.all = options->all, .sink = sink, .error = error};
    tare__cells_begin(&to.cells, of);
    tare__json_begin(&to.json, &to.text, options->pretty);
    put_document(&to, document);
    if (!to.status)
        to.status = tare__emit_flush(&to.text, sink, error);
    tare__text_free(&to.text);
    return to.status;
}

void tare__put_document(tare__text *out, const tare__document *document, const void *of, bool pretty)
{
    writer to = {.all = true, .text = *out};
    tare__cells_begin(&to.cells, of);
    tare__json_begin(&to.json, &to.text, pretty);
    put_document(&to, document);
    *out = to.text;
}

void tare__put_json_table(tare__json *json, tare__cells *cells, const tare__table *table)
{
    writer to = {.json = *json, .all = true};
    tare__cells_begin(&to.cells, cells->of);
    put_table(&to, table);
    *json = to.json;
}

static int emit_json(const tare__emit_input *input, const tare__emit_options *options,
                     const tare__emit_sink *sink, tare__error *error)
{
    return tare__emit_document(&tare__document_report, input->analysis, options, sink, error);
}

const tare__emitter tare__emit_json = {
    .name = "json",
    .needs = TARE__EMIT_TABLES,
    .emit = emit_json,
};
