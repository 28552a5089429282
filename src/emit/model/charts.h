/* model charts: charts of a measured model: distribution of latencies, time series, trade-offs. No script.
 * Owned by the calling thread; used inside emit only.
 * Must not know how it was measured. */
#ifndef TARE_EMIT_MODEL_CHARTS_H
#define TARE_EMIT_MODEL_CHARTS_H

#include "base/base.h"

/* From the shortest run to a bound that includes nearly all; the number of runs beyond it is stated in text. Draws
 * nothing if there are fewer than two runs, or all are equal. */
void tare__model_distribution(tare__text *out, const char *name, const double *samples_ns, size_t n, double p50,
                              double p95);

typedef struct tare__model_dot {
    double latency_ns, rate;
    const char *name;
    bool best; /* no other has a lower latency and a higher rate */
} tare__model_dot;
#define TARE__MODEL_DOTS_MAX 1024u
/* Draws nothing for fewer than two. */
void tare__model_trade_off(tare__text *out, const char *unit, const tare__model_dot *dots, size_t n);

/* Values at ascending positions; if there are too many, the maximum of each section. Bytes are constant up to the next
 * position.
 * `under`: three texts below it. */
void tare__model_course(tare__text *out, const char *title, const char *unit, const double *places,
                        const double *values, size_t n, const char *const under[3]);

#endif
