/* sheet: tables of the schema on pages without a script, generated from their columns. Used inside emit only.
 * Owned by the calling thread. A failed allocation sets `failed` of the text.
 * Must not know what the tables contain. */
#ifndef TARE_EMIT_SHEET_H
#define TARE_EMIT_SHEET_H

#include "analyze/analyze.h"

#define TARE__SHEET_ROWS 1000u /* a page with more would be too large to open */

/* A drawing in a separate column. */
typedef struct tare__sheet_drawing {
    const char *behind; /* placed after the column of this name */
    void (*put_title)(tare__text *out, const void *context);
    void (*put)(tare__text *out, const void *context, const void *row);
    const void *context;
} tare__sheet_drawing;

typedef struct tare__sheet {
    tare__text *out;
    const void *of, *parent; /* as in tare__cells */
    const tare__table *table;
    const char *unit; /* of values whose unit is in an enclosing row */
    const char *link; /* the first cell links to the anchor of this name and the row's number; NULL: no link */
    const tare__sheet_drawing *drawing;
    /* Private. */
    tare__cells cells;
    tare__flat columns[TARE__FLAT_MAX];
    size_t n;
} tare__sheet;

/* Writes the table up to the first row; columns in which none of these rows has a value are omitted. */
void tare__sheet_open(tare__sheet *sheet, const char *label, const void *rows, size_t n);
void tare__sheet_row(tare__sheet *sheet, const void *row, size_t index);
void tare__sheet_close(tare__sheet *sheet);
/* All rows, or as many as a page can have: in the table's order, with a note of how many are omitted. */
void tare__sheet_rows(tare__sheet *sheet, const char *label, const void *rows, size_t n);

/* A section with a heading: a table, or sentences; nothing if there are no rows. Of a table of the document, and for
 * tables nested in a single row. */
void tare__sheet_table(tare__text *out, const void *of, const tare__table *table);
void tare__sheet_inside(tare__text *out, const void *of, const tare__table *table);
/* Each value of a single row, between <dl> and </dl>. */
void tare__sheet_tiles(tare__text *out, const void *of, const tare__table *table);
/* What the columns of a table mean, for pages that are read without their documentation. */
void tare__sheet_key(tare__text *out, const tare__table *table);

#endif
