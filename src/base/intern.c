/* intern: one dense id a distinct text. Open addressing over the ids, the text itself in an arena.
 * Owned by the calling thread; a table nobody adds to may be read by many.
 * Must not know what the texts name. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS ((size_t)64)
#define FIRST_ENTRIES ((size_t)32)

typedef struct slot {
    uint32_t tag;      /* upper half of the hash: most misses end here, without touching the text */
    uint32_t id_plus1; /* 0: empty */
} slot;

typedef struct entry {
    const char *text;
    size_t length;
    uint64_t hash; /* kept so that growing does not read every text again */
} entry;

struct tare__intern {
    tare__arena *arena;
    slot *slots;
    entry *entries;
    size_t slot_mask; /* slots - 1; a power of two, at most 3/4 full */
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

static uint64_t hash_text(uint64_t seed, const char *text, size_t length)
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
    return fold(hash ^ k1, k2);
}

/* ---- table --------------------------------------------------------------------------------------- */
tare__intern *tare__intern_new(void)
{
    tare__intern *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->arena = tare__arena_new();
    table->slots = calloc(FIRST_SLOTS, sizeof *table->slots);
    table->entries = malloc(FIRST_ENTRIES * sizeof *table->entries);
    if (!table->arena || !table->slots || !table->entries) {
        tare__intern_free(table);
        return NULL;
    }
    table->slot_mask = FIRST_SLOTS - 1;
    table->entries_room = FIRST_ENTRIES;
    /* The address differs from run to run: a file cannot be made whose names all collide. Ids go by
     * order of sight, so no output depends on it. */
    table->seed = (uint64_t)(uintptr_t)table;
    return table;
}

void tare__intern_free(tare__intern *table)
{
    if (!table)
        return;
    tare__arena_free(table->arena);
    free(table->slots);
    free(table->entries);
    free(table);
}

/* The slot that holds this text, or the empty one where it belongs. */
static slot *seek(const tare__intern *table, uint64_t hash, const char *text, size_t length)
{
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t at = hash & table->slot_mask;; at = (at + 1) & table->slot_mask) {
        slot *seen = &table->slots[at];
        if (seen->id_plus1 == 0)
            return seen;
        if (seen->tag != tag)
            continue;
        const entry *known = &table->entries[seen->id_plus1 - 1];
        if (known->length == length && (length == 0 || memcmp(known->text, text, length) == 0))
            return seen;
    }
}

static bool grow_slots(tare__intern *table)
{
    size_t slots = (table->slot_mask + 1) * 2;
    slot *fresh = calloc(slots, sizeof *fresh);
    if (!fresh)
        return false;
    for (uint32_t id = 0; id < table->count; id++) {
        uint64_t hash = table->entries[id].hash;
        size_t at = hash & (slots - 1);
        while (fresh[at].id_plus1)
            at = (at + 1) & (slots - 1);
        fresh[at] = (slot){.tag = (uint32_t)(hash >> 32), .id_plus1 = id + 1};
    }
    free(table->slots);
    table->slots = fresh;
    table->slot_mask = slots - 1;
    return true;
}

static bool grow_entries(tare__intern *table)
{
    size_t room = table->entries_room * 2;
    if (room > SIZE_MAX / sizeof *table->entries)
        return false;
    entry *moved = realloc(table->entries, room * sizeof *moved);
    if (!moved)
        return false;
    table->entries = moved;
    table->entries_room = room;
    return true;
}

uint32_t tare__intern_add(tare__intern *table, const char *text, size_t length)
{
    uint64_t hash = hash_text(table->seed, text, length);
    slot *place = seek(table, hash, text, length);
    if (place->id_plus1)
        return place->id_plus1 - 1;

    if (table->count >= TARE__INTERN_NONE - 1)
        return TARE__INTERN_NONE;
    if (table->count >= table->entries_room && !grow_entries(table))
        return TARE__INTERN_NONE;
    size_t slots = table->slot_mask + 1;
    if (table->count >= slots - slots / 4) {
        if (!grow_slots(table))
            return TARE__INTERN_NONE;
        place = seek(table, hash, text, length);
    }
    const char *copy = tare__arena_copy(table->arena, text, length);
    if (!copy)
        return TARE__INTERN_NONE;
    uint32_t id = table->count++;
    table->entries[id] = (entry){.text = copy, .length = length, .hash = hash};
    *place = (slot){.tag = (uint32_t)(hash >> 32), .id_plus1 = id + 1};
    return id;
}

uint32_t tare__intern_find(const tare__intern *table, const char *text, size_t length)
{
    const slot *place = seek(table, hash_text(table->seed, text, length), text, length);
    return place->id_plus1 ? place->id_plus1 - 1 : TARE__INTERN_NONE;
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
