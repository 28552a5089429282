/* stacks_imports: time of imports by module, from sampled stacks: code of a module that the import system executes, and
 * everything that it calls.
 * Owned by the thread that analyzes.
 * Must not know how stacks are sampled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampled.h"

#define ROWS_MAX 1000u /* those with most time */

typedef struct importing {
    const sampled_nodes *from;
    uint32_t *import_of; /* by node: the innermost node that executes a module, itself included; 0: none */
    double *self_ns;     /* by such a node */
    uint64_t *samples;
    bool *inside;        /* … is imported by a module of the same top-level package */
    uint32_t *row_of;    /* by function: number of its row; 0: none yet */
    tare__sampled_import_row *rows; /* by module */
    size_t n, room;
    tare__intern *names;
    tare__arena *arena;
} importing;

/* ---- the name of a module ------------------------------------------------------------------------------------ */
/* Where the module's path begins; of own code: the file name. */
static const char *path_of(const char *file)
{
    const char *module = tare__module_path(file, NULL);
    return module ? module : tare__base_name(file);
}

/* ".../site-packages/pandas/core/frame.py": pandas.core.frame; "<frozen os>": os; a package: without __init__. */
static void name_module(const char *file, char *out, size_t room)
{
    static const char frozen[] = "<frozen ", init[] = ".__init__";
    const char *from = strncmp(file, frozen, sizeof frozen - 1) == 0 ? file + sizeof frozen - 1 : path_of(file);
    size_t n = strcspn(from, ">");
    n = n > 3 && memcmp(from + n - 3, ".py", 3) == 0 ? n - 3 : n;
    n = n < room - 1 ? n : room - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = from[i] == '/' ? '.' : from[i];
    out[n] = '\0';
    if (n > sizeof init - 1 && strcmp(out + n - (sizeof init - 1), init) == 0)
        out[n - (sizeof init - 1)] = '\0';
    else if (strcmp(out, init + 1) == 0) { /* a package of the program: the folder's name is not part of the name */
        const char *end = from > file ? from - 1 : file, *begin = end;
        while (begin > file && begin[-1] != '/')
            begin--;
        snprintf(out, room, "%.*s", (int)(end - begin), begin);
    }
}

/* ---- which nodes execute a module ------------------------------------------------------------------------------ */
static const char importing_file[] = "<frozen importlib._bootstrap"; /* and _bootstrap_external */

static bool is_import(const sampled_nodes *from, uint32_t node)
{
    const sampled_function *function = &from->functions[from->nodes[node].function];
    if (function->kind != TARE__FRAME_PYTHON || !function->file || strcmp(function->name, "<module>") != 0)
        return false;
    uint32_t caller = from->nodes[node].caller;
    while (caller && from->functions[from->nodes[caller].function].kind != TARE__FRAME_PYTHON)
        caller = from->nodes[caller].caller;
    const sampled_function *above = &from->functions[from->nodes[caller].function];
    return caller && above->file && strncmp(above->file, importing_file, sizeof importing_file - 1) == 0;
}

/* NULL: out of memory. */
static tare__sampled_import_row *row_of(importing *to, uint32_t node)
{
    uint32_t number = to->from->nodes[node].function;
    const sampled_function *function = &to->from->functions[number];
    if (to->row_of[number])
        return &to->rows[to->row_of[number] - 1];
    uint32_t id = tare__intern_add(to->names, function->file, strlen(function->file));
    if (id == TARE__INTERN_NONE || !tare__array_fit(&to->rows, &to->room, (size_t)id + 1, sizeof *to->rows))
        return NULL;
    if (id >= to->n) {
        char name[300];
        name_module(function->file, name, sizeof name);
        const char *package =
            function->package == TARE__NO_ROW ? NULL : to->from->packages[function->package].name;
        to->rows[to->n++] = (tare__sampled_import_row){
            .module = copied(to->arena, name), .file = function->file, .package = package};
    }
    to->row_of[number] = id + 1;
    return to->rows[id].module ? &to->rows[id] : NULL;
}

static bool is_same_package(const char *module, const char *other)
{
    size_t n = strcspn(module, ".");
    return strncmp(module, other, n) == 0 && (other[n] == '.' || other[n] == '\0');
}

static uint32_t import_around(const importing *to, uint32_t node)
{
    return to->import_of[to->from->nodes[node].caller];
}

/* Whether a module of the same top-level package is being imported around this import. False: out of memory. */
static bool find_outer(importing *to, uint32_t node)
{
    const tare__sampled_import_row *row = row_of(to, node);
    const char *module = row ? row->module : NULL; /* rows may move */
    for (uint32_t at = import_around(to, node); at && module && !to->inside[node]; at = import_around(to, at)) {
        const tare__sampled_import_row *outer = row_of(to, at);
        if (!outer)
            return false;
        to->inside[node] = is_same_package(module, outer->module);
    }
    return module != NULL;
}

/* An import inside of another one counts for both totals. */
static bool add_up(importing *to)
{
    for (uint32_t i = 1; i < to->from->n; i++)
        if (to->import_of[i] == i && !find_outer(to, i))
            return false;
    for (uint32_t i = 1; i < to->from->n; i++) {
        if (to->import_of[i] != i || !to->samples[i])
            continue;
        for (uint32_t at = i; at; at = import_around(to, at)) {
            tare__sampled_import_row *row = row_of(to, at);
            row->samples += at == i ? to->samples[i] : 0;
            row->self_ns += at == i ? to->self_ns[i] : 0;
            row->total_ns += to->self_ns[i];
            row->outer_ns += to->inside[at] ? 0 : to->self_ns[i];
        }
    }
    return true;
}

TARE__ORDER(by_total, tare__sampled_import_row, TARE__FALLING(total_ns) TARE__FALLING(self_ns) TARE__BY_TEXT(file))

static bool fill(importing *to, const sampled *sampled)
{
    const sampled_nodes *from = to->from;
    for (uint32_t i = 1; i < from->n; i++) /* callers have smaller numbers */
        to->import_of[i] = is_import(from, i) ? i : to->import_of[from->nodes[i].caller];
    for (size_t i = 0; i < sampled->n_cells; i++) {
        uint32_t at = to->import_of[sampled->cells[i].node];
        to->self_ns[at] += sampled->cells[i].wall_ns;
        to->samples[at] += sampled->cells[i].samples;
    }
    return add_up(to);
}

int tare__analyze_sampled_imports(const sampled *sampled, const sampled_nodes *nodes, tare__analysis *analysis)
{
    importing to = {.from = nodes, .arena = analysis->arena, .names = tare__intern_new()};
    to.import_of = calloc(nodes->n, sizeof *to.import_of);
    to.self_ns = calloc(nodes->n, sizeof *to.self_ns);
    to.samples = calloc(nodes->n, sizeof *to.samples);
    to.inside = calloc(nodes->n, sizeof *to.inside);
    to.row_of = calloc(nodes->n_functions + 1, sizeof *to.row_of);
    bool fine = to.names && to.import_of && to.self_ns && to.samples && to.inside && to.row_of &&
                fill(&to, sampled);
    if (fine && to.n)
        qsort(to.rows, to.n, sizeof *to.rows, by_total);
    size_t n = to.n < ROWS_MAX ? to.n : ROWS_MAX;
    tare__sampled_import_row *rows = fine ? tare__arena_alloc(analysis->arena, (n + 1) * sizeof *rows) : NULL;
    if (rows && n)
        memcpy(rows, to.rows, n * sizeof *rows);
    analysis->sampled_imports = rows;
    analysis->n_sampled_imports = rows ? n : 0;
    tare__intern_free(to.names);
    free(to.import_of);
    free(to.self_ns);
    free(to.samples);
    free(to.inside);
    free(to.row_of);
    free(to.rows);
    return rows ? 0 : TARE_E_MEMORY;
}
