/* trust: which files of this machine are taken for this user's or the system's own: programs that are started,
 * libraries that are loaded, settings that are heeded. Any thread; looks only.
 * Must not know what any of them are for. */
#define _GNU_SOURCE
#include "base.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Root's or ours, and nobody else may write to it. In a sticky folder others cannot replace what is not theirs. */
static const char *wrong_with(const struct stat *about, bool is_last)
{
    if (about->st_uid != 0 && about->st_uid != geteuid())
        return "belongs to another user";
    if ((about->st_mode & S_IWOTH) && !(S_ISDIR(about->st_mode) && (about->st_mode & S_ISVTX) && !is_last))
        return "can be written by others";
    return NULL;
}

const char *tare__trust_file(int fd)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return "cannot be examined";
    if (!S_ISREG(about.st_mode))
        return "is not a regular file";
    if ((about.st_mode & S_IWGRP) && about.st_uid != 0 && about.st_gid != getegid())
        return "can be written by another group";
    return wrong_with(&about, true);
}

bool tare__trust_path(const char *path, tare__error *error)
{
    char whole[PATH_MAX];
    struct stat about;
    if (!realpath(path, whole)) {
        tare__fail(error, -1, "%.300s cannot be found", path);
        return false;
    }
    for (bool is_last = true;; is_last = false) {
        const char *wrong = lstat(whole, &about) != 0 ? "cannot be examined" : wrong_with(&about, is_last);
        if (wrong) {
            tare__fail(error, -1, "%.300s is not used: %.300s %s", path, whole, wrong);
            return false;
        }
        char *slash = strrchr(whole, '/');
        if (!whole[1] || !slash)
            return true;
        slash[slash == whole] = '\0';
    }
}

bool tare__find_program(const char *name, char *out, size_t room)
{
    const char *list = getenv("PATH");
    for (; list && *list; list += *list == ':') {
        size_t length = strcspn(list, ":");
        int whole = list[0] == '/' ? snprintf(out, room, "%.*s/%s", (int)length, list, name) : -1;
        if (whole > 0 && (size_t)whole < room && access(out, X_OK) == 0)
            return true;
        list += length;
    }
    return false;
}

bool tare__in_current_folder(const char *library)
{
    char path[PATH_MAX];
    const char *list = getenv("LD_LIBRARY_PATH");
    while (list) {
        size_t length = strcspn(list, ":;");
        if (list[0] != '/' &&
            snprintf(path, sizeof path, "%.*s%s%s", (int)length, list, length ? "/" : "./", library) <
                (int)sizeof path &&
            access(path, F_OK) == 0)
            return true;
        list = list[length] ? list + length + 1 : NULL;
    }
    return false;
}
