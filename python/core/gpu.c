/* gpu: memory, load, energy and temperature of a device as NVIDIA's driver tells them.
 * Any thread: one lock. The driver's library stays open. Must not know who asks. */
#include "core.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define LIBRARY "libnvidia-ml.so.1"

typedef struct memory_info {
    unsigned long long total, free, used;
} memory_info;

typedef struct load_sample {
    unsigned long long time_us, value; /* a union in the driver's header; this kind is an unsigned int */
} load_sample;

#define NVML_INVALID_ARGUMENT 2
#define NVML_NOT_FOUND 6
#define NVML_FUNCTION_NOT_FOUND 13
#define HIDDEN (-1) /* our own: CUDA does not see so many devices */
#define NVML_GPU_LOAD 1 /* of nvmlSamplingType_t */
#define NO_GPU (-1L)    /* the number of device="cpu" */

static struct {
    void *library;
    int (*init)(void);
    int (*by_index)(unsigned index, void **device);
    int (*by_uuid)(const char *uuid, void **device);
    int (*memory)(void *device, memory_info *info);
    int (*energy)(void *device, unsigned long long *millijoules); /* from here on NULL: the driver has none */
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*samples)(void *device, int kind, unsigned long long since_us, int *value_kind, unsigned *count,
                   load_sample *samples);
    const char *(*words)(int result);
} nvml;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried;
static char trouble[300]; /* why there is nothing; "": there is */

static bool find(void *slot, const char *name)
{
    void *found = dlsym(nvml.library, name);
    memcpy(slot, &found, sizeof found);
    return found != NULL;
}

static void say(int result, const char *what)
{
    const char *words = nvml.words ? nvml.words(result) : NULL;
    snprintf(trouble, sizeof trouble, "%s: %.200s (%d)", what, words ? words : "error", result);
}

static void open_driver(void)
{
    const char *name = getenv("TARE_NVML");
    char path[PATH_MAX];
    tare__error why;
    tried = true;
    if (tare__library_find(name && *name ? name : LIBRARY, path, &why) != 0) {
        snprintf(trouble, sizeof trouble, "no NVIDIA driver (%.250s)", why.text);
        return;
    }
    nvml.library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!nvml.library) {
        snprintf(trouble, sizeof trouble, "no NVIDIA driver (%.200s was not found)", name && *name ? name : LIBRARY);
        return;
    }
    find(&nvml.words, "nvmlErrorString");
    find(&nvml.by_uuid, "nvmlDeviceGetHandleByUUID");
    find(&nvml.energy, "nvmlDeviceGetTotalEnergyConsumption");
    find(&nvml.temperature, "nvmlDeviceGetTemperature");
    find(&nvml.samples, "nvmlDeviceGetSamples");
    if (!find(&nvml.init, "nvmlInit_v2") || !find(&nvml.by_index, "nvmlDeviceGetHandleByIndex_v2") ||
        !find(&nvml.memory, "nvmlDeviceGetMemoryInfo")) {
        snprintf(trouble, sizeof trouble, "the NVIDIA driver is too old");
        return;
    }
    int result = nvml.init();
    if (result)
        say(result, "the NVIDIA driver does not answer");
}

/* CUDA counts the devices it may see; the driver counts all of them. */
static int find_device(long device, void **handle)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible || !*visible)
        return nvml.by_index((unsigned)device, handle);
    char list[1024], *rest = list;
    snprintf(list, sizeof list, "%s", visible);
    for (char *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
        if (device-- > 0)
            continue;
        char *end;
        long index = strtol(name, &end, 10);
        if (end != name && *end == '\0')
            return index < 0 ? NVML_INVALID_ARGUMENT : nvml.by_index((unsigned)index, handle);
        return nvml.by_uuid ? nvml.by_uuid(name, handle) : NVML_INVALID_ARGUMENT;
    }
    return HIDDEN;
}

#define WHY_BYTES 300
static void explain(long device, int result, char why[WHY_BYTES])
{
    const char *words = result == NVML_FUNCTION_NOT_FOUND ? "this driver does not tell"
                        : nvml.words                      ? nvml.words(result)
                                                          : NULL;
    snprintf(why, WHY_BYTES, "GPU %ld: %.200s (%d)", device, words ? words : "error", result);
}

/* NULL, with the reason in `why`. */
static void *open_device(long device, char why[WHY_BYTES])
{
    void *handle = NULL;
    if (device == NO_GPU) {
        snprintf(why, WHY_BYTES, "device=\"cpu\": no GPU is measured");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (!tried)
        open_driver();
    bool usable = trouble[0] == '\0';
    snprintf(why, WHY_BYTES, "%s", trouble);
    pthread_mutex_unlock(&lock);
    if (!usable)
        return NULL;
    int result = find_device(device, &handle);
    if (result == HIDDEN)
        snprintf(why, WHY_BYTES, "CUDA_VISIBLE_DEVICES names no device %ld", device);
    else if (result)
        explain(device, result, why);
    return result ? NULL : handle;
}

static bool read_memory(long device, memory_info *info, char why[WHY_BYTES])
{
    void *handle = open_device(device, why);
    if (!handle)
        return false;
    int result = nvml.memory(handle, info);
    if (result)
        explain(device, result, why);
    return result == 0;
}

/* ---- one value of a device: 0 or the driver's status -------------------------------------------------------- */

static int read_joules(void *handle, double since, double *value)
{
    (void)since;
    unsigned long long millijoules = 0;
    int result = nvml.energy ? nvml.energy(handle, &millijoules) : NVML_FUNCTION_NOT_FOUND;
    *value = (double)millijoules / 1e3;
    return result;
}

static int read_celsius(void *handle, double since, double *value)
{
    (void)since;
    unsigned celsius = 0;
    int result = nvml.temperature ? nvml.temperature(handle, 0, &celsius) : NVML_FUNCTION_NOT_FOUND;
    *value = celsius;
    return result;
}

/* NaN: the driver took no sample since then. */
static int read_load(void *handle, double since, double *value)
{
    unsigned long long since_us = (unsigned long long)(since * 1e6);
    int kind = 0;
    unsigned count = 0, known = 0;
    double sum = 0;
    *value = NAN;
    int result = nvml.samples ? nvml.samples(handle, NVML_GPU_LOAD, since_us, &kind, &count, NULL)
                              : NVML_FUNCTION_NOT_FOUND;
    if (result || count == 0)
        return result == NVML_NOT_FOUND ? 0 : result;
    load_sample *samples = calloc(count, sizeof *samples);
    if (!samples)
        return 0;
    result = nvml.samples(handle, NVML_GPU_LOAD, since_us, &kind, &count, samples);
    for (unsigned i = 0; result == 0 && i < count; i++)
        if (samples[i].time_us >= since_us) {
            sum += (double)(samples[i].value & 0xffffffffu);
            known++;
        }
    free(samples);
    if (known)
        *value = sum / known;
    return result == NVML_NOT_FOUND ? 0 : result;
}

typedef int reader(void *handle, double since, double *value);

/* A float, or Missing with the reason. */
static PyObject *tell(long device, reader *read, double since)
{
    char why[WHY_BYTES];
    double value = NAN;
    if (device < NO_GPU)
        return PyErr_Format(PyExc_ValueError, "a device's number is 0 or more, not %ld", device);
    Py_BEGIN_ALLOW_THREADS
    void *handle = open_device(device, why);
    int result = handle ? read(handle, since, &value) : 0;
    if (result) {
        value = NAN;
        explain(device, result, why);
    } else if (handle && isnan(value)) {
        snprintf(why, sizeof why, "the driver took no sample of the load in the block's time");
    }
    Py_END_ALLOW_THREADS
    return isnan(value) ? tare__py_missing(why) : PyFloat_FromDouble(value);
}

PyDoc_STRVAR(gpu_joules_doc, "gpu_joules(device)\n--\n\nEnergy since the driver was loaded.");
static PyObject *gpu_joules(PyObject *module, PyObject *of)
{
    (void)module;
    long device = PyLong_AsLong(of);
    return device == -1 && PyErr_Occurred() ? NULL : tell(device, read_joules, 0);
}

PyDoc_STRVAR(gpu_celsius_doc, "gpu_celsius(device)\n--\n\nTemperature of the chip.");
static PyObject *gpu_celsius(PyObject *module, PyObject *of)
{
    (void)module;
    long device = PyLong_AsLong(of);
    return device == -1 && PyErr_Occurred() ? NULL : tell(device, read_celsius, 0);
}

PyDoc_STRVAR(gpu_load_doc,
             "gpu_load(device, since)\n--\n\n"
             "Percent of the time since a time.time() in which a kernel ran, by the driver's own samples.");
static PyObject *gpu_load(PyObject *module, PyObject *arguments)
{
    (void)module;
    long device;
    double since;
    if (!PyArg_ParseTuple(arguments, "ld:gpu_load", &device, &since))
        return NULL;
    if (!(since >= 0)) {
        PyErr_SetString(PyExc_ValueError, "since is a time.time()");
        return NULL;
    }
    return tell(device, read_load, since);
}

PyDoc_STRVAR(gpu_memory_doc, "gpu_memory(device)\n--\n\n"
                             "(used, total) bytes of a device, by everybody on it; or the reason as text.");
static PyObject *gpu_memory(PyObject *module, PyObject *of)
{
    (void)module;
    long device = PyLong_AsLong(of);
    if (device == -1 && PyErr_Occurred())
        return NULL;
    if (device < NO_GPU)
        return PyErr_Format(PyExc_ValueError, "a device's number is 0 or more, not %ld", device);
    memory_info info = {0, 0, 0};
    char why[WHY_BYTES];
    bool known;
    Py_BEGIN_ALLOW_THREADS
    known = read_memory(device, &info, why);
    Py_END_ALLOW_THREADS
    if (!known)
        return PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace");
    /* What is not free: a driver may count what it reserves itself apart from what is used. */
    return Py_BuildValue("KK", info.total - (info.free < info.total ? info.free : info.total), info.total);
}

static PyMethodDef functions[] = {
    {"gpu_memory", gpu_memory, METH_O, gpu_memory_doc},
    {"gpu_joules", gpu_joules, METH_O, gpu_joules_doc},
    {"gpu_celsius", gpu_celsius, METH_O, gpu_celsius_doc},
    {"gpu_load", gpu_load, METH_VARARGS, gpu_load_doc},
    {NULL, NULL, 0, NULL},
};

int tare__py_add_gpu(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
