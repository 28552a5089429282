/* chrome: state and helpers shared by the files of the trace event format.
 * Owned by the calling thread; used inside emit only.
 * Must not know what is computed from the events. */
#ifndef TARE_EMIT_CHROME_H
#define TARE_EMIT_CHROME_H

#include "exporter.h"

/* Spans of one flow, so that its arrows start and end at the right ones. */
typedef struct flow {
    uint64_t first, last; /* start of its earliest and its latest span, ticks */
    uint32_t n;
    bool started, finished;
} flow;

typedef struct quoted { /* a name as JSON, in `quotes` */
    size_t at;
    uint32_t bytes; /* 0: not yet quoted */
} quoted;

typedef struct chrome {
    tare__exporter out;
    quoted *names; /* by id */
    size_t names_room;
    tare__text quotes;
    tare__intern *flow_ids;
    flow *flows;
    size_t flows_room;
    uint64_t async, flows_left_out;
    bool any;
} chrome;

/* ---- parts of an event (chrome_event.c) ------------------------------------------------------------------- */
#define PUT(to, literal) tare__text_append(&(to)->out.text, literal, sizeof literal - 1)

void tare__chrome_put_whole(chrome *to, int64_t value);
void tare__chrome_put_us(chrome *to, int64_t ns); /* microseconds, with the nanoseconds as their fraction */
void tare__chrome_put_text(chrome *to, const char *text);
void tare__chrome_put_double(chrome *to, double value);
void tare__chrome_put_name(chrome *to, uint32_t id);
void tare__chrome_begin_event(chrome *to, const char *phase);
void tare__chrome_begin_named(chrome *to, const char *phase, uint32_t category, uint32_t name, uint64_t ticks);
void tare__chrome_put_lasts(chrome *to, const tare__export_span *span);
void tare__chrome_put_place(chrome *to, int64_t pid, int64_t tid);
int tare__chrome_end_event(chrome *to); /* 0, or the sink's refusal */

/* ---- processes and threads: callbacks of the exporter ------------------------------------------------------- */
int tare__chrome_put_process(void *to, int64_t pid, const tare__text *name, int64_t order);
int tare__chrome_put_thread(void *to, const tare__export_place *place, const tare__text *name, int64_t order);

#endif
