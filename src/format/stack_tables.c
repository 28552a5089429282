/* stack_tables: encodes rows of the tables of functions, stacks and threads as columns, and decodes them.
 * Owned by the calling thread.
 * Must not know what is already in the file. */
#include <string.h>

#include "stacks_inner.h"
#include "tare.h"

enum { FUNCTION_KIND, FIRST_LINE, NAME_BYTES, FILE_BYTES, CALLER, FUNCTION, LINE, PID, TID, START, MAIN, THREAD_BYTES,
       NUMBERS };
enum { NAMES = NUMBERS, FILES, THREADS, COLUMNS };

/* In FILE_BYTES: a length of 1 or more is written as 1 more. */
#define FILE_NONE 0u
#define FILE_SAME 1u /* as the previous function of the block */

/* ---- encoding ---------------------------------------------------------------------------------------------- */
static void put(uint8_t **at, uint64_t value)
{
    *at = tare__varint_write(*at, value);
}

static void put_text(uint8_t **at, const char *text, uint32_t bytes)
{
    if (bytes)
        memcpy(*at, text, bytes);
    *at += bytes;
}

static void fill_functions(const tare__stack_part *part, uint8_t **at)
{
    uint32_t line = 0;
    const char *file = NULL;
    for (uint32_t i = 0; i < part->function_count; i++) {
        const tare__stack_function *function = &part->functions[i];
        bool same = function->file_bytes && function->file == file;
        put(&at[FUNCTION_KIND], function->kind);
        put(&at[FIRST_LINE], tare__zigzag_from(function->first_line, line));
        put(&at[NAME_BYTES], function->name_bytes);
        put_text(&at[NAMES], function->name, function->name_bytes);
        put(&at[FILE_BYTES], same ? FILE_SAME : function->file_bytes ? function->file_bytes + 1 : FILE_NONE);
        put_text(&at[FILES], function->file, same ? 0 : function->file_bytes);
        line = function->first_line;
        file = function->file;
    }
}

static void fill_stacks(const tare__stack_part *part, uint8_t **at)
{
    uint32_t function = 0;
    for (uint32_t i = 0; i < part->stack_count; i++) {
        const tare__stack_row *row = &part->stacks[i];
        put(&at[CALLER], row->caller ? part->first_stack + i - row->caller : 0);
        put(&at[FUNCTION], tare__zigzag_from(row->function, function));
        put(&at[LINE], row->line);
        function = row->function;
    }
}

static void fill_threads(const tare__stack_part *part, uint8_t **at)
{
    uint64_t pid = 0, start = 0;
    for (uint32_t i = 0; i < part->thread_count; i++) {
        const tare__stack_thread *thread = &part->threads[i];
        put(&at[PID], tare__zigzag_from((uint64_t)thread->pid, pid));
        put(&at[TID], tare__zigzag_from((uint64_t)thread->tid, (uint64_t)thread->pid));
        put(&at[START], tare__zigzag_from(thread->start_time, start));
        put(&at[MAIN], thread->main);
        put(&at[THREAD_BYTES], thread->name_bytes);
        put_text(&at[THREADS], thread->name, thread->name_bytes);
        pid = (uint64_t)thread->pid;
        start = thread->start_time;
    }
}

/* Space that each column may need. */
static void measure(const tare__stack_part *part, size_t bytes[COLUMNS])
{
    for (unsigned i = 0; i < NUMBERS; i++)
        bytes[i] = (size_t)(i < CALLER ? part->function_count : i < PID ? part->stack_count : part->thread_count) *
                   TARE__VARINT_BYTES;
    bytes[NAMES] = bytes[FILES] = bytes[THREADS] = 0;
    for (uint32_t i = 0; i < part->function_count; i++) {
        bytes[NAMES] += part->functions[i].name_bytes;
        bytes[FILES] += part->functions[i].file_bytes;
    }
    for (uint32_t i = 0; i < part->thread_count; i++)
        bytes[THREADS] += part->threads[i].name_bytes;
}

int tare__stack_part_seal(const tare__stack_part *part, tare__squeezer *squeezer, tare__text *out)
{
    size_t bytes[COLUMNS], total = 0;
    uint8_t *starts[COLUMNS], *ends[COLUMNS];
    measure(part, bytes);
    for (unsigned i = 0; i < COLUMNS; i++)
        total += bytes[i];
    uint8_t *room = tare__squeezer_room(squeezer, total);
    if (!room)
        return TARE_E_MEMORY;
    for (unsigned i = 0; i < COLUMNS; room += bytes[i++])
        starts[i] = ends[i] = room;
    fill_functions(part, ends);
    fill_stacks(part, ends);
    fill_threads(part, ends);
    tare__column columns[COLUMNS];
    for (unsigned i = 0; i < COLUMNS; i++)
        columns[i] = (tare__column){.data = starts[i], .bytes = (size_t)(ends[i] - starts[i])};
    tare__block_header header = {.kind = TARE__BLOCK_STACKS,
                                 .count = part->function_count + part->stack_count + part->thread_count};
    size_t at = tare__block_begin(out);
    const uint32_t ranges[] = {part->first_function, part->function_count, part->first_stack, part->stack_count,
                               part->first_thread,   part->thread_count};
    for (unsigned i = 0; i < TARE__COUNT_OF(ranges); i++)
        tare__varint_put(out, ranges[i]);
    return tare__block_end(out, at, &header, tare__columns_put(squeezer, columns, COLUMNS, out));
}

/* ---- decoding ---------------------------------------------------------------------------------------------- */
typedef struct range {
    uint64_t first, count;
} range;

enum { RANGE_FUNCTIONS, RANGE_STACKS, RANGE_THREADS, RANGES };

static bool read_ranges(tare__reader *reader, uint32_t count, range ranges[RANGES])
{
    static const uint32_t limits[RANGES] = {TARE__STACK_FUNCTIONS_MAX, TARE__STACKS_MAX, TARE__STACK_THREADS_MAX};
    uint64_t rows = 0;
    for (unsigned i = 0; i < RANGES; i++) {
        range *range = &ranges[i];
        range->first = tare__read_varint(reader);
        range->count = tare__read_varint(reader);
        if (reader->failed || range->count > limits[i] ||
            (range->count && (range->first == 0 || range->first > limits[i] - range->count + 1)))
            return false;
        rows += range->count;
    }
    return rows == count;
}

/* Adds a difference to a number of at most 32 bits. */
static bool read_difference(tare__reader *reader, uint32_t *number)
{
    uint64_t sum = *number + (uint64_t)tare__unzigzag(tare__read_varint(reader));
    *number = (uint32_t)sum;
    return sum <= UINT32_MAX;
}

static bool read_text(tare__reader *reader, uint64_t length, const char **text, uint32_t *bytes)
{
    *text = (const char *)tare__read_bytes(reader, length);
    *bytes = (uint32_t)length;
    return *text != NULL;
}

/* `function` is the previous one, at first zeroed. */
static bool read_function(tare__reader *readers, tare__stack_function *function)
{
    uint64_t kind = tare__read_varint(&readers[FUNCTION_KIND]);
    bool good = read_difference(&readers[FIRST_LINE], &function->first_line) && kind <= UINT32_MAX;
    function->kind = (uint32_t)kind;
    uint64_t name_bytes = tare__read_varint(&readers[NAME_BYTES]), file = tare__read_varint(&readers[FILE_BYTES]);
    if (!good || !read_text(&readers[NAMES], name_bytes, &function->name, &function->name_bytes))
        return false;
    if (file == FILE_SAME)
        return function->file != NULL;
    return read_text(&readers[FILES], file ? file - 1 : 0, &function->file, &function->file_bytes);
}

static bool read_functions(tare__reader *readers, const range *range, const tare__stacks_sink *sink)
{
    tare__stack_function function = {0};
    for (uint32_t i = 0; i < range->count; i++) {
        if (!read_function(readers, &function))
            return false;
        if (sink)
            sink->function(sink->context, (uint32_t)range->first + i, &function);
    }
    return true;
}

static bool read_stacks(tare__reader *readers, const range *range, const tare__stacks_sink *sink)
{
    uint32_t function = 0;
    for (uint32_t i = 0; i < range->count; i++) {
        uint32_t number = (uint32_t)range->first + i;
        uint64_t up = tare__read_varint(&readers[CALLER]), line = tare__read_varint(&readers[LINE]);
        if (!read_difference(&readers[FUNCTION], &function) || function > TARE__STACK_FUNCTIONS_MAX || up >= number ||
            readers[LINE].failed)
            return false;
        if (sink)
            sink->stack(sink->context, number, up ? number - (uint32_t)up : 0, function, line);
    }
    return true;
}

static bool read_threads(tare__reader *readers, const range *range, const tare__stacks_sink *sink)
{
    tare__stack_thread thread = {0};
    uint64_t pid = 0;
    for (uint32_t i = 0; i < range->count; i++) {
        pid += (uint64_t)tare__unzigzag(tare__read_varint(&readers[PID]));
        thread.pid = (int64_t)pid;
        thread.tid = (int64_t)(pid + (uint64_t)tare__unzigzag(tare__read_varint(&readers[TID])));
        thread.start_time += (uint64_t)tare__unzigzag(tare__read_varint(&readers[START]));
        thread.main = tare__read_varint(&readers[MAIN]) & 1;
        uint64_t bytes = tare__read_varint(&readers[THREAD_BYTES]);
        if (readers[THREAD_BYTES].failed || !read_text(&readers[THREADS], bytes, &thread.name, &thread.name_bytes))
            return false;
        if (sink)
            sink->thread(sink->context, (uint32_t)range->first + i, &thread);
    }
    return true;
}

/* Only checks if there is no sink. */
static bool read_all(const tare__reader *from, const range *ranges, const tare__stacks_sink *sink)
{
    tare__reader readers[COLUMNS];
    memcpy(readers, from, sizeof readers);
    if (!read_functions(readers, &ranges[RANGE_FUNCTIONS], sink) ||
        !read_stacks(readers, &ranges[RANGE_STACKS], sink) || !read_threads(readers, &ranges[RANGE_THREADS], sink))
        return false;
    return tare__columns_done(readers, COLUMNS);
}

int tare__stacks_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                      const tare__stacks_sink *sink)
{
    tare__reader readers[COLUMNS];
    range ranges[RANGES];
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    if (header->kind != TARE__BLOCK_STACKS || header->flags || !read_ranges(&reader, header->count, ranges))
        return TARE_E_INPUT;
    int status = tare__columns_open(squeezer, &reader, readers, COLUMNS, TARE__STACK_COLUMN_MAX);
    if (status)
        return status;
    if (!read_all(readers, ranges, NULL))
        return TARE_E_INPUT;
    read_all(readers, ranges, sink);
    return 0;
}
