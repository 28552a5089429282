/* first: the first event of a process, and every pair from there on, each timed by itself.
 * One thread.
 * Must not know what the figures should be.
 *
 *     first PAIRS CPU
 *
 * Prints the monotonic time at main and after the first span, in ns; then the first pair, median, p99, p99.9
 * and the slowest of PAIRS pairs, the first among them, with the cost of the timing left in. */
#define _GNU_SOURCE
#include <tare.h>

#include "bench.h"

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void time_pairs(uint32_t *ticks, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        uint64_t start = bench_ticks();
        {
            TARE_SPAN("pair");
            BENCH_FENCE();
        }
        ticks[i] = (uint32_t)(bench_ticks() - start);
    }
}

int main(int argc, char **argv)
{
    uint64_t begun_ns = bench_ns();
    size_t n = (size_t)bench_argument(argc, argv, 1, 1);
    uint32_t *ticks = malloc(n * sizeof *ticks);
    if (!n || !ticks)
        return 2;
    bench_pin((int)bench_argument(argc, argv, 2, -1));
    memset(ticks, 1, n * sizeof *ticks);
    uint64_t before_ns = bench_ns();
    time_pairs(ticks, 0, 1);
    uint64_t after_ns = bench_ns();
    time_pairs(ticks, 1, n);

    double scale = 1 / bench_ticks_per_ns();
    double first = ticks[0] * scale;
    qsort(ticks, n, sizeof *ticks, by_size);
    printf("%llu %llu %llu %.1f %.1f %.1f %.1f %.1f\n", (unsigned long long)begun_ns,
           (unsigned long long)before_ns, (unsigned long long)after_ns, first, ticks[n / 2] * scale,
           ticks[n - 1 - n / 100] * scale, ticks[n - 1 - n / 1000] * scale, ticks[n - 1] * scale);
    return 0;
}
