/* stacks_lanes: sampled threads over time, for the timeline: of each thread its state, the innermost function of own
 * code, and the most frequent stack, as boxes that are merged where there are too many.
 * Owned by the thread that analyzes; memory is bounded by the number of boxes.
 * Must not know spans, nor output formats. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boxes.h"
#include "sampled.h"

#define LANES_MAX 64u /* threads with most active time */
#define LEVELS    3u  /* state, function, stack */

typedef struct run { /* samples in a row with the same name */
    uint32_t name;
    uint64_t begin, end; /* end 0: none */
} run;

typedef struct sampled_lane {
    uint32_t thread; /* number */
    double active_ns;
    run runs[LEVELS];
    uint32_t levels[LEVELS];
} sampled_lane;

typedef struct drawing {
    const work *work;
    sampled_nodes nodes;
    boxes shown, stacks; /* of levels 0 and 1; of level 2: each has a resolution of its own */
    sampled_lane lanes[LANES_MAX];
    uint32_t n_lanes;
    uint32_t *lane_of;   /* thread: lane + 1 */
    uint32_t *label_of;  /* by function: label + 1 */
    tare__intern *labels;
    double tick_ns;
} drawing;

/* ---- lanes -------------------------------------------------------------------------------------------------- */
TARE__ORDER(by_active, sampled_lane, TARE__FALLING(active_ns) TARE__RISING(thread))

static int choose_lanes(drawing *to)
{
    const sampled *sampled = to->work->sampled;
    sampled_lane *all = calloc((size_t)sampled->n_threads + 1, sizeof *all);
    size_t n = 0;
    if (!all)
        return TARE_E_MEMORY;
    for (uint32_t i = 1; i <= sampled->n_threads; i++) {
        const double *ns = sampled->threads[i].state_ns;
        if (sampled->threads[i].samples)
            all[n++] = (sampled_lane){.thread = i, .active_ns = ns[TARE__STATE_RUNNING] + ns[TARE__STATE_RUNNABLE] +
                                                                ns[TARE__STATE_GIL] + ns[TARE__STATE_DISK] +
                                                                1e-6 * sampled->threads[i].wall_ns};
    }
    if (n)
        qsort(all, n, sizeof *all, by_active);
    to->n_lanes = n < LANES_MAX ? (uint32_t)n : LANES_MAX;
    for (uint32_t i = 0; i < to->n_lanes; i++) {
        to->lanes[i] = all[i];
        to->lane_of[all[i].thread] = i + 1;
        for (uint32_t level = 0; level < LEVELS; level++)
            to->lanes[i].levels[level] = tare__boxes_add_level(level < 2 ? &to->shown : &to->stacks);
    }
    free(all);
    return 0;
}

/* ---- boxes ---------------------------------------------------------------------------------------------------- */
static void end_run(drawing *to, sampled_lane *lane, uint32_t level)
{
    run *run = &lane->runs[level];
    boxes *boxes = level < 2 ? &to->shown : &to->stacks;
    uint64_t last = boxes->levels[lane->levels[level]].end;
    uint64_t begin = run->begin < last ? last : run->begin;
    if (run->end > begin)
        tare__boxes_add(boxes, lane->levels[level], run->name, begin, run->end);
    run->end = 0;
}

static void extend(drawing *to, sampled_lane *lane, uint32_t level, const run *more)
{
    run *run = &lane->runs[level];
    uint64_t slack = (more->end - more->begin) / 4;
    if (run->end && run->name == more->name && more->begin <= run->end + slack && more->end >= run->end) {
        run->end = more->end;
        return;
    }
    if (run->end)
        end_run(to, lane, level);
    *run = *more;
}

/* "get · fetch.py". TARE__NO_ROW: out of memory. */
static uint32_t label_of(drawing *to, uint32_t function)
{
    if (to->label_of[function])
        return to->label_of[function] - 1;
    const sampled_function *from = &to->nodes.functions[function];
    char text[300];
    snprintf(text, sizeof text, "%.200s%s%.80s", from->name, from->file ? " · " : "",
             from->file ? tare__last_part(from->file) : "");
    uint32_t id = tare__intern_add(to->labels, text, strlen(text));
    if (id == TARE__INTERN_NONE)
        return TARE__NO_ROW;
    to->label_of[function] = id + 1;
    return id;
}

#define LEAST_PART 8 /* of a sample's time, from which a part of it is drawn */

/* A sample that the kernel takes after some CPU time finds its thread running, and stands for the wait for a CPU before
 * that, too: by the counters, its time has two parts. */
static void draw_state(drawing *to, sampled_lane *lane, const tare__stack_sample *sample, const run *whole)
{
    double counted = (double)sample->cpu_ns + (double)sample->queue_ns;
    uint64_t lasts = whole->end - whole->begin;
    bool runs = whole->name == TARE__STATE_RUNNING;
    double share = counted > 0 ? (double)(runs ? sample->cpu_ns : sample->queue_ns) / counted : 1; /* of its state */
    uint64_t later = (uint64_t)(share * (double)lasts);
    if ((!runs && whole->name != TARE__STATE_RUNNABLE) || later < lasts / LEAST_PART ||
        lasts - later < lasts / LEAST_PART) {
        extend(to, lane, 0, whole);
        return;
    }
    uint32_t before = runs ? TARE__STATE_RUNNABLE : TARE__STATE_RUNNING;
    extend(to, lane, 0, &(run){before, whole->begin, whole->end - later});
    extend(to, lane, 0, &(run){whole->name, whole->end - later, whole->end});
}

static int draw_sample(drawing *to, const tare__stack_sample *sample)
{
    uint32_t number = sample->thread <= to->work->sampled->n_threads ? sample->thread : 0;
    sampled_lane *lane = number && to->lane_of[number] ? &to->lanes[to->lane_of[number] - 1] : NULL;
    uint64_t lasts = to->tick_ns > 0 ? (uint64_t)((double)sample->wall_ns / to->tick_ns) : 0;
    if (!lane || !lasts)
        return 0;
    uint64_t begin = sample->ticks > lasts ? sample->ticks - lasts : 0;
    uint32_t stacks = tare__trace_stack_count(to->work->trace);
    uint32_t node = sample->stack <= stacks ? to->nodes.node_of[sample->stack] : 0;
    const sampled_node *at = &to->nodes.nodes[node];
    uint32_t function = at->own_line != TARE__NO_ROW ? to->nodes.lines[at->own_line].function : at->function;
    uint32_t label = label_of(to, function);
    if (label == TARE__NO_ROW)
        return TARE_E_MEMORY;
    const uint32_t names[LEVELS] = {tare__analyze_sample_state(sample), label, node};
    draw_state(to, lane, sample, &(run){names[0], begin, sample->ticks});
    for (uint32_t level = 1; level < LEVELS; level++)
        extend(to, lane, level, &(run){names[level], begin, sample->ticks});
    return 0;
}

static int draw_samples(void *context, const tare__stack_sample *samples, uint32_t n)
{
    int status = 0;
    for (uint32_t i = 0; i < n && !status; i++)
        status = draw_sample(context, &samples[i]);
    return status;
}

/* ---- result ----------------------------------------------------------------------------------------------------- */
static const char *lane_name(const drawing *from, const tare__trace_thread *thread, tare__arena *arena)
{
    size_t n;
    const tare__trace_process *processes = tare__trace_processes(from->work->trace, &n);
    const char *process = NULL;
    char name[512], id[48];
    for (size_t i = 0; i < n && !process; i++)
        if (processes[i].pid == thread->pid)
            process = tare__analyze_process_name(from->work, processes[i].number, arena);
    snprintf(id, sizeof id, "thread %" PRId64, thread->tid);
    if (process)
        snprintf(name, sizeof name, "%.280s · %.100s", process, thread->name && *thread->name ? thread->name : id);
    else
        snprintf(name, sizeof name, "process %" PRId64 " · %.100s", thread->pid,
                 thread->name && *thread->name ? thread->name : id);
    return copied(arena, name);
}

static bool make_lanes(const drawing *from, tare__timeline *to)
{
    tare__lane *lanes = tare__arena_alloc(to->arena, ((size_t)from->n_lanes + 1) * sizeof *lanes);
    for (uint32_t i = 0; lanes && i < from->n_lanes; i++) {
        const tare__trace_thread *thread = tare__trace_thread_at(from->work->trace, from->lanes[i].thread);
        static const tare__trace_thread none = {.name = NULL};
        thread = thread ? thread : &none;
        lanes[i] = (tare__lane){.name = lane_name(from, thread, to->arena),
                                .pid = thread->pid,
                                .tid = thread->tid,
                                .depth = 2,
                                .spans = from->work->sampled->threads[from->lanes[i].thread].samples};
    }
    to->sampled_lanes = lanes;
    to->n_sampled_lanes = from->n_lanes;
    return lanes;
}

static void fill_box(const drawing *from, const box *box, tare__box *to)
{
    to->at_ns = tare__trace_ns(from->work->trace, box->begin);
    to->lasts_ns = tare__trace_ns(from->work->trace, box->end) - to->at_ns;
    double busy = (double)box->times[0] * from->tick_ns;
    for (uint32_t i = 1; i < box->n_names; i++)
        busy = (double)box->times[i] * from->tick_ns > busy ? (double)box->times[i] * from->tick_ns : busy;
    to->calls = box->calls;
    to->busy_ns = box->calls == 1 || busy > to->lasts_ns ? to->lasts_ns : busy; /* of the name that is shown */
    to->mixed = box->mixed;
    to->name = tare__box_name(box);
}

static tare__box *make_boxes(const drawing *from, tare__timeline *to)
{
    size_t most = (size_t)from->shown.n + from->stacks.n + 1;
    tare__box *rows = tare__arena_alloc(to->arena, most * sizeof *rows);
    for (uint32_t lane = 0; rows && lane < from->n_lanes; lane++)
        for (uint32_t depth = 0; depth < LEVELS; depth++) {
            const boxes *boxes = depth < 2 ? &from->shown : &from->stacks;
            const level *level = &boxes->levels[from->lanes[lane].levels[depth]];
            for (uint32_t at = level->first; at != NO_BOX; at = boxes->pool[at].next) {
                tare__box *box = &rows[to->n_sampled_boxes++];
                *box = (tare__box){.lane = lane, .depth = depth};
                fill_box(from, &boxes->pool[at], box);
            }
        }
    to->sampled_boxes = rows;
    return rows;
}

static bool make_labels(const drawing *from, tare__timeline *to)
{
    uint32_t n = tare__intern_count(from->labels);
    const char **labels = tare__arena_alloc(to->arena, ((size_t)n + 1) * sizeof *labels);
    for (uint32_t i = 0; labels && i < n; i++)
        labels[i] = copied(to->arena, tare__intern_text(from->labels, i, NULL));
    to->sampled_names = labels;
    to->n_sampled_names = n;
    return labels;
}

/* Only frames of stacks that are in a box; [0] is none. Callers have smaller numbers. */
static bool make_frames(const drawing *from, tare__timeline *to, tare__box *boxes)
{
    uint32_t *number = calloc(from->nodes.n, sizeof *number), n = 1;
    for (size_t i = 0; number && i < to->n_sampled_boxes; i++)
        for (uint32_t at = to->sampled_boxes[i].depth == 2 ? to->sampled_boxes[i].name : 0; at && !number[at];
             at = from->nodes.nodes[at].caller)
            number[at] = 1;
    for (size_t i = 1; number && i < from->nodes.n; i++)
        number[i] = number[i] ? n++ : 0;
    tare__sampled_frame *frames = number ? tare__arena_alloc(to->arena, n * sizeof *frames) : NULL;
    if (frames)
        frames[0] = (tare__sampled_frame){.name = "(no stack)"};
    for (size_t i = 1; frames && i < from->nodes.n; i++) {
        const sampled_node *node = &from->nodes.nodes[i];
        const sampled_function *function = &from->nodes.functions[node->function];
        if (number[i])
            frames[number[i]] = (tare__sampled_frame){number[node->caller], node->line, function->name, function->file};
    }
    for (size_t i = 0; frames && i < to->n_sampled_boxes; i++)
        if (to->sampled_boxes[i].depth == 2)
            boxes[i].name = number[boxes[i].name];
    free(number);
    to->sampled_frames = frames;
    to->n_sampled_frames = frames ? n : 0;
    return frames;
}

static int draw(drawing *to, size_t boxes_max, tare__timeline *made, tare__error *error)
{
    const tare__replay_visitor visitor = {.context = to, .stacks = draw_samples};
    int status = tare__analyze_sampled_nodes(to->work, to->work->sampled, made->arena, &to->nodes);
    if (status)
        return status;
    to->lane_of = calloc((size_t)to->work->sampled->n_threads + 1, sizeof *to->lane_of);
    to->label_of = calloc(to->nodes.n_functions, sizeof *to->label_of);
    to->labels = tare__intern_new();
    if (!to->lane_of || !to->label_of || !to->labels || tare__boxes_init(&to->shown, boxes_max) ||
        tare__boxes_init(&to->stacks, boxes_max / 2) || choose_lanes(to))
        return TARE_E_MEMORY;
    status = tare__trace_replay(to->work->trace, &visitor, error);
    for (uint32_t i = 0; i < to->n_lanes && !status; i++)
        for (uint32_t level = 0; level < LEVELS; level++)
            end_run(to, &to->lanes[i], level);
    if (status)
        return status;
    tare__box *rows = make_lanes(to, made) && make_labels(to, made) ? make_boxes(to, made) : NULL;
    return rows && make_frames(to, made, rows) ? 0 : TARE_E_MEMORY;
}

int tare__analyze_sampled_lanes(const work *work, size_t boxes_max, tare__timeline *made, tare__error *error)
{
    if (!work->sampled || !work->sampled->n_cells)
        return 0;
    drawing *to = calloc(1, sizeof *to);
    if (!to)
        return TARE_E_MEMORY;
    to->work = work;
    to->tick_ns = tare__trace_tick_ns(work->trace);
    int status = draw(to, boxes_max, made, error);
    tare__analyze_free_sampled_nodes(&to->nodes);
    tare__boxes_free(&to->shown);
    tare__boxes_free(&to->stacks);
    tare__intern_free(to->labels);
    free(to->lane_of);
    free(to->label_of);
    free(to);
    return status;
}
