/* nodes: the tree of paths: created on first use, found by (parent, name), bounded in number and memory.
 * Owned by the thread that analyzes.
 * Must not know events. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define FIRST_SLOTS_LOG 12u
#define SPARSE_SLOTS 65536u
#define BATCH 512u
#define LINE 64u
#define INDEX_FROM 16u
#define INDEX_BYTES_MAX ((size_t)4 << 20)
#define FINE_NODES 256u /* this many histograms with 0.4 % error fit in the caches; beyond, the error is 1.6 % */
#define COARSE_BITS 5u
#define HIST_BYTES_MAX ((size_t)20 << 20)
#define NUMBER_CELLS_MAX 100000u
#define HIST_OVERHEAD 16u /* of the allocator, per histogram */

int tare__analyze_init_nodes(nodes *all)
{
    all->arena = tare__arena_new();
    all->slots = calloc((size_t)1 << FIRST_SLOTS_LOG, sizeof *all->slots);
    all->mask = (1u << FIRST_SLOTS_LOG) - 1;
    all->shift = 64 - FIRST_SLOTS_LOG;
    all->hist_bits = TARE__HIST_BITS_MAX;
    for (uint32_t i = 0; i < WAITING; i++)
        all->waiting[i] = &all->nothing;
    return all->arena && all->slots ? 0 : TARE_E_MEMORY;
}

void tare__analyze_count_waiting(nodes *all)
{
    for (uint32_t i = 0; i < WAITING && all->waiting[i]; i++) {
        count_up(all->waiting[i]);
        all->waiting[i] = &all->nothing;
    }
}

void tare__analyze_free_slots(nodes *all)
{
    tare__analyze_count_waiting(all);
    free(all->slots);
    all->slots = NULL;
}

void tare__analyze_free_nodes(nodes *all)
{
    tare__analyze_free_slots(all);
    for (uint32_t i = 0; i < all->n; i++)
        tare__hist_free(&all->all[i]->hist);
    free(all->all);
    free(all->split);
    tare__arena_free(all->arena);
}

/* ---- making -------------------------------------------------------------------------------------- */
static node *take_from_batch(nodes *all)
{
    if (!all->batch_left) {
        char *memory = tare__arena_alloc(all->arena, BATCH * sizeof(node) + LINE);
        if (!memory)
            return NULL;
        /* Nodes are aligned to cache lines: the first line is the hot one. */
        memory += -(uintptr_t)memory & (LINE - 1);
        all->batch = (node *)(void *)memory;
        all->batch_left = BATCH;
    }
    all->batch_left--;
    return all->batch++;
}

static node *make_node(nodes *all)
{
    node *made = tare__array_fit(&all->all, &all->all_room, (size_t)all->n + 1, sizeof(node *)) ? take_from_batch(all)
                                                                                               : NULL;
    if (!made)
        return NULL;
    made->min = UINT64_MAX;
    made->hist.bits = all->hist_bits;
    all->all[all->n++] = made;
    made->id = all->n;
    return made;
}

node *tare__analyze_make_root(nodes *all)
{
    return make_node(all);
}

static node_slot *slot_for(const nodes *all, uint64_t key)
{
    uint32_t at = (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> all->shift);
    while (all->slots[at].key && all->slots[at].key != key)
        at = (at + 1) & all->mask;
    return &all->slots[at];
}

static bool grow_slots(nodes *all)
{
    node_slot *old = all->slots;
    size_t old_slots = (size_t)all->mask + 1;
    node_slot *slots = calloc(old_slots * 2, sizeof *slots);
    if (!slots)
        return false;
    all->slots = slots;
    all->mask = all->mask * 2 + 1;
    all->shift--;
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].key)
            *slot_for(all, old[i].key) = old[i];
    free(old);
    return true;
}

/* A phase belongs to the step around it at any depth, including all phases inside it; so does a wait for a GPU. */
static bool is_phase_of_step(const nodes *all, const canons *names, const node *parent)
{
    while (parent && names->rows[parent->name].kind != TARE_KIND_STEP && !(parent->flags & NODE_PHASE))
        parent = parent_of(all, parent);
    return parent && !(parent->flags & NODE_PHASE);
}

static bool is_in_step(const nodes *all, const canons *names, const node *parent)
{
    while (parent && names->rows[parent->name].kind != TARE_KIND_STEP)
        parent = parent_of(all, parent);
    return parent;
}

/* Inside an operator that has a backward node, and inside the backward pass, operators create no further backward
 * nodes. */
static uint16_t pair_flags(const canons *names, const node *parent, uint32_t name)
{
    uint16_t flags = parent->flags & (NODE_BACKWARD | NODE_FORWARD | NODE_ASIDE);
    uint32_t key = names->key_of ? names->key_of[name] : 0;
    if (key & KEY_ASIDE)
        return (uint16_t)(flags | NODE_ASIDE);
    if (key & KEY_BACKWARD)
        return (uint16_t)(flags | NODE_NOTED | NODE_BACKWARD);
    return key && !flags ? NODE_NOTED | NODE_FORWARD : flags;
}

/* The properties of a node, by its name and its parents. */
static uint16_t flags_of(const nodes *all, const canons *names, const node *parent, const node *child)
{
    uint32_t kind = names->rows[child->name].kind;
    uint16_t flags = pair_flags(names, parent, child->name);
    if (kind == TARE_KIND_STEP || kind == TARE_KIND_EPOCH)
        flags |= NODE_TIMED;
    if (child->depth >= DEPTH_MAX || child->name == CANON_OTHERS)
        flags = NODE_FOLDS;
    if (kind == TARE_KIND_SPAN && tare__analyze_is_inspection(names->rows[child->name].text))
        flags |= NODE_INSPECTION;
    if (parent->parent && names->rows[parent->name].kind == TARE_KIND_STEP)
        flags |= NODE_PART;
    bool waits = kind == TARE_KIND_SPAN && strncmp(names->rows[child->name].text, TARE__SYNC, strlen(TARE__SYNC)) == 0;
    if ((kind == TARE_KIND_PHASE || waits) && is_phase_of_step(all, names, parent))
        flags |= waits ? NODE_PART : NODE_PART | NODE_PHASE;
    if ((kind == TARE_KIND_PHASE || tare__span_is_reported(names->rows[child->name].text)) &&
        !is_in_step(all, names, parent))
        flags |= NODE_PART;
    return flags;
}

/* A separate table for a parent with many children: no collisions, and one load less per lookup. */
static void index_children(nodes *all, const canons *names, node *parent)
{
    size_t bytes = names->n * sizeof *parent->by_name;
    uint32_t n = 0;
    for (const node *child = parent->children; child && n < INDEX_FROM; child = child->sibling)
        n++;
    if (n < INDEX_FROM || parent->by_name || bytes > INDEX_BYTES_MAX - all->by_name_bytes)
        return;
    parent->by_name = tare__arena_alloc(all->arena, bytes);
    if (!parent->by_name)
        return;
    all->by_name_bytes += bytes;
    for (node *child = parent->children; child; child = child->sibling)
        parent->by_name[child->name] = child;
}

/* ---- histograms within bounds -------------------------------------------------------------------- */
static size_t hist_cost(const tare__hist *hist)
{
    return hist->length ? tare__hist_bytes(hist) + HIST_OVERHEAD : 0;
}

static void coarsen_all(nodes *all)
{
    all->hist_bits--;
    all->hist_bytes = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        tare__hist_coarsen(&all->all[i]->hist);
        all->hist_bytes += hist_cost(&all->all[i]->hist);
    }
}

static node *add_child(nodes *all, const canons *names, node *parent, uint32_t name)
{
    /* A small table is kept sparse to avoid collisions: each is an unpredictable branch. */
    uint32_t slots_each = all->mask < SPARSE_SLOTS ? 4 : 2;
    if (all->used * slots_each > all->mask && !grow_slots(all))
        return NULL;
    if (all->n == FINE_NODES) {
        tare__analyze_count_waiting(all);
        while (all->hist_bits > COARSE_BITS)
            coarsen_all(all);
    }
    node *child = make_node(all);
    if (!child)
        return NULL;
    child->parent = parent->id;
    child->sibling = parent->children;
    parent->children = child;
    child->name = name;
    child->depth = (uint16_t)(parent->depth + 1);
    child->flags = flags_of(all, names, parent, child);
    uint64_t key = (uint64_t)parent->id << 32 | name;
    *slot_for(all, key) = (node_slot){key, child};
    all->used++;
    if (parent->by_name)
        parent->by_name[name] = child;
    else
        index_children(all, names, parent);
    return child;
}

node *tare__analyze_make_child(nodes *all, const canons *names, node *parent, uint32_t name)
{
    if (parent->flags & NODE_FOLDS) {
        all->folded_deep |= parent->name != CANON_OTHERS;
        return parent;
    }
    /* Each parent may still get its "(others)", so that no time moves to another part of the tree. */
    if (all->n >= NODES_MAX && name != CANON_OTHERS) {
        all->folded_many = true;
        return find_child(all, names, parent, CANON_OTHERS);
    }
    return add_child(all, names, parent, name);
}

int tare__analyze_widen(nodes *all, node *node, uint64_t duration)
{
    tare__analyze_count_waiting(all);
    size_t before = hist_cost(&node->hist);
    int status = tare__hist_grow(&node->hist, tare__hist_bucket(duration, node->hist.bits));
    if (status)
        return status;
    all->hist_bytes += hist_cost(&node->hist) - before;
    while (all->hist_bytes > HIST_BYTES_MAX && all->hist_bits > 0)
        coarsen_all(all);
    /* Coarsening removes empty buckets, possibly including the requested one. */
    uint32_t bucket = tare__hist_bucket(duration, node->hist.bits);
    return bucket - node->hist.first < node->hist.length ? 0 : tare__hist_grow(&node->hist, bucket);
}

/* ---- numbers ------------------------------------------------------------------------------------- */
int tare__analyze_add_number(nodes *all, node *node, uint32_t name, double value, uint32_t *bit)
{
    number_cell *cell = node->numbers;
    *bit = NUMBER_BITS;
    while (cell && cell->name != name)
        cell = cell->next;
    if (!cell) {
        if (all->number_cells >= NUMBER_CELLS_MAX) {
            all->numbers_refused++;
            return 0;
        }
        cell = tare__arena_alloc(all->arena, sizeof *cell);
        if (!cell)
            return TARE_E_MEMORY;
        all->number_cells++;
        uint32_t last = node->numbers ? node->numbers->bit + 1 : 0;
        *cell = (number_cell){.next = node->numbers, .name = name, .bit = last < NUMBER_BITS ? last : NUMBER_BITS};
        node->numbers = cell;
        node->flags |= NODE_NUMBERED;
    }
    cell->n++;
    cell->sum += value;
    *bit = cell->bit;
    return 0;
}
