/* inject: finds the libraries that are loaded into a launched program, and sets them in its environment.
 * One thread, before the launch. Must not know what they record. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "tare.h"

/* The variable through which an interface finds its library. */
static const struct {
    const char *variable, *library;
} injected[] = {
    {"INTEL_LIBITTNOTIFY64", "libtare-itt.so"},
    {"NVTX_INJECTION64_PATH", "libtare-nvtx.so"},
};

static bool there(const char *folder, const char *below, const char *library, char out[TARE__PATH_BYTES])
{
    int length = snprintf(out, TARE__PATH_BYTES, "%s/%s%s", folder, below, library);
    return length > 0 && length < TARE__PATH_BYTES && access(out, R_OK) == 0;
}

/* First next to libtare.so of the Python package, since a program that loads only one copy uses the fast path. Then
 * next to this program, as built or as installed. */
static bool find(const char *library, char out[TARE__PATH_BYTES])
{
    char folder[TARE__PATH_BYTES];
    if (tare__python_hook(folder) && there(folder, "../", library, out))
        return true;
    return tare__own_folder(folder) && (there(folder, "", library, out) || there(folder, "../lib/", library, out) ||
                                        there(folder, "../lib64/", library, out));
}

static bool set(const char *variable, const char *library, tare__error *why)
{
    char path[TARE__PATH_BYTES];
    const char *before = getenv(variable);
    if (before && *before && strcmp(tare__base_name(before), library) != 0)
        tare__fail(why, TARE_E_BUSY, "%s is already set to %.200s; operators are reported there",
                   variable, before);
    else if (!find(library, path))
        tare__fail(why, TARE_E_SYSTEM, "%s not found next to this program", library);
    else if (setenv(variable, path, 1) == 0)
        return true;
    return false;
}

bool tare__inject_operators(tare__error *why)
{
    bool any = false;
    for (size_t i = 0; i < TARE__COUNT_OF(injected); i++)
        any |= set(injected[i].variable, injected[i].library, why);
    return any;
}
