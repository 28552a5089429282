/* gzip: bytes compressed on their way to a sink. A build without zlib passes them on as they are.
 * Owned by the calling thread; used inside emit only.
 * Must not know what the bytes mean. */
#ifndef TARE_EMIT_GZIP_H
#define TARE_EMIT_GZIP_H

#include "emit/emit.h"

typedef struct tare__gzip tare__gzip;
tare__gzip *tare__gzip_new(const tare__emit_sink *sink); /* NULL: out of memory */
void tare__gzip_free(tare__gzip *gzip);                  /* NULL is allowed */
/* 0; TARE_E_SYSTEM if the sink refused. */
int tare__gzip_write(tare__gzip *gzip, const void *data, size_t bytes, tare__error *error);
int tare__gzip_end(tare__gzip *gzip, tare__error *error);

#endif
