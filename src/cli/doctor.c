/* doctor: `tare doctor`: what can be measured on this machine, and for what cannot, why and how to fix it.
 * One thread.
 * Must not know how anything is measured. */
#define _GNU_SOURCE
#include "cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "collect/collect.h"
#include "emit/emit.h"
#include "model/model.h"
#include "sample/sample.h"

#define DOCTOR "tare doctor"

typedef struct doctor_style {
    bool json;
    bool marks;  /* ✓ ~ ✗ */
    bool colour;
    size_t width;
} doctor_style;

static const tare__cli_option doctor_options[] = {
    {"json", 0, NULL, "print the result as JSON", TARE__CLI_SETS(doctor_style, json)},
};

/* In order of arrival; those of one sampler are adjacent. */
typedef struct doctor_checks {
    tare__sample_check *checks;
    size_t count, room;
    bool failed; /* out of memory */
    tare__arena *texts;
} doctor_checks;

static void doctor_keep(void *context, const tare__sample_check *check)
{
    doctor_checks *all = context;
    if (!tare__array_fit(&all->checks, &all->room, all->count + 1, sizeof *all->checks)) {
        all->failed = true;
        return;
    }
    tare__sample_check *kept = &all->checks[all->count++];
    *kept = *check; /* the texts it points to are valid during the call only */
    kept->sampler = tare__arena_copy(all->texts, check->sampler, strlen(check->sampler));
    kept->source = tare__arena_copy(all->texts, check->source, strlen(check->source));
    if (!kept->sampler || !kept->source) {
        all->failed = true;
        all->count--;
    }
}

/* ---- Python: most programs run here are scripts ---------------------------------------------------------- */
static void doctor_check_python(doctor_checks *all)
{
    char path[4096];
    tare__sample_check check = {.sampler = "recording", .source = "Python", .state = TARE__SAMPLE_WORKS};
    if (tare__find_program("python3", path, sizeof path) || tare__find_program("python", path, sizeof path)) {
        snprintf(check.detail, sizeof check.detail, "%.250s", path);
    } else {
        check.state = TARE__SAMPLE_PARTLY;
        snprintf(check.detail, sizeof check.detail, "python3 and python not found in PATH; other programs can be "
                                                    "profiled");
        snprintf(check.fix, sizeof check.fix, "sudo apt-get install python3");
    }
    doctor_keep(all, &check);
}

/* ---- the table -------------------------------------------------------------------------------------------- */
static const struct {
    const char *mark, *word, *colour;
} doctor_states[] = {
    [TARE__SAMPLE_WORKS] = {"✓", "works ", "32"},
    [TARE__SAMPLE_PARTLY] = {"~", "partly", "33"},
    [TARE__SAMPLE_FAILS] = {"✗", "fails ", "31"},
};

#define DOCTOR_SOURCE_COLUMNS 28u

/* For the section that begins here. */
static size_t doctor_source_columns(const doctor_checks *all, size_t first)
{
    size_t widest = 8;
    const char *section = all->checks[first].sampler;
    for (size_t i = first; i < all->count && strcmp(all->checks[i].sampler, section) == 0; i++) {
        size_t columns = tare__text_columns(all->checks[i].source, strlen(all->checks[i].source));
        if (columns > widest)
            widest = columns;
    }
    return widest > DOCTOR_SOURCE_COLUMNS ? DOCTOR_SOURCE_COLUMNS : widest;
}

static void doctor_put_check(tare__text *out, const tare__sample_check *check, const doctor_style *style,
                             size_t source_columns)
{
    char source[128], detail[1024], fix[1024];
    size_t mark_columns = style->marks ? 1 : 6, column = 2 + mark_columns + 2 + source_columns + 2;
    const char *mark = style->marks ? doctor_states[check->state].mark : doctor_states[check->state].word;
    tare__text_fit(source, sizeof source, check->source, source_columns);
    tare__text_fit(detail, sizeof detail, check->detail, sizeof check->detail);
    tare__text_fit(fix, sizeof fix, check->fix, sizeof check->fix);
    if (style->colour)
        tare__text_format(out, "  \x1b[%sm%s\x1b[0m  %s", doctor_states[check->state].colour, mark, source);
    else
        tare__text_format(out, "  %s  %s", mark, source);
    tare__text_pad_to(out, column);
    tare__cli_wrap(out, detail, column, style->width);
    if (!fix[0])
        return;
    tare__text_pad_to(out, column);
    tare__text_format(out, "fix: %s\n", fix); /* not wrapped, so that it can be copied */
}

static void doctor_put_table(tare__text *out, const doctor_checks *all, const doctor_style *style)
{
    unsigned counts[3] = {0};
    const char *section = "";
    size_t source_columns = 0;
    tare__text_string(out, "Measurements available to tare " TARE_VERSION " on this machine\n");
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(section, all->checks[i].sampler) != 0) {
            section = all->checks[i].sampler;
            source_columns = doctor_source_columns(all, i);
            tare__text_format(out, "\n%s\n", section);
        }
        doctor_put_check(out, &all->checks[i], style, source_columns);
        counts[all->checks[i].state]++;
    }
    tare__text_format(out, "\n%u available, %u partly, %u unavailable.\n", counts[TARE__SAMPLE_WORKS],
                      counts[TARE__SAMPLE_PARTLY], counts[TARE__SAMPLE_FAILS]);
}

/* ---- the command -------------------------------------------------------------------------------------------- */
/* As setlocale would choose, without loading its files. */
static bool doctor_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < TARE__COUNT_OF(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static void doctor_suit_terminal(doctor_style *style)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    struct winsize size;
    style->width = 80;
    if (!isatty(STDOUT_FILENO))
        return;
    style->marks = doctor_is_utf8();
    style->colour = !(no_colour && *no_colour) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 80)
        style->width = size.ws_col > 120 ? 120 : size.ws_col;
}

static int doctor_print(const doctor_checks *all, const doctor_style *style)
{
    tare__text text = {0};
    if (style->json)
        tare__put_document(&text, &tare__document_doctor, &(tare__doctor_view){all->checks, all->count},
                           isatty(STDOUT_FILENO));
    else
        doctor_put_table(&text, all, style);
    int exit_status = tare__cli_print(&text);
    tare__text_free(&text);
    return exit_status;
}

static int doctor_examine(const doctor_style *style)
{
    doctor_checks all = {.texts = tare__arena_new()};
    int exit_status = TARE__EXIT_FAILED;
    if (all.texts) {
        tare__collect_doctor(doctor_keep, &all);
        doctor_check_python(&all);
        tare__sample_doctor("", doctor_keep, &all);
        tare__runner_doctor(doctor_keep, &all);
    }
    if (!all.texts || all.failed)
        tare__cli_say(DOCTOR, "out of memory");
    else
        exit_status = doctor_print(&all, style);
    tare__arena_free(all.texts);
    free(all.checks);
    return exit_status;
}

static int doctor_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    doctor_style style = {0};
    int status = tare__cli_parse(&tare__cli_doctor, argc, argv, &style, &words, &error);
    if (!status && words.help)
        return tare__cli_print_help(&tare__cli_doctor);
    if (!status && (words.count > 0 || (words.rest && words.rest[0])))
        status = tare__fail(&error, TARE_E_USAGE, "unexpected argument '%.64s'",
                            words.count > 0 ? words.words[0] : words.rest[0]);
    if (status)
        return tare__cli_usage(DOCTOR, &error);
    signal(SIGPIPE, SIG_IGN);
    doctor_suit_terminal(&style);
    return doctor_examine(&style);
}

const tare__cli_command tare__cli_doctor = {
    .name = "doctor",
    .summary = "Show what can be measured on this machine and how to enable the rest",
    .usage = "[options]",
    .details = "Each line is a source of measurements, its state (works, partly, fails), the reason,\n"
               "and where possible a command that enables it. Exit status: 0, whatever is found;\n"
               "1 the output could not be written; 2 invalid command line.\n",
    .examples = "  tare doctor\n"
                "  tare doctor --json | jq -r '.checks[] | select(.state == \"fails\") | .source'\n",
    .options = doctor_options,
    .option_count = TARE__COUNT_OF(doctor_options),
    .main = doctor_main,
};
