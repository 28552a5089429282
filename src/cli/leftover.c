/* leftover: session folders that killed collectors of this user left behind.
 * One thread. Looks only; `tare report` is what takes them up.
 * Must not know what is in a session. */
#define _GNU_SOURCE
#include "recording.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/format.h"

#define YOUNG_SECONDS 5 /* one that is being made has no lock for a moment */

/* A folder of ours whose collector, which holds a lock as long as it lives, is gone. */
static bool is_left(int place, const char *name, struct stat *about)
{
    char file[320];
    if (fstatat(place, name, about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(about->st_mode) ||
        about->st_uid != geteuid() || (about->st_mode & 077) || about->st_mtime + YOUNG_SECONDS > time(NULL))
        return false;
    snprintf(file, sizeof file, "%.255s/" TARE__SESSION_FILE, name);
    int fd = openat(place, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool left = flock(fd, LOCK_SH | LOCK_NB) == 0;
    close(fd);
    return left;
}

static void look_in(const char *place, tare__cli_leftover *found)
{
    char prefix[32];
    struct dirent *entry;
    DIR *list = opendir(place);
    if (!list)
        return;
    snprintf(prefix, sizeof prefix, "tare-%u-", (unsigned)geteuid());
    while ((entry = readdir(list)) != NULL) {
        struct stat about;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || !is_left(dirfd(list), entry->d_name, &about))
            continue;
        found->count++;
        if (found->count == 1 || about.st_mtime >= found->newest_at) {
            found->newest_at = about.st_mtime;
            snprintf(found->newest, sizeof found->newest, "%s/%s", place, entry->d_name);
        }
    }
    closedir(list);
}

void tare__cli_find_leftover(tare__cli_leftover *found)
{
    const char *own = getenv("TMPDIR");
    const char *places[] = {"/dev/shm", own && own[0] == '/' ? own : "/tmp", "/tmp", "/var/tmp", "/run"};
    *found = (tare__cli_leftover){.count = 0};
    for (size_t i = 0; i < TARE__COUNT_OF(places); i++) {
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again = again || strcmp(places[i], places[j]) == 0;
        if (!again)
            look_in(places[i], found);
    }
}
