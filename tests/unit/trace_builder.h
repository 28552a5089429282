/* trace_builder: makes trace files in memory for tests, block by block, with the real codec.
 * Owned by the test's one thread. Any failure to build ends the test.
 * Must not know how traces are read. */
#ifndef TARE_TEST_TRACE_BUILDER_H
#define TARE_TEST_TRACE_BUILDER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/format.h"
#include "tare.h"

#define BUILDER_STREAMS 8

typedef struct builder_stream {
    tare__span_stack open;   /* now */
    tare__span_stack before; /* when the block under way began */
    uint32_t ordinal;
} builder_stream;

typedef struct builder {
    tare__text file;
    tare__squeezer *squeezer;
    tare__events_encoder *events;
    tare__samples *samples;
    tare__stacks *stacks;
    builder_stream streams[BUILDER_STREAMS];
    uint32_t stream; /* events go to this one */
    tare__text fields;
    char path[64];
    int fd;
} builder;

static inline void builder_check(int status)
{
    if (status) {
        fprintf(stderr, "the test could not build its trace: %d\n", status);
        exit(99);
    }
}

static inline builder *builder_new(void)
{
    builder *made = calloc(1, sizeof *made);
    made->squeezer = tare__squeezer_new();
    made->events = tare__events_encoder_new();
    made->samples = tare__samples_new();
    made->stacks = tare__stacks_new();
    made->stream = 1;
    made->fd = -1;
    tare__file_header header;
    tare__file_header_make(&header);
    tare__text_append(&made->file, (const char *)&header, sizeof header);
    return made;
}

static inline void builder_free(builder *builder)
{
    for (int i = 0; i < BUILDER_STREAMS; i++) {
        tare__span_stack_free(&builder->streams[i].open);
        tare__span_stack_free(&builder->streams[i].before);
    }
    if (builder->fd >= 0)
        close(builder->fd);
    tare__text_free(&builder->file);
    tare__text_free(&builder->fields);
    tare__squeezer_free(builder->squeezer);
    tare__events_encoder_free(builder->events);
    tare__samples_free(builder->samples);
    tare__stacks_free(builder->stacks);
    free(builder);
}

/* ---- blocks that are fields: begin, add fields, seal --------------------------------------------- */
static inline void build_number(builder *builder, tare__field tag, uint64_t value)
{
    tare__field_number(&builder->fields, tag, value);
}

static inline void build_string(builder *builder, tare__field tag, const char *text)
{
    tare__field_string(&builder->fields, tag, text);
}

static inline void build_fields(builder *builder, tare__block_kind kind, uint32_t stream)
{
    builder_check(tare__fields_seal(kind, stream, &builder->fields, &builder->file));
    tare__text_clear(&builder->fields);
}

/* A run whose tick is half a nanosecond: starts at tick 1,000. */
#define BUILD_START UINT64_C(1000)
static inline void build_run(builder *builder)
{
    static const char command[] = "train\0--size\0two words";
    tare__field_bytes(&builder->fields, TARE__FIELD_COMMAND, command, sizeof command);
    build_string(builder, TARE__FIELD_HOST, "host");
    build_string(builder, TARE__FIELD_WRITER, "tare 0.1.0");
    build_number(builder, TARE__FIELD_START_REALTIME, UINT64_C(1700000000000000000));
    build_number(builder, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_TSC);
    build_number(builder, TARE__FIELD_START_TICKS, BUILD_START);
    build_number(builder, TARE__FIELD_CPUS, 2);
    build_fields(builder, TARE__BLOCK_RUN, 0);
}

static inline void build_syncs(builder *builder, const tare__clock_sync *syncs, uint32_t n)
{
    builder_check(tare__clock_seal(syncs, n, &builder->file));
}

static inline void build_clock(builder *builder)
{
    const tare__clock_sync syncs[] = {{1000, 5000, 9000}, {2001000, 1005000, 1009000}};
    build_syncs(builder, syncs, 2);
}

static inline void build_process_fields(builder *builder, uint32_t number, int pid)
{
    uint8_t id[TARE__ID_BYTES] = {(uint8_t)number, 1};
    build_number(builder, TARE__FIELD_PROCESS, number);
    tare__field_bytes(&builder->fields, TARE__FIELD_PROCESS_ID, id, sizeof id);
    build_number(builder, TARE__FIELD_PID, (uint64_t)pid);
}

static inline void build_process(builder *builder, uint32_t number, int pid)
{
    build_process_fields(builder, number, pid);
    build_fields(builder, TARE__BLOCK_PROCESS, 0);
}

static inline void build_stream(builder *builder, uint32_t id, uint32_t process, int tid, const char *name)
{
    build_number(builder, TARE__FIELD_STREAM, id);
    build_number(builder, TARE__FIELD_STREAM_PROCESS, process);
    build_number(builder, TARE__FIELD_TID, (uint64_t)tid);
    build_string(builder, TARE__FIELD_THREAD_NAME, name);
    build_fields(builder, TARE__BLOCK_STREAM, id);
}

static inline void build_end(builder *builder, uint64_t ticks)
{
    build_number(builder, TARE__FIELD_END_TICKS, ticks);
    build_number(builder, TARE__FIELD_STATUS, 0);
    build_fields(builder, TARE__BLOCK_END, 0);
}

static inline void build_name(builder *builder, uint32_t id, uint32_t kind, const char *text)
{
    tare__file_name name = {.id = id,
                            .kind = kind,
                            .line = 10 + id,
                            .text = text,
                            .file = "train.c",
                            .text_bytes = (uint32_t)strlen(text),
                            .file_bytes = 7};
    builder_check(tare__names_seal(&name, 1, builder->squeezer, &builder->file));
}

/* ---- events -------------------------------------------------------------------------------------- */
static inline void build_event(builder *builder, tare__op op, uint32_t name, uint64_t ticks)
{
    tare__span_stack *open = &builder->streams[builder->stream].open;
    tare__events_add(builder->events, op, name, ticks);
    if (op == TARE__OP_END_OF)
        open->depth -= tare__span_stack_find(open, name);
    if ((op == TARE__OP_END || op == TARE__OP_NEXT) && open->depth)
        open->depth--;
    if (op == TARE__OP_BEGIN || op == TARE__OP_NEXT)
        builder_check(tare__span_stack_push(open, name, ticks));
}

static inline void build_value(builder *builder, tare__op op, uint32_t name, uint64_t ticks, double value)
{
    tare__span_stack *open = &builder->streams[builder->stream].open;
    tare__events_add_value(builder->events, op, name, ticks, value);
    if (op == TARE__OP_LOST_ENDS)
        open->depth -= value < open->depth ? (uint32_t)value : open->depth;
}

#define BEGIN(name, ticks) build_event(b, TARE__OP_BEGIN, name, ticks)
#define END(ticks) build_event(b, TARE__OP_END, 0, ticks)
#define NEXT(name, ticks) build_event(b, TARE__OP_NEXT, name, ticks)
#define END_OF(name, ticks) build_event(b, TARE__OP_END_OF, name, ticks)
#define MARK(name, ticks) build_event(b, TARE__OP_MARK, name, ticks)
#define NUMBER(name, value) build_value(b, TARE__OP_NUMBER, name, 0, value)
#define COUNTER(name, ticks, value) build_value(b, TARE__OP_COUNTER, name, ticks, value)
#define LOST(n) build_value(b, TARE__OP_LOST_ENDS, 0, 0, n)

/* Ends the block under way; the next one follows it in the same stream. Returns where it begins. */
static inline size_t build_seal(builder *builder)
{
    builder_stream *stream = &builder->streams[builder->stream];
    tare__block_header header = {.stream = builder->stream, .ordinal = stream->ordinal++};
    size_t at = builder->file.length;
    builder_check(tare__events_seal(builder->events, builder->squeezer, &stream->before, &header,
                                    &builder->file));
    tare__events_reset(builder->events, 0);
    stream->before.depth = 0;
    for (uint32_t i = 0; i < stream->open.depth; i++)
        builder_check(tare__span_stack_push(&stream->before, stream->open.spans[i].name,
                                            stream->open.spans[i].begin));
    return at;
}

/* Takes the bytes of the block at `at`, the newest one, out of the file again: it is lost. */
static inline void build_lose(builder *builder, size_t at)
{
    builder->file.length = at;
}

/* A block of one fact; its key, file and text are names of kind TARE__NAME_FACT. */
static inline void build_fact(builder *builder, tare__fact fact)
{
    tare__block_header header = {.stream = builder->stream};
    builder_check(tare__facts_seal(&fact, 1, builder->squeezer, &header, &builder->file));
}

/* ---- series and samples -------------------------------------------------------------------------- */
/* A series of one of our metrics; `absent` NULL: it has values. */
static inline void build_series_absent(builder *builder, uint32_t id, tare__metric metric, tare__subject_kind subject,
                                       uint64_t key, uint64_t owner, const char *label, const char *absent)
{
    const tare__metric_about *about = tare__metric_of(metric);
    tare__series series = {.id = id,
                           .unit = about->unit,
                           .kind = about->kind,
                           .subject = subject,
                           .key = key,
                           .owner = owner,
                           .metric = about->name,
                           .metric_bytes = (uint32_t)strlen(about->name),
                           .label = label,
                           .label_bytes = (uint32_t)strlen(label),
                           .absent = absent,
                           .absent_bytes = absent ? (uint32_t)strlen(absent) : 0};
    builder_check(tare__series_seal(&series, 1, builder->squeezer, &builder->file));
}

static inline void build_series(builder *builder, uint32_t id, tare__metric metric, tare__subject_kind subject,
                                uint64_t key, const char *label)
{
    build_series_absent(builder, id, metric, subject, key, 0, label, NULL);
}

/* Values tick by tick: any number of build_tick, each with its build_sample calls, then build_samples_seal. */
static inline void build_tick(builder *builder, uint64_t ticks)
{
    if (tare__samples_tick(builder->samples, ticks))
        return;
    builder_check(tare__samples_seal(builder->samples, builder->squeezer, &builder->file));
    builder_check(!tare__samples_tick(builder->samples, ticks));
}

static inline void build_sample(builder *builder, uint32_t series, int64_t value)
{
    builder_check(!tare__samples_put(builder->samples, series, value));
}

static inline void build_samples_seal(builder *builder)
{
    builder_check(tare__samples_seal(builder->samples, builder->squeezer, &builder->file));
}

/* Values of one series, `step` ticks apart, as a block of their own. */
static inline void build_samples(builder *builder, uint32_t series, uint64_t first, uint64_t step,
                                 const int64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        build_tick(builder, first + i * step);
        build_sample(builder, series, values[i]);
    }
    build_samples_seal(builder);
}

/* ---- sampled stacks ------------------------------------------------------------------------------- */
/* A thread of process 77; its number. */
static inline uint32_t build_thread(builder *builder, int tid, const char *name)
{
    const tare__stack_thread thread = {.pid = 77,
                                       .tid = tid,
                                       .start_time = 4000,
                                       .name = name,
                                       .name_bytes = (uint32_t)strlen(name),
                                       .main = tid == 77};
    return tare__stacks_thread(builder->stacks, &thread);
}

/* A frame of a Python function in train.py, on top of a stack; the number of the new stack. */
static inline uint32_t build_frame(builder *builder, uint32_t caller, const char *name, uint64_t line)
{
    const tare__stack_function function = {.kind = TARE__FRAME_PYTHON,
                                           .first_line = 10,
                                           .name = name,
                                           .name_bytes = (uint32_t)strlen(name),
                                           .file = "train.py",
                                           .file_bytes = 8};
    return tare__stacks_push(builder->stacks, caller, tare__stacks_function(builder->stacks, &function), line);
}

static inline void build_stack_sample(builder *builder, tare__stack_sample sample)
{
    builder_check(!tare__stacks_sample(builder->stacks, &sample));
}

/* What is new since the last call as blocks. Returns where they begin. */
static inline size_t build_stacks_seal(builder *builder)
{
    size_t at = builder->file.length;
    builder_check(tare__stacks_seal(builder->stacks, builder->squeezer, &builder->file));
    return at;
}

/* ---- the file ------------------------------------------------------------------------------------ */
/* Puts bytes where a path leads to them. */
static inline const char *build_bytes(builder *builder, const void *bytes, size_t n)
{
    if (builder->fd < 0)
        builder->fd = memfd_create("trace", MFD_CLOEXEC);
    builder_check(builder->fd < 0 || ftruncate(builder->fd, 0));
    builder_check(tare__pwrite_all(builder->fd, bytes, n, 0));
    snprintf(builder->path, sizeof builder->path, "/proc/self/fd/%d", builder->fd);
    return builder->path;
}

static inline const char *build_file(builder *builder)
{
    return build_bytes(builder, builder->file.data, builder->file.length);
}

#endif
