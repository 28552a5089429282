/* emit: shows tables or the raw stream. One output format per file behind one vtable, in one const table.
 * Owned by the calling thread. Opens no files: bytes go to the sink it is given.
 * Must not know how the tables were made, nor where the bytes go. */
#ifndef TARE_EMIT_H
#define TARE_EMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/analyze.h"
#include "base/base.h"

struct tare__trace;

typedef struct tare__emit_sink {
    int (*write)(void *context, const void *data, size_t bytes); /* 0; else the emitter stops */
    void *context;
} tare__emit_sink;

typedef struct tare__emit_options {
    unsigned width; /* columns of text; at least TARE__EMIT_WIDTH_MIN */
    bool colour;
    bool all;    /* merge and omit nothing */
    bool raw;    /* show self times as measured, without subtracting the recorder's overhead */
    bool pretty; /* JSON: indented */
    bool source; /* a page shows the code of the hottest lines */
    const char *trace; /* its name, for the suggested commands; NULL: suggest none */
} tare__emit_options;

#define TARE__EMIT_WIDTH     80
#define TARE__EMIT_WIDTH_MIN 72
#define TARE__EMIT_WIDTH_MAX 400

/* Shows something of a known type. 0; TARE_E_SYSTEM if the sink refused (it knows why), TARE_E_MEMORY; with a message
 * unless it was the sink. */
typedef int tare__emit_writer(const void *what, const tare__emit_options *options, const tare__emit_sink *sink,
                              tare__error *error);

typedef enum tare__emit_needs {
    TARE__EMIT_TABLES = 1, /* requires `analysis` */
    TARE__EMIT_CURSOR = 2, /* requires `trace`; it is read from start to end */
    TARE__EMIT_TIMELINE = 4 /* requires `timeline`, of at most TARE__EMIT_BOXES */
} tare__emit_needs;

#define TARE__EMIT_BOXES 100000

typedef struct tare__emit_input {
    const tare__analysis *analysis;
    struct tare__trace *trace;
    const tare__timeline *timeline;
    const char *const *sources; /* code of the first n_sources of analysis->lines; NULL: not known */
    size_t n_sources;
} tare__emit_input;

#define TARE__EMIT_SOURCES 40u /* lines with code in a page */

typedef struct tare__emitter {
    const char *name;
    unsigned needs; /* of tare__emit_needs */
    /* 0; TARE_E_SYSTEM if the sink refused (it knows why) or reading failed, TARE_E_MEMORY; with a message unless it
     * was the sink. */
    int (*emit)(const tare__emit_input *input, const tare__emit_options *options, const tare__emit_sink *sink,
                tare__error *error);
} tare__emitter;

extern const tare__emitter tare__emit_text, tare__emit_json, tare__emit_events, tare__emit_html, tare__emit_chrome,
    tare__emit_perfetto, tare__emit_folded, tare__emit_speedscope, tare__emit_pprof, tare__emit_flamegraph;

/* CSV is one file per table: one name and sink at a time. `open` returns the sink of a new file, NULL to stop. */
typedef struct tare__emit_files {
    const tare__emit_sink *(*open)(void *context, const char *name); /* "spans.csv" */
    int (*close)(void *context); /* the file opened last; 0, else the emitter stops */
    void *context;
} tare__emit_files;
/* ---- documents: generated from their schema
 * ------------------------------------------------------------------------ */
/* As JSON; parameters and result as for an emitter's `emit`. */
int tare__emit_document(const tare__document *document, const void *of, const tare__emit_options *options,
                        const tare__emit_sink *sink, tare__error *error);
/* The same, appended to a text; a failed allocation sets its `failed`. */
void tare__put_document(tare__text *out, const tare__document *document, const void *of, bool pretty);
/* One of its tables, as a key and its value in the current object. */
void tare__put_json_table(tare__json *json, tare__cells *cells, const tare__table *table);
/* As CSV: a file for each table, and for nested rows. 0; TARE_E_SYSTEM if a file refused (its owner knows why),
 * TARE_E_MEMORY. */
int tare__emit_csv(const tare__document *document, const void *of, const tare__emit_files *files, tare__error *error);
/* Only one of these files: "spans_numbers". */
int tare__emit_csv_table(const tare__document *document, const void *of, const char *name, const tare__emit_sink *sink,
                         tare__error *error);

/* The input of TensorBoard's plugins and HolisticTraceAnalysis: a Kineto JSON for each process, and an XPlane below
 * plugins/profile/. Names include directories. 0; TARE_E_SYSTEM if a file refused (its owner knows why) or reading
 * failed, TARE_E_MEMORY. */
int tare__emit_tensorboard(struct tare__trace *trace, const tare__emit_files *files, tare__error *error);

/* ---- a model instead of a run ---------------------------------------------------------------------------------- */
/* Each of a tare__model_view; CSV as tare__emit_csv. */
tare__emit_writer tare__emit_model_text, tare__emit_model_json, tare__emit_model_html;
int tare__emit_model_csv(const void *view, const tare__emit_files *files, tare__error *error);

/* A page of sections whose text the caller supplies, without a script. All text is escaped. */
typedef enum tare__page_kind {
    TARE__PAGE_TILES,        /* rows of three texts: label, value, detail */
    TARE__PAGE_TABLE,        /* rows with one text per column */
    TARE__PAGE_NOTES,        /* rows of one text, shown first */
    TARE__PAGE_LIST,         /* rows of one text, numbered */
    TARE__PAGE_DISTRIBUTION, /* y: latencies in ns; x: p50, p95 */
    TARE__PAGE_COURSE,       /* x, y; columns: the unit; three texts below it */
    TARE__PAGE_TRADE_OFF     /* x: latencies in ns, y: rates, z: 1 for the best; a text each; columns: the unit */
} tare__page_kind;
typedef struct tare__page_section {
    tare__page_kind kind;
    const char *title, *note; /* "": none */
    const char *columns;      /* separated by '|'; '#' before a numeric one, '%' before one of percentages, with bars */
    const char *const *cells; /* row by row */
    size_t n_cells;
    const double *x, *y, *z;
    size_t n_x, n_y, n_z;
} tare__page_section;
int tare__emit_sections(const char *title, const char *lead, const tare__page_section *sections, size_t n,
                        const tare__emit_sink *sink, tare__error *error);

const tare__emitter *tare__emit_find(const char *name); /* NULL: no such format */

#include "emit/check/check.h"
#include "emit/compare/comparison.h"
#include "emit/history/history.h"

#endif
