/* history html: trends as one page without a script: a chart for each figure, its levels and where they changed.
 * Owned by the calling thread.
 * Must not know where runs are kept, nor where the bytes go. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/flush.h"
#include "words.h"
#include "emit/plain.h"
#include "emit/plain_chart.h"
#include "emit/sheet.h"

#define HEIGHT     250.0
#define ROW        15.0 /* pixels of a row of labels above the scale */
#define ROWS_MAX   3u
#define APART      0.17 /* share of the width between two of these labels in a row: enough on a phone */
#define POINTS_MAX 600u /* with more runs, several share an x position: more points would not be distinguishable */
#define SMALL_FROM 120u
#define FAR        1.5 /* times the spread of 90 % of the runs: the few beyond that do not flatten the rest */

typedef struct course {
    const tare__kept_trend *trend;
    double *sorted;   /* the values */
    size_t each;      /* runs per x position */
    double low, high; /* range that the scale must show */
} course;

/* ---- contents of a chart ------------------------------------------------------------------------------ */
TARE__ORDER(by_value, double, TARE__RISING_VALUE)

static double nearest(const course *of, double share)
{
    return of->sorted[(size_t)(share * (double)(of->trend->n - 1) + 0.5)];
}

static bool open_course(course *to, const tare__kept_trend *trend)
{
    *to = (course){.trend = trend, .each = (trend->n + POINTS_MAX - 1) / POINTS_MAX};
    to->sorted = malloc(trend->n * sizeof *to->sorted);
    if (!to->sorted)
        return false;
    for (size_t i = 0; i < trend->n; i++)
        to->sorted[i] = trend->points[i].value;
    qsort(to->sorted, trend->n, sizeof *to->sorted, by_value);
    double low = nearest(to, 0.05), high = nearest(to, 0.95), room = FAR * (high - low);
    to->low = fmax(to->sorted[0], low - room);
    to->high = fmin(to->sorted[trend->n - 1], high + room);
    for (size_t i = 0; i < trend->n_changes; i++) {
        to->low = fmin(to->low, fmin(trend->changes[i].before, trend->changes[i].after));
        to->high = fmax(to->high, fmax(trend->changes[i].before, trend->changes[i].after));
    }
    return true;
}

static double across(const course *of, double i)
{
    return of->trend->n > 1 ? i / (double)(of->trend->n - 1) : 0.5;
}

/* The minimum, median or maximum of the runs at one x position. */
static double of_place(const course *of, size_t place, int which)
{
    double values[16];
    size_t from = place * of->each, n = 0;
    size_t stride = of->each > TARE__COUNT_OF(values) ? of->each / TARE__COUNT_OF(values) : 1;
    double least = INFINITY, most = -INFINITY;
    for (size_t i = from; i < from + of->each && i < of->trend->n; i++) {
        double value = of->trend->points[i].value;
        least = fmin(least, value);
        most = fmax(most, value);
        if ((i - from) % stride == 0 && n < TARE__COUNT_OF(values))
            values[n++] = value;
    }
    qsort(values, n, sizeof *values, by_value);
    return which < 0 ? least : which > 0 ? most : values[n / 2];
}

static double place_across(const course *of, size_t place)
{
    double last = fmin((double)((place + 1) * of->each), (double)of->trend->n) - 1;
    return across(of, ((double)(place * of->each) + last) / 2);
}

static double at_middle(const void *of, size_t i, bool sideways)
{
    return sideways ? place_across(of, i) : of_place(of, i, 0);
}

static double at_least(const void *of, size_t i, bool sideways)
{
    return sideways ? place_across(of, i) : of_place(of, i, -1);
}

static double at_most(const void *of, size_t i, bool sideways)
{
    return sideways ? place_across(of, i) : of_place(of, i, 1);
}

/* ---- a chart ---------------------------------------------------------------------------------------- */
static bool is_far(const tare__chart *chart, double value)
{
    return value < chart->low || value > chart->high;
}

/* A run: a dot, or a triangle at the end of the scale that points to a value beyond it. */
static void put_run(tare__chart *chart, const course *of, size_t i)
{
    tare__text *out = chart->out;
    const tare__kept_trend *trend = of->trend;
    const tare__kept_point *point = &trend->points[i];
    char value[TARE__HISTORY_WORD], when[TARE__HISTORY_WORD];
    if (is_far(chart, point->value)) {
        tare__text_string(out, "<svg");
        tare__chart_share(out, "x", across(of, (double)i));
        tare__chart_number(out, "y", tare__chart_up(chart, point->value));
        tare__text_format(out, "><path class=\"far\" d=\"%s\">",
                          point->value > chart->high ? "M-4 5L0 -2L4 5z" : "M-4 -5L0 2L4 -5z");
    } else {
        tare__text_string(out, of->trend->n > SMALL_FROM ? "<circle class=\"dot\" r=\"2\""
                                                         : "<circle class=\"dot\" r=\"3\"");
        tare__chart_share(out, "cx", across(of, (double)i));
        tare__chart_number(out, "cy", tare__chart_up(chart, point->value));
        tare__text_string(out, ">");
    }
    tare__text_string(out, "<title>");
    tare__plain_text(out, tare__unit_value(value, trend->unit, point->value));
    tare__text_format(out, ", %s, run %.*s ", tare__history_when(when, point->when_ns, true),
                      (int)trend->id_digits, point->id);
    tare__plain_text(out, point->revision ? point->revision : "");
    tare__text_string(out, is_far(chart, point->value) ? "</title></path></svg>" : "</title></circle>");
}

/* Every run has a dot; if there are too many to distinguish, only the distant ones do, over the band of the others. */
static void put_runs(tare__chart *chart, const course *of)
{
    size_t places = (of->trend->n + of->each - 1) / of->each;
    if (of->each > 1)
        tare__chart_course(chart, "band", of, places, at_least, at_most);
    tare__chart_course(chart, "course", of, places, at_middle, NULL);
    for (size_t i = 0; i < of->trend->n; i++)
        if (of->each == 1 || is_far(chart, of->trend->points[i].value))
            put_run(chart, of, i);
}

static void put_levels(tare__chart *chart, const course *of)
{
    const tare__kept_trend *trend = of->trend;
    double begin = 0;
    for (size_t i = 0; i < trend->n_changes; i++) {
        const tare__kept_change *change = &trend->changes[i];
        double x = across(of, (double)change->at - 0.5);
        tare__chart_line(chart, "level", begin, change->before, x, change->before);
        begin = x;
        if (i + 1 == trend->n_changes)
            tare__chart_line(chart, "level", x, change->after, 1, change->after);
    }
}

/* Puts the size of each change above it, in the first row with free space; without `chart` it only counts rows. */
static unsigned put_sizes(tare__chart *chart, const course *of)
{
    const tare__kept_trend *trend = of->trend;
    double taken[ROWS_MAX] = {-1, -1, -1};
    unsigned rows = 0;
    for (size_t i = 0; i < trend->n_changes; i++) {
        const tare__kept_change *change = &trend->changes[i];
        const char *verdict = tare__kept_verdict(trend->better, change->before, change->after);
        double x = across(of, (double)change->at - 0.5);
        char kind[32], word[TARE__HISTORY_WORD];
        unsigned row = 0;
        while (row < ROWS_MAX && x - taken[row] < APART)
            row++;
        if (chart) {
            snprintf(kind, sizeof kind, "at %s", verdict);
            tare__chart_upright(chart, kind, x);
        }
        if (row == ROWS_MAX) /* shown in the table */
            continue;
        taken[row] = x;
        rows = row + 1 > rows ? row + 1 : rows;
        snprintf(kind, sizeof kind, "size %s", verdict);
        if (chart)
            tare__chart_words(chart, kind,
                              x > 0.85  ? "end"
                              : x < 0.1 ? "start"
                                        : "middle",
                              x, 0, chart->top - 6 - ROW * row,
                              tare__history_change(word, change->before, change->after));
    }
    return rows;
}

static void put_dates(tare__chart *chart, const course *of)
{
    const tare__kept_trend *trend = of->trend;
    char word[TARE__HISTORY_WORD];
    size_t ticks = trend->n >= 5 ? 4 : trend->n > 1 ? 1 : 0;
    for (size_t i = 0; i <= ticks; i++) {
        size_t at = ticks ? (trend->n - 1) * i / ticks : 0;
        bool first = i == 0, last = i == ticks;
        tare__chart_under(chart, first || last ? "" : "roomy",
                          !ticks || (!first && !last) ? "middle"
                          : first                     ? "start"
                                                      : "end",
                          across(of, (double)at), tare__history_when(word, trend->points[at].when_ns, false));
    }
}

/* ---- labels around it ------------------------------------------------------------------------------- */
static void put_key(tare__text *out, const tare__chart *chart, const course *of)
{
    size_t far = 0;
    for (size_t i = 0; i < of->trend->n; i++)
        far += is_far(chart, of->trend->points[i].value);
    tare__text_string(out, "<ul class=\"key plain\">");
    if (of->each > 1)
        tare__text_format(
            out,
            "<li><svg aria-hidden=\"true\"><rect class=\"band\" width=\"22\" height=\"10\"/><line "
            "class=\"course\" x1=\"0\" x2=\"22\" y1=\"5\" y2=\"5\"/></svg>least to most and middle of "
            "%zu runs</li>",
            of->each);
    else
        tare__text_string(
            out,
            "<li><svg aria-hidden=\"true\"><line class=\"course\" x1=\"0\" x2=\"22\" y1=\"5\" y2=\"5\"/>"
            "<g class=\"dot\"><rect x=\"8\" y=\"2\" width=\"6\" height=\"6\" rx=\"3\"/></g></svg>a run</li>");
    if (of->trend->n_changes)
        tare__text_string(
            out,
            "<li><svg aria-hidden=\"true\"><line class=\"level\" x1=\"2\" x2=\"20\" y1=\"5\" y2=\"5\"/></svg>"
            "its level: the median between two changes</li>");
    if (far)
        tare__text_format(
            out,
            "<li><svg aria-hidden=\"true\"><path class=\"far\" d=\"M7 8L11 1L15 8z\"/></svg>beyond the "
            "scale: %zu</li>",
            far);
    tare__text_string(out, "</ul>");
}

static void put_table(tare__text *out, const tare__kept_trends *trends, const tare__kept_trend *trend)
{
    tare__sheet sheet = {
        .out = out, .of = trends, .parent = trend, .table = &tare__table_changes, .unit = trend->unit};
    if (trend->n_changes)
        tare__sheet_rows(&sheet, "Changes of the level", trend->changes, trend->n_changes);
    else
        tare__text_string(out, "<p class=\"note\">No significant change.</p>");
}

static void put_trend(tare__text *out, const tare__kept_trends *trends, size_t number)
{
    const tare__kept_trend *trend = &trends->rows[number];
    static const char *const better[] = {"", ", lower is better", ", higher is better"};
    char last[TARE__HISTORY_WORD], label[256], count[TARE__UNIT_BYTES];
    course of;
    if (!open_course(&of, trend)) {
        out->failed = true;
        return;
    }
    tare__chart chart = {.out = out, .unit = trend->unit, .show = tare__unit_value, .height = HEIGHT};
    chart.top = 10 + ROW * put_sizes(NULL, &of);
    tare__chart_scale(&chart, of.low, of.high);
    tare__text_format(out, "<section class=\"trend\" id=\"figure-%zu\"><h2>", number);
    tare__plain_text(out, trend->name);
    tare__text_format(out,
                      "</h2><figure class=\"plot\"><figcaption>%s run%s, oldest first%s; the last: <strong>",
                      tare__unit_count(count, (double)trend->n), trend->n == 1 ? "" : "s",
                      better[trend->better >= 0 && trend->better <= 2 ? trend->better : 0]);
    tare__plain_text(out, tare__unit_value(last, trend->unit, trend->points[trend->n - 1].value));
    tare__text_string(out, "</strong></figcaption>");
    snprintf(label, sizeof label, "%.200s in the course of runs", trend->name);
    tare__chart_open(&chart, label);
    put_runs(&chart, &of);
    put_levels(&chart, &of);
    put_sizes(&chart, &of);
    put_dates(&chart, &of);
    tare__chart_close(&chart);
    put_key(out, &chart, &of);
    tare__text_string(out, "</figure>");
    put_table(out, trends, trend);
    tare__text_string(out, "</section>\n");
    free(of.sorted);
}

/* ---- the page --------------------------------------------------------------------------------------- */
static void put_head(tare__text *out, const tare__kept_trends *trends)
{
    size_t changed = 0;
    char lead[128], title[160];
    for (size_t i = 0; i < trends->n; i++)
        changed += trends->rows[i].n_changes > 0;
    if (changed)
        snprintf(lead, sizeof lead, "%zu of %zu figure%s changed %s level.", changed, trends->n,
                 trends->n == 1 ? "" : "s", changed == 1 ? "its" : "their");
    else
        snprintf(lead, sizeof lead, "No significant change in any figure.");
    snprintf(title, sizeof title, trends->n == 1 ? "Tare: the course of %.100s" : "Tare: history",
             trends->n == 1 ? trends->rows[0].name : "");
    tare__plain_begin(out, title, trends->command ? trends->command : "Runs of the history", lead);
    if (trends->machine) {
        tare__text_string(out, "<p class=\"note\">Runs on one machine (");
        tare__plain_text(out, trends->machine);
        tare__text_string(out, ").</p>\n");
    }
}

/* Overview of all figures, each with a link to its chart. */
static void put_overview(tare__text *out, const tare__kept_trends *trends)
{
    tare__sheet sheet = {.out = out, .of = trends, .table = &tare__table_trends, .link = "figure-"};
    if (trends->n < 2)
        return;
    tare__text_string(out, "<section><h2>Figures</h2>");
    tare__sheet_rows(&sheet, "Figures", trends->rows, trends->n);
    tare__text_string(out, "</section>\n");
}

static int trend(const void *what, const tare__emit_options *options, const tare__emit_sink *sink, tare__error *error)
{
    const tare__kept_trends *trends = what;
    tare__text out = {0};
    int status = 0;
    (void)options;
    put_head(&out, trends);
    put_overview(&out, trends);
    for (size_t i = 0; i < trends->n && !status; i++) {
        put_trend(&out, trends, i);
        status = tare__emit_flush_piece(&out, sink, error);
    }
    tare__plain_end(&out);
    return tare__emit_end(&out, status, sink, error);
}

const tare__history_emitter tare__history_html = {.name = "html", .trend = trend};
