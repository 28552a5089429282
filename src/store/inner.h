/* inner: the interface of a database to the store: statements with values in, rows out. One backend per file.
 * Owned by the store's thread.
 * Must not know runs. */
#ifndef TARE_STORE_INNER_H
#define TARE_STORE_INNER_H

#include "store.h"

typedef enum tare__sql_kind {
    TARE__SQL_NULL,
    TARE__SQL_INTEGER,
    TARE__SQL_REAL,
    TARE__SQL_TEXT,
    TARE__SQL_BYTES
} tare__sql_kind;

typedef struct tare__sql_value {
    tare__sql_kind kind;
    int64_t integer;
    double real;
    const void *data; /* text or bytes; text is not NUL terminated */
    size_t bytes;
} tare__sql_value;

static inline tare__sql_value tare__sql_integer(int64_t value)
{
    return (tare__sql_value){.kind = TARE__SQL_INTEGER, .integer = value};
}
/* NaN is NULL: missing. */
tare__sql_value tare__sql_real(double value);
tare__sql_value tare__sql_text(const char *text); /* NULL is NULL */
tare__sql_value tare__sql_bytes(const void *data, size_t bytes);

/* 0, or a status that ends the statement. */
typedef int tare__sql_row(void *context, const tare__sql_value *columns, size_t n);

typedef struct tare__backend {
    const char *name;
    bool (*suits)(const char *place);
    /* Statements that differ between databases. */
    const char *begin; /* for writing: excludes other writers while the schema changes or texts are removed */
    const char *begin_alone;
    const char *like;              /* case-insensitive */
    const char *const *migrations; /* number i + 1 upgrades schema i to i + 1; statements separated by ; */
    int n_migrations;
    const char *set_version; /* printf format: %d */
    /* *db is set as soon as there is something to close. 0, TARE__STORE_NONE or a status with a message. */
    int (*open)(const char *place, const tare__store_options *options, void **db, tare__error *error);
    void (*close)(void *db);
    /* The schema of the database; 0: empty. */
    int (*version)(void *db, int *version, tare__error *error);
    /* One statement with $1, $2, … once for each of `n_sets` sets of n values; rows go to `row` (NULL: discarded).
     * *changed counts rows inserted, changed or removed (may be NULL). */
    int (*execute)(void *db, const char *sql, const tare__sql_value *values, size_t n, size_t n_sets,
                   tare__sql_row *row, void *context, int64_t *changed, tare__error *error);
    /* After the last statement of storing a run: periodic maintenance. May be NULL. */
    void (*tidy)(void *db);
} tare__backend;

extern const tare__backend tare__store_sqlite, tare__store_postgres;

struct tare__store {
    const tare__backend *backend;
    void *db;
    char place[TARE__STORE_PLACE_BYTES];
    bool in_transaction; /* by tare__store_begin */
};

/* One statement, one set. */
int tare__store_run(tare__store *store, const char *sql, const tare__sql_value *values, size_t n,
                    tare__sql_row *row, void *context, int64_t *changed, tare__error *error);
/* Begins a transaction unless one is open; `mine` tells whether leave has to end it. */
int tare__store_enter(tare__store *store, bool alone, bool *mine, tare__error *error);
/* Commits if status is 0, else rolls back; returns the first failure. */
int tare__store_leave(tare__store *store, bool mine, int status, tare__error *error);

/* For `row`: the integer in the first column, 0 for NULL. The context is an int64_t. */
int tare__sql_take_integer(void *context, const tare__sql_value *columns, size_t n);
/* A column's text in an arena, NULL for NULL. */
const char *tare__sql_copy(tare__arena *arena, const tare__sql_value *value);

/* The tables, with the types of both databases. `serial`: an auto-incremented key; `bytes`, `real`: types; `plain`:
 * text that compares by bytes; `keyed`: rows are stored in key order. Each text is stored once, in a separate table:
 * rows stay small, and a filter checks each text once. */
#define TARE__STORE_SCHEMA_1(serial, bytes, real, plain, keyed)                                            \
    "CREATE TABLE tare_text (id " serial ", text TEXT NOT NULL UNIQUE);"                                   \
    "CREATE TABLE tare_run (seq " serial ", id " plain " NOT NULL UNIQUE, started BIGINT NOT NULL,"        \
    " kind BIGINT, command BIGINT, directory BIGINT, host BIGINT, machine BIGINT, cpu BIGINT,"             \
    " revision BIGINT,"                                                                                    \
    " dirty INTEGER, status INTEGER, signal INTEGER NOT NULL, elapsed " real ", trace TEXT);"              \
    "CREATE INDEX tare_run_started ON tare_run (started);"                                                 \
    "CREATE TABLE tare_tag (run BIGINT NOT NULL, tag BIGINT NOT NULL, PRIMARY KEY (run, tag))" keyed ";"   \
    "CREATE INDEX tare_tag_tag ON tare_tag (tag);"                                                         \
    "CREATE TABLE tare_figure (run BIGINT NOT NULL, name BIGINT NOT NULL, unit BIGINT, per BIGINT,"        \
    " better INTEGER NOT NULL, exact INTEGER NOT NULL, value " real ", total " real ", n BIGINT NOT NULL," \
    " each_sample BIGINT NOT NULL, samples " bytes ", PRIMARY KEY (run, name))" keyed ";"                  \
    "CREATE INDEX tare_figure_name ON tare_figure (name, run, value)"

#endif
