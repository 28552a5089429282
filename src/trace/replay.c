/* replay: events of each stream on its stack of open spans, across blocks, gaps and damage.
 * Owned by the thread that reads.
 * Must not know what is made of the spans. */
#include <stdlib.h>

#include "inner.h"
#include "tare.h"

/* A few bytes of a crafted file can open very many spans. */
#define DEPTH_KEPT        131072u
#define DEPTH_KEPT_SCARCE 64u
#define SPANS_KEPT_MAX    ((size_t)400000)
#define STREAMS_MAX       ((size_t)100000)

typedef struct stream {
    tare__replay_span *spans; /* open ones */
    uint32_t id;
    uint32_t depth, room;
    uint32_t ordinal; /* of the block that should come next */
    bool seen;
    uint64_t beyond; /* open inside of `spans`: known by number only */
    uint64_t last;   /* ticks */
} stream;

typedef struct replay {
    tare__trace *trace;
    const tare__replay_visitor *visitor;
    tare__squeezer *squeezer;
    tare__events_decoder decoder;
    tare__complete_span *complete; /* room for a block's */
    tare__trace_table streams;
    stream stray; /* of streams that are too many to be kept */
    size_t open;  /* spans, of all streams */
    int sampled;  /* what the visitor said of samples */
} replay;

/* ---- spans ----------------------------------------------------------------------------------------- */
static int end_top(replay *replay, stream *stream, uint64_t ticks, tare__replay_how how)
{
    tare__replay_span *top = &stream->spans[--stream->depth];
    replay->open--;
    top->end = ticks > top->begin ? ticks : top->begin;
    top->how = how;
    return replay->visitor->end ? replay->visitor->end(replay->visitor->context, stream->id, top) : 0;
}

static int end_above(replay *replay, stream *stream, uint32_t depth, uint64_t ticks, tare__replay_how how)
{
    int status = 0;
    while (stream->depth > depth && !status)
        status = end_top(replay, stream, ticks, how);
    return status;
}

static int begin_untimed(replay *replay, stream *stream, uint32_t name, uint64_t ticks)
{
    const tare__replay_visitor *visitor = replay->visitor;
    tare__replay_span span = {.begin = ticks, .end = ticks, .name = name, .how = TARE__REPLAY_UNTIMED};
    int status = visitor->begin ? visitor->begin(visitor->context, stream->id, &span) : 0;
    stream->beyond++;
    return status || !visitor->end ? status : visitor->end(visitor->context, stream->id, &span);
}

static bool may_keep(const replay *replay, const stream *stream)
{
    return !stream->beyond &&
           stream->depth < (replay->open < SPANS_KEPT_MAX ? DEPTH_KEPT : DEPTH_KEPT_SCARCE);
}

static bool room_for_span(stream *stream)
{
    if (stream->depth < stream->room)
        return true;
    uint32_t room = stream->room ? stream->room * 2 : 16;
    tare__replay_span *grown = realloc(stream->spans, room * sizeof *grown);
    if (!grown)
        return false;
    stream->spans = grown;
    stream->room = room;
    return true;
}

static int begin_span(replay *replay, stream *stream, uint32_t name, uint64_t ticks, bool restored)
{
    const tare__replay_visitor *visitor = replay->visitor;
    if (!may_keep(replay, stream)) {
        stream->beyond += restored;
        return restored ? 0 : begin_untimed(replay, stream, name, ticks);
    }
    if (!room_for_span(stream))
        return TARE_E_MEMORY;
    tare__replay_span *top = &stream->spans[stream->depth++];
    replay->open++;
    *top = (tare__replay_span){.begin = ticks, .name = name, .restored = restored};
    return visitor->begin ? visitor->begin(visitor->context, stream->id, top) : 0;
}

/* ---- events ---------------------------------------------------------------------------------------- */
/* The innermost; one that is not open is nobody's. */
static int end_innermost(replay *replay, stream *stream, uint64_t ticks)
{
    if (stream->beyond) {
        stream->beyond--;
        return 0;
    }
    return stream->depth ? end_top(replay, stream, ticks, TARE__REPLAY_ENDED) : 0;
}

static int end_of(replay *replay, stream *stream, const tare__event *event)
{
    uint32_t depth = stream->depth;
    while (depth && stream->spans[depth - 1].name != event->name)
        depth--;
    if (!depth) {
        tare__replay_is_unmatched(&stream->beyond);
        return 0;
    }
    stream->beyond = 0;
    int status = end_above(replay, stream, depth, event->ticks, TARE__REPLAY_WITH_OUTER);
    return status ? status : end_top(replay, stream, event->ticks, TARE__REPLAY_ENDED);
}

static int lost_ends(replay *replay, stream *stream, const tare__event *event)
{
    uint64_t lost = (uint64_t)event->value; /* the codec has seen to it that this is a whole number */
    uint32_t depth = tare__replay_depth_left(stream->depth, &stream->beyond, lost);
    return end_above(replay, stream, depth, event->ticks, TARE__REPLAY_END_LOST);
}

static int number(replay *replay, stream *stream, const tare__event *event)
{
    const tare__replay_visitor *visitor = replay->visitor;
    bool known = stream->depth && !stream->beyond;
    if (!visitor->number)
        return 0;
    return visitor->number(visitor->context, stream->id, known ? &stream->spans[stream->depth - 1] : NULL,
                           event->name, event->value);
}

static int take_event(replay *replay, stream *stream, const tare__event *event)
{
    const tare__replay_visitor *visitor = replay->visitor;
    int status = 0;
    switch (event->op) {
    case TARE__OP_BEGIN: return begin_span(replay, stream, event->name, event->ticks, false);
    case TARE__OP_END: return end_innermost(replay, stream, event->ticks);
    case TARE__OP_NEXT:
        status = end_innermost(replay, stream, event->ticks);
        return status ? status : begin_span(replay, stream, event->name, event->ticks, false);
    case TARE__OP_END_OF: return end_of(replay, stream, event);
    case TARE__OP_MARK:
        return visitor->mark ? visitor->mark(visitor->context, stream->id, event->name, event->ticks) : 0;
    case TARE__OP_COUNTER:
        return visitor->counter
                   ? visitor->counter(visitor->context, stream->id, event->name, event->ticks, event->value)
                   : 0;
    case TARE__OP_NUMBER: return number(replay, stream, event);
    default: return lost_ends(replay, stream, event);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------------- */
/* Blocks are missing before this one. What stayed open is known by name and begin; what was open and is not any
 * more ended at a time nobody knows. */
static int rebuild_stack(replay *replay, stream *stream, uint64_t first)
{
    const tare__span_stack *open = &replay->decoder.open;
    uint32_t same = 0;
    while (same < stream->depth && same < open->depth && stream->spans[same].name == open->spans[same].name &&
           stream->spans[same].begin == open->spans[same].begin)
        same++;
    stream->beyond = 0;
    int status = end_above(replay, stream, same, stream->last, TARE__REPLAY_END_LOST);
    uint64_t earliest = stream->depth ? stream->spans[stream->depth - 1].begin : 0;
    for (uint32_t i = same; i < open->depth && !status; i++) {
        earliest = tare__replay_listed_begin(open->spans[i].begin, earliest, first);
        status = begin_span(replay, stream, open->spans[i].name, earliest, true);
    }
    stream->beyond += replay->decoder.unlisted;
    return status;
}

/* A stream's time never runs backwards unless the file is wrong. */
static void clamp_stack(stream *stream, uint64_t first)
{
    for (uint32_t i = 0; i < stream->depth; i++)
        if (stream->spans[i].begin > first)
            stream->spans[i].begin = first;
}

static int enter_block(replay *replay, stream *stream, const tare__block_header *header)
{
    uint64_t first = tare__replay_first_ticks(&replay->decoder, header, stream->last);
    int status = 0;
    if (!stream->seen || header->ordinal != stream->ordinal)
        status = rebuild_stack(replay, stream, first);
    if (first < stream->last)
        clamp_stack(stream, first);
    stream->seen = true;
    stream->ordinal = header->ordinal + 1;
    stream->last = header->last_ticks > first ? header->last_ticks : first;
    replay->decoder.ticks = first;
    return status;
}

/* Each block lists what is open before it: that much of a stack is known without the blocks before. */
static stream *find_stream(replay *replay, uint32_t id)
{
    bool refused = false;
    stream *stream = id ? tare__trace_make_row(&replay->streams, id, &refused) : &replay->stray;
    if (refused)
        stream = &replay->stray;
    if (stream == &replay->stray)
        stream->seen = false;
    if (stream)
        stream->id = refused ? 0 : id; /* whoever is told of it may keep a table by number */
    return stream;
}

static int take_events(replay *replay, const tare__trace_block *block)
{
    int status = tare__events_open(&replay->decoder, replay->squeezer, &block->header, block->payload);
    if (status)
        return status;
    stream *stream = find_stream(replay, block->header.stream);
    if (!stream)
        return TARE_E_MEMORY;
    status = enter_block(replay, stream, &block->header);
    tare__event event = {0};
    while (!status && tare__events_next(&replay->decoder, &event))
        status = take_event(replay, stream, &event);
    if (!status && stream == &replay->stray)
        status = end_above(replay, stream, 0, stream->last, TARE__REPLAY_END_LOST);
    return status;
}

static int take_complete(replay *replay, const tare__trace_block *block)
{
    const tare__replay_visitor *visitor = replay->visitor;
    if (block->header.count > TARE__EVENTS_MAX)
        return TARE_E_INPUT;
    int status = tare__complete_read(&block->header, block->payload, replay->squeezer, replay->complete);
    if (status)
        return status;
    uint32_t id = block->header.stream > TARE__TRACE_IDS_MAX ? 0 : block->header.stream;
    return visitor->complete(visitor->context, id, replay->complete, block->header.count);
}

static void take_run(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    replay *replay = context;
    if (!replay->sampled)
        replay->sampled = replay->visitor->samples(replay->visitor->context, series, ticks, values, n);
}

static int take_samples(replay *replay, const tare__trace_block *block)
{
    int status = tare__samples_read(&block->header, block->payload, replay->squeezer, take_run, replay);
    return status ? status : replay->sampled;
}

static int take_block(replay *replay, const tare__trace_block *block)
{
    const tare__replay_visitor *visitor = replay->visitor;
    bool events = visitor->begin || visitor->end || visitor->mark || visitor->counter || visitor->number;
    if (block->header.kind == TARE__BLOCK_EVENTS)
        return events ? take_events(replay, block) : 0;
    if (block->header.kind == TARE__BLOCK_COMPLETE)
        return visitor->complete ? take_complete(replay, block) : 0;
    if (block->header.kind == TARE__BLOCK_SAMPLES)
        return visitor->samples ? take_samples(replay, block) : 0;
    return 0; /* in the trace's own tables already */
}

/* ---- the whole ------------------------------------------------------------------------------------- */
uint64_t tare__trace_open_until(const tare__trace *trace, uint32_t stream, uint64_t last)
{
    const tare__trace_stream *told = tare__trace_stream_at(trace, stream);
    const tare__trace_process *process = told ? tare__trace_process_at(trace, told->process) : NULL;
    if (!process || (told->tid != process->pid && told->tid != process->inner_pid))
        return last;
    return process->left_ticks > last ? process->left_ticks : last;
}

static stream *stream_row(const replay *replay, size_t row)
{
    return (stream *)(void *)(replay->streams.rows + row * replay->streams.row_bytes);
}

static int close_streams(replay *replay)
{
    int status = 0;
    for (size_t i = 0; i < replay->streams.n && !status; i++) {
        stream *stream = stream_row(replay, i);
        uint64_t until = tare__trace_open_until(replay->trace, stream->id, stream->last);
        status = end_above(replay, stream, 0, until, TARE__REPLAY_STILL_OPEN);
    }
    return status;
}

static int read_all(replay *replay, tare__error *error)
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

static void free_stream(const replay *replay, stream *stream)
{
    for (uint32_t i = 0; i < stream->depth; i++)
        if (stream->spans[i].own && replay->visitor->drop)
            replay->visitor->drop(stream->spans[i].own);
    free(stream->spans);
}

static void free_replay(replay *replay)
{
    for (size_t i = 0; i < replay->streams.n; i++)
        free_stream(replay, stream_row(replay, i));
    free_stream(replay, &replay->stray);
    free(replay->streams.rows);
    free(replay->streams.row_of);
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
    replay replay = {.trace = trace,
                     .visitor = visitor,
                     .squeezer = tare__squeezer_new(),
                     .complete = malloc(TARE__EVENTS_MAX * sizeof(tare__complete_span)),
                     .streams = {.row_bytes = sizeof(stream), .limit = STREAMS_MAX}};
    tare__error own = {""};
    status = replay.squeezer && replay.complete ? read_all(&replay, &own) : TARE_E_MEMORY;
    if (own.text[0])
        tare__fail(error, status, "%s", own.text);
    else if (status == TARE_E_MEMORY)
        tare__fail(error, status, "out of memory while reading %s", tare__trace_path(trace));
    free_replay(&replay);
    return status;
}
