/* spans: a replay visitor that counts each ended span in the tree. Part of the hot loop of reading.
 * Owned by the thread that analyzes.
 * Must not know files, or how rows are displayed. */
#include "analyze/inner.h"

#define INLINE inline __attribute__((always_inline))
#define RARE __attribute__((noinline))
#define HOT __attribute__((noinline, flatten))

/* ---- ends ---------------------------------------------------------------------------------------- */
/* For the timeline or samples. */
static RARE int watch(work *work, stream *stream, const frame *top, uint64_t now, how_ended how)
{
    uint32_t depth = (uint32_t)(top - work->frames);
    if (work->samples)
        return tare__analyze_sample(work, stream, top, now, how);
    bool none = top->node->flags & NODE_TIMED && tare__analyze_is_taken_back(stream, depth);
    return tare__analyze_draw(work, stream, depth - 1, none ? CANON_OUTSIDE : canon_of(&work->names, top->span.name),
                              top->span.begin, now);
}

/* The node that gets the time of a step: its own or, if it was retracted, the one beside it, together with its
 * contents. NULL: out of memory. */
static RARE node *node_of_timed(work *work, stream *stream, const frame *top)
{
    uint32_t depth = (uint32_t)(top - work->frames);
    node *to = top->node;
    if (top[-1].node != top->node && tare__analyze_is_taken_back(stream, depth)) {
        node *beside = find_child(&work->nodes, &work->names, top[-1].node, CANON_OUTSIDE);
        int moves = beside ? tare__analyze_unsure_none(work, stream, top, beside) : TARE_E_MEMORY;
        to = moves < 0 ? NULL : moves ? beside : to;
        if (to)
            (moves ? top->node : beside)->flags |= NODE_EMPTIED;
    }
    tare__analyze_unsure_ends(stream, depth);
    return to;
}

/* A step, an epoch, a part of a step, an operator to be paired. */
static RARE int close_special(work *work, stream *stream, const frame *top, uint64_t now, how_ended how)
{
    int status = 0;
    for (number_cell *cell = top->span.bits ? top->node->numbers : NULL; cell; cell = cell->next)
        if (cell->bit < NUMBER_BITS && top->span.bits >> cell->bit & 1u)
            cell->ticks += now - top->span.begin;
    if (work->names.key_of && top->node->flags & (NODE_TIMED | NODE_NOTED))
        status = tare__analyze_note(work, stream, top, now);
    if (top->node->flags & NODE_TIMED && !status)
        status = tare__analyze_step(work, stream, top, (uint32_t)(top - work->frames), now, how);
    if (top->node->flags & NODE_PART && !status) /* after the step itself: its parts are above it on the stack */
        status = tare__analyze_part(work, stream, top, now);
    return status;
}

/* If only a part of the run is analyzed: time outside of it does not count, and a step counts completely or not at
 * all. 1: the span counts, 0: it does not, or a status. */
static RARE int clip(work *work, stream *stream, frame *top, uint64_t *now, how_ended *how)
{
    const window *window = &work->window;
    if (top->span.begin >= window->from && *now <= window->to)
        return 1;
    top->span.begin = top->span.begin < window->from ? window->from : top->span.begin;
    *now = *now > window->to ? window->to : *now;
    *now = *now < top->span.begin ? top->span.begin : *now;
    bool timed = top->node->flags & NODE_TIMED;
    bool step = timed && work->names.rows[top->node->name].kind == TARE_KIND_STEP;
    *how = timed && *how == ENDED ? STILL_OPEN : *how;
    if (*now > top->span.begin && !step)
        return 1;
    return timed ? tare__analyze_step(work, stream, top, (uint32_t)(top - work->frames), *now, *how) : 0;
}

static INLINE void note_outermost(stream *stream, const node *node, const frame *top, uint64_t now, how_ended how)
{
    if (node->depth == 1 && (node->name != CANON_OUTSIDE || top->child)) {
        stream->first_span = stream->last_span_end ? stream->first_span : top->span.begin;
        stream->last_span_end = now;
        stream->last_finished = how == ENDED ? now : stream->last_finished;
    }
}

/* ---- split calls ------------------------------------------------------------------------------------ */
static uint64_t within(const window *window, uint64_t ticks)
{
    if (!window->to)
        return ticks;
    return ticks < window->from ? window->from : ticks > window->to ? window->to : ticks;
}

/* The call ended at `now`: it is counted where it began. */
static int count_whole(work *work, stream *stream, frame *top, const split_call *call, uint64_t now, how_ended how)
{
    uint64_t begin = within(&work->window, call->begin), end = within(&work->window, now);
    uint64_t whole = end > begin ? end - begin : 0;
    if (work->window.to && !whole)
        return 0;
    int status = stream->is_unsure ? tare__analyze_unsure_whole(stream, call->node, whole) : 0;
    if (!status)
        status = tare__analyze_split_count(work, call, whole);
    if (!work->samples || status)
        return status;
    top->node = call->node;
    top->span.begin = begin;
    return tare__analyze_sample(work, stream, top, end, how);
}

/* As close_top, for a span that is one part of a call, or represents another call of its name. */
static RARE int close_split(work *work, stream *stream, frame *top, uint64_t now, how_ended how)
{
    uint32_t depth = (uint32_t)(top - work->frames);
    node *node = top->node, *to = node->flags & NODE_TIMED ? node_of_timed(work, stream, top) : node;
    uint64_t begin = top->span.begin, end = within(&work->window, now);
    top->span.begin = within(&work->window, begin);
    uint64_t duration = end > top->span.begin ? end - top->span.begin : 0;
    top->child = top->child < duration ? top->child : duration;
    int status = !to ? TARE_E_MEMORY : stream->is_unsure ? tare__analyze_unsure_part(stream, to, top, duration) : 0;
    if (status)
        return status;
    top[-1].child += duration;
    stream->last_end = end;
    to->self += duration - top->child;
    if (duration)
        note_outermost(stream, to, top, end, how);
    if (work->watched && !work->samples && (duration || !work->window.to))
        status = watch(work, stream, top, end, how);
    if (node->flags & NODE_PART && !status)
        status = tare__analyze_part(work, stream, top, top->span.begin + duration);
    split_call call;
    int ended = status ? status : tare__analyze_split_end(work, stream, top, to, now, duration, &call);
    if (ended > 0 && to != node)
        call.node = to; /* the step was retracted */
    if (ended > 0)
        status = count_whole(work, stream, top, &call, now, how);
    if (ended < 0 || status || !(node->flags & NODE_TIMED))
        return ended < 0 ? ended : status;
    top->node = node;
    top->span.begin = ended ? call.begin : begin;
    bool all = within(&work->window, top->span.begin) == top->span.begin && end == now;
    return tare__analyze_step(work, stream, top, depth, now, how == ENDED && !all ? STILL_OPEN : how);
}

/* The node that counts the call of an open span. */
static node *node_of_call(work *work, stream *stream, const frame *top)
{
    if (top->span.bits & FRAME_SPLIT)
        return tare__analyze_split_at(stream, (uint32_t)(top - work->frames))->node;
    return top->node;
}

/* Closes the innermost span and adds its duration to the frame below. */
static INLINE int close_top(work *work, stream *stream, frame *top, uint64_t now, how_ended how)
{
    node *node = top->node;
    if (TARE__UNLIKELY(top->span.bits & FRAME_SPLIT))
        return close_split(work, stream, top, now, how);
    if (TARE__UNLIKELY(node->flags & NODE_TIMED)) {
        node = node_of_timed(work, stream, top);
        if (!node)
            return TARE_E_MEMORY;
    }
    if (TARE__UNLIKELY(work->window.to)) {
        int counts = clip(work, stream, top, &now, &how);
        if (counts <= 0)
            return counts;
    }
    uint64_t duration = now - top->span.begin;
    if (TARE__UNLIKELY(stream->is_unsure)) {
        int status = tare__analyze_unsure_call(stream, node, top, duration);
        if (status)
            return status;
    }
    top[-1].child += duration;
    stream->last_end = now;
    node->self += duration - top->child;
    note_outermost(stream, node, top, now, how);
    int status = count_call(&work->nodes, node, duration);
    if (TARE__UNLIKELY(work->watched) && !status)
        status = watch(work, stream, top, now, how);
    if (TARE__UNLIKELY(top->node->flags & (NODE_TIMED | NODE_NOTED | NODE_PART | NODE_NUMBERED)) && !status)
        status = close_special(work, stream, top, now, how);
    return status;
}

/* ---- numbers ----------------------------------------------------------------------------------------- */
/* The index of a tentative step, which confirms it. A range of the program that ended in the meantime may have ended
 * the span of the step as well, although the step lasts until now. */
static RARE int tell_step(work *work, stream *stream, uint64_t now, double value)
{
    frame *top = &work->frames[stream->depth];
    while (top > work->frames && !(top->node->flags & NODE_TIMED))
        top--;
    if (top > work->frames) {
        tare__analyze_step_index(stream, (uint32_t)(top - work->frames), value);
        if (value >= 0)
            tare__analyze_unsure_ends(stream, (uint32_t)(top - work->frames));
        return 0;
    }
    frame cut = stream->cut;
    stream->cut.node = NULL;
    uint32_t depth = stream->depth + 1;
    if (!cut.node || value < 0)
        return 0;
    work->frames[depth] = cut; /* above the open spans, as if it were open */
    tare__analyze_step_index(stream, depth, value);
    how_ended how = ENDED;
    if (work->window.to && (cut.span.begin < work->window.from || now > work->window.to))
        how = STILL_OPEN;
    return tare__analyze_step(work, stream, &work->frames[depth], depth, now, how);
}

static int take_number(void *context, tare__replay_stream *of, tare__replay_span *innermost, uint32_t id, uint64_t now,
                       double value)
{
    work *work = context;
    stream *stream = of->own;
    frame *top = (frame *)innermost;
    uint32_t name = canon_of(&work->names, id);
    stream->depth = of->depth;
    stream->numbers++;
    if (name == work->names.outer_index && name != CANON_UNKNOWN)
        return tell_step(work, stream, now, value);
    if (!top)
        return 0; /* belongs to no known span */
    if (name == work->names.index && name != CANON_UNKNOWN && (top->node->flags & NODE_TIMED)) {
        stream->cut.node = NULL;
        tare__analyze_step_index(stream, stream->depth, value);
        return value == -1 && !top->child ? tare__analyze_unsure_begins(stream, stream->depth) : 0;
    }
    if (name == work->names.flow && name != CANON_UNKNOWN)
        return 0;
    if (tare__analyze_is_split(&work->names, name))
        return tare__analyze_split_number(work, stream, name, value);
    if (work->window.to && (top->span.begin < work->window.from || top->span.begin >= work->window.to))
        return 0;
    if (name == work->names.partial && name != CANON_UNKNOWN)
        return tare__analyze_step_number(work, stream, name, false, value);
    uint32_t bit, split = top->span.bits & FRAME_SPLIT;
    node *node = node_of_call(work, stream, top);
    uint32_t *bits = split ? &tare__analyze_split_at(stream, stream->depth)->numbers : &top->span.bits;
    int status = tare__analyze_add_number(&work->nodes, node, name, value, &bit);
    *bits |= bit < NUMBER_BITS ? 1u << bit : 0;
    if (TARE__UNLIKELY(stream->is_unsure) && !status)
        status = tare__analyze_unsure_number(stream, node, name, value);
    return status ? status
                  : tare__analyze_step_number(work, stream, name, (top->node->flags & NODE_INSPECTION) != 0,
                                              value);
}

/* ---- callbacks of the replay ----------------------------------------------------------------------- */
static int enter(void *context, tare__replay_stream *of, tare__replay_span *outside, const tare__block_header *header,
                 uint32_t missing)
{
    work *work = context;
    stream *stream = tare__analyze_stream(work, of->id);
    if (!stream)
        return TARE_E_MEMORY;
    of->own = stream;
    work->frames = (frame *)outside;
    work->frames->node = stream->root;
    work->frames->child = stream->busy;
    stream->missing_blocks += missing;
    stream->inner_open = false;
    if (header) {
        stream->events += header->count;
        stream->spans += header->spans;
    }
    return 0;
}

static void leave(void *context, tare__replay_stream *of, const tare__replay_span *outside)
{
    work *work = context;
    stream *stream = of->own;
    stream->busy = ((const frame *)outside)->child;
    stream->first = of->first < stream->first ? of->first : stream->first;
    stream->last = of->last;
    if (of->beyond || of->unlisted) {
        work->too_deep = true;
        tare__analyze_split_forget(stream, of->depth);
    }
}

static void set_back(void *context, tare__replay_span *span, uint64_t ticks)
{
    frame *open = (frame *)span;
    (void)context;
    if (open->child > ticks - span->begin)
        open->child = ticks - span->begin;
}

static INLINE int begin_span(void *context, tare__replay_stream *of, tare__replay_span *span, tare__replay_begin how)
{
    work *work = context;
    stream *stream = of->own;
    frame *top = (frame *)span;
    uint32_t name = canon_of(&work->names, span->name);
    node *node = find_child(&work->nodes, &work->names, top[-1].node, name);
    top->node = node;
    top->child = 0;
    if (TARE__UNLIKELY(!node))
        return TARE_E_MEMORY;
    if (how == TARE__REPLAY_NEXT) {
        node->chained++;
        stream->chained++;
    }
    if (TARE__UNLIKELY(node->flags & NODE_TIMED) && how != TARE__REPLAY_RESTORED)
        return tare__analyze_step_begins(stream, (uint32_t)(top - work->frames), name);
    return 0;
}

/* The span was left open and ended with an outer one. A retracted step may still be confirmed later. */
static int end_with_outer(work *work, stream *stream, frame *top, uint64_t now)
{
    node_of_call(work, stream, top)->left_open++;
    if (top->node->flags & NODE_TIMED && tare__analyze_is_taken_back(stream, (uint32_t)(top - work->frames))) {
        stream->cut = *top;
        stream->cut.span.bits &= ~FRAME_SPLIT;
    }
    return close_top(work, stream, top, now, ENDED);
}

/* The span was open at the end of the file. For a retracted step or epoch, only the end of its last inner span is
 * known. */
static int end_still_open(work *work, stream *stream, frame *top, uint64_t now)
{
    bool rest = top->node->flags & NODE_TIMED && tare__analyze_is_taken_back(stream, (uint32_t)(top - work->frames));
    if (rest && !top->child) { /* it is empty */
        top->node->flags |= NODE_EMPTIED;
        return 0;
    }
    node_of_call(work, stream, top)->still_open += !rest;
    stream->inner_open |= !rest;
    return close_top(work, stream, top, rest ? stream->last_end : now, stream->inner_open ? STILL_OPEN : ENDED);
}

static RARE int end_otherwise(work *work, stream *stream, frame *top, uint64_t now, tare__replay_how how)
{
    if (how == TARE__REPLAY_WITH_OUTER)
        return end_with_outer(work, stream, top, now);
    if (how == TARE__REPLAY_STILL_OPEN)
        return end_still_open(work, stream, top, now);
    if (how == TARE__REPLAY_UNTIMED) { /* counts as a call; the time of spans inside it belongs to the outer span */
        top->node->untimed++;
        top[-1].child += top->child;
        return 0;
    }
    node_of_call(work, stream, top)->end_missing++;
    return close_top(work, stream, top, now, END_LOST);
}

static INLINE int end_span(void *context, tare__replay_stream *of, tare__replay_span *span, uint64_t now,
                           tare__replay_how how)
{
    if (TARE__UNLIKELY(how > TARE__REPLAY_ENDED_BY_NEXT))
        return end_otherwise(context, of->own, (frame *)span, now, how);
    return close_top(context, of->own, (frame *)span, now, ENDED);
}

static int unknown_end(void *context, tare__replay_stream *of, const tare__replay_unknown *end)
{
    (void)context;
    ((stream *)of->own)->unmatched += end->unmatched;
    return 0;
}

static int dropped_ends(void *context, tare__replay_stream *of, uint64_t ticks, uint64_t lost)
{
    (void)context;
    (void)ticks;
    ((stream *)of->own)->dropped_ends += lost;
    return 0;
}

static int take_mark(void *context, tare__replay_stream *of, uint32_t name, uint64_t ticks)
{
    work *work = context;
    ((stream *)of->own)->marks++;
    return tare__analyze_mark(work, canon_of(&work->names, name), ticks);
}

static int take_counter(void *context, tare__replay_stream *of, uint32_t name, uint64_t ticks, double value)
{
    work *work = context;
    ((stream *)of->own)->counters++;
    return tare__analyze_counter(work, canon_of(&work->names, name), ticks, value);
}

/* ---- the whole --------------------------------------------------------------------------------------- */
static HOT int fast(tare__replay *replay)
{
    static const tare__replay_visitor constant = {.span_bytes = sizeof(frame), .begin = begin_span, .end = end_span};
    return tare__replay_fast(replay, &constant);
}

/* Closes calls whose continuation is not in the trace. */
static int close_waiting(work *work, const stream *stream)
{
    int status = 0;
    for (size_t i = 0; i < stream->split.n_waiting && !status; i++) {
        const split_call *call = &stream->split.waiting[i];
        uint64_t begin = within(&work->window, call->begin), last = within(&work->window, call->last);
        if (work->window.to && last <= begin)
            continue;
        call->node->end_missing++;
        status = tare__analyze_split_count(work, call, last > begin ? last - begin : 0);
    }
    return status;
}

int tare__analyze_read(work *work, tare__error *error)
{
    const tare__replay_visitor visitor = {.context = work,
                                          .span_bytes = sizeof(frame),
                                          .enter = enter,
                                          .begin = begin_span,
                                          .end = end_span,
                                          .unknown_end = unknown_end,
                                          .dropped_ends = dropped_ends,
                                          .set_back = set_back,
                                          .mark = take_mark,
                                          .counter = take_counter,
                                          .number = take_number,
                                          .leave = leave,
                                          .complete = tare__analyze_complete,
                                          .aggregate = tare__analyze_aggregate,
                                          .samples = tare__analyze_samples,
                                          .stacks = tare__analyze_stack_samples,
                                          .fast = fast};
    int status = tare__trace_replay(work->trace, &visitor, error);
    for (size_t i = 0; i < work->n_streams && !status; i++)
        status = close_waiting(work, work->streams[i]);
    return status;
}
