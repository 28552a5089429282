/* text_sampled: processes as sampled: where the CPU time went in a program without spans.
 * Owned by the calling thread.
 * Must not know how anything was measured. */
#include "parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW         8
#define FEW_THREADS 3
#define PROCESS_CUT 0.01
#define THREAD_CUT  0.05 /* of the total CPU time; a thread with less gets no line */

/* A process or a thread. */
typedef struct seen {
    uint64_t key, owner;
    const char *label;
    tare__used used;
} seen;

typedef struct crowd {
    seen *rows;
    size_t n;
} crowd;

/* ---- from metrics, one row per value, to one row per process ----------------------------------------- */
#define CPU_TIME(row) fmax((row)->used.cpu_seconds, -1) /* ignores NaN */
TARE__ORDER(by_cpu, seen, TARE__FALLING_BY(CPU_TIME) TARE__RISING(key))

/* Rows are sorted by subject, owner and key: those of one process are adjacent. False: out of memory. */
static bool gather(const tare__analysis *analysis, uint32_t subject, crowd *into)
{
    size_t most = 0;
    for (size_t i = 0; i < analysis->n_metrics; i++)
        most += analysis->metrics[i].subject == subject;
    *into = (crowd){.rows = calloc(most + 1, sizeof *into->rows)};
    if (!into->rows)
        return false;
    for (size_t i = 0; i < analysis->n_metrics; i++) {
        const tare__metric_row *metric = &analysis->metrics[i];
        if (metric->subject != subject)
            continue;
        seen *row = into->n > 0 ? &into->rows[into->n - 1] : NULL;
        if (!row || row->key != metric->key || row->owner != metric->owner) {
            row = &into->rows[into->n++];
            *row = (seen){metric->key, metric->owner, metric->label, tare__used_nothing};
        }
        tare__used_add(&row->used, metric);
    }
    if (into->n > 1)
        qsort(into->rows, into->n, sizeof *into->rows, by_cpu);
    return true;
}

/* ---- lines ----------------------------------------------------------------------------------------- */
static double share_of(double cpu_s, double all_s)
{
    return all_s > 0 ? cpu_s / all_s : NAN;
}

/* A dimmed line with the CPU time alone. */
static void put_cpu(tare__page *page, unsigned indent, const char *label, double cpu_s, double all_s)
{
    tare__page_style_on(page, TARE__PAGE_FAINT);
    tare__page_label(page, indent, label, "", TARE__PAGE_PLAIN);
    TARE__PAGE_CELLS(page, "t%", cpu_s * 1e9, share_of(cpu_s, all_s));
    tare__page_style_off(page);
    tare__page_line_end(page);
}

/* Without the directory of the program, which is less informative than the rest. */
static const char *without_folder(const char *command)
{
    size_t word = strcspn(command, " ");
    for (size_t i = word; i > 0; i--)
        if (command[i - 1] == '/' && i < word)
            return command + i;
    return command;
}

/* The whole command if the file has it; the kernel truncates the name of a process to 15 characters. */
static const char *name_of(const tare__analysis *analysis, const seen *row)
{
    for (size_t i = 0; i < analysis->n_processes; i++) {
        const tare__process_row *process = &analysis->processes[i];
        if (process->pid == (int64_t)row->key && process->command && process->command[0])
            return process->has_rank && process->label ? process->label : without_folder(process->command);
    }
    return row->label && row->label[0] ? row->label : "(no name)";
}

static void put_process(tare__page *page, const tare__analysis *analysis, const seen *row, double all_s)
{
    char pid[32];
    snprintf(pid, sizeof pid, " %" PRIu64, row->key);
    tare__page_label(page, 0, name_of(analysis, row), pid, TARE__PAGE_FAINT);
    TARE__PAGE_CELLS(page, "t%BnBB", row->used.cpu_seconds * 1e9, share_of(row->used.cpu_seconds, all_s),
                     row->used.memory_peak_bytes, row->used.threads, row->used.disk_read_bytes,
                     row->used.disk_write_bytes);
    tare__page_line_end(page);
}

static size_t put_threads(tare__page *page, const seen *process, const crowd *threads, double all_s, size_t few)
{
    size_t lines = 0;
    if (process->used.threads < 2)
        return 0;
    for (size_t i = 0; i < threads->n && lines < few; i++) {
        const seen *thread = &threads->rows[i];
        if (thread->owner != process->key || !(thread->used.cpu_seconds >= THREAD_CUT * all_s))
            continue;
        char label[96];
        snprintf(label, sizeof label, "%.60s %" PRIu64, thread->label ? thread->label : "", thread->key);
        put_cpu(page, 2, label, thread->used.cpu_seconds, all_s);
        lines++;
    }
    return lines;
}

static void put_title(tare__page *page)
{
    static const unsigned widths[] = {TARE__PAGE_CELL, TARE__PAGE_CELL,     TARE__PAGE_CELL + 1,
                                      TARE__PAGE_CELL, TARE__PAGE_CELL + 1, TARE__PAGE_CELL + 1};
    page->name_columns = page->options->width;
    for (size_t i = 0; i < TARE__COUNT_OF(widths); i++)
        page->name_columns -= widths[i];
    tare__page_columns(page, "CPU by process", "CPU|share|memory|threads|read|written", widths);
}

/* Number of rows that get a line: the CPU time of short-lived helpers is unknown anyway. */
static size_t count_large(const crowd *processes, double all_s)
{
    size_t n = 0;
    while (n < processes->n && processes->rows[n].used.cpu_seconds >= PROCESS_CUT * all_s)
        n++;
    return n;
}

static void put_table(tare__page *page, const tare__analysis *analysis, const crowd *processes, const crowd *threads)
{
    unsigned kept = page->name_columns;
    double rows_s = 0;
    bool all = page->options->all;
    for (size_t i = 0; i < processes->n; i++)
        rows_s += isfinite(processes->rows[i].used.cpu_seconds) ? processes->rows[i].used.cpu_seconds : 0;
    double all_s = fmax(rows_s, analysis->usage.cpu_seconds); /* ignores NaN */
    size_t n = all ? processes->n : count_large(processes, all_s), few = tare__page_rows(page, n, FEW), shown = 0;
    if (n == 0)
        return;
    put_title(page);
    for (size_t lines = 3; shown < few && (all || lines < page->lines); shown++, lines++) {
        const seen *row = &processes->rows[shown];
        put_process(page, analysis, row, all_s);
        size_t left = page->lines > lines + 1 ? page->lines - lines - 1 : 0;
        lines += put_threads(page, row, threads, all_s, all ? SIZE_MAX : left < FEW_THREADS ? left : FEW_THREADS);
    }
    /* CPU time after the last sample of a process that ended, or of processes that were never sampled: only the sum is
     * known. */
    if (all_s - rows_s >= PROCESS_CUT * all_s)
        put_cpu(page, 0, "(not sampled)", all_s - rows_s, all_s);
    tare__page_more(page, processes->n - shown, "processes");
    page->name_columns = kept;
}

void tare__part_sampled(tare__page *page, const tare__analysis *analysis)
{
    crowd processes = {0}, threads = {0};
    if (!gather(analysis, TARE__SUBJECT_PROCESS, &processes) || !gather(analysis, TARE__SUBJECT_THREAD, &threads))
        page->out->failed = true;
    else if (processes.n > 1 || (processes.n == 1 && (analysis->n_spans == 0 || page->options->all)))
        put_table(page, analysis, &processes, &threads);
    free(processes.rows);
    free(threads.rows);
}
