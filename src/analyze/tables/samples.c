/* samples: single durations, in order and in bounded memory, so that two runs can be compared: one per call, or one per
 * step for what runs inside of steps. Made only on request. Owned by the thread that analyzes.
 * Must not know what they are used for. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define LIMIT TARE__FIGURE_SAMPLES_MAX
#define LIMIT_SCARCE 32u                /* … for subjects added when all subjects together have … */
#define VALUES_MAX ((size_t)1 << 20)    /* … this many: 8 MiB */
#define PATH_MAX_BYTES 1024u            /* of a path; deeper spans share a truncated one */

typedef struct subject {
    tare__sampled of;
    bool per_step;
    uint32_t key;      /* of a span, its node's id; else a canon */
    double *values;    /* ticks; of a counter its values */
    uint32_t n, room;
    uint64_t each;
    double pending;    /* of the incomplete sample: the sum, and … */
    uint64_t in_pending; /* … the number of values */
    uint64_t calls;
    double total;
} subject;

/* Time of a thread's open step so far, by subject. */
typedef struct tally_row {
    uint32_t subject;
    uint64_t ticks, calls;
} tally_row;

struct tally {
    tally_row *rows;
    size_t n, room;
    tare__index index; /* of rows, by subject */
};

struct samples {
    subject *rows;
    size_t n, room;
    uint32_t *of_node; /* by id: subject + 1; NONE */
    size_t nodes_room;
    tare__intern *by_key;
    uint32_t *of_key;
    size_t keys_room;
    size_t values; /* capacity of all subjects together */
};

#define NONE UINT32_MAX

int tare__analyze_start_samples(work *work)
{
    work->samples = calloc(1, sizeof *work->samples);
    if (work->samples)
        work->samples->by_key = tare__intern_new();
    work->watched = true;
    return work->samples && work->samples->by_key ? 0 : TARE_E_MEMORY;
}

void tare__analyze_free_tally(struct tally *tally)
{
    if (!tally)
        return;
    free(tally->rows);
    tare__index_free(&tally->index);
    free(tally);
}

void tare__analyze_free_samples(work *work)
{
    struct samples *all = work->samples;
    if (!all)
        return;
    for (size_t i = 0; i < all->n; i++)
        free(all->rows[i].values);
    free(all->rows);
    free(all->of_node);
    free(all->of_key);
    tare__intern_free(all->by_key);
    free(all);
}

/* ---- one subject's values --------------------------------------------------------------------- */
/* Averages pairs of adjacent samples; of an odd number the last begins the next sample. */
static void halve(subject *subject)
{
    uint32_t pairs = subject->n / 2;
    for (uint32_t i = 0; i < pairs; i++)
        subject->values[i] = (subject->values[2 * i] + subject->values[2 * i + 1]) / 2;
    if (subject->n % 2) {
        subject->pending += subject->values[subject->n - 1] * (double)subject->each;
        subject->in_pending += subject->each;
    }
    subject->n = pairs;
    subject->each *= 2;
}

static int push(struct samples *all, subject *subject, double value)
{
    uint32_t limit = all->values < VALUES_MAX ? LIMIT : LIMIT_SCARCE;
    if (subject->n == subject->room && subject->room < limit) {
        uint32_t room = subject->room ? subject->room * 2 : 4;
        room = room > limit ? limit : room;
        double *values = realloc(subject->values, room * sizeof *values);
        if (!values)
            return TARE_E_MEMORY;
        all->values += room - subject->room;
        subject->values = values;
        subject->room = room;
    }
    subject->values[subject->n++] = value;
    return 0;
}

static int add_value(struct samples *all, subject *subject, double value)
{
    uint32_t limit = all->values < VALUES_MAX ? LIMIT : LIMIT_SCARCE;
    while (subject->n >= limit)
        halve(subject);
    subject->pending += value;
    if (++subject->in_pending < subject->each)
        return 0;
    value = subject->pending / (double)subject->in_pending;
    subject->pending = 0;
    subject->in_pending = 0;
    return push(all, subject, value);
}

/* ---- which subject ---------------------------------------------------------------------------- */
static uint32_t make_subject(struct samples *all, tare__sampled of, uint32_t key, bool per_step)
{
    if (!tare__array_fit(&all->rows, &all->room, all->n + 1, sizeof *all->rows))
        return NONE;
    all->rows[all->n] = (subject){.of = of, .key = key, .per_step = per_step, .each = 1};
    return (uint32_t)all->n++;
}

/* For subjects identified by name only. */
static uint32_t subject_by_name(struct samples *all, tare__sampled of, uint32_t name, bool per_step)
{
    uint32_t key[3] = {(uint32_t)of, name, per_step};
    uint32_t known = tare__intern_count(all->by_key);
    uint32_t at = tare__intern_add(all->by_key, (const char *)key, sizeof key);
    if (at == TARE__INTERN_NONE || !tare__array_fit(&all->of_key, &all->keys_room, (size_t)at + 1, sizeof(uint32_t)))
        return NONE;
    if (at == known)
        all->of_key[at] = make_subject(all, of, name, per_step);
    return all->of_key[at];
}

static bool lies_in(const work *work, const node *node, uint32_t kind, uint32_t name)
{
    const nodes *nodes = &work->nodes;
    for (node = parent_of(nodes, node); node && node->parent; node = parent_of(nodes, node))
        if (kind ? work->names.rows[node->name].kind == kind : node->name == name)
            return true;
    return false;
}

/* A module nested in itself is counted once, with the outer one. */
static bool is_counted(const work *work, const node *node, uint32_t kind)
{
    return kind != TARE_KIND_MODULE || !lies_in(work, node, 0, node->name);
}

static uint32_t subject_of_nested(work *work, const node *node)
{
    struct samples *all = work->samples;
    bool in_step = lies_in(work, node, TARE_KIND_STEP, 0);
    switch (work->names.rows[node->name].kind) {
    case TARE_KIND_STEP: return subject_by_name(all, TARE__SAMPLED_STEP, node->name, false);
    case TARE_KIND_EPOCH: return subject_by_name(all, TARE__SAMPLED_EPOCH, node->name, false);
    case TARE_KIND_OPERATOR: return subject_by_name(all, TARE__SAMPLED_OPERATOR, node->name, in_step);
    case TARE_KIND_MODULE: return subject_by_name(all, TARE__SAMPLED_LAYER, node->name, in_step);
    default: return make_subject(all, TARE__SAMPLED_SPAN, node->id, in_step);
    }
}

static uint32_t *place_of(struct samples *all, const node *node)
{
    if (!tare__array_fit_zeroed(&all->of_node, &all->nodes_room, (size_t)node->id + 1, sizeof *all->of_node))
        return NULL;
    return &all->of_node[node->id];
}

/* ---- steps that are open ---------------------------------------------------------------------- */
TARE__KEYED(is_subject, tally_row, uint32_t, a->subject == *b)

static int add_to_tally(struct tally *tally, uint32_t subject, uint64_t ticks)
{
    uint32_t hash = (uint32_t)tare__hash_mix(0, subject);
    uint32_t at = tare__index_find(&tally->index, hash, is_subject, tally->rows, &subject);
    if (at != TARE__INDEX_NONE) {
        tally->rows[at].ticks += ticks;
        tally->rows[at].calls++;
        return 0;
    }
    if (!tare__array_fit(&tally->rows, &tally->room, tally->n + 1, sizeof *tally->rows) ||
        !tare__index_add(&tally->index, hash, (uint32_t)tally->n))
        return TARE_E_MEMORY;
    tally->rows[tally->n++] = (tally_row){subject, ticks, 1};
    return 0;
}

/* The outermost step of a thread ended. Its contents become samples if its end is known; the contents of a retracted
 * step count as outside of steps. */
static int take_tally(work *work, stream *stream, how_ended how, bool none)
{
    struct tally *tally = stream->tally;
    int status = 0;
    if (!tally || !tally->n)
        return 0;
    for (size_t i = 0; i < tally->n && how == ENDED && !status; i++)
        status = add_value(work->samples, &work->samples->rows[tally->rows[i].subject], (double)tally->rows[i].ticks);
    for (size_t i = 0; i < tally->n && none; i++) {
        work->samples->rows[tally->rows[i].subject].calls -= tally->rows[i].calls;
        work->samples->rows[tally->rows[i].subject].total -= (double)tally->rows[i].ticks;
    }
    tally->n = 0;
    tare__index_clear(&tally->index);
    return status;
}

/* ---- while reading ---------------------------------------------------------------------------- */
static int add_call(work *work, stream *stream, uint32_t at, uint64_t ticks)
{
    subject *subject = &work->samples->rows[at];
    subject->calls++;
    subject->total += (double)ticks;
    if (!subject->per_step)
        return add_value(work->samples, subject, (double)ticks);
    if (!stream->tally)
        stream->tally = calloc(1, sizeof *stream->tally);
    return stream->tally ? add_to_tally(stream->tally, at, ticks) : TARE_E_MEMORY;
}

int tare__analyze_sample(work *work, stream *stream, const frame *top, uint64_t now, how_ended how)
{
    const node *node = top->node;
    uint32_t kind = work->names.rows[node->name].kind;
    uint32_t *place = place_of(work->samples, node);
    if (!place)
        return TARE_E_MEMORY;
    bool none = node->flags & NODE_TIMED && tare__analyze_is_taken_back(stream, (uint32_t)(top - work->frames));
    how = none ? END_LOST : how;
    if (!*place) {
        uint32_t subject = is_counted(work, node, kind) ? subject_of_nested(work, node) : NONE - 1;
        if (subject == NONE)
            return TARE_E_MEMORY;
        *place = subject + 1;
    }
    int status = 0;
    uint64_t ticks = now - top->span.begin;
    bool folded = node->flags & NODE_FOLDS && top[-1].node == node; /* nested spans are included in the outer one */
    if (how == ENDED && *place != NONE && !folded)
        status = add_call(work, stream, *place - 1, kind == TARE_KIND_OPERATOR ? ticks - top->child : ticks);
    if (kind == TARE_KIND_STEP && !status && !lies_in(work, node, TARE_KIND_STEP, 0))
        status = take_tally(work, stream, how, none);
    return status;
}

int tare__analyze_sample_complete(work *work, const node *node, uint32_t track_kind, uint64_t ticks)
{
    static const tare__sampled of[] = {[0] = TARE__SAMPLED_SPAN,
                                       [TARE_TRACK_TASK] = TARE__SAMPLED_TASK,
                                       [TARE_TRACK_GPU] = TARE__SAMPLED_KERNEL,
                                       [TARE_TRACK_REQUEST] = TARE__SAMPLED_REQUEST,
                                       [TARE_TRACK_OTHER] = TARE__SAMPLED_TRACK};
    uint32_t *place = place_of(work->samples, node);
    if (!place)
        return TARE_E_MEMORY;
    if (!*place) {
        tare__sampled what = track_kind < TARE__COUNT_OF(of) ? of[track_kind] : TARE__SAMPLED_TRACK;
        uint32_t subject = what == TARE__SAMPLED_SPAN ? make_subject(work->samples, what, node->id, false)
                                                      : subject_by_name(work->samples, what, node->name, false);
        if (subject == NONE)
            return TARE_E_MEMORY;
        *place = subject + 1;
    }
    return add_call(work, NULL, *place - 1, ticks);
}

int tare__analyze_sample_value(work *work, uint32_t name, double value)
{
    uint32_t at = subject_by_name(work->samples, TARE__SAMPLED_COUNTER, name, false);
    if (at == NONE)
        return TARE_E_MEMORY;
    work->samples->rows[at].calls++;
    return add_value(work->samples, &work->samples->rows[at], value);
}

/* ---- table ------------------------------------------------------------------------------------ */
static const char *path_of(const work *work, uint32_t id, tare__arena *arena)
{
    const char *names[DEPTH_MAX + 2];
    size_t n = 0;
    char path[PATH_MAX_BYTES];
    size_t length = 0;
    const node *node = work->nodes.all[id - 1];
    bool on_track = false;
    for (; node->parent && n < TARE__COUNT_OF(names); node = parent_of(&work->nodes, node))
        names[n++] = work->names.rows[node->name].text;
    on_track = node == work->tracks && n > 1; /* a complete span on its recording thread has only its name */
    n = on_track ? 1 : n;
    while (n-- > 0) {
        size_t bytes = strlen(names[n]);
        if (length + bytes + 2 > sizeof path)
            break;
        if (length)
            path[length++] = '/';
        memcpy(path + length, names[n], bytes);
        length += bytes;
    }
    return tare__arena_copy(arena, path, length);
}

/* The same name inside and outside of steps is two subjects: time per step, and time per call. */
static const char *name_of(const work *work, const subject *subject, tare__arena *arena)
{
    if (subject->of == TARE__SAMPLED_SPAN)
        return path_of(work, subject->key, arena);
    const char *text = work->names.rows[subject->key].text;
    tare__text name = {0};
    tare__text_string(&name, text);
    uint32_t key[3] = {(uint32_t)subject->of, subject->key, true};
    if (!subject->per_step &&
        tare__intern_find(work->samples->by_key, (const char *)key, sizeof key) != TARE__INTERN_NONE)
        tare__text_string(&name, " (outside of steps)");
    return kept(arena, &name);
}

static int fill_row(const work *work, const subject *subject, tare__arena *arena, tare__sample_row *row)
{
    double scale = subject->of == TARE__SAMPLED_COUNTER ? 1 : tare__trace_tick_ns(work->trace);
    double *values = tare__arena_alloc(arena, (subject->n + 1) * sizeof *values);
    *row = (tare__sample_row){
        .of = subject->of,
        .name = name_of(work, subject, arena),
        .per_step = subject->per_step,
        .calls = subject->calls,
        .total_ns = subject->of == TARE__SAMPLED_COUNTER ? NAN : subject->total * scale,
        .each = subject->each,
        .values = values,
        .n = subject->n,
    };
    if (!values || !row->name)
        return TARE_E_MEMORY;
    for (uint32_t i = 0; i < subject->n; i++)
        values[i] = subject->values[i] * scale;
    return 0;
}

#define TOTAL_IF_KNOWN(row) (isnan((row)->total_ns) ? -1 : (row)->total_ns)
TARE__ORDER(by_total, tare__sample_row, TARE__FALLING_BY(TOTAL_IF_KNOWN) TARE__RISING(of) TARE__BY_TEXT(name))

int tare__analyze_samples_table(work *work, tare__analysis *analysis)
{
    const struct samples *all = work->samples;
    if (!all)
        return 0;
    tare__sample_row *rows = tare__arena_alloc(analysis->arena, (all->n + 1) * sizeof *rows);
    int status = rows ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < all->n && !status; i++)
        status = fill_row(work, &all->rows[i], analysis->arena, &rows[i]);
    if (status)
        return status;
    qsort(rows, all->n, sizeof *rows, by_total);
    analysis->samples = rows;
    analysis->n_samples = all->n;
    return 0;
}
