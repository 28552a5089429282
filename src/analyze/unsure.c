/* unsure: steps and epochs of which it is not known yet whether they are any. What is counted inside is noted until that
 * is told; of one that was none it moves to the node beside it, so that no step has it. Owned by the thread that analyzes.
 * Must not know events. */
#include <stdlib.h>

#include "inner.h"

#define NOTED_MAX ((size_t)1 << 18) /* calls and numbers, of a thread; beyond, they stay where they are counted */

typedef struct noted {
    node *node;
    number_cell *cell; /* of a number; NULL: a call */
    uint64_t duration, child;
    uint64_t min, max; /* of the node, before it */
    double value;
    uint32_t numbers; /* that the call carries */
} noted;

typedef struct open_one {
    uint32_t depth;
    size_t from; /* the first that is noted in it */
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
                                .max = node->max, .numbers = frame->numbers});
}

int tare__analyze_unsure_number(stream *stream, node *node, uint32_t name, double value)
{
    number_cell *cell = node->numbers;
    while (cell && cell->name != name)
        cell = cell->next;
    return cell ? add(stream, &(noted){.node = node, .cell = cell, .value = value}) : 0;
}

/* ---- it was none ------------------------------------------------------------------------------------ */
static void add_ticks(node *node, uint32_t numbers, uint64_t ticks)
{
    for (number_cell *cell = numbers ? node->numbers : NULL; cell; cell = cell->next)
        if (cell->bit < NUMBER_BITS && numbers >> cell->bit & 1u)
            cell->ticks += ticks;
}

/* Last ones first, so that the least and the largest are those of before. */
static void undo(const noted *row)
{
    node *node = row->node;
    if (row->cell) {
        row->cell->n--;
        row->cell->sum -= row->value;
        return;
    }
    uint32_t at = tare__hist_bucket(row->duration, node->hist.bits) - node->hist.first;
    if (at < node->hist.length && node->hist.counts[at])
        node->hist.counts[at]--;
    node->hist.total--;
    node->self -= row->duration - row->child;
    node->min = node->min == row->duration ? row->min : node->min;
    node->max = node->max == row->duration ? row->max : node->max;
    node->flags |= NODE_EMPTIED;
    add_ticks(node, row->numbers, 0 - row->duration);
}

/* The same place under the node beside. NULL: no memory. */
static node *twin_of(work *work, const node *of, const node *none, node *beside)
{
    if (of == none)
        return beside;
    node *parent = twin_of(work, parent_of(&work->nodes, of), none, beside);
    return parent ? find_child(&work->nodes, &work->names, parent, of->name) : NULL;
}

/* Bits of numbers are a node's own. */
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
    add_ticks(twin, row->numbers, row->duration);
    return count_call(&work->nodes, twin, row->duration);
}

int tare__analyze_unsure_none(work *work, stream *stream, const frame *top, node *beside)
{
    struct unsure *unsure = stream->unsure;
    const open_one *open = unsure && unsure->n_open ? &unsure->open[unsure->n_open - 1] : NULL;
    uint32_t depth = (uint32_t)(top - work->frames);
    if (!open || open->depth != depth)
        return top->child ? 0 : 1; /* what is in it stays, and it with that: a tree must add up */
    tare__analyze_count_waiting(&work->nodes);
    for (size_t i = unsure->n; i-- > open->from;)
        undo(&unsure->rows[i]);
    for (size_t i = open->from; i < unsure->n; i++) {
        node *twin = twin_of(work, unsure->rows[i].node, top->node, beside);
        int status = twin ? redo(work, &unsure->rows[i], twin) : TARE_E_MEMORY;
        if (status)
            return status;
    }
    return 1;
}
