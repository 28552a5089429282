/* slices: a table from names to numbers. Names stay where they are.
 * Owned by the calling thread.
 * Must not know what is named. */
#ifndef TARE_MODEL_SLICES_H
#define TARE_MODEL_SLICES_H

#include "base/base.h"
#include "onnx_wire.h"

#define TARE__SLICES_NONE UINT32_MAX

typedef struct tare__slices {
    struct tare__slices_entry *entries;
    size_t room, n;
    tare__index index;
} tare__slices;

/* Adds a name, or changes the number of an existing one. False: out of memory. */
bool tare__slices_add(tare__slices *table, tare__slice name, uint32_t number);
uint32_t tare__slices_find(const tare__slices *table, tare__slice name); /* TARE__SLICES_NONE */
void tare__slices_free(tare__slices *table);

#endif
