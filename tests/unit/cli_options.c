/* Tests of src/cli/options.c: every way to write an option, what is wrong, near names, help from the table.
 * One thread.
 * Must not know the commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options.c"

enum { OUT, LOUD, FAST, REFUSED };
static const tare__cli_option table[] = {
    {"output", 'o', "FILE", "where it goes", OUT},
    {"loud", 'l', NULL, "a sentence that is so long that it must be broken into at least two lines of help",
     LOUD},
    {"fast-forward-to-the-end", 0, "TIME", "skip", FAST},
    {"refused", 'r', NULL, "always wrong", REFUSED},
};

typedef struct seen {
    const char *output, *fast;
    int loud;
} seen;

static int take(void *settings, int key, const char *argument, tare__error *error)
{
    seen *to = settings;
    if (key == OUT)
        to->output = argument;
    else if (key == LOUD)
        to->loud++;
    else if (key == FAST)
        to->fast = argument;
    else
        return tare__fail(error, TARE_E_USAGE, "refused");
    return 0;
}

static tare__cli_command command = {
    .name = "try",
    .summary = "tries",
    .usage = "[options] FILE",
    .examples = "  tare try x\n",
    .options = table,
    .option_count = TARE__COUNT_OF(table),
    .take = take,
};

#define MANY 12
static seen got;
static tare__cli_words words;
static tare__error error;
static char *line[MANY];

static int parse_line(const char *first, ...)
{
    va_list args;
    int argc = 1;
    line[0] = "try";
    va_start(args, first);
    for (const char *word = first; word; word = va_arg(args, const char *))
        line[argc++] = (char *)word;
    va_end(args);
    line[argc] = NULL;
    got = (seen){0};
    error.text[0] = '\0';
    return tare__cli_parse(&command, argc, line, &got, &words, &error);
}

static void options_are_read_however_written(void **state)
{
    (void)state;
    assert_int_equal(parse_line("--output", "a", "-l", NULL), 0);
    assert_string_equal(got.output, "a");
    assert_int_equal(got.loud, 1);
    assert_int_equal(parse_line("--output=b=c", "--loud", NULL), 0);
    assert_string_equal(got.output, "b=c");
    assert_int_equal(parse_line("-llob", NULL), 0);
    assert_int_equal(got.loud, 2);
    assert_string_equal(got.output, "b");
    assert_int_equal(parse_line("-o", "-l", NULL), 0); /* an argument may look like an option */
    assert_string_equal(got.output, "-l");
    assert_int_equal(got.loud, 0);
    assert_int_equal(parse_line("--output=", NULL), 0);
    assert_string_equal(got.output, "");
}

static void words_are_gathered_around_options(void **state)
{
    (void)state;
    assert_int_equal(parse_line("a", "-l", "b", "-o", "x", "-", "--", "-l", "c", NULL), 0);
    assert_int_equal(words.count, 3);
    assert_string_equal(words.words[0], "a");
    assert_string_equal(words.words[1], "b");
    assert_string_equal(words.words[2], "-");
    assert_string_equal(words.rest[0], "-l");
    assert_string_equal(words.rest[1], "c");
    assert_null(words.rest[2]);
    assert_int_equal(got.loud, 1);
    assert_int_equal(parse_line("a", NULL), 0);
    assert_null(words.rest);
}

static void a_following_command_is_left_alone(void **state)
{
    (void)state;
    command.command_follows = true;
    assert_int_equal(parse_line("-l", "prog", "--unknown", "-l", NULL), 0);
    command.command_follows = false;
    assert_int_equal(words.count, 3);
    assert_string_equal(words.words[0], "prog");
    assert_string_equal(words.words[2], "-l");
    assert_int_equal(got.loud, 1);
}

static void refuses(const char *sentence, const char *first, const char *second)
{
    assert_int_equal(parse_line(first, second, NULL), TARE_E_USAGE);
    assert_string_equal(error.text, sentence);
}

static void what_is_wrong_gets_a_sentence(void **state)
{
    (void)state;
    refuses("unknown option --outptu; did you mean --output?", "--outptu", "x");
    refuses("unknown option --fast; did you mean --fast-forward-to-the-end?", "--fast=3", NULL);
    refuses("unknown option --halp; did you mean --help?", "--halp", NULL);
    refuses("unknown option --zebra", "--zebra=crossing", NULL);
    refuses("unknown option -x", "-lx", NULL);
    refuses("unknown option -fast-forward-to-the-end=1; did you mean --fast-forward-to-the-end?",
            "-fast-forward-to-the-end=1", NULL);
    refuses("--output requires a value: FILE", "--output", NULL);
    refuses("--output requires a value: FILE", "-o", NULL);
    refuses("--loud takes no value", "--loud=1", NULL);
    refuses("refused", "-r", NULL);
    char huge[300];
    memset(huge, 'o', sizeof huge - 1);
    huge[0] = huge[1] = '-';
    huge[sizeof huge - 1] = '\0';
    assert_int_equal(parse_line(huge, NULL), TARE_E_USAGE);
}

static void help_wins_over_what_follows(void **state)
{
    (void)state;
    assert_int_equal(parse_line("-h", "--unknown", NULL), 0);
    assert_true(words.help);
    assert_int_equal(parse_line("--help", NULL), 0);
    assert_true(words.help);
    assert_int_equal(parse_line("--", "--help", NULL), 0); /* not ours */
    assert_false(words.help);
}

static void near_names_are_near(void **state)
{
    (void)state;
    static const char *const names[] = {"run", "report", "help"};
    assert_string_equal(tare__cli_nearest("rnu", names, 3), "run");
    assert_string_equal(tare__cli_nearest("rep", names, 3), "report");
    assert_string_equal(tare__cli_nearest("reprot", names, 3), "report");
    assert_string_equal(tare__cli_nearest("repoort", names, 3), "report");
    assert_null(tare__cli_nearest("x", names, 3));
    assert_null(tare__cli_nearest("", names, 3));
    assert_null(tare__cli_nearest("compare", names, 3));
    assert_null(tare__cli_nearest("a-word-much-longer-than-any-command-there-is", names, 3));
}

static void help_is_made_from_the_table(void **state)
{
    (void)state;
    tare__text text = {0};
    tare__cli_help(&command, &text);
    assert_string_equal(text.data,
                        "tare try: tries\n"
                        "\n"
                        "usage: tare try [options] FILE\n"
                        "\n"
                        "Options:\n"
                        "  -o, --output FILE     where it goes\n"
                        "  -l, --loud            a sentence that is so long that it must be broken into\n"
                        "                        at least two lines of help\n"
                        "      --fast-forward-to-the-end TIME\n"
                        "                        skip\n"
                        "  -r, --refused         always wrong\n"
                        "  -h, --help            show this help and exit\n"
                        "\n"
                        "Examples:\n"
                        "  tare try x\n");
    tare__text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read_however_written),
        cmocka_unit_test(words_are_gathered_around_options),
        cmocka_unit_test(a_following_command_is_left_alone),
        cmocka_unit_test(what_is_wrong_gets_a_sentence),
        cmocka_unit_test(help_wins_over_what_follows),
        cmocka_unit_test(near_names_are_near),
        cmocka_unit_test(help_is_made_from_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
