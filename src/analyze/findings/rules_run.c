/* rules_run: how the run ended: out of memory, killed by a signal, exit status; and missing spans.
 * Owned by the thread that analyzes.
 * Must not know how any of it was detected. */
#include <math.h>
#include <signal.h>

#include "rules.h"

/* ---- killed: out of memory ------------------------------------------------------------------- */
/* The process that grew most, and when. */
static const tare__metric_row *who_grew(const tare__analysis *of)
{
    static const tare__metric metrics[] = {TARE__M_RSS_ANON, TARE__M_RSS};
    const tare__metric_row *row, *most = NULL;
    for (size_t i = 0; i < TARE__COUNT_OF(metrics) && !most; i++)
        for (size_t at = 0; (row = tare__rows_next(of, &at, metrics[i], TARE__SUBJECT_PROCESS));)
            if (row->max > row->first && (!most || row->max - row->first > most->max - most->first))
                most = row;
    return most;
}

/* Duration of the second half of its growth: distinguishes a job that was flat for hours and then grew. */
static double last_half_ns(const tare__metric_row *row)
{
    double half = row->first + (row->max - row->first) / 2, from = row->from_ns;
    for (size_t i = 0; row->points && i < row->n_points && row->points[i].at_ns <= row->max_at_ns; i++)
        if (row->points[i].mean <= half)
            from = row->points[i].at_ns + row->points[i].lasts_ns;
    return row->max_at_ns - from;
}

static void say_who_grew(findings *out, const tare__analysis *of)
{
    const tare__metric_row *who = who_grew(of);
    if (!who)
        return;
    double half_ns = last_half_ns(who), rate = (who->max - who->first) / 2 / (half_ns / 1e9);
    tare__say_evidence(out, "Process %llu (%s) grew from %s at %s to %s at %s", (unsigned long long)who->key,
                       tare__show_name(who->label).text, bytes(who->first).text, tare__show_time(who->from_ns).text,
                       bytes(who->max).text, tare__show_time(who->max_at_ns).text);
    if (half_ns > 0)
        tare__say_evidence(out, "(half of that in the last %s: %s a second);", tare__show_time(half_ns).text,
                           bytes(rate).text);
    tare__say_evidence(out, "it was last seen at %s.", tare__show_time(who->to_ns).text);
    tare__say_when(out, who->from_ns, who->to_ns);
    tare__say_figure(out, "pid", (double)who->key, TARE__SHOW_COUNT);
    tare__say_figure(out, "first", who->first, TARE__SHOW_BYTES);
    tare__say_figure(out, "last", who->last, TARE__SHOW_BYTES);
    tare__say_figure(out, "largest", who->max, TARE__SHOW_BYTES);
    if (half_ns > 0)
        tare__say_figure(out, "rate", rate, TARE__SHOW_BYTES_PER_S);
}

/* Spans that never ended show where it was. */
static void say_open_span(findings *out, const tare__analysis *of)
{
    const tare__span_row *inner = NULL;
    for (size_t i = 0; i < of->n_spans; i++)
        if (of->spans[i].still_open && (!inner || of->spans[i].depth > inner->depth))
            inner = &of->spans[i];
    if (inner)
        tare__say_evidence(out, "The innermost span open then was %s.", tare__show_name(inner->name).text);
}

/* Memory held by processes: the page cache regularly fills a container to its limit. */
static double most_used(const tare__analysis *of)
{
    const tare__metric_row *own = tare__rows_first(of, TARE__M_RSS_ANON, TARE__SUBJECT_CONTAINER);
    double most = own ? own->max : NAN;
    most = fmax(most, of->usage.tree_rss_max_bytes); /* fmax ignores NaN */
    return fmax(most, of->usage.rss_peak_bytes);
}

void tare__rule_killed(findings *out, const tare__analysis *of)
{
    double allowed = of->usage.memory_allowed_bytes, used = most_used(of);
    bool at_limit = of->run.signal == SIGKILL && used >= limit(LIMIT_KILLED_AT) * allowed;
    if (!of->run.oom_killed && !at_limit)
        return;
    tare__finding_add(out, TARE__CRITICAL);
    if (isfinite(allowed))
        tare__say_title(out, "Killed: out of memory at its limit of %s", bytes(allowed).text);
    else
        tare__say_title(out, "Killed: out of memory after %s", tare__show_time(of->run.elapsed_ns).text);
    say_who_grew(out, of);
    if (used <= allowed)
        tare__say_evidence(out, "Up to %s was sampled; the limit is %s.", bytes(used).text, bytes(allowed).text);
    tare__say_evidence(out, "%s",
                      of->run.oom_killed
                          ? "The kernel's OOM killer ended a process of the job."
                          : "It was killed by SIGKILL with its memory at the limit; the kernel's OOM count is "
                            "unavailable.");
    say_open_span(out, of);
    tare__say_advice(
        out,
        tare__imported(of, "torch")
            ? "If it grew steadily, find what is kept from step to step: losses or outputs with their autograd graph "
              "(use "
              ".item() or .detach()), unbounded lists and caches. If it grew at once: use a smaller batch, gradient "
              "checkpointing or fewer worker processes. Or raise the limit (docker --memory, Kubernetes "
              "resources.limits.memory)."
            : "If it grew steadily, find what is kept: unbounded lists and caches. If it grew at once: process the "
              "data "
              "in smaller parts, or map files. Or raise the limit (docker --memory, Kubernetes "
              "resources.limits.memory).");
    tare__say_gain(out, NAN, "no gain in time: without it the run does not finish");
    tare__say_figure(out, "used", used, TARE__SHOW_BYTES);
    tare__say_figure(out, "allowed", allowed, TARE__SHOW_BYTES);
}

/* ---- ends ------------------------------------------------------------------------------------ */
static const struct {
    int number;
    const char *name, *meaning;
} signals[] = {
    {SIGABRT, "SIGABRT", "It aborted: an assertion or a library. The last lines of its output say why."},
    {SIGSEGV, "SIGSEGV",
     "It accessed invalid memory: a fault in native code. A debugger or "
     "PYTHONFAULTHANDLER=1 shows where."},
    {SIGBUS, "SIGBUS",
     "It accessed a mapped file or shared memory that is not there: often a full /dev/shm "
     "(docker --shm-size, --ipc=host)."},
    {SIGFPE, "SIGFPE", "It divided an integer by zero."},
    {SIGILL, "SIGILL", "This CPU does not support one of its instructions: a library was built for a newer CPU."},
    {SIGKILL, "SIGKILL",
     "It was killed by a scheduler, a time limit, a user, or the kernel's OOM killer (see dmesg)."},
    {SIGTERM, "SIGTERM", "A scheduler, a time limit or a user terminated it."},
    {SIGINT, "SIGINT", "It was interrupted (Ctrl-C)."},
    {SIGHUP, "SIGHUP", "Its terminal closed: run it under nohup, tmux or a scheduler."},
    {SIGPIPE, "SIGPIPE", "The reader of its output closed the pipe."},
};

void tare__rule_ended_by_signal(findings *out, const tare__analysis *of)
{
    int number = of->run.signal;
    if (number <= 0)
        return;
    tare__finding_add(out, TARE__INFO);
    const char *name = NULL, *meaning = "See the last lines of its output.";
    for (size_t i = 0; i < TARE__COUNT_OF(signals); i++)
        if (signals[i].number == number) {
            name = signals[i].name;
            meaning = signals[i].meaning;
        }
    tare__say_title(out, "Ended by signal %d%s%s%s after %s", number, name ? " (" : "", name ? name : "",
                    name ? ")" : "", tare__show_time(of->run.elapsed_ns).text);
    tare__say_evidence(out, "Signal %d ended the program at %s.", number,
                       tare__show_time(of->run.elapsed_ns).text);
    say_open_span(out, of);
    tare__say_advice(out, "%s", meaning);
    tare__say_gain(out, NAN, "no gain in time");
    tare__say_figure(out, "signal", number, TARE__SHOW_COUNT);
}

void tare__rule_exit_status(findings *out, const tare__analysis *of)
{
    if (of->run.status <= 0)
        return;
    tare__finding_add(out, TARE__INFO);
    tare__say_title(out, "Ended with exit status %d", of->run.status);
    tare__say_evidence(out, "The program returned %d after %s; 0 means success.", of->run.status,
                       tare__show_time(of->run.elapsed_ns).text);
    tare__say_advice(out, "See the last lines of its output. Figures cover the run up to its end.");
    tare__say_gain(out, NAN, "no gain in time");
    tare__say_figure(out, "status", of->run.status, TARE__SHOW_COUNT);
}

/* ---- missing data ---------------------------------------------------------------------------- */
void tare__rule_dropped(findings *out, const tare__analysis *of)
{
    double dropped = (double)of->run.dropped_spans, share = dropped / (dropped + (double)of->run.spans);
    if (!of->run.dropped_spans)
        return;
    tare__finding_add(out, share > limit(LIMIT_DROPPED_CRITICAL) ? TARE__CRITICAL : TARE__WARNING);
    tare__say_title(out, "%s dropped (%s): figures of spans are too small",
                    tare__show_counted(dropped, "span was", "spans were").text, percent(share).text);
    tare__say_evidence(out, "%s recorded; %s dropped because the buffer was full.",
                       tare__show_counted((double)of->run.spans, "span was", "spans were").text,
                       tare__show_counted(dropped, "was", "were").text);
    tare__say_advice(
        out, "Use a larger buffer (tare run --buffer-size 64M), or aggregate spans for what is called very often.");
    tare__say_gain(out, NAN, "no gain in time: it makes the other figures complete");
    tare__say_figure(out, "dropped", dropped, TARE__SHOW_COUNT);
    tare__say_figure(out, "share", share, TARE__SHOW_SHARE);
}
