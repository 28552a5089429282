/* engine: a trace for reading, with what a killed recording left in memory added to it first.
 * One thread.
 * Must not know who reads it. */
#ifndef TARE_ENGINE_ENGINE_H
#define TARE_ENGINE_ENGINE_H

#include "analyze/analyze.h"
#include "tare_engine.h"
#include "trace/trace.h"

/* Opens a trace, or that of a session folder. 0, or a status with a sentence. */
int tare__engine_open(const char *path, tare_engine_notice *notice, void *context, tare__trace **trace,
                      tare__error *error);
/* A file of the user's own rules. */
int tare__engine_read_rules(const char *path, tare__rules **rules, tare__error *error);

/* What a list of figures says of this machine, and of the revision of what is worked on. 0 or TARE_E_MEMORY. */
int tare__engine_describe(tare__figures *figures);

/* ---- between the files of this module ---- */
struct tare_engine_report {
    tare__analysis *analysis;
    char *path; /* of the trace, also where a session folder was opened */
};
/* A text that was made goes to its writer, or the status and its sentence to the caller; the text is freed. */
int tare__engine_finish(int status, const char *sentence, tare__text *text, tare_engine_write *write, void *context,
                        char error[TARE_ENGINE_ERROR]);
/* The status, with the sentence or, where it is empty, what the status says. */
int tare__engine_fail(int status, const char *sentence, char error[TARE_ENGINE_ERROR]);

#endif
