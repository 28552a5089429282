/* perfetto_packets: packets, interned names, tracks and who has them.
 * Owned by the calling thread.
 * Must not know what the events add up to. */
#include "perfetto.h"

#include <math.h>
#include <string.h>

static const char *const categories[] = {
    [SPAN] = "span",         [STEP] = "step", [EPOCH] = "epoch",   [RESTORED] = "restored",
    [COMPLETE] = "complete", [MARK] = "mark", [SAMPLE] = "sample",
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

int tare__perfetto_put_event(perfetto *to, uint64_t ticks)
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

void tare__perfetto_begin_event(perfetto *to, unsigned type, uint64_t track)
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

void tare__perfetto_put_name(perfetto *to, tare__text *message, uint32_t id, uint8_t bit)
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

int tare__perfetto_put_process_track(perfetto *to, uint64_t uuid, int64_t pid, const tare__text *name)
{
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, PROCESS_PID, (uint64_t)pid);
    tare__proto_text(&to->part, PROCESS_NAME, name->data, name->length);
    tare__proto_number(&to->event, TRACK_UUID, uuid);
    tare__proto_message(&to->event, TRACK_PROCESS, &to->part);
    return put_track(to);
}

int tare__perfetto_put_named_track(perfetto *to, uint64_t uuid, uint64_t parent, const tare__text *name)
{
    tare__proto_number(&to->event, TRACK_UUID, uuid);
    if (parent)
        tare__proto_number(&to->event, TRACK_PARENT_UUID, parent);
    tare__proto_text(&to->event, TRACK_NAME, name->data, name->length);
    return put_track(to);
}

/* `unit` may be NULL. */
int tare__perfetto_put_counter_track(perfetto *to, uint64_t uuid, uint64_t parent, const tare__text *name,
                                     const char *unit)
{
    tare__text_clear(&to->part);
    if (unit)
        tare__proto_bytes(&to->part, COUNTER_UNIT_NAME, unit, strlen(unit));
    tare__proto_message(&to->event, TRACK_COUNTER, &to->part);
    return tare__perfetto_put_named_track(to, uuid, parent, name);
}

uint64_t tare__perfetto_process_uuid(const perfetto *to, uint32_t stream)
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
        status = tare__perfetto_put_process_track(to, UUID(OF_PROCESS, pid), pid, &to->scratch);
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
    tare__proto_number(&to->event, TRACK_PARENT_UUID, tare__perfetto_process_uuid(to, id));
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

int tare__perfetto_at_stream(perfetto *to, uint32_t stream)
{
    if (!tare__lanes_is_stray(&to->lanes, stream))
        return 0;
    int64_t pid = tare__lanes_pid(&to->lanes, NULL);
    tare__text_clear(&to->scratch);
    tare__lanes_process_name(&to->lanes, NULL, &to->scratch);
    int status = tare__perfetto_put_process_track(to, UUID(OF_PROCESS, pid), pid, &to->scratch);
    return status ? status : put_thread(to, stream);
}

/* ---- annotations ----------------------------------------------------------------------------------- */
void tare__perfetto_annotate_text(perfetto *to, const char *name, const char *text)
{
    tare__text_clear(&to->part);
    tare__proto_bytes(&to->part, ANNOTATION_NAME, name, strlen(name));
    tare__proto_bytes(&to->part, ANNOTATION_STRING, text, strlen(text));
    tare__proto_message(&to->event, EVENT_DEBUG_ANNOTATIONS, &to->part);
}

void tare__perfetto_annotate_whole(perfetto *to, const char *name, uint64_t value)
{
    tare__text_clear(&to->part);
    tare__proto_bytes(&to->part, ANNOTATION_NAME, name, strlen(name));
    tare__proto_number(&to->part, ANNOTATION_UINT, value);
    tare__proto_message(&to->event, EVENT_DEBUG_ANNOTATIONS, &to->part);
}

bool tare__perfetto_is_whole(double value)
{
    return fabs(value) < 1e15 && value == floor(value);
}

/* ---- people and the head ----------------------------------------------------------------------------- */
static void put_clock(perfetto *to, uint64_t id)
{
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, CLOCK_ID, id);
    tare__proto_number(&to->part, CLOCK_TIMESTAMP, to->base_ns);
    tare__proto_message(&to->inner, SNAPSHOT_CLOCKS, &to->part);
}

int tare__perfetto_put_head(perfetto *to)
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

int tare__perfetto_put_people(perfetto *to)
{
    int status = put_processes(to);
    return status ? status : put_threads(to);
}
