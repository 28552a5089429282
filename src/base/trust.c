/* trust: which files are trusted as this user's or the system's own: programs that are started,
 * libraries that are loaded, settings that are used. Any thread; changes nothing.
 * Must not know what any of them are for. */
#define _GNU_SOURCE
#include "base/base.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tare.h"

/* A group with this user as its only member: many systems create one per user, with the user's name. */
static bool is_private(gid_t gid)
{
    char of_user[4096], of_group[4096];
    struct passwd user, *is_user = NULL;
    struct group group, *is_group = NULL;
    if (getpwuid_r(geteuid(), &user, of_user, sizeof of_user, &is_user) != 0 || !is_user || user.pw_gid != gid ||
        getgrgid_r(gid, &group, of_group, sizeof of_group, &is_group) != 0 || !is_group ||
        strcmp(user.pw_name, group.gr_name) != 0)
        return false;
    for (char **member = group.gr_mem; member && *member; member++)
        if (strcmp(*member, user.pw_name) != 0)
            return false;
    return true;
}

/* Owned by root or this user, and writable by no one else. In a sticky directory other users cannot replace files
 * that they do not own. */
static const char *wrong_with(const struct stat *about, bool is_last)
{
    if (about->st_uid != 0 && about->st_uid != geteuid())
        return "belongs to another user";
    if (S_ISDIR(about->st_mode) && (about->st_mode & S_ISVTX) && !is_last)
        return NULL;
    if (about->st_mode & S_IWOTH)
        return "is writable by others";
    if ((about->st_mode & S_IWGRP) && about->st_gid != 0 && !is_private(about->st_gid))
        return "is writable by another group";
    return NULL;
}

const char *tare__trust_file(int fd)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return "cannot be examined";
    if (!S_ISREG(about.st_mode))
        return "is not a regular file";
    return wrong_with(&about, true);
}

bool tare__trust_real(const char *path, char real[PATH_MAX], tare__error *error)
{
    char whole[PATH_MAX];
    struct stat about;
    if (!realpath(path, real)) {
        tare__fail(error, -1, "%.300s cannot be found", path);
        return false;
    }
    memcpy(whole, real, PATH_MAX);
    for (bool is_last = true;; is_last = false) {
        const char *wrong = lstat(whole, &about) != 0 ? "cannot be examined" : wrong_with(&about, is_last);
        if (wrong) {
            tare__fail(error, -1, "ignoring %.300s: %.300s %s", path, whole, wrong);
            return false;
        }
        char *slash = strrchr(whole, '/');
        if (!whole[1] || !slash)
            return true;
        slash[slash == whole] = '\0';
    }
}

bool tare__trust_path(const char *path, tare__error *error)
{
    char real[PATH_MAX];
    return tare__trust_real(path, real, error);
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

/* Whether the loader would load a library of this name from the current directory, because LD_LIBRARY_PATH has an
 * empty or relative entry. */
static bool in_current_folder(const char *library)
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

/* Checks a library of this name in a directory of LD_LIBRARY_PATH, and in subdirectories from which the loader takes
 * variants for this processor. 0; else one of them must not be loaded. */
static int find_in(const char *folder, const char *name, int depth, char real[PATH_MAX], bool *variants,
                   tare__error *error)
{
    static const char *const below[] = {"glibc-hwcaps", "x86-64-v2", "x86-64-v3", "x86-64-v4", "power9", "power10",
                                        "z13",          "z14",       "z15",       "z16",       "tls",    "haswell",
                                        "xeon_phi",     "avx512_1",  "x86_64",    "aarch64",   "atomics"};
    char path[PATH_MAX], found[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && access(path, F_OK) == 0) {
        if (folder[0] != '/' || in_current_folder(name))
            return tare__fail(error, TARE_E_PERMISSION,
                              "%s in the current directory is not loaded: LD_LIBRARY_PATH has an empty or relative "
                              "entry",
                              name);
        if (!tare__trust_real(path, found, error))
            return TARE_E_PERMISSION;
        *variants = *variants || depth > 0;
        if (depth == 0)
            memcpy(real, found, PATH_MAX);
    }
    for (size_t i = 0; depth < 4 && i < TARE__COUNT_OF(below); i++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, below[i]) >= (int)sizeof path || access(path, F_OK) != 0)
            continue;
        int status = find_in(path, name, depth + 1, real, variants, error);
        if (status)
            return status;
    }
    return 0;
}

/* For the loader's architecture; like the loader, skips others (such as 32-bit). */
static bool is_ours(const char *path)
{
    unsigned char head[5] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool whole = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head;
    if (fd >= 0)
        close(fd);
    return whole && memcmp(head, "\177ELF", 4) == 0 && head[4] == (sizeof(void *) == 8 ? 2 : 1);
}

int tare__library_find(const char *name, char out[PATH_MAX], tare__error *error)
{
    const char *list = strchr(name, '/') ? NULL : getenv("LD_LIBRARY_PATH");
    bool variants = false, found = false;
    if (snprintf(out, PATH_MAX, "%s", name) >= PATH_MAX)
        return tare__fail(error, TARE_E_INPUT, "the name of a library is too long");
    struct stat about;
    const char *is = strchr(name, '/') && stat(name, &about) == 0 ? tare__not_a_file(about.st_mode) : NULL;
    if (is) /* the loader would block until there is a writer */
        return tare__fail(error, TARE_E_INPUT, "%.300s is %s, not a library", name, is);
    while (list && *list) { /* an empty variable counts as unset */
        char folder[PATH_MAX], real[PATH_MAX] = "";
        size_t length = strcspn(list, ":;");
        int status = 0;
        if (snprintf(folder, sizeof folder, "%.*s", length ? (int)length : 1, length ? list : ".") < (int)sizeof folder)
            status = find_in(folder, name, 0, real, &variants, error);
        if (status)
            return status;
        if (!found && real[0] && is_ours(real)) {
            found = true;
            snprintf(out, PATH_MAX, "%s", real);
        }
        if (found && !variants)
            return 0; /* the loader ignores the rest too */
        if (!list[length])
            break;
        list += length + 1;
        if (!*list) { /* "a:" ends with an empty entry */
            status = find_in(".", name, 0, real, &variants, error);
            if (status)
                return status;
        }
    }
    if (variants) /* all of them may be loaded: the loader chooses the one for the processor */
        snprintf(out, PATH_MAX, "%s", name);
    return 0;
}
