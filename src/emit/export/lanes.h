/* lanes: where viewers draw what: numbers for processes and threads that are theirs alone, and lanes for complete
 * spans, so that no two on a lane overlap. Owned by the calling thread; used inside emit only.
 * Must not know the formats. */
#ifndef TARE_EMIT_LANES_H
#define TARE_EMIT_LANES_H

#include "base/base.h"
#include "trace/trace.h"

/* Numbers from here on are made up; the kernel's are smaller. */
#define TARE__LANES_MADE_UP (INT64_C(1) << 30)
#define TARE__LANES_MACHINE (TARE__LANES_MADE_UP - 1) /* the "process" of what belongs to none */

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
    uint32_t last_known; /* a stream that is told of */
} tare__lanes;

/* After prescan. 0 or TARE_E_MEMORY; closed in any case. */
int tare__lanes_open(tare__lanes *lanes, tare__trace *trace);
void tare__lanes_close(tare__lanes *lanes);

/* The kernel's number, unless it is not known or another one of the run had it too. */
int64_t tare__lanes_pid(const tare__lanes *lanes, const tare__trace_process *process); /* NULL: not known */
int64_t tare__lanes_pid_of_stream(const tare__lanes *lanes, uint32_t stream);
int64_t tare__lanes_tid(const tare__lanes *lanes, uint32_t stream);
int64_t tare__lanes_lane_tid(uint32_t lane);
/* The process a sampled pid belongs to: of several with that pid the first; NULL: none recorded. */
const tare__trace_process *tare__lanes_process_of_pid(const tare__lanes *lanes, int64_t pid);

/* True the first time that something of this stream comes which the file does not describe: the stream or its
 * process. Its name must be written then. */
bool tare__lanes_is_stray(tare__lanes *lanes, uint32_t stream);
/* Its command, shortened; "process 3" where none is known. */
void tare__lanes_process_name(const tare__lanes *lanes, const tare__trace_process *process, tare__text *name);
void tare__lanes_thread_name(const tare__lanes *lanes, uint32_t stream, tare__text *name);
/* Of a lane on which a stream puts a span of this track: "cuda:0 stream 7 (2)". */
void tare__lanes_lane_name(const tare__lanes *lanes, uint32_t lane, uint32_t stream, uint32_t track,
                           tare__text *name);
void tare__lanes_name(const tare__trace *trace, uint32_t id, tare__text *name); /* of a span, a mark, … */

const char *tare__lanes_how_ended(tare__replay_how how); /* NULL: as it should */

/* Finds the span a lane on which nothing overlaps it. 0 in *lane: there are too many of its track already.
 * *fresh: it is a new one. 0 or TARE_E_MEMORY. */
int tare__lanes_place(tare__lanes *lanes, uint32_t stream, const tare__complete_span *span, uint32_t *lane,
                      bool *fresh);
/* By start, the longer first: fewer lanes will do. */
void tare__lanes_sort(tare__complete_span *spans, uint32_t n);

#endif
