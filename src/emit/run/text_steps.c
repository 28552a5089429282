/* text_steps: steps, epochs and attached numbers of the text report.
 * Owned by the calling thread.
 * Must not know how the rows were made. */
#include "parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FEW 6
#define PARTS_SHOWN 6u
#define RANKS_SHOWN 8u
#define NONE_LEAST 0.005 /* of a step */

/* ---- numbers and their rates --------------------------------------------------------------------- */
typedef struct known_number {
    const char *name, *unit; /* the unit may have the prefixes k, M, G, … */
} known_number;

static const known_number known[] = {{"flops", "FLOP/s"}, {"bytes", "B/s"}};

/* 31.2 GFLOP/s */
static void put_scaled(char *out, size_t out_bytes, double value, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t i = 0;
    for (; i + 1 < TARE__COUNT_OF(prefixes) && fabs(value) >= 999.5; i++)
        value /= 1000;
    char digits[32];
    double size = fabs(value);
    tare__text_double(digits, sizeof digits, 'f', size < 9.995 ? 2 : size < 99.95 ? 1 : 0, value);
    snprintf(out, out_bytes, "%s %s%s", digits, prefixes[i], unit);
}

static const char *put_rate(char *out, size_t out_bytes, const tare__number_row *number)
{
    char count[TARE__UNIT_BYTES], name[48];
    if (!isfinite(number->rate))
        return strcpy(out, "n/a");
    for (size_t i = 0; i < TARE__COUNT_OF(known); i++) {
        if (strcmp(known[i].name, number->name) == 0) {
            put_scaled(out, out_bytes, number->rate, known[i].unit);
            return out;
        }
    }
    tare__text_fit(name, sizeof name, number->name, 16);
    snprintf(out, out_bytes, "%s %s/s", tare__unit_count(count, number->rate), name);
    return out;
}

static const char *put_sum(char out[TARE__UNIT_BYTES], const tare__number_row *number)
{
    bool bytes = strcmp(number->name, "bytes") == 0;
    return bytes ? tare__unit_bytes(out, number->sum) : tare__unit_count(out, number->sum);
}

/* "38.4k samples, 16.6k samples/s" */
static void put_sum_and_rate(tare__text *out, const tare__number_row *number)
{
    char sum[TARE__UNIT_BYTES], rate[96], name[48];
    tare__text_fit(name, sizeof name, number->name, 16);
    bool bytes = strcmp(number->name, "bytes") == 0; /* its unit states it already */
    tare__text_format(out, "%s%s%s", put_sum(sum, number), bytes ? "" : " ", bytes ? "" : name);
    if (number->inspected)
        tare__text_format(out, " in %" PRIu64 " inspected step%s", number->inspected,
                          number->inspected == 1 ? "" : "s");
    tare__text_format(out, ", %s%s", number->estimated && isfinite(number->rate) ? "about " : "",
                      put_rate(rate, sizeof rate, number));
}

/* Numbers of steps are shown with the steps. */
static bool is_loop(const tare__span_row *row)
{
    return row->kind == TARE_KIND_STEP || row->kind == TARE_KIND_EPOCH;
}

/* Numbers of shapes are shown with the operators. */
static bool has_lines(const tare__span_row *row)
{
    return !is_loop(row) && !row->inspection;
}

static void put_number_line(tare__page *page, const tare__analysis *analysis, const tare__span_row *row,
                            const tare__number_row *number)
{
    const tare__span_row *parent = row->parent == TARE__NO_ROW ? NULL : &analysis->spans[row->parent];
    char label[256], sum[TARE__UNIT_BYTES], rate[96], name[48];
    /* "forward / layer 1": the span's name alone may occur several times in the tree. */
    if (parent && !is_loop(parent))
        snprintf(label, sizeof label, "%.120s / %.120s", parent->name, row->name);
    else
        snprintf(label, sizeof label, "%.250s", row->name);
    tare__page_label(page, 0, label, "", TARE__PAGE_PLAIN);
    tare__text_fit(name, sizeof name, number->name, 11);
    tare__text_format(page->out, "  %s", name);
    tare__text_pad_to(page->out, page->name_columns + 13);
    tare__page_cell(page, 11, put_sum(sum, number));
    tare__page_cell(page, 24, put_rate(rate, sizeof rate, number));
    tare__page_line_end(page);
}

void tare__part_numbers(tare__page *page, const tare__analysis *analysis)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < analysis->n_spans; i++)
        n += has_lines(&analysis->spans[i]) ? analysis->spans[i].n_numbers : 0;
    if (n == 0)
        return;
    tare__page_columns(page, "Numbers", "|sum|rate", (const unsigned[]){13, 11, 24});
    size_t shown = tare__page_rows(page, n, FEW);
    for (size_t i = 0; i < analysis->n_spans && at < shown; i++) {
        const tare__span_row *row = &analysis->spans[i];
        for (size_t j = 0; j < row->n_numbers && has_lines(row) && at < shown; j++, at++)
            put_number_line(page, analysis, row, &row->numbers[j]);
    }
    tare__page_more(page, n - shown, "numbers");
}

/* ---- steps and epochs ---------------------------------------------------------------------------- */
static void put_interval(tare__text *out, const tare__step_row *row)
{
    char low[TARE__UNIT_BYTES], high[TARE__UNIT_BYTES];
    if (row->p50.needed > 0)
        tare__text_format(out, "too few for a confidence interval of the median (%" PRIu64 " needed)", row->p50.needed);
    else if (isfinite(row->p50.low_ns))
        tare__text_format(out, "median within %s and %s (95 %%)", tare__unit_time(low, row->p50.low_ns),
                          tare__unit_time(high, row->p50.high_ns));
    else
        tare__text_string(out, "too many for a confidence interval; quantiles are accurate to 0.4 %");
    if (row->unfinished > 0)
        tare__text_format(out, "; %" PRIu64 " unfinished, not included", row->unfinished);
}

static void put_slow_step(tare__text *out, const tare__slow_step *slow)
{
    char took[TARE__UNIT_BYTES];
    tare__unit_time(took, slow->duration_ns);
    if (slow->has_index)
        tare__text_format(out, "#%" PRIu64 " %s", slow->index, took);
    else
        tare__text_string(out, took);
}

static void put_extremes(tare__text *out, const tare__step_row *row)
{
    char first[TARE__UNIT_BYTES], rest[TARE__UNIT_BYTES];
    bool known = isfinite(row->first_ns) && isfinite(row->rest_p50_ns);
    if (known)
        tare__text_format(out, "first %s, the others %s", tare__unit_time(first, row->first_ns),
                          tare__unit_time(rest, row->rest_p50_ns));
    if (row->count < 6 || row->n_slowest == 0)
        return;
    tare__text_string(out, known ? "; slowest: " : "slowest: ");
    for (size_t i = 0; i < row->n_slowest && i < 3; i++) {
        tare__text_string(out, i ? ", " : "");
        put_slow_step(out, &row->slowest[i]);
    }
}

/* "phases: forward 61.0 %, data 20.4 %; other 8.1 %" */
static void put_parts(tare__text *out, const tare__step_row *row)
{
    const tare__step_course *course = &row->course;
    double all = 0, named = 0;
    char share[TARE__UNIT_BYTES], name[96];
    for (size_t i = 0; i < course->n_bins; i++)
        all += course->bins[i].total_ns;
    for (size_t part = 0, shown = 0; part < course->n_parts && all > 0; part++) {
        double sum = 0;
        for (size_t i = 0; i < course->n_bins; i++)
            sum += course->bins[i].parts_ns[part];
        named += sum;
        if (!course->parts[part] || shown == PARTS_SHOWN)
            continue;
        tare__text_fit(name, sizeof name, course->parts[part], 24);
        tare__text_format(out, "%s%s %s", shown++ ? ", " : course->phases ? "phases: " : "parts: ", name,
                          tare__unit_percent(share, sum / all));
    }
    if (out->length > 0 && all - named >= NONE_LEAST * all)
        tare__text_format(out, "; other %s", tare__unit_percent(share, 1 - named / all));
}

/* The process with the lowest rank that is at least `from`, among those that have steps; NULL: none. */
static const tare__process_row *next_rank(const tare__analysis *analysis, uint64_t from)
{
    const tare__process_row *next = NULL;
    for (size_t i = 0; i < analysis->n_processes; i++) {
        const tare__process_row *row = &analysis->processes[i];
        if (row->has_rank && row->steps && row->rank >= from && (!next || row->rank < next->rank))
            next = row;
    }
    return next;
}

/* A dimmed line below the row. Frees the words. */
static void put_line(tare__page *page, tare__text *words, bool shown)
{
    if (shown && !words->failed) {
        tare__text_string(page->out, "  ");
        tare__page_say(page, TARE__PAGE_FAINT, 4, words->data);
    }
    tare__text_end(words, page->out);
}

/* "a step by rank: 0 1.20 ms, 1 1.31 ms": means over the steps of all names. */
static void put_ranks(tare__page *page, const tare__analysis *analysis)
{
    tare__text words = {0};
    size_t n = 0;
    const tare__process_row *row = next_rank(analysis, 0);
    for (; row; row = row->rank < UINT64_MAX ? next_rank(analysis, row->rank + 1) : NULL) {
        char mean[TARE__UNIT_BYTES];
        if (n++ == RANKS_SHOWN && !page->options->all) {
            tare__text_string(&words, ", …");
            break;
        }
        tare__text_format(&words, "%s%" PRIu64 " %s", n == 1 ? "a step by rank: " : ", ", row->rank,
                          tare__unit_time(mean, row->steps_ns / (double)row->steps));
    }
    put_line(page, &words, n > 1);
}

static void put_rates(tare__text *out, const tare__step_row *row)
{
    for (size_t i = 0; i < row->n_numbers && i < FEW; i++) {
        tare__text_string(out, i ? "; " : "");
        put_sum_and_rate(out, &row->numbers[i]);
    }
}

/* "40 steps of 2 ranks together; rates are the job's" */
static void put_job(tare__text *out, const tare__step_row *row)
{
    if (row->ranks > 1)
        tare__text_format(out, "%" PRIu64 " %s%s of %" PRIu64 " ranks together; rates are the job's", row->job_count,
                          row->name, row->job_count == 1 ? "" : "s", row->ranks);
}

/* A separate line for each detail. */
static void put_words(tare__page *page, const tare__step_row *row,
                      void (*say)(tare__text *out, const tare__step_row *row))
{
    tare__text words = {0};
    say(&words, row);
    put_line(page, &words, words.length > 0);
}

static void put_step(tare__page *page, const tare__analysis *analysis, const tare__step_row *row, bool in_words)
{
    bool grouped = row->group != TARE__NO_ROW && row->group < analysis->n_groups;
    char label[256];
    snprintf(label, sizeof label, "%s%s%s", row->name, grouped ? ", " : "",
             grouped ? analysis->groups[row->group].name : "");
    TARE__PAGE_ROW(page, 0, label, "", "cttttn", (double)row->count, row->total_ns, row->each.p50_ns, row->each.p95_ns,
                   row->each.max_ns, row->per_second);
    if (!in_words)
        return;
    if (page->options->all || row->count == 0 || row->unfinished > 0)
        put_words(page, row, put_interval);
    put_words(page, row, put_parts);
    put_words(page, row, put_extremes);
    put_words(page, row, put_rates);
    put_words(page, row, put_job);
}

/* Epochs are described in text only if there is nothing else, or with --all. */
static void put_rows(tare__page *page, const tare__analysis *analysis, const tare__step_row *rows, size_t n,
                     bool in_words)
{
    size_t shown = tare__page_rows(page, n, FEW / 2);
    for (size_t i = 0; i < shown; i++)
        put_step(page, analysis, &rows[i], page->options->all || (in_words && i == 0));
    tare__page_more(page, n - shown, "of these");
}

void tare__part_steps(tare__page *page, const tare__analysis *analysis)
{
    bool both = analysis->n_steps > 0 && analysis->n_epochs > 0;
    if (analysis->n_steps == 0 && analysis->n_epochs == 0)
        return;
    tare__page_title(page, both ? "Steps and epochs" : analysis->n_steps ? "Steps" : "Epochs",
                     "count|total|p50|p95|max|per s");
    put_rows(page, analysis, analysis->steps, analysis->n_steps, true);
    put_ranks(page, analysis);
    put_rows(page, analysis, analysis->epochs, analysis->n_epochs, !both);
}
