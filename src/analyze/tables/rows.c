/* rows: converts the tree of nodes to rows: totals from the leaves up, siblings sorted, the recorder's overhead
 * subtracted.
 * Owned by the thread that analyzes.
 * Must not know events. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

/* ---- fields common to rows ----------------------------------------------------------------------- */
static double within(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

tare__durations tare__analyze_durations(const work *work, const tare__hist *hist, uint64_t min, uint64_t max,
                                        double total, uint64_t calls)
{
    double tick_ns = tare__trace_tick_ns(work->trace);
    if (!calls)
        return (tare__durations){NAN, NAN, NAN, NAN, NAN, NAN};
    /* The middle of a bucket may be outside of the observed range; minimum and maximum are exact. */
    double low = (double)min, high = (double)max;
    /* If nested spans share a row, their time counts once, and the mean is not meaningful. */
    double mean = total / (double)calls;
    bool nested = mean < low * (1 - 1e-9);
    return (tare__durations){
        .min_ns = low * tick_ns,
        .mean_ns = nested ? NAN : mean * tick_ns,
        .max_ns = high * tick_ns,
        .p50_ns = within(tare__hist_quantile(hist, 0.50), low, high) * tick_ns,
        .p95_ns = within(tare__hist_quantile(hist, 0.95), low, high) * tick_ns,
        .p99_ns = within(tare__hist_quantile(hist, 0.99), low, high) * tick_ns,
    };
}

TARE__ORDER(by_number_name, tare__number_row, TARE__BY_TEXT(name))

void tare__analyze_sort_numbers(tare__number_row *rows, size_t n)
{
    if (n)
        qsort(rows, n, sizeof *rows, by_number_name);
}

/* A rate is based on the calls that have the number. Spans that record shapes have no rate: their duration is that
 * of the recording. */
static int make_numbers(const work *work, tare__arena *arena, const node *of, const tare__number_row **rows, size_t *n)
{
    double tick_ns = tare__trace_tick_ns(work->trace);
    size_t count = 0;
    *n = 0;
    *rows = NULL;
    for (const number_cell *cell = of->numbers; cell; cell = cell->next)
        count += cell->n > 0;
    tare__number_row *made = count ? tare__arena_alloc(arena, count * sizeof *made) : NULL;
    if (!made)
        return count ? TARE_E_MEMORY : 0;
    for (const number_cell *cell = of->numbers; cell; cell = cell->next) {
        if (!cell->n)
            continue;
        const char *name = copied(arena, work->names.rows[cell->name].text);
        bool timed = cell->ticks && !(of->flags & NODE_INSPECTION);
        double rate = timed ? cell->sum / ((double)cell->ticks * tick_ns / 1e9) : NAN;
        made[(*n)++] = (tare__number_row){.name = name, .n = cell->n, .sum = cell->sum, .rate = rate};
    }
    tare__analyze_sort_numbers(made, count);
    *rows = made;
    return 0;
}

/* ---- order --------------------------------------------------------------------------------------- */
typedef struct sorter {
    node **list;
    size_t room;
} sorter;

TARE__ORDER_OF_POINTERS(by_total, node, TARE__FALLING(total) TARE__RISING(id) /* by first occurrence */)

/* A retracted step, and no other step at its place. */
static bool is_empty(const node *node)
{
    return node->flags & NODE_EMPTIED && !node->children && !node->hist.total && !node->untimed && !node->still_open &&
           !node->self;
}

static int sort_children(sorter *sorter, node *parent)
{
    size_t n = 0;
    for (node **at = &parent->children; *at;)
        if (is_empty(*at))
            *at = (*at)->sibling;
        else
            at = &(*at)->sibling;
    for (node *child = parent->children; child; child = child->sibling)
        n++;
    if (n < 2)
        return 0;
    if (!tare__array_fit(&sorter->list, &sorter->room, n, sizeof(node *)))
        return TARE_E_MEMORY;
    n = 0;
    for (node *child = parent->children; child; child = child->sibling)
        sorter->list[n++] = child;
    qsort(sorter->list, n, sizeof *sorter->list, by_total);
    parent->children = sorter->list[0];
    for (size_t i = 0; i < n; i++)
        sorter->list[i]->sibling = i + 1 < n ? sorter->list[i + 1] : NULL;
    return 0;
}

/* Children come after their parents in the list of all nodes, so in reverse order the children are always complete. */
static int sum_and_sort(work *work)
{
    sorter sorter = {NULL, 0};
    int status = 0;
    for (uint32_t i = 0; i < work->nodes.n; i++)
        work->nodes.all[i]->total = 0;
    for (uint32_t i = work->nodes.n; i-- > 0 && !status;) {
        node *node = work->nodes.all[i];
        node->total += node->self;
        if (node->parent)
            parent_of(&work->nodes, node)->total += node->total;
        status = sort_children(&sorter, node);
    }
    free(sorter.list);
    return status;
}

/* ---- span rows ----------------------------------------------------------------------------------- */
typedef struct row_maker {
    work *work;
    tare__arena *arena;
    tare__span_row *rows;
    const char **texts; /* copied names by canon, NULL: not yet */
    uint32_t n;
    uint32_t group;
    cost cost;
    double tick_ns, all_ns, subtracted;
} row_maker;

/* Continuations of calls are spans as well. */
static uint64_t spans_of(const nodes *all, const node *node)
{
    return calls_of(node) + tare__analyze_split_of(all, node).continued;
}

/* The recorder's overhead in a span's self time. Of a pair, `inner` is between its two timestamps, the rest in the
 * enclosing span. A chained span has one timestamp for the end of one and the begin of the next: the cost of `next`
 * is wholly inside the chain, partly before the timestamp and partly after, and is assigned to the span that begins;
 * summed over the chain this is exact. If nested spans count as the span itself, so does their outer part. */
double tare__analyze_own_cost(const nodes *all, const node *node, const cost *cost)
{
    double begun = (double)(spans_of(all, node) - node->chained);
    double own = begun * cost->inner + (double)node->chained * cost->next;
    double outer = cost->pair > cost->inner ? cost->pair - cost->inner : 0;
    if (node->flags & NODE_FOLDS)
        own += begun * outer;
    for (const struct node *child = node->children; child; child = child->sibling)
        own += (double)(spans_of(all, child) - child->chained) * outer;
    return own;
}

static const char *text_of(row_maker *maker, uint32_t name)
{
    if (!maker->texts[name])
        maker->texts[name] = copied(maker->arena, maker->work->names.rows[name].text);
    return maker->texts[name];
}

static int fill_row(row_maker *maker, node *node, tare__span_row *row)
{
    const canon *canon = &maker->work->names.rows[node->name];
    uint64_t calls = calls_of(node);
    split_node split = tare__analyze_split_of(&maker->work->nodes, node);
    double of_calls = (double)node->total + (double)split.beyond;
    double taken = maker->cost.known ? tare__analyze_own_cost(&maker->work->nodes, node, &maker->cost) : 0;
    taken = taken < (double)node->self ? taken : (double)node->self;
    maker->subtracted += taken * maker->tick_ns;
    *row = (tare__span_row){
        .name = text_of(maker, node->name),
        .file = canon->file, /* owned by the trace, until own_files */
        .line = canon->line,
        .kind = canon->kind,
        .group = maker->group,
        .depth = node->depth - 1u,
        .calls = calls,
        .still_open = node->still_open,
        .end_missing = node->end_missing,
        .left_open = node->left_open,
        .inspection = (node->flags & NODE_INSPECTION) != 0,
        .continued = split.continued,
        .calls_ns = of_calls * maker->tick_ns,
        .total_ns = (double)node->total * maker->tick_ns,
        .raw_self_ns = (double)node->self * maker->tick_ns,
        .self_ns = ((double)node->self - taken) * maker->tick_ns,
        .share = maker->all_ns > 0 ? (double)node->total * maker->tick_ns / maker->all_ns : NAN,
        .each = tare__analyze_durations(maker->work, &node->hist, node->min, node->max, of_calls, node->hist.total),
    };
    tare__hist_free(&node->hist); /* frees memory for the following rows */
    return make_numbers(maker->work, maker->arena, node, &row->numbers, &row->n_numbers);
}

/* A parent needs the number of its children's calls before their rows are made; the count must outlive the buckets. */
static int make_rows(row_maker *maker, node *parent, uint32_t parent_row)
{
    for (node *child = parent->children; child; child = child->sibling) {
        uint64_t calls = child->hist.total;
        uint32_t at = maker->n++;
        int status = fill_row(maker, child, &maker->rows[at]);
        child->hist.total = calls;
        maker->rows[at].parent = parent_row;
        if (!status)
            status = make_rows(maker, child, at);
        if (status)
            return status;
        maker->rows[at].n_rows = maker->n - at - 1;
    }
    return 0;
}

/* File names are owned by the trace; the result must outlive it. Sites of one file share the pointer, so a small
 * cache is sufficient. */
static void own_files(row_maker *maker)
{
    enum { CACHED = 64 };
    const char *from[CACHED] = {NULL}, *to[CACHED] = {NULL};
    for (uint32_t i = 0; i < maker->n; i++) {
        const char *file = maker->rows[i].file;
        if (!file)
            continue;
        size_t at = ((uintptr_t)file >> 3 ^ (uintptr_t)file >> 9) % CACHED;
        if (from[at] != file) {
            from[at] = file;
            to[at] = copied(maker->arena, file);
        }
        maker->rows[i].file = to[at];
    }
}

static int by_group_total(const void *a, const void *b)
{
    return by_total(&((const group *)a)->root, &((const group *)b)->root);
}

/* Sorts groups and removes those without spans; updates the indexes in streams and steps. */
static int sort_groups(work *work)
{
    size_t n = work->n_groups, kept = 0;
    if (!n)
        return 0;
    uint32_t *moved = malloc((work->nodes.n + 1) * sizeof *moved); /* by id of the root */
    if (!moved)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < work->n_streams; i++)
        work->streams[i]->root = work->groups[work->streams[i]->group].root;
    node **roots = malloc((n + 1) * sizeof *roots);
    if (!roots) {
        free(moved);
        return TARE_E_MEMORY;
    }
    for (size_t i = 0; i < n; i++)
        roots[i] = work->groups[i].root;
    qsort(work->groups, n, sizeof *work->groups, by_group_total);
    for (size_t i = 0; i < n; i++)
        moved[work->groups[i].root->id] = work->groups[i].root->children ? (uint32_t)kept++ : TARE__NO_ROW;
    for (size_t i = 0, to = 0; i < n; i++)
        if (work->groups[i].root->children)
            work->groups[to++] = work->groups[i];
    for (size_t i = 0; i < work->n_steps; i++)
        work->steps[i].group = moved[roots[work->steps[i].group]->id];
    for (size_t i = 0; i < work->n_streams; i++)
        work->streams[i]->group = moved[work->streams[i]->root->id];
    if (work->has_strays)
        work->stray.group = moved[work->stray.root->id];
    work->n_groups = kept;
    free(roots);
    free(moved);
    return 0;
}

static const char *group_name(const work *work, const group *group, tare__arena *arena)
{
    const tare__trace_process *process = tare__trace_process_at(work->trace, group->process);
    const tare__trace_stream *reported = tare__trace_stream_at(work->trace, group->stream);
    if (work->by == TARE__BY_THREAD && reported && reported->name)
        return copied(arena, reported->name);
    if (work->by == TARE__BY_PROCESS && process && process->arguments)
        return tare__analyze_label(work, arena, process);
    return copied(arena, work->by == TARE__BY_THREAD ? "(unknown thread)" : "(unknown process)");
}

static int make_groups(row_maker *maker, tare__analysis *analysis)
{
    work *work = maker->work;
    tare__group_row *groups = tare__arena_alloc(analysis->arena, work->n_groups * sizeof *groups);
    if (!groups)
        return TARE_E_MEMORY;
    analysis->groups = groups;
    analysis->n_groups = work->n_groups;
    for (size_t i = 0; i < work->n_groups; i++) {
        const group *group = &work->groups[i];
        maker->group = (uint32_t)i;
        maker->cost = tare__analyze_cost(work, group->process);
        const stream *stream = group->stream && work->by == TARE__BY_THREAD
                                   ? work->streams[work->stream_of[group->stream] - 1]
                                   : NULL;
        groups[i] = (tare__group_row){
            .name = group_name(work, group, analysis->arena),
            .process = tare__analyze_process_row(work, group->process),
            .thread = stream ? stream->row : TARE__NO_ROW,
            .first_row = maker->n,
            .total_ns = (double)group->root->total * maker->tick_ns,
        };
        int status = groups[i].name ? make_rows(maker, group->root, TARE__NO_ROW) : TARE_E_MEMORY;
        if (status)
            return status;
        groups[i].n_rows = maker->n - groups[i].first_row;
    }
    return 0;
}

static double all_totals(const work *work)
{
    double all = work->by == TARE__BY_RUN ? (double)work->run_root->total : 0;
    for (size_t i = 0; i < work->n_groups; i++)
        all += (double)work->groups[i].root->total;
    return all;
}

int tare__analyze_spans_table(work *work, tare__analysis *analysis)
{
    row_maker maker = {.work = work, .arena = analysis->arena, .group = TARE__NO_ROW};
    int status = sum_and_sort(work);
    if (!status && work->by != TARE__BY_RUN)
        status = sort_groups(work);
    if (status)
        return status;
    maker.tick_ns = tare__trace_tick_ns(work->trace);
    maker.all_ns = all_totals(work) * maker.tick_ns;
    maker.rows = tare__arena_alloc(analysis->arena, (size_t)work->nodes.n * sizeof *maker.rows);
    maker.texts = calloc(work->names.n, sizeof *maker.texts);
    if (!maker.rows || !maker.texts) {
        free(maker.texts);
        return TARE_E_MEMORY;
    }
    if (work->by == TARE__BY_RUN) {
        maker.cost = tare__analyze_cost(work, 0);
        status = make_rows(&maker, work->run_root, TARE__NO_ROW);
    } else {
        status = make_groups(&maker, analysis);
    }
    own_files(&maker);
    free(maker.texts);
    analysis->spans = maker.rows;
    analysis->n_spans = maker.n;
    analysis->own.subtracted_ns = work->average.known ? maker.subtracted : NAN;
    return status;
}

/* ---- track rows ---------------------------------------------------------------------------------- */
static void fill_track_row(const work *work, tare__arena *arena, const node *track, node *span, tare__track_row *row)
{
    const canon *on = &work->names.rows[track->name];
    double tick_ns = tare__trace_tick_ns(work->trace);
    *row = (tare__track_row){
        .track = copied(arena, on->text),
        .track_kind = on->kind > TARE__NAME_TRACK ? on->kind - TARE__NAME_TRACK : 0,
        .name = copied(arena, work->names.rows[span->name].text),
        .calls = span->hist.total,
        .total_ns = (double)span->self * tick_ns,
        .self_ns = (double)span->self * tick_ns,
        .each = tare__analyze_durations(work, &span->hist, span->min, span->max, (double)span->self,
                                        span->hist.total),
        .flows = span->flows,
        .children = span->with_parent,
    };
}

/* After the spans table, which sums and sorts the nodes. */
int tare__analyze_tracks_table(work *work, tare__analysis *analysis)
{
    size_t n = 0;
    for (const node *track = work->tracks->children; track; track = track->sibling) {
        n += track->hist.total != 0; /* "(others)" is both track and span */
        for (const node *span = track->children; span; span = span->sibling)
            n++;
    }
    tare__track_row *rows = tare__arena_alloc(analysis->arena, n * sizeof *rows);
    if (!rows)
        return TARE_E_MEMORY;
    analysis->tracks = rows;
    for (node *track = work->tracks->children; track; track = track->sibling) {
        if (track->hist.total)
            fill_track_row(work, analysis->arena, track, track, &rows[analysis->n_tracks++]);
        for (node *span = track->children; span; span = span->sibling)
            fill_track_row(work, analysis->arena, track, span, &rows[analysis->n_tracks++]);
    }
    return 0;
}
