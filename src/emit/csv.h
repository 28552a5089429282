/* csv: cells and rows, shared by the files that write tables of them.
 * Owned by the calling thread; used inside emit only.
 * Must not know where the files are. */
#ifndef TARE_EMIT_CSV_H
#define TARE_EMIT_CSV_H

#include "emit.h"

typedef struct csv {
    tare__text text;
    const tare__emit_sink *sink;
    tare__error *error;
    unsigned cells; /* in this row */
    int status;
} csv;

/* The next cell of the row; an absent value is an empty one (NULL, "", NaN). */
void tare__csv_text(csv *to, const char *text);
void tare__csv_double(csv *to, double value);
void tare__csv_ns(csv *to, double ns); /* to a thousandth: no clock knows more */
void tare__csv_count(csv *to, uint64_t value);
void tare__csv_signed(csv *to, int64_t value);
void tare__csv_absent(csv *to);
void tare__csv_known(csv *to, int64_t value); /* 0 stands for what is not known */
void tare__csv_row(csv *to, uint32_t row);    /* TARE__NO_ROW: none */
void tare__csv_flag(csv *to, bool value);
void tare__csv_end_row(csv *to);

/* The word at a place of a table of them. */
const char *tare__csv_word(const char *const *words, size_t n, uint32_t at);
#define WORD(words, at) tare__csv_word(words, TARE__COUNT_OF(words), at)

/* Tables of one thing: key, value, unit, why it is absent (csv_keys.c). */
void tare__csv_put_run(csv *to, const tare__analysis *from);
void tare__csv_put_usage(csv *to, const tare__analysis *from);
void tare__csv_put_phases(csv *to, const tare__analysis *from);
void tare__csv_put_own(csv *to, const tare__analysis *from);

/* Tables of rows (csv_spans.c, csv_sampled.c). */
void tare__csv_put_spans(csv *to, const tare__analysis *from);
void tare__csv_put_steps(csv *to, const tare__analysis *from);
void tare__csv_put_epochs(csv *to, const tare__analysis *from);
void tare__csv_put_slowest(csv *to, const tare__analysis *from);
void tare__csv_put_numbers(csv *to, const tare__analysis *from);
void tare__csv_put_operators(csv *to, const tare__analysis *from);
void tare__csv_put_modules(csv *to, const tare__analysis *from);
void tare__csv_put_module_operators(csv *to, const tare__analysis *from);
void tare__csv_put_aggregates(csv *to, const tare__analysis *from);
void tare__csv_put_counters(csv *to, const tare__analysis *from);
void tare__csv_put_marks(csv *to, const tare__analysis *from);
void tare__csv_put_tracks(csv *to, const tare__analysis *from);
void tare__csv_put_processes(csv *to, const tare__analysis *from);
void tare__csv_put_threads(csv *to, const tare__analysis *from);
void tare__csv_put_metrics(csv *to, const tare__analysis *from);
void tare__csv_put_points(csv *to, const tare__analysis *from);
void tare__csv_put_findings(csv *to, const tare__analysis *from);
void tare__csv_put_figures(csv *to, const tare__analysis *from);

#endif
