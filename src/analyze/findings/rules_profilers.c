/* rules_profilers: the program has a profiler of its own, and it was at work: for how long, and where what it saw is.
 * Owned by the thread that analyzes.
 * Must not know how that was noted. */
#include <math.h>
#include <string.h>

#include "rules.h"

/* So many marks that begin with a text, and what follows it in the last one. */
static size_t marks_of(const tare__analysis *of, const char *start, const char **last)
{
    size_t n = 0, length = strlen(start);
    for (size_t i = 0; i < of->n_marks; i++)
        if (strncmp(of->marks[i].name, start, length) == 0) {
            *last = of->marks[i].name + length;
            n++;
        }
    return n;
}

static void say_where(findings *out, tare__finding *finding, const tare__analysis *of)
{
    const char *path = NULL, *read_path = NULL;
    size_t wrote = marks_of(of, TARE__THEIRS_WROTE, &path), read = marks_of(of, TARE__THEIRS_READ, &read_path);
    if (wrote == 0)
        tare__finding_say(out, &finding->evidence,
                          "It wrote no trace that could be read: operators of that time are only in its own tables.");
    else if (read == 0)
        tare__finding_say(out, &finding->evidence,
                          "Operators of that time are in what it wrote, not in this trace: %s.", path);
    else
        tare__finding_say(out, &finding->evidence,
                          "Operators of that time are taken from what it wrote: %s%s.", read_path,
                          read > 1 ? " and others" : "");
}

void tare__rule_own_profiler(findings *out, const tare__analysis *of)
{
    const tare__counter_row *row = NULL;
    for (size_t i = 0; i < of->n_counters; i++)
        if (strcmp(of->counters[i].name, "torch.profiler.seconds") == 0)
            row = &of->counters[i];
    if (!row || row->n == 0)
        return;
    double seconds = row->mean * (double)row->n;
    tare__finding *finding = tare__finding_add(out, TARE__INFO);
    tare__finding_say(out, &finding->title, "The program's own torch.profiler was active for %s",
                      tare__show_time(seconds * 1e9).text);
    tare__finding_say(out, &finding->evidence,
                      "It was active %s time%s; Tare recorded no operators meanwhile.",
                      tare__show((double)row->n, TARE__SHOW_COUNT).text, row->n == 1 ? "" : "s");
    say_where(out, finding, of);
    tare__finding_say(out, &finding->advice,
                      "Profiled steps are slower: disable it when you compare times.");
    tare__finding_say(out, &finding->gain_how, "not predicted: its overhead depends on its settings");
    tare__finding_figure(out, finding, "at_work", seconds, TARE__SHOW_SECONDS);
    tare__finding_figure(out, finding, "times", (double)row->n, TARE__SHOW_COUNT);
}
