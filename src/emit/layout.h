/* layout: functions shared by the parts of the text report: cells of a line, colors, sentences broken into lines.
 * Owned by the calling thread; used inside emit only.
 * Must not know what the tables mean. */
#ifndef TARE_EMIT_PAGE_H
#define TARE_EMIT_PAGE_H

#include "emit.h"

typedef enum tare__page_style {
    TARE__PAGE_PLAIN,
    TARE__PAGE_STRONG,
    TARE__PAGE_FAINT,
    TARE__PAGE_WARNING,
    TARE__PAGE_BAR,
    TARE__PAGE_BAD
} tare__page_style;

typedef struct tare__page {
    tare__text *out;
    const tare__emit_options *options;
    unsigned name_columns; /* of the first cell of a table's lines */
    size_t lines;          /* maximum for the current part */
} tare__page;

#define TARE__PAGE_ENDLESS SIZE_MAX
/* Columns of the label that begins a usage line or a finding. */
#define TARE__PAGE_LABEL 10u

/* Columns of a cell, including the spaces before its number; the first number of a line is a count. */
#define TARE__PAGE_COUNT 7u
#define TARE__PAGE_CELL  9u

void tare__page_style_on(tare__page *page, tare__page_style style);
void tare__page_style_off(tare__page *page);
/* Text in a style. */
void tare__page_put(tare__page *page, tare__page_style style, const char *text);

/* A line's first cell: indented, shortened to its columns less `kept`, not padded. */
void tare__page_name(tare__page *page, unsigned indent, const char *name, unsigned kept);
/* The same with a mark behind the name, and spaces up to the first number. */
void tare__page_label(tare__page *page, unsigned indent, const char *name, const char *mark, tare__page_style style);
/* A number right-aligned in a cell; at least one space precedes it even if it is too wide. */
void tare__page_cell(tare__page *page, unsigned columns, const char *string);
/* Numbers in cells, by a letter each: c count that is the first number, n count, t time, b bytes, % share; a capital
 * letter has a cell that is one column wider. */
void tare__page_cells(tare__page *page, const char *kinds, const double *values);
#define TARE__PAGE_CELLS(page, kinds, ...) tare__page_cells(page, kinds, (const double[]){__VA_ARGS__})
/* A whole line: a name with a mark, and numbers. */
void tare__page_row(tare__page *page, unsigned indent, const char *name, const char *mark, const char *kinds,
                    const double *values);
#define TARE__PAGE_ROW(page, indent, name, mark, kinds, ...) \
    tare__page_row(page, indent, name, mark, kinds, (const double[]){__VA_ARGS__})
void tare__page_line_end(tare__page *page);

/* A table's first line, after an empty one: its title, then the names of its columns (separated by '|'), with as many
 * columns each as in `widths`; NULL: those of a count, then of cells. */
void tare__page_columns(tare__page *page, const char *title, const char *names, const unsigned *widths);
void tare__page_title(tare__page *page, const char *title, const char *columns); /* without widths */
/* A title alone, after an empty line. */
void tare__page_heading(tare__page *page, const char *title);
/* "… 12 more", with what they are and how to show them. */
void tare__page_more(tare__page *page, size_t more, const char *what);
/* How many of n rows to show when few are enough: all of them if omitting rows saves nothing. */
size_t tare__page_rows(const tare__page *page, size_t n, size_t few);

/* A sentence broken at spaces; lines after the first are indented by `hang`. Control characters become '?'. */
void tare__page_sentence(tare__page *page, unsigned hang, const char *sentence);
/* The same in at most this many lines; "…" marks truncated text. */
void tare__page_sentence_in(tare__page *page, unsigned hang, const char *sentence, size_t lines);
/* A sentence in a style, and the end of the line. */
void tare__page_say(tare__page *page, tare__page_style style, unsigned hang, const char *sentence);
/* The same in at most this many lines; frees the words, whose failure is the page's. */
void tare__page_words(tare__page *page, tare__page_style style, unsigned hang, tare__text *words, size_t lines);
/* A label in a style, then the words up to the end of the line, as tare__page_say and tare__page_words. */
void tare__page_labelled(tare__page *page, tare__page_style style, const char *label, const char *sentence);
void tare__page_labelled_words(tare__page *page, const char *label, tare__text *words);
size_t tare__page_lines_of(const tare__text *text);
const char *tare__page_spark(double share); /* a bar of that height, as high as a line */

#endif
