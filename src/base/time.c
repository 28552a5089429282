/* time: the clock for everything but spans. Any thread, signal handlers too.
 * Must not know what it is used for. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

bool tare__time_by_system_call;

uint64_t tare__clock_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t tare__monotonic_ns(void)
{
    struct timespec now = {0, 0};
    if (__builtin_expect(tare__time_by_system_call, 0))
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    else
        clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
