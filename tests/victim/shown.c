/* shown: a training loop that makes a page worth looking at: `shown STEPS` has some 90 spans a step, a loader
 * thread, a counter, a mark, and a span whose name would run in a page that does not take care.
 * Two threads.
 * Must not know anything of Tare but tare.h. */
#include <math.h>
#include <pthread.h>

#include "victim.h"

static volatile double sum;

static void work(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sum = sum + sqrt((double)i);
}

static void *load(void *argument)
{
    for (uint64_t i = 0; i < *(uint64_t *)argument; i++) {
        TARE_BEGIN("decode image");
        work(100);
        TARE_END();
    }
    return argument;
}

static void one_step(uint64_t step)
{
    TARE_STEP(step);
    TARE_BEGIN("load");
    work(step == 0 ? 20000 : 60);
    TARE_NEXT("forward");
    for (int i = 0; i < 40; i++) {
        TARE_BEGIN("matmul");
        work(10);
        TARE_END();
    }
    TARE_NEXT("backward");
    for (int i = 0; i < 40; i++) {
        TARE_BEGIN("matmul gradient");
        work(20);
        TARE_END();
    }
    TARE_NEXT("</script><img src=x onerror=alert(1)>");
    work(60);
    TARE_END();
    TARE_SAMPLES(64);
    TARE_COUNTER("loss", 2.0 / (1.0 + 0.01 * (double)step));
}

int main(int argc, char **argv)
{
    uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
    pthread_t loader;
    pthread_create(&loader, NULL, load, &steps);
    for (int epoch = 0; epoch < 2; epoch++) {
        TARE_EPOCH(epoch);
        for (uint64_t i = 0; i < steps / 2; i++) {
            one_step(epoch * (steps / 2) + i);
            if (i % 500 == 499)
                wait_ms(20); /* whoever takes the spans away may be late on a busy machine */
        }
        TARE_MARK("checkpoint");
    }
    pthread_join(loader, NULL);
    return 0;
}
