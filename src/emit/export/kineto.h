/* kineto: declarations shared by the files of Kineto's JSON: which span has which number, and the state of one file.
 * Owned by the calling thread; used inside emit only.
 * Must not know how files are named or opened. */
#ifndef TARE_EMIT_KINETO_H
#define TARE_EMIT_KINETO_H

#include "chrome.h"

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
/* Phases are written as operators, as older versions of torch did: TensorBoard's plugin finds data loading only
 * there. */
bool tare__kineto_is_operator(uint32_t kind);
/* A span of this kind begins: derives its numbers from those of the enclosing span. */
void tare__kineto_ids_begin(tare__kineto_ids *ids, uint32_t kind, const uint32_t *around, uint32_t *own);
void tare__kineto_ids_rewind(tare__kineto_ids *ids);
uint32_t tare__kineto_id_of_flow(const tare__kineto_ids *ids, uint64_t flow); /* 0: not known */

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

/* "GPU 1 stream 7", "cuda:1 stream 7": the numbers in a GPU track's name; false: not a GPU track. */
bool tare__gpu_track(const struct tare__trace *trace, uint32_t track, int64_t *device, int64_t *stream);

#endif
