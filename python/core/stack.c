/* stack: a thread's open spans, so that blocks which end in another order than they began (generators) leave a
 * nested trace.
 * A stack belongs to its thread. Must not know what a span's owner is. */
#include "core.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct open_span {
    tare_site *site;
    PyObject *owner;
} open_span;

typedef struct stack {
    uint32_t depth, room;
    open_span open[];
} stack;

#define FIRST_ROOM 62u

static __thread stack *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    pthread_key_create(&at_thread_end, free);
}

static stack *grow(void)
{
    uint32_t room = mine ? mine->room * 2 + 2 : FIRST_ROOM;
    stack *larger = realloc(mine, sizeof *larger + room * sizeof *larger->open);
    if (!larger)
        return NULL;
    if (!mine)
        larger->depth = 0;
    larger->room = room;
    mine = larger;
    pthread_once(&once, make_key);
    pthread_setspecific(at_thread_end, larger);
    return larger;
}

void tare__py_stack_begin(tare_site *site, PyObject *owner)
{
    stack *at = mine;
    if (__builtin_expect(!at || at->depth == at->room, 0))
        at = grow();
    if (at) {
        Py_INCREF(owner);
        at->open[at->depth++] = (open_span){site, owner};
    }
    tare_begin(site);
}

/* Those above it are ended with it, innermost first, and begun again. */
static void end_below(stack *at, uint32_t index)
{
    open_span span = at->open[index];
    for (uint32_t i = at->depth; i > index; i--)
        tare_end(at->open[i - 1].site);
    at->depth--;
    for (uint32_t i = index; i < at->depth; i++) {
        at->open[i] = at->open[i + 1];
        tare_begin(at->open[i].site);
    }
    Py_DECREF(span.owner);
}

void tare__py_stack_end(tare_site *site)
{
    stack *at = mine;
    if (__builtin_expect(at && at->depth && at->open[at->depth - 1].site == site, 1)) {
        at->depth--;
        tare_end(site);
        Py_DECREF(at->open[at->depth].owner); /* the caller still has it */
        return;
    }
    for (uint32_t i = at ? at->depth : 0; i > 0; i--)
        if (at->open[i - 1].site == site) {
            end_below(at, i - 1);
            return;
        }
    tare_end(site); /* begun on another thread: counted as an end without its begin */
}
