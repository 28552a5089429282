/* training: summarizes spans and stack samples of a training loop: its phases, spans by name, lines of the program.
 * Owned by the thread that analyzes.
 * Must not know any rule. */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */
static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

bool tare__span_is_in(const tare__analysis *of, const tare__span_row *row, uint32_t kind)
{
    for (uint32_t at = row->parent; at != TARE__NO_ROW; at = of->spans[at].parent)
        if (of->spans[at].kind == kind)
            return true;
    return false;
}

#define SITES_MAX 128u /* as many as are recorded; the last one also has the time of all further ones */

static bool same_site(const tare__span_row *one, const tare__span_row *other)
{
    bool same_file = one->file && other->file ? strcmp(one->file, other->file) == 0 : one->file == other->file;
    return one->line == other->line && same_file && strcmp(one->name, other->name) == 0;
}

named tare__sum_named(const tare__analysis *of, const char *name, bool in_steps)
{
    named sum = {0};
    struct {
        const tare__span_row *row;
        double ns;
    } sites[SITES_MAX];
    size_t n_sites = 0;
    bool begins = name[strlen(name) - 1] == ' ';
    for (size_t i = 0; i < of->n_spans; i++) {
        const tare__span_row *row = &of->spans[i];
        if (!(begins ? starts_with(row->name, name) : strcmp(row->name, name) == 0) ||
            (in_steps && !tare__span_is_in(of, row, TARE_KIND_STEP)))
            continue;
        sum.total_ns += row->total_ns;
        sum.calls += (double)row->calls;
        size_t at = 0;
        while (at < n_sites && at < SITES_MAX - 1 && !same_site(sites[at].row, row))
            at++;
        if (at == n_sites) {
            sites[n_sites].row = row;
            sites[n_sites++].ns = 0;
        }
        sites[at].ns += row->total_ns;
    }
    for (size_t i = 0; i < n_sites; i++)
        if (!sum.most || sites[i].ns > sum.most_ns) {
            sum.most = sites[i].row;
            sum.most_ns = sites[i].ns;
        }
    return sum;
}

static double number_on(const tare__span_row *row, const char *name)
{
    for (size_t i = 0; i < row->n_numbers; i++)
        if (strcmp(row->numbers[i].name, name) == 0)
            return row->numbers[i].sum;
    return 0;
}

/* ---- phases ---------------------------------------------------------------------------------- */
static void add_phase(training *sum, const tare__span_row *row)
{
    if (strcmp(row->name, "data") == 0) {
        sum->data_ns += row->total_ns;
        sum->batches += (double)row->calls;
    } else if (strcmp(row->name, "forward") == 0)
        sum->forward_ns += row->total_ns;
    else if (strcmp(row->name, "backward") == 0) {
        sum->backward_ns += row->total_ns;
        sum->backwards += (double)row->calls;
    } else if (strcmp(row->name, "optimizer") == 0)
        sum->optimizer_ns += row->self_ns; /* excludes the phases inside a closure */
    else if (strcmp(row->name, "copy") == 0) {
        sum->copy_ns += row->total_ns;
        sum->copied += number_on(row, "bytes");
        sum->unpinned += number_on(row, "unpinned bytes");
    }
}

bool tare__training_of(const tare__analysis *of, training *sum)
{
    double between_ns = 0, between = 0;
    *sum = (training){0};
    if (!of->run.clock_known)
        return false;
    for (size_t i = 0; i < of->n_spans; i++) {
        const tare__span_row *row = &of->spans[i];
        bool inside = tare__span_is_in(of, row, TARE_KIND_STEP);
        if (row->kind == TARE_KIND_STEP && !inside) {
            sum->steps_ns += row->total_ns;
            sum->steps += (double)row->calls;
            sum->fastest_ns = row->each.min_ns;
        }
        if (row->kind != TARE_KIND_PHASE)
            continue;
        if (inside)
            add_phase(sum, row);
        else if (strcmp(row->name, "data") == 0) {
            bool in_epoch = tare__span_is_in(of, row, TARE_KIND_EPOCH);
            sum->aside_ns += row->total_ns;
            between_ns += in_epoch ? row->total_ns : 0;
            between += in_epoch ? (double)row->calls : 0;
        }
    }
    if (sum->data_ns == 0) { /* steps that the program marks after the loader; else loading is for an evaluation */
        sum->data_ns = between_ns;
        sum->batches = between;
        sum->steps_ns += between_ns;
        sum->aside_ns -= between_ns;
    }
    return sum->steps >= limit(LIMIT_FEWEST_STEPS) && sum->steps_ns > 0;
}

double tare__of_steady(const tare__analysis *rank, const training *sum, double ns)
{
    return fmin(ns / fmax(rank->run.elapsed_ns, sum->steps_ns), 1);
}

/* ---- lines ----------------------------------------------------------------------------------- */
static bool begins(const char *name, const char *start)
{
    return start && strncmp(name, start, strlen(start)) == 0;
}

/* What the package's hook told of the line whose samples are in this aggregate; NULL: it is the program's own, whatever
 * its name. Lines of what the program was doing then, or of all whose word for that begins with `or` (may be NULL). */
static const tare__fact_row *told_of(const tare__analysis *of, const tare__aggregate_row *row, const char *doing,
                                     const char *or)
{
    static const char key[] = "torch.line.";
    for (size_t i = 0; i < of->n_facts; i++) {
        const tare__fact_row *fact = &of->facts[i];
        const char *was = fact->key + sizeof key - 1;
        char name[700]; /* as torch_lines.c makes it */
        if (!begins(fact->key, key) || !(strcmp(was, doing) == 0 || begins(was, or)) || fact->line != row->line ||
            !fact->file || !fact->text || strcmp(fact->file, row->file) != 0)
            continue;
        snprintf(name, sizeof name, "%s @ %s:%u %s", was, tare__base_name(row->file), (unsigned)row->line, fact->text);
        if (strcmp(name, row->name) == 0)
            return fact;
    }
    return NULL;
}

/* The line with most of the samples; NULL: there are none. */
static const tare__fact_row *line_of(const tare__analysis *of, const char *doing, const char *or, double *share)
{
    const tare__fact_row *most = NULL;
    double all = 0, most_ns = 0;
    for (size_t i = 0; i < of->n_aggregates; i++) {
        const tare__aggregate_row *row = &of->aggregates[i];
        const tare__fact_row *told = row->file && row->total_ns > 0 ? told_of(of, row, doing, or) : NULL;
        all += told ? row->total_ns : 0;
        if (told && row->total_ns > most_ns) {
            most = told;
            most_ns = row->total_ns;
        }
    }
    *share = most ? most_ns / all : NAN;
    return most;
}

bool tare__has_line(const tare__analysis *of, const char *doing)
{
    return line_of(of, doing, NULL, &(double){0}) != NULL;
}

bool tare__say_line(findings *out, const tare__analysis *of, const tare__hot_question *question, const char *doing,
                    const char *or, const char *there)
{
    double share;
    if (tare__say_hot(out, of, question))
        return true;
    const tare__fact_row *line = line_of(of, doing, or, &share);
    if (line) {
        tare__say_location(out, line->file, line->line);
        tare__say_evidence(out, "%s of the stack samples%s are at %s:%u, in %s.", percent(share).text, there,
                           line->file, (unsigned)line->line, line->text);
    }
    return line != NULL;
}
