/* json_writer: values of the JSON report, shared by the files that write its tables.
 * Owned by the calling thread; used inside emit only.
 * Must not know the tables. */
#ifndef TARE_EMIT_JSON_WRITER_H
#define TARE_EMIT_JSON_WRITER_H

#include <inttypes.h>
#include <math.h>

#include "flush.h"

typedef struct writer {
    tare__json json;
    tare__text text;
    const tare__analysis *analysis;
    bool all; /* points of everything */
    const tare__emit_sink *sink;
    tare__error *error;
    int status; /* the first failure; what comes after it is not written */
} writer;

/* ---- values -------------------------------------------------------------------------------------- */
/* Whole nanoseconds; null when not known. */
static inline void put_ns(writer *to, const char *key, double ns)
{
    tare__json_key(&to->json, key);
    if (!isfinite(ns))
        tare__json_null(&to->json);
    else if (fabs(ns) < 9e18)
        tare__json_signed(&to->json, (int64_t)llround(ns));
    else
        tare__json_double(&to->json, ns);
}

static inline void put_double(writer *to, const char *key, double value)
{
    tare__json_put_double(&to->json, key, value);
}

static inline void put_estimated(writer *to, const char *key, double value)
{
    tare__json_put_rounded(&to->json, key, value);
}

static inline void put_unsigned(writer *to, const char *key, uint64_t value)
{
    tare__json_put_unsigned(&to->json, key, value);
}

static inline void put_string(writer *to, const char *key, const char *value)
{
    tare__json_put_string(&to->json, key, value);
}

static inline void put_bool(writer *to, const char *key, bool value)
{
    tare__json_put_bool(&to->json, key, value);
}

/* Numbers for which 0 stands for "not known" in the tables. */
static inline void put_known(writer *to, const char *key, int64_t value)
{
    tare__json_key(&to->json, key);
    if (value == 0)
        tare__json_null(&to->json);
    else
        tare__json_signed(&to->json, value);
}

static inline void put_row_index(writer *to, const char *key, uint32_t row)
{
    tare__json_key(&to->json, key);
    if (row == TARE__NO_ROW)
        tare__json_null(&to->json);
    else
        tare__json_unsigned(&to->json, row);
}

/* ---- lists --------------------------------------------------------------------------------------- */
typedef void put_element(writer *to, size_t index);

/* An array of objects under a key, handed on in pieces. */
static inline void put_list(writer *to, const char *key, size_t n, put_element *put)
{
    tare__json_key(&to->json, key);
    tare__json_array(&to->json);
    for (size_t i = 0; i < n && !to->status; i++) {
        tare__json_object(&to->json);
        put(to, i);
        tare__json_end_object(&to->json);
        to->status = tare__emit_flush_piece(&to->text, to->sink, to->error);
    }
    tare__json_end_array(&to->json);
}

static inline void put_durations(writer *to, const tare__durations *each)
{
    put_ns(to, "min_ns", each->min_ns);
    put_ns(to, "mean_ns", each->mean_ns);
    put_ns(to, "max_ns", each->max_ns);
    put_ns(to, "p50_ns", each->p50_ns);
    put_ns(to, "p95_ns", each->p95_ns);
    put_ns(to, "p99_ns", each->p99_ns);
}

void tare__json_put_operators(writer *to); /* and modules */
/* Tables of what was sampled, and what follows from it. */
void tare__json_put_usage(writer *to);
void tare__json_put_phases(writer *to);
void tare__json_put_findings(writer *to);
void tare__json_put_metrics(writer *to);

#endif
