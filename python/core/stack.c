/* stack: a thread's open spans, so that blocks which end in a different order than they began (generators) still
 * produce a nested trace.
 * A stack belongs to its thread. Must not know what a span's owner is. */
#include "core.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct open_span {
    tare_site *site;
    PyObject *owner;
    const void *who; /* identifies it among the open spans of its name; NULL: not given */
    uint64_t call;   /* its number among those that were cut; 0: not cut so far */
    bool outlived;   /* a step or epoch that it began in has ended: a generator holds it open */
} open_span;

typedef struct stack {
    uint32_t depth, room;
    open_span open[];
} stack;

#define FIRST_ROOM 62u

/* docs/FORMAT.md: parts of one call have the same number; and a call may be swapped with another of its name. */
static tare_site continues_site = {0, "(continues)", NULL, 0, TARE_KIND_NUMBER, 1, 0};
static tare_site continued_site = {0, "(continued)", NULL, 0, TARE_KIND_NUMBER, 1, 0};
static tare_site swap_site = {0, "(swap)", NULL, 0, TARE_KIND_NUMBER, 1, 0};

static __thread stack *mine __attribute__((tls_model("initial-exec")));
static __thread uint64_t last_call __attribute__((tls_model("initial-exec")));
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
uint64_t tare__py_stack_watched_begun;

void tare__py_stack_begin_as(tare_site *site, PyObject *owner, const void *who)
{
    bool watching = __builtin_expect(tare__py_stack_watched.watching, 0) && site != tare__py_stack_watched.site;
    if (watching)
        tare__py_stack_watched.begins(site);
    tare__py_stack_watched_begun += site == tare__py_stack_watched.site;
    stack *at = mine;
    if (__builtin_expect(!at || at->depth == at->room, 0))
        at = grow();
    if (at) {
        Py_INCREF(owner);
        at->open[at->depth++] = (open_span){site, owner, who, 0, false};
    }
    tare_begin(site);
    if (watching)
        tare__py_stack_watched.begun();
}

void tare__py_stack_begin(tare_site *site, PyObject *owner)
{
    tare__py_stack_begin_as(site, owner, NULL);
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

bool tare__py_stack_is_unreported(const tare_site *site)
{
    const open_span *top = mine && mine->depth ? &mine->open[mine->depth - 1] : NULL;
    return top && top->site == site && !top->who;
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

/* A part of a call ends, and the call continues. */
static void end_part(open_span *span)
{
    if (is_watched(span->site)) {
        tare__py_stack_watched.cut(false);
    } else {
        if (!span->call)
            span->call = ++last_call;
        tare_number(&continues_site, (double)span->call);
    }
    tare_end(span->site);
}

static void begin_part(const open_span *span)
{
    tare_begin(span->site);
    if (is_watched(span->site))
        tare__py_stack_watched.cut(true);
    else
        tare_number(&continued_site, (double)span->call);
}

/* ---- steps and epochs -------------------------------------------------------------------------------------- */

/* Steps and epochs are not on the stack, having no owner: this is its depth when each began. */
typedef struct mark {
    tare_kind kind;
    uint32_t base;
} mark;

#define MARKS_MAX 8u /* open at once; beyond that, the outermost are dropped */
static __thread mark marks[MARKS_MAX] __attribute__((tls_model("initial-exec")));
static __thread uint32_t mark_count __attribute__((tls_model("initial-exec")));

static uint32_t depth_now(void)
{
    return mine ? mine->depth : 0;
}

static void push_mark(tare_kind kind, uint32_t base)
{
    if (mark_count == MARKS_MAX)
        memmove(marks, marks + 1, --mark_count * sizeof *marks);
    marks[mark_count++] = (mark){kind, base};
}

/* Spans that generators hold open lie inside of steps, never around them: they may end before the step does. Returns
 * how many are below them. */
static uint32_t lift_outlived(void)
{
    uint32_t depth = depth_now(), first = 0, below = 0, lifted = 0;
    while (first < depth && !mine->open[first].outlived)
        first++;
    open_span *held = first < depth ? malloc((depth - first) * sizeof *held) : NULL;
    if (!held)
        return depth;
    for (uint32_t i = depth; i > first; i--)
        end_part(&mine->open[i - 1]);
    for (uint32_t i = below = first; i < depth; i++)
        if (mine->open[i].outlived)
            held[lifted++] = mine->open[i];
        else
            mine->open[below++] = mine->open[i];
    memcpy(mine->open + below, held, lifted * sizeof *held);
    free(held);
    for (uint32_t i = first; i < below; i++)
        begin_part(&mine->open[i]);
    return below;
}

static void go_on_from(uint32_t base)
{
    for (uint32_t i = base; i < depth_now(); i++)
        begin_part(&mine->open[i]);
}

void tare__py_mark_begin(tare_kind kind, void (*begin)(uint64_t), uint64_t index)
{
    uint32_t base = tare__gate_now() != 0 ? lift_outlived() : depth_now();
    push_mark(kind, base);
    begin(index);
    go_on_from(base);
}

/* Spans that began inside of it and are still open, in generators, are ended with it and begun again. */
static uint32_t cut_to(tare_kind kind)
{
    uint32_t at = mark_count, base = depth_now();
    while (at > 0 && marks[at - 1].kind != kind)
        at--;
    if (at > 0) {
        mark_count = at - 1;
        if (marks[at - 1].base < base)
            base = marks[at - 1].base;
    }
    for (uint32_t i = depth_now(); i > base; i--) {
        mine->open[i - 1].outlived = true;
        end_part(&mine->open[i - 1]);
    }
    return base;
}

void tare__py_mark_next(tare_kind kind, void (*next)(uint64_t), uint64_t index)
{
    uint32_t base = cut_to(kind);
    push_mark(kind, base);
    next(index);
    go_on_from(base);
}

void tare__py_mark_end(tare_kind kind, void (*end)(void))
{
    uint32_t base = cut_to(kind);
    end();
    go_on_from(base);
}

/* A span from below a step or epoch was removed from the stack. */
static void lower_marks(uint32_t index)
{
    for (uint32_t i = 0; i < mark_count; i++)
        marks[i].base -= marks[i].base > index;
}

/* ---- ends of spans ----------------------------------------------------------------------------------------- */

/* Spans of one name differ in nothing but their times: the innermost of them ends, and is that call. */
static uint32_t place_of(const stack *at, uint32_t index)
{
    uint32_t place = at->depth - 1;
    const tare_site *site = at->open[index].site;
    if (is_watched(site))
        return index;
    while (place > index && at->open[place].site->word != site->word)
        place--;
    return place;
}

/* Spans above it are ended with it, innermost first, and begun again. */
static void end_below(stack *at, uint32_t index, tare__py_stack_last *last, void *context)
{
    open_span span = at->open[index];
    uint32_t place = place_of(at, index);
    for (uint32_t i = at->depth - 1; i > place; i--)
        end_part(&at->open[i]);
    if (place != index) {
        tare_number(&swap_site, (double)(place - index));
        at->open[index] = at->open[place];
    }
    if (last)
        last(context);
    tare_end(span.site);
    at->depth--;
    lower_marks(place);
    for (uint32_t i = place; i < at->depth; i++) {
        at->open[i] = at->open[i + 1];
        begin_part(&at->open[i]);
    }
    Py_DECREF(span.owner); /* the caller still has it */
}

/* The span that `who` identifies; without it, the innermost of its site. */
static bool find_open(const stack *at, const tare_site *site, const void *who, uint32_t *index)
{
    bool found = false, unreported = false;
    for (uint32_t i = at ? at->depth : 0; i > 0; i--) {
        const open_span *span = &at->open[i - 1];
        if (span->site != site)
            continue;
        if (who && span->who == who)
            return *index = i - 1, true;
        if (!found || (!unreported && !span->who))
            *index = i - 1;
        found = true;
        unreported |= !span->who;
    }
    return found;
}

static void end_site(tare_site *site, const void *who, tare__py_stack_last *last, void *context)
{
    stack *at = mine;
    uint32_t index;
    const open_span *top = at && at->depth ? &at->open[at->depth - 1] : NULL;
    if (__builtin_expect(top && top->site == site && top->who == who, 1)) {
        if (last)
            last(context);
        at->depth--;
        tare_end(site);
        Py_DECREF(top->owner); /* the caller still has it */
    } else if (find_open(at, site, who, &index)) {
        end_below(at, index, last, context);
    } else {
        if (last)
            last(context);
        tare_end(site); /* begun on another thread: counted as an end without its begin */
    }
}

void tare__py_stack_end_as(tare_site *site, const void *who, tare__py_stack_last *last, void *context)
{
    end_site(site, who, last, context);
    if (__builtin_expect(tare__py_stack_watched.watching, 0) && site != tare__py_stack_watched.site)
        tare__py_stack_watched.ended(site);
}

void tare__py_stack_end(tare_site *site)
{
    tare__py_stack_end_as(site, NULL, NULL, NULL);
}
