/* tare_engine: reads traces into tables, for the command and the Python package. Private for now: its functions may
 * change. An object is used by one thread at a time; different ones by any threads.
 * Must not know who shows the tables, nor print. */
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

#ifdef __cplusplus
}
#endif

#endif
