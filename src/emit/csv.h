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
void tare__csv_count(csv *to, uint64_t value);
void tare__csv_signed(csv *to, int64_t value);
void tare__csv_absent(csv *to);
void tare__csv_ns(csv *to, double ns); /* to a thousandth: no clock knows more */
void tare__csv_known(csv *to, int64_t value); /* 0 stands for what is not known */
void tare__csv_flag(csv *to, bool value);
void tare__csv_end_row(csv *to);

#endif
