/* replay: a trace's blocks as spans that begin and end, marks, counters and samples, one call each, for every reader of
 * events. The only place that tracks which spans are open, and that decides what an end means.
 * Owned by the thread that reads; memory grows with threads and open spans, not with the file.
 * Must not know what they are used for. */
#ifndef TARE_TRACE_REPLAY_H
#define TARE_TRACE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "format/format.h"

struct tare__trace;
struct tare__trace_table;
struct tare__replay;

typedef enum tare__replay_begin {
    TARE__REPLAY_BEGAN,
    TARE__REPLAY_NEXT,    /* begins where the previous one ended, with one timestamp for both */
    TARE__REPLAY_RESTORED /* its begin is in a missing block: it is not counted among the run's spans */
} tare__replay_begin;

typedef enum tare__replay_how {
    TARE__REPLAY_ENDED,
    TARE__REPLAY_ENDED_BY_NEXT, /* another span begins where it ends */
    TARE__REPLAY_WITH_OUTER,    /* left open, and closed by the end of an enclosing span */
    TARE__REPLAY_END_LOST,      /* its end was lost: closed where this was detected */
    TARE__REPLAY_STILL_OPEN,    /* at the end of the file; closed at the last known time of its thread */
    TARE__REPLAY_UNTIMED        /* more spans are open than are kept: its begin is used as its end */
} tare__replay_how;

/* An open span. A visitor may keep more data of it in a struct that starts with this one (span_bytes). */
typedef struct tare__replay_span {
    uint64_t begin; /* ticks */
    uint32_t name;  /* file name id */
    uint32_t bits;  /* for the visitor; 0 when it begins */
} tare__replay_span;

typedef struct tare__replay_stream {
    uint32_t id;      /* 0: one of the streams beyond the maximum number */
    uint32_t depth;   /* open spans that are kept */
    uint32_t ordinal; /* of the block that should come next */
    uint32_t unlisted, unlisted_at; /* after a gap: number of spans open above those that a block lists and below any
                                     * that begins later; nothing else is known of them */
    bool seen;
    uint64_t beyond;      /* open inside all others, beyond the number that is kept */
    uint64_t first, last; /* ticks of its first and last event */
    void *saved;          /* its open spans between blocks */
    void *own;            /* for the visitor, from `enter` on */
} tare__replay_stream;

/* An end that ends no known span. `name` 0: the innermost, else the one of that name. `unmatched`: no open span can
 * match it. */
typedef struct tare__replay_unknown {
    uint32_t name;
    bool unmatched;
    uint64_t ticks;
} tare__replay_unknown;

/* Each returns 0, or a status that stops the replay. NULL: not wanted. A span's begin comes before its numbers, and
 * these before its end; nested spans of a stream end before the enclosing ones. `span` points into an array: the
 * enclosing span is the element before it, and the first element, `outside`, encloses all spans. */
typedef struct tare__replay_visitor {
    void *context;
    size_t span_bytes; /* size of the data kept of an open span; 0: a tare__replay_span */
    /* Called before the events of a block, and for each stream before its open spans end with the file (header NULL):
     * `outside` is zeroed. `missing`: number of its blocks before this one that cannot be read. */
    int (*enter)(void *context, tare__replay_stream *stream, tare__replay_span *outside,
                 const tare__block_header *header, uint32_t missing);
    int (*begin)(void *context, tare__replay_stream *stream, tare__replay_span *span, tare__replay_begin how);
    int (*end)(void *context, tare__replay_stream *stream, tare__replay_span *span, uint64_t ticks,
               tare__replay_how how);
    int (*unknown_end)(void *context, tare__replay_stream *stream, const tare__replay_unknown *end);
    /* Called after the spans that ended with it: the ends of `lost` innermost spans were lost. */
    int (*dropped_ends)(void *context, tare__replay_stream *stream, uint64_t ticks, uint64_t lost);
    void (*set_back)(void *context, tare__replay_span *span, uint64_t ticks); /* the file's time ran backwards */
    int (*mark)(void *context, tare__replay_stream *stream, uint32_t name, uint64_t ticks);
    int (*counter)(void *context, tare__replay_stream *stream, uint32_t name, uint64_t ticks, double value);
    int (*number)(void *context, tare__replay_stream *stream, tare__replay_span *innermost, uint32_t name,
                  uint64_t ticks, double value); /* innermost NULL: there is none, or it is not kept */
    void (*leave)(void *context, tare__replay_stream *stream, const tare__replay_span *outside);
    int (*complete)(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n);
    int (*aggregate)(void *context, uint32_t stream, const tare__aggregate *cell);
    int (*samples)(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n);
    int (*stacks)(void *context, const tare__stack_sample *samples, uint32_t n);
    void (*drop)(void *context, tare__replay_span *span); /* one that never ended, because the replay stopped */
    /* tare__replay_fast with the functions as constants, for a visitor that needs the speed. May be NULL. */
    int (*fast)(struct tare__replay *replay);
} tare__replay_visitor;

/* Prescans, then reads the whole trace from its start. Spans that begin in it (not restored) plus complete ones are as
 * many as the span table counts. 0; what a visitor returned; TARE_E_SYSTEM or TARE_E_MEMORY with a message. Damaged
 * blocks are reported by tare__trace_damage_of. */
int tare__trace_replay(struct tare__trace *trace, const tare__replay_visitor *visitor, tare__error *error);

/* Number of spans open on a stream, in a call of a visitor without `fast`: an `end` no longer counts its span, a
 * `begin` counts it already. */
static inline uint64_t tare__replay_open(const tare__replay_stream *stream)
{
    return stream->depth + stream->beyond + stream->unlisted;
}

/* ---- the hot loop of reading: inlined, since a call per event would cost as much as the event ------------------ */
typedef struct tare__replay {
    struct tare__trace *trace;
    const tare__replay_visitor *visitor;
    tare__squeezer *squeezer;
    tare__events_decoder decoder;
    tare__complete_span *complete; /* space for those of one block */
    struct tare__trace_table *streams;
    tare__replay_stream stray; /* for streams beyond the maximum number */
    /* the stream of the current block */
    tare__replay_stream *stream;
    char *spans; /* [0] encloses all others; there is space for as many as the block has events */
    size_t spans_room, span_bytes;
    size_t saved; /* spans, of all streams */
} tare__replay;

/* Processes any event. */
int tare__replay_event(tare__replay *replay, const tare__event *event);

/* Processes the rest of a block of a stream on which every open span is kept. Equivalent to tare__replay_event for each
 * event. */
static inline __attribute__((always_inline)) int tare__replay_fast(tare__replay *replay,
                                                                   const tare__replay_visitor *visitor)
{
    tare__events_decoder decoder = replay->decoder; /* a copy: the compiler knows that nothing else changes it */
    tare__replay_stream *stream = replay->stream;
    void *const context = replay->visitor->context;
    const size_t each = visitor->span_bytes;
    char *const outside = replay->spans, *top = outside + stream->depth * each;
    tare__event event;
    int status = 0;
    while (!status && tare__events_next(&decoder, &event)) {
        bool begins = event.op == TARE__OP_BEGIN;
        if (!begins && __builtin_expect(event.op <= TARE__OP_NEXT && top > outside, 1)) {
            status = visitor->end(context, stream, (tare__replay_span *)(void *)top, event.ticks,
                                  event.op == TARE__OP_NEXT ? TARE__REPLAY_ENDED_BY_NEXT : TARE__REPLAY_ENDED);
            top -= each;
        } else if (!begins && event.op != TARE__OP_NEXT) {
            stream->depth = (uint32_t)((size_t)(top - outside) / each);
            status = tare__replay_event(replay, &event);
            top = outside + stream->depth * each;
            continue;
        }
        if (event.op != TARE__OP_END && __builtin_expect(!status, 1)) {
            tare__replay_span *span = (tare__replay_span *)(void *)(top += each);
            *span = (tare__replay_span){.begin = event.ticks, .name = event.name};
            status = visitor->begin(context, stream, span,
                                    event.op == TARE__OP_NEXT ? TARE__REPLAY_NEXT : TARE__REPLAY_BEGAN);
        }
    }
    stream->depth = (uint32_t)((size_t)(top - outside) / each);
    return status;
}

#endif
