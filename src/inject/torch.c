/* torch: operators of a PyTorch that was loaded before this library: its ITT interface is then disabled permanently,
 * but the functions through which torch calls it can be replaced. Once per process, by the thread that requests
 * operators; torch's calls come on any thread. Must not know anything outside the target. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "inject.h"

/* torch::profiler::impl::ProfilerStubs as laid out by the Itanium C++ ABI: a pointer to the table of its virtual
 * functions. The caller has checked against torch's header that they are in this order. */
enum {
    MARK = 2,
    RANGE_PUSH = 3,
    RANGE_POP = 4,
    ENABLED = 5,
    SLOTS = 10,
    BEFORE = 2 /* offset to top, type */
};

typedef struct stubs {
    void *const *functions;
} stubs;

typedef const stubs *get_stubs(void);
typedef void set_stubs(stubs *);

static void *table[BEFORE + SLOTS];
static stubs ours;

static void mark(const stubs *self, const char *name)
{
    (void)self;
    if (name && tare__gate_now() != 0)
        tare_mark_name(name);
}

static void range_push(const stubs *self, const char *name)
{
    (void)self;
    name = name ? name : "(null)";
    tare__inject_push(&tare__inject_name_of(name, strlen(name))->as_operator);
}

static void range_pop(const stubs *self)
{
    (void)self;
    tare__inject_pop();
}

static bool enabled(const stubs *self)
{
    (void)self;
    return true;
}

static void *symbol_of(const char *name)
{
    void *library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    void *found = library ? dlsym(library, name) : NULL;
    if (library)
        dlclose(library);
    return found;
}

/* Returns 0, or TARE_E_SYSTEM if no torch with this interface is loaded. */
TARE_API int tare_inject_torch(void);
TARE_API int tare_inject_torch(void)
{
    if (ours.functions)
        return 0;
    get_stubs *get = (get_stubs *)symbol_of("_ZN5torch8profiler4impl8ittStubsEv");
    set_stubs *set =
        (set_stubs *)symbol_of("_ZN5torch8profiler4impl18registerITTMethodsEPNS1_13ProfilerStubsE");
    const stubs *foreign = get && set ? get() : NULL;
    if (!foreign || !foreign->functions)
        return TARE_E_SYSTEM;
    memcpy(table, foreign->functions - BEFORE, sizeof table);
    table[BEFORE + MARK] = (void *)mark;
    table[BEFORE + RANGE_PUSH] = (void *)range_push;
    table[BEFORE + RANGE_POP] = (void *)range_pop;
    table[BEFORE + ENABLED] = (void *)enabled;
    ours.functions = table + BEFORE;
    set(&ours);
    return 0;
}
