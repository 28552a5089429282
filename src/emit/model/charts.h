/* model charts: charts of a model that was run: distribution of latencies, courses, trade-offs. No script.
 * Owned by the calling thread; used inside emit only.
 * Must not know who measured. */
#ifndef TARE_EMIT_MODEL_CHARTS_H
#define TARE_EMIT_MODEL_CHARTS_H

#include "base/base.h"

/* From the shortest run to where nearly all are; the few far beyond that are counted in words. Nothing where there are
 * fewer than two, or all are the same. */
void tare__model_distribution(tare__text *out, const char *name, const double *samples_ns, size_t n, double p50,
                              double p95);

typedef struct tare__model_dot {
    double latency_ns, rate;
    const char *name;
    bool best; /* no other has a lower latency and a higher rate */
} tare__model_dot;
#define TARE__MODEL_DOTS_MAX 1024u
/* Nothing of fewer than two. */
void tare__model_trade_off(tare__text *out, const char *unit, const tare__model_dot *dots, size_t n);

/* Values at places that rise; of very many the highest of each stretch. Bytes stay as they are up to the next place.
 * `under`: three texts below it. */
void tare__model_course(tare__text *out, const char *title, const char *unit, const double *places,
                        const double *values, size_t n, const char *const under[3]);

#endif
