/* import_take: interprets events of foreign traces: which become steps, phases, operators, tracks, counters.
 * One thread.
 * Must not know JSON, nor how records are written. */
#include <stdio.h>
#include <string.h>

#include "import_event.h"

#define OPEN_MAX 4096u /* begins of a thread that have no end yet */

static int add_record(tare__importer *importer, const tare__import_record *record)
{
    int64_t end = record->start + (record->duration > 0 ? record->duration : 0);
    if (!importer->any || record->start < importer->first_ns)
        importer->first_ns = record->start;
    if (!importer->any || end > importer->last_ns)
        importer->last_ns = end;
    importer->any = true;
    importer->places[record->place].records++;
    return tare__sorter_add(&importer->sorter, record, importer->error);
}

static int add_named(tare__importer *importer, tare__import_record *record, uint32_t kind, const char *text,
                     size_t length)
{
    record->name = tare__import_name(importer, kind, text, length);
    return record->name ? add_record(importer, record) : tare__no_memory(importer->error);
}

static bool starts_with(const event *event, const char *start)
{
    size_t length = strlen(start);
    return event->name_bytes >= length && memcmp(event->name, start, length) == 0;
}

static bool is_named(const event *event, const char *name)
{
    return event->name_bytes == strlen(name) && starts_with(event, name);
}

/* Place of the event's thread; the thread that launches GPU work is remembered. */
static uint32_t thread_of(tare__importer *importer, const event *event)
{
    uint32_t place = tare__import_thread(importer, event->pid, event->tid);
    bool launches = event->category == CATEGORY_OPERATOR || event->category == CATEGORY_RUNTIME ||
                    event->category == CATEGORY_ANNOTATION;
    if (place == TARE__NO_PLACE)
        importer->report->crowded++;
    else if (launches && importer->home == TARE__NO_PLACE)
        importer->home = place;
    return place;
}

/* ---- spans of a thread ---------------------------------------------------------------------------------- */
static const char *const step_names[] = {"ProfilerStep#", "Step#"};

/* "ProfilerStep#12": a step and its index. */
static bool is_step(const event *event, double *index)
{
    int64_t value;
    for (size_t i = 0; i < TARE__COUNT_OF(step_names); i++) {
        size_t length = strlen(step_names[i]);
        if (starts_with(event, step_names[i]) &&
            tare__json_scaled(event->name + length, event->name_bytes - length, 1, &value) && value >= 0) {
            *index = (double)value;
            return true;
        }
    }
    return false;
}

/* Names by which torch records the parts of a step. */
static const char *phase_of(const event *event)
{
    static const struct {
        const char *start, *phase;
    } phases[] = {
        {"enumerate(DataLoader)", "data"},
        {"Optimizer.step#", "optimizer"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(phases); i++)
        if (starts_with(event, phases[i].start))
            return phases[i].phase;
    return NULL;
}

static int add_annotation(tare__importer *importer, const event *event, tare__import_record *record)
{
    const char *phase = phase_of(event);
    if (!importer->base && is_step(event, &record->number)) {
        record->kind = TARE__IMPORT_INDEXED;
        importer->report->steps++;
        return add_named(importer, record, TARE_KIND_STEP, "step", 4);
    }
    if (phase && !importer->base)
        return add_named(importer, record, TARE_KIND_PHASE, phase, strlen(phase));
    return add_named(importer, record, TARE_KIND_SPAN, event->name, event->name_bytes);
}

/* Older versions of torch recorded steps and phases as operators. */
static int add_operator(tare__importer *importer, const event *event, tare__import_record *record)
{
    double index;
    if (phase_of(event) || is_step(event, &index))
        return add_annotation(importer, event, record);
    importer->report->operators++;
    return add_named(importer, record, TARE_KIND_OPERATOR, event->name, event->name_bytes);
}

/* "nn.Module: Linear_0" */
static int add_python(tare__importer *importer, const event *event, tare__import_record *record)
{
    static const char module[] = "nn.Module: ";
    record->kind = TARE__IMPORT_FUNCTION;
    if (event->is_module && starts_with(event, module))
        return add_named(importer, record, TARE_KIND_MODULE, event->name + sizeof module - 1,
                         event->name_bytes - (sizeof module - 1));
    return add_named(importer, record, TARE_KIND_SPAN, event->name, event->name_bytes);
}

/* ONNX Runtime: a node is a module of the model, with its operator inside. */
static int add_node(tare__importer *importer, const event *event, tare__import_record *record)
{
    static const char ending[] = "_kernel_time";
    size_t length = event->name_bytes, cut = sizeof ending - 1;
    if (!event->op_name[0] || length <= cut || memcmp(event->name + length - cut, ending, cut) != 0)
        return add_named(importer, record, TARE_KIND_SPAN, event->name, event->name_bytes);
    int status = add_named(importer, record, TARE_KIND_MODULE, event->name, length - cut);
    importer->report->operators++;
    importer->report->spans++;
    return status ? status
                  : add_named(importer, record, TARE_KIND_OPERATOR, event->op_name, strlen(event->op_name));
}

static int add_session(tare__importer *importer, const event *event, tare__import_record *record)
{
    if (importer->base || !is_named(event, "model_run"))
        return add_named(importer, record, TARE_KIND_SPAN, event->name, event->name_bytes);
    importer->report->steps++;
    return add_named(importer, record, TARE_KIND_STEP, event->name, event->name_bytes);
}

/* A call that starts work on a GPU: connected to it by its flow. */
static int add_launch(tare__importer *importer, const event *event, tare__import_record *record)
{
    if (event->correlation && event->correlation < UINT64_C(1) << 53) {
        record->kind = TARE__IMPORT_FLOWING;
        record->number = (double)event->correlation;
    }
    return add_named(importer, record, TARE_KIND_SPAN, event->name, event->name_bytes);
}

static int take_thread_span(tare__importer *importer, const event *event)
{
    tare__import_record record = {.start = event->time,
                                  .duration = event->duration,
                                  .place = thread_of(importer, event),
                                  .kind = TARE__IMPORT_SPAN};
    if (record.place == TARE__NO_PLACE)
        return 0;
    importer->report->spans++;
    switch (event->category) {
    case CATEGORY_OPERATOR: return add_operator(importer, event, &record);
    case CATEGORY_RUNTIME: return add_launch(importer, event, &record);
    case CATEGORY_PYTHON: return add_python(importer, event, &record);
    case CATEGORY_NODE: return add_node(importer, event, &record);
    case CATEGORY_SESSION: return add_session(importer, event, &record);
    default: return add_annotation(importer, event, &record);
    }
}

/* ---- tracks --------------------------------------------------------------------------------------------- */
static int take_on_track(tare__importer *importer, const event *event, uint32_t kind, const char *label,
                         tare__import_record *record)
{
    record->place = tare__import_track(importer, "", kind, label);
    record->kind = TARE__IMPORT_COMPLETE;
    if (record->place == TARE__NO_PLACE) {
        importer->report->crowded++;
        return 0;
    }
    importer->report->complete++;
    return add_named(importer, record, TARE_KIND_SPAN, event->name, event->name_bytes);
}

/* User annotations around kernels cover them: they get a separate track and do not count as GPU work. The same applies
 * to waiting. */
static int take_gpu_span(tare__importer *importer, const event *event)
{
    char label[96];
    tare__import_record record = {
        .start = event->time, .duration = event->duration, .flow = event->correlation};
    bool works = event->category == CATEGORY_GPU;
    const char *what = works ? "" : event->category == CATEGORY_GPU_NOTE ? " (annotations)" : " (waiting)";
    if (event->has_device && event->has_stream)
        snprintf(label, sizeof label, "GPU %lld stream %lld%s", (long long)event->device,
                 (long long)event->stream, what);
    else
        snprintf(label, sizeof label, "GPU %.24s stream %.24s%s", event->pid, event->tid, what);
    return take_on_track(importer, event, works ? TARE_TRACK_GPU : TARE_TRACK_OTHER, label, &record);
}

static int take_complete(tare__importer *importer, const event *event)
{
    if (event->category == CATEGORY_OWN) {
        importer->report->own++;
        return 0;
    }
    if (!event->has_duration || event->duration < 0 || event->duration > INT64_MAX / 4) {
        importer->report->senseless++;
        return 0;
    }
    bool gpu = event->category == CATEGORY_GPU || event->category == CATEGORY_GPU_WAIT ||
               event->category == CATEGORY_GPU_NOTE;
    return gpu ? take_gpu_span(importer, event) : take_thread_span(importer, event);
}

/* ---- begins and ends ------------------------------------------------------------------------------------------ */
static int take_begin(tare__importer *importer, const event *event)
{
    uint32_t place = thread_of(importer, event);
    if (place == TARE__NO_PLACE)
        return 0;
    tare__import_place *thread = &importer->places[place];
    if (thread->open_count == OPEN_MAX) {
        importer->report->crowded++;
        return 0;
    }
    uint32_t name = tare__import_name(importer, TARE_KIND_SPAN, event->name, event->name_bytes);
    if (!name ||
        !tare__array_fit(&thread->open, &thread->open_room, thread->open_count + 1, sizeof *thread->open))
        return tare__no_memory(importer->error);
    thread->open[thread->open_count++] = (tare__open_begin){.start = event->time, .name = name};
    return 0;
}

static int take_end(tare__importer *importer, const event *event)
{
    uint32_t place = thread_of(importer, event);
    if (place == TARE__NO_PLACE)
        return 0;
    tare__import_place *thread = &importer->places[place];
    if (thread->open_count == 0 || thread->open[thread->open_count - 1].start > event->time) {
        importer->report->unbegun++;
        return 0;
    }
    tare__open_begin begun = thread->open[--thread->open_count];
    tare__import_record record = {.start = begun.start,
                                  .duration = event->time - begun.start,
                                  .place = place,
                                  .name = begun.name,
                                  .kind = TARE__IMPORT_SPAN};
    importer->report->spans++;
    return add_record(importer, &record);
}

/* ---- requests: begun and ended on any thread ---------------------------------------------------------------- */
static uint64_t hash_text(uint64_t hash, const char *text, size_t length)
{
    return tare__hash_bytes(tare__hash_bytes(hash, text, length), "\xff", 1);
}

static uint64_t request_hash(const event *event)
{
    uint64_t hash = hash_text(TARE__HASH_START, event->pid, strlen(event->pid));
    hash = hash_text(hash, event->id, strlen(event->id));
    return hash_text(hash, event->name, event->name_bytes);
}

static int take_request_begin(tare__importer *importer, const event *event)
{
    char label[96];
    if (importer->request_count == TARE__REQUESTS_MAX) {
        importer->report->crowded++;
        return 0;
    }
    snprintf(label, sizeof label, "requests of process %.32s", event->pid);
    uint32_t place = tare__import_track(importer, event->pid, TARE_TRACK_REQUEST, label);
    uint32_t name = tare__import_name(importer, TARE_KIND_SPAN, event->name, event->name_bytes);
    if (!name)
        return tare__no_memory(importer->error);
    if (place == TARE__NO_PLACE) {
        importer->report->crowded++;
        return 0;
    }
    importer->requests[importer->request_count++] =
        (tare__open_request){.hash = request_hash(event), .start = event->time, .name = name, .place = place};
    return 0;
}

static int take_request_end(tare__importer *importer, const event *event)
{
    uint64_t hash = request_hash(event);
    for (uint32_t i = importer->request_count; i-- > 0;) {
        tare__open_request *open = &importer->requests[i];
        if (open->hash != hash || open->start > event->time)
            continue;
        tare__import_record record = {.start = open->start,
                                      .duration = event->time - open->start,
                                      .place = open->place,
                                      .name = open->name,
                                      .kind = TARE__IMPORT_COMPLETE};
        *open = importer->requests[--importer->request_count];
        importer->report->complete++;
        return add_record(importer, &record);
    }
    importer->report->unbegun++;
    return 0;
}

/* ---- moments and values ------------------------------------------------------------------------------------ */
static int add_counter(tare__importer *importer, const event *event, uint32_t place, const char *name,
                       double value)
{
    tare__import_record record = {
        .start = event->time, .duration = -1, .number = value, .place = place, .kind = TARE__IMPORT_COUNTER};
    importer->report->counters++;
    return add_named(importer, &record, TARE_KIND_COUNTER, name, strlen(name));
}

/* An allocation or a release: the number of bytes the allocator holds from then on. */
static int take_memory(tare__importer *importer, const event *event)
{
    char device[32] = "CPU", name[80];
    uint32_t place = thread_of(importer, event);
    int status = 0;
    if (place == TARE__NO_PLACE)
        return 0;
    if (event->device_type != 0)
        snprintf(device, sizeof device, "GPU %lld", (long long)event->device_id);
    if (event->has_reserved && event->device_type != 0) {
        snprintf(name, sizeof name, "bytes reserved: %s", device);
        status = add_counter(importer, event, place, name, event->reserved);
    }
    if (event->has_allocated && !status) {
        snprintf(name, sizeof name, "bytes allocated: %s", device);
        status = add_counter(importer, event, place, name, event->allocated);
    }
    return status;
}

static int take_instant(tare__importer *importer, const event *event)
{
    if (is_named(event, "[memory]"))
        return take_memory(importer, event);
    if (starts_with(event, "Iteration Start: PyTorch Profiler") || starts_with(event, "Record Window End")) {
        importer->report->own++;
        return 0;
    }
    tare__import_record record = {
        .start = event->time, .duration = -1, .place = thread_of(importer, event), .kind = TARE__IMPORT_MARK};
    if (record.place == TARE__NO_PLACE)
        return 0;
    importer->report->marks++;
    return add_named(importer, &record, TARE_KIND_MARK, event->name, event->name_bytes);
}

/* A single value has the counter's name; several are named after the counter and their own key. */
static int take_counter(tare__importer *importer, const event *event)
{
    char name[256];
    uint32_t place = thread_of(importer, event);
    int status = 0;
    if (place == TARE__NO_PLACE)
        return 0;
    importer->report->senseless += event->value_count == 0;
    for (uint32_t i = 0; i < event->value_count && !status; i++) {
        int shown = event->name_bytes < 128 ? (int)event->name_bytes : 128;
        snprintf(name, sizeof name, "%.*s%s%s", shown, event->name, event->value_count > 1 ? ": " : "",
                 event->value_count > 1 ? event->values[i].name : "");
        status = add_counter(importer, event, place, name, event->values[i].value);
    }
    return status;
}

/* ---- metadata ------------------------------------------------------------------------------------------------ */
static int take_metadata(tare__importer *importer, const event *event)
{
    if (is_named(event, "process_name")) {
        tare__import_process *process = tare__import_process_of(importer, event->pid);
        if (process)
            snprintf(process->label, sizeof process->label, "%s", event->label);
    } else if (is_named(event, "thread_name")) {
        uint32_t place = tare__import_thread(importer, event->pid, event->tid);
        if (place != TARE__NO_PLACE)
            snprintf(importer->places[place].label, sizeof importer->places[place].label, "%.60s",
                     event->label);
    }
    return 0;
}

/* ---- by phase -------------------------------------------------------------------------------------------------- */
static int count_arrow(tare__importer *importer, const event *event)
{
    (void)event;
    importer->report->arrows++;
    return 0;
}

static const struct phase {
    const char *letters;
    int (*take)(tare__importer *importer, const event *event);
    bool timed, named;
} phases[] = {
    {"X", take_complete, true, true},     {"B", take_begin, true, true},
    {"E", take_end, true, false},         {"bS", take_request_begin, true, true},
    {"eF", take_request_end, true, true}, {"iIRn", take_instant, true, true},
    {"C", take_counter, true, true},      {"M", take_metadata, false, true},
    {"stf", count_arrow, false, false},
};

static void count_unknown(tare__importer *importer, const char *phase)
{
    tare__import_report *report = importer->report;
    uint32_t i = 0;
    while (i < report->unknown_count && strcmp(report->unknown[i].phase, phase) != 0)
        i++;
    if (i == TARE__IMPORT_UNKNOWN)
        i--;
    else if (i == report->unknown_count)
        snprintf(report->unknown[report->unknown_count++].phase, sizeof report->unknown[i].phase, "%s",
                 phase);
    report->unknown[i].events++;
}

int tare__import_take(tare__importer *importer, const event *event)
{
    const struct phase *phase = NULL;
    for (size_t i = 0; i < TARE__COUNT_OF(phases) && !phase; i++)
        if (event->phase[0] && event->phase[1] == '\0' && strchr(phases[i].letters, event->phase[0]))
            phase = &phases[i];
    if (!phase) {
        count_unknown(importer, event->phase);
        return 0;
    }
    bool in_range = event->time > -(INT64_MAX / 4) && event->time < INT64_MAX / 4;
    if ((phase->timed && (!event->has_time || !in_range)) || (phase->named && !event->has_name)) {
        importer->report->senseless++;
        return 0;
    }
    int status = phase->take(importer, event);
    return status == 0 && importer->no_memory ? tare__no_memory(importer->error) : status;
}

int tare__import_leftovers(tare__importer *importer)
{
    int status = 0;
    uint32_t count = tare__intern_count(importer->place_keys);
    for (uint32_t i = 0; i < count && !status; i++) {
        for (size_t k = 0; k < importer->places[i].open_count && !status; k++) {
            tare__open_begin begun = importer->places[i].open[k];
            tare__import_record record = {.start = begun.start,
                                          .duration = INT64_MAX / 2,
                                          .place = i,
                                          .name = begun.name,
                                          .kind = TARE__IMPORT_ENDLESS};
            importer->report->unended++;
            importer->report->spans++;
            importer->places[i].records++;
            if (!importer->any || record.start < importer->first_ns)
                importer->first_ns = record.start;
            if (!importer->any || record.start > importer->last_ns)
                importer->last_ns = record.start;
            importer->any = true;
            status = tare__sorter_add(&importer->sorter, &record, importer->error);
        }
    }
    importer->report->unended += importer->request_count;
    return status;
}
