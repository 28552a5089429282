/* query: queries of a history: runs by a filter, their figures, a figure over runs.
 * Owned by the calling thread.
 * Must not know how anything is shown, nor what kind of database it is. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inner.h"

#define VALUES_MAX 24
#define TAGS_MAX   8

/* ---- a filter as SQL -------------------------------------------------------------------------------- */
typedef struct clause {
    tare__text sql;
    tare__sql_value values[VALUES_MAX];
    size_t n;
    tare__text kept[TAGS_MAX]; /* texts that were made for it */
    size_t n_kept;
} clause;

static void add_value(clause *to, const char *format, tare__sql_value value)
{
    to->values[to->n++] = value;
    tare__text_string(&to->sql, to->n == 1 ? " WHERE " : " AND ");
    /* clang-tidy would want a literal; the formats are those below */
    char number[16];
    snprintf(number, sizeof number, "$%zu", to->n);
    const char *mark = strchr(format, '@');
    tare__text_append(&to->sql, format, (size_t)(mark - format));
    tare__text_string(&to->sql, number);
    tare__text_string(&to->sql, mark + 1);
}

/* `text` with % and _ escaped, followed by %, and preceded by it too. */
static tare__sql_value pattern(clause *to, const char *text, bool anywhere)
{
    tare__text *out = &to->kept[to->n_kept++];
    tare__text_string(out, anywhere ? "%" : "");
    for (const char *at = text; *at; at++) {
        if (strchr("\\%_", *at))
            tare__text_string(out, "\\");
        tare__text_append(out, at, 1);
    }
    tare__text_string(out, "%");
    return tare__sql_text(out->failed ? "" : out->data);
}

static void add_texts(clause *to, const tare__store *store, const tare__store_filter *filter)
{
    char like[160];
    const struct {
        const char *text, *sql;
    } exact[] = {
        {filter->exact_command, "r.command = (SELECT id FROM tare_text WHERE text = @)"},
        {filter->machine, "r.machine = (SELECT id FROM tare_text WHERE text = @)"},
        {filter->host, "r.host = (SELECT id FROM tare_text WHERE text = @)"},
        {filter->kind, "r.kind = (SELECT id FROM tare_text WHERE text = @)"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(exact); i++)
        if (exact[i].text)
            add_value(to, exact[i].sql, tare__sql_text(exact[i].text));
    const struct {
        const char *text, *column;
        bool anywhere;
    } alike[] = {{filter->command, "command", true}, {filter->revision, "revision", false}};
    for (size_t i = 0; i < TARE__COUNT_OF(alike); i++) {
        if (!alike[i].text)
            continue;
        snprintf(like, sizeof like, "r.%s IN (SELECT id FROM tare_text WHERE text %s @ ESCAPE '\\')",
                 alike[i].column, store->backend->like);
        add_value(to, like, pattern(to, alike[i].text, alike[i].anywhere));
    }
    for (size_t i = 0; i < filter->n_tags && i < TAGS_MAX; i++)
        add_value(to,
                  "r.seq IN (SELECT g.run FROM tare_tag g JOIN tare_text x ON x.id = g.tag WHERE x.text = @)",
                  tare__sql_text(filter->tags[i]));
}

static void make_clause(clause *to, const tare__store *store, const tare__store_filter *filter)
{
    *to = (clause){.n = 0};
    if (filter->id) {
        /* As a range, which uses the index of ids: no id continues with a 'g'. */
        tare__text *end = &to->kept[to->n_kept++];
        tare__text_format(end, "%sg", filter->id);
        add_value(to, "r.id >= @", tare__sql_text(filter->id));
        add_value(to, "r.id < @", tare__sql_text(end->failed ? "" : end->data));
    }
    if (filter->not_id)
        add_value(to, "r.id <> @", tare__sql_text(filter->not_id));
    if (filter->since_ns)
        add_value(to, "r.started >= @", tare__sql_integer((int64_t)filter->since_ns));
    if (filter->before_ns)
        add_value(to, "r.started < @", tare__sql_integer((int64_t)filter->before_ns));
    if (filter->ended_well)
        add_value(to, "r.signal = 0 AND coalesce(r.status, 0) = @", tare__sql_integer(0));
    add_texts(to, store, filter);
}

static void free_clause(clause *clause)
{
    tare__text_free(&clause->sql);
    for (size_t i = 0; i < clause->n_kept; i++)
        tare__text_free(&clause->kept[i]);
}

/* The newest first; runs of the same time in the order in which they were added. */
static void add_order(clause *to, const tare__store_filter *filter)
{
    tare__text_string(&to->sql, " ORDER BY r.started DESC, r.seq DESC");
    if (filter->limit || filter->skip)
        tare__text_format(&to->sql, " LIMIT %llu",
                          (unsigned long long)(filter->limit ? filter->limit : (uint64_t)INT64_MAX));
    if (filter->skip)
        tare__text_format(&to->sql, " OFFSET %llu", (unsigned long long)filter->skip);
}

/* ---- runs ------------------------------------------------------------------------------------------- */
#define TEXT_OF(column) "(SELECT text FROM tare_text WHERE id = r." column ")"

typedef struct listing {
    tare__kept_list *list;
    size_t room;
    int64_t *seqs; /* beside the rows */
    size_t seqs_room;
    bool failed;
} listing;

static void copy_id(char id[TARE__KEPT_ID_DIGITS + 1], const tare__sql_value *value)
{
    size_t bytes = value->kind == TARE__SQL_TEXT ? value->bytes : 0;
    bytes = bytes > TARE__KEPT_ID_DIGITS ? TARE__KEPT_ID_DIGITS : bytes;
    memcpy(id, bytes ? value->data : "", bytes);
    id[bytes] = '\0';
}

static int whole_number(const tare__sql_value *value, int otherwise)
{
    return value->kind == TARE__SQL_INTEGER ? (int)value->integer : otherwise;
}

static double real_number(const tare__sql_value *value)
{
    return value->kind == TARE__SQL_REAL      ? value->real
           : value->kind == TARE__SQL_INTEGER ? (double)value->integer
                                              : NAN;
}

static int take_run(void *context, const tare__sql_value *columns, size_t n)
{
    listing *to = context;
    tare__kept_list *list = to->list;
    (void)n;
    if (!tare__array_fit(&list->rows, &to->room, list->n + 1, sizeof *list->rows) ||
        !tare__array_fit(&to->seqs, &to->seqs_room, list->n + 1, sizeof *to->seqs))
        return TARE_E_MEMORY;
    tare__kept *run = &list->rows[list->n];
    to->seqs[list->n++] = columns[0].integer;
    *run = (tare__kept){
        .when_ns = (uint64_t)columns[2].integer,
        .kind = tare__sql_copy(list->arena, &columns[3]),
        .command = tare__sql_copy(list->arena, &columns[4]),
        .directory = tare__sql_copy(list->arena, &columns[5]),
        .host = tare__sql_copy(list->arena, &columns[6]),
        .machine = tare__sql_copy(list->arena, &columns[7]),
        .cpu_model = tare__sql_copy(list->arena, &columns[8]),
        .revision = tare__sql_copy(list->arena, &columns[9]),
        .dirty = whole_number(&columns[10], -1),
        .status = whole_number(&columns[11], -1),
        .signal = whole_number(&columns[12], 0),
        .elapsed_ns = real_number(&columns[13]),
        .trace = tare__sql_copy(list->arena, &columns[14]),
    };
    copy_id(run->id, &columns[1]);
    return 0;
}

typedef struct tagging {
    listing *of;
    const struct order {
        int64_t seq;
        size_t row;
    } * orders;
    size_t n;
} tagging;

TARE__ORDER(by_seq, struct order, TARE__RISING(seq))

#define RUN_TAGS_MAX 64u

static int take_tag(void *context, const tare__sql_value *columns, size_t n)
{
    tagging *to = context;
    struct order wanted = {.seq = columns[0].integer};
    const struct order *found = bsearch(&wanted, to->orders, to->n, sizeof wanted, by_seq);
    (void)n;
    if (!found)
        return 0;
    tare__arena *arena = to->of->list->arena;
    tare__kept *run = &to->of->list->rows[found->row];
    if (run->n_tags == RUN_TAGS_MAX)
        return 0;
    const char **tags = tare__arena_alloc(arena, (run->n_tags + 1) * sizeof *tags);
    const char *tag = tare__sql_copy(arena, &columns[1]);
    if (!tags || !tag)
        return TARE_E_MEMORY;
    if (run->n_tags)
        memcpy(tags, run->tags, run->n_tags * sizeof *tags);
    tags[run->n_tags++] = tag;
    run->tags = tags;
    return 0;
}

static int take_tags(tare__store *store, listing *of, tare__error *error)
{
    size_t n = of->list->n;
    struct order *orders = calloc(n + 1, sizeof *orders);
    if (!orders)
        return tare__no_memory(error);
    for (size_t i = 0; i < n; i++)
        orders[i] = (struct order){of->seqs[i], i};
    qsort(orders, n, sizeof *orders, by_seq);
    tagging to = {.of = of, .orders = orders, .n = n};
    const tare__sql_value values[] = {tare__sql_integer(n ? orders[0].seq : 0),
                                      tare__sql_integer(n ? orders[n - 1].seq : 0)};
    int status = n == 0
                     ? 0
                     : tare__store_run(store,
                                       "SELECT g.run, x.text FROM tare_tag g JOIN tare_text x ON x.id = g.tag"
                                       " WHERE g.run >= $1 AND g.run <= $2 ORDER BY g.run, x.text",
                                       values, 2, take_tag, &to, NULL, error);
    free(orders);
    return status;
}

int tare__sql_take_integer(void *context, const tare__sql_value *columns, size_t n)
{
    *(int64_t *)context = n && columns[0].kind == TARE__SQL_INTEGER ? columns[0].integer : 0;
    return 0;
}

/* As in Git: twice the digits needed to count the runs, so that collisions are rare. */
static int find_digits(tare__store *store, unsigned *digits, tare__error *error)
{
    int64_t last = 0;
    int status = tare__store_run(store, "SELECT coalesce(max(seq), 0) FROM tare_run", NULL, 0,
                                 tare__sql_take_integer, &last, NULL, error);
    unsigned bits = last > 0 ? 64 - (unsigned)__builtin_clzll((unsigned long long)last) : 0;
    *digits = (bits + 1) / 2 + 1 > 7 ? (bits + 1) / 2 + 1 : 7;
    return status;
}

static int no_memory(int status, tare__error *error)
{
    return status == TARE_E_MEMORY ? tare__fail(error, status, "out of memory") : status;
}

/* Rows of the runs that a filter selects, from the newest: the clause is between the two parts of the statement. With a
 * figure, only runs that have it. TARE_E_MEMORY is without a message. */
static int select_runs(tare__store *store, const tare__store_filter *filter, const char *figure, const char *before,
                       const char *after, tare__sql_row *row, void *context, tare__error *error)
{
    clause where;
    tare__text sql = {0};
    make_clause(&where, store, filter);
    if (figure) {
        add_value(&where, "f.name = (SELECT id FROM tare_text WHERE text = @)", tare__sql_text(figure));
        tare__text_string(&where.sql, " AND f.value IS NOT NULL");
    }
    add_order(&where, filter);
    tare__text_string(&sql, before);
    tare__text_append(&sql, where.sql.data, where.sql.length);
    tare__text_string(&sql, after);
    int status = sql.failed || where.sql.failed
                     ? TARE_E_MEMORY
                     : tare__store_run(store, sql.data, where.values, where.n, row, context, NULL, error);
    tare__text_free(&sql);
    free_clause(&where);
    return status;
}

int tare__store_list(tare__store *store, const tare__store_filter *filter, tare__kept_list *list, tare__error *error)
{
    static const char columns[] = "SELECT r.seq, r.id, r.started, " TEXT_OF("kind") ", " TEXT_OF("command") ", "
        TEXT_OF("directory") ", " TEXT_OF("host") ", " TEXT_OF("machine") ", " TEXT_OF("cpu") ", "
        TEXT_OF("revision") ", r.dirty, r.status, r.signal, r.elapsed, r.trace FROM tare_run r";
    listing to = {.list = list};
    *list = (tare__kept_list){.arena = tare__arena_new()};
    int status = list->arena ? select_runs(store, filter, NULL, columns, "", take_run, &to, error) : TARE_E_MEMORY;
    if (!status)
        status = take_tags(store, &to, error);
    if (!status)
        status = find_digits(store, &list->id_digits, error);
    free(to.seqs);
    if (status)
        tare__store_list_free(list);
    return no_memory(status, error);
}

void tare__store_list_free(tare__kept_list *list)
{
    free(list->rows);
    tare__arena_free(list->arena);
    *list = (tare__kept_list){.n = 0};
}

/* ---- one run ---------------------------------------------------------------------------------------- */
static int find_last(tare__store *store, const char *word, tare__kept_list *list, tare__error *error)
{
    tare__store_filter filter = {.limit = 1};
    char *end = NULL;
    if (word[4] == '~') {
        filter.skip = strtoull(word + 5, &end, 10);
        if (end == word + 5 || *end || word[5] == '-')
            return tare__fail(error, TARE_E_USAGE, "'%.64s' is not a run; last~1 is the one before the last", word);
    }
    if (filter.skip > INT64_MAX) /* no database counts further */
        filter.skip = INT64_MAX;
    int status = tare__store_list(store, &filter, list, error);
    if (!status && list->n == 0) {
        tare__store_list_free(list);
        return tare__fail(error, TARE_E_USAGE, "no run '%.64s': the history has fewer runs", word);
    }
    return status;
}

static int ambiguous(const char *word, tare__kept_list *list, tare__error *error)
{
    char some[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < list->n && i < 4; i++)
        used += (size_t)snprintf(some + used, sizeof some - used, "%s%.12s", i ? ", " : "", list->rows[i].id);
    bool more = list->n > 4;
    tare__store_list_free(list);
    return tare__fail(error, TARE_E_USAGE, "'%.40s' is ambiguous: %s%s", word, some, more ? ", …" : "");
}

int tare__store_find(tare__store *store, const char *word, tare__kept_list *list, tare__error *error)
{
    char id[TARE__KEPT_ID_DIGITS + 1];
    size_t length = strlen(word);
    if (strcmp(word, "last") == 0 || strncmp(word, "last~", 5) == 0)
        return find_last(store, word, list, error);
    if (length == 0 || length > TARE__KEPT_ID_DIGITS || strspn(word, "0123456789abcdefABCDEF") != length)
        return tare__fail(error, TARE_E_USAGE,
                          "'%.64s' is not a run id; `tare history` lists them, and last is the newest",
                          word);
    for (size_t i = 0; i <= length; i++)
        id[i] = (char)(word[i] >= 'A' && word[i] <= 'F' ? word[i] + 32 : word[i]);
    int status = tare__store_list(store, &(tare__store_filter){.id = id, .limit = 5}, list, error);
    if (status)
        return status;
    if (list->n > 1)
        return ambiguous(word, list, error);
    if (list->n == 1)
        return 0;
    tare__store_list_free(list);
    return tare__fail(error, TARE_E_USAGE, "no run '%.40s'; `tare history` lists them", word);
}

/* ---- figures ---------------------------------------------------------------------------------------- */
static int take_figure(void *context, const tare__sql_value *columns, size_t n)
{
    tare__arena *scratch = tare__arena_new();
    (void)n;
    if (!scratch)
        return TARE_E_MEMORY;
    const char *unit = tare__sql_copy(scratch, &columns[1]);
    size_t n_samples = columns[9].kind == TARE__SQL_BYTES ? columns[9].bytes / sizeof(double) : 0;
    double samples[TARE__STORE_SAMPLES];
    n_samples = n_samples > TARE__STORE_SAMPLES ? TARE__STORE_SAMPLES : n_samples;
    if (n_samples)
        memcpy(samples, columns[9].data, n_samples * sizeof *samples);
    tare__figure figure = {
        .name = tare__sql_copy(scratch, &columns[0]),
        .unit = unit ? unit : "",
        .per = tare__sql_copy(scratch, &columns[2]),
        .better = (tare__better)whole_number(&columns[3], 0),
        .exact = whole_number(&columns[4], 0) & 1,
        .at_least = whole_number(&columns[4], 0) & 2,
        .value = real_number(&columns[5]),
        .total = real_number(&columns[6]),
        .n = (uint64_t)columns[7].integer,
        .each = (uint64_t)columns[8].integer,
        .samples = n_samples ? samples : NULL,
        .n_samples = n_samples,
    };
    int status = figure.name ? tare__figures_add(context, &figure) : 0;
    tare__arena_free(scratch);
    return status;
}

int tare__store_figures(tare__store *store, const tare__kept *run, tare__figures **out, tare__error *error)
{
    tare__figures *figures = tare__figures_new(run->kind ? run->kind : "run");
    if (!figures)
        return tare__no_memory(error);
    figures->command = tare__figures_text(figures, run->command);
    figures->host = tare__figures_text(figures, run->host);
    figures->cpu_model = tare__figures_text(figures, run->cpu_model);
    figures->revision = tare__figures_text(figures, run->revision);
    figures->machine = tare__figures_text(figures, run->machine);
    figures->when_ns = run->when_ns;
    figures->runs = 1;
    const tare__sql_value values[] = {tare__sql_text(run->id)};
    int status = tare__store_run(
        store,
        "SELECT t.text, (SELECT text FROM tare_text WHERE id = f.unit), (SELECT text FROM tare_text WHERE id "
        "= f.per),"
        " f.better, f.exact, f.value, f.total, f.n, f.each_sample, f.samples FROM tare_figure f"
        " JOIN tare_run r ON r.seq = f.run JOIN tare_text t ON t.id = f.name WHERE r.id = $1 ORDER BY t.text",
        values, 1, take_figure, figures, NULL, error);
    if (status) {
        tare__figures_free(figures);
        return no_memory(status, error);
    }
    tare__figures_are_of_one_run(figures);
    *out = figures;
    return 0;
}

/* ---- trends ----------------------------------------------------------------------------------------- */
typedef struct tracing {
    tare__kept_trend *trend;
    size_t room;
} tracing;

static int take_point(void *context, const tare__sql_value *columns, size_t n)
{
    tracing *to = context;
    tare__kept_trend *trend = to->trend;
    (void)n;
    if (!tare__array_fit(&trend->points, &to->room, trend->n + 1, sizeof *trend->points))
        return TARE_E_MEMORY;
    tare__kept_point *point = &trend->points[trend->n++];
    *point = (tare__kept_point){.when_ns = (uint64_t)columns[1].integer,
                                .value = real_number(&columns[2]),
                                .dirty = whole_number(&columns[6], -1),
                                .revision = tare__sql_copy(trend->arena, &columns[3])};
    copy_id(point->id, &columns[0]);
    if (trend->n == 1) { /* as in the newest run */
        const char *unit = tare__sql_copy(trend->arena, &columns[4]);
        trend->unit = unit ? unit : "";
        trend->better = whole_number(&columns[5], 0);
    }
    return 0;
}

static void turn_around(tare__kept_trend *trend)
{
    for (size_t i = 0; i < trend->n / 2; i++) {
        tare__kept_point point = trend->points[i];
        trend->points[i] = trend->points[trend->n - 1 - i];
        trend->points[trend->n - 1 - i] = point;
    }
}

int tare__store_trend(tare__store *store, const tare__store_filter *filter, const char *figure,
                      tare__kept_trend *trend, tare__error *error)
{
    static const char columns[] = "SELECT r.id, r.started, f.value, " TEXT_OF("revision") ", (SELECT text FROM"
        " tare_text WHERE id = f.unit), f.better, r.dirty FROM tare_run r JOIN tare_figure f ON f.run = r.seq";
    tracing to = {.trend = trend};
    *trend = (tare__kept_trend){.arena = tare__arena_new()};
    int status = trend->arena ? select_runs(store, filter, figure, columns, "", take_point, &to, error) : TARE_E_MEMORY;
    if (!status)
        status = find_digits(store, &trend->id_digits, error);
    if (!status && !(trend->name = tare__arena_copy(trend->arena, figure, strlen(figure))))
        status = TARE_E_MEMORY;
    if (!status && trend->n == 0)
        status = TARE__STORE_NONE;
    turn_around(trend);
    if (status)
        tare__store_trend_free(trend);
    return no_memory(status, error);
}

void tare__store_trend_free(tare__kept_trend *trend)
{
    free(trend->points);
    free(trend->groups);
    free(trend->changes);
    tare__arena_free(trend->arena);
    *trend = (tare__kept_trend){.n = 0};
}

/* ---- names of figures ------------------------------------------------------------------------------- */
typedef struct naming {
    tare__arena *arena;
    tare__store_name *names;
    size_t n, room;
} naming;

static int take_name(void *context, const tare__sql_value *columns, size_t n)
{
    naming *to = context;
    (void)n;
    if (to->n == to->room)
        return 0;
    to->names[to->n] =
        (tare__store_name){tare__sql_copy(to->arena, &columns[0]), (uint64_t)columns[1].integer};
    return to->names[to->n++].name ? 0 : TARE_E_MEMORY;
}

#define NAMES_MAX 1000
#define STRING_OF(x)   #x
#define NUMBER_TEXT(x) STRING_OF(x)

int tare__store_names(tare__store *store, const tare__store_filter *filter, tare__arena *arena,
                      tare__store_name **names, size_t *n, tare__error *error)
{
    naming to = {.arena = arena, .room = NAMES_MAX, .names = tare__arena_alloc(arena, NAMES_MAX * sizeof **names)};
    int status = to.names ? select_runs(store, filter, NULL,
                                        "SELECT t.text, count(*) FROM (SELECT r.seq FROM tare_run r",
                                        ") q JOIN tare_figure f ON f.run = q.seq JOIN tare_text t ON t.id = f.name"
                                        " GROUP BY t.text ORDER BY count(*) DESC, t.text LIMIT " NUMBER_TEXT(NAMES_MAX),
                                        take_name, &to, error)
                          : TARE_E_MEMORY;
    *names = to.names;
    *n = to.n;
    return no_memory(status, error);
}
