/* clean: `tare clean`: saves the data of killed recordings to their traces, and removes their session folders.
 * One thread. The only command that removes them on request; reading a trace never does.
 * Must not know what is in a session. */
#define _GNU_SOURCE
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "collect/collect.h"

#define CLEAN "tare clean"

typedef struct clean_settings {
    bool all, dry_run;
    const tare__cli_words *words; /* only these folders; empty: all */
    bool *seen;                   /* which of these were found */
    tare__text out;
    unsigned failed;
} clean_settings;

static const tare__cli_option clean_options[] = {
    {"all", 0, NULL, "also remove sessions that cannot be saved; their events are lost",
     TARE__CLI_SETS(clean_settings, all)},
    {"dry-run", 0, NULL, "show what would be done; change nothing", TARE__CLI_SETS(clean_settings, dry_run)},
};

/* PLACE/tare-UID-XXXXXX as listed, possibly with trailing slashes. */
static bool is_wanted(const clean_settings *settings, const char *path)
{
    bool wanted = settings->words->count == 0;
    for (int i = 0; i < settings->words->count; i++) {
        const char *word = settings->words->words[i];
        size_t length = strlen(path);
        if (strncmp(word, path, length) == 0 && strspn(word + length, "/") == strlen(word + length))
            wanted = settings->seen[i] = true;
    }
    return wanted;
}

/* Writes the reason why it is kept; false: it may be removed. */
static bool is_kept(const clean_settings *settings, const tare__leftover *left, const char *why, tare__text *reason)
{
    switch (left->state) {
    case TARE__LEFTOVER_ALIVE: tare__text_string(reason, "a recorded process is still running"); return true;
    case TARE__LEFTOVER_PART:
        tare__text_string(reason,
                          "it has no session file and may belong to another session; if none is running, remove it "
                          "manually");
        return true;
    case TARE__LEFTOVER_DAMAGED:
        tare__text_format(reason, "damaged and cannot be saved: %s; --all removes it", why);
        return !settings->all;
    case TARE__LEFTOVER_UNSAVED:
    case TARE__LEFTOVER_NO_TRACE:
        tare__text_format(reason, "not saved: %s; --all removes it", why);
        return !settings->all;
    case TARE__LEFTOVER_SAVED: break;
    }
    return false;
}

static void clean_one(void *context, const tare__leftover *found)
{
    clean_settings *settings = context;
    static tare__leftover left;
    left = *found;
    char bytes[TARE__UNIT_BYTES], path[2048], trace[2048], why[512];
    tare__error error = {""};
    bool would_save = settings->dry_run && left.state == TARE__LEFTOVER_UNSAVED;
    if (!is_wanted(settings, left.path))
        return;
    if (left.state == TARE__LEFTOVER_UNSAVED && !settings->dry_run)
        tare__leftover_save(&left, &error);
    tare__unit_bytes(bytes, (double)left.bytes);
    tare__text_fit(path, sizeof path - 1, left.path, sizeof path);
    tare__text_fit(why, sizeof why - 1, error.text[0] ? error.text : left.why, sizeof why);
    tare__text_fit(trace, sizeof trace - 1, left.trace, sizeof trace);
    tare__text reason = {0};
    if (!would_save && is_kept(settings, &left, why, &reason)) {
        tare__text_format(&settings->out, "kept %s (%s): %s\n", path, bytes, reason.failed ? "?" : reason.data);
    } else if (!(settings->dry_run ? tare__leftover_removable : tare__leftover_remove)(&left)) {
        tare__cli_say(CLEAN, "cannot remove %s: it contains files that do not belong to a session", left.path);
        settings->failed++;
    } else if (would_save) {
        tare__text_format(&settings->out, "would save %s (%s) to %s and remove it\n", path, bytes, trace);
    } else {
        bool saved = left.state == TARE__LEFTOVER_SAVED;
        tare__text_format(&settings->out, "%s %s (%s): %s%s\n", settings->dry_run ? "would remove" : "removed", path,
                          bytes, saved ? "saved in " : why[0] ? "not saved: " : "not saved", saved ? trace : why);
    }
    tare__text_free(&reason);
}

/* Reports names that are not a session folder of a killed recording. */
static void tell_unseen(clean_settings *settings)
{
    for (int i = 0; i < settings->words->count; i++)
        if (!settings->seen[i]) {
            tare__cli_say(CLEAN, "%s is not the session folder of a killed recording of this user",
                          settings->words->words[i]);
            settings->failed++;
        }
}

static int clean_main(int argc, char **argv)
{
    clean_settings settings = {0};
    tare__cli_words words;
    tare__error error = {""};
    int status = tare__cli_parse(&tare__cli_clean, argc, argv, &settings, &words, &error);
    if (!status && words.help)
        return tare__cli_print_help(&tare__cli_clean);
    settings.words = &words;
    if (!status && words.rest)
        status = tare__fail(&error, TARE_E_USAGE, "unexpected --: tare clean takes folders, not a command");
    if (!status && words.count && !(settings.seen = calloc((size_t)words.count, sizeof *settings.seen))) {
        tare__cli_say(CLEAN, "out of memory");
        return TARE__EXIT_FAILED;
    }
    if (status)
        return tare__cli_usage(CLEAN, &error);
    tare__leftovers_visit(clean_one, &settings);
    tell_unseen(&settings);
    free(settings.seen);
    if (settings.out.length == 0 && !settings.failed)
        tare__text_string(&settings.out, "no session folders found\n");
    int exit_status = tare__cli_print(&settings.out);
    tare__text_free(&settings.out);
    return settings.failed ? TARE__EXIT_FAILED : exit_status;
}

const tare__cli_command tare__cli_clean = {
    .name = "clean",
    .summary = "Save the events of killed recordings and remove their session folders",
    .usage = "[options] [FOLDER...]",
    .details = "A killed recording leaves its session folder in /dev/shm or the temporary directory.\n"
               "Its events are saved to its trace and the folder is removed; a folder whose trace\n"
               "is missing or damaged is kept. Without FOLDER: all folders of this user. Exit\n"
               "status: 0 success; 1 a folder could not be removed; 2 invalid command line.\n",
    .examples = "  tare clean --dry-run\n"
                "  tare clean\n",
    .options = clean_options,
    .option_count = TARE__COUNT_OF(clean_options),
    .main = clean_main,
};
