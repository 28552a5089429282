/* schema: describes every table that Tare writes: the name, type, unit and meaning of each column, and where its value
 * is stored. JSON, CSV, the HTML page, user rules, Python and the documentation all follow it.
 * Constant; any thread. Must not know output formats. */
#ifndef TARE_ANALYZE_SCHEMA_H
#define TARE_ANALYZE_SCHEMA_H

#include <math.h>

#include "analyze/analyze.h"

/* ---- values ------------------------------------------------------------------------------------ */
typedef enum tare__type {
    TARE__TYPE_ABSENT, /* of a value only: not known */
    TARE__TYPE_TEXT,
    TARE__TYPE_NUMBER, /* double */
    TARE__TYPE_SIGNED, /* int64_t; all times in nanoseconds */
    TARE__TYPE_COUNT,  /* uint64_t */
    TARE__TYPE_FLAG,
    TARE__TYPE_ROW,    /* index of a row in another table, from 0 */
    TARE__TYPE_TEXTS,  /* several texts in order; NULL is absent */
    TARE__TYPE_NUMBERS, /* several doubles in order; NaN is absent */
    TARE__TYPE_PART,   /* one row of a nested table */
    TARE__TYPE_ROWS    /* rows of a nested table */
} tare__type;

typedef struct tare__value {
    tare__type type;
    union {
        const char *text;
        double number;
        int64_t whole;
        uint64_t count; /* also a row index, and the number of texts or rows */
        bool flag;
    };
    union {
        const char *const *texts;
        const double *numbers;
        const void *rows; /* of a part: the row */
    };
} tare__value;

static inline tare__value tare__value_text(const char *text)
{
    return (tare__value){.type = text ? TARE__TYPE_TEXT : TARE__TYPE_ABSENT, .text = text};
}

static inline tare__value tare__value_number(double number)
{
    return (tare__value){.type = isfinite(number) ? TARE__TYPE_NUMBER : TARE__TYPE_ABSENT, .number = number};
}

static inline tare__value tare__value_count(uint64_t value, bool known)
{
    return (tare__value){.type = known ? TARE__TYPE_COUNT : TARE__TYPE_ABSENT, .count = value};
}

static inline tare__value tare__value_whole(int64_t value, bool known)
{
    return (tare__value){.type = known ? TARE__TYPE_SIGNED : TARE__TYPE_ABSENT, .whole = value};
}

static inline tare__value tare__value_flag(bool flag)
{
    return (tare__value){.type = TARE__TYPE_FLAG, .flag = flag};
}

/* ---- columns ----------------------------------------------------------------------------------- */
/* How a value is stored in its row. "OR_0": 0 means not known. */
typedef enum tare__stored {
    TARE__STORED_TEXT,        /* const char *; NULL is absent */
    TARE__STORED_DOUBLE,      /* NaN is absent */
    TARE__STORED_DOUBLE_OR_0, /* … and so is 0 */
    TARE__STORED_NS,          /* a double in nanoseconds, whole in every output */
    TARE__STORED_WHOLE,       /* … in another unit */
    TARE__STORED_U64, TARE__STORED_U64_OR_0, TARE__STORED_U32, TARE__STORED_U32_OR_0, TARE__STORED_I64_OR_0,
    TARE__STORED_INT_OR_0, TARE__STORED_INT_OR_LESS, TARE__STORED_I64_OR_LESS, /* below 0: not known */
    TARE__STORED_BOOL,
    TARE__STORED_ROW,         /* uint32_t; TARE__NO_ROW is absent */
    TARE__STORED_PART,        /* a row of `table`, embedded */
    TARE__STORED_HERE,        /* an embedded array of rows, with its count at `count_at` */
    TARE__STORED_ROWS,        /* a pointer to rows and their count */
    TARE__STORED_MADE_TEXT, TARE__STORED_MADE_NUMBER, TARE__STORED_MADE_COUNT, TARE__STORED_MADE_SIGNED,
    TARE__STORED_MADE_FLAG, TARE__STORED_MADE_TEXTS, TARE__STORED_MADE_NUMBERS, TARE__STORED_MADE_PART,
    TARE__STORED_MADE_ROWS /* computed by a function */
} tare__stored;

#define TARE__TEXTS_MAX 256u /* a path is as long as its row is deep: all paths of a deep recursion are quadratic in
                              * size */

typedef struct tare__peak_level {
    const char *name;
    double bytes, per_s; /* bytes: NaN for memory, which has no limit here */
} tare__peak_level;

#define TARE__NUMBERS_MAX 64u

/* Context for computed values besides their row, and space to build them. */
typedef struct tare__cells {
    const void *of; /* the subject of the document: for a report, the tare__analysis */
    const void *parent; /* of a nested row: the row that contains it */
    double self_ns; /* of all spans; NaN: not computed yet */
    const char *texts[TARE__TEXTS_MAX];
    double numbers[TARE__NUMBERS_MAX];
    char text[1024];
    tare__peak_level levels[TARE__PEAK_LEVELS];
    bool failed; /* a value could not be computed: out of memory */
} tare__cells;

/* Display of a column or a table on pages. */
typedef enum tare__on_page {
    TARE__PAGE_SHOWN,
    TARE__PAGE_UNDER,  /* in the cell of the preceding column: after `between`, or in small type below it */
    TARE__PAGE_HIDDEN, /* in the data of the page of a run only */
    TARE__PAGE_NOT
} tare__on_page;

struct tare__table;
typedef struct tare__schema_column {
    const char *name; /* in every output; ends with the unit if there is one: total_ns, memory_bytes */
    tare__stored stored;
    tare__metric_unit unit; /* TARE__SHOW_VARIES: given by the row, at `unit_at` */
    const char *meaning;    /* for the documentation; Markdown */
    size_t at;
    size_t through; /* offset of a pointer in the row to the struct that contains `at`, plus 1; 0: the row itself */
    size_t count_at, unit_at;
    tare__value (*make)(tare__cells *cells, const void *row, size_t index);
    const struct tare__table *table; /* of a row index, of parts and rows */
    size_t absent_at;                /* offset of a const char * in the row: why there is no value; 0: none */
    const char *absent;              /* … the reason, if not in the row; NULL: there is always a value */
    bool key;                        /* identifies the row: repeated for nested rows in flat formats */
    const char *between;             /* separator of several texts in one cell of a flat format */
    bool (*bulky)(const void *row);  /* rows omitted from JSON unless everything is requested */
    /* Display: */
    tare__on_page page;
    const char *label;     /* NULL: derived from the name; of a part, a prefix for its columns */
    const char *unit_by;   /* the column of the row whose text is the unit */
    const char *prefix;    /* before the value, if the column `prefix_by` is true ("!": false): "≥ " */
    const char *prefix_by;
    const char *words;     /* replaces texts: "same=no significant change|significant=" */
    bool bar;              /* a share that is also drawn as a bar */
    bool mark;             /* its text is the CSS class of the row: `worse` */
} tare__schema_column;

typedef enum tare__shape {
    TARE__SHAPE_ROWS,    /* an array of objects */
    TARE__SHAPE_SINGLE,  /* one row */
    TARE__SHAPE_TOP,     /* one row whose values are at the top of the document */
    TARE__SHAPE_VALUES,  /* one column: an array of values */
    TARE__SHAPE_TUPLES   /* an array of arrays: too many rows to repeat the names */
} tare__shape;

typedef struct tare__table {
    const char *name;
    tare__shape shape;
    const char *meaning; /* of a row; Markdown */
    const tare__schema_column *columns;
    size_t n_columns;
    size_t row_bytes;
    size_t through;      /* offset of a pointer in the document's subject to the struct with `at`, plus 1; 0: none */
    size_t at, count_at; /* of a nested table, given by the column */
    bool (*present)(const void *row); /* of a single row: whether it exists */
    tare__on_page page;
    const char *label; /* display label; NULL: derived from the name */
    const char *by;    /* on pages without a script, the column to sort by, largest first */
} tare__table;

/* What a command writes: its tables, in order. */
typedef struct tare__document {
    const char *name; /* "tare-report"; NULL: not written */
    unsigned version, minor;
    const tare__table *const *tables;
    size_t n_tables;
} tare__document;

extern const tare__document tare__document_report; /* of a tare__analysis */
extern const tare__document tare__document_baseline; /* of tare__figures */
extern const tare__table tare__table_figures;        /* a figure of these */
extern const tare__document tare__document_model;    /* of a tare__model_view */
extern const tare__table tare__table_measured;       /* its part with charts */
extern const tare__document tare__document_compare; /* of a tare__compare_view */
extern const tare__table tare__table_compared;      /* its figures, which the page divides into sections */
extern const tare__document tare__document_check; /* of a tare__check_view */
extern const tare__document tare__document_history_list; /* of a tare__kept_list */
extern const tare__document tare__document_history_show; /* of a tare__kept_run */
extern const tare__document tare__document_history_trend; /* of tare__kept_trends */
extern const tare__table tare__table_trends, tare__table_changes; /* all of them, and the changes of one */

/* Results of `tare doctor`. */
typedef struct tare__doctor_view {
    const struct tare__sample_check *checks;
    size_t n;
} tare__doctor_view;
extern const tare__document tare__document_doctor; /* of these */

/* Tables of a report that the page handles specially. */
extern const tare__table tare__table_spans, tare__table_steps, tare__table_epochs, tare__table_metrics;
const tare__table *tare__schema_table(size_t index); /* those of a report; NULL: past the last */
const tare__table *tare__schema_find(const char *name, size_t length);
const tare__schema_column *tare__schema_find_column(const tare__table *table, const char *name, size_t length);

tare__type tare__schema_type(const tare__schema_column *column);
/* The column that names a row of this table; NULL: none. */
const tare__schema_column *tare__table_label(const tare__table *table);

/* ---- reading ----------------------------------------------------------------------------------- */
bool tare__table_is_single(const tare__table *table);
void tare__cells_begin(tare__cells *cells, const void *of);
/* Number of rows of a table of the document; of a single one 1, or 0 if it does not exist. */
size_t tare__table_rows(const void *of, const tare__table *table);
const void *tare__table_row(const void *of, const tare__table *table, size_t index);
/* Computed texts and rows are valid until the next call. */
tare__value tare__schema_cell(tare__cells *cells, const tare__schema_column *column, const void *row, size_t index);
/* Why there is no value. NULL: not known. */
const char *tare__schema_absent(const tare__schema_column *column, const void *row);
/* The unit of a value of this column in this row. */
tare__metric_unit tare__schema_unit(const tare__schema_column *column, const void *row);

/* ---- flat: for formats whose rows hold single values ---------------------------------------------- */
/* A column of a table or of its parts, with joined names: p50_interval_low_ns. */
#define TARE__FLAT_DEPTH 4u
typedef struct tare__flat {
    char name[64];
    const tare__schema_column *column;
    const tare__schema_column *parts[TARE__FLAT_DEPTH]; /* that contain the column, outermost first; then NULL */
} tare__flat;
#define TARE__FLAT_MAX 160u
/* Returns their number; columns of type ROWS are separate tables. */
size_t tare__flat_columns(const tare__table *table, tare__flat columns[TARE__FLAT_MAX]);
/* The row that the column is read from, inside of the table's row; NULL: a part is absent. */
const void *tare__flat_row(tare__cells *cells, const tare__flat *flat, const void *row, size_t index);

/* ---- display ---------------------------------------------------------------------------------------------------- */
#define TARE__LABEL_BYTES 96
/* "Peak memory" */
const char *tare__table_title(char out[TARE__LABEL_BYTES], const tare__table *table);
const char *tare__flat_label(char out[TARE__LABEL_BYTES], const tare__flat *flat);
/* Whether tables show it: a column that is not hidden, in parts that are not hidden. */
bool tare__flat_is_shown(const tare__flat *flat);
/* "12.3 ms", "4.1 GiB", "+3.2 %". */
const char *tare__schema_show(char out[TARE__VALUE_BYTES], double value, tare__metric_unit unit);

/* Machine-readable: "bytes", "seconds", "per_s"; NULL: no unit. */
const char *tare__unit_word(tare__metric_unit unit);

#endif
