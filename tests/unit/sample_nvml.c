/* sample_nvml: the sampler of NVIDIA GPUs on look-alike libraries, over a set that only remembers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "../fake/nvml.h"
#include "../fake/path.h"
#include "sample/nvml.c"

/* ---- a set that remembers -------------------------------------------------------------------------------- */
typedef struct kept {
    tare__metric metric;
    tare__subject subject;
    char label[96], reason[512];
    unsigned values, reasons;
    int64_t last;
} kept;

struct tare__sample_set {
    tare__sample_options options;
    kept series[256];
    uint32_t count;
    tare__sampled_process processes[8];
    size_t process_count;
    tare__sample_now now;
    uint64_t cost_ns, step_ns; /* each look at the clock takes a step */
};

static tare__sample_set set;
static nvml_state *state;
static fake_nvml_state *fake;
static void *fake_handle;
static uint64_t now_ns;

uint32_t tare__sample_series_of(tare__sample_set *of, tare__metric metric, const tare__subject *subject)
{
    kept *found = NULL;
    for (uint32_t i = 0; i < of->count && !found; i++)
        if (of->series[i].metric == metric && of->series[i].subject.kind == subject->kind &&
            of->series[i].subject.key == subject->key && of->series[i].subject.owner == subject->owner)
            found = &of->series[i];
    if (!found) {
        assert_true(of->count < TARE__COUNT_OF(of->series));
        found = &of->series[of->count++];
        *found = (kept){.metric = metric, .subject = *subject};
    }
    if (subject->label)
        snprintf(found->label, sizeof found->label, "%s", subject->label);
    return (uint32_t)(found - of->series) + 1;
}

void tare__sample_put(tare__sample_set *of, uint32_t series, int64_t value)
{
    if (series == 0)
        return;
    of->series[series - 1].values++;
    of->series[series - 1].last = value;
    of->series[series - 1].reason[0] = '\0';
}

void tare__sample_absent(tare__sample_set *of, uint32_t series, const char *reason)
{
    if (series == 0)
        return;
    assert_true(reason[0]);
    of->series[series - 1].reasons++;
    snprintf(of->series[series - 1].reason, sizeof of->series->reason, "%s", reason);
}

const tare__sample_options *tare__sample_options_of(const tare__sample_set *of)
{
    return &of->options;
}

tare__sampled_process *tare__sample_process_list(tare__sample_set *of, size_t *n)
{
    *n = of->process_count;
    return of->processes;
}

tare__sample_now *tare__sample_now_put(tare__sample_set *of)
{
    return &of->now;
}

uint64_t tare__sample_cost_clock(const tare__sample_set *of)
{
    tare__sample_set *mine = (tare__sample_set *)of;
    return mine->cost_ns += mine->step_ns;
}

/* ---- what the tests say ------------------------------------------------------------------------------------ */
static kept *kept_of(tare__metric metric, tare__subject_kind kind, uint64_t key, uint64_t owner)
{
    for (uint32_t i = 0; i < set.count; i++)
        if (set.series[i].metric == metric && set.series[i].subject.kind == kind &&
            set.series[i].subject.key == key && set.series[i].subject.owner == owner)
            return &set.series[i];
    return NULL;
}

static kept *gpu(tare__metric metric, uint64_t index)
{
    kept *found = kept_of(metric, TARE__SUBJECT_GPU, index, 0);
    assert_non_null(found);
    return found;
}

static kept *user(uint64_t pid, uint64_t index)
{
    return kept_of(TARE__M_MEMORY_USED, TARE__SUBJECT_GPU_PROCESS, pid, index);
}

static void assert_value(const kept *series, int64_t value)
{
    assert_non_null(series);
    assert_string_equal(series->reason, "");
    assert_true(series->values > 0);
    assert_int_equal(series->last, value);
}

static void assert_absent(const kept *series, const char *reason)
{
    assert_non_null(series);
    assert_string_equal(series->reason, reason);
}

static void tick_for(uint64_t ns)
{
    for (uint64_t until = now_ns + ns; now_ns < until;) {
        now_ns += set.options.interval_ns;
        tare__sampler_nvml.tick(&set, state, now_ns);
    }
}

#define MS 1000000ull

/* Up to the tick at which the library is open or has refused. */
static void start(void)
{
    tare__sampler_nvml.open(&set, state);
    tare__sampler_nvml.tick(&set, state, now_ns);
    tick_for(200 * MS);
    for (int i = 0; i < 10000 && state->phase == OPENING && !atomic_load(&state->opening->done); i++)
        usleep(1000);
    tick_for(100 * MS);
    assert_true(state->phase == READY || state->phase == FAILED);
}

static void use_fake(const char *name)
{
    setenv("TARE_NVML", fake_path(name), 1);
    fake_handle = dlopen(fake_path(name), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(fake_handle);
    fake = dlsym(fake_handle, "fake_nvml");
    assert_non_null(fake);
}

static int set_up(void **unused)
{
    (void)unused;
    memset(&set, 0, sizeof set);
    set.options = (tare__sample_options){.root = "", .target = getpid(), .interval_ns = 100 * MS, .budget = 0.005};
    set.processes[0] = (tare__sampled_process){.pid = getpid(), .alive = true, .name = "train"};
    set.process_count = 1;
    state = calloc(1, tare__sampler_nvml.state_bytes);
    now_ns = 5000000000u;
    unsetenv("FAKE_NVML");
    use_fake("nvml");
    return state ? 0 : -1;
}

static int tear_down(void **unused)
{
    (void)unused;
    tare__sampler_nvml.close(state);
    free(state);
    if (fake_handle)
        dlclose(fake_handle);
    fake_handle = NULL;
    return 0;
}

/* ---- values ------------------------------------------------------------------------------------------------ */
static void every_value_has_its_unit(void **unused)
{
    (void)unused;
    fake->gpus = 2;
    fake->errors = 3;
    start();
    tick_for(500 * MS);
    for (unsigned i = 0; i < 2; i++) {
        assert_value(gpu(TARE__M_GPU_BUSY, i), 800);
        assert_value(gpu(TARE__M_GPU_MEMORY_BUSY, i), 250);
        assert_value(gpu(TARE__M_MEMORY_USED, i), (int64_t)10 << 30);
        assert_value(gpu(TARE__M_MEMORY_TOTAL, i), (int64_t)150 << 30);
        assert_value(gpu(TARE__M_POWER, i), 310000);
        assert_value(gpu(TARE__M_TEMPERATURE, i), 45000);
        assert_value(gpu(TARE__M_GPU_CLOCK, i), 1980000000);
        assert_value(gpu(TARE__M_GPU_MEMORY_CLOCK, i), 2619000000);
        assert_value(gpu(TARE__M_GPU_THROTTLE, i), 4);
        assert_value(gpu(TARE__M_GPU_ECC, i), 3);
        assert_string_equal(gpu(TARE__M_GPU_BUSY, i)->label, "NVIDIA H200");
    }
    assert_true(set.now.gpu_busy == 0.8);
    assert_true(set.now.gpu_memory_bytes == (double)(20ull << 30));
    char text[256];
    assert_string_equal(tare__nvml_describe(text), "2 x NVIDIA H200, driver 580.65.06");
}

static void energy_is_power_over_time(void **unused)
{
    (void)unused;
    start();
    int64_t begun = gpu(TARE__M_ENERGY, 0)->last; /* the library may be open one tick sooner or later */
    assert_true(begun == 0 || begun == 31000000);
    tick_for(1000 * MS);
    assert_value(gpu(TARE__M_ENERGY, 0), begun + 310000000); /* 310 W for a second, in µJ */
    fake->instant_mw = 110000;
    tick_for(100 * MS); /* half of the way: 210 W on the mean */
    assert_value(gpu(TARE__M_ENERGY, 0), begun + 310000000 + 21000000);
}

static void dear_calls_are_never_made(void **unused)
{
    (void)unused;
    start();
    tick_for(3000 * MS);
    assert_int_equal(fake->calls.energy, 0);
    assert_int_equal(fake->calls.pcie, 0);
    assert_int_equal(fake->calls.power, 0); /* the field is there and costs a twentieth */
}

static void groups_keep_their_intervals(void **unused)
{
    (void)unused;
    start();
    memset(&fake->calls, 0, sizeof fake->calls);
    tick_for(10000 * MS);
    assert_int_equal(fake->calls.fields, 100);
    assert_int_equal(fake->calls.memory, 100);
    assert_in_range(fake->calls.temperature, 20, 21);
    assert_in_range(fake->calls.clock, 40, 42);
    assert_in_range(fake->calls.processes, 40, 42); /* compute and graphics */
    assert_in_range(fake->calls.utilization, 50, 51); /* its window is 200 ms */
    assert_in_range(fake->calls.ecc, 0, 1);
}

static void a_dear_driver_is_asked_less(void **unused)
{
    (void)unused;
    start();
    set.step_ns = 2 * MS; /* each group takes 2 ms: 0.2 % of a core is one a second */
    tick_for(20000 * MS);
    memset(&fake->calls, 0, sizeof fake->calls);
    tick_for(10000 * MS);
    assert_in_range(fake->calls.memory, 9, 11);
    assert_in_range(fake->calls.temperature, 4, 6); /* 0.1 %: every other second */
    assert_in_range(fake->calls.utilization, 4, 6);
}

/* ---- the window -------------------------------------------------------------------------------------------- */
static void a_run_within_the_window_has_no_utilization(void **unused)
{
    (void)unused;
    fake->period_us = 0; /* nothing known: a second */
    start();             /* 300 ms */
    assert_absent(gpu(TARE__M_GPU_BUSY, 0), "the run was shorter than the 1.00 s over which NVML averages");
    assert_absent(gpu(TARE__M_GPU_MEMORY_BUSY, 0), "the run was shorter than the 1.00 s over which NVML averages");
    tick_for(600 * MS);
    assert_int_equal(gpu(TARE__M_GPU_BUSY, 0)->values, 0);
    assert_value(gpu(TARE__M_MEMORY_USED, 0), (int64_t)10 << 30);
    tick_for(200 * MS);
    assert_value(gpu(TARE__M_GPU_BUSY, 0), 800);
    tick_for(800 * MS);
    assert_int_equal(gpu(TARE__M_GPU_BUSY, 0)->values, 1);
    tick_for(200 * MS);
    assert_int_equal(gpu(TARE__M_GPU_BUSY, 0)->values, 2);
}

static void a_short_run_never_opens_the_library(void **unused)
{
    (void)unused;
    tare__sampler_nvml.open(&set, state);
    tare__sampler_nvml.tick(&set, state, now_ns);
    tick_for(100 * MS);
    assert_int_equal(fake->calls.init, 0);
    assert_absent(gpu(TARE__M_GPU_BUSY, 0), "the run was too short to sample GPUs");
}

static void a_slow_driver_holds_nothing_up(void **unused)
{
    (void)unused;
    fake->slow_ms = 300;
    tare__sampler_nvml.open(&set, state);
    tare__sampler_nvml.tick(&set, state, now_ns);
    tick_for(200 * MS);
    assert_int_equal(state->phase, OPENING); /* a tick does not wait */
    tare__sampler_nvml.close(state);         /* the end does, for a while */
    assert_int_equal(fake->calls.init, 1);
    assert_int_equal(fake->calls.shutdown, 1);
    memset(state, 0, tare__sampler_nvml.state_bytes);
}

/* ---- old drivers ------------------------------------------------------------------------------------------- */
static void an_old_driver_gives_what_it_has(void **unused)
{
    (void)unused;
    dlclose(fake_handle);
    use_fake("nvml_old");
    fake->processes[0] = (fake_process){.pid = (unsigned)getpid(), .used = 123};
    fake->processes[1] = (fake_process){.pid = 1, .used = 7};
    fake->process_count = 2;
    start();
    tick_for(1000 * MS);
    assert_value(gpu(TARE__M_GPU_BUSY, 0), 800);
    assert_value(gpu(TARE__M_MEMORY_USED, 0), (int64_t)11 << 30); /* the old call counts the driver's own */
    assert_value(gpu(TARE__M_POWER, 0), 300000);
    assert_value(user((uint64_t)getpid(), 0), 123);
    assert_null(user(1, 0)); /* not of the tree */
    assert_absent(gpu(TARE__M_GPU_THROTTLE, 0), "not supported by this NVIDIA driver");
    assert_absent(gpu(TARE__M_GPU_ECC, 0), "not supported by this NVIDIA driver");
    assert_int_equal(gpu(TARE__M_GPU_ECC, 0)->reasons, 1); /* and is not tried again */
}

static void newer_calls_that_fail_fall_back(void **unused)
{
    (void)unused;
    fake->field = TARE__NVML_NOT_SUPPORTED;
    fake->memory_v2 = TARE__NVML_NOT_SUPPORTED;
    start();
    assert_value(gpu(TARE__M_POWER, 0), 300000);
    assert_value(gpu(TARE__M_MEMORY_USED, 0), (int64_t)11 << 30);
}

static void drivers_with_odd_records_are_read_the_old_way(void **unused)
{
    (void)unused;
    strcpy(fake->driver, "535.54.03");
    fake->processes[0] = (fake_process){.pid = 1, .used = 7};
    fake->processes[1] = (fake_process){.pid = (unsigned)getpid(), .used = 123};
    fake->process_count = 2;
    start();
    assert_value(user((uint64_t)getpid(), 0), 123);
}

/* ---- refusals ---------------------------------------------------------------------------------------------- */
static void every_error_of_init_has_its_words(void **unused)
{
    (void)unused;
    static const struct {
        int result;
        const char *words;
    } all[] = {
        {2, "NVML: Some Error (2)"},
        {4, "permission denied"},
        {8, "the power cables of a GPU are not attached"},
        {9, "the NVIDIA driver is not loaded"},
        {10, "the NVIDIA driver did not answer in time"},
        {11, "the kernel reports an interrupt problem of a GPU"},
        {12, "a library of the NVIDIA driver is missing"},
        {15, "the GPU was lost: it fell off the bus or cannot be reached"},
        {17, "the operating system blocks the GPU's driver"},
        {18, "libnvidia-ml.so.1 and the loaded NVIDIA driver are of different versions"},
        {999, "NVML: Unknown Error (999)"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(all); i++) {
        char text[256], expected[300];
        set.count = 0;
        fake->init = all[i].result;
        start();
        assert_int_equal(state->phase, FAILED);
        assert_absent(gpu(TARE__M_GPU_BUSY, 0), all[i].words);
        snprintf(expected, sizeof expected, "n/a: %s", all[i].words);
        assert_string_equal(tare__nvml_describe(text), expected);
        assert_int_equal(set.count, 1); /* one place says it, not every metric */
        tare__sampler_nvml.close(state);
        memset(state, 0, tare__sampler_nvml.state_bytes);
    }
    assert_int_equal(fake->calls.shutdown, 0);
}

static void no_library_is_known_at_once(void **unused)
{
    (void)unused;
    setenv("TARE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    set.options.root = "/nonexistent"; /* no device files either */
    tare__sampler_nvml.open(&set, state);
    assert_int_equal(state->phase, FAILED);
    assert_absent(gpu(TARE__M_GPU_BUSY, 0),
                  "no NVIDIA driver (TARE_NVML: /nonexistent/libnvidia-ml.so.1 cannot be loaded)");
    tick_for(1000 * MS);
    assert_int_equal(state->phase, FAILED);
    assert_null(state->opening);
}

static void a_library_without_what_is_required_is_too_old(void **unused)
{
    (void)unused;
    dlclose(fake_handle);
    use_fake("nvml_bare");
    start();
    assert_int_equal(state->phase, FAILED);
    const kept *why = gpu(TARE__M_GPU_BUSY, 0);
    assert_non_null(strstr(why->reason, "the NVIDIA driver is too old for Tare ("));
    assert_non_null(strstr(why->reason, "has no nvmlDeviceGetCount"));
}

static void no_gpu_is_said(void **unused)
{
    (void)unused;
    fake->gpus = 0;
    start();
    assert_absent(gpu(TARE__M_GPU_BUSY, 0), "the NVIDIA driver is loaded, but no GPU is accessible to this user");
    assert_int_equal(fake->calls.shutdown, 0);
    tare__sampler_nvml.close(state);
    assert_int_equal(fake->calls.shutdown, 1);
    memset(state, 0, tare__sampler_nvml.state_bytes);
}

/* ---- GPUs with trouble ------------------------------------------------------------------------------------- */
static void a_lost_gpu_is_absent_from_then_on(void **unused)
{
    (void)unused;
    static const char words[] = "the GPU was lost: it fell off the bus or cannot be reached";
    fake->gpus = 2;
    fake->processes[0] = (fake_process){.gpu = 1, .pid = (unsigned)getpid(), .used = 5};
    fake->process_count = 1;
    start();
    tick_for(1000 * MS);
    assert_value(gpu(TARE__M_POWER, 1), 310000);
    fake->lost = TARE__NVML_GPU_IS_LOST;
    fake->lost_gpu = 1;
    tick_for(100 * MS);
    static const tare__metric all[] = {TARE__M_POWER, TARE__M_MEMORY_USED, TARE__M_MEMORY_TOTAL, TARE__M_ENERGY,
                                       TARE__M_GPU_BUSY, TARE__M_GPU_MEMORY_BUSY, TARE__M_TEMPERATURE,
                                       TARE__M_GPU_CLOCK, TARE__M_GPU_MEMORY_CLOCK, TARE__M_GPU_THROTTLE,
                                       TARE__M_GPU_ECC};
    for (size_t i = 0; i < TARE__COUNT_OF(all); i++)
        assert_absent(gpu(all[i], 1), words);
    assert_absent(user((uint64_t)getpid(), 1), words);
    unsigned before = gpu(TARE__M_POWER, 0)->values;
    fake->lost = 0; /* even if it answered again */
    tick_for(1000 * MS);
    assert_absent(gpu(TARE__M_POWER, 1), words);
    assert_true(gpu(TARE__M_POWER, 0)->values > before); /* the other one goes on */
    assert_value(gpu(TARE__M_GPU_BUSY, 0), 800);
    assert_true(set.now.gpu_memory_bytes == (double)(10ull << 30));
}

static void a_gpu_without_a_handle_says_why(void **unused)
{
    (void)unused;
    fake->gpus = 2;
    fake->handle = TARE__NVML_NO_PERMISSION;
    start();
    assert_value(gpu(TARE__M_POWER, 0), 310000);
    assert_absent(gpu(TARE__M_POWER, 1), "permission denied");
}

static void a_passing_failure_is_tried_again(void **unused)
{
    (void)unused;
    start();
    fake->field = fake->power = TARE__NVML_UNKNOWN;
    tick_for(100 * MS);
    assert_absent(gpu(TARE__M_POWER, 0), "NVML: Unknown Error (999)");
    assert_absent(gpu(TARE__M_ENERGY, 0), "NVML: Unknown Error (999)");
    assert_value(gpu(TARE__M_MEMORY_USED, 0), (int64_t)10 << 30);
    fake->field = fake->power = 0;
    tick_for(100 * MS);
    assert_value(gpu(TARE__M_POWER, 0), 310000);
}

static void a_divided_gpu_has_instances(void **unused)
{
    (void)unused;
    static const char words[] = "NVML does not report utilization of a GPU with MIG enabled";
    fake->gpus = 2;
    fake->mig = 2;
    start();
    tick_for(500 * MS);
    assert_value(gpu(TARE__M_GPU_BUSY, 0), 800);
    assert_absent(gpu(TARE__M_GPU_BUSY, 1), words);
    assert_value(gpu(TARE__M_POWER, 1), 310000);
    assert_absent(gpu(TARE__M_MEMORY_USED, 1), "reported by its MIG instances");
    for (unsigned i = 2; i < 4; i++) { /* its two instances, numbered after the GPUs */
        assert_value(gpu(TARE__M_MEMORY_TOTAL, i), ((int64_t)150 << 30) / 7);
        assert_string_equal(gpu(TARE__M_MEMORY_TOTAL, i)->label, "NVIDIA H200 MIG 1g.18gb");
        assert_absent(gpu(TARE__M_GPU_BUSY, i), words);
        assert_null(kept_of(TARE__M_POWER, TARE__SUBJECT_GPU, i, 0));
    }
    assert_null(kept_of(TARE__M_MEMORY_TOTAL, TARE__SUBJECT_GPU, 4, 0));
    assert_true(set.now.gpu_memory_bytes == (double)(30ull << 30)); /* GPU 0 and two instances */
}

/* ---- processes --------------------------------------------------------------------------------------------- */
static void processes_of_the_tree_have_their_memory(void **unused)
{
    (void)unused;
    set.processes[1] = (tare__sampled_process){.pid = 4000000, .alive = true, .name = "worker"};
    set.processes[2] = (tare__sampled_process){.pid = 4000001, .alive = false, .name = "dead"};
    set.process_count = 3;
    fake->processes[0] = (fake_process){.pid = (unsigned)getpid(), .used = 100};
    fake->processes[1] = (fake_process){.pid = (unsigned)getpid(), .used = 100, .draws = 1};
    fake->processes[2] = (fake_process){.pid = 4000000, .used = ~0ull};
    fake->processes[3] = (fake_process){.pid = 4000001, .used = 9};
    fake->process_count = 4;
    start();
    assert_value(user((uint64_t)getpid(), 0), 100); /* in both lists, counted once */
    assert_string_equal(user((uint64_t)getpid(), 0)->label, "train");
    assert_absent(user(4000000, 0), "the driver does not report memory by process");
    assert_null(user(4000001, 0));
    fake->process_count = 0;
    tick_for(500 * MS);
    assert_value(user((uint64_t)getpid(), 0), 0); /* it has given it back */
    unsigned before = user((uint64_t)getpid(), 0)->values;
    tick_for(1000 * MS);
    assert_int_equal(user((uint64_t)getpid(), 0)->values, before);
}

static void numbers_from_outside_are_not_believed(void **unused)
{
    (void)unused;
    fake->processes[0] = (fake_process){.pid = 4123456, .used = 100}; /* beyond any pid_max */
    fake->process_count = 1;
    start();
    assert_absent(user((uint64_t)getpid(), 0), "NVML reports process ids of the host, not of this container");
    /* But where others use the GPU and the tree does not, nothing is wrong. */
    set.count = 0;
    tare__sampler_nvml.close(state);
    memset(state, 0, tare__sampler_nvml.state_bytes);
    fake->processes[1] = (fake_process){.pid = 1, .used = 100};
    fake->process_count = 2;
    start();
    assert_null(user((uint64_t)getpid(), 0));
}

static void a_container_that_hides_processes_is_told(void **unused)
{
    (void)unused;
    char root[] = "/tmp/tare-nvml.XXXXXX", path[64];
    assert_non_null(mkdtemp(root));
    static const char *const folders[] = {"/proc", "/proc/self", "/proc/self/ns", "/proc/driver",
                                          "/proc/driver/nvidia"};
    for (size_t i = 0; i < TARE__COUNT_OF(folders); i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof path, "%s/proc/self/ns/pid", root);
    assert_int_equal(symlink("pid:[4026531836]", path), 0);
    set.options.root = root;
    start();
    assert_null(user((uint64_t)getpid(), 0)); /* the first namespace: nobody is hidden, nobody is there */
    unlink(path);
    assert_int_equal(symlink("pid:[4026532999]", path), 0);
    tick_for(500 * MS);
    assert_absent(user((uint64_t)getpid(), 0), "NVML does not name the processes of this container");
    unlink(path);
    for (size_t i = TARE__COUNT_OF(folders); i-- > 0;) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        rmdir(path);
    }
    rmdir(root);
}

static void more_processes_than_fit_is_said(void **unused)
{
    (void)unused;
    fake->process_count = FAKE_PROCESSES_MAX;
    for (unsigned i = 0; i < FAKE_PROCESSES_MAX; i++)
        fake->processes[i] = (fake_process){.pid = 1000 + i, .used = 1};
    start();
    assert_absent(user((uint64_t)getpid(), 0), "NVML: Some Error (7)");
}

/* ---- doctor ------------------------------------------------------------------------------------------------ */
static tare__sample_check checks[8];
static size_t check_count;

static void keep_check(void *context, const tare__sample_check *check)
{
    (void)context;
    static char sources[8][32];
    assert_true(check_count < TARE__COUNT_OF(checks));
    checks[check_count] = *check;
    snprintf(sources[check_count], sizeof sources[0], "%s", check->source);
    checks[check_count].source = sources[check_count];
    check_count++;
}

static void examine(const char *root)
{
    check_count = 0;
    tare__sampler_nvml.doctor(root, keep_check, NULL);
}

static void doctor_tells_of_each_gpu(void **unused)
{
    (void)unused;
    fake->gpus = 2;
    fake->ecc = TARE__NVML_NOT_SUPPORTED;
    fake->handle = TARE__NVML_NO_PERMISSION;
    examine("/nonexistent");
    assert_int_equal(check_count, 3);
    assert_string_equal(checks[0].sampler, "nvml");
    assert_string_equal(checks[0].source, "NVML");
    assert_int_equal(checks[0].state, TARE__SAMPLE_WORKS);
    assert_ptr_equal(strstr(checks[0].detail, "driver 580.65.06, /"), checks[0].detail);
    assert_string_equal(checks[1].source, "GPU 0");
    assert_int_equal(checks[1].state, TARE__SAMPLE_PARTLY);
    assert_string_equal(checks[1].detail, "NVIDIA H200; unavailable: ECC errors");
    assert_int_equal(checks[2].state, TARE__SAMPLE_FAILS);
    assert_string_equal(checks[2].detail, "permission denied");
    assert_true(checks[2].fix[0]);
    assert_int_equal(fake->calls.init, 1);
    assert_int_equal(fake->calls.shutdown, 1);
}

static void doctor_tells_an_old_driver(void **unused)
{
    (void)unused;
    dlclose(fake_handle);
    use_fake("nvml_old");
    examine("/nonexistent");
    assert_int_equal(check_count, 2);
    assert_non_null(strstr(checks[0].detail, "nvml_old.so; old version without "));
    assert_non_null(strstr(checks[0].detail, " functions (nvmlDeviceGetSamples, …)"));
    assert_int_equal(checks[1].state, TARE__SAMPLE_PARTLY);
    assert_non_null(strstr(checks[1].detail, "throttling (not supported by this NVIDIA driver)"));
}

static void doctor_knows_what_would_help(void **unused)
{
    (void)unused;
    fake->init = TARE__NVML_DRIVER_NOT_LOADED;
    examine("/nonexistent");
    assert_int_equal(check_count, 1);
    assert_int_equal(checks[0].state, TARE__SAMPLE_FAILS);
    assert_string_equal(checks[0].fix, "sudo modprobe nvidia");
    setenv("TARE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    examine("/nonexistent");
    assert_int_equal(check_count, 1);
    assert_non_null(strstr(checks[0].detail, "no NVIDIA driver"));
    assert_string_equal(checks[0].fix, ""); /* no GPU that a driver could be for */
}

static void put_file(const char *root, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void doctor_sees_gpus_without_a_driver(void **unused)
{
    (void)unused;
    char root[] = "/tmp/tare-nvml.XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    setenv("TARE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    put_file(root, "/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
    put_file(root, "/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
    put_file(root, "/sys/bus/pci/devices/0000:02:00.0/class", "0x120000\n");
    put_file(root, "/sys/bus/pci/devices/0000:02:00.0/vendor", "0x1002\n");
    put_file(root, "/sys/bus/pci/devices/0000:03:00.0/class", "0x020000\n"); /* a network card of NVIDIA's */
    put_file(root, "/sys/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n");
    examine(root);
    assert_int_equal(check_count, 2);
    assert_non_null(strstr(checks[0].detail, "; an NVIDIA GPU is on the bus"));
    assert_string_equal(checks[0].fix, ""); /* a distribution that is not known */
    assert_string_equal(checks[1].source, "AMD GPU");
    assert_string_equal(checks[1].detail, "1 found; only NVIDIA's GPUs are read");
    put_file(root, "/etc/os-release", "NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\nHOME=x\n");
    examine(root);
    assert_string_equal(checks[0].fix, "sudo apt-get install nvidia-driver");
    put_file(root, "/etc/os-release", "ID=\"fedora\"\n");
    examine(root);
    assert_string_equal(checks[0].fix, "sudo dnf install akmod-nvidia");
    put_file(root, "/.dockerenv", "");
    examine(root);
    assert_ptr_equal(strstr(checks[0].fix, "docker run --gpus all"), checks[0].fix);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_value_has_its_unit),
        TEST(energy_is_power_over_time),
        TEST(dear_calls_are_never_made),
        TEST(groups_keep_their_intervals),
        TEST(a_dear_driver_is_asked_less),
        TEST(a_run_within_the_window_has_no_utilization),
        TEST(a_short_run_never_opens_the_library),
        TEST(a_slow_driver_holds_nothing_up),
        TEST(an_old_driver_gives_what_it_has),
        TEST(newer_calls_that_fail_fall_back),
        TEST(drivers_with_odd_records_are_read_the_old_way),
        TEST(every_error_of_init_has_its_words),
        TEST(no_library_is_known_at_once),
        TEST(a_library_without_what_is_required_is_too_old),
        TEST(no_gpu_is_said),
        TEST(a_lost_gpu_is_absent_from_then_on),
        TEST(a_gpu_without_a_handle_says_why),
        TEST(a_passing_failure_is_tried_again),
        TEST(a_divided_gpu_has_instances),
        TEST(processes_of_the_tree_have_their_memory),
        TEST(numbers_from_outside_are_not_believed),
        TEST(a_container_that_hides_processes_is_told),
        TEST(more_processes_than_fit_is_said),
        TEST(doctor_tells_of_each_gpu),
        TEST(doctor_tells_an_old_driver),
        TEST(doctor_knows_what_would_help),
        TEST(doctor_sees_gpus_without_a_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
