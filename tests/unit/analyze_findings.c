/* Tests of the built-in rules over tables made by hand: each fires where it should, keeps silent where it should
 * not, and where the figures are absent.
 * One thread. Must not know how tables are made from a trace. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_world.h"

#define TREE TARE__SUBJECT_TREE
#define SYSTEM TARE__SUBJECT_SYSTEM
#define CONTAINER TARE__SUBJECT_CONTAINER
#define PROCESS TARE__SUBJECT_PROCESS
#define THREAD TARE__SUBJECT_THREAD
#define GPU TARE__SUBJECT_GPU

/* ---- nothing known, nothing found ---- */
static void nothing_comes_from_nothing(void **state)
{
    (void)state;
    world *w = world_new();
    must_be_silent(w);
    world_free(w);
}

/* Every metric of every subject told absent. */
static void absent_values_are_no_evidence(void **state)
{
    (void)state;
    for (int subject = TARE__SUBJECT_SYSTEM; subject <= TARE__SUBJECT_TARE; subject++)
        for (int metric = 0; metric < TARE__METRIC_COUNT;) {
            world *w = world_new();
            w->of.usage.cores_allowed = 2;
            w->of.usage.memory_allowed_bytes = GB;
            for (int i = 0; i < WORLD_ROWS && metric < TARE__METRIC_COUNT; i++, metric++)
                add_absent(w, (tare__metric)metric, (tare__subject_kind)subject);
            must_be_silent(w);
            world_free(w);
        }
}

/* Values there, limits and companions not. */
static void one_metric_alone_says_nothing(void **state)
{
    (void)state;
    static const tare__metric metrics[] = {
        TARE__M_CPU_USER, TARE__M_CPU_SYSTEM, TARE__M_CPU_THROTTLED, TARE__M_CPU_THROTTLED_PERIODS,
        TARE__M_CPU_IOWAIT, TARE__M_PRESSURE_CPU, TARE__M_THREADS_RUNNING, TARE__M_MEMORY_USED, TARE__M_RSS,
        TARE__M_RSS_ANON, TARE__M_MEMORY_TOTAL, TARE__M_PRESSURE_IO, TARE__M_GPU_BUSY, TARE__M_DISK_QUEUE,
    };
    for (int subject = TARE__SUBJECT_SYSTEM; subject <= TARE__SUBJECT_GPU; subject++)
        for (size_t i = 0; i < TARE__COUNT_OF(metrics); i++) {
            world *w = world_new();
            add_row(w, metrics[i], (tare__subject_kind)subject, 0, "x", one);
            look(w);
            if (metrics[i] == TARE__M_CPU_IOWAIT && subject == SYSTEM) /* all of the CPU time that is known */
                must_find(w, "iowait");
            else
                assert_int_equal(w->of.n_findings, 0);
            world_free(w);
        }
}

/* ---- memory ---- */
static double leak(double t)
{
    return 200 * MB + t * 50 * MB;
}

static double leak_with_noise(double t)
{
    return leak(t) + 8 * MB * sin(t * 40);
}

static double at_once(double t)
{
    return t < 1 ? 100 * MB : 900 * MB;
}

static double at_half_time(double t)
{
    return t < 5 ? 100 * MB : 900 * MB;
}

static double sawtooth(double t)
{
    return 200 * MB + 400 * MB * (t - floor(t));
}

static double loaded_at_start(double t)
{
    return t < 5 ? 100 * MB + t * 100 * MB : 600 * MB;
}

static double shrinking(double t)
{
    return 900 * MB - t * 50 * MB;
}

static double slow_leak(double t)
{
    return 100 * MB + t * 3 * MB;
}

static double tiny_leak(double t)
{
    return 100 * MB + t * 0.5 * MB;
}

static void memory_growth_has_slope_and_time(void **state)
{
    (void)state;
    static shape *const shapes[] = {leak, leak_with_noise};
    for (size_t i = 0; i < TARE__COUNT_OF(shapes); i++) {
        world *w = world_new();
        w->of.usage.memory_allowed_bytes = 1.7 * GB;
        add_row(w, TARE__M_RSS_ANON, TREE, 0, "", shapes[i]);
        add_row(w, TARE__M_RSS_ANON, PROCESS, 77, "idle", one);
        add_row(w, TARE__M_RSS_ANON, PROCESS, 78, "python3 leak.py", shapes[i]);
        look(w);
        const tare__finding *finding = must_find(w, "memory-growth");
        assert_int_equal(finding->severity, TARE__CRITICAL);
        ABOUT(figure_of(finding, "slope"), 50 * MB);
        assert_true(figure_of(finding, "slope_low") <= figure_of(finding, "slope"));
        assert_true(figure_of(finding, "slope_high") >= figure_of(finding, "slope"));
        assert_true(figure_of(finding, "fit") > 0.95);
        ABOUT(figure_of(finding, "time_to_limit"), (1700 - 690) / 50.0);
        assert_int_equal(figure_of(finding, "pid"), 78);
        assert_non_null(strstr(finding->evidence, "python3 leak.py"));
        assert_true(finding->from_ns > 0 && finding->to_ns <= 10 * SECOND);
        world_free(w);
    }
}

static void growth_to_a_far_limit_is_a_warning(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.memory_allowed_bytes = 64 * GB;
    add_row(w, TARE__M_RSS, TREE, 0, "", leak);
    look(w);
    assert_int_equal(must_find(w, "memory-growth")->severity, TARE__WARNING);
    world_free(w);
}

static void a_slow_leak_is_told_by_its_share(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_RSS_ANON, TREE, 0, "", slow_leak);
    look(w);
    const tare__finding *finding = must_find(w, "memory-growth");
    assert_int_equal(finding->severity, TARE__WARNING);
    assert_true(isnan(figure_of(finding, "time_to_limit"))); /* of a limit that is not known */
    world_free(w);
}

static void what_does_not_grow_steadily_is_left_alone(void **state)
{
    (void)state;
    static shape *const shapes[] = {one, at_once, at_half_time, sawtooth, loaded_at_start, shrinking, tiny_leak};
    for (size_t i = 0; i < TARE__COUNT_OF(shapes); i++) {
        world *w = world_new();
        w->of.usage.memory_allowed_bytes = 2 * GB;
        add_row(w, TARE__M_RSS_ANON, TREE, 0, "", shapes[i]);
        must_be_silent(w);
        world_free(w);
    }
}

static void a_short_run_does_not_grow(void **state)
{
    (void)state;
    world *w = world_new();
    add_row_for(w, TARE__M_RSS_ANON, TREE, 0, 0, "", leak, 1.5);
    must_be_silent(w);
    world_free(w);
}

static void memory_near_its_limit(void **state)
{
    (void)state;
    static const struct {
        double used;
        int severity; /* 0: none */
    } cases[] = {{0.84, 0}, {0.86, TARE__INFO}, {0.92, TARE__WARNING}, {0.97, TARE__CRITICAL}};
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        world *w = world_new();
        w->of.usage.memory_allowed_bytes = 8 * GB;
        w->of.usage.tree_rss_max_bytes = w->of.usage.rss_peak_bytes = cases[i].used * 8 * GB;
        w->of.usage.rss_peak_process = "train";
        look(w);
        const tare__finding *finding = found(w, "memory-high");
        assert_int_equal(finding ? (int)finding->severity : 0, cases[i].severity);
        if (finding)
            ABOUT(figure_of(finding, "share"), cases[i].used);
        world_free(w);
    }
}

/* Forked workers share pages: their sum may be more than there is. */
static void shared_pages_are_not_counted_as_use(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.memory_allowed_bytes = 8 * GB;
    w->of.usage.tree_rss_max_bytes = 20 * GB;
    w->of.usage.rss_peak_bytes = 4 * GB;
    must_be_silent(w);
    world_free(w);
}

static void the_limit_unknown_sixteen_gigabytes_are_told(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.rss_peak_bytes = 17 * GB;
    look(w);
    assert_int_equal(must_find(w, "memory-large")->severity, TARE__INFO);
    w->of.usage.memory_allowed_bytes = 128 * GB;
    must_be_silent(w);
    w->of.usage.memory_allowed_bytes = NAN;
    w->of.usage.rss_peak_bytes = 15 * GB;
    must_be_silent(w);
    world_free(w);
}

static double swapped(double t)
{
    return t < 4 ? 0 : 300 * MB;
}

static double swapping(double t)
{
    return t < 4 ? 0 : 50 * MB;
}

static void swapped_memory(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_SWAP_IN, SYSTEM, 0, "", swapping);
    add_row(w, TARE__M_SWAP_OUT, SYSTEM, 0, "", swapping);
    add_row(w, TARE__M_SWAPPED, PROCESS, 7, "train", swapped);
    look(w);
    const tare__finding *finding = must_find(w, "swap");
    assert_int_equal(finding->severity, TARE__CRITICAL);
    ABOUT(figure_of(finding, "swapped"), 300 * MB);
    ABOUT(finding->from_ns, 4 * SECOND);
    assert_true(isnan(finding->gain));
    world_free(w);
    w = world_new(); /* swap that is full of others' old pages is no news */
    add_row(w, TARE__M_SWAP_IN, SYSTEM, 0, "", zero);
    add_row(w, TARE__M_SWAP_OUT, SYSTEM, 0, "", zero);
    add_row(w, TARE__M_SWAPPED, PROCESS, 7, "train", zero);
    must_be_silent(w);
    world_free(w);
}

/* ---- CPU ---- */
static double half(double t)
{
    return 0.5 + t * 0;
}

static double nearly_two(double t)
{
    return 1.98 + t * 0;
}

static double eight(double t)
{
    return 8 + t * 0;
}

static double ten_a_second(double t)
{
    return 10 + t * 0;
}

static void held_back_by_a_limit(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 0.5;
    add_row(w, TARE__M_CPU_PERIODS, CONTAINER, 0, "", ten_a_second);
    tare__metric_row *hit = add_row(w, TARE__M_CPU_THROTTLED_PERIODS, CONTAINER, 0, "", eight);
    add_row(w, TARE__M_CPU_THROTTLED, CONTAINER, 0, "", half);
    add_cores(w, TREE, 0, "", half);
    look(w);
    const tare__finding *finding = must_find(w, "cpu-throttled");
    assert_int_equal(finding->severity, TARE__WARNING);
    ABOUT(figure_of(finding, "throttled_share"), 0.8);
    ABOUT(finding->gain, 0.5);
    must_not_find(w, "cpu-high"); /* that is what the limit means */
    hit->total = 4; /* of 100 */
    look(w);
    must_not_find(w, "cpu-throttled");
    must_find(w, "cpu-high");
    world_free(w);
}

static void all_of_the_cpu(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    add_cores(w, TREE, 0, "", nearly_two);
    look(w);
    const tare__finding *finding = must_find(w, "cpu-high");
    ABOUT(figure_of(finding, "share"), 0.99);
    ABOUT(finding->to_ns - finding->from_ns, 10 * SECOND);
    assert_int_equal(w->of.n_findings, 1);
    w->of.usage.cores_allowed = 4;
    must_be_silent(w);
    world_free(w);
}

static double late(double t)
{
    return t < 7 ? 0.1 : 1.98;
}

static void a_third_of_the_time_is_not_the_run(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    add_cores(w, TREE, 0, "", late);
    must_be_silent(w);
    world_free(w);
}

static void samples_of_a_short_run_say_nothing(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    add_row_for(w, TARE__M_CPU_USER, TREE, 0, 0, "", nearly_two, 0.8);
    add_row_for(w, TARE__M_CPU_SYSTEM, TREE, 0, 0, "", zero, 0.8);
    must_be_silent(w);
    world_free(w);
}

static void more_threads_than_cores(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    w->of.usage.switches_forced = 5000;
    add_cores(w, TREE, 0, "", nearly_two);
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", eight);
    look(w);
    const tare__finding *finding = must_find(w, "threads-oversubscribed");
    ABOUT(figure_of(finding, "threads_running"), 8);
    assert_non_null(strstr(finding->advice, "OMP_NUM_THREADS=2"));
    assert_ptr_equal(finding, &w->of.findings[0]); /* cpu-high is its symptom */
    w->of.usage.switches_forced = NAN;
    look(w);
    must_not_find(w, "threads-oversubscribed");
    w->of.usage.switches_forced = 5000;
    w->of.usage.cores_allowed = 6;
    look(w);
    must_not_find(w, "threads-oversubscribed");
    world_free(w);
}

static void one_thread_of_many_cores(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 4;
    w->of.usage.threads_max = 3;
    w->of.usage.processes_max = 1;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, THREAD, 500, "helper", zero);
    add_cores(w, THREAD, 501, "MainThread", one);
    look(w);
    const tare__finding *finding = must_find(w, "one-core");
    ABOUT(finding->gain, 0.75);
    assert_int_equal(figure_of(finding, "tid"), 501);
    assert_non_null(strstr(finding->evidence, "MainThread"));
    w->of.usage.cores_allowed = 1;
    look(w);
    must_not_find(w, "one-core");
    w->of.usage.cores_allowed = NAN;
    must_be_silent(w);
    world_free(w);
}

static void two_threads_that_share_a_core_are_not_one(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 4;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, THREAD, 500, "a", half);
    add_cores(w, THREAD, 501, "b", half);
    must_be_silent(w);
    world_free(w);
}

static void use_gpu(world *w);
static double gpu_full(double t);

static void a_thread_that_waits_for_a_gpu_spins(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 16;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, THREAD, 501, "MainThread", one);
    add_row(w, TARE__M_GPU_BUSY, GPU, 0, "H200", gpu_full);
    look(w); /* somebody else's GPU */
    must_find(w, "one-core");
    use_gpu(w);
    must_be_silent(w);
    world_free(w);
}

/* Threads were not looked at: a process with a single one will do, one with several will not. */
static void one_thread_without_samples_of_threads(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 4;
    add_cores(w, TREE, 0, "", one);
    add_cores(w, PROCESS, 42, "python3", one);
    tare__metric_row *threads = add_row(w, TARE__M_THREADS, PROCESS, 42, "python3", one);
    look(w);
    assert_int_equal(figure_of(must_find(w, "one-core"), "pid"), 42);
    threads->max = 4;
    must_be_silent(w);
    world_free(w);
}

static double three_tenths(double t)
{
    return 0.3 + t * 0;
}

static void others_on_the_machine(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.cores_allowed = 2;
    add_row(w, TARE__M_PRESSURE_CPU, SYSTEM, 0, "", half);
    add_cores(w, TREE, 0, "", half);
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", one);
    look(w);
    ABOUT(must_find(w, "shared-machine")->gain, 0.5);
    add_cores(w, THREAD, 7, "MainThread", half);
    look(w); /* what the program can do about it goes before what it cannot */
    assert_true(must_find(w, "one-core") < must_find(w, "shared-machine"));
    assert_true(must_find(w, "one-core")->gain <= must_find(w, "shared-machine")->gain);
    world_free(w);
    w = world_new(); /* the hypervisor's others */
    add_row(w, TARE__M_CPU_USER, SYSTEM, 0, "", half);
    add_row(w, TARE__M_CPU_STEAL, SYSTEM, 0, "", three_tenths);
    look(w);
    ABOUT(figure_of(must_find(w, "shared-machine"), "steal"), 0.375);
    world_free(w);
    w = world_new(); /* it waits for itself */
    w->of.usage.cores_allowed = 2;
    add_row(w, TARE__M_PRESSURE_CPU, SYSTEM, 0, "", half);
    add_cores(w, TREE, 0, "", nearly_two);
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", eight);
    look(w);
    must_not_find(w, "shared-machine");
    world_free(w);
}

static double once_hot(double t)
{
    return t >= 6 && t < 8 ? 2 : 0;
}

static void slowed_down_for_heat(void **state)
{
    (void)state;
    world *w = world_new();
    tare__metric_row *events = add_row(w, TARE__M_THROTTLE_EVENTS, SYSTEM, 0, "", once_hot);
    look(w);
    const tare__finding *finding = must_find(w, "cpu-hot");
    ABOUT(finding->from_ns, 6 * SECOND);
    ABOUT(finding->to_ns, 8 * SECOND);
    events->total = 0;
    must_be_silent(w);
    world_free(w);
}

/* ---- disks, network ---- */
static double waiting(double t)
{
    return t < 2 ? 0 : 1;
}

static double running(double t)
{
    return t < 2 ? 1 : 0;
}

static void waiting_for_disks(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.disk_read_bytes = GB;
    w->of.usage.disk_write_bytes = MB;
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", running);
    tare__metric_row *row = add_row(w, TARE__M_THREADS_DISK_WAIT, TREE, 0, "", waiting);
    look(w);
    const tare__finding *finding = must_find(w, "disk-bound");
    assert_int_equal(finding->severity, TARE__CRITICAL);
    ABOUT(finding->gain, 0.8);
    ABOUT(finding->from_ns, 2 * SECOND);
    assert_non_null(strstr(finding->advice, "num_workers"));
    w->of.usage.disk_write_bytes = 2 * GB;
    look(w);
    assert_non_null(strstr(must_find(w, "disk-bound")->advice, "fsync"));
    for (size_t i = 30; i < WORLD_POINTS; i++) /* only a second of it */
        ((tare__metric_point *)row->points)[i].mean = 0;
    must_be_silent(w);
    world_free(w);
}

static void waiting_while_others_compute_is_no_loss(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_THREADS_RUNNING, TREE, 0, "", eight);
    add_row(w, TARE__M_THREADS_DISK_WAIT, TREE, 0, "", waiting);
    must_be_silent(w);
    world_free(w);
}

static void pressure_tells_where_ticks_do_not(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_PRESSURE_IO, CONTAINER, 0, "", half);
    must_be_silent(w); /* whose it is nobody knows */
    w->of.usage.disk_read_bytes = GB;
    w->of.usage.disk_write_bytes = 0;
    look(w);
    ABOUT(must_find(w, "disk-bound")->gain, 0.5);
    world_free(w);
}

static void idle_for_disks(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_CPU_USER, SYSTEM, 0, "", half);
    add_row(w, TARE__M_CPU_IDLE, SYSTEM, 0, "", half);
    tare__metric_row *row = add_row(w, TARE__M_CPU_IOWAIT, SYSTEM, 0, "", half);
    look(w);
    ABOUT(figure_of(must_find(w, "iowait"), "iowait"), 1 / 3.0);
    row->total = 1;
    must_be_silent(w);
    world_free(w);
}

static double nearly_one(double t)
{
    return 0.97 + t * 0;
}

static double ninety_megabytes(double t)
{
    return 90 * MB + t * 0;
}

static void a_disk_that_can_do_no_more(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.usage.disk_read_bytes = 900 * MB;
    w->of.usage.disk_write_bytes = 0;
    add_row(w, TARE__M_DISK_READ, TARE__SUBJECT_DISK, 1, "nvme0n1", ninety_megabytes);
    add_row(w, TARE__M_DISK_WRITE, TARE__SUBJECT_DISK, 1, "nvme0n1", zero);
    add_row(w, TARE__M_DISK_BUSY, TARE__SUBJECT_DISK, 1, "nvme0n1", nearly_one);
    add_row(w, TARE__M_DISK_QUEUE, TARE__SUBJECT_DISK, 1, "nvme0n1", eight);
    look(w);
    const tare__finding *finding = must_find(w, "disk-busy");
    assert_int_equal(finding->severity, TARE__WARNING);
    assert_non_null(strstr(finding->title, "nvme0n1"));
    ABOUT(figure_of(finding, "queue"), 8);
    w->of.usage.disk_read_bytes = 0; /* not our doing */
    look(w);
    assert_int_equal(must_find(w, "disk-busy")->severity, TARE__INFO);
    assert_non_null(strstr(must_find(w, "disk-busy")->title, "others"));
    world_free(w);
    w = world_new();
    add_row(w, TARE__M_DISK_BUSY, TARE__SUBJECT_DISK, 1, "nvme0n1", half);
    must_be_silent(w);
    world_free(w);
}

static void lost_packets(void **state)
{
    (void)state;
    world *w = world_new();
    tare__metric_row *row = add_row(w, TARE__M_NET_ERRORS, TARE__SUBJECT_NETWORK, 0, "eth0", ninety_megabytes);
    row->total = 400;
    row->mean = 40;
    look(w);
    assert_non_null(strstr(must_find(w, "network-errors")->title, "eth0"));
    row->total = 3;
    row->mean = 0.3;
    must_be_silent(w);
    world_free(w);
}

/* ---- GPU ---- */
static double gpu_at_work(double t)
{
    return t - floor(t) < 0.5 || t < 1 ? 0.95 : 0.05;
}

static double gpu_with_gaps(double t)
{
    return t >= 3 && t < 6 ? 0 : 0.97;
}

static double gpu_full(double t)
{
    return 0.97 + t * 0;
}

static double gigabytes_8(double t)
{
    return 8 * GB + t * 0;
}

static double gigabytes_80(double t)
{
    return 80 * GB + t * 0;
}

static void use_gpu(world *w)
{
    add_row(w, TARE__M_MEMORY_USED, TARE__SUBJECT_GPU_PROCESS, 42, "", gigabytes_8);
    w->rows[w->of.n_metrics - 1].owner = 0;
}

static void a_gpu_that_waits(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_GPU_BUSY, GPU, 0, "H200", gpu_at_work);
    must_be_silent(w); /* somebody's, not ours */
    use_gpu(w);
    look(w);
    const tare__finding *finding = must_find(w, "gpu-underused");
    ABOUT(finding->gain, 1 - figure_of(finding, "busy"));
    assert_true(figure_of(finding, "busy") < 0.7);
    world_free(w);
    w = world_new();
    add_row(w, TARE__M_GPU_BUSY, GPU, 0, "H200", gpu_full);
    use_gpu(w);
    must_be_silent(w);
    world_free(w);
}

static void gaps_of_a_gpu(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_GPU_BUSY, GPU, 0, "H200", gpu_with_gaps);
    must_be_silent(w);
    use_gpu(w);
    look(w);
    const tare__finding *finding = must_find(w, "gpu-idle-gaps");
    assert_int_equal(figure_of(finding, "gaps"), 1);
    ABOUT(finding->from_ns, 3 * SECOND);
    ABOUT(finding->to_ns, 6 * SECOND);
    ABOUT(finding->gain, 0.3);
    assert_true(finding < must_find(w, "gpu-underused"));
    world_free(w);
}

static void a_gpu_nearly_full(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_MEMORY_TOTAL, GPU, 0, "H200", gigabytes_80);
    tare__metric_row *used = add_row(w, TARE__M_MEMORY_USED, GPU, 0, "H200", gigabytes_8);
    use_gpu(w);
    must_be_silent(w);
    used->max = 75 * GB;
    look(w);
    ABOUT(figure_of(must_find(w, "gpu-memory-high"), "share"), 75 / 80.0);
    world_free(w);
}

static double thermal_bit(double t)
{
    return t < 8 ? 0 : 0x40;
}

static double power_bit(double t)
{
    return 4 + t * 0; /* capped by power: as it should be */
}

static void a_hot_gpu(void **state)
{
    (void)state;
    world *w = world_new();
    add_row(w, TARE__M_GPU_THROTTLE, GPU, 0, "H200", thermal_bit);
    use_gpu(w);
    look(w);
    ABOUT(figure_of(must_find(w, "gpu-hot"), "share"), 0.2);
    assert_true(isnan(must_find(w, "gpu-hot")->gain));
    world_free(w);
    w = world_new();
    add_row(w, TARE__M_GPU_THROTTLE, GPU, 0, "H200", power_bit);
    use_gpu(w);
    must_be_silent(w);
    world_free(w);
}

static void a_broken_gpu(void **state)
{
    (void)state;
    world *w = world_new();
    tare__metric_row *errors = add_row(w, TARE__M_GPU_ECC, GPU, 0, "H200", zero);
    use_gpu(w);
    must_be_silent(w);
    errors->total = 2;
    look(w);
    assert_int_equal(must_find(w, "gpu-memory-errors")->severity, TARE__CRITICAL);
    world_free(w);
}

/* ---- spans ---- */
static void an_operation_that_takes_most(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "main", TARE_KIND_SPAN, TARE__NO_ROW, 10, 1);
    add_span(w, "tokenize", TARE_KIND_SPAN, 0, 6, 6);
    add_span(w, "score", TARE_KIND_SPAN, 0, 3, 3);
    look(w);
    assert_int_equal(w->of.n_findings, 2);
    const tare__finding *first = &w->of.findings[0], *second = &w->of.findings[1];
    assert_string_equal(first->id, "operation");
    assert_int_equal(first->severity, TARE__WARNING);
    assert_non_null(strstr(first->title, "tokenize"));
    ABOUT(first->gain, 0.6);
    assert_int_equal(second->severity, TARE__INFO);
    assert_non_null(strstr(second->title, "score"));
    world_free(w);
}

static void a_single_span_is_no_news(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "main", TARE_KIND_SPAN, TARE__NO_ROW, 10, 10);
    must_be_silent(w);
    add_span(w, "main", TARE_KIND_SPAN, 0, 9, 9);
    must_be_silent(w);
    world_free(w);
}

static void even_shares_are_no_news(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    world *w = world_new();
    for (size_t i = 0; i < 6; i++)
        add_span(w, names[i], TARE_KIND_SPAN, TARE__NO_ROW, 1, 1);
    must_be_silent(w);
    world_free(w);
}

static void spans_that_cover_little_of_the_run_are_no_news(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "a", TARE_KIND_SPAN, TARE__NO_ROW, 0.2, 0.2);
    add_span(w, "b", TARE_KIND_SPAN, TARE__NO_ROW, 0.1, 0.1);
    must_be_silent(w);
    world_free(w);
}

static void loading_in_and_between_steps(void **state)
{
    (void)state;
    static const char *const names[] = {"data_loading", "DataLoader", "next_batch", "train/load_batch",
                                        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++) {
        world *w = world_new();
        add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 6, 0.1);
        add_span(w, "compute", TARE_KIND_SPAN, 0, 5.9, 1);
        for (int part = 0; part < 5; part++)
            add_span(w, part & 1 ? "x" : part & 2 ? "y" : "z", TARE_KIND_SPAN, 1, 0.98, 0.98);
        add_span(w, names[i], TARE_KIND_SPAN, TARE__NO_ROW, 4, 4);
        look(w);
        const tare__finding *finding = must_find(w, "data-loading");
        ABOUT(figure_of(finding, "share"), 0.4);
        ABOUT(finding->gain, 0.4);
        for (size_t f = 0; f < w->of.n_findings; f++) /* told once */
            assert_true(strcmp(w->of.findings[f].id, "operation") != 0 ||
                        !strstr(w->of.findings[f].title, names[i]));
        world_free(w);
    }
}

/* "data" is any span's name, but a phase's it is the loading. */
static void a_phase_called_data_is_loading(void **state)
{
    (void)state;
    static const uint32_t kinds[] = {TARE_KIND_PHASE, TARE_KIND_SPAN};
    for (size_t i = 0; i < TARE__COUNT_OF(kinds); i++) {
        world *w = world_new();
        add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 9, 0.1);
        add_span(w, "data", kinds[i], 0, 4, 4);
        look(w);
        if (kinds[i] == TARE_KIND_PHASE)
            ABOUT(figure_of(must_find(w, "data-loading"), "share"), 4 / 9.0);
        else
            must_not_find(w, "data-loading");
        world_free(w);
    }
}

/* A loader on a thread of its own, as long as the steps: hidden behind them already. */
static void hidden_loading_is_no_loss(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 9.5, 1);
    add_span(w, "load_batch", TARE_KIND_SPAN, TARE__NO_ROW, 9, 1);
    look(w);
    must_not_find(w, "data-loading");
    world_free(w);
}

static void little_loading_is_no_news(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 9, 1);
    add_span(w, "load_batch", TARE_KIND_SPAN, 0, 2, 2);
    look(w);
    must_not_find(w, "data-loading");
    world_free(w);
}

static void forward_and_backward(void **state)
{
    (void)state;
    world *w = world_new();
    add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 10, 0);
    add_span(w, "forward_pass", TARE_KIND_SPAN, 0, 5.5, 5.5);
    add_span(w, "backward_pass", TARE_KIND_SPAN, 0, 4.5, 4.5);
    look(w);
    ABOUT(figure_of(must_find(w, "forward"), "share"), 0.55);
    ABOUT(figure_of(must_find(w, "backward"), "share"), 0.45);
    must_not_find(w, "operation");
    use_gpu(w); /* host time of asynchronous work is not its duration */
    look(w);
    must_not_find(w, "forward");
    must_not_find(w, "backward");
    world_free(w);
    w = world_new();
    add_span(w, "step", TARE_KIND_STEP, TARE__NO_ROW, 10, 3);
    add_span(w, "forward", TARE_KIND_SPAN, 0, 3.5, 3.5);
    add_span(w, "backward", TARE_KIND_SPAN, 0, 3.5, 3.5);
    look(w);
    must_not_find(w, "forward");
    must_not_find(w, "backward");
    world_free(w);
}

/* ---- steps ---- */
static void steps_that_differ(void **state)
{
    (void)state;
    world *w = world_new();
    tare__step_row *row = add_steps(w, 20, 0.1, 0.1, 0.6);
    look(w);
    const tare__finding *finding = must_find(w, "step-variance");
    ABOUT(figure_of(finding, "ratio"), 6);
    ABOUT(finding->gain, 0.05);
    assert_int_equal(finding->severity, TARE__INFO); /* a single one */
    row->each.p95_ns = 0.3 * SECOND;
    look(w);
    assert_int_equal(must_find(w, "step-variance")->severity, TARE__WARNING);
    world_free(w);
}

static void slow_steps_at_equal_distances(void **state)
{
    (void)state;
    world *w = world_new();
    tare__step_row *row = add_steps(w, 400, 0.01, 0.01, 0.6);
    for (size_t i = 0; i < 4; i++)
        row->slowest[i] = (tare__slow_step){0.6 * SECOND, (double)i * SECOND, 100 * (4 - i), true, 0};
    row->n_slowest = 4;
    look(w);
    assert_non_null(strstr(must_find(w, "step-variance")->evidence, "every 100 steps"));
    world_free(w);
}

static void equal_steps_and_one_hiccup_in_many(void **state)
{
    (void)state;
    world *w = world_new();
    add_steps(w, 20, 0.1, 0.1, 0.15);
    must_be_silent(w);
    world_free(w);
    w = world_new();
    add_steps(w, 100000, 0.0001, 0.0001, 0.003);
    must_be_silent(w);
    world_free(w);
    w = world_new(); /* only the first differs: that has a rule of its own */
    add_steps(w, 20, 0.9, 0.1, 0.1);
    look(w);
    must_not_find(w, "step-variance");
    must_find(w, "slow-first-step");
    world_free(w);
    w = world_new(); /* too few */
    add_steps(w, 4, 0.9, 0.1, 0.9);
    must_be_silent(w);
    world_free(w);
}

static void a_slow_first_step(void **state)
{
    (void)state;
    world *w = world_new();
    add_steps(w, 20, 0.5, 0.1, 0.1);
    look(w);
    const tare__finding *finding = must_find(w, "slow-first-step");
    assert_int_equal(finding->severity, TARE__INFO);
    ABOUT(finding->gain, 0.04);
    ABOUT(figure_of(finding, "ratio"), 5);
    world_free(w);
    w = world_new();
    add_steps(w, 20, 0.19, 0.1, 0.1);
    must_be_silent(w);
    world_free(w);
    w = world_new(); /* three times as long, and nobody would notice */
    add_steps(w, 20, 0.003, 0.001, 0.001);
    must_be_silent(w);
    world_free(w);
}

/* ---- ends ---- */
static double explodes(double t)
{
    return t < 6 ? 100 * MB : 100 * MB + (t - 6) * 250 * MB;
}

static void killed_for_want_of_memory(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.oom_killed = true;
    w->of.run.signal = SIGKILL;
    w->of.run.status = 137;
    w->of.usage.memory_allowed_bytes = 1.1 * GB;
    w->of.usage.tree_rss_max_bytes = 1.08 * GB;
    add_row(w, TARE__M_RSS_ANON, PROCESS, 11, "sh", one);
    add_row(w, TARE__M_RSS_ANON, PROCESS, 12, "python3 train.py", explodes);
    add_span(w, "epoch", TARE_KIND_EPOCH, TARE__NO_ROW, 1, 0)->still_open = 1;
    add_span(w, "collate", TARE_KIND_SPAN, 0, 1, 0)->still_open = 1;
    look(w);
    const tare__finding *finding = &w->of.findings[0];
    assert_string_equal(finding->id, "killed-oom");
    assert_int_equal(finding->severity, TARE__CRITICAL);
    assert_int_equal(figure_of(finding, "pid"), 12);
    assert_true(figure_of(finding, "rate") > 150 * MB && figure_of(finding, "rate") < 300 * MB);
    assert_non_null(strstr(finding->evidence, "python3 train.py"));
    assert_non_null(strstr(finding->evidence, "collate"));
    must_not_find(w, "memory-high");
    must_not_find(w, "ended-by-signal");
    must_not_find(w, "exit-status");
    world_free(w);
}

static void killed_and_leaking_is_told_in_order(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.oom_killed = true;
    w->of.usage.memory_allowed_bytes = 0.7 * GB;
    w->of.usage.tree_rss_max_bytes = 0.69 * GB;
    w->of.usage.cores_allowed = 2;
    add_row(w, TARE__M_RSS_ANON, TREE, 0, "", leak);
    add_cores(w, TREE, 0, "", one);
    add_cores(w, PROCESS, 7, "python3", one);
    add_row(w, TARE__M_THREADS, PROCESS, 7, "python3", one);
    look(w);
    assert_string_equal(w->of.findings[0].id, "killed-oom");
    assert_string_equal(w->of.findings[1].id, "memory-growth");
    assert_string_equal(w->of.findings[2].id, "one-core");
    world_free(w);
}

static void a_kill_at_the_limit_is_taken_for_it(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.signal = SIGKILL;
    w->of.usage.memory_allowed_bytes = GB;
    w->of.usage.tree_rss_max_bytes = 0.98 * GB;
    look(w);
    must_find(w, "killed-oom");
    w->of.usage.tree_rss_max_bytes = 0.5 * GB;
    look(w);
    must_not_find(w, "killed-oom");
    must_find(w, "ended-by-signal");
    w->of.usage.memory_allowed_bytes = NAN;
    look(w);
    must_not_find(w, "killed-oom");
    world_free(w);
}

static void signals_and_statuses(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.signal = SIGSEGV;
    w->of.run.status = 139;
    look(w);
    assert_non_null(strstr(must_find(w, "ended-by-signal")->title, "SIGSEGV"));
    must_not_find(w, "exit-status");
    w->of.run.signal = 0;
    w->of.run.status = 3;
    look(w);
    assert_int_equal(must_find(w, "exit-status")->severity, TARE__INFO);
    w->of.run.status = -1; /* not known */
    must_be_silent(w);
    world_free(w);
}

static void dropped_spans(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.spans = 900;
    must_be_silent(w);
    w->of.run.dropped_spans = 100;
    look(w);
    const tare__finding *finding = must_find(w, "spans-dropped");
    assert_int_equal(finding->severity, TARE__WARNING);
    ABOUT(figure_of(finding, "share"), 0.1);
    world_free(w);
}

/* ---- order ---- */
static void the_worst_comes_first(void **state)
{
    (void)state;
    world *w = world_new();
    w->of.run.dropped_spans = 1;
    w->of.run.spans = 1000;
    w->of.run.status = 1;
    w->of.usage.memory_allowed_bytes = GB;
    w->of.usage.tree_rss_max_bytes = 0.97 * GB;
    add_span(w, "main", TARE_KIND_SPAN, TARE__NO_ROW, 10, 1);
    add_span(w, "small", TARE_KIND_SPAN, 0, 3, 3);
    add_span(w, "large", TARE_KIND_SPAN, 0, 6, 6);
    look(w);
    static const char *const order[] = {"memory-high", "spans-dropped", "operation", "operation", "exit-status"};
    assert_int_equal(w->of.n_findings, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(w->of.findings[i].id, order[i]);
    for (size_t i = 1; i < 5; i++)
        assert_true(w->of.findings[i].severity <= w->of.findings[i - 1].severity);
    assert_non_null(strstr(w->of.findings[2].title, "large"));
    world_free(w);
}

static bool is_rule(const char *id)
{
    for (size_t i = 0; i < tare__rule_count; i++)
        if (strcmp(tare__rule_table[i].id, id) == 0)
            return true;
    return false;
}

/* Longest way over pairs from a cause; a circle has no end. */
static size_t steps_from(const char *cause, size_t steps)
{
    size_t most = steps;
    assert_true(steps <= tare__rule_count);
    for (size_t i = 0; i < tare__rule_pair_count; i++)
        if (strcmp(tare__rule_pairs[i].cause, cause) == 0) {
            size_t way = steps_from(tare__rule_pairs[i].symptom, steps + 1);
            most = way > most ? way : most;
        }
    return most;
}

static void pairs_name_rules_and_have_no_circle(void **state)
{
    (void)state;
    for (size_t i = 0; i < tare__rule_pair_count; i++) {
        assert_true(is_rule(tare__rule_pairs[i].cause) && is_rule(tare__rule_pairs[i].symptom));
        assert_true(steps_from(tare__rule_pairs[i].cause, 0) >= 1);
    }
}

static void ids_are_told_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < tare__rule_count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(tare__rule_table[i].id, tare__rule_table[j].id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_comes_from_nothing),
        cmocka_unit_test(absent_values_are_no_evidence),
        cmocka_unit_test(one_metric_alone_says_nothing),
        cmocka_unit_test(memory_growth_has_slope_and_time),
        cmocka_unit_test(growth_to_a_far_limit_is_a_warning),
        cmocka_unit_test(a_slow_leak_is_told_by_its_share),
        cmocka_unit_test(what_does_not_grow_steadily_is_left_alone),
        cmocka_unit_test(a_short_run_does_not_grow),
        cmocka_unit_test(memory_near_its_limit),
        cmocka_unit_test(shared_pages_are_not_counted_as_use),
        cmocka_unit_test(the_limit_unknown_sixteen_gigabytes_are_told),
        cmocka_unit_test(swapped_memory),
        cmocka_unit_test(held_back_by_a_limit),
        cmocka_unit_test(all_of_the_cpu),
        cmocka_unit_test(a_third_of_the_time_is_not_the_run),
        cmocka_unit_test(samples_of_a_short_run_say_nothing),
        cmocka_unit_test(more_threads_than_cores),
        cmocka_unit_test(one_thread_of_many_cores),
        cmocka_unit_test(two_threads_that_share_a_core_are_not_one),
        cmocka_unit_test(a_thread_that_waits_for_a_gpu_spins),
        cmocka_unit_test(one_thread_without_samples_of_threads),
        cmocka_unit_test(others_on_the_machine),
        cmocka_unit_test(slowed_down_for_heat),
        cmocka_unit_test(waiting_for_disks),
        cmocka_unit_test(waiting_while_others_compute_is_no_loss),
        cmocka_unit_test(pressure_tells_where_ticks_do_not),
        cmocka_unit_test(idle_for_disks),
        cmocka_unit_test(a_disk_that_can_do_no_more),
        cmocka_unit_test(lost_packets),
        cmocka_unit_test(a_gpu_that_waits),
        cmocka_unit_test(gaps_of_a_gpu),
        cmocka_unit_test(a_gpu_nearly_full),
        cmocka_unit_test(a_hot_gpu),
        cmocka_unit_test(a_broken_gpu),
        cmocka_unit_test(an_operation_that_takes_most),
        cmocka_unit_test(a_single_span_is_no_news),
        cmocka_unit_test(even_shares_are_no_news),
        cmocka_unit_test(spans_that_cover_little_of_the_run_are_no_news),
        cmocka_unit_test(loading_in_and_between_steps),
        cmocka_unit_test(a_phase_called_data_is_loading),
        cmocka_unit_test(hidden_loading_is_no_loss),
        cmocka_unit_test(little_loading_is_no_news),
        cmocka_unit_test(forward_and_backward),
        cmocka_unit_test(steps_that_differ),
        cmocka_unit_test(slow_steps_at_equal_distances),
        cmocka_unit_test(equal_steps_and_one_hiccup_in_many),
        cmocka_unit_test(a_slow_first_step),
        cmocka_unit_test(killed_for_want_of_memory),
        cmocka_unit_test(killed_and_leaking_is_told_in_order),
        cmocka_unit_test(a_kill_at_the_limit_is_taken_for_it),
        cmocka_unit_test(signals_and_statuses),
        cmocka_unit_test(dropped_spans),
        cmocka_unit_test(the_worst_comes_first),
        cmocka_unit_test(pairs_name_rules_and_have_no_circle),
        cmocka_unit_test(ids_are_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
