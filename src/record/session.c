/* session: detects, starts and ends sessions, and sets the gate that every inline function tests.
 * Start and stop are for one thread at a time; the rest may be called from any.
 * Must not know who writes the trace, or how. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record.h"

#define HELPER_ANSWER_MS 10000
#define OPTIONS_MOST 4096u /* bytes: a larger size was never initialized */
#define HELPER_FINISH_MS 600000 /* the rest of the trace may be large, and its disk slow */
#define HELPER_POLL_MS 250

TARE_API int tare__gate = 2;
_Atomic uint32_t tare__modes;

static _Atomic uint32_t found_out; /* 0: not yet, 1: in progress, 2: known */
static int helper_socket = -1;     /* of a session started by this process */
static int helper_pid;
static int helper_owner;           /* the process that started it: children created by fork only share the socket */
static char own_trace[TARE__PATH_BYTES];

static int gate_for(uint32_t modes)
{
    if (modes & TARE__MODE_FORWARD)
        return 2;
    if (!(modes & TARE__MODE_SESSION))
        return 0;
    return modes == TARE__MODE_SESSION ? 1 : 2;
}

void tare__modes_set(uint32_t set, uint32_t clear)
{
    uint32_t before = atomic_load(&tare__modes), after;
    do
        after = (before | set) & ~clear;
    while (!atomic_compare_exchange_weak(&tare__modes, &before, after));
    do { /* another thread may have changed them in the meantime: the last one corrects the gate */
        after = atomic_load(&tare__modes);
        __atomic_store_n(&tare__gate, gate_for(after), __ATOMIC_SEQ_CST);
    } while (atomic_load(&tare__modes) != after);
}

/* The session's ticks if this process may not read the counter: from the first and the latest sync, in which the
 * collector reads both clocks. */
static uint64_t ticks_by_syncs(const tare__session_page *page)
{
    static _Atomic uint64_t latest;
    const tare__clock_sync *first = &page->syncs[0], *last;
    uint64_t since = tare__monotonic_ns();
    for (;;) {
        uint32_t n = atomic_load_explicit(&page->sync_count, memory_order_acquire);
        last = &page->syncs[n <= TARE__SESSION_SYNCS ? n - !!n : 1 + (n - 2) % (TARE__SESSION_SYNCS - 1)];
        if (last->monotonic_ns > first->monotonic_ns || tare__monotonic_ns() - since > 100000000u)
            break;
        usleep(1000); /* the second sync follows within 5 ms of the session's start */
    }
    uint64_t now = tare__monotonic_ns();
    double rate = last->monotonic_ns > first->monotonic_ns
                      ? (double)(last->ticks - first->ticks) / (double)(last->monotonic_ns - first->monotonic_ns)
                      : 1;
    uint64_t ticks = first->ticks + (uint64_t)((double)(now - first->monotonic_ns) * rate);
    uint64_t before = atomic_load(&latest);
    while (ticks > before && !atomic_compare_exchange_weak(&latest, &before, ticks))
        ;
    return ticks > before ? ticks : before; /* a corrected rate must not move time backwards */
}

uint64_t tare__ticks(void)
{
    uint32_t modes = atomic_load_explicit(&tare__modes, memory_order_relaxed);
    if (TARE__LIKELY(!(modes & TARE__MODE_NO_TSC)))
        return tare__tsc();
    const tare__session_page *page = atomic_load_explicit(&tare__session, memory_order_relaxed);
    return page && page->clock == TARE__CLOCK_TSC ? ticks_by_syncs(page) : tare__monotonic_ns();
}

/* ---- attaching ------------------------------------------------------------------------------------------------- */

/* The folder must be a directory of this user that no other user can enter, since its content is trusted. */
static int open_session(const char *folder, tare__session_page **page)
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return errno == EACCES ? TARE_E_PERMISSION : TARE_E_SYSTEM;
    struct stat about;
    int status = TARE_E_PERMISSION, fd = -1;
    if (fstat(dir, &about) == 0 && about.st_uid == geteuid() && (about.st_mode & 077) == 0)
        fd = openat(dir, TARE__SESSION_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    close(dir);
    if (fd < 0)
        return status;
    void *map = MAP_FAILED;
    if (fstat(fd, &about) == 0 && about.st_size >= (off_t)sizeof **page)
        map = mmap(NULL, sizeof **page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return TARE_E_SYSTEM;
    *page = map;
    if (tare__session_check(*page, (uint64_t)about.st_size)) {
        munmap(map, sizeof **page);
        return TARE_E_VERSION;
    }
    return 0;
}

static bool make_process_page(void)
{
    if (tare__here)
        return true;
    size_t bytes = (sizeof(tare__process) + 4095) & ~(size_t)4095;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    if (madvise(map, bytes, MADV_WIPEONFORK) != 0) {
        munmap(map, bytes);
        return false;
    }
    tare__here = map;
    return true;
}

int tare__session_attach(const char *folder)
{
    if (strnlen(folder, TARE__PATH_BYTES) >= TARE__PATH_BYTES)
        return TARE_E_USAGE;
    tare__session_page *page = NULL;
    int status = open_session(folder, &page);
    if (status)
        return status;
    if (!make_process_page() || !tare__threads_prepare()) {
        atomic_fetch_add(&page->refused[TARE__REFUSED_MEMORY], 1);
        munmap(page, sizeof *page);
        return TARE_E_MEMORY;
    }
    tare__threads_forget();
    strcpy(tare__session_folder, folder);
    tare__session = page;
    bool usable_tsc = page->clock == TARE__CLOCK_TSC && !tare__clock_tsc_forbidden();
    tare__modes_set(TARE__MODE_SESSION | (usable_tsc ? 0 : TARE__MODE_NO_TSC), TARE__MODE_PAUSED);
    return 0;
}

void tare__session_detach(void)
{
    tare__modes_set(0, TARE__MODE_SESSION | TARE__MODE_PAUSED);
    tare__process_leave();
}

/* A program whose libtare has another ABI than the session is not recorded, and the session is notified. */
static void stand_back(const char *folder, tare__refusal why)
{
    tare__session_page *page = NULL;
    if (open_session(folder, &page) == 0) {
        atomic_fetch_add(&page->refused[why], 1);
        munmap(page, sizeof *page);
    }
}

/* Code that runs before libc's startup (DT_PREINIT_ARRAY) has no environment yet; the kernel has it. */
static const char *session_of_environment(char found[TARE__PATH_BYTES])
{
    if (environ || getauxval(AT_SECURE))
        return secure_getenv(TARE__ENV_SESSION);
    static char text[1 << 17];
    int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    size_t got = 0;
    for (ssize_t n; fd >= 0 && got < sizeof text - 1 && (n = read(fd, text + got, sizeof text - 1 - got)) > 0;)
        got += (size_t)n;
    if (fd >= 0)
        close(fd);
    size_t name = strlen(TARE__ENV_SESSION "=");
    for (size_t at = 0; at < got; at += strlen(text + at) + 1)
        if (strncmp(text + at, TARE__ENV_SESSION "=", name) == 0 && strlen(text + at + name) < TARE__PATH_BYTES)
            return strcpy(found, text + at + name);
    return NULL;
}

bool tare__find_out(void)
{
    if (TARE__LIKELY(atomic_load_explicit(&found_out, memory_order_acquire) == 2))
        return tare__gate_now() != 0;
    uint32_t not_yet = 0;
    uint64_t before;
    int saved_errno = errno;
    tare__signals_hold(&before);
    if (!atomic_compare_exchange_strong(&found_out, &not_yet, 1)) {
        tare__signals_release(&before);
        return false; /* another thread is doing it */
    }
    char room[TARE__PATH_BYTES];
    const char *folder = session_of_environment(room);
    if (!tare__home_claim()) {
        if (tare__forward)
            tare__modes_set(TARE__MODE_FORWARD, 0);
        else if (folder)
            stand_back(folder, TARE__REFUSED_COPY);
    } else if (folder && folder[0]) {
        tare__session_attach(folder);
    }
    if (atomic_load(&tare__modes) == 0)
        tare__modes_set(0, 0); /* closes the gate */
    atomic_store_explicit(&found_out, 2, memory_order_release);
    tare__signals_release(&before);
    errno = saved_errno;
    return tare__gate_now() != 0;
}

/* Before any constructor of the program, which may record. */
__attribute__((constructor(101))) static void library_loaded(void)
{
    tare__find_out();
}

/* ---- a session started by this process ------------------------------------------------------------------------ */

/* The state letter of a process in /proc; 0: unknown. */
static char state_of(int pid)
{
    char path[32], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *name_ends = strrchr(text, ')');
    return name_ends && name_ends[1] == ' ' ? name_ends[2] : 0;
}

/* True: there is a response. A stopped helper is waited for no longer than one that does not start; a working one
 * may take its time. */
static bool wait_for_helper(int socket, int pid, int wait_ms)
{
    uint64_t from = tare__monotonic_ns(), moved = from;
    for (;;) {
        struct pollfd until = {.fd = socket, .events = POLLIN};
        int ready = poll(&until, 1, wait_ms < HELPER_POLL_MS ? wait_ms : HELPER_POLL_MS);
        uint64_t now = tare__monotonic_ns();
        if (ready > 0)
            return true;
        char state = state_of(pid);
        if (state != 'T' && state != 't')
            moved = now;
        if ((ready < 0 && errno != EINTR) || now - from > (uint64_t)wait_ms * 1000000u ||
            now - moved > HELPER_ANSWER_MS * UINT64_C(1000000))
            return false;
    }
}

static int ask_helper(int socket, int pid, const tare__serve_request *request, tare__serve_reply *reply, int wait_ms)
{
    if (send(socket, request, sizeof *request, MSG_NOSIGNAL) != (ssize_t)sizeof *request)
        return TARE_E_SYSTEM;
    if (!wait_for_helper(socket, pid, wait_ms) || recv(socket, reply, sizeof *reply, 0) != (ssize_t)sizeof *reply)
        return TARE_E_SYSTEM;
    return reply->abi == TARE__RING_ABI ? reply->status : TARE_E_VERSION;
}

static char start_error[TARE__PATH_BYTES];

/* A program compiled with an older header has a shorter struct: missing fields have their defaults. A longer struct
 * of a newer header is accepted only if it sets no field that is unknown here. */
static int take_options(const tare_options *given, tare_options *options)
{
    *options = (tare_options){.size = sizeof *options};
    if (!given)
        return 0;
    if (given->size < offsetof(tare_options, output) || given->size % sizeof(uint64_t) || given->size > OPTIONS_MOST) {
        snprintf(start_error, sizeof start_error,
                 "tare_options.size is %u: set it to sizeof(tare_options), %zu in this version", (unsigned)given->size,
                 sizeof *options);
        return TARE_E_USAGE;
    }
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof *options; i < given->size; i++)
        if (bytes[i]) {
            snprintf(start_error, sizeof start_error,
                     "tare_options has a field at byte %zu that libtare " TARE_VERSION
                     " does not know: leave it 0, or use a newer libtare",
                     i / sizeof(uint64_t) * sizeof(uint64_t));
            return TARE_E_USAGE;
        }
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    return 0;
}

static int start_own(const tare_options *options)
{
    tare__serve_request request = {.abi = TARE__RING_ABI, .kind = TARE__SERVE_START, .pid = getpid()};
    const char *output = options->output ? options->output : "";
    char helper[TARE__PATH_BYTES];
    int sockets[2];
    if (strnlen(output, sizeof request.output) >= sizeof request.output)
        return TARE_E_USAGE;
    strcpy(request.output, output);
    request.max_bytes = options->max_bytes;
    request.last_ns = options->last_ns;
    if (!tare__helper_find(options->helper, helper))
        return TARE_E_NO_HELPER;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
        return TARE_E_SYSTEM;
    static tare__serve_reply reply;
    memset(&reply, 0, sizeof reply); /* of an earlier start */
    int pid = 0;
    int status = tare__helper_spawn(helper, sockets[1], &pid);
    close(sockets[1]);
    if (status == 0)
        status = ask_helper(sockets[0], pid, &request, &reply, HELPER_ANSWER_MS);
    if (status)
        memcpy(start_error, reply.trace, sizeof start_error - 1);
    if (status == 0)
        status = tare__session_attach(reply.folder);
    if (status) {
        close(sockets[0]);
        return status;
    }
    helper_socket = sockets[0];
    helper_pid = pid;
    helper_owner = getpid();
    memcpy(own_trace, reply.trace, sizeof own_trace);
    return 0;
}

TARE_API int tare_start(const tare_options *options)
{
    static _Atomic uint32_t starting;
    tare__find_out();
    if (tare__forward)
        return tare__forward->start(options);
    if (atomic_load(&tare__modes) & TARE__MODE_SESSION) {
        if (helper_socket >= 0 && helper_owner == getpid())
            return TARE_E_BUSY;
        tare_resume();
        return 0;
    }
    uint32_t idle = 0;
    if (!atomic_compare_exchange_strong(&starting, &idle, 1))
        return TARE_E_BUSY;
    int saved_errno = errno;
    start_error[0] = '\0';
    tare_options own;
    int status = take_options(options, &own);
    if (!status)
        status = start_own(&own);
    errno = saved_errno;
    atomic_store(&starting, 0);
    return status;
}

TARE_API const char *tare_start_error(void)
{
    return start_error;
}

TARE_API int tare_stop(void)
{
    tare__find_out();
    if (tare__forward)
        return tare__forward->stop();
    if (!(atomic_load(&tare__modes) & TARE__MODE_SESSION) && helper_socket < 0)
        return TARE_E_NO_SESSION;
    if (helper_socket < 0 || helper_owner != getpid()) { /* the session of another process, which ends it */
        tare_pause();
        return 0;
    }
    int saved_errno = errno;
    int socket = helper_socket;
    helper_socket = -1;
    tare__session_detach();
    tare__serve_request request = {.abi = TARE__RING_ABI, .kind = TARE__SERVE_STOP, .pid = getpid()};
    static tare__serve_reply reply;
    int status = ask_helper(socket, helper_pid, &request, &reply, HELPER_FINISH_MS);
    close(socket);
    errno = saved_errno;
    return status;
}

TARE_API void tare_pause(void)
{
    tare__find_out();
    if (tare__forward)
        tare__forward->pause();
    else if (atomic_load(&tare__modes) & TARE__MODE_SESSION)
        tare__modes_set(TARE__MODE_PAUSED, 0);
}

TARE_API void tare_resume(void)
{
    tare__find_out();
    if (tare__forward)
        tare__forward->resume();
    else
        tare__modes_set(0, TARE__MODE_PAUSED);
}

TARE_API int tare_recording(void)
{
    tare__find_out();
    if (tare__forward)
        return tare__forward->recording();
    uint32_t modes = atomic_load(&tare__modes);
    return (modes & TARE__MODE_SESSION) && !(modes & TARE__MODE_PAUSED);
}

TARE_API const char *tare_output(void)
{
    tare__find_out();
    if (tare__forward)
        return tare__forward->output();
    return tare__in_session() ? tare__session->trace : own_trace;
}
