/* history_change: the subcommands that change the history: tag, prune. One thread.
 * Must not know how runs are stored. */
#include "history.h"

#include "keep.h"

int tare__history_do_tag(tare__history_call *history, tare__error *error)
{
    tare__kept_list runs;
    const char *const *tags = (const char *const *)history->words + 1;
    size_t n = (size_t)history->n_words - 1;
    for (size_t i = 0; i < n; i++) {
        tare__cli_keeping one = {0};
        if (tare__cli_keep_take_tags(&one, tags[i], error) != 0)
            return TARE__EXIT_USAGE;
    }
    int status = tare__store_find(history->store, history->words[0], &runs, error);
    if (status)
        return tare__history_exit(status);
    status = tare__store_tag(history->store, runs.rows[0].id, tags, n, history->remove, error);
    tare__store_list_free(&runs);
    return tare__history_exit(status);
}

int tare__history_do_prune(tare__history_call *history, tare__error *error)
{
    uint64_t removed = 0;
    char number[TARE__UNIT_BYTES];
    if (history->prune.keep == UINT64_MAX && history->prune.before_ns == 0) {
        tare__fail(error, TARE_E_USAGE, "missing --keep N or --older-than TIME");
        return TARE__EXIT_USAGE;
    }
    int status = tare__store_prune_runs(history->store, &history->prune, history->dry, &removed, error);
    if (status)
        return tare__history_exit(status);
    tare__cli_say(TARE__HISTORY_ME, "%s run%s %s; trace files are not deleted",
                  tare__unit_count(number, (double)removed), removed == 1 ? "" : "s",
                  history->dry ? "would be deleted" : "deleted");
    return TARE__EXIT_OK;
}
