/* inject: what the injected libraries share: names as call sites, and each thread's open ranges.
 * Any thread of the target. Nothing here prints, exits, waits, or changes errno.
 * Must not know anything outside the target, nor what is made of the spans. */
#ifndef TARE_INJECT_H
#define TARE_INJECT_H

#include <stddef.h>
#include <stdint.h>

#include "tare.h"

/* A name that an instrumented library gave us, once for the process. Sites of both kinds, since the same name may
 * be used in several domains. What an operator's begin touches is one cache line, which is rarely a warm one: the hash
 * is the text's identity there, as two of 12,000 texts that share one of 2^64 are not to be expected. */
typedef struct tare__inject_name {
    _Alignas(64) uint64_t hash; /* 0: not complete */
    uint64_t own[5];            /* the library's: a handle that its interface prescribes */
    tare_site as_operator, as_span;
} tare__inject_name;

/* The name of this text, made at first sight. Past 12,000 names, and without memory, "(more names)".
 * No lock: a thread that looks up waits for nobody. */
tare__inject_name *tare__inject_name_of(const char *text, size_t length);

/* ---- ranges of the calling thread ------------------------------------------------------------------ */
/* Begins a span and remembers it, so that the end names the same site whatever else was begun in between. */
int tare__inject_push(tare_site *site); /* how many were open before it */
int tare__inject_pop(void);             /* how many are open after it; -1: none was */

#endif
