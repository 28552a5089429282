/* leftover: session folders left by killed collectors of this user: their state, which may be removed, and
 * when their memory is freed automatically. One thread. Only save, remove and tidy change anything.
 * Must not know what is in a trace. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "collector.h"

#define YOUNG_SECONDS 5 /* a new folder has no page and no lock for a short time; one that was just saved may still
                         * be read */
#define MEMORY "/dev/shm"
#define MEMORY_BYTES ((uint64_t)1 << 30) /* limit for folders waiting to be saved, or a quarter of /dev/shm if that
                                          * is less */
#define OLD_SECONDS (24 * 60 * 60)       /* after this time `tare report` is not expected any more */
#define TIDY_NS 1000000000u              /* time limit; the next run continues */

static bool is_young(const tare__leftover *left)
{
    return left->at + YOUNG_SECONDS > time(NULL);
}

/* Adds up the sizes in one folder; returns whether a ring in it is still written to. */
static bool measure_folder(const char *path, uint64_t *bytes)
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

/* Fallback folders of sessions, dead or alive: they have no session page. */
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
    return by->failed; /* unknown: not touched */
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

/* Nothing in the page is trusted, but a living collector of any version holds its lock. */
static bool read_damaged(tare__folder *folder, const claims *by, const tare__error *error, tare__leftover *left)
{
    const char *why = error->text;
    if (is_young(left))
        return false;
    if (folder->lock >= 0 && flock(folder->lock, LOCK_SH | LOCK_NB) != 0)
        return false;
    bool lives = measure_folder(left->path, &left->bytes);
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

/* A folder of this user whose collector, which holds a lock while it lives, is gone. `by` NULL: only those whose
 * trace exists and that are complete. */
static bool read_leftover(int place, const char *name, const claims *by, tare__leftover *left)
{
    static tare__folder folder;
    struct stat about;
    tare__error error = {""};
    if (fstatat(place, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(about.st_mode) ||
        about.st_uid != geteuid() || (about.st_mode & 077))
        return false;
    memset(&folder, 0, sizeof folder);
    left->at = about.st_mtime;
    left->bytes = 0;
    int status = tare__folder_take(&folder, left->path, &error);
    bool found = status == 0;
    struct stat trace;
    if (status == 0 && !by && lstat(folder.page->trace, &trace) != 0) {
        found = false;
    } else if (status == 0) {
        int dir = tare__folder_open(left->path, NULL);
        strcpy(left->fallback, folder.fallback);
        memcpy(left->trace, folder.page->trace, sizeof left->trace);
        bool saved = dir >= 0 && tare__saved_in(dir, left->trace), lives = measure_folder(left->path, &left->bytes);
        if (left->fallback[0])
            lives = measure_folder(left->fallback, &left->bytes) || lives;
        bool named = lstat(left->trace, &about) == 0;
        left->state = lives    ? TARE__LEFTOVER_ALIVE
                      : saved  ? TARE__LEFTOVER_SAVED
                      : named  ? TARE__LEFTOVER_UNSAVED
                               : TARE__LEFTOVER_NO_TRACE;
        if (!named)
            snprintf(left->why, sizeof left->why, "its trace %.200s does not exist", left->trace);
        if (dir >= 0)
            close(dir);
    } else if (status != TARE_E_BUSY && by) {
        found = read_damaged(&folder, by, &error, left);
    }
    tare__folder_close(&folder);
    return found;
}

typedef struct visit {
    tare__leftover_sink *sink;
    void *context;
    bool memory_only;
    claims fallbacks;
} visit;

static void read_one(int place, const char *name, tare__leftover *left, void *context)
{
    visit *to = context;
    if (read_leftover(place, name, to->memory_only ? NULL : &to->fallbacks, left))
        to->sink(to->context, left);
}

typedef void reader(int place, const char *name, tare__leftover *left, void *context);

static void scan_place(const char *place, reader *read, void *context)
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

static void scan_places(bool memory_only, reader *read, void *context)
{
    const char *own = getenv("TMPDIR");
    const char *places[] = {MEMORY, own && own[0] == '/' ? own : "/tmp", "/tmp", "/var/tmp", "/run"};
    for (size_t i = 0; i < (memory_only ? 1 : TARE__COUNT_OF(places)); i++) {
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again = again || strcmp(places[i], places[j]) == 0;
        if (!again)
            scan_place(places[i], read, context);
    }
}

static void visit_all(bool memory_only, tare__leftover_sink *sink, void *context)
{
    visit to = {.sink = sink, .context = context, .memory_only = memory_only};
    if (!memory_only)
        scan_places(false, read_claim, &to.fallbacks);
    scan_places(memory_only, read_one, &to);
    free(to.fallbacks.paths);
}

void tare__leftovers_visit(tare__leftover_sink *sink, void *context)
{
    visit_all(false, sink, context);
}

bool tare__leftover_removable(const tare__leftover *leftover)
{
    return leftover->state != TARE__LEFTOVER_PART &&
           (!leftover->fallback[0] || tare__folder_deletable(leftover->fallback)) &&
           tare__folder_deletable(leftover->path);
}

bool tare__leftover_remove(const tare__leftover *leftover)
{
    if (!tare__leftover_removable(leftover)) /* all of it, or nothing */
        return false;
    bool gone = !leftover->fallback[0] || tare__folder_delete(leftover->fallback);
    return tare__folder_delete(leftover->path) && gone;
}

int tare__leftover_save(tare__leftover *leftover, tare__error *error)
{
    tare__salvaged saved;
    if (leftover->state == TARE__LEFTOVER_SAVED)
        return 0;
    if (leftover->state != TARE__LEFTOVER_UNSAVED)
        return tare__fail(error, TARE_E_INPUT, "%s",
                          leftover->why[0] ? leftover->why : "a recorded process is still running");
    int status = tare__salvage(leftover->path, NULL, &saved, error), dir = -1;
    if (status)
        return status;
    if (saved.still_recording || saved.alive)
        return tare__fail(error, TARE_E_BUSY, "a recorded process is still running");
    if (saved.unread_rings)
        return tare__fail(error, TARE_E_INPUT, "the memory of %u of its processes cannot be read", saved.unread_rings);
    if (saved.damaged_blocks)
        return tare__fail(error, TARE_E_INPUT, "%.300s is damaged (%llu blocks)", saved.trace,
                          (unsigned long long)saved.damaged_blocks);
    if ((dir = tare__folder_open(leftover->path, error)) < 0)
        return TARE_E_INPUT;
    bool marked = tare__saved_in(dir, leftover->trace);
    close(dir);
    if (!marked)
        return tare__fail(error, TARE_E_SYSTEM, "cannot record in the folder that it was saved");
    leftover->state = TARE__LEFTOVER_SAVED;
    return 0;
}

/* ---- freeing memory automatically ---- */

typedef struct found {
    tare__leftover *list;
    size_t n, room;
} found;

static void take_found(void *context, const tare__leftover *leftover)
{
    found *all = context;
    if (tare__array_fit(&all->list, &all->room, all->n + 1, sizeof *all->list))
        all->list[all->n++] = *leftover;
}

static bool in_memory(const tare__leftover *leftover)
{
    return strncmp(leftover->path, MEMORY "/", sizeof MEMORY) == 0;
}

static uint64_t memory_limit(const struct statfs *fs)
{
    uint64_t quarter = (uint64_t)fs->f_blocks * (uint64_t)fs->f_bsize / 4;
    return quarter < MEMORY_BYTES ? quarter : MEMORY_BYTES;
}

TARE__ORDER(by_age, tare__leftover, TARE__RISING(at))

bool tare__leftovers_press(void)
{
    struct statfs fs;
    return statfs(MEMORY, &fs) == 0 &&
           (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize > memory_limit(&fs);
}

static bool should_save(const tare__leftover *one, uint64_t held, uint64_t limit)
{
    return one->state == TARE__LEFTOVER_UNSAVED &&
           (one->at + OLD_SECONDS < time(NULL) || (in_memory(one) && held > limit));
}

void tare__leftovers_tidy(bool memory_only, tare__leftover_sink *sink, void *context, tare__tidied *result)
{
    struct statfs fs;
    found all = {0};
    uint64_t limit = statfs(MEMORY, &fs) == 0 ? memory_limit(&fs) : MEMORY_BYTES, begun = tare__monotonic_ns(),
             held = 0;
    *result = (tare__tidied){0};
    visit_all(memory_only, take_found, &all);
    if (all.n)
        qsort(all.list, all.n, sizeof *all.list, by_age);
    for (size_t i = 0; i < all.n; i++)
        held += all.list[i].state == TARE__LEFTOVER_UNSAVED && in_memory(&all.list[i]) ? all.list[i].bytes : 0;
    for (size_t i = 0; i < all.n; i++) {
        tare__leftover *one = &all.list[i];
        bool was_saved = one->state == TARE__LEFTOVER_SAVED, failed = one->state == TARE__LEFTOVER_NO_TRACE;
        if (should_save(one, held, limit) && tare__monotonic_ns() - begun < TIDY_NS)
            failed = tare__leftover_save(one, NULL) != 0;
        /* it may still be in use by a reader */
        bool goes = one->state == TARE__LEFTOVER_SAVED && !(was_saved && is_young(one));
        if (goes && tare__leftover_remove(one)) {
            held -= !was_saved && in_memory(one) ? one->bytes : 0;
            result->saved += !was_saved;
            result->saved_bytes += was_saved ? 0 : one->bytes;
            continue;
        }
        result->unsavable += failed;
        result->unsavable_bytes += failed ? one->bytes : 0;
        if (sink && !failed)
            sink(context, one);
    }
    free(all.list);
}
