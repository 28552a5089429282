/* python: opens a Python process and samples the stacks of its threads: one read for what the last sample had, and more
 * only where something changed.
 * One thread owns the reader.
 * Must not know when samples are taken or where they go. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "python_inner.h"

#define WAITS_MAX 8u    /* reads of a thread in a sample for ranges and code objects that were not known */
#define CHANGES_MAX 3u  /* reads of a thread that changed meanwhile */
#define ROUNDS_MAX 64u
#define ALIVE_EVERY 64u /* samples */
#define SPAN_MAX 8192u
#define SPELL_MIN 64u   /* samples on the CPU of the program, … */
#define SPELL_MAX 1024u
#define SKIPPED_MAX 16u  /* samples */
#define DEEP 512u       /* frames to be found one by one: the program would wait too long */
#define CALM 64u        /* … longer if they are needed again this soon */

/* ---- open and close -------------------------------------------------------------------------- */
static int open_found(tare__python *python, tare__error *error)
{
    char path[64];
    tare__python_namespace(python);
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)python->pid);
    python->memory_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (!tare__python_list(python) || !tare__python_alive(python))
        return tare__fail(error, TARE_E_SYSTEM, "process %d has ended", (int)python->pid);
    if (!python->n_interps || !python->n_states)
        return tare__fail(error, TARE_E_BUSY, "process %d has not initialized Python yet", (int)python->pid);
    return 0;
}

int tare__python_open(pid_t pid, tare__python **out, tare__error *error)
{
    tare__python *python = calloc(1, sizeof(*python));
    *out = NULL;
    if (!python)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    python->pid = pid;
    python->memory_fd = -1;
    python->tid_offset = python->cpu = -1;
    int status = tare__python_find(python, error);
    if (status == 0)
        status = open_found(python, error);
    if (status == 0)
        *out = python;
    else
        tare__python_close(python);
    return status;
}

void tare__python_close(tare__python *python)
{
    if (!python)
        return;
    tare__python_cpu_close(python);
    for (size_t i = 0; i < python->n_states; i++)
        tare__python_state_free(python->states[i]);
    free(python->states);
    tare__python_codes_free(&python->codes);
    free(python->threads);
    free(python->joined);
    free(python->guesses);
    free(python->guessed.at);
    free(python->asked.at);
    free(python->fresh.at);
    free(python->buffer);
    if (python->memory_fd >= 0)
        close(python->memory_fd);
    free(python);
}

const char *tare__python_version(const tare__python *python)
{
    return python->version;
}

const char *tare__python_object(const tare__python *python)
{
    return python->object;
}

tare__python_cost tare__python_cost_of(const tare__python *python)
{
    return python->cost;
}

/* ---- what all threads share ------------------------------------------------------------------ */
static uint32_t smallest(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t largest(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t gil_bytes(const tare__python_layout *layout)
{
    return largest(layout->gil_holder + 8, layout->gil_locked + 4);
}

static uint64_t holder_in(const tare__python *python, const unsigned char *gil)
{
    return gil && tare__python_u32(gil + python->layout.gil_locked) == 1
               ? tare__python_u64(gil + python->layout.gil_holder) : 0;
}

static uint64_t holder_at(const tare__python *python, uint32_t at)
{
    return holder_in(python, tare__python_planned(python, at, gil_bytes(&python->layout)));
}

uint64_t tare__python_holder_now(tare__python *python, const tare__python_interp *interp)
{
    unsigned char gil[TARE__PYTHON_GIL_BYTES];
    uint32_t bytes = gil_bytes(&python->layout);
    return interp->gil && bytes <= sizeof(gil) && tare__python_read(python, interp->gil, gil, bytes)
               ? holder_in(python, gil) : 0;
}

/* Once more after the threads: one that runs at neither time has not changed meanwhile. */
static void plan_holders(tare__python *python)
{
    for (uint32_t i = 0; i < python->n_interps; i++) {
        tare__python_interp *interp = &python->interps[i];
        interp->at_last = interp->gil ? tare__python_plan(python, interp->gil, gil_bytes(&python->layout))
                                      : TARE__PYTHON_NO;
    }
}

/* Fields that are close together are one range. */
static void plan_interp(tare__python *python, tare__python_interp *interp)
{
    const tare__python_layout *layout = &python->layout;
    uint32_t start = smallest(smallest(layout->interp_next, layout->interp_threads), layout->interp_collecting);
    uint32_t end = largest(largest(layout->interp_next + 8, layout->interp_threads + 8), layout->interp_collecting + 4);
    if (end - start <= SPAN_MAX) {
        uint32_t at = tare__python_plan(python, interp->address + start, end - start);
        interp->at_next = at == TARE__PYTHON_NO ? at : at + layout->interp_next - start;
        interp->at_threads = at == TARE__PYTHON_NO ? at : at + layout->interp_threads - start;
        interp->at_collecting = at == TARE__PYTHON_NO ? at : at + layout->interp_collecting - start;
    } else {
        interp->at_next = tare__python_plan(python, interp->address + layout->interp_next, 8);
        interp->at_threads = tare__python_plan(python, interp->address + layout->interp_threads, 8);
        interp->at_collecting = tare__python_plan(python, interp->address + layout->interp_collecting, 4);
    }
    if (layout->runtime_gil != TARE__PYTHON_NO)
        interp->at_gil = python->at_gil;
    else
        interp->at_gil = interp->gil ? tare__python_plan(python, interp->gil, gil_bytes(layout)) : TARE__PYTHON_NO;
}

static void plan_globals(tare__python *python)
{
    const tare__python_layout *layout = &python->layout;
    uint32_t start = layout->runtime_interpreters, end = start + 8;
    if (layout->runtime_gil != TARE__PYTHON_NO)
        end = layout->runtime_gil + gil_bytes(layout);
    python->at_runtime = tare__python_plan(python, python->symbols.runtime + start, end - start);
    python->at_gil = layout->runtime_gil != TARE__PYTHON_NO ? python->at_runtime + layout->runtime_gil - start : 0;
    for (uint32_t i = 0; i < python->n_interps; i++)
        plan_interp(python, &python->interps[i]);
}

static uint64_t planned_u64(const tare__python *python, uint32_t at)
{
    const unsigned char *bytes = tare__python_planned(python, at, 8);
    return bytes ? tare__python_u64(bytes) : 0;
}

/* Collections, the holders of the GIL, and whether the lists of interpreters and threads are as they were. */
static void read_globals(tare__python *python)
{
    uint64_t expected = planned_u64(python, python->at_runtime);
    size_t at = 0;
    for (uint32_t i = 0; i < python->n_interps; i++) {
        tare__python_interp *interp = &python->interps[i];
        const unsigned char *collecting = tare__python_planned(python, interp->at_collecting, 4);
        interp->collecting = collecting && tare__python_u32(collecting) != 0;
        interp->holder = holder_at(python, interp->at_gil);
        interp->last_holder = holder_at(python, interp->at_last);
        if (interp->address != expected)
            python->list_changed = true;
        expected = planned_u64(python, interp->at_next);
        uint64_t first = planned_u64(python, interp->at_threads);
        while (at < python->n_states && python->states[at]->interp < i)
            at++;
        bool has = at < python->n_states && python->states[at]->interp == i;
        if (first != (has ? python->states[at]->address : 0))
            python->list_changed = true;
    }
    if (expected)
        python->list_changed = true;
}

/* The link of a thread state to the next one of its interpreter. */
static void check_link(tare__python *python, size_t i)
{
    tare__python_state *state = python->states[i];
    const unsigned char *bytes = tare__python_planned(python, state->at_state, python->layout.state_bytes);
    bool has = i + 1 < python->n_states && python->states[i + 1]->interp == state->interp;
    if (!bytes)
        return;
    const tare__python_layout *layout = &python->layout;
    state->renamed =
        tare__python_u64(bytes + layout->state_ident) != state->ident ||
        (layout->state_native != TARE__PYTHON_NO && tare__python_u64(bytes + layout->state_native) != state->native);
    if (state->renamed ||
        tare__python_u64(bytes + layout->state_next) != (has ? python->states[i + 1]->address : 0))
        python->list_changed = true;
}

/* ---- frames as they are shown ---------------------------------------------------------------- */
static uint32_t kept_frames(const tare__python_state *state)
{
    return state->depth < TARE__PYTHON_DEPTH_MAX ? state->depth : TARE__PYTHON_DEPTH_MAX;
}

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

/* All code objects of the frames are known and were checked after the frames had been read. */
static void show_state(tare__python *python, tare__python_state *state)
{
    uint32_t n = kept_frames(state), start = 0;
    if (!state->shown && !(state->shown = malloc(TARE__PYTHON_DEPTH_MAX * sizeof(*state->shown))))
        return;
    if (state->depth > TARE__PYTHON_DEPTH_MAX)
        start = (state->depth - TARE__PYTHON_INNERMOST) % TARE__PYTHON_OUTERMOST;
    state->n_shown = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i < TARE__PYTHON_INNERMOST
                          ? i : TARE__PYTHON_INNERMOST + (i - TARE__PYTHON_INNERMOST + start) % TARE__PYTHON_OUTERMOST;
        const tare__python_raw *raw = &state->raw[at];
        tare__python_place *place = tare__python_place_of(python, raw->code);
        int shown = place && place->checked == python->round
                        ? show_frame(python, raw, place, &state->shown[state->n_shown]) : -2;
        if (shown < 0) {
            state->progress = shown == -2 ? TARE__PYTHON_WAITS : TARE__PYTHON_CHANGED;
            return;
        }
        if (state->evaluations && shown)
            state->shown[state->n_shown].evaluation = at < TARE__PYTHON_INNERMOST ? state->evaluation[at] : 0;
        if (!place->guessed && place->used != python->sample)
            tare__python_add(&python->fresh, place->address);
        place->used = python->sample;
        state->n_shown += (uint32_t)shown;
    }
    state->progress = TARE__PYTHON_DONE;
}

/* ---- a sample -------------------------------------------------------------------------------- */
/* Plans as many of the threads that wait as one read can have. */
static bool plan_states(tare__python *python)
{
    bool any = false;
    for (size_t i = 0; i < python->n_states; i++) {
        tare__python_state *state = python->states[i];
        state->planned = false;
        if (state->progress != TARE__PYTHON_WAITS)
            continue;
        if (!tare__python_state_plan(python, state)) {
            if (any) /* in the next round */
                continue;
            state->progress = TARE__PYTHON_TORN; /* too large for any read */
        }
        any = any || state->planned;
    }
    return any;
}

static void settle(tare__python_state *state)
{
    if (state->progress == TARE__PYTHON_CHANGED)
        state->progress = ++state->changes < CHANGES_MAX ? TARE__PYTHON_WAITS : TARE__PYTHON_TORN;
    else if (state->progress == TARE__PYTHON_WAITS && ++state->waits >= WAITS_MAX)
        state->progress = TARE__PYTHON_TORN;
}

/* False: nothing could be read. `there`: on the CPU of the program. */
static bool do_round(tare__python *python, bool there)
{
    python->round++;
    tare__python_plan_clear(python);
    plan_globals(python);
    plan_states(python);
    plan_holders(python);
    tare__python_guess_plan(python);
    if (!tare__python_plan_read(python) || !python->valid_bytes)
        return false;
    there = there || python->cpu >= 0;
    python->cpu = -1;
    read_globals(python);
    bool broken = false; /* a read ends at the first range that is not mapped: the threads after it are read again */
    for (size_t i = 0; i < python->n_states; i++) {
        tare__python_state *state = python->states[i];
        if (!state->planned || broken)
            continue;
        broken = state->at_end > python->valid_bytes;
        check_link(python, i);
        tare__python_state_walk(python, state);
    }
    tare__python_guess_check(python);
    if (!there)
        tare__python_verify(python);
    for (size_t i = 0; i < python->n_states; i++) {
        const tare__python_state *state = python->states[i];
        if (state->planned && state->progress == TARE__PYTHON_WALKED)
            for (uint32_t k = 0; k < kept_frames(state); k++)
                tare__python_ask(python, state->raw[k].code);
    }
    tare__python_ask_check(python);
    for (size_t i = 0; i < python->n_states; i++) {
        tare__python_state *state = python->states[i];
        if (state->planned && state->progress == TARE__PYTHON_WALKED)
            show_state(python, state);
        if (state->planned)
            settle(state);
    }
    return true;
}

static bool waits(const tare__python *python)
{
    for (size_t i = 0; i < python->n_states; i++)
        if (python->states[i]->progress == TARE__PYTHON_WAITS)
            return true;
    return false;
}

/* ---- where to read --------------------------------------------------------------------------- */
static bool changed(const tare__python *python)
{
    for (size_t i = 0; i < python->n_states; i++)
        if (python->states[i]->changes)
            return true;
    return false;
}

/* A stack had memory that the first read did not have: a frame outside of the data stack, a function that was new. */
static bool searched(const tare__python *python)
{
    for (size_t i = 0; i < python->n_states; i++)
        if (python->states[i]->waits)
            return true;
    return false;
}

/* A program that was caught in the middle of calls is read on its own CPU for some time. To read it again only where it
 * changed would not do: what it calls for longer would come out too large. */
static void set_pace(tare__python *python)
{
    python->searches = searched(python) ? SPELL_MIN : python->searches ? python->searches - 1 : 0;
    if (python->unsteady) {
        python->unsteady--;
        python->calm = 0;
        return;
    }
    python->calm++;
    if (!changed(python))
        return;
    bool again = python->spell && python->calm < CALM;
    python->spell = !again ? SPELL_MIN : 2 * python->spell < SPELL_MAX ? 2 * python->spell : SPELL_MAX;
    python->unsteady = python->spell;
}

static bool is_deep(const tare__python *python)
{
    for (size_t i = 0; i < python->n_states; i++)
        if (python->states[i]->outside.n > DEEP)
            return true;
    return false;
}

typedef struct rounds {
    tare__python *python;
    bool all_there; /* on the CPU of the program */
    bool relisted;
    int failure;    /* errno */
} rounds;

/* One read has all frames of most stacks. Where it does not (before Python 3.11, for generators, and for calls through
 * C), all rounds are made on the CPU of the program: a second read at another time would prefer other stacks. */
static void do_rounds(void *context)
{
    rounds *rounds = context;
    tare__python *python = rounds->python;
    for (unsigned round = 0; round < ROUNDS_MAX && (!round || waits(python)); round++) {
        python->list_changed = false;
        errno = 0;
        python->may_skip = !round && python->skipped < SKIPPED_MAX;
        if (!rounds->all_there && (python->unsteady || (round && changed(python))))
            python->cpu = tare__python_cpu_of(python);
        if (!do_round(python, rounds->all_there)) {
            rounds->failure = errno ? errno : ESRCH;
            return;
        }
        if (python->list_changed && !rounds->relisted) {
            rounds->relisted = true;
            if (!tare__python_list(python)) {
                rounds->failure = tare__python_alive(python) ? ENOMEM : ESRCH;
                return;
            }
        }
    }
}

static void fill_current(const tare__python *python, const tare__python_state *state, tare__python_thread *thread)
{
    const tare__python_layout *layout = &python->layout;
    const tare__python_inner *inner = &state->inner[0];
    const tare__python_place *place = state->n_inner ? tare__python_place_of(python, inner->code) : NULL;
    thread->evaluations = state->evaluations;
    if (!place || inner->code != state->raw[0].code)
        return;
    thread->current = inner->address;
    if (layout->minor >= 11) {
        thread->code = inner->code + layout->code_start;
        thread->instruction = inner->instruction;
    } else {
        thread->code = place->mark.start + layout->bytes_data;
        thread->instruction = thread->code + inner->instruction * (layout->minor == 10 ? 2 : 1);
    }
    thread->code_end = thread->code + (uint64_t)place->code_bytes;
}

static tare__python_thread thread_of(const tare__python *python, const tare__python_state *state)
{
    const tare__python_interp *interp = &python->interps[state->interp];
    bool done = state->progress == TARE__PYTHON_DONE, holds = interp->holder == state->address;
    tare__python_thread thread = {
        .ident = state->ident,
        .tid = state->tid,
        .main = state->tid == python->pid,
        .has_gil = holds,
        .in_gc = holds && interp->collecting,
        .torn = !done,
        .cut = done && state->depth > TARE__PYTHON_DEPTH_MAX,
        .depth = !done ? 0 : state->depth > TARE__PYTHON_DEPTH_MAX ? state->depth : state->n_shown,
        .n = done ? state->n_shown : 0,
        .frames = done ? state->shown : NULL,
    };
    if (done && state->evaluations)
        fill_current(python, state, &thread);
    return thread;
}

/* The frames of `outer` called those of `inner`, which becomes both; *used: frames of python->joined. */
static void join(tare__python *python, tare__python_thread *inner, const tare__python_thread *outer, size_t *used)
{
    inner->has_gil = inner->has_gil || outer->has_gil;
    inner->in_gc = inner->in_gc || outer->in_gc;
    inner->torn = inner->torn || outer->torn;
    inner->current = 0; /* evaluations are those of one interpreter */
    inner->cut = inner->cut || outer->cut;
    if (inner->torn) {
        inner->n = inner->depth = 0;
    } else if (!inner->n) {
        inner->frames = outer->frames;
        inner->n = outer->n;
        inner->depth = outer->depth;
    } else if (outer->n && inner->n + outer->n <= TARE__PYTHON_DEPTH_MAX) { /* else the outermost ones are missing */
        tare__python_frame *both = python->joined + *used;
        memcpy(both, inner->frames, inner->n * sizeof(*both));
        memcpy(both + inner->n, outer->frames, outer->n * sizeof(*both));
        inner->frames = both;
        inner->n += outer->n;
        inner->depth += outer->depth;
        *used += inner->n;
    }
}

/* Before 3.13, the first state of an interpreter belongs to the thread that created it, whichever runs it: which thread
 * the older of two stacks is on is known, but not that of the newer one. */
static bool can_join(const tare__python *python, const tare__python_thread *inner, const tare__python_thread *outer)
{
    return python->layout.minor >= 13 || !inner->n || !outer->n;
}

/* A thread that has entered several interpreters has a state in each: they are one thread. The newest interpreter is
 * the first in the list, and was entered last. */
static bool join_states(tare__python *python, uint32_t *n)
{
    uint32_t kept = 0;
    size_t used = 0, frames = 0;
    for (uint32_t i = 0; i < *n; i++)
        frames += python->threads[i].n;
    if (!tare__array_fit(&python->joined, &python->joined_room, python->n_interps * frames + 1,
                         sizeof(*python->joined)))
        return false;
    for (uint32_t i = 0; i < *n; i++) {
        tare__python_thread *thread = &python->threads[i];
        uint32_t same = 0;
        while (same < kept && (!thread->tid || python->threads[same].tid != thread->tid))
            same++;
        if (same < kept && can_join(python, &python->threads[same], thread)) {
            join(python, &python->threads[same], thread, &used);
            continue;
        }
        if (same < kept) {
            tare__python_thread *newer = &python->threads[same];
            newer->ident = (uintptr_t)newer->frames; /* as unique as the state */
            newer->tid = 0;
            newer->main = false;
        }
        python->threads[kept++] = *thread;
    }
    *n = kept;
    return true;
}

/* Whether the thread of this state runs. What has frames does, even if an older state has its ident, too. */
static bool has_thread(const tare__python *python, const tare__python_state *state)
{
    if (state->starting)
        return !state->renamed && state->progress == TARE__PYTHON_DONE && state->depth > 0;
    return python->layout.state_native == TARE__PYTHON_NO || state->native != 0 || state->depth > 0;
}

static bool fill_threads(tare__python *python, uint32_t *n)
{
    *n = 0;
    if (!tare__array_fit(&python->threads, &python->threads_room, python->n_states + 1, sizeof(*python->threads)))
        return false;
    for (size_t i = 0; i < python->n_states; i++) {
        const tare__python_state *state = python->states[i];
        if (!has_thread(python, state))
            continue;
        python->threads[(*n)++] = thread_of(python, state);
        python->cost.samples++;
        python->cost.torn += state->progress != TARE__PYTHON_DONE;
    }
    return python->n_interps < 2 || join_states(python, n);
}

static int fail_sample(const tare__python *python, int failure, tare__error *error)
{
    if (failure == EPERM || failure == EACCES)
        return tare__fail(error, TARE_E_PERMISSION, "cannot read the memory of process %d any more: permission denied",
                          (int)python->pid);
    if (failure == ENOMEM)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    if (failure == EAGAIN)
        return tare__fail(error, TARE_E_BUSY, "process %d did not give up its CPU in time", (int)python->pid);
    return tare__fail(error, TARE_E_SYSTEM, "process %d has ended or runs another program", (int)python->pid);
}

void tare__python_want_evaluations(tare__python *python)
{
    python->wants_evaluations = true;
}

int32_t tare__python_line_at(const tare__python *python, const tare__python_thread *thread, uint64_t instruction)
{
    uint32_t code = thread->n ? thread->frames[0].code : 0;
    return code && instruction >= thread->code && instruction < thread->code_end
               ? tare__python_line_of(python->codes.functions[code - 1], (uint32_t)(instruction - thread->code)) : 0;
}

/* `tid` 0: all threads. */
static int take_sample(tare__python *python, pid_t tid, uint32_t *n, tare__error *error)
{
    *n = 0;
    python->sample++;
    python->calls_before = python->cost.calls;
    python->loaded = false;
    for (size_t i = 0; i < python->n_states; i++) {
        bool wanted = !tid || python->states[i]->tid == tid;
        python->states[i]->progress = wanted ? TARE__PYTHON_WAITS : TARE__PYTHON_DONE;
        python->states[i]->waits = python->states[i]->changes = 0;
    }
    rounds rounds = {.python = python, .all_there = true};
    python->cpu = -1; /* nothing in do_rounds may wait for the reading thread when that runs it */
    bool all_there = python->unsteady && (python->layout.minor < 11 || python->searches) && !is_deep(python);
    int cpu = all_there ? tare__python_cpu_of(python) : -1;
    int status = cpu < 0 ? TARE_E_SYSTEM : tare__python_cpu_run(python, cpu, do_rounds, &rounds);
    if (status == TARE_E_BUSY && python->skipped < SKIPPED_MAX)
        rounds.failure = EAGAIN;
    else if (status != 0) {
        rounds.all_there = false;
        do_rounds(&rounds);
    }
    python->skipped = rounds.failure == EAGAIN ? python->skipped + 1 : 0;
    if (rounds.failure)
        return fail_sample(python, rounds.failure, error);
    set_pace(python);
    bool odd = rounds.relisted || python->loaded || python->sample % ALIVE_EVERY == 0;
    for (size_t i = 0; i < python->n_states; i++)
        odd = odd || python->states[i]->progress != TARE__PYTHON_DONE;
    if (odd && !tare__python_alive(python))
        return fail_sample(python, ESRCH, error);
    if (!fill_threads(python, n))
        return fail_sample(python, ENOMEM, error);
    tare__python_guess_next(python);
    return 0;
}

int tare__python_sample(tare__python *python, const tare__python_thread **threads, uint32_t *n, tare__error *error)
{
    int status = take_sample(python, 0, n, error);
    *threads = status ? NULL : python->threads;
    return status;
}

int tare__python_sample_thread(tare__python *python, pid_t tid, const tare__python_thread **thread, tare__error *error)
{
    *thread = NULL;
    size_t at = 0;
    while (at < python->n_states && python->states[at]->tid != tid)
        at++;
    if (at == python->n_states)
        return 0;
    uint32_t n;
    int status = take_sample(python, tid, &n, error);
    for (uint32_t i = 0; !status && i < n; i++)
        if (python->threads[i].tid == tid)
            *thread = &python->threads[i];
    return status;
}
