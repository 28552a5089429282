/* Fuzzes the streaming reader of JSON: any bytes, in pieces of any size, going on where it is broken. One thread.
 * Must not know any schema. */
#include <string.h>

#include "base/base.h"

typedef struct piece {
    const uint8_t *at;
    size_t left, at_once;
} piece;

static int64_t read_piece(void *context, void *into, size_t bytes)
{
    piece *from = context;
    size_t n = from->left < bytes ? from->left : bytes;
    n = n < from->at_once ? n : from->at_once;
    memcpy(into, from->at, n);
    from->at += n;
    from->left -= n;
    return (int64_t)n;
}

/* A sum of all tokens, which must not depend on the pieces. */
static uint64_t sum_of(const uint8_t *data, size_t bytes, size_t at_once)
{
    piece from = {data, bytes, at_once};
    tare__json_reader reader;
    uint64_t sum = 0;
    if (!tare__json_reader_open(&reader, read_piece, &from))
        return 0;
    for (;;) {
        tare__json_token token = tare__json_next(&reader);
        sum = sum * 31 + token;
        if (token == TARE__JSON_END)
            break;
        if (token == TARE__JSON_BROKEN) {
            sum = sum * 31 + reader.offset;
            if (!tare__json_reader_resume(&reader, 1))
                break;
            continue;
        }
        for (size_t i = 0; i < reader.length && (token >= TARE__JSON_KEY); i++)
            sum = sum * 31 + (unsigned char)reader.text[i];
        int64_t value;
        if (token == TARE__JSON_NUMBER && tare__json_scaled(reader.text, reader.length, 1000, &value))
            sum += (uint64_t)value;
    }
    tare__json_reader_close(&reader);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes > 0 && sum_of(data, bytes, SIZE_MAX) != sum_of(data, bytes, 1 + data[0] % 7))
        __builtin_trap();
    return 0;
}
