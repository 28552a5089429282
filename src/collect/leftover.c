/* leftover: session folders that killed collectors of this user left behind: what became of them, and which may go.
 * One thread. Looks only, but for tare__leftover_remove and the sweep.
 * Must not know what is in a trace. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

/* Fallback folders of sessions, dead or alive: they have no session page themselves. */
typedef struct claims {
    char (*paths)[TARE__PATH_BYTES];
    size_t n, room;
    bool failed;
} claims;

static bool is_claimed(const claims *by, const char *path)
{
    for (size_t i = 0; i < by->n; i++)
        if (strcmp(by->paths[i], path) == 0)
            return true;
    return by->failed; /* not known: left alone */
}

static void claim(claims *to, const char *path)
{
    to->failed = to->failed || !tare__array_fit(&to->paths, &to->room, to->n + 1, sizeof *to->paths);
    if (!to->failed)
        snprintf(to->paths[to->n++], TARE__PATH_BYTES, "%s", path);
}

static void read_claim(int place, const char *name, tare__leftover *left, void *context)
{
    static tare__folder folder;
    (void)place, (void)name;
    memset(&folder, 0, sizeof folder);
    int status = tare__folder_take(&folder, left->path, NULL);
    if ((status == 0 || status == TARE_E_BUSY) && folder.page->fallback[0])
        claim(context, folder.page->fallback);
    tare__folder_close(&folder);
}

/* Nothing in the page is believed, but a collector that lives holds its lock, of whatever version it is. */
static bool read_damaged(tare__folder *folder, const claims *by, const tare__error *error, tare__leftover *left)
{
    const char *why = error->text;
    if (folder->lock >= 0 && flock(folder->lock, LOCK_SH | LOCK_NB) != 0)
        return false;
    bool lives = look_at(left->path, &left->bytes);
    if (folder->lock < 0 && (left->bytes == 0 || is_claimed(by, left->path)))
        return false;
    if (strncmp(why, left->path, strlen(left->path)) == 0)
        why += strlen(left->path);
    snprintf(left->why, sizeof left->why, "%s", why + strspn(why, ": "));
    left->state = lives               ? TARE__LEFTOVER_ALIVE
                  : folder->lock >= 0 ? TARE__LEFTOVER_DAMAGED
                                      : TARE__LEFTOVER_PART;
    return true;
}

/* A folder of ours whose collector, which holds a lock as long as it lives, is gone. */
static bool read_leftover(int place, const char *name, const claims *by, tare__leftover *left)
{
    static tare__folder folder;
    struct stat about;
    tare__error error = {""};
    if (fstatat(place, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(about.st_mode) ||
        about.st_uid != geteuid() || (about.st_mode & 077) || about.st_mtime + YOUNG_SECONDS > time(NULL))
        return false;
    memset(&folder, 0, sizeof folder);
    left->at = about.st_mtime;
    left->bytes = 0;
    int status = tare__folder_take(&folder, left->path, &error);
    bool found = status == 0;
    if (status == 0) {
        int dir = tare__folder_open(left->path, NULL);
        strcpy(left->fallback, folder.fallback);
        memcpy(left->trace, folder.page->trace, sizeof left->trace);
        bool saved = dir >= 0 && tare__saved_in(dir, left->trace), lives = look_at(left->path, &left->bytes);
        if (left->fallback[0])
            lives = look_at(left->fallback, &left->bytes) || lives;
        left->state = lives ? TARE__LEFTOVER_ALIVE : saved ? TARE__LEFTOVER_SAVED : TARE__LEFTOVER_UNSAVED;
        if (dir >= 0)
            close(dir);
    } else if (status != TARE_E_BUSY) {
        found = read_damaged(&folder, by, &error, left);
    }
    tare__folder_close(&folder);
    return found;
}

typedef struct visit {
    tare__leftover_sink *sink;
    void *context;
    claims fallbacks;
} visit;

static void read_one(int place, const char *name, tare__leftover *left, void *context)
{
    visit *to = context;
    if (read_leftover(place, name, &to->fallbacks, left))
        to->sink(to->context, left);
}

typedef void reader(int place, const char *name, tare__leftover *left, void *context);

static void look_in(const char *place, reader *read, void *context)
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
        read(dirfd(list), entry->d_name, &left, context);
    }
    closedir(list);
}

static void look_everywhere(reader *read, void *context)
{
    const char *own = getenv("TMPDIR");
    const char *places[] = {"/dev/shm", own && own[0] == '/' ? own : "/tmp", "/tmp", "/var/tmp", "/run"};
    for (size_t i = 0; i < TARE__COUNT_OF(places); i++) {
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again = again || strcmp(places[i], places[j]) == 0;
        if (!again)
            look_in(places[i], read, context);
    }
}

void tare__leftovers_visit(tare__leftover_sink *sink, void *context)
{
    visit to = {.sink = sink, .context = context};
    look_everywhere(read_claim, &to.fallbacks);
    look_everywhere(read_one, &to);
    free(to.fallbacks.paths);
}

bool tare__leftover_removable(const tare__leftover *leftover)
{
    return leftover->state != TARE__LEFTOVER_PART && (!leftover->fallback[0] || tare__folder_deletable(leftover->fallback)) &&
           tare__folder_deletable(leftover->path);
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
