/* compare functions: functions of sampled stacks in two runs, by the change of their share of active time.
 * Owned by the calling thread.
 * Must not know how stacks are sampled. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit/emit.h"
#include "emit/plain.h"

#define ROWS  12
#define LEAST 0.0025 /* a smaller change is not listed */

typedef struct both { /* a function in two runs: shares of active time by itself */
    const tare__function_row *row;
    double before, after;
} both;

static int by_change(const void *a, const void *b)
{
    const both *x = a, *y = b;
    double left = fabs(x->after - x->before), right = fabs(y->after - y->before);
    if (left != right)
        return left > right ? -1 : 1;
    return strcmp(x->row->function, y->row->function);
}

/* False: out of memory. */
static bool add(both *rows, size_t *n, tare__intern *names, const tare__analysis *of, bool after)
{
    tare__text key = {0};
    bool fits = true;
    for (size_t i = 0; i < of->n_functions && fits; i++) {
        const tare__function_row *row = &of->functions[i];
        tare__text_clear(&key);
        const char *file = row->file ? row->file : "", *slash = strrchr(file, '/');
        tare__text_format(&key, "%s\n%s", row->function, slash ? slash + 1 : file);
        uint32_t at = key.failed ? TARE__INTERN_NONE : tare__intern_add(names, key.data, key.length);
        fits = at != TARE__INTERN_NONE;
        if (!fits || !(row->self_share > 0))
            continue;
        while (*n <= at)
            rows[(*n)++] = (both){NULL, 0, 0};
        rows[at].row = rows[at].row ? rows[at].row : row;
        *(after ? &rows[at].after : &rows[at].before) += row->self_share;
    }
    tare__text_free(&key);
    return fits;
}

static void put_row(tare__text *out, const both *of)
{
    char before[TARE__UNIT_BYTES], after[TARE__UNIT_BYTES], change[32];
    const char *file = of->row->file ? of->row->file : "", *slash = strrchr(file, '/');
    tare__text_double(change, sizeof change, 'f', 1, 100 * (of->after - of->before));
    tare__text_string(out, "<tr><th scope=\"row\" class=\"name\">");
    tare__plain_text(out, of->row->function);
    tare__text_string(out, "</th><td class=\"words\">");
    tare__plain_text(out, slash ? slash + 1 : file);
    tare__text_string(out, "</td><td>");
    tare__plain_text(out, tare__unit_percent(before, of->before));
    tare__text_string(out, "</td><td>");
    tare__plain_text(out, tare__unit_percent(after, of->after));
    tare__text_format(out, "</td><td>%s%s</td></tr>\n", of->after > of->before ? "+" : "", change);
}

static void put_rows(tare__text *out, const both *rows, size_t n)
{
    size_t shown = 0;
    tare__text_string(out, "<h3>Functions whose share changed most</h3>\n");
    tare__plain_table(out, "Functions whose share changed most", false, true);
    tare__text_string(out, "<th scope=\"col\" class=\"name\">Function</th><th scope=\"col\" class=\"words\">File</th>"
                           "<th scope=\"col\">Baseline (self)</th><th scope=\"col\">Candidate (self)</th>"
                           "<th scope=\"col\">Change, points</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < n && shown < ROWS; i++)
        if (rows[i].row && fabs(rows[i].after - rows[i].before) >= LEAST) {
            put_row(out, &rows[i]);
            shown++;
        }
    tare__plain_table_end(out);
}

bool tare__compared_functions(tare__text *out, const tare__analysis *base, const tare__analysis *head)
{
    both *rows = calloc(base->n_functions + head->n_functions + 1, sizeof *rows);
    tare__intern *names = tare__intern_new();
    size_t n = 0, known = 0;
    bool fits = rows && names && add(rows, &n, names, head, true) && add(rows, &n, names, base, false);
    for (size_t i = 0; fits && i < n; i++)
        if (rows[i].row)
            rows[known++] = rows[i];
    if (fits && known)
        qsort(rows, known, sizeof *rows, by_change);
    if (fits && known && fabs(rows[0].after - rows[0].before) >= LEAST)
        put_rows(out, rows, known);
    tare__intern_free(names);
    free(rows);
    return fits;
}
