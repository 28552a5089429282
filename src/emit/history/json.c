/* history json: runs, a run and trends as JSON, and the lines that export writes. docs/JSON.md tells the keys.
 * Owned by the calling thread.
 * Must not know where runs are kept, nor where the bytes go. */
#include <math.h>

#include "emit/flush.h"
#include "words.h"
#include "tare.h"

#define VERSION 1

static void put_number(tare__json *json, const char *key, int value)
{
    tare__json_key(json, key);
    if (value < 0)
        tare__json_null(json);
    else
        tare__json_signed(json, value);
}

static void put_ns(tare__json *json, const char *key, double ns)
{
    tare__json_key(json, key);
    if (isfinite(ns) && fabs(ns) < 9e15)
        tare__json_signed(json, llround(ns));
    else
        tare__json_null(json);
}

static void put_when(tare__json *json, uint64_t ns)
{
    char when[TARE__HISTORY_WORD];
    tare__json_put_string(json, "when", tare__history_iso(when, ns));
    tare__json_key(json, "when_ns");
    if (ns)
        tare__json_unsigned(json, ns);
    else
        tare__json_null(json);
}

static void put_run(tare__json *json, const tare__kept *run)
{
    tare__json_put_string(json, "id", run->id);
    tare__json_put_string(json, "kind", run->kind);
    put_when(json, run->when_ns);
    tare__json_put_string(json, "command", run->command);
    tare__json_put_string(json, "directory", run->directory);
    tare__json_put_string(json, "host", run->host);
    tare__json_put_string(json, "machine", run->machine);
    tare__json_put_string(json, "cpu_model", run->cpu_model);
    tare__json_put_string(json, "revision", run->revision);
    tare__json_key(json, "dirty");
    if (run->dirty < 0)
        tare__json_null(json);
    else
        tare__json_bool(json, run->dirty);
    put_number(json, "status", run->status);
    put_number(json, "signal", run->signal ? run->signal : -1);
    put_ns(json, "elapsed_ns", run->elapsed_ns);
    tare__json_put_string(json, "trace", run->trace);
    tare__json_key(json, "tags");
    tare__json_array(json);
    for (size_t i = 0; i < run->n_tags; i++)
        tare__json_string(json, run->tags[i]);
    tare__json_end_array(json);
}

static void begin(tare__json *json, tare__text *text, bool pretty)
{
    tare__json_begin(json, text, pretty);
    tare__json_object(json);
    tare__json_key(json, "schema");
    tare__json_object(json);
    tare__json_put_string(json, "name", "tare-history");
    tare__json_put_unsigned(json, "version", VERSION);
    tare__json_end_object(json);
}

static int finish(tare__json *json, tare__text *text, const tare__emit_sink *sink, tare__error *error)
{
    tare__json_end_object(json);
    tare__text_string(text, "\n");
    int status = tare__emit_flush(text, sink, error);
    tare__text_free(text);
    return status;
}

static int list(const tare__kept_list *list, const tare__emit_options *options, const tare__emit_sink *sink,
                tare__error *error)
{
    tare__text text = {0};
    tare__json json;
    int status = 0;
    begin(&json, &text, options->pretty);
    tare__json_key(&json, "runs");
    tare__json_array(&json);
    for (size_t i = 0; i < list->n && !status; i++) {
        tare__json_object(&json);
        put_run(&json, &list->rows[i]);
        tare__json_end_object(&json);
        status = tare__emit_flush_piece(&text, sink, error);
    }
    tare__json_end_array(&json);
    if (status) {
        tare__text_free(&text);
        return status;
    }
    return finish(&json, &text, sink, error);
}

static void put_whole(tare__json *json, const tare__kept *run, const tare__figures *figures)
{
    tare__json_key(json, "run");
    tare__json_object(json);
    put_run(json, run);
    tare__json_end_object(json);
    tare__json_key(json, "figures");
    tare__figures_write_json(json, figures);
}

static int show(const tare__kept *run, const tare__figures *figures, const tare__emit_options *options,
                const tare__emit_sink *sink, tare__error *error)
{
    tare__text text = {0};
    tare__json json;
    begin(&json, &text, options->pretty);
    put_whole(&json, run, figures);
    return finish(&json, &text, sink, error);
}

void tare__history_put_line(tare__text *out, const tare__kept *run, const tare__figures *figures)
{
    tare__json json;
    begin(&json, out, false);
    put_whole(&json, run, figures);
    tare__json_end_object(&json);
    tare__text_string(out, "\n");
}

static void put_points(tare__json *json, const tare__kept_trend *trend)
{
    tare__json_key(json, "points");
    tare__json_array(json);
    for (size_t i = 0; i < trend->n; i++) {
        const tare__kept_point *point = &trend->points[i];
        tare__json_object(json);
        tare__json_put_string(json, "id", point->id);
        put_when(json, point->when_ns);
        tare__json_put_string(json, "revision", point->revision);
        tare__json_put_double(json, "value", point->value);
        tare__json_end_object(json);
    }
    tare__json_end_array(json);
}

static void put_groups(tare__json *json, const tare__kept_trend *trend)
{
    tare__json_key(json, "revisions");
    tare__json_array(json);
    for (size_t i = 0; i < trend->n_groups; i++) {
        const tare__kept_group *group = &trend->groups[i];
        tare__json_object(json);
        tare__json_put_string(json, "revision", trend->points[group->from].revision);
        tare__json_put_unsigned(json, "at", group->from);
        tare__json_put_unsigned(json, "runs", group->n);
        tare__json_put_double(json, "value", group->value);
        tare__json_put_double(json, "least", group->least);
        tare__json_put_double(json, "most", group->most);
        tare__json_end_object(json);
    }
    tare__json_end_array(json);
}

static void put_changes(tare__json *json, const tare__kept_trend *trend)
{
    tare__json_key(json, "changes");
    tare__json_array(json);
    for (size_t i = 0; i < trend->n_changes; i++) {
        const tare__kept_change *change = &trend->changes[i];
        const char *verdict = tare__history_verdict(trend->better, change->before, change->after);
        tare__json_object(json);
        tare__json_put_unsigned(json, "at", change->at);
        tare__json_put_string(json, "id", trend->points[change->at].id);
        tare__json_put_double(json, "before", change->before);
        tare__json_put_double(json, "after", change->after);
        tare__json_put_string(json, "revision", trend->points[change->at].revision);
        tare__json_put_double(json, "p", change->p);
        tare__json_put_string(json, "verdict", *verdict ? verdict : NULL);
        tare__json_end_object(json);
    }
    tare__json_end_array(json);
}

static int trend(const tare__history_trends *trends, const tare__emit_options *options,
                 const tare__emit_sink *sink, tare__error *error)
{
    tare__text text = {0};
    tare__json json;
    begin(&json, &text, options->pretty);
    tare__json_put_string(&json, "command", trends->command);
    tare__json_put_string(&json, "machine", trends->machine);
    tare__json_key(&json, "trends");
    tare__json_array(&json);
    for (size_t i = 0; i < trends->n; i++) {
        const tare__kept_trend *one = &trends->rows[i];
        tare__json_object(&json);
        tare__json_put_string(&json, "figure", one->name);
        tare__json_put_string(&json, "unit", one->unit);
        tare__json_put_string(&json, "better", tare__better_word((tare__better)one->better));
        put_points(&json, one);
        put_groups(&json, one);
        put_changes(&json, one);
        tare__json_end_object(&json);
    }
    tare__json_end_array(&json);
    return finish(&json, &text, sink, error);
}

const tare__history_emitter tare__history_json = {.name = "json", .list = list, .show = show, .trend = trend};
