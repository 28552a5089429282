/* model charts: charts of a measured model, as inline SVG.
 * Owned by the calling thread.
 * Must not know how it was measured. */
#include "charts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emit/plain.h"
#include "emit/plain_chart.h"

#define BINS_MAX   40u
#define PLOT       220.0 /* pixels of a chart's height */
#define LABELS_MAX 12u   /* of dots in a chart */
#define LETTER     0.026
#define GAP        0.05 /* from a dot to its label, and after the label */
#define LINE       14.0 /* pixels */
#define POINTS_MAX 1000u

static const char *show_count(char out[TARE__CHART_WORD], const char *unit, double value)
{
    char number[TARE__UNIT_BYTES];
    snprintf(out, TARE__CHART_WORD, "%s%s%.24s", tare__unit_count(number, value), *unit ? " " : "", unit);
    return out;
}

static const char *show_value(char out[TARE__CHART_WORD], const char *unit, double value)
{
    return tare__unit_value(out, unit, value);
}

static void open_figure(tare__text *out, const char *title)
{
    tare__text_string(out, "<figure class=\"plot\"><figcaption><strong>");
    tare__plain_text(out, title);
    tare__text_string(out, "</strong>");
}

/* ---- distribution --------------------------------------------------------------------------------------------- */
static void put_mark(tare__chart *chart, const char *word, double x, unsigned row)
{
    if (x < 0 || x > 1)
        return;
    tare__chart_upright(chart, "at", x);
    tare__chart_words(chart, "size",
                      x > 0.9    ? "end"
                      : x < 0.05 ? "start"
                                 : "middle",
                      x, 0, chart->top - 6 - 15 * row, word);
}

void tare__model_distribution(tare__text *out, const char *name, const double *samples_ns, size_t n_samples, double p50,
                              double p95)
{
    unsigned bins[BINS_MAX] = {0}, most = 4; /* a scale of runs has integer steps */
    size_t beyond = 0;
    char word[TARE__UNIT_BYTES], runs[TARE__COUNTED_BYTES];
    double from = INFINITY, last = -INFINITY;
    for (size_t i = 0; i < n_samples; i++) {
        from = fmin(from, samples_ns[i]);
        last = fmax(last, samples_ns[i]);
    }
    double to = fmin(last, fmax(p50 + 2 * (p50 - from), p95 + (p95 - from) * 0.25));
    unsigned n = n_samples / 3 > BINS_MAX ? BINS_MAX : n_samples < 15 ? 5 : (unsigned)(n_samples / 3);
    if (n_samples < 2 || !(to > from))
        return;
    for (size_t i = 0; i < n_samples; i++) {
        double place = (samples_ns[i] - from) / (to - from) * n;
        unsigned bin = place >= n ? n - 1 : place < 0 ? 0 : (unsigned)place;
        if (samples_ns[i] > to)
            beyond++;
        else
            most = ++bins[bin] > most ? bins[bin] : most;
    }
    tare__chart chart = {.out = out, .unit = "", .show = show_count, .top = 36, .height = PLOT};
    tare__chart_scale(&chart, 0, most);
    open_figure(out, name);
    tare__text_format(out, ": %s by latency", tare__unit_counted(runs, (double)n_samples, "run", NULL));
    if (beyond)
        tare__text_format(out, "; %zu beyond the chart, up to %s", beyond, tare__unit_time(word, last));
    tare__text_string(out, "</figcaption>");
    tare__chart_open(&chart, "distribution of latencies");
    for (unsigned i = 0; i < n; i++) {
        if (!bins[i])
            continue;
        double y = tare__chart_up(&chart, bins[i]);
        tare__text_string(out, "<rect class=\"bin\"");
        tare__chart_share(out, "x", (i + 0.05) / n);
        tare__chart_share(out, "width", 0.9 / n);
        tare__chart_number(out, "y", y);
        tare__chart_number(out, "height", fmax(1, tare__chart_up(&chart, 0) - y));
        tare__text_string(out, "/>");
    }
    double at50 = (p50 - from) / (to - from), at95 = (p95 - from) / (to - from);
    put_mark(&chart, "p50", at50, 0);
    put_mark(&chart, "p95", at95, at95 - at50 < 0.14);
    tare__chart_under(&chart, "", "start", 0, tare__unit_time(word, from));
    tare__chart_under(&chart, "roomy", "middle", 0.5, tare__unit_time(word, (from + to) / 2));
    tare__chart_under(&chart, "", "end", 1, tare__unit_time(word, to));
    tare__chart_close(&chart);
    tare__text_string(out, "</figure>\n");
}

/* ---- trade-offs ----------------------------------------------------------------------------------------------- */
/* Labels of dots, in shares of a phone's width: what fits there fits everywhere. */
typedef struct labels {
    struct {
        double from, to, y;
    } taken[LABELS_MAX];
    size_t n;
} labels;

static bool take(labels *all, double from, double to, double y)
{
    if (all->n == LABELS_MAX || from < 0 || to > 1)
        return false;
    for (size_t i = 0; i < all->n; i++)
        if (fabs(all->taken[i].y - y) < LINE && from < all->taken[i].to && to > all->taken[i].from)
            return false;
    all->taken[all->n].from = from;
    all->taken[all->n].to = to;
    all->taken[all->n++].y = y;
    return true;
}

/* To the right of its dot, or to the left; if neither is free, the label appears only in the table. */
static void put_label(tare__chart *chart, labels *all, double x, double y, const char *name)
{
    double wide = GAP + LETTER * (double)tare__text_columns(name, strlen(name));
    if (take(all, x, x + wide, y))
        tare__chart_words(chart, "label", "start", x, 9, y + 4, name);
    else if (take(all, x - wide, x, y))
        tare__chart_words(chart, "label", "end", x, -9, y + 4, name);
}

static void put_dots(tare__chart *chart, const tare__model_dot *dots, size_t n, double widest)
{
    labels all = {.n = 0};
    for (int best = 1; best >= 0; best--) /* the best configurations get their labels first */
        for (size_t i = 0; i < n; i++) {
            if (dots[i].best != (best == 1))
                continue;
            double x = fmin(1, fmax(0, dots[i].latency_ns / widest)), y = tare__chart_up(chart, dots[i].rate);
            tare__text_format(chart->out, "<circle class=\"%s\" r=\"5\"", best ? "dot" : "other");
            tare__chart_share(chart->out, "cx", x);
            tare__chart_number(chart->out, "cy", y);
            tare__text_string(chart->out, "><title>");
            tare__plain_text(chart->out, dots[i].name);
            tare__text_string(chart->out, "</title></circle>");
            put_label(chart, &all, x, y, dots[i].name);
        }
}

void tare__model_trade_off(tare__text *out, const char *unit, const tare__model_dot *dots, size_t n)
{
    double widest = 0, most = 0;
    char word[TARE__UNIT_BYTES];
    for (size_t i = 0; i < n; i++) {
        widest = fmax(widest, dots[i].latency_ns * 1.08);
        most = fmax(most, dots[i].rate);
    }
    if (n < 2)
        return;
    tare__chart chart = {.out = out, .unit = "", .show = show_count, .top = 12, .height = PLOT};
    tare__chart_scale(&chart, 0, most);
    open_figure(out, "Throughput");
    tare__text_string(out, " (");
    tare__plain_text(out, unit);
    tare__text_string(
        out,
        ", up) against <strong>latency</strong> (p50, across): upper left is best, the best trade-offs in "
        "colour</figcaption>");
    tare__chart_open(&chart, "throughput against latency of each configuration");
    put_dots(&chart, dots, n, widest);
    tare__chart_under(&chart, "", "start", 0, "0");
    tare__chart_under(&chart, "", "middle", 0.5, tare__unit_time(word, widest / 2));
    tare__chart_under(&chart, "", "end", 1, tare__unit_time(word, widest));
    tare__chart_close(&chart);
    tare__text_string(out, "</figure>\n");
}

/* ---- time series ---------------------------------------------------------------------------------------------- */
typedef struct course {
    const double *places, *values;
    size_t n, each;
    bool steps; /* two points per value: at the end of the previous one, and itself */
} course;

/* The maximum of a section. */
static size_t highest(const course *of, size_t stretch)
{
    size_t found = stretch * of->each, end = found + of->each < of->n ? found + of->each : of->n;
    for (size_t i = found; i < end; i++)
        if (of->values[i] > of->values[found])
            found = i;
    return found;
}

static double course_at(const void *context, size_t point, bool across)
{
    const course *of = context;
    size_t stretch = of->steps ? (point + 1) / 2 : point, at = highest(of, stretch);
    if (across) {
        double width = of->places[of->n - 1] - of->places[0];
        return width > 0 ? (of->places[at] - of->places[0]) / width : 0;
    }
    return of->values[of->steps && point % 2 ? highest(of, stretch - 1) : at];
}

void tare__model_course(tare__text *out, const char *title, const char *unit, const double *places,
                        const double *values, size_t n, const char *const under[3])
{
    static const char *const anchors[] = {"start", "middle", "end"};
    course of = {places, values, n, (n + POINTS_MAX - 1) / POINTS_MAX, strcmp(unit, "bytes") == 0};
    double low = INFINITY, high = -INFINITY;
    if (n < 2)
        return;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    tare__chart chart = {.out = out, .unit = unit, .show = show_value, .top = 12, .height = PLOT};
    tare__chart_scale(&chart, of.steps ? 0 : low, high);
    open_figure(out, title);
    tare__text_string(out, "</figcaption>");
    tare__chart_open(&chart, title);
    size_t stretches = (n + of.each - 1) / of.each;
    tare__chart_course(&chart, "course", &of, of.steps ? 2 * stretches - 1 : stretches, course_at, NULL);
    for (size_t i = 0; i < 3; i++)
        tare__chart_under(&chart, i == 1 ? "roomy" : "", anchors[i], (double)i / 2, under[i]);
    tare__chart_close(&chart);
    tare__text_string(out, "</figure>\n");
}
