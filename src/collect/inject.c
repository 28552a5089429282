/* inject: finds the libraries that are loaded into a launched program, and names them in its environment.
 * One thread, before the launch. Must not know what they record. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "tare.h"

/* The variable by which an interface finds its collector. */
static const struct {
    const char *variable, *library;
} injected[] = {
    {"INTEL_LIBITTNOTIFY64", "libtare-itt.so"},
};

static bool there(const char *folder, const char *below, const char *library, char out[TARE__PATH_BYTES])
{
    int length = snprintf(out, TARE__PATH_BYTES, "%s/%s%s", folder, below, library);
    return length > 0 && length < TARE__PATH_BYTES && access(out, R_OK) == 0;
}

/* Beside the Python package's libtare.so first: a program that loads one copy of it records the short way. Then
 * beside this program, as built or as installed. */
static bool find(const char *library, char out[TARE__PATH_BYTES])
{
    char folder[TARE__PATH_BYTES];
    if (tare__python_hook(folder) && there(folder, "../", library, out))
        return true;
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return there(folder, "", library, out) || there(folder, "../lib/", library, out) ||
           there(folder, "../lib64/", library, out);
}

static bool is_ours(const char *path, const char *library)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, library) == 0;
}

int tare__inject_operators(tare__error *why)
{
    int status = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(injected); i++) {
        char path[TARE__PATH_BYTES];
        const char *before = getenv(injected[i].variable);
        if (before && *before && !is_ours(before, injected[i].library))
            status = tare__fail(why, TARE_E_BUSY, "%s is set to %.200s already and is left so: operators go there",
                                injected[i].variable, before);
        else if (!find(injected[i].library, path))
            status = tare__fail(why, TARE_E_SYSTEM, "%s is not beside this program: no operators", injected[i].library);
        else if (setenv(injected[i].variable, path, 1) != 0)
            status = tare__fail(why, TARE_E_MEMORY, "out of memory");
    }
    return status;
}
