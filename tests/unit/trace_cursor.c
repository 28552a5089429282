/* Tests of src/trace/cursor.c: blocks in order; torn, flipped, missing and foreign bytes cost what they hit.
 * One thread.
 * Must not know what is made of events. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/trace.h"
#include "trace_builder.h"

#define BLOCKS_MAX 64

typedef struct walk {
    size_t n;
    uint64_t offsets[BLOCKS_MAX];
    unsigned kinds[BLOCKS_MAX];
    tare__trace_damage damage;
    bool finished;
} walk;

static walk walk_trace(tare__trace *trace)
{
    walk seen = {0};
    tare__trace_block block;
    int status;
    while ((status = tare__trace_next(trace, &block, NULL)) == 1) {
        assert_true(seen.n < BLOCKS_MAX);
        uint32_t sum = tare__crc32c(0, block.payload, block.header.payload_bytes);
        assert_int_equal(sum, block.header.payload_crc);
        seen.offsets[seen.n] = block.offset;
        seen.kinds[seen.n++] = block.header.kind;
    }
    assert_int_equal(status, 0);
    seen.damage = *tare__trace_damage_of(trace);
    seen.finished = tare__trace_end_of(trace)->present;
    return seen;
}

static walk walk_bytes(builder *b, const void *bytes, size_t n)
{
    tare__trace *trace;
    assert_int_equal(tare__trace_open(build_bytes(b, bytes, n), &trace, NULL), 0);
    walk seen = walk_trace(trace);
    tare__trace_close(trace);
    return seen;
}

/* Run, clock, process, stream, two names, three blocks of events, end. */
static builder *small_trace(void)
{
    builder *b = builder_new();
    build_run(b);
    build_clock(b);
    build_process(b, 1, 77);
    build_stream(b, 1, 1, 77, "main");
    build_name(b, 1, TARE_KIND_SPAN, "outer");
    build_name(b, 2, TARE_KIND_SPAN, "inner");
    uint64_t t = 2000;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 40; k++) {
            BEGIN(1, t += 10);
            BEGIN(2, t += 10);
            END(t += 100);
            END(t += 10);
        }
        build_seal(b);
    }
    build_end(b, 200000);
    return b;
}

static void blocks_come_in_file_order(void **state)
{
    (void)state;
    static const unsigned kinds[] = {TARE__BLOCK_RUN,   TARE__BLOCK_CLOCK,  TARE__BLOCK_PROCESS,
                                     TARE__BLOCK_STREAM, TARE__BLOCK_NAMES,  TARE__BLOCK_NAMES,
                                     TARE__BLOCK_EVENTS, TARE__BLOCK_EVENTS, TARE__BLOCK_EVENTS,
                                     TARE__BLOCK_END};
    builder *b = small_trace();
    walk seen = walk_bytes(b, b->file.data, b->file.length);
    assert_int_equal(seen.n, TARE__COUNT_OF(kinds));
    for (size_t i = 0; i < seen.n; i++)
        assert_int_equal(seen.kinds[i], kinds[i]);
    assert_int_equal(seen.offsets[0], sizeof(tare__file_header));
    assert_int_equal(seen.damage.blocks + seen.damage.unknown, 0);
    assert_false(seen.damage.torn);
    assert_true(seen.finished);
    builder_free(b);
}

/* Cut at every byte: all blocks that are whole come, the one that is cut is told with its offset. */
static void a_torn_tail_costs_the_torn_block(void **state)
{
    (void)state;
    builder *b = small_trace();
    walk whole = walk_bytes(b, b->file.data, b->file.length);
    for (size_t cut = sizeof(tare__file_header); cut < b->file.length; cut++) {
        size_t blocks = 0;
        while (blocks < whole.n && (blocks + 1 < whole.n ? whole.offsets[blocks + 1] : b->file.length) <= cut)
            blocks++;
        walk seen = walk_bytes(b, b->file.data, cut);
        assert_int_equal(seen.n, blocks);
        assert_int_equal(seen.damage.blocks, 0);
        assert_int_equal(seen.damage.torn, cut != whole.offsets[blocks]);
        if (seen.damage.torn)
            assert_int_equal(seen.damage.torn_offset, whole.offsets[blocks]);
        assert_false(seen.finished);
    }
    builder_free(b);
}

/* Which of the whole walk's blocks are missing: all that come must be there at the same places. */
static size_t missing_blocks(const walk *whole, const walk *seen)
{
    size_t at = 0;
    for (size_t i = 0; i < seen->n; i++) {
        while (at < whole->n && whole->offsets[at] != seen->offsets[i])
            at++;
        assert_true(at < whole->n);
        at++;
    }
    return whole->n - seen->n;
}

static void a_flipped_bit_costs_one_block(void **state)
{
    (void)state;
    builder *b = small_trace();
    walk whole = walk_bytes(b, b->file.data, b->file.length);
    for (size_t at = sizeof(tare__file_header); at < b->file.length; at++) {
        for (int bit = 0; bit < 8; bit++) {
            b->file.data[at] ^= (char)(1 << bit);
            walk seen = walk_bytes(b, b->file.data, b->file.length);
            assert_int_equal(missing_blocks(&whole, &seen), 1);
            assert_int_equal(seen.damage.blocks, 1);
            assert_true(seen.damage.first_offset <= at);
            assert_true(seen.damage.first_offset + seen.damage.bytes > at);
            assert_false(seen.damage.torn);
            b->file.data[at] ^= (char)(1 << bit);
        }
    }
    builder_free(b);
}

/* Bytes taken out or put in anywhere: the blocks around are found again. */
static void missing_and_extra_bytes_cost_one_block(void **state)
{
    (void)state;
    builder *b = small_trace();
    walk whole = walk_bytes(b, b->file.data, b->file.length);
    char *changed = malloc(b->file.length + 100);
    size_t last = whole.offsets[whole.n - 1];
    for (size_t at = sizeof(tare__file_header); at + 7 < last; at += 3) {
        memcpy(changed, b->file.data, at);
        memcpy(changed + at, b->file.data + at + 7, b->file.length - at - 7);
        walk seen = walk_bytes(b, changed, b->file.length - 7);
        assert_in_range(seen.n, whole.n - 2, whole.n - 1); /* the gap may lie across two */
        assert_true(seen.finished);
        assert_true(seen.damage.blocks > 0);

        memset(changed + at, 'T', 100);
        memcpy(changed + at + 100, b->file.data + at, b->file.length - at);
        seen = walk_bytes(b, changed, b->file.length + 100);
        assert_true(seen.n >= whole.n - 1);
        assert_true(seen.finished);
    }
    free(changed);
    builder_free(b);
}

static void spans_of_damaged_payloads_are_counted(void **state)
{
    (void)state;
    builder *b = small_trace();
    walk whole = walk_bytes(b, b->file.data, b->file.length);
    b->file.data[whole.offsets[6] + 64] ^= 1; /* a payload: its header still says what is lost */
    b->file.data[whole.offsets[7] + 20] ^= 1; /* a header */
    walk seen = walk_bytes(b, b->file.data, b->file.length);
    assert_int_equal(seen.damage.blocks, 2);
    assert_int_equal(seen.damage.spans, 80);
    assert_int_equal(seen.damage.headless, 1);
    assert_int_equal(seen.damage.first_offset, whole.offsets[6]);
    builder_free(b);
}

static void unknown_blocks_are_skipped_and_counted(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_run(b);
    size_t at = b->file.length;
    build_number(b, 7777, 1);
    build_fields(b, (tare__block_kind)200, 0);
    build_fields(b, (tare__block_kind)(TARE__BLOCK_SYMBOLS + 1), 0);
    build_end(b, 5000);
    walk seen = walk_bytes(b, b->file.data, b->file.length);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.damage.unknown, 2);
    assert_int_equal(seen.damage.blocks, 0);
    assert_true(seen.finished);

    /* A block of a coding to come, told by its flags. */
    tare__block_header header;
    memcpy(&header, b->file.data + at, sizeof header);
    header.kind = TARE__BLOCK_EVENTS;
    header.flags = 1;
    tare__block_header_seal(&header, b->file.data + at + sizeof header);
    memcpy(b->file.data + at, &header, sizeof header);
    seen = walk_bytes(b, b->file.data, b->file.length);
    assert_int_equal(seen.damage.unknown, 2);
    assert_int_equal(seen.damage.blocks, 0);
    builder_free(b);
}

static void prescan_fills_the_tables_and_rewinds(void **state)
{
    (void)state;
    builder *b = small_trace();
    tare__trace *trace;
    size_t names;
    assert_int_equal(tare__trace_open(build_file(b), &trace, NULL), 0);
    assert_false(tare__trace_end_of(trace)->present);
    assert_int_equal(tare__trace_prescan(trace, NULL), 0);
    assert_true(tare__trace_end_of(trace)->present);
    tare__trace_names(trace, &names);
    assert_int_equal(names, 2);
    walk first = walk_trace(trace);
    assert_int_equal(first.n, 10);
    assert_int_equal(tare__trace_prescan(trace, NULL), 0);
    tare__trace_rewind(trace);
    walk second = walk_trace(trace);
    assert_memory_equal(&first, &second, sizeof first);
    tare__trace_close(trace);
    builder_free(b);
}

/* Prescan steps over events unread; a byte missing there must not cost the tables that follow. */
static void prescan_finds_tables_behind_damage(void **state)
{
    (void)state;
    builder *b = small_trace();
    walk whole = walk_bytes(b, b->file.data, b->file.length);
    size_t at = whole.offsets[8] + 70;
    memmove(b->file.data + at, b->file.data + at + 1, b->file.length - at - 1);
    b->file.length--;
    tare__trace *trace;
    assert_int_equal(tare__trace_open(build_file(b), &trace, NULL), 0);
    assert_int_equal(tare__trace_prescan(trace, NULL), 0);
    assert_true(tare__trace_end_of(trace)->present);
    walk seen = walk_trace(trace);
    assert_int_equal(seen.n, whole.n - 1);
    assert_int_equal(seen.damage.blocks, 1);
    tare__trace_close(trace);
    builder_free(b);
}

/* A payload with the right checksum that no codec takes is damage, whether met in prescan or after. */
static void nonsense_with_a_right_checksum_is_damage(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_run(b);
    size_t at = b->file.length;
    tare__text_append(&b->fields, "\x14\x7f", 2); /* a field longer than the block */
    build_fields(b, TARE__BLOCK_PROCESS, 0);
    build_end(b, 5000);
    walk seen = walk_bytes(b, b->file.data, b->file.length);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.damage.blocks, 1);
    assert_int_equal(seen.damage.first_offset, at);
    tare__trace *trace;
    assert_int_equal(tare__trace_open(build_file(b), &trace, NULL), 0);
    assert_int_equal(tare__trace_prescan(trace, NULL), 0);
    seen = walk_trace(trace);
    assert_int_equal(seen.damage.blocks, 1);
    assert_int_equal(seen.damage.first_offset, at);
    tare__trace_close(trace);
    builder_free(b);
}

static void a_file_cut_while_it_is_read_ends_there(void **state)
{
    (void)state;
    builder *b = builder_new();
    build_run(b);
    build_name(b, 1, TARE_KIND_SPAN, "work");
    uint64_t t = 2000;
    uint64_t random = 1;
    for (int i = 0; i < 30; i++) { /* larger than any window */
        for (int k = 0; k < 16000; k++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            BEGIN(1, t += random >> 40);
            END(t += random >> 44);
        }
        build_seal(b);
    }
    tare__trace *trace;
    tare__trace_block block;
    assert_int_equal(tare__trace_open(build_file(b), &trace, NULL), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tare__trace_next(trace, &block, NULL), 1);
    assert_int_equal(ftruncate(b->fd, (off_t)b->file.length - 1000000), 0);
    int blocks = 4, status;
    while ((status = tare__trace_next(trace, &block, NULL)) == 1)
        blocks++;
    assert_int_equal(status, 0);
    assert_in_range(blocks, 5, 31);
    assert_true(tare__trace_damage_of(trace)->torn);
    tare__trace_close(trace);
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_in_file_order),
        cmocka_unit_test(a_torn_tail_costs_the_torn_block),
        cmocka_unit_test(a_flipped_bit_costs_one_block),
        cmocka_unit_test(missing_and_extra_bytes_cost_one_block),
        cmocka_unit_test(spans_of_damaged_payloads_are_counted),
        cmocka_unit_test(unknown_blocks_are_skipped_and_counted),
        cmocka_unit_test(prescan_fills_the_tables_and_rewinds),
        cmocka_unit_test(prescan_finds_tables_behind_damage),
        cmocka_unit_test(nonsense_with_a_right_checksum_is_damage),
        cmocka_unit_test(a_file_cut_while_it_is_read_ends_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
