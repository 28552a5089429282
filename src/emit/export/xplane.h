/* xplane: declarations shared by the files of XProf's protocol buffers: the collected events, and the planes built from
 * them.
 * Owned by the calling thread; used inside emit only.
 * Must not know how files are named or opened. */
#ifndef TARE_EMIT_XPLANE_H
#define TARE_EMIT_XPLANE_H

#include "emit/emit.h"

struct tare__trace;

typedef struct tare__xplane_event {
    uint64_t begin_ns, duration_ns;
    uint64_t number; /* for a step its index, else the flow */
    uint32_t line, name;
    uint32_t kind;
} tare__xplane_event;

enum { TARE__XPLANE_PLAIN, TARE__XPLANE_STEP };

typedef struct tare__xplane_line {
    int64_t id;
    int64_t device; /* -1: the host */
    char name[96];
} tare__xplane_line;

typedef struct tare__xplane {
    struct tare__trace *trace;
    tare__xplane_event *events; /* sorted by line and begin before planes are built */
    size_t count, room;
    uint64_t left_out;
    tare__xplane_line *lines;
    size_t line_count, line_room;
    tare__intern *names; /* as XProf expects them */
} tare__xplane;

/* Appends a whole XSpace. */
void tare__xplane_put_space(tare__xplane *from, tare__text *out);

/* 0; TARE_E_SYSTEM if the sink refused or reading failed; TARE_E_MEMORY. */
int tare__emit_xplane(struct tare__trace *trace, const tare__emit_sink *sink, tare__error *error);

#endif
