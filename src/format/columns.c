/* columns: combines byte strings, each compressed by zstd if that helps.
 * A squeezer belongs to one thread.
 * Must not know what is in the columns. */
#include <stdlib.h>
#include <string.h>

#define ZSTD_STATIC_LINKING_ONLY /* for ZSTD_c_literalCompressionMode; not used if it is rejected */
#include <zstd.h>
#include <zstd_errors.h>

#include "format.h"
#include "tare.h"

/* Below this size the overhead of a frame exceeds what compression saves. */
#define COMPRESS_FROM 48u
#define COLUMNS_MAX 32u

typedef struct buffer {
    uint8_t *data;
    size_t room;
} buffer;

struct tare__squeezer {
    ZSTD_CCtx *compress[2]; /* [scattered]; created at first use: most squeezers are used in one direction only */
    ZSTD_DCtx *expand;
    int level;
    buffer working;  /* the caller's, to build columns in */
    buffer packed;   /* compressed columns to be written */
    buffer unpacked; /* decompressed columns, until the next set */
};

tare__squeezer *tare__squeezer_new(void)
{
    tare__squeezer *squeezer = calloc(1, sizeof *squeezer);
    if (squeezer)
        squeezer->level = 1;
    return squeezer;
}

void tare__squeezer_free(tare__squeezer *squeezer)
{
    if (!squeezer)
        return;
    ZSTD_freeCCtx(squeezer->compress[0]);
    ZSTD_freeCCtx(squeezer->compress[1]);
    ZSTD_freeDCtx(squeezer->expand);
    free(squeezer->working.data);
    free(squeezer->packed.data);
    free(squeezer->unpacked.data);
    free(squeezer);
}

/* Searching for repeats in a scattered column takes four times as long as the entropy coder, without a gain: there
 * zstd searches few positions (64 bytes apart or more), in a small table. */
static void set_level(ZSTD_CCtx *context, int level, bool scattered)
{
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, level < 5 ? 7 : 0);
    if (!scattered || level >= 5)
        return;
    ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, 6);
    /* Only the entropy coder is useful here; by default zstd omits it at such levels. */
    if (!ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, ZSTD_lcm_huffman)))
        ZSTD_CCtx_setParameter(context, ZSTD_c_targetLength, 64);
}

void tare__squeezer_level(tare__squeezer *squeezer, int level)
{
    if (level == squeezer->level)
        return;
    squeezer->level = level;
    for (int scattered = 0; scattered < 2; scattered++)
        if (squeezer->compress[scattered])
            set_level(squeezer->compress[scattered], level, scattered);
}

/* Makes space; the previous content is lost. */
static uint8_t *make_room(buffer *buffer, size_t bytes)
{
    if (buffer->data && bytes <= buffer->room)
        return buffer->data;
    size_t room = buffer->room ? buffer->room : 4096;
    while (room < bytes)
        room *= 2;
    free(buffer->data);
    buffer->data = malloc(room);
    buffer->room = buffer->data ? room : 0;
    return buffer->data;
}

uint8_t *tare__squeezer_room(tare__squeezer *squeezer, size_t bytes)
{
    return make_room(&squeezer->working, bytes);
}

static ZSTD_CCtx *compressor(tare__squeezer *squeezer, bool scattered)
{
    if (squeezer->compress[scattered])
        return squeezer->compress[scattered];
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (!context)
        return NULL;
    set_level(context, squeezer->level, scattered);
    /* The directory has the size and the block has the checksum. */
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0);
    ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 0);
    return squeezer->compress[scattered] = context;
}

/* Bytes written to `out`, or 0 if the column is better stored uncompressed. Running out of memory does not lose the
 * column: it is only larger. */
static size_t compress_column(tare__squeezer *squeezer, const tare__column *column, bool scattered, uint8_t *out)
{
    ZSTD_CCtx *context = column->bytes < COMPRESS_FROM ? NULL : compressor(squeezer, scattered);
    if (!context)
        return 0;
    size_t bytes = ZSTD_compress2(context, out, column->bytes - 1, column->data, column->bytes);
    return ZSTD_isError(bytes) ? 0 : bytes;
}

int tare__columns_put(tare__squeezer *squeezer, const tare__column *columns, size_t n, tare__text *out)
{
    return tare__columns_put_scattered(squeezer, columns, n, 0, out);
}

int tare__columns_put_scattered(tare__squeezer *squeezer, const tare__column *columns, size_t n,
                                uint32_t scattered, tare__text *out)
{
    size_t total = 0, packed_bytes[COLUMNS_MAX];
    for (size_t i = 0; i < n; i++) {
        if (columns[i].bytes > TARE__COLUMNS_BYTES_MAX - total)
            return TARE_E_USAGE;
        total += columns[i].bytes;
    }
    uint8_t *packed = make_room(&squeezer->packed, total);
    if (!packed || n > COLUMNS_MAX)
        return packed ? TARE_E_USAGE : TARE_E_MEMORY;
    uint8_t *at = packed;
    for (size_t i = 0; i < n; i++) {
        size_t raw = columns[i].bytes;
        packed_bytes[i] = compress_column(squeezer, &columns[i], scattered >> i & 1, at);
        at += packed_bytes[i];
        tare__varint_put(out, raw);
        if (raw)
            tare__varint_put(out, packed_bytes[i] ? (uint64_t)packed_bytes[i] << 1 | 1 : (uint64_t)raw << 1);
    }
    at = packed;
    for (size_t i = 0; i < n; i++) {
        if (packed_bytes[i])
            tare__text_append(out, (const char *)at, packed_bytes[i]);
        else
            tare__text_append(out, (const char *)columns[i].data, columns[i].bytes);
        at += packed_bytes[i];
    }
    return out->failed ? TARE_E_MEMORY : 0;
}

/* Reads the directory: `columns` get their raw, `stored` their stored bytes, 0 if these are equal. */
static int read_directory(tare__reader *reader, tare__column *columns, uint64_t *stored, size_t n,
                          size_t limit, size_t *packed_total)
{
    uint64_t total = 0;
    *packed_total = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t raw = tare__read_varint(reader);
        uint64_t word = raw ? tare__read_varint(reader) : 0;
        if (reader->failed || raw > limit || raw > TARE__COLUMNS_BYTES_MAX - total)
            return TARE_E_INPUT;
        total += raw;
        columns[i].bytes = (size_t)raw;
        stored[i] = 0;
        if (word & 1) {
            stored[i] = word >> 1;
            *packed_total += (size_t)raw;
        }
        if (word & 1 ? stored[i] == 0 : word >> 1 != raw)
            return TARE_E_INPUT;
    }
    return 0;
}

static int expand_column(tare__squeezer *squeezer, uint8_t *out, size_t bytes, const uint8_t *data,
                         size_t stored)
{
    if (!squeezer->expand && !(squeezer->expand = ZSTD_createDCtx()))
        return TARE_E_MEMORY;
    size_t got = ZSTD_decompressDCtx(squeezer->expand, out, bytes, data, stored);
    if (ZSTD_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return TARE_E_MEMORY;
    return got == bytes ? 0 : TARE_E_INPUT;
}

int tare__columns_get(tare__squeezer *squeezer, tare__reader *reader, tare__column *columns, size_t n,
                      size_t limit)
{
    uint64_t stored[COLUMNS_MAX];
    size_t packed_total;
    if (n > COLUMNS_MAX)
        return TARE_E_USAGE;
    int status = read_directory(reader, columns, stored, n, limit, &packed_total);
    if (status)
        return status;
    uint8_t *out = packed_total ? make_room(&squeezer->unpacked, packed_total) : NULL;
    if (packed_total && !out)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *data = tare__read_bytes(reader, stored[i] ? stored[i] : columns[i].bytes);
        if (!data)
            return TARE_E_INPUT;
        columns[i].data = data;
        if (stored[i]) {
            status = expand_column(squeezer, out, columns[i].bytes, data, (size_t)stored[i]);
            if (status)
                return status;
            columns[i].data = out;
            out += columns[i].bytes;
        }
    }
    return 0;
}

int tare__columns_open(tare__squeezer *squeezer, tare__reader *reader, tare__reader *readers, size_t n, size_t limit)
{
    tare__column columns[COLUMNS_MAX];
    int status = tare__columns_get(squeezer, reader, columns, n, limit);
    for (size_t i = 0; i < n && !status; i++)
        readers[i] = (tare__reader){columns[i].data, columns[i].data + columns[i].bytes, false};
    return status;
}

bool tare__columns_done(const tare__reader *readers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (readers[i].failed || readers[i].at != readers[i].end)
            return false;
    return true;
}

int tare__columns_seal(tare__squeezer *squeezer, tare__block_header *header, uint8_t *const *starts,
                       uint8_t *const *ends, size_t n, tare__text *out)
{
    tare__column columns[COLUMNS_MAX];
    for (size_t i = 0; i < n && i < COLUMNS_MAX; i++)
        columns[i] = (tare__column){.data = starts[i], .bytes = (size_t)(ends[i] - starts[i])};
    size_t at = tare__block_begin(out);
    return tare__block_end(out, at, header, tare__columns_put(squeezer, columns, n, out));
}
