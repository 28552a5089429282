/* sources: the rings of recorded processes: finds them, opens them, and monitors them until their process is gone.
 * One thread. Must not know what the records mean. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector.h"

#define FOLDER_SCAN_NS 50000000u
#define GROW_CHUNKS 16u
#define MAPPED_BYTES ((uint64_t)(TARE__RING_CHUNKS_MAX + 64) * TARE__CHUNK_BYTES)

static int open_pid(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static tare__source *source_by_file(tare__collector *collector, const char *file)
{
    for (uint32_t i = 0; i < collector->source_count; i++)
        if (strcmp(collector->sources[i]->file, file) == 0)
            return collector->sources[i];
    return NULL;
}

/* A file that cannot be removed must not be read twice. */
void tare__source_done(tare__collector *collector, const tare__source *source)
{
    if (unlink(source->path) == 0 || errno == ENOENT ||
        !tare__array_fit(&collector->done, &collector->done_room, collector->done_count + 1, sizeof *collector->done))
        return;
    memcpy(collector->done[collector->done_count++].name, source->file, sizeof source->file);
}

static bool is_done(const tare__collector *collector, const char *file)
{
    for (uint32_t i = 0; i < collector->done_count; i++)
        if (strcmp(collector->done[i].name, file) == 0)
            return true;
    return false;
}

void tare__source_free(tare__source *source)
{
    if (!source)
        return;
    for (size_t i = 0; i < source->stream_room; i++)
        if (source->streams[i]) {
            tare__span_stack_free(&source->streams[i]->open);
            free(source->streams[i]);
        }
    free(source->streams);
    free(source->name_map);
    if (source->ring)
        munmap(source->ring, source->mapped);
    if (source->fd >= 0)
        close(source->fd);
    if (source->pidfd >= 0)
        close(source->pidfd);
    free(source);
}

static void *map_ring(int fd, uint64_t bytes, bool shared)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_NORESERVE, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* The mapping has the maximum length of a ring, and the file grows into it; if address space is limited, it has the
 * length of the file and is repeated when that grows. `bytes` is the current length of the file. */
static bool map_all(tare__source *source, int fd, bool shared)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return false;
    uint64_t bytes = (uint64_t)about.st_size < MAPPED_BYTES ? (uint64_t)about.st_size : MAPPED_BYTES;
    if (bytes > source->mapped) {
        uint64_t mapped = MAPPED_BYTES;
        void *map = map_ring(fd, mapped, shared);
        if (!map)
            map = map_ring(fd, mapped = bytes, shared);
        if (!map)
            return false;
        if (source->ring)
            munmap(source->ring, source->mapped);
        source->ring = map;
        source->mapped = mapped;
    }
    source->bytes = bytes;
    return true;
}

static void lend_reserve(tare__collector *collector)
{
    for (size_t i = 0; i < TARE__RESERVE_FDS; i++) {
        if (collector->reserve[i])
            close(collector->reserve[i] - 1);
        collector->reserve[i] = 0;
    }
}

static void take_reserve_back(tare__collector *collector)
{
    for (size_t i = 0; i < TARE__RESERVE_FDS && collector->keeps_reserve; i++)
        if (!collector->reserve[i])
            collector->reserve[i] = fcntl(collector->folder.lock, F_DUPFD_CLOEXEC, 0) + 1;
}

void tare__reserve_take(tare__collector *collector)
{
    collector->keeps_reserve = true;
    take_reserve_back(collector);
}

void tare__reserve_give_up(tare__collector *collector)
{
    collector->keeps_reserve = false;
    lend_reserve(collector);
}

/* The descriptor that is kept, or one until close_ring. Samplers may hold all that the reserve leaves. */
static int open_ring(tare__collector *collector, const tare__source *source)
{
    if (source->fd >= 0)
        return source->fd;
    lend_reserve(collector);
    return open(source->path, (source->shared ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
}

static void close_ring(tare__collector *collector, const tare__source *source, int fd)
{
    if (source->fd >= 0)
        return;
    if (fd >= 0)
        close(fd);
    take_reserve_back(collector);
}

bool tare__source_in_use(tare__collector *collector, const tare__source *source)
{
    int fd = open_ring(collector, source);
    /* Without a descriptor only the process can be asked: wrong at worst towards "in use", which removes nothing. */
    bool lives = fd >= 0 ? tare__ring_in_use(fd) : tare__process_runs(source->ring->pid);
    close_ring(collector, source, fd);
    return lives;
}

/* State letter, threads and start time, as the kernel has them; false: it cannot be asked. */
static bool ask_proc(pid_t pid, char *state, int *threads, uint64_t *start_time)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (tare__sample_read("", path, text, sizeof text) <= 0)
        return false;
    const char *name_ends = strrchr(text, ')');
    unsigned long long started = 0;
    if (!name_ends ||
        sscanf(name_ends + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu", state,
               threads, &started) != 3)
        return false;
    *start_time = started;
    return true;
}

/* Without a descriptor for the process. Its pid may have been reused. */
static bool pid_ended(tare__source *source)
{
    char state = 0;
    int threads = 0;
    uint64_t started = 0;
    if (source->pid <= 0 || (kill(source->pid, 0) != 0 && errno == ESRCH))
        return true;
    if (!ask_proc(source->pid, &state, &threads, &started))
        return false;
    if (source->start_time == 0)
        source->start_time = started;
    /* With other threads, only the first one has ended. */
    return (state == 'Z' && threads <= 1) || state == 'X' || started != source->start_time;
}

static bool add_source(tare__collector *collector, tare__source *source)
{
    if (!tare__array_fit(&collector->sources, &collector->source_room, collector->source_count + 1,
                         sizeof *collector->sources))
        return false;
    collector->sources[collector->source_count++] = source;
    return true;
}

/* A process that calls exec keeps its pid and leaves its ring behind. */
static void end_earlier(tare__collector *collector, const tare__source *newer)
{
    for (uint32_t i = 0; i < collector->source_count; i++) {
        tare__source *source = collector->sources[i];
        if (source != newer && source->pid == newer->pid && !source->gone)
            source->gone = true;
    }
}

static bool program_of(pid_t pid, tare__program *out)
{
    char path[64];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    if (stat(path, &about) != 0)
        return false;
    *out = (tare__program){about.st_dev, about.st_ino};
    return true;
}

static bool is_known(const tare__collector *collector, const tare__program *program)
{
    for (uint32_t i = 0; i < collector->program_count; i++)
        if (collector->programs[i].device == program->device && collector->programs[i].inode == program->inode)
            return true;
    return false;
}

bool tare__runs_recorded_program(const tare__collector *collector, pid_t pid)
{
    tare__program program;
    return program_of(pid, &program) && (collector->program_missed || is_known(collector, &program));
}

void tare__program_note(tare__collector *collector, pid_t pid)
{
    tare__program program;
    if (!program_of(pid, &program)) /* it ended first */
        collector->program_missed = true;
    else if (collector->program_count < TARE__PROGRAMS_MAX && !is_known(collector, &program))
        collector->programs[collector->program_count++] = program;
}

static void set_pid(tare__collector *collector, tare__source *source, pid_t pid)
{
    source->pid = pid;
    if (source->pidfd >= 0)
        close(source->pidfd);
    source->pidfd = pid > 0 ? open_pid(pid) : -1;
    if (source->pidfd >= 0 && tare__is_scarce(source->pidfd)) {
        close(source->pidfd);
        source->pidfd = -1;
    }
    source->start_time = 0;
    if (source->pidfd < 0 && pid_ended(source))
        source->gone = true; /* it was faster */
    tare__program_note(collector, pid);
    end_earlier(collector, source);
    tare__process_joined(collector, pid);
}

/* NULL if the file is not (yet) a complete ring. */
static tare__source *open_source(tare__collector *collector, const char *folder, const char *file, pid_t pid)
{
    tare__source *source = is_done(collector, file) ? NULL : calloc(1, sizeof *source);
    if (!source)
        return NULL;
    source->pidfd = -1;
    snprintf(source->file, sizeof source->file, "%s", file);
    snprintf(source->path, sizeof source->path, "%s/%s", folder, file);
    /* Salvaging does not change rings: its changes to the chunks stay in private memory. */
    bool shared = source->shared = !collector->salvaging;
    source->fd = open(source->path, (shared ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat about;
    bool there = source->fd >= 0 && fstat(source->fd, &about) == 0 && S_ISREG(about.st_mode) &&
                 (uint64_t)about.st_size >= sizeof(tare__ring);
    if ((source->fd < 0 && errno != ENOENT) || (there && !map_all(source, source->fd, shared))) {
        collector->unread_error = errno; /* retried with the next scan */
        there = false;
    }
    if (!there || __atomic_load_n((uint64_t *)(void *)source->ring->magic, __ATOMIC_ACQUIRE) == 0 ||
        tare__ring_check(source->ring, source->bytes)) {
        tare__source_free(source);
        return NULL;
    }
    if (tare__is_scarce(source->fd)) {
        close(source->fd);
        source->fd = -1;
    }
    source->rank = -1;
    source->names_offset = source->ring->names_offset;
    source->chunks_offset = source->ring->chunks_offset;
    source->name_map = calloc(TARE__NAMES_BYTES / TARE__NAME_UNIT, sizeof *source->name_map);
    if (!source->name_map || !add_source(collector, source)) {
        collector->unread_error = ENOMEM;
        tare__source_free(source);
        return NULL;
    }
    if (collector->salvaging) { /* its number may be known from the trace */
        source->pid = source->ring->pid;
        source->gone = true;
        return source;
    }
    source->rank = tare__rank_of(pid > 0 ? pid : source->ring->pid);
    source->process = ++collector->joined;
    set_pid(collector, source, pid > 0 ? pid : source->ring->pid);
    tare__tell_process(collector, source, -1);
    return source;
}

static void hear(tare__collector *collector)
{
    for (;;) {
        tare__hello hello;
        union {
            char room[CMSG_SPACE(sizeof(struct ucred))];
            struct cmsghdr align;
        } control;
        struct iovec part = {&hello, sizeof hello};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                                 .msg_controllen = sizeof control};
        ssize_t got = recvmsg(collector->folder.socket, &message, 0);
        if (got < 0)
            return;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (got != (ssize_t)sizeof hello || !head || head->cmsg_type != SCM_CREDENTIALS)
            continue;
        struct ucred sender;
        memcpy(&sender, CMSG_DATA(head), sizeof sender);
        if (hello.abi != TARE__RING_ABI) {
            atomic_fetch_add(&collector->folder.page->refused[TARE__REFUSED_ABI], 1);
            continue;
        }
        char file[64];
        for (int i = 0; i < TARE__ID_BYTES; i++)
            snprintf(file + 2 * i, 3, "%02x", hello.id[i]);
        strcpy(file + 2 * TARE__ID_BYTES, TARE__RING_SUFFIX);
        tare__source *source = source_by_file(collector, file);
        if (source) {
            if (source->pid != sender.pid)
                set_pid(collector, source, sender.pid);
        } else {
            lend_reserve(collector);
            if (!open_source(collector, collector->folder.path, file, sender.pid) && collector->folder.fallback[0])
                open_source(collector, collector->folder.fallback, file, sender.pid);
            take_reserve_back(collector);
        }
    }
}

/* Its process was killed before it wrote the first word: it is empty. */
static bool is_unborn(int folder, const char *file)
{
    char magic[8] = {0};
    int fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, magic, sizeof magic, 0);
    if (fd >= 0)
        close(fd);
    return got == 0 || (got == (ssize_t)sizeof magic && memcmp(magic, "\0\0\0\0\0\0\0", sizeof magic) == 0);
}

static void scan(tare__collector *collector, const char *folder)
{
    DIR *list = folder[0] ? opendir(folder) : NULL;
    if (!list) {
        collector->folder_gone = collector->folder_gone || (folder[0] && errno == ENOENT);
        collector->unread_rings += collector->salvaging && folder[0] && errno != ENOENT;
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(list)) != NULL) {
        if (tare__ring_name(entry->d_name) && !source_by_file(collector, entry->d_name) &&
            !open_source(collector, folder, entry->d_name, 0) && collector->salvaging)
            collector->unread_rings += !is_unborn(dirfd(list), entry->d_name);
    }
    closedir(list);
}

uint32_t tare__sources_unread(const tare__collector *collector)
{
    const char *folders[] = {collector->folder.path, collector->folder.fallback};
    uint32_t n = 0;
    for (size_t i = 0; i < TARE__COUNT_OF(folders); i++) {
        DIR *list = folders[i][0] ? opendir(folders[i]) : NULL;
        n += folders[i][0] && !list && errno != ENOENT; /* no memory, no descriptor: at least one, as far as is known */
        for (struct dirent *entry; list && (entry = readdir(list)) != NULL;)
            n += tare__ring_name(entry->d_name) && !is_done(collector, entry->d_name) &&
                 !is_unborn(dirfd(list), entry->d_name);
        if (list)
            closedir(list);
    }
    return n;
}

void tare__sources_find(tare__collector *collector)
{
    if (collector->folder.socket >= 0)
        hear(collector);
    uint64_t now = tare__monotonic_ns();
    if (now - collector->folder_scan_ns < FOLDER_SCAN_NS && !collector->salvaging)
        return;
    collector->folder_scan_ns = now;
    collector->unread_rings = 0;
    lend_reserve(collector);
    scan(collector, collector->folder.path);
    scan(collector, collector->folder.fallback);
    take_reserve_back(collector);
}

tare__stream *tare__source_stream(tare__collector *collector, tare__source *source, const tare__chunk *chunk)
{
    uint32_t number = chunk->stream;
    if (number == 0 || number > (1u << 28))
        return NULL;
    if (!tare__array_fit_zeroed(&source->streams, &source->stream_room, number, sizeof *source->streams))
        return NULL;
    tare__stream *stream = source->streams[number - 1];
    if (!stream) {
        stream = source->streams[number - 1] = calloc(1, sizeof *stream);
        if (!stream)
            return NULL;
        stream->id = ++collector->stream_count;
        stream->number = number;
        stream->sealed_ns = tare__monotonic_ns();
    }
    char name[TARE__THREAD_NAME_BYTES];
    memcpy(name, chunk->thread_name, sizeof name);
    name[sizeof name - 1] = '\0';
    uint64_t spans = atomic_load(&chunk->dropped_spans), others = atomic_load(&chunk->dropped_others);
    if (stream->tid != chunk->tid || strcmp(stream->name, name) != 0 || stream->dropped_spans < spans ||
        stream->dropped_others < others) {
        stream->tid = chunk->tid;
        strcpy(stream->name, name);
        if (spans > stream->dropped_spans) {
            collector->dropped_spans += spans - stream->dropped_spans;
            stream->dropped_spans = spans;
        }
        if (others > stream->dropped_others)
            stream->dropped_others = others;
        stream->told = false;
    }
    return stream;
}

/* Target buffer size of this process: the default, and for one that records a lot, eight times what waits at a tick.
 * This gives a preempted collector time to come back. */
static uint64_t wanted_bytes(const tare__collector *collector, const tare__source *source)
{
    uint64_t busy = (uint64_t)source->most_waiting * 8 * TARE__CHUNK_BYTES, pool = collector->folder.page->pool_bytes;
    if (busy > collector->busy_pool_bytes)
        busy = collector->busy_pool_bytes;
    return busy > pool ? busy : pool;
}

/* The rest of a process's buffer, in small steps: zeroed here, not in the program. */
void tare__source_grow(tare__collector *collector, tare__source *source)
{
    tare__ring *ring = source->ring;
    tare__session_page *page = collector->folder.page;
    uint32_t idle = 0;
    uint64_t more = (uint64_t)GROW_CHUNKS * TARE__CHUNK_BYTES;
    if (atomic_load(&ring->chunk_count) * (uint64_t)TARE__CHUNK_BYTES + more > wanted_bytes(collector, source) ||
        source->gone ||
        source->full_grown || !atomic_compare_exchange_strong(&ring->growing, &idle, 1))
        return;
    uint32_t count = atomic_load(&ring->chunk_count); /* from here on only this process changes it */
    uint64_t at = source->chunks_offset + (uint64_t)count * TARE__CHUNK_BYTES;
    int fd = open_ring(collector, source);
    if (atomic_fetch_sub(&page->bytes_left, (int64_t)more) < (int64_t)more || fd < 0 ||
        fallocate(fd, 0, (off_t)at, (off_t)more) != 0 || !map_all(source, fd, source->shared)) {
        atomic_fetch_add(&page->bytes_left, (int64_t)more);
        source->full_grown = fd >= 0;
    } else {
        ring = source->ring;
        for (uint64_t page_at = at; page_at < at + more; page_at += 4096)
            *(volatile uint8_t *)((uint8_t *)ring + page_at + 4095) = 0;
        atomic_store_explicit(&ring->chunk_count, count + GROW_CHUNKS, memory_order_release);
        atomic_fetch_add(&ring->given_back, GROW_CHUNKS);
    }
    close_ring(collector, source, fd);
    atomic_store(&ring->growing, 0);
}

bool tare__source_map_growth(tare__collector *collector, tare__source *source)
{
    uint32_t count = atomic_load_explicit(&source->ring->chunk_count, memory_order_acquire);
    if (count <= TARE__RING_CHUNKS_MAX &&
        source->chunks_offset + (uint64_t)count * TARE__CHUNK_BYTES <= source->bytes)
        return true;
    int fd = open_ring(collector, source), failed = fd < 0 ? errno : 0;
    if (fd >= 0 && !map_all(source, fd, source->shared))
        failed = errno;
    close_ring(collector, source, fd);
    if (!failed && !tare__ring_check(source->ring, source->bytes))
        return true;
    if (failed && !source->gone)
        return false; /* no descriptor or no memory now: retried in the next round */
    source->broken = true;
    snprintf(source->reason, sizeof source->reason,
             failed ? "its ring could not be read: %s" : "its ring was overwritten", strerror(failed));
    return false;
}

void tare__source_check_alive(tare__collector *collector, tare__source *source)
{
    if (source->gone)
        return;
    struct pollfd events = {.fd = source->pidfd, .events = POLLIN};
    uint64_t now = tare__monotonic_ns();
    bool ended = source->pidfd >= 0 && poll(&events, 1, 0) > 0;
    if (source->pidfd < 0 && now - source->asked_ns >= FOLDER_SCAN_NS) {
        source->asked_ns = now;
        ended = pid_ended(source);
    }
    if (ended || atomic_load(&source->ring->closed)) {
        source->gone = true;
        source->left_ticks = tare__clock_ticks(collector->folder.page->clock);
    }
}
