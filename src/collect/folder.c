/* folder: the session's private folder: location, permissions, removal.
 * One thread. Must not know what is recorded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "collector.h"

#define TMPFS_MAGIC 0x01021994u
#define MAX_POOL_BYTES ((uint64_t)256 << 20)  /* of one process: about 4,000 threads */
#define SESSION_BYTES ((uint64_t)1 << 30)     /* of all processes together, at most */

/* Pages of a shared mapping must be stable: no network file systems. */
static bool is_network(uint32_t type)
{
    static const uint32_t types[] = {0x6969 /* nfs */, 0xFF534D42 /* cifs */, 0xFE534D42 /* smb2 */,
                                     0x517B /* smb */, 0x01021997 /* 9p */, 0x65735546 /* fuse */,
                                     0x00C36400 /* ceph */, 0x5346414F /* afs */, 0x0BD00BD0 /* lustre */,
                                     0x7461636F /* ocfs2 */, 0x01161970 /* gfs2 */};
    for (size_t i = 0; i < TARE__COUNT_OF(types); i++)
        if (types[i] == type)
            return true;
    return false;
}

static bool place_is_good(const char *place, uint64_t bytes, bool *in_memory)
{
    struct statfs fs;
    if (!place || place[0] != '/' || statfs(place, &fs) != 0 || is_network((uint32_t)fs.f_type))
        return false;
    uint64_t available = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    *in_memory = (uint32_t)fs.f_type == TMPFS_MAGIC;
    if (*in_memory && bytes > available / 8)
        return false;
    return available > bytes && access(place, W_OK | X_OK) == 0;
}

static bool make_private(const char *place, char path[TARE__PATH_BYTES])
{
    if (snprintf(path, TARE__PATH_BYTES, "%s/tare-%u-XXXXXX", place, (unsigned)geteuid()) >= TARE__PATH_BYTES - 64)
        return false;
    return mkdtemp(path) != NULL; /* mode 0700, and it did not exist before */
}

static int make_page(tare__folder *folder, uint64_t pool_bytes, uint64_t budget, tare__error *error)
{
    char path[TARE__PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/" TARE__SESSION_FILE, folder->path);
    folder->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = folder->lock < 0 ? errno : posix_fallocate(folder->lock, 0, sizeof(tare__session_page));
    if (failed)
        return tare__fail(error, failed == ENOSPC ? TARE_E_SPACE : TARE_E_SYSTEM, "cannot write %s: %s%s", path,
                          strerror(failed), failed == EFBIG ? " (ulimit -f)" : "");
    flock(folder->lock, LOCK_EX | LOCK_NB);
    void *map = mmap(NULL, sizeof(tare__session_page), PROT_READ | PROT_WRITE, MAP_SHARED, folder->lock, 0);
    if (map == MAP_FAILED)
        return tare__fail(error, TARE_E_SYSTEM, "cannot map %s: %s", path, strerror(errno));
    tare__session_page *page = folder->page = map;
    page->abi = TARE__RING_ABI;
    page->bytes = sizeof *page;
    if (getrandom(page->id, sizeof page->id, 0) != sizeof page->id)
        return tare__fail(error, TARE_E_SYSTEM, "cannot get random numbers: %s", strerror(errno));
    const char *forced = getenv("TARE_CLOCK");
    page->clock = forced && strcmp(forced, "monotonic") == 0 ? TARE__CLOCK_MONOTONIC : tare__clock_choose();
    page->pool_bytes = pool_bytes;
    page->max_pool_bytes = pool_bytes > MAX_POOL_BYTES ? pool_bytes : MAX_POOL_BYTES;
    atomic_store(&page->bytes_left, (int64_t)budget);
    page->collector_pid = getpid();
    strcpy(page->fallback, folder->fallback);
    memcpy(page->magic, TARE__SESSION_MAGIC, sizeof page->magic);
    return 0;
}

static int make_socket(tare__folder *folder, tare__error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/" TARE__JOIN_SOCKET, folder->path);
    if (length < 0 || (size_t)length >= sizeof address.sun_path)
        return tare__fail(error, TARE_E_SYSTEM, "the temporary folder's name is too long: %s", folder->path);
    folder->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1;
    if (folder->socket < 0 || bind(folder->socket, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(folder->socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0)
        return tare__fail(error, TARE_E_SYSTEM, "cannot listen in %s: %s", folder->path, strerror(errno));
    return 0;
}

static uint64_t free_bytes(const char *place, bool in_memory)
{
    struct statfs fs;
    if (statfs(place, &fs) != 0)
        return 0;
    uint64_t available = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    return in_memory ? available / 8 : available / 2;
}

int tare__folder_create(tare__folder *folder, uint64_t pool_bytes, tare__error *error)
{
    folder->lock = folder->socket = -1;
    const char *own = getenv("TMPDIR");
    /* Memory is preferred if there is enough; the kernel writes a temporary folder on a disk back in the background. */
    const char *places[] = {"/dev/shm", own && own[0] == '/' ? own : "/tmp", "/tmp", "/var/tmp", "/run"};
    uint64_t need = pool_bytes + ((uint64_t)2 << 20), budget = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(places); i++) {
        bool memory = false;
        if (!place_is_good(places[i], need, &memory))
            continue;
        if (folder->path[0] == '\0') {
            if (!make_private(places[i], folder->path)) {
                folder->path[0] = '\0';
                continue;
            }
            budget = free_bytes(places[i], memory);
            if (!memory)
                break;
        } else if (!memory) {
            if (!make_private(places[i], folder->fallback))
                folder->fallback[0] = '\0';
            else
                budget += free_bytes(places[i], memory);
            break;
        }
    }
    if (folder->path[0] == '\0')
        return tare__fail(error, TARE_E_SPACE,
                          "no space for %llu MiB of shared memory: /dev/shm, TMPDIR and /tmp are full, not writable "
                          "or on a network; set TMPDIR to a local directory or use a smaller --buffer-size",
                          (unsigned long long)(need >> 20));
    int status = make_page(folder, pool_bytes, budget < SESSION_BYTES ? budget : SESSION_BYTES, error);
    if (status == 0)
        status = make_socket(folder, error);
    if (status)
        tare__folder_remove(folder);
    return status;
}

void tare__folder_named(tare__folder *folder)
{
    char *ending = folder->page->trace + strlen(folder->page->trace) + 1;
    if (ending < folder->page->trace + sizeof folder->page->trace)
        *ending = '\0';
}

/* The collector was killed when the program started: the trace still has its first name. */
static void take_first_name(tare__session_page *page)
{
    char first[sizeof page->trace];
    struct stat about;
    size_t length = strlen(page->trace);
    const char *ending = page->trace + length + 1;
    if (length + 1 + TARE__ENDING_BYTES > sizeof page->trace || ending[0] != '.' ||
        strnlen(ending, TARE__ENDING_BYTES) != TARE__ENDING_BYTES - 1 || strchr(ending, '/'))
        return;
    snprintf(first, sizeof first, "%s%s", page->trace, ending);
    if (lstat(first, &about) == 0)
        strcpy(page->trace, first);
}

/* Everything is read through private mappings, so that salvaging does not change the files of the page and the
 * rings. */
static int take_page(tare__folder *folder, int dir, tare__error *error)
{
    struct stat about;
    folder->lock = openat(dir, TARE__SESSION_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (folder->lock < 0 || fstat(folder->lock, &about) != 0)
        return tare__fail(error, TARE_E_INPUT, "%s is not a session folder of Tare: %s", folder->path,
                          strerror(errno));
    if (!S_ISREG(about.st_mode) || about.st_uid != geteuid())
        return tare__fail(error, TARE_E_PERMISSION, "%s: the session file belongs to another user", folder->path);
    void *map = about.st_size < (off_t)sizeof(tare__session_page)
                    ? MAP_FAILED
                    : mmap(NULL, sizeof(tare__session_page), PROT_READ | PROT_WRITE, MAP_PRIVATE, folder->lock, 0);
    if (map == MAP_FAILED)
        return tare__fail(error, TARE_E_INPUT, "%s: the session file is too short", folder->path);
    folder->page = map;
    const char *wrong = tare__session_check(folder->page, (uint64_t)about.st_size);
    if (wrong)
        return tare__fail(error, TARE_E_VERSION, "%s: %s", folder->path, wrong);
    folder->page->fallback[TARE__PATH_BYTES - 1] = folder->page->trace[TARE__PATH_BYTES - 1] = '\0';
    take_first_name(folder->page);
    /* The collector holds this lock while it lives. */
    return flock(folder->lock, LOCK_SH | LOCK_NB) != 0 ? TARE_E_BUSY : 0;
}

int tare__folder_take(tare__folder *folder, const char *path, tare__error *error)
{
    folder->lock = folder->socket = -1;
    if (strlen(path) >= sizeof folder->path)
        return tare__fail(error, TARE_E_INPUT, "%.200s…: the name is too long", path);
    strcpy(folder->path, path);
    int dir = tare__folder_open(path, error);
    if (dir < 0)
        return TARE_E_INPUT;
    int status = take_page(folder, dir, error);
    close(dir);
    int fallback = status || !folder->page->fallback[0] ? -1 : tare__folder_open(folder->page->fallback, NULL);
    if (fallback >= 0) {
        strcpy(folder->fallback, folder->page->fallback);
        close(fallback);
    }
    return status;
}

/* The counter between two readings of the clock: the midpoint of the closest of three attempts. */
void tare__folder_sync(tare__folder *folder, tare__clock_sync *sync)
{
    tare__session_page *page = folder->page;
    uint64_t closest = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t before = tare__clock_ticks(page->clock);
        uint64_t monotonic = tare__monotonic_ns();
        uint64_t after = tare__clock_ticks(page->clock);
        if (after - before >= closest)
            continue;
        closest = after - before;
        sync->realtime_ns = tare__clock_ns(CLOCK_REALTIME);
        sync->ticks = page->clock == TARE__CLOCK_MONOTONIC ? monotonic : before + closest / 2;
        sync->monotonic_ns = monotonic;
    }
    uint32_t n = atomic_load(&page->sync_count);
    /* The first is kept: all later times refer to it. */
    uint32_t at = n < TARE__SESSION_SYNCS ? n : 1 + (n - 1) % (TARE__SESSION_SYNCS - 1);
    page->syncs[at] = *sync;
    atomic_store(&page->sync_count, n + 1);
}

bool tare__folder_remove(tare__folder *folder)
{
    if (folder->page)
        atomic_store(&folder->page->state, TARE__SESSION_ENDED);
    if (folder->socket >= 0)
        close(folder->socket); /* descriptors may be scarce: removing needs one */
    folder->socket = -1;
    bool gone = true;
    if (folder->fallback[0])
        gone = tare__folder_delete(folder->fallback);
    if (folder->path[0])
        gone = tare__folder_delete(folder->path) && gone;
    tare__folder_close(folder);
    return gone;
}

void tare__folder_close(tare__folder *folder)
{
    if (folder->page)
        munmap(folder->page, sizeof *folder->page);
    if (folder->socket >= 0)
        close(folder->socket);
    if (folder->lock >= 0)
        close(folder->lock);
    folder->page = NULL;
    folder->socket = folder->lock = -1;
}
