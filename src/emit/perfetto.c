/* perfetto: the native protocol buffers of Perfetto, packet by packet. docs/EXPORT.md.
 * Owned by the calling thread; memory grows with threads, names and open spans, not with the file.
 * Must not know what the events add up to. */
#include "flush.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attached.h"
#include "gauges.h"
#include "lanes.h"
#include "proto.h"
#include "trace/trace.h"

/* Field numbers of Perfetto's trace protos, which are promised never to change. */
enum {
    TRACE_PACKET = 1,
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK_DESCRIPTOR = 60,
    SNAPSHOT_CLOCKS = 1,
    CLOCK_ID = 1,
    CLOCK_TIMESTAMP = 2,
    EVENT_CATEGORY_IIDS = 3,
    EVENT_DEBUG_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK_UUID = 11,
    EVENT_NAME = 23,
    EVENT_COUNTER_VALUE = 30,
    EVENT_DOUBLE_COUNTER_VALUE = 44,
    EVENT_FLOW_IDS = 47,
    INTERNED_CATEGORIES = 1,
    INTERNED_EVENT_NAMES = 2,
    INTERNED_ANNOTATION_NAMES = 3,
    INTERNED_IID = 1,
    INTERNED_NAME = 2,
    ANNOTATION_NAME_IID = 1,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10,
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT_UUID = 5,
    TRACK_COUNTER = 8,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
    COUNTER_UNIT_NAME = 6,
};
enum { SEQUENCE_STARTS = 1, SEQUENCE_NEEDS_NAMES = 2 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum { CLOCK_REALTIME_ID = 1, CLOCK_BOOTTIME_ID = 6 };

/* Tracks are found by a number of their own: what it is, and which. */
#define UUID(what, which) ((uint64_t)(what) << 40 | (uint64_t)(which))
enum { OF_MACHINE = 1, OF_PROCESS, OF_THREAD, OF_LANE, OF_SPAN, OF_COUNTER, OF_SERIES };

typedef enum span_category { SPAN = 1, STEP, EPOCH, RESTORED, COMPLETE, MARK, SAMPLE } span_category;
static const char *const categories[] = {
    [SPAN] = "span", [STEP] = "step", [EPOCH] = "epoch",  [RESTORED] = "restored", [COMPLETE] = "complete",
    [MARK] = "mark", [SAMPLE] = "sample",
};

typedef struct perfetto {
    tare__trace *trace;
    tare__text text; /* packets */
    const tare__emit_sink *sink;
    tare__error *error;
    tare__lanes lanes;
    tare__gauges gauges;
    tare__text packet, event, part, inner, names, scratch; /* messages under way */
    uint8_t *told; /* by name id: bits below */
    size_t told_room;
    tare__intern *counters; /* pid and name: those that have a track */
    uint8_t *series_told;
    size_t series_room;
    uint64_t base_ns; /* of the run's start on the clock of the packets */
    uint64_t lone_spans;
    bool machine_told;
} perfetto;
enum { TOLD_EVENT = 1, TOLD_ANNOTATION = 2 };

static const char *const how_ended[] = {
    [TARE__REPLAY_ENDED] = NULL,
    [TARE__REPLAY_WITH_OUTER] = "left open: closed by the end of a span around it",
    [TARE__REPLAY_END_LOST] = "lost: closed where that was noticed",
    [TARE__REPLAY_STILL_OPEN] = "open at the end: closed there",
    [TARE__REPLAY_UNTIMED] = "not known: too many spans were open",
};

void tare__proto_text(tare__text *message, unsigned field, const char *text, size_t length)
{
    tare__text clean = {0};
    for (size_t at = 0, size; at < length; at += size ? size : 1) {
        uint32_t code;
        size = tare__utf8_decode(text + at, length - at, &code);
        tare__text_append(&clean, size ? text + at : "\xef\xbf\xbd", size ? size : 3);
    }
    tare__proto_message(message, field, &clean);
    tare__text_free(&clean);
}

/* ---- packets --------------------------------------------------------------------------------------- */
static int put_packet(perfetto *to)
{
    tare__proto_number(&to->packet, PACKET_SEQUENCE_ID, 1);
    tare__proto_message(&to->text, TRACE_PACKET, &to->packet);
    tare__text_clear(&to->packet);
    return tare__emit_flush_piece(&to->text, to->sink, to->error);
}

/* Never before the epoch: a file whose clock is not known may have times before its start. */
static uint64_t time_of(const perfetto *to, uint64_t ticks)
{
    int64_t ns = (int64_t)llround(tare__trace_ns(to->trace, ticks));
    return ns < 0 && (uint64_t)-ns > to->base_ns ? 0 : to->base_ns + (uint64_t)ns;
}

/* The event under way becomes a packet, with the names it is the first to use. */
static int put_event(perfetto *to, uint64_t ticks)
{
    tare__proto_number(&to->packet, PACKET_TIMESTAMP, time_of(to, ticks));
    tare__proto_number(&to->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_NAMES);
    if (to->names.length)
        tare__proto_message(&to->packet, PACKET_INTERNED_DATA, &to->names);
    tare__proto_message(&to->packet, PACKET_TRACK_EVENT, &to->event);
    tare__text_clear(&to->names);
    tare__text_clear(&to->event);
    return put_packet(to);
}

static void begin_event(perfetto *to, unsigned type, uint64_t track)
{
    tare__proto_number(&to->event, EVENT_TYPE, type);
    tare__proto_number(&to->event, EVENT_TRACK_UUID, track);
}

static void intern(perfetto *to, unsigned field, uint64_t iid, const char *text, size_t length)
{
    tare__text_clear(&to->inner);
    tare__proto_number(&to->inner, INTERNED_IID, iid);
    tare__proto_text(&to->inner, INTERNED_NAME, text, length);
    tare__proto_message(&to->names, field, &to->inner);
}

/* True: it can be named by its id from here on. */
static bool intern_name(perfetto *to, uint32_t id, uint8_t bit)
{
    size_t before = to->told_room;
    if (!tare__trace_name_at(to->trace, id) || !tare__array_fit(&to->told, &to->told_room, (size_t)id + 1, 1))
        return false;
    memset(to->told + before, 0, to->told_room - before);
    if (to->told[id] & bit)
        return true;
    to->told[id] |= bit;
    tare__text_clear(&to->scratch);
    tare__lanes_name(to->trace, id, &to->scratch);
    intern(to, bit == TOLD_EVENT ? INTERNED_EVENT_NAMES : INTERNED_ANNOTATION_NAMES, id, to->scratch.data,
           to->scratch.length);
    to->text.failed |= to->scratch.failed;
    return true;
}

static void put_name(perfetto *to, tare__text *message, uint32_t id, uint8_t bit)
{
    bool event = bit == TOLD_EVENT;
    if (intern_name(to, id, bit)) {
        tare__proto_number(message, event ? EVENT_NAME_IID : ANNOTATION_NAME_IID, id);
        return;
    }
    tare__text_clear(&to->scratch);
    tare__lanes_name(to->trace, id, &to->scratch);
    tare__proto_text(message, event ? EVENT_NAME : ANNOTATION_NAME, to->scratch.data, to->scratch.length);
}

/* ---- tracks ---------------------------------------------------------------------------------------- */
/* The descriptor in `event` becomes a packet. */
static int put_track(perfetto *to)
{
    tare__proto_message(&to->packet, PACKET_TRACK_DESCRIPTOR, &to->event);
    tare__text_clear(&to->event);
    return put_packet(to);
}

static int put_process_track(perfetto *to, uint64_t uuid, int64_t pid, const tare__text *name)
{
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, PROCESS_PID, (uint64_t)pid);
    tare__proto_text(&to->part, PROCESS_NAME, name->data, name->length);
    tare__proto_number(&to->event, TRACK_UUID, uuid);
    tare__proto_message(&to->event, TRACK_PROCESS, &to->part);
    return put_track(to);
}

static int put_named_track(perfetto *to, uint64_t uuid, uint64_t parent, const tare__text *name)
{
    tare__proto_number(&to->event, TRACK_UUID, uuid);
    if (parent)
        tare__proto_number(&to->event, TRACK_PARENT_UUID, parent);
    tare__proto_text(&to->event, TRACK_NAME, name->data, name->length);
    return put_track(to);
}

/* `unit` may be NULL. */
static int put_counter_track(perfetto *to, uint64_t uuid, uint64_t parent, const tare__text *name, const char *unit)
{
    tare__text_clear(&to->part);
    if (unit)
        tare__proto_bytes(&to->part, COUNTER_UNIT_NAME, unit, strlen(unit));
    tare__proto_message(&to->event, TRACK_COUNTER, &to->part);
    return put_named_track(to, uuid, parent, name);
}

static uint64_t process_uuid(const perfetto *to, uint32_t stream)
{
    return UUID(OF_PROCESS, tare__lanes_pid_of_stream(&to->lanes, stream));
}

static int put_processes(perfetto *to)
{
    size_t n;
    const tare__trace_process *rows = tare__trace_processes(to->trace, &n);
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        int64_t pid = tare__lanes_pid(&to->lanes, &rows[i]);
        tare__text_clear(&to->scratch);
        tare__lanes_process_name(&to->lanes, &rows[i], &to->scratch);
        status = put_process_track(to, UUID(OF_PROCESS, pid), pid, &to->scratch);
    }
    return status;
}

static int put_thread(perfetto *to, uint32_t id)
{
    tare__text_clear(&to->scratch);
    tare__text_clear(&to->part);
    tare__lanes_thread_name(&to->lanes, id, &to->scratch);
    tare__proto_number(&to->part, THREAD_PID, (uint64_t)tare__lanes_pid_of_stream(&to->lanes, id));
    tare__proto_number(&to->part, THREAD_TID, (uint64_t)tare__lanes_tid(&to->lanes, id));
    tare__proto_text(&to->part, THREAD_NAME, to->scratch.data, to->scratch.length);
    tare__proto_number(&to->event, TRACK_UUID, UUID(OF_THREAD, id));
    tare__proto_number(&to->event, TRACK_PARENT_UUID, process_uuid(to, id));
    tare__proto_message(&to->event, TRACK_THREAD, &to->part);
    return put_track(to);
}

static int put_threads(perfetto *to)
{
    size_t n = tare__trace_stream_count(to->trace);
    int status = 0;
    for (size_t i = 0; i < n && !status; i++)
        status = put_thread(to, tare__trace_stream_row(to->trace, i)->id);
    return status;
}

/* Before an event of a stream: one that the file does not tell of gets its tracks here. */
static int at_stream(perfetto *to, uint32_t stream)
{
    if (!tare__lanes_is_stray(&to->lanes, stream))
        return 0;
    int64_t pid = tare__lanes_pid(&to->lanes, NULL);
    tare__text_clear(&to->scratch);
    tare__lanes_process_name(&to->lanes, NULL, &to->scratch);
    int status = put_process_track(to, UUID(OF_PROCESS, pid), pid, &to->scratch);
    return status ? status : put_thread(to, stream);
}

/* ---- annotations ----------------------------------------------------------------------------------- */
static void annotate_text(perfetto *to, const char *name, const char *text)
{
    tare__text_clear(&to->part);
    tare__proto_bytes(&to->part, ANNOTATION_NAME, name, strlen(name));
    tare__proto_bytes(&to->part, ANNOTATION_STRING, text, strlen(text));
    tare__proto_message(&to->event, EVENT_DEBUG_ANNOTATIONS, &to->part);
}

static void annotate_whole(perfetto *to, const char *name, uint64_t value)
{
    tare__text_clear(&to->part);
    tare__proto_bytes(&to->part, ANNOTATION_NAME, name, strlen(name));
    tare__proto_number(&to->part, ANNOTATION_UINT, value);
    tare__proto_message(&to->event, EVENT_DEBUG_ANNOTATIONS, &to->part);
}

static bool is_whole(double value)
{
    return fabs(value) < 1e15 && value == floor(value);
}

static void annotate_numbers(perfetto *to, const tare__attached *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        double sum = list->numbers[i].sum;
        tare__text_clear(&to->part);
        put_name(to, &to->part, list->numbers[i].name, TOLD_ANNOTATION);
        if (is_whole(sum))
            tare__proto_number(&to->part, ANNOTATION_INT, (uint64_t)(int64_t)sum);
        else
            tare__proto_double(&to->part, ANNOTATION_DOUBLE, sum);
        tare__proto_message(&to->event, EVENT_DEBUG_ANNOTATIONS, &to->part);
    }
    if (list->left_out)
        annotate_whole(to, "(numbers left out)", list->left_out);
}

/* ---- nested spans, marks --------------------------------------------------------------------------- */
static span_category category(const perfetto *to, const tare__replay_span *span)
{
    const tare__trace_name *name = tare__trace_name_at(to->trace, span->name);
    if (span->restored)
        return RESTORED;
    return name && name->kind == TARE_KIND_STEP ? STEP : name && name->kind == TARE_KIND_EPOCH ? EPOCH : SPAN;
}

static void begin_named(perfetto *to, unsigned type, uint64_t track, uint32_t name, span_category category)
{
    begin_event(to, type, track);
    tare__proto_number(&to->event, EVENT_CATEGORY_IIDS, category);
    put_name(to, &to->event, name, TOLD_EVENT);
}

static int begin_span(void *context, uint32_t stream, tare__replay_span *span)
{
    perfetto *to = context;
    int status = at_stream(to, stream);
    if (status)
        return status;
    begin_named(to, SLICE_BEGIN, UUID(OF_THREAD, stream), span->name, category(to, span));
    return put_event(to, span->begin);
}

static int end_span(void *context, uint32_t stream, tare__replay_span *span)
{
    perfetto *to = context;
    begin_event(to, SLICE_END, UUID(OF_THREAD, stream));
    if (how_ended[span->how])
        annotate_text(to, "(end)", how_ended[span->how]);
    if (span->own)
        annotate_numbers(to, span->own);
    free(span->own);
    span->own = NULL;
    return put_event(to, span->end);
}

static int take_number(void *context, uint32_t stream, tare__replay_span *innermost, uint32_t name, double value)
{
    const perfetto *to = context;
    (void)stream;
    return innermost ? tare__emit_attach(to->trace, &innermost->own, name, value) : 0;
}

static int put_mark(void *context, uint32_t stream, uint32_t name, uint64_t ticks)
{
    perfetto *to = context;
    int status = at_stream(to, stream);
    if (status)
        return status;
    begin_named(to, INSTANT, UUID(OF_THREAD, stream), name, MARK);
    return put_event(to, ticks);
}

/* ---- counters, samples ----------------------------------------------------------------------------- */
static int put_value(perfetto *to, uint64_t track, uint64_t ticks, double value)
{
    begin_event(to, COUNTER, track);
    if (is_whole(value))
        tare__proto_number(&to->event, EVENT_COUNTER_VALUE, (uint64_t)(int64_t)value);
    else
        tare__proto_double(&to->event, EVENT_DOUBLE_COUNTER_VALUE, value);
    return put_event(to, ticks);
}

static int put_counter(void *context, uint32_t stream, uint32_t name, uint64_t ticks, double value)
{
    perfetto *to = context;
    if (!isfinite(value))
        return 0; /* nothing can be drawn */
    const int64_t key[2] = {tare__lanes_pid_of_stream(&to->lanes, stream), name};
    uint32_t known = tare__intern_count(to->counters);
    uint32_t at = tare__intern_add(to->counters, (const char *)key, sizeof key);
    int status = at == TARE__INTERN_NONE ? TARE_E_MEMORY : 0;
    if (!status)
        status = at_stream(to, stream);
    if (!status && at == known) {
        tare__text_clear(&to->scratch);
        tare__lanes_name(to->trace, name, &to->scratch);
        status = put_counter_track(to, UUID(OF_COUNTER, at), process_uuid(to, stream), &to->scratch, NULL);
    }
    return status ? status : put_value(to, UUID(OF_COUNTER, at), ticks, value);
}

static int put_machine(perfetto *to, uint64_t *parent)
{
    const tare__trace_run *run = tare__trace_run_of(to->trace);
    *parent = UUID(OF_MACHINE, 1);
    if (to->machine_told)
        return 0;
    to->machine_told = true;
    tare__text name = {0};
    tare__text_string(&name, run->host ? run->host : "machine");
    int status = put_named_track(to, *parent, 0, &name);
    tare__text_free(&name);
    return status;
}

/* Where a series is drawn; a process that was only looked at from outside gets its track here. */
static int find_parent(perfetto *to, const tare__trace_series *series, uint64_t *parent)
{
    int64_t pid = tare__gauge_pid(series);
    const tare__trace_process *process = pid ? tare__lanes_process_of_pid(&to->lanes, pid) : NULL;
    *parent = UUID(OF_PROCESS, process ? tare__lanes_pid(&to->lanes, process) : pid);
    if (!pid)
        return put_machine(to, parent);
    if (process || series->subject != TARE__SUBJECT_PROCESS)
        return 0;
    tare__text name = {0};
    tare__text_string(&name, series->label && series->label[0] ? series->label : "process");
    int status = put_process_track(to, *parent, pid, &name);
    tare__text_free(&name);
    return status;
}

static int tell_series(perfetto *to, const tare__trace_series *series)
{
    size_t before = to->series_room;
    if (!tare__array_fit(&to->series_told, &to->series_room, (size_t)series->id + 1, 1))
        return TARE_E_MEMORY;
    memset(to->series_told + before, 0, to->series_room - before);
    if (to->series_told[series->id])
        return 0;
    to->series_told[series->id] = 1;
    uint64_t parent;
    int status = find_parent(to, series, &parent);
    if (status)
        return status;
    tare__text_clear(&to->scratch);
    tare__gauge_name(series, &to->scratch);
    return put_counter_track(to, UUID(OF_SERIES, series->id), parent, &to->scratch, tare__gauge_unit(series));
}

static int put_samples(void *context, uint32_t id, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    perfetto *to = context;
    const tare__trace_series *series = tare__trace_series_at(to->trace, id);
    int status = series ? tell_series(to, series) : 0;
    for (uint32_t i = 0; series && i < n && !status; i++) {
        tare__gauge_point point;
        status = tare__gauge_draw(&to->gauges, to->trace, series, ticks[i], values[i], &point);
        if (status > 0)
            status = put_value(to, UUID(OF_SERIES, id), point.ticks, point.value);
    }
    return status;
}

/* ---- complete spans -------------------------------------------------------------------------------- */
static int put_complete(perfetto *to, uint64_t track, const tare__complete_span *span)
{
    begin_named(to, SLICE_BEGIN, track, span->name, COMPLETE);
    if (span->id)
        annotate_whole(to, "id", span->id);
    if (span->parent)
        annotate_whole(to, "parent", span->parent);
    if (span->flow)
        tare__proto_fixed64(&to->event, EVENT_FLOW_IDS, span->flow);
    int status = put_event(to, span->start);
    if (status)
        return status;
    begin_event(to, SLICE_END, track);
    return put_event(to, span->end > span->start ? span->end : span->start);
}

/* Spans for which no lane is left have a track each; viewers draw those of one name together. */
static int put_completes(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    perfetto *to = context;
    int status = at_stream(to, stream);
    tare__lanes_sort(spans, n);
    for (uint32_t i = 0; i < n && !status; i++) {
        uint32_t lane;
        bool fresh;
        status = tare__lanes_place(&to->lanes, stream, &spans[i], &lane, &fresh);
        if (status)
            return status;
        uint64_t track = lane ? UUID(OF_LANE, lane) : UUID(OF_SPAN, ++to->lone_spans);
        if (fresh || !lane) {
            tare__text_clear(&to->scratch);
            tare__lanes_lane_name(&to->lanes, lane, stream, spans[i].track, &to->scratch);
            status = put_named_track(to, track, process_uuid(to, stream), &to->scratch);
        }
        if (!status)
            status = put_complete(to, track, &spans[i]);
    }
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------- */
static void put_clock(perfetto *to, uint64_t id)
{
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, CLOCK_ID, id);
    tare__proto_number(&to->part, CLOCK_TIMESTAMP, to->base_ns);
    tare__proto_message(&to->inner, SNAPSHOT_CLOCKS, &to->part);
}

/* The first packet: names start anew, categories, and which time of day the timestamps are. */
static int put_head(perfetto *to)
{
    to->base_ns = tare__trace_run_of(to->trace)->start_realtime_ns;
    if (to->base_ns) {
        tare__text_clear(&to->inner);
        put_clock(to, CLOCK_BOOTTIME_ID);
        put_clock(to, CLOCK_REALTIME_ID);
        tare__proto_message(&to->packet, PACKET_CLOCK_SNAPSHOT, &to->inner);
        tare__proto_number(&to->packet, PACKET_TIMESTAMP, to->base_ns);
        int status = put_packet(to);
        if (status)
            return status;
    }
    for (size_t i = 1; i < TARE__COUNT_OF(categories); i++)
        intern(to, INTERNED_CATEGORIES, i, categories[i], strlen(categories[i]));
    tare__proto_number(&to->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_STARTS | SEQUENCE_NEEDS_NAMES);
    tare__proto_message(&to->packet, PACKET_INTERNED_DATA, &to->names);
    tare__text_clear(&to->names);
    return put_packet(to);
}

static int put_all(perfetto *to)
{
    const tare__replay_visitor visitor = {.context = to,
                                          .begin = begin_span,
                                          .end = end_span,
                                          .mark = put_mark,
                                          .counter = put_counter,
                                          .number = take_number,
                                          .complete = put_completes,
                                          .samples = put_samples,
                                          .drop = free};
    int status = tare__trace_prescan(to->trace, to->error);
    if (status)
        return status;
    status = tare__lanes_open(&to->lanes, to->trace);
    if (status)
        return tare__fail(to->error, status, "out of memory");
    status = put_head(to);
    if (!status)
        status = put_processes(to);
    if (!status)
        status = put_threads(to);
    if (!status)
        status = tare__trace_replay(to->trace, &visitor, to->error);
    return status ? status : tare__emit_flush(&to->text, to->sink, to->error);
}

static int emit_perfetto(const tare__emit_input *input, const tare__emit_options *options,
                         const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    perfetto to = {.trace = input->trace, .sink = sink, .error = error, .counters = tare__intern_new()};
    int status = to.counters ? put_all(&to) : tare__fail(error, TARE_E_MEMORY, "out of memory");
    tare__text *const texts[] = {&to.text, &to.packet, &to.event, &to.part, &to.inner, &to.names, &to.scratch};
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++)
        tare__text_free(texts[i]);
    tare__lanes_close(&to.lanes);
    tare__gauges_free(&to.gauges);
    if (to.counters)
        tare__intern_free(to.counters);
    free(to.told);
    free(to.series_told);
    return status;
}

const tare__emitter tare__emit_perfetto = {
    .name = "perfetto",
    .description = "for ui.perfetto.dev and its trace processor: every span as native protocol buffers",
    .needs = TARE__EMIT_CURSOR,
    .emit = emit_perfetto,
};
