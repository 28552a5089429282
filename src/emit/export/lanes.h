/* lanes: where viewers draw what: unique numbers for processes and threads, and lanes for complete spans, so that no
 * two on a lane overlap. Owned by the calling thread; used inside emit only.
 * Must not know the formats. */
#ifndef TARE_EMIT_LANES_H
#define TARE_EMIT_LANES_H

#include "base/base.h"
#include "trace/trace.h"

/* Numbers from here on are generated; the kernel's are smaller. */
#define TARE__LANES_MADE_UP (INT64_C(1) << 30)
#define TARE__LANES_MACHINE (TARE__LANES_MADE_UP - 1) /* the "process" for data that belongs to no process */

typedef struct tare__lane_row {
    uint64_t busy_until; /* ticks */
    uint32_t next;       /* of the same track; 0: none */
    uint32_t number;     /* 1, 2, … in its track */
} tare__lane_row;

typedef struct tare__track_lanes {
    uint32_t first, last; /* lanes */
    uint32_t n;
} tare__track_lanes;

typedef struct tare__lanes {
    tare__trace *trace;
    int64_t *pids; /* by row of the trace's processes */
    struct tare__lane_claim *by_pid;
    int64_t *tids; /* by stream id */
    size_t n_pids, n_tids;
    tare__intern *keys; /* of tracks */
    tare__track_lanes *tracks;
    size_t tracks_room;
    tare__lane_row *rows; /* lane 0 is none */
    size_t n_rows, rows_room;
    uint32_t last_known; /* the last stream reported */
} tare__lanes;

/* After prescan. 0 or TARE_E_MEMORY; closed in any case. */
int tare__lanes_open(tare__lanes *lanes, tare__trace *trace);
void tare__lanes_close(tare__lanes *lanes);

/* The kernel's number, unless it is unknown or was used twice in the run. */
int64_t tare__lanes_pid(const tare__lanes *lanes, const tare__trace_process *process); /* NULL: unknown */
int64_t tare__lanes_pid_of_stream(const tare__lanes *lanes, uint32_t stream);
int64_t tare__lanes_tid(const tare__lanes *lanes, uint32_t stream);
int64_t tare__lanes_lane_tid(uint32_t lane);
/* The process of a sampled pid; if several had that pid, the first; NULL: none recorded. */
const tare__trace_process *tare__lanes_process_of_pid(const tare__lanes *lanes, int64_t pid);

/* True the first time that a stream appears which the file does not describe, or whose process it does not describe.
 * Its name must be written then. */
bool tare__lanes_is_stray(tare__lanes *lanes, uint32_t stream);
/* Its command, shortened; "process 3" if unknown. */
void tare__lanes_process_name(const tare__lanes *lanes, const tare__trace_process *process, tare__text *name);
void tare__lanes_thread_name(const tare__lanes *lanes, uint32_t stream, tare__text *name);
/* Name of a lane on which a stream puts a span of this track: "cuda:0 stream 7 (2)". */
void tare__lanes_lane_name(const tare__lanes *lanes, uint32_t lane, uint32_t stream, uint32_t track, tare__text *name);
void tare__lanes_name(const tare__trace *trace, uint32_t id, tare__text *name); /* of a span, a mark, … */

const char *tare__lanes_how_ended(tare__replay_how how); /* NULL: normally */

/* Finds a lane for the span on which nothing overlaps it. 0 in *lane: its track has too many already.
 * *fresh: the lane is new. 0 or TARE_E_MEMORY. */
int tare__lanes_place(tare__lanes *lanes, uint32_t stream, const tare__complete_span *span, uint32_t *lane,
                      bool *fresh);
/* By start, the longer span first, so that fewer lanes are needed. */
void tare__lanes_sort(tare__complete_span *spans, uint32_t n);

#endif
