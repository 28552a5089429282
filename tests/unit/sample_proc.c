/* sample_proc: files of /proc/PID as numbers, whole, odd and broken ones; and small files read.
 * One thread. Must not know the sampler. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sample/watch.h"

static void test_stat(void **state)
{
    (void)state;
    tare__proc_stat stat;
    assert_true(tare__proc_stat_parse("24695 (cat) D 24389 24388 19752 0 -1 4194304 100 2 3 4 5 6 7 8 20 0 9 0 "
                                      "1259281 3133440 416 18446744073709551615 1 1\n", &stat));
    assert_string_equal(stat.name, "cat");
    assert_int_equal(stat.state, 'D');
    assert_int_equal(stat.parent, 24389);
    assert_int_equal(stat.session, 19752);
    assert_int_equal(stat.faults_minor, 100);
    assert_int_equal(stat.faults_major, 3);
    assert_int_equal(stat.user, 5);
    assert_int_equal(stat.system, 6);
    assert_int_equal(stat.waited_user, 7);
    assert_int_equal(stat.waited_system, 8);
    assert_int_equal(stat.threads, 9);
    assert_int_equal(stat.start_time, 1259281);
    assert_int_equal(stat.rss_pages, 416);
}

static void test_a_name_may_hold_anything(void **state)
{
    (void)state;
    tare__proc_stat stat;
    const char *names[] = {"a) (b", ") R 1 1 1", "", " ", "((()", "tab\there", "1 2 3"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++) {
        char line[512];
        snprintf(line, sizeof line, "7 (%s) S 42 7 9 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 0 1 0", names[i]);
        assert_true(tare__proc_stat_parse(line, &stat));
        assert_string_equal(stat.name, names[i]);
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.parent, 42);
        assert_int_equal(stat.start_time, 99);
    }
}

static void test_counters_near_their_end(void **state)
{
    (void)state;
    tare__proc_stat stat;
    assert_true(tare__proc_stat_parse("7 (x) R 1 1 1 0 -1 0 9223372036854775807 2 9223372036854775808 4 "
                                      "18446744073709551615 99999999999999999999999 7 8 20 0 1 0 99 0 1 0", &stat));
    assert_true(stat.faults_minor == INT64_MAX);
    assert_true(stat.faults_major == INT64_MAX);
    assert_true(stat.user == INT64_MAX);
    assert_true(stat.system == INT64_MAX);
    assert_true(tare__proc_ticks_ns(INT64_MAX) == INT64_MAX);
    assert_true(tare__proc_ticks_ns(sysconf(_SC_CLK_TCK)) == 1000000000);
    tare__proc_status status;
    tare__proc_status_parse("VmRSS:\t9223372036854775807 kB\n", &status);
    assert_true(status.rss == INT64_MAX);
}

static void test_torn_stat(void **state)
{
    (void)state;
    const char whole[] = "7 (x y) S 42 7 9 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 0 1";
    tare__proc_stat stat;
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        char *torn = strndup(whole, length);
        assert_false(tare__proc_stat_parse(torn, &stat));
        free(torn);
    }
    assert_true(tare__proc_stat_parse(whole, &stat));
    assert_false(tare__proc_stat_parse("7 )x( S 1", &stat));
    assert_false(tare__proc_stat_parse("7 (x) S a b c", &stat));
}

static void test_status(void **state)
{
    (void)state;
    tare__proc_status status;
    tare__proc_status_parse("Name:\tcat\nVmPeak:\t  9 kB\nVmHWM:\t  1824 kB\nVmRSS:\t  1700 kB\nRssAnon:\t 100 kB\n"
                            "RssFile:\t1500 kB\nRssShmem:\t100 kB\nVmSwap:\t 8 kB\nThreads:\t3\n"
                            "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n", &status);
    assert_int_equal(status.rss_peak, 1824 * 1024);
    assert_int_equal(status.rss, 1700 * 1024);
    assert_int_equal(status.anon, 100 * 1024);
    assert_int_equal(status.file, 1500 * 1024);
    assert_int_equal(status.shared, 100 * 1024);
    assert_int_equal(status.swapped, 8 * 1024);
    assert_int_equal(status.switches_voluntary, 5);
    assert_int_equal(status.switches_forced, 7);
}

static void test_a_zombie_has_no_memory(void **state)
{
    (void)state;
    tare__proc_status status;
    tare__proc_status_parse("Name:\tgone\nState:\tZ (zombie)\nvoluntary_ctxt_switches:\t5\n", &status);
    assert_true(status.rss == TARE__NO_VALUE && status.rss_peak == TARE__NO_VALUE);
    assert_true(status.anon == TARE__NO_VALUE && status.swapped == TARE__NO_VALUE);
    assert_int_equal(status.switches_voluntary, 5);
    assert_true(status.switches_forced == TARE__NO_VALUE);
}

static void test_io(void **state)
{
    (void)state;
    tare__proc_io io;
    assert_true(tare__proc_io_parse("rchar: 10\nwchar: 20\nsyscr: 1\nsyscw: 1\nread_bytes: 30\nwrite_bytes: 40\n"
                                    "cancelled_write_bytes: 5\n", &io));
    assert_int_equal(io.read, 10);
    assert_int_equal(io.write, 20);
    assert_int_equal(io.disk_read, 30);
    assert_int_equal(io.disk_write, 40);
    assert_false(tare__proc_io_parse("rchar: 10\nwchar: 20\n", &io));
}

static void test_pss(void **state)
{
    (void)state;
    assert_int_equal(tare__proc_pss_parse("55d-7ff ---p 0 00:00 0 [rollup]\nRss:   1944 kB\nPss:    173 kB\n"
                                          "Pss_Dirty: 80 kB\n"), 173 * 1024);
    assert_true(tare__proc_pss_parse("Rss: 1 kB\n") == TARE__NO_VALUE);
    assert_true(tare__proc_pss_parse("Pss: many kB\n") == TARE__NO_VALUE);
}

/* ---- reading ----------------------------------------------------------------------------------------------- */

static void test_reading_below_a_root(void **state)
{
    (void)state;
    char root[] = "/tmp/tare-read-XXXXXX", path[128], out[8192];
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/file", root);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 5000; i++)
        fputc('a' + i % 26, file);
    fclose(file);
    assert_int_equal(tare__sample_read(root, "/file", out, sizeof out), 5000);
    assert_int_equal(strlen(out), 5000);
    assert_int_equal(tare__sample_read(root, "/file", out, 100), 99); /* what fits */
    assert_int_equal(strlen(out), 99);
    assert_int_equal(tare__sample_read(root, "/none", out, sizeof out), -ENOENT);
    assert_string_equal(out, "");
    int fd = -1;
    assert_int_equal(tare__sample_pread(root, "/file", &fd, out, sizeof out), 5000);
    assert_true(fd >= 0);
    assert_int_equal(tare__sample_pread(root, "/elsewhere", &fd, out, sizeof out), 5000); /* it is kept */
    close(fd);
    fd = -1;
    assert_int_equal(tare__sample_pread(root, "/none", &fd, out, sizeof out), -ENOENT);
    assert_true(fd < -1);
    file = fopen(path, "r");
    assert_non_null(file);
    fclose(file);
    snprintf(path, sizeof path, "%s/none", root);
    fclose(fopen(path, "w"));
    assert_int_equal(tare__sample_pread(root, "/none", &fd, out, sizeof out), -ENOENT); /* not tried again */
    unlink(path);
    snprintf(path, sizeof path, "%s/file", root);
    unlink(path);
    rmdir(root);
}

static void test_reasons(void **state)
{
    (void)state;
    char out[256];
    assert_string_equal(tare__sample_why(-ENOENT, "/proc/1/io", out), "/proc/1/io does not exist");
    assert_string_equal(tare__sample_why(EACCES, "/proc/1/io", out), "/proc/1/io: permission denied");
    assert_string_equal(tare__sample_why(-ESRCH, "/proc/1/io", out), "ended");
    assert_non_null(strstr(tare__sample_why(-EIO, "/x", out), "/x: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_a_name_may_hold_anything),
        cmocka_unit_test(test_counters_near_their_end),
        cmocka_unit_test(test_torn_stat),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_a_zombie_has_no_memory),
        cmocka_unit_test(test_io),
        cmocka_unit_test(test_pss),
        cmocka_unit_test(test_reading_below_a_root),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
