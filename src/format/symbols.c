/* symbols: encodes and decodes the functions at offsets of objects as columns.
 * Owned by the calling thread.
 * Must not know how symbols are found. */
#include <string.h>

#include "stacks.h"
#include "tare.h"

enum { OBJECT, OFFSET, DEPTH, FUNCTION, LINE, COLUMNS };
#define COLUMN_MAX ((size_t)8 << 20)

static void put(uint8_t **at, uint64_t value)
{
    *at = tare__varint_write(*at, value);
}

static void put_difference(uint8_t **at, uint64_t value, uint64_t before)
{
    put(at, tare__zigzag((int64_t)(value - before)));
}

static void fill(const tare__stack_symbol *rows, uint32_t n, uint8_t **at)
{
    uint64_t object = 0, offset = 0, function = 0;
    for (uint32_t i = 0; i < n; i++) {
        const tare__stack_symbol *row = &rows[i];
        uint32_t depth = row->n < TARE__SYMBOL_DEPTH_MAX ? row->n : TARE__SYMBOL_DEPTH_MAX;
        put_difference(&at[OBJECT], row->object, object);
        put_difference(&at[OFFSET], row->offset, offset);
        put(&at[DEPTH], depth);
        for (uint32_t k = row->n - depth; k < row->n; k++) {
            put_difference(&at[FUNCTION], row->frames[k].function, function);
            put(&at[LINE], row->frames[k].line);
            function = row->frames[k].function;
        }
        object = row->object;
        offset = row->offset;
    }
}

int tare__stack_symbols_seal(const tare__stack_symbol *rows, uint32_t n, tare__squeezer *squeezer, tare__text *out)
{
    size_t frames = 0, bytes[COLUMNS], total = 0;
    for (uint32_t i = 0; i < n; i++)
        frames += rows[i].n < TARE__SYMBOL_DEPTH_MAX ? rows[i].n : TARE__SYMBOL_DEPTH_MAX;
    for (unsigned i = 0; i < COLUMNS; i++)
        total += bytes[i] = (i < FUNCTION ? (size_t)n : frames) * TARE__VARINT_BYTES;
    uint8_t *room = tare__squeezer_room(squeezer, total), *starts[COLUMNS], *ends[COLUMNS];
    if (!room)
        return TARE_E_MEMORY;
    for (unsigned i = 0; i < COLUMNS; room += bytes[i++])
        starts[i] = ends[i] = room;
    fill(rows, n, ends);
    tare__block_header header = {.kind = TARE__BLOCK_SYMBOLS, .count = n};
    return tare__columns_seal(squeezer, &header, starts, ends, COLUMNS, out);
}

/* ---- decoding ---------------------------------------------------------------------------------------------- */
static bool read_number(tare__reader *reader, uint32_t *number)
{
    uint64_t sum = *number + (uint64_t)tare__unzigzag(tare__read_varint(reader));
    *number = (uint32_t)sum;
    return sum >= 1 && sum <= TARE__STACK_FUNCTIONS_MAX && !reader->failed;
}

/* `row` is the previous one, at first zeroed. */
static bool read_row(tare__reader *readers, tare__stack_symbol *row, uint32_t *function,
                     tare__stack_symbol_frame *frames)
{
    if (!read_number(&readers[OBJECT], &row->object))
        return false;
    row->offset += (uint64_t)tare__unzigzag(tare__read_varint(&readers[OFFSET]));
    uint64_t depth = tare__read_varint(&readers[DEPTH]);
    if (depth > TARE__SYMBOL_DEPTH_MAX)
        return false;
    row->n = (uint32_t)depth;
    row->frames = frames;
    for (uint32_t i = 0; i < row->n; i++) {
        uint64_t line = tare__read_varint(&readers[LINE]);
        if (!read_number(&readers[FUNCTION], function) || line > UINT32_MAX)
            return false;
        frames[i] = (tare__stack_symbol_frame){*function, (uint32_t)line};
    }
    return true;
}

/* Only checks if there is no sink. */
static bool read_rows(const tare__reader *from, uint32_t n, tare__stack_symbols_sink *sink, void *context)
{
    tare__reader readers[COLUMNS];
    tare__stack_symbol_frame frames[TARE__SYMBOL_DEPTH_MAX];
    tare__stack_symbol row = {0};
    uint32_t function = 0;
    memcpy(readers, from, sizeof readers);
    for (uint32_t i = 0; i < n; i++) {
        if (!read_row(readers, &row, &function, frames))
            return false;
        if (sink)
            sink(context, &row);
    }
    return tare__columns_done(readers, COLUMNS);
}

int tare__stack_symbols_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                       tare__stack_symbols_sink *sink, void *context)
{
    tare__reader readers[COLUMNS];
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    if (header->kind != TARE__BLOCK_SYMBOLS || header->flags)
        return TARE_E_INPUT;
    int status = tare__columns_open(squeezer, &reader, readers, COLUMNS, COLUMN_MAX);
    if (status)
        return status;
    if (!read_rows(readers, header->count, NULL, NULL))
        return TARE_E_INPUT;
    read_rows(readers, header->count, sink, context);
    return 0;
}
