/* span: the slow path beside the hot path (which is inline, in tare.h): a chunk ends, a session begins, a span must
 * be dropped. Runs in the recording thread, or in a signal handler that interrupts it.
 * Must not know what names stand for. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "record.h"

/* The innermost open span of any kind. */
TARE_API void tare__end_last(void)
{
    static tare_site innermost = {TARE__WORD(TARE__RECORD_BEGIN, TARE__NAME_NONE), "", NULL, 0, TARE_KIND_SPAN, 1, 0};
    if (TARE__LIKELY(tare__gate_now() == 1))
        tare__end(&innermost);
    else
        tare__end_slow(&innermost);
}

/* ---- the slow path ----------------------------------------------------------------------------------------- */

static void pad(uint64_t from)
{
    for (; from & TARE__CHUNK_MAIN_BITS; from += sizeof(tare__slot))
        tare__slot_write(from, 0, TARE__WORD(TARE__RECORD_PAD, 0));
}

/* Space for n slots at self->saved, in a new chunk if needed. */
static bool make_room(tare__thread *self, unsigned n)
{
    if (self->saved &&
        (self->saved & (TARE__CHUNK_BYTES - sizeof(tare__slot))) + n * sizeof(tare__slot) <= TARE__CHUNK_BYTES)
        return true;
    if (self->saved)
        pad(self->saved);
    self->saved = 0;
    if (!tare__thread_next_chunk(self, self->sequence == 0))
        return false;
    if (self->lost_ends) {
        tare__slot_write(self->saved, self->lost_ends, TARE__WORD(TARE__RECORD_LOST_ENDS, 0));
        self->saved += sizeof(tare__slot);
        self->lost_ends = 0;
    }
    return true;
}

static void place(tare__thread *self, const tare__slot *slots, unsigned n)
{
    for (unsigned i = 0; i < n; i++, self->saved += sizeof(tare__slot))
        tare__slot_write(self->saved, slots[i].value, slots[i].word);
    if ((self->saved & TARE__CHUNK_MAIN_BITS) == 0)
        self->saved = 0; /* the chunk is full */
}

/* The end of a recorded span always has space: in the chunk, or in the reserve at its head. */
static void place_end(tare__thread *self, const tare__slot *slot)
{
    if (make_room(self, 1)) {
        place(self, slot, 1);
    } else if (self->chunk && self->reserve_used < TARE__CHUNK_RESERVE_SLOTS) {
        uint8_t *chunk = tare__here->chunks + (size_t)(self->chunk - 1) * TARE__CHUNK_BYTES;
        uint64_t generation = ((tare__chunk *)(void *)chunk)->generation;
        uint64_t at = (uint64_t)(uintptr_t)(chunk + TARE__CHUNK_RESERVE) + 16 * self->reserve_used++;
        tare__slot_write(at | generation, slot->value, slot->word);
    } else {
        self->lost_ends++;
    }
}

static bool skipping(const tare__thread *self)
{
    return self->skip_depth || self->skip_over;
}

static void skip_push(tare__thread *self, bool left_out)
{
    if (self->skip_over || self->skip_depth == TARE__SKIP_LEVELS) {
        self->skip_over++;
        return;
    }
    uint64_t bit = UINT64_C(1) << self->skip_depth % 64;
    uint64_t *bits = &self->skip_bits[self->skip_depth++ / 64];
    *bits = left_out ? *bits | bit : *bits & ~bit;
    self->skip_count += left_out;
}

static bool skip_pop(tare__thread *self) /* was it skipped? */
{
    if (self->skip_over) {
        self->skip_over--;
        return true;
    }
    self->skip_depth--;
    bool left_out = self->skip_bits[self->skip_depth / 64] >> self->skip_depth % 64 & 1;
    self->skip_count -= left_out;
    return left_out;
}

static bool paused(void)
{
    return atomic_load_explicit(&tare__modes, memory_order_relaxed) & TARE__MODE_PAUSED;
}

static void begin_or_skip(tare__thread *self, tare__slot *slot, bool was_skipping)
{
    bool stopped = paused();
    bool keep = !stopped && !(was_skipping && self->skip_depth == TARE__SKIP_LEVELS) && make_room(self, 1);
    if (keep) {
        if (slot->value == 0)
            slot->value = tare__ticks(); /* as late as possible, so that the time to get here is not part of the span */
        place(self, slot, 1);
    } else if (!stopped) {
        self->dropped_spans++;
    }
    if (was_skipping || !keep)
        skip_push(self, !keep);
}

static void record_other(tare__thread *self, tare__slot *slots, unsigned n)
{
    if (paused())
        return;
    if (!make_room(self, n)) {
        self->dropped_others++;
        return;
    }
    unsigned kind = TARE__WORD_KIND(slots[0].word);
    if (slots[0].value == 0 && (kind == TARE__RECORD_MARK || kind == TARE__RECORD_COUNTER ||
                                  kind == TARE__RECORD_FACT))
        slots[0].value = tare__ticks();
    place(self, slots, n);
}

static void record_next(tare__thread *self, tare__slot *slot)
{
    if (!skipping(self) && !paused() && make_room(self, 1)) {
        place(self, slot, 1);
        return;
    }
    tare__slot end = {slot->value, TARE__WORD(TARE__RECORD_END, TARE__NAME_NONE)};
    bool was_skipping = skipping(self);
    if (!was_skipping || !skip_pop(self))
        place_end(self, &end);
    slot->word -= TARE__WORD(TARE__RECORD_NEXT - TARE__RECORD_BEGIN, 0);
    begin_or_skip(self, slot, was_skipping);
}

static void record_one(tare__thread *self, tare__slot *slots, unsigned n)
{
    switch (TARE__WORD_KIND(slots[0].word)) {
    case TARE__RECORD_BEGIN:
        begin_or_skip(self, &slots[0], skipping(self));
        break;
    case TARE__RECORD_NEXT:
        record_next(self, &slots[0]);
        break;
    case TARE__RECORD_END:
        if (!skipping(self) || !skip_pop(self))
            place_end(self, &slots[0]);
        break;
    default:
        record_other(self, slots, n);
    }
    if (self->skip_count == 0 && self->skip_over == 0)
        self->skip_depth = 0; /* no open span was skipped: ends need no special handling any more */
    tare__thread_count_drops(self);
}

/* A record that finds no thread state or interrupts the slow path. Handlers begin and end their own spans, so both
 * are dropped together. */
static void drop_nested(tare__thread *self, const tare__slot *slot)
{
    unsigned kind = TARE__WORD_KIND(slot->word);
    bool span = kind == TARE__RECORD_BEGIN || kind == TARE__RECORD_NEXT;
    if (kind == TARE__RECORD_END)
        return;
    tare__thread_drop_nested(self, span);
}

/* Parks the cursor at 0 and saves its position. It may differ from what the caller saw: a handler may have moved on
 * to another chunk in between. */
static void save(tare__thread *self, uint64_t cursor)
{
    if (cursor & TARE__CHUNK_MAIN_BITS)
        self->saved = cursor;
    else if (cursor >= TARE__CHUNK_BYTES)
        self->saved = 0; /* ran past the end of its chunk */
}

static void park(tare__thread *self)
{
    save(self, __atomic_load_n(&self->cursor, __ATOMIC_RELAXED)); /* in case a handler never returns here */
    atomic_signal_fence(memory_order_seq_cst);
    save(self, __atomic_exchange_n(&self->cursor, 0, __ATOMIC_RELAXED));
}

/* Cancels the reservation. A parked cursor is set to 0 rather than moved back: reservations left behind by
 * siglongjmp would add up to an address. */
static void give_back(tare__thread *self, unsigned n)
{
    if (__atomic_load_n(&self->cursor, __ATOMIC_RELAXED) < TARE__CHUNK_BYTES)
        __atomic_store_n(&self->cursor, 0, __ATOMIC_RELAXED);
    else
        tare__reserve(&self->cursor, (uint64_t)0 - n * sizeof(tare__slot));
}

/* First the guard, then the cursor: a handler in between uses the slow path by itself and leaves a cursor that is
 * further on, which the exchange then does not change. */
static void unpark(tare__thread *self)
{
    uint64_t parked = 0, cursor = skipping(self) ? 0 : self->saved;
    tare__thread_leave_slow(self);
    if (cursor)
        __atomic_compare_exchange_n(&self->cursor, &parked, cursor, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void tare__record_slow(tare__slot *slots, unsigned n, uint64_t reserved)
{
    unsigned kind = TARE__WORD_KIND(slots[0].word);
    tare__thread *self = tare__self;
    bool ends = slots[0].value == 0 && (kind == TARE__RECORD_END || kind == TARE__RECORD_NEXT);
    if (self && ends)
        slots[0].value = tare__ticks(); /* before anything that takes time */
    bool was_reserved = reserved != TARE__NOT_RESERVED;
    if (was_reserved && (reserved & TARE__CHUNK_MAIN_BITS))
        pad(reserved); /* too few slots were left: no other record will fill them */
    if (!self)
        self = tare__thread_join();
    if (!self || !tare__thread_enter_slow(self, (uintptr_t)__builtin_frame_address(0))) {
        if (self && was_reserved && !(reserved & TARE__CHUNK_MAIN_BITS))
            give_back(self, n);
        drop_nested(self, &slots[0]);
        return;
    }
    int saved_errno = errno;
    park(self);
    if (ends && slots[0].value == 0)
        slots[0].value = tare__ticks(); /* joining has determined the clock */
    if (TARE__LIKELY(self->stream) || tare__thread_enlist(self))
        record_one(self, slots, n);
    errno = saved_errno;
    unpark(self);
}

TARE_API void tare__record_at(uint64_t word, uint64_t at)
{
    if (TARE__UNLIKELY(tare__gate_now() == 0)) { /* the end of a scope that outlived its session */
        tare__reserve(tare__cursor, (uint64_t)0 - sizeof(tare__slot)); /* cancels the reservation */
        return;
    }
    tare__record_slow(&(tare__slot){0, word}, 1, at);
}

void tare__record(tare__slot *slots, unsigned n)
{
    tare__thread *self = tare__self;
    uint64_t at = TARE__NOT_RESERVED;
    if (TARE__LIKELY(self && tare__gate_now() == 1)) {
        at = tare__reserve(&self->cursor, n * sizeof(tare__slot));
        if (TARE__LIKELY((at & TARE__CHUNK_MAIN_BITS) &&
                         (at & (TARE__CHUNK_BYTES - sizeof(tare__slot))) + n * sizeof(tare__slot) <=
                             TARE__CHUNK_BYTES)) {
            unsigned kind = TARE__WORD_KIND(slots[0].word);
            if (kind == TARE__RECORD_MARK || kind == TARE__RECORD_COUNTER)
                slots[0].value = tare__tsc();
            for (unsigned i = 0; i < n; i++)
                tare__slot_write(at + i * sizeof(tare__slot), slots[i].value, slots[i].word);
            return;
        }
    }
    tare__record_slow(slots, n, at);
}

/* ---- entry points for gate value 2 and for first uses ----------------------------------------------------------- */

static uint64_t word_of(tare_site *site)
{
    uint64_t word = __atomic_load_n(&site->word, __ATOMIC_ACQUIRE);
    return word ? word : tare__site_register(site);
}

static void record_span(tare_site *site, tare__record_kind kind)
{
    tare__record_slow(&(tare__slot){0, word_of(site) + TARE__WORD(kind - TARE__RECORD_BEGIN, 0)}, 1,
                      TARE__NOT_RESERVED);
}

TARE_API void tare__begin_slow(tare_site *site)
{
    if (!tare__on())
        return;
    if (tare__forward)
        tare__forward->begin(site);
    else
        record_span(site, TARE__RECORD_BEGIN);
}

TARE_API void tare__end_slow(tare_site *site)
{
    if (!tare__on())
        return;
    if (tare__forward)
        tare__forward->end(site);
    else
        record_span(site, TARE__RECORD_END);
}

TARE_API void tare__next_slow(tare_site *site)
{
    if (!tare__on())
        return;
    if (tare__forward)
        tare__forward->next(site);
    else
        record_span(site, TARE__RECORD_NEXT);
}
