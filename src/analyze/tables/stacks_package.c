/* stacks_package: which package a source file or library belongs to, by its path: the program itself, the standard
 * library, or an installed package.
 * Constant; any thread.
 * Must not know samples. */
#include <string.h>

#include "sampled.h"

static const char interpreter[] = "python";

/* Up to the end of the component, without the extension of a file. */
static size_t component(const char *path)
{
    size_t n = strcspn(path, "/"), dot = strcspn(path, ".");
    return path[n] ? n : dot > 0 && dot < n ? dot : n;
}

/* After the last such folder in the path; NULL: none. */
static const char *after(const char *path, const char *folder)
{
    const char *found = NULL;
    for (const char *at = path; (at = strstr(at, folder)); at++)
        found = at + strlen(folder);
    return found;
}

/* Installed packages: the top-level name; "numpy.libs" are libraries of numpy. */
static bool is_installed(const char *file, const char **name, size_t *length)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < TARE__COUNT_OF(folders); i++) {
        const char *at = after(file, folders[i]);
        if (!at || !*at)
            continue;
        size_t n = component(at);
        *length = n > 5 && memcmp(at + n - 5, ".libs", 5) == 0 ? n - 5 : n;
        *name = at;
        return true;
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* …/lib/python3.12/json/decoder.py, …/lib/python312.zip/json/decoder.py: json. NULL: not in such a folder. */
static const char *standard_library(const char *file)
{
    for (const char *at = file; (at = strstr(at, "/python3")); at++) {
        const char *end = at + strlen("/python3");
        while (is_digit(*end) || *end == '.')
            end++;
        if (strncmp(end, "zip/", 4) == 0 && end[-1] == '.')
            return end + 4;
        bool lib = (at - file >= 4 && memcmp(at - 4, "/lib", 4) == 0) ||
                   (at - file >= 6 && memcmp(at - 6, "/lib64", 6) == 0);
        if (lib && *end == '/' && is_digit(end[-1]))
            return strncmp(end, "/lib-dynload/", 13) == 0 ? end + 13 : end + 1;
    }
    return NULL;
}

/* Code without a file: "<frozen importlib._bootstrap>" is part of the standard library; "<string>" and the cells of a
 * notebook belong to the program. */
static sampled_origin without_file(const char *file, const char **name, size_t *length)
{
    static const char frozen[] = "<frozen ", numpy[] = "<__array_function__ ";
    if (strncmp(file, frozen, sizeof frozen - 1) == 0) {
        *name = file + sizeof frozen - 1;
        *length = strcspn(*name, ".>");
        return ORIGIN_STANDARD;
    }
    if (strncmp(file, numpy, sizeof numpy - 1) == 0) {
        *name = "numpy";
        *length = 5;
        return ORIGIN_PACKAGE;
    }
    return ORIGIN_OWN;
}

/* Tare's own hooks, where it is not installed. */
static bool is_tare(const char *file)
{
    return strstr(file, "/tare/_hook/") || strstr(file, "/python/tare/");
}

static sampled_origin of_python(const char *file, const char **name, size_t *length)
{
    if (!*file)
        return ORIGIN_NONE;
    if (*file == '<')
        return without_file(file, name, length);
    if (is_installed(file, name, length))
        return ORIGIN_PACKAGE;
    const char *module = standard_library(file);
    if (module && *module) {
        *name = module;
        *length = component(module);
        return ORIGIN_STANDARD;
    }
    if (is_tare(file)) {
        *name = "tare";
        *length = 4;
        return ORIGIN_PACKAGE;
    }
    return ORIGIN_OWN;
}

/* A library outside of packages: its name is used only where no caller belongs to a package. */
static sampled_origin of_native(const char *file, const char **name, size_t *length)
{
    if (is_installed(file, name, length))
        return ORIGIN_PACKAGE;
    const char *module = strstr(file, "/lib-dynload/") ? standard_library(file) : NULL;
    if (module && *module == '_') /* the part of "json" that is compiled is in "_json" */
        module++;
    if (module && *module) {
        *name = module;
        *length = component(module);
        return ORIGIN_STANDARD;
    }
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file, *so = strstr(base, ".so");
    *name = base;
    *length = so && so > base ? (size_t)(so - base) : strlen(base);
    if (strncmp(base, interpreter, sizeof interpreter - 1) == 0 || strncmp(base, "libpython", 9) == 0) {
        *name = interpreter;
        *length = sizeof interpreter - 1;
    }
    return *length ? ORIGIN_NATIVE : ORIGIN_NONE;
}

sampled_origin tare__analyze_package(uint32_t kind, const char *file, const char **name, size_t *length)
{
    *name = "";
    *length = 0;
    switch (kind) {
    case TARE__FRAME_PYTHON: return of_python(file, name, length);
    case TARE__FRAME_NATIVE: return of_native(file, name, length);
    case TARE__FRAME_NOTE: return ORIGIN_NOTE;
    default: return ORIGIN_NONE;
    }
}
