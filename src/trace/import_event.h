/* import_event: an event of a foreign trace as read. One thread.
 * Must not know how records are kept and written. */
#ifndef TARE_TRACE_IMPORT_EVENT_H
#define TARE_TRACE_IMPORT_EVENT_H

#include "import_inner.h"

typedef enum category {
    CATEGORY_OTHER,
    CATEGORY_OPERATOR,
    CATEGORY_PYTHON,
    CATEGORY_ANNOTATION,
    CATEGORY_RUNTIME,
    CATEGORY_GPU,
    CATEGORY_GPU_WAIT,
    CATEGORY_GPU_NOTE,
    CATEGORY_OWN,
    CATEGORY_NODE,
    CATEGORY_SESSION
} category;

typedef enum field {
    FIELD_PHASE,
    FIELD_CATEGORY,
    FIELD_NAME,
    FIELD_PID,
    FIELD_TID,
    FIELD_TIME,
    FIELD_DURATION,
    FIELD_ARGUMENTS,
    FIELD_ID,
    FIELD_UNKNOWN
} field;

#define EVENT_VALUES 16u

typedef struct event_value {
    char name[64];
    double value;
} event_value;

typedef struct event {
    category category;
    char phase[8];
    bool has_name, has_time, has_duration, has_stream, has_device, has_allocated, has_reserved, is_module;
    int64_t time, duration; /* ns */
    int64_t stream, device, device_type, device_id;
    uint64_t correlation;
    double allocated, reserved;
    uint32_t value_count;
    size_t name_bytes;
    char name[TARE__NAME_TEXT_MAX]; /* everything before it is cleared for each event */
    char pid[64], tid[64], id[64];
    char op_name[128];
    char label[128]; /* args.name */
    event_value values[EVENT_VALUES];
} event;

/* Converts it to records, or counts why it is not. 0 or a status. */
int tare__import_take(tare__importer *importer, const event *event);

#endif
