/* readings: clocks, resident memory and the kernel's high-water mark of it, by system calls on descriptors that are
 * kept open. The samplers' readers are not used here: a block costs a few microseconds, and they handle neither
 * forks nor descriptors whose number was reused for another file.
 * Attached to the interpreter, which guards the state. Must not know blocks. */
#define _GNU_SOURCE
#include "readings.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t tare__py_clock_ns(void) { return clock_of(CLOCK_MONOTONIC); }
uint64_t tare__py_thread_cpu_ns(void) { return clock_of(CLOCK_THREAD_CPUTIME_ID); }
uint64_t tare__py_process_cpu_ns(void) { return clock_of(CLOCK_PROCESS_CPUTIME_ID); }

double tare__py_unix_time(uint64_t clock_ns)
{
    static uint64_t offset, at_ns;
    if (!offset || clock_ns - at_ns > 1000000000u) {
        at_ns = clock_of(CLOCK_MONOTONIC);
        offset = clock_of(CLOCK_REALTIME) - at_ns;
    }
    return (double)(clock_ns + offset) / 1e9;
}

/* ---- descriptors of /proc/self, which are those of the process that opened them ---------------------------- */

typedef struct kept_file {
    const char *path;
    int flags;
    int fd; /* -1: not open */
    dev_t device;
    ino_t inode;
} kept_file;

static kept_file statm = {"/proc/self/statm", O_RDONLY, -1, 0, 0};
static kept_file status = {"/proc/self/status", O_RDONLY, -1, 0, 0};
static kept_file clear_refs = {"/proc/self/clear_refs", O_WRONLY, -1, 0, 0};

/* 1 on a page that a fork clears: 0 identifies a child, however it was created. */
static volatile char *same_process;

static bool is_ours(const kept_file *file)
{
    struct stat now;
    return file->fd >= 0 && fstat(file->fd, &now) == 0 && now.st_dev == file->device && now.st_ino == file->inode;
}

static void forget(kept_file *file)
{
    if (is_ours(file)) /* a program that closes all descriptors may have reused the number for another file */
        close(file->fd);
    file->fd = -1;
}

static bool reopen(kept_file *file)
{
    struct stat now;
    forget(file);
    file->fd = open(file->path, file->flags | O_CLOEXEC);
    if (file->fd >= 0 && fstat(file->fd, &now) == 0) {
        file->device = now.st_dev;
        file->inode = now.st_ino;
    }
    return file->fd >= 0;
}

static void check_fork(void)
{
    if (__builtin_expect(same_process && *same_process, 1))
        return;
    if (!same_process) {
        long page = sysconf(_SC_PAGESIZE);
        void *made = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED)
            return;
        madvise(made, (size_t)page, MADV_WIPEONFORK);
        same_process = made;
    }
    *same_process = 1;
    forget(&statm);
    forget(&status);
    forget(&clear_refs);
}

/* ---- resident memory ------------------------------------------------------------------------------------- */

/* The number at *text and the space after it; 0 where the text differs. */
static uint64_t number_at(const char **text)
{
    uint64_t number = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    *text = at + 1;
    return *at == ' ' ? number : 0;
}

/* "765 446 417 5 0 123 0\n": the second number, in pages. Strict, so that another file is rejected. */
static uint64_t second_of_seven(char *text, ssize_t n)
{
    if (n < 14 || text[n - 1] != '\n' || text[n - 2] != '0' || text[n - 3] != ' ')
        return 0;
    text[n - 1] = 0;
    const char *at = text;
    uint64_t size = number_at(&at), second = number_at(&at);
    return size >= second ? second : 0;
}

uint64_t tare__py_rss(void)
{
    static uint64_t page;
    char text[160];
    check_fork();
    if (!page)
        page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (int attempt = 0; attempt < 2; attempt++) {
        if (statm.fd < 0 && !reopen(&statm))
            return 0;
        uint64_t pages = second_of_seven(text, pread(statm.fd, text, sizeof text, 0));
        if (pages)
            return pages * page;
        forget(&statm);
    }
    return 0;
}

/* ---- the high-water mark ---------------------------------------------------------------------------------- */

/* VmHWM; 0: unavailable. */
static uint64_t mark_of_status(void)
{
    char text[4096];
    for (int attempt = 0; attempt < 2; attempt++) {
        if (status.fd < 0 && !reopen(&status))
            return 0;
        ssize_t n = pread(status.fd, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = 0;
        unsigned long long kilobytes;
        const char *line = strstr(text, "\nVmHWM:");
        if (line && sscanf(line + 7, "%llu", &kilobytes) == 1)
            return kilobytes * 1024;
        forget(&status);
    }
    return 0;
}

/* getrusage costs a thirtieth of reading the status file (for a thread it has the same mark and visits no other
 * thread), but returns the larger of the mark and of the process's size before it called exec. That size never
 * changes, so it is not larger than the smallest value ever read: a larger value is the mark. Once the status file has
 * shown the same value, it is the mark as long as it does not fall, since a mark only grows until it is reset. */
static bool mark_is_seen;

static uint64_t high_water(uint64_t rss_now)
{
    static uint64_t smallest = UINT64_MAX, before;
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage))
        return mark_of_status();
    uint64_t seen = (uint64_t)usage.ru_maxrss * 1024;
    if (seen < before)
        mark_is_seen = false;
    before = seen;
    bool reported = mark_is_seen || seen > smallest || tare__py_peak_is_near(seen, rss_now);
    if (seen < smallest)
        smallest = seen;
    if (reported)
        return seen;
    uint64_t mark = mark_of_status();
    mark_is_seen = tare__py_peak_is_near(seen, mark);
    return mark ? mark : seen;
}

#define RECENT_NS 1000

static struct {
    tare__py_memory memory;
    uint64_t at_ns;
    pthread_t thread;
    bool peak;
    bool fresh; /* the time of the reading is not known yet */
} recent;

tare__py_memory tare__py_memory_now(uint64_t now_ns, bool peak)
{
    pthread_t thread = pthread_self();
    if (now_ns - recent.at_ns < RECENT_NS && pthread_equal(recent.thread, thread) && recent.peak >= peak)
        return recent.memory;
    recent.memory.rss = tare__py_rss();
    recent.memory.mark = peak ? high_water(recent.memory.rss) : 0;
    recent.thread = thread;
    recent.peak = peak;
    recent.at_ns = now_ns;
    recent.fresh = true;
    return recent.memory;
}

void tare__py_memory_read_at(uint64_t clock_ns)
{
    if (recent.fresh)
        recent.at_ns = clock_ns;
    recent.fresh = false;
}

/* Descriptors may be exhausted temporarily: each call tries again. */
bool tare__py_memory_reset_mark(tare__py_memory *now)
{
    if ((!is_ours(&clear_refs) && !reopen(&clear_refs)) || pwrite(clear_refs.fd, "5", 1, 0) != 1) {
        forget(&clear_refs);
        return false;
    }
    mark_is_seen = false;
    recent.memory.mark = now->mark = high_water(now->rss);
    return true;
}
