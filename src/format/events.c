/* events: blocks of nested spans, marks, counters and numbers, checked and read; the stack of open spans.
 * A decoder belongs to one thread.
 * Must not know where the bytes come from, or what a span means. */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "tare.h"

/* ---- stack ----------------------------------------------------------------------------------------- */
static int reserve_stack(tare__span_stack *stack, uint32_t spans)
{
    return tare__array_fit(&stack->spans, &stack->room, spans, sizeof *stack->spans) ? 0 : TARE_E_MEMORY;
}

int tare__span_stack_push(tare__span_stack *stack, uint32_t name, uint64_t begin)
{
    if (stack->depth == UINT32_MAX || reserve_stack(stack, stack->depth + 1))
        return TARE_E_MEMORY;
    stack->spans[stack->depth++] = (tare__open_span){.begin = begin, .name = name};
    return 0;
}

uint32_t tare__span_stack_find(const tare__span_stack *stack, uint32_t name)
{
    for (uint32_t closed = 1; closed <= stack->depth; closed++)
        if (stack->spans[stack->depth - closed].name == name)
            return closed;
    return 0;
}

void tare__span_stack_free(tare__span_stack *stack)
{
    free(stack->spans);
    memset(stack, 0, sizeof *stack);
}

/* ---- decoder --------------------------------------------------------------------------------------- */
static int get_stack(tare__events_decoder *decoder, uint64_t first_ticks, tare__reader *reader)
{
    uint64_t depth = tare__read_varint(reader);
    uint32_t listed = depth < TARE__STACK_LISTED ? (uint32_t)depth : TARE__STACK_LISTED;
    decoder->open.depth = 0;
    if (depth > UINT32_MAX || listed > (size_t)(reader->end - reader->at) / 2)
        return TARE_E_INPUT;
    if (reserve_stack(&decoder->open, listed))
        return TARE_E_MEMORY;
    uint64_t begin = first_ticks;
    for (uint32_t i = 0; i < listed; i++) {
        uint64_t name = tare__read_varint(reader);
        begin += (uint64_t)tare__unzigzag(tare__read_varint(reader));
        if (name == 0 || name > UINT32_MAX)
            return TARE_E_INPUT;
        decoder->open.spans[i] = (tare__open_span){.begin = begin, .name = (uint32_t)name};
    }
    decoder->open.depth = listed;
    decoder->unlisted = (uint32_t)depth - listed;
    return reader->failed ? TARE_E_INPUT : 0;
}

/* Four tables: runs of one code would wait on one counter. */
static void count_codes(const uint8_t *ops, size_t n, uint32_t counts[256])
{
    uint32_t parts[4][256] = {{0}};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        parts[0][ops[i]]++;
        parts[1][ops[i + 1]]++;
        parts[2][ops[i + 2]]++;
        parts[3][ops[i + 3]]++;
    }
    for (; i < n; i++)
        parts[0][ops[i]]++;
    for (unsigned code = 0; code < 256; code++)
        counts[code] = parts[0][code] + parts[1][code] + parts[2][code] + parts[3][code];
}

static bool code_is_possible(unsigned op, unsigned time, unsigned names)
{
    return tare__op_has_name((tare__op)op) == (names != 0) && (op < TARE__OP_NUMBER || time == 7);
}

/* What the operations need of each column. */
typedef struct needs {
    size_t planes[TARE__COLUMNS_EVENTS]; /* bytes; of VALUE: values */
    size_t spans, losses;
} needs;

static int count_needs(const tare__column *ops, needs *need)
{
    static const uint8_t name_bytes[4] = {0, 1, 2, 4}, time_bytes[8] = {1, 2, 3, 4, 5, 6, 8, 0};
    uint32_t counts[256];
    memset(need, 0, sizeof *need);
    count_codes(ops->data, ops->bytes, counts);
    need->planes[TARE__COLUMN_OPS] = ops->bytes;
    for (unsigned code = 0; code < 256; code++) {
        unsigned op = code & 7, time = code >> 3 & 7, names = code >> 6;
        if (!counts[code])
            continue;
        if (!code_is_possible(op, time, names))
            return TARE_E_INPUT;
        for (unsigned i = 0; i < name_bytes[names]; i++)
            need->planes[TARE__COLUMN_NAME + i] += counts[code];
        unsigned first = tare__op_ends((tare__op)op) ? TARE__COLUMN_END : TARE__COLUMN_BEGIN;
        for (unsigned i = 0; i < time_bytes[time]; i++)
            need->planes[first + i] += counts[code];
        need->planes[TARE__COLUMN_VALUE] += op >= TARE__OP_COUNTER ? counts[code] : 0;
        need->spans += op == TARE__OP_BEGIN || op == TARE__OP_NEXT ? counts[code] : 0;
        need->losses += op == TARE__OP_LOST_ENDS ? counts[code] : 0;
    }
    return 0;
}

/* Eight at a time, into four sums of 16 bits that hold 128 words. */
static uint64_t sum_bytes(const tare__column *column)
{
    const uint64_t odd = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t sum = 0;
    size_t i = 0, words = column->bytes / 8;
    while (words) {
        uint64_t four = 0;
        size_t now = words < 128 ? words : 128;
        words -= now;
        for (; now; now--, i += 8) {
            uint64_t word;
            memcpy(&word, column->data + i, 8);
            four += (word & odd) + (word >> 8 & odd);
        }
        sum += (four & 0xffff) + (four >> 16 & 0xffff) + (four >> 32 & 0xffff) + (four >> 48);
    }
    for (; i < column->bytes; i++)
        sum += column->data[i];
    return sum;
}

/* The times add up to the block's range, so no time can overflow. */
static bool times_add_up(const tare__column *columns, const tare__block_header *header)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t sum = sum_bytes(&columns[TARE__COLUMN_BEGIN + i]);
        sum += sum_bytes(&columns[TARE__COLUMN_END + i]);
        if (i && sum >> (64 - 8 * i))
            return false;
        if (__builtin_add_overflow(total, sum << 8 * i, &total))
            return false;
    }
    return header->first_ticks <= header->last_ticks && total == header->last_ticks - header->first_ticks;
}

static bool take_names(const uint8_t *ops, size_t n, const uint8_t *planes[4])
{
    for (size_t i = 0; i < n; i++) {
        unsigned class = ops[i] >> 6;
        unsigned any = class ? *planes[0]++ : 1u;
        any |= class > 1 ? *planes[1]++ : 0u;
        any |= class > 2 ? *planes[2]++ | *planes[3]++ : 0;
        if (!any)
            return false;
    }
    return true;
}

#define EIGHT UINT64_C(0x0101010101010101)

/* The bytes of the planes that eight operations take, counted all at once: a class is the upper two bits of each. */
static void skip_names(uint64_t ops, const uint8_t *planes[4])
{
    uint64_t upper = ops >> 7 & EIGHT, lower = ops >> 6 & EIGHT;
    size_t four = (upper & lower) * EIGHT >> 56;
    planes[0] += (upper | lower) * EIGHT >> 56;
    planes[1] += upper * EIGHT >> 56;
    planes[2] += four;
    planes[3] += four;
}

static const uint8_t *next_zero(const uint8_t *from, const uint8_t *end)
{
    const uint8_t *found = from < end ? memchr(from, 0, (size_t)(end - from)) : NULL;
    return found ? found : end;
}

/* No name is 0: checked in full only if a low byte is 0. */
static bool names_are_good(const tare__column *columns)
{
    const tare__column *low = &columns[TARE__COLUMN_NAME], *ops = &columns[TARE__COLUMN_OPS];
    const uint8_t *end = low->data + low->bytes, *zero = low->bytes ? next_zero(low->data, end) : end, *planes[4];
    size_t at = 0;
    for (unsigned i = 0; i < 4; i++)
        planes[i] = columns[TARE__COLUMN_NAME + i].data;
    for (; at + 8 <= ops->bytes && zero < end; at += 8) {
        const uint8_t *before = planes[0];
        uint64_t word;
        memcpy(&word, ops->data + at, 8);
        if (zero - before >= 8) {
            skip_names(word, planes);
            continue;
        }
        if (!take_names(ops->data + at, 8, planes))
            return false;
        if (planes[0] > zero)
            zero = next_zero(planes[0], end);
    }
    return zero == end || take_names(ops->data + at, ops->bytes - at, planes);
}

static double read_value(tare__reader *reader)
{
    uint64_t word = tare__read_varint(reader);
    if (!(word & 1))
        return (double)tare__unzigzag(word >> 1);
    double value = 0;
    const uint8_t *bytes = word == 1 ? tare__read_bytes(reader, sizeof value) : NULL;
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    else
        reader->failed = true;
    return value;
}

static bool is_loss(double value)
{
    return value >= 0 && value <= UINT32_MAX && value == (double)(uint32_t)value;
}

static bool values_are_good(const tare__column *columns, const needs *need)
{
    const tare__column *values = &columns[TARE__COLUMN_VALUE], *ops = &columns[TARE__COLUMN_OPS];
    tare__reader reader = {values->data, values->data + values->bytes, false};
    if (!need->losses) {
        for (size_t i = 0; i < need->planes[TARE__COLUMN_VALUE] && !reader.failed; i++)
            read_value(&reader);
    } else {
        for (size_t i = 0; i < ops->bytes; i++) {
            unsigned op = ops->data[i] & 7;
            if (op >= TARE__OP_COUNTER) {
                double value = read_value(&reader);
                if (op == TARE__OP_LOST_ENDS && !is_loss(value))
                    return false;
            }
        }
    }
    return !reader.failed && reader.at == reader.end;
}

static int check_columns(const tare__column *columns, const tare__block_header *header)
{
    needs need;
    if (columns[TARE__COLUMN_OPS].bytes != header->count || count_needs(&columns[TARE__COLUMN_OPS], &need))
        return TARE_E_INPUT;
    for (unsigned i = 0; i < TARE__COLUMN_VALUE; i++)
        if (columns[i].bytes != need.planes[i])
            return TARE_E_INPUT;
    bool good = need.spans == header->spans && times_add_up(columns, header) && names_are_good(columns) &&
                values_are_good(columns, &need);
    return good ? 0 : TARE_E_INPUT;
}

int tare__events_open(tare__events_decoder *decoder, tare__squeezer *squeezer,
                      const tare__block_header *header, const uint8_t *payload)
{
    tare__column columns[TARE__COLUMNS_EVENTS];
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    decoder->ops = decoder->ops_end = NULL;
    if (header->kind != TARE__BLOCK_EVENTS || header->flags || header->count > TARE__EVENTS_MAX)
        return TARE_E_INPUT;
    int status = get_stack(decoder, header->first_ticks, &reader);
    if (!status)
        status = tare__columns_get(squeezer, &reader, columns, TARE__COLUMNS_EVENTS,
                                   (size_t)TARE__EVENTS_MAX * TARE__VARINT_BYTES);
    if (!status)
        status = check_columns(columns, header);
    if (status)
        return status;
    for (unsigned i = 0; i < TARE__COLUMNS_EVENTS; i++)
        decoder->planes[i] = columns[i].data;
    const tare__column *values = &columns[TARE__COLUMN_VALUE];
    decoder->values = (tare__reader){values->data, values->data + values->bytes, false};
    decoder->ticks = header->first_ticks;
    decoder->ops = columns[TARE__COLUMN_OPS].data;
    decoder->ops_end = decoder->ops + header->count;
    return 0;
}

void tare__events_close(tare__events_decoder *decoder)
{
    tare__span_stack_free(&decoder->open);
}

double tare__events_value(tare__events_decoder *decoder)
{
    return read_value(&decoder->values);
}
