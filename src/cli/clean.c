/* clean: `tare clean`: removes the session folders that killed recordings left behind.
 * One thread. The only command that removes them at a user's word; reading a trace never does.
 * Must not know what is in a session. */
#define _GNU_SOURCE
#include "cli.h"

#include <stdio.h>

#include "collect/collect.h"
#include "tare.h"

#define CLEAN "tare clean"

enum { CLEAN_ALL = 1, CLEAN_DRY_RUN };

static const tare__cli_option clean_options[] = {
    {"all", 0, NULL, "remove unsaved and damaged sessions as well: what they hold is lost", CLEAN_ALL},
    {"dry-run", 0, NULL, "show what would be removed; remove nothing", CLEAN_DRY_RUN},
};

typedef struct clean_settings {
    bool all, dry_run;
    tare__text out;
    unsigned failed;
} clean_settings;

static int take_clean_option(void *context, int key, const char *argument, tare__error *error)
{
    clean_settings *settings = context;
    (void)argument, (void)error;
    if (key == CLEAN_ALL)
        settings->all = true;
    else
        settings->dry_run = true;
    return 0;
}

static void clean_one(void *context, const tare__leftover *left)
{
    clean_settings *settings = context;
    char bytes[TARE__UNIT_BYTES], path[2048], trace[2048], why[512];
    tare__unit_bytes(bytes, (double)left->bytes);
    tare__text_fit(path, sizeof path - 1, left->path, sizeof path);
    tare__text_fit(why, sizeof why - 1, left->why, sizeof why);
    tare__text_fit(trace, sizeof trace - 1, left->trace, sizeof trace);
    if (left->state == TARE__LEFTOVER_ALIVE) {
        tare__text_format(&settings->out, "kept %s (%s): a recorded process still runs\n", path, bytes);
        return;
    }
    if (left->state == TARE__LEFTOVER_UNSAVED && !settings->all) {
        tare__text_format(&settings->out,
                          "kept %s (%s): not saved yet; `tare report %s` saves it, --all removes it\n", path, bytes,
                          path);
        return;
    }
    if (left->state == TARE__LEFTOVER_PART) {
        tare__text_format(&settings->out,
                          "kept %s (%s): it has no session file: a part of a session in another place, perhaps; if none "
                          "runs, remove it by hand\n",
                          path, bytes);
        return;
    }
    if (left->state == TARE__LEFTOVER_DAMAGED && !settings->all) {
        tare__text_format(&settings->out, "kept %s (%s): damaged, nothing can be saved: %s; --all removes it\n", path,
                          bytes, why);
        return;
    }
    bool saved = left->state == TARE__LEFTOVER_SAVED;
    if (!(settings->dry_run ? tare__leftover_removable : tare__leftover_remove)(left)) {
        tare__cli_say(CLEAN, "cannot remove %s: it holds files that are no session's", left->path);
        settings->failed++;
        return;
    }
    tare__text_format(&settings->out, "%s %s (%s): %s%s\n", settings->dry_run ? "would remove" : "removed", path,
                      bytes, saved ? "saved in " : why[0] ? "damaged: " : "not saved", saved ? trace : why);
}

static int clean_main(int argc, char **argv)
{
    clean_settings settings = {0};
    tare__cli_words words;
    tare__error error = {""};
    int status = tare__cli_parse(&tare__cli_clean, argc, argv, &settings, &words, &error);
    if (!status && words.help)
        return tare__cli_print_help(&tare__cli_clean);
    if (!status && (words.count || words.rest))
        status = tare__fail(&error, TARE_E_USAGE, "it takes no names: every session folder of this user is looked at");
    if (status)
        return tare__cli_usage(CLEAN, &error);
    tare__leftovers_visit(clean_one, &settings);
    if (settings.out.length == 0 && !settings.failed)
        tare__text_string(&settings.out, "no session folders are left\n");
    int exit_status = tare__cli_print(&settings.out);
    tare__text_free(&settings.out);
    return settings.failed ? TARE__EXIT_FAILED : exit_status;
}

const tare__cli_command tare__cli_clean = {
    .name = "clean",
    .summary = "removes session folders that killed recordings left behind",
    .usage = "[options]",
    .details = "A recording that was killed leaves its session folder, in /dev/shm or a temporary\n"
               "folder, until its data are saved by `tare report`. Removed are folders of this user\n"
               "whose data are in a trace. Exit status: 0; 1 a folder could not be removed;\n"
               "2 this command line was wrong.\n",
    .examples = "  tare clean --dry-run\n"
                "  tare clean\n",
    .options = clean_options,
    .option_count = TARE__COUNT_OF(clean_options),
    .take = take_clean_option,
    .main = clean_main,
};
