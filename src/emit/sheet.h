/* sheet: tables of the schema on pages without a script: a walk over their columns. Used inside emit only.
 * Owned by the calling thread. A failed allocation sticks in the text.
 * Must not know what the tables are of. */
#ifndef TARE_EMIT_SHEET_H
#define TARE_EMIT_SHEET_H

#include "analyze/analyze.h"

#define TARE__SHEET_ROWS 1000u /* more make no page that opens */

/* A drawing in a column of its own. */
typedef struct tare__sheet_drawing {
    const char *behind; /* the column of this name */
    void (*put_title)(tare__text *out, const void *context);
    void (*put)(tare__text *out, const void *context, const void *row);
    const void *context;
} tare__sheet_drawing;

typedef struct tare__sheet {
    tare__text *out;
    const void *of, *parent; /* as of tare__cells */
    const tare__table *table;
    const char *unit; /* of values whose unit is in a row around theirs */
    const char *link; /* the first cell leads to the place of this name and the row's number; NULL: nowhere */
    const tare__sheet_drawing *drawing;
    /* Private. */
    tare__cells cells;
    tare__flat columns[TARE__FLAT_MAX];
    size_t n;
} tare__sheet;

/* Up to the first row; columns for which none of these rows has anything are left out. */
void tare__sheet_open(tare__sheet *sheet, const char *label, const void *rows, size_t n);
void tare__sheet_row(tare__sheet *sheet, const void *row, size_t index);
void tare__sheet_close(tare__sheet *sheet);
/* All of them, or as many as a page can have: in the table's order, with a note of how many are left out. */
void tare__sheet_rows(tare__sheet *sheet, const char *label, const void *rows, size_t n);

/* A section with a heading: a table, or sentences; nothing where there are no rows. `parent`: of a table inside of
 * rows. */
void tare__sheet_section(tare__text *out, const void *of, const tare__table *table, const void *parent,
                         const void *rows, size_t n);
/* The same of a table of the document, and of tables inside of a single row. */
void tare__sheet_table(tare__text *out, const void *of, const tare__table *table);
void tare__sheet_inside(tare__text *out, const void *of, const tare__table *table);
/* Each value of a single row, between <dl> and </dl>. */
void tare__sheet_tiles(tare__text *out, const void *of, const tare__table *table);
/* What the columns of a table mean, for pages that travel without their documentation. */
void tare__sheet_key(tare__text *out, const tare__table *table);

#endif
