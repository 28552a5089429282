/* gzip: a deflate stream in a gzip wrapper, piece by piece.
 * Owned by the calling thread.
 * Must not know what the bytes mean. */
#include "gzip.h"

#include <stdlib.h>

#ifdef TARE__ZLIB
#include <zlib.h>

#define PIECE (64u << 10)

struct tare__gzip {
    const tare__emit_sink *sink;
    z_stream stream;
    unsigned char out[PIECE];
};

tare__gzip *tare__gzip_new(const tare__emit_sink *sink)
{
    tare__gzip *gzip = calloc(1, sizeof *gzip);
    if (!gzip)
        return NULL;
    gzip->sink = sink;
    if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK)
        return gzip;
    free(gzip);
    return NULL;
}

void tare__gzip_free(tare__gzip *gzip)
{
    if (gzip)
        deflateEnd(&gzip->stream);
    free(gzip);
}

static int squeeze(tare__gzip *gzip, int flush, tare__error *error)
{
    int state = Z_OK;
    do {
        gzip->stream.next_out = gzip->out;
        gzip->stream.avail_out = PIECE;
        state = deflate(&gzip->stream, flush);
        size_t made = PIECE - gzip->stream.avail_out;
        if (state == Z_STREAM_ERROR)
            return tare__fail(error, TARE_E_SYSTEM, "gzip failed");
        if (made && gzip->sink->write(gzip->sink->context, gzip->out, made) != 0)
            return TARE_E_SYSTEM;
    } while (gzip->stream.avail_out == 0 || (flush == Z_FINISH && state != Z_STREAM_END));
    return 0;
}

int tare__gzip_write(tare__gzip *gzip, const void *data, size_t bytes, tare__error *error)
{
    gzip->stream.next_in = (unsigned char *)data; /* zlib does not change it */
    gzip->stream.avail_in = (unsigned)bytes;
    return squeeze(gzip, Z_NO_FLUSH, error);
}

int tare__gzip_end(tare__gzip *gzip, tare__error *error)
{
    return squeeze(gzip, Z_FINISH, error);
}

#else
struct tare__gzip {
    const tare__emit_sink *sink;
};

tare__gzip *tare__gzip_new(const tare__emit_sink *sink)
{
    tare__gzip *gzip = calloc(1, sizeof *gzip);
    if (gzip)
        gzip->sink = sink;
    return gzip;
}

void tare__gzip_free(tare__gzip *gzip)
{
    free(gzip);
}

int tare__gzip_write(tare__gzip *gzip, const void *data, size_t bytes, tare__error *error)
{
    (void)error;
    return gzip->sink->write(gzip->sink->context, data, bytes) ? TARE_E_SYSTEM : 0;
}

int tare__gzip_end(tare__gzip *gzip, tare__error *error)
{
    (void)gzip, (void)error;
    return 0;
}
#endif
