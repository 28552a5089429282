/* timeline: converts a trace to boxes for drawing: reads it once more and adds each span that ends to a box.
 * Owned by the calling thread; memory is bounded by the requested number of boxes.
 * Must not know output formats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boxes.h"

/* ---- names of lanes ------------------------------------------------------------------------------ */
/* Where the words begin that identify the process: "train.py" of "/usr/bin/python3 /srv/train.py",
 * "torch.distributed.run" of "python -m torch.distributed.run". */
const char *tare__analyze_program(const tare__trace_process *process)
{
    const char *arguments = process->arguments, *program = tare__last_part(arguments);
    const char *end = arguments + process->arguments_bytes, *next = arguments + strlen(arguments) + 1;
    if (strncmp(program, "python", 6) != 0 || next >= end)
        return program;
    if (strcmp(next, "-m") == 0 && next + 3 < end && next[3])
        return next + 3;
    return *next && *next != '-' ? tare__last_part(next) : program;
}

/* "train.py (12345)": for an interpreter, the script identifies the process. */
const char *tare__analyze_process_name(const work *work, uint32_t number, tare__arena *arena)
{
    const tare__trace_process *process = tare__trace_process_at(work->trace, number);
    char name[256];
    if (!process || !process->arguments || !process->arguments_bytes) {
        if (process && process->pid)
            snprintf(name, sizeof name, "process %lld", (long long)process->pid);
        else
            snprintf(name, sizeof name, "unknown process");
        return copied(arena, name);
    }
    const char *program = tare__analyze_program(process);
    char rank[32] = "";
    uint64_t of_job;
    if (tare__analyze_rank(work, number, &of_job))
        snprintf(rank, sizeof rank, "rank %llu · ", (unsigned long long)of_job);
    if (process->pid)
        snprintf(name, sizeof name, "%s%.180s (%lld)", rank, program, (long long)process->pid);
    else
        snprintf(name, sizeof name, "%s%.180s", rank, program);
    return copied(arena, name);
}

static const char *lane_name(const work *work, const lane *from, const char *process, tare__arena *arena)
{
    const tare__trace_stream *stream = from->stream ? tare__trace_stream_at(work->trace, from->stream) : NULL;
    char thread[300], name[700];
    if (!from->stream)
        snprintf(thread, sizeof thread, "%.280s", work->names.rows[from->track].text);
    else if (stream && stream->name && *stream->name)
        snprintf(thread, sizeof thread, "%.200s%s", stream->name, from->complete ? " (complete spans)" : "");
    else
        snprintf(thread, sizeof thread, "thread %lld%s", stream ? (long long)stream->tid : 0,
                 from->complete ? " (complete spans)" : "");
    snprintf(name, sizeof name, "%.280s · %s", process, thread);
    return copied(arena, name);
}

/* ---- order of lanes ------------------------------------------------------------------------------ */
typedef struct ordered {
    const lane *lane;
    uint32_t process; /* row */
    size_t at;        /* in order of appearance */
} ordered;

#define IS_THREAD(row) ((row)->lane->stream != 0)
TARE__ORDER(by_place, ordered, TARE__RISING(process) TARE__FALLING_BY(IS_THREAD) TARE__RISING(lane->stream)
            TARE__RISING(at))

/* ---- result -------------------------------------------------------------------------------------- */
typedef struct maker {
    const work *work;
    const timeline *from;
    tare__timeline *to;
    tare__arena *arena;
    ordered *lanes;
    uint32_t *name_of; /* canon: name + 1 */
    const char **names;
    double tick_ns;
} maker;

static void fill_lane(const maker *maker, const ordered *ordered, tare__lane *lane)
{
    const struct lane *from = ordered->lane;
    const tare__trace_process *process = tare__trace_process_at(maker->work->trace, from->process);
    const tare__trace_stream *stream = from->stream ? tare__trace_stream_at(maker->work->trace, from->stream) : NULL;
    uint32_t kind = from->stream ? TARE__NAME_TRACK : maker->work->names.rows[from->track].kind;
    *lane = (tare__lane){
        .process = tare__analyze_process_name(maker->work, from->process, maker->arena),
        .pid = process ? process->pid : 0,
        .tid = stream ? stream->tid : 0,
        .track_kind = kind > TARE__NAME_TRACK ? kind - TARE__NAME_TRACK : from->stream ? 0 : TARE_TRACK_OTHER,
        .depth = (uint32_t)from->n_levels,
        .spans = from->spans,
    };
    lane->name = lane_name(maker->work, from, lane->process, maker->arena);
}

static int make_lanes(maker *maker)
{
    const timeline *from = maker->from;
    size_t n = from->n_lanes;
    tare__lane *lanes = tare__arena_alloc(maker->arena, (n + 1) * sizeof *lanes);
    maker->lanes = calloc(n + 1, sizeof *maker->lanes);
    if (!lanes || !maker->lanes)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        maker->lanes[i] = (ordered){
            &from->lanes[i], tare__analyze_process_row(maker->work, from->lanes[i].process), i};
    qsort(maker->lanes, n, sizeof *maker->lanes, by_place);
    for (size_t i = 0; i < n; i++)
        fill_lane(maker, &maker->lanes[i], &lanes[i]);
    maker->to->lanes = lanes;
    maker->to->n_lanes = n;
    return 0;
}

static uint32_t name_at(maker *maker, uint32_t canon)
{
    if (!maker->name_of[canon]) {
        maker->names[maker->to->n_names++] = copied(maker->arena, maker->work->names.rows[canon].text);
        maker->name_of[canon] = (uint32_t)maker->to->n_names;
    }
    return maker->name_of[canon] - 1;
}

static void fill_box(const maker *maker, const box *from, tare__box *box)
{
    double at = tare__trace_ns(maker->work->trace, from->begin);
    double lasts = tare__trace_ns(maker->work->trace, from->end) - at;
    double busy = (double)from->busy * maker->tick_ns;
    box->calls = from->calls;
    box->at_ns = at;
    box->lasts_ns = lasts;
    box->busy_ns = from->calls == 1 || busy > lasts ? lasts : busy;
    box->mixed = from->mixed;
    maker->to->spans += from->calls;
    if (from->calls > 1)
        maker->to->merged_spans += from->calls;
}

static int make_boxes(maker *maker)
{
    const boxes *from = &maker->from->boxes;
    tare__timeline *to = maker->to;
    tare__box *boxes = tare__arena_alloc(maker->arena, ((size_t)from->n + 1) * sizeof *boxes);
    if (!boxes)
        return TARE_E_MEMORY;
    for (uint32_t lane = 0; lane < to->n_lanes; lane++)
        for (uint32_t depth = 0; depth < maker->lanes[lane].lane->n_levels; depth++) {
            const level *level = &from->levels[maker->lanes[lane].lane->levels[depth]];
            for (uint32_t at = level->first; at != NO_BOX; at = from->pool[at].next) {
                tare__box *box = &boxes[to->n_boxes++];
                *box = (tare__box){.lane = lane, .depth = depth,
                                   .name = name_at(maker, tare__box_name(&from->pool[at]))};
                fill_box(maker, &from->pool[at], box);
            }
        }
    to->boxes = boxes;
    to->resolution_ns = (double)from->resolution * maker->tick_ns;
    return 0;
}

static int make_line(const maker *maker, const line *from, tare__counter_line *line)
{
    tare__metric_point *points = tare__arena_alloc(maker->arena, LINE_BUCKETS * sizeof *points);
    *line = (tare__counter_line){copied(maker->arena, maker->work->names.rows[from->name].text), points, 0};
    if (!points)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < LINE_BUCKETS; i++) {
        const line_bucket *bucket = &from->buckets[i];
        if (!bucket->n)
            continue;
        double at = tare__trace_ns(maker->work->trace, bucket->first);
        points[line->n_points++] =
            (tare__metric_point){at, tare__trace_ns(maker->work->trace, bucket->last) - at, bucket->min,
                                 bucket->sum / (double)bucket->n, bucket->max};
    }
    return 0;
}

TARE__ORDER(by_line_name, tare__counter_line, TARE__BY_TEXT(name))

static int make_lines(const maker *maker)
{
    size_t n = maker->from->n_lines;
    tare__counter_line *lines = tare__arena_alloc(maker->arena, (n + 1) * sizeof *lines);
    int status = lines ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < n && !status; i++)
        status = make_line(maker, maker->from->lines[i], &lines[i]);
    if (status)
        return status;
    qsort(lines, n, sizeof *lines, by_line_name);
    maker->to->counters = lines;
    maker->to->n_counters = n;
    return 0;
}

static uint64_t all_spans(const work *work)
{
    uint64_t spans = work->stray.spans + work->stray.complete;
    for (size_t i = 0; i < work->n_streams; i++)
        spans += work->streams[i]->spans + work->streams[i]->complete;
    return spans;
}

static int make_result(const work *work, const timeline *from, tare__timeline *to)
{
    maker maker = {.work = work, .from = from, .to = to, .arena = to->arena};
    maker.tick_ns = tare__trace_tick_ns(work->trace);
    maker.name_of = calloc(work->names.n, sizeof *maker.name_of);
    maker.names = tare__arena_alloc(to->arena, work->names.n * sizeof *maker.names);
    int status = maker.name_of && maker.names ? 0 : TARE_E_MEMORY;
    if (!status)
        status = make_lanes(&maker);
    if (!status)
        status = make_boxes(&maker);
    if (!status)
        status = make_lines(&maker);
    free(maker.lanes);
    free(maker.name_of);
    to->names = maker.names;
    uint64_t all = all_spans(work);
    to->left_out_spans = all > to->spans ? all - to->spans : 0;
    return tare__arena_failed(to->arena) ? TARE_E_MEMORY : status;
}

/* ---- entry point --------------------------------------------------------------------------------- */
static tare__timeline *new_timeline(void)
{
    tare__arena *arena;
    tare__timeline *made = tare__arena_start(sizeof *made, &arena);
    if (made)
        made->arena = arena;
    return made;
}

void tare__timeline_free(tare__timeline *timeline)
{
    if (timeline)
        tare__arena_free(timeline->arena);
}

int tare__analyze_timeline(struct tare__trace *trace, size_t boxes_max, tare__timeline **result, tare__error *error)
{
    *result = NULL;
    int status = tare__trace_prescan(trace, error);
    if (status)
        return status;
    timeline state = {.n_lanes = 0};
    work work = {.trace = trace, .timeline = &state, .watched = true};
    tare__timeline *made = new_timeline();
    status = made ? tare__analyze_start_work(&work) : TARE_E_MEMORY;
    if (!status)
        status = tare__lanes_init(&state, &work, boxes_max);
    bool reported = false;
    if (!status) {
        status = tare__analyze_read(&work, error);
        reported = status != 0;
    }
    if (!status)
        status = make_result(&work, &state, made);
    if (!status) {
        status = tare__analyze_sampled_lanes(&work, boxes_max / 8, made, error);
        reported = status && status != TARE_E_MEMORY;
    }
    if (status && !reported)
        tare__fail(error, status, "out of memory while drawing %s", tare__trace_path(trace));
    tare__lanes_free(&state);
    tare__analyze_free_work(&work);
    if (status)
        tare__timeline_free(made);
    else
        *result = made;
    return status;
}

/* ---- open spans ---------------------------------------------------------------------------------- */
typedef struct found {
    const tare__box *top, *inner; /* at the instant, outermost and innermost */
} found;

/* The busier lane is the one whose outermost box has the larger share of busy time; then the one with more open
 * spans; then the one with more spans. */
static bool is_busier(const tare__timeline *timeline, const found *a, const found *b)
{
    if (!b->top)
        return true;
    const tare__lane *left = &timeline->lanes[a->top->lane], *right = &timeline->lanes[b->top->lane];
    if ((left->track_kind == 0) != (right->track_kind == 0))
        return left->track_kind == 0; /* prefer a thread to the tracks of its asynchronous work */
    double left_full = a->top->lasts_ns > 0 ? a->top->busy_ns / a->top->lasts_ns : 0;
    double right_full = b->top->lasts_ns > 0 ? b->top->busy_ns / b->top->lasts_ns : 0;
    if (left_full != right_full)
        return left_full > right_full;
    if (a->inner->depth != b->inner->depth)
        return a->inner->depth > b->inner->depth;
    return left->spans > right->spans;
}

tare__open_at tare__timeline_open_at(const tare__timeline *timeline, double at_ns)
{
    found best = {NULL, NULL}, here = {NULL, NULL};
    for (size_t i = 0; i <= timeline->n_boxes; i++) {
        const tare__box *box = i < timeline->n_boxes ? &timeline->boxes[i] : NULL;
        if (here.top && (!box || box->lane != here.top->lane)) {
            if (is_busier(timeline, &here, &best))
                best = here;
            here = (found){NULL, NULL};
        }
        if (box && box->at_ns <= at_ns && at_ns <= box->at_ns + box->lasts_ns) {
            here.top = here.top ? here.top : box;
            here.inner = box;
        }
    }
    if (!best.inner)
        return (tare__open_at){NULL, TARE__NO_ROW};
    return (tare__open_at){timeline->names[best.inner->name], TARE__NO_ROW};
}
