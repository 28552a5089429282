/* streams: the state of each thread while the trace is read, and the group of its spans.
 * Owned by the thread that analyzes.
 * Must not know what events mean. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define STREAMS_MAX ((size_t)100000)

/* ---- groups -------------------------------------------------------------------------------------- */
static bool add_group(work *work, uint32_t process, uint32_t stream_id, uint32_t *at)
{
    if (!tare__array_fit(&work->groups, &work->groups_room, work->n_groups + 1, sizeof *work->groups))
        return false;
    node *root = tare__analyze_make_root(&work->nodes);
    if (!root)
        return false;
    *at = (uint32_t)work->n_groups++;
    work->groups[*at] = (group){root, process, stream_id};
    return true;
}

/* Processes not described in the file share number 0. */
static bool group_by_process(work *work, uint32_t process, uint32_t *at)
{
    if (!tare__trace_process_at(work->trace, process))
        process = 0;
    if (!work->group_of_process) {
        work->group_of_process = calloc(TARE__TRACE_IDS_MAX + 1, sizeof *work->group_of_process);
        if (!work->group_of_process)
            return false;
    }
    uint32_t *known = &work->group_of_process[process];
    if (!*known) {
        if (!add_group(work, process, 0, at))
            return false;
        *known = *at + 1;
    }
    *at = *known - 1;
    return true;
}

static bool put_in_group(work *work, stream *stream)
{
    stream->group = TARE__NO_ROW;
    stream->root = work->run_root;
    if (work->by == TARE__BY_RUN)
        return true;
    bool done = work->by == TARE__BY_PROCESS ? group_by_process(work, stream->process, &stream->group)
                                             : add_group(work, stream->process, stream->id, &stream->group);
    if (done)
        stream->root = work->groups[stream->group].root;
    return done;
}

/* ---- streams ------------------------------------------------------------------------------------- */
static bool room_for_stream(work *work, uint32_t id)
{
    return tare__array_fit_zeroed(&work->stream_of, &work->stream_ids, (size_t)id + 1, sizeof *work->stream_of) &&
           tare__array_fit(&work->streams, &work->streams_room, work->n_streams + 1, sizeof(stream *));
}

static void name_stream(const work *work, stream *stream, uint32_t id)
{
    const tare__trace_stream *reported = tare__trace_stream_at(work->trace, id);
    stream->id = id;
    stream->process = reported ? reported->process : 0;
    stream->first = UINT64_MAX;
}

static stream *stray_stream(work *work, uint32_t id)
{
    stream *stray = &work->stray;
    if (!work->has_strays) {
        name_stream(work, stray, id);
        stray->process = 0;
        stray->id = 0;
        if (!put_in_group(work, stray))
            return NULL;
        work->has_strays = true;
    }
    return stray;
}

stream *tare__analyze_stream(work *work, uint32_t id)
{
    if (id < work->stream_ids && work->stream_of[id])
        return work->streams[work->stream_of[id] - 1];
    if (!id || work->n_streams >= STREAMS_MAX || id > TARE__TRACE_IDS_MAX)
        return stray_stream(work, id);
    stream *made = room_for_stream(work, id) ? calloc(1, sizeof *made) : NULL;
    if (!made)
        return NULL;
    name_stream(work, made, id);
    work->streams[work->n_streams++] = made;
    work->stream_of[id] = (uint32_t)work->n_streams;
    return put_in_group(work, made) ? made : NULL;
}

int tare__analyze_load_streams(work *work)
{
    size_t n = tare__trace_stream_count(work->trace);
    for (size_t i = 0; i < n; i++)
        if (!tare__analyze_stream(work, tare__trace_stream_row(work->trace, i)->id))
            return TARE_E_MEMORY;
    return 0;
}

static void free_stream(stream *stream)
{
    free(stream->indexes);
    free(stream->parts);
    free(stream->uses);
    tare__analyze_free_open_numbers(stream->open_numbers);
    free(stream->first_steps);
    tare__analyze_free_tally(stream->tally);
    tare__analyze_free_unsure(stream->unsure);
    tare__analyze_free_split(&stream->split);
}

void tare__analyze_free_streams(work *work)
{
    for (size_t i = 0; i < work->n_streams; i++) {
        free_stream(work->streams[i]);
        free(work->streams[i]);
    }
    free_stream(&work->stray);
    free(work->streams);
    free(work->stream_of);
    free(work->groups);
    free(work->group_of_process);
}
