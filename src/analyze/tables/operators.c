/* operators: the table of operators, from the tree of spans: by name, phase and direction, at any place in the tree.
 * Owned by the thread that analyzes.
 * Must not know events, nor how rows are displayed. */
#include "operators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The index of a key, created and zeroed if missing; UINT32_MAX: out of memory. */
static uint32_t index_at(keyed *table, size_t row_bytes, uint32_t a, uint32_t b, uint32_t c, bool *fresh)
{
    uint32_t key[3] = {a, b, c};
    if (!table->index)
        table->index = tare__intern_new();
    uint32_t at = table->index ? tare__intern_add(table->index, (const char *)key, sizeof key) : TARE__INTERN_NONE;
    if (at == TARE__INTERN_NONE || !tare__array_fit(&table->rows, &table->room, (size_t)at + 1, row_bytes))
        return UINT32_MAX;
    *fresh = at == table->n;
    if (*fresh) {
        memset((char *)table->rows + at * row_bytes, 0, row_bytes);
        table->n++;
    }
    return at;
}

static void free_keyed(keyed *table)
{
    tare__intern_free(table->index);
    free(table->rows);
}

/* ---- the walk ------------------------------------------------------------------------------------ */
static uint32_t kind_of(const operators *all, const node *node)
{
    return node->parent ? all->work->names.rows[node->name].kind : 0;
}

/* Whether it is inside another span of its name. */
static bool is_inner(const operators *all, const node *node)
{
    const nodes *nodes = &all->work->nodes;
    for (const struct node *above = parent_of(nodes, node); above; above = parent_of(nodes, above))
        if (above->name == node->name && above->parent)
            return true;
    return false;
}

/* Whether it is another form of its parent's call: an operator that does nothing but call itself (aten::div_ with a
 * number calls aten::div_ with a tensor). Counted once, as torch.profiler does. */
static bool is_same_call(const operators *all, const node *node)
{
    const struct node *parent = parent_of(&all->work->nodes, node);
    return parent->name == node->name && parent->parent && parent->children == node && !node->sibling;
}

tare__direction tare__operators_direction(const operators *all, const node *node, const place *place)
{
    const char *phase = place->phase ? all->work->names.rows[place->phase].text : "";
    if ((node->flags & NODE_BACKWARD) || strcmp(phase, "backward") == 0)
        return TARE__BACKWARD;
    return strcmp(phase, "forward") == 0 || place->module ? TARE__FORWARD : TARE__NO_DIRECTION;
}

static int add_module_call(operators *all, const node *node, place *place)
{
    bool fresh;
    uint32_t at = index_at(&all->modules, sizeof(module_sum), place->module, node->name, 0, &fresh);
    if (at == UINT32_MAX)
        return TARE_E_MEMORY;
    module_sum *module = &MODULES(all)[at];
    uint64_t total = all->totals[node->id - 1];
    if (fresh)
        *module = (module_sum){.name = node->name, .parent = place->module};
    module->calls += calls_of(node);
    module->total += total;
    if (place->module)
        MODULES(all)[place->module - 1].inside += total;
    place->module = at + 1;
    return 0;
}

static int add_cell(operators *all, uint32_t module, uint32_t name, tare__direction direction, uint64_t calls,
                    uint64_t total, double self)
{
    bool fresh;
    uint32_t at = index_at(&all->cells, sizeof(module_operator), module, name, direction, &fresh);
    if (at == UINT32_MAX)
        return TARE_E_MEMORY;
    module_operator *cell = &CELLS(all)[at];
    if (fresh)
        *cell = (module_operator){.module = module, .name = name, .direction = direction};
    cell->calls += calls;
    cell->total += total;
    cell->self += self;
    return 0;
}

static int add_to_module(operators *all, operator_sum *sum, uint32_t row, const node *node, const place *place,
                         double self)
{
    bool fresh;
    if (!place->module)
        return 0;
    if (index_at(&all->seen, 1, row, place->module, 0, &fresh) == UINT32_MAX)
        return TARE_E_MEMORY;
    sum->modules += fresh;
    if (!sum->module)
        sum->module = place->module;
    MODULES(all)[place->module - 1].operators += self;
    return add_cell(all, place->module - 1, node->name, place->direction, is_same_call(all, node) ? 0 : calls_of(node),
                    is_inner(all, node) ? 0 : all->totals[node->id - 1], self);
}

static int count_calls(const operators *all, operator_sum *sum, const node *node)
{
    uint64_t total = all->totals[node->id - 1];
    sum->calls += calls_of(node);
    sum->timed += node->hist.total;
    sum->sum += total;
    sum->total += is_inner(all, node) ? 0 : total;
    sum->min = node->min < sum->min ? node->min : sum->min;
    sum->max = node->max > sum->max ? node->max : sum->max;
    return tare__hist_merge(&sum->hist, &node->hist);
}

static int add_operator(operators *all, const node *node, place *place)
{
    bool fresh;
    place->direction = tare__operators_direction(all, node, place);
    uint32_t at = index_at(&all->sums, sizeof(operator_sum), node->name, place->phase, place->direction,
                                     &fresh);
    if (at == UINT32_MAX)
        return TARE_E_MEMORY;
    operator_sum *sum = &SUMS(all)[at];
    if (fresh)
        *sum = (operator_sum){.name = node->name, .phase = place->phase, .direction = place->direction,
                              .min = UINT64_MAX, .hist.bits = TARE__HIST_BITS_MAX};
    double own = all->cost.known ? tare__analyze_own_cost(&all->work->nodes, node, &all->cost) : 0;
    own = own < (double)node->self ? own : (double)node->self;
    place->row = at + 1;
    sum->self += node->self;
    sum->own += own;
    sum->step_self += place->in_step ? (double)node->self - own : 0;
    int status = is_same_call(all, node) ? 0 : count_calls(all, sum, node);
    return status ? status : add_to_module(all, sum, at, node, place, (double)node->self - own);
}

/* Parents come before their children in the list of all nodes. */
static int visit(operators *all, const node *node)
{
    place *place = &all->places[node->id - 1];
    if (!node->parent) {
        place->on_track = node == all->work->tracks;
        return 0;
    }
    *place = all->places[node->parent - 1];
    place->row = 0;
    if (place->on_track)
        return 0;
    switch (kind_of(all, node)) {
    case TARE_KIND_STEP: place->in_step = true; return 0;
    case TARE_KIND_PHASE: place->phase = node->name; return 0;
    case TARE_KIND_MODULE: return add_module_call(all, node, place);
    case TARE_KIND_OPERATOR: return add_operator(all, node, place);
    default: return 0;
    }
}

static void sum_totals(operators *all)
{
    const nodes *nodes = &all->work->nodes;
    for (uint32_t i = nodes->n; i-- > 0;) {
        all->totals[i] += nodes->all[i]->self;
        if (nodes->all[i]->parent)
            all->totals[nodes->all[i]->parent - 1] += all->totals[i];
    }
}

/* ---- pairs --------------------------------------------------------------------------------------- */
static void note_pair(operator_sum *row, uint32_t other, uint64_t calls, uint64_t total)
{
    if (!row->pair)
        row->pair = other;
    row->paired += calls;
    row->pair_total += total;
}

static int take_pair(operators *all, const pair *pair)
{
    const place *place = &all->places[pair->forward - 1];
    const node *forward = all->work->nodes.all[pair->forward - 1];
    uint32_t row = all->places[pair->backward - 1].row, name = all->work->nodes.all[pair->backward - 1]->name;
    if (!place->row || !row)
        return 0;
    operator_sum *backward = &SUMS(all)[row - 1];
    note_pair(&SUMS(all)[place->row - 1], name, pair->calls, pair->total);
    note_pair(backward, forward->name, pair->calls, pair->forward_total);
    if (!place->module)
        return 0;
    for (uint32_t at = place->module; at; at = MODULES(all)[at - 1].parent) {
        MODULES(all)[at - 1].backward += pair->total;
        MODULES(all)[at - 1].backward_calls += pair->calls;
    }
    bool fresh;
    if (index_at(&all->seen, 1, (uint32_t)(backward - SUMS(all)), place->module, 0, &fresh) == UINT32_MAX)
        return TARE_E_MEMORY;
    backward->modules += fresh;
    if (!backward->module)
        backward->module = place->module;
    return add_cell(all, place->module - 1, name, TARE__BACKWARD, pair->calls, pair->total, NAN);
}

static int take_pairs(operators *all)
{
    const pairs *pairs = &all->work->pairs;
    int status = 0;
    for (size_t i = 0; i < pairs->n_rows && !status; i++)
        status = take_pair(all, &pairs->rows[i]);
    return status;
}

static const char *why_unpaired(const operators *all, const operator_sum *sum, tare__arena *arena)
{
    char calls[TARE__COUNTED_BYTES];
    const pairs *pairs = &all->work->pairs;
    char words[200];
    bool node = all->work->names.key_of && (all->work->names.key_of[sum->name] & KEY_BACKWARD);
    if (!node || sum->paired >= sum->calls)
        return NULL;
    const unpaired *missed = pairs->missed ? &pairs->missed[sum->name] : NULL;
    if (!missed || !missed->calls)
        snprintf(words, sizeof words, "its calls are in several phases and cannot be distinguished");
    else if (!missed->forward)
        snprintf(words, sizeof words, "%llu of its calls may belong to more than one forward call",
                 (unsigned long long)missed->calls);
    else
        snprintf(words, sizeof words,
                 "the backward pass did not run in the reverse order of the forward pass: %s of it for %llu",
                 tare__unit_counted(calls, (double)missed->backward, "call", NULL),
                 (unsigned long long)missed->forward);
    return copied(arena, words);
}

/* ---- rows ---------------------------------------------------------------------------------------- */
static const char *text_of(const operators *all, tare__arena *arena, uint32_t name)
{
    return copied(arena, all->work->names.rows[name].text);
}

typedef struct step_sums {
    uint64_t count;
    double total_ns;
} step_sums;

static step_sums sum_steps(const work *work, double tick_ns)
{
    step_sums sum = {0, 0};
    for (size_t i = 0; i < work->n_steps; i++)
        if (work->names.rows[work->steps[i].name].kind == TARE_KIND_STEP) {
            sum.count += work->steps[i].count;
            sum.total_ns += (double)work->steps[i].total * tick_ns;
        }
    return sum;
}

static void fill_row(const operators *all, const operator_sum *sum, const step_sums *steps, tare__arena *arena,
                     tare__operator_row *row)
{
    double tick_ns = tare__trace_tick_ns(all->work->trace);
    const module_sum *module = sum->modules == 1 ? &MODULES(all)[sum->module - 1] : NULL;
    *row = (tare__operator_row){
        .name = text_of(all, arena, sum->name),
        .phase = sum->phase ? text_of(all, arena, sum->phase) : NULL,
        .direction = sum->direction,
        .calls = sum->calls,
        .total_ns = (double)sum->total * tick_ns,
        .raw_self_ns = (double)sum->self * tick_ns,
        .self_ns = ((double)sum->self - sum->own) * tick_ns,
        .each = tare__analyze_durations(all->work, &sum->hist, sum->min, sum->max, (double)sum->sum, sum->timed),
        .step_self_ns = steps->count ? sum->step_self * tick_ns : NAN,
        .per_step_ns = steps->count ? sum->step_self * tick_ns / (double)steps->count : NAN,
        .step_share = steps->total_ns > 0 ? sum->step_self * tick_ns / steps->total_ns : NAN,
        .module = module ? text_of(all, arena, module->name) : NULL,
        .modules = sum->modules,
        .pair = sum->pair ? text_of(all, arena, sum->pair) : NULL,
        .paired = sum->paired,
        .pair_total_ns = sum->paired ? (double)sum->pair_total * tick_ns : NAN,
        .unpaired = why_unpaired(all, sum, arena),
    };
    tare__operators_put_shapes(all, sum, arena, row);
}

TARE__ORDER(by_self, tare__operator_row, TARE__FALLING(self_ns) TARE__BY_TEXT(name) TARE__RISING(direction))

static int make_rows(operators *all, tare__analysis *analysis)
{
    size_t n = all->sums.n;
    step_sums steps = sum_steps(all->work, tare__trace_tick_ns(all->work->trace));
    tare__operator_row *rows = tare__arena_alloc(analysis->arena, (n + 1) * sizeof *rows);
    double self_ns = 0;
    if (!rows)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        fill_row(all, &SUMS(all)[i], &steps, analysis->arena, &rows[i]);
        self_ns += rows[i].self_ns;
    }
    for (size_t i = 0; i < n; i++)
        rows[i].share = self_ns > 0 ? rows[i].self_ns / self_ns : NAN;
    qsort(rows, n, sizeof *rows, by_self);
    analysis->operators = rows;
    analysis->n_operators = n;
    return 0;
}

static int make_tables(operators *all, tare__analysis *analysis)
{
    const nodes *nodes = &all->work->nodes;
    int status = tare__analyze_pair(all->work);
    sum_totals(all);
    for (uint32_t i = 0; i < nodes->n && !status; i++)
        status = visit(all, nodes->all[i]);
    if (!status)
        status = take_pairs(all);
    if (!status)
        status = tare__operators_take_shapes(all);
    if (!status)
        status = make_rows(all, analysis);
    return status ? status : tare__operators_modules_table(all, analysis);
}

int tare__analyze_operators_table(work *work, tare__analysis *analysis)
{
    size_t n = (size_t)work->nodes.n + 1;
    operators all = {.work = work, .cost = tare__analyze_cost(work, 0)};
    all.totals = calloc(n, sizeof *all.totals);
    all.places = calloc(n, sizeof *all.places);
    int status = all.totals && all.places ? make_tables(&all, analysis) : TARE_E_MEMORY;
    for (size_t i = 0; i < all.sums.n; i++) {
        tare__hist_free(&SUMS(&all)[i].hist);
        tare__text_free(&SUMS(&all)[i].shapes);
    }
    free_keyed(&all.sums);
    free_keyed(&all.modules);
    free_keyed(&all.cells);
    free_keyed(&all.seen);
    free(all.totals);
    free(all.places);
    return status;
}
