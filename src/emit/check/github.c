/* check github: a check as workflow commands, which GitHub Actions shows as annotations.
 * Owned by the calling thread.
 * Must not know how a check is made. */
#include "check.h"

#include "emit/escape.h"

#define ANNOTATIONS_MAX 10 /* of each kind that GitHub shows for one step */

static void put(tare__text *out, const char *level, const char *title, const char *message)
{
    tare__text_format(out, "::%s title=", level);
    tare__escape_github(out, title, true);
    tare__text_string(out, "::");
    tare__escape_github(out, message, false);
    tare__text_string(out, "\n");
}

static void put_rows(const tare__check *check, tare__outcome outcome, const char *level, const char *title,
                     tare__text *out)
{
    size_t reported = 0;
    for (size_t i = 0; i < check->n && reported < ANNOTATIONS_MAX; i++) {
        tare__text sentence = {0};
        if (check->rows[i].outcome != outcome)
            continue;
        tare__check_sentence(&check->rows[i], &sentence);
        put(out, level, title, sentence.data ? sentence.data : "");
        tare__text_end(&sentence, out);
        reported++;
    }
}

void tare__emit_check_github(const tare__check *check, const tare__check_names *names, tare__text *out)
{
    tare__text summary = {0};
    tare__check_summary(check, &summary);
    put_rows(check, TARE__OUTCOME_FAILED, "error", "tare check: failed", out);
    put_rows(check, TARE__OUTCOME_INCONCLUSIVE, "warning", "tare check: inconclusive", out);
    for (size_t i = 0; i < check->n_warnings; i++)
        put(out, "warning", "tare check", check->warnings[i]);
    bool silent =
        !tare__check_passed(check) && !check->count[TARE__OUTCOME_FAILED]; /* no row states why it failed */
    put(out, silent ? "error" : "notice", names->head, summary.data ? summary.data : "");
    tare__text_end(&summary, out);
}
