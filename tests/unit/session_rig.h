/* session_rig: a session inside one process, for tests of the recorder and the collector: this process
 * records, and the collector's own functions drain it, in the same thread or in another.
 * Reads the trace back with the codec. */
#ifndef TARE_TEST_SESSION_RIG_H
#define TARE_TEST_SESSION_RIG_H

#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "collect/collector.h"

typedef struct rig {
    tare__collector collector;
    pthread_t thread;
    _Atomic int stop;
    char path[64];
} rig;

typedef struct rig_totals {
    uint64_t begins, ends, nexts, marks, counters, numbers, complete, facts, lost_ends, unmatched;
    uint64_t aggregate_calls, aggregate_timed;
    uint64_t dropped_spans, dropped_others, unattributed_spans, skipped_slots;
    uint32_t streams, deepest, left_open;
    double value_sum;
    bool times_retreat;
} rig_totals;

static inline void rig_open(rig *rig, uint64_t pool_bytes)
{
    memset(rig, 0, sizeof *rig);
    tare__error error = {""};
    rig->collector.writer.fd = -1;
    strcpy(rig->path, "/tmp/tare-rig-XXXXXX");
    int fd = mkstemp(rig->path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(tare__collector_open(&rig->collector, &error), 0);
    assert_int_equal(tare__writer_create(&rig->collector.writer, rig->path, true, false, &error), 0);
    assert_int_equal(tare__writer_settle(&rig->collector.writer), 0);
    assert_int_equal(tare__folder_create(&rig->collector.folder, pool_bytes, &error), 0);
    char *command[] = {(char *)(uintptr_t) "test", NULL};
    tare__run_about about = {.command = command};
    assert_int_equal(tare__collector_head(&rig->collector, &about), 0);
    assert_int_equal(tare__session_attach(rig->collector.folder.path), 0);
}

static void *rig_drain(void *argument)
{
    rig *rig = argument;
    while (!atomic_load(&rig->stop)) {
        tare__collector_tick(&rig->collector);
        usleep(1000);
    }
    return NULL;
}

static inline void rig_start_draining(rig *rig)
{
    assert_int_equal(pthread_create(&rig->thread, NULL, rig_drain, rig), 0);
}

static inline void rig_stop_draining(rig *rig)
{
    atomic_store(&rig->stop, 1);
    pthread_join(rig->thread, NULL);
}

typedef struct rig_stream {
    tare__span_stack open;
    uint64_t calls, timed; /* of aggregates */
    uint64_t last;
    uint64_t dropped_spans, dropped_others, skipped_slots;
} rig_stream;

static void rig_cell(void *context, const tare__aggregate *cell)
{
    rig_stream *stream = context;
    stream->calls += cell->count;
    stream->timed += cell->timed;
}

static inline void rig_events(rig_totals *totals, rig_stream *stream, tare__squeezer *squeezer,
                              const tare__block_header *header, const uint8_t *payload)
{
    tare__events_decoder decoder = {0};
    assert_int_equal(tare__events_open(&decoder, squeezer, header, payload), 0);
    totals->times_retreat |= header->first_ticks < stream->last;
    stream->last = header->last_ticks;
    tare__event event = {0};
    tare__span_stack *open = &stream->open;
    while (tare__events_next(&decoder, &event)) {
        switch (event.op) {
        case TARE__OP_NEXT:
            totals->nexts++;
            open->depth -= open->depth > 0;
            tare__span_stack_push(open, event.name, event.ticks);
            break;
        case TARE__OP_BEGIN:
            totals->begins++;
            tare__span_stack_push(open, event.name, event.ticks);
            break;
        case TARE__OP_END:
            totals->ends++;
            totals->unmatched += open->depth == 0;
            open->depth -= open->depth > 0;
            break;
        case TARE__OP_END_OF: {
            uint32_t closed = tare__span_stack_find(open, event.name);
            totals->ends += closed > 0;
            totals->unmatched += closed != 1;
            open->depth -= closed;
            break;
        }
        case TARE__OP_MARK: totals->marks++; break;
        case TARE__OP_COUNTER: totals->counters++; totals->value_sum += event.value; break;
        case TARE__OP_NUMBER: totals->numbers++; totals->value_sum += event.value; break;
        default:
            totals->lost_ends += (uint64_t)event.value;
            assert_true(event.value <= open->depth);
            open->depth -= (uint32_t)event.value;
            break;
        }
        if (open->depth > totals->deepest)
            totals->deepest = open->depth;
    }
    tare__events_close(&decoder);
}

static inline void rig_stream_fields(rig_stream *stream, const tare__block_header *header, const uint8_t *payload)
{
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    uint32_t tag;
    const uint8_t *data;
    size_t bytes;
    /* A later block replaces an earlier one. */
    stream->dropped_spans = stream->dropped_others = stream->skipped_slots = 0;
    while (tare__field_next(&reader, &tag, &data, &bytes)) {
        if (tag == TARE__FIELD_DROPPED_SPANS)
            stream->dropped_spans = tare__field_value(data, bytes);
        if (tag == TARE__FIELD_DROPPED_OTHERS)
            stream->dropped_others = tare__field_value(data, bytes);
        if (tag == TARE__FIELD_SKIPPED_SLOTS)
            stream->skipped_slots = tare__field_value(data, bytes);
    }
}

/* Reads the trace; it must be whole. */
static inline rig_totals rig_read(const char *path)
{
    static rig_stream streams[8192];
    rig_totals totals = {0};
    memset(streams, 0, sizeof streams);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, sizeof(tare__file_header), SEEK_SET), 0);
    tare__squeezer *squeezer = tare__squeezer_new();
    uint8_t *payload = malloc(TARE__BLOCK_PAYLOAD_MAX);
    tare__block_header header;
    bool ended = false;
    while (fread(&header, sizeof header, 1, file) == 1) {
        assert_null(tare__block_header_check(&header));
        assert_true(header.payload_bytes == 0 || fread(payload, header.payload_bytes, 1, file) == 1);
        assert_int_equal(tare__crc32c(0, payload, header.payload_bytes), header.payload_crc);
        assert_true(header.stream < 8192);
        rig_stream *stream = &streams[header.stream];
        if (header.kind == TARE__BLOCK_EVENTS)
            rig_events(&totals, stream, squeezer, &header, payload);
        else if (header.kind == TARE__BLOCK_STREAM)
            rig_stream_fields(stream, &header, payload);
        else if (header.kind == TARE__BLOCK_COMPLETE)
            totals.complete += header.count;
        else if (header.kind == TARE__BLOCK_FACTS)
            totals.facts += header.count;
        else if (header.kind == TARE__BLOCK_AGGREGATES) { /* a later one replaces an earlier one */
            stream->calls = stream->timed = 0;
            assert_int_equal(tare__aggregates_read(&header, payload, squeezer, rig_cell, stream), 0);
        }
        if (header.kind == TARE__BLOCK_STREAM && header.stream > totals.streams)
            totals.streams = header.stream;
        ended = header.kind == TARE__BLOCK_END;
    }
    assert_true(ended);
    for (uint32_t i = 0; i < 8192; i++) {
        totals.left_open += streams[i].open.depth;
        totals.dropped_spans += streams[i].dropped_spans;
        totals.dropped_others += streams[i].dropped_others;
        totals.skipped_slots += streams[i].skipped_slots;
        totals.aggregate_calls += streams[i].calls;
        totals.aggregate_timed += streams[i].timed;
        tare__span_stack_free(&streams[i].open);
    }
    fclose(file);
    free(payload);
    tare__squeezer_free(squeezer);
    return totals;
}

/* Ends the session and reads what was written. */
static inline rig_totals rig_close(rig *rig)
{
    tare__session_detach();
    tare__collector_finish(&rig->collector, 0, 0, 0);
    uint64_t unattributed = rig->collector.unattributed_spans;
    tare__writer_close(&rig->collector.writer);
    rig_totals totals = rig_read(rig->path);
    totals.unattributed_spans = unattributed;
    assert_true(tare__folder_remove(&rig->collector.folder));
    tare__collector_free(&rig->collector);
    unlink(rig->path);
    return totals;
}

#endif
