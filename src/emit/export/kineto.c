/* kineto: one process as Kineto's JSON, as torch.profiler writes it: for TensorBoard's torch_tb_profiler and for
 * HolisticTraceAnalysis. docs/EXPORT.md. Owned by the calling thread.
 * Must not know what is computed from the events, nor how files are named. */
#include "tensorboard.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chrome.h"

#define FLOWS_MAX (1u << 20) /* flows that are connected */
#define DEVICES_MAX 17u /* with memory to show: the CPU, and GPUs */

/* ---- numbers of operators -------------------------------------------------------------------------------- */
/* Phases are written as operators, as older versions of torch did: TensorBoard's plugin finds data loading only
 * there. */
static bool is_operator(uint32_t kind)
{
    return kind == TARE_KIND_OPERATOR || kind == TARE_KIND_PHASE;
}

/* A span of this kind begins: derives its numbers from those of the enclosing span. */
static void begin_ids(tare__kineto_ids *ids, uint32_t kind, const uint32_t *around, uint32_t *own)
{
    memcpy(own, around, TARE__KINETO_NUMBERS * sizeof *own);
    if (is_operator(kind))
        own[TARE__KINETO_OPERATOR] = ++ids->last[TARE__KINETO_OPERATOR];
    if (kind == TARE_KIND_MODULE)
        own[TARE__KINETO_MODULE] = ++ids->last[TARE__KINETO_MODULE];
}

void tare__kineto_ids_free(tare__kineto_ids *ids)
{
    if (ids->flows)
        tare__intern_free(ids->flows);
    free(ids->of_flow);
    free(ids->with_events);
}

/* ---- contents of the trace --------------------------------------------------------------------------------- */
typedef struct reading {
    tare__kineto_ids *ids;
    tare__trace *trace;
} reading;

static int note_process(reading *read, uint32_t stream)
{
    tare__kineto_ids *ids = read->ids;
    const tare__trace_stream *row = tare__trace_stream_at(read->trace, stream);
    size_t number = row ? row->process : 0;
    if (!tare__array_fit_zeroed(&ids->with_events, &ids->processes_room, number + 1, sizeof *ids->with_events))
        return TARE_E_MEMORY;
    ids->with_events[number] = true;
    return 0;
}

typedef struct open_span {
    tare__replay_span span;
    uint32_t own[TARE__KINETO_NUMBERS];
} open_span;

static int note_begin(void *context, tare__replay_stream *stream, tare__replay_span *span, tare__replay_begin how)
{
    reading *read = context;
    open_span *open = (open_span *)span;
    const tare__trace_name *name = tare__trace_name_at(read->trace, span->name);
    uint32_t kind = name && how != TARE__REPLAY_RESTORED ? name->kind : TARE_KIND_SPAN;
    begin_ids(read->ids, kind, open[-1].own, open->own);
    return note_process(read, stream->id);
}

static int note_number(void *context, tare__replay_stream *stream, tare__replay_span *innermost, uint32_t name,
                       uint64_t ticks, double value)
{
    reading *read = context;
    tare__kineto_ids *ids = read->ids;
    (void)stream;
    (void)ticks;
    if (!innermost || name != ids->flow_name || !(value > 0 && value < 0x1p53) ||
        tare__intern_count(ids->flows) >= FLOWS_MAX)
        return 0;
    uint64_t flow = (uint64_t)value;
    uint32_t at = tare__intern_add(ids->flows, (const char *)&flow, sizeof flow);
    if (at == TARE__INTERN_NONE ||
        !tare__array_fit(&ids->of_flow, &ids->flows_room, (size_t)at + 1, sizeof *ids->of_flow))
        return TARE_E_MEMORY;
    ids->of_flow[at] = ((open_span *)innermost)->own[TARE__KINETO_OPERATOR];
    return 0;
}

static int note_complete(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n)
{
    (void)spans;
    return n ? note_process(context, stream) : 0;
}

static uint32_t find_flow_name(const tare__trace *trace)
{
    size_t n;
    const tare__trace_name *names = tare__trace_names(trace, &n);
    for (size_t i = 0; i < n; i++)
        if (names[i].kind == TARE_KIND_NUMBER && names[i].text && strcmp(names[i].text, TARE__NAME_FLOW) == 0)
            return names[i].id;
    return 0;
}

int tare__kineto_ids_read(tare__kineto_ids *ids, tare__trace *trace, tare__error *error)
{
    reading read = {ids, trace};
    const tare__replay_visitor visitor = {.context = &read,
                                          .span_bytes = sizeof(open_span),
                                          .begin = note_begin,
                                          .number = note_number,
                                          .complete = note_complete};
    *ids = (tare__kineto_ids){.flows = tare__intern_new()};
    int status = ids->flows ? tare__trace_prescan(trace, error) : TARE_E_MEMORY;
    if (!status) {
        ids->flow_name = find_flow_name(trace);
        status = tare__trace_replay(trace, &visitor, error);
    }
    if (status == TARE_E_MEMORY)
        tare__fail(error, status, "out of memory");
    return status;
}

/* 0: not known. */
static uint32_t id_of_flow(const tare__kineto_ids *ids, uint64_t flow)
{
    uint32_t at = tare__intern_find(ids->flows, (const char *)&flow, sizeof flow);
    return at == TARE__INTERN_NONE ? 0 : ids->of_flow[at];
}

/* ---- tracks -------------------------------------------------------------------------------------------------- */
static const char *read_number(const char *at, int64_t *value)
{
    while (*at && !isdigit((unsigned char)*at))
        at++;
    char *end;
    *value = *at ? (int64_t)strtoll(at, &end, 10) : 0;
    return *at ? end : at;
}

bool tare__gpu_track(const tare__trace *trace, uint32_t track, int64_t *device, int64_t *stream)
{
    const tare__trace_name *name = track ? tare__trace_name_at(trace, track) : NULL;
    if (!name || name->kind != TARE__NAME_TRACK + TARE_TRACK_GPU || !name->text)
        return false;
    const char *rest = read_number(name->text, device);
    read_number(rest, stream);
    return true;
}

/* ---- the file -------------------------------------------------------------------------------------------------- */
typedef struct held { /* by an allocator */
    double allocated, reserved;
} held;

typedef struct kineto {
    chrome json; /* first: functions of chrome.h take this struct */
    held held[DEVICES_MAX];
    tare__kineto_ids *ids;
    const tare__kineto_file *file;
    uint64_t base_ns, steps;
} kineto;

/* ---- helpers ----------------------------------------------------------------------------------------------- */
static const tare__trace_process *process_of(const kineto *to)
{
    return tare__trace_process_at(to->json.out.trace, to->file->process);
}

static bool is_ours(const kineto *to, uint32_t stream)
{
    const tare__trace_stream *row = tare__trace_stream_at(to->json.out.trace, stream);
    return (row ? row->process : 0) == to->file->process;
}

static void put_times(kineto *to, uint64_t begin, uint64_t end)
{
    int64_t from = tare__export_ns(&to->json.out, begin), until = tare__export_ns(&to->json.out, end);
    PUT(&to->json, ",\"ts\":");
    tare__chrome_put_us(&to->json, from + (int64_t)to->base_ns);
    PUT(&to->json, ",\"dur\":");
    tare__chrome_put_us(&to->json, until > from ? until - from : 0);
}

static void begin_event(kineto *to, const char *category)
{
    tare__chrome_begin_event(&to->json, "X");
    tare__text_format(&to->json.out.text, ",\"cat\":\"%s\",\"name\":", category);
}

static void put_argument(kineto *to, bool first, const char *key, uint64_t value)
{
    tare__text_format(&to->json.out.text, "%s\"%s\":%" PRIu64, first ? ",\"args\":{" : ",", key, value);
}

/* ---- nested spans ------------------------------------------------------------------------------------------- */
static uint64_t flow_of(const kineto *to, const tare__export_span *span)
{
    for (uint32_t i = 0; span->numbers && i < span->numbers->n && to->ids->flow_name; i++)
        if (span->numbers->numbers[i].name == to->ids->flow_name)
            return (uint64_t)span->numbers->numbers[i].sum;
    return 0;
}

/* torch's names for the parts of a step, by which readers recognize them. */
static const char *phase_name(const kineto *to, uint32_t id)
{
    static const struct {
        const char *phase, *name;
    } names[] = {
        {"data", "\"enumerate(DataLoader)#tare.__next__\""},
        {"optimizer", "\"Optimizer.step#tare.step\""},
    };
    const tare__trace_name *name = tare__trace_name_at(to->json.out.trace, id);
    for (size_t i = 0; name && name->text && i < TARE__COUNT_OF(names); i++)
        if (strcmp(name->text, names[i].phase) == 0)
            return names[i].name;
    return NULL;
}

static void put_module_name(kineto *to, uint32_t id)
{
    tare__json json;
    tare__text *name = &to->json.out.scratch;
    tare__text_clear(name);
    tare__text_string(name, "nn.Module: ");
    tare__lanes_name(to->json.out.trace, id, name);
    to->json.out.text.failed |= name->failed;
    tare__json_begin(&json, &to->json.out.text, false);
    tare__json_text(&json, name->data, name->length);
}

static void put_span_name(kineto *to, const tare__export_span *span)
{
    const char *known = span->category == TARE_KIND_PHASE ? phase_name(to, span->name) : NULL;
    if (span->category == TARE_KIND_STEP)
        tare__text_format(&to->json.out.text, "\"ProfilerStep#%" PRIu64 "\"",
                          span->has_index ? span->index : to->steps);
    else if (known)
        tare__text_string(&to->json.out.text, known);
    else if (span->category == TARE_KIND_MODULE)
        put_module_name(to, span->name);
    else
        tare__chrome_put_name(&to->json, span->name);
    to->steps += span->category == TARE_KIND_STEP;
}

static int begin_span(void *context, const tare__export_span *span)
{
    kineto *to = context;
    begin_ids(to->ids, span->category, span->around, span->own);
    return 0;
}

static const char *category_of(const kineto *to, const tare__export_span *span, uint64_t flow)
{
    if (is_operator(span->category))
        return "cpu_op";
    if (span->category == TARE_KIND_MODULE)
        return "python_function"; /* the category that torch uses, where readers expect modules */
    return flow ? to->file->launches : "user_annotation";
}

/* A module is identified by its name. */
static void put_module(kineto *to, const tare__export_span *span)
{
    put_argument(to, false, "Python id", span->own[TARE__KINETO_MODULE]);
    if (span->around[TARE__KINETO_MODULE])
        put_argument(to, false, "Python parent id", span->around[TARE__KINETO_MODULE]);
    else
        PUT(&to->json, ",\"Python parent id\":null");
    put_argument(to, false, "Python module id", span->name);
}

static int end_span(void *context, const tare__export_span *span)
{
    kineto *to = context;
    uint64_t flow = flow_of(to, span);
    if (!is_ours(to, span->place.stream))
        return 0;
    begin_event(to, category_of(to, span, flow));
    put_span_name(to, span);
    put_times(to, span->begin, span->end);
    tare__chrome_put_place(&to->json, span->place.pid, span->place.tid);
    put_argument(to, true, "External id", span->own[TARE__KINETO_OPERATOR]);
    if (flow)
        put_argument(to, false, "correlation", flow);
    if (span->category == TARE_KIND_MODULE)
        put_module(to, span);
    PUT(&to->json, "}");
    return tare__chrome_end_event(&to->json);
}

/* ---- complete spans -------------------------------------------------------------------------------------------- */
static const char *gpu_category(const kineto *to, uint32_t id)
{
    const tare__trace_name *name = tare__trace_name_at(to->json.out.trace, id);
    const char *text = name && name->text ? name->text : "";
    if (strncmp(text, "Memcpy", 6) == 0)
        return "gpu_memcpy";
    return strncmp(text, "Memset", 6) == 0 ? "gpu_memset" : "kernel";
}

static int put_gpu(kineto *to, const tare__export_span *span, int64_t device, int64_t stream)
{
    begin_event(to, gpu_category(to, span->name));
    tare__chrome_put_name(&to->json, span->name);
    put_times(to, span->begin, span->end);
    tare__chrome_put_place(&to->json, device, stream);
    put_argument(to, true, "External id", id_of_flow(to->ids, span->complete->flow));
    put_argument(to, false, "device", (uint64_t)device);
    put_argument(to, false, "context", 1);
    put_argument(to, false, "stream", (uint64_t)stream);
    put_argument(to, false, "correlation", span->complete->flow);
    PUT(&to->json, "}");
    return tare__chrome_end_event(&to->json);
}

static int put_complete(void *context, const tare__export_span *span)
{
    kineto *to = context;
    int64_t device, stream;
    if (!is_ours(to, span->place.stream))
        return 0;
    if (tare__gpu_track(to->json.out.trace, span->complete->track, &device, &stream))
        return put_gpu(to, span, device, stream);
    begin_event(to, "user_annotation");
    tare__chrome_put_name(&to->json, span->name);
    put_times(to, span->begin, span->end);
    tare__chrome_put_place(&to->json, span->place.pid, span->place.tid);
    return tare__chrome_end_event(&to->json);
}

/* ---- memory -------------------------------------------------------------------------------------------------- */
/* "bytes allocated: GPU 0", as an import names them: the device it refers to; NULL: another counter. */
static held *held_by(kineto *to, const char *text, const char *start, int *device)
{
    size_t length = strlen(start);
    *device = -1;
    if (strncmp(text, start, length) != 0)
        return NULL;
    if (strcmp(text + length, "CPU") == 0)
        return &to->held[0];
    bool gpu = sscanf(text + length, "GPU %d", device) == 1 && *device >= 0 && *device < (int)DEVICES_MAX - 1;
    return gpu ? &to->held[*device + 1] : NULL;
}

/* A value of "allocated" becomes an event of the allocator; the block's address is unknown. */
static int put_counter(void *context, const tare__export_place *place, uint32_t id, uint64_t ticks, double value)
{
    kineto *to = context;
    const tare__trace_name *name = tare__trace_name_at(to->json.out.trace, id);
    int device;
    if (!is_ours(to, place->stream) || !name || !name->text || !(fabs(value) < 0x1p62))
        return 0;
    held *reserved = held_by(to, name->text, "bytes reserved: ", &device);
    if (reserved)
        reserved->reserved = value;
    held *held = held_by(to, name->text, "bytes allocated: ", &device);
    if (!held)
        return 0;
    tare__chrome_begin_event(&to->json, "i");
    PUT(&to->json, ",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"ts\":");
    tare__chrome_put_us(&to->json, tare__export_ns(&to->json.out, ticks) + (int64_t)to->base_ns);
    tare__chrome_put_place(&to->json, place->pid, place->tid);
    tare__text_format(&to->json.out.text,
                      ",\"args\":{\"Device Type\":%d,\"Device Id\":%d,\"Addr\":0,\"Bytes\":%" PRId64
                      ",\"Total Allocated\":%" PRId64 ",\"Total Reserved\":%" PRId64 "}",
                      device >= 0, device, (int64_t)(value - held->allocated), (int64_t)value,
                      (int64_t)held->reserved);
    held->allocated = value;
    return tare__chrome_end_event(&to->json);
}

/* ---- processes and threads ------------------------------------------------------------------------------------- */
static int put_process(void *context, int64_t pid, const tare__text *name, int64_t order)
{
    kineto *to = context;
    const tare__trace_process *process = process_of(to);
    bool ours = process && tare__lanes_pid(&to->json.out.lanes, process) == pid;
    return ours ? tare__chrome_put_process(to, pid, name, order) : 0;
}

static int put_thread(void *context, const tare__export_place *place, const tare__text *name, int64_t order)
{
    kineto *to = context;
    return is_ours(to, place->stream) ? tare__chrome_put_thread(to, place, name, order) : 0;
}

/* ---- the document -------------------------------------------------------------------------------------------- */
static unsigned devices_of(const kineto *to)
{
    size_t n;
    int64_t device, stream, most = -1;
    const tare__trace_name *names = tare__trace_names(to->json.out.trace, &n);
    for (size_t i = 0; i < n; i++)
        if (tare__gpu_track(to->json.out.trace, names[i].id, &device, &stream) && device > most && device < 1024)
            most = device;
    return (unsigned)(most + 1);
}

/* The name from the RUN block, "2 x NVIDIA H200, driver …"; no other properties of a device are known. */
static void put_devices(kineto *to)
{
    const tare__trace_run *run = tare__trace_run_of(to->json.out.trace);
    const char *name = run->gpus && strncmp(run->gpus, "n/a", 3) != 0 ? run->gpus : NULL;
    const char *times = name ? strstr(name, " x ") : NULL;
    unsigned n = devices_of(to);
    PUT(&to->json, "\"deviceProperties\": [");
    for (unsigned i = 0; i < n; i++) {
        tare__text_format(&to->json.out.text, "%s{\"id\": %u, \"name\": ", i ? ", " : "", i);
        tare__chrome_put_text(&to->json, times ? times + 3 : name ? name : "GPU");
        PUT(&to->json, "}");
    }
    PUT(&to->json, "],\n");
}

/* Readers of ranks search for a space after the colon, before the events. */
static int put_head(void *context)
{
    kineto *to = context;
    const tare__trace_run *run = tare__trace_run_of(to->json.out.trace);
    PUT(&to->json, "{\n\"schemaVersion\": 1,\n");
    put_devices(to);
    if (to->file->rank >= 0)
        tare__text_format(&to->json.out.text,
                          "\"distributedInfo\": {\"backend\": \"\", \"rank\": %" PRId64
                          ", \"world_size\": %u},\n",
                          to->file->rank, to->file->ranks);
    if (run->host) {
        PUT(&to->json, "\"host_name\": ");
        tare__chrome_put_text(&to->json, run->host);
        PUT(&to->json, ",\n");
    }
    tare__text_format(&to->json.out.text,
                      "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": %" PRIu64
                      ",\n\"traceEvents\": [",
                      to->file->base_ns);
    to->base_ns = run->start_realtime_ns > to->file->base_ns ? run->start_realtime_ns - to->file->base_ns : 0;
    return 0;
}

static int put_tail(void *context)
{
    kineto *to = context;
    PUT(&to->json, "\n]\n}\n");
    return 0;
}

static const tare__export_format format = {
    .head = put_head,
    .process = put_process,
    .thread = put_thread,
    .begin = begin_span,
    .end = end_span,
    .complete = put_complete,
    .counter = put_counter,
    .tail = put_tail,
};

int tare__emit_kineto(tare__trace *trace, tare__kineto_ids *ids, const tare__kineto_file *file,
                      const tare__emit_sink *sink, tare__error *error)
{
    kineto to = {.ids = ids, .file = file};
    memset(ids->last, 0, sizeof ids->last);
    int status = tare__export(&to.json.out, &format, &to, trace, sink, error);
    free(to.json.names);
    tare__text_free(&to.json.quotes);
    return status;
}
