/* import: traces of other profilers (Kineto, Chrome and ONNX Runtime JSON, plain or gzip) made into a .tare file.
 * One thread. Memory does not grow with the file's length: what does not fit is sorted in runs, on the disk.
 * Must not know how a trace is shown. */
#ifndef TARE_TRACE_IMPORT_H
#define TARE_TRACE_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "format/format.h"

typedef struct tare__import_options {
    const char *output;     /* the file to make */
    bool overwrite;         /* else a number is put into the name where it is taken */
    const char *into;       /* instead of `output`: a closed .tare file of the same run, to which it is added; steps
                               are plain spans then, since the file has its own */
    const char *input_name; /* for sentences, and for what the trace says of itself */
    uint32_t records_max;   /* held in memory at a time; 0: the default */
    void (*progress)(void *context, uint64_t read_bytes); /* NULL: nobody wants to know; now and then */
    void *context;
} tare__import_options;

typedef struct tare__import_unknown {
    char phase[8];
    uint64_t events;
} tare__import_unknown;
#define TARE__IMPORT_UNKNOWN 16u

/* What came of it. Everything that is in the input and not in the output is counted here. */
typedef struct tare__import_report {
    const char *format;          /* "Kineto", "ONNX Runtime", "Chrome" */
    char path[TARE__PATH_BYTES]; /* the file that was made */
    uint64_t json_bytes, events;
    uint64_t spans, operators, steps, complete, marks, counters;
    uint32_t processes, threads, tracks;
    uint64_t arrows;    /* flow events: the spans they join have their flow from the correlation */
    uint64_t own;       /* of the profiler that wrote them, about itself */
    uint64_t senseless; /* without a name or a time */
    uint64_t cut; /* functions of Python that overlap other spans in part: ended there, or begun again */
    uint64_t overlapping; /* in part with others of their thread: complete spans there */
    uint64_t unbegun;     /* ends without a begin */
    uint64_t unended;     /* begins without an end; they stay open */
    uint64_t crowded;     /* left out: more threads, open spans or requests than can be told apart */
    uint64_t renamed;     /* spans whose name is one too many */
    tare__import_unknown
        unknown[TARE__IMPORT_UNKNOWN]; /* kinds of events that are not known; the last: all others */
    uint32_t unknown_count;
    uint64_t broken;        /* places where the JSON is broken */
    uint64_t broken_offset; /* of the first */
    char broken_text[160];  /* what is wrong there */
    bool torn;              /* one of them is the end */
} tare__import_report;

/* Reads the input to its end or to where nothing can be read any more, and writes what was before. 0; TARE_E_INPUT
 * when nothing in it is of use, TARE_E_USAGE, TARE_E_SPACE, TARE_E_PERMISSION, TARE_E_SYSTEM or TARE_E_MEMORY, with a
 * sentence; there is no output then. */
int tare__import(tare__json_source *source, void *context, const tare__import_options *options,
                 tare__import_report *report, tare__error *error);

/* A file as a source; gzip is told by its first bytes. */
typedef struct tare__import_file tare__import_file;
int tare__import_open(const char *path, tare__import_file **file,
                      tare__error *error);                       /* as tare__trace_open */
int64_t tare__import_read(void *file, void *into, size_t bytes); /* a tare__json_source */
uint64_t tare__import_done(const tare__import_file *file,
                           uint64_t *of);         /* bytes of the file that were read */
void tare__import_close(tare__import_file *file); /* NULL is fine */

#endif
