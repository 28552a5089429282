/* plain_chart: positions in a chart as shares and pixels, and the round steps of its scale.
 * Owned by the calling thread.
 * Must not know what is shown. */
#include "plain_chart.h"

#include <math.h>
#include <string.h>

#include "plain.h"

#define BOTTOM 24.0   /* pixels below the scale, for labels */
#define COURSE 1000.0 /* width of a line in its own units: it is stretched to the chart's */
#define STEPS  4.0
#define LEAST \
    0.05 /* minimum range, as a share of the largest value: noise must look like noise, and labels must differ */

/* ---- the scale -------------------------------------------------------------------------------------- */
/* The base of round numbers: bytes are shown in powers of 1,024, long times in minutes and hours. */
static double base_of(const char *unit, double largest, double step)
{
    double base = 1;
    if (strcmp(unit, "bytes") == 0)
        while (largest >= 1024 * base)
            base *= 1024;
    else if (strcmp(unit, "ns") == 0 && step >= 30e9)
        base = step >= 1800e9 ? 3600e9 : 60e9;
    return base;
}

static double round_step(const char *unit, double largest, double step)
{
    static const double round[] = {1, 2, 5, 10};
    double base = base_of(unit, largest, step), ten = pow(10, floor(log10(step / base)));
    for (size_t i = 0; i < TARE__COUNT_OF(round); i++)
        if (round[i] * ten * base >= step * 0.999)
            return round[i] * ten * base;
    return 10 * ten * base;
}

void tare__chart_scale(tare__chart *chart, double low, double high)
{
    if (!isfinite(low) || !isfinite(high))
        low = high = 0; /* an empty chart is not a failure */
    double largest = fmax(fabs(low), fabs(high)), least = largest > 0 ? largest * LEAST : 1;
    if (low >= 0 && low < 0.35 * high)
        low = 0;
    if (high - low < least) {
        double middle = (low + high) / 2;
        low = low >= 0 ? fmax(0, middle - least / 2) : middle - least / 2;
        high = middle + least / 2;
    }
    chart->step = round_step(chart->unit, largest, (high - low) / STEPS);
    chart->low = floor(low / chart->step * 1.000001) * chart->step;
    chart->high = ceil(high / chart->step * 0.999999) * chart->step;
    if (!(chart->high > chart->low))
        chart->high = chart->low + chart->step;
}

double tare__chart_up(const tare__chart *chart, double value)
{
    double share = (value - chart->low) / (chart->high - chart->low);
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return chart->height - BOTTOM - (chart->height - chart->top - BOTTOM) * share;
}

/* ---- helpers ---------------------------------------------------------------------------------------- */
void tare__chart_number(tare__text *out, const char *name, double value)
{
    char digits[32];
    tare__text_double(digits, sizeof digits, 'f', 1, value);
    tare__text_format(out, " %s=\"%s\"", name, digits);
}

void tare__chart_share(tare__text *out, const char *name, double share)
{
    char digits[32];
    tare__text_double(digits, sizeof digits, 'f', 2, 100 * share);
    tare__text_format(out, " %s=\"%s%%\"", name, digits);
}

static void put_line(tare__chart *chart, const char *kind, double x1, double y1, double x2, double y2)
{
    tare__text_format(chart->out, "<line class=\"%s\"", kind);
    tare__chart_share(chart->out, "x1", x1);
    tare__chart_number(chart->out, "y1", y1);
    tare__chart_share(chart->out, "x2", x2);
    tare__chart_number(chart->out, "y2", y2);
    tare__text_string(chart->out, "/>");
}

void tare__chart_line(tare__chart *chart, const char *kind, double x1, double value1, double x2, double value2)
{
    put_line(chart, kind, x1, tare__chart_up(chart, value1), x2, tare__chart_up(chart, value2));
}

void tare__chart_upright(tare__chart *chart, const char *kind, double x)
{
    put_line(chart, kind, x, chart->top, x, chart->height - BOTTOM);
}

void tare__chart_words(tare__chart *chart, const char *kind, const char *anchor, double x, double dx,
                       double y, const char *words)
{
    tare__text_format(chart->out, "<text%s%s%s text-anchor=\"%s\"", *kind ? " class=\"" : "", kind,
                      *kind ? "\"" : "", anchor);
    tare__chart_share(chart->out, "x", x);
    tare__chart_number(chart->out, "dx", dx);
    tare__chart_number(chart->out, "y", y);
    tare__text_string(chart->out, ">");
    tare__plain_text(chart->out, words);
    tare__text_string(chart->out, "</text>");
}

void tare__chart_under(tare__chart *chart, const char *kind, const char *anchor, double x, const char *words)
{
    tare__chart_words(chart, kind, anchor, x, 0, chart->height - 6, words);
}

static void put_place(tare__chart *chart, bool first, double x, double value)
{
    char across[32], up[32];
    tare__text_double(across, sizeof across, 'f', 1, COURSE * x);
    tare__text_double(up, sizeof up, 'f', 1, tare__chart_up(chart, value));
    tare__text_format(chart->out, "%s%s %s", first ? "M" : "L", across, up);
}

void tare__chart_course(tare__chart *chart, const char *kind, const void *of, size_t n, tare__chart_at *at,
                        tare__chart_at *back)
{
    tare__text_format(
        chart->out,
        "<svg width=\"100%%\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
        "preserveAspectRatio=\"none\"><path class=\"%s\" vector-effect=\"non-scaling-stroke\" d=\"",
        chart->height, COURSE, chart->height, kind);
    for (size_t i = 0; i < n; i++)
        put_place(chart, i == 0, at(of, i, true), at(of, i, false));
    for (size_t i = n; back && i-- > 0;)
        put_place(chart, false, back(of, i, true), back(of, i, false));
    tare__text_string(chart->out, back ? "z\"/></svg>" : "\"/></svg>");
}

/* ---- the drawing ------------------------------------------------------------------------------------ */
void tare__chart_open(tare__chart *chart, const char *label)
{
    char word[TARE__CHART_WORD];
    size_t steps = (size_t)((chart->high - chart->low) / chart->step + 0.5);
    tare__text_format(chart->out, "<div class=\"area\"><svg height=\"%.0f\" role=\"img\" aria-label=\"", chart->height);
    tare__plain_text(chart->out, label);
    tare__text_string(chart->out, "\">");
    for (size_t i = 0; i <= steps; i++) {
        double value = chart->low + chart->step * (double)i;
        value = fabs(value) < chart->step / 1e6 ? 0 : value;
        tare__chart_line(chart, "grid", 0, value, 1, value);
        tare__chart_words(chart, "", "end", 0, -8, tare__chart_up(chart, value) + 4,
                          chart->show(word, chart->unit, value));
    }
}

void tare__chart_close(tare__chart *chart)
{
    tare__text_string(chart->out, "</svg></div>\n");
}
