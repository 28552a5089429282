/* flamegraph_boxes: merges the lines of each function in the call tree, and adds boxes for what is waited for.
 * Owned by the calling thread.
 * Must not know how it is drawn. */
#include <stdlib.h>
#include <string.h>

#include "flamegraph.h"

typedef struct merging {
    const tare__analysis *analysis;
    tare__flame *flame;
    tare__intern *functions, *keys; /* functions by name, file and first line; boxes by parent and what they are */
    uint32_t *box_of;               /* by node */
    tare__text name;
    bool compared, base; /* two runs are merged; the baseline is being added */
} merging;

/* ---- boxes ---------------------------------------------------------------------------------------------- */
/* What distinguishes a box from others below the same one. Processes and threads are never merged. */
typedef struct box_key {
    uint32_t parent, function, state, node;
} box_key;

static uint32_t box_at(merging *to, const box_key *key, const tare__stack_node *node)
{
    tare__flame *flame = to->flame;
    uint32_t at = tare__intern_add(to->keys, (const char *)key, sizeof *key);
    if (at == TARE__INTERN_NONE || !tare__array_fit(&flame->boxes, &flame->room, (size_t)at + 1, sizeof *flame->boxes))
        return TARE__FLAME_NONE;
    if (at < flame->n)
        return at;
    uint32_t depth = key->parent == TARE__FLAME_NONE ? 0 : flame->boxes[key->parent].depth + 1;
    flame->boxes[flame->n++] = (tare__flame_box){.node = node,
                                                 .state = key->state,
                                                 .parent = key->parent,
                                                 .depth = depth,
                                                 .first = TARE__FLAME_NONE,
                                                 .next = TARE__FLAME_NONE};
    return at;
}

static uint32_t function_of(merging *to, const tare__stack_node *node)
{
    tare__text_clear(&to->name);
    tare__text_string(&to->name, node->name);
    tare__text_append(&to->name, "", 1);
    const char *file = node->file ? node->file : "";
    if (to->compared) { /* files may have moved, and lines of a changed program have */
        tare__text_string(&to->name, tare__base_name(file));
    } else {
        tare__text_string(&to->name, file);
        tare__text_append(&to->name, (const char *)&node->first_line, sizeof node->first_line);
    }
    return to->name.failed ? TARE__INTERN_NONE : tare__intern_add(to->functions, to->name.data, to->name.length);
}

static bool add_waits(merging *to, const tare__stack_node *node, uint32_t box)
{
    for (unsigned state = 0; state < TARE__STATE_COUNT; state++) {
        double ns = node->of.ns[state];
        if (state == TARE__STATE_RUNNING || !(ns > 0) || !tare__stack_is_active(to->analysis, node, state))
            continue;
        uint32_t at = box_at(to, &(box_key){box, 0, state, 0}, node);
        if (at == TARE__FLAME_NONE)
            return false;
        *(to->base ? &to->flame->boxes[at].base_self_ns : &to->flame->boxes[at].self_ns) += ns;
    }
    return true;
}

static uint32_t leading_process(const tare__analysis *of)
{
    for (uint32_t i = 0; i < of->stacks.n; i++)
        if (of->stacks.nodes[i].what == TARE__NODE_THREAD && of->stacks.nodes[i].thread == of->stacks.leading)
            return of->stacks.nodes[i].parent;
    return TARE__NO_ROW;
}

/* The process of the leading thread, whatever its arguments; other processes and threads by their names without the id:
 * "train.py (4242)", "thread 4243". */
static uint32_t place_of(merging *to, const tare__stack_node *node)
{
    const tare__analysis *of = to->analysis;
    uint32_t leading = of->stacks.leading, number = (uint32_t)(node - of->stacks.nodes);
    if (leading < of->n_sampled_threads && node->what == TARE__NODE_PROCESS && leading_process(of) == number)
        return tare__intern_add(to->functions, "", 1);
    if (node->what == TARE__NODE_THREAD && node->thread == leading && leading != TARE__NO_ROW)
        return tare__intern_add(to->functions, "", 1);
    size_t n = strlen(node->name), end = n;
    while (end > 0 && strchr("0123456789()", node->name[end - 1]))
        end--;
    tare__text_clear(&to->name);
    tare__text_append(&to->name, node->name, end < n && end > 0 && node->name[end - 1] == ' ' ? end - 1 : n);
    return to->name.failed ? TARE__INTERN_NONE : tare__intern_add(to->functions, to->name.data, to->name.length);
}

static bool add_node(merging *to, uint32_t number)
{
    const tare__stack_node *node = &to->analysis->stacks.nodes[number];
    bool merged = node->what != TARE__NODE_PROCESS && node->what != TARE__NODE_THREAD;
    box_key key = {node->parent == TARE__NO_ROW ? TARE__FLAME_NONE : to->box_of[node->parent],
                   merged ? function_of(to, node) : to->compared ? place_of(to, node) : 0,
                   TARE__STATE_RUNNING, merged || to->compared ? 0 : number + 1};
    if (key.function == TARE__INTERN_NONE)
        return false;
    uint32_t at = to->box_of[number] = box_at(to, &key, node);
    if (at == TARE__FLAME_NONE)
        return false;
    tare__flame_box *box = &to->flame->boxes[at];
    *(to->base ? &box->base_self_ns : &box->self_ns) += node->of.ns[TARE__STATE_RUNNING];
    if (!to->base && node->self_ns > box->most_ns) {
        box->most_ns = node->self_ns;
        box->node = node;
    }
    return add_waits(to, node, at);
}

/* ---- totals, siblings -------------------------------------------------------------------------------------- */
static void add_totals(tare__flame *flame)
{
    for (size_t i = flame->n; i-- > 0;) {
        tare__flame_box *box = &flame->boxes[i];
        box->total_ns += box->self_ns;
        box->base_ns += box->base_self_ns;
        if (box->state != TARE__STATE_RUNNING)
            box->waits_ns = box->total_ns;
        if (box->parent == TARE__FLAME_NONE) {
            flame->total_ns += box->total_ns;
            flame->base_ns += box->base_ns;
        } else {
            flame->boxes[box->parent].total_ns += box->total_ns;
            flame->boxes[box->parent].base_ns += box->base_ns;
            flame->boxes[box->parent].waits_ns += box->waits_ns;
        }
    }
}

typedef struct ordered {
    double total_ns;
    uint32_t box;
} ordered;

TARE__ORDER(by_total, ordered, TARE__RISING(total_ns) TARE__FALLING(box))

/* Smaller ones first, each put before those that are there: the largest comes to be the first. */
static bool link_siblings(tare__flame *flame)
{
    ordered *all = malloc((flame->n + 1) * sizeof *all);
    if (!all)
        return false;
    for (uint32_t i = 0; i < flame->n; i++)
        all[i] = (ordered){flame->boxes[i].total_ns, i};
    qsort(all, flame->n, sizeof *all, by_total);
    for (size_t i = 0; i < flame->n; i++) {
        tare__flame_box *box = &flame->boxes[all[i].box];
        uint32_t *first = box->parent == TARE__FLAME_NONE ? &flame->first : &flame->boxes[box->parent].first;
        if (!(box->total_ns > 0))
            continue;
        box->next = *first;
        *first = all[i].box;
        flame->depth = box->depth + 1 > flame->depth ? box->depth + 1 : flame->depth;
    }
    free(all);
    return true;
}

static bool add_tree(merging *to, const tare__analysis *analysis)
{
    to->analysis = analysis;
    to->box_of = calloc(analysis->stacks.n + 1, sizeof *to->box_of);
    bool fits = to->box_of != NULL;
    for (uint32_t i = 0; i < analysis->stacks.n && fits; i++)
        fits = add_node(to, i);
    free(to->box_of);
    return fits;
}

/* base NULL: there is none. */
static int make(const tare__analysis *base, const tare__analysis *analysis, tare__flame *flame, tare__error *error)
{
    merging to = {.flame = flame, .compared = base != NULL};
    *flame = (tare__flame){.first = TARE__FLAME_NONE};
    int status = tare__stacks_require(analysis, error);
    if (!status && base)
        status = tare__stacks_require(base, error);
    if (status)
        return status;
    to.functions = tare__intern_new();
    to.keys = tare__intern_new();
    bool fits = to.functions && to.keys && add_tree(&to, analysis);
    to.base = true;
    fits = fits && (!base || add_tree(&to, base));
    if (fits) {
        add_totals(flame);
        fits = link_siblings(flame);
    }
    tare__intern_free(to.functions);
    tare__intern_free(to.keys);
    tare__text_free(&to.name);
    return fits ? 0 : tare__fail(error, TARE_E_MEMORY, "out of memory");
}

int tare__flame_make(const tare__analysis *analysis, tare__flame *flame, tare__error *error)
{
    return make(NULL, analysis, flame, error);
}

int tare__flame_compare(const tare__analysis *base, const tare__analysis *candidate, tare__flame *flame,
                        tare__error *error)
{
    return make(base, candidate, flame, error);
}

void tare__flame_free(tare__flame *flame)
{
    free(flame->boxes);
    *flame = (tare__flame){.first = TARE__FLAME_NONE};
}
