/* postgres: the history in a PostgreSQL database, for a team. Every wait has a timeout: a server that does not
 * respond
 * delays the run only briefly. libpq is opened at run time: few users have it, and loading takes several
 * milliseconds.
 * Owned by the store's thread. Must not know runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inner.h"

#define VALUES_MAX   24
#define COLUMNS_MAX  24
#define SETS_AT_ONCE 500u

/* The part of libpq-fe.h that is used: its interface is unchanged since 2003 (PostgreSQL 7.4), pipelines since 14. */
typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
enum { CONNECTION_OK = 0, CONNECTION_BAD = 1 };
enum { POLLING_FAILED = 0, POLLING_READING = 1, POLLING_WRITING = 2, POLLING_OK = 3 };
enum { EMPTY_QUERY = 0, COMMAND_OK = 1, TUPLES_OK = 2, PIPELINE_SYNC = 10, PIPELINE_ABORTED = 11 };

/* Result, name, whether it is required, parameters. */
#define FUNCTIONS(F) \
    F(PGconn *, connectStartParams, true, (const char *const *, const char *const *, int)) \
    F(int, connectPoll, true, (PGconn *)) \
    F(int, status, true, (const PGconn *)) \
    F(int, socket, true, (const PGconn *)) \
    F(char *, errorMessage, true, (const PGconn *)) \
    F(void, finish, true, (PGconn *)) \
    F(int, sendQuery, true, (PGconn *, const char *)) \
    F(int, sendQueryParams, true,                                                                                   \
      (PGconn *, const char *, int, const unsigned *, const char *const *, const int *, const int *, int)) \
    F(int, setnonblocking, true, (PGconn *, int)) \
    F(int, flush, true, (PGconn *)) \
    F(int, consumeInput, true, (PGconn *)) \
    F(int, isBusy, true, (PGconn *)) \
    F(PGresult *, getResult, true, (PGconn *)) \
    F(int, resultStatus, true, (const PGresult *)) \
    F(char *, resultErrorMessage, true, (const PGresult *)) \
    F(char *, resultErrorField, true, (const PGresult *, int)) \
    F(void, clear, true, (PGresult *)) \
    F(int, ntuples, true, (const PGresult *)) \
    F(int, nfields, true, (const PGresult *)) \
    F(unsigned, ftype, true, (const PGresult *, int)) \
    F(char *, getvalue, true, (const PGresult *, int, int)) \
    F(int, getlength, true, (const PGresult *, int, int)) \
    F(int, getisnull, true, (const PGresult *, int, int)) \
    F(char *, cmdTuples, true, (PGresult *)) \
    F(int, enterPipelineMode, false, (PGconn *)) \
    F(int, exitPipelineMode, false, (PGconn *)) \
    F(int, pipelineSync, false, (PGconn *)) \
    F(void *, setNoticeProcessor, true, (PGconn *, void (*)(void *, const char *), void *))

#define SLOT(result, name, required, parameters) result (*name) parameters;
static struct {
    FUNCTIONS(SLOT)
} api;

#define SYMBOL(result, name, required, parameters) {"PQ" #name, offsetof(__typeof__(api), name), required},
static const tare__dl_symbol symbols[] = {FUNCTIONS(SYMBOL)};

typedef struct database {
    PGconn *connection;
    char shown[300];
    unsigned patience_ms;
    uint64_t deadline_ns; /* of the current statement */
    bool lost;            /* no further requests are possible */
} database;

static bool suits(const char *place)
{
    return strncmp(place, "postgres://", 11) == 0 || strncmp(place, "postgresql://", 13) == 0;
}

/* ---- waiting ---------------------------------------------------------------------------------------- */
/* Until the socket is readable (or writable): false on a timeout. */
static bool wait_for(database *db, short events)
{
    for (;;) {
        uint64_t now = tare__monotonic_ns();
        if (now >= db->deadline_ns)
            return false;
        struct pollfd socket = {.fd = api.socket(db->connection), .events = events};
        if (socket.fd < 0)
            return true; /* libpq reports the error */
        int ready = poll(&socket, 1, (int)((db->deadline_ns - now) / 1000000u) + 1);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
    }
}

/* The part of an invalid URL that libpq quotes may contain a password. */
static void hide_quoted(const database *db, char *line)
{
    for (char *at = strchr(line, '"'); at; at = strchr(at, '"')) {
        char *end = strchr(at + 1, '"'), was = end ? *end : '\0';
        if (end)
            *end = '\0';
        bool known = at[1] && strstr(db->shown, at + 1) != NULL;
        if (end)
            *end = was;
        if (!known)
            memmove(at + 1, end ? end : at + strlen(at), strlen(end ? end : at + strlen(at)) + 1);
        at = strchr(at + 1, '"');
        if (!at)
            return;
        at++;
    }
}

static int one_line(database *db, const char *message, int status, tare__error *error)
{
    char line[200];
    size_t n = 0;
    while (*message && n + 1 < sizeof line) {
        char c = *message++;
        if (c == '\n' && (!*message || n == 0))
            continue;
        line[n++] = c == '\n' || c == '\t' ? ' ' : c;
    }
    line[n] = '\0';
    char *address = strstr(line, " in URI"); /* with the password */
    if (address)
        *address = '\0';
    if (!db->connection || api.status(db->connection) != CONNECTION_OK)
        hide_quoted(db, line);
    tare__redact(line);
    return tare__fail(error, status, "the history in '%s': %s", db->shown, line);
}

static int too_late(database *db, tare__error *error)
{
    db->lost = true;
    return tare__fail(error, TARE_E_SYSTEM, "the history's server at '%s' did not answer within %u ms",
                      db->shown, db->patience_ms);
}

static void set_deadline(database *db)
{
    db->deadline_ns = tare__monotonic_ns() + (uint64_t)db->patience_ms * 1000000u;
}

static int broken(database *db, tare__error *error)
{
    db->lost = true;
    return one_line(db, api.errorMessage(db->connection), TARE_E_SYSTEM, error);
}

/* Everything was sent. */
static int push_out(database *db, tare__error *error)
{
    int left;
    while ((left = api.flush(db->connection)) > 0) {
        if (!wait_for(db, POLLIN | POLLOUT))
            return too_late(db, error);
        if (!api.consumeInput(db->connection))
            return broken(db, error);
    }
    return left < 0 ? broken(db, error) : 0;
}

/* The next result, NULL at the end of a statement's. */
static int next_result(database *db, PGresult **result, tare__error *error)
{
    while (api.isBusy(db->connection)) {
        if (!wait_for(db, POLLIN))
            return too_late(db, error);
        if (!api.consumeInput(db->connection))
            return broken(db, error);
    }
    *result = api.getResult(db->connection);
    return 0;
}

/* ---- values ----------------------------------------------------------------------------------------- */
typedef struct bound {
    const char *values[VALUES_MAX];
    int lengths[VALUES_MAX], formats[VALUES_MAX];
    char numbers[VALUES_MAX][32];
    tare__text texts[VALUES_MAX]; /* with a NUL behind them */
} bound;

static void bind(bound *to, const tare__sql_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const tare__sql_value *value = &values[i];
        to->formats[i] = value->kind == TARE__SQL_BYTES;
        to->lengths[i] = (int)value->bytes;
        to->values[i] = NULL;
        switch (value->kind) {
        case TARE__SQL_NULL: break;
        case TARE__SQL_INTEGER:
            snprintf(to->numbers[i], sizeof to->numbers[i], "%" PRId64, value->integer);
            to->values[i] = to->numbers[i];
            break;
        case TARE__SQL_REAL:
            tare__text_double(to->numbers[i], sizeof to->numbers[i], 'g', 17, value->real);
            to->values[i] = to->numbers[i];
            break;
        case TARE__SQL_TEXT:
            tare__text_clear(&to->texts[i]);
            tare__text_append(&to->texts[i], value->data, value->bytes);
            to->values[i] = to->texts[i].failed ? NULL : to->texts[i].data ? to->texts[i].data : "";
            break;
        case TARE__SQL_BYTES: to->values[i] = value->data; break;
        }
    }
}

static void unbind(bound *from)
{
    for (size_t i = 0; i < VALUES_MAX; i++)
        tare__text_free(&from->texts[i]);
}

enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701
};

static unsigned nibble(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10) & 15u;
}

/* "\x0a0b…" in place: the result is shorter. */
static tare__sql_value bytes_of(char *text, size_t length)
{
    size_t n = length >= 2 ? (length - 2) / 2 : 0;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(nibble(text[2 + 2 * i]) << 4 | nibble(text[3 + 2 * i]));
    return tare__sql_bytes(text, n);
}

static tare__sql_value column(PGresult *result, int row, int i)
{
    if (api.getisnull(result, row, i))
        return (tare__sql_value){.kind = TARE__SQL_NULL};
    char *text = api.getvalue(result, row, i);
    size_t length = (size_t)api.getlength(result, row, i);
    switch (api.ftype(result, i)) {
    case OID_INT8:
    case OID_INT4:
    case OID_INT2: return tare__sql_integer(strtoll(text, NULL, 10));
    case OID_FLOAT4:
    case OID_FLOAT8: return tare__sql_real(tare__json_double_of(text, length));
    case OID_BYTEA: return bytes_of(text, length);
    default: return (tare__sql_value){.kind = TARE__SQL_TEXT, .data = text, .bytes = length};
    }
}

static int hand_rows(PGresult *result, tare__sql_row *row, void *context)
{
    tare__sql_value columns[COLUMNS_MAX];
    int n = api.nfields(result), status = 0;
    n = n > COLUMNS_MAX ? COLUMNS_MAX : n;
    for (int i = 0; i < api.ntuples(result) && !status; i++) {
        for (int j = 0; j < n; j++)
            columns[j] = column(result, i, j);
        status = row(context, columns, (size_t)n);
    }
    return status;
}

/* ---- statements ------------------------------------------------------------------------------------- */
#define FIELD_SQLSTATE 'C'
#define FIELD_PRIMARY  'M' /* the message without the statement around it */

static int refused(database *db, PGresult *result, tare__error *error)
{
    const char *state = api.resultErrorField(result, FIELD_SQLSTATE);
    int status = !state                         ? TARE_E_SYSTEM
                 : strcmp(state, "42501") == 0  ? TARE_E_PERMISSION
                 : strncmp(state, "53", 2) == 0 ? TARE_E_SPACE
                                                : TARE_E_INPUT;
    const char *primary = api.resultErrorField(result, FIELD_PRIMARY);
    return one_line(db, primary ? primary : api.resultErrorMessage(result), status, error);
}

typedef struct taking {
    tare__sql_row *row;
    void *context;
    int64_t *changed;
    int status; /* the first error */
} taking;

static void take_result(database *db, PGresult *result, taking *to, tare__error *error)
{
    int kind = api.resultStatus(result);
    if (kind == TUPLES_OK || kind == COMMAND_OK) {
        if (to->changed)
            *to->changed += atoll(api.cmdTuples(result));
        if (to->row && !to->status)
            to->status = hand_rows(result, to->row, to->context);
    } else if (kind != PIPELINE_SYNC && kind != PIPELINE_ABORTED && kind != EMPTY_QUERY && !to->status) {
        to->status = refused(db, result, error);
    }
    api.clear(result);
}

/* Results of one statement, to the NULL that ends them. */
static int take_results(database *db, taking *to, tare__error *error)
{
    for (;;) {
        PGresult *result = NULL;
        int status = next_result(db, &result, error);
        if (status || !result)
            return status;
        take_result(db, result, to, error);
    }
}

/* Sends many sets before it reads the first response: one round trip for all of them. */
static int execute_many(database *db, const char *sql, const tare__sql_value *values, size_t n, size_t n_sets,
                        bound *set, taking *to, tare__error *error)
{
    int status = 0;
    for (size_t i = 0; i < n_sets && !status; i++) {
        bind(set, values + i * n, n);
        if (!api.sendQueryParams(db->connection, sql, (int)n, NULL, set->values, set->lengths, set->formats, 0))
            status = broken(db, error);
    }
    if (!status && !api.pipelineSync(db->connection))
        status = broken(db, error);
    if (!status)
        status = push_out(db, error);
    for (size_t i = 0; i < n_sets && !status; i++)
        status = take_results(db, to, error);
    PGresult *sync = NULL;
    if (!status)
        status = next_result(db, &sync, error);
    if (sync)
        api.clear(sync);
    return status;
}

static int execute_one(database *db, const char *sql, const tare__sql_value *values, size_t n, bound *set,
                       taking *to, tare__error *error)
{
    bind(set, values, n);
    /* Without values there may be several statements in one text. */
    int sent = n ? api.sendQueryParams(db->connection, sql, (int)n, NULL, set->values, set->lengths, set->formats, 0)
          : api.sendQuery(db->connection, sql);
    int status = sent ? push_out(db, error) : broken(db, error);
    return status ? status : take_results(db, to, error);
}

static int execute(void *context_of_db, const char *sql, const tare__sql_value *values, size_t n,
                   size_t n_sets, tare__sql_row *row, void *context, int64_t *changed, tare__error *error)
{
    database *db = context_of_db;
    if (db->lost)
        return TARE_E_SYSTEM;
    bound *set = calloc(1, sizeof *set);
    if (!set)
        return tare__no_memory(error);
    taking to = {.row = row, .context = context, .changed = changed};
    bool many = n_sets > 1 && api.enterPipelineMode && api.exitPipelineMode && api.pipelineSync;
    int status = 0;
    if (changed)
        *changed = 0;
    if (many && !api.enterPipelineMode(db->connection))
        many = false;
    for (size_t i = 0; i < n_sets && !status && !to.status;) {
        size_t now = many ? n_sets - i < SETS_AT_ONCE ? n_sets - i : SETS_AT_ONCE : 1;
        const tare__sql_value *from = n ? values + i * n : NULL;
        set_deadline(db);
        status = many ? execute_many(db, sql, from, n, now, set, &to, error)
                      : execute_one(db, sql, from, n, set, &to, error);
        i += now;
    }
    if (many && !status)
        api.exitPipelineMode(db->connection);
    unbind(set);
    free(set);
    return status ? status : to.status;
}

/* ---- opening ---------------------------------------------------------------------------------------- */
static int load(tare__error *error)
{
    static tare__dl library;
    tare__error why = {""};
    if (library.handle)
        return 0;
    int status = tare__dl_open(&library, "libpq.so.5", symbols, TARE__COUNT_OF(symbols), &api, &why);
    return status ? tare__fail(error, TARE_E_SYSTEM, "a history in PostgreSQL requires libpq: %.300s", why.text) : 0;
}

static int connect_to(database *db, const char *place, tare__error *error)
{
    const char *const names[] = {"dbname", "fallback_application_name", NULL};
    const char *const values[] = {place, "tare", NULL};
    set_deadline(db);
    db->connection = api.connectStartParams(names, values, 1);
    if (!db->connection)
        return tare__no_memory(error);
    int state = api.status(db->connection) == CONNECTION_BAD ? POLLING_FAILED : POLLING_WRITING;
    while (state != POLLING_OK && state != POLLING_FAILED) {
        if (!wait_for(db, state == POLLING_READING ? POLLIN : POLLOUT))
            return too_late(db, error);
        state = api.connectPoll(db->connection);
    }
    if (state == POLLING_FAILED)
        return broken(db, error);
    return api.setnonblocking(db->connection, 1) == 0 ? 0 : broken(db, error);
}

static void say_nothing(void *context, const char *message)
{
    (void)context, (void)message;
}

static int open_database(const char *place, const tare__store_options *options, void **out, tare__error *error)
{
    int status = load(error);
    if (status)
        return status;
    database *db = calloc(1, sizeof *db);
    if (!db)
        return tare__no_memory(error);
    *out = db;
    db->patience_ms = options->patience_ms;
    tare__store_shown(place, db->shown, sizeof db->shown);
    status = connect_to(db, place, error);
    if (!status)
        api.setNoticeProcessor(db->connection, say_nothing, NULL);
    return status;
}

static void close_database(void *context)
{
    database *db = context;
    if (!db)
        return;
    if (db->connection)
        api.finish(db->connection);
    free(db);
}

static int version(void *context, int *out, tare__error *error)
{
    int64_t there = 0, found = 0;
    /* Not to_regclass: inside a transaction it may still use a result from before another one ended. */
    int status = execute(context,
                         "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'tare_schema'"
                         " AND pg_catalog.pg_table_is_visible(oid)",
                         NULL, 0, 1, tare__sql_take_integer, &there, NULL, error);
    if (!status && there)
        status = execute(context, "SELECT max(version) FROM tare_schema", NULL, 0, 1, tare__sql_take_integer, &found,
                         NULL, error);
    *out = (int)found;
    return status;
}

/* Shared lock to add runs; exclusive lock to change tables or remove texts. */
#define LOCK "1952540261" /* "tare" */

static const char *const migrations[] = {
    TARE__STORE_SCHEMA_1("BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "BYTEA", "DOUBLE PRECISION",
                         "TEXT COLLATE \"C\"", ""),
};

const tare__backend tare__store_postgres = {
    .name = "postgres",
    .suits = suits,
    .begin = "BEGIN; SELECT pg_advisory_xact_lock_shared(" LOCK ")",
    .begin_alone = "BEGIN; SELECT pg_advisory_xact_lock(" LOCK ")",
    .like = "ILIKE",
    .migrations = migrations,
    .n_migrations = TARE__COUNT_OF(migrations),
    .set_version = "CREATE TABLE IF NOT EXISTS tare_schema (version INTEGER NOT NULL);"
                   "DELETE FROM tare_schema; INSERT INTO tare_schema VALUES (%d)",
    .open = open_database,
    .close = close_database,
    .version = version,
    .execute = execute,
};
