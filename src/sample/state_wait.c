/* state_wait: what a thread of another process waits for, by its system call and the descriptors in it.
 * One thread owns the caches. Everything that is read belongs to others and may be invalid: sizes are bounded, and an
 * address that cannot be read makes the answer less specific. Must not know whether the thread runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "files.h"
#include "state.h"
#include "state_wait.h"

#define DESCRIPTORS_MAX 64u /* of one call: those after them are not looked at */
#define SELECT_MAX 1024     /* descriptors in a set */
#define EPOLL_KEPT_NS 1000000000u /* reading its list stops the other process's epoll_ctl for a moment */
#define EPOLL_BYTES 8192
#define MANY_KEPT_NS 100000000u /* a descriptor costs microseconds, and a call may have dozens */

/* ---- the other process ------------------------------------------------------------------------------------------ */

void tare__waiting_start(tare__waiting *waiting, pid_t pid, pid_t tid)
{
    memset(waiting, 0, sizeof *waiting);
    waiting->pid = pid;
    waiting->tid = tid;
    waiting->epoll = -1;
    waiting->last_number = TARE__CALL_NONE;
}

static int read_task(const tare__waiting *waiting, const char *name, char *out, size_t room)
{
    char path[80];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)waiting->pid, (int)waiting->tid, name);
    return tare__sample_read("", path, out, room);
}

/* The name may contain parentheses; fields are numbered as in proc(5). Some are too large for a number. */
tare__task_stat tare__task_stat_of(const char *text, int bytes)
{
    tare__task_stat stat = {.cpu = -1};
    const char *close = bytes > 0 ? memrchr(text, ')', (size_t)bytes) : NULL;
    if (!close || text + bytes - close < 4)
        return stat;
    stat.letter = close[2];
    tare__scan rest = {close + 3, text + bytes};
    for (int field = 4; field <= 39; field++) {
        tare__scan word = tare__scan_word(&rest);
        int64_t value;
        if ((field != 22 && field != 39) || !tare__scan_number(&word, &value))
            continue;
        if (field == 22)
            stat.start_time = (uint64_t)value;
        else
            stat.cpu = (int)value;
    }
    return stat;
}

tare__task_stat tare__waiting_stat(const tare__waiting *waiting)
{
    char text[1024];
    int got = read_task(waiting, "stat", text, sizeof text);
    return tare__task_stat_of(text, got);
}

/* False: not all of it can be read. */
static bool read_memory(pid_t pid, uint64_t address, void *out, size_t bytes)
{
    struct iovec here = {out, bytes}, there = {(void *)(uintptr_t)address, bytes};
    return address && process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* ---- kinds of descriptors --------------------------------------------------------------------------------------- */
/* In order of preference, if a call waits for several. */
typedef enum kind {
    NETWORK,
    PROCESS, /* pidfd */
    GPU,
    LOCAL,   /* socket within this machine */
    PIPE,
    EVENT,
    TIMER,
    FILE_OR_FIFO,
    ANOTHER,
    EPOLL,
    SOCKET, /* of a family that is not known yet */
    CLOSED,
    KINDS
} kind;

static const tare__thread_state state_of_kind[KINDS] = {
    [NETWORK] = TARE__STATE_NETWORK, [PROCESS] = TARE__STATE_CHILD, [GPU] = TARE__STATE_GPU,
    [LOCAL] = TARE__STATE_PIPE,      [PIPE] = TARE__STATE_PIPE,     [EVENT] = TARE__STATE_PIPE,
    [TIMER] = TARE__STATE_SLEEP,     [FILE_OR_FIFO] = TARE__STATE_DISK, [ANOTHER] = TARE__STATE_OTHER,
    [EPOLL] = TARE__STATE_OTHER,     [SOCKET] = TARE__STATE_NETWORK, [CLOSED] = TARE__STATE_OTHER,
};

typedef struct prefix {
    const char *text;
    kind kind;
} prefix;

/* Of the texts of /proc/PID/fd; the first that matches. */
static const prefix links[] = {
    {"socket:[", SOCKET},
    {"pipe:[", PIPE},
    {"anon_inode:[eventfd]", EVENT},
    {"anon_inode:[timerfd]", TIMER},
    {"anon_inode:[eventpoll]", EPOLL},
    {"anon_inode:[pidfd]", PROCESS},
    {"pidfd:[", PROCESS}, /* since Linux 6.9 */
    {"anon_inode:sync_file", GPU},
    {"anon_inode:dmabuf", GPU},
    {"/dmabuf:", GPU},
    {"/dev/nvidia", GPU},
    {"/dev/dri/", GPU},
    {"/dev/kfd", GPU},
    {"/dev/accel", GPU},
    {"/dev/infiniband/", NETWORK},
    {"/dev/shm/", FILE_OR_FIFO},
    {"/dev/mqueue/", PIPE},
    {"/dev/", ANOTHER}, /* terminals */
    {"/", FILE_OR_FIFO},
};

/* Of the protocols that the kernel names. */
static const prefix protocols[] = {
    {"UNIX", LOCAL},
    {"NETLINK", ANOTHER},
    {"ALG", ANOTHER},
    {"", NETWORK},
};

static kind match(const prefix *table, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(text, table[i].text, strlen(table[i].text)) == 0)
            return table[i].kind;
    return ANOTHER;
}

static void descriptor_path(const tare__waiting *waiting, int fd, char out[64])
{
    snprintf(out, 64, "/proc/%d/fd/%d", (int)waiting->pid, fd);
}

/* Found by name, without a duplicate of the descriptor and in any network namespace. */
static kind socket_kind(const char *path)
{
    char protocol[64];
    ssize_t got = getxattr(path, "system.sockprotoname", protocol, sizeof protocol - 1);
    protocol[got > 0 ? got : 0] = '\0';
    return match(protocols, TARE__COUNT_OF(protocols), protocol);
}

static kind kind_of(tare__waiting *waiting, int fd)
{
    char path[64], link[sizeof waiting->kept[0].link];
    if (fd < 0)
        return CLOSED;
    descriptor_path(waiting, fd, path);
    ssize_t got = readlink(path, link, sizeof link - 1);
    if (got <= 0)
        return CLOSED;
    link[got] = '\0';
    tare__descriptor *kept = &waiting->kept[(unsigned)fd % TARE__DESCRIPTORS_KEPT];
    if (kept->fd == fd + 1 && strcmp(kept->link, link) == 0)
        return (kind)kept->kind;
    kind found = match(links, TARE__COUNT_OF(links), link);
    if (found == SOCKET)
        found = socket_kind(path);
    kept->fd = fd + 1;
    kept->kind = (uint8_t)found;
    memcpy(kept->link, link, sizeof link);
    return found;
}

/* A wait for a disk cannot be interrupted; only then is the file not asked, as its server may not answer. */
static tare__thread_state state_of_file(const tare__waiting *waiting, int fd)
{
#ifdef STATX_TYPE
    char path[64];
    struct statx about;
    descriptor_path(waiting, fd, path);
    if (tare__waiting_stat(waiting).letter != 'S' ||
        statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &about) != 0)
        return TARE__STATE_DISK;
    if (S_ISFIFO(about.stx_mode))
        return TARE__STATE_PIPE;
    if (S_ISCHR(about.stx_mode))
        return TARE__STATE_OTHER;
#else
    (void)waiting, (void)fd;
#endif
    return TARE__STATE_DISK;
}

static tare__thread_state by_letter(const tare__waiting *waiting)
{
    return tare__waiting_stat(waiting).letter == 'D' ? TARE__STATE_DISK : TARE__STATE_OTHER;
}

static tare__thread_state state_of_descriptor(tare__waiting *waiting, int fd)
{
    kind found = kind_of(waiting, fd);
    if (found == FILE_OR_FIFO)
        return state_of_file(waiting, fd);
    if (found == ANOTHER || found == CLOSED) /* a disk without a file system; close() */
        return by_letter(waiting);
    return state_of_kind[found];
}

/* ---- calls with several descriptors ----------------------------------------------------------------------------- */

static uint32_t epoll_kinds(tare__waiting *waiting, int epoll, size_t *count);

/* Others do not change the answer. */
static bool is_decided(uint32_t kinds)
{
    return kinds & 1u << NETWORK;
}

static uint32_t bit_of(tare__waiting *waiting, int fd, bool nested)
{
    size_t count;
    kind found = kind_of(waiting, fd);
    if (found == EPOLL && !nested)
        return epoll_kinds(waiting, fd, &count);
    return found == CLOSED ? 0 : 1u << found;
}

/* Its list has lines "tfd:        5 events:       19 …". */
static uint32_t epoll_kinds(tare__waiting *waiting, int epoll, size_t *count)
{
    uint64_t now_ns = tare__monotonic_ns();
    if (waiting->epoll == epoll && now_ns < waiting->epoll_until_ns) {
        *count = waiting->epoll_count;
        return waiting->epoll_kinds;
    }
    char path[64], text[EPOLL_BYTES];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)waiting->pid, epoll);
    int got = tare__sample_read("", path, text, sizeof text);
    tare__scan rest = tare__scan_of(text, got), line;
    uint32_t kinds = 0;
    int64_t fd;
    *count = 0;
    while (*count < DESCRIPTORS_MAX && !is_decided(kinds) && tare__scan_line(&rest, &line))
        if (tare__scan_skip(&line, "tfd:") && tare__scan_number(&line, &fd) && fd >= 0 && fd <= INT32_MAX) {
            kinds |= bit_of(waiting, (int)fd, true);
            ++*count;
        }
    waiting->epoll = epoll;
    waiting->epoll_until_ns = now_ns + EPOLL_KEPT_NS;
    waiting->epoll_kinds = kinds;
    waiting->epoll_count = *count;
    return kinds;
}

static tare__thread_state state_of_kinds(uint32_t kinds)
{
    for (unsigned i = 0; i < FILE_OR_FIFO; i++)
        if (kinds & 1u << i)
            return state_of_kind[i];
    return kinds ? TARE__STATE_OTHER : TARE__STATE_SLEEP;
}

static tare__thread_state state_of_poll(tare__waiting *waiting, const tare__call *call)
{
    struct {
        int fd;
        short events, returned;
    } polled[DESCRIPTORS_MAX];
    uint64_t n = (uint32_t)call->arguments[1];
    uint32_t kinds = 0;
    n = n > DESCRIPTORS_MAX ? DESCRIPTORS_MAX : n;
    if (n > 0 && !read_memory(waiting->pid, call->arguments[0], polled, n * sizeof *polled))
        return TARE__STATE_OTHER;
    for (size_t i = 0; i < n && !is_decided(kinds); i++)
        kinds |= bit_of(waiting, polled[i].fd, false);
    return state_of_kinds(kinds);
}

static tare__thread_state state_of_select(tare__waiting *waiting, const tare__call *call)
{
    unsigned char set[SELECT_MAX / 8], one[SELECT_MAX / 8];
    int64_t n = (int32_t)call->arguments[0];
    uint32_t kinds = 0;
    n = n < 0 ? 0 : n > SELECT_MAX ? SELECT_MAX : n;
    memset(set, 0, sizeof set);
    for (int i = 1; i <= 3 && n > 0; i++) {
        if (!call->arguments[i])
            continue;
        if (!read_memory(waiting->pid, call->arguments[i], one, (size_t)(n + 63) / 64 * 8))
            return TARE__STATE_OTHER;
        for (size_t at = 0; at < (size_t)(n + 7) / 8; at++)
            set[at] |= one[at];
    }
    size_t found = 0;
    for (int fd = 0; fd < n && found < DESCRIPTORS_MAX && !is_decided(kinds); fd++)
        if (set[fd / 8] & 1u << fd % 8) {
            kinds |= bit_of(waiting, fd, false);
            found++;
        }
    return state_of_kinds(kinds);
}

/* An event loop always has a descriptor by which its own process wakes it up: with nothing else, and with an end, it
 * sleeps. */
static tare__thread_state state_of_epoll(tare__waiting *waiting, const tare__call *call)
{
    size_t count;
    uint32_t kinds = epoll_kinds(waiting, (int)call->arguments[0], &count);
    const char *by_pointer = "epoll_pwait2";
    const char *name = tare__system_call_name(call->number);
    bool ends = name && strcmp(name, by_pointer) == 0 ? call->arguments[3] != 0 : (int32_t)call->arguments[3] > 0;
    const uint32_t wakes = 1u << LOCAL | 1u << EVENT, timer = 1u << TIMER;
    size_t timers = kinds & timer ? 1 : 0;
    if ((kinds & ~(wakes | timer)) == 0 && count <= 1 + timers && (ends || timers))
        return TARE__STATE_SLEEP;
    return state_of_kinds(kinds);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */
/* Functions of the kernel in which a thread waits for other threads that change the address space. */
static const char *const waits_for_threads[] = {"do_user_addr_fault", "lock_mm_and_find_vma", "do_page_fault",
                                                "exc_page_fault",     "handle_userfault",     "mmap_",
                                                "vma_",               "lock_vma"};
static const char *const waits_for_pages[] = {"folio", "page", "swap", "filemap", "bio", "blk", "wb_", "bit_wait"};

static tare__thread_state state_of_fault(const tare__waiting *waiting, bool in_call)
{
    char place[128];
    int got = read_task(waiting, "wchan", place, sizeof place);
    place[got > 0 ? got : 0] = '\0';
    for (size_t i = 0; i < TARE__COUNT_OF(waits_for_threads) && !in_call; i++)
        if (strncmp(place, waits_for_threads[i], strlen(waits_for_threads[i])) == 0)
            return TARE__STATE_OTHER;
    for (size_t i = 0; i < TARE__COUNT_OF(waits_for_pages) && in_call; i++)
        if (strstr(place, waits_for_pages[i]))
            return TARE__STATE_DISK;
    return in_call ? TARE__STATE_OTHER : TARE__STATE_DISK;
}

/* File systems in a process (FUSE) or on the network may wait like a FIFO does, so that a signal ends the call. The
 * file itself is not asked, as its server may not answer. */
static tare__thread_state state_of_open(const tare__waiting *waiting)
{
    static const struct {
        const char *place;
        tare__thread_state state;
    } places[] = {{"fifo", TARE__STATE_PIPE},    {"partner", TARE__STATE_PIPE}, {"fuse", TARE__STATE_DISK},
                  {"request", TARE__STATE_DISK}, {"nfs", TARE__STATE_DISK},     {"rpc", TARE__STATE_DISK}};
    char place[128];
    if (tare__waiting_stat(waiting).letter != 'S')
        return TARE__STATE_DISK;
    int got = read_task(waiting, "wchan", place, sizeof place);
    place[got > 0 ? got : 0] = '\0';
    for (size_t i = 0; i < TARE__COUNT_OF(places); i++)
        if (strstr(place, places[i].place))
            return places[i].state;
    return TARE__STATE_OTHER;
}

/* ---- other calls ------------------------------------------------------------------------------------------------ */
enum { FUTEX_WAIT_OP = 0, FUTEX_LOCK_PI_OP = 6, FUTEX_WAIT_BITSET_OP = 9, FUTEX_WAIT_REQUEUE_PI_OP = 11,
       FUTEX_LOCK_PI2_OP = 13, FUTEX_OP_MASK = 0x7f };
enum { LOCK_WAIT_OP = 7, LOCK_WAIT_OPEN_FILE_OP = 38 }; /* F_SETLKW, F_OFD_SETLKW */

static tare__thread_state state_of_futex(const tare__call *call, uint64_t *lock)
{
    static const uint64_t waits = 1u << FUTEX_WAIT_OP | 1u << FUTEX_LOCK_PI_OP | 1u << FUTEX_WAIT_BITSET_OP |
                                  1u << FUTEX_WAIT_REQUEUE_PI_OP | 1u << FUTEX_LOCK_PI2_OP;
    const char *name = tare__system_call_name(call->number);
    uint64_t operation = call->arguments[1] & FUTEX_OP_MASK;
    if (name && strcmp(name, "futex") == 0 && (operation >= 64 || !(waits >> operation & 1)))
        return TARE__STATE_OTHER;
    *lock = call->arguments[0];
    return TARE__STATE_LOCK;
}

static tare__thread_state state_of_futexes(const tare__waiting *waiting, const tare__call *call, uint64_t *lock)
{
    uint64_t first[3]; /* value, address, flags */
    if (read_memory(waiting->pid, call->arguments[0], first, sizeof first))
        *lock = first[1];
    return TARE__STATE_LOCK;
}

static tare__thread_state state_of_two(tare__waiting *waiting, const tare__call *call)
{
    const char *name = tare__system_call_name(call->number);
    bool third = name && (strcmp(name, "splice") == 0 || strcmp(name, "copy_file_range") == 0);
    uint32_t kinds = bit_of(waiting, (int)call->arguments[0], true) |
                     bit_of(waiting, (int)call->arguments[third ? 2 : 1], true);
    return kinds == 1u << FILE_OR_FIFO ? TARE__STATE_DISK : state_of_kinds(kinds);
}

/* A call that a signal interrupted continues as restart_syscall, with the same arguments. */
static int64_t restarted_number(const tare__waiting *waiting, const tare__call *call)
{
    static const struct {
        const char *place, *name;
    } places[] = {
        {"futex_", "futex"},
        {"do_sys_poll", "ppoll"},
        {"do_poll", "ppoll"},
        {"poll_schedule", "ppoll"},
        {"do_restart_poll", "ppoll"},
        {"hrtimer_nanosleep", "nanosleep"},
        {"alarm_timer", "nanosleep"},
        /* What continues a sleep belongs to the scheduler, whose functions are not named: its callers. */
        {"do_syscall_64", "nanosleep"},
        {"__do_sys_restart", "nanosleep"},
        {"__x64_sys_restart", "nanosleep"},
        {"__arm64_sys_restart", "nanosleep"},
        {"invoke_syscall", "nanosleep"},
    };
    if (waiting->last_stack == call->stack &&
        memcmp(waiting->last_arguments, call->arguments, sizeof call->arguments) == 0)
        return waiting->last_number;
    char place[128];
    int got = read_task(waiting, "wchan", place, sizeof place);
    place[got > 0 ? got : 0] = '\0';
    for (size_t i = 0; i < TARE__COUNT_OF(places); i++)
        if (strncmp(place, places[i].place, strlen(places[i].place)) == 0)
            return tare__system_call_number(places[i].name);
    return TARE__CALL_NONE;
}

static tare__thread_state state_of_call(tare__waiting *waiting, const tare__call *call, uint64_t *lock)
{
    switch (tare__wait_kind_of(call->number)) {
    case TARE__WAIT_FUTEX: return state_of_futex(call, lock);
    case TARE__WAIT_FUTEXES: return state_of_futexes(waiting, call, lock);
    case TARE__WAIT_SLEEP: return TARE__STATE_SLEEP;
    case TARE__WAIT_CHILD:
    case TARE__WAIT_SPAWN: return TARE__STATE_CHILD;
    case TARE__WAIT_DESCRIPTOR: return state_of_descriptor(waiting, (int)call->arguments[0]);
    case TARE__WAIT_TWO: return state_of_two(waiting, call);
    case TARE__WAIT_POLL: return state_of_poll(waiting, call);
    case TARE__WAIT_SELECT: return state_of_select(waiting, call);
    case TARE__WAIT_EPOLL: return state_of_epoll(waiting, call);
    case TARE__WAIT_DISK: return TARE__STATE_DISK;
    case TARE__WAIT_OPEN: return state_of_open(waiting);
    case TARE__WAIT_MEMORY: return state_of_fault(waiting, true);
    case TARE__WAIT_LOCK: return TARE__STATE_LOCK;
    case TARE__WAIT_FCNTL: {
        int operation = (int)call->arguments[1];
        bool waits = operation == LOCK_WAIT_OP || operation == LOCK_WAIT_OPEN_FILE_OP;
        return waits ? TARE__STATE_LOCK : by_letter(waiting);
    }
    case TARE__WAIT_MESSAGE: return TARE__STATE_PIPE;
    default: return by_letter(waiting);
    }
}

static bool has_many(int64_t number)
{
    tare__wait_kind kind = tare__wait_kind_of(number);
    return kind == TARE__WAIT_POLL || kind == TARE__WAIT_SELECT || kind == TARE__WAIT_EPOLL;
}

bool tare__waiting_is_known(const tare__waiting *waiting, int64_t number)
{
    return has_many(number) && tare__monotonic_ns() < waiting->many_until_ns;
}

tare__thread_state tare__waiting_state(tare__waiting *waiting, const tare__call *call, int64_t *number,
                                       uint64_t *lock)
{
    tare__call known = *call;
    *lock = 0;
    if (tare__wait_kind_of(call->number) == TARE__WAIT_RESTART) {
        known.number = restarted_number(waiting, call);
    } else {
        waiting->last_number = call->number;
        waiting->last_stack = call->stack;
        memcpy(waiting->last_arguments, call->arguments, sizeof call->arguments);
    }
    *number = known.number;
    if (has_many(known.number))
        waiting->many_until_ns = tare__monotonic_ns() + MANY_KEPT_NS;
    if (known.number == TARE__CALL_NONE && call->number == TARE__CALL_NONE)
        return state_of_fault(waiting, false);
    return state_of_call(waiting, &known, lock);
}
