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

#include "cli/options.c"
#include "cli/output.c"
#include "cli/run.c"
#include "cli_capture.h"

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
        options->on_waiting(options->context, 3);
        options->on_waiting(options->context, 2);
    }
    if (answer_sentence)
        tare__fail(error, answer_status, "%s", answer_sentence);
    return answer_status;
}

static int set_up(void **state)
{
    (void)state;
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

#define RUN(...) CALL(run_main, "run", __VA_ARGS__)

static void options_reach_the_collector(void **state)
{
    (void)state;
    assert_int_equal(RUN("-o", "x.tare", "-fq", "--max-size=500M", "--last", "60s", "--pool", "16M",
                         "--readable", "--no-wait", "--", "./prog", "--force"),
                     7);
    assert_string_equal(asked.output, "x.tare");
    assert_true(asked.overwrite && asked.readable_by_others && asked.leave_children);
    assert_int_equal(asked.max_bytes, 500u << 20);
    assert_int_equal(asked.last_ns, 60000000000u);
    assert_int_equal(asked.pool_bytes, 16u << 20);
    assert_string_equal(asked.command[0], "./prog");
    assert_string_equal(asked.command[1], "--force");
    assert_null(asked.command[2]);
    assert_string_equal(said, "");
}

static void says_what_was_written_to_standard_error(void **state)
{
    (void)state;
    assert_int_equal(RUN("--", "./prog"), 7);
    assert_false(asked.overwrite || asked.readable_by_others || asked.leave_children);
    assert_null(asked.output);
    assert_string_equal(printed, "");
    assert_string_equal(said, "tare: wrote train.tare (2.00 KiB): 84,210 spans in 2.40 s\n"
                              "tare: see it with: tare report train.tare\n");
}

static void says_what_is_missing(void **state)
{
    (void)state;
    answer.dropped_spans = 12;
    answer.processes = 3;
    answer.left_running = 1;
    strcpy(answer.trouble, "the disk is full; the trace ends early");
    strcpy(answer.folder, "/tmp/tare-x");
    assert_int_equal(RUN("--", "./prog"), 7);
    assert_string_equal(said, "tare: the command has ended; waiting for 3 of its processes that still record "
                              "(--no-wait would not)\n"
                              "tare: wrote train.tare (2.00 KiB): 84,210 spans of 3 processes in 2.40 s\n"
                              "tare: 12 spans were dropped, the memory for them was full; --pool gives more\n"
                              "tare: 1 process is still running and no longer recorded\n"
                              "tare: the disk is full; the trace ends early\n"
                              "tare: the session folder /tmp/tare-x is left; tare report reads it\n"
                              "tare: see it with: tare report train.tare\n");
    assert_int_equal(RUN("-q", "--", "./prog"), 7); /* trouble is told even so */
    assert_string_equal(said, "tare: the disk is full; the trace ends early\n"
                              "tare: the session folder /tmp/tare-x is left; tare report reads it\n");
}

static void says_when_nothing_was_recorded(void **state)
{
    (void)state;
    answer.spans = answer.processes = 0;
    RUN("--", "/bin/true");
    assert_non_null(strstr(said, "no process recorded anything"));
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
        {{"--"}, "which command? It comes after --: tare run -- ./program"},
        {{NULL}, "which command? It comes after --: tare run -- ./program"},
        {{"--max-size", "huge", "--", "x"},
         "--max-size: 'huge' is not a size; write it as 512, 64K, 100MB or 2GiB"},
        {{"--quite", "--", "x"}, "there is no option --quite; did you mean --quiet?"},
        {{"-f", "--", "x"}, "--force goes with --output: name the file to overwrite"},
        {{"-o", "", "--", "x"}, "--output: the name is empty"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(wrong); i++) {
        char expected[512], *words[6] = {"run"};
        for (int j = 0; j < 4; j++)
            words[j + 1] = (char *)wrong[i].words[j];
        snprintf(expected, sizeof expected, "tare run: %s\ntare run --help says more\n", wrong[i].sentence);
        assert_int_equal(call(run_main, words), 2);
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
    assert_ptr_equal(strstr(printed, "tare run: profiles a command"), printed);
    assert_non_null(strstr(printed, "\n  tare run -- ./train --epochs 3\n"));
    assert_int_equal(runs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(options_reach_the_collector, set_up),
        cmocka_unit_test_setup(says_what_was_written_to_standard_error, set_up),
        cmocka_unit_test_setup(says_what_is_missing, set_up),
        cmocka_unit_test_setup(says_when_nothing_was_recorded, set_up),
        cmocka_unit_test_setup(names_cannot_move_the_cursor, set_up),
        cmocka_unit_test_setup(exit_statuses_are_as_promised, set_up),
        cmocka_unit_test_setup(wrong_usage_runs_nothing, set_up),
        cmocka_unit_test_setup(a_long_command_is_shortened, set_up),
        cmocka_unit_test_setup(help_goes_to_standard_output, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
