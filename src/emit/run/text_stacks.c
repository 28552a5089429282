/* text_stacks: where the time goes by sampled stacks: hot lines of the thread that leads, functions by CPU time of all
 * threads, packages.
 * Owned by the calling thread.
 * Must not know how the rows were made. */
#include "parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW_LINES     8
#define FEW_FUNCTIONS 5
#define FEW_AMONG     4    /* where other tables say more */
#define FEW_PACKAGES  6
#define CUT           0.005 /* share of a row that is too small to be shown */
#define IMPORT        0.02 /* share of the wall time from which an import is shown */
#define TOLD          0.1  /* share of a line that is worth a sentence */
#define OUTSIDE       0.02 /* share outside of own code from which it is shown */
#define OWN_CODE      0.05 /* below this share of own code, all lines are shown */
#define OTHERS_WORK   0.1  /* share of the CPU time in other threads from which their functions are shown */
#define NAME_BYTES    1024
#define STATE_COLUMNS 11u

/* ---- words ----------------------------------------------------------------------------------------------- */
static void put_place(char *out, size_t bytes, const tare__analysis *analysis, const char *file, uint32_t line)
{
    if (line)
        snprintf(out, bytes, "%.400s:%" PRIu32, tare__source_name(analysis, file), line);
    else
        snprintf(out, bytes, "%.400s", tare__source_name(analysis, file));
}

static bool is_too_long(const tare__page *page, const char *name)
{
    return tare__text_columns(name, strlen(name)) >= page->name_columns;
}

/* A package's __init__.py with its folder. */
static const char *module_file(const char *file)
{
    const char *from = tare__base_name(file);
    if (strcmp(from, "__init__.py") != 0 || from == file)
        return from;
    for (from--; from > file && from[-1] != '/';)
        from--;
    return from;
}

/* Where most of a line's time is spent; NULL: in the line itself. Code of a module has no name: its file says more. */
static const char *inner_of(char out[NAME_BYTES], const tare__line_row *row)
{
    if (!row->inner || !(row->inner_ns >= 0.5 * row->own_ns))
        return NULL;
    bool module = strcmp(row->inner, "<module>") == 0 && row->inner_file;
    char name[NAME_BYTES];
    snprintf(out, NAME_BYTES, "%.300s",
             module ? module_file(row->inner_file) : tare__short_function(row->inner, name, sizeof name));
    return out;
}

static const char *state_word(uint32_t state)
{
    switch (state) {
    case TARE__STATE_RUNNABLE: return "CPU wait";
    case TARE__STATE_GIL: return "GIL";
    case TARE__STATE_GPU: return "GPU";
    case TARE__STATE_SLEEP: return "sleeping";
    default: return tare__state_word(state);
    }
}

static uint32_t longest_state(const tare__state_times *of)
{
    uint32_t most = TARE__STATE_RUNNING;
    for (uint32_t i = 0; i < TARE__STATE_COUNT; i++)
        most = of->ns[i] > of->ns[most] ? i : most;
    return most;
}

static const char *thread_name(char out[NAME_BYTES], const tare__sampled_thread_row *thread)
{
    if (thread->name)
        snprintf(out, NAME_BYTES, "%.60s", thread->name);
    else
        snprintf(out, NAME_BYTES, "%s %" PRId64, thread->main ? "the main thread" : "thread", thread->tid);
    return out;
}

/* ---- lines of the leading thread ---------------------------------------------------------------------------- */
typedef struct hot {
    const tare__analysis *of;
    const tare__sampled_thread_row *thread;
    const tare__line_row **rows; /* by time of the thread descending */
    size_t n, large;             /* large: those worth a line */
    bool own;                    /* only lines of own code */
} hot;

TARE__ORDER_OF_POINTERS(by_main, tare__line_row, TARE__FALLING(main_ns) TARE__BY_ADDRESS)

/* False: out of memory. */
static bool find_hot(hot *hot)
{
    const tare__analysis *of = hot->of;
    double own_ns = 0;
    hot->rows = calloc(of->n_lines + 1, sizeof *hot->rows);
    if (!hot->rows)
        return false;
    for (size_t i = 0; i < of->n_lines; i++)
        own_ns += of->lines[i].own ? of->lines[i].main_ns : 0;
    hot->own = own_ns >= OWN_CODE * hot->thread->wall_ns;
    for (size_t i = 0; i < of->n_lines; i++)
        if (of->lines[i].main_ns > 0 && (of->lines[i].own || !hot->own))
            hot->rows[hot->n++] = &of->lines[i];
    if (hot->n)
        qsort(hot->rows, hot->n, sizeof *hot->rows, by_main);
    while (hot->large < hot->n && hot->rows[hot->large]->main_share >= CUT)
        hot->large++;
    return true;
}

/* "62.0 % of the wall time of MainThread (6.20 s of 10.0 s) is get at fetch.py:31, waiting for the network in …" */
static void put_sentence(tare__page *page, const hot *hot)
{
    const tare__line_row *row = hot->rows[0];
    uint32_t state = longest_state(&row->main);
    char share[TARE__UNIT_BYTES], time[TARE__UNIT_BYTES], all[TARE__UNIT_BYTES], part[TARE__UNIT_BYTES];
    char thread[NAME_BYTES], place[NAME_BYTES], inner[NAME_BYTES];
    tare__text words = {0};
    if (!(row->main_share >= TOLD))
        return;
    put_place(place, sizeof place, hot->of, row->file, row->line);
    tare__text_format(&words, "%s of the wall time of %s (%s of %s) is %.200s at %s, ",
                      tare__unit_percent(share, row->main_share), thread_name(thread, hot->thread),
                      tare__unit_time(time, row->main_ns), tare__unit_time(all, hot->thread->wall_ns), row->function,
                      place);
    if (row->main.ns[state] < 0.9 * row->main_ns)
        tare__text_format(&words, "%s of it ", tare__unit_percent(part, row->main.ns[state] / row->main_ns));
    bool calls = inner_of(inner, row);
    tare__text_string(&words, tare__wait_phrase(state, calls ? row->inner : NULL, row->inner_file));
    if (calls)
        tare__text_format(&words, " in %.200s", inner);
    if (words.failed)
        page->out->failed = true;
    else
        tare__page_sentence_in(page, 0, words.data, 2);
    tare__page_line_end(page);
    tare__text_free(&words);
}

/* What does not fit is dropped, the least important first: the function, directories. */
static void put_line_name(const tare__page *page, const hot *hot, const tare__line_row *row, char name[3 * NAME_BYTES])
{
    char place[NAME_BYTES], inner[NAME_BYTES];
    bool calls = inner_of(inner, row);
    if (!row->file) {
        snprintf(name, 3 * (size_t)NAME_BYTES, "(outside your code)%s%s", calls ? " → " : "", calls ? inner : "");
        return;
    }
    put_place(place, sizeof place, hot->of, row->file, row->line);
    const char *const places[] = {place, place, tare__base_name(place), tare__base_name(place)};
    for (size_t i = 0; i < TARE__COUNT_OF(places); i++) {
        bool function = !(i % 2) || !calls;
        snprintf(name, 3 * (size_t)NAME_BYTES, "%s%s%.300s%s%s", places[i], function ? " " : "",
                 function ? row->function : "", calls ? " → " : "", calls ? inner : "");
        if (!is_too_long(page, name))
            return;
    }
}

static void put_line(tare__page *page, const hot *hot, const tare__line_row *row)
{
    char name[3 * NAME_BYTES];
    put_line_name(page, hot, row, name);
    tare__page_label(page, 0, name, "", TARE__PAGE_PLAIN);
    TARE__PAGE_CELLS(page, "%%", row->main_share, row->main.ns[TARE__STATE_RUNNING] / hot->thread->wall_ns);
    tare__text_format(page->out, "  %s", state_word(longest_state(&row->main)));
    tare__page_line_end(page);
}

/* The rest of the thread's time: what the interpreter does before and after the program, and threads of libraries. */
static bool has_outside(const hot *hot)
{
    return hot->own && hot->of->stacks.outside.main_share >= OUTSIDE;
}

static void put_lines(tare__page *page, const hot *hot, size_t few)
{
    char thread[NAME_BYTES], title[2 * NAME_BYTES];
    size_t n = page->options->all ? hot->n : hot->large, shown = tare__page_rows(page, n, few);
    unsigned kept = page->name_columns;
    const char *only = hot->of->stacks.only;
    snprintf(title, sizeof title, "Hot lines%s, %s%s%.200s", hot->own ? "" : " of libraries",
             thread_name(thread, hot->thread), only ? " " : "", only ? only : "");
    page->name_columns = page->options->width - 2 * TARE__PAGE_CELL - STATE_COLUMNS;
    static const unsigned widths[] = {TARE__PAGE_CELL, TARE__PAGE_CELL, sizeof "  mostly" - 1};
    tare__page_columns(page, title, "wall|CPU|mostly", widths);
    for (size_t i = 0; i < shown; i++)
        put_line(page, hot, hot->rows[i]);
    if (has_outside(hot))
        put_line(page, hot, &hot->of->stacks.outside);
    tare__page_more(page, n - shown, "lines");
    page->name_columns = kept;
}

/* ---- packages ------------------------------------------------------------------------------------------------- */
TARE__ORDER_OF_POINTERS(package_by_main, tare__package_row, TARE__FALLING(main_ns) TARE__BY_ADDRESS)

static void put_packages(tare__page *page, const tare__analysis *analysis)
{
    const tare__package_row **rows = calloc(analysis->n_packages + 1, sizeof *rows);
    tare__text words = {0};
    char share[TARE__UNIT_BYTES];
    size_t n = 0;
    for (size_t i = 0; rows && i < analysis->n_packages; i++)
        if (analysis->packages[i].main_share >= CUT)
            rows[n++] = &analysis->packages[i];
    if (n)
        qsort(rows, n, sizeof *rows, package_by_main);
    size_t shown = tare__page_rows(page, n, FEW_PACKAGES);
    for (size_t i = 0; i < shown; i++)
        tare__text_format(&words, "%s%.60s %s", i ? ", " : "packages: ", rows[i]->package,
                          tare__unit_percent(share, rows[i]->main_share));
    if (n > 0 && !words.failed) {
        tare__page_sentence_in(page, 10, words.data, page->options->all ? TARE__PAGE_ENDLESS : 2);
        tare__page_line_end(page);
    }
    page->out->failed = page->out->failed || words.failed || !rows;
    tare__text_free(&words);
    free(rows);
}

/* ---- imports ------------------------------------------------------------------------------------------------- */
/* "imports: torch 1.20 s, http.client 410 ms": with what they import; not again what a module of the same package
 * imports. */
static void put_imports(tare__page *page, const tare__analysis *analysis, const tare__sampled_thread_row *thread)
{
    tare__text words = {0};
    char time[TARE__UNIT_BYTES];
    size_t shown = 0, most = page->options->all ? SIZE_MAX : FEW_PACKAGES;
    for (size_t i = 0; i < analysis->n_sampled_imports && shown < most; i++) {
        const tare__sampled_import_row *row = &analysis->sampled_imports[i];
        if (!(row->outer_ns >= IMPORT * thread->wall_ns))
            continue;
        tare__text_format(&words, "%s%.60s %s", shown++ ? ", " : "imports: ", row->module,
                          tare__unit_time(time, row->outer_ns));
    }
    if (shown && !words.failed) {
        tare__page_sentence_in(page, 9, words.data, page->options->all ? TARE__PAGE_ENDLESS : 2);
        tare__page_line_end(page);
    }
    page->out->failed |= words.failed;
    tare__text_free(&words);
}

/* ---- functions by CPU time of all threads ------------------------------------------------------------------------ */
TARE__ORDER_OF_POINTERS(by_cpu, tare__function_row, TARE__FALLING(of.ns[TARE__STATE_RUNNING]) TARE__BY_ADDRESS)

static void put_function(tare__page *page, const tare__analysis *analysis, const tare__function_row *row, double all_ns)
{
    char place[NAME_BYTES] = "", name[2 * NAME_BYTES], shortened[NAME_BYTES];
    if (row->file)
        put_place(place, sizeof place, analysis, row->file, row->line);
    const char *function = tare__short_function(row->function, shortened, sizeof shortened);
    snprintf(name, sizeof name, "%.300s%s%s", function, row->file ? " " : "", place);
    if (is_too_long(page, name))
        snprintf(name, sizeof name, "%.300s %s", function, tare__base_name(place));
    double cpu_ns = row->of.ns[TARE__STATE_RUNNING];
    TARE__PAGE_ROW(page, 0, name, "", "t%tt", cpu_ns, cpu_ns / all_ns, row->self_ns, row->total_ns);
}

static void put_functions(tare__page *page, const tare__analysis *analysis, double all_ns, size_t few)
{
    const tare__function_row **rows = calloc(analysis->n_functions + 1, sizeof *rows);
    size_t n = 0;
    unsigned kept = page->name_columns;
    for (size_t i = 0; rows && i < analysis->n_functions; i++)
        if (analysis->functions[i].of.ns[TARE__STATE_RUNNING] >= (page->options->all ? 0 : CUT) * all_ns)
            rows[n++] = &analysis->functions[i];
    page->out->failed = page->out->failed || !rows;
    if (n) {
        static const unsigned widths[] = {TARE__PAGE_CELL, TARE__PAGE_CELL, TARE__PAGE_CELL, TARE__PAGE_CELL};
        qsort(rows, n, sizeof *rows, by_cpu);
        page->name_columns = page->options->width - (unsigned)TARE__COUNT_OF(widths) * TARE__PAGE_CELL;
        tare__page_columns(page, "Functions by CPU time, all threads", "CPU|share|self|total", widths);
    }
    size_t shown = tare__page_rows(page, n, few);
    for (size_t i = 0; i < shown; i++)
        put_function(page, analysis, rows[i], all_ns);
    tare__page_more(page, n - shown, "functions");
    page->name_columns = kept;
    free(rows);
}

/* ---- parts ---------------------------------------------------------------------------------------------------- */
static bool is_detailed(const tare__analysis *analysis)
{
    return analysis->n_operators > 0 || analysis->n_spans > 0;
}

void tare__part_hot_lines(tare__page *page, const tare__analysis *analysis)
{
    hot hot = {.of = analysis};
    if (analysis->stacks.leading >= analysis->n_sampled_threads)
        return;
    hot.thread = &analysis->sampled_threads[analysis->stacks.leading];
    if (!find_hot(&hot))
        page->out->failed = true;
    else if (hot.large > 0) {
        put_lines(page, &hot, is_detailed(analysis) ? FEW_AMONG : FEW_LINES);
        put_packages(page, analysis);
        put_imports(page, analysis, hot.thread);
        put_sentence(page, &hot);
    }
    free(hot.rows);
}

/* Lines are those of Python code. */
static bool has_native(const tare__analysis *analysis)
{
    for (size_t i = 0; i < analysis->n_functions; i++)
        if (analysis->functions[i].kind == TARE__FRAME_NATIVE)
            return true;
    return false;
}

void tare__part_hot_functions(tare__page *page, const tare__analysis *analysis)
{
    double all_ns = 0, others_ns = 0;
    for (size_t i = 0; i < analysis->n_sampled_threads; i++) {
        const tare__sampled_thread_row *row = &analysis->sampled_threads[i];
        all_ns += row->of.ns[TARE__STATE_RUNNING];
        others_ns += row->leading ? 0 : row->of.ns[TARE__STATE_RUNNING];
    }
    if (all_ns > 0 && (others_ns >= OTHERS_WORK * all_ns || has_native(analysis) || page->options->all))
        put_functions(page, analysis, all_ns, is_detailed(analysis) ? FEW_AMONG : FEW_FUNCTIONS);
}
