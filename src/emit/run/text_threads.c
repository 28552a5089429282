/* text_threads: threads and processes of the text report; a thousand threads of the same name are one line.
 * Owned by the calling thread.
 * Must not know how the rows were made. */
#include "parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW           6
#define GROUPED_ABOVE 12

/* ---- threads ------------------------------------------------------------------------------------- */
/* One thread, or all of one name. */
typedef struct line {
    const char *name;
    int64_t tid;
    uint64_t threads, spans, dropped;
    double busy_ns, first_at_ns, last_at_ns;
} line;

static line line_of(const tare__thread_row *row)
{
    return (line){.name = row->name ? row->name : "(no name)",
                  .tid = row->tid,
                  .threads = 1,
                  .spans = row->spans,
                  .dropped = row->dropped_spans,
                  .busy_ns = row->busy_ns,
                  .first_at_ns = row->first_at_ns,
                  .last_at_ns = row->last_at_ns};
}

static void add_line(line *into, const line *more)
{
    into->threads += more->threads;
    into->spans += more->spans;
    into->dropped += more->dropped;
    into->busy_ns += more->busy_ns;
    into->first_at_ns = fmin(into->first_at_ns, more->first_at_ns); /* ignores NaN */
    into->last_at_ns = fmax(into->last_at_ns, more->last_at_ns);
}

TARE__ORDER(by_busy, line, TARE__FALLING(busy_ns) TARE__BY_TEXT(name))

/* Fills `lines` (space for every thread); returns their number, SIZE_MAX if out of memory. */
static size_t gather(const tare__analysis *analysis, line *lines)
{
    bool grouped = analysis->n_threads > GROUPED_ABOVE;
    tare__intern *names = grouped ? tare__intern_new() : NULL;
    size_t n = 0;
    if (grouped && !names)
        return SIZE_MAX;
    for (size_t i = 0; i < analysis->n_threads; i++) {
        line one = line_of(&analysis->threads[i]);
        uint32_t at = grouped ? tare__intern_add(names, one.name, strlen(one.name)) : (uint32_t)n;
        if (at == TARE__INTERN_NONE) {
            tare__intern_free(names);
            return SIZE_MAX;
        }
        if (at < n)
            add_line(&lines[at], &one);
        else
            lines[n++] = one;
    }
    tare__intern_free(names);
    if (n > 1)
        qsort(lines, n, sizeof *lines, by_busy);
    return n;
}

static void put_thread(tare__page *page, const line *line)
{
    char label[32] = "";
    if (line->threads > 1)
        snprintf(label, sizeof label, " ×%" PRIu64, line->threads);
    else if (line->tid)
        snprintf(label, sizeof label, " %" PRId64, line->tid);
    tare__page_label(page, 0, line->name, label, TARE__PAGE_FAINT);
    TARE__PAGE_CELLS(page, line->dropped ? "ctttn" : "cttt", (double)line->spans, line->busy_ns, line->first_at_ns,
                     line->last_at_ns, (double)line->dropped);
    tare__page_line_end(page);
}

void tare__part_threads(tare__page *page, const tare__analysis *analysis)
{
    if (analysis->n_threads < 2)
        return;
    line *lines = calloc(analysis->n_threads, sizeof *lines);
    size_t n = lines ? gather(analysis, lines) : SIZE_MAX, dropped = 0;
    if (n == SIZE_MAX) {
        page->out->failed = true;
        free(lines);
        return;
    }
    for (size_t i = 0; i < n; i++)
        dropped += lines[i].dropped > 0;
    tare__page_title(page, "Threads", dropped ? "spans|busy|from|to|dropped" : "spans|busy|from|to");
    size_t shown = tare__page_rows(page, n, FEW);
    for (size_t i = 0; i < shown; i++)
        put_thread(page, &lines[i]);
    tare__page_more(page, n - shown, "threads");
    free(lines);
}

/* ---- processes ----------------------------------------------------------------------------------- */
static void put_reason(tare__page *page, tare__page_style style, const char *what, unsigned hang, const char *reason)
{
    tare__page_style_on(page, style);
    tare__text_format(page->out, "  %s: ", what);
    tare__page_sentence(page, hang, reason);
    tare__page_style_off(page);
    tare__page_line_end(page);
}

static void put_process(tare__page *page, const tare__process_row *row)
{
    char label[192], pid[32] = "pid n/a";
    if (row->pid)
        snprintf(pid, sizeof pid, "%" PRId64, row->pid);
    snprintf(label, sizeof label, "%s %s", pid, row->label ? row->label : "(command unknown)");
    if (row->joined)
        TARE__PAGE_ROW(page, 0, label, "", row->dropped_spans ? "cntttn" : "cnttt", (double)row->spans,
                       (double)row->threads, row->busy_ns, row->joined_at_ns, row->left_at_ns,
                       (double)row->dropped_spans);
    else {
        tare__page_label(page, 0, label, "", TARE__PAGE_PLAIN);
        put_reason(page, TARE__PAGE_FAINT, "not recorded", page->name_columns + 4,
                   row->not_joined ? row->not_joined : "reason unknown");
    }
    if (row->unreadable)
        put_reason(page, TARE__PAGE_WARNING, "not completely readable", 4, row->unreadable);
}

/* Whether the table would show more than the samples and the text above the tables. */
static bool is_needed(const tare__page *page, const tare__analysis *analysis)
{
    size_t joined = 0, unreadable = 0, n = analysis->n_processes;
    for (size_t i = 0; i < n; i++) {
        joined += analysis->processes[i].joined;
        unreadable += analysis->processes[i].unreadable != NULL;
    }
    bool seen_only = joined == 0 && analysis->n_metrics > 0 && !page->options->all;
    return unreadable > 0 || (!seen_only && (n > 1 || joined < n));
}

void tare__part_processes(tare__page *page, const tare__analysis *analysis)
{
    size_t n = analysis->n_processes, shown = tare__page_rows(page, n, FEW), dropped = 0;
    if (!is_needed(page, analysis))
        return;
    for (size_t i = 0; i < n; i++)
        dropped += analysis->processes[i].dropped_spans > 0;
    tare__page_title(page, "Processes", dropped ? "spans|threads|busy|from|to|dropped" : "spans|threads|busy|from|to");
    for (size_t i = 0; i < shown; i++)
        put_process(page, &analysis->processes[i]);
    tare__page_more(page, n - shown, "processes");
}
