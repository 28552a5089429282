/* html: declarations shared by the files that write the page: the writer's state and helpers.
 * Owned by the calling thread; used inside emit, and by its tests to write pages from constructed tables.
 * Must not know how the page draws. */
#ifndef TARE_EMIT_HTML_H
#define TARE_EMIT_HTML_H

#include "emit/flush.h"

/* How much of a long table is written. The number of omitted rows is part of the data. */
typedef struct tare__html_limits {
    size_t spans;  /* rows of the span tree, the largest first */
    size_t rows;   /* of any other table */
    size_t points; /* of all charts together */
} tare__html_limits;
extern const tare__html_limits tare__html_limits_of_a_page;

typedef struct tare__html {
    tare__json json;
    tare__text text; /* JSON not yet passed to the sink */
    tare__text safe; /* the same, escaped for use inside <script> */
    const tare__analysis *analysis;
    tare__cells cells;
    const tare__timeline *timeline;
    const char *const *sources; /* as of an emitter's input */
    size_t n_sources;
    const tare__html_limits *limits;
    const uint32_t *room; /* maximum number of points of each metric */
    const tare__emit_sink *sink;
    tare__error *error;
    int status; /* the first failure; nothing is written after it */
} tare__html;

/* The whole page from tables. 0; TARE_E_SYSTEM if the sink refused, TARE_E_MEMORY with a message. */
int tare__html_write(const tare__emit_input *input, const tare__html_limits *limits, const tare__emit_sink *sink,
                     tare__error *error);

/* ---- parts of the data: each writes keys and values into the current object --------------------- */
void tare__html_tables(tare__html *page); /* all tables of the report's schema, including the following */
void tare__html_metrics(tare__html *page);
void tare__html_heat(tare__html *page);
void tare__html_stacks(tare__html *page);
void tare__html_timeline(tare__html *page);

/* Tables of the schema: as below, with the display properties of each column in "about"; `drawn` are additional columns
 * that only the page draws. */
typedef struct tare__html_drawn {
    const char *names[3];
    void (*put)(tare__html *page, const void *row, size_t index);
} tare__html_drawn;
void tare__html_open_schema(tare__html *page, const tare__table *table, const tare__html_drawn *drawn);
void tare__html_schema_row(tare__html *page, const tare__table *table, const tare__html_drawn *drawn, const void *row,
                           size_t index);

/* ---- values ------------------------------------------------------------------------------------- */
void tare__html_ns(tare__html *page, double ns);        /* integer nanoseconds, null if unknown */
void tare__html_known(tare__html *page, int64_t value); /* null for 0, which means "unknown" */
void tare__html_figure(tare__html *page,
                       double value); /* nine digits: enough for any measured value */
void tare__html_key_ns(tare__html *page, const char *key, double ns);
void tare__html_key_figure(tare__html *page, const char *key, double value);

/* A table: {"columns":["name",…],"rows":[[…],…],"left_out":n}. `columns` is separated by spaces; `put` writes the
 * values of a row in that order. */
typedef void tare__html_put_row(tare__html *page, size_t index);
void tare__html_table(tare__html *page, const char *key, const char *columns, size_t n, size_t left_out,
                      tare__html_put_row *put);
void tare__html_open_table(tare__html *page, const char *key, const char *columns);
void tare__html_open_row(tare__html *page);
void tare__html_close_row(tare__html *page); /* passes the text to the sink once there is enough */
void tare__html_close_table(tare__html *page, size_t left_out);

/* ---- packed: bytes that the page unpacks into arrays of numbers --------------------------------- */
void tare__pack_varint(tare__text *bytes,
                       double whole); /* 7 bits per byte, low ones first; below 0 and NaN: 0 */
void tare__pack_share(tare__text *bytes, double share); /* in units of 1/65,535, two bytes, the low one first */
/* An interval in integer nanoseconds: its distance from the end of the previous one, and its duration. None begins
 * before that end. */
void tare__pack_stretch(tare__text *bytes, double at, double lasts, double *end);
/* As a base64 string. */
void tare__html_packed(tare__html *page, const tare__text *bytes);
/* Points of a line: {"n":…,"low":…,"high":…,"packed":…}, merged until there are at most `most`. */
void tare__html_points(tare__html *page, const tare__metric_point *points, size_t n, size_t most);

#endif
