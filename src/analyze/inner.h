/* inner: the state of an analysis in progress, internal to this module.
 * Owned by the thread that analyzes.
 * Must not know output formats. */
#ifndef TARE_ANALYZE_INNER_H
#define TARE_ANALYZE_INNER_H

#include <string.h>

#include "analyze.h"
#include "stat/stat.h"
#include "trace/trace.h"

/* Times stay in ticks, as integers, until the tables are made: the clock is linear enough over a run to convert sums
 * and durations by its average rate. */

/* ---- names: by text and kind, independent of ids (names.c) --------------------------------------- */
typedef struct canon {
    const char *text, *file; /* owned by the trace */
    uint32_t kind, line;
} canon;

enum {
    CANON_UNKNOWN = 0, /* an id without a NAMES block */
    CANON_OTHERS = 1,  /* merged names */
    CANON_THREAD = 2,  /* the track of spans on their recording thread */
    CANON_OUTSIDE = 3, /* a retracted step or epoch: it turned out not to be one */
    CANON_FIRST = 4
};

typedef struct canons {
    canon *rows;
    uint32_t n;
    uint32_t *of_id; /* file name id to canon */
    uint32_t ids;
    uint32_t index; /* name of the number that is a step's index; CANON_UNKNOWN: not used */
    uint32_t flow;  /* … that is a span's flow: it connects spans and is not summed */
    uint32_t outer_index; /* … that is the index of the nearest step or epoch around the innermost span */
    uint32_t partial;     /* … that marks the step around it as partial: it began before recording */
    uint32_t continues, continued, swap; /* calls split into several spans (split.c) */
    uint32_t *key_of; /* of operators, by canon: pairs forward with backward (pairs.c); NULL: nothing to pair */
} canons;

#define KEY_BACKWARD 0x80000000u /* in key_of: a backward node */
#define KEY_ASIDE    0x40000000u /* … or a span whose operators are not paired */

int tare__analyze_load_names(canons *names, const tare__trace *trace);
void tare__analyze_free_names(canons *names);

/* NULL for NULL. Out of memory: "", and the arena has failed, which is checked when all tables are made. */
static inline const char *copied(tare__arena *arena, const char *text)
{
    const char *copy = text ? tare__arena_copy(arena, text, strlen(text)) : NULL;
    return text && !copy ? "" : copy;
}
/* Of the text, which is freed. NULL: out of memory. */
static inline const char *kept(tare__arena *arena, tare__text *text)
{
    const char *copy = text->failed ? NULL : tare__arena_copy(arena, text->data ? text->data : "", text->length);
    tare__text_free(text);
    return copy;
}

static inline uint32_t canon_of(const canons *names, uint32_t id)
{
    return TARE__LIKELY(id < names->ids) ? names->of_id[id] : CANON_UNKNOWN;
}

/* ---- nodes: one per path of names (nodes.c) ------------------------------------------------------ */
typedef struct number_cell {
    struct number_cell *next;
    uint64_t n;
    double sum;
    uint64_t ticks; /* of the calls that carried it */
    uint32_t name;  /* canon */
    uint32_t bit;   /* in a frame's numbers; NUMBER_BITS: too many, and its time is not known */
} number_cell;

#define NUMBER_BITS 31u
#define FRAME_SPLIT 0x80000000u /* the bit above: the call continues elsewhere, or is another one's (split.c) */

enum {
    NODE_TIMED = 1, /* a step or an epoch */
    NODE_FOLDS = 2, /* spans inside it count as this node: nested too deep, or too many nodes */
    NODE_NOTED = 4, /* an operator whose calls are kept for pairing */
    NODE_BACKWARD = 8, /* a backward node, or inside of one */
    NODE_FORWARD = 16, /* an operator with a backward node, or inside of one */
    NODE_PART = 32,    /* a span directly inside a step, or a phase of one; a phase or a checkpoint outside of steps */
    NODE_PHASE = 64,   /* … a phase */
    NODE_ASIDE = 128,  /* inside an optimizer step or similar */
    NODE_NUMBERED = 256, /* it has numbers */
    NODE_INSPECTION = 512, /* records shapes of an operator's call: its own time is not meaningful */
    NODE_EMPTIED = 1024 /* calls were removed from it: it may have none left */
};

/* The end of a span accesses only the first cache line. */
typedef struct node {
    uint64_t self; /* ticks; a node's total is this plus the totals of its children */
    uint64_t min, max;
    tare__hist hist; /* durations; its total is the number of calls */
    uint32_t id;     /* 1, 2, … */
    uint16_t flags;
    uint16_t depth; /* 0: a root */

    struct node *children, *sibling;
    number_cell *numbers;
    uint64_t chained; /* of the calls: begun by NEXT */
    union {
        struct node **by_name; /* children by canon, if there are many; else NULL */
        uint64_t total;        /* computed after reading */
    };
    uint32_t parent;  /* id; 0: a root */
    uint32_t name;    /* canon */
    union {
        uint32_t end_missing;
        uint32_t flows; /* of a complete span */
    };
    union {
        uint32_t left_open;
        uint32_t with_parent; /* of a complete span */
    };
    uint32_t still_open;
    uint32_t untimed; /* calls deeper than the stack that is kept: not in the histogram */
} node;

_Static_assert(sizeof(node) == 128, "two cache lines");

#define NODES_MAX 100000u
#define DEPTH_MAX 256u

typedef struct node_slot {
    uint64_t key; /* parent's id << 32 | name; 0: empty */
    node *node;
} node_slot;

/* Histograms of a thousand names do not fit in the inner caches: a bucket is prefetched now and incremented later. */
#define WAITING 16u

typedef struct nodes {
    tare__arena *arena;
    node *batch; /* allocation pool */
    uint32_t batch_left;
    node_slot *slots;
    uint32_t mask, shift, n, used;
    node **all; /* by id - 1 */
    size_t all_room;
    bool folded_many, folded_deep; /* spans were merged for this reason */
    size_t hist_bytes, by_name_bytes;
    uint8_t hist_bits;
    uint32_t number_cells;
    uint64_t numbers_refused;
    uint32_t *waiting[WAITING]; /* prefetched buckets, to be incremented in turn */
    uint32_t waiting_at;
    uint32_t nothing; /* dummy bucket, the target of the first increments */
    struct split_node *split; /* by id - 1, for nodes that exist so far */
    size_t n_split, split_room;
} nodes;

int tare__analyze_init_nodes(nodes *all);
void tare__analyze_free_nodes(nodes *all);
void tare__analyze_free_slots(nodes *all); /* no lookups and calls afterwards */
void tare__analyze_count_waiting(nodes *all); /* before a histogram moves or is read */
static inline node *parent_of(const nodes *all, const node *node)
{
    return node->parent ? all->all[node->parent - 1] : NULL;
}
node *tare__analyze_make_root(nodes *all); /* NULL: out of memory */
/* The child, created if missing; the parent itself if it merges its children. NULL: out of memory. */
node *tare__analyze_make_child(nodes *all, const canons *names, node *parent, uint32_t name);
/* Makes room for a bucket; histograms get coarser if all together use too much memory. 0 or TARE_E_MEMORY. */
int tare__analyze_widen(nodes *all, node *node, uint64_t duration);
/* Adds a value; *bit: that of the cell. */
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
    tare__replay_span span; /* span.bits: the number cells of its node that this call has; FRAME_SPLIT */
    node *node;
    uint64_t child; /* ticks of direct children that ended */
} frame;

/* A call that its span covers only in part, or a span that represents another call: counted once, where the call
 * began. */
typedef struct split_call {
    uint32_t depth;   /* of its open span */
    bool continues;   /* the call continues after this span ends */
    uint64_t id;      /* in its stream; 0: none */
    uint64_t begin, last; /* of the call; the end of its last part so far */
    node *node;       /* where it began */
    uint32_t numbers; /* bits of that node's cells */
    double index;     /* of a step or epoch; NaN: not recorded */
} split_call;

typedef struct split_calls {
    split_call *open, *waiting; /* by depth; calls between two parts, the latest last */
    size_t n_open, open_room, n_waiting, waiting_room;
} split_calls;

/* What split calls add to a node. */
typedef struct split_node {
    uint64_t continued; /* spans here that continue a call */
    int64_t beyond;     /* ticks of whole calls counted here minus those of their parts here */
} split_node;

typedef struct open_index { /* a step's number, until it ends */
    uint64_t index;
    uint32_t depth;
    bool taken_back; /* it was not a step */
} open_index;

#define OPEN_INDEXES 16u

/* Ticks outside of steps: in forward passes; in loaders and checkpoints, which have separate findings. */
typedef struct aside {
    uint64_t forward, reported;
} aside;

typedef struct stream {
    uint32_t id, process;
    uint32_t group;
    uint32_t row;     /* in the table of threads, once made */
    uint32_t lane;    /* of a timeline, + 1; 0: none yet; UINT32_MAX: no lanes left */
    bool inner_open;  /* a span inside the one that ends with the file was also open */
    node *root;       /* of its group */
    uint32_t depth;   /* open spans, while a number is processed */
    uint32_t n_indexes;
    open_index *indexes;
    struct open_parts *parts; /* of its open steps; NULL: none yet */
    struct open_numbers *open_numbers; /* in its open steps; NULL: none yet */
    struct step_use *uses;
    size_t n_uses, uses_room;
    struct tally *tally;      /* samples of its open step; NULL: none yet */
    split_calls split;
    uint64_t continued;       /* of its spans: those that continue a call */
    struct unsure *unsure;    /* tentative steps (unsure.c); NULL: there were none */
    bool is_unsure;           /* … one is open */
    uint64_t busy;   /* ticks of top-level spans */
    uint64_t first, last;
    uint64_t events, spans, chained, marks, counters, numbers, complete, aggregate_calls, aggregate_timed;
    uint64_t unmatched, dropped_ends, missing_blocks;
    uint64_t steps, step_ticks, backward_ticks; /* of steps that ended; the phase backward inside them */
    aside since_step; /* since the last step */
    struct first_steps *first_steps; /* for phases; NULL: no step yet */
    frame cut; /* a step without an index that ended with an outer span: it may be confirmed later. node NULL: none */
    uint64_t first_span, last_span_end; /* of outermost spans; 0: none ended */
    uint64_t last_finished; /* … of those whose end was recorded */
    uint64_t last_end; /* of any span */
} stream;

typedef struct group {
    node *root;
    uint32_t process, stream; /* as in the file; 0: none */
} group;

/* ---- steps (steps.c) ----------------------------------------------------------------------------- */
/* A thread's share in the steps of one table. */
typedef struct step_use {
    size_t steps; /* index in the work's steps */
    uint64_t count, first_begin, last_end;
    uint64_t left_out; /* steps excluded from the rates */
    bool inspected;    /* the shapes of one of its steps were recorded */
    uint64_t in_steps, between, longest_gap; /* ticks from the first begin to the last end: in steps, and outside */
    uint64_t gaps;
    aside between_in; /* part of `between` */
} step_use;

/* All threads and processes together. */
typedef struct step_job {
    uint64_t count; /* a step run jointly by several ranks counts once */
    uint64_t whole; /* the same without steps excluded from the rates */
    uint64_t ranks; /* 0: not known */
    uint64_t inspections;
    double at_once; /* threads that ran steps concurrently, on average */
    uint64_t in_steps, between, longest_gap, gaps; /* of all threads, each from its first step to its last */
    aside between_in;
} step_job;

/* A number inside steps. */
typedef struct step_number {
    uint32_t name; /* canon */
    bool inspected;
    uint64_t n;
    double sum, left_out; /* of the sum: in steps that the rates exclude */
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

/* A part of a step: a phase at any depth; else a span directly inside it; else a wait for a GPU at any depth. */
typedef enum part_kind { PART_PHASE, PART_DIRECT, PART_WAIT, PART_KINDS } part_kind;

typedef struct course {
    course_bin bins[TARE__COURSE_BINS];
    size_t n;
    uint64_t each; /* steps per bin, except for the last */
    uint32_t names[TARE__COURSE_PARTS]; /* canons; CANON_OTHERS for names that did not fit */
    part_kind kinds[TARE__COURSE_PARTS];
    size_t n_names;
} course;

typedef struct steps {
    uint32_t name, group;
    uint64_t count, unfinished, total;
    uint64_t timed, timed_total, min, max; /* of the steps whose durations count: complete ones, else all */
    uint64_t outermost; /* of the total: not inside another step of the same name */
    uint64_t first_begin, first_duration;
    bool first_partial;
    uint64_t *exact; /* durations, while there are few */
    size_t n_exact, exact_room;
    bool coarse; /* … too many to keep all */
    tare__hist hist;
    slow_step slowest[TARE__SLOWEST];
    size_t n_slowest;
    course *course; /* NULL: not kept */
    step_number *numbers;
    size_t n_numbers, numbers_room;
    uint64_t inspected; /* steps whose shapes were recorded, which slows them … */
    uint64_t partial;   /* … incomplete steps … */
    uint64_t left_out, left_out_ticks; /* … and both: excluded from rates */
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

/* Rows indexed by canon. */
typedef struct by_name {
    uint32_t *row_of; /* row + 1 */
    char *rows;
    size_t row_bytes, n, room;
} by_name;

/* ---- pairs: backward nodes and their forward operators (pairs.c) ----------------------------------- */
typedef struct call { /* of an operator kept for pairing, or the begin of a step */
    uint64_t begin, duration;
    uint32_t node, process;
    uint32_t key; /* as in canons.key_of; 0: a step */
} call;

typedef struct pair {
    uint32_t forward, backward; /* nodes */
    uint64_t calls, total, forward_total; /* total: of the backward pass */
} pair;

typedef struct unpaired { /* of a name in the backward pass */
    uint64_t calls;
    uint64_t forward, backward; /* calls in the first window that could not be paired; forward 0: ambiguous */
} unpaired;

typedef struct pairs {
    call *calls;
    size_t n, room;
    tare__intern *index; /* both nodes: index in rows */
    pair *rows;
    size_t n_rows, rows_room;
    unpaired *missed; /* by canon; NULL: none so far */
} pairs;

/* ---- points: values over time, bounded (points.c) -------------------------------------------------- */
typedef struct points {
    tare__metric_point *rows;
    size_t n, room, max;
    uint64_t each, in_last; /* intervals merged into one; number in the last one so far */
} points;

/* Intervals are added in order of time. 0 or TARE_E_MEMORY. */
int tare__analyze_add_point(points *points, double from_ns, double to_ns, double value);
/* A copy for a result, with values times `scale`. NULL: out of memory. */
const tare__metric_point *tare__analyze_keep_points(const points *points, tare__arena *arena, double scale);

/* ---- metrics (metrics.c) ------------------------------------------------------------------------- */
typedef struct metric { /* a series being read; values as in the file, rates per second */
    uint64_t n, last_ticks, added, stretches;
    int64_t first, last;
    double from_ns, last_ns, step_ns; /* step: between the last two samples */
    double min, max, max_at_ns;
    double sum, weight_ns; /* of values times their duration */
    double plain;          /* sum of the values themselves */
    double rate_from_ns;   /* of a total: its growth since then is not in a rate yet */
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
    double gap_ns, least_ns; /* least_ns: minimum duration of a rate */
    uint64_t restarts, late, strangers; /* totals that decreased; samples out of order; samples of unknown series */
    const char *restarted, *restarted_of; /* metric and subject of the first total that decreased; NULL: none */
} metrics;

/* ---- phases (phases.c) ---------------------------------------------------------------------------- */
#define FIRST_STEPS 16u /* warm-up is searched in this many steps */

typedef struct first_steps { /* of a stream: its outermost steps in order */
    uint64_t begins[FIRST_STEPS], ends[FIRST_STEPS];
    uint32_t names[FIRST_STEPS];
    size_t n;
    uint64_t all, last_end;
} first_steps;

/* The part of the run that counts. to 0: the whole run. */
typedef struct window {
    uint64_t from, to;        /* ticks */
    double from_ns, to_ns;
} window;

/* ---- spans around stack samples (stacks_join.c) ----------------------------------------------------- */
typedef struct span_path { /* spans open at once: the outermost first. [0]: none */
    uint32_t outer; /* row */
    uint32_t name;  /* canon, of another table of names */
    uint32_t kind;  /* tare_kind */
    const char *text; /* owned by the trace */
} span_path;

typedef struct joined {
    span_path *paths;
    size_t n_paths;
    uint32_t *of_sample; /* by number of the sample, in file order: row in paths */
    size_t n;
} joined;

/* Which samples of stacks are read (stacks_filter.c). */
typedef struct kept_samples {
    bool *threads; /* by number */
    bool *paths;   /* by path */
    bool gpu_idle;
    const char *within; /* NULL: paths do not matter */
    const tare__analysis *of; /* of all samples */
} kept_samples;

/* *made NULL: no thread with spans was sampled. 0 or as tare__trace_replay. */
int tare__analyze_join(tare__trace *trace, joined **made, tare__error *error);
void tare__analyze_free_joined(joined *made); /* NULL is fine */

/* ---- the whole analysis -------------------------------------------------------------------------- */
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

    frame *frames; /* of the stream whose block is being read; [0] represents time outside of all spans */
    bool too_deep; /* spans were nested deeper than the stack that is kept */

    stream **streams; /* in order of appearance */
    size_t n_streams, streams_room;
    uint32_t *stream_of; /* id: index + 1 */
    size_t stream_ids;
    stream stray;    /* for blocks of streams beyond the maximum number */
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
    struct timeline *timeline; /* NULL: not requested */
    struct samples *samples;   /* NULL: not requested */
    struct sampled *sampled;   /* stacks; NULL: none are in the trace */
    const kept_samples *filter; /* of stacks; NULL: all */
    bool whole_tree;           /* with a window: the call tree as well */
    const joined *joined;      /* spans around their samples; NULL: none */
    bool watched;              /* one of the two is requested: a single test per span */
    window window;
    const char *energy_of; /* what the energy figure covers, if incomplete; NULL: everything, or absent */
    bool carbon_assumed;
} work;

int tare__analyze_start_work(work *work); /* after prescan; 0 or TARE_E_MEMORY */
/* Reads the trace into state and ends all spans. 0, or as tare__trace_replay. */
int tare__analyze_read(work *work, tare__error *error);
void tare__analyze_free_work(work *work);

stream *tare__analyze_stream(work *work, uint32_t id); /* NULL: out of memory */
int tare__analyze_load_streams(work *work);
void tare__analyze_free_streams(work *work);

/* Callbacks of the replay, as in tare__replay_visitor: 0 or TARE_E_MEMORY. The context is the work. */
int tare__analyze_complete(void *context, uint32_t stream, tare__complete_span *spans, uint32_t n);
int tare__analyze_aggregate(void *context, uint32_t stream, const tare__aggregate *cell);
int tare__analyze_samples(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values, uint32_t n);
int tare__analyze_counter(work *work, uint32_t name, uint64_t ticks, double value);
int tare__analyze_mark(work *work, uint32_t name, uint64_t ticks);
int tare__analyze_start_metrics(work *work); /* after prescan */
void tare__analyze_free_metrics(work *work);

/* For a timeline (lanes.c): a nested span that ended, complete spans, a counter's value. Names are canons. */
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

/* ---- sampled stacks (stacks.c): each 0 or TARE_E_MEMORY ------------------------------------------------ */
int tare__analyze_start_stacks(work *work); /* after prescan */
void tare__analyze_free_stacks(work *work);
int tare__analyze_stack_samples(void *context, const tare__stack_sample *samples, uint32_t n);
int tare__analyze_stacks_table(work *work, tare__analysis *analysis); /* after processes */
bool tare__analyze_gpus_idle(const work *work, uint64_t ticks);
/* Replaces the tables of sampled stacks by those of the samples that the filter keeps. 0; TARE_E_USAGE: there are none;
 * or as tare__trace_replay. */
int tare__analyze_filtered(tare__trace *trace, const tare__stack_filter *filter, const joined *joined,
                           const window *steady, tare__analysis *analysis, tare__error *error);

/* ---- phases ------------------------------------------------------------------------------------------ */
/* A step ended. 0 or TARE_E_MEMORY. */
int tare__analyze_phase_step(work *work, stream *stream, const frame *frame, uint64_t now);
/* Last of the tables. Sets *steady to the bounds of steady state; its `to` is 0 if that is the whole run. */
int tare__analyze_phases_table(work *work, tare__analysis *analysis, window *steady);

/* ---- steps ------------------------------------------------------------------------------------------- */
int tare__analyze_step(work *work, stream *stream, const frame *frame, uint32_t depth, uint64_t now, how_ended how);
void tare__analyze_step_index(stream *stream, uint32_t depth, double value);
double tare__analyze_open_index(const stream *stream, uint32_t depth); /* -1: retracted; NaN: not recorded */
/* Whether the open step at this depth is retracted, as far as known. */
bool tare__analyze_is_taken_back(const stream *stream, uint32_t depth);
/* Tentative steps and epochs (unsure.c): 0 or TARE_E_MEMORY. Called when one begins, when its index is recorded or
 * it ends, and before something is counted in it. */
int tare__analyze_unsure_begins(stream *stream, uint32_t depth);
void tare__analyze_unsure_ends(stream *stream, uint32_t depth);
int tare__analyze_unsure_call(stream *stream, node *node, const frame *frame, uint64_t duration);
int tare__analyze_unsure_number(stream *stream, node *node, uint32_t name, double value);
/* The innermost span was retracted: its contents move to `beside`. 1: its self time moves as well, 0: it stays, or a
 * status. */
int tare__analyze_unsure_none(work *work, stream *stream, const frame *top, node *beside);
void tare__analyze_free_unsure(struct unsure *unsure); /* NULL is fine */
/* Notes time that moves with the step, without a call; and a call counted in a node that may be inside the step. */
int tare__analyze_unsure_part(stream *stream, node *node, const frame *frame, uint64_t duration);
int tare__analyze_unsure_whole(stream *stream, node *node, uint64_t duration);
bool tare__analyze_is_under(const nodes *all, const node *node, const struct node *above);
/* The corresponding node under `beside`. NULL: out of memory. */
node *tare__analyze_twin(work *work, const node *of, const node *none, node *beside);
/* ---- split calls (split.c): 0 or TARE_E_MEMORY -------------------------------------------------------- */
/* Whether a number of the innermost span describes a split call. */
bool tare__analyze_is_split(const canons *names, uint32_t name);
int tare__analyze_split_number(work *work, stream *stream, uint32_t name, double value);
split_call *tare__analyze_split_at(stream *stream, uint32_t depth); /* of a frame with FRAME_SPLIT */
/* The innermost span, which has FRAME_SPLIT, ended at `now`; `duration` of it counts, in `to`. 1: the call ended as
 * well, and is returned in *call; 0: it continues; or a status. */
int tare__analyze_split_end(work *work, stream *stream, const frame *top, const node *to, uint64_t now,
                            uint64_t duration, split_call *call);
int tare__analyze_split_count(work *work, const split_call *call, uint64_t whole);
void tare__analyze_split_forget(stream *stream, uint32_t depth); /* removes spans deeper than this */
/* The span at `depth` was retracted: calls that began in it move to the corresponding nodes. */
int tare__analyze_split_move(work *work, stream *stream, uint32_t depth, const node *none, node *beside);
split_node tare__analyze_split_of(const nodes *all, const node *node);
split_node *tare__analyze_split_node(nodes *all, const node *node); /* NULL: out of memory */
void tare__analyze_free_split(split_calls *split);
/* Numbers inside steps and epochs (step_numbers.c): 0 or TARE_E_MEMORY. */
int tare__analyze_step_begins(stream *stream, uint32_t depth, uint32_t name);
int tare__analyze_step_number(work *work, stream *stream, uint32_t name, bool inspected, double value);
/* The step at this depth ended; steps NULL: it is not counted. */
int tare__analyze_take_numbers(const work *work, stream *stream, uint32_t depth, steps *steps, uint64_t duration);
void tare__analyze_free_open_numbers(struct open_numbers *numbers); /* NULL is fine */
step_use *tare__analyze_step_use(stream *stream, size_t steps);      /* NULL: out of memory */
int tare__analyze_step_job(const work *work, size_t steps, step_job *job);
/* Whether a span records shapes of an operator's call (operators_shapes.c). */
bool tare__analyze_is_inspection(const char *name);
/* The rank of a process in a distributed job, from its launcher or as recorded by the process. False: not known. */
bool tare__analyze_rank(const work *work, uint32_t process, uint64_t *rank);
/* A part of a step ended: the innermost frame. 0 or TARE_E_MEMORY. */
int tare__analyze_part(work *work, stream *stream, const frame *top, uint64_t now);
/* The step at this depth ended: its parts are added to the course of `steps`; NULL: they are dropped. 0 or
 * TARE_E_MEMORY. */
int tare__analyze_take_parts(work *work, stream *stream, uint32_t depth, steps *steps, const slow_step *step);

/* Determines operators that may be paired, by their names; records each call of one; pairs all of them. */
int tare__analyze_load_pairs(work *work); /* after names */
int tare__analyze_note(work *work, const stream *stream, const frame *frame, uint64_t now);
int tare__analyze_pair(work *work);
void tare__analyze_free_pairs(work *work);

/* ---- tables: from state into the result's arena; 0 or TARE_E_MEMORY ------------------------------ */
/* Of a process by number; for unknown cost, and for 0, the average weighted by spans. */
cost tare__analyze_cost(const work *work, uint32_t process);
uint32_t tare__analyze_process_row(const work *work, uint32_t number); /* in the table of processes */
tare__durations tare__analyze_durations(const work *work, const tare__hist *hist, uint64_t min, uint64_t max,
                                        double total, uint64_t calls);
void tare__analyze_sort_numbers(tare__number_row *rows, size_t n);

int tare__analyze_process_tables(work *work, tare__analysis *analysis); /* processes, threads */
int tare__analyze_spans_table(work *work, tare__analysis *analysis);
/* Before the spans table, which frees the histograms. */
int tare__analyze_operators_table(work *work, tare__analysis *analysis);
/* The recorder's overhead in a node's self time, in ticks. */
double tare__analyze_own_cost(const nodes *all, const node *node, const cost *cost);
int tare__analyze_tracks_table(work *work, tare__analysis *analysis);
int tare__analyze_steps_table(work *work, tare__analysis *analysis);
void tare__analyze_step_bins(const steps *steps, double tick_ns, tare__step_row *row);
int tare__analyze_step_course(const work *work, const steps *steps, tare__arena *arena, tare__step_row *row);
int tare__analyze_values_table(work *work, tare__analysis *analysis);
int tare__analyze_facts_table(work *work, tare__analysis *analysis);
/* Whether several processes have steps. */
bool tare__analyze_has_ranks(const tare__analysis *of);
/* Tables of each of these, from the tables by process, into of->ranks. They live as long as the tables by process. 0
 * or TARE_E_MEMORY. */
int tare__analyze_ranks(const tare__analysis *by_process, tare__analysis *of);
int tare__analyze_metrics_table(work *work, tare__analysis *analysis);
int tare__analyze_process_usage(work *work, tare__analysis *analysis); /* after it: columns of processes */
int tare__analyze_usage_table(work *work, tare__analysis *analysis); /* after metrics */
double tare__analyze_elapsed(const work *work); /* NaN: not known */
int tare__analyze_own_table(work *work, tare__analysis *analysis);
int tare__analyze_run_table(work *work, tare__analysis *analysis);
/* NULL: out of memory */
const char *tare__analyze_label(const work *work, tare__arena *arena, const tare__trace_process *process);
void tare__analyze_roofline(tare__analysis *analysis); /* operators relative to the peaks of the run */
const char *tare__analyze_command(tare__arena *arena, const char *arguments, size_t bytes); /* in one line */

#endif
