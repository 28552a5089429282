/* index: finds rows of an array of the caller by hash. Open addressing, a power of two, at most 3/4 full.
 * Owned by the calling thread; one that is not changed may be read by many.
 * Must not know what the rows are. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64u

static void place(tare__index *index, tare__index_slot slot)
{
    uint32_t at = slot.hash & index->mask;
    while (index->slots[at].row_plus1)
        at = (at + 1) & index->mask;
    index->slots[at] = slot;
}

static bool grow(tare__index *index)
{
    uint32_t slots = index->slots ? (index->mask + 1) * 2 : FIRST_SLOTS;
    tare__index wider = {.slots = slots ? calloc(slots, sizeof *wider.slots) : NULL, .mask = slots - 1,
                         .used = index->used};
    if (!wider.slots)
        return false;
    for (uint32_t i = 0; index->slots && i <= index->mask; i++)
        if (index->slots[i].row_plus1)
            place(&wider, index->slots[i]);
    free(index->slots);
    *index = wider;
    return true;
}

bool tare__index_add(tare__index *index, uint32_t hash, uint32_t row)
{
    uint64_t slots = index->slots ? (uint64_t)index->mask + 1 : 0;
    if (index->used >= slots - slots / 4 && !grow(index))
        return false;
    place(index, (tare__index_slot){hash, row + 1});
    index->used++;
    return true;
}

void tare__index_move(tare__index *index, uint32_t hash, uint32_t from, uint32_t to)
{
    uint32_t at = hash & index->mask;
    while (index->slots[at].row_plus1 != from + 1)
        at = (at + 1) & index->mask;
    index->slots[at].row_plus1 = to + 1;
}

void tare__index_clear(tare__index *index)
{
    if (index->slots)
        memset(index->slots, 0, ((size_t)index->mask + 1) * sizeof *index->slots);
    index->used = 0;
}

void tare__index_free(tare__index *index)
{
    free(index->slots);
    *index = (tare__index){0};
}
