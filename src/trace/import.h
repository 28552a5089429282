/* import: converts traces of other profilers (Kineto, Chrome and ONNX Runtime JSON, plain or gzip) to a .tare file.
 * One thread. Memory does not grow with the file's length: records that do not fit are sorted in runs on disk.
 * Must not know how a trace is shown. */
#ifndef TARE_TRACE_IMPORT_H
#define TARE_TRACE_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "format/format.h"

typedef struct tare__import_options {
    const char *output;     /* the file to create */
    bool overwrite;         /* else a number is added to the name if it exists */
    const char *into;       /* instead of `output`: a closed .tare file of the same run, to which events are added;
                             * steps become plain spans, since the file has its own */
    const char *input_name; /* for messages, and for the trace's metadata */
    uint32_t records_max;   /* held in memory at a time; 0: the default */
    void (*progress)(void *context, uint64_t read_bytes); /* called at intervals; may be NULL */
    void *context;
} tare__import_options;

typedef struct tare__import_unknown {
    char phase[8];
    uint64_t events;
} tare__import_unknown;
#define TARE__IMPORT_UNKNOWN 16u

/* The result. Everything in the input that is not in the output is counted here. */
typedef struct tare__import_report {
    const char *format;          /* "Kineto", "ONNX Runtime", "Chrome" */
    char path[TARE__PATH_BYTES]; /* the file that was created */
    uint64_t json_bytes, events;
    uint64_t spans, operators, steps, complete, marks, counters;
    uint32_t processes, threads, tracks;
    uint64_t arrows;    /* flow events: the spans they connect get their flow from the correlation */
    uint64_t own;       /* events of the profiler about itself */
    uint64_t senseless; /* invalid: without a name or a time */
    uint64_t cut; /* Python functions that partly overlap other spans: ended there, or restarted */
    uint64_t overlapping; /* partly overlapping others of their thread: kept as complete spans */
    uint64_t unbegun;     /* ends without a begin */
    uint64_t unended;     /* begins without an end; they stay open */
    uint64_t crowded;     /* dropped: more threads, open spans or requests than are distinguished */
    uint64_t renamed;     /* spans whose name exceeds the maximum number of names */
    tare__import_unknown
        unknown[TARE__IMPORT_UNKNOWN]; /* unknown kinds of events; the last: all others */
    uint32_t unknown_count;
    uint64_t broken;        /* places where the JSON is malformed */
    uint64_t broken_offset; /* of the first */
    char broken_text[160];  /* the error at that place */
    bool torn;              /* the input is truncated */
} tare__import_report;

/* Reads the input to its end, or to where nothing more can be read, and writes everything before it. 0; TARE_E_INPUT if
 * nothing in it is usable, TARE_E_USAGE, TARE_E_SPACE, TARE_E_PERMISSION, TARE_E_SYSTEM or TARE_E_MEMORY, with a
 * message; in these cases there is no output. */
int tare__import(tare__json_source *source, void *context, const tare__import_options *options,
                 tare__import_report *report, tare__error *error);

/* A file as a source; gzip is detected by its first bytes. */
typedef struct tare__import_file tare__import_file;
int tare__import_open(const char *path, tare__import_file **file,
                      tare__error *error);                       /* as tare__trace_open */
int64_t tare__import_read(void *file, void *into, size_t bytes); /* a tare__json_source */
uint64_t tare__import_done(const tare__import_file *file,
                           uint64_t *of);         /* bytes of the file read so far */
void tare__import_close(tare__import_file *file); /* NULL is allowed */

#endif
