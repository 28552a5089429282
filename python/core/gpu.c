/* gpu: memory of a device as the driver counts it, for programs whose framework does not tell.
 * Any thread: one lock. The driver's library stays open. Must not know who asks. */
#include "core.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"

typedef struct memory_info {
    unsigned long long total, free, used;
} memory_info;

static struct {
    void *library;
    int (*init)(void);
    int (*by_index)(unsigned index, void **device);
    int (*by_uuid)(const char *uuid, void **device);
    int (*memory)(void *device, memory_info *info);
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
    tried = true;
    nvml.library = dlopen(name && *name ? name : LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (!nvml.library) {
        snprintf(trouble, sizeof trouble, "no NVIDIA driver (%.200s was not found)", name && *name ? name : LIBRARY);
        return;
    }
    find(&nvml.words, "nvmlErrorString");
    find(&nvml.by_uuid, "nvmlDeviceGetHandleByUUID");
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
            return index < 0 ? 2 : nvml.by_index((unsigned)index, handle);
        return nvml.by_uuid ? nvml.by_uuid(name, handle) : 2;
    }
    return 2; /* NVML's own for an argument that names nothing */
}

static bool read_memory(long device, memory_info *info, char why[300])
{
    void *handle = NULL;
    pthread_mutex_lock(&lock);
    if (!tried)
        open_driver();
    bool usable = trouble[0] == '\0';
    snprintf(why, 300, "%s", trouble);
    pthread_mutex_unlock(&lock);
    if (!usable)
        return false;
    int result = find_device(device, &handle);
    if (!result)
        result = nvml.memory(handle, info);
    if (result) {
        const char *words = nvml.words ? nvml.words(result) : NULL;
        snprintf(why, 300, "GPU %ld: %.200s (%d)", device, words ? words : "error", result);
    }
    return result == 0;
}

PyDoc_STRVAR(gpu_memory_doc, "gpu_memory(device)\n--\n\n"
                             "(used, total) bytes of a device, by everybody on it; or the reason as text.");
static PyObject *gpu_memory(PyObject *module, PyObject *of)
{
    (void)module;
    long device = PyLong_AsLong(of);
    if (device == -1 && PyErr_Occurred())
        return NULL;
    if (device < 0)
        return PyErr_Format(PyExc_ValueError, "a device's number is 0 or more, not %ld", device);
    memory_info info = {0, 0, 0};
    char why[300];
    bool known;
    Py_BEGIN_ALLOW_THREADS
    known = read_memory(device, &info, why);
    Py_END_ALLOW_THREADS
    if (!known)
        return PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace");
    return Py_BuildValue("KK", info.used, info.total);
}

static PyMethodDef functions[] = {
    {"gpu_memory", gpu_memory, METH_O, gpu_memory_doc},
    {NULL, NULL, 0, NULL},
};

int tare__py_add_gpu(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
