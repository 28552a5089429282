/* exporter: shared by formats that show every event of a trace: reads it once and calls the format with spans, marks
 * and values that already have their process, thread or lane, and category. Owned by the calling thread; used inside
 * emit only; memory grows with threads, names and open spans, not with the file.
 * Must not know the formats. */
#ifndef TARE_EMIT_EXPORTER_H
#define TARE_EMIT_EXPORTER_H

#include "emit/flush.h"
#include "gauges.h"
#include "lanes.h"
#include "trace/trace.h"

/* The numbers of a span, summed by name as the span table does. */
typedef struct tare__attached {
    uint64_t left_out; /* numbers of further names */
    uint32_t n, room;
    struct tare__attached_number {
        double sum;
        uint32_t name; /* file name id */
    } numbers[];
} tare__attached;

/* Where something is drawn. */
typedef struct tare__export_place {
    int64_t pid, tid; /* unique numbers, see lanes.h */
    uint32_t stream;
    uint32_t lane; /* of complete spans; 0: the thread itself, or a span for which no lane was left */
} tare__export_place;

/* The kind of its name (tare_kind), or one of these. */
enum { TARE__EXPORT_RESTORED = 32, TARE__EXPORT_COMPLETE, TARE__EXPORT_SAMPLE, TARE__EXPORT_CATEGORIES };
const char *tare__export_category(uint32_t category); /* "step", "operator", …; NULL: unknown */

typedef struct tare__export_span {
    tare__export_place place;
    uint64_t begin, end; /* ticks; the end is never before the begin */
    uint32_t name;       /* file name id */
    uint32_t category;
    const char *how;                     /* how it ended, if not normally; else NULL */
    const tare__attached *numbers;       /* NULL: none */
    const tare__complete_span *complete; /* NULL: a nested span */
    uint32_t *own;          /* two numbers that the format keeps for a nested span while it is open; 0 when it begins */
    const uint32_t *around; /* the same for the enclosing span; 0 if there is none */
    bool has_index;
    uint64_t index; /* of a step or an epoch, known at its end */
} tare__export_span;

/* The callbacks of a format. All but `process`, `thread` and `end` may be NULL: not wanted. Each returns 0, or a status
 * that stops the export. A process or thread is reported before anything that belongs to it. */
typedef struct tare__export_format {
    /* All complete spans, before the head: for formats that must know both ends of a flow. */
    int (*look_ahead)(void *to, uint32_t stream, tare__complete_span *spans, uint32_t n);
    int (*head)(void *to);
    int (*process)(void *to, int64_t pid, const tare__text *name,
                   int64_t order); /* TARE__LANES_MACHINE, too */
    int (*thread)(void *to, const tare__export_place *place, const tare__text *name, int64_t order);
    int (*begin)(void *to,
                 const tare__export_span *span); /* of nested ones; end, how and numbers are not known yet */
    int (*end)(void *to, const tare__export_span *span); /* of nested ones */
    int (*complete)(void *to, const tare__export_span *span);
    int (*mark)(void *to, const tare__export_place *place, uint32_t name, uint64_t ticks);
    int (*counter)(void *to, const tare__export_place *place, uint32_t name, uint64_t ticks, double value);
    int (*sample)(void *to, int64_t pid, const tare__trace_series *series, const tare__text *name,
                  const tare__gauge_point *point);
    int (*tail)(void *to);
} tare__export_format;

/* Part of the format's own state. */
typedef struct tare__exporter {
    tare__trace *trace;
    const tare__emit_sink *sink;
    tare__error *error;
    tare__text text;    /* not yet passed to the sink */
    tare__text scratch; /* for names; the format may use it between two callbacks */
    tare__lanes lanes;
    tare__gauges gauges;
    uint64_t spans, restored, values_left_out;
    /* private to the exporter */
    const tare__export_format *format;
    void *to;
    tare__text name; /* of the process, thread or lane being reported */
    tare__export_place here;
    bool is_here;
} tare__exporter;

/* 0; TARE_E_SYSTEM if the sink refused, or with a message; TARE_E_MEMORY with a message; or what the format returned.
 * The exporter is closed in any case. */
int tare__export(tare__exporter *out, const tare__export_format *format, void *to, tare__trace *trace,
                 const tare__emit_sink *sink, tare__error *error);

int64_t tare__export_ns(const tare__exporter *out, uint64_t ticks); /* since the run's start */

/* Passes the text to the sink once there is enough. 0, or the sink's refusal. */
static inline int tare__export_piece(tare__exporter *out)
{
    return tare__emit_flush_piece(&out->text, out->sink, out->error);
}

#endif
