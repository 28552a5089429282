/* half: converts a model in single precision to half precision: weights, constants and casts; inputs and
 * outputs are not changed. Owned by the calling thread.
 * Must not know the runtime. */
#ifndef TARE_MODEL_HALF_H
#define TARE_MODEL_HALF_H

#include "onnx.h"
#include "runner.h"
#include "slices.h"

/* Rounded to nearest, ties to even; values that are too large become the largest, infinities are kept. */
uint16_t tare__half_of(float value);

/* tare__half_convert (runner.h) in memory; external weights are not searched for, and a model with some is refused. */
int tare__half_convert_bytes(const void *data, size_t bytes, tare__text *file, tare__error *error);

/* ---- for its own files ------------------------------------------------------------------------------------------- */
typedef struct tare__half {
    tare__onnx model;
    tare__slices renamed; /* inputs and outputs in single precision: inside they have another name */
    tare__slices kept;    /* tensors that must not be converted */
    tare__text out;       /* the graph */
} tare__half;

/* Suffix of the other name. */
#define TARE__HALF_INSIDE ((tare__slice){(const uint8_t *)"_tare_half", 10})

bool tare__half_has(const tare__slices *names, tare__slice name);
int tare__half_find_names(tare__half *half); /* 0 or a status with a message */
int tare__half_refuse(tare__half *half, const char *why); /* TARE_E_USAGE */

void tare__half_put_number(tare__text *out, uint32_t field, uint64_t value);
void tare__half_put_length(tare__text *out, uint32_t field, size_t bytes); /* this many bytes follow */
void tare__half_put_bytes(tare__text *out, uint32_t field, const void *data, size_t bytes);
void tare__half_put_parts(tare__text *out, uint32_t field, const tare__slice *parts, size_t n); /* one after another */
void tare__half_put_field(tare__text *out, const tare__wire_field *field); /* unchanged */
/* A TensorProto in half precision, without its field number. */
int tare__half_put_tensor(tare__half *half, tare__slice message, tare__text *out);
/* … from floats. `rank` 0: a scalar. */
void tare__half_put_floats(const float *values, size_t n, int rank, tare__text *out);

#endif
