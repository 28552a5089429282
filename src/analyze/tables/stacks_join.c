/* stacks_join: the spans around each stack sample: those open on its thread at its time. One pass over the samples, one
 * over the spans; 4 bytes per sample remain.
 * Owned by the thread that analyzes.
 * Must not know what samples are added up to. */
#include <stdlib.h>

#include "analyze/inner.h"

#define JOINED_MAX ((size_t)1 << 26) /* samples; further ones are in no span */
#define PATHS_MAX  ((size_t)1 << 20) /* further spans count as the one around them */

typedef struct moment_of { /* a sample whose spans are wanted */
    uint64_t ticks;
    uint32_t ordinal;
} moment_of;

typedef struct line_up { /* the samples of one thread, by time */
    int64_t pid, tid;
    uint32_t same; /* number of the first thread with these ids: ids are reused */
    bool sorted;
    moment_of *moments;
    size_t n, room;
} line_up;

typedef struct cursor { /* of a stream: how far its events have come in its thread's samples */
    const line_up *thread;
    size_t at;
} cursor;

typedef struct joining {
    joined *made;
    tare__trace *trace;
    canons names;
    tare__index index; /* of paths */
    tare__index thread_index;
    line_up *threads;  /* by number of the thread */
    uint32_t n_threads;
    cursor *cursors;   /* by stream id */
    size_t n_cursors, paths_room;
    tare__replay_span *outside;
    cursor *now;       /* of the stream whose block is being read; NULL: its thread was not sampled */
} joining;

/* ---- paths ---------------------------------------------------------------------------------------------- */
TARE__SAME(is_path, span_path, TARE__EQUAL(outer) && TARE__EQUAL(name))

/* The path itself when there are too many; TARE__NO_ROW: out of memory. */
static uint32_t find_path(joining *to, uint32_t outer, uint32_t name)
{
    joined *made = to->made;
    const canon *canon = &to->names.rows[name];
    span_path key = {.outer = outer, .name = name, .kind = canon->kind, .text = canon->text};
    uint32_t hash = (uint32_t)tare__hash_mix(outer, name);
    uint32_t row = tare__index_find(&to->index, hash, is_path, made->paths, &key);
    if (row != TARE__INDEX_NONE)
        return row;
    if (made->n_paths >= PATHS_MAX)
        return outer;
    row = (uint32_t)made->n_paths;
    if (!tare__array_fit(&made->paths, &to->paths_room, made->n_paths + 1, sizeof *made->paths) ||
        !tare__index_add(&to->index, hash, row))
        return TARE__NO_ROW;
    made->paths[made->n_paths++] = key;
    return row;
}

/* Of the innermost of the open spans. A span keeps its path in `bits`. */
static uint32_t path_of(joining *to, tare__replay_span *innermost)
{
    tare__replay_span *known = innermost;
    while (known > to->outside && !known->bits)
        known--;
    uint32_t path = known > to->outside ? known->bits : 0;
    while (known < innermost && path != TARE__NO_ROW) {
        known++;
        path = known->bits = find_path(to, path, canon_of(&to->names, known->name));
    }
    return path;
}

/* ---- the spans: whenever one begins or ends, samples before that are inside of what was open ------------------ */
/* A sample stands for the time before it. */
static int assign(joining *to, tare__replay_span *innermost, uint64_t before)
{
    cursor *cursor = to->now;
    if (!cursor || cursor->at >= cursor->thread->n || cursor->thread->moments[cursor->at].ticks > before)
        return 0;
    uint32_t path = path_of(to, innermost);
    if (path == TARE__NO_ROW)
        return TARE_E_MEMORY;
    for (; cursor->at < cursor->thread->n && cursor->thread->moments[cursor->at].ticks <= before; cursor->at++)
        if (path)
            to->made->of_sample[cursor->thread->moments[cursor->at].ordinal] = path;
    return 0;
}

static int enter(void *context, tare__replay_stream *of, tare__replay_span *outside, const tare__block_header *header,
                 uint32_t missing)
{
    joining *to = context;
    (void)header;
    (void)missing;
    to->outside = outside;
    to->now = of->id < to->n_cursors && to->cursors[of->id].thread ? &to->cursors[of->id] : NULL;
    return 0;
}

static int begin(void *context, tare__replay_stream *of, tare__replay_span *span, tare__replay_begin how)
{
    (void)of;
    (void)how;
    return assign(context, span - 1, span->begin);
}

/* At the end of the file: samples after the thread's last event are inside of what is still open. */
static int end(void *context, tare__replay_stream *of, tare__replay_span *span, uint64_t ticks, tare__replay_how how)
{
    (void)of;
    return assign(context, span, how == TARE__REPLAY_STILL_OPEN ? UINT64_MAX : ticks);
}

static const tare__replay_visitor spans_visitor = {.enter = enter, .begin = begin, .end = end};

static int begin_fast(void *context, tare__replay_stream *of, tare__replay_span *span, tare__replay_begin how)
{
    return begin(context, of, span, how);
}

static int fast(tare__replay *replay)
{
    static const tare__replay_visitor constant = {
        .span_bytes = sizeof(tare__replay_span), .begin = begin_fast, .end = end};
    return tare__replay_fast(replay, &constant);
}

/* ---- the samples ------------------------------------------------------------------------------------------- */
static int take_samples(void *context, const tare__stack_sample *samples, uint32_t n)
{
    joining *to = context;
    for (uint32_t i = 0; i < n && to->made->n < JOINED_MAX; i++) {
        uint32_t ordinal = (uint32_t)to->made->n++;
        if (!samples[i].thread || samples[i].thread > to->n_threads)
            continue;
        line_up *thread = &to->threads[to->threads[samples[i].thread].same];
        if (!tare__array_fit(&thread->moments, &thread->room, thread->n + 1, sizeof *thread->moments))
            return TARE_E_MEMORY;
        thread->sorted = thread->sorted && (!thread->n || thread->moments[thread->n - 1].ticks <= samples[i].ticks);
        thread->moments[thread->n++] = (moment_of){samples[i].ticks, ordinal};
    }
    return 0;
}

TARE__ORDER(by_time, moment_of, TARE__RISING(ticks) TARE__RISING(ordinal))

/* ---- threads and streams ------------------------------------------------------------------------------------ */
TARE__SAME(is_thread, line_up, TARE__EQUAL(pid) && TARE__EQUAL(tid))

static uint32_t find_thread(const joining *to, int64_t pid, int64_t tid, uint32_t *hash)
{
    const line_up key = {.pid = pid, .tid = tid};
    *hash = (uint32_t)tare__hash_mix(tare__hash_mix(5, (uint64_t)pid), (uint64_t)tid);
    return tare__index_find(&to->thread_index, *hash, is_thread, to->threads, &key);
}

/* False: no thread with spans was sampled. Inside a PID namespace a process sees other ids: its main thread is
 * recognized by that of the process. */
static bool match_streams(joining *to)
{
    bool any = false;
    for (size_t i = 0; i < tare__trace_stream_count(to->trace); i++) {
        const tare__trace_stream *stream = tare__trace_stream_row(to->trace, i);
        const tare__trace_process *process = tare__trace_process_at(to->trace, stream->process);
        if (!process || !process->pid || stream->id >= to->n_cursors)
            continue;
        bool main = process->inner_pid && process->inner_pid == stream->tid;
        uint32_t hash, row = find_thread(to, process->pid, main ? process->pid : stream->tid, &hash);
        if (row == TARE__INDEX_NONE || !to->threads[row].n)
            continue;
        to->cursors[stream->id].thread = &to->threads[row];
        any = true;
    }
    return any;
}

static bool list_threads(joining *to)
{
    for (uint32_t i = 1; i <= to->n_threads; i++) {
        const tare__trace_thread *from = tare__trace_thread_at(to->trace, i);
        uint32_t hash, known = TARE__INDEX_NONE;
        to->threads[i] = (line_up){.pid = from ? from->pid : 0, .tid = from ? from->tid : 0, .sorted = true};
        known = find_thread(to, to->threads[i].pid, to->threads[i].tid, &hash);
        to->threads[i].same = known == TARE__INDEX_NONE ? i : known;
        if (known == TARE__INDEX_NONE && !tare__index_add(&to->thread_index, hash, i))
            return false;
    }
    return true;
}

static int start(joining *to)
{
    to->n_threads = tare__trace_thread_count(to->trace);
    for (size_t i = 0; i < tare__trace_stream_count(to->trace); i++) {
        uint32_t id = tare__trace_stream_row(to->trace, i)->id;
        to->n_cursors = id >= to->n_cursors ? (size_t)id + 1 : to->n_cursors;
    }
    to->threads = calloc((size_t)to->n_threads + 1, sizeof *to->threads);
    to->cursors = calloc(to->n_cursors + 1, sizeof *to->cursors);
    if (!to->threads || !to->cursors ||
        !tare__array_fit(&to->made->paths, &to->paths_room, 1, sizeof *to->made->paths))
        return TARE_E_MEMORY;
    to->made->paths[to->made->n_paths++] = (span_path){.outer = 0};
    if (!list_threads(to))
        return TARE_E_MEMORY;
    return tare__analyze_load_names(&to->names, to->trace);
}

static int join(joining *to, tare__error *error)
{
    const tare__replay_visitor samples = {.context = to, .stacks = take_samples};
    tare__replay_visitor spans = spans_visitor;
    int status = start(to);
    if (!status)
        status = tare__trace_replay(to->trace, &samples, error);
    for (uint32_t i = 1; i <= to->n_threads && !status; i++)
        if (!to->threads[i].sorted)
            qsort(to->threads[i].moments, to->threads[i].n, sizeof *to->threads[i].moments, by_time);
    if (status || !match_streams(to))
        return status;
    to->made->of_sample = calloc(to->made->n + 1, sizeof *to->made->of_sample);
    spans.context = to;
    spans.fast = fast;
    return to->made->of_sample ? tare__trace_replay(to->trace, &spans, error) : TARE_E_MEMORY;
}

int tare__analyze_join(tare__trace *trace, joined **made, tare__error *error)
{
    *made = NULL;
    if (!tare__trace_thread_count(trace) || !tare__trace_stream_count(trace))
        return 0;
    joining to = {.trace = trace, .made = calloc(1, sizeof *to.made)};
    int status = to.made ? join(&to, error) : TARE_E_MEMORY;
    for (uint32_t i = 1; i <= to.n_threads && to.threads; i++)
        free(to.threads[i].moments);
    free(to.threads);
    free(to.cursors);
    tare__index_free(&to.index);
    tare__index_free(&to.thread_index);
    tare__analyze_free_names(&to.names);
    if (status || !to.made->of_sample) {
        tare__analyze_free_joined(to.made);
        to.made = NULL;
    }
    *made = to.made;
    return status;
}

void tare__analyze_free_joined(joined *made)
{
    if (!made)
        return;
    free(made->paths);
    free(made->of_sample);
    free(made);
}
