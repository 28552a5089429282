/* names: maps text to a permanent id. A private master copy ensures that a forked child and the next session have
 * every id that sites already carry; each ring gets a copy. Lock-free: any thread, any handler.
 * Must not know what is named. */
#include <stdatomic.h>
#include <string.h>

#include "record.h"

#define UNITS (TARE__NAMES_BYTES / TARE__NAME_UNIT)
#define BUCKETS 65536u
#define PROBES 512u
#define MORE_UNITS 2u /* of an entry for "(more names)" */
#define UNITS_FREE (UNITS - 32 * MORE_UNITS)

static union {
    uint8_t bytes[TARE__NAMES_BYTES];
    tare__name align;
} master; /* untouched pages cost nothing */

static _Atomic uint32_t used = 1; /* units; id 0 is "no name" */
static _Atomic uint32_t buckets[BUCKETS];
static _Atomic uint64_t next_slot = 1; /* of aggregate sites */

static tare__name *entry_of(uint8_t *arena, uint32_t id)
{
    return (tare__name *)(void *)(arena + (size_t)id * TARE__NAME_UNIT);
}

static uint32_t hash_text(const char *text, size_t bytes, int kind)
{
    uint64_t hash = 0x9E3779B97F4A7C15u ^ (uint64_t)kind;
    while (bytes >= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
        text += 8;
        bytes -= 8;
    }
    uint64_t tail = bytes;
    for (size_t i = 0; i < bytes; i++)
        tail = tail << 8 | (uint8_t)text[i];
    hash = (hash ^ tail) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(hash >> 40 ^ hash >> 16);
}

static bool same(const tare__name *name, const char *text, size_t bytes, int kind)
{
    return atomic_load_explicit(&name->ready, memory_order_acquire) && name->text_bytes == bytes &&
           name->kind == kind && memcmp(name->text, text, bytes) == 0;
}

static _Atomic uint32_t more_ids[32]; /* "(more names)" of each kind; 0: not needed yet */

static void copy_to(tare__ring *ring, uint32_t id)
{
    const uint64_t *from = (const uint64_t *)(const void *)entry_of(master.bytes, id);
    tare__name *entry = entry_of((uint8_t *)ring + ring->names_offset, id);
    uint64_t *to = (uint64_t *)(void *)entry;
    size_t words = entry_of(master.bytes, id)->units * (TARE__NAME_UNIT / 8);
    /* Two threads may copy the same entry: both store the same words atomically. `ready` is in the first. */
    for (size_t i = words; i-- > 0;)
        __atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
}

/* The ring may be created concurrently. This thread adds the name to the table and then checks for the ring; the
 * creator publishes the ring and then copies the table. At least one of them copies the name. */
static void publish(uint32_t id)
{
    tare__process *here = tare__here;
    tare__ring *ring = here ? __atomic_load_n(&here->ring, __ATOMIC_SEQ_CST) : NULL;
    if (ring)
        copy_to(ring, id);
}

void tare__names_publish(tare__ring *ring)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        uint32_t id = atomic_load(&buckets[i]);
        if (id)
            copy_to(ring, id);
    }
    for (uint32_t i = 0; i < TARE__COUNT_OF(more_ids); i++) {
        uint32_t id = atomic_load(&more_ids[i]);
        if (id)
            copy_to(ring, id);
    }
}

static uint32_t add(const char *text, size_t bytes, int kind, const char *file, uint32_t line)
{
    size_t file_bytes = file ? strlen(file) : 0;
    if (file_bytes > 512) { /* the end of a path is more informative than its beginning */
        file += file_bytes - 512;
        file_bytes = 512;
    }
    uint32_t units = (uint32_t)((sizeof(tare__name) + bytes + file_bytes + TARE__NAME_UNIT - 1) / TARE__NAME_UNIT);
    uint32_t id = atomic_load(&used);
    do {
        if (id + units > UNITS_FREE)
            return TARE__NAME_NONE;
    } while (!atomic_compare_exchange_weak(&used, &id, id + units));
    tare__name *name = entry_of(master.bytes, id);
    name->kind = (uint16_t)kind;
    name->text_bytes = (uint16_t)bytes;
    name->file_bytes = (uint16_t)file_bytes;
    name->units = (uint16_t)units;
    name->line = line;
    memcpy(name->text, text, bytes);
    if (file_bytes)
        memcpy(name->text + bytes, file, file_bytes);
    atomic_store_explicit(&name->ready, 1, memory_order_release);
    return id;
}

/* The table is full. Further names share one, for which space is reserved at the end. */
static uint32_t refuse(int kind)
{
    static const char more[] = "(more names)";
    if (tare__here && tare__here->ring)
        atomic_fetch_add_explicit(&tare__here->ring->names_refused, 1, memory_order_relaxed);
    uint32_t which = (uint32_t)kind % 32;
    uint32_t id = UNITS - (which + 1) * MORE_UNITS;
    if (atomic_load(&more_ids[which]) == 0) {
        tare__name *name = entry_of(master.bytes, id);
        name->kind = (uint16_t)kind;
        name->text_bytes = sizeof more - 1;
        name->units = MORE_UNITS;
        memcpy(name->text, more, sizeof more - 1);
        atomic_store_explicit(&name->ready, 1, memory_order_release);
        atomic_store(&more_ids[which], id);
        publish(id);
    }
    return id;
}

uint32_t tare__name_intern(const char *text, int kind, const char *file, uint32_t line)
{
    if (!text)
        text = "(null)";
    size_t bytes = strnlen(text, TARE__NAME_TEXT_MAX);
    uint32_t at = hash_text(text, bytes, kind) % BUCKETS;
    for (uint32_t probe = 0; probe < PROBES; probe++, at = (at + 1) % BUCKETS) {
        uint32_t id = atomic_load_explicit(&buckets[at], memory_order_acquire);
        if (id == 0) {
            uint32_t fresh = add(text, bytes, kind, file, line);
            if (fresh == TARE__NAME_NONE)
                return refuse(kind);
            uint64_t before;
            tare__signals_hold(&before); /* a name in the table is in the ring */
            bool first = atomic_compare_exchange_strong(&buckets[at], &id, fresh);
            if (first)
                publish(fresh);
            tare__signals_release(&before);
            if (first)
                return fresh;
            /* Another thread was faster: if it added the same name, this entry stays unused. */
        }
        if (same(entry_of(master.bytes, id), text, bytes, kind))
            return id;
    }
    return refuse(kind);
}

uint64_t tare__site_register(tare_site *site)
{
    const char *text = site->name;
    if (site->kind == TARE_KIND_AGGREGATE && __atomic_load_n(&site->slot, __ATOMIC_RELAXED) == 0) {
        uint64_t slot = atomic_fetch_add(&next_slot, 1), none = 0;
        if (slot >= TARE__CELLS_MAX)
            slot = TARE__CELLS_MAX - 1; /* the last cell is shared */
        __atomic_compare_exchange_n(&site->slot, &none, slot, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    if (site->slot == TARE__CELLS_MAX - 1)
        text = "(more aggregate spans)";
    uint32_t id = tare__name_intern(text, site->kind, site->file, site->line);
    uint64_t word = TARE__WORD(TARE__RECORD_BEGIN, id);
    __atomic_store_n(&site->word, word, __ATOMIC_RELEASE);
    return word;
}
