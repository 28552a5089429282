/* native_events: samples of the registers and stacks of threads while they run, from the kernel's performance events.
 * One thread owns them.
 * Must not know how stacks are unwound, or what samples are used for.
 *
 * There is an event per thread and CPU, since inherited events can only write to the buffer of a CPU. The buffer of
 * each CPU belongs to an event of this program that counts nothing, so that it outlives all sampled threads. */
#define _GNU_SOURCE
#include "native_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "tare.h"

#define CPUS_MAX 1024
#define STACK_BYTES 32768u
#define BUFFER_BYTES (512u << 10)
#define BUFFER_MIN (64u << 10) /* more than one record */
#define RECORD_MAX 65536u
#define NO_RECORD UINT64_MAX

#if defined(__x86_64__)
/* Bits of PERF_SAMPLE_REGS_USER: ax bx cx dx si di bp sp ip, r8 to r15. The DWARF numbers in their order. */
#define REGS_MASK (UINT64_C(0x1ff) | UINT64_C(0xff) << 16)
static const uint8_t reg_numbers[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
#define REG_SP 7
#define IS_SUPPORTED true
#elif defined(__aarch64__)
#define REGS_MASK ((UINT64_C(1) << 33) - 1)
static const uint8_t reg_numbers[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                      17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
#define REG_SP 31
#define IS_SUPPORTED true
#else
#define REGS_MASK 0u
static const uint8_t reg_numbers[] = {0};
#define REG_SP 0
#define IS_SUPPORTED false
#endif

typedef struct cpu_buffer {
    int cpu, fd;
    unsigned char *pages; /* the control page, then `bytes` of data */
    size_t bytes;
    uint64_t head, next_ns; /* while it is drained: the end of its records, the time of the first; NO_RECORD: none */
} cpu_buffer;

struct tare__native_events {
    struct perf_event_attr attributes;
    cpu_buffer *buffers;
    size_t n_buffers, buffer_room;
    int *fds;
    size_t n_fds, fd_room;
    int waits; /* epoll */
    tare__native_losses losses;
    unsigned char record[RECORD_MAX];
};

static long open_event(struct perf_event_attr *attributes, pid_t pid, int cpu, int group, unsigned long flags)
{
    return syscall(SYS_perf_event_open, attributes, pid, cpu, group, flags);
}

tare__native_open_function *tare__native_open = open_event;

/* A little longer than asked for, and not by a simple ratio: a program that repeats itself every 1, 5, 10 or 20 ms of
 * CPU time would otherwise always be sampled at the same places. */
static uint64_t period_of(uint64_t interval_ns)
{
    return interval_ns + interval_ns * 382 / 10000;
}

/* ---- open ------------------------------------------------------------------------------------------------------- */
static struct perf_event_attr attributes_of(uint64_t interval_ns)
{
    struct perf_event_attr made = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof made,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .sample_period = period_of(interval_ns),
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .inherit = 1,
        .comm = 1,
        .comm_exec = 1,
        .exclude_callchain_user = 1,
        .exclude_hv = 1,
        .wakeup_events = 1,
        .sample_regs_user = REGS_MASK,
        .sample_stack_user = STACK_BYTES,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    return made;
}

static void without_kernel(struct perf_event_attr *attributes)
{
    attributes->exclude_kernel = 1;
    attributes->sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
}

static int fail_open(int failure, tare__error *error)
{
    char text[32] = "";
    if (failure == EACCES || failure == EPERM) {
        if (tare__sample_read("", "/proc/sys/kernel/perf_event_paranoid", text, sizeof text) > 0 && atoi(text) > 2)
            return tare__fail(error, TARE_E_PERMISSION,
                              "kernel.perf_event_paranoid is %d: sudo sysctl kernel.perf_event_paranoid=2", atoi(text));
        return tare__fail(error, TARE_E_PERMISSION,
                          "perf_event_open is not permitted: in a container, add the capability PERFMON, or a seccomp "
                          "profile that allows perf_event_open");
    }
    if (failure == ENOSYS || failure == ENOENT || failure == EOPNOTSUPP)
        return tare__fail(error, TARE_E_SYSTEM, "the kernel has no performance events (CONFIG_PERF_EVENTS)");
    return tare__fail(error, TARE_E_SYSTEM, "perf_event_open: %s", strerror(failure));
}

/* Whether this program may sample itself decides about the kernel, too. */
static int try_events(tare__native_events *events, tare__error *error)
{
    long fd = tare__native_open(&events->attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        without_kernel(&events->attributes);
        fd = tare__native_open(&events->attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    }
    if (fd < 0)
        return fail_open(errno, error);
    close((int)fd);
    return 0;
}

/* Smaller where the limit of locked memory (kernel.perf_event_mlock_kb) does not allow more. */
static bool map_buffer(cpu_buffer *buffer)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (buffer->bytes = BUFFER_BYTES; buffer->bytes >= BUFFER_MIN; buffer->bytes /= 2) {
        void *at = mmap(NULL, page + buffer->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd, 0);
        if (at != MAP_FAILED) {
            buffer->pages = at;
            return true;
        }
    }
    return false;
}

/* False: this CPU cannot be used. */
static bool open_buffer(tare__native_events *events, int cpu)
{
    struct perf_event_attr nothing = {.type = PERF_TYPE_SOFTWARE,
                                      .size = sizeof nothing,
                                      .config = PERF_COUNT_SW_DUMMY,
                                      .sample_type = PERF_SAMPLE_TID,
                                      .exclude_kernel = 1,
                                      .exclude_hv = 1,
                                      .wakeup_events = 1,
                                      .use_clockid = 1,
                                      .clockid = CLOCK_MONOTONIC};
    if (!tare__array_fit(&events->buffers, &events->buffer_room, events->n_buffers + 1, sizeof *events->buffers))
        return false;
    cpu_buffer *buffer = &events->buffers[events->n_buffers];
    *buffer = (cpu_buffer){.cpu = cpu, .fd = (int)tare__native_open(&nothing, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC)};
    if (buffer->fd < 0)
        return false;
    struct epoll_event wait = {.events = EPOLLIN | EPOLLET};
    if (!map_buffer(buffer) || epoll_ctl(events->waits, EPOLL_CTL_ADD, buffer->fd, &wait) != 0) {
        int failure = errno;
        if (buffer->pages)
            munmap(buffer->pages, (size_t)sysconf(_SC_PAGESIZE) + buffer->bytes);
        close(buffer->fd);
        errno = failure;
        return false;
    }
    events->n_buffers++;
    return true;
}

/* "0-3,8,10-11": all online ones. */
static int open_buffers(tare__native_events *events, tare__error *error)
{
    char text[4096] = "";
    int failure = 0;
    tare__sample_read("", "/sys/devices/system/cpu/online", text, sizeof text);
    for (char *at = text; *at >= '0' && *at <= '9';) {
        long first = strtol(at, &at, 10), last = *at == '-' ? strtol(at + 1, &at, 10) : first;
        for (long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++)
            if (!open_buffer(events, (int)cpu))
                failure = errno;
        at += *at == ',';
    }
    if (events->n_buffers)
        return 0;
    if (failure == EPERM || failure == ENOMEM)
        return tare__fail(error, TARE_E_PERMISSION,
                          "no memory for the buffers of performance events: sudo sysctl "
                          "kernel.perf_event_mlock_kb=2048");
    return fail_open(failure ? failure : ENOENT, error);
}

int tare__native_events_open(uint64_t interval_ns, tare__native_events **out, tare__error *error)
{
    *out = NULL;
    if (!IS_SUPPORTED)
        return tare__fail(error, TARE_E_SYSTEM, "not supported on this processor");
    tare__native_events *events = calloc(1, sizeof *events);
    if (!events)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    events->attributes = attributes_of(interval_ns);
    events->waits = epoll_create1(EPOLL_CLOEXEC);
    int status = events->waits < 0 ? tare__fail(error, TARE_E_SYSTEM, "epoll_create1: %s", strerror(errno))
                                   : try_events(events, error);
    if (!status)
        status = open_buffers(events, error);
    if (status)
        tare__native_events_close(events);
    else
        *out = events;
    return status;
}

void tare__native_events_close(tare__native_events *events)
{
    if (!events)
        return;
    for (size_t i = 0; i < events->n_fds; i++)
        close(events->fds[i]);
    for (size_t i = 0; i < events->n_buffers; i++) {
        munmap(events->buffers[i].pages, (size_t)sysconf(_SC_PAGESIZE) + events->buffers[i].bytes);
        close(events->buffers[i].fd);
    }
    if (events->waits >= 0)
        close(events->waits);
    free(events->fds);
    free(events->buffers);
    free(events);
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */
static int add_on_cpu(tare__native_events *events, pid_t tid, const cpu_buffer *buffer)
{
    long fd = tare__native_open(&events->attributes, tid, buffer->cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? TARE_E_SPACE
               : errno == EACCES || errno == EPERM ? TARE_E_PERMISSION : TARE_E_SYSTEM;
    if (tare__is_scarce((int)fd) || !tare__array_fit(&events->fds, &events->fd_room, events->n_fds + 1, sizeof(int))) {
        close((int)fd);
        return TARE_E_SPACE;
    }
    if (ioctl((int)fd, PERF_EVENT_IOC_SET_OUTPUT, buffer->fd) != 0) {
        close((int)fd);
        return TARE_E_SYSTEM;
    }
    events->fds[events->n_fds++] = (int)fd;
    return 0;
}

int tare__native_events_add(tare__native_events *events, pid_t tid)
{
    size_t before = events->n_fds;
    int status = 0;
    for (size_t i = 0; i < events->n_buffers && !status; i++)
        status = add_on_cpu(events, tid, &events->buffers[i]);
    while (status && events->n_fds > before)
        close(events->fds[--events->n_fds]);
    events->losses.threads += status == TARE_E_SPACE;
    return status;
}

int tare__native_events_descriptor(const tare__native_events *events)
{
    return events->waits;
}

bool tare__native_events_has_kernel(const tare__native_events *events)
{
    return !events->attributes.exclude_kernel;
}

tare__native_losses tare__native_events_losses(const tare__native_events *events)
{
    return events->losses;
}

/* ---- records ---------------------------------------------------------------------------------------------------- */
typedef struct words {
    const unsigned char *at, *end;
} words;

static uint64_t word(words *from)
{
    uint64_t value = 0;
    if (from->end - from->at >= 8)
        memcpy(&value, from->at, 8);
    from->at = from->end - from->at >= 8 ? from->at + 8 : from->end;
    return value;
}

static void read_chain(words *from, tare__native_sample *sample)
{
    uint64_t n = word(from);
    if (n > (uint64_t)(from->end - from->at) / 8)
        n = (uint64_t)(from->end - from->at) / 8;
    sample->kernel = (const uint64_t *)(const void *)from->at;
    while (sample->n_kernel < n && sample->kernel[0] >= (uint64_t)-4095) { /* markers of the context */
        sample->kernel++;
        n--;
    }
    sample->n_kernel = (uint32_t)n;
    from->at = (const unsigned char *)(sample->kernel + n);
}

static void read_regs(words *from, tare__unwind_regs *regs)
{
    if (word(from) == PERF_SAMPLE_REGS_ABI_NONE)
        return;
    for (size_t i = 0; i < TARE__COUNT_OF(reg_numbers); i++) {
        regs->value[reg_numbers[i]] = word(from);
        regs->known |= UINT64_C(1) << reg_numbers[i];
    }
}

static void read_stack(words *from, tare__native_sample *sample)
{
    uint64_t room = word(from);
    if (!room || room > (uint64_t)(from->end - from->at))
        return;
    sample->stack = from->at;
    from->at += room;
    uint64_t used = word(from);
    sample->stack_bytes = used < room ? used : room;
}

static void take_sample(tare__native_events *events, words from, const tare__native_sink *sink)
{
    tare__native_sample sample = {0};
    uint64_t who = word(&from), ns = word(&from), cpu = word(&from);
    sample.pid = (pid_t)(uint32_t)who;
    sample.tid = (pid_t)(who >> 32);
    sample.ns = ns;
    sample.cpu = (uint32_t)cpu;
    if (events->attributes.sample_type & PERF_SAMPLE_CALLCHAIN)
        read_chain(&from, &sample);
    read_regs(&from, &sample.regs);
    read_stack(&from, &sample);
    if (sample.pid > 0 && sample.tid > 0)
        sink->sample(sink->context, &sample);
}

static void take_record(tare__native_events *events, const struct perf_event_header *header, words from,
                        const tare__native_sink *sink)
{
    switch (header->type) {
    case PERF_RECORD_SAMPLE: take_sample(events, from, sink); break;
    case PERF_RECORD_LOST:
        word(&from);
        events->losses.records += word(&from);
        break;
    case PERF_RECORD_COMM:
        if (header->misc & PERF_RECORD_MISC_COMM_EXEC)
            sink->exec(sink->context, (pid_t)(uint32_t)word(&from));
        break;
    default: break;
    }
}

/* Records may wrap around the end of the buffer. */
static void copy_out(const cpu_buffer *buffer, const unsigned char *data, uint64_t at, void *out, size_t bytes)
{
    size_t from = at & (buffer->bytes - 1), first = buffer->bytes - from < bytes ? buffer->bytes - from : bytes;
    memcpy(out, data + from, first);
    memcpy((unsigned char *)out + first, data, bytes - first);
}

static struct perf_event_mmap_page *control_of(const cpu_buffer *buffer)
{
    return (struct perf_event_mmap_page *)(void *)buffer->pages;
}

/* Looks at the first record: one without a time is due at once. */
static void peek(cpu_buffer *buffer)
{
    const unsigned char *data = buffer->pages + sysconf(_SC_PAGESIZE);
    uint64_t tail = control_of(buffer)->data_tail, start[3] = {0};
    struct perf_event_header header = {0};
    buffer->next_ns = NO_RECORD;
    if (buffer->head - tail < sizeof header)
        return;
    copy_out(buffer, data, tail, &header, sizeof header);
    if (header.type == PERF_RECORD_SAMPLE && buffer->head - tail >= sizeof start)
        copy_out(buffer, data, tail, start, sizeof start);
    buffer->next_ns = start[2] < NO_RECORD ? start[2] : 0;
}

static void take_first(tare__native_events *events, const cpu_buffer *buffer, const tare__native_sink *sink)
{
    struct perf_event_mmap_page *page = control_of(buffer);
    const unsigned char *data = buffer->pages + sysconf(_SC_PAGESIZE);
    uint64_t tail = page->data_tail;
    struct perf_event_header header;
    copy_out(buffer, data, tail, &header, sizeof header);
    if (header.size < sizeof header || header.size > buffer->head - tail) {
        __atomic_store_n(&page->data_tail, buffer->head, __ATOMIC_RELEASE);
        return;
    }
    copy_out(buffer, data, tail, events->record, header.size);
    __atomic_store_n(&page->data_tail, tail + header.size, __ATOMIC_RELEASE);
    take_record(events, &header, (words){events->record + sizeof header, events->record + header.size}, sink);
}

/* A thread that changes its CPU has records in several buffers. */
static cpu_buffer *earliest(const tare__native_events *events)
{
    cpu_buffer *found = NULL;
    for (size_t i = 0; i < events->n_buffers; i++)
        if (events->buffers[i].next_ns < (found ? found->next_ns : NO_RECORD))
            found = &events->buffers[i];
    return found;
}

void tare__native_events_drain(tare__native_events *events, const tare__native_sink *sink)
{
    struct epoll_event ready[16];
    while (epoll_wait(events->waits, ready, TARE__COUNT_OF(ready), 0) == (int)TARE__COUNT_OF(ready))
        ;
    for (size_t i = 0; i < events->n_buffers; i++) {
        cpu_buffer *buffer = &events->buffers[i];
        buffer->head = __atomic_load_n(&control_of(buffer)->data_head, __ATOMIC_ACQUIRE);
        peek(buffer);
    }
    for (cpu_buffer *buffer; (buffer = earliest(events)) != NULL;) {
        take_first(events, buffer, sink);
        peek(buffer);
    }
}
