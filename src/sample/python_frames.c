/* python_frames: the frames of one thread, from two copies of the memory that has them. What is shown was the same in
 * both, with the current frame read in between: then no frame of the stack was left or entered meanwhile.
 * One thread owns the reader.
 * Must not know code objects. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "python_inner.h"

#define CHUNKS_MAX 4096u
#define CHUNK_BYTES_MAX (8u << 20)
#define CHUNK_HEADER 24u  /* struct _stack_chunk: previous, size, top */
#define CHUNK_SLACK 1024u /* more than the last sample used */
#define OUTSIDE_MAX 65536u
#define OUTSIDE_SPARE 16u /* kept of earlier samples */
#define STEPS_MAX (1u << 20)
#define PAGE 4096u
#define OWNED_BY_GENERATOR 1
#define OWNED_BY_C 3 /* or more: no Python code */

/* ---- plan ------------------------------------------------------------------------------------ */
static bool plan_regions(tare__python *python, tare__python_regions *regions, bool second)
{
    for (size_t i = 0; i < regions->n; i++) {
        tare__python_region *region = &regions->at[i];
        region->bytes = region->next;
        uint32_t at = tare__python_plan(python, region->address, region->bytes);
        if (at == TARE__PYTHON_NO)
            return false;
        *(second ? &region->second : &region->first) = at;
    }
    return true;
}

bool tare__python_state_plan(tare__python *python, tare__python_state *state)
{
    uint32_t vectors = python->n_vectors;
    size_t bytes = python->planned_bytes;
    state->planned = false;
    if (2 * (state->chunks.n + state->frames.n) + 2 + vectors > TARE__PYTHON_VECTORS_MAX)
        return false;
    bool fits = plan_regions(python, &state->chunks, false) && plan_regions(python, &state->frames, false);
    state->at_state = tare__python_plan(python, state->address, python->layout.state_bytes);
    state->at_cframe = state->cframe ? tare__python_plan(python, state->cframe + python->layout.cframe_current, 8)
                                     : TARE__PYTHON_NO;
    fits = fits && plan_regions(python, &state->chunks, true) && plan_regions(python, &state->frames, true);
    if (!fits || state->at_state == TARE__PYTHON_NO) {
        python->n_vectors = vectors;
        python->planned_bytes = bytes;
        return false;
    }
    state->at_end = (uint32_t)python->planned_bytes;
    state->planned = true;
    return true;
}

/* ---- chunks of the data stack ---------------------------------------------------------------- */
static bool read_chunk(tare__python *python, uint64_t address, tare__python_region *out, uint64_t *previous)
{
    unsigned char header[CHUNK_HEADER];
    if (!tare__python_may_read(python) || !tare__python_read(python, address, header, sizeof(header)))
        return false;
    uint64_t size = tare__python_u64(header + 8);
    if (size < CHUNK_HEADER || size > CHUNK_BYTES_MAX || address + size < address)
        return false;
    *previous = tare__python_u64(header);
    *out = (tare__python_region){.address = address, .next = (uint32_t)size, .size = (uint32_t)size};
    return true;
}

/* Those from `address` on; the known ones that follow are kept. */
static bool read_chunks(tare__python *python, tare__python_state *state, uint64_t address)
{
    tare__python_regions found = {0}, *known = &state->chunks;
    bool whole = true;
    while (whole && address && found.n < CHUNKS_MAX) {
        size_t same = 0;
        while (same < known->n && known->at[same].address != address)
            same++;
        size_t kept = known->n - same;
        if (!tare__array_fit(&found.at, &found.room, found.n + (kept ? kept : 1), sizeof(*found.at))) {
            whole = false;
        } else if (kept) {
            memcpy(found.at + found.n, known->at + same, kept * sizeof(*found.at));
            found.n += kept;
            address = 0;
        } else {
            whole = read_chunk(python, address, &found.at[found.n], &address);
            found.n += whole;
        }
    }
    free(known->at);
    *known = found;
    for (size_t i = 1; i < known->n; i++)
        known->at[i].next = known->at[i].size;
    return whole;
}

/* Whether the chunks of the plan are those of the thread; if not, they are read for the next attempt. */
static bool check_chunks(tare__python *python, tare__python_state *state, uint64_t chunk, uint64_t top)
{
    tare__python_regions *chunks = &state->chunks;
    bool same = chunks->n ? chunks->at[0].address == chunk : chunk == 0;
    for (size_t i = 0; same && i < chunks->n; i++) {
        uint64_t previous = tare__python_u64(python->buffer + chunks->at[i].second);
        same = previous == (i + 1 < chunks->n ? chunks->at[i + 1].address : 0);
        if (!same)
            chunks->n = 0; /* read all of them anew */
    }
    if (!same && !read_chunks(python, state, chunk))
        chunks->n = 0;
    if (chunks->n) {
        tare__python_region *newest = &chunks->at[0];
        uint64_t used = top > newest->address ? top - newest->address : 0;
        uint64_t wanted = used + CHUNK_SLACK < newest->size ? used + CHUNK_SLACK : newest->size;
        if (!same || used > newest->bytes || newest->bytes > wanted + 4 * CHUNK_SLACK)
            newest->next = (uint32_t)wanted;
        same = same && used <= newest->bytes;
    }
    return same;
}

/* ---- frames outside of the chunks ------------------------------------------------------------ */
typedef struct page {
    uint64_t address;
    unsigned char bytes[2 * PAGE];
    size_t n;
} page;

/* Many frames share a page: it is read as a whole. */
static const unsigned char *frame_now(tare__python *python, page *page, uint64_t address)
{
    size_t need = python->layout.frame_bytes;
    if (address < page->address || address - page->address + need > page->n) {
        page->address = address & ~(uint64_t)(PAGE - 1);
        page->n = (address - page->address) + need > PAGE ? 2 * PAGE : PAGE;
        if (!tare__python_may_read(python) || !tare__python_read(python, page->address, page->bytes, page->n)) {
            page->n = 0;
            return NULL;
        }
    }
    return page->bytes + (address - page->address);
}

/* *chunk: the chunk of the last frame; the frames below it are in this one or in older ones. */
static const tare__python_region *region_of(const tare__python_state *state, uint64_t address, size_t bytes,
                                            size_t *chunk)
{
    for (size_t tried = 0, i = *chunk; tried < state->chunks.n; tried++, i++) {
        const tare__python_region *region = &state->chunks.at[i % state->chunks.n];
        if (address >= region->address && address - region->address + bytes <= region->bytes) {
            *chunk = i % state->chunks.n;
            return region;
        }
    }
    return tare__python_region_of(&state->frames, address, bytes);
}

static bool in_chunk(const tare__python_state *state, uint64_t address, size_t bytes)
{
    for (size_t i = 0; i < state->chunks.n; i++)
        if (address >= state->chunks.at[i].address &&
            address - state->chunks.at[i].address + bytes <= state->chunks.at[i].size)
            return true;
    return false;
}

/* Follows the stack from its current frame, with reads of its own for what is not in the plan, and makes the frames
 * outside of the chunks part of the next plan. Those of earlier samples stay in it for a while: they come back. */
static void look_for_frames(tare__python *python, tare__python_state *state, uint64_t address)
{
    const tare__python_layout *layout = &python->layout;
    tare__python_addresses found = {0}, old = state->outside;
    page page;
    page.n = page.address = 0;
    size_t chunk = 0;
    uint64_t earlier = 0; /* a frame that comes again: the links are a loop */
    for (size_t steps = 1; address && address != earlier && steps < STEPS_MAX && found.n < OUTSIDE_MAX; steps++) {
        if ((steps & (steps - 1)) == 0)
            earlier = address;
        const tare__python_region *known = region_of(state, address, layout->frame_bytes, &chunk);
        const unsigned char *bytes = known ? python->buffer + known->second + (address - known->address)
                                           : frame_now(python, &page, address);
        if (!bytes || (!in_chunk(state, address, layout->frame_bytes) && !tare__python_add(&found, address)))
            break;
        address = tare__python_u64(bytes + layout->frame_previous);
    }
    for (size_t i = 0, n = found.n; i < old.n && old.n <= n + OUTSIDE_SPARE; i++)
        if (!tare__python_add(&found, old.at[i]))
            break;
    free(old.at);
    state->outside = found;
    if (!tare__python_merge(&state->outside, layout->frame_bytes, &state->frames))
        state->frames.n = 0;
}

/* ---- walk ------------------------------------------------------------------------------------ */
static uint64_t code_of(const tare__python_layout *layout, const unsigned char *frame)
{
    uint64_t code = tare__python_u64(frame + layout->frame_code);
    return layout->tagged ? code & ~UINT64_C(7) : code;
}

static int owner_of(const tare__python_layout *layout, const unsigned char *frame)
{
    return layout->frame_owner == TARE__PYTHON_NO ? 0 : frame[layout->frame_owner];
}

static uint64_t instruction_of(const tare__python_layout *layout, const unsigned char *frame)
{
    if (layout->minor >= 11)
        return tare__python_u64(frame + layout->frame_instruction);
    return (uint64_t)(int64_t)(int32_t)tare__python_u32(frame + layout->frame_instruction); /* f_lasti */
}

/* Whether the frame runs: in 3.9 and 3.10 all frames of a stack do, also the current one. In later versions a frame
 * that has called another (not through C) has saved its stack pointer: one of the two has returned if not. */
static bool is_running(const tare__python_layout *layout, const unsigned char *frame, bool calling, bool entered)
{
    if (layout->minor == 9)
        return frame[layout->frame_running] == 1;
    if (layout->minor == 10) { /* FRAME_EXECUTING, or FRAME_UNWINDING: a destructor runs */
        signed char running = (signed char)frame[layout->frame_running];
        return running == 0 || running == 2;
    }
    if (layout->frame_stack != TARE__PYTHON_NO && calling && !entered)
        return (int32_t)tare__python_u32(frame + layout->frame_stack) >= 0;
    return true;
}

static bool has_same_links(const tare__python_layout *layout, const unsigned char *a, const unsigned char *b)
{
    return code_of(layout, a) == code_of(layout, b) && owner_of(layout, a) == owner_of(layout, b) &&
           tare__python_u64(a + layout->frame_previous) == tare__python_u64(b + layout->frame_previous);
}

/* The current frame, before or after it runs: its function is being entered or left. */
static bool is_at_edge(const tare__python_layout *layout, const unsigned char *a, const unsigned char *b)
{
    return layout->frame_running != TARE__PYTHON_NO && has_same_links(layout, a, b) &&
           !is_running(layout, a, false, false) && !is_running(layout, b, false, false);
}

/* The same frame in both copies. The instruction of one that has called another is that of the call. */
static bool is_same(const tare__python_layout *layout, const unsigned char *a, const unsigned char *b, bool calling,
                    bool entered)
{
    if (!has_same_links(layout, a, b))
        return false;
    if (owner_of(layout, a) >= OWNED_BY_C)
        return true;
    return (!calling || instruction_of(layout, a) == instruction_of(layout, b)) &&
           is_running(layout, a, calling, entered) && is_running(layout, b, calling, entered);
}

bool tare__python_frame_is(const tare__python_layout *layout, const tare__python_inner *frame,
                           const unsigned char *bytes)
{
    if (tare__python_u64(bytes + layout->frame_previous) != frame->previous || owner_of(layout, bytes) != frame->owner)
        return false;
    if (frame->owner >= OWNED_BY_C)
        return true;
    return code_of(layout, bytes) == frame->code &&
           (!frame->calling || instruction_of(layout, bytes) == frame->instruction) &&
           is_running(layout, bytes, frame->calling, frame->entered);
}

static void keep_frame(tare__python_state *state, const tare__python_raw *raw)
{
    uint32_t at = state->depth < TARE__PYTHON_INNERMOST
                      ? state->depth
                      : TARE__PYTHON_INNERMOST + (state->depth - TARE__PYTHON_INNERMOST) % TARE__PYTHON_OUTERMOST;
    state->raw[at] = *raw;
    state->depth++;
}

typedef struct walk {
    uint64_t address;
    bool calling;   /* the last frame was called by this one */
    bool entered;   /* through C */
    size_t outside; /* frames outside of the chunks */
    size_t chunk;
} walk;

/* One frame. WAITS: it is not in the plan; CHANGED: the copies differ; WALKED: go on. */
static tare__python_progress step(tare__python *python, tare__python_state *state, walk *walk)
{
    const tare__python_layout *layout = &python->layout;
    const tare__python_region *region = region_of(state, walk->address, layout->frame_bytes, &walk->chunk);
    if (!region)
        return TARE__PYTHON_WAITS;
    uint64_t at = walk->address - region->address;
    const unsigned char *a = python->buffer + region->first + at, *b = python->buffer + region->second + at;
    if (!walk->calling && is_at_edge(layout, a, b)) {
        walk->calling = true;
        walk->address = tare__python_u64(b + layout->frame_previous);
        return TARE__PYTHON_WALKED;
    }
    if (!is_same(layout, a, b, walk->calling, walk->entered))
        return TARE__PYTHON_CHANGED;
    int owner = owner_of(layout, b);
    if (owner == OWNED_BY_GENERATOR && !tare__python_u64(b + layout->frame_previous))
        return TARE__PYTHON_CHANGED; /* suspended: the link is set while it runs */
    bool outside = state->frames.n && region >= state->frames.at && region < state->frames.at + state->frames.n;
    if (state->n_inner < TARE__PYTHON_INNER) {
        state->inner[state->n_inner++] = (tare__python_inner){
            walk->address, code_of(layout, b), tare__python_u64(b + layout->frame_previous), instruction_of(layout, b),
            walk->calling, walk->entered, outside, owner};
        state->scattered = state->scattered || outside;
    }
    if (owner < OWNED_BY_C) {
        tare__python_raw raw = {code_of(layout, b), instruction_of(layout, b), owner == OWNED_BY_GENERATOR};
        keep_frame(state, &raw);
        walk->calling = true;
    }
    walk->entered = owner >= OWNED_BY_C || (layout->frame_entry != TARE__PYTHON_NO && b[layout->frame_entry]);
    walk->outside += outside;
    walk->address = tare__python_u64(b + layout->frame_previous);
    return TARE__PYTHON_WALKED;
}

static size_t steps_max(const tare__python *python, const tare__python_state *state)
{
    size_t bytes = 0;
    for (size_t i = 0; i < state->chunks.n; i++)
        bytes += state->chunks.at[i].bytes;
    for (size_t i = 0; i < state->frames.n; i++)
        bytes += state->frames.at[i].bytes;
    return bytes / (python->layout.frame_bytes & ~7u) + 1; /* more of them would overlap: a loop */
}

static tare__python_progress walk_frames(tare__python *python, tare__python_state *state, uint64_t address)
{
    walk walk = {.address = address};
    size_t limit = steps_max(python, state);
    state->depth = state->n_inner = 0;
    state->scattered = false;
    for (size_t steps = 0; walk.address; steps++) {
        if (steps > limit)
            return TARE__PYTHON_CHANGED;
        tare__python_progress progress = step(python, state, &walk);
        if (progress == TARE__PYTHON_WAITS && in_chunk(state, walk.address, python->layout.frame_bytes))
            state->chunks.at[0].next = state->chunks.at[0].size;
        else if (progress == TARE__PYTHON_WAITS)
            look_for_frames(python, state, address);
        if (progress != TARE__PYTHON_WALKED)
            return progress;
    }
    if (python->wants_evaluations)
        tare__python_state_evaluations(python, state); /* before the regions change */
    if (walk.outside + OUTSIDE_SPARE < state->outside.n) { /* many have returned */
        state->outside.n = 0;
        look_for_frames(python, state, address);
    }
    return TARE__PYTHON_WALKED;
}

void tare__python_state_walk(tare__python *python, tare__python_state *state)
{
    const tare__python_layout *layout = &python->layout;
    const unsigned char *bytes = tare__python_planned(python, state->at_state, layout->state_bytes);
    state->progress = TARE__PYTHON_WAITS;
    if (!bytes || state->at_end > python->valid_bytes) {
        /* One of its ranges is no longer mapped: begin with what the thread state says. */
        state->chunks.n = state->frames.n = state->outside.n = 0;
        state->cframe = 0;
        return;
    }
    if (!state->raw && !(state->raw = malloc(TARE__PYTHON_DEPTH_MAX * sizeof(*state->raw))))
        return;
    uint64_t current = tare__python_u64(bytes + layout->state_frame), chunk = 0, top = 0;
    bool same = true;
    if (layout->cframe_current != TARE__PYTHON_NO) {
        const unsigned char *cframe = tare__python_planned(python, state->at_cframe, 8);
        same = current == state->cframe && (cframe || !current);
        state->cframe = current;
        current = cframe ? tare__python_u64(cframe) : 0;
    }
    if (layout->state_chunk != TARE__PYTHON_NO) {
        chunk = tare__python_u64(bytes + layout->state_chunk);
        top = tare__python_u64(bytes + layout->state_chunk + 8);
    }
    if (check_chunks(python, state, chunk, top) && same)
        state->progress = walk_frames(python, state, current);
}
