/* emit: the table of output formats, and how their bytes reach the sink.
 * Constant; any thread.
 * Must not know the inside of any format. */
#include "emit.h"

#include <string.h>

#include "flush.h"

static const tare__emitter *const emitters[] = {
    &tare__emit_text,
    &tare__emit_json,
    &tare__emit_events,
    &tare__emit_chrome,
    &tare__emit_perfetto,
    &tare__emit_html,
    &tare__emit_folded,
    &tare__emit_speedscope,
    &tare__emit_pprof,
    &tare__emit_flamegraph,
};

const tare__emitter *tare__emit_find(const char *name)
{
    for (size_t i = 0; i < TARE__COUNT_OF(emitters); i++)
        if (strcmp(emitters[i]->name, name) == 0)
            return emitters[i];
    return NULL;
}

int tare__emit_flush(tare__text *text, const tare__emit_sink *sink, tare__error *error)
{
    if (text->failed)
        return tare__no_memory(error);
    if (text->length > 0 && sink->write(sink->context, text->data, text->length) != 0)
        return TARE_E_SYSTEM;
    tare__text_clear(text);
    return 0;
}

int tare__emit_end(tare__text *text, int status, const tare__emit_sink *sink, tare__error *error)
{
    if (!status)
        status = tare__emit_flush(text, sink, error);
    tare__text_free(text);
    return status;
}
