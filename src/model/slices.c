/* slices: a table from names to numbers, open addressing.
 * Owned by the calling thread.
 * Must not know what is named. */
#include "slices.h"

#include <stdlib.h>

struct tare__slices_entry {
    tare__slice name;
    uint32_t hash, number; /* number TARE__SLICES_NONE: empty */
};

static uint32_t hash_of(tare__slice name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.length; i++)
        hash = (hash ^ name.data[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

static struct tare__slices_entry *place_of(const tare__slices *table, tare__slice name, uint32_t hash)
{
    size_t at = hash & (table->room - 1);
    for (;; at = (at + 1) & (table->room - 1)) {
        struct tare__slices_entry *entry = &table->entries[at];
        if (entry->number == TARE__SLICES_NONE || (entry->hash == hash && tare__slice_equal(entry->name, name)))
            return entry;
    }
}

static bool widen(tare__slices *table)
{
    tare__slices wider = {.room = table->room ? 2 * table->room : 16, .n = table->n};
    wider.entries = malloc(wider.room * sizeof *wider.entries);
    if (!wider.entries)
        return false;
    for (size_t i = 0; i < wider.room; i++)
        wider.entries[i].number = TARE__SLICES_NONE;
    for (size_t i = 0; i < table->room; i++) {
        if (table->entries[i].number != TARE__SLICES_NONE)
            *place_of(&wider, table->entries[i].name, table->entries[i].hash) = table->entries[i];
    }
    free(table->entries);
    *table = wider;
    return true;
}

bool tare__slices_add(tare__slices *table, tare__slice name, uint32_t number)
{
    if (4 * (table->n + 1) > 3 * table->room && !widen(table))
        return false;
    uint32_t hash = hash_of(name);
    struct tare__slices_entry *entry = place_of(table, name, hash);
    table->n += entry->number == TARE__SLICES_NONE;
    *entry = (struct tare__slices_entry){name, hash, number};
    return true;
}

uint32_t tare__slices_find(const tare__slices *table, tare__slice name)
{
    return table->n ? place_of(table, name, hash_of(name))->number : TARE__SLICES_NONE;
}

void tare__slices_free(tare__slices *table)
{
    free(table->entries);
    *table = (tare__slices){0};
}
