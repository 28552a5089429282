/* tare_engine: reads traces into tables and shows them, for the command and the Python package. Private for now: its
 * functions may change. An object is used by one thread at a time; different ones by any threads.
 * Must not know where output goes, nor print. */
#ifndef TARE_ENGINE_H
#define TARE_ENGINE_H

#include <stddef.h>

#include "arrow.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARE_ENGINE_API   __attribute__((visibility("default")))
#define TARE_ENGINE_ERROR 512 /* bytes of a sentence */

/* A trace that was read, with all its tables. */
typedef struct tare_engine_report tare_engine_report;

/* A sentence about something that the reader should know: data that were still in memory were added to the trace. */
typedef void tare_engine_notice(void *context, const char *sentence);

/* Reads a trace, or the session folder that a killed recording left, with the rules of a file (NULL: none). 0; or a
 * negative status as of tare.h with a sentence. `notice` may be NULL. */
TARE_ENGINE_API int tare_engine_open(const char *path, const char *rules, tare_engine_notice *notice, void *context,
                                     tare_engine_report **report, char error[TARE_ENGINE_ERROR]);
TARE_ENGINE_API void tare_engine_close(tare_engine_report *report); /* NULL is fine */

/* Names of the tables, in their order; NULL: past the last. */
TARE_ENGINE_API const char *tare_engine_table(size_t index);
/* Whether the table is one row, as `run` and `usage` are. */
TARE_ENGINE_API int tare_engine_is_single(const char *table);
/* A table by the Arrow C data interface: one record batch, independent of the report. Columns carry their unit and
 * meaning as metadata. */
TARE_ENGINE_API int tare_engine_arrow(const tare_engine_report *report, const char *table,
                                      struct ArrowArrayStream *stream, char error[TARE_ENGINE_ERROR]);
/* Why a value of a table of one row is null; NULL: it is not, or that is not known. */
TARE_ENGINE_API const char *tare_engine_absent(const tare_engine_report *report, const char *table, const char *column);

/* ---- showing ---------------------------------------------------------------------------------------- */
/* Takes output piece by piece. 0; else nothing more is written. */
typedef int tare_engine_write(void *context, const void *data, size_t bytes);
/* Shows a report as `tare report` does: "text" (80 columns, control characters replaced), "json", "html", "events",
 * "chrome", "perfetto". Formats with events read the trace again. `all`: every row. */
TARE_ENGINE_API int tare_engine_emit(const tare_engine_report *report, const char *format, int all,
                                     tare_engine_write *write, void *context, char error[TARE_ENGINE_ERROR]);

/* Formats of several files: `open` begins the next one, whose name may have folders in it; 0, else nothing more is
 * written. */
typedef struct tare_engine_files {
    int (*open)(void *context, const char *name);
    tare_engine_write *write;
    void *context;
} tare_engine_files;
/* "csv": a table each; "tensorboard": a Kineto trace for each process, and an XPlane. */
TARE_ENGINE_API int tare_engine_emit_files(const tare_engine_report *report, const char *format,
                                           const tare_engine_files *files, char error[TARE_ENGINE_ERROR]);

/* ---- other profilers' traces -------------------------------------------------------------------------- */
/* Makes a trace of one by torch.profiler, Chrome or ONNX Runtime; a file at `output` is replaced. */
TARE_ENGINE_API int tare_engine_import(const char *input, const char *output, char error[TARE_ENGINE_ERROR]);

#ifdef __cplusplus
}
#endif

#endif
