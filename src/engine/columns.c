/* columns: a table of the schema as Arrow arrays: texts as utf8, times and counts as integers, parts as structs, nested
 * rows as lists of structs. Missing values are null.
 * Owned by the caller, who releases the result. Must not know traces. */
#include "columns.h"

#include <stdlib.h>
#include <string.h>

/* ---- schema -------------------------------------------------------------------------------------- */
static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i] && schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    free((void *)(uintptr_t)schema->metadata);
    schema->release = NULL;
}

static int make_children(struct ArrowSchema *schema, int64_t n)
{
    schema->children = calloc((size_t)n, sizeof *schema->children);
    if (!schema->children)
        return TARE_E_MEMORY;
    for (schema->n_children = 0; schema->n_children < n; schema->n_children++)
        if (!(schema->children[schema->n_children] = calloc(1, sizeof **schema->children)))
            return TARE_E_MEMORY;
    return 0;
}

/* Pairs of key and value: their number, then the length of each and its bytes. */
static char *metadata(const char *unit, const char *meaning)
{
    const char *const texts[] = {"unit", unit, "description", meaning};
    int32_t from = unit ? 0 : 2, pairs = unit ? 2 : 1;
    size_t bytes = sizeof pairs;
    for (int32_t i = from; i < 4; i++)
        bytes += sizeof(int32_t) + strlen(texts[i]);
    char *all = malloc(bytes), *at = all;
    if (!all)
        return NULL;
    memcpy(at, &pairs, sizeof pairs);
    at += sizeof pairs;
    for (int32_t i = from; i < 4; i++) {
        int32_t length = (int32_t)strlen(texts[i]);
        memcpy(at, &length, sizeof length);
        memcpy(at + sizeof length, texts[i], (size_t)length);
        at += sizeof length + (size_t)length;
    }
    return all;
}

static int struct_schema(const tare__table *table, struct ArrowSchema *schema);

static int list_schema(const tare__schema_column *column, struct ArrowSchema *schema)
{
    int status = make_children(schema, 1);
    if (status)
        return status;
    if (column->table)
        status = struct_schema(column->table, schema->children[0]);
    else
        *schema->children[0] = (struct ArrowSchema){
            .format = "u", .name = "item", .flags = ARROW_FLAG_NULLABLE, .release = release_schema};
    schema->children[0]->name = "item";
    return status;
}

static int column_schema(const tare__schema_column *column, struct ArrowSchema *schema)
{
    static const char *const formats[] = {
        [TARE__TYPE_TEXT] = "u",  [TARE__TYPE_NUMBER] = "g", [TARE__TYPE_SIGNED] = "l", [TARE__TYPE_COUNT] = "L",
        [TARE__TYPE_FLAG] = "b",  [TARE__TYPE_ROW] = "I",    [TARE__TYPE_TEXTS] = "+l", [TARE__TYPE_ROWS] = "+l",
        [TARE__TYPE_PART] = "+s",
    };
    tare__type type = tare__schema_type(column);
    int status = 0;
    if (type == TARE__TYPE_PART)
        status = struct_schema(column->table, schema);
    schema->format = formats[type];
    schema->name = column->name;
    schema->flags = ARROW_FLAG_NULLABLE;
    schema->release = release_schema;
    if (type == TARE__TYPE_ROWS || type == TARE__TYPE_TEXTS)
        status = list_schema(column, schema);
    if (!status)
        schema->metadata = metadata(tare__unit_word(column->unit), column->meaning);
    return status ? status : schema->metadata ? 0 : TARE_E_MEMORY;
}

static int struct_schema(const tare__table *table, struct ArrowSchema *schema)
{
    *schema = (struct ArrowSchema){
        .format = "+s", .name = table->name, .flags = ARROW_FLAG_NULLABLE, .release = release_schema};
    int status = make_children(schema, (int64_t)table->n_columns);
    for (size_t i = 0; i < table->n_columns && !status; i++)
        status = column_schema(&table->columns[i], schema->children[i]);
    return status;
}

int tare__arrow_schema(const tare__table *table, struct ArrowSchema *schema)
{
    int status = struct_schema(table, schema);
    schema->flags = 0; /* the batch itself is not null */
    if (status)
        release_schema(schema);
    return status;
}

/* ---- arrays ---------------------------------------------------------------------------------------- */
/* Pointers to rows, in order. */
typedef struct row_set {
    struct row {
        const void *at; /* NULL: the row is null */
        size_t index;
    } *rows;
    size_t n, room;
} row_set;

static int add_row(row_set *set, const void *at, size_t index)
{
    if (!tare__array_fit(&set->rows, &set->room, set->n + 1, sizeof *set->rows))
        return TARE_E_MEMORY;
    set->rows[set->n++] = (struct row){at, index};
    return 0;
}

static void release_array(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i] && array->children[i]->release)
            array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    for (int64_t i = 0; i < array->n_buffers; i++)
        free((void *)(uintptr_t)array->buffers[i]);
    free(array->children);
    free(array->buffers);
    array->release = NULL;
}

/* Zeroed buffers of these sizes, the first one for validity: all null. */
static int begin_array(struct ArrowArray *array, size_t n, size_t n_children, const size_t *sizes, size_t n_sizes)
{
    *array = (struct ArrowArray){.length = (int64_t)n, .null_count = (int64_t)n, .release = release_array};
    array->buffers = calloc(n_sizes + 1, sizeof *array->buffers);
    array->children = calloc(n_children ? n_children : 1, sizeof *array->children);
    if (!array->buffers || !array->children)
        return TARE_E_MEMORY;
    for (size_t i = 0; i <= n_sizes; i++, array->n_buffers++)
        if (!(array->buffers[i] = calloc(1, (i ? sizes[i - 1] : (n + 7) / 8) + 8)))
            return TARE_E_MEMORY;
    for (size_t i = 0; i < n_children; i++, array->n_children++)
        if (!(array->children[i] = calloc(1, sizeof **array->children)))
            return TARE_E_MEMORY;
    return 0;
}

static void *buffer(const struct ArrowArray *array, size_t index)
{
    return (void *)(uintptr_t)array->buffers[index];
}

static void set_bit(void *bits, size_t at)
{
    ((uint8_t *)bits)[at / 8] |= (uint8_t)(1u << at % 8);
}

static void is_valid(struct ArrowArray *array, size_t at)
{
    set_bit(buffer(array, 0), at);
    array->null_count--;
}

static tare__value value_of(tare__cells *cells, const tare__schema_column *column, const struct row *row)
{
    return row->at ? tare__schema_cell(cells, column, row->at, row->index) : (tare__value){.type = TARE__TYPE_ABSENT};
}

/* Numbers of eight bytes, row numbers of four, flags of one bit. */
static int plain_array(tare__cells *cells, const tare__schema_column *column, const row_set *set,
                       struct ArrowArray *array)
{
    tare__type type = tare__schema_type(column);
    size_t bytes = type == TARE__TYPE_FLAG ? (set->n + 7) / 8 : set->n * (type == TARE__TYPE_ROW ? 4 : 8);
    int status = begin_array(array, set->n, 0, &bytes, 1);
    for (size_t i = 0; i < set->n && !status; i++) {
        tare__value value = value_of(cells, column, &set->rows[i]);
        void *to = buffer(array, 1);
        if (value.type != type) /* null; or a time that does not fit in an integer */
            continue;
        is_valid(array, i);
        switch (type) {
        case TARE__TYPE_NUMBER: ((double *)to)[i] = value.number; break;
        case TARE__TYPE_SIGNED: ((int64_t *)to)[i] = value.whole; break;
        case TARE__TYPE_COUNT: ((uint64_t *)to)[i] = value.count; break;
        case TARE__TYPE_ROW: ((uint32_t *)to)[i] = (uint32_t)value.count; break;
        default:
            if (value.flag)
                set_bit(to, i);
        }
    }
    return status;
}

/* Concatenated texts, and the offset of each. */
static int text_array(const char *const *texts, size_t n, struct ArrowArray *array)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += texts[i] ? 3 * strlen(texts[i]) : 0; /* an invalid UTF-8 byte becomes three bytes */
    if (bytes > INT32_MAX)
        return TARE_E_MEMORY;
    const size_t sizes[] = {(n + 1) * sizeof(int32_t), bytes};
    int status = begin_array(array, n, 0, sizes, 2);
    int32_t at = 0;
    for (size_t i = 0; i < n && !status; i++) {
        char *to = buffer(array, 2);
        size_t length = texts[i] ? strlen(texts[i]) : 0;
        ((int32_t *)buffer(array, 1))[i] = at;
        if (texts[i])
            is_valid(array, i);
        for (size_t k = 0, size; k < length; k += size ? size : 1) {
            uint32_t code;
            size = tare__utf8_decode(texts[i] + k, length - k, &code);
            memcpy(to + at, size ? texts[i] + k : "\xef\xbf\xbd", size ? size : 3);
            at += (int32_t)(size ? size : 3);
        }
    }
    if (!status)
        ((int32_t *)buffer(array, 1))[n] = at;
    return status;
}

static int texts_of(tare__cells *cells, const tare__schema_column *column, const row_set *set, struct ArrowArray *array)
{
    const char **texts = calloc(set->n ? set->n : 1, sizeof *texts);
    if (!texts)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < set->n; i++) {
        tare__value value = value_of(cells, column, &set->rows[i]);
        texts[i] = value.type == TARE__TYPE_TEXT ? value.text : NULL;
    }
    int status = text_array(texts, set->n, array);
    free(texts);
    return status;
}

static int struct_array(tare__cells *cells, const tare__table *table, const row_set *set, struct ArrowArray *array);

/* The offsets of each row's items; the items are the child array. */
static int list_array(tare__cells *cells, const tare__schema_column *column, const row_set *set,
                      struct ArrowArray *array)
{
    const size_t bytes = (set->n + 1) * sizeof(int32_t);
    bool of_texts = tare__schema_type(column) == TARE__TYPE_TEXTS;
    row_set inside = {0};
    int status = begin_array(array, set->n, 1, &bytes, 1);
    for (size_t i = 0; i < set->n && !status; i++) {
        tare__value value = value_of(cells, column, &set->rows[i]);
        ((int32_t *)buffer(array, 1))[i] = (int32_t)inside.n;
        if (value.type == TARE__TYPE_ABSENT)
            continue;
        is_valid(array, i);
        for (uint64_t k = 0; k < value.count && !status; k++) {
            const void *at =
                of_texts ? (const void *)value.texts[k] : (const char *)value.rows + k * column->table->row_bytes;
            status = inside.n == INT32_MAX ? TARE_E_MEMORY : add_row(&inside, at, k);
        }
    }
    if (!status)
        ((int32_t *)buffer(array, 1))[set->n] = (int32_t)inside.n;
    if (!status && !of_texts)
        status = struct_array(cells, column->table, &inside, array->children[0]);
    if (!status && of_texts) {
        const char **texts = calloc(inside.n ? inside.n : 1, sizeof *texts);
        for (size_t i = 0; texts && i < inside.n; i++)
            texts[i] = inside.rows[i].at;
        status = texts ? text_array(texts, inside.n, array->children[0]) : TARE_E_MEMORY;
        free(texts);
    }
    free(inside.rows);
    return status;
}

static int part_array(tare__cells *cells, const tare__schema_column *column, const row_set *set,
                      struct ArrowArray *array)
{
    row_set inside = {0};
    int status = 0;
    for (size_t i = 0; i < set->n && !status; i++) {
        tare__value value = value_of(cells, column, &set->rows[i]);
        status = add_row(&inside, value.type == TARE__TYPE_PART ? value.rows : NULL, 0);
    }
    if (!status)
        status = struct_array(cells, column->table, &inside, array);
    free(inside.rows);
    return status;
}

static int column_array(tare__cells *cells, const tare__schema_column *column, const row_set *set,
                        struct ArrowArray *array)
{
    switch (tare__schema_type(column)) {
    case TARE__TYPE_TEXT: return texts_of(cells, column, set, array);
    case TARE__TYPE_TEXTS:
    case TARE__TYPE_ROWS: return list_array(cells, column, set, array);
    case TARE__TYPE_PART: return part_array(cells, column, set, array);
    default: return plain_array(cells, column, set, array);
    }
}

static int struct_array(tare__cells *cells, const tare__table *table, const row_set *set, struct ArrowArray *array)
{
    int status = begin_array(array, set->n, table->n_columns, NULL, 0);
    for (size_t i = 0; i < set->n && !status; i++)
        if (set->rows[i].at)
            is_valid(array, i);
    for (size_t i = 0; i < table->n_columns && !status; i++)
        status = column_array(cells, &table->columns[i], set, array->children[i]);
    return status;
}

int tare__arrow_table(tare__cells *cells, const tare__table *table, struct ArrowArray *array)
{
    row_set set = {0};
    int status = 0;
    size_t n = tare__table_rows(cells->of, table);
    for (size_t i = 0; i < n && !status; i++)
        status = add_row(&set, tare__table_row(cells->of, table, i), i);
    *array = (struct ArrowArray){0};
    if (!status)
        status = struct_array(cells, table, &set, array);
    free(set.rows);
    if (status && array->release)
        release_array(array);
    return status;
}
