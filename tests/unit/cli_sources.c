/* Tests of reading the code of hot lines: only the user's own Python files, unchanged since the run began, whatever a
 * trace names. One thread.
 * Must not know how lines are shown. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/sources.h"
#include "cli_trace.h"

#define CODE "import os\n\tx = 1\n    return heavy(x)  \xc3\xa9\nlast"

static char folder[PATH_MAX], trace_path[PATH_MAX], source[PATH_MAX];
static tare__trace *trace;

static const char *beside(char out[PATH_MAX], const char *name)
{
    assert_true(snprintf(out, PATH_MAX, "%.4000s/%.80s", folder, name) > 0);
    return out;
}

/* The text of one line; NULL: it was not read. For free(). */
static char *read_line(const char *file, uint32_t line, int64_t seconds_from_now)
{
    char *text = NULL;
    const tare__line_row row = {.file = file, .line = line};
    tare__analysis analysis = {.lines = &row, .n_lines = 1};
    analysis.run.start_realtime_ns = (uint64_t)(time(NULL) + seconds_from_now) * 1000000000u;
    assert_true(tare__cli_sources_read(trace, &analysis, &text, 1));
    return text;
}

static void assert_refused(const char *file)
{
    char *text = read_line(file, 1, 60);
    assert_null(text);
}

static int set_up(void **state)
{
    (void)state;
    tare__error error = {""};
    char made[] = "/tmp/tare-sources-XXXXXX";
    assert_non_null(mkdtemp(made));
    assert_non_null(realpath(made, folder));
    write_trace_to(beside(trace_path, "run.tare"), true, NULL);
    write_file(beside(source, "code.py"), CODE, strlen(CODE));
    return tare__trace_open(trace_path, &trace, &error);
}

static int tear_down(void **state)
{
    (void)state;
    char command[PATH_MAX + 16];
    tare__trace_close(trace);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static void lines_are_read_without_indentation(void **state)
{
    (void)state;
    static const struct {
        uint32_t line;
        const char *text;
    } expected[] = {{1, "import os"}, {2, "x = 1"}, {3, "return heavy(x)  \xc3\xa9"}, {4, "last"}, {5, NULL}, {0, NULL},
                    {UINT32_MAX, NULL}};
    for (size_t i = 0; i < TARE__COUNT_OF(expected); i++) {
        char *text = read_line(source, expected[i].line, 60);
        if (expected[i].text)
            assert_string_equal(text, expected[i].text);
        else
            assert_null(text);
        free(text);
    }
}

static void lines_of_several_files_keep_their_order(void **state)
{
    (void)state;
    char other[PATH_MAX], *texts[6];
    write_file(beside(other, "other.py"), "a\nb\n", 4);
    const tare__line_row rows[] = {{.file = source, .line = 2}, {.file = other, .line = 2}, {.file = NULL},
                                   {.file = source, .line = 1}, {.file = other, .line = 1}};
    tare__analysis analysis = {.lines = rows, .n_lines = 5};
    analysis.run.start_realtime_ns = (uint64_t)(time(NULL) + 60) * 1000000000u;
    assert_true(tare__cli_sources_read(trace, &analysis, texts, 6));
    assert_string_equal(texts[0], "x = 1");
    assert_string_equal(texts[1], "b");
    assert_null(texts[2]);
    assert_string_equal(texts[3], "import os");
    assert_string_equal(texts[4], "a");
    assert_null(texts[5]);
    tare__cli_sources_free(texts, 6);
}

static void a_file_changed_since_is_not_read(void **state)
{
    (void)state;
    assert_null(read_line(source, 1, -60));
}

static void other_files_are_not_read(void **state)
{
    (void)state;
    char path[PATH_MAX], target[PATH_MAX];
    static const char *const names[] = {"/etc/shadow", "/etc/passwd", "/proc/self/environ", "/dev/zero", "code.py", "",
                                        ".py", "/.py", "/etc/shadow\n.py", "/no/such/file.py"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++)
        assert_refused(names[i]);
    write_file(beside(target, "secret"), "key\n", 4);
    assert_refused(target);
    assert_int_equal(symlink(target, beside(path, "link.py")), 0); /* what it leads to counts */
    assert_refused(path);
    assert_int_equal(symlink("/etc/passwd", beside(path, "passwd.py")), 0);
    assert_refused(path);
    assert_int_equal(mkfifo(beside(path, "pipe.py"), 0600), 0);
    assert_refused(path);
    assert_int_equal(mkdir(beside(path, "folder.py"), 0700), 0);
    assert_refused(path);
}

/* The file that was opened counts, not the one that its name refers to by now. */
static void a_trace_of_another_user_reads_nothing(void **state)
{
    (void)state;
    char path[PATH_MAX];
    tare__trace *own = trace;
    tare__error error = {""};
    if (geteuid() != 0)
        skip();
    write_trace_to(beside(path, "theirs.tare"), true, NULL);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(tare__trace_open(path, &trace, &error), 0);
    assert_refused(source);
    assert_int_equal(unlink(path), 0);
    write_trace_to(path, true, NULL);
    assert_refused(source);
    tare__trace_close(trace);
    trace = own;
}

static void files_that_others_can_write_are_not_read(void **state)
{
    (void)state;
    char path[PATH_MAX];
    write_file(beside(path, "open.py"), "a\n", 2);
    assert_int_equal(chmod(path, 0666), 0);
    assert_refused(path);
    assert_int_equal(chmod(path, 0600), 0);
    char *text = read_line(path, 1, 60);
    assert_string_equal(text, "a");
    free(text);
    if (geteuid() == 0 && chown(path, 12345, 12345) == 0)
        assert_refused(path);
}

static void large_files_are_not_read(void **state)
{
    (void)state;
    char path[PATH_MAX];
    write_file(beside(path, "large.py"), "a\n", 2);
    assert_int_equal(truncate(path, (1 << 20) + 1), 0);
    assert_refused(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read_without_indentation),
        cmocka_unit_test(lines_of_several_files_keep_their_order),
        cmocka_unit_test(a_file_changed_since_is_not_read),
        cmocka_unit_test(other_files_are_not_read),
        cmocka_unit_test(a_trace_of_another_user_reads_nothing),
        cmocka_unit_test(files_that_others_can_write_are_not_read),
        cmocka_unit_test(large_files_are_not_read),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
