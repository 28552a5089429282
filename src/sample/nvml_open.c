/* nvml_open: finds NVIDIA's management library, initializes it and lists the GPUs and their MIG instances.
 * The thread that holds the handle; may block for as long as the driver does.
 * Must not know what is sampled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_api.h"
#include "tare.h"

#define LIBRARY "libnvidia-ml.so.1"

#define SLOT(member) offsetof(tare__nvml_api, member)
static const tare__dl_symbol symbols[] = {
    {"nvmlInit_v2", SLOT(init), true},
    {"nvmlInit", SLOT(init), true},
    {"nvmlShutdown", SLOT(shutdown), true},
    {"nvmlDeviceGetCount_v2", SLOT(count), true},
    {"nvmlDeviceGetCount", SLOT(count), true},
    {"nvmlDeviceGetHandleByIndex_v2", SLOT(by_index), true},
    {"nvmlDeviceGetHandleByIndex", SLOT(by_index), true},
    {"nvmlErrorString", SLOT(error_string), false},
    {"nvmlSystemGetDriverVersion", SLOT(driver_version), false},
    {"nvmlDeviceGetName", SLOT(name), false},
    {"nvmlDeviceGetUtilizationRates", SLOT(utilization), false},
    {"nvmlDeviceGetSamples", SLOT(samples), false},
    {"nvmlDeviceGetMemoryInfo", SLOT(memory), false},
    {"nvmlDeviceGetMemoryInfo_v2", SLOT(memory_v2), false},
    {"nvmlDeviceGetComputeRunningProcesses_v3", SLOT(compute), false},
    {"nvmlDeviceGetComputeRunningProcesses_v2", SLOT(compute), false},
    {"nvmlDeviceGetComputeRunningProcesses", SLOT(compute_v1), false},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", SLOT(graphics), false},
    {"nvmlDeviceGetGraphicsRunningProcesses_v2", SLOT(graphics), false},
    {"nvmlDeviceGetGraphicsRunningProcesses", SLOT(graphics_v1), false},
    {"nvmlDeviceGetFieldValues", SLOT(fields), false},
    {"nvmlDeviceGetPowerUsage", SLOT(power), false},
    {"nvmlDeviceGetTemperature", SLOT(temperature), false},
    {"nvmlDeviceGetClockInfo", SLOT(clock), false},
    {"nvmlDeviceGetCurrentClocksEventReasons", SLOT(reasons), false},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", SLOT(reasons), false},
    {"nvmlDeviceGetHandleByUUID", SLOT(by_uuid), false},
    {"nvmlDeviceGetTotalEnergyConsumption", SLOT(energy), false},
    {"nvmlDeviceGetTotalEccErrors", SLOT(ecc), false},
    {"nvmlDeviceGetMigMode", SLOT(mig_mode), false},
    {"nvmlDeviceGetMaxMigDeviceCount", SLOT(mig_max), false},
    {"nvmlDeviceGetMigDeviceHandleByIndex", SLOT(mig_device), false},
};

/* The library's own messages do not say what to do. */
static const struct {
    int result;
    const char *words;
} words[] = {
    {TARE__NVML_UNINITIALIZED, "NVML is not initialised"},
    {TARE__NVML_NOT_SUPPORTED, "this GPU does not report it"},
    {TARE__NVML_NO_PERMISSION, "permission denied"},
    {TARE__NVML_INSUFFICIENT_POWER, "the power cables of a GPU are not attached"},
    {TARE__NVML_DRIVER_NOT_LOADED, "the NVIDIA driver is not loaded"},
    {TARE__NVML_TIMEOUT, "the NVIDIA driver did not answer in time"},
    {TARE__NVML_IRQ_ISSUE, "the kernel reports an interrupt problem of a GPU"},
    {TARE__NVML_LIBRARY_NOT_FOUND, "a library of the NVIDIA driver is missing"},
    {TARE__NVML_FUNCTION_NOT_FOUND, "not supported by this NVIDIA driver"},
    {TARE__NVML_CORRUPTED_INFOROM, "the GPU's infoROM is damaged"},
    {TARE__NVML_GPU_IS_LOST, "the GPU was lost: it fell off the bus or cannot be reached"},
    {TARE__NVML_RESET_REQUIRED, "the GPU must be reset before it can be used again"},
    {TARE__NVML_OPERATING_SYSTEM, "the operating system blocks the GPU's driver"},
    {TARE__NVML_LIB_RM_VERSION_MISMATCH,
     "libnvidia-ml.so.1 and the loaded NVIDIA driver are of different versions"},
    {TARE__NVML_MEMORY, "out of memory"},
};

const char *tare__nvml_words(const tare__nvml *nvml, int result, char out[256])
{
    for (size_t i = 0; i < TARE__COUNT_OF(words); i++)
        if (words[i].result == result) {
            snprintf(out, 256, "%s", words[i].words);
            return out;
        }
    const char *own = nvml->api.error_string ? nvml->api.error_string(result) : NULL;
    snprintf(out, 256, "NVML: %.200s (%d)", own ? own : "error", result);
    return out;
}

static const char *library_name(void)
{
    const char *given = getenv("TARE_NVML");
    return given && *given ? given : LIBRARY;
}

static int not_found(const char *name, tare__error *error)
{
    if (strcmp(name, LIBRARY) == 0)
        return tare__fail(error, TARE_E_SYSTEM, "no NVIDIA driver (" LIBRARY " was not found)");
    return tare__fail(error, TARE_E_SYSTEM, "no NVIDIA driver (TARE_NVML: %s cannot be loaded)", name);
}

bool tare__nvml_present(tare__error *error)
{
    tare__dl library = {0};
    tare__error why;
    bool present = tare__dl_open(&library, library_name(), NULL, 0, NULL, &why) == 0;
    if (!present)
        not_found(library_name(), error);
    tare__dl_close(&library);
    return present;
}

static int load(tare__nvml *nvml, tare__error *error)
{
    tare__error why;
    int status = tare__dl_open(&nvml->library, library_name(), symbols, TARE__COUNT_OF(symbols), &nvml->api, &why);
    if (status == TARE_E_VERSION)
        return tare__fail(error, status, "the NVIDIA driver is too old for Tare (%.300s)", why.text);
    /* It exists, but the loader refuses it (for example, wrong architecture): then its message is useful. */
    if (status && !strstr(why.text, "No such file"))
        return tare__fail(error, status, "the NVIDIA driver's library cannot be loaded (%.300s)", why.text);
    return status ? not_found(library_name(), error) : 0;
}

static int refused(tare__nvml *nvml, int result, tare__error *error)
{
    char text[256];
    nvml->result = result;
    return tare__fail(error, TARE_E_SYSTEM, "%s", tare__nvml_words(nvml, result, text));
}

static void name_gpu(tare__nvml *nvml, tare__nvml_gpu *gpu)
{
    if (!nvml->api.name || nvml->api.name(gpu->device, gpu->name, sizeof gpu->name) != 0)
        snprintf(gpu->name, sizeof gpu->name, "%s", gpu->parent < 0 ? "NVIDIA GPU" : "MIG instance");
    gpu->name[sizeof gpu->name - 1] = '\0';
}

static tare__nvml_gpu *add_gpu(tare__nvml *nvml, int32_t parent)
{
    if (nvml->gpu_count >= TARE__NVML_GPUS_MAX)
        return NULL;
    tare__nvml_gpu *gpu = &nvml->gpus[nvml->gpu_count];
    gpu->index = nvml->gpu_count++;
    gpu->parent = parent;
    return gpu;
}

static void find_gpus(tare__nvml *nvml, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        tare__nvml_gpu *gpu = add_gpu(nvml, -1);
        unsigned now = 0, pending = 0;
        if (!gpu)
            break;
        gpu->failure = nvml->api.by_index(i, &gpu->device);
        if (gpu->failure) {
            snprintf(gpu->name, sizeof gpu->name, "NVIDIA GPU");
            continue;
        }
        name_gpu(nvml, gpu);
        gpu->divided = nvml->api.mig_mode && nvml->api.mig_mode(gpu->device, &now, &pending) == 0 && now == 1;
    }
    nvml->physical = nvml->gpu_count;
}

/* Instance numbers have gaps: each is tried. */
static void find_instances(tare__nvml *nvml, uint32_t parent)
{
    unsigned most = 0;
    const tare__nvml_api *api = &nvml->api;
    if (!api->mig_max || !api->mig_device || api->mig_max(nvml->gpus[parent].device, &most) != 0)
        return;
    for (unsigned i = 0; i < most; i++) {
        tare__nvml_device device;
        if (api->mig_device(nvml->gpus[parent].device, i, &device) != 0)
            continue;
        tare__nvml_gpu *instance = add_gpu(nvml, (int32_t)parent);
        if (!instance)
            return;
        instance->device = device;
        name_gpu(nvml, instance);
    }
}

int tare__nvml_open(tare__nvml *nvml, tare__error *error)
{
    unsigned count = 0;
    memset(nvml, 0, sizeof *nvml);
    int status = load(nvml, error);
    if (status)
        return status;
    int result = nvml->api.init();
    if (result)
        return refused(nvml, result, error);
    nvml->ready = true;
    if (nvml->api.driver_version && nvml->api.driver_version(nvml->driver, sizeof nvml->driver) != 0)
        nvml->driver[0] = '\0';
    nvml->driver[sizeof nvml->driver - 1] = '\0';
    result = nvml->api.count(&count);
    if (result)
        return refused(nvml, result, error);
    if (count == 0)
        return tare__fail(error, TARE_E_SYSTEM, "the NVIDIA driver is loaded, but no GPU is accessible to this user");
    find_gpus(nvml, count);
    for (uint32_t i = 0; i < nvml->physical; i++)
        if (nvml->gpus[i].divided)
            find_instances(nvml, i);
    return 0;
}

void tare__nvml_close(tare__nvml *nvml)
{
    if (nvml->ready)
        nvml->api.shutdown();
    nvml->ready = false;
    tare__dl_close(&nvml->library);
}

void tare__nvml_missing(const tare__nvml *nvml, tare__text *out)
{
    tare__dl_missing(symbols, TARE__COUNT_OF(symbols), &nvml->api, out);
}
