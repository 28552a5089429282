/* Tests of src/cli/output.c: whole or not at all, in place where it must be, what a full disk and a closed
 * pipe say. One thread.
 * Must not know the commands. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>

#include "cli/options.c"
#include "cli/output.c"

static char folder[64], path[128];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tare-cli-output.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/out", folder);
    return 0;
}

static size_t count_files(bool remove_them)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        n++;
        if (remove_them)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    return n;
}

static int tear_down(void **state)
{
    (void)state;
    count_files(true);
    return rmdir(folder);
}

static void assert_holds(const char *file, const char *wanted)
{
    char text[64] = "";
    int fd = open(file, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof text - 1) >= 0);
    close(fd);
    assert_string_equal(text, wanted);
}

static int write_out(const char *to, const char *words, bool whole, tare__error *error)
{
    tare__cli_output output;
    int status = tare__cli_output_open(&output, to, error);
    if (status)
        return status;
    tare__cli_output_write(&output, words, strlen(words));
    return tare__cli_output_close(&output, whole, error);
}

static void a_file_appears_whole(void **state)
{
    (void)state;
    tare__error error = {""};
    tare__cli_output output;
    assert_int_equal(tare__cli_output_open(&output, path, &error), 0);
    assert_int_equal(tare__cli_output_write(&output, "half", 4), 0);
    assert_int_not_equal(access(path, F_OK), 0); /* not before it is whole */
    assert_int_equal(tare__cli_output_write(&output, " whole", 6), 0);
    assert_int_equal(tare__cli_output_close(&output, true, &error), 0);
    assert_holds(path, "half whole");
    assert_int_equal(count_files(false), 1);
    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600 & ~mask);
}

static void what_was_there_stays_until_then(void **state)
{
    (void)state;
    tare__error error = {""};
    assert_int_equal(write_out(path, "old", true, &error), 0);
    assert_int_equal(write_out(path, "new and broken", false, &error), 0);
    assert_holds(path, "old");
    assert_int_equal(count_files(false), 1);
    assert_int_equal(write_out(path, "new", true, &error), 0);
    assert_holds(path, "new");
}

static void a_link_is_replaced_and_not_followed(void **state)
{
    (void)state;
    tare__error error = {""};
    char link_path[160];
    struct stat info;
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    assert_int_equal(write_out(path, "old", true, &error), 0);
    assert_int_equal(symlink("out", link_path), 0);
    assert_int_equal(write_out(link_path, "new", true, &error), 0);
    assert_int_equal(lstat(link_path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_holds(link_path, "new");
    assert_holds(path, "old");
}

static void devices_are_written_in_place(void **state)
{
    (void)state;
    tare__error error = {""};
    struct stat info;
    assert_int_equal(write_out("/dev/null", "words", true, &error), 0);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

static void failures_get_a_sentence(void **state)
{
    (void)state;
    tare__error error = {""};
    char missing[160];
    assert_int_equal(write_out("/dev/full", "words", true, &error), TARE_E_SYSTEM);
    assert_string_equal(error.text, "cannot write '/dev/full': No space left on device");
    assert_int_equal(write_out(folder, "words", true, &error), TARE_E_USAGE);
    assert_non_null(strstr(error.text, "is a directory"));
    snprintf(missing, sizeof missing, "%s/none/out", folder);
    assert_int_equal(write_out(missing, "words", true, &error), TARE_E_SYSTEM);
    assert_non_null(strstr(error.text, "No such file or directory"));
    assert_int_equal(count_files(false), 0);
}

static void after_a_failure_nothing_more_is_written(void **state)
{
    (void)state;
    tare__error error = {""};
    tare__cli_output output;
    assert_int_equal(tare__cli_output_open(&output, "/dev/full", &error), 0);
    assert_int_equal(tare__cli_output_write(&output, "a", 1), -ENOSPC);
    dup2(open("/dev/null", O_WRONLY), output.fd); /* there would be room again */
    assert_int_equal(tare__cli_output_write(&output, "b", 1), -ENOSPC);
    assert_int_equal(tare__cli_output_close(&output, false, &error), TARE_E_SYSTEM);
}

static void a_closed_pipe_is_no_failure(void **state)
{
    (void)state;
    tare__error error = {""};
    tare__cli_output output;
    int ends[2], saved = dup(STDOUT_FILENO);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    fflush(NULL);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    assert_int_equal(tare__cli_output_open(&output, NULL, &error), 0);
    int written = tare__cli_output_write(&output, "words", 5);
    int closed = tare__cli_output_close(&output, false, &error);
    signal(SIGPIPE, before);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    assert_int_equal(written, -EPIPE);
    assert_int_equal(closed, 0);
    assert_string_equal(error.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_appears_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_there_stays_until_then, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_link_is_replaced_and_not_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(devices_are_written_in_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_get_a_sentence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(after_a_failure_nothing_more_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_pipe_is_no_failure, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
