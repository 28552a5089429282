/* inputs: generated values of a model's inputs, and default sizes of open dimensions: by
 * name, type and shape. Pure; any thread.
 * Must not know the runtime, nor the user's options. */
#ifndef TARE_MODEL_INPUTS_H
#define TARE_MODEL_INPUTS_H

#include "onnx.h"

typedef struct tare__input {
    const char *name;
    int type; /* ONNX's number */
    int rank;
    const int64_t *dims;
    uint32_t open; /* bits: dimensions that the file leaves open */
    int64_t rows;  /* rows of the table that its values index; 0: unknown */
} tare__input;

/* Values for one of the inputs; lengths and sizes are taken from the others. */
tare__model_fill tare__input_fill(const tare__input *all, size_t n, size_t at);

/* Default sizes: of sequences, sides of images. */
typedef struct tare__input_sizes {
    int64_t sequence, side;
} tare__input_sizes;
extern const int64_t tare__input_sequences[], tare__input_sides[]; /* to try, the usual one first */
extern const size_t tare__input_sequences_count, tare__input_sides_count;

/* A dimension that is not set otherwise. `symbol` may be empty. *sequence or *side is set if the size came from
 * there. */
int64_t tare__input_dimension(const tare__onnx_graph *graph, size_t input, int dimension, tare__input_sizes sizes,
                              bool *sequence, bool *side);
/* Rows of the table that an input's values index; 0: none found. */
int64_t tare__input_rows(const tare__onnx_graph *graph, tare__slice input);

#endif
