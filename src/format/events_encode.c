/* events_encode: events of one stream gathered, and sealed into a block as planes of bytes.
 * An encoder belongs to one thread.
 * Must not know where events come from, or what a span means. */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "tare.h"

tare__events_encoder *tare__events_encoder_new(void)
{
    tare__events_encoder *encoder = malloc(sizeof *encoder); /* not zeroed: pages come as they are used */
    if (encoder)
        tare__events_reset(encoder);
    return encoder;
}

void tare__events_encoder_free(tare__events_encoder *encoder)
{
    free(encoder);
}

void tare__events_reset(tare__events_encoder *encoder)
{
    encoder->count = 0;
    encoder->values_end = encoder->values;
}

/* Every whole number of this size is a double, and -0 is not one of them. */
#define WHOLE_MAX 9007199254740992.0 /* 2^53 */

static uint8_t *write_value(uint8_t *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value >= -WHOLE_MAX && value <= WHOLE_MAX && bits != UINT64_C(1) << 63) {
        int64_t whole = (int64_t)value;
        if ((double)whole == value)
            return tare__varint_write(at, tare__zigzag(whole) << 1);
    }
    *at++ = 1;
    memcpy(at, &bits, sizeof bits);
    return at + sizeof bits;
}

void tare__events_add_value(tare__events_encoder *encoder, tare__op op, uint32_t name, uint64_t ticks,
                            double value)
{
    tare__events_add(encoder, op, name, op == TARE__OP_COUNTER ? ticks : 0);
    if (op == TARE__OP_LOST_ENDS) /* of a target that may write anything */
        value = value >= 0 && value < UINT32_MAX ? (double)(uint32_t)value : UINT32_MAX;
    encoder->values_end = write_value(encoder->values_end, value);
}

/* Widths in bytes, as classes write them. A time of 7 bytes is written as 8, a name of 3 as 4. */
static inline unsigned time_width(uint64_t time)
{
    unsigned bits = time ? 64u - (unsigned)__builtin_clzll(time) : 0;
    unsigned bytes = (bits + 7) / 8;
    return bytes < 7 ? bytes : 8;
}

static inline unsigned name_width(uint32_t name)
{
    return name > 0xFFFF ? 4 : name > 0xFF ? 2 : 1;
}

static unsigned time_class(unsigned width)
{
    return width == 8 ? 6 : (width - 1) & 7;
}

static unsigned name_class(unsigned width)
{
    return width == 4 ? 3 : width;
}

enum { WIDTHS = 9, SAMPLES = 1024, BEGINS = 0, ENDS = 1 };

static const uint8_t first_plane[2] = {TARE__COLUMN_BEGIN, TARE__COLUMN_END};

/* How a block's values are written: nearly all at a common width, the few wider ones with a class of their
 * own. Even widths leave nothing to tell in the operations' bytes, and the reader's branches go one way;
 * high bytes of zero cost nothing once compressed. */
typedef struct layout {
    unsigned time_width[2], name_width;
    uint64_t time_limit[2];
    uint32_t name_limit;
    uint8_t codes[8]; /* of each operation, when its values have the common widths */
} layout;

static unsigned common_width(const uint32_t counts[WIDTHS])
{
    uint32_t all = 0, seen = 0;
    for (unsigned i = 0; i < WIDTHS; i++)
        all += counts[i];
    for (unsigned i = 0; i < WIDTHS; i++) {
        seen += counts[i];
        if (seen >= all - all / 16)
            return i;
    }
    return WIDTHS - 1;
}

static uint64_t largest(unsigned width)
{
    return width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * width) - 1;
}

/* Chooses by a sample: what it misjudges is only written less well. The step is odd, since begins and ends
 * tend to alternate. */
static layout choose_layout(const tare__events_encoder *encoder)
{
    uint32_t times[2][WIDTHS] = {{0}}, names[WIDTHS] = {0}, step = encoder->count / SAMPLES | 1;
    for (uint32_t i = 1; i < encoder->count; i += step) {
        const tare__raw_event *event = &encoder->events[i], *before = event - 1;
        tare__op op = (tare__op)event->op;
        uint64_t time = event->ticks > before->ticks ? event->ticks - before->ticks : 0;
        if (op < TARE__OP_NUMBER && before->op < TARE__OP_NUMBER)
            times[tare__op_ends(op)][time_width(time)]++;
        if (tare__op_has_name(op))
            names[name_width(event->name)]++;
    }
    layout chosen;
    for (unsigned group = 0; group < 2; group++) {
        chosen.time_width[group] = common_width(times[group]);
        chosen.time_limit[group] = largest(chosen.time_width[group]);
    }
    chosen.name_width = common_width(names);
    if (chosen.name_width == 0)
        chosen.name_width = 1;
    chosen.name_limit = (uint32_t)largest(chosen.name_width);
    for (unsigned op = 0; op < 8; op++) {
        unsigned time = op < TARE__OP_NUMBER ? time_class(chosen.time_width[tare__op_ends((tare__op)op)]) : 7;
        unsigned name = tare__op_has_name((tare__op)op) ? name_class(chosen.name_width) : 0;
        chosen.codes[op] = (uint8_t)(op | time << 3 | name << 6);
    }
    return chosen;
}

static void write_rest(uint8_t **planes, uint64_t value, unsigned from, unsigned to)
{
    for (unsigned k = from; k < to; k++)
        *planes[k]++ = (uint8_t)(value >> 8 * k);
}

/* An event wider than the layout: the bytes beyond the common width go to their planes now. */
static uint8_t write_wide(const layout *how, uint8_t **planes, tare__op op, uint64_t time, uint32_t name)
{
    unsigned code = how->codes[op], group = tare__op_ends(op);
    if (time > how->time_limit[group]) {
        unsigned width = time_width(time);
        code = (code & ~(7u << 3)) | time_class(width) << 3;
        write_rest(planes + first_plane[group], time, how->time_width[group], width);
    }
    if (name > how->name_limit) {
        unsigned width = name_width(name);
        code = (code & 63u) | name_class(width) << 6;
        write_rest(planes + TARE__COLUMN_NAME, name, how->name_width, width);
    }
    return (uint8_t)code;
}

/* Times and names picked out of the events, in order. */
typedef struct picked {
    uint64_t *times[2];
    uint32_t *names;
    size_t time_count[2], name_count;
    uint32_t spans;
    uint64_t first, last; /* ticks */
} picked;

static uint64_t first_ticks(const tare__events_encoder *encoder)
{
    for (uint32_t i = 0; i < encoder->count; i++)
        if (encoder->events[i].op < TARE__OP_NUMBER)
            return encoder->events[i].ticks;
    return 0;
}

/* Which cursors an operation moves. */
static const struct moves {
    uint8_t begins, ends, names, spans;
} moves_of[8] = {
    [TARE__OP_END] = {0, 1, 0, 0},     [TARE__OP_BEGIN] = {1, 0, 1, 1},  [TARE__OP_NEXT] = {0, 1, 1, 1},
    [TARE__OP_END_OF] = {0, 1, 1, 0},  [TARE__OP_MARK] = {1, 0, 1, 0},   [TARE__OP_COUNTER] = {1, 0, 1, 0},
    [TARE__OP_NUMBER] = {0, 0, 1, 0},  [TARE__OP_LOST_ENDS] = {0, 0, 0, 0},
};

/* Writes the operations' bytes, and picks the values. Every value is stored at every cursor and only the
 * right cursor moves on: begins and ends come in any order, and a missed branch costs more than a store. */
static void pick(const tare__events_encoder *encoder, const layout *how, uint8_t **planes, picked *out)
{
    uint64_t *begins = out->times[BEGINS], *ends = out->times[ENDS], last = first_ticks(encoder);
    uint32_t *names = out->names, spans = 0, n = encoder->count;
    uint8_t *codes = planes[TARE__COLUMN_OPS];
    out->first = last;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t ticks = encoder->events[i].ticks, now = ticks < last ? last : ticks, time = now - last;
        unsigned op = encoder->events[i].op & 7;
        struct moves move = moves_of[op];
        uint32_t name = tare__name_or_lost(encoder->events[i].name) & -(uint32_t)move.names;
        last = now;
        *begins = *ends = time;
        *names = name;
        begins += move.begins;
        ends += move.ends;
        names += move.names;
        spans += move.spans;
        codes[i] = how->codes[op];
        if (TARE__UNLIKELY((time > how->time_limit[move.ends]) | (name > how->name_limit)))
            codes[i] = write_wide(how, planes, (tare__op)op, time, name);
    }
    planes[TARE__COLUMN_OPS] += n;
    out->time_count[BEGINS] = (size_t)(begins - out->times[BEGINS]);
    out->time_count[ENDS] = (size_t)(ends - out->times[ENDS]);
    out->name_count = (size_t)(names - out->names);
    out->spans = spans;
    out->last = last;
}

/* Byte k of every value into plane k, for the common width. `plane` starts where `planes` did. */
static void split_times(const uint64_t *restrict times, size_t n, uint8_t *restrict plane, unsigned k)
{
    for (size_t i = 0; i < n; i++)
        plane[i] = (uint8_t)(times[i] >> 8 * k);
}

static void split_names(const uint32_t *restrict names, size_t n, uint8_t *restrict plane, unsigned k)
{
    for (size_t i = 0; i < n; i++)
        plane[i] = (uint8_t)(names[i] >> 8 * k);
}

/* Fills the planes; each has room for all events. */
static void split(const picked *from, const layout *how, uint8_t **planes)
{
    for (unsigned group = 0; group < 2; group++)
        for (unsigned k = 0; k < how->time_width[group]; k++) {
            uint8_t **plane = &planes[first_plane[group] + k];
            split_times(from->times[group], from->time_count[group], *plane, k);
            *plane += from->time_count[group];
        }
    for (unsigned k = 0; k < how->name_width; k++) {
        uint8_t **plane = &planes[TARE__COLUMN_NAME + k];
        split_names(from->names, from->name_count, *plane, k);
        *plane += from->name_count;
    }
}

static void put_stack(const tare__span_stack *open, uint64_t first, tare__text *out)
{
    uint32_t listed = open->depth < TARE__STACK_LISTED ? open->depth : TARE__STACK_LISTED;
    tare__varint_put(out, open->depth);
    uint64_t before = first;
    for (uint32_t i = 0; i < listed; i++) {
        tare__varint_put(out, tare__name_or_lost(open->spans[i].name));
        tare__varint_put(out, tare__zigzag((int64_t)(open->spans[i].begin - before)));
        before = open->spans[i].begin;
    }
}

int tare__events_seal(tare__events_encoder *encoder, tare__squeezer *squeezer, const tare__span_stack *open,
                      tare__block_header *header, tare__text *out)
{
    uint8_t *planes[TARE__COLUMNS_EVENTS];
    tare__column columns[TARE__COLUMNS_EVENTS];
    size_t n = encoder->count, slots = n + 1; /* one for the value that does not count */
    size_t picked_bytes = slots * (2 * sizeof(uint64_t) + sizeof(uint32_t));
    uint8_t *room = tare__squeezer_room(squeezer, picked_bytes + TARE__COLUMN_VALUE * n);
    if (!room)
        return TARE_E_MEMORY;
    uint64_t *times = (uint64_t *)(void *)room;
    picked values = {.times = {times, times + slots}, .names = (uint32_t *)(void *)(times + 2 * slots)};
    for (unsigned i = 0; i < TARE__COLUMN_VALUE; i++)
        columns[i].data = planes[i] = room + picked_bytes + i * n;
    layout how = choose_layout(encoder);
    pick(encoder, &how, planes, &values);
    split(&values, &how, planes);
    for (unsigned i = 0; i < TARE__COLUMN_VALUE; i++)
        columns[i].bytes = (size_t)(planes[i] - columns[i].data);
    columns[TARE__COLUMN_VALUE].data = encoder->values;
    columns[TARE__COLUMN_VALUE].bytes = (size_t)(encoder->values_end - encoder->values);

    header->kind = TARE__BLOCK_EVENTS;
    header->count = encoder->count;
    header->spans = values.spans;
    header->first_ticks = values.first;
    header->last_ticks = values.last;
    size_t at = tare__block_begin(out);
    put_stack(open, values.first, out);
    int status = tare__columns_put(squeezer, columns, TARE__COLUMNS_EVENTS, out);
    return tare__block_end(out, at, header, status);
}
