/* Tests of src/cli/run.c with a collector that only pretends: options, sentences, exit statuses.
 * One thread.
 * Must not know how recording works. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>

#include "cli/recording.h"
#include "cli_rig.h"

static tare__leftover left[4];
static unsigned left_count;
static tare__tidied tidied;
static bool press;

bool tare__leftovers_press(void)
{
    return press;
}

void tare__leftovers_visit(tare__leftover_sink *sink, void *context)
{
    (void)sink, (void)context;
}

bool tare__leftover_remove(const tare__leftover *leftover)
{
    (void)leftover;
    return false;
}

bool tare__leftover_removable(const tare__leftover *leftover)
{
    (void)leftover;
    return false;
}

int tare__leftover_save(tare__leftover *leftover, tare__error *error)
{
    (void)leftover, (void)error;
    return TARE_E_INPUT;
}

void tare__leftovers_tidy(bool memory_only, tare__leftover_sink *sink, void *context, tare__tidied *result)
{
    (void)memory_only;
    for (unsigned i = 0; sink && i < left_count; i++)
        sink(context, &left[i]);
    *result = tidied;
}

static tare__run_options asked;
static tare__run_result answer;
static int answer_status;
static const char *answer_sentence;
static unsigned runs;

int tare__run(const tare__run_options *options, tare__run_result *result, tare__error *error)
{
    asked = *options;
    *result = answer;
    runs++;
    if (answer.left_running) {
        options->on_waiting(options->record.context, 3);
        options->on_waiting(options->record.context, 2);
    }
    if (answer_sentence)
        tare__fail(error, answer_status, "%s", answer_sentence);
    return answer_status;
}

static int set_up(void **state)
{
    (void)state;
    if (make_folder("cli-run"))
        return -1;
    left_count = 0;
    press = false;
    tidied = (tare__tidied){0};
    answer = (tare__run_result){.launched = true,
                                .exit_status = 7,
                                .trace = "train.tare",
                                .trace_bytes = 2048,
                                .spans = 84210,
                                .processes = 1,
                                .elapsed_ns = 2400000000u};
    answer_status = 0;
    answer_sentence = NULL;
    runs = 0;
    return 0;
}

#define RUN(...) CALL(tare__cli_run.main, "run", __VA_ARGS__)

static void options_reach_the_collector(void **state)
{
    (void)state;
    assert_int_equal(RUN("-o", "x.tare", "-fq", "--max-size=500M", "--last", "60s", "--buffer-size", "16M",
                         "--readable", "--no-wait", "--interval", "50ms", "--disable=power,nvml", "--carbon", "300",
                         "--", "./prog", "--force"),
                     7);
    assert_string_equal(asked.record.output, "x.tare");
    assert_true(asked.record.overwrite && asked.record.readable_by_others && asked.leave_children);
    assert_int_equal(asked.record.max_bytes, 500u << 20);
    assert_int_equal(asked.record.last_ns, 60000000000u);
    assert_int_equal(asked.pool_bytes, 16u << 20);
    assert_int_equal(asked.record.interval_ns, 50000000u);
    assert_true(asked.record.carbon_g_per_kwh == 300);
    uint32_t bits = 0;
    for (size_t i = 0; tare__sampler_at(i); i++)
        if (strcmp(tare__sampler_at(i)->name, "power") == 0 || strcmp(tare__sampler_at(i)->name, "nvml") == 0)
            bits |= 1u << i;
    assert_int_equal(asked.record.samplers_left_out, bits);
    assert_string_equal(asked.command[0], "./prog");
    assert_string_equal(asked.command[1], "--force");
    assert_null(asked.command[2]);
    assert_string_equal(said, "");
}

static void sampling_is_the_default(void **state)
{
    (void)state;
    RUN("--", "./prog");
    assert_int_equal(asked.record.interval_ns, 0);
    assert_int_equal(asked.record.samplers_left_out, 0);
    RUN("--no-sampling", "--interval=1s", "--", "./prog");
    assert_true(asked.record.interval_ns == TARE__RUN_NO_SAMPLES);
}

static void the_summary_goes_to_standard_error(void **state)
{
    (void)state;
    assert_int_equal(RUN("--", "./prog"), 7);
    assert_false(asked.record.overwrite || asked.record.readable_by_others || asked.leave_children);
    assert_null(asked.record.output);
    assert_string_equal(printed, "");
    assert_ptr_equal(strstr(said, "\n./prog\n"), said);
    assert_non_null(strstr(said, "\nWhere time is spent "));
    assert_non_null(strstr(said, "\nwork "));
    assert_non_null(strstr(said, "\nnext: tare report --html train.tare "));
    static const char last[] = "\ntare: wrote train.tare (2.00 KiB)\n";
    assert_string_equal(said + strlen(said) - (sizeof last - 1), last);
    assert_null(strchr(said, '\x1b')); /* no terminal, no colour */
}

static void what_is_wrong_is_said_even_when_quiet(void **state)
{
    (void)state;
    answer.left_running = 1;
    strcpy(answer.problem, "the disk is full; the trace ends early");
    strcpy(answer.folder, "/tmp/tare-x");
    assert_int_equal(RUN("--", "./prog"), 7);
    assert_ptr_equal(strstr(said, "tare: the command has exited; waiting for 3 of its processes that are still "
                                  "recording "
                                  "(--no-wait to disable)\n\n./prog\n"),
                     said);
    assert_non_null(strstr(said, "\ntare: the disk is full; the trace ends early\n"
                                 "tare: the session folder /tmp/tare-x was kept; tare report can read it\n"));
    assert_int_equal(RUN("-q", "--", "./prog"), 7);
    assert_string_equal(said, "tare: the disk is full; the trace ends early\n"
                              "tare: the session folder /tmp/tare-x was kept; tare report can read it\n");
}

static void views_are_written_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(RUN("-q", "--html", "a.html", "--json=a.json", "--csv", "tables", "--chrome", "a.chrome",
                         "--perfetto", "a.pftrace", "--", "./prog"),
                     7);
    assert_string_equal(said, "");
    static const char *const files[] = {"a.html", "a.json", "tables/spans.csv", "a.chrome", "a.pftrace"};
    for (size_t i = 0; i < TARE__COUNT_OF(files); i++)
        assert_int_equal(access(files[i], R_OK), 0);
    assert_int_equal(RUN("--json", "a.json", "--", "./prog"), 7); /* a view may be written again */
    assert_non_null(strstr(said, "\ntare: wrote train.tare (2.00 KiB), a.json ("));
}

/* Hours of work must not end in a view that cannot be written. */
static void what_cannot_be_written_is_known_before(void **state)
{
    (void)state;
    assert_int_equal(RUN("--html", "none/a.html", "--", "./prog"), 125);
    assert_int_equal(runs, 0);
    assert_string_equal(said, "tare run: cannot write 'none/a.html': No such file or directory\n");
    assert_int_equal(RUN("--rules", "none", "--", "./prog"), 125);
    assert_int_equal(runs, 0);
    write_file("bad.rules", "rule\n", 5);
    assert_int_equal(RUN("--rules", "bad.rules", "--", "./prog"), 125);
    assert_int_equal(runs, 0);
    assert_int_equal(RUN("--csv", "train.tare", "--", "./prog"), 125);
    assert_int_equal(runs, 0);
}

static void a_failed_view_leaves_the_status(void **state)
{
    (void)state;
    assert_int_equal(RUN("-q", "--json", "/dev/full", "--", "./prog"), 7);
    assert_string_equal(said, "tare run: --json: cannot write '/dev/full': No space left on device\n");
}

static void a_trace_that_cannot_be_analyzed_leaves_the_status(void **state)
{
    (void)state;
    write_file(trace, "no trace", 8);
    assert_int_equal(RUN("--", "./prog"), 7);
    assert_ptr_equal(strstr(said, "tare run: the trace was written but could not be analyzed: "), said);
    assert_non_null(strstr(said, "\ntare: wrote train.tare"));
}

static void leftover_sessions_are_told_of(void **state)
{
    (void)state;
    left[0] = (tare__leftover){.at = 5, .path = "/dev/shm/tare-0-abcdef", .bytes = 2048};
    left[1] = (tare__leftover){.at = 4, .path = "/dev/shm/tare-0-older1", .state = TARE__LEFTOVER_ALIVE};
    left[2] = (tare__leftover){.at = 3, .path = "/dev/shm/tare-0-older2"};
    left[3] = (tare__leftover){.at = 9, .path = "/dev/shm/tare-0-saved1", .state = TARE__LEFTOVER_SAVED};
    left_count = 1;
    RUN("--", "./prog");
    assert_non_null(strstr(said, "\ntare: a recording was interrupted: tare report /dev/shm/tare-0-abcdef\n"
                                 "tare: tare clean saves it to its trace and frees 2.00 KiB\n"));
    left_count = 4;
    RUN("--", "./prog");
    assert_non_null(strstr(said, "\ntare: 3 recordings were interrupted; newest: tare report /dev/shm/tare-0-a"));
    RUN("-q", "--", "./prog");
    assert_string_equal(said, "");
}

static void freed_memory_is_told_of(void **state)
{
    (void)state;
    tidied = (tare__tidied){.saved = 2, .saved_bytes = 3 << 20};
    RUN("--", "./prog");
    assert_non_null(strstr(said, "\ntare: saved 2 killed recordings to their traces and freed 3.00 MiB\n"));
    press = true;
    RUN("--", "./prog");
    assert_non_null(strstr(said, "\ntare: saved 4 killed recordings to their traces and freed 6.00 MiB\n"));
    RUN("-q", "--", "./prog");
    assert_string_equal(said, "");
    tidied = (tare__tidied){.unsavable = 1, .unsavable_bytes = 1 << 20};
    RUN("--", "./prog");
    assert_non_null(strstr(said, "\ntare: 1 killed recording (1.00 MiB) cannot be saved; tare clean shows why\n"));
}

static void names_cannot_move_the_cursor(void **state)
{
    (void)state;
    strcpy(answer.trace, "a\x1b[2Jb.tare");
    RUN("--", "./prog");
    assert_null(strchr(said, '\x1b'));
    assert_non_null(strstr(said, "a?[2Jb.tare"));
}

static void exit_statuses_are_as_promised(void **state)
{
    (void)state;
    answer.exit_status = 137;
    answer.signal = 9;
    assert_int_equal(RUN("--", "./prog"), 137);
    answer = (tare__run_result){.exit_status = 127};
    answer_sentence = "nosuch: not found";
    assert_int_equal(RUN("--", "nosuch"), 127);
    assert_string_equal(said, "tare run: nosuch: not found\n");
    answer = (tare__run_result){0};
    answer_status = TARE_E_PERMISSION;
    answer_sentence = "cannot write here";
    assert_int_equal(RUN("--", "./prog"), 125);
    assert_string_equal(said, "tare run: cannot write here\n");
}

static void wrong_usage_runs_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *words[4], *sentence;
    } wrong[] = {
        {{"./prog", "--epochs", "3"}, "put -- before the command: tare run -- ./prog --epochs 3"},
        {{"-q", "./prog"}, "put -- before the command: tare run -- ./prog"},
        {{"--"}, "missing command: tare run -- COMMAND"},
        {{NULL}, "missing command: tare run -- COMMAND"},
        {{"--max-size", "huge", "--", "x"},
         "--max-size: 'huge' is not a size; use 512, 64K, 100MB or 2GiB"},
        {{"--quite", "--", "x"}, "unknown option --quite; did you mean --quiet?"},
        {{"-f", "--", "x"}, "--force requires --output"},
        {{"-o", "", "--", "x"}, "--output: the value is empty"},
        {{"--interval", "0.1ms", "--", "x"}, "--interval: '0.1ms' is not between 1ms and 60s"},
        {{"--interval", "2m", "--", "x"}, "--interval: '2m' is not between 1ms and 60s"},
        {{"--disable", "powr", "--", "x"},
         "--disable: 'powr' is not process, system, container, power or nvml; did you mean power?"},
        {{"--carbon", "-3", "--", "x"}, "--carbon: '-3' is not a number of grams per kWh"},
        {{"--carbon=4g", "--", "x"}, "--carbon: '4g' is not a number of grams per kWh"},
        {{"--html=a", "--json=a", "--", "x"}, "--html and --json name the same file"},
        {{"--html=a", "-oa", "--", "x"}, "--html and --output name the same file"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(wrong); i++) {
        char expected[512], *words[6] = {"run"};
        for (int j = 0; j < 4; j++)
            words[j + 1] = (char *)wrong[i].words[j];
        snprintf(expected, sizeof expected, "tare run: %s\ntare run --help shows the options\n", wrong[i].sentence);
        assert_int_equal(call(tare__cli_run.main, words), 2);
        assert_string_equal(said, expected);
        assert_string_equal(printed, "");
    }
    assert_int_equal(runs, 0);
}

static void a_long_command_is_shortened(void **state)
{
    (void)state;
    char word[300];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_int_equal(RUN("./prog", word), 2);
    assert_non_null(strstr(said, "tare run -- ./prog …\n"));
}

static void help_goes_to_standard_output(void **state)
{
    (void)state;
    assert_int_equal(RUN("--help"), 0);
    assert_string_equal(said, "");
    assert_ptr_equal(strstr(printed, "tare run: Profile a command"), printed);
    assert_non_null(strstr(printed, "\n  tare run -- python3 train.py --epochs 3\n"));
    assert_int_equal(runs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(options_reach_the_collector, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(sampling_is_the_default, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(the_summary_goes_to_standard_error, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_said_even_when_quiet, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(views_are_written_at_the_end, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_known_before, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(a_failed_view_leaves_the_status, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(a_trace_that_cannot_be_analyzed_leaves_the_status, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(leftover_sessions_are_told_of, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(freed_memory_is_told_of, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(names_cannot_move_the_cursor, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(exit_statuses_are_as_promised, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(wrong_usage_runs_nothing, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(a_long_command_is_shortened, set_up, remove_folder),
        cmocka_unit_test_setup_teardown(help_goes_to_standard_output, set_up, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
