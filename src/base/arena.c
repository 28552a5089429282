/* arena: memory allocated from growing blocks and freed all at once.
 * Owned by the calling thread; one arena, one thread at a time.
 * Must not know what is kept in it. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BLOCK_BYTES ((size_t)64 << 10)
#define LAST_BLOCK_BYTES ((size_t)1 << 20)
#define ALIGNMENT ((size_t)16)

typedef struct block {
    struct block *next;
    size_t bytes; /* of the whole block, this header included */
} block;

_Static_assert(sizeof(block) % ALIGNMENT == 0, "what follows the header must stay aligned");

struct tare__arena {
    block *blocks;
    char *free_at; /* in the block small requests come from; NULL before the first */
    char *free_end;
    size_t next_bytes;
    size_t system_bytes;
    bool failed;
};

tare__arena *tare__arena_new(void)
{
    tare__arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return NULL;
    arena->next_bytes = FIRST_BLOCK_BYTES;
    arena->system_bytes = sizeof *arena;
    return arena;
}

void tare__arena_free(tare__arena *arena)
{
    if (!arena)
        return;
    for (block *next, *at = arena->blocks; at; at = next) {
        next = at->next;
        free(at);
    }
    free(arena);
}

static block *add_block(tare__arena *arena, size_t bytes)
{
    block *fresh = calloc(1, bytes);
    arena->failed |= !fresh;
    if (!fresh)
        return NULL;
    fresh->bytes = bytes;
    fresh->next = arena->blocks;
    arena->blocks = fresh;
    arena->system_bytes += bytes;
    return fresh;
}

/* A separate block, so that the rest of the current one is not wasted. */
static void *take_large(tare__arena *arena, size_t bytes)
{
    arena->failed |= bytes > SIZE_MAX - sizeof(block);
    if (bytes > SIZE_MAX - sizeof(block))
        return NULL;
    block *own = add_block(arena, sizeof(block) + bytes);
    return own ? own + 1 : NULL;
}

static void *take(tare__arena *arena, size_t bytes, size_t alignment)
{
    size_t skip = -(uintptr_t)arena->free_at & (alignment - 1);
    size_t left = (size_t)((uintptr_t)arena->free_end - (uintptr_t)arena->free_at);
    if (TARE__UNLIKELY(skip > left || bytes > left - skip)) {
        if (bytes > arena->next_bytes / 4)
            return take_large(arena, bytes);
        block *fresh = add_block(arena, arena->next_bytes);
        if (!fresh)
            return NULL;
        arena->free_at = (char *)(fresh + 1);
        arena->free_end = (char *)fresh + fresh->bytes;
        if (arena->next_bytes < LAST_BLOCK_BYTES)
            arena->next_bytes *= 2;
        skip = 0;
    }
    char *given = arena->free_at + skip;
    arena->free_at = given + bytes;
    return given;
}

void *tare__arena_alloc(tare__arena *arena, size_t bytes)
{
    return take(arena, bytes ? bytes : 1, ALIGNMENT);
}

char *tare__arena_copy(tare__arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = take(arena, length + 1, 1);
    if (copy && length)
        memcpy(copy, text, length); /* blocks are zeroed, so the NUL is there */
    return copy;
}

void *tare__arena_start(size_t bytes, tare__arena **arena)
{
    *arena = tare__arena_new();
    void *object = *arena ? tare__arena_alloc(*arena, bytes) : NULL;
    if (!object) {
        tare__arena_free(*arena);
        *arena = NULL;
    }
    return object;
}

bool tare__arena_failed(const tare__arena *arena)
{
    return arena->failed;
}

size_t tare__arena_bytes(const tare__arena *arena)
{
    return arena->system_bytes;
}
