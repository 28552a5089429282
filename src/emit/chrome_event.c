/* chrome_event: the pieces of a trace event, and who is who.
 * Owned by the calling thread.
 * Must not know what the events add up to. */
#include "chrome.h"

#include <math.h>
#include <string.h>

/* ---- pieces of an event -------------------------------------------------------------------------------- */
void tare__chrome_put_whole(chrome *to, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--at = '-';
    tare__text_append(&to->text, at, (size_t)(digits + sizeof digits - at));
}

void tare__chrome_put_us(chrome *to, int64_t ns)
{
    uint64_t whole = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, rest = whole % 1000;
    if (ns < 0)
        PUT(to, "-");
    tare__chrome_put_whole(to, (int64_t)(whole / 1000));
    const char fraction[] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                             (char)('0' + rest % 10)};
    if (rest)
        tare__text_append(&to->text, fraction, sizeof fraction);
}

int64_t tare__chrome_ns_of(const chrome *to, uint64_t ticks)
{
    return (int64_t)llround(tare__trace_ns(to->trace, ticks));
}

void tare__chrome_put_text(chrome *to, const char *text)
{
    tare__json json;
    tare__json_begin(&json, &to->text, false);
    tare__json_string(&json, text);
}

void tare__chrome_put_double(chrome *to, double value)
{
    tare__json json;
    if (fabs(value) < 1e15 && value == floor(value)) {
        tare__chrome_put_whole(to, (int64_t)value);
        return;
    }
    tare__json_begin(&json, &to->text, false);
    tare__json_double(&json, value);
}

static void quote_name(chrome *to, uint32_t id, tare__text *out)
{
    tare__json json;
    tare__text_clear(&to->scratch);
    tare__lanes_name(to->trace, id, &to->scratch);
    tare__json_begin(&json, out, false);
    tare__json_text(&json, to->scratch.data, to->scratch.length);
    to->text.failed |= to->scratch.failed;
}

/* Each name is escaped once. */
void tare__chrome_put_name(chrome *to, uint32_t id)
{
    size_t before = to->names_room;
    if (!tare__trace_name_at(to->trace, id) ||
        !tare__array_fit(&to->names, &to->names_room, (size_t)id + 1, sizeof *to->names)) {
        quote_name(to, id, &to->text);
        return;
    }
    memset(to->names + before, 0, (to->names_room - before) * sizeof *to->names);
    quoted *name = &to->names[id];
    if (!name->bytes) {
        name->at = to->quotes.length;
        quote_name(to, id, &to->quotes);
        name->bytes = (uint32_t)(to->quotes.length - name->at);
        to->text.failed |= to->quotes.failed;
    }
    if (!to->quotes.failed)
        tare__text_append(&to->text, to->quotes.data + name->at, name->bytes);
}

void tare__chrome_begin_event(chrome *to, const char *phase)
{
    if (to->any)
        PUT(to, ",\n{\"ph\":\"");
    else
        PUT(to, "\n{\"ph\":\"");
    to->any = true;
    tare__text_append(&to->text, phase, 1);
    PUT(to, "\"");
}

void tare__chrome_put_place(chrome *to, int64_t pid, int64_t tid)
{
    PUT(to, ",\"pid\":");
    tare__chrome_put_whole(to, pid);
    PUT(to, ",\"tid\":");
    tare__chrome_put_whole(to, tid);
}

int tare__chrome_end_event(chrome *to)
{
    PUT(to, "}");
    return tare__emit_flush_piece(&to->text, to->sink, to->error);
}

void tare__chrome_begin_named(chrome *to, const char *phase, const char *category, uint32_t name,
                              int64_t at_ns)
{
    tare__chrome_begin_event(to, phase);
    PUT(to, ",\"cat\":\"");
    tare__text_string(&to->text, category);
    PUT(to, "\",\"name\":");
    tare__chrome_put_name(to, name);
    PUT(to, ",\"ts\":");
    tare__chrome_put_us(to, at_ns);
}

/* ---- who is who ---------------------------------------------------------------------------------------- */
int tare__chrome_put_about(chrome *to, const char *what, int64_t pid, int64_t tid, const tare__text *name,
                           int64_t order)
{
    tare__chrome_begin_event(to, "M");
    tare__chrome_put_place(to, pid, tid);
    tare__text_format(&to->text, ",\"name\":\"%s\",\"args\":{", what);
    if (name) {
        tare__json json;
        PUT(to, "\"name\":");
        tare__json_begin(&json, &to->text, false);
        tare__json_text(&json, name->data, name->length);
        to->text.failed |= name->failed;
    } else {
        PUT(to, "\"sort_index\":");
        tare__chrome_put_whole(to, order);
    }
    PUT(to, "}");
    return tare__chrome_end_event(to);
}

static int put_process(chrome *to, int64_t pid, int64_t order)
{
    int status = tare__chrome_put_about(to, "process_name", pid, 0, &to->scratch, 0);
    return status ? status : tare__chrome_put_about(to, "process_sort_index", pid, 0, NULL, order);
}

static int put_processes(chrome *to)
{
    size_t n;
    const tare__trace_process *rows = tare__trace_processes(to->trace, &n);
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        tare__text_clear(&to->scratch);
        tare__lanes_process_name(&to->lanes, &rows[i], &to->scratch);
        status = put_process(to, tare__lanes_pid(&to->lanes, &rows[i]), (int64_t)i);
    }
    return status;
}

static int put_threads(chrome *to)
{
    size_t n = tare__trace_stream_count(to->trace);
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        uint32_t id = tare__trace_stream_row(to->trace, i)->id;
        int64_t pid = tare__lanes_pid_of_stream(&to->lanes, id), tid = tare__lanes_tid(&to->lanes, id);
        tare__text_clear(&to->scratch);
        tare__lanes_thread_name(&to->lanes, id, &to->scratch);
        status = tare__chrome_put_about(to, "thread_name", pid, tid, &to->scratch, 0);
        if (!status)
            status = tare__chrome_put_about(to, "thread_sort_index", pid, tid, NULL, (int64_t)i);
    }
    return status;
}

/* Processes that were only looked at from outside, and the machine. */
static int put_sampled(chrome *to)
{
    size_t n;
    const tare__trace_series *rows = tare__trace_series_rows(to->trace, &n);
    bool machine = false;
    int status = 0;
    for (size_t i = 0; i < n && !status; i++) {
        int64_t pid = tare__gauge_pid(&rows[i]);
        bool first = !pid && !machine;
        machine |= !pid;
        tare__text_clear(&to->scratch);
        if (rows[i].subject == TARE__SUBJECT_PROCESS && !tare__lanes_process_of_pid(&to->lanes, pid)) {
            tare__text_string(&to->scratch, rows[i].label && rows[i].label[0] ? rows[i].label : "process");
            status = tare__chrome_put_about(to, "process_name", pid, 0, &to->scratch, 0);
        } else if (first) {
            tare__text_string(&to->scratch, "machine");
            status = put_process(to, TARE__LANES_MACHINE, -1);
        }
    }
    return status;
}

int tare__chrome_put_people(chrome *to)
{
    int status = put_processes(to);
    if (!status)
        status = put_threads(to);
    return status ? status : put_sampled(to);
}

int tare__chrome_at_stream(chrome *to, uint32_t stream)
{
    if (to->stream == stream && to->pid)
        return 0;
    to->stream = stream;
    to->pid = tare__lanes_pid_of_stream(&to->lanes, stream);
    to->tid = tare__lanes_tid(&to->lanes, stream);
    if (!tare__lanes_is_stray(&to->lanes, stream))
        return 0;
    tare__text_clear(&to->scratch);
    tare__lanes_process_name(&to->lanes, NULL, &to->scratch);
    int status = tare__chrome_put_about(to, "process_name", to->pid, 0, &to->scratch, 0);
    tare__text_clear(&to->scratch);
    tare__lanes_thread_name(&to->lanes, stream, &to->scratch);
    return status ? status : tare__chrome_put_about(to, "thread_name", to->pid, to->tid, &to->scratch, 0);
}
