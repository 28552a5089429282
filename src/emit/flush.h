/* flush: passes a text to the sink, so that output written in pieces needs little memory.
 * Owned by the calling thread; used inside emit only.
 * Must not know the formats. */
#ifndef TARE_EMIT_FLUSH_H
#define TARE_EMIT_FLUSH_H

#include "emit.h"

#define TARE__EMIT_PIECE (64u << 10)

/* Passes all of the text to the sink and clears it. 0, TARE_E_SYSTEM if the sink refused, TARE_E_MEMORY. */
int tare__emit_flush(tare__text *text, const tare__emit_sink *sink, tare__error *error);

/* The end of an output: passes the rest of the text to the sink, unless it failed before, and frees it. */
int tare__emit_end(tare__text *text, int status, const tare__emit_sink *sink, tare__error *error);

/* The same once there is enough text. */
static inline int tare__emit_flush_piece(tare__text *text, const tare__emit_sink *sink, tare__error *error)
{
    return text->length < TARE__EMIT_PIECE && !text->failed ? 0 : tare__emit_flush(text, sink, error);
}

#endif
