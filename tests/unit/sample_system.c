/* Tests of the system sampler (src/sample/parts.c and its parts) on made-up /proc and /sys. One thread.
 * Must not know the set. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sample_fake.h"

#define TICK (INT64_C(1000000000) / sysconf(_SC_CLK_TCK))
#define SYSTEM(metric, expected) VALUE(SYSTEM, 0, "", metric, expected)
#define NO_SYSTEM(metric, words) ABSENT(SYSTEM, 0, "", metric, words)

static const char stat_text[] = "cpu  100 10 50 1000 7 3 2 5 0 0\n"
                                "cpu0 60 4 30 500 3 2 1 4 0 0\n"
                                "cpu1 40 6 20 500 4 1 1 1 0 0\n"
                                "intr 8759622 0 0 0\nctxt 5\nprocs_running 3\n";
static const char meminfo_text[] = "MemTotal:        8000000 kB\nMemFree:          100000 kB\n"
                                   "MemAvailable:    6000000 kB\nBuffers:           50000 kB\n"
                                   "Cached:          2000000 kB\nSwapCached:            7 kB\n"
                                   "SwapTotal:       1000000 kB\nSwapFree:         900000 kB\n";
static const char disks_text[] = " 259 0 nvme0n1 100 5 2000 30 200 6 4000 40 0 500 700 1 2 3 4 5 6\n"
                                 " 259 1 nvme0n1p1 90 5 1000 30 190 6 3000 40 0 400 600 1 2 3 4 5 6\n"
                                 "   7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"
                                 " 253 0 dm-0 10 0 80 3 20 0 160 4 0 50 70\n";
static const char net_text[] =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n"
    "    lo:    6460      58 0 0 0 0 0 0     6460      58 0 0 0 0 0 0\n"
    "  ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    "  eth0:1000    10    1    2 0 0 0 0   2000    20    3    4 0 0 0 0\n";
static const char psi_text[] = "some avg10=5.18 avg60=3.84 avg300=5.37 total=2000\n"
                               "full avg10=0.00 avg60=0.00 avg300=0.00 total=1500\n";

static void make_machine(void)
{
    make_root();
    write_file("/proc/stat", stat_text);
    write_file("/proc/loadavg", "1.25 0.50 0.10 3/602 81\n");
    write_file("/proc/meminfo", meminfo_text);
    write_file("/proc/vmstat", "nr_free_pages 5\npswpin 3\npswpout 4\nzero 0\n");
    write_file("/proc/diskstats", disks_text);
    write_file("/proc/net/dev", net_text);
    write_file("/proc/pressure/cpu", psi_text);
    write_file("/proc/pressure/memory", psi_text);
    write_file("/proc/pressure/io", psi_text);
    make_folder("/sys/block/nvme0n1/slaves");
    make_folder("/sys/block/loop0/slaves");
    make_folder("/sys/block/dm-0/slaves/nvme0n1p1");
}

static int set_up(void **state)
{
    (void)state;
    make_machine();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_file("");
    return 0;
}

static tare__sample_set *take_sample(void)
{
    tare__sample_set *set = fake_open(&tare__sampler_system, 0);
    fake_tick(set, SECOND);
    return set;
}

static void times_of_machine_and_cpus(void **state)
{
    (void)state;
    tare__sample_set *set = take_sample();
    SYSTEM(CPU_USER, 110 * TICK);
    SYSTEM(CPU_SYSTEM, 55 * TICK);
    SYSTEM(CPU_IDLE, 1000 * TICK);
    SYSTEM(CPU_IOWAIT, 7 * TICK);
    SYSTEM(CPU_STEAL, 5 * TICK);
    VALUE(CPU, 0, "", CPU_USER, 64 * TICK);
    VALUE(CPU, 1, "", CPU_SYSTEM, 22 * TICK);
    VALUE(CPU, 1, "", CPU_STEAL, 1 * TICK);
    SYSTEM(LOAD, 1250);
    SYSTEM(RUNNABLE, 3);
    fake_close(set);
}

/* The kernel's idle and iowait may go back: then they hold. A CPU may go and come. */
static void times_hold_when_the_kernel_goes_back(void **state)
{
    (void)state;
    tare__sample_set *set = take_sample();
    write_file("/proc/stat", "cpu  100 10 50 990 6 3 2 5 0 0\ncpu0 60 4 30 490 2 2 1 4 0 0\n");
    fake_tick(set, 2 * SECOND);
    SYSTEM(CPU_IDLE, 1000 * TICK);
    SYSTEM(CPU_IOWAIT, 7 * TICK);
    VALUE(CPU, 0, "", CPU_IDLE, 500 * TICK);
    assert_false(series_at(set, TARE__M_CPU_IDLE, TARE__SUBJECT_CPU, 1, "")->has);
    write_file("/proc/stat", stat_text);
    fake_tick(set, 3 * SECOND);
    VALUE(CPU, 1, "", CPU_IDLE, 500 * TICK);
    fake_close(set);
}

static void old_kernels_have_fewer_columns(void **state)
{
    (void)state;
    write_file("/proc/stat", "cpu 100 10 50 1000\ncpu0 100 10 50 1000\n");
    tare__sample_set *set = take_sample();
    SYSTEM(CPU_USER, 110 * TICK);
    SYSTEM(CPU_SYSTEM, 50 * TICK);
    NO_SYSTEM(CPU_IOWAIT, "/proc/stat");
    NO_SYSTEM(CPU_STEAL, "/proc/stat");
    fake_close(set);
}

static void cpus_are_bounded(void **state)
{
    (void)state;
    size_t room = 600 * 64, at = 0;
    char *text = malloc(room);
    at += (size_t)snprintf(text, room, "cpu 1 1 1 1 1 1 1 1\n");
    for (int i = 0; i < 600; i++)
        at += (size_t)snprintf(text + at, room - at, "cpu%d 1 0 1 1 1 1 1 1\n", i);
    write_file("/proc/stat", text);
    free(text);
    tare__sample_set *set = take_sample();
    VALUE(CPU, 511, "", CPU_USER, 1 * TICK);
    assert_null(series_at(set, TARE__M_CPU_USER, TARE__SUBJECT_CPU, 512, ""));
    fake_close(set);
}

static void memory_and_swap(void **state)
{
    (void)state;
    tare__sample_set *set = take_sample();
    SYSTEM(MEMORY_TOTAL, INT64_C(8000000) * 1024);
    SYSTEM(MEMORY_AVAILABLE, INT64_C(6000000) * 1024);
    SYSTEM(MEMORY_USED, INT64_C(2000000) * 1024);
    SYSTEM(MEMORY_CACHED, INT64_C(2000000) * 1024);
    SYSTEM(SWAP_TOTAL, INT64_C(1000000) * 1024);
    SYSTEM(SWAP_USED, INT64_C(100000) * 1024);
    SYSTEM(SWAP_IN, 3 * sysconf(_SC_PAGESIZE));
    SYSTEM(SWAP_OUT, 4 * sysconf(_SC_PAGESIZE));
    write_file("/proc/vmstat", "pswpin 13\npswpout 14\n");
    fake_tick(set, 2 * SECOND);
    SYSTEM(SWAP_IN, 13 * sysconf(_SC_PAGESIZE));
    fake_close(set);
}

static void without_swap_the_counters_stand(void **state)
{
    (void)state;
    write_file("/proc/meminfo", "MemTotal: 10 kB\nMemAvailable: 4 kB\nCached: 1 kB\n"
                                "SwapTotal: 0 kB\nSwapFree: 0 kB\n");
    tare__sample_set *set = take_sample();
    fake_tick(set, 2 * SECOND);
    SYSTEM(SWAP_TOTAL, 0);
    SYSTEM(SWAP_USED, 0);
    SYSTEM(SWAP_IN, 3 * sysconf(_SC_PAGESIZE));
    fake_close(set);
}

static void memory_before_linux_3_14(void **state)
{
    (void)state;
    write_file("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 50 kB\nCached: 250 kB\n");
    tare__sample_set *set = take_sample();
    NO_SYSTEM(MEMORY_AVAILABLE, "/proc/meminfo");
    SYSTEM(MEMORY_USED, 600 * 1024);
    NO_SYSTEM(SWAP_TOTAL, "/proc/meminfo");
    assert_int_equal(check_of(&tare__sampler_system, "/proc/meminfo")->state, TARE__SAMPLE_PARTLY);
    fake_close(set);
}

static void whole_disks_only(void **state)
{
    (void)state;
    tare__sample_set *set = take_sample();
    VALUE(DISK, 0, "nvme0n1", DISK_READ, 2000 * 512);
    VALUE(DISK, 0, "nvme0n1", DISK_WRITE, 4000 * 512);
    VALUE(DISK, 0, "nvme0n1", DISK_READS, 100);
    VALUE(DISK, 0, "nvme0n1", DISK_WRITES, 200);
    VALUE(DISK, 0, "nvme0n1", DISK_BUSY, INT64_C(500000000));
    VALUE(DISK, 0, "nvme0n1", DISK_QUEUE, INT64_C(700000000));
    assert_null(series_at(set, TARE__M_DISK_READ, TARE__SUBJECT_DISK, 0, "nvme0n1p1"));
    assert_null(series_at(set, TARE__M_DISK_READ, TARE__SUBJECT_DISK, 0, "dm-0"));  /* lies on nvme0n1 */
    assert_null(series_at(set, TARE__M_DISK_READ, TARE__SUBJECT_DISK, 0, "loop0")); /* not used */
    assert_null(series_at(set, TARE__M_DISK_READ, TARE__SUBJECT_DISK, 0, ""));
    fake_close(set);
}

static void disks_come_and_go(void **state)
{
    (void)state;
    tare__sample_set *set = take_sample();
    make_folder("/sys/block/sda");
    write_file("/proc/diskstats", "7 0 loop0 1 0 8 0 0 0 0 0 0 1 1\n8 0 sda 5 0 50 0 0 0 0 0 0 9 9\n");
    fake_tick(set, 2 * SECOND);
    VALUE(DISK, 0, "sda", DISK_READS, 5);
    VALUE(DISK, 0, "loop0", DISK_READS, 1);
    ABSENT(DISK, 0, "nvme0n1", DISK_READS, "was removed");
    write_file("/proc/diskstats", "8 0 sda 2 0 20 0 0 0 0 0 0 1 1\n259 0 nvme0n1 3 0 8 0 0 0 0 0 0 1 1\n");
    fake_tick(set, 3 * SECOND);
    VALUE(DISK, 0, "sda", DISK_READS, 7);        /* another disk of that name: it counts on */
    VALUE(DISK, 0, "nvme0n1", DISK_READS, 103);
    fake_close(set);
}

static void disks_are_bounded(void **state)
{
    (void)state;
    size_t room = 3000 * 64, at = 0;
    char *text = malloc(room), name[64];
    for (int i = 0; i < 3000; i++)
        at += (size_t)snprintf(text + at, room - at, "8 0 sd%d 5 0 50 0 0 0 0 0 0 9 9\n", i);
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "/sys/block/sd%d", i);
        make_folder(name);
    }
    write_file("/proc/diskstats", text);
    free(text);
    tare__sample_set *set = take_sample();
    fake_tick(set, 2 * SECOND);
    size_t told = 0;
    for (size_t i = 0; i < set->n; i++)
        told += set->series[i].metric == TARE__M_DISK_READS && set->series[i].has;
    assert_int_equal(told, 256);
    fake_close(set);
}

static void interfaces_in_use(void **state)
{
    (void)state;
    tare__sample_set *set = take_sample();
    VALUE(NETWORK, 0, "eth0", NET_RECEIVED, 1000);
    VALUE(NETWORK, 0, "eth0", NET_SENT, 2000);
    VALUE(NETWORK, 0, "eth0", NET_ERRORS, 10);
    assert_null(series_at(set, TARE__M_NET_SENT, TARE__SUBJECT_NETWORK, 0, "lo"));
    assert_null(series_at(set, TARE__M_NET_SENT, TARE__SUBJECT_NETWORK, 0, "ifb0"));
    fake_close(set);
}

static void pressure_in_ns(void **state)
{
    (void)state;
    tare__sample_set *set = take_sample();
    SYSTEM(PRESSURE_CPU, 2000000);
    SYSTEM(PRESSURE_MEMORY, 2000000);
    SYSTEM(PRESSURE_MEMORY_FULL, 1500000);
    SYSTEM(PRESSURE_IO, 2000000);
    SYSTEM(PRESSURE_IO_FULL, 1500000);
    fake_close(set);
}

static void no_pressure_has_a_reason(void **state)
{
    (void)state;
    remove_file("/proc/pressure");
    tare__sample_set *set = take_sample();
    fake_tick(set, 2 * SECOND);
    NO_SYSTEM(PRESSURE_CPU, "psi=1");
    NO_SYSTEM(PRESSURE_IO_FULL, "psi=1");
    const tare__sample_check *check = check_of(&tare__sampler_system, "/proc/pressure");
    assert_int_equal(check->state, TARE__SAMPLE_FAILS);
    assert_non_null(strstr(check->fix, "psi=1"));
    fake_close(set);
}

static void nothing_at_all(void **state)
{
    (void)state;
    remove_file("/proc");
    remove_file("/sys");
    tare__sample_set *set = take_sample();
    NO_SYSTEM(CPU_USER, "/proc/stat does not exist");
    NO_SYSTEM(LOAD, "/proc/loadavg does not exist");
    NO_SYSTEM(MEMORY_TOTAL, "/proc/meminfo does not exist");
    NO_SYSTEM(SWAP_IN, "/proc/vmstat does not exist");
    ABSENT(DISK, 0, "", DISK_READ, "/proc/diskstats does not exist");
    ABSENT(NETWORK, 0, "", NET_SENT, "/proc/net/dev does not exist");
    for (size_t i = 0; i < set->n; i++)
        assert_int_equal(set->series[i].puts, 0);
    check_of(&tare__sampler_system, "/proc/stat");
    for (size_t i = 0; i < n_checks; i++)
        assert_int_equal(checks[i].state, TARE__SAMPLE_FAILS);
    fake_close(set);
}

static void unreadable_files_have_a_reason(void **state)
{
    (void)state;
    remove_file("/proc/stat");
    make_folder("/proc/stat");
    tare__sample_set *set = take_sample();
    NO_SYSTEM(CPU_USER, "/proc/stat");
    SYSTEM(MEMORY_CACHED, INT64_C(2000000) * 1024);
    fake_close(set);
}

/* What takes long to read is looked at more seldom; what does not, is not. */
static void expensive_parts_are_paced(void **state)
{
    (void)state;
    tare__sample_set *set = fake_open(&tare__sampler_system, 0);
    set->cost_step_ns = 1000000; /* a millisecond a part */
    fake_tick(set, SECOND);
    SYSTEM(CPU_USER, 110 * TICK);
    fake_tick(set, SECOND + SECOND / 10);
    assert_false(series_at(set, TARE__M_CPU_USER, TARE__SUBJECT_SYSTEM, 0, "")->has);
    fake_tick(set, SECOND + SECOND / 2);
    SYSTEM(CPU_USER, 110 * TICK);
    set->cost_step_ns = 0;
    fake_tick(set, 3 * SECOND);
    fake_tick(set, 3 * SECOND + 1000000);
    SYSTEM(CPU_USER, 110 * TICK);
    fake_close(set);
}

static void doctor_is_content(void **state)
{
    (void)state;
    const tare__sample_check *check = check_of(&tare__sampler_system, "/proc/stat");
    assert_string_equal(check->detail, "CPU times of 2 CPUs");
    for (size_t i = 0; i < n_checks; i++) {
        assert_int_equal(checks[i].state, TARE__SAMPLE_WORKS);
        assert_string_equal(checks[i].fix, "");
        assert_string_equal(checks[i].sampler, "system");
    }
    assert_string_equal(check_of(&tare__sampler_system, "/proc/diskstats")->detail, "nvme0n1");
    assert_string_equal(check_of(&tare__sampler_system, "/proc/net/dev")->detail, "eth0");
}

static void rubbish_is_no_value(void **state)
{
    (void)state;
    static const char *const files[] = {"/proc/stat",         "/proc/loadavg",     "/proc/meminfo",
                                        "/proc/vmstat",       "/proc/diskstats",   "/proc/net/dev",
                                        "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"};
    feed_rubbish(&tare__sampler_system, 0, files, TARE__COUNT_OF(files));
    feed_torn(&tare__sampler_system, 0, "/proc/stat", stat_text);
    feed_torn(&tare__sampler_system, 0, "/proc/loadavg", "1.25 0.50 0.10 3/602 81\n");
    feed_torn(&tare__sampler_system, 0, "/proc/diskstats", disks_text);
    feed_torn(&tare__sampler_system, 0, "/proc/net/dev", net_text);
    feed_torn(&tare__sampler_system, 0, "/proc/pressure/cpu", psi_text);
    feed_torn(&tare__sampler_system, 0, "/proc/meminfo", meminfo_text);
}

/* A number that was cut off must not be taken for a smaller one. */
static void torn_numbers_are_no_numbers(void **state)
{
    (void)state;
    write_file("/proc/stat", "cpu  100 10 50 10");
    write_file("/proc/meminfo", "MemTotal:        80");
    write_file("/proc/pressure/cpu", "some avg10=5.18 avg60=3.84 avg300=5.37 total=20");
    tare__sample_set *set = take_sample();
    NO_SYSTEM(CPU_USER, "/proc/stat");
    NO_SYSTEM(MEMORY_TOTAL, "/proc/meminfo");
    NO_SYSTEM(PRESSURE_CPU, "/proc/pressure/cpu");
    fake_close(set);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(times_of_machine_and_cpus),
        TEST(times_hold_when_the_kernel_goes_back),
        TEST(old_kernels_have_fewer_columns),
        TEST(cpus_are_bounded),
        TEST(memory_and_swap),
        TEST(without_swap_the_counters_stand),
        TEST(memory_before_linux_3_14),
        TEST(whole_disks_only),
        TEST(disks_come_and_go),
        TEST(disks_are_bounded),
        TEST(interfaces_in_use),
        TEST(pressure_in_ns),
        TEST(no_pressure_has_a_reason),
        TEST(nothing_at_all),
        TEST(unreadable_files_have_a_reason),
        TEST(expensive_parts_are_paced),
        TEST(doctor_is_content),
        TEST(rubbish_is_no_value),
        TEST(torn_numbers_are_no_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
