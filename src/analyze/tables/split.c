/* split: calls recorded as several spans: a generator's span is ended and begun again when an outer span ends. Each is
 * one call, counted where it began. Owned by the thread that analyzes; the number of waiting calls is bounded.
 * Must not know why calls were split. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define WAITING_MAX ((size_t)1 << 17)
#define SEARCHED_MAX ((size_t)1024) /* the most recently split calls continue first: older ones rarely do */

void tare__analyze_free_split(split_calls *split)
{
    free(split->open);
    free(split->waiting);
}

bool tare__analyze_is_split(const canons *names, uint32_t name)
{
    return name != CANON_UNKNOWN && (name == names->continues || name == names->continued || name == names->swap);
}

/* ---- contributions to nodes ------------------------------------------------------------------------ */
split_node *tare__analyze_split_node(nodes *all, const node *node)
{
    if (!tare__array_fit(&all->split, &all->split_room, node->id, sizeof *all->split))
        return NULL;
    if (all->n_split < node->id) {
        memset(all->split + all->n_split, 0, (node->id - all->n_split) * sizeof *all->split);
        all->n_split = node->id;
    }
    return &all->split[node->id - 1];
}

split_node tare__analyze_split_of(const nodes *all, const node *node)
{
    return node->id <= all->n_split ? all->split[node->id - 1] : (split_node){0, 0};
}

int tare__analyze_split_count(work *work, const split_call *call, uint64_t whole)
{
    split_node *of = tare__analyze_split_node(&work->nodes, call->node);
    if (!of)
        return TARE_E_MEMORY;
    of->beyond += (int64_t)whole;
    for (number_cell *cell = call->numbers ? call->node->numbers : NULL; cell; cell = cell->next)
        if (cell->bit < NUMBER_BITS && call->numbers >> cell->bit & 1u)
            cell->ticks += whole;
    return count_call(&work->nodes, call->node, whole);
}

/* ---- open calls ------------------------------------------------------------------------------------- */
split_call *tare__analyze_split_at(stream *stream, uint32_t depth)
{
    return &stream->split.open[depth];
}

/* The record of an open span, created if missing. NULL: out of memory. */
static split_call *make_open(work *work, stream *stream, uint32_t depth)
{
    split_calls *split = &stream->split;
    frame *frame = &work->frames[depth];
    if (frame->span.bits & FRAME_SPLIT)
        return &split->open[depth];
    if (!tare__array_fit(&split->open, &split->open_room, (size_t)depth + 1, sizeof *split->open))
        return NULL;
    split->open[depth] = (split_call){
        .depth = depth, .begin = frame->span.begin, .node = frame->node, .numbers = frame->span.bits, .index = NAN};
    frame->span.bits |= FRAME_SPLIT;
    return &split->open[depth];
}

void tare__analyze_split_forget(stream *stream, uint32_t depth)
{
    split_calls *split = &stream->split;
    if (split->open_room <= (size_t)depth + 1)
        return;
    split_call *less = realloc(split->open, ((size_t)depth + 1) * sizeof *less);
    if (less) {
        split->open = less;
        split->open_room = (size_t)depth + 1;
    }
}

static int continues(work *work, stream *stream, double value)
{
    split_call *call = make_open(work, stream, stream->depth);
    if (!call)
        return TARE_E_MEMORY;
    call->id = (uint64_t)value;
    call->continues = true;
    if (call->node->flags & NODE_TIMED) { /* the part inside the outer span is retracted, the rest stays */
        call->index = tare__analyze_open_index(stream, stream->depth);
        tare__analyze_step_index(stream, stream->depth, -1);
    }
    return 0;
}

static int continued(work *work, stream *stream, double value)
{
    split_calls *split = &stream->split;
    frame *top = &work->frames[stream->depth];
    size_t at = split->n_waiting, least = at > SEARCHED_MAX ? at - SEARCHED_MAX : 0;
    while (at > least && split->waiting[at - 1].id != (uint64_t)value)
        at--;
    if (at == least || top->span.bits & FRAME_SPLIT || split->waiting[at - 1].node->name != top->node->name)
        return 0; /* the previous part is not in the trace */
    split_call *call = make_open(work, stream, stream->depth);
    split_node *node = call ? tare__analyze_split_node(&work->nodes, top->node) : NULL;
    if (!node)
        return TARE_E_MEMORY;
    node->continued++;
    stream->continued++;
    *call = split->waiting[at - 1];
    memmove(&split->waiting[at - 1], &split->waiting[at], (split->n_waiting - at) * sizeof *split->waiting);
    split->n_waiting--;
    call->depth = stream->depth;
    call->continues = false;
    if (top->node->flags & NODE_TIMED && !isnan(call->index)) {
        tare__analyze_step_index(stream, stream->depth, call->index);
        return call->index == -1 && !top->child ? tare__analyze_unsure_begins(stream, stream->depth) : 0;
    }
    return 0;
}

/* The innermost span and an outer one of the same name were interchanged. */
static int change_places(work *work, stream *stream, double value)
{
    if (!(value >= 1 && value < stream->depth))
        return 0;
    uint32_t from = stream->depth, to = from - (uint32_t)value;
    const node *inner = work->frames[from].node, *outer = work->frames[to].node;
    if (inner->name != outer->name || inner->flags & NODE_TIMED)
        return 0;
    if (!make_open(work, stream, from) || !make_open(work, stream, to))
        return TARE_E_MEMORY;
    split_call *a = &stream->split.open[from], *b = &stream->split.open[to], was = *a;
    *a = *b;
    *b = was;
    a->depth = from;
    b->depth = to;
    return 0;
}

int tare__analyze_split_number(work *work, stream *stream, uint32_t name, double value)
{
    if (!(value >= 1 && value < 0x1p63))
        return 0;
    if (name == work->names.swap)
        return change_places(work, stream, value);
    return name == work->names.continues ? continues(work, stream, value) : continued(work, stream, value);
}

/* ---- ends ------------------------------------------------------------------------------------------- */
int tare__analyze_split_end(work *work, stream *stream, const frame *top, const node *to, uint64_t now,
                            uint64_t duration, split_call *call)
{
    split_calls *split = &stream->split;
    split_node *node = tare__analyze_split_node(&work->nodes, to);
    if (!node)
        return TARE_E_MEMORY;
    node->beyond -= (int64_t)duration;
    *call = split->open[top - work->frames];
    if (!call->continues || split->n_waiting == WAITING_MAX)
        return 1;
    call->last = now;
    if (!tare__array_fit(&split->waiting, &split->waiting_room, split->n_waiting + 1, sizeof *split->waiting))
        return TARE_E_MEMORY;
    split->waiting[split->n_waiting++] = *call;
    return 0;
}

/* ---- a step was retracted --------------------------------------------------------------------------- */
static int move(work *work, split_call *call, const node *none, node *beside)
{
    if (!tare__analyze_is_under(&work->nodes, call->node, none))
        return 0;
    node *twin = tare__analyze_twin(work, call->node, none, beside);
    if (!twin)
        return TARE_E_MEMORY;
    call->numbers = 0; /* bits refer to the cells of the other node */
    call->node = twin;
    return 0;
}

int tare__analyze_split_move(work *work, stream *stream, uint32_t depth, const node *none, node *beside)
{
    int status = 0;
    for (uint32_t i = 1; i <= depth && !status; i++)
        if (work->frames[i].span.bits & FRAME_SPLIT)
            status = move(work, &stream->split.open[i], none, beside);
    for (size_t i = 0; i < stream->split.n_waiting && !status; i++)
        status = move(work, &stream->split.waiting[i], none, beside);
    return status;
}
