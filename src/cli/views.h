/* views: a trace shown in one of its formats, to standard output, standard error or files. One thread.
 * Must not know how anything is analyzed or laid out. */
#ifndef TARE_CLI_VIEWS_H
#define TARE_CLI_VIEWS_H

#include "analyze/analyze.h"
#include "cli.h"
#include "emit/emit.h"
#include "trace/trace.h"

/* The formats that consist of a folder of files. */
#define TARE__VIEW_CSV "csv"
#define TARE__VIEW_PARQUET "parquet" /* by the Python package: tare__cli_parquet */
#define TARE__VIEW_TENSORBOARD "tensorboard"

/* Chooses color and width for what `fd` refers to; a width that is set is kept. */
void tare__view_suit(tare__emit_options *options, int fd, bool terminal);

/* Whether the format needs the tables. */
bool tare__view_needs_tables(const char *format);

/* Writes one view, completely or not at all; `path` NULL: standard output. `analysis` may be NULL if the format needs
 * no tables. *unwritten distinguishes a write failure from a read failure. 0, or a status with a message. */
int tare__view_write(const char *format, const char *path, tare__trace *trace, const tare__analysis *analysis,
                     const tare__emit_options *options, bool *unwritten, tare__error *error);

/* The same for data that is not a trace: `write` shows `what`, to one file or to a folder of files. */
typedef int tare__view_tables(const void *what, const tare__emit_files *files, tare__error *error);
/* lines: text for a terminal, see tare__cli_output_lines. */
int tare__view_one(const char *path, const tare__emit_options *options, bool lines, tare__emit_writer *write,
                   const void *what, bool *unwritten, tare__error *error);
int tare__view_folder(const char *path, tare__view_tables *write, const void *what, bool *unwritten,
                      tare__error *error);

/* Whether a view could be written there, before any work is done for it: 0, or a status with a message. */
int tare__view_try(const char *format, const char *path, tare__error *error);

#endif
