/* phased: a training loop with spans of every kind: `phased STEPS [LONGER]` has steps of phases, modules and
 * operators, as a framework's hooks record them.
 * One thread.
 * Must not know anything of Tare but tare.h. */
#include <math.h>

#include "victim.h"

static tare_site data = TARE_SITE_OF("data", TARE_KIND_PHASE, 1);
static tare_site forward = TARE_SITE_OF("forward", TARE_KIND_PHASE, 1);
static tare_site encoder = TARE_SITE_OF("encoder.layers.0", TARE_KIND_MODULE, 1);
static tare_site multiply = TARE_SITE_OF("aten::mm", TARE_KIND_OPERATOR, 1);
static tare_site plain = TARE_SITE("bookkeeping");
static volatile double sum;

static void work(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sum = sum + sqrt((double)i);
}

static void worked(tare_site *site, uint64_t n)
{
    tare_begin(site);
    work(n);
    tare_end(NULL);
}

static void one_step(uint64_t step, uint64_t longer)
{
    TARE_STEP(step);
    worked(&data, 4000);
    tare_begin(&plain); /* a phase counts however deep it lies */
    tare_begin(&forward);
    tare_begin(&encoder);
    worked(&multiply, 60000 * longer);
    tare_end(NULL);
    tare_end(NULL);
    tare_end(NULL);
    work(500);
}

int main(int argc, char **argv)
{
    uint64_t steps = number_of(argc, argv, 1, 20);
    uint64_t longer = number_of(argc, argv, 2, 1);
    for (uint64_t i = 0; i < steps; i++)
        one_step(i, longer);
    tell("steps", steps);
    return 0;
}
