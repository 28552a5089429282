/* onnx_wire: reads the protobuf wire format, field by field, directly from the mapped file. Nothing is copied.
 * A reader belongs to one thread. Trusts nothing it reads.
 * Must not know what the fields mean. */
#ifndef TARE_MODEL_ONNX_WIRE_H
#define TARE_MODEL_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A part of the file: a name, a message, data. Not NUL terminated. */
typedef struct tare__slice {
    const uint8_t *data;
    size_t length;
} tare__slice;

typedef enum tare__wire_type {
    TARE__WIRE_VARINT = 0,
    TARE__WIRE_FIXED64 = 1,
    TARE__WIRE_BYTES = 2,
    TARE__WIRE_FIXED32 = 5
} tare__wire_type;

typedef struct tare__wire {
    const uint8_t *at, *end;
    const char *wrong; /* part of a sentence; NULL: no error. `at` is then its position. */
} tare__wire;

typedef struct tare__wire_field {
    uint32_t number;
    tare__wire_type type;
    uint64_t value;    /* of a varint or a fixed one */
    tare__slice bytes; /* of bytes */
} tare__wire_field;

static inline tare__wire tare__wire_of(tare__slice message)
{
    /* A missing message is empty; adding even 0 to NULL is undefined. */
    return (tare__wire){.at = message.data, .end = message.length ? message.data + message.length : message.data};
}

/* False at the end of the message, and if it is damaged. */
bool tare__wire_next(tare__wire *wire, tare__wire_field *field);

/* A repeated number, packed or not, one by one. `element` is its layout. */
typedef struct tare__wire_numbers {
    tare__wire wire; /* over the message */
    uint32_t number;
    tare__wire_type element;
    tare__wire packed; /* over the current packed run */
} tare__wire_numbers;
tare__wire_numbers tare__wire_numbers_of(tare__slice message, uint32_t number, tare__wire_type element);
bool tare__wire_number(tare__wire_numbers *numbers, uint64_t *value);
/* Whether all of them could be read. */
static inline bool tare__wire_numbers_sound(const tare__wire_numbers *numbers)
{
    return !numbers->wire.wrong && !numbers->packed.wrong;
}

/* The value of a field or number of 32 bits. */
static inline float tare__wire_float(uint64_t value)
{
    uint32_t bits = (uint32_t)value;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline tare__slice tare__slice_of(const char *text)
{
    return (tare__slice){(const uint8_t *)text, strlen(text)};
}

/* The two arguments of "%.*s". */
#define TARE__SLICE_SHOWN(slice) (int)((slice).length < 100 ? (slice).length : 100), (const char *)(slice).data

static inline bool tare__slice_is(tare__slice slice, const char *text)
{
    size_t length = strlen(text);
    return slice.length == length && (length == 0 || memcmp(slice.data, text, length) == 0);
}

static inline bool tare__slice_is_any(tare__slice slice, const char *const *texts, size_t n)
{
    size_t i = 0;
    while (i < n && !tare__slice_is(slice, texts[i]))
        i++;
    return i < n;
}

static inline bool tare__slice_equal(tare__slice a, tare__slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

#endif
