/* python_evaluations: which call of the interpreter's evaluation loop runs each frame of a stack, from the same copy of
 * memory. Since Python 3.11 a Python function that calls another one stays in the same call of the loop.
 * One thread owns the reader.
 * Must not know native stacks. */
#include <stdlib.h>

#include "python_inner.h"

#define OWNED_BY_C 3 /* or more: no Python code */

static const unsigned char *frame_at(const tare__python *python, const tare__python_state *state, uint64_t address)
{
    size_t bytes = python->layout.frame_bytes;
    for (size_t i = 0; i < state->chunks.n; i++) {
        const tare__python_region *region = &state->chunks.at[i];
        if (address >= region->address && address - region->address + bytes <= region->bytes)
            return python->buffer + region->second + (address - region->address);
    }
    const tare__python_region *region = tare__python_region_of(&state->frames, address, bytes);
    return region ? python->buffer + region->second + (address - region->address) : NULL;
}

static bool is_of_c(const tare__python_layout *layout, const unsigned char *frame)
{
    return layout->frame_owner != TARE__PYTHON_NO && frame[layout->frame_owner] >= OWNED_BY_C;
}

/* Whether C code called the evaluation loop with this frame. Since 3.12, a frame of the C code is below it. */
static bool is_entry(const tare__python_layout *layout, const unsigned char *frame)
{
    if (layout->minor < 11)
        return true;
    return layout->frame_entry != TARE__PYTHON_NO ? frame[layout->frame_entry] != 0 : is_of_c(layout, frame);
}

void tare__python_state_evaluations(tare__python *python, tare__python_state *state)
{
    const tare__python_layout *layout = &python->layout;
    uint32_t n = 0, evaluations = 0;
    state->evaluations = 0;
    if (!state->evaluation && !(state->evaluation = malloc(TARE__PYTHON_INNERMOST * sizeof(*state->evaluation))))
        return;
    uint64_t address = state->n_inner ? state->inner[0].address : 0;
    for (uint32_t steps = 0; address && n < TARE__PYTHON_INNERMOST && steps < 2 * TARE__PYTHON_INNERMOST; steps++) {
        const unsigned char *frame = frame_at(python, state, address);
        if (!frame)
            return;
        if (!is_of_c(layout, frame))
            state->evaluation[n++] = (uint16_t)evaluations;
        evaluations += is_entry(layout, frame);
        address = tare__python_u64(frame + layout->frame_previous);
    }
    if (!address && n == state->depth) /* else it is too deep */
        state->evaluations = evaluations;
}
