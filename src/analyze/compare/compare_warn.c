/* compare_warn: warnings that accompany a comparison, in sentences.
 * Owned by the calling thread.
 * Must not know how figures are tested, nor how sentences are shown. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "compare.h"
#include "decide.h"

#define WAITING 1.15 /* elapsed time over CPU time: an increase beyond this factor is not noise */
#define TAILS   1.10 /* a mean that changed by this factor … */
#define ALIKE   0.03 /* … while the median changed by at most this share */

typedef struct warner {
    tare__comparison *made;
    size_t room;
    bool failed;
} warner;

static void warn(warner *to, const char *format, ...) TARE__PRINTF(2, 3);
static void warn(warner *to, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *copy = tare__arena_copy(to->made->arena, text, strlen(text));
    if (!copy || !tare__array_fit(&to->made->warnings, &to->room, to->made->n_warnings + 1, sizeof(char *)))
        to->failed = true;
    else
        to->made->warnings[to->made->n_warnings++] = copy;
}

static bool differ(const char *a, const char *b)
{
    return a && b && strcmp(a, b) != 0;
}

static const char *or_unknown(const char *text)
{
    return text ? text : "unknown";
}

static void warn_of_differences(warner *to, const tare__figures *base, const tare__figures *head, bool chosen)
{
    if (differ(base->cpu_model, head->cpu_model) || differ(base->host, head->host))
        warn(to, "different machines: baseline on %.100s (%.100s), candidate on %.100s (%.100s)",
             or_unknown(base->host), or_unknown(base->cpu_model), or_unknown(head->host), or_unknown(head->cpu_model));
    else if (differ(base->machine, head->machine))
        warn(to, "the machine has changed: its CPUs, memory or kernel differ between baseline and candidate");
    if (differ(base->command, head->command) && !chosen)
        warn(to, "different commands: baseline ran `%.300s`, candidate ran `%.300s`", base->command, head->command);
    if (differ(base->revision, head->revision))
        warn(to, "different revisions: baseline %.64s, candidate %.64s", base->revision, head->revision);
    if ((strcmp(base->kind, "model") == 0) != (strcmp(head->kind, "model") == 0))
        warn(to, "different things: baseline is of kind %.32s, candidate of kind %.32s", base->kind, head->kind);
}

static void warn_of_data(warner *to, const char *side, const tare__figures *figures)
{
    for (size_t i = 0; i < figures->n_notes; i++)
        warn(to, "%s: %.900s", side, figures->notes[i]);
}

/* On a busy machine a run waits for a CPU: elapsed time increases, CPU time does not. */
const char *tare__compare_waiting(const tare__figures *base, const tare__figures *head, const char *const sides[2],
                                  char *room, size_t size)
{
    double ratios[2] = {NAN, NAN};
    static const char *const names[] = {"run.elapsed", "run.cpu"};
    for (int i = 0; i < 2; i++) {
        const tare__figure *before = tare__figures_find(base, names[i]), *after = tare__figures_find(head, names[i]);
        if (before && after && before->value > 0 && after->value > 0)
            ratios[i] = after->value / before->value;
    }
    double more = ratios[0] / ratios[1], load = tare__decide_load(base, head);
    if (load != 0)
        snprintf(room, size,
                 "other processes kept %s from the CPUs more than %s: that alone makes it %.0f %% slower, so that "
                 "changes in time which that explains are inconclusive. Compare several runs of each", sides[load > 0],
                 sides[load < 0], fabs(load) * 100);
    else if (more > WAITING || more < 1 / WAITING)
        snprintf(room, size,
                 "elapsed time and CPU time changed by different factors: %s waited for a larger part of its time, for "
                 "a device, a lock, or a CPU of a busy machine", sides[more > 1]);
    else
        return NULL;
    return room;
}

static void warn_of_waiting(warner *to, const tare__comparison *made)
{
    char room[256];
    static const char *const sides[] = {"the baseline", "the candidate"};
    const char *sentence = tare__compare_waiting(made->base, made->head, sides, room, sizeof room);
    if (sentence)
        warn(to, "%s", sentence);
}

/* In joined runs, `total` is per run and `n` is of all runs. */
static double mean_of(const tare__figure *figure)
{
    bool joined = figure->per && strcmp(figure->per, "run") == 0;
    return figure->total / ((double)figure->n / (joined ? (double)figure->n_samples : 1));
}

/* A few much slower calls change the mean, but not the median. */
static void warn_of_tails(warner *to, const tare__comparison *made)
{
    for (size_t i = 0; i < made->n; i++) {
        const tare__compared *row = &made->rows[i];
        const tare__figure *base = row->base, *head = row->head;
        if (row->section != TARE__SECTION_WHOLE || row->decision.verdict != TARE__VERDICT_SAME || !base->n ||
            !head->n || !(fabs(row->decision.change) <= ALIKE))
            continue;
        double more = mean_of(head) / mean_of(base);
        if (more > TAILS || more < 1 / TAILS)
            warn(to, "%.100s: the median is alike and the mean is not: it %s by %.0f %%, by some that are far %s",
                 base->name, more > 1 ? "grew" : "fell", fabs(more - 1) * 100,
                 strcmp(base->unit, "ns") == 0 ? "slower" : "larger");
    }
}

static bool is_all_exact(const tare__comparison *made)
{
    for (size_t i = 0; i < made->n; i++)
        if (!made->rows[i].base->exact || !made->rows[i].head->exact)
            return false;
    return made->n > 0;
}

int tare__compare_warn(tare__comparison *made, bool chosen)
{
    warner to = {.made = made};
    warn_of_differences(&to, made->base, made->head, chosen);
    warn_of_data(&to, "baseline", made->base);
    if (made->head != made->base)
        warn_of_data(&to, "candidate", made->head);
    warn_of_waiting(&to, made);
    warn_of_tails(&to, made);
    bool single[] = {made->base->runs < 2, made->head->runs < 2};
    if (single[0] && single[1] && !is_all_exact(made))
        warn(&to, "one run per side: its samples show variation inside a run, not between runs; compare several runs "
                  "(--baseline, --candidate, or --ab)");
    return to.failed ? TARE_E_MEMORY : 0;
}
