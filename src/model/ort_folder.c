/* ort_folder: a folder for the runtime's profile and for a converted model, and cleanup of those of killed
 * processes.
 * The calling thread.
 * Must not know what is in it. */
#define _GNU_SOURCE
#include "ort_inner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX       "tare-model-"
#define SWEPT_MAX    1000 /* limits the time spent if there are very many */
#define RANDOM_CHARS 6

/* Files only: no folders are created in there, and links are not followed. */
static void empty(int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    if (!list && again >= 0)
        close(again);
    for (struct dirent *entry; list && (entry = readdir(list)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(folder, entry->d_name, 0);
    if (list)
        closedir(list);
}

bool tare__ort_folder_make(tare__ort_folder *folder)
{
    snprintf(folder->path, sizeof folder->path, "%.400s/" PREFIX "%ld.XXXXXX", tare__temporary_folder(),
             (long)getpid());
    folder->lock = -1;
    if (!mkdtemp(folder->path)) {
        folder->path[0] = '\0';
        return false;
    }
    folder->lock = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder->lock >= 0)
        flock(folder->lock, LOCK_EX | LOCK_NB); /* if locks are unavailable, the pid is checked */
    return true;
}

void tare__ort_folder_remove(tare__ort_folder *folder)
{
    if (!folder->path[0])
        return;
    if (folder->lock >= 0) {
        empty(folder->lock);
        close(folder->lock);
    }
    rmdir(folder->path);
    folder->path[0] = '\0';
}

/* ---- those of others ------------------------------------------------------------------------------------------ */
/* The pid in its name; 0: not a name of this kind. */
static pid_t maker_of(const char *name)
{
    char *end;
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return 0;
    const char *digits = name + strlen(PREFIX);
    if (*digits < '1' || *digits > '9')
        return 0;
    errno = 0;
    long pid = strtol(digits, &end, 10);
    bool ours = errno == 0 && pid > 0 && pid <= INT32_MAX && *end == '.' && strlen(end + 1) == RANDOM_CHARS;
    return ours ? (pid_t)pid : 0;
}

/* The pid may be of another PID namespace that shares the folder: only a successful lock shows that the process is
 * gone. */
static bool is_left(int folder)
{
    struct stat about;
    return fstat(folder, &about) == 0 && about.st_uid == geteuid() && (about.st_mode & 077) == 0 &&
           flock(folder, LOCK_EX | LOCK_NB) == 0;
}

static bool sweep_one(int of, const char *name)
{
    pid_t maker = maker_of(name);
    if (!maker || maker == getpid() || kill(maker, 0) == 0 || errno != ESRCH)
        return false;
    int folder = openat(of, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool left = folder >= 0 && is_left(folder);
    if (left) {
        empty(folder);
        unlinkat(of, name, AT_REMOVEDIR);
    }
    if (folder >= 0)
        close(folder);
    return left;
}

void tare__ort_folder_sweep(void)
{
    DIR *list = opendir(tare__temporary_folder());
    int swept = 0;
    for (struct dirent *entry; list && swept < SWEPT_MAX && (entry = readdir(list)) != NULL;)
        swept += sweep_one(dirfd(list), entry->d_name);
    if (list)
        closedir(list);
}
