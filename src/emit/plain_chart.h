/* plain_chart: a chart of inline SVG on a page without a script: a scale with round steps, lines, dots, bars, labels.
 * Horizontal positions are shares of its width, so that it is as wide as the page and its labels keep their size.
 * Owned by the calling thread; used inside emit only. Must not know what is shown. */
#ifndef TARE_EMIT_PLAIN_CHART_H
#define TARE_EMIT_PLAIN_CHART_H

#include "base/base.h"

#define TARE__CHART_WORD 64
/* Formats a value with its unit, for display. */
typedef const char *tare__chart_show(char out[TARE__CHART_WORD], const char *unit, double value);

typedef struct tare__chart {
    tare__text *out;
    const char *unit;
    tare__chart_show *show;
    double top, height;     /* pixels: above the scale, and in total; a line of labels fits below the scale */
    double low, high, step; /* of the scale: a multiple of steps */
} tare__chart;

/* A scale from low to high or slightly more, in steps that are round in the unit. */
void tare__chart_scale(tare__chart *chart, double low, double high);
/* Opens the drawing, with the scale on the left and horizontal lines. `label` is for screen readers. */
void tare__chart_open(tare__chart *chart, const char *label);
void tare__chart_close(tare__chart *chart);

/* From the top, in pixels; values beyond the scale are clamped to its end. */
double tare__chart_up(const tare__chart *chart, double value);
/* ` name="12.3"`: a number as SVG requires it, regardless of the locale; ` name="12.3%"`: a share. */
void tare__chart_number(tare__text *out, const char *name, double value);
void tare__chart_share(tare__text *out, const char *name, double share);

void tare__chart_line(tare__chart *chart, const char *kind, double x1, double value1, double x2, double value2);
/* A vertical line over the whole height. */
void tare__chart_upright(tare__chart *chart, const char *kind, double x);
/* A label at a horizontal share, `dx` and `y` in pixels; anchor: start, middle, end. */
void tare__chart_words(tare__chart *chart, const char *kind, const char *anchor, double x, double dx,
                       double y, const char *words);
/* A label below the scale. */
void tare__chart_under(tare__chart *chart, const char *kind, const char *anchor, double x, const char *words);
/* A line through n values at horizontal shares; with `back`, a band between both. */
typedef double tare__chart_at(const void *of, size_t i, bool across);
void tare__chart_course(tare__chart *chart, const char *kind, const void *of, size_t n, tare__chart_at *at,
                        tare__chart_at *back);

#endif
