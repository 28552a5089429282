/* collect_attach: looking at a process that runs already, and at one that does not.
 * One thread, and a child to look at.
 * Must not know how values are measured. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/collect.h"
#include "tare.h"
#include "trace/trace.h"

#define MS UINT64_C(1000000)

static char folder[] = "/tmp/tare-attach-XXXXXX", output[64];
static unsigned updates;
static double most_cores, rss;
static pid_t interrupt;    /* who looks on sends it SIGINT at the third update */
static int end_spinner = -1; /* … or ends the spinner */

/* Spins until the other end of the pipe is closed. */
static pid_t start_spinner(int *end)
{
    int told[2];
    assert_int_equal(pipe2(told, O_CLOEXEC | O_NONBLOCK), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(told[1]);
        while (read(told[0], &byte, 1) != 0)
            ;
        _exit(0);
    }
    close(told[0]);
    *end = told[1];
    return pid;
}

static void on_progress(void *context, const tare__run_progress *progress)
{
    assert_ptr_equal(context, &updates);
    updates++;
    assert_true(progress->elapsed_ns > 0);
    assert_int_equal(progress->steps, 0);
    if (progress->now.tree_cores > most_cores)
        most_cores = progress->now.tree_cores;
    if (progress->now.tree_rss_bytes > rss)
        rss = progress->now.tree_rss_bytes;
    if (interrupt && updates == 3)
        kill(interrupt, SIGINT);
    if (end_spinner >= 0 && updates == 3) {
        close(end_spinner);
        end_spinner = -1;
    }
}

/* The last value of a metric of the tree; and all of them told to grow. */
typedef struct wanted {
    uint32_t series;
    int64_t last;
    unsigned n;
} wanted;

static void take_values(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n)
{
    wanted *want = context;
    (void)ticks;
    if (series != want->series)
        return;
    want->last = values[n - 1];
    want->n += n;
}

static int64_t tree_value(tare__trace *trace, const char *metric)
{
    tare__error error;
    tare__trace_block block;
    wanted want = {0};
    size_t n;
    const tare__trace_series *rows = tare__trace_series_rows(trace, &n);
    for (size_t i = 0; i < n; i++)
        if (rows[i].subject == TARE__SUBJECT_TREE && strcmp(rows[i].metric, metric) == 0)
            want.series = rows[i].id;
    assert_int_not_equal(want.series, 0);
    tare__squeezer *squeezer = tare__squeezer_new();
    tare__trace_rewind(trace);
    while (tare__trace_next(trace, &block, &error) > 0)
        if (block.header.kind == TARE__BLOCK_SAMPLES)
            assert_int_equal(tare__samples_read(&block.header, block.payload, squeezer, take_values, &want), 0);
    tare__squeezer_free(squeezer);
    assert_true(want.n >= 1);
    return want.last;
}

static tare__trace *open_trace(const char *path)
{
    tare__error error = {""};
    tare__trace *trace;
    assert_int_equal(tare__trace_open(path, &trace, &error), 0);
    assert_int_equal(tare__trace_prescan(trace, &error), 0);
    return trace;
}

static int attach_to(pid_t pid, uint64_t for_ns, tare__run_result *result)
{
    tare__error error = {""};
    tare__attach_options options = {
        .pid = pid, .for_ns = for_ns,
        .record = {.output = output, .overwrite = true, .interval_ns = 20 * MS, .on_progress = on_progress,
                   .context = &updates, .carbon_g_per_kwh = 381.5}};
    updates = 0;
    most_cores = 0;
    int status = tare__attach(&options, result, &error);
    assert_true(status == 0 || error.text[0]);
    return status;
}

static void test_until_it_ends(void **state)
{
    (void)state;
    static tare__run_result result;
    struct rusage usage;
    pid_t pid = start_spinner(&end_spinner);
    assert_int_equal(attach_to(pid, 0, &result), 0);
    assert_int_equal(wait4(pid, NULL, 0, &usage), pid);
    assert_true(result.launched);
    assert_true(updates >= 3);
    assert_true(most_cores > 0 && rss > 0);
    tare__trace *trace = open_trace(result.trace);
    assert_int_equal(tare__trace_run_of(trace)->attached, pid);
    assert_int_equal(tare__trace_run_of(trace)->interval_ns, 20 * MS);
    assert_int_equal(tare__trace_run_of(trace)->carbon, 381500);
    assert_true(tare__trace_end_of(trace)->present);
    assert_false(tare__trace_end_of(trace)->has_status); /* of a process that is not ours nobody tells us */
    assert_false(tare__trace_end_of(trace)->has_child);
    int64_t cpu = tree_value(trace, "cpu.user") + tree_value(trace, "cpu.system");
    int64_t kernel = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000000) +
                     (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
    assert_true(cpu > 0 && cpu - kernel < 11 * (int64_t)MS && kernel - cpu < 11 * (int64_t)MS); /* a clock tick */
    size_t n;
    const tare__trace_process *processes = tare__trace_processes(trace, &n);
    assert_int_equal(n, 1);
    assert_int_equal(processes[0].pid, pid);
    tare__trace_close(trace);
}

static void test_until_it_is_enough(void **state)
{
    (void)state;
    int end;
    static tare__run_result result;
    pid_t pid = start_spinner(&end);
    assert_int_equal(attach_to(pid, 100 * MS, &result), 0);
    assert_int_equal(kill(pid, 0), 0); /* nothing was done to it */
    interrupt = getpid();
    assert_int_equal(attach_to(pid, 0, &result), 0);
    interrupt = 0;
    assert_int_equal(kill(pid, 0), 0);
    assert_true(updates >= 3); /* nothing else would have ended it; an update may have been due with the signal */
    close(end);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    tare__trace *trace = open_trace(result.trace);
    assert_true(tare__trace_end_of(trace)->present);
    tare__trace_close(trace);
}

static void test_the_name_of_the_trace(void **state)
{
    (void)state;
    int end;
    static tare__run_result result;
    tare__error error = {""};
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    pid_t pid = start_spinner(&end);
    tare__attach_options options = {.pid = pid, .for_ns = 1};
    assert_int_equal(tare__attach(&options, &result, &error), 0);
    assert_string_equal(result.trace, "collect_attach.tare");
    unlink(result.trace);
    assert_int_equal(chdir(before), 0);
    close(end);
    waitpid(pid, NULL, 0);
}

static void test_nobody_there(void **state)
{
    (void)state;
    int end;
    static tare__run_result result;
    pid_t pid = start_spinner(&end);
    close(end);
    waitpid(pid, NULL, 0);
    unlink(output);
    assert_int_equal(attach_to(pid, 0, &result), TARE_E_INPUT);
    assert_int_equal(attach_to(-3, 0, &result), TARE_E_USAGE);
    assert_int_equal(attach_to(getpid(), 0, &result), TARE_E_USAGE);
    assert_int_not_equal(access(output, F_OK), 0); /* nothing was written */
}

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(output, sizeof output, "%s/out.tare", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(output);
    rmdir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_until_it_ends),
        cmocka_unit_test(test_until_it_is_enough),
        cmocka_unit_test(test_the_name_of_the_trace),
        cmocka_unit_test(test_nobody_there),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
