/* kept: what is made of runs that history keeps: where a figure's level changed, and ids. Any thread.
 * Must not know where runs are kept, nor how they are shown. */
#include "kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tare.h"

#define CHANGES_MAX 64u
#define MAGNITUDE   0.02 /* a level that moved by less is of no interest to anybody */

int tare__kept_find_changes(tare__kept_trend *trend)
{
    double *values = calloc(trend->n + 1, sizeof *values);
    tare__change *found = calloc(CHANGES_MAX, sizeof *found);
    trend->changes = calloc(CHANGES_MAX, sizeof *trend->changes);
    int status = values && found && trend->changes ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i < trend->n && !status; i++)
        values[i] = trend->points[i].value;
    const tare__change_options options = {.magnitude = MAGNITUDE};
    trend->n_changes = status ? 0 : tare__change_points(values, trend->n, &options, found, CHANGES_MAX);
    for (size_t i = 0; i < trend->n_changes; i++)
        trend->changes[i] = (tare__kept_change){found[i].at, found[i].before, found[i].after, found[i].p};
    free(values);
    free(found);
    return status;
}

/* FNV-1a, then stirred (splitmix64's last step), so that near times give ids that are not near. */
static uint64_t mix(uint64_t state, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        state = (state ^ at[i]) * 0x100000001b3u;
    return (state ^ 0xff) * 0x100000001b3u; /* a text's end counts: ("ab", "c") is not ("a", "bc") */
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
