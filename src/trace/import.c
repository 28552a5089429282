/* import: reads the document around the events of a foreign trace: its metadata, and recovery where it is malformed.
 * One thread.
 * Must not know what events mean, nor how they are written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import_inner.h"

#define PROGRESS_EVENTS 65536u

static bool is_key(const tare__json_reader *reader, const char *key)
{
    return reader->length == strlen(key) && memcmp(reader->text, key, reader->length) == 0;
}

static void note_broken(tare__importer *importer)
{
    const tare__json_reader *reader = &importer->reader;
    tare__import_report *report = importer->report;
    if (report->broken++ == 0) {
        report->broken_offset = reader->offset;
        snprintf(report->broken_text, sizeof report->broken_text, "%s",
                 reader->failed ? "the rest cannot be read or decompressed" : reader->wrong);
    }
    report->torn |= reader->ended;
}

/* ---- events --------------------------------------------------------------------------------------------- */
static void tell_progress(const tare__importer *importer)
{
    if (importer->options->progress && importer->report->events % PROGRESS_EVENTS == 0)
        importer->options->progress(importer->options->context, importer->reader.offset);
}

/* Reads the elements of the list that was just opened. 0: read to its end; 1: the JSON is malformed and reading cannot
 * continue; or a status. A malformed event is skipped and counted: a name with unescaped quotes must not lose all
 * events after it. */
static int read_events(tare__importer *importer)
{
    tare__json_reader *reader = &importer->reader;
    uint32_t depth = reader->depth;
    tare__json_token token = tare__json_next(reader);
    while (token != TARE__JSON_END_ARRAY) {
        int status = token == TARE__JSON_BROKEN ? 1 : 0;
        if (token == TARE__JSON_OBJECT) {
            status = tare__import_event(importer);
            tell_progress(importer);
        } else if (!status) {
            importer->report->senseless++;
            status = tare__json_skip(reader, token) == TARE__JSON_BROKEN;
        }
        if (status < 0)
            return status;
        if (status == 1) {
            /* A list without an end is allowed: programs that were killed leave one. */
            if (reader->ended && !reader->failed && depth == 1 && reader->depth == 1)
                return 0;
            note_broken(importer);
            if (!tare__json_reader_resume(reader, depth))
                return 1;
            token = TARE__JSON_OBJECT;
            continue;
        }
        token = tare__json_next(reader);
    }
    return 0;
}

/* ---- the document --------------------------------------------------------------------------------------- */
static void take_string(char *into, size_t room, const tare__json_reader *reader, tare__json_token token)
{
    if (token != TARE__JSON_STRING)
        return;
    size_t length = reader->length < room - 1 ? reader->length : room - 1;
    memcpy(into, reader->text, length);
    into[length] = '\0';
}

/* [{"id": 0, "name": "NVIDIA H200", …}, …] */
static tare__json_token read_devices(tare__importer *importer)
{
    tare__json_reader *reader = &importer->reader;
    uint32_t depth = reader->depth;
    tare__json_token token = tare__json_next(reader);
    for (; token != TARE__JSON_BROKEN && reader->depth >= depth; token = tare__json_next(reader)) {
        importer->gpus += token == TARE__JSON_OBJECT && reader->depth == depth + 1;
        if (token == TARE__JSON_KEY && reader->depth == depth + 1 && is_key(reader, "name"))
            take_string(importer->gpu, sizeof importer->gpu, reader, tare__json_next(reader));
    }
    return token;
}

static tare__json_token read_distributed(tare__importer *importer)
{
    tare__json_reader *reader = &importer->reader;
    tare__json_token token;
    while ((token = tare__json_next(reader)) == TARE__JSON_KEY) {
        bool rank = is_key(reader, "rank");
        token = tare__json_next(reader);
        int64_t value;
        if (rank && token == TARE__JSON_NUMBER &&
            tare__json_scaled(reader->text, reader->length, 1, &value) && value >= 0)
            importer->rank = value;
        if (tare__json_skip(reader, token) == TARE__JSON_BROKEN)
            return TARE__JSON_BROKEN;
    }
    return token;
}

/* A member of the outermost object. 0; 1 if the JSON is malformed; or a status. */
static int read_member(tare__importer *importer, bool *has_events)
{
    tare__json_reader *reader = &importer->reader;
    bool events = is_key(reader, "traceEvents"), base = is_key(reader, "baseTimeNanoseconds");
    bool host = is_key(reader, "host_name"), devices = is_key(reader, "deviceProperties");
    bool distributed = is_key(reader, "distributedInfo");
    importer->is_kineto |= is_key(reader, "schemaVersion");
    tare__json_token token = tare__json_next(reader);
    if (events && token == TARE__JSON_ARRAY) {
        *has_events = true;
        return read_events(importer);
    }
    if (base && token == TARE__JSON_NUMBER)
        importer->has_base = tare__json_scaled(reader->text, reader->length, 1, &importer->base_ns);
    else if (host)
        take_string(importer->host, sizeof importer->host, reader, token);
    if (devices && token == TARE__JSON_ARRAY)
        token = read_devices(importer);
    else if (distributed && token == TARE__JSON_OBJECT)
        token = read_distributed(importer);
    else
        token = tare__json_skip(reader, token);
    return token == TARE__JSON_BROKEN;
}

static int read_object(tare__importer *importer)
{
    bool has_events = false;
    uint64_t broken = importer->report->broken;
    int status = 0;
    tare__json_token token;
    while ((token = tare__json_next(&importer->reader)) == TARE__JSON_KEY && !status)
        status = read_member(importer, &has_events);
    if (status < 0)
        return status;
    if ((status == 1 || token == TARE__JSON_BROKEN) && importer->report->broken == broken)
        note_broken(importer);
    if (!has_events && !importer->report->broken)
        return tare__fail(
            importer->error, TARE_E_INPUT,
            "'%.200s' is JSON without \"traceEvents\": not a Kineto, Chrome or ONNX Runtime trace",
            importer->options->input_name);
    return 0;
}

static int refuse(tare__importer *importer)
{
    const tare__json_reader *reader = &importer->reader;
    if (reader->ended && !reader->failed && reader->offset == 0)
        return tare__fail(importer->error, TARE_E_INPUT, "'%.200s' is empty", importer->options->input_name);
    return tare__fail(importer->error, TARE_E_INPUT, "'%.200s' is not a JSON trace: byte %llu: %s",
                      importer->options->input_name, (unsigned long long)reader->offset,
                      reader->failed  ? "it cannot be read or decompressed"
                      : reader->wrong ? reader->wrong
                                      : "expected an object or a list");
}

static int read_document(tare__importer *importer)
{
    tare__json_token token = tare__json_next(&importer->reader);
    if (token == TARE__JSON_OBJECT)
        return read_object(importer);
    if (token != TARE__JSON_ARRAY)
        return refuse(importer);
    int status = read_events(importer);
    return status < 0 ? status : 0;
}

static const char *format_of(const tare__importer *importer)
{
    return importer->is_onnxruntime ? "ONNX Runtime" : importer->is_kineto ? "Kineto" : "Chrome";
}

static int nothing_in_it(const tare__importer *importer)
{
    const tare__import_report *report = importer->report;
    const char *name = importer->options->input_name;
    if (report->broken)
        return tare__fail(importer->error, TARE_E_INPUT,
                          "'%.200s' is damaged at byte %llu (%s), and nothing before it is usable", name,
                          (unsigned long long)report->broken_offset, report->broken_text);
    return tare__fail(importer->error, TARE_E_INPUT, "'%.200s' contains no spans, marks or counters", name);
}

static int convert(tare__importer *importer)
{
    int status = read_document(importer);
    importer->report->json_bytes = importer->reader.base + importer->reader.at;
    importer->report->format = format_of(importer);
    if (!status)
        status = tare__import_leftovers(importer);
    if (!status && !importer->any)
        status = nothing_in_it(importer);
    if (!status && importer->base) {
        status = tare__import_base_check(importer);
        if (!status)
            status = tare__import_base_tell(importer);
    }
    return status ? status : tare__import_write(importer);
}

int tare__import(tare__json_source *source, void *context, const tare__import_options *options,
                 tare__import_report *report, tare__error *error)
{
    tare__import_base base = {0};
    tare__importer importer = {.options = options,
                               .report = report,
                               .error = error,
                               .home = TARE__NO_PLACE,
                               .rank = -1,
                               .sorter = {.fd = -1}};
    *report = (tare__import_report){.format = "Chrome"};
    importer.names = tare__intern_new();
    importer.place_keys = tare__intern_new();
    importer.process_keys = tare__intern_new();
    importer.requests = malloc(TARE__REQUESTS_MAX * sizeof *importer.requests);
    bool ready = importer.names && importer.place_keys && importer.process_keys && importer.requests &&
                 tare__json_reader_open(&importer.reader, source, context) &&
                 tare__sorter_open(&importer.sorter, options->records_max,
                                   options->into ? options->into : options->output) == 0;
    int status = ready ? 0 : tare__fail(error, TARE_E_MEMORY, "out of memory");
    if (!status && options->into)
        status = tare__import_base_open(&importer, &base);
    if (!status)
        status = convert(&importer);
    tare__import_base_close(&base);
    tare__json_reader_close(&importer.reader);
    tare__sorter_close(&importer.sorter);
    free(importer.requests);
    tare__import_free_who(&importer);
    return status;
}
