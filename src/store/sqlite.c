/* sqlite: the history in a file of this user, in write-ahead mode, so that readers and a writer do not block
 * each other. The library is opened at run time: loading it at startup would cost every command half a millisecond.
 * Owned by the store's thread. Must not know runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inner.h"

#define APPLICATION_ID 0x74617265 /* "tare" */
/* The log is checkpointed beyond this size: that waits for the disk, so not at every run; and a log this short is
 * read in less than a millisecond when the next command opens it. */
#define LOG_BYTES_MAX (1u << 20)

/* Result, name, whether it is required, parameters. */
#define FUNCTIONS(F) \
    F(int, open_v2, true, (const char *, sqlite3 **, int, const char *)) \
    F(int, close_v2, true, (sqlite3 *)) \
    F(int, prepare_v2, true, (sqlite3 *, const char *, int, sqlite3_stmt **, const char **)) \
    F(int, step, true, (sqlite3_stmt *)) \
    F(int, reset, true, (sqlite3_stmt *)) \
    F(int, finalize, true, (sqlite3_stmt *)) \
    F(int, bind_parameter_index, true, (sqlite3_stmt *, const char *)) \
    F(int, bind_null, true, (sqlite3_stmt *, int)) \
    F(int, bind_int64, true, (sqlite3_stmt *, int, sqlite3_int64)) \
    F(int, bind_double, true, (sqlite3_stmt *, int, double)) \
    F(int, bind_text, true, (sqlite3_stmt *, int, const char *, int, void (*)(void *))) \
    F(int, bind_blob, true, (sqlite3_stmt *, int, const void *, int, void (*)(void *))) \
    F(int, column_count, true, (sqlite3_stmt *)) \
    F(int, column_type, true, (sqlite3_stmt *, int)) \
    F(sqlite3_int64, column_int64, true, (sqlite3_stmt *, int)) \
    F(double, column_double, true, (sqlite3_stmt *, int)) \
    F(const void *, column_blob, true, (sqlite3_stmt *, int)) \
    F(const unsigned char *, column_text, true, (sqlite3_stmt *, int)) \
    F(int, column_bytes, true, (sqlite3_stmt *, int)) \
    F(int, busy_timeout, true, (sqlite3 *, int)) \
    F(int, changes, true, (sqlite3 *)) \
    F(const char *, errmsg, true, (sqlite3 *)) \
    F(int, extended_errcode, true, (sqlite3 *)) \
    F(int, db_config, true, (sqlite3 *, int, ...)) \
    F(int, wal_checkpoint_v2, true, (sqlite3 *, const char *, int, int *, int *)) \
    F(int, system_errno, false, (sqlite3 *))

#define SLOT(result, name, required, parameters) result (*name) parameters;
static struct {
    FUNCTIONS(SLOT)
} api;

#define SYMBOL(result, name, required, parameters) {"sqlite3_" #name, offsetof(__typeof__(api), name), required},
static const tare__dl_symbol symbols[] = {FUNCTIONS(SYMBOL)};

typedef struct database {
    sqlite3 *handle;
    char path[TARE__STORE_PLACE_BYTES];
} database;

static bool suits(const char *place)
{
    return strstr(place, "://") == NULL;
}

/* ---- sentences -------------------------------------------------------------------------------------- */
/* What the code means for the user. */
static int failed(const database *db, int code, tare__error *error)
{
    const char *path = db->path;
    int system = db->handle && api.system_errno ? api.system_errno(db->handle) : 0;
    switch (code & 0xff) {
    case SQLITE_NOTADB: return tare__fail(error, TARE_E_INPUT, "'%.300s' is not an SQLite database", path);
    case SQLITE_CORRUPT:
        return tare__fail(error, TARE_E_INPUT,
                          "the history in '%.300s' is damaged; move the file away to start a new one",
                          path);
    case SQLITE_FULL:
        return tare__fail(error, TARE_E_SPACE, "no space left for the history in '%.300s'", path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return tare__fail(error, TARE_E_PERMISSION, "no permission to write the history in '%.300s'", path);
    case SQLITE_CANTOPEN:
        return tare__fail(error, system == EACCES ? TARE_E_PERMISSION : TARE_E_SYSTEM,
                          "cannot open the history in '%.300s': %s", path,
                          strerror(system               ? system
                                   : access(path, F_OK) ? errno
                                                        : EACCES));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return tare__fail(error, TARE_E_SYSTEM, "timeout: another program has locked the history in '%.300s'", path);
    case SQLITE_NOMEM: return tare__no_memory(error);
    case SQLITE_IOERR:
        return tare__fail(
            error, system == ENOSPC || system == EDQUOT || system == EFBIG ? TARE_E_SPACE : TARE_E_SYSTEM,
            "cannot write or read the history in '%.300s': %s", path,
            system ? strerror(system) : "input/output error");
    default:
        return tare__fail(error, TARE_E_INPUT, "the history in '%.250s': %.200s", path,
                          db->handle ? api.errmsg(db->handle) : "cannot be opened");
    }
}

/* ---- statements ------------------------------------------------------------------------------------- */
static int bind(sqlite3_stmt *statement, const int *places, const tare__sql_value *values, size_t n)
{
    int code = SQLITE_OK;
    for (size_t i = 0; i < n && code == SQLITE_OK; i++) {
        const tare__sql_value *value = &values[i];
        if (places[i] == 0)
            continue;
        switch (value->kind) {
        case TARE__SQL_NULL: code = api.bind_null(statement, places[i]); break;
        case TARE__SQL_INTEGER: code = api.bind_int64(statement, places[i], value->integer); break;
        case TARE__SQL_REAL: code = api.bind_double(statement, places[i], value->real); break;
        case TARE__SQL_TEXT:
            code = api.bind_text(statement, places[i], value->data, (int)value->bytes, SQLITE_STATIC);
            break;
        case TARE__SQL_BYTES:
            code = api.bind_blob(statement, places[i], value->data, (int)value->bytes, SQLITE_STATIC);
            break;
        }
    }
    return code;
}

static tare__sql_value column(sqlite3_stmt *statement, int i)
{
    switch (api.column_type(statement, i)) {
    case SQLITE_INTEGER: return tare__sql_integer(api.column_int64(statement, i));
    case SQLITE_FLOAT: return tare__sql_real(api.column_double(statement, i));
    case SQLITE_TEXT: {
        const void *text = api.column_text(statement, i);
        return (tare__sql_value){.kind = text ? TARE__SQL_TEXT : TARE__SQL_NULL,
                                 .data = text,
                                 .bytes = (size_t)api.column_bytes(statement, i)};
    }
    case SQLITE_BLOB: {
        const void *data = api.column_blob(statement, i);
        return tare__sql_bytes(data, data ? (size_t)api.column_bytes(statement, i) : 0);
    }
    default: return (tare__sql_value){.kind = TARE__SQL_NULL};
    }
}

#define COLUMNS_MAX 24

static int hand_row(sqlite3_stmt *statement, tare__sql_row *row, void *context)
{
    tare__sql_value columns[COLUMNS_MAX];
    int n = api.column_count(statement);
    n = n > COLUMNS_MAX ? COLUMNS_MAX : n;
    for (int i = 0; i < n; i++)
        columns[i] = column(statement, i);
    return row(context, columns, (size_t)n);
}

/* One set to its end. *status is the sink's. */
static int step_all(sqlite3_stmt *statement, tare__sql_row *row, void *context, int *status)
{
    int code;
    while ((code = api.step(statement)) == SQLITE_ROW && *status == 0)
        if (row)
            *status = hand_row(statement, row, context);
    return code == SQLITE_ROW ? SQLITE_DONE : code;
}

#define VALUES_MAX 24

static int execute(void *context_of_db, const char *sql, const tare__sql_value *values, size_t n,
                   size_t n_sets, tare__sql_row *row, void *context, int64_t *changed, tare__error *error)
{
    database *db = context_of_db;
    int status = 0, code = SQLITE_OK;
    if (changed)
        *changed = 0;
    while (*sql && code == SQLITE_OK && status == 0) {
        sqlite3_stmt *statement = NULL;
        int places[VALUES_MAX];
        code = api.prepare_v2(db->handle, sql, -1, &statement, &sql);
        if (code != SQLITE_OK || !statement)
            break;
        for (size_t i = 0; i < n && i < VALUES_MAX; i++) {
            char name[16];
            snprintf(name, sizeof name, "$%zu", i + 1);
            places[i] = api.bind_parameter_index(statement, name);
        }
        for (size_t set = 0; set < n_sets && code == SQLITE_OK && status == 0; set++) {
            code = bind(statement, places, n ? values + set * n : values, n);
            if (code == SQLITE_OK)
                code = step_all(statement, row, context, &status);
            if (code == SQLITE_DONE) {
                code = SQLITE_OK;
                if (changed)
                    *changed += api.changes(db->handle);
            }
            api.reset(statement);
        }
        api.finalize(statement);
    }
    return code != SQLITE_OK ? failed(db, api.extended_errcode(db->handle), error) : status;
}

static int plain(database *db, const char *sql, tare__error *error)
{
    return execute(db, sql, NULL, 0, 1, NULL, NULL, NULL, error);
}

static int ask(database *db, const char *sql, int64_t *answer, tare__error *error)
{
    return execute(db, sql, NULL, 0, 1, tare__sql_take_integer, answer, NULL, error);
}

/* ---- opening ---------------------------------------------------------------------------------------- */
static int load(tare__error *error)
{
    static tare__dl library;
    tare__error why = {""};
    if (library.handle)
        return 0;
    int status = tare__dl_open(&library, "libsqlite3.so.0", symbols, TARE__COUNT_OF(symbols), &api, &why);
    return status ? tare__fail(error, TARE_E_SYSTEM, "SQLite is not available: %.300s", why.text) : 0;
}

/* Creates all directories above the file, like mkdir -p; private, since a user's commands are private. */
static int make_folders(const char *path, tare__error *error)
{
    char folder[TARE__STORE_PLACE_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        struct stat about;
        if (mkdir(folder, 0700) != 0 && !(stat(folder, &about) == 0 && S_ISDIR(about.st_mode))) {
            int failure = errno;
            return tare__fail(
                error, failure == EACCES || failure == EROFS ? TARE_E_PERMISSION : TARE_E_SYSTEM,
                "cannot create the directory '%.300s' for the history: %s", folder, strerror(failure));
        }
        *slash = '/';
    }
    return 0;
}

/* A file in a read-only directory can be read if there is no log next to it. */
static int open_unchanging(database *db, int code)
{
    char name[TARE__STORE_PLACE_BYTES * 3 + 32], log[TARE__STORE_PLACE_BYTES + 8];
    struct stat about;
    snprintf(log, sizeof log, "%s-wal", db->path);
    if (access(db->path, R_OK) != 0 || (stat(log, &about) == 0 && about.st_size > 0))
        return code;
    size_t at = (size_t)snprintf(name, sizeof name, "file:");
    for (const char *from = db->path; *from && at + 32 < sizeof name; from++)
        at += (size_t)snprintf(name + at, sizeof name - at, strchr("?#%", *from) ? "%%%02X" : "%c",
                               (unsigned char)*from);
    snprintf(name + at, sizeof name - at, "?immutable=1");
    api.close_v2(db->handle);
    db->handle = NULL;
    return api.open_v2(name, &db->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

static int open_handle(database *db, const tare__store_options *options, tare__error *error)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (options->create ? SQLITE_OPEN_CREATE : 0);
    struct stat about;
    const char *is = stat(db->path, &about) == 0 ? tare__not_a_file(about.st_mode) : NULL;
    if (is && !S_ISDIR(about.st_mode)) /* SQLite has a message for it */
        return tare__fail(error, TARE_E_INPUT, "'%.300s' is %s, not an SQLite database", db->path, is);
    mode_t mask = umask(077); /* commands and paths are private */
    int code = api.open_v2(db->path, &db->handle, flags, NULL);
    umask(mask);
    if (code != SQLITE_OK)
        return failed(db, code, error);
    api.busy_timeout(db->handle, (int)options->patience_ms);
    int64_t ignored;
    int status = ask(db, "PRAGMA schema_version", &ignored, error);
    int primary = status ? api.extended_errcode(db->handle) & 0xff : SQLITE_OK;
    if (options->writes || (primary != SQLITE_CANTOPEN && primary != SQLITE_READONLY))
        return status;
    code = open_unchanging(db, SQLITE_CANTOPEN);
    return code == SQLITE_OK ? ask(db, "PRAGMA schema_version", &ignored, error) : failed(db, code, error);
}

/* Tables are not added to a database that another program created. */
static int check_owner(database *db, tare__error *error)
{
    int64_t application = 0, tables = 0;
    /* In this order: a process that created the tables since has set the id with them. */
    int status = ask(db, "SELECT count(*) FROM sqlite_master", &tables, error);
    if (!status)
        status = ask(db, "PRAGMA application_id", &application, error);
    if (!status && application != APPLICATION_ID && (tables > 0 || application != 0))
        return tare__fail(error, TARE_E_INPUT, "'%.300s' is a database of another application", db->path);
    return status;
}

static int prepare(database *db, const tare__store_options *options, tare__error *error)
{
    int status = check_owner(db, error);
    if (status || !options->writes)
        return status;
    api.db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return plain(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0", error);
}

static int open_database(const char *place, const tare__store_options *options, void **out, tare__error *error)
{
    int status = load(error);
    if (status)
        return status;
    if (!options->create && access(place, F_OK) != 0 && errno == ENOENT)
        return TARE__STORE_NONE;
    database *db = calloc(1, sizeof *db);
    if (!db)
        return tare__no_memory(error);
    *out = db;
    snprintf(db->path, sizeof db->path, "%s", place);
    if (options->create && access(place, F_OK) != 0)
        status = make_folders(place, error);
    if (!status)
        status = open_handle(db, options, error);
    return status ? status : prepare(db, options, error);
}

static void close_database(void *context)
{
    database *db = context;
    if (!db)
        return;
    if (db->handle)
        api.close_v2(db->handle);
    free(db);
}

static int version(void *context, int *out, tare__error *error)
{
    int64_t found = 0;
    int status = ask(context, "PRAGMA user_version", &found, error);
    *out = (int)found;
    return status;
}

static void tidy(void *context)
{
    database *db = context;
    char log[TARE__STORE_PLACE_BYTES + 8];
    struct stat about;
    snprintf(log, sizeof log, "%s-wal", db->path);
    if (stat(log, &about) != 0 || about.st_size <= LOG_BYTES_MAX)
        return;
    api.busy_timeout(db->handle, 0); /* a concurrent reader keeps the log: the next one checkpoints it */
    api.wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

#define STRING_OF(x)   #x
#define NUMBER_TEXT(x) STRING_OF(x)
static const char *const migrations[] = {
    TARE__STORE_SCHEMA_1("INTEGER PRIMARY KEY", "BLOB", "REAL", "TEXT", " WITHOUT ROWID"),
};

const tare__backend tare__store_sqlite = {
    .name = "sqlite",
    .suits = suits,
    .begin = "BEGIN IMMEDIATE",
    .begin_alone = "BEGIN IMMEDIATE",
    .like = "LIKE",
    .migrations = migrations,
    .n_migrations = TARE__COUNT_OF(migrations),
    .set_version = "PRAGMA application_id=" NUMBER_TEXT(APPLICATION_ID) "; PRAGMA user_version=%d",
    .open = open_database,
    .close = close_database,
    .version = version,
    .execute = execute,
    .tidy = tidy,
};
