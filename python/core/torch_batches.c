/* torch_batches: assigns the batches that loaders returned to steps. A loop may request batches ahead of those
 * that it trains on: a batch that is never trained on belongs to no step.
 * Attached to the interpreter, with its lock; of the one thread that trains.
 * Must not know how steps are found. */
#include "torch.h"

#include <string.h>

#define LOADERS_MAX 8u
#define BATCHES_MAX 256u /* held at once, of one loader; older ones are considered used */

static tare_site samples_site = {0, "samples", NULL, 0, TARE_KIND_NUMBER, 1, 0};

/* An iterator over a loader. Batches are used in the order in which they came. */
typedef struct source {
    const void *iterator; /* only compared; NULL: none */
    bool ended;           /* it is exhausted: the held batches will be used */
    double held[BATCHES_MAX];
    unsigned n_held;
    unsigned fetched;       /* in the open step */
    unsigned steps;         /* that have ended since its first batch */
    unsigned first_fetched; /* in the first of them */
    unsigned first_ahead;   /* … before anything was computed, except for one; or without a backward pass */
    unsigned ahead;         /* batches that are held when a step ends; known from the second step on */
    unsigned each;          /* batches that a step uses */
} source;

static source sources[LOADERS_MAX];

static void drop_oldest(source *from, unsigned n)
{
    from->n_held -= n;
    memmove(from->held, from->held + n, from->n_held * sizeof *from->held);
}

/* A new iterator, which may have the address of a freed one. Batches received in the open step still belong to it. */
static void begin_anew(source *of, const void *iterator)
{
    unsigned fetched = of->fetched;
    drop_oldest(of, of->n_held - fetched);
    *of = (source){.iterator = iterator, .n_held = fetched, .fetched = fetched};
}

/* Another loop begins: batches read ahead in loops that have ended were not used. */
static void drop_ended(void)
{
    for (source *at = sources; at < sources + LOADERS_MAX; at++)
        if (at->ended && !at->fetched)
            *at = (source){.iterator = NULL};
}

static source *source_of(const void *iterator, bool first)
{
    source *unused = NULL;
    for (source *at = sources; at < sources + LOADERS_MAX; at++) {
        if (at->iterator == iterator) {
            if (first)
                begin_anew(at, iterator);
            return at;
        }
        if (!at->fetched && (!unused || !at->iterator || (unused->iterator && at->steps > unused->steps)))
            unused = at;
    }
    if (unused)
        *unused = (source){.iterator = iterator};
    return unused;
}

void tare__torch_batch_came(const void *iterator, bool first, double samples)
{
    if (first)
        drop_ended();
    source *of = source_of(iterator, first);
    if (!of)
        return;
    if (of->n_held == BATCHES_MAX)
        drop_oldest(of, 1);
    of->held[of->n_held++] = samples;
    of->fetched += of->fetched < of->n_held;
}

void tare__torch_batches_ended(const void *iterator)
{
    for (source *at = sources; at < sources + LOADERS_MAX; at++)
        if (at->iterator == iterator)
            at->ended = true;
}

void tare__torch_batches_compute(unsigned backwards)
{
    for (source *at = sources; at < sources + LOADERS_MAX; at++)
        if (at->iterator && !at->steps && !at->first_ahead && at->fetched && !backwards)
            at->first_ahead = at->fetched - 1;
}

/* How many of the batches that are held the step has used. A loop that reads ahead fetches more in its first step
 * than in each later one, and does so before it computes; until the second step has ended, each backward pass is
 * assumed to use one. */
static unsigned used_by_step(source *of, unsigned backwards)
{
    if (of->ended && of->steps)
        return of->each < of->n_held ? of->each : of->n_held;
    if (!of->steps) {
        of->each = backwards && backwards < of->n_held ? backwards : of->n_held;
        of->first_fetched = of->fetched;
        of->first_ahead = of->n_held - of->each > of->first_ahead ? of->n_held - of->each : of->first_ahead;
        return of->each;
    }
    if (of->steps == 1) {
        unsigned more = of->first_fetched > of->fetched ? of->first_fetched - of->fetched : 0;
        of->ahead = more < of->first_ahead ? more : of->first_ahead;
    }
    of->each = of->fetched && (of->steps == 1 || of->fetched > of->each) ? of->fetched : of->each;
    return of->n_held > of->ahead ? of->n_held - of->ahead : 0;
}

static void tell(const double *samples, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (samples[i] > 0)
            tare_number(&samples_site, samples[i]);
}

void tare__torch_batches_used(unsigned backwards)
{
    for (source *at = sources; at < sources + LOADERS_MAX; at++) {
        if (!at->iterator)
            continue;
        unsigned used = used_by_step(at, backwards);
        tell(at->held, used);
        drop_oldest(at, used);
        at->fetched = 0;
        at->steps++;
        if (at->ended && !at->n_held)
            at->iterator = NULL;
    }
}

bool tare__torch_batches_held(unsigned backwards)
{
    for (const source *at = sources; at < sources + LOADERS_MAX; at++)
        if (at->iterator && at->ended && at->n_held > backwards)
            return true;
    return false;
}

void tare__torch_batches_unused(bool reported)
{
    for (source *at = sources; at < sources + LOADERS_MAX; at++) {
        at->n_held -= at->fetched;
        if (reported)
            tell(at->held + at->n_held, at->fetched);
        at->fetched = 0;
        if (!at->steps)
            at->iterator = NULL;
    }
}

void tare__torch_batches_forget(void)
{
    for (source *at = sources; at < sources + LOADERS_MAX; at++)
        at->iterator = NULL, at->n_held = at->fetched = 0;
}

void tare__torch_describe_fetch(PyObject *iterator, torch_fetch *fetch)
{
    Py_ssize_t yielded = tare__torch_number(iterator, "_num_yielded");
    fetch->first = yielded == 0;
    fetch->loader = tare__torch_held(iterator, "_index_sampler");
    PyErr_Clear();
    /* An iterable dataset's length may be wrong; a sampler's is reliable. */
    Py_ssize_t length =
        fetch->loader && tare__torch_number(iterator, "_dataset_kind") == 0 ? PyObject_Size(fetch->loader) : -1;
    PyErr_Clear();
    fetch->tells_length = length >= 0 && yielded >= 0;
    fetch->last = fetch->tells_length && yielded >= length;
}
