/* Tests of the container sampler (src/sample/container.c, cgroup.c, limits.c) on made-up control groups. One thread.
 * Must not know the set. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sample_fake.h"

#define PID 77
#define MIB (INT64_C(1) << 20)
#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup"
#define IN(label, metric, expected) VALUE(CONTAINER, 0, label, metric, expected)
#define NOT_IN(label, metric, words) ABSENT(CONTAINER, 0, label, metric, words)

static const char mounts_v2[] = "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
                                "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char mounts_v1[] = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                                "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                                "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                                "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

/* Eight CPUs, 16 GiB. */
static int set_up(void **state)
{
    (void)state;
    make_root();
    write_file("/proc/meminfo", "MemTotal: 16777216 kB\n");
    write_file("/sys/devices/system/cpu/online", "0-7\n");
    write_file("/proc/77/statm", "2500 1000 500 1 0 900 0\n");
    write_file("/proc/77/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
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
    tare__sample_set *set = fake_open(&tare__sampler_container, PID);
    fake_tick(set, SECOND);
    return set;
}

static void make_v2(void)
{
    write_file("/proc/77/cgroup", "0::/pod/job\n");
    write_file("/proc/self/cgroup", "0::/pod/job\n");
    write_file("/proc/self/mountinfo", mounts_v2);
    write_file(V2 "/pod/job/cpu.max", "200000 100000\n");
    write_file(V2 "/pod/job/memory.max", "1073741824\n");
    write_file(V2 "/pod/cpu.max", "max 100000\n");
    write_file(V2 "/pod/memory.max", "max\n");
    write_file(V2 "/pod/job/cpu.stat", "usage_usec 5000\nuser_usec 4000\nsystem_usec 1000\nnr_periods 10\n"
                                       "nr_throttled 4\nthrottled_usec 700\n");
    write_file(V2 "/pod/job/memory.current", "524288000\n");
    write_file(V2 "/pod/job/memory.peak", "624288000\n");
    write_file(V2 "/pod/job/memory.swap.current", "4096\n");
    write_file(V2 "/pod/job/memory.stat", "anon 400000000\nfile 100000000\nkernel 5\nfile_mapped 7\n");
    write_file(V2 "/pod/job/memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n");
    write_file(V2 "/pod/job/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=40\n");
    write_file(V2 "/pod/job/memory.pressure", "some avg10=0.00 total=50\nfull avg10=0.00 total=60\n");
}

static void version_2(void **state)
{
    (void)state;
    make_v2();
    tare__sample_set *set = take_sample();
    IN("/pod/job", CPU_LIMIT, 2000);
    IN("/pod/job", MEMORY_LIMIT, 1024 * MIB);
    IN("/pod/job", CPU_USAGE, 5000000);
    IN("/pod/job", CPU_PERIODS, 10);
    IN("/pod/job", CPU_THROTTLED_PERIODS, 4);
    IN("/pod/job", CPU_THROTTLED, 700000);
    IN("/pod/job", MEMORY_USED, 524288000);
    IN("/pod/job", MEMORY_PEAK, 624288000);
    IN("/pod/job", SWAPPED, 4096);
    IN("/pod/job", RSS_ANON, 400000000);
    IN("/pod/job", RSS_FILE, 100000000);
    IN("/pod/job", OOM, 3);
    IN("/pod/job", OOM_KILLS, 2);
    IN("/pod/job", PRESSURE_CPU, 40000);
    IN("/pod/job", PRESSURE_MEMORY, 50000);
    IN("/pod/job", PRESSURE_MEMORY_FULL, 60000);
    NOT_IN("/pod/job", PRESSURE_IO, "psi=1");
    fake_close(set);
}

/* The smallest limit counts, and what is used is looked at where it is. */
static void limits_of_groups_above(void **state)
{
    (void)state;
    make_v2();
    write_file(V2 "/pod/cpu.max", "50000 100000\n");
    write_file(V2 "/pod/memory.max", "536870912\n");
    write_file(V2 "/pod/memory.current", "530000000\n");
    write_file(V2 "/pod/cpu.stat", "usage_usec 9000\nnr_periods 20\nnr_throttled 15\nthrottled_usec 1\n");
    tare__sample_set *set = take_sample();
    IN("/pod/job", CPU_LIMIT, 500);
    IN("/pod/job", MEMORY_LIMIT, 512 * MIB);
    IN("/pod/job", MEMORY_USED, 530000000);
    IN("/pod/job", CPU_USAGE, 9000000);
    IN("/pod/job", CPU_THROTTLED_PERIODS, 15);
    fake_close(set);
}

static void a_limit_is_never_more_than_the_machine(void **state)
{
    (void)state;
    make_v2();
    write_file(V2 "/pod/job/cpu.max", "6400000 100000\n");
    write_file(V2 "/pod/job/memory.max", "99999999999999\n");
    tare__sample_set *set = take_sample();
    IN("/pod/job", CPU_LIMIT, 8000);
    IN("/pod/job", MEMORY_LIMIT, 16384 * MIB);
    fake_close(set);
}

static void cpuset_smaller_than_quota(void **state)
{
    (void)state;
    make_v2();
    write_file(V2 "/pod/job/cpu.max", "400000 100000\n");
    write_file(V2 "/pod/job/cpuset.cpus.effective", "0-1,4\n");
    tare__sample_set *set = take_sample();
    IN("/pod/job", CPU_LIMIT, 3000);
    fake_close(set);
}

static void affinity_smaller_than_all(void **state)
{
    (void)state;
    make_v2();
    write_file("/proc/77/status", "Cpus_allowed:\t00000000,00000010\n");
    tare__sample_set *set = take_sample();
    IN("/pod/job", CPU_LIMIT, 1000);
    fake_close(set);
}

/* OpenMP binds each thread to a CPU of its own, the first one, too: the job still has them all. */
static void threads_bound_one_by_one(void **state)
{
    (void)state;
    make_v2();
    write_file(V2 "/pod/job/cpu.max", "max 100000\n");
    tare__sample_set *set = take_sample();
    IN("/pod/job", CPU_LIMIT, 8000);
    write_file("/proc/77/status", "Cpus_allowed:\t01\n");
    write_file("/proc/77/task/77/status", "Cpus_allowed:\t01\n");
    write_file("/proc/77/task/78/status", "Cpus_allowed:\t02\n");
    write_file("/proc/77/task/79/status", "Cpus_allowed:\t80\n");
    fake_tick(set, 100 * SECOND);
    IN("/pod/job", CPU_LIMIT, 3000);
    fake_close(set);
}

static void version_1(void **state)
{
    (void)state;
    write_file("/proc/77/cgroup", "9:name=systemd:/\n4:memory:/docker/abc\n3:cpuset:/docker/abc\n"
                                  "2:cpu,cpuacct:/docker/abc\n");
    write_file("/proc/self/mountinfo", mounts_v1);
    write_file(V1 "/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "150000\n");
    write_file(V1 "/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    write_file(V1 "/cpu,cpuacct/docker/abc/cpuacct.usage", "123456789\n");
    write_file(V1 "/cpu,cpuacct/docker/abc/cpu.stat", "nr_periods 7\nnr_throttled 5\nthrottled_time 900\n");
    write_file(V1 "/cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
    write_file(V1 "/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
    write_file(V1 "/cpuset/docker/abc/cpuset.cpus", "0-3\n");
    write_file(V1 "/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    write_file(V1 "/memory/docker/memory.limit_in_bytes", "2147483648\n");
    write_file(V1 "/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file(V1 "/memory/docker/memory.usage_in_bytes", "1000\n");
    write_file(V1 "/memory/docker/memory.max_usage_in_bytes", "2000\n");
    write_file(V1 "/memory/docker/memory.stat", "cache 1\nrss 2\ntotal_cache 300\ntotal_rss 400\ntotal_swap 500\n");
    write_file(V1 "/memory/docker/abc/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n");
    tare__sample_set *set = take_sample();
    const char *label = "/docker/abc";
    IN(label, CPU_LIMIT, 1500);
    IN(label, MEMORY_LIMIT, 2048 * MIB);
    IN(label, CPU_USAGE, 123456789);
    IN(label, CPU_PERIODS, 7);
    IN(label, CPU_THROTTLED_PERIODS, 5);
    IN(label, CPU_THROTTLED, 900);
    IN(label, MEMORY_USED, 1000);
    IN(label, MEMORY_PEAK, 2000);
    IN(label, RSS_FILE, 300);
    IN(label, RSS_ANON, 400);
    IN(label, SWAPPED, 500);
    IN(label, OOM_KILLS, 6);
    NOT_IN(label, OOM, "cgroup v1");
    NOT_IN(label, PRESSURE_CPU, "cgroup v2");
    fake_close(set);
}

/* Version 1 also tells of limits above what can be seen from inside of a container. */
static void version_1_tells_of_limits_out_of_sight(void **state)
{
    (void)state;
    write_file("/proc/77/cgroup", "4:memory:/docker/abc\n");
    write_file("/proc/self/mountinfo",
               "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    write_file(V1 "/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file(V1 "/memory/memory.usage_in_bytes", "77\n");
    write_file(V1 "/memory/memory.stat", "hierarchical_memory_limit 1073741824\ntotal_rss 4\n");
    tare__sample_set *set = take_sample();
    IN("/docker/abc", MEMORY_LIMIT, 1024 * MIB);
    IN("/docker/abc", MEMORY_USED, 77);
    NOT_IN("/docker/abc", CPU_USAGE, "control group");
    fake_close(set);
}

/* Hierarchies of version 1 have groups of their own: time and pressure of another one are not this one's. */
static void counted_in_another_group(void **state)
{
    (void)state;
    write_file("/proc/77/cgroup", "2:cpu:/limited\n3:cpuacct:/\n4:memory:/m\n0::/\n");
    write_file("/proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                                       "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
                                       "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                       "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    write_file(V1 "/cpu/limited/cpu.cfs_quota_us", "50000\n");
    write_file(V1 "/cpu/limited/cpu.cfs_period_us", "100000\n");
    write_file(V1 "/cpu/limited/cpu.stat", "nr_periods 3\n");
    write_file(V1 "/cpuacct/cpuacct.usage", "5\n");
    write_file(V1 "/unified/cpu.pressure", "some avg10=0 total=2\n");
    make_folder(V1 "/memory/m");
    tare__sample_set *set = take_sample();
    IN("/limited", CPU_LIMIT, 500);
    IN("/limited", CPU_PERIODS, 3);
    NOT_IN("/limited", CPU_USAGE, "another control group");
    NOT_IN("/limited", PRESSURE_CPU, "cgroup v2");
    fake_close(set);
}

/* Memory by version 1, CPU and pressure by version 2. */
static void both_versions(void **state)
{
    (void)state;
    write_file("/proc/77/cgroup", "4:memory:/m\n0::/u\n");
    write_file("/proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                       "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    write_file(V1 "/memory/m/memory.limit_in_bytes", "1048576\n");
    write_file(V1 "/memory/m/memory.usage_in_bytes", "9\n");
    write_file(V1 "/unified/u/cpu.max", "50000 50000\n");
    write_file(V1 "/unified/u/cpu.stat", "usage_usec 8\n");
    write_file(V1 "/unified/u/cpu.pressure", "some avg10=0 total=2\n");
    tare__sample_set *set = take_sample();
    IN("/m", MEMORY_LIMIT, MIB);
    IN("/m", MEMORY_USED, 9);
    IN("/m", CPU_LIMIT, 1000);
    IN("/m", CPU_USAGE, 8000);
    IN("/m", PRESSURE_CPU, 2000);
    NOT_IN("/m", CPU_PERIODS, "cpu.stat");
    fake_close(set);
}

/* A container with a namespace of its own sees its group as the top. */
static void inside_of_a_namespace(void **state)
{
    (void)state;
    write_file("/proc/77/cgroup", "0::/\n");
    write_file("/proc/self/mountinfo", mounts_v2);
    write_file(V2 "/cpu.max", "100000 100000\n");
    write_file(V2 "/memory.max", "1048576\n");
    write_file(V2 "/memory.current", "55\n");
    tare__sample_set *set = take_sample();
    IN("/", CPU_LIMIT, 1000);
    IN("/", MEMORY_LIMIT, MIB);
    IN("/", MEMORY_USED, 55);
    fake_close(set);
}

static void no_limit(void **state)
{
    (void)state;
    write_file("/proc/77/cgroup", "0::/\n");
    write_file("/proc/self/mountinfo", mounts_v2);
    write_file(V2 "/cpu.stat", "usage_usec 5\n");
    tare__sample_set *set = take_sample();
    IN("no limit", CPU_LIMIT, 8000);
    IN("no limit", MEMORY_LIMIT, 16384 * MIB);
    IN("no limit", CPU_USAGE, 5000);
    NOT_IN("no limit", MEMORY_USED, "the top control group has no memory.current");
    fake_close(set);
}

static void no_control_group_at_all(void **state)
{
    (void)state;
    tare__sample_set *set = take_sample();
    IN("no limit", CPU_LIMIT, 8000);
    IN("no limit", MEMORY_LIMIT, 16384 * MIB);
    NOT_IN("no limit", CPU_USAGE, "/proc/77/cgroup does not exist");
    NOT_IN("no limit", MEMORY_USED, "/proc/77/cgroup does not exist");
    const tare__sample_check *check = check_of(&tare__sampler_container, "control groups");
    assert_int_equal(check->state, TARE__SAMPLE_FAILS);
    assert_non_null(strstr(check->fix, "mount"));
    fake_close(set);
}

static void nothing_known_of_the_machine(void **state)
{
    (void)state;
    make_v2();
    remove_file("/proc/meminfo");
    write_file(V2 "/pod/job/memory.max", "max\n");
    tare__sample_set *set = take_sample();
    NOT_IN("/pod/job", MEMORY_LIMIT, "/proc/meminfo");
    IN("/pod/job", CPU_LIMIT, 2000);
    fake_close(set);
}

/* A group outside of the namespace has nothing to do with what is mounted here. */
static void outside_of_the_namespace(void **state)
{
    (void)state;
    make_v2();
    write_file("/proc/77/cgroup", "0::/../other\n");
    write_file(V2 "/memory.max", "4096\n");
    tare__sample_set *set = take_sample();
    IN("no limit", MEMORY_LIMIT, 16384 * MIB);
    NOT_IN("no limit", MEMORY_USED, "control group");
    fake_close(set);
}

/* Each group it was in is a subject of its own. */
static void it_follows_the_program(void **state)
{
    (void)state;
    make_v2();
    write_file(V2 "/other/memory.max", "4096000\n");
    write_file(V2 "/other/memory.current", "1\n");
    tare__sample_set *set = take_sample();
    write_file("/proc/77/cgroup", "0::/other\n");
    fake_tick(set, SECOND + SECOND / 10);
    VALUE(CONTAINER, 1, "/other", MEMORY_LIMIT, 4096000);
    VALUE(CONTAINER, 1, "/other", MEMORY_USED, 1);
    VALUE(CONTAINER, 1, "/other", CPU_LIMIT, 8000);
    NOT_IN("/pod/job", MEMORY_USED, "moved");
    NOT_IN("/pod/job", MEMORY_LIMIT, "moved");
    NOT_IN("/pod/job", PRESSURE_CPU, "moved");
    fake_tick(set, 10 * SECOND);
    write_file("/proc/77/cgroup", "0::/pod/job\n");
    fake_tick(set, 10 * SECOND + SECOND / 10); /* later on it is looked at more seldom */
    VALUE(CONTAINER, 1, "/other", MEMORY_USED, 1);
    fake_tick(set, 12 * SECOND);
    VALUE(CONTAINER, 2, "/pod/job", MEMORY_USED, 524288000);
    fake_close(set);
}

static void a_limit_set_later(void **state)
{
    (void)state;
    make_v2();
    tare__sample_set *set = take_sample();
    write_file(V2 "/pod/job/cpu.max", "100000 100000\n");
    fake_tick(set, 3 * SECOND);
    IN("/pod/job", CPU_LIMIT, 1000);
    write_file(V2 "/pod/job/cpu.max", "max 100000\n");
    write_file(V2 "/pod/job/memory.max", "max\n");
    fake_tick(set, 6 * SECOND);
    VALUE(CONTAINER, 1, "no limit", CPU_LIMIT, 8000);
    NOT_IN("/pod/job", CPU_LIMIT, "limits changed");
    fake_close(set);
}

static void the_program_ended(void **state)
{
    (void)state;
    make_v2();
    write_file("/proc/77/status", "Cpus_allowed:\t10\n");
    tare__sample_set *set = take_sample();
    remove_file("/proc/77");
    fake_tick(set, 3 * SECOND);
    IN("/pod/job", MEMORY_USED, 524288000);
    IN("/pod/job", CPU_LIMIT, 1000);
    remove_file(V2 "/pod"); /* and its group was removed */
    fake_tick(set, 6 * SECOND);
    assert_null(series_at(set, TARE__M_CPU_LIMIT, TARE__SUBJECT_CONTAINER, 1, "no limit"));
    fake_close(set);
}

/* A process that ended is shown in the top group until it is waited for: its last figures are its group's. */
static void the_program_is_a_zombie(void **state)
{
    (void)state;
    make_v2();
    tare__sample_set *set = take_sample();
    write_file("/proc/77/cgroup", "0::/\n");
    write_file("/proc/77/statm", "0 0 0 0 0 0 0\n");
    write_file(V2 "/pod/job/memory.events", "oom 3\noom_kill 9\n");
    fake_tick(set, 3 * SECOND);
    IN("/pod/job", OOM_KILLS, 9);
    IN("/pod/job", MEMORY_LIMIT, 1024 * MIB);
    fake_close(set);
}

static void controller_not_switched_on(void **state)
{
    (void)state;
    make_v2();
    remove_file(V2 "/pod/job/memory.current");
    tare__sample_set *set = take_sample();
    NOT_IN("/pod/job", MEMORY_USED, "controller is not enabled");
    const tare__sample_check *check = check_of(&tare__sampler_container, "memory.current");
    assert_int_equal(check->state, TARE__SAMPLE_PARTLY);
    assert_non_null(strstr(check->fix, "+memory"));
    fake_close(set);
}

static void paths_with_blanks_and_several_mounts(void **state)
{
    (void)state;
    write_file("/proc/77/cgroup", "0::/a b/c:d\n");
    write_file("/proc/self/mountinfo", "40 1 0:38 /elsewhere /first rw - cgroup2 cgroup2 rw\n"
                                       "41 1 0:38 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
    make_folder("/first");
    write_file("/my groups/a b/c:d/memory.max", "8192\n");
    write_file("/my groups/a b/memory.max", "4096\n");
    tare__sample_set *set = take_sample();
    IN("/a b/c:d", MEMORY_LIMIT, 4096);
    fake_close(set);
}

static void memory_stat_is_paced(void **state)
{
    (void)state;
    make_v2();
    tare__sample_set *set = fake_open(&tare__sampler_container, PID);
    set->cost_step_ns = 1000000;
    fake_tick(set, SECOND);
    IN("/pod/job", RSS_ANON, 400000000);
    fake_tick(set, SECOND + SECOND / 10);
    IN("/pod/job", MEMORY_USED, 524288000);
    assert_false(series_at(set, TARE__M_RSS_ANON, TARE__SUBJECT_CONTAINER, 0, "/pod/job")->has);
    fake_tick(set, 2 * SECOND);
    IN("/pod/job", RSS_ANON, 400000000);
    fake_close(set);
}

static void doctor_tells_the_limits(void **state)
{
    (void)state;
    make_v2();
    write_file("/proc/self/status", "Cpus_allowed:\tff\n");
    const tare__sample_check *check = check_of(&tare__sampler_container, "control groups");
    assert_int_equal(check->state, TARE__SAMPLE_WORKS);
    assert_non_null(strstr(check->detail, "2.00 cores, 1.00 GiB"));
    assert_int_equal(check_of(&tare__sampler_container, "pressure")->state, TARE__SAMPLE_WORKS);
}

static void rubbish_is_no_value(void **state)
{
    (void)state;
    static const char *const inner[] = {
        V2 "/pod/job/cpu.max",          V2 "/pod/job/memory.max",           V2 "/pod/job/cpu.stat",
        V2 "/pod/job/memory.current",   V2 "/pod/job/memory.peak",          V2 "/pod/job/memory.stat",
        V2 "/pod/job/memory.events",    V2 "/pod/job/cpu.pressure",         V2 "/pod/job/memory.pressure",
        V2 "/pod/job/io.pressure",      V2 "/pod/job/cpuset.cpus.effective", "/proc/77/status",
        V2 "/pod/job/memory.swap.current", "/sys/devices/system/cpu/online", "/proc/meminfo",
    };
    static const char *const outer[] = {"/proc/77/cgroup", "/proc/self/cgroup", "/proc/self/mountinfo"};
    make_v2();
    feed_rubbish(&tare__sampler_container, PID, inner, TARE__COUNT_OF(inner));
    feed_rubbish(&tare__sampler_container, PID, outer, TARE__COUNT_OF(outer));
    make_v2();
    feed_torn(&tare__sampler_container, PID, "/proc/77/cgroup", "4:memory:/docker/abc\n0::/pod/job\n");
    write_file("/proc/77/cgroup", "0::/pod/job\n");
    feed_torn(&tare__sampler_container, PID, "/proc/self/mountinfo", mounts_v2);
    feed_torn(&tare__sampler_container, PID, V2 "/pod/job/cpu.max", "200000 100000\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(version_2),
        TEST(limits_of_groups_above),
        TEST(a_limit_is_never_more_than_the_machine),
        TEST(cpuset_smaller_than_quota),
        TEST(affinity_smaller_than_all),
        TEST(threads_bound_one_by_one),
        TEST(version_1),
        TEST(version_1_tells_of_limits_out_of_sight),
        TEST(counted_in_another_group),
        TEST(both_versions),
        TEST(inside_of_a_namespace),
        TEST(no_limit),
        TEST(no_control_group_at_all),
        TEST(nothing_known_of_the_machine),
        TEST(outside_of_the_namespace),
        TEST(it_follows_the_program),
        TEST(a_limit_set_later),
        TEST(the_program_ended),
        TEST(the_program_is_a_zombie),
        TEST(controller_not_switched_on),
        TEST(paths_with_blanks_and_several_mounts),
        TEST(memory_stat_is_paced),
        TEST(doctor_tells_the_limits),
        TEST(rubbish_is_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
