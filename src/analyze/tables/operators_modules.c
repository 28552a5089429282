/* operators_modules: the tree of modules, with the operators of each and its time in the backward pass.
 * Owned by the thread that analyzes.
 * Must not know events, nor how rows are displayed. */
#include "operators.h"

#include <stdlib.h>
#include <string.h>

typedef struct tree {
    operators *all;
    tare__arena *arena;
    tare__module_row *rows;
    uint32_t n;
    double tick_ns, top_ns;
} tree;

typedef struct ordered {
    uint32_t parent, at;
    uint64_t total;
} ordered;

TARE__ORDER(by_parent_and_total, ordered,
            TARE__RISING(parent) TARE__FALLING(total) TARE__RISING(at) /* by first occurrence */)

static void fill_row(tree *tree, module_sum *module, uint32_t parent, uint32_t depth, tare__module_row *row)
{
    uint64_t self = module->total > module->inside ? module->total - module->inside : 0;
    *row = (tare__module_row){
        .path = copied(tree->arena, tree->all->work->names.rows[module->name].text),
        .parent = parent,
        .depth = depth,
        .calls = module->calls,
        .total_ns = (double)module->total * tree->tick_ns,
        .self_ns = (double)self * tree->tick_ns,
        .operators_ns = module->operators * tree->tick_ns,
        .share = tree->top_ns > 0 ? (double)module->total * tree->tick_ns / tree->top_ns : NAN,
        .backward_calls = module->backward_calls,
        .backward_ns = module->backward_calls ? (double)module->backward * tree->tick_ns : NAN,
    };
}

/* Modules are nested no deeper than the stack of spans that is kept. */
static void make_below(tree *tree, const ordered *list, size_t n, uint32_t parent_place, uint32_t parent_row,
                       uint32_t depth)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list[middle].parent < parent_place)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n && list[low].parent == parent_place; low++) {
        uint32_t at = tree->n++;
        module_sum *module = &MODULES(tree->all)[list[low].at];
        module->row = at;
        fill_row(tree, module, parent_row, depth, &tree->rows[at]);
        make_below(tree, list, n, list[low].at + 1, at, depth + 1);
        tree->rows[at].n_rows = tree->n - at - 1;
    }
}

static int make_modules(operators *all, tare__analysis *analysis)
{
    size_t n = all->modules.n;
    tree tree = {.all = all, .arena = analysis->arena, .tick_ns = tare__trace_tick_ns(all->work->trace)};
    tree.rows = tare__arena_alloc(analysis->arena, (n + 1) * sizeof *tree.rows);
    ordered *list = malloc((n + 1) * sizeof *list);
    int status = tree.rows && list ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < n && !status; i++) {
        const module_sum *module = &MODULES(all)[i];
        list[i] = (ordered){module->parent, (uint32_t)i, module->total};
        tree.top_ns += module->parent ? 0 : (double)module->total * tree.tick_ns;
    }
    if (!status) {
        qsort(list, n, sizeof *list, by_parent_and_total);
        make_below(&tree, list, n, 0, TARE__NO_ROW, 0);
    }
    free(list);
    analysis->modules = tree.rows;
    analysis->n_modules = status ? 0 : tree.n;
    return status;
}

TARE__ORDER(by_module_and_total, tare__module_operator_row,
            TARE__RISING(module) TARE__FALLING(total_ns) TARE__BY_TEXT(name))

static int make_cells(operators *all, tare__analysis *analysis)
{
    size_t n = all->cells.n;
    double tick_ns = tare__trace_tick_ns(all->work->trace);
    tare__module_operator_row *rows = tare__arena_alloc(analysis->arena, (n + 1) * sizeof *rows);
    const char **texts = calloc(all->work->names.n, sizeof *texts);
    int status = rows && texts ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < n && !status; i++) {
        const module_operator *cell = &CELLS(all)[i];
        if (!texts[cell->name])
            texts[cell->name] = copied(analysis->arena, all->work->names.rows[cell->name].text);
        rows[i] = (tare__module_operator_row){texts[cell->name], MODULES(all)[cell->module].row, cell->direction,
                                              cell->calls, (double)cell->total * tick_ns, cell->self * tick_ns};
    }
    free(texts);
    if (status)
        return status;
    qsort(rows, n, sizeof *rows, by_module_and_total);
    analysis->module_operators = rows;
    analysis->n_module_operators = n;
    return 0;
}

static void point_to_operators(const tare__analysis *analysis)
{
    tare__module_row *modules = (tare__module_row *)(uintptr_t)analysis->modules; /* created above */
    for (size_t i = analysis->n_module_operators; i-- > 0;) {
        tare__module_row *module = &modules[analysis->module_operators[i].module];
        module->first_operator = (uint32_t)i;
        module->n_operators++;
    }
}

int tare__operators_modules_table(operators *all, tare__analysis *analysis)
{
    int status = make_modules(all, analysis);
    if (!status)
        status = make_cells(all, analysis);
    if (!status)
        point_to_operators(analysis);
    return status;
}
