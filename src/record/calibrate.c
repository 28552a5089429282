/* calibrate: measures the cost of recording in this process when its ring is created (about 30 µs).
 * Runs in the thread that creates the ring, with signals blocked.
 * Must not know who uses the figures. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "record.h"

#define ROUNDS 8
#define TIMES 48

typedef void measured(void);

static tare_site site = {TARE__WORD(TARE__RECORD_BEGIN, 1), "calibration", NULL, 0, TARE_KIND_SPAN, 1, 0};
static tare_site cell_site = {TARE__WORD(TARE__RECORD_BEGIN, 1), "calibration", NULL, 0, TARE_KIND_AGGREGATE, 1, 1};

/* Through the functions a program calls, not a copy of their code. */
static void pairs(void)
{
    for (int i = 0; i < TIMES; i++) {
        tare_begin(&site);
        tare_end(&site);
    }
}

static void nexts(void)
{
    for (int i = 0; i < TIMES; i++)
        tare_next(&site);
}

static void aggregates(void)
{
    for (int i = 0; i < TIMES; i++)
        tare_aggregate_end(&cell_site, tare_aggregate_begin());
}

/* The fastest round: anything above it is interference. */
static uint32_t quickest(measured *work, tare__thread *scratch, uint64_t start)
{
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        scratch->cursor = scratch->saved = start;
        uint64_t from = tare__ticks();
        work();
        uint64_t took = tare__ticks() - from;
        if (took < best)
            best = took;
    }
    return (uint32_t)(best * 256 / TIMES);
}

static uint32_t inner_of(const tare__slot *slots)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < TIMES; i++) {
        uint64_t ticks = slots[2 * i + 1].value - slots[2 * i].value;
        if (ticks < best)
            best = ticks;
    }
    return (uint32_t)(best * 256);
}

void tare__calibrate(tare__ring *ring, uint8_t *chunk)
{
    static tare__thread scratch;
    static tare__cell cell;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    tare__thread *self = tare__self;
    tare__ring *shown = tare__here->ring;
    tare__here->ring = ring; /* the slow path (no TSC) searches for it */
    memset(&scratch, 0, sizeof scratch);
    memset(&cell, 0, sizeof cell);
    cell.min = UINT64_MAX;
    scratch.stream = 1;
    scratch.cells[1] = &cell;
    tare__self_set(&scratch);
    /* A generation that no user of the chunk gets, so that all of its content is stale afterwards. */
    uint64_t start = (uint64_t)(uintptr_t)(chunk + TARE__CHUNK_MAIN);
    ring->cost.next = quickest(nexts, &scratch, start);
    ring->cost.pair = quickest(pairs, &scratch, start);
    ring->cost.inner = inner_of((const tare__slot *)(const void *)(chunk + TARE__CHUNK_MAIN));
    ring->cost.aggregate = quickest(aggregates, &scratch, start);
    tare__self_set(self);
    tare__here->ring = shown;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
