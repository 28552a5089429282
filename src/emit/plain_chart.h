/* plain_chart: a chart of inline SVG on a page without a script: a scale with round steps, courses, dots, bars, words.
 * Across, places are shares of its width, so that it is as wide as the page and its words keep their size.
 * Owned by the calling thread; used inside emit only. Must not know what is shown. */
#ifndef TARE_EMIT_PLAIN_CHART_H
#define TARE_EMIT_PLAIN_CHART_H

#include "base/base.h"

#define TARE__CHART_WORD 64
/* A value in its unit, for people. */
typedef const char *tare__chart_show(char out[TARE__CHART_WORD], const char *unit, double value);

typedef struct tare__chart {
    tare__text *out;
    const char *unit;
    tare__chart_show *show;
    double top, height;     /* pixels: above the scale, of all; below it is room for a line of words */
    double low, high, step; /* of the scale: whole steps */
} tare__chart;

/* A scale from low to high or a little more, in steps that are round in the unit. */
void tare__chart_scale(tare__chart *chart, double low, double high);
/* Opens the drawing, with the scale at its left and lines across. `label` is for who cannot see it. */
void tare__chart_open(tare__chart *chart, const char *label);
void tare__chart_close(tare__chart *chart);

/* From the top, in pixels; values beyond the scale are at its end. */
double tare__chart_up(const tare__chart *chart, double value);
/* ` name="12.3"`: a number as SVG takes it, whatever the locale; ` name="12.3%"`: a share. */
void tare__chart_number(tare__text *out, const char *name, double value);
void tare__chart_share(tare__text *out, const char *name, double share);

void tare__chart_line(tare__chart *chart, const char *kind, double x1, double value1, double x2,
                      double value2);
/* Over the whole height. */
void tare__chart_upright(tare__chart *chart, const char *kind, double x);
/* Words at a share across, `dx` and `y` in pixels; anchor: start, middle, end. */
void tare__chart_words(tare__chart *chart, const char *kind, const char *anchor, double x, double dx,
                       double y, const char *words);
/* Words under the scale. */
void tare__chart_under(tare__chart *chart, const char *kind, const char *anchor, double x, const char *words);
/* A course through n values at shares across: a line; with `back` a band between both. */
typedef double tare__chart_at(const void *of, size_t i, bool across);
void tare__chart_course(tare__chart *chart, const char *kind, const void *of, size_t n, tare__chart_at *at,
                        tare__chart_at *back);

#endif
