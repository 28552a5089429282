/* lanes: assigns spans to lanes: nested spans to their thread's lane by depth, complete spans to the first free level
 * of their track's lane; and counters to lines. Owned by the thread that analyzes.
 * Must not know how boxes are merged. */
#include <stdlib.h>
#include <string.h>

#include "boxes.h"

#define LINE_WIDTH 1024u /* ticks, initially */

int tare__lanes_init(timeline *timeline, const work *work, size_t boxes_max)
{
    const tare__trace_run *run = tare__trace_run_of(work->trace);
    int status = tare__boxes_init(&timeline->boxes, boxes_max);
    timeline->lines = calloc(LINES_MAX, sizeof *timeline->lines);
    timeline->line_of = calloc(work->names.n + 1, sizeof *timeline->line_of);
    timeline->start = run->start_ticks;
    bool all = timeline->lines && timeline->line_of;
    return status || !all ? TARE_E_MEMORY : 0;
}

void tare__lanes_free(timeline *timeline)
{
    tare__boxes_free(&timeline->boxes);
    for (size_t i = 0; i < timeline->n_lanes; i++)
        free(timeline->lanes[i].levels);
    for (size_t i = 0; i < timeline->n_lines; i++)
        free(timeline->lines[i]);
    free(timeline->lanes);
    tare__index_free(&timeline->lane_of);
    free(timeline->lines);
    free(timeline->line_of);
}

/* ---- lanes --------------------------------------------------------------------------------------- */
/* 0, TARE_E_MEMORY; *at is UINT32_MAX when there are no levels left: a lane needs at least one level. */
static int new_lane(timeline *timeline, const lane *lane, uint32_t *at)
{
    *at = UINT32_MAX;
    if (timeline->boxes.n_levels == timeline->boxes.levels_max)
        return 0;
    if (!tare__array_fit(&timeline->lanes, &timeline->lanes_room, timeline->n_lanes + 1, sizeof *timeline->lanes))
        return TARE_E_MEMORY;
    timeline->lanes[timeline->n_lanes] = *lane;
    *at = (uint32_t)timeline->n_lanes++;
    return 0;
}

/* The level of a depth, created if missing; UINT32_MAX: none left. */
static int level_at(timeline *timeline, lane *lane, size_t depth, uint32_t *at)
{
    *at = UINT32_MAX;
    while (lane->n_levels <= depth && depth < LANE_DEPTH_MAX) {
        if (!tare__array_fit(&lane->levels, &lane->levels_room, lane->n_levels + 1, sizeof *lane->levels))
            return TARE_E_MEMORY;
        uint32_t made = tare__boxes_add_level(&timeline->boxes);
        if (made == UINT32_MAX)
            return 0;
        lane->levels[lane->n_levels++] = made;
    }
    if (depth < lane->n_levels)
        *at = lane->levels[depth];
    return 0;
}

/* Spans that are not shown are the difference between all spans and the sum of all boxes. */
int tare__analyze_draw(work *work, stream *stream, uint32_t depth, uint32_t name, uint64_t begin, uint64_t end)
{
    timeline *timeline = work->timeline;
    uint32_t at;
    if (stream == &work->stray || stream->lane == UINT32_MAX)
        return 0;
    if (TARE__UNLIKELY(!stream->lane)) {
        const lane fresh = {.process = stream->process, .stream = stream->id};
        int status = new_lane(timeline, &fresh, &at);
        stream->lane = status || at == UINT32_MAX ? UINT32_MAX : at + 1;
        if (stream->lane == UINT32_MAX)
            return status;
    }
    lane *lane = &timeline->lanes[stream->lane - 1];
    if (TARE__LIKELY(depth < lane->n_levels)) {
        at = lane->levels[depth];
    } else {
        int status = level_at(timeline, lane, depth, &at);
        if (status || at == UINT32_MAX)
            return status;
    }
    /* A stream's time goes backwards only in a damaged file. */
    uint64_t free_from = timeline->boxes.levels[at].end;
    begin = begin < free_from ? free_from : begin;
    end = end < begin ? begin : end;
    tare__boxes_add(&timeline->boxes, at, name, begin, end);
    lane->spans++;
    return 0;
}

/* ---- complete spans ------------------------------------------------------------------------------ */
TARE__SAME(is_lane, lane, TARE__EQUAL(process) && TARE__EQUAL(track) && TARE__EQUAL(stream))

static int lane_of_track(timeline *timeline, const lane *key, uint32_t *at)
{
    uint32_t hash = (uint32_t)tare__hash_mix(tare__hash_mix(0, (uint64_t)key->process << 32 | key->track), key->stream);
    *at = tare__index_find(&timeline->lane_of, hash, is_lane, timeline->lanes, key);
    if (*at != TARE__INDEX_NONE)
        return 0;
    int status = new_lane(timeline, key, at);
    if (!status && *at != UINT32_MAX && !tare__index_add(&timeline->lane_of, hash, *at))
        status = TARE_E_MEMORY;
    return status;
}

/* The first level that is free when the span starts; a new one if none is. */
static int free_level(timeline *timeline, lane *lane, uint64_t start, uint32_t *at)
{
    for (size_t i = 0; i < lane->n_levels; i++) {
        *at = lane->levels[i];
        if (timeline->boxes.levels[*at].end <= start)
            return 0;
    }
    return level_at(timeline, lane, lane->n_levels, at);
}

static int draw_complete(work *work, stream *stream, const tare__complete_span *span)
{
    timeline *timeline = work->timeline;
    lane key = {.process = stream->process, .track = CANON_THREAD, .complete = true};
    uint32_t at;
    if (span->track)
        key.track = canon_of(&work->names, span->track);
    else
        key.stream = stream->id;
    int status = lane_of_track(timeline, &key, &at);
    if (status || at == UINT32_MAX)
        return status;
    lane *lane = &timeline->lanes[at];
    status = free_level(timeline, lane, span->start, &at);
    if (status || at == UINT32_MAX)
        return status;
    uint64_t end = span->end > span->start ? span->end : span->start;
    tare__boxes_add(&timeline->boxes, at, canon_of(&work->names, span->name), span->start, end);
    lane->spans++;
    return 0;
}

/* By start, the longer span first, so that an enclosing span is placed above the spans inside it. */
TARE__ORDER(by_start, tare__complete_span,
            TARE__RISING(start) TARE__FALLING(end) TARE__RISING(track) TARE__RISING(name))

int tare__analyze_draw_complete(work *work, stream *stream, tare__complete_span *spans, uint32_t n)
{
    if (stream == &work->stray)
        return 0;
    for (uint32_t i = 1; i < n; i++)
        if (by_start(&spans[i - 1], &spans[i]) > 0) {
            qsort(spans, n, sizeof *spans, by_start);
            break;
        }
    int status = 0;
    for (uint32_t i = 0; i < n && !status; i++)
        status = draw_complete(work, stream, &spans[i]);
    return status;
}

/* ---- counters ------------------------------------------------------------------------------------ */
static void add_to_bucket(line_bucket *into, const line_bucket *from)
{
    if (!into->n) {
        *into = *from;
        return;
    }
    into->n += from->n;
    into->first = from->first < into->first ? from->first : into->first;
    into->last = from->last > into->last ? from->last : into->last;
    into->min = from->min < into->min ? from->min : into->min;
    into->max = from->max > into->max ? from->max : into->max;
    into->sum += from->sum;
}

static void widen(line *line)
{
    for (size_t i = 0; i < LINE_BUCKETS; i += 2) {
        line_bucket both = line->buckets[i];
        if (line->buckets[i + 1].n)
            add_to_bucket(&both, &line->buckets[i + 1]);
        line->buckets[i / 2] = both;
    }
    memset(line->buckets + LINE_BUCKETS / 2, 0, LINE_BUCKETS / 2 * sizeof *line->buckets);
    line->width *= 2;
}

/* Values of different threads are not in order of time: each is added to the bucket of its time. */
int tare__analyze_draw_value(work *work, uint32_t name, uint64_t ticks, double value)
{
    timeline *timeline = work->timeline;
    uint32_t *known = &timeline->line_of[name];
    if (!isfinite(value))
        return 0;
    if (!*known) {
        if (timeline->n_lines == LINES_MAX)
            return 0;
        line *made = calloc(1, sizeof *made);
        if (!made)
            return TARE_E_MEMORY;
        made->name = name;
        made->width = LINE_WIDTH;
        timeline->lines[timeline->n_lines++] = made;
        *known = (uint32_t)timeline->n_lines;
    }
    line *line = timeline->lines[*known - 1];
    uint64_t since = ticks > timeline->start ? ticks - timeline->start : 0;
    while (since / line->width >= LINE_BUCKETS)
        widen(line);
    const line_bucket one = {1, ticks, ticks, value, value, value};
    add_to_bucket(&line->buckets[since / line->width], &one);
    return 0;
}
