/* Tests of src/format/events.c and events_encode.c: round trips, sizes, the stack, damage, no memory.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base_failing.h"
#include "format/format.h"
#include "tare.h"

typedef struct fixture {
    tare__events_encoder *encoder;
    tare__squeezer *squeezer;
    tare__span_stack open;
    tare__text out;
    tare__events_decoder decoder;
    tare__event *expected;
    uint32_t count, spans;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->encoder = tare__events_encoder_new();
    f->squeezer = tare__squeezer_new();
    f->expected = calloc(TARE__EVENTS_MAX, sizeof *f->expected);
    *state = f;
    return f->encoder && f->squeezer && f->expected ? 0 : -1;
}

static int teardown(void **state)
{
    fixture *f = *state;
    allocations_left = -1;
    tare__events_close(&f->decoder);
    tare__span_stack_free(&f->open);
    tare__text_free(&f->out);
    tare__squeezer_free(f->squeezer);
    tare__events_encoder_free(f->encoder);
    free(f->expected);
    free(f);
    return 0;
}

static uint64_t next_random(void)
{
    static uint64_t seed = 88172645463325252u;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static uint64_t last_ticks(const fixture *f)
{
    for (uint32_t i = f->count; i-- > 0;)
        if (f->expected[i].op < TARE__OP_NUMBER)
            return f->expected[i].ticks;
    return 0;
}

/* Adds an event to the encoder and what is expected back to the list. */
static void add(fixture *f, tare__op op, uint32_t name, uint64_t ticks, double value)
{
    tare__event *event = &f->expected[f->count];
    *event = (tare__event){.op = op, .value = value};
    event->name = op == TARE__OP_END || op == TARE__OP_LOST_ENDS ? 0 : name;
    event->ticks = op < TARE__OP_NUMBER ? ticks : last_ticks(f);
    f->spans += op == TARE__OP_BEGIN || op == TARE__OP_NEXT;
    f->count++;
    if (op < TARE__OP_COUNTER)
        tare__events_add(f->encoder, op, name, ticks);
    else
        tare__events_add_value(f->encoder, op, name, ticks, value);
}

static tare__block_header seal(fixture *f)
{
    tare__block_header header = {.stream = 5, .position = 77, .ordinal = 3};
    tare__text_clear(&f->out);
    assert_int_equal(tare__events_seal(f->encoder, f->squeezer, &f->open, &header, &f->out), 0);
    assert_null(tare__block_header_check(&header));
    assert_memory_equal(f->out.data, &header, sizeof header);
    assert_int_equal(f->out.length, sizeof header + header.payload_bytes);
    return header;
}

static const uint8_t *payload(const fixture *f)
{
    return (const uint8_t *)f->out.data + sizeof(tare__block_header);
}

static void expect_all(fixture *f)
{
    tare__event event;
    for (uint32_t i = 0; i < f->count; i++) {
        assert_true(tare__events_next(&f->decoder, &event));
        assert_int_equal(event.op, f->expected[i].op);
        assert_int_equal(event.name, f->expected[i].name);
        assert_true(event.ticks == f->expected[i].ticks);
        if (event.op >= TARE__OP_COUNTER)
            assert_memory_equal(&event.value, &f->expected[i].value, sizeof event.value);
    }
    assert_false(tare__events_next(&f->decoder, &event));
}

static void round_trip(fixture *f)
{
    tare__block_header header = seal(f);
    assert_int_equal(header.kind, TARE__BLOCK_EVENTS);
    assert_int_equal(header.stream, 5);
    assert_int_equal(header.position, 77);
    assert_int_equal(header.ordinal, 3);
    assert_int_equal(header.count, f->count);
    assert_int_equal(header.spans, f->spans);
    assert_true(header.last_ticks == last_ticks(f));
    assert_int_equal(tare__events_open(&f->decoder, f->squeezer, &header, payload(f)), 0);
    expect_all(f);
}

static void again(fixture *f)
{
    tare__events_reset(f->encoder, 0);
    f->count = f->spans = 0;
}

static void every_kind_comes_back(void **state)
{
    fixture *f = *state;
    add(f, TARE__OP_BEGIN, 1, 1000, 0);
    add(f, TARE__OP_NUMBER, 2, 0, 32);
    add(f, TARE__OP_NEXT, 300, 1010, 0);
    add(f, TARE__OP_MARK, 70000, 1010, 0);
    add(f, TARE__OP_COUNTER, 16777216, 5000000, -0.25);
    add(f, TARE__OP_BEGIN, UINT32_MAX, 5000000, 0);
    add(f, TARE__OP_END_OF, 300, 5000001, 0);
    add(f, TARE__OP_LOST_ENDS, 9, 1, 3);
    add(f, TARE__OP_END, 9, 5000002, 0);
    round_trip(f);
}

static void an_empty_block_comes_back(void **state)
{
    fixture *f = *state;
    round_trip(f);
}

static void events_without_time_come_back(void **state)
{
    fixture *f = *state;
    add(f, TARE__OP_NUMBER, 1, 99, 5);
    add(f, TARE__OP_LOST_ENDS, 0, 99, 5);
    round_trip(f);
    again(f);
    add(f, TARE__OP_NUMBER, 1, 99, 5);
    add(f, TARE__OP_BEGIN, 1, 4000, 0);
    f->expected[0].ticks = 4000; /* before the first time there is none but the block's */
    round_trip(f);
}

static void times_of_all_widths_come_back(void **state)
{
    fixture *f = *state;
    for (unsigned order = 0; order < 2; order++) {
        uint64_t ticks = 0;
        for (unsigned i = 0; i < 128; i++) {
            unsigned bit = order ? 63 - i / 2 : i / 2;
            if (ticks + (UINT64_C(1) << bit) < ticks)
                continue; /* over the end of time */
            ticks += UINT64_C(1) << bit;
            add(f, i % 2 ? TARE__OP_END : TARE__OP_BEGIN, i + 1, ticks, 0);
        }
        round_trip(f);
        again(f);
    }
    add(f, TARE__OP_BEGIN, 1, 0, 0);
    add(f, TARE__OP_END, 1, UINT64_MAX, 0);
    round_trip(f);
}

static void a_time_that_goes_back_stands_still(void **state)
{
    fixture *f = *state;
    add(f, TARE__OP_BEGIN, 1, 1000, 0);
    add(f, TARE__OP_BEGIN, 2, 900, 0);
    f->expected[1].ticks = 1000;
    add(f, TARE__OP_END, 2, 1001, 0);
    round_trip(f);
}

static void values_come_back_to_the_bit(void **state)
{
    fixture *f = *state;
    const double values[] = {0.0,     -0.0,   1,     -1,     0.1,  1e300,       -1e-300, 9007199254740992.0,
                             -9007199254740992.0, 9007199254740994.0, 1e19, -9.3e18, __builtin_inf(),
                             -__builtin_inf(), __builtin_nan(""), 4.9e-324, 123456789};
    for (unsigned i = 0; i < TARE__COUNT_OF(values); i++)
        add(f, i % 2 ? TARE__OP_COUNTER : TARE__OP_NUMBER, 4, 10 + i, values[i]);
    f->expected[0].ticks = 11;
    round_trip(f);
}

/* All there is, in any order and of any width, at several sizes. */
static void random_blocks_come_back(void **state)
{
    fixture *f = *state;
    static const uint32_t sizes[] = {1, 2, 3, 100, 2000, 2049, TARE__EVENTS_MAX};
    for (unsigned round = 0; round < 4 * TARE__COUNT_OF(sizes); round++) {
        unsigned name_bits = 1 + (unsigned)(next_random() % 31);
        unsigned time_bits = 1 + (unsigned)(next_random() % 40);
        uint64_t ticks = 1 + next_random() % 1000000;
        again(f);
        add(f, TARE__OP_BEGIN, 1, ticks, 0);
        while (f->count < sizes[round % TARE__COUNT_OF(sizes)]) {
            tare__op op = next_random() % 20 ? (tare__op)(next_random() % 2) : (tare__op)(next_random() % 8);
            unsigned bits = next_random() % 50 ? time_bits : 1 + (unsigned)(next_random() % 44);
            ticks += op < TARE__OP_NUMBER ? next_random() >> (64 - bits) : 0;
            uint32_t name = 1 + (uint32_t)(next_random() >> (64 - name_bits));
            add(f, op, name, ticks, op == TARE__OP_LOST_ENDS ? 2 : (double)(int32_t)next_random() / 4);
        }
        round_trip(f);
    }
}

/* What the file promises for a tight nested loop. */
static void a_nested_loop_takes_less_than_a_byte_an_event(void **state)
{
    fixture *f = *state;
    uint64_t ticks = 1000000;
    while (f->count + 22 <= TARE__EVENTS_MAX) {
        add(f, TARE__OP_BEGIN, 3, ticks += 40 + next_random() % 8, 0);
        for (unsigned i = 0; i < 10; i++) {
            add(f, TARE__OP_BEGIN, 4, ticks += 24 + next_random() % 8, 0);
            add(f, TARE__OP_END, 4, ticks += 24 + next_random() % 8 + (next_random() % 500 ? 0 : 30000), 0);
        }
        add(f, TARE__OP_END, 3, ticks += 24 + next_random() % 8, 0);
    }
    round_trip(f);
    assert_true(f->out.length < f->count);
}

/* And for 1,000 names, milliseconds at 2.3 GHz with 5 % of jitter, in blocks of 1,000 spans. */
static void random_names_take_less_than_six_bytes_a_span(void **state)
{
    fixture *f = *state;
    uint64_t ticks = 1000000;
    while (f->spans < 1000) {
        add(f, TARE__OP_BEGIN, 1 + (uint32_t)(next_random() % 1000), ticks += 50 + next_random() % 30, 0);
        add(f, TARE__OP_END, 0, ticks += 2185000 + next_random() % 230000, 0);
    }
    round_trip(f);
    assert_true(f->out.length < 6 * 1000);
}

static void the_stack_comes_back(void **state)
{
    fixture *f = *state;
    assert_int_equal(tare__span_stack_push(&f->open, 9, 500), 0);
    assert_int_equal(tare__span_stack_push(&f->open, UINT32_MAX, 800), 0);
    assert_int_equal(tare__span_stack_push(&f->open, 1, 700), 0); /* clocks may go back */
    add(f, TARE__OP_END, 0, 1000, 0);
    round_trip(f);
    assert_int_equal(f->decoder.open.depth, 3);
    assert_int_equal(f->decoder.unlisted, 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(f->decoder.open.spans[i].name, f->open.spans[i].name);
        assert_int_equal(f->decoder.open.spans[i].begin, f->open.spans[i].begin);
    }
}

static void a_deep_stack_is_listed_from_outside(void **state)
{
    fixture *f = *state;
    for (uint32_t i = 0; i < TARE__STACK_LISTED + 5; i++)
        assert_int_equal(tare__span_stack_push(&f->open, i + 1, i), 0);
    add(f, TARE__OP_END, 0, 1000000, 0);
    round_trip(f);
    assert_int_equal(f->decoder.open.depth, TARE__STACK_LISTED);
    assert_int_equal(f->decoder.unlisted, 5);
    assert_int_equal(f->decoder.open.spans[TARE__STACK_LISTED - 1].name, TARE__STACK_LISTED);
}

static void the_stack_finds_the_innermost(void **state)
{
    fixture *f = *state;
    assert_int_equal(tare__span_stack_find(&f->open, 1), 0);
    const uint32_t names[] = {5, 6, 5, 7};
    for (unsigned i = 0; i < 4; i++)
        tare__span_stack_push(&f->open, names[i], i);
    assert_int_equal(tare__span_stack_find(&f->open, 7), 1);
    assert_int_equal(tare__span_stack_find(&f->open, 5), 2);
    assert_int_equal(tare__span_stack_find(&f->open, 6), 3);
    assert_int_equal(tare__span_stack_find(&f->open, 8), 0);
}

/* ---- damage ---------------------------------------------------------------------------------------- */
static void some_of_each(fixture *f)
{
    uint64_t ticks = 1000;
    tare__span_stack_push(&f->open, 2, 10);
    for (unsigned i = 0; i < 70; i++) {
        add(f, TARE__OP_BEGIN, 1 + i % 3, ticks += i, 0);
        add(f, TARE__OP_END, 0, ticks += i % 5 == 0 ? 100000 : i, 0);
    }
    add(f, TARE__OP_COUNTER, 300, ticks += 5, 0.5);
    add(f, TARE__OP_LOST_ENDS, 0, 0, 2);
}

/* Opened or refused, a reader gets at most `count` events and stays within the bytes (the sanitizers
 * watch): the payload is copied to where its end is the end of the memory. */
static int read_exactly(fixture *f, const tare__block_header *header, const uint8_t *bytes)
{
    uint8_t *copy = malloc(header->payload_bytes ? header->payload_bytes : 1);
    memcpy(copy, bytes, header->payload_bytes);
    int status = tare__events_open(&f->decoder, f->squeezer, header, copy);
    uint32_t n = 0;
    for (tare__event event; status == 0 && tare__events_next(&f->decoder, &event); n++)
        assert_true(event.ticks >= header->first_ticks && event.ticks <= header->last_ticks);
    assert_true(status ? n == 0 : n == header->count);
    free(copy);
    return status;
}

static void cut_blocks_are_refused(void **state)
{
    fixture *f = *state;
    some_of_each(f);
    tare__block_header header = seal(f);
    assert_int_equal(read_exactly(f, &header, payload(f)), 0);
    for (uint32_t cut = header.payload_bytes; cut-- > 0;) {
        header.payload_bytes = cut;
        assert_int_equal(read_exactly(f, &header, payload(f)), TARE_E_INPUT);
    }
}

static void flipped_bits_do_no_harm(void **state)
{
    fixture *f = *state;
    some_of_each(f);
    tare__block_header header = seal(f);
    uint8_t *bytes = (uint8_t *)f->out.data + sizeof header;
    for (uint32_t bit = 0; bit < 8 * header.payload_bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int status = read_exactly(f, &header, bytes);
        assert_true(status == 0 || status == TARE_E_INPUT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void bytes_after_the_columns_are_left_alone(void **state)
{
    fixture *f = *state;
    some_of_each(f);
    tare__block_header header = seal(f);
    tare__text_string(&f->out, "of a later version");
    header.payload_bytes += 18;
    assert_int_equal(read_exactly(f, &header, payload(f)), 0);
}

static void wrong_headers_are_refused(void **state)
{
    fixture *f = *state;
    some_of_each(f);
    const tare__block_header right = seal(f);
    tare__block_header header = right;
    header.flags = 1;
    assert_int_equal(read_exactly(f, &header, payload(f)), TARE_E_INPUT);
    header = right;
    header.kind = TARE__BLOCK_COMPLETE;
    assert_int_equal(read_exactly(f, &header, payload(f)), TARE_E_INPUT);
    for (int off = -1; off <= 1; off += 2) {
        header = right;
        header.count += (uint32_t)off;
        assert_int_equal(read_exactly(f, &header, payload(f)), TARE_E_INPUT);
        header = right;
        header.spans += (uint32_t)off;
        assert_int_equal(read_exactly(f, &header, payload(f)), TARE_E_INPUT);
        header = right;
        header.last_ticks += (uint64_t)off;
        assert_int_equal(read_exactly(f, &header, payload(f)), TARE_E_INPUT);
    }
    header = right;
    header.count = TARE__EVENTS_MAX + 1;
    assert_int_equal(read_exactly(f, &header, payload(f)), TARE_E_INPUT);
}

/* A block of these columns, read; what reading it came to. */
static int open_columns(fixture *f, const tare__column *columns, tare__block_header *header)
{
    tare__text_clear(&f->out);
    size_t at = tare__block_begin(&f->out);
    tare__varint_put(&f->out, 0);
    int status = tare__columns_put(f->squeezer, columns, TARE__COLUMNS_EVENTS, &f->out);
    assert_int_equal(tare__block_end(&f->out, at, header, status), 0);
    return read_exactly(f, header, payload(f));
}

/* A block of one operation's byte, with as many bytes in the planes as its classes ask for. */
static unsigned too_long; /* a plane with one byte too many; 0: none */

static int open_code(fixture *f, unsigned code, uint8_t name_byte, double value)
{
    static const uint8_t name_bytes[4] = {0, 1, 2, 4}, time_bytes[8] = {1, 2, 3, 4, 5, 6, 8, 0};
    const uint8_t zeros[8] = {0};
    uint8_t op = (uint8_t)code, name = name_byte, number[9] = {1};
    unsigned kind = code & 7;
    tare__column columns[TARE__COLUMNS_EVENTS] = {[TARE__COLUMN_OPS] = {&op, 1}};
    for (unsigned k = 0; k < name_bytes[code >> 6]; k++)
        columns[TARE__COLUMN_NAME + k] = (tare__column){k ? zeros : &name, 1};
    unsigned first = kind == 0 || kind == 2 || kind == 3 ? TARE__COLUMN_END : TARE__COLUMN_BEGIN;
    for (unsigned k = 0; k < time_bytes[code >> 3 & 7]; k++)
        columns[first + k] = (tare__column){zeros, 1};
    memcpy(number + 1, &value, sizeof value);
    if (kind >= TARE__OP_COUNTER)
        columns[TARE__COLUMN_VALUE] = (tare__column){number, sizeof number};
    if (too_long)
        columns[too_long] = (tare__column){zeros, columns[too_long].bytes + 1};
    tare__block_header header = {.kind = TARE__BLOCK_EVENTS, .count = 1, .spans = kind == 1 || kind == 2};
    return open_columns(f, columns, &header);
}

static void impossible_codes_are_refused(void **state)
{
    fixture *f = *state;
    for (unsigned code = 0; code < 256; code++) {
        unsigned op = code & 7, time = code >> 3 & 7, name = code >> 6;
        bool nameless = op == TARE__OP_END || op == TARE__OP_LOST_ENDS;
        bool possible = nameless == (name == 0) && (op < TARE__OP_NUMBER || time == 7);
        assert_int_equal(open_code(f, code, 4, 1), possible ? 0 : TARE_E_INPUT);
    }
}

static void surplus_bytes_in_columns_are_refused(void **state)
{
    fixture *f = *state;
    for (too_long = 1; too_long < TARE__COLUMNS_EVENTS; too_long++)
        assert_int_equal(open_code(f, TARE__OP_END | 7u << 3, 0, 0), TARE_E_INPUT);
    too_long = 0;
    assert_int_equal(open_code(f, TARE__OP_END | 7u << 3, 0, 0), 0);
}

static void name_0_is_refused(void **state)
{
    fixture *f = *state;
    for (unsigned class = 1; class < 4; class++)
        assert_int_equal(open_code(f, TARE__OP_BEGIN | 7u << 3 | class << 6, 0, 0), TARE_E_INPUT);
    add(f, TARE__OP_BEGIN, 256, 1, 0); /* its low byte is 0, it is not */
    add(f, TARE__OP_BEGIN, 65536, 2, 0);
    round_trip(f);
}

/* A block of marks with names of all classes, most of them with zeros in their bytes, one of them 0 or none. */
static int open_names(fixture *f, size_t n, size_t zero_at)
{
    static uint8_t ops[200], planes[4][200];
    size_t used[4] = {0};
    for (size_t i = 0; i < n; i++) {
        unsigned class = next_random() % 4, bytes = class < 3 ? class : 4;
        uint32_t name = (uint32_t)next_random() & (next_random() % 2 ? 0xff00ff00u : 0xffffffffu);
        if (bytes && (name & (bytes < 4 ? (1u << 8 * bytes) - 1 : ~0u)) == 0)
            name = 1;
        if (i == zero_at)
            name = 0, class = bytes = 1 + (unsigned)(next_random() % 2);
        ops[i] = (uint8_t)((class ? TARE__OP_MARK : TARE__OP_END) | 7u << 3 | class << 6);
        for (unsigned k = 0; k < bytes; k++)
            planes[k][used[k]++] = (uint8_t)(name >> 8 * k);
    }
    tare__column columns[TARE__COLUMNS_EVENTS] = {[TARE__COLUMN_OPS] = {ops, n}};
    for (unsigned k = 0; k < 4; k++)
        columns[TARE__COLUMN_NAME + k] = (tare__column){planes[k], used[k]};
    tare__block_header header = {.kind = TARE__BLOCK_EVENTS, .count = (uint32_t)n};
    return open_columns(f, columns, &header);
}

static void name_0_is_found_among_many(void **state)
{
    fixture *f = *state;
    for (size_t n = 1; n <= 200; n++) {
        assert_int_equal(open_names(f, n, n), 0);
        assert_int_equal(open_names(f, n, next_random() % n), TARE_E_INPUT);
    }
}

static void losses_are_whole_numbers(void **state)
{
    fixture *f = *state;
    const double wrong[] = {-1, 0.5, 4294967296.0, __builtin_nan("")};
    unsigned code = TARE__OP_LOST_ENDS | 7u << 3;
    for (unsigned i = 0; i < TARE__COUNT_OF(wrong); i++)
        assert_int_equal(open_code(f, code, 0, wrong[i]), TARE_E_INPUT);
    assert_int_equal(open_code(f, code, 0, 4294967295.0), 0);
    for (unsigned i = 0; i < TARE__COUNT_OF(wrong); i++) {
        add(f, TARE__OP_LOST_ENDS, 0, 0, wrong[i]);
        f->expected[i].value = i == 1 ? 0 : 4294967295.0;
    }
    round_trip(f);
}

/* Whatever an encoder is given, a reader gets: a name lost for want of memory costs no block. */
static void a_lost_name_is_written_as_such(void **state)
{
    fixture *f = *state;
    tare__span_stack_push(&f->open, 0, 5);
    add(f, TARE__OP_BEGIN, 0, 1000, 0);
    add(f, TARE__OP_NUMBER, 0, 1000, 2);
    f->expected[0].name = f->expected[1].name = TARE__NAME_LOST;
    round_trip(f);
    assert_int_equal(f->decoder.open.spans[0].name, TARE__NAME_LOST);
}

static void no_memory_is_said(void **state)
{
    fixture *f = *state;
    allocations_left = 0;
    assert_null(tare__events_encoder_new());
    assert_int_equal(tare__span_stack_push(&f->open, 1, 1), TARE_E_MEMORY);
    allocations_left = -1;
    some_of_each(f);
    int status = TARE_E_MEMORY;
    for (long left = 0; status; left++) {
        tare__block_header header = {0};
        tare__text out = {0};
        tare__squeezer *squeezer = tare__squeezer_new();
        allocations_left = left;
        status = tare__events_seal(f->encoder, squeezer, &f->open, &header, &out);
        allocations_left = -1;
        assert_true(status == 0 || (status == TARE_E_MEMORY && out.length == 0));
        assert_in_range(left, 0, 20);
        tare__text_free(&out);
        tare__squeezer_free(squeezer);
    }
    tare__block_header header = seal(f);
    status = TARE_E_MEMORY;
    for (long left = 0; status; left++) {
        tare__squeezer *squeezer = tare__squeezer_new();
        tare__events_decoder decoder = {0};
        allocations_left = left;
        status = tare__events_open(&decoder, squeezer, &header, payload(f));
        allocations_left = -1;
        assert_true(status == 0 || status == TARE_E_MEMORY);
        assert_true(status == 0 ? left >= 2 : left < 20);
        tare__events_close(&decoder);
        tare__squeezer_free(squeezer);
    }
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(every_kind_comes_back),
        WITH_FIXTURE(an_empty_block_comes_back),
        WITH_FIXTURE(events_without_time_come_back),
        WITH_FIXTURE(times_of_all_widths_come_back),
        WITH_FIXTURE(a_time_that_goes_back_stands_still),
        WITH_FIXTURE(values_come_back_to_the_bit),
        WITH_FIXTURE(random_blocks_come_back),
        WITH_FIXTURE(a_nested_loop_takes_less_than_a_byte_an_event),
        WITH_FIXTURE(random_names_take_less_than_six_bytes_a_span),
        WITH_FIXTURE(the_stack_comes_back),
        WITH_FIXTURE(a_deep_stack_is_listed_from_outside),
        WITH_FIXTURE(the_stack_finds_the_innermost),
        WITH_FIXTURE(cut_blocks_are_refused),
        WITH_FIXTURE(flipped_bits_do_no_harm),
        WITH_FIXTURE(bytes_after_the_columns_are_left_alone),
        WITH_FIXTURE(wrong_headers_are_refused),
        WITH_FIXTURE(impossible_codes_are_refused),
        WITH_FIXTURE(name_0_is_refused),
        WITH_FIXTURE(name_0_is_found_among_many),
        WITH_FIXTURE(surplus_bytes_in_columns_are_refused),
        WITH_FIXTURE(losses_are_whole_numbers),
        WITH_FIXTURE(a_lost_name_is_written_as_such),
        WITH_FIXTURE(no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
