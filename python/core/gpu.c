/* gpu: memory, load, energy and temperature of a device as reported by NVIDIA's driver.
 * Any thread: one lock. The driver's library stays open. Must not know the callers. */
#include "core.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/nvml_api.h"

#define HIDDEN (-1)  /* not an index of CUDA: the device is hidden from it */
#define NO_GPU (-1L) /* the number of device="cpu" */

static tare__nvml nvml;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried;
static tare__error open_error; /* why the driver is unavailable; "": it is available */

static void open_driver(void)
{
    tried = true;
    if (tare__nvml_open(&nvml, &open_error) != 0)
        tare__nvml_close(&nvml);
}

/* CUDA counts the devices it may see; the driver counts all of them. */
static int find_device(long device, tare__nvml_device *handle)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible || !*visible)
        return nvml.api.by_index((unsigned)device, handle);
    char list[1024], *rest = list;
    snprintf(list, sizeof list, "%s", visible);
    for (char *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
        if (device-- > 0)
            continue;
        char *end;
        long index = strtol(name, &end, 10);
        if (end != name && *end == '\0')
            return index < 0 ? TARE__NVML_INVALID_ARGUMENT : nvml.api.by_index((unsigned)index, handle);
        return nvml.api.by_uuid ? nvml.api.by_uuid(name, handle) : TARE__NVML_INVALID_ARGUMENT;
    }
    return HIDDEN;
}

#define WHY_BYTES 300
static void explain(long device, int result, char why[WHY_BYTES])
{
    char words[256];
    snprintf(why, WHY_BYTES, "GPU %ld: %s", device, tare__nvml_words(&nvml, result, words));
}

/* NULL, with the reason in `why`. */
static tare__nvml_device open_device(long device, char why[WHY_BYTES])
{
    tare__nvml_device handle = NULL;
    if (device == NO_GPU) {
        snprintf(why, WHY_BYTES, "device=\"cpu\": no GPU is measured");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (!tried)
        open_driver();
    bool usable = open_error.text[0] == '\0';
    snprintf(why, WHY_BYTES, "%.*s", WHY_BYTES - 1, open_error.text);
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

/* The older call: memory reserved by the driver is not free either. */
static bool read_memory(long device, tare__nvml_memory *info, char why[WHY_BYTES])
{
    tare__nvml_device handle = open_device(device, why);
    if (!handle)
        return false;
    int result = nvml.api.memory ? nvml.api.memory(handle, info) : TARE__NVML_FUNCTION_NOT_FOUND;
    if (result)
        explain(device, result, why);
    return result == 0;
}

/* ---- one value of a device: 0 or the driver's status -------------------------------------------------------- */

static int read_joules(tare__nvml_device handle, double since, double *value)
{
    unsigned long long millijoules = 0;
    int result = nvml.api.energy ? nvml.api.energy(handle, &millijoules) : TARE__NVML_FUNCTION_NOT_FOUND;
    *value = (double)millijoules / 1e3;
    return result;
}

static int read_celsius(tare__nvml_device handle, double since, double *value)
{
    int64_t celsius = 0;
    int result = tare__nvml_celsius(&nvml, handle, &celsius);
    *value = (double)celsius;
    return result;
}

/* NaN: the driver took no sample since then. */
static int read_load(tare__nvml_device handle, double since, double *value)
{
    unsigned long long since_us = (unsigned long long)(since * 1e6);
    unsigned type = 0, count = 0, known = 0;
    double sum = 0;
    *value = NAN;
    int result = nvml.api.samples
                     ? nvml.api.samples(handle, TARE__NVML_SAMPLES_BUSY, since_us, &type, &count, NULL)
                     : TARE__NVML_FUNCTION_NOT_FOUND;
    if (result || count == 0)
        return result == TARE__NVML_NOT_FOUND ? 0 : result;
    tare__nvml_sample *samples = calloc(count, sizeof *samples);
    if (!samples)
        return 0;
    result = nvml.api.samples(handle, TARE__NVML_SAMPLES_BUSY, since_us, &type, &count, samples);
    for (unsigned i = 0; result == 0 && i < count; i++)
        if (samples[i].timestamp_us >= since_us) {
            sum += samples[i].value.ui;
            known++;
        }
    free(samples);
    if (known)
        *value = sum / known;
    return result == TARE__NVML_NOT_FOUND ? 0 : result;
}

typedef int reader(tare__nvml_device handle, double since, double *value);

/* A float, or Missing with the reason. */
static PyObject *tell(long device, reader *read, double since)
{
    char why[WHY_BYTES];
    double value = NAN;
    if (device < NO_GPU)
        return PyErr_Format(PyExc_ValueError, "a device's number is 0 or more, not %ld", device);
    Py_BEGIN_ALLOW_THREADS
    tare__nvml_device handle = open_device(device, why);
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

static PyObject *tell_of(PyObject *of, reader *read)
{
    long device = PyLong_AsLong(of);
    return device == -1 && PyErr_Occurred() ? NULL : tell(device, read, 0);
}

PyDoc_STRVAR(gpu_joules_doc, "gpu_joules(device)\n--\n\nEnergy since the driver was loaded.");
static PyObject *gpu_joules(PyObject *module, PyObject *of) { return tell_of(of, read_joules); }

PyDoc_STRVAR(gpu_celsius_doc, "gpu_celsius(device)\n--\n\nTemperature of the chip.");
static PyObject *gpu_celsius(PyObject *module, PyObject *of) { return tell_of(of, read_celsius); }

PyDoc_STRVAR(gpu_load_doc,
             "gpu_load(device, since)\n--\n\n"
             "Percentage of the time since a time.time() in which a kernel ran, by the driver's samples.");
static PyObject *gpu_load(PyObject *module, PyObject *arguments)
{
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
                             "(used, total) bytes of a device, by all processes on it; or the reason as text.");
static PyObject *gpu_memory(PyObject *module, PyObject *of)
{
    long device = PyLong_AsLong(of);
    if (device == -1 && PyErr_Occurred())
        return NULL;
    if (device < NO_GPU)
        return PyErr_Format(PyExc_ValueError, "a device's number is 0 or more, not %ld", device);
    tare__nvml_memory info = {0, 0, 0};
    char why[WHY_BYTES];
    bool known;
    Py_BEGIN_ALLOW_THREADS
    known = read_memory(device, &info, why);
    Py_END_ALLOW_THREADS
    if (!known)
        return PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace");
    /* Used is what is not free: a driver may count the memory it reserves itself separately from used memory. */
    return Py_BuildValue("KK", info.total - (info.free < info.total ? info.free : info.total), info.total);
}

static PyMethodDef functions[] = {
    {"gpu_memory", gpu_memory, METH_O, gpu_memory_doc},
    {"gpu_joules", gpu_joules, METH_O, gpu_joules_doc},
    {"gpu_celsius", gpu_celsius, METH_O, gpu_celsius_doc},
    {"gpu_load", gpu_load, METH_VARARGS, gpu_load_doc},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_gpu = {.functions = functions};
