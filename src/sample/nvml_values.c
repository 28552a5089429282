/* nvml_values: one value of one GPU, by the best function that the driver has for it. No state.
 * The thread that holds the handle. Never the calls that take milliseconds: total energy, PCIe throughput.
 * Must not know series, nor intervals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_api.h"

#define SECOND_NS 1000000000u
#define SAMPLES_MAX 4096u

int tare__nvml_busy(const tare__nvml *nvml, tare__nvml_device device, tare__nvml_utilization *out)
{
    return nvml->api.utilization ? nvml->api.utilization(device, out) : TARE__NVML_FUNCTION_NOT_FOUND;
}

/* ---- the window ---------------------------------------------------------------------------------- */
/* Documented as 1/6 s to 1 s, depending on the product. NVML's own buffer of samples shows which. */
static uint64_t window_of(const tare__nvml_sample *samples, unsigned n)
{
    uint64_t span_us = n ? samples[n - 1].timestamp_us - samples[0].timestamp_us : 0;
    if (n < 4 || samples[n - 1].timestamp_us <= samples[0].timestamp_us)
        return SECOND_NS;
    uint64_t each = span_us * 1000 / (n - 1);
    if (each < SECOND_NS / 6)
        return SECOND_NS / 6;
    return each > SECOND_NS ? SECOND_NS : each;
}

uint64_t tare__nvml_window_ns(const tare__nvml *nvml, tare__nvml_device device)
{
    unsigned n = 0, type = 0;
    uint64_t window = SECOND_NS;
    if (!nvml->api.samples || nvml->api.samples(device, TARE__NVML_SAMPLES_BUSY, 0, &type, &n, NULL) != 0 ||
        n == 0 || n > SAMPLES_MAX)
        return window;
    tare__nvml_sample *samples = calloc(n, sizeof *samples);
    unsigned got = n;
    if (samples && nvml->api.samples(device, TARE__NVML_SAMPLES_BUSY, 0, &type, &got, samples) == 0)
        window = window_of(samples, got < n ? got : n);
    free(samples);
    return window;
}

/* ---- memory, power, temperature, clocks ------------------------------------------------------------ */
/* The newer function excludes memory reserved by the driver from `used`. */
int tare__nvml_memory_of(const tare__nvml *nvml, tare__nvml_device device, int64_t *used, int64_t *total)
{
    tare__nvml_memory_v2 newer = {.version = TARE__NVML_MEMORY_V2};
    tare__nvml_memory older;
    int result = nvml->api.memory_v2 ? nvml->api.memory_v2(device, &newer) : TARE__NVML_FUNCTION_NOT_FOUND;
    if (result == 0) {
        *used = (int64_t)newer.used;
        *total = (int64_t)newer.total;
        return 0;
    }
    if (result == TARE__NVML_GPU_IS_LOST || !nvml->api.memory)
        return result;
    result = nvml->api.memory(device, &older);
    if (result == 0) {
        *used = (int64_t)older.used;
        *total = (int64_t)older.total;
    }
    return result;
}

static bool power_now(const tare__nvml *nvml, tare__nvml_device device, int64_t *milliwatts, int *result)
{
    tare__nvml_field field = {.field = TARE__NVML_FIELD_POWER_INSTANT};
    *result = nvml->api.fields ? nvml->api.fields(device, 1, &field) : TARE__NVML_FUNCTION_NOT_FOUND;
    if (*result == 0)
        *result = field.result;
    if (*result != 0)
        return false;
    switch (field.type) {
    case TARE__NVML_TYPE_UI: *milliwatts = field.value.ui; return true;
    case TARE__NVML_TYPE_UL: *milliwatts = (int64_t)field.value.ul; return true;
    case TARE__NVML_TYPE_ULL: *milliwatts = (int64_t)field.value.ull; return true;
    case TARE__NVML_TYPE_SLL: *milliwatts = field.value.sll; return true;
    default: *result = TARE__NVML_NOT_SUPPORTED; return false;
    }
}

/* The older function returns a mean of the last second on recent GPUs, and takes twenty times as long. */
int tare__nvml_power_mw(const tare__nvml *nvml, tare__nvml_device device, int64_t *milliwatts)
{
    unsigned value;
    int result;
    if (power_now(nvml, device, milliwatts, &result) || result == TARE__NVML_GPU_IS_LOST || !nvml->api.power)
        return result;
    result = nvml->api.power(device, &value);
    if (result == 0)
        *milliwatts = value;
    return result;
}

int tare__nvml_celsius(const tare__nvml *nvml, tare__nvml_device device, int64_t *celsius)
{
    unsigned value = 0;
    int result = nvml->api.temperature ? nvml->api.temperature(device, TARE__NVML_SENSOR_GPU, &value)
                                       : TARE__NVML_FUNCTION_NOT_FOUND;
    *celsius = value;
    return result;
}

int tare__nvml_clock_hz(const tare__nvml *nvml, tare__nvml_device device, unsigned which, int64_t *hertz)
{
    unsigned megahertz = 0;
    int result = nvml->api.clock ? nvml->api.clock(device, which, &megahertz) : TARE__NVML_FUNCTION_NOT_FOUND;
    *hertz = (int64_t)megahertz * 1000000;
    return result;
}

int tare__nvml_reasons(const tare__nvml *nvml, tare__nvml_device device, int64_t *bits)
{
    unsigned long long value = 0;
    int result = nvml->api.reasons ? nvml->api.reasons(device, &value) : TARE__NVML_FUNCTION_NOT_FOUND;
    *bits = (int64_t)value;
    return result;
}

int tare__nvml_ecc(const tare__nvml *nvml, tare__nvml_device device, int64_t *errors)
{
    unsigned long long value = 0;
    int result = nvml->api.ecc
                     ? nvml->api.ecc(device, TARE__NVML_ECC_UNCORRECTED, TARE__NVML_ECC_VOLATILE, &value)
                     : TARE__NVML_FUNCTION_NOT_FOUND;
    *errors = (int64_t)value;
    return result;
}

/* ---- processes ------------------------------------------------------------------------------------ */
/* Drivers 535.43 to 535.97 use a larger record in the newest function than earlier and later ones. */
static bool has_odd_records(const tare__nvml *nvml)
{
    unsigned major = 0, minor = 0;
    return sscanf(nvml->driver, "%u.%u", &major, &minor) == 2 && major == 535 && minor >= 43 && minor < 98;
}

static void add_process(tare__nvml_process *out, unsigned *n, unsigned pid, unsigned long long used)
{
    for (unsigned i = 0; i < *n; i++)
        if (out[i].pid == pid) {
            /* A process that computes and draws is listed twice with the same value; one with several compute
             * instances has a line for each. The larger is never too much. */
            if (out[i].used == TARE__NVML_NOT_AVAILABLE || (used != TARE__NVML_NOT_AVAILABLE && used > out[i].used))
                out[i].used = used;
            return;
        }
    if (*n < TARE__NVML_PROCESSES_MAX)
        out[(*n)++] = (tare__nvml_process){.pid = pid, .used = used};
}

static int list(tare__nvml_device device, tare__nvml_processes_call *call, size_t record_bytes,
                tare__nvml_process *out, unsigned *n)
{
    tare__nvml_process room[TARE__NVML_PROCESSES_MAX]; /* the largest record */
    unsigned count = TARE__NVML_PROCESSES_MAX;
    int result = call(device, &count, room);
    if (result)
        return result;
    for (unsigned i = 0; i < count && i < TARE__NVML_PROCESSES_MAX; i++) {
        tare__nvml_process_v1 one; /* common beginning of both records */
        memcpy(&one, (const char *)room + i * record_bytes, sizeof one);
        add_process(out, n, one.pid, one.used);
    }
    return 0;
}

int tare__nvml_processes(const tare__nvml *nvml, tare__nvml_device device, tare__nvml_process *out, unsigned *n)
{
    const struct {
        tare__nvml_processes_call *newer, *older;
    } calls[] = {{nvml->api.compute, nvml->api.compute_v1}, {nvml->api.graphics, nvml->api.graphics_v1}};
    int first = TARE__NVML_FUNCTION_NOT_FOUND;
    bool any = false, odd = has_odd_records(nvml);
    *n = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(calls); i++) {
        int result = TARE__NVML_FUNCTION_NOT_FOUND;
        if (calls[i].newer && !odd)
            result = list(device, calls[i].newer, sizeof(tare__nvml_process), out, n);
        else if (calls[i].older)
            result = list(device, calls[i].older, sizeof(tare__nvml_process_v1), out, n);
        bool lacks = result == TARE__NVML_FUNCTION_NOT_FOUND || result == TARE__NVML_NOT_SUPPORTED;
        if (result && !lacks)
            return result;
        any = any || result == 0;
        if (i == 0)
            first = result;
    }
    return any ? 0 : first;
}
