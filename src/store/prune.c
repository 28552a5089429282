/* prune: removes old runs from a history, and texts that no other run uses. One transaction.
 * Owned by the calling thread.
 * Must not know what kind of database it is. */
#include <stdint.h>

#include "inner.h"

/* Runs are counted in the order in which they are listed. The last one that is kept is run `keep`; later ones are
 * removed. */
#define CHOSEN                                                                                               \
    " FROM tare_run WHERE (started < $1 OR seq IN (SELECT seq FROM tare_run ORDER BY started DESC, seq DESC" \
    " LIMIT " MOST " OFFSET $2))"
#define MOST     "9223372036854775807"
#define UNTAGGED " AND seq NOT IN (SELECT run FROM tare_tag)"

int tare__store_prune_runs(tare__store *store, const tare__store_prune *what, bool dry, uint64_t *removed,
                           tare__error *error)
{
    static const char *const statements[][2] = {
        {"DELETE FROM tare_figure WHERE run IN (SELECT seq" CHOSEN UNTAGGED ")",
         "DELETE FROM tare_figure WHERE run IN (SELECT seq" CHOSEN ")"},
        {"DELETE" CHOSEN UNTAGGED, "DELETE" CHOSEN},
    };
    const tare__sql_value values[] = {
        tare__sql_integer((int64_t)what->before_ns),
        tare__sql_integer(what->keep > INT64_MAX ? INT64_MAX : (int64_t)what->keep)};
    int64_t n = 0;
    bool mine;
    if (dry) {
        int status = tare__store_run(
            store, what->tagged ? "SELECT count(*)" CHOSEN : "SELECT count(*)" CHOSEN UNTAGGED, values, 2,
            tare__sql_take_integer, &n, NULL, error);
        *removed = (uint64_t)n;
        return status;
    }
    int status = tare__store_enter(store, true, &mine, error);
    if (status)
        return status;
    for (int i = 0; i < 2 && !status; i++)
        status = tare__store_run(store, statements[i][what->tagged], values, 2, NULL, NULL, &n, error);
    static const char *const rest[] = {
        "DELETE FROM tare_tag WHERE run NOT IN (SELECT seq FROM tare_run)",
        "DELETE FROM tare_text WHERE id NOT IN (SELECT tag FROM tare_tag UNION"
        " SELECT name FROM tare_figure UNION SELECT unit FROM tare_figure WHERE unit IS NOT NULL UNION"
        " SELECT per FROM tare_figure WHERE per IS NOT NULL UNION"
        " SELECT kind FROM tare_run WHERE kind IS NOT NULL UNION"
        " SELECT command FROM tare_run WHERE command IS NOT NULL UNION"
        " SELECT directory FROM tare_run WHERE directory IS NOT NULL UNION"
        " SELECT host FROM tare_run WHERE host IS NOT NULL UNION"
        " SELECT machine FROM tare_run WHERE machine IS NOT NULL UNION"
        " SELECT cpu FROM tare_run WHERE cpu IS NOT NULL UNION"
        " SELECT revision FROM tare_run WHERE revision IS NOT NULL)"};
    for (size_t i = 0; i < TARE__COUNT_OF(rest) && !status && n > 0; i++)
        status = tare__store_run(store, rest[i], NULL, 0, NULL, NULL, NULL, error);
    *removed = (uint64_t)n;
    return tare__store_leave(store, mine, status, error);
}
