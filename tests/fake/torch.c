/* torch: looks like the part of libtorch_cpu.so through which operators are reported to ITT: an object with virtual
 * functions that can be replaced, and callers of it. Any thread.
 * Must not know who replaces it. */
#include <stdbool.h>
#include <stddef.h>

typedef struct stubs {
    void *const *functions;
} stubs;

enum { RECORD, ELAPSED, MARK, RANGE_PUSH, RANGE_POP, ENABLED, ON_EACH_DEVICE, SYNCHRONIZE, DESTROY, DELETE, SLOTS };

static int reached; /* by calls that nobody else has taken */

static void reach(void)
{
    __atomic_add_fetch(&reached, 1, __ATOMIC_RELAXED);
}

static bool is_off(const stubs *self)
{
    (void)self;
    return false;
}

/* As C++ lays it out: the offset to the top and the type come before what the object points to. */
static void *const table[2 + SLOTS] = {
    [2 + RECORD] = (void *)reach,      [2 + ELAPSED] = (void *)reach,        [2 + MARK] = (void *)reach,
    [2 + RANGE_PUSH] = (void *)reach,  [2 + RANGE_POP] = (void *)reach,      [2 + ENABLED] = (void *)is_off,
    [2 + ON_EACH_DEVICE] = (void *)reach, [2 + SYNCHRONIZE] = (void *)reach, [2 + DESTROY] = (void *)reach,
    [2 + DELETE] = (void *)reach,
};
static const stubs its_own = {table + 2};
static const stubs *current = &its_own;

const stubs *_ZN5torch8profiler4impl8ittStubsEv(void);
const stubs *_ZN5torch8profiler4impl8ittStubsEv(void)
{
    return current;
}

void _ZN5torch8profiler4impl18registerITTMethodsEPNS1_13ProfilerStubsE(stubs *other);
void _ZN5torch8profiler4impl18registerITTMethodsEPNS1_13ProfilerStubsE(stubs *other)
{
    current = other;
}

/* ---- what torch itself does with them ---------------------------------------------------------------------- */
void fake_push(const char *name);
void fake_push(const char *name)
{
    ((void (*)(const stubs *, const char *))current->functions[RANGE_PUSH])(current, name);
}

void fake_pop(void);
void fake_pop(void)
{
    ((void (*)(const stubs *))current->functions[RANGE_POP])(current);
}

void fake_mark(const char *name);
void fake_mark(const char *name)
{
    ((void (*)(const stubs *, const char *))current->functions[MARK])(current, name);
}

int fake_enabled(void);
int fake_enabled(void)
{
    return ((bool (*)(const stubs *))current->functions[ENABLED])(current);
}

int fake_reached(void);
int fake_reached(void)
{
    ((void (*)(const stubs *))current->functions[SYNCHRONIZE])(current);
    return reached;
}
