/* flood: many spans at a given rate, to find out what is sustained and to make files for reading.
 * One thread.
 * Must not know how many may be lost.
 *
 *     flood flat|nested|names SPANS RATE CPU
 *
 * RATE is spans a second, 0: as fast as it goes. Prints the spans begun, the seconds they took, and for how
 * many of those the thread had no CPU: it never sleeps, so somebody else had it. */
#define _GNU_SOURCE
#include <tare.h>

#include "bench.h"

#define NAMES 1000u
#define NESTED_SPANS 11ul /* of one turn: an outer one and ten in it */
#define TURN_SPANS (NESTED_SPANS * 50)

static tare_site sites[NAMES];

static void flat(uint64_t seed)
{
    (void)seed;
    for (unsigned i = 0; i < TURN_SPANS; i++) {
        TARE_SPAN("flat");
        BENCH_FENCE();
    }
}

static void nested(uint64_t seed)
{
    (void)seed;
    for (unsigned i = 0; i < TURN_SPANS / NESTED_SPANS; i++) {
        TARE_SPAN("outer");
        for (unsigned j = 0; j < NESTED_SPANS - 1; j++) {
            TARE_SPAN("inner");
            BENCH_FENCE();
        }
    }
}

static void names(uint64_t seed)
{
    for (unsigned i = 0; i < TURN_SPANS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tare_site *site = &sites[(seed >> 33) % NAMES];
        tare_begin(site);
        BENCH_FENCE();
        tare_end(site);
    }
}

static void make_sites(void)
{
    static char text[NAMES][24];
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(text[i], sizeof text[i], "operator_%u", i * 7919u % 10007u);
        sites[i] = (tare_site)TARE_SITE(text[i]);
    }
}

static const struct shape {
    const char *name;
    void (*turn)(uint64_t seed);
} shapes[] = {{"flat", flat}, {"nested", nested}, {"names", names}};

static double cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* What was missed while the thread did not run is not made up for: a burst is not the rate asked for. */
static unsigned long record(const struct shape *shape, unsigned long spans, double ticks_per_span,
                            double late)
{
    unsigned long done = 0;
    double due = (double)bench_ticks();
    while (done < spans) {
        shape->turn(done);
        done += TURN_SPANS;
        due += TURN_SPANS * ticks_per_span;
        if ((double)bench_ticks() > due + late)
            due = (double)bench_ticks();
        while ((double)bench_ticks() < due)
            ;
    }
    return done;
}

int main(int argc, char **argv)
{
    const struct shape *shape = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(argv[1], shapes[i].name) == 0)
            shape = &shapes[i];
    if (!shape) {
        fprintf(stderr, "usage: %s flat|nested|names SPANS [RATE CPU]\n", argv[0]);
        return 2;
    }
    unsigned long spans = (unsigned long)bench_argument(argc, argv, 2, 1000000);
    double rate = (double)bench_argument(argc, argv, 3, 0);
    bench_pin((int)bench_argument(argc, argv, 4, -1));
    make_sites();
    double ticks_per_ns = bench_ticks_per_ns();
    double ticks_per_span = rate > 0 ? ticks_per_ns * 1e9 / rate : 0;
    shape->turn(0); /* the first event opens the ring; what it takes is the business of another figure */

    uint64_t start = bench_ticks();
    double cpu = cpu_seconds();
    unsigned long done = record(shape, spans, ticks_per_span, ticks_per_ns * 1e5);
    cpu = cpu_seconds() - cpu;
    double seconds = (double)(bench_ticks() - start) / ticks_per_ns / 1e9;
    printf("%lu %.6f %.6f\n", done, seconds, seconds > cpu ? seconds - cpu : 0);
    return 0;
}
