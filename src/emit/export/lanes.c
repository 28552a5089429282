/* lanes: where viewers draw what: numbers for processes and threads that are theirs alone, and lanes for complete
 * spans, so that no two on a lane overlap. Owned by the calling thread.
 * Must not know the formats. */
#include "lanes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tare.h"

#define LANES_A_TRACK_MAX 64u
#define LANE_TIDS         (TARE__LANES_MADE_UP + (INT64_C(1) << 21)) /* above those made up for threads */
#define COMMAND_BYTES     ((size_t)160)

/* ---- numbers that are theirs alone --------------------------------------------------------------------- */
typedef struct tare__lane_claim {
    int64_t group, number; /* process and tid; 0 and pid */
    uint32_t by;           /* row or id */
} claim;

static int by_number(const void *left, const void *right)
{
    const claim *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->by > b->by) - (a->by < b->by);
}

/* The first to claim a number gets it; to[by] of others is made up of `by` and what it stands for. */
static void settle(claim *claims, size_t n, int64_t *to, int64_t (*made_up)(const void *, uint32_t),
                   const void *context)
{
    qsort(claims, n, sizeof *claims, by_number);
    for (size_t i = 0; i < n; i++) {
        bool taken =
            i > 0 && claims[i].group == claims[i - 1].group && claims[i].number == claims[i - 1].number;
        bool known = claims[i].number > 0 && claims[i].number < TARE__LANES_MACHINE;
        to[claims[i].by] = known && !taken ? claims[i].number : made_up(context, claims[i].by);
    }
}

static int64_t made_up_pid(const void *context, uint32_t row)
{
    return TARE__LANES_MADE_UP + ((const tare__trace_process *)context)[row].number;
}

static int64_t made_up_tid(const void *context, uint32_t id)
{
    (void)context;
    return TARE__LANES_MADE_UP + (id & (TARE__TRACE_IDS_MAX * 2 - 1));
}

static int number_processes(tare__lanes *lanes)
{
    const tare__trace_process *rows = tare__trace_processes(lanes->trace, &lanes->n_pids);
    size_t n = lanes->n_pids;
    lanes->by_pid = malloc((n + 1) * sizeof *lanes->by_pid);
    lanes->pids = malloc((n + 1) * sizeof *lanes->pids);
    if (!lanes->by_pid || !lanes->pids)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        lanes->by_pid[i] = (claim){0, rows[i].pid, (uint32_t)i};
    settle(lanes->by_pid, n, lanes->pids, made_up_pid, rows);
    return 0;
}

static int number_threads(tare__lanes *lanes)
{
    size_t n = tare__trace_stream_count(lanes->trace);
    claim *claims = malloc((n + 1) * sizeof *claims);
    if (!claims)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const tare__trace_stream *row = tare__trace_stream_row(lanes->trace, i);
        claims[i] = (claim){row->process, row->tid, row->id};
        lanes->n_tids = row->id >= lanes->n_tids ? (size_t)row->id + 1 : lanes->n_tids;
    }
    lanes->tids = malloc((lanes->n_tids + 1) * sizeof *lanes->tids);
    for (size_t i = 0; lanes->tids && i < lanes->n_tids; i++)
        lanes->tids[i] = made_up_tid(NULL, (uint32_t)i);
    if (lanes->tids)
        settle(claims, n, lanes->tids, made_up_tid, NULL);
    free(claims);
    return lanes->tids ? 0 : TARE_E_MEMORY;
}

int tare__lanes_open(tare__lanes *lanes, tare__trace *trace)
{
    *lanes = (tare__lanes){.trace = trace, .keys = tare__intern_new(), .n_rows = 1};
    int status = lanes->keys ? number_processes(lanes) : TARE_E_MEMORY;
    return status ? status : number_threads(lanes);
}

void tare__lanes_close(tare__lanes *lanes)
{
    free(lanes->pids);
    free(lanes->by_pid);
    free(lanes->tids);
    free(lanes->tracks);
    free(lanes->rows);
    if (lanes->keys)
        tare__intern_free(lanes->keys);
}

int64_t tare__lanes_pid(const tare__lanes *lanes, const tare__trace_process *process)
{
    size_t n;
    const tare__trace_process *rows = tare__trace_processes(lanes->trace, &n);
    return process ? lanes->pids[process - rows] : TARE__LANES_MADE_UP;
}

static const tare__trace_process *process_of_stream(const tare__lanes *lanes, uint32_t stream)
{
    const tare__trace_stream *told = tare__trace_stream_at(lanes->trace, stream);
    return told ? tare__trace_process_at(lanes->trace, told->process) : NULL;
}

int64_t tare__lanes_pid_of_stream(const tare__lanes *lanes, uint32_t stream)
{
    return tare__lanes_pid(lanes, process_of_stream(lanes, stream));
}

int64_t tare__lanes_tid(const tare__lanes *lanes, uint32_t stream)
{
    return stream < lanes->n_tids ? lanes->tids[stream] : made_up_tid(NULL, stream);
}

int64_t tare__lanes_lane_tid(uint32_t lane)
{
    return LANE_TIDS + lane;
}

const tare__trace_process *tare__lanes_process_of_pid(const tare__lanes *lanes, int64_t pid)
{
    size_t n;
    const tare__trace_process *rows = tare__trace_processes(lanes->trace, &n);
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lanes->by_pid[middle].number < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && lanes->by_pid[low].number == pid ? &rows[lanes->by_pid[low].by] : NULL;
}

bool tare__lanes_is_stray(tare__lanes *lanes, uint32_t stream)
{
    if (stream && stream == lanes->last_known)
        return false;
    const uint32_t key[3] = {0, stream, 1};
    if (!process_of_stream(lanes, stream)) {
        uint32_t known = tare__intern_count(lanes->keys);
        return tare__intern_add(lanes->keys, (const char *)key, sizeof key) == known;
    }
    lanes->last_known = stream;
    return false;
}

/* ---- names --------------------------------------------------------------------------------------------- */
void tare__lanes_name(const tare__trace *trace, uint32_t id, tare__text *name)
{
    const tare__trace_name *told = tare__trace_name_at(trace, id);
    if (told && told->text)
        tare__text_string(name, told->text);
    else
        tare__text_format(name, "(name %" PRIu32 ")", id);
}

static void put_command(const tare__trace_process *process, tare__text *name)
{
    char line[COMMAND_BYTES * 4], fitted[COMMAND_BYTES * 4];
    size_t bytes = process->arguments_bytes < sizeof line ? process->arguments_bytes : sizeof line - 1;
    memcpy(line, process->arguments, bytes);
    while (bytes && !line[bytes - 1])
        bytes--;
    for (size_t i = 0; i < bytes; i++)
        line[i] = line[i] ? line[i] : ' ';
    line[bytes] = '\0';
    tare__text_fit(fitted, sizeof fitted, line, COMMAND_BYTES);
    tare__text_string(name, fitted);
}

void tare__lanes_process_name(const tare__lanes *lanes, const tare__trace_process *process, tare__text *name)
{
    bool ranked = process && process->has_rank;
    if (ranked)
        tare__text_format(name, "rank %" PRIu64 " (", process->rank);
    if (!process)
        tare__text_string(name, "unknown process");
    else if (!process->arguments || !process->arguments_bytes || !process->arguments[0])
        tare__text_format(name, "process %" PRIu32, process->number);
    else
        put_command(process, name);
    if (ranked)
        tare__text_string(name, ")");
    if (process && process->pid && process->pid != tare__lanes_pid(lanes, process))
        tare__text_format(name, " (pid %" PRId64 ")", process->pid);
}

void tare__lanes_thread_name(const tare__lanes *lanes, uint32_t stream, tare__text *name)
{
    const tare__trace_stream *told = tare__trace_stream_at(lanes->trace, stream);
    if (told && told->name && told->name[0])
        tare__text_string(name, told->name);
    else
        tare__text_format(name, "thread %" PRId64, told && told->tid ? told->tid : (int64_t)stream);
}

void tare__lanes_lane_name(const tare__lanes *lanes, uint32_t lane, uint32_t stream, uint32_t track,
                           tare__text *name)
{
    if (track) {
        tare__lanes_name(lanes->trace, track, name);
    } else {
        tare__lanes_thread_name(lanes, stream, name);
        tare__text_string(name, ": given whole");
    }
    if (lane && lanes->rows[lane].number > 1)
        tare__text_format(name, " (%" PRIu32 ")", lanes->rows[lane].number);
}

const char *tare__lanes_how_ended(tare__replay_how how)
{
    static const char *const words[] = {
        [TARE__REPLAY_ENDED] = NULL,
        [TARE__REPLAY_ENDED_BY_NEXT] = NULL,
        [TARE__REPLAY_WITH_OUTER] = "left open: closed by the end of a span around it",
        [TARE__REPLAY_END_LOST] = "lost: closed where that was noticed",
        [TARE__REPLAY_STILL_OPEN] = "open at the end: closed there",
        [TARE__REPLAY_UNTIMED] = "not known: too many spans were open",
    };
    return words[how];
}

/* ---- lanes of complete spans ---------------------------------------------------------------------------- */
/* A track belongs to the process that recorded it, spans without one to their thread. */
static tare__track_lanes *track_of(tare__lanes *lanes, uint32_t stream, uint32_t track)
{
    const tare__trace_stream *told = tare__trace_stream_at(lanes->trace, stream);
    uint32_t process = told ? told->process : 0;
    const uint32_t key[3] = {track, track ? process : stream, 0};
    uint32_t known = tare__intern_count(lanes->keys);
    uint32_t at = tare__intern_add(lanes->keys, (const char *)key, sizeof key);
    if (at == TARE__INTERN_NONE ||
        !tare__array_fit(&lanes->tracks, &lanes->tracks_room, (size_t)at + 1, sizeof *lanes->tracks))
        return NULL;
    if (at == known)
        lanes->tracks[at] = (tare__track_lanes){0};
    return &lanes->tracks[at];
}

static int add_lane(tare__lanes *lanes, tare__track_lanes *track, uint32_t *lane)
{
    if (!tare__array_fit(&lanes->rows, &lanes->rows_room, lanes->n_rows + 1, sizeof *lanes->rows))
        return TARE_E_MEMORY;
    *lane = (uint32_t)lanes->n_rows++;
    lanes->rows[*lane] = (tare__lane_row){.number = ++track->n};
    if (track->last)
        lanes->rows[track->last].next = *lane;
    else
        track->first = *lane;
    track->last = *lane;
    return 0;
}

int tare__lanes_place(tare__lanes *lanes, uint32_t stream, const tare__complete_span *span, uint32_t *lane,
                      bool *fresh)
{
    tare__track_lanes *track = track_of(lanes, stream, span->track);
    *lane = 0;
    *fresh = false;
    if (!track)
        return TARE_E_MEMORY;
    uint32_t at = track->first;
    while (at && lanes->rows[at].busy_until > span->start)
        at = lanes->rows[at].next;
    if (!at && track->n >= LANES_A_TRACK_MAX)
        return 0;
    *fresh = !at;
    if (!at && add_lane(lanes, track, &at))
        return TARE_E_MEMORY;
    lanes->rows[at].busy_until = span->end;
    *lane = at;
    return 0;
}

static int by_start(const void *left, const void *right)
{
    const tare__complete_span *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (a->end < b->end) - (a->end > b->end);
}

void tare__lanes_sort(tare__complete_span *spans, uint32_t n)
{
    qsort(spans, n, sizeof *spans, by_start);
}
