/* Tests of src/cli/doctor.c with checks that are made up: the table, the JSON, usage. One thread.
 * Must not know how anything is measured. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cli/doctor.c"
#include "cli/options.c"
#include "cli/output.c"
#include "cli_capture.h"

static unsigned calls; /* how often anything was tried */

void tare__collect_doctor(tare__sample_check_sink *sink, void *context)
{
    char source[32]; /* what is pointed to lives during the call only */
    strcpy(source, "shared memory");
    tare__sample_check check = {.sampler = "recording", .source = source, .detail = "/dev/shm has 1.00 GiB free"};
    calls++;
    sink(context, &check);
    strcpy(source, "xxxxxxxxxxxxx");
}

void tare__sample_doctor(const char *root, tare__sample_check_sink *sink, void *context)
{
    static const tare__sample_check checks[] = {
        {"system", "/proc/pressure", TARE__SAMPLE_PARTLY,
         "only of the machine, not of the container: the kernel keeps it for control groups of version 2 and here "
         "they are of version 1",
         "add systemd.unified_cgroup_hierarchy=1 to the kernel's command line"},
        {"nvml", "a source with a name far too long for its column", TARE__SAMPLE_FAILS,
         "bad\x1b[31mtext", ""},
    };
    assert_string_equal(root, "");
    calls++;
    for (size_t i = 0; i < TARE__COUNT_OF(checks); i++)
        sink(context, &checks[i]);
}

void tare__runner_doctor(tare__sample_check_sink *sink, void *context)
{
    (void)sink, (void)context; /* whether this machine has one is its own business */
}

#define EXAMINE(...) CALL(doctor_main, "doctor", ##__VA_ARGS__)

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    char path[128];
    calls = 0;
    strcpy(folder, "/tmp/tare-cli-doctor.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/python3", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0755);
    close(fd);
    return setenv("PATH", folder, 1);
}

static int tear_down(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/python3", folder);
    unlink(path);
    return rmdir(folder);
}

static void the_table_fits_and_says_all(void **state)
{
    (void)state;
    char expected[2048];
    assert_int_equal(EXAMINE(), 0);
    assert_string_equal(said, "");
    snprintf(expected, sizeof expected,
             "Measurements available to tare " TARE_VERSION " on this machine\n"
             "\n"
             "recording\n"
             "  works   shared memory  /dev/shm has 1.00 GiB free\n"
             "  works   Python         %s/python3\n"
             "\n"
             "system\n"
             "  partly  /proc/pressure  only of the machine, not of the container: the kernel\n"
             "                          keeps it for control groups of version 2 and here they\n"
             "                          are of version 1\n"
             "                          fix: add systemd.unified_cgroup_hierarchy=1 to the kernel's command line\n"
             "\n"
             "nvml\n"
             "  fails   a source with … for its column  bad?[31mtext\n"
             "\n"
             "2 available, 1 partly, 1 unavailable.\n",
             folder);
    /* The shortened name's exact cut is not the point. */
    const char *cut = strstr(printed, "  fails   "), *wanted = strstr(expected, "  fails   ");
    assert_non_null(cut);
    assert_memory_equal(printed, expected, (size_t)(wanted - expected));
    assert_non_null(strstr(cut, "…"));
    assert_non_null(strstr(cut, "  bad?[31mtext\n"));
    assert_string_equal(strstr(cut, "\n2 available"), strstr(wanted, "\n2 available"));
    assert_null(strchr(printed, '\x1b'));
}

static void json_has_the_same(void **state)
{
    (void)state;
    assert_int_equal(EXAMINE("--json"), 0);
    assert_ptr_equal(
        strstr(printed, "{\"schema\":{\"name\":\"tare-doctor\",\"version\":1,\"minor\":1},\"writer\":\"tare "),
        printed);
    assert_non_null(strstr(printed, "\"works\":2,\"partly\":1,\"fails\":1,\"checks\":["));
    assert_non_null(strstr(printed, "{\"sampler\":\"recording\",\"source\":\"shared memory\",\"state\":\"works\","
                                    "\"detail\":\"/dev/shm has 1.00 GiB free\",\"fix\":null}"));
    assert_non_null(strstr(printed, "\"state\":\"partly\""));
    assert_non_null(strstr(printed, "\"detail\":\"bad\\u001b[31mtext\""));
}

static void a_missing_python_is_no_failure(void **state)
{
    (void)state;
    setenv("PATH", "/nonexistent:", 1);
    assert_int_equal(EXAMINE("--json"), 0);
    assert_non_null(strstr(printed, "\"source\":\"Python\",\"state\":\"partly\",\"detail\":\"python3 and python not "
                                    "found"));
}

static void marks_and_colours_are_for_terminals(void **state)
{
    (void)state;
    tare__text text = {0};
    doctor_style style = {.marks = true, .colour = true, .width = 80};
    tare__sample_check check = {.source = "GPU 0", .state = TARE__SAMPLE_FAILS, .detail = "lost"};
    doctor_put_check(&text, &check, &style, 8);
    assert_string_equal(text.data, "  \x1b[31m✗\x1b[0m  GPU 0     lost\n");
    tare__text_free(&text);
    setenv("LC_ALL", "", 1);
    setenv("LC_CTYPE", "de_DE.UTF-8", 1);
    setenv("LANG", "C", 1);
    assert_true(doctor_is_utf8());
    setenv("LC_ALL", "C", 1);
    assert_false(doctor_is_utf8());
}

static void wrong_usage_tries_nothing(void **state)
{
    (void)state;
    assert_int_equal(EXAMINE("now"), 2);
    assert_string_equal(said, "tare doctor: unexpected argument 'now'\n"
                              "tare doctor --help shows the options\n");
    assert_int_equal(EXAMINE("--", "now"), 2);
    assert_int_equal(EXAMINE("--jsn"), 2);
    assert_non_null(strstr(said, "did you mean --json?"));
    assert_int_equal(EXAMINE("-h"), 0);
    assert_ptr_equal(strstr(printed, "tare doctor: Show what can be measured on this machine"), printed);
    assert_int_equal(calls, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_table_fits_and_says_all),
        TEST(json_has_the_same),
        TEST(a_missing_python_is_no_failure),
        TEST(marks_and_colours_are_for_terminals),
        TEST(wrong_usage_tries_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
