/* half: a model in single precision written anew in half precision: weights, constants and casts; what goes in and
 * comes out stays as it was. Owned by the calling thread.
 * Must not know the runtime. */
#ifndef TARE_MODEL_HALF_H
#define TARE_MODEL_HALF_H

#include "onnx.h"
#include "runner.h"
#include "slices.h"

/* Rounded to the nearest, ties to even; what is too large becomes the largest there is, infinities stay. */
uint16_t tare__half_of(float value);

/* tare__half_convert (runner.h) in memory; weights beside it are not looked for, and one that has some is refused. */
int tare__half_convert_bytes(const void *data, size_t bytes, tare__text *file, tare__error *error);

/* ---- for its own files ------------------------------------------------------------------------------------------- */
typedef struct tare__half {
    tare__onnx model;
    tare__slices renamed; /* inputs and outputs in single precision: inside they have another name */
    tare__slices kept;    /* tensors that must stay as they are */
    tare__text out;       /* the graph */
} tare__half;

/* What the other name ends in. */
#define TARE__HALF_INSIDE ((tare__slice){(const uint8_t *)"_tare_half", 10})

bool tare__half_has(const tare__slices *names, tare__slice name);
int tare__half_find_names(tare__half *half); /* 0 or a status with a sentence */
int tare__half_refuse(tare__half *half, const char *why); /* TARE_E_USAGE */

void tare__half_put_number(tare__text *out, uint32_t field, uint64_t value);
void tare__half_put_length(tare__text *out, uint32_t field, size_t bytes); /* so many bytes follow */
void tare__half_put_bytes(tare__text *out, uint32_t field, const void *data, size_t bytes);
void tare__half_put_parts(tare__text *out, uint32_t field, const tare__slice *parts, size_t n); /* one after another */
void tare__half_put_field(tare__text *out, const tare__wire_field *field); /* as it was */
/* A TensorProto in half precision, without its number of a field. */
int tare__half_put_tensor(tare__half *half, tare__slice message, tare__text *out);
/* … made of floats. `rank` 0: a single one. */
void tare__half_put_floats(const float *values, size_t n, int rank, tare__text *out);

#endif
