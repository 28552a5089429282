/* chrome: what the files of the trace event format share: its state, and the pieces of an event.
 * Owned by the calling thread; used inside emit only.
 * Must not know what the events add up to. */
#ifndef TARE_EMIT_CHROME_H
#define TARE_EMIT_CHROME_H

#include "flush.h"
#include "gauges.h"
#include "lanes.h"
#include "trace/trace.h"

/* Spans of one flow, so that its arrows start and end where they should. */
typedef struct flow {
    uint64_t first, last; /* start of its earliest and its latest span, ticks */
    uint32_t n;
    bool started, finished;
} flow;

typedef struct quoted { /* a name as JSON, in `quotes` */
    size_t at;
    uint32_t bytes; /* 0: not yet */
} quoted;

typedef struct chrome {
    tare__trace *trace;
    tare__text text;
    const tare__emit_sink *sink;
    tare__error *error;
    tare__lanes lanes;
    tare__gauges gauges;
    quoted *names; /* by id */
    size_t names_room;
    tare__text quotes, scratch;
    tare__intern *flow_ids;
    flow *flows;
    size_t flows_room;
    uint64_t spans, restored, async, flows_left_out, values_left_out;
    int64_t pid, tid; /* of `stream` */
    uint32_t stream;
    bool any;
} chrome;

/* ---- pieces of an event (chrome_event.c) ------------------------------------------------------------------ */
#define PUT(to, literal) tare__text_append(&(to)->text, literal, sizeof literal - 1)

int64_t tare__chrome_ns_of(const chrome *to, uint64_t ticks);
void tare__chrome_put_whole(chrome *to, int64_t value);
void tare__chrome_put_us(chrome *to, int64_t ns); /* microseconds, with the nanoseconds as their fraction */
void tare__chrome_put_text(chrome *to, const char *text);
void tare__chrome_put_double(chrome *to, double value);
void tare__chrome_put_name(chrome *to, uint32_t id);
void tare__chrome_begin_event(chrome *to, const char *phase);
void tare__chrome_begin_named(chrome *to, const char *phase, const char *category, uint32_t name,
                              int64_t at_ns);
void tare__chrome_put_place(chrome *to, int64_t pid, int64_t tid);
int tare__chrome_end_event(chrome *to); /* 0, or the sink's refusal */

/* ---- who is who --------------------------------------------------------------------------------------------- */
/* Sets a name, or, where that is NULL, a place in the order. */
int tare__chrome_put_about(chrome *to, const char *what, int64_t pid, int64_t tid, const tare__text *name,
                           int64_t order);
int tare__chrome_put_people(chrome *to);                 /* every process and thread that the file tells of */
int tare__chrome_at_stream(chrome *to, uint32_t stream); /* sets pid and tid */

/* ---- complete spans (chrome_complete.c): visitors of a replay -------------------------------------------- */
int tare__chrome_note_flows(void *context, uint32_t stream, tare__complete_span *spans,
                            uint32_t n); /* before all else */
int tare__chrome_put_completes(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n);

#endif
