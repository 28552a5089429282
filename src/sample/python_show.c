/* python_show: the frames of a stack as they are shown: functions and lines. Most frames of a stack are those of the
 * last one, from the outermost on: they are shown as before, after a check that their code objects are the same.
 * One thread owns the reader.
 * Must not know how frames are read. */
#include <stdlib.h>

#include "python_inner.h"

static uint32_t kept_frames(const tare__python_state *state)
{
    return state->depth < TARE__PYTHON_DEPTH_MAX ? state->depth : TARE__PYTHON_DEPTH_MAX;
}

/* ---- what the last stack had ----------------------------------------------------------------- */
static bool is_same(const tare__python_raw *a, const tare__python_raw *b)
{
    return a->code == b->code && a->instruction == b->instruction && a->generator == b->generator;
}

static uint32_t find_known(const tare__python *python, const tare__python_state *state)
{
    uint32_t n = state->depth < state->n_memo ? state->depth : state->n_memo, known = 0;
    if (state->depth > TARE__PYTHON_INNERMOST || state->memo_loads != python->codes.loads)
        return 0;
    while (known < n && is_same(&state->memo[known].raw, &state->raw[state->depth - 1 - known]))
        known++;
    return known;
}

void tare__python_show_ask(tare__python *python, tare__python_state *state)
{
    state->known = find_known(python, state);
    for (uint32_t k = 0; k < state->known; k++)
        if (!state->memo[k].again && python->codes.places[state->memo[k].place].checked != python->round)
            tare__python_ask(python, state->memo[k].raw.code);
    for (uint32_t i = 0, n = kept_frames(state) - state->known; i < n; i++)
        tare__python_ask(python, state->raw[i].code);
}

/* ---- a frame --------------------------------------------------------------------------------- */
/* -1: the instruction is not in the code; 0: not shown; 1: shown. */
static int show_frame(const tare__python *python, const tare__python_raw *raw, const tare__python_place *place,
                      tare__python_frame *out)
{
    const tare__python_layout *layout = &python->layout;
    int64_t offset;
    *out = (tare__python_frame){.code = place->code};
    if (layout->minor < 11)
        offset = (int64_t)raw->instruction * (layout->minor == 10 ? 2 : 1);
    else
        offset = (int64_t)(raw->instruction - (raw->code + layout->code_start));
    if (layout->free_threaded && layout->minor >= 14 && (offset < -2 || offset > place->code_bytes))
        return 1; /* each thread has its copy of the code there: the line is unknown */
    if (offset < -2 || offset > place->code_bytes)
        return -1;
    if (layout->minor >= 11 && !raw->generator && offset < place->traceable)
        return 0; /* its function is being entered, or it is a frame of the interpreter itself */
    out->line = tare__python_line_of(python->codes.functions[place->code - 1], offset < 0 ? 0 : (uint32_t)offset);
    return 1;
}

static void use_place(tare__python *python, tare__python_place *place)
{
    if (!place->guessed && place->used != python->sample)
        tare__python_add(&python->fresh, place->address);
    place->used = python->sample;
}

static void add_shown(tare__python_state *state, const tare__python_frame *frame, uint32_t at)
{
    tare__python_frame *to = &state->shown[state->n_shown++];
    *to = *frame;
    if (state->evaluations)
        to->evaluation = at < TARE__PYTHON_INNERMOST ? state->evaluation[at] : 0;
}

/* ---- a stack --------------------------------------------------------------------------------- */
/* The frames that the last stack did not have, from the innermost on. WALKED: all of them. */
static tare__python_progress show_new(tare__python *python, tare__python_state *state, bool keeps)
{
    uint32_t n = kept_frames(state) - state->known, start = 0;
    if (state->depth > TARE__PYTHON_DEPTH_MAX)
        start = (state->depth - TARE__PYTHON_INNERMOST) % TARE__PYTHON_OUTERMOST;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i < TARE__PYTHON_INNERMOST
                          ? i : TARE__PYTHON_INNERMOST + (i - TARE__PYTHON_INNERMOST + start) % TARE__PYTHON_OUTERMOST;
        const tare__python_raw *raw = &state->raw[at];
        tare__python_place *place = tare__python_place_of(python, raw->code);
        tare__python_frame frame;
        if (!place || place->checked != python->round)
            return TARE__PYTHON_WAITS;
        int shown = show_frame(python, raw, place, &frame);
        if (shown < 0)
            return TARE__PYTHON_CHANGED;
        if (shown)
            add_shown(state, &frame, at);
        use_place(python, place);
        if (keeps)
            state->memo[state->depth - 1 - i] = (tare__python_memo){
                .raw = *raw, .frame = frame, .place = (uint32_t)(place - python->codes.places), .shown = shown > 0};
    }
    return TARE__PYTHON_WALKED;
}

static tare__python_progress show_known(tare__python *python, tare__python_state *state)
{
    for (uint32_t k = state->known; k > 0; k--) {
        const tare__python_memo *memo = &state->memo[k - 1];
        if (!memo->again) {
            tare__python_place *place = &python->codes.places[memo->place];
            if (place->checked != python->round)
                return TARE__PYTHON_WAITS;
            use_place(python, place);
        }
        if (memo->shown)
            add_shown(state, &memo->frame, state->depth - k);
    }
    return TARE__PYTHON_WALKED;
}

void tare__python_show(tare__python *python, tare__python_state *state)
{
    if (!state->shown && !(state->shown = malloc(TARE__PYTHON_DEPTH_MAX * sizeof(*state->shown))))
        return;
    if (state->memo_loads != python->codes.loads)
        state->known = 0; /* a code object has been read since: places may have moved */
    bool keeps = state->depth <= TARE__PYTHON_INNERMOST &&
                 tare__array_fit(&state->memo, &state->memo_room, state->depth, sizeof(*state->memo));
    state->n_shown = 0;
    state->n_memo = state->known;
    state->progress = show_new(python, state, keeps);
    if (state->progress == TARE__PYTHON_WALKED)
        state->progress = show_known(python, state);
    if (state->progress != TARE__PYTHON_WALKED)
        return;
    state->progress = TARE__PYTHON_DONE;
    for (uint32_t k = state->known; k < state->depth && keeps; k++)
        state->memo[k].again = k > 0 && state->memo[k].place == state->memo[k - 1].place;
    state->n_memo = keeps ? state->depth : 0;
    state->memo_loads = python->codes.loads;
}
