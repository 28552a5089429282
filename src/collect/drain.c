/* drain: converts slots in shared memory to blocks in the file. A chunk is returned to its process only when
 * its block is written. Reads at intervals and never waits for a thread's newest slot.
 * One thread. Must not know what the records will be used for. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector.h"

#define LIVENESS_NS 1000000000u
#define SCAN_NS 100000000u
#define AHEAD 64u /* slots, prefetched ahead of use */
#define LAST_SCANS 8u /* of a process, while they miss chunks */

typedef struct found_chunk {
    uint32_t stream, sequence;
    uint32_t index, state;
} found_chunk;

typedef enum stop_reason {
    STOP_END,   /* all available slots were read */
    STOP_HOLE,  /* a slot was reserved and is not filled yet */
    STOP_FULL   /* the block is full */
} stop_reason;

typedef enum reach_kind {
    REACH_KNOWN,    /* what is missing may still come */
    REACH_END,      /* the thread is gone, or this is the end of the run: empty slots stay empty */
    REACH_OVER_GAPS /* and chunks that are missing stay missing */
} reach_kind;

static tare__chunk *chunk_at(tare__source *source, uint32_t index)
{
    return (void *)((uint8_t *)source->ring + source->chunks_offset + (uint64_t)index * TARE__CHUNK_BYTES);
}

static uint32_t chunks_to_scan(const tare__source *source)
{
    uint32_t count = atomic_load(&source->ring->chunk_count);
    uint64_t fits = (source->bytes - source->chunks_offset) / TARE__CHUNK_BYTES;
    if (count > fits)
        count = (uint32_t)fits;
    return count > TARE__RING_CHUNKS_MAX ? TARE__RING_CHUNKS_MAX : count;
}

static bool holds_cells(uint32_t state)
{
    return state == TARE__CHUNK_AGGREGATES || state == TARE__CHUNK_AGGREGATES_RETIRED;
}

/* By stream, in each the chunks of cells first. */
#define HOLDS_CELLS(chunk) holds_cells((chunk)->state)
TARE__ORDER(by_stream, found_chunk, TARE__RISING(stream) TARE__FALLING_BY(HOLDS_CELLS) TARE__RISING(sequence))

/* ---- one record -------------------------------------------------------------------------------------------- */

typedef struct reading {
    tare__collector *collector;
    tare__source *source;
    tare__stream *stream;
    const tare__slot *slots;
    uint64_t generation;
    uint32_t count; /* slots in this part */
} reading;

static bool slot_valid(const reading *at, uint32_t i)
{
    return i < at->count &&
           (__atomic_load_n(&at->slots[i].word, __ATOMIC_ACQUIRE) & TARE__WORD_GENERATION) == at->generation;
}

static uint64_t slot_value(const reading *at, uint32_t i)
{
    return __atomic_load_n(&at->slots[i].value, __ATOMIC_RELAXED);
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t slots_of(unsigned kind)
{
    return kind == TARE__RECORD_COMPLETE ? TARE__COMPLETE_SLOTS
           : kind == TARE__RECORD_COUNTER ? TARE__COUNTER_SLOTS
           : kind == TARE__RECORD_FACT    ? TARE__FACT_SLOTS
                                          : 1;
}

static uint32_t name_of(reading *at, uint32_t id)
{
    uint32_t known = id < TARE__NAMES_BYTES / TARE__NAME_UNIT ? at->source->name_map[id] : 0;
    return TARE__LIKELY(known) ? known : tare__file_name_of(at->collector, at->source, id);
}

/* Nearly all records are one slot, a span: handles a sequence of these from slot i on, with all state in registers.
 * Stops at anything unusual: an unknown name or depth, an end of another span, any other record. Returns the slot it
 * stopped at. */
static uint32_t add_usual_spans(reading *at, uint32_t i)
{
    tare__events_encoder *encoder = at->collector->encoder;
    tare__events_tail tail = encoder->tail;
    tare__span_stack open = at->stream->open;
    const uint32_t *names = at->source->name_map;
    const tare__slot *slots = at->slots;
    uint32_t room = TARE__EVENTS_MAX - 1 - tare__events_count(encoder), end = at->count;
    uint64_t usual[] = {TARE__WORD(TARE__RECORD_BEGIN, 0) | at->generation,
                        TARE__WORD(TARE__RECORD_END, 0) | at->generation,
                        TARE__WORD(TARE__RECORD_NEXT, 0) | at->generation};
    if (end > i + room)
        end = i + room;
    while (i < end) {
        uint64_t word = __atomic_load_n(&slots[i].word, __ATOMIC_ACQUIRE), low = word & 0xFFFF;
        uint64_t ticks = __atomic_load_n(&slots[i].value, __ATOMIC_RELAXED), id = word >> TARE__WORD_ID_SHIFT;
        if (id >= TARE__NAMES_BYTES / TARE__NAME_UNIT)
            break;
        __builtin_prefetch(&slots[i + AHEAD]);
        uint32_t name = names[id];
        if (low == usual[0]) {
            if (name == 0 || open.depth == open.room)
                break;
            tare__events_put(encoder, &tail, TARE__OP_BEGIN, name, ticks);
            if (i + 1 < end && __atomic_load_n(&slots[i + 1].word, __ATOMIC_ACQUIRE) ==
                                   word + TARE__WORD(TARE__RECORD_END - TARE__RECORD_BEGIN, 0)) {
                tare__events_put(encoder, &tail, TARE__OP_END, 0,
                                 __atomic_load_n(&slots[i + 1].value, __ATOMIC_RELAXED));
                i += 2;
                continue;
            }
            open.spans[open.depth++] = (tare__open_span){.begin = ticks, .name = name};
        } else if (low == usual[1]) {
            if (open.depth == 0 || (id && open.spans[open.depth - 1].name != name))
                break;
            tare__events_put(encoder, &tail, TARE__OP_END, 0, ticks);
            open.depth--;
        } else if (low == usual[2]) {
            if (name == 0 || open.depth == 0)
                break;
            tare__events_put(encoder, &tail, TARE__OP_NEXT, name, ticks);
            open.spans[open.depth - 1] = (tare__open_span){.begin = ticks, .name = name};
        } else {
            break;
        }
        i++;
    }
    encoder->tail = tail;
    at->stream->open.depth = open.depth;
    return i;
}

/* Any span. */
static void add_span(reading *at, unsigned kind, uint32_t id, uint64_t ticks)
{
    tare__events_encoder *encoder = at->collector->encoder;
    tare__span_stack *open = &at->stream->open;
    uint32_t name = id ? name_of(at, id) : 0;
    if (kind == TARE__RECORD_END && name && tare__span_stack_find(open, name) != 1) {
        open->depth -= tare__span_stack_find(open, name);
        tare__events_add(encoder, TARE__OP_END_OF, name, ticks);
        return;
    }
    if (kind != TARE__RECORD_BEGIN)
        open->depth -= open->depth > 0;
    tare__events_add(encoder, kind == TARE__RECORD_BEGIN ? TARE__OP_BEGIN
                              : kind == TARE__RECORD_END ? TARE__OP_END
                                                         : TARE__OP_NEXT, name, ticks);
    if (kind != TARE__RECORD_END)
        tare__span_stack_push(open, name, ticks);
}

static void add_complete(reading *at, uint32_t i, uint32_t id)
{
    tare__collector *collector = at->collector;
    uint32_t track = TARE__WORD_ID(__atomic_load_n(&at->slots[i + 1].word, __ATOMIC_RELAXED));
    tare__complete_span *span = &collector->complete[collector->complete_count++];
    span->name = name_of(at, id);
    span->track = track ? name_of(at, track) : 0;
    span->start = slot_value(at, i);
    span->end = slot_value(at, i + 1);
    if (span->end < span->start)
        span->end = span->start;
    span->id = slot_value(at, i + 2);
    span->parent = slot_value(at, i + 3);
    span->flow = slot_value(at, i + 4);
}

static void add_fact(reading *at, uint32_t i, uint32_t id)
{
    tare__collector *collector = at->collector;
    uint32_t file = TARE__WORD_ID(__atomic_load_n(&at->slots[i + 1].word, __ATOMIC_RELAXED));
    uint32_t text = TARE__WORD_ID(__atomic_load_n(&at->slots[i + 2].word, __ATOMIC_RELAXED));
    uint64_t line = slot_value(at, i + 2);
    collector->facts[collector->fact_count++] = (tare__fact){.key = name_of(at, id),
                                                             .file = file ? name_of(at, file) : 0,
                                                             .text = text ? name_of(at, text) : 0,
                                                             .line = line > UINT32_MAX ? 0 : (uint32_t)line,
                                                             .ticks = slot_value(at, i),
                                                             .value = double_of(slot_value(at, i + 1))};
}

/* A step is begun and then numbered: the number is counted, since it takes this slow path anyway. */
static void count_step(reading *at, uint32_t i, uint32_t name)
{
    const tare__collector *collector = at->collector;
    const tare__span_stack *open = &at->stream->open;
    const tare__file_name *number = name ? &collector->all_names[name - 1] : NULL;
    if (!number || number->text_bytes != 5 || memcmp(number->text, "index", 5) != 0 || open->depth == 0)
        return;
    uint32_t span = open->spans[open->depth - 1].name;
    unsigned before = i ? TARE__WORD_KIND(__atomic_load_n(&at->slots[i - 1].word, __ATOMIC_RELAXED))
                        : TARE__RECORD_BEGIN;
    if (span && collector->all_names[span - 1].kind == TARE_KIND_STEP &&
        (before == TARE__RECORD_BEGIN || before == TARE__RECORD_NEXT))
        at->collector->steps++;
}

/* Any record, at slot i; returns the number of slots it took, 0: incomplete. */
static uint32_t add_record(reading *at, uint32_t i, uint64_t word)
{
    tare__collector *collector = at->collector;
    tare__events_encoder *encoder = collector->encoder;
    unsigned kind = TARE__WORD_KIND(word);
    uint32_t id = TARE__WORD_ID(word);
    uint64_t value = slot_value(at, i);
    uint32_t slots = slots_of(kind);
    for (uint32_t k = 1; k < slots; k++)
        if (!slot_valid(at, i + k))
            return 0;
    switch (kind) {
    case TARE__RECORD_BEGIN:
    case TARE__RECORD_END:
    case TARE__RECORD_NEXT:
        add_span(at, kind, id, value);
        break;
    case TARE__RECORD_MARK:
        tare__events_add(encoder, TARE__OP_MARK, name_of(at, id), value);
        break;
    case TARE__RECORD_COUNTER:
        tare__events_add_value(encoder, TARE__OP_COUNTER, name_of(at, id), value,
                               double_of(slot_value(at, i + 1)));
        break;
    case TARE__RECORD_NUMBER: {
        uint32_t name = name_of(at, id);
        tare__events_add_value(encoder, TARE__OP_NUMBER, name, 0, double_of(value));
        count_step(at, i, name);
        break;
    }
    case TARE__RECORD_LOST_ENDS: {
        uint32_t depth = at->stream->open.depth;
        at->stream->open.depth -= value < depth ? (uint32_t)value : depth;
        tare__events_add_value(encoder, TARE__OP_LOST_ENDS, 0, 0, (double)value);
        break;
    }
    case TARE__RECORD_COMPLETE:
        add_complete(at, i, id);
        break;
    case TARE__RECORD_FACT:
        add_fact(at, i, id);
        break;
    default: /* padding; or an invalid word of a process that writes out of bounds */
        break;
    }
    return slots;
}

static void count_skipped(tare__stream *stream, uint64_t slots)
{
    stream->skipped += slots;
    stream->told = stream->told && slots == 0;
}

/* Reads one part of a chunk from slot *i on. With `past_holes`, slots never filled are skipped. */
static stop_reason read_part(reading *at, uint32_t *i, uint32_t expected, bool past_holes)
{
    tare__collector *collector = at->collector;
    while (*i < at->count) {
        *i = add_usual_spans(at, *i);
        if (*i == at->count)
            break;
        if (tare__events_count(collector->encoder) >= TARE__EVENTS_MAX - 1 ||
            collector->complete_count >= TARE__EVENTS_MAX || collector->fact_count >= TARE__FACTS_MAX)
            return STOP_FULL;
        uint64_t word = __atomic_load_n(&at->slots[*i].word, __ATOMIC_ACQUIRE);
        uint32_t took = 0;
        if (TARE__LIKELY((word & TARE__WORD_GENERATION) == at->generation))
            took = add_record(at, *i, word);
        if (TARE__UNLIKELY(took == 0)) {
            if (*i >= expected && !past_holes)
                return STOP_END;
            if (!past_holes)
                return STOP_HOLE;
            bool more = false;
            for (uint32_t k = *i + 1; k < at->count && !more; k++)
                more = slot_valid(at, k);
            if (!more && *i >= expected)
                return STOP_END;
            count_skipped(at->stream, 1);
            took = 1;
        }
        *i += took;
    }
    return STOP_END;
}

/* ---- one chunk --------------------------------------------------------------------------------------------- */

static stop_reason read_chunk(tare__collector *collector, tare__source *source, tare__stream *stream,
                              const found_chunk *found, bool past_holes)
{
    tare__chunk *chunk = chunk_at(source, found->index);
    bool retired = found->state == TARE__CHUNK_RETIRED;
    uint32_t used = retired ? atomic_load(&chunk->main_used) : 0;
    uint32_t reserve = retired ? atomic_load(&chunk->reserve_used) : 0;
    reading at = {collector, source, stream, (const void *)((uint8_t *)chunk + TARE__CHUNK_MAIN),
                  chunk->generation, TARE__CHUNK_SLOTS};
    uint32_t slots = TARE__POSITION_SLOTS(stream->position);
    stop_reason stop = STOP_END;
    if (slots < TARE__CHUNK_SLOTS) {
        if (retired && used < at.count)
            at.count = used;
        stop = read_part(&at, &slots, used < at.count ? used : at.count, past_holes);
    }
    at.slots = (const void *)((uint8_t *)chunk + TARE__CHUNK_RESERVE);
    at.count = retired && reserve < TARE__CHUNK_RESERVE_SLOTS ? reserve : TARE__CHUNK_RESERVE_SLOTS;
    /* The reserve is used once the main part is full. A live chunk may still be filled at this position. */
    bool main_done = slots >= TARE__CHUNK_SLOTS || retired || (past_holes && slot_valid(&at, 0));
    if (main_done && stop == STOP_END) {
        if (slots < TARE__CHUNK_SLOTS) {
            count_skipped(stream, retired ? 0 : TARE__CHUNK_SLOTS - slots);
            slots = TARE__CHUNK_SLOTS;
        }
        uint32_t i = slots - TARE__CHUNK_SLOTS;
        stop = read_part(&at, &i, retired ? at.count : 0, past_holes);
        slots = TARE__CHUNK_SLOTS + i;
    }
    stream->position = TARE__POSITION(TARE__POSITION_SEQUENCE(stream->position), slots);
    return stop;
}

/* Slots that were not used this time contain old records: zeroed, so that a later use with the same generation does
 * not treat them as its own. */
static void release(tare__collector *collector, tare__source *source, uint32_t index)
{
    tare__chunk *chunk = chunk_at(source, index);
    uint32_t used = atomic_load(&chunk->main_used), reserve = atomic_load(&chunk->reserve_used);
    if (used < TARE__CHUNK_SLOTS)
        memset((uint8_t *)chunk + TARE__CHUNK_MAIN + used * sizeof(tare__slot), 0,
               (TARE__CHUNK_SLOTS - used) * sizeof(tare__slot));
    if (reserve)
        memset((uint8_t *)chunk + TARE__CHUNK_RESERVE, 0, TARE__CHUNK_MAIN - TARE__CHUNK_RESERVE);
    atomic_store_explicit(&source->ring->chunk_state[index], TARE__CHUNK_FREE, memory_order_release);
    atomic_fetch_add_explicit(&source->ring->given_back, 1, memory_order_release);
    collector->given_back++;
    tare__note_busy_cpu(collector, chunk->cpu);
}

/* ---- one stream: its chunks in order, as one or more blocks ------------------------------------------------ */

static void start_block(tare__collector *collector, const tare__stream *stream)
{
    /* A handler that got the slot after the one it interrupted may have read the clock earlier, and the block may
     * end between the two: time must not decrease from block to block either. */
    tare__events_reset(collector->encoder, stream->last_ticks);
    collector->complete_count = 0;
    collector->fact_count = 0;
    collector->before.depth = 0;
    for (uint32_t i = 0; i < stream->open.depth && i < TARE__STACK_LISTED; i++)
        tare__span_stack_push(&collector->before, stream->open.spans[i].name, stream->open.spans[i].begin);
    if (stream->open.depth > TARE__STACK_LISTED)
        collector->before.depth = stream->open.depth; /* counted, not listed */
}

static void write_block(tare__collector *collector, tare__source *source, tare__stream *stream)
{
    if (tare__events_count(collector->encoder) == 0 && collector->complete_count == 0 && collector->fact_count == 0)
        return;
    tare__tell_stream(collector, source, stream);
    tare__text *block = &collector->block;
    uint64_t sealed = 0;
    tare__text_clear(block);
    tare__flush_names(collector, block);
    /* Blocks before the last one have no position: where the file ends between them, a salvage removes them and reads
     * their records from the ring again. */
    bool events = tare__events_count(collector->encoder) > 0;
    if (collector->fact_count) {
        tare__block_header header = {.stream = stream->id};
        if (!events && !collector->complete_count)
            header.position = stream->position;
        tare__facts_seal(collector->facts, collector->fact_count, collector->squeezer, &header, block);
        if (header.last_ticks > collector->last_ticks)
            collector->last_ticks = header.last_ticks;
    }
    if (collector->complete_count) {
        tare__block_header header = {.stream = stream->id, .position = events ? 0 : stream->position};
        if (tare__complete_seal(collector->complete, collector->complete_count, collector->squeezer, &header, block))
            collector->writer.lost_spans += collector->complete_count;
        else
            sealed += header.spans;
        if (header.last_ticks > collector->last_ticks)
            collector->last_ticks = header.last_ticks;
    }
    if (events) {
        tare__block_header header = {.stream = stream->id, .position = stream->position,
                                     .ordinal = stream->ordinal++};
        if (tare__events_seal(collector->encoder, collector->squeezer, &collector->before, &header, block))
            collector->writer.lost_spans += tare__events_count(collector->encoder) / 2;
        else
            sealed += header.spans;
        if (header.last_ticks > stream->last_ticks)
            stream->last_ticks = header.last_ticks;
    }
    if (tare__writer_append(&collector->writer, block) == TARE_E_MEMORY) {
        collector->writer.lost_spans += sealed;
        block->failed = false; /* that was this one */
    }
}

#define GIVEN_BACK_MAX 16

static void flush_block(tare__collector *collector, tare__source *source, tare__stream *stream, const uint32_t *chunks,
                        uint32_t *n)
{
    write_block(collector, source, stream);
    for (uint32_t i = 0; i < *n; i++)
        release(collector, source, chunks[i]);
    *n = 0;
    start_block(collector, stream);
}

/* Something is missing that should arrive soon; returns how long it has been missing. */
static void note_hole(tare__stream *stream, uint64_t now)
{
    if (!stream->hole_since_ns)
        stream->hole_since_ns = now;
}

/* A slot that was reserved and is not filled: its thread was stopped in between, or is interrupted by a handler and
 * will fill it later; or the handler left by siglongjmp and it will never be filled. A stopped thread fills no
 * further chunks, and handlers do not record that much: if the stream has continued for two chunks, the slot is
 * given up sooner. If it is filled after all, one record is lost. */
static bool hole_is_left(const tare__stream *stream, const found_chunk *last, uint64_t now)
{
    if (!stream->hole_since_ns)
        return false;
    bool went_on = last->sequence >= TARE__POSITION_SEQUENCE(stream->position) + 2;
    return now - stream->hole_since_ns >= (went_on ? TARE__HOLE_PASSED_NS : TARE__HOLE_NS);
}

/* A chunk that was taken during the scan: the next scan finds it, however long this one was interrupted. One that is
 * missing for as long as an empty slot may be is lost; at the end, one that the previous scan missed, too. */
static bool gap_is_left(tare__stream *stream, uint32_t sequence, reach_kind reach, uint64_t now)
{
    if (!stream->gap_since_ns || stream->gap_sequence != sequence) {
        stream->gap_since_ns = now;
        stream->gap_sequence = sequence;
        return reach == REACH_OVER_GAPS;
    }
    return reach != REACH_KNOWN || now - stream->gap_since_ns >= TARE__HOLE_NS;
}

/* What was in the chunks before this one is not known. A salvage also gets here where --last or --max-size removed the
 * blocks that say how far the stream was read. */
static void pass_gap(const tare__collector *collector, tare__stream *stream, uint32_t sequence)
{
    uint64_t read = TARE__POSITION_SLOTS(stream->position);
    uint64_t missing = (uint64_t)(sequence - TARE__POSITION_SEQUENCE(stream->position)) * TARE__CHUNK_SLOTS;
    count_skipped(stream, collector->salvaging ? 0 : missing - (read < TARE__CHUNK_SLOTS ? read : TARE__CHUNK_SLOTS));
    stream->position = TARE__POSITION(sequence, 0);
}

/* Chunks found[0..n) of one stream, all that the scan saw. Retired ones are read to their end and given back; the live
 * one is read when its second is up, and a slot that is missing there is about to be filled. False: a chunk is missing,
 * the next scan must look for it. */
static bool drain_stream(tare__collector *collector, tare__source *source, tare__stream *stream,
                         const found_chunk *found, uint32_t n, reach_kind reach, uint64_t now)
{
    bool final = reach != REACH_KNOWN, whole = true;
    bool due = final || now - stream->sealed_ns >= TARE__SEAL_NS;
    if (!due && found[0].state != TARE__CHUNK_RETIRED)
        return true;
    bool give_up = final || hole_is_left(stream, &found[n - 1], now);
    uint32_t done[GIVEN_BACK_MAX];
    uint32_t done_count = 0;
    start_block(collector, stream);
    for (uint32_t at = 0; at < n && (due || found[at].state == TARE__CHUNK_RETIRED);) {
        uint32_t sequence = TARE__POSITION_SEQUENCE(stream->position);
        bool retired = found[at].state == TARE__CHUNK_RETIRED;
        if (found[at].sequence < sequence) { /* already written; only the mark that returns it is missing */
            if (retired)
                release(collector, source, found[at].index);
            at++;
            continue;
        }
        if (found[at].sequence > sequence) {
            if (!gap_is_left(stream, sequence, reach, now)) {
                whole = false;
                break;
            }
            pass_gap(collector, stream, found[at].sequence);
        }
        stop_reason stop = read_chunk(collector, source, stream, &found[at], final || (give_up && retired));
        if (stop == STOP_HOLE) {
            note_hole(stream, now);
            break;
        }
        if (stop == STOP_END) {
            stream->hole_since_ns = 0;
            if (!retired && !(final && at + 1 < n))
                break;
            if (retired)
                done[done_count++] = found[at].index;
            stream->position = TARE__POSITION(found[at].sequence + 1, 0);
            at++;
        }
        if (stop == STOP_FULL || done_count == GIVEN_BACK_MAX ||
            tare__events_count(collector->encoder) + TARE__CHUNK_SLOTS > TARE__EVENTS_MAX)
            flush_block(collector, source, stream, done, &done_count);
    }
    flush_block(collector, source, stream, done, &done_count);
    if (due)
        stream->sealed_ns = now;
    return whole;
}

/* ---- aggregates -------------------------------------------------------------------------------------------- */

static uint32_t collect_cells(tare__collector *collector, tare__source *source, const found_chunk *found,
                              uint32_t n, tare__aggregate *out, uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const tare__cell *cells = (const void *)((uint8_t *)chunk_at(source, found[i].index) + TARE__CHUNK_MAIN);
        for (uint32_t k = 0; k < TARE__CELLS_PER_CHUNK && count < room; k++) {
            uint32_t name = atomic_load_explicit(&cells[k].name, memory_order_acquire);
            if (name == 0)
                break;
            out[count++] = (tare__aggregate){
                .name = tare__file_name_of(collector, source, name),
                .every = cells[k].every,
                .count = cells[k].count,
                .timed = cells[k].timed,
                .total = cells[k].total,
                .min = cells[k].min,
                .max = cells[k].max,
                .buckets = cells[k].buckets,
            };
        }
    }
    return count;
}

/* A block replaces the one before it, so all chunks must be in the last one: the scan may have missed one that the
 * thread took at its end. And a thread that is still retiring its chunks must find them in place. */
static bool cells_are_final(tare__source *source, const found_chunk *found, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (found[i].state != TARE__CHUNK_AGGREGATES_RETIRED)
            return false;
    uint32_t count = chunks_to_scan(source), in_ring = 0;
    for (uint32_t i = 0; i < count; i++)
        in_ring += holds_cells(atomic_load_explicit(&source->ring->chunk_state[i], memory_order_acquire)) &&
                   chunk_at(source, i)->stream == found[0].stream;
    return in_ring == n;
}

static uint64_t calls_in(const tare__aggregate *cells, uint32_t n)
{
    uint64_t calls = 0;
    for (uint32_t i = 0; i < n; i++)
        calls += cells[i].count;
    return calls;
}

static void drain_cells(tare__collector *collector, tare__source *source, tare__stream *stream,
                        const found_chunk *found, uint32_t n, bool final, uint64_t now)
{
    bool retired = !final && cells_are_final(source, found, n);
    if (!final && !retired && now - stream->aggregates_ns < TARE__AGGREGATES_NS)
        return;
    static tare__aggregate cells[TARE__CELLS_MAX];
    uint32_t count = collect_cells(collector, source, found, n, cells, TARE__CELLS_MAX);
    uint64_t calls = calls_in(cells, count);
    bool written = true;
    if (count) {
        tare__tell_stream(collector, source, stream);
        tare__text *block = &collector->block;
        tare__text_clear(block);
        tare__flush_names(collector, block);
        tare__block_header header = {.stream = stream->id};
        int failed = tare__aggregates_seal(cells, count, collector->squeezer, &header, block);
        written = tare__writer_append(&collector->writer, block) == 0 && !failed;
        block->failed = false; /* that was this one */
    }
    if (!written && (final || retired) && calls > stream->calls_told)
        collector->writer.lost_spans += calls - stream->calls_told;
    if (written || final || retired)
        stream->calls_told = calls;
    stream->aggregates_ns = now;
    for (uint32_t i = 0; i < n && retired; i++)
        release(collector, source, found[i].index);
}

/* ---- one process ------------------------------------------------------------------------------------------- */

/* A thread that ended without its destructors (killed by exec, a raw system call) leaves its chunks; so does
 * one of another PID namespace, whose ids have no meaning here: those are kept until their process ends. If /proc
 * does not show the process, nothing is known. */
static bool thread_is_gone(const tare__source *source, int32_t tid)
{
    char path[64];
    if (source->ring->pid != source->pid)
        return false;
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)source->pid, (int)tid);
    if (access(path, F_OK) == 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)source->pid, (int)source->pid);
    return access(path, F_OK) == 0;
}

static uint32_t find_chunks(tare__source *source, found_chunk *found)
{
    tare__ring *ring = source->ring;
    uint32_t count = chunks_to_scan(source), n = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t state = atomic_load_explicit(&ring->chunk_state[i], memory_order_acquire);
        if (state < TARE__CHUNK_EVENTS || state > TARE__CHUNK_AGGREGATES_RETIRED)
            continue;
        const tare__chunk *chunk = chunk_at(source, i);
        found[n++] = (found_chunk){chunk->stream, chunk->sequence, i, state};
    }
    qsort(found, n, sizeof *found, by_stream);
    return n;
}

/* Chunks found[0..n) of one stream. False: one is missing. */
static bool drain_group(tare__collector *collector, tare__source *source, const found_chunk *found, uint32_t n,
                        reach_kind reach, bool check_alive, uint64_t now)
{
    tare__stream *stream = NULL;
    for (uint32_t i = 0; i < n; i++) /* the newest has the current counts and name */
        stream = tare__source_stream(collector, source, chunk_at(source, found[i].index));
    if (!stream && reach != REACH_KNOWN)
        tare__text_string(&collector->notes, "out of memory: what a thread recorded is not in this file\n");
    if (!stream)
        return true;
    /* A thread that was gone before this scan began has written nothing since: the scan saw all of it. */
    bool ended = stream->gone && reach == REACH_KNOWN;
    if (check_alive && reach == REACH_KNOWN && !stream->gone)
        stream->gone = thread_is_gone(source, chunk_at(source, found[0].index)->tid);
    if (ended)
        reach = REACH_END;
    uint32_t cells = 0;
    while (cells < n && holds_cells(found[cells].state))
        cells++;
    bool whole = cells == n || drain_stream(collector, source, stream, found + cells, n - cells, reach, now);
    if (cells)
        drain_cells(collector, source, stream, found, cells, reach != REACH_KNOWN, now);
    for (uint32_t i = 0; i < n && ended && whole; i++) {
        if (found[i].state == TARE__CHUNK_RETIRED)
            continue; /* already returned, and possibly used by another thread */
        tare__chunk *chunk = chunk_at(source, found[i].index);
        atomic_store(&chunk->main_used, 0); /* its position is unknown: read all of it */
        atomic_store(&chunk->reserve_used, 1);
        release(collector, source, found[i].index);
    }
    tare__tell_stream(collector, source, stream);
    return whole;
}

static bool scan_and_drain(tare__collector *collector, tare__source *source, reach_kind reach, bool busy,
                           bool check_alive, uint64_t now)
{
    static found_chunk found[TARE__RING_CHUNKS_MAX];
    bool whole = true;
    uint32_t n = tare__source_map_growth(collector, source) ? find_chunks(source, found) : 0;
    if (n > source->most_waiting)
        source->most_waiting = n;
    /* With half the pool waiting, speed matters more than bytes. */
    tare__squeezer_level(collector->squeezer, busy && n > atomic_load(&source->ring->chunk_count) / 2 ? -5 : 1);
    for (uint32_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && found[to].stream == found[from].stream; to++)
            ;
        whole &= drain_group(collector, source, &found[from], to - from, reach, check_alive, now);
    }
    return whole;
}

void tare__source_drain(tare__collector *collector, tare__source *source, bool final)
{
    uint64_t now = tare__monotonic_ns();
    uint32_t taken = atomic_load_explicit(&source->ring->taken, memory_order_relaxed);
    if (!final && taken == source->taken_seen && now - source->scanned_ns < SCAN_NS)
        return;
    bool check_alive = now - source->liveness_ns >= LIVENESS_NS;
    if (check_alive)
        source->liveness_ns = now;
    bool busy = taken - source->taken_seen > 16;
    source->taken_seen = taken;
    source->scanned_ns = now;
    /* A process that runs on takes chunks during its last scan, too. */
    reach_kind reach = final ? REACH_END : REACH_KNOWN;
    bool whole = scan_and_drain(collector, source, reach, busy, check_alive, now);
    if (!whole)
        source->scanned_ns = 0; /* with the next tick */
    for (unsigned i = 1; i < LAST_SCANS && final && !whole; i++)
        whole = scan_and_drain(collector, source, i + 1 < LAST_SCANS ? REACH_END : REACH_OVER_GAPS, busy, false, now);
}
