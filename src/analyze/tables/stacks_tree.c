/* stacks_tree: the call tree of sampled stacks as rows, by process and thread, with small nodes merged so that their
 * number stays bounded.
 * Owned by the thread that analyzes.
 * Must not know files, or how rows are displayed. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boxes.h"
#include "sampled.h"

/* Rows that a thread and a node may need: each may have merged nodes below it; a thread, a process around it. */
#define THREAD_ROWS 5u
#define NODE_ROWS   2u
#define BUCKETS     1024u /* of totals, by logarithm */

static const char other_name[] = "(other)", no_stack_name[] = "(no stack)";

typedef struct stretch { /* cells of one thread */
    size_t from, to;
    bool kept; /* has a row */
} stretch;

typedef struct tree {
    const work *work;
    const sampled *sampled;
    const sampled_nodes *from;
    const tare__sampled_thread_row *threads;
    stretch *stretches; /* by row of sampled_threads */
    size_t n_threads;
    /* of the thread under way, by node */
    double *total_ns;
    uint32_t *touched; /* nodes with time, ascending */
    size_t n_touched;
    uint32_t *nearest; /* the node itself or its innermost caller that has a row; 0: the thread */
    uint32_t *row, *other_row;  /* TARE__NO_ROW: none */
    bool *has_other;            /* merged nodes are below it */
    uint32_t *first, *count;    /* its children in `kept` */
    uint32_t *kept;             /* nodes with a row, by caller, then total descending */
    size_t n_kept;
    double smallest_ns;
    tare__stack_node *rows;
    size_t n, room;
} tree;

/* ---- one thread: totals of the nodes that it uses --------------------------------------------------------- */
TARE__ORDER(ascending, uint32_t, TARE__RISING_VALUE)

static void clear_thread(tree *tree)
{
    for (size_t i = 0; i < tree->n_touched; i++) {
        uint32_t node = tree->touched[i];
        tree->total_ns[node] = 0;
        tree->nearest[node] = tree->count[node] = 0;
        tree->row[node] = tree->other_row[node] = TARE__NO_ROW;
        tree->has_other[node] = false;
    }
    tree->n_touched = 0;
    tree->n_kept = 0;
    tree->count[0] = 0;
    tree->row[0] = tree->other_row[0] = TARE__NO_ROW;
    tree->has_other[0] = false;
}

/* `nearest` marks nodes that are in the list already. */
static void touch(tree *tree, uint32_t node)
{
    for (; node && !tree->nearest[node]; node = tree->from->nodes[node].caller) {
        tree->nearest[node] = node;
        tree->touched[tree->n_touched++] = node;
    }
}

static void gather(tree *tree, const stretch *cells)
{
    clear_thread(tree);
    for (size_t i = cells->from; i < cells->to; i++) {
        const sampled_cell *cell = &tree->sampled->cells[i];
        if (!cell->node || !(cell->wall_ns > 0))
            continue;
        touch(tree, cell->node);
        tree->total_ns[cell->node] += cell->wall_ns;
    }
    if (tree->n_touched)
        qsort(tree->touched, tree->n_touched, sizeof *tree->touched, ascending);
    for (size_t i = tree->n_touched; i-- > 0;) {
        uint32_t node = tree->touched[i], caller = tree->from->nodes[node].caller;
        if (caller)
            tree->total_ns[caller] += tree->total_ns[node];
    }
}

/* ---- the smallest total that gets a row --------------------------------------------------------------------- */
static size_t bucket_of(double ns)
{
    double at = ns > 1 ? log2(ns) * 16 : 0;
    return at < BUCKETS - 1 ? (size_t)at : BUCKETS - 1;
}

static void choose_smallest(tree *tree)
{
    size_t rows[BUCKETS] = {0}, all = 0, used = 0;
    for (size_t i = 0; i < tree->n_threads; i++) {
        gather(tree, &tree->stretches[i]);
        rows[bucket_of(tree->threads[i].wall_ns)] += THREAD_ROWS;
        for (size_t k = 0; k < tree->n_touched; k++)
            rows[bucket_of(tree->total_ns[tree->touched[k]])] += NODE_ROWS;
        all += tree->n_touched + THREAD_ROWS;
    }
    if (all + 1 <= TARE__STACK_NODES_MAX)
        return;
    size_t bucket = BUCKETS;
    while (bucket > 0 && used + rows[bucket - 1] + THREAD_ROWS + 2 <= TARE__STACK_NODES_MAX)
        used += rows[--bucket];
    tree->smallest_ns = exp2((double)bucket / 16);
}

/* ---- rows --------------------------------------------------------------------------------------------------- */
static uint32_t add_row(tree *tree, const tare__stack_node *row)
{
    if (!tare__array_fit(&tree->rows, &tree->room, tree->n + 1, sizeof *tree->rows))
        return TARE__NO_ROW;
    tree->rows[tree->n] = *row;
    return (uint32_t)tree->n++;
}

static uint32_t add_below(tree *tree, uint32_t parent, tare__stack_node row)
{
    row.parent = parent;
    row.depth = parent == TARE__NO_ROW ? 0 : tree->rows[parent].depth + 1;
    return add_row(tree, &row);
}

static uint32_t add_merged(tree *tree, uint32_t parent, uint32_t thread, tare__stack_node_kind what, const char *name)
{
    return add_below(tree, parent, (tare__stack_node){.what = what, .name = name, .thread = thread});
}

static uint32_t add_frame(tree *tree, uint32_t parent, uint32_t thread, uint32_t node)
{
    const sampled_node *from = &tree->from->nodes[node];
    const sampled_function *function = &tree->from->functions[from->function];
    const char *package = function->package == TARE__NO_ROW ? NULL : tree->from->packages[function->package].name;
    return add_below(tree, parent,
                     (tare__stack_node){.what = TARE__NODE_FRAME,
                                        .name = function->name,
                                        .file = function->file,
                                        .line = from->line,
                                        .first_line = function->first_line,
                                        .kind = function->kind,
                                        .package = package,
                                        .own = function->own,
                                        .thread = thread});
}

typedef struct sibling { /* for sorting */
    uint32_t node, caller;
    double total_ns;
} sibling;

TARE__ORDER(by_caller, sibling, TARE__RISING(caller) TARE__FALLING(total_ns) TARE__RISING(node))

/* Which nodes get a row, and the order of siblings. False: out of memory. */
static bool choose_nodes(tree *tree)
{
    sibling *list = malloc((tree->n_touched + 1) * sizeof *list);
    if (!list)
        return false;
    for (size_t i = 0; i < tree->n_touched; i++) {
        uint32_t node = tree->touched[i], caller = tree->from->nodes[node].caller;
        bool kept = tree->total_ns[node] >= tree->smallest_ns;
        tree->nearest[node] = kept ? node : caller ? tree->nearest[caller] : 0;
        if (kept)
            list[tree->n_kept++] = (sibling){node, caller, tree->total_ns[node]};
    }
    if (tree->n_kept)
        qsort(list, tree->n_kept, sizeof *list, by_caller);
    for (size_t i = 0; i < tree->n_kept; i++) {
        tree->kept[i] = list[i].node;
        if (!i || list[i - 1].caller != list[i].caller)
            tree->first[list[i].caller] = (uint32_t)i;
        tree->count[list[i].caller]++;
    }
    free(list);
    return true;
}

/* The merged nodes of a parent follow its other children. */
static bool close_parent(tree *tree, uint32_t node, uint32_t row, uint32_t thread)
{
    if (!tree->has_other[node])
        return true;
    tree->other_row[node] = add_merged(tree, row, thread, TARE__NODE_OTHER, other_name);
    return tree->other_row[node] != TARE__NO_ROW;
}

/* Rows of a thread's nodes, depth first. `at` in place of a node: how many of its children are done. */
static bool add_frames(tree *tree, uint32_t thread_row, uint32_t thread)
{
    uint32_t *done = calloc(tree->n_kept + 1, sizeof *done), *path = malloc((tree->n_kept + 1) * sizeof *path);
    size_t depth = 1;
    bool fine = done && path;
    if (fine)
        path[0] = 0;
    tree->row[0] = thread_row;
    while (fine && depth > 0) {
        uint32_t node = path[depth - 1], at = done[depth - 1]++;
        if (at >= tree->count[node]) {
            fine = close_parent(tree, node, tree->row[node], thread);
            depth--;
            continue;
        }
        uint32_t child = tree->kept[tree->first[node] + at];
        tree->row[child] = add_frame(tree, tree->row[node], thread, child);
        fine = tree->row[child] != TARE__NO_ROW;
        path[depth] = child;
        done[depth++] = 0;
    }
    free(done);
    free(path);
    return fine;
}

static void add_times(tree *tree, uint32_t to, const sampled_cell *cell, const sampled_split *split, bool leading)
{
    tare__stack_node *row = &tree->rows[to];
    tare__state_times more = {{0}};
    tare__analyze_sampled_times(split, cell->state, cell->wall_ns, cell->cpu_ns, &more);
    for (uint32_t i = 0; i < TARE__STATE_COUNT; i++)
        row->of.ns[i] += more.ns[i];
    row->samples += cell->samples;
    row->self_ns += cell->wall_ns;
    row->active_ns += leading ? cell->wall_ns : tare__analyze_active(&more);
}

static const char *thread_name(tree *tree, tare__arena *arena, uint32_t thread)
{
    const tare__sampled_thread_row *row = &tree->threads[thread];
    char text[96];
    if (row->name)
        return row->name;
    snprintf(text, sizeof text, "%s %" PRId64, row->main ? "main thread" : "thread", row->tid);
    return copied(arena, text);
}

static sampled_split split_of(const tree *tree, const stretch *cells)
{
    return tare__analyze_sampled_split(&tree->sampled->threads[tree->sampled->cells[cells->from].thread]);
}

static bool add_thread(tree *tree, tare__arena *arena, uint32_t process_row, uint32_t thread)
{
    const stretch *cells = &tree->stretches[thread];
    const char *name = thread_name(tree, arena, thread);
    bool no_stack = false;
    uint32_t row = name ? add_merged(tree, process_row, thread, TARE__NODE_THREAD, name) : TARE__NO_ROW;
    gather(tree, cells);
    bool fine = row != TARE__NO_ROW && choose_nodes(tree);
    for (size_t i = cells->from; i < cells->to && fine; i++) {
        const sampled_cell *cell = &tree->sampled->cells[i];
        no_stack |= !cell->node && cell->wall_ns > 0;
        if (cell->node && cell->wall_ns > 0 && tree->nearest[cell->node] != cell->node)
            tree->has_other[tree->nearest[cell->node]] = true;
    }
    fine = fine && add_frames(tree, row, thread);
    uint32_t without = fine && no_stack ? add_merged(tree, row, thread, TARE__NODE_NO_STACK, no_stack_name) : row;
    fine = fine && without != TARE__NO_ROW;
    sampled_split split = split_of(tree, cells);
    for (size_t i = cells->from; i < cells->to && fine; i++) {
        const sampled_cell *cell = &tree->sampled->cells[i];
        uint32_t nearest = tree->nearest[cell->node];
        uint32_t to = !cell->node ? without : nearest == cell->node ? tree->row[nearest] : tree->other_row[nearest];
        if (cell->wall_ns > 0)
            add_times(tree, to, cell, &split, tree->threads[thread].leading);
    }
    return fine;
}

/* ---- processes ------------------------------------------------------------------------------------------------ */
static void merge_thread(tree *tree, uint32_t to, uint32_t thread)
{
    const stretch *cells = &tree->stretches[thread];
    sampled_split split = split_of(tree, cells);
    for (size_t i = cells->from; i < cells->to; i++)
        add_times(tree, to, &tree->sampled->cells[i], &split, false);
}

/* "train.py --epochs 3 (4120)", "rank 1 · train.py --epochs 3 (4121)": in a narrow box the first letters matter. */
static const char *process_name(const tree *tree, const tare__analysis *analysis,
                                const tare__sampled_thread_row *thread)
{
    const tare__process_row *row =
        thread->process == TARE__NO_ROW ? NULL : &analysis->processes[thread->process];
    const tare__trace_process *process = row ? tare__trace_process_at(tree->work->trace, row->number) : NULL;
    char text[256], rank[32] = "";
    if (row && row->has_rank)
        snprintf(rank, sizeof rank, "rank %" PRIu64 " · ", row->rank);
    const char *command = NULL;
    if (process && process->arguments) {
        const char *program = tare__analyze_program(process);
        command = tare__analyze_command(analysis->arena, program,
                                        process->arguments_bytes - (size_t)(program - process->arguments));
        if (!command)
            return NULL;
    }
    if (command && command[0])
        snprintf(text, sizeof text, "%s%.180s (%" PRId64 ")", rank, command, thread->pid);
    else
        snprintf(text, sizeof text, "%sprocess %" PRId64, rank, thread->pid);
    return copied(analysis->arena, text);
}

/* Threads of the process of this one, which is its first; they are in the order of their table. */
static bool add_process(tree *tree, const tare__analysis *analysis, size_t first)
{
    const tare__sampled_thread_row *threads = tree->threads;
    const char *name = process_name(tree, analysis, &threads[first]);
    uint32_t row =
        name ? add_merged(tree, TARE__NO_ROW, TARE__NO_ROW, TARE__NODE_PROCESS, name) : TARE__NO_ROW, other = row;
    bool fine = row != TARE__NO_ROW, merged = false;
    for (size_t i = first; i < tree->n_threads && fine; i++) {
        merged |= threads[i].pid == threads[first].pid && !tree->stretches[i].kept;
        if (threads[i].pid == threads[first].pid && tree->stretches[i].kept)
            fine = add_thread(tree, analysis->arena, row, (uint32_t)i);
    }
    if (fine && merged)
        other = add_merged(tree, row, TARE__NO_ROW, TARE__NODE_OTHER, other_name);
    fine = fine && other != TARE__NO_ROW;
    for (size_t i = first; i < tree->n_threads && fine && merged; i++)
        if (threads[i].pid == threads[first].pid && !tree->stretches[i].kept)
            merge_thread(tree, other, (uint32_t)i);
    return fine;
}

typedef struct processes {
    tare__index index; /* by pid: the row of its first thread */
    bool *kept;        /* by that row: one of its threads has a row */
    uint32_t *first;   /* of each thread: that row */
} processes;

TARE__KEYED(has_pid, tare__sampled_thread_row, int64_t, a->pid == *b)

static bool find_processes(const tree *tree, processes *made)
{
    made->kept = calloc(tree->n_threads, sizeof *made->kept);
    made->first = calloc(tree->n_threads, sizeof *made->first);
    if (!made->kept || !made->first)
        return false;
    for (uint32_t i = 0; i < tree->n_threads; i++) {
        int64_t pid = tree->threads[i].pid;
        uint32_t hash = (uint32_t)tare__hash_mix(3, (uint64_t)pid);
        uint32_t first = tare__index_find(&made->index, hash, has_pid, tree->threads, &pid);
        if (first == TARE__INDEX_NONE && !tare__index_add(&made->index, hash, first = i))
            return false;
        made->first[i] = first;
        made->kept[first] |= tree->stretches[i].kept;
    }
    return true;
}

static bool add_processes(tree *tree, const tare__analysis *analysis)
{
    processes processes = {0};
    bool fine = find_processes(tree, &processes), merged = false;
    for (size_t i = 0; i < tree->n_threads && fine; i++) {
        merged |= !processes.kept[processes.first[i]];
        if (processes.first[i] == i && processes.kept[i])
            fine = add_process(tree, analysis, i);
    }
    uint32_t other =
        fine && merged ? add_merged(tree, TARE__NO_ROW, TARE__NO_ROW, TARE__NODE_OTHER, other_name) : 0;
    fine = fine && other != TARE__NO_ROW;
    for (size_t i = 0; i < tree->n_threads && fine && merged; i++)
        if (!processes.kept[processes.first[i]])
            merge_thread(tree, other, (uint32_t)i);
    tare__index_free(&processes.index);
    free(processes.kept);
    free(processes.first);
    return fine;
}

/* ---- the whole tree --------------------------------------------------------------------------------------------- */
static void add_totals(tree *tree)
{
    for (size_t i = tree->n; i-- > 0;) {
        tare__stack_node *row = &tree->rows[i];
        row->total_ns += row->self_ns;
        row->total_cpu_ns += row->of.ns[TARE__STATE_RUNNING];
        if (row->parent == TARE__NO_ROW)
            continue;
        tare__stack_node *parent = &tree->rows[row->parent];
        parent->total_ns += row->total_ns;
        parent->total_cpu_ns += row->total_cpu_ns;
        parent->active_ns += row->active_ns;
        parent->n_rows += 1 + row->n_rows;
    }
}

static bool allocate(tree *tree)
{
    size_t n = tree->from->n;
    tree->stretches = calloc(tree->n_threads, sizeof *tree->stretches);
    tree->total_ns = calloc(n, sizeof *tree->total_ns);
    tree->touched = calloc(n, sizeof *tree->touched);
    tree->nearest = calloc(n, sizeof *tree->nearest);
    tree->row = calloc(n, sizeof *tree->row);
    tree->other_row = calloc(n, sizeof *tree->other_row);
    tree->has_other = calloc(n, sizeof *tree->has_other);
    tree->first = calloc(n, sizeof *tree->first);
    tree->count = calloc(n, sizeof *tree->count);
    tree->kept = calloc(n, sizeof *tree->kept);
    return tree->stretches && tree->total_ns && tree->touched && tree->nearest && tree->row && tree->other_row &&
           tree->has_other && tree->first && tree->count && tree->kept;
}

static void release(tree *tree)
{
    free(tree->stretches);
    free(tree->total_ns);
    free(tree->touched);
    free(tree->nearest);
    free(tree->row);
    free(tree->other_row);
    free(tree->has_other);
    free(tree->first);
    free(tree->count);
    free(tree->kept);
    free(tree->rows);
}

/* Cells are sorted by thread. */
static void find_stretches(tree *tree)
{
    const sampled *sampled = tree->sampled;
    for (size_t i = 0, end; i < sampled->n_cells; i = end) {
        for (end = i; end < sampled->n_cells && sampled->cells[end].thread == sampled->cells[i].thread;)
            end++;
        tree->stretches[sampled->threads[sampled->cells[i].thread].row] = (stretch){i, end, false};
    }
}

int tare__analyze_stack_tree(const work *work, const sampled_nodes *nodes, tare__analysis *analysis)
{
    const sampled *sampled = work->sampled;
    tree tree = {.work = work,
                 .sampled = sampled,
                 .from = nodes,
                 .threads = analysis->sampled_threads,
                 .n_threads = analysis->n_sampled_threads};
    bool fine = allocate(&tree);
    if (fine) {
        find_stretches(&tree);
        choose_smallest(&tree);
        for (size_t i = 0; i < tree.n_threads; i++)
            tree.stretches[i].kept = tree.threads[i].leading || tree.threads[i].wall_ns >= tree.smallest_ns;
        fine = add_processes(&tree, analysis);
    }
    tare__stack_node *rows = fine ? tare__arena_alloc(analysis->arena, (tree.n + 1) * sizeof *rows) : NULL;
    if (rows) {
        add_totals(&tree);
        memcpy(rows, tree.rows, tree.n * sizeof *rows);
        analysis->stacks.nodes = rows;
        analysis->stacks.n = tree.n;
        analysis->stacks.smallest_ns = tree.smallest_ns;
    }
    release(&tree);
    return rows ? 0 : TARE_E_MEMORY;
}
