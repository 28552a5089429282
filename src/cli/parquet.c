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
#include "tare.h"

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

int tare__cli_parquet(const char *folder, const char *trace, const char *rules, tare__error *error)
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
    const char *words[] = {python, "-I", "-c", code, folder, trace, rules, NULL};
    execv(python, (char *const *)(uintptr_t)words);
    return tare__fail(error, TARE_E_SYSTEM, "cannot run %s: %s", python, strerror(errno));
}
