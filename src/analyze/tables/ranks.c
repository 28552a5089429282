/* ranks: the tables that rules read, for each process that has steps: its spans and steps, and the spans of its
 * workers. Owned by the thread that analyzes.
 * Must not know any rule. */
#include <string.h>

#include "analyze/inner.h"

bool tare__analyze_has_ranks(const tare__analysis *of)
{
    size_t n = 0;
    for (size_t i = 0; i < of->n_processes; i++)
        n += of->processes[i].steps > 0;
    return n > 1;
}

static const tare__process_row *process_of(const tare__analysis *of, const tare__group_row *group)
{
    return group->process == TARE__NO_ROW ? NULL : &of->processes[group->process];
}

/* Its own rows, or those of a process that it started and that has no steps: a loader worker. */
static bool belongs(const tare__analysis *of, const tare__group_row *group, const tare__process_row *rank)
{
    const tare__process_row *process = process_of(of, group);
    return process &&
           (process == rank || (process->steps == 0 && process->parent_pid > 0 &&
                                (process->parent_pid == rank->pid || process->parent_pid == rank->inner_pid)));
}

static bool take_spans(const tare__analysis *of, tare__analysis *rank)
{
    size_t n = 0;
    for (size_t i = 0; i < of->n_groups; i++)
        n += belongs(of, &of->groups[i], rank->processes) ? of->groups[i].n_rows : 0;
    tare__span_row *rows = tare__arena_alloc(of->arena, (n + 1) * sizeof *rows);
    if (!rows)
        return false;
    rank->spans = rows;
    rank->n_spans = 0;
    for (size_t i = 0; i < of->n_groups; i++) {
        const tare__group_row *group = &of->groups[i];
        if (!belongs(of, group, rank->processes))
            continue;
        memcpy(rows + rank->n_spans, of->spans + group->first_row, group->n_rows * sizeof *rows);
        for (size_t row = rank->n_spans; row < rank->n_spans + group->n_rows; row++)
            if (rows[row].parent != TARE__NO_ROW)
                rows[row].parent += (uint32_t)rank->n_spans - group->first_row;
        rank->n_spans += group->n_rows;
    }
    return true;
}

/* Threads are grouped by process. */
static void take_threads(const tare__analysis *of, tare__analysis *rank)
{
    size_t process = (size_t)(rank->processes - of->processes), from = 0, to;
    while (from < of->n_threads && of->threads[from].process != process)
        from++;
    for (to = from; to < of->n_threads && of->threads[to].process == process;)
        to++;
    rank->threads = of->threads + from;
    rank->n_threads = to - from;
}

static bool take_steps(const tare__analysis *of, const tare__step_row *all, size_t n_all,
                       const tare__process_row *process, const tare__step_row **kept, size_t *n_kept)
{
    tare__step_row *rows = tare__arena_alloc(of->arena, (n_all + 1) * sizeof *rows);
    *kept = rows;
    *n_kept = 0;
    for (size_t i = 0; rows && i < n_all; i++)
        if (all[i].group != TARE__NO_ROW && process_of(of, &of->groups[all[i].group]) == process)
            rows[(*n_kept)++] = all[i];
    return rows != NULL;
}

int tare__analyze_ranks(const tare__analysis *by_process, tare__analysis *of)
{
    tare__analysis *ranks = tare__arena_alloc(by_process->arena, (by_process->n_processes + 1) * sizeof *ranks);
    size_t n = 0;
    if (!ranks)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < by_process->n_processes; i++) {
        const tare__process_row *process = &by_process->processes[i];
        if (process->steps == 0)
            continue;
        tare__analysis *rank = &ranks[n++];
        *rank = *of;
        rank->groups = NULL;
        rank->n_groups = 0;
        rank->processes = process;
        rank->n_processes = 1;
        take_threads(by_process, rank);
        if (!take_spans(by_process, rank) ||
            !take_steps(by_process, by_process->steps, by_process->n_steps, process, &rank->steps, &rank->n_steps) ||
            !take_steps(by_process, by_process->epochs, by_process->n_epochs, process, &rank->epochs, &rank->n_epochs))
            return TARE_E_MEMORY;
    }
    of->ranks = ranks;
    of->n_ranks = n;
    return 0;
}
