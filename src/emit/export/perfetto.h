/* perfetto: declarations shared by the files of Perfetto's format: field numbers, state, packets and tracks.
 * Owned by the calling thread; used inside emit only.
 * Must not know what is computed from the events. */
#ifndef TARE_EMIT_PERFETTO_H
#define TARE_EMIT_PERFETTO_H

#include "exporter.h"
#include "proto.h"

/* Field numbers of Perfetto's trace protos, which are guaranteed never to change. */
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

/* ---- packets (perfetto_packets.c): 0, or the sink's refusal -------------------------------------------- */
/* The first packets: the clock of timestamps; a reset of interned names; categories. */
int tare__perfetto_put_head(void *to);
void tare__perfetto_begin_event(perfetto *to, unsigned type, uint64_t track);
int tare__perfetto_put_event(perfetto *to,
                             uint64_t ticks); /* writes the current event, with the names it is the first to use */
void tare__perfetto_put_name(perfetto *to, tare__text *message, uint32_t id, uint8_t bit);
bool tare__perfetto_is_whole(double value);
void tare__perfetto_annotate_text(perfetto *to, const char *name, const char *text);
void tare__perfetto_annotate_whole(perfetto *to, const char *name, uint64_t value);

/* ---- tracks ---------------------------------------------------------------------------------------------- */
int tare__perfetto_put_process(void *to, int64_t pid, const tare__text *name, int64_t order);
int tare__perfetto_put_thread(void *to, const tare__export_place *place, const tare__text *name, int64_t order);
int tare__perfetto_put_named_track(perfetto *to, uint64_t uuid, uint64_t parent, const tare__text *name);
int tare__perfetto_put_counter_track(perfetto *to, uint64_t uuid, uint64_t parent, const tare__text *name,
                                     const char *unit);

#endif
