/* process: the ring file of this process: created at the first event, extended for many threads, released.
 * One thread creates it, others wait; a handler that interrupts its own thread while it does so drops its record.
 * Must not know what the records mean. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "record.h"

#define NAMES_OFFSET ((sizeof(tare__ring) + 4095u) & ~(uint64_t)4095u)
#define CHUNKS_OFFSET \
    ((NAMES_OFFSET + TARE__NAMES_BYTES + TARE__CHUNK_BYTES - 1) & ~(uint64_t)(TARE__CHUNK_BYTES - 1))
#define POOL_BYTES_MIN (4u * TARE__CHUNK_BYTES)
/* Zeroing and mapping 8 MiB takes 5 ms, which would delay the first event: it gets this much, and the collector adds
 * the rest while the program runs. */
#define POOL_BYTES_AT_ONCE (36u * TARE__CHUNK_BYTES)
/* Mapped before the first event ends: what a thread fills within a millisecond. The rest is mapped page by page, 128
 * spans each. */
#define MAPPED_BYTES_AT_ONCE (24u * TARE__CHUNK_BYTES)
#define GROW_CHUNKS 8u
#define TMPFS_MAGIC 0x01021994

tare__process *tare__here;
_Atomic(tare__session_page *) tare__session;
char tare__session_folder[TARE__PATH_BYTES];

/* Address space for the largest ring, reserved once and never released: a thread that was stopped while it wrote a
 * slot may finish it at any later time, and must find memory there. */
static uint8_t *region;
static size_t region_bytes;
static uint8_t last_id[TARE__ID_BYTES]; /* kept across fork: the parent of the child */

int tare__thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

static void make_id(uint8_t id[TARE__ID_BYTES])
{
    if (getrandom(id, TARE__ID_BYTES, GRND_NONBLOCK) == TARE__ID_BYTES)
        return;
    uint64_t mix[2] = {tare__monotonic_ns() ^ (uint64_t)getpid() << 40, tare__ticks() ^ (uintptr_t)&mix};
    memcpy(id, mix, TARE__ID_BYTES);
}

/* Memory that is allocated and mapped, so that the first store causes no page fault. */
static void fault_in(uint8_t *from, uint64_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    if (madvise(from, bytes, MADV_POPULATE_WRITE) == 0)
        return;
#endif
    for (uint64_t at = 0; at < bytes; at += 4096)
        (void)*(volatile uint8_t *)(from + at);
}

static bool reserve_region(void)
{
    if (region)
        return true;
    size_t want = CHUNKS_OFFSET + (size_t)tare__session->max_pool_bytes;
    struct rlimit limit;
    /* If address space is limited, the program has priority. */
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur / 16 < want)
        want = limit.rlim_cur / 16 & ~(size_t)(TARE__CHUNK_BYTES - 1);
    if (want < CHUNKS_OFFSET + 2 * POOL_BYTES_MIN)
        want = CHUNKS_OFFSET + 2 * POOL_BYTES_MIN;
    for (; want > CHUNKS_OFFSET + POOL_BYTES_MIN; want = CHUNKS_OFFSET + (want - CHUNKS_OFFSET) / 2) {
        uint8_t *map = mmap(NULL, want + TARE__CHUNK_BYTES, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED)
            continue;
        uintptr_t aligned = ((uintptr_t)map + TARE__CHUNK_BYTES - 1) & ~(uintptr_t)(TARE__CHUNK_BYTES - 1);
        region = (uint8_t *)aligned;
        region_bytes = want;
        return true;
    }
    return false;
}

uint32_t tare__process_chunk_room(void)
{
    return (uint32_t)((region_bytes - CHUNKS_OFFSET) / TARE__CHUNK_BYTES);
}

/* Takes up to `want` bytes from the session's limit, in whole chunks; 0: nothing left. */
static uint64_t take_budget(uint64_t want, uint64_t least)
{
    for (; want >= least; want = want / 2 & ~(uint64_t)(TARE__CHUNK_BYTES - 1)) {
        int64_t before = atomic_fetch_sub(&tare__session->bytes_left, (int64_t)want);
        if (before >= (int64_t)want)
            return want;
        atomic_fetch_add(&tare__session->bytes_left, (int64_t)want);
    }
    return 0;
}

/* Shared memory uses the machine's memory: a ring takes at most an eighth of what is free there. */
static bool fits(int fd, uint64_t bytes)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0 || fs.f_type != TMPFS_MAGIC || fs.f_blocks == 0)
        return true;
    return bytes <= (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / 8;
}

/* Allocates the file up to the end of these bytes. Beyond the process's limit on file sizes, the kernel would not
 * only fail but send SIGXFSZ, which kills the program. */
static bool allocate(int fd, uint64_t from, uint64_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < from + bytes) {
        errno = EFBIG;
        return false;
    }
    if (!fits(fd, bytes)) {
        errno = ENOSPC;
        return false;
    }
    return fallocate(fd, 0, (off_t)from, (off_t)bytes) == 0;
}

/* Opens a new ring file of `bytes`, fully allocated: a full file system is an error now, not a SIGBUS later. Returns
 * the descriptor or -1 (errno has the reason). */
static int create_in(const char *folder, const char *name, uint64_t bytes, char path[TARE__PATH_BYTES])
{
    if (snprintf(path, TARE__PATH_BYTES, "%s/%s", folder, name) >= TARE__PATH_BYTES) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (allocate(fd, 0, bytes))
        return fd;
    /* posix_fallocate falls back to this on file systems that cannot reserve space: writing zeros. */
    int failed = errno == EOPNOTSUPP ? posix_fallocate(fd, 0, (off_t)bytes) : errno;
    if (failed == 0)
        return fd;
    close(fd);
    unlink(path);
    errno = failed;
    return -1;
}

static void read_command(char command[TARE__COMMAND_BYTES])
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, command, TARE__COMMAND_BYTES - 2);
    if (fd >= 0)
        close(fd);
    command[got > 0 ? got : 0] = '\0';
}

static void say_hello(const tare__ring *ring)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int length = snprintf(to.sun_path, sizeof to.sun_path, "%s/" TARE__JOIN_SOCKET, tare__session_folder);
    if (length < 0 || (size_t)length >= sizeof to.sun_path)
        return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    tare__hello hello = {.abi = TARE__RING_ABI, .pid = getpid()};
    memcpy(hello.id, ring->id, TARE__ID_BYTES);
    /* Lost if the collector is behind; it then finds the file by itself and lacks only the outer pid. */
    sendto(fd, &hello, sizeof hello, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to);
    close(fd);
}

static void fill_in(tare__ring *ring, const uint8_t id[TARE__ID_BYTES], uint64_t pool)
{
    memcpy(ring->id, id, TARE__ID_BYTES);
    memcpy(ring->parent, last_id, TARE__ID_BYTES);
    memcpy(last_id, id, TARE__ID_BYTES);
    ring->abi = TARE__RING_ABI;
    ring->header_bytes = sizeof *ring;
    ring->names_offset = NAMES_OFFSET;
    ring->chunks_offset = CHUNKS_OFFSET;
    ring->pid = getpid();
    ring->ppid = getppid();
    read_command(ring->command);
    atomic_store(&ring->chunk_count, (uint32_t)(pool / TARE__CHUNK_BYTES));
    /* Generations start at random, so that a late write for another ring at this address is stale here. */
    for (uint32_t i = 0; i < pool / TARE__CHUNK_BYTES; i++)
        ((tare__chunk *)(void *)((uint8_t *)ring + CHUNKS_OFFSET + (size_t)i * TARE__CHUNK_BYTES))->generation =
            id[0] % 15u + 1;
    tare__calibrate(ring, (uint8_t *)ring + CHUNKS_OFFSET);
    ring->joined = tare__ticks();
    uint64_t magic;
    memcpy(&magic, TARE__RING_MAGIC, sizeof magic);
    __atomic_store_n((uint64_t *)(void *)ring->magic, magic, __ATOMIC_RELEASE); /* now it is complete */
}

/* Why there is no ring, as the session counts it. */
static tare__refusal refusal_of(int error)
{
    static const struct {
        int error;
        tare__refusal why;
    } reasons[] = {{ENOSPC, TARE__REFUSED_SPACE},  {EDQUOT, TARE__REFUSED_SPACE},  {EFBIG, TARE__REFUSED_LIMIT},
                   {ENOENT, TARE__REFUSED_GONE},   {EACCES, TARE__REFUSED_DENIED}, {EPERM, TARE__REFUSED_DENIED},
                   {EROFS, TARE__REFUSED_DENIED},  {EMFILE, TARE__REFUSED_FILES},  {ENFILE, TARE__REFUSED_FILES},
                   {ENOMEM, TARE__REFUSED_MEMORY}};
    for (size_t i = 0; i < TARE__COUNT_OF(reasons); i++)
        if (reasons[i].error == error)
            return reasons[i].why;
    return TARE__REFUSED_SYSTEM;
}

/* In the session's folder, or in the fallback folder if there is no space. */
static int create_ring(const char *name, uint64_t bytes, char path[TARE__PATH_BYTES])
{
    int fd = create_in(tare__session_folder, name, bytes, path);
    if (fd < 0 && errno == ENOSPC && tare__session->fallback[0])
        fd = create_in(tare__session->fallback, name, bytes, path);
    return fd;
}

#define NO_SESSION (-1)

/* 0, NO_SESSION, or an errno. */
static int make_ring(void)
{
    tare__session_page *session = tare__session;
    if (atomic_load(&session->state) != TARE__SESSION_OPEN)
        return NO_SESSION;
    if (!reserve_region())
        return ENOMEM;
    uint64_t want = session->pool_bytes, room = (uint64_t)tare__process_chunk_room() * TARE__CHUNK_BYTES;
    if (want > POOL_BYTES_AT_ONCE)
        want = POOL_BYTES_AT_ONCE;
    if (want > room)
        want = room;
    uint64_t pool = take_budget(want, POOL_BYTES_MIN);
    if (pool == 0)
        return ENOSPC;
    uint8_t id[TARE__ID_BYTES];
    make_id(id);
    char name[2 * TARE__ID_BYTES + sizeof TARE__RING_SUFFIX];
    for (int i = 0; i < TARE__ID_BYTES; i++)
        snprintf(name + 2 * i, 3, "%02x", id[i]);
    memcpy(name + 2 * TARE__ID_BYTES, TARE__RING_SUFFIX, sizeof TARE__RING_SUFFIX);
    tare__process *here = tare__here;
    int fd = create_ring(name, CHUNKS_OFFSET + pool, here->path), failed = errno;
    for (; fd < 0 && (failed == ENOSPC || failed == EFBIG || failed == EDQUOT) && pool >= 2 * POOL_BYTES_MIN;
         failed = errno) {
        uint64_t half = pool / 2 & ~(uint64_t)(TARE__CHUNK_BYTES - 1);
        atomic_fetch_add(&session->bytes_left, (int64_t)(pool - half));
        pool = half;
        fd = create_ring(name, CHUNKS_OFFSET + pool, here->path);
    }
    if (fd < 0) {
        atomic_fetch_add(&session->bytes_left, (int64_t)pool);
        return failed;
    }
    /* The whole region, far beyond the end of the file, so that a file that is extended is already mapped. */
    void *map = mmap(region, region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (map == MAP_FAILED) {
        unlink(here->path);
        atomic_fetch_add(&session->bytes_left, (int64_t)pool);
        return ENOMEM;
    }
    fault_in(region, sizeof(tare__ring));
    fault_in(region + CHUNKS_OFFSET, pool < MAPPED_BYTES_AT_ONCE ? pool : MAPPED_BYTES_AT_ONCE);
    tare__ring *ring = map;
    fill_in(ring, id, pool);
    here->chunks = region + CHUNKS_OFFSET;
    __atomic_store_n(&here->ring, ring, __ATOMIC_SEQ_CST);
    tare__names_publish(ring);
    say_hello(ring);
    return 0;
}

static _Atomic uint64_t early_spans, early_others; /* before there was a ring to count them in */

void tare__count_unattributed(bool span)
{
    tare__process *here = tare__here;
    tare__ring *ring = here ? here->ring : NULL;
    if (ring)
        atomic_fetch_add(span ? &ring->unattributed_spans : &ring->unattributed_others, 1);
    else if (tare__in_session())
        atomic_fetch_add(span ? &early_spans : &early_others, 1);
}

static void refuse(int failed)
{
    if (failed != NO_SESSION)
        atomic_fetch_add(&tare__session->refused[refusal_of(failed)], 1);
}

tare__ring *tare__process_join(void)
{
    tare__process *here = tare__here;
    if (!here || !tare__in_session())
        return NULL;
    uint32_t state = atomic_load_explicit(&here->state, memory_order_acquire);
    if (TARE__LIKELY(state == TARE__PROCESS_JOINED))
        return here->ring;
    if (state == TARE__PROCESS_REFUSED)
        return NULL;
    int me = tare__thread_id();
    uint32_t fresh = TARE__PROCESS_FRESH;
    if (state == TARE__PROCESS_FRESH &&
        atomic_compare_exchange_strong(&here->state, &fresh, TARE__PROCESS_JOINING)) {
        atomic_store(&here->joiner, me);
        int failed = make_ring();
        if (!failed) {
            atomic_fetch_add(&here->ring->unattributed_spans, atomic_exchange(&early_spans, 0));
            atomic_fetch_add(&here->ring->unattributed_others, atomic_exchange(&early_others, 0));
        } else {
            refuse(failed);
            tare__modes_set(0, TARE__MODE_SESSION);
        }
        atomic_store_explicit(&here->state, failed ? TARE__PROCESS_REFUSED : TARE__PROCESS_JOINED,
                              memory_order_release);
        return failed ? NULL : here->ring;
    }
    /* A few milliseconds at most. A handler on the joining thread itself would wait forever. */
    while ((state = atomic_load_explicit(&here->state, memory_order_acquire)) == TARE__PROCESS_JOINING) {
        if (atomic_load(&here->joiner) == me)
            return NULL;
        sched_yield();
    }
    return state == TARE__PROCESS_JOINED ? here->ring : NULL;
}

static _Atomic bool growth_given_up; /* the ring is marked as growing, and did not grow for some time */

/* The thread or the collector that extends it needs a millisecond or two. If the collector was killed in the
 * meantime, wait once, not at every event that finds no space. */
static tare__growth wait_for_growth(tare__ring *ring)
{
    if (atomic_load(&growth_given_up))
        return TARE__FULL_GROWN;
    uint64_t until = tare__monotonic_ns() + 200000000;
    while (atomic_load_explicit(&ring->growing, memory_order_acquire))
        if (sched_yield() != 0 || tare__monotonic_ns() > until) {
            atomic_store(&growth_given_up, true);
            return TARE__GROWS_NOW;
        }
    return TARE__GROWN;
}

tare__growth tare__process_grow(void)
{
    tare__process *here = tare__here;
    tare__ring *ring = here->ring;
    uint32_t idle = 0;
    if (!tare__in_session())
        return TARE__FULL_GROWN;
    if (!atomic_compare_exchange_strong(&ring->growing, &idle, 1))
        return wait_for_growth(ring);
    atomic_store(&growth_given_up, false);
    uint32_t count = atomic_load(&ring->chunk_count);
    uint64_t at = CHUNKS_OFFSET + (uint64_t)count * TARE__CHUNK_BYTES;
    uint64_t more = (uint64_t)GROW_CHUNKS * TARE__CHUNK_BYTES;
    bool grown = false;
    if (at + more <= region_bytes && count + GROW_CHUNKS <= TARE__RING_CHUNKS_MAX && take_budget(more, more)) {
        int fd = open(here->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        grown = fd >= 0 && allocate(fd, at, more);
        if (fd >= 0)
            close(fd);
        if (grown) {
            fault_in(region + at, more);
            atomic_store_explicit(&ring->chunk_count, count + GROW_CHUNKS, memory_order_release);
        } else {
            atomic_fetch_add(&tare__session->bytes_left, (int64_t)more);
        }
    }
    atomic_store(&ring->growing, 0);
    return grown ? TARE__GROWN : TARE__FULL_GROWN;
}

void tare__process_leave(void)
{
    tare__process *here = tare__here;
    if (!here || atomic_load(&here->state) != TARE__PROCESS_JOINED)
        return;
    atomic_store(&here->ring->closed, 1);
    atomic_store(&here->state, TARE__PROCESS_FRESH);
    /* Private memory replaces it: threads that still use it, also on the slow path, find no chunk and do no harm. */
    mmap(region, region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}
