/* stacks_split: time of sampled threads by state, and the table of these threads. Counters know how long a thread was
 * on a CPU, but not at which line; states at the samples know the line, but only on average. Both are combined: sums of
 * a thread are those of its counters, the distribution within it is that of the samples.
 * Owned by the thread that analyzes. Must not know stacks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampled.h"

/* ---- counters and samples combined ----------------------------------------------------------------------- */
static bool is_on(uint32_t state)
{
    return state == TARE__STATE_RUNNING || state == TARE__STATE_RUNNABLE;
}

#define WINDOW_NS 5e8 /* enough samples, and much longer than what counters are late by */

void tare__analyze_open_window(sampled_thread *thread)
{
    thread->window = (sampled_window){.first = TARE__NO_CELL};
}

/* Which part of the time on or waiting for a CPU was on one: that of all samples in the window, of any stack. */
void tare__analyze_close_window(sampled *sampled, sampled_thread *thread)
{
    const sampled_window *of = &thread->window;
    double cpu = fmin(of->cpu_ns, of->wall_ns), queue = fmin(of->queue_ns, of->wall_ns - cpu);
    double counted = fmax(cpu + queue, of->on_ns), share = counted > 0 ? cpu / counted : 1;
    for (uint32_t at = of->first; at != TARE__NO_CELL; at = sampled->cells[at].next) {
        sampled_cell *cell = &sampled->cells[at];
        cell->cpu_ns += share * cell->open_ns;
        thread->cpu_of[is_on(cell->state)] += share * cell->open_ns;
        cell->open_ns = 0;
    }
    tare__analyze_open_window(thread);
}

void tare__analyze_add_to_window(sampled *sampled, sampled_thread *thread, uint32_t cell, const sampled_window *add)
{
    sampled_window *to = &thread->window;
    sampled_cell *in = &sampled->cells[cell];
    if (!(in->open_ns > 0) && add->wall_ns > 0) {
        in->next = to->first;
        to->first = cell;
    }
    in->open_ns += add->wall_ns;
    to->wall_ns += add->wall_ns;
    to->cpu_ns += add->cpu_ns;
    to->queue_ns += add->queue_ns;
    to->on_ns += add->on_ns;
    if (to->wall_ns >= WINDOW_NS)
        tare__analyze_close_window(sampled, thread);
}

/* Where the counters have more time on a CPU than the samples, a part of all waiting is moved there, and the reverse.
 * The time of each stack stays the same. */
sampled_split tare__analyze_sampled_split(const sampled_thread *thread)
{
    sampled_split split = {.on = 1};
    double wall = thread->wall_ns, on = 0, waits = 0;
    for (uint32_t i = 0; i < TARE__STATE_COUNT; i++)
        *(is_on(i) ? &on : &waits) += thread->state_ns[i];
    double cpu = fmin(thread->cpu_ns, wall), queue = fmin(thread->queue_ns, wall - cpu);
    /* Where the thread was running at its samples and the counters have less: time that a hypervisor or a CPU limit
     * took is in no counter. Samples of a thread that has just woken up do not count. */
    if (cpu + queue > 0)
        queue += fmax(0, on - cpu - queue - thread->idle_ns);
    double counted = cpu + queue;
    for (uint32_t i = 0; i < TARE__STATE_COUNT && waits > 0; i++)
        split.waits[i] = is_on(i) ? 0 : thread->state_ns[i] / waits;
    if (!(waits > 0))
        split.waits[TARE__STATE_OTHER] = 1;
    split.counted = counted > 0;
    if (!split.counted)
        return split;
    split.cpu = cpu / counted;
    if (counted < on)
        split.on = counted / on;
    else if (waits > 0)
        split.given = fmin((counted - on) / waits, 1);
    split.windows = (split.on * thread->cpu_of[1] + split.given * thread->cpu_of[0]) / fmin(counted, wall);
    return split;
}

/* The windows of the samples, such that the sum over the thread stays that of its counters. */
static double cpu_share(const sampled_split *split, double wall_ns, double cpu_ns)
{
    double share = wall_ns > 0 ? cpu_ns / wall_ns : 0;
    if (split->cpu < split->windows)
        return share * (split->cpu / split->windows);
    return split->windows < 1 ? 1 - (1 - share) * ((1 - split->cpu) / (1 - split->windows)) : split->cpu;
}

void tare__analyze_sampled_times(const sampled_split *split, uint32_t state, double wall_ns, double cpu_ns,
                                 tare__state_times *add)
{
    if (!split->counted) {
        add->ns[state] += wall_ns;
        return;
    }
    double on = wall_ns * (is_on(state) ? split->on : split->given), waits = wall_ns - on;
    double cpu = cpu_share(split, wall_ns, cpu_ns);
    add->ns[TARE__STATE_RUNNING] += on * cpu;
    add->ns[TARE__STATE_RUNNABLE] += on * (1 - cpu);
    if (!is_on(state))
        add->ns[state] += waits;
    for (uint32_t i = 0; i < TARE__STATE_COUNT && is_on(state); i++)
        add->ns[i] += waits * split->waits[i];
}

double tare__analyze_active(const tare__state_times *of)
{
    return of->ns[TARE__STATE_RUNNING] + of->ns[TARE__STATE_RUNNABLE] + of->ns[TARE__STATE_GIL] +
           of->ns[TARE__STATE_DISK];
}

/* ---- the leading thread ------------------------------------------------------------------------------------ */
#define ONLY_WAITS 0.9 /* share of its time; then a thread that works … */
#define WORKS      0.5 /* … for this share of that time leads instead */
#define OWN_CODE   0.1 /* … and runs own code for this part of it, if it is of the same process */

typedef struct candidate {
    tare__sampled_thread_row *row;
    uint64_t start_time;
    double own_ns; /* in code of the program, or called by it */
} candidate;

/* The main thread of the first process; without main threads, the first thread with the longest time. */
static bool is_before(const candidate *a, const candidate *b)
{
    if (a->row->main != b->row->main)
        return a->row->main;
    if (a->row->main && a->start_time != b->start_time)
        return a->start_time < b->start_time;
    if (!a->row->main && a->row->wall_ns != b->row->wall_ns)
        return a->row->wall_ns > b->row->wall_ns;
    return a->row->pid != b->row->pid ? a->row->pid < b->row->pid : a->row->tid < b->row->tid;
}

/* The time at which a process started may be unknown (0). */
static bool is_same_process(const candidate *a, const candidate *b)
{
    return a->row->pid == b->row->pid && (a->start_time == b->start_time || !a->start_time || !b->start_time);
}

/* A launcher waits for processes, sleeping or not; a main thread may wait for threads of its process. Waiting for data
 * from another process is part of the program: a loader's workers do not lead. */
static double waits_for(const candidate *first, const candidate *other)
{
    const double *ns = first->row->of.ns;
    bool same = is_same_process(first, other);
    return ns[TARE__STATE_CHILD] + ns[TARE__STATE_SLEEP] + (same ? ns[TARE__STATE_LOCK] : 0);
}

/* A thread that passes data to a pool of processes works a lot, but the program is elsewhere. */
static bool may_lead(const candidate *first, const candidate *other, double works)
{
    bool same = is_same_process(first, other);
    return !same || !(first->own_ns > 0) || other->own_ns >= OWN_CODE * works;
}

static const candidate *find_leading(const candidate *list, size_t n)
{
    const candidate *first = NULL, *leading = NULL;
    double longest = 0;
    for (size_t i = 0; i < n; i++)
        longest = list[i].row->main ? fmax(longest, list[i].row->wall_ns) : longest;
    for (size_t i = 0; i < n; i++) /* not a short program that a script starts first */
        if (!(list[i].row->main && list[i].row->wall_ns < WORKS * longest) && (!first || is_before(&list[i], first)))
            first = &list[i];
    leading = first;
    for (size_t i = 0; i < n; i++) {
        const candidate *other = &list[i];
        double works = tare__analyze_active(&other->row->of);
        if (waits_for(first, other) >= ONLY_WAITS * first->row->wall_ns && works >= WORKS * first->row->wall_ns &&
            may_lead(first, other, works) && works > (leading == first ? 0 : tare__analyze_active(&leading->row->of)))
            leading = other;
    }
    return leading;
}

/* ---- the table ------------------------------------------------------------------------------------------------ */
static uint32_t process_of(const tare__analysis *analysis, int64_t pid)
{
    for (size_t i = 0; i < analysis->n_processes; i++)
        if (analysis->processes[i].pid == pid)
            return (uint32_t)i;
    return TARE__NO_ROW;
}

static bool fill(const work *work, const tare__analysis *analysis, uint32_t number, const sampled_thread *from,
                 candidate *to)
{
    const tare__trace_thread *thread = tare__trace_thread_at(work->trace, number);
    sampled_split split = tare__analyze_sampled_split(from);
    bool named = thread && thread->name && thread->name[0];
    *to->row = (tare__sampled_thread_row){
        .pid = thread ? thread->pid : 0,
        .tid = thread ? thread->tid : 0,
        .name = named ? copied(analysis->arena, thread->name) : NULL,
        .process = thread ? process_of(analysis, thread->pid) : TARE__NO_ROW,
        .main = thread && thread->main,
        .samples = from->samples,
        .torn = from->torn,
        .from_ns = tare__trace_ns(work->trace, from->first),
        .to_ns = tare__trace_ns(work->trace, from->last),
        .wall_ns = from->wall_ns,
        .no_stack_ns = from->no_stack_ns,
        .gc_ns = from->gc_ns,
    };
    split.windows = split.cpu; /* of all its time */
    for (uint32_t i = 0; i < TARE__STATE_COUNT; i++)
        tare__analyze_sampled_times(&split, i, from->state_ns[i], split.cpu * from->state_ns[i], &to->row->of);
    to->row->active_ns = tare__analyze_active(&to->row->of);
    to->start_time = thread ? thread->start_time : 0;
    to->own_ns = from->own_ns;
    return !named || to->row->name;
}

typedef struct ordered {
    tare__sampled_thread_row row;
    uint32_t number;
} ordered;

TARE__ORDER(by_activity, ordered, TARE__FALLING(row.leading) TARE__FALLING(row.active_ns) TARE__FALLING(row.wall_ns)
            TARE__RISING(number))

static void add_up(tare__analysis *analysis, const tare__sampled_thread_row *rows, size_t n)
{
    tare__stack_tree *tree = &analysis->stacks;
    analysis->sampled_threads = rows;
    analysis->n_sampled_threads = n;
    tree->leading = n && rows[0].leading ? 0 : TARE__NO_ROW;
    for (size_t i = 0; i < n; i++) {
        tree->wall_ns += rows[i].wall_ns;
        tree->active_ns += rows[i].active_ns;
    }
}

int tare__analyze_sampled_threads(const work *work, sampled *sampled, const sampled_nodes *nodes,
                                  tare__analysis *analysis)
{
    for (size_t i = 0; i < sampled->n_cells; i++) {
        const sampled_cell *cell = &sampled->cells[i];
        bool own = nodes->nodes[cell->node].own_line != TARE__NO_ROW;
        sampled->threads[cell->thread].own_ns += own ? cell->wall_ns : 0;
    }
    size_t n = 0, most = (size_t)sampled->n_threads + 1;
    ordered *list = calloc(most, sizeof *list);
    candidate *candidates = calloc(most, sizeof *candidates);
    tare__sampled_thread_row *rows = tare__arena_alloc(analysis->arena, most * sizeof *rows);
    bool made = list && candidates && rows;
    for (uint32_t i = 1; i <= sampled->n_threads && made; i++) {
        if (!sampled->threads[i].samples)
            continue;
        list[n].number = i;
        candidates[n].row = &list[n].row;
        made = fill(work, analysis, i, &sampled->threads[i], &candidates[n]);
        n++;
    }
    const candidate *leading = made ? find_leading(candidates, n) : NULL;
    if (leading) {
        leading->row->leading = true;
        leading->row->active_ns = leading->row->wall_ns;
        qsort(list, n, sizeof *list, by_activity);
    }
    for (size_t i = 0; i < n && made; i++) {
        rows[i] = list[i].row;
        sampled->threads[list[i].number].row = (uint32_t)i;
    }
    if (made)
        add_up(analysis, rows, n);
    free(list);
    free(candidates);
    return made ? 0 : TARE_E_MEMORY;
}
