/* pair: what one span costs, in batches that take turns with the floor; built with libtare shared and static.
 * One recording thread for each CPU named; each owns its ring, cell and results.
 * Must not know what the figures should be.
 *
 *     pair SUBJECT CPU[,CPU] BATCHES PAIRS REST_US
 *
 * Prints a line for each batch: thread, floor, subject, floor again, in nanoseconds a pair. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>

#include <tare.h>

#include "bench.h"

#define THREADS_MAX 64
#define WARM_PAIRS 2000ul

typedef struct worker {
    pthread_t thread;
    int cpu;
    bench_ring *ring;
    bench_cell cell;
    double (*times)[3];
} worker;

typedef void pairs(worker *self, unsigned long n);

static const struct subject {
    const char *name;
    pairs *floor, *run;
} * subject;
static unsigned long batches, pairs_each;
static unsigned rest_us;
static double ticks_per_ns;
static pthread_barrier_t start;

/* On a line of their own each: where a loop happens to start is worth some percent. */
#define SUBJECT __attribute__((noinline, aligned(64))) static void

/* ---- subjects -------------------------------------------------------------------------------------- */
SUBJECT run_floor(worker *self, unsigned long n)
{
    bench_floor_pairs(self->ring, n);
}

SUBJECT run_hand(worker *self, unsigned long n)
{
    bench_hand_pairs(&self->cell, n);
}

SUBJECT run_span(worker *self, unsigned long n)
{
    (void)self;
    for (unsigned long i = 0; i < n; i++) {
        TARE_SPAN("span");
        BENCH_FENCE();
    }
}

SUBJECT run_next(worker *self, unsigned long n)
{
    (void)self;
    TARE_BEGIN("first");
    for (unsigned long i = 0; i < n; i += 2) {
        TARE_NEXT("even");
        BENCH_FENCE();
        TARE_NEXT("odd");
        BENCH_FENCE();
    }
    TARE_END();
}

SUBJECT run_aggregate(worker *self, unsigned long n)
{
    (void)self;
    for (unsigned long i = 0; i < n; i++) {
        TARE_AGGREGATE("aggregate");
        BENCH_FENCE();
    }
}

SUBJECT run_sampled(worker *self, unsigned long n)
{
    (void)self;
    for (unsigned long i = 0; i < n; i++) {
        TARE_SAMPLED("sampled", 16);
        BENCH_FENCE();
    }
}

static const struct subject subjects[] = {
    {"floor", run_floor, run_floor},         {"span", run_floor, run_span},
    {"next", run_floor, run_next},           {"aggregate", run_hand, run_aggregate},
    {"sampled", run_floor, run_sampled},
};

/* ---- batches --------------------------------------------------------------------------------------- */
static double time_pairs(pairs *run, worker *self)
{
    uint64_t from = bench_ticks();
    run(self, pairs_each);
    return (double)(bench_ticks() - from) / ticks_per_ns / (double)pairs_each;
}

/* Threads go through their batches together, or the floor of one would meet the rest of another. */
static void *work(void *argument)
{
    worker *self = argument;
    bench_pin(self->cpu);
    subject->run(self, WARM_PAIRS);
    for (unsigned long i = 0; i < batches; i++) {
        bench_rest(rest_us);
        pthread_barrier_wait(&start);
        subject->floor(self, WARM_PAIRS); /* after a rest both sides are cold */
        subject->run(self, WARM_PAIRS);
        self->times[i][0] = time_pairs(subject->floor, self);
        self->times[i][1] = time_pairs(subject->run, self);
        self->times[i][2] = time_pairs(subject->floor, self);
    }
    return NULL;
}

static void prepare(worker *self, const char *cpu)
{
    self->cpu = atoi(cpu);
    self->cell.min = UINT64_MAX;
    self->ring = aligned_alloc(4096, sizeof *self->ring);
    self->times = calloc(batches, sizeof *self->times);
    if (!self->ring || !self->times)
        exit(2);
    memset(self->ring, 1, sizeof *self->ring);
    memset(self->times, 1, batches * sizeof *self->times);
}

static bool parse(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof subjects / sizeof *subjects; i++)
        if (strcmp(argv[1], subjects[i].name) == 0)
            subject = &subjects[i];
    batches = (unsigned long)bench_argument(argc, argv, 3, 100);
    pairs_each = (unsigned long)bench_argument(argc, argv, 4, 10000);
    rest_us = (unsigned)bench_argument(argc, argv, 5, 2000);
    return subject != NULL;
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: %s span|next|aggregate|sampled|floor CPU[,CPU] [BATCHES PAIRS REST_US]\n",
                argv[0]);
        return 2;
    }
    static worker workers[THREADS_MAX];
    unsigned n = 0;
    for (char *cpu = strtok(argv[2], ","); cpu && n < THREADS_MAX; cpu = strtok(NULL, ","))
        prepare(&workers[n++], cpu);
    ticks_per_ns = bench_ticks_per_ns();
    pthread_barrier_init(&start, NULL, n);
    for (unsigned i = 1; i < n; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 2;
    work(&workers[0]);
    for (unsigned i = 1; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < n; i++)
        for (unsigned long batch = 0; batch < batches; batch++)
            printf("%u %.4f %.4f %.4f\n", i, workers[i].times[batch][0], workers[i].times[batch][1],
                   workers[i].times[batch][2]);
    return 0;
}
