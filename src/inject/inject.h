/* inject: shared by the injected libraries: names as call sites, and each thread's open ranges.
 * Any thread of the target. Nothing here prints, exits, waits, or changes errno.
 * Must not know anything outside the target, nor how the spans are used. */
#ifndef TARE_INJECT_H
#define TARE_INJECT_H

#include <stddef.h>
#include <stdint.h>

#include "tare.h"

/* A name used by an instrumented library, once per process. Sites of both kinds, since the same name may be used in
 * several domains. The begin of an operator touches one cache line, which is rarely in the cache: the hash
 * identifies the text, since a collision of two of 12,000 texts among 2^64 is negligible. */
typedef struct tare__inject_name {
    _Alignas(64) uint64_t hash; /* 0: not complete */
    uint64_t own[5];            /* for the library: a handle that its interface prescribes */
    tare_site as_operator, as_span;
} tare__inject_name;

/* The entry of this text, created at first use. After 12,000 names, and if out of memory, "(more names)". No lock: a
 * lookup never waits. */
tare__inject_name *tare__inject_name_of(const char *text, size_t length);

/* ---- ranges of the calling thread ------------------------------------------------------------------ */
/* Begins a span and stores it, so that the end names the same site whatever else was begun in between. */
int tare__inject_push(tare_site *site); /* number of ranges open before it */
int tare__inject_pop(void);             /* number of ranges open after it; -1: none was open */

#endif
