/* intern: one dense id per distinct text. An index over the ids, the text itself in an arena.
 * Owned by the calling thread; a table that is not changed may be read by many.
 * Must not know what the texts name. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ENTRIES ((size_t)32)

typedef struct entry {
    const char *text;
    size_t length;
} entry;

struct tare__intern {
    tare__arena *arena;
    tare__index index;
    entry *entries;
    size_t entries_room;
    uint32_t count;
    uint64_t seed;
};

/* ---- hash: multiply to 128 bits and fold, after the idea of wyhash ------------------------------ */
static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint64_t load4(const char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint32_t hash_text(uint64_t seed, const char *text, size_t length)
{
    const uint64_t k1 = UINT64_C(0x9e3779b97f4a7c15), k2 = UINT64_C(0xd6e8feb86659fd93);
    uint64_t hash = seed ^ fold(length ^ k1, k2), low = 0, high = 0;
    size_t left = length;
    for (; left > 16; left -= 16, text += 16)
        hash = fold(load8(text) ^ k1, load8(text + 8) ^ hash);
    /* The rest, 0 to 16 bytes, in two words that may overlap: no loop over single bytes. */
    if (left >= 8) {
        low = load8(text);
        high = load8(text + left - 8);
    } else if (left >= 4) {
        low = load4(text);
        high = load4(text + left - 4);
    } else if (left > 0) {
        low = (uint64_t)(unsigned char)text[0] << 16 | (uint64_t)(unsigned char)text[left / 2] << 8 |
              (unsigned char)text[left - 1];
    }
    hash = fold(low ^ k2, high ^ hash);
    return (uint32_t)fold(hash ^ k1, k2);
}

/* ---- table --------------------------------------------------------------------------------------- */
tare__intern *tare__intern_new(void)
{
    tare__intern *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->arena = tare__arena_new();
    if (!table->arena ||
        !tare__array_fit(&table->entries, &table->entries_room, FIRST_ENTRIES, sizeof *table->entries)) {
        tare__intern_free(table);
        return NULL;
    }
    /* The address differs from run to run, so that a file cannot be crafted to make all names collide. Ids follow
     * the order of first use, so no output depends on it. */
    table->seed = (uint64_t)(uintptr_t)table;
    return table;
}

void tare__intern_free(tare__intern *table)
{
    if (!table)
        return;
    tare__arena_free(table->arena);
    tare__index_free(&table->index);
    free(table->entries);
    free(table);
}

static bool is_text(const void *rows, uint32_t id, const void *key)
{
    const entry *known = &((const entry *)rows)[id], *wanted = key;
    return known->length == wanted->length &&
           (wanted->length == 0 || memcmp(known->text, wanted->text, wanted->length) == 0);
}

static uint32_t find(const tare__intern *table, uint32_t hash, const char *text, size_t length)
{
    return tare__index_find(&table->index, hash, is_text, table->entries, &(entry){text, length});
}

uint32_t tare__intern_add(tare__intern *table, const char *text, size_t length)
{
    uint32_t hash = hash_text(table->seed, text, length), known = find(table, hash, text, length);
    if (known != TARE__INDEX_NONE)
        return known;
    if (table->count >= TARE__INTERN_NONE - 1 ||
        !tare__array_fit(&table->entries, &table->entries_room, (size_t)table->count + 1, sizeof *table->entries))
        return TARE__INTERN_NONE;
    const char *copy = tare__arena_copy(table->arena, text, length);
    if (!copy || !tare__index_add(&table->index, hash, table->count))
        return TARE__INTERN_NONE;
    table->entries[table->count] = (entry){.text = copy, .length = length};
    return table->count++;
}

uint32_t tare__intern_find(const tare__intern *table, const char *text, size_t length)
{
    return find(table, hash_text(table->seed, text, length), text, length);
}

const char *tare__intern_text(const tare__intern *table, uint32_t id, size_t *length)
{
    if (id >= table->count)
        return NULL;
    if (length)
        *length = table->entries[id].length;
    return table->entries[id].text;
}

uint32_t tare__intern_count(const tare__intern *table)
{
    return table->count;
}
