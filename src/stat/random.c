/* random: pseudo-random numbers that are the same for a seed on every machine.
 * Owned by the calling thread.
 * Must not know what they are drawn for. */
#include "stat.h"

/* splitmix64: recommended by the authors of xoshiro to initialize its state. */
static uint64_t mix(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t turned(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

void tare__random_seed(tare__random *random, uint64_t seed)
{
    for (size_t i = 0; i < 4; i++)
        random->word[i] = mix(&seed);
}

/* xoshiro256** 1.0, Blackman and Vigna. */
uint64_t tare__random_next(tare__random *random)
{
    uint64_t *word = random->word;
    uint64_t result = turned(word[1] * 5, 7) * 9;
    uint64_t shifted = word[1] << 17;
    word[2] ^= word[0];
    word[3] ^= word[1];
    word[1] ^= word[2];
    word[0] ^= word[3];
    word[2] ^= shifted;
    word[3] = turned(word[3], 45);
    return result;
}

uint64_t tare__random_below(tare__random *random, uint64_t bound)
{
    if (!bound)
        return 0;
    uint64_t surplus = -bound % bound; /* 2^64 mod bound: redrawing these makes all results equally likely */
    uint64_t drawn;
    do
        drawn = tare__random_next(random);
    while (drawn < surplus);
    return drawn % bound;
}

double tare__random_unit(tare__random *random)
{
    return (double)(tare__random_next(random) >> 11) * 0x1p-53;
}

/* Marsaglia's polar method; the second number of a pair is discarded, so that there is no state to keep. */
double tare__random_normal(tare__random *random)
{
    double x, square;
    do {
        x = 2 * tare__random_unit(random) - 1;
        double y = 2 * tare__random_unit(random) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    return x * sqrt(-2 * log(square) / square);
}
