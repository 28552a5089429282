/* import_event: reads one event of a foreign trace from its JSON and converts it to records by its phase and category.
 * One thread.
 * Must not know how records are kept and written. */
#include <string.h>

#include "import_event.h"

/* ---- categories ---------------------------------------------------------------------------------------- */
static category category_of(const char *text, size_t length)
{
    static const struct {
        const char *word;
        category category;
    } words[] = {
        {"cpu_op", CATEGORY_OPERATOR},
        {"Operator", CATEGORY_OPERATOR}, /* torch before 1.11 */
        {"python_function", CATEGORY_PYTHON},
        {"user_annotation", CATEGORY_ANNOTATION},
        {"cuda_runtime", CATEGORY_RUNTIME},
        {"cuda_driver", CATEGORY_RUNTIME},
        {"Runtime", CATEGORY_RUNTIME},
        {"kernel", CATEGORY_GPU},
        {"Kernel", CATEGORY_GPU},
        {"gpu_memcpy", CATEGORY_GPU},
        {"Memcpy", CATEGORY_GPU},
        {"gpu_memset", CATEGORY_GPU},
        {"Memset", CATEGORY_GPU},
        {"cuda_sync", CATEGORY_GPU_WAIT},
        {"gpu_user_annotation", CATEGORY_GPU_NOTE},
        {"Trace", CATEGORY_OWN},
        {"Node", CATEGORY_NODE},
        {"Session", CATEGORY_SESSION},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(words); i++)
        if (strlen(words[i].word) == length && memcmp(words[i].word, text, length) == 0)
            return words[i].category;
    return CATEGORY_OTHER;
}

/* ---- reading ------------------------------------------------------------------------------------------- */
static void copy_text(char *into, size_t room, const tare__json_reader *reader)
{
    size_t length = reader->length < room - 1 ? reader->length : room - 1;
    memcpy(into, reader->text, length);
    into[length] = '\0';
}

/* A word table is searched for every key of every event, so lengths are stored with the words. */
typedef struct word {
    const char *text;
    size_t length;
} word;
#define WORD(text)            \
    {                         \
        text, sizeof text - 1 \
    }

static unsigned find_word(const word *words, unsigned n, const tare__json_reader *reader)
{
    unsigned i = 0;
    while (i < n &&
           (words[i].length != reader->length || memcmp(words[i].text, reader->text, reader->length) != 0))
        i++;
    return i;
}

static double number_in(const tare__json_reader *reader, tare__json_token token)
{
    return token == TARE__JSON_NUMBER ? tare__json_double_of(reader->text, reader->length) : 0;
}

static int64_t whole_in(const tare__json_reader *reader, tare__json_token token, bool *is_there)
{
    int64_t value = 0;
    bool read = (token == TARE__JSON_NUMBER || token == TARE__JSON_STRING) &&
                tare__json_scaled(reader->text, reader->length, 1, &value);
    *is_there |= read;
    return read ? value : 0;
}

typedef enum argument {
    ARGUMENT_CORRELATION,
    ARGUMENT_STREAM,
    ARGUMENT_DEVICE,
    ARGUMENT_DEVICE_TYPE,
    ARGUMENT_DEVICE_ID,
    ARGUMENT_ALLOCATED,
    ARGUMENT_RESERVED,
    ARGUMENT_MODULE,
    ARGUMENT_OP_NAME,
    ARGUMENT_NAME,
    ARGUMENT_UNKNOWN
} argument;

static argument argument_of(const tare__json_reader *reader)
{
    static const word words[] = {
        [ARGUMENT_CORRELATION] = WORD("correlation"), [ARGUMENT_STREAM] = WORD("stream"),
        [ARGUMENT_DEVICE] = WORD("device"),           [ARGUMENT_DEVICE_TYPE] = WORD("Device Type"),
        [ARGUMENT_DEVICE_ID] = WORD("Device Id"),     [ARGUMENT_ALLOCATED] = WORD("Total Allocated"),
        [ARGUMENT_RESERVED] = WORD("Total Reserved"), [ARGUMENT_MODULE] = WORD("Python module id"),
        [ARGUMENT_OP_NAME] = WORD("op_name"),         [ARGUMENT_NAME] = WORD("name"),
    };
    return (argument)find_word(words, ARGUMENT_UNKNOWN, reader);
}

static void take_argument(event *event, argument which, const tare__json_reader *reader,
                          tare__json_token token)
{
    bool ignored = false;
    switch (which) {
    case ARGUMENT_CORRELATION: event->correlation = (uint64_t)whole_in(reader, token, &ignored); break;
    case ARGUMENT_STREAM: event->stream = whole_in(reader, token, &event->has_stream); break;
    case ARGUMENT_DEVICE: event->device = whole_in(reader, token, &event->has_device); break;
    case ARGUMENT_DEVICE_TYPE: event->device_type = whole_in(reader, token, &ignored); break;
    case ARGUMENT_DEVICE_ID: event->device_id = whole_in(reader, token, &ignored); break;
    case ARGUMENT_ALLOCATED:
        event->has_allocated = token == TARE__JSON_NUMBER;
        event->allocated = number_in(reader, token);
        break;
    case ARGUMENT_RESERVED:
        event->has_reserved = token == TARE__JSON_NUMBER;
        event->reserved = number_in(reader, token);
        break;
    case ARGUMENT_MODULE: event->is_module = true; break;
    case ARGUMENT_OP_NAME: copy_text(event->op_name, sizeof event->op_name, reader); break;
    case ARGUMENT_NAME: copy_text(event->label, sizeof event->label, reader); break;
    default: break;
    }
}

/* The values of a counter may have any name, and the kind of the event may follow them. */
static bool wants_values(const event *event)
{
    return (event->phase[0] == 'C' || event->phase[0] == '\0') && event->value_count < EVENT_VALUES;
}

static tare__json_token read_arguments(tare__json_reader *reader, event *event)
{
    tare__json_token token;
    while ((token = tare__json_next(reader)) == TARE__JSON_KEY) {
        argument which = argument_of(reader);
        event_value *value = wants_values(event) ? &event->values[event->value_count] : NULL;
        if (value)
            copy_text(value->name, sizeof value->name, reader);
        token = tare__json_next(reader);
        if (value && token == TARE__JSON_NUMBER) {
            value->value = number_in(reader, token);
            event->value_count++;
        }
        take_argument(event, which, reader, token);
        token = tare__json_skip(reader, token);
        if (token == TARE__JSON_BROKEN)
            break;
    }
    return token;
}

static void take_field(event *event, field which, const tare__json_reader *reader, tare__json_token token)
{
    if (token == TARE__JSON_STRING || token == TARE__JSON_NUMBER) {
        switch (which) {
        case FIELD_PHASE: copy_text(event->phase, sizeof event->phase, reader); break;
        case FIELD_CATEGORY: event->category = category_of(reader->text, reader->length); break;
        case FIELD_NAME:
            event->name_bytes = reader->length < sizeof event->name ? reader->length : sizeof event->name;
            memcpy(event->name, reader->text, event->name_bytes);
            event->has_name = true;
            break;
        case FIELD_PID: copy_text(event->pid, sizeof event->pid, reader); break;
        case FIELD_TID: copy_text(event->tid, sizeof event->tid, reader); break;
        case FIELD_ID: copy_text(event->id, sizeof event->id, reader); break;
        case FIELD_TIME:
            event->has_time = tare__json_scaled(reader->text, reader->length, 1000, &event->time);
            break;
        case FIELD_DURATION:
            event->has_duration = tare__json_scaled(reader->text, reader->length, 1000, &event->duration);
            break;
        default: break;
        }
    }
}

static field field_of(const tare__json_reader *reader)
{
    static const word words[] = {
        [FIELD_PHASE] = WORD("ph"),     [FIELD_CATEGORY] = WORD("cat"),   [FIELD_NAME] = WORD("name"),
        [FIELD_PID] = WORD("pid"),      [FIELD_TID] = WORD("tid"),        [FIELD_TIME] = WORD("ts"),
        [FIELD_DURATION] = WORD("dur"), [FIELD_ARGUMENTS] = WORD("args"), [FIELD_ID] = WORD("id"),
    };
    return (field)find_word(words, FIELD_UNKNOWN, reader);
}

/* False: the JSON is malformed. */
static bool read_event(tare__json_reader *reader, event *event)
{
    tare__json_token token;
    while ((token = tare__json_next(reader)) == TARE__JSON_KEY) {
        field which = field_of(reader);
        token = tare__json_next(reader);
        if (which == FIELD_ARGUMENTS && token == TARE__JSON_OBJECT) {
            token = read_arguments(reader, event);
        } else {
            take_field(event, which, reader, token);
            token = tare__json_skip(reader, token);
        }
        if (token == TARE__JSON_BROKEN)
            return false;
    }
    return token == TARE__JSON_END_OBJECT;
}

/* ---- the event --------------------------------------------------------------------------------------------- */
/* The struct is large; only its head has to be cleared before each event. */
static void clear(event *event)
{
    memset(event, 0, offsetof(struct event, name));
}

int tare__import_event(tare__importer *importer)
{
    static _Thread_local event event;
    clear(&event);
    event.pid[0] = event.tid[0] = event.id[0] = event.op_name[0] = event.label[0] = '\0';
    if (!read_event(&importer->reader, &event))
        return 1;
    importer->report->events++;
    importer->is_onnxruntime |= event.category == CATEGORY_NODE || event.category == CATEGORY_SESSION;
    importer->is_kineto |= event.category == CATEGORY_OPERATOR || event.category == CATEGORY_RUNTIME;
    return tare__import_take(importer, &event);
}
