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

#include "cli/options.c"
#include "cli/output.c"
#include "cli/report.c"
#include "cli_capture.h"

static char folder[64], trace[128], session[128], other[128];
static tare__salvaged salvaged;
static int salvage_status;
static unsigned salvages;
static char salvaged_folder[256];

static void write_trace(bool finished, const char *session_folder);

int tare__salvage(const char *of, tare__salvaged *result, tare__error *error)
{
    salvages++;
    snprintf(salvaged_folder, sizeof salvaged_folder, "%s", of);
    *result = salvaged;
    if (salvage_status)
        return tare__fail(error, salvage_status, "this is no session folder");
    if (!salvaged.still_recording)
        write_trace(true, NULL);
    return 0;
}

/* ---- a trace ------------------------------------------------------------------------------------- */
static void add_run(tare__text *file, const char *session_folder)
{
    tare__text fields = {0};
    tare__file_header header;
    tare__file_header_make(&header);
    tare__text_append(file, (const char *)&header, sizeof header);
    tare__field_bytes(&fields, TARE__FIELD_COMMAND, "./prog", sizeof "./prog");
    tare__field_number(&fields, TARE__FIELD_CLOCK_KIND, TARE__CLOCK_MONOTONIC);
    tare__field_number(&fields, TARE__FIELD_START_TICKS, 1000);
    if (session_folder)
        tare__field_string(&fields, TARE__FIELD_FOLDER, session_folder);
    assert_int_equal(tare__fields_seal(TARE__BLOCK_RUN, 0, &fields, file), 0);
    tare__text_free(&fields);
}

static void add_events(tare__text *file)
{
    static const tare__file_name name = {1, TARE_KIND_SPAN, 1, "work", "a.c", 4, 3};
    tare__squeezer *squeezer = tare__squeezer_new();
    tare__events_encoder *encoder = tare__events_encoder_new();
    tare__block_header header = {.stream = 1};
    tare__span_stack none = {0};
    assert_true(squeezer && encoder);
    assert_int_equal(tare__names_seal(&name, 1, squeezer, file), 0);
    tare__events_reset(encoder, 0);
    tare__events_add(encoder, TARE__OP_BEGIN, 1, 2000);
    tare__events_add(encoder, TARE__OP_END, 0, 3000);
    assert_int_equal(tare__events_seal(encoder, squeezer, &none, &header, file), 0);
    tare__events_encoder_free(encoder);
    tare__squeezer_free(squeezer);
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(tare__write_all(fd, data, bytes), 0);
    close(fd);
}

static void write_trace(bool finished, const char *session_folder)
{
    tare__text file = {0}, fields = {0};
    add_run(&file, session_folder);
    add_events(&file);
    tare__field_number(&fields, TARE__FIELD_END_TICKS, 5000);
    if (finished)
        assert_int_equal(tare__fields_seal(TARE__BLOCK_END, 0, &fields, &file), 0);
    write_file(trace, file.data, file.length);
    tare__text_free(&file);
    tare__text_free(&fields);
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

#define REPORT(...) CALL(report_main, "report", __VA_ARGS__)

/* ---- views --------------------------------------------------------------------------------------- */
static void every_view_has_the_span(void **state)
{
    (void)state;
    assert_int_equal(REPORT(trace), 0);
    assert_string_equal(said, "");
    assert_ptr_equal(strstr(printed, "./prog\n"), printed);
    assert_non_null(strstr(printed, "\nwork "));
    assert_non_null(strstr(printed, "\ntare: "));
    assert_null(strchr(printed, '\x1b')); /* no terminal, no colour */
    assert_int_equal(REPORT("--json", trace), 0);
    assert_non_null(strstr(printed, "\"name\":\"work\",\"kind\":\"span\",\"calls\":1,\"total_ns\":1000,"));
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
        {{NULL}, "which trace? tare report NAME.tare"},
        {{"a", "b"}, "one trace at a time; 'b' is one too many"},
        {{"a", "--", "b"}, "one trace at a time; 'b' is one too many"},
        {{"--", "a", "b"}, "one trace at a time; 'b' is one too many"},
        {{"--json", "--events", "a"}, "--json and --events cannot both be had"},
        {{"--by", "threads", "a"}, "--by: 'threads' is not run, process or thread; did you mean thread?"},
        {{"--width", "9", "a"}, "--width: '9' is not a number of columns from 72 to 400"},
        {{"--width=80x", "a"}, "--width: '80x' is not a number of columns from 72 to 400"},
        {{"--jsno", "a"}, "there is no option --jsno; did you mean --json?"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(wrong); i++) {
        char expected[512], *words[6] = {"report"};
        for (int j = 0; j < 4; j++)
            words[j + 1] = (char *)wrong[i].words[j];
        snprintf(expected, sizeof expected, "tare report: %s\ntare report --help says more\n",
                 wrong[i].sentence);
        assert_int_equal(call(report_main, words), 2);
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

/* A trace may come from anyone: it must not make us touch folders that are not a session's. */
static void strange_folders_are_left_alone(void **state)
{
    (void)state;
    write_trace(false, "/");
    assert_int_equal(REPORT("--events", trace), 0);
    chmod(session, 0755);
    write_trace(false, session);
    assert_int_equal(REPORT("--events", trace), 0);
    chmod(session, 0700);
    assert_int_equal(symlink(session, other), 0);
    write_trace(false, other);
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
    assert_ptr_equal(strstr(printed, "tare report: shows a recorded run"), printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_view_has_the_span, set_up, tear_down),
        cmocka_unit_test_setup_teardown(output_goes_to_a_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_input_is_status_three, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_usage_is_status_two, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_trace_is_never_overwritten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_is_salvaged_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unfinished_trace_is_finished_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_running_one_is_shown_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_salvage_still_shows_the_trace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strange_folders_are_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(help_goes_to_standard_output, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
