/* import_write: sorted records of a foreign trace written as the blocks of a .tare file, each thread's spans nested.
 * One thread.
 * Must not know the format they came in. */
#include <stdlib.h>
#include <string.h>

#include "import_inner.h"

/* Writers that round to microseconds may let a span end up to one microsecond after its parent. */
#define ROUNDING_NS   1000u
#define NAMES_AT_ONCE 4096u

typedef struct frame {
    uint64_t begin, end; /* ticks */
    uint32_t name;
    bool function; /* a Python function */
} frame;

typedef struct pen {
    tare__importer *importer;
    tare__writer writer;
    tare__squeezer *squeezer;
    tare__events_encoder *encoder;
    tare__complete_span *complete;
    uint32_t complete_count;
    frame *frames;
    size_t depth, room;
    frame *aside;
    size_t aside_count, aside_room;
    tare__span_stack before; /* open before the block that is being written */
    uint32_t place, stream, ordinal, index_name, flow_name;
    uint32_t processes, streams; /* the last numbers assigned */
    uint64_t rounding;           /* ticks */
    uint64_t last_ticks;
    tare__text block, fields;
    int status;
} pen;

/* In a separate file a tick is a nanosecond; no time is 0, which means "unknown". */
static uint64_t ticks_of(const pen *pen, int64_t ns)
{
    const tare__importer *importer = pen->importer;
    return importer->base ? tare__import_base_ticks(importer, ns) : (uint64_t)(ns - importer->first_ns) + 1;
}

static uint64_t end_of(const pen *pen, const tare__import_record *record)
{
    return ticks_of(pen, record->start + record->duration);
}

static void fail(pen *pen, int status)
{
    if (!pen->status && status)
        pen->status = tare__fail(pen->importer->error, status, "%s",
                                 pen->writer.problem[0] ? pen->writer.problem : "out of memory");
}

static void append(pen *pen)
{
    if (!pen->status)
        fail(pen, tare__writer_append(&pen->writer, &pen->block));
    tare__text_clear(&pen->block);
}

static void append_fields(pen *pen, tare__block_kind kind, uint32_t key)
{
    fail(pen, pen->fields.failed ? TARE_E_MEMORY : tare__fields_seal(kind, key, &pen->fields, &pen->block));
    append(pen);
    tare__text_clear(&pen->fields);
}

/* ---- metadata of the events ---------------------------------------------------------------------------------- */
/* Derived from known data, so that importing twice gives the same file. */
static void make_id(const tare__importer *importer, uint64_t number, uint8_t id[TARE__ID_BYTES])
{
    uint64_t words[2] = {(uint64_t)importer->first_ns ^ (uint64_t)importer->base_ns, number};
    for (unsigned i = 0; i < 2; i++) {
        words[i] += UINT64_C(0x9E3779B97F4A7C15) + words[0];
        words[i] = (words[i] ^ words[i] >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        words[i] = (words[i] ^ words[i] >> 27) * UINT64_C(0x94D049BB133111EB);
    }
    for (const char *at = importer->host; *at; at++)
        words[1] = words[1] * 31 + (unsigned char)*at;
    memcpy(id, words, TARE__ID_BYTES);
}

/* Nanoseconds since 1970 if the trace's times are such; else 0. */
static uint64_t realtime_of(const tare__importer *importer, int64_t ns)
{
    const int64_t earliest = INT64_C(1262304000000000000); /* 2010 */
    int64_t sum;
    if (__builtin_add_overflow(ns, importer->has_base ? importer->base_ns : 0, &sum))
        return 0;
    return sum >= earliest ? (uint64_t)sum : 0;
}

static const tare__import_process *home_process(const tare__importer *importer)
{
    return &importer->processes[importer->places[importer->home].process];
}

static void write_run(pen *pen)
{
    const tare__importer *importer = pen->importer;
    tare__text *fields = &pen->fields;
    uint8_t id[TARE__ID_BYTES];
    make_id(importer, 0, id);
    tare__field_bytes(fields, TARE__FIELD_SESSION_ID, id, sizeof id);
    const char *label = home_process(importer)->label;
    const char *shown = label[0] ? label : importer->options->input_name;
    tare__field_bytes(fields, TARE__FIELD_COMMAND, shown, strlen(shown) + 1);
    if (importer->host[0])
        tare__field_string(fields, TARE__FIELD_HOST, importer->host);
    uint64_t realtime = realtime_of(importer, importer->first_ns);
    tare__field_some(fields, TARE__FIELD_START_REALTIME, realtime);
    tare__field_number(fields, TARE__FIELD_START_TICKS, 1);
    tare__field_number(fields, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_MONOTONIC);
    tare__text writer = {0};
    tare__text_format(&writer, "tare " TARE_VERSION ", imported from %s JSON", importer->report->format);
    tare__field_string(fields, TARE__FIELD_WRITER, writer.failed ? "tare" : writer.data);
    tare__text_free(&writer);
    if (importer->gpus) {
        tare__text gpus = {0};
        tare__text_format(&gpus, "%u x %s", importer->gpus, importer->gpu);
        tare__field_string(fields, TARE__FIELD_GPUS, gpus.failed ? "" : gpus.data);
        tare__text_free(&gpus);
    }
    append_fields(pen, TARE__BLOCK_RUN, 0);
}

static void write_process(pen *pen, tare__import_process *process)
{
    tare__text *fields = &pen->fields;
    uint8_t id[TARE__ID_BYTES];
    pen->importer->report->processes++;
    process->number = pen->importer->base ? tare__import_base_process(pen->importer, process->pid) : 0;
    if (process->number)
        return; /* already in the file */
    process->number = ++pen->processes;
    make_id(pen->importer, process->number + (uint64_t)process->pid * 65536, id);
    tare__field_number(fields, TARE__FIELD_PROCESS, process->number);
    tare__field_bytes(fields, TARE__FIELD_PROCESS_ID, id, sizeof id);
    tare__field_number(fields, TARE__FIELD_PID, (uint64_t)process->pid);
    const char *label = process->label[0] ? process->label : "?";
    tare__field_bytes(fields, TARE__FIELD_PROCESS_COMMAND, label, strlen(label) + 1);
    if (pen->importer->rank >= 0)
        tare__field_number(fields, TARE__FIELD_RANK, (uint64_t)pen->importer->rank);
    tare__field_number(fields, TARE__FIELD_JOINED_TICKS, 1);
    tare__field_number(fields, TARE__FIELD_LEFT_TICKS, ticks_of(pen, pen->importer->last_ns));
    append_fields(pen, TARE__BLOCK_PROCESS, process->number);
}

static void write_stream(pen *pen, tare__import_place *place)
{
    tare__import_process *process = &pen->importer->processes[place->process];
    tare__text *fields = &pen->fields;
    if (!process->number)
        write_process(pen, process);
    place->stream = ++pen->streams;
    pen->importer->report->threads++;
    tare__text label = {0};
    tare__text_format(&label, "%s%s", pen->importer->base ? "torch.profiler: " : "", place->label);
    tare__field_number(fields, TARE__FIELD_STREAM, place->stream);
    tare__field_number(fields, TARE__FIELD_STREAM_PROCESS, process->number);
    tare__field_number(fields, TARE__FIELD_STREAM_NUMBER, place->stream);
    tare__field_number(fields, TARE__FIELD_TID, (uint64_t)place->tid);
    tare__field_string(fields, TARE__FIELD_THREAD_NAME, label.failed ? place->label : label.data);
    tare__text_free(&label);
    append_fields(pen, TARE__BLOCK_STREAM, place->stream);
}

/* GPU work has no thread of its own: it is written to the stream of the thread that launched work, or of any thread. */
static bool find_home(tare__importer *importer)
{
    uint32_t count = tare__intern_count(importer->place_keys);
    for (uint32_t i = 0; i < count && importer->home == TARE__NO_PLACE; i++)
        if (!importer->places[i].track && importer->places[i].records)
            importer->home = i;
    if (importer->home == TARE__NO_PLACE)
        importer->home = tare__import_thread(importer, "0", "0");
    return importer->home != TARE__NO_PLACE;
}

static void write_people(pen *pen)
{
    tare__importer *importer = pen->importer;
    uint32_t count = tare__intern_count(importer->place_keys);
    for (uint32_t i = 0; i < count; i++) {
        tare__import_place *place = &importer->places[i];
        importer->report->tracks += place->track && place->records;
        if (i == importer->home || (!place->track && place->records))
            write_stream(pen, place);
    }
}

static void write_names(pen *pen)
{
    const tare__importer *importer = pen->importer;
    uint32_t count = tare__intern_count(importer->names);
    tare__file_name *names = malloc(NAMES_AT_ONCE * sizeof *names);
    if (!names)
        fail(pen, TARE_E_MEMORY);
    for (uint32_t from = 0; from < count && names; from += NAMES_AT_ONCE) {
        uint32_t n = count - from < NAMES_AT_ONCE ? count - from : NAMES_AT_ONCE;
        for (uint32_t i = 0; i < n; i++) {
            size_t length;
            const char *key = tare__intern_text(importer->names, from + i, &length);
            names[i] = (tare__file_name){.id = importer->names_before + from + i + 1,
                                         .kind = (uint8_t)key[0],
                                         .text = key + 1,
                                         .file = "",
                                         .text_bytes = (uint32_t)length - 1};
        }
        fail(pen, tare__names_seal(names, n, pen->squeezer, &pen->block));
        append(pen);
    }
    free(names);
}

/* ---- blocks of events ---------------------------------------------------------------------------------------- */
static void start_block(pen *pen)
{
    tare__events_reset(pen->encoder, pen->last_ticks);
    pen->before.depth = 0;
    for (size_t i = 0; i < pen->depth && i < TARE__STACK_LISTED; i++)
        if (tare__span_stack_push(&pen->before, pen->frames[i].name, pen->frames[i].begin))
            fail(pen, TARE_E_MEMORY);
    if (pen->depth > TARE__STACK_LISTED)
        pen->before.depth = (uint32_t)pen->depth; /* counted, not listed */
}

static void seal_events(pen *pen)
{
    if (tare__events_count(pen->encoder) == 0)
        return;
    tare__block_header header = {.stream = pen->stream, .ordinal = pen->ordinal++};
    fail(pen, tare__events_seal(pen->encoder, pen->squeezer, &pen->before, &header, &pen->block));
    append(pen);
    start_block(pen);
}

static void seal_complete(pen *pen)
{
    if (pen->complete_count == 0)
        return;
    tare__block_header header = {.stream = pen->stream};
    fail(pen, tare__complete_seal(pen->complete, pen->complete_count, pen->squeezer, &header, &pen->block));
    append(pen);
    pen->complete_count = 0;
}

/* Called before the stack changes: a block lists the spans that were open when it began. */
static void make_room(pen *pen)
{
    if (tare__events_count(pen->encoder) + 2 > TARE__EVENTS_MAX)
        seal_events(pen);
}

static void add_complete(pen *pen, const tare__import_record *record, uint32_t track)
{
    uint64_t start = ticks_of(pen, record->start);
    pen->complete[pen->complete_count++] = (tare__complete_span){.name = record->name,
                                                                 .track = track,
                                                                 .start = start,
                                                                 .end = end_of(pen, record),
                                                                 .flow = track ? record->flow : 0};
    if (pen->complete_count == TARE__EVENTS_MAX)
        seal_complete(pen);
}

/* ---- nesting ------------------------------------------------------------------------------------------------ */
static void close_top(pen *pen, uint64_t ticks)
{
    make_room(pen);
    tare__events_add(pen->encoder, TARE__OP_END, 0, ticks);
    pen->last_ticks = ticks;
    pen->depth--;
}

static void close_until(pen *pen, uint64_t ticks)
{
    while (pen->depth && pen->frames[pen->depth - 1].end <= ticks)
        close_top(pen, pen->frames[pen->depth - 1].end);
}

static void open_span(pen *pen, const tare__import_record *record, uint64_t begin, uint64_t end)
{
    make_room(pen);
    if (!tare__array_fit(&pen->frames, &pen->room, pen->depth + 1, sizeof *pen->frames)) {
        fail(pen, TARE_E_MEMORY);
        return;
    }
    tare__events_add(pen->encoder, TARE__OP_BEGIN, record->name, begin);
    if (record->kind == TARE__IMPORT_INDEXED || record->kind == TARE__IMPORT_FLOWING)
        tare__events_add_value(pen->encoder, TARE__OP_NUMBER,
                               record->kind == TARE__IMPORT_INDEXED ? pen->index_name : pen->flow_name, begin,
                               record->number);
    pen->frames[pen->depth++] = (frame){
        .begin = begin, .end = end, .name = record->name, .function = record->kind == TARE__IMPORT_FUNCTION};
    pen->last_ticks = begin;
}

/* Handles a function that ends inside a span which began inside it: it is ended there and restarted inside. */
static void set_aside(pen *pen, uint64_t ticks)
{
    if (tare__array_fit(&pen->aside, &pen->aside_room, pen->aside_count + 1, sizeof *pen->aside))
        pen->aside[pen->aside_count++] = pen->frames[pen->depth - 1];
    else
        fail(pen, TARE_E_MEMORY);
    close_top(pen, ticks);
    pen->importer->report->cut++;
}

static void begin_again(pen *pen, uint64_t ticks)
{
    while (pen->aside_count) {
        const frame *again = &pen->aside[--pen->aside_count];
        open_span(pen, &(tare__import_record){.name = again->name, .kind = TARE__IMPORT_FUNCTION}, ticks,
                  again->end);
    }
}

/* Ensures that the innermost open span ends no earlier than the new one; false: impossible. Python functions give way
 * to other spans: their ends are recorded slightly late, and a context manager begins and ends in separate
 * functions. */
static bool make_nested(pen *pen, const tare__import_record *record, uint64_t begin, uint64_t *end)
{
    while (pen->depth) {
        const frame *outer = &pen->frames[pen->depth - 1];
        bool function = record->kind == TARE__IMPORT_FUNCTION;
        if (*end <= outer->end)
            return true;
        if (record->kind == TARE__IMPORT_ENDLESS || function || *end - outer->end <= pen->rounding) {
            pen->importer->report->cut += function && *end - outer->end > pen->rounding;
            *end = outer->end;
            return true;
        }
        if (outer->end - begin <= pen->rounding)
            close_top(pen, begin);
        else if (outer->function)
            set_aside(pen, begin);
        else
            return false;
    }
    return true;
}

/* Spans arrive sorted by begin, the longer one first. One that ends after its parent is not nested: it becomes a
 * complete span of its thread. */
static void add_span(pen *pen, const tare__import_record *record)
{
    uint64_t begin = ticks_of(pen, record->start);
    uint64_t end = record->kind == TARE__IMPORT_ENDLESS ? UINT64_MAX : end_of(pen, record);
    close_until(pen, begin);
    if (make_nested(pen, record, begin, &end)) {
        open_span(pen, record, begin, end);
    } else {
        pen->importer->report->overlapping++;
        add_complete(pen, record, 0);
    }
    begin_again(pen, begin);
}

static void add_point(pen *pen, const tare__import_record *record)
{
    uint64_t ticks = ticks_of(pen, record->start);
    close_until(pen, ticks);
    make_room(pen);
    if (record->kind == TARE__IMPORT_MARK)
        tare__events_add(pen->encoder, TARE__OP_MARK, record->name, ticks);
    else
        tare__events_add_value(pen->encoder, TARE__OP_COUNTER, record->name, ticks, record->number);
    pen->last_ticks = ticks;
}

static void leave_place(pen *pen)
{
    close_until(pen, UINT64_MAX - 1);
    seal_events(pen);
    seal_complete(pen);
}

static void enter_place(pen *pen, uint32_t index)
{
    const tare__importer *importer = pen->importer;
    const tare__import_place *place = &importer->places[index];
    if (pen->place != TARE__NO_PLACE)
        leave_place(pen);
    pen->place = index;
    pen->stream = place->track ? importer->places[importer->home].stream : place->stream;
    pen->ordinal = 0;
    pen->last_ticks = 1;
    pen->depth = 0;
    start_block(pen);
}

static void add_record(pen *pen, const tare__import_record *record)
{
    if (record->place != pen->place)
        enter_place(pen, record->place);
    if (record->kind == TARE__IMPORT_COMPLETE)
        add_complete(pen, record, pen->importer->places[record->place].track);
    else if (record->kind == TARE__IMPORT_MARK || record->kind == TARE__IMPORT_COUNTER)
        add_point(pen, record);
    else
        add_span(pen, record);
}

static void write_events(pen *pen)
{
    tare__import_record record;
    tare__importer *importer = pen->importer;
    int status = tare__sorter_rewind(&importer->sorter, importer->error);
    while (status >= 0 && !pen->status &&
           (status = tare__sorter_next(&importer->sorter, &record, importer->error)) == 1)
        add_record(pen, &record);
    if (status < 0 && !pen->status)
        pen->status = status;
    if (pen->place != TARE__NO_PLACE)
        leave_place(pen);
}

/* Records that this file was added to the run's trace. */
static void write_base_fact(pen *pen)
{
    tare__importer *importer = pen->importer;
    tare__block_header header = {.stream = importer->places[importer->home].stream};
    importer->base_fact.ticks = ticks_of(pen, importer->last_ns);
    fail(pen, tare__facts_seal(&importer->base_fact, 1, pen->squeezer, &header, &pen->block));
    append(pen);
}

static void write_end(pen *pen)
{
    const tare__importer *importer = pen->importer;
    const tare__import_report *report = importer->report;
    uint64_t realtime = realtime_of(importer, importer->last_ns);
    tare__field_some(&pen->fields, TARE__FIELD_END_REALTIME, realtime);
    tare__field_number(&pen->fields, TARE__FIELD_END_TICKS, ticks_of(pen, importer->last_ns));
    if (report->broken) {
        tare__text missing = {0};
        tare__text_format(&missing, "the imported JSON is damaged at byte %llu: %s",
                          (unsigned long long)report->broken_offset, report->broken_text);
        tare__field_string(&pen->fields, TARE__FIELD_WRITE_ERROR, missing.failed ? "" : missing.data);
        tare__text_free(&missing);
    }
    append_fields(pen, TARE__BLOCK_END, 0);
}

/* ---- the file ------------------------------------------------------------------------------------------------ */
static bool make_ready(pen *pen)
{
    tare__importer *importer = pen->importer;
    pen->squeezer = tare__squeezer_new();
    pen->encoder = tare__events_encoder_new();
    pen->complete = malloc(TARE__EVENTS_MAX * sizeof *pen->complete);
    pen->index_name = tare__import_name(importer, TARE_KIND_NUMBER, "index", 5);
    pen->flow_name = tare__import_name(importer, TARE_KIND_NUMBER, TARE__NAME_FLOW, strlen(TARE__NAME_FLOW));
    return pen->squeezer && pen->encoder && pen->complete && pen->index_name && pen->flow_name &&
           find_home(importer);
}

static void write_all(pen *pen)
{
    if (!make_ready(pen)) {
        fail(pen, TARE_E_MEMORY);
        return;
    }
    if (!pen->importer->base)
        write_run(pen);
    write_people(pen);
    write_names(pen);
    write_events(pen);
    if (pen->importer->base)
        write_base_fact(pen);
    write_names(pen);
    if (!pen->importer->base)
        write_end(pen);
}

static void free_pen(pen *pen)
{
    tare__writer_close(&pen->writer);
    tare__squeezer_free(pen->squeezer);
    tare__events_encoder_free(pen->encoder);
    free(pen->complete);
    free(pen->frames);
    free(pen->aside);
    tare__span_stack_free(&pen->before);
    tare__text_free(&pen->block);
    tare__text_free(&pen->fields);
}

static int write_file(pen *pen)
{
    const tare__import_options *options = pen->importer->options;
    int status = tare__writer_create(&pen->writer, options->output, options->overwrite, false,
                                     pen->importer->error);
    if (status)
        return status;
    pen->rounding = ROUNDING_NS;
    write_all(pen);
    if (!pen->status && tare__writer_settle(&pen->writer) != 0)
        pen->status = tare__fail(pen->importer->error, TARE_E_PERMISSION, "%s", pen->writer.problem);
    else if (pen->status)
        tare__writer_abandon(&pen->writer);
    return pen->status;
}

/* The added blocks overwrite the file's END block, which is written again after them. On a failure the file is restored
 * to its previous content. */
static int write_into(pen *pen)
{
    const tare__import_base *base = pen->importer->base;
    int status = tare__writer_open(&pen->writer, base->path, base->end_offset, pen->importer->error);
    if (status)
        return status;
    pen->processes = base->processes;
    pen->streams = base->streams;
    pen->rounding = (uint64_t)(ROUNDING_NS / base->tick_ns);
    write_all(pen);
    if (pen->status)
        tare__writer_cut(&pen->writer, base->end_offset);
    pen->writer.last_words = true;
    int ended = tare__writer_append(&pen->writer, &base->end);
    if (ended && !pen->status)
        fail(pen, ended);
    return pen->status;
}

int tare__import_write(tare__importer *importer)
{
    pen pen = {.importer = importer, .place = TARE__NO_PLACE, .writer = {.fd = -1}};
    int status = importer->base ? write_into(&pen) : write_file(&pen);
    if (!status)
        memcpy(importer->report->path, pen.writer.path, sizeof importer->report->path);
    free_pen(&pen);
    return status;
}
