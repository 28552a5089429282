/* Tests of src/cli/report.c on a small trace, with a salvage that only pretends: views, exit statuses,
 * leftover sessions. One thread.
 * Must not know how tables are laid out. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli_capture.h"
#include "cli_trace.h"
#include "collect/collect.h"

static char folder[64], trace[128], session[128], other[128];
static tare__salvaged salvaged;
static int salvage_status;
static unsigned salvages;
static char salvaged_folder[256];

static void write_trace(bool finished, const char *session_folder);

int tare__salvage(const char *of, const char *into, tare__salvaged *result, tare__error *error)
{
    assert_true(!into || strcmp(into, trace) == 0); /* the file that was named, not the one that the session names */
    salvages++;
    snprintf(salvaged_folder, sizeof salvaged_folder, "%s", of);
    *result = salvaged;
    if (salvage_status)
        return tare__fail(error, salvage_status, "this is no session folder");
    if (!salvaged.still_recording)
        write_trace(true, NULL);
    return 0;
}

static void write_trace(bool finished, const char *session_folder)
{
    write_trace_to(trace, finished, session_folder);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tare-cli-report.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(trace, sizeof trace, "%s/a.tare", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(session, sizeof session, "%s/session", folder);
    salvaged = (tare__salvaged){.spans = 12};
    strcpy(salvaged.trace, trace);
    salvage_status = 0;
    salvages = 0;
    write_trace(true, NULL);
    return mkdir(session, 0700);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(trace);
    unlink(other);
    rmdir(session);
    return rmdir(folder);
}

#define REPORT(...) CALL(tare__cli_report.main, "report", __VA_ARGS__)

/* ---- views --------------------------------------------------------------------------------------- */
static void every_view_has_the_span(void **state)
{
    (void)state;
    assert_int_equal(REPORT(trace), 0);
    assert_string_equal(said, "");
    assert_ptr_equal(strstr(printed, "./prog\n"), printed);
    assert_non_null(strstr(printed, "\nwork "));
    assert_non_null(strstr(printed, "\ntare: "));
    assert_non_null(strstr(printed, "\nnext: tare report --html "));
    assert_null(strchr(printed, '\x1b')); /* no terminal, no colour */
    assert_int_equal(REPORT("--json", trace), 0);
    assert_non_null(strstr(printed, "\"name\":\"work\",\"calls\":1,\"total_ns\":1000,"));
    assert_int_equal(REPORT(trace, "--events"), 0);
    assert_non_null(strstr(printed, "\tbegin\twork\tdepth=0\n"));
    assert_int_equal(REPORT("--by", "thread", "--all", "--raw", "--width=100", "--", trace), 0);
    assert_non_null(strstr(printed, "raw self"));
    assert_int_equal(salvages, 0);
}

static void output_goes_to_a_file(void **state)
{
    (void)state;
    char text[64] = "";
    assert_int_equal(REPORT("-o", other, "--events", trace), 0);
    assert_string_equal(printed, "");
    int fd = open(other, O_RDONLY);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    assert_ptr_equal(strstr(text, "# time_ns"), text);
}

static void what_cannot_be_written_is_said(void **state)
{
    (void)state;
    assert_int_equal(REPORT("-o", "/dev/full", trace), 1);
    assert_string_equal(said, "tare report: cannot write '/dev/full': No space left on device\n");
    assert_int_equal(REPORT("-o", folder, trace), 2);
}

static void every_format_is_written(void **state)
{
    (void)state;
    char path[256];
    assert_int_equal(REPORT("--html", trace), 0);
    assert_ptr_equal(strstr(printed, "<!"), printed);
    assert_int_equal(REPORT("--chrome", trace), 0);
    assert_non_null(strstr(printed, "\"name\":\"work\""));
    assert_int_equal(REPORT("--perfetto", "-o", other, trace), 0);
    assert_int_equal(access(other, R_OK), 0);
    unlink(other);
    assert_int_equal(REPORT("--csv", other, trace), 0);
    snprintf(path, sizeof path, "%s/spans.csv", other);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(REPORT("--csv", other, trace), 0); /* into the same folder again */
    assert_int_equal(REPORT("--csv", trace, trace), 1);
    assert_int_equal(REPORT("--csv", "/proc/none", trace), 1);
    assert_ptr_equal(strstr(said, "tare report: cannot write to the directory '/proc/none': "), said);
    snprintf(path, sizeof path, "rm -r %s", other);
    assert_int_equal(system(path), 0);
}

static void rules_of_the_user_are_read(void **state)
{
    (void)state;
    static const char rules[] = "rule work-is-there\n  table spans where name = \"work\"\n  when calls > 0\n"
                                "  say \"{name} was called\"\n  severity warning\n";
    write_file(other, rules, sizeof rules - 1);
    assert_int_equal(REPORT("--rules", other, trace), 0);
    assert_non_null(strstr(printed, "warning   work was called\n"));
    write_file(other, "rule\n", 5);
    assert_int_equal(REPORT("--rules", other, trace), 3);
    assert_non_null(strstr(said, ":1"));
    assert_int_equal(REPORT("--rules", "/nonexistent", trace), 3);
    assert_string_equal(said, "tare report: cannot read '/nonexistent': No such file or directory\n");
}

/* ---- bad input, bad usage ------------------------------------------------------------------------ */
static void bad_input_is_status_three(void **state)
{
    (void)state;
    assert_int_equal(REPORT(other), 3);
    assert_ptr_equal(strstr(said, "tare report: "), said);
    write_file(other, "not a trace at all, but words", 29);
    assert_int_equal(REPORT("--json", other), 3);
    assert_string_equal(printed, "");
    assert_ptr_equal(strstr(said, "tare report: "), said);
    write_file(other, "", 0);
    assert_int_equal(REPORT(other), 3);
    salvage_status = TARE_E_INPUT;
    assert_int_equal(REPORT(folder), 3);
    assert_string_equal(said, "tare report: this is no session folder\n");
}

static void wrong_usage_is_status_two(void **state)
{
    (void)state;
    static const struct {
        const char *words[4], *sentence;
    } wrong[] = {
        {{NULL}, "missing trace: tare report FILE.tare"},
        {{"a", "b"}, "only one trace is allowed; unexpected argument 'b' (use -o FILE for the output)"},
        {{"a", "--", "b"}, "only one trace is allowed; unexpected argument 'b' (use -o FILE for the output)"},
        {{"--", "a", "b"}, "only one trace is allowed; unexpected argument 'b' (use -o FILE for the output)"},
        {{"--json", "--events", "a"}, "--json and --events are mutually exclusive"},
        {{"--html", "--csv", "d", "a"}, "--html and --csv are mutually exclusive"},
        {{"--csv", "", "a"}, "--csv: the value is empty"},
        {{"--csv=d", "-of", "a"}, "--csv and --output are mutually exclusive"},
        {{"--rules", "", "a"}, "--rules: the value is empty"},
        {{"--by", "threads", "a"}, "--by: 'threads' is not run, process or thread; did you mean thread?"},
        {{"--width", "9", "a"}, "--width: '9' is not a whole number from 72 to 400"},
        {{"--width=80x", "a"}, "--width: '80x' is not a whole number from 72 to 400"},
        {{"--jsno", "a"}, "unknown option --jsno; did you mean --json?"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(wrong); i++) {
        char expected[512], *words[6] = {"report"};
        for (int j = 0; j < 4; j++)
            words[j + 1] = (char *)wrong[i].words[j];
        snprintf(expected, sizeof expected, "tare report: %s\ntare report --help shows the options\n",
                 wrong[i].sentence);
        assert_int_equal(call(tare__cli_report.main, words), 2);
        assert_string_equal(said, expected);
    }
}

static void the_trace_is_never_overwritten(void **state)
{
    (void)state;
    assert_int_equal(symlink("a.tare", other), 0);
    assert_int_equal(REPORT("-o", trace, trace), 2);
    assert_int_equal(REPORT("-o", other, trace), 2);
    assert_int_equal(REPORT("--events", trace), 0);
}

/* ---- leftover sessions --------------------------------------------------------------------------- */
static void a_folder_is_salvaged_first(void **state)
{
    (void)state;
    unlink(trace);
    assert_int_equal(REPORT("--events", session), 0);
    assert_string_equal(salvaged_folder, session);
    assert_non_null(strstr(said, "12 spans that were still in memory are now in"));
    assert_non_null(strstr(printed, "\tbegin\twork"));
    assert_int_equal(REPORT(session), 0);
    assert_non_null(strstr(printed, "a.tare")); /* what to type next */
    assert_null(strstr(printed, session));
}

static void an_unfinished_trace_is_finished_first(void **state)
{
    (void)state;
    write_trace(false, session);
    assert_int_equal(REPORT("--json", trace), 0);
    assert_int_equal(salvages, 1);
    assert_string_equal(salvaged_folder, session);
    assert_non_null(strstr(printed, "\"finished\":true"));
}

static void a_running_one_is_shown_as_it_is(void **state)
{
    (void)state;
    write_trace(false, session);
    salvaged.still_recording = true;
    assert_int_equal(REPORT("--json", trace), 0);
    assert_non_null(strstr(said, "still being recorded"));
    assert_non_null(strstr(printed, "\"finished\":false"));
    assert_non_null(strstr(printed, "\"name\":\"work\""));
}

static void a_failed_salvage_still_shows_the_trace(void **state)
{
    (void)state;
    write_trace(false, session);
    salvage_status = TARE_E_INPUT;
    assert_int_equal(REPORT("--json", trace), 0);
    assert_non_null(strstr(said, "could not be saved: this is no session folder"));
    assert_non_null(strstr(printed, "\"finished\":false"));
}

/* A trace may come from anyone. What is there is judged by tare__salvage: tests/hostile/test_reading.py. */
static void folders_that_are_not_there_are_no_news(void **state)
{
    (void)state;
    write_trace(false, "../session");
    assert_int_equal(REPORT("--events", trace), 0);
    write_trace(false, "/nonexistent/tare");
    assert_int_equal(REPORT("--events", trace), 0);
    assert_int_equal(salvages, 0);
    assert_string_equal(said, "");
}

static void help_goes_to_standard_output(void **state)
{
    (void)state;
    assert_int_equal(REPORT("-h"), 0);
    assert_string_equal(said, "");
    assert_ptr_equal(strstr(printed, "tare report: Show a recorded run"), printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_view_has_the_span, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_format_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rules_of_the_user_are_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(output_goes_to_a_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_input_is_status_three, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_usage_is_status_two, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_trace_is_never_overwritten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_is_salvaged_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unfinished_trace_is_finished_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_running_one_is_shown_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_salvage_still_shows_the_trace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(folders_that_are_not_there_are_no_news, set_up, tear_down),
        cmocka_unit_test_setup_teardown(help_goes_to_standard_output, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
