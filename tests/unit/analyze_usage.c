/* Tests of src/analyze/tables/usage.c, and of what own.c and run.c tell of sampling: who is believed for each figure,
 * and what is said where nobody knows. One thread.
 * Must not know how figures are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze_helper.h"

#define MS UINT64_C(2000000) /* ticks: a tick is half a nanosecond */
#define AT(ms) (BUILD_START + (uint64_t)(ms)*MS)
#define GIB (INT64_C(1) << 30)

/* A run of ten seconds on 8 CPUs with 64 GiB; more fields may follow, then build_run_done. */
static builder *start_run(void)
{
    builder *b = builder_new();
    build_number(b, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_TSC);
    build_number(b, TARE__FIELD_START_TICKS, BUILD_START);
    build_number(b, TARE__FIELD_CPUS, 8);
    build_number(b, TARE__FIELD_MEMORY, (uint64_t)(64 * GIB));
    build_number(b, TARE__FIELD_INTERVAL, 100000000);
    return b;
}

static void run_done(builder *b)
{
    build_fields(b, TARE__BLOCK_RUN, 0);
    build_clock(b);
}

static void end_run(builder *b)
{
    build_number(b, TARE__FIELD_END_TICKS, AT(10000));
    build_number(b, TARE__FIELD_STATUS, 0);
    build_fields(b, TARE__BLOCK_END, 0);
}

static void child(builder *b, uint64_t user_ns, uint64_t system_ns, uint64_t peak)
{
    build_number(b, TARE__FIELD_CHILD_USER, user_ns);
    build_number(b, TARE__FIELD_CHILD_SYSTEM, system_ns);
    build_number(b, TARE__FIELD_CHILD_PEAK, peak);
}

static uint32_t series;
static void sampled(builder *b, tare__metric metric, tare__subject_kind subject, uint64_t key, const char *label,
                    uint64_t from_ms, const int64_t *values, size_t n)
{
    build_series(b, ++series, metric, subject, key, label);
    build_samples(b, series, AT(from_ms), 100 * MS, values, n);
}
#define SAMPLED(metric, subject, key, label, from_ms, ...)                                                          \
    sampled(b, TARE__M_##metric, TARE__SUBJECT_##subject, key, label, from_ms, (const int64_t[]){__VA_ARGS__},     \
            TARE__COUNT_OF(((const int64_t[]){__VA_ARGS__})))

static int setup(void **state)
{
    (void)state;
    series = 0;
    return 0;
}

static void without_samples_all_is_absent_with_a_reason(void **state)
{
    (void)state;
    builder *b = build_single();
    build_end(b, 100000);
    tare__analysis *a = analyze(b);
    const tare__usage_table *u = &a->usage;
    assert_true(isnan(u->cpu_seconds) && isnan(u->user_seconds) && isnan(u->cores_mean) && isnan(u->cores_max));
    assert_true(isnan(u->rss_peak_bytes) && isnan(u->rss_peak_at_ns) && isnan(u->tree_rss_max_bytes));
    assert_true(isnan(u->memory_allowed_bytes) && isnan(u->io_read_bytes) && isnan(u->net_sent_bytes));
    assert_true(isnan(u->energy_joules) && isnan(u->carbon_grams) && isnan(u->gpu_busy_mean));
    assert_true(isnan(u->gpu_memory_max_bytes) && isnan(u->threads_max) && isnan(u->faults_major));
    NEAR(u->cores_allowed, 2);
    assert_false(u->rss_peak_at_least);
    assert_null(u->rss_peak_process);
    assert_string_equal(u->absent_cpu, "not sampled");
    assert_string_equal(u->absent_memory, "not sampled");
    assert_string_equal(u->absent_disk, "not sampled");
    assert_string_equal(u->absent_energy, "not sampled");
    assert_string_equal(u->absent_gpu, "not sampled");
    assert_true(isnan(a->own.sampler_cpu_ns) && isnan(a->own.interval_ns) && isnan(a->own.longest_interval_ns));
    assert_true(isnan(a->run.memory_bytes));
    assert_int_equal(a->run.n_notes, 0);
    done(b, a);
}

/* The kernel's account is later than the last sample … */
static void the_childs_account_counts_where_it_is_larger(void **state)
{
    (void)state;
    builder *b = start_run();
    run_done(b);
    SAMPLED(CPU_USER, TREE, 0, "", 0, 0, 400000000, 900000000);
    SAMPLED(CPU_SYSTEM, TREE, 0, "", 0, 0, 100000000, 200000000);
    child(b, 12000000000, 3000000000, 5000);
    end_run(b);
    tare__analysis *a = analyze(b);
    NEAR(a->usage.cpu_seconds, 15);
    NEAR(a->usage.user_seconds, 12);
    NEAR(a->usage.system_seconds, 3);
    NEAR(a->usage.cores_mean, 1.5);
    NEAR(a->usage.cores_max, 6); /* 5 and 6 cores between samples */
    NEAR(a->usage.cores_allowed, 8);
    assert_null(a->usage.absent_cpu);
    done(b, a);
}

/* … and knows nothing of a descendant that nobody waited for. */
static void the_tree_counts_where_it_is_larger(void **state)
{
    (void)state;
    builder *b = start_run();
    run_done(b);
    SAMPLED(CPU_USER, TREE, 0, "", 0, 1000000000, 16000000000);
    SAMPLED(CPU_SYSTEM, TREE, 0, "", 0, 500000000, 4000000000);
    child(b, 12000000000, 3000000000, 5000);
    end_run(b);
    tare__analysis *a = analyze_unchecked(b, TARE__BY_RUN);
    NEAR(a->usage.user_seconds, 16); /* also what was used before the first sample */
    NEAR(a->usage.system_seconds, 4);
    NEAR(a->usage.cpu_seconds, 20);
    done(b, a);
}

static void of_an_attached_process_only_what_was_seen_counts(void **state)
{
    (void)state;
    builder *b = start_run();
    build_number(b, TARE__FIELD_ATTACHED, 77);
    run_done(b);
    SAMPLED(CPU_USER, TREE, 0, "", 0, 1000000000, 4000000000);
    SAMPLED(CPU_SYSTEM, TREE, 0, "", 0, 500000000, 700000000);
    SAMPLED(IO_READ, TREE, 0, "", 0, 5000);
    end_run(b);
    tare__analysis *a = analyze_unchecked(b, TARE__BY_RUN);
    assert_int_equal(a->run.attached, 77);
    NEAR(a->usage.user_seconds, 3);
    NEAR(a->usage.cpu_seconds, 3.2);
    assert_true(isnan(a->usage.io_read_bytes)); /* one sample: nobody knows what was read since */
    done(b, a);
}

static void processes_stand_in_for_the_tree(void **state)
{
    (void)state;
    builder *b = start_run();
    run_done(b);
    SAMPLED(CPU_USER, PROCESS, 1, "a", 0, 1000000000, 4000000000);
    SAMPLED(CPU_USER, PROCESS, 2, "b", 100, 500000000, 1000000000);
    SAMPLED(DISK_READ, PROCESS, 1, "a", 0, 100, 200);
    end_run(b);
    tare__analysis *a = analyze_unchecked(b, TARE__BY_RUN);
    NEAR(a->usage.user_seconds, 5);
    assert_true(isnan(a->usage.system_seconds));
    NEAR(a->usage.cpu_seconds, 5);
    NEAR(a->usage.disk_read_bytes, 200);
    assert_true(isnan(a->usage.disk_write_bytes));
    assert_null(a->usage.absent_disk);
    done(b, a);
}

static void limits_are_of_the_container(void **state)
{
    (void)state;
    builder *b = start_run();
    run_done(b);
    SAMPLED(CPU_LIMIT, CONTAINER, 0, "/job", 0, 2500);
    SAMPLED(MEMORY_LIMIT, CONTAINER, 0, "/job", 0, 4 * GIB);
    end_run(b);
    tare__analysis *a = analyze(b);
    NEAR(a->usage.cores_allowed, 2.5);
    NEAR(a->usage.memory_allowed_bytes, (double)(4 * GIB));
    NEAR(a->run.memory_bytes, (double)(64 * GIB));
    done(b, a);

    b = start_run(); /* limits beyond the machine are none */
    run_done(b);
    SAMPLED(CPU_LIMIT, CONTAINER, 0, "/job", 0, 64000);
    SAMPLED(MEMORY_LIMIT, CONTAINER, 0, "/job", 0, 1024 * GIB);
    end_run(b);
    a = analyze(b);
    NEAR(a->usage.cores_allowed, 8);
    NEAR(a->usage.memory_allowed_bytes, (double)(64 * GIB));
    done(b, a);
}

static void the_peak_is_the_kernels(void **state)
{
    (void)state;
    builder *b = start_run();
    run_done(b);
    SAMPLED(RSS_PEAK, PROCESS, 1, "python3", 0, 1 * GIB, 2 * GIB, 3 * GIB);
    SAMPLED(RSS_PEAK, PROCESS, 2, "loader", 0, 1 * GIB, 1 * GIB);
    SAMPLED(RSS, TREE, 0, "", 0, 1 * GIB, 4 * GIB, 2 * GIB);
    child(b, 1, 1, (uint64_t)(3 * GIB));
    end_run(b);
    tare__analysis *a = analyze(b);
    NEAR(a->usage.rss_peak_bytes, (double)(3 * GIB));
    assert_false(a->usage.rss_peak_at_least);
    assert_string_equal(a->usage.rss_peak_process, "python3");
    NEAR(a->usage.rss_peak_at_ns, 200e6);
    NEAR(a->usage.tree_rss_max_bytes, (double)(4 * GIB));
    assert_null(a->usage.absent_memory);
    done(b, a);
}

/* It spiked after its last sample: the figure is exact, and when it was is not known. */
static void a_spike_at_the_end_is_in_the_peak(void **state)
{
    (void)state;
    builder *b = start_run();
    run_done(b);
    SAMPLED(RSS_PEAK, PROCESS, 1, "python3", 0, 1 * GIB, 1 * GIB);
    SAMPLED(RSS_PEAK, PROCESS, 2, "loader", 0, GIB / 2);
    SAMPLED(RSS, TREE, 0, "", 0, 1 * GIB, 2 * GIB);
    child(b, 1, 1, (uint64_t)(9 * GIB));
    end_run(b);
    tare__analysis *a = analyze(b);
    NEAR(a->usage.rss_peak_bytes, (double)(9 * GIB));
    assert_false(a->usage.rss_peak_at_least);
    NEAR(a->usage.tree_rss_max_bytes, (double)(9 * GIB)); /* all have no less than one of them */
    assert_null(a->usage.rss_peak_process); /* either of the two */
    assert_true(isnan(a->usage.rss_peak_at_ns));
    done(b, a);
}

static void a_descendant_that_died_is_at_least(void **state)
{
    (void)state;
    for (int lives = 0; lives < 2; lives++) {
        builder *b = start_run();
        run_done(b);
        SAMPLED(RSS, TREE, 0, "", 0, GIB, GIB, GIB, GIB);
        SAMPLED(RSS_PEAK, PROCESS, 1, "sh", 0, 1000, 1000, 1000, 1000);
        SAMPLED(RSS_PEAK, PROCESS, 2, "worker", lives ? 200 : 100, 5 * GIB, 6 * GIB);
        child(b, 1, 1, 1000);
        end_run(b);
        tare__analysis *a = analyze(b);
        NEAR(a->usage.rss_peak_bytes, (double)(6 * GIB));
        assert_int_equal(a->usage.rss_peak_at_least, !lives);
        assert_string_equal(a->usage.rss_peak_process, "worker");
        done(b, a);
    }
}

static void a_cut_file_has_a_peak_of_at_least(void **state)
{
    (void)state;
    builder *b = start_run();
    run_done(b);
    SAMPLED(RSS, TREE, 0, "", 0, GIB, GIB);
    SAMPLED(RSS_PEAK, PROCESS, 1, "train", 0, GIB, 2 * GIB);
    SAMPLED(CPU_USER, TREE, 0, "", 0, 0, 50000000);
    tare__analysis *a = analyze(b);
    assert_true(a->usage.rss_peak_at_least);
    NEAR(a->usage.cores_mean, 0.5); /* the run lasted at least to its last sample */
    NEAR(a->run.elapsed_ns, 100e6);
    done(b, a);
}

static void the_rest_is_added_up(void **state)
{
    (void)state;
    builder *b = start_run();
    run_done(b);
    SAMPLED(IO_WRITE, TREE, 0, "", 0, 10, 30);
    SAMPLED(DISK_WRITE, TREE, 0, "", 0, 0, 4096);
    SAMPLED(SWITCHES_FORCED, TREE, 0, "", 0, 2, 5);
    SAMPLED(THREADS, TREE, 0, "", 0, 2, 12, 5);
    SAMPLED(PROCESSES, TREE, 0, "", 0, 1, 3, 2);
    SAMPLED(NET_SENT, NETWORK, 0, "eth0", 0, 1000, 1500);
    SAMPLED(NET_SENT, NETWORK, 0, "eth1", 0, 7, 8);
    SAMPLED(NET_SENT, NETWORK, 0, "lo", 0, 0, 99999);
    end_run(b);
    tare__analysis *a = analyze(b);
    NEAR(a->usage.io_write_bytes, 30);
    NEAR(a->usage.disk_write_bytes, 4096);
    NEAR(a->usage.switches_forced, 5);
    NEAR(a->usage.threads_max, 12);
    NEAR(a->usage.processes_max, 3);
    NEAR(a->usage.net_sent_bytes, 501); /* what stays on the machine is not sent; nor what was before */
    done(b, a);
}

static void energy_is_of_packages_and_gpus(void **state)
{
    (void)state;
    builder *b = start_run();
    build_number(b, TARE__FIELD_CARBON, 100500);
    run_done(b);
    SAMPLED(ENERGY, SENSOR, 0, "package-0", 0, 5000000, 25000000);
    SAMPLED(ENERGY, SENSOR, 0, "package-0 dram", 0, 0, 4000000);
    SAMPLED(ENERGY, SENSOR, 0, "psys", 0, 0, 90000000);
    SAMPLED(POWER, GPU, 0, "H200", 0, 300000, 300000, 300000);
    SAMPLED(MEMORY_USED, GPU, 0, "H200", 0, GIB, 3 * GIB);
    SAMPLED(MEMORY_USED, GPU, 1, "H200", 0, GIB, GIB);
    SAMPLED(GPU_BUSY, GPU, 0, "H200", 0, 1000, 1000);
    SAMPLED(GPU_BUSY, GPU, 1, "H200", 0, 500, 500);
    end_run(b);
    tare__analysis *a = analyze(b);
    NEAR(a->usage.energy_joules, 20 + 4 + 300 * 0.2);
    NEAR(a->usage.carbon_intensity, 100.5);
    NEAR(a->usage.carbon_grams, 84 / 3.6e6 * 100.5);
    NEAR(a->usage.gpu_busy_mean, 0.75);
    NEAR(a->usage.gpu_memory_max_bytes, (double)(4 * GIB));
    assert_null(a->usage.absent_energy);
    assert_null(a->usage.absent_gpu);
    assert_int_equal(a->run.n_notes, 0);
    done(b, a);
}

static void what_is_assumed_or_left_out_of_energy_is_told(void **state)
{
    (void)state;
    builder *b = start_run();
    build_string(b, TARE__FIELD_GPUS, "1 x H200");
    run_done(b);
    build_series_absent(b, ++series, TARE__M_ENERGY, TARE__SUBJECT_SENSOR, 0, 0, "package", "needs root");
    SAMPLED(ENERGY, GPU, 0, "H200", 0, 0, 36000000); /* believed rather than power */
    SAMPLED(POWER, GPU, 0, "H200", 0, 1, 1);
    end_run(b);
    tare__analysis *a = analyze(b);
    NEAR(a->usage.energy_joules, 36);
    NEAR(a->usage.carbon_intensity, 475);
    assert_true(has_note(a, "energy covers GPUs only"));
    assert_true(has_note(a, "carbon intensity of 475 g/kWh"));
    done(b, a);
}

static void reasons_are_those_of_the_samplers(void **state)
{
    (void)state;
    builder *b = start_run();
    build_string(b, TARE__FIELD_GPUS, "n/a: no NVIDIA driver");
    run_done(b);
    build_series_absent(b, 1, TARE__M_ENERGY, TARE__SUBJECT_SENSOR, 0, 0, "package", "needs root");
    build_series_absent(b, 2, TARE__M_DISK_READ, TARE__SUBJECT_TREE, 0, 0, "", "another user's");
    end_run(b);
    tare__analysis *a = analyze(b);
    assert_string_equal(a->usage.absent_energy, "needs root");
    assert_string_equal(a->usage.absent_disk, "another user's");
    assert_string_equal(a->usage.absent_gpu, "no NVIDIA driver");
    assert_string_equal(a->usage.absent_cpu, "not sampled");
    assert_string_equal(a->run.gpus, "n/a: no NVIDIA driver");
    done(b, a);
}

static void stretched_samples_are_told(void **state)
{
    (void)state;
    for (int stretched = 0; stretched < 2; stretched++) {
        builder *b = start_run();
        build_string(b, TARE__FIELD_KERNEL, "Linux 6.1");
        build_string(b, TARE__FIELD_REVISION, "4f2a9c1 on main");
        run_done(b);
        build_number(b, TARE__FIELD_SAMPLER_CPU, 4000000);
        build_number(b, TARE__FIELD_STRETCHED, stretched ? 250000000 : 114000000);
        build_number(b, TARE__FIELD_OOM_KILLED, (uint64_t)stretched);
        end_run(b);
        tare__analysis *a = analyze(b);
        NEAR(a->own.sampler_cpu_ns, 4e6);
        NEAR(a->own.interval_ns, 1e8);
        NEAR(a->own.longest_interval_ns, stretched ? 2.5e8 : 1.14e8);
        assert_int_equal(has_note(a, "sampling interval up to 250 ms instead of 100 ms"), stretched);
        assert_int_equal(a->run.n_notes, stretched);
        assert_string_equal(a->run.kernel, "Linux 6.1");
        assert_string_equal(a->run.revision, "4f2a9c1 on main");
        assert_null(a->run.system);
        assert_int_equal(a->run.oom_killed, stretched);
        done(b, a);
    }
}

#define WITH_SETUP(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SETUP(without_samples_all_is_absent_with_a_reason),
        WITH_SETUP(the_childs_account_counts_where_it_is_larger),
        WITH_SETUP(the_tree_counts_where_it_is_larger),
        WITH_SETUP(of_an_attached_process_only_what_was_seen_counts),
        WITH_SETUP(processes_stand_in_for_the_tree),
        WITH_SETUP(limits_are_of_the_container),
        WITH_SETUP(the_peak_is_the_kernels),
        WITH_SETUP(a_spike_at_the_end_is_in_the_peak),
        WITH_SETUP(a_descendant_that_died_is_at_least),
        WITH_SETUP(a_cut_file_has_a_peak_of_at_least),
        WITH_SETUP(the_rest_is_added_up),
        WITH_SETUP(energy_is_of_packages_and_gpus),
        WITH_SETUP(what_is_assumed_or_left_out_of_energy_is_told),
        WITH_SETUP(reasons_are_those_of_the_samplers),
        WITH_SETUP(stretched_samples_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
