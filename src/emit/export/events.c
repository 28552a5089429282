/* events: prints the raw event stream, one event per line, tab separated: for pipes and tests.
 * Owned by the calling thread.
 * Must not know what is computed from the events. */
#include "emit/flush.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

typedef struct lines {
    tare__trace *trace;
    tare__text text;
    const tare__emit_sink *sink;
    tare__error *error;
    int64_t pid, tid; /* of the current block; 0: unknown */
    tare__replay_span ended; /* ended by a NEXT whose begin follows; name 0: none */
} lines;

/* ---- parts of a line ----------------------------------------------------------------------------- */
/* Escapes line ends, tabs and terminal control characters, so that each event stays on one line. */
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

/* Writes the line up to the name. */
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

static int end_line(lines *to)
{
    tare__text_string(&to->text, "\n");
    return tare__emit_flush_piece(&to->text, to->sink, to->error);
}

static void put_whole(lines *to, const char *key, uint64_t value)
{
    tare__text_format(&to->text, "\t%s=%" PRIu64, key, value);
}

/* The fewest digits that read back as the same value: 0.1 rather than 0.10000000000000001; integers without a
 * fraction. */
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

/* ---- nested spans: callbacks of the replay -------------------------------------------------------- */
static void set_owner(lines *to, uint32_t stream_id)
{
    const tare__trace_stream *of = tare__trace_stream_at(to->trace, stream_id);
    const tare__trace_process *process = of ? tare__trace_process_at(to->trace, of->process) : NULL;
    to->tid = of ? of->tid : 0;
    to->pid = process ? process->pid : 0;
}

static int enter(void *context, tare__replay_stream *stream, tare__replay_span *outside,
                 const tare__block_header *header, uint32_t missing)
{
    (void)outside;
    (void)header;
    (void)missing;
    set_owner(context, stream->id);
    return 0;
}

static int put_begin(void *context, tare__replay_stream *stream, tare__replay_span *span, tare__replay_begin how)
{
    lines *to = context;
    if (how == TARE__REPLAY_RESTORED)
        return 0;
    begin_named(to, span->begin, how == TARE__REPLAY_NEXT ? "next" : "begin", span->name);
    if (to->ended.name) {
        put_duration(to, to->ended.begin, span->begin);
        tare__text_string(&to->text, "\tended=");
        put_name(to, to->ended.name);
        to->ended.name = 0;
    }
    put_whole(to, "depth", tare__replay_open(stream) - 1);
    return end_line(to);
}

/* Ends that are not in the file get no line. */
static int put_end(void *context, tare__replay_stream *stream, tare__replay_span *span, uint64_t ticks,
                   tare__replay_how how)
{
    lines *to = context;
    if (how == TARE__REPLAY_ENDED_BY_NEXT)
        to->ended = *span;
    if (how != TARE__REPLAY_ENDED && how != TARE__REPLAY_WITH_OUTER)
        return 0;
    begin_named(to, ticks, "end", span->name);
    put_duration(to, span->begin, ticks);
    put_whole(to, "depth", tare__replay_open(stream));
    if (how == TARE__REPLAY_WITH_OUTER)
        tare__text_string(&to->text, "\tleft_open=1");
    return end_line(to);
}

static int put_unknown_end(void *context, tare__replay_stream *stream, const tare__replay_unknown *end)
{
    lines *to = context;
    begin_line(to, end->ticks, "end");
    if (end->name)
        put_name(to, end->name);
    else
        tare__text_string(&to->text, "(not known)");
    if (end->unmatched)
        tare__text_string(&to->text, "\tunmatched=1");
    else
        put_whole(to, "depth", tare__replay_open(stream));
    return end_line(to);
}

static int put_lost_ends(void *context, tare__replay_stream *stream, uint64_t ticks, uint64_t lost)
{
    lines *to = context;
    begin_line(to, ticks, "dropped-ends");
    put_whole(to, "value", lost);
    put_whole(to, "depth", tare__replay_open(stream));
    return end_line(to);
}

/* ---- marks, counters, numbers, complete spans -------------------------------------------------------- */
static int put_mark(void *context, tare__replay_stream *stream, uint32_t name, uint64_t ticks)
{
    (void)stream;
    begin_named(context, ticks, "mark", name);
    return end_line(context);
}

static int put_counter(void *context, tare__replay_stream *stream, uint32_t name, uint64_t ticks, double value)
{
    (void)stream;
    begin_named(context, ticks, "counter", name);
    put_value(context, value);
    return end_line(context);
}

static int put_number(void *context, tare__replay_stream *stream, tare__replay_span *innermost, uint32_t name,
                      uint64_t ticks, double value)
{
    (void)stream;
    (void)innermost;
    begin_named(context, ticks, "number", name);
    put_value(context, value);
    return end_line(context);
}

static int put_complete(lines *to, const tare__complete_span *span)
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
    return end_line(to);
}

static int put_completes(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    int status = 0;
    set_owner(context, stream);
    for (uint32_t i = 0; i < n && !status; i++)
        status = put_complete(context, &spans[i]);
    return status;
}

/* ---- the output ---------------------------------------------------------------------------------- */
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

static int emit_events(const tare__emit_input *input, const tare__emit_options *options,
                       const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    lines to = {.trace = input->trace, .sink = sink, .error = error};
    const tare__replay_visitor visitor = {.context = &to,
                                          .enter = enter,
                                          .begin = put_begin,
                                          .end = put_end,
                                          .unknown_end = put_unknown_end,
                                          .dropped_ends = put_lost_ends,
                                          .mark = put_mark,
                                          .counter = put_counter,
                                          .number = put_number,
                                          .complete = put_completes};
    tare__text_string(&to.text, "# time_ns\tpid\ttid\tkind\tname\textras\n");
    int status = tare__trace_replay(to.trace, &visitor, error);
    if (!status) {
        put_damage(&to);
        status = tare__emit_flush(&to.text, sink, error);
    }
    tare__text_free(&to.text);
    return status;
}

const tare__emitter tare__emit_events = {
    .name = "events",
    .needs = TARE__EMIT_CURSOR,
    .emit = emit_events,
};
