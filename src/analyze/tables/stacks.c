/* stacks: the pass over the samples of stacks: adds up the time of each thread, stack and state. Memory grows with the
 * number of different stacks, not with the number of samples.
 * Owned by the thread that analyzes.
 * Must not know what a stack consists of. */
#include <stdlib.h>

#include "sampled.h"

#define CELLS_MAX ((size_t)1 << 21) /* further stacks count as samples without a stack */
#define IDLE      0.1 /* on or waiting for a CPU for less than this part: it was waiting, and has just woken up */

int tare__analyze_start_stacks(work *work)
{
    uint32_t n = tare__trace_thread_count(work->trace);
    if (!n)
        return 0;
    sampled *made = calloc(1, sizeof *made);
    sampled_thread *threads = made ? calloc((size_t)n + 1, sizeof *threads) : NULL;
    work->sampled = made;
    if (!threads)
        return TARE_E_MEMORY;
    made->threads = threads;
    made->n_threads = n;
    for (uint32_t i = 0; i <= n; i++) {
        threads[i].last_cell = TARE__NO_CELL;
        threads[i].row = TARE__NO_ROW;
        tare__analyze_open_window(&threads[i]);
    }
    return 0;
}

void tare__analyze_free_stacks(work *work)
{
    if (!work->sampled)
        return;
    tare__index_free(&work->sampled->index);
    free(work->sampled->cells);
    free(work->sampled->threads);
    free(work->sampled);
    work->sampled = NULL;
}

TARE__SAME(is_cell, sampled_cell, TARE__EQUAL(thread) && TARE__EQUAL(stack) && TARE__EQUAL(state) && TARE__EQUAL(path))

/* TARE__NO_CELL: out of memory. */
static uint32_t find_cell(sampled *to, sampled_cell key)
{
    uint32_t hash = (uint32_t)tare__hash_mix(tare__hash_mix(key.thread, key.stack), key.state);
    hash = key.path ? (uint32_t)tare__hash_mix(hash, key.path) : hash;
    uint32_t row = tare__index_find(&to->index, hash, is_cell, to->cells, &key);
    if (row != TARE__INDEX_NONE)
        return row;
    if (to->n_cells >= CELLS_MAX && (key.stack || key.path)) {
        key.stack = key.path = 0;
        return find_cell(to, key);
    }
    if (!tare__array_fit(&to->cells, &to->cells_room, to->n_cells + 1, sizeof *to->cells) ||
        !tare__index_add(&to->index, hash, (uint32_t)to->n_cells))
        return TARE__NO_CELL;
    to->cells[to->n_cells] = key;
    return (uint32_t)to->n_cells++;
}

/* A state that could not be read is derived from the counters. */
uint32_t tare__analyze_sample_state(const tare__stack_sample *sample)
{
    if (sample->state == TARE__STATE_UNKNOWN)
        return sample->cpu_ns && sample->cpu_ns >= sample->wall_ns / 2 ? TARE__STATE_RUNNING : TARE__STATE_OTHER;
    return sample->state < TARE__STATE_COUNT ? sample->state : TARE__STATE_OTHER;
}

/* The part of the sample's time that is in the window, if only a part of the run is analyzed. */
static double share_in(const work *work, const tare__stack_sample *sample)
{
    const window *part = &work->window;
    double tick_ns = tare__trace_tick_ns(work->trace), wall = tick_ns > 0 ? (double)sample->wall_ns / tick_ns : 0;
    double to = (double)sample->ticks, from = to - wall;
    if (from >= (double)part->from && to <= (double)part->to)
        return 1;
    from = from < (double)part->from ? (double)part->from : from;
    to = to > (double)part->to ? (double)part->to : to;
    return to > from && wall > 0 ? (to - from) / wall : 0;
}

static uint32_t path_of(const work *work, size_t number)
{
    return work->joined && number < work->joined->n ? work->joined->of_sample[number] : 0;
}

static bool is_kept(const work *work, const tare__stack_sample *sample, uint32_t path)
{
    const kept_samples *kept = work->filter;
    return kept->threads[sample->thread] && (!kept->within || kept->paths[path]) &&
           (!kept->gpu_idle || tare__analyze_gpus_idle(work, sample->ticks));
}

static int take_sample(work *work, sampled *to, const tare__stack_sample *sample)
{
    uint32_t path = path_of(work, to->taken++);
    double share = work->window.to ? share_in(work, sample) : 1;
    if (!sample->thread || sample->thread > to->n_threads || !(share > 0) ||
        (work->filter && !is_kept(work, sample, path)))
        return 0;
    sampled_thread *thread = &to->threads[sample->thread];
    sampled_cell key = {
        .thread = sample->thread, .stack = sample->stack, .state = tare__analyze_sample_state(sample), .path = path};
    uint32_t cell = thread->last_cell;
    if (cell == TARE__NO_CELL || !is_cell(to->cells, cell, &key))
        cell = find_cell(to, key);
    if (cell == TARE__NO_CELL)
        return TARE_E_MEMORY;
    thread->last_cell = cell;
    double wall_ns = (double)sample->wall_ns * share, idle_ns = 0;
    to->cells[cell].samples++;
    to->cells[cell].wall_ns += wall_ns;
    if (!thread->samples++) {
        double ticks = (double)sample->wall_ns / tare__trace_tick_ns(work->trace);
        thread->first = ticks < (double)sample->ticks ? sample->ticks - (uint64_t)ticks : 0;
    }
    thread->last = sample->ticks > thread->last ? sample->ticks : thread->last;
    thread->torn += sample->flags & TARE__SAMPLE_TORN ? 1 : 0;
    thread->wall_ns += wall_ns;
    thread->cpu_ns += (double)sample->cpu_ns * share;
    thread->queue_ns += (double)sample->queue_ns * share;
    thread->gc_ns += sample->flags & TARE__SAMPLE_IN_GC ? wall_ns : 0;
    thread->no_stack_ns += to->cells[cell].stack ? 0 : wall_ns;
    thread->state_ns[key.state] += wall_ns;
    /* Without any CPU time since the last sample, and ready at that one as well, it waits for a CPU all the time. */
    bool on = key.state == TARE__STATE_RUNNING || key.state == TARE__STATE_RUNNABLE;
    if (on && (double)sample->cpu_ns + (double)sample->queue_ns < IDLE * (double)sample->wall_ns &&
        (sample->cpu_ns || !thread->was_on))
        idle_ns = wall_ns;
    thread->idle_ns += idle_ns;
    thread->was_on = on;
    const sampled_window add = {.wall_ns = wall_ns, .cpu_ns = (double)sample->cpu_ns * share,
                                .queue_ns = (double)sample->queue_ns * share, .on_ns = on ? wall_ns - idle_ns : 0};
    tare__analyze_add_to_window(to, thread, cell, &add);
    return 0;
}

int tare__analyze_stack_samples(void *context, const tare__stack_sample *samples, uint32_t n)
{
    work *work = context;
    int status = 0;
    for (uint32_t i = 0; i < n && work->sampled && !status; i++)
        status = take_sample(work, work->sampled, &samples[i]);
    return status;
}

int tare__analyze_stacks_table(work *work, tare__analysis *analysis)
{
    sampled_nodes nodes = {0};
    analysis->stacks.leading = TARE__NO_ROW;
    if (!work->sampled || !work->sampled->n_cells)
        return 0;
    for (uint32_t i = 1; i <= work->sampled->n_threads; i++)
        tare__analyze_close_window(work->sampled, &work->sampled->threads[i]);
    int status = tare__analyze_sampled_nodes(work, work->sampled, analysis->arena, &nodes);
    if (!status)
        status = tare__analyze_sampled_threads(work, work->sampled, &nodes, analysis);
    if (!status)
        status = tare__analyze_sampled_tables(work->sampled, &nodes, analysis);
    if (!status)
        status = tare__analyze_uses(work, &nodes, analysis);
    bool shown = !work->window.to || work->whole_tree; /* no rule reads these */
    if (!status && shown)
        status = tare__analyze_span_lines(analysis);
    if (!status && shown)
        status = tare__analyze_sampled_imports(work->sampled, &nodes, analysis);
    if (!status && shown)
        status = tare__analyze_stack_tree(work, &nodes, analysis);
    tare__analyze_free_sampled_nodes(&nodes);
    return status;
}
