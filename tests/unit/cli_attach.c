/* Tests of src/cli/attach.c with a collector that only pretends: options, sentences, exit statuses; and of the status
 * line, and of looking for sessions left behind.
 * One thread. Must not know how recording works. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <utime.h>

#include "cli/recording.h"
#include "cli_rig.h"

static tare__attach_options asked;
static unsigned attached;
static int answer_status;

int tare__attach(const tare__attach_options *options, tare__run_result *result, tare__error *error)
{
    asked = *options;
    attached++;
    if (answer_status)
        return tare__fail(error, answer_status, "no process %d", (int)options->pid);
    *result = (tare__run_result){.trace_bytes = 2048};
    strcpy(result->trace, trace);
    tare__run_progress progress = {.elapsed_ns = 1000};
    /* standard error is no terminal: nothing is shown */
    options->record.on_progress(options->record.context, &progress);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    if (make_folder("cli-attach"))
        return -1;
    setenv("TMPDIR", folder, 1);
    answer_status = 0;
    attached = 0;
    return 0;
}

#define ATTACH(...) CALL(tare__cli_attach.main, "attach", __VA_ARGS__)

static void options_reach_the_collector(void **state)
{
    (void)state;
    assert_int_equal(ATTACH("-o", "x.tare", "-f", "-q", "--duration", "5s", "--interval=1s", "--last", "60s", "--live",
                            "--disable", "nvml", "--carbon=20", "--readable", "--html", "a.html", "1"),
                     0);
    assert_int_equal(asked.pid, 1);
    assert_string_equal(asked.record.output, "x.tare");
    assert_true(asked.record.overwrite && asked.record.readable_by_others);
    assert_int_equal(asked.for_ns, 5000000000u);
    assert_int_equal(asked.record.interval_ns, 1000000000u);
    assert_int_equal(asked.record.last_ns, 60000000000u);
    assert_true(asked.record.carbon_g_per_kwh == 20 && asked.record.samplers_left_out != 0);
    assert_string_equal(said, "");
    assert_int_equal(access("a.html", R_OK), 0);
}

static void the_summary_is_shown(void **state)
{
    (void)state;
    assert_int_equal(ATTACH("1"), 0);
    assert_string_equal(printed, "");
    assert_non_null(strstr(said, "\nWhere time is spent "));
    assert_non_null(strstr(said, "\ntare: wrote "));
}

static void exit_statuses_are_as_promised(void **state)
{
    (void)state;
    answer_status = TARE_E_INPUT;
    assert_int_equal(ATTACH("2000000007"), 3);
    assert_string_equal(said, "tare attach: no process 2000000007\n");
    answer_status = TARE_E_PERMISSION;
    assert_int_equal(ATTACH("2000000007"), 1);
    answer_status = TARE_E_USAGE;
    assert_int_equal(ATTACH("2000000007"), 2);
}

static void wrong_usage_attaches_to_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *words[3], *sentence;
    } wrong[] = {
        {{NULL}, "missing process id: tare attach PID"},
        {{"train"}, "'train' is not a process id"},
        {{"0"}, "'0' is not a process id"},
        {{"12x"}, "'12x' is not a process id"},
        {{"1", "2"}, "only one process id is allowed; its child processes are included"},
        {{"--duration", "ever", "1"}, "--duration: 'ever' is not a duration; use 500ms, 60s, 5m or 2h"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(wrong); i++) {
        char expected[512], *words[5] = {"attach"};
        for (int j = 0; j < 3; j++)
            words[j + 1] = (char *)wrong[i].words[j];
        snprintf(expected, sizeof expected, "tare attach: %s\ntare attach --help shows the options\n",
                 wrong[i].sentence);
        assert_int_equal(call(tare__cli_attach.main, words), 2);
        assert_string_equal(said, expected);
    }
    assert_int_equal(attached, 0);
}

/* ---- the status line -------------------------------------------------------------------------------- */
static void the_line_tells_what_is_known(void **state)
{
    (void)state;
    tare__text words = {0};
    tare__cli_live live = {.on = true, .at_ns = 1000000000u, .steps = 100};
    tare__run_progress progress = {.elapsed_ns = 3000000000u, .steps = 150, .now = {1.5, 2147483648.0, 0.62, NAN}};
    tare__cli_live_words(&live, &progress, &words);
    assert_string_equal(words.data, "tare: 3.00 s · 25 steps/s · CPU 1.50 cores · memory 2.00 GiB · GPU 62.0 %");
    tare__text_clear(&words);
    live = (tare__cli_live){.on = true};
    progress = (tare__run_progress){.elapsed_ns = 100000000u, .now = {NAN, NAN, NAN, NAN}};
    tare__cli_live_words(&live, &progress, &words);
    assert_string_equal(words.data, "tare: 100 ms");
    tare__text_free(&words);
}

/* ---- sessions left behind ----------------------------------------------------------------------------- */
static void count_one(void *context, const tare__leftover *left)
{
    *(unsigned *)context += strncmp(left->path, folder, strlen(folder)) == 0; /* of other places there may be some */
}

static unsigned count_leftovers(void)
{
    unsigned count = 0;
    tare__leftovers_visit(count_one, &count);
    return count;
}

static void leftover_folders_are_found(void **state)
{
    (void)state;
    char path[256], file[300];
    static tare__session_page page = {.magic = TARE__SESSION_MAGIC, .abi = TARE__RING_ABI, .bytes = sizeof page,
                                      .clock = TARE__CLOCK_MONOTONIC};
    snprintf(path, sizeof path, "%s/tare-%u-abcdef", folder, (unsigned)geteuid());
    snprintf(file, sizeof file, "%s/session", path);
    assert_int_equal(mkdir(path, 0700), 0);
    static const char unmade[sizeof page];
    write_file(file, unmade, sizeof unmade);
    assert_int_equal(count_leftovers(), 0); /* so young that it may be in the making */
    struct utimbuf old = {time(NULL) - 60, time(NULL) - 60};
    assert_int_equal(utime(path, &old), 0);
    assert_int_equal(count_leftovers(), 1);
    write_file(file, (const char *)&page, sizeof page); /* the last of what is written is the page's first word */
    struct utimbuf now = {time(NULL), time(NULL)};
    assert_int_equal(utime(path, &now), 0);
    assert_int_equal(count_leftovers(), 1);
    int fd = open(file, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0); /* as a collector that lives */
    assert_int_equal(count_leftovers(), 0);
    close(fd);
    assert_int_equal(chmod(path, 0755), 0); /* whoever made this, it was not Tare */
    assert_int_equal(count_leftovers(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(options_reach_the_collector, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(the_summary_is_shown, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(exit_statuses_are_as_promised, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(wrong_usage_attaches_to_nothing, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(the_line_tells_what_is_known, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(leftover_folders_are_found, set_up, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
