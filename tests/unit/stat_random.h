/* stat_random: the same pseudo-random numbers in every run, for the tests of stat.
 * Owned by the calling test.
 * Must not know what is tested. */
#ifndef TARE_TESTS_STAT_RANDOM_H
#define TARE_TESTS_STAT_RANDOM_H

#include <stdint.h>

/* splitmix64 */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Every magnitude equally often, 0 and UINT64_MAX within reach. */
static inline uint64_t random_wide(uint64_t *state)
{
    unsigned shift = (unsigned)(random_next(state) % 65);
    return shift == 64 ? 0 : random_next(state) >> shift;
}

static inline double random_unit(uint64_t *state)
{
    return (double)(random_next(state) >> 11) / 9007199254740992.0;
}

#endif
