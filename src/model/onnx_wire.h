/* onnx_wire: protobuf's wire, field by field, straight from the mapped file. Nothing is copied.
 * A reader belongs to one thread. Trusts nothing it reads.
 * Must not know what the fields mean. */
#ifndef TARE_MODEL_ONNX_WIRE_H
#define TARE_MODEL_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A piece of the file; a name, a message, data. Not NUL terminated. */
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
    const char *wrong; /* half a sentence; NULL: nothing is. `at` is then where. */
} tare__wire;

typedef struct tare__wire_field {
    uint32_t number;
    tare__wire_type type;
    uint64_t value;    /* of a varint or a fixed one */
    tare__slice bytes; /* of bytes */
} tare__wire_field;

static inline tare__wire tare__wire_of(tare__slice message)
{
    /* Of a message that is not there nothing is read; to add even 0 to NULL is not defined. */
    return (tare__wire){.at = message.data, .end = message.length ? message.data + message.length : message.data};
}

/* False at the end of the message, and where it is broken. */
bool tare__wire_next(tare__wire *wire, tare__wire_field *field);

/* A repeated number, packed or not: one after the other. `element` is how each is laid out. */
typedef struct tare__wire_numbers {
    tare__wire wire; /* over the message */
    uint32_t number;
    tare__wire_type element;
    tare__wire packed; /* over the run under way */
} tare__wire_numbers;
tare__wire_numbers tare__wire_numbers_of(tare__slice message, uint32_t number, tare__wire_type element);
bool tare__wire_number(tare__wire_numbers *numbers, uint64_t *value);
/* Whether all of them could be read. */
static inline bool tare__wire_numbers_sound(const tare__wire_numbers *numbers)
{
    return !numbers->wire.wrong && !numbers->packed.wrong;
}

static inline bool tare__slice_is(tare__slice slice, const char *text)
{
    size_t length = strlen(text);
    return slice.length == length && (length == 0 || memcmp(slice.data, text, length) == 0);
}

static inline bool tare__slice_equal(tare__slice a, tare__slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

#endif
