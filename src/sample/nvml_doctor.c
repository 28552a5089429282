/* nvml_doctor: what NVML provides on this machine, GPU by GPU; if nothing, the reason and a fix.
 * Any thread; opens the library itself.
 * Must not know sets. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml.h"
#include "tare.h"

typedef struct receiver {
    const char *root;
    tare__sample_check_sink *sink;
    void *context;
} receiver;

static void tell(const receiver *receiver, tare__sample_check *check)
{
    check->sampler = tare__sampler_nvml.name;
    receiver->sink(receiver->context, check);
}

/* ---- the bus: existing GPUs, with or without a driver ------------------------------------------------ */
#define VENDOR_NVIDIA 0x10deu
#define VENDOR_AMD 0x1002u

typedef struct bus {
    bool known;
    unsigned nvidia, amd;
} bus;

static unsigned read_hex(const char *root, const char *device, const char *file)
{
    char path[512], text[32];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%.64s/%s", device, file);
    if (tare__sample_read(root, path, text, sizeof text) <= 0)
        return 0;
    return (unsigned)strtoul(text, NULL, 16);
}

/* Displays are class 03, processing accelerators 12. */
static bus scan_bus(const char *root)
{
    bus found = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices", root);
    DIR *devices = opendir(path);
    if (!devices)
        return found;
    found.known = true;
    for (struct dirent *entry; (entry = readdir(devices)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        unsigned kind = read_hex(root, entry->d_name, "class") >> 16;
        unsigned vendor = kind == 0x03 || kind == 0x12 ? read_hex(root, entry->d_name, "vendor") : 0;
        found.nvidia += vendor == VENDOR_NVIDIA;
        found.amd += vendor == VENDOR_AMD;
    }
    closedir(devices);
    return found;
}

static bool is_there(const char *root, const char *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", root, file);
    return access(path, F_OK) == 0;
}

static bool in_container(const char *root)
{
    return is_there(root, "/.dockerenv") || is_there(root, "/run/.containerenv");
}

/* ---- no library, or it fails ------------------------------------------------------------------------- */
static const struct {
    int result;
    const char *fix;
} fixes[] = {
    {TARE__NVML_DRIVER_NOT_LOADED, "sudo modprobe nvidia"},
    {TARE__NVML_LIB_RM_VERSION_MISMATCH, "sudo reboot"},
    {TARE__NVML_NO_PERMISSION, "sudo chmod a+rw /dev/nvidia*"},
    {TARE__NVML_GPU_IS_LOST, "sudo reboot"},
    {TARE__NVML_RESET_REQUIRED, "sudo nvidia-smi --gpu-reset"},
    {TARE__NVML_UNKNOWN, "sudo nvidia-modprobe -u -c=0"},
    {TARE__NVML_OPERATING_SYSTEM, "sudo dmesg | grep -i nvidia"},
    {TARE__NVML_IRQ_ISSUE, "sudo dmesg | grep -i nvidia"},
};

static const char *fix_of(int result)
{
    for (size_t i = 0; i < TARE__COUNT_OF(fixes); i++)
        if (fixes[i].result == result)
            return fixes[i].fix;
    return "";
}

static const struct {
    const char *id, *command;
} installs[] = {
    {"ubuntu", "sudo ubuntu-drivers install"},
    {"debian", "sudo apt-get install nvidia-driver"},
    {"fedora", "sudo dnf install akmod-nvidia"},
    {"arch", "sudo pacman -S nvidia"},
};

static const char *install_command(const char *root)
{
    char release[4096], id[32] = "";
    if (tare__sample_read(root, "/etc/os-release", release, sizeof release) <= 0)
        return "";
    const char *at = strncmp(release, "ID=", 3) == 0 ? release : strstr(release, "\nID=");
    if (at)
        sscanf(at + strcspn(at, "=") + 1, "%*[\"']%31[a-z]", id);
    if (at && !id[0])
        sscanf(at + strcspn(at, "=") + 1, "%31[a-z]", id);
    for (size_t i = 0; i < TARE__COUNT_OF(installs); i++)
        if (strcmp(installs[i].id, id) == 0)
            return installs[i].command;
    return "";
}

static void tell_failure(const receiver *receiver, const tare__nvml *nvml, int status, const tare__error *error)
{
    bus found = scan_bus(receiver->root);
    bool visible = found.nvidia > 0 || is_there(receiver->root, "/dev/nvidiactl");
    tare__sample_check check = {.source = "NVML", .state = TARE__SAMPLE_FAILS};
    snprintf(check.detail, sizeof check.detail, "%.200s%s", error->text,
             found.nvidia > 0 && !nvml->library.handle ? "; an NVIDIA GPU is on the bus" : "");
    if (status == TARE_E_VERSION)
        snprintf(check.fix, sizeof check.fix, "%s", install_command(receiver->root));
    else if (nvml->library.handle)
        snprintf(check.fix, sizeof check.fix, "%s", fix_of(nvml->result));
    else if (in_container(receiver->root))
        snprintf(check.fix, sizeof check.fix, "docker run --gpus all …");
    else if (visible)
        snprintf(check.fix, sizeof check.fix, "%s", install_command(receiver->root));
    else if (found.known)
        snprintf(check.detail, sizeof check.detail, "%.200s; no NVIDIA GPU on the bus", error->text);
    tell(receiver, &check);
}

static void tell_others(const receiver *receiver)
{
    bus found = scan_bus(receiver->root);
    tare__sample_check check = {.source = "AMD GPU", .state = TARE__SAMPLE_FAILS};
    if (found.amd == 0)
        return;
    snprintf(check.detail, sizeof check.detail, "%u found; only NVIDIA's GPUs are read", found.amd);
    tell(receiver, &check);
}

/* ---- GPU by GPU -------------------------------------------------------------------------------------- */
typedef int probe(const tare__nvml *nvml, tare__nvml_device device);

static int probe_busy(const tare__nvml *nvml, tare__nvml_device device)
{
    tare__nvml_utilization percent;
    return tare__nvml_busy(nvml, device, &percent);
}

static int probe_memory(const tare__nvml *nvml, tare__nvml_device device)
{
    int64_t used, total;
    return tare__nvml_memory_of(nvml, device, &used, &total);
}

static int probe_users(const tare__nvml *nvml, tare__nvml_device device)
{
    tare__nvml_process list[TARE__NVML_PROCESSES_MAX];
    unsigned n;
    return tare__nvml_processes(nvml, device, list, &n);
}

static int read_clock(const tare__nvml *nvml, tare__nvml_device device, int64_t *value)
{
    return tare__nvml_clock_hz(nvml, device, TARE__NVML_CLOCK_SM, value);
}

static const struct {
    const char *name;
    probe *probe;
    bool of_instances;
    int (*value)(const tare__nvml *nvml, tare__nvml_device device, int64_t *value); /* instead of a probe */
} probes[] = {
    {"utilization", probe_busy, false, NULL},
    {"memory", probe_memory, true, NULL},
    {"memory by process", probe_users, true, NULL},
    {"power", NULL, false, tare__nvml_power_mw},
    {"temperature", NULL, false, tare__nvml_celsius},
    {"clocks", NULL, false, read_clock},
    {"throttling", NULL, false, tare__nvml_reasons},
    {"ECC errors", NULL, false, tare__nvml_ecc},
};

static void append(char *out, size_t room, const char *format, const char *text)
{
    size_t used = strlen(out);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(out + used, room - used, format, text);
#pragma GCC diagnostic pop
}

/* Available values, then unavailable ones, with the reason if it is not the usual one. */
static void probe_gpu(const tare__nvml *nvml, const tare__nvml_gpu *gpu, tare__sample_check *check)
{
    char missing[160] = "", words[256];
    unsigned works = 0, asked = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(probes); i++) {
        if (gpu->parent >= 0 && !probes[i].of_instances)
            continue;
        asked++;
        int64_t value;
        int result = probes[i].probe ? probes[i].probe(nvml, gpu->device) : probes[i].value(nvml, gpu->device, &value);
        works += result == 0;
        if (result == 0)
            continue;
        append(missing, sizeof missing, missing[0] ? ", %s" : "%s", probes[i].name);
        if (result != TARE__NVML_NOT_SUPPORTED)
            append(missing, sizeof missing, " (%.60s)", tare__nvml_words(nvml, result, words));
    }
    snprintf(check->detail, sizeof check->detail, "%s", gpu->name);
    if (gpu->divided)
        append(check->detail, sizeof check->detail, "%s", ", divided by MIG");
    if (missing[0])
        append(check->detail, sizeof check->detail, "; unavailable: %s", missing);
    check->state = works == 0 ? TARE__SAMPLE_FAILS : works < asked ? TARE__SAMPLE_PARTLY : TARE__SAMPLE_WORKS;
}

static void tell_gpu(const receiver *receiver, const tare__nvml *nvml, const tare__nvml_gpu *gpu)
{
    char source[32], words[256];
    snprintf(source, sizeof source, "GPU %u", gpu->index);
    tare__sample_check check = {.source = source};
    if (gpu->failure) {
        check.state = TARE__SAMPLE_FAILS;
        snprintf(check.detail, sizeof check.detail, "%s", tare__nvml_words(nvml, gpu->failure, words));
        snprintf(check.fix, sizeof check.fix, "%s", fix_of(gpu->failure));
    } else {
        probe_gpu(nvml, gpu, &check);
    }
    tell(receiver, &check);
}

/* Details are listed GPU by GPU; here only that something is missing. */
static void tell_missing(const char *names, tare__sample_check *check)
{
    size_t used = strlen(check->detail);
    unsigned n = 1;
    for (const char *at = names; (at = strchr(at, ',')) != NULL; at++)
        n++;
    snprintf(check->detail + used, sizeof check->detail - used, "; old version without %u functions (%.*s%s)", n,
             (int)strcspn(names, ","), names, n > 1 ? ", …" : "");
}

static void tell_library(const receiver *receiver, const tare__nvml *nvml)
{
    tare__text missing = {0};
    tare__sample_check check = {.source = "NVML", .state = TARE__SAMPLE_WORKS};
    tare__nvml_missing(nvml, &missing);
    snprintf(check.detail, sizeof check.detail, "driver %.40s, %.150s", nvml->driver[0] ? nvml->driver : "n/a",
             nvml->library.path);
    if (missing.length > 0 && !missing.failed)
        tell_missing(missing.data, &check);
    tare__text_free(&missing);
    tell(receiver, &check);
}

void tare__nvml_doctor(const char *root, tare__sample_check_sink *sink, void *context)
{
    receiver receiver = {.root = root, .sink = sink, .context = context};
    tare__nvml *nvml = calloc(1, sizeof *nvml);
    tare__error error = {"out of memory"};
    int status = nvml ? tare__nvml_open(nvml, &error) : TARE_E_MEMORY;
    if (nvml && status) {
        tell_failure(&receiver, nvml, status, &error);
    } else if (nvml) {
        tell_library(&receiver, nvml);
        for (uint32_t i = 0; i < nvml->gpu_count; i++)
            tell_gpu(&receiver, nvml, &nvml->gpus[i]);
    }
    if (nvml)
        tare__nvml_close(nvml);
    free(nvml);
    tell_others(&receiver);
}
