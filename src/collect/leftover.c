/* leftover: session folders that killed collectors of this user left behind: what became of them, and which may go.
 * One thread. Looks only, but for tare__leftover_remove and the sweep.
 * Must not know what is in a trace. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector.h"

#define YOUNG_SECONDS 5 /* one that is being made has no lock for a moment */

/* Adds up what is in one folder; whether a ring in it is still written to. */
static bool look_at(const char *path, uint64_t *bytes)
{
    int dir = tare__folder_open(path, NULL);
    DIR *list = dir < 0 ? NULL : fdopendir(dir);
    struct dirent *entry;
    bool lives = false;
    if (!list && dir >= 0)
        close(dir);
    while (list && (entry = readdir(list)) != NULL) {
        struct stat about;
        if (fstatat(dir, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode))
            continue;
        *bytes += (uint64_t)about.st_blocks * 512u;
        int fd = tare__ring_name(entry->d_name)
                     ? openat(dir, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                     : -1;
        lives = lives || (fd >= 0 && tare__ring_in_use(fd));
        if (fd >= 0)
            close(fd);
    }
    if (list)
        closedir(list);
    return lives;
}

/* A folder of ours whose collector, which holds a lock as long as it lives, is gone. */
static bool read_leftover(int place, const char *name, tare__leftover *left)
{
    static tare__folder folder;
    struct stat about;
    if (fstatat(place, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(about.st_mode) ||
        about.st_uid != geteuid() || (about.st_mode & 077) || about.st_mtime + YOUNG_SECONDS > time(NULL))
        return false;
    memset(&folder, 0, sizeof folder);
    int status = tare__folder_take(&folder, left->path, NULL);
    if (status == 0) {
        int dir = tare__folder_open(left->path, NULL);
        strcpy(left->fallback, folder.fallback);
        memcpy(left->trace, folder.page->trace, sizeof left->trace);
        left->at = about.st_mtime;
        left->bytes = 0;
        bool saved = dir >= 0 && tare__saved_in(dir, left->trace), lives = look_at(left->path, &left->bytes);
        if (left->fallback[0])
            lives = look_at(left->fallback, &left->bytes) || lives;
        left->state = lives ? TARE__LEFTOVER_ALIVE : saved ? TARE__LEFTOVER_SAVED : TARE__LEFTOVER_UNSAVED;
        if (dir >= 0)
            close(dir);
    }
    tare__folder_close(&folder);
    return status == 0;
}

static void look_in(const char *place, tare__leftover_sink *sink, void *context)
{
    static tare__leftover left;
    char prefix[32];
    struct dirent *entry;
    DIR *list = opendir(place);
    if (!list)
        return;
    snprintf(prefix, sizeof prefix, "tare-%u-", (unsigned)geteuid());
    while ((entry = readdir(list)) != NULL) {
        memset(&left, 0, sizeof left);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            snprintf(left.path, sizeof left.path, "%s/%s", place, entry->d_name) >= (int)sizeof left.path)
            continue;
        if (read_leftover(dirfd(list), entry->d_name, &left))
            sink(context, &left);
    }
    closedir(list);
}

void tare__leftovers_visit(tare__leftover_sink *sink, void *context)
{
    const char *own = getenv("TMPDIR");
    const char *places[] = {"/dev/shm", own && own[0] == '/' ? own : "/tmp", "/tmp", "/var/tmp", "/run"};
    for (size_t i = 0; i < TARE__COUNT_OF(places); i++) {
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again = again || strcmp(places[i], places[j]) == 0;
        if (!again)
            look_in(places[i], sink, context);
    }
}

bool tare__leftover_remove(const tare__leftover *leftover)
{
    bool gone = !leftover->fallback[0] || tare__folder_delete(leftover->fallback);
    return tare__folder_delete(leftover->path) && gone;
}

static void sweep_one(void *context, const tare__leftover *leftover)
{
    unsigned *swept = context;
    if (leftover->state == TARE__LEFTOVER_SAVED)
        *swept += tare__leftover_remove(leftover);
}

unsigned tare__leftovers_sweep(void)
{
    unsigned swept = 0;
    tare__leftovers_visit(sweep_one, &swept);
    return swept;
}
