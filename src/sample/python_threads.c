/* python_threads: the list of thread states of a Python process, and the kernel's thread id of each.
 * One thread owns the reader.
 * Must not know frames. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "files.h"
#include "python_inner.h"


#define GLIBC_TID_OFFSET 720 /* of `tid` in struct pthread, on x86-64 and aarch64 */
#define TID_SEARCH_BYTES 2048
#define TID_TRIES 5u
#define LIST_TRIES 8u
#define TID_THREADS 8u /* of which the place of the thread id is checked */

/* ---- thread ids ------------------------------------------------------------------------------ */
/* The last number of the line NSpid: the id in the innermost namespace. *levels: how many there are. */
static pid_t namespace_id(pid_t pid, pid_t tid, unsigned *levels)
{
    char path[96], text[4096];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    *levels = 0;
    if (tare__sample_read("", path, text, sizeof(text)) <= 0)
        return 0;
    const char *at = strstr(text, "\nNSpid:");
    long last = 0;
    if (at)
        for (at += 7; *at == '\t' || *at == ' ';) {
            char *end;
            last = strtol(at, &end, 10);
            if (end == at)
                break;
            at = end;
            ++*levels;
        }
    return (pid_t)last;
}

void tare__python_namespace(tare__python *python)
{
    unsigned levels;
    pid_t own = namespace_id(python->pid, python->pid, &levels);
    python->own_pid = own > 0 ? own : python->pid;
    python->other_namespace = levels > 1;
}

/* From the id in the process's namespace to the one in this one's. */
static pid_t outer_tid(const tare__python *python, pid_t inner)
{
    char path[64];
    if (inner <= 0 || inner > 1 << 22)
        return 0;
    if (!python->other_namespace)
        return inner;
    if (inner == python->own_pid)
        return python->pid;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)python->pid);
    DIR *folder = opendir(path);
    pid_t found = 0;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        unsigned levels;
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && namespace_id(python->pid, tid, &levels) == inner)
            found = tid;
    }
    if (folder)
        closedir(folder);
    return found;
}

static bool is_task(const tare__python *python, pid_t tid)
{
    char path[96];
    snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)python->pid, (int)tid);
    return tid > 0 && access(path, F_OK) == 0;
}

/* Whether an older state has the same ids: the thread has entered several interpreters, or a thread is being started.
 * Its state is made by the thread that starts it, and before 3.12 has that one's ids until the new one sets them. */
static bool has_older(const tare__python *python, size_t i, bool same_interp)
{
    const tare__python_state *state = python->states[i];
    for (size_t k = i + 1; k < python->n_states; k++) { /* the newest state is the first */
        const tare__python_state *older = python->states[k];
        bool same = older->ident == state->ident || (state->native && older->native == state->native);
        if (same && (!same_interp || older->interp == state->interp))
            return true;
    }
    return false;
}

/* Each thread has its own. */
static bool other_is(tare__python *python, size_t k, uint64_t offset, int32_t tid)
{
    int32_t other;
    return tare__python_read(python, python->states[k]->ident + offset, &other, sizeof(other)) && other == tid;
}

/* Before 3.11 there is only the pthread_t, the address of a struct that has the thread id. Whether `offset` is its
 * place: every thread has the id of a task there, and one is the main thread. */
static bool is_tid_offset(tare__python *python, uint64_t offset)
{
    bool main = false;
    for (size_t i = 0; i < python->n_states && i < TID_THREADS; i++) {
        int32_t tid;
        if (has_older(python, i, false))
            continue;
        if (!tare__python_read(python, python->states[i]->ident + offset, &tid, sizeof(tid)) ||
            !is_task(python, outer_tid(python, tid)))
            return false;
        main = main || tid == python->own_pid;
        for (size_t k = 0; k < i; k++)
            if (!has_older(python, k, false) && other_is(python, k, offset, tid))
                return false;
    }
    return main || python->n_states > TID_THREADS;
}

static void find_tid_offset(tare__python *python)
{
    python->tid_offset = ++python->tid_tries < TID_TRIES ? -1 : -2; /* a thread can end meanwhile */
    if (is_tid_offset(python, GLIBC_TID_OFFSET)) {
        python->tid_offset = GLIBC_TID_OFFSET;
        return;
    }
    for (int32_t offset = 0; offset < TID_SEARCH_BYTES; offset += 4)
        if (is_tid_offset(python, (uint64_t)offset)) {
            python->tid_offset = offset;
            return;
        }
}

static pid_t tid_of(tare__python *python, const tare__python_state *state)
{
    int32_t tid;
    if (python->layout.state_native != TARE__PYTHON_NO)
        return outer_tid(python, state->native <= INT32_MAX ? (pid_t)state->native : 0);
    if (python->tid_offset == -1)
        find_tid_offset(python);
    if (python->tid_offset < 0 ||
        !tare__python_read(python, state->ident + (uint64_t)python->tid_offset, &tid, sizeof(tid)))
        return 0;
    tid = outer_tid(python, tid);
    return is_task(python, tid) ? tid : 0;
}

/* ---- the list -------------------------------------------------------------------------------- */
void tare__python_state_free(tare__python_state *state)
{
    if (!state)
        return;
    free(state->chunks.at);
    free(state->frames.at);
    free(state->outside.at);
    free(state->again.at);
    free(state->raw);
    free(state->shown);
    free(state->memo);
    free(state->evaluation);
    free(state);
}

/* The state with this address, moved to position `at`, or a new one there. */
static tare__python_state *take_state(tare__python *python, uint64_t address, size_t at)
{
    for (size_t i = at; i < python->n_states; i++)
        if (python->states[i]->address == address) {
            tare__python_state *found = python->states[i];
            memmove(python->states + at + 1, python->states + at, (i - at) * sizeof(found));
            python->states[at] = found;
            return found;
        }
    tare__python_state *made = calloc(1, sizeof(*made));
    if (!made || !tare__array_fit(&python->states, &python->states_room, python->n_states + 1, sizeof(made))) {
        free(made);
        return NULL;
    }
    made->address = address;
    memmove(python->states + at + 1, python->states + at, (python->n_states - at) * sizeof(made));
    python->states[at] = made;
    python->n_states++;
    return made;
}

/* *broken: a thread ended meanwhile, and those after it are not listed. */
static bool walk_threads(tare__python *python, uint32_t interp, size_t *n, bool *broken)
{
    const tare__python_layout *layout = &python->layout;
    uint64_t address = 0;
    unsigned char bytes[TARE__PYTHON_STATE_BYTES];
    if (!tare__python_read(python, python->interps[interp].address + layout->interp_threads, &address, 8))
        return false;
    while (address && *n < TARE__PYTHON_THREADS_MAX) {
        if (!tare__python_read(python, address, bytes, layout->state_bytes) ||
            tare__python_u64(bytes + layout->state_interp) != python->interps[interp].address) {
            *broken = true;
            return true;
        }
        for (size_t i = 0; i < *n; i++)
            if (python->states[i]->address == address) /* a loop */
                return true;
        tare__python_state *state = take_state(python, address, *n);
        if (!state)
            return false;
        uint64_t ident = tare__python_u64(bytes + layout->state_ident);
        uint64_t native = layout->state_native == TARE__PYTHON_NO ? 0 : tare__python_u64(bytes + layout->state_native);
        if (state->ident != ident || state->native != native || state->interp != interp) {
            state->tid = 0;
            state->starting = false;
        }
        state->renamed = false;
        state->ident = ident;
        state->native = native;
        state->interp = interp;
        ++*n;
        address = tare__python_u64(bytes + layout->state_next);
    }
    return true;
}

static bool list_threads(tare__python *python, uint32_t interp, size_t *n)
{
    size_t first = *n;
    bool broken = true;
    for (unsigned tries = 0; broken && tries < LIST_TRIES; tries++) {
        broken = false;
        *n = first;
        if (!walk_threads(python, interp, n, &broken))
            return false;
    }
    return true; /* if it is broken, the next sample lists the others */
}

bool tare__python_list(tare__python *python)
{
    const tare__python_layout *layout = &python->layout;
    uint64_t address = 0;
    size_t n = 0;
    python->n_interps = 0;
    if (!tare__python_read(python, python->symbols.runtime + layout->runtime_interpreters, &address, 8))
        return false;
    while (address && python->n_interps < TARE__PYTHON_INTERPS_MAX) {
        tare__python_interp *interp = &python->interps[python->n_interps];
        *interp = (tare__python_interp){.address = address};
        if (layout->runtime_gil != TARE__PYTHON_NO)
            interp->gil = python->symbols.runtime + layout->runtime_gil;
        else if (!tare__python_read(python, address + layout->interp_gil, &interp->gil, 8))
            break;
        for (uint32_t i = 0; i < python->n_interps; i++)
            if (python->interps[i].address == address) /* a loop */
                address = 0;
        if (!address || !list_threads(python, python->n_interps++, &n) ||
            !tare__python_read(python, address + layout->interp_next, &address, 8))
            break;
    }
    for (size_t i = n; i < python->n_states; i++)
        tare__python_state_free(python->states[i]);
    python->n_states = n;
    for (size_t i = 0; i < n; i++) {
        tare__python_state *state = python->states[i];
        if (state->tid)
            continue;
        /* It stays so when the thread that starts it ends, and as long as its ident is that one's. */
        state->starting = state->starting || has_older(python, i, true);
        state->tid = tid_of(python, state);
    }
    return true;
}

/* The lock's condition and mutex are in one structure with its holder: threads that want it wait there. */
bool tare__python_is_gil(const tare__python *python, uint64_t address)
{
    for (uint32_t i = 0; i < python->n_interps; i++) {
        uint64_t gil = python->interps[i].gil;
        if (gil && address >= gil && address - gil < TARE__PYTHON_GIL_BYTES)
            return true;
    }
    return false;
}
