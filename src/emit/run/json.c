/* json: every table as strict JSON, a walk over the schema (analyze/schema/schema.h); docs/JSON.md is made from the
 * same. Owned by the calling thread.
 * Must not know how the tables were made, nor where the bytes go. */
#include "analyze/analyze.h"
#include "emit/flush.h"

#define SCHEMA_NAME    "tare-report"
#define SCHEMA_VERSION 1
#define SCHEMA_MINOR   5 /* grows when keys are added */

typedef struct writer {
    tare__json json;
    tare__text text;
    tare__cells cells;
    bool all; /* rows that are bulky, too */
    const tare__emit_sink *sink;
    tare__error *error;
    int status; /* the first failure; what comes after it is not written */
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

/* Handed on in pieces. */
static void put_rows(writer *to, const tare__table *table, const char *rows, size_t n)
{
    tare__json_array(&to->json);
    for (size_t i = 0; i < n && !to->status; i++) {
        put_row(to, table, rows + i * table->row_bytes, i);
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
    }
    tare__json_end_array(&to->json);
}

static void put_value(writer *to, const tare__schema_column *column, const void *row, size_t index)
{
    tare__json *json = &to->json;
    tare__value value = column->bulky && column->bulky(row) && !to->all
                            ? (tare__value){.type = TARE__TYPE_ABSENT}
                            : tare__schema_cell(&to->cells, column, row, index);
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
    case TARE__TYPE_PART: put_row(to, column->table, value.rows, 0); break;
    case TARE__TYPE_ROWS: put_rows(to, column->table, value.rows, value.count); break;
    }
}

static void put_columns(writer *to, const tare__table *table, const void *row, size_t index)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        tare__json_key(&to->json, table->columns[i].name);
        put_value(to, &table->columns[i], row, index);
    }
}

/* Why values of a single row are null. */
static void put_reasons(writer *to, const tare__table *table, const void *row)
{
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
    const tare__analysis *of = to->cells.of;
    size_t n = tare__table_rows(of, table);
    tare__json_key(&to->json, table->name);
    if (table->shape != TARE__SHAPE_SINGLE) {
        put_rows(to, table, n ? tare__table_row(of, table, 0) : NULL, n);
    } else if (n == 0) {
        tare__json_null(&to->json);
    } else {
        const void *row = tare__table_row(of, table, 0);
        tare__json_object(&to->json);
        put_columns(to, table, row, 0);
        put_reasons(to, table, row);
        tare__json_end_object(&to->json);
    }
}

static void put_schema(writer *to)
{
    tare__json_key(&to->json, "schema");
    tare__json_object(&to->json);
    tare__json_put_string(&to->json, "name", SCHEMA_NAME);
    tare__json_put_unsigned(&to->json, "version", SCHEMA_VERSION);
    tare__json_put_unsigned(&to->json, "minor", SCHEMA_MINOR);
    tare__json_end_object(&to->json);
}

static int emit_json(const tare__emit_input *input, const tare__emit_options *options,
                     const tare__emit_sink *sink, tare__error *error)
{
    const tare__table *table;
    writer to = {.all = options->all, .sink = sink, .error = error};
    tare__cells_begin(&to.cells, input->analysis);
    tare__json_begin(&to.json, &to.text, options->pretty);
    tare__json_object(&to.json);
    put_schema(&to);
    for (size_t i = 0; (table = tare__schema_table(i)) && !to.status; i++)
        put_table(&to, table);
    tare__json_end_object(&to.json);
    tare__text_string(&to.text, "\n");
    if (!to.status)
        to.status = tare__emit_flush(&to.text, sink, error);
    tare__text_free(&to.text);
    return to.status;
}

const tare__emitter tare__emit_json = {
    .name = "json",
    .description = "for machines: every table, as docs/JSON.md specifies",
    .needs = TARE__EMIT_TABLES,
    .emit = emit_json,
};
