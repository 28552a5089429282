/* kept: analysis of runs in the history: level changes of a figure, and ids. Any thread.
 * Must not know where runs are kept, nor how they are shown. */
#include "kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "figures.h"
#include "tare.h"

#define CHANGES_MAX 64u

static size_t revision_length(const char *revision)
{
    return strcspn(revision, " "); /* "abc123 on main" */
}

static bool same_revision(const tare__kept_point *a, const tare__kept_point *b)
{
    if (!a->revision || !b->revision || a->dirty == 1 || b->dirty == 1)
        return false;
    size_t length = revision_length(a->revision);
    return length && length == revision_length(b->revision) && memcmp(a->revision, b->revision, length) == 0;
}

/* Moves the runs of one revision next to its first one. */
static int put_together(tare__kept_trend *trend)
{
    tare__kept_point *ordered = malloc((trend->n + 1) * sizeof *ordered);
    bool *taken = calloc(trend->n + 1, sizeof *taken);
    size_t made = 0;
    int status = ordered && taken ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < trend->n && !status; i++) {
        if (taken[i])
            continue;
        tare__kept_group *group = &trend->groups[trend->n_groups++];
        *group = (tare__kept_group){.from = made};
        for (size_t k = i; k < trend->n; k++) {
            if (taken[k] || (k != i && !same_revision(&trend->points[i], &trend->points[k])))
                continue;
            taken[k] = true;
            ordered[made++] = trend->points[k];
        }
        group->n = made - group->from;
    }
    if (!status)
        memcpy(trend->points, ordered, made * sizeof *ordered);
    free(ordered);
    free(taken);
    return status;
}

static void describe(tare__kept_trend *trend, tare__kept_group *group, double *scratch)
{
    for (size_t i = 0; i < group->n; i++)
        scratch[i] = trend->points[group->from + i].value;
    tare__sort(scratch, group->n);
    group->value = tare__quantile_sorted(scratch, group->n, 0.5);
    group->least = scratch[0];
    group->most = scratch[group->n - 1];
}

int tare__kept_find_changes(tare__kept_trend *trend)
{
    double *values = calloc(trend->n + 1, sizeof *values), *scratch = calloc(trend->n + 1, sizeof *scratch);
    tare__change *found = calloc(CHANGES_MAX, sizeof *found);
    trend->changes = calloc(CHANGES_MAX, sizeof *trend->changes);
    trend->groups = calloc(trend->n + 1, sizeof *trend->groups);
    int status = values && scratch && found && trend->changes && trend->groups ? put_together(trend) : TARE_E_MEMORY;
    for (size_t i = 0; i < trend->n_groups && !status; i++) {
        describe(trend, &trend->groups[i], scratch);
        values[i] = trend->groups[i].value;
    }
    const tare__change_options options = {.magnitude = TARE__CHANGE_LEAST};
    trend->n_changes = status ? 0 : tare__change_points(values, trend->n_groups, &options, found, CHANGES_MAX);
    for (size_t i = 0; i < trend->n_changes; i++)
        trend->changes[i] = (tare__kept_change){trend->groups[found[i].at].from, found[i].before, found[i].after,
                                                found[i].p};
    free(values);
    free(scratch);
    free(found);
    return status;
}

/* FNV-1a with splitmix64's finalizer, so that similar times give dissimilar ids. */
static uint64_t mix(uint64_t state, const void *data, size_t bytes)
{
    state = tare__hash_bytes(state, data, bytes);
    return tare__hash_bytes(state, "\xff", 1); /* the end of a text: ("ab", "c") differs from ("a", "bc") */
}

static uint64_t stir(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void tare__kept_make_id(const char *host, const char *command, const char *directory, uint64_t when_ns,
                        uint64_t salt, char id[TARE__KEPT_ID_DIGITS + 1])
{
    uint64_t halves[2] = {0xcbf29ce484222325u, 0x9ae16a3b2f90404fu};
    const char *texts[] = {host, command, directory};
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < TARE__COUNT_OF(texts); j++)
            halves[i] = mix(halves[i], texts[j] ? texts[j] : "", texts[j] ? strlen(texts[j]) : 0);
        halves[i] = mix(halves[i], &when_ns, sizeof when_ns);
        halves[i] = stir(mix(halves[i], &salt, sizeof salt));
    }
    snprintf(id, TARE__KEPT_ID_DIGITS + 1, "%016llx%016llx", (unsigned long long)halves[0],
             (unsigned long long)halves[1]);
}

const char *tare__kept_iso(char out[TARE__KEPT_WORD], uint64_t ns)
{
    time_t at = (time_t)(ns / 1000000000u);
    struct tm parts;
    if (ns == 0 || !gmtime_r(&at, &parts))
        return NULL;
    size_t length = strftime(out, TARE__KEPT_WORD, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(out + length, TARE__KEPT_WORD - length, ".%09lluZ", (unsigned long long)(ns % 1000000000u));
    return out;
}

const char *tare__kept_verdict(int better, double before, double after)
{
    if (better == TARE__NEITHER || after == before)
        return "";
    return (after < before) == (better == TARE__LOWER) ? "better" : "worse";
}
