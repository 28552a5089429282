/* text_findings: findings, worst first: a title, its evidence, an action.
 * Owned by the calling thread.
 * Must not know the rules. */
#include "parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEW 5

/* Lines of evidence and advice: the first finding, and the others. */
typedef struct detail {
    unsigned evidence, advice, others_evidence, others_advice;
} detail;

static tare__page_style style_of(tare__severity severity)
{
    return severity >= TARE__CRITICAL ? TARE__PAGE_BAD
           : severity == TARE__WARNING ? TARE__PAGE_WARNING
                                       : TARE__PAGE_FAINT;
}

/* "fetch.py:31", unless the title has it. Evidence may be cut. */
static void put_place(tare__text *words, const tare__analysis *analysis, const tare__finding *finding)
{
    char place[512];
    if (!finding->function || !finding->line)
        return;
    snprintf(place, sizeof place, "%.400s:%" PRIu32, tare__source_name(analysis, finding->file), finding->line);
    if (!strstr(finding->title, place))
        tare__text_format(words, finding->line_share >= 0.5 ? ", mostly at %s" : ", hottest line %s", place);
}

static void put_title(tare__page *page, const tare__analysis *analysis, const tare__finding *finding)
{
    char gain[TARE__UNIT_BYTES];
    tare__text words = {0};
    tare__page_put(page, style_of(finding->severity), tare__severity_word(finding->severity));
    tare__text_pad_to(page->out, TARE__PAGE_LABEL);
    tare__text_string(&words, finding->title);
    put_place(&words, analysis, finding);
    if (finding->gain > 0)
        tare__text_format(&words, " (saves up to %s of steady-state time)", tare__unit_percent(gain, finding->gain));
    tare__page_words(page, TARE__PAGE_STRONG, TARE__PAGE_LABEL, &words, page->options->all ? TARE__PAGE_ENDLESS : 2);
}

#define HANG (TARE__PAGE_LABEL + 2)

static size_t lines_of(tare__page *page, const char *words)
{
    tare__text *whole = page->out, alone = {0};
    page->out = &alone;
    tare__text_pad_to(page->out, HANG);
    tare__page_sentence(page, HANG, words);
    size_t lines = tare__page_lines_of(&alone) + 1;
    page->out = whole;
    tare__text_end(&alone, whole);
    return lines;
}

/* Keeps as many whole sentences as fill at least all lines but one. False: not possible, and the words are
 * unchanged. */
static bool keep_sentences(tare__page *page, tare__text *words, size_t lines)
{
    size_t least = lines > 2 ? lines - 1 : 1;
    for (size_t end = words->length; end > 0 && !words->failed; end--) {
        bool ends = end == words->length || (words->data[end - 1] == '.' && words->data[end] == ' ');
        if (!ends)
            continue;
        char after = words->data[end];
        words->data[end] = '\0';
        size_t taken = lines_of(page, words->data);
        if (taken <= lines && (taken >= least || end == words->length))
            return true;
        words->data[end] = after;
    }
    return false;
}

typedef enum cut { WHOLE_SENTENCES, ANYWHERE } cut;

/* In a single line, part of an action is still useful, but part of the evidence is not. */
static void put_words(tare__page *page, const char *mark, const char *words, size_t lines, cut cut)
{
    if (!words || !words[0] || lines == 0)
        return;
    tare__text fitting = {0};
    tare__text_string(&fitting, words);
    bool whole = lines == TARE__PAGE_ENDLESS || keep_sentences(page, &fitting, lines) || fitting.failed;
    if (!whole && lines == 1 && cut == WHOLE_SENTENCES) {
        tare__text_free(&fitting);
        return;
    }
    tare__text_pad_to(page->out, TARE__PAGE_LABEL);
    tare__text_string(page->out, mark);
    tare__page_words(page, TARE__PAGE_PLAIN, HANG, &fitting, lines);
}

/* "from 12.0 s to 31.5 s" */
static void put_when(tare__page *page, const tare__finding *finding)
{
    char from[TARE__UNIT_BYTES], to[TARE__UNIT_BYTES], words[128];
    if (!isfinite(finding->from_ns) || !isfinite(finding->to_ns))
        return;
    snprintf(words, sizeof words, "from %s to %s of the run", tare__unit_time(from, finding->from_ns),
             tare__unit_time(to, finding->to_ns));
    put_words(page, "  ", words, 1, ANYWHERE);
}

static void put_all_of(tare__page *page, const tare__finding *finding)
{
    char source[256];
    put_when(page, finding);
    if (finding->gain_how) {
        tare__text words = {0};
        tare__text_format(&words, "gain: %s", finding->gain_how);
        if (!words.failed)
            put_words(page, "  ", words.data, TARE__PAGE_ENDLESS, ANYWHERE);
        tare__text_end(&words, page->out);
    }
    snprintf(source, sizeof source, "rule %s%s%s", finding->id, finding->source ? " of " : "",
             finding->source ? finding->source : "");
    tare__page_style_on(page, TARE__PAGE_FAINT);
    put_words(page, "  ", source, TARE__PAGE_ENDLESS, ANYWHERE);
    tare__page_style_off(page);
}

static void put_finding(tare__page *page, const tare__analysis *analysis, const tare__finding *finding, size_t evidence,
                        size_t advice)
{
    put_title(page, analysis, finding);
    put_words(page, "  ", finding->evidence, evidence, WHOLE_SENTENCES);
    put_words(page, "→ ", finding->advice, advice, ANYWHERE);
    if (page->options->all)
        put_all_of(page, finding);
}

static void put_findings(tare__page *page, const tare__analysis *analysis, size_t shown, const detail *detail)
{
    for (size_t i = 0; i < shown; i++)
        put_finding(page, analysis, &analysis->findings[i], i ? detail->others_evidence : detail->evidence,
                    i ? detail->others_advice : detail->advice);
    tare__page_more(page, analysis->n_findings - shown, "findings");
}

/* Shows as much of each as the page has space for. */
static void put_as_fits(tare__page *page, const tare__analysis *analysis, size_t shown)
{
    static const detail details[] = {{5, 4, 2, 2}, {5, 3, 2, 1}, {5, 3, 1, 1}, {4, 2, 1, 1}, {3, 2, 1, 1},
                                     {4, 2, 1, 0}, {4, 2, 0, 0}};
    const size_t last = TARE__COUNT_OF(details) - 1;
    tare__text *whole = page->out, lines = {0};
    page->out = &lines;
    for (size_t i = 0; shown > 0; i++) {
        tare__text_clear(&lines);
        put_findings(page, analysis, shown, &details[i < last ? i : last]);
        if (tare__page_lines_of(&lines) + 2 <= page->lines || shown == 1 || lines.failed)
            break;
        shown -= i > last;
    }
    page->out = whole;
    tare__text_append(page->out, lines.data, lines.length);
    tare__text_end(&lines, page->out);
}

void tare__part_findings(tare__page *page, const tare__analysis *analysis)
{
    static const detail whole = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    size_t shown = tare__page_rows(page, analysis->n_findings, FEW);
    if (analysis->n_findings == 0 && analysis->n_metrics == 0)
        return; /* nothing was sampled */
    tare__page_heading(page, "Findings");
    if (analysis->n_findings == 0)
        tare__text_string(page->out, "None.\n");
    else if (page->options->all)
        put_findings(page, analysis, shown, &whole);
    else
        put_as_fits(page, analysis, shown > FEW ? FEW : shown);
}
