/* spans: a stream's events replayed on its stack of open spans, each end counted in the tree. The hot loop
 * of reading. Owned by the thread that analyzes.
 * Must not know files, or how rows look. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define DEPTH_KEPT 131072u             /* open spans of a stream between two blocks … */
#define DEPTH_KEPT_SCARCE 1024u        /* … and when all streams together have … */
#define FRAMES_KEPT_MAX ((size_t)400000) /* … so many */

#define INLINE inline __attribute__((always_inline))
#define RARE __attribute__((noinline))
#define HOT __attribute__((noinline, flatten))

/* ---- ends ---------------------------------------------------------------------------------------- */
/* For a timeline, or for samples. */
static RARE int watch(work *work, stream *stream, const frame *top, uint64_t now, how_ended how)
{
    uint32_t depth = (uint32_t)(top - work->frames);
    if (work->samples)
        return tare__analyze_sample(work, stream, top, now, how);
    bool none = top->node->flags & NODE_TIMED && tare__analyze_is_taken_back(stream, depth);
    return tare__analyze_draw(work, stream, depth - 1, none ? CANON_OUTSIDE : canon_of(&work->names, top->name),
                              top->begin, now);
}

/* Where the time of a step goes: to its node, or where it was taken back beside it, with all that is in it. NULL: no
 * memory. */
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
    for (number_cell *cell = top->numbers ? top->node->numbers : NULL; cell; cell = cell->next)
        if (cell->bit < NUMBER_BITS && top->numbers >> cell->bit & 1u)
            cell->ticks += now - top->begin;
    if (work->names.key_of && top->node->flags & (NODE_TIMED | NODE_NOTED))
        status = tare__analyze_note(work, stream, top, now);
    if (top->node->flags & NODE_TIMED && !status)
        status = tare__analyze_step(work, stream, top, (uint32_t)(top - work->frames), now, how);
    if (top->node->flags & NODE_PART && !status) /* after it: a step's own parts lie above it */
        status = tare__analyze_part(work, stream, top, now);
    return status;
}

/* Of a part of the run: what lies outside of it does not count, and a step counts whole or not at all. 1: the span
 * counts, 0: it does not, or a status. */
static RARE int clip(work *work, stream *stream, frame *top, uint64_t *now, how_ended *how)
{
    const window *window = &work->window;
    if (top->begin >= window->from && *now <= window->to)
        return 1;
    top->begin = top->begin < window->from ? window->from : top->begin;
    *now = *now > window->to ? window->to : *now;
    *now = *now < top->begin ? top->begin : *now;
    bool timed = top->node->flags & NODE_TIMED;
    bool step = timed && work->names.rows[top->node->name].kind == TARE_KIND_STEP;
    *how = timed && *how == ENDED ? STILL_OPEN : *how;
    if (*now > top->begin && !step)
        return 1;
    return timed ? tare__analyze_step(work, stream, top, (uint32_t)(top - work->frames), *now, *how) : 0;
}

static INLINE void note_outermost(stream *stream, const node *node, const frame *top, uint64_t now, how_ended how)
{
    if (node->depth == 1 && (node->name != CANON_OUTSIDE || top->child)) {
        stream->first_span = stream->last_span_end ? stream->first_span : top->begin;
        stream->last_span_end = now;
        stream->last_finished = how == ENDED ? now : stream->last_finished;
    }
}

/* ---- a call in parts -------------------------------------------------------------------------------- */
static uint64_t within(const window *window, uint64_t ticks)
{
    if (!window->to)
        return ticks;
    return ticks < window->from ? window->from : ticks > window->to ? window->to : ticks;
}

/* The call ended, at `now`: it counts where it began. */
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
    top->begin = begin;
    return tare__analyze_sample(work, stream, top, end, how);
}

/* As close_top, of a span that is one part of a call, or stands for another call of its name. */
static RARE int close_split(work *work, stream *stream, frame *top, uint64_t now, how_ended how)
{
    uint32_t depth = (uint32_t)(top - work->frames);
    node *node = top->node, *to = node->flags & NODE_TIMED ? node_of_timed(work, stream, top) : node;
    uint64_t begin = top->begin, end = within(&work->window, now);
    top->begin = within(&work->window, begin);
    uint64_t duration = end > top->begin ? end - top->begin : 0;
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
        status = tare__analyze_part(work, stream, top, top->begin + duration);
    split_call call;
    int ended = status ? status : tare__analyze_split_end(work, stream, top, to, now, duration, &call);
    if (ended > 0 && to != node)
        call.node = to; /* it was none */
    if (ended > 0)
        status = count_whole(work, stream, top, &call, now, how);
    if (ended < 0 || status || !(node->flags & NODE_TIMED))
        return ended < 0 ? ended : status;
    top->node = node;
    top->begin = ended ? call.begin : begin;
    bool all = within(&work->window, top->begin) == top->begin && end == now;
    return tare__analyze_step(work, stream, top, depth, now, how == ENDED && !all ? STILL_OPEN : how);
}

/* Where the call of an open span is counted. */
static node *node_of_call(work *work, stream *stream, const frame *top)
{
    if (top->numbers & FRAME_SPLIT)
        return tare__analyze_split_at(stream, (uint32_t)(top - work->frames))->node;
    return top->node;
}

/* Closes the innermost span; the frame below it gets its duration. */
static INLINE int close_top(work *work, stream *stream, frame *top, uint64_t now, how_ended how)
{
    node *node = top->node;
    if (TARE__UNLIKELY(top->numbers & FRAME_SPLIT))
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
    uint64_t duration = now - top->begin;
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

/* Closes the frames above `depth`; their ends are not known. */
static RARE int lose_ends(work *work, stream *stream, uint32_t depth, uint64_t now)
{
    int status = 0;
    for (; stream->depth > depth && !status; stream->depth--) {
        frame *top = &work->frames[stream->depth];
        node_of_call(work, stream, top)->end_lost++;
        status = close_top(work, stream, top, now, END_LOST);
    }
    return status;
}

/* ---- the stack between blocks -------------------------------------------------------------------- */
static int make_frames(work *work, size_t frames)
{
    if (frames <= work->frames_room)
        return 0;
    frame *grown = realloc(work->frames, frames * sizeof *grown);
    if (!grown)
        return TARE_E_MEMORY;
    work->frames = grown;
    work->frames_room = (uint32_t)frames;
    return 0;
}

/* Blocks are missing before this one. What stayed open is known by name and begin; what was open and is not
 * any more ended at a time nobody knows. */
static int rebuild_stack(work *work, stream *stream, uint64_t first_ticks)
{
    const tare__span_stack *open = &work->decoder.open;
    uint32_t same = 0;
    while (same < stream->depth && same < open->depth &&
           work->frames[same + 1].name == open->spans[same].name &&
           work->frames[same + 1].begin == open->spans[same].begin)
        same++;
    int status = lose_ends(work, stream, same, stream->last);
    if (status)
        return status;
    for (uint32_t i = same; i < open->depth; i++) {
        frame *below = &work->frames[i];
        uint64_t begin = tare__replay_listed_begin(open->spans[i].begin, below->begin, first_ticks);
        uint32_t name = open->spans[i].name;
        node *node = find_child(&work->nodes, &work->names, below->node, canon_of(&work->names, name));
        if (!node)
            return TARE_E_MEMORY;
        below[1] = (frame){.node = node, .begin = begin, .name = name};
        stream->depth = i + 1;
    }
    stream->beyond = work->decoder.unlisted;
    return 0;
}

/* A stream's time never runs backwards unless the file is wrong; durations must stay sane even then. */
static void clamp_stack(work *work, const stream *stream, uint64_t first_ticks)
{
    for (uint32_t i = 1; i <= stream->depth; i++) {
        frame *open = &work->frames[i];
        if (open->begin > first_ticks)
            open->begin = first_ticks;
        if (open->child > first_ticks - open->begin)
            open->child = first_ticks - open->begin;
    }
}

static void note_missing_blocks(const work *work, stream *stream, uint32_t ordinal)
{
    /* Blocks missing at a stream's start may have been rotated out, which is no loss. */
    bool damaged = tare__trace_damage_of(work->trace)->blocks > 0;
    if (ordinal > stream->ordinal && (stream->seen || damaged) && stream != &work->stray)
        stream->lost_blocks += ordinal - stream->ordinal;
}

static int load_stack(work *work, stream *stream, uint32_t events)
{
    uint32_t listed = work->decoder.open.depth;
    size_t most_open = stream->depth > listed ? stream->depth : listed;
    int status = make_frames(work, most_open + events + 2);
    if (status)
        return status;
    work->frames[0] = (frame){.node = stream->root, .child = stream->busy};
    if (stream->depth)
        memcpy(work->frames + 1, stream->frames, stream->depth * sizeof(frame));
    work->saved_frames -= stream->depth;
    return 0;
}

static int enter_block(work *work, stream *stream, const tare__block_header *header)
{
    uint64_t first = tare__replay_first_ticks(&work->decoder, header, stream->last);
    int status = load_stack(work, stream, header->count);
    if (!status && (!stream->seen || header->ordinal != stream->ordinal)) {
        note_missing_blocks(work, stream, header->ordinal);
        status = rebuild_stack(work, stream, first);
    }
    if (first < stream->last)
        clamp_stack(work, stream, first);
    stream->seen = true;
    stream->ordinal = header->ordinal + 1;
    stream->first = first < stream->first ? first : stream->first;
    stream->last = header->last_ticks > first ? header->last_ticks : first;
    work->decoder.ticks = first;
    return status;
}

/* Spans above what is kept are counted as calls, without a duration; what ended inside them is time of the
 * ones below. */
static void cut_stack(work *work, stream *stream)
{
    size_t others = work->saved_frames < FRAMES_KEPT_MAX ? work->saved_frames : FRAMES_KEPT_MAX;
    size_t left = FRAMES_KEPT_MAX - others;
    uint32_t kept = left < DEPTH_KEPT ? (uint32_t)left : DEPTH_KEPT;
    kept = kept < DEPTH_KEPT_SCARCE ? DEPTH_KEPT_SCARCE : kept;
    while (stream->depth > kept) {
        const frame *top = &work->frames[stream->depth--];
        top->node->untimed++;
        work->frames[stream->depth].child += top->child;
        stream->beyond++;
    }
    tare__analyze_split_forget(stream, stream->depth);
}

static int leave_block(work *work, stream *stream)
{
    stream->busy = work->frames[0].child;
    if (stream == &work->stray)
        stream->depth = 0;
    cut_stack(work, stream);
    work->too_deep |= stream->beyond > 0;
    work->saved_frames += stream->depth;
    if (stream->depth == 0) {
        free(stream->frames);
        stream->frames = NULL;
        return 0;
    }
    frame *saved = realloc(stream->frames, stream->depth * sizeof *saved);
    if (!saved)
        return TARE_E_MEMORY;
    stream->frames = saved;
    memcpy(saved, work->frames + 1, stream->depth * sizeof *saved);
    return 0;
}

/* ---- rarer events -------------------------------------------------------------------------------- */
/* Ends the innermost open span of that name, and what was left open inside it. */
static RARE int end_of(work *work, stream *stream, const tare__event *event)
{
    uint32_t depth = stream->depth;
    while (depth && work->frames[depth].name != event->name)
        depth--;
    if (!depth) {
        stream->unmatched += tare__replay_is_unmatched(&stream->beyond);
        return 0;
    }
    int status = 0;
    stream->beyond = 0;
    for (; stream->depth >= depth && !status; stream->depth--) {
        frame *top = &work->frames[stream->depth];
        node_of_call(work, stream, top)->left_open += stream->depth > depth;
        bool cut = stream->depth > depth && top->node->flags & NODE_TIMED &&
                   tare__analyze_is_taken_back(stream, stream->depth);
        if (TARE__UNLIKELY(cut)) {
            stream->cut = *top;
            stream->cut.numbers &= ~FRAME_SPLIT;
        }
        status = close_top(work, stream, top, event->ticks, ENDED);
    }
    return status;
}

static int lost_ends(work *work, stream *stream, const tare__event *event)
{
    uint64_t lost = (uint64_t)event->value; /* the codec has seen to it that this is a whole number */
    stream->lost_ends += lost;
    return lose_ends(work, stream, tare__replay_depth_left(stream->depth, &stream->beyond, lost), event->ticks);
}

/* The index of a step that turns out to be one. A range of the program that ended meanwhile may have taken the span of
 * the step with it, which lasted until now all the same. */
static RARE int tell_step(work *work, stream *stream, const tare__event *event)
{
    frame *top = &work->frames[stream->depth];
    while (top > work->frames && !(top->node->flags & NODE_TIMED))
        top--;
    if (top > work->frames) {
        tare__analyze_step_index(stream, (uint32_t)(top - work->frames), event->value);
        if (event->value >= 0)
            tare__analyze_unsure_ends(stream, (uint32_t)(top - work->frames));
        return 0;
    }
    frame cut = stream->cut;
    stream->cut.node = NULL;
    uint32_t depth = stream->depth + 1;
    if (!cut.node || event->value < 0 || depth >= work->frames_room)
        return 0;
    work->frames[depth] = cut; /* above what is open, as if it were */
    tare__analyze_step_index(stream, depth, event->value);
    how_ended how = ENDED;
    uint64_t now = event->ticks;
    if (work->window.to && (cut.begin < work->window.from || now > work->window.to))
        how = STILL_OPEN;
    return tare__analyze_step(work, stream, &work->frames[depth], depth, now, how);
}

static int add_number(work *work, stream *stream, const tare__event *event)
{
    frame *top = &work->frames[stream->depth];
    uint32_t name = canon_of(&work->names, event->name);
    stream->numbers++;
    if (name == work->names.outer_index && name != CANON_UNKNOWN)
        return tell_step(work, stream, event);
    if (!stream->depth)
        return 0; /* belongs to no span */
    if (name == work->names.index && name != CANON_UNKNOWN && (top->node->flags & NODE_TIMED)) {
        stream->cut.node = NULL;
        tare__analyze_step_index(stream, stream->depth, event->value);
        return event->value == -1 && !top->child ? tare__analyze_unsure_begins(stream, stream->depth) : 0;
    }
    if (name == work->names.flow && name != CANON_UNKNOWN)
        return 0;
    if (tare__analyze_is_split(&work->names, name))
        return tare__analyze_split_number(work, stream, name, event->value);
    if (work->window.to && (top->begin < work->window.from || top->begin >= work->window.to))
        return 0;
    if (name == work->names.partial && name != CANON_UNKNOWN)
        return tare__analyze_step_number(work, stream, name, false, event->value);
    uint32_t bit, split = top->numbers & FRAME_SPLIT;
    node *node = node_of_call(work, stream, top);
    uint32_t *bits = split ? &tare__analyze_split_at(stream, stream->depth)->numbers : &top->numbers;
    int status = tare__analyze_add_number(&work->nodes, node, name, event->value, &bit);
    *bits |= bit < NUMBER_BITS ? 1u << bit : 0;
    if (TARE__UNLIKELY(stream->is_unsure) && !status)
        status = tare__analyze_unsure_number(stream, node, name, event->value);
    return status ? status
                  : tare__analyze_step_number(work, stream, name, (top->node->flags & NODE_INSPECTION) != 0,
                                              event->value);
}

static RARE int rarer_event(work *work, stream *stream, const tare__event *event)
{
    switch (event->op) {
    case TARE__OP_END_OF:
        return end_of(work, stream, event);
    case TARE__OP_MARK:
        stream->marks++;
        return tare__analyze_mark(work, canon_of(&work->names, event->name), event->ticks);
    case TARE__OP_COUNTER:
        stream->counters++;
        return tare__analyze_counter(work, canon_of(&work->names, event->name), event->ticks, event->value);
    case TARE__OP_NUMBER:
        return add_number(work, stream, event);
    default:
        return lost_ends(work, stream, event);
    }
}

/* ---- replay -------------------------------------------------------------------------------------- */
/* There is room for as many frames as the block has events. Flat: a call for each event would cost as much as
 * the event. */
static HOT int replay(work *work, stream *stream)
{
    tare__events_decoder decoder = work->decoder; /* the compiler sees that nobody else changes a copy */
    tare__event event;
    frame *top = work->frames + stream->depth;
    int status = 0;
    while (!status && tare__events_next(&decoder, &event)) {
        if (TARE__LIKELY(event.op <= TARE__OP_NEXT)) {
            if (event.op != TARE__OP_BEGIN) {
                if (TARE__LIKELY(top > work->frames)) {
                    status = close_top(work, stream, top, event.ticks, ENDED);
                    top--;
                } else {
                    stream->unmatched += event.op == TARE__OP_END;
                }
            }
            if (event.op != TARE__OP_END) {
                uint32_t name = canon_of(&work->names, event.name);
                node *node = find_child(&work->nodes, &work->names, top->node, name);
                if (TARE__UNLIKELY(!node))
                    return TARE_E_MEMORY;
                *++top = (frame){.node = node, .begin = event.ticks, .name = event.name};
                if (TARE__UNLIKELY(node->flags & NODE_TIMED) && !status)
                    status = tare__analyze_step_begins(stream, (uint32_t)(top - work->frames), name);
                if (event.op == TARE__OP_NEXT) {
                    node->chained++;
                    stream->chained++;
                }
            }
            continue;
        }
        stream->depth = (uint32_t)(top - work->frames);
        status = rarer_event(work, stream, &event);
        top = work->frames + stream->depth;
    }
    stream->depth = (uint32_t)(top - work->frames);
    return status;
}

/* The same for a stream that has more spans open than are kept. */
static RARE int replay_deep(work *work, stream *stream)
{
    tare__event event;
    int status = 0;
    while (!status && stream->beyond && tare__events_next(&work->decoder, &event)) {
        stream->chained += event.op == TARE__OP_NEXT;
        if (event.op == TARE__OP_BEGIN || event.op == TARE__OP_NEXT)
            work->frames[stream->depth].node->untimed++;
        if (event.op == TARE__OP_BEGIN)
            stream->beyond++;
        else if (event.op == TARE__OP_END)
            stream->beyond--;
        else if (event.op != TARE__OP_NEXT)
            status = rarer_event(work, stream, &event);
    }
    return status ? status : replay(work, stream);
}

int tare__analyze_events(work *work, const tare__trace_block *block)
{
    const tare__block_header *header = &block->header;
    int status = tare__events_open(&work->decoder, work->squeezer, header, block->payload);
    if (status)
        return status;
    stream *stream = tare__analyze_stream(work, header->stream);
    if (!stream)
        return TARE_E_MEMORY;
    uint64_t chained = stream->chained;
    status = enter_block(work, stream, header);
    if (!status)
        status = stream->beyond ? replay_deep(work, stream) : replay(work, stream);
    if (!status)
        status = leave_block(work, stream);
    stream->events += header->count;
    stream->begun += header->spans - (stream->chained - chained);
    return status;
}

/* ---- the end ------------------------------------------------------------------------------------- */
/* A step or an epoch that was taken back and never ended: nothing says how long it went on behind what was last in
 * it. */
static bool is_open_rest(const work *work, const stream *stream, const frame *top)
{
    return top->node->flags & NODE_TIMED && tare__analyze_is_taken_back(stream, (uint32_t)(top - work->frames));
}

static RARE int close_stream(work *work, stream *stream)
{
    uint64_t end = tare__trace_open_until(work->trace, stream->id, stream->last);
    int status = make_frames(work, stream->depth + 1);
    if (status || (!stream->depth && !stream->split.n_waiting))
        return status;
    work->frames[0] = (frame){.node = stream->root, .child = stream->busy};
    if (stream->depth)
        memcpy(work->frames + 1, stream->frames, stream->depth * sizeof(frame));
    bool inner_open = false;
    for (; stream->depth && !status; stream->depth--) {
        frame *top = &work->frames[stream->depth];
        bool rest = is_open_rest(work, stream, top);
        if (rest && !top->child) { /* nothing was in it */
            top->node->flags |= NODE_EMPTIED;
            continue;
        }
        node_of_call(work, stream, top)->still_open += !rest;
        inner_open |= !rest;
        status = close_top(work, stream, top, rest ? stream->last_end : end, inner_open ? STILL_OPEN : ENDED);
    }
    for (size_t i = 0; i < stream->split.n_waiting && !status; i++) { /* the rest of these is not in the trace */
        const split_call *call = &stream->split.waiting[i];
        uint64_t begin = within(&work->window, call->begin), last = within(&work->window, call->last);
        if (work->window.to && last <= begin)
            continue;
        call->node->end_lost++;
        status = tare__analyze_split_count(work, call, last > begin ? last - begin : 0);
    }
    stream->busy = work->frames[0].child;
    return status;
}

int tare__analyze_close_streams(work *work)
{
    int status = 0;
    for (size_t i = 0; i < work->n_streams && !status; i++)
        status = close_stream(work, work->streams[i]);
    return status;
}
