/* boxes: spans of a level as boxes; if there are too many, adjacent boxes are merged up to twice the length.
 * Owned by the thread that analyzes. Memory is allocated once, at the start.
 * Must not know threads or tracks. */
#include "boxes.h"

#include <stdlib.h>

#define BOXES_LEAST 64u
#define BOXES_MOST (1u << 24)
#define FIRST_RESOLUTION 256u /* ticks */

int tare__boxes_init(boxes *boxes, size_t max)
{
    max = max < BOXES_LEAST ? BOXES_LEAST : max > BOXES_MOST ? BOXES_MOST : max;
    boxes->max = (uint32_t)max;
    boxes->levels_max = (uint32_t)(max / 2); /* each level has at least one box */
    boxes->fresh = 1;
    boxes->pool = malloc((max + 1) * sizeof *boxes->pool);
    boxes->levels = calloc(boxes->levels_max, sizeof *boxes->levels);
    return boxes->pool && boxes->levels ? 0 : TARE_E_MEMORY;
}

void tare__boxes_free(boxes *boxes)
{
    free(boxes->pool);
    free(boxes->levels);
}

uint32_t tare__boxes_add_level(boxes *boxes)
{
    return boxes->n_levels < boxes->levels_max ? boxes->n_levels++ : UINT32_MAX;
}

/* ---- names --------------------------------------------------------------------------------------- */
static void add_name(box *box, uint32_t name, uint64_t time)
{
    uint32_t least = 0;
    for (uint32_t i = 0; i < box->n_names; i++) {
        if (box->names[i] == name) {
            box->times[i] += time;
            return;
        }
        least = box->times[i] < box->times[least] ? i : least;
    }
    box->mixed |= box->n_names > 0;
    if (box->n_names < BOX_NAMES) {
        least = box->n_names++;
        box->times[least] = 0;
    }
    box->names[least] = name;
    box->times[least] += time;
}

uint32_t tare__box_name(const box *box)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < box->n_names; i++)
        most = box->times[i] > box->times[most] ? i : most;
    return box->names[most];
}

/* ---- merging ------------------------------------------------------------------------------------- */
static void absorb(boxes *boxes, box *into, uint32_t at)
{
    box *from = &boxes->pool[at];
    into->end = from->end;
    into->busy += from->busy;
    into->calls += from->calls;
    for (uint32_t i = 0; i < from->n_names; i++)
        add_name(into, from->names[i], from->times[i]);
    into->mixed |= from->mixed;
    into->next = from->next;
    from->next = boxes->free;
    boxes->free = at;
    boxes->n--;
}

static void merge_level(boxes *boxes, level *level)
{
    for (uint32_t at = level->first; at != NO_BOX; at = boxes->pool[at].next) {
        box *box = &boxes->pool[at];
        while (box->next != NO_BOX && boxes->pool[box->next].end - box->begin < boxes->resolution)
            absorb(boxes, box, box->next);
        level->last = at;
    }
}

/* Merges until a quarter of the boxes is free: otherwise all boxes would be scanned every few spans. There are at
 * most half as many levels as boxes, so this terminates. */
static void make_room(boxes *boxes)
{
    while (boxes->n > boxes->max - boxes->max / 4 && boxes->resolution < UINT64_MAX) {
        uint64_t doubled = boxes->resolution * 2;
        boxes->resolution = !boxes->resolution ? FIRST_RESOLUTION : doubled < boxes->resolution ? UINT64_MAX : doubled;
        for (uint32_t i = 0; i < boxes->n_levels; i++)
            merge_level(boxes, &boxes->levels[i]);
    }
}

static uint32_t new_box(boxes *boxes)
{
    if (boxes->n == boxes->max)
        make_room(boxes);
    boxes->n++;
    uint32_t at = boxes->free;
    if (at == NO_BOX)
        return boxes->fresh++;
    boxes->free = boxes->pool[at].next;
    return at;
}

static void append(boxes *boxes, uint32_t at_level, uint32_t name, uint64_t begin, uint64_t end)
{
    uint32_t at = new_box(boxes); /* may change the last box of the level */
    level *level = &boxes->levels[at_level];
    boxes->pool[at] = (box){.begin = begin, .end = end, .busy = end - begin, .calls = 1, .times = {end - begin},
                            .names = {name}, .n_names = 1, .next = NO_BOX};
    if (level->first == NO_BOX)
        level->first = at;
    else
        boxes->pool[level->last].next = at;
    level->last = at;
}

void tare__boxes_add(boxes *boxes, uint32_t at_level, uint32_t name, uint64_t begin, uint64_t end)
{
    level *level = &boxes->levels[at_level];
    box *last = &boxes->pool[level->last];
    level->end = end;
    if (level->last == NO_BOX || end - last->begin >= boxes->resolution) {
        append(boxes, at_level, name, begin, end);
        return;
    }
    last->end = end;
    last->busy += end - begin;
    last->calls++;
    if (TARE__LIKELY(last->names[0] == name))
        last->times[0] += end - begin;
    else
        add_name(last, name, end - begin);
}
