/* base_failing: an allocator that fails on demand, for tests linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc. Owned by the test's one thread.
 * Must not know what is tested. */
#ifndef TARE_TEST_BASE_FAILING_H
#define TARE_TEST_BASE_FAILING_H

#include <stddef.h>

static long allocations_left = -1; /* until one fails, and all after it; negative: none fails */

static int fail_now(void)
{
    if (allocations_left < 0)
        return 0;
    if (allocations_left == 0)
        return 1;
    allocations_left--;
    return 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return fail_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fail_now() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return fail_now() ? NULL : __real_realloc(old, bytes);
}

#endif
