/* html_heat: how busy each CPU and each thread was, by time cell: strips that the page colors.
 * Owned by the calling thread.
 * Must not know how anything was sampled, nor the colors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "html.h"

#define CELLS        240u
#define CPUS_MOST    512u
#define THREADS_MOST 48u

typedef struct strip {
    const tare__metric_row *user, *system; /* of one subject; either may be NULL */
    double busy_s;
} strip;

static bool is_cpu_time(const tare__metric_row *row)
{
    return (row->known == TARE__M_CPU_USER || row->known == TARE__M_CPU_SYSTEM) && row->n_points > 0;
}

static bool same_subject(const tare__metric_row *a, const tare__metric_row *b)
{
    return a->subject == b->subject && a->key == b->key && a->owner == b->owner;
}

/* Rows of one subject follow each other. */
static size_t gather(const tare__analysis *analysis, uint32_t subject, strip *strips)
{
    const tare__metric_row *last = NULL;
    size_t n = 0;
    for (size_t i = 0; i < analysis->n_metrics; i++) {
        const tare__metric_row *row = &analysis->metrics[i];
        if (row->subject != subject || !is_cpu_time(row))
            continue;
        if (!last || !same_subject(last, row))
            strips[n++] = (strip){NULL, NULL, 0};
        last = row;
        *(row->known == TARE__M_CPU_USER ? &strips[n - 1].user : &strips[n - 1].system) = row;
        strips[n - 1].busy_s += isfinite(row->total) ? row->total : 0;
    }
    return n;
}

TARE__ORDER(by_busy_descending, strip, TARE__FALLING(busy_s))

/* ---- cells -------------------------------------------------------------------------------------- */
typedef struct cell {
    double busy_ns, known_ns;
} cell;

static void add_points(cell *cells, const tare__metric_row *row, double elapsed_ns, bool counts)
{
    double wide = elapsed_ns / CELLS;
    for (size_t i = 0; row && i < row->n_points; i++) {
        double from = fmax(row->points[i].at_ns, 0);
        double to = fmin(row->points[i].at_ns + row->points[i].lasts_ns, elapsed_ns);
        for (size_t at = (size_t)(from / wide); at < CELLS && (double)at * wide < to; at++) {
            double part = fmin(to, (double)(at + 1) * wide) - fmax(from, (double)at * wide);
            if (!(part > 0))
                continue;
            cells[at].busy_ns += row->points[i].mean * part;
            cells[at].known_ns += counts ? part : 0;
        }
    }
}

/* One byte per cell: 0 unknown, else 1 + the share of a core in 254ths. */
static void put_cells(tare__html *page, const strip *strip)
{
    cell cells[CELLS] = {{0, 0}};
    unsigned char packed[CELLS];
    tare__text bytes = {0};
    double elapsed_ns = page->analysis->run.elapsed_ns;
    add_points(cells, strip->user, elapsed_ns, true);
    add_points(cells, strip->system, elapsed_ns, strip->user == NULL);
    for (size_t i = 0; i < CELLS; i++) {
        double share = cells[i].known_ns > 0 ? cells[i].busy_ns / cells[i].known_ns : NAN;
        packed[i] = isfinite(share) ? (unsigned char)(1 + lround(fmin(fmax(share, 0), 1) * 254)) : 0;
    }
    tare__text_append(&bytes, (const char *)packed, sizeof packed);
    tare__html_packed(page, &bytes);
    tare__text_free(&bytes);
}

static void put_strip(tare__html *page, const strip *strip)
{
    const tare__metric_row *row = strip->user ? strip->user : strip->system;
    tare__html_open_row(page);
    tare__json_unsigned(&page->json, row->key);
    tare__json_unsigned(&page->json, row->owner);
    tare__json_string(&page->json, row->label && row->label[0] ? row->label : NULL);
    tare__html_figure(page, strip->busy_s);
    put_cells(page, strip);
    tare__html_close_row(page);
}

static void put_strips(tare__html *page, const char *key, uint32_t subject, size_t most)
{
    bool timed = isfinite(page->analysis->run.elapsed_ns) && page->analysis->run.elapsed_ns > 0;
    strip *strips = calloc(page->analysis->n_metrics + 1, sizeof *strips);
    size_t n = strips && timed ? gather(page->analysis, subject, strips) : 0, shown = n < most ? n : most;
    if (!strips)
        page->text.failed = true;
    if (strips && subject == TARE__SUBJECT_THREAD)
        qsort(strips, n, sizeof *strips, by_busy_descending);
    tare__html_open_table(page, key, "key owner label busy cells");
    for (size_t i = 0; i < shown && !page->status; i++)
        put_strip(page, &strips[i]);
    tare__html_close_table(page, n - shown);
    free(strips);
}

void tare__html_heat(tare__html *page)
{
    put_strips(page, "cpu_strips", TARE__SUBJECT_CPU, CPUS_MOST);
    put_strips(page, "thread_strips", TARE__SUBJECT_THREAD, THREADS_MOST);
}
