/* text: the summary on one page: head, notes, resource usage, findings, tables, the overhead line.
 * Owned by the calling thread.
 * Must not know how the tables were made, nor where the text goes. */
#define _POSIX_C_SOURCE 200809L
#include "emit/flush.h"
#include "parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FEW_NOTES 6

/* ---- head ---------------------------------------------------------------------------------------- */
static void put_command(tare__page *page, const tare__run_table *run)
{
    char shown[4 * TARE__EMIT_WIDTH_MAX];
    tare__text_fit(shown, sizeof shown, run->command ? run->command : "(command unknown)", page->options->width);
    tare__page_put(page, TARE__PAGE_STRONG, shown);
    tare__page_line_end(page);
}

static void put_start(tare__text *out, const tare__run_table *run)
{
    time_t seconds = (time_t)(run->start_realtime_ns / 1000000000u);
    struct tm local;
    char date[64];
    if (run->start_realtime_ns && localtime_r(&seconds, &local) &&
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local))
        tare__text_string(out, date);
    else
        tare__text_string(out, "start n/a");
    if (run->host)
        tare__text_format(out, " on %s", run->host);
}

static void put_ending(tare__text *out, const tare__run_table *run)
{
    if (!run->finished)
        tare__text_string(out, "unfinished");
    else if (run->signal)
        tare__text_format(out, "killed by signal %d (%s)", run->signal, strsignal(run->signal));
    else if (run->attached)
        tare__text_format(out, "attached to %" PRId64, run->attached);
    else if (run->status >= 0)
        tare__text_format(out, "exit status %d", run->status);
    else
        tare__text_string(out, "exit status n/a");
    if (run->oom_killed)
        tare__text_string(out, ", out of memory");
}

static void put_amount(tare__text *out, uint64_t n, const char *one, const char *many)
{
    char count[TARE__UNIT_BYTES];
    tare__text_format(out, "%s %s", tare__unit_count(count, (double)n), n == 1 ? one : many);
}

/* Writes the words on separate lines and frees them. */
static void put_line(tare__page *page, tare__text *words)
{
    tare__page_words(page, TARE__PAGE_PLAIN, 0, words, TARE__PAGE_ENDLESS);
}

/* The processes that recorded or were sampled. Others may have ended between two samples. */
static void put_crowd(tare__text *out, const tare__analysis *analysis)
{
    put_amount(out, analysis->n_processes, "process seen", "processes seen");
    if (analysis->run.spans == 0 && analysis->n_threads == 0) {
        tare__text_string(out, ", no spans recorded (import tare in Python, tare.h in C)");
        return;
    }
    tare__text_string(out, ", ");
    put_amount(out, analysis->n_threads, "thread", "threads");
    tare__text_string(out, ", ");
    put_amount(out, analysis->run.spans, "span", "spans");
}

static void put_place(tare__text *out, const tare__run_table *run)
{
    char memory[TARE__UNIT_BYTES], cpus[64] = "";
    if (run->cpus)
        snprintf(cpus, sizeof cpus, "%u CPU%s", run->cpus, run->cpus == 1 ? "" : "s");
    if (isfinite(run->memory_bytes) && run->memory_bytes > 0)
        tare__unit_bytes(memory, run->memory_bytes);
    else
        memory[0] = '\0';
    const char *const words[] = {run->cpu_model, cpus, memory, run->gpus, run->kernel, run->system, run->revision};
    bool any = false;
    for (size_t i = 0; i < TARE__COUNT_OF(words); i++) {
        if (!words[i] || !words[i][0])
            continue;
        tare__text_format(out, "%s%.100s", any ? " · " : "", words[i]);
        any = true;
    }
}

static void put_head(tare__page *page, const tare__analysis *analysis)
{
    const tare__run_table *run = &analysis->run;
    tare__text words = {0};
    char took[TARE__UNIT_BYTES];
    put_command(page, run);
    put_start(&words, run);
    tare__text_format(&words, " · %s · ", tare__unit_time(took, run->elapsed_ns));
    put_ending(&words, run);
    put_line(page, &words);
    put_crowd(&words, analysis);
    put_line(page, &words);
    if (page->options->all) {
        put_place(&words, run);
        if (words.length > 0)
            put_line(page, &words);
    }
}

/* ---- notes --------------------------------------------------------------------------------------- */
static void put_note(tare__page *page, const char *sentence)
{
    tare__page_style_on(page, TARE__PAGE_WARNING);
    tare__text_string(page->out, "! ");
    tare__page_sentence(page, 2, sentence);
    tare__page_style_off(page);
    tare__page_line_end(page);
}

/* Explains the marks in the tree, once for all rows. */
static void put_note_of_calls(tare__page *page, uint64_t calls, const char *what, const char *mark)
{
    char count[TARE__UNIT_BYTES], sentence[160];
    if (calls == 0)
        return;
    snprintf(sentence, sizeof sentence, "%s call%s %s, counted up to there; marked (%s)",
             tare__unit_count(count, (double)calls), calls == 1 ? "" : "s", what, mark);
    put_note(page, sentence);
}

static void put_notes(tare__page *page, const tare__analysis *analysis)
{
    const tare__run_table *run = &analysis->run;
    uint64_t open = 0, lost = 0;
    for (size_t i = 0; i < analysis->n_spans; i++) {
        open += analysis->spans[i].still_open;
        lost += analysis->spans[i].end_missing;
    }
    if (run->n_notes > 0 || open > 0 || lost > 0)
        tare__page_line_end(page);
    size_t shown = tare__page_rows(page, run->n_notes, FEW_NOTES);
    for (size_t i = 0; i < shown; i++)
        put_note(page, run->notes[i]);
    tare__page_more(page, run->n_notes - shown, "notes");
    put_note_of_calls(page, open, "open at the end", "open");
    put_note_of_calls(page, lost, "without a known end", "end missing");
}

/* ---- the overhead line ------------------------------------------------------------------------------ */
/* A span is two events; one that begins with NEXT is one. */
static uint64_t count_events(const tare__own_table *own)
{
    return 2 * own->spans + own->chained_spans + own->marks + own->counters + own->numbers +
           own->complete_spans + own->aggregate_timed;
}

static void put_own_cost(tare__text *out, const tare__analysis *analysis, bool raw)
{
    const tare__own_table *own = &analysis->own;
    char cost[TARE__UNIT_BYTES], events[TARE__COUNTED_BYTES], each[TARE__UNIT_BYTES], off[TARE__UNIT_BYTES];
    char share[TARE__UNIT_BYTES];
    uint64_t n = count_events(own);
    if (n == 0 && analysis->n_threads == 0 && analysis->n_spans == 0) {
        tare__text_string(out, "no events were recorded in the program");
        return;
    }
    if (!isfinite(own->own_ns)) {
        tare__text_string(out, "recording overhead n/a: not calibrated in this run");
        return;
    }
    tare__text_format(out, "overhead %s", tare__unit_time(cost, own->own_ns));
    if (n > 0)
        tare__text_format(out, " (%s x %s)", tare__unit_counted(events, (double)n, "event", NULL),
                          tare__unit_time(each, own->own_ns / (double)n));
    if (isfinite(own->share))
        tare__text_format(out, ", %s of the time", tare__unit_percent(share, own->share));
    if (raw)
        tare__text_string(out, "; not subtracted (--raw)");
    else if (isfinite(own->subtracted_ns))
        tare__text_format(out, "; %s subtracted from self times", tare__unit_time(off, own->subtracted_ns));
}

static void put_collector_cost(tare__text *out, const tare__own_table *own)
{
    char cpu[TARE__UNIT_BYTES], sampling[TARE__UNIT_BYTES], every[TARE__UNIT_BYTES], longest[TARE__UNIT_BYTES];
    tare__text_format(out, "; collector %s%s", tare__unit_time(cpu, own->collector_cpu_ns),
                      isfinite(own->collector_cpu_ns) ? " CPU" : "");
    if (!isfinite(own->sampler_cpu_ns))
        return;
    tare__text_format(out, ", %s of it sampling", tare__unit_time(sampling, own->sampler_cpu_ns));
    if (isfinite(own->interval_ns))
        tare__text_format(out, " every %s", tare__unit_time(every, own->interval_ns));
    if (own->longest_interval_ns > own->interval_ns)
        tare__text_format(out, " (up to %s)", tare__unit_time(longest, own->longest_interval_ns));
}

static void put_tare_line(tare__page *page, const tare__analysis *analysis)
{
    tare__text words = {0};
    put_own_cost(&words, analysis, page->options->raw);
    put_collector_cost(&words, &analysis->own);
    tare__page_line_end(page);
    tare__text_string(page->out, "tare: ");
    tare__page_words(page, TARE__PAGE_PLAIN, 6, &words, TARE__PAGE_ENDLESS);
}

/* ---- suggested commands -------------------------------------------------------------------------- */
/* Quotes a word for the shell. */
static void put_word(tare__text *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%";
    if (word[strspn(word, plain)] == '\0') {
        tare__text_string(out, word);
        return;
    }
    tare__text_string(out, "'");
    for (; *word; word++)
        tare__text_format(out, *word == '\'' ? "'\\%c'" : "%c", *word);
    tare__text_string(out, "'");
}

static void put_next_line(tare__page *page, const char *lead, const char *option, const char *trace, const char *what)
{
    tare__text line = {0};
    tare__text_format(&line, "%-6stare report %s %s", lead, option, trace);
    if (!line.failed && tare__text_columns(line.data, line.length) > page->options->width) {
        tare__text_clear(&line); /* truncated it would not be a valid command */
        tare__text_format(&line, "%-6stare report %s FILE", lead, option);
    }
    tare__text_pad_to(&line, 42);
    size_t columns = line.failed ? 0 : tare__text_columns(line.data, line.length);
    tare__text_append(page->out, line.data, line.length);
    if (columns + 2 + strlen(what) <= page->options->width) {
        tare__page_style_on(page, TARE__PAGE_FAINT);
        tare__text_format(page->out, "  %s", what);
        tare__page_style_off(page);
    }
    tare__page_line_end(page);
    tare__text_end(&line, page->out);
}

static void put_next(tare__page *page, const tare__analysis *analysis)
{
    tare__text word = {0};
    char shown[4 * TARE__EMIT_WIDTH_MAX];
    (void)analysis;
    if (!page->options->trace || page->options->all)
        return;
    put_word(&word, page->options->trace);
    if (!word.failed) {
        tare__text_fit(shown, sizeof shown, word.data, TARE__EMIT_WIDTH_MAX);
        put_next_line(page, "next:", "--html", shown, "interactive HTML report");
        put_next_line(page, "", "--all", shown, "all rows of all tables");
    }
    tare__text_end(&word, page->out);
}

/* ---- the whole report ---------------------------------------------------------------------------- */
typedef void part(tare__page *page, const tare__analysis *analysis);

/* Order in which parts get lines of the page. */
typedef enum rank { ALWAYS, FINDINGS, STEPS, TREE, SPARE, RANKS } rank;

static const struct {
    part *put;
    rank rank;
    const char *name; /* of a part that may be omitted */
} parts[] = {
    {put_head, ALWAYS, NULL},
    {put_notes, ALWAYS, NULL},
    {tare__part_usage, ALWAYS, NULL},
    {tare__part_findings, FINDINGS, NULL},
    {tare__part_steps, STEPS, NULL},
    {tare__part_hot_lines, TREE, "hot lines"},
    {tare__part_hot_functions, TREE, "functions by CPU time"},
    {tare__part_operators, TREE, "operators"},
    {tare__part_modules, TREE, "modules"},
    {tare__part_roofline, TREE, "FLOP/s of operators"},
    {tare__part_tree, TREE, NULL},
    {tare__part_sampled, TREE, "CPU by process"},
    {tare__part_numbers, SPARE, "numbers"},
    {tare__part_aggregates, SPARE, "aggregates"},
    {tare__part_tracks, SPARE, "tracks"},
    {tare__part_counters, SPARE, "counters"},
    {tare__part_marks, SPARE, "marks"},
    {tare__part_threads, SPARE, "threads"},
    {tare__part_processes, SPARE, "processes"},
    {put_tare_line, ALWAYS, NULL},
    {put_next, ALWAYS, NULL},
};

#define PARTS      TARE__COUNT_OF(parts)
#define PAGE_LINES 55u /* under 60 with the lines that the command adds */

/* Lines reserved for later ranks. */
static const unsigned kept_free[RANKS] = {[FINDINGS] = 20, [STEPS] = 13, [TREE] = 2, [SPARE] = 2};
static const unsigned at_most[RANKS] = {[FINDINGS] = 24, [STEPS] = 9, [TREE] = 30, [SPARE] = 12};

typedef struct layout {
    tare__text texts[PARTS];
    const char *left_out[PARTS];
    size_t n_left_out;
    size_t used; /* lines */
} layout;

static size_t lines_for(const layout *layout, rank rank)
{
    size_t taken = layout->used + kept_free[rank], left = taken < PAGE_LINES ? PAGE_LINES - taken : 0;
    return rank == ALWAYS ? TARE__PAGE_ENDLESS : left < at_most[rank] ? left : at_most[rank];
}

static void lay_out_part(layout *layout, tare__page *page, const tare__analysis *analysis, size_t i)
{
    tare__text *text = &layout->texts[i];
    page->out = text;
    page->lines = lines_for(layout, parts[i].rank);
    parts[i].put(page, analysis);
    size_t lines = tare__page_lines_of(text);
    if (lines > page->lines && parts[i].name) {
        tare__text_clear(text);
        layout->left_out[layout->n_left_out++] = parts[i].name;
    } else {
        layout->used += lines;
    }
}

static void put_left_out(tare__page *page, const layout *layout)
{
    tare__text words = {0};
    if (layout->n_left_out == 0)
        return;
    tare__text_string(&words, "More with --all: ");
    for (size_t i = 0; i < layout->n_left_out; i++)
        tare__text_format(&words, "%s%s", i ? ", " : "", layout->left_out[i]);
    tare__page_line_end(page);
    tare__page_words(page, TARE__PAGE_FAINT, 0, &words, 1);
}

/* Renders parts by rank into separate texts, then writes them in their order. */
static int emit_page(tare__page *page, const tare__analysis *analysis, const tare__emit_sink *sink, tare__error *error)
{
    layout layout = {.used = 0};
    tare__text whole = {0};
    for (rank rank = ALWAYS; rank < RANKS; rank++)
        for (size_t i = 0; i < PARTS; i++)
            if (parts[i].rank == rank)
                lay_out_part(&layout, page, analysis, i);
    page->out = &whole;
    for (size_t i = 0; i < PARTS; i++) {
        if (parts[i].put == put_tare_line)
            put_left_out(page, &layout);
        tare__text_append(&whole, layout.texts[i].data, layout.texts[i].length);
        tare__text_end(&layout.texts[i], &whole);
    }
    return tare__emit_end(&whole, 0, sink, error);
}

static int emit_all(tare__page *page, const tare__analysis *analysis, const tare__emit_sink *sink, tare__error *error)
{
    tare__text out = {0};
    int status = 0;
    page->out = &out;
    page->lines = TARE__PAGE_ENDLESS;
    for (size_t i = 0; i < PARTS && !status; i++) {
        parts[i].put(page, analysis);
        status = tare__emit_flush(&out, sink, error);
    }
    tare__text_free(&out);
    return status;
}

static int emit_text(const tare__emit_input *input, const tare__emit_options *requested,
                     const tare__emit_sink *sink, tare__error *error)
{
    tare__emit_options options = *requested;
    options.width = options.width < TARE__EMIT_WIDTH_MIN   ? TARE__EMIT_WIDTH_MIN
                    : options.width > TARE__EMIT_WIDTH_MAX ? TARE__EMIT_WIDTH_MAX
                                                           : options.width;
    tare__page page = {.options = &options};
    tare__part_lay_out(&page, input->analysis);
    return (options.all ? emit_all : emit_page)(&page, input->analysis, sink, error);
}

const tare__emitter tare__emit_text = {
    .name = "text",
    .needs = TARE__EMIT_TABLES,
    .emit = emit_text,
};
