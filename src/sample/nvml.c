/* nvml: the sampler of NVIDIA GPUs. The library is opened late and in a separate thread, since that takes 20 ms
 * to several seconds; then the set's thread owns it. Expensive values are read rarely.
 * Must not know the binary interface, nor how samples are shown. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nvml.h"

#define OPEN_AFTER_NS 150000000u   /* do not disturb the start of the program */
#define CLOSE_WAIT_S 2             /* for a driver that is still initializing its GPUs when the run ends */

/* ---- values and their intervals --------------------------------------------------------------------- */
typedef enum group { FAST, MID, BUSY, SLOW, GROUPS } group;

/* `share` is of the set's budget: the cost of the group determines its interval. */
static const struct {
    uint64_t every_ns;
    double share;
} groups[GROUPS] = {
    [FAST] = {0, 0.4},
    [MID] = {500000000u, 0.2},
    [BUSY] = {0, 0.2}, /* NVML's own averaging window */
    [SLOW] = {10000000000u, 0.2},
};

typedef struct reader {
    group group;
    bool of_instances; /* also available for a MIG instance */
    uint8_t metrics;
    tare__metric metric[2];
    int (*read)(const tare__nvml *nvml, tare__nvml_device device, int64_t out[2]);
} reader;

static int read_power(const tare__nvml *nvml, tare__nvml_device device, int64_t out[2])
{
    return tare__nvml_power_mw(nvml, device, out);
}

static int read_memory(const tare__nvml *nvml, tare__nvml_device device, int64_t out[2])
{
    return tare__nvml_memory_of(nvml, device, &out[0], &out[1]);
}

static int read_temperature(const tare__nvml *nvml, tare__nvml_device device, int64_t out[2])
{
    int result = tare__nvml_celsius(nvml, device, out);
    out[0] *= 1000;
    return result;
}

static int read_clock(const tare__nvml *nvml, tare__nvml_device device, int64_t out[2])
{
    return tare__nvml_clock_hz(nvml, device, TARE__NVML_CLOCK_SM, out);
}

static int read_memory_clock(const tare__nvml *nvml, tare__nvml_device device, int64_t out[2])
{
    return tare__nvml_clock_hz(nvml, device, TARE__NVML_CLOCK_MEMORY, out);
}

static int read_reasons(const tare__nvml *nvml, tare__nvml_device device, int64_t out[2])
{
    return tare__nvml_reasons(nvml, device, out);
}

static int read_busy(const tare__nvml *nvml, tare__nvml_device device, int64_t out[2])
{
    tare__nvml_utilization percent = {0, 0};
    int result = tare__nvml_busy(nvml, device, &percent);
    out[0] = (int64_t)percent.gpu * 10;
    out[1] = (int64_t)percent.memory * 10;
    return result;
}

static int read_ecc(const tare__nvml *nvml, tare__nvml_device device, int64_t out[2])
{
    return tare__nvml_ecc(nvml, device, out);
}

enum { POWER, MEMORY, TEMPERATURE, CLOCK, MEMORY_CLOCK, THROTTLE, UTILIZATION, ECC, READERS };

static const reader readers[READERS] = {
    [POWER] = {FAST, false, 1, {TARE__M_POWER}, read_power},
    [MEMORY] = {FAST, true, 2, {TARE__M_MEMORY_USED, TARE__M_MEMORY_TOTAL}, read_memory},
    [TEMPERATURE] = {MID, false, 1, {TARE__M_TEMPERATURE}, read_temperature},
    [CLOCK] = {MID, false, 1, {TARE__M_GPU_CLOCK}, read_clock},
    [MEMORY_CLOCK] = {MID, false, 1, {TARE__M_GPU_MEMORY_CLOCK}, read_memory_clock},
    [THROTTLE] = {MID, false, 1, {TARE__M_GPU_THROTTLE}, read_reasons},
    [UTILIZATION] = {BUSY, true, 2, {TARE__M_GPU_BUSY, TARE__M_GPU_MEMORY_BUSY}, read_busy},
    [ECC] = {SLOW, false, 1, {TARE__M_GPU_ECC}, read_ecc},
};

/* ---- state ----------------------------------------------------------------------------------------- */
typedef struct gpu_state {
    uint32_t series[READERS][2], energy;
    bool gone[READERS]; /* unavailable permanently */
    bool lost;
    double busy;        /* share; NaN: unknown */
    int64_t used;       /* bytes; -1: unknown */
    uint64_t power_at_ns, energy_uj, energy_pj; /* pJ: remainder below a µJ */
    int64_t power_mw;
    tare__nvml_users users;
} gpu_state;

/* Passed from the opening thread to the set's thread by `done`. */
typedef struct opening {
    tare__nvml nvml;
    int status;
    tare__error error;
    uint64_t window_ns;
    _Atomic bool done;
    pthread_t thread;
} opening;

typedef enum phase { NOT_YET, OPENING, READY, FAILED } phase;

typedef struct nvml_state {
    phase phase;
    bool started; /* the thread, not yet joined */
    opening *opening;
    uint64_t start_ns;
    uint32_t why_series; /* gpu.busy of GPU 0, which carries the reason if there are no GPUs */
    uint64_t due_ns[GROUPS];
    double cost_ns[GROUPS];
    gpu_state *gpus;
} nvml_state;

/* One result per machine: see tare__nvml_describe. Written by the thread of a set. */
static char described[256] = "n/a: the run was too short to sample GPUs";

const char *tare__nvml_describe(char out[256])
{
    memcpy(out, described, sizeof described);
    return out;
}

static void describe_gpus(const tare__nvml *nvml)
{
    size_t used = 0;
    for (uint32_t i = 0; i < nvml->physical; i++) {
        uint32_t same = 0, before = 0;
        for (uint32_t j = 0; j < nvml->physical; j++)
            if (strcmp(nvml->gpus[i].name, nvml->gpus[j].name) == 0) {
                same++;
                before += j < i;
            }
        if (before || used >= sizeof described)
            continue;
        char times[16] = "";
        if (same > 1)
            snprintf(times, sizeof times, "%u x ", same);
        used += (size_t)snprintf(described + used, sizeof described - used, "%s%s%s", used ? ", " : "", times,
                                 nvml->gpus[i].name);
    }
    if (nvml->driver[0] && used < sizeof described)
        snprintf(described + used, sizeof described - used, ", driver %s", nvml->driver);
}

/* ---- opening --------------------------------------------------------------------------------------- */
static void *open_library(void *context)
{
    opening *self = context;
    self->status = tare__nvml_open(&self->nvml, &self->error);
    self->window_ns = 0;
    for (uint32_t i = 0; self->status == 0 && i < self->nvml.physical; i++) {
        uint64_t window = self->nvml.gpus[i].failure
                              ? 0
                              : tare__nvml_window_ns(&self->nvml, self->nvml.gpus[i].device);
        if (window > self->window_ns)
            self->window_ns = window;
    }
    atomic_store_explicit(&self->done, true, memory_order_release);
    return NULL;
}

/* Signals are handled by the collector's main thread. */
static bool start_thread(nvml_state *state)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    state->started = pthread_create(&state->opening->thread, NULL, open_library, state->opening) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return state->started;
}

static void give_up(tare__sample_set *set, nvml_state *state, const char *reason)
{
    state->phase = FAILED;
    tare__sample_absent(set, state->why_series, reason);
    snprintf(described, sizeof described, "n/a: %.240s", reason);
}

static bool has_device(const char *root)
{
    static const char *const files[] = {"/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia"};
    for (size_t i = 0; i < TARE__COUNT_OF(files); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", root, files[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static void nvml_open(tare__sample_set *set, void *context)
{
    nvml_state *state = context;
    tare__error error;
    tare__subject first = {.kind = TARE__SUBJECT_GPU};
    state->why_series = tare__sample_series_of(set, TARE__M_GPU_BUSY, &first);
    if (!has_device(tare__sample_options_of(set)->root) && !tare__nvml_present(&error)) {
        give_up(set, state, error.text);
        return;
    }
    tare__sample_absent(set, state->why_series, "the run was too short to sample GPUs");
}

static void begin_opening(tare__sample_set *set, nvml_state *state)
{
    state->opening = calloc(1, sizeof *state->opening);
    if (!state->opening || !start_thread(state))
        give_up(set, state, "not enough memory or threads to open NVML");
    else
        state->phase = OPENING;
}

/* ---- series ---------------------------------------------------------------------------------------- */
static tare__subject subject_of(const tare__nvml_gpu *gpu)
{
    return (tare__subject){.kind = TARE__SUBJECT_GPU, .key = gpu->index, .label = gpu->name};
}

static void all_absent(tare__sample_set *set, gpu_state *of, const char *reason)
{
    for (size_t r = 0; r < READERS; r++)
        for (uint8_t m = 0; m < readers[r].metrics; m++)
            tare__sample_absent(set, of->series[r][m], reason);
    tare__sample_absent(set, of->energy, reason);
    tare__nvml_users_absent(set, &of->users, reason);
}

static void make_series(tare__sample_set *set, const tare__nvml_gpu *gpu, gpu_state *of)
{
    tare__subject subject = subject_of(gpu);
    of->busy = NAN;
    of->used = -1;
    for (size_t r = 0; r < READERS; r++) {
        of->gone[r] = gpu->parent >= 0 && !readers[r].of_instances;
        for (uint8_t m = 0; m < readers[r].metrics && !of->gone[r]; m++)
            of->series[r][m] = tare__sample_series_of(set, readers[r].metric[m], &subject);
    }
    if (!of->gone[POWER])
        of->energy = tare__sample_series_of(set, TARE__M_ENERGY, &subject);
    of->users.gone = gpu->divided; /* reported by its instances */
}

static void too_short(tare__sample_set *set, const nvml_state *state, const gpu_state *of)
{
    char window[TARE__UNIT_BYTES], reason[256];
    snprintf(reason, sizeof reason, "the run was shorter than the %s over which NVML averages",
             tare__unit_time(window, (double)state->opening->window_ns));
    tare__sample_absent(set, of->series[UTILIZATION][0], reason);
    tare__sample_absent(set, of->series[UTILIZATION][1], reason);
}

/* The memory of a divided GPU is that of its instances: counted once. */
static bool has_instances(const tare__nvml *nvml, uint32_t index)
{
    for (uint32_t i = nvml->physical; i < nvml->gpu_count; i++)
        if (nvml->gpus[i].parent == (int32_t)index)
            return true;
    return false;
}

static void leave_to_instances(tare__sample_set *set, gpu_state *of)
{
    of->gone[MEMORY] = true;
    for (uint8_t m = 0; m < readers[MEMORY].metrics; m++)
        tare__sample_absent(set, of->series[MEMORY][m], "reported by its MIG instances");
}

static void lose(tare__sample_set *set, const tare__nvml *nvml, gpu_state *of, int result)
{
    char reason[256];
    of->lost = true;
    of->busy = NAN;
    of->used = -1;
    all_absent(set, of, tare__nvml_words(nvml, result, reason));
}

static void finish_opening(tare__sample_set *set, nvml_state *state)
{
    const tare__nvml *nvml = &state->opening->nvml;
    pthread_join(state->opening->thread, NULL);
    state->started = false;
    state->gpus = state->opening->status ? NULL : calloc(nvml->gpu_count, sizeof *state->gpus);
    if (!state->gpus) {
        give_up(set, state, state->opening->status ? state->opening->error.text : "out of memory");
        return;
    }
    describe_gpus(nvml);
    state->phase = READY;
    for (uint32_t i = 0; i < nvml->gpu_count; i++) {
        make_series(set, &nvml->gpus[i], &state->gpus[i]);
        if (nvml->gpus[i].failure)
            lose(set, nvml, &state->gpus[i], nvml->gpus[i].failure);
        else
            too_short(set, state, &state->gpus[i]);
        if (has_instances(nvml, i))
            leave_to_instances(set, &state->gpus[i]);
    }
}

/* ---- reading --------------------------------------------------------------------------------------- */
static bool is_lost(int result)
{
    return result == TARE__NVML_GPU_IS_LOST || result == TARE__NVML_RESET_REQUIRED ||
           result == TARE__NVML_UNINITIALIZED || result == TARE__NVML_GPU_NOT_FOUND;
}

/* Retrying does not help. */
static bool is_final(int result)
{
    return result == TARE__NVML_NOT_SUPPORTED || result == TARE__NVML_NO_PERMISSION ||
           result == TARE__NVML_FUNCTION_NOT_FOUND || result == TARE__NVML_INVALID_ARGUMENT ||
           result == TARE__NVML_ARGUMENT_VERSION_MISMATCH || result == TARE__NVML_DEPRECATED ||
           result == TARE__NVML_NOT_FOUND;
}

static void fail_reader(tare__sample_set *set, const tare__nvml *nvml, const tare__nvml_gpu *gpu, gpu_state *of,
                        size_t r, int result)
{
    char reason[256];
    if (is_lost(result)) {
        lose(set, nvml, of, result);
        return;
    }
    of->gone[r] = is_final(result);
    tare__nvml_words(nvml, result, reason);
    if (r == UTILIZATION && result == TARE__NVML_NOT_SUPPORTED && (gpu->divided || gpu->parent >= 0))
        snprintf(reason, sizeof reason, "NVML does not report utilization of a GPU with MIG enabled");
    for (uint8_t m = 0; m < readers[r].metrics; m++)
        tare__sample_absent(set, of->series[r][m], reason);
    if (r == POWER)
        tare__sample_absent(set, of->energy, reason);
}

/* NVML's energy counter takes 4 ms to read: integrated power is equivalent, as exact as the interval is short. */
static void add_energy(tare__sample_set *set, gpu_state *of, int64_t milliwatts, uint64_t now_ns)
{
    if (of->power_at_ns && now_ns > of->power_at_ns) {
        double mean_mw = ((double)milliwatts + (double)of->power_mw) / 2;
        of->energy_pj += (uint64_t)(mean_mw * (double)(now_ns - of->power_at_ns));
        of->energy_uj += of->energy_pj / 1000000;
        of->energy_pj %= 1000000;
    }
    of->power_at_ns = now_ns;
    of->power_mw = milliwatts;
    tare__sample_put(set, of->energy, (int64_t)of->energy_uj);
}

static void read_one(tare__sample_set *set, const tare__nvml *nvml, const tare__nvml_gpu *gpu, gpu_state *of,
                     size_t r, uint64_t now_ns)
{
    int64_t values[2] = {0, 0};
    int result = readers[r].read(nvml, gpu->device, values);
    if (result) {
        fail_reader(set, nvml, gpu, of, r, result);
        return;
    }
    for (uint8_t m = 0; m < readers[r].metrics; m++)
        tare__sample_put(set, of->series[r][m], values[m]);
    if (r == POWER)
        add_energy(set, of, values[0], now_ns);
    else if (r == MEMORY)
        of->used = values[0];
    else if (r == UTILIZATION)
        of->busy = (double)values[0] / 1000;
}

static void read_users(tare__sample_set *set, const tare__nvml *nvml, const tare__nvml_gpu *gpu, gpu_state *of)
{
    int result = tare__nvml_read_users(set, nvml, gpu, of->used, &of->users);
    if (is_lost(result))
        lose(set, nvml, of, result);
    else
        of->users.gone = is_final(result);
}

/* ---- ticks ----------------------------------------------------------------------------------------- */
static void read_group(tare__sample_set *set, nvml_state *state, group group, uint64_t now_ns)
{
    const tare__nvml *nvml = &state->opening->nvml;
    for (uint32_t i = 0; i < nvml->gpu_count; i++) {
        const tare__nvml_gpu *gpu = &nvml->gpus[i];
        gpu_state *of = &state->gpus[i];
        for (size_t r = 0; r < READERS; r++)
            if (readers[r].group == group && !of->gone[r] && !of->lost)
                read_one(set, nvml, gpu, of, r, now_ns);
        if (group == MID && !of->lost && !of->users.gone)
            read_users(set, nvml, gpu, of);
    }
}

/* Slightly early is acceptable: ticks are not exact. */
static bool is_due(const tare__sample_set *set, const nvml_state *state, group group, uint64_t now_ns)
{
    if (group == BUSY && now_ns - state->start_ns < state->opening->window_ns)
        return false;
    return now_ns + tare__sample_options_of(set)->interval_ns / 2 >= state->due_ns[group];
}

static void plan(const tare__sample_set *set, nvml_state *state, group group, uint64_t now_ns, uint64_t spent_ns)
{
    uint64_t every = group == BUSY ? state->opening->window_ns : groups[group].every_ns;
    state->cost_ns[group] += ((double)spent_ns - state->cost_ns[group]) / 8;
    double budget = tare__sample_options_of(set)->budget * groups[group].share;
    double longer = budget > 0 ? state->cost_ns[group] / budget : 0;
    state->due_ns[group] = now_ns + (longer > (double)every ? (uint64_t)longer : every);
}

static void put_now(tare__sample_set *set, const nvml_state *state)
{
    tare__sample_now *now = tare__sample_now_put(set);
    double busy = 0, used = 0;
    unsigned with_busy = 0, with_used = 0;
    for (uint32_t i = 0; i < state->opening->nvml.gpu_count; i++) {
        if (!isnan(state->gpus[i].busy)) {
            busy += state->gpus[i].busy;
            with_busy++;
        }
        if (state->gpus[i].used >= 0) {
            used += (double)state->gpus[i].used;
            with_used++;
        }
    }
    now->gpu_busy = with_busy ? busy / with_busy : NAN;
    now->gpu_memory_bytes = with_used ? used : NAN;
}

static void tick_gpus(tare__sample_set *set, nvml_state *state, uint64_t now_ns)
{
    for (group group = FAST; group < GROUPS; group++) {
        if (!is_due(set, state, group, now_ns))
            continue;
        uint64_t before = tare__sample_cost_clock(set);
        read_group(set, state, group, now_ns);
        plan(set, state, group, now_ns, tare__sample_cost_clock(set) - before);
    }
    put_now(set, state);
}

static void nvml_tick(tare__sample_set *set, void *context, uint64_t now_ns)
{
    nvml_state *state = context;
    if (!state->start_ns)
        state->start_ns = now_ns;
    if (state->phase == NOT_YET && now_ns - state->start_ns >= OPEN_AFTER_NS)
        begin_opening(set, state);
    if (state->phase == OPENING && atomic_load_explicit(&state->opening->done, memory_order_acquire))
        finish_opening(set, state);
    if (state->phase == READY)
        tick_gpus(set, state, now_ns);
}

/* False: the driver is still initializing its GPUs. Then the thread and its memory are kept until the process exits. */
static bool thread_ended(nvml_state *state)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_WAIT_S;
    if (pthread_timedjoin_np(state->opening->thread, NULL, &until) == 0)
        return true;
    pthread_detach(state->opening->thread);
    return false;
}

static void nvml_close(void *context)
{
    nvml_state *state = context;
    free(state->gpus);
    if (!state->opening || (state->started && !thread_ended(state)))
        return;
    tare__nvml_close(&state->opening->nvml);
    free(state->opening);
}

const tare__sampler tare__sampler_nvml = {
    .name = "nvml",
    .every = 1,
    .state_bytes = sizeof(nvml_state),
    .open = nvml_open,
    .tick = nvml_tick,
    .close = nvml_close,
    .doctor = tare__nvml_doctor,
};
