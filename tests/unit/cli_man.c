/* Checks the man pages against the option tables, both ways: each option is told, and none that is not.
 * One thread.
 * Must not know what the options do. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "cli/cli.h"

static const tare__cli_command *const commands[] = {&tare__cli_run, &tare__cli_attach, &tare__cli_report,
                                                   &tare__cli_import, &tare__cli_compare, &tare__cli_check,
                                                   &tare__cli_baseline, &tare__cli_history, &tare__cli_doctor,
                                                   &tare__cli_model_command};
static const tare__cli_option help = {"help", 'h', NULL, "", -1};

/* Its own ones, and the one that all have. */
static const tare__cli_option *option_at(const tare__cli_command *command, size_t i)
{
    return i < command->option_count ? &command->options[i] : &help;
}

static void read_page(const char *command, tare__text *page)
{
    const char *here = __FILE__, *slash = strrchr(here, '/');
    char path[512], piece[4096];
    snprintf(path, sizeof path, "%.*s../../man/tare-%s.1", (int)(slash + 1 - here), here, command);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("there is no %s", path);
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
        tare__text_append(page, piece, got);
    fclose(file);
}

/* The line that begins the option's paragraph: "\-\-max\-size", after "\-o, " where it has a letter. */
static void assert_told(const char *page, const tare__cli_option *option)
{
    tare__text name = {0};
    tare__text_string(&name, "\\-\\-");
    for (const char *at = option->name; *at; at++)
        tare__text_string(&name, *at == '-' ? "\\-" : (char[]){*at, '\0'});
    const char *found = NULL;
    for (const char *at = page; (at = strstr(at, "\n.TP\n")) && !found;) {
        at += 5;
        size_t length = strcspn(at, "\n");
        const char *in = memmem(at, length, name.data, name.length);
        bool whole = in && strchr(" \n\"", in[name.length]);
        if (whole && (!option->argument || memmem(at, length, option->argument, strlen(option->argument))))
            found = at;
    }
    if (!found)
        fail_msg("the man page does not tell of --%s %s", option->name,
                 option->argument ? option->argument : "");
    char letter[4] = {'\\', '-', option->letter, '\0'};
    if (option->letter && !memmem(found, strcspn(found, "\n"), letter, 3))
        fail_msg("the man page does not tell that --%s is -%c", option->name, option->letter);
    tare__text_free(&name);
}

/* "\-\-word" at the start of a paragraph, made plain, must be in the table. */
static void assert_no_others(const char *page, const tare__cli_command *command)
{
    const char *options = strstr(page, ".SH OPTIONS"), *end = strstr(options, "\n.SH ");
    for (const char *at = options; (at = strstr(at, "\n.TP\n")) && at < end;) {
        char plain[64];
        size_t n = 0;
        at += 5;
        const char *name = strstr(at, "\\-\\-");
        assert_non_null(name);
        for (name += 4; *name && !strchr(" \n\"", *name) && n + 1 < sizeof plain; name++)
            if (*name != '\\')
                plain[n++] = *name;
        plain[n] = '\0';
        bool known = false;
        for (size_t i = 0; i <= command->option_count; i++)
            known = known || strcmp(option_at(command, i)->name, plain) == 0;
        if (!known)
            fail_msg("the man page of %s tells of --%s, which is not there", command->name, plain);
    }
}

static void check(const tare__cli_command *command)
{
    tare__text page = {0};
    read_page(command->name, &page);
    for (size_t i = 0; i <= command->option_count; i++)
        assert_told(page.data, option_at(command, i));
    assert_no_others(page.data, command);
    tare__text_free(&page);
}

static void pages_and_tables_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(commands); i++)
        check(commands[i]);
}

/* Keys are what `take` goes by: two alike would be one option. Formats are stored by name in one place. */
static void names_letters_and_keys_are_unique(void **state)
{
    (void)state;
    const tare__cli_command *const *all = commands;
    for (size_t c = 0; c < TARE__COUNT_OF(commands); c++) {
        for (size_t i = 0; i <= all[c]->option_count; i++) {
            for (size_t j = 0; j < i; j++) {
                const tare__cli_option *a = option_at(all[c], i), *b = option_at(all[c], j);
                assert_string_not_equal(a->name, b->name);
                assert_true(a->key != b->key || a->key >> TARE__CLI_KIND_AT == TARE__CLI_KIND_FORMAT);
                assert_true(!a->letter || a->letter != b->letter);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_and_tables_agree),
        cmocka_unit_test(names_letters_and_keys_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
