/* names: maps name ids of the file to names unique by text and kind, so that spans of several processes are merged.
 * Owned by the thread that analyzes.
 * Must not know events. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

static uint32_t id_after_last(const tare__trace_name *rows, size_t n)
{
    uint32_t after = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].id >= after)
            after = rows[i].id + 1;
    return after;
}

/* The canon of a name: text and kind, joined into one key. */
static uint32_t intern_name(tare__intern *table, tare__text *key, const tare__trace_name *name)
{
    char kind[sizeof name->kind];
    memcpy(kind, &name->kind, sizeof kind);
    tare__text_clear(key);
    tare__text_append(key, kind, sizeof kind);
    tare__text_append(key, name->text, name->text_bytes);
    if (key->failed)
        return TARE__INTERN_NONE;
    return tare__intern_add(table, key->data, key->length);
}

/* Numbers with a special meaning for their span. */
static void find_known(canons *names, const char *text, uint32_t canon)
{
    const struct {
        const char *text;
        uint32_t *canon;
    } known[] = {{"index", &names->index},
                 {TARE__NAME_FLOW, &names->flow},
                 {TARE__NAME_OUTER_INDEX, &names->outer_index},
                 {TARE__NAME_PARTIAL, &names->partial},
                 {TARE__NAME_CONTINUES, &names->continues},
                 {TARE__NAME_CONTINUED, &names->continued},
                 {TARE__NAME_SWAP, &names->swap}};
    for (size_t i = 0; i < TARE__COUNT_OF(known); i++)
        if (strcmp(text, known[i].text) == 0)
            *known[i].canon = canon;
}

static int fill(canons *names, const tare__trace_name *rows, size_t n, tare__intern *table, tare__text *key)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t at = intern_name(table, key, &rows[i]);
        if (at == TARE__INTERN_NONE)
            return TARE_E_MEMORY;
        uint32_t canon_at = at + CANON_FIRST;
        names->of_id[rows[i].id] = canon_at;
        if (canon_at < names->n)
            continue;
        names->rows[names->n++] = (canon){rows[i].text, rows[i].file, rows[i].kind, rows[i].line};
        if (rows[i].kind == TARE_KIND_NUMBER)
            find_known(names, rows[i].text, canon_at);
    }
    return 0;
}

int tare__analyze_load_names(canons *names, const tare__trace *trace)
{
    size_t n;
    const tare__trace_name *rows = tare__trace_names(trace, &n);
    tare__intern *table = tare__intern_new();
    tare__text key = {0};
    names->ids = id_after_last(rows, n);
    names->of_id = calloc((size_t)names->ids + 1, sizeof *names->of_id);
    names->rows = calloc(n + CANON_FIRST, sizeof *names->rows);
    int status = TARE_E_MEMORY;
    if (table && names->of_id && names->rows) {
        names->rows[CANON_UNKNOWN] = (canon){"(name lost)", NULL, TARE_KIND_SPAN, 0};
        names->rows[CANON_OTHERS] = (canon){"(others)", NULL, 0, 0};
        names->rows[CANON_THREAD] = (canon){"", NULL, TARE__NAME_TRACK, 0};
        names->rows[CANON_OUTSIDE] = (canon){"(outside steps)", NULL, TARE_KIND_SPAN, 0};
        names->n = CANON_FIRST;
        status = fill(names, rows, n, table, &key);
    }
    tare__text_free(&key);
    tare__intern_free(table);
    return status;
}

void tare__analyze_free_names(canons *names)
{
    free(names->of_id);
    free(names->rows);
}
