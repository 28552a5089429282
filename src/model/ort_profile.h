/* ort_profile: ONNX Runtime's profile of a model's nodes: time, types, shapes, run by run.
 * Owned by the calling thread. Trusts nothing it reads.
 * Must not know the model's file. */
#ifndef TARE_MODEL_ORT_PROFILE_H
#define TARE_MODEL_ORT_PROFILE_H

#include "ort.h"

#define TARE__PROFILE_RUNS_MAX 64u
#define TARE__PROFILE_ENDS_MAX 8u

typedef struct tare__profile_end { /* an input or an output */
    const char *type;              /* "float32" */
    size_t rank;
    int64_t dims[8];
} tare__profile_end;

typedef struct tare__profile_node {
    const char *name, *op, *provider;
    size_t n_inputs, n_outputs;    /* at most as many as there are places below */
    tare__profile_end inputs[TARE__PROFILE_ENDS_MAX], outputs[2];
    double bytes;                  /* of inputs, weights and outputs, as reported by the runtime; NaN: unknown */
    double output_bytes;           /* of its outputs alone */
    uint64_t calls;                /* in all runs that count */
    double run_ns[TARE__PROFILE_RUNS_MAX]; /* the sum of its calls in each, without nodes of its subgraphs */
} tare__profile_node;

typedef struct tare__profile {
    tare__profile_node **nodes; /* in the order of their first end */
    size_t n_nodes;
    size_t runs;                /* that count: the first one is dropped if there are more */
    tare__arena *arena;
} tare__profile;

/* 0; TARE_E_INPUT: damaged, or without nodes; TARE_E_SYSTEM, TARE_E_MEMORY. With a message. */
int tare__profile_read(const char *path, tare__arena *arena, tare__profile *profile, tare__error *error);
int tare__profile_read_from(tare__json_source *read, void *context, tare__arena *arena, tare__profile *profile,
                            tare__error *error);
/* Multiply-accumulates of one call from the shapes of its inputs and outputs. False: no rule, or no shape. */
bool tare__profile_macs(const tare__profile_node *node, uint64_t *macs);
/* Whether the runtime inserted it to convert a type. */
bool tare__profile_cast(const tare__profile_node *node);

#endif
