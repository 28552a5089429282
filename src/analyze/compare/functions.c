/* functions: functions of sampled stacks in two runs, by the change of their share of active time.
 * Owned by the calling thread.
 * Must not know how stacks are sampled. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "compare.h"

#define LEAST 0.0025 /* a smaller change is not listed: a sample more or less */

#define SIZE_OF_CHANGE(row) fabs((row)->change)
TARE__ORDER(by_change, tare__compared_function, TARE__FALLING_BY(SIZE_OF_CHANGE) TARE__BY_TEXT(function)
            TARE__BY_TEXT(file))

/* The same function in the same file, wherever that is installed. False: out of memory. */
static bool add(tare__compared_function *rows, size_t *n, tare__intern *names, const tare__analysis *of, bool head)
{
    tare__text key = {0};
    bool fits = true;
    for (size_t i = 0; i < of->n_functions && fits; i++) {
        const tare__function_row *row = &of->functions[i];
        const char *file = tare__base_name(row->file ? row->file : "");
        if (!(row->self_share > 0))
            continue;
        tare__text_clear(&key);
        tare__text_format(&key, "%s\n%s", row->function, file);
        uint32_t at = key.failed ? TARE__INTERN_NONE : tare__intern_add(names, key.data, key.length);
        fits = at != TARE__INTERN_NONE;
        if (!fits)
            break;
        if (at == *n)
            rows[(*n)++] = (tare__compared_function){row->function, file, 0, 0, 0};
        *(head ? &rows[at].head : &rows[at].base) += row->self_share;
    }
    tare__text_free(&key);
    return fits;
}

int tare__compare_functions(tare__comparison *to, const tare__analysis *base, const tare__analysis *head)
{
    tare__compared_function *rows =
        tare__arena_alloc(to->arena, (base->n_functions + head->n_functions + 1) * sizeof *rows);
    tare__intern *names = tare__intern_new();
    size_t n = 0, kept = 0;
    bool fits = rows && names && add(rows, &n, names, base, false) && add(rows, &n, names, head, true);
    tare__intern_free(names);
    if (!fits)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        rows[i].change = rows[i].head - rows[i].base;
        if (fabs(rows[i].change) >= LEAST)
            rows[kept++] = rows[i];
    }
    qsort(rows, kept, sizeof *rows, by_change);
    to->functions = rows;
    to->n_functions = kept;
    return 0;
}
