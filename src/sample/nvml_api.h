/* nvml_api: the part of NVIDIA's management library that Tare calls, by its documented binary interface, and
 * opening it with its GPUs. A handle belongs to one thread at a time.
 * Must not know samplers, nor series. */
#ifndef TARE_SAMPLE_NVML_API_H
#define TARE_SAMPLE_NVML_API_H

#include "base/base.h"

/* What its functions return. */
enum {
    TARE__NVML_SUCCESS = 0,
    TARE__NVML_UNINITIALIZED = 1,
    TARE__NVML_INVALID_ARGUMENT = 2,
    TARE__NVML_NOT_SUPPORTED = 3,
    TARE__NVML_NO_PERMISSION = 4,
    TARE__NVML_NOT_FOUND = 6,
    TARE__NVML_INSUFFICIENT_SIZE = 7,
    TARE__NVML_INSUFFICIENT_POWER = 8,
    TARE__NVML_DRIVER_NOT_LOADED = 9,
    TARE__NVML_TIMEOUT = 10,
    TARE__NVML_IRQ_ISSUE = 11,
    TARE__NVML_LIBRARY_NOT_FOUND = 12,
    TARE__NVML_FUNCTION_NOT_FOUND = 13,
    TARE__NVML_CORRUPTED_INFOROM = 14,
    TARE__NVML_GPU_IS_LOST = 15,
    TARE__NVML_RESET_REQUIRED = 16,
    TARE__NVML_OPERATING_SYSTEM = 17,
    TARE__NVML_LIB_RM_VERSION_MISMATCH = 18,
    TARE__NVML_MEMORY = 20,
    TARE__NVML_ARGUMENT_VERSION_MISMATCH = 25,
    TARE__NVML_DEPRECATED = 26,
    TARE__NVML_NOT_READY = 27,
    TARE__NVML_GPU_NOT_FOUND = 28,
    TARE__NVML_UNKNOWN = 999
};

typedef struct tare__nvml_device *tare__nvml_device; /* opaque */

typedef struct tare__nvml_utilization {
    unsigned gpu, memory; /* percent */
} tare__nvml_utilization;

typedef struct tare__nvml_memory {
    unsigned long long total, free, used; /* used includes memory reserved by the driver */
} tare__nvml_memory;

typedef struct tare__nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} tare__nvml_memory_v2;
#define TARE__NVML_MEMORY_V2 ((unsigned)sizeof(tare__nvml_memory_v2) | 2u << 24)

typedef struct tare__nvml_process_v1 {
    unsigned pid;
    unsigned long long used;
} tare__nvml_process_v1;

typedef struct tare__nvml_process { /* of the calls that end in _v2 and in _v3 */
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} tare__nvml_process;
#define TARE__NVML_NOT_AVAILABLE (~0ull) /* for `used` */

typedef union tare__nvml_value {
    double d;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
} tare__nvml_value;

enum { TARE__NVML_TYPE_DOUBLE, TARE__NVML_TYPE_UI, TARE__NVML_TYPE_UL, TARE__NVML_TYPE_ULL, TARE__NVML_TYPE_SLL };

typedef struct tare__nvml_field {
    unsigned field, scope;
    long long timestamp_us, latency_us;
    unsigned type; /* TARE__NVML_TYPE_* */
    int result;
    tare__nvml_value value;
} tare__nvml_field;
#define TARE__NVML_FIELD_POWER_INSTANT 186u

typedef struct tare__nvml_sample {
    unsigned long long timestamp_us;
    tare__nvml_value value;
} tare__nvml_sample;
#define TARE__NVML_SAMPLES_BUSY 1u

enum { TARE__NVML_CLOCK_SM = 1, TARE__NVML_CLOCK_MEMORY = 2 };
enum { TARE__NVML_SENSOR_GPU = 0 };
enum { TARE__NVML_ECC_UNCORRECTED = 1, TARE__NVML_ECC_VOLATILE = 0 };

_Static_assert(sizeof(tare__nvml_memory_v2) == 40 && sizeof(tare__nvml_process_v1) == 16 &&
                   sizeof(tare__nvml_process) == 24 && sizeof(tare__nvml_field) == 40 &&
                   sizeof(tare__nvml_sample) == 16,
               "layouts of NVML on 64-bit machines");

typedef int tare__nvml_processes_call(tare__nvml_device device, unsigned *n, void *processes);

/* Every slot is NULL if the driver has no such function. */
typedef struct tare__nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int result);
    int (*driver_version)(char *out, unsigned room);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned index, tare__nvml_device *device);
    int (*by_uuid)(const char *uuid, tare__nvml_device *device);
    int (*name)(tare__nvml_device device, char *out, unsigned room);
    int (*utilization)(tare__nvml_device device, tare__nvml_utilization *out);
    int (*samples)(tare__nvml_device device, unsigned kind, unsigned long long since_us, unsigned *type, unsigned *n,
                   tare__nvml_sample *out);
    int (*memory)(tare__nvml_device device, tare__nvml_memory *out);
    int (*memory_v2)(tare__nvml_device device, tare__nvml_memory_v2 *out);
    tare__nvml_processes_call *compute, *compute_v1, *graphics, *graphics_v1;
    int (*fields)(tare__nvml_device device, int n, tare__nvml_field *values);
    int (*power)(tare__nvml_device device, unsigned *milliwatts);
    int (*energy)(tare__nvml_device device, unsigned long long *millijoules); /* takes milliseconds: not used by
                                                                               * samplers */
    int (*temperature)(tare__nvml_device device, unsigned sensor, unsigned *celsius);
    int (*clock)(tare__nvml_device device, unsigned which, unsigned *megahertz);
    int (*reasons)(tare__nvml_device device, unsigned long long *bits);
    int (*ecc)(tare__nvml_device device, unsigned kind, unsigned counter, unsigned long long *n);
    int (*mig_mode)(tare__nvml_device device, unsigned *now, unsigned *pending);
    int (*mig_max)(tare__nvml_device device, unsigned *n);
    int (*mig_device)(tare__nvml_device device, unsigned index, tare__nvml_device *instance);
} tare__nvml_api;

#define TARE__NVML_GPUS_MAX 64u /* GPUs and their MIG instances */
#define TARE__NVML_NAME_BYTES 96

typedef struct tare__nvml_gpu {
    tare__nvml_device device;
    uint32_t index;    /* GPUs from 0 as in NVML; MIG instances after the last GPU */
    int32_t parent;    /* for a MIG instance: index of its GPU in the array; else -1 */
    bool divided;      /* MIG is enabled: its instances are used */
    int failure;       /* why there is no handle: an NVML result; 0 */
    char name[TARE__NVML_NAME_BYTES];
} tare__nvml_gpu;

typedef struct tare__nvml {
    tare__dl library;
    tare__nvml_api api;
    bool ready;        /* init succeeded and must be undone */
    int result;        /* result of init or count if that failed; 0 */
    char driver[96];   /* "580.65.06"; "" */
    uint32_t gpu_count;
    uint32_t physical; /* … of which are whole GPUs */
    tare__nvml_gpu gpus[TARE__NVML_GPUS_MAX];
} tare__nvml;

/* Opens the library that TARE_NVML names, or the loader's libnvidia-ml.so.1, initializes it and finds the GPUs.
 * Takes 20 ms to several seconds. 0, or a status with the reason; close it in any case. */
int tare__nvml_open(tare__nvml *nvml, tare__error *error);
void tare__nvml_close(tare__nvml *nvml);
/* Only checks whether the library exists: a fraction of a millisecond if not. */
bool tare__nvml_present(tare__error *error);
/* The result as text, a sentence without full stop. */
const char *tare__nvml_words(const tare__nvml *nvml, int result, char out[256]);
/* The names of the optional functions that this driver lacks. */
void tare__nvml_missing(const tare__nvml *nvml, tare__text *out);

/* ---- values: each 0 or a result; FUNCTION_NOT_FOUND if the driver has no such function -------------------- */
int tare__nvml_busy(const tare__nvml *nvml, tare__nvml_device device, tare__nvml_utilization *out);
/* NVML's averaging window for this: 1/6 s to 1 s, 1 s if unknown. */
uint64_t tare__nvml_window_ns(const tare__nvml *nvml, tare__nvml_device device);
int tare__nvml_memory_of(const tare__nvml *nvml, tare__nvml_device device, int64_t *used, int64_t *total);
int tare__nvml_power_mw(const tare__nvml *nvml, tare__nvml_device device, int64_t *milliwatts);
int tare__nvml_celsius(const tare__nvml *nvml, tare__nvml_device device, int64_t *celsius);
int tare__nvml_clock_hz(const tare__nvml *nvml, tare__nvml_device device, unsigned which, int64_t *hertz);
int tare__nvml_reasons(const tare__nvml *nvml, tare__nvml_device device, int64_t *bits);
int tare__nvml_ecc(const tare__nvml *nvml, tare__nvml_device device, int64_t *errors);

#define TARE__NVML_PROCESSES_MAX 256u
/* Processes on the GPU, each pid once. More of them than MAX: INSUFFICIENT_SIZE. `used` may be NOT_AVAILABLE. */
int tare__nvml_processes(const tare__nvml *nvml, tare__nvml_device device, tare__nvml_process *out, unsigned *n);

#endif
