/* fake nvml: a look-alike libnvidia-ml.so.1 for machines without a GPU. FAKE_OLD leaves out what old drivers lack,
 * FAKE_BARE what no driver lacks. Any thread, as far as the tests need.
 * Must not know Tare: the types are written once more, so that a wrong layout shows. */
#define _GNU_SOURCE
#include "nvml.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

typedef struct device {
    unsigned gpu, instance; /* instance + 1; 0: the whole GPU */
} device;

static device devices[FAKE_GPUS_MAX][8];

API fake_nvml_state fake_nvml = {
    .gpus = 1,
    .busy = 80, .memory_busy = 25, .power_mw = 300000, .instant_mw = 310000, .celsius = 45, .clock = 1980,
    .memory_clock = 2619, .total = 150ull << 30, .used = 10ull << 30, .reserved = 1ull << 30, .reasons = 4,
    .period_us = 200000, .driver = "580.65.06", .lost_gpu = 99,
};

/* ---- from the environment ---------------------------------------------------------------------------- */
static const struct {
    const char *name;
    size_t at;
} settings[] = {
#define SETTING(member) {#member, offsetof(fake_nvml_state, member)}
    SETTING(init), SETTING(count), SETTING(handle), SETTING(lost), SETTING(field), SETTING(utilization),
    SETTING(gpus), SETTING(lost_gpu), SETTING(lost_after), SETTING(mig), SETTING(slow_ms), SETTING(busy),
    SETTING(power_mw), SETTING(instant_mw), SETTING(celsius), SETTING(period_us), SETTING(children), SETTING(ecc),
};

static void read_environment(void)
{
    const char *given = getenv("FAKE_NVML");
    char name[32];
    unsigned value;
    int taken;
    while (given && sscanf(given, " %31[a-z_]=%u%n", name, &value, &taken) == 2) {
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
            if (strcmp(settings[i].name, name) == 0)
                memcpy((char *)&fake_nvml + settings[i].at, &value, sizeof value);
        given += taken;
    }
}

static int failure(const device *of)
{
    if (!fake_nvml.lost || of->gpu != fake_nvml.lost_gpu)
        return 0;
    return fake_nvml.calls.memory > fake_nvml.lost_after ? fake_nvml.lost : 0;
}

/* ---- library ----------------------------------------------------------------------------------------- */
static int init(void)
{
    read_environment();
    usleep(fake_nvml.slow_ms * 1000);
    fake_nvml.calls.init++;
    return fake_nvml.init;
}

__attribute__((unused)) static int count(unsigned *n)
{
    *n = fake_nvml.gpus;
    return fake_nvml.count;
}

static int by_index(unsigned index, device **out)
{
    if (index >= fake_nvml.gpus || index >= FAKE_GPUS_MAX)
        return 2;
    if (fake_nvml.handle && index == fake_nvml.gpus - 1)
        return fake_nvml.handle;
    devices[index][0] = (device){.gpu = index};
    *out = &devices[index][0];
    return 0;
}

API int nvmlShutdown(void);
API int nvmlShutdown(void)
{
    fake_nvml.calls.shutdown++;
    return 0;
}

API const char *nvmlErrorString(int result);
API const char *nvmlErrorString(int result)
{
    return result == 999 ? "Unknown Error" : "Some Error";
}

API int nvmlSystemGetDriverVersion(char *out, unsigned room);
API int nvmlSystemGetDriverVersion(char *out, unsigned room)
{
    snprintf(out, room, "%s", fake_nvml.driver);
    return 0;
}

API int nvmlDeviceGetName(device *of, char *out, unsigned room);
API int nvmlDeviceGetName(device *of, char *out, unsigned room)
{
    snprintf(out, room, "%s", of->instance ? "NVIDIA H200 MIG 1g.18gb" : "NVIDIA H200");
    return 0;
}

/* ---- values ------------------------------------------------------------------------------------------ */
API int nvmlDeviceGetUtilizationRates(device *of, unsigned out[2]);
API int nvmlDeviceGetUtilizationRates(device *of, unsigned out[2])
{
    fake_nvml.calls.utilization++;
    if (of->instance || fake_nvml.mig >> of->gpu & 1)
        return 3;
    out[0] = fake_nvml.busy;
    out[1] = fake_nvml.memory_busy;
    return failure(of) ? failure(of) : fake_nvml.utilization;
}

API int nvmlDeviceGetMemoryInfo(device *of, unsigned long long out[3]);
API int nvmlDeviceGetMemoryInfo(device *of, unsigned long long out[3])
{
    fake_nvml.calls.memory++;
    out[0] = fake_nvml.total;
    out[1] = fake_nvml.total - fake_nvml.used - fake_nvml.reserved;
    out[2] = fake_nvml.used + fake_nvml.reserved;
    return failure(of);
}

API int nvmlDeviceGetPowerUsage(device *of, unsigned *out);
API int nvmlDeviceGetPowerUsage(device *of, unsigned *out)
{
    fake_nvml.calls.power++;
    *out = fake_nvml.power_mw;
    return failure(of) ? failure(of) : fake_nvml.power;
}

API int nvmlDeviceGetTemperature(device *of, unsigned sensor, unsigned *out);
API int nvmlDeviceGetTemperature(device *of, unsigned sensor, unsigned *out)
{
    fake_nvml.calls.temperature++;
    *out = fake_nvml.celsius;
    return sensor != 0 ? 2 : failure(of);
}

API int nvmlDeviceGetClockInfo(device *of, unsigned which, unsigned *out);
API int nvmlDeviceGetClockInfo(device *of, unsigned which, unsigned *out)
{
    fake_nvml.calls.clock++;
    *out = which == 1 ? fake_nvml.clock : which == 2 ? fake_nvml.memory_clock : 0;
    return failure(of);
}

/* The two that must never be called while a program runs. */
API int nvmlDeviceGetTotalEnergyConsumption(device *of, unsigned long long *out);
API int nvmlDeviceGetTotalEnergyConsumption(device *of, unsigned long long *out)
{
    (void)of;
    *out = 1;
    fake_nvml.calls.energy++;
    return 0;
}

API int nvmlDeviceGetPcieThroughput(device *of, unsigned which, unsigned *out);
API int nvmlDeviceGetPcieThroughput(device *of, unsigned which, unsigned *out)
{
    (void)of, (void)which;
    *out = 1;
    fake_nvml.calls.pcie++;
    return 0;
}

/* ---- processes --------------------------------------------------------------------------------------- */
static void find_children(void)
{
    char path[64], text[4096] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = '\0';
    fake_nvml.process_count = 0;
    for (char *at = text, *end; fake_nvml.process_count < 8; at = end) {
        unsigned long pid = strtoul(at, &end, 10);
        if (end == at)
            break;
        fake_nvml.processes[fake_nvml.process_count++] = (fake_process){.pid = (unsigned)pid, .used = 3ull << 30};
    }
}

static int list(const device *of, int draws, unsigned *n, void *out, size_t record_bytes)
{
    unsigned room = *n, found = 0;
    fake_nvml.calls.processes++;
    if (fake_nvml.children)
        find_children();
    for (unsigned i = 0; i < fake_nvml.process_count; i++) {
        const fake_process *process = &fake_nvml.processes[i];
        if (process->gpu != of->gpu || process->draws != draws)
            continue;
        if (found++ >= room)
            continue;
        uint8_t *record = (uint8_t *)out + (found - 1) * record_bytes;
        memset(record, 0xff, record_bytes);
        memcpy(record, &process->pid, 4);
        memcpy(record + 8, &process->used, 8);
    }
    *n = found;
    if (fake_nvml.processes_result)
        return fake_nvml.processes_result;
    return found > room ? 7 : failure(of);
}

API int nvmlDeviceGetComputeRunningProcesses(device *of, unsigned *n, void *out);
API int nvmlDeviceGetComputeRunningProcesses(device *of, unsigned *n, void *out)
{
    return list(of, 0, n, out, 16);
}

#ifdef FAKE_OLD
API int nvmlInit(void);
API int nvmlInit(void)
{
    return init();
}

API int nvmlDeviceGetCount(unsigned *n);
API int nvmlDeviceGetCount(unsigned *n)
{
    return count(n);
}

API int nvmlDeviceGetHandleByIndex(unsigned index, device **out);
API int nvmlDeviceGetHandleByIndex(unsigned index, device **out)
{
    return by_index(index, out);
}
#else
API int nvmlInit_v2(void);
API int nvmlInit_v2(void)
{
    return init();
}

#ifndef FAKE_BARE
API int nvmlDeviceGetCount_v2(unsigned *n);
API int nvmlDeviceGetCount_v2(unsigned *n)
{
    return count(n);
}
#endif

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **out);
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **out)
{
    return by_index(index, out);
}

API int nvmlDeviceGetSamples(device *of, unsigned kind, unsigned long long since, unsigned *type, unsigned *n,
                             unsigned long long (*out)[2]);
API int nvmlDeviceGetSamples(device *of, unsigned kind, unsigned long long since, unsigned *type, unsigned *n,
                             unsigned long long (*out)[2])
{
    (void)since;
    if (kind != 1 || !fake_nvml.period_us)
        return 3;
    for (unsigned i = 0; out && i < *n; i++) {
        out[i][0] = 1700000000000000ull + (unsigned long long)i * fake_nvml.period_us;
        out[i][1] = fake_nvml.busy;
    }
    *n = 100;
    *type = 1;
    return failure(of);
}

typedef struct memory_v2 {
    unsigned version, padding;
    unsigned long long total, reserved, free, used;
} memory_v2;

API int nvmlDeviceGetMemoryInfo_v2(device *of, memory_v2 *out);
API int nvmlDeviceGetMemoryInfo_v2(device *of, memory_v2 *out)
{
    fake_nvml.calls.memory++;
    if (out->version != (40u | 2u << 24))
        return 25;
    out->total = of->instance ? fake_nvml.total / 7 : fake_nvml.total;
    out->reserved = fake_nvml.reserved;
    out->used = fake_nvml.used;
    out->free = fake_nvml.total - fake_nvml.used - fake_nvml.reserved;
    return failure(of) ? failure(of) : fake_nvml.memory_v2;
}

API int nvmlDeviceGetComputeRunningProcesses_v3(device *of, unsigned *n, void *out);
API int nvmlDeviceGetComputeRunningProcesses_v3(device *of, unsigned *n, void *out)
{
    return list(of, 0, n, out, strncmp(fake_nvml.driver, "535.54", 6) == 0 ? 32 : 24);
}

API int nvmlDeviceGetGraphicsRunningProcesses_v3(device *of, unsigned *n, void *out);
API int nvmlDeviceGetGraphicsRunningProcesses_v3(device *of, unsigned *n, void *out)
{
    return list(of, 1, n, out, 24);
}

API int nvmlDeviceGetGraphicsRunningProcesses(device *of, unsigned *n, void *out);
API int nvmlDeviceGetGraphicsRunningProcesses(device *of, unsigned *n, void *out)
{
    return list(of, 1, n, out, 16);
}

typedef struct field_value {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type;
    int result;
    unsigned long long value;
} field_value;

API int nvmlDeviceGetFieldValues(device *of, int n, field_value *values);
API int nvmlDeviceGetFieldValues(device *of, int n, field_value *values)
{
    fake_nvml.calls.fields++;
    for (int i = 0; i < n; i++) {
        values[i].result = values[i].field == 186 ? fake_nvml.field : 3;
        values[i].type = 1;
        values[i].value = 0xabcdef0000000000ull | fake_nvml.instant_mw; /* only 32 bits are the value */
    }
    return failure(of);
}

API int nvmlDeviceGetCurrentClocksEventReasons(device *of, unsigned long long *out);
API int nvmlDeviceGetCurrentClocksEventReasons(device *of, unsigned long long *out)
{
    fake_nvml.calls.reasons++;
    *out = fake_nvml.reasons;
    return failure(of);
}

API int nvmlDeviceGetTotalEccErrors(device *of, unsigned kind, unsigned counter, unsigned long long *out);
API int nvmlDeviceGetTotalEccErrors(device *of, unsigned kind, unsigned counter, unsigned long long *out)
{
    fake_nvml.calls.ecc++;
    *out = kind == 1 && counter == 0 ? fake_nvml.errors : 12345;
    return failure(of) ? failure(of) : fake_nvml.ecc;
}

/* ---- MIG --------------------------------------------------------------------------------------------- */
API int nvmlDeviceGetMigMode(device *of, unsigned *now, unsigned *pending);
API int nvmlDeviceGetMigMode(device *of, unsigned *now, unsigned *pending)
{
    *now = *pending = fake_nvml.mig >> of->gpu & 1;
    return 0;
}

API int nvmlDeviceGetMaxMigDeviceCount(device *of, unsigned *n);
API int nvmlDeviceGetMaxMigDeviceCount(device *of, unsigned *n)
{
    (void)of;
    *n = 7;
    return 0;
}

API int nvmlDeviceGetMigDeviceHandleByIndex(device *of, unsigned index, device **out);
API int nvmlDeviceGetMigDeviceHandleByIndex(device *of, unsigned index, device **out)
{
    if (index != 0 && index != 2)
        return 6;
    devices[of->gpu][index + 1] = (device){.gpu = of->gpu, .instance = index + 1};
    *out = &devices[of->gpu][index + 1];
    return 0;
}
#endif
