/* inner: the state of an analysis under way, shared by the files of this room only.
 * Owned by the thread that analyzes.
 * Must not know output formats. */
#ifndef TARE_ANALYZE_INNER_H
#define TARE_ANALYZE_INNER_H

#include <string.h>

#include "analyze.h"
#include "stat/stat.h"
#include "trace/trace.h"

/* Times stay ticks, whole numbers, until the tables are made: the clock is straight enough over a run that
 * sums and durations may be converted by its average rate. */

/* ---- names: by text and kind, whatever their ids (names.c) --------------------------------------- */
typedef struct canon {
    const char *text, *file; /* the trace's */
    uint32_t kind, line;
} canon;

enum {
    CANON_UNKNOWN = 0, /* an id no NAMES block told of */
    CANON_OTHERS = 1,  /* what was folded together */
    CANON_THREAD = 2,  /* the track of spans on their recording thread */
    CANON_OUTSIDE = 3, /* a step or an epoch that was taken back: it was none */
    CANON_FIRST = 4
};

typedef struct canons {
    canon *rows;
    uint32_t n;
    uint32_t *of_id; /* file name id to canon */
    uint32_t ids;
    uint32_t index; /* the number that is a step's index; CANON_UNKNOWN: there is none */
    uint32_t flow;  /* the number that is a span's flow: it joins, and adds up to nothing */
    uint32_t outer_index; /* the same of the nearest step or epoch around the innermost span */
    uint32_t partial;     /* the step around it began before it could be seen */
    uint32_t continues, continued, swap; /* calls in parts (split.c) */
    uint32_t *key_of; /* of operators, by canon: pairs forward with backward (pairs.c); NULL: nothing to pair */
} canons;

#define KEY_BACKWARD 0x80000000u /* in key_of: a node of the backward pass */
#define KEY_ASIDE    0x40000000u /* … or something inside which nothing is paired */

int tare__analyze_load_names(canons *names, const tare__trace *trace);
void tare__analyze_free_names(canons *names);

static inline const char *copied(tare__arena *arena, const char *text) /* NULL: no text, or no memory */
{
    return text ? tare__arena_copy(arena, text, strlen(text)) : NULL;
}

static inline uint32_t canon_of(const canons *names, uint32_t id)
{
    return TARE__LIKELY(id < names->ids) ? names->of_id[id] : CANON_UNKNOWN;
}

/* ---- nodes: one a path of names (nodes.c) -------------------------------------------------------- */
typedef struct number_cell {
    struct number_cell *next;
    uint64_t n;
    double sum;
    uint64_t ticks; /* of the calls that carried it */
    uint32_t name;  /* canon */
    uint32_t bit;   /* in a frame's numbers; NUMBER_BITS: there were too many, and its time is not known */
} number_cell;

#define NUMBER_BITS 31u
#define FRAME_SPLIT 0x80000000u /* beside these bits: the call is in more parts, or another one's (split.c) */

enum {
    NODE_TIMED = 1, /* a step or an epoch */
    NODE_FOLDS = 2, /* spans inside it count as it: nested too deep, or too many nodes */
    NODE_NOTED = 4, /* an operator whose calls are kept to be paired */
    NODE_BACKWARD = 8, /* a node of the backward pass, or inside of one */
    NODE_FORWARD = 16, /* an operator that the backward pass has a node for, or inside of one */
    NODE_PART = 32,    /* a span directly inside a step, or a phase of one; a phase or a checkpoint in no step */
    NODE_PHASE = 64,   /* … a phase */
    NODE_ASIDE = 128,  /* inside an optimizer's step and the like */
    NODE_NUMBERED = 256, /* it has numbers */
    NODE_INSPECTION = 512, /* tells shapes of an operator's call: its own time is no measure */
    NODE_EMPTIED = 1024 /* calls were taken from it again: there may be none left */
};

/* The first cache line is all that the end of a span touches. */
typedef struct node {
    uint64_t self; /* ticks; a node's total is this and its children's totals */
    uint64_t min, max;
    tare__hist hist; /* durations; its total is the number of calls */
    uint32_t id;     /* 1, 2, … */
    uint16_t flags;
    uint16_t depth; /* 0: a root */

    struct node *children, *sibling;
    number_cell *numbers;
    uint64_t chained; /* of the calls: begun by NEXT */
    union {
        struct node **by_name; /* children by canon, where there are many; NULL: not */
        uint64_t total;        /* made when all is read */
    };
    uint32_t parent;  /* id; 0: a root */
    uint32_t name;    /* canon */
    union {
        uint32_t end_lost;
        uint32_t flows; /* of a complete span */
    };
    union {
        uint32_t left_open;
        uint32_t with_parent; /* of a complete span */
    };
    uint32_t still_open;
    uint32_t untimed; /* calls deeper than any stack that is kept: not in the histogram */
} node;

_Static_assert(sizeof(node) == 128, "two cache lines");

#define NODES_MAX 100000u
#define DEPTH_MAX 256u

typedef struct node_slot {
    uint64_t key; /* parent's id << 32 | name; 0: empty */
    node *node;
} node_slot;

/* Histograms of a thousand names do not fit the nearest caches: a bucket is asked for now and counted later. */
#define WAITING 16u

typedef struct nodes {
    tare__arena *arena;
    node *batch; /* given out from here */
    uint32_t batch_left;
    node_slot *slots;
    uint32_t mask, shift, n, used;
    node **all; /* by id - 1 */
    uint32_t all_room;
    bool folded_many, folded_deep; /* it happened */
    size_t hist_bytes, by_name_bytes;
    uint8_t hist_bits;
    uint32_t number_cells;
    uint64_t numbers_refused;
    uint32_t *waiting[WAITING]; /* buckets on their way into the caches, to be counted up in turn */
    uint32_t waiting_at;
    uint32_t nothing; /* where the first of them are counted */
    struct split_node *split; /* by id - 1, of those so far */
    size_t n_split, split_room;
} nodes;

int tare__analyze_init_nodes(nodes *all);
void tare__analyze_free_nodes(nodes *all);
void tare__analyze_free_slots(nodes *all); /* no more look-ups and calls */
void tare__analyze_count_waiting(nodes *all); /* before a histogram moves, and before any is read */
static inline node *parent_of(const nodes *all, const node *node)
{
    return node->parent ? all->all[node->parent - 1] : NULL;
}
node *tare__analyze_make_root(nodes *all); /* NULL: no memory */
/* The child, made where it is not there; the parent itself where it folds. NULL: no memory. */
node *tare__analyze_make_child(nodes *all, const canons *names, node *parent, uint32_t name);
/* Makes room for a bucket; histograms get coarser where all together take too much. 0 or TARE_E_MEMORY. */
int tare__analyze_widen(nodes *all, node *node, uint64_t duration);
/* One more value; *bit: the cell's. */
int tare__analyze_add_number(nodes *all, node *node, uint32_t name, double value, uint32_t *bit);

static inline node *find_child(nodes *all, const canons *names, node *parent, uint32_t name)
{
    if (parent->by_name) {
        node *child = parent->by_name[name];
        return TARE__LIKELY(child) ? child : tare__analyze_make_child(all, names, parent, name);
    }
    uint64_t key = (uint64_t)parent->id << 32 | name;
    uint32_t at = (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> all->shift);
    for (;; at = (at + 1) & all->mask) {
        if (TARE__LIKELY(all->slots[at].key == key))
            return all->slots[at].node;
        if (!all->slots[at].key)
            return tare__analyze_make_child(all, names, parent, name);
    }
}

static inline uint64_t calls_of(const node *node)
{
    return node->hist.total + node->untimed;
}

static inline void count_up(uint32_t *bucket)
{
    if (TARE__UNLIKELY(++*bucket == 0))
        *bucket = UINT32_MAX; /* as tare__hist_add */
}

static inline int count_call(nodes *all, node *node, uint64_t duration)
{
    if (duration < node->min)
        node->min = duration;
    if (duration > node->max)
        node->max = duration;
    uint32_t at = tare__hist_bucket(duration, node->hist.bits) - node->hist.first;
    if (TARE__UNLIKELY(at >= node->hist.length)) {
        int status = tare__analyze_widen(all, node, duration);
        if (status)
            return status;
        at = tare__hist_bucket(duration, node->hist.bits) - node->hist.first;
    }
    uint32_t *bucket = &node->hist.counts[at], **turn = &all->waiting[all->waiting_at++ % WAITING];
    __builtin_prefetch(bucket, 1);
    count_up(*turn);
    *turn = bucket;
    node->hist.total++;
    return 0;
}

/* ---- streams (streams.c) ------------------------------------------------------------------------- */
typedef struct frame { /* an open span */
    tare__replay_span span; /* its bits: of its node's cells those that this call carries; FRAME_SPLIT */
    node *node;
    uint64_t child; /* ticks of direct children that ended */
} frame;

/* A call whose span is not all of it, or is another call's: it is counted where it began, as a whole. */
typedef struct split_call {
    uint32_t depth;   /* of its open span */
    bool continues;   /* when this ends, the call goes on */
    uint64_t id;      /* in its stream; 0: none */
    uint64_t begin, last; /* of the call; the end of its last part so far */
    node *node;       /* where it began */
    uint32_t numbers; /* bits of that node's cells */
    double index;     /* of a step or epoch; NaN: not told */
} split_call;

typedef struct split_calls {
    split_call *open, *waiting; /* by depth; those between two parts, the last one last */
    size_t n_open, open_room, n_waiting, waiting_room;
} split_calls;

/* What parts of calls add to a node. */
typedef struct split_node {
    uint64_t continued; /* spans here that go on with a call */
    int64_t beyond;     /* ticks of whole calls counted here less those of their parts here */
} split_node;

typedef struct open_index { /* a step's number, until it ends */
    uint64_t index;
    uint32_t depth;
    bool taken_back; /* it was none */
} open_index;

#define OPEN_INDEXES 16u

/* Ticks in no step: models compute; what has findings of its own, loaders and checkpoints. */
typedef struct aside {
    uint64_t forward, told;
} aside;

typedef struct stream {
    uint32_t id, process;
    uint32_t group;
    uint32_t row;     /* in the table of threads, once made */
    uint32_t lane;    /* of a timeline, + 1; 0: none yet; UINT32_MAX: none to be had */
    bool inner_open;  /* a span inside the one that ends with the file was open as well */
    node *root;       /* of its group */
    uint32_t depth;   /* open spans, in a call about a number */
    uint32_t n_indexes;
    open_index *indexes;
    struct open_parts *parts; /* of its open steps; NULL: none yet */
    struct open_numbers *open_numbers; /* in its open steps; NULL: none yet */
    struct step_use *uses;
    size_t n_uses, uses_room;
    struct tally *tally;      /* samples of its open step; NULL: none yet */
    split_calls split;
    uint64_t continued;       /* of its spans: go on with a call */
    struct unsure *unsure;    /* steps that may be none (unsure.c); NULL: there was none */
    bool is_unsure;           /* … one is open */
    uint64_t busy;   /* ticks of top-level spans */
    uint64_t first, last;
    uint64_t events, spans, chained, marks, counters, numbers, complete, aggregate_calls, aggregate_timed;
    uint64_t unmatched, lost_ends, lost_blocks;
    uint64_t steps, step_ticks, backward_ticks; /* of steps that ended; the phase backward in them */
    aside since_step; /* since the last one */
    struct first_steps *first_steps; /* for phases; NULL: no step yet */
    frame cut; /* a step without an index that ended with a span around it: it may be told later. node NULL: none */
    uint64_t first_span, last_span_end; /* of outermost spans; 0: none ended */
    uint64_t last_finished; /* … of those whose end was recorded */
    uint64_t last_end; /* of any span */
} stream;

typedef struct group {
    node *root;
    uint32_t process, stream; /* the file's numbers; 0: none */
} group;

/* ---- steps (steps.c) ----------------------------------------------------------------------------- */
/* What a thread did of the steps of one table. */
typedef struct step_use {
    size_t steps; /* their place in the work's */
    uint64_t count, first_begin, last_end;
    uint64_t left_out; /* of the rates */
    bool inspected;    /* it took the shapes of one of them */
    uint64_t in_steps, between, longest_gap; /* ticks from the first begin to the last end: in steps, and not */
    uint64_t gaps;
    aside between_in; /* of `between` */
} step_use;

/* All threads and processes together. */
typedef struct step_job {
    uint64_t count; /* ranks do a step together: it counts once */
    uint64_t whole; /* the same without those that the rates leave out */
    uint64_t ranks; /* 0: not known of any */
    uint64_t inspections;
    double at_once; /* threads that ran steps at the same time, on average */
    uint64_t in_steps, between, longest_gap, gaps; /* of all threads, each from its first step to its last */
    aside between_in;
} step_job;

/* A number inside steps. */
typedef struct step_number {
    uint32_t name; /* canon */
    bool inspected;
    uint64_t n;
    double sum, left_out; /* of the sum: in steps that the rates leave out */
} step_number;

typedef struct slow_step {
    uint64_t duration, begin, index;
    const stream *stream;
    bool has_index, partial;
} slow_step;

/* The course of steps (step_course.c). */
typedef struct course_bin {
    uint64_t steps, from, to, total;
    uint64_t parts[TARE__COURSE_PARTS];
} course_bin;

/* A part of a step: a phase, however deep; else a span directly inside it; else a wait for a GPU, however deep. */
typedef enum part_kind { PART_PHASE, PART_DIRECT, PART_WAIT, PART_KINDS } part_kind;

typedef struct course {
    course_bin bins[TARE__COURSE_BINS];
    size_t n;
    uint64_t each; /* steps a bin, but for the last */
    uint32_t names[TARE__COURSE_PARTS]; /* canons; CANON_OTHERS for all that found no room */
    part_kind kinds[TARE__COURSE_PARTS];
    size_t n_names;
} course;

typedef struct steps {
    uint32_t name, group;
    uint64_t count, unfinished, total;
    uint64_t timed, timed_total, min, max; /* of those whose durations count: whole ones, or all where none is whole */
    uint64_t outermost; /* of the total: in no other one of the name */
    uint64_t first_begin, first_duration;
    bool first_partial;
    uint64_t *exact; /* durations, while there are few */
    size_t n_exact, exact_room;
    bool coarse; /* … too many */
    tare__hist hist;
    slow_step slowest[TARE__SLOWEST];
    size_t n_slowest;
    course *course; /* NULL: not kept */
    step_number *numbers;
    size_t n_numbers, numbers_room;
    uint64_t inspected; /* steps whose shapes were taken, which are slower for it … */
    uint64_t partial;   /* … that are not there as a whole … */
    uint64_t left_out, left_out_ticks; /* … and either: no rate is of these */
} steps;

/* ---- counters, marks, aggregates (values.c) ------------------------------------------------------ */
typedef struct counter {
    uint32_t name;
    tare__moments moments;
    double first, last;
    uint64_t first_at, last_at;
} counter;

typedef struct mark {
    uint32_t name;
    uint64_t n, first_at, last_at;
} mark;

typedef struct cell {
    uint32_t name, every;
    uint64_t calls, timed, total, min, max;
    tare__hist hist;
} cell;

/* Rows found by canon. */
typedef struct by_name {
    uint32_t *row_of; /* row + 1 */
    char *rows;
    size_t row_bytes, n, room;
} by_name;
/* The row of a name, made zeroed where it is not there. NULL: no memory. */
void *tare__analyze_row(by_name *table, const canons *names, uint32_t name, bool *fresh);

/* ---- pairs: the backward pass and what it is the backward of (pairs.c) ----------------------------- */
typedef struct call { /* of a noted operator, or the begin of a step */
    uint64_t begin, duration;
    uint32_t node, process;
    uint32_t key; /* as names have it; 0: a step */
} call;

typedef struct pair {
    uint32_t forward, backward; /* nodes */
    uint64_t calls, total, forward_total; /* total: of the backward pass */
} pair;

typedef struct unpaired { /* of a name of the backward pass */
    uint64_t calls;
    uint64_t forward, backward; /* calls in the window where it failed first; forward 0: more than one fits */
} unpaired;

typedef struct pairs {
    call *calls;
    size_t n, room;
    tare__intern *index; /* both nodes: its place in rows */
    pair *rows;
    size_t n_rows, rows_room;
    unpaired *missed; /* by canon; NULL: none so far */
} pairs;

/* ---- points: values over time, bounded (points.c) -------------------------------------------------- */
typedef struct points {
    tare__metric_point *rows;
    size_t n, room, max;
    uint64_t each, in_last; /* stretches merged into one; of the last one so far */
} points;

/* Stretches come in order of time. 0 or TARE_E_MEMORY. */
int tare__analyze_add_point(points *points, double from_ns, double to_ns, double value);
/* A copy for a result, values times `scale`. NULL: no memory. */
const tare__metric_point *tare__analyze_keep_points(const points *points, tare__arena *arena, double scale);

/* ---- metrics (metrics.c) ------------------------------------------------------------------------- */
typedef struct metric { /* a series under way; values as in the file, rates a second */
    uint64_t n, last_ticks, added, stretches;
    int64_t first, last;
    double from_ns, last_ns, step_ns; /* step: between the last two samples */
    double min, max, max_at_ns;
    double sum, weight_ns; /* of values times how long they held */
    double plain;          /* sum of the values themselves */
    double rate_from_ns;   /* of a total: what it grew by since then is not in a rate yet */
    uint64_t rate_grown;
    points *points;        /* NULL: none are kept */
    size_t row;            /* in the table, once made */
} metric;

typedef struct moment {
    uint64_t ticks;
    double ns;
    bool known;
} moment;

typedef struct metrics {
    metric *rows; /* as the trace's table of series */
    size_t n;
    points *points;
    size_t n_points;
    moment *times;
    double gap_ns, least_ns; /* rates are of at least so long */
    uint64_t restarts, late, strangers; /* totals that shrank; samples out of order; … of unknown series */
    const char *restarted, *restarted_of; /* metric and subject of the first total that shrank; NULL: none did */
} metrics;

/* ---- phases (phases.c) ---------------------------------------------------------------------------- */
#define FIRST_STEPS 16u /* warm-up is looked for in so many */

typedef struct first_steps { /* of a stream: its outermost steps in order */
    uint64_t begins[FIRST_STEPS], ends[FIRST_STEPS];
    uint32_t names[FIRST_STEPS];
    size_t n;
    uint64_t all, last_end;
} first_steps;

/* What counts when only a part of the run is read. to 0: all of it. */
typedef struct window {
    uint64_t from, to;        /* ticks */
    double from_ns, to_ns;
} window;

/* ---- all of it ----------------------------------------------------------------------------------- */
typedef struct cost { /* ticks; the recorder's own */
    bool known;
    double pair, inner, next, aggregate;
} cost;

typedef struct work {
    tare__trace *trace;
    tare__by by;
    canons names;
    nodes nodes;
    node *run_root, *tracks;

    frame *frames; /* the replay's, of the stream whose block is read; [0] stands for what is outside of all spans */
    bool too_deep; /* spans were open deeper than the stack that is kept */

    stream **streams; /* in order of appearance */
    size_t n_streams, streams_room;
    uint32_t *stream_of; /* id: index + 1 */
    size_t stream_ids;
    stream stray;    /* for blocks of more streams than are kept apart */
    bool has_strays;
    group *groups;
    size_t n_groups, groups_room;
    uint32_t *group_of_process;

    steps *steps;
    size_t n_steps, steps_room, exact_values, n_courses;
    bool steps_refused;
    cost average; /* of all processes */
    by_name counters, marks, cells;
    metrics metrics;
    pairs pairs;
    struct timeline *timeline; /* NULL: none is made */
    struct samples *samples;   /* NULL: none are kept */
    bool watched;              /* one of both is: one test a span */
    window window;
    const char *energy_of; /* what the figure of energy is of, where that is not all; NULL: all, or none */
    bool carbon_assumed;
} work;

int tare__analyze_start_work(work *work); /* after prescan; 0 or TARE_E_MEMORY */
/* The trace into state, with all spans ended. 0, or as tare__trace_replay. */
int tare__analyze_read(work *work, tare__error *error);
void tare__analyze_free_work(work *work);

stream *tare__analyze_stream(work *work, uint32_t id); /* NULL: no memory */
int tare__analyze_load_streams(work *work);
void tare__analyze_free_streams(work *work);

/* What the replay tells, as of tare__replay_visitor: 0 or TARE_E_MEMORY. The context is the work. */
int tare__analyze_complete(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n);
int tare__analyze_aggregate(void *context, uint32_t stream, const tare__aggregate *cell);
int tare__analyze_samples(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n);
int tare__analyze_counter(work *work, uint32_t name, uint64_t ticks, double value);
int tare__analyze_mark(work *work, uint32_t name, uint64_t ticks);
int tare__analyze_start_metrics(work *work); /* after prescan */
void tare__analyze_free_metrics(work *work);

/* For a timeline (lanes.c): a nested span that ended, complete ones, a counter's value. Names are canons. */
int tare__analyze_draw(work *work, stream *stream, uint32_t depth, uint32_t name, uint64_t begin, uint64_t end);
int tare__analyze_draw_complete(work *work, stream *stream, tare__complete_span *spans, uint32_t n);
int tare__analyze_draw_value(work *work, uint32_t name, uint64_t ticks, double value);

typedef enum how_ended { ENDED, STILL_OPEN, END_LOST } how_ended;

/* ---- samples (samples.c): each 0 or TARE_E_MEMORY --------------------------------------------------- */
int tare__analyze_start_samples(work *work);
void tare__analyze_free_samples(work *work);
void tare__analyze_free_tally(struct tally *tally); /* NULL is fine */
/* The innermost span ended. */
int tare__analyze_sample(work *work, stream *stream, const frame *top, uint64_t now, how_ended how);
int tare__analyze_sample_complete(work *work, const node *node, uint32_t track_kind, uint64_t ticks);
int tare__analyze_sample_value(work *work, uint32_t name, double value);
int tare__analyze_samples_table(work *work, tare__analysis *analysis);

/* ---- phases ------------------------------------------------------------------------------------------ */
/* A step ended. 0 or TARE_E_MEMORY. */
int tare__analyze_phase_step(work *work, stream *stream, const frame *frame, uint64_t now);
/* Last of the tables. Sets *steady to what is steady state; its `to` is 0 where that is the whole run. */
int tare__analyze_phases_table(work *work, tare__analysis *analysis, window *steady);

/* ---- steps ------------------------------------------------------------------------------------------- */
int tare__analyze_step(work *work, stream *stream, const frame *frame, uint32_t depth, uint64_t now,
                       how_ended how);
void tare__analyze_step_index(stream *stream, uint32_t depth, double value);
double tare__analyze_open_index(const stream *stream, uint32_t depth); /* -1: taken back; NaN: not told */
/* Whether the open step at this depth is none, as far as is known. */
bool tare__analyze_is_taken_back(const stream *stream, uint32_t depth);
/* Steps and epochs that may be none (unsure.c): 0 or TARE_E_MEMORY. One begins, its index is told or it has ended; what
 * is about to be counted in it. */
int tare__analyze_unsure_begins(stream *stream, uint32_t depth);
void tare__analyze_unsure_ends(stream *stream, uint32_t depth);
int tare__analyze_unsure_call(stream *stream, node *node, const frame *frame, uint64_t duration);
int tare__analyze_unsure_number(stream *stream, node *node, uint32_t name, double value);
/* The innermost span was none: what is in it moves to `beside`. 1: so does its own time, 0: it stays, or a status. */
int tare__analyze_unsure_none(work *work, stream *stream, const frame *top, node *beside);
void tare__analyze_free_unsure(struct unsure *unsure); /* NULL is fine */
/* Time that moves with the step; not a call. And a call that is counted in a node which may be in the step. */
int tare__analyze_unsure_part(stream *stream, node *node, const frame *frame, uint64_t duration);
int tare__analyze_unsure_whole(stream *stream, node *node, uint64_t duration);
bool tare__analyze_is_under(const nodes *all, const node *node, const struct node *above);
/* The same place under the node beside. NULL: no memory. */
node *tare__analyze_twin(work *work, const node *of, const node *none, node *beside);
/* ---- calls in parts (split.c): 0 or TARE_E_MEMORY ----------------------------------------------------- */
/* A number of the innermost span: whether it is about that. */
bool tare__analyze_is_split(const canons *names, uint32_t name);
int tare__analyze_split_number(work *work, stream *stream, uint32_t name, double value);
split_call *tare__analyze_split_at(stream *stream, uint32_t depth); /* of a frame with FRAME_SPLIT */
/* The innermost span ended, which has FRAME_SPLIT, at `now`; `duration` of it counts, in `to`. 1: the call ended as
 * well, and *call is what it was; 0: it goes on; or a status. */
int tare__analyze_split_end(work *work, stream *stream, const frame *top, const node *to, uint64_t now,
                            uint64_t duration, split_call *call);
int tare__analyze_split_count(work *work, const split_call *call, uint64_t whole);
void tare__analyze_split_forget(stream *stream, uint32_t depth); /* spans above it are not kept */
/* The span at `depth` was none: what began in it moves to the twins. */
int tare__analyze_split_move(work *work, stream *stream, uint32_t depth, const node *none, node *beside);
split_node tare__analyze_split_of(const nodes *all, const node *node);
split_node *tare__analyze_split_node(nodes *all, const node *node); /* NULL: no memory */
void tare__analyze_free_split(split_calls *split);
/* Numbers inside steps and epochs (step_numbers.c): 0 or TARE_E_MEMORY. */
int tare__analyze_step_begins(stream *stream, uint32_t depth, uint32_t name);
int tare__analyze_step_number(work *work, stream *stream, uint32_t name, bool inspected, double value);
/* The step at this depth ended; steps NULL: it counts for nothing. */
int tare__analyze_take_numbers(const work *work, stream *stream, uint32_t depth, steps *steps, uint64_t duration);
void tare__analyze_free_open_numbers(struct open_numbers *numbers); /* NULL is fine */
step_use *tare__analyze_step_use(stream *stream, size_t steps);      /* NULL: no memory */
int tare__analyze_step_job(const work *work, size_t steps, step_job *job);
/* Whether a span tells shapes of an operator's call (operators_shapes.c). */
bool tare__analyze_is_inspection(const char *name);
/* The rank of a process in a distributed job, from its launcher or as it told itself. False: none is known. */
bool tare__analyze_rank(const work *work, uint32_t process, uint64_t *rank);
/* A part of a step ended: the innermost frame. 0 or TARE_E_MEMORY. */
int tare__analyze_part(work *work, stream *stream, const frame *top, uint64_t now);
/* The step at this depth ended: its parts go into the course of `steps`; NULL: nowhere. 0 or TARE_E_MEMORY. */
int tare__analyze_take_parts(work *work, stream *stream, uint32_t depth, steps *steps, const slow_step *step);

/* Which operators may be pairs, by their names; then each call of one; then all of them put together. */
int tare__analyze_load_pairs(work *work); /* after names */
int tare__analyze_note(work *work, const stream *stream, const frame *frame, uint64_t now);
int tare__analyze_pair(work *work);
void tare__analyze_free_pairs(work *work);

/* ---- tables: from state into the result's arena; 0 or TARE_E_MEMORY ------------------------------ */
/* Of a process by number; of one whose cost is not known, and of 0, the average by spans. */
cost tare__analyze_cost(const work *work, uint32_t process);
uint32_t tare__analyze_process_row(const work *work, uint32_t number); /* in the table of processes */
tare__durations tare__analyze_durations(const work *work, const tare__hist *hist, uint64_t min, uint64_t max,
                                        double total, uint64_t calls);
int tare__analyze_numbers(const work *work, tare__arena *arena, const node *of, const tare__number_row **rows,
                          size_t *n);
void tare__analyze_sort_numbers(tare__number_row *rows, size_t n);

int tare__analyze_process_tables(work *work, tare__analysis *analysis); /* processes, threads */
int tare__analyze_spans_table(work *work, tare__analysis *analysis);
/* Before the spans: their rows take the histograms away. */
int tare__analyze_operators_table(work *work, tare__analysis *analysis);
/* What of a node's self time is the recorder's, in ticks. */
double tare__analyze_own_cost(const nodes *all, const node *node, const cost *cost);
int tare__analyze_tracks_table(work *work, tare__analysis *analysis);
int tare__analyze_steps_table(work *work, tare__analysis *analysis);
void tare__analyze_step_bins(const steps *steps, double tick_ns, tare__step_row *row);
int tare__analyze_step_course(const work *work, const steps *steps, tare__arena *arena, tare__step_row *row);
int tare__analyze_values_table(work *work, tare__analysis *analysis);
int tare__analyze_facts_table(work *work, tare__analysis *analysis);
/* Several processes have steps. */
bool tare__analyze_has_ranks(const tare__analysis *of);
/* Tables of each of them, from those by process, into of->ranks. They live as long as those by process. 0 or
 * TARE_E_MEMORY. */
int tare__analyze_ranks(const tare__analysis *by_process, tare__analysis *of);
int tare__analyze_metrics_table(work *work, tare__analysis *analysis);
int tare__analyze_usage_table(work *work, tare__analysis *analysis); /* after metrics */
double tare__analyze_elapsed(const work *work); /* NaN: not known */
int tare__analyze_own_table(work *work, tare__analysis *analysis);
int tare__analyze_run_table(work *work, tare__analysis *analysis);
/* NULL: no memory */
const char *tare__analyze_label(const work *work, tare__arena *arena, const tare__trace_process *process);
void tare__analyze_roofline(tare__analysis *analysis); /* operators against the peaks of the run */
const char *tare__analyze_command(tare__arena *arena, const char *arguments, size_t bytes); /* in one line */

#endif
