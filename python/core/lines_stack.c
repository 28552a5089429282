/* lines_stack: the watched functions that run on each thread, and the line each of them is at.
 * A stack belongs to its thread; others read it with the interpreter's lock. It has no separate lock, so a fork leaves
 * nothing locked: a thread that ends only marks its stack, and a thread with the interpreter's lock frees it.
 * Must not know why a function is watched, nor what reports its lines. */
#include "lines.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/base.h"
#include "readings.h"

/* ---- clock ------------------------------------------------------------------------------------------------ */

static bool has_counter;
static uint64_t from_ticks, from_ns;

/* A line may run for a few instructions only: reading the counter costs half as much as reading the clock. */
static bool counter_is_steady(void)
{
    return tare__cpu_has_steady_counter();
}

static inline uint64_t ticks_now(void)
{
    return __builtin_expect(has_counter, 1) ? tare__tsc() : tare__py_clock_ns();
}

uint64_t tare__py_lines_now(void)
{
    return ticks_now();
}

void tare__py_lines_clock_begin(void)
{
    if (from_ns)
        return;
    has_counter = counter_is_steady();
    from_ns = tare__py_clock_ns();
    from_ticks = ticks_now();
}

double tare__py_lines_tick_s(void)
{
    if (!has_counter)
        return 1e-9;
    uint64_t ns = tare__py_clock_ns() - from_ns, ticks = ticks_now() - from_ticks;
    return ticks ? (double)ns / (double)ticks * 1e-9 : 0;
}

/* ---- stacks ----------------------------------------------------------------------------------------------- */

typedef struct activation {
    tare__py_function *function;
    uint64_t since;
    int line;    /* 0: not known yet */
    bool paused; /* the same function is active further in: time is counted for the lines of that activation */
} activation;

typedef struct stack {
    struct stack *next;
    activation *open;
    uint32_t depth;
    size_t room;
    int ended; /* its thread has; set without the lock */
} stack;

static stack *all;
static __thread stack *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_ended(void *of)
{
    mine = NULL;
    __atomic_store_n(&((stack *)of)->ended, 1, __ATOMIC_RELEASE);
}

static void make_key(void)
{
    pthread_key_create(&at_thread_end, thread_ended);
}

static stack *join(void)
{
    stack *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    pthread_once(&once, make_key);
    pthread_setspecific(at_thread_end, made);
    made->next = all;
    all = mine = made;
    return made;
}

static void drop_stack(stack **link)
{
    stack *of = *link;
    for (uint32_t i = 0; i < of->depth; i++)
        of->open[i].function->open--;
    *link = of->next;
    free(of->open);
    free(of);
}

static void drop_ended(void)
{
    for (stack **link = &all; *link;) {
        if (__atomic_load_n(&(*link)->ended, __ATOMIC_ACQUIRE))
            drop_stack(link);
        else
            link = &(*link)->next;
    }
}

void tare__py_lines_forked(void)
{
    for (stack **link = &all; *link;) {
        if (*link != mine)
            drop_stack(link);
        else
            link = &(*link)->next;
    }
}

/* ---- time ------------------------------------------------------------------------------------------------- */

static inline void charge(const activation *of, uint64_t now)
{
    if (of->line == 0 || of->paused || now <= of->since)
        return;
    tare__py_line *line = tare__py_table_at(&of->function->table, of->line);
    if (line)
        line->ticks += now - of->since;
}

void tare__py_lines_settle(void)
{
    drop_ended();
    uint64_t now = ticks_now();
    for (stack *of = all; of; of = of->next)
        for (uint32_t i = 0; i < of->depth; i++) {
            charge(&of->open[i], now);
            of->open[i].since = now;
        }
}

void tare__py_lines_forget(tare__py_function *function)
{
    drop_ended();
    for (stack *of = all; of; of = of->next) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < of->depth; i++)
            if (of->open[i].function != function)
                of->open[kept++] = of->open[i];
        of->depth = kept;
    }
    function->open = 0;
}

/* ---- events ----------------------------------------------------------------------------------------------- */

/* The innermost activation of it below the given depth; NULL: none. */
static activation *innermost(stack *of, uint32_t below, const tare__py_function *function)
{
    for (uint32_t i = below; i > 0; i--)
        if (of->open[i - 1].function == function)
            return &of->open[i - 1];
    return NULL;
}

static activation *push(stack *of, tare__py_function *function, uint64_t now)
{
    if (!tare__array_fit(&of->open, &of->room, of->depth + 1, sizeof *of->open))
        return NULL;
    activation *outer = function->open ? innermost(of, of->depth, function) : NULL;
    if (outer) {
        charge(outer, now);
        outer->paused = true;
    }
    activation *made = &of->open[of->depth++];
    *made = (activation){.function = function};
    function->open++;
    return made;
}

static void pop(stack *of, uint64_t now)
{
    activation *top = &of->open[of->depth - 1];
    tare__py_function *function = top->function;
    charge(top, now);
    of->depth--;
    function->open--;
    activation *outer = function->open ? innermost(of, of->depth, function) : NULL;
    if (outer) {
        outer->paused = false;
        outer->since = ticks_now();
    }
}

/* Adds ends that were not reported (the stack was switched without the interpreter's knowledge). */
static activation *return_to(stack *of, const tare__py_function *function, uint64_t now)
{
    activation *found = function->open ? innermost(of, of->depth, function) : NULL;
    while (found && &of->open[of->depth - 1] != found)
        pop(of, now);
    return found;
}

void tare__py_lines_enter(tare__py_function *function, int line)
{
    uint64_t now = ticks_now();
    stack *of = mine ? mine : join();
    activation *top = of ? push(of, function, now) : NULL;
    if (!top)
        return;
    top->line = line;
    top->since = ticks_now();
}

void tare__py_lines_at(tare__py_function *function, int line)
{
    uint64_t now = ticks_now();
    stack *of = mine ? mine : join();
    if (!of)
        return;
    activation *top = of->depth ? &of->open[of->depth - 1] : NULL;
    if (__builtin_expect(!top || top->function != function, 0)) {
        top = return_to(of, function, now);
        if (!top)
            top = push(of, function, now); /* it ran before it was watched */
        if (!top)
            return;
    }
    charge(top, now);
    tare__py_line *counted = tare__py_table_at(&function->table, line);
    if (counted)
        counted->hits++;
    top->line = line;
    top->since = ticks_now();
}

void tare__py_lines_leave(tare__py_function *function)
{
    uint64_t now = ticks_now();
    stack *of = mine;
    if (!of || of->depth == 0)
        return;
    if (of->open[of->depth - 1].function == function || return_to(of, function, now))
        pop(of, now);
}

tare__py_function *tare__py_lines_running(PyObject *code)
{
    stack *of = mine;
    if (!of || of->depth == 0)
        return NULL;
    tare__py_function *function = of->open[of->depth - 1].function;
    return function->code == code ? function : NULL;
}
