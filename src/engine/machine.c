/* machine: this machine and the revision in the current directory, in figures and as JSON.
 * Any thread.
 * Must not know what was measured. */
#include <stdio.h>

#include "collect/collect.h"
#include "engine.h"
#include "format/format.h"

typedef struct machine {
    char host[256], kernel[256], cpu_model[256], revision[256];
    uint32_t cpus;
    double memory_bytes;
} machine;

static void take_field(machine *of, uint32_t tag, const uint8_t *data, size_t bytes)
{
    char *const texts[] = {tag == TARE__FIELD_HOST ? of->host : NULL, tag == TARE__FIELD_KERNEL ? of->kernel : NULL,
                           tag == TARE__FIELD_CPU_MODEL ? of->cpu_model : NULL,
                           tag == TARE__FIELD_REVISION ? of->revision : NULL};
    for (size_t i = 0; i < TARE__COUNT_OF(texts); i++)
        if (texts[i])
            snprintf(texts[i], 256, "%.*s", (int)(bytes < 255 ? bytes : 255), (const char *)data);
    if (tag == TARE__FIELD_CPUS)
        of->cpus = (uint32_t)tare__field_value(data, bytes);
    if (tag == TARE__FIELD_MEMORY)
        of->memory_bytes = (double)tare__field_value(data, bytes);
}

static machine find_machine(void)
{
    machine found = {0};
    tare__text fields = {0};
    uint32_t tag;
    const uint8_t *data;
    size_t bytes;
    tare__tell_environment(&fields);
    tare__reader reader = {.at = (const uint8_t *)fields.data, .end = (const uint8_t *)fields.data + fields.length};
    while (!fields.failed && fields.data && tare__field_next(&reader, &tag, &data, &bytes))
        take_field(&found, tag, data, bytes);
    tare__text_free(&fields);
    return found;
}

static const char *known(const char *text)
{
    return *text ? text : NULL;
}

static int describe(const machine *here, tare__figures *figures)
{
    figures->host = tare__figures_text(figures, known(here->host));
    figures->cpu_model = tare__figures_text(figures, known(here->cpu_model));
    figures->revision = tare__figures_text(figures, known(here->revision));
    return tare__figures_set_machine(figures, figures->host, figures->cpu_model, here->cpus, here->memory_bytes,
                                     known(here->kernel));
}

int tare__engine_describe(tare__figures *figures)
{
    machine here = find_machine();
    return describe(&here, figures);
}

int tare_engine_machine(tare_engine_write *write, void *context, char error[TARE_ENGINE_ERROR])
{
    machine here = find_machine();
    tare__figures *figures = tare__figures_new("machine");
    tare__text text = {0};
    tare__json json;
    int status = figures ? describe(&here, figures) : TARE_E_MEMORY;
    if (!status) {
        tare__json_begin(&json, &text, false);
        tare__json_object(&json);
        tare__json_put_string(&json, "host", figures->host);
        tare__json_put_string(&json, "cpu_model", figures->cpu_model);
        tare__json_put_string(&json, "kernel", known(here.kernel));
        tare__json_put_unsigned(&json, "cpus", here.cpus);
        tare__json_put_unsigned(&json, "memory_bytes", (uint64_t)here.memory_bytes);
        tare__json_put_string(&json, "fingerprint", figures->machine);
        tare__json_put_string(&json, "revision", figures->revision);
        tare__json_end_object(&json);
    }
    tare__figures_free(figures);
    return tare__engine_finish(status, "", &text, write, context, error);
}
