/* replay: applies the events of each stream to its stack of open spans, across blocks, gaps and damage.
 * Owned by the thread that reads.
 * Must not know what the spans are used for. */
#include <stdlib.h>
#include <string.h>

#include "inner.h"
#include "tare.h"

/* A few bytes of a crafted file can open very many spans. */
#define DEPTH_KEPT        131072u         /* open spans of a stream kept between two blocks … */
#define DEPTH_KEPT_SCARCE 1024u           /* … and when all streams together keep … */
#define SPANS_KEPT_MAX    ((size_t)400000) /* … this many */
#define STREAMS_MAX       ((size_t)100000)

static tare__replay_span *span_at(const tare__replay *replay, size_t depth)
{
    return (tare__replay_span *)(void *)(replay->spans + depth * replay->span_bytes);
}

/* ---- spans ----------------------------------------------------------------------------------------- */
static int tell_end(const tare__replay *replay, tare__replay_span *span, uint64_t ticks, tare__replay_how how)
{
    const tare__replay_visitor *visitor = replay->visitor;
    if (!visitor->end)
        return 0;
    return visitor->end(visitor->context, replay->stream, span, ticks > span->begin ? ticks : span->begin, how);
}

static int end_top(tare__replay *replay, uint64_t ticks, tare__replay_how how)
{
    return tell_end(replay, span_at(replay, replay->stream->depth--), ticks, how);
}

static int end_above(tare__replay *replay, uint32_t depth, uint64_t ticks, tare__replay_how how)
{
    int status = 0;
    while (replay->stream->depth > depth && !status)
        status = end_top(replay, ticks, how);
    return status;
}

static int begin_span(tare__replay *replay, uint32_t name, uint64_t ticks, tare__replay_begin how)
{
    const tare__replay_visitor *visitor = replay->visitor;
    tare__replay_stream *stream = replay->stream;
    tare__replay_span *span = span_at(replay, stream->depth + 1);
    bool untimed = stream->beyond;
    memset(span, 0, replay->span_bytes);
    *span = (tare__replay_span){.begin = ticks, .name = name};
    stream->beyond += untimed;
    stream->depth += !untimed;
    int status = visitor->begin ? visitor->begin(visitor->context, stream, span, how) : 0;
    return status || !untimed ? status : tell_end(replay, span, ticks, TARE__REPLAY_UNTIMED);
}

/* ---- events: what an end ends ------------------------------------------------------------------------ */
static bool is_unlisted_on_top(const tare__replay_stream *stream)
{
    return stream->unlisted && stream->depth <= stream->unlisted_at;
}

static int tell_unknown(const tare__replay *replay, uint32_t name, uint64_t ticks, bool unmatched)
{
    const tare__replay_visitor *visitor = replay->visitor;
    const tare__replay_unknown end = {name, unmatched, ticks};
    return visitor->unknown_end ? visitor->unknown_end(visitor->context, replay->stream, &end) : 0;
}

/* Ends the innermost span. If no known span is open, the end is reported as unknown; NEXT then ends nothing. */
static int end_innermost(tare__replay *replay, uint64_t ticks, tare__replay_how how)
{
    tare__replay_stream *stream = replay->stream;
    bool unlisted = !stream->beyond && is_unlisted_on_top(stream), known = !stream->beyond && !unlisted;
    if (known && stream->depth)
        return end_top(replay, ticks, how);
    stream->beyond -= stream->beyond > 0;
    stream->unlisted -= unlisted;
    return how == TARE__REPLAY_ENDED ? tell_unknown(replay, 0, ticks, known) : 0;
}

/* Ends the innermost span of that name, and the spans still open inside it. An unknown name may belong to one of the
 * spans of which only the number is known. */
static int end_of(tare__replay *replay, const tare__event *event)
{
    tare__replay_stream *stream = replay->stream;
    uint32_t depth = stream->depth;
    while (depth && span_at(replay, depth)->name != event->name)
        depth--;
    int status = 0;
    if (!depth && !stream->beyond && stream->unlisted) {
        status = end_above(replay, stream->unlisted_at, event->ticks, TARE__REPLAY_WITH_OUTER);
        stream->unlisted--;
        return status ? status : tell_unknown(replay, event->name, event->ticks, false);
    }
    if (!depth) {
        bool unmatched = !stream->beyond;
        stream->beyond -= !unmatched;
        return tell_unknown(replay, event->name, event->ticks, unmatched);
    }
    stream->beyond = 0;
    if (depth <= stream->unlisted_at)
        stream->unlisted = 0; /* they were inside it */
    status = end_above(replay, depth, event->ticks, TARE__REPLAY_WITH_OUTER);
    return status ? status : end_top(replay, event->ticks, TARE__REPLAY_ENDED);
}

/* Handles lost ends: closes as many innermost spans as the event states. */
static int dropped_ends(tare__replay *replay, const tare__event *event)
{
    const tare__replay_visitor *visitor = replay->visitor;
    tare__replay_stream *stream = replay->stream;
    uint64_t lost = (uint64_t)event->value; /* the codec has verified that this is an integer */
    uint64_t left = lost, unseen = left < stream->beyond ? left : stream->beyond;
    stream->beyond -= unseen;
    left -= unseen;
    uint32_t above = stream->unlisted ? stream->depth - stream->unlisted_at : stream->depth;
    uint32_t now = left < above ? (uint32_t)left : above;
    int status = end_above(replay, stream->depth - now, event->ticks, TARE__REPLAY_END_LOST);
    left -= now;
    unseen = left < stream->unlisted ? left : stream->unlisted;
    stream->unlisted -= (uint32_t)unseen;
    left -= unseen;
    now = left < stream->depth ? (uint32_t)left : stream->depth;
    if (!status && now)
        status = end_above(replay, stream->depth - now, event->ticks, TARE__REPLAY_END_LOST);
    if (status || !visitor->dropped_ends)
        return status;
    return visitor->dropped_ends(visitor->context, stream, event->ticks, lost);
}

int tare__replay_event(tare__replay *replay, const tare__event *event)
{
    const tare__replay_visitor *visitor = replay->visitor;
    tare__replay_stream *stream = replay->stream;
    bool known = stream->depth && !stream->beyond && !is_unlisted_on_top(stream);
    int status = 0;
    switch (event->op) {
    case TARE__OP_BEGIN: return begin_span(replay, event->name, event->ticks, TARE__REPLAY_BEGAN);
    case TARE__OP_END: return end_innermost(replay, event->ticks, TARE__REPLAY_ENDED);
    case TARE__OP_NEXT:
        status = end_innermost(replay, event->ticks, TARE__REPLAY_ENDED_BY_NEXT);
        return status ? status : begin_span(replay, event->name, event->ticks, TARE__REPLAY_NEXT);
    case TARE__OP_END_OF: return end_of(replay, event);
    case TARE__OP_MARK:
        return visitor->mark ? visitor->mark(visitor->context, stream, event->name, event->ticks) : 0;
    case TARE__OP_COUNTER:
        return visitor->counter
                   ? visitor->counter(visitor->context, stream, event->name, event->ticks, event->value)
                   : 0;
    case TARE__OP_NUMBER:
        return visitor->number
                   ? visitor->number(visitor->context, stream, known ? span_at(replay, stream->depth) : NULL,
                                     event->name, event->ticks, event->value)
                   : 0;
    default: return dropped_ends(replay, event);
    }
}

/* ---- the stack between blocks -------------------------------------------------------------------------- */
static int load_stack(tare__replay *replay, size_t events)
{
    tare__replay_stream *stream = replay->stream;
    size_t listed = replay->decoder.open.depth, each = replay->span_bytes;
    size_t room = (stream->depth > listed ? stream->depth : listed) + events + 2;
    if (!tare__array_fit(&replay->spans, &replay->spans_room, room, each))
        return TARE_E_MEMORY;
    memset(replay->spans, 0, each);
    if (stream->depth)
        memcpy(replay->spans + each, stream->saved, stream->depth * each);
    replay->saved -= stream->depth;
    return 0;
}

/* Spans above the limit are reported without a duration. */
static int cut_stack(tare__replay *replay)
{
    tare__replay_stream *stream = replay->stream;
    size_t left = replay->saved < SPANS_KEPT_MAX ? SPANS_KEPT_MAX - replay->saved : 0;
    uint32_t kept = left < DEPTH_KEPT ? (uint32_t)left : DEPTH_KEPT;
    int status = 0;
    kept = kept < DEPTH_KEPT_SCARCE ? DEPTH_KEPT_SCARCE : kept;
    while (stream->depth > kept && !status) {
        status = end_top(replay, 0, TARE__REPLAY_UNTIMED);
        stream->beyond++;
    }
    if (stream->unlisted && stream->unlisted_at > kept) {
        stream->beyond += stream->unlisted;
        stream->unlisted = 0;
    }
    return status;
}

static int save_stack(tare__replay *replay)
{
    tare__replay_stream *stream = replay->stream;
    size_t bytes = stream->depth * replay->span_bytes;
    void *saved = bytes ? realloc(stream->saved, bytes) : NULL;
    if (bytes && !saved)
        return TARE_E_MEMORY;
    if (bytes)
        memcpy(saved, replay->spans + replay->span_bytes, bytes);
    else
        free(stream->saved);
    stream->saved = saved;
    replay->saved += stream->depth;
    return 0;
}

static void drop_stack(tare__replay *replay)
{
    const tare__replay_visitor *visitor = replay->visitor;
    for (; replay->stream->depth; replay->stream->depth--)
        if (visitor->drop)
            visitor->drop(visitor->context, span_at(replay, replay->stream->depth));
}

static int leave_stream(tare__replay *replay, int status)
{
    const tare__replay_visitor *visitor = replay->visitor;
    if (!status)
        status = cut_stack(replay);
    if (!status && visitor->leave)
        visitor->leave(visitor->context, replay->stream, span_at(replay, 0));
    if (!status)
        status = save_stack(replay);
    if (status)
        drop_stack(replay);
    return status;
}

/* ---- blocks ---------------------------------------------------------------------------------------- */
/* When a block begins. A block that has only numbers has no time: it continues at the time of the previous one. */
static uint64_t first_ticks(const tare__events_decoder *decoder, const tare__block_header *header, uint64_t last)
{
    if (header->last_ticks)
        return header->first_ticks;
    uint64_t begin = decoder->open.depth ? decoder->open.spans[decoder->open.depth - 1].begin : 0;
    return begin > last ? begin : last;
}

/* Blocks are missing before this one. Spans that are still open are known by name and begin; a begin is clamped to be
 * not before that of the enclosing span and not after the block's own begin. The end time of spans that are no longer
 * open is unknown. */
static int rebuild_stack(tare__replay *replay, uint64_t first)
{
    const tare__span_stack *open = &replay->decoder.open;
    tare__replay_stream *stream = replay->stream;
    uint32_t same = 0;
    while (same < stream->depth && same < open->depth && span_at(replay, same + 1)->name == open->spans[same].name &&
           span_at(replay, same + 1)->begin == open->spans[same].begin)
        same++;
    stream->beyond = 0;
    int status = end_above(replay, same, stream->last, TARE__REPLAY_END_LOST);
    uint64_t earliest = span_at(replay, stream->depth)->begin;
    for (uint32_t i = same; i < open->depth && !status; i++) {
        uint64_t begin = open->spans[i].begin;
        earliest = begin < earliest ? earliest : begin > first ? first : begin;
        status = begin_span(replay, open->spans[i].name, earliest, TARE__REPLAY_RESTORED);
    }
    stream->unlisted = replay->decoder.unlisted;
    stream->unlisted_at = open->depth;
    return status;
}

/* A stream's time runs backwards only if the file is invalid; durations must stay non-negative even then. */
static void clamp_stack(const tare__replay *replay, uint64_t first)
{
    const tare__replay_visitor *visitor = replay->visitor;
    for (uint32_t i = 1; i <= replay->stream->depth; i++) {
        tare__replay_span *span = span_at(replay, i);
        span->begin = span->begin > first ? first : span->begin;
        if (visitor->set_back)
            visitor->set_back(visitor->context, span, first);
    }
}

/* Blocks missing at a stream's start may have been removed by rotation, which is not a loss. */
static uint32_t missing_blocks(const tare__replay *replay, uint32_t ordinal)
{
    const tare__replay_stream *stream = replay->stream;
    bool lost = stream->seen || tare__trace_damage_of(replay->trace)->blocks > 0;
    return lost && ordinal > stream->ordinal && stream != &replay->stray ? ordinal - stream->ordinal : 0;
}

static int enter_block(tare__replay *replay, const tare__block_header *header)
{
    const tare__replay_visitor *visitor = replay->visitor;
    tare__replay_stream *stream = replay->stream;
    uint64_t first = first_ticks(&replay->decoder, header, stream->last);
    int status = 0;
    if (visitor->enter)
        status = visitor->enter(visitor->context, stream, span_at(replay, 0), header,
                                missing_blocks(replay, header->ordinal));
    if (!status && (!stream->seen || header->ordinal != stream->ordinal))
        status = rebuild_stack(replay, first);
    if (first < stream->last)
        clamp_stack(replay, first);
    stream->first = stream->seen && stream->first < first ? stream->first : first;
    stream->seen = true;
    stream->ordinal = header->ordinal + 1;
    stream->last = header->last_ticks > first ? header->last_ticks : first;
    replay->decoder.ticks = first;
    return status;
}

/* Each block lists the spans open before it: that part of the stack is known without the previous blocks. */
static tare__replay_stream *find_stream(tare__replay *replay, uint32_t id)
{
    bool refused = false;
    tare__replay_stream *stream = id ? tare__trace_make_row(replay->streams, id, &refused) : &replay->stray;
    if (refused)
        stream = &replay->stray;
    if (stream == &replay->stray)
        stream->seen = false;
    if (stream)
        stream->id = refused ? 0 : id; /* visitors may keep a table indexed by id */
    return stream;
}

static int take_events(tare__replay *replay, const tare__trace_block *block)
{
    const tare__replay_visitor *visitor = replay->visitor;
    int status = tare__events_open(&replay->decoder, replay->squeezer, &block->header, block->payload);
    if (status)
        return status;
    tare__replay_stream *stream = replay->stream = find_stream(replay, block->header.stream);
    if (!stream || load_stack(replay, block->header.count))
        return TARE_E_MEMORY;
    status = enter_block(replay, &block->header);
    tare__event event = {0};
    while (!status && (!visitor->fast || stream->beyond || stream->unlisted) &&
           tare__events_next(&replay->decoder, &event))
        status = tare__replay_event(replay, &event);
    if (!status && visitor->fast)
        status = visitor->fast(replay);
    if (!status && stream == &replay->stray)
        status = end_above(replay, 0, stream->last, TARE__REPLAY_END_LOST);
    return leave_stream(replay, status);
}

static uint32_t known_stream(const tare__trace_block *block)
{
    return block->header.stream > TARE__TRACE_IDS_MAX ? 0 : block->header.stream;
}

static int take_complete(tare__replay *replay, const tare__trace_block *block)
{
    const tare__replay_visitor *visitor = replay->visitor;
    if (block->header.count > TARE__EVENTS_MAX)
        return TARE_E_INPUT;
    int status = tare__complete_read(&block->header, block->payload, replay->squeezer, replay->complete);
    return status ? status
                  : visitor->complete(visitor->context, known_stream(block), replay->complete, block->header.count);
}

typedef struct telling {
    const tare__replay_visitor *visitor;
    uint32_t stream;
    int status;
} telling;

static void tell_cell(void *context, const tare__aggregate *cell)
{
    telling *to = context;
    if (!to->status)
        to->status = to->visitor->aggregate(to->visitor->context, to->stream, cell);
}

/* Cells are cumulative: only the newest block of each stream counts. */
static int take_aggregates(tare__replay *replay, const tare__trace_block *block)
{
    if (tare__trace_aggregates_at(replay->trace, block->header.stream) != block->offset)
        return 0;
    telling to = {replay->visitor, known_stream(block), 0};
    int status = tare__aggregates_read(&block->header, block->payload, replay->squeezer, tell_cell, &to);
    return status ? status : to.status;
}

static void tell_samples(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    telling *to = context;
    if (!to->status)
        to->status = to->visitor->samples(to->visitor->context, series, ticks, values, n);
}

static int take_samples(tare__replay *replay, const tare__trace_block *block)
{
    telling to = {replay->visitor, 0, 0};
    int status = tare__samples_read(&block->header, block->payload, replay->squeezer, tell_samples, &to);
    return status ? status : to.status;
}

static int take_stacks(tare__replay *replay, const tare__trace_block *block)
{
    const tare__stack_sample *samples;
    uint32_t n;
    int status = tare__trace_stack_samples(replay->trace, block, &samples, &n);
    return status ? status : replay->visitor->stacks(replay->visitor->context, samples, n);
}

static int take_block(tare__replay *replay, const tare__trace_block *block)
{
    const tare__replay_visitor *visitor = replay->visitor;
    switch (block->header.kind) {
    case TARE__BLOCK_EVENTS:
        return visitor->enter || visitor->begin || visitor->end || visitor->mark || visitor->counter || visitor->number
                   ? take_events(replay, block)
                   : 0;
    case TARE__BLOCK_COMPLETE: return visitor->complete ? take_complete(replay, block) : 0;
    case TARE__BLOCK_AGGREGATES: return visitor->aggregate ? take_aggregates(replay, block) : 0;
    case TARE__BLOCK_SAMPLES: return visitor->samples ? take_samples(replay, block) : 0;
    case TARE__BLOCK_STACK_SAMPLES: return visitor->stacks ? take_stacks(replay, block) : 0;
    default: return 0; /* already in the trace's own tables */
    }
}

/* ---- the whole trace -------------------------------------------------------------------------------- */
/* The end time assumed for spans that are open at the end: a main thread ends with its process; when another thread
 * ended is unknown, only that it still existed at its last event. */
static uint64_t open_until(const tare__trace *trace, const tare__replay_stream *stream)
{
    const tare__trace_stream *reported = tare__trace_stream_at(trace, stream->id);
    const tare__trace_process *process = reported ? tare__trace_process_at(trace, reported->process) : NULL;
    if (!process || (reported->tid != process->pid && reported->tid != process->inner_pid))
        return stream->last;
    return process->left_ticks > stream->last ? process->left_ticks : stream->last;
}

static tare__replay_stream *stream_row(const tare__replay *replay, size_t row)
{
    return (tare__replay_stream *)(void *)(replay->streams->rows + row * replay->streams->row_bytes);
}

static int close_stream(tare__replay *replay)
{
    const tare__replay_visitor *visitor = replay->visitor;
    tare__replay_stream *stream = replay->stream;
    replay->decoder.open.depth = 0;
    int status = load_stack(replay, 0);
    if (status)
        return status;
    if (visitor->enter)
        status = visitor->enter(visitor->context, stream, span_at(replay, 0), NULL, 0);
    if (!status)
        status = end_above(replay, 0, open_until(replay->trace, stream), TARE__REPLAY_STILL_OPEN);
    return leave_stream(replay, status);
}

static int close_streams(tare__replay *replay)
{
    int status = 0;
    for (size_t i = 0; i < replay->streams->n && !status; i++) {
        replay->stream = stream_row(replay, i);
        status = replay->stream->depth ? close_stream(replay) : 0;
    }
    return status;
}

static int read_all(tare__replay *replay, tare__error *error)
{
    tare__trace_block block;
    int more, status = 0;
    while ((more = tare__trace_next(replay->trace, &block, error)) > 0) {
        status = take_block(replay, &block);
        if (status == TARE_E_INPUT)
            tare__trace_refuse(replay->trace, &block);
        else if (status)
            return status;
    }
    return more < 0 ? more : close_streams(replay);
}

static void free_replay(tare__replay *replay)
{
    replay->decoder.open.depth = 0;
    for (size_t i = 0; i < replay->streams->n; i++) {
        replay->stream = stream_row(replay, i);
        if (replay->stream->depth && !load_stack(replay, 0))
            drop_stack(replay);
        free(replay->stream->saved);
    }
    free(replay->spans);
    free(replay->streams->rows);
    free(replay->streams->row_of);
    free(replay->complete);
    tare__events_close(&replay->decoder);
    tare__squeezer_free(replay->squeezer);
}

int tare__trace_replay(tare__trace *trace, const tare__replay_visitor *visitor, tare__error *error)
{
    int status = tare__trace_prescan(trace, error);
    if (status)
        return status;
    tare__trace_rewind(trace);
    tare__trace_table streams = {.row_bytes = sizeof(tare__replay_stream), .limit = STREAMS_MAX};
    tare__replay replay = {.trace = trace,
                           .visitor = visitor,
                           .squeezer = tare__squeezer_new(),
                           .complete = malloc(TARE__EVENTS_MAX * sizeof(tare__complete_span)),
                           .streams = &streams,
                           .span_bytes = visitor->span_bytes ? visitor->span_bytes : sizeof(tare__replay_span)};
    tare__error own = {""};
    status = replay.squeezer && replay.complete ? read_all(&replay, &own) : TARE_E_MEMORY;
    if (own.text[0])
        tare__fail(error, status, "%s", own.text);
    else if (status == TARE_E_MEMORY)
        tare__fail(error, status, "out of memory while reading %s", tare__trace_path(trace));
    free_replay(&replay);
    return status;
}
