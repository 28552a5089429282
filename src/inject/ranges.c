/* ranges: the open ranges of a thread, so that each end names what it ends.
 * The calling thread's own state.
 * Must not know which library pushes. */
#include "inject.h"

#define DEPTH_MAX 128

static __thread struct {
    int depth;
    tare_site *open[DEPTH_MAX]; /* NULL: begun while nothing was recorded */
} ranges;

int tare__inject_push(tare_site *site)
{
    int depth = ranges.depth++;
    int recorded = depth < DEPTH_MAX && tare__gate_now() != 0;
    if (depth < DEPTH_MAX)
        ranges.open[depth] = recorded ? site : NULL;
    if (recorded)
        tare_begin(site);
    return depth;
}

int tare__inject_pop(void)
{
    if (ranges.depth == 0)
        return -1; /* pushed before this library was loaded */
    int depth = --ranges.depth;
    if (depth < DEPTH_MAX && ranges.open[depth])
        tare_end(ranges.open[depth]);
    return depth;
}
