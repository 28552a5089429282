/* proto: protocol buffers as bytes: fields of a message appended to a text.
 * Owned by the calling thread; used inside emit only.
 * Must not know any schema. */
#ifndef TARE_EMIT_PROTO_H
#define TARE_EMIT_PROTO_H

#include <string.h>

#include "base/base.h"
#include "format/format.h"

static inline void tare__proto_number(tare__text *message, unsigned field, uint64_t value)
{
    tare__varint_put(message, field << 3);
    tare__varint_put(message, value);
}

static inline void tare__proto_fixed64(tare__text *message, unsigned field, uint64_t value)
{
    char bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(value >> 8 * i);
    tare__varint_put(message, field << 3 | 1);
    tare__text_append(message, bytes, sizeof bytes);
}

static inline void tare__proto_double(tare__text *message, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    tare__proto_fixed64(message, field, bits);
}

static inline void tare__proto_bytes(tare__text *message, unsigned field, const char *bytes, size_t length)
{
    tare__varint_put(message, field << 3 | 2);
    tare__varint_put(message, length);
    tare__text_append(message, bytes, length);
}

/* A nested message; a failure in it fails the outer one. */
static inline void tare__proto_message(tare__text *message, unsigned field, const tare__text *inner)
{
    tare__proto_bytes(message, field, inner->data, inner->length);
    message->failed |= inner->failed;
}

/* Proto strings are UTF-8: each invalid byte becomes U+FFFD. */
void tare__proto_text(tare__text *message, unsigned field, const char *text, size_t length);

#endif
