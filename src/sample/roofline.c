/* roofline: peak performance of this machine: multiply-adds of each type on all cores, and bandwidth of caches and
 * memory. By CPU time, the best of several rounds, so that other load does not lower it. About 0.2 s, in a
 * separate process that has exited when it returns. Must not know what it is compared with. */
#define _GNU_SOURCE
#include "roofline.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX   1024u
#define ROUNDS        6
#define CACHE_ROUNDS  3
#define MEMORY_ROUNDS 8
#define CACHE_MOVED   ((size_t)8 << 20)   /* bytes of a thread per round */
#define MEMORY_LEAST  ((size_t)96 << 20)  /* of all threads: usually more than the caches hold; … */
#define MEMORY_TIMES  3                   /* … and this many times their size; … */
#define MEMORY_MOST   ((size_t)512 << 20) /* … but no more than this: with very large caches the peak is partly
                                           * theirs */
#define STEP          ((size_t)4096)
#define HUGE          ((size_t)2 << 20)

/* ---- threads -------------------------------------------------------------------------------------------------- */
typedef struct crowd {
    pthread_barrier_t gate;
    int state; /* 0: wait until all have started; 1: go; -1: one could not be started */
    unsigned n;
    bool pinned; /* one thread per CPU */
    cpu_set_t cpus;
    size_t area[TARE__PEAK_LEVELS]; /* bytes of each of a thread's two areas; 0: not measured */
    tare__peaks *found;             /* written by the first thread */
    double *rates;                  /* of the round, a thread each */
} crowd;

typedef struct member {
    crowd *crowd;
    pthread_t thread;
    unsigned index;
    char *areas; /* two, one after the other */
} member;

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* All begin at the same time; each has the rate of its own CPU time, and the machine's is their sum. */
static double all_of_round(const member *self, double amount, double seconds)
{
    crowd *crowd = self->crowd;
    double sum = 0;
    crowd->rates[self->index] = seconds > 0 ? amount / seconds : 0;
    pthread_barrier_wait(&crowd->gate);
    for (unsigned i = 0; i < crowd->n; i++)
        sum += crowd->rates[i];
    pthread_barrier_wait(&crowd->gate); /* no thread may write the next round's values while another still adds these */
    return sum;
}

static double compute_round(const member *self, const tare__compute_kernel *kernel)
{
    pthread_barrier_wait(&self->crowd->gate);
    double from = cpu_seconds();
    kernel->run(kernel->loops);
    double seconds = cpu_seconds() - from;
    return all_of_round(self, kernel->operations * (double)kernel->loops, seconds);
}

static double move_round(const member *self, const tare__move_kernel *kernel, size_t area, size_t times)
{
    size_t bytes = kernel->areas == 1 ? 2 * area : area;
    pthread_barrier_wait(&self->crowd->gate);
    double from = cpu_seconds();
    for (size_t i = 0; i < times; i++)
        kernel->run(self->areas, bytes, area);
    double seconds = cpu_seconds() - from;
    return all_of_round(self, (double)kernel->moved * (double)bytes * (double)times, seconds);
}

static void raise_to(const member *self, double *peak, double value)
{
    if (self->index == 0 && value > 0 && !(*peak >= value))
        *peak = value;
}

static void measure_caches(const member *self, int level)
{
    size_t n, area = self->crowd->area[level], times = CACHE_MOVED / (2 * area) + 1;
    const tare__move_kernel *kernels = tare__move_kernels(&n);
    for (size_t i = 0; i < n; i++)
        for (int round = 0; round < CACHE_ROUNDS && kernels[i].cached && kernels[i].available(); round++)
            raise_to(self, &self->crowd->found->level_per_s[level], move_round(self, &kernels[i], area, times));
}

/* Every variant once, then the fastest again: all threads see the same sums, and choose the same. */
static void measure_memory(const member *self)
{
    int level = TARE__PEAK_LEVELS - 1;
    size_t n, best = 0, area = self->crowd->area[level];
    const tare__move_kernel *kernels = tare__move_kernels(&n);
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double rate = kernels[i].available() ? move_round(self, &kernels[i], area, 1) : 0;
        if (rate > most) {
            most = rate;
            best = i;
        }
    }
    for (int round = 1; round < MEMORY_ROUNDS; round++)
        most = fmax(most, move_round(self, &kernels[best], area, 1));
    raise_to(self, &self->crowd->found->level_per_s[level], most);
}

static void measure_compute(const member *self)
{
    size_t n;
    const tare__compute_kernel *kernels = tare__compute_kernels(&n);
    for (size_t i = 0; i < n; i++)
        for (int round = 0; round < ROUNDS && kernels[i].available(); round++)
            raise_to(self, &self->crowd->found->flops[kernels[i].type], compute_round(self, &kernels[i]));
}

static void *take_part(void *context)
{
    member *self = context;
    crowd *crowd = self->crowd;
    int state;
    while ((state = __atomic_load_n(&crowd->state, __ATOMIC_ACQUIRE)) == 0)
        sched_yield();
    if (state < 0)
        return NULL;
    if (crowd->pinned) {
        cpu_set_t own;
        CPU_ZERO(&own);
        for (unsigned cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &crowd->cpus) && seen++ == self->index)
                CPU_SET(cpu, &own);
        pthread_setaffinity_np(pthread_self(), sizeof own, &own);
    }
    memset(self->areas, 1, 2 * crowd->area[TARE__PEAK_LEVELS - 1]); /* by the thread that uses them */
    measure_memory(self);
    for (int level = 0; level < TARE__PEAK_LEVELS - 1; level++)
        if (crowd->area[level])
            measure_caches(self, level);
    measure_compute(self);
    return NULL;
}

/* The barrier counts all threads: none may reach it before all have started. */
static bool run_all(crowd *crowd, member *members)
{
    unsigned started = 1; /* this thread is one of them */
    while (started < crowd->n && pthread_create(&members[started].thread, NULL, take_part, &members[started]) == 0)
        started++;
    __atomic_store_n(&crowd->state, started == crowd->n ? 1 : -1, __ATOMIC_RELEASE);
    take_part(&members[0]);
    for (unsigned i = 1; i < started; i++)
        pthread_join(members[i].thread, NULL);
    return started == crowd->n;
}

/* ---- caches --------------------------------------------------------------------------------------------------- */
/* The number of CPUs in a list like "0-3,8". */
static unsigned count_cpus(const char *list)
{
    unsigned n = 0;
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long from = strtoul(list, &end, 10), to = from;
        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        n += to >= from && to - from < 65536 ? (unsigned)(to - from) + 1 : 1;
        list = *end == ',' ? end + 1 : end;
    }
    return n;
}

static size_t size_of(const char *text)
{
    char *end;
    size_t bytes = strtoul(text, &end, 10);
    return bytes << (*end == 'K' ? 10 : *end == 'M' ? 20 : 0);
}

static bool read_cache(unsigned cpu, unsigned index, const char *what, char out[256])
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/%s", cpu, index, what);
    return tare__sample_read("", path, out, 256) > 0;
}

/* Cache sizes of the cores that the threads can run on, and what one thread may use of them. */
static void find_caches(crowd *crowd, unsigned allowed)
{
    unsigned cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &crowd->cpus))
        cpu++;
    char text[256], type[256];
    for (unsigned index = 0; index < 8 && read_cache(cpu, index, "level", text); index++) {
        unsigned long level = strtoul(text, NULL, 10);
        if (level < 1 || level >= TARE__PEAK_LEVELS || !read_cache(cpu, index, "type", type) ||
            strncmp(type, "Instruction", 11) == 0 || !read_cache(cpu, index, "size", text))
            continue;
        size_t bytes = size_of(text);
        unsigned sharing = read_cache(cpu, index, "shared_cpu_list", text) ? count_cpus(text) : 1;
        sharing = sharing < 1 ? 1 : sharing > allowed ? allowed : sharing;
        unsigned instances = (allowed + sharing - 1) / sharing;
        instances = instances > crowd->n ? crowd->n : instances;
        crowd->found->level_bytes[level - 1] = (double)bytes * instances;
        size_t each = bytes * instances / crowd->n;
        crowd->area[level - 1] = each / 4 / 512 * 512; /* two areas are half of it */
    }
}

static void find_areas(crowd *crowd, unsigned allowed)
{
    double cached = 0;
    find_caches(crowd, allowed);
    for (int i = 0; i < TARE__PEAK_LEVELS - 1; i++)
        cached += crowd->found->level_bytes[i];
    size_t all = (size_t)fmax((double)MEMORY_LEAST, MEMORY_TIMES * cached);
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t most = pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 4 : MEMORY_LEAST;
    all = all > MEMORY_MOST ? MEMORY_MOST : all;
    all = all > most ? most : all;
    size_t each = all / 2 / crowd->n / STEP * STEP;
    for (int i = 0; i < TARE__PEAK_LEVELS - 1; i++)
        if (crowd->area[i] > each)
            crowd->area[i] = each;
    crowd->area[TARE__PEAK_LEVELS - 1] = each < STEP ? STEP : each;
}

/* The largest available pages, so that TLB misses are not measured. */
static char *take_area(size_t bytes)
{
    char *area = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return NULL;
    madvise(area, bytes + HUGE, MADV_HUGEPAGE);
    return area + (HUGE - (uintptr_t)area % HUGE);
}

/* ---- in a separate process ------------------------------------------------------------------------------------ */
static void measure(unsigned threads, tare__peaks *found)
{
    static double rates[THREADS_MAX];
    static member members[THREADS_MAX];
    crowd crowd = {.found = found, .rates = rates};
    unsigned allowed = sched_getaffinity(0, sizeof crowd.cpus, &crowd.cpus) == 0 ? (unsigned)CPU_COUNT(&crowd.cpus) : 1;
    crowd.n = threads && threads < allowed ? threads : allowed;
    crowd.n = crowd.n < 1 ? 1 : crowd.n > THREADS_MAX ? THREADS_MAX : crowd.n;
    /* Fewer threads than CPUs: the scheduler places them, as it does for a program. */
    crowd.pinned = crowd.n == allowed;
    find_areas(&crowd, allowed);
    if (pthread_barrier_init(&crowd.gate, NULL, crowd.n) != 0)
        return;
    for (unsigned i = 0; i < crowd.n; i++) {
        members[i] = (member){.crowd = &crowd, .index = i};
        members[i].areas = take_area(2 * crowd.area[TARE__PEAK_LEVELS - 1]);
        if (!members[i].areas)
            return;
    }
    run_all(&crowd, members);
}

/* Narrower types are widened if a processor has no instructions for them; a smaller cache is not slower than a
 * larger one, whatever interfered. */
static void complete(tare__peaks *peaks)
{
#if defined(__x86_64__)
    const tare__peak widened[] = {TARE__PEAK_F16, TARE__PEAK_BF16, TARE__PEAK_INT8};
    for (size_t i = 0; i < TARE__COUNT_OF(widened); i++)
        if (!(peaks->flops[widened[i]] >= peaks->flops[TARE__PEAK_F32]))
            peaks->flops[widened[i]] = peaks->flops[TARE__PEAK_F32];
#endif
    for (int i = TARE__PEAK_LEVELS - 2; i >= 0; i--)
        if (peaks->level_per_s[i] < peaks->level_per_s[i + 1])
            peaks->level_per_s[i] = peaks->level_per_s[i + 1];
}

bool tare__sample_roofline(unsigned threads, tare__peaks *peaks)
{
    tare__peaks_clear(peaks);
    tare__peaks *found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        return false;
    tare__peaks_clear(found);
    pid_t pid = fork();
    if (pid == 0) {
        measure(threads, found);
        _exit(0);
    }
    if (pid > 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    *peaks = *found;
    munmap(found, sizeof *found);
    complete(peaks);
    return peaks->flops[TARE__PEAK_F32] > 0 || peaks->level_per_s[TARE__PEAK_LEVELS - 1] > 0;
}
