/* disable: the same function with and without spans, compiled with TARE_DISABLE, compared byte by byte.
 * One thread; reads its own code.
 * Must not know any library: it has to link without one.
 *
 * Prints the bytes of both and whether they are the same. */
#define TARE_DISABLE
#include <stdio.h>
#include <string.h>

#include <tare.h>

/* A section named like an identifier has its bounds from the linker. */
extern const char __start_bench_with[], __stop_bench_with[];
extern const char __start_bench_without[], __stop_bench_without[];

__attribute__((noinline, section("bench_with"))) static unsigned with_spans(unsigned x)
{
    TARE_SPAN("whole");
    for (unsigned i = 0; i < 100; i++) {
        TARE_STEP(i);
        TARE_BEGIN("shift");
        x ^= x << 13;
        TARE_NEXT("multiply");
        x *= i | 1;
        TARE_END();
        TARE_COUNTER("x", x);
        TARE_SAMPLES(32);
    }
    return x;
}

__attribute__((noinline, section("bench_without"))) static unsigned without_spans(unsigned x)
{
    for (unsigned i = 0; i < 100; i++) {
        x ^= x << 13;
        x *= i | 1;
    }
    return x;
}

int main(int argc, char **argv)
{
    (void)argv;
    size_t with = (size_t)(__stop_bench_with - __start_bench_with);
    size_t without = (size_t)(__stop_bench_without - __start_bench_without);
    int same = with == without && memcmp(__start_bench_with, __start_bench_without, with) == 0;
    if (with_spans((unsigned)argc) != without_spans((unsigned)argc))
        return 1;
    printf("%zu %zu %d\n", with, without, same);
    return 0;
}
