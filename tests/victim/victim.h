/* victim: small things the victims share. Each program has one use of its arguments and tells the test on
 * standard output, as `key value` lines, what it recorded.
 * Must not know anything of Tare but tare.h. */
#ifndef TARE_VICTIM_H
#define TARE_VICTIM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tare.h>

static inline void tell(const char *key, uint64_t value)
{
    printf("%s %llu\n", key, (unsigned long long)value);
    fflush(stdout);
}

/* For tests that look at the session's folder. */
static inline void tell_session(void)
{
    const char *folder = getenv("TARE_SESSION");
    printf("session %s\n", folder ? folder : "none");
    fflush(stdout);
}

static inline uint64_t number_of(int argc, char **argv, int index, uint64_t otherwise)
{
    return argc > index ? strtoull(argv[index], NULL, 10) : otherwise;
}

static inline const char *mode_of(int argc, char **argv)
{
    return argc > 1 ? argv[1] : "";
}

static inline void wait_ms(unsigned ms)
{
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int unknown_mode(const char *mode)
{
    fprintf(stderr, "victim: no mode '%s'\n", mode);
    return 99;
}

#endif
