/* model_folder: the folder of the runtime's files: gone when the runtime is killed, and swept when the command was. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "model/ort_inner.h"
#include "model_rig.h"

static char place[64];

static int make_place(void **state)
{
    (void)state;
    strcpy(place, "/tmp/tare-test.XXXXXX");
    return mkdtemp(place) && setenv("TMPDIR", place, 1) == 0 ? 0 : -1;
}

static int drop_place(void **state)
{
    (void)state;
    unsetenv("TMPDIR");
    return rmdir(place);
}

static size_t entries(void)
{
    DIR *list = opendir(place);
    size_t n = 0;
    while (list && readdir(list))
        n++;
    closedir(list);
    return n - 2;
}

static pid_t dead(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* A folder as a killed process leaves it, with a file and a link in it. */
static void leave(char *path, size_t room, const char *prefix, pid_t pid, mode_t mode)
{
    char inside[200];
    static int count;
    snprintf(path, room, "%s/%s%ld.abc%03d", place, prefix, (long)pid, count++);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(inside, sizeof inside, "%s/run_1.json", path);
    close(open(inside, O_WRONLY | O_CREAT, 0600));
    snprintf(inside, sizeof inside, "%s/link", path);
    assert_int_equal(symlink("/", inside), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static bool there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

static void clear(const char *path)
{
    tare__ort_folder folder = {.lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
    strcpy(folder.path, path);
    tare__ort_folder_remove(&folder);
    assert_false(there(path));
}

static void a_killed_runtime_leaves_nothing(void **state)
{
    (void)state;
    model_rig rig;
    rig_open(&rig, "kill-profile");
    assert_int_equal(rig_measure(&rig), 0);
    const tare__runner_result *result = &rig.measured->results[0];
    assert_null(result->failure);
    assert_non_null(strstr(result->executed_reason, "killed running profiled: out of memory"));
    assert_int_equal(rig.measured->n_layers, 0);
    assert_int_equal(entries(), 0);
    rig_close(&rig);
}

static void a_run_leaves_nothing(void **state)
{
    (void)state;
    static const char *const precisions[] = {"fp16"};
    model_rig rig;
    rig_open(&rig, "plain");
    assert_int_equal(rig_measure(&rig), 0);
    assert_int_equal(entries(), 0);
    rig.options.precisions = precisions;
    rig.options.n_precisions = 1;
    assert_int_equal(rig_measure(&rig), 0); /* what the look-alike reads is no model to convert */
    assert_non_null(rig.measured->results[0].failure);
    assert_int_equal(entries(), 0);
    rig_close(&rig);
}

static void what_is_left_is_swept(void **state)
{
    (void)state;
    char left[128], alive[128], others[128], open_to_all[128], locked[128], old[128], target[128], link[160];
    leave(left, sizeof left, "tare-model-", dead(), 0700);
    leave(alive, sizeof alive, "tare-model-", getppid(), 0700);
    leave(others, sizeof others, "some-model-", dead(), 0700);
    leave(open_to_all, sizeof open_to_all, "tare-model-", dead(), 0755);
    leave(locked, sizeof locked, "tare-model-", dead(), 0700);
    leave(old, sizeof old, "tare-model-0", dead(), 0700);
    leave(target, sizeof target, "target-", dead(), 0700);
    snprintf(link, sizeof link, "%s/tare-model-%ld.abcdef", place, (long)dead());
    assert_int_equal(symlink(target, link), 0);
    int lock = open(locked, O_RDONLY | O_DIRECTORY); /* as one that lives in another PID namespace holds it */
    assert_int_equal(flock(lock, LOCK_EX), 0);
    tare__ort_folder_sweep();
    assert_false(there(left));
    assert_true(there(alive) && there(others) && there(open_to_all) && there(locked) && there(old) && there(link));
    assert_int_equal(entries(), 7);
    close(lock);
    tare__ort_folder_sweep();
    assert_false(there(locked));
    unlink(link);
    clear(target);
    clear(alive);
    clear(others);
    clear(open_to_all);
    clear(old);
}

static void one_that_is_used_stays(void **state)
{
    (void)state;
    tare__ort_folder folder;
    assert_true(tare__ort_folder_make(&folder));
    tare__ort_folder_sweep();
    assert_true(there(folder.path));
    tare__ort_folder_remove(&folder);
    tare__ort_folder_remove(&folder); /* again is fine */
    assert_int_equal(entries(), 0);
    setenv("TMPDIR", "/nowhere", 1);
    assert_false(tare__ort_folder_make(&folder));
    tare__ort_folder_sweep();
    tare__ort_folder_remove(&folder);
    setenv("TMPDIR", place, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_killed_runtime_leaves_nothing, make_place, drop_place),
        cmocka_unit_test_setup_teardown(a_run_leaves_nothing, make_place, drop_place),
        cmocka_unit_test_setup_teardown(what_is_left_is_swept, make_place, drop_place),
        cmocka_unit_test_setup_teardown(one_that_is_used_stays, make_place, drop_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
