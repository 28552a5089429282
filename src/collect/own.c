/* own: which folders are session folders of this user, and how one is removed: by descriptor, and only session
 * files. One thread.
 * Must not know what is recorded, nor follow a name that a file from elsewhere contains. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector.h"

int tare__folder_open(const char *path, tare__error *error)
{
    struct stat about;
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno == EACCES) {
        tare__fail(error, TARE_E_PERMISSION, "%.400s cannot be opened: %s; is it another user's?", path,
                   strerror(errno));
    } else if (dir < 0 || fstat(dir, &about) != 0) {
        tare__fail(error, TARE_E_INPUT, "%.400s is not a session folder of Tare: %s", path,
                   errno == ELOOP || errno == ENOTDIR ? "it is a symbolic link or a file" : strerror(errno));
    } else if (about.st_uid != geteuid()) {
        tare__fail(error, TARE_E_PERMISSION, "%.400s belongs to another user: run this command as that user", path);
    } else if (about.st_mode & 022) {
        tare__fail(error, TARE_E_PERMISSION, "%.400s is writable by others and not trusted", path);
    } else {
        return dir;
    }
    if (dir >= 0)
        close(dir);
    return -1;
}

/* tare-UID-XXXXXX, as created by mkdtemp. */
static bool is_session_name(const char *name)
{
    char prefix[32];
    size_t length = (size_t)snprintf(prefix, sizeof prefix, "tare-%u-", (unsigned)geteuid());
    if (strncmp(name, prefix, length) != 0 || strlen(name) != length + 6)
        return false;
    for (const char *at = name + length; *at; at++)
        if (!isalnum((unsigned char)*at))
            return false;
    return true;
}

bool tare__ring_name(const char *name)
{
    for (size_t i = 0; i < 2 * TARE__ID_BYTES; i++)
        if (!(name[i] >= '0' && name[i] <= '9') && !(name[i] >= 'a' && name[i] <= 'f'))
            return false;
    return strcmp(name + 2 * TARE__ID_BYTES, TARE__RING_SUFFIX) == 0;
}

static bool is_known_file(const char *name)
{
    return strcmp(name, TARE__SESSION_FILE) == 0 || strcmp(name, TARE__JOIN_SOCKET) == 0 ||
           strcmp(name, TARE__SAVED_FILE) == 0 || tare__ring_name(name) ||
           strncmp(name, TARE__WORD_PREFIX, sizeof TARE__WORD_PREFIX - 1) == 0;
}

/* Whether every entry is a session file: no directories, no links. */
static bool holds_a_session_only(DIR *list)
{
    struct dirent *entry;
    rewinddir(list);
    while ((entry = readdir(list)) != NULL) {
        struct stat about;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!is_known_file(entry->d_name) ||
            fstatat(dirfd(list), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
            !(S_ISREG(about.st_mode) || S_ISSOCK(about.st_mode)))
            return false;
    }
    return true;
}

static bool is_ours(DIR *list, int parent, const char *name)
{
    struct stat open_one, named;
    return fstat(dirfd(list), &open_one) == 0 && fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino && S_ISDIR(open_one.st_mode) &&
           open_one.st_uid == geteuid() && (open_one.st_mode & 0777) == 0700 && holds_a_session_only(list);
}

static bool empty(DIR *list, int parent, const char *name)
{
    struct dirent *entry;
    rewinddir(list);
    while ((entry = readdir(list)) != NULL)
        if (is_known_file(entry->d_name))
            unlinkat(dirfd(list), entry->d_name, 0);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

static bool check_and_delete(const char *path, bool really)
{
    const char *name = strrchr(path, '/');
    char place[TARE__PATH_BYTES];
    if (path[0] != '/' || !is_session_name(name + 1) || strlen(path) >= sizeof place)
        return false;
    snprintf(place, sizeof place, "%.*s", name == path ? 1 : (int)(name - path), path);
    int parent = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int dir = parent < 0 ? -1 : openat(parent, name + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool gone = dir < 0 && errno == ENOENT;
    DIR *list = dir < 0 ? NULL : fdopendir(dir);
    if (list) {
        gone = is_ours(list, parent, name + 1) && (!really || empty(list, parent, name + 1));
        closedir(list);
    } else if (dir >= 0) {
        close(dir);
    }
    if (parent >= 0)
        close(parent);
    return gone;
}

bool tare__folder_delete(const char *path)
{
    return check_and_delete(path, true);
}

bool tare__folder_deletable(const char *path)
{
    return check_and_delete(path, false);
}
