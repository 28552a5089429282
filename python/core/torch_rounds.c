/* torch_rounds: finds out when an iteration of a training loop without a loader is over, by the optimizers that step.
 * Attached to the interpreter, with its lock; of the one thread that trains.
 * Must not know what a step is recorded as. */
#include "torch.h"

#include <string.h>

#define OPTIMIZERS_MAX 16u
#define SELDOM 8u   /* without loops to compare: steps of another between two of an optimizer that make it a rare one */
#define PATIENCE 4u /* times as many steps as in earlier rounds: then the optimizer that closed them no longer does */
#define INNER_MAX 64u /* steps in a row of one that occasionally steps in an inner loop */
#define PLACES 4u   /* steps of an optimizer whose place in the program is noted */

/* Where an optimizer steps, compared with one that steps more often: the answers of tare/torch/_loops.py. */
typedef enum nesting {
    UNKNOWN = -1,
    SAME,  /* in the same loop, so in some iterations only (delayed policy updates) */
    OUTER, /* the other one steps in an inner loop (a GAN's critic) */
    INNER, /* in an inner loop of the other one's: occasionally, several times */
    APART, /* in loops that follow each other */
} nesting;

typedef struct optimizer {
    const void *address;
    bool stepped;    /* in this round */
    bool is_outer;   /* it was found to step outside of another one's loop */
    unsigned rare;   /* it steps in some iterations only, at most this many times in a row, and closes no round */
    bool moves;      /* it steps at several places */
    unsigned steps;
    unsigned seen[OPTIMIZERS_MAX]; /* steps of the others when it last stepped */
    unsigned places;               /* that were noted */
    PyObject *place;               /* the last of them; NULL: unknown */
} optimizer;

static struct {
    optimizer known[OPTIMIZERS_MAX];
    unsigned n_known;
    unsigned n_stepped; /* in this round */
    unsigned made;      /* number of optimizers that exist */
    unsigned exist;     /* … or are known to step */
    bool any;           /* one has stepped, and its creation may not have been reported */
    bool by_hand;       /* none ever steps, and parameters change: the program updates them itself */
    const optimizer *last;
    unsigned in_row;         /* steps of the last one */
    const optimizer *closer; /* steps outside of the loop in which another one does: it closes the round */
    unsigned cycle, run;     /* steps of the others between two of the closer; since the last one */
    PyObject *where, *compare, *changed; /* functions of tare/torch/_loops.py */
} rounds;

static void forget_known(void)
{
    for (unsigned i = 0; i < rounds.n_known; i++)
        Py_CLEAR(rounds.known[i].place);
    memset(rounds.known, 0, sizeof rounds.known);
    rounds.n_known = rounds.n_stepped = rounds.run = rounds.in_row = 0;
    rounds.closer = rounds.last = NULL;
}

void tare__torch_optimizers_exist(unsigned n)
{
    forget_known();
    rounds.exist = rounds.made = n;
    rounds.any &= n > 0; /* the next loop may have none */
    rounds.by_hand = false;
}

void tare__torch_round_begins(void)
{
    rounds.n_stepped = 0;
    for (unsigned i = 0; i < rounds.n_known; i++)
        rounds.known[i].stepped = false;
}

bool tare__torch_round_updated(void)
{
    return rounds.n_stepped;
}

bool tare__torch_round_is_full(void)
{
    return rounds.n_stepped && rounds.n_stepped >= rounds.exist;
}

bool tare__torch_rounds_without_optimizer(void)
{
    return !rounds.any && (!rounds.exist || rounds.by_hand);
}

/* The integer that a Python function returns; -1 if it returns none. */
static int ask(PyObject *function, PyObject *first, PyObject *second)
{
    torch_quiet quiet = tare__torch_quiet_begin();
    PyObject *answer = PyObject_CallFunctionObjArgs(function, first, second, NULL);
    long number = answer && PyLong_Check(answer) ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    tare__torch_quiet_end(quiet);
    return (int)number;
}

/* An optimizer that exists and never steps does not update a model that changes. */
void tare__torch_round_computes(void)
{
    if (!rounds.exist || rounds.any || rounds.by_hand || !rounds.changed)
        return;
    PyObject *model = tare__torch_model_in_training();
    rounds.by_hand = model && ask(rounds.changed, model, NULL) == 1;
    Py_XDECREF(model);
}

/* ---- where optimizers step ------------------------------------------------------------------------------- */
static void note_place(optimizer *one)
{
    if (rounds.made < 2 || !rounds.where || one->places >= PLACES)
        return;
    torch_quiet quiet = tare__torch_quiet_begin();
    PyObject *place = PyObject_CallFunctionObjArgs(rounds.where, one->place ? one->place : Py_None, NULL);
    one->moves |= place && one->place && place != one->place;
    one->places++;
    if (place)
        Py_XSETREF(one->place, place);
    tare__torch_quiet_end(quiet);
}

static optimizer *find(const void *address)
{
    for (unsigned i = 0; i < rounds.n_known; i++)
        if (rounds.known[i].address == address)
            return &rounds.known[i];
    if (rounds.n_known == OPTIMIZERS_MAX)
        return NULL;
    rounds.known[rounds.n_known] = (optimizer){.address = address};
    return &rounds.known[rounds.n_known++];
}

/* The one that stepped most often since this one last did. */
static const optimizer *more_often(const optimizer *now, unsigned *times)
{
    const optimizer *often = NULL;
    *times = 1;
    for (unsigned i = 0; i < rounds.n_known; i++) {
        unsigned between = rounds.known[i].steps - now->seen[i];
        if (&rounds.known[i] != now && between > *times) {
            often = &rounds.known[i];
            *times = between;
        }
    }
    return often;
}

static void judge(optimizer *now)
{
    unsigned times;
    const optimizer *often = more_often(now, &times);
    if (!often || now->rare || now->is_outer)
        return;
    nesting found = often->moves ? OUTER : UNKNOWN;
    if (found == UNKNOWN && often->place && now->place)
        found = (nesting)ask(rounds.compare, often->place, now->place);
    if (found == UNKNOWN)
        found = times <= SELDOM ? OUTER : SAME;
    if (found == SAME || found == INNER)
        now->rare = found == SAME ? 1 : INNER_MAX;
    if (found != OUTER)
        return;
    now->is_outer = true;
    rounds.closer = now;
    rounds.cycle = times;
    rounds.run = 0;
}

/* The optimizer that closed rounds no longer does: everything is determined again. */
static void forget_closer(void)
{
    rounds.closer = NULL;
    for (unsigned i = 0; i < rounds.n_known; i++)
        rounds.known[i].is_outer = false;
}

static void note_step(optimizer *now)
{
    now->steps++;
    for (unsigned i = 0; i < rounds.n_known; i++)
        now->seen[i] = rounds.known[i].steps;
    rounds.in_row = now == rounds.last ? rounds.in_row + 1 : 1;
    rounds.last = now;
}

/* Whether the round is over, of a loop without a loader. */
static bool closes(const optimizer *now, bool repeated)
{
    bool is_closer = now == rounds.closer;
    if (rounds.closer && (is_closer ? rounds.in_row > 1 : ++rounds.run > PATIENCE * rounds.cycle))
        forget_closer();
    if (rounds.closer) {
        if (is_closer)
            rounds.run = 0;
        return is_closer;
    }
    if (repeated)
        rounds.exist = rounds.n_stepped; /* the others never will */
    return tare__torch_round_is_full();
}

bool tare__torch_round_stepped(const void *address, bool fed)
{
    rounds.any = true;
    optimizer *now = find(address);
    if (!now)
        return true;
    if (!fed) {
        note_place(now);
        if (now != rounds.last)
            judge(now);
        note_step(now);
        if (now->rare && rounds.in_row <= now->rare)
            return false; /* it belongs to the iteration that another one closes next */
        now->rare = 0;
    }
    bool repeated = now->stepped;
    rounds.n_stepped += !repeated;
    now->stepped = true;
    return fed ? tare__torch_round_is_full() : closes(now, repeated);
}

/* ---- for Python ------------------------------------------------------------------------------------------ */
static PyObject *use(PyObject *module, PyObject *arguments)
{
    PyObject *where, *compare, *changed;
    if (!PyArg_ParseTuple(arguments, "OOO:torch_loops", &where, &compare, &changed))
        return NULL;
    Py_XSETREF(rounds.where, Py_NewRef(where));
    Py_XSETREF(rounds.compare, Py_NewRef(compare));
    Py_XSETREF(rounds.changed, Py_NewRef(changed));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"torch_loops", use, METH_VARARGS,
     "torch_loops(where, compare, changed)\n--\n\nHow places in the program are found and compared, and whether a "
     "model changes (tare/torch/_loops.py)."},
    {NULL, NULL, 0, NULL},
};

const tare__py_part tare__py_part_torch_rounds = {.functions = functions};
