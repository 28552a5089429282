/* ort_open: loads ONNX Runtime and reads the functions it needs from the runtime's table, by their slots.
 * Any thread. No header of the runtime is needed: the table only grows at its end.
 * Must not know models. */
#include "ort.h"

#include <stdio.h>
#include <string.h>

#include "tare.h"

typedef struct api_base {
    const void *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
} api_base;

typedef struct entry {
    const api_base *(*base)(void);
} entry;

static const tare__dl_symbol symbols[] = {{"OrtGetApiBase", offsetof(entry, base), true}};

static const struct {
    unsigned slot;
    size_t place;
} slots[] = {
    {2, offsetof(tare__ort, error_message)},
    {3, offsetof(tare__ort, create_env)},
    {7, offsetof(tare__ort, create_session)},
    {8, offsetof(tare__ort, create_session_of)},
    {9, offsetof(tare__ort, run)},
    {10, offsetof(tare__ort, create_options)},
    {14, offsetof(tare__ort, enable_profiling)},
    {24, offsetof(tare__ort, set_threads)},
    {30, offsetof(tare__ort, input_count)},
    {31, offsetof(tare__ort, output_count)},
    {33, offsetof(tare__ort, input_type)},
    {36, offsetof(tare__ort, input_name)},
    {37, offsetof(tare__ort, output_name)},
    {49, offsetof(tare__ort, create_tensor)},
    {51, offsetof(tare__ort, tensor_data)},
    {55, offsetof(tare__ort, tensor_info)},
    {60, offsetof(tare__ort, element_type)},
    {61, offsetof(tare__ort, rank)},
    {62, offsetof(tare__ort, dims)},
    {65, offsetof(tare__ort, value_info)},
    {69, offsetof(tare__ort, cpu_memory)},
    {76, offsetof(tare__ort, free_memory)},
    {78, offsetof(tare__ort, default_allocator)},
    {93, offsetof(tare__ort, release_status)},
    {95, offsetof(tare__ort, release_session)},
    {96, offsetof(tare__ort, release_value)},
    {98, offsetof(tare__ort, release_type)},
    {99, offsetof(tare__ort, release_info)},
    {100, offsetof(tare__ort, release_options)},
    {110, offsetof(tare__ort, end_profiling)},
};

int tare__ort_open(tare__ort *ort, const char *path, tare__error *error)
{
    entry entry;
    *ort = (tare__ort){0};
    int status = tare__dl_open(&ort->dl, path, symbols, TARE__COUNT_OF(symbols), &entry, error);
    if (status)
        return status;
    const api_base *base = entry.base();
    const char *version = base && base->get_version ? base->get_version() : NULL;
    snprintf(ort->version, sizeof ort->version, "%s", version ? version : "?");
    const char *table = base && base->get_api ? base->get_api(TARE__ORT_API) : NULL;
    if (!table) {
        status = tare__fail(error, TARE_E_VERSION, "ONNX Runtime %s in '%.300s' is too old; 1.%d or newer is required",
                            ort->version, ort->dl.path, TARE__ORT_API);
        tare__dl_close(&ort->dl);
        return status;
    }
    for (size_t i = 0; i < TARE__COUNT_OF(slots); i++)
        memcpy((char *)ort + slots[i].place, table + slots[i].slot * sizeof(void *), sizeof(void *));
    return 0;
}

int tare__ort_check(const tare__ort *ort, void *status, const char *what, tare__error *error)
{
    if (TARE__LIKELY(!status))
        return 0;
    const char *words = ort->error_message(status);
    int code =
        tare__fail(error, TARE_E_INPUT, "%s: %.400s", what, words && *words ? words : "no reason given by the runtime");
    ort->release_status(status);
    return code;
}
