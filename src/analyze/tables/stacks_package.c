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

/* Behind the last such folder in the path; NULL: none, or nothing behind it. */
static const char *behind(const char *file, const char *folder)
{
    const char *found = NULL;
    for (const char *at = file; (at = strstr(at, folder)); at++)
        found = at + strlen(folder);
    return found && *found ? found : NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* …/lib/python3.12/json/decoder.py, …/lib64/python3.13t/json/decoder.py, …/lib/python312.zip/json/decoder.py:
 * json/decoder.py. NULL: not in such a folder. */
static const char *standard_library(const char *file)
{
    for (const char *at = file; (at = strstr(at, "/python3")); at++) {
        const char *end = at + strlen("/python3");
        while (is_digit(*end) || *end == '.')
            end++;
        bool version = is_digit(end[-1]), lib = (at - file >= 4 && memcmp(at - 4, "/lib", 4) == 0) ||
                                                (at - file >= 6 && memcmp(at - 6, "/lib64", 6) == 0);
        end += version && *end == 't'; /* free-threaded */
        if (strncmp(end, ".zip/", 5) == 0)
            end += 4;
        else if (strncmp(end, "zip/", 4) == 0 && !version)
            end += 3;
        else if (!lib || !version || *end != '/')
            continue;
        end += strncmp(end, "/lib-dynload/", 13) == 0 ? 13 : 1;
        if (*end)
            return end;
    }
    return NULL;
}

/* Tare's own code, where it is not installed: the hook, and what is in the package beside a build. A folder of the user
 * may have the same name, but not the same content. */
static const char *tare_itself(const char *file)
{
    static const char *const parts[] = {"_hook/", "integrations/", "lines/", "profiler/", "seeds/", "torch/"};
    static const char *const files[] = {"__init__.py", "__main__.py", "_check.py",  "_command.py",
                                        "_files.py",   "_parquet.py", "_report.py", "_summary.py",
                                        "_views.py",   "_wrap.py",    "config.py"};
    static const char package[] = "tare/";
    const char *hook = strstr(file, "/tare/_hook/sitecustomize.py"), *at = behind(file, "/python/tare/");
    bool is = false;
    for (size_t i = 0; at && i < TARE__COUNT_OF(parts) && !is; i++)
        is = strncmp(at, parts[i], strlen(parts[i])) == 0;
    for (size_t i = 0; at && i < TARE__COUNT_OF(files) && !is; i++)
        is = strcmp(at, files[i]) == 0;
    return is ? at - (sizeof package - 1) : hook ? hook + 1 : NULL;
}

const char *tare__module_path(const char *file, bool *standard)
{
    const char *found = behind(file, "/site-packages/");
    found = found ? found : behind(file, "/dist-packages/");
    const char *library = found ? NULL : standard_library(file);
    if (standard)
        *standard = library != NULL;
    return found ? found : library ? library : tare_itself(file);
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

/* "numpy.libs" are libraries of numpy. */
static sampled_origin of_module(const char *path, bool standard, const char **name, size_t *length)
{
    size_t n = component(path);
    *length = n > 5 && memcmp(path + n - 5, ".libs", 5) == 0 ? n - 5 : n;
    *name = path;
    return standard ? ORIGIN_STANDARD : ORIGIN_PACKAGE;
}

static sampled_origin of_python(const char *file, const char **name, size_t *length)
{
    bool standard;
    if (!*file)
        return ORIGIN_NONE;
    if (*file == '<')
        return without_file(file, name, length);
    const char *module = tare__module_path(file, &standard);
    return module ? of_module(module, standard, name, length) : ORIGIN_OWN;
}

/* A library outside of packages: its name is used only where no caller belongs to a package. */
static sampled_origin of_native(const char *file, const char **name, size_t *length)
{
    bool standard;
    const char *module = tare__module_path(file, &standard);
    if (module && (!standard || strstr(file, "/lib-dynload/"))) /* the compiled part of "json" is "_json" */
        return of_module(module + (standard && *module == '_'), standard, name, length);
    const char *base = tare__base_name(file), *so = strstr(base, ".so");
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
