/* history: `tare history`: lists and filters the recorded runs, and runs the other subcommands on them.
 * One thread.
 * Must not know how runs are stored or shown. */
#define _GNU_SOURCE
#include "history.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "views.h"

#define ME           TARE__HISTORY_ME
#define LIST_DEFAULT 20
#define LAST_DEFAULT 10
#define PATIENCE_MS  15000

enum { HISTORY_TAG, HISTORY_SINCE, HISTORY_OLDER };

static const tare__cli_option options[] = {
    {"command", 0, "TEXT", "only runs whose command contains TEXT",
     TARE__CLI_TEXT(tare__history_call, filter.command)},
    {"tag", 0, "TAG", "only runs with this tag; repeated: with all of them", HISTORY_TAG},
    {"since", 0, "WHEN", "only runs started since: 7d, 12h, 2026-11-15, '2026-11-15 14:30'", HISTORY_SINCE},
    {"revision", 0, "REV", "only runs of this git revision (or prefix)",
     TARE__CLI_TEXT(tare__history_call, filter.revision)},
    {"host", 0, "NAME", "only runs on this host", TARE__CLI_TEXT(tare__history_call, filter.host)},
    {"kind", 0, "KIND", "only runs of this kind: run or model", TARE__CLI_TEXT(tare__history_call, filter.kind)},
    {"limit", 'n', "N", "only the newest N runs (default: 20 for list, else all; 0: all)",
     TARE__CLI_COUNT(tare__history_call, filter.limit)},
    {"json", 0, NULL, "print JSON", TARE__CLI_FORMAT(tare__history_call, format)},
    {"csv", 0, NULL, "print CSV", TARE__CLI_FORMAT(tare__history_call, format)},
    {"html", 0, NULL, "trend, compare: write an HTML report", TARE__CLI_FORMAT(tare__history_call, format)},
    {"all-machines", 0, NULL, "trend, compare: runs on all machines (default: the machine of the newest run)",
     TARE__CLI_SETS(tare__history_call, any_machine)},
    {"last", 0, "N", "compare: number of earlier runs to compare with (default 10)",
     TARE__CLI_COUNT(tare__history_call, last)},
    {"keep", 0, "N", "prune: delete all but the newest N runs", TARE__CLI_COUNT(tare__history_call, prune.keep)},
    {"older-than", 0, "TIME", "prune: delete runs older than this (90d)", HISTORY_OLDER},
    {"include-tagged", 0, NULL, "prune: also delete tagged runs", TARE__CLI_SETS(tare__history_call, prune.tagged)},
    {"dry-run", 0, NULL, "prune: show how many runs would be deleted", TARE__CLI_SETS(tare__history_call, dry)},
    {"remove", 0, NULL, "tag: remove the tags", TARE__CLI_SETS(tare__history_call, remove)},
    {"output", 'o', "FILE", "output file (written atomically)", TARE__CLI_TEXT(tare__history_call, output)},
    {"width", 0, "N", "width of the text output (default: terminal width, from 80 to 120)",
     TARE__CLI_WIDTH(tare__history_call, emit.width)},
    {"store", 0, "PLACE", "history to use: a directory, a file or a postgres:// URL (default: in the user's data "
                          "directory)",
     TARE__CLI_TEXT(tare__history_call, place_setting)},
};

/* ---- verbs ------------------------------------------------------------------------------------------ */
#define FILTERS "command tag since revision host kind limit "

static const struct verb {
    const char *name;
    tare__history_verb *run;
    const char *takes; /* names of options; also --store and --width */
    int least, most;   /* words after it; -1: any number */
    const char *words;
    bool writes;
} verbs[] = {
    {"list", tare__history_do_list, FILTERS "json csv output", 0, 0, "", false},
    {"show", tare__history_do_show, "json csv output", 1, 1, "ID", false},
    {"trend", tare__history_do_trend, FILTERS "json csv html output all-machines", 0, -1, "[FIGURE...]", false},
    {"compare", tare__history_do_compare, "json html output last all-machines", 0, 2, "[ID [ID]]", false},
    {"tag", tare__history_do_tag, "remove", 2, -1, "ID TAG...", true},
    {"prune", tare__history_do_prune, "keep older-than include-tagged dry-run", 0, 0, "", true},
    {"export", tare__history_do_export, FILTERS "output", 0, 0, "", false},
    {"import", tare__history_do_import, "", 0, -1, "[FILE...]", true},
    {"add", tare__history_do_add, "tag", 1, -1, "TRACE...", true},
};

static const struct verb *find_verb(const char *word)
{
    for (size_t i = 0; i < TARE__COUNT_OF(verbs); i++)
        if (strcmp(verbs[i].name, word) == 0)
            return &verbs[i];
    return NULL;
}

static const struct verb *take_verb(tare__history_call *history, tare__cli_words *words, tare__error *error)
{
    history->words = words->words;
    history->n_words = words->count;
    if (words->count == 0)
        return &verbs[0];
    const struct verb *verb = find_verb(words->words[0]);
    if (verb) {
        history->words++;
        history->n_words--;
        return verb;
    }
    const char *names[TARE__COUNT_OF(verbs)];
    for (size_t i = 0; i < TARE__COUNT_OF(verbs); i++)
        names[i] = verbs[i].name;
    const char *near = tare__cli_nearest(words->words[0], names, TARE__COUNT_OF(verbs));
    tare__fail(error, TARE_E_USAGE,
               "unknown subcommand '%.64s'; available: list, show, trend, compare, tag, prune, export, import, "
               "add%s%s%s",
               words->words[0], near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return NULL;
}

static int check_verb(const tare__history_call *history, const tare__cli_words *words, const struct verb *verb,
                      tare__error *error)
{
    char takes[128];
    snprintf(takes, sizeof takes, "%s store width", verb->takes);
    const char *other = tare__cli_given(&tare__cli_history, words, takes, false);
    if (other)
        return tare__fail(error, TARE_E_USAGE, "--%s cannot be combined with %s", other, verb->name);
    if (history->n_words < verb->least)
        return tare__fail(error, TARE_E_USAGE, "missing argument: tare history %s %s", verb->name, verb->words);
    if (verb->most >= 0 && history->n_words > verb->most)
        return tare__fail(error, TARE_E_USAGE, "unexpected argument '%.64s': tare history %s%s%s",
                          history->words[verb->most], verb->name, *verb->words ? " " : "", verb->words);
    return 0;
}

/* ---- options ---------------------------------------------------------------------------------------- */
static int take_date(const char *argument, uint64_t *ns)
{
    static const char *const ways[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S",
                                       "%Y-%m-%dT%H:%M:%S"};
    for (size_t i = 0; i < TARE__COUNT_OF(ways); i++) {
        struct tm parts = {.tm_isdst = -1};
        const char *end = strptime(argument, ways[i], &parts);
        if (!end || *end)
            continue;
        parts.tm_isdst = -1;
        time_t at = mktime(&parts);
        *ns = at > 0 ? (uint64_t)at * 1000000000u : 1;
        return 0;
    }
    return TARE_E_USAGE;
}

static int take_since(const char *argument, uint64_t *ns, tare__error *error)
{
    uint64_t ago = 0, now = tare__clock_ns(CLOCK_REALTIME);
    tare__error why = {""};
    if (take_date(argument, ns) == 0)
        return 0;
    if (argument[0] && !strchr("smhd", argument[strlen(argument) - 1]))
        return tare__fail(error, TARE_E_USAGE, "--since: '%.64s' is not a time; use 7d, 12h or 2026-11-15", argument);
    if (tare__parse_duration(argument, "--since", &ago, &why) != 0)
        return tare__fail(error, TARE_E_USAGE, "--since: '%.64s' is not a time; use 7d, 12h or 2026-11-15", argument);
    *ns = ago < now ? now - ago : 1;
    return 0;
}

static int take_older(tare__history_call *history, const char *argument, tare__error *error)
{
    uint64_t ago = 0, now = tare__clock_ns(CLOCK_REALTIME);
    int status = tare__parse_duration(argument, "--older-than", &ago, error);
    history->prune.before_ns = ago < now ? now - ago : 1;
    return status;
}

static int take_tag(tare__history_call *history, const char *argument, tare__error *error)
{
    if (history->filter.n_tags == TARE__HISTORY_TAGS)
        return tare__fail(error, TARE_E_USAGE, "--tag: more than %d", TARE__HISTORY_TAGS);
    history->tags[history->filter.n_tags++] = argument;
    return 0;
}

static int take(void *context, int key, const char *argument, tare__error *error)
{
    tare__history_call *history = context;
    switch (key) {
    case HISTORY_TAG: return take_tag(history, argument, error);
    case HISTORY_SINCE: return take_since(argument, &history->filter.since_ns, error);
    default: return take_older(history, argument, error);
    }
}

/* ---- what verbs share ------------------------------------------------------------------------------- */
int tare__history_exit(int status)
{
    return status == 0              ? TARE__EXIT_OK
           : status == TARE_E_USAGE ? TARE__EXIT_USAGE
           : status == TARE_E_INPUT || status == TARE_E_VERSION || status == TARE_E_PERMISSION ||
                   status == TARE_E_SYSTEM
               ? TARE__EXIT_INPUT
               : TARE__EXIT_FAILED;
}

int tare__history_write(const tare__history_call *history, tare__emit_writer *show, const void *what,
                        tare__error *error)
{
    bool unwritten;
    bool lines = !history->format && !history->exports;
    return tare__view_one(history->output, &history->emit, lines, show, what, &unwritten, error) ? TARE__EXIT_FAILED
                                                                                                 : TARE__EXIT_OK;
}

/* Without runs, list and export give an empty list, also in machine-readable formats; other subcommands fail. */
static int do_without_store(tare__history_call *history, const struct verb *verb, tare__error *error)
{
    char shown[300];
    tare__store_shown(history->place, shown, sizeof shown);
    if (verb->run != tare__history_do_list && verb->run != tare__history_do_export) {
        tare__fail(error, TARE_E_USAGE, "no runs in %s yet", shown);
        return TARE__EXIT_USAGE;
    }
    tare__cli_say(ME, "no runs in %s yet; `tare run -- ./program` adds one", shown);
    return history->format || verb->run == tare__history_do_export ? verb->run(history, error) : TARE__EXIT_OK;
}

static int open_and_run(tare__history_call *history, const struct verb *verb, tare__error *error)
{
    bool off;
    int status = tare__store_place(history->place_setting, history->place, &off, error);
    if (!status && off)
        status = tare__fail(error, TARE_E_USAGE, "the history is disabled (TARE_STORE, or store in tare.toml)");
    const tare__store_options how = {.create = verb->run == tare__history_do_import ||
                                               verb->run == tare__history_do_add,
                                     .writes = verb->writes,
                                     .patience_ms = PATIENCE_MS};
    if (!status)
        status = tare__store_open(history->place, &how, &history->store, error);
    /* A store of an older version is upgraded by opening it for writing. */
    if (status == TARE_E_VERSION && !verb->writes) {
        const tare__store_options again = {.writes = true, .patience_ms = PATIENCE_MS};
        status = tare__store_open(history->place, &again, &history->store, error);
    }
    if (status == TARE__STORE_NONE)
        return do_without_store(history, verb, error);
    int exit_status = status ? tare__history_exit(status) : verb->run(history, error);
    tare__store_close(history->store);
    return exit_status;
}

static int history_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    static tare__history_call history;
    history = (tare__history_call){.last = LAST_DEFAULT, .prune.keep = UINT64_MAX};
    int status = tare__cli_read(&tare__cli_history, argc, argv, &history, &words, &error);
    if (!status && words.help)
        return tare__cli_print_help(&tare__cli_history);
    const struct verb *verb = status ? NULL : take_verb(&history, &words, &error);
    if (!verb || check_verb(&history, &words, verb, &error) != 0)
        return tare__cli_usage(ME, &error);
    history.filter.tags = history.tags;
    history.last_given = tare__cli_given(&tare__cli_history, &words, "last", true);
    if (verb->run == tare__history_do_list && !tare__cli_given(&tare__cli_history, &words, "limit", true))
        history.filter.limit = LIST_DEFAULT;
    signal(SIGPIPE, SIG_IGN); /* a reader that closes the pipe early is not a failure */
    int exit_status = open_and_run(&history, verb, &error);
    if (exit_status)
        tare__cli_say(ME, "%s", error.text[0] ? error.text : "failed");
    return exit_status;
}

const tare__cli_command tare__cli_history = {
    .name = "history",
    .summary = "List recorded runs, show trends and change points, compare runs",
    .usage = "[SUBCOMMAND] [options] [ID|FIGURE|FILE...]",
    .details = "Subcommands: list (default); show ID; trend [FIGURE...]; compare [ID [ID]]; tag ID\n"
               "TAG...; prune; export; import [FILE...]; add TRACE... . An id can be shortened to a\n"
               "unique prefix; last is the newest run, last~1 the one before it. Exit status: 0\n"
               "success; 1 the result could not be written; 2 invalid command line or no such run;\n"
               "3 the history could not be read.\n",
    .examples = "  tare history --command train.py --since 7d\n"
                "  tare history show last\n"
                "  tare history trend step run.peak_rss\n"
                "  tare history trend --html -o trends.html --command train.py\n"
                "  tare history compare last\n"
                "  tare history compare 3f2a91c last\n"
                "  tare history tag last release-1.2\n"
                "  tare history prune --older-than 90d --dry-run\n"
                "  tare history export -o runs.jsonl\n",
    .options = options,
    .option_count = TARE__COUNT_OF(options),
    .settings = TARE__SETTINGS_SHOWING,
    .take = take,
    .main = history_main,
};
