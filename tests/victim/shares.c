/* Spends 50, 30, 15 and 5 % of its time in four functions, and prints the CPU seconds of each, by its own clock. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

#define PART(name)                                                                                                     \
    __attribute__((noinline)) static void name(long n)                                                                 \
    {                                                                                                                  \
        uint64_t x = sink;                                                                                             \
        for (long i = 0; i < n; i++)                                                                                   \
            x = x * UINT64_C(6364136223846793005) + (x >> 7) + 1;                                                      \
        sink = x;                                                                                                      \
    }
PART(half)
PART(third)
PART(sixth)
PART(twentieth)

static double cpu(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

__attribute__((noinline)) static void work(double seconds, double spent[4])
{
    static void (*const parts[4])(long) = {half, third, sixth, twentieth};
    static const long shares[4] = {50, 30, 15, 5};
    for (double end = cpu() + seconds; cpu() < end;)
        for (int i = 0; i < 4; i++) {
            double before = cpu();
            parts[i](shares[i] * 20000);
            spent[i] += cpu() - before;
        }
}

int main(int argc, char **argv)
{
    double spent[4] = {0};
    work(argc > 1 ? atof(argv[1]) : 1, spent);
    printf("%f %f %f %f\n", spent[0], spent[1], spent[2], spent[3]);
    return argc > 2 ? atoi(argv[2]) : 0;
}
