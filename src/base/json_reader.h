/* json_reader: JSON of any length, read token by token in bounded memory. Only outside of the target.
 * A reader belongs to one thread. Trusts nothing it reads.
 * Must not know any schema. */
#ifndef TARE_BASE_JSON_READER_H
#define TARE_BASE_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARE__JSON_DEPTH_MAX  256u
#define TARE__JSON_STRING_MAX ((size_t)64 << 10) /* what is longer is cut there */

/* Bytes for the reader: how many came, 0 at the end, negative when there is trouble. */
typedef int64_t tare__json_source(void *context, void *into, size_t bytes);

typedef enum tare__json_token {
    TARE__JSON_END,    /* the document is over */
    TARE__JSON_BROKEN, /* see tare__json_reader.wrong; stays so until tare__json_reader_resume */
    TARE__JSON_OBJECT,
    TARE__JSON_END_OBJECT,
    TARE__JSON_ARRAY,
    TARE__JSON_END_ARRAY,
    TARE__JSON_KEY,    /* text; its value follows */
    TARE__JSON_STRING, /* text, escapes resolved */
    TARE__JSON_NUMBER, /* text, as written */
    TARE__JSON_TRUE,
    TARE__JSON_FALSE,
    TARE__JSON_NULL /* NaN and infinities, too: no JSON, but programs write them */
} tare__json_token;

typedef struct tare__json_reader {
    /* of the token read last */
    const char *text; /* until the next call; not NUL terminated */
    size_t length;
    uint64_t offset;   /* of its first byte in the document; where it is broken */
    bool cut;          /* the string was longer */
    const char *wrong; /* half a sentence; NULL: nothing is */
    bool ended;        /* what is wrong is that the document ends */
    bool failed;       /* the source had trouble: what is wrong is that there is no more */
    uint32_t depth;    /* objects and arrays open */
    /* private */
    tare__json_source *read;
    void *context;
    char *window;
    size_t at, end;
    uint64_t base;
    bool drained, begun;
    unsigned expect;
    char *scratch;
    bool is_object[TARE__JSON_DEPTH_MAX];
} tare__json_reader;

/* False: no memory. */
bool tare__json_reader_open(tare__json_reader *reader, tare__json_source *read, void *context);
void tare__json_reader_close(tare__json_reader *reader);
tare__json_token tare__json_next(tare__json_reader *reader);
/* Past the value that `token` began: all of an object or array. The last token of it. */
tare__json_token tare__json_skip(tare__json_reader *reader, tare__json_token token);
/* After BROKEN inside of an array's objects: goes on with the next of them, found by "}, {" and a quote, as if OBJECT
 * had just been read. `depth` is that of the array's elements. False: there is none. */
bool tare__json_reader_resume(tare__json_reader *reader, uint32_t depth);

/* A number's text times `scale`, rounded down to a whole number; false: it does not fit or is no number. Exact where
 * a double is not: 1790857026000000.123 microseconds are whole nanoseconds. */
bool tare__json_scaled(const char *text, size_t length, int64_t scale, int64_t *value);
double tare__json_double_of(const char *text, size_t length); /* NaN: no number */

/* A source of bytes in memory, for who reads a stream. */
typedef struct tare__memory_source {
    const void *at;
    size_t left;
} tare__memory_source;
int64_t tare__memory_read(void *source, void *into, size_t bytes);

#endif
