/* flamegraph: the call tree as it is drawn: functions instead of lines, and a box for what is waited for.
 * Owned by the calling thread; used inside emit only.
 * Must not know how it is drawn. */
#ifndef TARE_EMIT_FLAMEGRAPH_H
#define TARE_EMIT_FLAMEGRAPH_H

#include "stacks.h"

#define TARE__FLAME_NONE UINT32_MAX

typedef struct tare__flame_box {
    const tare__stack_node *node; /* one of those merged here: the one with the most self time */
    double most_ns;               /* its self time */
    unsigned state;               /* a box for waiting in this state; TARE__STATE_RUNNING: a frame */
    uint32_t parent, depth;       /* parent: a smaller number, or TARE__FLAME_NONE */
    uint32_t first, next;         /* its largest child, its next smaller sibling; TARE__FLAME_NONE: none */
    double self_ns, total_ns, waits_ns; /* active time; waits_ns: of total_ns, not running */
    double base_self_ns, base_ns; /* the same of the baseline: self and total; 0 unless two runs are compared */
} tare__flame_box;

typedef struct tare__flame {
    tare__flame_box *boxes; /* a box comes before those that it calls */
    size_t n, room;
    uint32_t first; /* the largest at depth 0 */
    uint32_t depth; /* rows */
    double total_ns;
    double base_ns; /* of the baseline */
} tare__flame;

/* Of the active time. 0, TARE_E_INPUT without stacks, TARE_E_MEMORY; with a message. To be freed either way. */
int tare__flame_make(const tare__analysis *analysis, tare__flame *flame, tare__error *error);
/* The call trees of two runs as one: totals of the candidate, and those of the baseline beside them. Processes and
 * threads are the same if their names are, without ids. As above. */
int tare__flame_compare(const tare__analysis *base, const tare__analysis *candidate, tare__flame *flame,
                        tare__error *error);
void tare__flame_free(tare__flame *flame);

/* The difference of two runs as an SVG element of an HTML page, whose rules for content allow the style and the script
 * by these hashes. 0, or a status with a message. */
int tare__flame_put_difference(const tare__analysis *base, const tare__analysis *candidate, tare__text *out,
                               const tare__emit_sink *sink, tare__error *error);

extern const char tare__flame_style[], tare__flame_script[], tare__flame_style_hash[], tare__flame_script_hash[];

#endif
