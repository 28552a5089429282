/* history text: runs, a run, and trends in a terminal of 80 columns or more. Owned by the calling thread.
 * Must not know where runs are kept, nor where the bytes go. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/flush.h"
#include "emit/layout.h"
#include "words.h"

#define CELL_BYTES 4096

static void put_fitted(tare__text *out, const char *text, size_t columns)
{
    char cell[CELL_BYTES];
    tare__text_fit(cell, sizeof cell, text, columns);
    tare__text_string(out, cell);
}

static void put_line(tare__text *out, const char *label, const char *value, size_t width)
{
    if (!value || !*value)
        return;
    tare__text_format(out, "  %-9s ", label);
    put_fitted(out, value, width - 12);
    tare__text_string(out, "\n");
}

/* ---- runs ------------------------------------------------------------------------------------------- */
static const char *ending(char out[TARE__HISTORY_WORD], const tare__kept *run)
{
    if (run->signal)
        snprintf(out, TARE__HISTORY_WORD, "sig %d", run->signal);
    else if (run->status >= 0)
        snprintf(out, TARE__HISTORY_WORD, "%d", run->status);
    else
        strcpy(out, "?");
    return out;
}

static void put_tags(tare__text *out, const tare__kept *run)
{
    for (size_t i = 0; i < run->n_tags; i++)
        tare__text_format(out, "%s%s", i ? " " : "[", run->tags[i]);
    if (run->n_tags)
        tare__text_string(out, "]");
}

/* The command gets the columns that the other columns and its tags leave free. */
static void put_run(tare__text *out, const tare__kept *run, unsigned digits, size_t width)
{
    char when[TARE__HISTORY_WORD], end[TARE__HISTORY_WORD], revision[TARE__HISTORY_WORD],
        elapsed[TARE__UNIT_BYTES];
    tare__text tags = {0};
    size_t start = out->length;
    tare__text_format(out, "%.*s  %-16s  %6s  ", (int)digits, run->id,
                      tare__history_when(when, run->when_ns, false), ending(end, run));
    tare__unit_time(elapsed, run->elapsed_ns);
    size_t columns = tare__text_columns(elapsed, strlen(elapsed));
    tare__text_format(out, "%*s%s  %-8s  ", columns < 8 ? (int)(8 - columns) : 0, "", elapsed,
                      tare__history_revision(revision, run->revision, run->dirty));
    size_t used = out->failed ? width : tare__text_columns(out->data + start, out->length - start);
    size_t left = width > used + 8 ? width - used : 8;
    put_tags(&tags, run);
    out->failed = out->failed || tags.failed;
    size_t for_tags = tags.failed || !tags.length ? 0 : tare__text_columns(tags.data, tags.length) + 1;
    for_tags = for_tags > left / 2 ? left / 2 : for_tags;
    put_fitted(out, run->command ? run->command : "(command unknown)", left - for_tags);
    if (for_tags > 2) {
        tare__text_string(out, " ");
        put_fitted(out, tags.data, for_tags - 1);
    }
    tare__text_string(out, "\n");
    tare__text_free(&tags);
}

static int list(const void *what, const tare__emit_options *options, const tare__emit_sink *sink, tare__error *error)
{
    const tare__kept_list *list = what;
    tare__text out = {0};
    int status = 0;
    if (list->n)
        tare__text_format(&out, "%-*s  %-16s  %6s  %8s  %-8s  %s\n", (int)list->id_digits, "id", "when",
                          "status", "elapsed", "revision", "command");
    for (size_t i = 0; i < list->n && !status; i++) {
        put_run(&out, &list->rows[i], list->id_digits, options->width);
        status = tare__emit_flush_piece(&out, sink, error);
    }
    return tare__emit_end(&out, status, sink, error);
}

/* ---- one run ---------------------------------------------------------------------------------------- */
static void put_head(tare__text *out, const tare__kept *run, size_t width)
{
    char when[TARE__HISTORY_WORD], elapsed[TARE__UNIT_BYTES];
    tare__text line = {0};
    tare__text_format(out, "%s %s\n\n", run->kind ? run->kind : "run", run->id);
    put_line(out, "command", run->command, width);
    put_line(out, "when", tare__history_when(when, run->when_ns, true), width);
    if (run->signal)
        tare__text_format(&line, "signal %d", run->signal);
    else if (run->status >= 0)
        tare__text_format(&line, "exit status %d", run->status);
    else
        tare__text_string(&line, "status not known");
    if (!isnan(run->elapsed_ns))
        tare__text_format(&line, " after %s", tare__unit_time(elapsed, run->elapsed_ns));
    put_line(out, "ended", line.data, width);
    tare__text_clear(&line);
    if (run->revision)
        tare__text_format(&line, "%s%s", run->revision,
                          run->dirty == 1   ? ", with changes"
                          : run->dirty == 0 ? ""
                                            : " (not known whether with changes)");
    put_line(out, "revision", line.data, width);
    put_line(out, "folder", run->directory, width);
    put_line(out, "host", run->host, width);
    put_line(out, "CPU", run->cpu_model, width);
    tare__text_clear(&line);
    for (size_t i = 0; i < run->n_tags; i++)
        tare__text_format(&line, "%s%s", i ? " " : "", run->tags[i]);
    put_line(out, "tags", line.data, width);
    out->failed = out->failed || line.failed;
    put_line(out, run->kind && strcmp(run->kind, "run") != 0 ? "file" : "trace", run->trace, width);
    tare__text_free(&line);
}

/* With at least one space before it. */
static void put_right(tare__text *out, const char *text, size_t columns)
{
    char cell[TARE__HISTORY_WORD * 4];
    tare__text_fit(cell, sizeof cell, text, columns - 1);
    size_t used = tare__text_columns(cell, strlen(cell));
    tare__text_format(out, "%*s%s", (int)(columns - used), "", cell);
}

static int show(const void *what, const tare__emit_options *options, const tare__emit_sink *sink, tare__error *error)
{
    const tare__figures *figures = ((const tare__kept_run *)what)->figures;
    tare__text out = {0};
    size_t name = options->width - 2 - 18 - 12 - 9;
    put_head(&out, ((const tare__kept_run *)what)->run, options->width);
    tare__text_string(&out, "\n");
    if (figures->n == 0)
        tare__text_string(&out, "  no figures are kept of it\n");
    for (size_t i = 0; i < figures->n; i++) {
        const tare__figure *figure = &figures->rows[i];
        char value[TARE__VALUE_BYTES], number[TARE__UNIT_BYTES];
        if (i == 0) {
            tare__text_string(&out, "  figure");
            tare__text_pad_to(&out, 2 + name);
            tare__text_format(&out, "%18s%12s%9s\n", "value", "in all", "n");
        }
        tare__text_string(&out, "  ");
        put_fitted(&out, figure->name, name);
        tare__text_pad_to(&out, 2 + name);
        put_right(&out, tare__unit_value(value, figure->unit, figure->value), 18);
        put_right(&out,
                  isnan(figure->total) || figure->n <= 1
                      ? ""
                      : tare__unit_value(value, figure->unit, figure->total),
                  12);
        put_right(&out, tare__unit_count(number, (double)figure->n), 9);
        tare__text_string(&out, "\n");
    }
    return tare__emit_end(&out, 0, sink, error);
}

/* ---- trends ----------------------------------------------------------------------------------------- */
/* One column per run, or as many as fit: then each is the median of several runs. */
static void put_spark(tare__text *out, const tare__kept_trend *trend, size_t width)
{
    size_t columns = trend->n < width ? trend->n : width;
    double low = INFINITY, high = -INFINITY, *some = calloc(trend->n + 1, sizeof *some);
    for (size_t i = 0; i < trend->n; i++) {
        low = fmin(low, trend->points[i].value);
        high = fmax(high, trend->points[i].value);
    }
    out->failed = out->failed || !some;
    tare__text_string(out, "  ");
    for (size_t column = 0; column < columns && some; column++) {
        size_t from = column * trend->n / columns, to = (column + 1) * trend->n / columns;
        for (size_t i = from; i < to; i++)
            some[i - from] = trend->points[i].value;
        tare__sort(some, to - from);
        double value = tare__quantile_sorted(some, to - from, 0.5);
        double share = high > low ? (value - low) / (high - low) : 0.5;
        tare__text_string(out, tare__page_spark(share));
    }
    tare__text_string(out, "\n");
    free(some);
}

static void put_summary(tare__text *out, const tare__kept_trend *trend)
{
    char words[4][TARE__VALUE_BYTES];
    double *sorted = calloc(trend->n + 1, sizeof *sorted);
    if (!sorted) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < trend->n; i++)
        sorted[i] = trend->points[i].value;
    tare__sort(sorted, trend->n);
    tare__text_format(
        out, "  least %s, median %s, most %s, last %s\n",
        tare__unit_value(words[0], trend->unit, sorted[0]),
        tare__unit_value(words[1], trend->unit, tare__quantile_sorted(sorted, trend->n, 0.5)),
        tare__unit_value(words[2], trend->unit, sorted[trend->n - 1]),
        tare__unit_value(words[3], trend->unit, trend->points[trend->n - 1].value));
    free(sorted);
}

static void put_changes(tare__text *out, const tare__kept_trend *trend)
{
    if (trend->n_changes == 0)
        tare__text_string(out, "  no significant change\n");
    for (size_t i = 0; i < trend->n_changes; i++) {
        const tare__kept_change *change = &trend->changes[i];
        const tare__kept_point *point = &trend->points[change->at];
        char share[TARE__UNIT_BYTES], when[TARE__HISTORY_WORD], from[TARE__VALUE_BYTES],
            to[TARE__VALUE_BYTES], revision[TARE__HISTORY_WORD];
        const char *verdict = tare__kept_verdict(trend->better, change->before, change->after);
        tare__text_format(out, "  %9s  %-6s  %s  %.*s  %-8s  ",
                          tare__history_change(share, change->before, change->after), verdict,
                          tare__history_when(when, point->when_ns, false), (int)trend->id_digits, point->id,
                          tare__history_revision(revision, point->revision, 0));
        char p[TARE__COMPARED_BYTES];
        tare__text_format(out, "%s → %s\n             p %s\n", tare__unit_value(from, trend->unit, change->before),
                          tare__unit_value(to, trend->unit, change->after),
                          tare__schema_show(p, change->p, TARE__SHOW_P));
    }
}

static int trend(const void *what, const tare__emit_options *options, const tare__emit_sink *sink, tare__error *error)
{
    const tare__kept_trends *trends = what;
    static const char *const better[] = {"", ", lower is better", ", higher is better"};
    tare__text out = {0};
    for (size_t i = 0; i < trends->n; i++) {
        const tare__kept_trend *one = &trends->rows[i];
        char from[TARE__HISTORY_WORD], to[TARE__HISTORY_WORD];
        tare__text_string(&out, i ? "\n" : "");
        put_fitted(&out, one->name, options->width - 40);
        tare__text_format(&out, "%s: %zu run%s", better[one->better >= 0 && one->better <= 2 ? one->better : 0], one->n,
                          one->n == 1 ? "" : "s");
        if (one->n_groups && one->n_groups < one->n)
            tare__text_format(&out, " of %zu revision%s", one->n_groups, one->n_groups == 1 ? "" : "s");
        tare__text_string(&out, "\n");
        if (trends->command && i == 0)
            put_line(&out, "of", trends->command, options->width);
        tare__text_format(&out, "  %s to %s\n", tare__history_when(from, one->points[0].when_ns, false),
                          tare__history_when(to, one->points[one->n - 1].when_ns, false));
        put_spark(&out, one, options->width - 4);
        put_summary(&out, one);
        put_changes(&out, one);
    }
    return tare__emit_end(&out, 0, sink, error);
}

const tare__history_emitter tare__history_text = {.name = "text", .list = list, .show = show, .trend = trend};
