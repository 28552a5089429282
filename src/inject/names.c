/* names: texts of an instrumented library as call sites, in a table that only grows.
 * Any thread; entries are made aside and put in by one compare-and-swap.
 * Must not know which library asks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject.h"

#define SLOTS      16384u /* a power of two */
#define NAMES_MAX  12000u
#define TEXT_MAX   4000u /* of a site's name */

static tare__inject_name *slots[SLOTS];
static unsigned used;

static tare__inject_name more = {
    .as_operator = {0, "(more names)", NULL, 0, TARE_KIND_OPERATOR, 1, 0},
    .as_span = {0, "(more names)", NULL, 0, TARE_KIND_SPAN, 1, 0},
};

/* Eight bytes at a time: operators' names are looked up at every call. */
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
    return hash ^ hash >> 29;
}

static tare__inject_name *make(const char *text, size_t length, uint64_t hash)
{
    if (__atomic_add_fetch(&used, 1, __ATOMIC_RELAXED) > NAMES_MAX)
        return NULL;
    int saved_errno = errno;
    tare__inject_name *made = malloc(sizeof *made + length + 1);
    errno = saved_errno;
    if (!made)
        return NULL;
    memset(made, 0, sizeof *made);
    memcpy(made->text, text, length);
    made->text[length] = '\0';
    made->length = length;
    made->hash = hash;
    /* No file: a call site inside of somebody else's library tells the user nothing. */
    made->as_operator = (tare_site){0, made->text, NULL, 0, TARE_KIND_OPERATOR, 1, 0};
    made->as_span = (tare_site){0, made->text, NULL, 0, TARE_KIND_SPAN, 1, 0};
    return made;
}

static int is(const tare__inject_name *name, const char *text, size_t length, uint64_t hash)
{
    return name->hash == hash && name->length == length && memcmp(name->text, text, length) == 0;
}

tare__inject_name *tare__inject_name_of(const char *text, size_t length)
{
    length = length > TEXT_MAX ? TEXT_MAX : length;
    uint64_t hash = hash_of(text, length);
    tare__inject_name *made = NULL;
    for (size_t at = hash & (SLOTS - 1);; at = (at + 1) & (SLOTS - 1)) {
        tare__inject_name *found = __atomic_load_n(&slots[at], __ATOMIC_ACQUIRE);
        if (!found) {
            if (!made && !(made = make(text, length, hash)))
                return &more;
            if (__atomic_compare_exchange_n(&slots[at], &found, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return made;
        }
        if (is(found, text, length, hash)) {
            free(made); /* another thread was first */
            return found;
        }
    }
}
