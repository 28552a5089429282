/* torch_rounds: tells by the optimizers that step when a round of a training loop is over.
 * Attached to the interpreter, with its lock; of the one thread that trains.
 * Must not know what a step is recorded as. */
#include "torch.h"

#define OPTIMIZERS_MAX 16u
#define SELDOM 8u   /* more steps than that of another between two of an optimizer: its own are no rounds */
#define PATIENCE 4u /* times as many steps as in the rounds before: then the one that closed them does so no more */

static struct {
    const void *stepped[OPTIMIZERS_MAX]; /* in this round */
    unsigned n_stepped;
    unsigned exist; /* number of optimizers that exist, or are known to step */
    bool any;       /* one has stepped, and may be one of which nobody told that it exists */
    /* Where one optimizer steps several times and then another once, the second closes the round. */
    const void *last, *before;
    unsigned run, run_before; /* how often they stepped in a row */
    const void *closer;
    unsigned cycle; /* steps of the other between two of the closer */
    const void *seldom; /* steps now and then, once */
} rounds;

void tare__torch_optimizers_exist(unsigned n)
{
    rounds.exist = n;
    rounds.any &= n > 0; /* the next loop may have none */
    rounds.closer = rounds.last = rounds.before = rounds.seldom = NULL;
}

void tare__torch_round_begins(void)
{
    rounds.n_stepped = 0;
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
    return !rounds.exist && !rounds.any;
}

/* Whether the optimizer has stepped in this round before. */
static bool again(const void *optimizer)
{
    for (unsigned i = 0; i < rounds.n_stepped; i++)
        if (rounds.stepped[i] == optimizer)
            return true;
    if (rounds.n_stepped < OPTIMIZERS_MAX)
        rounds.stepped[rounds.n_stepped++] = optimizer;
    return false;
}

static void follow(const void *optimizer)
{
    if (optimizer == rounds.last) {
        rounds.run++;
        return;
    }
    if (!rounds.closer && optimizer == rounds.before && rounds.run == 1 && rounds.run_before > SELDOM) {
        rounds.seldom = rounds.last;
    } else if (!rounds.closer && optimizer == rounds.before && rounds.run == 1 && rounds.run_before > 1) {
        rounds.closer = rounds.last;
        rounds.cycle = rounds.run_before;
    }
    rounds.before = rounds.last;
    rounds.run_before = rounds.run;
    rounds.last = optimizer;
    rounds.run = 1;
}

bool tare__torch_round_stepped(const void *optimizer, bool fed)
{
    rounds.any = true;
    if (!fed && optimizer == rounds.seldom && !rounds.n_stepped) {
        if (optimizer != rounds.last) { /* it belongs to the round that the other one closes next */
            follow(optimizer);
            return false;
        }
        rounds.seldom = NULL; /* it steps several times now */
    }
    bool repeated = again(optimizer);
    if (fed)
        return tare__torch_round_is_full();
    follow(optimizer);
    if (rounds.closer && (optimizer == rounds.closer ? rounds.run > 1 : rounds.run > PATIENCE * rounds.cycle))
        rounds.closer = NULL;
    if (rounds.closer)
        return optimizer == rounds.closer;
    if (repeated)
        rounds.exist = rounds.n_stepped; /* the others never will */
    return tare__torch_round_is_full();
}
