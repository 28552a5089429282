/* Tests of the power sampler (src/sample/parts.c and its parts) on made-up sysfs. One thread.
 * Must not know the set. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sample_fake.h"

#define CPU0 "/sys/devices/system/cpu/cpu0"
#define CPU1 "/sys/devices/system/cpu/cpu1"
#define RAPL "/sys/class/powercap/"

static int set_up(void **state)
{
    (void)state;
    make_root();
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
    tare__sample_set *set = fake_open(&tare__sampler_power, 0);
    fake_tick(set, SECOND);
    return set;
}

static void make_chip(const char *entry, const char *name, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "/sys/class/hwmon/%s/name", entry);
    write_file(path, name);
    snprintf(path, sizeof path, "/sys/class/hwmon/%s/%s", entry, file);
    write_file(path, text);
}

static void temperatures_have_labels(void **state)
{
    (void)state;
    make_chip("hwmon0", "nvme\n", "temp1_input", "35850\n");
    make_chip("hwmon1", "nvme\n", "temp1_input", "40000\n");
    make_chip("hwmon2", "coretemp\n", "temp1_input", "61000\n");
    make_chip("hwmon2", "coretemp\n", "temp1_label", "Package id 0\n");
    make_chip("hwmon2", "coretemp\n", "temp2_input", "-3000\n");
    write_file("/sys/class/thermal/thermal_zone0/type", "acpitz\n");
    write_file("/sys/class/thermal/thermal_zone0/temp", "27800\n");
    tare__sample_set *set = take_sample();
    VALUE(SENSOR, 0, "coretemp Package id 0", TEMPERATURE, 61000);
    VALUE(SENSOR, 0, "coretemp temp2", TEMPERATURE, -3000);
    VALUE(SENSOR, 0, "nvme temp1", TEMPERATURE, 35850);
    VALUE(SENSOR, 1, "nvme temp1", TEMPERATURE, 40000);
    VALUE(SENSOR, 0, "thermal acpitz", TEMPERATURE, 27800);
    assert_string_equal(set->series[0].label, "coretemp Package id 0"); /* the CPU's come first */
    assert_null(series_at(set, TARE__M_TEMPERATURE, TARE__SUBJECT_SENSOR, 0, ""));
    assert_string_equal(check_of(&tare__sampler_power, "/sys/class/hwmon")->detail, "nvme, nvme, coretemp");
    fake_close(set);
}

/* The kernel shows many a zone as a chip as well. */
static void a_zone_that_is_a_chip_counts_once(void **state)
{
    (void)state;
    make_chip("hwmon0", "cpu_thermal\n", "temp1_input", "45000\n");
    write_file("/sys/class/thermal/thermal_zone0/type", "cpu-thermal\n");
    write_file("/sys/class/thermal/thermal_zone0/temp", "45000\n");
    tare__sample_set *set = take_sample();
    VALUE(SENSOR, 0, "cpu_thermal temp1", TEMPERATURE, 45000);
    assert_null(series_at(set, TARE__M_TEMPERATURE, TARE__SUBJECT_SENSOR, 0, "thermal cpu-thermal"));
    fake_close(set);
}

static void nonsense_is_absent(void **state)
{
    (void)state;
    make_chip("hwmon0", "nct6775\n", "temp1_input", "-62000\n");
    make_chip("hwmon0", "nct6775\n", "temp2_input", "255000\n");
    make_chip("hwmon0", "nct6775\n", "temp3_input", "hot\n");
    make_chip("hwmon0", "nct6775\n", "temp4_input", "42000\n");
    tare__sample_set *set = take_sample();
    ABSENT(SENSOR, 0, "nct6775 temp1", TEMPERATURE, "implausible");
    ABSENT(SENSOR, 0, "nct6775 temp2", TEMPERATURE, "implausible");
    ABSENT(SENSOR, 0, "nct6775 temp3", TEMPERATURE, "temp3_input");
    VALUE(SENSOR, 0, "nct6775 temp4", TEMPERATURE, 42000);
    fake_close(set);
}

static void power_in_milliwatt(void **state)
{
    (void)state;
    make_chip("hwmon0", "power_meter\n", "power1_average", "125000000\n");
    make_chip("hwmon0", "power_meter\n", "power1_input", "999000000\n"); /* of the same sensor: one is enough */
    make_chip("hwmon0", "power_meter\n", "power2_input", "30500000\n");
    make_chip("hwmon0", "power_meter\n", "power1_average_interval", "1000\n");
    tare__sample_set *set = take_sample();
    VALUE(SENSOR, 0, "power_meter power1", POWER, 125000);
    VALUE(SENSOR, 0, "power_meter power2", POWER, 30500);
    assert_null(series_at(set, TARE__M_POWER, TARE__SUBJECT_SENSOR, 1, "power_meter power1"));
    ABSENT(SENSOR, 0, "", TEMPERATURE, "no temperature sensor");
    fake_close(set);
}

static void sensors_are_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        char file[32];
        snprintf(file, sizeof file, "temp%d_input", i + 1);
        make_chip(i < 40 ? "hwmon0" : "hwmon1", i < 40 ? "board\n" : "k10temp\n", file, "30000\n");
    }
    tare__sample_set *set = take_sample();
    size_t cpus = 0, all = 0;
    for (size_t i = 0; i < set->n; i++) {
        all += set->series[i].metric == TARE__M_TEMPERATURE;
        cpus += strncmp(set->series[i].label, "k10temp", 7) == 0;
    }
    assert_int_equal(all, 32);
    assert_int_equal(cpus, 20);
    fake_close(set);
}

static void make_zone(const char *entry, const char *name, const char *energy)
{
    char path[256];
    snprintf(path, sizeof path, RAPL "%s/name", entry);
    write_file(path, name);
    snprintf(path, sizeof path, RAPL "%s/energy_uj", entry);
    write_file(path, energy);
    snprintf(path, sizeof path, RAPL "%s/max_energy_range_uj", entry);
    write_file(path, "1000000\n");
}

static void energy_goes_on_when_the_counter_wraps(void **state)
{
    (void)state;
    make_folder(RAPL "intel-rapl");
    make_zone("intel-rapl:0", "package-0\n", "900000\n");
    make_zone("intel-rapl:0:0", "core\n", "1\n");
    make_zone("intel-rapl:0:1", "dram\n", "5000\n");
    make_zone("intel-rapl:1", "psys\n", "77\n");
    make_zone("intel-rapl-mmio:0", "package-0\n", "900000\n");
    tare__sample_set *set = take_sample();
    VALUE(SENSOR, 0, "package-0", ENERGY, 900000);
    VALUE(SENSOR, 0, "package-0 dram", ENERGY, 5000);
    size_t counters = 0;
    for (size_t i = 0; i < set->n; i++)
        counters += set->series[i].metric == TARE__M_ENERGY;
    assert_int_equal(counters, 2); /* nothing twice */
    write_file(RAPL "intel-rapl:0/energy_uj", "100000\n");
    fake_tick(set, 100 * SECOND);
    VALUE(SENSOR, 0, "package-0", ENERGY, 1100000);
    write_file(RAPL "intel-rapl:0/energy_uj", "50000\n");
    fake_tick(set, 200 * SECOND);
    VALUE(SENSOR, 0, "package-0", ENERGY, 2050000);
    assert_int_equal(check_of(&tare__sampler_power, "RAPL")->state, TARE__SAMPLE_WORKS);
    fake_close(set);
}

static void energy_that_only_root_may_read(void **state)
{
    (void)state;
    char path[1024];
    make_zone("intel-rapl:0", "package-0\n", "900000\n");
    fake_path(path, RAPL "intel-rapl:0/energy_uj");
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(fake_root, 0755), 0);
    bool was_root = geteuid() == 0;
    if (was_root)
        assert_int_equal(seteuid(65534), 0);
    tare__sample_set *set = take_sample();
    ABSENT(SENSOR, 0, "package-0", ENERGY, "require root since Linux 5.10");
    const tare__sample_check *check = check_of(&tare__sampler_power, "RAPL");
    assert_int_equal(check->state, TARE__SAMPLE_FAILS);
    assert_non_null(strstr(check->fix, "chmod a+r"));
    fake_close(set);
    if (was_root)
        assert_int_equal(seteuid(0), 0);
}

static void make_cpu(const char *folder, const char *package, const char *core, const char *khz)
{
    char path[256];
    snprintf(path, sizeof path, "%s/topology/physical_package_id", folder);
    write_file(path, package);
    snprintf(path, sizeof path, "%s/topology/core_id", folder);
    write_file(path, core);
    snprintf(path, sizeof path, "%s/cpufreq/scaling_cur_freq", folder);
    write_file(path, khz);
    snprintf(path, sizeof path, "%s/thermal_throttle/package_throttle_count", folder);
    write_file(path, "7\n");
    snprintf(path, sizeof path, "%s/thermal_throttle/core_throttle_count", folder);
    write_file(path, "2\n");
}

static void clocks_are_a_mean(void **state)
{
    (void)state;
    make_cpu(CPU0, "0\n", "0\n", "3000000\n");
    make_cpu(CPU1, "0\n", "1\n", "2000000\n");
    make_folder("/sys/devices/system/cpu/cpufreq");
    tare__sample_set *set = take_sample();
    VALUE(SYSTEM, 0, "", CPU_FREQUENCY, INT64_C(2500000000));
    fake_close(set);
}

/* One package of two CPUs: its count is told by both, and counts once. */
static void heat_counts_once_a_package(void **state)
{
    (void)state;
    make_cpu(CPU0, "0\n", "0\n", "3000000\n");
    make_cpu(CPU1, "0\n", "1\n", "2000000\n");
    make_cpu("/sys/devices/system/cpu/cpu2", "0\n", "1\n", "2000000\n"); /* the same core again */
    tare__sample_set *set = take_sample();
    VALUE(SYSTEM, 0, "", THROTTLE_EVENTS, 7 + 2 + 2);
    write_file(CPU0 "/thermal_throttle/package_throttle_count", "9\n");
    remove_file(CPU1 "/thermal_throttle"); /* taken offline */
    fake_tick(set, 100 * SECOND);
    VALUE(SYSTEM, 0, "", THROTTLE_EVENTS, 9 + 2 + 2);
    fake_close(set);
}

static void clock_from_cpuinfo(void **state)
{
    (void)state;
    write_file("/proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2300.500\nflags\t\t: fpu hypervisor\n\n"
                                "processor\t: 1\ncpu MHz\t\t: 2100.000\n");
    tare__sample_set *set = take_sample();
    VALUE(SYSTEM, 0, "", CPU_FREQUENCY, INT64_C(2200000000));
    assert_int_equal(check_of(&tare__sampler_power, "cpufreq")->state, TARE__SAMPLE_PARTLY);
    assert_string_equal(check_of(&tare__sampler_power, "RAPL")->fix, ""); /* of no use on a virtual machine */
    fake_close(set);
}

static void nothing_at_all(void **state)
{
    (void)state;
    tare__sample_set *set = take_sample();
    ABSENT(SENSOR, 0, "", TEMPERATURE, "no temperature sensor");
    ABSENT(SENSOR, 0, "", POWER, "no power sensor");
    ABSENT(SENSOR, 0, "package", ENERGY, "RAPL");
    ABSENT(SYSTEM, 0, "", CPU_FREQUENCY, "cpufreq");
    ABSENT(SYSTEM, 0, "", THROTTLE_EVENTS, "thermal_throttle");
    for (size_t i = 0; i < set->n; i++)
        assert_int_equal(set->series[i].puts, 0);
    assert_non_null(strstr(check_of(&tare__sampler_power, "RAPL")->fix, "modprobe"));
    for (size_t i = 0; i < n_checks; i++)
        assert_int_equal(checks[i].state, TARE__SAMPLE_FAILS);
    fake_close(set);
}

static void rubbish_is_no_value(void **state)
{
    (void)state;
    static const char *const files[] = {
        "/sys/class/hwmon/hwmon0/name",
        "/sys/class/hwmon/hwmon0/temp1_input",
        "/sys/class/hwmon/hwmon0/temp1_label",
        "/sys/class/hwmon/hwmon0/power1_input",
        "/sys/class/hwmon/hwmon0/temp_",
        "/sys/class/hwmon/hwmon0/temp",
        "/sys/class/thermal/thermal_zone0/type",
        "/sys/class/thermal/thermal_zone0/temp",
        RAPL "intel-rapl:0/energy_uj",
        RAPL "intel-rapl:0/max_energy_range_uj",
        CPU0 "/cpufreq/scaling_cur_freq",
        CPU0 "/thermal_throttle/package_throttle_count",
        CPU0 "/thermal_throttle/core_throttle_count",
        CPU0 "/topology/physical_package_id",
        CPU0 "/topology/core_id",
        "/proc/cpuinfo",
    };
    write_file(RAPL "intel-rapl:0/name", "package-0\n");
    feed_rubbish(&tare__sampler_power, 0, files, TARE__COUNT_OF(files));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(temperatures_have_labels),
        TEST(a_zone_that_is_a_chip_counts_once),
        TEST(nonsense_is_absent),
        TEST(power_in_milliwatt),
        TEST(sensors_are_bounded),
        TEST(energy_goes_on_when_the_counter_wraps),
        TEST(energy_that_only_root_may_read),
        TEST(clocks_are_a_mean),
        TEST(heat_counts_once_a_package),
        TEST(clock_from_cpuinfo),
        TEST(nothing_at_all),
        TEST(rubbish_is_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
