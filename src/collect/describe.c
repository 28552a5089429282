/* describe: the blocks that describe the event blocks: names, streams, processes.
 * One thread. Must not know rings beyond their headers. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"

/* ---- names ----------------------------------------------------------------------------------------------- */

uint32_t tare__file_name_add(tare__collector *collector, uint32_t kind, uint32_t line, const char *text,
                             size_t text_bytes, const char *file, size_t file_bytes)
{
    char key[TARE__NAME_TEXT_MAX + 4];
    if (text_bytes > TARE__NAME_TEXT_MAX)
        text_bytes = TARE__NAME_TEXT_MAX;
    key[0] = (char)kind;
    memcpy(key + 1, text, text_bytes);
    uint32_t before = tare__intern_count(collector->names);
    if (!tare__array_fit(&collector->all_names, &collector->all_name_room, before + 1, sizeof *collector->all_names))
        return 0;
    uint32_t index = tare__intern_add(collector->names, key, text_bytes + 1);
    if (index == TARE__INTERN_NONE)
        return 0;
    if (index < before)
        return index + 1;
    tare__file_name name = {.id = index + 1, .kind = kind, .line = line, .text_bytes = (uint32_t)text_bytes,
                            .file_bytes = (uint32_t)file_bytes};
    name.text = tare__arena_copy(collector->name_arena, text, text_bytes);
    name.file = tare__arena_copy(collector->name_arena, file ? file : "", file_bytes);
    if (!name.text || !name.file) { /* its number is assigned, so it needs an entry */
        name.text = "(name lost)";
        name.file = "";
        name.text_bytes = (uint32_t)strlen(name.text);
        name.file_bytes = 0;
    }
    collector->all_names[name.id - 1] = name;
    collector->new_name_count++;
    return name.id;
}

uint32_t tare__file_name_of(tare__collector *collector, tare__source *source, uint32_t id)
{
    if (id >= TARE__NAMES_BYTES / TARE__NAME_UNIT)
        id = 0;
    if (TARE__LIKELY(source->name_map[id]))
        return source->name_map[id];
    const char *text = "(name lost)", *file = "";
    uint32_t kind = TARE_KIND_SPAN, line = 0;
    size_t text_bytes = strlen(text), file_bytes = 0;
    uint64_t at = (uint64_t)id * TARE__NAME_UNIT;
    const tare__name *name = (const void *)((const uint8_t *)source->ring + source->names_offset + at);
    if (id && atomic_load_explicit(&name->ready, memory_order_acquire) &&
        at + sizeof *name + name->text_bytes + name->file_bytes <= TARE__NAMES_BYTES) {
        kind = name->kind;
        line = name->line;
        text = name->text;
        text_bytes = name->text_bytes;
        file = name->text + text_bytes;
        file_bytes = name->file_bytes;
    }
    return source->name_map[id] = tare__file_name_add(collector, kind, line, text, text_bytes, file, file_bytes);
}

/* New names are written before the block that uses them. */
void tare__flush_names(tare__collector *collector, tare__text *out)
{
    if (collector->new_name_count == 0)
        return;
    uint32_t count = tare__intern_count(collector->names);
    uint32_t fresh = collector->new_name_count < count ? collector->new_name_count : count;
    tare__names_seal(collector->all_names + (count - fresh), fresh, collector->squeezer, out);
    collector->new_name_count = 0;
}

/* ---- processes and streams --------------------------------------------------------------------------------- */

static void append_fields(tare__collector *collector, tare__block_kind kind, uint32_t key)
{
    tare__text_clear(&collector->block);
    tare__fields_seal(kind, key, &collector->fields, &collector->block);
    tare__writer_append(&collector->writer, &collector->block);
}

static size_t command_bytes(const char *command, size_t room)
{
    size_t at = 0;
    while (at < room && command[at]) {
        at += strnlen(command + at, room - at);
        at += at < room;
    }
    return at;
}

void tare__tell_process(tare__collector *collector, tare__source *source, int exit_status)
{
    tare__text *fields = &collector->fields;
    tare__ring *ring = source->ring;
    tare__text_clear(fields);
    tare__field_number(fields, TARE__FIELD_PROCESS, source->process);
    tare__field_bytes(fields, TARE__FIELD_PROCESS_ID, ring->id, TARE__ID_BYTES);
    tare__field_number(fields, TARE__FIELD_PID, (uint64_t)source->pid);
    tare__field_number(fields, TARE__FIELD_PARENT_PID, (uint64_t)(uint32_t)ring->ppid);
    if (ring->pid != source->pid)
        tare__field_number(fields, TARE__FIELD_INNER_PID, (uint64_t)(uint32_t)ring->pid);
    static const uint8_t none[TARE__ID_BYTES];
    if (memcmp(ring->parent, none, sizeof none) != 0)
        tare__field_bytes(fields, TARE__FIELD_PARENT_ID, ring->parent, TARE__ID_BYTES);
    tare__field_bytes(fields, TARE__FIELD_PROCESS_COMMAND, ring->command,
                      command_bytes(ring->command, sizeof ring->command));
    if (source->rank >= 0)
        tare__field_number(fields, TARE__FIELD_RANK, (uint64_t)source->rank);
    tare__field_number(fields, TARE__FIELD_JOINED_TICKS, ring->joined);
    tare__field_number(fields, TARE__FIELD_COST_PAIR, ring->cost.pair);
    tare__field_number(fields, TARE__FIELD_COST_INNER, ring->cost.inner);
    tare__field_number(fields, TARE__FIELD_COST_NEXT, ring->cost.next);
    tare__field_number(fields, TARE__FIELD_COST_AGGREGATE, ring->cost.aggregate);
    tare__field_some(fields, TARE__FIELD_LEFT_TICKS, source->left_ticks);
    uint64_t unattributed = atomic_load(&ring->unattributed_spans), others = atomic_load(&ring->unattributed_others);
    tare__field_some(fields, TARE__FIELD_UNATTRIBUTED_SPANS, unattributed);
    tare__field_some(fields, TARE__FIELD_UNATTRIBUTED_OTHERS, others);
    tare__field_some(fields, TARE__FIELD_NAMES_REFUSED, atomic_load(&ring->names_refused));
    if (source->reason[0])
        tare__field_string(fields, TARE__FIELD_UNREADABLE, source->reason);
    tare__tell_imports(collector, source->pid, fields);
    if (exit_status >= 0)
        tare__field_number(fields, TARE__FIELD_EXIT_STATUS, (uint64_t)exit_status);
    append_fields(collector, TARE__BLOCK_PROCESS, source->process);
}

void tare__tell_stream(tare__collector *collector, tare__source *source, tare__stream *stream)
{
    if (stream->told)
        return;
    tare__text *fields = &collector->fields;
    tare__text_clear(fields);
    tare__field_number(fields, TARE__FIELD_STREAM, stream->id);
    tare__field_number(fields, TARE__FIELD_STREAM_PROCESS, source->process);
    tare__field_number(fields, TARE__FIELD_STREAM_NUMBER, stream->number);
    tare__field_number(fields, TARE__FIELD_TID, (uint64_t)(uint32_t)stream->tid);
    tare__field_bytes(fields, TARE__FIELD_THREAD_NAME, stream->name, strnlen(stream->name, sizeof stream->name));
    tare__field_some(fields, TARE__FIELD_DROPPED_SPANS, stream->dropped_spans);
    tare__field_some(fields, TARE__FIELD_DROPPED_OTHERS, stream->dropped_others);
    tare__field_some(fields, TARE__FIELD_SKIPPED_SLOTS, stream->skipped);
    append_fields(collector, TARE__BLOCK_STREAM, stream->id);
    stream->told = true;
}
