/* chrome_event: the parts of a trace event, processes and threads.
 * Owned by the calling thread.
 * Must not know what is computed from the events. */
#include "chrome.h"

#include <math.h>

/* ---- parts of an event --------------------------------------------------------------------------------- */
void tare__chrome_put_whole(chrome *to, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--at = '-';
    tare__text_append(&to->out.text, at, (size_t)(digits + sizeof digits - at));
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
        tare__text_append(&to->out.text, fraction, sizeof fraction);
}

void tare__chrome_put_text(chrome *to, const char *text)
{
    tare__json json;
    tare__json_begin(&json, &to->out.text, false);
    tare__json_string(&json, text);
}

void tare__chrome_put_double(chrome *to, double value)
{
    tare__json json;
    if (fabs(value) < 1e15 && value == floor(value)) {
        tare__chrome_put_whole(to, (int64_t)value);
        return;
    }
    tare__json_begin(&json, &to->out.text, false);
    tare__json_double(&json, value);
}

static void quote_name(chrome *to, uint32_t id, tare__text *out)
{
    tare__json json;
    tare__text_clear(&to->out.scratch);
    tare__lanes_name(to->out.trace, id, &to->out.scratch);
    tare__json_begin(&json, out, false);
    tare__json_text(&json, to->out.scratch.data, to->out.scratch.length);
    to->out.text.failed |= to->out.scratch.failed;
}

/* Each name is escaped once. */
void tare__chrome_put_name(chrome *to, uint32_t id)
{
    if (!tare__trace_name_at(to->out.trace, id) ||
        !tare__array_fit_zeroed(&to->names, &to->names_room, (size_t)id + 1, sizeof *to->names)) {
        quote_name(to, id, &to->out.text);
        return;
    }
    quoted *name = &to->names[id];
    if (!name->bytes) {
        name->at = to->quotes.length;
        quote_name(to, id, &to->quotes);
        name->bytes = (uint32_t)(to->quotes.length - name->at);
        to->out.text.failed |= to->quotes.failed;
    }
    if (!to->quotes.failed)
        tare__text_append(&to->out.text, to->quotes.data + name->at, name->bytes);
}

void tare__chrome_begin_event(chrome *to, const char *phase)
{
    if (to->any)
        PUT(to, ",\n{\"ph\":\"");
    else
        PUT(to, "\n{\"ph\":\"");
    to->any = true;
    tare__text_append(&to->out.text, phase, 1);
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
    return tare__export_piece(&to->out);
}

void tare__chrome_begin_named(chrome *to, const char *phase, uint32_t category, uint32_t name, uint64_t ticks)
{
    tare__chrome_begin_event(to, phase);
    PUT(to, ",\"cat\":\"");
    tare__text_string(&to->out.text, tare__export_category(category));
    PUT(to, "\",\"name\":");
    tare__chrome_put_name(to, name);
    PUT(to, ",\"ts\":");
    tare__chrome_put_us(to, tare__export_ns(&to->out, ticks));
}

void tare__chrome_put_lasts(chrome *to, const tare__export_span *span)
{
    int64_t begin = tare__export_ns(&to->out, span->begin), end = tare__export_ns(&to->out, span->end);
    PUT(to, ",\"dur\":");
    tare__chrome_put_us(to, end > begin ? end - begin : 0);
}

/* ---- processes and threads ----------------------------------------------------------------------------- */
/* Sets a name or, if that is NULL, a sort position. */
static int put_about(chrome *to, const char *what, int64_t pid, int64_t tid, const tare__text *name, int64_t order)
{
    tare__chrome_begin_event(to, "M");
    tare__chrome_put_place(to, pid, tid);
    tare__text_format(&to->out.text, ",\"name\":\"%s\",\"args\":{", what);
    if (name) {
        tare__json json;
        PUT(to, "\"name\":");
        tare__json_begin(&json, &to->out.text, false);
        tare__json_text(&json, name->data, name->length);
    } else {
        PUT(to, "\"sort_index\":");
        tare__chrome_put_whole(to, order);
    }
    PUT(to, "}");
    return tare__chrome_end_event(to);
}

int tare__chrome_put_process(void *context, int64_t pid, const tare__text *name, int64_t order)
{
    int status = put_about(context, "process_name", pid, 0, name, 0);
    return status ? status : put_about(context, "process_sort_index", pid, 0, NULL, order);
}

int tare__chrome_put_thread(void *context, const tare__export_place *place, const tare__text *name, int64_t order)
{
    int status = put_about(context, "thread_name", place->pid, place->tid, name, 0);
    return status ? status : put_about(context, "thread_sort_index", place->pid, place->tid, NULL, order);
}
