/* python_verify: reads the innermost frames of running threads several times more. Frames that are not next to each
 * other in memory are read at different times; calls that take less time than that can look like one stack in two
 * copies, but not in all of many.
 * One thread owns the reader.
 * Must not know code objects. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "python_inner.h"

#define COPIES 8u

/* Without the GIL, a thread runs no Python code. */
static bool may_run(const tare__python *python, const tare__python_state *state)
{
    const tare__python_interp *interp = &python->interps[state->interp];
    return python->layout.free_threaded || interp->holder == state->address || interp->last_holder == state->address;
}

static bool plan_copies(tare__python *python, tare__python_state *state)
{
    tare__python_addresses addresses = {0};
    bool fits = true;
    for (uint32_t i = 0; i < state->n_inner && fits; i++)
        fits = tare__python_add(&addresses, state->inner[i].address);
    fits = fits && tare__python_merge(&addresses, python->layout.frame_bytes, &state->again);
    free(addresses.at);
    for (unsigned copy = 0; copy < COPIES && fits; copy++)
        for (size_t i = 0; i < state->again.n && fits; i++) {
            tare__python_region *region = &state->again.at[i];
            uint32_t at = tare__python_plan(python, region->address, region->bytes);
            fits = at != TARE__PYTHON_NO;
            if (copy == 0)
                region->first = at;
        }
    return fits;
}

static bool is_unchanged(const tare__python *python, const tare__python_state *state)
{
    uint32_t bytes = 0; /* of a copy */
    for (size_t i = 0; i < state->again.n; i++)
        bytes += state->again.at[i].bytes;
    for (uint32_t i = 0; i < state->n_inner; i++) {
        const tare__python_inner *frame = &state->inner[i];
        const tare__python_region *region =
            tare__python_region_of(&state->again, frame->address, python->layout.frame_bytes);
        for (uint32_t copy = 0; region && copy < COPIES; copy++) {
            uint32_t at = region->first + copy * bytes + (uint32_t)(frame->address - region->address);
            const unsigned char *now = tare__python_planned(python, at, python->layout.frame_bytes);
            if (!now || !tare__python_frame_is(&python->layout, frame, now))
                return false;
        }
        if (!region)
            return false;
    }
    return true;
}

void tare__python_verify(tare__python *python)
{
    for (size_t i = 0; i < python->n_states; i++) {
        tare__python_state *state = python->states[i];
        if (!state->planned || state->progress != TARE__PYTHON_WALKED || !state->scattered ||
            !may_run(python, state))
            continue;
        tare__python_plan_clear(python);
        if (!plan_copies(python, state) || !tare__python_plan_read(python) || !is_unchanged(python, state))
            state->progress = TARE__PYTHON_CHANGED;
    }
}
