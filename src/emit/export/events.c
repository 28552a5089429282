/* events: print the raw event stream, one event per line, tab separated: for pipes and tests.
 * Owned by the calling thread; memory grows with threads and open spans, not with the file.
 * Must not know what the events add up to. */
#include "emit/flush.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

/* What is open on a stream, from block to block. After a gap a deep stack is known by number only: those
 * spans sit on the listed ones, below any that begins later. */
typedef struct stream {
    tare__span_stack open;
    uint32_t unlisted, unlisted_at;
    uint32_t next_ordinal;
    bool seen;
} stream;

typedef struct lines {
    tare__trace *trace;
    tare__text text;
    const tare__emit_sink *sink;
    tare__error *error;
    tare__squeezer *squeezer;
    tare__events_decoder decoder;
    tare__complete_span *complete; /* room for a block's */
    stream *streams;               /* by id */
    size_t n_streams;
    int64_t pid, tid; /* of the block at hand; 0: not known */
} lines;

/* ---- pieces of a line ---------------------------------------------------------------------------- */
/* So that a line is a line, a tab a separator, and nothing moves a terminal's cursor. */
static void put_escaped(tare__text *out, const char *name)
{
    size_t length = strlen(name);
    while (length > 0) {
        uint32_t code = 0;
        size_t size = tare__utf8_decode(name, length, &code);
        if (code == '\t' || code == '\n' || code == '\\')
            tare__text_string(out, code == '\t' ? "\\t" : code == '\n' ? "\\n" : "\\\\");
        else if (size > 0 && !tare__utf8_control(code))
            tare__text_append(out, name, size);
        else
            for (size_t i = 0; i < (size ? size : 1); i++)
                tare__text_format(out, "\\x%02x", (unsigned char)name[i]);
        size = size ? size : 1;
        name += size;
        length -= size;
    }
}

static void put_name(lines *to, uint32_t id)
{
    const tare__trace_name *name = tare__trace_name_at(to->trace, id);
    if (name && name->text)
        put_escaped(&to->text, name->text);
    else
        tare__text_format(&to->text, "(name %" PRIu32 ")", id);
}

static void put_number_or_absence(tare__text *out, int64_t number)
{
    if (number)
        tare__text_format(out, "\t%" PRId64, number);
    else
        tare__text_string(out, "\tn/a");
}

/* Up to the name. */
static void begin_line(lines *to, uint64_t ticks, const char *kind)
{
    tare__text_format(&to->text, "%" PRId64, (int64_t)llround(tare__trace_ns(to->trace, ticks)));
    put_number_or_absence(&to->text, to->pid);
    put_number_or_absence(&to->text, to->tid);
    tare__text_format(&to->text, "\t%s\t", kind);
}

static void begin_named(lines *to, uint64_t ticks, const char *kind, uint32_t name)
{
    begin_line(to, ticks, kind);
    put_name(to, name);
}

static void end_line(lines *to)
{
    tare__text_string(&to->text, "\n");
}

static void put_whole(lines *to, const char *key, uint64_t value)
{
    tare__text_format(&to->text, "\t%s=%" PRIu64, key, value);
}

/* As few digits as read back the same: 0.1 rather than 0.10000000000000001; whole numbers as such. */
static void put_value(lines *to, double value)
{
    char digits[40], tried[40];
    if (fabs(value) < 1e15 && value == floor(value)) {
        tare__text_format(&to->text, "\tvalue=%" PRId64, (int64_t)value);
        return;
    }
    int n = 15;
    for (; n < 17; n++) {
        snprintf(tried, sizeof tried, "%.*g", n, value); /* written and read in the same locale */
        if (strtod(tried, NULL) == value)
            break;
    }
    tare__text_double(digits, sizeof digits, 'g', n, value);
    tare__text_format(&to->text, "\tvalue=%s", digits);
}

static void put_duration(lines *to, uint64_t begin, uint64_t end)
{
    double ns = tare__trace_ns(to->trace, end) - tare__trace_ns(to->trace, begin);
    tare__text_format(&to->text, "\tdur_ns=%" PRId64, (int64_t)llround(ns));
}

/* ---- what is open -------------------------------------------------------------------------------- */
static uint64_t depth_of(const stream *stream)
{
    return (uint64_t)stream->open.depth + stream->unlisted;
}

static bool unlisted_on_top(const stream *stream)
{
    return stream->unlisted > 0 && stream->open.depth <= stream->unlisted_at;
}

/* Takes the innermost span off; false when nothing is known of it but that it was there. */
static bool pop(stream *stream, tare__open_span *span)
{
    if (unlisted_on_top(stream)) {
        stream->unlisted--;
        return false;
    }
    *span = stream->open.spans[--stream->open.depth];
    return true;
}

/* Takes several off at once: a damaged file may claim billions. */
static void pop_many(stream *stream, uint64_t n)
{
    uint64_t above = stream->unlisted ? stream->open.depth - stream->unlisted_at : stream->open.depth;
    uint64_t now = n < above ? n : above;
    stream->open.depth -= (uint32_t)now;
    n -= now;
    now = n < stream->unlisted ? n : stream->unlisted;
    stream->unlisted -= (uint32_t)now;
    n -= now;
    stream->open.depth -= (uint32_t)(n < stream->open.depth ? n : stream->open.depth);
}

/* ---- nested spans, marks, counters, numbers ------------------------------------------------------ */
/* Ends the innermost span; `left_open` when it ended only because one around it did. */
static void put_end(lines *to, stream *stream, uint64_t ticks, bool left_open)
{
    tare__open_span span;
    begin_line(to, ticks, "end");
    if (pop(stream, &span)) {
        put_name(to, span.name);
        put_duration(to, span.begin, ticks);
    } else {
        tare__text_string(&to->text, "(not known)");
    }
    put_whole(to, "depth", depth_of(stream));
    if (left_open)
        tare__text_string(&to->text, "\tleft_open=1");
    end_line(to);
}

static void put_end_of(lines *to, stream *stream, const tare__event *event)
{
    uint32_t closes = tare__span_stack_find(&stream->open, event->name);
    if (closes == 0) {
        begin_named(to, event->ticks, "end", event->name);
        tare__text_string(&to->text, "\tunmatched=1");
        end_line(to);
        return;
    }
    if (stream->open.depth - closes < stream->unlisted_at)
        stream->unlisted = 0; /* they were inside of it */
    for (; closes > 0; closes--)
        put_end(to, stream, event->ticks, closes > 1);
}

static void put_any_end(lines *to, stream *stream, const tare__event *event)
{
    if (depth_of(stream) > 0) {
        put_end(to, stream, event->ticks, false);
        return;
    }
    begin_line(to, event->ticks, "end");
    tare__text_string(&to->text, "(not known)\tunmatched=1");
    end_line(to);
}

static int put_begin(lines *to, stream *stream, const tare__event *event)
{
    begin_named(to, event->ticks, "begin", event->name);
    put_whole(to, "depth", depth_of(stream));
    end_line(to);
    return tare__span_stack_push(&stream->open, event->name, event->ticks);
}

static int put_next(lines *to, stream *stream, const tare__event *event)
{
    tare__open_span ended;
    begin_named(to, event->ticks, "next", event->name);
    if (depth_of(stream) > 0 && pop(stream, &ended)) {
        put_duration(to, ended.begin, event->ticks);
        tare__text_string(&to->text, "\tended=");
        put_name(to, ended.name);
    }
    put_whole(to, "depth", depth_of(stream));
    end_line(to);
    return tare__span_stack_push(&stream->open, event->name, event->ticks);
}

static void put_lost_ends(lines *to, stream *stream, const tare__event *event)
{
    double lost = event->value > 0 ? fmin(event->value, 1e18) : 0;
    begin_line(to, event->ticks, "lost-ends");
    put_value(to, event->value);
    pop_many(stream, (uint64_t)lost);
    put_whole(to, "depth", depth_of(stream));
    end_line(to);
}

static void put_valued(lines *to, const tare__event *event, const char *kind)
{
    begin_named(to, event->ticks, kind, event->name);
    put_value(to, event->value);
    end_line(to);
}

static int put_event(lines *to, stream *stream, const tare__event *event)
{
    switch (event->op) {
    case TARE__OP_BEGIN: return put_begin(to, stream, event);
    case TARE__OP_NEXT: return put_next(to, stream, event);
    case TARE__OP_END: put_any_end(to, stream, event); return 0;
    case TARE__OP_END_OF: put_end_of(to, stream, event); return 0;
    case TARE__OP_MARK:
        begin_named(to, event->ticks, "mark", event->name);
        end_line(to);
        return 0;
    case TARE__OP_COUNTER: put_valued(to, event, "counter"); return 0;
    case TARE__OP_NUMBER: put_valued(to, event, "number"); return 0;
    default: put_lost_ends(to, stream, event); return 0;
    }
}

/* ---- blocks -------------------------------------------------------------------------------------- */
static stream *stream_at(lines *to, uint32_t id)
{
    if (id >= to->n_streams) {
        size_t room = (size_t)id + 1 > 2 * to->n_streams ? (size_t)id + 1 : 2 * to->n_streams;
        stream *grown = realloc(to->streams, room * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + to->n_streams, 0, (room - to->n_streams) * sizeof *grown);
        to->streams = grown;
        to->n_streams = room;
    }
    return &to->streams[id];
}

/* Where blocks before this one are missing, its own list of open spans is the better one. */
static int take_over(stream *stream, const tare__trace_block *block, const tare__events_decoder *decoder)
{
    const tare__span_stack *listed = &decoder->open;
    int status = 0;
    bool gap = !stream->seen || stream->next_ordinal != block->header.ordinal;
    stream->seen = true;
    stream->next_ordinal = block->header.ordinal + 1;
    if (!gap)
        return 0;
    stream->open.depth = 0;
    stream->unlisted = decoder->unlisted;
    stream->unlisted_at = listed->depth;
    for (uint32_t i = 0; i < listed->depth && !status; i++)
        status = tare__span_stack_push(&stream->open, listed->spans[i].name, listed->spans[i].begin);
    return status;
}

static void set_owner(lines *to, uint32_t stream_id)
{
    const tare__trace_stream *of = tare__trace_stream_at(to->trace, stream_id);
    const tare__trace_process *process = of ? tare__trace_process_at(to->trace, of->process) : NULL;
    to->tid = of ? of->tid : 0;
    to->pid = process ? process->pid : 0;
}

static int put_events(lines *to, const tare__trace_block *block)
{
    int status = tare__events_open(&to->decoder, to->squeezer, &block->header, block->payload);
    if (status == TARE_E_INPUT || block->header.stream > TARE__TRACE_IDS_MAX) {
        tare__trace_refuse(to->trace, block);
        return 0;
    }
    stream *stream = status ? NULL : stream_at(to, block->header.stream);
    if (!stream || take_over(stream, block, &to->decoder))
        return tare__fail(to->error, TARE_E_MEMORY, "out of memory");
    tare__event event = {0};
    while (!status && tare__events_next(&to->decoder, &event)) {
        status = put_event(to, stream, &event);
        if (status)
            return tare__fail(to->error, status, "out of memory");
        status = tare__emit_flush_piece(&to->text, to->sink, to->error);
    }
    return status;
}

static void put_complete(lines *to, const tare__complete_span *span)
{
    begin_named(to, span->start, "complete", span->name);
    put_duration(to, span->start, span->end);
    if (span->track) {
        tare__text_string(&to->text, "\ttrack=");
        put_name(to, span->track);
    }
    if (span->id)
        put_whole(to, "id", span->id);
    if (span->parent)
        put_whole(to, "parent", span->parent);
    if (span->flow)
        put_whole(to, "flow", span->flow);
    end_line(to);
}

static int put_completes(lines *to, const tare__trace_block *block)
{
    int status = TARE_E_INPUT;
    if (block->header.count <= TARE__EVENTS_MAX)
        status = tare__complete_read(&block->header, block->payload, to->squeezer, to->complete);
    if (status == TARE_E_INPUT) {
        tare__trace_refuse(to->trace, block);
        return 0;
    }
    if (status)
        return tare__fail(to->error, status, "out of memory");
    for (uint32_t i = 0; i < block->header.count && !status; i++) {
        put_complete(to, &to->complete[i]);
        status = tare__emit_flush_piece(&to->text, to->sink, to->error);
    }
    return status;
}

static int put_block(lines *to, const tare__trace_block *block)
{
    set_owner(to, block->header.stream);
    if (block->header.kind == TARE__BLOCK_EVENTS)
        return put_events(to, block);
    return block->header.kind == TARE__BLOCK_COMPLETE ? put_completes(to, block) : 0;
}

/* ---- the whole ----------------------------------------------------------------------------------- */
static void put_damage(lines *to)
{
    const tare__trace_damage *damage = tare__trace_damage_of(to->trace);
    char blocks[TARE__COUNTED_BYTES];
    if (damage->blocks > 0)
        tare__text_format(&to->text, "# damage: %s (%" PRIu64 " bytes) missing, the first at byte %" PRIu64 "\n",
                          tare__unit_counted(blocks, (double)damage->blocks, "block", NULL), damage->bytes,
                          damage->first_offset);
    if (damage->torn)
        tare__text_format(&to->text, "# damage: the file ends inside the block at byte %" PRIu64 "\n",
                          damage->torn_offset);
}

static int put_all(lines *to)
{
    tare__trace_block block;
    int more = 0, status = tare__trace_prescan(to->trace, to->error);
    tare__trace_rewind(to->trace);
    tare__text_string(&to->text, "# time_ns\tpid\ttid\tkind\tname\textras\n");
    while (!status && (more = tare__trace_next(to->trace, &block, to->error)) > 0)
        status = put_block(to, &block);
    if (!status && more < 0)
        status = more;
    if (status)
        return status;
    put_damage(to);
    return tare__emit_flush(&to->text, to->sink, to->error);
}

static int emit_events(const tare__emit_input *input, const tare__emit_options *options,
                       const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    lines to = {.trace = input->trace, .sink = sink, .error = error, .squeezer = tare__squeezer_new()};
    to.complete = malloc(TARE__EVENTS_MAX * sizeof *to.complete);
    int status =
        to.squeezer && to.complete ? put_all(&to) : tare__fail(error, TARE_E_MEMORY, "out of memory");
    for (size_t i = 0; i < to.n_streams; i++)
        tare__span_stack_free(&to.streams[i].open);
    tare__events_close(&to.decoder);
    tare__squeezer_free(to.squeezer);
    free(to.streams);
    free(to.complete);
    tare__text_free(&to.text);
    return status;
}

const tare__emitter tare__emit_events = {
    .name = "events",
    .description = "for pipes: print the raw event stream, one event per line",
    .needs = TARE__EMIT_CURSOR,
    .emit = emit_events,
};
