/* check_window: the recent runs of the history that a check compares with if no baseline is given.
 * One thread.
 * Must not know how a check is made, nor how runs are stored. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "inputs.h"
#include "store/store.h"

#define RUNS_SEARCHED 500u
#define PATIENCE_MS   5000
#define BRANCH_FEW    3u /* revisions of the default branch that are enough to exclude other branches */

typedef struct window {
    tare__store *store;
    const tare__figures *head;
    tare__kept_list runs;     /* newest first */
    const tare__kept **taken; /* runs grouped by revision */
    size_t *ends, n;          /* end of each revision's runs */
    bool main_only;
} window;

static size_t length_of(const char *revision)
{
    return revision ? strcspn(revision, " ") : 0;
}

static bool same_revision(const char *a, const char *b)
{
    size_t length = length_of(a);
    return length && length == length_of(b) && memcmp(a, b, length) == 0;
}

/* "abc123 on main" */
static bool is_of_main(const char *revision)
{
    const char *branch = revision ? strstr(revision, " on ") : NULL;
    return branch && (strcmp(branch, " on main") == 0 || strcmp(branch, " on master") == 0);
}

/* Of another revision than the one that is checked, without uncommitted changes. */
static bool is_candidate(const window *of, const tare__kept *run)
{
    return run->dirty != 1 && !same_revision(run->revision, of->head->revision) &&
           (!of->main_only || is_of_main(run->revision));
}

/* The newest revisions, at most `most`, each with all its runs. */
static void take_revisions(window *of, size_t most)
{
    bool *done = calloc(of->runs.n + 1, sizeof *done);
    size_t taken = 0;
    of->n = 0;
    for (size_t i = 0; done && i < of->runs.n && of->n < most; i++) {
        const tare__kept *first = &of->runs.rows[i];
        if (done[i] || !is_candidate(of, first))
            continue;
        for (size_t k = i; k < of->runs.n; k++) {
            const tare__kept *run = &of->runs.rows[k];
            if (done[k] || !is_candidate(of, run) || (k != i && !same_revision(first->revision, run->revision)))
                continue;
            done[k] = true;
            of->taken[taken++] = run;
        }
        of->ends[of->n++] = taken;
    }
    free(done);
}

typedef struct revision {
    const window *of;
    size_t from;
} revision;

static int load_run(const void *context, size_t i, tare__figures **figures, tare__error *error)
{
    const revision *one = context;
    return tare__store_figures(one->of->store, one->of->taken[one->from + i], figures, error);
}

/* Merges the runs of one revision, the oldest first: the median of each figure. */
static int load_revision(const void *context, size_t i, tare__figures **figures, tare__error *error)
{
    const window *of = context;
    size_t at = of->n - 1 - i, from = at ? of->ends[at - 1] : 0;
    return tare__cli_load_joined(of->ends[at] - from, load_run, &(revision){of, from}, figures, error);
}

static int search(window *of, size_t most, tare__error *error)
{
    const tare__figures *head = of->head;
    const tare__store_filter filter = {.exact_command = head->command,
                                       .machine = head->machine,
                                       .kind = strcmp(head->kind, "runs") == 0 ? "run" : head->kind,
                                       .before_ns = head->first_ns ? head->first_ns : head->when_ns,
                                       .ended_well = true,
                                       .limit = RUNS_SEARCHED};
    int status = tare__store_list(of->store, &filter, &of->runs, error);
    if (status)
        return status;
    of->taken = calloc(of->runs.n + 1, sizeof *of->taken);
    of->ends = calloc(of->runs.n + 1, sizeof *of->ends);
    if (!of->taken || !of->ends)
        return tare__no_memory(error);
    of->main_only = true;
    take_revisions(of, most);
    if (of->n < BRANCH_FEW) {
        of->main_only = false;
        take_revisions(of, most);
    }
    return 0;
}

int tare__cli_check_window(const char *setting, const tare__figures *head, size_t most, tare__check_window *out,
                           tare__error *error)
{
    char place[TARE__STORE_PLACE_BYTES];
    bool off = false;
    window of = {.head = head};
    *out = (tare__check_window){.n = 0};
    int status = tare__store_place(setting, place, &off, error);
    if (status || off || !head->command || !head->machine)
        return status;
    const tare__store_options how = {.patience_ms = PATIENCE_MS};
    status = tare__store_open(place, &how, &of.store, error);
    if (status)
        return status == TARE__STORE_NONE ? 0 : status;
    status = search(&of, most, error);
    if (!status && of.n)
        status = tare__cli_load_joined(of.n, load_revision, &of, &out->figures, error);
    if (!status && out->figures) {
        out->n = of.n;
        for (size_t i = 0; i < of.ends[of.n - 1]; i++)
            out->oldest_ns = !i || of.taken[i]->when_ns < out->oldest_ns ? of.taken[i]->when_ns : out->oldest_ns;
        snprintf(out->name, sizeof out->name, "the last %zu revision%s%s in the history", of.n, of.n == 1 ? "" : "s",
                 of.main_only ? " of the default branch" : "");
    }
    free(of.taken);
    free(of.ends);
    tare__store_list_free(&of.runs);
    tare__store_close(of.store);
    return status;
}
