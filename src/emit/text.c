/* text: the report for people: head, notes, tables, and the tare line last.
 * Owned by the calling thread.
 * Must not know how the tables were made, nor where the text goes. */
#define _POSIX_C_SOURCE 200809L
#include "flush.h"
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
    tare__text_fit(shown, sizeof shown, run->command ? run->command : "(command not known)",
                   page->options->width);
    tare__page_style_on(page, TARE__PAGE_STRONG);
    tare__text_string(page->out, shown);
    tare__page_style_off(page);
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
    else if (run->status >= 0)
        tare__text_format(out, "exit status %d", run->status);
    else
        tare__text_string(out, "exit status n/a");
}

static void put_amount(tare__text *out, uint64_t n, const char *one, const char *many)
{
    char count[TARE__UNIT_BYTES];
    tare__text_format(out, "%s %s", tare__unit_count(count, (double)n), n == 1 ? one : many);
}

/* The words as lines of their own; there are none left then. */
static void put_line(tare__page *page, tare__text *words)
{
    if (words->failed)
        page->out->failed = true;
    else
        tare__page_sentence(page, 0, words->data);
    tare__page_line_end(page);
    tare__text_clear(words);
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
    put_amount(&words, analysis->n_processes, "process", "processes");
    tare__text_string(&words, ", ");
    put_amount(&words, analysis->n_threads, "thread", "threads");
    tare__text_string(&words, ", ");
    put_amount(&words, run->spans, "span", "spans");
    put_line(page, &words);
    tare__text_free(&words);
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

/* What the marks in the tree mean, once for all rows. */
static void put_note_of_calls(tare__page *page, uint64_t calls, const char *what, const char *mark)
{
    char count[TARE__UNIT_BYTES], sentence[160];
    if (calls == 0)
        return;
    snprintf(sentence, sizeof sentence, "%s call%s %s, counted up to there: marked (%s)",
             tare__unit_count(count, (double)calls), calls == 1 ? "" : "s", what, mark);
    put_note(page, sentence);
}

static void put_notes(tare__page *page, const tare__analysis *analysis)
{
    const tare__run_table *run = &analysis->run;
    uint64_t open = 0, lost = 0;
    for (size_t i = 0; i < analysis->n_spans; i++) {
        open += analysis->spans[i].still_open;
        lost += analysis->spans[i].end_lost;
    }
    if (run->n_notes > 0 || open > 0 || lost > 0)
        tare__page_line_end(page);
    size_t shown = tare__page_rows(page, run->n_notes, FEW_NOTES);
    for (size_t i = 0; i < shown; i++)
        put_note(page, run->notes[i]);
    tare__page_more(page, run->n_notes - shown, "notes");
    put_note_of_calls(page, open, "open at the end", "open");
    put_note_of_calls(page, lost, "without a known end", "end lost");
}

/* ---- the tare line ------------------------------------------------------------------------------- */
/* A span is two events, a chained one is one. */
static uint64_t count_events(const tare__own_table *own)
{
    return 2 * own->spans + own->chained_spans + own->marks + own->counters + own->numbers +
           own->complete_spans + own->aggregate_timed;
}

static void put_own_cost(tare__text *out, const tare__own_table *own, bool raw)
{
    char cost[TARE__UNIT_BYTES], events[TARE__UNIT_BYTES], each[TARE__UNIT_BYTES], off[TARE__UNIT_BYTES];
    char share[TARE__UNIT_BYTES];
    uint64_t n = count_events(own);
    if (!isfinite(own->own_ns)) {
        tare__text_string(out, "tare: the cost of recording is n/a, it was not calibrated in this run");
        return;
    }
    tare__text_format(out, "tare: %s of recording", tare__unit_time(cost, own->own_ns));
    if (n > 0)
        tare__text_format(out, " (%s events x %s)", tare__unit_count(events, (double)n),
                          tare__unit_time(each, own->own_ns / (double)n));
    if (isfinite(own->share))
        tare__text_format(out, ", %s of the time", tare__unit_percent(share, own->share));
    if (raw)
        tare__text_string(out, "; nothing taken off (--raw)");
    else if (isfinite(own->taken_off_ns))
        tare__text_format(out, "; %s taken off self times", tare__unit_time(off, own->taken_off_ns));
}

static void put_tare_line(tare__page *page, const tare__own_table *own)
{
    tare__text words = {0};
    char cpu[TARE__UNIT_BYTES];
    put_own_cost(&words, own, page->options->raw);
    tare__text_format(&words, "; collector %s%s", tare__unit_time(cpu, own->collector_cpu_ns),
                      isfinite(own->collector_cpu_ns) ? " CPU" : "");
    tare__page_line_end(page);
    if (words.failed)
        page->out->failed = true;
    else
        tare__page_sentence(page, 6, words.data);
    tare__page_line_end(page);
    tare__text_free(&words);
}

/* ---- the whole ----------------------------------------------------------------------------------- */
typedef void part(tare__page *page, const tare__analysis *analysis);

static part *const parts[] = {
    tare__part_tree,     tare__part_steps, tare__part_numbers, tare__part_aggregates, tare__part_tracks,
    tare__part_counters, tare__part_marks, tare__part_threads, tare__part_processes,
};

static int emit_text(const tare__emit_input *input, const tare__emit_options *asked,
                     const tare__emit_sink *sink, tare__error *error)
{
    const tare__analysis *analysis = input->analysis;
    tare__emit_options options = *asked;
    options.width = options.width < TARE__EMIT_WIDTH_MIN   ? TARE__EMIT_WIDTH_MIN
                    : options.width > TARE__EMIT_WIDTH_MAX ? TARE__EMIT_WIDTH_MAX
                                                           : options.width;
    tare__text out = {0};
    tare__page page = {.out = &out, .options = &options};
    put_head(&page, analysis);
    put_notes(&page, analysis);
    int status = tare__emit_flush(&out, sink, error);
    for (size_t i = 0; i < TARE__COUNT_OF(parts) && !status; i++) {
        parts[i](&page, analysis);
        status = tare__emit_flush(&out, sink, error);
    }
    if (!status) {
        put_tare_line(&page, &analysis->own);
        status = tare__emit_flush(&out, sink, error);
    }
    tare__text_free(&out);
    return status;
}

const tare__emitter tare__emit_text = {
    .name = "text",
    .description = "for people: where the time went, on one page",
    .needs = TARE__EMIT_TABLES,
    .emit = emit_text,
};
