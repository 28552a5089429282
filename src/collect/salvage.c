/* salvage: completes the trace of a killed collector from its rings. Nothing is removed, and the rings are
 * not changed; the trace is only appended to, and only if it belongs to this session. Where it can no longer be known
 * that it does, the events go into a new file beside it.
 * One thread. Must not know what the events mean beyond which spans they open and close. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector.h"

#define IDS_MAX (1u << 20)       /* as many as a reader accepts */
#define ID_GAP_MAX (1u << 16)    /* names between two existing ones */
#define SAME_BOOT_NS 10000000000 /* maximum difference of two clocks that both kept running */

typedef struct old_stream {
    uint32_t id, process, number;
    uint64_t position, last_ticks;
    uint64_t dropped_spans, dropped_others, skipped;
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
    uint32_t used_names;   /* name ids used by events are below this, whether their names are present or lost */
    bool has_run, is_ours; /* a RUN block; of this session */
    bool is_new;           /* a file beside the trace, which is damaged */
    bool failed;           /* out of memory: the content of the file is unknown, and nothing may be added */
    bool ended;            /* an END block; `salvaged`: of an earlier salvage */
    bool salvaged;
    uint64_t left_running, unread; /* as given in that block */
} salvaging;

static old_stream *stream_of(salvaging *state, uint32_t id)
{
    for (uint32_t i = state->stream_count; i > 0; i--)
        if (state->streams[i - 1].id == id)
            return &state->streams[i - 1];
    if (id == 0 || id > IDS_MAX)
        return NULL;
    if (!tare__array_fit(&state->streams, &state->stream_room, state->stream_count + 1, sizeof *state->streams)) {
        state->failed = true;
        return NULL;
    }
    old_stream *fresh = &state->streams[state->stream_count++];
    *fresh = (old_stream){.id = id};
    return fresh;
}

static void note_ticks(tare__collector *collector, uint64_t ticks)
{
    if (ticks > collector->last_ticks)
        collector->last_ticks = ticks;
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
        if (tag == TARE__FIELD_DROPPED_SPANS)
            stream->dropped_spans = tare__field_value(data, bytes);
        if (tag == TARE__FIELD_DROPPED_OTHERS)
            stream->dropped_others = tare__field_value(data, bytes);
        if (tag == TARE__FIELD_SKIPPED_SLOTS)
            stream->skipped = tare__field_value(data, bytes);
    }
    if (stream && header->stream > state->collector->stream_count)
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
    if (!joined || process.number > IDS_MAX)
        return;
    if (!tare__array_fit(&state->processes, &state->process_room, state->process_count + 1, sizeof *state->processes)) {
        state->failed = true;
        return;
    }
    state->processes[state->process_count++] = process;
    if (process.number > state->collector->joined)
        state->collector->joined = process.number;
}

/* Names keep their ids in the file: those of a damaged block leave a gap that must not be reused. */
static bool keep_numbers(tare__collector *collector, uint32_t below)
{
    uint32_t count = tare__intern_count(collector->names);
    if (below > IDS_MAX || (below > count && below - count > ID_GAP_MAX))
        return false;
    while (tare__intern_count(collector->names) + 1 < below) {
        char lost[40];
        int length = snprintf(lost, sizeof lost, "(name %u lost)", tare__intern_count(collector->names) + 1);
        if (!tare__file_name_add(collector, TARE_KIND_SPAN, 0, lost, (size_t)length, "", 0))
            return false;
    }
    return true;
}

static void take_name(void *context, const tare__file_name *name)
{
    tare__collector *collector = context;
    uint32_t count = tare__intern_count(collector->names);
    if (name->id == 0 || !keep_numbers(collector, name->id))
        return;
    uint32_t id = tare__file_name_add(collector, name->kind, name->line, name->text, name->text_bytes, name->file,
                                      name->file_bytes);
    if (id > name->id && name->id <= count) /* repeated, after a gap was filled in its place */
        collector->all_names[name->id - 1] = (tare__file_name){
            .id = name->id, .kind = name->kind, .line = name->line, .text = collector->all_names[id - 1].text,
            .text_bytes = name->text_bytes, .file = collector->all_names[id - 1].file,
            .file_bytes = name->file_bytes};
}

static void take_run(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    uint32_t tag;
    const uint8_t *data;
    size_t bytes;
    state->has_run = true;
    while (tare__field_next(&reader, &tag, &data, &bytes))
        if (tag == TARE__FIELD_SESSION_ID)
            state->is_ours = bytes == TARE__ID_BYTES &&
                             memcmp(data, state->collector->folder.page->id, TARE__ID_BYTES) == 0;
}

static void take_end(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    tare__reader reader = {payload, payload + header->payload_bytes, false};
    uint32_t tag;
    const uint8_t *data;
    size_t bytes;
    tare__text *kept = &state->collector->ended; /* that of the collector itself is kept */
    state->ended = true;
    state->salvaged = false;
    state->left_running = state->unread = 0;
    tare__text_clear(kept);
    while (tare__field_next(&reader, &tag, &data, &bytes)) {
        if (tag == TARE__FIELD_SALVAGED)
            state->salvaged = true;
        if (tag == TARE__FIELD_LEFT_RUNNING)
            state->left_running = tare__field_value(data, bytes);
        if (tag == TARE__FIELD_UNREAD_RINGS)
            state->unread = tare__field_value(data, bytes);
        else if (tag == TARE__FIELD_END_REALTIME)
            state->collector->ended_realtime = tare__field_value(data, bytes);
        else if (tag == TARE__FIELD_END_TICKS)
            state->collector->ended_ticks = tare__field_value(data, bytes);
        else
            tare__field_bytes(kept, tag, data, bytes);
    }
    note_ticks(state->collector, state->collector->ended_ticks);
    if (state->salvaged)
        tare__text_clear(kept);
}

static void take_syncs(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    tare__collector *collector = state->collector;
    tare__clock_sync syncs[64];
    uint32_t n = 0;
    if (header->count > TARE__COUNT_OF(syncs) ||
        tare__clock_read(header, payload, syncs, TARE__COUNT_OF(syncs), &n) != 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        if (!collector->first_sync.ticks)
            collector->first_sync = syncs[i];
        if (syncs[i].ticks > collector->last_sync.ticks)
            collector->last_sync = syncs[i];
        note_ticks(collector, syncs[i].ticks);
    }
}

static void note_name(salvaging *state, uint32_t name)
{
    if (name != TARE__NAME_LOST && name >= state->used_names)
        state->used_names = name + 1;
}

/* Spans open after a block: the same rules as in the reader. */
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
        note_name(state, event.name);
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
    if (header->last_ticks > stream->last_ticks)
        stream->last_ticks = header->last_ticks;
    if (header->position > stream->position)
        stream->position = header->position;
}

static void take_complete(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    old_stream *stream = stream_of(state, header->stream);
    tare__complete_span *spans = state->collector->complete;
    if (stream && header->position > stream->position)
        stream->position = header->position;
    if (tare__complete_read(header, payload, state->collector->squeezer, spans) != 0)
        return;
    for (uint32_t i = 0; i < header->count; i++) {
        note_name(state, spans[i].name);
        note_name(state, spans[i].track);
    }
}

static void take_facts(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    old_stream *stream = stream_of(state, header->stream);
    tare__fact *facts = state->collector->facts;
    if (stream && header->position > stream->position)
        stream->position = header->position;
    if (tare__facts_read(header, payload, state->collector->squeezer, facts) != 0)
        return;
    for (uint32_t i = 0; i < header->count; i++) {
        note_name(state, facts[i].key);
        note_name(state, facts[i].file);
        note_name(state, facts[i].text);
    }
}

static void take_block(salvaging *state, const tare__block_header *header, const uint8_t *payload)
{
    if (header->kind == TARE__BLOCK_EVENTS || header->kind == TARE__BLOCK_COMPLETE ||
        header->kind == TARE__BLOCK_SAMPLES || header->kind == TARE__BLOCK_FACTS ||
        header->kind == TARE__BLOCK_STACK_SAMPLES)
        note_ticks(state->collector, header->last_ticks);
    switch (header->kind) {
    case TARE__BLOCK_RUN:
        take_run(state, header, payload);
        break;
    case TARE__BLOCK_CLOCK:
        take_syncs(state, header, payload);
        break;
    case TARE__BLOCK_END:
        take_end(state, header, payload);
        break;
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
    case TARE__BLOCK_COMPLETE:
        take_complete(state, header, payload);
        break;
    case TARE__BLOCK_FACTS:
        take_facts(state, header, payload);
        break;
    default:
        break;
    }
}

/* Facts and complete spans without a position are written together with the block that follows them. */
static bool is_first_part(const tare__block_header *header)
{
    return (header->kind == TARE__BLOCK_FACTS || header->kind == TARE__BLOCK_COMPLETE) && header->position == 0;
}

/* Reads the whole trace. Only what the end of the file truncates is removed, a block or the last of several that were
 * written together: its events are still in the rings. */
static int read_trace(salvaging *state, tare__salvaged *result, tare__error *error)
{
    tare__writer *writer = &state->collector->writer;
    tare__blocks walk;
    tare__block_header header;
    int status = tare__blocks_open(&walk, writer->fd);
    if (status)
        return tare__fail(error, status, "%s: %s", writer->path, status == TARE_E_MEMORY ? "out of memory"
                                                                                         : strerror(errno));
    /* The first RUN block identifies the session; a file of another session is not read further. */
    uint64_t first_part = 0, damaged = 0;
    while (tare__blocks_next(&walk, &header) && (!state->has_run || state->is_ours)) {
        if (!is_first_part(&header))
            first_part = 0;
        else if (!first_part)
            first_part = walk.at - sizeof header - header.payload_bytes;
        damaged = walk.damaged_blocks;
        take_block(state, &header, walk.room);
    }
    tare__blocks_close(&walk);
    result->damaged_blocks = walk.damaged_blocks;
    result->damaged_bytes = walk.damaged_bytes;
    writer->bytes = walk.at < walk.size ? walk.at : walk.size;
    if (first_part && damaged == walk.damaged_blocks)
        writer->bytes = first_part;
    if (walk.failure)
        return tare__fail(error, TARE_E_SYSTEM, "%s cannot be read: %s", writer->path, strerror(-walk.failure));
    if (state->failed)
        return tare__fail(error, TARE_E_MEMORY, "%s: out of memory", writer->path);
    if (!state->has_run)
        return tare__fail(error, TARE_E_INPUT, "%s has no session id: nothing is written to it",
                          writer->path);
    if (!state->is_ours)
        return tare__fail(error, TARE_E_INPUT, "%s is not the trace of %s: nothing is written to it",
                          writer->path, state->collector->folder.path);
    return 0;
}

/* Rings continue with the ids they had, if they are known. */
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
        if (!to) {
            state->failed = true;
            continue;
        }
        to->id = from->id;
        to->position = from->position;
        to->last_ticks = from->last_ticks;
        to->ordinal = from->ordinal;
        to->dropped_spans = from->dropped_spans; /* its next block replaces the one that says so */
        to->dropped_others = from->dropped_others;
        to->skipped = from->skipped;
        to->open = from->open;
        memset(&from->open, 0, sizeof from->open);
    }
}

/* A zombie is not running any more: its descriptor is readable. Without a descriptor (none is left, an old kernel) a
 * zombie counts as running, which keeps its events. */
bool tare__process_runs(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return kill(pid, 0) == 0 || errno == EPERM;
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    bool lives = poll(&ended, 1, 0) == 0;
    close(fd);
    return lives;
}

/* A file of this user: by the name stored in the session, or as given by the caller. */
static int open_trace(tare__collector *collector, const char *path, tare__error *error)
{
    tare__writer *writer = &collector->writer;
    struct stat about;
    tare__file_header header, expected;
    tare__file_header_make(&expected);
    size_t got = 0;
    snprintf(writer->path, sizeof writer->path, "%s", path ? path : collector->folder.page->trace);
    writer->fd = open(writer->path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (path ? 0 : O_NOFOLLOW));
    if (writer->fd < 0 || fstat(writer->fd, &about) != 0)
        return tare__fail(error, TARE_E_INPUT,
                          "cannot append to the trace of this session: %s: %s%s", writer->path, strerror(errno),
                          !path && errno == ENOENT ? "; if it was renamed, tare report NEWNAME.tare finishes it" : "");
    if (!S_ISREG(about.st_mode) || about.st_uid != geteuid())
        return tare__fail(error, TARE_E_PERMISSION, "%s belongs to another user: nothing is written to it",
                          writer->path);
    while (flock(writer->fd, LOCK_EX) != 0) /* another command may be using it */
        if (errno != EINTR)
            break;
    if (tare__pread_all(writer->fd, &header, sizeof header, 0, &got) != 0 || got != sizeof header ||
        memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.major != expected.major)
        return tare__fail(error, TARE_E_INPUT, "%s is not a trace that this version of Tare can append to",
                          writer->path);
    return 0;
}

static void salvaging_free(salvaging *state)
{
    for (uint32_t i = 0; i < state->stream_count; i++)
        tare__span_stack_free(&state->streams[i].open);
    free(state->streams);
    free(state->processes);
    tare__events_close(&state->decoder);
}

/* The name of the file beside a trace whose start is damaged: NAME.recovered.tare. */
static bool recovered_name(const char *trace, char out[TARE__PATH_BYTES])
{
    static const char suffix[] = ".tare";
    size_t length = strlen(trace), end = sizeof suffix - 1;
    if (length > end && strcmp(trace + length - end, suffix) == 0)
        length -= end;
    return snprintf(out, TARE__PATH_BYTES, "%.*s.recovered.tare", (int)length, trace) < TARE__PATH_BYTES;
}

static int create_recovered(tare__collector *collector, const char *path, tare__error *error)
{
    const tare__session_page *page = collector->folder.page;
    tare__text *fields = &collector->fields;
    int status = tare__writer_create(&collector->writer, path, false, false, error);
    if (status)
        return status;
    tare__text_clear(fields);
    tare__field_bytes(fields, TARE__FIELD_SESSION_ID, page->id, TARE__ID_BYTES);
    if (atomic_load(&page->sync_count)) {
        tare__field_number(fields, TARE__FIELD_START_REALTIME, page->syncs[0].realtime_ns);
        tare__field_number(fields, TARE__FIELD_START_TICKS, page->syncs[0].ticks);
    }
    tare__field_number(fields, TARE__FIELD_CLOCK_KIND, page->clock);
    tare__field_string(fields, TARE__FIELD_WRITER, "tare " TARE_VERSION);
    tare__field_string(fields, TARE__FIELD_FOLDER, collector->folder.path);
    tare__text_clear(&collector->block);
    tare__fields_seal(TARE__BLOCK_RUN, 0, fields, &collector->block);
    status = tare__writer_append(&collector->writer, &collector->block);
    if (status) {
        tare__fail(error, status, "%s", collector->writer.problem);
        tare__writer_abandon(&collector->writer);
    }
    return status;
}

/* Nothing of what was read from a trace is kept. */
static int start_again(salvaging *state, tare__salvaged *result, tare__error *error)
{
    tare__collector *collector = state->collector;
    tare__folder folder = collector->folder;
    tare__collector_free(collector);
    memset(collector, 0, sizeof *collector);
    collector->folder = folder;
    collector->writer.fd = -1;
    collector->salvaging = true;
    salvaging_free(state);
    *state = (salvaging){.collector = collector};
    memset(result, 0, sizeof *result);
    return tare__collector_open(collector, error);
}

/* Opens and reads the trace. One that no longer says to which session it belongs, or was emptied, is left as it is: the
 * events in memory go into a file beside it. */
static int take_trace(salvaging *state, const char *path, tare__salvaged *result, tare__error *error)
{
    tare__collector *collector = state->collector;
    char beside[TARE__PATH_BYTES];
    struct stat about;
    int status = open_trace(collector, path, error);
    bool is_trace = status == 0 || (collector->writer.fd >= 0 && fstat(collector->writer.fd, &about) == 0 &&
                                    about.st_size == 0);
    if (status == 0)
        status = read_trace(state, result, error);
    bool unknown = status == TARE_E_INPUT && !path && is_trace && !state->has_run;
    if (!unknown || !recovered_name(collector->folder.page->trace, beside))
        return status;
    status = start_again(state, result, error);
    state->is_new = true;
    if (status == 0 && lstat(beside, &about) != 0)
        status = create_recovered(collector, beside, error);
    tare__writer_close(&collector->writer);
    if (status)
        return status;
    status = open_trace(collector, beside, error);
    return status ? status : read_trace(state, result, error);
}

/* The length of a tick requires two syncs: those of the session page, if the file lost them; a current one, if there
 * was no second and the machine was not rebooted since. */
static void save_syncs(tare__collector *collector)
{
    tare__session_page *page = collector->folder.page;
    uint32_t n = atomic_load(&page->sync_count);
    for (uint32_t i = 0; i < n && i < TARE__SESSION_SYNCS; i++) {
        const tare__clock_sync *sync = &page->syncs[i];
        if (sync->ticks > collector->last_sync.ticks && sync->monotonic_ns > collector->last_sync.monotonic_ns) {
            collector->last_sync = *sync;
            if (!collector->first_sync.ticks)
                collector->first_sync = *sync;
            note_ticks(collector, sync->ticks);
            tare__collector_write_sync(collector, sync);
        }
    }
    tare__clock_sync now, first = collector->first_sync;
    if (!first.ticks || collector->last_sync.ticks > first.ticks)
        return;
    tare__folder_sync(&collector->folder, &now);
    int64_t apart = (int64_t)(now.realtime_ns - first.realtime_ns) - (int64_t)(now.monotonic_ns - first.monotonic_ns);
    if (now.ticks > first.ticks && now.monotonic_ns > first.monotonic_ns && apart < SAME_BOOT_NS &&
        apart > -SAME_BOOT_NS) {
        collector->last_sync = now;
        tare__collector_write_sync(collector, &now);
    }
}

static void save(salvaging *state, tare__salvaged *result)
{
    tare__collector *collector = state->collector;
    uint64_t before = collector->writer.bytes;
    /* A truncated block at the end of the file, and space that an earlier writer reserved after it. */
    if (ftruncate(collector->writer.fd, (off_t)collector->writer.bytes) != 0)
        snprintf(collector->writer.problem, sizeof collector->writer.problem, "%.400s: %s", collector->writer.path,
                 strerror(errno));
    keep_numbers(collector, state->used_names);
    collector->new_name_count = 0;
    tare__sources_find(collector);
    for (uint32_t i = 0; i < collector->source_count; i++) {
        take_up(state, collector->sources[i]);
        collector->sources[i]->lives = tare__source_in_use(collector, collector->sources[i]);
        result->alive += collector->sources[i]->lives;
    }
    if (state->failed) {
        snprintf(collector->writer.problem, sizeof collector->writer.problem, "%.400s: out of memory",
                 collector->writer.path);
        return;
    }
    save_syncs(collector);
    tare__collector_finish(collector, -1, 0, result->alive);
    result->spans = collector->writer.spans;
    result->unread_rings = collector->unread_rings + collector->broken_rings;
    /* If not everything could be written, the next attempt must find an unfinished file. If a repeated attempt could
     * still not read a ring, the file is not changed. */
    if (collector->writer.problem[0] || (state->ended && state->unread == result->unread_rings && !result->alive &&
                                         !collector->writer.last_block))
        tare__writer_cut(&collector->writer, before);
}

/* A copy may be deleted later: only the trace that the session names allows the session to be removed. */
static bool is_named(const salvaging *state)
{
    const tare__collector *collector = state->collector;
    struct stat open_file, named;
    return state->is_new ||
           (fstat(collector->writer.fd, &open_file) == 0 && lstat(collector->folder.page->trace, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino);
}

int tare__salvage(const char *folder, const char *trace, tare__salvaged *result, tare__error *error)
{
    static tare__collector collector;
    memset(&collector, 0, sizeof collector);
    memset(result, 0, sizeof *result);
    collector.writer.fd = -1;
    collector.salvaging = true;
    salvaging state = {.collector = &collector};
    int status = tare__folder_take(&collector.folder, folder, error);
    if (status == TARE_E_BUSY) {
        snprintf(result->trace, sizeof result->trace, "%s", trace ? trace : collector.folder.page->trace);
        result->still_recording = true;
        tare__folder_close(&collector.folder);
        return 0;
    }
    if (status == 0)
        status = tare__collector_open(&collector, error);
    if (status == 0)
        status = take_trace(&state, trace, result, error);
    if (status == 0 && collector.ended.failed)
        status = tare__fail(error, TARE_E_MEMORY, "out of memory");
    if (status == 0) {
        snprintf(result->trace, sizeof result->trace, "%s", collector.writer.path);
        result->killed = collector.ended.length == 0;
        result->finished = state.ended && !state.unread && !(state.salvaged && state.left_running);
    }
    if (status == 0 && !result->finished) {
        save(&state, result);
        if (collector.writer.problem[0])
            status = tare__fail(error, TARE_E_SPACE, "%s", collector.writer.problem);
    }
    if (status == 0 && !result->alive && !result->unread_rings && !result->damaged_blocks && is_named(&state))
        result->noted = tare__mark_saved(&collector.folder, collector.writer.fd, collector.writer.path);
    salvaging_free(&state);
    tare__folder_close(&collector.folder);
    tare__collector_free(&collector);
    return status;
}
