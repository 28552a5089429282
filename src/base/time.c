/* time: the clock that everything but spans is timed by. Any thread, signal handlers too.
 * Must not know what it is asked for. */
#include <time.h>

#include "base.h"

uint64_t tare__monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
