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

tare__py_stack_watcher tare__py_stack_watched;

void tare__py_stack_begin(tare_site *site, PyObject *owner)
{
    bool watching = __builtin_expect(tare__py_stack_watched.watching, 0) && site != tare__py_stack_watched.site;
    if (watching)
        tare__py_stack_watched.begins(site);
    stack *at = mine;
    if (__builtin_expect(!at || at->depth == at->room, 0))
        at = grow();
    if (at) {
        Py_INCREF(owner);
        at->open[at->depth++] = (open_span){site, owner};
    }
    tare_begin(site);
    if (watching)
        tare__py_stack_watched.begun();
}

tare_site *tare__py_stack_top(void)
{
    return mine && mine->depth ? mine->open[mine->depth - 1].site : NULL;
}

bool tare__py_stack_has(const tare_site *site)
{
    for (uint32_t i = mine ? mine->depth : 0; i > 0; i--)
        if (mine->open[i - 1].site == site)
            return true;
    return false;
}

tare_site *tare__py_stack_above(const tare_site *site)
{
    for (uint32_t i = mine && mine->depth ? mine->depth - 1 : 0; i > 0; i--)
        if (mine->open[i - 1].site == site)
            return mine->open[i].site;
    return NULL;
}

static bool is_watched(const tare_site *site)
{
    return site == tare__py_stack_watched.site && tare__py_stack_watched.cut;
}

/* Those above it are ended with it, innermost first, and begun again. */
static void end_below(stack *at, uint32_t index)
{
    open_span span = at->open[index];
    for (uint32_t i = at->depth; i > index; i--) {
        if (i - 1 > index && is_watched(at->open[i - 1].site))
            tare__py_stack_watched.cut(false);
        tare_end(at->open[i - 1].site);
    }
    at->depth--;
    for (uint32_t i = index; i < at->depth; i++) {
        at->open[i] = at->open[i + 1];
        tare_begin(at->open[i].site);
        if (is_watched(at->open[i].site))
            tare__py_stack_watched.cut(true);
    }
    Py_DECREF(span.owner);
}

static void end_site(tare_site *site)
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

void tare__py_stack_end(tare_site *site)
{
    end_site(site);
    if (__builtin_expect(tare__py_stack_watched.watching, 0) && site != tare__py_stack_watched.site)
        tare__py_stack_watched.ended(site);
}
