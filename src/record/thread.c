/* thread: start, chunks and end of a recording thread. Each state belongs to its thread alone.
 * Chunks are taken by compare-and-swap; the collector returns them.
 * Must not know what the records mean. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "record.h"

#define BLOCK_STATES 32u

typedef struct thread_block {
    struct thread_block *next;
    uint64_t align;
    tare__thread states[BLOCK_STATES];
} thread_block;

TARE_API __thread uint64_t *tare__cursor __attribute__((tls_model("initial-exec")));

static pthread_key_t death_key;
static bool death_key_made;

static uint8_t *chunk_at(uint32_t index)
{
    return tare__here->chunks + (size_t)index * TARE__CHUNK_BYTES;
}

static tare__chunk *descriptor(uint32_t chunk)
{
    return chunk ? (tare__chunk *)(void *)chunk_at(chunk - 1) : NULL;
}

static uint64_t nested(const uint64_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

void tare__thread_count_drops(tare__thread *self)
{
    tare__chunk *chunk = descriptor(self->chunk);
    if (!chunk) { /* they cannot be stored for the thread, so they are counted for the process */
        tare__ring *ring = tare__here->ring;
        if (ring && self->dropped_spans + self->dropped_others) {
            atomic_fetch_add_explicit(&ring->unattributed_spans, self->dropped_spans, memory_order_relaxed);
            atomic_fetch_add_explicit(&ring->unattributed_others, self->dropped_others, memory_order_relaxed);
            self->dropped_spans = self->dropped_others = 0;
        }
        return;
    }
    uint64_t spans = nested(&self->nested_spans), others = nested(&self->nested_others);
    atomic_store_explicit(&chunk->dropped_spans, self->dropped_spans + spans, memory_order_relaxed);
    atomic_store_explicit(&chunk->dropped_others, self->dropped_others + others, memory_order_relaxed);
    self->nested_told = spans + others;
}

/* A handler that interrupts the slow path may leave it by siglongjmp, and in_slow would stay set forever. A call
 * from the same stack position or above shows that the function is gone. Deeper calls cannot detect this, but no
 * handler records that much while it interrupts the few instructions that run with signals enabled. At most a slot
 * or a level is incomplete then: spans skipped so far are forgotten, chunks are never in an intermediate state. */
#define MET_MAX 4096u
bool tare__thread_enter_slow(tare__thread *self, uintptr_t frame)
{
    if (TARE__UNLIKELY(self->in_slow)) {
        if (self->held || (++self->met < MET_MAX && !tare__signals_frame_left(self->slow_frame, frame)))
            return false;
        self->skip_depth = self->skip_over = self->skip_count = 0;
    }
    self->in_slow = 1;
    self->slow_frame = frame;
    self->met = 0;
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

void tare__thread_hold(tare__thread *self, uint64_t *before)
{
    tare__signals_hold(before);
    self->held++;
}

void tare__thread_release(tare__thread *self, const uint64_t *before)
{
    self->held--;
    tare__signals_release(before);
}

/* Handlers that found in_slow set were counted in the thread's state; the last of them may have come after
 * everything else was published. From here on none can add to it. */
void tare__thread_leave_slow(tare__thread *self)
{
    atomic_signal_fence(memory_order_seq_cst);
    self->in_slow = 0;
    atomic_signal_fence(memory_order_seq_cst);
    if (TARE__UNLIKELY(nested(&self->nested_spans) + nested(&self->nested_others) != self->nested_told))
        tare__thread_count_drops(self);
}

/* Index + 1 of a chunk that now belongs to this thread; 0: none is free. The first free chunk, not the next in
 * order: it was used most recently and is still in the caches. */
static uint32_t take_chunk(void)
{
    tare__ring *ring = tare__here->ring;
    uint32_t count = atomic_load_explicit(&ring->chunk_count, memory_order_acquire), room = tare__process_chunk_room();
    if (count > room)
        count = room;
    for (uint32_t at = 0; at < count; at++) {
        uint32_t expected = TARE__CHUNK_FREE;
        if (atomic_load_explicit(&ring->chunk_state[at], memory_order_relaxed) == TARE__CHUNK_FREE &&
            atomic_compare_exchange_strong_explicit(&ring->chunk_state[at], &expected, TARE__CHUNK_TAKEN,
                                                    memory_order_acquire, memory_order_relaxed)) {
            /* One read maps all 16 pages of a chunk that the collector added; writes would map one each. */
            (void)*(volatile uint64_t *)(void *)(chunk_at(at) + TARE__CHUNK_MAIN);
            return at + 1;
        }
    }
    return 0;
}

/* Marks it as this thread's chunk and publishes it to the collector. */
static void show_chunk(const tare__thread *self, uint32_t chunk, uint32_t sequence, tare__chunk_state state)
{
    tare__ring *ring = tare__here->ring;
    tare__chunk *it = descriptor(chunk);
    it->stream = self->stream;
    it->sequence = sequence;
    it->generation = tare__generation_after(it->generation);
    it->tid = self->tid;
    it->cpu = sched_getcpu(); /* no system call if the kernel provides it in a page */
    atomic_store_explicit(&it->main_used, 0, memory_order_relaxed);
    atomic_store_explicit(&it->reserve_used, 0, memory_order_relaxed);
    memcpy(it->thread_name, self->name, sizeof it->thread_name);
    atomic_store_explicit(&it->dropped_spans, 0, memory_order_relaxed);
    atomic_store_explicit(&it->dropped_others, 0, memory_order_relaxed);
    atomic_store_explicit(&ring->chunk_state[chunk - 1], state, memory_order_release);
    atomic_fetch_add_explicit(&ring->taken, 1, memory_order_relaxed);
}

static void retire(tare__thread *self, uint32_t main_used)
{
    tare__chunk *chunk = descriptor(self->chunk);
    if (!chunk)
        return;
    tare__thread_count_drops(self);
    atomic_store_explicit(&chunk->main_used, main_used, memory_order_relaxed);
    atomic_store_explicit(&chunk->reserve_used, self->reserve_used, memory_order_relaxed);
    atomic_store_explicit(&tare__here->ring->chunk_state[self->chunk - 1], TARE__CHUNK_RETIRED,
                          memory_order_release);
    self->chunk = 0;
}

static bool move_to_next_chunk(tare__thread *self, bool may_grow, uint32_t given_back)
{
    uint32_t chunk = take_chunk();
    tare__growth growth = may_grow ? TARE__GROWN : TARE__FULL_GROWN;
    while (!chunk && growth == TARE__GROWN)
        if ((growth = tare__process_grow()) == TARE__GROWN)
            chunk = take_chunk();
    self->full_at = chunk || growth == TARE__GROWS_NOW ? 0 : given_back;
    if (!chunk)
        return false;
    retire(self, TARE__CHUNK_SLOTS);
    self->chunk = chunk;
    self->reserve_used = 0;
    show_chunk(self, chunk, self->sequence++, TARE__CHUNK_EVENTS);
    tare__thread_count_drops(self);
    self->saved = (uint64_t)(uintptr_t)(chunk_at(chunk - 1) + TARE__CHUNK_MAIN) |
                  descriptor(chunk)->generation;
    return true;
}

bool tare__thread_next_chunk(tare__thread *self, bool may_grow)
{
    uint32_t given_back = atomic_load_explicit(&tare__here->ring->given_back, memory_order_acquire) + 1;
    if (self->full_at == given_back)
        return false; /* still full */
    uint64_t before;
    tare__thread_hold(self, &before);
    bool moved = move_to_next_chunk(self, may_grow, given_back);
    tare__thread_release(self, &before);
    return moved;
}

tare__cell *tare__thread_cell(tare__thread *self, uint64_t slot, uint32_t name, uint32_t every)
{
    if (slot >= TARE__CELLS_MAX)
        return NULL;
    if (self->cells[slot])
        return self->cells[slot];
    if (!self->cell_chunk_count || self->cells_used == TARE__CELLS_PER_CHUNK) {
        uint32_t chunk = self->cell_chunk_count < TARE__CELL_CHUNKS_MAX ? take_chunk() : 0;
        if (!chunk)
            return NULL;
        memset(chunk_at(chunk - 1) + TARE__CHUNK_MAIN, 0, TARE__CHUNK_BYTES - TARE__CHUNK_MAIN);
        self->cell_chunks[self->cell_chunk_count++] = chunk;
        self->cells_used = 0;
        show_chunk(self, chunk, 0, TARE__CHUNK_AGGREGATES);
    }
    uint8_t *cells = chunk_at(self->cell_chunks[self->cell_chunk_count - 1] - 1) + TARE__CHUNK_MAIN;
    tare__cell *cell = (tare__cell *)(void *)cells + self->cells_used++;
    cell->every = every ? every : 1;
    cell->min = UINT64_MAX;
    cell->countdown = 1;
    cell->random = tare__ticks() | 1;
    atomic_store_explicit(&cell->name, name, memory_order_release);
    self->cells[slot] = cell;
    return cell;
}

static void retire_cells(const tare__thread *self)
{
    for (uint32_t i = 0; i < self->cell_chunk_count; i++)
        atomic_store_explicit(&tare__here->ring->chunk_state[self->cell_chunks[i] - 1],
                              TARE__CHUNK_AGGREGATES_RETIRED, memory_order_release);
}

static void thread_died(void *state)
{
    tare__thread *self = state;
    /* Records of destructors that run later start a new stream. */
    tare__self_set(NULL);
    atomic_signal_fence(memory_order_seq_cst);
    if (self->stream && tare__here && tare__here->ring) {
        uint64_t cursor = self->cursor < TARE__CHUNK_BYTES ? self->saved : self->cursor; /* parked, or not */
        bool full = (cursor & TARE__CHUNK_MAIN_BITS) == 0;
        retire(self, full ? TARE__CHUNK_SLOTS
                          : (uint32_t)((cursor & (TARE__CHUNK_BYTES - 1)) - TARE__CHUNK_MAIN) / 16);
        retire_cells(self);
    }
    memset(self, 0, offsetof(tare__thread, used));
    memset(self->cells, 0, sizeof self->cells);
    atomic_store_explicit(&self->used, 0, memory_order_release);
}

bool tare__threads_prepare(void)
{
    if (!death_key_made)
        death_key_made = pthread_key_create(&death_key, thread_died) == 0;
    return death_key_made;
}

/* States are not reused after a fork: blocks are referenced from a wiped page, and the forking thread continues with
 * its state. */
static tare__thread *new_state(void)
{
    tare__process *here = tare__here;
    for (thread_block *block = atomic_load(&here->thread_blocks); block; block = block->next)
        for (uint32_t i = 0; i < BLOCK_STATES; i++) {
            uint32_t expected = 0;
            if (atomic_load_explicit(&block->states[i].used, memory_order_relaxed) == 0 &&
                atomic_compare_exchange_strong(&block->states[i].used, &expected, 1))
                return &block->states[i];
        }
    thread_block *block =
        mmap(NULL, sizeof *block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
    if (madvise(block, sizeof *block, MADV_WIPEONFORK) != 0) {
        munmap(block, sizeof *block);
        return NULL;
    }
    atomic_store(&block->states[0].used, 1);
    void *head = atomic_load(&here->thread_blocks);
    do
        block->next = head;
    while (!atomic_compare_exchange_weak(&here->thread_blocks, &head, block));
    return &block->states[0];
}

static bool enlist(tare__thread *self)
{
    if (tare__clock_tsc_forbidden())
        tare__modes_set(TARE__MODE_NO_TSC, 0);
    tare__ring *ring = tare__process_join();
    if (!ring)
        return false;
    self->sequence = 0;
    self->chunk = 0;
    self->saved = 0;
    self->tid = tare__thread_id();
    if (self->name[0] == '\0')
        prctl(PR_GET_NAME, self->name);
    self->stream = atomic_fetch_add(&ring->next_stream, 1) + 1;
    return true;
}

bool tare__thread_enlist(tare__thread *self)
{
    uint64_t before;
    tare__thread_hold(self, &before);
    bool done = enlist(self);
    tare__thread_release(self, &before);
    return done;
}

/* Stack needed to create a ring, including path names. On a smaller alternate stack a handler does not record: the
 * thread joins with its next record elsewhere. */
#define JOIN_STACK_BYTES 12288u

tare__thread *tare__thread_join(void)
{
    int saved_errno = errno;
    tare__thread *self = NULL;
    if (tare__signals_stack_left() < JOIN_STACK_BYTES) {
        errno = saved_errno;
        return NULL;
    }
    if (tare__clock_tsc_forbidden())
        tare__modes_set(TARE__MODE_NO_TSC, 0);
    uint64_t before;
    tare__signals_hold(&before);
    if (tare__process_join() && (self = new_state()) != NULL) {
        tare__thread_enter_slow(self, (uintptr_t)__builtin_frame_address(0)); /* until it is complete */
        self->held++;
        tare__self_set(self);
        atomic_signal_fence(memory_order_seq_cst);
        if (tare__thread_enlist(self)) {
            tare__thread_next_chunk(self, true);
            pthread_setspecific(death_key, self);
        }
        self->held--;
        tare__thread_leave_slow(self);
    }
    tare__signals_release(&before);
    errno = saved_errno;
    return self;
}

void tare__thread_drop_nested(tare__thread *self, bool span)
{
    if (!self || !self->chunk) {
        tare__count_unattributed(span);
        return;
    }
    tare__add(span ? &self->nested_spans : &self->nested_others, 1);
}

void tare__threads_forget(void)
{
    tare__process *here = tare__here;
    for (thread_block *block = here ? atomic_load(&here->thread_blocks) : NULL; block; block = block->next)
        for (uint32_t i = 0; i < BLOCK_STATES; i++) {
            tare__thread *state = &block->states[i];
            if (!atomic_load(&state->used))
                continue;
            __atomic_store_n(&state->cursor, 0, __ATOMIC_RELAXED);
            state->saved = 0;
            state->stream = 0;
            state->chunk = state->sequence = state->reserve_used = 0;
            state->skip_depth = state->skip_over = state->skip_count = state->full_at = 0;
            state->dropped_spans = state->dropped_others = state->lost_ends = 0;
            state->nested_spans = state->nested_others = state->nested_told = 0;
            state->steps_open = state->epochs_open = 0;
            state->cell_chunk_count = state->cells_used = 0;
            memset(state->cells, 0, sizeof state->cells);
        }
}
