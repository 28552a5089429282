/* roofline.h: the loops used to measure the roofline.
 * Belongs to roofline.c and roofline_kernels.c.
 * Must not know how they are timed, nor what they are compared with. */
#ifndef TARE_ROOFLINE_H
#define TARE_ROOFLINE_H

#include "sample.h"

typedef struct tare__compute_kernel {
    tare__peak type;
    const char *instructions; /* "AVX2, FMA" */
    bool (*available)(void);
    void (*run)(uint64_t loops);
    double operations; /* of a loop: a multiply-add is two */
    uint64_t loops;    /* about a millisecond */
} tare__compute_kernel;

typedef struct tare__move_kernel {
    bool (*available)(void);
    void (*run)(char *at, size_t bytes, size_t further); /* over `bytes`, a multiple of 512, and the area `further`
                                                          * on */
    unsigned moved, areas; /* times `bytes`: bytes counted, and bytes passed over */
    bool cached;           /* also suitable for data in caches */
} tare__move_kernel;

const tare__compute_kernel *tare__compute_kernels(size_t *n);
const tare__move_kernel *tare__move_kernels(size_t *n);

#endif
