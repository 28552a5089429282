/* stacks_tables: functions, lines and packages of sampled stacks: self times from the cells, totals from the call tree.
 * Owned by the thread that analyzes.
 * Must not know files, or how rows are displayed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampled.h"

#define FUNCTIONS_MAX 4000u /* smaller ones are merged into one row */
#define LINES_MAX     4000u

static const char merged[] = "(other)";

typedef struct inner { /* time of a line of own code in one innermost function */
    uint32_t line, function;
    double wall_ns;
} inner;

typedef struct tables {
    const sampled_nodes *from;
    tare__function_row *functions;
    tare__line_row *lines;
    tare__package_row *packages;
    double *total_ns, *active_ns; /* of nodes, with those below */
    double *outside_ns; /* of functions: of the leading thread without a line of own code */
    inner *inner;
    size_t n_inner, inner_room;
    tare__index inner_index;
    /* the walk for totals */
    uint32_t *child, *next;       /* of nodes; 0: none */
    uint32_t *function_open, *line_open, *package_open; /* frames of each on the path */
} tables;

/* ---- self times ---------------------------------------------------------------------------------------------- */
typedef struct portion { /* of the time of a cell */
    tare__state_times of;
    double wall_ns, active_ns;
    uint64_t samples;
    bool leading;
} portion;

static void add_times(tare__state_times *to, const tare__state_times *more)
{
    for (uint32_t i = 0; i < TARE__STATE_COUNT; i++)
        to->ns[i] += more->ns[i];
}

static void add_line(tare__line_row *row, const portion *of)
{
    row->samples += of->samples;
    row->active_ns += of->active_ns;
    add_times(&row->of, &of->of);
    if (of->leading) {
        add_times(&row->main, &of->of);
        row->main_ns += of->wall_ns;
    }
}

TARE__SAME(is_inner, inner, TARE__EQUAL(line) && TARE__EQUAL(function))

static bool add_inner(tables *to, uint32_t line, uint32_t function, double wall_ns)
{
    inner key = {line, function, 0};
    uint32_t hash = (uint32_t)tare__hash_mix(tare__hash_mix(line, function), 2);
    uint32_t row = tare__index_find(&to->inner_index, hash, is_inner, to->inner, &key);
    if (row == TARE__INDEX_NONE) {
        row = (uint32_t)to->n_inner;
        if (!tare__array_fit(&to->inner, &to->inner_room, to->n_inner + 1, sizeof *to->inner) ||
            !tare__index_add(&to->inner_index, hash, row))
            return false;
        to->inner[to->n_inner++] = key;
    }
    to->inner[row].wall_ns += wall_ns;
    return true;
}

/* A line of own code has the time of everything that it calls, any other line only its own. */
static bool add_lines(tables *to, tare__line_row *outside, const sampled_node *node, const portion *of)
{
    if (node->self_line != TARE__NO_ROW) {
        tare__line_row *self = &to->lines[node->self_line];
        self->self_ns += of->wall_ns;
        if (!self->own)
            add_line(self, of);
    }
    if (node->own_line == TARE__NO_ROW) {
        add_line(outside, of);
        to->outside_ns[node->function] += of->leading ? of->wall_ns : 0;
        return true;
    }
    to->lines[node->own_line].own_ns += of->wall_ns;
    add_line(&to->lines[node->own_line], of);
    return add_inner(to, node->own_line, node->function, of->wall_ns);
}

static void add_function(tare__function_row *row, const portion *of)
{
    row->samples += of->samples;
    row->self_ns += of->wall_ns;
    row->main_ns += of->leading ? of->wall_ns : 0;
    row->active_ns += of->active_ns;
    add_times(&row->of, &of->of);
}

static void add_package(tare__package_row *row, const portion *of)
{
    row->samples += of->samples;
    row->self_ns += of->wall_ns;
    row->main_ns += of->leading ? of->wall_ns : 0;
    row->active_ns += of->active_ns;
    add_times(&row->of, &of->of);
}

static bool add_cells(tables *to, const sampled *sampled, tare__analysis *analysis)
{
    const tare__sampled_thread_row *threads = analysis->sampled_threads;
    sampled_split split = {0};
    for (size_t i = 0; i < sampled->n_cells; i++) {
        const sampled_cell *cell = &sampled->cells[i];
        const sampled_thread *thread = &sampled->threads[cell->thread];
        const sampled_node *node = &to->from->nodes[cell->node];
        portion of = {.wall_ns = cell->wall_ns, .samples = cell->samples, .leading = threads[thread->row].leading};
        if (!i || cell[-1].thread != cell->thread)
            split = tare__analyze_sampled_split(thread);
        tare__analyze_sampled_times(&split, cell->state, cell->wall_ns, cell->cpu_ns, &of.of);
        of.active_ns = of.leading ? of.wall_ns : tare__analyze_active(&of.of);
        to->total_ns[cell->node] += of.wall_ns;
        to->active_ns[cell->node] += of.active_ns;
        add_function(&to->functions[node->function], &of);
        if (node->package != TARE__NO_ROW)
            add_package(&to->packages[node->package], &of);
        if (!add_lines(to, &analysis->stacks.outside, node, &of))
            return false;
    }
    return true;
}

/* ---- totals: a walk through the tree that counts what is open ------------------------------------------------- */
static void open_node(tables *to, uint32_t at)
{
    const sampled_node *node = &to->from->nodes[at];
    if (!to->function_open[node->function]++) {
        to->functions[node->function].total_ns += to->total_ns[at];
        to->functions[node->function].active_total_ns += to->active_ns[at];
    }
    if (node->line_row != TARE__NO_ROW && !to->line_open[node->line_row]++)
        to->lines[node->line_row].total_ns += to->total_ns[at];
    if (node->package != TARE__NO_ROW && !to->package_open[node->package]++)
        to->packages[node->package].total_ns += to->total_ns[at];
}

static void close_node(tables *to, uint32_t at)
{
    const sampled_node *node = &to->from->nodes[at];
    to->function_open[node->function]--;
    if (node->line_row != TARE__NO_ROW)
        to->line_open[node->line_row]--;
    if (node->package != TARE__NO_ROW)
        to->package_open[node->package]--;
}

/* A caller has a smaller number than what it calls. Node 0, samples without a stack, is the root. */
static void add_totals(tables *to)
{
    const sampled_nodes *from = to->from;
    to->functions[0].total_ns = to->total_ns[0];
    to->functions[0].active_total_ns = to->active_ns[0];
    for (size_t i = from->n; i-- > 1;) {
        uint32_t caller = from->nodes[i].caller;
        to->total_ns[caller] += caller ? to->total_ns[i] : 0;
        to->active_ns[caller] += caller ? to->active_ns[i] : 0;
        to->next[i] = to->child[caller];
        to->child[caller] = (uint32_t)i;
    }
    for (uint32_t at = to->child[0]; at;) {
        open_node(to, at);
        if (to->child[at]) {
            at = to->child[at];
            continue;
        }
        while (at && !to->next[at]) {
            close_node(to, at);
            at = from->nodes[at].caller;
        }
        if (at) {
            close_node(to, at);
            at = to->next[at];
        }
    }
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */
static const char *origin_word(sampled_origin origin)
{
    static const char *const words[] = {[ORIGIN_NONE] = "other",      [ORIGIN_OWN] = "own",
                                        [ORIGIN_STANDARD] = "standard library", [ORIGIN_PACKAGE] = "package",
                                        [ORIGIN_NATIVE] = "native",   [ORIGIN_NOTE] = "note"};
    return words[origin];
}

static const char *package_name(const sampled_nodes *from, uint32_t package)
{
    return package == TARE__NO_ROW ? NULL : from->packages[package].name;
}

static void name_rows(tables *to)
{
    const sampled_nodes *from = to->from;
    for (size_t i = 0; i < from->n_functions; i++) {
        const sampled_function *function = &from->functions[i];
        to->functions[i] = (tare__function_row){.function = function->name,
                                                .file = function->file,
                                                .line = function->first_line,
                                                .kind = function->kind,
                                                .package = package_name(from, function->package),
                                                .own = function->own};
    }
    for (size_t i = 0; i < from->n_lines; i++) {
        const sampled_function *function = &from->functions[from->lines[i].function];
        to->lines[i] = (tare__line_row){.file = function->file,
                                        .line = from->lines[i].line,
                                        .function = function->name,
                                        .package = package_name(from, function->package),
                                        .own = function->own,
                                        .own_ns = function->own ? 0 : NAN,
                                        .inner_ns = NAN};
    }
    for (size_t i = 0; i < from->n_packages; i++)
        to->packages[i] = (tare__package_row){.package = from->packages[i].name,
                                              .kind = origin_word(from->packages[i].origin)};
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

/* The innermost function of most of a line's time. One of own code is the line's own function: what it calls in own
 * code has lines of its own. */
static void name_inner(tables *to)
{
    const sampled_nodes *from = to->from;
    for (size_t i = 0; i < to->n_inner; i++) {
        const inner *at = &to->inner[i];
        tare__line_row *row = &to->lines[at->line];
        if (at->wall_ns > (isnan(row->inner_ns) ? 0 : row->inner_ns)) {
            const sampled_function *function = &from->functions[at->function];
            row->inner = function->own ? NULL : function->name;
            row->inner_file = function->own ? NULL : function->file;
            row->inner_line = function->own ? 0 : function->first_line;
            row->inner_ns = at->wall_ns;
        }
    }
    for (size_t i = 0; i < from->n_lines; i++)
        if (!to->lines[i].inner)
            to->lines[i].inner_ns = NAN;
}

/* The exit of the interpreter, its start, and threads that run libraries only. */
static void name_outside(const tables *to, tare__line_row *outside)
{
    const sampled_nodes *from = to->from;
    outside->own_ns = outside->main_ns;
    for (size_t i = 0; i < from->n_functions; i++) {
        if (!(to->outside_ns[i] > (outside->inner ? outside->inner_ns : 0)))
            continue;
        outside->inner = from->functions[i].name;
        outside->inner_file = from->functions[i].file;
        outside->inner_line = from->functions[i].first_line;
        outside->inner_ns = to->outside_ns[i];
    }
}

static void add_shares(tables *to, tare__analysis *analysis)
{
    const sampled_nodes *from = to->from;
    tare__stack_tree *tree = &analysis->stacks;
    double all = tree->active_ns;
    double leading = tree->leading == TARE__NO_ROW ? NAN : analysis->sampled_threads[tree->leading].wall_ns;
    for (size_t i = 0; i < from->n_functions; i++) {
        tare__function_row *row = &to->functions[i];
        row->self_share = share(row->active_ns, all);
        row->total_share = share(row->active_total_ns, all);
    }
    for (size_t i = 0; i < from->n_lines; i++) {
        to->lines[i].share = share(to->lines[i].active_ns, all);
        to->lines[i].main_share = share(to->lines[i].main_ns, leading);
    }
    tree->outside.main_share = share(tree->outside.main_ns, leading);
    for (size_t i = 0; i < from->n_packages; i++) {
        to->packages[i].share = share(to->packages[i].active_ns, all);
        to->packages[i].main_share = share(to->packages[i].main_ns, leading);
    }
}

/* ---- order, and rows beyond the maximum ------------------------------------------------------------------------- */
#define BY_TIME TARE__FALLING(self_ns) TARE__FALLING(total_ns)
#define BY_PLACE TARE__BY_TEXT_IF_ANY(file) TARE__RISING(line) TARE__BY_TEXT_IF_ANY(function)

TARE__ORDER(function_order, tare__function_row, TARE__FALLING(active_ns) BY_TIME BY_PLACE)

TARE__ORDER(line_order, tare__line_row, TARE__FALLING(active_ns) TARE__FALLING(own) TARE__FALLING(main_ns) BY_TIME
            BY_PLACE)

TARE__ORDER(package_order, tare__package_row, TARE__FALLING(active_ns) BY_TIME TARE__BY_TEXT_IF_ANY(package))

/* The total of merged rows is not known: they may call each other. */
static size_t merge_functions(tare__function_row *rows, size_t n, double all)
{
    if (n <= FUNCTIONS_MAX)
        return n;
    tare__function_row *last = &rows[FUNCTIONS_MAX - 1];
    for (size_t i = FUNCTIONS_MAX; i < n; i++) {
        const portion of = {rows[i].of, rows[i].self_ns, rows[i].active_ns, rows[i].samples, false};
        add_function(last, &of);
        last->main_ns += rows[i].main_ns;
    }
    last->function = merged;
    last->file = last->package = NULL;
    last->line = 0;
    last->kind = TARE__FRAME_NOTE;
    last->own = false;
    last->total_ns = last->active_total_ns = last->total_share = NAN;
    last->self_share = share(last->active_ns, all);
    return FUNCTIONS_MAX;
}

/* Lines are dropped: their time is in the table of functions. */
static size_t cut_lines(size_t n)
{
    return n < LINES_MAX ? n : LINES_MAX;
}

/* Libraries that always count as their caller are last. */
static size_t used_packages(const tare__package_row *rows, size_t n)
{
    while (n > 0 && !rows[n - 1].samples && !(rows[n - 1].total_ns > 0))
        n--;
    return n;
}

static void sort_rows(tables *to, tare__analysis *analysis)
{
    const sampled_nodes *from = to->from;
    bool stacks = to->functions[0].samples == 0; /* the first is for samples without a stack */
    tare__function_row *functions = to->functions + stacks;
    size_t n = from->n_functions - stacks;
    if (n)
        qsort(functions, n, sizeof *functions, function_order);
    if (from->n_lines)
        qsort(to->lines, from->n_lines, sizeof *to->lines, line_order);
    if (from->n_packages)
        qsort(to->packages, from->n_packages, sizeof *to->packages, package_order);
    analysis->functions = functions;
    analysis->n_functions = merge_functions(functions, n, analysis->stacks.active_ns);
    analysis->lines = to->lines;
    analysis->n_lines = cut_lines(from->n_lines);
    analysis->packages = to->packages;
    analysis->n_packages = used_packages(to->packages, from->n_packages);
}

static bool allocate(tables *to, tare__arena *arena)
{
    const sampled_nodes *from = to->from;
    to->functions = tare__arena_alloc(arena, from->n_functions * sizeof *to->functions);
    to->lines = tare__arena_alloc(arena, (from->n_lines + 1) * sizeof *to->lines);
    to->packages = tare__arena_alloc(arena, (from->n_packages + 1) * sizeof *to->packages);
    to->total_ns = calloc(from->n, sizeof *to->total_ns);
    to->active_ns = calloc(from->n, sizeof *to->active_ns);
    to->outside_ns = calloc(from->n_functions, sizeof *to->outside_ns);
    to->child = calloc(from->n, sizeof *to->child);
    to->next = calloc(from->n, sizeof *to->next);
    to->function_open = calloc(from->n_functions, sizeof *to->function_open);
    to->line_open = calloc(from->n_lines + 1, sizeof *to->line_open);
    to->package_open = calloc(from->n_packages + 1, sizeof *to->package_open);
    return to->functions && to->lines && to->packages && to->total_ns && to->active_ns && to->outside_ns && to->child &&
           to->next && to->function_open && to->line_open && to->package_open;
}

int tare__analyze_sampled_tables(const sampled *sampled, const sampled_nodes *nodes, tare__analysis *analysis)
{
    tables to = {.from = nodes};
    bool fine = allocate(&to, analysis->arena);
    if (fine)
        name_rows(&to);
    fine = fine && add_cells(&to, sampled, analysis);
    if (fine) {
        add_totals(&to);
        name_inner(&to);
        name_outside(&to, &analysis->stacks.outside);
        add_shares(&to, analysis);
        sort_rows(&to, analysis);
    }
    tare__index_free(&to.inner_index);
    free(to.inner);
    free(to.total_ns);
    free(to.active_ns);
    free(to.outside_ns);
    free(to.child);
    free(to.next);
    free(to.function_open);
    free(to.line_open);
    free(to.package_open);
    return fine ? 0 : TARE_E_MEMORY;
}
