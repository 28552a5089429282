/* step_numbers: numbers inside steps and epochs: the sum for each step, and the duration of the steps that have them.
 * Owned by the thread that analyzes.
 * Must not know how rows are displayed. */
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define NAMES_MAX 64u /* of numbers, on one thread */
#define OPEN_MAX 64u  /* nested steps and epochs, on one thread */

typedef struct sum {
    uint64_t n;
    double sum;
} sum;

typedef struct named {
    uint32_t name;  /* canon */
    bool inspected; /* of the step whose shapes were recorded */
    sum all;        /* of the thread so far */
} named;

typedef struct open_step {
    uint32_t depth, name; /* name: canon */
    size_t n;             /* number of saved sums: names known when it began */
} open_step;

/* Sums are cumulative; the value of a step is the growth from its begin to its end. */
typedef struct open_numbers {
    named *rows;
    size_t n_rows, rows_room;
    sum *saved; /* of all open steps, one after the other */
    size_t n_saved, saved_room;
    open_step open[OPEN_MAX];
    size_t n_open;
} open_numbers;

void tare__analyze_free_open_numbers(open_numbers *numbers)
{
    if (!numbers)
        return;
    free(numbers->rows);
    free(numbers->saved);
    free(numbers);
}

/* ---- while reading ------------------------------------------------------------------------------- */
static void forget_above(open_numbers *numbers, uint32_t depth)
{
    while (numbers->n_open && numbers->open[numbers->n_open - 1].depth >= depth)
        numbers->n_saved -= numbers->open[--numbers->n_open].n;
}

int tare__analyze_step_begins(stream *stream, uint32_t depth, uint32_t name)
{
    if (!stream->open_numbers)
        stream->open_numbers = calloc(1, sizeof *stream->open_numbers);
    open_numbers *numbers = stream->open_numbers;
    if (!numbers)
        return TARE_E_MEMORY;
    forget_above(numbers, depth);
    if (numbers->n_open == OPEN_MAX)
        return 0;
    if (!tare__array_fit(&numbers->saved, &numbers->saved_room, numbers->n_saved + numbers->n_rows + 1,
                         sizeof *numbers->saved))
        return TARE_E_MEMORY;
    for (size_t i = 0; i < numbers->n_rows; i++)
        numbers->saved[numbers->n_saved++] = numbers->rows[i].all;
    numbers->open[numbers->n_open++] = (open_step){depth, name, numbers->n_rows};
    return 0;
}

int tare__analyze_step_number(work *work, stream *stream, uint32_t name, bool inspected, double value)
{
    open_numbers *numbers = stream->open_numbers;
    if (!numbers || !numbers->n_open)
        return 0; /* in no step */
    size_t at = 0;
    while (at < numbers->n_rows && (numbers->rows[at].name != name || numbers->rows[at].inspected != inspected))
        at++;
    if (at == numbers->n_rows) {
        if (at == NAMES_MAX) {
            work->nodes.numbers_refused++;
            return 0;
        }
        if (!tare__array_fit(&numbers->rows, &numbers->rows_room, at + 1, sizeof *numbers->rows))
            return TARE_E_MEMORY;
        numbers->rows[numbers->n_rows++] = (named){.name = name, .inspected = inspected};
    }
    numbers->rows[at].all.n++;
    numbers->rows[at].all.sum += value;
    return 0;
}

static step_number *number_of(steps *steps, const named *row)
{
    for (size_t i = 0; i < steps->n_numbers; i++)
        if (steps->numbers[i].name == row->name && steps->numbers[i].inspected == row->inspected)
            return &steps->numbers[i];
    if (!tare__array_fit(&steps->numbers, &steps->numbers_room, steps->n_numbers + 1, sizeof *steps->numbers))
        return NULL;
    steps->numbers[steps->n_numbers] = (step_number){.name = row->name, .inspected = row->inspected};
    return &steps->numbers[steps->n_numbers++];
}

/* The growth of a number since the step began. */
static sum grown(const open_numbers *numbers, const open_step *step, size_t row)
{
    sum all = numbers->rows[row].all, *before = numbers->saved + numbers->n_saved - step->n;
    return row < step->n ? (sum){all.n - before[row].n, all.sum - before[row].sum} : all;
}

/* An inspected step is slower, and the begin of a partial one is not known: rates exclude both. An epoch that
 * contains such steps is still complete. */
static int take(const work *work, open_numbers *numbers, const open_step *step, steps *steps, uint64_t duration)
{
    bool inspected = false, partial = false, epoch = work->names.rows[step->name].kind == TARE_KIND_EPOCH;
    for (size_t i = 0; i < numbers->n_rows; i++)
        if (grown(numbers, step, i).n) {
            inspected |= numbers->rows[i].inspected;
            partial |= numbers->rows[i].name == work->names.partial;
        }
    bool left_out = !epoch && (inspected || partial);
    for (size_t i = 0; i < numbers->n_rows; i++) {
        sum since = grown(numbers, step, i);
        if (!since.n || (numbers->rows[i].name == work->names.partial && work->names.partial != CANON_UNKNOWN))
            continue;
        step_number *number = number_of(steps, &numbers->rows[i]);
        if (!number)
            return TARE_E_MEMORY;
        number->n += since.n;
        number->sum += since.sum;
        number->left_out += left_out ? since.sum : 0;
    }
    steps->inspected += inspected;
    steps->partial += partial && !epoch;
    steps->left_out += left_out;
    steps->left_out_ticks += left_out ? duration : 0;
    return 0;
}

int tare__analyze_take_numbers(const work *work, stream *stream, uint32_t depth, steps *steps, uint64_t duration)
{
    open_numbers *numbers = stream->open_numbers;
    if (numbers)
        forget_above(numbers, depth + 1);
    const open_step *step = numbers && numbers->n_open ? &numbers->open[numbers->n_open - 1] : NULL;
    bool begun = step && step->depth == depth; /* else its begin is in a lost block */
    bool inner = false; /* nested in a step of the same name, which includes these numbers and this time */
    for (size_t i = 0; begun && i + 1 < numbers->n_open; i++)
        inner |= numbers->open[i].name == step->name;
    if (steps && !inner)
        steps->outermost += duration;
    if (!begun)
        return 0;
    int status = steps && !inner ? take(work, numbers, step, steps, duration) : 0;
    forget_above(numbers, depth);
    return status;
}

/* ---- the job: all threads and processes that run these steps ------------------------------------- */
step_use *tare__analyze_step_use(stream *stream, size_t steps)
{
    for (size_t i = 0; i < stream->n_uses; i++)
        if (stream->uses[i].steps == steps)
            return &stream->uses[i];
    if (!tare__array_fit(&stream->uses, &stream->uses_room, stream->n_uses + 1, sizeof *stream->uses))
        return NULL;
    stream->uses[stream->n_uses] = (step_use){.steps = steps, .first_begin = UINT64_MAX};
    return &stream->uses[stream->n_uses++];
}

typedef struct stretch {
    uint64_t from, to;
} stretch;

typedef struct rank_sum {
    uint64_t rank, count, whole;
} rank_sum;

TARE__ORDER(by_begin, stretch, TARE__RISING(from))

/* Number of threads that ran these steps concurrently, averaged over the time in which any did. */
static double at_once(stretch *stretches, size_t n)
{
    double all = 0, any = 0;
    uint64_t until = 0;
    qsort(stretches, n, sizeof *stretches, by_begin);
    for (size_t i = 0; i < n; i++) {
        uint64_t from = stretches[i].from > until ? stretches[i].from : until;
        all += (double)(stretches[i].to - stretches[i].from);
        any += stretches[i].to > from ? (double)(stretches[i].to - from) : 0;
        until = stretches[i].to > until ? stretches[i].to : until;
    }
    return any > 0 ? all / any : 1;
}

/* Jobs that ran one after the other have the same ranks. */
static void add_rank(rank_sum *ranks, size_t *n, uint64_t rank, const step_use *use)
{
    size_t at = 0;
    while (at < *n && ranks[at].rank != rank)
        at++;
    if (at == *n)
        ranks[(*n)++] = (rank_sum){rank, 0, 0};
    ranks[at].count += use->count;
    ranks[at].whole += use->count - use->left_out;
}

int tare__analyze_step_job(const work *work, size_t steps, step_job *job)
{
    size_t n = 0, n_ranks = 0;
    stretch *stretches = malloc((work->n_streams + 1) * sizeof *stretches);
    rank_sum *ranks = malloc((work->n_streams + 1) * sizeof *ranks);
    *job = (step_job){.at_once = 1};
    int status = stretches && ranks ? 0 : TARE_E_MEMORY;
    for (size_t i = 0; i <= work->n_streams && !status; i++) {
        const stream *stream = i < work->n_streams ? work->streams[i] : &work->stray;
        const step_use *use = NULL;
        for (size_t k = 0; k < stream->n_uses; k++)
            use = stream->uses[k].steps == steps ? &stream->uses[k] : use;
        if (!use || !use->count)
            continue;
        uint64_t rank;
        job->inspections += use->inspected;
        job->in_steps += use->in_steps;
        job->between += use->between;
        job->gaps += use->gaps;
        job->between_in.forward += use->between_in.forward;
        job->between_in.reported += use->between_in.reported;
        job->longest_gap += use->longest_gap; /* summed, since threads have gaps concurrently */
        stretches[n++] = (stretch){use->first_begin, use->last_end};
        if (tare__analyze_rank(work, stream->process, &rank))
            add_rank(ranks, &n_ranks, rank, use);
        else
            job->count += use->count, job->whole += use->count - use->left_out;
    }
    uint64_t most = 0, whole = 0;
    for (size_t i = 0; i < n_ranks; i++) {
        most = ranks[i].count > most ? ranks[i].count : most;
        whole = ranks[i].whole > whole ? ranks[i].whole : whole;
    }
    job->count += most;
    job->whole += whole;
    job->ranks = n_ranks;
    if (n)
        job->at_once = at_once(stretches, n);
    free(stretches);
    free(ranks);
    return status;
}
