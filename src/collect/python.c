/* python: the folder that makes a launched Python interpreter load the package at startup.
 * One thread. Must not know what the package does. */
#define _GNU_SOURCE
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

#define HOOK "tare/_hook"

/* Relative to the folder of this program: as installed by pip (in a prefix, by --target), and next to a build whose
 * tree has the extension. */
static const char *const places[] = {
    "../lib/python3*/site-packages/" HOOK,
    "../lib64/python3*/site-packages/" HOOK,
    "../lib/python3*/dist-packages/" HOOK,
    "../local/lib/python3*/dist-packages/" HOOK,
    "../" HOOK,
};
#define BUILT "../python/tare/_core*.so"
#define BESIDE_BUILD "../python/" HOOK

static bool holds_hook(const char *folder)
{
    char file[TARE__PATH_BYTES];
    int length = snprintf(file, sizeof file, "%s/sitecustomize.py", folder);
    /* A colon would split it into two entries of PYTHONPATH. */
    return length > 0 && (size_t)length < sizeof file && !strchr(folder, ':') && access(file, R_OK) == 0;
}

/* The first match of a pattern below `folder`; any will do, since the hook itself finds the one for its interpreter. */
static bool first_match(const char *folder, const char *pattern, char out[TARE__PATH_BYTES])
{
    char whole[TARE__PATH_BYTES];
    glob_t found = {0};
    int length = snprintf(whole, sizeof whole, "%s/%s", folder, pattern);
    bool any = length > 0 && (size_t)length < sizeof whole && glob(whole, 0, NULL, &found) == 0 &&
               found.gl_pathc > 0 && strlen(found.gl_pathv[0]) < TARE__PATH_BYTES;
    if (any)
        strcpy(out, found.gl_pathv[0]);
    globfree(&found);
    return any;
}

bool tare__own_folder(char out[TARE__PATH_BYTES])
{
    ssize_t length = readlink("/proc/self/exe", out, TARE__PATH_BYTES - 1);
    out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
    return slash;
}

bool tare__python_hook(char out[TARE__PATH_BYTES])
{
    const char *told = getenv("TARE_PYTHON_HOOK");
    if (told)
        return snprintf(out, TARE__PATH_BYTES, "%s", told) < TARE__PATH_BYTES && told[0] == '/' && holds_hook(out);
    char own[TARE__PATH_BYTES], found[TARE__PATH_BYTES];
    if (!tare__own_folder(own) || strpbrk(own, "*?[\\")) /* characters that glob would interpret */
        return false;
    bool any = false;
    for (size_t i = 0; i < TARE__COUNT_OF(places) && !any; i++)
        any = first_match(own, places[i], found);
    if (!any)
        any = first_match(own, BUILT, found) && first_match(own, BESIDE_BUILD, found);
    char *whole = any ? realpath(found, NULL) : NULL;
    any = whole && strlen(whole) < TARE__PATH_BYTES && holds_hook(whole);
    if (any)
        strcpy(out, whole);
    free(whole);
    return any;
}

char *tare__python_path(const char *hook)
{
    const char *before = getenv("PYTHONPATH");
    size_t length = strlen(hook);
    if (before && strncmp(before, hook, length) == 0 && (before[length] == ':' || before[length] == '\0'))
        return NULL;
    bool alone = !before || !before[0]; /* an empty entry would be the current directory */
    char *set;
    return asprintf(&set, "PYTHONPATH=%s%s%s", hook, alone ? "" : ":", alone ? "" : before) < 0 ? NULL : set;
}
