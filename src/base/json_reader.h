/* json_reader: JSON of any length, read token by token in bounded memory. Only outside of the target.
 * A reader belongs to one thread. Trusts nothing it reads.
 * Must not know any schema. */
#ifndef TARE_BASE_JSON_READER_H
#define TARE_BASE_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARE__JSON_DEPTH_MAX  256u
#define TARE__JSON_STRING_MAX ((size_t)64 << 10) /* longer strings are truncated */

/* Supplies bytes to the reader: their number, 0 at the end, negative on an error. */
typedef int64_t tare__json_source(void *context, void *into, size_t bytes);

typedef enum tare__json_token {
    TARE__JSON_END,    /* end of the document */
    TARE__JSON_BROKEN, /* see tare__json_reader.wrong; until tare__json_reader_resume */
    TARE__JSON_OBJECT,
    TARE__JSON_END_OBJECT,
    TARE__JSON_ARRAY,
    TARE__JSON_END_ARRAY,
    TARE__JSON_KEY,    /* text; its value follows */
    TARE__JSON_STRING, /* text, escapes resolved */
    TARE__JSON_NUMBER, /* text, as written */
    TARE__JSON_TRUE,
    TARE__JSON_FALSE,
    TARE__JSON_NULL /* NaN and infinities, too: not JSON, but programs write them */
} tare__json_token;

typedef struct tare__json_reader {
    /* of the last token */
    const char *text; /* until the next call; not NUL terminated */
    size_t length;
    uint64_t offset;   /* of its first byte in the document; of the damage */
    bool cut;          /* the string was longer */
    const char *wrong; /* description; NULL: no error */
    bool ended;        /* the error is that the document ends */
    bool failed;       /* the source failed: the error is that there is no more */
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
/* Skips the value that `token` began: a whole object or array. Returns its last token. */
tare__json_token tare__json_skip(tare__json_reader *reader, tare__json_token token);
/* After BROKEN inside the objects of an array: continues with the next of them, found by "}, {" and a quote, as if
 * OBJECT had just been read. `depth` is that of the array's elements. False: there is none. */
bool tare__json_reader_resume(tare__json_reader *reader, uint32_t depth);

/* The text of a number times `scale`, rounded down to an integer; false: out of range or not a number. Exact where a
 * double is not: 1790857026000000.123 microseconds are an integer number of nanoseconds. */
bool tare__json_scaled(const char *text, size_t length, int64_t scale, int64_t *value);
double tare__json_double_of(const char *text, size_t length); /* NaN: not a number */

/* A source of bytes in memory, for stream readers. */
typedef struct tare__memory_source {
    const void *at;
    size_t left;
} tare__memory_source;
int64_t tare__memory_read(void *source, void *into, size_t bytes);

#endif
