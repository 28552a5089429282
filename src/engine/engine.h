/* engine: opens a trace for reading, after adding the data that a killed recording left in memory.
 * One thread.
 * Must not know who reads it. */
#ifndef TARE_ENGINE_ENGINE_H
#define TARE_ENGINE_ENGINE_H

#include "analyze/analyze.h"
#include "tare_engine.h"
#include "trace/trace.h"

/* Opens a trace, or that of a session folder. 0, or a status with a message. */
int tare__engine_open(const char *path, tare_engine_notice *notice, void *context, tare__trace **trace,
                      tare__error *error);
/* Reads a file of user-defined rules. */
int tare__engine_read_rules(const char *path, tare__rules **rules, tare__error *error);

/* Adds a description of this machine, and of the revision in the current directory, to a list of figures. 0 or
 * TARE_E_MEMORY. */
int tare__engine_describe(tare__figures *figures);

/* ---- between the files of this module ---- */
struct tare_engine_report {
    tare__analysis *analysis;
    char *path; /* of the trace, also where a session folder was opened */
};
/* Passes a text to its writer, or the status and its message to the caller; frees the text. */
int tare__engine_finish(int status, const char *sentence, tare__text *text, tare_engine_write *write, void *context,
                        char error[TARE_ENGINE_ERROR]);
/* Returns the status, with the message or, if it is empty, the text of the status. */
int tare__engine_fail(int status, const char *sentence, char error[TARE_ENGINE_ERROR]);

#endif
