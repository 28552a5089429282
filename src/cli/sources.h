/* sources: the text of the hottest lines, from the user's own Python files. One thread.
 * Must not know how lines are shown. */
#ifndef TARE_CLI_SOURCES_H
#define TARE_CLI_SOURCES_H

#include "analyze/analyze.h"
#include "trace/trace.h"

/* Paths in a trace are not trusted. A line is read only from a regular file of at most 1 MiB that this user owns, in
 * directories that no other user can change, whose name ends in .py with links resolved, and that was not modified
 * after the run began; and only if the trace is this user's own. Texts of the first `n` of analysis->lines, NULL for
 * those that are not read. False: out of memory. */
bool tare__cli_sources_read(const tare__trace *trace, const tare__analysis *analysis, char **texts, size_t n);
void tare__cli_sources_free(char **texts, size_t n);

#endif
