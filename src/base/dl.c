/* dl: optional libraries: opens one and fills a table of function pointers, each required or
 * optional. Any thread; the loader has its own lock. Not in libtare: it loads no libraries into the target.
 * Must not know what any library does. */
#define _GNU_SOURCE
#include "base/base.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "tare.h"

static void *slot_of(const void *slots, const tare__dl_symbol *symbol)
{
    void *found;
    memcpy(&found, (const char *)slots + symbol->slot, sizeof found);
    return found;
}

/* Whether this is the first line of its slot. */
static bool is_first(const tare__dl_symbol *symbols, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (symbols[j].slot == symbols[i].slot)
            return false;
    return true;
}

/* Function pointers are stored as the bytes that dlsym returns: POSIX guarantees that they are the same. */
static void fill(void *handle, const tare__dl_symbol *symbols, size_t n, void *slots)
{
    for (size_t i = 0; i < n; i++) {
        if (is_first(symbols, i))
            memset((char *)slots + symbols[i].slot, 0, sizeof(void *));
        if (slot_of(slots, &symbols[i]))
            continue;
        void *found = dlsym(handle, symbols[i].name);
        memcpy((char *)slots + symbols[i].slot, &found, sizeof found);
    }
}

static const char *missing_required(const tare__dl_symbol *symbols, size_t n, const void *slots)
{
    for (size_t i = 0; i < n; i++)
        if (symbols[i].required && !slot_of(slots, &symbols[i]))
            return symbols[i].name;
    return NULL;
}

static void find_path(tare__dl *dl, const char *name)
{
    struct link_map *map = NULL;
    bool known = dlinfo(dl->handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && map->l_name[0];
    snprintf(dl->path, sizeof dl->path, "%s", known ? map->l_name : name);
}

int tare__dl_open(tare__dl *dl, const char *name, const tare__dl_symbol *symbols, size_t n, void *slots,
                  tare__error *error)
{
    dl->path[0] = '\0';
    dl->handle = NULL;
    char path[PATH_MAX];
    int found = tare__library_find(name, path, error);
    if (found)
        return found;
    dl->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!dl->handle) {
        const char *why = dlerror();
        return tare__fail(error, TARE_E_SYSTEM, "%s", why ? why : name);
    }
    find_path(dl, name);
    fill(dl->handle, symbols, n, slots);
    const char *lacks = missing_required(symbols, n, slots);
    if (!lacks)
        return 0;
    int status = tare__fail(error, TARE_E_VERSION, "%s has no %s", dl->path, lacks);
    tare__dl_close(dl);
    return status;
}

void tare__dl_missing(const tare__dl_symbol *symbols, size_t n, const void *slots, tare__text *out)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (symbols[i].required || slot_of(slots, &symbols[i]) || !is_first(symbols, i))
            continue;
        tare__text_format(out, "%s%s", any ? ", " : "", symbols[i].name);
        any = true;
    }
}

void tare__dl_close(tare__dl *dl)
{
    if (dl->handle)
        dlclose(dl->handle);
    dl->handle = NULL;
}
