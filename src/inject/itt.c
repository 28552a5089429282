/* itt: a collector for Intel's ITT interface, which PyTorch, oneDNN and others call: tasks become spans.
 * Any thread of the target; __itt_api_init is called once for each static copy of the interface in the process.
 * Must not know anything outside the target. */
#include <pthread.h>
#include <string.h>

#include "inject.h"

/* ---- the interface, as laid out by ittnotify's static part -------------------------------------------------- */
typedef struct itt_api {
    const char *name; /* NULL ends the list */
    void **function;
    void *initial, *null;
    int group;
} itt_api;

typedef struct itt_domain {
    volatile int flags; /* 0: the callers' macros skip every call */
    const char *name;
    void *wide_name;
    int extra1;
    void *extra2;
    struct itt_domain *next;
} itt_domain;

typedef struct itt_string {
    const char *text;
    void *wide_text;
    int extra1;
    void *extra2; /* ours: tare__inject_name */
    struct itt_string *next;
} itt_string;

typedef struct itt_id {
    unsigned long long d1, d2, d3;
} itt_id;

typedef struct itt_global {
    unsigned char magic[8];
    unsigned long version_major, version_minor, version_build;
    volatile long api_initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **library_path;
    itt_api *apis;
    struct itt_global *next;
    void *threads;
    itt_domain *domains;
    itt_string *strings;
} itt_global;

_Static_assert(sizeof(itt_string) <= sizeof(((tare__inject_name *)0)->own), "a handle fits beside its name");

/* ---- domains ---------------------------------------------------------------------------------------------- */
#define DOMAINS_MAX 64
#define OPERATORS   1 /* in extra1 */

static itt_domain domains[DOMAINS_MAX], surplus;

/* oneDNN has a task per primitive on every thread of its pool: more than the operators themselves, without new
 * information. */
static void judge(itt_domain *domain, const char *name)
{
    domain->flags = strncmp(name, "dnnl::", 6) != 0 && strcmp(name, "oneDNN") != 0;
    domain->extra1 = strcmp(name, "PyTorch") == 0 ? OPERATORS : 0;
}

/* A domain is identified by its name, whose address is the same for all; threads that race here write the same. */
static itt_domain *create_domain(const char *text)
{
    if (!text)
        return &surplus;
    const char *name = tare__inject_name_of(text, strlen(text))->as_span.name;
    for (size_t i = 0; i < DOMAINS_MAX; i++) {
        const char *found = __atomic_load_n(&domains[i].name, __ATOMIC_ACQUIRE);
        if (!found && __atomic_compare_exchange_n(&domains[i].name, &found, name, 0, __ATOMIC_ACQ_REL,
                                                  __ATOMIC_ACQUIRE))
            found = name;
        if (found == name) {
            judge(&domains[i], name);
            return &domains[i];
        }
    }
    return &surplus; /* its flags are 0: not recorded */
}

/* ---- strings, tasks --------------------------------------------------------------------------------------- */
static itt_string *create_string(const char *text)
{
    if (!text)
        text = "(null)";
    tare__inject_name *name = tare__inject_name_of(text, strlen(text));
    itt_string *handle = (itt_string *)(void *)name->own;
    if (__atomic_load_n(&handle->extra2, __ATOMIC_ACQUIRE) != name) { /* threads that race here write the same */
        handle->text = name->as_span.name;
        __atomic_store_n(&handle->extra2, name, __ATOMIC_RELEASE);
    }
    return handle;
}

static void begin_task(const itt_domain *domain, itt_id id, itt_id parent, itt_string *text)
{
    (void)id, (void)parent;
    tare__inject_name *name = text ? text->extra2 : NULL;
    if (!name)
        name = create_string(text ? text->text : NULL)->extra2;
    tare__inject_push(domain->extra1 == OPERATORS ? &name->as_operator : &name->as_span);
}

static void end_task(const itt_domain *domain)
{
    (void)domain;
    tare__inject_pop();
}

/* ---- entry point ------------------------------------------------------------------------------------------ */
static const struct {
    const char *name;
    void *function;
} implemented[] = {
    {"__itt_domain_create", (void *)create_domain},
    {"__itt_string_handle_create", (void *)create_string},
    {"__itt_task_begin", (void *)begin_task},
    {"__itt_task_end", (void *)end_task},
};

static void *function_of(const itt_api *api)
{
    for (size_t i = 0; i < sizeof implemented / sizeof *implemented; i++)
        if (strcmp(api->name, implemented[i].name) == 0)
            return implemented[i].function;
    return api->null;
}

/* Objects created before this library was loaded keep their address, and get the same content as new ones. */
static void adopt(itt_global *global)
{
    for (itt_domain *domain = global->domains; domain; domain = domain->next)
        if (domain->name)
            judge(domain, domain->name);
    for (itt_string *string = global->strings; string; string = string->next)
        if (string->text)
            string->extra2 = tare__inject_name_of(string->text, strlen(string->text));
}

TARE_API void __itt_api_init(itt_global *global, int groups);
TARE_API void __itt_api_init(itt_global *global, int groups)
{
    (void)groups;
    if (!global || !global->apis)
        return;
    adopt(global);
    for (const itt_api *api = global->apis; api->name; api++)
        if (api->function)
            *api->function = function_of(api);
}
