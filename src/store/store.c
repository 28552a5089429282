/* store: opens a history, brings its schema up to date, and writes runs. A run is one transaction.
 * Owned by the calling thread.
 * Must not know what the figures mean, nor what kind of database it is. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inner.h"

#define TEXT_BYTES_MAX 2000u /* PostgreSQL does not index more than 2,700 */

static const tare__backend *const backends[] = {&tare__store_sqlite, &tare__store_postgres};

/* ---- values ----------------------------------------------------------------------------------------- */
tare__sql_value tare__sql_real(double value)
{
    return (tare__sql_value){.kind = isnan(value) ? TARE__SQL_NULL : TARE__SQL_REAL, .real = value};
}

tare__sql_value tare__sql_text(const char *text)
{
    return (tare__sql_value){
        .kind = text ? TARE__SQL_TEXT : TARE__SQL_NULL, .data = text, .bytes = text ? strlen(text) : 0};
}

tare__sql_value tare__sql_bytes(const void *data, size_t bytes)
{
    return (tare__sql_value){.kind = data ? TARE__SQL_BYTES : TARE__SQL_NULL, .data = data, .bytes = bytes};
}

const char *tare__sql_copy(tare__arena *arena, const tare__sql_value *value)
{
    return value->kind == TARE__SQL_TEXT ? tare__arena_copy(arena, value->data, value->bytes) : NULL;
}

/* ---- statements ------------------------------------------------------------------------------------- */
int tare__store_run(tare__store *store, const char *sql, const tare__sql_value *values, size_t n,
                    tare__sql_row *row, void *context, int64_t *changed, tare__error *error)
{
    return store->backend->execute(store->db, sql, values, n, 1, row, context, changed, error);
}

int tare__store_enter(tare__store *store, bool alone, bool *mine, tare__error *error)
{
    *mine = !store->in_transaction;
    if (store->in_transaction)
        return 0;
    return tare__store_run(store, alone ? store->backend->begin_alone : store->backend->begin, NULL, 0, NULL,
                           NULL, NULL, error);
}

int tare__store_leave(tare__store *store, bool mine, int status, tare__error *error)
{
    if (!mine)
        return status;
    if (!status)
        status = tare__store_run(store, "COMMIT", NULL, 0, NULL, NULL, NULL, error);
    if (status)
        tare__store_run(store, "ROLLBACK", NULL, 0, NULL, NULL, NULL, NULL);
    else if (store->backend->tidy)
        store->backend->tidy(store->db);
    return status;
}

int tare__store_begin(tare__store *store, tare__error *error)
{
    bool mine;
    int status = tare__store_enter(store, false, &mine, error);
    store->in_transaction = status == 0;
    return status;
}

int tare__store_end(tare__store *store, tare__error *error)
{
    store->in_transaction = false;
    return tare__store_leave(store, true, 0, error);
}

void tare__store_undo(tare__store *store)
{
    store->in_transaction = false;
    tare__store_leave(store, true, TARE_E_SYSTEM, NULL);
}

/* ---- schema ----------------------------------------------------------------------------------------- */
static int check_version(const tare__store *store, int version, tare__error *error)
{
    char shown[300];
    if (version <= store->backend->n_migrations)
        return 0;
    tare__store_shown(store->place, shown, sizeof shown);
    return tare__fail(error, TARE_E_VERSION,
                      "the history in '%s' was written by a newer version of tare (schema %d; this one supports up "
                      "to %d)", shown,
                      version, store->backend->n_migrations);
}

/* All pending upgrades in one transaction; another process may have made them while this one waited. */
static int migrate(tare__store *store, tare__error *error)
{
    int version = 0;
    bool mine;
    int status = tare__store_enter(store, true, &mine, error);
    if (status)
        return status;
    status = store->backend->version(store->db, &version, error);
    if (!status)
        status = check_version(store, version, error);
    for (int i = version; i < store->backend->n_migrations && !status; i++)
        status = tare__store_run(store, store->backend->migrations[i], NULL, 0, NULL, NULL, NULL, error);
    if (!status && version < store->backend->n_migrations) {
        char set[256];
        snprintf(set, sizeof set, store->backend->set_version, store->backend->n_migrations);
        status = tare__store_run(store, set, NULL, 0, NULL, NULL, NULL, error);
    }
    return tare__store_leave(store, mine, status, error);
}

int tare__store_open(const char *place, const tare__store_options *options, tare__store **out, tare__error *error)
{
    int version = 0, status;
    tare__store *store = calloc(1, sizeof *store);
    if (!store)
        return tare__no_memory(error);
    snprintf(store->place, sizeof store->place, "%s", place);
    for (size_t i = 0; i < TARE__COUNT_OF(backends) && !store->backend; i++)
        store->backend = backends[i]->suits(place) ? backends[i] : NULL;
    status = store->backend ? store->backend->open(place, options, &store->db, error)
                            : tare__fail(error, TARE_E_USAGE, "'%.64s' is not a valid history", place);
    if (!status)
        status = store->backend->version(store->db, &version, error);
    if (!status)
        status = check_version(store, version, error);
    if (!status && version < store->backend->n_migrations)
        status = options->writes ? migrate(store, error)
                 : version == 0  ? TARE__STORE_NONE
                                 : tare__fail(error, TARE_E_VERSION,
                                              "the history was written by an older version of tare; any command "
                                              "that writes to it upgrades it");
    if (status) {
        tare__store_close(store);
        return status;
    }
    *out = store;
    return 0;
}

void tare__store_close(tare__store *store)
{
    if (!store)
        return;
    if (store->db)
        store->backend->close(store->db);
    free(store);
}

/* ---- storing ---------------------------------------------------------------------------------------- */
/* Texts of one run, each once and sorted: two writers that add the same ones lock them in the same order, and do not
 * deadlock. */
typedef struct texts {
    tare__arena *arena;
    const char **all;
    size_t n, room;
    bool failed;
} texts;

/* As accepted by a database: UTF-8, and no longer than an index can hold. NULL for NULL. */
static const char *clean(texts *to, const char *text)
{
    if (!text)
        return NULL;
    char out[TEXT_BYTES_MAX + 8];
    size_t at = 0, length = strlen(text);
    for (size_t i = 0; i < length;) {
        uint32_t code;
        size_t bytes = tare__utf8_decode(text + i, length - i, &code);
        if (at + 3 + (bytes ? bytes : 3) > TEXT_BYTES_MAX) {
            at += (size_t)sprintf(out + at, "…");
            break;
        }
        if (bytes)
            memcpy(out + at, text + i, bytes);
        else
            memcpy(out + at, "\xEF\xBF\xBD", 3);
        at += bytes ? bytes : 3;
        i += bytes ? bytes : 1;
    }
    const char *copy = tare__arena_copy(to->arena, out, at);
    if (!copy || !tare__array_fit(&to->all, &to->room, to->n + 1, sizeof *to->all)) {
        to->failed = true;
        return NULL;
    }
    to->all[to->n++] = copy;
    return copy;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int put_texts(tare__store *store, texts *from, tare__error *error)
{
    tare__sql_value *values = calloc(from->n + 1, sizeof *values);
    size_t n = 0;
    if (!values || from->failed) {
        free(values);
        return tare__no_memory(error);
    }
    qsort(from->all, from->n, sizeof *from->all, by_text);
    for (size_t i = 0; i < from->n; i++)
        if (i == 0 || strcmp(from->all[i], from->all[i - 1]) != 0)
            values[n++] = tare__sql_text(from->all[i]);
    int status =
        store->backend->execute(store->db, "INSERT INTO tare_text (text) VALUES ($1) ON CONFLICT DO NOTHING",
                                values, 1, n, NULL, NULL, NULL, error);
    free(values);
    return status;
}

/* A run and its figures with texts as they are stored. */
typedef struct row {
    tare__kept run;
    tare__figure *figures;
    size_t n;
    const char **tags;
} row;

static int clean_row(texts *to, const tare__kept *run, const tare__figures *figures, row *out)
{
    *out = (row){.run = *run, .n = figures ? figures->n : 0};
    const char **of_run[] = {&out->run.kind,    &out->run.command,   &out->run.directory, &out->run.host,
                             &out->run.machine, &out->run.cpu_model, &out->run.revision};
    for (size_t i = 0; i < TARE__COUNT_OF(of_run); i++)
        *of_run[i] = clean(to, *of_run[i]);
    out->figures = tare__arena_alloc(to->arena, (out->n + 1) * sizeof *out->figures);
    out->tags = tare__arena_alloc(to->arena, (run->n_tags + 1) * sizeof *out->tags);
    if (!out->figures || !out->tags)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < out->n; i++) {
        out->figures[i] = figures->rows[i];
        out->figures[i].name = clean(to, figures->rows[i].name);
        out->figures[i].unit = clean(to, figures->rows[i].unit);
        out->figures[i].per = clean(to, figures->rows[i].per);
    }
    for (size_t i = 0; i < run->n_tags; i++)
        out->tags[i] = clean(to, run->tags[i]);
    size_t kept = to->n; /* the name of the trace is not in the table of texts: it is unique to a run */
    out->run.trace = clean(to, run->trace);
    to->n = kept;
    return to->failed ? TARE_E_MEMORY : 0;
}

#define TEXT_ID(n) "(SELECT id FROM tare_text WHERE text = $" #n ")"

static int put_run(tare__store *store, const tare__kept *run, int64_t *added, tare__error *error)
{
    const tare__sql_value values[] = {tare__sql_text(run->id),
                                      tare__sql_integer((int64_t)run->when_ns),
                                      tare__sql_text(run->kind),
                                      tare__sql_text(run->command),
                                      tare__sql_text(run->directory),
                                      tare__sql_text(run->host),
                                      tare__sql_text(run->machine),
                                      tare__sql_text(run->cpu_model),
                                      tare__sql_text(run->revision),
                                      run->dirty < 0 ? tare__sql_text(NULL) : tare__sql_integer(run->dirty),
                                      run->status < 0 ? tare__sql_text(NULL) : tare__sql_integer(run->status),
                                      tare__sql_integer(run->signal),
                                      tare__sql_real(run->elapsed_ns),
                                      tare__sql_text(run->trace)};
    return tare__store_run(
        store,
        "INSERT INTO tare_run (id, started, kind, command, directory, host, machine, cpu, revision,"
        " dirty, status, signal, elapsed, trace) VALUES ($1, $2, " TEXT_ID(3) ", " TEXT_ID(4) ", " TEXT_ID(
            5) ", " TEXT_ID(6) ", " TEXT_ID(7) ", " TEXT_ID(8) ", " TEXT_ID(9) ","
                                                                               " $10, $11, $12, $13, $14) ON "
                                                                               "CONFLICT DO NOTHING",
        values, TARE__COUNT_OF(values), NULL, NULL, added, error);
}

/* Means of neighbors until few enough are left; an incomplete last group is dropped. */
static size_t thin(const tare__figure *figure, double *out, uint64_t *each)
{
    size_t n = figure->n_samples, group = 1;
    while (n / group > TARE__STORE_SAMPLES)
        group *= 2;
    *each = figure->each * group;
    for (size_t i = 0; i < n / group; i++) {
        double sum = 0;
        for (size_t j = 0; j < group; j++)
            sum += figure->samples[i * group + j];
        out[i] = sum / (double)group;
    }
    return n / group;
}

/* Doubles of this machine: little-endian, like every machine that Tare supports. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "samples are stored as they lie in memory");

static int put_figures(tare__store *store, const char *id, const row *from, tare__arena *arena, tare__error *error)
{
    enum { N = 11 };
    tare__sql_value *values = calloc(from->n * N + 1, sizeof *values);
    if (!values)
        return tare__no_memory(error);
    for (size_t i = 0; i < from->n; i++) {
        const tare__figure *figure = &from->figures[i];
        uint64_t each = figure->each;
        double *samples = figure->n_samples ? tare__arena_alloc(arena, TARE__STORE_SAMPLES * sizeof *samples) : NULL;
        size_t n_samples = samples ? thin(figure, samples, &each) : 0;
        const tare__sql_value set[N] = {
            tare__sql_text(id),
            tare__sql_text(figure->name),
            tare__sql_text(figure->unit),
            tare__sql_text(figure->per),
            tare__sql_integer(figure->better),
            tare__sql_integer(figure->exact | figure->at_least << 1),
            tare__sql_real(figure->value),
            tare__sql_real(figure->total),
            tare__sql_integer((int64_t)figure->n),
            tare__sql_integer((int64_t)each),
            tare__sql_bytes(n_samples ? samples : NULL, n_samples * sizeof *samples)};
        memcpy(values + i * N, set, sizeof set);
    }
    int status = store->backend->execute(
        store->db,
        "INSERT INTO tare_figure (run, name, unit, per, better, exact, value, total, n, each_sample, "
        "samples) VALUES"
        " ((SELECT seq FROM tare_run WHERE id = $1), " TEXT_ID(2) ", " TEXT_ID(3) ", " TEXT_ID(4) ","
               " $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
        values, N, from->n, NULL, NULL, NULL, error);
    free(values);
    return status;
}

static int put_tags(tare__store *store, const char *id, const char *const *tags, size_t n, tare__error *error)
{
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        const tare__sql_value values[] = {tare__sql_text(id), tare__sql_text(tags[i])};
        status = tare__store_run(
            store,
            "INSERT INTO tare_tag (run, tag) VALUES ((SELECT seq FROM tare_run WHERE id = $1), " TEXT_ID(
                2) ") ON CONFLICT DO NOTHING",
            values, 2, NULL, NULL, NULL, error);
    }
    return status;
}

int tare__store_put(tare__store *store, const tare__kept *run, const tare__figures *figures, bool *added,
                    tare__error *error)
{
    texts all = {.arena = tare__arena_new()};
    row row;
    bool mine = false;
    int64_t inserted = 0;
    int status = all.arena ? clean_row(&all, run, figures, &row) : TARE_E_MEMORY;
    if (status)
        tare__fail(error, status, "out of memory");
    else
        status = tare__store_enter(store, false, &mine, error);
    if (!status) {
        status = put_texts(store, &all, error);
        if (!status)
            status = put_run(store, &row.run, &inserted, error);
        if (!status)
            status = put_figures(store, run->id, &row, all.arena, error);
        if (!status && inserted)
            status = put_tags(store, run->id, row.tags, run->n_tags, error);
        status = tare__store_leave(store, mine, status, error);
    }
    if (added)
        *added = inserted > 0;
    free(all.all);
    tare__arena_free(all.arena);
    return status;
}

int tare__store_tag(tare__store *store, const char *id, const char *const *tags, size_t n, bool remove,
                    tare__error *error)
{
    texts all = {.arena = tare__arena_new()};
    const char **cleaned = calloc(n + 1, sizeof *cleaned);
    bool mine = false;
    int status = all.arena && cleaned ? 0 : tare__no_memory(error);
    for (size_t i = 0; i < n && !status; i++)
        cleaned[i] = clean(&all, tags[i]);
    if (!status)
        status = tare__store_enter(store, false, &mine, error);
    if (!status) {
        if (!remove)
            status = put_texts(store, &all, error);
        /* put_texts sorts its own list only */
        if (!status && !remove)
            status = put_tags(store, id, cleaned, n, error);
        for (size_t i = 0; i < n && remove && !status; i++) {
            const tare__sql_value values[] = {tare__sql_text(id), tare__sql_text(cleaned[i])};
            status =
                tare__store_run(store,
                                "DELETE FROM tare_tag WHERE run = (SELECT seq FROM tare_run WHERE id = $1)"
                                " AND tag = " TEXT_ID(2),
                                values, 2, NULL, NULL, NULL, error);
        }
        status = tare__store_leave(store, mine, status, error);
    }
    free(cleaned);
    free(all.all);
    tare__arena_free(all.arena);
    return status;
}
