/* rules_profilers: a third-party profiler was active in the program: for how long, and where its output is.
 * Owned by the thread that analyzes.
 * Must not know how that was recorded. */
#include <math.h>
#include <string.h>

#include "rules.h"

/* The number of files, and the last one recorded. */
static size_t files_of(const tare__analysis *of, const char *key, const char **last)
{
    size_t n = 0;
    for (size_t i = 0; i < of->n_facts; i++)
        if (strcmp(of->facts[i].key, key) == 0 && of->facts[i].file) {
            *last = of->facts[i].file;
            n++;
        }
    return n;
}

static void say_where(findings *out, const tare__analysis *of)
{
    const char *path = NULL, *read_path = NULL;
    size_t wrote = files_of(of, TARE__FACT_PROFILER_WROTE, &path),
           read = files_of(of, TARE__FACT_PROFILER_READ, &read_path);
    if (wrote == 0)
        tare__say_evidence(out,
                           "It wrote no trace that could be read: operators of that time are only in its own tables.");
    else if (read == 0)
        tare__say_evidence(out, "Operators of that time are in what it wrote, not in this trace: %s.", path);
    else
        tare__say_evidence(out, "Operators of that time are taken from what it wrote: %s%s.", read_path,
                           read > 1 ? " and others" : "");
}

void tare__rule_own_profiler(findings *out, const tare__analysis *of)
{
    tare__fact_row active;
    if (!tare__fact_sum(of, "torch.profiler.seconds", &active))
        return;
    double seconds = active.mean * (double)active.count;
    tare__finding_add(out, TARE__INFO);
    tare__say_title(out, "The program's own torch.profiler was active for %s", tare__show_time(seconds * 1e9).text);
    tare__say_evidence(out, "It was active %s time%s; Tare recorded no operators meanwhile.",
                       tare__show((double)active.count, TARE__SHOW_COUNT).text, active.count == 1 ? "" : "s");
    say_where(out, of);
    tare__say_advice(out, "Profiled steps are slower: disable it when you compare times.");
    tare__say_gain(out, NAN, "not predicted: its overhead depends on its settings");
    tare__say_figure(out, "at_work", seconds, TARE__SHOW_SECONDS);
    tare__say_figure(out, "times", (double)active.count, TARE__SHOW_COUNT);
}
