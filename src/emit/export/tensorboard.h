/* tensorboard: declarations shared by the formats for TensorBoard: Kineto's JSON, and the XPlane.
 * Owned by the calling thread; used inside emit only.
 * Must not know how files are named or opened. */
#ifndef TARE_EMIT_TENSORBOARD_H
#define TARE_EMIT_TENSORBOARD_H

#include "emit/emit.h"
#include "trace/trace.h"

/* Kineto numbers operators; calls launched inside one, and their GPU work, have its number. Both passes over the trace
 * count the same way. The two numbers of an open span: those of the innermost operator and module, itself included; 0:
 * none. */
enum { TARE__KINETO_OPERATOR, TARE__KINETO_MODULE, TARE__KINETO_NUMBERS };

typedef struct tare__kineto_ids {
    uint32_t last[TARE__KINETO_NUMBERS]; /* last number assigned */
    tare__intern *flows;  /* flow: its index is that of `of_flow` */
    uint32_t *of_flow;
    size_t flows_room;
    bool *with_events; /* by process number: it has events to show */
    size_t processes_room;
    uint32_t flow_name; /* 0: there is none */
} tare__kineto_ids;

/* Reads the trace once for flows and processes. 0 or a status with a message. */
int tare__kineto_ids_read(tare__kineto_ids *ids, struct tare__trace *trace, tare__error *error);
void tare__kineto_ids_free(tare__kineto_ids *ids);

/* The file of one process. */
typedef struct tare__kineto_file {
    uint32_t process; /* number */
    int64_t rank;     /* -1: not known */
    uint32_t ranks;
    uint64_t base_ns;     /* start of its time axis, since 1970 */
    const char *launches; /* category of calls that start GPU work: readers differ */
} tare__kineto_file;
int tare__emit_kineto(struct tare__trace *trace, tare__kineto_ids *ids, const tare__kineto_file *file,
                      const tare__emit_sink *sink, tare__error *error);

/* 0; TARE_E_SYSTEM if the sink refused or reading failed; TARE_E_MEMORY. */
int tare__emit_xplane(struct tare__trace *trace, const tare__emit_sink *sink, tare__error *error);

/* "GPU 1 stream 7", "cuda:1 stream 7": the numbers in a GPU track's name; false: not a GPU track. */
bool tare__gpu_track(const struct tare__trace *trace, uint32_t track, int64_t *device, int64_t *stream);

#endif
