/* replay: a trace's blocks as finished spans, marks, counters and samples, one call each, for who shows every one.
 * Owned by the thread that reads; memory grows with threads and open spans, not with the file.
 * Must not know what is made of them. */
#ifndef TARE_TRACE_REPLAY_H
#define TARE_TRACE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "format/format.h"

struct tare__trace;

typedef enum tare__replay_how {
    TARE__REPLAY_ENDED,
    TARE__REPLAY_WITH_OUTER, /* left open, and closed by the end of a span around it */
    TARE__REPLAY_END_LOST,   /* closed where that was noticed */
    TARE__REPLAY_STILL_OPEN, /* at the end of the file; closed where its thread was last seen */
    TARE__REPLAY_UNTIMED     /* more are open than are kept: its begin stands for its end */
} tare__replay_how;

typedef struct tare__replay_span {
    uint64_t begin, end; /* ticks; `end` once it ended */
    uint32_t name;       /* file name id */
    bool restored; /* its begin lies in a block that is not there any more: it is not among the run's spans */
    tare__replay_how how;
    void *own; /* the visitor's; NULL when it begins */
} tare__replay_span;

/* Each returns 0, or a status that ends the replay. NULL: not wanted. A span's begin comes before its numbers,
 * these before its end; spans of a stream that are inside others end before them. */
typedef struct tare__replay_visitor {
    void *context;
    int (*begin)(void *context, uint32_t stream, tare__replay_span *span);
    int (*end)(void *context, uint32_t stream, tare__replay_span *span);
    int (*mark)(void *context, uint32_t stream, uint32_t name, uint64_t ticks);
    int (*counter)(void *context, uint32_t stream, uint32_t name, uint64_t ticks, double value);
    int (*number)(void *context, uint32_t stream, tare__replay_span *innermost, uint32_t name, double value);
    int (*complete)(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n);
    int (*samples)(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n);
    void (*drop)(void *own); /* what a span has that never ended, because the replay did */
} tare__replay_visitor;

/* Prescans, then reads the whole trace from its start. Spans that begin in it (not `restored`) and complete ones
 * are together as many as the span table counts. 0; what a visitor returned; TARE_E_SYSTEM or TARE_E_MEMORY with
 * a sentence. Damaged blocks are told by tare__trace_damage_of. */
int tare__trace_replay(struct tare__trace *trace, const tare__replay_visitor *visitor, tare__error *error);

/* Until when spans lasted that were open on a stream whose last event was at `last`: a main thread ends with its
 * process; of another thread nobody knows when it ended, only that it was still there then. */
uint64_t tare__trace_open_until(const struct tare__trace *trace, uint32_t stream, uint64_t last);

/* ---- rules on what is open, for this pass and for the one that makes the tables ------------------------------
 * The tables have a pass of their own since its frames hold nodes, and it is inlined: a call for each event would cost
 * as much as the event. What both decide is here. `beyond`: open spans inside of those that are kept, known by number
 * only. */

/* When a block begins. One with nothing but numbers has no time: it follows on what was before. */
static inline uint64_t tare__replay_first_ticks(const tare__events_decoder *decoder, const tare__block_header *header,
                                                uint64_t last)
{
    if (header->last_ticks)
        return header->first_ticks;
    uint64_t begin = decoder->open.depth ? decoder->open.spans[decoder->open.depth - 1].begin : 0;
    return begin > last ? begin : last;
}

/* The begin of a span that a block lists as open: not before the one around it, nor behind the block's own begin. */
static inline uint64_t tare__replay_listed_begin(uint64_t begin, uint64_t around, uint64_t first)
{
    return begin < around ? around : begin > first ? first : begin;
}

/* An end whose begin is not among the spans that are kept: true where it is nobody's. */
static inline bool tare__replay_is_unmatched(uint64_t *beyond)
{
    bool unmatched = *beyond == 0;
    *beyond -= !unmatched;
    return unmatched;
}

/* How many of the spans that are kept stay open where the ends of so many innermost ones were lost. */
static inline uint32_t tare__replay_depth_left(uint32_t depth, uint64_t *beyond, uint64_t lost)
{
    uint64_t unseen = lost < *beyond ? lost : *beyond;
    *beyond -= unseen;
    lost -= unseen;
    return lost < depth ? depth - (uint32_t)lost : 0;
}

#endif
