/* Tests of settings: what stands in variables and files, which goes before which, and what is wrong with a file.
 * One thread, in a folder of its own.
 * Must not know the commands. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "base/base.h"
#include "tare.h"

enum { INTERVAL, QUIET, LIVE, SIZE, WIDTH };
static const tare__cli_option table[] = {
    {"interval", 0, "TIME", "how often", INTERVAL}, {"quiet", 'q', NULL, "say nothing", QUIET},
    {"live", 0, NULL, "a line", LIVE},              {"max-size", 0, "SIZE", "how large", SIZE},
    {"width", 0, "N", "how wide", WIDTH},
};

typedef struct seen {
    char interval[64], size[64], width[64];
    int quiet, live;
} seen;

static int take(void *settings, int key, const char *argument, tare__error *error)
{
    seen *to = settings;
    if (key == INTERVAL && strcmp(argument, "never") == 0)
        return tare__fail(error, TARE_E_USAGE, "--interval: 'never' is no time");
    if (key == INTERVAL)
        snprintf(to->interval, sizeof to->interval, "%s", argument);
    if (key == SIZE)
        snprintf(to->size, sizeof to->size, "%s", argument);
    if (key == WIDTH)
        snprintf(to->width, sizeof to->width, "%s", argument);
    to->quiet += key == QUIET;
    to->live += key == LIVE;
    return 0;
}

static const tare__cli_command command = {.name = "try",
                                          .summary = "tries",
                                          .usage = "",
                                          .examples = "",
                                          .options = table,
                                          .option_count = TARE__COUNT_OF(table),
                                          .settings = TARE__SETTINGS_RECORDING,
                                          .take = take};

static char folder[64];
static seen got;
static tare__error error;
static tare__cli_words words;

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tare-cli-settings.XXXXXX");
    static const char *const variables[] = {"TARE_INTERVAL", "TARE_QUIET", "TARE_LIVE", "TARE_MAX_SIZE",
                                            "TARE_INTERVL"};
    for (size_t i = 0; i < TARE__COUNT_OF(variables); i++)
        unsetenv(variables[i]);
    return !mkdtemp(folder) || chdir(folder) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink("tare.toml");
    unlink("pyproject.toml");
    return chdir("/") != 0 || rmdir(folder) != 0;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int read_line(const char *first, const char *second)
{
    char *line[] = {"try", (char *)first, (char *)second, NULL};
    got = (seen){0};
    error.text[0] = '\0';
    return tare__cli_read(&command, first ? second ? 3 : 2 : 1, line, &got, &words, &error);
}

/* ---- which goes before which ------------------------------------------------------------------------ */
static void each_place_goes_before_the_next(void **state)
{
    (void)state;
    assert_int_equal(read_line(NULL, NULL), 0);
    assert_string_equal(got.interval, "");
    write_file("pyproject.toml", "[tool.tare]\ninterval = \"4s\"\nmax_size = 400\nquiet = true\n");
    assert_int_equal(read_line(NULL, NULL), 0);
    assert_string_equal(got.interval, "4s");
    assert_string_equal(got.size, "400");
    assert_int_equal(got.quiet, 1);
    write_file("tare.toml", "interval = '3s' # often\n");
    assert_int_equal(read_line(NULL, NULL), 0);
    assert_string_equal(got.interval, "3s");
    assert_string_equal(got.size, "400"); /* what only one says stays */
    setenv("TARE_INTERVAL", "2s", 1);
    setenv("TARE_QUIET", "0", 1);
    setenv("TARE_LIVE", "yes", 1);
    assert_int_equal(read_line(NULL, NULL), 0);
    assert_string_equal(got.interval, "2s");
    assert_int_equal(got.quiet, 0);
    assert_int_equal(got.live, 1);
    assert_int_equal(read_line("--interval", "1s"), 0);
    assert_string_equal(got.interval, "1s");
}

static void a_command_takes_what_it_has(void **state)
{
    (void)state;
    write_file("tare.toml", "width = 100\nperfetto = \"a.pftrace\"\n");
    assert_int_equal(read_line(NULL, NULL), 0);
    assert_string_equal(got.width, ""); /* is for those that show */
}

static void help_needs_no_good_file(void **state)
{
    (void)state;
    write_file("tare.toml", "what?\n");
    assert_int_equal(read_line("--help", NULL), 0);
    assert_true(words.help);
    assert_int_equal(read_line(NULL, NULL), TARE_E_USAGE);
}

static void variables_may_be_wrong(void **state)
{
    (void)state;
    setenv("TARE_QUIET", "maybe", 1);
    assert_int_equal(read_line(NULL, NULL), TARE_E_USAGE);
    assert_string_equal(error.text, "TARE_QUIET: 'maybe' is not 1 or 0");
    unsetenv("TARE_QUIET");
    setenv("TARE_INTERVL", "1s", 1);
    assert_int_equal(read_line(NULL, NULL), TARE_E_USAGE);
    assert_string_equal(error.text, "unknown setting TARE_INTERVL; did you mean TARE_INTERVAL?");
    unsetenv("TARE_INTERVL");
    setenv("TARE_INTERVAL", "never", 1);
    assert_int_equal(read_line(NULL, NULL), TARE_E_USAGE);
    assert_string_equal(error.text, "TARE_INTERVAL: --interval: 'never' is no time");
    setenv("TARE_INTERVAL", "", 1); /* as good as not there */
    assert_int_equal(read_line(NULL, NULL), 0);
    setenv("TARE_NVML", "/lib/x.so", 1); /* is no misspelt TARE_HTML */
    assert_int_equal(read_line(NULL, NULL), 0);
    unsetenv("TARE_NVML");
}

static void what_is_wrong_is_told_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } wrong[] = {
        {"\n# x\nintervall = 3\n", "tare.toml:3: unknown setting 'intervall'; did you mean 'interval'?"},
        {"zzz = 3\n", "tare.toml:1: unknown setting 'zzz'"},
        {"quiet = 1\n", "tare.toml:1: quiet must be true or false"},
        {"interval = true\n", "tare.toml:1: interval must be a string or a number"},
        {"interval = \"1s\"\ninterval = \"2s\"\n", "tare.toml:2: interval is set twice"},
        {"interval = \"never\"\n", "tare.toml:1: --interval: 'never' is no time"},
        {"interval\n", "tare.toml:1: expected = and a value after the name"},
        {"a.b = 1\n", "tare.toml:1: dotted names are not supported"},
        {"interval = [1]\n", "tare.toml:1: a value must be a string, a number, true or false"},
        {"interval = \"1s\n", "tare.toml:1: unterminated string"},
        {"interval = \"\\q\"\n", "tare.toml:1: invalid escape or byte in string"},
        {"interval = \"\"\"1s\"\"\"\n", "tare.toml:1: multi-line strings are not supported"},
        {"interval = \"1s\" 2\n", "tare.toml:1: unexpected text after the value"},
        {"interval = 1__0\n", "tare.toml:1: unexpected text after the value"},
        {"= 3\n", "tare.toml:1: expected name = value"},
        {"[history]\nenabled = 1\n", "tare.toml:2: enabled must be true or false"},
        {"[history]\nkeep = 3\n", "tare.toml:2: unknown setting 'keep' in [history]; available: enabled, store, tag"},
        {"store = 'a'\n[history]\nstore = 'b'\n", "tare.toml:3: store is set twice"},
        {"quiet = true\n[tool.tare]\n", "tare.toml:2: settings must be at the top of the file, outside any table"},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(wrong); i++) {
        write_file("tare.toml", wrong[i].text);
        assert_int_equal(read_line(NULL, NULL), TARE_E_USAGE);
        assert_string_equal(error.text, wrong[i].sentence);
    }
}

/* ---- TOML ------------------------------------------------------------------------------------------- */
static char pairs[4096];

static int note_pair(void *context, const tare__toml_pair *pair, tare__error *of)
{
    (void)context, (void)of;
    size_t used = strlen(pairs);
    snprintf(pairs + used, sizeof pairs - used, "%u:%s=%s;", pair->line, pair->key, pair->value);
    return 0;
}

static int read_text(const char *text, const char *name)
{
    pairs[0] = error.text[0] = '\0';
    return tare__toml_read(text, strlen(text), "file", name, note_pair, NULL, &error);
}

static void values_are_read(void **state)
{
    (void)state;
    assert_int_equal(read_text("\xEF\xBB\xBF" "a = \"x \\\"y\\\" \\u00e9 \\U0001F600\\t\"\r\n"
                               "\"b c\" = 'no \\ escape'#c\n  d=1_000\ne = -1.5e3 \nf = true\n\n g=false",
                               ""),
                     0);
    assert_string_equal(pairs, "1:a=x \"y\" \xc3\xa9 \xf0\x9f\x98\x80\t;2:b c=no \\ escape;3:d=1000;4:e=-1.5e3;"
                               "5:f=true;7:g=false;");
    assert_int_equal(read_text("", ""), 0);
    assert_string_equal(pairs, "");
}

static void other_tables_are_passed_over(void **state)
{
    (void)state;
    static const char text[] = "top = 1\n[build-system]\nrequires = [\n  \"[tool.tare]\", # ]\n  'x',\n]\n"
                               "text = \"\"\"\n[tool.tare]\nno = 1\n\"\"\"\nraw = '''\n[tool.tare]\n'''\n"
                               "odd = { a = [1, 2] }\n[[tool.many]]\nbroken ~ thing\n"
                               "[ tool . \"tare\" ] # ours\nyes = 1\n[tool.tarot]\nno = 2\n";
    assert_int_equal(read_text(text, "tool.tare"), 0);
    assert_string_equal(pairs, "18:yes=1;");
    assert_int_equal(read_text("[tool.tare.more]\na = 1\n", "tool.tare"), TARE_E_USAGE);
    assert_string_equal(error.text, "file:1: unknown table [tool.tare.more]");
}

/* Whatever the bytes are, reading ends, and inside the text. */
static void rubbish_is_survived(void **state)
{
    (void)state;
    uint32_t seed = 1;
    static const char letters[] = "abt[]\"'=.#\n\\u{}_-+1e\r \t";
    for (int round = 0; round < 20000; round++) {
        char *text = malloc(40);
        assert_non_null(text);
        for (int i = 0; i < 40; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = seed >> 28 == 0 ? (char)(seed >> 8) : letters[(seed >> 16) % (sizeof letters - 1)];
        }
        pairs[0] = '\0';
        tare__toml_read(text, 40, "file", round % 2 ? "" : "a", note_pair, NULL, &error);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_place_goes_before_the_next, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_command_takes_what_it_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(help_needs_no_good_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(variables_may_be_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_told_with_its_line, set_up, tear_down),
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(other_tables_are_passed_over),
        cmocka_unit_test(rubbish_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
