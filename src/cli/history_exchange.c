/* history_exchange: copies runs out of a history and into it: export and import as lines of JSON, add from traces. One
 * thread.
 * Trusts no line it reads.
 * Must not know how runs are stored. */
#define _GNU_SOURCE
#include "history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keep.h"

#define ME             TARE__HISTORY_ME
#define LINE_BYTES_MAX ((size_t)64 << 20)
#define AT_ONCE        200 /* runs per transaction: other writers wait no longer than for these */

/* ---- export ----------------------------------------------------------------------------------------- */
typedef struct exporting {
    tare__history_call *history;
    tare__kept_list runs;
} exporting;

/* The oldest first, so that an import keeps the order. */
static int export_lines(const void *what, const tare__emit_options *options, const tare__emit_sink *sink,
                        tare__error *error)
{
    const exporting *from = what;
    tare__text line = {0};
    int status = 0;
    (void)options;
    for (size_t i = from->runs.n; i-- > 0 && !status;) {
        tare__figures *figures = NULL;
        status = tare__store_figures(from->history->store, &from->runs.rows[i], &figures, error);
        if (status)
            break;
        tare__text_clear(&line);
        tare__history_put_line(&line, &from->runs.rows[i], figures);
        tare__figures_free(figures);
        status = line.failed ? tare__no_memory(error)
                 : sink->write(sink->context, line.data, line.length) ? TARE_E_SYSTEM
                                                                      : 0;
    }
    tare__text_free(&line);
    return status;
}

int tare__history_do_export(tare__history_call *history, tare__error *error)
{
    exporting from = {.history = history};
    int status = history->store ? tare__store_list(history->store, &history->filter, &from.runs, error) : 0;
    if (status)
        return tare__history_exit(status);
    history->exports = true;
    int exit_status = tare__history_write(history, export_lines, &from, error);
    tare__store_list_free(&from.runs);
    return exit_status;
}

/* ---- import: one line ------------------------------------------------------------------------------- */
typedef struct line {
    tare__json_reader reader;
    tare__arena *arena;
    tare__kept run;
    const char *tags[64];
    bool has_run;
    uint64_t version;
} line;

static bool is_key(const line *from, const char *name)
{
    return from->reader.length == strlen(name) && memcmp(from->reader.text, name, from->reader.length) == 0;
}

static const char *copy_text(line *from, tare__json_token token)
{
    return token == TARE__JSON_STRING ? tare__arena_copy(from->arena, from->reader.text, from->reader.length) : NULL;
}

static int64_t whole_number(line *from, tare__json_token token, int64_t otherwise)
{
    int64_t value;
    bool good = token == TARE__JSON_NUMBER && tare__json_scaled(from->reader.text, from->reader.length, 1, &value);
    return good ? value : otherwise;
}

static tare__json_token take_tags(line *from)
{
    tare__json_token token;
    while ((token = tare__json_next(&from->reader)) == TARE__JSON_STRING) {
        const char *tag = copy_text(from, token);
        if (tag && *tag && from->run.n_tags < TARE__COUNT_OF(from->tags))
            from->tags[from->run.n_tags++] = tag;
    }
    return token;
}

static bool take_id(line *from, tare__json_token token)
{
    if (token != TARE__JSON_STRING || from->reader.length != TARE__KEPT_ID_DIGITS)
        return false;
    memcpy(from->run.id, from->reader.text, TARE__KEPT_ID_DIGITS);
    return strspn(from->run.id, "0123456789abcdef") == TARE__KEPT_ID_DIGITS;
}

/* Reads the value of one key of the run. Returns its last token. */
static tare__json_token take_field(line *from)
{
    tare__kept *run = &from->run;
    const struct {
        const char *name;
        const char **into;
    } texts[] = {{"kind", &run->kind},         {"command", &run->command}, {"directory", &run->directory},
                 {"host", &run->host},         {"machine", &run->machine}, {"cpu_model", &run->cpu_model},
                 {"revision", &run->revision}, {"trace", &run->trace}};
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++)
        if (is_key(from, texts[i].name)) {
            tare__json_token token = tare__json_next(&from->reader);
            *texts[i].into = copy_text(from, token);
            return tare__json_skip(&from->reader, token);
        }
    enum {
        OTHER,
        ID,
        WHEN,
        DIRTY,
        STATUS,
        SIGNAL,
        ELAPSED,
        TAGS
    } key = is_key(from, "id")           ? ID
            : is_key(from, "when_ns")    ? WHEN
            : is_key(from, "dirty")      ? DIRTY
            : is_key(from, "exit_status") ? STATUS
            : is_key(from, "signal")     ? SIGNAL
            : is_key(from, "elapsed_ns") ? ELAPSED
            : is_key(from, "tags")       ? TAGS
                                         : OTHER;
    tare__json_token token = tare__json_next(&from->reader);
    if (key == ID)
        from->has_run = take_id(from, token);
    else if (key == WHEN)
        run->when_ns = (uint64_t)whole_number(from, token, 0);
    else if (key == DIRTY)
        run->dirty = token == TARE__JSON_TRUE ? 1 : token == TARE__JSON_FALSE ? 0 : -1;
    else if (key == STATUS)
        run->status = (int)whole_number(from, token, -1);
    else if (key == SIGNAL)
        run->signal = (int)whole_number(from, token, 0);
    else if (key == ELAPSED)
        run->elapsed_ns =
            token == TARE__JSON_NUMBER ? tare__json_double_of(from->reader.text, from->reader.length) : NAN;
    else if (key == TAGS && token == TARE__JSON_ARRAY)
        return take_tags(from);
    return tare__json_skip(&from->reader, token);
}

static void take_run(line *from)
{
    tare__json_token token = tare__json_next(&from->reader);
    if (token != TARE__JSON_OBJECT) {
        tare__json_skip(&from->reader, token);
        return;
    }
    while ((token = tare__json_next(&from->reader)) == TARE__JSON_KEY)
        if (take_field(from) == TARE__JSON_BROKEN)
            return;
}

/* The version stays 0 if the schema is a different one. */
static void take_schema(line *from)
{
    bool named = false;
    uint64_t version = 0;
    tare__json_token token = tare__json_next(&from->reader);
    if (token != TARE__JSON_OBJECT) {
        tare__json_skip(&from->reader, token);
        return;
    }
    while ((token = tare__json_next(&from->reader)) == TARE__JSON_KEY) {
        bool name = is_key(from, "name"), number = is_key(from, "version");
        token = tare__json_next(&from->reader);
        if (name)
            named = token == TARE__JSON_STRING && is_key(from, "tare-history");
        else if (number)
            version = (uint64_t)whole_number(from, token, 0);
        if (tare__json_skip(&from->reader, token) == TARE__JSON_BROKEN)
            return;
    }
    from->version = named ? version : 0;
}

/* Reads the fields besides the figures. False: not a line of a history. */
static bool read_line(line *from, const char *text, size_t length)
{
    tare__memory_source source = {text, length};
    if (!tare__json_reader_open(&from->reader, tare__memory_read, &source))
        return false;
    from->run = (tare__kept){.dirty = -1, .status = -1, .elapsed_ns = NAN, .tags = from->tags};
    tare__json_token token = tare__json_next(&from->reader);
    bool object = token == TARE__JSON_OBJECT;
    while (object && (token = tare__json_next(&from->reader)) == TARE__JSON_KEY) {
        if (is_key(from, "run")) {
            take_run(from);
        } else if (is_key(from, "schema")) {
            take_schema(from);
        } else {
            tare__json_skip(&from->reader, tare__json_next(&from->reader));
        }
    }
    bool good = object && !from->reader.wrong && token == TARE__JSON_END_OBJECT && from->has_run;
    tare__json_reader_close(&from->reader);
    return good;
}

static int import_line(tare__history_call *history, const char *where, const char *text, size_t length,
                       bool *added, bool *refused, tare__error *error)
{
    static line one;
    tare__figures *figures = NULL;
    one = (line){.arena = tare__arena_new()};
    if (!one.arena)
        return tare__no_memory(error);
    int status = 0;
    bool good = read_line(&one, text, length);
    if (one.version > 1)
        status = tare__fail(error, TARE_E_VERSION, "%s was written by a newer version of tare", where);
    else if (!good || one.version != 1)
        status = tare__fail(error, TARE_E_INPUT, "%s is not a run exported by `tare history export`", where);
    if (!status)
        status = tare__figures_read_json(text, length, where, &figures, error);
    if (!status) {
        status = tare__store_put(history->store, &one.run, figures, added, error);
        *refused = status != 0;
    }
    tare__figures_free(figures);
    tare__arena_free(one.arena);
    return status;
}

/* ---- import: files ---------------------------------------------------------------------------------- */
typedef struct tally {
    uint64_t added, there;
    struct tally_sure {
        uint64_t added, there;
    } sure;       /* of committed transactions */
    bool refused; /* by the store, in the middle of a transaction */
} tally;

static int end_transaction(tare__history_call *history, tally *to, tare__error *error)
{
    int status = tare__store_end(history->store, error);
    if (!status)
        to->sure = (struct tally_sure){to->added, to->there};
    else
        to->refused = true;
    return status;
}

/* Like getline, but limited to one byte more than a run can have: a file without line ends must not exhaust memory.
 * False: the end, or `line->failed`. */
static bool next_line(FILE *stream, tare__text *line)
{
    char piece[4096];
    size_t n = 0;
    int byte = 0;
    tare__text_clear(line);
    while (line->length + n <= LINE_BYTES_MAX && byte != '\n' && (byte = getc_unlocked(stream)) != EOF) {
        piece[n++] = (char)byte;
        if (n == sizeof piece) {
            tare__text_append(line, piece, n);
            n = 0;
        }
    }
    tare__text_append(line, piece, n);
    return !line->failed && line->length > 0;
}

static int import_stream(tare__history_call *history, FILE *stream, const char *name, tally *to, tare__error *error)
{
    tare__text line = {0};
    int status = 0;
    for (uint64_t number = 1; !status && next_line(stream, &line); number++) {
        char where[300];
        bool added = false;
        size_t length = line.length;
        snprintf(where, sizeof where, "%.200s:%llu", name, (unsigned long long)number);
        while (length > 0 && memchr(" \t\r\n", line.data[length - 1], 4))
            length--;
        if (length == 0)
            continue;
        if (length > LINE_BYTES_MAX)
            status = tare__fail(error, TARE_E_INPUT, "%s: line too long for a run", where);
        if (!status && (to->added + to->there) % AT_ONCE == 0)
            status = tare__store_begin(history->store, error);
        if (!status)
            status = import_line(history, where, line.data, length, &added, &to->refused, error);
        if (!status && added)
            to->added++;
        else if (!status)
            to->there++;
        if (!status && (to->added + to->there) % AT_ONCE == 0)
            status = end_transaction(history, to, error);
    }
    if (!status && line.failed)
        status = tare__fail(error, TARE_E_MEMORY, "out of memory while reading '%.200s'", name);
    if (!status && ferror(stream))
        status = tare__fail(error, TARE_E_INPUT, "cannot read '%.200s': %s", name, strerror(errno));
    tare__text_free(&line);
    return status;
}

static int import_file(tare__history_call *history, const char *path, tally *to, tare__error *error)
{
    if (strcmp(path, "-") == 0)
        return import_stream(history, stdin, "standard input", to, error);
    int fd, status = tare__input_stream(path, &fd, error);
    if (status)
        return status;
    FILE *stream = fdopen(fd, "r");
    if (!stream) {
        close(fd);
        return tare__no_memory(error);
    }
    status = import_stream(history, stream, path, to, error);
    fclose(stream);
    return status;
}

static void say_tally(const tally *to)
{
    char added[TARE__UNIT_BYTES], there[TARE__UNIT_BYTES];
    tare__unit_count(added, (double)to->added);
    if (to->there)
        tare__cli_say(ME, "%s run%s added, %s already present", added, to->added == 1 ? "" : "s",
                      tare__unit_count(there, (double)to->there));
    else
        tare__cli_say(ME, "%s run%s added", added, to->added == 1 ? "" : "s");
}

int tare__history_do_import(tare__history_call *history, tare__error *error)
{
    tally to = {0};
    int status = 0;
    static char standard_input[] = "-";
    char *only[] = {standard_input};
    char **paths = history->n_words ? history->words : only;
    for (int i = 0; i < (history->n_words ? history->n_words : 1) && !status; i++)
        status = import_file(history, paths[i], &to, error);
    /* Lines before an invalid one are complete and are committed; if the store failed, its last transaction is not. */
    if (!to.refused && (to.added + to.there) % AT_ONCE != 0) {
        int ended = end_transaction(history, &to, status ? NULL : error);
        status = status ? status : ended;
    }
    if (to.refused) {
        tare__store_undo(history->store);
        to.added = to.sure.added;
        to.there = to.sure.there;
    }
    say_tally(&to);
    return tare__history_exit(status);
}

/* ---- add -------------------------------------------------------------------------------------------- */
static int add_trace(tare__history_call *history, const char *path, bool *added, tare__error *error)
{
    tare__trace *trace = NULL;
    tare__analysis *analysis = NULL;
    tare__figures *figures = NULL;
    tare__kept run;
    tare__arena *arena = tare__arena_new();
    int status = arena ? tare__trace_open(path, &trace, error) : tare__no_memory(error);
    if (!status)
        status = tare__analyze(trace, &(tare__analyze_options){.samples = true}, &analysis, error);
    if (!status)
        status = tare__cli_kept_of_trace(trace, analysis, arena, &run, error);
    if (!status && tare__figures_of_analysis(analysis, &figures) != 0)
        status = tare__no_memory(error);
    if (!status) {
        run.machine = figures->machine;
        run.tags = history->tags;
        run.n_tags = history->filter.n_tags;
        status = tare__store_put(history->store, &run, figures, added, error);
    }
    tare__figures_free(figures);
    tare__analysis_free(analysis);
    tare__trace_close(trace);
    tare__arena_free(arena);
    return status;
}

int tare__history_do_add(tare__history_call *history, tare__error *error)
{
    tally to = {0};
    int status = 0;
    for (int i = 0; i < history->n_words && !status; i++) {
        bool added = false;
        status = add_trace(history, history->words[i], &added, error);
        if (!status && added)
            to.added++;
        else if (!status)
            to.there++;
    }
    say_tally(&to);
    return tare__history_exit(status);
}
