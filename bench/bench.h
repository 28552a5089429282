/* bench: what the benchmark programs share: the clock, pinning, and the floor that spans are held against.
 * Everything is per thread or called once from main.
 * Must not know anything of tare but the cost it is compared with. */
#ifndef TARE_BENCH_H
#define TARE_BENCH_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_FENCE() __asm__ volatile("" ::: "memory")

static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
#error "the floor needs a counter that is read in user space"
#endif
}

static inline uint64_t bench_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* By spinning for 20 ms: good to a few parts in 10,000. */
static inline double bench_ticks_per_ns(void)
{
    uint64_t ns = bench_ns(), ticks = bench_ticks(), now;
    while ((now = bench_ns()) < ns + 20000000)
        ;
    return (double)(bench_ticks() - ticks) / (double)(now - ns);
}

/* -1: wherever the scheduler likes. */
static inline void bench_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0)
        return;
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("sched_setaffinity");
        exit(2);
    }
}

static inline void bench_rest(unsigned us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000L};
    if (us)
        nanosleep(&time, NULL);
}

static inline long bench_argument(int argc, char **argv, int index, long otherwise)
{
    return argc > index ? strtol(argv[index], NULL, 10) : otherwise;
}

/* ---- the floor: two reads of the counter and two 16-byte stores into a warm ring, all inline ---------- */
#define BENCH_RING_SLOTS 4096u /* 64 KiB: as large as one chunk of the recorder */

typedef struct bench_slot {
    uint64_t ticks, word;
} bench_slot;

typedef struct bench_ring {
    bench_slot slots[BENCH_RING_SLOTS];
} bench_ring;

static inline void bench_floor_pairs(bench_ring *ring, unsigned long n)
{
    unsigned head = 0;
    for (unsigned long i = 0; i < n; i++) {
        bench_slot *slot = &ring->slots[head++ % BENCH_RING_SLOTS];
        slot->ticks = bench_ticks();
        slot->word = 1;
        BENCH_FENCE();
        slot = &ring->slots[head++ % BENCH_RING_SLOTS];
        slot->ticks = bench_ticks();
        slot->word = 2;
        BENCH_FENCE();
    }
}

/* ---- the floor of aggregates: two reads and count, total, min, max, histogram, updated by hand ------ */
typedef struct bench_cell {
    uint64_t count, total, min, max;
    uint32_t buckets[368];
} bench_cell;

static inline unsigned bench_bucket(uint64_t ticks)
{
    if (ticks < 8)
        return (unsigned)ticks;
    unsigned octave = 63u - (unsigned)__builtin_clzll(ticks);
    return octave > 47 ? 367 : (octave - 2) * 8 + (unsigned)(ticks >> (octave - 3) & 7);
}

static inline void bench_hand_pairs(bench_cell *cell, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        uint64_t start = bench_ticks();
        BENCH_FENCE();
        uint64_t ticks = bench_ticks() - start;
        cell->count++;
        cell->total += ticks;
        if (ticks < cell->min)
            cell->min = ticks;
        if (ticks > cell->max)
            cell->max = ticks;
        cell->buckets[bench_bucket(ticks)]++;
        BENCH_FENCE();
    }
}

#endif
