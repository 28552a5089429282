/* aggregate: spans that are only counted, in cells of shared memory updated in place.
 * A cell belongs to one thread; a handler on top of it may update it too, so each update is one instruction.
 * Must not know who reads the cells. */
#include <errno.h>
#include <stdatomic.h>

#include "record.h"

static inline unsigned bucket_of(uint64_t ticks)
{
    if (ticks < (1u << TARE__CELL_BITS))
        return (unsigned)ticks;
    unsigned octave = 63u - (unsigned)__builtin_clzll(ticks);
    if (octave > 47)
        return TARE__CELL_BUCKETS - 1;
    return ((octave - TARE__CELL_BITS + 1) << TARE__CELL_BITS) +
           (unsigned)(ticks >> (octave - TARE__CELL_BITS) & ((1u << TARE__CELL_BITS) - 1));
}

/* Rare, so the cost of a compare-and-swap does not matter; a smaller value set by a handler in between is not lost. */
static __attribute__((noinline)) void keep_extreme(uint64_t *at, uint64_t value, bool smallest)
{
    uint64_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);
    while ((smallest ? value < seen : value > seen) &&
           !__atomic_compare_exchange_n(at, &seen, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static inline void add_time(tare__cell *cell, uint64_t ticks)
{
    tare__add(&cell->timed, 1);
    tare__add(&cell->total, ticks);
    uint32_t *bucket = &cell->buckets[bucket_of(ticks)];
#if defined(__x86_64__)
    __asm__ volatile("addl $1, %0" : "+m"(*bucket)::"cc");
#else
    __atomic_fetch_add(bucket, 1, __ATOMIC_RELAXED);
#endif
    if (TARE__UNLIKELY(ticks < cell->min))
        keep_extreme(&cell->min, ticks, true);
    if (TARE__UNLIKELY(ticks > cell->max))
        keep_extreme(&cell->max, ticks, false);
}

/* The calling thread's cell for a site, allocated at first use; NULL: no space, counted. */
static __attribute__((cold, noinline)) tare__cell *find_cell(tare_site *site)
{
    tare__thread *self = tare__self;
    if (!self)
        self = tare__thread_join();
    if (!self || !tare__thread_enter_slow(self, (uintptr_t)__builtin_frame_address(0))) {
        tare__thread_drop_nested(self, true);
        return NULL;
    }
    int saved_errno = errno;
    uint64_t before;
    tare__thread_hold(self, &before);
    tare__cell *cell = NULL;
    uint64_t word = __atomic_load_n(&site->word, __ATOMIC_ACQUIRE);
    if (!word || !site->slot)
        word = tare__site_register(site);
    if (self->stream || tare__thread_enlist(self)) {
        cell = tare__thread_cell(self, site->slot, TARE__WORD_ID(word), site->every);
        if (!cell) {
            self->dropped_spans++;
            tare__thread_count_drops(self);
        }
    }
    tare__thread_release(self, &before);
    tare__thread_leave_slow(self);
    errno = saved_errno;
    return cell;
}

static inline tare__cell *cell_of(tare_site *site)
{
    tare__thread *self = tare__self;
    uint64_t slot = __atomic_load_n(&site->slot, __ATOMIC_RELAXED);
    if (TARE__LIKELY(self && slot)) {
        tare__cell *cell = self->cells[slot];
        if (TARE__LIKELY(cell))
            return cell;
    }
    return tare__gate_now() ? find_cell(site) : NULL;
}

static bool stands_still(void)
{
    return !tare__on() || (atomic_load_explicit(&tare__modes, memory_order_relaxed) & TARE__MODE_PAUSED);
}

TARE_API uint64_t tare__aggregate_begin(void)
{
    if (tare__on() && tare__forward)
        return tare__forward->aggregate_begin();
    return stands_still() ? 0 : tare__ticks();
}

TARE_API void tare__aggregate_end(tare_site *site, uint64_t start)
{
    if (TARE__UNLIKELY(tare__gate_now() != 1)) {
        if (tare__forward) {
            tare__forward->aggregate_end(site, start);
            return;
        }
    }
    uint64_t now = TARE__LIKELY(tare__gate_now() == 1) ? tare__tsc() : tare__ticks();
    tare__cell *cell = cell_of(site);
    if (TARE__UNLIKELY(!cell))
        return;
    tare__add(&cell->count, 1);
    add_time(cell, now > start ? now - start : 0);
}

/* The gap to the next timed call is drawn uniformly from 1 .. 2n - 1, n on average: a fixed gap would sample only
 * one phase of a loop whose length divides it. */
static __attribute__((noinline)) void draw_countdown(tare__cell *cell)
{
    uint64_t random = cell->random;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    cell->random = random;
    cell->countdown = 1 + (random >> 16) % (2 * (uint64_t)cell->every - 1);
}

TARE_API uint64_t tare__sampled_begin(tare_site *site)
{
    if (TARE__UNLIKELY(tare__gate_now() != 1)) {
        if (tare__on() && tare__forward)
            return tare__forward->sampled_begin(site);
        if (stands_still())
            return 0;
    }
    tare__cell *cell = cell_of(site);
    if (TARE__UNLIKELY(!cell))
        return 0;
    tare__add(&cell->count, 1);
    if (TARE__LIKELY(--cell->countdown))
        return 0;
    draw_countdown(cell);
    return tare__gate_now() == 1 ? tare__tsc() : tare__ticks();
}

TARE_API void tare__sampled_end(tare_site *site, uint64_t start)
{
    if (tare__forward) {
        tare__forward->sampled_end(site, start);
        return;
    }
    uint64_t now = tare__ticks();
    tare__cell *cell = cell_of(site);
    if (cell)
        add_time(cell, now > start ? now - start : 0);
}
