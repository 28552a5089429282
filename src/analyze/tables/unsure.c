/* unsure: tentative steps and epochs, which may be retracted later. What is counted inside is noted until one is
 * confirmed; if it is retracted, its contents move to the node beside it, so that they belong to no step. Owned by
 * the thread that analyzes. Must not know events. */
#include <stdlib.h>

#include "analyze/inner.h"

#define NOTED_MAX ((size_t)1 << 18) /* calls and numbers, per thread; beyond, they stay where they were counted */

typedef struct noted {
    node *node;
    number_cell *cell; /* of a number; NULL: a call */
    uint64_t duration, child;
    uint64_t min, max; /* of the node, before this call */
    double value;
    uint32_t numbers; /* number cells that the call has */
    enum { CALL, PART, WHOLE } what; /* PART: time without a call; WHOLE: a call without time, counted where it began */
} noted;

typedef struct open_one {
    uint32_t depth;
    size_t from; /* index of the first row noted inside it */
} open_one;

struct unsure {
    noted *rows;
    size_t n, room;
    open_one open[OPEN_INDEXES];
    uint32_t n_open;
};

void tare__analyze_free_unsure(struct unsure *unsure)
{
    if (unsure)
        free(unsure->rows);
    free(unsure);
}

static void forget_from(stream *stream, uint32_t depth)
{
    struct unsure *unsure = stream->unsure;
    while (unsure->n_open && unsure->open[unsure->n_open - 1].depth >= depth)
        unsure->n_open--;
    if (!unsure->n_open)
        unsure->n = 0;
    stream->is_unsure = unsure->n_open > 0;
}

int tare__analyze_unsure_begins(stream *stream, uint32_t depth)
{
    if (!stream->unsure)
        stream->unsure = calloc(1, sizeof *stream->unsure);
    struct unsure *unsure = stream->unsure;
    if (!unsure)
        return TARE_E_MEMORY;
    forget_from(stream, depth);
    if (unsure->n_open < OPEN_INDEXES)
        unsure->open[unsure->n_open++] = (open_one){depth, unsure->n};
    stream->is_unsure = true;
    return 0;
}

void tare__analyze_unsure_ends(stream *stream, uint32_t depth)
{
    if (stream->is_unsure)
        forget_from(stream, depth);
}

static int add(stream *stream, const noted *row)
{
    struct unsure *unsure = stream->unsure;
    if (unsure->n == NOTED_MAX) {
        forget_from(stream, 0);
        return 0;
    }
    if (!tare__array_fit(&unsure->rows, &unsure->room, unsure->n + 1, sizeof *unsure->rows))
        return TARE_E_MEMORY;
    unsure->rows[unsure->n++] = *row;
    return 0;
}

int tare__analyze_unsure_call(stream *stream, node *node, const frame *frame, uint64_t duration)
{
    return add(stream, &(noted){.node = node, .duration = duration, .child = frame->child, .min = node->min,
                                .max = node->max, .numbers = frame->span.bits});
}

int tare__analyze_unsure_part(stream *stream, node *node, const frame *frame, uint64_t duration)
{
    return add(stream, &(noted){.node = node, .duration = duration, .child = frame->child, .what = PART});
}

int tare__analyze_unsure_whole(stream *stream, node *node, uint64_t duration)
{
    return add(stream, &(noted){.node = node, .duration = duration, .child = duration, .min = node->min,
                                .max = node->max, .what = WHOLE});
}

int tare__analyze_unsure_number(stream *stream, node *node, uint32_t name, double value)
{
    number_cell *cell = node->numbers;
    while (cell && cell->name != name)
        cell = cell->next;
    return cell ? add(stream, &(noted){.node = node, .cell = cell, .value = value}) : 0;
}

/* ---- retracted -------------------------------------------------------------------------------------- */
static void add_ticks(node *node, uint32_t numbers, uint64_t ticks)
{
    for (number_cell *cell = numbers ? node->numbers : NULL; cell; cell = cell->next)
        if (cell->bit < NUMBER_BITS && numbers >> cell->bit & 1u)
            cell->ticks += ticks;
}

/* The difference between the sum of calls and the node's time. 0 or TARE_E_MEMORY. */
static int add_beyond(work *work, const noted *row, int sign)
{
    split_node *split = tare__analyze_split_node(&work->nodes, row->node);
    if (split)
        split->beyond += (row->what == WHOLE ? sign : -sign) * (int64_t)row->duration;
    return split ? 0 : TARE_E_MEMORY;
}

/* Called in reverse order, so that minimum and maximum are restored. */
static int undo(work *work, const noted *row)
{
    node *node = row->node;
    int status = 0;
    if (row->cell) {
        row->cell->n--;
        row->cell->sum -= row->value;
        return 0;
    }
    node->flags |= NODE_EMPTIED;
    if (row->what != CALL)
        status = add_beyond(work, row, -1);
    if (row->what == PART) {
        node->self -= row->duration - row->child;
        return status;
    }
    uint32_t at = tare__hist_bucket(row->duration, node->hist.bits) - node->hist.first;
    if (at < node->hist.length && node->hist.counts[at])
        node->hist.counts[at]--;
    node->hist.total--;
    node->self -= row->duration - row->child;
    node->min = node->min == row->duration ? row->min : node->min;
    node->max = node->max == row->duration ? row->max : node->max;
    add_ticks(node, row->numbers, 0 - row->duration);
    return status;
}

bool tare__analyze_is_under(const nodes *all, const node *node, const struct node *above)
{
    while (node && node != above)
        node = parent_of(all, node);
    return node != NULL;
}

node *tare__analyze_twin(work *work, const node *of, const node *none, node *beside)
{
    if (of == none)
        return beside;
    node *parent = tare__analyze_twin(work, parent_of(&work->nodes, of), none, beside);
    return parent ? find_child(&work->nodes, &work->names, parent, of->name) : NULL;
}

/* Bits of numbers are specific to a node. */
static uint32_t same_numbers(const node *from, const node *to, uint32_t numbers)
{
    uint32_t same = 0;
    for (const number_cell *cell = numbers ? from->numbers : NULL; cell; cell = cell->next)
        for (const number_cell *other = to->numbers; other && cell->bit < NUMBER_BITS && numbers >> cell->bit & 1u;
             other = other->next)
            if (other->name == cell->name && other->bit < NUMBER_BITS)
                same |= 1u << other->bit;
    return same;
}

static int redo(work *work, noted *row, node *twin)
{
    if (row->cell) {
        uint32_t bit, name = row->cell->name;
        int status = tare__analyze_add_number(&work->nodes, twin, name, row->value, &bit);
        for (number_cell *cell = twin->numbers; cell && !status; cell = cell->next)
            row->cell = cell->name == name ? cell : row->cell;
        row->node = twin;
        return status;
    }
    row->numbers = same_numbers(row->node, twin, row->numbers);
    row->node = twin;
    row->min = twin->min;
    row->max = twin->max;
    twin->self += row->duration - row->child;
    int status = row->what == CALL ? 0 : add_beyond(work, row, 1);
    if (row->what == PART || status)
        return status;
    add_ticks(twin, row->numbers, row->duration);
    return count_call(&work->nodes, twin, row->duration);
}

/* A split call may have begun outside. */
static bool moves(const work *work, const noted *row, const node *none)
{
    return tare__analyze_is_under(&work->nodes, row->node, none);
}

int tare__analyze_unsure_none(work *work, stream *stream, const frame *top, node *beside)
{
    struct unsure *unsure = stream->unsure;
    const open_one *open = unsure && unsure->n_open ? &unsure->open[unsure->n_open - 1] : NULL;
    uint32_t depth = (uint32_t)(top - work->frames);
    if (!open || open->depth != depth)
        return top->child ? 0 : 1; /* its contents stay, and so does its time: the tree must add up */
    tare__analyze_count_waiting(&work->nodes);
    int status = 0;
    for (size_t i = unsure->n; i-- > open->from && !status;)
        if (moves(work, &unsure->rows[i], top->node))
            status = undo(work, &unsure->rows[i]);
    for (size_t i = open->from; i < unsure->n && !status; i++) {
        noted *row = &unsure->rows[i];
        if (!moves(work, row, top->node))
            continue;
        node *twin = tare__analyze_twin(work, row->node, top->node, beside);
        status = twin ? redo(work, row, twin) : TARE_E_MEMORY;
    }
    if (!status)
        status = tare__analyze_split_move(work, stream, depth, top->node, beside);
    return status ? status : 1;
}
