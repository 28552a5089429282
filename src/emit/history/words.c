/* history words: values, times and revisions as text. Any thread.
 * Must not know the formats. */
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const tare__history_emitter *tare__history_find(const char *name)
{
    static const tare__history_emitter *const all[] = {&tare__history_text, &tare__history_json,
                                                       &tare__history_csv, &tare__history_html};
    for (size_t i = 0; i < TARE__COUNT_OF(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

const char *tare__history_when(char out[TARE__HISTORY_WORD], uint64_t ns, bool seconds)
{
    time_t at = (time_t)(ns / 1000000000u);
    struct tm parts;
    if (ns == 0 || !localtime_r(&at, &parts))
        return strcpy(out, "not known");
    strftime(out, TARE__HISTORY_WORD, seconds ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d %H:%M", &parts);
    return out;
}

const char *tare__history_revision(char out[TARE__HISTORY_WORD], const char *revision, int dirty)
{
    int length = revision ? (int)strcspn(revision, " ") : 0;
    snprintf(out, TARE__HISTORY_WORD, "%.*s%s", length > 7 ? 7 : length, revision ? revision : "",
             dirty == 1 ? "*" : "");
    return out;
}

const char *tare__history_change(char out[TARE__UNIT_BYTES], double before, double after)
{
    return tare__unit_change(out, after == before ? 0 : (after - before) / fabs(before));
}
