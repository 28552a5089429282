/* boxes: the state of a timeline in progress: boxes on levels of lanes, in a pool of fixed size.
 * Owned by the thread that analyzes.
 * Must not know output formats. */
#ifndef TARE_ANALYZE_BOXES_H
#define TARE_ANALYZE_BOXES_H

#include "analyze/inner.h"

#define NO_BOX 0u /* boxes[0] is never used */
#define BOX_NAMES 4u

/* Merged spans of one level. The names with the most time are kept (Space-Saving algorithm): with up to BOX_NAMES
 * names exactly, with more any name that has over a quarter of the time. */
typedef struct box {
    uint64_t begin, end, busy, calls; /* ticks */
    uint64_t times[BOX_NAMES];
    uint32_t names[BOX_NAMES]; /* canons */
    uint32_t next;
    uint16_t n_names;
    bool mixed;
} box;

typedef struct level {
    uint64_t end; /* of its last box */
    uint32_t first, last;
} level;

typedef struct boxes {
    box *pool; /* max + 1 */
    level *levels;
    uint32_t max, n, free, fresh; /* fresh: boxes from here on were never used */
    uint32_t n_levels, levels_max;
    uint64_t resolution; /* ticks: boxes that are shorter together are merged */
} boxes;

int tare__boxes_init(boxes *boxes, size_t max); /* 0 or TARE_E_MEMORY */
void tare__boxes_free(boxes *boxes);
uint32_t tare__boxes_add_level(boxes *boxes); /* UINT32_MAX: no more levels */
/* Adds a span at the end of a level: it must not begin before the last one there ends. */
void tare__boxes_add(boxes *boxes, uint32_t level, uint32_t name, uint64_t begin, uint64_t end);
uint32_t tare__box_name(const box *box); /* the one with the most time */

/* ---- lanes --------------------------------------------------------------------------------------- */
#define LANE_DEPTH_MAX 256u

typedef struct lane {
    uint32_t process; /* number in the file; 0: not known */
    uint32_t stream;  /* id; 0: a track */
    uint32_t track;   /* canon; CANON_THREAD: complete spans on the thread itself */
    bool complete;
    uint32_t *levels; /* in boxes */
    size_t n_levels, levels_room;
    uint64_t spans;
} lane;

/* A counter's values in intervals of equal length, which is doubled when there are too many. */
#define LINE_BUCKETS TARE__POINTS_MAX
#define LINES_MAX 256u
typedef struct line_bucket {
    uint64_t n, first, last; /* ticks */
    double min, max, sum;
} line_bucket;
typedef struct line {
    uint32_t name; /* canon */
    uint64_t width;
    line_bucket buckets[LINE_BUCKETS];
} line;

typedef struct timeline {
    boxes boxes;
    lane *lanes;
    size_t n_lanes, lanes_room;
    tare__index lane_of; /* of process and track */
    line **lines;
    uint32_t *line_of; /* canon: line + 1 */
    size_t n_lines;
    uint64_t start; /* ticks */
} timeline;

int tare__lanes_init(timeline *timeline, const work *work, size_t boxes_max); /* 0 or TARE_E_MEMORY */
void tare__lanes_free(timeline *timeline);

/* Threads by their stack samples, into the result. 0 or as tare__trace_replay. */
int tare__analyze_sampled_lanes(const work *work, size_t boxes_max, tare__timeline *made, tare__error *error);
/* "train.py (12345)", of a process by its number. */
const char *tare__analyze_program(const tare__trace_process *process); /* that has arguments */
const char *tare__analyze_process_name(const work *work, uint32_t number, tare__arena *arena);

#endif
