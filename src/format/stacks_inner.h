/* stacks_inner: the two kinds of blocks of sampled stacks, shared by the writer of the tables and the codecs.
 * Owned by the calling thread.
 * Must not know how rows get their numbers. */
#ifndef TARE_FORMAT_STACKS_INNER_H
#define TARE_FORMAT_STACKS_INNER_H

#include "stacks.h"

typedef struct tare__stack_row {
    uint32_t caller, function;
    uint64_t line;
} tare__stack_row;

/* Consecutive rows of the tables, for one STACKS block. */
typedef struct tare__stack_part {
    const tare__stack_function *functions; /* equal files have the same address */
    const tare__stack_row *stacks;
    const tare__stack_thread *threads;
    uint32_t first_function, first_stack, first_thread; /* numbers of the first rows */
    uint32_t function_count, stack_count, thread_count;
} tare__stack_part;

#define TARE__STACK_ROWS_MAX 16384u       /* of a table, in a block as written */
#define TARE__STACK_COLUMN_MAX (1u << 20) /* bytes of a column in a STACKS block */

/* Appends a block. 0 or TARE_E_MEMORY. */
int tare__stack_part_seal(const tare__stack_part *part, tare__squeezer *squeezer, tare__text *out);
/* The same of 1 to TARE__STACK_SAMPLES_MAX samples, in order of time. */
int tare__stack_samples_seal(const tare__stack_sample *samples, uint32_t n, tare__squeezer *squeezer, tare__text *out);

#endif
