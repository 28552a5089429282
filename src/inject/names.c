/* names: texts of an instrumented library as call sites, in a table that only grows.
 * Any thread; a text is created separately and added by one compare-and-swap.
 * Must not know which library asks. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "inject.h"

#define SLOTS      16384u /* a power of two */
#define NAMES_MAX  12000u
#define TEXT_MAX   4000u /* of a site's name */

static tare__inject_name slots[SLOTS];
static unsigned used;

static tare__inject_name more = {
    .as_operator = {0, "(more names)", NULL, 0, TARE_KIND_OPERATOR, 1, 0},
    .as_span = {0, "(more names)", NULL, 0, TARE_KIND_SPAN, 1, 0},
};

/* Eight bytes at a time: operators' names are looked up at every call. Never 0. */
static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = length * UINT64_C(0x9E3779B97F4A7C15), word;
    for (; length >= sizeof word; text += sizeof word, length -= sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = (hash ^ word) * UINT64_C(0xFF51AFD7ED558CCD);
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, text, length);
    hash = (hash ^ word) * UINT64_C(0xC4CEB9FE1A85EC53);
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

/* Checked before it is counted: names without space must not make the counter wrap around. There are fewer threads
 * between the two than spare slots. */
static char *copy(const char *text, size_t length)
{
    if (__atomic_load_n(&used, __ATOMIC_RELAXED) >= NAMES_MAX)
        return NULL;
    __atomic_add_fetch(&used, 1, __ATOMIC_RELAXED);
    int saved_errno = errno;
    char *made = malloc(length + 1);
    errno = saved_errno;
    if (!made)
        return NULL;
    memcpy(made, text, length);
    made[length] = '\0';
    return made;
}

/* Another thread was faster with the same text. */
static void give_back(char *made)
{
    if (!made)
        return;
    __atomic_sub_fetch(&used, 1, __ATOMIC_RELAXED);
    free(made);
}

/* Threads that race here write the same. No file: a call site inside another library is not useful to the user. */
static void complete(tare__inject_name *slot, const char *text, uint64_t hash)
{
    __atomic_store_n(&slot->as_operator.name, text, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->as_operator.kind, (uint16_t)TARE_KIND_OPERATOR, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->as_operator.every, (uint16_t)1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->as_span.kind, (uint16_t)TARE_KIND_SPAN, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->as_span.every, (uint16_t)1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->hash, hash, __ATOMIC_RELEASE);
}

static bool is(const char *mine, const char *text, size_t length)
{
    return strncmp(mine, text, length) == 0 && mine[length] == '\0';
}

/* A slot is taken by its text; lookups use its hash, which is stored slightly later. */
static tare__inject_name *find_or_add(const char *text, size_t length, uint64_t hash, size_t at)
{
    char *made = NULL;
    for (;; at = (at + 1) & (SLOTS - 1)) {
        tare__inject_name *slot = &slots[at];
        const char *there = __atomic_load_n(&slot->as_span.name, __ATOMIC_ACQUIRE);
        if (!there) {
            bool full = !made && !(made = copy(text, length));
            there = __atomic_load_n(&slot->as_span.name, __ATOMIC_ACQUIRE); /* the last one may have been this text */
            if (full && !there)
                return &more;
            if (!there &&
                __atomic_compare_exchange_n(&slot->as_span.name, &there, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
                complete(slot, made, hash);
                return slot;
            }
        }
        if (is(there, text, length)) {
            complete(slot, there, hash); /* for a thread that was first and has not reached this yet */
            give_back(made);
            return slot;
        }
    }
}

tare__inject_name *tare__inject_name_of(const char *text, size_t length)
{
    length = length > TEXT_MAX ? TEXT_MAX : length;
    uint64_t hash = hash_of(text, length);
    size_t at = hash & (SLOTS - 1);
    if (__builtin_expect(__atomic_load_n(&slots[at].hash, __ATOMIC_ACQUIRE) == hash, 1))
        return &slots[at];
    return find_or_add(text, length, hash, at);
}
