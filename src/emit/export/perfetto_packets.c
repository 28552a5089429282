/* perfetto_packets: packets, interned names, tracks, annotations.
 * Owned by the calling thread.
 * Must not know what is computed from the events. */
#include "perfetto.h"

#include <math.h>
#include <string.h>

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

/* True: it can be referred to by its id from here on. */
static bool intern_name(perfetto *to, uint32_t id, uint8_t bit)
{
    size_t before = to->told_room;
    if (!tare__trace_name_at(to->out.trace, id) || !tare__array_fit(&to->told, &to->told_room, (size_t)id + 1, 1))
        return false;
    memset(to->told + before, 0, to->told_room - before);
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

void tare__perfetto_put_name(perfetto *to, tare__text *message, uint32_t id, uint8_t bit)
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

int tare__perfetto_put_named_track(perfetto *to, uint64_t uuid, uint64_t parent, const tare__text *name)
{
    tare__proto_number(&to->event, TRACK_UUID, uuid);
    if (parent)
        tare__proto_number(&to->event, TRACK_PARENT_UUID, parent);
    tare__proto_text(&to->event, TRACK_NAME, name->data, name->length);
    to->out.text.failed |= name->failed;
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

int tare__perfetto_put_process(void *context, int64_t pid, const tare__text *name, int64_t order)
{
    perfetto *to = context;
    uint64_t uuid = UUID(OF_PROCESS, pid);
    (void)order;
    if (pid == TARE__LANES_MACHINE)
        return tare__perfetto_put_named_track(to, uuid, 0, name);
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, PROCESS_PID, (uint64_t)pid);
    tare__proto_text(&to->part, PROCESS_NAME, name->data, name->length);
    tare__proto_number(&to->event, TRACK_UUID, uuid);
    tare__proto_message(&to->event, TRACK_PROCESS, &to->part);
    return put_track(to);
}

int tare__perfetto_put_thread(void *context, const tare__export_place *place, const tare__text *name,
                              int64_t order)
{
    perfetto *to = context;
    uint64_t process = UUID(OF_PROCESS, place->pid);
    (void)order;
    if (place->lane)
        return tare__perfetto_put_named_track(to, UUID(OF_LANE, place->lane), process, name);
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

/* ---- the head ----------------------------------------------------------------------------- */
static void put_clock(perfetto *to, uint64_t id)
{
    tare__text_clear(&to->part);
    tare__proto_number(&to->part, CLOCK_ID, id);
    tare__proto_number(&to->part, CLOCK_TIMESTAMP, to->base_ns);
    tare__proto_message(&to->inner, SNAPSHOT_CLOCKS, &to->part);
}

int tare__perfetto_put_head(void *context)
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
