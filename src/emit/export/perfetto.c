/* perfetto: the native protocol buffers of Perfetto, packet by packet. docs/EXPORT.md.
 * Owned by the calling thread; memory grows with threads, names and open spans, not with the file.
 * Must not know what is computed from the events. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter.h"
#include "proto.h"

/* Field numbers of Perfetto's trace protos, which are guaranteed never to change. */
enum { TRACE_PACKET = 1 };
enum {
    PACKET_CLOCK_SNAPSHOT = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE_ID = 10, PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12, PACKET_SEQUENCE_FLAGS = 13, PACKET_TRACK_DESCRIPTOR = 60
};
enum { SNAPSHOT_CLOCKS = 1 };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum {
    EVENT_CATEGORY_IIDS = 3, EVENT_DEBUG_ANNOTATIONS = 4, EVENT_TYPE = 9, EVENT_NAME_IID = 10, EVENT_TRACK_UUID = 11,
    EVENT_NAME = 23, EVENT_COUNTER_VALUE = 30, EVENT_DOUBLE_COUNTER_VALUE = 44, EVENT_FLOW_IDS = 47
};
enum {
    INTERNED_CATEGORIES = 1, INTERNED_EVENT_NAMES = 2, INTERNED_ANNOTATION_NAMES = 3, INTERNED_IID = 1,
    INTERNED_NAME = 2
};
enum {
    ANNOTATION_NAME_IID = 1, ANNOTATION_UINT = 3, ANNOTATION_INT = 4, ANNOTATION_DOUBLE = 5, ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10
};
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT_UUID = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT_NAME = 6 };
enum { SEQUENCE_STARTS = 1, SEQUENCE_NEEDS_NAMES = 2 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum { CLOCK_REALTIME_ID = 1, CLOCK_BOOTTIME_ID = 6 };

/* A track is identified by its type and a number within that type. */
#define UUID(what, which) ((uint64_t)(what) << 40 | (uint64_t)(which))
enum { OF_PROCESS = 1, OF_THREAD, OF_LANE, OF_SPAN, OF_COUNTER, OF_SERIES };

typedef struct perfetto {
    tare__exporter out;
    tare__text packet, event, part, inner, names; /* messages being built */
    uint8_t *told;                                /* by name id: bits below */
    size_t told_room;
    tare__intern *counters; /* pid and name: those that have a track */
    uint8_t *series_told;
    size_t series_room;
    uint64_t base_ns; /* the run's start on the clock of the packets */
    uint64_t lone_spans;
} perfetto;
enum { TOLD_EVENT = 1, TOLD_ANNOTATION = 2 };

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
    tare__proto_message(&to->out.text, TRACE_PACKET, &to->packet);
    tare__text_clear(&to->packet);
    return tare__export_piece(&to->out);
}

/* Never before the epoch: a file with an unknown clock may have times before its start. */
static uint64_t time_of(const perfetto *to, uint64_t ticks)
{
    int64_t ns = tare__export_ns(&to->out, ticks);
    return ns < 0 && (uint64_t)-ns > to->base_ns ? 0 : to->base_ns + (uint64_t)ns;
}

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

/* True: it can be referred to by its id from here on. */
static bool intern_name(perfetto *to, uint32_t id, uint8_t bit)
{
    if (!tare__trace_name_at(to->out.trace, id) ||
        !tare__array_fit_zeroed(&to->told, &to->told_room, (size_t)id + 1, 1))
        return false;
    if (to->told[id] & bit)
        return true;
    to->told[id] |= bit;
    tare__text_clear(&to->out.scratch);
    tare__lanes_name(to->out.trace, id, &to->out.scratch);
    intern(to, bit == TOLD_EVENT ? INTERNED_EVENT_NAMES : INTERNED_ANNOTATION_NAMES, id, to->out.scratch.data,
           to->out.scratch.length);
    to->out.text.failed |= to->out.scratch.failed;
    return true;
}

static void put_name(perfetto *to, tare__text *message, uint32_t id, uint8_t bit)
{
    bool event = bit == TOLD_EVENT;
    if (intern_name(to, id, bit)) {
        tare__proto_number(message, event ? EVENT_NAME_IID : ANNOTATION_NAME_IID, id);
        return;
    }
    tare__text_clear(&to->out.scratch);
    tare__lanes_name(to->out.trace, id, &to->out.scratch);
    tare__proto_text(message, event ? EVENT_NAME : ANNOTATION_NAME, to->out.scratch.data, to->out.scratch.length);
}

/* ---- tracks ---------------------------------------------------------------------------------------- */
/* Writes the descriptor in `event` as a packet. */
static int put_track(perfetto *to)
{
    tare__proto_message(&to->packet, PACKET_TRACK_DESCRIPTOR, &to->event);
    tare__text_clear(&to->event);
    return put_packet(to);
}

static int put_named_track(perfetto *to, uint64_t uuid, uint64_t parent, const tare__text *name)
{
    tare__proto_number(&to->event, TRACK_UUID, uuid);
    if (parent)
        tare__proto_number(&to->event, TRACK_PARENT_UUID, parent);
    tare__proto_text(&to->event, TRACK_NAME, name->data, name->length);
    to->out.text.failed |= name->failed;
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

static int put_process(void *context, int64_t pid, const tare__text *name, int64_t order)
{
    perfetto *to = context;
    uint64_t uuid = UUID(OF_PROCESS, pid);
    (void)order;
    if (pid == TARE__LANES_MACHINE)
        return put_named_track(to, uuid, 0, name);
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, PROCESS_PID, (uint64_t)pid);
    tare__proto_text(&to->part, PROCESS_NAME, name->data, name->length);
    tare__proto_number(&to->event, TRACK_UUID, uuid);
    tare__proto_message(&to->event, TRACK_PROCESS, &to->part);
    return put_track(to);
}

static int put_thread(void *context, const tare__export_place *place, const tare__text *name, int64_t order)
{
    perfetto *to = context;
    uint64_t process = UUID(OF_PROCESS, place->pid);
    (void)order;
    if (place->lane)
        return put_named_track(to, UUID(OF_LANE, place->lane), process, name);
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, THREAD_PID, (uint64_t)place->pid);
    tare__proto_number(&to->part, THREAD_TID, (uint64_t)place->tid);
    tare__proto_text(&to->part, THREAD_NAME, name->data, name->length);
    tare__proto_number(&to->event, TRACK_UUID, UUID(OF_THREAD, place->stream));
    tare__proto_number(&to->event, TRACK_PARENT_UUID, process);
    tare__proto_message(&to->event, TRACK_THREAD, &to->part);
    return put_track(to);
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

/* ---- the head ----------------------------------------------------------------------------- */
static void put_clock(perfetto *to, uint64_t id)
{
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, CLOCK_ID, id);
    tare__proto_number(&to->part, CLOCK_TIMESTAMP, to->base_ns);
    tare__proto_message(&to->inner, SNAPSHOT_CLOCKS, &to->part);
}

static int put_head(void *context)
{
    perfetto *to = context;
    to->base_ns = tare__trace_run_of(to->out.trace)->start_realtime_ns;
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
    for (uint32_t i = 1; i < TARE__EXPORT_CATEGORIES; i++) {
        const char *word = tare__export_category(i);
        if (word)
            intern(to, INTERNED_CATEGORIES, i, word, strlen(word));
    }
    tare__proto_number(&to->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_STARTS | SEQUENCE_NEEDS_NAMES);
    tare__proto_message(&to->packet, PACKET_INTERNED_DATA, &to->names);
    tare__text_clear(&to->names);
    return put_packet(to);
}

/* ---- nested spans, marks --------------------------------------------------------------------------- */
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
        annotate_whole(to, "(numbers omitted)", list->left_out);
}

static void begin_named(perfetto *to, unsigned type, uint64_t track, uint32_t name, uint32_t category)
{
    begin_event(to, type, track);
    tare__proto_number(&to->event, EVENT_CATEGORY_IIDS, category);
    put_name(to, &to->event, name, TOLD_EVENT);
}

static int begin_span(void *context, const tare__export_span *span)
{
    perfetto *to = context;
    begin_named(to, SLICE_BEGIN, UUID(OF_THREAD, span->place.stream), span->name, span->category);
    return put_event(to, span->begin);
}

static int end_span(void *context, const tare__export_span *span)
{
    perfetto *to = context;
    begin_event(to, SLICE_END, UUID(OF_THREAD, span->place.stream));
    if (span->how)
        annotate_text(to, "(end)", span->how);
    if (span->numbers)
        annotate_numbers(to, span->numbers);
    return put_event(to, span->end);
}

static int put_mark(void *context, const tare__export_place *place, uint32_t name, uint64_t ticks)
{
    perfetto *to = context;
    begin_named(to, INSTANT, UUID(OF_THREAD, place->stream), name, TARE_KIND_MARK);
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

static int put_counter(void *context, const tare__export_place *place, uint32_t name, uint64_t ticks, double value)
{
    perfetto *to = context;
    const int64_t key[2] = {place->pid, name};
    uint32_t known = tare__intern_count(to->counters);
    uint32_t at = tare__intern_add(to->counters, (const char *)key, sizeof key);
    int status = at == TARE__INTERN_NONE ? TARE_E_MEMORY : 0;
    if (!status && at == known) {
        tare__text_clear(&to->out.scratch);
        tare__lanes_name(to->out.trace, name, &to->out.scratch);
        status = put_counter_track(to, UUID(OF_COUNTER, at), UUID(OF_PROCESS, place->pid), &to->out.scratch, NULL);
    }
    return status ? status : put_value(to, UUID(OF_COUNTER, at), ticks, value);
}

static int tell_series(perfetto *to, int64_t pid, const tare__trace_series *series, const tare__text *name)
{
    if (!tare__array_fit_zeroed(&to->series_told, &to->series_room, (size_t)series->id + 1, 1))
        return TARE_E_MEMORY;
    if (to->series_told[series->id])
        return 0;
    to->series_told[series->id] = 1;
    return put_counter_track(to, UUID(OF_SERIES, series->id), UUID(OF_PROCESS, pid), name, tare__gauge_unit(series));
}

static int put_sample(void *context, int64_t pid, const tare__trace_series *series, const tare__text *name,
                      const tare__gauge_point *point)
{
    perfetto *to = context;
    int status = tell_series(to, pid, series, name);
    return status ? status : put_value(to, UUID(OF_SERIES, series->id), point->ticks, point->value);
}

/* ---- complete spans -------------------------------------------------------------------------------- */
/* Spans without a free lane get a track each; viewers merge tracks of the same name. */
static int put_lone_track(perfetto *to, const tare__export_span *span, uint64_t track)
{
    tare__text_clear(&to->out.scratch);
    tare__lanes_lane_name(&to->out.lanes, 0, span->place.stream, span->complete->track, &to->out.scratch);
    return put_named_track(to, track, UUID(OF_PROCESS, span->place.pid), &to->out.scratch);
}

static int put_complete(void *context, const tare__export_span *span)
{
    perfetto *to = context;
    const tare__complete_span *complete = span->complete;
    uint64_t track = span->place.lane ? UUID(OF_LANE, span->place.lane) : UUID(OF_SPAN, ++to->lone_spans);
    int status = span->place.lane ? 0 : put_lone_track(to, span, track);
    if (status)
        return status;
    begin_named(to, SLICE_BEGIN, track, span->name, span->category);
    if (complete->id)
        annotate_whole(to, "id", complete->id);
    if (complete->parent)
        annotate_whole(to, "parent", complete->parent);
    if (complete->flow)
        tare__proto_fixed64(&to->event, EVENT_FLOW_IDS, complete->flow);
    status = put_event(to, span->begin);
    if (status)
        return status;
    begin_event(to, SLICE_END, track);
    return put_event(to, span->end);
}

/* ---- the output ------------------------------------------------------------------------------------ */
static const tare__export_format format = {
    .head = put_head,
    .process = put_process,
    .thread = put_thread,
    .begin = begin_span,
    .end = end_span,
    .complete = put_complete,
    .mark = put_mark,
    .counter = put_counter,
    .sample = put_sample,
};

static int emit_perfetto(const tare__emit_input *input, const tare__emit_options *options,
                         const tare__emit_sink *sink, tare__error *error)
{
    (void)options;
    perfetto to = {.counters = tare__intern_new()};
    int status = to.counters ? tare__export(&to.out, &format, &to, input->trace, sink, error) : tare__no_memory(error);
    tare__text *const texts[] = {&to.packet, &to.event, &to.part, &to.inner, &to.names};
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++)
        tare__text_free(texts[i]);
    if (to.counters)
        tare__intern_free(to.counters);
    free(to.told);
    free(to.series_told);
    return status;
}

const tare__emitter tare__emit_perfetto = {
    .name = "perfetto",
    .needs = TARE__EMIT_CURSOR,
    .emit = emit_perfetto,
};
