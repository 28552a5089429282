/* attached: the numbers of a span that is still open, summed by name as the span table does.
 * Owned by the calling thread; used inside emit only.
 * Must not know the formats. */
#ifndef TARE_EMIT_ATTACHED_H
#define TARE_EMIT_ATTACHED_H

#include <stdint.h>

#include "trace/trace.h"

#define TARE__ATTACHED_MAX 64u /* different names on one span */

typedef struct tare__attached {
    uint64_t left_out; /* numbers of further names */
    uint32_t n, room;
    struct tare__attached_number {
        double sum;
        uint32_t name; /* file name id */
    } numbers[];
} tare__attached;

/* Adds to the list at *own, which is created if necessary. 0 or TARE_E_MEMORY. */
int tare__emit_attach(const tare__trace *trace, void **own, uint32_t name, double value);

#endif
