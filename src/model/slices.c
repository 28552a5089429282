/* slices: a table from names to numbers.
 * Owned by the calling thread.
 * Must not know what is named. */
#include "slices.h"

#include <stdlib.h>

struct tare__slices_entry {
    tare__slice name;
    uint32_t number;
};

static uint32_t hash_of(tare__slice name)
{
    uint64_t hash = tare__hash_bytes(TARE__HASH_START, name.data, name.length);
    return (uint32_t)(hash ^ hash >> 32);
}

static bool has_name(const void *entries, uint32_t at, const void *name)
{
    return tare__slice_equal(((const struct tare__slices_entry *)entries)[at].name, *(const tare__slice *)name);
}

static uint32_t row_of(const tare__slices *table, tare__slice name, uint32_t hash)
{
    return tare__index_find(&table->index, hash, has_name, table->entries, &name);
}

bool tare__slices_add(tare__slices *table, tare__slice name, uint32_t number)
{
    uint32_t hash = hash_of(name), row = row_of(table, name, hash);
    if (row != TARE__INDEX_NONE) {
        table->entries[row].number = number;
        return true;
    }
    if (!tare__array_fit(&table->entries, &table->room, table->n + 1, sizeof *table->entries) ||
        !tare__index_add(&table->index, hash, (uint32_t)table->n))
        return false;
    table->entries[table->n++] = (struct tare__slices_entry){name, number};
    return true;
}

uint32_t tare__slices_find(const tare__slices *table, tare__slice name)
{
    uint32_t row = row_of(table, name, hash_of(name));
    return row == TARE__INDEX_NONE ? TARE__SLICES_NONE : table->entries[row].number;
}

void tare__slices_free(tare__slices *table)
{
    free(table->entries);
    tare__index_free(&table->index);
    *table = (tare__slices){0};
}
