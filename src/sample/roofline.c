/* roofline: what this machine can do at best: fused multiply-adds of single precision on all cores, and bytes from and
 * to memory by a triad. A fifth of a second or so, before the program is launched.
 * Threads of its own, gone when it returns. Must not know what it is compared with. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

#define THREADS_MAX 256
#define ROUNDS      3
#define FMA_LOOPS   2000000u
#define LANES       16 /* floats of a vector: one register, or two or four narrower ones */
#define CHAINS      8  /* independent ones, against the latency of an addition */
#define TRIAD_BYTES ((size_t)96 << 20) /* of all three arrays: more than caches hold, mostly */

typedef float vector __attribute__((vector_size(LANES * sizeof(float)), aligned(64)));

/* ---- kernels: the widest that the CPU has -------------------------------------------------------------------- */
/* Written out: a loop over an array of sums would keep them in memory. */
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define FMA_KERNEL(name, how)                                                                          \
    how __attribute__((noinline)) static float name(float seed)                                        \
    {                                                                                                  \
        vector factor = {0}, added = {0};                                                              \
        factor += 1.0f - seed, added += seed;                                                          \
        EACH(START)                                                                                    \
        for (unsigned n = 0; n < FMA_LOOPS; n++) {                                                     \
            EACH(ADVANCE)                                                                              \
        }                                                                                              \
        vector sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;                                            \
        return sum[0] + sum[LANES - 1];                                                                \
    }
#define START(i) vector s##i = added + (float)i;
#define ADVANCE(i) s##i = s##i * factor + added;

#if defined(__x86_64__)
FMA_KERNEL(fma_512, __attribute__((target("avx512f"))))
FMA_KERNEL(fma_256, __attribute__((target("avx2,fma"))))
#endif
FMA_KERNEL(fma_plain, )

static float (*fma_kernel(void))(float)
{
#if defined(__x86_64__)
    if (tare__cpu_has_fma_512())
        return fma_512;
    if (tare__cpu_has_fma_256())
        return fma_256;
#endif
    return fma_plain;
}

/* ---- threads -------------------------------------------------------------------------------------------------- */
typedef struct crowd {
    pthread_barrier_t gate;
    int state; /* 0: wait until all are there; 1: go; -1: one could not be started */
    float (*fma)(float);
    size_t words; /* of each array of a thread */
} crowd;

typedef struct member {
    crowd *crowd;
    pthread_t thread;
    double *arrays;        /* three, one after the other */
    double fma_s, triad_s; /* the shortest round */
    float kept;            /* so that nothing is computed for nothing */
} member;

static void triad(const member *self)
{
    size_t n = self->crowd->words;
    double *a = self->arrays, *b = a + n, *c = b + n;
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + 3.0 * c[i];
    __asm__ volatile("" ::"r"(a) : "memory");
}

/* All begin at once, and the round lasts until the last of them has ended. */
static double time_round(member *self, bool is_triad)
{
    pthread_barrier_wait(&self->crowd->gate);
    double from = (double)tare__monotonic_ns() / 1e9;
    if (is_triad)
        triad(self);
    else
        self->kept += self->crowd->fma(1e-9f);
    pthread_barrier_wait(&self->crowd->gate);
    return (double)tare__monotonic_ns() / 1e9 - from;
}

static void *take_part(void *context)
{
    member *self = context;
    int state;
    while ((state = __atomic_load_n(&self->crowd->state, __ATOMIC_ACQUIRE)) == 0)
        sched_yield();
    if (state < 0)
        return NULL;
    memset(self->arrays, 0, 3 * self->crowd->words * sizeof(double)); /* by the thread that uses them */
    for (int round = 0; round < ROUNDS; round++) {
        self->fma_s = fmin(self->fma_s, time_round(self, false));
        self->triad_s = fmin(self->triad_s, time_round(self, true));
    }
    return NULL;
}

static unsigned cores_allowed(void)
{
    cpu_set_t set;
    unsigned n = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
}

/* The barrier counts all of them: only once all have started may any of them come to it. */
static bool run_all(crowd *crowd, member *members, unsigned n)
{
    unsigned started = 1; /* this thread is one of them */
    while (started < n && pthread_create(&members[started].thread, NULL, take_part, &members[started]) == 0)
        started++;
    __atomic_store_n(&crowd->state, started == n ? 1 : -1, __ATOMIC_RELEASE);
    take_part(&members[0]);
    for (unsigned i = 1; i < started; i++)
        pthread_join(members[i].thread, NULL);
    return started == n;
}

static bool make_all(crowd *crowd, member *members, unsigned n)
{
    bool made = true;
    for (unsigned i = 0; i < n; i++) {
        members[i] = (member){.crowd = crowd, .fma_s = INFINITY, .triad_s = INFINITY};
        members[i].arrays = malloc(3 * crowd->words * sizeof(double));
        made = made && members[i].arrays;
    }
    return made;
}

bool tare__sample_roofline(double *flops, double *bytes)
{
    static member members[THREADS_MAX];
    unsigned n = cores_allowed();
    crowd crowd = {.fma = fma_kernel(), .words = TRIAD_BYTES / 3 / n / sizeof(double)};
    if (pthread_barrier_init(&crowd.gate, NULL, n) != 0)
        return false;
    bool known = make_all(&crowd, members, n) && run_all(&crowd, members, n);
    *flops = 2.0 * FMA_LOOPS * CHAINS * LANES * n / members[0].fma_s;
    *bytes = 3.0 * (double)(crowd.words * sizeof(double)) * n / members[0].triad_s;
    for (unsigned i = 0; i < n; i++)
        free(members[i].arrays);
    pthread_barrier_destroy(&crowd.gate);
    return known;
}
