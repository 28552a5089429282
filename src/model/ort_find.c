/* ort_find: finds ONNX Runtime's library on this machine: named by the user, in the wheel of a Python, or in the
 * loader's search path. Any thread; python3 is run in a separate process, and only if nothing else was found.
 * Must not know what the library does. */
#define _GNU_SOURCE
#include "ort.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tare.h"

extern char **environ;

/* The first file that matches a pattern. */
static bool find_one(const char *folder, const char *pattern, tare__text *path)
{
    tare__text whole = {0};
    glob_t found;
    tare__text_format(&whole, "%s/%s", folder, pattern);
    bool any = !whole.failed && glob(whole.data, 0, NULL, &found) == 0;
    tare__text_free(&whole);
    if (!any)
        return false;
    tare__text_string(path, found.gl_pathv[0]);
    globfree(&found);
    return true;
}

static bool find_in(const char *folder, tare__text *path)
{
    static const char *const patterns[] = {"libonnxruntime.so.1", "libonnxruntime.so.1.*", "libonnxruntime.so",
                                           "capi/libonnxruntime.so.1.*", "onnxruntime/capi/libonnxruntime.so.1.*",
                                           "lib/libonnxruntime.so.1.*", "lib/libonnxruntime.so"};
    for (size_t i = 0; i < TARE__COUNT_OF(patterns); i++)
        if (find_one(folder, patterns[i], path))
            return true;
    return false;
}

static int find_named(const char *name, const char *said, tare__text *path, tare__error *error)
{
    struct stat info;
    if (stat(name, &info) != 0) {
        if (!strchr(name, '/')) { /* a name for the loader */
            tare__text_string(path, name);
            return 0;
        }
        return tare__fail(error, TARE_E_INPUT, "%s: '%.300s': %s", said, name, strerror(errno));
    }
    if (S_ISDIR(info.st_mode))
        return find_in(name, path) ? 0
                                   : tare__fail(error, TARE_E_INPUT, "%s: no libonnxruntime.so in '%.300s'",
                                                said, name);
    if (!strchr(name, '/'))
        tare__text_string(path, "./");
    tare__text_string(path, name);
    return 0;
}

/* The first line of a command's output; false: it failed or printed nothing. */
static bool first_line(char *const *command, char *out, size_t room)
{
    int ends[2];
    pid_t pid;
    size_t at = 0;
    ssize_t got;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    char program[4096];
    int failure = tare__find_program(command[0], program, sizeof program)
                      ? posix_spawn(&pid, program, &actions, NULL, command, environ)
                      : ENOENT;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    while (!failure && at + 1 < room &&
           ((got = read(ends[0], out + at, room - 1 - at)) > 0 || (got < 0 && errno == EINTR)))
        at += got > 0 ? (size_t)got : 0;
    close(ends[0]);
    out[at] = '\0';
    int status = 1;
    while (!failure && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    out[strcspn(out, "\n")] = '\0';
    return !failure && status == 0 && out[0];
}

/* Without importing it. */
static bool find_by_python(tare__text *path)
{
    static char *const command[] = {"python3", "-I", "-c", /* neither the current folder nor PYTHONPATH */
                                    "import importlib.util, os\n"
                                    "spec = importlib.util.find_spec('onnxruntime')\n"
                                    "print(os.path.dirname(spec.origin))",
                                    NULL};
    char folder[4096];
    return first_line(command, folder, sizeof folder) && find_in(folder, path);
}

int tare__runner_find(const char *requested, tare__text *path, tare__error *error)
{
    const char *named = getenv("TARE_ONNXRUNTIME"), *active = getenv("VIRTUAL_ENV");
    if (requested)
        return find_named(requested, "--runtime", path, error);
    if (named && *named)
        return find_named(named, "TARE_ONNXRUNTIME", path, error);
    bool found = active && active[0] == '/' &&
                 find_one(active, "lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.1.*", path);
    if (!found)
        found = find_by_python(path);
    if (found && !path->failed) {
        char real[PATH_MAX]; /* the file that was checked is the one that is loaded */
        if (!realpath(path->data, real) || !tare__trust_path(real, error))
            return TARE_E_PERMISSION;
        path->length = 0;
        tare__text_string(path, real);
    }
    if (!found)
        tare__text_string(path, "libonnxruntime.so.1"); /* the loader may find it */
    return path->failed ? tare__no_memory(error) : 0;
}
