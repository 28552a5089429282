/* history csv: runs, figures of a run and trends as one table of comma-separated values each.
 * Owned by the calling thread. docs/HISTORY.md tells the columns.
 * Must not know where runs are kept, nor where the bytes go. */
#include <math.h>

#include "emit/csv.h"
#include "emit/flush.h"
#include "words.h"

static void put_names(csv *to, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tare__csv_text(to, names[i]);
    tare__csv_end_row(to);
}

static int finish(csv *to)
{
    int status = to->status ? to->status : tare__emit_flush(&to->text, to->sink, to->error);
    tare__text_free(&to->text);
    return status;
}

static void put_known(csv *to, int value)
{
    if (value < 0)
        tare__csv_absent(to);
    else
        tare__csv_signed(to, value);
}

static int list(const tare__kept_list *list, const tare__emit_options *options, const tare__emit_sink *sink,
                tare__error *error)
{
    static const char *const names[] = {"id",     "when",       "kind",     "command", "directory",
                                        "host",   "machine",    "revision", "dirty",   "status",
                                        "signal", "elapsed_ns", "trace",    "tags"};
    csv to = {.sink = sink, .error = error};
    (void)options;
    put_names(&to, names, TARE__COUNT_OF(names));
    for (size_t i = 0; i < list->n && !to.status; i++) {
        const tare__kept *run = &list->rows[i];
        char when[TARE__HISTORY_WORD];
        tare__text tags = {0};
        for (size_t j = 0; j < run->n_tags; j++)
            tare__text_format(&tags, "%s%s", j ? " " : "", run->tags[j]);
        to.text.failed = to.text.failed || tags.failed;
        tare__csv_text(&to, run->id);
        tare__csv_text(&to, tare__history_iso(when, run->when_ns));
        tare__csv_text(&to, run->kind);
        tare__csv_text(&to, run->command);
        tare__csv_text(&to, run->directory);
        tare__csv_text(&to, run->host);
        tare__csv_text(&to, run->machine);
        tare__csv_text(&to, run->revision);
        put_known(&to, run->dirty);
        put_known(&to, run->status);
        put_known(&to, run->signal ? run->signal : -1);
        tare__csv_ns(&to, run->elapsed_ns);
        tare__csv_text(&to, run->trace);
        tare__csv_text(&to, tags.failed ? NULL : tags.data);
        tare__csv_end_row(&to);
        tare__text_free(&tags);
    }
    return finish(&to);
}

static int show(const tare__kept *run, const tare__figures *figures, const tare__emit_options *options,
                const tare__emit_sink *sink, tare__error *error)
{
    static const char *const names[] = {"figure", "unit", "better", "exact", "value", "total", "n"};
    csv to = {.sink = sink, .error = error};
    (void)options, (void)run;
    put_names(&to, names, TARE__COUNT_OF(names));
    for (size_t i = 0; i < figures->n && !to.status; i++) {
        const tare__figure *figure = &figures->rows[i];
        tare__csv_text(&to, figure->name);
        tare__csv_text(&to, figure->unit);
        tare__csv_text(&to, tare__better_word(figure->better));
        tare__csv_flag(&to, figure->exact);
        tare__csv_double(&to, figure->value);
        tare__csv_double(&to, figure->total);
        tare__csv_count(&to, figure->n);
        tare__csv_end_row(&to);
    }
    return finish(&to);
}

static const tare__kept_change *change_at(const tare__kept_trend *trend, size_t point)
{
    for (size_t i = 0; i < trend->n_changes; i++)
        if (trend->changes[i].at == point)
            return &trend->changes[i];
    return NULL;
}

static int trend(const tare__history_trends *trends, const tare__emit_options *options,
                 const tare__emit_sink *sink, tare__error *error)
{
    static const char *const names[] = {"figure", "unit",         "id",          "when", "revision",
                                        "value",  "level_before", "level_after", "p"};
    csv to = {.sink = sink, .error = error};
    (void)options;
    put_names(&to, names, TARE__COUNT_OF(names));
    for (size_t i = 0; i < trends->n; i++) {
        const tare__kept_trend *one = &trends->rows[i];
        for (size_t j = 0; j < one->n && !to.status; j++) {
            const tare__kept_change *change = change_at(one, j);
            char when[TARE__HISTORY_WORD];
            tare__csv_text(&to, one->name);
            tare__csv_text(&to, one->unit);
            tare__csv_text(&to, one->points[j].id);
            tare__csv_text(&to, tare__history_iso(when, one->points[j].when_ns));
            tare__csv_text(&to, one->points[j].revision);
            tare__csv_double(&to, one->points[j].value);
            tare__csv_double(&to, change ? change->before : NAN);
            tare__csv_double(&to, change ? change->after : NAN);
            tare__csv_double(&to, change ? change->p : NAN);
            tare__csv_end_row(&to);
        }
    }
    return finish(&to);
}

const tare__history_emitter tare__history_csv = {.name = "csv", .list = list, .show = show, .trend = trend};
