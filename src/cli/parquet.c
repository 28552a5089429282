/* parquet: `tare report --parquet`: executes the Python package, since PyArrow writes the files.
 * One thread.
 * Must not know tables. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* The interpreter of the environment in which this command is installed, else the first one on PATH. */
static bool find_python(char *out, size_t room)
{
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash && snprintf(out, room, "%.*s/python3", (int)(slash - own), own) < (int)room && access(out, X_OK) == 0)
        return true;
    return tare__find_program("python3", out, room);
}

/* "within=data", for an option that was given. False: too long. */
static bool add_word(const char **words, char *room, size_t size, const char *name, const char *value)
{
    size_t n = 0;
    if (!value)
        return true;
    while (words[n])
        n++;
    words[n] = room;
    return (size_t)snprintf(room, size, "%s=%s", name, value) < size;
}

int tare__cli_parquet(const char *folder, const char *trace, const char *rules, const tare__stack_filter *filter,
                      tare__error *error)
{
    static const char code[] = "import sys\n"
        "try:\n"
        "    import tare._parquet as parquet\n"
        "except ImportError as missing:\n"
        "    sys.exit(f'tare report: --parquet needs the Python package tare with PyArrow, in the environment of '\n"
        "             f'{sys.executable}: {missing}')\n"
        "sys.exit(parquet.main(sys.argv[1:]))\n";
    char python[PATH_MAX];
    if (!find_python(python, sizeof python))
        return tare__fail(error, TARE_E_SYSTEM,
                          "--parquet needs the Python package tare with PyArrow; there is no python3 on PATH");
    /* -I: nothing is imported from the current directory or because of environment variables. */
    const char *words[13] = {python, "-I", "-c", code, folder, trace};
    char pid[24], room[6][PATH_MAX];
    snprintf(pid, sizeof pid, "%lld", (long long)filter->pid);
    const char *const options[][2] = {
        {"rules", rules}, {"within", filter->within}, {"phase", filter->phase}, {"thread", filter->thread},
        {"process", filter->pid ? pid : NULL}, {"gpu_idle", filter->gpu_idle ? "1" : NULL}};
    for (size_t i = 0; i < TARE__COUNT_OF(options); i++)
        if (!add_word(words, room[i], sizeof room[i], options[i][0], options[i][1]))
            return tare__fail(error, TARE_E_USAGE, "--%s: '%.64s...' is too long", options[i][0], options[i][1]);
    execv(python, (char *const *)(uintptr_t)words);
    return tare__fail(error, TARE_E_SYSTEM, "cannot run %s: %s", python, strerror(errno));
}
