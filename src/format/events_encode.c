/* events_encode: collects the events of one stream and seals them into a block as planes of bytes.
 * An encoder belongs to one thread.
 * Must not know where events come from, or what a span means. */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "tare.h"

enum { BEGINS = 0, ENDS = 1, WIDTHS = 9, SAMPLES = 512, STRIDE = 16 };

tare__events_encoder *tare__events_encoder_new(void)
{
    tare__events_encoder *encoder = malloc(sizeof *encoder); /* not zeroed: pages are allocated when used */
    if (encoder)
        tare__events_reset(encoder, 0);
    return encoder;
}

void tare__events_encoder_free(tare__events_encoder *encoder)
{
    free(encoder);
}

void tare__events_reset(tare__events_encoder *encoder, uint64_t from)
{
    encoder->tail = (tare__events_tail){encoder->ops, encoder->names, encoder->times[BEGINS], encoder->times[ENDS],
                                        from};
    encoder->from = from;
    encoder->values_end = encoder->values;
    encoder->far_count[BEGINS] = encoder->far_count[ENDS] = 0;
}

uint32_t tare__events_add_far(tare__events_encoder *encoder, unsigned ends, uint64_t time)
{
    encoder->far[ends][encoder->far_count[ends]++] = time;
    return TARE__TIME_FAR;
}

/* Every integer of this size is a double, except -0. */
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
    if (op == TARE__OP_LOST_ENDS) /* from a program that may write anything */
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

static const uint8_t first_plane[2] = {TARE__COLUMN_BEGIN, TARE__COLUMN_END};

/* How the values of a block are written: nearly all at a common width, the few wider ones with their own class.
 * Equal widths make the operation bytes uniform, and the reader's branches predictable; high bytes of zero cost
 * nothing once compressed. */
typedef struct layout {
    unsigned time_width[2], name_width;
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

static uint32_t largest(unsigned width)
{
    return width >= 4 ? UINT32_MAX : (UINT32_C(1) << 8 * width) - 1;
}

/* Which of eight operations are in a set: a bit in each one's byte, from the three bits of each. */
typedef enum set { SET_BEGINS, SET_ENDS, SET_NAMED, SET_SPANS } set;

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t members(set of, const uint8_t ops[8])
{
    uint64_t eight;
    memcpy(&eight, ops, sizeof eight);
    uint64_t low = eight, middle = eight >> 1, high = eight >> 2, in;
    switch (of) {
    case SET_BEGINS: in = ~middle & (low | high); break;             /* 1, 4, 5 */
    case SET_ENDS: in = ~high & (middle | ~low); break;              /* 0, 2, 3 */
    case SET_NAMED: in = (low | middle | high) & ~(low & middle & high); break; /* 1 to 6 */
    default: in = ~high & (low ^ middle); break;                     /* 1, 2 */
    }
    return in & EACH(1);
}

static inline unsigned count_members(set of, const uint8_t ops[8])
{
    return (unsigned)(members(of, ops) * EACH(1) >> 56);
}

/* The values added, one list per plane group. */
typedef struct list {
    const uint32_t *values;
    uint32_t count;
    unsigned first_plane;
    set of;
    const uint64_t *far; /* replaced by TARE__TIME_FAR */
} list;

static list times_of(const tare__events_encoder *encoder, unsigned group)
{
    const uint32_t *end = group == ENDS ? encoder->tail.end : encoder->tail.begin;
    return (list){encoder->times[group], (uint32_t)(end - encoder->times[group]), first_plane[group],
                  group == ENDS ? SET_ENDS : SET_BEGINS, encoder->far[group]};
}

static list names_of(const tare__events_encoder *encoder)
{
    return (list){encoder->names, (uint32_t)(encoder->tail.name - encoder->names), TARE__COLUMN_NAME, SET_NAMED, NULL};
}

/* Chooses by a sample: a wrong choice only compresses less well. */
static unsigned sampled_width(const list *from)
{
    uint32_t counts[WIDTHS] = {0}, step = from->count / SAMPLES + 1;
    for (uint32_t i = 0; i < from->count; i += step) {
        uint32_t value = from->values[i];
        counts[!from->far ? name_width(value) : value == TARE__TIME_FAR ? 5 : time_width(value)]++;
    }
    return common_width(counts);
}

static layout choose_layout(const tare__events_encoder *encoder)
{
    layout chosen;
    for (unsigned group = 0; group < 2; group++) {
        list times = times_of(encoder, group);
        unsigned width = sampled_width(&times);
        chosen.time_width[group] = width > 4 ? 4 : width;
    }
    list names = names_of(encoder);
    chosen.name_width = sampled_width(&names);
    if (chosen.name_width == 0)
        chosen.name_width = 1;
    return chosen;
}

/* Each operation's byte with the classes of the common widths, eight at a time. */
static void write_codes(const uint8_t *ops, size_t n, const layout *how, uint8_t *codes)
{
    uint64_t begins = time_class(how->time_width[BEGINS]) << 3, ends = time_class(how->time_width[ENDS]) << 3;
    uint64_t none = 7 << 3, named = name_class(how->name_width) << 6;
    for (size_t i = 0; i < n; i += 8) {
        uint8_t eight[8] = {0};
        uint64_t code;
        memcpy(eight, ops + i, n - i < 8 ? n - i : 8);
        memcpy(&code, eight, sizeof code);
        uint64_t timed = members(SET_BEGINS, eight), ended = members(SET_ENDS, eight);
        code |= timed * begins | ended * ends | (~(timed | ended) & EACH(1)) * none | members(SET_NAMED, eight) * named;
        memcpy(codes + i, &code, n - i < 8 ? n - i : 8);
    }
}

/* Byte k of every value into plane k. In strides of a known length, since compilers then use whole registers. */
static void split(const uint32_t *restrict values, size_t n, uint8_t *restrict plane, unsigned k)
{
    size_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE)
        for (size_t j = 0; j < STRIDE; j++)
            plane[i + j] = (uint8_t)(values[i + j] >> 8 * k);
    for (; i < n; i++)
        plane[i] = (uint8_t)(values[i] >> 8 * k);
}

static bool any_above(const uint32_t *values, uint32_t limit)
{
    uint32_t above = 0;
    for (size_t j = 0; j < STRIDE; j++)
        above |= values[j] & ~limit;
    return above != 0;
}

/* The event that has value number `wanted` of a list; `event` and `number` are the position of the previous search. */
static uint32_t seek(const uint8_t *ops, set of, uint32_t wanted, uint32_t *event, uint32_t *number)
{
    for (; *number + 8 <= wanted; *event += 8)
        *number += count_members(of, ops + *event);
    for (;; ++*event) {
        uint8_t one[8] = {ops[*event]};
        if (members(of, one) & 1 && (*number)++ == wanted)
            return (*event)++;
    }
}

/* A value wider than the others: the bytes beyond the common width go to their planes, and its operation byte is set
 * accordingly. */
static void write_wide(const list *from, unsigned common, uint64_t value, uint8_t *code, uint8_t **planes)
{
    unsigned width = from->far ? time_width(value) : name_width((uint32_t)value);
    *code = from->far ? (uint8_t)((*code & ~(7u << 3)) | time_class(width) << 3)
                      : (uint8_t)((*code & 63u) | name_class(width) << 6);
    for (unsigned k = common; k < width; k++)
        *planes[from->first_plane + k]++ = (uint8_t)(value >> 8 * k);
}

/* Far ones at a common width of four bytes are above no limit of 32 bits. */
static bool is_wide(const list *from, uint32_t value, uint32_t limit)
{
    return value > limit || (value == TARE__TIME_FAR && from->far);
}

/* Fills the planes of a list; each has space for all events. The low bytes of far times replace their placeholders. */
static void write_list(const list *from, unsigned width, const uint8_t *ops, uint8_t **planes)
{
    uint8_t **own = planes + from->first_plane, *start[8];
    for (unsigned k = 0; k < width; k++) {
        start[k] = own[k];
        split(from->values, from->count, own[k], k);
        own[k] += from->count;
    }
    uint32_t limit = largest(width), event = 0, number = 0, far = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        if (i + STRIDE <= from->count && width < 4 && !any_above(from->values + i, limit)) {
            i += STRIDE - 1;
            continue;
        }
        uint32_t value = from->values[i];
        if (!is_wide(from, value, limit))
            continue;
        uint64_t whole = value == TARE__TIME_FAR && from->far ? from->far[far++] : value;
        for (unsigned k = 0; k < width && whole > value; k++)
            start[k][i] = (uint8_t)(whole >> 8 * k);
        write_wide(from, width, whole, &planes[TARE__COLUMN_OPS][seek(ops, from->of, i, &event, &number)],
                   planes);
    }
}

/* The block starts at the first event with a time: its own is 0. */
static void take_first(tare__events_encoder *encoder)
{
    for (const uint8_t *op = encoder->ops; op < encoder->tail.op; op++) {
        if (*op >= TARE__OP_NUMBER)
            continue;
        unsigned group = tare__op_ends((tare__op)*op);
        uint64_t time = encoder->times[group][0];
        if (time == TARE__TIME_FAR) {
            time = encoder->far[group][0];
            memmove(encoder->far[group], encoder->far[group] + 1, --encoder->far_count[group] * sizeof(uint64_t));
        }
        encoder->times[group][0] = 0;
        encoder->from += time;
        return;
    }
    encoder->from = encoder->tail.ticks = 0; /* none has */
}

static uint32_t count_spans(const uint8_t *ops, size_t n)
{
    uint32_t spans = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        spans += count_members(SET_SPANS, ops + i);
    for (; i < n; i++)
        spans += ops[i] == TARE__OP_BEGIN || ops[i] == TARE__OP_NEXT;
    return spans;
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
    size_t n = tare__events_count(encoder);
    uint8_t *room = tare__squeezer_room(squeezer, TARE__COLUMN_VALUE * n);
    if (!room)
        return TARE_E_MEMORY;
    for (unsigned i = 0; i < TARE__COLUMN_VALUE; i++)
        columns[i].data = planes[i] = room + i * n;
    take_first(encoder);
    layout how = choose_layout(encoder);
    write_codes(encoder->ops, n, &how, planes[TARE__COLUMN_OPS]);
    list times[2] = {times_of(encoder, BEGINS), times_of(encoder, ENDS)}, names = names_of(encoder);
    for (unsigned group = 0; group < 2; group++)
        write_list(&times[group], how.time_width[group], encoder->ops, planes);
    write_list(&names, how.name_width, encoder->ops, planes);
    planes[TARE__COLUMN_OPS] += n;
    for (unsigned i = 0; i < TARE__COLUMN_VALUE; i++)
        columns[i].bytes = (size_t)(planes[i] - columns[i].data);
    columns[TARE__COLUMN_VALUE].data = encoder->values;
    columns[TARE__COLUMN_VALUE].bytes = (size_t)(encoder->values_end - encoder->values);

    header->kind = TARE__BLOCK_EVENTS;
    header->count = (uint32_t)n;
    header->spans = count_spans(encoder->ops, n);
    header->first_ticks = encoder->from;
    header->last_ticks = encoder->tail.ticks;
    size_t at = tare__block_begin(out);
    put_stack(open, encoder->from, out);
    uint32_t times_planes = (1u << TARE__COLUMN_VALUE) - (1u << TARE__COLUMN_BEGIN);
    int status = tare__columns_put_scattered(squeezer, columns, TARE__COLUMNS_EVENTS, times_planes, out);
    return tare__block_end(out, at, header, status);
}
