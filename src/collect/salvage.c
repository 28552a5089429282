/* salvage: finishes the trace of a collector that was killed, from the rings it left behind.
 * One thread. The trace is read once to know how far each stream had come, then written on.
 * Must not know what the events mean beyond which spans they open and close. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector.h"

typedef struct old_stream {
    uint32_t id, process, number;
    uint64_t position;
    uint32_t ordinal;
    tare__span_stack open;
} old_stream;

typedef struct old_process {
    uint32_t number;
    uint8_t id[TARE__ID_BYTES];
} old_process;

typedef struct salvaging {
    tare__collector *collector;
    tare__events_decoder decoder;
    old_stream *streams;
    uint32_t stream_count;
    size_t stream_room;
    old_process *processes;
    uint32_t process_count;
    size_t process_room;
} salvaging;

static old_stream *stream_of(salvaging *state, uint32_t id)
{
    for (uint32_t i = state->stream_count; i > 0; i--)
        if (state->streams[i - 1].id == id)
            return &state->streams[i - 1];
    if (!tare__array_fit(&state->streams, &state->stream_room, state->stream_count + 1, sizeof *state->streams))
        return NULL;
    old_stream *fresh = &state->streams[state->stream_count++];
    *fresh = (old_stream){.id = id};
    return fresh;
}

static void take_stream(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    old_stream *stream = stream_of(state, header->stream);
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    uint32_t tag;
    const uint8_t *data;
    size_t bytes;
    while (stream && tare__field_next(&reader, &tag, &data, &bytes)) {
        if (tag == TARE__FIELD_STREAM_PROCESS)
            stream->process = (uint32_t)tare__field_value(data, bytes);
        if (tag == TARE__FIELD_STREAM_NUMBER)
            stream->number = (uint32_t)tare__field_value(data, bytes);
    }
    if (header->stream > state->collector->stream_count)
        state->collector->stream_count = header->stream;
}

static void take_process(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    old_process process = {0};
    bool joined = false;
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    uint32_t tag;
    const uint8_t *data;
    size_t bytes;
    while (tare__field_next(&reader, &tag, &data, &bytes)) {
        if (tag == TARE__FIELD_PROCESS)
            process.number = (uint32_t)tare__field_value(data, bytes);
        if (tag == TARE__FIELD_PROCESS_ID && bytes == TARE__ID_BYTES) {
            memcpy(process.id, data, bytes);
            joined = true;
        }
    }
    if (!joined || !tare__array_fit(&state->processes, &state->process_room, state->process_count + 1,
                                    sizeof *state->processes))
        return;
    state->processes[state->process_count++] = process;
    if (process.number > state->collector->joined)
        state->collector->joined = process.number;
}

static void take_name(void *context, const tare__file_name *name)
{
    tare__collector *collector = context;
    tare__file_name_add(collector, name->kind, name->line, name->text, name->text_bytes, name->file,
                        name->file_bytes);
}

/* What is open after a block: the same rules as the reader's. */
static void take_events(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    old_stream *stream = stream_of(state, header->stream);
    if (!stream || tare__events_open(&state->decoder, state->collector->squeezer, header, payload) != 0)
        return;
    tare__span_stack *open = &stream->open;
    if (header->ordinal != stream->ordinal) {
        open->depth = 0;
        for (uint32_t i = 0; i < state->decoder.open.depth; i++)
            tare__span_stack_push(open, state->decoder.open.spans[i].name, state->decoder.open.spans[i].begin);
    }
    tare__event event = {0};
    while (tare__events_next(&state->decoder, &event)) {
        if (event.op == TARE__OP_END || event.op == TARE__OP_NEXT)
            open->depth -= open->depth > 0;
        else if (event.op == TARE__OP_END_OF)
            open->depth -= tare__span_stack_find(open, event.name);
        else if (event.op == TARE__OP_LOST_ENDS)
            open->depth -= event.value < open->depth ? (uint32_t)event.value : open->depth;
        if (event.op == TARE__OP_BEGIN || event.op == TARE__OP_NEXT)
            tare__span_stack_push(open, event.name, event.ticks);
    }
    stream->ordinal = header->ordinal + 1;
    if (header->position > stream->position)
        stream->position = header->position;
}

static void take_block(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    switch (header->kind) {
    case TARE__BLOCK_NAMES:
        tare__names_read(header, payload, state->collector->squeezer, take_name, state->collector);
        state->collector->new_name_count = 0;
        break;
    case TARE__BLOCK_PROCESS:
        take_process(state, header, payload);
        break;
    case TARE__BLOCK_STREAM:
        take_stream(state, header, payload);
        break;
    case TARE__BLOCK_EVENTS:
        take_events(state, header, payload);
        break;
    case TARE__BLOCK_COMPLETE: {
        old_stream *stream = stream_of(state, header->stream);
        if (stream && header->position > stream->position)
            stream->position = header->position;
        break;
    }
    default:
        break;
    }
}

/* Reads the trace as far as it is whole; what follows is a torn tail and goes. An END block of an earlier
 * salvage goes too: there is more now. */
static int read_trace(salvaging *state, tare__error *error)
{
    tare__writer *writer = &state->collector->writer;
    uint8_t *payload = malloc(TARE__BLOCK_PAYLOAD_MAX);
    if (!payload)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    uint64_t at = sizeof(tare__file_header);
    for (;;) {
        tare__block_header header;
        size_t got = 0;
        if (tare__pread_all(writer->fd, &header, sizeof header, at, &got) != 0 || got != sizeof header ||
            tare__block_header_check(&header))
            break;
        if (tare__pread_all(writer->fd, payload, header.payload_bytes, at + sizeof header, &got) != 0 ||
            got != header.payload_bytes || header.kind == TARE__BLOCK_END)
            break;
        if (tare__crc32c(0, payload, header.payload_bytes) == header.payload_crc)
            take_block(state, &header, payload);
        at += sizeof header + header.payload_bytes;
    }
    free(payload);
    writer->bytes = at;
    if (ftruncate(writer->fd, (off_t)at) != 0)
        return tare__fail(error, TARE_E_SYSTEM, "cannot write %s: %s", writer->path, strerror(errno));
    return 0;
}

/* The rings go on under the numbers they had, where they were known already. */
static void take_up(salvaging *state, tare__source *source)
{
    uint32_t old = 0;
    for (uint32_t i = 0; i < state->process_count; i++)
        if (memcmp(state->processes[i].id, source->ring->id, TARE__ID_BYTES) == 0)
            old = state->processes[i].number;
    source->process = old ? old : ++state->collector->joined;
    if (old == 0)
        return;
    for (uint32_t i = 0; i < state->stream_count; i++) {
        old_stream *from = &state->streams[i];
        if (from->process != old || from->number == 0)
            continue;
        tare__chunk like = {.stream = from->number};
        tare__stream *to = tare__source_stream(state->collector, source, &like);
        if (!to)
            continue;
        to->id = from->id;
        to->position = from->position;
        to->ordinal = from->ordinal;
        to->open = from->open;
        memset(&from->open, 0, sizeof from->open);
    }
}

/* A zombie runs no more: its descriptor is readable. */
static bool process_lives(const tare__source *source)
{
    int fd = (int)syscall(SYS_pidfd_open, source->ring->pid, 0);
    if (fd < 0)
        return errno == EPERM;
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    bool lives = poll(&ended, 1, 0) == 0;
    close(fd);
    return lives;
}

static int open_trace(tare__collector *collector, tare__error *error)
{
    tare__writer *writer = &collector->writer;
    snprintf(writer->path, sizeof writer->path, "%s", collector->folder.page->trace);
    writer->fd = open(writer->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    tare__file_header header, expected;
    tare__file_header_make(&expected);
    size_t got = 0;
    if (writer->fd < 0)
        return tare__fail(error, TARE_E_INPUT,
                          "the trace of this session cannot be written on: %s: %s", writer->path, strerror(errno));
    if (tare__pread_all(writer->fd, &header, sizeof header, 0, &got) != 0 || got != sizeof header ||
        memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.major != expected.major)
        return tare__fail(error, TARE_E_INPUT, "%s is not a trace that this version of Tare writes on",
                          writer->path);
    return 0;
}

int tare__salvage(const char *folder, tare__salvaged *result, tare__error *error)
{
    static tare__collector collector;
    memset(&collector, 0, sizeof collector);
    memset(result, 0, sizeof *result);
    collector.writer.fd = -1;
    collector.salvaging = true;
    salvaging state = {.collector = &collector};
    int status = tare__folder_take(&collector.folder, folder, error);
    if (status == TARE_E_BUSY) {
        memcpy(result->trace, collector.folder.page->trace, sizeof result->trace);
        result->trace[sizeof result->trace - 1] = '\0';
        result->still_recording = true;
        tare__folder_close(&collector.folder);
        return 0;
    }
    if (status == 0)
        status = tare__collector_open(&collector, error);
    if (status == 0)
        status = open_trace(&collector, error);
    if (status == 0)
        status = read_trace(&state, error);
    if (status == 0) {
        snprintf(result->trace, sizeof result->trace, "%s", collector.writer.path);
        tare__sources_find(&collector);
        for (uint32_t i = 0; i < collector.source_count; i++) {
            take_up(&state, collector.sources[i]);
            result->target_alive = result->target_alive || process_lives(collector.sources[i]);
        }
        uint64_t before = collector.writer.spans;
        tare__collector_finish(&collector, -1, 0, 0);
        result->spans = collector.writer.spans - before;
        if (collector.writer.trouble[0])
            status = tare__fail(error, TARE_E_SPACE, "%s", collector.writer.trouble);
        else if (!result->target_alive)
            tare__folder_remove(&collector.folder);
    }
    for (uint32_t i = 0; i < state.stream_count; i++)
        tare__span_stack_free(&state.streams[i].open);
    free(state.streams);
    free(state.processes);
    tare__events_close(&state.decoder);
    tare__folder_close(&collector.folder);
    tare__collector_free(&collector);
    return status;
}
